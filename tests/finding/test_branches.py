"""Finding by `|`: every branch by its own index, each item once, in order and page by page, in the fewest requests."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Iterable
from enum import Enum
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import (
    AdjacencyList,
    Child,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidCursor,
    InvalidKey,
    InvalidValue,
    Keys,
    MaterializedGraph,
    Node,
    Projection,
    Stored,
    UnknownField,
    field,
)
from adjoin.fields import AnyOf, Comparison, Negation, Predicate
from adjoin.layouts.interface import Layout
from adjoin.plans.read import encode_cursor
from adjoin.plans.steps.branches import MAX_BRANCHES, branches_of, parts_of, simplified
from adjoin.plans.steps.predicates import holds
from tests.conftest import Open
from tests.growing import Clock, announce, index_of, on_clock
from tests.shares import examples


class Grade(Enum):
    LOW = 1
    HIGH = 12


class Person(Node):
    id: str
    city: Annotated[str, Indexed()] = ""
    age: Annotated[int | None, Indexed()] = None
    born: Annotated[dt.date | None, Indexed(), Stored("%d.%m.%Y")] = None
    place: Annotated[tuple[str, ...], Indexed()] = ()
    grade: Annotated[Grade, Indexed()] = Grade.LOW
    team: str | None = None
    rank: int | None = None
    note: str = ""


class Payment(Child[Person], key=("at",)):
    at: int
    kind: Annotated[str, Indexed()] = ""
    amount: Annotated[int, Indexed()] = 0


class Knows(Edge[Person, Person], order="since"):
    since: Annotated[int, Indexed()] = 0
    how: Annotated[str | None, Indexed()] = None


class Friend(Edge[Person, Person], symmetric=True):
    since: Annotated[int, Indexed()] = 0
    how: Annotated[str | None, Indexed()] = None


MODELS: list[Any] = [Person, Payment, Knows, Friend]
DECLARED = [Index("ByTeam", "team", "rank"), Index("ByRank", "RankPK", "rank", shards=2)]
PARTIAL = Index("Fields", "FieldPK", "FieldSK", projection=Projection("KEYS_ONLY"))
KEYS = {Person: Keys(indexes={"ByRank": "{shard}"})}
LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "materialized graph": MaterializedGraph(),
    "3 shards": MaterializedGraph(shards=3),
    "declared": AdjacencyList(indexes=DECLARED, keys=KEYS),
    "partial": AdjacencyList(indexed=PARTIAL),
}


def person(at: int) -> Person:
    return Person(
        id=str(at),
        city=("Porto", "Faro", "Braga")[at % 3],
        age=None if at % 7 == 0 else 10 * (at % 10),
        born=None if at % 5 == 0 else dt.date(1990, 1 + at % 12, 28 - at),
        place=(("PT", "Porto"), ("PT",), (), ("ES", "Vigo"))[at % 4],
        grade=Grade.HIGH if at % 6 == 0 else Grade.LOW,
        team=None if at % 4 == 1 else ("red", "blue")[at % 2],
        rank=None if at % 9 == 0 else at * 5 % 11,
        note=str(at % 2),
    )


PEOPLE = [person(at) for at in range(24)]
CITY, AGE, BORN, PLACE, GRADE, TEAM, RANK, NOTE = map(
    field, ("city", "age", "born", "place", "grade", "team", "rank", "note")
)


@functools.cache
def filled(name: str) -> Graph:
    graph = Graph(":memory:", MODELS, layout=LAYOUTS[name])
    graph.put_many(PEOPLE)
    return graph


def expected(predicate: Predicate) -> set[str]:
    """By the plainest reading of the condition, over the instances."""
    kind = filled("adjacency list")._schema.node(Person)
    return {each.id for each in PEOPLE if holds(kind, predicate, each)}


def paged(query: Any, limit: int) -> list[Any]:
    found: list[Any] = []
    token = None
    while True:
        page = query.page(limit=limit, after=token)
        assert len(page) == limit or page.next is None
        found += page
        token = page.next
        if token is None:
            return found


def check(query: Any, ids: Iterable[str], limit: int, *, has_ties: bool = False) -> list[Person]:
    """`has_ties` is whether results with equal sort keys have no order of their own."""
    whole = list(query)
    assert sorted(each.id for each in whole) == sorted(ids), "each comes, and once"
    assert paged(query, limit) == whole
    backwards = list(query.reverse())
    assert paged(query.reverse(), limit) == backwards
    if has_ties:
        assert sorted(each.id for each in backwards) == sorted(ids)
    else:
        assert backwards == whole[::-1]
    assert query.count() == len(whole)
    assert query.limit(limit).count() == len(whole[:limit])
    assert list(query.limit(limit)) == whole[:limit]
    assert query.first() == (whole[0] if whole else None)
    return whole


INDEXED = [
    CITY == "Porto",
    CITY.is_in(["Faro", "Braga"]),
    CITY.begins_with("P"),
    CITY >= "Faro",
    AGE > 60,
    AGE.between(20, 40),
    AGE.exists(),
    AGE == 30,
    dt.date(1990, 6, 1) > BORN,
    PLACE.begins_with(("PT",)),
    PLACE > ("PT",),
    PLACE == ["ES", "Vigo"],
    GRADE >= Grade.HIGH,
]
UNFILTERED = [dt.date(1990, 6, 1) > BORN, PLACE > ("PT",)]
DECLARED_ONLY = [(TEAM == "red") & RANK.exists(), (TEAM == "blue") & (RANK > 3), RANK > 7, RANK <= 2]
OTHERS = [NOTE == "1", CITY != "Porto", ~(AGE > 30), (NOTE == "0") | (AGE < 50), TEAM.exists()]


@st.composite
def branches(draw: st.DrawFn, indexed: list[Predicate], others: list[Predicate]) -> Predicate:
    part = draw(st.sampled_from(indexed))
    if not others or part in UNFILTERED:
        return part
    for other in draw(st.lists(st.sampled_from(others), max_size=2)):
        part = part & other
    return part


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=examples(9))
@given(data=st.data())
def test_a_find_by_branches_is_a_filter_of_everything(name: str, data: st.DataObject) -> None:
    indexed = [*INDEXED, *(DECLARED_ONLY if name == "declared" else [])]
    # DynamoDB filters by no such ranges, nor by what an index lacks.
    filters = [] if name == "partial" else [each for each in [*indexed, *OTHERS] if each not in UNFILTERED]
    predicate, *others = data.draw(st.lists(branches(indexed, filters), min_size=1, max_size=4))
    for other in others:
        predicate = predicate | other
    query = filled(name).find(Person, predicate)
    check(query, expected(predicate), data.draw(st.integers(1, 7)), has_ties=name == "declared")


def test_what_a_sparse_index_leaves_out_is_left_to_later_branches() -> None:
    graph = filled("declared")
    unranked = {each.id for each in PEOPLE if each.rank is None and each.team == "red" and (each.age or 0) > 60}
    assert unranked
    found = [each.id for each in graph.find(Person, (TEAM == "red") | (AGE > 60))]
    assert unranked <= {*found}
    assert sorted(found) == sorted(
        {each.id for each in PEOPLE if each.team == "red" and each.rank is not None}
        | {each.id for each in PEOPLE if (each.age or 0) > 60}
    )


@pytest.mark.parametrize(
    ("predicate", "order"),
    [
        ((TEAM == "red") | (RANK > 6), "rank"),
        ((TEAM == "red") | (TEAM == "blue") | (RANK == 1), "rank"),
        ((RANK == 4) | ((TEAM == "blue") & (NOTE == "1")) | ((TEAM == "red") & (RANK < 5)), "rank"),
        ((AGE == 30) | (AGE > 60) | (AGE < 20), "age"),
        ((CITY == "Porto") | (NOTE == "1"), "age"),
    ],
)
def test_branches_in_one_order_are_merged(predicate: Predicate, order: str) -> None:
    in_order = {each.id for each in PEOPLE if getattr(each, order) is not None}
    query = filled("declared").find(Person, predicate, order=order)
    found = check(query, expected(predicate) & in_order, 3, has_ties=order == "rank")
    backwards = [getattr(each, order) for each in query.reverse()]
    assert backwards == sorted(backwards, reverse=True)
    assert [getattr(each, order) for each in found] == sorted(getattr(each, order) for each in found)


REQUESTS: list[tuple[str, Predicate, dict[str, Any], int]] = [
    ("adjacency list", (CITY == "Porto") | (CITY == "Faro"), {}, 2),
    ("adjacency list", CITY.is_in(["Porto", "Faro", "Braga"]), {}, 3),
    ("adjacency list", (CITY == "Porto") | (CITY == "Porto"), {}, 1),
    ("adjacency list", (AGE < 20) | (AGE > 60), {}, 2),
    ("adjacency list", (AGE < 50) | (AGE > 40), {}, 1),
    ("adjacency list", CITY.begins_with("P") | (CITY == "Porto"), {}, 1),
    ("adjacency list", CITY.begins_with("P") | (CITY >= "Pa"), {}, 1),
    ("adjacency list", (CITY == "Porto") | (AGE > 60), {}, 2),
    ("adjacency list", (CITY == "Porto") & ((AGE > 60) | (NOTE == "1")), {}, 1),
    ("adjacency list", ((CITY == "Porto") | (AGE > 60)) & (NOTE == "1"), {}, 2),
    ("adjacency list", (CITY == "Porto") | ((CITY == "Porto") & (AGE > 60)), {}, 1),
    ("adjacency list", ~((CITY != "Porto") & ~(AGE == 60)), {"order": "age"}, 1),
    ("3 shards", (CITY == "Porto") | (AGE > 60), {}, 6),
    ("3 shards", (CITY == "Porto") | (CITY == "Faro"), {}, 6),
    ("declared", (TEAM == "red") | (TEAM == "blue"), {"order": "rank"}, 2),
    ("declared", (TEAM == "red") | (RANK == 1), {"order": "rank"}, 3),
    ("declared", (TEAM == "red") | (AGE > 60) | (CITY == "Faro"), {}, 3),
]


@pytest.mark.parametrize(("name", "predicate", "options", "requests"), REQUESTS)
def test_each_branch_is_one_search(name: str, predicate: Predicate, options: dict[str, Any], requests: int) -> None:
    graph = filled(name)
    query = graph.find(Person, predicate, **options)
    with graph.meter() as meter:
        found = list(query)
    assert (meter.requests, meter.rounds) == (requests, 1)
    with graph.meter() as meter:
        assert query.count() == len(found)
    assert (meter.requests, meter.rounds) == (requests, 1)
    assert len(graph.explain(query.page).requests) == requests


def test_a_page_reads_no_branch_that_it_does_not_need() -> None:
    graph = filled("adjacency list")
    query = graph.find(Person, (CITY == "Porto") | (AGE > 60))
    with graph.meter() as meter:
        page = query.page(limit=5)
    assert (meter.requests, len(page)) == (1, 5)
    with graph.meter() as meter:
        page = query.page(limit=5, after=page.next)
    assert (meter.requests, len(page)) == (2, 5), "3 in Porto, and 2 of the others"
    assert [each.city for each in page][:3] == ["Porto"] * 3


def test_edges_and_children(open_graph: Open) -> None:
    for layout in (AdjacencyList(), MaterializedGraph(), MaterializedGraph(shards=2)):
        graph = open_graph(MODELS, ":memory:", layout=layout)
        graph.put_many([Person(id=str(at)) for at in range(4)])
        for at in range(4):
            graph.put(Knows(source=str(at), target="0", since=at, how="work" if at % 2 else None))
            graph.put(Friend(source=str(at), target=str((at + 1) % 4), since=at, how="work" if at % 2 else None))
            graph.put(Payment(parent=str(at), at=at, kind="ab"[at % 2], amount=10 * at))
        either = (field("how") == "work") | (field("since") >= 2)
        for model in (Knows, Friend):
            query = graph.find(model, either)
            assert sorted(each.since for each in query) == [1, 2, 3]
            assert query.count() == 3
            assert sorted(edge.since for edge, _ in query.nodes()) == [1, 2, 3]
            assert len([*query.nodes("target").page(limit=2)]) == 2
        paid = graph.find(Payment, (field("kind") == "a") | (field("amount") > 20))
        assert sorted(each.at for each in paid) == [0, 2, 3]
        assert [each.at for each in paid.where(field("amount") < 25)] == [0, 2]
        graph.delete(Person, "3")
        assert sorted(each.since for each in graph.find(Friend, either)) == [1]
        assert sorted(each.at for each in paid) == [0, 2]


@pytest.mark.parametrize("layout", [AdjacencyList(), MaterializedGraph()])
def test_shards_that_come_while_branches_are_read(layout: Layout) -> None:
    clock = Clock()
    with on_clock(Graph(":memory:", MODELS, layout), clock) as graph:
        graph.put_many(PEOPLE)
        announce(graph, "PERSON#city", 3)
        clock.pass_grace()
        clock.pass_lease()
        graph.put_many(PEOPLE)
        query = graph.find(Person, (CITY == "Porto") | (AGE > 60))
        assert index_of(graph).book.is_stale("PERSON#city")
        assert check(query, expected((CITY == "Porto") | (AGE > 60)), 3)
        assert index_of(graph).book.may_move("PERSON#city")


def test_tenants_find_their_own() -> None:
    with Graph(":memory:", MODELS) as graph:
        graph.for_tenant("a").put_many(PEOPLE)
        assert graph.for_tenant("a").find(Person, (CITY == "Porto") | (AGE > 60)).count() == len(
            expected((CITY == "Porto") | (AGE > 60))
        )
        assert graph.for_tenant("b").find(Person, (CITY == "Porto") | (AGE > 60)).count() == 0


MANY: Predicate = AnyOf(tuple((field("age") > at) & (field("note") == str(at)) for at in range(21)))


@pytest.mark.parametrize(
    ("predicate", "options", "error", "words"),
    [
        ((CITY == "a") | (field("nmae") == "x"), {}, UnknownField, "nmae"),
        ((CITY == "a") | ((AGE > 3) & (field("ctiy") == "x")), {}, UnknownField, "did you mean 'city'"),
        ((CITY == "a") | (NOTE == "x"), {}, InvalidKey, "1 of 2 branches: Person.note is not indexed"),
        ((CITY == "a") | (AGE == "x"), {}, InvalidValue, "Person.age"),
        ((CITY == "a") | (AGE == 3), {"consistent": True}, InvalidValue, "no consistent reads of global indexes"),
        (
            MANY,
            {},
            InvalidValue,
            "more than 20 branches",
        ),
    ],
)
def test_what_is_refused(predicate: Predicate, options: dict[str, Any], error: type[Exception], words: str) -> None:
    graph = filled("adjacency list")
    with graph.meter() as meter, pytest.raises(error, match=words):
        graph.find(Person, predicate, **options)
    assert meter.requests == 0


def test_a_token_fits_its_own_query_only() -> None:
    graph = filled("adjacency list")
    query = graph.find(Person, (CITY == "Porto") | (AGE > 60))
    token = query.page(limit=9).next
    for other in (query.reverse(), query.where(NOTE == "1"), graph.find(Person, (CITY == "Porto") | (AGE > 61))):
        with pytest.raises(InvalidCursor):
            other.page(after=token)
    # Without a secret, anybody can make a token.
    for text in ("[]", "1", "{", '{"PK": 1}', '{"PK": {"S": "x"}}', '{"PK": {"S": 1}}'):
        for at in ("0", "1", "2", "-1", "x"):
            forged = encode_cursor({at: {"S": text}}, 0, query._identity, b"")
            with pytest.raises(InvalidCursor):
                query.page(after=forged)


# --- the branches of a condition, without an index ---------------------------------------------

LEAVES = st.builds(lambda name, at: field(name) == at, st.sampled_from("abc"), st.integers(0, 2))


@given(
    st.recursive(
        LEAVES,
        lambda inner: (
            st.builds(lambda one, two: one & two, inner, inner)
            | st.builds(lambda one, two: one | two, inner, inner)
            | inner.map(lambda one: ~one)
        ),
        max_leaves=8,
    ),
    st.fixed_dictionaries(dict.fromkeys("abc", st.integers(0, 2))),
)
def test_branches_say_what_the_condition_says(predicate: Predicate, values: dict[str, int]) -> None:
    whole = _holds(predicate, values)
    assert _holds(simplified(predicate), values) == whole
    found = branches_of(parts_of(simplified(predicate)))
    if found is not None:
        assert any(all(_holds(part, values) for part in branch) for branch in found) == whole
        assert len(found) <= MAX_BRANCHES
        assert not any(isinstance(part, AnyOf) for branch in found for part in branch)


def _holds(predicate: Any, values: dict[str, int]) -> bool:
    match predicate:
        case Comparison(name, _, operands):
            return values[name] in operands
        case Negation(inner):
            return not _holds(inner, values)
    combined = any if isinstance(predicate, AnyOf) else all
    return combined(_holds(each, values) for each in predicate.predicates)
