"""Handles Ctrl-C while the command line is still being imported, which takes a moment.

Without this module, an early Ctrl-C would print a traceback. With it, the process ends with the exit code of an
interrupted command. The package imports this module first. In programs that only use adjoin as a library it does
nothing, because they handle their own interrupts.
"""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130
"""The exit code of shells for a command that was ended with Ctrl-C: 128 plus the number of SIGINT."""
_NAMES = ("adjoin", "adjoin.exe")


def _end(number: int, frame: object) -> None:
    # Not an exception: modules that are being imported could catch it. There is nothing to clean up yet.
    os._exit(INTERRUPTED)


def _is_command() -> bool:
    """Whether this process is the script `adjoin` or `python -m adjoin`.

    In the second case, `sys.argv[0]` is "-m" until the package is imported.
    """
    arguments = getattr(sys, "argv", [])
    if arguments[:1] != ["-m"]:
        return bool(arguments) and os.path.basename(arguments[0]) in _NAMES
    return sys.orig_argv[-len(arguments)].removeprefix("-m") == "adjoin"


try:
    # They take milliseconds, in which Ctrl-C has no other handling yet.
    import signal
    import threading
except KeyboardInterrupt:
    if _is_command():
        os._exit(INTERRUPTED)
    raise


def over() -> None:
    """Ends the special handling: from now on, Ctrl-C raises `KeyboardInterrupt` as usual."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _begin() -> None:
    is_main = threading.current_thread() is threading.main_thread()
    # If interrupts are ignored, as for a background job of a script, they must stay ignored.
    if is_main and _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


_begin()
