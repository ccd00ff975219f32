"""The DynamoDB store for synchronous programs: the asynchronous store, run on event loops of its own.

A call takes an idle event loop, or creates one, and returns it afterwards. So threads do not wait for each other, and
there are as many loops as there were calls at the same time. A forked process starts with no loops and never touches
those of its parent.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from adjoin.errors import StoreClosed
from adjoin.late import later
from adjoin.requests import Request, Response
from adjoin.stores.dynamodb.access import ServiceAccess
from adjoin.stores.dynamodb.store import CONNECTIONS, DEADLINE, TIMEOUT, AsyncDynamoDBStore, SharedStreams
from adjoin.tables import KeyAttribute

if TYPE_CHECKING:
    import ctypes
    from concurrent import futures
else:
    ctypes = later("ctypes")
    futures = later("concurrent.futures")

T = TypeVar("T")

_PATIENCE = 0.5
"""Seconds that each step of closing a loop may take."""


class _Driver:
    """An event loop with its connections, which runs one call at a time."""

    def __init__(self, store: AsyncDynamoDBStore) -> None:
        self._loop = asyncio.new_event_loop()
        self._store = store
        self.is_broken = False
        """Whether a call was interrupted, for example by Ctrl-C, and left the loop in an unknown state."""

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        task = self._loop.create_task(self._store.execute(requests))
        try:
            return self._loop.run_until_complete(task)
        except BaseException as error:
            # A signal handler may raise any exception anywhere, also where the loop does not expect one.
            self.is_broken = not task.done() or not isinstance(error, Exception)
            self._leave()
            if task.done() and not task.cancelled():
                task.exception()
            raise

    def _leave(self) -> None:
        """Ends the run of the loop, if an interrupt came just before the loop itself did: between two of its lines.

        Otherwise this thread would have a running loop for ever, on which nothing runs.
        """
        if asyncio._get_running_loop() is self._loop:
            asyncio._set_running_loop(None)
        if self._loop.is_running():
            self._loop.__dict__["_thread_id"] = None

    def close(self) -> None:
        try:
            try:
                self._loop.run_until_complete(self._end())
            except RuntimeError:
                # A call that was interrupted as it began has left a callback that stops the loop, once.
                self._loop.run_until_complete(self._end())
        finally:
            # Do not wait for its threads: an address lookup may take longer than any deadline. They end by themselves.
            self._loop.close()

    async def _end(self) -> None:
        # An interrupted call leaves tasks, and some of them may never end.
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_PATIENCE)
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._store.close()


class _Drivers:
    """The idle drivers of one store in one process."""

    def __init__(self, access: ServiceAccess, make: Callable[[], AsyncDynamoDBStore]) -> None:
        self._access = access
        self._make = make
        self._idle: deque[_Driver] = deque()
        self._closed = False

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        if self._closed:
            raise StoreClosed("this graph was closed; open a new one")
        try:
            driver = self._idle.pop()
        except IndexError:
            driver = _Driver(self._make())
        try:
            return driver.execute(requests)
        finally:
            self._give_back(driver)

    def _give_back(self, driver: _Driver) -> None:
        if driver.is_broken:
            driver.close()
            return
        self._idle.append(driver)
        if self._closed:
            self.close()

    def close(self) -> None:
        self._closed = True
        while True:
            try:
                driver = self._idle.pop()
            except IndexError:
                return
            driver.close()

    def forget(self) -> None:
        """In a forked child, keeps the parent's drivers from being used, closed or collected.

        The child shares the selectors with its parent. Closing or collecting a loop here would unregister the parent's
        sockets.
        """
        for driver in self._idle:
            _keep_for_ever(driver)
        self._idle = deque()
        self._access.start_anew()


def _keep_for_ever(thing: object) -> None:
    """Takes a reference that is never released, so that not even the end of the program finalizes the object."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _away_from_loops(work: Callable[[], T]) -> T:
    """Runs `work` in this thread, or in another one if this thread already runs an event loop, as in notebooks."""
    if not _runs_a_loop():
        return work()
    pool = futures.ThreadPoolExecutor(1)
    under_way = pool.submit(work)
    try:
        return under_way.result()
    finally:
        # After an interrupt, do not wait for the work: it ends at its deadline and cleans up itself.
        pool.shutdown(wait=under_way.done())


def _runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_ALL: weakref.WeakSet[_Drivers] = weakref.WeakSet()


def _forget_all() -> None:
    for drivers in list(_ALL):
        drivers.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


class DynamoDBStore:
    """DynamoDB, or a compatible server, for synchronous programs; safe for many threads and after a fork.

    `connections` limits how many requests of one call are under way at once, `timeout` the seconds that a request may
    take, and `deadline` the seconds that it may take with all its retries.
    """

    creates_tables = False
    system = "aws.dynamodb"

    def __init__(
        self,
        *,
        region: str | None = None,
        endpoint: str | None = None,
        profile: str | None = None,
        connections: int = CONNECTIONS,
        timeout: float = TIMEOUT,
        deadline: float = DEADLINE,
    ) -> None:
        access = ServiceAccess(region, endpoint, profile)
        self.server = access.table_endpoint.host
        streams = SharedStreams()
        keys: dict[str, tuple[KeyAttribute, ...]] = {}
        self._drivers = _Drivers(
            access,
            lambda: AsyncDynamoDBStore(
                access=access, streams=streams, keys=keys, connections=connections, timeout=timeout, deadline=deadline
            ),
        )
        _ALL.add(self._drivers)
        # Closes a graph that the program did not close, when it is collected or the program ends.
        self._close = weakref.finalize(self, _away_from_loops, self._drivers.close)

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        return _away_from_loops(lambda: self._drivers.execute(requests))

    def close(self) -> None:
        self._close()
