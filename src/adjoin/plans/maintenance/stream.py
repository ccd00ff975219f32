"""The change stream, applied from where it was left: `maintain`.

How far it was applied is an item of adjoin's own. It is only ever replaced by who read it, so that it
goes forward; who comes second goes on from where the first one stopped, and at worst applies again what
is applied.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from adjoin.errors import ConditionFailed
from adjoin.expressions import Compare, Condition, Exists, Not, Value, attribute
from adjoin.layouts.interface import REVISION, BoundLayout
from adjoin.plans import Plan
from adjoin.plans.maintenance.isolating import apply_each
from adjoin.plans.maintenance.postings import new_revision
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import ChangesResponse, Get, ItemResponse, Put, ReadChanges
from adjoin.units import MAX_CHANGES
from adjoin.values import Item

POSITION, AT = "position", "at"
_FRESH = 60.0
"""Seconds for which a position stands without anything to apply; storing it is a change of its own."""


@dataclass
class Reading:
    """How far one maintainer has read."""

    record: Item | None = None
    """What is stored about it, as far as this one knows."""
    after: str | None = None
    is_begun: bool = False


def maintain_step(
    layout: BoundLayout,
    reading: Reading,
    tally: Tally,
    limit: int = MAX_CHANGES,
    clock: Callable[[], float] = time.time,
) -> Plan[bool]:
    """Applies the next changes; says whether there were any, so that there may be more."""
    key = layout.ledgers.record_key("MAINTAIN", POSITION)
    if not reading.is_begun:
        response: ItemResponse
        (response,) = yield (Get(layout.table, key, consistent=True),)
        reading.record, reading.is_begun = response.item, True
        reading.after = None if response.item is None else response.item[POSITION]["S"]
    changes: ChangesResponse
    (changes,) = yield (ReadChanges(layout.table, reading.after, limit),)
    outcome = yield from apply_each(layout, changes.changes, tally)
    is_whole = outcome.done == len(changes.changes)
    reached = changes.next if is_whole else changes.changes[outcome.done - 1].position if outcome.done else None
    reading.after = changes.next
    if reached is not None and (outcome.found or _is_due(reading.record, reached, clock())):
        record = key | {POSITION: {"S": reached}, AT: {"N": str(int(clock()))}, REVISION: new_revision()}
        try:
            yield (Put(layout.table, record, _still(reading.record)),)
            reading.record = record
        except ConditionFailed:
            reading.is_begun = False
            if outcome.error is None:
                return True
    if outcome.error is not None:
        raise outcome.error
    return bool(changes.changes)


def _is_due(record: Item | None, position: str, now: float) -> bool:
    """Whether a position that nothing was applied before is to be stored, so that it does not become too old."""
    if record is None:
        return True
    return record[POSITION]["S"] != position and now - float(record[AT]["N"]) > _FRESH


def _still(record: Item | None) -> Condition:
    path = attribute(REVISION)
    return Not(Exists(path)) if record is None else Compare("=", path, Value(record[REVISION]))
