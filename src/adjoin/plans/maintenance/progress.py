"""The records about maintenance: how far it is, whether changes were missed, and when everything was last checked.

`stream` reads and writes the position. It also records that a rebuild is due. A rebuild and an audit record when they
began, and remove the record that a rebuild is due. `health` reads all of them.

    PK             SK           what it holds
    #=MAINTAIN     =position    position (how far the stream was applied), at, changes (in all), rate (per second)
    #=MAINTAIN     =due         since, at, why: changes between those times may not have been applied
    #=MAINTAIN     =rebuilt     at (when the last complete rebuild began), of (the time of the data that it read)
    #=MAINTAIN     =verified    the same for the last audit that repaired everything

The record that a rebuild is due stays until a rebuild or audit that began after it was recorded has ended. Times are
seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping

from adjoin.dataclass import dataclass
from adjoin.errors import FAILED_CONDITION, ConditionFailed, TransactionCanceled
from adjoin.expressions import IfNotExists, Set, Value, attribute
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import REVISION
from adjoin.plans.steps.again import new_revision, same
from adjoin.plans.steps.batches import get_all
from adjoin.requests import Delete, Get, ItemResponse, Plan, Put, TransactWrite, Update
from adjoin.values import AttributeValue, Item

MAINTAIN = "MAINTAIN"
POSITION, DUE, REBUILT, VERIFIED = "position", "due", "rebuilt", "verified"
"""The names of the records."""
AT, SINCE, WHY, CHANGES, RATE, OF = "at", "since", "why", "changes", "rate", "of"
"""Their attributes. The attribute with the position has the same name as its record."""
_LONGEST = 1000
"""The most characters of a reason that are stored."""


@dataclass(frozen=True, slots=True)
class RebuildDue:
    """Changes that may not have been applied, because the stream did not keep them long enough."""

    since: float
    """When changes were last applied before the gap."""
    at: float
    """When the gap was noticed. What was written after that is applied."""
    reason: str


def key_of(layout: BoundLayout, name: str) -> Item:
    return layout.ledgers.record_key(MAINTAIN, name)


def number(value: float) -> AttributeValue:
    return {"N": f"{value:.3f}".rstrip("0").rstrip(".")}


def number_in(record: Mapping[str, AttributeValue] | None, name: str) -> float | None:
    """A number of a record; None if there is none, or if another program wrote something else."""
    value = (record or {}).get(name, {}).get("N")
    return None if value is None else float(value)


# --- missed changes ----------------------------------------------------------------------------


def begin_again(layout: BoundLayout, record: Item | None, reason: str | None, now: float) -> Plan[Item | None]:
    """Removes a position from which the stream cannot be read. With a reason, records that a rebuild is due.

    Both happen in one transaction, so that no gap is forgotten. Returns the new record of the position, or None if
    another maintainer moved the position meanwhile.
    """
    kept = {name: value for name, value in (record or {}).items() if name in (CHANGES, RATE)}
    begun = key_of(layout, POSITION) | kept | {AT: number(now), REVISION: new_revision()}
    writes: list[Put | Update] = [Put(layout.table, begun, same(record, REVISION))]
    if reason is not None:
        # If a rebuild is already due, the gap begins where that one began.
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
        if all(each.code in ("None", FAILED_CONDITION) for each in canceled.reasons):
            return None
        raise
    return begun


def due_in(record: Item | None) -> RebuildDue | None:
    if record is None:
        return None
    since, at = (number_in(record, name) or 0.0 for name in (SINCE, AT))
    return RebuildDue(since, at, record.get(WHY, {}).get("S", ""))


# --- rebuilds and audits -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begun:
    """What a rebuild or an audit remembers from its beginning."""

    at: float
    due: Item | None
    """The record that a rebuild is due, as it was then."""


def begin(layout: BoundLayout, now: float) -> Plan[Begun]:
    """Call this when a rebuild or an audit begins, and pass the result to `end`."""
    response: ItemResponse
    (response,) = yield (Get(layout.table, key_of(layout, DUE), consistent=True),)
    return Begun(now, response.item)


def end(layout: BoundLayout, begun: Begun, name: str, read_at: float | None = None) -> Plan[None]:
    """Records that everything was computed anew, and removes the record that a rebuild was due at the beginning.

    `read_at` is the time of the data that was read, if it is older than the beginning, as for an export.
    """
    of = begun.at if read_at is None else min(begun.at, read_at)
    yield (Put(layout.table, key_of(layout, name) | {AT: number(begun.at), OF: number(of)}),)
    due = due_in(begun.due)
    if begun.due is None or due is None or (read_at is not None and read_at < due.at):
        return
    try:
        yield (Delete(layout.table, layout.key_of(begun.due), same(begun.due, REVISION)),)
    except ConditionFailed:
        # Further changes were missed meanwhile, so a rebuild is still due.
        return


def last_looked_at(layout: BoundLayout) -> Plan[float]:
    """The time of the data of the last complete rebuild or audit; 0 if there was none.

    Aggregates are right as of that time. With all changes since then, which the stream may have, they are right now.
    """
    keys = [key_of(layout, name) for name in (REBUILT, VERIFIED)]
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in keys])
    return max(number_in(each, OF) or 0.0 for each in found)
