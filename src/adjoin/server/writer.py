"""Writes of many clients in rounds: what waits together is committed together.

A round begins when everybody who asks lately has a write in it, or when a turn of the loop brings no further
one. One commit, and one synchronisation, then serves all of its writes, so that durability costs each of many
clients little.

It is performed where requests are read, so that no thread waits for another, and committed there too if
nothing has to reach the disk, or if there is only one who asks, and waits anyway. Else a thread of its own
waits for the disk, while requests that come meanwhile make the next round. What would take long, such as a
change of a table or waiting for another process that writes, is left to that thread altogether. So reads never
wait for a write to finish.
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
from adjoin.server.crowd import Crowd
from adjoin.stores.sqlite import SQLiteStore
from adjoin.stores.sqlite.rounds import Round

Done: TypeAlias = Callable[[Any], None]
"""Takes the response to a write, or its error, once it is committed."""
_Job: TypeAlias = tuple[Request, Done, int]
"""With how many items it writes."""

_MOST = 128
"""Items that are written in one round at most, so that nobody waits for long."""

_OF_ITEMS = frozenset((Put, Update, Delete, BatchWrite, TransactWrite))


class Writer:
    """Everything but `_run`, and what that calls, is for the thread of the loop."""

    def __init__(self, store: SQLiteStore, loop: asyncio.AbstractEventLoop, crowd: Crowd) -> None:
        self._store = store
        self._loop = loop
        self._crowd = crowd
        self._waiting: deque[_Job] = deque()
        self._gathered = 0
        """How many writes waited a turn of the loop ago."""
        self._is_busy = False
        """Whether a round is under way, or about to be."""
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="adjoin-writer", daemon=True)
        self._thread.start()

    def write(self, request: Request, done: Done) -> None:
        several = getattr(request, "writes", None)
        self._waiting.append((request, done, 1 if several is None else len(several)))
        if not self._is_busy:
            self._is_busy = True
            self._gather()

    def _gather(self) -> None:
        """Begins a round, or sees what the next turn of the loop brings."""
        count = len(self._waiting)
        if count == self._gathered or count >= min(len(self._crowd.active), _MOST):
            self._gathered = 0
            self._round()
        else:
            self._gathered = count
            self._loop.call_soon(self._gather)

    async def close(self) -> None:
        """Ends when everything that was asked for is written."""
        while self._is_busy:
            await asyncio.sleep(0.001)
        self._tasks.put(None)
        self._thread.join()

    # --- rounds --------------------------------------------------------------------------------

    def _round(self) -> None:
        jobs = self._next_jobs()
        requests = [request for request, _, _ in jobs]
        try:
            begun = self._store.begin(requests) if _OF_ITEMS.issuperset(map(type, requests)) else None
            if begun is not None and (not self._store.waits_for_disk or len(self._crowd.active) == 1):
                begun.commit()
                self._finish(jobs, begun.outcomes)
                return
        except Exception as error:
            self._finish(jobs, [error] * len(jobs))
            return
        self._tasks.put(partial(self._perform, jobs) if begun is None else partial(self._commit, jobs, begun))

    def _next_jobs(self) -> list[_Job]:
        jobs: list[_Job] = []
        room = _MOST
        while self._waiting and (not jobs or self._waiting[0][2] <= room):
            jobs.append(self._waiting.popleft())
            room -= jobs[-1][2]
        return jobs

    def _finish(self, jobs: list[_Job], outcomes: list[Any]) -> None:
        """Answers, and sees to what came meanwhile."""
        if self._waiting:
            self._loop.call_soon(self._gather)
        else:
            self._is_busy = False
        for (_, done, _), outcome in zip(jobs, outcomes, strict=True):
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
            outcomes = self._store.outcomes([request for request, _, _ in jobs])
        except Exception as error:
            outcomes = [error] * len(jobs)
        self._loop.call_soon_threadsafe(self._finish, jobs, outcomes)
