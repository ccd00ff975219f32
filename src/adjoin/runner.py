"""The two loops that run every plan, one blocking and one awaiting.

`run` and `run_async` are the only places where a plan meets a store. `between` and `between_async` run work that needs
two stores: it is made of plans, each with the side on which it runs. A meter that is open in the
current context counts each round. In a rehearsal (`explain`), responses come from the rehearsal, and the
store is not used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Protocol, TypeVar

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


# --- two stores --------------------------------------------------------------------------------


class _Noting:
    """A watcher that keeps rounds for the watchers of another thread."""

    def __init__(self) -> None:
        self.rounds: list[tuple[Sequence[Request], Sequence[Response]]] = []

    def round(self, requests: Sequence[Request], responses: Sequence[Response]) -> None:
        self.rounds.append((requests, responses))


def between(
    work: Generator[Sequence[tuple[str, Plan[Any]]], list[Any], T],
    sides: Mapping[str, Callable[[Plan[Any]], Any]],
    helper: ThreadPoolExecutor,
) -> T:
    """Runs work between two stores. The first of several parts runs in this thread, the others in those of `helper`."""
    try:
        parts = next(work)
        while True:
            try:
                results = _side_by_side(parts, sides, helper)
            except AdjoinError as error:
                parts = work.throw(error)
                continue
            parts = work.send(results)
    except StopIteration as done:
        result: T = done.value
        return result


def _side_by_side(
    parts: Sequence[tuple[str, Plan[Any]]],
    sides: Mapping[str, Callable[[Plan[Any]], Any]],
    helper: ThreadPoolExecutor,
) -> list[Any]:
    (side, plan), *others = parts
    if not others:
        return [sides[side](plan)]
    # A meter counts in one thread only, so the rounds of the others are told to it at the end.
    noting = [_Noting() for _ in others]

    def watched(noted: _Noting, side: str, plan: Plan[Any]) -> Any:
        WATCHERS.set((noted,))
        return sides[side](plan)

    waiting = [
        helper.submit(partial(copy_context().run, partial(watched, noted, *part)))
        for noted, part in zip(noting, others, strict=True)
    ]
    try:
        first = sides[side](plan)
    finally:
        # A part that is under way is waited for, also after an error: it must not write later.
        for each in waiting:
            each.exception()
    for noted in noting:
        for requests, responses in noted.rounds:
            for watcher in WATCHERS.get():
                watcher.round(requests, responses)
    return [first, *(each.result() for each in waiting)]


async def between_async(
    work: Generator[Sequence[tuple[str, Plan[Any]]], list[Any], T],
    sides: Mapping[str, Callable[[Plan[Any]], Awaitable[Any]]],
) -> T:
    """Runs work between two asynchronous stores."""
    try:
        parts = next(work)
        while True:
            found = await asyncio.gather(*(sides[side](plan) for side, plan in parts), return_exceptions=True)
            failed = next((each for each in found if isinstance(each, BaseException)), None)
            if failed is None:
                parts = work.send(found)
            elif isinstance(failed, AdjoinError):
                parts = work.throw(failed)
            else:
                raise failed
    except StopIteration as done:
        result: T = done.value
        return result
