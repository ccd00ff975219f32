"""A store whose items are in memory and whose change stream is read as DynamoDB's is, both on one clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

from adjoin.requests import ChangesResponse, ReadChanges, Request, Response
from adjoin.stores.sqlite import SQLiteStore
from tests.aws.event_source_mapping import record_of
from tests.stores.dynamodb.streams.service import HOUR, KEYS, Clock, Record, StreamService, shown
from tests.stores.dynamodb.streams.world import World

TABLE = "adjoin"
ROLL = 4 * HOUR
"""How long a shard is written to, as far as the service can be seen to do."""


class Streamed:
    """Performs everything in memory, and gives each change to a model of DynamoDB Streams."""

    creates_tables = True

    def __init__(self, world: World) -> None:
        self.world = world
        self.inner = SQLiteStore(":memory:", clock=world.clock)
        self.dump = self.inner.dump
        self._position: str | None = None

    @property
    def service(self) -> StreamService:
        return self.world.service

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        answers: list[Response] = []
        for request in requests:
            if isinstance(request, ReadChanges):
                answers.append(self.world.reader.read(request.after, request.limit))
            else:
                answers += self.inner.execute([request])
                self._mirror()
        return answers

    def _mirror(self) -> None:
        while True:
            try:
                (found,) = self.inner.execute([ReadChanges(TABLE, self._position)])
            except Exception:
                # There is no table yet.
                return
            assert isinstance(found, ChangesResponse)
            for change in found.changes:
                item = crc32(change.key["PK"]["S"].encode()) % KEYS
                (shard,) = (each for each in self.service.open_shards if item in each.items)
                number = self.service._next()
                body: Any = record_of(change, number, TABLE)
                body["dynamodb"]["SequenceNumber"] = shown(number)
                shard.records.append(Record(number, self.world.clock(), item, body))
            if not found.changes:
                return
            self._position = found.next

    def close(self) -> None:
        self.inner.close()


class Passing:
    """Time that passes for a store: shards are closed and followed by others, and what is old is trimmed."""

    def __init__(self, clock: Clock, store: Any) -> None:
        self.clock, self.store = clock, store
        self._rolled = clock()

    def __call__(self, seconds: float) -> None:
        end = self.clock.now + seconds
        while self.clock.now < end:
            self.clock.now = min(end, self._rolled + ROLL)
            if isinstance(self.store, Streamed):
                if self.clock.now >= self._rolled + ROLL:
                    for shard in self.store.service.open_shards:
                        self.store.service.split(shard, 1)
                self.store.service.trim()
            if self.clock.now >= self._rolled + ROLL:
                self._rolled = self.clock.now
