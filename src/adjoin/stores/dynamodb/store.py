"""The DynamoDB store: each request is a call of the service, and the calls of a batch run concurrently.

Connections belong to the event loop on which the store is used. For synchronous programs, the same store runs on event
loops of its own. A call takes an idle loop, or creates one, and returns it afterwards. So threads do not wait for each
other, and there are as many loops as there were calls at the same time. A forked process starts with no loops and never
touches those of its parent.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from orjson import dumps, loads

from adjoin.errors import AdjoinError, StoreClosed, Throttled
from adjoin.late import later
from adjoin.requests import (
    BatchGet,
    BatchGetResponse,
    BatchWrite,
    Consumed,
    CreateTable,
    DescribeTable,
    DropTable,
    ItemResponse,
    ListStreams,
    ListTables,
    ListTags,
    PageResponse,
    Put,
    Query,
    ReadChanges,
    Request,
    Response,
    Scan,
    SetTimeToLive,
    TableResponse,
    TagTable,
    TransactWrite,
    UpdateTable,
    WriteResponse,
)
from adjoin.stores.dynamodb import lifecycle
from adjoin.stores.dynamodb.access import ServiceAccess
from adjoin.stores.dynamodb.answers import Payload, check_all_have, check_has
from adjoin.stores.dynamodb.client import Backoff, Client, Waits, tell_retry, together, with_token
from adjoin.stores.dynamodb.protocol import OPERATIONS, ServiceOperation
from adjoin.stores.dynamodb.transport import Transport
from adjoin.tables import KeyAttribute
from adjoin.values import Item

if TYPE_CHECKING:
    import ctypes
    from concurrent import futures

    from adjoin.stores.dynamodb import lost_answers
    from adjoin.stores.dynamodb import streams as streaming
    from adjoin.stores.dynamodb.streams import Streams
else:
    ctypes = later("ctypes")
    futures = later("concurrent.futures")
    lost_answers = later("adjoin.stores.dynamodb.lost_answers")
    streaming = later("adjoin.stores.dynamodb.streams")

T = TypeVar("T")

# --- pages -------------------------------------------------------------------------------------

_MANY = 4
"""With so many requests in a round, the items of their pages are packed."""


class PackedItems(Sequence[Item]):
    """The items of a page, which was checked, as text: they are parsed again whenever they are accessed.

    If all pages of a round are in memory as items, they are so many objects that Python collects garbage again and
    again, which takes longer than to parse them twice. Parsed one page after the other, they are gone before it does.
    """

    __slots__ = ("_count", "_text")

    def __init__(self, items: Sequence[Item]) -> None:
        self._text, self._count = dumps(items), len(items)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Item]:
        return iter(loads(self._text))

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> list[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | list[Item]:
        return list(self)[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


# --- for programs with an event loop -----------------------------------------------------------


Manage: TypeAlias = Callable[[Client, Any], Awaitable[Response]]

_MANAGED: dict[type, Manage] = {
    CreateTable: lifecycle.create,
    SetTimeToLive: lifecycle.set_time_to_live,
    DescribeTable: lifecycle.describe,
    DropTable: lifecycle.drop,
    ListTables: lifecycle.list_tables,
    UpdateTable: lifecycle.update,
    TagTable: lifecycle.tag,
    ListTags: lifecycle.list_tags,
}

CONNECTIONS = 64
TIMEOUT = 10.0
DEADLINE = 30.0


async def _closed_in_the_end(transport: Transport) -> AsyncGenerator[None]:
    """Closes connections that the program did not close: when a loop ends, `asyncio.run` closes all generators."""
    try:
        yield
    finally:
        await transport.close()


def _end_soon(loop: asyncio.AbstractEventLoop, end: AsyncGenerator[None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(lambda: loop.create_task(end.aclose()))


class SharedStreams:
    """What all clients of a store know of change streams. Few programs read them, so the module is imported late."""

    def __init__(self, made: Streams | None = None) -> None:
        self._made = [] if made is None else [made]

    @property
    def found(self) -> Streams:
        if not self._made:
            # Of threads that come at the same time, all get the first.
            self._made.append(streaming.Streams())
        return self._made[0]

    def forget(self) -> None:
        for each in self._made:
            each.forget()


class _Connected:
    """The client for one event loop, and what is remembered between calls."""

    def __init__(
        self,
        access: ServiceAccess,
        keys: dict[str, tuple[KeyAttribute, ...]],
        connections: int,
        timeout: float,
        deadline: float,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        transport = Transport(connections, min(timeout, deadline))
        self.client = Client(access, transport, Backoff(deadline), keys)
        self._end = _closed_in_the_end(transport)
        # Closes the connections of a graph that is collected, without having been closed, before its loop ends.
        self._collected = weakref.finalize(self, _end_soon, self.loop, self._end)
        self._collected.atexit = False

    async def open(self) -> None:
        await anext(self._end)

    async def close(self) -> None:
        self._collected.detach()
        await self._end.aclose()

    async def perform(self, request: Request, streams: SharedStreams, *, packed: bool = False) -> Response:
        operation = OPERATIONS.get(type(request))
        if operation is None:
            if isinstance(request, ReadChanges):
                return await streams.found.read(self.client, request)
            if isinstance(request, ListStreams):
                return await streaming.list_streams(self.client, request)
            try:
                managed = await _MANAGED[type(request)](self.client, request)
                if isinstance(managed, TableResponse):
                    self.client.keys[managed.definition.name] = managed.definition.keys
                return managed
            finally:
                if isinstance(request, CreateTable | DropTable):
                    streams.forget()
                if isinstance(request, DropTable):
                    self.client.keys.pop(request.table, None)
        backoff = self.client.backoff
        if isinstance(request, TransactWrite):
            backoff = with_token(backoff)
            # With a token, the service applies the transaction once, however often it is sent.
            if request.token is None:
                request = replace(request, token=secrets.token_hex(16))
        if isinstance(request, BatchGet):
            return await self._batch_get(request)
        if isinstance(request, BatchWrite):
            return await self._batch_write(request)
        attempts = self.client.attempts(backoff)
        try:
            response: Response = await self.client.table_call(
                operation.target,
                operation.payload(request),
                attempts,
                partial(self._read, operation, request, packed),
                safe_in_doubt=lambda: lost_answers.is_safe_in_doubt(request),
            )
        except AdjoinError as error:
            if attempts.in_doubt:
                return lost_answers.settled(request, error)
            raise
        if attempts.in_doubt:
            lost_answers.check_before(request, response)
        return response

    def _read(self, operation: ServiceOperation, request: Any, packed: bool, answer: Payload) -> Response:
        response = operation.response(request, answer)
        keys = self.client.keys.get(request.table, ()) if isinstance(request, Query | Scan | Put) else ()
        if keys and isinstance(response, PageResponse):
            if request.projection is None:
                check_all_have(keys, response.items)
            if response.last is not None:
                check_has(keys, response.last, "LastEvaluatedKey")
        elif keys and isinstance(response, ItemResponse) and response.item is not None:
            check_has(keys, response.item, "Attributes")
        # The items were checked above, so the text that is kept is right.
        if packed and isinstance(response, PageResponse) and response.items:
            return replace(response, items=PackedItems(response.items))
        return response

    async def _batch_get(self, request: BatchGet) -> BatchGetResponse:
        """Reads a batch, at least in part. Items may stay unprocessed because the answer would be too large."""
        operation = OPERATIONS[BatchGet]
        payload = operation.payload(request)
        attempts = self.client.attempts()
        while True:
            read = partial(operation.response, request)
            response: BatchGetResponse = await self.client.table_call(operation.target, payload, attempts, read)
            # Some items were read, so the plan asks for the rest, beside other requests.
            if len(response.unprocessed) < len(request.gets):
                return response
            await self._pause("BatchGetItem", attempts, len(request.gets))

    async def _batch_write(self, request: BatchWrite) -> WriteResponse:
        """Writes a batch. Unprocessed writes were throttled and are repeated until the deadline; some may be left."""
        operation = OPERATIONS[BatchWrite]
        attempts = self.client.attempts()
        waiting = request
        consumed: tuple[Consumed, ...] = ()
        while True:
            payload, read = operation.payload(waiting), partial(operation.response, waiting)
            response: WriteResponse = await self.client.table_call(operation.target, payload, attempts, read)
            consumed += response.consumed
            if not response.unprocessed:
                return WriteResponse((), consumed)
            try:
                await self._pause("BatchWriteItem", attempts, len(request.writes))
            except Throttled:
                # Some writes were taken, and the caller has to know which ones.
                if len(response.unprocessed) < len(request.writes):
                    return WriteResponse(response.unprocessed, consumed)
                raise
            waiting = BatchWrite(response.unprocessed)

    async def _pause(self, operation: str, attempts: Waits, asked: int) -> None:
        wait = attempts.next_wait()
        if wait is None:
            raise Throttled(
                f"none of {asked} items of a batch was taken in {self.client.backoff.deadline:g} s; "
                f"raise the table's throughput, or spread the load over more keys and time"
            )
        tell_retry(operation, Throttled(), attempts, wait)
        await asyncio.sleep(wait)


class AsyncDynamoDBStore:
    """DynamoDB, or a compatible server, for programs with an event loop.

    `connections` limits how many requests are under way at once, `timeout` the seconds that a request may take, and
    `deadline` the seconds that it may take with all its retries.
    """

    creates_tables = False
    system = "aws.dynamodb"

    def __init__(
        self,
        *,
        region: str | None = None,
        endpoint: str | None = None,
        profile: str | None = None,
        connections: int = CONNECTIONS,
        timeout: float = TIMEOUT,
        deadline: float = DEADLINE,
        access: ServiceAccess | None = None,
        streams: SharedStreams | None = None,
        keys: dict[str, tuple[KeyAttribute, ...]] | None = None,
    ) -> None:
        self._access = access or ServiceAccess(region, endpoint, profile)
        self.server = self._access.table_endpoint.host
        self._limits = (connections, timeout, deadline)
        self._streams = streams or SharedStreams()
        self._keys = {} if keys is None else keys
        self._connected: _Connected | None = None
        """The client on the event loop that was used last."""
        self._loops: dict[asyncio.AbstractEventLoop, _Connected] = {}
        self._closed = False

    async def execute(self, requests: Sequence[Request]) -> list[Response]:
        connected = self._connected
        if connected is None or connected.loop is not asyncio.get_running_loop():
            connected = await self._connect()
        if len(requests) == 1:
            return [await connected.perform(requests[0], self._streams)]
        packed = len(requests) >= _MANY
        return await together(*(connected.perform(request, self._streams, packed=packed) for request in requests))

    async def _connect(self) -> _Connected:
        """The client for the running event loop. A program may run several loops, usually one after another."""
        if self._closed:
            raise StoreClosed("this graph was closed; open a new one")
        loop = asyncio.get_running_loop()
        self._loops = {each: found for each, found in self._loops.items() if not each.is_closed()}
        connected = self._loops.get(loop)
        if connected is None:
            connected = self._loops[loop] = _Connected(self._access, self._keys, *self._limits)
            await connected.open()
        self._connected = connected
        return connected

    async def close(self) -> None:
        self._closed = True
        self._connected = None
        connected = self._loops.pop(asyncio.get_running_loop(), None)
        if connected is not None:
            await connected.close()


# --- for programs without one ------------------------------------------------------------------

_PATIENCE = 0.5
"""Seconds that each step of closing a loop may take."""


class _Driver:
    """An event loop with its connections, which runs one call at a time."""

    def __init__(self, store: AsyncDynamoDBStore) -> None:
        self._loop = asyncio.new_event_loop()
        self._store = store
        self.is_broken = False
        """Whether a call was interrupted, for example by Ctrl-C, and left the loop in an unknown state."""

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        task = self._loop.create_task(self._store.execute(requests))
        try:
            return self._loop.run_until_complete(task)
        except BaseException as error:
            # A signal handler may raise any exception anywhere, also where the loop does not expect one.
            self.is_broken = not task.done() or not isinstance(error, Exception)
            self._leave()
            if task.done() and not task.cancelled():
                task.exception()
            raise

    def _leave(self) -> None:
        """Ends the run of the loop, if an interrupt came just before the loop itself did: between two of its lines.

        Otherwise this thread would have a running loop for ever, on which nothing runs.
        """
        if asyncio._get_running_loop() is self._loop:
            asyncio._set_running_loop(None)
        if self._loop.is_running():
            self._loop.__dict__["_thread_id"] = None

    def close(self) -> None:
        try:
            try:
                self._loop.run_until_complete(self._end())
            except RuntimeError:
                # A call that was interrupted as it began has left a callback that stops the loop, once.
                self._loop.run_until_complete(self._end())
        finally:
            # Do not wait for its threads: an address lookup may take longer than any deadline. They end by themselves.
            self._loop.close()

    async def _end(self) -> None:
        # An interrupted call leaves tasks, and some of them may never end.
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_PATIENCE)
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._store.close()


class _Drivers:
    """The idle drivers of one store in one process."""

    def __init__(self, access: ServiceAccess, make: Callable[[], AsyncDynamoDBStore]) -> None:
        self._access = access
        self._make = make
        self._idle: deque[_Driver] = deque()
        self._closed = False

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        if self._closed:
            raise StoreClosed("this graph was closed; open a new one")
        try:
            driver = self._idle.pop()
        except IndexError:
            driver = _Driver(self._make())
        try:
            return driver.execute(requests)
        finally:
            self._give_back(driver)

    def _give_back(self, driver: _Driver) -> None:
        if driver.is_broken:
            driver.close()
            return
        self._idle.append(driver)
        if self._closed:
            self.close()

    def close(self) -> None:
        self._closed = True
        while True:
            try:
                driver = self._idle.pop()
            except IndexError:
                return
            driver.close()

    def forget(self) -> None:
        """In a forked child, keeps the parent's drivers from being used, closed or collected.

        The child shares the selectors with its parent. Closing or collecting a loop here would unregister the parent's
        sockets.
        """
        for driver in self._idle:
            _keep_for_ever(driver)
        self._idle = deque()
        self._access.start_anew()


def _keep_for_ever(thing: object) -> None:
    """Takes a reference that is never released, so that not even the end of the program finalizes the object."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _away_from_loops(work: Callable[[], T]) -> T:
    """Runs `work` in this thread, or in another one if this thread already runs an event loop, as in notebooks."""
    if not _runs_a_loop():
        return work()
    pool = futures.ThreadPoolExecutor(1)
    under_way = pool.submit(work)
    try:
        return under_way.result()
    finally:
        # After an interrupt, do not wait for the work: it ends at its deadline and cleans up itself.
        pool.shutdown(wait=under_way.done())


