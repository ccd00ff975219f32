"""What others spoilt is found, told and made true again; and what was never counted is counted."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import pytest

from adjoin import AsyncGraph, Edge, Graph, Indexed, InvalidValue, MaterializedGraph, Node, field
from adjoin.aggregates import Copy, Count, Max, PageRank, Sum
from adjoin.batch.exports import write_export
from adjoin.batch.sources import dump_of
from adjoin.errors import ItemTooLarge
from adjoin.expressions import Remove, Set, Value, attribute
from adjoin.layouts.ledgers import RANK_END
from adjoin.plans.maintenance.rank_items import BASE, HOME, PARTITION
from adjoin.requests import Delete, Put, Query, Request, Response, Update
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore, Interrupted
from tests.maintenance.ledgers import entries_of, is_ledger, is_rank, spoilt, stray
from tests.maintenance.models import (
    ALBUMS,
    MODELS,
    PARTS,
    SHOP,
    Album,
    Bill,
    Contains,
    Customer,
    Invoice,
    OnAlbum,
    Part,
    Placed,
    Track,
    Uses,
)
from tests.maintenance.simulation import LateIndexes, stored
from tests.maintenance.test_crashes import happen, happen_again
from tests.maintenance.test_simulation import check, unnamed_ranks
from tests.servers.open import Stores

LAYOUTS: list[tuple[Any, str | None]] = [(None, None), (MaterializedGraph(), None), (None, "acme")]


def filled(location: Any, layout: Any = None, tenant: str | None = None) -> Graph:
    """Customers and albums, everything counted."""
    graph = Graph(location, [*SHOP, *ALBUMS], layout, tenant=tenant)
    graph.put_many([Customer(id=f"C{n}", name=f"c{n}") for n in range(5)])
    graph.put_many([Invoice(id=f"I{n}", weight=n) for n in range(10)])
    graph.put_many([Bill(id=f"B{n}", amount=Decimal(n) / 2) for n in range(10)])
    graph.put_many(
        [Placed(source=f"C{n % 5}", target=f"I{n}", balance=Decimal(n) / 4, day=n, status="open") for n in range(10)]
    )
    graph.put_many([Contains(source=f"I{n}", target=f"B{n}", note=f"n{n}") for n in range(10)])
    graph.put_many([*(Album(id=f"A{n}") for n in range(2)), *(Track(id=f"T{n}", title=f"t{n}") for n in range(4))])
    for number in range(4):
        graph.connect(OnAlbum, f"A{number % 2}", f"T{number}", seconds=100 + number)
    graph.maintain(once=True)
    return graph


class Spoilt:
    """Requests behind a graph's back."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._layout = graph, graph._layout
        self._items = stored(graph)

    def all(self) -> Iterator[Request]:
        yield self.node(Customer, "C1", Set(attribute("owed"), Value({"N": "99"})))
        yield self.node(Customer, "C1", Set(attribute("invoices"), Value({"S": "many"})))
        yield self.node(Customer, "C2", Remove(attribute("smallest")))
        yield self.node(Album, "A0", Set(attribute("seconds"), Value({"N": "1"})))
        hidden = next(rule for rule in self._layout.rules.rules if rule.name == "CUSTOMER.bills:1")
        yield self.node(Invoice, "I3", Set(attribute(hidden.attribute), Value({"N": "8"})))
        yield Delete(self._layout.table, self.key(self.ledger("PLACED.out", "C3")))
        yield Delete(self._layout.table, self.key(self.ledger("PLACED.out.far", "C4")))
        yield Put(self._layout.table, stray(self._layout, self.ledger("PLACED.into", "I5")))
        other = self.ledger("PLACED.into", "I6")
        yield Put(self._layout.table, spoilt(other, "i", self.key_of_rule("INVOICE.customers"), "3"))
        yield Delete(self._layout.table, self.key(self.rank("CUSTOMER.top", "C0")))
        rank = self.rank("ALBUM.longest", "A1")
        sort = list(self.key(rank))[1]
        # Nobody names the one; the other needs nobody, as those of earlier versions.
        yield Put(self._layout.table, rank | {sort: {"S": rank[sort]["S"][:-3] + "abc"}})
        untold = {name: value for name, value in rank.items() if name not in (HOME, PARTITION, BASE)}
        yield Put(self._layout.table, untold | {sort: {"S": rank[sort]["S"][: -RANK_END + 1] + "0" * 20}})
        first = self.rank("CUSTOMER.smallest", "C2")
        yield Put(self._layout.table, first | {"value": {"N": "55"}})
        last = self.rank("CUSTOMER.last", "C2")
        yield Put(self._layout.table, last | {"by": {"N": "55"}})
        edge = self._layout.edge_key(self._layout.schema.edge(Placed), "C2", "I7", {})
        yield Update(self._layout.table, edge, (Set(attribute("customer"), Value({"S": "stale"})),))
        track = self._layout.node_key(self._layout.schema.node(Track), "T3")
        yield Delete(self._layout.table, track)

    EXPECTED = {
        ("aggregate", "CUSTOMER.owed"): 1,
        ("aggregate", "CUSTOMER.invoices"): 1,
        ("aggregate", "CUSTOMER.smallest"): 1,
        ("aggregate", "ALBUM.seconds"): 1,
        ("aggregate", "CUSTOMER.bills:1"): 1,
        ("ledger", "PLACED.out"): 2,
        ("ledger", "PLACED.out.far"): 1,
        ("ledger", "PLACED.into"): 3,
        ("rank", "CUSTOMER.top"): 2,
        ("rank", "ALBUM.longest"): 1,
        ("copy", "PLACED.customer"): 1,
        ("dangling", "ON_ALBUM"): 1,
        ("rank", "CUSTOMER.largest"): 1,
        **{("rank", f"CUSTOMER.{name}"): 2 for name in ("smallest", "last")},
    }
    """A ledger is lost or made up for both ends. One that is made up names ranks that are not there; those of a lost
    one count for nobody, and are no fault. One that outlives its node, as that of the lost track does, is void and
    none either."""

    def node(self, model: type[Any], id: str, action: Any) -> Request:
        key = self._layout.node_key(self._layout.schema.node(model), id)
        return Update(self._layout.table, key, (action,), self._layout.present)

    def key(self, item: Any) -> Any:
        return self._layout.key_of(item)

    def ledger(self, account: str, id: str) -> Any:
        return next(
            item
            for item in filter(is_ledger, self._items)
            for ref, _ in entries_of(self._layout, item)
            if ref.account.name == account and ref.near.endswith(f"#{id}")
        )

    def key_of_rule(self, name: str) -> str:
        return next(rule.key for rule in self._layout.rules.rules if rule.name == name)

    def rank(self, rule: str, id: str) -> Any:
        return next(
            item
            for item in self._items
            if is_rank(self._layout, item)
            and f"#{self.key_of_rule(rule)}#" in list(self.key(item).values())[1]["S"]
            and f"#{id}#=" in next(iter(self.key(item).values()))["S"]
        )


