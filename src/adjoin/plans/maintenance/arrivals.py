"""Edges that arrive at nodes, taken down beside the nodes: found there without an index.

What arrives at a node can be looked up in the reverse index. But an index is behind its table, for how long nobody
promises, and what is looked up too early is not looked at again. So whoever applies the change that brought an
edge takes it down beside the node that it leads to first, and looks at the edge and the node after that:

- who looks for edges later, because the node changed, finds it here by a strongly consistent query;
- who looked before that did so before the node is read for the edge, which sees the change then.

    PK              SK                                   what it holds
    INVOICE#I1#=    =A#PLACED#CUSTOMER#C1#PLACED#…       edge (the key), marked

It goes with the edge. Where something is counted at the target by what the edge itself says, its ledger lies there,
and nothing else is taken down. Edges that were applied by a version that took nothing down are found in the index
alone, so all of these are looked at, and each edge once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from adjoin.errors import ConditionFailed, InvalidItem, InvalidKey
from adjoin.expressions import Compare, Value, attribute
from adjoin.layouts.interface import BoundLayout
from adjoin.layouts.ledgers import SHORT
from adjoin.plans import Plan
from adjoin.plans.batches import chunks, get_all, place_of, write_all
from adjoin.plans.maintenance.ledger import LENGTH, edge_of
from adjoin.plans.maintenance.postings import MARKED
from adjoin.plans.maintenance.references import EDGE, PAGE, edges_in, query_at
from adjoin.requests import Delete, Get, ItemChange, PageResponse, Put, Query, SortCondition
from adjoin.schema import EdgeType
from adjoin.values import AttributeValue, Item

_ROUND = 100
"""What is removed side by side."""


@dataclass(frozen=True)
class Arrival:
    """An edge, by the key of its item, and the partition keys of its ends."""

    kind: EdgeType
    key: Item
    source: str
    target: str

    def place(self, layout: BoundLayout) -> Item:
        """Where it is taken down."""
        return layout.ledgers.arrival_key(self.kind.label, self.target, self.key)

    def item(self, layout: BoundLayout) -> Item:
        # Always another mark, so that nobody removes it who found the edge gone before.
        marked = {MARKED: {"S": uuid.uuid4().hex[:8]}}
        return {**self.place(layout), EDGE: {"M": dict(self.key)}, **marked}


def is_taken_down(layout: BoundLayout, kind: EdgeType) -> bool:
    """Whether somebody has to find the edges of a class from their targets, and neither a ledger nor a key has them."""
    counts = any(each.edge is kind and each.reads_far and each.hop.direction != "out" for each in layout.rules.accounts)
    copies = any(each.edge is kind and each.end == "target" for each in layout.rules.copies)
    return (counts or copies) and not kind.symmetric


def arrived(layout: BoundLayout, kind: EdgeType, change: ItemChange) -> Arrival | None:
    """The edge that a change brought to its target; None if it was there before, or is not now."""
    now = _arrival(layout, kind, change.new)
    before = _arrival(layout, kind, change.old)
    return None if now is None or (before is not None and before.target == now.target) else now


def departed(layout: BoundLayout, kind: EdgeType, change: ItemChange) -> Arrival | None:
    """The edge that a change took from its target; None if it is there still, or never was."""
    now = _arrival(layout, kind, change.new)
    before = _arrival(layout, kind, change.old)
    return None if before is None or (now is not None and before.target == now.target) else before


def _arrival(layout: BoundLayout, kind: EdgeType, item: Item | None) -> Arrival | None:
    if item is None:
        return None
    with suppress(InvalidItem, InvalidKey):
        return Arrival(kind, layout.key_of(item), *layout.ends(kind, item))
    # It only has the key of an edge, and leads nowhere.
    return None


def take_down(layout: BoundLayout, edges: Iterable[Arrival]) -> Plan[None]:
    """Takes edges down at their targets; before anybody looks at them."""
    yield from write_all([Put(layout.table, each.item(layout)) for each in edges])


def strike_out(layout: BoundLayout, edges: Sequence[Arrival]) -> Plan[None]:
    """Removes what was taken down about edges that are gone.

    The mark is read before the edge. So one that is brought again later has another mark, which stays.
    """
    found = yield from get_all([Get(layout.table, each.place(layout), consistent=True) for each in edges])
    there = [(edge, item) for edge, item in zip(edges, found, strict=True) if item is not None and MARKED in item]
    items = yield from get_all([Get(layout.table, edge.key, consistent=True) for edge, _ in there])
    deletes = [
        Delete(layout.table, layout.key_of(note), Compare("=", attribute(MARKED), Value(note[MARKED])))
        for (edge, note), item in zip(there, items, strict=True)
        if (now := _arrival(layout, edge.kind, item)) is None or now.target != edge.target
    ]
    for some in chunks(deletes, _ROUND):
        try:
            yield some
        except ConditionFailed:
            # Which of them is there again is not told. One that is removed already is no failure of the others.
            for each in some:
                try:
                    yield (each,)
                except ConditionFailed:
                    continue


# --- looking them up ---------------------------------------------------------------------------


def arriving_at(layout: BoundLayout, kind: EdgeType, text: str) -> list[Query]:
    """What finds the edges of a class that arrive at a node, by its partition key; each edge maybe several times."""
    stretches: list[tuple[tuple[str, AttributeValue], SortCondition]] = []
    if any(account.edge is kind and account.is_at_target for account in layout.rules.accounts):
        starts = layout.key_templates(kind).sort.lead, SHORT
        stretches += (layout.ledgers.edge_ledgers(text, start) for start in starts)
    if is_taken_down(layout, kind):
        stretches.append(layout.ledgers.arrivals(kind.label, text))
    taken_down = [Query(layout.table, *stretch, limit=PAGE, consistent=True) for stretch in stretches]
    return [*taken_down, query_at(layout, kind, kind.target, text, leaving=False)]


def found_in(layout: BoundLayout, kind: EdgeType, text: str, page: PageResponse) -> Iterator[Arrival]:
    """The edges in a page that such a query for a node found."""
    for item in page.items:
        if EDGE in item and MARKED in item and layout.is_bookkeeping(item):
            # An edge is in the partition of its source.
            yield Arrival(kind, item[EDGE]["M"], place_of(layout.key_of(item[EDGE]["M"]))[0], text)
        elif LENGTH in item and layout.is_bookkeeping(item) and layout.kind_of(key := edge_of(layout, item)) is kind:
            yield Arrival(kind, key, place_of(key)[0], text)
    for item in edges_in(layout, kind, page):
        if (edge := _arrival(layout, kind, item)) is not None:
            yield edge
