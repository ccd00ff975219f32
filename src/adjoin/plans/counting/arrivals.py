"""Arrivals: records beside a node of the edges that arrive at it, so that they are found without an index.

In: changes of edges, from `affected`. Out: an item per edge beside its target, and the queries (`lookups`) by which
`neighbours` and `copies` find all edges of a node.

The reverse index also has the edges that arrive at a node. But an index of DynamoDB lags behind its table, and no limit
for this lag is promised. An edge that the index does not show yet would be missed for ever. So a maintainer that
applies the creation of an edge first records an arrival beside its target, and reads the edge and the node after that:

- A process that looks for the edges of this node later finds the arrival with a strongly consistent query.
- A process that looked earlier did so because of a change of the node that is older than the maintainer's read of the
  node. So the maintainer sees that change itself.

    PK              SK                                   what it holds
    INVOICE#I1#=    =A#PLACED#CUSTOMER#C1#PLACED#…       edge (the key), marked

The arrival is removed with the edge. If a rule that reads only the edge counts it at its target, the edge's ledger lies
beside the target already, and no arrival is needed. Edges that were applied by a version of adjoin without arrivals are
found only in the index. So all three places are searched, and each edge that was found is reconciled once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from adjoin.dataclass import dataclass
from adjoin.entity_types import CountedType, NodeType
from adjoin.errors import ConditionFailed, InvalidItem, InvalidKey
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.own_items import SHORT
from adjoin.plans.counting.ledger import (
    EDGE,
    LENGTH,
    PAGE,
    EdgeRef,
    edge_in,
    edge_of,
    edges_in,
    queries_from,
    queries_into,
    refs_to,
)
from adjoin.plans.counting.node_transaction import MARKED
from adjoin.plans.steps.again import same
from adjoin.plans.steps.batches import chunks, get_all, write_all
from adjoin.requests import Delete, Get, PageResponse, Plan, Put, Query, SortCondition
from adjoin.rules import RuleGroup
from adjoin.values import AttributeValue, Item

_ROUND = 100
"""How many arrivals are removed side by side."""


@dataclass(frozen=True)
class Arrival:
    """An edge that arrives at a node: the key of its item, and the node keys of its ends."""

    kind: CountedType
    key: Item
    source: str
    target: str

    def place(self, layout: BoundLayout) -> Item:
        """The key under which it is recorded."""
        return layout.ledgers.arrival_key(self.kind.label, self.target, self.key)

    def item(self, layout: BoundLayout) -> Item:
        # A new mark each time: a process that found the edge deleted before must not delete this newer arrival.
        marked = {MARKED: {"S": uuid.uuid4().hex[:8]}}
        return {**self.place(layout), EDGE: {"M": dict(self.key)}, **marked}


def arrived(layout: BoundLayout, kind: CountedType, old: Item | None, new: Item | None) -> Arrival | None:
    """The arrival to record after a change; None if the edge arrived there before, or does not arrive there now."""
    now = _arrival(layout, kind, new)
    before = _arrival(layout, kind, old)
    return None if now is None or (before is not None and before.target == now.target) else now


def departed(layout: BoundLayout, kind: CountedType, old: Item | None, new: Item | None) -> Arrival | None:
    """The arrival to remove after a change; None if the edge still arrives there, or never did."""
    now = _arrival(layout, kind, new)
    before = _arrival(layout, kind, old)
    return None if before is None or (now is not None and before.target == now.target) else before


def _arrival(layout: BoundLayout, kind: CountedType, item: Item | None) -> Arrival | None:
    """The arrival for the item of an edge; None if there is no item, or its ends cannot be read."""
    if item is None:
        return None
    with suppress(InvalidItem, InvalidKey):
        return Arrival(kind, layout.key_of(item), *layout.ends(kind, item))
    # The item has an edge's key, but its ends cannot be read.
    return None


def take_down(layout: BoundLayout, edges: Iterable[Arrival]) -> Plan[None]:
    """Records arrivals. This must happen before the edges and their nodes are read, see the top of this module."""
    yield from write_all([Put(layout.table, each.item(layout)) for each in edges])


def strike_out(layout: BoundLayout, edges: Sequence[Arrival]) -> Plan[None]:
    """Removes the arrivals of edges that no longer arrive there.

    The mark is read before the edge. If the edge is created again after that, its arrival has another mark, the
    condition fails, and the arrival stays.
    """
    found = yield from get_all([Get(layout.table, each.place(layout), consistent=True) for each in edges])
    there = [(edge, item) for edge, item in zip(edges, found, strict=True) if item is not None and MARKED in item]
    items = yield from get_all([Get(layout.table, edge.key, consistent=True) for edge, _ in there])
    deletes = [
        Delete(layout.table, layout.key_of(note), same(note, MARKED))
        for (edge, note), item in zip(there, items, strict=True)
        if (now := _arrival(layout, edge.kind, item)) is None or now.target != edge.target
    ]
    for some in chunks(deletes, _ROUND):
        try:
            yield some
        except ConditionFailed:
            # The error does not say which condition failed. So they are deleted one by one; an arrival that was
            # recorded again, or is already removed, does not stop the others.
            for each in some:
                try:
                    yield (each,)
                except ConditionFailed:
                    continue


# --- finding edges that arrive -----------------------------------------------------------------


def arriving_at(layout: BoundLayout, kind: CountedType, node_key: str) -> list[Query]:
    """The queries that find the edges of a class that arrive at a node. They may find an edge several times.

    They search ledgers beside the node, arrivals, and the reverse index.
    """
    stretches: list[tuple[tuple[str, AttributeValue], SortCondition]] = []
    if any(group.edge is kind and group.is_at_target for group in layout.rules.groups):
        starts = layout.key_templates(kind).sort.lead, SHORT
        stretches += (layout.ledgers.edge_ledgers(node_key, start) for start in starts)
    if kind.model in layout.rules.arriving:
        stretches.append(layout.ledgers.arrivals(kind.label, node_key))
    taken_down = [Query(layout.table, *stretch, limit=PAGE, consistent=True) for stretch in stretches]
    return [*taken_down, *queries_into(layout, kind, node_key)]


def found_in(layout: BoundLayout, kind: CountedType, node_key: str, page: PageResponse) -> Iterator[Arrival]:
    """The edges in a page that one of these queries returned: from arrivals, from ledgers, or from edges themselves."""
    for item in page.items:
        if ((EDGE in item and MARKED in item) or LENGTH in item) and layout.is_bookkeeping(item):
            try:
                key = edge_in(layout, item, EDGE) if EDGE in item else edge_of(layout, item)
                if EDGE in item or layout.kind_of(key) is kind:
                    yield Arrival(kind, key, layout.source_text(kind, key), node_key)
            except (InvalidItem, InvalidKey):
                # Another program changed it. An audit finds the edge by itself.
                continue
    for item in edges_in(layout, kind, page):
        # A partition that nodes share holds the edges of other nodes too.
        if (edge := _arrival(layout, kind, item)) is not None and node_key in (edge.source, edge.target):
            yield edge


# --- finding all edges that count for a node ---------------------------------------------------


def counting(layout: BoundLayout, kind: NodeType) -> list[RuleGroup]:
    """The rule groups whose near nodes are of a class."""
    return [group for group in layout.rules.groups if group.hop.near is kind]


@dataclass(frozen=True)
class Lookup:
    """A query for edges that count for a node, and the rule groups for which it finds edges.

    It is for all edges that leave the node, or for the edges of one class that arrive.
    """

    query: Query
    groups: list[RuleGroup]
    node_key: str
    leaves: bool
    repeats: bool
    """Whether another query may find the same edges."""

    def refs(self, layout: BoundLayout, page: PageResponse) -> Iterator[EdgeRef]:
        """The edges in a page of the query, once per rule group that counts them."""
        for group in self.groups:
            if self.leaves:
                # A partition that nodes share holds the edges of other nodes too.
                found = refs_to(layout, group, edges_in(layout, group.edge, page))
                yield from (ref for ref in found if ref.near == self.node_key)
            else:
                for edge in found_in(layout, group.edge, self.node_key, page):
                    yield EdgeRef(group, edge.key, edge.target, edge.source)


def lookups(layout: BoundLayout, kind: NodeType, node_key: str, groups: Iterable[RuleGroup]) -> Iterator[Lookup]:
    """The queries for all edges that count for a node in these rule groups.

    One query finds all edges in the partition of the node; edges in other partitions are found by class.
    """
    groups = list(groups)
    leaving: dict[str, list[RuleGroup]] = {}
    for group in groups:
        if group.hop.direction == "out":
            leaving.setdefault(group.edge.label if layout.is_apart(group.edge) else "", []).append(group)
    for some in leaving.values():
        for query in queries_from(layout, some[0].edge, node_key):
            yield Lookup(query, some, node_key, leaves=True, repeats=False)
    arriving: dict[str, list[RuleGroup]] = {}
    for group in groups:
        if group.hop.direction != "out":
            arriving.setdefault(group.edge.label, []).append(group)
    for some in arriving.values():
        for query in arriving_at(layout, some[0].edge, node_key):
            yield Lookup(query, some, node_key, leaves=False, repeats=True)
