"""Applies changes in batches, so that one bad change does not block the others.

In: changes in the order of the stream, from `stream` or from the Lambda function. Out: an `Outcome` that says how many
of them, from the first one on, are done. Each batch is divided by tenant and applied by `affected`.

If a batch fails, its halves are tried, the first half first, until the change that causes the failure is alone:

- A change that can never be applied is set aside with its reason, and the others continue.
- A change that cannot be applied now, for example because of contention, ends the run. All changes before it are done.
  It has to be delivered again, with all that follow it.

An error that concerns the table or the service as a whole is not caused by a single change, so no halves are tried. An
exception that is not an `AdjoinError` is a bug in adjoin. It is raised, and nothing is set aside for it.

A change may be applied again and again, because nothing is computed from a change itself. So a batch that fails halfway
needs no undo.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from adjoin.dataclass import dataclass
from adjoin.entity_types import EntityType
from adjoin.errors import CONTENDED, NEVER, AdjoinError, Throttled, TransactionCanceled, passes
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.counting.edge_state import reason_of
from adjoin.plans.counting.node_transaction import is_hopeless
from adjoin.plans.maintenance.affected import apply_changes
from adjoin.plans.maintenance.report import Tally, Unapplied, set_aside
from adjoin.plans.maintenance.standing import keep
from adjoin.plans.shards import written
from adjoin.plans.steps.batches import place_of
from adjoin.requests import ItemChange, Plan
from adjoin.values import Item

# --- changes by tenant -------------------------------------------------------------------------


def layout_for(layout: BoundLayout, change: ItemChange | Unapplied) -> BoundLayout:
    """The layout of the tenant that a change belongs to; the given one if it belongs to no tenant."""
    if isinstance(change, Unapplied):
        names = {each.name for each in layout.definition.keys}
        if change.key.keys() != names or not all(map(_is_text, change.key.values())):
            return layout
        item = change.key
    else:
        item = item_in(change)
    tenant = layout.tenant_in(item)
    return layout if tenant is None else layout.for_tenant(tenant)


def item_in(change: ItemChange) -> Item:
    """The item that changed: as it is now, or as it was if it was deleted, or else its key."""
    return change.new or change.old or change.key


class ByTenant:
    """Changes, each with the layout of its tenant. A change of one of adjoin's own items has none, and is skipped."""

    def __init__(self, layout: BoundLayout, changes: Sequence[ItemChange | Unapplied]) -> None:
        self._changes = changes
        self._layouts: list[BoundLayout | None] = []
        self._kinds: dict[int, EntityType] = {}
        """The classes of changed items as far as they are known already, by the places of the changes."""
        start, beside = layout.ledgers.edge_start, set[str]()
        for place, change in enumerate(changes):
            if isinstance(change, Unapplied):
                self._layouts.append(layout_for(layout, change))
                continue
            # Most changes in the stream are ledgers and positions that a maintainer itself wrote. Their keys say so;
            # the items need not be parsed. A store may parse the key whenever it is accessed, so that is done once.
            key = change.key
            place_in_table = place_of(key)
            if place_in_table[0] in beside:
                self._layouts.append(None)
                continue
            # A node or an edge by its whole key belongs to no tenant, even if the key begins as a tenant's would.
            if not layout.is_bookkeeping(key):
                if (kind := layout.kind_of(item_in(change))) is not None:
                    self._kinds[place] = kind
                    self._layouts.append(layout)
                    continue
            elif layout.is_own_record(key):
                if place_in_table[-1].startswith(start):
                    # Everything in a partition with a ledger is adjoin's own, and there are usually many ledgers in it.
                    beside.add(place_in_table[0])
                self._layouts.append(None)
                continue
            own = layout_for(layout, change)
            self._layouts.append(None if own.is_bookkeeping(key) else own)

    def layouts(self) -> list[BoundLayout]:
        """The layouts of all tenants that have a change."""
        changed = zip(self._changes, self._layouts, strict=True)
        found: dict[str | None, BoundLayout] = {}
        for change, layout in changed:
            if layout is not None and layout.tenant not in found and isinstance(change, ItemChange):
                found[layout.tenant] = layout
        return list(found.values())

    def parts(self, start: int, end: int) -> list[tuple[BoundLayout, list[ItemChange], list[EntityType | None]]]:
        """The changes from `start` to `end`, grouped by tenant, in their order; and their classes if these are known.

        Classes are in a list of their own: a pair for each change would be more for Python's garbage collector.
        """
        found: dict[str | None, tuple[BoundLayout, list[ItemChange], list[EntityType | None]]] = {}
        for place in range(start, end):
            change, layout = self._changes[place], self._layouts[place]
            if layout is not None and isinstance(change, ItemChange):
                _, changes, kinds = found.setdefault(layout.tenant, (layout, [], []))
                changes.append(change)
                kinds.append(self._kinds.get(place))
        return list(found.values())

    def unapplied(self, start: int, end: int) -> Iterator[tuple[BoundLayout, Unapplied]]:
        """Those from `start` to `end` that the caller already knows cannot be applied."""
        for change, layout in zip(self._changes[start:end], self._layouts[start:end], strict=True):
            if layout is not None and isinstance(change, Unapplied):
                yield layout, change


