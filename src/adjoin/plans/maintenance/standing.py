"""The records about maintenance of a table: how far it is, what it missed, and by which declarations it counts.

    PK             SK           what it holds
    #=MAINTAIN     =position    position (how far the stream was applied), at, changes (in all), rate (per second)
    #=MAINTAIN     =due         since, at, why: changes between those times may not have been applied
    #=MAINTAIN     =rebuilt     at (when the last complete rebuild began), of (the time of the data that it read)
    #=MAINTAIN     =verified    the same for the last audit that repaired everything
    #=MAINTAIN     =rules       rules: rule to {k: the key of its declaration, empty if it is no longer maintained;
                                a: the attribute that holds its values; c: whether all nodes are counted;
                                l: whether nodes name it; t: since when it is maintained}
                                current, former: a hash of all declarations of the last program, and of those before it

Times are seconds since 1970.

**Position and rebuilds.** `stream` reads and writes the position. It also records that a rebuild is due. A rebuild and
an audit record when they began, and remove the record that a rebuild is due. It stays until one that began after it was
recorded has ended. `health` reads all of them.

**Declarations.** In: the rules of this graph (`layout.rules`) and the record in the table. Out:
`layout.rules.standing`, which says which rules are not yet counted, and the record brought up to date. `isolating`
calls `keep` before it applies changes, a rebuild calls `take_up` and `end_rebuild`, and opening a graph calls
`opened_standing`.

The first program that maintains a table writes the record. A program with other declarations finds that some of its
rules are not yet counted, and logs this. When it first runs `maintain` or `rebuild`, its declarations become those of
the table. Changes after that are applied by these declarations, and a rebuild counts what was written before. From then
on, programs with former declarations do not maintain the table: they would skip changes that the new declarations have
to count.

A maintainer reads the record after it has read the changes that it applies. So if a change was made after declarations
were taken up, the maintainer that applies this change knows these declarations.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from adjoin.dataclass import dataclass
from adjoin.errors import (
    FAILED_CONDITION,
    ConditionFailed,
    DeclarationReplaced,
    InvalidItem,
    TableNotFound,
    TransactionCanceled,
)
from adjoin.expressions import IfNotExists, Set, Value, attribute
from adjoin.late import later
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import REVISION
from adjoin.requests import Delete, DescribeTable, Get, ItemResponse, Plan, Put, TableResponse, TransactWrite, Update
from adjoin.rules import Rules, Standing
from adjoin.values import AttributeValue, Item

if TYPE_CHECKING:
    from adjoin.plans.maintenance import report as reports
    from adjoin.plans.steps import again as trying
    from adjoin.plans.steps import batches
    from adjoin.plans.steps.again import Attempt, Done
else:
    reports = later("adjoin.plans.maintenance.report")
    batches = later("adjoin.plans.steps.batches")
    trying = later("adjoin.plans.steps.again")

MAINTAIN = "MAINTAIN"
POSITION, DUE, REBUILT, VERIFIED = "position", "due", "rebuilt", "verified"
"""The names of the records."""
AT, SINCE, WHY, CHANGES, RATE, OF = "at", "since", "why", "changes", "rate", "of"
"""Their attributes. The attribute with the position has the same name as its record."""
_LONGEST_REASON = 1000
"""The most characters of a reason that are stored."""

RECORD = "rules"
_RULES, _CURRENT, _FORMER = "rules", "current", "former"
_KEY, _ATTRIBUTE, _COUNTED, _LISTED, _SINCE = "k", "a", "c", "l", "t"
_MOST = 50
"""How many former declarations are remembered. The record is one item, and must not grow without limit."""
_log = logging.getLogger("adjoin.maintain")


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
    begun = key_of(layout, POSITION) | kept | {AT: number(now), REVISION: trying.new_revision()}
    writes: list[Put | Update] = [Put(layout.table, begun, trying.same(record, REVISION))]
    if reason is not None:
        # If a rebuild is already due, the gap begins where that one began.
        since = IfNotExists(attribute(SINCE), Value(number(number_in(record, AT) or 0.0)))
        actions = (
            Set(attribute(SINCE), since),
            Set(attribute(AT), Value(number(now))),
            Set(attribute(WHY), Value({"S": reason[:_LONGEST_REASON]})),
            Set(attribute(REVISION), Value(trying.new_revision())),
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
        yield (Delete(layout.table, layout.key_of(begun.due), trying.same(begun.due, REVISION)),)
    except ConditionFailed:
        # Further changes were missed meanwhile, so a rebuild is still due.
        return


def last_looked_at(layout: BoundLayout) -> Plan[float]:
    """The time of the data of the last complete rebuild or audit; 0 if there was none.

    Aggregates are right as of that time. With all changes since then, which the stream may have, they are right now.
    """
    keys = [key_of(layout, name) for name in (REBUILT, VERIFIED)]
    found = yield from batches.get_all([Get(layout.table, key, consistent=True) for key in keys])
    return max(number_in(each, OF) or 0.0 for each in found)


# --- declarations ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the record says about one rule."""

    key: str
    """The key of the declaration by which the rule is maintained; empty if it is no longer maintained."""
    attribute: str
    """The attribute of nodes that holds its values."""
    is_counted: bool = True
    """Whether all nodes are counted by this declaration."""
    is_listed: bool = False
    """Whether each node names the declarations that it was counted by."""
    since: float = 0.0
    """When the declaration was taken up."""


