"""Heat: what processes count, when they report, and what their reports add up to."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import reduce
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjoin.errors import InvalidItem
from adjoin.sharding.heat import COUNTED, PAUSE, REPORT_AFTER, REPORTS, VALUES, WINDOW, Heat, HeatCounter, added
from adjoin.sharding.maps import Shard
from adjoin.values import decode, encode, item_size

counts = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 1000))
reports = st.builds(
    Heat,
    window=st.integers(0, 3),
    units=st.integers(0, 1000),
    shards=st.dictionaries(st.integers(0, 5), st.integers(0, 1000)),
    values=counts,
    size=st.integers(-1000, 1000),
    sizes=counts,
)


# --- the shared record -------------------------------------------------------------------------


@given(st.lists(reports, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_reports_add_up_in_any_order(each: list[Heat], random: Random) -> None:
    mixed = random.sample(each, len(each))
    assert reduce(added, mixed, Heat()) == reduce(added, each, Heat())


@given(reports, reports, reports)
def test_merging_is_associative(a: Heat, b: Heat, c: Heat) -> None:
    left, right = added(added(a, b), c), added(a, added(b, c))
    assert replace(left, version=0) == replace(right, version=0)


@given(reports)
def test_records_are_stored_as_plain_data(heat: Heat) -> None:
    assert Heat.from_plain(json.loads(json.dumps(heat.to_plain()))) == heat
    assert Heat.from_plain(decode(encode(heat.to_plain()))) == heat


def test_a_stored_record_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidItem, match="a stored heat record cannot be read"):
        Heat.from_plain({"window": "x"})


def test_a_record_stays_small_whatever_is_written() -> None:
    heat = Heat()
    for number in range(20):
        counter = HeatCounter()
        for shard in range(1000):
            value = f"{number:02}-{shard:04}-" + "x" * (shard % 500)
            counter.record(Shard(shard), value, 9999, 10**9)
            counter.record(Shard(shard, value), value, 9999, 10**9)
        heat = added(heat, counter.report(5.0))
    assert len(heat.values) > 10
    assert item_size({"heat": encode(heat.to_plain())}) < 4096


def test_a_new_window_begins_with_nothing_but_the_bytes() -> None:
    old = Heat(4, 100, {0: 100}, {"a": 90}, 1000, {"b": 50}, version=7)
    new = added(old, Heat(5, 10, {1: 10}, {"c": 10}, 1, {"b": 2}))
    assert new == Heat(5, 10, {1: 10}, {"c": 10}, 1001, {"b": 52}, version=8)
    late = added(new, Heat(4, 999, {0: 999}, {"a": 999}, 3))
    assert late == replace(new, size=1004, version=9)


def test_a_window_is_over_when_the_next_has_begun() -> None:
    heat = Heat(4)
    assert not heat.is_over(5 * WINDOW - 0.1)
    assert heat.is_over(5 * WINDOW)


# --- one process -------------------------------------------------------------------------------


def test_a_small_program_never_reports() -> None:
    counter = HeatCounter()
    for number in range(REPORT_AFTER - 1):
        counter.record(Shard(0), str(number), 1)
        assert not counter.is_due(number * 100.0)
    counter.record(Shard(0), "a", 1)
    assert counter.is_due(0.0)


def test_a_report_has_what_came_since_the_last() -> None:
    counter = HeatCounter()
    counter.record(Shard(0), "a", 3, 300)
    counter.record(Shard(2), "b", 1, 100)
    counter.record(Shard(1, "a"), "a", 2, 50)
    assert counter.report(25.0) == Heat(2, 6, {0: 3, 2: 1}, {"a": 5, "b": 1}, 400, {"a": 50})
    assert counter.report(25.0) == Heat(2)


def test_a_throttle_is_reported_at_once_but_not_every_one() -> None:
    counter = HeatCounter()
    counter.record(Shard(0), "a", 1, 100, is_throttled=True)
    assert counter.is_due(10.0)
    assert counter.report(10.0) == Heat(1, 1, {0: 1}, {"a": 1})
    counter.record(Shard(0), "a", 1, is_throttled=True)
    assert not counter.is_due(10.0 + PAUSE / 2)
    assert counter.is_due(10.0 + PAUSE)


def test_under_load_a_process_reports_more_rarely() -> None:
    counter = HeatCounter()
    counter.heard(Heat(0, 500_000), 10.0)
    counter.record(Shard(0), "a", 500_000 // REPORTS - 1)
    assert not counter.is_due(10.0)
    counter.record(Shard(0), "a", 1)
    assert counter.is_due(10.0)


def test_an_unfinished_window_says_nothing_about_the_load() -> None:
    counter = HeatCounter()
    counter.heard(Heat(1, 500_000), 15.0)
    counter.record(Shard(0), "a", REPORT_AFTER)
    assert counter.is_due(15.0)


def test_frequent_values_are_found_among_any_number_of_rare_ones() -> None:
    counter, random = HeatCounter(), Random(1)
    total = 40_000
    for number in range(total):
        counter.record(Shard(0), random.choice(["hot", "warm", "hot", f"rare-{number}"]), 1)
    values = counter.report(0.0).values
    assert list(values)[:2] == ["hot", "warm"]
    assert total / 2 - total / COUNTED - 500 < values["hot"] < total / 2 + 500
    assert len(values) <= VALUES
    assert max(units for value, units in values.items() if value.startswith("rare")) == 1
