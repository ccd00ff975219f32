"""A repair or a rebuild that stops before or after any of its requests, or is killed, and is started again."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import pytest

from adjoin import Copy, Count, Edge, Graph, Indexed, Max, Node, Sum, Unique
from adjoin.batch.restoring import Restorer, RestoringStage, Suspect, WriteBackState
from adjoin.expressions import Action, Remove, Set, Value, attribute
from adjoin.layouts.interface import NEXT_GENERATION
from adjoin.plans.counting.rank_items import HOME
from adjoin.requests import Delete, Put, Update
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore, Interrupted
from tests.maintenance.simulation import stored
from tests.maintenance.test_recount import unbalanced
from tests.shares import stride


class Band(Node):
    id: str
    name: Annotated[str, Indexed()] = ""
    code: Annotated[str | None, Unique()] = None
    gigs: Annotated[int, Count("Played")] = 0
    paid: Annotated[int, Sum("Played", field="fee")] = 0
    best: Annotated[int | None, Max("Played", field="fee")] = None
    heard: Annotated[int, Sum("Played", field="size")] = 0


class Hall(Node):
    id: str
    size: int = 0
    gigs: Annotated[int, Count("Played")] = 0


class Played(Edge[Band, Hall]):
    fee: int = 0
    band: Annotated[str, Copy("source.name")] = ""


MODELS: list[Any] = [Band, Hall, Played]


def spoilt(store: Any) -> Graph:
    """A graph in which something of every sort is wrong that a repair puts right by itself."""
    graph = Graph(store, MODELS)
    graph.put_many([Band(id="a", name="A", code="x"), Band(id="b", name="B", code="y")])
    graph.put_many([Hall(id="h", size=10), Hall(id="k", size=20)])
    for band, hall, fee in (("a", "h", 3), ("a", "k", 5), ("b", "k", 7)):
        graph.connect(Played, band, hall, fee=fee)
    graph.maintain(once=True)
    items = stored(graph)
    layout = graph._layout

    def node(model: type[Any], id: str, action: Action) -> Update:
        return Update(layout.table, layout.node_key(layout.schema.node(model), id), (action,), layout.present)

    def one(part: str, name: str) -> Any:
        return next(item for item in items if name in item and part in str(layout.key_of(item)))

    best = next(rule.key for rule in layout.rules.rules if rule.name == "BAND.best")
    claim, rank, ledger = one("code#x", "adjoin:owner"), one(f"#{best}#", HOME), one("=E#PLAYED#", "i")
    edge = layout.edge_key(layout.schema.edge(Played), "b", "k", {})
    graph._store.execute(
        [
            node(Hall, "k", Set(attribute("gigs"), Value({"N": "1"}))),
            node(Band, "a", Set(attribute("heard"), Value({"N": "31"}))),
            node(Band, "b", Remove(attribute("best"))),
            Put(layout.table, rank | {"value": {"N": "99"}}),
            Delete(layout.table, layout.key_of(ledger)),
            Update(layout.table, layout.key_of(claim), (Set(attribute("adjoin:owner"), Value({"S": "BAND#gone"})),)),
            Update(layout.table, edge, (Set(attribute("band"), Value({"S": "stale"})),), layout.present),
        ]
    )
    return graph


def values(graph: Graph) -> list[Any]:
    bands = [each for each in graph.get_many(Band, ["a", "b"]) if each is not None]
    halls = [each for each in graph.get_many(Hall, ["h", "k"]) if each is not None]
    return [*((each.gigs, each.paid, each.best, each.heard) for each in bands), *(each.gigs for each in halls)]


def assert_right(graph: Graph) -> None:
    assert values(graph) == [(2, 8, 5, 30), (1, 7, 7, 20), 1, 2]
    # What is done next is counted as if nothing had happened.
    graph.disconnect(Played, "a", "k")
    graph.maintain(once=True)
    assert values(graph) == [(1, 3, 3, 10), (1, 7, 7, 20), 1, 1]


class DumpedFaulty(FaultyStore):
    def dump(self, table: str) -> Any:
        return self.inner.dump(table)  # type: ignore[attr-defined]


WAYS: dict[str, Callable[[Graph], Any]] = {
    "verify": lambda graph: graph.verify(repair=True, threads=1),
    "rebuild": lambda graph: graph.rebuild(threads=1),
}


def found_by_a_job(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> list[tuple[RestoringStage, list[list[Suspect]]]]:
    """What is handed to whoever restores, which is only written down."""
    found: list[tuple[RestoringStage, list[list[Suspect]]]] = []

    def restore(_: Restorer, stage: RestoringStage, streams: Iterable[Iterable[Suspect]]) -> None:
        found.append((stage, [list(some) for some in streams]))

    with monkeypatch.context() as patched:
        patched.setattr(Restorer, "restore", restore)
        graph.verify(repair=True, threads=1)
    return found


@pytest.mark.simulation
def test_a_restorer_may_stop_at_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job is done once, and what it found is restored again and again, from the same state.

    In every run it stops before every other request, and after the others.
    """
    with spoilt(SQLiteStore(":memory:")) as graph:
        items = stored(graph)
        found = found_by_a_job(graph, monkeypatch)
        layout = graph._layout

    def restore(store: FaultyStore) -> None:
        restorer = Restorer(layout, lambda plan: run(plan, store), WriteBackState(None, ""), 0.0, lambda *_: None)
        for stage, streams in found:
            restorer.restore(stage, streams)
        assert restorer.restored.left == {}

    number, is_done = 0, False
    while not is_done:
        for when in ("before", "after")[number % stride(2) :: stride(2)]:
            store = FaultyStore(SQLiteStore(":memory:"))
            with Graph(store, MODELS) as graph:
                store.execute([Put(layout.table, item) for item in items])
                store.stop_at(number, when)
                try:
                    restore(store)
                    is_done = True
                    store.recover()
                except Interrupted:
                    store.recover()
                    restore(store)
                assert not [item for item in stored(graph) if NEXT_GENERATION in item or "adjoin:stale" in item]
                assert list(unbalanced(layout, stored(graph))) == []
                assert_right(graph)
        number += 1
    assert number > 20


