"""Decides from the heat of a field whether it needs more shards, and makes the grown map.

A partition of DynamoDB takes 1,000 write units per second, and at first a shard is in one partition. So a shard with
more than `Limits.high` of that is too hot. Then this module searches the cheapest map whose shards would all stay
below `Limits.target`, given the writes of each value. The map has

- more shards for all values, or
- shards of their own for the values that make a shard hot, or
- both; the one with the fewest shards in all is taken.

Values that already have shards get more in proportion to their writes. Writes of values that are not counted
separately are assumed to spread evenly; the measured load of a shard takes precedence, if there is one.

Size is another reason: a level has at least as many shards as its bytes need. Stored entries stay where they are.

Reads are no reason to add shards. Entries are not moved, so readers would still query the shard where they are; and
DynamoDB itself splits partitions that are read often, along their sort keys.

Every process may call this. If two processes grow the same map at the same time, both maps have the same `version`,
and the store accepts only the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import ceil, sqrt

from adjoin.dataclass import dataclass
from adjoin.sharding.heat import WINDOW, Heat, added
from adjoin.sharding.maps import LEASE, ShardMap, jump_hash, stable_hash

GB = 10**9


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a shard."""

    writes: float = 1000.0
    """Write units per second of one partition."""
    size: float = 10 * GB
    """Bytes of one partition."""
    target: float = 0.85
    """The share of `writes` that a new map plans for each shard, at most."""
    high: float = 0.95
    """The share of `writes` above which a shard is too hot."""
    most: int = 1000
    """The greatest number of shards of a field, so that maps stay small and readers do not query too many shards."""


LIMITS = Limits()
_OLD = 3
"""The age in windows after which a record says nothing about the present."""
_STEP = 1.15
"""The least factor by which a field grows, so that its history stays short: a reader queries a bucket per epoch."""
_WORTH = 0.12
"""The share of a shard that a value must fill to get a shard of its own. If smaller values make a shard hot together,
the field grows instead."""
_SATURATED, _PRESSURE = (0.95, 1.05), 1.5
"""If the load of a level is within this share of the limit of its shards, the shards probably hold writers back, and
the demand is assumed to be higher by the factor `_PRESSURE`. A higher share means that throttled writes were counted
too, so the load is already the demand."""


def considered(
    shards: ShardMap, heat: Heat, report: Heat, now: float, limits: Limits = LIMITS
) -> tuple[Heat, ShardMap | None]:
    """Returns what to store after a report: the record with the report added, and a new map if it should grow.

    The first report in a window finds the record of the window before complete, and decides from that.
    """
    return added(heat, report), grown(shards, heat, now, limits)


def grown(shards: ShardMap, heat: Heat, now: float, limits: Limits = LIMITS) -> ShardMap | None:
    """Returns the map with as many more shards as the heat of a finished window needs; None if it needs none."""
    age = now // WINDOW - heat.window
    # The present window is not complete, and an old one says nothing about the load now.
    if not 1 <= age <= _OLD:
        return None
    load = _Load.of(shards, heat, limits)
    own = load.more_for_values()
    field, isolated = load.more_for_field()
    field = max(field, ceil(heat.size / limits.size))
    values = {**own, **isolated}
    if field <= shards.shards_of() and not values:
        return None
    # It stays as it is: more shards would make each find too expensive.
    if field + sum({**load.own_shards, **values}.values()) > limits.most:
        return None
    return shards.grown(now, field if field > shards.shards_of() else None, values)


