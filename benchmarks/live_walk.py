"""A live walk over friends of friends through DynamoDB's protocol, beside the same queries one by one.

    python -m benchmarks.live_walk [--friends 50] [--walks 200] [--quick] [--profile] [--before-others]

A person has 50 friends, each of whom has 50 friends. The walk to refs is 51 queries in two rounds. `adjoin serve` has a
core of its own and holds every answer back for 2 ms, without spending processor time on that; the client has another
core. Times of walks are elapsed times, which are right only on a machine that does nothing else, or with
`--before-others`: then Linux runs the client and the server before all programs of usual priority, which only root may
ask for. Processor times are those of the client, and of the server, and the ratio to queries one by one comes from
rounds in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import multiprocessing
import os
import pstats
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np

import adjoin
from adjoin import Edge, Graph, Node
from adjoin.server import http
from benchmarks.servers.contestants import cores, on_core, processor_seconds
from benchmarks.tables import table

LATENCY = 0.002
"""Seconds that every answer is held back."""
GOALS = {"p90": 50.0, "processor": 2.0}
ROUNDS = 5


class Person(Node):
    id: str


class Knows(Edge[Person, Person]):
    weight: int


ME = Person.ref("me")


@dataclass(frozen=True)
class Settings:
    friends: int = 50
    walks: int = 200


# --- the endpoint ------------------------------------------------------------------------------


class _HeldBack:
    """A transport that writes later. The event loop waits meanwhile, which takes no processor time."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def write(self, data: bytes) -> None:
        asyncio.get_running_loop().call_later(LATENCY, self._transport.write, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


@contextmanager
def endpoint(path: Path) -> Iterator[tuple[str, int]]:
    """The file behind `adjoin serve`, on a core of its own: its address, and the id of its process."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(str(path), theirs), daemon=True)
    with on_core(cores()[0]):
        process.start()
    try:
        assert process.pid is not None
        yield ours.recv(), process.pid
    finally:
        process.terminate()
        process.join()


def _serve(path: str, pipe: Connection) -> None:
    made = http.Connection.connection_made

    def connection_made(self: http.Connection, transport: asyncio.BaseTransport) -> None:
        held: Any = _HeldBack(transport)
        made(self, held)

    http.Connection.connection_made = connection_made  # type: ignore[method-assign]
    with adjoin.serve(path) as server:
        pipe.send(server.endpoint)
        threading.Event().wait()


@contextmanager
def before_others() -> Iterator[None]:
    """Runs this process, and every process that it starts, before those of other programs."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        raise SystemExit("only root may run before other programs; leave --before-others out") from None
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)


# --- what is measured --------------------------------------------------------------------------


def walked(graph: Graph) -> list[Any]:
    return list(graph.walk(ME).out(Knows).out(Knows).refs())


def one_by_one(graph: Graph) -> list[Any]:
    friends = [Person.ref(edge.target) for edge in graph.out(ME, Knows)]
    return [Person.ref(edge.target) for friend in friends for edge in graph.out(friend, Knows)]


@dataclass(frozen=True)
class Measured:
    """Of a round: milliseconds of each call, and processor milliseconds per call of the client and of the server."""

    elapsed: list[float]
    client: float
    server: float


def measured(ask: Callable[[Graph], list[Any]], graph: Graph, times: int, server: int) -> Measured:
    gc.collect()
    elapsed = []
    begin, begin_server = process_time(), processor_seconds(server)
    for _ in range(times):
        at = perf_counter()
        ask(graph)
        elapsed.append((perf_counter() - at) * 1e3)
    spent, spent_server = process_time() - begin, processor_seconds(server) - begin_server
    return Measured(elapsed, spent * 1e3 / times, spent_server * 1e3 / times)


def run(settings: Settings, folder: Path, *, profile: bool = False) -> str:
    path = folder / "friends.db"
    many = settings.friends
    with Graph(f"{path}?durability=process", [Person, Knows]) as graph:
        graph.put_many(Knows(source="me", target=f"friend{one:04d}", weight=one) for one in range(many))
        graph.put_many(
            Knows(source=f"friend{one:04d}", target=f"other{one:04d}-{other:04d}", weight=other)
            for one in range(many)
            for other in range(many)
        )
        name = graph._layout.table
    with endpoint(path) as (address, server), on_core(cores()[1]):
        location = f"dynamodb://{name}?endpoint={address}&region=us-east-1"
        with Graph(location, [Person, Knows]) as graph:
            with graph.meter() as meter:
                assert walked(graph) == one_by_one(graph)
                assert len(walked(graph)) == many * many
            assert meter.requests == 3 * (many + 1)
            if profile:
                return _profiled(graph, settings.walks)
            walks: list[Measured] = []
            others: list[Measured] = []
            frozen: list[Measured] = []
            times = max(1, settings.walks // ROUNDS)
            for _ in range(ROUNDS):
                walks.append(measured(walked, graph, times, server))
                others.append(measured(one_by_one, graph, max(1, times // 5), server))
                # What a program does after it has started, so that the garbage collector looks at new objects only.
                gc.freeze()
                frozen.append(measured(walked, graph, times, server))
                gc.unfreeze()
            return told(many, walks, others, frozen)


def told(many: int, walks: Sequence[Measured], others: Sequence[Measured], frozen: Sequence[Measured]) -> str:
    rows = []
    named = (
        (f"a walk, {many + 1} queries in 2 rounds", walks),
        ("a walk after `gc.freeze()`", frozen),
        ("the same queries one by one", others),
    )
    for name, rounds in named:
        every = [each for one in rounds for each in one.elapsed]
        best = min(float(np.percentile(one.elapsed, 90)) for one in rounds)
        rows.append(
            [
                name,
                f"{np.percentile(every, 50):.1f}",
                f"{np.percentile(every, 90):.1f}",
                f"{best:.1f}",
                f"{min(one.client for one in rounds):.1f}",
                f"{min(one.server for one in rounds):.1f}",
            ]
        )
    ratio = min(one.client for one in walks) / min(one.client for one in others)
    goals = f"goals: p90 {GOALS['p90']:g} ms; processor {GOALS['processor']:g} times"
    rows.append([goals, "", "", "", f"{ratio:.2f} ×", ""])
    head = [
        f"milliseconds, {many} friends with {many} friends each",
        "p50",
        "p90",
        "p90 of the best round",
        "processor, client",
        "processor, server",
    ]
    return table(head, rows)


def _profiled(graph: Graph, walks: int) -> str:
    """What the functions of the client take. The event loop runs in a thread of its own, so both are profiled."""
    own = cProfile.Profile(process_time)
    own.enable()
    for _ in range(walks):
        walked(graph)
    own.disable()
    pstats.Stats(own).sort_stats("tottime").print_stats(45)
    return ""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--friends", type=int, default=Settings.friends)
    parser.add_argument("--walks", type=int, default=Settings.walks)
    parser.add_argument("--profile", action="store_true", help="show which functions of the client take how long")
    parser.add_argument("--before-others", action="store_true", help="with real-time priority, which needs root")
    parser.add_argument("--quick", action="store_true", help="few walks")
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder, before_others() if options.before_others else nullcontext():
        print(
            run(
                Settings(options.friends, 20 if options.quick else options.walks), Path(folder), profile=options.profile
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
