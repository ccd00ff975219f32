"""`adjoin maintain`: applies the change stream of a table to aggregates and copies, until it is stopped.

What it does is told on stderr, a line a minute where there is anything to tell. The exit status is 0 if it was
stopped, or came to the end with `--once`; 1 if `--once` set something aside, or changes were missed and a rebuild is
due; 2 if it could not go on.
"""

from __future__ import annotations

import argparse
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

LEFT = 1
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    batch.add_graph(parser)
    parser.add_argument("--once", action="store_true", help="end where there is no more now")
    parser.add_argument(
        "--every", metavar="S", type=_seconds, default=1.0, help="look again after so many seconds (default: 1)"
    )
    parser.add_argument("--quiet", action="store_true", help="tell warnings only")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds


@batch.carried_out
def run(arguments: argparse.Namespace) -> int:
    with batch.opened(arguments) as graph, _logged(arguments.quiet), _stoppable() as stop:
        report = graph.maintain(once=arguments.once, every=arguments.every, stop=stop)
        is_due = arguments.once and graph.health().rebuild_due is not None
    print(
        f"{counted(report.changes, 'change')}, {counted(report.nodes, 'node')} and {counted(report.edges, 'edge')} "
        f"brought up to date, {len(report.set_aside):,} set aside"
    )
    if is_due:
        print("changes were missed, so a rebuild is due: adjoin rebuild")
    return LEFT if arguments.once and (report.set_aside or is_due) else 0


@contextmanager
def _stoppable() -> Iterator[threading.Event]:
    """An event that the first signal sets; the second one ends the program as ever."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def ask(number: int, frame: FrameType | None) -> None:
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
    "maintain", "keeps aggregates and copies true, until it is stopped", add_arguments, run, takes_file=False
)
