"""Whether reading slows down as the file grows: the same reads on a small file and on a large one.

    python -m benchmarks.scale [--edges 10000000] [--quick] [--files DIRECTORY]

Both files hold LinkBench's graph, filled by `put_many`. One fresh process per file only reads. The two take
turns, and each reports its times and its memory. `--files` keeps the files, and uses existing ones. Memory and the
system's cache are measured in a way that works on Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, perf_counter_ns
from typing import Any, Self

from benchmarks.tables import table
from benchmarks.with_adjoin import Link, WithAdjoin
from benchmarks.workload import MEAN_DEGREE, Workload

SMALL, LARGE, QUICK = 10_000, 10_000_000, 200_000
NEIGHBOURS = 10
GOAL, MEMORY_GOAL = 1.5, 150.0
"""How many times as long a read of the large file may take, and how many MB the reader may use."""

Sample = dict[str, list[Any]]
"""What a reader reads: ids of nodes, ends of links, and ids with at least ten links."""


# --- the files ---------------------------------------------------------------------------------


def workload_of(edges: int) -> Workload:
    """A graph with at least this many links, and few more."""
    nodes = round(edges / MEAN_DEGREE)
    while (workload := Workload(nodes)).links_in_all < edges:
        nodes = nodes * edges // workload.links_in_all + 1
    return workload


def fill(path: Path, workload: Workload) -> float:
    """Fills a file; returns the seconds it took. The file appears only when it is complete."""
    begin = perf_counter()
    partial = path.with_suffix(".partial")
    for left in partial.parent.glob(f"{partial.name}*"):
        left.unlink()
    contestant = WithAdjoin(partial, "process")
    contestant.load(workload.nodes(), workload.links())
    contestant.close()
    partial.rename(path)
    return perf_counter() - begin


def sample_of(workload: Workload, most: int) -> Sample:
    random = Random("sample")
    ids = range(1, workload.size + 1)
    linked = [id for id in ids if workload.degrees[id]]
    wide = [id for id in linked if workload.degrees[id] >= NEIGHBOURS]
    return {
        "nodes": random.choices(ids, k=most),
        "links": [(id, workload.target(id, 0)) for id in random.choices(linked, k=most)],
        "wide": random.choices(wide, k=most),
    }


# --- the reader, in its own process ------------------------------------------------------------


class Reading:
    """The reads of one file; each returns the nanoseconds per read."""

    def __init__(self, path: str, sample: Sample) -> None:
        self._contestant = WithAdjoin(path)
        graph = self._contestant.graph
        self._reads: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
            "node": (self._contestant.getnode, sample["nodes"]),
            "link": (lambda ends: graph.edge(Link, *ends), sample["links"]),
            "neighbours": (lambda id: list(graph.out(id, Link).limit(NEIGHBOURS)), sample["wide"]),
        }

    def measure(self, start: int, count: int) -> dict[str, list[int]]:
        """Reads a part of the sample."""
        return {
            name: [self._time(call, which) for which in some[start : start + count]]
            for name, (call, some) in self._reads.items()
        }

    @staticmethod
    def _time(call: Callable[[Any], Any], which: Any) -> int:
        start = perf_counter_ns()
        found = call(which)
        took = perf_counter_ns() - start
        if not found or (isinstance(found, list) and len(found) != NEIGHBOURS):
            raise SystemExit(f"{which} returned {found}: the sample was made for another file")
        return took


def memory() -> dict[str, float]:
    """The memory of this process in MB: now, and its peak."""
    status = Path("/proc/self/status").read_text()
    return {name: int(re.findall(rf"{name}:\s*(\d+) kB", status)[0]) / 1000 for name in ("VmRSS", "VmHWM")}


def serve() -> None:
    """Answers lines of JSON: the first names the file and its sample, the others which part of the sample to read."""
    reading: Reading | None = None
    for line in sys.stdin:
        order = json.loads(line)
        answer: dict[str, Any] = {}
        if reading is None:
            reading = Reading(order["path"], order["sample"])
        elif order["count"]:
            answer = reading.measure(order["start"], order["count"])
        else:
            answer = memory()
        print(json.dumps(answer), flush=True)


class Reader:
    """A process that reads one file on request."""

    def __init__(self, path: Path, sample: Sample) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.scale", "--read"],
            cwd=Path(__file__).parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ask({"path": str(path), "sample": sample})

    def read(self, start: int, count: int) -> dict[str, list[int]]:
        times: dict[str, list[int]] = self._ask({"start": start, "count": count})
        return times

    def memory(self) -> dict[str, float]:
        taken: dict[str, float] = self._ask({"count": 0})
        return taken

    def _ask(self, order: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


# --- the comparison ----------------------------------------------------------------------------

READS = {
    "node": "a node, g.get",
    "link": "a link, g.edge",
    "neighbours": f"{NEIGHBOURS} neighbours, g.out(x, Link).limit({NEIGHBOURS})",
}


def forget(path: Path) -> None:
    """Asks the system to drop its copy of the file from memory, so that the next reads go to the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def compare(paths: Sequence[Path], samples: Sequence[Sample], count: int, rounds: int) -> None:
    with ExitStack() as stack:
        for path in paths:
            forget(path)
        readers = [stack.enter_context(Reader(*each)) for each in zip(paths, samples, strict=True)]
        # Part by part in turns: the first read comes from the disk, later ones from memory.
        step = max(1, count // 20)
        cold, warm = ([{name: list[int]() for name in READS} for _ in readers] for _ in range(2))
        for again in range(rounds + 1):
            for start in range(0, count, step):
                for reader, kept in zip(readers, warm if again else cold, strict=True):
                    for name, times in reader.read(start, step).items():
                        kept[name] += times
        show("read again, from the system's memory", warm, GOAL)
        show("first read, from the disk", cold, None)
        taken = [reader.memory() for reader in readers]
        rows = [
            [f"{path.name}", *(f"{one[name]:.0f} MB" for name in ("VmRSS", "VmHWM"))]
            for path, one in zip(paths, taken, strict=True)
        ]
        print(table(["reader of", "memory", f"at most (goal: {MEMORY_GOAL:g} MB)"], rows))


def show(title: str, times: Sequence[dict[str, list[int]]], goal: float | None) -> None:
    rows = []
    for name, described in READS.items():
        small, large = (median(one[name]) / 1e3 for one in times)
        rows.append([described, f"{small:,.0f} µs", f"{large:,.0f} µs", f"{large / small:.2f}", f"{goal or ''}"])
    print(table([f"{title}; medians", "small", "large", "ratio", "goal"], rows), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.scale", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--edges", type=int, help=f"edges of the large file (default: {LARGE:,})")
    parser.add_argument("--quick", action="store_true", help=f"only {QUICK:,} edges")
    parser.add_argument("--samples", type=int, default=10_000, help="reads of each kind per round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--files", type=Path, help="a directory that keeps the files (default: they are removed at the end)"
    )
    parser.add_argument("--read", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.read:
        serve()
        return
    edges = chosen.edges or (QUICK if chosen.quick else LARGE)
    with TemporaryDirectory(prefix="scale-") as temporary:
        folder = chosen.files or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        paths, samples = [], []
        for wanted in (SMALL, edges):
            workload = workload_of(wanted)
            path = folder / f"{wanted}-edges.db"
            about = f"{workload.size:,} nodes, {workload.links_in_all:,} edges"
            if not path.exists():
                seconds = fill(path, workload)
                items = workload.size + workload.links_in_all
                about += f", filled by put_many in {seconds:,.0f} s ({items / seconds:,.0f} items/s)"
            print(f"{path.name}: {about}, {path.stat().st_size / 1e6:,.0f} MB", flush=True)
            paths.append(path)
            samples.append(sample_of(workload, chosen.samples))
            del workload
        print()
        compare(paths, samples, chosen.samples, chosen.rounds)


if __name__ == "__main__":
    main()
