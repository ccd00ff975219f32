"""HTTP/1.1 as DynamoDB's clients use it: POST requests one after another on connections that stay open.

This module does not know what a request means. `Connection` passes each complete request to the `answer` function of
the `Crowd`, which returns the answer, or a `Later` for an answer that is not ready. Answers are sent in the order of
the requests.

It also bounds what any client can take, because all of this happens before a signature is checked. A connection is
not read while too many of its requests are unanswered, or while the client has not read too much of its answers.
`Crowd` has the bounds of all connections together: their number, the bytes of incomplete requests and of unread
answers, and the time for a request to arrive or an answer to be read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeAlias, cast

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidLocation
from adjoin.server.reading import BadRequest, HttpRequest, RequestReader

SLICE = 16 * 1024
"""The greatest number of bytes that are read at a time. All requests in them are answered, even if there is no room
left for answers, so it must be small."""
MOST_WAITING = 32
"""The greatest number of unanswered requests of one connection."""
MOST_HELD = 1024 * 1024
"""The greatest number of bytes in their bodies together; a single body may be larger."""
UNCOUNTED = 64 * 1024
"""Bytes of bodies that each connection may hold regardless of the bound for all connections."""

_LINGER = 2.0
"""Seconds for which a client may continue to send a request that was refused."""

_STATUS_LINES = {
    200: b"HTTP/1.1 200 OK\r\n",
    400: b"HTTP/1.1 400 Bad Request\r\n",
    403: b"HTTP/1.1 403 Forbidden\r\n",
    404: b"HTTP/1.1 404 Not Found\r\n",
    408: b"HTTP/1.1 408 Request Timeout\r\n",
    413: b"HTTP/1.1 413 Payload Too Large\r\n",
    500: b"HTTP/1.1 500 Internal Server Error\r\n",
    503: b"HTTP/1.1 503 Service Unavailable\r\n",
}

_AS_TEXT = b"Content-Type: text/plain\r\n"
_KEPT = b"%b%bContent-Length: %d\r\n\r\n%b"
_CLOSED = b"%b%bConnection: close\r\nContent-Length: %d\r\n\r\n%b"
"""Answers on a connection that stays open, and on one that closes: status line, header lines, length and body."""


@dataclass(slots=True)
class HttpAnswer:
    status: int
    body: bytes
    head: bytes
    """Header lines, each with its CRLF."""


class Later:
    """An answer that is not ready yet."""

    __slots__ = ("_then", "answer")

    def __init__(self) -> None:
        self.answer: HttpAnswer | None = None
        self._then: Callable[[], None] | None = None

    def settle(self, answer: HttpAnswer) -> None:
        self.answer = answer
        if self._then is not None:
            self._then()

    def then(self, call: Callable[[], None]) -> None:
        """Calls the function when the answer is ready; immediately if it already is."""
        self._then = call
        if self.answer is not None:
            call()

    @property
    def settled(self) -> HttpAnswer:
        """Returns the answer; it must be ready."""
        assert self.answer is not None
        return self.answer


Answering: TypeAlias = HttpAnswer | Later
Answerer: TypeAlias = Callable[[HttpRequest], Answering]


class Connection(asyncio.Protocol):
    """The connection of one client."""

    def __init__(self, crowd: Crowd, is_own_host: Callable[[bytes], bool]) -> None:
        self._crowd = crowd
        self._transport: asyncio.Transport | None = None
        self._reader = RequestReader(is_own_host)
        self._unread = b""
        """Bytes that arrived while the connection was not being read."""
        self._waiting: deque[tuple[Answering, bool, int]] = deque()
        """Unanswered requests: the answer, whether another request may follow, and the size of the body."""
        self._held = 0
        """Bytes of their bodies."""
        self._counted = 0
        """Bytes of bodies that this connection has added to the count of all connections."""
        self._is_full = False
        """Whether nothing more is sent until the client has read some of its answers."""
        self._is_paused = False
        self._is_reading = False
        self._ended = False
        """Whether the client has closed its side of the connection."""
        self._closing = False
        self._bad: BadRequest | None = None
        """The fault after which nothing more can be read, if there is one."""
        self._refused = False
        self._read_until = 0
        """The number of complete requests when the present request began."""
        self.begun: float | None = None
        """When the incomplete request began to arrive; None if there is no incomplete request."""
        self.unsent = 0
        """Bytes of answers that the client had not read at the last look; `unsent_since` is since when."""
        self.unsent_since = 0.0
        self.asked_at = crowd.now
        """About when the last request arrived."""

    # --- what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if not self._crowd.enter(self):
            reason = b"the server has as many connections as it takes; try again later"
            self._send(HttpAnswer(503, reason, _AS_TEXT), keep=False)

    def connection_lost(self, error: Exception | None) -> None:
        self._crowd.left(self)
        self._crowd.hold(-self._counted)
        self._counted = 0
        self._reader.close()
        self._unread = b""
        self._bad = self._transport = None

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        reader = self._reader
        # Large pieces are divided, so that the bounds are checked before all of a piece is parsed.
        if self._unread or self._waiting or self._is_full or self.begun is not None or len(data) > SLICE:
            self._unread += data
        else:
            # The usual case: one complete request arrives, and none is waiting.
            try:
                reader.feed(data)
                if len(reader.requests) == 1 and not self._closing:
                    self._handle(reader.requests.popleft())
                    if not (reader.is_within or self._is_full):
                        return
            except BadRequest as bad:
                self._bad = bad
        self._read()

    def eof_received(self) -> bool:
        """The client sends no more, but may wait for answers. Returns whether the connection stays open for them."""
        self._ended = not self._refused and bool(self._waiting or self._unread or self._reader.requests)
        return self._ended

    def pause_writing(self) -> None:
        self._is_full = True
        if not self._is_reading:
            self._tell()

    def resume_writing(self) -> None:
        self._is_full = False
        self._read()

    # --- requests ---

    def _read(self) -> None:
        """Reads and handles what has arrived, as far as there is room."""
        if self._is_reading or self._transport is None:
            return
        self._is_reading = True
        requests = self._reader.requests
        while not self._closing and not self._refused and not self._has_enough():
            if requests:
                self._handle(requests.popleft())
            elif self._bad is not None:
                self._refuse(self._bad)
            elif self._unread:
                self._feed()
            else:
                break
        self._is_reading = False
        self._tell()

    def _feed(self) -> None:
        data = self._unread
        self._unread = data[SLICE:]
        try:
            self._reader.feed(data[:SLICE])
            if (self._counted or self._reader.held > UNCOUNTED) and not self._count():
                raise BadRequest(503, "the server has no memory left for unfinished requests; try again later")
        except BadRequest as bad:
            # Complete requests before the fault are answered first.
            self._bad = bad

    def _has_enough(self) -> bool:
        return self._is_full or len(self._waiting) >= MOST_WAITING or self._held > MOST_HELD

    def _tell(self) -> None:
        """Pauses or resumes reading, starts or stops the clock of a request, and tells the client to send its body."""
        transport, reader = self._transport, self._reader
        if transport is None or transport.is_closing():
            return
        if self._ended and not (self._waiting or self._unread or reader.requests):
            transport.close()
            return
        pauses = not self._refused and (bool(self._unread or reader.requests) or self._has_enough())
        if pauses != self._is_paused:
            self._is_paused = pauses
            if pauses:
                transport.pause_reading()
            else:
                transport.resume_reading()
        if self._refused or not reader.is_within or pauses:
            # What follows a refusal is discarded. While the server does not read, the delay is not the client's fault.
            self.begun = None
        elif self.begun is None or self._read_until != reader.count:
            self.begun, self._read_until = self._crowd.clock(), reader.count
        if reader.awaits_continue and not self._waiting and not self._refused:
            reader.awaits_continue = False
            transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _count(self) -> bool:
        """Adds the bytes of this connection to the count of all; returns whether the total is within its bound."""
        counted = max(0, self._reader.held + self._held - UNCOUNTED)
        more, self._counted = counted - self._counted, counted
        return self._crowd.hold(more)

    def _refuse(self, bad: BadRequest) -> None:
        """Sends a refusal, and discards the rest of the request: many clients read an answer only after sending all."""
        self._refused = True
        self.begun = None
        self._unread = b""
        self._reader.close()
        self._count()
        self._waiting.append((HttpAnswer(bad.status, bad.reason.encode(), _AS_TEXT), False, 0))
        self._flush()

    def overdue(self) -> None:
        """Refuses a request that takes too long to arrive."""
        self._refuse(BadRequest(408, "the request did not arrive completely in time"))
        self._tell()

    # --- answers ---

    def _handle(self, request: HttpRequest) -> None:
        self._crowd.asked(self)
        answering = self._crowd.answer(request)
        # Answers are sent in the order of the requests, so this one is sent now only if no earlier request waits.
        if type(answering) is HttpAnswer and not self._waiting:
            self._send(answering, request.keeps)
            return
        size = len(request.body)
        self._waiting.append((answering, request.keeps, size))
        self._held += size
        if self._held > UNCOUNTED:
            self._count()
        if not request.keeps:
            self._closing = True
        if isinstance(answering, Later):
            answering.then(self._flush)

    def _flush(self) -> None:
        while self._waiting:
            answering, keep, size = self._waiting[0]
            answer = answering.answer if isinstance(answering, Later) else answering
            if answer is None:
                break
            self._waiting.popleft()
            self._held -= size
            self._send(answer, keep)
        if self._counted:
            self._count()
        if self._unread or self._is_paused or self._ended or self._reader.requests or self._reader.awaits_continue:
            self._read()

    def _send(self, answer: HttpAnswer, keep: bool) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        form = _KEPT if keep else _CLOSED
        transport.write(form % (_STATUS_LINES[answer.status], answer.head, len(answer.body), answer.body))
        if self._refused and not self._waiting:
            self._linger(transport)
        elif not keep or (self._closing and not self._waiting):
            self._closing = True
            transport.close()

    def _linger(self, transport: asyncio.Transport) -> None:
        self._closing = True
        if transport.can_write_eof() and not transport.is_closing():
            # If the socket were closed while the client still sends, the client would get a reset and no refusal.
            transport.write_eof()
        asyncio.get_running_loop().call_later(_LINGER, transport.close)

    # --- what the crowd asks ---

    @property
    def is_idle(self) -> bool:
        """Whether all its requests have been answered."""
        return not self._waiting and not self._reader.requests and self.waits_to_send() == 0

    def waits_to_send(self) -> int:
        """Bytes of answers that the client has not read."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def shut(self) -> None:
        """Accepts no further request, and closes when those that have arrived are answered."""
        self._closing = True
        if not self._waiting and self._transport is not None:
            self._transport.close()

    def drop(self) -> None:
        """Closes the connection, even if answers have not been sent."""
        self._crowd.left(self)
        if self._transport is not None:
            self._transport.abort()