@dataclass(frozen=True)
class _Load:
    """The load on the shards of a map, in write units per second."""

    shards: ShardMap
    limits: Limits
    sizes: Mapping[str, int]
    own: Mapping[str, float]
    """The load by value, for values with shards of their own."""
    shared: Mapping[str, float]
    """The load by value, for the other values that were counted separately, highest first."""
    rest: float
    """The load of all values that were not counted separately."""
    largest_unknown: float
    """The greatest load that a value which was not counted separately can have."""
    measured: Mapping[int, float]
    """The measured load by shard of the field level; empty if the map has changed since."""

    @classmethod
    def of(cls, shards: ShardMap, heat: Heat, limits: Limits) -> _Load:
        highest_first = sorted(heat.values.items(), key=lambda each: (-each[1], each[0]))
        rates = {value: units / WINDOW for value, units in highest_first}
        own = {value: rate for value, rate in rates.items() if value in shards.values}
        shared = {value: rate for value, rate in rates.items() if value not in shards.values}
        rest = max(0.0, heat.units / WINDOW - sum(rates.values()))
        # Until their lease ended, writers may have used an older map, so measures of shards are not reliable.
        is_settled = heat.window * WINDOW >= shards.changed + LEASE
        measured = {shard: units / WINDOW for shard, units in heat.shards.items()} if is_settled else {}
        pressure = _pressure(sum(shared.values()) + rest, shards.shards_of(), limits)
        return cls(
            shards,
            limits,
            heat.sizes,
            {value: rate * _pressure(rate, shards.shards_of(value), limits) for value, rate in own.items()},
            {value: rate * pressure for value, rate in shared.items()},
            rest * pressure,
            pressure * min(shared.values(), default=0.0),
            {shard: rate * pressure for shard, rate in measured.items()},
        )

    @property
    def own_shards(self) -> dict[str, int]:
        return {value: self.shards.shards_of(value) for value in self.shards.values}

    def _needed(self, rate: float) -> int:
        return max(1, ceil(rate / (self.limits.target * self.limits.writes)))

    def more_for_values(self) -> dict[str, int]:
        """Returns the number of shards for each value with shards of its own that needs more of them."""
        more = {}
        for value, now in self.own_shards.items():
            needed = ceil(self.sizes.get(value, 0) / self.limits.size)
            rate = self.own.get(value, 0.0)
            if rate > now * self.limits.high * self.limits.writes:
                needed = max(needed, self._needed(rate))
            if needed > now:
                more[value] = needed
        return more

    def more_for_field(self) -> tuple[int, dict[str, int]]:
        """Returns the number of shards for the field level, and the values that need shards of their own."""
        now = self.shards.shards_of()
        if max(self._loads(now, self._buckets(now)).values()) <= self.limits.high * self.limits.writes:
            return now, {}
        # A greater number does not help: shards that are still too hot then are so because of single values.
        most = max(now, 2 * self._needed(sum(self.shared.values()) + self.rest))
        numbers = (now, *range(ceil(now * _STEP), max(most, ceil(now * _STEP)) + 1))
        # More shards for all values, or shards of their own for some: whatever takes the fewest shards in all.
        plans = [(number, self._isolated(number)) for number in numbers]
        return min(
            ((number, isolated) for number, isolated in plans if isolated is not None),
            key=lambda plan: (plan[0] + sum(plan[1].values()), plan[0]),
            default=(numbers[-1], {}),
        )

    @cached_property
    def _keys(self) -> dict[str, int]:
        return {value: stable_hash(value) for value in self.shared}

    def _buckets(self, number: int) -> dict[str, int]:
        """Returns the bucket of each value if the field level had this number of shards."""
        return {value: jump_hash(key, number) for value, key in self._keys.items()}

    def _loads(self, number: int, buckets: Mapping[str, int]) -> dict[int, float]:
        """Returns the load of each shard if the field level had this number of shards."""
        loads = dict.fromkeys(range(number), self._fair(number))
        for value, rate in self.shared.items():
            loads[buckets[value]] += rate
        if self.measured and number == self.shards.shards_of():
            # What was measured includes the values that were not counted separately, so it is better than an
            # estimate.
            loads |= self.measured
        return loads

    def _fair(self, number: int) -> float:
        """Returns a shard's share of the values that were not counted separately, plus one standard deviation."""
        spread = sqrt(self.rest * self.largest_unknown / 2 / number)
        return self.rest / number + spread

    def _isolated(self, number: int) -> dict[str, int] | None:
        """Returns the values that must get shards of their own if the field level has this number of shards.

        It is None if some shard would still be too hot.
        """
        buckets, most = self._buckets(number), self.limits.target * self.limits.writes
        loads, isolated = self._loads(number, buckets), {}
        for value, rate in self.shared.items():
            bucket = buckets[value]
            if loads[bucket] > most and rate >= _WORTH * most:
                loads[bucket] -= rate
                isolated[value] = self._needed(rate)
        return None if max(loads.values()) > most else isolated


def _pressure(rate: float, shards: int, limits: Limits) -> float:
    """Returns the factor by which the demand may be higher than the measured load."""
    low, high = _SATURATED
    return _PRESSURE if low <= rate / (shards * limits.writes) <= high else 1.0
