"""LinkBench's request mix on adjoin, on a hand-written program and on moto, in one run.

    python -m benchmarks.linkbench [--quick] [--nodes N] [--operations M] [--rounds R]

Contestants take turns, each on a fresh copy of the same loaded file, so that other load on the machine affects
all of them alike. It prints the tables of `docs/benchmarks.md` as Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from adjoin.stores.sqlite.file import Durability
from benchmarks.chart import Bar, Group, Range, chart
from benchmarks.contestant import Contestant
from benchmarks.handwritten import Handwritten
from benchmarks.measure import PERCENTILES, Record, replay
from benchmarks.tables import table
from benchmarks.with_adjoin import WithAdjoin
from benchmarks.with_moto import WithMoto
from benchmarks.workload import MIX, Operation, Workload, shape_of

CHART = Path(__file__).parent.parent / "docs" / "images" / "linkbench.svg"
GOALS = {"handwritten": 0.5, "moto": 50.0}
"""The goals for adjoin's throughput, as a multiple of the other contestant's."""
DURABILITIES: dict[Durability, str] = {
    "power": "a finished write survives loss of power (the default)",
    "process": "a finished write survives the end of the process (durability=process)",
}


@dataclass(frozen=True)
class Settings:
    nodes: int
    operations: int
    rounds: int
    moto_nodes: int
    moto_operations: int
    moto_rounds: int


FULL = Settings(100_000, 20_000, 7, 1_000, 1_000, 3)
QUICK = Settings(10_000, 5_000, 3, 300, 300, 1)

Opener = Callable[[Path], Contestant]


# --- running -----------------------------------------------------------------------------------


def take_turns(
    loaded: Path, operations: Sequence[Operation], rounds: int, openers: Mapping[str, Opener]
) -> dict[str, Record]:
    """Every contestant replays the operations in every round, in changing order."""
    records = {name: Record(name, operations) for name in openers}
    order = list(openers)
    for _ in range(rounds):
        for name in order:
            with TemporaryDirectory(dir=loaded.parent) as folder:
                copy = fresh_copy(loaded, Path(folder) / "round.db")
                contestant = openers[name](copy)
                try:
                    records[name].rounds.append(replay(contestant, operations))
                finally:
                    contestant.close()
        order.reverse()
    return records


def fresh_copy(loaded: Path, copy: Path) -> Path:
    """A copy that is synced to disk: otherwise the first write would wait until all of it is."""
    shutil.copyfile(loaded, copy)
    with copy.open("rb+") as file:
        os.fsync(file.fileno())
    return copy


def beside_handwritten(loaded: Path, settings: Settings, workload: Workload) -> dict[Durability, dict[str, Record]]:
    operations = workload.operations(settings.operations)
    return {
        durability: take_turns(
            loaded,
            operations,
            settings.rounds,
            {
                "adjoin": lambda path, durability=durability: WithAdjoin(path, durability),  # type: ignore[misc]
                "handwritten": lambda path, durability=durability: Handwritten(path, durability),  # type: ignore[misc]
            },
        )
        for durability in DURABILITIES
    }


def beside_moto(folder: Path, settings: Settings) -> dict[str, Record]:
    """Runs on a small graph, because moto reads every item of the table to query an index."""
    workload = Workload(settings.moto_nodes)
    loaded = folder / "small.db"
    load(loaded, workload)
    operations = workload.operations(settings.moto_operations)

    def moto(_: Path) -> Contestant:
        contestant = WithMoto()
        contestant.load(workload.nodes(), workload.links())
        return contestant

    openers: dict[str, Opener] = {
        "moto": moto,
        "adjoin, process": lambda path: WithAdjoin(path, "process"),
        "adjoin, power": lambda path: WithAdjoin(path, "power"),
    }
    return take_turns(loaded, operations, settings.moto_rounds, openers)


def load(path: Path, workload: Workload) -> float:
    """Fills a file with the graph; returns the seconds it took."""
    begin = perf_counter()
    contestant = WithAdjoin(path, "process")
    contestant.load(workload.nodes(), workload.links())
    contestant.close()
    return perf_counter() - begin


# --- showing -----------------------------------------------------------------------------------


def shape_table(workload: Workload) -> str:
    wanted = {"zero": 0.453, "one": 0.321, "p90": 3, "p99": 15, "p99.9": 264, "p99.99": 6051, "mean": 4.1}
    shape = shape_of(workload)
    return table(
        ["degrees", *wanted],
        [
            ["LinkBench", *(f"{value:g}" for value in wanted.values())],
            ["this graph", *(f"{shape[name]:.4g}" for name in wanted)],
        ],
    )


def throughput_table(duels: Mapping[Durability, Mapping[str, Record]]) -> str:
    rows = []
    for durability, records in duels.items():
        ours, theirs = records["adjoin"], records["handwritten"]
        rows.append(
            [
                durability,
                f"{ours.throughput:,.0f}",
                f"{theirs.throughput:,.0f}",
                f"{ours.throughput / theirs.throughput:.2f}",
                f"{GOALS['handwritten']}",
                f"{ours.processor:,.0f} / {theirs.processor:,.0f}",
            ]
        )
    head = ["durability", "adjoin, operations/s", "hand-written", "ratio", "goal", "processor, µs per operation"]
    return table(head, rows)


def moto_table(records: Mapping[str, Record]) -> str:
    theirs = records["moto"].throughput
    rows = [["moto", f"{theirs:,.0f}", "1", ""]]
    for name, goal in (("adjoin, process", f"{GOALS['moto']:g}"), ("adjoin, power", "")):
        ours = records[name].throughput
        rows.append([name, f"{ours:,.0f}", f"{ours / theirs:,.0f}", goal])
    return table(["", "operations/s", "ratio", "goal"], rows)


def latency_table(records: Mapping[str, Record]) -> str:
    rows = []
    for name, percent in MIX.items():
        ours, theirs = (records[each].percentiles(name) for each in ("adjoin", "handwritten"))
        if ours:
            means = records["handwritten"].mean(name) / records["adjoin"].mean(name)
            pairs = [f"{ours[label]:,.0f} / {theirs[label]:,.0f}" for label in PERCENTILES]
            rows.append([name, f"{percent} %", *pairs, f"{theirs['p50'] / ours['p50']:.2f}", f"{means:.2f}"])
    head = ["operation", "share", *(f"{label}, µs" for label in PERCENTILES), "ratio at p50", "ratio of means"]
    return table(head, rows)


def drawn(duels: Mapping[Durability, Mapping[str, Record]], moto: Mapping[str, Record] | None) -> str:
    groups = []
    for durability, records in duels.items():
        ours, theirs = records["adjoin"].throughput, records["handwritten"].throughput
        groups.append(
            Group(
                DURABILITIES[durability],
                [
                    Bar("hand-written", theirs, f"{theirs:,.0f}", "other"),
                    Bar("adjoin", ours, f"{ours:,.0f}, {ours / theirs:.2f} of hand-written", "adjoin"),
                ],
            )
        )
    if moto:
        theirs, ours = moto["moto"].throughput, moto["adjoin, process"].throughput
        groups.append(
            Group(
                "a small graph, adjoin with durability=process; moto keeps nothing",
                [
                    Bar("moto", theirs, f"{theirs:,.0f}", "other"),
                    Bar("adjoin", ours, f"{ours:,.0f}, {ours / theirs:,.0f} times moto", "adjoin"),
                ],
            )
        )
    records = duels["power"]
    ranges = []
    for name in MIX:
        ours_at, theirs_at = (records[each].percentiles(name) for each in ("adjoin", "handwritten"))
        if ours_at:
            ranges.append(
                Range(name, (ours_at["p50"], ours_at["p99"]), (theirs_at["p50"], theirs_at["p99"])),
            )
    return chart(
        "LinkBench's request mix: operations per second",
        groups,
        "Latency at the default durability: from the median (dot) to the 99th percentile; blue is adjoin",
        ranges,
    )


def raw(duels: Mapping[Durability, Mapping[str, Record]], moto: Mapping[str, Record] | None) -> dict[str, Any]:
    """The figures behind the tables: nanoseconds of each round by clock and processor, percentiles in microseconds."""

    def told(records: Mapping[str, Record]) -> dict[str, Any]:
        return {
            name: {
                "throughput": record.throughput,
                "rounds": [[round.whole, round.processor] for round in record.rounds],
                "percentiles": {each: record.percentiles(each) for each in MIX},
            }
            for name, record in records.items()
        }

    return {**{durability: told(records) for durability, records in duels.items()}, "moto": told(moto or {})}


# --- the command -------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.linkbench", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small graph and few operations, for a first look")
    for name in FULL.__dataclass_fields__:
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help=f"{getattr(FULL, name):,}")
    parser.add_argument("--without-moto", action="store_true")
    parser.add_argument(
        "--chart", type=Path, help="the file for the chart (default: a full run draws the chart of the docs)"
    )
    parser.add_argument("--json", type=Path, help="the file for the raw figures, as JSON")
    chosen = parser.parse_args(arguments)
    base = QUICK if chosen.quick else FULL
    settings = Settings(
        **{
            name: getattr(base, name) if getattr(chosen, name) is None else getattr(chosen, name)
            for name in FULL.__dataclass_fields__
        }
    )
    is_full = settings == FULL and not chosen.without_moto
    run(settings, not chosen.without_moto, chosen.chart or (CHART if is_full else None), chosen.json)


def run(settings: Settings, with_moto: bool, chart_path: Path | None, json_path: Path | None) -> None:
    with TemporaryDirectory(prefix="linkbench-") as name:
        folder = Path(name)
        workload = Workload(settings.nodes)
        print(f"{settings.nodes:,} nodes, {workload.links_in_all:,} links\n\n{shape_table(workload)}", flush=True)
        loaded = folder / "loaded.db"
        seconds = load(loaded, workload)
        print(f"loaded with put_many in {seconds:,.1f} s, {loaded.stat().st_size / 1e6:,.0f} MB\n", flush=True)
        print(f"{settings.operations:,} operations, medians of {settings.rounds} rounds\n", flush=True)
        duels = beside_handwritten(loaded, settings, workload)
        print(throughput_table(duels), flush=True)
        for durability, records in duels.items():
            print(f"latency, adjoin / hand-written, durability={durability}\n\n{latency_table(records)}", flush=True)
        moto = beside_moto(folder, settings) if with_moto else None
        if moto:
            print(f"{settings.moto_nodes:,} nodes, {settings.moto_operations:,} operations\n\n{moto_table(moto)}")
    if chart_path is not None:
        chart_path.parent.mkdir(parents=True, exist_ok=True)
        chart_path.write_text(drawn(duels, moto), encoding="utf-8")
    if json_path is not None:
        json_path.write_text(json.dumps(raw(duels, moto), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
