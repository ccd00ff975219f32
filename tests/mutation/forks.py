"""Work that is done in a fork of this process, with a limit: what it finds stays, what it changes goes with it."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

Tell: TypeAlias = Callable[[Any], None]
"""Hands a value to the process that forked, at once: it arrives even if the fork comes to no end."""


def in_a_fork(work: Callable[[Tell], bool], limit: float) -> tuple[bool | None, list[Any]]:
    """The result of work, or None if it took more than so many seconds of the processor; and what it told.

    Work that ends its process, or that raises, has the result False.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "told")
        path.touch()
        with warnings.catch_warnings():
            # From Python 3.12 on it warns of other threads. A fork that they bring to a halt is ended at its limit.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            _be_the_fork(work, path, limit)
        # A group of its own, so that what it starts ends with it.
        os.setpgid(child, child)
        return _result(child, limit), list(_told(path))


def _be_the_fork(work: Callable[[Tell], bool], path: Path, limit: float) -> None:
    result = False
    try:
        # A mutant may write where it should not: that goes with the folder.
        os.chdir(path.parent)
        _, highest = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, highest))
        with path.open("wb", buffering=0) as file:

            def tell(value: Any) -> None:
                file.write(pickle.dumps(value))

            result = work(tell)
    except BaseException as error:
        print(f"a fork ended with {error!r}", file=sys.__stderr__)
    finally:
        os._exit(0 if result else 1)


def _result(child: int, limit: float) -> bool | None:
    # Other work on the machine makes everything slower; what waits for something that never comes is ended at last.
    last = time.monotonic() + 30 + 5 * limit
    while time.monotonic() < last:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
                return None
            return status == 0
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _told(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except EOFError:
                return
