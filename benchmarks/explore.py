"""How long `adjoin explore` takes on a large file, from its start to each answer, and whether it stays small.

    python -m benchmarks.explore [--edges 10000000] [--quick] [--files DIRECTORY]

The file holds LinkBench's graph, as that of `benchmarks.scale`, with which `--files` shares it. The command runs in a
process of its own, with classes and without, and is asked what each view of its page asks. Each answer has its
requests, its time by the clock and by the processor, and what it read from the disk; the file is not in the system's
memory at first. These are read from /proc, so this works on Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from benchmarks.scale import LARGE, QUICK, fill, forget, workload_of
from benchmarks.tables import table

GOAL = 2.0
"""The seconds that the command may take until it prints its address."""
Row = list[str]


class Exploring:
    """The command in a process of its own, and what it took so far."""

    def __init__(self, path: Path, arguments: Sequence[str]) -> None:
        command = [sys.executable, "-m", "adjoin", "explore", str(path), "--no-browser", *arguments]
        self.began = perf_counter()
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent)
        assert self._process.stdout is not None
        printed = self._process.stdout.readline().split()
        if not printed:
            raise SystemExit("adjoin explore printed no address")
        parts = urlsplit(printed[-1])
        self._place, (self._token,) = parts.netloc, parse_qs(parts.query)["token"]

    def ask(self, name: str, asked: dict[str, Any]) -> dict[str, Any]:
        connection = HTTPConnection(self._place, timeout=600)
        try:
            connection.request("POST", f"/api/{name}", json.dumps(asked), {"X-Adjoin-Token": self._token})
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200:
            raise SystemExit(f"{name}: {answer}")
        return answer

    def processor(self) -> float:
        fields = self._told("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def read(self) -> float:
        """MB that came from the disk."""
        return self._number("io", "read_bytes") / 1e6

    def memory(self) -> float:
        """The greatest memory so far, in MB."""
        return self._number("status", "VmHWM") / 1e3

    def _number(self, file: str, name: str) -> int:
        (line,) = [each for each in self._told(file).splitlines() if each.startswith(f"{name}:")]
        return int(line.split()[1])

    def _told(self, file: str) -> str:
        return Path(f"/proc/{self._process.pid}/{file}").read_text()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()


def explore(path: Path, arguments: Sequence[str]) -> tuple[list[Row], float]:
    """What each view takes, and the greatest memory."""
    forget(path)
    rows: list[Row] = []
    with Exploring(path, arguments) as running:

        def row(what: str, clock: float, processor: float, read: float, requests: Any = "") -> None:
            rows.append([what, f"{requests}", f"{clock:.2f} s", f"{processor:.2f} s", f"{read:.1f} MB"])

        def ask(what: str, name: str, **asked: Any) -> dict[str, Any]:
            before = perf_counter(), running.processor(), running.read()
            answer = running.ask(name, asked)
            after = perf_counter(), running.processor(), running.read()
            clock, processor, read = (now - then for now, then in zip(after, before, strict=True))
            row(what, clock, processor, read, (answer.get("cost") or {}).get("requests", ""))
            return answer

        row("until the address is printed", perf_counter() - running.began, running.processor(), running.read())
        running.ask("model", {})
        node = ask("Graph: nodes to begin with", "start")["nodes"][0]
        ask("Graph: neighbours of one", "neighbours", handle=node["handle"])
        row("until the first neighbours are there", perf_counter() - running.began, running.processor(), running.read())
        ask("Graph: find a node by its id", "find", text=node["id"])
        page = ask("Table: a page", "items")
        ask("Table: the next page", "items", after=page["next"])
        ask("Table: a page of the index", "items", index="GSI1")
        form = {"verb": "collection", "class": node["class"], "id": [node["id"]]}
        ask("Query: a collection", "query", form=form)
        ask("Design", "design")
        health = ask("Health", "health")
        ask("Health: hottest partitions, 20,000 changes", "hottest")
        widest = next(each["handle"] for each in health["largest"] if each["handle"])
        ask("Graph: neighbours of the widest node of the sample", "neighbours", handle=widest)
        edges = health["degrees"][0]["class"]
        ask("Graph: a path, at most 300 requests", "path", one=node["handle"], other=widest)
        ask("Graph: recommendations, at most 300 requests", "recommend", handle=widest, model=edges)
        return rows, running.memory()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.explore", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--edges", type=int, help=f"edges of the file (default: {LARGE:,})")
    parser.add_argument("--quick", action="store_true", help=f"only {QUICK:,} edges")
    parser.add_argument("--files", type=Path, help="a directory that keeps the file (default: it is removed)")
    chosen = parser.parse_args(arguments)
    edges = chosen.edges or (QUICK if chosen.quick else LARGE)
    with TemporaryDirectory(prefix="explore-") as temporary:
        folder = chosen.files or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{edges}-edges.db"
        workload = workload_of(edges)
        if not path.exists():
            fill(path, workload)
        size = path.stat().st_size / 1e6
        print(f"{workload.size:,} nodes, {workload.links_in_all:,} edges, {size:,.0f} MB\n")
        del workload
        for title, options in (("with classes", ["--models", "benchmarks.with_adjoin"]), ("without classes", [])):
            rows, peak = explore(path, options)
            print(table([title, "requests", "clock", "processor", "from the disk"], rows))
            print(f"\nThe goal is an address after {GOAL:g} s. Memory was at most {peak:.0f} MB.\n", flush=True)


if __name__ == "__main__":
    main()
