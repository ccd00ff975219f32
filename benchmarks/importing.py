"""Importing edges from CSV and Parquet, beside plain `executemany` of the same rows into SQLite.

    python -m benchmarks.importing [--edges 1000000] [--quick] [--files DIRECTORY]

Edges lead between random users, with two numbers each. adjoin runs `adjoin import`: every row is validated by its
class, gets its keys in the table and in the reverse index, a checksum, and a record in the change log. Plain SQLite has
a table with the four columns of the file, a primary key and an index for the other direction, in one transaction with
the same durability; `executemany` takes the rows as `csv.reader` and pyarrow give them. Contestants run in turns, each
in a fresh process that prints its time by the clock and by the processor, and its peak memory. `--files` keeps the
files, and uses existing ones.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import pyarrow as pa
import pyarrow.parquet as pq

from adjoin import Edge, Node
from adjoin.cli import main as adjoin
from benchmarks.tables import table

LARGE, QUICK = 1_000_000, 20_000
A_USER = 10
"""Edges per user, on average."""
GOAL = 0.3
"""The part of the rate of executemany that adjoin is to have."""
ROUNDS = 3
_PIECE = 50_000
NAMES = ("source", "target", "since", "weight")
CONTESTANTS = ("sqlite csv", "adjoin csv", "sqlite parquet", "adjoin parquet")


class User(Node):
    id: str


class Follows(Edge[User, User]):
    since: int
    weight: int


def rows(edges: int) -> Iterable[tuple[str, str, int, int]]:
    random, users = Random(1), max(edges // A_USER, 2)
    for number in range(edges):
        yield f"u{random.randrange(users)}", f"u{random.randrange(users)}", 2000 + number % 25, random.randrange(100)


def write_files(folder: Path, edges: int) -> None:
    if not (folder / "edges.csv").exists():
        with (folder / "edges.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(NAMES)
            writer.writerows(rows(edges))
    if not (folder / "edges.parquet").exists():
        columns = [*zip(*rows(edges), strict=True)]
        types = (pa.string(), pa.string(), pa.int64(), pa.int64())
        arrays = [pa.array(column, type) for column, type in zip(columns, types, strict=True)]
        pq.write_table(pa.table(arrays, names=NAMES), folder / "edges.parquet")


# --- one contestant, in a process of its own ---------------------------------------------------


def by_sqlite(path: Path, database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("PRAGMA synchronous = full")
    connection.execute(
        "CREATE TABLE follows(source TEXT, target TEXT, since INTEGER, weight INTEGER, PRIMARY KEY (source, target)) "
        "WITHOUT ROWID"
    )
    connection.execute("CREATE INDEX reverse ON follows(target, source)")
    insert = "REPLACE INTO follows VALUES (?, ?, ?, ?)"
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            reader = csv.reader(file)
            next(reader)
            connection.executemany(insert, reader)
    else:
        for batch in pq.ParquetFile(path).iter_batches(_PIECE):
            connection.executemany(insert, zip(*batch.to_pydict().values(), strict=True))
    connection.commit()
    connection.close()


def by_adjoin(path: Path, database: Path) -> None:
    status = adjoin(["import", str(database), "benchmarks.importing", str(path), "Follows", "--quiet"])
    assert status == 0


def peak_memory() -> float:
    """In MB. Not `ru_maxrss`, which begins with that of the process that started this one."""
    (line,) = [each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def run(name: str, folder: Path) -> dict[str, float]:
    who, _, format = name.partition(" ")
    with TemporaryDirectory(dir=folder) as made:
        database = Path(made) / "edges.db"
        began, spent = perf_counter(), process_time()
        (by_adjoin if who == "adjoin" else by_sqlite)(folder / f"edges.{format}", database)
        seconds, processor = perf_counter() - began, process_time() - spent
        return {
            "seconds": seconds,
            "processor": processor,
            "peak": peak_memory(),
            "size": os.path.getsize(database) / 1e6,
        }


# --- all of them -------------------------------------------------------------------------------


def measured(folder: Path, rounds: int) -> dict[str, list[dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in CONTESTANTS}
    for _ in range(rounds):
        for name in CONTESTANTS:
            command = [sys.executable, "-m", "benchmarks.importing", "--files", str(folder), "--run", name]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found[name].append(json.loads(done.stdout.splitlines()[-1]))
    return found


def report(found: dict[str, list[dict[str, float]]], edges: int) -> str:
    def of(name: str, what: str) -> float:
        return median(each[what] for each in found[name])

    lines = []
    for name in CONTESTANTS:
        plain = f"sqlite {name.partition(' ')[2]}"
        lines.append(
            [
                name,
                f"{edges / of(name, 'seconds'):,.0f}",
                f"{edges / of(name, 'processor'):,.0f}",
                f"{of(plain, 'seconds') / of(name, 'seconds'):.2f}",
                f"{of(plain, 'processor') / of(name, 'processor'):.2f}",
                f"{of(name, 'peak'):,.0f} MB",
                f"{of(name, 'size'):,.0f} MB",
            ]
        )
    header = ["contestant", "rows/s", "rows/s of processor", "ratio", "ratio of processor", "peak memory", "file"]
    return table(header, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.importing")
    parser.add_argument("--edges", type=int, default=LARGE)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--files", type=Path)
    parser.add_argument("--run", choices=CONTESTANTS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run is not None:
        print(json.dumps(run(options.run, options.files)))
        return
    edges, rounds = (QUICK, 1) if options.quick else (options.edges, options.rounds)
    with TemporaryDirectory() as made:
        folder = options.files or Path(made)
        folder.mkdir(exist_ok=True)
        write_files(folder, edges)
        print(f"{edges:,} edges, the median of {rounds}; the goal is a ratio of {GOAL}")
        print(report(measured(folder, rounds), edges))


if __name__ == "__main__":
    main()
