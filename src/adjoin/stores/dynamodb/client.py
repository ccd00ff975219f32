"""A call of the service: signed, sent, retried where that is safe, and its errors named."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from email.utils import parsedate_to_datetime
from typing import Any

from orjson import JSONDecodeError, dumps, loads

from adjoin.errors import AdjoinError, OutcomeUnknown, ServiceUnreachable
from adjoin.stores.dynamodb.access import Access, Endpoint
from adjoin.stores.dynamodb.faults import Retry, understood
from adjoin.stores.dynamodb.protocol import Payload
from adjoin.stores.dynamodb.retries import Attempts, Backoff
from adjoin.stores.dynamodb.transport import Answer, AnswerLost, NotSent, Transport


class RefusedAfterDoubt(Exception):
    """A repeated request was refused, and an earlier attempt, whose answer was lost, may be why."""

    def __init__(self, error: AdjoinError) -> None:
        self.error = error


async def together(*calls: Awaitable[Any]) -> list[Any]:
    """The results of calls that run side by side; raises the first error when all have ended."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


class Client:
    """Calls made from one event loop."""

    def __init__(self, access: Access, transport: Transport, backoff: Backoff) -> None:
        self.access = access
        self.backoff = backoff
        self._transport = transport
        self._skew = 0.0

    async def table_call(self, target: str, payload: Payload, *, safe_in_doubt: bool = True) -> Payload:
        return await self.call(self.access.table_endpoint, target, payload, safe_in_doubt=safe_in_doubt)

    async def stream_call(self, target: str, payload: Payload) -> Payload:
        return await self.call(self.access.stream_endpoint, target, payload)

    async def call(self, endpoint: Endpoint, target: str, payload: Payload, *, safe_in_doubt: bool = True) -> Payload:
        """The JSON of the answer.

        Where an answer was lost, a request that is not `safe_in_doubt` is not repeated but raises
        `OutcomeUnknown`; one that was repeated and then refused raises `RefusedAfterDoubt`.
        """
        body = dumps(payload)
        attempts = Attempts(self.backoff)
        answer = None
        doubted = False
        repaired: set[Retry] = set()
        while True:
            error: AdjoinError
            try:
                answer = await self._send(endpoint, target, body, attempts)
            except NotSent as problem:
                error, retry = ServiceUnreachable(f"{endpoint.url} cannot be reached: {problem}"), Retry.LATER
            except AnswerLost as problem:
                error, retry = ServiceUnreachable(f"{endpoint.url} gave no answer: {problem}"), Retry.IN_DOUBT
            else:
                try:
                    found: Payload = loads(answer.body)
                    if answer.status == 200:
                        return found
                    error, retry = understood(answer.status, found, answer.request_id)
                except JSONDecodeError:
                    error, retry = _not_json(endpoint, answer)
            if retry is Retry.NEVER:
                raise RefusedAfterDoubt(error) if doubted else error
            if retry is Retry.IN_DOUBT:
                if not safe_in_doubt:
                    raise _unknown(target, error) from error
                doubted = True
            elif retry is not Retry.LATER:
                if retry in repaired or answer is None:
                    raise error
                repaired.add(retry)
                await self._repair(retry, answer)
                continue
            wait = attempts.next_wait()
            if wait is None:
                raise error
            await asyncio.sleep(wait)

    async def _send(self, endpoint: Endpoint, target: str, body: bytes, attempts: Attempts) -> Answer:
        credentials = self.access.credentials()
        if credentials is None:
            credentials = await asyncio.to_thread(self.access.fetch)
        headers = endpoint.signer.headers(credentials, target, body, time.time() + self._skew)
        if not attempts.made:
            return await self._transport.post(endpoint, headers, body)
        try:
            async with asyncio.timeout(attempts.left()):
                return await self._transport.post(endpoint, headers, body)
        except TimeoutError:
            raise AnswerLost("no answer came in time") from None

    async def _repair(self, retry: Retry, answer: Answer) -> None:
        if retry is Retry.REFRESHED:
            await asyncio.to_thread(self.access.fetch, anew=True)
        elif date := answer.headers.get("Date"):
            self._skew = parsedate_to_datetime(date).timestamp() - time.time()


def _not_json(endpoint: Endpoint, answer: Answer) -> tuple[AdjoinError, Retry]:
    if answer.status != 200:
        return understood(answer.status, {"message": answer.body[:200].decode(errors="replace")}, answer.request_id)
    return ServiceUnreachable(f"{endpoint.url} answered with something that is no JSON"), Retry.IN_DOUBT


def _unknown(target: str, error: AdjoinError) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"the answer to {target.partition('.')[2]} was lost ({error}), and repeating it could apply it twice: "
        f"it may have been applied or not; read the item, and decide"
    )
