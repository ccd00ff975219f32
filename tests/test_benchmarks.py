"""The benchmarks compare like with like: the mix has LinkBench's shape, and contestants end in one state.

Nothing here is about time.
"""

from __future__ import annotations

import gc
import json
import math
import os
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from zlib import crc32

import apsw
import pytest
from orjson import loads

from adjoin import Graph
from adjoin.batch.exports import open_export
from adjoin.explorer.serving import PAGE
from benchmarks import (
    calls,
    checksums,
    client,
    cold,
    explore,
    importing,
    linkbench,
    live_walk,
    maintain,
    migrate,
    rebuild,
    scale,
    serve,
    sharding,
    snapshot,
)
from benchmarks.clients.answers import LAYOUT, Follows, Person
from benchmarks.clients.plain import SOURCE, follows, person
from benchmarks.contestant import Contestant
from benchmarks.handwritten import Handwritten
from benchmarks.measure import replay
from benchmarks.servers.asked import OPERATIONS, PEOPLE, TABLE, parameters
from benchmarks.with_adjoin import WithAdjoin
from benchmarks.workload import LINK_BYTES, MIX, NODE_BYTES, Workload, shape_of
from tests.waiting import LIMIT


@pytest.fixture(autouse=True)
def _frozen() -> None:
    """Benchmarks collect garbage before they measure, which takes long with all that other tests have left."""
    gc.freeze()


def test_processes_of_the_cold_start_find_what_they_ask_for() -> None:
    """Each fails if it does not read the node. A round that is not counted is run all the same."""
    starts = [start for start in cold.STARTS if "one get" in start.name]
    assert [start.on_file for start in starts] == [False, False, True]
    assert cold.run(0, starts) == {start.name: [] for start in starts}


@pytest.fixture(scope="module")
def large() -> Workload:
    return Workload(100_000)


def test_degrees_have_the_quantiles_of_linkbench(large: Workload) -> None:
    shape = shape_of(large)
    assert {name: round(value, 3) for name, value in shape.items() if name != "mean"} == {
        "zero": 0.453,
        "one": 0.321,
        "p90": 3,
        "p99": 15,
        "p99.9": 264,
        "p99.99": 6051,
    }
    assert shape["mean"] == pytest.approx(4.1, abs=0.1)


def test_payloads_have_the_medians_of_linkbench(large: Workload) -> None:
    nodes = sorted(len(node.data) for _, node in zip(range(20_000), large.nodes(), strict=False))
    links = sorted(len(link.data) for _, link in zip(range(20_000), large.links(), strict=False))
    assert nodes[10_000] == pytest.approx(NODE_BYTES, rel=0.05)
    assert links[10_000] == pytest.approx(LINK_BYTES, rel=0.15)
    # Log-normal with a sigma of 1: one in 20 is more than e^1.645 times as long as the median.
    assert nodes[19_000] == pytest.approx(NODE_BYTES * math.exp(1.645), rel=0.1)


def test_operations_come_in_the_shares_of_linkbench(large: Workload) -> None:
    operations = large.operations(50_000)
    dealt = Counter(operation.name for operation in operations)
    assert sum(MIX.values()) == pytest.approx(100)
    assert {name: 100 * dealt[name] / 50_000 for name in MIX} == {
        name: pytest.approx(percent, abs=0.5) for name, percent in MIX.items()
    }


def test_popularity_follows_zipf(large: Workload) -> None:
    operations = large.operations(50_000)
    read = Counter(operation.arguments[0] for operation in operations if operation.name == "getlinklist")
    ten = sum(count for _, count in read.most_common(10)) / read.total()
    ranks = [rank**-0.8 for rank in range(1, 100_001)]
    assert ten == pytest.approx(sum(ranks[:10]) / sum(ranks), rel=0.15)


def test_the_same_seed_gives_the_same_workload() -> None:
    one, other = Workload(500), Workload(500)
    assert list(one.nodes()) == list(other.nodes())
    assert list(one.links()) == list(other.links())
    assert one.operations(300) == other.operations(300)
    assert one.operations(300) != Workload(500, seed=2).operations(300)


# --- contestants -------------------------------------------------------------------------------


