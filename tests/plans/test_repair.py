"""Repairs step by step: each looks again, and does nothing if what was found is so no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest

from adjoin import Edge, Graph, Indexed, InvalidValue, Node, TransactionCanceled, Unique, field
from adjoin.errors import AdjoinError
from adjoin.layouts.interface import REVISION, TWIN
from adjoin.plans.repair import (
    remove_dangling,
    remove_left_twin,
    remove_stray,
    restore_satellites,
    restore_twin,
    write_fields,
)
from adjoin.plans.steps.again import ATTEMPTS
from adjoin.requests import Delete, Get, ItemResponse, Put, TransactWrite


class Person(Node):
    id: str
    score: int | None = None
    email: Annotated[str | None, Unique()] = None
    city: Annotated[str | None, Indexed()] = None
    team: Annotated[str | None, Indexed()] = None


class Place(Node):
    id: str
    score: int | None = None


class Lives(Edge[Person, Place]):
    since: Annotated[int, Indexed()] = 0
    until: Annotated[int, Indexed()] = 0


class Knows(Edge[Person, Person], symmetric=True):
    since: int = 0


@pytest.fixture
def g() -> Iterator[Graph]:
    with Graph(":memory:", [Person, Place, Lives, Knows]) as graph:
        yield graph


def kind_of(g: Graph, model: type[Any]) -> Any:
    schema = g._layout.schema
    return schema.edge(model) if issubclass(model, Edge) else schema.node(model)


def performed(g: Graph, plan: Any, *meanwhile: Callable[[], object]) -> Any:
    """What comes of a plan if others do this before its transactions, one thing before each."""
    waiting = list(meanwhile)
    error: AdjoinError | None = None
    responses: Any = None
    try:
        while True:
            requests = plan.send(responses) if error is None else plan.throw(error)
            # What is written because of it must not be older than what was found.
            assert all(request.consistent for request in requests if isinstance(request, Get))
            if waiting and any(isinstance(request, TransactWrite) for request in requests):
                waiting.pop(0)()
            responses, error = None, None
            try:
                responses = g._store.execute(requests)
            except AdjoinError as failed:
                error = failed
    except StopIteration as ended:
        assert not waiting
        return ended.value


def item(g: Graph, key: Any) -> Any:
    (response,) = g._store.execute((Get("adjoin", key),))
    assert isinstance(response, ItemResponse)
    return response.item


def key(partition: str, sort: str = "#META") -> dict[str, Any]:
    return {"PK": {"S": partition}, "SK": {"S": sort}}


# --- fields ------------------------------------------------------------------------------------


def test_fields_are_written_on_nodes_that_are_there(g: Graph) -> None:
    g.put_many([Place(id="a"), Place(id="b", score=9), Person(id="a", score=1), Person(id="c", city="x")])
    place, person = kind_of(g, Place), kind_of(g, Person)
    one, none = {"N": "1"}, None
    assert performed(g, write_fields(g._layout, [])) == 0
    assert performed(g, write_fields(g._layout, [(place, "a", "score", one), (place, "b", "score", none)])) == 2
    some = [(place, "a", "score", {"N": "2"}), (place, "gone", "score", one), (person, "a", "score", {"N": "3"})]
    some += [(person, "gone", "score", one), (person, "c", "city", {"S": "y"}), (person, "c", "team", {"S": "z"})]
    assert performed(g, write_fields(g._layout, some)) == 4
    assert g.get_many(Place, ["a", "b", "gone"]) == [Place(id="a", score=2), Place(id="b"), None]
    assert g.get_many(Person, ["a", "c", "gone"]) == [Person(id="a", score=3), Person(id="c", city="y", team="z"), None]
    assert [found.id for found in g.find(Person, field("city") == "y")] == ["c"]
    assert [found.id for found in g.find(Person, field("team") == "z")] == ["c"]
    assert g.find(Person, field("city") == "x").count() == 0


# --- edges -------------------------------------------------------------------------------------

LIVES = key("PERSON#a", "LIVES#PLACE#x")


def dangling(g: Graph, *meanwhile: Callable[[], object]) -> Any:
    return performed(g, remove_dangling(g._layout, kind_of(g, Lives), "a", "x", LIVES), *meanwhile)


def test_an_edge_goes_if_an_end_is_missing(g: Graph) -> None:
    assert dangling(g) == []
    g.put_many([Person(id="a"), Place(id="x"), Lives(source="a", target="x", since=5, until=7)])
    assert dangling(g) == []
    for end in (key("PLACE#x"), key("PERSON#a")):
        before = item(g, end)
        g.put(Lives(source="a", target="x", since=5, until=7))
        g._store.execute((Delete("adjoin", end),))
        assert dangling(g) == [LIVES]
        assert item(g, LIVES) is None
        assert g.find(Lives, field("until") == 7).count() == 0, "and its copies go with it"
        g._store.execute((Put("adjoin", before),))


def test_an_edge_stays_if_its_end_comes_meanwhile(g: Graph) -> None:
    g.put_many([Person(id="a"), Lives(source="a", target="x")])
    assert dangling(g, lambda: g.put(Place(id="x"))) == []
    assert item(g, LIVES) is not None


def test_both_halves_of_a_symmetric_edge_go(g: Graph) -> None:
    g.put_many([Person(id="a"), Knows(source="a", target="b")])
    halves = [key("PERSON#a", "KNOWS#PERSON#b"), key("PERSON#b", "KNOWS#PERSON#a")]
    plan = remove_dangling(g._layout, kind_of(g, Knows), "a", "b", halves[0])
    assert performed(g, plan) == halves
    assert [item(g, half) for half in halves] == [None, None]


def halved(g: Graph) -> list[dict[str, Any]]:
    """A symmetric edge of which only the first half is there; the keys of both."""
    g.put(Knows(source="a", target="b", since=3))
    halves = [key("PERSON#a", "KNOWS#PERSON#b"), key("PERSON#b", "KNOWS#PERSON#a")]
    g._store.execute((Delete("adjoin", halves[1]),))
    return halves


def test_the_other_half_is_written(g: Graph) -> None:
    knows = kind_of(g, Knows)
    halves = halved(g)
    assert performed(g, restore_twin(g._layout, knows, halves[1])) == []
    assert performed(g, restore_twin(g._layout, knows, halves[0])) == halves
    assert [edge.since for edge in g.out("b", Knows)] == [3]
    assert performed(g, restore_twin(g._layout, knows, halves[0])) == []
    g.put(Knows(source="c", target="c"))
    assert performed(g, restore_twin(g._layout, knows, key("PERSON#c", "KNOWS#PERSON#c"))) == []


def test_the_other_half_is_that_of_what_is_there_by_then(g: Graph) -> None:
    knows = kind_of(g, Knows)
    halves = halved(g)

    def change(since: int) -> None:
        g._store.execute((Put("adjoin", item(g, halves[0]) | {"since": {"N": str(since)}}),))

    assert performed(g, restore_twin(g._layout, knows, halves[0]), lambda: change(4)) == halves
    assert item(g, halves[1])["since"] == {"N": "4"}
    halves = halved(g)
    others = [lambda since=since: change(since) for since in range(ATTEMPTS)]
    with pytest.raises(TransactionCanceled):
        performed(g, restore_twin(g._layout, knows, halves[0]), *others)
    assert performed(g, restore_twin(g._layout, knows, halves[0]), *others[:-1]) == halves


def test_a_field_of_an_edge_is_written_in_every_index(g: Graph) -> None:
    g.put_many([Person(id="a"), Place(id="x"), Lives(source="a", target="x", since=1, until=2)])
    lives = kind_of(g, Lives)
    revision = item(g, LIVES)[REVISION]
    assert performed(g, write_fields(g._layout, [(lives, LIVES, "until", {"N": "5"})])) == 1
    wanted = Lives(source="a", target="x", since=1, until=5)
    for found in (g.out("a", Lives), g.find(Lives, field("since") == 1), g.find(Lives, field("until") == 5)):
        assert list(found) == [wanted]
    assert g.find(Lives, field("until") == 2).count() == 0
    assert item(g, LIVES)[REVISION] != revision
    change = [(lives, LIVES, "until", {"N": "7"})]
    # Who comes first is not overwritten.
    assert performed(g, write_fields(g._layout, change), lambda: g.update(Lives, "a", "x", since=9)) == 1
    assert [*g.find(Lives, field("until") == 7)] == [Lives(source="a", target="x", since=9, until=7)]
    g.disconnect(Lives, "a", "x")
    assert performed(g, write_fields(g._layout, change)) == 0


@pytest.mark.parametrize("is_marked", [True, False])
@pytest.mark.parametrize("is_left", [True, False])
def test_what_a_migration_added_goes_if_the_other_half_is_gone(g: Graph, is_marked: bool, is_left: bool) -> None:
    knows = kind_of(g, Knows)
    g.put(Knows(source="a", target="b", since=3))
    one, other = key("PERSON#a", "KNOWS#PERSON#b"), key("PERSON#b", "KNOWS#PERSON#a")
    if is_marked:
        g._store.execute((Put("adjoin", item(g, other) | {TWIN: {"BOOL": True}}),))
    if is_left:
        g._store.execute((Delete("adjoin", one),))
    performed(g, remove_left_twin(g._layout, knows, other))
    assert (item(g, other) is None) == (is_marked and is_left)
    performed(g, remove_left_twin(g._layout, knows, key("PERSON#x", "KNOWS#PERSON#y")))


def test_what_a_migration_added_stays_if_the_other_half_comes_back_meanwhile(g: Graph) -> None:
    knows = kind_of(g, Knows)
    g.put(Knows(source="a", target="b", since=3))
    one, other = key("PERSON#a", "KNOWS#PERSON#b"), key("PERSON#b", "KNOWS#PERSON#a")
    half = item(g, one)
    g._store.execute((Put("adjoin", item(g, other) | {TWIN: {"BOOL": True}}), Delete("adjoin", one)))
    performed(g, remove_left_twin(g._layout, knows, other), lambda: g._store.execute((Put("adjoin", half),)))
    assert item(g, other) is not None


# --- satellites --------------------------------------------------------------------------------


def test_what_stands_beside_a_node_is_written_anew(g: Graph) -> None:
    person, node = kind_of(g, Person), key("PERSON#a")
    assert performed(g, restore_satellites(g._layout, person, node)) is None
    g.put(Person(id="a", email="e", city="x", team="t"))
    beside = [each.key for each in g._layout.satellites_beside(person, item(g, node))]
    assert len(beside) == 2
    g._store.execute(tuple(Delete("adjoin", each) for each in beside))
    assert g.get(Person, email="e") is None

    def move() -> None:
        g._store.execute((Put("adjoin", item(g, node) | {"team": {"S": "u"}, "adjoin:revision": {"S": "other"}}),))

    performed(g, restore_satellites(g._layout, person, node), move)
    assert [found.id for found in g.find(Person, field("team") == "u")] == ["a"]
    assert g.find(Person, field("team") == "t").count() == 0
    found = g.get(Person, email="e")
    assert found is not None
    assert found.id == "a"


def test_a_node_that_others_wrote_is_left_to_who_writes_it_meanwhile(g: Graph) -> None:
    person, node = kind_of(g, Person), key("PERSON#b")
    # It has no revision, because no program of ours wrote it.
    g._store.execute((Put("adjoin", node | {"city": {"S": "x"}, "team": {"S": "t"}}),))
    performed(g, restore_satellites(g._layout, person, node), lambda: g.put(Person(id="b", city="x", team="u")))
    assert [g.find(Person, field("team") == team).count() for team in ("t", "u")] == [0, 1]


def test_who_is_always_outrun_says_so(g: Graph) -> None:
    person, node = kind_of(g, Person), key("PERSON#a")
    g.put(Person(id="a", city="x", team="t"))
    others = [lambda: g.update(Person, "a", score=1)] * ATTEMPTS
    with pytest.raises(TransactionCanceled):
        performed(g, restore_satellites(g._layout, person, node), *others)
    performed(g, restore_satellites(g._layout, person, node), *others[:-1])


def test_a_claim_of_nobody_is_taken_over_and_one_of_somebody_is_not(g: Graph) -> None:
    person = kind_of(g, Person)
    g.put_many([Person(id="a", email="e"), Person(id="b", email="f")])
    claim = g._layout.claim_key(person, "email", "e")
    g._store.execute((Put("adjoin", {**claim, "adjoin:owner": {"S": "PERSON#gone"}}),))
    performed(g, restore_satellites(g._layout, person, key("PERSON#a")))
    assert item(g, claim)["adjoin:owner"] == {"S": "PERSON#a"}
    g._store.execute((Put("adjoin", item(g, key("PERSON#b")) | {"email": {"S": "e"}}),))
    refused = "another Person has the same unique value as 'PERSON#b'; change one of them"
    with pytest.raises(InvalidValue, match=refused):
        performed(g, restore_satellites(g._layout, person, key("PERSON#b")))
    assert item(g, claim)["adjoin:owner"] == {"S": "PERSON#a"}


def test_what_its_owner_does_not_have_is_removed(g: Graph) -> None:
    person = kind_of(g, Person)
    g.put(Person(id="a", email="e"))
    mine, stray = (g._layout.claim_key(person, "email", value) for value in ("e", "f"))

    def strays(satellite: Any, *meanwhile: Callable[[], object]) -> Any:
        performed(g, remove_stray(g._layout, person, satellite, key("PERSON#a")), *meanwhile)
        return item(g, satellite)

    assert strays(mine) is not None
    g._store.execute((Put("adjoin", {**stray, "adjoin:owner": {"S": "PERSON#a"}}),))
    assert strays(stray) is None
    # It is another one's by now.
    g._store.execute((Put("adjoin", {**stray, "adjoin:owner": {"S": "PERSON#b"}}),))
    assert strays(stray) is not None
    # Its owner comes to have it meanwhile.
    g._store.execute((Put("adjoin", {**stray, "adjoin:owner": {"S": "PERSON#a"}}),))
    assert strays(stray, lambda: g.put(Person(id="a", email="f"))) is not None
    g.delete(Person, "a")
    assert item(g, stray) is None
    g._store.execute((Put("adjoin", {**stray, "adjoin:owner": {"S": "PERSON#a"}}),))
    assert strays(stray) is None
