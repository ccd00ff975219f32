"""Which shards an indexed field has, to which one a new entry goes, and in which ones entries may be.

An overloaded index has one partition key per class, field and shard. A `ShardMap` says which shards a field has. It
only grows:

- At the **field level**, all values share the shards 0 … n-1. A value belongs to one of them, its bucket.
- At the **value level**, a hot value has shards of its own, over which its entries are spread by their ids.

Each level has a history of epochs: "from this time on, this number of shards". The newest writable epoch decides
where an entry is written, and the entry stays there: when a map grows, nothing is rewritten. So a reader queries
every shard that any epoch may have chosen. Buckets come from jump consistent hashing (Lamping and Veach, 2014): when
shards are added, a value keeps its bucket or moves to a new one, never to another old one. So a reader has few
shards to query.

**The contract of the lease.** It keeps readers from missing entries without a lock, as leases do for schemas in
F1 (Rae et al., "Online, Asynchronous Schema Change in F1", 2013):

1. A process uses a map for at most `LEASE` seconds after it read it, or `FIRST_LEASE` if the map has never grown.
2. An epoch becomes writable `GRACE` seconds after it is announced, by the clock of each writer; the first one after
   `FIRST_GRACE`. None becomes writable before the one that it follows.
3. Maps only grow, and a grown map replaces only the map from which it grew (`version` shows that).

Because of 1 and 2, every reader knows a shard before anybody writes to it, as long as clocks differ by no more than
`GRACE - LEASE` seconds. Because of 3, a newer map includes everything in an older one, so a writer with an older
map does no harm. An entry is in one shard at a time, because its item has one index key.

`FixedShards` has a fixed number of shards and no map: entries are spread over all shards by id, and a reader queries
all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Protocol

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidItem, InvalidValue

LEASE, FIRST_LEASE = 30.0, 120.0
"""Seconds for which a map may be used before it is read again: one that has grown, and one that never has.

Most fields never need a second shard. The longer first lease spares their readers most reads of the map.
"""
GRACE, FIRST_GRACE = 45.0, 150.0
"""Seconds from the announcement of an epoch until it is writable: for later epochs, and for the first one."""

_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard of a field: its number, and the value if it is a shard of a hot value.

    Its text is "3", or "3#" followed by the value. No two shards have the same text.
    """

    number: int
    value: str | None = None

    def __str__(self) -> str:
        return str(self.number) if self.value is None else f"{self.number}#{self.value}"


class Sharding(Protocol):
    """Which shard an entry goes to, and in which shards it may be. Values and ids are in the form that keys have."""

    def place(self, value: str, id: str, now: float) -> Shard:
        """Returns the shard for a new entry."""
        ...

    def places(self, value: str) -> tuple[Shard, ...]:
        """Returns all shards in which an entry with this value may be, each once."""
        ...

    def all_places(self, is_wanted: Callable[[str], bool]) -> tuple[Shard, ...]:
        """Returns all shards in which an entry with a wanted value may be, each once."""
        ...


@dataclass(frozen=True, slots=True)
class FixedShards:
    """A fixed number of shards. Entries are spread by their ids, not by their values."""

    number: int

    def __post_init__(self) -> None:
        if self.number < 1:
            raise InvalidValue(f"number of shards must be at least 1, got {self.number}")

    def place(self, value: str, id: str, now: float) -> Shard:
        return Shard(jump_hash(stable_hash(id), self.number))

    def places(self, value: str) -> tuple[Shard, ...]:
        return tuple(map(Shard, range(self.number)))

    def all_places(self, is_wanted: Callable[[str], bool]) -> tuple[Shard, ...]:
        return self.places("")


@dataclass(frozen=True, slots=True)
class Epoch:
    """From `since` on (in seconds since 1970), new entries are spread over `shards` shards."""

    shards: int
    since: float


@dataclass(frozen=True, slots=True)
class ShardMap:
    """The shards of one field: the epochs of the field level, and those of each hot value.

    Without arguments, it is the map with which every field begins: only the shard 0.
    """

    epochs: tuple[Epoch, ...] = (Epoch(1, 0.0),)
    values: Mapping[str, tuple[Epoch, ...]] = field(default_factory=dict, hash=False)
    version: int = 0
    """Increases when the map grows. A stored map may be replaced only by one that grew from this version."""

    def __post_init__(self) -> None:
        if not self.epochs or not all(self.values.values()):
            raise InvalidValue("each level of a shard map must have at least one epoch; leave out values without one")
        for epochs in (self.epochs, *self.values.values()):
            _check(epochs)

    @property
    def shards(self) -> int:
        """The number of shards on all levels, including those that are not yet writable."""
        return _size(self.epochs) + sum(map(_size, self.values.values()))

    @property
    def changed(self) -> float:
        """The time at which the last epoch becomes or became writable."""
        return max(epochs[-1].since for epochs in (self.epochs, *self.values.values()))

    @property
    def lease(self) -> float:
        """Seconds for which a process may use the map after reading it."""
        return LEASE if self.version else FIRST_LEASE

    def shards_of(self, value: str | None = None) -> int:
        """Returns the number of shards at the field level, or of a value; 0 for a value without shards of its own."""
        epochs = self.epochs if value is None else self.values.get(value)
        return _size(epochs) if epochs else 0

    def writable(self, now: float, value: str | None = None) -> int:
        """Returns the number of shards over which new entries are spread, at the field level or of a value."""
        if value is not None:
            return _writable(self.values.get(value, ()), now)
        # If a wrong clock shows a time before the first epoch, use the first: the entry has to go somewhere.
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
        """Returns the map with more shards for the field, for some values, or both; they are writable after the grace.

        The caller must write it on the condition that the stored map still has the `version` of this one.
        """
        since = max(now + (GRACE if self.version else FIRST_GRACE), self.changed)
        own = dict(self.values)
        for value, number in (values or {}).items():
            own[value] = _extended(own.get(value, ()), number, since)
        epochs = self.epochs if shards is None else _extended(self.epochs, shards, since)
        return ShardMap(epochs, own, self.version + 1)

    # --- as plain data -------------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """Returns plain data to be stored. A value may be empty text, so values are never keys of a dict."""
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
        raise InvalidValue(f"number of shards must be at least 1, got {epochs[0].shards}")
    for before, after in pairwise(epochs):
        if after.shards <= before.shards or after.since < before.since:
            raise InvalidValue(
                f"an epoch must have more shards than the one before, and not be earlier; got {after} after {before}"
            )


def _extended(epochs: tuple[Epoch, ...], shards: int, since: float) -> tuple[Epoch, ...]:
    return (*epochs, Epoch(shards, since))


def _size(epochs: tuple[Epoch, ...]) -> int:
    return epochs[-1].shards


def _writable(epochs: tuple[Epoch, ...], now: float) -> int:
    """Returns the number of shards of the newest writable epoch; 0 if none is writable."""
    return next((epoch.shards for epoch in reversed(epochs) if epoch.since <= now), 0)


# --- hashes ------------------------------------------------------------------------------------


def stable_hash(text: str) -> int:
    """Returns a hash of 64 bits that is the same in every process, machine and version of Python."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def jump_hash(key: int, buckets: int) -> int:
    """Returns a bucket from 0 to `buckets` - 1. When buckets are added, a key stays or moves to one of the new ones."""
    bucket, next_bucket = 0, 0
    while next_bucket < buckets:
        bucket = next_bucket
        key = (key * 2862933555777941757 + 1) & _MASK
        # The paper uses floats. Integers give the same result on every machine.
        next_bucket = ((bucket + 1) << 31) // ((key >> 33) + 1)
    return bucket
