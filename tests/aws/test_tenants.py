"""The policy of a tenant allows everything that its graph asks for, and nothing that another's does.

Every verb is run through a graph of one tenant, and what it asked of the table and of its indexes is
held against the policies of both, evaluated as IAM does.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Edge, Graph, Indexed, MaterializedGraph, Node, Unique, aws, field
from adjoin.layouts.interface import Layout
from adjoin.requests import (
    BatchGet,
    BatchWrite,
    Check,
    Delete,
    Get,
    Put,
    Query,
    TransactWrite,
    Update,
)
from adjoin.watching import WatchedRound, Watcher
from tests.aws.evaluation import allows

TABLE = "arn:aws:dynamodb:eu-west-1:123456789012:table/adjoin"
ACTIONS = {Get: "GetItem", Put: "PutItem", Update: "UpdateItem", Delete: "DeleteItem", Check: "ConditionCheckItem"}


class Person(Node):
    id: str
    name: Annotated[str, Indexed()]
    born: Annotated[dt.date | None, Indexed()] = None
    email: Annotated[str | None, Unique()] = None


class Place(Node):
    id: str


class LivesIn(Edge[Person, Place], order="since"):
    since: Annotated[int, Indexed()]
    until: Annotated[int | None, Indexed()] = None


class Friend(Edge[Person, Person], symmetric=True):
    closeness: Annotated[int, Indexed()]


MODELS = [Person, Place, LivesIn, Friend]
LAYOUTS = [AdjacencyList(), MaterializedGraph(), MaterializedGraph(shards=2, type_attribute="Type")]


class Recorder(Watcher):
    """Remembers every call, as IAM sees it: action, resource and leading keys."""

    def __init__(self, layout: Layout) -> None:
        self._partition = aws.table(MODELS, layout).partition.name
        self.calls: set[tuple[str, str, tuple[str, ...]]] = set()

    def after(self, round: WatchedRound) -> None:
        self.calls |= {call for request in round.requests for call in self._calls(request)}

    def _calls(self, request: Any) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        match request:
            case Query():
                where = TABLE if request.index is None else f"{TABLE}/index/{request.index}"
                yield "Query", where, (request.partition[1]["S"],)
            case TransactWrite():
                for write in request.writes:
                    yield from self._calls(write)
            case BatchGet():
                yield "BatchGetItem", TABLE, tuple(self._key(get) for get in request.gets)
            case BatchWrite():
                yield "BatchWriteItem", TABLE, tuple(self._key(write) for write in request.writes)
            case _:
                yield ACTIONS[type(request)], TABLE, (self._key(request),)

    def _key(self, request: Any) -> str:
        text: str = (request.item if isinstance(request, Put) else request.key)[self._partition]["S"]
        return text


@contextlib.contextmanager
def recorded(layout: Layout) -> Iterator[Recorder]:
    with Recorder(layout) as recorder:
        yield recorder


def every_verb(g: Graph) -> None:
    g.put(Person(id="A", name="Ann", born=dt.date(1990, 1, 2), email="a@example.com"))
    g.add(Person(id="B", name="Ben", email="b@example.com"))
    g.put_many([Place(id="X"), Place(id="Y"), Person(id="C", name="Cleo", born=dt.date(1991, 1, 1))])
    g.connect(LivesIn, "A", "X", since=2001)
    g.connect(Friend, "A", "B", closeness=3)
    g.put(LivesIn(source="B", target="X", since=2002, until=2003))
    g.update(Person, "A", name="Anna", email="anna@example.com")
    g.update(LivesIn, "B", "X", since=2004)
    g.update(Friend, "B", "A", closeness=4)
    with g.transaction() as t:
        t.update(Person, "B", born=dt.date(1989, 1, 1))
        t.connect(LivesIn, "C", "Y", since=2005)
        t.disconnect(LivesIn, "B", "X")
    assert g.get(Person, email="anna@example.com") == g.get(Person, "A")
    assert g.edge(Friend, "A", "B") is not None
    assert len(list(g.find(Person, field("name").begins_with("A")))) == 1
    assert g.find(Person, field("born") > dt.date(1980, 1, 1)).count() == 3
    assert [person.name for _, person in g.find(LivesIn, field("since") >= 2000).nodes()] == ["Anna", "Cleo"]
    assert [edge.target for edge in g.out("A", LivesIn)] == ["X"]
    assert len(list(g.into("X", LivesIn).nodes())) == 1
    assert len(g.collection(Person.ref("A")).edges) == 2
    assert len(g.collection(Place.ref("X"), direction="into").edges) == 1
    assert g.delete(Person, "A")
    assert g.disconnect(LivesIn, "C", "Y")


@pytest.mark.parametrize("layout", LAYOUTS, ids=["adjacency list", "materialized graph", "fixed shards"])
def test_a_policy_is_what_its_tenants_graph_needs(layout: Layout) -> None:
    with Graph(":memory:", MODELS, layout, tenant="acme") as g, recorded(layout) as asked:
        every_verb(g)
    assert {action for action, _, _ in asked.calls} >= {*ACTIONS.values(), "Query", "BatchGetItem", "BatchWriteItem"}
    assert len({resource for _, resource, _ in asked.calls}) == 4, "the table and all three indexes"
    own, other = (
        aws.iam_policy(aws.table(MODELS, layout), access=("read", "write"), tenant=tenant) for tenant in ("acme", "acm")
    )
    assert [call for call in asked.calls if not allows(own, *call)] == []
    assert [call for call in asked.calls if allows(other, *call)] == []
