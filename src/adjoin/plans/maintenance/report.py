"""Records what can never be applied: in the table, in the log and in the report.

In: changes and items that cannot be applied, from `isolating`, `affected`, `copies` and `ranks`. Out: a record for
each. The module also has the report of a run, and the `Tally` in which all modules of maintenance count what they do.

    PK             SK          what it holds
    #=UNAPPLIED    =9f2c…      item (the key), reason, position (of the change), at (when the item changed)

There is one record per item. So if the same change is delivered again, the same record is written again. The record is
removed when the item changes and can be applied. If an edge is set aside for a single rule, it has a record of another
kind, which is written in the node transaction together with its ledger, see `plans/counting/edge_state`. If another
program removed the ledger, nothing says any more that there is such a record; `remove_left` finds it.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable
from dataclasses import field

import orjson

from adjoin.dataclass import dataclass
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.counting.edge_state import aside_key
from adjoin.plans.counting.ledger import EdgeRef, LedgerWrite, ledger_held, ledger_in, refs_in
from adjoin.plans.steps.again import Attempt, Done, always_again, until_written
from adjoin.plans.steps.batches import Pages, Place, chunks, get_all, place_of, write_all
from adjoin.requests import Delete, Get, ItemResponse, PageResponse, Plan, Put, Query, TransactWrite
from adjoin.rules import Rule, RuleGroup
from adjoin.units import MAX_BATCH_WRITE
from adjoin.values import AttributeValue, Item

# --- what maintenance did ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetAside:
    """An edge that cannot be applied by a rule, or a change that cannot be applied at all, and why."""

    rule: str
    """The name of the rule; empty if a whole change or a node is set aside."""
    edge: Item
    """The key of the item."""
    reason: str
    position: str = ""
    """The position of the change in the stream, if a change is set aside."""


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """What one run of `maintain` did."""

    changes: int
    """Number of changes of nodes and edges that were read."""
    nodes: int
    """Number of nodes whose aggregates changed. In a very long run, a node that changes again is counted again."""
    edges: int
    """How often an edge was counted, or its copied fields were updated."""
    set_aside: tuple[SetAside, ...]
    """What was set aside; in a very long run only the last of it."""
    lag: float = 0.0
    """Age in seconds of the oldest change that was read last."""
    rate: float = 0.0
    """Changes per second, averaged over about the last minute."""
    rebuild_due: str | None = None
    """Why a rebuild is due, if this run found that changes were missed."""
    retries: int = 0
    """How often the run could not continue, and tried again."""


_MANY = 10_000
"""How many nodes, and how many things set aside, a tally keeps. A daemon must not use more and more memory."""


@dataclass
class Tally:
    """The numbers of a report while they are counted."""

    changes: int = 0
    nodes: set[str] = field(default_factory=set)
    edges: int = 0
    aside: list[tuple[str, Item, str]] = field(default_factory=list)
    records: list[SetAside] = field(default_factory=list)
    """Whole changes, items and nodes that were set aside."""
    others: int = 0
    """Number of further nodes, whose keys are no longer kept."""

    def include(self, other: Tally) -> None:
        """Adds the numbers of another tally."""
        self.changes += other.changes
        self.nodes |= other.nodes
        self.edges += other.edges
        self.aside += other.aside
        self.records += other.records
        self.others += other.others
        del self.aside[:-_MANY], self.records[:-_MANY]
        if len(self.nodes) > _MANY:
            self.others += len(self.nodes)
            self.nodes.clear()

    def undone(self) -> Tally:
        """The part of this tally that stays true if a batch failed: what was written is written.

        The changes of the batch are counted when they are applied again.
        """
        return Tally(nodes=self.nodes, edges=self.edges)

    def report(self) -> MaintenanceReport:
        aside = (*(SetAside(*each) for each in self.aside), *self.records)
        return MaintenanceReport(self.changes, self.others + len(self.nodes), self.edges, aside)


# --- changes that cannot be applied ------------------------------------------------------------


UNAPPLIED = "UNAPPLIED"
ITEM, REASON, POSITION, AT = "item", "reason", "position", "at"
_LONGEST = 2000
"""The most characters of a reason or a position that are stored, so that the record fits into an item with any key."""
_LONGEST_KEY = 20_000
"""The most characters of a key as JSON. A key has at most 3,072 bytes, and each byte may need an escape."""
_FEW = 20
"""How many records are queried at first. If there are more, only those for certain items are read, by their keys."""
_log = logging.getLogger("adjoin.maintain")


@dataclass(frozen=True)
class Unapplied:
    """A change that cannot be applied, or an item that cannot be brought up to date."""

    key: Item
    """The key of the item; empty if even that cannot be read from the change."""
    reason: str
    position: str = ""
    """The position of the change in the stream."""
    at: float = 0.0
    """When the item changed."""

    def record_key(self, layout: BoundLayout) -> Item:
        return record_key(layout, self.key or {POSITION: {"S": self.position}})

    def record(self, layout: BoundLayout) -> Item:
        texts = {REASON: self.reason[:_LONGEST], POSITION: self.position[-_LONGEST:]}
        attributes: dict[str, AttributeValue] = {name: {"S": _storable(text)} for name, text in texts.items() if text}
        return self.record_key(layout) | attributes | {ITEM: _shown(layout, self.key), AT: {"N": f"{self.at:.0f}"}}

    def note(self, tally: Tally, cause: BaseException | None = None) -> None:
        """Writes it into the log and the tally. The traceback of `cause` is logged with it, if there is one."""
        where = _spelled(self.key).decode()[:_LONGEST] if self.key else "an item without a key"
        position, reason = _storable(self.position[-_LONGEST:]) or "-", _storable(self.reason)
        _log.warning("set aside: %s (change %s): %s", where, position, reason, exc_info=cause)
        tally.records.append(SetAside("", self.key, self.reason, self.position))


def record_key(layout: BoundLayout, key: Item) -> Item:
    """The key of the record for an item. It contains a hash, because a key may be too long to be part of another."""
    return layout.ledgers.record_key(UNAPPLIED, hashlib.sha256(_spelled(key)).hexdigest()[:32])


def _spelled(key: Item) -> bytes:
    """A key as JSON, always in the same spelling, so that equal keys have equal hashes."""
    try:
        return orjson.dumps(key, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # The key contains half a character, or a number that no item can hold. A change may contain anything, and this
        # may be the very reason why it is set aside.
        return json.dumps(key, sort_keys=True, default=repr).encode()


def _shown(layout: BoundLayout, key: Item) -> AttributeValue:
    """A key as it is stored in the record: as a map, or as text if no item can have such a key."""
    names = {each.name for each in layout.definition.keys} if key else set()
    spelled = _spelled(key).decode()
    if key.keys() == names and len(spelled) <= _LONGEST_KEY and all(map(_is_text, key.values())):
        return {"M": dict(key)}
    return {"S": spelled[:_LONGEST]}


def _is_text(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"S"}
        and isinstance(value["S"], str)
        and _storable(value["S"]) == value["S"]
    )


def _storable(text: str) -> str:
    """A text without halves of characters (lone surrogates). JSON can contain them, but no store accepts them."""
    return text.encode("utf-8", "backslashreplace").decode()


def set_aside(
    layout: BoundLayout, unapplied: Unapplied, tally: Tally, cause: BaseException | None = None
) -> Plan[None]:
    """Stores the record, and writes it into the log and the tally."""
    yield (Put(layout.table, unapplied.record(layout)),)
    unapplied.note(tally, cause)


def take_back(layout: BoundLayout, keys: list[Item], tally: Tally) -> Plan[None]:
    """Removes the records of items that have now been applied, except for those that were set aside just now."""
    still = {_spelled(each.edge) for each in tally.records}
    applied = {_spelled(key): record_key(layout, key) for key in keys}
    own = {place_of(key): key for spelled, key in applied.items() if spelled not in still}
    if not own:
        return
    gone = yield from _recorded(layout, own)
    for some in chunks(gone, MAX_BATCH_WRITE):
        yield tuple(Delete(layout.table, key) for key in some)


def _recorded(layout: BoundLayout, own: dict[Place, Item]) -> Plan[list[Item]]:
    """Which of these records exist. Usually there are none or few at all, and one short query is enough."""
    partition, sort = layout.ledgers.records(UNAPPLIED)
    response: PageResponse
    (response,) = yield (Query(layout.table, partition, sort, limit=_FEW, consistent=True),)
    found: Iterable[Item | None] = response.items
    if response.last is not None:
        found = yield from get_all([Get(layout.table, key, consistent=True) for key in own.values()])
    there = {place_of(layout.key_of(item)) for item in found if item is not None}
    return [key for place, key in own.items() if place in there]


# --- edges that are set aside for a rule -------------------------------------------------------


def set_aside_by(layout: BoundLayout, group: RuleGroup, rule: Rule) -> Plan[list[EdgeRef]]:
    """The edges that are set aside for a rule, found by their records."""
    records = yield from _records_of(layout, rule.name)
    return refs_in(layout, group, records)


def _records_of(layout: BoundLayout, rule: str) -> Plan[list[Item]]:
    partition, sort = layout.ledgers.records("ASIDE", f"{rule}#")
    records: list[Item] = []
    pages = Pages([(rule, Query(layout.table, partition, sort, consistent=True))])
    while found := (yield from pages.next()):
        records += [item for _, page in found for item in page.items]
    return records


def remove_records(layout: BoundLayout, rule: str) -> Plan[None]:
    """Removes all records of edges that are set aside for a rule that is no longer declared."""
    records = yield from _records_of(layout, rule)
    yield from write_all([Delete(layout.table, layout.key_of(record)) for record in records])


def remove_left(layout: BoundLayout, group: RuleGroup) -> Plan[None]:
    """Removes the records of edges that are not set aside by the rules of a group, as their ledgers say."""
    for rule in group.rules:
        refs = yield from set_aside_by(layout, group, rule)
        ledgers = yield from get_all([Get(layout.table, ref.ledger_key(layout), consistent=True) for ref in refs])
        for ref, ledger in zip(refs, ledgers, strict=True):
            if not _is_aside(rule, ref, ledger):
                yield from _remove_record(layout, rule, ref)


def _is_aside(rule: Rule, ref: EdgeRef, ledger: Item | None) -> bool:
    found = ledger_in(ref.group, ledger)
    return found is not None and rule.name in found.aside


def _remove_record(layout: BoundLayout, rule: Rule, ref: EdgeRef) -> Plan[None]:
    """Removes the record of one edge, if its ledger still does not say that it is set aside."""
    key = ref.ledger_key(layout)

    def attempt() -> Plan[Attempt[None] | Done[None]]:
        response: ItemResponse
        (response,) = yield (Get(layout.table, key, consistent=True),)
        if _is_aside(rule, ref, response.item):
            return Done(None)
        held = ledger_held(layout, ref, key, response.item)
        check = held.request(layout) if isinstance(held, LedgerWrite) else held
        delete = Delete(layout.table, aside_key(layout, rule.name, ref))
        return Attempt((TransactWrite((check, delete)),), lambda _: None, always_again)

    yield from until_written(attempt)
