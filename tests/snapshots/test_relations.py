"""The arrays of the edges of one class: what a removed edge leaves, and how rows that grow find room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adjoin import Edge, Graph, Node
from adjoin.snapshots.relations import Relation
from adjoin.snapshots.snapshot import Snapshot


class Person(Node):
    id: str


class Knows(Edge[Person, Person]):
    weight: int = 1


class Friend(Edge[Person, Person], symmetric=True):
    weight: int = 1


@pytest.fixture
def graph() -> Iterator[Graph]:
    with Graph(":memory:", [Person, Knows, Friend]) as graph:
        graph.put_many(Person(id=id) for id in "abcd")
        graph.put_many([Knows(source="a", target=id, weight=3) for id in "bcd"])
        graph.put(Friend(source="a", target="b", weight=5))
        yield graph


def taken(graph: Graph) -> Snapshot:
    snapshot = graph.snapshot([Knows, Friend], ["weight"])
    assert isinstance(snapshot, Snapshot)
    return snapshot


def relation(snapshot: Snapshot, model: type[Edge[Person, Person]]) -> Relation:
    return snapshot._graph.relations[model]


def test_a_removed_edge_is_not_counted_and_leaves_no_value(graph: Graph) -> None:
    snapshot = taken(graph)
    graph.disconnect(Knows, "a", "c")
    graph.disconnect(Friend, "b", "a")
    snapshot.follow(once=True)
    assert (snapshot.edge_count(Knows), snapshot.edge_count(Friend)) == (2, 0)
    assert (snapshot.degree("a", Knows), snapshot.degree("c", Knows, direction="into")) == (2, 0)
    held = relation(snapshot, Knows)
    (number,) = held.free
    assert held.columns["weight"][number] is None
    assert held.columns["weight"].values.sum() == 6


def test_the_number_of_a_removed_edge_is_used_again(graph: Graph) -> None:
    snapshot = taken(graph)
    for weight in range(5):
        graph.disconnect(Knows, "a", "b")
        graph.put(Knows(source="a", target="b", weight=weight))
        snapshot.follow(once=True)
        held = relation(snapshot, Knows)
        assert (held.count, held.used, held.free) == (3, 3, [])
        assert snapshot.k_hop_sum("a", "weight", Knows, 1) == 6 + weight


def test_an_edge_that_is_not_there_is_removed_without_a_trace(graph: Graph) -> None:
    snapshot = taken(graph)
    graph.put(Knows(source="d", target="a"))
    graph.disconnect(Knows, "d", "a")
    snapshot.follow(once=True)
    held = relation(snapshot, Knows)
    assert (held.count, snapshot.edge_count(Knows)) == (3, 3)
    assert snapshot.degree("d", Knows) == 0


def test_rows_that_grow_move_and_the_gaps_are_closed(graph: Graph) -> None:
    snapshot = taken(graph)
    names = [f"n{number:04d}" for number in range(300)]
    for some in (names[:100], names[100:]):
        graph.put_many(Knows(source=source, target=name) for name in some for source in ("a", "b"))
        snapshot.follow(once=True)
    side = relation(snapshot, Knows).out
    assert side.bounds is None
    assert [ref.id for ref in snapshot.walk("b").out(Knows).refs()] == names
    side.pack()
    assert side.bounds is not None
    assert len(side.far) == snapshot.edge_count(Knows) == 603
    assert [ref.id for ref in snapshot.walk("b").out(Knows).refs()] == names
