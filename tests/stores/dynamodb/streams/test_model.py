"""Readers of a stream against a model of it: whatever happens, nothing comes twice, out of order or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from adjoin.errors import ChangesTrimmed
from adjoin.requests import ItemChange
from tests.shares import examples
from tests.stores.dynamodb.streams.readers import Reader, Readers, open_readers
from tests.stores.dynamodb.streams.service import HOUR, KEYS, Clock, Record, StreamService

ITEMS = st.sampled_from([0, 1, KEYS - 1])
WHICH = st.integers(0, 99)
UNSEEN = 11 * HOUR
"""Who does not look for so long may be told that something is lost, in shards that stay open for days."""
LIMITS = st.sampled_from([1, 2, 3, 7, 1000])


@dataclass
class Delivered:
    """A change that a reader has got."""

    record: Record
    position: str


@dataclass
class Consumer:
    """What somebody who reads has got, and what was gone, how often was trimmed, and when it was, when it began."""

    reader: Reader
    before: set[int] = field(default_factory=set)
    trims: int = 0
    at: float = 0.0
    got: list[Delivered] = field(default_factory=list)


class StreamMachine(RuleBasedStateMachine):
    readers: Readers

    @initialize(shards=st.integers(1, 3), page=st.integers(1, 4), backwards=st.booleans(), strict=st.booleans())
    def begin(self, shards: int, page: int, backwards: bool, strict: bool) -> None:
        self.clock = Clock()
        self.service = StreamService(self.clock, shards, strict=strict)
        self.service.page, self.service.backwards = page, backwards
        self.readers.server.service = self.service
        self.consumers = [Consumer(self.readers.open(self.clock)) for _ in range(2)]
        self.trims = 0
        self.values = 0

    def teardown(self) -> None:
        self.readers.close_all()

    # --- what happens to the table -----------------------------------------------------------------

    @rule(items=st.lists(ITEMS, min_size=1, max_size=6))
    def write(self, items: list[int]) -> None:
        for item in items:
            self.values += 1
            # Every fifth write removes the item.
            self.service.put(item, str(self.values) if self.values % 5 else "")

    @rule(which=st.none() | WHICH, ways=st.integers(1, 2), late=st.booleans())
    def split(self, which: int | None, ways: int, late: bool) -> None:
        """Splits one shard, or all of them; one way is how they roll over."""
        shards = [shard for shard in self.service.open_shards if len(shard.items) >= ways]
        for shard in shards if which is None or not shards else [shards[which % len(shards)]]:
            children = self.service.split(shard, ways)
            self.service.hidden |= {child.id for child in children if late or shard.id in self.service.hidden}

    @rule(seconds=st.sampled_from([1.0, 30.0, 4 * HOUR, 13 * HOUR, 25 * HOUR]), trims=st.booleans())
    def wait(self, seconds: float, trims: bool) -> None:
        self.clock.now += seconds
        if seconds > 1.0:
            self.service.hidden.clear()
        if trims:
            self.service.trim()
            self.trims += 1

    @rule(
        operation=st.sampled_from(["DescribeStream", "GetShardIterator", "GetRecords"]),
        code=st.sampled_from(
            [
                "ExpiredIteratorException",
                "LimitExceededException",
                "ProvisionedThroughputExceededException",
                "InternalServerError",
            ]
        ),
    )
    def mishap(self, operation: str, code: str) -> None:
        if code == "ExpiredIteratorException":
            self.service.expire_iterators()
        else:
            self.service.refuse(operation, code, status=500 if code.startswith("Internal") else 400)

    # --- what readers do ---------------------------------------------------------------------------

    @rule(which=WHICH, to=st.none() | WHICH)
    def restart(self, which: int, to: int | None) -> None:
        """Goes on from the last change that was got, or from any before it."""
        consumer = self.consumers[which % 2]
        consumer.reader = self.readers.open(self.clock)
        if to is not None and consumer.got:
            del consumer.got[1 + to % len(consumer.got) :]

    @rule(which=WHICH, limit=LIMITS)
    def read(self, which: int, limit: int) -> None:
        self._read(self.consumers[which % 2], limit)

    @rule(which=WHICH, limit=LIMITS)
    def read_all(self, which: int, limit: int) -> None:
        consumer = self.consumers[which % 2]
        while self._read(consumer, limit):
            pass
        hidden = {r.number for name in self.service.hidden for r in self.service.shards[name].records}
        assert not self._unread(consumer).keys() - hidden

    def _read(self, consumer: Consumer, limit: int) -> bool:
        """Whether there may be more."""
        after = consumer.got[-1].position if consumer.got else None
        if after is None:
            consumer.before = {record.number for record in self.service.written} - self.service.kept()
            consumer.trims, consumer.at = self.trims, self.clock()
        try:
            response = consumer.reader.read(after, limit)
        except ChangesTrimmed:
            assert after is not None
            # The service also refuses to go on behind what was trimmed and read.
            assert consumer.trims < self.trims or (self.trims and self.clock() - consumer.at > UNSEEN)
            consumer.got.clear()
            return True
        for change in response.changes:
            consumer.got.append(self._checked(consumer, change))
        if response.changes:
            assert response.next == response.changes[-1].position
        return bool(response.changes)

    def _checked(self, consumer: Consumer, change: ItemChange) -> Delivered:
        unread = self._unread(consumer)
        item = int(change.key["PK"]["S"].removeprefix("item"))
        # Of one item, the next change is the oldest that was not read, even if it was trimmed.
        number = min(number for number, record in unread.items() if record.item == item)
        record = unread[number]
        images = record.body["dynamodb"]
        assert (change.old, change.new) == (images.get("OldImage"), images.get("NewImage"))
        assert change.at == images["ApproximateCreationDateTime"]
        return Delivered(record, change.position)

    def _unread(self, consumer: Consumer) -> dict[int, Record]:
        read = consumer.before | {each.record.number for each in consumer.got}
        return {record.number: record for record in self.service.written if record.number not in read}


@pytest.fixture
def readers() -> Iterator[Readers]:
    with open_readers() as opened:
        yield opened


@pytest.mark.simulation
def test_readers_get_every_change_once_and_in_order(readers: Readers) -> None:
    StreamMachine.readers = readers
    run_state_machine_as_test(
        StreamMachine, settings=settings(max_examples=examples(10), stateful_step_count=30, deadline=None)
    )
