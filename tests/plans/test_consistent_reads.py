"""Writes decide by what they read, so nothing that they read from the table may be old.

The stores of tests have no old reads to give. So the requests themselves are looked at, one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Annotated, Any

import pytest

from adjoin import Count, Edge, Graph, Indexed, MaterializedGraph, Node, Unique, Version, field
from adjoin.requests import Delete, Request, TransactWrite
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore
from tests.maintenance.simulation import Process
from tests.maintenance.test_consistent_reads import is_consistent


class Shop(Node):
    id: str
    name: Annotated[str, Indexed()] = ""
    town: Annotated[str, Indexed()] = ""
    code: Annotated[str | None, Unique()] = None
    notes: list[str] = []
    revision: Annotated[int, Version()] = 0
    sold: Annotated[int, Count("Sold", consistency="transaction")] = 0


class Good(Node):
    id: str
    sold: Annotated[int, Count("Sold", consistency="transaction")] = 0


class Person(Node):
    id: str
    name: str = ""
    age: int = 0
    friends: Annotated[int, Count("Knows")] = 0


class Club(Node):
    id: str
    name: Annotated[str, Indexed()] = ""
    code: Annotated[str | None, Unique()] = None


class Sold(Edge[Shop, Good]):
    number: int = 0


class Knows(Edge[Person, Person], symmetric=True):
    since: Annotated[int, Indexed()] = 0
    until: Annotated[int, Indexed()] = 0


class Visited(Edge[Person, Club], order="at"):
    at: int = 0
    note: Annotated[str | None, Indexed()] = None


MODELS: list[Any] = [Shop, Good, Club, Person, Sold, Knows, Visited]


def filled(g: Graph) -> None:
    g.put_many([Shop(id=id, name="n", town="t", code=id) for id in "ab"])
    g.put_many([Club(id=id, code=id) for id in "ab"])
    g.put_many([*(Good(id=f"g{at}") for at in range(3)), *(Person(id=f"p{at}") for at in range(3))])
    for at in range(2):
        g.put(Sold(source="a", target=f"g{at}"))
        g.put(Knows(source=f"p{at}", target=f"p{at + 1}"))
        g.put(Visited(source=f"p{at}", target="a", at=at))


def put_all(g: Graph, *entities: Any) -> None:
    for entity in entities:
        g.put(entity, if_version=None)


def together(g: Graph) -> None:
    with g.transaction() as t:
        t.put(Shop(id="c", name="m", code="c"))
        t.update(Shop, "a", name="other", code="x")
        t.update(Knows, "p1", "p0", since=3)
        t.upsert(Visited, "p1", "a", at=9)
        t.connect(Sold, "b", "g1")
        t.disconnect(Knows, "p1", "p2")
        t.delete(Person, "p9")


def meanwhile(g: Graph) -> None:
    """A delete in steps, of a node that changes after its edges are marked and before it goes itself."""
    g.put_many(Visited(source=f"v{at}", target="b") for at in range(120))
    deleting = Process(g, g._delete(Club, "b"), "delete")
    while not is_switch(deleting.waits_for):
        deleting.step(Random(0))
    g.update(Club, "b", code="changed")
    deleting.finish()
    assert g.get(Club, "b", consistent=True) is g.get(Club, code="changed", consistent=True) is None


def is_switch(request: Request) -> bool:
    """Whether it removes a node and writes the record that hides its edges."""
    return isinstance(request, TransactWrite) and isinstance(request.writes[0], Delete)


WRITES: dict[str, Callable[[Graph], object]] = {
    "put a new node": lambda g: g.put(Shop(id="c", name="m", code="c")),
    "put a node again": lambda g: g.put(Shop(id="a", name="m", code="z"), if_version=None),
    "take a claim that was given up": lambda g: put_all(g, Shop(id="b"), Shop(id="c", code="b")),
    "add": lambda g: g.add(Person(id="new")),
    "put many": lambda g: g.put_many([Person(id="p0", name="x"), Knows(source="p0", target="p1", since=3)]),
    "update an indexed field": lambda g: g.update(Shop, "a", name="other"),
    "update a unique field": lambda g: g.update(Shop, "a", code="other"),
    "update by what is there": lambda g: g.update(Shop, "a", notes=["x"], only_if=field("name") == "n"),
    "update a symmetric edge": lambda g: g.update(Knows, "p1", "p0", since=5),
    "update what an edge is sorted by": lambda g: g.update(Visited, "p0", "a", at=8),
    "update a plain node": lambda g: g.update(Person, "p0", name="x", age=field("age") + 1),
    "upsert what is there": lambda g: g.upsert(Shop, "a", name="x"),
    "upsert what is not there": lambda g: g.upsert(Shop, "z", name="x", code="z"),
    "upsert an edge": lambda g: g.upsert(Visited, "p0", "a", at=8),
    "connect what counts at once": lambda g: g.connect(Sold, "b", "g0"),
    "connect to what is not there yet": lambda g: put_all(g, Sold(source="new", target="g0"), Shop(id="new")),
    "connect a symmetric edge": lambda g: g.connect(Knows, "p0", "p2"),
    "disconnect what counts at once": lambda g: g.disconnect(Sold, "a", "g0"),
    "disconnect a symmetric edge": lambda g: g.disconnect(Knows, "p1", "p0"),
    "disconnect an indexed edge": lambda g: g.disconnect(Visited, "p0", "a"),
    "delete with counted edges": lambda g: g.delete(Shop, "a"),
    "delete with edges": lambda g: g.delete(Club, "a"),
    "delete with symmetric edges": lambda g: g.delete(Person, "p1"),
    "delete a node that changes": meanwhile,
    "delete many": lambda g: g.delete_many([Person(id="p0"), Person(id="p2")]),
    "transaction": together,
}


@pytest.mark.parametrize("layout", [None, MaterializedGraph()], ids=["adjacency list", "materialized graph"])
@pytest.mark.parametrize("what", WRITES)
def test_writes_decide_by_what_is_stored_now(what: str, layout: Any) -> None:
    store = FaultyStore(SQLiteStore(":memory:"))
    seen: list[Request] = []
    with Graph(store, MODELS, layout) as g:
        filled(g)
        store.fault = lambda _, request: seen.append(request)
        WRITES[what](g)
        assert [request for request in seen if not is_consistent(request)] == []
        assert seen
