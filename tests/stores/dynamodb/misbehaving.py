"""A server that misbehaves on purpose, in front of one that does not.

It passes requests on, and asks `choose` about each: None, or how to misbehave. A `Misbehaviour` says
whether the request reaches the server behind, so that a test knows what must have happened.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from email.utils import formatdate
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

from tests.waiting import LIMIT

REQUEST_ID = "MISBEHAVED"
"""The request id of every answer that does not come from the server behind."""


@dataclass(frozen=True)
class Call:
    """A request as it arrived: counted from 0, with the operation's name and its JSON."""

    number: int
    operation: str
    payload: Any
    head: str
    how: Misbehaviour | None = None


@dataclass(frozen=True)
class Misbehaviour:
    """`applied`: the request reaches the server behind. `lost`: the client cannot know that from the answer."""

    name: str
    act: Callable[[Exchange], Awaitable[None]]
    applied: bool = False
    lost: bool = False


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: dict[str, str]

    def bytes(self, *, length: int | None = None) -> bytes:
        headers = {**self.headers, "Content-Length": str(len(self.body) if length is None else length)}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {self.status} Whatever\r\n{lines}\r\n".encode() + self.body


def json_answer(status: int, found: Any, **headers: str) -> Answer:
    body = json.dumps(found).encode()
    return Answer(status, body, {"x-amzn-RequestId": REQUEST_ID, "x-amz-crc32": str(crc32(body)), **headers})


class Exchange:
    """One request and what may be done about it."""

    def __init__(self, call: Call, raw: bytes, server: _Behind, writer: asyncio.StreamWriter) -> None:
        self.call = call
        self._raw = raw
        self._behind = server
        self._writer = writer

    async def forward(self, payload: Any = None) -> Answer:
        """The answer of the server behind, to the request as it came or with another payload."""
        raw = self._raw if payload is None else _with_body(self.call.head, json.dumps(payload).encode())
        return await self._behind.ask(raw)

    async def say(self, answer: Answer, *, length: int | None = None) -> None:
        self._writer.write(answer.bytes(length=length))
        await self._writer.drain()

    async def drip(self, answer: Answer, pause: float) -> None:
        for byte in answer.bytes():
            if self._writer.is_closing():
                return
            self._writer.write(bytes((byte,)))
            await asyncio.sleep(pause)

    def hang_up(self) -> None:
        self._writer.close()

    def reset(self) -> None:
        self._writer.transport.abort()


def _with_body(head: str, body: bytes) -> bytes:
    lines = [line for line in head.split("\r\n") if line and not line.lower().startswith("content-length:")]
    return "\r\n".join((*lines, f"Content-Length: {len(body)}", "", "")).encode() + body


