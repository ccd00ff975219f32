"""The two loops that run every plan, one blocking and one awaiting.

`run` and `run_async` are the only places where a plan meets a store. A meter that is open in the
current context counts each round. In a rehearsal (`explain`), responses come from the rehearsal, and the
store is not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

from adjoin.errors import AdjoinError
from adjoin.requests import Plan, Request, Response
from adjoin.stores.interface import AsyncStore, Store

T = TypeVar("T")


class Watcher(Protocol):
    """An object that is called after each round: a meter."""

    def round(self, requests: Sequence[Request], responses: Sequence[Response]) -> None:
        """Records a round. `responses` is empty if one of the requests failed."""
        ...


class Rehearsal(Protocol):
    """An object that answers requests in place of a store."""

    def answer(self, requests: Sequence[Request]) -> list[Response]:
        """Returns a possible response to each request."""
        ...


WATCHERS: ContextVar[tuple[Watcher, ...]] = ContextVar("adjoin_watchers", default=())
REHEARSAL: ContextVar[Rehearsal | None] = ContextVar("adjoin_rehearsal", default=None)


@contextmanager
def unwatched() -> Iterator[None]:
    """In this block, plans are neither metered nor rehearsed. It is for work that the caller did not ask for."""
    watchers, rehearsal = WATCHERS.set(()), REHEARSAL.set(None)
    try:
        yield
    finally:
        WATCHERS.reset(watchers)
        REHEARSAL.reset(rehearsal)


def _thrown(plan: Plan[T], error: AdjoinError) -> Sequence[Request]:
    """Throws a store's error into the plan, and returns the requests with which the plan goes on.

    If the plan raises another error instead, that one gets the same `request_id`.
    """
    try:
        return plan.throw(error)
    except AdjoinError as named:
        named.request_id = named.request_id or error.request_id
        raise


def run(plan: Plan[T], store: Store) -> T:
    """Runs a plan on a store and returns its result."""
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
    """Runs a plan on an asynchronous store and returns its result."""
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
