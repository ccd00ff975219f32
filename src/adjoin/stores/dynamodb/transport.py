"""One request to one endpoint and its answer: connections, timeouts and the checksum, over aiohttp.

aiohttp keeps the connections and parses answers. Requests are written to the connection as they are:
they are all alike, and building them from parts is half of what aiohttp's session costs.

Nothing is retried here and nothing is understood. What goes wrong is either `NotSent` (the service
never saw the request) or `AnswerLost` (it may have applied it); after `close` it is `StoreClosed`.
Whatever the other side does, a request ends in time and takes a bounded amount of memory.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.request import getproxies, proxy_bypass
from zlib import crc32

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError
from yarl import URL

from adjoin.errors import StoreClosed
from adjoin.stores.dynamodb.access import Endpoint

_KEPT = 15.0
"""Seconds for which a connection is used again; servers close what is idle for longer."""
LARGEST_ANSWER = 10 * 16 * 2**20
"""Bytes. No operation answers with more than the 16 MB of items that BatchGetItem reads, as the service counts
them. An empty text in a list counts as one byte, and its JSON, `{"S":""},`, takes nine; nothing else grows as
much. The tenth is for names and whatever surrounds the items."""


class NotSent(Exception):
    """The request did not reach the service, and will not either when it is sent again, if that is `for_good`."""

    def __init__(self, reason: str, *, for_good: bool = False) -> None:
        super().__init__(reason)
        self.for_good = for_good


class AnswerLost(Exception):
    """The request was sent, and no whole answer came back."""

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
    """An endpoint as aiohttp connects to it, and the first lines of every request there."""

    request: ClientRequest
    head: str


class Transport:
    """Connections of one event loop, kept open between requests; at most `connections` at once."""

    def __init__(self, connections: int, timeout: float) -> None:
        self._connector = aiohttp.TCPConnector(limit=connections)
        # Waiting for a free connection is not limited: it is waiting for other requests, which are.
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=timeout)
        self._answer_timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._addresses: dict[str, _Address] = {}
        self._under_way = 0
        self._ends: set[asyncio.Timeout] = set()
        """When to give up each answer that is waited for."""
        self._at_hand: dict[str, tuple[Connection, float]] = {}
        """The connection that was used last and alone, and until when it is good; giving it back costs more."""

    async def post(self, endpoint: Endpoint, headers: Mapping[str, str], body: bytes, within: float) -> Answer:
        """The answer, if it comes `within` so many seconds, those included that pass until a connection is free."""
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
        # For the whole answer, since one may come so slowly that no pause in it is long. Closing the connection
        # would not do: aiohttp does not tell whoever waits for the rest of a body.
        end = asyncio.timeout_at(min(until, self._loop.time() + self._answer_timeout))
        self._ends.add(end)
        try:
            async with end:
                answer = await self._exchange(connection, address, headers, body)
        except TimeoutError as error:
            connection.close()
            raise AnswerLost("the graph was closed" if self._connector.closed else "no answer came in time") from error
        except (aiohttp.ClientError, HttpProcessingError, OSError, RuntimeError) as error:
            # A RuntimeError is what aiohttp says of a body whose connection is gone.
            connection.close()
            # aiohttp's messages quote what came, all of it.
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
            raise AnswerLost("the answer's checksum does not fit the answer", answer.request_id)
        return answer

    async def _connection(self, address: _Address, until: float) -> Connection:
        try:
            async with asyncio.timeout_at(until):
                return await self._connector.connect(address.request, [], self._timeout)
        except TimeoutError as error:
            raise NotSent("no connection was free or made in time") from error
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            raise NotSent(_reason(error), for_good=True) from error
        except (aiohttp.ClientError, OSError) as error:
            if self._connector.closed:
                raise StoreClosed("this graph was closed while it was asked; open a new one") from None
            raise NotSent(_reason(error)) from error

    def _taken(self, url: str) -> Connection | None:
        connection, until = self._at_hand.pop(url, (None, 0.0))
        if connection is None or (until > self._loop.time() and not connection.closed):
            return connection
        connection.close()
        return None

    def _give_back(self, url: str, connection: Connection) -> None:
        protocol = connection.protocol
        # Others may wait for a connection, and only aiohttp knows.
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
        # Lets the transports of closed connections finish.
        await asyncio.sleep(0)


async def _whole(content: aiohttp.StreamReader, headers: Mapping[str, str]) -> bytes:
    """All of a body, unless it is larger than any can be; then no more of it is taken than shows that."""
    announced = headers.get("Content-Length", "")
    # An int of that many digits is no length, and reading it could fail.
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
    """What the system says, where aiohttp wraps it into the address and its settings."""
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    return str(cause) or type(cause).__name__


def _trust() -> ssl.SSLContext | bool:
    """Whom to trust: those the SDK is told to, or those the system trusts."""
    bundle = os.environ.get("AWS_CA_BUNDLE")
    return ssl.create_default_context(cafile=bundle) if bundle else True


def _proxy(url: URL) -> URL | None:
    """The proxy that the environment names for encrypted connections."""
    found = getproxies().get("https") if url.scheme == "https" and not proxy_bypass(url.host or "") else None
    return URL(found) if found else None
