"""Summaries on edges, against plain Python over the same edges."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Annotated, Any

import pytest

from adjoin import Edge, Graph, Indexed, InvalidModel, MaterializedGraph, Node, field
from adjoin.aggregates import CommonNeighbours, Components, PageRank
from tests.shares import stride

LAYOUTS = {"list": None, "graph": MaterializedGraph(shards=2)}
PEOPLE = range(12)


class Person(Node):
    id: int
    rank: Annotated[Decimal, PageRank("Follows")] = Decimal(0)


class Follows(Edge[Person, Person]):
    note: Annotated[str, Indexed()] = ""
    shared: Annotated[int, CommonNeighbours("Follows"), Indexed()] = 0
    carried: Annotated[Decimal, PageRank("Follows")] = Decimal(0)
    circle: Annotated[int | None, Components("Follows")] = None


class Friend(Edge[Person, Person], symmetric=True):
    since: int = 0
    shared: Annotated[int, CommonNeighbours("Friend")] = 0
    also: Annotated[int, CommonNeighbours("Follows")] = 0


MODELS: list[type[Any]] = [Person, Follows, Friend]


@pytest.fixture
def g(request: pytest.FixtureRequest) -> Any:
    chance = Random(3)
    with Graph(":memory:", MODELS, LAYOUTS[request.param]) as graph:
        graph.put_many(Person(id=id) for id in PEOPLE)
        pairs = {tuple(chance.choices(PEOPLE, k=2)) for _ in range(30)} | {(1, 1), (2, 99), (99, 3)}
        graph.put_many(Follows(source=one, target=other) for one, other in sorted(pairs))
        graph.put_many(Friend(source=one, target=other) for one, other in {tuple(sorted(pair)) for pair in pairs})
        graph.rebuild(threads=1)
        yield graph


def neighbours(edges: list[Any]) -> dict[int, set[int]]:
    """Of those who exist, in both directions; nobody is a neighbour of himself."""
    found: dict[int, set[int]] = {id: set() for id in PEOPLE}
    for edge in edges:
        if edge.source != edge.target and {edge.source, edge.target} <= {*PEOPLE}:
            found[edge.source].add(edge.target)
            found[edge.target].add(edge.source)
    return found


def check(g: Graph) -> None:
    follows, friends = list(g.scan(Follows)), list(g.scan(Friend))
    by_follows, by_friends = neighbours(follows), neighbours(friends)
    ranks = {person.id: person.rank for person in g.scan(Person)}
    known = [edge for edge in follows if {edge.source, edge.target} <= {*PEOPLE}]
    for edge in known:
        assert edge.shared == len(by_follows[edge.source] & by_follows[edge.target])
        degree = sum(other.source == edge.source for other in known)
        assert edge.carried == (ranks[edge.source] / degree).quantize(Decimal("1e-15"), rounding="ROUND_DOWN")
        assert edge.circle == min(reached(by_follows, edge.source))
    for friend in [*friends, *(each for id in PEOPLE for each in g.out(Person.ref(id), Friend))]:
        if {friend.source, friend.target} <= {*PEOPLE}:
            assert friend.shared == len(by_friends[friend.source] & by_friends[friend.target])
            assert friend.also == len(by_follows[friend.source] & by_follows[friend.target])


def reached(by: dict[int, set[int]], start: int) -> set[int]:
    found, waiting = {start}, [start]
    while waiting:
        new = by[waiting.pop()] - found
        found |= new
        waiting += new
    return found


@pytest.mark.simulation
@pytest.mark.parametrize("g", [*LAYOUTS][:: stride(2)], indirect=True)
def test_edges_have_what_the_graph_says(g: Graph) -> None:
    check(g)
    assert [each for each in g.verify(threads=1).findings if each.kind != "dangling"] == []
    wanted = sorted(edge.shared for edge in g.scan(Follows))
    assert [edge.shared for edge in g.find(Follows, order="shared")] == wanted
    assert [edge.shared for edge in g.find(Follows, order="shared").reverse().limit(1)] == wanted[-1:]
    assert len(list(g.find(Follows, field("shared") == wanted[-1]))) == wanted.count(wanted[-1])


@pytest.mark.simulation
@pytest.mark.parametrize("g", [*LAYOUTS][:: -stride(2)], indirect=True)
def test_a_repair_corrects_them_after_changes(g: Graph) -> None:
    edge = next(iter(g.scan(Follows)))
    g.update(Follows, edge.source, edge.target, note="kept")
    g.put(Follows(source=edge.source, target=4, note="new"))
    g.put(Friend(source=0, target=5, since=2))
    g.disconnect(Friend, 1, 1)
    g.delete(Person, 7)
    g.put(Person(id=7))
    repaired = g.verify(repair=True, threads=1)
    findings = {each.name for each in repaired.findings if each.kind == "aggregate"}
    assert {"FOLLOWS.shared", "FOLLOWS.carried"} <= findings
    check(g)
    assert [each for each in g.verify(threads=1).findings if each.kind != "dangling"] == []
    found = g.edge(Follows, edge.source, edge.target)
    assert found is not None
    assert found.note == "kept"
    with pytest.raises(Exception, match=r"Follows\.shared is a managed field"):
        g.update(Follows, edge.source, edge.target, shared=3)


def test_a_summary_that_edges_cannot_have_is_refused() -> None:
    class City(Node):
        id: str

    class Road(Edge[City, City]):
        near: Annotated[list[str], CommonNeighbours("Road")] = []

    with pytest.raises(InvalidModel, match=r"Road\.near is how many neighbours .* share; make it an int"):
        Graph(":memory:", [City, Road])

    class Lives(Edge[Person, City]):
        shared: Annotated[int, CommonNeighbours("Follows")] = 0

    with pytest.raises(InvalidModel, match="both must join nodes of the same class"):
        Graph(":memory:", [Person, City, Follows, Lives])
