"""`adjoin serve`: serves a file over DynamoDB's own protocol until it is stopped."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import threading
from types import FrameType

import adjoin
from adjoin.cli.command import Command
from adjoin.server.http import MAX_CONNECTIONS, REQUEST_TIMEOUT

_MADE_BEFORE_COLLECTING = 50_000
"""New objects after which the garbage collector runs."""
LAST_PORT = 65535
_MOST_DIGITS = 9
"""Longer numbers on the command line are refused: int() raises for a text of thousands of digits."""
_ACCESS_KEY, _SECRET_KEY = "ADJOIN_ACCESS_KEY", "ADJOIN_SECRET_KEY"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=port_number, default=8000, help="the port, or 0 for any free one (default: 8000)"
    )
    parser.add_argument(
        "--durability",
        choices=("power", "process"),
        default="power",
        help="what a finished write survives: loss of power, or only the end of the process (default: power)",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="allow requests from web pages of this origin, such as http://localhost:3000, or * for all; repeatable",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="also answer requests for this host name, besides localhost and the address, or * for all; repeatable",
    )
    parser.add_argument(
        "--max-connections",
        type=_at_least_one,
        default=MAX_CONNECTIONS,
        metavar="N",
        help=f"the most connections at a time; beyond it, those idle longest are closed (default: {MAX_CONNECTIONS})",
    )
    parser.add_argument(
        "--request-timeout",
        type=_seconds,
        default=REQUEST_TIMEOUT,
        metavar="S",
        help=f"the seconds in which a request must arrive completely (default: {REQUEST_TIMEOUT:g})",
    )


def port_number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS or int(text) > LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; choose one from 1 to {LAST_PORT}, or 0 for any")
    return int(text)


def _at_least_one(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of connections; choose 1 or more")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def run(arguments: argparse.Namespace) -> None:
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    keys = {"access_key": os.environ.get(_ACCESS_KEY), "secret_key": os.environ.get(_SECRET_KEY)}
    with adjoin.serve(
        arguments.file,
        host=arguments.host,
        port=arguments.port,
        durability=arguments.durability,
        allow_origins=arguments.allow_origin,
        allow_hosts=arguments.allow_host,
        max_connections=arguments.max_connections,
        request_timeout=arguments.request_timeout,
        **keys,
    ) as server:
        # The objects that exist now stay, and requests leave no cycles behind. Searching for cycles would take a sixth
        # of the time of a batch write. The collector is changed only once the server runs: a program that calls this
        # command and gets an error keeps its collector as it was.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_MADE_BEFORE_COLLECTING, 10, 10)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        print(f"{arguments.file} answers at {server.endpoint}", flush=True)
        stopped.wait()


COMMAND = Command("serve", "serves a file over DynamoDB's own protocol", add_arguments, run)
