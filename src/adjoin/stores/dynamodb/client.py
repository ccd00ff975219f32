"""A call of the service: signed, sent, retried where that is safe, and its errors named."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

from orjson import JSONDecodeError, JSONEncodeError, dumps, loads

from adjoin.errors import (
    AdjoinError,
    InvalidCredentials,
    InvalidRequest,
    OutcomeUnknown,
    ServiceFailed,
    ServiceUnreachable,
)
from adjoin.stores.dynamodb.access import Access, Endpoint
from adjoin.stores.dynamodb.answers import Misshapen, Payload, checked, checked_refusal, operation_of
from adjoin.stores.dynamodb.faults import Retry, understood
from adjoin.stores.dynamodb.retries import Attempts, Backoff
from adjoin.stores.dynamodb.signing import Credentials
from adjoin.stores.dynamodb.transport import Answer, AnswerLost, NotSent, Transport
from adjoin.tables import KeyAttribute

_WORDLESS = frozenset(f"DynamoDB_20120810.{operation}" for operation in ("TagResource", "UntagResource"))
"""Operations that are answered without a body, or with an empty text in place of one."""


_MOST_PAGES = 10_000
"""Pages of a listing: millions of shards, and far more tables and tags than an account may have."""

Reading: TypeAlias = Callable[[Payload], Any]
"""What a call makes of an answer; raises `Misshapen` if it cannot."""


def as_it_is(answer: Payload) -> Payload:
    return answer


async def together(*calls: Awaitable[Any]) -> list[Any]:
    """The results of calls that run side by side; raises the first error when all have ended."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


async def pages(
    call: Callable[[Payload], Awaitable[Payload]], payload: Payload, last: str, start: str
) -> AsyncIterator[Payload]:
    """The answers of a listing, each of which says in `last` where the next is to `start`; they must come to an end."""
    seen: set[str] = set()
    while True:
        answer = await call(payload)
        yield answer
        after = answer.get(last)
        if not after:
            return
        if after in seen or len(seen) == _MOST_PAGES:
            raise ServiceFailed(
                f"the answers of a listing do not come to an end: {last} is {after!r} again; try again later"
            )
        seen.add(after)
        payload = {**payload, start: after}


class Client:
    """Calls made from one event loop."""

    def __init__(
        self, access: Access, transport: Transport, backoff: Backoff, keys: dict[str, tuple[KeyAttribute, ...]]
    ) -> None:
        self.access = access
        self.keys = keys
        """Those of tables that were described, for all clients of a store."""
        self.backoff = backoff
        self._transport = transport
        self._skew = 0.0
        self._now = asyncio.get_running_loop().time

    def attempts(self, backoff: Backoff | None = None) -> Attempts:
        """Those of a call that begins now; deadlines and timeouts go by one clock, the loop's."""
        return Attempts(backoff or self.backoff, self._now)

    async def table_call(
        self,
        target: str,
        payload: Payload,
        attempts: Attempts | None = None,
        read: Reading = as_it_is,
        *,
        safe_in_doubt: bool = True,
    ) -> Any:
        return await self.call(self.access.table_endpoint, target, payload, attempts, read, safe_in_doubt=safe_in_doubt)

    async def stream_call(self, target: str, payload: Payload, read: Reading = as_it_is) -> Any:
        return await self.call(self.access.stream_endpoint, target, payload, None, read)

    async def call(
        self,
        endpoint: Endpoint,
        target: str,
        payload: Payload,
        attempts: Attempts | None = None,
        read: Reading = as_it_is,
        *,
        safe_in_doubt: bool = True,
    ) -> Any:
        """What is read of the answer, which is JSON shaped as the operation's answers are.

        One that is not, or of which `read` says so, is lost as others are, but does not get better. Where an
        answer was lost, a request that is not `safe_in_doubt` is not repeated but raises `OutcomeUnknown`. For
        one that is repeated, `attempts.in_doubt` tells that what comes in the end, answer or error, may be due
        to an attempt before.
        """
        body = _json(payload)
        attempts = attempts or self.attempts()
        repaired: set[Retry] = set()
        while True:
            error: AdjoinError
            answer = None
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
                    error, retry = _lost(endpoint, "what came is no JSON object", answer.request_id)
                else:
                    # A gateway on the way answers with a page of its own.
                    said = {"message": answer.body[:200].decode(errors="replace")}
                    error, retry = understood(answer.status, said, None)
            if retry in (Retry.IN_DOUBT, Retry.IN_VAIN):
                attempts.in_doubt = True
                if not safe_in_doubt:
                    raise _unknown(target, error) from error
                if retry is Retry.IN_VAIN:
                    raise error
            elif retry is not Retry.LATER:
                if retry is Retry.NEVER or retry in repaired or answer is None:
                    raise error
                repaired.add(retry)
                await self._repair(retry, answer, credentials, attempts)
                continue
            wait = attempts.next_wait()
            if wait is None:
                raise error
            await asyncio.sleep(wait)

    async def _send(
        self, endpoint: Endpoint, target: str, body: bytes, credentials: Credentials, attempts: Attempts
    ) -> Answer:
        headers = endpoint.signer.headers(credentials, target, body, time.time() + self._skew)
        return await self._transport.post(endpoint, headers, body, attempts.left())

    async def _repair(self, retry: Retry, answer: Answer, credentials: Credentials, attempts: Attempts) -> None:
        if retry is Retry.REFRESHED:
            await self._looked_up(attempts, credentials)
        elif date := answer.headers.get("Date"):
            with suppress(ValueError, OverflowError):
                self._skew = parsedate_to_datetime(date).timestamp() - time.time()

    async def _looked_up(self, attempts: Attempts, instead_of: Credentials | None = None) -> Credentials:
        looking = asyncio.wrap_future(self.access.lookup(instead_of))
        try:
            async with asyncio.timeout(attempts.left()):
                return await looking
        except TimeoutError:
            raise InvalidCredentials(
                f"no credentials could be had in {attempts.backoff.deadline:g} s: "
                f"whoever provides them does not answer; look after it, or raise the deadline"
            ) from None
        except InvalidCredentials as error:
            # One error for all who waited would be changed by each of them.
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
        f"the answer to {operation_of(target)} is not one: {problem}; check that the endpoint is DynamoDB, "
        f"or a server that is compatible with it"
    )
    error.request_id = request_id
    return error


def _unknown(target: str, error: AdjoinError) -> OutcomeUnknown:
    unknown = OutcomeUnknown(
        f"the answer to {operation_of(target)} was lost ({error.args[0]}), and repeating it could apply it twice: "
        f"it may have been applied or not; read the item, and decide"
    )
    unknown.request_id = error.request_id
    return unknown
