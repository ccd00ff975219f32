"""Read, decide, write if nothing changed meanwhile, and otherwise again.

Every plan that changes items which other processes may change at the same time follows this pattern. An *attempt* reads
what it needs, and decides on a write with the condition that what it read is unchanged (see `still`). If the condition
fails, another process was faster, and another attempt reads again. `until_written` is this loop. In plans where many
such writes run side by side, `Pace` counts the attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, Generic, TypeAlias, TypeVar

from adjoin.dataclass import dataclass
from adjoin.errors import ConditionFailed, TransactionCanceled
from adjoin.requests import Plan, Request

T = TypeVar("T")

ATTEMPTS = 50
"""How often other processes may be faster before a plan gives up."""

Failure: TypeAlias = ConditionFailed | TransactionCanceled
"""The errors with which a conditional write fails."""


class Again(Enum):
    """The type of `AGAIN`, which stands in place of a result that does not exist yet."""

    AGAIN = auto()


AGAIN = Again.AGAIN
"""A handler of a failed write returns this if another attempt may succeed."""


def _itself(failure: Failure) -> Failure:
    return failure


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """What an attempt has decided: one round of conditional writes, and what to do after it."""

    writes: Sequence[Request]
    result: Callable[[Sequence[Any]], T]
    """Makes the result of the plan from the responses to the writes."""
    failed: Callable[[Failure], Plan[T | Again]]
    """Handles a failure: returns another result or `AGAIN`, or raises an error."""
    error: Callable[[Failure], Failure] = _itself
    """The error to raise if this was the last attempt."""


@dataclass(frozen=True)
class Done(Generic[T]):
    """What an attempt returns if nothing has to be written."""

    result: T


def until_written(attempt: Callable[[], Plan[Attempt[T] | Done[T]]], most: int = ATTEMPTS) -> Plan[T]:
    """Makes attempts until one is written. After `most` attempts, it raises the error of the last one."""
    for number in range(1, most + 1):
        made = yield from attempt()
        if isinstance(made, Done):
            return made.result
        try:
            responses = yield made.writes
        except (ConditionFailed, TransactionCanceled) as failure:
            result = yield from made.failed(failure)
            if not isinstance(result, Again):
                return result
            if number == most:
                raise made.error(failure) from None
        else:
            return made.result(responses)
    raise AssertionError


def decided(result: T) -> Plan[T]:
    """A plan that returns a result without any request."""
    return result
    # Never reached. It makes this function a generator, as a plan has to be.
    yield


def always_again(_failure: Failure) -> Plan[Again]:
    """The handler for writes whose conditions fail only if another process was faster."""
    return decided(AGAIN)


@dataclass
class Pace:
    """How many conditional writes run side by side: half as many after each failure.

    With fewer at a time, the time between reading and writing is shorter, and other processes are faster less often.
    """

    width: int
    failures: int = 0
    """How many rounds failed since the last successful one."""

    def slow_down(self, failure: Exception) -> None:
        """Counts a failure, and raises it if there were too many in a row."""
        self.failures += 1
        if self.failures == ATTEMPTS:
            raise failure
        self.width = max(1, self.width // 2)

    def go_on(self) -> None:
        """Resets the count after a successful round."""
        self.failures = 0
