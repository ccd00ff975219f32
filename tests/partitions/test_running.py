"""Workloads against the model: made ones in small, recorded ones exactly."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from statistics import mean, pvariance
from typing import Any

import pytest

from adjoin.errors import InvalidValue
from adjoin.requests import BatchWrite, Delete, DescribeTable, Get, Put, Query, SortCondition, TransactWrite
from adjoin.sharding.maps import FIRST_GRACE, LEASE, Shard
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition
from benchmarks.partitions.partitions import Rules
from benchmarks.partitions.placing import Adaptive, Fixed, placing_of
from benchmarks.partitions.running import replay, simulate
from benchmarks.partitions.workloads import Zipf, lines_of, poisson, read_log

STRICT = Rules(burst=0)
SMALL = Zipf(writes=5000, seconds=240, values=100, ramp=0)


# --- made --------------------------------------------------------------------------------------


def test_a_single_partition_takes_its_thousand_and_no_more() -> None:
    outcome = simulate(SMALL, "single", warm_up=120, rules=STRICT)
    assert outcome.throttled == pytest.approx(0.8, abs=0.005)
    assert outcome.write_units == pytest.approx(2000, rel=0.001)
    assert (outcome.shards, outcome.ideal) == (1, 5)
    assert outcome.shards_a_find == pytest.approx(1)
    assert outcome.dollars_a_month == pytest.approx(2000 * 2_592_000 * 0.625 / 1e6, rel=0.001)
    assert outcome.hottest[0].space == "index"
    assert outcome.hottest[0].refused == pytest.approx(0.8, abs=0.005)
    assert len(outcome.minutes) == 4


def test_adaptive_shards_are_cool_and_few() -> None:
    """Partitions split quickly here, so that what is left is the sharding's own."""
    rules = Rules(burst=0, sustained=20, splitting=10)
    outcome = simulate(replace(SMALL, seconds=480), "adaptive", warm_up=420, rules=rules)
    assert outcome.throttled < 0.001
    assert outcome.minutes[0] > 0.3
    assert outcome.shards is not None
    assert outcome.shards <= 2 * outcome.ideal
    assert outcome.shards_a_find is not None
    assert outcome.shards_a_find < outcome.shards


def test_an_index_over_targets_is_short_of_units_unless_its_targets_have_shards() -> None:
    """The first value gets 19 % of 20,000 writes, and all of them arrive at one node."""
    rules, workload = Rules(burst=0), replace(SMALL, writes=20_000, seconds=60)
    alone = simulate(workload, "fixed:64", warm_up=10, rules=rules)
    single = simulate(workload, "fixed:64", targets="single", warm_up=10, rules=rules)
    assert single.throttled > alone.throttled + 0.1
    assert single.hottest[0].space == "targets"
    assert single.sharding == "fixed:64, targets single"
    spread = simulate(workload, "fixed:64", targets="fixed:16", warm_up=10, rules=rules)
    assert spread.throttled < alone.throttled + 0.03
    assert spread.partitions > alone.partitions
    # Each write has an entry in both indexes.
    assert spread.write_units == pytest.approx(3 * spread.asked * (1 - spread.throttled), rel=0.01)


def test_parts_of_a_second_add_up_to_the_rate() -> None:
    for sharding in ("single", "fixed:8", "adaptive"):
        for targets in ("single", "fixed:4", "fixed:100"):
            made = Zipf(writes=3000, seconds=40, values=50, ramp=0)
            outcome = simulate(made, sharding, targets=targets, warm_up=0)
            assert outcome.asked == pytest.approx(3000, rel=0.02), (sharding, targets)


def test_targets_have_a_number_of_shards_in_their_keys() -> None:
    with pytest.raises(InvalidValue, match="targets cannot have 'adaptive' shards"):
        simulate(SMALL, "single", targets="adaptive")
    with pytest.raises(InvalidValue, match="fixed:N"):
        simulate(SMALL, "single", targets="fixed:0")


def test_the_same_seed_gives_the_same_outcome() -> None:
    short = Zipf(writes=2000, seconds=30, values=20)
    assert simulate(short, "adaptive", warm_up=10) == simulate(short, "adaptive", warm_up=10)


def test_finds_are_read_from_every_shard_they_ask() -> None:
    workload = Zipf(writes=100, reads=1000, seconds=20, values=10, ramp=0)
    outcome = simulate(workload, "fixed:4", warm_up=5)
    assert outcome.read_units == pytest.approx(2000, rel=0.05)


def test_a_fresh_table_holds_everything_back() -> None:
    workload = Zipf(writes=40_000, seconds=20, values=10, ramp=0)
    assert simulate(workload, "fixed:64", warm_up=5, is_fresh=True).throttled == pytest.approx(0.9, abs=0.02)
    assert simulate(workload, "fixed:64", warm_up=5).throttled == 0.0


@pytest.mark.parametrize("rate", [0.5, 20.0, 500.0])
def test_arrivals_are_poisson_distributed(rate: float) -> None:
    random = Random(1)
    counts = [poisson(random, rate) for _ in range(4000)]
    assert mean(counts) == pytest.approx(rate, rel=0.05)
    assert pvariance(counts) == pytest.approx(rate, rel=0.1)


@pytest.mark.parametrize("wrong", [{"values": 0}, {"writes": -1}, {"skew": -0.1}])
def test_a_workload_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match="must be at least"):
        Zipf(**wrong)


# --- placing -----------------------------------------------------------------------------------


