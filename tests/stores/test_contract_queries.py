"""The contract for pages: query and scan, on the table and on indexes."""

from __future__ import annotations

import pytest

from adjoin.errors import InvalidRequest
from adjoin.expressions import Compare, Exists, Path, Value, attribute
from adjoin.requests import (
    Consumed,
    CreateTable,
    Delete,
    PageResponse,
    Query,
    Scan,
    SortCondition,
    SortOperator,
)
from adjoin.stores.interface import Store
from adjoin.values import AttributeValue, Item
from tests.stores.examples import (
    b,
    everything,
    item,
    key,
    keyed_by,
    n,
    page,
    put,
    reading,
    s,
    sort_keys,
)

OF_A = ("PK", s("A"))


def where(operator: SortOperator, *operands: str) -> SortCondition:
    return SortCondition("SK", operator, tuple(s(each) for each in operands))


# --- order and conditions ----------------------------------------------------------------------


def test_a_partition_in_order(store: Store) -> None:
    # By UTF-8 bytes: the last two would change places in UTF-16.
    keys = ["", "A", "Z", "a", "a\0", "a b", "z", "é", "\ud7ff", "\uffff", "\U00010000"][1:]
    put(store, "Plain", *(item("A", each) for each in reversed(keys)), item("B", "x"))
    assert sort_keys(page(store, Query("Plain", OF_A)).items) == keys
    assert sort_keys(page(store, Query("Plain", OF_A, forward=False)).items) == keys[::-1]


def test_numbers_order_as_numbers(store: Store) -> None:
    store.execute([CreateTable(keyed_by("N"))])
    numbers = [
        "-1E+125",
        "-1000",
        "-12.5",
        "-12",
        "-1E-130",
        "0",
        "1E-130",
        "0.99",
        "1",
        "1.2",
        "1.23",
        "9",
        "10",
        "1E+125",
    ]
    put(store, "Keyed.N", *({"PK": n(1), "SK": n(each)} for each in reversed(numbers)))
    found = page(store, Query("Keyed.N", ("PK", n("1.0")))).items
    assert [float(each["SK"]["N"]) for each in found] == [float(each) for each in numbers]
    above = SortCondition("SK", ">", (n("0.99"),))
    assert [each["SK"]["N"] for each in page(store, Query("Keyed.N", ("PK", n(1)), above, limit=2)).items] == [
        "1",
        "1.2",
    ]


def test_binary_orders_by_bytes(store: Store) -> None:
    store.execute([CreateTable(keyed_by("B"))])
    raws = [b"\0", b"\0\0", b"\x7f", b"\x80", b"\xff", b"\xff\0", b"\xff\xff"]
    put(store, "Keyed.B", *({"PK": b(b"p"), "SK": b(each)} for each in reversed(raws)))
    assert [each["SK"] for each in page(store, Query("Keyed.B", ("PK", b(b"p")))).items] == [b(each) for each in raws]
    begins = SortCondition("SK", "begins_with", (b(b"\xff"),))
    assert len(page(store, Query("Keyed.B", ("PK", b(b"p")), begins)).items) == 3


CONDITIONS: list[tuple[SortCondition, list[str]]] = [
    (where("=", "b"), ["b"]),
    (where("=", "x"), []),
    (where("<", "b"), ["a", "a#1", "a#2"]),
    (where("<=", "b"), ["a", "a#1", "a#2", "b"]),
    (where(">", "b"), ["c", "\U0010ffff", "\U0010ffff!"]),
    (where(">=", "b"), ["b", "c", "\U0010ffff", "\U0010ffff!"]),
    (where("between", "a#1", "b"), ["a#1", "a#2", "b"]),
    (where("between", "b", "b"), ["b"]),
    (where("begins_with", "a"), ["a", "a#1", "a#2"]),
    (where("begins_with", "a#"), ["a#1", "a#2"]),
    (where("begins_with", "\U0010ffff"), ["\U0010ffff", "\U0010ffff!"]),
    (where("begins_with", "zz"), []),
]


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize(("condition", "expected"), CONDITIONS)
def test_sort_conditions(store: Store, condition: SortCondition, expected: list[str], forward: bool) -> None:
    put(store, "Plain", *(item("A", each) for each in ["a", "a#1", "a#2", "b", "c", "\U0010ffff", "\U0010ffff!"]))
    expected = expected if forward else expected[::-1]
    whole = page(store, Query("Plain", OF_A, condition, forward=forward))
    assert sort_keys(whole.items) == expected
    assert whole.last is None
    assert paged(store, Query("Plain", OF_A, condition, forward=forward), 1) == expected
    assert paged(store, Query("Plain", OF_A, condition, forward=forward), 2) == expected


