"""The contract for queries: order, conditions, and what indexes answer."""

from __future__ import annotations

import pytest

from adjoin.expressions import Compare, Exists, Path, Value, attribute
from adjoin.requests import (
    Consumed,
    CreateTable,
    Query,
    Scan,
    SortCondition,
    SortOperator,
)
from adjoin.stores.interface import Store
from adjoin.values import Item
from tests.stores.examples import (
    INDEXED,
    b,
    by_key,
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
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        pytest.param(condition, expected, id=f"{condition.operator} {condition.operands[0]['S']!a}")
        for condition, expected in CONDITIONS
    ],
)
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


REJECTED: list[tuple[str, Query | Scan, str]] = [
    ("no partition", Query("Plain", ("SK", s("A"))), "Query condition missed key schema element: PK"),
    ("type of partition", Query("Plain", ("PK", n(1))), "Condition parameter type does not match schema type"),
    ("empty partition", Query("Plain", ("PK", s(""))), "cannot contain an empty string value. Key: PK"),
    (
        "another attribute",
        Query("Plain", OF_A, SortCondition("x", "=", (s("a"),))),
        "Query condition missed key schema element: SK",
    ),
    (
        "type of sort key",
        Query("Plain", OF_A, SortCondition("SK", "=", (n(1),))),
        "Condition parameter type does not match schema type",
    ),
    (
        "bounds the wrong way round",
        Query("Plain", OF_A, where("between", "b", "a")),
        "The BETWEEN operator requires upper bound to be greater than or equal to lower bound",
    ),
    ("limit of 0", Query("Plain", OF_A, limit=0), ""),
    ("no such index", Query("Plain", OF_A, index="None"), "The table does not have the specified index: None"),
    (
        "no sort key",
        Query("Single", ("id", s("1")), where("=", "b")),
        r"The number of query conditions \(2\) exceeds the number of key attributes defined in the schema \(1\)",
    ),
    (
        "prefix of a number",
        Query("Edges", ("PK", s("A")), SortCondition("at", "begins_with", (n(1),)), index="ByTime"),
        "operator or function: begins_with, operand type: N",
    ),
    (
        "consistent query of a global index",
        Query("Edges", ("RPK", s("A")), index="Reverse", consistent=True),
        "Consistent reads are not supported on global secondary indexes",
    ),
    (
        "consistent scan of a global index",
        Scan("Edges", index="Reverse", consistent=True),
        "Consistent reads are not supported on global secondary indexes",
    ),
    (
        "filter on a key",
        Query("Plain", OF_A, filter=Exists(Path(("SK",)))),
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: SK",
    ),
    (
        "filter on a key of the index",
        Query("Edges", ("RPK", s("A")), index="Reverse", filter=Compare("=", attribute("RSK"), Value(s("x")))),
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: RSK",
    ),
    ("start without sort key", Query("Plain", OF_A, start={"PK": s("A")}), "The provided starting key is invalid"),
    ("type of the start", Query("Plain", OF_A, start={"PK": s("A"), "SK": n(1)}), ""),
    ("start with more", Query("Plain", OF_A, start=item("A", "1", x=n(1))), "The provided starting key is invalid"),
    (
        "start in another partition",
        Query("Plain", OF_A, start=key("B", "1")),
        "The provided starting key is outside query boundaries based on provided conditions",
    ),
    (
        "start outside the condition",
        Query("Plain", OF_A, where("<", "b"), start=key("A", "b")),
        "The provided starting key does not match the range key predicate",
    ),
    (
        "start behind the only item",
        Query("Single", ("id", s("1")), start={"id": s("1")}),
        "The query can return at most one row and cannot be restarted",
    ),
    (
        "attributes that an index lacks",
        Query("Edges", ("kind", s("x")), index="Kind", projection=(attribute("grade"), attribute("other"))),
        "Global secondary index Kind does not project",
    ),
]


@pytest.mark.parametrize(("query", "words"), [pytest.param(query, words, id=name) for name, query, words in REJECTED])
def test_rejected_queries(store: Store, query: Query | Scan, words: str) -> None:
    with refused(store, words):
        store.execute([query])


# --- indexes -----------------------------------------------------------------------------------


