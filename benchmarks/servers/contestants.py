"""The servers, each in its own process on one core. A server ends when its standard input ends.

adjoin serves a file on disk; the others keep everything in memory.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.servers.processes import NotInstalled, Process, dynalite_process, ministack_process

ROOT = Path(__file__).parent.parent.parent


def cores() -> tuple[int, int]:
    """The core for the server and the one for the client; the same if the machine has only one."""
    there = sorted(os.sched_getaffinity(0))
    return there[-1], there[0]


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Keeps this process, and every process that it starts, on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@dataclass(frozen=True)
class Contestant:
    """A server: its name, and how to start it. adjoin gets a folder for its file."""

    name: str
    start: Callable[[Path], Process]

    @property
    def program(self) -> str:
        """The name without the durability."""
        return self.name.partition(",")[0]

    @property
    def is_adjoin(self) -> bool:
        return self.program == "adjoin"


def processor_seconds(pid: int) -> float:
    """The processor time of all threads of a process, including those that have ended."""
    # The id of the clock of another process's processor time on Linux: see clock_getcpuclockid(3).
    return time.clock_gettime((~pid << 3) | 2)


# --- how each is started -----------------------------------------------------------------------

_ADJOIN = """
import os, sys, threading

def end_with_the_benchmark():
    sys.stdin.read()
    os._exit(0)

threading.Thread(target=end_with_the_benchmark, daemon=True).start()
from adjoin.cli import main
main(sys.argv[1:])
"""

_MOTO = """
import logging, os, sys, threading

def end_with_the_benchmark():
    sys.stdin.read()
    os._exit(0)

threading.Thread(target=end_with_the_benchmark, daemon=True).start()
# A log line per request would count against it.
logging.getLogger("werkzeug").setLevel(logging.ERROR)
from moto.server import main
main(sys.argv[1:])
"""


def _adjoin(durability: str) -> Callable[[Path], Process]:
    def start(folder: Path) -> Process:
        def command(port: int) -> list[str]:
            file = folder / f"{durability}.db"
            return [sys.executable, "-c", _ADJOIN, "serve", str(file), f"--port={port}", f"--durability={durability}"]

        return Process(command, lambda _: {"PYTHONPATH": str(ROOT / "src")}, "/")

    return start


def _moto(folder: Path) -> Process:
    if find_spec("flask") is None or find_spec("moto") is None:
        raise NotInstalled("moto's server is not installed; run: pip install 'moto[dynamodb,server]'")
    return Process(
        lambda port: [sys.executable, "-c", _MOTO, "--port", str(port)],
        lambda _: {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"},
        "/moto-api/",
    )


CONTESTANTS = (
    Contestant("adjoin, power", _adjoin("power")),
    Contestant("adjoin, process", _adjoin("process")),
    Contestant("moto", _moto),
    Contestant("dynalite", lambda folder: dynalite_process()),
    Contestant("MiniStack", lambda folder: ministack_process()),
)
