"""`adjoin maintain`: to an end, and as a process that is told to stop."""

from __future__ import annotations

import gc
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

import adjoin
from adjoin import Graph, Throttled
from adjoin.cli import main, metrics
from adjoin.cli.maintain import collected_rarely
from adjoin.cli.metrics import STALE_AFTER, HealthPage, served
from adjoin.plans.maintenance.health import Health
from adjoin.requests import Put
from tests.waiting import until

HEALTH = Health(None, None, 5, 0.5, 0, None, None, None)
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


def test_metrics_are_served_while_it_runs(shop: Path) -> None:
    with opened(shop) as graph:
        fill(graph)
        command = ["maintain", str(shop), "maintained_shop", "--every", "3600", "--metrics", "0", "--quiet"]
        process = subprocess.Popen(
            [sys.executable, "-c", WATCHED, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(Path(adjoin.__file__).parents[1])},
            cwd=shop.parent,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        said = process.stderr.readline()
        assert said.startswith("metrics at http://127.0.0.1:"), said
        assert process.stdout.readline() == "waits\n"
        page = urlopen(said.split()[-1], timeout=120).read().decode()
        with pytest.raises(HTTPError, match="404"):
            urlopen(said.split()[-1].replace("metrics", "other"), timeout=120)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    lines = page.splitlines()
    assert "# TYPE adjoin_maintenance_lag_seconds gauge" in lines
    assert {"adjoin_maintenance_up 1", "adjoin_maintenance_set_aside 0"} <= {*lines}
    (lag,) = [line for line in lines if line.startswith("adjoin_maintenance_lag_seconds ")]
    assert float(lag.split()[1]) >= 0


def test_where_metrics_cannot_be_served(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(shop) as graph, socket.create_server(("127.0.0.1", 0)) as taken:
        fill(graph)
        port = taken.getsockname()[1]
        assert main(["maintain", str(shop), "maintained_shop", "--once", "--metrics", str(port)]) == 2
        assert f"cannot serve metrics at 127.0.0.1:{port}: Address already in use" in capsys.readouterr().err
        assert count(graph) == 0
    with pytest.raises(SystemExit):
        main(["maintain", str(shop), "maintained_shop", "--metrics", "localhost:http"])


def asking(address: str, request: bytes = b"") -> socket.socket:
    asks = socket.create_connection(("127.0.0.1", int(address.split(":")[2].split("/")[0])), timeout=60)
    asks.sendall(request)
    return asks


def test_a_client_that_goes_away_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    asked, gone = Event(), Event()

    def read() -> Health:
        asked.set()
        assert gone.wait(60)
        return HEALTH

    with served("127.0.0.1", 0, read) as address:
        goes = asking(address, b"GET /metrics HTTP/1.1\r\n\r\n")
        assert asked.wait(60)
        goes.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        goes.close()
        threads = [each for each in threading.enumerate() if "process_request_thread" in each.name]
        gone.set()
        for each in threads:
            each.join(60)
        assert threads
        assert b"adjoin_maintenance_up 1" in urlopen(address, timeout=60).read()
    assert capsys.readouterr().err == ""


def test_clients_that_do_not_end_take_few_threads_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are left after their time, though each byte comes in time; until then there are so many, and no more."""
    now = Event()
    monkeypatch.setattr(metrics, "_PATIENCE", 3600.0)
    monkeypatch.setattr(metrics, "time", SimpleNamespace(monotonic=lambda: 4000.0 if now.is_set() else 0.0))
    with served("127.0.0.1", 0, lambda: HEALTH) as address:
        slow = [asking(address, b"GET /met") for _ in range(16)]
        more = asking(address)
        assert more.recv(1) == b"", "there is no room for another one"
        assert sum("process_request_thread" in each.name for each in threading.enumerate()) == 16
        slow[0].sendall(b"rics HTTP/1.1\r\n\r\n")
        assert b"200 OK" in slow[0].recv(1000), "those that have begun are answered"
        now.set()
        for each in slow[1:]:
            assert each.recv(1) == b""
        for each in [*slow, more]:
            each.close()
        until(lambda: not any("process_request_thread" in each.name for each in threading.enumerate()))
        assert b"adjoin_maintenance_up 1" in urlopen(address, timeout=60).read()


def test_health_is_read_again_only_when_it_is_stale() -> None:
    now, reads = 0.0, 0

    def read() -> Health:
        nonlocal reads
        reads += 1
        if reads == 3:
            raise Throttled("slow down")
        return HEALTH

    reading = HealthPage(read, lambda: now)
    pages = [reading.page(), reading.page()]
    assert (reads, pages[0] == pages[1]) == (1, True)
    assert "adjoin_maintenance_changes_total 5\n" in pages[0]
    assert "lag" not in pages[0], "what is unknown is left out"
    now = STALE_AFTER
    assert (reading.page(), reads) == (pages[0], 2)
    now *= 2
    assert reading.page().splitlines()[2:] == ["adjoin_maintenance_up 0"]


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
