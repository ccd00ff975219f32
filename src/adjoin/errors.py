"""All errors that adjoin raises, in one hierarchy. Each class is named for a cause.

A message says in lower case what is wrong with which key or value, and after a semicolon what to do.
Data that a program may need is an attribute of the error; `retryable` says whether the same call may
succeed later. This module imports nothing else of adjoin, so every other module can use it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from adjoin.dataclass import dataclass

_MOST = 500
"""The greatest number of characters of a value that a message quotes."""


def shown(value: object) -> str:
    """Returns the `repr` of a value for a message, cut to a readable length. It never raises."""
    try:
        text = repr(value)
    except Exception:
        # `repr` raises for an int of thousands of digits, for deep nesting, and in classes of users.
        text = f"<{type(value).__name__}>"
    return cut(text)


def cut(text: object) -> str:
    """Returns the beginning of a text, as much as a message quotes."""
    whole = str(text)
    return whole if len(whole) <= _MOST else f"{whole[:_MOST]}…"


class AdjoinError(Exception):
    """The base class of all errors that adjoin raises.

    `code` names the class for programs and logs, and does not change: "not_found" for `NotFound`. `request_id` is the
    id that DynamoDB gave the failed request, or None if it did not answer.
    """

    code = "adjoin_error"
    retryable = False
    request_id: str | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # A class that another module derives has the code of its base, because programs do not know it.
        if cls.__module__ == __name__:
            cls.code = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()

    def __str__(self) -> str:
        message = super().__str__()
        return message if self.request_id is None else f"{message} (request {self.request_id})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Python would call the class with the message alone, which a class with more arguments does not take.
        return _made_again, (type(self), *self.args), self.__dict__


def _made_again(kind: type[AdjoinError], *args: object) -> AdjoinError:
    """An error as it was pickled, without a call of its constructor."""
    return kind.__new__(kind, *args)


class InvalidModel(AdjoinError):
    """The declaration of a class, or a layout, is wrong."""


class UnknownField(AdjoinError):
    """The class has no field with this name."""


class InvalidValue(AdjoinError):
    """A value cannot be stored or does not fit its field, or an argument is wrong."""


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

    requests: Sequence[object] = ()
    """The requests that a store refused, until the graph has said in the message what they are about."""


class ItemTooLarge(InvalidRequest):
    """An item is larger than DynamoDB's limit of 400 KB."""


class NotFound(AdjoinError):
    """The node or edge that the call needs does not exist."""


class NotRead(AdjoinError):
    """The field was not read, because the node or edge was read with `only`, which does not name it."""


class AlreadyExists(AdjoinError):
    """The node or edge that the call would create already exists."""


