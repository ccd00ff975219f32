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

from adjoin import AdjacencyList, AsyncGraph, Edge, Graph, Indexed, InvalidValue, Keys, MaterializedGraph, Node, field
from adjoin.aggregates import Copy, Count, Max, PageRank, Sum
from adjoin.batch.exports import write_export
from adjoin.batch.sources import dump_of
from adjoin.errors import ItemTooLarge
from adjoin.expressions import Remove, Set, Value, attribute
from adjoin.layouts.own_items import RANK_END
from adjoin.plans.counting.ledger import EdgeRef
from adjoin.plans.counting.rank_items import BASE, HOME, PARTITION
from adjoin.plans.maintenance.neighbours import reconcile_found
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import Delete, Put, Query, Request, Response, Update
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore, Interrupted
from tests.maintenance.ledgers import entries_of, is_ledger, is_rank, spoilt, stray, unmarked
from tests.maintenance.models import (
    ALBUMS,
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
from tests.maintenance.test_simulation import check, check_ranks, unnamed_ranks
from tests.servers.open import Stores
from tests.shares import stride

EVERY_LAYOUT: list[tuple[Any, str | None]] = [
    (None, None),
    (None, "acme"),
    (MaterializedGraph(), None),
    (MaterializedGraph(), "acme"),
]
LAYOUTS = EVERY_LAYOUT[:: stride(3)]
"""In every run both layouts, and with a tenant and without."""


def filled(location: Any, layout: Any = None, tenant: str | None = None) -> Graph:
    """Customers and albums, everything counted."""
    location = f"{location}?durability=process" if isinstance(location, Path) else location
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
        ("ledger", "ON_ALBUM.into"): 1,
        ("rank", "CUSTOMER.top"): 2,
        ("rank", "ALBUM.longest"): 1,
        ("copy", "PLACED.customer"): 1,
        ("dangling", "ON_ALBUM"): 1,
        ("rank", "CUSTOMER.largest"): 1,
        **{("rank", f"CUSTOMER.{name}"): 2 for name in ("smallest", "last")},
    }
    """A ledger is lost or made up for both ends. One that is made up names ranks that are not there; those of a lost
    one count for nobody, and are no fault. One that outlives its node, as that of the lost track does, is void and
    none either; but no waiting marker says that the edge of the track is to be counted when the track comes back."""

    def node(self, model: type[Any], id: str, action: Any) -> Request:
        key = self._layout.node_key(self._layout.schema.node(model), id)
        return Update(self._layout.table, key, (action,), self._layout.present)

    def key(self, item: Any) -> Any:
        return self._layout.key_of(item)

    def ledger(self, group: str, id: str) -> Any:
        return next(
            item
            for item in filter(is_ledger, self._items)
            for ref, _ in entries_of(self._layout, item)
            if ref.group.name == group and ref.near.endswith(f"#{id}")
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


@pytest.mark.simulation
@pytest.mark.parametrize(("layout", "tenant"), EVERY_LAYOUT[:: -stride(4)])
def test_each_fault_is_found_and_repaired(tmp_path: Path, layout: Any, tenant: str | None) -> None:
    with filled(tmp_path / "g.db", layout, tenant) as graph:
        for request in Spoilt(graph).all():
            graph._store.execute((request,))
        # Most of the time is compiling what each audit asks, so the one that repairs is the one that is looked at.
        audit = graph.verify(repair=[True, "dangling"], threads=1)
        assert found(audit) == Spoilt.EXPECTED
        assert audit.left == 0
        examples = {(each.kind, each.name): each.examples[0] for each in audit.findings}
        assert examples["aggregate", "CUSTOMER.owed"] == {"node": "C1", "stored": 99, "computed": Decimal("1.75")}
        assert examples["rank", "CUSTOMER.top"] == {"node": "C0", "fault": "missing rank"}
        examples_of = {each.name: [str(example.get("fault")) for example in each.examples] for each in audit.findings}
        assert sorted(examples_of["CUSTOMER.last"]) == ["different rank", "missing rank"]
        assert examples_of["ALBUM.longest"] == ["stray rank"]
        assert examples_of["PLACED.out"] == ["stray", "missing"]
        assert unnamed_ranks(graph) == []
        check(graph)
        # What is changed afterwards is counted as if nothing had happened. One more audit shows that of both.
        graph.update(Placed, "C3", "I3", balance=Decimal(9))
        graph.disconnect(Placed, "C0", "I0")
        graph.disconnect(OnAlbum, "A1", "T1")
        graph.put_many([Placed(source="C1", target="I5", balance=Decimal("0.1")), Bill(id="B4", amount=Decimal(50))])
        graph.maintain(once=True)
        check(graph)
        assert found(graph.verify(threads=1)) == {}


def test_only_some_kinds_are_repaired() -> None:
    with Graph(":memory:", TOPICS) as graph:
        graph.put_many([Reader(id="A"), Topic(id="go", name="Go"), Reads(source="A", target="go")])
        graph.maintain(once=True)
        layout = graph._layout
        for key, name, spoilt in (
            (layout.node_key(layout.schema.node(Topic), "go"), "readers", Value({"N": "9"})),
            (layout.edge_key(layout.schema.edge(Reads), "A", "go", {}), "topic", Value({"S": "stale"})),
        ):
            graph._store.execute([Update(layout.table, key, (Set(attribute(name), spoilt),))])
        told = {("aggregate", "TOPIC.readers"): 1, ("copy", "READS.topic"): 1}
        assert found(graph.verify(threads=1)) == told
        assert found(graph.verify(repair=["copy"], threads=1)) == told, "the first audit repaired nothing"
        assert found(graph.verify(threads=1)) == {("aggregate", "TOPIC.readers"): 1}


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


def sold(location: Any) -> Graph:
    """Shops that sold to each other, everything counted: few rules, for tests that are about something else."""
    graph = Graph(location, [Shop, Sold])
    graph.put_many([Shop(id=f"S{n}") for n in range(5)])
    graph.put_many([Sold(source=f"S{n % 5}", target=f"S{n % 4}", amount=n) for n in range(1, 10)])
    graph.maintain(once=True)
    return graph


def counted(graph: Graph) -> list[Shop]:
    """All shops, with what their edges give."""
    entities = [graph._layout.read(item) for item in stored(graph) if not graph._layout.is_bookkeeping(item)]
    edges = [each for each in entities if isinstance(each, Sold)]

    def of(id: str) -> Shop:
        mine = [each for each in edges if each.source == id]
        return Shop(
            id=id,
            trusted=len(mine),
            balance=sum(each.amount for each in mine),
            largest=max((each.amount for each in mine), default=None),
            reached=sum(next.amount for each in mine for next in edges if next.source == each.target),
            bought=sum(each.target == id for each in edges),
        )

    return [of(each.id) for each in entities if isinstance(each, Shop)]


def of_shop(graph: Graph | AsyncGraph, id: str, name: str, number: str) -> Update:
    """A wrong value of a shop, behind the graph's back."""
    key = graph._layout.node_key(graph._layout.schema.node(Shop), id)
    return Update(graph._layout.table, key, (Set(attribute(name), Value({"N": number})),))


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


# --- edges whose nodes do not exist ------------------------------------------------------------


class Critic(Node):
    id: str
    weight: int = 0
    harsh: Annotated[int, Count("Review", where=field("stars") < 2)] = 0


class Play(Node):
    id: str
    praised: Annotated[int, Count("Review", where=field("stars") > 3, direction="into")] = 0
    weight: Annotated[int, Sum("Review", field="weight", direction="into")] = 0


class Review(Edge[Critic, Play]):
    stars: int


PLAYS: list[type[Any]] = [Critic, Play, Review]
REVIEWS = [Review(source=source, target=target, stars=stars) for source, target, stars in ("AX5", "AY3", "BX1", "BY4")]
LOST: dict[str, Callable[[Any], bool]] = {
    "waiting markers": lambda item: "marked" in item and "edge" not in item,
    "ledgers": is_ledger,
    "arrivals": lambda item: "marked" in item and "edge" in item,
}


def lose(graph: Graph, what: Callable[[Any], bool]) -> None:
    """Removes some of adjoin's own items behind a graph's back."""
    keys = [graph._layout.key_of(item) for item in stored(graph) if what(item)]
    assert keys
    graph._store.execute([Delete(graph._layout.table, key) for key in keys])


def reviewed(layout: Any = None, tenant: str | None = None) -> Graph:
    """Edges that wait for all their nodes, and an index that will never show them."""
    graph = Graph(LateIndexes(random.Random(0), PLAYS, layout, 0.0), PLAYS, layout, tenant=tenant)
    graph.put_many(REVIEWS)
    graph.maintain(once=True)
    return graph


def come(graph: Graph) -> None:
    graph.put_many([*(Critic(id=id, weight=weight) for id, weight in (("A", 2), ("B", 3))), Play(id="X"), Play(id="Y")])
    graph.maintain(once=True)


def verdicts(graph: Graph) -> list[Any]:
    critics, plays = graph.get_many(Critic, "AB"), graph.get_many(Play, "XY")
    return [*((each and each.harsh) for each in critics), *((each and (each.praised, each.weight)) for each in plays)]


COUNTED = [0, 1, (1, 5), (1, 5)]
DANGLING = {("dangling", "REVIEW"): 4}


@pytest.mark.simulation
@pytest.mark.parametrize(("layout", "tenant"), LAYOUTS)
def test_an_edge_that_lost_all_traces_waits_again(layout: Any, tenant: str | None) -> None:
    with reviewed(layout, tenant) as graph:
        lose(graph, lambda item: any(is_lost(item) for is_lost in LOST.values()))
        # Which edges the conditions hold for is not known from the source. The other rule needs a mark for each edge.
        assert found(graph.verify(threads=1)) == DANGLING | {("ledger", "REVIEW.into.far"): 4}
        assert graph.rebuild(threads=1).left == 0
        assert unmarked(graph._layout, stored(graph)) == []
        assert found(graph.verify(threads=1)) == DANGLING
        come(graph)
        assert verdicts(graph) == COUNTED
        assert found(graph.verify(threads=1)) == {}


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ("waiting markers", {("ledger", "REVIEW.into.far"): 4}),
        ("ledgers", {}),
        ("arrivals", {("ledger", "REVIEW.into.far"): 4}),
    ],
)
def test_an_edge_that_lost_something_is_repaired_to_wait_for_its_node(lost: str, told: dict[Any, int]) -> None:
    with reviewed() as graph:
        lose(graph, LOST[lost])
        repaired = graph.verify(repair=True, threads=1)
        assert found(repaired) == DANGLING | told
        assert [(each.count, each.repaired) for each in repaired.findings if each.kind == "ledger"] == [(4, 4)] * len(
            told
        )
        assert unmarked(graph._layout, stored(graph)) == []
        come(graph)
        assert verdicts(graph) == COUNTED