def found(audit: Any) -> dict[tuple[str, str], int]:
    return {(each.kind, each.name): each.count for each in audit.findings}


@pytest.mark.parametrize(("layout", "tenant"), LAYOUTS, ids=["list", "graph", "tenant"])
def test_each_fault_is_found_and_repaired(tmp_path: Path, layout: Any, tenant: str | None) -> None:
    with filled(tmp_path / "g.db", layout, tenant) as graph:
        assert found(graph.verify(threads=1)) == {}
        for request in Spoilt(graph).all():
            graph._store.execute((request,))
        audit = graph.verify(threads=1)
        assert found(audit) == Spoilt.EXPECTED
        examples = {(each.kind, each.name): each.examples[0] for each in audit.findings}
        assert examples["aggregate", "CUSTOMER.owed"] == {"node": "C1", "stored": 99, "computed": Decimal("1.75")}
        assert examples["rank", "CUSTOMER.top"] == {"node": "C0", "fault": "missing rank"}
        examples_of = {each.name: [str(example.get("fault")) for example in each.examples] for each in audit.findings}
        assert sorted(examples_of["CUSTOMER.last"]) == ["different rank", "missing rank"]
        assert examples_of["ALBUM.longest"] == ["stray rank"]
        assert examples_of["PLACED.out"] == ["stray", "missing"]
        repaired = graph.verify(repair=[True, "dangling"], threads=1)
        assert found(repaired) == Spoilt.EXPECTED
        assert repaired.left == 0
        assert found(graph.verify(threads=1)) == {}
        assert unnamed_ranks(graph) == []
        check(graph)
        # What is changed afterwards is counted as if nothing had happened.
        graph.update(Placed, "C3", "I3", balance=Decimal(9))
        graph.disconnect(Placed, "C0", "I0")
        graph.disconnect(OnAlbum, "A1", "T1")
        graph.put_many([Placed(source="C1", target="I5", balance=Decimal("0.1")), Bill(id="B4", amount=Decimal(50))])
        graph.maintain(once=True)
        check(graph)
        assert found(graph.verify(threads=1)) == {}


