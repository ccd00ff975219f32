"""The edges of nodes that expired: removed, so that they are not those of another node with the same id.

A node that is removed because its time is over takes nothing with it. When the stream tells of it, its edges go, with
all that is counted of them. By then the id may have come back. So an edge at nodes that can expire says when it was
written, and only what was written before the node was removed goes; of an edge that does not say it, only if there
is no node. Each goes as long as it is what was read: one that is put again stays.

Clocks of writers and of the service may differ by `SKEW`. What was written within that time is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from adjoin.expressions import Compare, Condition, Exists, Not, Value, attribute
from adjoin.layouts.interface import WRITTEN, BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import get_all
from adjoin.plans.counted_deletion import Deletion
from adjoin.plans.deletion import Counted
from adjoin.requests import Get
from adjoin.schema import EdgeType, NodeType
from adjoin.values import Item

SKEW = 60.0
"""Seconds."""


def edges_of(layout: BoundLayout, kind: NodeType) -> tuple[EdgeType, ...]:
    """The classes of edges that a node of a class may have."""
    return tuple(edge for edge in layout.schema.edges.values() if kind in (edge.source, edge.target))


def remove_left(layout: BoundLayout, kind: NodeType, id: object, removed: float) -> Plan[None]:
    """Removes the edges that a node had when it was removed, at that time."""
    deletion = Deletion(layout, kind, id, edges_of(layout, kind))
    while True:
        around = yield from deletion.look()
        edges = list(around.counted.values())
        items = yield from get_all([Get(layout.table, edge.keys[0], consistent=True) for edge in edges])
        left = list(_left(zip(edges, items, strict=True), removed, is_gone=around.node is None))
        if not left:
            return
        yield from deletion.detach(around, left)


def _left(found: Iterable[tuple[Counted, Item | None]], removed: float, *, is_gone: bool) -> Iterable[Counted]:
    """Those that are older than the removal, each with what must still hold of it."""
    for edge, item in found:
        if item is None:
            continue
        same: Condition = Not(Exists(attribute(WRITTEN)))
        if WRITTEN in item:
            same = Compare("=", attribute(WRITTEN), Value(item[WRITTEN]))
        if float(item[WRITTEN]["N"]) < removed - SKEW if WRITTEN in item else is_gone:
            yield replace(edge, same=same)
