"""The contract for global indexes whose partition key or sort key has several attributes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adjoin.errors import InvalidRequest
from adjoin.expressions import Compare, Remove, Set, Value, attribute
from adjoin.requests import (
    BatchWrite,
    Consumed,
    CreateTable,
    Delete,
    DescribeTable,
    ItemResponse,
    Put,
    Query,
    Scan,
    SortCondition,
    SortOperator,
    TableResponse,
    Update,
    UpdateTable,
    WriteResponse,
)
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition
from adjoin.values import AttributeValue, Item
from tests.stores.examples import PLAIN, b, n, one, page, put, refused, s, stored, writing

TOURNAMENT, REGION = KeyAttribute("tournament"), KeyAttribute("region")
ROUND, BRACKET, ID = KeyAttribute("round", "N"), KeyAttribute("bracket"), KeyAttribute("id")
PLAYER, AT, RAW = KeyAttribute("player"), KeyAttribute("at", "N"), KeyAttribute("raw", "B")

BY_ROUND = IndexDefinition.over("ByRound", (TOURNAMENT, REGION), (ROUND, BRACKET, ID))
BY_PLAYER = IndexDefinition.over("ByPlayer", (PLAYER,), (AT, RAW), Projection("KEYS_ONLY"))
BY_PLACE = IndexDefinition.over("ByPlace", (TOURNAMENT, REGION), (), Projection("INCLUDE", ("score",)))
MATCHES = TableDefinition("Matches", ID, None, (BY_ROUND, BY_PLAYER, BY_PLACE))


def match(
    name: str, number: int | str, bracket: str, tournament: str = "W", region: str = "E", **more: AttributeValue
) -> Item:
    return {
        "id": s(name),
        "tournament": s(tournament),
        "region": s(region),
        "round": n(number),
        "bracket": s(bracket),
        **more,
    }


# In the order of the index: numbers as numbers, then text, then the key of the table.
PLAYED = [
    match("m6", -1, "lower"),
    match("m1", 2, "final"),
    match("m2", 2, "lower"),
    match("m3", 2, "lower"),
    match("m5", 2, "upper"),
    match("m4", 10, "final"),
]
ELSEWHERE = [match("x1", 2, "lower", region="N"), match("x2", 2, "lower", tournament="S")]
INCOMPLETE: list[Item] = [
    {name: value for name, value in match(f"without {left}", 2, "lower").items() if name != left}
    for left in ("tournament", "region", "round", "bracket")
]


@pytest.fixture
def matches(store: Store) -> Store:
    store.execute([CreateTable(MATCHES)])
    put(store, "Matches", *reversed(PLAYED), *ELSEWHERE, *INCOMPLETE)
    return store


def of_round(*equal: tuple[str, AttributeValue], sort: SortCondition | None = None) -> Query:
    """A query of one tournament in one region."""
    return Query("Matches", ("tournament", s("W")), sort, index="ByRound", equal=(("region", s("E")), *equal))


def where(name: str, operator: SortOperator, *operands: AttributeValue) -> SortCondition:
    return SortCondition(name, operator, operands)


def ids(store: Store, query: Query | Scan) -> list[str]:
    return [each["id"]["S"] for each in page(store, query).items]


def paged(store: Store, query: Query, limit: int) -> list[str]:
    found: list[str] = []
    start = None
    while True:
        response = page(store, replace(query, limit=limit, start=start))
        assert len(response.items) <= limit
        found += [each["id"]["S"] for each in response.items]
        start = response.last
        if start is None:
            return found


# --- definitions -------------------------------------------------------------------------------


def test_the_keys_are_described_in_their_order(matches: Store) -> None:
    described = one(matches, DescribeTable("Matches"), TableResponse).definition
    found = {index.name: index for index in described.indexes}
    assert {name: (index.partitions, index.sorts) for name, index in found.items()} == {
        "ByRound": ((TOURNAMENT, REGION), (ROUND, BRACKET, ID)),
        "ByPlayer": ((PLAYER,), (AT, RAW)),
        "ByPlace": ((TOURNAMENT, REGION), ()),
    }


def test_the_longest_keys(store: Store) -> None:
    partitions = [KeyAttribute(f"h{each}") for each in range(4)]
    sorts = [KeyAttribute(f"r{each}", kind) for each, kind in enumerate(("S", "N", "B", "S"))]  # type: ignore[arg-type]
    store.execute([CreateTable(TableDefinition("Long", ID, None, (IndexDefinition.over("Idx", partitions, sorts),)))])
    held = {
        **{f"h{each}": s(f"v{each}") for each in range(4)},
        "r0": s("a"),
        "r1": n("1.50"),
        "r2": b(b"\xff"),
        "r3": s("z"),
    }
    put(store, "Long", {"id": s("1"), **held}, {"id": s("2"), **held, "r3": s("y")})
    equal = tuple((name, value) for name, value in held.items() if name not in ("h0", "r3"))
    query = Query("Long", ("h0", s("v0")), index="Idx", equal=equal)
    assert ids(store, query) == ["2", "1"]
    assert ids(store, replace(query, sort=where("r3", "=", s("z")))) == ["1"]
    assert ids(store, replace(query, sort=where("r3", "<", s("z")), forward=False)) == ["2"]


def test_an_index_comes_with_the_items_that_are_there(store: Store) -> None:
    other: Item = {**match("number", 1, "lower"), "region": n(1)}
    put_table = TableDefinition("Matches", ID)
    store.execute([CreateTable(put_table)])
    put(store, "Matches", *PLAYED, *ELSEWHERE, *INCOMPLETE, other)
    response = one(store, UpdateTable("Matches", add_indexes=(BY_ROUND,)), TableResponse)
    assert response.definition.indexes == (BY_ROUND,)
    assert ids(store, of_round()) == ["m6", "m1", "m2", "m3", "m5", "m4"]
    put(store, "Matches", match("m7", 2, "late"))
    assert ids(store, of_round(sort=where("round", "=", n(2)))) == ["m1", "m7", "m2", "m3", "m5"]
    store.execute([UpdateTable("Matches", remove_indexes=("ByRound",))])
    assert stored(store, "Matches", {"id": s("m7")}) == match("m7", 2, "late")
    assert stored(store, "Matches", {"id": s("number")}) == other


# --- queries -----------------------------------------------------------------------------------


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7])
def test_a_partition_of_several_keys_in_order(matches: Store, limit: int, forward: bool) -> None:
    expected = ["m6", "m1", "m2", "m3", "m5", "m4"][:: 1 if forward else -1]
    query = replace(of_round(), forward=forward)
    assert page(matches, query).items == (PLAYED if forward else PLAYED[::-1])
    assert paged(matches, query, limit) == expected


CONDITIONS: list[tuple[Query, str]] = [
    (of_round(sort=where("round", "=", n(2))), "m1 m2 m3 m5"),
    (of_round(("round", n("2.0"))), "m1 m2 m3 m5"),
    (of_round(sort=where("round", "<", n(2))), "m6"),
    (of_round(sort=where("round", "<=", n(2))), "m6 m1 m2 m3 m5"),
    (of_round(sort=where("round", ">", n(2))), "m4"),
    (of_round(sort=where("round", ">=", n(2))), "m1 m2 m3 m5 m4"),
    (of_round(sort=where("round", "between", n(-1), n(9))), "m6 m1 m2 m3 m5"),
    (of_round(("round", n(2)), sort=where("bracket", "=", s("lower"))), "m2 m3"),
    (of_round(("round", n(2)), sort=where("bracket", "begins_with", s("f"))), "m1"),
    (of_round(("round", n(2)), sort=where("bracket", "<", s("lower"))), "m1"),
    (of_round(("round", n(2)), sort=where("bracket", "<=", s("lower"))), "m1 m2 m3"),
    (of_round(("round", n(2)), sort=where("bracket", ">", s("lower"))), "m5"),
    (of_round(("round", n(2)), sort=where("bracket", "between", s("lower"), s("upper"))), "m2 m3 m5"),
    (of_round(("round", n(2)), ("bracket", s("lower"))), "m2 m3"),
    (of_round(("bracket", s("lower")), ("round", n(2))), "m2 m3"),
    (of_round(("round", n(2)), ("bracket", s("lower")), sort=where("id", ">", s("m2"))), "m3"),
    (of_round(("round", n(2)), ("bracket", s("lower")), sort=where("id", "begins_with", s("m"))), "m2 m3"),
    (of_round(("round", n(2)), ("bracket", s("lower")), sort=where("id", "=", s("m3"))), "m3"),
    (of_round(("round", n(3))), ""),
    (Query("Matches", ("region", s("E")), index="ByRound", equal=(("tournament", s("S")),)), "x2"),
]


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize(("query", "expected"), CONDITIONS)
def test_conditions_on_the_first_sort_keys(matches: Store, query: Query, expected: str, forward: bool) -> None:
    names = expected.split()[:: 1 if forward else -1]
    query = replace(query, forward=forward)
    assert ids(matches, query) == names
    for limit in (1, 2):
        assert paged(matches, query, limit) == names


def test_a_last_key_has_all_keys_of_the_index_and_of_the_table(matches: Store) -> None:
    put(matches, "Matches", {"id": s("p1"), "player": s("ann"), "at": n(1), "raw": b(b"\0"), "more": s("x")})
    response = page(matches, replace(of_round(), limit=2))
    assert response.last == match("m1", 2, "final")
    response = page(matches, Query("Matches", ("player", s("ann")), index="ByPlayer", limit=1))
    assert response.last == {"id": s("p1"), "player": s("ann"), "at": n(1), "raw": b(b"\0")}
    assert response.items == [response.last], "the index has only keys"


def test_binary_and_numbers_in_one_sort_key(matches: Store) -> None:
    for name, at, raw in (("1", 5, b"\xff"), ("2", 5, b"\0"), ("3", -5, b"\x01"), ("4", 50, b"")):
        held = {"raw": b(raw)} if raw else {}
        put(matches, "Matches", {"id": s(name), "player": s("bob"), "at": n(at), **held})
    of_bob = Query("Matches", ("player", s("bob")), index="ByPlayer")
    assert ids(matches, of_bob) == ["3", "2", "1"]
    assert ids(matches, replace(of_bob, sort=where("at", ">", n(-5)), forward=False)) == ["1", "2"]
    assert ids(matches, replace(of_bob, equal=(("at", n(5)),), sort=where("raw", ">", b(b"\0")))) == ["1"]


def test_a_partition_of_several_attributes_without_a_sort_key(matches: Store) -> None:
    query = Query("Matches", ("tournament", s("W")), index="ByPlace", equal=(("region", s("E")),))
    expected = {each["id"]["S"] for each in (*PLAYED, INCOMPLETE[2], INCOMPLETE[3])}
    assert set(ids(matches, query)) == expected
    assert sorted(paged(matches, query, 3)) == sorted(expected)
    put(matches, "Matches", match("m1", 2, "final", score=s("3:1"), other=s("x")))
    (found,) = [each for each in page(matches, query).items if each["id"] == s("m1")]
    assert found == {"id": s("m1"), "tournament": s("W"), "region": s("E"), "score": s("3:1")}


def test_a_filter_and_a_count_of_several_keys(matches: Store) -> None:
    put(matches, "Matches", match("m1", 2, "final", score=s("3:1")))
    query = replace(of_round(), filter=Compare("=", attribute("score"), Value(s("3:1"))))
    assert ids(matches, query) == ["m1"]
    response = page(matches, replace(query, count_only=True))
    assert (response.count, response.scanned) == (1, 6)


REJECTED: list[tuple[str, Query, str]] = [
    (
        "one of two partition keys",
        Query("Matches", ("tournament", s("W")), index="ByRound"),
        "HASH key attributes region must have equality",
    ),
    (
        "no partition key",
        Query("Matches", ("round", n(1)), index="ByRound"),
        "HASH key attributes tournament, region must",
    ),
    (
        "range of a partition key",
        Query("Matches", ("tournament", s("W")), where("region", ">", s("A")), index="ByRound"),
        "HASH key attributes region must have equality",
    ),
    (
        "the first sort key left out",
        of_round(sort=where("bracket", "=", s("lower"))),
        "RANGE key attributes round must have equality conditions specified in the query because a condition is"
        " present on key attribute bracket",
    ),
    (
        "a gap",
        of_round(("round", n(2)), sort=where("id", "=", s("m1"))),
        "RANGE key attributes bracket must have equality conditions specified in the query because a condition is"
        " present on key attribute id",
    ),
    (
        "a range before the last",
        of_round(("bracket", s("lower")), sort=where("round", ">", n(1))),
        "RANGE key attributes round must have equality conditions specified in the query because a condition is"
        " present on key attribute bracket",
    ),
    (
        "type of a partition key",
        Query("Matches", ("tournament", s("W")), index="ByRound", equal=(("region", n(1)),)),
        "Condition parameter type does not match schema type",
    ),
    (
        "type of a sort key",
        of_round(("round", s("2"))),
        "Condition parameter type does not match schema type",
    ),
    (
        "type of a later sort key",
        of_round(("round", n(2)), sort=where("bracket", "=", n(1))),
        "Condition parameter type does not match schema type",
    ),
    (
        "bounds the wrong way round",
        of_round(("round", n(2)), sort=where("bracket", "between", s("b"), s("a"))),
        "The BETWEEN operator requires upper bound to be greater than or equal to lower bound",
    ),
    (
        "an attribute twice",
        of_round(("region", s("E"))),
        "KeyConditionExpressions must only contain one condition per key",
    ),
    (
        "filter on a later sort key",
        replace(of_round(), filter=Compare("=", attribute("bracket"), Value(s("x")))),
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: bracket",
    ),
    (
        "filter on a later partition key",
        replace(of_round(), filter=Compare("=", attribute("region"), Value(s("x")))),
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: region",
    ),
    (
        "start without a key",
        replace(of_round(), start={name: value for name, value in PLAYED[0].items() if name != "region"}),
        "The provided starting key is invalid",
    ),
    (
        "start in another partition",
        replace(of_round(), start=ELSEWHERE[0]),
        "The provided starting key is outside query boundaries based on provided conditions",
    ),
    (
        "start outside an equality",
        replace(of_round(("round", n(2)), sort=where("bracket", ">", s("a"))), start=PLAYED[0]),
        "The provided starting key does not match the range key predicate",
    ),
    (
        "start outside the range",
        replace(of_round(("round", n(2)), sort=where("bracket", ">", s("lower"))), start=PLAYED[1]),
        "The provided starting key does not match the range key predicate",
    ),
    (
        "three conditions on a table",
        Query("Edges", ("PK", s("A")), where("SK", "=", s("1")), equal=(("kind", s("k")),)),
        r"The number of query conditions \(3\) exceeds the number of key attributes defined in the schema \(2\)",
    ),
]


@pytest.mark.parametrize(("query", "words"), [pytest.param(query, words, id=name) for name, query, words in REJECTED])
def test_rejected_queries_of_several_keys(matches: Store, query: Query, words: str) -> None:
    with refused(matches, words):
        matches.execute([query])


def test_a_condition_without_an_operand(embedded: SQLiteStore) -> None:
    embedded.execute([CreateTable(MATCHES), CreateTable(PLAIN)])
    for query in (
        Query("Matches", ("tournament", s("W")), where("region", "="), index="ByRound"),
        of_round(sort=where("round", "=")),
        Query("Plain", ("x", s("W")), where("PK", "="), equal=(("SK", s("a")),)),
    ):
        with pytest.raises(InvalidRequest):
            embedded.execute([query])


def test_equalities_of_keys_with_one_attribute(store: Store) -> None:
    """The two conditions on a partition key and a sort key may come in any order."""
    found: Item = {"PK": s("A"), "SK": s("1")}
    put(store, "Plain", found, {"PK": s("A"), "SK": s("2")})
    assert page(store, Query("Plain", ("PK", s("A")), equal=(("SK", s("1")),))).items == [found]
    assert page(store, Query("Plain", ("SK", s("1")), equal=(("PK", s("A")),))).items == [found]


# --- scans -------------------------------------------------------------------------------------


@pytest.mark.parametrize("total", [1, 2, 5])
def test_segments_of_an_index_are_together_everything(matches: Store, total: int) -> None:
    expected = {each["id"]["S"] for each in (*PLAYED, *ELSEWHERE)}
    assert set(ids(matches, Scan("Matches", index="ByRound"))) == expected
    found: list[str] = []
    for segment in range(total):
        start = None
        while True:
            scan = Scan("Matches", index="ByRound", segment=(segment, total), limit=1, start=start)
            response = page(matches, scan)
            found += [each["id"]["S"] for each in response.items]
            start = response.last
            if start is None:
                break
    assert sorted(found) == sorted(expected)


# --- writes ------------------------------------------------------------------------------------


def changed(store: Store, name: str, *actions: Set | Remove) -> tuple[Consumed, ...]:
    return one(store, Update("Matches", {"id": s(name)}, actions), ItemResponse).consumed


@pytest.mark.parametrize("name", ["tournament", "region", "round", "bracket"])
def test_an_item_leaves_an_index_with_any_of_its_keys(matches: Store, name: str) -> None:
    value = PLAYED[1][name]
    entries = {"ByRound": 1.0, **({"ByPlace": 1.0} if name in ("tournament", "region") else {})}
    assert changed(matches, "m1", Remove(attribute(name))) == writing("Matches", table=1.0, **entries)
    assert ids(matches, of_round()) == ["m6", "m2", "m3", "m5", "m4"]
    assert changed(matches, "m1", Set(attribute(name), Value(value))) == writing("Matches", table=1.0, **entries)
    assert ids(matches, of_round()) == ["m6", "m1", "m2", "m3", "m5", "m4"]


def test_an_item_moves_if_any_of_its_keys_changes(matches: Store) -> None:
    assert changed(matches, "m1", Set(attribute("bracket"), Value(s("zero")))) == writing(
        "Matches", table=1.0, ByRound=2.0
    )
    assert ids(matches, of_round()) == ["m6", "m2", "m3", "m5", "m1", "m4"]
    assert changed(matches, "m1", Set(attribute("region"), Value(s("N")))) == writing(
        "Matches", table=1.0, ByRound=2.0, ByPlace=2.0
    )
    assert ids(matches, of_round()) == ["m6", "m2", "m3", "m5", "m4"]
    elsewhere = Query("Matches", ("tournament", s("W")), index="ByRound", equal=(("region", s("N")),))
    assert ids(matches, elsewhere) == ["x1", "m1"]
    assert changed(matches, "m1", Set(attribute("score"), Value(s("3:1")))) == writing(
        "Matches", table=1.0, ByRound=1.0, ByPlace=1.0
    )


def test_batches_and_deletes_change_an_index_of_several_keys(matches: Store) -> None:
    batch = BatchWrite((Put("Matches", match("m7", 0, "x")), Delete("Matches", {"id": s("m1")})))
    assert one(matches, batch, WriteResponse).consumed == writing("Matches", table=2.0, ByRound=2.0, ByPlace=2.0)
    assert ids(matches, of_round()) == ["m6", "m7", "m2", "m3", "m5", "m4"]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("region", n(1), "Type mismatch for Index Key region Expected: S Actual: N IndexName: By"),
        ("bracket", n(1), "Type mismatch for Index Key bracket Expected: S Actual: N IndexName: ByRound"),
        ("raw", s("a"), "Type mismatch for Index Key raw Expected: B Actual: S IndexName: ByPlayer"),
        ("bracket", s(""), "cannot contain an empty string value. IndexName: ByRound, IndexKey: bracket"),
        ("region", s("x" * 2049), "Size of hashkey has exceeded the maximum size limit of2048 bytes"),
        ("bracket", s("x" * 1025), "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"),
    ],
)
def test_values_that_no_key_can_have(matches: Store, name: str, value: AttributeValue, words: str) -> None:
    with refused(matches, words, InvalidRequest):
        put(matches, "Matches", {**match("bad", 1, "lower"), name: value})


# --- pages and units ---------------------------------------------------------------------------


def test_a_page_of_several_keys_ends_after_one_megabyte(matches: Store) -> None:
    big = [match(f"b{each}", 1, f"{each}", "big", "E", more=s("x" * 300_000)) for each in range(5)]
    put(matches, "Matches", *big)
    query = Query("Matches", ("tournament", s("big")), index="ByRound", equal=(("region", s("E")), ("round", n(1))))
    response = page(matches, query)
    assert [each["id"]["S"] for each in response.items] == ["b0", "b1", "b2", "b3"]
    assert response.last == match("b3", 1, "3", "big", "E")
    assert response.consumed == (Consumed("Matches", "ByRound", 147.0, 0.0),)
    rest = page(matches, replace(query, start=response.last))
    assert ([each["id"]["S"] for each in rest.items], rest.last) == (["b4"], None)
