"""The table of error codes: each names an error, and says whether to try again."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest

from adjoin import errors
from adjoin.stores.dynamodb.client import FAULTS, Retry, understood
from adjoin.stores.dynamodb.protocol import OPERATIONS, target

NEVER, LATER, IN_DOUBT = Retry.NEVER, Retry.LATER, Retry.IN_DOUBT

TABLE: list[tuple[str, str, Retry]] = [
    ("ProvisionedThroughputExceededException", "Throttled", LATER),
    ("ThrottlingException", "Throttled", LATER),
    ("Throttling", "Throttled", LATER),
    ("RequestLimitExceeded", "Throttled", LATER),
    ("RequestThrottled", "Throttled", LATER),
    ("RequestThrottledException", "Throttled", LATER),
    ("ThrottledException", "Throttled", LATER),
    ("TooManyRequestsException", "Throttled", LATER),
    ("BandwidthLimitExceeded", "Throttled", LATER),
    ("SlowDown", "Throttled", LATER),
    ("LimitExceededException", "Throttled", LATER),
    ("TransactionConflictException", "TransactionConflict", LATER),
    ("ReplicatedWriteConflictException", "TransactionConflict", LATER),
    ("TransactionInProgressException", "TransactionConflict", LATER),
    ("ContinuousBackupsUnavailableException", "TableBusy", LATER),
    ("InternalServerError", "ServiceFailed", IN_DOUBT),
    ("InternalServerErrorException", "ServiceFailed", IN_DOUBT),
    ("InternalFailure", "ServiceFailed", IN_DOUBT),
    ("InternalError", "ServiceFailed", IN_DOUBT),
    ("ServiceUnavailable", "ServiceFailed", IN_DOUBT),
    ("ServiceUnavailableException", "ServiceFailed", IN_DOUBT),
    ("RequestTimeout", "ServiceFailed", IN_DOUBT),
    ("RequestTimeoutException", "ServiceFailed", IN_DOUBT),
    ("ValidationException", "InvalidRequest", NEVER),
    ("SerializationException", "InvalidRequest", NEVER),
    ("UnknownOperationException", "NotSupported", NEVER),
    ("ConditionalCheckFailedException", "ConditionFailed", NEVER),
    ("TransactionCanceledException", "TransactionCanceled", NEVER),
    ("IdempotentParameterMismatchException", "TokenReused", NEVER),
    ("ItemCollectionSizeLimitExceededException", "CollectionTooLarge", NEVER),
    ("ResourceNotFoundException", "TableNotFound", NEVER),
    ("TableNotFoundException", "TableNotFound", NEVER),
    ("ResourceInUseException", "TableBusy", NEVER),
    ("TableAlreadyExistsException", "TableExists", NEVER),
    ("TrimmedDataAccessException", "ChangesTrimmed", NEVER),
    ("ExpiredIteratorException", "IteratorExpired", NEVER),
    ("AccessDeniedException", "AccessDenied", NEVER),
    ("AccessDenied", "AccessDenied", NEVER),
    ("UnrecognizedClientException", "InvalidCredentials", NEVER),
    ("InvalidClientTokenId", "InvalidCredentials", NEVER),
    ("MissingAuthenticationToken", "InvalidCredentials", NEVER),
    ("MissingAuthenticationTokenException", "InvalidCredentials", NEVER),
    ("IncompleteSignatureException", "InvalidCredentials", NEVER),
    ("SignatureDoesNotMatch", "InvalidCredentials", NEVER),
    ("ExpiredToken", "InvalidCredentials", Retry.REFRESHED),
    ("ExpiredTokenException", "InvalidCredentials", Retry.REFRESHED),
    ("InvalidSignatureException", "InvalidCredentials", Retry.RECLOCKED),
    ("RequestTimeTooSkewed", "InvalidCredentials", Retry.RECLOCKED),
]


@pytest.mark.parametrize(("code", "name", "retry"), TABLE)
@pytest.mark.parametrize("prefix", ["", "com.amazonaws.dynamodb.v20120810#", "com.amazon.coral.service#"])
def test_codes(code: str, name: str, retry: Retry, prefix: str) -> None:
    error, found = understood(400, {"__type": prefix + code, "message": "as they say"}, "R1")
    assert (type(error).__name__, found) == (name, retry)
    assert str(error).startswith("as they say")
    assert str(error).endswith("(request R1)")
    assert error.request_id == "R1"
    # What is retried until the deadline may succeed when the program calls again.
    assert error.retryable or retry not in (LATER, IN_DOUBT)


def test_the_table_is_whole() -> None:
    assert {code for code, _, _ in TABLE} == set(FAULTS)


def test_every_error_that_the_service_declares_is_in_it() -> None:
    session = botocore.session.Session()
    used = [each.target for each in OPERATIONS.values()]
    used += [target(name) for name in ("CreateTable", "DescribeTable", "DeleteTable", "ListTables")]
    used += [target(name) for name in ("UpdateTimeToLive", "DescribeTimeToLive", "UpdateContinuousBackups")]
    declared: set[str] = set()
    for service, names in (
        ("dynamodb", [name.partition(".")[2] for name in used]),
        ("dynamodbstreams", ["DescribeStream", "GetShardIterator", "GetRecords"]),
    ):
        model = session.get_service_model(service)
        declared |= {shape.name for name in names for shape in model.operation_model(name).error_shapes}
    assert len(declared) > 15
    assert declared <= set(FAULTS)


@pytest.mark.parametrize(
    ("status", "answer", "name", "retry", "message"),
    [
        (400, {"__type": "NovelException", "message": "new"}, "InvalidRequest", NEVER, "NovelException: new"),
        (400, {"__type": "NovelException"}, "InvalidRequest", NEVER, "NovelException"),
        (418, {}, "InvalidRequest", NEVER, "status 418"),
        (400, {"message": None, "Message": "capital"}, "InvalidRequest", NEVER, "status 400: capital"),
        (500, {"__type": "NovelException", "message": "new"}, "ServiceFailed", IN_DOUBT, "NovelException: new"),
        (502, {"message": "<html>bad gateway"}, "ServiceFailed", IN_DOUBT, "status 502: <html>bad gateway"),
        (504, {}, "ServiceFailed", IN_DOUBT, "status 504"),
        (408, {}, "ServiceFailed", IN_DOUBT, "status 408"),
        (429, {"message": "slow down"}, "Throttled", LATER, "status 429: slow down"),
        (509, {}, "Throttled", LATER, "status 509"),
        (403, {"message": "<html>blocked"}, "AccessDenied", NEVER, "status 403: <html>blocked"),
        (503, {"__type": "x#ThrottlingException", "message": "m"}, "Throttled", LATER, "m"),
        (400, {"__type": "ValidationException", "message": "Item size has exceeded the maximum allowed size"},
         "ItemTooLarge", NEVER, "Item size has exceeded"),
        (400, {"__type": "ValidationException", "message": "Item size to update has exceeded the maximum"},
         "ItemTooLarge", NEVER, "Item size to update"),
    ],
)  # fmt: skip
def test_answers_without_a_known_code(
    status: int, answer: dict[str, Any], name: str, retry: Retry, message: str
) -> None:
    error, found = understood(status, answer, None)
    assert (type(error).__name__, found) == (name, retry)
    assert str(error).startswith(message)
    assert error.request_id is None


def test_a_failed_condition_has_the_item_that_was_in_its_way() -> None:
    item = {"PK": {"S": "a"}}
    error, _ = understood(400, {"__type": "ConditionalCheckFailedException", "message": "m", "Item": item}, None)
    assert isinstance(error, errors.ConditionFailed)
    assert error.item == item


@pytest.mark.parametrize(
    ("codes", "retry"),
    [
        (["None", "TransactionConflict"], LATER),
        (["ThrottlingError", "None"], LATER),
        (["ProvisionedThroughputExceeded", "TransactionConflict"], LATER),
        (["ConditionalCheckFailed", "TransactionConflict"], NEVER),
        (["None", "ConditionalCheckFailed"], NEVER),
        (["ValidationError", "None"], NEVER),
        (["AccessDenied"], NEVER),
        ([], NEVER),
    ],
)
def test_why_a_transaction_was_canceled(codes: list[str], retry: Retry) -> None:
    answer = {
        "__type": "TransactionCanceledException",
        "message": "canceled",
        "CancellationReasons": [{"Code": code, "Message": None, "Item": {}} for code in codes],
    }
    error, found = understood(400, answer, "R1")
    assert isinstance(error, errors.TransactionCanceled)
    assert found is retry
    assert error.retryable is (retry is LATER)
    assert error.reasons == tuple(errors.CancellationReason(code) for code in codes)
