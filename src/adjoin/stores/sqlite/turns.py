"""Locks that an interrupt cannot leave locked for good.

Ctrl-C may end a function between any two of its instructions: after a lock was taken and before the `try` that would
let it go, or within the `finally` that is about to. No order of statements mends that. So whoever waits for a turn
looks, after a moment, whether anybody has it: a turn belongs to a function that runs in some thread, or was lent to an
object that lives. What belongs to nobody was left behind, and goes to who waits.

A turn that nobody waits for costs what a lock costs. Nothing here knows SQLite.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

from adjoin.errors import FileBusy

_MOMENT = 0.005
_LONGEST = 0.1
"""Seconds between two looks, the first and the last."""

_HOLDERS: dict[CodeType, tuple[str, ...]] = {}
"""The functions that may have a turn, with the kinds of it."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def holds(*kinds: str) -> Callable[[_Function], _Function]:
    """Marks a function that has turns of these kinds, each in a variable, and lets them go before it ends."""

    def mark(function: _Function) -> _Function:
        _HOLDERS[function.__code__] = kinds
        return function

    return mark


class Turn:
    """Is had by one at a time. `kind` names the functions that may have it."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._lock = threading.Lock()
        self._is_suspected = False
        """Whether somebody looks who has it. Then nobody takes it but who waited in front."""
        self._fronts: dict[int, threading.Lock] = {}
        """Of each process, as a fork copies locks: who waits in front holds it."""
        self._borrower: Callable[[], object | None] | None = None

    def take(self) -> bool:
        """Wait for the turn; answers whether an interrupted function had left it behind."""
        if not self._is_suspected and self._lock.acquire(blocking=False):
            return False
        return self._wait()

    def try_to_take(self) -> bool:
        """Whether it was to be had at once. One that was left behind is, for who may wait."""
        return not self._is_suspected and self._lock.acquire(blocking=False)

    def release(self) -> None:
        self._lock.release()

    def lend(self, borrower: object) -> None:
        """From now on it belongs to an object, for as long as that lives, and not to a function."""
        self._borrower = weakref.ref(borrower)

    def give_back(self) -> None:
        self._borrower = None
        self._lock.release()

    # --- waiting -------------------------------------------------------------------------------

    def _wait(self) -> bool:
        is_mine = False
        moment = _MOMENT
        # No signal is handled between a `with` that takes a lock and its block, nor between the block and its end.
        with self._fronts.setdefault(os.getpid(), threading.Lock()):
            try:
                while not self._lock.acquire(timeout=moment):
                    moment = min(2 * moment, _LONGEST)
                    self._is_suspected = True
                    if not self._is_had():
                        # What was let go since is free; what is not, nobody has.
                        was_left = not self._lock.acquire(blocking=False)
                        is_mine = True
                        return was_left
                    self._is_suspected = False
                is_mine = True
                return not is_mine
            finally:
                self._is_suspected = False

    def _is_had(self) -> bool:
        """Whether a function that runs has the turn, or may have it in a moment."""
        if self._borrower is not None and self._borrower() is not None:
            return True
        here = threading.get_ident()
        for thread, frame in sys._current_frames().items():
            if self._is_had_in(frame):
                if thread == here:
                    raise FileBusy(
                        "a call was made inside another call of the same thread, by a signal handler or a finalizer;"
                        " make it after that call has ended"
                    )
                return True
        return False

    def _is_had_in(self, youngest: FrameType) -> bool:
        frame: FrameType | None = youngest
        waits = False
        skipped = 0
        while frame is not None:
            code = frame.f_code
            if code is Turn._wait.__code__ and frame.f_locals.get("self") is self and not frame.f_locals.get("is_mine"):
                # Neither `take`, which called this, nor who called that has it yet.
                waits, skipped = True, 3
            if skipped:
                skipped -= 1
            elif code in _OWN:
                if frame.f_locals.get("self") is self:
                    return True
            elif self._kind in _HOLDERS.get(code, ()):
                turns = [value for value in frame.f_locals.values() if isinstance(value, Turn)]
                # A function that has none in a variable yet may be about to.
                if any(each is self for each in turns) or not (turns or waits):
                    return True
            frame = frame.f_back
        return False


_OWN = {each.__code__ for each in (Turn.take, Turn.try_to_take, Turn._wait, Turn.give_back)}
