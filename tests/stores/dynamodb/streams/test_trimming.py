"""What a reader of a stream is told when records or shards are gone, and that nothing is gone silently."""

from __future__ import annotations

import pytest

from adjoin.errors import ChangesTrimmed
from tests.stores.dynamodb.streams.service import HOUR, MINUTE
from tests.stores.dynamodb.streams.world import OTHER, World, values


def test_the_beginning_is_the_oldest_that_is_kept(world: World) -> None:
    world.write("a")
    world.wait(23 * HOUR)
    world.write("b")
    world.wait(2 * HOUR)
    assert values(world.all()) == ["b"]


def test_what_follows_a_position_was_trimmed(world: World) -> None:
    world.write("a", "b")
    position = world.reader.read(limit=1).next
    world.wait(23 * HOUR)
    world.write("c")
    world.wait(2 * HOUR)
    with pytest.raises(ChangesTrimmed, match="the change stream of T no longer holds the changes after"):
        world.reader.read(position)
    assert values(world.reader.read().changes) == ["c"]


def test_a_shard_was_not_read_to_its_end_and_is_gone(world: World) -> None:
    world.write("a", "b")
    position = world.reader.read(limit=1).next
    world.service.split(world.service.open_shards[0])
    world.wait(25 * HOUR)
    with pytest.raises(ChangesTrimmed, match="was not read to its end, and is gone"):
        world.reader.read(position)


def test_a_generation_of_shards_is_missing(world: World) -> None:
    world.write("a")
    (child,) = world.service.split(world.service.open_shards[0], 1)
    position = world.reader.read().next
    assert position is not None
    assert position.endswith("=*"), "the first shard is finished, the child not begun"
    world.wait(HOUR)
    world.write("b")
    world.service.split(child, 1)
    world.wait(25 * HOUR)
    with pytest.raises(ChangesTrimmed, match="was never read, and is gone"):
        world.reader.read(position)


@pytest.mark.parametrize("strict", [False, True])
def test_the_first_records_of_a_shard_that_was_never_begun_are_gone(world: World, strict: bool) -> None:
    """Where the horizon is used to start a shard, such a gap would go unseen."""
    world.reset(strict=strict)
    world.write("a")
    world.service.split(world.service.open_shards[0], 1)
    world.write("b")
    position = world.reader.read(limit=1).next
    world.wait(13 * HOUR)
    world.write("c")
    world.wait(13 * HOUR)
    with pytest.raises(ChangesTrimmed):
        world.another_reader().read(position)


def test_nothing_of_an_old_shard_is_gone(world: World) -> None:
    world.write("a")
    world.service.split(world.service.open_shards[0], 1)
    world.write("b")
    position = world.reader.read(limit=1).next
    world.clock.now += 26 * HOUR
    assert values(world.another_reader().read(position).changes) == ["b"], "it may be trimmed now, and is not yet"


def test_a_reader_from_the_beginning_misses_nothing_that_was_there_when_it_began(world: World) -> None:
    world.reset(2)
    world.write("a", "b", item=0)
    world.write("x", item=OTHER)
    world.wait(23 * HOUR)
    world.write("c", item=0)
    world.write("y", item=OTHER)
    first = world.reader.read(limit=1)
    assert values(first.changes) == ["a"]
    world.wait(2 * HOUR)
    with pytest.raises(ChangesTrimmed):
        world.all(first.next)


def test_a_reader_from_the_beginning_begins_where_parents_are_gone(world: World) -> None:
    """Shards that were not reached by the first reading are no gap."""
    world.reset(3)
    for _ in range(2):
        for shard in world.service.open_shards:
            world.service.split(shard, 1)
        world.wait(25 * HOUR)
    for item in (0, 7, OTHER):
        world.write("a", "b", item=item)
    assert sorted(values(world.all(limit=1))) == ["a", "a", "a", "b", "b", "b"]


def test_shards_that_stay_empty_for_days(world: World) -> None:
    """As on servers whose shards never close: what was seen empty today cannot lack what is older."""
    world.reset(2)
    position = None
    for value in "abcdefgh":
        world.wait(10 * HOUR)
        world.write(value, item=0)
        world.reader = world.another_reader()
        response = world.reader.read(position)
        assert values(response.changes) == [value]
        position = response.next
    world.write("x", item=OTHER)
    assert values(world.all(position)) == ["x"]


def test_a_closed_shard_that_was_read_to_its_end_may_be_trimmed(world: World) -> None:
    """The service refuses to begin behind a number that is gone, even where nothing follows it."""
    world.write("a")
    position = world.reader.read().next
    world.wait(23 * HOUR)
    world.service.split(world.service.open_shards[0], 1)
    world.write("b")
    world.wait(2 * HOUR)
    assert values(world.another_reader().read(position).changes) == ["b"]


def test_who_looks_every_hour_needs_no_changes_to_go_on(world: World) -> None:
    """The shard that a position names is gone after a day without changes, and the reader knows it was empty."""
    world.write("a")
    position = world.reader.read().next
    for hour in range(5 * 24):
        world.wait(HOUR)
        if hour % 4 == 0:
            for shard in world.service.open_shards:
                world.service.split(shard, 2 if hour == 40 else 1)
        found = world.reader.read(position)
        assert found.changes == []
    with pytest.raises(ChangesTrimmed):
        world.another_reader().read(position)
    assert world.another_reader().read(found.next).changes == []
    world.write("b", item=0)
    world.write("c", item=OTHER)
    assert sorted(values(world.reader.read(position).changes)) == ["b", "c"]


def test_who_looks_every_hour_at_shards_that_stay_empty_for_days(world: World) -> None:
    world.reset(2)
    world.write("a", item=0)
    position = world.reader.read().next
    for hour in range(5 * 24):
        world.wait(HOUR)
        if hour % 4 == 0:
            world.service.split(next(shard for shard in world.service.open_shards if 0 in shard.items), 1)
        assert world.reader.read(position).changes == []
    world.write("b", item=OTHER)
    assert values(world.reader.read(position).changes) == ["b"]


def test_an_iterator_is_refused_that_was_remembered(world: World) -> None:
    """What counts is whether a new one can be had."""
    world.write("a", "b")
    position = world.reader.read(limit=1).next
    world.clock.now += MINUTE
    world.service.refuse("GetRecords", "TrimmedDataAccessException")
    assert values(world.reader.read(position).changes) == ["b"]


def test_records_are_trimmed_between_an_iterator_and_its_use(world: World) -> None:
    world.write("a", "b")
    position = world.reader.read(limit=1).next
    world.service.refuse("GetRecords", "TrimmedDataAccessException", 3)
    with pytest.raises(ChangesTrimmed, match="the change stream of T no longer holds the changes after"):
        world.reader.read(position)
    assert values(world.reader.read(position).changes) == ["b"]


def test_the_horizon_moves_while_a_reader_begins(world: World) -> None:
    world.write("a")
    world.service.refuse("GetRecords", "TrimmedDataAccessException", 2)
    assert values(world.reader.read().changes) == ["a"]


def test_a_shard_goes_while_a_reader_begins(world: World) -> None:
    world.reset(2)
    world.write("a", item=0)
    world.write("b", item=OTHER)
    world.service.refuse("GetShardIterator", "ResourceNotFoundException")
    assert len(world.reader.read().changes) == 1
