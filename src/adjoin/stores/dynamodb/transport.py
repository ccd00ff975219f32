"""One request to one endpoint and its answer: connections, timeouts and the checksum, over aiohttp.

aiohttp keeps the connections and parses answers. Requests are written to the connection as they are:
they are all alike, and building them from parts is half of what aiohttp's session costs.

Nothing is retried here and nothing is understood. What goes wrong is either `NotSent` (the service
never saw the request) or `AnswerLost` (it may have applied it); after `close` it is `StoreClosed`.
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


class NotSent(Exception):
    """The request did not reach the service."""


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

    async def post(self, endpoint: Endpoint, headers: Mapping[str, str], body: bytes) -> Answer:
        address = self._addresses.get(endpoint.url) or self._address(endpoint)
        try:
            connection = await self._connector.connect(address.request, [], self._timeout)
        except (aiohttp.ClientError, OSError) as error:
            if self._connector.closed:
                raise StoreClosed("this graph was closed while it was asked; open a new one") from None
            raise NotSent(str(error) or type(error).__name__) from error
        # For the whole answer, since one may come so slowly that no pause in it is long.
        end = self._loop.call_later(self._answer_timeout, connection.close)
        try:
            answer = await self._exchange(connection, address, headers, body)
        except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
            connection.close()
            if end.when() <= self._loop.time():
                raise AnswerLost("no answer came in time") from error
            raise AnswerLost(f"the connection broke ({type(error).__name__}: {error})") from error
        except BaseException:
            connection.close()
            raise
        finally:
            end.cancel()
        connection.release()
        checksum = answer.headers.get("x-amz-crc32")
        if checksum is not None and checksum != str(crc32(answer.body)):
            raise AnswerLost("the answer's checksum does not fit the answer", answer.request_id)
        return answer

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
        return Answer(message.code, await content.read(), message.headers)

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
        await self._connector.close()
        # Lets the transports of closed connections finish.
        await asyncio.sleep(0)


def _trust() -> ssl.SSLContext | bool:
    """Whom to trust: those the SDK is told to, or those the system trusts."""
    bundle = os.environ.get("AWS_CA_BUNDLE")
    return ssl.create_default_context(cafile=bundle) if bundle else True


def _proxy(url: URL) -> URL | None:
    """The proxy that the environment names for encrypted connections."""
    found = getproxies().get("https") if url.scheme == "https" and not proxy_bypass(url.host or "") else None
    return URL(found) if found else None
