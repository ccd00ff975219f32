"""Which shards an indexed field has, where a new entry goes, and where entries may lie.

An overloaded index has one partition key for a class, a field and a shard. The shards of one field are told by
a `ShardMap`, which only ever grows:

- At the **field level** all values share the shards 0 … n-1. A value has one of them, its bucket.
- At the **value level** a hot value has shards of its own, among which its entries are spread by their ids.

Each level is a history of epochs, "from this time on, so many shards". An entry is put where the newest epoch
that is writable says, and stays there: growing rewrites nothing. So a reader asks every place that any epoch
may have chosen. Buckets come from jump consistent hashing (Lamping and Veach, 2014): when shards are added, a
value keeps its bucket or gets a new one, and never moves between old ones. So there are few places to ask.

**The contract of the lease.** It keeps readers from missing entries without a lock, as leases do for schemas in
F1 (Rae et al., "Online, Asynchronous Schema Change in F1", 2013):

1. Whoever reads with a map read it at most `LEASE` seconds ago, or `FIRST_LEASE` if it has never grown.
2. An epoch becomes writable `GRACE` seconds after it is announced, by the clock of each writer; the first one after
   `FIRST_GRACE`. None becomes writable before the one that it follows.
3. Maps only grow, and one that grew replaces the one it grew from, and no other (`version` tells).

By 1 and 2, every reader knows a shard before anybody writes to it, as long as clocks differ by no more than
`GRACE - LEASE` seconds. By 3, what an older map said is part of what a newer one says, so a writer with an
older map does no harm. An entry lies in one shard at a time, because its item holds one index key.

`FixedShards` is for who wants so many shards and no map: entries are spread by id over all of them, and a reader
asks all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Protocol

from adjoin.errors import InvalidItem, InvalidValue

LEASE, FIRST_LEASE = 30.0, 120.0
"""Seconds for which a map may be used before it is read again: one that has grown, and one that never has.

Most fields never need a second shard; who reads them should notice as little as possible of those that do.
"""
GRACE, FIRST_GRACE = 45.0, 150.0
"""Seconds from the announcement of an epoch until it may be written to: of a later one, and of the first."""

_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard of a field: its number, and the value if it belongs to a hot one.

    As text it is "3", or "3#" and the value. No two shards have the same text.
    """

    number: int
    value: str | None = None

    def __str__(self) -> str:
        return str(self.number) if self.value is None else f"{self.number}#{self.value}"


class Sharding(Protocol):
    """Where entries go, and where they may lie. Values and ids are the texts they have in keys."""

    def place(self, value: str, id: str, now: float) -> Shard:
        """The shard that a new entry goes to."""
        ...

    def places(self, value: str) -> tuple[Shard, ...]:
        """Every shard in which an entry with this value may lie, each once."""
        ...

    def all_places(self, is_wanted: Callable[[str], bool]) -> tuple[Shard, ...]:
        """Every shard in which an entry may lie whose value is wanted, each once."""
        ...


@dataclass(frozen=True, slots=True)
class FixedShards:
    """So many shards for ever; entries are spread by their ids, whatever their value."""

    number: int

    def __post_init__(self) -> None:
        if self.number < 1:
            raise InvalidValue(f"there cannot be {self.number} shards; choose 1 or more")

    def place(self, value: str, id: str, now: float) -> Shard:
        return Shard(jump_hash(stable_hash(id), self.number))

    def places(self, value: str) -> tuple[Shard, ...]:
        return tuple(map(Shard, range(self.number)))

    def all_places(self, is_wanted: Callable[[str], bool]) -> tuple[Shard, ...]:
        return self.places("")


@dataclass(frozen=True, slots=True)
class Epoch:
    """From `since` on (seconds since 1970), new entries are spread over so many shards."""

    shards: int
    since: float


