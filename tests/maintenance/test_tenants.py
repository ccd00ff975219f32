"""One maintainer, one Lambda function, one rebuild and one audit for all tenants of a table, and for who is of none."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjoin import (
    AdjacencyList,
    AsyncGraph,
    Copy,
    Count,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidKey,
    Keys,
    MaterializedGraph,
    Max,
    Node,
    StoreClosed,
    Sum,
    Unique,
    aws,
)
from adjoin.batch.exports import write_export
from adjoin.layouts.interface import Layout
from adjoin.requests import Delete, DescribeTable, Get, Put, Request, Response
from adjoin.schema import Schema
from adjoin.stores.sqlite import SQLiteStore
from tests.aws.event_source_mapping import Context, Table, event_of
from tests.faults import FaultyStore
from tests.maintenance.models import SHOP, Customer, Placed
from tests.maintenance.simulation import stored
from tests.shares import stride


class Shop(Node):
    id: str
    name: Annotated[str, Indexed()] = ""
    city: Annotated[str, Indexed()] = ""
    mail: Annotated[str | None, Unique()] = None
    sold: Annotated[int, Count("Sold")] = 0
    total: Annotated[int, Sum("Sold", field="price")] = 0
    best: Annotated[int | None, Max("Sold", field="price")] = None


class Item(Node):
    id: str
    shops: Annotated[int, Count("Sold")] = 0


class Sold(Edge[Shop, Item]):
    price: int = 0
    shop: Annotated[str, Copy("source.name")] = ""


MODELS: list[Any] = [Shop, Item, Sold]
LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "materialized graph": MaterializedGraph(),
    "inverted index": AdjacencyList(node="{node}", edge="{target}", reverse=Index("GSI_1", "SK"), escape=True),
}
TENANTS = (None, "acme", "SHOP", "ü&/")
"""One of them is called like a class."""


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> Layout:
    return LAYOUTS[request.param]


@pytest.fixture
def store() -> Iterator[FaultyStore]:
    faulty = FaultyStore(SQLiteStore(":memory:"))
    faulty.dump = faulty.inner.dump  # type: ignore[attr-defined]
    yield faulty
    faulty.close()


@pytest.fixture
def g(store: FaultyStore, layout: Layout) -> Graph:
    return Graph(store, MODELS, layout)


def of(g: Graph, tenant: str | None) -> Graph:
    return g if tenant is None else g.for_tenant(tenant)


def fill(g: Graph) -> None:
    """The same ids everywhere, with another number of edges for each; one id looks like what adjoin keeps."""
    for number, tenant in enumerate(TENANTS):
        graph = of(g, tenant)
        graph.put_many([Shop(id="S1", name=f"n{number}"), Shop(id="=", name="odd")])
        for item in range(number + 1):
            graph.put(Item(id=f"I{item}"))
            graph.put(Sold(source="S1", target=f"I{item}", price=10 * number + item))
        graph.put(Sold(source="=", target="I0", price=1))


def assert_true(g: Graph) -> None:
    for number, tenant in enumerate(TENANTS):
        graph, count = of(g, tenant), number + 1
        prices = [10 * number + item for item in range(count)]
        shop = Shop(id="S1", name=f"n{number}", sold=count, total=sum(prices), best=max(prices))
        assert graph.get(Shop, "S1") == shop, tenant
        assert graph.get(Shop, "=") == Shop(id="=", name="odd", sold=1, total=1, best=1), tenant
        assert graph.get(Item, "I0") == Item(id="I0", shops=2), tenant
        assert {edge.shop for edge in graph.out("S1", Sold)} == {f"n{number}"}


def spoil(g: Graph) -> None:
    """Another value in every shop, as somebody wrote it who knows nothing of rules."""
    for tenant in TENANTS:
        graph = of(g, tenant)
        key = graph._layout.node_key(graph._schema.node(Shop), "S1")
        response: Any
        (response,) = graph._store.execute((Get("adjoin", key),))
        graph._store.execute((Put("adjoin", response.item | {"total": {"N": "77"}}),))


def test_one_maintainer(g: Graph) -> None:
    fill(g)
    report = g.maintain(once=True)
    assert report.set_aside == ()
    assert_true(g)
    for tenant in TENANTS:
        of(g, tenant).disconnect(Sold, "=", "I0")
        of(g, tenant).update(Shop, "S1", name="other")
    g.maintain(once=True)
    for number, tenant in enumerate(TENANTS):
        graph = of(g, tenant)
        assert graph.get(Shop, "=") == Shop(id="=", name="odd"), tenant
        assert {edge.shop for edge in graph.out("S1", Sold)} == {"other"}
        assert len(list(graph.out("S1", Sold))) == number + 1


def test_maintainers_of_tenants_beside_it(g: Graph) -> None:
    fill(g)
    of(g, "acme").maintain(once=True)
    g.maintain(once=True)
    of(g, "acme").maintain(once=True)
    of(g, "SHOP").maintain(once=True)
    g.maintain(once=True)
    assert_true(g)
    assert g.health().lag == 0.0
    assert of(g, "ü&/").health().at is None, "nobody maintained it by itself"


def test_an_async_maintainer(layout: Layout, tmp_path: Path) -> None:
    file = f"{tmp_path / 'graph.db'}?durability=process"

    async def main() -> None:
        async with AsyncGraph(file, MODELS, layout) as graph:
            acme = graph.for_tenant("acme")
            await acme.put_many([Shop(id="S1"), Item(id="I1"), Sold(source="S1", target="I1", price=4)])
            await graph.maintain(once=True)
            shop = await acme.get(Shop, "S1")
            assert shop is not None
            assert shop.total == 4
            async with graph.for_tenant("acme") as again:
                assert await again.get(Shop, "S1") == shop
            assert await acme.get(Shop, "S1") == shop
            assert await graph.get(Shop, "S1") is None

    asyncio.run(main())


def test_one_function(g: Graph) -> None:
    fill(g)
    handler, table = aws.lambda_handler(g), Table(g, g._store)
    while records := list(table.records()):
        assert handler({"Records": records}, Context()) == {"batchItemFailures": []}
    assert_true(g)


def test_what_the_filter_lets_through_is_enough_for_tenants(g: Graph, layout: Layout) -> None:
    pattern = aws.stream_filter(MODELS, layout)
    fill(g)
    for record in event_of(g)["Records"]:
        key = record["dynamodb"]["Keys"]
        own = g._layout if (tenant := g._layout.tenant_in(key)) is None else g._layout.for_tenant(tenant)
        if not own.is_bookkeeping(key) and pattern is not None:
            ((name, wanted),) = pattern["dynamodb"]["Keys"].items()
            assert any(key[name]["S"].startswith(each["prefix"]) for each in wanted["S"]), key


def test_what_is_set_aside_is_the_tenant_s_own(g: Graph) -> None:
    fill(g)
    acme = of(g, "acme")
    key = acme._layout.edge_key(acme._schema.edge(Sold), "S1", "I1", {})
    g._store.execute((Put("adjoin", key | {"price": {"S": "much"}}),))
    report = g.maintain(once=True)
    assert {each.rule for each in report.set_aside} == {"SHOP.total", "SHOP.best"}
    assert (g.health().set_aside, acme.health().set_aside) == (0, 2)
    broken = {"eventName": "EXPLODE", "dynamodb": {"SequenceNumber": "1", "Keys": key}}
    aws.lambda_handler(g)({"Records": [broken, {"dynamodb": {"Keys": {"PK": 5}}}]}, Context())
    assert (g.health().set_aside, acme.health().set_aside) == (1, 3)


@pytest.mark.simulation
@pytest.mark.parametrize("layout", ["materialized graph", "adjacency list"][:: stride(2)], indirect=True)
def test_one_rebuild(g: Graph, tmp_path: Path) -> None:
    fill(g)
    g.maintain(once=True)
    spoil(g)
    diff = tmp_path / "diff.jsonl"
    dry = g.rebuild(dry_run=True, diff=diff)
    assert (dry.differ, dry.written) == (len(TENANTS), 0)
    lines = [json.loads(line) for line in diff.read_text().splitlines()]
    assert [line.get("tenant") for line in lines] == [None, *sorted(filter(None, TENANTS))]
    assert {(line["name"], line["node"], line["stored"]) for line in lines} == {("SHOP.total", "S1", 77)}
    rebuilt = g.rebuild()
    assert rebuilt.written == len(TENANTS)
    assert {tenant: each.written for tenant, each in rebuilt.tenants.items()} == {"acme": 1, "SHOP": 1, "ü&/": 1}
    assert rebuilt.counts == {"SHOP": 2 * 4, "ITEM": 1 + 2 + 3 + 4, "SOLD": 1 + 2 + 3 + 4 + 4}
    assert_true(g)
    assert of(g, "acme").health().rebuilt_at is not None


@pytest.mark.parametrize("layout", ["adjacency list"], indirect=True)
def test_a_tenant_s_rebuild_is_of_that_tenant(g: Graph) -> None:
    fill(g)
    g.maintain(once=True)
    spoil(g)
    assert of(g, "acme").rebuild().written == 1
    assert g.rebuild(dry_run=True).differ == len(TENANTS) - 1


@pytest.mark.simulation
@pytest.mark.parametrize("layout", ["adjacency list", "materialized graph"][:: stride(2)], indirect=True)
def test_one_audit(g: Graph, tmp_path: Path) -> None:
    fill(g)
    g.maintain(once=True)
    spoil(g)
    audit = g.verify(repair=True, report=tmp_path / "report.json")
    assert audit.tenants == tuple(sorted(filter(None, TENANTS)))
    found, beside = audit.findings
    assert (found.kind, found.name, found.count) == ("aggregate", "SHOP.total", len(TENANTS))
    # The copies for an index have the value that was spoilt on the node only. The items of tenants are read before
    # anything is repaired; those of the graph itself are read again, and agree by then.
    assert (beside.kind, beside.count) == ("index entry", len(TENANTS) - 1)
    assert [each.get("tenant") for each in found.examples] == [None, *sorted(filter(None, TENANTS))]
    assert json.loads((tmp_path / "report.json").read_text())["faults"] == audit.faults
    assert audit.left == 0
    assert g.verify()
    assert_true(g)


@pytest.mark.parametrize("layout", ["adjacency list"], indirect=True)
def test_what_stands_beside_a_tenant_s_nodes_is_looked_at(g: Graph) -> None:
    acme = of(g, "acme")
    acme.put(Shop(id="S1", name="n", city="c", mail="m"))
    assert g.verify()
    beside = [item for item in stored(acme) if "adjoin:owner" in item]
    assert len(beside) == 1
    acme._store.execute((Delete("adjoin", acme._layout.key_of(beside[0])),))
    (finding,) = g.verify(repair=True).findings
    assert (finding.kind, finding.examples[0]["tenant"], finding.repaired) == ("claim", "acme", 1)
    assert acme.get(Shop, mail="m") is not None


@pytest.mark.parametrize("layout", ["adjacency list"], indirect=True)
def test_an_export_of_all_tenants(g: Graph, tmp_path: Path) -> None:
    fill(g)
    with g._store.dump("adjoin") as pieces:  # type: ignore[attr-defined]
        write_export(pieces, tmp_path, "adjoin")
    # Nothing was counted when it was made, and nothing has been since.
    rebuilt = g.rebuild(tmp_path)
    assert set(rebuilt.tenants) == set(filter(None, TENANTS))
    g.maintain(once=True)
    assert_true(g)
    assert g.rebuild("scan").differ == 0


@pytest.mark.parametrize("layout", ["adjacency list"], indirect=True)
def test_what_others_keep_in_the_table_is_no_tenant(g: Graph) -> None:
    pk, sk = (key.name for key in g._layout.definition.keys)
    for partition in ("ORDER#5", "a#b#c", "##", "#x", "x#", "SHOP#", "ORDER#5#=x"):
        g._store.execute((Put("adjoin", {pk: {"S": partition}, sk: {"S": "whatever"}}),))
    g.put(Shop(id="S1"))
    g.maintain(once=True)
    assert g.rebuild(dry_run=True).tenants == {}


class Room(Node):
    id: str


def test_what_is_of_a_class_without_a_tenant_is_nobody_s() -> None:
    """Even if what is behind its first part is the key of another class."""
    bound = AdjacencyList(keys={Room: Keys(partition="{id}")}).bind(Schema([Room, *MODELS]))
    keys = {"SHOP#S1": None, "S1": None, "acme#S1": "acme", "acme#SHOP#S1": "acme", "SHOP#SHOP#S1": "SHOP", "#S1": None}
    found = {text: bound.tenant_in({"PK": {"S": text}, "SK": {"S": "#META"}}) for text in keys}
    assert found == keys
    assert bound.for_tenant("acme").tenant_in({"PK": {"S": "beta#S1"}, "SK": {"S": "#META"}}) is None


@pytest.mark.parametrize("layout", ["adjacency list"], indirect=True)
def test_tenants_that_are_many(g: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few of them are known at a time, and few of their files are open."""
    monkeypatch.setattr("adjoin.layouts.bound._KNOWN_TENANTS", 2)
    monkeypatch.setattr("adjoin.batch.slices._OPEN_FILES", 2)
    names = [f"t{number}" for number in range(3)]
    for item in range(2):
        for name in names:
            g.for_tenant(name).put_many([Shop(id="S1"), Sold(source="S1", target=f"I{item}", price=3)])
    g.maintain(once=True)
    assert len(g._layout._tenants) == 2
    for name in names:
        shop = g.for_tenant(name).get(Shop, "S1")
        assert shop is not None
        assert (shop.sold, shop.total) == (2, 6)
    audit = g.verify()
    assert (audit.tenants, audit.counts["SOLD"]) == (tuple(names), 6)


