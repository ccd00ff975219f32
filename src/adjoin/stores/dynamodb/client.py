"""A call of the service: it is signed, sent, retried where that is safe, and its errors become adjoin's.

One table maps the service's error codes to errors and retries. A call is retried `later` if the service refused it for
now and surely did not apply it, and `in doubt` if it may have been applied (the answer was lost, or the service failed
internally). Whether a request may be repeated in doubt depends on the request: see `lost_answers`.

Waits grow exponentially with full jitter (a random share of a doubling bound), within one deadline for the whole call.
A retry is logged, as a warning if the service throttles. Neither the request nor the service's message is: both may
contain keys.

Sources: the developer guide, "Error handling with DynamoDB"; the AWS architecture blog, "Exponential backoff and
jitter".
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from orjson import JSONDecodeError, JSONEncodeError, dumps, loads

from adjoin.dataclass import dataclass
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
    OutcomeUnknown,
    ServiceFailed,
    ServiceUnreachable,
    TableBusy,
    TableExists,
    TableNotFound,
    Throttled,
    TokenReused,
    TransactionCanceled,
    TransactionConflict,
)
from adjoin.late import later
from adjoin.stores.dynamodb.access import Credentials, Endpoint, ServiceAccess
from adjoin.stores.dynamodb.answers import Misshapen, Payload, checked, checked_refusal, operation_of
from adjoin.stores.dynamodb.opening import NotSent
from adjoin.stores.dynamodb.transport import Answer, AnswerLost, Transport
from adjoin.tables import KeyAttribute

if TYPE_CHECKING:
    from email import utils as mail
else:
    mail = later("email.utils")

# --- errors of the service ---------------------------------------------------------------------


class IteratorExpired(AdjoinError):
    """A shard iterator was used after the 15 minutes for which it is valid; never leaves the store."""


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
_NO_TABLE = "create it with create_table() or with adjoin migrate, or check region and name"
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
    "ResourceNotFoundException": Fault(TableNotFound, remedy=_NO_TABLE),
    "ResourceInUseException": Fault(TableBusy),
    "TableNotFoundException": Fault(TableNotFound, remedy=_NO_TABLE),
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
"""Faults by status, for answers without a known code, such as a gateway's; other statuses from 500 on are `_FAILED`."""

_TOO_LARGE = ("Item size has exceeded", "Item size to update has exceeded")


def understood(
    status: int, answer: Mapping[str, Any], request_id: str | None, table: str | None = None
) -> tuple[AdjoinError, Retry]:
    """The error for an answer, and whether to try again; `table` is the table of the request."""
    # The code may follow a namespace: com.amazonaws.dynamodb.v20120810#TableNotFoundException. Not all servers
    # and gateways spell the members alike.
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


# --- attempts and waits ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Backoff:
    """A call takes at most `deadline` seconds; its waits are at most `first`, 2·`first`, 4·`first` … `longest`."""

    deadline: float = 30.0
    first: float = 0.05
    longest: float = 5.0

    @property
    def least(self) -> float:
        """Least seconds left for another attempt: one that times out at once would only hide the first error."""
        return min(1.0, self.deadline / 10)


_TOKEN_LIFETIME = 540.0
"""Seconds during which a transaction may be repeated: the service remembers its token for ten minutes."""


def with_token(backoff: Backoff) -> Backoff:
    """The waits of a transaction, which must not be repeated after the service has forgotten its token."""
    return replace(backoff, deadline=min(backoff.deadline, _TOKEN_LIFETIME))


