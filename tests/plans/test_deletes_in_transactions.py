"""Deletes of nodes within a transaction: what they cannot be together with, and what others do meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest

from adjoin import Edge, Graph, InvalidRequest, Node, Unique
from adjoin.requests import Request, TransactWrite
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore
from tests.maintenance.simulation import stored


class User(Node):
    id: str
    mail: Annotated[str | None, Unique()] = None


class Knows(Edge[User, User]):
    pass


ENTITIES = [User(id="1", mail="old"), User(id="2"), Knows(source="1", target="2")]


def left(g: Graph) -> list[tuple[str, str]]:
    return [(item["PK"]["S"], item["SK"]["S"]) for item in stored(g)]


REFUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "an edge that needs the node": (
        lambda t: t.connect(Knows, "2", "1"),
        "User '1'\" removes; do only one",
    ),
    "the node itself": (lambda t: t.put(User(id="1")), "a transaction may contain each item only once"),
    "its unique value": (lambda t: t.put(User(id="3", mail="old")), "a transaction may contain each item only once"),
    "an edge of it": (
        lambda t: t.put(Knows(source="1", target="2")),
        "takes each item once|needs a node",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_delete_cannot_be_together_with(what: str) -> None:
    act, message = REFUSED[what]
    with Graph(":memory:", [User, Knows]) as g:
        g.put_many(ENTITIES)
        before = left(g)
        with pytest.raises(InvalidRequest, match=message), g.transaction() as t:
            act(t)
            t.delete(User, "1")
        assert left(g) == before


def meanwhile(act: Callable[[Graph], object]) -> list[tuple[str, str]]:
    """What is left if somebody does that between what a transaction reads and what it writes."""
    store = FaultyStore(SQLiteStore(":memory:"))
    other = Graph(store.inner, [User, Knows])
    other.put_many(ENTITIES)
    acts = [act]

    def come_between(_: int, request: Request) -> None:
        if acts and isinstance(request, TransactWrite):
            acts.pop()(other)

    with Graph(store, [User, Knows]) as g:
        store.fault = come_between
        with g.transaction() as t:
            t.delete(User, "1")
            t.delete(User, "2")
        return left(other)


def test_a_unique_value_that_changes_meanwhile_goes_too() -> None:
    assert meanwhile(lambda g: g.update(User, "1", mail="new")) == []
    assert meanwhile(lambda g: g.update(User, "2", mail="new")) == []


def test_an_edge_that_is_connected_meanwhile_stays() -> None:
    """Which is not promised otherwise; `verify` reports it."""
    assert meanwhile(lambda g: g.connect(Knows, "2", "1")) == [("USER#2", "KNOWS#USER#1")]
