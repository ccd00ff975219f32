"""Nodes counted anew while writers and maintainers go on: everything is true in the end, whatever was spoilt."""

from __future__ import annotations

import random
from typing import Any

import pytest

from adjoin import Graph, MaterializedGraph
from adjoin.layouts.interface import NEXT
from adjoin.plans import Plan
from adjoin.plans.maintenance.recounting import begin, begun_before, finish, settle_and_compare
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.maintenance.settling import settle
from adjoin.runner import run
from adjoin.schema import NodeType
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore, Interrupted
from tests.maintenance.ledgers import edge_of, entries_of, is_ledger
from tests.maintenance.models import ALBUMS, MODELS, PARTS, PEOPLE, SHOP
from tests.maintenance.simulation import FEW, FIRST, Process, Simulation, stored, with_seeds
from tests.maintenance.test_crashes import happen, happen_again
from tests.maintenance.test_simulation import Life, check
from tests.maintenance.vandals import Vandals


def repair(graph: Graph, *, everything: bool) -> Plan[None]:
    """What a rebuild does, for all that is there now: stray ledgers first, then nodes."""
    layout = graph._layout
    items = stored(graph)
    keys = [layout.key_of(item) for item in items]
    strays = [item for item in items if is_ledger(item) and edge_of(layout, item) not in keys]
    nodes: dict[str, tuple[NodeType, list[str]]] = {}
    for item in items:
        kind = None if layout.is_bookkeeping(item) else layout.kind_of(item)
        if isinstance(kind, NodeType):
            nodes.setdefault(kind.label, (kind, []))[1].append(next(iter(layout.key_of(item).values()))["S"])

    def plan() -> Plan[None]:
        tally = Tally()
        for ledger in strays:
            yield from settle(layout, [ref for ref, _ in entries_of(layout, ledger)], tally)
        for kind, texts in nodes.values():
            compared = yield from settle_and_compare(layout, kind, texts, tally)
            for prepare in (begun_before, begin):
                begun = yield from prepare(layout, kind, texts if everything else compared.off)
                yield from finish(layout, kind, begun, tally)

    return plan()


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
    graph = Graph(":memory:", MODELS, layout)
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