class Reader(Node):
    id: str
    weight: int = 0


class Topic(Node):
    id: str
    name: str = ""
    readers: Annotated[int, Count("Reads", direction="into")] = 0
    weight: Annotated[int, Sum("Wants", field="weight", direction="into")] = 0


class Reads(Edge[Reader, Topic]):
    """It is counted by itself; only its copied field is found by arrivals."""

    topic: Annotated[str, Copy("target.name")] = ""


class Wants(Edge[Reader, Topic]):
    """It may arrive at another topic under the same key."""

    topic: str


TOPICS: list[type[Any]] = [Reader, Topic, Reads, Wants]
WANTS = Keys(sort="WANTS#{topic:upper}", reverse_partition="TOPIC#{topic}", reverse_sort="WANTS#{source.id}")


def arrivals(graph: Graph) -> list[tuple[str, str]]:
    """The classes of edges, and the nodes at which they are said to arrive."""
    notes = [item for item in stored(graph) if "marked" in item and "edge" in item]
    return sorted((note["edge"]["M"]["SK"]["S"].partition("#")[0], note["PK"]["S"]) for note in notes)


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("way", "tenant"), list(itertools.product(["rebuild", "repair"], [None, "acme"]))[:: stride(3)]
)
def test_arrivals_that_a_repair_left_are_removed(way: str, tenant: str | None) -> None:
    """A repair took edges down that others had just removed, and ended before it looked. No change is left to tell."""
    with Graph(":memory:", TOPICS, AdjacencyList(keys={Wants: WANTS}), tenant=tenant) as graph:
        graph.put_many([Reader(id="A", weight=2), Topic(id="go"), Topic(id="GO"), Reads(source="A", target="go")])
        graph.put(Wants(source="A", target="go", topic="go"))
        graph.maintain(once=True)
        there = arrivals(graph)
        layout = graph._layout

        def begin(model: type[Edge[Any, Any]], source: str, target: str, topic: str) -> None:
            kind = layout.schema.edge(model)
            (group,) = (each for each in layout.rules.groups if each.edge is kind)
            key = layout.edge_key(kind, source, target, {"topic": topic})
            ends = layout.node_text(kind.target, target), layout.node_text(kind.source, source)
            repair = reconcile_found(layout, [EdgeRef(group, key, *ends)], Tally())
            graph._store.execute(next(repair))
            repair.close()

        begin(Reads, "B", "go", "")
        begin(Reads, "A", "GO", "")
        begin(Wants, "B", "GO", "GO")
        # This edge is there, and arrives elsewhere.
        begin(Wants, "A", "GO", "GO")
        start = f"{tenant}#" if tenant else ""
        assert len(arrivals(graph)) == len(there) + 4
        assert arrivals(graph)[0] == ("READS", f"{start}TOPIC#GO#=")
        assert found(graph.verify(threads=1)) == {}
        graph.verify(repair=["copy", "rank"], threads=1)
        assert len(arrivals(graph)) == len(there) + 4
        if way == "rebuild":
            assert graph.rebuild(threads=1).differ == 0
        else:
            assert found(graph.verify(repair=["ledger"], threads=1)) == {}
        assert arrivals(graph) == there
        graph.update(Topic, "go", name="Go")
        graph.update(Reader, "A", weight=3)
        graph.maintain(once=True)
        assert [edge.topic for edge in graph.out("A", Reads)] == ["Go"]
        assert graph.get(Topic, "go") == Topic(id="go", name="Go", readers=1, weight=3)


