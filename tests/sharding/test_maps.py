"""Shard maps: an entry is always looked for where it was put, whatever grew in between."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adjoin.errors import InvalidItem, InvalidValue
from adjoin.sharding.maps import (
    FIRST_GRACE,
    FIRST_LEASE,
    GRACE,
    LEASE,
    Epoch,
    FixedShards,
    Shard,
    ShardMap,
    jump_hash,
    stable_hash,
)
from adjoin.values import decode, encode

VALUES = ("python", "rust", "#", "", "3#python", "größe")


# --- histories ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class History:
    """The maps that were announced, each with its time."""

    maps: tuple[tuple[float, ShardMap], ...]

    def known_at(self, moment: float) -> ShardMap:
        return [shards for announced, shards in self.maps if announced <= moment][-1]


@st.composite
def histories(draw: st.DrawFn) -> History:
    now, shards = 1000.0, ShardMap()
    maps = [(0.0, shards)]
    for _ in range(draw(st.integers(0, 8))):
        now += draw(st.floats(0, 100))
        more = {
            value: shards.shards_of(value) + draw(st.integers(1, 5))
            for value in draw(st.sets(st.sampled_from(VALUES), max_size=2))
        }
        field = draw(st.none() | st.integers(1, 20))
        shards = shards.grown(now, None if field is None else shards.shards_of() + field, more)
        maps.append((now, shards))
    return History(tuple(maps))


maps = histories().map(lambda history: history.maps[-1][1])


@given(
    history=histories(),
    value=st.sampled_from(VALUES),
    id=st.text(max_size=5),
    written=st.floats(1000, 2000),
    writer_age=st.floats(0, 500),
    reader_age=st.floats(0, LEASE) | st.floats(0, FIRST_LEASE),
    later=st.floats(0, 500),
    skew=st.floats(-(GRACE - LEASE), GRACE - LEASE),
)
def test_a_reader_asks_where_a_writer_put_it(
    history: History,
    value: str,
    id: str,
    written: float,
    writer_age: float,
    reader_age: float,
    later: float,
    skew: float,
) -> None:
    """The reader keeps to the lease. The writer's map may be as old as it likes, and its clock may be off."""
    writer = history.known_at(max(0.0, written - writer_age))
    reader = history.known_at(written + later - reader_age)
    assume(reader_age <= reader.lease)
    shard = writer.place(value, id, written + skew)
    assert shard in reader.places(value)
    assert shard in reader.all_places(lambda each: each == value)


def test_without_the_grace_a_reader_would_miss_entries() -> None:
    """What the property above is for: a writer who does not wait writes where a reader does not look."""
    old = ShardMap()
    new = old.grown(1000.0, values={"python": 4})
    assert new.place("python", "1", 1000.0 + FIRST_GRACE - 1) in old.places("python")
    assert new.place("python", "1", 1000.0 + FIRST_GRACE) not in old.places("python")


@given(maps, st.sampled_from(VALUES))
def test_no_shard_is_asked_twice_and_equality_asks_no_more_than_a_range(shards: ShardMap, value: str) -> None:
    equal, everything = shards.places(value), shards.all_places(lambda each: True)
    assert len(set(equal)) == len(equal)
    assert len(set(map(str, everything))) == len(everything) == shards.shards
    assert set(equal) <= set(shards.all_places(lambda each: each == value)) <= set(everything)


@given(histories(), st.sampled_from(VALUES))
def test_a_newer_map_asks_everything_that_an_older_one_does(history: History, value: str) -> None:
    older = [set(shards.places(value)) for _, shards in history.maps]
    for before, after in pairwise(older):
        assert before <= after


@given(maps)
def test_maps_are_stored_as_plain_data(shards: ShardMap) -> None:
    assert ShardMap.from_plain(json.loads(json.dumps(shards.to_plain()))) == shards
    assert ShardMap.from_plain(decode(encode(shards.to_plain()))) == shards


@pytest.mark.parametrize("plain", [{}, {"version": 1, "epochs": [], "values": {}}, {"version": 1, "epochs": [[0, 1]]}])
def test_a_stored_map_that_is_none_is_refused(plain: dict[str, object]) -> None:
    with pytest.raises(InvalidItem, match="a stored shard map cannot be read"):
        ShardMap.from_plain(plain)


