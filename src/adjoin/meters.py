"""The meter: what the requests of a block consumed, by table and index, and by the line of the program that made them.

It is a watcher of rounds. What requests would consume is in `adjoin.cost`.
"""

from __future__ import annotations

import os
import sys
from dataclasses import field

from adjoin.cost import counted, dollars
from adjoin.dataclass import dataclass
from adjoin.requests import Consumed
from adjoin.watching import WatchedRound, Watcher

_BETWEEN = ("adjoin", "concurrent", "contextlib", "functools", "threading")
"""Packages whose frames are between a program and a request."""
_LOOPS = ("asyncio", "uvloop")
"""An event loop; what is above it waits for other things too."""


@dataclass(slots=True)
class Usage:
    """Units consumed from one table or index."""

    rcu: float = 0.0
    wcu: float = 0.0


@dataclass(slots=True)
class TableUsage(Usage):
    """Units consumed from a table itself, and from each of its indexes."""

    indexes: dict[str, Usage] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallSite:
    """A line of a program. Its text is short: "shop.py:42 in checkout"."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line} in {self.function}"


@dataclass(slots=True)
class SiteUsage(Usage):
    """What one line of a program has asked for."""

    requests: int = 0
    rounds: int = 0


def call_site() -> CallSite | None:
    """The line of the program that waits for a request now; None if no code of a program waits, as in a bare task."""
    frame = sys._getframe(1)
    while (package := frame.f_globals.get("__name__", "").partition(".")[0]) not in _LOOPS:
        if package not in _BETWEEN:
            return CallSite(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None


class Meter(Watcher):
    """Counts what a block consumes: `with g.meter() as m: ...`, then `m.requests`, `m.rounds`, `m.rcu`, `m.wcu`.

    A round is a batch of requests that run side by side, so the number of rounds is how often the caller waits.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.rounds = 0
        self.tables: dict[str, TableUsage] = {}
        self.sites: dict[CallSite | None, SiteUsage] = {}
        """The same by the line of the program that waited: where a call is, or where a query is iterated."""

    @property
    def rcu(self) -> float:
        return sum(usage.rcu for usage in self._usages())

    @property
    def wcu(self) -> float:
        return sum(usage.wcu for usage in self._usages())

    @property
    def dollars(self) -> float:
        return dollars(self.rcu, self.wcu)

    def _usages(self) -> list[Usage]:
        return [usage for table in self.tables.values() for usage in (table, *table.indexes.values())]

    def after(self, round: WatchedRound) -> None:
        self.rounds += 1
        self.requests += len(round.requests)
        site = self.sites.setdefault(call_site(), SiteUsage())
        site.rounds += 1
        site.requests += len(round.requests)
        site.rcu += round.rcu
        site.wcu += round.wcu
        for response in round.responses:
            for consumed in response.consumed:
                self._add(consumed)

    def _add(self, consumed: Consumed) -> None:
        table = self.tables.setdefault(consumed.table, TableUsage())
        usage = table if consumed.index is None else table.indexes.setdefault(consumed.index, Usage())
        usage.rcu += consumed.read
        usage.wcu += consumed.write

    def __str__(self) -> str:
        asked = f"{counted(self.requests, 'request')} in {counted(self.rounds, 'round')}"
        return f"{asked}, {self.rcu:g} RCU, {self.wcu:g} WCU"

    __repr__ = __str__