def paged(store: Store, query: Query, limit: int) -> list[str]:
    keys: list[str] = []
    start = None
    while True:
        response = page(
            store, Query(query.table, query.partition, query.sort, limit=limit, start=start, forward=query.forward)
        )
        assert len(response.items) <= limit
        keys += sort_keys(response.items)
        start = response.last
        if start is None:
            return keys


REJECTED: list[tuple[Query, str]] = [
    (Query("Plain", ("SK", s("A"))), "Query condition missed key schema element: PK"),
    (Query("Plain", ("PK", n(1))), "Condition parameter type does not match schema type"),
    (Query("Plain", ("PK", s(""))), "cannot contain an empty string value. Key: PK"),
    (Query("Plain", OF_A, SortCondition("x", "=", (s("a"),))), "Query condition missed key schema element: SK"),
    (Query("Plain", OF_A, SortCondition("SK", "=", (n(1),))), "Condition parameter type does not match schema type"),
    (
        Query("Plain", OF_A, where("between", "b", "a")),
        "Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal",
    ),
    (Query("Plain", OF_A, where("between", "b")), "between cannot take 1 operands"),
    (Query("Plain", OF_A, where("=", "b", "a")), "= cannot take 2 operands"),
    (Query("Plain", OF_A, limit=0), "a limit of 0 items asks for nothing"),
    (Query("Plain", OF_A, index="None"), "The table does not have the specified index: None"),
    (Query("Single", ("id", s("1")), where("=", "b")), "Query key condition not supported"),
    (
        Query("Edges", ("PK", s("A")), SortCondition("at", "begins_with", (n(1),)), index="ByTime"),
        "operator or function: begins_with, operand type: N",
    ),
    (
        Query("Edges", ("RPK", s("A")), index="Reverse", consistent=True),
        "Consistent reads are not supported on global secondary indexes",
    ),
    (Scan("Edges", index="Reverse", consistent=True), "Consistent reads are not supported"),  # type: ignore[list-item]
    (
        Query("Plain", OF_A, filter=Exists(Path(("SK",)))),
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: SK",
    ),
    (
        Query("Edges", ("RPK", s("A")), index="Reverse", filter=Compare("=", attribute("RSK"), Value(s("x")))),
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: RSK",
    ),
    (Query("Plain", OF_A, start={"PK": s("A")}), "The provided starting key is invalid"),
    (Query("Plain", OF_A, start={"PK": s("A"), "SK": n(1)}), "The provided starting key is invalid"),
    (Query("Plain", OF_A, start=item("A", "1", x=n(1))), "The provided starting key is invalid"),
    (
        Query("Plain", OF_A, start=key("B", "1")),
        "The provided starting key is outside query boundaries based on provided conditions",
    ),
    (
        Query("Plain", OF_A, where("<", "b"), start=key("A", "b")),
        "The provided starting key does not match the range key predicate",
    ),
    (
        Query("Single", ("id", s("1")), start={"id": s("1")}),
        "The query can return at most one row and cannot be restarted",
    ),
    (
        Query("Edges", ("kind", s("x")), index="Kind", projection=(attribute("grade"), attribute("other"))),
        r"Global secondary index Kind does not project \['other'\]",
    ),
]


