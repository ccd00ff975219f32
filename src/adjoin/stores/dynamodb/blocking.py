"""The DynamoDB store for programs that wait: the asynchronous one, driven on event loops of its own.

A call takes an idle loop, or makes one, and gives it back: threads do not wait for each other, and there
are as many loops as there were calls at once. A process that was forked starts with none; the parent's
are never touched by it.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from adjoin.errors import StoreClosed
from adjoin.requests import Request, Response
from adjoin.stores.dynamodb.access import Access
from adjoin.stores.dynamodb.store import CONNECTIONS, DEADLINE, TIMEOUT, AsyncDynamoDBStore
from adjoin.stores.dynamodb.streams import Streams
from adjoin.tables import KeyAttribute

T = TypeVar("T")

_IDLE = 0.5
"""Seconds after which a loop that stood still looks for connections that the other side has closed."""
_PATIENCE = 0.5
"""Seconds that each part of closing a loop may take."""


class _Driver:
    """An event loop that one call at a time runs, with the connections on it."""

    def __init__(self, store: AsyncDynamoDBStore) -> None:
        self._loop = asyncio.new_event_loop()
        self._store = store
        self._used = 0.0
        self.is_broken = False
        """Whether a call was interrupted in the middle, as by the keyboard, and left the loop as it was then."""

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        task = self._loop.create_task(self._execute(requests))
        try:
            return self._loop.run_until_complete(task)
        except BaseException as error:
            # A handler of signals may raise anything anywhere: also where the loop does not expect it.
            self.is_broken = not task.done() or not isinstance(error, Exception)
            if task.done() and not task.cancelled():
                task.exception()
            raise

    async def _execute(self, requests: Sequence[Request]) -> list[Response]:
        if time.monotonic() - self._used > _IDLE:
            for _ in range(3):
                await asyncio.sleep(0)
        try:
            return await self._store.execute(requests)
        finally:
            self._used = time.monotonic()

    def close(self) -> None:
        try:
            self._loop.run_until_complete(self._end())
        finally:
            # Its threads, which look up addresses, end by themselves: one may take longer than any deadline.
            self._loop.close()

    async def _end(self) -> None:
        # An interrupted call leaves tasks behind, some of which may never end.
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

    def __init__(self, access: Access, make: Callable[[], AsyncDynamoDBStore]) -> None:
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
        """In a forked child: keep the parent's drivers from being used, closed or collected.

        A loop that is closed or collected here would take the sockets from the selector that it shares
        with the parent's.
        """
        for driver in self._idle:
            _keep_for_ever(driver)
        self._idle = deque()
        self._access.start_anew()


def _keep_for_ever(thing: object) -> None:
    """Takes a reference that nobody gives back, so that not even the end of the program finalizes it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _away_from_loops(work: Callable[[], T]) -> T:
    """Runs it here, or in a thread where this one runs an event loop already, as notebooks do."""
    if not _runs_a_loop():
        return work()
    pool = ThreadPoolExecutor(1)
    under_way = pool.submit(work)
    try:
        return under_way.result()
    finally:
        # Whoever interrupts this does not wait for the work, which ends by its deadline and cleans up behind itself.
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
    """DynamoDB, or a compatible server, for programs that wait; safe for many threads and after fork.

    `connections` bounds how many requests of one call are under way at once, `timeout` the seconds that
    one may take, and `deadline` the seconds that it may take with all its retries.
    """

    creates_tables = False

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
        access = Access(region, endpoint, profile)
        streams = Streams()
        keys: dict[str, tuple[KeyAttribute, ...]] = {}
        self._drivers = _Drivers(
            access,
            lambda: AsyncDynamoDBStore(
                access=access, streams=streams, keys=keys, connections=connections, timeout=timeout, deadline=deadline
            ),
        )
        _ALL.add(self._drivers)
        # A graph that nobody closed is closed when it is collected, or when the program ends.
        self._close = weakref.finalize(self, _away_from_loops, self._drivers.close)

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        return _away_from_loops(lambda: self._drivers.execute(requests))

    def close(self) -> None:
        self._close()
