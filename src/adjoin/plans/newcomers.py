"""Nodes that come where edges wait for them: what those add is counted in the transaction that makes the node.

An edge may be put before its node is there, and one may be connected while its node is deleted. Who writes an edge
whose node is not there leaves a marker beside the node's place, in the same transaction; so does who deletes a
node that counts something. So there is nothing to count for a node that is made where no marker is, and that none
is, its transaction checks. Where there is one, the edges are looked up, and go into that transaction with their
ledgers, as long as they and the marker are what was read. The marker goes then, unless there is something to do
for `maintain`: rules that are not counted at once, or more edges than a transaction takes.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from adjoin.expressions import Compare, Condition, Not, Value, attribute
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.at_once import AnyRequest, companions, counting_at_once, together
from adjoin.plans.batches import Place, get_all, place_of
from adjoin.plans.maintenance.neighbours import counting, lookups
from adjoin.plans.maintenance.postings import MARKED
from adjoin.plans.maintenance.references import EdgeRef
from adjoin.requests import Check, Delete, Get, PageResponse, Put
from adjoin.schema import NodeType
from adjoin.units import MAX_TRANSACTION
from adjoin.values import Item


def marker(layout: BoundLayout, kind: NodeType, text: str) -> list[Put]:
    """What is left beside the place of a node that goes: nothing, if the class counts nothing at once."""
    if not counting_at_once(layout, kind):
        return []
    return [Put(layout.table, layout.ledgers.marker_key(text) | {MARKED: {"S": uuid.uuid4().hex[:16]}})]


@dataclass
class Arrived:
    """What must hold for a node to be written, and what is written with it."""

    condition: Condition | None = None
    counted: AnyRequest | None = None
    """What its edges make of it."""
    writes: list[AnyRequest] = field(default_factory=list)
    read: list[Item | None] = field(default_factory=list)
    """The node as it was, if somebody looked."""

    def on(self, layout: BoundLayout, item: Item) -> Item:
        """The item of the node with what is counted on it."""
        if self.counted is None:
            return item
        made = together(layout, Put(layout.table, item), self.counted)
        assert isinstance(made, Put)
        return made.item


@dataclass
class Coming:
    """One write of a whole node, which may make it; tried blindly first, because mostly nothing waits."""

    has_tried: bool = False

    def look(self, layout: BoundLayout, kind: NodeType, key: Item, room: int) -> Plan[Arrived]:
        """What goes along with the node, in so many writes at most."""
        text = next(iter(key.values()))["S"]
        if not counting_at_once(layout, kind):
            return Arrived()
        if not self.has_tried:
            self.has_tried = True
            return Arrived(writes=[unmarked(layout, text, None)])
        there, left = yield from get_all(
            [Get(layout.table, each, consistent=True) for each in (key, layout.ledgers.marker_key(text))]
        )
        if there is not None:
            return Arrived(layout.present, read=[there])
        waiting = (yield from waiting_at(layout, kind, text)) if left is not None else []
        made: dict[Place, AnyRequest] = {}
        if waiting:
            made = (yield from companions(layout, (), {place_of(key)}, waiting)).writes
        if waiting is None or len(made) > room:
            return Arrived(Not(layout.present), None, [unmarked(layout, text, left)], [None])
        counted = made.pop(place_of(key), None)
        return Arrived(Not(layout.present), counted, [met(layout, kind, text, left), *made.values()], [None])


def unmarked(layout: BoundLayout, text: str, left: Item | None) -> Check:
    """Holds as long as nobody has begun to wait for a node since its marker was read."""
    key = layout.ledgers.marker_key(text)
    same = Not(layout.present) if left is None else Compare("=", attribute(MARKED), Value(left[MARKED]))
    return Check(layout.table, key, same)


def met(layout: BoundLayout, kind: NodeType, text: str, left: Item | None) -> Check | Delete:
    """The same where everything that waits is counted: the marker goes, if no other rule needs it."""
    check = unmarked(layout, text, left)
    if left is None or len(counting(layout, kind)) > len(counting_at_once(layout, kind)):
        return check
    return Delete(check.table, check.key, check.condition)


def waiting_at(
    layout: BoundLayout, kind: NodeType, text: str, without: Collection[Place] = ()
) -> Plan[Sequence[EdgeRef] | None]:
    """The edges that count at once for a node, except some; None if they are more than a transaction takes."""
    refs: dict[tuple[str, Place], EdgeRef] = {}
    waiting = [*lookups(layout, kind, text, counting_at_once(layout, kind))]
    while waiting:
        pages: list[PageResponse] = yield tuple(lookup.query for lookup in waiting)
        for lookup, page in zip(waiting, pages, strict=True):
            # What arrives may be found twice: by its ledger, and in the index.
            refs |= {ref.place: ref for ref in lookup.refs(layout, page) if place_of(ref.key) not in without}
        if len(refs) > MAX_TRANSACTION:
            return None
        waiting = [
            lookup.behind(page.last) for lookup, page in zip(waiting, pages, strict=True) if page.last is not None
        ]
    return [*refs.values()]