@pytest.mark.parametrize(("query", "message"), REJECTED)
def test_rejected_queries(store: Store, query: Query, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        store.execute([query])


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


@pytest.mark.parametrize(
    ("count", "consistent", "units"),
    [(0, False, 0.5), (0, True, 1.0), (4, False, 0.5), (5, False, 1.0), (5, True, 2.0)],
)
def test_a_query_adds_up_sizes_before_it_rounds(store: Store, count: int, consistent: bool, units: float) -> None:
    put(store, "Plain", *(item("A", str(each), x=s("x" * 1017)) for each in range(count)))  # 1024 bytes each
    assert page(store, Query("Plain", OF_A, consistent=consistent)).consumed == reading(units, "Plain")


# --- indexes -----------------------------------------------------------------------------------

INDEXED: list[Item] = [
    item("A", "1", RPK=s("X"), RSK=s("b"), kind=s("k"), grade=s("1"), other=s("o"), at=n(10)),
    item("A", "2", RPK=s("X"), RSK=s("a"), kind=s("k"), other=s("o"), at=n(9)),
    item("B", "1", RPK=s("X"), RSK=s("a"), kind=s("j"), at=n(1)),
    item("B", "2", RPK=s("X")),
    item("C", "1", RSK=s("a")),
]


def test_an_index_holds_the_items_that_have_its_keys(store: Store) -> None:
    put(store, "Edges", *INDEXED)
    response = page(store, Query("Edges", ("RPK", s("X")), index="Reverse"))
    assert response == PageResponse([INDEXED[1], INDEXED[2], INDEXED[0]], 3, 3, None, reading(0.5, index="Reverse"))
    backward = page(store, Query("Edges", ("RPK", s("X")), index="Reverse", forward=False))
    assert backward.items == response.items[::-1]


@pytest.mark.parametrize("forward", [True, False])
def test_paging_through_equal_index_keys(store: Store, forward: bool) -> None:
    put(store, "Edges", *(item(pk, sk, RPK=s("X"), RSK=s(r)) for r in "ab" for pk in "AB" for sk in (r + "1", r + "2")))
    query = Query("Edges", ("RPK", s("X")), index="Reverse", forward=forward)
    whole = page(store, query).items
    assert len(whole) == 8
    found: list[Item] = []
    start = None
    while len(found) < 8:
        part = page(store, Query("Edges", ("RPK", s("X")), index="Reverse", forward=forward, start=start, limit=3))
        found += part.items
        start = part.last
        assert start is None or set(start) == {"PK", "SK", "RPK", "RSK"}
    assert found == whole


def test_projections_of_indexes(store: Store) -> None:
    put(store, "Edges", *INDEXED)
    inverted = page(store, Query("Edges", ("SK", s("1")), index="Inverted"))
    assert inverted.items == [key("A", "1"), key("B", "1"), key("C", "1")]
    kinds = page(store, Query("Edges", ("kind", s("k")), index="Kind"))
    assert kinds.items == [item("A", "1", kind=s("k"), grade=s("1")), item("A", "2", kind=s("k"))]
    assert page(store, Query("Edges", ("kind", s("k")), index="Kind", limit=1)).last == item("A", "1", kind=s("k"))
    # What the index does not carry, a filter cannot see.
    assert page(store, Query("Edges", ("kind", s("k")), index="Kind", filter=Exists(attribute("other")))).count == 0


def test_an_index_read_is_charged_the_projected_size(store: Store) -> None:
    put(store, "Edges", *(item("A", str(each), kind=s("k"), other=s("x" * 3000)) for each in range(4)))
    assert page(store, Query("Edges", ("kind", s("k")), index="Kind")).consumed == reading(0.5, index="Kind")
    assert page(store, Query("Edges", OF_A)).consumed == reading(1.5)


def test_a_local_index(store: Store) -> None:
    put(store, "Edges", *INDEXED)
    query = Query("Edges", OF_A, index="ByTime", consistent=True)
    response = page(store, query)
    assert response.items == [item("A", "2", at=n(9)), item("A", "1", at=n(10))]
    assert response.consumed == reading(1.0, index="ByTime")


def test_a_local_index_fetches_what_it_lacks_from_the_table(store: Store) -> None:
    put(store, "Edges", *INDEXED)
    query = Query("Edges", OF_A, index="ByTime", projection=(attribute("other"),))
    response = page(store, query)
    assert response.items == [{"other": s("o")}, {"other": s("o")}]
    assert response.consumed == (Consumed("Edges", None, 1.0, 0.0), Consumed("Edges", "ByTime", 0.5, 0.0))


# --- scans -------------------------------------------------------------------------------------


def test_a_scan_reads_everything(store: Store) -> None:
    put(store, "Edges", *INDEXED)
    response = page(store, Scan("Edges"))
    assert sorted(response.items, key=str) == sorted(INDEXED, key=str)
    assert (response.count, response.scanned, response.last) == (5, 5, None)
    assert page(store, Scan("Edges", consistent=True)).consumed == reading(1.0)
    assert page(store, Scan("Edges", index="Reverse")).count == 3
    assert page(store, Scan("Edges", index="Reverse")).consumed == reading(0.5, index="Reverse")
    assert page(store, Scan("Edges", filter=Exists(attribute("PK")), count_only=True)).count == 5


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
    with pytest.raises(InvalidRequest, match="there is no segment"):
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
