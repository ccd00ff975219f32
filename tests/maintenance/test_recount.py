"""Nodes counted anew while writers and maintainers go on: everything is true in the end, whatever was spoilt."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from adjoin import Graph, MaterializedGraph
from adjoin.layouts.interface import LIFE, NEXT, BoundLayout
from adjoin.plans import Plan
from adjoin.plans.maintenance.ledger import Ledger
from adjoin.plans.maintenance.recounting import begin, begun_before, finish, settle_and_compare
from adjoin.plans.maintenance.references import EdgeRef
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.maintenance.settling import settle
from adjoin.requests import Query
from adjoin.runner import run
from adjoin.schema import NodeType
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item
from tests.faults import FaultyStore, Interrupted
from tests.maintenance.ledgers import edge_of, entries_of, is_ledger
from tests.maintenance.models import ALBUMS, MODELS, PARTS, PEOPLE, SHOP, Customer, Invoice, Part, Placed, Uses
from tests.maintenance.simulation import FEW, FIRST, Process, Simulation, opened, stored, with_seeds
from tests.maintenance.test_crashes import happen, happen_again
from tests.maintenance.test_simulation import Life, check
from tests.maintenance.vandals import Vandals


def repair(graph: Graph, *, everything: bool) -> Plan[None]:
    """What a rebuild does with what it found at one instant, which is now: stray ledgers first, then nodes.

    The batch job takes long, and this plan may be made to wait before any of its requests; so what it found may be
    of long ago when it is used.
    """
    layout = graph._layout
    items = stored(graph)
    keys = [layout.key_of(item) for item in items]
    strays = [item for item in items if is_ledger(item) and edge_of(layout, item) not in keys]
    nodes: dict[str, tuple[NodeType, list[str]]] = {}
    for item in items:
        kind = None if layout.is_bookkeeping(item) else layout.kind_of(item)
        if isinstance(kind, NodeType):
            nodes.setdefault(kind.label, (kind, []))[1].append(text_of(layout, item))
    spoilt = set(unbalanced(layout, items))

    def plan() -> Plan[None]:
        tally = Tally()
        for ledger in strays:
            yield from settle(layout, [ref for ref, _ in entries_of(layout, ledger)], tally)
        for kind, texts in nodes.values():
            compared = yield from settle_and_compare(layout, kind, texts, tally)
            wrong = texts if everything else [text for text in texts if text in spoilt or text in compared.off]
            for prepare in (begun_before, begin):
                begun = yield from prepare(layout, kind, wrong)
                yield from finish(layout, kind, begun, tally)

    return plan()


def text_of(layout: BoundLayout, item: Item) -> str:
    text: str = next(iter(layout.key_of(item).values()))["S"]
    return text


def unbalanced(layout: BoundLayout, items: list[Item]) -> Iterator[str]:
    """The nodes that do not have what their ledgers add up to, at one instant: what `LedgerAudit` tells, by hand."""
    ledgers: dict[str, list[Ledger]] = {}
    for item in filter(is_ledger, items):
        for ref, ledger in entries_of(layout, item):
            ledgers.setdefault(ref.near, []).append(ledger)
    for item in items:
        kind = None if layout.is_bookkeeping(item) else layout.kind_of(item)
        text = text_of(layout, item)
        lives = [item[name]["S"] for name in (LIFE, NEXT) if name in item]
        valid = [ledger.applied for ledger in ledgers.get(text, ()) if ledger.life in lives]
        for rule in layout.rules.rules:
            if rule.node is kind and rule.operation == "sum":
                total = sum(Decimal(applied[rule.name]["N"]) for applied in valid if rule.name in applied)
                if Decimal(item.get(rule.attribute, {}).get("N", 0)) != total:
                    yield text


def test_a_circle_is_seen_while_a_node_of_it_is_counted_anew() -> None:
    """Whether a ledger counts is told by the life of its node, which becomes another between the two reads."""
    with Graph(":memory:", PARTS) as graph:
        graph.put_many([Part(id="a", cost=1), Part(id="b", cost=2), Uses(source="a", target="b")])
        graph.maintain(once=True)
        graph.put(Uses(source="b", target="a"))
        layout = graph._layout
        (account,) = layout.rules.accounts
        edge = layout.edge_key(layout.schema.edge(Uses), "b", "a", {})
        settling = Process(graph, settle(layout, [EdgeRef(account, edge, "PART#b", "PART#a")], Tally()), "maintainer")
        while not isinstance(settling.waits_for, Query):
            settling.step(random.Random(0))
        settling.step(random.Random(0))
        kind = layout.schema.node(Part)
        begun = run(begin(layout, kind, ["PART#a"]), graph._store)
        run(finish(layout, kind, begun, Tally()), graph._store)
        while not settling.is_done:
            settling.step(random.Random(0))
        assert settling.error is None
        (ledger,) = [item for item in stored(graph) if item.get("edge", {}).get("M") == edge and "applied" in item]
        assert (ledger["applied"]["M"], len(ledger["aside"]["M"])) == ({}, 3)
        check(graph)


class Repairs:
    """Recounts among writers and maintainers, some of them thrown away at any request."""

    def __init__(self, simulation: Simulation, *, everything: bool) -> None:
        self._simulation, self._everything = simulation, everything
        self.running: list[Process] = []

    def start(self) -> Process:
        process = Process(
            self._simulation.graph, repair(self._simulation.graph, everything=self._everything), "recount"
        )
        if not process.is_done:
            self._simulation._writers.append(process)
            self.running.append(process)
        return process

    def crash(self) -> None:
        for process in self.running:
            process.plan.close()
        self._simulation._writers = [each for each in self._simulation._writers if each not in self.running]
        self.running = []


def simulate(seed: int, models: list[Any], layout: Any = None, *, acts: int = 30, nodes: int = 3) -> None:
    graph = opened(seed // 2, MODELS, layout)
    simulation = Simulation(graph, seed)
    chance = simulation.chance
    life = Life(graph, chance, models, nodes)
    everything = seed % 2 == 0
    vandals = Vandals(graph, chance, touches_ranks=everything)
    repairs = Repairs(simulation, everything=everything)
    for _ in range(acts):
        simulation.write(*life.act())
        if chance.random() < 0.3:
            vandals.act()
        if chance.random() < 0.1:
            repairs.start()
        if chance.random() < 0.1:
            repairs.crash()
    repairs.crash()
    vandals.act()
    last = [repairs.start() for _ in range(1 + seed % 2)]
    for _ in range(acts):
        simulation.write(*life.act())
    simulation.drain()
    assert [process.error for process in last] == [None] * len(last)
    check(graph)
    items = stored(graph)
    assert not [item for item in items if NEXT in item]
    graph.close()


@pytest.mark.parametrize("models", [SHOP, ALBUMS, PARTS, PEOPLE], ids=["shop", "albums", "parts", "people"])
@pytest.mark.parametrize("part", range(3))
def test_everything_is_true_in_the_end(models: list[Any], part: int) -> None:
    with_seeds(lambda seed: simulate(seed, models, nodes=2 + seed % 3), part, 3, FEW)


def simulate_close_calls(seed: int) -> None:
    """Every count is one off, and a rebuild goes on among many edges that come and go at the same few nodes.

    What it finds on the live table may look right by chance, because an edge just came to be counted or went.
    """
    graph = opened(seed, MODELS)
    simulation = Simulation(graph, seed)
    chance = simulation.chance
    life = Life(graph, chance, SHOP, 3)
    graph.put_many([*(Customer(id=f"C{n}", name="a") for n in range(3)), *(Invoice(id=f"I{n}") for n in range(3))])

    def write(times: int) -> None:
        for _ in range(times):
            edge = Placed(source=life.id(Customer), target=life.id(Invoice))
            put = graph._put(edge, None)
            simulation.write(chance.choice((put, graph._disconnect(Placed, edge.source, edge.target, {}))), "writer")

    write(15)
    vandals = Vandals(graph, chance, touches_ranks=False)
    vandals.miscount_each(Invoice, "customers")
    repairs = Repairs(simulation, everything=False)
    repairs.start()
    write(chance.randrange(10))
    if chance.random() < 0.3:
        repairs.crash()
        repairs.start()
    (last,) = repairs.running
    write(30)
    simulation.drain()
    assert last.error is None
    check(graph)
    graph.close()


@pytest.mark.parametrize("part", range(2))
def test_no_value_looks_right_by_chance(part: int) -> None:
    with_seeds(simulate_close_calls, part, 2, 10 * FEW)


def test_in_another_layout() -> None:
    for seed in range(FIRST, FIRST + max(FEW // 5, 1)):
        simulate(seed, MODELS, MaterializedGraph(), acts=40)


@pytest.mark.parametrize("when", ["before", "after"])
def test_it_may_stop_at_every_request(when: str) -> None:
    number = 0
    while True:
        store = FaultyStore(SQLiteStore(":memory:"))
        graph = Graph(store, MODELS)
        happen(graph)
        graph.maintain(once=True)
        vandals = Vandals(graph, random.Random(number), touches_ranks=True)
        for _ in range(4):
            vandals.act()
        store.stop_at(number, when)
        try:
            run(repair(graph, everything=True), store)
            stopped = False
        except Interrupted:
            stopped = True
        store.recover()
        if stopped:
            run(repair(graph, everything=True), store)
        check(graph)
        happen_again(graph)
        graph.maintain(once=True)
        check(graph)
        graph.close()
        if not stopped:
            break
        number += 3
    assert number > 30
