"""Translates errors of the store, and faults in a request, to DynamoDB's errors: code, message and other members."""

from __future__ import annotations

import re
from typing import Any

from adjoin.errors import (
    AdjoinError,
    ChangesTrimmed,
    ConditionFailed,
    FileBusy,
    InvalidRequest,
    TableExists,
    TableNotFound,
    TokenReused,
    TransactionCanceled,
)
from adjoin.server.grammar import LEGACY_WORDS
from adjoin.server.operations.interface import Parameters, Refused, table_name

_SERVICE = "com.amazonaws.dynamodb.v20120810#"
_PREFIXES = {
    "ValidationException": "com.amazon.coral.validate#",
    "SerializationException": "com.amazon.coral.service#",
    "UnknownOperationException": "com.amazon.coral.service#",
    "AccessDeniedException": "com.amazon.coral.service#",
    "MissingAuthenticationTokenException": "com.amazon.coral.service#",
    "IncompleteSignatureException": "com.amazon.coral.service#",
    "UnrecognizedClientException": "com.amazon.coral.service#",
    "InvalidSignatureException": "com.amazon.coral.service#",
    "InternalServerError": "com.amazon.coral.service#",
}
_SPELLED = {"SerializationException": "Message", "TransactionCanceledException": "Message"}
"""The errors in which DynamoDB spells `message` differently."""

_TRIMMED = "The data you are trying to access has been trimmed"

_NAMES: tuple[tuple[type[AdjoinError], str, str | None], ...] = (
    (InvalidRequest, "ValidationException", None),
    (TableNotFound, "ResourceNotFoundException", "Requested resource not found"),
    (
        TokenReused,
        "IdempotentParameterMismatchException",
        "DynamoDB rejected the request because you retried a request with a different payload but with an idempotent"
        " token that was already used.",
    ),
    (ChangesTrimmed, "TrimmedDataAccessException", _TRIMMED),
    (FileBusy, "InternalServerError", "The file is in use by another process; try again"),
)


# The store's messages have more detail than DynamoDB's: the size and the key. It is cut off.
_SAID_BESIDES = re.compile(
    r"(?<=maximum allowed size): .*|(?<=limit of2048 bytes); Key.*|(?<=of 1024 bytes); Key.*", re.S
)


def refusal(error: AdjoinError, parameters: Parameters) -> Refused:
    """Returns DynamoDB's error for an error of the store, or for a fault in the request."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, ConditionFailed):
        shown = {"Item": error.item} if _tells_old(parameters) and error.item is not None else {}
        return Refused("ConditionalCheckFailedException", "The conditional request failed", **shown)
    if isinstance(error, TransactionCanceled):
        return _canceled(error, parameters)
    if isinstance(error, TableExists):
        return Refused("ResourceInUseException", f"Table already exists: {table_name(parameters['TableName'])}")
    for kind, code, message in _NAMES:
        if isinstance(error, kind):
            return Refused(code, message or _words(str(error), parameters))
    return Refused("InternalServerError", str(error))


def _words(message: str, parameters: Parameters) -> str:
    words = _SAID_BESIDES.sub("", message)
    return LEGACY_WORDS.get(words, words) if "AttributeUpdates" in parameters else words


def _tells_old(parameters: Parameters) -> bool:
    return bool(parameters.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD")


def _canceled(error: TransactionCanceled, parameters: Parameters) -> Refused:
    parts = [part for entry in parameters.get("TransactItems", ()) for part in entry.values()]
    reasons: list[dict[str, Any]] = []
    for part, reason in zip(parts, error.reasons, strict=True):
        shown: dict[str, Any] = {"Code": reason.code}
        if reason.message:
            shown["Message"] = _words(reason.message, part)
        if reason.item is not None and _tells_old(part):
            shown["Item"] = reason.item
        reasons.append(shown)
    return Refused("TransactionCanceledException", str(error), CancellationReasons=reasons)


def body_of(refused: Refused) -> dict[str, Any]:
    """Returns the JSON body of a refusal."""
    body: dict[str, Any] = {"__type": _PREFIXES.get(refused.code, _SERVICE) + refused.code}
    if refused.message is not None:
        body[_SPELLED.get(refused.code, "message")] = refused.message
    return body | refused.members


def status_of(refused: Refused) -> int:
    return 500 if refused.code == "InternalServerError" else 400
