"""Whether a field should have more shards, and where: from what was written to it, to a map that grew.

A partition of DynamoDB takes 1,000 write units a second, and a shard lies in one at first. So a shard that takes
more than `Limits.high` of that is too hot. Then the cheapest map is looked for whose shards would all stay below
`Limits.target`, by what each value was written:

- with more shards for all values, any number of them, or
- with shards of their own for the values that make a shard hot, or
- both; whichever needs the fewest shards in all.

Where values have shards already, more are added in proportion. For what is not known value by value, a fair share
is assumed, and what is measured in a shard takes precedence where there is a measure of it.

Size is a reason too: a level has at least as many shards as its bytes need. What is stored stays where it is.

Reads are none. Entries are not moved, so whoever reads them goes on asking the shard they lie in; DynamoDB itself
splits partitions that are read much, along their sort keys.

Everybody may call this: two who grow one map at once make two maps of the same `version`, of which the store takes
the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt

from adjoin.sharding.heat import WINDOW, Heat, added
from adjoin.sharding.maps import LEASE, ShardMap, jump_hash, stable_hash

GB = 10**9


@dataclass(frozen=True, slots=True)
class Limits:
    """What a shard may take."""

    writes: float = 1000.0
    """Write units a second of one partition."""
    size: float = 10 * GB
    """Bytes of one partition."""
    target: float = 0.85
    """The share of `writes` up to which shards are planned."""
    high: float = 0.95
    """The share of `writes` above which something is done."""
    most: int = 1000
    """Shards in all, so that a map stays small and a reader ends."""


LIMITS = Limits()
_OLD = 3
"""Windows after which a record tells nothing about now."""
_STEP = 1.15
"""By how much a field grows at least, so that its history stays short: a reader asks for every step."""
_WORTH = 0.12
"""The share of a shard that a value must fill to be worth one of its own; where lesser ones come together by chance,
the field grows."""
_SATURATED, _PRESSURE = (0.95, 1.05), 1.5
"""At such a share of what its shards take, a level is likely to be held back by them, and so much more is assumed. A
higher share means that refused writes were counted too, so that all that is asked for is known."""


def considered(
    shards: ShardMap, heat: Heat, report: Heat, now: float, limits: Limits = LIMITS
) -> tuple[Heat, ShardMap | None]:
    """What to store after a report: the record with it, and a map if it should grow.

    The first report of a window closes the one before, which is what the map is decided from.
    """
    return added(heat, report), grown(shards, heat, now, limits)


def grown(shards: ShardMap, heat: Heat, now: float, limits: Limits = LIMITS) -> ShardMap | None:
    """The map with as many more shards as the heat of a finished window asks for; None if it asks for none."""
    age = now // WINDOW - heat.window
    if not 1 <= age <= _OLD:
        return None
    load = _Load.of(shards, heat, limits)
    own = load.more_for_values()
    field, isolated = load.more_for_field()
    field = max(field, ceil(heat.size / limits.size))
    values = {**own, **isolated}
    if field <= shards.shards_of() and not values:
        return None
    if field + sum({**load.own_shards, **values}.values()) > limits.most:
        return None
    return shards.grown(now, field if field > shards.shards_of() else None, values)


@dataclass(frozen=True)
class _Load:
    """What is asked of the shards of a map, in units a second."""

    shards: ShardMap
    limits: Limits
    sizes: Mapping[str, int]
    own: Mapping[str, float]
    """By value, of those with shards of their own."""
    shared: Mapping[str, float]
    """By value, of the others that are known, the highest first."""
    rest: float
    """Of values that are not known."""
    largest_unknown: float
    """What a value may have at most without being known."""
    measured: Mapping[int, float]
    """By shard of the field level; empty if the map changed since."""

    @classmethod
    def of(cls, shards: ShardMap, heat: Heat, limits: Limits) -> _Load:
        highest_first = sorted(heat.values.items(), key=lambda each: (-each[1], each[0]))
        rates = {value: units / WINDOW for value, units in highest_first}
        own = {value: rate for value, rate in rates.items() if value in shards.values}
        shared = {value: rate for value, rate in rates.items() if value not in shards.values}
        rest = max(0.0, heat.units / WINDOW - sum(rates.values()))
        # Writers may have used an older map until their lease was over.
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
        """How many shards the values should have that have their own, where that is more than they have."""
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
        """How many shards the field should have, and which values shards of their own, if a shard is too hot."""
        now = self.shards.shards_of()
        if max(self._loads(now, self._buckets(now)).values()) <= self.limits.high * self.limits.writes:
            return now, {}
        # More than that many do not help: what is too hot then is single values.
        most = max(now, 2 * self._needed(sum(self.shared.values()) + self.rest))
        numbers = (now, *range(ceil(now * _STEP), max(most, ceil(now * _STEP)) + 1))
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
        """In which of so many shards of the field level each value would be."""
        return {value: jump_hash(key, number) for value, key in self._keys.items()}

    def _loads(self, number: int, buckets: Mapping[str, int]) -> dict[int, float]:
        """What each shard of the field level would take if there were so many."""
        loads = dict.fromkeys(range(number), self._fair(number))
        for value, rate in self.shared.items():
            loads[buckets[value]] += rate
        if self.measured and number == self.shards.shards_of():
            loads |= self.measured
        return loads

    def _fair(self, number: int) -> float:
        """What a shard gets of the values that are not known, and a standard deviation of it."""
        spread = sqrt(self.rest * self.largest_unknown / 2 / number)
        return self.rest / number + spread

    def _isolated(self, number: int) -> dict[str, int] | None:
        """The values that must leave so many shards for all of them to be cool enough; None if that does not do."""
        buckets, most = self._buckets(number), self.limits.target * self.limits.writes
        loads, isolated = self._loads(number, buckets), {}
        for value, rate in self.shared.items():
            bucket = buckets[value]
            if loads[bucket] > most and rate >= _WORTH * most:
                loads[bucket] -= rate
                isolated[value] = self._needed(rate)
        return None if max(loads.values()) > most else isolated


def _pressure(rate: float, shards: int, limits: Limits) -> float:
    """By how much more may be asked for than is seen."""
    low, high = _SATURATED
    return _PRESSURE if low <= rate / (shards * limits.writes) <= high else 1.0
