"""Answers of DynamoDB Streams that are refusals, or have no records although there are some."""

from __future__ import annotations

import pytest

from adjoin.errors import ChangesTrimmed, ServiceFailed, TableNotFound, Throttled
from tests.stores.dynamodb.streams.service import HOUR, MINUTE
from tests.stores.dynamodb.streams.world import World, values

# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["DescribeTable", "DescribeStream", "GetShardIterator", "GetRecords"])
@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("LimitExceededException", 400),
        ("ProvisionedThroughputExceededException", 400),
        ("ThrottlingException", 400),
        ("InternalServerError", 500),
    ],
)
def test_refusals_for_now_are_tried_again(world: World, operation: str, code: str, status: int) -> None:
    world.write("a")
    world.service.refuse(operation, code, 2, status)
    assert values(world.reader.read().changes) == ["a"]


@pytest.mark.parametrize(
    ("operation", "code", "error"),
    [
        ("DescribeTable", "ResourceNotFoundException", TableNotFound),
        ("DescribeStream", "ResourceNotFoundException", TableNotFound),
        ("GetShardIterator", "ResourceNotFoundException", ChangesTrimmed),
        ("GetShardIterator", "TrimmedDataAccessException", ChangesTrimmed),
        ("GetRecords", "TrimmedDataAccessException", ChangesTrimmed),
    ],
)
def test_an_error_after_a_failure_is_that_error(
    world: World, operation: str, code: str, error: type[Exception]
) -> None:
    world.write("a")
    position = world.reader.read().next
    world.service.refuse(operation, "InternalServerError", status=500)
    world.service.refuse(operation, code)
    with pytest.raises(error):
        world.another_reader().read(position)


def test_a_shard_that_is_always_throttled(world: World) -> None:
    world.write("a")
    world.service.refuse("GetRecords", "LimitExceededException", 1000)
    with pytest.raises(Throttled):
        world.another_reader(deadline=2.0).read()


def test_iterators_that_expired(world: World) -> None:
    world.write("a")
    position = world.reader.read().next
    world.write("b")
    world.service.expire_iterators()
    assert values(world.reader.read(position).changes) == ["b"]
    assert world.service.count("GetShardIterator") == 2


def test_iterators_that_must_have_expired_are_not_tried(world: World) -> None:
    world.write("a")
    position = world.reader.read().next
    world.write("b")
    world.clock.now += 20 * MINUTE
    before = world.service.count("GetRecords")
    assert values(world.reader.read(position).changes) == ["b"]
    assert world.service.count("GetRecords") == before + 1


def test_iterators_that_expire_at_once(world: World) -> None:
    world.write("a")
    world.service.refuse("GetRecords", "ExpiredIteratorException", 1000)
    with pytest.raises(ServiceFailed, match="cannot be read"):
        world.reader.read()
    assert world.service.count("GetRecords") < 10


# --- answers without records -------------------------------------------------------------------


def test_an_open_shard_answers_with_nothing_before_it_has_something(world: World) -> None:
    world.reset(stretch=30 * MINUTE)
    world.clock.now += 3.9 * HOUR
    world.write("a")
    assert values(world.reader.read().changes) == ["a"]
    assert world.service.count("GetRecords") == 8


def test_an_open_shard_answers_with_nothing_between_records(world: World) -> None:
    world.reset(stretch=30 * MINUTE)
    world.write("a")
    world.clock.now += 3.9 * HOUR
    world.write("b")
    assert values(world.all()) == ["a", "b"]


def test_a_new_iterator_has_more_to_look_through(world: World) -> None:
    world.reset(stretch=30 * MINUTE)
    world.write("a")
    position = world.reader.read().next
    for _ in range(24):
        world.clock.now += 10 * MINUTE
        assert world.reader.read(position).changes == []
    world.write("b")
    world.service.expire_iterators()
    assert values(world.reader.read(position).changes) == ["b"]


def test_a_closed_shard_is_read_to_its_end_however_often_it_answers_with_nothing(world: World) -> None:
    world.reset(stretch=MINUTE)
    world.clock.now += HOUR
    world.write("a")
    world.clock.now += HOUR
    world.service.split(world.service.open_shards[0], 1)
    world.write("b")
    assert values(world.all()) == ["a", "b"]


def test_who_stays_goes_on_where_looking_stopped(world: World) -> None:
    """An open shard with more empty answers than anybody waits for is not asked the same again and again."""
    world.reset(stretch=MINUTE)
    world.write("a")
    position = world.reader.read().next
    world.clock.now += HOUR
    world.write("b")
    readings = 0
    while not (response := world.reader.read(position)).changes:
        readings += 1
        assert readings < 60
    assert values(response.changes) == ["b"]
