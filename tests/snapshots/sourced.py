"""A small graph to take snapshots of, and whether two snapshots are the same."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from adjoin import Graph
from tests.snapshots.graphs import WALKS, Bought, Friend, Knows, Likes, Met, Note, Person, Thing, answers

ITEMS: list[Any] = [
    *(Person(id=id, age=at) for at, id in enumerate("abcd")),
    Thing(id=8, price=Decimal("2.5")),
    *(
        Knows(source=a, target=b, weight=at)
        for at, (a, b) in enumerate([("a", "b"), ("b", "c"), ("c", "a"), ("a", "d"), ("d", "x")])
    ),
    Met(source="a", target="b", year=1),
    Met(source="a", target="b", year=2),
    Friend(source="a", target="c", weight=3),
    Bought(source="a", target=8, day=2),
    Bought(source="b", target=8, day=1),
    Likes(source="a", target=Thing.ref(8)),
    Note(parent="a", at=1),
]


def assert_same(graph: Graph, snapshot: Any) -> None:
    for name, steps in WALKS.items():
        for id in "abc":
            assert answers(steps(snapshot.walk(Person.ref(id)))) == answers(steps(graph.walk(Person.ref(id)))), name
