"""A table that moves into another layout while it is written to: items per second, and what its writers notice.

    python -m benchmarks.migrate [--items 1000000] [--quick] [--files DIRECTORY]

The table is a file in the layout `AdjacencyList`: people, and whom they follow. It moves into another file, in the
layout `MaterializedGraph`, by `old.migrate(into=new)`. In turns with it, `adjoin copy` copies the same table as it is.
During both, another process writes to the table at a fixed rate, and so it does while nothing else is at work. Each
process prints its times. Items per second are counted until the last item of the table is written: a copy of a table
that is written to all the time then follows it for five seconds more, which is no measure of its speed. At the end, a
last step applies what was written since, and the two tables are compared by their numbers of nodes and edges. `--files`
keeps the table, and uses an existing one.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, perf_counter_ns, process_time, sleep
from typing import Annotated, Any

from adjoin import Edge, Graph, Indexed, MaterializedGraph, Node
from adjoin.copying import copy
from adjoin.locations import open_store
from benchmarks.tables import table
from benchmarks.workload import quantile

LARGE, QUICK = 1_000_000, 20_000
FOLLOWED = 4
"""How many others a person follows: four of five items are edges."""
GOAL, LATENCY_GOAL = 0.5, 2.0
"""Items per second of the migration, as a share of those of the copy; and how many times as long a write may take."""
RATE = 100
"""Writes per second."""
ALONE = 30.0
"""Seconds for which the writer is alone."""
ROUNDS = 3
_NAMES = 1000


class Person(Node):
    id: str
    name: Annotated[str, Indexed()]
    city: str
    born: int


class Follows(Edge[Person, Person], order="since"):
    since: int


MODELS: list[type[Any]] = [Person, Follows]
OTHER = MaterializedGraph(table="Moved")
_FAST = "?durability=process"


def entities(items: int) -> Iterator[Person | Follows]:
    """So many people and edges together."""
    random = Random("migrate")
    people = max(items // (1 + FOLLOWED), 1)
    for number in range(people):
        yield Person(id=f"P{number}", name=f"n{random.randrange(_NAMES)}", city=f"c{number % 97}", born=number % 80)
    for number in range(items - people):
        source, step = number % people, number // people
        target = (source + 1 + step * 7919) % people
        yield Follows(source=f"P{source}", target=f"P{target}", since=random.randrange(10**9))


def fill(path: Path, items: int) -> None:
    partial = path.with_suffix(".partial")
    for left in partial.parent.glob(f"{partial.name}*"):
        left.unlink()
    with Graph(f"{partial}{_FAST}", MODELS) as graph:
        graph.put_many(entities(items))
    partial.rename(path)


# --- processes ---------------------------------------------------------------------------------


def write(path: str, items: int) -> None:
    """Writes at a fixed rate until its input ends, and prints the nanoseconds of each write."""
    random = Random("writer")
    people = max(items // (1 + FOLLOWED), 1)
    times: list[int] = []
    with Graph(f"{path}{_FAST}", MODELS) as graph:
        print("ready", flush=True)
        begin = perf_counter()
        while not _is_told_to_end():
            number = random.randrange(people)
            made: Person | Follows = Person(id=f"P{number}", name=f"n{number % _NAMES}", city="c", born=number % 80)
            if len(times) % 2:
                made = Follows(source=f"P{number}", target=f"P{random.randrange(people)}", since=len(times))
            start = perf_counter_ns()
            graph.put(made)
            times.append(perf_counter_ns() - start)
            # Each write has its moment. If one is late, the next ones do not wait until the rate is reached again.
            sleep(max(0.0, begin + len(times) / RATE - perf_counter()))
    print(json.dumps(times), flush=True)


def _is_told_to_end() -> bool:
    return Path(sys.argv[-1]).exists()


class Watch:
    """How long a stage took, as progress tells."""

    def __init__(self, stage: str) -> None:
        self._stage, self._begin, self._worked = stage, perf_counter(), process_time()
        self.seconds = self.processor = 0.0

    def __call__(self, told: Any) -> None:
        if told.stage == self._stage:
            self.seconds, self.processor = perf_counter() - self._begin, process_time() - self._worked

    def show(self, items: int) -> None:
        print(json.dumps({"seconds": self.seconds, "processor": self.processor, "items": items}))


def move(old: str, new: str) -> None:
    with Graph(f"{old}{_FAST}", MODELS) as source, Graph(f"{new}{_FAST}", MODELS, OTHER) as target:
        watch = Watch("reading")
        report = source.migrate(into=target, progress=watch)
        watch.show(report.read)


def finish(old: str, new: str) -> None:
    with Graph(f"{old}{_FAST}", MODELS) as source, Graph(f"{new}{_FAST}", MODELS, OTHER) as target:
        begin = perf_counter()
        report = source.migrate(into=target, finish=True)
        seconds = perf_counter() - begin
        if not report.ended:
            raise SystemExit(f"the migration has not ended: {report}")
        counts = [(one.count(model), other.count(model)) for model in MODELS for one, other in ((source, target),)]
        if any(ours != theirs for ours, theirs in counts):
            raise SystemExit(f"the tables differ: {counts}")
        print(json.dumps({"seconds": seconds}))


def copied(old: str, new: str) -> None:
    source, target = open_store(f"{old}{_FAST}"), open_store(f"{new}{_FAST}")
    watch = Watch("copying")
    done = copy(source, target, "adjoin", progress=watch)
    watch.show(done.items)


_PARTS = {"move": move, "finish": finish, "copy": copied}


class Process:
    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "benchmarks.migrate", *arguments]
        self._process = subprocess.Popen(command, cwd=Path(__file__).parent.parent, stdout=subprocess.PIPE, text=True)

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def answer(self) -> Any:
        with self._process as process:
            found = json.loads(self.line() or "null")
        if process.returncode or found is None:
            raise SystemExit("a part of the benchmark failed")
        return found


class Writer:
    """The process that writes."""

    def __init__(self, path: Path, items: int, folder: Path) -> None:
        self._end = folder / "end"
        self._process = Process("--part", "write", str(path), str(items), str(self._end))
        self._process.line()

    def times(self) -> list[int]:
        self._end.touch()
        found: list[int] = self._process.answer()
        self._end.unlink()
        return found


# --- all of it ---------------------------------------------------------------------------------


def measure(folder: Path, filled: Path, items: int, rounds: int, alone: float) -> dict[str, Any]:
    """The seconds and the latencies of each part."""
    found: dict[str, Any] = {
        "move": [],
        "copy": [],
        "rate": {"move": [], "copy": []},
        "processor": {},
        "alone": [],
        "last": [],
    }
    for number in range(rounds):
        path = folder / f"old-{number}.db"
        shutil.copyfile(filled, path)
        writer = Writer(path, items, folder)
        sleep(alone)
        found["alone"] += writer.times()
        for part in ("copy", "move"):
            to = folder / f"{part}-{number}.db"
            writer = Writer(path, items, folder)
            done = Process("--part", part, str(path), str(to)).answer()
            found[part] += writer.times()
            found["rate"][part].append(done["items"] / done["seconds"])
            found["processor"].setdefault(part, []).append(1e6 * done["processor"] / done["items"])
        found["last"].append(
            Process("--part", "finish", str(path), str(folder / f"move-{number}.db")).answer()["seconds"]
        )
        for left in folder.glob(f"*-{number}.db*"):
            left.unlink()
    return found


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.migrate")
    parser.add_argument("--items", type=int, default=LARGE)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--alone", type=float, default=ALONE, help="seconds for which the writer is alone")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--files", type=Path)
    parser.add_argument("--part", nargs="+")
    options = parser.parse_args(arguments)
    if options.part:
        name, *rest = options.part
        if name == "write":
            write(rest[0], int(rest[1]))
        else:
            _PARTS[name](*rest)
        return
    items, rounds, alone = (QUICK, 1, 2.0) if options.quick else (options.items, options.rounds, options.alone)
    with TemporaryDirectory() as temporary:
        folder = options.files or Path(temporary)
        filled = folder / f"people-{items}.db"
        if not filled.exists():
            fill(filled, items)
        found = measure(folder, filled, items, rounds, alone)
    print(report(items, found))


def report(items: int, found: dict[str, Any]) -> str:
    rates = {part: median(found["rate"][part]) for part in ("copy", "move")}
    p99 = {part: quantile(sorted(found[part]), 0.99) / 1e6 for part in ("alone", "copy", "move")}
    processor = {part: median(found["processor"][part]) for part in ("copy", "move")}
    head = ["", "items/s", "ratio", "goal", "processor, µs per item", "p99 of a write, ms", "ratio", "goal"]
    rows = [
        ["nothing else at work", "", "", "", "", f"{p99['alone']:.2f}", "1", ""],
        *(
            [
                name,
                f"{rates[part]:,.0f}",
                f"{rates[part] / rates['copy']:.2f}",
                f"{GOAL}" if part == "move" else "",
                f"{processor[part]:.0f}",
                f"{p99[part]:.2f}",
                f"{p99[part] / p99['alone']:.1f}",
                f"{LATENCY_GOAL:g}" if part == "move" else "",
            ]
            for part, name in (("copy", "`adjoin copy`"), ("move", "`migrate(into=…)`"))
        ),
    ]
    last = f"The last step took {median(found['last']):.2f} s.\n"
    return f"{items:,} items, {RATE} writes a second\n\n{table(head, rows)}\n{last}"


if __name__ == "__main__":
    main(sys.argv[1:])
