"""`adjoin maintain`: to an end, and as a process that is told to stop."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import adjoin
from adjoin import Graph
from adjoin.cli import main
from adjoin.cli.maintain import collected_rarely
from adjoin.requests import Put

MODULE = """
from typing import Annotated
from adjoin import Count, Edge, Node

class Customer(Node):
    id: str
    invoices: Annotated[int, Count("Placed")] = 0

class Invoice(Node):
    id: str

class Placed(Edge[Customer, Invoice]):
    day: int = 0
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "maintained_shop.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "maintained_shop", raising=False)
    return tmp_path / "shop.db"


def opened(shop: Path) -> Graph:
    sys.path.insert(0, str(shop.parent))
    try:
        import maintained_shop  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(shop.parent))
    return Graph(shop, [maintained_shop.Customer, maintained_shop.Invoice, maintained_shop.Placed])


def fill(graph: Graph) -> None:
    (one, other), (edge,) = graph._schema.nodes, graph._schema.edges
    for g in (graph, graph.for_tenant("acme")):
        g.put_many([one(id="C1"), other(id="I1"), edge(source="C1", target="I1")])


def count(graph: Graph) -> int:
    one, _ = graph._schema.nodes
    found = graph.get(one, "C1")
    assert found is not None
    return int(found.invoices)  # type: ignore[attr-defined]


def test_to_the_end(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(shop) as graph:
        fill(graph)
        assert main(["maintain", str(shop), "maintained_shop", "--once"]) == 0
        assert (count(graph), count(graph.for_tenant("acme"))) == (1, 1)
    told = capsys.readouterr()
    assert told.out.endswith("2 nodes and 2 edges brought up to date, 0 set aside\n")
    assert "nothing is left" in told.err


def test_of_one_tenant(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(shop) as graph:
        fill(graph)
        assert main(["maintain", str(shop), "maintained_shop", "--once", "--tenant", "acme", "--quiet"]) == 0
        assert (count(graph), count(graph.for_tenant("acme"))) == (0, 1)
    assert capsys.readouterr().err == ""


def test_what_is_set_aside_or_missed_is_told_by_the_status(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(shop) as graph:
        fill(graph)
        graph._store.execute(
            [Put("adjoin", {"PK": {"S": "CUSTOMER#C1"}, "SK": {"S": "PLACED#INVOICE#I2"}, "day": {"S": "x"}})]
        )
        assert main(["maintain", str(shop), "maintained_shop", "--once"]) == 0, "nobody counts days"
        key = graph._layout.ledgers.record_key("MAINTAIN", "position")
        lost = {"position": {"S": "000000990000000000001"}, "at": {"N": "5"}, "adjoin:revision": {"S": "x"}}
        graph._store.execute([Put("adjoin", key | lost)])
        assert main(["maintain", str(shop), "maintained_shop", "--once"]) == 1
        assert "so a rebuild is due: adjoin rebuild" in capsys.readouterr().out
        assert main(["rebuild", str(shop), "maintained_shop", "--quiet"]) == 0
        assert main(["maintain", str(shop), "maintained_shop", "--once"]) == 0


def test_what_cannot_be_carried_out(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["maintain", str(shop), "maintained_shop", "--once"]) == 2
    assert "does not exist; check the name" in capsys.readouterr().err
    for every in ("0", "-1", "soon", "nan", "inf"):
        with pytest.raises(SystemExit) as exit:
            main(["maintain", str(shop), "maintained_shop", "--every", every])
        assert exit.value.code == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it(shop: Path, number: signal.Signals) -> None:
    """It says that it has begun when it has applied what was there, and ends as one that was asked to."""
    with opened(shop) as graph:
        fill(graph)
        process = subprocess.Popen(
            [sys.executable, "-c", WATCHED, "maintain", str(shop), "maintained_shop", "--every", "3600"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(Path(adjoin.__file__).parents[1])},
            cwd=shop.parent,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
        assert (process.returncode, count(graph)) == (0, 1), err
        assert "2 nodes and 2 edges brought up to date, 0 set aside" in out
        assert graph.health().lag == 0.0


WATCHED = """
import sys, threading
wait = threading.Event.wait
def told(self, timeout=None):
    if timeout == 3600.0:
        print("waits", flush=True)
    return wait(self, timeout)
threading.Event.wait = told
from adjoin.cli import main
sys.exit(main())
"""
"""The command, which says when it has nothing more to do."""


def test_garbage_is_collected_rarely_as_long_as_it_runs_and_as_before_afterwards() -> None:
    of_the_worker = gc.get_threshold()
    before = (700, 10, 10)
    try:
        gc.set_threshold(*before)
        with pytest.raises(RuntimeError), collected_rarely():
            during = gc.get_threshold()
            raise RuntimeError

        assert during[0] > before[0]
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*of_the_worker)
