"""Answers requests of DynamoDB's protocol: finds the operation and performs it on the embedded store.

Reads are answered immediately, on the listening thread. Writes go to the writer and are answered later.

The writes of many clients are committed in groups (group commit): writes that wait at the same time are committed
together. A group starts when every active client has a write in it, or when a turn of the event loop brings no
further write. One commit, with one synchronisation of the disk, serves all writes of the group, so durability costs
each client little.

A group is performed on the listening thread, so that no thread waits for another. It is committed there too if
nothing has to reach the disk, or if only one client is active, which waits anyway. Otherwise another thread waits
for the disk, and requests that arrive in the meantime form the next group. That thread also does everything that may
take long, such as a change of a table, or waiting for another process that writes. So reads never wait for a write.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from base64 import b32encode
from collections import defaultdict, deque
from collections.abc import Callable
from email.utils import formatdate
from functools import partial
from os import urandom
from queue import SimpleQueue
from typing import Any, TypeAlias
from zlib import crc32

from orjson import JSONDecodeError, dumps, loads

from adjoin.errors import AdjoinError
from adjoin.prometheus import PageMetric, page
from adjoin.requests import BatchWrite, Delete, Put, Request, TransactWrite, Update
from adjoin.server.http import Answering, Crowd, HttpAnswer, Later
from adjoin.server.negotiation import JSON, Admission, negotiated, unpacked
from adjoin.server.operations import OPERATIONS, STREAM_OPERATIONS
from adjoin.server.operations.interface import Operation, Parameters, Refused, ShortGet, ShortWrite, TableLookup
from adjoin.server.operations.refusals import body_of, refusal, status_of
from adjoin.server.reading import HttpRequest
from adjoin.server.signatures import KeyPair, authentication_fault, check_signature
from adjoin.stores.sqlite import SQLiteStore
from adjoin.stores.sqlite.store import Round

_log = logging.getLogger(__name__)
_SERVICES = {"DynamoDB_20120810": OPERATIONS, "DynamoDBStreams_20120810": STREAM_OPERATIONS}
_TARGETS = {
    f"{service}.{name}": operation
    for service, operations in _SERVICES.items()
    for name, operation in operations.items()
}


class _Known:
    """Table definitions as the store has them in memory, without reading the file."""

    def __init__(self, store: SQLiteStore) -> None:
        self.definition = store.known_definition


class Service:
    """Answers requests from one store; with a key pair, only requests that were signed with it."""

    def __init__(
        self,
        store: SQLiteStore,
        loop: asyncio.AbstractEventLoop,
        crowd: Crowd,
        admission: Admission,
        keys: KeyPair | None = None,
    ) -> None:
        self._store = store
        self._admission = admission
        self._keys = keys
        self._known = _Known(store)
        self._writer = _Writer(store, loop, crowd)
        self._second = 0
        self._head = b""
        # Request ids are unique, also after a restart of the server, so they begin with a random part.
        self._life = b32encode(urandom(32))[:39].decode()
        self._answered = 0
        self._asked: defaultdict[str, int] = defaultdict(int)
        """The number of requests for each target, such as DynamoDB_20120810.PutItem."""
        self._statuses: defaultdict[int, int] = defaultdict(int)
        """The number of answers with each status."""
        # Who cannot sign learns nothing.
        self._page = self._metrics if keys is None else None

    async def close(self) -> None:
        """Returns when every write that was requested is answered."""
        await self._writer.close()

    def answer(self, request: HttpRequest) -> Answering:
        if request.is_plain:
            return self._answered_to(request)
        return negotiated(request, self._answered_to, self._admission, self._page)

    def _answered_to(self, request: HttpRequest) -> Answering:
        parameters: Parameters = {}
        try:
            operation, body = self._understood(request)
            if operation.short is not None and (answer := self._short_answer(operation.short, body)) is not None:
                return answer
            parameters = operation.validated(body)
            if operation.tells_host:
                parameters["Host"] = request.headers.get("host", "localhost")
            if not operation.writes:
                return self._said(200, self._read(operation, parameters))
            asked = operation.request(parameters, self._store)
        except Exception as error:
            return self._refused(error, parameters)
        later = Later()
        self._writer.write(asked, partial(self._written, later, operation, parameters))
        return later

    def _understood(self, request: HttpRequest) -> tuple[Operation, bytes]:
        """Returns the operation and the body of a request; raises if the client is not authenticated."""
        known = _TARGETS.get(request.target)
        fault = None if request.is_plain else authentication_fault(request)
        if (known is None or fault is not None) and not _is_json(request.body):
            raise Refused("SerializationException")
        if known is None:
            raise Refused("UnknownOperationException")
        if fault is not None:
            raise fault
        if self._keys is not None:
            check_signature(request, self._keys)
        self._asked[request.target] += 1
        return known, request.body if request.is_plain else unpacked(request)

    # --- the short ways ------------------------------------------------------------------------

    def _short_answer(self, way: ShortGet | ShortWrite, body: bytes) -> Answering | None:
        """Returns the answer to a request that the fast path can handle; None for any other request."""
        try:
            asked = loads(body)
        except JSONDecodeError:
            return None
        return self._whole_item(way, asked) if isinstance(way, ShortGet) else self._short_write(way, asked)

    def _whole_item(self, way: ShortGet, asked: Any) -> HttpAnswer | None:
        get = way.read(asked)
        text = None if get is None else self._store.item_text(*get)
        if text is None:
            return None
        return self._sent(200, b'{"Item":%b}' % text if text else b"{}")

    def _short_write(self, way: ShortWrite, asked: Any) -> Later | None:
        request = way.read(asked)
        if request is None:
            return None
        later = Later()

        def written(outcome: Any) -> None:
            failed = isinstance(outcome, Exception)
            later.settle(self._refused(outcome, asked) if failed else self._sent(200, way.answer))

        self._writer.write(request, written)
        return later

    # --- all others ----------------------------------------------------------------------------

    def _read(self, operation: Operation, parameters: Parameters) -> dict[str, Any] | None:
        if operation.fails_on_stale:
            try:
                return self._performed(operation, parameters, self._known)
            except AdjoinError:
                # The definition in memory may be stale, because another process changed the table. Read it again.
                pass
        return self._performed(operation, parameters, self._store)

    def _performed(self, operation: Operation, parameters: Parameters, tables: TableLookup) -> dict[str, Any] | None:
        response = self._store.text(operation.request(parameters, tables))
        return operation.answer(parameters, response, self._store)

    def _written(self, later: Later, operation: Operation, parameters: Parameters, outcome: Any) -> None:
        try:
            if isinstance(outcome, Exception):
                raise outcome
            answer = self._said(200, operation.answer(parameters, outcome, self._store))
        except Exception as error:
            answer = self._refused(error, parameters)
        later.settle(answer)

    def _refused(self, error: Exception, parameters: Parameters) -> HttpAnswer:
        if not isinstance(error, AdjoinError):
            _log.error("an error in the server ended a request", exc_info=error)
            error = Refused("InternalServerError", "Internal server error")
        refused = refusal(error, parameters)
        return self._said(status_of(refused), body_of(refused))

    def _said(self, status: int, body: dict[str, Any] | None) -> HttpAnswer:
        return self._sent(status, b"" if body is None else dumps(body))

    def _sent(self, status: int, content: bytes) -> HttpAnswer:
        second = int(time.time())
        if self._second != second:
            self._second = second
            self._head = (
                f"Server: adjoin\r\nDate: {formatdate(second, usegmt=True)}\r\nContent-Type: {JSON}\r\n"
                f"x-amzn-RequestId: {self._life}"
            ).encode()
        self._answered += 1
        self._statuses[status] += 1
        head = b"%b%013X\r\nx-amz-crc32: %d\r\n" % (self._head, self._answered, crc32(content))
        return HttpAnswer(status, content, head)

    def _metrics(self) -> str:
        """What was asked and answered since the start, as a page for Prometheus. It names no tables."""
        asked = {target.partition(".")[2]: number for target, number in self._asked.items()}
        statuses = {str(status): number for status, number in self._statuses.items()}
        with_unknown = "Answers by status, with those to requests that name no known operation."
        return page(
            [
                PageMetric("adjoin_requests_total", "counter", "Requests by operation.", None, "operation", asked),
                PageMetric("adjoin_answers_total", "counter", with_unknown, None, "status", statuses),
            ]
        )


def _is_json(body: bytes) -> bool:
    """Whether the body is JSON; an empty one counts as {}."""
    try:
        loads(body or b"{}")
    except JSONDecodeError:
        return False
    return True


# --- writes in rounds --------------------------------------------------------------------------


_Done: TypeAlias = Callable[[Any], None]
"""Is called with the response to a write, or with its error, after the commit."""
_Job: TypeAlias = tuple[Request, _Done, int]
"""A request, what to call after its commit, and the number of items that it writes."""

_MOST_WRITTEN = 128
"""The greatest number of items in one group commit, so that no client waits for long."""

_OF_ITEMS = frozenset((Put, Update, Delete, BatchWrite, TransactWrite))


class _Writer:
    """The waiting writes, and the group that is being committed.

    All methods run on the thread of the event loop, except `_run` and what it calls.
    """

    def __init__(self, store: SQLiteStore, loop: asyncio.AbstractEventLoop, crowd: Crowd) -> None:
        self._store = store
        self._loop = loop
        self._crowd = crowd
        self._waiting: deque[_Job] = deque()
        self._gathered = 0
        """The number of writes that were waiting one turn of the loop ago."""
        self._is_busy = False
        """Whether a group is being committed, or is about to be."""
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="adjoin-writer", daemon=True)
        self._thread.start()

    def write(self, request: Request, done: _Done) -> None:
        several = getattr(request, "writes", None)
        self._waiting.append((request, done, 1 if several is None else len(several)))
        if not self._is_busy:
            self._is_busy = True
            self._gather()

    def _gather(self) -> None:
        """Starts a group commit, or waits one more turn of the loop for further writes."""
        count = len(self._waiting)
        if count == self._gathered or count >= min(len(self._crowd.active), _MOST_WRITTEN):
            self._gathered = 0
            self._round()
        else:
            self._gathered = count
            self._loop.call_soon(self._gather)

    async def close(self) -> None:
        """Returns when every requested write is done."""
        while self._is_busy:
            await asyncio.sleep(0.001)
        self._tasks.put(None)
        self._thread.join()

    # --- rounds ---

    def _round(self) -> None:
        jobs = self._next_jobs()
        requests = [request for request, _, _ in jobs]
        try:
            begun = self._store.begin(requests) if _OF_ITEMS.issuperset(map(type, requests)) else None
            if begun is not None and (not self._store.waits_for_disk or len(self._crowd.active) == 1):
                begun.commit()
                self._finish(jobs, begun.outcomes)
                return
        except Exception as error:
            self._finish(jobs, [error] * len(jobs))
            return
        self._tasks.put(partial(self._perform, jobs) if begun is None else partial(self._commit, jobs, begun))

    def _next_jobs(self) -> list[_Job]:
        jobs: list[_Job] = []
        room = _MOST_WRITTEN
        while self._waiting and (not jobs or self._waiting[0][2] <= room):
            jobs.append(self._waiting.popleft())
            room -= jobs[-1][2]
        return jobs

    def _finish(self, jobs: list[_Job], outcomes: list[Any]) -> None:
        """Answers the writes of a group, and starts the next one if writes have arrived since."""
        if self._waiting:
            self._loop.call_soon(self._gather)
        else:
            self._is_busy = False
        for (_, done, _), outcome in zip(jobs, outcomes, strict=True):
            done(outcome)

    # --- what takes long ---

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()

    def _commit(self, jobs: list[_Job], begun: Round) -> None:
        try:
            begun.commit()
            outcomes = begun.outcomes
        except Exception as error:
            outcomes = [error] * len(jobs)
        self._loop.call_soon_threadsafe(self._finish, jobs, outcomes)

    def _perform(self, jobs: list[_Job]) -> None:
        outcomes: list[Any]
        try:
            outcomes = self._store.outcomes([request for request, _, _ in jobs])
        except Exception as error:
            outcomes = [error] * len(jobs)
        self._loop.call_soon_threadsafe(self._finish, jobs, outcomes)