# --- all connections together ------------------------------------------------------------------


MAX_CONNECTIONS = 1000
REQUEST_TIMEOUT = 60.0
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of all connections together, and the time limit of each."""

    connections: int = MAX_CONNECTIONS
    seconds: float = REQUEST_TIMEOUT
    """The time for a request to arrive completely once it has begun, and for a client to read some of its answer."""
    held: int = 256 * _MEGABYTE
    """Bytes of the bodies of requests that are incomplete or unanswered."""
    unsent: int = 256 * _MEGABYTE
    """Bytes of answers that clients have not read."""

    def __post_init__(self) -> None:
        if self.connections < 1:
            raise InvalidLocation(f"max_connections must be at least 1, got {self.connections}")
        if not 0 < self.seconds < float("inf"):
            raise InvalidLocation(f"request_timeout must be a number of seconds above 0, got {self.seconds}")


class Member(Protocol):
    """A connection, as far as a `Crowd` needs to know it."""

    begun: float | None
    asked_at: float
    unsent: int
    unsent_since: float

    @property
    def is_idle(self) -> bool: ...
    def waits_to_send(self) -> int: ...
    def overdue(self) -> None: ...
    def drop(self) -> None: ...
    def shut(self) -> None: ...


class Crowd:
    """All connections of a server: which are open, which were active lately, their bounds, and who answers them.

    `clock` returns seconds and never goes backwards.
    """

    answer: Answerer
    """Answers the requests of all connections. It must be set before the first connection opens."""

    def __init__(self, clock: Callable[[], float], bounds: Bounds | None = None) -> None:
        self.clock = clock
        self.now = clock()
        """The approximate time: that of the last call of `look`."""
        self.bounds = bounds or Bounds()
        self.open: set[Member] = set()
        self.active: set[Member] = set()
        """The connections that have sent a request lately."""
        self.held = 0
        self._recent: set[Member] = set()

    def enter(self, member: Member) -> bool:
        """Admits a connection and returns True; False if there is no room.

        If there are too many, the connection that has been idle the longest is closed to make room.
        """
        if len(self.open) >= self.bounds.connections:
            idle = [each for each in self.open if each.is_idle]
            if not idle:
                return False
            min(idle, key=lambda each: each.asked_at).drop()
        self.open.add(member)
        return True

    def left(self, member: Member) -> None:
        for each in (self.open, self.active, self._recent):
            each.discard(member)

    def asked(self, member: Member) -> None:
        self.active.add(member)
        self._recent.add(member)
        member.asked_at = self.now

    def hold(self, more: int) -> bool:
        """Adds to the bytes that are held, or subtracts; returns whether the total is within its bound."""
        self.held += more
        return more <= 0 or self.held <= self.bounds.held

    def look(self) -> None:
        """Ends requests and connections that take too long. Call it about once per second.

        Connections without a request since the last call are no longer active.
        """
        self.now = self.clock()
        self.active, self._recent = self._recent, set()
        late = self.now - self.bounds.seconds
        unsent: list[Member] = []
        for member in list(self.open):
            size = member.waits_to_send()
            if size < member.unsent or not member.unsent or member in self.active:
                # The client has read something or sent a request, so its time begins again.
                member.unsent_since = self.now
            member.unsent = size
            if size:
                unsent.append(member)
            if size and member.unsent_since <= late:
                member.drop()
            elif member.begun is not None and member.begun <= late:
                member.overdue()
        self._make_room(unsent)

    def _make_room(self, members: list[Member]) -> None:
        """Drops the clients that have read nothing for the longest time, until the unread answers are within bounds."""
        total = sum(each.unsent for each in members)
        for each in sorted(members, key=lambda each: each.unsent_since):
            if total <= self.bounds.unsent:
                break
            each.drop()
            total -= each.unsent
