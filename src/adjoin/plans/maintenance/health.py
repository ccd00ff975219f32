"""How maintenance of a graph stands: `g.health()`.

In: the records of `standing` and `report`, and the change stream after the stored position. Out: a
`Health`. Everything is read from the table and its stream, so it does not matter which process maintains the graph, or
whether any does.
"""

from __future__ import annotations

from collections.abc import Callable

from adjoin.dataclass import dataclass
from adjoin.errors import ChangesTrimmed, InvalidRequest
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.maintenance.isolating import item_in, layout_for
from adjoin.plans.maintenance.report import UNAPPLIED
from adjoin.plans.maintenance.standing import (
    AT,
    CHANGES,
    DUE,
    POSITION,
    RATE,
    REBUILT,
    VERIFIED,
    RebuildDue,
    due_in,
    fields,
    key_of,
    number_in,
    read_standing,
)
from adjoin.plans.maintenance.stream import faded
from adjoin.plans.steps.batches import Pages, get_all
from adjoin.requests import ChangesResponse, Get, ItemChange, Plan, Query, ReadChanges
from adjoin.values import Item

ASIDE = "ASIDE"
_LOOKS = 10
"""How many pages of the stream are searched for a change of a node or an edge, among those of adjoin's own items."""


@dataclass(frozen=True, slots=True)
class Health:
    """How up to date the aggregates and copied fields of a graph are. Times are seconds since 1970."""

    lag: float | None
    """Age in seconds of the oldest change that is not applied yet; 0 if all are applied, None if it is unknown."""
    at: float | None
    """When a maintainer last stored its position, which a running one does every minute; None if none ever did."""
    changes: int
    """Total number of changes that were applied."""
    rate: float
    """Changes per second, averaged over about the last minute."""
    set_aside: int
    """How many things are set aside: edges (counted once per rule), whole changes, and nodes."""
    rebuild_due: RebuildDue | None
    """Which changes may have been missed; None once a rebuild or `verify(repair=True)` has corrected this."""
    rebuilt_at: float | None
    """When the last whole rebuild began."""
    verified_at: float | None
    """When the last audit began that left nothing to repair."""
    uncounted: tuple[str, ...] = ()
    """The fields that are not yet counted as they are declared now, as "CUSTOMER.owed". A rebuild counts them."""


def health(layout: BoundLayout, clock: Callable[[], float]) -> Plan[Health]:
    """Reads how maintenance stands."""
    names = (POSITION, DUE, REBUILT, VERIFIED)
    found = yield from get_all([Get(layout.table, key_of(layout, name), consistent=True) for name in names])
    records = dict(zip(names, found, strict=True))
    yield from read_standing(layout)
    position, now = records[POSITION], clock()
    at = number_in(position, AT)
    lag = yield from _lag(layout, position, now)
    set_aside = yield from _counted(layout, UNAPPLIED)
    set_aside += yield from _counted(layout, ASIDE)
    return Health(
        lag,
        at,
        int(number_in(position, CHANGES) or 0),
        faded(number_in(position, RATE) or 0.0, now - (at or now)),
        set_aside,
        due_in(records[DUE]),
        number_in(records[REBUILT], AT),
        number_in(records[VERIFIED], AT),
        tuple(fields(layout.rules.standing.awaited)),
    )


def _lag(layout: BoundLayout, position: Item | None, now: float) -> Plan[float | None]:
    """The age of the oldest change after the position; None if the stream does not have it, or it is too far ahead."""
    if not layout.rules.groups and not layout.rules.copies:
        return 0.0
    after = (position or {}).get(POSITION, {}).get("S")
    for _ in range(_LOOKS):
        changes: ChangesResponse
        try:
            (changes,) = yield (ReadChanges(layout.table, after),)
        except (ChangesTrimmed, InvalidRequest):
            return None
        for change in changes.changes:
            if _matters(layout, change):
                return max(0.0, now - change.at)
        if not changes.changes:
            return 0.0
        after = changes.next
    return None


def _matters(layout: BoundLayout, change: ItemChange) -> bool:
    """Whether a change is of a node or an edge, and not of an item of adjoin's own."""
    own = layout_for(layout, change)
    return not own.is_bookkeeping(change.key) and own.kind_of(item_in(change)) is not None


def _counted(layout: BoundLayout, what: str) -> Plan[int]:
    """How many records of one kind exist."""
    partition, sort = layout.ledgers.records(what)
    pages, count = Pages([(what, Query(layout.table, partition, sort, count_only=True))]), 0
    while found := (yield from pages.next()):
        count += sum(page.count for _, page in found)
    return count
