"""Tenants: whatever is called through one tenant's graph, no other tenant's item is read, written or named.

Every request of a tenant's graph is looked at on its way to the store: each partition key that it has, of the
table or of an index, begins with the tenant's prefix, and the tenant's IAM policy allows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from adjoin import (
    AdjacencyList,
    AdjoinError,
    AlreadyExists,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidCursor,
    InvalidKey,
    InvalidRequest,
    MaterializedGraph,
    Node,
    Unique,
    aws,
    field,
)
from adjoin.errors import AccessDenied
from adjoin.expressions import Set
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Layout
from adjoin.layouts.shard_numbers import SHARDS
from adjoin.plans import deletion
from adjoin.requests import (
    BatchGet,
    BatchWrite,
    Check,
    CreateTable,
    Delete,
    DescribeTable,
    Get,
    Put,
    Query,
    ReadChanges,
    Request,
    Response,
    Scan,
    TransactWrite,
    Update,
)
from adjoin.reserved import DECLARED, OWN, RECORDS, tenant_prefix
from adjoin.schema import Schema
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from tests.aws.evaluation import allows
from tests.growing import Clock, announce, on_clock, scanned
from tests.shares import examples


class Person(Node):
    id: str
    name: Annotated[str, Indexed()] = ""
    age: Annotated[int | None, Indexed()] = None
    email: Annotated[str | None, Unique()] = None


class Place(Node):
    id: str
    path: Annotated[tuple[str, ...], Indexed()] = ()


class Lives(Edge[Person, Place], order="since"):
    since: int = 0
    how: Annotated[str, Indexed()] = ""


class Knows(Edge[Person, Person], symmetric=True):
    closeness: Annotated[int, Indexed()] = 0
    note: Annotated[str | None, Indexed()] = None


MODELS: list[Any] = [Person, Place, Lives, Knows]
LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "materialized graph": MaterializedGraph(),
    "4 shards": MaterializedGraph(shards=4),
    "inverted index": AdjacencyList(node="{node}", edge="{target}", reverse=Index("GSI_1", "SK"), escape=True),
}
ACTIONS: dict[type, str] = {
    Get: "GetItem",
    Query: "Query",
    Put: "PutItem",
    Update: "UpdateItem",
    Delete: "DeleteItem",
    Check: "ConditionCheckItem",
}
TENANTS = ["acme", "acme2", "a", "b*", "$é"]
ARN = "arn:aws:dynamodb:eu-west-1:1:table/adjoin"


def single(requests: Sequence[Any]) -> Iterator[Any]:
    """Requests with those of batches and transactions one by one."""
    for request in requests:
        if isinstance(request, BatchGet):
            yield from single(request.gets)
        elif isinstance(request, BatchWrite | TransactWrite):
            yield from single(request.writes)
        else:
            yield request


class Guarded:
    """Passes on what a tenant may ask, and fails at anything else."""

    def __init__(self, inner: Store, tenant: str) -> None:
        self.inner, self.creates_tables = inner, inner.creates_tables
        self.prefix = tenant_prefix(tenant)
        self.tenant = tenant
        self.seen = 0
        self.graph: Graph | None = None

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        for request in single(requests):
            self._check(request)
        return self.inner.execute(requests)

    def _check(self, request: Any) -> None:
        if isinstance(request, CreateTable | DescribeTable | ReadChanges):
            # None of them names a key; changes are told apart when they are read.
            return
        if isinstance(request, Scan):
            raise AccessDenied("the policy of a tenant allows no scan, which reads everybody's items")
        self.seen += 1
        assert self.graph is not None
        definition = self.graph._layout.definition
        partitions = {definition.partition.name, *(index.partition.name for index in definition.indexes)}
        names = {name: value for name, value in self._keys(request, definition) if name in partitions}
        assert names, request
        if self._leading(request, definition) == OWN + RECORDS:
            # Everybody may read what is recorded about the whole table, and no tenant may write it.
            if isinstance(request, Put):
                raise AccessDenied("no tenant may write this")
            policy = aws.iam_policy(definition, access="read", tenant=self.tenant)
            assert allows(policy, ACTIONS[type(request)], ARN, [OWN + RECORDS])
            return
        for name, value in names.items():
            assert value["S"].startswith(self.prefix), f"{name}={value} of {request}"
        policy = aws.iam_policy(definition, access=["read", "write"], tenant=self.tenant)
        index = getattr(request, "index", None)
        resource = f"{ARN}/index/{index}" if index else ARN
        leading = self._leading(request, definition)
        assert allows(policy, ACTIONS[type(request)], resource, [leading])
        other = aws.iam_policy(definition, access=["read", "write"], tenant=self.tenant + "x")
        assert not allows(other, ACTIONS[type(request)], resource, [leading])

    def _keys(self, request: Any, definition: Any) -> Iterator[tuple[str, Any]]:
        match request:
            case Query():
                yield request.partition
                yield from (request.start or {}).items()
            case Put():
                yield from request.item.items()
            case Update():
                yield from request.key.items()
                for action in request.actions:
                    if isinstance(action, Set) and hasattr(action.value, "attribute"):
                        yield str(action.path.steps[0]), action.value.attribute
            case _:
                yield from request.key.items()

    def _leading(self, request: Any, definition: Any) -> str:
        if isinstance(request, Query):
            return str(request.partition[1]["S"])
        key = request.item if isinstance(request, Put) else request.key
        return str(key[definition.partition.name]["S"])

    def close(self) -> None:
        pass


def opened(store: Store, tenant: str, layout: Layout, clock: Clock | None = None) -> Graph:
    guarded = Guarded(store, tenant)

    class Opening(Graph):
        """A graph that its guard knows before the first request."""

        def _run(self, plan: Any) -> Any:
            guarded.graph = self
            return super()._run(plan)

    graph = Opening(guarded, MODELS, layout, tenant=tenant)
    return on_clock(graph, clock) if clock is not None else graph


IDS = ["a", "b#", "="]
ids = st.sampled_from(IDS)
names = st.sampled_from(["x", "y#", "acme", ""])
VERBS = ["put", "connect", "disconnect", "update"]


class TenantsMachine(RuleBasedStateMachine):
    """Two tenants of one table with the same ids and values; each must be as if it were alone."""

    @initialize(layout=st.sampled_from(list(LAYOUTS)), two=st.permutations(TENANTS), large=st.booleans())
    def open(self, layout: str, two: list[str], large: bool) -> None:
        self.patch = pytest.MonkeyPatch()
        if large:
            self.patch.setattr(deletion, "MAX_TRANSACTION", 4)
        self.store, self.clock = SQLiteStore(":memory:"), Clock()
        self.tenants = two[:2]
        self.graphs = [opened(self.store, tenant, LAYOUTS[layout], self.clock) for tenant in self.tenants]
        self.alone = [
            on_clock(Graph(SQLiteStore(":memory:"), MODELS, LAYOUTS[layout], tenant=tenant), self.clock)
            for tenant in self.tenants
        ]
        self.is_adaptive = getattr(LAYOUTS[layout], "shards", None) is None

    def teardown(self) -> None:
        if hasattr(self, "store"):
            for graph in self.alone:
                graph.close()
            self.store.close()
            self.patch.undo()

    def both(self, who: int, call: Any) -> Any:
        """What a call answers in the shared table, which is what it answers to a tenant that is alone."""
        answers: list[Any] = []
        for graph in (self.graphs[who], self.alone[who]):
            try:
                answers.append(call(graph))
            except AdjoinError as error:
                answers.append((type(error), str(error)))
        assert answers[0] == answers[1]
        return answers[0]

    who = st.integers(0, 1)

    @rule(who=who, id=ids, name=names, age=st.none() | st.integers(-2, 2), email=st.none() | names, how=st.data())
    def write_person(
        self, who: int, id: str, name: str, age: int | None, email: str | None, how: st.DataObject
    ) -> None:
        person = Person(id=id, name=name, age=age, email=email)
        verb = how.draw(st.sampled_from(["put", "add", "put_many", "update", "transaction"]))

        def call(graph: Graph) -> Any:
            if verb == "put_many":
                return graph.put_many([person, Place(id=id, path=(name, "p"))])
            if verb == "update":
                return graph.update(Person, id, name=name, age=age, email=email)
            if verb == "transaction":
                with graph.transaction() as t:
                    t.put(person)
                    t.add(Place(id=id + "t"))
                return None
            return getattr(graph, verb)(person)

        self.both(who, call)

    @rule(
        who=who,
        one=ids,
        other=ids,
        number=st.integers(0, 2),
        how=names,
        verb=st.sampled_from(VERBS),
    )
    def write_edges(self, who: int, one: str, other: str, number: int, how: str, verb: str) -> None:
        def call(graph: Graph) -> Any:
            match verb:
                case "put":
                    graph.put(Lives(source=one, target=other, since=number, how=how))
                    graph.put(Knows(source=one, target=other, closeness=number, note=how))
                case "connect":
                    return [
                        graph.connect(Lives, one, other, since=number),
                        graph.connect(Knows, one, other, closeness=number),
                    ]
                case "disconnect":
                    return [graph.disconnect(Lives, one, other), graph.disconnect(Knows, one, other)]
                case "update":
                    return [
                        graph.update(Knows, one, other, closeness=number, note=how),
                        graph.update(Lives, one, other, since=field("since") + 1, how=how),
                    ]
            return None

        self.both(who, call)

    @rule(who=who, id=ids, in_transaction=st.booleans())
    def delete(self, who: int, id: str, in_transaction: bool) -> None:
        def call(graph: Graph) -> Any:
            if in_transaction:
                with graph.transaction() as t:
                    t.delete(Person, id)
                return None
            return [graph.delete(Person, id), graph.delete(Place.ref(id))]

        self.both(who, call)

    @rule(who=who, shards=st.integers(2, 4), value=names)
    def grow(self, who: int, shards: int, value: str) -> None:
        if self.is_adaptive:
            for graph in (self.graphs[who], self.alone[who]):
                announce(graph, "PERSON#name", shards, {value or "x": shards} if "#" not in value else {})
            self.clock.pass_grace()

    @rule(who=who, limit=st.integers(1, 3), id=ids)
    def pages_are_not_for_others(self, who: int, limit: int, id: str) -> None:
        queries: list[Callable[[Graph], Any]] = [
            lambda graph: graph.find(Person),
            lambda graph: graph.find(Person, field("age").exists()),
            lambda graph: graph.find(Knows, order="note"),
            lambda graph: graph.out(id, Lives),
            lambda graph: graph.into(id, Lives),
            lambda graph: graph.out(id, Knows),
            lambda graph: graph.collection(Person.ref(id)),
        ]
        for query_of in queries:
            token = query_of(self.graphs[who]).page(limit=limit).next
            if token is not None:
                with pytest.raises(InvalidCursor):
                    query_of(self.graphs[1 - who]).page(limit=limit, after=token)

    @invariant()
    def each_is_as_if_alone(self) -> None:
        for who in (0, 1):
            self.both(who, lambda graph: graph.get_many(Person, IDS))
            self.both(who, lambda graph: [graph.get(Person, email=name) for name in ("x", "acme")])
            self.both(who, lambda graph: list(graph.find(Person)))
            self.both(who, lambda graph: list(graph.find(Person, field("name") == "x").where(field("age") > 0)))
            self.both(
                who, lambda graph: [list(graph.find(Person, order="age")), graph.find(Person, order="age").count()]
            )
            self.both(who, lambda graph: list(graph.find(Place, field("path").begins_with(("x",)))))
            self.both(who, lambda graph: list(graph.find(Knows).nodes()))
            for id in IDS:
                self.both(who, lambda graph, id=id: [list(graph.out(id, Lives)), list(graph.into(id, Lives))])
                self.both(who, lambda graph, id=id: [list(graph.out(id, Knows)), graph.into(id, Lives).count()])
                self.both(who, lambda graph, id=id: _collected(graph, id))
                self.both(who, lambda graph, id=id: list(graph.collection(Place.ref(id), direction="into")))
            changes = [(change.kind, change.old, change.new) for change in self.graphs[who].changes()]
            assert changes == [(change.kind, change.old, change.new) for change in self.alone[who].changes()]
        self.all_items_are_somebody_s()

    def all_items_are_somebody_s(self) -> None:
        stored = scanned(replace_store(self.graphs[0], self.store))
        # What is recorded about a whole table is nobody's.
        per_tenant = [
            [item for item in scanned(graph) if SHARDS not in item and DECLARED not in item] for graph in self.alone
        ]
        assert len(stored) == sum(map(len, per_tenant))
        for tenant, mine in zip(self.tenants, per_tenant, strict=True):
            prefix = tenant_prefix(tenant)
            key = self.graphs[0]._layout.definition.partition.name
            assert sum(item[key]["S"].startswith(prefix) for item in stored) == len(mine)


def _collected(graph: Graph, id: str) -> Any:
    collection = graph.collection(Person.ref(id))
    return [collection.node, collection.edges, collection.others]


class _Raw:
    def __init__(self, layout: Any, store: Store) -> None:
        self._layout, self._store = layout, store


def replace_store(graph: Graph, store: Store) -> Any:
    """The same table, looked at past the guard."""
    return _Raw(graph._layout, store)


TestTenants = TenantsMachine.TestCase
TestTenants.settings = settings(
    max_examples=examples(9), stateful_step_count=15, deadline=None, suppress_health_check=[*HealthCheck]
)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_value_is_unique_in_each(layout: str) -> None:
    store = SQLiteStore(":memory:")
    one, other = (opened(store, tenant, LAYOUTS[layout]) for tenant in ("one", "other"))
    one.add(Person(id="a", email="x"))
    other.add(Person(id="b", email="x"))
    with pytest.raises(AlreadyExists, match="belongs to Person 'a'"):
        one.add(Person(id="b", email="x"))
    assert one.get(Person, email="x") == one.get(Person, "a")
    assert other.get(Person, email="x") == other.get(Person, "b")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_table_of_many_tenants_is_not_for_one_to_drop(layout: str) -> None:
    store = SQLiteStore(":memory:")
    graph = opened(store, "acme", LAYOUTS[layout])
    with pytest.raises(InvalidRequest, match=r"the tenant 'acme', and other tenants share its table; drop the table"):
        graph.drop_table()
    Graph(store, MODELS, LAYOUTS[layout]).drop_table()


@pytest.mark.parametrize("tenant", ["", "#", "a#b", "a\n"])
def test_a_tenant_s_name_cannot_end_early(tenant: str) -> None:
    with pytest.raises(InvalidKey, match="cannot name a tenant"):
        Graph(":memory:", MODELS, tenant=tenant)


def test_explained_requests_are_the_tenant_s() -> None:
    with Graph(":memory:", MODELS, tenant="acme") as graph:
        explained = graph.explain(graph.find(Person, field("name") == "x"))
        assert explained.partitions == ("acme#PERSON#name#0",)


@cache
def bound_to(layout: str, tenant: str) -> BoundLayout:
    return LAYOUTS[layout].bind(Schema(MODELS), tenant)


@given(st.sampled_from(TENANTS), st.text(min_size=1, max_size=5))
def test_no_id_leaves_its_tenant(tenant: str, id: str) -> None:
    for layout in LAYOUTS:
        bound, other = bound_to(layout, tenant), bound_to(layout, tenant + "x")
        (item,) = bound.items(Person(id=id, name=id))
        partitions = [bound.definition.partition.name, *(index.partition.name for index in bound.definition.indexes)]
        for name in partitions:
            if name in item:
                assert item[name]["S"].startswith(tenant_prefix(tenant))
        assert bound.read(item) == Person(id=id, name=id)
        assert other.is_bookkeeping(item), "another tenant does not know it"
        assert replace(Get("t", bound.key_of(item)), consistent=True).key == bound.key_of(item)
