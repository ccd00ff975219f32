"""The contract for pages: limits, filters, counts, one megabyte, and scans."""

from __future__ import annotations

import pytest

from adjoin.expressions import Compare, Exists, Value, attribute
from adjoin.requests import Consumed, CreateTable, Delete, PageResponse, Query, Scan
from adjoin.stores.interface import Store
from adjoin.values import AttributeValue, Item
from tests.stores.examples import (
    INDEXED,
    b,
    by_key,
    everything,
    item,
    key,
    keyed_by,
    n,
    page,
    put,
    reading,
    refused,
    s,
    sort_keys,
)

OF_A = ("PK", s("A"))
MB = 1_048_576

# --- limits, filters, projections --------------------------------------------------------------


def test_the_limit_comes_before_the_filter(store: Store) -> None:
    put(store, "Plain", *(item("A", str(each), odd={"BOOL": each % 2 == 1}) for each in range(6)))
    odd = Compare("=", attribute("odd"), Value({"BOOL": True}))
    response = page(store, Query("Plain", OF_A, filter=odd, limit=3))
    assert (sort_keys(response.items), response.count, response.scanned) == (["1"], 1, 3)
    assert response.last == key("A", "2")
    rest = page(store, Query("Plain", OF_A, filter=odd, start=response.last))
    assert (sort_keys(rest.items), rest.count, rest.scanned, rest.last) == (["3", "5"], 2, 3, None)


def test_a_page_that_is_exactly_full_has_a_last_key(store: Store) -> None:
    put(store, "Plain", *(item("A", str(each)) for each in range(3)))
    response = page(store, Query("Plain", OF_A, limit=3))
    assert (len(response.items), response.last) == (3, key("A", "2"))
    assert page(store, Query("Plain", OF_A, limit=3, start=response.last)) == PageResponse(
        [], 0, 0, None, reading(0.5, "Plain")
    )
    assert page(store, Query("Plain", OF_A, limit=4)).last is None


def test_a_start_key_need_not_exist(store: Store) -> None:
    put(store, "Plain", *(item("A", str(each)) for each in range(5)))
    store.execute([Delete("Plain", key("A", "2"))])
    assert sort_keys(page(store, Query("Plain", OF_A, start=key("A", "2"))).items) == ["3", "4"]
    assert sort_keys(page(store, Query("Plain", OF_A, start=key("A", "2"), forward=False)).items) == ["1", "0"]


def test_projection_and_count(store: Store) -> None:
    put(store, "Plain", *(item("A", str(each), a=n(each), c=s("c")) for each in range(3)))
    projected = page(store, Query("Plain", OF_A, projection=(attribute("a"),), limit=2))
    assert projected == PageResponse([{"a": n(0)}, {"a": n(1)}], 2, 2, key("A", "1"), reading(0.5, "Plain"))
    counted = page(store, Query("Plain", OF_A, count_only=True))
    assert counted == PageResponse([], 3, 3, None, reading(0.5, "Plain"))


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("forward", [True, False])
def test_pages_of_every_length(store: Store, limit: int, forward: bool) -> None:
    put(store, "Plain", *(item("A", str(each)) for each in range(6)))
    found: list[str] = []
    start = None
    while True:
        part = page(store, Query("Plain", OF_A, limit=limit, start=start, forward=forward))
        assert part.count == part.scanned == len(part.items) == min(limit, 6 - len(found))
        found += sort_keys(part.items)
        start = part.last
        # A page that ends with the last item does not know it, unless it has room left.
        assert (start is None) == (part.count < limit)
        if start is None:
            break
    assert found == (list("012345") if forward else list("543210"))


def test_counts_with_a_filter_and_a_limit(store: Store) -> None:
    put(store, "Edges", *(item("A", str(each), kind=s("k"), grade=n(each)) for each in range(5)))
    high = Compare(">=", attribute("grade"), Value(n(3)))
    counted = page(store, Query("Edges", OF_A, filter=high, count_only=True, limit=4))
    assert (list(counted.items), counted.count, counted.scanned, counted.last) == ([], 1, 4, key("A", "3"))
    rest = page(store, Query("Edges", OF_A, filter=high, count_only=True, start=counted.last))
    assert (rest.count, rest.scanned, rest.last) == (1, 1, None)
    indexed = page(store, Query("Edges", ("kind", s("k")), index="Kind", filter=high, count_only=True))
    assert (indexed.count, indexed.scanned) == (2, 5)
    nothing = page(store, Query("Edges", OF_A, filter=Exists(attribute("none")), limit=2))
    assert (list(nothing.items), nothing.count, nothing.scanned, nothing.last) == ([], 0, 2, key("A", "1"))
    scanned = page(store, Scan("Edges", filter=high, count_only=True))
    assert (scanned.count, scanned.scanned) == (2, 5)


