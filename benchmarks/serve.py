"""The throughput of servers of DynamoDB's protocol: `adjoin serve` and others, on one core, in one run.

    python -m benchmarks.serve [--quick] [--rounds R] [--seconds S] [--only NAME ...]

Each server runs in its own process on one core, and the client on another. Servers take turns, so that other load
on the machine affects all of them alike. It prints the tables of `docs/benchmarks.md` as Markdown.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from benchmarks.chart import Bar, Group, bar_chart
from benchmarks.servers import callers, in_process, wire
from benchmarks.servers.asked import OPERATIONS, Operation
from benchmarks.servers.contestants import CONTESTANTS, Contestant, cores, on_core, processor_seconds
from benchmarks.tables import table
from tests.servers.processes import NotInstalled, Process

CHART = Path(__file__).parent.parent / "docs" / "images" / "servers.svg"
GOAL = 3.0
"""The goal for adjoin's requests per second, as a multiple of the fastest other server's, without boto3's cost."""
MANY = 16


# --- ways of asking ----------------------------------------------------------------------------


class Asked:
    """A running server, with all requests that it will get."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.dynamodb = callers.client(process.url)
        callers.load(self.dynamodb)
        callers.check(self.dynamodb)
        self.calls = {each.name: callers.all_calls(each) for each in OPERATIONS}
        self.requests = {each.name: wire.prepared(each, process.url) for each in OPERATIONS}

    def through_boto3(self, operation: Operation, seconds: float) -> tuple[int, float]:
        return callers.ask(self.dynamodb, operation, self.calls[operation.name], seconds)

    def on_wire(self, connections: int, operation: Operation, seconds: float) -> tuple[int, float]:
        return wire.ask(self.process.url, self.requests[operation.name], connections, seconds)


@dataclass(frozen=True)
class Way:
    """A way of sending requests, and whether the goal applies to it."""

    name: str
    title: str
    ask: Callable[[Asked, Operation, float], tuple[int, float]]
    has_goal: bool = True


WAYS = (
    Way("boto3", "through boto3, one call after the other", Asked.through_boto3, has_goal=False),
    Way("one", "without boto3, one connection", lambda asked, *what: asked.on_wire(1, *what)),
    Way("many", f"without boto3, {MANY} connections at once", lambda asked, *what: asked.on_wire(MANY, *what)),
)


@dataclass(frozen=True)
class Settings:
    rounds: int
    seconds: float


FULL = Settings(rounds=9, seconds=0.3)
QUICK = Settings(rounds=3, seconds=0.1)


# --- measuring ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figures:
    """Requests per second, and the server's processor microseconds per request; medians of all rounds."""

    rate: float
    processor: float


Results: TypeAlias = dict[str, dict[str, dict[str, Figures]]]
"""Figures by way, operation and server."""


@contextmanager
def running(contestants: Sequence[Contestant], folder: Path, core: int) -> Iterator[dict[str, Asked]]:
    """Every installed server, loaded with the data and checked."""
    processes: list[Process] = []
    asked: dict[str, Asked] = {}
    try:
        for contestant in contestants:
            try:
                with on_core(core):
                    processes.append(contestant.start(folder))
            except NotInstalled as error:
                print(f"left out: {error}\n")
                continue
            asked[contestant.name] = Asked(processes[-1])
        yield asked
    finally:
        for process in processes:
            process.stop()


