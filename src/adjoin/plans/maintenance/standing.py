"""Which declarations the aggregates in a table are of: one record, which `maintain` and `rebuild` keep.

    PK             SK        what it holds
    #=MAINTAIN     =rules    rules: rule to {k: the key of its declaration, empty if it is kept no longer;
                             a: where its values are stored; c: whether all nodes are counted; l: whether nodes name it;
                             t: since when it is kept}
                             current, former: what was declared, as one mark, by the last program and those before it

The first program that maintains a table writes it. One with other declarations finds that some of its rules are not
counted, and says so. When it first maintains, or rebuilds, its declarations become those of the table: what is written
from then on is applied by them, and a rebuild counts what was there before. From then on programs with former
declarations do not maintain the table: they would pass over what the others have to count.

A maintainer reads the record after the changes that it applies. So whoever applies a change that was made after
declarations were taken up knows of them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from adjoin.errors import ConditionFailed, DeclarationReplaced, TableNotFound
from adjoin.layouts.interface import REVISION, BoundLayout
from adjoin.plans import Plan
from adjoin.plans.maintenance.postings import new_revision
from adjoin.plans.maintenance.upkeep import key_of, number, still
from adjoin.requests import DescribeTable, Get, ItemResponse, Put, TableResponse
from adjoin.rules import Rules, Standing
from adjoin.values import Item

RECORD = "rules"
_RULES, _CURRENT, _FORMER = "rules", "current", "former"
_KEY, _ATTRIBUTE, _COUNTED, _LISTED, _SINCE = "k", "a", "c", "l", "t"
_MOST = 50
"""Former declarations that are remembered."""
_ATTEMPTS = 20
_log = logging.getLogger("adjoin.maintain")


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the values of one rule are of."""

    key: str
    attribute: str
    is_counted: bool = True
    is_listed: bool = False
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class Record:
    current: str
    rules: Mapping[str, Recorded]
    former: tuple[str, ...] = ()
    item: Item = field(default_factory=dict, compare=False)

    def replaced_by(self, mark: str) -> Record:
        """The record when a program with other declarations takes the table over."""
        if mark == self.current:
            return self
        former = [each for each in (*self.former, self.current) if each != mark]
        return replace(self, current=mark, former=tuple(former[-_MOST:]))


# --- reading -----------------------------------------------------------------------------------


def read_standing(layout: BoundLayout) -> Plan[Record | None]:
    """Reads the record, and takes down what it says of this graph's rules; a table that is not there says nothing."""
    if not layout.rules.declared:
        return None
    response: ItemResponse
    try:
        (response,) = yield (Get(layout.table, key_of(layout, RECORD), consistent=True),)
    except TableNotFound:
        return None
    record = None if response.item is None else _record(response.item)
    layout.rules.stand(standing_in(layout.rules, record))
    return record


def opened_standing(layout: BoundLayout) -> Plan[None]:
    """The same when a graph opens, which says what it finds."""
    yield from read_standing(layout)
    if awaited := layout.rules.standing.awaited:
        _log.warning(
            "not yet counted as they are declared now, so that they read as their defaults: %s; run rebuild",
            ", ".join(fields(awaited)),
        )


def fields(names: Iterable[str]) -> list[str]:
    """The fields of rules, those of several hops once."""
    return sorted({name.partition(":")[0] for name in names})


def standing_in(rules: Rules, record: Record | None) -> Standing:
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


def _record(item: Item) -> Record:
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


# --- writing -----------------------------------------------------------------------------------


def keep(layout: BoundLayout, clock: Callable[[], float] = time.time) -> Plan[None]:
    """What a maintainer does first: `DeclarationReplaced` if it must not go on."""

    def kept(record: Record) -> Record:
        standing, unknown = layout.rules.standing, _unknown(layout, record)
        if not unknown and (standing.is_former or not standing.due):
            return record
        if standing.is_former:
            raise DeclarationReplaced(
                f"{', '.join(fields(unknown))} of {layout.table!r} are kept as a later program declares them, and this "
                f"one would pass over changes that count for them; maintain with the later one, or rebuild with this"
            )
        return _taken(layout, record, clock())

    yield from _changed(layout, kept, partial(_first, layout, clock))


def take_up(layout: BoundLayout, clock: Callable[[], float] = time.time) -> Plan[Record | None]:
    """What a rebuild does first: makes the declarations of this graph those of the table."""

    def taken(record: Record) -> Record:
        return _taken(layout, record, clock())

    return (yield from _changed(layout, taken, partial(_first, layout, clock)))


def _first(layout: BoundLayout, clock: Callable[[], float]) -> Plan[Record | None]:
    """The record of the first declarations of a table.

    They are counted from the change stream alone if that has everything. If not, the table was filled before anything
    was counted: the declarations are as new as others would be that are added to a table that is counted.

    A tenant may be new in an old table, so the age of the table says nothing about it.
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
    """The classes, by label, of which all nodes are counted anew; each with where they hold what is kept no longer."""
    found: dict[str, frozenset[str]] = {}
    labels = _labels(layout)
    for name, each in record.rules.items() if record is not None else ():
        label = name.partition(".")[0]
        if not each.is_counted and label in labels:
            gone = frozenset((each.attribute, f"adjoin:{name}")) if not each.key else frozenset()
            found[label] = found.get(label, frozenset()) | gone
    return found


def end_rebuild(layout: BoundLayout, before: Record | None, read_at: float | None) -> Plan[None]:
    """What a rebuild does last: all that is declared is counted, and of what is kept no longer nothing is left.

    `before` is the record that it began with. What was read must be from after each declaration was taken up, for nodes
    that came in between are not counted.
    """

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
    """What is counted for classes of this graph, and not as this graph declares it."""
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
    """Changes the record as long as nobody else does; where there is none, it becomes the first, if that is given."""
    for attempt in range(_ATTEMPTS):
        response: ItemResponse
        (response,) = yield (Get(layout.table, key_of(layout, RECORD), consistent=True),)
        record = None if response.item is None else _record(response.item)
        layout.rules.stand(standing_in(layout.rules, record))
        if record is not None:
            after: Record | None = change(record)
        else:
            after = None if first is None else (yield from first())
        if after is None or after == record:
            return after
        try:
            yield (Put(layout.table, key_of(layout, RECORD) | _item(after), still(response.item)),)
        except ConditionFailed:
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        layout.rules.stand(standing_in(layout.rules, after))
        return after
    raise AssertionError


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
        REVISION: new_revision(),
    }
