"""The change stream over DynamoDB Streams: shards, checkpoints, resharding, trimming, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from adjoin.errors import ChangesTrimmed, InvalidRequest, ServiceFailed, TableNotFound, Throttled
from adjoin.requests import ChangesResponse, ItemChange
from tests.stores.dynamodb.readers import Reader, Readers, open_readers
from tests.stores.dynamodb.stream_service import HOUR, KEYS, MINUTE, Clock, StreamService, shown

OTHER = KEYS - 1
"""An item in the last shard, where 0 is in the first."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def readers() -> Iterator[Readers]:
    with open_readers() as opened:
        yield opened


class World:
    """A table with a stream, and a reader of it."""

    def __init__(self, readers: Readers, clock: Clock) -> None:
        self.readers, self.clock = readers, clock
        self.reset()
        self.reader = self.another_reader()

    def reset(self, shards: int = 1, *, stretch: float = 3 * HOUR, strict: bool = True) -> StreamService:
        self.service = self.readers.server.service = StreamService(self.clock, shards, stretch=stretch, strict=strict)
        return self.service

    def another_reader(self) -> Reader:
        return self.readers.open(self.clock)

    def write(self, *values: str, item: int = 0) -> None:
        for value in values:
            self.service.put(item, value)

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds
        self.service.trim()

    def all(self, after: str | None = None, limit: int = 1000) -> list[ItemChange]:
        found: list[ItemChange] = []
        while True:
            response = self.reader.read(after, limit)
            if not response.changes:
                return found
            found += response.changes
            after = response.next


@pytest.fixture
def world(readers: Readers, clock: Clock) -> World:
    return World(readers, clock)


def values(changes: Iterable[ItemChange]) -> list[str]:
    return ["" if change.new is None else change.new["v"]["S"] for change in changes]


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


# --- trimming ----------------------------------------------------------------------------------


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
    with pytest.raises(ChangesTrimmed, match="the change stream of T does not hold what came after"):
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
    with pytest.raises(ChangesTrimmed, match="the change stream of T does not hold what came after"):
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
    with pytest.raises(InvalidRequest, match=f"the stream of T has {view} only, and changes need both images"):
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
        world.reader.read()


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


# --- what it costs -----------------------------------------------------------------------------


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
