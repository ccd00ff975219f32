"""Changes applied so that none holds up the others.

They are applied together, as many as go well. Where something fails, the halves are tried, the first one
first, down to the change that is to blame:

- one that can never be applied is set aside with its reason, and the others go on;
- one that cannot be applied now ends it: what comes before it is done, and it has to come again with all that
  follow.

What is about the table or the service as a whole is nobody's fault in particular, and no half is tried. What is no
`AdjoinError` is a fault of adjoin's, and is raised: nothing is set aside for it.
Everything may come again and again, because nothing is computed from a change itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from adjoin.errors import AdjoinError, Throttled, TransactionCanceled
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.maintenance.applying import apply_changes
from adjoin.plans.maintenance.asides import Unapplied, set_aside
from adjoin.plans.maintenance.entries import reason_of
from adjoin.plans.maintenance.passing import CONTENDED, NEVER, passes
from adjoin.plans.maintenance.postings import is_hopeless
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.maintenance.standing import keep
from adjoin.plans.maintenance.tenants import ByTenant, layout_for
from adjoin.requests import ItemChange

T = TypeVar("T")

TOGETHER = 5000
"""Changes that are applied together; what one of them is done, none of them has to come again."""
_OF_SOME = (*NEVER, *CONTENDED, Throttled)
"""Errors that may be about some changes only."""


@dataclass
class Outcome:
    """How far some changes were applied."""

    done: int = 0
    """So many from the first one on need not come again."""
    found: bool = False
    """Whether anything had to be looked at."""
    error: AdjoinError | None = None
    """Why the next one was not applied; None also if there was no more time."""


class _OutOfTime(Exception):
    pass


def apply_each(
    layout: BoundLayout,
    changes: Sequence[ItemChange | Unapplied],
    tally: Tally,
    has_time: Callable[[], bool] = lambda: True,
    together: int = TOGETHER,
) -> Plan[Outcome]:
    """Applies changes, so many `together`, until something is in the way now, or there is no time for a request.

    What is known to be no proper change comes as `Unapplied`, in its place. What is about the table as a whole is
    raised.
    """
    by_tenant = ByTenant(layout, changes)
    for part, _ in by_tenant.parts(0, len(changes)):
        if part.rules.declared:
            yield from keep(part)
    outcome = Outcome()
    pieces = deque((start, min(start + together, len(changes))) for start in range(0, len(changes), together))
    while pieces:
        start, end = pieces.popleft()
        # What was set aside before may be applied now, so each piece has a tally of its own.
        own = Tally()
        try:
            outcome.found |= yield from _within(has_time, _apply(by_tenant, start, end, own))
            tally.include(own)
        except _OutOfTime:
            tally.include(own.undone())
            return outcome
        except AdjoinError as problem:
            tally.include(own.undone())
            if not isinstance(problem, _OF_SOME):
                if passes(problem):
                    outcome.error = problem
                    return outcome
                raise
            if end - start > 1:
                middle = (start + end) // 2
                pieces.extendleft(((middle, end), (start, middle)))
                continue
            if not _is_for_ever(problem):
                outcome.error = problem
                return outcome
            tally.changes += 1
            outcome.found = True
            try:
                yield from _give_up(layout, changes[start], problem, tally)
            except AdjoinError as another:
                if not passes(another):
                    raise
                outcome.error = another
                return outcome
        outcome.done = end
    return outcome


def _apply(changes: ByTenant, start: int, end: int, tally: Tally) -> Plan[bool]:
    found = False
    for layout, some in changes.parts(start, end):
        found |= yield from apply_changes(layout, some, tally)
    for layout, each in changes.unapplied(start, end):
        yield from set_aside(layout, each, tally)
        found = True
    return found


def _give_up(layout: BoundLayout, change: ItemChange | Unapplied, problem: AdjoinError, tally: Tally) -> Plan[None]:
    if isinstance(change, Unapplied):
        raise problem
    unapplied = Unapplied(change.key, reason_of(problem), change.position, change.at)
    yield from set_aside(layout_for(layout, change), unapplied, tally, problem.__cause__)


def _is_for_ever(problem: AdjoinError) -> bool:
    return isinstance(problem, NEVER) or (isinstance(problem, TransactionCanceled) and is_hopeless(problem))


def _within(has_time: Callable[[], bool], plan: Plan[T]) -> Plan[T]:
    """The plan, as long as there is time: nothing is asked after that."""
    try:
        requests = next(plan)
        while True:
            if not has_time():
                plan.close()
                raise _OutOfTime
            try:
                responses = yield requests
            except AdjoinError as error:
                requests = plan.throw(error)
            else:
                requests = plan.send(responses)
    except StopIteration as done:
        result: T = done.value
        return result