# --- one megabyte ------------------------------------------------------------------------------


def test_a_page_ends_after_one_megabyte(store: Store) -> None:
    # 11 items of 100 000 bytes: the one that reaches 1 MB (1 048 576 bytes) is the last of the page.
    put(store, "Plain", *(item("A", f"{each:02d}", x=s("x" * 99_992)) for each in range(12)))
    first = page(store, Query("Plain", OF_A))
    assert (first.count, first.last) == (11, key("A", "10"))
    assert first.consumed == reading(134.5, "Plain")  # 1 100 000 bytes are 269 blocks of 4 KB, halved
    second = page(store, Query("Plain", OF_A, start=first.last))
    assert (second.count, second.last, second.consumed) == (1, None, reading(12.5, "Plain"))
    nothing = Compare("=", attribute("x"), Value(s("y")))
    filtered = page(store, Query("Plain", OF_A, filter=nothing, consistent=True))
    assert (filtered.count, filtered.scanned, filtered.last) == (0, 11, key("A", "10"))
    assert filtered.consumed == reading(269.0, "Plain")
    assert sort_keys(everything(store, "Plain")) == [f"{each:02d}" for each in range(12)]


def filled(*sizes: int) -> list[Item]:
    """Items of these sizes in one partition: names PK, SK and x take 5 bytes, the key values 3."""
    return [item("A", f"{each:02d}", x=s("x" * (size - 8))) for each, size in enumerate(sizes)]


LARGEST = 409_600


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        pytest.param((LARGEST, LARGEST, MB - 2 * LARGEST, 100), 3, id="1 MB exactly, and more behind"),
        pytest.param((LARGEST, LARGEST, MB - 2 * LARGEST), 3, id="1 MB exactly, and nothing behind"),
        pytest.param((LARGEST, LARGEST, MB - 2 * LARGEST - 1, 100, 100), 4, id="1 MB but a byte"),
        pytest.param((LARGEST, LARGEST, MB - 2 * LARGEST + 1, 100), 3, id="1 MB and a byte"),
    ],
)
@pytest.mark.parametrize("of", [Query("Plain", OF_A), Scan("Plain")], ids=["query", "scan"])
def test_the_item_that_reaches_one_megabyte_is_the_last(
    store: Store, of: Query | Scan, sizes: tuple[int, ...], count: int
) -> None:
    put(store, "Plain", *filled(*sizes))
    response = page(store, of)
    assert (response.count, response.last) == (count, key("A", f"{count - 1:02d}"))


@pytest.mark.parametrize("of", [Query("Plain", OF_A), Scan("Plain")], ids=["query", "scan"])
def test_less_than_one_megabyte_is_one_page(store: Store, of: Query | Scan) -> None:
    put(store, "Plain", *filled(LARGEST, LARGEST, MB - 2 * LARGEST - 1))
    response = page(store, of)
    assert (response.count, response.last) == (3, None)


def test_a_limit_may_end_a_page_before_one_megabyte_does(store: Store) -> None:
    put(store, "Plain", *filled(LARGEST, LARGEST, LARGEST, LARGEST))
    two = page(store, Query("Plain", OF_A, limit=2))
    assert (two.count, two.last) == (2, key("A", "01"))
    four = page(store, Query("Plain", OF_A, limit=4))
    assert (four.count, four.last) == (3, key("A", "02"))
    backward = page(store, Query("Plain", OF_A, forward=False))
    assert (sort_keys(backward.items), backward.last) == (["03", "02", "01"], key("A", "01"))


def test_a_page_of_an_index_is_one_megabyte_of_the_index(store: Store) -> None:
    big = s("x" * 400_000)
    put(store, "Edges", *(item("A", str(each), RPK=s("X"), RSK=s("1"), kind=s("k"), x=big) for each in range(4)))
    whole = page(store, Query("Edges", ("RPK", s("X")), index="Reverse"))
    assert whole.count == 3
    assert whole.last is not None
    rest = page(store, Query("Edges", ("RPK", s("X")), index="Reverse", start=whole.last))
    assert (rest.count, rest.last) == (1, None)
    keys_only = page(store, Query("Edges", ("kind", s("k")), index="Kind"))
    assert (keys_only.count, keys_only.last) == (4, None)


