"""What a write of a transaction is for, so that an error can name what the program called.

A purpose is the call that the program made, and the node or edge that the call is about. It says which error it is if
its condition fails, and never names the keys of items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.errors import (
    AdjoinError,
    AlreadyExists,
    CancellationReason,
    CollectionTooLarge,
    ConditionFailed,
    InvalidRequest,
    NotFound,
    Throttled,
    TransactionConflict,
)

_ERRORS: dict[str, type[AdjoinError]] = {
    "TransactionConflict": TransactionConflict,
    "ThrottlingError": Throttled,
    "ProvisionedThroughputExceeded": Throttled,
    "ItemCollectionSizeLimitExceeded": CollectionTooLarge,
    "ValidationError": InvalidRequest,
}
"""The error for each code of DynamoDB, besides that of a failed condition."""
_WHY: dict[type[AdjoinError], str] = {
    AlreadyExists: "it already exists",
    NotFound: "it does not exist",
    TransactionConflict: "another program has just written it; try again",
}
"""What a failed condition means, by the error that it is. DynamoDB says only that it failed."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """What one write is for; `text` describes it in messages."""

    call: str
    """The name of the method: "put", "connect"."""
    model: type[Any]
    id: Any
    """The id of a node, or the ids of both ends of an edge."""
    text: str
    fails_as: type[AdjoinError] = ConditionFailed
    """What it means if the condition does not hold."""
    why: str = ""
    """The same in words; if there are none, the error says it."""
    why_of: Callable[[Mapping[str, Any]], str] | None = None
    """The same for what is stored; "" if it does not say."""

    def needing(self, text: str, model: type[Any], id: Any) -> Purpose:
        """The purpose of a check that a node exists which the call needs."""
        return Purpose(self.call, model, id, self.text, NotFound, text)

    def beside(self, text: str) -> Purpose:
        """The purpose of a write that adjoin adds. It fails if another program writes at the same time."""
        return replace(self, text=f"{self.text}: {text}", fails_as=TransactionConflict, why_of=None)

    def told(self, reason: CancellationReason) -> CancellationReason:
        """The reason with the call and what it is about, and with the error if this write failed."""
        if reason.code == "None":
            return replace(reason, call=self.call, model=self.model, id=self.id)
        error = self._error(reason)
        return CancellationReason(
            reason.code,
            f"{self.text}: {self._why(reason, error)}",
            reason.item,
            error,
            self.model,
            self.id,
            self.call,
        )

    def _why(self, reason: CancellationReason, error: type[AdjoinError]) -> str:
        if not reason.is_failed_condition:
            return reason.message or reason.code
        if self.why_of is not None and reason.item is not None and (found := self.why_of(reason.item)):
            return found
        return self.why or _WHY.get(error, "its condition does not hold for what is stored")

    def _error(self, reason: CancellationReason) -> type[AdjoinError]:
        if not reason.is_failed_condition:
            return _ERRORS.get(reason.code, AdjoinError)
        if self.call in ("put", "update") and self.fails_as is ConditionFailed and reason.item is None:
            return NotFound
        if self.fails_as is AlreadyExists and reason.item is None:
            return ConditionFailed
        if self.fails_as is NotFound and reason.item is not None:
            # The node exists, and the condition on its fields does not hold.
            return ConditionFailed
        return self.fails_as