def state(path: Path) -> list[tuple[Any, ...]]:
    """Every item with its columns."""
    connection = apsw.Connection(str(path))
    try:
        rows = connection.execute("SELECT pk, sk, size, expires, k1, k2, k3, k4, body FROM items_1 ORDER BY pk, sk")
        return [(*columns, loads(body)) for *columns, body in rows]
    finally:
        connection.close()


def changes(path: Path) -> list[tuple[str, str]]:
    """Every change as its images, whatever their order within a transaction."""
    connection = apsw.Connection(str(path))
    try:
        rows = connection.execute("SELECT old, new FROM changes_1")
        return sorted((_canonical(old), _canonical(new)) for old, new in rows)
    finally:
        connection.close()


def totals(path: Path) -> Any:
    """Items and bytes of the table, as its last change tells them."""
    connection = apsw.Connection(str(path))
    try:
        return connection.execute("SELECT items, bytes FROM changes_1 ORDER BY seq DESC LIMIT 1").get
    finally:
        connection.close()


def _canonical(body: bytes | None) -> str:
    return "" if body is None else repr(sorted(loads(body).items()))


def test_adjoin_and_the_handwritten_program_end_in_the_same_state(tmp_path: Path) -> None:
    workload = Workload(300)
    operations = workload.operations(1200)
    assert {operation.name for operation in operations} == set(MIX)
    loaded = tmp_path / "loaded.db"
    first = WithAdjoin(loaded, "process")
    first.load(workload.nodes(), workload.links())
    first.close()
    files = {name: tmp_path / f"{name}.db" for name in ("adjoin", "handwritten")}
    for file in files.values():
        shutil.copyfile(loaded, file)

    contestants: list[Contestant] = [
        WithAdjoin(files["adjoin"], "process"),
        Handwritten(files["handwritten"], "process"),
    ]
    for contestant in contestants:
        assert len(replay(contestant, operations).each) == len(operations)
        contestant.close()

    assert state(files["adjoin"]) == state(files["handwritten"])
    assert len(state(files["adjoin"])) != len(state(loaded))
    assert changes(files["adjoin"]) == changes(files["handwritten"])
    sizes = [row[2] for row in state(files["adjoin"])]
    assert totals(files["adjoin"]) == totals(files["handwritten"]) == (len(sizes), sum(sizes))


def test_the_handwritten_loader_fills_a_file_as_adjoin_does(tmp_path: Path) -> None:
    workload = Workload(300)
    for name, kind in (("adjoin", WithAdjoin), ("handwritten", Handwritten)):
        WithAdjoin(tmp_path / f"{name}.db", "process").close()
        contestant: Contestant = kind(tmp_path / f"{name}.db", "process")
        contestant.load(workload.nodes(), workload.links())
        contestant.close()
    assert state(tmp_path / "adjoin.db") == state(tmp_path / "handwritten.db")
    assert changes(tmp_path / "adjoin.db") == changes(tmp_path / "handwritten.db")


def test_contestants_give_the_same_answers(tmp_path: Path) -> None:
    workload = Workload(200)
    adjoin = WithAdjoin(tmp_path / "answers.db", "process")
    adjoin.load(workload.nodes(), workload.links())
    handwritten = Handwritten(tmp_path / "answers.db", "process")
    for id in range(1, 201):
        links = [(link.target, link.version, link.time, link.data) for link in adjoin.getlinklist(id, 10)]
        assert links == [
            tuple(link.values())[1:2] + tuple(link.values())[3:] for link in handwritten.getlinklist(id, 10)
        ]
        assert adjoin.countlink(id) == handwritten.countlink(id) == workload.degrees[id]
        node = adjoin.getnode(id)
        assert node is not None
        assert node.model_dump() == handwritten.getnode(id)
    adjoin.close()
    handwritten.close()


# --- the stub ----------------------------------------------------------------------------------

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it needs epoll, or asks for memory")


@pytest.fixture(scope="module")
def stub() -> Iterator[int]:
    """The port of a stub whose queries find three edges."""
    reports: list[client.StubReport] = []
    with client.stub([3], reports) as endpoints:
        yield int(endpoints[3].rpartition(":")[2])
    (report,) = reports
    assert report.requests > 0