@dataclass(slots=True)
class Waits:
    """The waits of one call; `next_wait` returns None if the deadline does not allow another attempt.

    `in_doubt` is set when an answer was lost, so that the request may have been applied.
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
        # After 30 doublings every wait has reached the longest; without the limit, a float overflows at 2**1024.
        bound = min(self.backoff.longest, self.backoff.first * 2 ** min(self.made, 30))
        self.made += 1
        room = self.left() - self.backoff.least
        # Random shares of the remaining time would never use it up. So give up when not even a first wait fits.
        return min(bound, room) * self.share() if room > self.backoff.first else None


# --- the log -----------------------------------------------------------------------------------

_log = logging.getLogger("adjoin.dynamodb")
# Without a handler, Python would print warnings of a program that has not asked for any log.
_log.addHandler(logging.NullHandler())
_UNREACHABLE = "is_unreachable"
"""The attribute of a record that says that nobody answers; the command line prints these records."""
_SEVERAL = 5
"""After so many attempts, within a second, a service that nobody answers for is worth a warning."""
_OVERLOADED = ("ThrottlingError", "ProvisionedThroughputExceeded")
"""The reasons of a canceled transaction that was throttled."""


def tell_retry(operation: str, error: AdjoinError, attempts: Waits, wait: float) -> None:
    """Logs that a call is made again, after a wait in seconds."""
    if isinstance(error, ServiceUnreachable) and attempts.made == _SEVERAL:
        seconds = max(1, round(attempts.left()))
        _log.warning("%s; trying again for up to %d s", error.args[0], seconds, extra={_UNREACHABLE: True})
    if isinstance(error, TransactionCanceled):
        is_throttled = any(reason.code in _OVERLOADED for reason in error.reasons)
    else:
        is_throttled = isinstance(error, Throttled)
    _log.log(
        logging.WARNING if is_throttled else logging.INFO,
        "%s %s (%s): attempt %d in %.0f ms, request id %s",
        operation,
        "was throttled" if is_throttled else "is sent again",
        type(error).__name__,
        attempts.made + 1,
        wait * 1000,
        error.request_id or "unknown",
    )


# --- the client --------------------------------------------------------------------------------


_WORDLESS = frozenset(f"DynamoDB_20120810.{operation}" for operation in ("TagResource", "UntagResource"))
"""Operations whose answers have no body, or an empty one."""


_MOST_PAGES = 10_000
"""Most pages of a listing: millions of shards, and far more tables and tags than an account may have."""

AnswerReader: TypeAlias = Callable[[Payload], Any]
"""Converts an answer into the result of a call; raises `Misshapen` if it cannot."""


def as_it_is(answer: Payload) -> Payload:
    return answer


def always() -> bool:
    return True


async def together(*calls: Awaitable[Any]) -> list[Any]:
    """The results of calls that run concurrently; raises the first error after all have ended."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


async def pages(
    call: Callable[[Payload], Awaitable[Payload]], payload: Payload, last: str, start: str
) -> AsyncIterator[Payload]:
    """The pages of a listing. The member `last` of each becomes the parameter `start` of the next; it must end."""
    seen: set[str] = set()
    while True:
        answer = await call(payload)
        yield answer
        after = answer.get(last)
        if not after:
            return
        # A server that returns a token again would otherwise be asked for ever.
        if after in seen or len(seen) == _MOST_PAGES:
            raise ServiceFailed(
                f"the pages of a listing do not come to an end: {last} is {after!r} again; try again later"
            )
        seen.add(after)
        payload = {**payload, start: after}