# --- exact cases -------------------------------------------------------------------------------


def test_every_field_begins_with_one_shard() -> None:
    shards = ShardMap()
    assert shards.place("python", "1", 0.0) == Shard(0)
    assert shards.places("python") == shards.all_places(lambda value: True) == (Shard(0),)
    assert (shards.shards, shards.version) == (1, 0)


def test_growing_waits_for_its_grace_and_then_moves_new_entries() -> None:
    grown = ShardMap().grown(1000.0, shards=64, values={"python": 3})
    assert grown.epochs == (Epoch(1, 0.0), Epoch(64, 1000.0 + FIRST_GRACE))
    assert grown.values == {"python": (Epoch(3, 1000.0 + FIRST_GRACE),)}
    assert (grown.version, grown.shards, grown.changed) == (1, 67, 1000.0 + FIRST_GRACE)
    assert grown.place("rust", "1", 999.9 + FIRST_GRACE) == grown.place("python", "1", 999.9 + FIRST_GRACE) == Shard(0)
    assert grown.place("rust", "1", 1000.0 + FIRST_GRACE) == Shard(jump_hash(stable_hash("rust"), 64))
    assert grown.place("python", "1", 1000.0 + FIRST_GRACE) == Shard(jump_hash(stable_hash("1"), 3), "python")
    assert grown.places("python")[-3:] == (Shard(0, "python"), Shard(1, "python"), Shard(2, "python"))
    assert len(grown.places("rust")) == 2
    assert len(grown.all_places(lambda value: value < "python")) == 64


def test_an_epoch_is_never_writable_before_the_one_before_it() -> None:
    """The clock of who announces it may be behind."""
    grown = ShardMap().grown(1000.0, shards=2).grown(900.0, shards=3)
    assert grown.epochs[-1] == Epoch(3, 1000.0 + FIRST_GRACE)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FixedShards(0), "number of shards must be at least 1, got 0"),
        (lambda: ShardMap((Epoch(0, 0.0),)), "number of shards must be at least 1, got 0"),
        (lambda: ShardMap(()), "at least one epoch"),
        (lambda: ShardMap(values={"python": ()}), "at least one epoch"),
        (lambda: ShardMap().grown(0.0, shards=1), "more shards than the one before"),
        (lambda: ShardMap((Epoch(1, 5.0), Epoch(2, 4.0))), "not be earlier"),
    ],
)
def test_what_is_no_map_is_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(InvalidValue, match=message):
        make()


@pytest.mark.parametrize(
    ("shard", "text"),
    [
        (Shard(0), "0"),
        (Shard(12), "12"),
        (Shard(3, "python"), "3#python"),
        (Shard(0, ""), "0#"),
        (Shard(1, "2#"), "1#2#"),
    ],
)
def test_shards_have_a_text(shard: Shard, text: str) -> None:
    assert str(shard) == text


def test_fixed_shards_spread_one_value_and_are_all_asked() -> None:
    fixed = FixedShards(4)
    assert {fixed.place("python", str(id), 0.0) for id in range(100)} == set(fixed.places("python"))
    assert fixed.places("python") == fixed.all_places(lambda value: False) == tuple(map(Shard, range(4)))


# --- hashes ------------------------------------------------------------------------------------


def test_hashes_never_change() -> None:
    """Stored entries lie where these numbers say."""
    assert [stable_hash(text) for text in ("", "python", "größe")] == [
        16476032584258269876,
        12157071845012654257,
        17652106498042665705,
    ]
    assert [jump_hash(stable_hash("python"), n) for n in (1, 2, 3, 10, 100, 1000)] == [0, 0, 0, 3, 87, 484]


@given(st.integers(0, 2**64 - 1), st.integers(1, 300))
def test_growing_keeps_a_bucket_or_gives_a_new_one(key: int, buckets: int) -> None:
    assert jump_hash(key, buckets + 1) in (jump_hash(key, buckets), buckets)


@pytest.mark.parametrize("buckets", [2, 7, 64])
def test_buckets_are_balanced(buckets: int) -> None:
    keys = 2000 * buckets
    counts = Counter(jump_hash(stable_hash(str(number)), buckets) for number in range(keys))
    assert len(counts) == buckets
    # Five standard deviations of a fair draw.
    assert all(abs(count - 2000) < 5 * 2000**0.5 for count in counts.values())