def asked(port: int, target: str, body: bytes = b"{}") -> tuple[HTTPResponse, Any]:
    connection = HTTPConnection("127.0.0.1", port, timeout=LIMIT)
    try:
        connection.request("POST", "/", body, {"X-Amz-Target": f"DynamoDB_20120810.{target}"})
        response = connection.getresponse()
        content = response.read()
        assert response.headers["x-amz-crc32"] == str(crc32(content))
        return response, loads(content)
    finally:
        connection.close()


@on_linux
def test_the_stub_answers_with_items_as_adjoin_stores_them(stub: int) -> None:
    _, got = asked(stub, "GetItem")
    assert LAYOUT.read(got["Item"]) == Person(**person(SOURCE))
    _, found = asked(stub, "Query")
    assert [LAYOUT.read(item) for item in found["Items"]] == [Follows(**follows(SOURCE, n)) for n in range(3)]
    assert found["Count"] == found["ScannedCount"] == 3


@on_linux
def test_the_stub_tells_what_was_consumed_if_it_is_asked(stub: int) -> None:
    assert "ConsumedCapacity" not in asked(stub, "Query")[1]
    _, found = asked(stub, "Query", b'{"ReturnConsumedCapacity":"TOTAL"}')
    assert found["ConsumedCapacity"] == {"CapacityUnits": 0.5, "TableName": "Bench"}


@on_linux
def test_the_stub_refuses_what_it_does_not_know(stub: int) -> None:
    response, said = asked(stub, "PutItem")
    assert (response.status, said["message"]) == (400, "putitem")


@on_linux
def test_the_stub_reads_requests_in_any_pieces(stub: int) -> None:
    request = b"POST / HTTP/1.1\r\ncontent-length: 2\r\nx-amz-target: D.GetItem\r\n\r\n{}"
    with socket.create_connection(("127.0.0.1", stub), timeout=LIMIT) as connection:
        for byte in request:
            connection.sendall(bytes([byte]))
        connection.sendall(request + request[:7])
        connection.sendall(request[7:])
        received = b""
        while received.count(b'"Item"') < 3:
            received += connection.recv(65536)
    assert received.count(b"HTTP/1.1 200 OK") == 3


# --- the commands ------------------------------------------------------------------------------


def test_linkbench_prints_its_tables_and_draws_its_chart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = tmp_path / "chart.svg"
    linkbench.main(
        ["--nodes=300", "--operations=300", "--rounds=1", "--without-moto", f"--chart={chart}"],
    )
    shown = capsys.readouterr().out
    for name in ("getlinklist", "addlink", "| power |", "| process |"):
        assert name in shown
    assert "getlinklist" in "".join(ElementTree.parse(chart).getroot().itertext())


@on_linux
def test_scale_reads_both_files_and_tells_the_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scale.main(["--edges=2000", "--samples=20", "--rounds=1", f"--files={tmp_path}"])
    shown = capsys.readouterr().out
    assert "g.edge" in shown
    assert shown.count(" MB |") == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["10000-edges.db", "2000-edges.db"]


@on_linux
def test_exploring_asks_every_view_without_reading_the_file(tmp_path: Path) -> None:
    if not (PAGE / "index.html").exists():
        pytest.skip("the page of the explorer is not built; run: make explorer")
    path = tmp_path / "edges.db"
    scale.fill(path, scale.workload_of(300))
    rows, memory = explore.explore(path, ["--models", "benchmarks.with_adjoin"])
    requests = {what: int(number) for what, number, *_ in rows if number}
    assert requests["Graph: find a node by its id"] == 1
    assert requests["Query: a collection"] == 1
    assert max(requests.values()) <= 300
    assert memory > 0


