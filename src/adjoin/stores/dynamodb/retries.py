"""When to send a request again: how long to wait, and whether it is safe after a lost answer.

Waits grow exponentially with full jitter (a random share of a doubling bound), within one deadline
for the whole call. Source: the AWS architecture blog, "Exponential backoff and jitter".
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from adjoin.expressions import Action, Add, Discard, IfNotExists, Path, Remove, Set, Value
from adjoin.requests import (
    BatchGet,
    BatchWrite,
    Check,
    Delete,
    Get,
    Put,
    Query,
    Request,
    Scan,
    TransactGet,
    TransactWrite,
    Update,
)


@dataclass(frozen=True, slots=True)
class Backoff:
    """`deadline` seconds for a call in all; waits are at most `first`, 2·`first`, 4·`first` … `longest`."""

    deadline: float = 30.0
    first: float = 0.05
    longest: float = 5.0

    @property
    def least(self) -> float:
        """Seconds that an attempt must have left: one that is cut off at once only blurs what went wrong."""
        return min(1.0, self.deadline / 10)


_TOKEN_LIFETIME = 540.0
"""Seconds for which a transaction is repeated at most: the service knows its token for ten minutes."""


def with_token(backoff: Backoff) -> Backoff:
    """The waits of what must not be repeated when its token is forgotten."""
    return replace(backoff, deadline=min(backoff.deadline, _TOKEN_LIFETIME))


@dataclass(slots=True)
class Attempts:
    """The waits of one call; `next_wait` is None when the deadline would pass.

    `in_doubt` is set when an answer was lost: the request may have been applied.
    """

    backoff: Backoff
    clock: Callable[[], float] = time.monotonic
    share: Callable[[], float] = random.random
    made: int = 0
    in_doubt: bool = False
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        self._started = self.clock()

    def left(self) -> float:
        """Seconds until the deadline."""
        return self._started + self.backoff.deadline - self.clock()

    def next_wait(self) -> float | None:
        # Beyond 2**30 every first wait has reached the longest; a float ends at 2**1024.
        bound = min(self.backoff.longest, self.backoff.first * 2 ** min(self.made, 30))
        self.made += 1
        room = self.left() - self.backoff.least
        # Shares of what is left would never end; so the last attempt is made where not even a first wait fits.
        return min(bound, room) * self.share() if room > self.backoff.first else None


def is_safe_in_doubt(request: Request | Check) -> bool:
    """Whether sending it again does no harm if it was applied already.

    Reads, and writes that set a state. A transaction carries a token by which the service knows it. A
    conditional write that was applied fails its condition when it comes again, or holds it still.
    """
    if isinstance(request, Update):
        return all(map(_sets_a_state, request.actions))
    return isinstance(request, _SAFE)


_SAFE = (Get, BatchGet, TransactGet, Query, Scan, Put, Delete, Check, BatchWrite, TransactWrite)


def _sets_a_state(action: Action) -> bool:
    match action:
        case Set():
            # What is set beyond the end of a list is appended, each time.
            return not _is_element(action.path) and (
                isinstance(action.value, Value)
                or (
                    isinstance(action.value, IfNotExists)
                    and isinstance(action.value.default, Value)
                    and action.value.path == action.path
                )
            )
        case Remove():
            # Taking an element out of a list moves the others up.
            return not _is_element(action.path)
        case Add():
            return "N" not in action.value
        case Discard():
            return True


def _is_element(path: Path) -> bool:
    return isinstance(path.steps[-1], int)
