"""The connections of a server together: who is there, who asked lately, and what all may take.

The bounds hold before any signature is looked at: how many connections there are, how much of unfinished
requests and of unread answers they hold, and how long a request may take to come, or an answer to be read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from adjoin.errors import InvalidLocation

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
    """`clock` gives seconds, and never goes back."""

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