@dataclass(frozen=True, slots=True)
class Record:
    """The whole record."""

    current: str
    rules: Mapping[str, Recorded]
    former: tuple[str, ...] = ()
    item: Item = field(default_factory=dict, compare=False)

    def replaced_by(self, mark: str) -> Record:
        """The record after a program with these declarations takes the table over."""
        if mark == self.current:
            return self
        former = [each for each in (*self.former, self.current) if each != mark]
        return replace(self, current=mark, former=tuple(former[-_MOST:]))


# --- reading declarations -----------------------------------------------------------------------------------


def read_standing(layout: BoundLayout) -> Plan[Record | None]:
    """Reads the record, and sets the standing of this graph's rules. None if there is no record or no table yet."""
    if not layout.rules.declared:
        return None
    response: ItemResponse
    try:
        (response,) = yield (Get(layout.table, key_of(layout, RECORD), consistent=True),)
    except TableNotFound:
        return None
    record = None if response.item is None else _record(response.item)
    _stand(layout.rules, record)
    return record


def opened_standing(layout: BoundLayout) -> Plan[None]:
    """Does the same when a graph opens, and logs which aggregates are not yet counted."""
    yield from read_standing(layout)
    if awaited := layout.rules.standing.awaited:
        _log.warning(
            "some aggregates are not yet counted as they are declared now, and read as their defaults: %s; run rebuild",
            ", ".join(fields(awaited)),
        )


def fields(names: Iterable[str]) -> list[str]:
    """The fields that these rules compute. The rules of several hops for one field give that field once."""
    return sorted({name.partition(":")[0] for name in names})


def standing_in(rules: Rules, record: Record | None) -> Standing:
    """What a record says about the rules of a graph."""
    if record is None:
        return Standing()
    found = {rule.name: record.rules.get(rule.name) for rule in rules.declared}
    own = {rule.name: each for rule in rules.declared if (each := found[rule.name]) and each.key == rule.key}
    return Standing(
        frozenset(found.keys() - own.keys()),
        frozenset(name for name, each in own.items() if not each.is_counted),
        frozenset(name for name, each in own.items() if each.is_listed),
        rules.mark in record.former,
    )


def _stand(rules: Rules, record: Record | None) -> None:
    """Sets the standing of the rules of a graph as a record says, if it is another one."""
    standing = standing_in(rules, record)
    if standing != rules.standing:
        rules.stand(standing)
    rules.is_told = True


def _record(item: Item) -> Record:
    try:
        rules = {
            name: Recorded(
                each["M"][_KEY]["S"],
                each["M"][_ATTRIBUTE]["S"],
                each["M"][_COUNTED]["BOOL"],
                each["M"][_LISTED]["BOOL"],
                float(each["M"][_SINCE]["N"]),
            )
            for name, each in item[_RULES]["M"].items()
        }
        former = tuple(each["S"] for each in item[_FORMER]["L"])
        return Record(item[_CURRENT]["S"], rules, former, item)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidItem(
            f"the record of the declarations that the table is counted by (#={MAINTAIN}, ={RECORD}) was "
            f"changed by another program and cannot be read; delete this item, and run rebuild"
        ) from None


# --- writing declarations -----------------------------------------------------------------------------------


def keep(layout: BoundLayout, clock: Callable[[], float] = time.time) -> Plan[None]:
    """Prepares the record before a maintainer applies changes. Raises `DeclarationReplaced` if it must not apply them.

    If this graph's declarations are new, they become those of the table.
    """

    def kept(record: Record) -> Record:
        standing, unknown = layout.rules.standing, _unknown(layout, record)
        # Every rule of the table that concerns this graph is declared here too, and no rule of this graph is new to the
        # table: nothing to record. A former program may go on if it declares everything that is maintained.
        if not unknown and (standing.is_former or not standing.due):
            return record
        if standing.is_former:
            raise DeclarationReplaced(
                f"{', '.join(fields(unknown))} of {layout.table!r} are maintained as a later program declares them, "
                f"and this program would skip changes that count for them; run maintain with the later program, or "
                f"rebuild with this one"
            )
        return _taken(layout, record, clock())

    yield from _changed(layout, kept, partial(_first, layout, clock))


def take_up(layout: BoundLayout, clock: Callable[[], float] = time.time) -> Plan[Record | None]:
    """Makes the declarations of this graph those of the table. A rebuild does this first."""

    def taken(record: Record) -> Record:
        return _taken(layout, record, clock())

    return (yield from _changed(layout, taken, partial(_first, layout, clock)))