def test_writers_use_their_map_no_longer_than_the_lease() -> None:
    placing = Adaptive(4)
    placing.begin(0.0)
    placing.stored = placing.stored.grown(-1000.0, values={"a": 2})
    learned: dict[int, float] = {}
    for second in range(1, int(LEASE) + 2):
        placing.begin(float(second))
        for writer in range(4):
            if placing.place(writer, "a", "1", 1000.0).value == "a":
                learned.setdefault(writer, second)
    assert len(learned) == 4
    assert len(set(learned.values())) > 1
    assert max(learned.values()) <= LEASE


def test_spreads_are_those_of_the_real_code() -> None:
    assert len(Fixed("fixed:8", 8).spread(0, "a", 0.0)) == 8
    placing = Adaptive(1)
    assert placing.spread(0, "a", 0.0) == ((Shard(0), 1.0),)
    placing.stored = placing.stored.grown(0.0, values={"a": 3})
    placing.begin(FIRST_GRACE)
    shares = placing.spread(0, "a", FIRST_GRACE)
    assert [shard for shard, _ in shares] == [Shard(0, "a"), Shard(1, "a"), Shard(2, "a")]
    assert sum(share for _, share in shares) == pytest.approx(1)


@pytest.mark.parametrize("name", ["", "double", "fixed", "fixed:0", "fixed:x", "adaptive:3"])
def test_an_unknown_sharding_is_refused(name: str) -> None:
    with pytest.raises(InvalidValue, match="choose single, adaptive or fixed:N"):
        placing_of(name, 1)


# --- recorded ----------------------------------------------------------------------------------


def log_of(lines: Iterable[dict[str, Any]]) -> list[str]:
    return [json.dumps(line) for line in lines]


def test_a_log_with_keys_is_replayed_as_it_is() -> None:
    """1,500 units a second to one partition key of an index, and as many writes that have no entry."""
    entries = [{"index": "GSI1", "partition": "hot", "sort": "a", "writes": 150}]
    lines = [{"at": at / 10, "key": f"PERSON#{at}", "entries": some} for at in range(100) for some in (entries, [])]
    outcome = replay(read_log(log_of(lines)), "single", rules=STRICT, warm=(100_000, 0))
    assert outcome.throttled == pytest.approx(1 / 6, abs=0.001)
    assert outcome.hottest[0].keys == "hot"


def test_a_log_with_fields_is_placed_by_the_sharding() -> None:
    lines = [
        {
            "at": at / 20,
            "key": f"P{at}",
            "entries": [{"field": "skill", "value": "python", "id": f"P{at}", "writes": 100}],
        }
        for at in range(6000)
    ] + [{"at": 299.99, "field": "skill", "value": "python", "reads": 0.5}]
    single, fixed, adaptive = (
        replay(read_log(log_of(lines)), name, rules=STRICT, warm=(100_000, 0), warm_up=230)
        for name in ("single", "fixed:4", "adaptive")
    )
    assert single.throttled == pytest.approx(0.5, abs=0.01)
    assert fixed.shards == 4
    assert fixed.throttled < 0.1
    assert adaptive.throttled < 0.1
    assert adaptive.shards is not None
    assert 3 <= adaptive.shards <= 4
    assert fixed.read_units > single.read_units


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1 of the log cannot be read"),
        ('{"key": "a"}', "line 1 of the log cannot be read: KeyError"),
        ('{"at": 1, "reads": 1}', 'either a "partition" or a "field"'),
        ('{"at": 1, "key": "a"}\n{"at": 0, "key": "a"}', "line 2 of the log is earlier"),
    ],
)
def test_a_line_that_is_none_is_refused(line: str, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        list(read_log(line.splitlines()))


S = "S"
TABLE = TableDefinition(
    "T",
    KeyAttribute("PK"),
    KeyAttribute("SK"),
    indexes=(IndexDefinition("GSI1", KeyAttribute("GPK"), KeyAttribute("GSK"), Projection()),),
)
ITEM = {"PK": {S: "P1"}, "SK": {S: "a"}, "GPK": {S: "skill#0"}, "GSK": {S: "python#P1"}, "text": {S: "x" * 1500}}
KEY = {"PK": {S: "P1"}, "SK": {S: "a"}}


def test_requests_become_lines() -> None:
    put = {
        "at": 2.0, "key": "P1", "writes": 2.0, "size": 1535,
        "entries": [{"partition": "skill#0", "sort": "python#P1", "index": "GSI1", "writes": 2.0}],
    }  # fmt: skip
    (line,) = lines_of(Put("T", ITEM), TABLE, 2.0)
    put["size"] = line["size"]
    assert line == put
    assert lines_of(Delete("T", KEY), TABLE, 1.0) == [{"at": 1.0, "key": "P1", "writes": 1.0}]
    assert lines_of(Get("T", KEY, consistent=True), TABLE, 1.0) == [{"at": 1.0, "partition": "P1", "reads": 1.0}]
    query = Query("T", ("GPK", {S: "skill#0"}), SortCondition("GSK", "begins_with", ({S: "py"},)), "GSI1")
    assert lines_of(query, TABLE, 1.0) == [
        {"at": 1.0, "index": "GSI1", "partition": "skill#0", "reads": 0.5, "sort": "py"}
    ]
    assert len(lines_of(BatchWrite((Put("T", ITEM), Delete("T", KEY))), TABLE, 1.0)) == 2
    (double,) = lines_of(TransactWrite((Delete("T", KEY),)), TABLE, 1.0)
    assert double["writes"] == 2.0
    assert lines_of(DescribeTable("T"), TABLE, 1.0) == []
    everything = [*lines_of(Put("T", ITEM), TABLE, 0.0), *lines_of(query, TABLE, 0.0)]
    assert len(list(read_log(log_of(everything)))) == 2
