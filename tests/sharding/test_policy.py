"""The policy: which heat makes which map grow, and how."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin.sharding.heat import WINDOW, Heat
from adjoin.sharding.maps import FIRST_GRACE, GRACE, LEASE, Epoch, ShardMap, jump_hash, stable_hash
from adjoin.sharding.policy import GB, LIMITS, Limits, considered, grown
from tests.shares import examples

NOW = 1000.0
LAST = int(NOW // WINDOW) - 1
"""The window that is just over."""


def heat_of(rates: dict[str, float], shards: ShardMap, rest: float = 0.0, window: int = LAST) -> Heat:
    """A record as writers with this map would have made it, with so many units a second of each value."""
    units = {value: round(rate * WINDOW) for value, rate in rates.items()}
    field = {value: count for value, count in units.items() if value not in shards.values}
    loads: dict[int, int] = {}
    for value, count in field.items():
        bucket = jump_hash(stable_hash(value), shards.shards_of())
        loads[bucket] = loads.get(bucket, 0) + count
    return Heat(window, sum(units.values()) + round(rest * WINDOW), loads, units)


def test_what_is_cool_stays_as_it_is() -> None:
    assert grown(ShardMap(), heat_of({"a": 500, "b": 390}, ShardMap()), NOW) is None


def test_an_unfinished_or_old_window_decides_nothing() -> None:
    hot = {"a": 5000.0}
    assert grown(ShardMap(), heat_of(hot, ShardMap()), NOW) is not None
    assert grown(ShardMap(), heat_of(hot, ShardMap(), window=LAST + 1), NOW) is None
    assert grown(ShardMap(), heat_of(hot, ShardMap(), window=LAST - 5), NOW) is None


def test_one_hot_value_gets_shards_of_its_own() -> None:
    new = grown(ShardMap(), heat_of({"a": 5000.0, "b": 10.0}, ShardMap()), NOW)
    assert new == ShardMap((Epoch(1, 0.0),), {"a": (Epoch(6, NOW + FIRST_GRACE),)}, 1)


def test_many_cool_values_get_more_shards_together() -> None:
    new = grown(ShardMap(), heat_of({}, ShardMap(), rest=5000.0), NOW)
    assert new == ShardMap((Epoch(1, 0.0), Epoch(6, NOW + FIRST_GRACE)), {}, 1)


def test_a_value_that_needs_more_than_its_shards_gets_more() -> None:
    shards = ShardMap().grown(0.0, values={"a": 2})
    assert grown(shards, heat_of({"a": 1700.0}, shards), NOW) is None
    new = grown(shards, heat_of({"a": 4000.0}, shards), NOW)
    assert new is not None
    assert new.values["a"] == (Epoch(2, FIRST_GRACE), Epoch(5, NOW + GRACE))
    assert new.epochs == shards.epochs


def test_where_writers_are_held_back_more_is_assumed() -> None:
    """Refused writes that nobody counts cannot be seen: a level that takes all it can may be asked for more."""
    shards = ShardMap().grown(0.0, shards=4, values={"a": 2})
    held_back = grown(shards, heat_of({"a": 2000.0}, shards, rest=4000.0), NOW)
    assert held_back is not None
    assert (held_back.shards_of(), held_back.shards_of("a")) == (8, 4)
    counted = grown(shards, heat_of({"a": 2200.0}, shards, rest=4400.0), NOW)
    assert counted is not None
    assert (counted.shards_of(), counted.shards_of("a")) == (6, 3)


def test_a_value_gets_its_own_shard_only_if_it_fills_a_part_of_it() -> None:
    """Where many small values come together, the field grows."""
    small = {f"v{number}": 50.0 for number in range(40)}
    new = grown(ShardMap(), heat_of(small, ShardMap()), NOW)
    assert new is not None
    assert not new.values
    assert new.shards_of() >= 3


def test_one_shard_that_is_hot_by_chance_loses_its_largest_values_only() -> None:
    shards = ShardMap().grown(0.0, shards=20)
    bucket = [f"v{number}" for number in range(2000) if jump_hash(stable_hash(f"v{number}"), 20) == 3]
    rates = dict.fromkeys(bucket[:6], 200.0)
    new = grown(shards, heat_of(rates, shards), NOW)
    assert new is not None
    assert new.epochs == shards.epochs
    assert sorted(new.values.values()) == [(Epoch(1, NOW + GRACE),)] * 2


def test_what_was_measured_under_another_map_does_not_count() -> None:
    """Counts by shard are those of the shards that were written to; rates of values are true under any map."""
    shards = ShardMap().grown(NOW - FIRST_GRACE, shards=8)
    settled = NOW + WINDOW + LEASE
    measured = Heat(int(NOW // WINDOW), 50_000, {0: 50_000}, {})
    assert grown(shards, measured, NOW + WINDOW) is None
    assert grown(shards, Heat(int(settled // WINDOW), 50_000, {0: 50_000}, {}), settled + WINDOW) is not None


def test_size_is_a_reason_too() -> None:
    shards = ShardMap().grown(0.0, values={"a": 1})
    new = grown(shards, Heat(LAST, 1, size=25 * GB, sizes={"a": 11 * GB}), NOW)
    assert new is not None
    assert (new.shards_of(), new.shards_of("a")) == (3, 2)
    assert grown(new, Heat(LAST, 1, size=25 * GB, sizes={"a": 11 * GB}), NOW) is None


def test_there_is_a_bound() -> None:
    assert grown(ShardMap(), heat_of({"a": 50_000.0}, ShardMap()), NOW, Limits(most=20)) is None


def test_the_first_report_of_a_window_decides_about_the_one_before() -> None:
    report = Heat(LAST + 1, 10)
    heat, new = considered(ShardMap(), heat_of({"a": 5000.0}, ShardMap()), report, NOW)
    assert (heat.window, heat.units, heat.version) == (LAST + 1, 10, 1)
    assert new is not None
    assert considered(new, heat, report, NOW) == (Heat(LAST + 1, 20, version=2), None)


@pytest.mark.parametrize("skew", [0.0, 0.5, 1.0, 1.5])
@pytest.mark.parametrize("rate", [1_500, 10_000, 50_000])
def test_shards_are_cool_enough_and_few(rate: int, skew: float) -> None:
    """Zipf-distributed values, all of them known: one step leads from nothing to a map that fits."""
    weights = [1 / rank**skew for rank in range(1, 101)]
    rates = {f"value-{rank}": rate * weight / sum(weights) for rank, weight in enumerate(weights)}
    new = grown(ShardMap(), heat_of(rates, ShardMap()), NOW)
    assert new is not None
    assert new.shards <= 2 * -(-rate // 1000)
    assert max(loads_of(new, rates)) <= LIMITS.target * LIMITS.writes
    assert grown(new, heat_of(rates, new, window=LAST + 9), NOW + 9 * WINDOW) is None


def loads_of(shards: ShardMap, rates: dict[str, float]) -> list[float]:
    """Units a second of each shard, ids being spread evenly."""
    field = [0.0] * shards.shards_of()
    for value, rate in rates.items():
        if value not in shards.values:
            field[jump_hash(stable_hash(value), len(field))] += rate
    return [*field, *(rates.get(value, 0.0) / shards.shards_of(value) for value in shards.values)]


@settings(max_examples=examples(10), deadline=None)
@given(st.randoms(use_true_random=False))
def test_growing_ends(random: Random) -> None:
    """Whatever is written, as long as it goes on as it is, a map that has grown a few times fits."""
    rates = {f"v{number}": random.choice([1, 10, 100, 1000, 3000]) * random.random() for number in range(100)}
    shards, now = ShardMap(), NOW
    for _ in range(6):
        new = grown(shards, heat_of(rates, shards, window=int(now // WINDOW) - 1), now)
        if new is None:
            break
        shards, now = new, now + 100
    assert new is None
    assert max(loads_of(shards, rates)) <= LIMITS.high * LIMITS.writes