def test_only_some_kinds_are_repaired(tmp_path: Path) -> None:
    with filled(tmp_path / "g.db") as graph:
        for request in itertools.islice(Spoilt(graph).all(), 1):
            graph._store.execute((request,))
        (stale,) = [each for each in Spoilt(graph).all() if isinstance(each, Update) and "customer" in repr(each)]
        graph._store.execute((stale,))
        graph.verify(repair=["copy"], threads=1)
        assert found(graph.verify(threads=1)) == {("aggregate", "CUSTOMER.owed"): 1}


# --- the first count ---------------------------------------------------------------------------


class OldShop(Node, label="SHOP"):
    id: str
    trusted: int = 0


class OldSold(Edge[OldShop, OldShop], label="SOLD"):
    amount: int
    kind: str = "x"


class Shop(Node):
    id: str
    trusted: Annotated[int, Count("Sold")] = 0
    balance: Annotated[int, Sum("Sold", field="amount")] = 0
    largest: Annotated[int | None, Max("Sold", field="amount")] = None
    reached: Annotated[int, Sum("Sold", "Sold", field="amount")] = 0
    bought: Annotated[int, Count("Sold", direction="into")] = 0


class Sold(Edge[Shop, Shop]):
    amount: int
    kind: str = "x"


def test_an_aggregate_that_was_just_declared_is_built(tmp_path: Path) -> None:
    with Graph(tmp_path / "g.db", [OldShop, OldSold]) as old:
        # Some other program counted, and was right; and sums that cancel out look as if nothing was to do.
        old.put_many([OldShop(id="S1", trusted=2), OldShop(id="S2"), OldShop(id="S3", trusted=7)])
        old.put_many([OldSold(source="S1", target="S2", amount=5), OldSold(source="S1", target="S3", amount=-5)])
        old.put(OldSold(source="S2", target="S1", amount=4))
    with Graph(tmp_path / "g.db", [Shop, Sold]) as graph:
        rebuilt = graph.rebuild(threads=1)
        assert rebuilt.left == 0
        assert rebuilt.uncounted > 0
        one, two, three = graph.get_many(Shop, ["S1", "S2", "S3"])
        assert one == Shop(id="S1", trusted=2, balance=0, largest=5, reached=4, bought=1)
        assert two == Shop(id="S2", trusted=1, balance=4, largest=4, reached=0, bought=1)
        assert three == Shop(id="S3", trusted=0, bought=1)
        assert graph.verify(threads=1)
        graph.update(Sold, "S1", "S2", amount=7)
        graph.maintain(once=True)
        assert graph.get(Shop, "S1") == Shop(id="S1", trusted=2, balance=2, largest=7, reached=4, bought=1)
        assert graph.verify(threads=1)


def test_another_rule_in_an_account_is_built(tmp_path: Path) -> None:
    with Graph(tmp_path / "g.db", [Shop, Sold]) as graph:
        graph.put_many([Shop(id="S1"), Shop(id="S2"), Sold(source="S1", target="S2", amount=5)])
        graph.maintain(once=True)
        assert graph.verify(threads=1)

    class More(Node, label="SHOP"):
        id: str
        trusted: Annotated[int, Count("SoldMore")] = 0
        balance: Annotated[int, Sum("SoldMore", field="amount")] = 0
        largest: Annotated[int | None, Max("SoldMore", field="amount")] = None
        reached: Annotated[int, Sum("SoldMore", "SoldMore", field="amount")] = 0
        bought: Annotated[int, Count("SoldMore", direction="into")] = 0
        twice: Annotated[int, Sum("SoldMore", field="amount")] = 0

    class SoldMore(Edge[More, More], label="SOLD"):
        amount: int
        kind: str = "x"

    with Graph(tmp_path / "g.db", [More, SoldMore]) as graph:
        assert found(graph.verify(threads=1)) == {("declaration", "SHOP.twice"): 1}
        graph.rebuild(threads=1)
        assert graph.get(More, "S1") == More(id="S1", trusted=1, balance=5, largest=5, twice=5)
        assert graph.verify(threads=1)


