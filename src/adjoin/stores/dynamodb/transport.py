"""One request to one endpoint and its answer, over HTTP/1.1: connections, timeouts, sizes and the checksum.

This module neither retries nor interprets. A failure is either `NotSent` (the service never saw the request) or
`AnswerLost` (it may have applied the request); after `close` it is `StoreClosed`. Whatever the server does, a request
ends in time and takes a bounded amount of memory.

All requests are alike, so they are written as text, without a library for HTTP clients. Those do more, and to import
one takes longer than everything else that a first request needs. httptools (llhttp) parses lines, lengths and chunks of
answers; what it leaves to its caller is here: the greatest sizes, and answers that end with their connection.

A connection is used again only if nothing came on it since its last answer. Otherwise the server has closed it, and a
request on it would be lost; or it has sent something that nobody asked for, which would be taken for the next answer.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Mapping
from dataclasses import field
from typing import Any, cast
from urllib.parse import quote, urlsplit
from zlib import crc32

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser

from adjoin.dataclass import dataclass
from adjoin.errors import StoreClosed
from adjoin.stores.dynamodb.access import Endpoint
from adjoin.stores.dynamodb.opening import Address, NotSent

_KEPT = 15.0
"""Seconds for which an idle connection is reused; servers close connections that are idle for longer."""
LARGEST_ANSWER = 10 * 16 * 2**20
"""Most bytes of an answer. No operation returns more than the 16 MB of items of BatchGetItem, as the service counts
sizes. An empty text in a list counts as one byte, and its JSON, `{"S":""},`, takes nine; nothing else grows as much.
The tenth part is for names and for the JSON around the items."""


_MOST_BESIDE = 64 * 1024
"""Most bytes in a row that are not part of a body: of heads, of trailers, and of what stands between chunks. Those that
the system hands over at once come on top."""


class AnswerLost(Exception):
    """The request was sent, but no complete answer came back."""

    def __init__(self, reason: str, request_id: str | None = None) -> None:
        super().__init__(reason)
        self.request_id = request_id


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    headers: Mapping[str, str]
    """By names in lower case."""

    @property
    def request_id(self) -> str | None:
        return self.headers.get("x-amzn-requestid")


class _TooLarge(Exception):
    """Raised within the parser, so that it reads no further."""


class _Connection(asyncio.Protocol):
    """An open connection, for one request at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._parser = HttpResponseParser(self)
        self._waiting: asyncio.Future[Answer] | None = None
        """What waits for the answer to the request that is under way."""
        self._largest = 0
        self._answer: Answer | None = None
        self._is_kept = True
        self._is_over = False
        self._is_foreign = False
        """Whether it speaks another protocol than HTTP from now on."""
        self._begin()

    def _begin(self) -> None:
        self._headers: dict[str, str] = {}
        self._has_head = False
        self._parts: list[bytes] = []
        self._size = 0
        self._beside = 0

    # --- for callers ---

    def ask(self, request: bytes, largest: int) -> asyncio.Future[Answer]:
        """Sends a request. The result is its answer, or `AnswerLost`; also if its body is larger than `largest`."""
        self._waiting = asyncio.get_running_loop().create_future()
        self._largest = largest
        self._answer = None
        self._begin()
        if self.transport is None or self._is_over:
            self.give_up("the connection broke (it was closed before the request was sent)")
        else:
            self.transport.write(request)
        return self._waiting

    def give_up(self, reason: str) -> None:
        """Closes the connection; the request that is under way has no answer."""
        self.end()
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(AnswerLost(reason))

    def end(self) -> None:
        """Closes the connection at once. A polite end would take the time of a server that does not respond."""
        self._is_over = True
        if self.transport is not None:
            self.transport.abort()

    def is_quiet(self) -> bool:
        """Whether the connection is open, and nothing came on it since its last answer, neither bytes nor its end.

        The event loop may not have run since then, so that this object was not told what has come; the system knows.
        """
        if self.transport is None or self._is_over or not self._is_kept or self.transport.is_closing():
            return False
        socket = self.transport.get_extra_info("socket")
        if socket is None or socket.fileno() < 0:
            return False
        if not hasattr(select, "poll"):  # on Windows
            return not select.select([socket.fileno()], [], [], 0)[0]
        poll = select.poll()
        poll.register(socket.fileno(), select.POLLIN)
        return not poll.poll(0)

    @property
    def can_be_kept(self) -> bool:
        """Whether the server keeps the connection open after its last answer."""
        return self._is_kept and not self._is_over

    # --- for the event loop ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:
            # Nobody has asked.
            self.end()
            return
        if self._is_foreign:
            # No answer comes, so the request ends at its time.
            return
        size = self._size
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._is_foreign = True
            return
        except HttpParserCallbackError as error:
            cause = error.__context__
            self.give_up(str(cause) if isinstance(cause, _TooLarge) else self._broken(error))
            return
        except HttpParserError as error:
            self.give_up(self._broken(error))
            return
        if self._answer is not None:
            self._finish(self._answer)
            return
        self._beside = 0 if self._size > size else self._beside + len(data)
        if self._beside > _MOST_BESIDE:
            self.give_up(f"the connection broke (more than {_MOST_BESIDE >> 10} KB came that are not part of a body)")

    def eof_received(self) -> None:
        # Without a length and without chunks, the end of the connection is the end of the body.
        if (
            self._waiting is not None
            and self._has_head
            and not self._headers.keys()
            & {
                "content-length",
                "transfer-encoding",
            }
        ):
            self._is_kept = False
            self._finish(self._made())

    def connection_lost(self, error: Exception | None) -> None:
        self._is_over = True
        if self._waiting is not None:
            self.give_up(self._broken(error) if error else "the connection broke (the server closed it)")

    def _finish(self, answer: Answer) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _made(self) -> Answer:
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        return Answer(self._parser.get_status_code(), body, self._headers)

    def _broken(self, error: Exception) -> str:
        # The message may quote what came.
        return f"the connection broke ({type(error).__name__}: {' '.join(str(error).split())[:200]})"

    # --- for the parser ---

    def on_message_begin(self) -> None:
        if self._answer is not None:
            # Nobody has asked for another one.
            self._is_kept = False
            self._begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        self._has_head = self._parser.get_status_code() >= 200
        announced = self._headers.get("content-length", "")
        # Python may refuse to parse an int of very many digits, so the number of digits is checked first.
        if announced.isdecimal() and (len(announced) > 18 or int(announced) > self._largest):
            raise self._too_large()

    def on_body(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._largest:
            raise self._too_large()
        self._parts.append(part)

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:
            # It only says that the answer comes later.
            self._headers = {}
        elif self._answer is None:
            self._is_kept = self._parser.should_keep_alive()
            self._answer = self._made()

    def _too_large(self) -> _TooLarge:
        return _TooLarge(f"it is larger than {self._largest >> 20} MB, which no answer of the service is")


# --- the connections of a loop -----------------------------------------------------------------


@dataclass(eq=False)
class _Server:
    """An endpoint: how connections to it are opened, the first lines of every request, and the idle connections."""

    address: Address
    head: str
    idle: list[tuple[_Connection, float]] = field(default_factory=list)
    """Each with the time until which it is reused. The last one was used last."""


class Transport:
    """The connections of one event loop, kept open between requests; at most `connections` requests at once."""

    def __init__(self, connections: int, timeout: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self._turns = asyncio.Semaphore(connections)
        self._servers: dict[str, _Server] = {}
        self._asked: set[_Connection] = set()
        """The connections that have a request under way."""
        self._opening: set[asyncio.Timeout] = set()
        """The timeouts of requests that wait for a connection."""
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    async def post(self, endpoint: Endpoint, headers: Mapping[str, str], body: bytes, within: float) -> Answer:
        """The answer, if it comes `within` that many seconds, including the wait for a free connection."""
        until = self._loop.time() + within
        server = self._servers.get(endpoint.url) or self._server(endpoint)
        if self._turns.locked():
            await self._waited(self._turns.acquire(), until)
        else:
            await self._turns.acquire()
        try:
            return await self._posted(server, headers, body, until)
        finally:
            self._turns.release()

    async def _posted(self, server: _Server, headers: Mapping[str, str], body: bytes, until: float) -> Answer:
        if self._closed:
            raise StoreClosed("this graph was closed during a request; open a new one")
        connection = self._taken(server)
        if connection is None:
            connection = await self._waited(
                server.address.open(_Connection), min(until, self._loop.time() + self._timeout)
            )
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        request = f"{server.head}{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body
        # The time is for the whole answer: a server that sends single bytes would never trip a time limit of a read.
        end = min(until, self._loop.time() + self._timeout)
        expiry = self._loop.call_at(end, connection.give_up, "no answer came in time")
        self._asked.add(connection)
        try:
            answer = await connection.ask(request, LARGEST_ANSWER)
        except BaseException:
            connection.end()
            raise
        finally:
            expiry.cancel()
            self._asked.discard(connection)
        self._give_back(server, connection)
        checksum = answer.headers.get("x-amz-crc32")
        if checksum is not None and checksum != str(crc32(answer.body)):
            raise AnswerLost("the answer does not match its checksum", answer.request_id)
        return answer

    async def _waited(self, waiting: Any, until: float) -> Any:
        """What is waited for before a request is sent."""
        try:
            async with asyncio.timeout_at(until) as limit:
                self._opening.add(limit)
                return await waiting
        except TimeoutError as error:
            if self._closed:
                raise StoreClosed("this graph was closed during a request; open a new one") from None
            raise NotSent("no connection was free or could be opened in time") from error
        finally:
            self._opening.discard(limit)

    def _taken(self, server: _Server) -> _Connection | None:
        """The idle connection that was used last, if it can be used again."""
        now = self._loop.time()
        while server.idle:
            connection, until = server.idle.pop()
            if until > now and connection.is_quiet():
                return connection
            connection.end()
        return None

    def _give_back(self, server: _Server, connection: _Connection) -> None:
        if self._closed or not connection.can_be_kept:
            connection.end()
            return
        server.idle.append((connection, self._loop.time() + _KEPT))
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(_KEPT, self._sweep)

    def _sweep(self) -> None:
        """Closes the connections that were idle for too long."""
        self._sweeping = None
        now = self._loop.time()
        for server in self._servers.values():
            for connection, until in server.idle:
                if until <= now:
                    connection.end()
            server.idle = [each for each in server.idle if each[1] > now]
        if any(server.idle for server in self._servers.values()):
            self._sweeping = self._loop.call_later(_KEPT, self._sweep)

    def _server(self, endpoint: Endpoint) -> _Server:
        path = quote(urlsplit(endpoint.url).path or "/", safe="/~%!$&'()*+,;=:@")
        head = f"POST {path} HTTP/1.1\r\nHost: {endpoint.host}\r\nAccept-Encoding: identity\r\n"
        return self._servers.setdefault(endpoint.url, _Server(Address(endpoint.url), head))

    async def close(self) -> None:
        """Closes all connections. Requests that are under way end, and so do those that wait for a connection."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        for server in self._servers.values():
            while server.idle:
                server.idle.pop()[0].end()
        for connection in list(self._asked):
            connection.give_up("the graph was closed")
        for limit in self._opening:
            if not limit.expired():
                limit.reschedule(self._loop.time())
        # One turn of the loop, in which the transports of closed connections finish.
        await asyncio.sleep(0)
