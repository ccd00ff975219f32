"""The DynamoDB store: each request is a call of the service, and the calls of a batch run concurrently.

Connections belong to the event loop on which the store is used; `blocking` has the same store for synchronous programs.

A request that was repeated because an answer was lost may be refused because of its own first attempt, or return what
that attempt left. If the answer shows the outcome of the first attempt, the call returns it; if not, it raises
`OutcomeUnknown`.
"""

from __future__ import annotations

import asyncio
import secrets
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from orjson import dumps, loads

from adjoin.errors import (
    AdjoinError,
    ConditionFailed,
    InvalidRequest,
    OutcomeUnknown,
    StoreClosed,
    Throttled,
    TransactionCanceled,
)
from adjoin.items import normal_item
from adjoin.late import later
from adjoin.requests import (
    BatchGet,
    BatchGetResponse,
    BatchWrite,
    Consumed,
    CreateTable,
    Delete,
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
    Update,
    UpdateTable,
    WriteResponse,
)
from adjoin.stores.dynamodb import lifecycle
from adjoin.stores.dynamodb.access import ServiceAccess
from adjoin.stores.dynamodb.answers import Payload, check_all_have, check_has
from adjoin.stores.dynamodb.client import Backoff, Client, Waits, is_safe_in_doubt, tell_retry, together, with_token
from adjoin.stores.dynamodb.protocol import OPERATIONS, ServiceOperation
from adjoin.stores.dynamodb.transport import Transport
from adjoin.tables import KeyAttribute
from adjoin.values import Item

if TYPE_CHECKING:
    from adjoin.stores.dynamodb import streams as streaming
    from adjoin.stores.dynamodb.streams import Streams
else:
    streaming = later("adjoin.stores.dynamodb.streams")

# --- lost answers ------------------------------------------------------------------------------


def settled(request: Request, error: AdjoinError) -> Response:
    """The response, if the error shows that an earlier attempt succeeded; else raises an error."""
    # The first attempt may have been applied, so that the condition of the second one fails because of it.
    if isinstance(error, ConditionFailed):
        if _is_as_wanted(request, error):
            return ItemResponse(None)
        if error.item is not None or isinstance(request, Delete):
            raise _unknown("a conditional write was lost, and its condition does not hold now", error) from error
    elif isinstance(request, TransactWrite) and not _knew_the_token(error) and not _is_safe_anew(request):
        raise _unknown("a transaction was lost, and calling again could apply it twice", error) from error
    raise error


def _is_as_wanted(request: Request, error: ConditionFailed) -> bool:
    """Whether the stored item is what the request would have left."""
    match request:
        case Put(return_old=False):
            return error.item is not None and _same(request.item, dict(error.item))
        case Delete(return_old=False):
            return error.item is None
    return False


def _knew_the_token(error: AdjoinError) -> bool:
    """Whether the service refused this attempt, and therefore no earlier attempt with the same token was applied."""
    return isinstance(error, TransactionCanceled | InvalidRequest) and not error.retryable


def _is_safe_anew(request: TransactWrite) -> bool:
    """Whether it may be repeated with a new token, with which the service does not recognise it."""
    return all(map(is_safe_in_doubt, request.writes))


def check_before(request: Request, response: Response) -> None:
    """Raises if the item "before" in a response may be what an earlier attempt wrote."""
    item = response.item if isinstance(response, ItemResponse) else None
    match request:
        case Put(return_old=True):
            is_known = item is None or not _same(request.item, item)
        case Delete(return_old=True):
            is_known = item is not None
        case Update(returns="old" | "updated_old"):
            is_known = False
        case _:
            is_known = True
    if not is_known:
        raise OutcomeUnknown(
            "the answer to a write was lost; the write is applied now, but the item before it is unknown"
        )


def _same(one: Item, other: Item) -> bool:
    return normal_item(one)[0] == normal_item(other)[0]


def _unknown(what: str, error: AdjoinError) -> OutcomeUnknown:
    unknown = OutcomeUnknown(
        f"the answer to {what}: it may have been applied or not; read the items and decide ({error.args[0]})"
    )
    unknown.request_id = error.request_id
    return unknown


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


# --- the store ---------------------------------------------------------------------------------


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
                safe_in_doubt=is_safe_in_doubt(request),
            )
        except AdjoinError as error:
            if attempts.in_doubt:
                return settled(request, error)
            raise
        if attempts.in_doubt:
            check_before(request, response)
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