@dataclass(frozen=True, slots=True)
class ShardMap:
    """The shards of one field: the epochs of all values, and those of each hot value.

    Without arguments it is what every field begins with, the shard 0 and nothing else.
    """

    epochs: tuple[Epoch, ...] = (Epoch(1, 0.0),)
    values: Mapping[str, tuple[Epoch, ...]] = field(default_factory=dict, hash=False)
    version: int = 0
    """Grows with the map; a stored map may be replaced only by one that grew from this version."""

    def __post_init__(self) -> None:
        if not self.epochs or not all(self.values.values()):
            raise InvalidValue("each level of a shard map has at least one epoch; leave out values that have none")
        for epochs in (self.epochs, *self.values.values()):
            _check(epochs)

    @property
    def shards(self) -> int:
        """How many shards there are, of all levels, also those that are not yet writable."""
        return _size(self.epochs) + sum(map(_size, self.values.values()))

    @property
    def changed(self) -> float:
        """When the last epoch becomes writable, or became."""
        return max(epochs[-1].since for epochs in (self.epochs, *self.values.values()))

    @property
    def lease(self) -> float:
        """Seconds for which a reader may use it."""
        return LEASE if self.version else FIRST_LEASE

    def shards_of(self, value: str | None = None) -> int:
        """How many shards the field level has, or the level of a value; 0 for a value without its own."""
        epochs = self.epochs if value is None else self.values.get(value)
        return _size(epochs) if epochs else 0

    def writable(self, now: float, value: str | None = None) -> int:
        """How many shards of the field level, or of a value's own, new entries are spread over."""
        if value is not None:
            return _writable(self.values.get(value, ()), now)
        # Before the first epoch there is the first: an entry has to go somewhere, whatever a clock says.
        return _writable(self.epochs, now) or self.epochs[0].shards

    def place(self, value: str, id: str, now: float) -> Shard:
        if own := self.writable(now, value):
            return Shard(jump_hash(stable_hash(id), own), value)
        return Shard(jump_hash(stable_hash(value), self.writable(now)))

    def places(self, value: str) -> tuple[Shard, ...]:
        key = stable_hash(value)
        buckets = dict.fromkeys(jump_hash(key, epoch.shards) for epoch in self.epochs)
        return (*map(Shard, buckets), *self._own(value))

    def all_places(self, is_wanted: Callable[[str], bool]) -> tuple[Shard, ...]:
        hot = (shard for value in self.values if is_wanted(value) for shard in self._own(value))
        return (*map(Shard, range(_size(self.epochs))), *hot)

    def _own(self, value: str) -> Iterable[Shard]:
        return (Shard(number, value) for number in range(self.shards_of(value)))

    # --- growing -------------------------------------------------------------------------------

    def grown(self, now: float, shards: int | None = None, values: Mapping[str, int] | None = None) -> ShardMap:
        """The map with more shards for the field, for values of it, or both, writable after the grace.

        It takes the place of this one only if that is still what is stored: compare `version`.
        """
        since = max(now + (GRACE if self.version else FIRST_GRACE), self.changed)
        own = dict(self.values)
        for value, number in (values or {}).items():
            own[value] = _extended(own.get(value, ()), number, since)
        epochs = self.epochs if shards is None else _extended(self.epochs, shards, since)
        return ShardMap(epochs, own, self.version + 1)

    # --- as plain data -------------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """Texts, numbers, lists and dicts only, to be stored; no value is a key of a dict, as it may be empty."""
        return {
            "version": self.version,
            "epochs": _plain(self.epochs),
            "values": [[value, _plain(epochs)] for value, epochs in self.values.items()],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> ShardMap:
        try:
            return cls(
                _epochs(plain["epochs"]),
                {value: _epochs(epochs) for value, epochs in plain["values"]},
                int(plain["version"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, InvalidValue) as error:
            raise InvalidItem(
                f"a stored shard map cannot be read: {error}; it was written by another program"
            ) from None


def _plain(epochs: tuple[Epoch, ...]) -> list[list[float]]:
    return [[epoch.shards, epoch.since] for epoch in epochs]


def _epochs(plain: Iterable[Iterable[Any]]) -> tuple[Epoch, ...]:
    return tuple(Epoch(int(shards), float(since)) for shards, since in plain)


def _check(epochs: tuple[Epoch, ...]) -> None:
    if epochs[0].shards < 1:
        raise InvalidValue(f"there cannot be {epochs[0].shards} shards; choose 1 or more")
    for before, after in pairwise(epochs):
        if after.shards <= before.shards or after.since < before.since:
            raise InvalidValue(f"shards only grow, and in the order of time; {after} cannot follow {before}")


def _extended(epochs: tuple[Epoch, ...], shards: int, since: float) -> tuple[Epoch, ...]:
    return (*epochs, Epoch(shards, since))


def _size(epochs: tuple[Epoch, ...]) -> int:
    return epochs[-1].shards


def _writable(epochs: tuple[Epoch, ...], now: float) -> int:
    """The shards of the newest epoch that may be written to; 0 if none may."""
    return next((epoch.shards for epoch in reversed(epochs) if epoch.since <= now), 0)


# --- hashes ------------------------------------------------------------------------------------


def stable_hash(text: str) -> int:
    """64 bits that are the same in every process, on every machine, in every version."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def jump_hash(key: int, buckets: int) -> int:
    """A bucket below `buckets`; of n more buckets, a key moves to each with the same chance, or not at all."""
    bucket, next_bucket = 0, 0
    while next_bucket < buckets:
        bucket = next_bucket
        key = (key * 2862933555777941757 + 1) & _MASK
        # In integers, so that no machine rounds otherwise than another.
        next_bucket = ((bucket + 1) << 31) // ((key >> 33) + 1)
    return bucket
