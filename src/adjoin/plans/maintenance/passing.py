"""Which errors are about what is stored, which about others in the way, and which pass by themselves.

Whatever is no `AdjoinError` is a fault in adjoin's own code: what classes raise is one already where they are called
(see `layouts.records` and `schema`). It is never taken for a fault of a change.
"""

from __future__ import annotations

from adjoin.errors import (
    AdjoinError,
    ConditionFailed,
    InvalidItem,
    InvalidKey,
    InvalidRequest,
    InvalidValue,
    OutcomeUnknown,
    TransactionCanceled,
    TransactionConflict,
)

NEVER = (InvalidItem, InvalidKey, InvalidValue, InvalidRequest)
"""About what is stored: the same again fails again."""
CONTENDED = (TransactionCanceled, TransactionConflict, ConditionFailed)
"""Others were in the way, at some items and not at others; or a transaction holds what cannot be stored."""


def passes(problem: AdjoinError) -> bool:
    """Whether the same may go well later; also where it may have gone well already."""
    return problem.retryable or isinstance(problem, OutcomeUnknown)
