"""Where the entries of one indexed field go, decided by adjoin's real code.

`Single` and `Fixed` need no map. `Adaptive` runs the real maps, counters and policy for several writers. Each has
its own copy of the map, as old as the lease allows, and its own counts. The stored map and heat record are replaced
only on condition that they are still what the writer read.

All writes of one value in one second are placed together: at the field level by one call of `place`; at the level of a
value by calls for a sample of ids, whose spread over the shards then holds for all its writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from adjoin.errors import InvalidValue
from adjoin.sharding.heat import Heat, HeatCounter
from adjoin.sharding.maps import LEASE, FixedShards, Shard, Sharding, ShardMap
from adjoin.sharding.policy import LIMITS, Limits, considered

_SAMPLE = 30_000
_BLOCK = 4096
"""The largest size of a heat record, in bytes."""

Spread = tuple[tuple[Shard, float], ...]
"""Shards, each with its share of the writes."""


class Placing(Protocol):
    """A way of placing and finding the entries of a field over time."""

    name: str
    is_by_value: bool
    """Whether the place of an entry depends on its value."""

    def begin(self, now: float) -> None:
        """Called when a second begins."""
        ...

    def place(self, writer: int, value: str, id: str, now: float) -> Shard:
        """The shard of one entry."""
        ...

    def spread(self, writer: int, value: str, now: float) -> Spread:
        """The shards of the entries that a writer makes for a value in one second."""
        ...

    def state(self, writer: int, now: float) -> Hashable:
        """A hashable value that is equal for equal spreads."""
        ...

    def saw(self, writer: int, shard: Shard, value: str, taken: float, refused: float, size: float) -> None:
        """Tells a writer how many of its writes were accepted and refused."""
        ...

    def end(self, now: float) -> float:
        """Called when a second ends; returns the write units spent on maps and records."""
        ...

    def sharding(self) -> Sharding:
        """The sharding as a reader knows it."""
        ...


def placing_of(name: str, writers: int, limits: Limits = LIMITS) -> Placing:
    """The placing with this name on the command line: single, fixed:N or adaptive."""
    kind, _, number = name.partition(":")
    if name == "single":
        return Fixed("single", 1)
    if kind == "fixed" and number.isascii() and number.isdigit() and int(number):
        return Fixed(name, int(number))
    if name == "adaptive":
        return Adaptive(writers, limits)
    raise InvalidValue(f"the sharding {name!r} does not exist; choose single, adaptive or fixed:N, such as fixed:8")


def number_of_shards(name: str) -> int:
    """The number of shards of each target with this name on the command line: single or fixed:N."""
    placing = placing_of(name, 1)
    if not isinstance(placing, Fixed):
        raise InvalidValue(f"targets cannot have {name!r} shards, whose number they have in their keys; choose fixed:N")
    return placing.number


class Fixed:
    """A constant number of shards."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        # With one shard, DynamoDB can split only along sort keys, so values matter.
        self.is_by_value = number == 1
        self._shards = FixedShards(number)
        self._spread = _sampled(self._shards, "", 0.0)

    def begin(self, now: float) -> None:
        """Nothing changes over time."""

    def place(self, writer: int, value: str, id: str, now: float) -> Shard:
        return self._shards.place(value, id, now)

    def spread(self, writer: int, value: str, now: float) -> Spread:
        return self._spread

    def state(self, writer: int, now: float) -> Hashable:
        return self._shards

    def saw(self, writer: int, shard: Shard, value: str, taken: float, refused: float, size: float) -> None:
        """Nothing is counted."""

    def end(self, now: float) -> float:
        return 0.0

    def sharding(self) -> Sharding:
        return self._shards


@dataclass
class _Writer:
    """One process: its copy of the map, the age of the copy, and its counts."""

    shards: ShardMap
    read_at: float
    counter: HeatCounter = field(default_factory=HeatCounter)


class Adaptive:
    """Shards that grow where there is heat."""

    name = "adaptive"
    is_by_value = True

    def __init__(self, writers: int, limits: Limits = LIMITS) -> None:
        self.stored = ShardMap()
        self.heat = Heat()
        self.grown_at: list[tuple[float, int]] = []
        """When it grew, and the number of shards then."""
        self._limits = limits
        self._spreads: dict[int, tuple[float, ...]] = {}
        # Writers start at different times, so they also read the map at different times.
        self._writers = [_Writer(self.stored, -LEASE * number / writers) for number in range(writers)]

    def begin(self, now: float) -> None:
        for writer in self._writers:
            if now + 1 - writer.read_at > LEASE:
                writer.shards, writer.read_at = self.stored, now

    def state(self, writer: int, now: float) -> Hashable:
        shards = self._writers[writer].shards
        epochs = (epoch for each in (shards.epochs, *shards.values.values()) for epoch in each)
        return shards.version, sum(epoch.since <= now for epoch in epochs)

    def place(self, writer: int, value: str, id: str, now: float) -> Shard:
        return self._writers[writer].shards.place(value, id, now)

    def spread(self, writer: int, value: str, now: float) -> Spread:
        shards = self._writers[writer].shards
        own = shards.writable(now, value)
        if not own:
            return ((shards.place(value, "", now), 1.0),)
        if own not in self._spreads:
            self._spreads[own] = tuple(share for _, share in _sampled(shards, value, now))
        return tuple((Shard(number, value), share) for number, share in enumerate(self._spreads[own]))

    def saw(self, writer: int, shard: Shard, value: str, taken: float, refused: float, size: float) -> None:
        counter = self._writers[writer].counter
        counter.record(shard, value, taken, round(size))
        if refused:
            counter.record(shard, value, refused, is_throttled=True)

    def end(self, now: float) -> float:
        units = 0.0
        for writer in self._writers:
            if writer.counter.is_due(now):
                units += self._report(writer, now)
        return units

    def _report(self, writer: _Writer, now: float) -> float:
        writer.counter.heard(self.heat, now)
        self.heat, grown = considered(self.stored, self.heat, writer.counter.report(now), now, self._limits)
        if grown is None:
            return _BLOCK / 1024
        self.stored = writer.shards = grown
        writer.read_at = now
        self.grown_at.append((now, grown.shards))
        return 2 * _BLOCK / 1024

    def sharding(self) -> Sharding:
        return self.stored


def _sampled(sharding: Sharding, value: str, now: float) -> Spread:
    counts = Counter(sharding.place(value, str(id), now).number for id in range(_SAMPLE))
    return tuple((Shard(number), counts[number] / _SAMPLE) for number in sorted(counts))


def shards_asked(sharding: Sharding, values: Sequence[str], weights: Sequence[float]) -> float:
    """How many shards a reader queries for one value, on average over all searched values."""
    return sum(weight * len(sharding.places(value)) for value, weight in zip(values, weights, strict=True))