def _is_text(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("S"), str)


# --- isolating ---------------------------------------------------------------------------------


T = TypeVar("T")

TOGETHER = 5000
"""Batch size. Once a batch is applied, none of its changes has to be delivered again."""
_OF_SOME = (*NEVER, *CONTENDED, Throttled)
"""Errors that may be caused by some of the changes only, so that it helps to try the halves."""


@dataclass
class Outcome:
    """How far a sequence of changes was applied."""

    done: int = 0
    """This many changes, from the first one on, need not be delivered again."""
    found: bool = False
    """Whether there was any work to do."""
    error: AdjoinError | None = None
    """Why the next change was not applied; None if all were, or if the time was over."""


class _OutOfTime(Exception):
    pass


def apply_each(
    layout: BoundLayout,
    changes: Sequence[ItemChange | Unapplied],
    tally: Tally,
    has_time: Callable[[], bool] = lambda: True,
    together: int = TOGETHER,
) -> Plan[Outcome]:
    """Applies changes in batches of `together`, until one cannot be applied now, or the time is over.

    The caller passes a change that it cannot parse as `Unapplied`, in its place in the order. An error that concerns
    the table as a whole and does not pass by itself is raised.
    """
    by_tenant = ByTenant(layout, changes)
    outcome = Outcome()
    try:
        for part in by_tenant.layouts():
            if part.rules.declared:
                # After the changes were read: so declarations that were in force when a change was made are known here.
                yield from keep(part)
    except AdjoinError as problem:
        if not passes(problem):
            raise
        outcome.error = problem
        return outcome
    pieces = deque((start, min(start + together, len(changes))) for start in range(0, len(changes), together))
    while pieces:
        start, end = pieces.popleft()
        # Each batch has its own tally: if it fails, its halves are applied again, and would be counted twice.
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
                # The first half goes first, because `done` counts from the first change on.
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
    """Applies the changes from `start` to `end`, tenant by tenant. Returns whether there was any work."""
    found = False
    for layout, some, kinds in changes.parts(start, end):
        plan = apply_changes(layout, some, tally, kinds)
        # What is maintained may be in an index, whose shards grow with what is written there.
        found |= yield from plan if layout.overloaded is None else written(layout, plan)
    for layout, each in changes.unapplied(start, end):
        yield from set_aside(layout, each, tally)
        found = True
    return found


def _give_up(layout: BoundLayout, change: ItemChange | Unapplied, problem: AdjoinError, tally: Tally) -> Plan[None]:
    """Sets a change aside that can never be applied."""
    if isinstance(change, Unapplied):
        # To set it aside is all that was tried, and even that failed.
        raise problem
    unapplied = Unapplied(change.key, reason_of(problem), change.position, change.at)
    yield from set_aside(layout_for(layout, change), unapplied, tally, problem.__cause__)


def _is_for_ever(problem: AdjoinError) -> bool:
    """Whether the same change would fail with the same error again."""
    return isinstance(problem, NEVER) or (isinstance(problem, TransactionCanceled) and is_hopeless(problem))


def _within(has_time: Callable[[], bool], plan: Plan[T]) -> Plan[T]:
    """Runs a plan as long as there is time, and asks before each round of requests.

    The Lambda function needs this: it must report how far it came before its own time is over.
    """
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
