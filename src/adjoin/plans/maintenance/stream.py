"""The change stream, applied from where it was left: one step of `maintain`.

How far it was applied is an item of adjoin's own. It is only ever replaced by who read it, so that it
goes forward; who comes second goes on from where the first one stopped, and at worst applies again what
is applied.

Where the stream does not reach back to that place any more, it is applied from the oldest change that there is,
and it is recorded that a rebuild is due.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from adjoin.errors import AdjoinError, ChangesTrimmed, ConditionFailed, InvalidRequest
from adjoin.layouts.interface import REVISION, BoundLayout
from adjoin.plans import Plan
from adjoin.plans.maintenance.isolating import TOGETHER, apply_each
from adjoin.plans.maintenance.postings import new_revision
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.maintenance.upkeep import (
    AT,
    CHANGES,
    POSITION,
    RATE,
    begin_again,
    key_of,
    last_looked_at,
    number,
    number_in,
    still,
)
from adjoin.requests import ChangesResponse, Get, ItemResponse, Put, ReadChanges
from adjoin.units import MAX_CHANGES
from adjoin.values import Item

_FRESH = 60.0
"""Seconds for which a position stands without anything to apply; storing it is a change of its own."""
_SOON = 5.0
"""Seconds after which the end is stored behind what a maintainer wrote itself, so that nobody takes it for a lag."""
_SURELY_KEPT = 23 * 3600.0
"""Seconds for which a stream keeps changes; it is a day, and clocks may differ."""
_WINDOW = 60.0
"""Seconds over which a rate is told."""
_log = logging.getLogger("adjoin.maintain")


@dataclass
class Rate:
    """Changes a second, over about the last minute."""

    value: float = 0.0
    at: float = 0.0

    def add(self, count: int, now: float) -> None:
        self.value, self.at = faded(self.value, now - self.at) + count / _WINDOW, now


def faded(rate: float, seconds: float) -> float:
    """What a rate is after so many seconds in which nothing came."""
    return rate * math.exp(-max(0.0, seconds) / _WINDOW)


@dataclass
class Reading:
    """How far one maintainer has read."""

    record: Item | None = None
    """What is stored about it, as far as this one knows."""
    after: str | None = None
    is_begun: bool = False
    applied: int = 0
    """Changes that were applied since it was stored."""
    pending_since: float | None = None
    """When the first of what was applied since then was."""
    strayed: bool = False
    """Whether there was anything behind what is stored but the change of that itself."""
    is_early: bool = False
    """Whether what is stored is from before the end of the stream was seen."""
    lag: float = 0.0
    """Seconds by which the oldest change of the last reading was behind."""
    rate: Rate = field(default_factory=Rate)
    due: str | None = None
    """Why a rebuild is due, if this one found that changes were missed."""


def maintain_step(
    layout: BoundLayout,
    reading: Reading,
    tally: Tally,
    limit: int = MAX_CHANGES,
    clock: Callable[[], float] = time.time,
) -> Plan[bool]:
    """Applies the next changes; says whether there were any, so that there may be more."""
    if not reading.is_begun:
        response: ItemResponse
        (response,) = yield (Get(layout.table, key_of(layout, POSITION), consistent=True),)
        reading.record, reading.is_begun, reading.applied = response.item, True, 0
        reading.strayed, reading.is_early, reading.pending_since = False, False, None
        reading.after = None if response.item is None else response.item.get(POSITION, {}).get("S")
    changes = yield from _read(layout, reading, limit, clock)
    if changes is None:
        return True
    changes = yield from _read_on(layout, changes, limit)
    now, own = clock(), key_of(layout, POSITION)
    reading.lag = max(0.0, now - changes.changes[0].at) if changes.changes else 0.0
    reading.strayed |= any(change.key != own for change in changes.changes)
    counted = tally.changes
    outcome = yield from apply_each(layout, changes.changes, tally)
    reading.applied += tally.changes - counted
    reading.rate.add(tally.changes - counted, now)
    is_whole = outcome.done == len(changes.changes)
    reached = changes.next if is_whole else changes.changes[outcome.done - 1].position if outcome.done else None
    reading.after = changes.next
    is_drained = not changes.changes
    if outcome.found and reading.pending_since is None:
        reading.pending_since = now
    is_over = outcome.error is not None or not is_whole
    if reached is not None and (
        _is_worth_storing(reading, clock(), is_drained, is_over) or _is_due(reading, reached, clock(), is_drained)
    ):
        is_stored = yield from _store(layout, reading, reached, clock())
        reading.is_early = not is_drained
        if not is_stored and outcome.error is None:
            return True
    if outcome.error is not None:
        raise outcome.error
    return bool(changes.changes)


def leave(layout: BoundLayout, reading: Reading, clock: Callable[[], float] = time.time) -> Plan[None]:
    """Stores where a maintainer ends, unless that is stored.

    What it wrote itself is behind the last position that it stored. If all of that were trimmed before anybody goes on,
    something would seem to be missing where nothing was written. The same goes for a shard that was closed long ago.
    """
    is_behind = reading.strayed or reading.is_early or reading.pending_since is not None
    if reading.is_begun and is_behind and reading.after is not None:
        yield from _store(layout, reading, reading.after, clock())


def _read(
    layout: BoundLayout, reading: Reading, limit: int, clock: Callable[[], float]
) -> Plan[ChangesResponse | None]:
    """The next changes; None if somebody else has moved the position meanwhile."""
    reason, is_same = _forgotten(reading, clock()), True
    changes: ChangesResponse
    try:
        (changes,) = yield (ReadChanges(layout.table, reading.after, limit),)
    except (ChangesTrimmed, InvalidRequest) as error:
        if reading.after is None:
            raise
        # If there is no stream at all, this says so, and nothing is due. A position of another store is none here.
        (changes,) = yield (ReadChanges(layout.table, None, limit),)
        reason = str(error)
        is_same = isinstance(error, ChangesTrimmed) and not error.is_replaced
    if reason is None:
        return changes
    looked_at = yield from last_looked_at(layout)
    # What came since all was worked out is in the stream, if that is not long ago and the stream is the same.
    is_missing = not is_same or clock() - looked_at >= _SURELY_KEPT
    begun = yield from begin_again(layout, reading.record, reason if is_missing else None, clock())
    if begun is None:
        reading.is_begun = False
        return None
    reading.record, reading.after = begun, None
    if is_missing:
        _log.warning("a rebuild is due, and changes are applied from the oldest that there is: %s", reason)
        reading.due = reason
    return changes


def _read_on(layout: BoundLayout, found: ChangesResponse, limit: int) -> Plan[ChangesResponse]:
    """What follows on a full page, as far as it is applied together: a node is written once for all its edges."""
    page = found
    while len(page.changes) == limit and len(found.changes) + limit <= TOGETHER:
        try:
            (page,) = yield (ReadChanges(layout.table, page.next, limit),)
        except AdjoinError:
            # It will be told when it is read first.
            break
        found = ChangesResponse([*found.changes, *page.changes], page.next)
    return found


def _forgotten(reading: Reading, now: float) -> str | None:
    """Why changes may be missing before the oldest, where that is where to begin; None if none can be."""
    at = number_in(reading.record, AT)
    if reading.after is not None or at is None or now - at < _SURELY_KEPT:
        return None
    return "nothing was applied for longer than the stream keeps changes"


def _store(layout: BoundLayout, reading: Reading, reached: str, now: float) -> Plan[bool]:
    """Says whether the position was stored; if not, somebody else has moved it."""
    before = number_in(reading.record, CHANGES) or 0.0
    record = key_of(layout, POSITION) | {
        POSITION: {"S": reached},
        AT: number(now),
        CHANGES: number(before + reading.applied),
        RATE: number(faded(reading.rate.value, now - reading.rate.at)),
        REVISION: new_revision(),
    }
    try:
        yield (Put(layout.table, record, still(reading.record)),)
    except ConditionFailed:
        reading.is_begun = False
        return False
    reading.record, reading.applied, reading.strayed, reading.pending_since = record, 0, False, None
    return True


def _is_worth_storing(reading: Reading, now: float, is_drained: bool, is_over: bool) -> bool:
    """Whether a position behind what was applied is stored now.

    Once for all that there is: at the end, and before that so often that little comes again to who goes on.
    """
    if reading.pending_since is None:
        return False
    is_long_ago = not 0 <= now - reading.pending_since < _SOON
    return is_drained or is_over or is_long_ago or reading.applied >= MAX_CHANGES


def _is_due(reading: Reading, position: str, now: float, is_drained: bool) -> bool:
    """Whether a position that nothing was applied before is to be stored, so that it does not become too old.

    That waits for the end if it can: behind the last change, a position names the shards that are open now. Before it,
    it may name one that was closed long ago, and is gone soon.
    """
    record = reading.record
    if record is None or POSITION not in record:
        return True
    fresh = 10 * _FRESH if not is_drained else _SOON if reading.strayed else _FRESH
    # Clocks differ by a little; one that was far ahead is no reason to wait for it.
    return record[POSITION]["S"] != position and not -_FRESH <= now - float(record[AT]["N"]) <= fresh
