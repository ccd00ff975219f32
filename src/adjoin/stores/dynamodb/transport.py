"""One request to one endpoint and its answer, over aiohttp: connections, timeouts and the checksum.

aiohttp keeps the connections and parses answers. Requests are written to the connection directly: they are all alike,
and building them from parts is half of the cost of aiohttp's session.

This module neither retries nor interprets. A failure is either `NotSent` (the service never saw the request) or
`AnswerLost` (it may have applied the request); after `close` it is `StoreClosed`. Whatever the server does, a request
ends in time and takes a bounded amount of memory.

A connection is used again only if nothing came on it since its last answer. Otherwise the server has closed it, and a
request on it would be lost; or it has sent something that nobody asked for, which would be taken for the next answer.
"""

from __future__ import annotations

import asyncio
import os
import select
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.request import getproxies, proxy_bypass
from weakref import WeakSet
from zlib import crc32

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError
from yarl import URL

from adjoin.errors import StoreClosed
from adjoin.stores.dynamodb.access import Endpoint

_KEPT = 15.0
"""Seconds for which an idle connection is reused; servers close connections that are idle for longer."""
LARGEST_ANSWER = 10 * 16 * 2**20
"""Most bytes of an answer. No operation returns more than the 16 MB of items of BatchGetItem, as the service counts
sizes. An empty text in a list counts as one byte, and its JSON, `{"S":""},`, takes nine; nothing else grows as much.
The tenth part is for names and for the JSON around the items."""


class NotSent(Exception):
    """The request did not reach the service; `for_good`: another attempt would not reach it either."""

    def __init__(self, reason: str, *, for_good: bool = False) -> None:
        super().__init__(reason)
        self.for_good = for_good


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

    @property
    def request_id(self) -> str | None:
        return self.headers.get("x-amzn-RequestId")


@dataclass(frozen=True, slots=True)
class _Address:
    """An endpoint as aiohttp connects to it, and the first lines of every request to it."""

    request: ClientRequest
    head: str