def test_subtrees_are_built_and_circles_told(tmp_path: Path) -> None:
    with Graph(tmp_path / "g.db", PARTS) as graph:
        graph.put_many([Part(id=f"P{n}", cost=n) for n in range(8)])
        graph.put_many([Uses(source=f"P{n}", target=f"P{m}") for n in range(5) for m in (n + 1, n + 2)])
        rebuilt = graph.rebuild(threads=1)
        assert rebuilt.left == 0
        check(graph)
        assert graph.verify(threads=1)
        graph.put(Uses(source="P6", target="P3"))
        report = graph.rebuild(threads=1)
        assert all(result.circular > 0 for result in report.results)
        assert {each.kind for each in graph.verify(repair=True, threads=1).findings} == {"circle"}


# --- interruptions -----------------------------------------------------------------------------


def exported(graph: Graph, folder: Path) -> str:
    lines = dump_of(graph._store, graph._layout.table).lines()
    return str(write_export(lines, folder, graph._layout.table).place)


def test_an_interrupted_rebuild_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjoin.batch.restoring.ROUND", 2)
    monkeypatch.setattr("adjoin.batch.state.SAVE_SECONDS", 0)
    inner = SQLiteStore(":memory:")
    store = FaultyStore(inner)
    graph = Graph(store, MODELS)
    happen(graph)
    source = exported(Graph(inner, MODELS), tmp_path)
    done: list[int] = []
    state = tmp_path / "state.json"

    def watch(name: str, number: int) -> None:
        done.append(number)

    def rebuild() -> Any:
        return graph.rebuild(source, state=state, progress=watch, threads=1)

    for number in (8, 12, 14):
        store.stop_at(number, "after")
        with pytest.raises(Interrupted):
            rebuild()
        store.recover()
        if number == 12:
            happen_again(graph)
    assert state.exists()
    assert rebuild().left == 0
    assert not state.exists()
    graph.maintain(once=True)
    check(graph)


def test_nothing_is_lost_that_changes_after_the_export(tmp_path: Path) -> None:
    with filled(tmp_path / "g.db") as graph:
        for request in itertools.islice(Spoilt(graph).all(), 11):
            graph._store.execute((request,))
        source = exported(graph, tmp_path)
        graph.disconnect(Placed, "C1", "I1")
        graph.put(Placed(source="C1", target="I9", balance=Decimal(100)))
        graph.delete(Customer, "C2")
        rebuilt = graph.rebuild(source, threads=1)
        assert rebuilt.left == 0
        graph.maintain(once=True)
        check(graph)
        assert found(graph.verify(threads=1)) == {}


def test_a_node_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled(tmp_path / "g.db") as graph:
        key = graph._layout.node_key(graph._layout.schema.node(Customer), "C1")
        for request in itertools.islice(Spoilt(graph).all(), 1):
            graph._store.execute((request,))
        execute = graph._store.execute

        def refusing(requests: Sequence[Request]) -> list[Response]:
            if any(isinstance(request, Update) and request.key == key for request in requests):
                raise ItemTooLarge("Item size to update has exceeded the maximum allowed size")
            return execute(requests)

        monkeypatch.setattr(graph._store, "execute", refusing)
        audit = graph.verify(repair=True, threads=1)
        assert audit.left == 1
        finding = next(each for each in audit.findings if each.kind == "aggregate")
        assert "exceeded the maximum allowed size" in finding.failures[0]["reason"]
        assert finding.failures[0]["node"] == "CUSTOMER#C1"
        rebuilt = graph.rebuild(threads=1)
        assert (rebuilt.left, rebuilt.written) == (1, 0)


