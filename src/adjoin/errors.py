"""Everything that can go wrong, as one hierarchy named for causes.

A message says in lower case what is wrong with which key, then what to do. Data a program may want
is an attribute; `retryable` says whether the same call may succeed later. Nothing here imports
anything else of adjoin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_MOST = 500
"""Characters of somebody else's text in a message."""


def shown(value: object) -> str:
    """A value as a message shows it: as Python does, but short, and whatever it is."""
    try:
        text = repr(value)
    except Exception:
        # Such as an int of thousands of digits, or what holds itself a thousand times.
        text = f"<{type(value).__name__}>"
    return cut(text)


def cut(text: object) -> str:
    """As much of a text as a message has room for."""
    whole = str(text)
    return whole if len(whole) <= _MOST else f"{whole[:_MOST]}…"


class AdjoinError(Exception):
    """The base of every error that adjoin raises on purpose; `request_id` is the service's, if it answered."""

    retryable = False
    request_id: str | None = None

    def __str__(self) -> str:
        message = super().__str__()
        return message if self.request_id is None else f"{message} (request {self.request_id})"


class InvalidModel(AdjoinError):
    """A declaration of a node or an edge, or a layout for it, cannot work."""


class UnknownField(AdjoinError):
    """A field was named that the model does not have."""


class InvalidValue(AdjoinError):
    """A value cannot be stored, or does not fit its field."""


class InvalidKey(AdjoinError):
    """An id or a key field cannot be part of a key."""


class InvalidItem(AdjoinError):
    """A stored item does not fit the model that reads it; `problems` says what is wrong, field by field."""

    def __init__(self, message: str, problems: str = "") -> None:
        super().__init__(message)
        self.problems = problems


class InvalidCursor(AdjoinError):
    """A page token belongs to another query, or was changed."""


class InvalidRequest(AdjoinError):
    """A request breaks one of DynamoDB's rules."""


class ItemTooLarge(InvalidRequest):
    """An item is larger than DynamoDB's 400 KB."""


class NotFound(AdjoinError):
    """What the call needs is not there."""


class AlreadyExists(AdjoinError):
    """What the call adds is there already."""


class ConditionFailed(AdjoinError):
    """The condition of a write did not hold; `item` is what was stored, if it was asked for."""

    def __init__(self, message: str, item: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.item = item


@dataclass(frozen=True, slots=True)
class CancellationReason:
    """Why one item of a transaction failed; `code` is "None" for an item that did not."""

    code: str
    message: str = ""
    item: Mapping[str, Any] | None = None


_TRANSIENT_REASONS = {"None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}


def are_transient(reasons: Sequence[CancellationReason]) -> bool:
    """Whether only other writers or load were in the way of a transaction."""
    return bool(reasons) and all(reason.code in _TRANSIENT_REASONS for reason in reasons)


class TransactionCanceled(AdjoinError):
    """A transaction was not applied; `reasons` has one entry an item, in order.

    It is retryable if only other writers or load were in its way.
    """

    def __init__(self, message: str, reasons: Sequence[CancellationReason]) -> None:
        super().__init__(message)
        self.reasons = tuple(reasons)
        self.retryable = are_transient(reasons)


class TokenReused(AdjoinError):
    """A client token came back within ten minutes with another transaction."""


class BudgetExceeded(AdjoinError):
    """The call would spend more than its budget."""


class Throttled(AdjoinError):
    """The service refused because of load."""

    retryable = True


class TransactionConflict(AdjoinError):
    """Another write of the same item was under way."""

    retryable = True


class CollectionTooLarge(InvalidRequest):
    """A partition of a table with local indexes is larger than DynamoDB's 10 GB."""


class ServiceFailed(AdjoinError):
    """The service could not answer, for reasons of its own."""

    retryable = True


class ServiceUnreachable(AdjoinError):
    """No connection to the service, or no whole answer from it."""

    retryable = True


class OutcomeUnknown(AdjoinError):
    """The answer to a write was lost, and repeating it could apply it twice: it may have been applied or not."""


class AccessDenied(AdjoinError):
    """These credentials may not do that."""


class InvalidCredentials(AdjoinError):
    """There are no credentials, or the service does not know them."""


class NotSupported(AdjoinError):
    """This server does not have the operation."""


class TableNotFound(AdjoinError):
    """There is no table of that name."""


class TableExists(AdjoinError):
    """There is a table of that name already."""


class TableBusy(AdjoinError):
    """The table is being created, changed or deleted."""

    retryable = True


class TableMismatch(AdjoinError):
    """The stored table has other keys or indexes than the layout."""


class TableNotEmpty(AdjoinError):
    """The table that a copy would fill holds items already."""


class ChangesTrimmed(AdjoinError):
    """The change stream no longer reaches back to the place asked for; `is_replaced` if it is another one by now."""

    def __init__(self, message: str, *, is_replaced: bool = False) -> None:
        super().__init__(message)
        self.is_replaced = is_replaced


class InvalidCopyState(AdjoinError):
    """The record of an unfinished copy belongs to another copy, or cannot be read."""


class CopyDiffers(AdjoinError):
    """A copy does not hold what its source holds."""


class InvalidExport(AdjoinError):
    """An export is not whole, or its files are not what its manifests say."""


class EngineFailed(AdjoinError):
    """What computes a batch job, DuckDB or Spark, could not go on: for want of memory or disk, say."""


class CyclicRule(AdjoinError):
    """Aggregates are made of each other in a circle, so none of them has a value."""


class DeclarationReplaced(AdjoinError):
    """Aggregates are declared otherwise by a later program, and this one cannot keep them."""


class InvalidLocation(AdjoinError):
    """A graph's location cannot be understood."""


class MissingExtra(AdjoinError):
    """A package is not installed that comes with one of adjoin's extras."""


class StoreClosed(AdjoinError):
    """The graph was closed."""


class FileBusy(AdjoinError):
    """Another process held the file for too long."""

    retryable = True


class FileGone(AdjoinError):
    """The file was removed, moved or replaced while it was open."""


class FileNotWritable(AdjoinError):
    """The file or its directory cannot be written."""


class NotAnAdjoinFile(AdjoinError):
    """The file holds something else."""


class FileFromTheFuture(AdjoinError):
    """The file was written by a newer adjoin in a format this one does not know."""


class FileDamaged(AdjoinError):
    """The file is an adjoin file, but its content is broken."""
