"""One request to one endpoint and its answer: connections, timeouts and the checksum, over aiohttp.

Nothing is retried here and nothing is understood. What goes wrong is either `NotSent` (the service
never saw the request) or `AnswerLost` (it may have applied it).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from zlib import crc32

import aiohttp
from yarl import URL

from adjoin.stores.dynamodb.access import Endpoint


class NotSent(Exception):
    """The request did not reach the service."""


class AnswerLost(Exception):
    """The request was sent, and no whole answer came back."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    request_id: str | None
    date: str | None


class Transport:
    """Connections of one event loop, kept open between requests; at most `connections` at once."""

    def __init__(self, connections: int, timeout: float) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections),
            # Waiting for a free connection is not limited: it is waiting for other requests, which are.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=timeout, sock_read=timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("Accept", "User-Agent"),
        )
        self._urls: dict[str, URL] = {}

    async def post(self, endpoint: Endpoint, headers: dict[str, str], body: bytes) -> Answer:
        url = self._urls.get(endpoint.url)
        if url is None:
            url = self._urls[endpoint.url] = URL(endpoint.url, encoded=True)
        headers["Accept-Encoding"] = "identity"
        try:
            async with self._session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                content = await response.read()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotSent(str(error)) from error
        except TimeoutError as error:
            raise AnswerLost("no answer came in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise AnswerLost(f"the connection broke ({type(error).__name__}: {error})") from error
        checksum = response.headers.get("x-amz-crc32")
        if checksum is not None and int(checksum) != crc32(content):
            raise AnswerLost("the answer's checksum does not fit the answer")
        return Answer(response.status, content, response.headers.get("x-amzn-RequestId"), response.headers.get("Date"))

    async def close(self) -> None:
        await self._session.close()
        # Lets the transports of closed connections finish.
        await asyncio.sleep(0)