class Transport:
    """The connections of one event loop, kept open between requests; at most `connections` at once."""

    def __init__(self, connections: int, timeout: float) -> None:
        self._connector = aiohttp.TCPConnector(limit=connections)
        # No timeout for waiting for a free connection: that waits for other requests, which have timeouts.
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=timeout)
        self._answer_timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._addresses: dict[str, _Address] = {}
        self._under_way = 0
        self._ends: set[asyncio.Timeout] = set()
        """The timeouts of the answers that are awaited."""
        self._at_hand: dict[str, tuple[Connection, float]] = {}
        """The connection of the last request, if no other was under way, and until when to reuse it. That is cheaper
        than to return it to aiohttp's pool and to take it again."""
        self._used: WeakSet[ResponseHandler] = WeakSet()
        """The connections that have had a request."""

    async def post(self, endpoint: Endpoint, headers: Mapping[str, str], body: bytes, within: float) -> Answer:
        """The answer, if it comes `within` that many seconds, including the wait for a free connection."""
        self._under_way += 1
        try:
            return await self._posted(endpoint, headers, body, self._loop.time() + within)
        finally:
            self._under_way -= 1

    async def _posted(self, endpoint: Endpoint, headers: Mapping[str, str], body: bytes, until: float) -> Answer:
        address = self._addresses.get(endpoint.url) or self._address(endpoint)
        connection = self._taken(endpoint.url)
        if connection is None:
            connection = await self._connection(address, until)
        # The timeout covers the whole answer: a server that sends single bytes never trips a read timeout. Closing the
        # connection instead would not help: aiohttp does not wake a task that waits for the rest of a body.
        end = asyncio.timeout_at(min(until, self._loop.time() + self._answer_timeout))
        self._ends.add(end)
        try:
            async with end:
                answer = await self._exchange(connection, address, headers, body)
        except TimeoutError as error:
            connection.close()
            raise AnswerLost("the graph was closed" if self._connector.closed else "no answer came in time") from error
        except (aiohttp.ClientError, HttpProcessingError, OSError, RuntimeError) as error:
            # aiohttp raises RuntimeError for a body whose connection is gone.
            connection.close()
            # aiohttp's messages quote the whole answer, so they are cut.
            reason = " ".join(str(error).split())[:200]
            raise AnswerLost(f"the connection broke ({type(error).__name__}: {reason})") from error
        except BaseException:
            connection.close()
            raise
        finally:
            self._ends.discard(end)
        self._give_back(endpoint.url, connection)
        checksum = answer.headers.get("x-amz-crc32")
        if checksum is not None and checksum != str(crc32(answer.body)):
            raise AnswerLost("the answer does not match its checksum", answer.request_id)
        return answer

    async def _connection(self, address: _Address, until: float) -> Connection:
        try:
            async with asyncio.timeout_at(until):
                while True:
                    connection = await self._connector.connect(address.request, [], self._timeout)
                    if connection.protocol not in self._used or _is_quiet(connection):
                        return connection
                    connection.close()
        except TimeoutError as error:
            raise NotSent("no connection was free or could be opened in time") from error
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            raise NotSent(_reason(error), for_good=True) from error
        except (aiohttp.ClientError, OSError) as error:
            if self._connector.closed:
                raise StoreClosed("this graph was closed during a request; open a new one") from None
            raise NotSent(_reason(error)) from error

    def _taken(self, url: str) -> Connection | None:
        connection, until = self._at_hand.pop(url, (None, 0.0))
        if connection is None or (until > self._loop.time() and _is_quiet(connection)):
            return connection
        connection.close()
        return None

    def _give_back(self, url: str, connection: Connection) -> None:
        protocol = connection.protocol
        # Another request may wait for a connection, and only aiohttp's pool can hand it over.
        if self._under_way > 1 or protocol is None or protocol.should_close or self._connector.closed:
            connection.release()
        else:
            self._at_hand[url] = (connection, self._loop.time() + _KEPT)

    async def _exchange(
        self, connection: Connection, address: _Address, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        protocol, transport = connection.protocol, connection.transport
        if protocol is None or transport is None:
            raise aiohttp.ServerDisconnectedError
        self._used.add(protocol)
        protocol.set_response_params(read_until_eof=True, auto_decompress=False)
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        transport.write(f"{address.head}{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        message, content = await protocol.read()
        while message.code < 200:
            message, content = await protocol.read()
        return Answer(message.code, await _whole(content, message.headers), message.headers)

    def _address(self, endpoint: Endpoint) -> _Address:
        url = URL(endpoint.url)
        request = ClientRequest(
            "POST",
            url,
            loop=self._loop,
            ssl=_trust() if url.scheme == "https" else True,
            proxy=_proxy(url),
        )
        head = f"POST {url.raw_path} HTTP/1.1\r\nHost: {endpoint.host}\r\nAccept-Encoding: identity\r\n"
        return self._addresses.setdefault(endpoint.url, _Address(request, head))

    async def close(self) -> None:
        while self._at_hand:
            self._at_hand.popitem()[1][0].close()
        closing = self._connector.close()
        for end in self._ends:
            if not end.expired():
                end.reschedule(self._loop.time())
        await closing
        # One turn of the loop, in which the transports of closed connections finish.
        await asyncio.sleep(0)


def _is_quiet(connection: Connection) -> bool:
    """Whether a connection is open, and nothing came on it since its last answer, neither bytes nor its end.

    The event loop may not have run since then, so that aiohttp does not know what has come; the system does.
    """
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None or protocol.should_close or transport.is_closing():
        return False
    socket = transport.get_extra_info("socket")
    if socket is None or socket.fileno() < 0:
        return False
    if not hasattr(select, "poll"):  # on Windows
        return not select.select([socket.fileno()], [], [], 0)[0]
    poll = select.poll()
    poll.register(socket.fileno(), select.POLLIN)
    return not poll.poll(0)


async def _whole(content: aiohttp.StreamReader, headers: Mapping[str, str]) -> bytes:
    """A whole body; raises `AnswerLost` as soon as it is larger than any answer can be."""
    announced = headers.get("Content-Length", "")
    # Python may refuse to parse an int of very many digits, so the number of digits is checked first.
    is_too_large = announced.isdecimal() and (len(announced) > 18 or int(announced) > LARGEST_ANSWER)
    body = bytearray()
    while not is_too_large:
        part = await content.readany()
        is_too_large = len(body) + len(part) > LARGEST_ANSWER
        if not is_too_large and content.at_eof():
            return bytes(body) + part if body else part
        body += part
    raise AnswerLost(f"it is larger than {LARGEST_ANSWER >> 20} MB, which no answer of the service is")


def _reason(error: Exception) -> str:
    """The message of the system, without the address and the settings that aiohttp adds."""
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    return str(cause) or type(cause).__name__


def _trust() -> ssl.SSLContext | bool:
    """The certificate authorities to trust: those of AWS_CA_BUNDLE, or those of the system."""
    bundle = os.environ.get("AWS_CA_BUNDLE")
    return ssl.create_default_context(cafile=bundle) if bundle else True


def _proxy(url: URL) -> URL | None:
    """The proxy for encrypted connections, from the environment."""
    found = getproxies().get("https") if url.scheme == "https" and not proxy_bypass(url.host or "") else None
    return URL(found) if found else None
