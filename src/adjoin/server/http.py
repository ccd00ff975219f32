"""HTTP/1.1 as DynamoDB's clients speak it: POST requests one after another on connections that stay open.

Nothing here knows what a request means. `Connection` hands each request that has come whole to the crowd's `answer`,
which gives the answer, or one that comes `Later`; answers go out in the order of requests.

And nothing here takes more than it may, whoever sends it, since all of this is before any signature is looked
at. A connection is not read while it has too many requests that are not answered, or too much of its answers
has not been read. `Crowd` has the bounds of all connections together: how many there are, how much of unfinished
requests and of unread answers they hold, and how long a request may take to come, or an answer to be read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast

from adjoin.errors import InvalidLocation
from adjoin.server.reading import BadRequest, HttpRequest, RequestReader

SLICE = 16 * 1024
"""Bytes that are read at a time, at most: they make requests before it is known whether there is room for answers."""
MOST_WAITING = 32
"""Requests of one connection that wait for their answers."""
MOST_HELD = 1024 * 1024
"""Bytes of their bodies; one may be larger."""
UNCOUNTED = 64 * 1024
"""Bytes of bodies that each connection may hold, whatever the others do."""

_LINGER = 2.0
"""Seconds for which a client may go on to send what was refused."""

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
"""Answers on connections that stay open, or that end with them: status line, header lines, length and body."""


@dataclass(slots=True)
class HttpAnswer:
    status: int
    body: bytes
    head: bytes
    """Header lines, each with its end."""


class Later:
    """An answer that is not there yet."""

    __slots__ = ("_then", "answer")

    def __init__(self) -> None:
        self.answer: HttpAnswer | None = None
        self._then: Callable[[], None] | None = None

    def settle(self, answer: HttpAnswer) -> None:
        self.answer = answer
        if self._then is not None:
            self._then()

    def then(self, call: Callable[[], None]) -> None:
        """Calls when the answer is there, which may be now."""
        self._then = call
        if self.answer is not None:
            call()

    @property
    def settled(self) -> HttpAnswer:
        """The answer, which is there."""
        assert self.answer is not None
        return self.answer


Answering: TypeAlias = HttpAnswer | Later
Answerer: TypeAlias = Callable[[HttpRequest], Answering]


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, crowd: Crowd, is_own_host: Callable[[bytes], bool]) -> None:
        self._crowd = crowd
        self._transport: asyncio.Transport | None = None
        self._reader = RequestReader(is_own_host)
        self._unread = b""
        """What came while nothing could be read."""
        self._waiting: deque[tuple[Answering, bool, int]] = deque()
        """Requests that are not answered: the answer, whether another may follow, and the size of the body."""
        self._held = 0
        """Bytes of their bodies."""
        self._counted = 0
        """Bytes of bodies that are counted among those of all connections."""
        self._is_full = False
        """Whether the client has to read before more is sent."""
        self._is_paused = False
        self._is_reading = False
        self._ended = False
        """Whether the client has said that it sends nothing more."""
        self._closing = False
        self._bad: BadRequest | None = None
        """Why nothing more can be read, once it is so."""
        self._refused = False
        self._read_until = 0
        """How many requests had come whole when the one began that is under way."""
        self.begun: float | None = None
        """When a request began to come that has not come whole; None while there is none."""
        self.unsent = 0
        """Bytes of answers that the client had not read when this was last looked at, and since when."""
        self.unsent_since = 0.0
        self.asked_at = crowd.now
        """About when it last asked something."""

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
        if self._unread or self._waiting or self._is_full or self.begun is not None or len(data) > SLICE:
            self._unread += data
        else:
            # Nearly always one whole request comes, and nothing else is there.
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
        """The client sends no more, but may wait for what it asked: whether the connection stays open for that."""
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
        """Reads and handles what has come, as far as there is room for it."""
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
                raise BadRequest(503, "the server holds as much of unfinished requests as it can; try again later")
        except BadRequest as bad:
            # What came whole before it is answered before it.
            self._bad = bad

    def _has_enough(self) -> bool:
        return self._is_full or len(self._waiting) >= MOST_WAITING or self._held > MOST_HELD

    def _tell(self) -> None:
        """Tells the transport whether to read on, the clock when a request began, and the client to send its body."""
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
        if not reader.is_within or pauses:
            # Time in which nothing is read is not the client's.
            self.begun = None
        elif self.begun is None or self._read_until != reader.count:
            self.begun, self._read_until = self._crowd.clock(), reader.count
        if reader.awaits_continue and not self._waiting and not self._refused:
            reader.awaits_continue = False
            transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _count(self) -> bool:
        """Counts the bytes of bodies that this connection holds among those of all; whether all may stay."""
        counted = max(0, self._reader.held + self._held - UNCOUNTED)
        more, self._counted = counted - self._counted, counted
        return self._crowd.hold(more)

    def _refuse(self, bad: BadRequest) -> None:
        """Says so, and lets the client send the rest, which nobody reads: many look for an answer only then."""
        self._refused = True
        self._unread = b""
        self._reader.close()
        self._count()
        self._waiting.append((HttpAnswer(bad.status, bad.reason.encode(), _AS_TEXT), False, 0))
        self._flush()

    def overdue(self) -> None:
        """Refuses a request that takes too long to come."""
        self._refuse(BadRequest(408, "the request did not come whole in the time that it has"))
        self._tell()

    # --- answers ---

    def _handle(self, request: HttpRequest) -> None:
        self._crowd.asked(self)
        answering = self._crowd.answer(request)
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
            transport.write_eof()
        asyncio.get_running_loop().call_later(_LINGER, transport.close)

    # --- what the crowd asks ---

    @property
    def is_idle(self) -> bool:
        """Whether nothing that it asked is still to be answered."""
        return not self._waiting and not self._reader.requests and self.waits_to_send() == 0

    def waits_to_send(self) -> int:
        """Bytes of answers that the client has not read."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def shut(self) -> None:
        """Take no further request; close when those that are there have been answered."""
        self._closing = True
        if not self._waiting and self._transport is not None:
            self._transport.close()

    def drop(self) -> None:
        """Closes it, whatever is still to be sent."""
        self._crowd.left(self)
        if self._transport is not None:
            self._transport.abort()