def test_a_projection_does_not_lengthen_a_page(store: Store) -> None:
    put(store, "Plain", *filled(LARGEST, LARGEST, LARGEST, LARGEST))
    response = page(store, Query("Plain", OF_A, projection=(attribute("SK"),)))
    assert (response.items, response.last) == ([{"SK": s(each)} for each in ("00", "01", "02")], key("A", "02"))


@pytest.mark.parametrize(
    ("count", "consistent", "units"),
    [(0, False, 0.5), (0, True, 1.0), (4, False, 0.5), (5, False, 1.0), (5, True, 2.0)],
)
def test_a_query_adds_up_sizes_before_it_rounds(store: Store, count: int, consistent: bool, units: float) -> None:
    put(store, "Plain", *(item("A", str(each), x=s("x" * 1017)) for each in range(count)))  # 1024 bytes each
    assert page(store, Query("Plain", OF_A, consistent=consistent)).consumed == reading(units, "Plain")


# --- scans -------------------------------------------------------------------------------------


def test_a_scan_reads_everything(store: Store) -> None:
    put(store, "Edges", *INDEXED)
    response = page(store, Scan("Edges"))
    assert by_key(response.items) == INDEXED
    assert (response.count, response.scanned, response.last) == (5, 5, None)
    assert page(store, Scan("Edges", index="Reverse")).count == 3
    assert page(store, Scan("Edges", filter=Exists(attribute("PK")), count_only=True)).count == 5


@pytest.mark.parametrize(
    ("scan", "expected"),
    [
        pytest.param(Scan("Edges"), reading(0.5), id="eventually"),
        pytest.param(Scan("Edges", consistent=True), reading(1.0), id="strongly"),
        pytest.param(Scan("Edges", index="Reverse"), reading(0.5, index="Reverse"), id="global index"),
        pytest.param(Scan("Edges", index="ByTime", consistent=True), reading(1.0, index="ByTime"), id="local index"),
        pytest.param(Scan("Edges", filter=Exists(attribute("none"))), reading(0.5), id="nothing found"),
        pytest.param(Scan("Edges", count_only=True), reading(0.5), id="count"),
    ],
)
def test_units_of_a_scan(store: Store, scan: Scan, expected: tuple[Consumed, ...]) -> None:
    put(store, "Edges", *INDEXED)
    assert page(store, scan).consumed == expected


def test_pages_of_a_scan(store: Store) -> None:
    put(store, "Edges", *INDEXED)
    for index in (None, "Reverse", "Inverted", "Kind", "ByTime"):
        whole = page(store, Scan("Edges", index=index)).items
        found: list[Item] = []
        start = None
        while True:
            part = page(store, Scan("Edges", index=index, start=start, limit=2))
            found += part.items
            start = part.last
            if start is None:
                break
        assert found == whole, index


@pytest.mark.parametrize("total", [1, 2, 7])
def test_segments_are_together_everything(store: Store, total: int) -> None:
    put(store, "Plain", *(item(f"P{each}", str(sk)) for each in range(40) for sk in range(2)))
    segments = [page(store, Scan("Plain", segment=(which, total))).items for which in range(total)]
    assert sum(map(len, segments)) == 80
    homes: dict[str, set[int]] = {}
    for which, items in enumerate(segments):
        for each in items:
            homes.setdefault(each["PK"]["S"], set()).add(which)
    assert len(homes) == 40
    assert all(len(home) == 1 for home in homes.values()), "a partition lies in one segment"


@pytest.mark.parametrize("segment", [(2, 2), (-1, 2), (0, 0)])
def test_segments_that_are_not(store: Store, segment: tuple[int, int]) -> None:
    with refused(store):
        store.execute([Scan("Plain", segment=segment)])


@pytest.mark.parametrize("kind", ["S", "N", "B"])
def test_segments_of_every_key_type(store: Store, kind: str) -> None:
    values: dict[str, list[AttributeValue]] = {
        "S": [s(str(each)) for each in range(20)],
        "N": [n(each) for each in range(20)],
        "B": [b(bytes([each])) for each in range(20)],
    }
    store.execute([CreateTable(keyed_by(kind))])
    put(store, f"Keyed.{kind}", *({"PK": each, "SK": each} for each in values[kind]))
    counts = [page(store, Scan(f"Keyed.{kind}", segment=(which, 2), count_only=True)).count for which in range(2)]
    assert sum(counts) == 20
    assert all(counts)