class ConditionFailed(AdjoinError):
    """The condition of a write did not hold; `item` is the stored item, if the request asked for it."""

    def __init__(self, message: str, item: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.item = item


FAILED_CONDITION = "ConditionalCheckFailed"
"""DynamoDB's code for an item of a transaction whose condition did not hold."""


@dataclass(frozen=True, slots=True)
class CancellationReason:
    """Why one item of a transaction failed; `code` is "None" for an item that did not fail.

    `error` is the error that this call alone would have raised, such as `NotFound`; None for an item that did not fail.
    `call`, `model` and `id` say which call of the program wrote the item, and for which node or edge. The id of an edge
    is those of its two ends.
    """

    code: str
    message: str = ""
    item: Mapping[str, Any] | None = None
    error: type[AdjoinError] | None = None
    model: type[Any] | None = None
    id: Any = None
    call: str = ""

    @property
    def is_failed_condition(self) -> bool:
        """Whether the condition of this item did not hold."""
        return self.code == FAILED_CONDITION


_TRANSIENT_REASONS = {"None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}


def are_transient(reasons: Sequence[CancellationReason]) -> bool:
    """Whether a transaction failed only because of other writers or load, so that it may succeed later."""
    return bool(reasons) and all(reason.code in _TRANSIENT_REASONS for reason in reasons)


class TransactionCanceled(AdjoinError):
    """A transaction was not applied; `reasons` has one element per item, in order.

    It is retryable if the only reasons were other writers or load.
    """

    def __init__(self, message: str, reasons: Sequence[CancellationReason]) -> None:
        super().__init__(message)
        self.reasons = tuple(reasons)
        self.retryable = are_transient(reasons)

    @property
    def has_failed_condition(self) -> bool:
        """Whether the condition of at least one item did not hold."""
        return any(reason.is_failed_condition for reason in self.reasons)


class TokenReused(AdjoinError):
    """The client token of a transaction was used again within ten minutes for another transaction."""


class BudgetExceeded(AdjoinError):
    """The call would cost more than its budget allows, or would read more edges of a node than its cap.

    `limit` is what did not suffice: "requests", "rcu", "seconds", "nodes" or "cap". `found` is what a number such as
    `count()` would be for what was read, or None.
    """

    def __init__(self, message: str, limit: str = "", found: object = None) -> None:
        super().__init__(message)
        self.limit = limit
        self.found = found


class CycleFound(AdjoinError):
    """Edges that must not lead back to where they came from do so; `refs` are the nodes of the cycle, in order."""

    def __init__(self, message: str, refs: Sequence[object] = ()) -> None:
        super().__init__(message)
        self.refs = tuple(refs)


class Throttled(AdjoinError):
    """DynamoDB refused the request because of load."""

    retryable = True


class TransactionConflict(AdjoinError):
    """A transaction that writes the same item was in progress."""

    retryable = True


class CollectionTooLarge(InvalidRequest):
    """A partition of a table with local indexes would be larger than DynamoDB's limit of 10 GB."""


class ServiceFailed(AdjoinError):
    """DynamoDB had an internal error."""

    retryable = True


class ServiceUnreachable(AdjoinError):
    """The service could not be reached, or its answer was incomplete."""

    retryable = True


class OutcomeUnknown(AdjoinError):
    """The answer to a write was lost: it may have been applied or not.

    adjoin did not repeat it, because that could apply it twice.
    """


class AccessDenied(AdjoinError):
    """The credentials do not permit the request."""


class InvalidCredentials(AdjoinError):
    """No credentials were found, or the service does not accept them."""


class NotSupported(AdjoinError):
    """The server does not support the operation."""


class TableNotFound(AdjoinError):
    """No table with this name exists."""


class TableExists(AdjoinError):
    """A table with this name already exists."""


class TableBusy(AdjoinError):
    """The table is being created, changed or deleted."""

    retryable = True


class TableMismatch(AdjoinError):
    """The keys or indexes of the stored table differ from those of the layout."""


class MigrationDue(AdjoinError):
    """Items that were stored before a class changed lack something that the query needs, so it might miss them."""


class TableNotEmpty(AdjoinError):
    """The target table of a copy already contains items."""


class ChangesTrimmed(AdjoinError):
    """The change stream no longer contains the changes after the given position.

    `is_replaced` is true if the position belongs to an earlier stream of the table.
    """

    def __init__(self, message: str, *, is_replaced: bool = False) -> None:
        super().__init__(message)
        self.is_replaced = is_replaced


class NotInSnapshot(AdjoinError):
    """A snapshot does not hold the class of edges or the field that it was asked for."""


class InvalidSnapshot(AdjoinError):
    """A saved snapshot is damaged, or was made of another table, with other declarations or by another version."""


class InvalidCopyState(AdjoinError):
    """The state file of an unfinished copy belongs to another copy, or cannot be read."""


class CopyDiffers(AdjoinError):
    """The items of a copied table differ from those of its source."""


class InvalidExport(AdjoinError):
    """An export is incomplete, or its files do not match its manifests."""


class EngineFailed(AdjoinError):
    """DuckDB or Spark failed while it computed a batch job, for example because of too little memory or disk."""


class CyclicRule(AdjoinError):
    """Aggregates depend on each other in a cycle, so none of them has a value."""


class DeclarationReplaced(AdjoinError):
    """A newer program declares the aggregates differently, so this program cannot maintain them."""


class InvalidLocation(AdjoinError):
    """The location of a graph is not a valid path, URL or store."""


class MissingExtra(AdjoinError):
    """A package of one of adjoin's extras is not installed."""


class StoreClosed(AdjoinError):
    """The graph is closed."""


class FileBusy(AdjoinError):
    """Another process held the file for too long."""

    retryable = True


class FileGone(AdjoinError):
    """The file was removed, moved or replaced while it was open."""


class FileNotWritable(AdjoinError):
    """The file or its directory is not writable."""


class NotAnAdjoinFile(AdjoinError):
    """The file exists, but adjoin did not write it."""


class FileFromTheFuture(AdjoinError):
    """The file was written by a newer version of adjoin, in a format that this version does not know."""


class FileDamaged(AdjoinError):
    """The file is an adjoin file, but its content is damaged."""


# --- which errors may pass ------------------------------------------------------------------------

NEVER = (InvalidItem, InvalidKey, InvalidValue, InvalidRequest)
"""Errors about the data itself: the same request fails each time."""
CONTENDED = (TransactionCanceled, TransactionConflict, ConditionFailed)
"""Errors that may concern only some items of a request: other writers, or one item that cannot be stored."""


def passes(problem: AdjoinError) -> bool:
    """Whether the same request may succeed later, or may have succeeded already."""
    return problem.retryable or isinstance(problem, OutcomeUnknown)