@pytest.mark.parametrize(("way", "number"), [("verify", 9), ("verify", 41), ("rebuild", 22)])
def test_what_stopped_is_finished_by_the_next_run(way: str, number: int) -> None:
    store = DumpedFaulty(SQLiteStore(":memory:"))
    with spoilt(store) as graph:
        store.stop_at(number, "after")
        with pytest.raises(Interrupted):
            WAYS[way](graph)
        store.recover()
        assert WAYS[way](graph).left == 0
        if way == "rebuild":
            # Copies and claims are not what a rebuild is about.
            assert graph.verify(repair=True, threads=1).left == 0
        assert graph.verify(threads=1).findings == ()
        assert_right(graph)


KILLED = """
import os, signal, sys
from adjoin.stores.sqlite import SQLiteStore
from adjoin import Graph
from tests.batch.test_interrupted import DumpedFaulty, MODELS, WAYS

path, way, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = DumpedFaulty(SQLiteStore(path))

def kill(sent, request):
    if sent == number:
        os.kill(os.getpid(), signal.SIGKILL)

with Graph(store, MODELS) as graph:
    number += store.sent
    store.fault = kill
    WAYS[way](graph)
"""


@pytest.mark.simulation
@pytest.mark.parametrize("way", [*WAYS][:: -stride(2)])
def test_what_was_killed_is_finished_by_the_next_run(tmp_path: Path, way: str) -> None:
    path = tmp_path / "g.db"
    spoilt(path).close()
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path), way, "17"], timeout=300, check=False)
    assert killed.returncode == -signal.SIGKILL
    with Graph(path, MODELS) as graph:
        assert WAYS[way](graph).left == 0
        assert graph.verify(repair=True, threads=1).left == 0
        assert_right(graph)
