"""What the service answers when something is wrong: one table from its error codes to errors and retries.

A fault is retried `later` where the request was refused for now and surely not applied, and `in doubt`
where it may have been applied (the answer was lost, or the service failed inside). Whether a request
may be sent again in doubt is a question of the request, see `retries`.

Source: the developer guide, "Error handling with DynamoDB".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from adjoin.errors import (
    AccessDenied,
    AdjoinError,
    CancellationReason,
    ChangesTrimmed,
    CollectionTooLarge,
    ConditionFailed,
    InvalidCredentials,
    InvalidRequest,
    ItemTooLarge,
    NotSupported,
    ServiceFailed,
    TableBusy,
    TableExists,
    TableNotFound,
    Throttled,
    TokenReused,
    TransactionCanceled,
    TransactionConflict,
)


class IteratorExpired(AdjoinError):
    """A place in a stream was held for longer than the 15 minutes it is good for; never leaves the store."""


class Retry(Enum):
    NEVER = "never"
    LATER = "later"
    IN_DOUBT = "in doubt"
    IN_VAIN = "never, although it may have been applied"
    REFRESHED = "with refreshed credentials"
    RECLOCKED = "with the service's clock"


@dataclass(frozen=True, slots=True)
class Fault:
    error: type[AdjoinError]
    retry: Retry = Retry.NEVER
    remedy: str = ""


_THROTTLED = Fault(Throttled, Retry.LATER, "raise the table's throughput, or spread the load over more keys and time")
_FAILED = Fault(ServiceFailed, Retry.IN_DOUBT, "try again later")
_CREDENTIALS = Fault(InvalidCredentials, remedy="check the key, the secret and the region they are for")

FAULTS: dict[str, Fault] = {
    # refused for now
    "ProvisionedThroughputExceededException": _THROTTLED,
    "ThrottlingException": _THROTTLED,
    "Throttling": _THROTTLED,
    "RequestLimitExceeded": _THROTTLED,
    "RequestThrottled": _THROTTLED,
    "RequestThrottledException": _THROTTLED,
    "ThrottledException": _THROTTLED,
    "TooManyRequestsException": _THROTTLED,
    "BandwidthLimitExceeded": _THROTTLED,
    "SlowDown": _THROTTLED,
    "LimitExceededException": Fault(Throttled, Retry.LATER, "ask for less at once, or raise the account's limits"),
    "TransactionConflictException": Fault(TransactionConflict, Retry.LATER, "try again"),
    "ReplicatedWriteConflictException": Fault(TransactionConflict, Retry.LATER, "try again"),
    "TransactionInProgressException": Fault(TransactionConflict, Retry.LATER, "try again with the same token"),
    "ContinuousBackupsUnavailableException": Fault(TableBusy, Retry.LATER, "try again when the table is settled"),
    # failed inside
    "InternalServerError": _FAILED,
    "InternalServerErrorException": _FAILED,
    "InternalFailure": _FAILED,
    "InternalError": _FAILED,
    "ServiceUnavailable": _FAILED,
    "ServiceUnavailableException": _FAILED,
    "RequestTimeout": _FAILED,
    "RequestTimeoutException": _FAILED,
    # what was asked
    "ValidationException": Fault(InvalidRequest),
    "SerializationException": Fault(InvalidRequest),
    "UnknownOperationException": Fault(NotSupported, remedy="use a server that has it"),
    "ConditionalCheckFailedException": Fault(ConditionFailed),
    "TransactionCanceledException": Fault(TransactionCanceled),
    "IdempotentParameterMismatchException": Fault(TokenReused, remedy="use a new token for another transaction"),
    "ItemCollectionSizeLimitExceededException": Fault(
        CollectionTooLarge, remedy="a partition of a table with local indexes holds 10 GB at most"
    ),
    "ResourceNotFoundException": Fault(TableNotFound, remedy="create it with create_table(), or check region and name"),
    "ResourceInUseException": Fault(TableBusy),
    "TableNotFoundException": Fault(TableNotFound, remedy="create it with create_table(), or check region and name"),
    "TableAlreadyExistsException": Fault(TableExists),
    "TrimmedDataAccessException": Fault(
        ChangesTrimmed, remedy="read the stream from the beginning, and rebuild what was made from it"
    ),
    "ExpiredIteratorException": Fault(IteratorExpired),
    # who asked
    "AccessDeniedException": Fault(AccessDenied, remedy="adjoin.aws.iam_policy() renders what a graph needs"),
    "AccessDenied": Fault(AccessDenied, remedy="adjoin.aws.iam_policy() renders what a graph needs"),
    "UnrecognizedClientException": _CREDENTIALS,
    "InvalidClientTokenId": _CREDENTIALS,
    "MissingAuthenticationToken": _CREDENTIALS,
    "MissingAuthenticationTokenException": _CREDENTIALS,
    "IncompleteSignatureException": _CREDENTIALS,
    "SignatureDoesNotMatch": _CREDENTIALS,
    "ExpiredToken": Fault(InvalidCredentials, Retry.REFRESHED, "renew the session's credentials"),
    "ExpiredTokenException": Fault(InvalidCredentials, Retry.REFRESHED, "renew the session's credentials"),
    "InvalidSignatureException": Fault(InvalidCredentials, Retry.RECLOCKED, "check the secret key and the clock"),
    "RequestTimeTooSkewed": Fault(InvalidCredentials, Retry.RECLOCKED, "set the clock right"),
}

_BY_STATUS: dict[int, Fault] = {
    403: Fault(AccessDenied, remedy="check the endpoint, and what stands in front of it"),
    408: _FAILED,
    429: _THROTTLED,
    509: _THROTTLED,
}
"""What an answer without a known code means, such as a gateway's; else it is `_FAILED` from 500 on."""

_TOO_LARGE = ("Item size has exceeded", "Item size to update has exceeded")


def understood(
    status: int, answer: Mapping[str, Any], request_id: str | None, table: str | None = None
) -> tuple[AdjoinError, Retry]:
    """The error that an answer means, and whether to try again; `table` is the one that was asked."""
    code = str(answer.get("__type") or answer.get("code") or "").rpartition("#")[2]
    message = str(answer.get("message") or answer.get("Message") or "")
    fault = FAULTS.get(code)
    if fault is None:
        fault = _BY_STATUS.get(status) or (_FAILED if status >= 500 else Fault(InvalidRequest))
        message = f"{code or f'status {status}'}: {message}" if message else code or f"status {status}"
    if fault.error is TableNotFound and table is not None and table not in message:
        message = f"{message} (table {table})"
    error, retry = _error(fault, message, answer)
    error.request_id = request_id
    return error, retry


def _error(fault: Fault, message: str, answer: Mapping[str, Any]) -> tuple[AdjoinError, Retry]:
    if fault.error is ConditionFailed:
        return ConditionFailed(message, answer.get("Item") or None), fault.retry
    if fault.error is TransactionCanceled:
        return _canceled(message, answer)
    if fault.error is InvalidRequest and any(words in message for words in _TOO_LARGE):
        return ItemTooLarge(message), fault.retry
    return fault.error(f"{message}; {fault.remedy}" if fault.remedy else message), fault.retry


def _canceled(message: str, answer: Mapping[str, Any]) -> tuple[AdjoinError, Retry]:
    reasons = [
        CancellationReason(reason.get("Code") or "None", reason.get("Message") or "", reason.get("Item") or None)
        for reason in answer.get("CancellationReasons") or ()
    ]
    error = TransactionCanceled(message, reasons)
    return error, Retry.LATER if error.retryable else Retry.NEVER
