"""Writes of many clients in rounds: what waits together is committed together.

A round is performed where requests are read, so that no thread waits for another, and committed there too
if nothing has to reach the disk; else a thread of its own waits for the disk, while requests that come
meanwhile make the next round. One synchronisation then serves all writes of a round, so that durability
costs each of many clients little. What would take long, such as a change of a table or waiting for another
process that writes, is left to that thread altogether. So reads never wait for a write to finish.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeAlias

from adjoin.requests import BatchWrite, Delete, Put, Request, TransactWrite, Update
from adjoin.stores.sqlite import SQLiteStore
from adjoin.stores.sqlite.rounds import Round

Done: TypeAlias = Callable[[Any], None]
"""Takes the response to a write, or its error, once it is committed."""
_Job: TypeAlias = tuple[Request, Done]

_MOST = 128
"""Items that are written in one round at most, so that nobody waits for long."""

_OF_ITEMS = (Put, Update, Delete, BatchWrite, TransactWrite)


class Writer:
    """Everything but `_run`, and what that calls, is for the thread of the loop."""

    def __init__(self, store: SQLiteStore, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._loop = loop
        self._waiting: deque[_Job] = deque()
        self._is_busy = False
        """Whether a round is under way, or about to be."""
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="adjoin-writer", daemon=True)
        self._thread.start()

    def write(self, request: Request, done: Done) -> None:
        self._waiting.append((request, done))
        if not self._is_busy:
            self._is_busy = True
            # Requests that are there at the same time are read first, and share the round.
            self._loop.call_soon(self._round)

    async def close(self) -> None:
        """Ends when everything that was asked for is written."""
        while self._is_busy:
            await asyncio.sleep(0.001)
        self._tasks.put(None)
        self._thread.join()

    # --- rounds --------------------------------------------------------------------------------

    def _round(self) -> None:
        jobs = self._next_jobs()
        requests = [request for request, _ in jobs]
        try:
            begun = self._store.begin(requests) if all(type(each) in _OF_ITEMS for each in requests) else None
            if begun is not None and not self._store.waits_for_disk:
                begun.commit()
                self._finish(jobs, begun.outcomes)
                return
        except Exception as error:
            self._finish(jobs, [error] * len(jobs))
            return
        self._tasks.put(partial(self._perform, jobs) if begun is None else partial(self._commit, jobs, begun))

    def _next_jobs(self) -> list[_Job]:
        jobs = [self._waiting.popleft()]
        weight = _weight(jobs[0])
        while self._waiting and weight + _weight(self._waiting[0]) <= _MOST:
            weight += _weight(self._waiting[0])
            jobs.append(self._waiting.popleft())
        return jobs

    def _finish(self, jobs: list[_Job], outcomes: list[Any]) -> None:
        """Answers, and sees to what came meanwhile."""
        if not self._waiting:
            self._is_busy = False
        elif self._store.waits_for_disk:
            # First, so that the disk is at work while answers are sent.
            self._round()
        else:
            self._loop.call_soon(self._round)
        for (_, done), outcome in zip(jobs, outcomes, strict=True):
            done(outcome)

    # --- what takes long -----------------------------------------------------------------------

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()

    def _commit(self, jobs: list[_Job], begun: Round) -> None:
        try:
            begun.commit()
            outcomes = begun.outcomes
        except Exception as error:
            outcomes = [error] * len(jobs)
        self._loop.call_soon_threadsafe(self._finish, jobs, outcomes)

    def _perform(self, jobs: list[_Job]) -> None:
        outcomes: list[Any]
        try:
            outcomes = self._store.outcomes([request for request, _ in jobs])
        except Exception as error:
            outcomes = [error] * len(jobs)
        self._loop.call_soon_threadsafe(self._finish, jobs, outcomes)


def _weight(job: _Job) -> int:
    request = job[0]
    return len(request.writes) if isinstance(request, BatchWrite | TransactWrite) else 1
