"""HTTP/1.1 as DynamoDB's clients speak it: POST requests one after another on connections that stay open.

Nothing here knows what a request means. `Connection` cuts the bytes into requests and hands each to the
server's `answer`, which gives the answer, or a future of it; answers go out in the order of requests.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

MAX_HEAD = 64 * 1024
MAX_BODY = 16 * 1024 * 1024

_LINGER = 2.0
"""Seconds for which a client may go on to send what was refused."""

_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Payload Too Large",
    500: "Internal Server Error",
}


@dataclass(slots=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(slots=True)
class Answer:
    status: int
    body: bytes
    headers: dict[str, str]


Answering: TypeAlias = Answer | asyncio.Future[Answer]
Handler: TypeAlias = Callable[[Request], Answering]


class _BadRequest(Exception):
    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, answer: Handler, open_connections: set[Connection]) -> None:
        self._answer = answer
        self._open = open_connections
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._head: Request | None = None
        self._length = 0
        self._chunked: _Chunks | None = None
        self._waiting: deque[tuple[asyncio.Future[Answer], bool]] = deque()
        self._closing = False
        self._refused = False

    # --- what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._open.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._open.discard(self)
        self._transport = None

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._received += data
        try:
            while not self._closing and self._next_request():
                pass
        except _BadRequest as bad:
            self._refuse(bad)

    def _refuse(self, bad: _BadRequest) -> None:
        """Says so, and lets the client send the rest, which nobody reads: many look for an answer only then."""
        self._closing = self._refused = True
        self._received.clear()
        self._send(Answer(bad.status, bad.reason.encode(), {"Content-Type": "text/plain"}), keep=False, linger=True)
        transport = self._transport
        if transport is not None:
            asyncio.get_running_loop().call_later(_LINGER, transport.close)

    # --- requests ---

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
        self._handle(request)
        return True

    def _read_head(self) -> bool:
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            if len(self._received) > MAX_HEAD:
                raise _BadRequest(413, "the head of the request is too large")
            return False
        lines = self._received[:end].decode("latin-1").split("\r\n")
        del self._received[: end + 4]
        words = lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise _BadRequest(400, "this is no HTTP/1.1")
        headers: dict[str, str] = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon or not name:
                raise _BadRequest(400, "a header line without a colon")
            headers[name.lower()] = value.strip()
        if words[2] == "HTTP/1.0":
            headers.setdefault("connection", "close")
        self._length = self._body_length(headers)
        if "chunked" in headers.get("transfer-encoding", "").lower():
            self._chunked = _Chunks()
        if headers.get("expect", "").lower() == "100-continue" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._head = Request(words[0], words[1], headers, b"")
        return True

    def _body_length(self, headers: dict[str, str]) -> int:
        length = headers.get("content-length", "0")
        if not length.isdigit():
            raise _BadRequest(400, "Content-Length is no number")
        if int(length) > MAX_BODY:
            raise _BadRequest(413, f"a request has at most {MAX_BODY} bytes")
        return int(length)

    # --- answers ---

    def _handle(self, request: Request) -> None:
        keep = request.headers.get("connection", "").lower() != "close"
        answering = self._answer(request)
        if isinstance(answering, Answer) and not self._waiting:
            self._send(answering, keep)
            return
        if isinstance(answering, Answer):
            done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            done.set_result(answering)
            answering = done
        self._waiting.append((answering, keep))
        answering.add_done_callback(self._flush)

    def _flush(self, _: asyncio.Future[Answer]) -> None:
        while self._waiting and self._waiting[0][0].done():
            answering, keep = self._waiting.popleft()
            self._send(answering.result(), keep)

    def _send(self, answer: Answer, keep: bool, linger: bool = False) -> None:
        if self._transport is None:
            return
        lines = [f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}", f"Content-Length: {len(answer.body)}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        if not keep:
            lines.append("Connection: close")
        self._transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + answer.body)
        if not linger and (not keep or (self._closing and not self._waiting)):
            self._transport.close()

    def shut(self) -> None:
        """Take no further request; close when those that are there have been answered."""
        self._closing = True
        if not self._waiting and self._transport is not None:
            self._transport.close()


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
