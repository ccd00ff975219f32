"""Finding by the indexes that every layout has: the edges at a node from either end, and in their order."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from adjoin import (
    AdjacencyList,
    Edge,
    Graph,
    Index,
    InvalidKey,
    Keys,
    MaterializedGraph,
    Node,
    Projection,
    field,
)
from adjoin.layouts.interface import Layout


class Student(Node):
    id: str


class Course(Node):
    id: str


class Club(Node):
    id: int


class Visit(Edge[Student, Course], order="day"):
    day: int
    grade: str = "A"


class Joined(Edge[Student, Course | Club]):
    since: int = 0


class Friend(Edge[Student, Student], symmetric=True, order="since"):
    since: int


MODELS: list[Any] = [Student, Course, Club, Visit, Joined, Friend]


def filled(layout: Layout | None = None) -> Graph:
    g = Graph(":memory:", MODELS, layout) if layout else Graph(":memory:", MODELS)
    g.put_many(Visit(source=f"S{n}", target=f"C{n % 2}", day=-n) for n in range(6))
    g.put_many(Visit(source="S0", target=f"C{n}", day=n) for n in range(2, 5))
    g.put_many([Joined(source="S1", target=Course.ref("C1")), Joined(source="S1", target=Club.ref(1), since=7)])
    g.put_many([Friend(source="S1", target="S2", since=5), Friend(source="S3", target="S1", since=4)])
    return g


@pytest.fixture(params=[AdjacencyList, MaterializedGraph])
def g(request: pytest.FixtureRequest) -> Graph:
    return filled(request.param())


def found(g: Graph, call: Callable[[], Any]) -> list[Any]:
    """What a find gives, which is one request."""
    with g.meter() as m:
        results = list(call())
    assert m.requests == 1
    return results


def test_edges_are_found_by_their_target(g: Graph) -> None:
    at = field("target") == "C1"
    assert [edge.source for edge in found(g, lambda: g.find(Visit, at))] == ["S5", "S3", "S1"]
    assert [edge.source for edge in found(g, lambda: g.find(Visit, at & (field("day") > -5)))] == ["S3", "S1"]
    assert [edge.day for edge in found(g, lambda: g.find(Visit, at, order="day").reverse().limit(2))] == [-1, -3]
    assert g.find(Visit, at & (field("grade") == "B")).count() == 0


def test_edges_are_found_by_their_source_in_their_order(g: Graph) -> None:
    leaving = field("source") == "S0"
    assert [edge.day for edge in found(g, lambda: g.find(Visit, leaving, order="day"))] == [0, 2, 3, 4]
    assert [edge.day for edge in found(g, lambda: g.find(Visit, leaving & (field("day") >= 3)))] == [3, 4]
    both = leaving & (field("target") == "C3")
    assert [edge.day for edge in found(g, lambda: g.find(Visit, both))] == [3]


def test_edges_are_found_by_a_target_of_one_of_several_classes(g: Graph) -> None:
    assert [edge.since for edge in found(g, lambda: g.find(Joined, field("target") == Club.ref(1)))] == [7]
    assert [edge.since for edge in found(g, lambda: g.find(Joined, field("target") == Course.ref("C1")))] == [0]


def test_both_ways_of_asking_find_the_same(g: Graph) -> None:
    for id in ("C0", "C1", "C2", "C9"):
        assert list(g.find(Visit, field("target") == id)) == list(g.into(id, Visit))
    for id in ("S0", "S1", "S9"):
        assert list(g.find(Visit, field("source") == id, order="day")) == list(g.out(id, Visit))


def test_a_symmetric_edge_is_found_at_either_end_in_its_order(g: Graph) -> None:
    for id, ends in (("S1", ["S3", "S2"]), ("S2", ["S1"]), ("S3", ["S1"]), ("S4", [])):
        edges = g.find(Friend, field("source") == id, order="since")
        assert [edge.target for edge in edges] == ends


def test_an_index_is_forced_and_explained() -> None:
    g = filled()
    query = g.find(Visit, field("target") == "C1", index="GSI1")
    assert [edge.source for edge in query] == ["S5", "S3", "S1"]
    assert g.explain(query).index == "GSI1"
    assert g.explain(g.find(Visit, field("source") == "S0", order="day")).index == "GSI2"
    assert g.explain(g.find(Visit, field("source") == "S0")).index is None
    with pytest.raises(InvalidKey, match=r"'GSI1' needs target.id == …, then day, source.id; 'GSI2' needs source.id"):
        g.find(Visit, field("grade") == "A")


def test_nodes_are_found_in_an_inverted_index() -> None:
    """Its partition is the sort key of the nodes, which is the same for all of a class."""

    class Sensor(Node):
        id: str
        at: dt.date

    class Near(Edge[Sensor, Sensor]):
        pass

    layout = AdjacencyList(
        node="{label}",
        reverse=Index("Inverted", "SK", "PK", projection=Projection("KEYS_ONLY")),
        keys={Near: Keys(sort="{target}")},
    )
    g = Graph(":memory:", [Sensor, Near], layout)
    g.put_many([Sensor(id=f"s{n}", at=dt.date(2026, 1, n)) for n in range(1, 4)])
    g.put(Near(source="s1", target="s2"))
    with g.meter() as m:
        assert [sensor.id for sensor in g.find(Sensor, field("id") > "s1")] == ["s2", "s3"]
    assert m.requests == 2  # the index holds no dates
    assert [edge.source for edge in g.find(Near, field("target") == "s2")] == ["s1"]
