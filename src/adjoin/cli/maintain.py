"""`adjoin maintain`: applies the change stream of a table to aggregates and copied fields until it is stopped.

Once a minute, if it did something, it logs a line to stderr. The exit status is 0 if it was stopped, or if `--once`
applied everything; 1 if `--once` set something aside, or if changes were missed and a rebuild is due; 2 if it could
not continue.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from adjoin.cli import batch
from adjoin.cli.command import Command
from adjoin.cli.drawing import counted
from adjoin.cli.metrics import served
from adjoin.cli.serve import port_number
from adjoin.graph import Graph

LEFT = 1
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ALLOCATIONS = 50_000
"""How many objects are allocated before the garbage collector runs; a batch of changes has several times as many."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    batch.add_graph(parser)
    parser.add_argument("--once", action="store_true", help="stop when all changes are applied")
    parser.add_argument(
        "--every", metavar="S", type=_seconds, default=1.0, help="look for changes every S seconds (default: 1)"
    )
    parser.add_argument(
        "--metrics",
        metavar="[HOST:]PORT",
        type=_address,
        help="serve a page for Prometheus at /metrics there; HOST is 127.0.0.1 if it is left out",
    )
    parser.add_argument("--json", action="store_true", help="print the result as a JSON object")
    parser.add_argument("--quiet", action="store_true", help="log warnings only")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def _address(text: str) -> tuple[str, int]:
    # An IPv6 address has colons itself, so the port follows the last one.
    host, _, port = text.rpartition(":")
    return host.strip("[]") or "127.0.0.1", port_number(port)


@batch.carried_out
def run(arguments: argparse.Namespace) -> int:
    with (
        batch.opened(arguments) as graph,
        _logged(arguments.quiet),
        _observed(arguments.metrics, graph),
        collected_rarely(),
        stoppable() as stop,
    ):
        report = graph.maintain(once=arguments.once, every=arguments.every, stop=stop)
        is_due = arguments.once and graph.health().rebuild_due is not None
    if arguments.json:
        numbers = {"changes": report.changes, "nodes": report.nodes, "edges": report.edges}
        print(json.dumps({**numbers, "set_aside": len(report.set_aside), "rebuild_due": bool(is_due)}))
        return LEFT if arguments.once and (report.set_aside or is_due) else 0
    print(
        f"{counted(report.changes, 'change')}, {counted(report.nodes, 'node')} and {counted(report.edges, 'edge')} "
        f"brought up to date, {len(report.set_aside):,} set aside"
    )
    if is_due:
        print("changes were missed, so a rebuild is due: adjoin rebuild")
    return LEFT if arguments.once and (report.set_aside or is_due) else 0


@contextmanager
def _observed(address: tuple[str, int] | None, graph: Graph) -> Iterator[None]:
    if address is None:
        yield
        return
    with served(*address, graph.health) as url:
        print(f"metrics at {url}", file=sys.stderr, flush=True)
        yield


@contextmanager
def collected_rarely() -> Iterator[None]:
    """Lets Python's garbage collector run less often in this block.

    The objects of a batch form no cycles, so they are freed without it. The process belongs to this command, so no
    other program is affected.
    """
    first, *others = gc.get_threshold()
    gc.set_threshold(_ALLOCATIONS, *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)


@contextmanager
def stoppable() -> Iterator[threading.Event]:
    """An event that the first SIGINT or SIGTERM sets. A second signal ends the program as usual."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def ask(number: int, frame: FrameType | None) -> None:
        # The first signal asks for an end after the step. With the handlers from before, a second one ends it now.
        stop.set()
        _restore(before)

    try:
        for number in _SIGNALS:
            signal.signal(number, ask)
        yield stop
    finally:
        _restore(before)


def _restore(handlers: dict[signal.Signals, signal._HANDLER]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


@contextmanager
def _logged(quiet: bool) -> Iterator[None]:
    log = logging.getLogger("adjoin")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


COMMAND = Command(
    "maintain",
    "keeps aggregates and copied fields up to date until it is stopped",
    add_arguments,
    run,
    takes_file=False,
)
