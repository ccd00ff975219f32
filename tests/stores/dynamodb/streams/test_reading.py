"""The change stream over DynamoDB Streams: what changes are, checkpoints, resharding, and other streams."""

from __future__ import annotations

import pytest

from adjoin.errors import ChangesTrimmed, InvalidRequest, TableNotFound
from adjoin.requests import ChangesResponse, ItemChange
from tests.stores.dynamodb.streams.service import HOUR, MINUTE, Clock, shown
from tests.stores.dynamodb.streams.world import OTHER, World, values

# --- what changes are --------------------------------------------------------------------------


def test_a_stream_without_changes(world: World) -> None:
    assert world.reader.read() == ChangesResponse([], None)


def test_changes_have_images_keys_and_times(world: World, clock: Clock) -> None:
    number = world.service.put(0, "a")
    assert number is not None
    world.write("b", "")
    clock.now += 0.75
    world.write("c")
    world.service.put(0, "", expires=True)
    key = {"PK": {"S": "item0"}, "SK": {"S": "#"}}
    a, b, c = ({**key, "v": {"S": value}} for value in "abc")
    at = clock.now - 0.75
    changes = world.reader.read().changes
    positions = [change.position for change in changes]
    assert changes == [
        ItemChange(positions[0], at, key, None, a),
        ItemChange(positions[1], at, key, a, b),
        ItemChange(positions[2], at, key, b, None),
        ItemChange(positions[3], at, key, None, c),
        ItemChange(positions[4], at, key, c, None, expired=True),
    ]
    assert list(changes[0].key) == ["PK", "SK"], "the partition key first, whatever order the schema has"
    assert positions[0] == f"{world.service.label}/{world.service.open_shards[0].id}={shown(number)}"


def test_who_removed_an_item_matters(world: World) -> None:
    """Others than expiry act in the service's name, or as services."""
    world.write("a")
    for identity in ({"Type": "Service", "PrincipalId": "other.amazonaws.com"}, {"Type": "User"}, {}):
        world.service.put(0)
        world.service.written[-1].body["userIdentity"] = identity
        world.write("a")
    assert not any(change.expired for change in world.reader.read().changes)


# --- reading on --------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
def test_reading_on_from_every_position(world: World, limit: int) -> None:
    world.reset(3)
    for value in "abcdefg":
        world.write(value, item=0)
        world.write(value, item=OTHER)
    changes = world.all(limit=limit)
    assert sorted(values(changes)) == sorted("abcdefg" * 2)
    for at, change in enumerate(changes):
        world.reader = world.another_reader()
        later = world.all(change.position, limit)
        before = values(each for each in changes[: at + 1] if each.key == change.key)
        assert before + values(each for each in later if each.key == change.key) == list("abcdefg")
        assert len(later) == len(changes) - at - 1
    assert world.reader.read(changes[-1].position).changes == []


def test_the_last_position_is_the_one_to_go_on_from(world: World) -> None:
    world.write("a", "b")
    response = world.reader.read()
    assert response.next == response.changes[-1].position
    assert world.reader.read(response.next) == ChangesResponse([], response.next)


# --- resharding --------------------------------------------------------------------------------


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("page", [1, 2, 100])
def test_parents_are_read_before_children(world: World, page: int, backwards: bool) -> None:
    """Whatever order and pages shards are listed in."""
    world.service.page, world.service.backwards = page, backwards
    expected = []
    for generation in range(4):
        for shard in world.service.open_shards:
            world.write(str(generation), item=shard.items.start)
            expected.append(str(generation))
        world.clock.now += HOUR
        for shard in world.service.open_shards:
            world.service.split(shard)
    assert values(world.all()) == expected
    world.reader = world.another_reader()
    assert sorted(values(world.all(limit=1))) == sorted(expected)


def test_a_split_while_reading(world: World) -> None:
    world.write("a", "b")
    first = world.reader.read(limit=1)
    (left, right) = world.service.split(world.service.open_shards[0])
    world.write("c", item=left.items.start)
    world.write("d", item=right.items.start)
    assert values(first.changes) == ["a"]
    assert values(world.all(first.next, 1)) == ["b", "c", "d"]


def test_a_shard_that_rolled_over_since_it_was_listed(world: World) -> None:
    """One reading finds what is there, however much of it is new."""
    world.write("a")
    position = world.reader.read().next
    world.service.split(world.service.open_shards[0], 1)
    world.service.split(world.service.open_shards[0], 1)
    world.write("b")
    assert values(world.reader.read(position).changes) == ["b"]


def test_a_shard_that_rolled_over_many_times_without_changes(world: World) -> None:
    world.write("a")
    position = world.reader.read().next
    for _ in range(5):
        world.service.split(world.service.open_shards[0], 1)
        world.wait(4 * HOUR)
    world.write("b")
    assert values(world.reader.read(position).changes) == ["b"]


def test_children_that_are_listed_late(world: World) -> None:
    """Between a shard's end and its children there may be a while; listings that are remembered do not hide them."""
    world.write("a")
    (child,) = world.service.split(world.service.open_shards[0], 1)
    world.service.hidden.add(child.id)
    world.write("b")
    first = world.reader.read()
    assert values(first.changes) == ["a"]
    assert world.reader.read(first.next).changes == []
    world.service.hidden.clear()
    assert values(world.reader.read(first.next).changes) == ["b"]


def test_a_sibling_that_is_listed_late(world: World) -> None:
    world.write("a")
    left, right = world.service.split(world.service.open_shards[0])
    world.service.hidden.add(right.id)
    world.write("b", item=left.items.start)
    world.write("c", item=right.items.start)
    changes = world.all()
    assert values(changes) == ["a", "b"]
    world.service.hidden.clear()
    world.clock.now += MINUTE
    assert values(world.all(changes[-1].position)) == ["c"]


# --- streams that are others -------------------------------------------------------------------


def test_a_stream_that_was_replaced(world: World) -> None:
    world.write("a")
    position = world.reader.read().next
    world.service.enable()
    world.write("b")
    with pytest.raises(ChangesTrimmed, match="its stream was replaced by another"):
        world.reader.read(position)
    assert values(world.reader.read().changes) == ["b"]


def test_the_end_of_a_stream_is_not_followed_by_another(world: World) -> None:
    """Though nothing that the position names is missing from the new stream."""
    world.write("a")
    world.service.split(world.service.open_shards[0], 1)
    position = world.reader.read().next
    world.wait(HOUR)
    world.service.enable()
    world.write("b")
    assert values(world.reader.read().changes) == ["b"]
    with pytest.raises(ChangesTrimmed, match="its stream was replaced by another"):
        world.reader.read(position)


def test_a_table_without_a_stream(world: World) -> None:
    world.service.enabled = False
    with pytest.raises(InvalidRequest, match="the table T keeps no changes; create it with a stream"):
        world.reader.read()


@pytest.mark.parametrize("view", ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE"])
def test_a_stream_without_both_images(world: World, view: str) -> None:
    world.service.view = view
    world.write("a")
    with pytest.raises(InvalidRequest, match=f"the stream of T has only {view}, but changes need both images"):
        world.reader.read()


def test_no_table(world: World) -> None:
    world.service.refuse("DescribeTable", "ResourceNotFoundException")
    with pytest.raises(TableNotFound):
        world.reader.read()


def test_a_number_that_the_shard_does_not_have(world: World) -> None:
    world.write("a")
    position = world.reader.read().next
    assert position is not None
    with pytest.raises(InvalidRequest):
        world.reader.read(f"{position}000")