# --- all connections together ------------------------------------------------------------------


MAX_CONNECTIONS = 1000
REQUEST_TIMEOUT = 60.0
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Bounds:
    """What all connections may take together, and each of its time."""

    connections: int = MAX_CONNECTIONS
    seconds: float = REQUEST_TIMEOUT
    """In which a request comes whole once it has begun, and in which a client reads some of its answer."""
    held: int = 256 * _MEGABYTE
    """Bytes of the bodies of requests that have not come whole, or are not answered."""
    unsent: int = 256 * _MEGABYTE
    """Bytes of answers that clients have not read."""

    def __post_init__(self) -> None:
        if self.connections < 1:
            raise InvalidLocation(f"max_connections must be at least 1, got {self.connections}")
        if not 0 < self.seconds < float("inf"):
            raise InvalidLocation(f"request_timeout must be a number of seconds above 0, got {self.seconds}")


class Member(Protocol):
    """A connection, as far as this is concerned."""

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
    """The connections of a server together: who is there, who asked lately, what all may take, and who answers them.

    `clock` gives seconds, and never goes back.
    """

    answer: Answerer
    """Answers what is asked on any of them; whoever opens the first connection says who."""

    def __init__(self, clock: Callable[[], float], bounds: Bounds | None = None) -> None:
        self.clock = clock
        self.now = clock()
        """The time, about: when `look` was last called."""
        self.bounds = bounds or Bounds()
        self.open: set[Member] = set()
        self.active: set[Member] = set()
        """Those that have asked something lately."""
        self.held = 0
        self._recent: set[Member] = set()

    def enter(self, member: Member) -> bool:
        """Whether there is room for one more; one that has asked nothing for the longest time makes room."""
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
        """Counts bytes that are held, or not any more if there are fewer than none; whether all may stay."""
        self.held += more
        return more <= 0 or self.held <= self.bounds.held

    def look(self) -> None:
        """Sees to it that nobody takes too long. For about once a second.

        Those that have not asked since it was last called are not active any more.
        """
        self.now = self.clock()
        self.active, self._recent = self._recent, set()
        late = self.now - self.bounds.seconds
        unsent: list[Member] = []
        for member in list(self.open):
            size = member.waits_to_send()
            if size < member.unsent or not member.unsent or member in self.active:
                # It reads; of one that does not, nothing more is taken.
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
        """Drops those that have read nothing for the longest time while all together have too much to read."""
        total = sum(each.unsent for each in members)
        for each in sorted(members, key=lambda each: each.unsent_since):
            if total <= self.bounds.unsent:
                break
            each.drop()
            total -= each.unsent