def test_importing_compares_the_same_edges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    importing.main(["--edges=500", "--rounds=1", f"--files={tmp_path}"])
    shown = capsys.readouterr().out
    for name in importing.CONTESTANTS:
        assert f"| {name} |" in shown
    pairs = {(source, target) for source, target, _, _ in importing.rows(500)}
    counts = []
    for path in (tmp_path / "edges.csv", tmp_path / "edges.parquet"):
        importing.by_sqlite(path, tmp_path / "plain.db")
        importing.by_adjoin(path, tmp_path / "adjoin.db")
        with apsw.Connection(str(tmp_path / "plain.db")) as plain:
            counts.append(plain.execute("SELECT count(*) FROM follows").get)
        plain.close()
        with Graph(tmp_path / "adjoin.db", [importing.User, importing.Follows]) as g:
            counts.append(g.count(importing.Follows))
        for database in tmp_path.glob("*.db*"):
            database.unlink()
    assert counts == [len(pairs)] * 4


def test_sharding_prints_its_tables_and_draws_its_chart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = tmp_path / "chart.svg"
    sharding.main(["--quick", f"--chart={chart}"])
    shown = capsys.readouterr().out
    for name in (
        "| single, targets single |",
        "| adaptive, targets single |",
        "| adaptive, targets fixed:16 |",
        "| seed 1 |",
    ):
        assert name in shown
    assert "adaptive" in "".join(ElementTree.parse(chart).getroot().itertext())


@on_linux
def test_client_checks_the_answers_of_every_client_and_draws_its_chart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chart, figures = tmp_path / "chart.svg", tmp_path / "figures.json"
    client.main(["--rounds=1", "--get=3", "--out=2", "--together=5", f"--chart={chart}", f"--json={figures}"])
    shown = capsys.readouterr().out
    taking_part = [each.name for each in client.CLIENTS if each.is_installed]
    assert {"adjoin, Graph", "adjoin, AsyncGraph", "boto3"} <= set(taking_part)
    told = json.loads(figures.read_text())
    assert list(told) == ["get", "out", "together"]
    assert list(told["get"]) == list(told["out"]) == taking_part
    assert set(told["together"]) == {each.name for each in client.CLIENTS if each.is_installed and each.awaits}
    drawn = "".join(ElementTree.parse(chart).getroot().itertext())
    for name in taking_part:
        assert f"| {name} |" in shown
        assert name in drawn


@on_linux
def test_serve_asks_every_server_that_is_there_and_draws_its_chart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chart, figures = tmp_path / "chart.svg", tmp_path / "figures.json"
    cores = os.sched_getaffinity(0)
    # dynalite takes little time to start.
    only = ["adjoin", "dynalite"]
    serve.main(["--rounds=1", "--seconds=0.01", "--only", *only, f"--chart={chart}", f"--json={figures}"])
    assert os.sched_getaffinity(0) == cores, "this process may use what it might before"
    shown = capsys.readouterr().out
    told = json.loads(figures.read_text())
    assert list(told) == ["boto3", "one", "many", "in_process"]
    drawn = "".join(ElementTree.parse(chart).getroot().itertext())
    for operation in ("get", "put", "query", "batch"):
        assert {"adjoin, power", "adjoin, process"} <= set(told["many"][operation])
        assert all(each["rate"] > 0 and each["processor"] > 0 for each in told["one"][operation].values())
    for name in told["many"]["get"]:
        assert f"| {name} |" in shown
        assert name in drawn


def test_what_servers_are_asked_always_changes_something() -> None:
    for operation in OPERATIONS:
        calls = [parameters(operation.name, number) for number in range(operation.calls)]
        assert len({json.dumps(each) for each in calls}) == operation.calls
        if operation.name in ("put", "batch"):
            held: dict[str, Any] = {}
            for call in calls * 2:
                writes = call.get("RequestItems", {}).get(TABLE) or [{"PutRequest": {"Item": call.get("Item")}}]
                for write in writes:
                    item = write["PutRequest"]["Item"]
                    assert held.get(item["PK"]["S"]) != item
                    held[item["PK"]["S"]] = item
            assert len(held) == PEOPLE


def test_client_names_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="boto3 is not installed; run: pip install 'adjoin\\[peers\\]'"):
        client.main(["--only", "boto3"])


def test_what_is_maintained_is_coalesced(capsys: pytest.CaptureFixture[str]) -> None:
    maintain.main(["--quick", "--edges", "1000"])
    lines = [line.split("|") for line in capsys.readouterr().out.splitlines() if "edges of" in line]
    assert len(lines) == 4
    assert all(float(line[4]) < 0.1 for line in lines)