# --- both graphs -------------------------------------------------------------------------------


def test_awaited(tmp_path: Path) -> None:
    filled(tmp_path / "g.db").close()

    async def work() -> None:
        async with AsyncGraph(tmp_path / "g.db", [*SHOP, *ALBUMS]) as graph:
            key = graph._layout.node_key(graph._layout.schema.node(Customer), "C1")
            await graph._store.execute([Update("adjoin", key, (Set(attribute("owed"), Value({"N": "99"})),))])
            with graph.meter() as meter:
                told = await graph.verify(threads=1)
                assert found(told) == {("aggregate", "CUSTOMER.owed"): 1}
                assert (await graph.rebuild(threads=1)).written == 1
            assert meter.requests > 0
            customer = await graph.get(Customer, "C1")
            assert customer is not None
            assert customer.owed == Decimal("1.75")
            assert await graph.verify("scan", repair=True, report=tmp_path / "report.json", threads=1)

    asyncio.run(work())


@pytest.fixture
def on_service(servers: Stores) -> Iterator[Graph]:
    location = f"dynamodb://Audited-{uuid4().hex}?endpoint={servers.address('ministack')}"
    with Graph(location, [*SHOP, *ALBUMS]) as graph:
        graph.create_table()
        yield graph
        graph.drop_table()


