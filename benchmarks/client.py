"""The cost of a call to DynamoDB: adjoin and other clients, against one stub, in one run.

    python -m benchmarks.client [--quick] [--rounds R] [--only NAME ...]

Each client runs in its own process. They take turns, so that other load on the machine affects all of them
alike. It prints the tables of `docs/benchmarks.md` as Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from benchmarks.chart import Bar, Group, bar_chart
from benchmarks.clients.plain import ACCESS_KEY, REGION, SECRET_KEY
from benchmarks.tables import table

ROOT = Path(__file__).parent.parent
CHART = ROOT / "docs" / "images" / "clients.svg"


# --- clients and calls -------------------------------------------------------------------------


@dataclass(frozen=True)
class Client:
    """A contestant: its name, its module and class, the package it needs, and the client of adjoin to compare with."""

    name: str
    module: str
    made: str
    package: str
    awaits: bool = False

    @property
    def is_adjoin(self) -> bool:
        return self.package == "adjoin"

    @property
    def is_installed(self) -> bool:
        return find_spec(self.package) is not None


CLIENTS = (
    Client("adjoin, Graph", "with_adjoin", "WithAdjoin", "adjoin"),
    Client("adjoin, AsyncGraph", "with_adjoin", "WithAdjoinAwaited", "adjoin", awaits=True),
    Client("boto3", "with_boto3", "WithBoto3", "boto3"),
    Client("PynamoDB", "with_pynamodb", "WithPynamoDB", "pynamodb"),
    Client("pydynox", "with_pydynox", "WithPydynox", "pydynox"),
    Client("pydynox, awaited", "with_pydynox", "WithPydynoxAwaited", "pydynox", awaits=True),
    Client("aiodynamo", "with_aiodynamo", "WithAiodynamo", "aiodynamo", awaits=True),
    Client("aiobotocore", "with_aiobotocore", "WithAiobotocore", "aiobotocore", awaits=True),
)


@dataclass(frozen=True)
class Measurement:
    """One measurement: how many edges a query finds, and how many times faster than each client adjoin should be."""

    order: str
    title: str
    edges: int
    goals: Mapping[str, float]

    @property
    def in_turn(self) -> bool:
        """Whether each call waits for the previous one."""
        return self.order != "together"


_CALL_GOALS = {"boto3": 4.0, "PynamoDB": 4.0, "pydynox": 1.0, "pydynox, awaited": 1.0, "aiodynamo": 1.0}
MEASUREMENTS = (
    Measurement("get", "one node of 10 fields", 100, _CALL_GOALS),
    Measurement("out", "100 edges of 8 fields", 100, _CALL_GOALS),
    Measurement("together", "500 queries at once, 25 edges each", 25, {"aiobotocore": 5.0}),
)


@dataclass(frozen=True)
class Settings:
    rounds: int
    get: int
    out: int
    together: int


FULL = Settings(rounds=15, get=400, out=100, together=500)
QUICK = Settings(rounds=3, get=100, out=30, together=500)


# --- processes ---------------------------------------------------------------------------------


def _environment() -> dict[str, str]:
    """An environment with static credentials, without this machine's settings for AWS and proxies."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    kept = {name: value for name, value in kept.items() if not name.lower().endswith("_proxy")}
    return kept | {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


class Process:
    """A running module of the benchmark, which answers each line with a line until its input ends."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._module = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._module} ended with status {self._process.wait()}; its output is above")
        return line

    def ask(self, order: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()
        return self.read()

    def end(self) -> str:
        """Ends its input, and returns the rest of its output."""
        return self._process.communicate(timeout=30)[0]

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


@dataclass(frozen=True)
class StubReport:
    requests: int
    processor: float


@contextmanager
def stub(edges: Sequence[int], reports: list[StubReport]) -> Iterator[dict[int, str]]:
    """The endpoint for each number of edges. At the end, `reports` gets the processor time of the stub."""
    with Process("benchmarks.clients.stub", *map(str, edges)) as process:
        ports = json.loads(process.read())
        yield {number: f"http://127.0.0.1:{port}" for number, port in zip(edges, ports, strict=True)}
        reports.append(StubReport(**json.loads(process.end())))


# --- measuring ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figures:
    """Microseconds per call, by the clock and of the processor; medians of all rounds."""

    clock: float
    processor: float


Results = dict[str, dict[str, Figures]]


@contextmanager
def working(clients: Sequence[Client], endpoint: str, edges: int) -> Iterator[dict[str, Process]]:
    """One process per client, after its answers were checked."""
    with ExitStack() as running:
        workers = {}
        for client in clients:
            module = f"benchmarks.clients.{client.module}"
            process = Process("benchmarks.clients.worker", module, client.made, endpoint, str(edges))
            workers[client.name] = running.enter_context(process)
        for worker in workers.values():
            worker.read()
        yield workers


def measured(order: str, calls: int, rounds: int, workers: Mapping[str, Process]) -> dict[str, Figures]:
    """Runs every client in every round, in changing order. The first round is not counted."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in workers}
    turns = list(workers)
    for _ in range(1 + rounds):
        for name in turns:
            taken[name].append(json.loads(workers[name].ask(f"{order} {calls}")))
        turns.reverse()
    return {
        name: Figures(*(median(nanoseconds) / 1e3 for nanoseconds in zip(*every[1:], strict=True)))
        for name, every in taken.items()
    }


# --- showing -----------------------------------------------------------------------------------


def beside(client: Client) -> str:
    """The graph that a client is compared with: `Graph` for blocking clients, `AsyncGraph` for async ones."""
    return next(each.name for each in CLIENTS if each.is_adjoin and each.awaits == client.awaits)


def result_table(measurement: Measurement, figures: Mapping[str, Figures]) -> str:
    rows = []
    for client in CLIENTS:
        if client.name not in figures:
            continue
        own, ours = figures[client.name], figures.get(beside(client))
        shown = [f"{own.clock:,.0f}", f"{own.processor:,.0f}"]
        if not measurement.in_turn:
            shown.insert(0, f"{1e6 / own.clock:,.0f}")
        ratios = ["", ""]
        if ours is not None and not client.is_adjoin:
            ratios = [f"{own.clock / ours.clock:.1f}", f"{own.processor / ours.processor:.1f}"]
        goal = measurement.goals.get(client.name)
        rows.append([client.name, *shown, *ratios, "" if goal is None else f"{goal:g}"])
    rate = [] if measurement.in_turn else ["queries/s"]
    return table(
        [measurement.title, *rate, "µs per call", "processor, µs", "times adjoin's", "by processor", "goal"],
        rows,
    )


def drawn(results: Mapping[str, Mapping[str, Figures]]) -> str:
    groups = []
    for measurement in MEASUREMENTS:
        figures = results.get(measurement.order, {})
        bars = [
            Bar(client.name, figures[client.name].clock, _note(figures, client), _style(client))
            for client in CLIENTS
            if client.name in figures
        ]
        if bars:
            groups.append(Group(measurement.title, bars))
    return bar_chart("What a call costs: microseconds by the clock, less is better", groups)


def _style(client: Client) -> str:
    return "adjoin" if client.is_adjoin else "other"


def _note(figures: Mapping[str, Figures], client: Client) -> str:
    own, ours = figures[client.name], figures.get(beside(client))
    told = f"{own.clock:,.0f} µs"
    return told if client.is_adjoin or ours is None else f"{told}, {own.clock / ours.clock:.1f} times"


# --- the command -------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.client", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="make few calls, for a first look")
    for name in FULL.__dataclass_fields__:
        parser.add_argument(f"--{name}", type=int, metavar="N", help=f"{getattr(FULL, name):,}")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run only these packages, such as adjoin and boto3")
    parser.add_argument(
        "--chart", type=Path, help="the file for the chart (default: a full run draws the chart of the docs)"
    )
    parser.add_argument("--json", type=Path, help="the file for the figures, as JSON")
    chosen = parser.parse_args(arguments)
    base = QUICK if chosen.quick else FULL
    settings = Settings(
        **{
            name: getattr(base, name) if getattr(chosen, name) is None else getattr(chosen, name)
            for name in FULL.__dataclass_fields__
        }
    )
    clients = [client for client in CLIENTS if chosen.only is None or client.package in chosen.only]
    missing = sorted({client.package for client in clients if not client.is_installed})
    if missing and chosen.only is None:
        print(f"left out, because they are not installed: {', '.join(missing)}; run: pip install 'adjoin[peers]'\n")
    elif missing:
        raise SystemExit(f"{', '.join(missing)} is not installed; run: pip install 'adjoin[peers]'")
    clients = [client for client in clients if client.is_installed]
    is_full = settings == FULL and clients == list(CLIENTS)
    run(settings, clients, chosen.chart or (CHART if is_full else None), chosen.json)


def run(settings: Settings, clients: Sequence[Client], chart_path: Path | None, json_path: Path | None) -> None:
    reports: list[StubReport] = []
    results: Results = {}
    pages = {measurement.edges: measurement.in_turn for measurement in MEASUREMENTS}
    with stub(list(pages), reports) as endpoints:
        for edges, in_turn in pages.items():
            taking_part = [client for client in clients if in_turn or client.awaits]
            with working(taking_part, endpoints[edges], edges) as workers:
                for measurement in MEASUREMENTS:
                    if measurement.edges == edges and workers:
                        calls = getattr(settings, measurement.order)
                        figures = measured(measurement.order, calls, settings.rounds, workers)
                        results[measurement.order] = figures
                        print(f"medians of {settings.rounds} rounds of {calls:,} calls\n")
                        print(result_table(measurement, figures), flush=True)
    (report,) = reports
    print(f"the stub took {report.processor / report.requests * 1e6:.0f} µs of processor time per request")
    if chart_path is not None:
        chart_path.parent.mkdir(parents=True, exist_ok=True)
        chart_path.write_text(drawn(results), encoding="utf-8")
    if json_path is not None:
        told = {order: {name: vars(each) for name, each in found.items()} for order, found in results.items()}
        json_path.write_text(json.dumps(told, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