class Client:
    """Calls made from one event loop."""

    def __init__(
        self, access: ServiceAccess, transport: Transport, backoff: Backoff, keys: dict[str, tuple[KeyAttribute, ...]]
    ) -> None:
        self.access = access
        self.keys = keys
        """The keys of tables that were described, shared by all clients of a store."""
        self.backoff = backoff
        self._transport = transport
        self._skew = 0.0
        self._now = asyncio.get_running_loop().time

    def attempts(self, backoff: Backoff | None = None) -> Waits:
        """The waits of a call that begins now; deadlines and timeouts use the clock of the event loop."""
        return Waits(backoff or self.backoff, self._now)

    async def table_call(
        self,
        target: str,
        payload: Payload,
        attempts: Waits | None = None,
        read: AnswerReader = as_it_is,
        *,
        safe_in_doubt: Callable[[], bool] = always,
    ) -> Any:
        return await self.call(self.access.table_endpoint, target, payload, attempts, read, safe_in_doubt=safe_in_doubt)

    async def stream_call(self, target: str, payload: Payload, read: AnswerReader = as_it_is) -> Any:
        return await self.call(self.access.stream_endpoint, target, payload, None, read)

    async def call(
        self,
        endpoint: Endpoint,
        target: str,
        payload: Payload,
        attempts: Waits | None = None,
        read: AnswerReader = as_it_is,
        *,
        safe_in_doubt: Callable[[], bool] = always,
    ) -> Any:
        """What `read` returns for the answer, after a check that it has the shape of the operation.

        An answer with another shape counts as lost, but is not worth a retry. If an answer is lost, a request that is
        not `safe_in_doubt()` raises `OutcomeUnknown` instead of being repeated. For a request that is repeated,
        `attempts.in_doubt` says that its final answer or error may be the effect of an earlier attempt.
        """
        # Once for all attempts: a transaction that is sent again must have the same token, and the same content.
        body = _json(payload)
        attempts = attempts or self.attempts()
        repaired: set[Retry] = set()
        while True:
            error: AdjoinError
            answer = None
            # Anew for each attempt: they may have expired while the last one waited.
            credentials = self.access.credentials() or await self._looked_up(attempts)
            try:
                answer = await self._send(endpoint, target, body, credentials, attempts)
            except NotSent as problem:
                error = ServiceUnreachable(f"{endpoint.url} cannot be reached: {problem}")
                retry = Retry.NEVER if problem.for_good else Retry.LATER
            except AnswerLost as problem:
                error, retry = _lost(endpoint, str(problem), problem.request_id)
            else:
                found = _read(b"{}" if answer.status == 200 and target in _WORDLESS else answer.body)
                if found is not None:
                    try:
                        if answer.status == 200:
                            return read(checked(target, found))
                        refusal = checked_refusal(found, payload, self.keys)
                    except Misshapen as problem:
                        error, retry = _misshapen(target, problem, answer.request_id), Retry.IN_VAIN
                    else:
                        error, retry = understood(answer.status, refusal, answer.request_id, payload.get("TableName"))
                elif answer.status == 200 or answer.request_id is not None:
                    error, retry = _lost(endpoint, "the answer is not a JSON object", answer.request_id)
                else:
                    # A gateway between here and the service answered with a page of its own.
                    said = {"message": answer.body[:200].decode(errors="replace")}
                    error, retry = understood(answer.status, said, None)
            if retry in (Retry.IN_DOUBT, Retry.IN_VAIN):
                attempts.in_doubt = True
                if not safe_in_doubt():
                    raise _unknown(target, error) from error
                if retry is Retry.IN_VAIN:
                    raise error
            elif retry is not Retry.LATER:
                if retry is Retry.NEVER or retry in repaired or answer is None:
                    raise error
                repaired.add(retry)
                _log.info("%s is sent again %s", operation_of(target), retry.value)
                await self._repair(retry, answer, credentials, attempts)
                continue
            wait = attempts.next_wait()
            if wait is None:
                raise error
            tell_retry(operation_of(target), error, attempts, wait)
            await asyncio.sleep(wait)

    async def _send(
        self, endpoint: Endpoint, target: str, body: bytes, credentials: Credentials, attempts: Waits
    ) -> Answer:
        headers = endpoint.signer.headers(credentials, target, body, time.time() + self._skew)
        return await self._transport.post(endpoint, headers, body, attempts.left())

    async def _repair(self, retry: Retry, answer: Answer, credentials: Credentials, attempts: Waits) -> None:
        if retry is Retry.REFRESHED:
            await self._looked_up(attempts, credentials)
        elif date := answer.headers.get("date"):
            with suppress(ValueError, OverflowError):
                self._skew = mail.parsedate_to_datetime(date).timestamp() - time.time()

    async def _looked_up(self, attempts: Waits, instead_of: Credentials | None = None) -> Credentials:
        looking = asyncio.wrap_future(self.access.lookup(instead_of))
        try:
            async with asyncio.timeout(attempts.left()):
                return await looking
        except TimeoutError:
            raise InvalidCredentials(
                f"credentials could not be loaded in {attempts.backoff.deadline:g} s: "
                f"their provider does not answer; check the provider, or raise the deadline"
            ) from None
        except InvalidCredentials as error:
            # Each caller gets its own error: raising one object in several tasks would mix their tracebacks.
            raise InvalidCredentials(*error.args) from error


def _json(payload: Payload) -> bytes:
    try:
        return dumps(payload)
    except JSONEncodeError as error:
        raise InvalidRequest(f"the request cannot be sent as JSON in UTF-8: {error}") from None


def _read(body: bytes) -> Payload | None:
    try:
        found = loads(body)
    except JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _lost(endpoint: Endpoint, reason: str, request_id: str | None) -> tuple[AdjoinError, Retry]:
    error = ServiceUnreachable(f"{endpoint.url} gave no answer: {reason}")
    error.request_id = request_id
    return error, Retry.IN_DOUBT


def _misshapen(target: str, problem: Misshapen, request_id: str | None) -> AdjoinError:
    error = ServiceFailed(
        f"the answer to {operation_of(target)} is malformed: {problem}; check that the endpoint is DynamoDB, "
        f"or a server that is compatible with it"
    )
    error.request_id = request_id
    return error


def _unknown(target: str, error: AdjoinError) -> OutcomeUnknown:
    unknown = OutcomeUnknown(
        f"the answer to {operation_of(target)} was lost ({error.args[0]}), and repeating it could apply it twice: "
        f"it may have been applied or not; read the item and decide"
    )
    unknown.request_id = error.request_id
    return unknown