def test_tenants_that_are_not_needed_any_more_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjoin.layouts.bound._KNOWN_TENANTS", 2)
    with Graph(":memory:", SHOP) as g:
        layouts = []
        for number in range(5):
            view = g.for_tenant(f"t{number}")
            view.put_many([Customer(id="C1"), Placed(source="C1", target="I1")])
            g.maintain(once=True)
            layouts.append(weakref.ref(view._layout))
            del view
        gc.collect()
        assert [each() is None for each in layouts] == [True, True, True, False, False]


# --- for_tenant --------------------------------------------------------------------------------


class Counting(FaultyStore):
    """Counts descriptions of the table, of which the service allows few."""

    described = 0
    is_closed = False

    def _one(self, request: Request) -> Response:
        self.described += isinstance(request, DescribeTable)
        return super()._one(request)

    def close(self) -> None:
        self.is_closed = True
        super().close()


def test_a_view_shares_the_store_and_leaves_it_open(layout: Layout) -> None:
    counting = Counting(SQLiteStore(":memory:"))
    with Graph(counting, MODELS, layout, consistent=True, cursor_secret="x") as g:
        described = counting.described
        with g.for_tenant("acme") as acme:
            acme.put(Shop(id="S1", name="Ann"))
            assert acme._store is g._store
            assert acme._consistent
        assert not counting.is_closed
        assert acme.get(Shop, "S1") == Shop(id="S1", name="Ann"), "closing a view closes nothing"
        assert g.get(Shop, "S1") is None
        beta = acme.for_tenant("beta")
        assert beta.get(Shop, "S1") is None
        assert list(g.for_tenant("acme").find(Shop)) == [Shop(id="S1", name="Ann")]
        sent = counting.sent
        g.for_tenant("acme")
        assert counting.sent == sent, "what is known of a tenant is not asked again"
        assert counting.described == described
        with pytest.raises(InvalidKey, match="cannot name a tenant"):
            g.for_tenant("a#b")
    assert counting.is_closed


