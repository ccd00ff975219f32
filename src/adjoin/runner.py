"""The two loops that run every plan, one blocking and one awaiting.

`run` and `run_async` are the only places where a plan meets a store. `between` and `between_async` run work that needs
two stores: it is made of plans, each with the side on which it runs. `adjoin.watching` tells those who
watch of each round, such as a meter. In a rehearsal (`explain`), responses come from the rehearsal, and the
store is not used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from logging import DEBUG
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from adjoin.errors import AdjoinError, InvalidRequest
from adjoin.requests import Plan, Request, Response
from adjoin.watching import EVERYWHERE, LOG, WATCHERS, WatchedRound, Watcher, tell, watched, watching

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from adjoin.stores.interface import AsyncStore, Store

T = TypeVar("T")


class Rehearsal(Protocol):
    """An object that answers requests in place of a store."""

    def answer(self, requests: Sequence[Request]) -> list[Response]:
        """Returns a possible response to each request."""
        ...


REHEARSAL: ContextVar[Rehearsal | None] = ContextVar("adjoin_rehearsal", default=None)


@contextmanager
def unwatched() -> Iterator[None]:
    """In this block, plans are not rehearsed, and the caller's block does not watch them.

    It is for work that the caller did not ask for.
    """
    watchers, rehearsal = WATCHERS.set(()), REHEARSAL.set(None)
    try:
        yield
    finally:
        WATCHERS.reset(watchers)
        REHEARSAL.reset(rehearsal)


def _thrown(plan: Plan[T], error: AdjoinError, requests: Sequence[Request]) -> Sequence[Request]:
    """Throws a store's error into the plan, and returns the requests with which the plan goes on.

    If the plan raises another error instead, that one gets the same `request_id`.
    """
    if isinstance(error, InvalidRequest):
        error.requests = requests
    try:
        return plan.throw(error)
    except AdjoinError as named:
        named.request_id = named.request_id or error.request_id
        raise


def run(plan: Plan[T], store: Store) -> T:
    """Runs a plan on a store and returns its result."""
    rehearsal = REHEARSAL.get()
    execute = store.execute if rehearsal is None else rehearsal.answer
    # Looked up here, so that a call that nobody watches does not pass through another module.
    is_watched = rehearsal is None and bool(WATCHERS.get() or EVERYWHERE or LOG.isEnabledFor(DEBUG))
    if is_watched:
        plan = watched(plan, watching(), store)
    try:
        requests = next(plan)
        while True:
            try:
                responses = execute(requests)
            except AdjoinError as error:
                requests = _thrown(plan, error, requests)
                continue
            except BaseException as error:
                if is_watched:
                    # Tells them, and raises it again.
                    plan.throw(error)
                raise
            requests = plan.send(responses)
    except StopIteration as done:
        result: T = done.value
        return result


async def run_async(plan: Plan[T], store: AsyncStore) -> T:
    """Runs a plan on an asynchronous store and returns its result."""
    rehearsal = REHEARSAL.get()
    # Looked up here, so that a call that nobody watches does not pass through another module.
    is_watched = rehearsal is None and bool(WATCHERS.get() or EVERYWHERE or LOG.isEnabledFor(DEBUG))
    if is_watched:
        plan = watched(plan, watching(), store)
    try:
        requests = next(plan)
        while True:
            try:
                responses = await store.execute(requests) if rehearsal is None else rehearsal.answer(requests)
            except AdjoinError as error:
                requests = _thrown(plan, error, requests)
                continue
            except BaseException as error:
                if is_watched:
                    # Tells them, and raises it again.
                    plan.throw(error)
                raise
            requests = plan.send(responses)
    except StopIteration as done:
        result: T = done.value
        return result


# --- two stores --------------------------------------------------------------------------------


class _Noting(Watcher):
    """Keeps rounds for the watchers of another thread."""

    def __init__(self) -> None:
        self.rounds: list[WatchedRound] = []

    def after(self, round: WatchedRound) -> None:
        self.rounds.append(round)


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
    # A meter counts in one thread only, so the rounds of the other threads are added at the end.
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
        for round in noted.rounds:
            for watcher in WATCHERS.get():
                tell(watcher.before, round)
                tell(watcher.after, round)
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