def test_a_node_may_come_after_the_export(tmp_path: Path) -> None:
    """The job knows the edges, but not that their nodes are there by now; and whoever saw these come found no edge."""
    with reviewed() as graph:
        lose(graph, lambda item: any(is_lost(item) for is_lost in LOST.values()))
        source = exported(graph, tmp_path)
        come(graph)
        assert verdicts(graph) != COUNTED
        assert graph.rebuild(source, threads=1).left == 0
        assert verdicts(graph) == COUNTED


def awaited(graph: Graph) -> list[str]:
    """The nodes that have a waiting marker."""
    return [graph._layout.ledgers.node_beside(item) for item in stored(graph) if LOST["waiting markers"](item)]


def test_an_edge_that_contributes_nothing_need_not_wait() -> None:
    with Graph(":memory:", PLAYS) as graph:
        graph.put_many([Play(id="X"), Play(id="Y"), *REVIEWS])
        graph.maintain(once=True)
        assert awaited(graph) == ["CRITIC#B"]
        lose(graph, LOST["waiting markers"])
        assert awaited(graph) == []
        graph.rebuild(threads=1)
        assert awaited(graph) == ["CRITIC#B"]


def test_an_aggregate_that_was_just_declared_waits_for_nodes(tmp_path: Path) -> None:
    class Before(Node, label="SHOP"):
        id: str
        trusted: Annotated[int, Count("SoldBefore")] = 0

    class SoldBefore(Edge[Before, Before], label="SOLD"):
        amount: int
        kind: str = "x"

    with Graph(tmp_path / "g.db", [Before, SoldBefore]) as old:
        old.put_many([Before(id="S1"), SoldBefore(source="S1", target="S2", amount=5)])
        old.maintain(once=True)
    with Graph(tmp_path / "g.db", [Shop, Sold]) as graph:
        graph.rebuild(threads=1)
        graph.put(Shop(id="S2"))
        graph.maintain(once=True)
        assert graph.get(Shop, "S2") == Shop(id="S2", bought=1)
        assert found(graph.verify(threads=1)) == {}


