"""Starts and stops a server on an address, in a thread of its own."""

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
from adjoin.locations import FileLocation, parse_location
from adjoin.server.http import MAX_CONNECTIONS, REQUEST_TIMEOUT, Bounds, Connection, Crowd
from adjoin.server.negotiation import Admission, is_loopback
from adjoin.server.service import Service
from adjoin.server.signatures import KeyPair
from adjoin.stores.sqlite import SQLiteStore
from adjoin.stores.sqlite.file import Durability

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

_log = logging.getLogger(__name__)

_SWEEP = 10.0
"""Seconds between two searches for expired items."""
_LATELY = 1.0
"""Seconds between two checks for requests and clients that take too long. A connection without a request for one to
two such periods is no longer active."""
_LAST_PORT = 65535
_OTHER_FILES = 64
_PATIENCE = 5.0
"""Seconds for which a server that is being stopped waits for its unanswered requests."""

_KEY_PAIR = "access_key and secret_key (for `adjoin serve`: ADJOIN_ACCESS_KEY and ADJOIN_SECRET_KEY in the environment)"


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Returns uvloop's loop factory if it is installed, because its I/O takes half the time; None for asyncio's."""
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    except ImportError:
        return None
    return factory


class Server:
    """A running server for one file. `endpoint` is its URL; `close` stops it."""

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
                InvalidLocation(f"cannot listen at {self._host}:{self._port}: {error.strerror or error}")
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
        # Gives the transports a turn to close before the loop ends.
        await asyncio.sleep(0)

    def switch(self, store: SQLiteStore) -> None:
        """Answers from another store from now on, at the same address and on the open connections.

        Earlier requests are answered from the earlier store, which is then closed.
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
        """Deletes expired items regularly, also while nobody writes."""
        while True:
            await asyncio.sleep(_SWEEP)
            try:
                await asyncio.to_thread(self._store.sweep)
            except StoreClosed:
                # `switch` has replaced and closed this store.
                continue
            except AdjoinError as error:
                _log.warning("expired items were not removed: %s", error)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LATELY)
            try:
                self._crowd.look()
            except Exception:
                # The exception must not end this task: then no connection would be checked any more.
                _log.exception("an error in the server ended its look at idle connections")

    def wait(self) -> None:
        """Blocks until the server is closed."""
        self._thread.join()

    def close(self) -> None:
        """Answers the requests that have arrived, and stops the server. A second call does nothing."""
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
    """Starts a server that answers DynamoDB's own protocol from a file, or from ":memory:".

        with adjoin.serve("education.db") as server:
            dynamodb = boto3.resource("dynamodb", endpoint_url=server.endpoint)

    It runs in a thread of its own until it is closed or the block ends. The file is created if it does not exist,
    and graphs may be open on it at the same time. Port 0 chooses a free port. `durability` says what a finished
    write survives: a loss of "power", or only the end of the "process".

    With a key pair, the server answers only requests that were signed with it. A key pair is required if other
    machines can reach the server; at 127.0.0.1 and without one, it accepts any signature.

    Pages in a browser may send requests only if their origin is in `allow_origins`, such as "http://localhost:3000";
    "*" allows every page. Without a key pair, the server answers only to loopback names and to `allow_hosts`.

    If there are more than `max_connections`, those that have been idle the longest are closed. A request that is not
    complete `request_timeout` seconds after it began is refused.
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
        raise InvalidLocation(f"{port} is not a port to listen on; choose one from 1 to {_LAST_PORT}, or 0 for any")
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
    """Returns how many connections the limit of open files allows, with some files left for the program itself."""
    if resource is None:
        return sys.maxsize
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if most == resource.RLIM_INFINITY else max(1, most - _OTHER_FILES)


def _several(names: Collection[str]) -> Collection[str]:
    """Returns a collection of names. A single text counts as one name, not as a collection of letters."""
    return (names,) if isinstance(names, str) else names