def measured(way: Way, operation: Operation, servers: Mapping[str, Asked], settings: Settings) -> dict[str, Figures]:
    """Runs every server in every round, in changing order. The first round is not counted."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in servers}
    turns = list(servers)
    for _ in range(1 + settings.rounds):
        for name in turns:
            asked = servers[name]
            before = processor_seconds(asked.process.pid)
            answered, seconds = way.ask(asked, operation, settings.seconds)
            computed = processor_seconds(asked.process.pid) - before
            taken[name].append((answered / seconds, computed / answered * 1e6))
        turns.reverse()
    return {name: Figures(*map(median, zip(*every[1:], strict=True))) for name, every in taken.items()}


# --- showing -----------------------------------------------------------------------------------


def ratios(figures: Mapping[str, Figures], name: str) -> tuple[float, float] | None:
    """The speed of a server as a multiple of the fastest that is not adjoin, by the clock and by the processor."""
    others = [figures[each.name] for each in CONTESTANTS if each.name in figures and not each.is_adjoin]
    if not others:
        return None
    own = figures[name]
    return own.rate / max(each.rate for each in others), min(each.processor for each in others) / own.processor


def result_table(way: Way, found: Mapping[str, Mapping[str, Figures]]) -> str:
    rows = []
    names = [each.name for each in CONTESTANTS if each.name in found[OPERATIONS[0].name]]
    for name in names:
        figures = [found[each.name][name] for each in OPERATIONS]
        rows.append([name, *(f"{each.rate:,.0f} ({each.processor:,.0f} µs)" for each in figures)])
    for contestant in CONTESTANTS:
        if contestant.is_adjoin and contestant.name in names:
            times = [ratios(found[each.name], contestant.name) for each in OPERATIONS]
            shown = ["" if each is None else f"{each[0]:.1f} ({each[1]:.1f})" for each in times]
            goal = f", goal {GOAL:g}" if way.has_goal else ""
            rows.append([f"{contestant.name}: times the fastest other{goal}", *shown])
    return table([way.title, *(each.title for each in OPERATIONS)], rows)


def in_process_table(found: Mapping[str, Mapping[str, in_process.Figures]]) -> str:
    rows = [
        [name, *(f"{figures[each.name].clock:,.0f} ({figures[each.name].processor:,.0f})" for each in OPERATIONS)]
        for name, figures in found.items()
    ]
    return table(["boto3 in the server's own process, µs per call", *(each.title for each in OPERATIONS)], rows)


def drawn(results: Results) -> str:
    groups = []
    for operation in OPERATIONS:
        figures = results.get("many", {}).get(operation.name, {})
        bars = [
            Bar(each.name, figures[each.name].rate, f"{figures[each.name].rate:,.0f}", _style(each))
            for each in CONTESTANTS
            if each.name in figures
        ]
        if bars:
            groups.append(Group(operation.title, bars))
    return bar_chart(f"Requests per second on one core, {MANY} connections at once; more is better", groups)


def _style(contestant: Contestant) -> str:
    return "adjoin" if contestant.is_adjoin else "other"


# --- the command -------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.serve", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="short turns, for a first look")
    parser.add_argument("--rounds", type=int, metavar="N", help=f"{FULL.rounds}")
    parser.add_argument("--seconds", type=float, metavar="S", help=f"the length of a turn (default: {FULL.seconds})")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run only these servers, such as adjoin and dynalite")
    parser.add_argument(
        "--ways", nargs="+", choices=[way.name for way in WAYS], help="use only these ways of sending requests"
    )
    parser.add_argument(
        "--chart", type=Path, help="the file for the chart (default: a full run draws the chart of the docs)"
    )
    parser.add_argument("--json", type=Path, help="the file for the figures, as JSON")
    chosen = parser.parse_args(arguments)
    base = QUICK if chosen.quick else FULL
    settings = Settings(
        base.rounds if chosen.rounds is None else chosen.rounds,
        base.seconds if chosen.seconds is None else chosen.seconds,
    )
    only = None if chosen.only is None else [name.lower() for name in chosen.only]
    contestants = [each for each in CONTESTANTS if only is None or each.program.lower() in only]
    ways = [way for way in WAYS if chosen.ways is None or way.name in chosen.ways]
    is_full = settings == FULL and contestants == list(CONTESTANTS) and ways == list(WAYS)
    run(settings, contestants, ways, chosen.chart or (CHART if is_full else None), chosen.json)


def run(
    settings: Settings,
    contestants: Sequence[Contestant],
    ways: Sequence[Way],
    chart_path: Path | None,
    json_path: Path | None,
) -> None:
    results: Results = {}
    server_core, own_core = cores()
    told: dict[str, Any] = {}
    with (
        TemporaryDirectory(prefix="serve-") as folder,
        on_core(own_core),
        running(contestants, Path(folder), server_core) as servers,
    ):
        for way in ways:
            found = {each.name: measured(way, each, servers, settings) for each in OPERATIONS}
            results[way.name] = found
            print(f"requests per second (µs of the server's processor), medians of {settings.rounds} rounds\n")
            print(result_table(way, found), flush=True)
            told[way.name] = {name: {who: vars(one) for who, one in each.items()} for name, each in found.items()}
    # Their names begin with the name of the program.
    kinds = [kind for kind in in_process.KINDS if any(kind.startswith(each.program) for each in contestants)]
    beside = in_process.measured(kinds, settings.rounds, settings.seconds)
    print(in_process_table(beside), flush=True)
    told["in_process"] = {who: {name: vars(one) for name, one in each.items()} for who, each in beside.items()}
    if chart_path is not None:
        chart_path.parent.mkdir(parents=True, exist_ok=True)
        chart_path.write_text(drawn(results), encoding="utf-8")
    if json_path is not None:
        json_path.write_text(json.dumps(told, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
