"""Single calls of two trees of adjoin, in processor time: what a change of the code costs.

    python -m benchmarks.calls OTHER/src [--rounds R] [--only NAME ...]

Each tree runs in its own process, on a file in memory, so that nothing but adjoin and SQLite is measured. The processes
take turns with each call, and the least time of all rounds counts, so that other load on the machine matters little. It
prints a table of microseconds. Both trees must know the methods that are called.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from adjoin import Edge, Graph, Indexed, Node, field
from benchmarks.tables import table

ROOT = Path(__file__).parent.parent
NODES = 200
"""How many calls are timed together, each with another node."""
_DATA = b"x" * 100


class Thing(Node):
    id: int
    time: int = 0
    data: bytes = b""


class Link(Edge[Thing, Thing], order="time"):
    time: int = 0
    data: bytes = b""


class Person(Node):
    id: str
    city: Annotated[str, Indexed()] = ""


class Course(Node):
    id: str


class Takes(Edge[Person, Course]):
    grade: int = 0


class Calls:
    """A filled graph, and each call that is timed with what has to be done before all of them."""

    def __init__(self) -> None:
        g = self._graph = Graph(":memory:", [Thing, Link, Person, Course, Takes])
        self._things = [Thing(id=id, data=_DATA) for id in range(NODES)]
        self._links = [Link(source=id, target=_next(id), time=1, data=_DATA) for id in range(NODES)]
        self._people = [Person(id=f"p{id}", city=f"c{id % 50}") for id in range(NODES)]
        self._takes = [Takes(source=f"p{id}", target=f"q{_next(id)}") for id in range(NODES)]
        self._fill()
        self.plain: dict[str, Callable[[int], object]] = {
            "get": lambda id: g.get(Thing, id),
            "edge": lambda id: g.edge(Link, id, _next(id)),
            "out": lambda id: list(g.out(Thing.ref(id), Link).reverse().limit(10)),
            "into": lambda id: list(g.into(Course.ref(f"q{id}"), Takes)),
            "nodes": lambda id: list(g.into(Course.ref(f"q{id}"), Takes).nodes()),
            "count": lambda id: g.out(Thing.ref(id), Link).count(),
            "find": lambda id: list(g.find(Person, field("city") == f"c{id % 50}")),
            "put": lambda id: g.put(self._things[id]),
            "put an edge": lambda id: g.put(self._links[id]),
            "update": lambda id: g.update(Thing, id, time=id),
            "update an edge": lambda id: g.update(Link, id, _next(id), time=id),
        }
        self.prepared: dict[str, tuple[Callable[[], object], Callable[[int], object]]] = {
            "connect": (self._disconnect, lambda id: g.connect(Takes, f"p{id}", f"q{_next(id)}")),
            "disconnect": (self._fill, lambda id: g.disconnect(Link, id, _next(id))),
            "delete": (self._fill, lambda id: g.delete(Thing, id)),
        }

    def _fill(self) -> None:
        more = [Link(source=id, target=(id + step) % NODES, time=step) for id in range(NODES) for step in (2, 3)]
        courses = [Course(id=f"q{id}") for id in range(NODES)]
        self._graph.put_many([*self._things, *self._people, *courses, *self._links, *more, *self._takes])

    def _disconnect(self) -> None:
        self._fill()
        for edge in self._takes:
            self._graph.disconnect(Takes, edge.source, edge.target)

    @property
    def names(self) -> list[str]:
        return [*self.plain, *self.prepared]

    def timed(self, name: str) -> float:
        """Microseconds of the processor per call."""
        prepare, call = self.prepared.get(name) or (lambda: None, self.plain[name])
        prepare()
        gc.collect()
        gc.disable()
        begun = time.process_time()
        for id in range(NODES):
            call(id)
        spent = time.process_time() - begun
        gc.enable()
        return spent / NODES * 1e6


def _next(id: int) -> int:
    return (id + 1) % NODES


def _answer() -> None:
    """Times the call that each line of the input names."""
    calls = Calls()
    for line in sys.stdin:
        print(calls.timed(line.strip()), flush=True)


def _begun(source: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(source), str(ROOT)])}
    command = [sys.executable, "-m", "benchmarks.calls", "--answer"]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _asked(process: subprocess.Popen[str], name: str) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(name + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", nargs="?", type=Path, help="the src folder of the other tree")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.answer:
        _answer()
        return
    if given.other is None:
        parser.error("give the src folder of the tree to compare with")
    rows = []
    with _begun(given.other.resolve()) as before, _begun(ROOT / "src") as now:
        for name in given.only or Calls().names:
            least = {before: float("inf"), now: float("inf")}
            for number in range(given.rounds + 1):
                for process in (before, now) if number % 2 else (now, before):
                    spent = _asked(process, name)
                    # In the first round, everything is done for the first time.
                    least[process] = min(least[process], spent) if number else least[process]
            rows.append((name, f"{least[before]:.1f}", f"{least[now]:.1f}", f"{least[now] / least[before]:.2f}"))
        for process in (before, now):
            assert process.stdin is not None
            process.stdin.close()
    print(table(("call", "other, µs", "this tree, µs", "times"), rows))


if __name__ == "__main__":
    main()