def test_a_view_of_a_closed_graph_is_closed(tmp_path: Path) -> None:
    with Graph(tmp_path / "graph.db", MODELS) as g:
        acme = g.for_tenant("acme")
    with pytest.raises(StoreClosed):
        acme.get(Shop, "S1")


def test_queries_of_a_view_are_the_tenant_s(g: Graph) -> None:
    acme = g.for_tenant("acme")
    acme.put(Sold(source="S1", target="I1", price=2))
    assert [edge.price for edge in acme.out("S1", Sold)] == [2]
    assert list(g.out("S1", Sold)) == []
    assert acme.explain(acme.get, Shop, "S1").partitions == ("acme#SHOP#S1",)


@given(st.lists(st.sampled_from(["acme", "SHOP", "ITEM", "s1", "=", "M", ""]), min_size=1, max_size=5), st.booleans())
def test_what_a_key_alone_tells_to_be_nobodys_is_no_node_and_no_edge_of_any_tenant(parts: list[str], own: bool) -> None:
    layout = AdjacencyList().bind(Schema([Shop, Item, Sold]))
    key = {"PK": {"S": "#".join(parts)}, "SK": {"S": "=M" if own else "#META"}}
    tenant = layout.tenant_in(key)

    if layout.is_own_record(key):
        assert tenant is None
        assert layout.is_bookkeeping(key)
    else:
        whose = layout if tenant is None else layout.for_tenant(tenant)
        assert not whose.is_bookkeeping(key) or tenant is None
