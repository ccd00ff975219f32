"""boto3 and the server in one process, as in tests: adjoin's server in a thread, and moto's mock.

    python -m benchmarks.servers.in_process KIND

Each kind runs in its own process, which may use every core. Each line that it reads names an operation and a number
of seconds. It answers with the microseconds per call, by the clock and of the processor, of client and server together.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from adjoin.server.serving import serve
from benchmarks.servers import callers
from benchmarks.servers.asked import OPERATIONS

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Figures:
    """Microseconds per call, by the clock and of the processor; medians of all rounds."""

    clock: float
    processor: float


# --- the kinds ---------------------------------------------------------------------------------


@contextmanager
def _in_memory() -> Iterator[Any]:
    with serve() as server:
        yield callers.client(server.endpoint)


@contextmanager
def _on_disk() -> Iterator[Any]:
    with TemporaryDirectory(prefix="serve-") as folder, serve(Path(folder) / "graph.db") as server:
        yield callers.client(server.endpoint)


@contextmanager
def _moto() -> Iterator[Any]:
    # The workers of adjoin have no use for it, and it takes longer to import than they need for all their calls.
    with import_module("moto").mock_aws():
        yield callers.client()


KINDS: dict[str, Callable[[], Any]] = {
    "adjoin.serve(), in memory": _in_memory,
    "adjoin.serve(file), power": _on_disk,
    "moto's mock_aws": _moto,
}


# --- measuring ---------------------------------------------------------------------------------


def measured(kinds: Sequence[str], rounds: int, seconds: float) -> dict[str, dict[str, Figures]]:
    """Runs every one of these kinds in every round, by operation. The first round is not counted."""
    taken: dict[str, dict[str, list[tuple[float, float]]]] = {
        kind: {each.name: [] for each in OPERATIONS} for kind in kinds
    }
    with ExitStack() as ending:
        workers = {kind: _started(kind) for kind in kinds}
        for worker in workers.values():
            ending.callback(worker.communicate)
        for _ in range(1 + rounds):
            for kind, worker in workers.items():
                for operation in OPERATIONS:
                    taken[kind][operation.name].append(_asked(worker, f"{operation.name} {seconds}"))
    return {
        kind: {name: Figures(*map(median, zip(*every[1:], strict=True))) for name, every in each.items()}
        for kind, each in taken.items()
    }


def _started(kind: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.servers.in_process", kind],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _asked(worker: subprocess.Popen[str], order: str) -> tuple[float, float]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(order + "\n")
    worker.stdin.flush()
    line = worker.stdout.readline()
    if not line:
        raise SystemExit(f"benchmarks.servers.in_process ended with status {worker.wait()}; its output is above")
    clock, processor = json.loads(line)
    return clock, processor


def main(kind: str) -> None:
    operations = {each.name: (each, callers.all_calls(each)) for each in OPERATIONS}
    with KINDS[kind]() as dynamodb:
        callers.load(dynamodb)
        callers.check(dynamodb)
        for line in sys.stdin:
            name, seconds = line.split()
            operation, calls = operations[name]
            before = time.process_time()
            answered, taken = callers.ask(dynamodb, operation, calls, float(seconds))
            print(json.dumps([taken / answered * 1e6, (time.process_time() - before) / answered * 1e6]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
