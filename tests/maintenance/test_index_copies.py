"""What stands beside a node or an edge for an index has the same aggregates and copies, whoever wrote it and how."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import pytest

from adjoin import Edge, Graph, Indexed, MaterializedGraph, Node, field
from adjoin.aggregates import Copy, Count, Max
from adjoin.expressions import Remove, Set, Value, attribute
from adjoin.plans.counting.node_transaction import STALE
from adjoin.plans.maintenance.affected import apply_changes
from adjoin.plans.maintenance.ranks import refresh
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import ChangesResponse, ReadChanges, TransactWrite, Update
from tests.maintenance.simulation import Process


class Student(Node):
    id: str
    name: Annotated[str, Indexed()] = "Ann"
    born: Annotated[int | None, Indexed()] = None
    courses: Annotated[int, Count("Enrolled")] = 0
    at_once: Annotated[int, Count("Enrolled", consistency="transaction")] = 0
    best: Annotated[int | None, Max("Enrolled", field="points")] = None


class Course(Node):
    id: str
    title: str = "Art"


class Enrolled(Edge[Student, Course]):
    grade: Annotated[str, Indexed()] = "A"
    points: Annotated[int | None, Indexed()] = None
    student: Annotated[str, Copy("source.name")] = ""
    title: Annotated[str, Copy("target.title")] = ""


MODELS: list[type[Any]] = [Student, Course, Enrolled]
ANN, OLD, ART = Student(id="S1", born=1), Student(id="S1"), Course(id="C1")
ENROLLED = Enrolled(source="S1", target="C1", points=7)


def check(g: Graph) -> None:
    """Everything is found by each of its indexed fields as it is stored."""
    student, edge = g.get(Student, "S1"), g.edge(Enrolled, "S1", "C1")
    assert student is not None
    assert (student.courses, student.at_once, student.best) == ((1, 1, edge.points) if edge else (0, 0, None))
    assert list(g.find(Student, field("name") == student.name)) == [student]
    assert list(g.find(Student, field("born").exists())) == ([] if student.born is None else [student])
    if edge is not None:
        assert (edge.student, edge.title) == (student.name, "Art")
        assert list(g.find(Enrolled, field("grade") == edge.grade)) == [edge]
        assert list(g.find(Enrolled, field("points").exists())) == ([] if edge.points is None else [edge])


def put_together(g: Graph, *entities: Any) -> None:
    with g.transaction() as t:
        for entity in entities:
            t.put(entity)


def connect_together(g: Graph) -> None:
    with g.transaction() as t:
        t.connect(Enrolled, "S1", "C1", points=7)


def change_together(g: Graph) -> None:
    with g.transaction() as t:
        t.update(Student, "S1", name="Bea", born=2)
        t.update(Enrolled, "S1", "C1", points=8)


WRITTEN: dict[str, Sequence[Callable[[Graph], object]]] = {
    "one by one": [lambda g: g.put(ANN), lambda g: g.put(ENROLLED)],
    "the edge first": [lambda g: g.put(ENROLLED), lambda g: g.put(ANN)],
    "many": [lambda g: g.put_many([ENROLLED, ANN])],
    "an edge put in a transaction": [lambda g: g.put(ANN), lambda g: put_together(g, ENROLLED)],
    "an edge connected in a transaction": [lambda g: g.put(ANN), connect_together],
    "a node with its first edge": [lambda g: put_together(g, ANN, ENROLLED)],
    "a node again with its first edge": [lambda g: g.put(ANN), lambda g: put_together(g, ANN, ENROLLED)],
    "a node that gets another copy": [lambda g: g.put(OLD), lambda g: put_together(g, ANN, ENROLLED)],
    "a node that loses a copy": [lambda g: g.put(ANN), lambda g: put_together(g, OLD, ENROLLED)],
    "both changed": [lambda g: g.put_many([ANN, ENROLLED]), change_together],
}


@pytest.mark.parametrize("layout", [None, MaterializedGraph(shards=2)])
@pytest.mark.parametrize("way", WRITTEN)
def test_all_ways_of_writing_agree(way: str, layout: Any) -> None:
    with Graph(":memory:", MODELS, layout) as g:
        g.put(ART)
        for step in WRITTEN[way]:
            step(g)
        g.maintain(once=True)
        check(g)
        g.disconnect(Enrolled, "S1", "C1")
        g.maintain(once=True)
        check(g)


@contextmanager
def stopped_before_writing(g: Graph) -> Iterator[None]:
    """A maintainer has read everything that changed; it writes at the end of the block."""
    before = next(change.position for change in g.changes())
    (response,) = g._store.execute((ReadChanges(g._layout.table, before),))
    assert isinstance(response, ChangesResponse)
    slow = Process(g, apply_changes(g._layout, response.changes, Tally()), "slow")
    while not any(isinstance(request, TransactWrite | Update) for request in slow._batch):
        slow.step(random.Random(0))
        assert not slow.is_done
    yield
    while not slow.is_done:
        slow.step(random.Random(0))
    assert slow.error is None


def test_a_node_gets_another_copy_while_it_is_counted() -> None:
    class Member(Node):
        id: str
        name: Annotated[str, Indexed()] = "Ann"
        born: Annotated[int | None, Indexed()] = None
        posts: Annotated[int, Count("Wrote")] = 0

    class Post(Node):
        id: str

    class Wrote(Edge[Member, Post]):
        pass

    with Graph(":memory:", [Member, Post, Wrote]) as g:
        g.put(Member(id="M1"))
        g.put(Wrote(source="M1", target="P1"))
        with stopped_before_writing(g):
            g.update(Member, "M1", born=1980)
        g.maintain(once=True)
        (found,) = g.find(Member, field("born") == 1980)
        assert found.posts == 1
        assert found == g.get(Member, "M1")


def test_an_edge_gets_another_copy_while_its_own_are_made_fresh() -> None:
    class Post(Node):
        id: str
        title: str = "first"

    class Tagged(Edge[Post, Post]):
        grade: Annotated[str, Indexed()] = "A"
        points: Annotated[int | None, Indexed()] = None
        title: Annotated[str, Copy("source.title")] = ""

    with Graph(":memory:", [Post, Tagged]) as g:
        g.put(Post(id="P1"))
        g.put(Tagged(source="P1", target="P2"))
        g.update(Post, "P1", title="second")
        with stopped_before_writing(g):
            g.update(Tagged, "P1", "P2", points=5)
        g.maintain(once=True)
        (found,) = g.find(Tagged, field("points") == 5)
        assert found.title == "second"
        assert found == g.edge(Tagged, "P1", "P2")


@pytest.mark.parametrize("born", [None, 1])
def test_a_copy_that_comes_while_ranks_are_read_has_what_they_say(born: int | None) -> None:
    """A program gives the node another copy, or takes one away, after the node was read."""
    with Graph(":memory:", MODELS) as g:
        g.put_many([ART, Student(id="S1", born=born), ENROLLED])
        g.maintain(once=True)
        layout = g._layout
        kind = layout.schema.node(Student)
        key = layout.node_key(kind, "S1")
        actions = (Set(attribute(STALE), Value({"SS": ["STUDENT.best"]})), Remove(attribute("best")))
        g._store.execute((Update("adjoin", key, actions),))
        slow = Process(g, refresh(layout, {"STUDENT#S1": kind}, Tally()), "slow")
        while not (slow.is_about(TransactWrite) or slow.is_about(Update)):
            slow.step(random.Random(0))
        g.update(Student, "S1", born=2 if born is None else None)
        slow.finish()
        check(g)
        assert g.verify(threads=1).findings == ()
