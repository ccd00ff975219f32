"""How many requests a reader of a stream makes, and how much it remembers."""

from __future__ import annotations

import pytest

from tests.stores.dynamodb.streams.readers import Reader
from tests.stores.dynamodb.streams.service import HOUR, KEYS, MINUTE
from tests.stores.dynamodb.streams.world import World


def costs(world: World, position: str | None, reader: Reader | None = None) -> dict[str, int]:
    world.service.calls.clear()
    assert (reader or world.reader).read(position).changes == []
    return {name: world.service.count(name) for name in {name for name, _ in world.service.calls}}


def test_requests_where_nothing_changed(world: World) -> None:
    world.reset(4)
    for item in range(KEYS):
        world.write("a", item=item)
    position = world.reader.read().next
    assert costs(world, position) == {"GetRecords": 4}
    world.clock.now += 5
    assert costs(world, position) == {"GetRecords": 4}
    world.clock.now += 6
    assert costs(world, position) == {"DescribeTable": 1, "DescribeStream": 1, "GetRecords": 4}
    # Three minutes later there is more to look through, and a program that starts does not know how much.
    world.clock.now += 3 * MINUTE
    assert costs(world, position) == {"DescribeTable": 1, "DescribeStream": 1, "GetRecords": 4 * 10}
    assert costs(world, position, world.another_reader()) == {
        "DescribeTable": 1,
        "DescribeStream": 1,
        "GetShardIterator": 4,
        "GetRecords": 4 * 12,
    }


def test_full_shards_keep_the_others_from_being_asked(world: World) -> None:
    world.reset(KEYS)
    for item in range(KEYS):
        world.write(*"abcdefgh", item=item)
    position = world.reader.read(limit=1).next
    world.service.calls.clear()
    response = world.reader.read(position, limit=16)
    assert len(response.changes) == 16
    assert world.service.count("GetRecords") == 4
    assert all(payload["Limit"] == 4 for name, payload in world.service.calls if name == "GetRecords")


def test_no_shard_waits_forever(world: World) -> None:
    """A reader that cannot keep up reads all shards in turn, whoever it is."""
    world.reset(KEYS)
    position = None
    for round_ in range(2 * KEYS):
        for item in range(KEYS):
            world.write(f"{round_}a", f"{round_}b", item=item)
        response = world.another_reader().read(position, limit=4)
        assert len(response.changes) == 4
        position = response.next
        world.readers.close_all()
    assert position is not None
    begun = [shard for shard in position.split("/") if not shard.partition("=")[2].startswith("@")]
    assert len(begun) - 1 == KEYS


def test_positions_name_the_newest_shards_only(world: World) -> None:
    world.reset(8)
    for _ in range(5):
        for shard in world.service.open_shards:
            world.write(str(world.clock()), item=shard.items.start)
            world.service.split(shard, 1)
        world.wait(4 * HOUR)
    for shard in world.service.open_shards:
        world.write("z", item=shard.items.start)
    changes = world.all()
    assert len(changes) == 48
    assert len(world.service.shards) == 48
    assert max(change.position.count("=") for change in changes) == 8


def test_what_is_remembered_does_not_grow(world: World) -> None:
    position = None
    for day in range(80):
        world.write(str(day))
        position = world.reader.read(position).next
        world.reader.read(position)
        world.reader.read(limit=1)
        for shard in world.service.open_shards:
            world.service.split(shard, 1)
        world.wait(20 * HOUR)
    assert world.reader.remembers() < 50


@pytest.mark.parametrize("is_replaced", [False, True])
def test_shards_that_are_gone_are_not_remembered(world: World, is_replaced: bool) -> None:
    for day in range(60):
        world.write(str(day))
        world.reader.read()
        if is_replaced:
            world.service.enable()
        else:
            world.service.split(world.service.open_shards[0], 1)
        world.wait(30 * HOUR)
    assert world.reader.remembers() < 10
