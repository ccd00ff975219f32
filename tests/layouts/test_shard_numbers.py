"""The number of shards of a key attribute: what a record says, what is refused, and how long it is believed."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin.errors import InvalidItem, InvalidKey, InvalidValue, TableMismatch
from adjoin.layouts.keys import SHARD, Quoting, parse_template
from adjoin.layouts.shard_numbers import MOST_SHARDS, SHARDS, VERSION, ShardedTemplate, ShardNumber
from adjoin.model import SHARDS_READ
from adjoin.sharding.maps import FIRST_GRACE, FIRST_LEASE, GRACE, LEASE
from adjoin.values import Item, encode
from tests.growing import Clock


def number_of(declared: range | None, clock: Clock | None = None) -> ShardNumber:
    return ShardNumber("GSIPK", ("GSI1",), declared, clock or Clock())


def record(number: ShardNumber, was: Item | None, wanted: int) -> Item:
    made = number.raised(was, wanted)
    assert made is not None
    return made


def test_without_a_record_the_declared_number_holds() -> None:
    number = number_of(range(4))
    number.learn(None, 0.0)
    assert list(number.all) == [0, 1, 2, 3]
    assert {number.place(str(each)) for each in range(100)} == {0, 1, 2, 3}
    assert not number.may_move


def test_a_record_is_read_by_programs_that_declare_other_numbers() -> None:
    stored = record(number_of(range(4)), None, 4)
    for declared in (range(1), range(4), None):
        number = number_of(declared)
        number.learn(stored, number.clock())
        assert list(number.all) == [0, 1, 2, 3], declared
        assert {number.place(str(each)) for each in range(100)} == {0, 1, 2, 3}, declared


def test_a_higher_declared_number_is_refused_with_both() -> None:
    stored = record(number_of(range(4)), None, 4)
    with pytest.raises(TableMismatch, match=r"declares 8 shards for the index 'GSI1', but the table has 4; raise"):
        number_of(range(8)).learn(stored, 0.0)


def test_another_first_shard_is_refused_with_both_ranges() -> None:
    stored = record(number_of(range(1, 5)), None, 4)
    with pytest.raises(TableMismatch, match=r"shards=range\(0, 4\) .* has range\(1, 5\); declare shards=range\(1, 5\)"):
        number_of(range(4)).learn(stored, 0.0)
    number = number_of(range(1, 3))
    number.learn(stored, 0.0)
    assert list(number.all) == [1, 2, 3, 4]


def test_readers_know_a_raised_number_before_writers_use_it() -> None:
    clock = Clock()
    number = number_of(range(2), clock)
    number.learn(None, clock.now)
    clock.now += FIRST_LEASE - 1
    assert not number.is_stale
    clock.now += 1
    assert number.is_stale

    stored = record(number, None, 8)
    number.learn(stored, clock.now)
    assert len(number.all) == 8
    assert number.may_move
    assert max(number.place(str(each)) for each in range(100)) == 1
    clock.now += FIRST_GRACE
    assert {number.place(str(each)) for each in range(100)} == set(range(8))
    assert number.is_stale

    number.learn(record(number, stored, 9), clock.now)
    clock.now += LEASE
    assert number.is_stale
    assert max(number.place(str(each)) for each in range(1000)) == 7
    clock.now += GRACE - LEASE
    assert max(number.place(str(each)) for each in range(1000)) == 8
    assert [epoch.shards for epoch in number.epochs] == [2, 8, 9]


def test_what_was_never_read_is_asked_for() -> None:
    assert number_of(range(2)).is_stale
    assert not number_of(None).is_stale, "adaptive shards have maps, and are asked for a number when they open"
    clock = Clock()
    number = number_of(range(2), clock)
    number.learn(None, clock.now)
    clock.now -= 1
    assert number.is_stale, "the clock was set back"


def test_an_item_moves_to_a_new_shard_only() -> None:
    clock = Clock()
    number = number_of(range(4), clock)
    before = {each: number.place(str(each)) for each in range(500)}
    number.learn(record(number, None, 7), clock.now)
    clock.pass_grace()
    after = {each: number.place(str(each)) for each in range(500)}
    assert all(after[each] == shard or after[each] >= 4 for each, shard in before.items())
    assert before != after


def test_a_record_that_is_gone_or_older_changes_nothing() -> None:
    number = number_of(range(2))
    first = record(number, None, 2)
    second = record(number, first, 5)
    number.learn(second, 1.0)
    for older in (None, first):
        number.learn(older, 2.0)
        assert len(number.all) == 5


def test_a_number_is_raised_once_and_never_lowered() -> None:
    number = number_of(range(4))
    stored = record(number, None, 6)
    assert number.raised(stored, 6) is None
    for wanted in (5, 0, -1, MOST_SHARDS + 1):
        with pytest.raises(InvalidValue, match=r"must be from 6 to 10,000, got .*never lowered"):
            number.raised(stored, wanted)
    with pytest.raises(InvalidValue, match="adaptive"):
        number_of(None).raised(None, 4)


def test_a_program_that_declares_the_higher_number_can_raise_it() -> None:
    stored = record(number_of(range(4)), None, 4)
    raised = record(number_of(range(8)), stored, 8)
    number = number_of(range(8))
    number.learn(raised, 0.0)
    assert [epoch.shards for epoch in number.epochs] == [4, 8]


DAMAGED: list[Any] = [
    "4",
    {},
    {"first": 0, "version": 0, "epochs": [], "values": []},
    {"first": 0, "version": 0, "epochs": [[4, 0], [2, 5]], "values": []},
    {"first": 0, "version": 0, "epochs": [[0, 0]], "values": []},
    {"first": -1, "version": 0, "epochs": [[4, 0]], "values": []},
    {"first": 0, "version": 0, "epochs": [[10**9, 0]], "values": []},
    {"first": 0, "version": 0, "epochs": [[4, 0]], "values": [["py", [[1, 0]]]]},
    {"first": "x", "version": 0, "epochs": [[4, 0]], "values": []},
    {"first": 0, "version": "x", "epochs": [[4, 0]], "values": []},
    {"first": None, "version": 0, "epochs": [[4, 0]], "values": []},
]


@pytest.mark.parametrize("damaged", DAMAGED)
def test_a_damaged_record_is_refused_with_a_remedy(damaged: Any) -> None:
    for item in ({SHARDS: encode(damaged), VERSION: {"N": "0"}}, {VERSION: {"N": "0"}}, {}):
        for declared in (range(4), None):
            with pytest.raises(InvalidItem, match=r"shards of the index 'GSI1' cannot be read: .*; .* delete it"):
                number_of(declared).learn(item, 0.0)
            with pytest.raises(InvalidItem):
                number_of(declared).raised(item, 8)


def test_what_a_record_says_whatever_is_declared() -> None:
    stored = record(number_of(range(2, 6)), None, 4)
    for declared in (range(1), range(9), None):
        number = number_of(declared)
        found = number.stored(stored)
        assert found is not None
        assert found.shards_of() == 4
        assert number.stored(None) is None
    assert number_of(None).read(None) == (0, None)
    first, known = number_of(range(3, 5)).read(None)
    assert known is not None
    assert (first, known.shards_of()) == (3, 2)


# --- templates with a shard ------------------------------------------------------------------------


def sharded(number: ShardNumber, by: tuple[str, ...] = ("name",)) -> ShardedTemplate:
    return ShardedTemplate(
        "Person", parse_template("P#{shard}"), Quoting(frozenset("#"), escape=False), "S", number, by
    )


def test_the_chosen_values_decide_the_shard() -> None:
    number = number_of(range(8))
    template = sharded(number)
    assert template.names == ("name",)
    assert template.render({"name": "Ann"}) == f"P#{number.place('Ann')}"
    assert template.render({"name": "Ann", SHARD: 5}) == "P#5"
    assert template.in_shards({}) == tuple(f"P#{shard}" for shard in range(8))
    with pytest.raises(InvalidKey, match=r"Person\.name is None, but it chooses the shard"):
        template.render({"name": None})


def test_an_item_that_was_read_stays_in_its_shard_while_the_same_values_choose_it() -> None:
    number = number_of(range(8))
    template, other = sharded(number), (number.place("Ann") + 1) % 8
    read = {SHARDS_READ: {"GSIPK": ("Ann", other)}}
    assert template.render({"name": "Ann", **read}) == f"P#{other}"
    assert template.render({"name": "Ben", **read}) == f"P#{number.place('Ben')}"
    assert template.render({"name": "Ann", SHARDS_READ: {}}) == f"P#{number.place('Ann')}"
    assert template.render({"name": "Ann", SHARDS_READ: {"GSIPK": ("Ann", 8)}}) == f"P#{number.place('Ann')}"


def test_a_shard_that_adjoin_would_not_have_chosen_is_foreign() -> None:
    number = number_of(range(8))
    template, own = sharded(number), number.place("Ann")
    assert template.foreign(f"P#{own}", "Ann") is None
    assert template.foreign(f"P#{(own + 1) % 8}", "Ann") == (own + 1) % 8
    assert template.foreign("P#8", "Ann") is None
    assert template.foreign("Q#1", "Ann") is None