def test_a_table_moves_while_it_is_written_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The last part compares the tables, and fails if they differ.
    migrate.main(["--items=2000", "--rounds=1", "--alone=0.1", f"--files={tmp_path}"])
    told = capsys.readouterr().out
    assert "2,000 items, 100 writes a second" in told
    assert "| `migrate(into=…)` |" in told
    assert [path.name for path in tmp_path.glob("*.db")] == ["people-2000.db"]


def test_rebuild_computes_what_the_query_does_and_tells_the_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = ["by hand, columns", "adjoin, five aggregates"]
    rebuild.main(["--edges=3000", "--rounds=1", f"--files={tmp_path}", "--without", *others])
    told = capsys.readouterr().out
    assert "rebuild of one sum over 3,000 edges of 150 nodes" in told
    assert told.count(" MB |") == 2
    # The others read the same export here, because most of a process's time is its start.
    export = open_export(tmp_path / "3000-edges")
    columns, five = (rebuild.CONTESTANTS[name](export) for name in others)
    assert (columns["nodes"], five["nodes"]) == (150, 150)
    assert five["wrong"] == 1


# --- checksums ---------------------------------------------------------------------------------


def test_files_with_and_without_checksums_hold_the_same(tmp_path: Path) -> None:
    assert set(checksums.measured(2, tmp_path)) == set(checksums.CALLS)
    rows = []
    for name, has_sum in (("1.db", False), ("2.db", True)):
        connection = apsw.Connection(str(tmp_path / name))
        columns = {row[1] for row in connection.execute("PRAGMA table_info(items_1)")}
        assert ("sum" in columns) is has_sum
        rows.append(connection.execute("SELECT pk, sk, size FROM items_1 ORDER BY pk, sk").fetchall())
        connection.close()
    assert rows[0] == rows[1]
    assert len(rows[0]) == checksums.ITEMS


def test_calls_times_two_trees_in_turns(capsys: pytest.CaptureFixture[str]) -> None:
    calls.main([str(calls.ROOT / "src"), "--rounds", "1", "--only", "get", "delete"])
    head, _, *rows = capsys.readouterr().out.strip().splitlines()
    assert head == "| call | other, µs | this tree, µs | times |"
    assert [row.split(" | ")[0] for row in rows] == ["| get", "| delete"]
    timed = calls.Calls()
    assert all(timed.timed(name) > 0 for name in timed.names)


def test_a_live_walk_runs_before_others_only_while_it_is_measured() -> None:
    before = os.sched_getscheduler(0)
    # Only root may do so.
    with suppress(SystemExit), live_walk.before_others():
        assert os.sched_getscheduler(0) == os.SCHED_FIFO
    assert os.sched_getscheduler(0) == before


def test_a_live_walk_is_compared_with_its_queries_one_by_one() -> None:
    """In a process of its own: it measures garbage collections, and this one has what all other tests have left."""
    command = [sys.executable, "-m", "benchmarks.live_walk", "--friends", "3", "--walks", "5"]
    printed = subprocess.run(command, cwd=calls.ROOT, capture_output=True, text=True, check=True, timeout=LIMIT).stdout
    for name in (
        "3 friends with 3 friends each",
        "a walk, 4 queries in 2 rounds",
        "gc.freeze()",
        "one by one",
        "goals: p90 50 ms",
    ):
        assert name in printed


def test_snapshot_compares_answers_and_prints_its_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """A contestant with another answer would stop the run."""
    snapshot.main(["--quick", "--nodes", "400", "--edges", "2000"])
    printed = capsys.readouterr().out
    assert "400 nodes and 2,000 edges" in printed
    assert "100 nodes and 500 edges" in printed
    for name in ("igraph / snapshot, goal 20", "NetworkX / snapshot", "walk on the file / snapshot", "2 ms / snapshot"):
        assert name in printed
    assert "snapshot / igraph, goal 1.2" in printed
    assert "bytes per edge and direction" in printed
    assert "apply a followed change" in printed
