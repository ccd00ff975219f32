"""Runs `adjoin`, or the `main` of another module, with a clock that jumps.

`python -m tests.whole.clocked <file> <adjoin or module> <arguments>`: the file says by how many seconds the clock is wrong,
and may be rewritten at any time. Only the wall clock jumps: no system lets the monotonic one.

An interrupt counts from the moment on at which the program itself begins, so that none is lost in what is around it:
whoever starts this has SIGINT ignored until then.
"""

from __future__ import annotations

import signal
import sys
import time
from importlib import import_module
from pathlib import Path

_LOOKS_EVERY = 0.05
_real, _monotonic = time.time, time.monotonic


class Clock:
    def __init__(self, path: Path) -> None:
        self._path, self._wrong_by, self._looked = path, 0.0, 0.0

    def __call__(self) -> float:
        if _monotonic() - self._looked > _LOOKS_EVERY:
            self._looked = _monotonic()
            # While it is rewritten it may be empty; the clock stays as it was then.
            self._wrong_by = float(self._path.read_text() or self._wrong_by)
        return _real() + self._wrong_by


if __name__ == "__main__":
    # Before anything of adjoin is imported, since defaults of arguments hold the clock.
    time.time = Clock(Path(sys.argv[1]))
    program, arguments = sys.argv[2], sys.argv[3:]
    if program == "adjoin":
        command = import_module("adjoin.cli")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.exit(command.main(arguments))
    worker = import_module(program)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    worker.main(*arguments)
