"""Running the command line as people do: as a process of its own."""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import LIMIT

ROOT = Path(__file__).resolve().parents[2]
_FOUND = {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "PYTHONIOENCODING": "utf-8", "COLUMNS": "200"}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended, and what it printed."""

    status: int
    out: str
    err: str


@functools.cache
def _imported() -> subprocess.Popen[str]:
    """The process that forks for each command, for as long as this one lives."""
    command = [sys.executable, "-m", "tests.cli.imported"]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **_FOUND}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def end() -> None:
        process.communicate()

    atexit.register(end)
    return process


def adjoin(*arguments: str | Path, folder: Path, given: str | None = None, **environment: str | None) -> Ended:
    """Runs `adjoin` in a folder. A variable of the environment that is None is taken away.

    It is a process, but a fork of one that has imported everything. Use `subprocess` where a test is about the start.
    """
    variables = {**os.environ, **_FOUND, **environment}
    with tempfile.TemporaryDirectory() as files:
        names = {name: Path(files, name) for name in ("given", "out", "err")}
        for name, path in names.items():
            path.write_text((given or "") if name == "given" else "", encoding="utf-8")
        command = {
            **{name: str(path) for name, path in names.items()},
            "folder": str(folder),
            "environment": {name: value for name, value in variables.items() if value is not None},
            "arguments": [str(each) for each in arguments],
            "limit": round(LIMIT),
        }
        process = _imported()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(command) + "\n")
        process.stdin.flush()
        status = process.stdout.readline()
        assert status, "the process that forks for each command has ended"
        out, err = (names[name].read_text(encoding="utf-8") for name in ("out", "err"))
    assert int(status) != -signal.SIGALRM, f"adjoin {arguments} did not end"
    assert "Traceback" not in err, err
    return Ended(int(status), out, err)
