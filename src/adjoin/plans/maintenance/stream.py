"""Reads the change stream from the stored position on, and has the changes applied: one step of `maintain`.

In: the stored position (see `standing`) and the changes after it. Out: the changes applied by `isolating`, the new
position stored, and numbers for the report. Above it are `verbs` and the runner, which call `Daemon.step` again and
again.

The position is stored only after the changes before it are applied. If a maintainer stops in between, the next one
applies some changes a second time, which does no harm. Only a process that has read the current position can replace
it. So it moves forward only. A second maintainer that loses this race continues from the position that the first one
stored.

A stream keeps changes for a limited time. If the stored position is older than the oldest change that is kept, changes
are applied from that oldest one, and a record says that a rebuild is due.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable
from dataclasses import field, replace

from adjoin.dataclass import dataclass
from adjoin.errors import (
    CONTENDED,
    AdjoinError,
    ChangesTrimmed,
    ConditionFailed,
    InvalidRequest,
    InvalidValue,
    passes,
    shown,
)
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import REVISION
from adjoin.plans.maintenance.isolating import TOGETHER, apply_each
from adjoin.plans.maintenance.report import MaintenanceReport, Tally
from adjoin.plans.maintenance.standing import (
    AT,
    CHANGES,
    POSITION,
    RATE,
    begin_again,
    key_of,
    last_looked_at,
    number,
    number_in,
)
from adjoin.plans.steps.again import new_revision, same
from adjoin.requests import ChangesResponse, Get, ItemResponse, Plan, Put, ReadChanges
from adjoin.units import CHANGES_KEPT, MAX_CHANGES
from adjoin.values import Item

# --- one step ----------------------------------------------------------------------------------


_FRESH = 60.0
"""Seconds for which a position is not stored again if nothing was applied.

To store a position is itself a write, and so a change in the stream. Without this pause, an idle maintainer would
keep itself busy.
"""
_SOON = 5.0
"""Seconds after which the position is stored again if the stream holds only what the maintainer itself wrote.

