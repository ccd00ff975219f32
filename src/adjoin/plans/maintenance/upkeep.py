"""What is recorded about the upkeep of a graph: how far, whether something was missed, and when all was looked at.

    PK             SK           what it holds
    #=MAINTAIN     =position    position (how far the change stream was applied), at, changes (in all), rate (a second)
    #=MAINTAIN     =due         since, at, why: changes between those times may not have been applied
    #=MAINTAIN     =rebuilt     at (when the last rebuild that ran to its end began), of (when what it read was so)
    #=MAINTAIN     =verified    the same of the last audit that repaired everything

That something was missed stands until everything was worked out anew by somebody who began after it was recorded.
Times are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adjoin.errors import ConditionFailed, TransactionCanceled
from adjoin.expressions import Compare, Condition, Exists, IfNotExists, Not, Set, Value, attribute
from adjoin.layouts.interface import REVISION, BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import get_all
from adjoin.plans.maintenance.postings import new_revision
from adjoin.requests import Delete, Get, ItemResponse, Put, TransactWrite, Update
from adjoin.values import AttributeValue, Item

MAINTAIN = "MAINTAIN"
POSITION, DUE, REBUILT, VERIFIED = "position", "due", "rebuilt", "verified"
"""The names of the records."""
AT, SINCE, WHY, CHANGES, RATE, OF = "at", "since", "why", "changes", "rate", "of"
"""Their attributes; that of the position is called like its record."""
_LONGEST = 1000
"""Characters of a reason that are kept."""


@dataclass(frozen=True, slots=True)
class RebuildDue:
    """Changes that may not have been applied, because the stream did not keep them for long enough."""

    since: float
    """The last time that something was applied before."""
    at: float
    """When that was noticed; what was written since is applied."""
    reason: str


def key_of(layout: BoundLayout, name: str) -> Item:
    return layout.ledgers.record_key(MAINTAIN, name)


def number(value: float) -> AttributeValue:
    return {"N": f"{value:.3f}".rstrip("0").rstrip(".")}


def number_in(record: Mapping[str, AttributeValue] | None, name: str) -> float | None:
    return float(record[name]["N"]) if record is not None and name in record else None


def still(record: Item | None) -> Condition:
    """Holds as long as a record is what was read."""
    path = attribute(REVISION)
    return Not(Exists(path)) if record is None else Compare("=", path, Value(record[REVISION]))


# --- what was missed ---------------------------------------------------------------------------


def begin_again(layout: BoundLayout, record: Item | None, reason: str | None, now: float) -> Plan[Item | None]:
    """Forgets a position that cannot be gone on from; with a reason, records at once that a rebuild is due.

    Answers the new record of the position; None if somebody else moved it meanwhile.
    """
    kept = {name: value for name, value in (record or {}).items() if name in (CHANGES, RATE)}
    begun = key_of(layout, POSITION) | kept | {AT: number(now), REVISION: new_revision()}
    writes: list[Put | Update] = [Put(layout.table, begun, still(record))]
    if reason is not None:
        # What was missed before is missed still.
        since = IfNotExists(attribute(SINCE), Value(number(number_in(record, AT) or 0.0)))
        actions = (
            Set(attribute(SINCE), since),
            Set(attribute(AT), Value(number(now))),
            Set(attribute(WHY), Value({"S": reason[:_LONGEST]})),
            Set(attribute(REVISION), Value(new_revision())),
        )
        writes.append(Update(layout.table, key_of(layout, DUE), actions))
    try:
        yield (TransactWrite(tuple(writes)),)
    except TransactionCanceled as canceled:
        if all(each.code in ("None", "ConditionalCheckFailed") for each in canceled.reasons):
            return None
        raise
    return begun


def due_in(record: Item | None) -> RebuildDue | None:
    if record is None:
        return None
    return RebuildDue(float(record[SINCE]["N"]), float(record[AT]["N"]), record[WHY]["S"])


# --- everything looked at ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begun:
    """What was recorded when a rebuild or an audit began."""

    at: float
    due: Item | None
    """The record of what was missed before that."""


def begin(layout: BoundLayout, now: float) -> Plan[Begun]:
    response: ItemResponse
    (response,) = yield (Get(layout.table, key_of(layout, DUE), consistent=True),)
    return Begun(now, response.item)


def end(layout: BoundLayout, begun: Begun, name: str, read_at: float | None = None) -> Plan[None]:
    """Records that everything was worked out anew; what was missed before that is no longer due.

    `read_at` is when what was read was the case, where that is older than the beginning.
    """
    of = begun.at if read_at is None else min(begun.at, read_at)
    yield (Put(layout.table, key_of(layout, name) | {AT: number(begun.at), OF: number(of)}),)
    due = due_in(begun.due)
    if begun.due is None or due is None or (read_at is not None and read_at < due.at):
        return
    try:
        yield (Delete(layout.table, layout.key_of(begun.due), still(begun.due)),)
    except ConditionFailed:
        # More was missed meanwhile.
        return


def last_looked_at(layout: BoundLayout) -> Plan[float]:
    """Since when everything that is stored is known to be true, apart from what the stream tells; 0 if it is not."""
    keys = [key_of(layout, name) for name in (REBUILT, VERIFIED)]
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in keys])
    return max(number_in(each, OF) or 0.0 for each in found)