def _runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_ALL: weakref.WeakSet[_Drivers] = weakref.WeakSet()


def _forget_all() -> None:
    for drivers in list(_ALL):
        drivers.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


class DynamoDBStore:
    """DynamoDB, or a compatible server, for synchronous programs; safe for many threads and after a fork.

    `connections` limits how many requests of one call are under way at once, `timeout` the seconds that a request may
    take, and `deadline` the seconds that it may take with all its retries.
    """

    creates_tables = False
    system = "aws.dynamodb"

    def __init__(
        self,
        *,
        region: str | None = None,
        endpoint: str | None = None,
        profile: str | None = None,
        connections: int = CONNECTIONS,
        timeout: float = TIMEOUT,
        deadline: float = DEADLINE,
    ) -> None:
        access = ServiceAccess(region, endpoint, profile)
        self.server = access.table_endpoint.host
        streams = SharedStreams()
        keys: dict[str, tuple[KeyAttribute, ...]] = {}
        self._drivers = _Drivers(
            access,
            lambda: AsyncDynamoDBStore(
                access=access, streams=streams, keys=keys, connections=connections, timeout=timeout, deadline=deadline
            ),
        )
        _ALL.add(self._drivers)
        # Closes a graph that the program did not close, when it is collected or the program ends.
        self._close = weakref.finalize(self, _away_from_loops, self._drivers.close)

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        return _away_from_loops(lambda: self._drivers.execute(requests))

    def close(self) -> None:
        self._close()
