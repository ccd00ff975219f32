"""A process that runs `adjoin`, or a worker, with a clock that jumps.

A file says by how many seconds the clock is wrong, and may be rewritten at any time. Only the wall clock jumps: no
system lets the monotonic one. This is imported before anything of adjoin, because defaults of arguments hold the clock;
whoever starts many such processes forks them from one that has everything imported (`PRELOADED`), since importing takes
longer than what they do. `python -m tests.whole.clocked` starts one by itself, for another adjoin than ours.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

PRELOADED = [
    "tests.whole.clocked",
    "adjoin.cli",
    "adjoin.server.serving",
    "adjoin.batch.audit",
    "adjoin.stores.dynamodb.store",
    "tests.whole.worker",
    *(f"tests.whole.subjects.{name}" for name in ("persons", "hubs", "topics", "plain")),
]
_LOOKS_EVERY = 0.05
_LOOKS_FOR_DRIVER = 2.0
_real, _monotonic, _sleep = time.time, time.monotonic, time.sleep


class Clock:
    def __init__(self) -> None:
        self.path: Path | None = None
        self._wrong_by, self._looked = 0.0, 0.0

    def __call__(self) -> float:
        if self.path is not None and _monotonic() - self._looked > _LOOKS_EVERY:
            self._looked = _monotonic()
            # While it is rewritten it may be empty; the clock stays as it was then.
            self._wrong_by = float(self.path.read_text() or self._wrong_by)
        return _real() + self._wrong_by


CLOCK = Clock()
time.time = CLOCK


def end_with(driver: int) -> None:
    """Ends this process when the one that drives it is gone, killed perhaps: nobody else would."""
    while True:
        _sleep(_LOOKS_FOR_DRIVER)
        try:
            os.kill(driver, 0)
        except ProcessLookupError:
            os.kill(os.getpid(), signal.SIGKILL)


def begin(driver: str, clock: str, ready: str, program: str, arguments: list[str]) -> None:
    """Runs it to its end. An interrupt counts from the moment on at which the file `ready` is there."""
    threading.Thread(target=end_with, args=(int(driver),), daemon=True).start()
    CLOCK.path = Path(clock)
    module = import_module("adjoin.cli" if program == "adjoin" else program)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Path(ready).touch()
    try:
        status = module.main(arguments) if program == "adjoin" else module.main(*arguments)
    finally:
        # It has ended, and whoever interrupts it now comes too late.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(status)


def forked(environment: dict[str, str], said: str, *how: object) -> None:
    """The same in a process that was forked: it gets an environment and a place to write to."""
    os.environ.update(environment)
    written = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for number in (1, 2):
        os.dup2(written, number)
    begin(*how)  # type: ignore[arg-type]


if __name__ == "__main__":
    begin(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
