"""Removing edges that are not as they should be: one half of a symmetric one, and a failure that shows no item."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import pytest

from adjoin import ConditionFailed, Count, Edge, Graph, Node, Version
from adjoin.requests import Delete, Request
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore


class Person(Node):
    id: str
    friends: Annotated[int, Count("Friend", consistency="transaction")] = 0


class Friend(Edge[Person, Person], symmetric=True):
    pass


class Note(Edge[Person, Person]):
    revision: Annotated[int, Version()] = 0


@pytest.fixture
def store() -> Iterator[FaultyStore]:
    store = FaultyStore(SQLiteStore(":memory:"))
    yield store
    store.close()


@pytest.fixture
def g(store: FaultyStore) -> Graph:
    graph = Graph(store, [Person, Friend, Note])
    graph.put_many(Person(id=id) for id in "abc")
    graph.connect(Friend, "a", "b")
    graph.connect(Friend, "a", "c")
    return graph


def friends(g: Graph) -> list[int]:
    return [person.friends for person in g.get_many(Person, [*"abc"]) if person is not None]


@pytest.mark.parametrize(("lost", "left"), [(0, [2, 0, 1]), (1, [1, 1, 1])], ids=["at a", "at b"])
def test_half_of_a_symmetric_edge_is_no_edge_and_goes(g: Graph, lost: int, left: list[int]) -> None:
    """What it contributed goes with it; what the half contributed that another program removed, with the stream."""
    items = g._layout.items(Friend(source="a", target="b"))
    g._store.execute((Delete("adjoin", g._layout.key_of(items[lost])),))
    assert g.disconnect(Friend, "a", "b") is False
    assert friends(g) == left
    assert [[edge.target for edge in g.out(id, Friend)] for id in "abc"] == [["c"], [], ["a"]]
    g.maintain(once=True)
    assert friends(g) == [1, 0, 1]
    assert g.disconnect(Friend, "a", "c") is True
    assert friends(g) == [0, 0, 0]


def test_a_lock_that_fails_without_an_item_is_told(g: Graph, store: FaultyStore) -> None:
    """Some servers do not show the item for which a condition did not hold, so nothing can be said about it."""
    g.put(Note(source="a", target="b"))
    refusal = ConditionFailed("the condition does not hold")

    def refuse(_: int, request: Request) -> str | None:
        if isinstance(request, Delete):
            raise refusal
        return None

    store.fault = refuse
    with pytest.raises(ConditionFailed) as raised:
        g.disconnect(Note, "a", "b", if_version=0)
    assert raised.value is refusal
    store.recover()
    assert g.disconnect(Note, "a", "b", if_version=0) is True
