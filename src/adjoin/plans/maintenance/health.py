"""How the upkeep of a graph stands, for whoever asks: `g.health()`.

Everything is read from the table and its change stream, so it does not matter which process maintains the graph, or
whether any does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from adjoin.errors import ChangesTrimmed, InvalidRequest
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import get_all
from adjoin.plans.maintenance.asides import UNAPPLIED
from adjoin.plans.maintenance.standing import fields, read_standing
from adjoin.plans.maintenance.stream import faded
from adjoin.plans.maintenance.tenants import layout_for
from adjoin.plans.maintenance.upkeep import (
    AT,
    CHANGES,
    DUE,
    POSITION,
    RATE,
    REBUILT,
    VERIFIED,
    RebuildDue,
    due_in,
    key_of,
    number_in,
)
from adjoin.requests import ChangesResponse, Get, ItemChange, PageResponse, Query, ReadChanges
from adjoin.values import Item

ASIDE = "ASIDE"
_LOOKS = 10
"""Readings of the stream in which a change is looked for that matters, among those that adjoin makes itself."""


@dataclass(frozen=True, slots=True)
class Health:
    """How a graph's aggregates and copies are kept; times are seconds since 1970."""

    lag: float | None
    """Seconds since the oldest change that is not applied yet; 0 if all are, None where that cannot be told."""
    at: float | None
    """When a maintainer last said how far it was, at least once a minute while one runs; None if none ever did."""
    changes: int
    """Changes that were applied in all."""
    rate: float
    """Changes a second, over about the last minute."""
    set_aside: int
    """What cannot be applied now: edges, each by each rule, and whole changes and nodes."""
    rebuild_due: RebuildDue | None
    """Which changes may have been missed; None once a rebuild or `verify(repair=True)` has put that right."""
    rebuilt_at: float | None
    """When the last whole rebuild began."""
    verified_at: float | None
    """When the last audit began that left nothing to repair."""
    uncounted: tuple[str, ...] = ()
    """The fields that are declared otherwise than they were counted, as "CUSTOMER.owed", until a rebuild has ended."""


def health(layout: BoundLayout, clock: Callable[[], float]) -> Plan[Health]:
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
    if not layout.rules.accounts and not layout.rules.copies:
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
    own = layout_for(layout, change)
    return not own.is_bookkeeping(change.key) and own.kind_of(change.new or change.old or change.key) is not None


def _counted(layout: BoundLayout, what: str) -> Plan[int]:
    partition, sort = layout.ledgers.records(what)
    query, found = Query(layout.table, partition, sort, count_only=True), 0
    while True:
        page: PageResponse
        (page,) = yield (query,)
        found += page.count
        if page.last is None:
            return found
        query = replace(query, start=page.last)
