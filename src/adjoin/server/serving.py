"""A server on an address, in a thread of its own: started, stopped, and cleanly at that."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from importlib import import_module
from types import TracebackType
from typing import Self

from adjoin.errors import AdjoinError, InvalidLocation, StoreClosed
from adjoin.server.http import MAX_CONNECTIONS, REQUEST_TIMEOUT, Bounds, Connection, Crowd
from adjoin.server.negotiation import Admission, is_loopback
from adjoin.server.service import Service
from adjoin.server.signatures import KeyPair
from adjoin.stores.locations import FileLocation, parse_location
from adjoin.stores.sqlite import SQLiteStore
from adjoin.stores.sqlite.file import Durability

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

_log = logging.getLogger(__name__)

_SWEEP = 10.0
"""Seconds between two looks for items that have expired."""
_LATELY = 1.0
"""Seconds after which a connection on which nothing is asked is not active any more, or up to twice as many; and
between two looks for requests and clients that take too long."""
_LAST_PORT = 65535
_OTHER_FILES = 64
_PATIENCE = 5.0
"""Seconds in which requests that are under way may end when the server is stopped."""

_KEY_PAIR = "access_key and secret_key (for `adjoin serve`: ADJOIN_ACCESS_KEY and ADJOIN_SECRET_KEY in the environment)"


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """That of uvloop where it is installed, which takes half the time for what comes and goes; None for asyncio's."""
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    except ImportError:
        return None
    return factory


class Server:
    """Answers DynamoDB's protocol over one file until it is closed; `endpoint` is where."""

    def __init__(
        self,
        store: SQLiteStore,
        host: str,
        port: int,
        keys: KeyPair | None = None,
        admission: Admission | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self._store = store
        self._keys = keys
        self._admission = admission or Admission(host, signed=keys is not None)
        self._bounds = bounds
        self._host = host
        self._port = port
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._service: Service
        self._crowd: Crowd
        self._started: Future[str] = Future()
        self._thread = threading.Thread(target=self._run, name="adjoin-server", daemon=True)
        self._thread.start()
        self.endpoint = self._started.result()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._crowd = Crowd(self._loop.time, self._bounds)
        self._service = Service(self._store, self._loop, self._crowd, self._admission, self._keys)
        self._crowd.answer = self._service.answer
        try:
            listening = await self._loop.create_server(
                lambda: Connection(self._crowd, self._admission.is_own_host), self._host, self._port, backlog=1024
            )
        except OSError as error:
            await self._service.close()
            self._started.set_exception(
                InvalidLocation(f"{self._host}:{self._port} cannot be listened at: {error.strerror or error}")
            )
            return
        host, port = listening.sockets[0].getsockname()[:2]
        self._started.set_result(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        tasks = [self._loop.create_task(self._sweep()), self._loop.create_task(self._look())]
        await self._stop.wait()
        for task in tasks:
            task.cancel()
        listening.close()
        for connection in list(self._crowd.open):
            connection.shut()
        deadline = self._loop.time() + _PATIENCE
        pause = 0.0
        while self._crowd.open and self._loop.time() < deadline:
            await asyncio.sleep(pause)
            pause = 0.001
        await self._service.close()
        for connection in list(self._crowd.open):
            connection.drop()
        # So that they are closed when the loop ends.
        await asyncio.sleep(0)

    def switch(self, store: SQLiteStore) -> None:
        """Answers over another store from now on, at the same address and on the connections that are open.

        What was asked before is answered over the store before, which is then closed.
        """
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self._switch(store), self._loop).result()

    async def _switch(self, store: SQLiteStore) -> None:
        assert self._loop is not None
        service, self._service = self._service, Service(store, self._loop, self._crowd, self._admission, self._keys)
        self._crowd.answer = self._service.answer
        before, self._store = self._store, store
        await service.close()
        before.close()

    async def _sweep(self) -> None:
        """Removes what has expired, also while nobody writes."""
        while True:
            await asyncio.sleep(_SWEEP)
            try:
                await asyncio.to_thread(self._store.sweep)
            except StoreClosed:
                # Another took its place.
                continue
            except AdjoinError as error:
                _log.warning("expired items were not removed: %s", error)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LATELY)
            try:
                self._crowd.look()
            except Exception:
                # Or nobody would look any more.
                _log.exception("a connection could not be looked at for a fault of the server")

    def wait(self) -> None:
        """Until somebody closes it."""
        self._thread.join()

    def close(self) -> None:
        """Answers what was asked, and ends; again does nothing."""
        if self._thread.is_alive() and self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve(
    path: str | os.PathLike[str] = ":memory:",
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    durability: Durability = "power",
    access_key: str | None = None,
    secret_key: str | None = None,
    allow_origins: Collection[str] = (),
    allow_hosts: Collection[str] = (),
    max_connections: int = MAX_CONNECTIONS,
    request_timeout: float = REQUEST_TIMEOUT,
) -> Server:
    """Starts a server that answers DynamoDB's own protocol over a file, or over ":memory:".

        with adjoin.serve("education.db") as server:
            dynamodb = boto3.resource("dynamodb", endpoint_url=server.endpoint)

    It runs in a thread of its own until it is closed, or the block ends. A file is made if it is not there,
    and graphs may be open on it meanwhile. Port 0 is any that is free. `durability` is what a finished write
    survives: loss of "power", or only the end of the "process".

    With a key pair it answers only requests that were signed with it. One is needed where others than the
    programs on this machine can reach it; at 127.0.0.1 and without one, any signature is accepted.

    Pages in a browser may ask only if their origin is in `allow_origins`, such as "http://localhost:3000"; "*" is
    every page. Without a key pair it answers only to loopback names and to `allow_hosts`.

    With more than `max_connections`, those make room that have asked nothing for the longest time. A request that
    has not come whole `request_timeout` seconds after it began is refused.
    """
    if bool(access_key) != bool(secret_key):
        raise InvalidLocation(f"one half of a key pair is missing; give both, {_KEY_PAIR}, or neither")
    keys = KeyPair(access_key, secret_key) if access_key and secret_key else None
    if keys is None and not is_loopback(host):
        raise InvalidLocation(
            f"at {host} others can reach the server; give it a key pair that requests must be signed with, {_KEY_PAIR},"
            " or let it listen at 127.0.0.1"
        )
    if not 0 <= port <= _LAST_PORT:
        raise InvalidLocation(f"{port} is no port to listen at; choose one from 1 to {_LAST_PORT}, or 0 for any")
    admission = Admission(host, _several(allow_hosts), _several(allow_origins), signed=keys is not None)
    bounds = Bounds(min(max_connections, _most_sockets()), request_timeout)
    location = parse_location(path)
    if not isinstance(location, FileLocation):
        raise InvalidLocation(f"{path} is DynamoDB itself, which needs no server; name a file, or :memory:")
    store = SQLiteStore(location.path, **{"durability": durability, **location.options})
    try:
        return Server(store, host, port, keys, admission, bounds)
    except BaseException:
        store.close()
        raise


def _most_sockets() -> int:
    """Connections for which this process may open files, with some left for the rest of the program."""
    if resource is None:
        return sys.maxsize
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if most == resource.RLIM_INFINITY else max(1, most - _OTHER_FILES)


def _several(names: Collection[str]) -> Collection[str]:
    """One name may stand for itself: as a collection it would be its letters."""
    return (names,) if isinstance(names, str) else names
