"""Readers of change streams, and a server for them to read from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from adjoin.requests import ChangesResponse, ReadChanges
from adjoin.stores.dynamodb import AsyncDynamoDBStore
from adjoin.stores.dynamodb.access import ServiceAccess
from adjoin.stores.dynamodb.store import SharedStreams
from adjoin.stores.dynamodb.streams import Streams
from tests.stores.dynamodb.streams.service import Clock, StreamServer, stream_server


class Reader:
    """A program that reads the stream of the table `T`, on a store of its own."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, access: ServiceAccess, clock: Callable[[], float], deadline: float
    ) -> None:
        self._loop = loop
        self._streams = Streams(clock)
        self._store = AsyncDynamoDBStore(access=access, streams=SharedStreams(self._streams), deadline=deadline)

    def read(self, after: str | None = None, limit: int = 1000) -> ChangesResponse:
        (response,) = self._loop.run_until_complete(self._store.execute([ReadChanges("T", after, limit)]))
        assert isinstance(response, ChangesResponse)
        assert len(response.changes) <= limit
        return response

    def remembers(self) -> int:
        """How many things it keeps between readings."""
        return len(self._streams._views) + len(self._streams._places) + len(self._streams._ahead)

    def close(self) -> None:
        self._loop.run_until_complete(self._store.close())


class Readers:
    """Opens readers of one server, and closes them."""

    def __init__(self, server: StreamServer) -> None:
        self.server = server
        self._loop = asyncio.new_event_loop()
        self._access = ServiceAccess("us-east-1", server.url, None)
        self._opened: list[Reader] = []

    def open(self, clock: Clock, deadline: float = 60.0) -> Reader:
        self._opened.append(Reader(self._loop, self._access, clock, deadline))
        return self._opened[-1]

    def close_all(self) -> None:
        while self._opened:
            self._opened.pop().close()

    def close(self) -> None:
        self.close_all()
        self._loop.close()


@contextmanager
def open_readers() -> Iterator[Readers]:
    """Readers of a server that runs as long; it needs a `service` before it is read from."""
    with stream_server() as server:
        readers = Readers(server)
        try:
            yield readers
        finally:
            readers.close()