# --- interruptions -----------------------------------------------------------------------------


def exported(graph: Graph, folder: Path) -> str:
    lines = dump_of(graph._store, graph._layout.table).lines()
    return str(write_export(lines, folder, graph._layout.table).place)


def test_an_interrupted_rebuild_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjoin.batch.restoring.ROUND", 2)
    monkeypatch.setattr("adjoin.batch.restoring.SAVE_SECONDS", 0)
    inner = SQLiteStore(":memory:")
    store = FaultyStore(inner)
    graph = Graph(store, [Shop, Sold])
    graph.put_many([Shop(id=f"S{n}") for n in range(5)])
    graph.put_many([Sold(source=f"S{n % 5}", target=f"S{n % 4}", amount=n) for n in range(1, 10)])
    source = exported(Graph(inner, [Shop, Sold]), tmp_path)
    state = tmp_path / "state.json"

    def rebuild() -> Any:
        return graph.rebuild(source, state=state, threads=1)

    # Before anything is done, and twice among the nodes.
    for number in (8, 24, 30):
        store.stop_at(number, "after")
        with pytest.raises(Interrupted):
            rebuild()
        store.recover()
        assert state.exists() == (number > 8)
        if number == 24:
            graph.update(Sold, "S1", "S1", amount=77)
            graph.disconnect(Sold, "S2", "S2")
            graph.put_many([Shop(id="S5"), Sold(source="S5", target="S0", amount=50)])
            graph.delete(Shop, "S3")
    assert rebuild().left == 0
    assert not state.exists()
    graph.maintain(once=True)
    there = [each for each in graph.get_many(Shop, [f"S{n}" for n in range(6)]) if each is not None]
    assert len(there) == 5
    assert there == counted(graph)
    check_ranks(graph._layout, stored(graph))


