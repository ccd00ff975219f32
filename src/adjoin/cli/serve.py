"""`adjoin serve`: answers DynamoDB's own protocol over a file, until it is stopped."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import threading
from types import FrameType

import adjoin
from adjoin.cli.command import Command

_MADE_BEFORE_COLLECTING = 50_000
LAST_PORT = 65535
_ACCESS_KEY, _SECRET_KEY = "ADJOIN_ACCESS_KEY", "ADJOIN_SECRET_KEY"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8000, help="the port to listen at, 0 for any that is free (8000)")
    parser.add_argument(
        "--durability",
        choices=("power", "process"),
        default="power",
        help="what a finished write survives: loss of power, or only the end of the process (power)",
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; choose one from 1 to {LAST_PORT}, or 0 for any")
    return int(text)


def run(arguments: argparse.Namespace) -> None:
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    keys = {"access_key": os.environ.get(_ACCESS_KEY), "secret_key": os.environ.get(_SECRET_KEY)}
    with adjoin.serve(
        arguments.file, host=arguments.host, port=arguments.port, durability=arguments.durability, **keys
    ) as server:
        # What is there now stays, and requests leave no cycles behind: looking for some takes a sixth of a batch write.
        # Only now, when it serves: who calls the command for its refusal keeps a collector that collects.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_MADE_BEFORE_COLLECTING, 10, 10)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        print(f"{arguments.file} answers at {server.endpoint}", flush=True)
        stopped.wait()


COMMAND = Command("serve", "answers DynamoDB's own protocol over the file", add_arguments, run)
