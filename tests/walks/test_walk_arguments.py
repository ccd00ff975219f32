"""Whatever is wrong with a walk is said before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from adjoin import (
    AdjacencyList,
    AdjoinError,
    Budget,
    Child,
    Edge,
    Graph,
    InvalidKey,
    InvalidModel,
    InvalidValue,
    Node,
    UnknownField,
    field,
)


class Person(Node):
    id: str
    age: int = 0
    since: int = 0


class Course(Node):
    id: str


class Knows(Edge[Person, Person]):
    since: int = 0
    weight: int = 0
    labels: list[str] = []


class Attends(Edge[Person, Course]):
    grade: str = ""


class Note(Child[Person], key=("number",)):
    number: int


class Unknown(Edge[Person, Person]):
    pass


@pytest.fixture(scope="module")
def g() -> Iterator[Graph]:
    with Graph(":memory:", [Person, Course, Knows, Attends, Note]) as graph:
        yield graph


WRONG: list[tuple[Callable[[Any], Any], type[AdjoinError], str]] = [
    (lambda g: g.walk(None), InvalidValue, "begins with a node"),
    (lambda g: g.walk(Person), InvalidValue, "begins with a node"),
    (lambda g: g.walk([]), InvalidValue, "empty list"),
    (lambda g: g.walk("a").refs().page(), InvalidValue, "does not say of which class"),
    (lambda g: g.walk(Knows(source="a", target="b")).out(Knows), InvalidKey, "a node is needed, got an edge"),
    (
        lambda g: g.walk("a").out(Note, Attends).into(Note).both(Attends, Knows).out(Note).out(Knows),
        InvalidValue,
        "no Knows leaves a Note",
    ),
    (lambda g: g.walk("a").out(), InvalidValue, "out needs at least one class"),
    (lambda g: g.walk("a").out(Person), InvalidValue, "out takes classes of edges or of children, got Person"),
    (lambda g: g.walk("a").into("Knows"), InvalidValue, "into takes classes of edges"),
    (lambda g: g.walk("a").out([Knows]), InvalidValue, "out takes classes of edges"),
    (lambda g: g.walk("a").out(Unknown), InvalidModel, "Unknown is not an Edge class of this graph"),
    (lambda g: g.walk("a").children(Knows), InvalidValue, "children takes classes of children"),
    (
        lambda g: g.walk(Course.ref("c")).out(Attends),
        InvalidValue,
        "no Attends leaves a Course; follow it the other way",
    ),
    (lambda g: g.walk("a").out(Attends).out(Attends), InvalidValue, "no Attends leaves a Course"),
    (lambda g: g.walk(Person.ref("a")).into(Attends), InvalidValue, "no Attends arrives at a Person"),
    (lambda g: g.walk("a").out(Knows).where("since > 3"), InvalidValue, "is not a comparison"),
    (lambda g: g.walk("a").out(Knows).where(field("sinse") > 3), UnknownField, "did you mean|since"),
    (
        lambda g: g.walk("a").out(Knows).where(field("since") > 3),
        InvalidValue,
        'may be of Knows or of Person; say which with on="edges"',
    ),
    (lambda g: g.walk("a").out(Knows).where(field("age") > 3, on="edges"), UnknownField, "age"),
    (
        lambda g: g.walk("a").out(Knows).where(field("age") > 3, on="both"),
        InvalidValue,
        'on must be "edges" or "nodes"',
    ),
    (
        lambda g: g.walk("a").out(Knows).where((field("age") > 3) & (field("weight") > 3)),
        InvalidValue,
        "use where once for each",
    ),
    (lambda g: g.walk("a").out(Knows).where(field("weight") > "x"), InvalidValue, "'x' does not fit Knows.weight"),
    (
        lambda g: g.walk("a").out(Knows).where(~(field("age") > "x") | (field("age") == 1)),
        InvalidValue,
        "does not fit Person.age",
    ),
    (lambda g: g.walk("a").where(field("age") > 3), InvalidValue, "where is about a step along edges"),
    (lambda g: g.walk(Person.ref("a")).distinct().order_by("age"), InvalidValue, "comes directly after one"),
    (lambda g: g.walk("a").out(Knows).order_by("agee"), UnknownField, "age"),
    (lambda g: g.walk("a").out(Knows).order_by(3), InvalidValue, "a field is given by its name"),
    (lambda g: g.walk("a").out(Knows).order_by("age", reverse=1), InvalidValue, "reverse must be True or False"),
    (lambda g: g.walk("a").out(Knows).distinct().limit_per_node(3), InvalidValue, "comes directly after one"),
    (lambda g: g.walk("a").out(Knows).limit_per_node(0), InvalidValue, "limit_per_node must be at least 1"),
    (lambda g: g.walk("a").out(Knows).limit("3"), InvalidValue, "limit must be a whole number"),
    (lambda g: g.walk("a").repeat(Knows, max=0), InvalidValue, "max must be at least 1"),
    (lambda g: g.walk("a").repeat(Knows, min=3, max=2), InvalidValue, "max must be at least min"),
    (lambda g: g.walk("a").repeat(Knows, min=-1, max=2), InvalidValue, "min must be at least 1"),
    (lambda g: g.walk("a").repeat(Knows, max=101), InvalidValue, "at most 100 steps"),
    (lambda g: g.walk("a").repeat(Knows, max=99).out(Knows).out(Knows), InvalidValue, "at most 100 steps"),
    (lambda g: g.walk("a").repeat(Attends, max=2), InvalidValue, "Attends cannot be repeated"),
    (lambda g: g.walk("a").repeat(Knows, max=2, direction="up"), InvalidValue, "direction must be"),
    (lambda g: g.walk("a").repeat(Knows, max=2, until=field("wage") > 1), UnknownField, "wage"),
    (lambda g: g.walk("a").repeat(Knows, max=2, until="b"), InvalidValue, "is not a comparison"),
    (lambda g: g.walk("a").repeat(Knows, max=2, where=field("since") > 1), InvalidValue, "say which"),
    (lambda g: g.walk("a", budget=100), InvalidValue, "budget must be a Budget"),
    (lambda g: g.walk("a", cap=0), InvalidValue, "cap must be at least 1"),
    (lambda g: g.walk("a", consistent=1), InvalidValue, "consistent must be True, False or None"),
    (lambda g: g.walk("a").out(Knows).sum("wage"), UnknownField, "wage"),
    (lambda g: g.walk(Person.ref("a")).sum("age"), InvalidValue, "sum is about a step along edges"),
    (lambda g: g.walk("a").out(Knows).limit(3).sum("age"), InvalidValue, "this walk has a limit"),
    (lambda g: g.walk("a").out(Knows).top("age", 0), InvalidValue, "number must be at least 1"),
    (lambda g: g.walk("a").out(Knows).page(limit=0), InvalidValue, "page limit must be at least 1"),
    (lambda g: Budget(requests=0), InvalidValue, "requests of a budget"),
    (lambda g: Budget(nodes=True), InvalidValue, "nodes of a budget"),
    (lambda g: Budget(rcu=-1), InvalidValue, "rcu of a budget"),
    (lambda g: Budget(seconds=float("nan")), InvalidValue, "seconds of a budget"),
    (lambda g: Budget(on_exceeded="stop"), InvalidValue, "on_exceeded must be"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "error", "words"), WRONG, ids=[words for *_, words in WRONG])
def test_wrong_arguments(g: Graph, call: Callable[[Any], Any], error: type[AdjoinError], words: str) -> None:
    with g.meter() as m, pytest.raises(error, match=words):
        call(g)
    assert m.requests == 0


def test_a_layout_that_cannot_find_edges_from_their_target_is_said_at_once() -> None:
    with Graph(":memory:", [Person, Knows], AdjacencyList(reverse=None)) as g:
        with g.meter() as m:
            with pytest.raises(InvalidModel, match="no reverse index"):
                g.walk("a").into(Knows)
            with pytest.raises(InvalidModel, match="no reverse index"):
                g.walk("a").out(Knows).both(Knows)
        assert m.requests == 0
        assert g.walk("a").out(Knows).out(Knows).count() == 0


def test_values_that_cannot_be_added_or_sorted_are_refused(g: Graph) -> None:
    g.put_many([Knows(source="v", target="w", labels=["x"]), Attends(source="v", target="c", grade="A")])
    with pytest.raises(InvalidValue, match="'A' is not a number"):
        g.walk("v").out(Attends).sum("grade")
    assert g.walk("v").out(Attends).max("grade") == "A"