def _first(layout: BoundLayout, clock: Callable[[], float]) -> Plan[Record | None]:
    """The record for a table that has none yet.

    If the change stream has everything that was ever written, `maintain` alone counts it all, and the rules are counted
    from the start. If not, the table was filled before anything was counted. Then the declarations are treated like new
    ones in a table that is already counted: they need a rebuild.

    A tenant may be new in an old table. So for a tenant, the age of the stream says nothing.
    """
    rules = layout.rules
    if not rules.declared:
        return None
    has_all_changes = True
    if layout.tenant is None:
        response: TableResponse
        (response,) = yield (DescribeTable(layout.table),)
        has_all_changes = response.has_all_changes
    if has_all_changes:
        return Record(rules.mark, {rule.name: Recorded(rule.key, rule.attribute) for rule in rules.declared})
    first = _taken(layout, Record(rules.mark, {}), clock())
    _log.warning(
        "the table was filled before %s were declared, and its change stream does not have all of it; run rebuild",
        ", ".join(fields(first.rules)),
    )
    return first


def _taken(layout: BoundLayout, record: Record, now: float) -> Record:
    """The record after this graph's declarations were taken up: new ones are not yet counted, former ones lose keys."""
    gone = _unknown(layout, record)
    rules = {
        name: replace(each, key="", is_counted=False) if name in gone else each for name, each in record.rules.items()
    }
    for rule in layout.rules.declared:
        there = record.rules.get(rule.name)
        if there is None or there.key != rule.key:
            rules[rule.name] = Recorded(rule.key, rule.attribute, is_counted=False, is_listed=True, since=now)
    return replace(record.replaced_by(layout.rules.mark), rules=rules)


def recounted(layout: BoundLayout, record: Record | None) -> dict[str, frozenset[str]]:
    """The classes, by label, whose nodes a rebuild has to count anew.

    Each comes with the attributes that hold values of rules that are no longer maintained, so that they can be removed.
    """
    found: dict[str, frozenset[str]] = {}
    labels = _labels(layout)
    for name, each in record.rules.items() if record is not None else ():
        label = name.partition(".")[0]
        if not each.is_counted and label in labels:
            gone = frozenset((each.attribute, f"adjoin:{name}")) if not each.key else frozenset()
            found[label] = found.get(label, frozenset()) | gone
    return found


def end_rebuild(layout: BoundLayout, before: Record | None, read_at: float | None) -> Plan[None]:
    """Records at the end of a rebuild that all declared rules are counted, and drops those no longer maintained.

    `before` is the record with which the rebuild began. `read_at` is the time of the data that it read, for example of
    an export. A rule counts as counted only if that data is not older than its declaration: nodes that were written
    between the two would be missing.
    """
    for name, each in before.rules.items() if before is not None else ():
        if not each.key and name.partition(".")[0] in _labels(layout):
            yield from reports.remove_records(layout, name)

    def ended(record: Record) -> Record:
        if before is None:
            return record
        rules = {}
        for name, each in record.rules.items():
            is_same = before.rules.get(name) == each
            if is_same and each.key and (read_at is None or read_at >= each.since):
                rules[name] = replace(each, is_counted=True)
            elif not is_same or each.key or name.partition(".")[0] not in _labels(layout):
                rules[name] = each
        return replace(record, rules=rules)

    yield from _changed(layout, ended)


def _labels(layout: BoundLayout) -> set[str]:
    return {kind.label for kind in layout.schema.nodes.values()}


def _unknown(layout: BoundLayout, record: Record) -> list[str]:
    """The rules of the table for classes of this graph that this graph does not declare, or declares differently."""
    keys, labels = {rule.name: rule.key for rule in layout.rules.declared}, _labels(layout)
    return [
        name
        for name, each in record.rules.items()
        if each.key and each.key != keys.get(name) and name.partition(".")[0] in labels
    ]


def _changed(
    layout: BoundLayout,
    change: Callable[[Record], Record],
    first: Callable[[], Plan[Record | None]] | None = None,
) -> Plan[Record | None]:
    """Changes the record, and reads it again if another process changed it first.

    If there is no record, `first` makes it.
    """

    def attempt() -> Plan[Attempt[Record | None] | Done[Record | None]]:
        response: ItemResponse
        (response,) = yield (Get(layout.table, key_of(layout, RECORD), consistent=True),)
        record = None if response.item is None else _record(response.item)
        _stand(layout.rules, record)
        if record is not None:
            after: Record | None = change(record)
        else:
            after = None if first is None else (yield from first())
        if after is None or after == record:
            return trying.Done(after)

        def changed(_: object) -> Record | None:
            _stand(layout.rules, after)
            return after

        put = Put(layout.table, key_of(layout, RECORD) | _item(after), trying.same(response.item, REVISION))
        return trying.Attempt((put,), changed, trying.always_again)

    return (yield from trying.until_written(attempt))


def _item(record: Record) -> Item:
    rules = {
        name: {
            "M": {
                _KEY: {"S": each.key},
                _ATTRIBUTE: {"S": each.attribute},
                _COUNTED: {"BOOL": each.is_counted},
                _LISTED: {"BOOL": each.is_listed},
                _SINCE: number(each.since),
            }
        }
        for name, each in record.rules.items()
    }
    return {
        _RULES: {"M": rules},
        _CURRENT: {"S": record.current},
        _FORMER: {"L": [{"S": each} for each in record.former]},
        REVISION: trying.new_revision(),
    }
