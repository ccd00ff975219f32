"""A table with a stream, what is written to it, and a reader of it."""

from __future__ import annotations

from collections.abc import Iterable

from adjoin.requests import ItemChange
from tests.stores.dynamodb.streams.readers import Reader, Readers
from tests.stores.dynamodb.streams.service import HOUR, KEYS, Clock, StreamService

OTHER = KEYS - 1
"""An item in the last shard, where 0 is in the first."""


class World:
    """A table with a stream, and a reader of it."""

    def __init__(self, readers: Readers, clock: Clock) -> None:
        self.readers, self.clock = readers, clock
        self.reset()
        self.reader = self.another_reader()

    def reset(self, shards: int = 1, *, stretch: float = 3 * HOUR, strict: bool = True) -> StreamService:
        self.service = self.readers.server.service = StreamService(self.clock, shards, stretch=stretch, strict=strict)
        return self.service

    def another_reader(self, deadline: float = 60.0) -> Reader:
        return self.readers.open(self.clock, deadline)

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


def values(changes: Iterable[ItemChange]) -> list[str]:
    return ["" if change.new is None else change.new["v"]["S"] for change in changes]
