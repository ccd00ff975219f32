"""HTTP/1.1 as DynamoDB's clients speak it: POST requests one after another on connections that stay open.

Nothing here knows what a request means. `Connection` cuts the bytes into requests and hands each to the
server's `answer`, which gives the answer, or one that comes `Later`; answers go out in the order of requests.

A request with a plain head that comes in one piece, as nearly all do, is cut out of that piece. All others go
the long way.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

from adjoin.server.heads import plain_head

MAX_HEAD = 64 * 1024
MAX_BODY = 16 * 1024 * 1024

_LINGER = 2.0
"""Seconds for which a client may go on to send what was refused."""

_END = b"\r\n\r\n"
"""Of a head."""

_STATUS_LINES = {
    200: b"HTTP/1.1 200 OK\r\n",
    400: b"HTTP/1.1 400 Bad Request\r\n",
    404: b"HTTP/1.1 404 Not Found\r\n",
    405: b"HTTP/1.1 405 Method Not Allowed\r\n",
    413: b"HTTP/1.1 413 Payload Too Large\r\n",
    500: b"HTTP/1.1 500 Internal Server Error\r\n",
}


_KEPT = b"%b%bContent-Length: %d\r\n\r\n%b"
_CLOSED = b"%b%bConnection: close\r\nContent-Length: %d\r\n\r\n%b"
"""Answers on connections that stay open, or that end with them: status line, header lines, length and body."""


class Request:
    """One request; `target` is what X-Amz-Target says, and empty where it is not there.

    `is_plain` says that its head is plain, and need not be looked at; `head` is all of its lines as they came.
    """

    __slots__ = ("_headers", "body", "head", "is_plain", "method", "path", "target")

    def __init__(
        self, method: str, path: str, target: str, head: bytes, body: bytes = b"", is_plain: bool = False
    ) -> None:
        self.method = method
        self.path = path
        self.target = target
        self.head = head
        self.body = body
        self.is_plain = is_plain
        self._headers: dict[str, str] | None = None

    @property
    def headers(self) -> dict[str, str]:
        """By names in lower case."""
        if self._headers is None:
            self._headers = _headers(self.head)
        return self._headers


@dataclass(slots=True)
class Answer:
    status: int
    body: bytes
    head: bytes
    """Header lines, each with its end."""


class Later:
    """An answer that is not there yet."""

    __slots__ = ("_then", "answer")

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self._then: Callable[[], None] | None = None

    def settle(self, answer: Answer) -> None:
        self.answer = answer
        if self._then is not None:
            self._then()

    def then(self, call: Callable[[], None]) -> None:
        """Calls when the answer is there, which may be now."""
        self._then = call
        if self.answer is not None:
            call()

    @property
    def settled(self) -> Answer:
        """The answer, which is there."""
        assert self.answer is not None
        return self.answer


Answering: TypeAlias = Answer | Later
Handler: TypeAlias = Callable[[Request], Answering]


class _BadRequest(Exception):
    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason


class Crowd:
    """The connections of a server: all that are open, and those that have asked something lately."""

    def __init__(self) -> None:
        self.open: set[Connection] = set()
        self.active: set[Connection] = set()
        self._recent: set[Connection] = set()

    def asked(self, connection: Connection) -> None:
        self.active.add(connection)
        self._recent.add(connection)

    def forget(self) -> None:
        """Those that have not asked since this was last called are not active any more."""
        self.active, self._recent = self._recent, set()

    def left(self, connection: Connection) -> None:
        for each in (self.open, self.active, self._recent):
            each.discard(connection)


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, answer: Handler, crowd: Crowd) -> None:
        self._answer = answer
        self._crowd = crowd
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._head: Request | None = None
        self._length = 0
        self._chunked: _Chunks | None = None
        self._waiting: deque[tuple[Answering, bool]] = deque()
        self._closing = False
        self._refused = False

    # --- what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._crowd.open.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._crowd.left(self)
        self._transport = None

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        try:
            if self._head is None and not self._received:
                data = self._take_plain(data)
            if data:
                self._received += data
                while not self._closing and self._next_request():
                    pass
        except _BadRequest as bad:
            self._refuse(bad)

    def _refuse(self, bad: _BadRequest) -> None:
        """Says so, and lets the client send the rest, which nobody reads: many look for an answer only then."""
        self._closing = self._refused = True
        self._received.clear()
        self._send(Answer(bad.status, bad.reason.encode(), b"Content-Type: text/plain\r\n"), keep=False, linger=True)
        transport = self._transport
        if transport is not None:
            asyncio.get_running_loop().call_later(_LINGER, transport.close)

    # --- requests ---

    def _take_plain(self, data: bytes) -> bytes:
        """Handles the plain requests that `data` begins with; answers what is left."""
        while data and not self._closing:
            plain = plain_head(data)
            if plain is None:
                break
            target, start, length = plain
            end = start + length
            if length > MAX_BODY or end > len(data):
                break
            self._handle(Request("POST", "/", target, data[:start], data[start:end], is_plain=True), keep=True)
            data = data[end:]
        return data

    def _next_request(self) -> bool:
        """Handles one request if it is there whole."""
        if self._head is None and not self._read_head():
            return False
        assert self._head is not None
        if self._chunked is not None:
            body = self._chunked.take(self._received)
            if body is None:
                return False
            self._head.body = body
        else:
            if len(self._received) < self._length:
                return False
            self._head.body = bytes(self._received[: self._length])
            del self._received[: self._length]
        request, self._head, self._chunked = self._head, None, None
        self._handle(request, request.headers.get("connection", "").lower() != "close")
        return True

    def _read_head(self) -> bool:
        end = self._received.find(_END)
        if end < 0:
            if len(self._received) > MAX_HEAD:
                raise _BadRequest(413, "the head of the request is too large")
            return False
        head = bytes(self._received[:end])
        del self._received[: end + 4]
        words = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise _BadRequest(400, "this is no HTTP/1.1")
        request = Request(words[0], words[1], "", head, is_plain=plain_head(head + _END) is not None)
        headers = request.headers
        request.target = headers.get("x-amz-target", "")
        if words[2] == "HTTP/1.0":
            headers.setdefault("connection", "close")
        self._length = self._body_length(headers)
        if "chunked" in headers.get("transfer-encoding", "").lower():
            self._chunked = _Chunks()
        if headers.get("expect", "").lower() == "100-continue" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._head = request
        return True

    def _body_length(self, headers: dict[str, str]) -> int:
        length = headers.get("content-length", "0")
        if not length.isdigit():
            raise _BadRequest(400, "Content-Length is no number")
        if int(length) > MAX_BODY:
            raise _BadRequest(413, f"a request has at most {MAX_BODY} bytes")
        return int(length)

    # --- answers ---

    def _handle(self, request: Request, keep: bool) -> None:
        self._crowd.asked(self)
        answering = self._answer(request)
        if type(answering) is Answer and not self._waiting:
            self._send(answering, keep)
            return
        self._waiting.append((answering, keep))
        if isinstance(answering, Later):
            answering.then(self._flush)

    def _flush(self) -> None:
        while self._waiting:
            answering, keep = self._waiting[0]
            answer = answering.answer if isinstance(answering, Later) else answering
            if answer is None:
                return
            self._waiting.popleft()
            self._send(answer, keep)

    def _send(self, answer: Answer, keep: bool, linger: bool = False) -> None:
        if self._transport is None:
            return
        form = _KEPT if keep else _CLOSED
        self._transport.write(form % (_STATUS_LINES[answer.status], answer.head, len(answer.body), answer.body))
        if not linger and (not keep or (self._closing and not self._waiting)):
            self._transport.close()

    def shut(self) -> None:
        """Take no further request; close when those that are there have been answered."""
        self._closing = True
        if not self._waiting and self._transport is not None:
            self._transport.close()


# --- heads -------------------------------------------------------------------------------------


def _headers(head: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name:
            raise _BadRequest(400, "a header line without a colon")
        headers[name.lower()] = value.strip()
    return headers


class _Chunks:
    """A body that comes in chunks, put together."""

    def __init__(self) -> None:
        self._body = bytearray()

    def take(self, received: bytearray) -> bytes | None:
        """The whole body once it is there; takes from `received` what it has used."""
        while (end := received.find(b"\r\n")) >= 0:
            size_text = bytes(received[:end]).partition(b";")[0].strip()
            try:
                size = int(size_text, 16)
            except ValueError:
                raise _BadRequest(400, "a chunk without a size") from None
            if len(self._body) + size > MAX_BODY:
                raise _BadRequest(413, f"a request has at most {MAX_BODY} bytes")
            if len(received) < end + 2 + size + 2:
                return None
            self._body += received[end + 2 : end + 2 + size]
            del received[: end + 2 + size + 2]
            if size == 0:
                return bytes(self._body)
        return None