def test_nothing_is_lost_that_changes_after_the_export(tmp_path: Path) -> None:
    with sold(tmp_path / "g.db") as graph:
        layout, items = graph._layout, stored(graph)
        rank = next(item for item in items if is_rank(layout, item) and "SHOP#S3#" in str(layout.key_of(item)))
        lost = next(item for item in items if is_ledger(item) and "SHOP#S2" in str(layout.key_of(item)))
        wrong = [
            of_shop(graph, id, name, "99") for id, name in (("S1", "balance"), ("S0", "trusted"), ("S4", "reached"))
        ]
        graph._store.execute([*wrong, *(Delete(layout.table, layout.key_of(item)) for item in (rank, lost))])
        source = exported(graph, tmp_path)
        graph.disconnect(Sold, "S1", "S1")
        graph.put(Sold(source="S1", target="S4", amount=100))
        graph.delete(Shop, "S2")
        rebuilt = graph.rebuild(source, threads=1)
        assert rebuilt.left == 0
        assert rebuilt.written == 3
        graph.maintain(once=True)
        assert [graph.get(Shop, each.id) for each in counted(graph)] == counted(graph)
        check_ranks(layout, stored(graph))
        assert found(graph.verify(threads=1)).keys() <= {("dangling", "SOLD")}


def test_a_node_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with sold(":memory:") as graph:
        graph._store.execute((wrong := of_shop(graph, "S1", "balance", "99"),))
        execute = graph._store.execute

        def refusing(requests: Sequence[Request]) -> list[Response]:
            if any(isinstance(request, Update) and request.key == wrong.key for request in requests):
                raise ItemTooLarge("Item size to update has exceeded the maximum allowed size")
            return execute(requests)

        monkeypatch.setattr(graph._store, "execute", refusing)
        audit = graph.verify(repair=True, threads=1)
        assert audit.left == 1
        finding = next(each for each in audit.findings if each.kind == "aggregate")
        assert "Shop 'S1' would be too large" in finding.failures[0]["reason"]
        assert finding.failures[0]["node"] == "SHOP#S1"
        rebuilt = graph.rebuild(threads=1)
        assert (rebuilt.left, rebuilt.written) == (1, 0)


# --- both graphs -------------------------------------------------------------------------------