def test_on_a_service(on_service: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjoin.batch.sources.INDEX_DELAY", 0.1)
    graph = on_service
    graph.put_many(
        [Customer(id="C1", name="c"), Invoice(id="I1"), Placed(source="C1", target="I1", balance=Decimal(3))]
    )
    with pytest.raises(InvalidValue, match='"scan"'):
        graph.verify(threads=1)
    assert graph.rebuild("scan", threads=1).left == 0
    customer = graph.get(Customer, "C1")
    assert customer is not None
    assert customer.owed == 3
    for request in itertools.islice(Spoilt(graph).all(), 2):
        graph._store.execute((request,))
    assert graph.verify("scan", repair=True, threads=1).left == 0
    assert graph.verify("scan", threads=1)


# --- while others write ------------------------------------------------------------------------


def test_writers_and_a_maintainer_go_on_meanwhile(tmp_path: Path) -> None:
    """Threads, each with a graph of its own on one file; the simulation has the fine grain."""
    with filled(tmp_path / "g.db") as graph:
        for request in itertools.islice(Spoilt(graph).all(), 11):
            graph._store.execute((request,))
    ended = threading.Event()

    def write(seed: int) -> None:
        chance = random.Random(seed)
        with Graph(tmp_path / "g.db", [*SHOP, *ALBUMS]) as own:
            while not ended.is_set():
                ends = f"C{chance.randrange(5)}", f"I{chance.randrange(10)}"
                if chance.random() < 0.5:
                    own.put(Placed(source=ends[0], target=ends[1], balance=Decimal(chance.randrange(99)) / 4))
                else:
                    own.disconnect(Placed, *ends)

    def maintain() -> None:
        with Graph(tmp_path / "g.db", [*SHOP, *ALBUMS]) as own:
            while not ended.is_set():
                own.maintain(once=True)

    with ThreadPoolExecutor(3) as pool, Graph(tmp_path / "g.db", [*SHOP, *ALBUMS]) as graph:
        others = [pool.submit(write, 1), pool.submit(write, 2), pool.submit(maintain)]
        try:
            rebuilt = [graph.rebuild(threads=1), graph.rebuild(threads=1)]
        finally:
            ended.set()
        for other in others:
            other.result()
        graph.maintain(once=True)
        check(graph)
        assert [each.left for each in rebuilt] == [0, 0]
        assert found(graph.verify(threads=1)) == {}


class Meanwhile:
    """A store that lets somebody else work between two requests, once: after the first query that `matches`."""

    creates_tables = True

    def __init__(self, store: SQLiteStore, matches: Callable[[Query], bool], work: Callable[[], object]) -> None:
        self._store, self._matches, self._work = store, matches, work
        self.has_worked = False

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        responses = self._store.execute(requests)
        if not self.has_worked and any(isinstance(each, Query) and self._matches(each) for each in requests):
            self.has_worked = True
            self._work()
        return responses

    def dump(self, table: str) -> Any:
        return self._store.dump(table)

    def close(self) -> None:
        self._store.close()


@pytest.mark.parametrize("way", ["rebuild", "verify"])
def test_a_count_that_looks_right_for_a_moment_is_counted_anew(tmp_path: Path, way: str) -> None:
    """It is one too low, and an edge comes and is counted after the edges were read, and before the node is."""
    with Graph(tmp_path / "g.db", [Shop, Sold]) as other:
        other.put_many([*(Shop(id=f"S{n}") for n in (1, 2, 3)), Sold(source="S1", target="S2", amount=5)])
        other.maintain(once=True)
        key = other._layout.node_key(other._layout.schema.node(Shop), "S2")
        other._store.execute([Update(other._layout.table, key, (Set(attribute("bought"), Value({"N": "0"})),))])

        def sell() -> None:
            other.put(Sold(source="S3", target="S2", amount=1))
            other.maintain(once=True)

        store = Meanwhile(SQLiteStore(tmp_path / "g.db"), lambda query: query.index is not None, sell)
        with Graph(store, [Shop, Sold]) as graph:
            if way == "rebuild":
                assert graph.rebuild(threads=1).left == 0
            else:
                assert graph.verify(repair=True, threads=1).left == 0
            assert store.has_worked
        other.maintain(once=True)
        assert [each.bought for each in other.get_many(Shop, ["S1", "S2"]) if each is not None] == [0, 2]
        assert found(other.verify(threads=1)) == {}


def test_no_index_has_to_know_an_edge_that_is_counted_for_the_first_time() -> None:
    models = [Shop, Sold]
    with Graph(LateIndexes(random.Random(0), models, pace=0), models) as graph:
        graph.put_many([Shop(id="S1"), Shop(id="S2"), Sold(source="S1", target="S2", amount=5)])
        graph.put(Sold(source="S2", target="S1", amount=4))
        assert graph.rebuild(threads=1).left == 0
        assert [each.bought for each in graph.get_many(Shop, ["S1", "S2"]) if each is not None] == [1, 1]
        assert found(graph.verify(threads=1)) == {}


class Resident(Node):
    id: str
    city: Annotated[str, Indexed()] = "Ulm"
    work: Annotated[str, Indexed()] = "cook"
    visits: Annotated[int, Count("Visits")] = 0
    farthest: Annotated[int | None, Max("Visits", field="distance")] = None
    rank: Annotated[Decimal | None, PageRank("Visits")] = None


class Visits(Edge[Resident, Resident]):
    distance: Annotated[int, Indexed()] = 0
    reason: Annotated[str, Indexed()] = ""
    to: Annotated[str, Copy("target.city")] = ""


@pytest.mark.parametrize(("layout", "tenant"), LAYOUTS)
def test_what_an_index_repeats_of_an_aggregate_is_audited_too(layout: Any, tenant: str | None) -> None:
    with Graph(":memory:", [Resident, Visits], layout, tenant=tenant) as graph:
        graph.put_many(Resident(id=id) for id in "abc")
        graph.connect(Visits, "a", "b", distance=3)
        graph.connect(Visits, "a", "c", distance=4)
        graph.maintain(once=True)
        graph.update(Resident, "c", city="Bonn")
        graph.disconnect(Visits, "a", "b")
        graph.put(Resident(id="a", work="baker"))
        graph.maintain(once=True)
        graph.rebuild(threads=1)
        assert graph.verify(threads=1).findings == ()
        (copy,) = (
            item for item in stored(graph) if item.get("visits") == {"N": "1"} and graph._layout.kind_of(item) is None
        )
        spoilt = Set(attribute("visits"), Value({"N": "77"}))
        graph._store.execute([Update(graph._layout.table, graph._layout.key_of(copy), (spoilt,))])
        (finding,) = graph.verify(repair=True, threads=1).findings
        assert (finding.kind, finding.count, finding.repaired) == ("index entry", 1, 1)
        assert graph.verify(threads=1).findings == ()
        for found in (field("city") == "Ulm", field("work") == "baker"):
            assert [each.visits for each in graph.find(Resident, found) if each.id == "a"] == [1]
