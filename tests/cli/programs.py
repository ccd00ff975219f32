"""Running the command line as people do: as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import LIMIT

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended, and what it printed."""

    status: int
    out: str
    err: str


def adjoin(*arguments: str | Path, folder: Path, given: str | None = None, **environment: str | None) -> Ended:
    """Runs `adjoin` in a folder. A variable of the environment that is None is taken away."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    variables = {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", "COLUMNS": "200", **environment}
    done = subprocess.run(
        [sys.executable, "-m", "adjoin", *map(str, arguments)],
        cwd=folder,
        input=given,
        env={name: value for name, value in variables.items() if value is not None},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Ended(done.returncode, done.stdout, done.stderr)