def test_an_index_holds_the_items_that_have_its_keys(store: Store) -> None:
    put(store, "Edges", *INDEXED)
    response = page(store, Query("Edges", ("RPK", s("X")), index="Reverse"))
    assert (response.count, response.scanned, response.last) == (3, 3, None)
    assert response.consumed == reading(0.5, index="Reverse")
    # Items with equal keys of the index are in no order that the guide would promise.
    assert by_key(response.items[:2]) == INDEXED[1:3]
    assert response.items[2] == INDEXED[0]
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
    assert by_key(kinds.items) == [item("A", "1", kind=s("k"), grade=s("1")), item("A", "2", kind=s("k"))]
    first = page(store, Query("Edges", ("kind", s("k")), index="Kind", limit=1))
    assert first.last == {name: first.items[0][name] for name in ("PK", "SK", "kind")}
    graded = page(store, Query("Edges", ("kind", s("k")), index="Kind", projection=(attribute("grade"),)))
    assert sorted(graded.items, key=str) == [{"grade": s("1")}, {}]


def test_a_filter_sees_what_the_index_carries(store: Store) -> None:
    put(store, "Edges", *INDEXED)
    of_k = ("kind", s("k"))
    assert page(store, Query("Edges", of_k, index="Kind", filter=Exists(attribute("grade")))).count == 1
    assert page(store, Query("Edges", of_k, index="Kind", filter=Exists(attribute("other")))).count == 0


def test_an_index_read_is_charged_the_projected_size(store: Store) -> None:
    put(store, "Edges", *(item("A", str(each), kind=s("k"), other=s("x" * 3000)) for each in range(4)))
    assert page(store, Query("Edges", ("kind", s("k")), index="Kind")).consumed == reading(0.5, index="Kind")
    put(store, "Edges", *(item("A", str(each), RPK=s("X"), RSK=s("1"), other=s("x" * 3000)) for each in range(4)))
    assert page(store, Query("Edges", ("RPK", s("X")), index="Reverse")).consumed == reading(1.5, index="Reverse")


def test_a_local_index(store: Store) -> None:
    put(store, "Edges", *INDEXED)
    query = Query("Edges", OF_A, index="ByTime", consistent=True)
    response = page(store, query)
    assert response.items == [item("A", "2", at=n(9)), item("A", "1", at=n(10))]
    assert response.consumed == reading(1.0, index="ByTime")


def test_numbers_order_in_an_index_as_numbers(store: Store) -> None:
    numbers = ["-10", "-9.5", "0", "0.5", "9", "10", "1E+20"]
    put(store, "Edges", *(item("A", str(each), at=n(number)) for each, number in enumerate(reversed(numbers))))
    found = page(store, Query("Edges", OF_A, index="ByTime")).items
    assert [float(each["at"]["N"]) for each in found] == [float(each) for each in numbers]
    between = SortCondition("at", "between", (n("-9.50"), n("9.0")))
    assert page(store, Query("Edges", OF_A, between, index="ByTime", forward=False)).items == found[1:5][::-1]


def test_a_local_index_fetches_what_it_lacks_from_the_table(store: Store) -> None:
    put(store, "Edges", *INDEXED)
    query = Query("Edges", OF_A, index="ByTime", projection=(attribute("other"),))
    response = page(store, query)
    assert response.items == [{"other": s("o")}, {"other": s("o")}]
    assert response.consumed == (Consumed("Edges", None, 1.0, 0.0), Consumed("Edges", "ByTime", 0.5, 0.0))


def test_a_local_index_fetches_whole_items(store: Store) -> None:
    put(store, "Edges", *INDEXED)
    response = page(store, Query("Edges", OF_A, index="ByTime", whole=True))
    assert [one.get("other") for one in response.items] == [s("o"), s("o")]
    assert response.consumed == (Consumed("Edges", None, 1.0, 0.0), Consumed("Edges", "ByTime", 0.5, 0.0))
    assert page(store, Query("Plain", OF_A, whole=True)).items == []


def test_a_global_index_has_no_whole_items(store: Store) -> None:
    query = Query("Edges", ("kind", s("k")), index="Kind", whole=True)
    words = "Select type ALL_ATTRIBUTES is not supported for global secondary index Kind"
    with refused(store, words):
        store.execute([query])
