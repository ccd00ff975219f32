"""What one graph knows of index shards: the maps it has read, when, and what it wrote to them since.

The book is the only part of a bound layout that changes. It is filled by plans, which read the stored
maps; a field of which nothing is known has the one shard that every field begins with. What is written
is counted where entries are made, so what is refused later counts too: it is what is asked for.

In a rehearsal nothing is learned and nothing counted: what it is answered is not what is stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from adjoin.sharding.heat import Heat, HeatCounter
from adjoin.sharding.maps import FixedShards, Shard, Sharding, ShardMap
from adjoin.units import KB

_REHEARSED: ContextVar[bool] = ContextVar("adjoin_rehearsed", default=False)


@contextmanager
def rehearsed() -> Iterator[None]:
    """In this block nothing is taken down: answers are made up, and nothing is written."""
    token = _REHEARSED.set(True)
    try:
        yield
    finally:
        _REHEARSED.reset(token)


def is_rehearsed() -> bool:
    return _REHEARSED.get()


class ShardBook:
    """The shards of all indexed fields, each called by its scope."""

    def __init__(self, fixed: int | None = None, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self._fixed = None if fixed is None else FixedShards(fixed)
        self._maps: dict[str, tuple[ShardMap, float]] = {}
        self._counters: dict[str, HeatCounter] = {}
        self._counting = Lock()

    @property
    def is_adaptive(self) -> bool:
        return self._fixed is None

    def map(self, scope: str) -> ShardMap:
        return self._maps[scope][0] if scope in self._maps else ShardMap()

    def is_stale(self, scope: str) -> bool:
        """Whether a reader must look at the stored map again; a clock that was set back tells nothing."""
        if not self.is_adaptive or scope not in self._maps:
            return self.is_adaptive
        known, read_at = self._maps[scope]
        return not 0 <= self.clock() - read_at < known.lease

    def may_move(self, scope: str) -> bool:
        """Whether an entry that is put again, as it was, may go to another shard than before."""
        return self.is_adaptive and self.map(scope).version > 0

    def learn(self, scope: str, stored: ShardMap, read_at: float) -> None:
        """Takes down a map that was asked for at that time; an older one than is known is not believed."""
        if not is_rehearsed() and stored.version >= self.map(scope).version:
            self._maps[scope] = (stored, read_at)

    def place(self, scope: str, value: str, id: str, size: int) -> Shard:
        """The shard for a new entry of that size, which is counted."""
        shard = self._sharding(scope).place(value, id, self.clock())
        if self.is_adaptive and not is_rehearsed():
            with self._counting:
                counter = self._counters.setdefault(scope, HeatCounter())
                counter.record(shard, value, max(1, -(-size // KB)), size)
        return shard

    def places(self, scope: str, value: str) -> tuple[Shard, ...]:
        return self._sharding(scope).places(value)

    def all_places(self, scope: str, is_wanted: Callable[[str], bool]) -> tuple[Shard, ...]:
        return self._sharding(scope).all_places(is_wanted)

    def _sharding(self, scope: str) -> Sharding:
        return self._fixed or self.map(scope)

    # --- heat ----------------------------------------------------------------------------------

    def reports(self) -> dict[str, Heat]:
        """What has to be reported now, by scope; it is counted as reported."""
        if not self._counters or is_rehearsed():
            return {}
        now = self.clock()
        with self._counting:
            due = {scope: counter for scope, counter in self._counters.items() if counter.is_due(now)}
            return {scope: counter.report(now) for scope, counter in due.items()}

    def heard(self, scope: str, heat: Heat) -> None:
        """What all processes together wrote, which tells how often to report."""
        with self._counting:
            self._counters[scope].heard(heat, self.clock())

    def throttled(self) -> None:
        """The service refused a write; whatever was written since the last report is worth one."""
        with self._counting:
            for counter in self._counters.values():
                counter.throttled()