Otherwise those changes would look like a lag.
"""
_LONGEST_WAIT = 86_400.0
"""The greatest number of seconds between two looks for changes: older ones are not kept."""
_WINDOW = 60.0
"""Seconds over which a rate is averaged."""
_log = logging.getLogger("adjoin.maintain")


@dataclass
class Rate:
    """Changes per second, averaged over about the last minute."""

    value: float = 0.0
    at: float = 0.0

    def add(self, count: int, now: float) -> None:
        self.value, self.at = faded(self.value, now - self.at) + count / _WINDOW, now


def faded(rate: float, seconds: float) -> float:
    """The rate after this many seconds without a change."""
    return rate * math.exp(-max(0.0, seconds) / _WINDOW)


@dataclass
class Reading:
    """How far one maintainer has read, in memory. It runs ahead of the stored position."""

    record: Item | None = None
    """The stored record of the position, as this maintainer last read or wrote it."""
    after: str | None = None
    """The position after which the next changes are read; None for the oldest change of the stream."""
    is_begun: bool = False
    """Whether the record was read. It is set to False if the record has to be read again."""
    applied: int = 0
    """Number of changes that were applied since the position was stored."""
    pending_since: float | None = None
    """When the first of those changes was applied; None if there was nothing to do since then."""
    has_others: bool = False
    """Whether the stream had other changes after the stored position than the write of the position itself."""
    is_early: bool = False
    """Whether the position was stored before the end of the stream was seen."""
    lag: float = 0.0
    """Age in seconds of the oldest change that was read last."""
    rate: Rate = field(default_factory=Rate)
    due: str | None = None
    """Why a rebuild is due, if this maintainer found that changes were missed."""


def maintain_step(
    layout: BoundLayout,
    reading: Reading,
    tally: Tally,
    limit: int = MAX_CHANGES,
    clock: Callable[[], float] = time.time,
) -> Plan[bool]:
    """Applies the next changes. Returns True if there were any, so that there may be more."""
    if not reading.is_begun:
        response: ItemResponse
        (response,) = yield (Get(layout.table, key_of(layout, POSITION), consistent=True),)
        reading.record, reading.is_begun, reading.applied = response.item, True, 0
        reading.has_others, reading.is_early, reading.pending_since = False, False, None
        reading.after = None if response.item is None else response.item.get(POSITION, {}).get("S")
    changes = yield from _read(layout, reading, limit, clock)
    if changes is None:
        return True
    changes = yield from _read_on(layout, changes, limit)
    now, own = clock(), key_of(layout, POSITION)
    reading.lag = max(0.0, now - changes.changes[0].at) if changes.changes else 0.0
    reading.has_others |= any(change.key != own for change in changes.changes)
    counted = tally.changes
    outcome = yield from apply_each(layout, changes.changes, tally)
    reading.applied += tally.changes - counted
    reading.rate.add(tally.changes - counted, now)
    is_whole = outcome.done == len(changes.changes)
    # If some changes were not applied, the position must not move past the last one that was.
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
            # Another maintainer moved the position. The next step reads it, and continues from there.
            return True
    if outcome.error is not None:
        raise outcome.error
    return bool(changes.changes)


def leave(layout: BoundLayout, reading: Reading, clock: Callable[[], float] = time.time) -> Plan[None]:
    """Stores the position at which a maintainer ends, unless it is already stored.

    The stream may hold changes after the stored position that the maintainer itself wrote. If the stream trimmed them
    before the next maintainer starts, changes would seem to be missing, although no program wrote any. The same is true
    if the stored position names a shard of the stream that was closed long ago.
    """
    is_behind = reading.has_others or reading.is_early or reading.pending_since is not None
    if reading.is_begun and is_behind and reading.after is not None:
        yield from _store(layout, reading, reading.after, clock())


def _read(
    layout: BoundLayout, reading: Reading, limit: int, clock: Callable[[], float]
) -> Plan[ChangesResponse | None]:
    """The next changes; None if another maintainer has moved the position meanwhile."""
    reason, is_same = _forgotten(reading, clock()), True
    changes: ChangesResponse
    try:
        (changes,) = yield (ReadChanges(layout.table, reading.after, limit),)
    except (ChangesTrimmed, InvalidRequest) as error:
        if reading.after is None:
            raise
        # The position is trimmed, or of another store. If there is no stream at all, this second request raises an
        # error that says so, before a rebuild is recorded as due.
        (changes,) = yield (ReadChanges(layout.table, None, limit),)
        reason = str(error)
        is_same = isinstance(error, ChangesTrimmed) and not error.is_replaced
    if reason is None:
        return changes
    looked_at = yield from last_looked_at(layout)
    # After a recent rebuild or audit nothing is missing: the stream still has every change since then. This holds only
    # if it is the same stream, and not that of a table that replaced the old one.
    is_missing = not is_same or clock() - looked_at >= CHANGES_KEPT
    begun = yield from begin_again(layout, reading.record, reason if is_missing else None, clock())
    if begun is None:
        reading.is_begun = False
        return None
    reading.record, reading.after = begun, None
    if is_missing:
        _log.warning("a rebuild is due, and changes are applied from the oldest one in the stream: %s", reason)
        reading.due = reason
    return changes


def _read_on(layout: BoundLayout, found: ChangesResponse, limit: int) -> Plan[ChangesResponse]:
    """Reads further pages as long as each is full, up to the size of a batch.

    A larger batch saves writes: a node is written once for all its edges in the batch.
    """
    page = found
    while len(page.changes) == limit and len(found.changes) + limit <= TOGETHER:
        try:
            (page,) = yield (ReadChanges(layout.table, page.next, limit),)
        except AdjoinError:
            # The changes read so far can still be applied. The next step reads this page first, and raises the error.
            break
        found = ChangesResponse([*found.changes, *page.changes], page.next)
    return found


def _forgotten(reading: Reading, now: float) -> str | None:
    """Why changes may be missing before the oldest one of the stream; None if none can be missing.

    This concerns only a maintainer that has no position but has maintained before: `begin_again` removed the position.
    """
    at = number_in(reading.record, AT)
    if reading.after is not None or at is None or now - at < CHANGES_KEPT:
        return None
    return "nothing was applied for longer than the stream keeps changes"


def _store(layout: BoundLayout, reading: Reading, reached: str, now: float) -> Plan[bool]:
    """Stores a position. Returns False if another maintainer has moved the position meanwhile."""
    before = number_in(reading.record, CHANGES) or 0.0
    record = key_of(layout, POSITION) | {
        POSITION: {"S": reached},
        AT: number(now),
        CHANGES: number(before + reading.applied),
        RATE: number(faded(reading.rate.value, now - reading.rate.at)),
        REVISION: new_revision(),
    }
    try:
        yield (Put(layout.table, record, same(reading.record, REVISION)),)
    except ConditionFailed:
        reading.is_begun = False
        return False
    reading.record, reading.applied, reading.has_others, reading.pending_since = record, 0, False, None
    return True


def _is_worth_storing(reading: Reading, now: float, is_drained: bool, is_over: bool) -> bool:
    """Whether to store a position after changes were applied.

    It is stored once when the stream is drained, to save writes. In a long run it is stored more often, so that the
    next maintainer has little to apply again if this one stops.
    """
    if reading.pending_since is None:
        return False
    is_long_ago = not 0 <= now - reading.pending_since < _SOON
    return is_drained or is_over or is_long_ago or reading.applied >= MAX_CHANGES


def _is_due(reading: Reading, position: str, now: float, is_drained: bool) -> bool:
    """Whether to store a position although nothing was applied, so that the stored one does not become too old.

    If possible, this waits until the stream is drained. A position after the last change names the shards of the stream
    that are open now. An earlier position may name a shard that was closed long ago and will soon be deleted.
    """
    record = reading.record
    if record is None or POSITION not in record:
        return True
    fresh = 10 * _FRESH if not is_drained else _SOON if reading.has_others else _FRESH
    # The clocks of two machines differ a little. If the stored time is far in the future, do not wait until then.
    at = number_in(record, AT) or 0.0
    return record[POSITION].get("S") != position and not -_FRESH <= now - at <= fresh


# --- a whole run -------------------------------------------------------------------------------


_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds before the first retry after an error, and the upper limit. The pause doubles with each failure."""
_TELL = 60.0
"""Seconds between two lines in the log."""


