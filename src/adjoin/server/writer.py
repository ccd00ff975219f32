"""Writes of many clients in one thread: what waits together is committed together.

Reads never wait for it. One synchronisation to disk then serves all writes of a round, so that
durability costs each of many clients little.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, TypeAlias

from adjoin.requests import Request

Outcomes: TypeAlias = Callable[[Sequence[Request]], list[Any]]
_Job: TypeAlias = tuple[Request, "asyncio.Future[Any]"]

_MOST = 64
"""Writes that are committed together at most, so that none waits for long."""


class Writer:
    """`outcomes` performs writes, and answers for each its response or its error."""

    def __init__(self, outcomes: Outcomes, loop: asyncio.AbstractEventLoop) -> None:
        self._outcomes = outcomes
        self._loop = loop
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="adjoin-writer", daemon=True)
        self._thread.start()

    def write(self, request: Request) -> asyncio.Future[Any]:
        """A future of the response; an error of the request is its exception."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.put((request, future))
        return future

    def close(self) -> None:
        """Ends when everything that was asked for is written."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            first = self._jobs.get()
            if first is None:
                return
            jobs = [first]
            ends = False
            while len(jobs) < _MOST and not self._jobs.empty():
                job = self._jobs.get()
                if job is None:
                    ends = True
                    break
                jobs.append(job)
            outcomes: list[Any]
            try:
                outcomes = self._outcomes([request for request, _ in jobs])
            except BaseException as error:
                outcomes = [error] * len(jobs)
            self._loop.call_soon_threadsafe(_settle, jobs, outcomes)
            if ends:
                return


def _settle(jobs: list[_Job], outcomes: list[Any]) -> None:
    for (_, future), outcome in zip(jobs, outcomes, strict=True):
        if future.cancelled():
            continue
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
