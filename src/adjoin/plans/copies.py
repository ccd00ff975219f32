"""Copied fields of edges, filled in from their nodes when an edge is written.

The nodes are read first, and the edge is written in one transaction with checks that they still have what was read.
`adjoin.plans.maintenance.copies` follows later changes of the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from adjoin.dataclass import dataclass
from adjoin.entity_types import AnyEdge, EdgeType, NodeType
from adjoin.expressions import Condition, all_of
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.steps.again import as_read
from adjoin.plans.steps.batches import Place, get_all, place_of, stored_in
from adjoin.requests import BatchWrite, Check, Get, Plan, Put, Request, TransactWrite, Update
from adjoin.rules import CopyRule
from adjoin.values import Item


@dataclass(frozen=True)
class Filling:
    """The copied fields of an edge, and checks that its nodes still have these values."""

    values: tuple[Item, ...]
    """For each item of the edge, its copied attributes, without those that a node does not have.

    The two items of a symmetric edge are seen from different ends, so what one copies from its source, the other copies
    from its target.
    """
    checks: tuple[Check, ...]

    def on(self, layout: BoundLayout, kind: EdgeType, items: Sequence[Item]) -> tuple[Item, ...]:
        """The items of the edge with their copied fields, and with the index keys that hold these."""
        pairs = zip(items, self.values, strict=False)
        return tuple(layout.with_managed_keys(kind, item | values) for item, values in pairs)


def copies_on(layout: BoundLayout, kind: EdgeType) -> list[CopyRule]:
    """The copied fields of a class of edges."""
    return [copy for copy in layout.rules.copies if copy.edge is kind]


def ends_copied(layout: BoundLayout, kind: EdgeType, source: object, target: object) -> dict[str, Item]:
    """The keys of the nodes that an edge between two ids copies from, by end."""
    ids, copies = {"source": source, "target": target}, copies_on(layout, kind)
    # The second item of a symmetric edge copies from the other ends, so both nodes are read.
    if kind.symmetric and copies:
        return {end: layout.node_key(kind.source, id) for end, id in ids.items()}
    return {copy.end: layout.node_key(copy.node, ids[copy.end]) for copy in copies}


def filling(layout: BoundLayout, kind: EdgeType, edge: AnyEdge) -> Plan[Filling]:
    """The copied fields of one edge; nothing is read for a class without copied fields."""
    (filled,) = yield from fillings(layout, [(kind, edge)])
    return filled


def fillings(
    layout: BoundLayout,
    edges: Iterable[tuple[EdgeType, AnyEdge]],
    coming: Callable[[Place, Item | None], Item | None] = lambda _, stored: stored,
) -> Plan[list[Filling]]:
    """The copied fields of edges, with each node read once.

    `coming` returns a node's item as it will be, if the node is written together with the edges.
    """
    wanted = [(kind, ends_copied(layout, kind, edge.source, edge.target)) for kind, edge in edges]
    keys = {place_of(key): key for _, ends in wanted for key in ends.values()}
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    nodes = {place: coming(place, stored) for place, stored in zip(keys, found, strict=True)}
    return [_filling(layout, kind, ends, nodes) for kind, ends in wanted]


def _filling(
    layout: BoundLayout, kind: EdgeType, ends: Mapping[str, Item], nodes: Mapping[Place, Item | None]
) -> Filling:
    sides = [{end: nodes[place_of(key)] for end, key in ends.items()}]
    conditions: dict[Place, list[Condition]] = {}
    for end, key in ends.items():
        conditions.setdefault(place_of(key), []).append(as_copied(layout, kind, end, nodes[place_of(key)]))
    if kind.symmetric and ends:
        # Seen from its other end, the source of the edge is the target, and the other way round.
        sides.append({"source": sides[0]["target"], "target": sides[0]["source"]})
    values = tuple(copied(layout, kind, each) for each in sides)
    keys = {place_of(key): key for key in ends.values()}
    checks = [Check(layout.table, key, all_of(*conditions[place]) or layout.present) for place, key in keys.items()]
    return Filling(values, tuple(checks))


def copied(layout: BoundLayout, kind: EdgeType, nodes: Mapping[str, Item | None]) -> Item:
    """The attributes that an edge copies from these nodes, given by end."""
    values: Item = {}
    for copy in copies_on(layout, kind):
        stored = (nodes[copy.end] or {}).get(copy.node.attributes[copy.of])
        if stored is not None:
            values[kind.attributes[copy.field]] = stored
    return values


def as_copied(layout: BoundLayout, kind: EdgeType, end: str, node: Item | None) -> Condition:
    """Holds as long as a node has the values that edges of a class copy from it."""
    copies = [copy for copy in copies_on(layout, kind) if copy.end == end or kind.symmetric]
    names = dict.fromkeys(copy.node.attributes[copy.of] for copy in copies)
    return as_read(layout, node, names)


# --- the fan-out of a change of a node ---------------------------------------------------------


@dataclass(frozen=True)
class Fan:
    """The fan-out of a change of one node to the edges of one class that copy the changed fields."""

    node: str
    edge: EdgeType
    fields: tuple[str, ...]
    index: str | None
    items: int
    """Items per edge: its own, and its index copies."""
    entries: int
    """Entries of these items in indexes that project all attributes."""
    others: int
    """Other nodes that an edge copies from."""


def fans(layout: BoundLayout, requests: Iterable[Request]) -> Iterator[Fan]:
    """The fan-out of these requests, derived from the attributes that they change."""
    for write in _writes(requests):
        item = stored_in(write)
        kind = None if layout.is_bookkeeping(item) else layout.kind_of(item)
        # A put replaces the whole item, so any of its attributes may have changed.
        names = set(item) if isinstance(write, Put) else {str(action.path.steps[0]) for action in write.actions}
        wanted: dict[tuple[type[AnyEdge], str], list[CopyRule]] = {}
        for copy in layout.rules.copies:
            if isinstance(kind, NodeType) and copy.node.covers(kind) and copy.node.attributes[copy.of] in names:
                wanted.setdefault((copy.edge.model, copy.end), []).append(copy)
        for copies in wanted.values():
            yield _fan(layout, item, copies)


def _writes(requests: Iterable[Request]) -> Iterator[Put | Update]:
    for request in requests:
        if isinstance(request, Put | Update):
            yield request
        elif isinstance(request, TransactWrite | BatchWrite):
            yield from (write for write in request.writes if isinstance(write, Put | Update))


def _fan(layout: BoundLayout, item: Item, copies: Sequence[CopyRule]) -> Fan:
    edge, text = copies[0].edge, layout.text_of(copies[0].node, item)
    index = None
    if copies[0].end == "target" and not edge.symmetric:
        index = layout.ranges_into(edge, layout.id_in(edge.target, text))[0].access.index
    keys = layout.shape(edge).written
    held = [
        each
        for each in layout.definition.indexes
        if each.projection.kind == "ALL" and all(key.name in keys for key in each.keys)
    ]
    beside = len(layout.copy_keys(edge, layout.key_of(item)))
    others = len({copy.end for copy in copies_on(layout, edge)}) - 1
    return Fan(text, edge, tuple(copy.field for copy in copies), index, 1 + beside, len(held) + beside, others)
