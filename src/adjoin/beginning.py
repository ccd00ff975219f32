"""Ctrl-C while the command line is still being imported, which takes a moment: the process ends as one that was
interrupted, and shows no traceback.

The package imports this first. In programs that only use adjoin it does nothing: their interrupts are theirs.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

INTERRUPTED = 130
"""What shells answer for a command that was ended from the keyboard."""
_NAMES = ("adjoin", "adjoin.exe")


def _end(number: int, frame: FrameType | None) -> None:
    # At once: an exception could be caught by what is being imported, and there is nothing to put away yet.
    os._exit(INTERRUPTED)


def _is_command() -> bool:
    """Whether this process is the script `adjoin`, or `python -m adjoin`: "-m" until the package is imported."""
    arguments = getattr(sys, "argv", [])
    if arguments[:1] != ["-m"]:
        return bool(arguments) and os.path.basename(arguments[0]) in _NAMES
    return sys.orig_argv[-len(arguments)].removeprefix("-m") == "adjoin"


def over() -> None:
    """From here on an interrupt is an exception, as it always is."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _begin() -> None:
    is_main = threading.current_thread() is threading.main_thread()
    # Where interrupts are ignored, as in the background of a script, they still are.
    if is_main and _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


_begin()