async def _read_message(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    lengths = [line for line in head.lower().split("\r\n") if line.startswith("content-length:")]
    return head, await reader.readexactly(int(lengths[0].partition(":")[2])) if lengths else b""


class _Behind:
    """A connection to the server behind."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, raw: bytes) -> Answer:
        if self._connection is None:
            self._connection = await asyncio.open_connection(self._parts.hostname, self._parts.port)
        reader, writer = self._connection
        writer.write(raw)
        head, body = await _read_message(reader)
        first, *lines = head.strip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines if not line.lower().startswith("content-length:"))
        return Answer(int(first.split(" ")[1]), body, headers)

    def close(self) -> None:
        if self._connection is not None:
            self._connection[1].close()


class MisbehavingServer:
    """Runs in a thread of its own from `start` to `stop`; what it is to do may change at any time."""

    def __init__(self, behind: str) -> None:
        self._behind = behind
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self.calls: list[Call] = []
        self.connections = 0
        self.behave()

    # --- what to do ---

    def behave(self) -> None:
        self.choose: Callable[[Call], Misbehaviour | None] = lambda _: None

    def misbehave(self, *how: Misbehaviour | None, operation: str | None = None) -> None:
        """The next calls (of that operation) are treated like this, one after the other; then all is well."""
        left = list(how)

        def choose(call: Call) -> Misbehaviour | None:
            return left.pop(0) if left and operation in (None, call.operation) else None

        self.choose = choose

    def misbehave_always(self, how: Misbehaviour, *operations: str) -> None:
        self.choose = lambda call: how if not operations or call.operation in operations else None

    def misbehave_at(self, number: int, how: Misbehaviour) -> None:
        """The call of that number, counted from now."""
        at = len(self.calls) + number
        self.choose = lambda call: how if call.number == at else None

    def operations(self) -> list[str]:
        return [call.operation for call in self.calls]

    # --- its life ---

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(LIMIT)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(LIMIT)

    def soon(self, work: Callable[[], object]) -> None:
        """Does something where requests are answered."""
        self._loop.call_soon_threadsafe(work)

    def hang_up(self) -> None:
        """Closes every connection that is open now, as servers do with idle ones."""
        closed = threading.Event()

        def close() -> None:
            for writer in list(self._writers):
                writer.close()
            self._loop.call_later(0.01, closed.set)

        self._loop.call_soon_threadsafe(close)
        assert closed.wait(LIMIT)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._started.set()
        await self._over.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self.connections += 1
        behind = _Behind(self._behind)
        try:
            while not writer.is_closing():
                await self._answer(reader, writer, behind)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            behind.close()
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, behind: _Behind) -> None:
        head, body = await _read_message(reader)
        target = next(line for line in head.split("\r\n") if line.lower().startswith("x-amz-target:"))
        call = Call(len(self.calls), target.rpartition(".")[2], json.loads(body), head)
        how = self.choose(call)
        self.calls.append(replace(call, how=how))
        exchange = Exchange(call, head.encode() + body, behind, writer)
        if how is None:
            await exchange.say(await exchange.forward())
        else:
            await how.act(exchange)


# --- how to misbehave --------------------------------------------------------------------------


async def _drop(exchange: Exchange) -> None:
    exchange.hang_up()


async def _reset(exchange: Exchange) -> None:
    exchange.reset()


async def _drop_after(exchange: Exchange) -> None:
    await exchange.forward()
    exchange.hang_up()


async def _reset_after(exchange: Exchange) -> None:
    await exchange.forward()
    exchange.reset()


async def _never(_: Exchange) -> None:
    await asyncio.sleep(60)


async def _never_after(exchange: Exchange) -> None:
    await exchange.forward()
    await asyncio.sleep(60)


async def _drip_after(exchange: Exchange) -> None:
    await exchange.drip(await exchange.forward(), 0.05)


async def _cut_short(exchange: Exchange) -> None:
    answer = await exchange.forward()
    half = replace(answer, body=answer.body[: len(answer.body) // 2])
    await exchange.say(half, length=len(answer.body))
    exchange.hang_up()


async def _damage(exchange: Exchange) -> None:
    answer = await exchange.forward()
    await exchange.say(replace(answer, body=answer.body.replace(b"{", b"[", 1)))


def _instead(body: bytes) -> Callable[[Exchange], Awaitable[None]]:
    async def act(exchange: Exchange) -> None:
        answer = await exchange.forward()
        headers = {name: value for name, value in answer.headers.items() if name.lower() != "x-amz-crc32"}
        await exchange.say(replace(answer, body=body, headers=headers))

    return act


async def _no_http(exchange: Exchange) -> None:
    await exchange.forward()
    exchange._writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    exchange.hang_up()


def _error(status: int, code: str, *, after: bool = False, **more: Any) -> Callable[[Exchange], Awaitable[None]]:
    async def act(exchange: Exchange) -> None:
        if after:
            await exchange.forward()
        found = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": f"{code}, they say", **more}
        await exchange.say(json_answer(status, found))

    return act


def _page(status: int, *, after: bool = False) -> Callable[[Exchange], Awaitable[None]]:
    async def act(exchange: Exchange) -> None:
        if after:
            await exchange.forward()
        await exchange.say(Answer(status, b"<html><h1>Bad gateway</h1></html>", {"Content-Type": "text/html"}))

    return act


def error(status: int, code: str, **more: Any) -> Misbehaviour:
    """An answer with that code, instead of passing the request on."""
    return Misbehaviour(code, _error(status, code, **more))


def canceled(*codes: str) -> Misbehaviour:
    """A transaction is canceled for these reasons, one an item."""
    reasons = [{"Code": code, "Message": f"{code}, they say"} for code in codes]
    return error(400, "TransactionCanceledException", CancellationReasons=reasons)


def wrong_clock(seconds: float) -> Misbehaviour:
    """Refuses a signature, as a service does whose clock is so many seconds from this machine's."""

    async def act(exchange: Exchange) -> None:
        found = {"__type": "InvalidSignatureException", "message": "Signature expired"}
        await exchange.say(json_answer(400, found, Date=formatdate(time.time() + seconds, usegmt=True)))

    return Misbehaviour("wrong clock", act)


THROTTLED = error(400, "ProvisionedThroughputExceededException")
THROTTLING = error(400, "ThrottlingException")
LIMITED = error(400, "RequestLimitExceeded")
IN_PROGRESS = error(400, "TransactionInProgressException")
EXPIRED_TOKEN = error(400, "ExpiredTokenException")

DROPPED = Misbehaviour("dropped before", _drop, lost=True)
RESET = Misbehaviour("reset before", _reset, lost=True)
SILENT = Misbehaviour("no answer, not applied", _never, lost=True)
FAILED = Misbehaviour("500 before", _error(500, "InternalServerError"), lost=True)
UNAVAILABLE = Misbehaviour("503 before", _error(503, "ServiceUnavailable"), lost=True)
BAD_GATEWAY = Misbehaviour("502 page before", _page(502), lost=True)

DROPPED_AFTER = Misbehaviour("dropped after", _drop_after, applied=True, lost=True)
RESET_AFTER = Misbehaviour("reset after", _reset_after, applied=True, lost=True)
SILENT_AFTER = Misbehaviour("no answer, applied", _never_after, applied=True, lost=True)
DRIPPING = Misbehaviour("byte by byte", _drip_after, applied=True, lost=True)
FAILED_AFTER = Misbehaviour("500 after", _error(500, "InternalServerError", after=True), applied=True, lost=True)
UNAVAILABLE_AFTER = Misbehaviour("503 after", _error(503, "ServiceUnavailable", after=True), applied=True, lost=True)
GATEWAY_TIMEOUT = Misbehaviour("504 page after", _page(504, after=True), applied=True, lost=True)
CUT_SHORT = Misbehaviour("cut short", _cut_short, applied=True, lost=True)
DAMAGED = Misbehaviour("wrong checksum", _damage, applied=True, lost=True)
NO_JSON = Misbehaviour("no JSON", _instead(b"{'Item': oops"), applied=True, lost=True)
NO_OBJECT = Misbehaviour("JSON, but no object", _instead(b'["Item"]'), applied=True, lost=True)
EMPTY = Misbehaviour("an empty answer", _instead(b""), applied=True, lost=True)
NO_HTTP = Misbehaviour("no HTTP", _no_http, applied=True, lost=True)

REFUSED = (THROTTLED, THROTTLING, LIMITED)
"""Surely not applied; may succeed later."""
LOST_BEFORE = (DROPPED, RESET, SILENT, FAILED, UNAVAILABLE, BAD_GATEWAY)
LOST_AFTER = (
    DROPPED_AFTER, RESET_AFTER, SILENT_AFTER, DRIPPING, FAILED_AFTER, UNAVAILABLE_AFTER, GATEWAY_TIMEOUT, CUT_SHORT,
    DAMAGED, NO_JSON, NO_OBJECT, EMPTY, NO_HTTP,
)  # fmt: skip


# --- batches -----------------------------------------------------------------------------------


def unprocessed(share: float) -> Misbehaviour:
    """Takes only the first of a batch, and gives that share of each table's items back."""

    async def act(exchange: Exchange) -> None:
        is_write = exchange.call.operation == "BatchWriteItem"
        taken, left = _split(exchange.call.payload["RequestItems"], share, is_write)
        if any(map(_size, taken.values())):
            answer = await exchange.forward({**exchange.call.payload, "RequestItems": taken})
            found = json.loads(answer.body)
        else:
            found = {} if is_write else {"Responses": {}}
        found["UnprocessedItems" if is_write else "UnprocessedKeys"] = left
        await exchange.say(json_answer(200, found))

    return Misbehaviour(f"{share:.0%} unprocessed", act)


def _size(entry: Any) -> int:
    return len(entry if isinstance(entry, list) else entry["Keys"])


def _split(asked: dict[str, Any], share: float, is_write: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    taken: dict[str, Any] = {}
    left: dict[str, Any] = {}
    for table, entry in asked.items():
        entries = entry if is_write else entry["Keys"]
        # One alone is taken, unless all are to be left.
        at = len(entries) - int(len(entries) * share)
        for part, some in ((taken, entries[:at]), (left, entries[at:])):
            if some:
                part[table] = some if is_write else {**entry, "Keys": some}
    return taken, left


def names(some: Iterable[Misbehaviour]) -> list[str]:
    """Ids for parametrized tests."""
    return [each.name for each in some]