def test_awaited(tmp_path: Path) -> None:
    with sold(tmp_path / "g.db") as graph:
        right = graph.get(Shop, "S1")

    async def work() -> None:
        async with AsyncGraph(tmp_path / "g.db", [Shop, Sold]) as graph:
            await graph._store.execute([of_shop(graph, "S1", "balance", "99")])
            with graph.meter() as meter:
                told = await graph.verify(threads=1)
                assert found(told) == {("aggregate", "SHOP.balance"): 1}
                assert (await graph.rebuild(threads=1)).written == 1
            assert meter.requests > 0
            assert await graph.get(Shop, "S1") == right
            assert await graph.verify("scan", repair=True, report=tmp_path / "report.json", threads=1)

    asyncio.run(work())


@pytest.fixture
def on_service(servers: Stores) -> Iterator[Graph]:
    location = f"dynamodb://Audited-{uuid4().hex}?endpoint={servers.address('ministack')}"
    with Graph(location, [Shop, Sold]) as graph:
        graph.create_table()
        yield graph
        graph.drop_table()


def test_on_a_service(on_service: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjoin.batch.sources.INDEX_DELAY", 0.1)
    graph = on_service
    graph.put_many([Shop(id="S1"), Shop(id="S2"), Sold(source="S1", target="S2", amount=3)])
    with pytest.raises(InvalidValue, match='"scan"'):
        graph.verify(threads=1)
    assert graph.rebuild("scan", threads=1).left == 0
    right = Shop(id="S1", trusted=1, balance=3, largest=3)
    assert graph.get(Shop, "S1") == right
    for name in ("balance", "trusted"):
        graph._store.execute((of_shop(graph, "S1", name, "99"),))
    repaired = graph.verify("scan", repair=True, threads=1)
    assert {("aggregate", "SHOP.balance"), ("aggregate", "SHOP.trusted")} <= found(repaired).keys()
    assert repaired.left == 0
    assert graph.get(Shop, "S1") == right
    assert graph.verify("scan", threads=1)


# --- while others write ------------------------------------------------------------------------


def test_writers_and_a_maintainer_go_on_meanwhile(tmp_path: Path) -> None:
    """Threads, each with a graph of its own on one file; the simulation has the fine grain."""
    place = f"{tmp_path / 'g.db'}?durability=process"
    with sold(place) as graph:
        layout, items = graph._layout, stored(graph)
        ledger = next(filter(is_ledger, items))
        rank = next(item for item in items if is_rank(layout, item))
        graph._store.execute((of_shop(graph, "S1", "balance", "99"), of_shop(graph, "S2", "largest", "99")))
        graph._store.execute([Delete(layout.table, layout.key_of(item)) for item in (ledger, rank)])
        assert {each.kind for each in graph.verify(threads=1).findings} == {"aggregate", "ledger", "rank"}
    ended = threading.Event()

    def write(seed: int) -> None:
        chance = random.Random(seed)
        with Graph(place, [Shop, Sold]) as own:
            while not ended.is_set():
                ends = f"S{chance.randrange(5)}", f"S{chance.randrange(5)}"
                if chance.random() < 0.5:
                    own.put(Sold(source=ends[0], target=ends[1], amount=chance.randrange(99)))
                else:
                    own.disconnect(Sold, *ends)

    def maintain() -> None:
        with Graph(place, [Shop, Sold]) as own:
            while not ended.is_set():
                own.maintain(once=True)

    with ThreadPoolExecutor(3) as pool, Graph(place, [Shop, Sold]) as graph:
        others = [pool.submit(write, 1), pool.submit(write, 2), pool.submit(maintain)]
        try:
            rebuilt = [graph.rebuild(threads=1), graph.rebuild(threads=1)]
        finally:
            ended.set()
        for other in others:
            other.result()
        graph.maintain(once=True)
        assert graph.get_many(Shop, [f"S{n}" for n in range(5)]) == counted(graph)
        check_ranks(graph._layout, stored(graph))
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


@pytest.mark.simulation
@pytest.mark.parametrize(("layout", "tenant"), EVERY_LAYOUT[:: stride(4)])
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
