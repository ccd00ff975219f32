"""The two loops that drive every plan, and what watches them.

`run` and `run_async` are the only places where a plan meets a store. A meter that is open in the
running context is told of every round; in a rehearsal (`explain`) no store is asked at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

from adjoin.errors import AdjoinError
from adjoin.plans import Plan
from adjoin.requests import Request, Response
from adjoin.stores.interface import AsyncStore, Store

T = TypeVar("T")


class Watcher(Protocol):
    def round(self, requests: Sequence[Request], responses: Sequence[Response]) -> None:
        """A round is over; there are no responses if one of its requests failed."""
        ...


class Rehearsal(Protocol):
    def answer(self, requests: Sequence[Request]) -> list[Response]:
        """What the store might answer, without asking it."""
        ...


WATCHERS: ContextVar[tuple[Watcher, ...]] = ContextVar("adjoin_watchers", default=())
REHEARSAL: ContextVar[Rehearsal | None] = ContextVar("adjoin_rehearsal", default=None)


@contextmanager
def unwatched() -> Iterator[None]:
    """What runs in this block is nobody's concern: it is neither metered nor rehearsed."""
    watchers, rehearsal = WATCHERS.set(()), REHEARSAL.set(None)
    try:
        yield
    finally:
        WATCHERS.reset(watchers)
        REHEARSAL.reset(rehearsal)


def _thrown(plan: Plan[T], error: AdjoinError) -> Sequence[Request]:
    """What the plan asks next; an error that it raises instead is about the same request of the service."""
    try:
        return plan.throw(error)
    except AdjoinError as named:
        named.request_id = named.request_id or error.request_id
        raise


def run(plan: Plan[T], store: Store) -> T:
    rehearsal = REHEARSAL.get()
    execute = store.execute if rehearsal is None else rehearsal.answer
    watchers = WATCHERS.get() if rehearsal is None else ()
    try:
        requests = next(plan)
        while True:
            try:
                responses = execute(requests)
            except AdjoinError as error:
                for watcher in watchers:
                    watcher.round(requests, ())
                requests = _thrown(plan, error)
                continue
            for watcher in watchers:
                watcher.round(requests, responses)
            requests = plan.send(responses)
    except StopIteration as done:
        result: T = done.value
        return result


async def run_async(plan: Plan[T], store: AsyncStore) -> T:
    rehearsal = REHEARSAL.get()
    watchers = WATCHERS.get() if rehearsal is None else ()
    try:
        requests = next(plan)
        while True:
            try:
                responses = await store.execute(requests) if rehearsal is None else rehearsal.answer(requests)
            except AdjoinError as error:
                for watcher in watchers:
                    watcher.round(requests, ())
                requests = _thrown(plan, error)
                continue
            for watcher in watchers:
                watcher.round(requests, responses)
            requests = plan.send(responses)
    except StopIteration as done:
        result: T = done.value
        return result
