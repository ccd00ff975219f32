"""`adjoin copy` in a process that saves its state after every page, so that it can be stopped at many places.

`HALT_AFTER=3 python -m tests.copying.saving_copy <arguments of adjoin copy>` halts when it has saved it three times,
as by SIGSTOP, so that it is never done before somebody stops it, however slow that one is.
"""

from __future__ import annotations

import os
import signal
import sys

from adjoin.cli import main
from adjoin.copying import transfer
from adjoin.copying.state import State, StateFile

HALT_AFTER = "HALT_AFTER"


def halt_after(saves: int) -> None:
    save = StateFile.save
    left = saves

    def save_and_halt(file: StateFile, state: State) -> None:
        nonlocal left
        save(file, state)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGSTOP)

    StateFile.save = save_and_halt  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    transfer.SAVE_SECONDS = 0.0
    if HALT_AFTER in os.environ:
        halt_after(int(os.environ[HALT_AFTER]))
    sys.exit(main(["copy", *sys.argv[1:]]))
