"""Where the entries of one indexed field go, by the code that decides it in earnest.

`Single` and `Fixed` need no map. `Adaptive` runs the real maps, counters and policy for several writers, each with
its own copy of the map, as old as the lease allows, and its own counts; the stored map and heat record are replaced
only under the condition that they are what the writer read.

A second of writes of one value is placed as a whole: at the field level by one call of `place`, at the level of a
value by calls for a sample of ids, whose spread over the shards all its writes get.
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
"""Bytes a heat record takes at most."""

Spread = tuple[tuple[Shard, float], ...]
"""Shards, each with its share of the writes."""


class Placing(Protocol):
    """How the entries of a field are placed and looked for, as time goes on."""

    name: str
    is_by_value: bool
    """Whether values matter for where entries go."""

    def begin(self, now: float) -> None:
        """A second begins."""
        ...

    def place(self, writer: int, value: str, id: str, now: float) -> Shard:
        """Where one entry goes."""
        ...

    def spread(self, writer: int, value: str, now: float) -> Spread:
        """Where the entries of a value go that a writer makes in one second."""
        ...

    def state(self, writer: int, now: float) -> Hashable:
        """Something that can be hashed, and is equal where spreads are the same."""
        ...

    def saw(self, writer: int, shard: Shard, value: str, taken: float, refused: float, size: float) -> None:
        """A writer learns what came of its writes."""
        ...

    def end(self, now: float) -> float:
        """A second ends; the write units that this took for maps and records."""
        ...

    def sharding(self) -> Sharding:
        """What a reader knows."""
        ...


def placing_of(name: str, writers: int, limits: Limits = LIMITS) -> Placing:
    """By its name on the command line: single, fixed:N or adaptive."""
    kind, _, number = name.partition(":")
    if name == "single":
        return Fixed("single", 1)
    if kind == "fixed" and number.isascii() and number.isdigit() and int(number):
        return Fixed(name, int(number))
    if name == "adaptive":
        return Adaptive(writers, limits)
    raise InvalidValue(f"there is no sharding {name!r}; choose single, adaptive or fixed:N, as in fixed:8")


class Fixed:
    """So many shards for ever."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        # With one shard, only its sort keys are left to split it along.
        self.is_by_value = number == 1
        self._shards = FixedShards(number)
        self._spread = _sampled(self._shards, "", 0.0)

    def begin(self, now: float) -> None:
        """There is nothing to learn."""

    def place(self, writer: int, value: str, id: str, now: float) -> Shard:
        return self._shards.place(value, id, now)

    def spread(self, writer: int, value: str, now: float) -> Spread:
        return self._spread

    def state(self, writer: int, now: float) -> Hashable:
        return self._shards

    def saw(self, writer: int, shard: Shard, value: str, taken: float, refused: float, size: float) -> None:
        """There is nothing to count."""

    def end(self, now: float) -> float:
        return 0.0

    def sharding(self) -> Sharding:
        return self._shards


@dataclass
class _Writer:
    """One process: its copy of the map, how old that is, and what it counted."""

    shards: ShardMap
    read_at: float
    counter: HeatCounter = field(default_factory=HeatCounter)


class Adaptive:
    """Shards that grow where it is hot."""

    name = "adaptive"
    is_by_value = True

    def __init__(self, writers: int, limits: Limits = LIMITS) -> None:
        self.stored = ShardMap()
        self.heat = Heat()
        self.grown_at: list[tuple[float, int]] = []
        """When it grew, and how many shards there were then."""
        self._limits = limits
        self._spreads: dict[int, tuple[float, ...]] = {}
        # Writers did not start at once, and so do not read the map at once.
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
    """How many shards a reader asks for one value, on average over what is looked for."""
    return sum(weight * len(sharding.places(value)) for value, weight in zip(values, weights, strict=True))