class Daemon:
    """One run of `maintain`: decides what comes after each step, and counts what was done.

    It does not sleep itself. `step` returns the seconds to wait, so the same plans serve `Graph` and `AsyncGraph`.
    """

    def __init__(
        self,
        *,
        once: bool = False,
        every: float = 1.0,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        if type(every) not in (int, float) or not 0 < every <= _LONGEST_WAIT:
            raise InvalidValue(f"every must be a number of seconds above 0 and at most a day, got {shown(every)}")
        self._once, self._every, self._clock, self._chance = once, every, clock, chance
        self._reading, self._total, self._told = Reading(), Tally(), Tally()
        self._told_at = clock()
        self._failures = self._retries = 0
        self._is_drained = False
        """Whether the last step left nothing that can be applied now."""

    def step(self, layout: BoundLayout) -> Plan[float | None]:
        """Applies the next changes. Returns the seconds to wait before the next step, or None if the run is over."""
        own, self._is_drained = Tally(), False
        try:
            has_more = yield from maintain_step(layout, self._reading, own, clock=self._clock)
        except AdjoinError as error:
            self._count(own)
            if self._once or not (passes(error) or isinstance(error, CONTENDED)):
                raise
            return self._failed(error)
        self._count(own)
        if self._reading.pending_since is None:
            # A run has recovered only when a position is stored after everything that was applied. A step that applies
            # changes but fails to store their position would start at the same place again.
            if self._failures:
                _log.info("maintenance continues, after %d attempts", self._failures + 1)
            self._failures = 0
        self._is_drained = not has_more
        self._tell()
        if has_more:
            return 0.0
        return None if self._once else self._every

    def leave(self, layout: BoundLayout) -> Plan[None]:
        """Ends the run at the present position."""
        try:
            yield from leave(layout, self._reading, self._clock)
        except AdjoinError as error:
            # An earlier position is stored. Changes that are applied again do no harm.
            _log.warning("the last position was not stored: %s", error)
        self._tell(is_last=True)

    def report(self) -> MaintenanceReport:
        """What this run has done so far."""
        reading = self._reading
        return replace(
            self._total.report(),
            lag=reading.lag,
            rate=faded(reading.rate.value, self._clock() - reading.rate.at),
            rebuild_due=reading.due,
            retries=self._retries,
        )

    def _count(self, own: Tally) -> None:
        self._told.include(own)
        self._total.include(own)

    def _failed(self, error: AdjoinError) -> float:
        """Counts a failed step. Returns the seconds to wait before the next one.

        Half of the pause is random, so that several maintainers do not retry at the same instant.
        """
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self._failures, 10)) * (0.5 + self._chance() / 2)
        self._failures += 1
        self._retries += 1
        # The stored position is right, whatever was applied after it. So the next step starts from there.
        self._reading.is_begun = False
        _log.warning(
            "maintenance cannot continue now, and tries again in %.1f s (attempt %d): %s: %s",
            pause,
            self._failures + 1,
            type(error).__name__,
            error,
        )
        return pause

    def _tell(self, *, is_last: bool = False) -> None:
        """Writes a line into the log, at most once a minute, and only if anything was done."""
        seconds = self._clock() - self._told_at
        if not is_last and 0 <= seconds < _TELL:
            return
        some = self._told.report()
        if some.changes or some.set_aside:
            _log.info(
                "%d changes in %.0f s (%.1f per second), %d nodes and %d edges brought up to date, %d set aside; %s",
                some.changes,
                max(seconds, 0.0),
                some.changes / max(seconds, 1.0),
                some.nodes,
                some.edges,
                len(some.set_aside),
                "nothing is left" if self._is_drained else f"{self._reading.lag:.1f} s behind",
            )
        self._told, self._told_at = Tally(), self._clock()
