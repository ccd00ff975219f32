"""Deleting any number of nodes and edges.

What is one item, or several that need not go together, is deleted in batches. A batch has no conditions, so what needs
one is deleted by itself: instances with a version, edges that are counted in transaction, classes of a family. Nodes
that can have edges are deleted by themselves, too, because their edges have to be found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from adjoin.entity_types import EdgeType, NodeType
from adjoin.expressions import Condition
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.counted_deletion import delete_one_of
from adjoin.plans.in_transaction import counted_in_transaction
from adjoin.plans.steps.batches import BATCHES_A_ROUND, Place, chunks, place_of, write_all
from adjoin.plans.write import disconnect, edge_keys
from adjoin.requests import Delete, Plan
from adjoin.units import MAX_BATCH_WRITE
from adjoin.values import Item

NodeToDelete: TypeAlias = tuple[NodeType, Any, Condition | None]
"""The class and the id of a node, and the condition under which it is deleted."""
EdgeToDelete: TypeAlias = tuple[EdgeType, Any, Any, Mapping[str, Any], Condition | None]
"""The class, the ends and the key fields of an edge, and the condition under which it is deleted."""


def delete_many(
    layout: BoundLayout, given: Iterable[NodeToDelete | EdgeToDelete], progress: Callable[[int], None] | None = None
) -> Plan[int]:
    """Deletes nodes with their edges, and edges, in rounds of batches; returns how many were given."""
    done = 0
    for chunk in chunks(given, MAX_BATCH_WRITE * BATCHES_A_ROUND):
        together: dict[Place, Delete] = {}
        alone: list[NodeToDelete | EdgeToDelete] = []
        for each in chunk:
            keys = _keys(layout, each)
            together |= {place_of(key): Delete(layout.table, key) for key in keys}
            alone += [each] if not keys else []
        yield from write_all(together.values())
        for each in alone:
            if len(each) == 3:
                yield from delete_one_of(layout, *each)
            else:
                yield from disconnect(layout, *each)
        done += len(chunk)
        if progress is not None:
            progress(done)
    return done


def _keys(layout: BoundLayout, given: NodeToDelete | EdgeToDelete) -> list[Item]:
    """The keys of all items that a batch deletes for a node or an edge; none if it has to be deleted by itself."""
    if given[-1] is not None:
        return []
    if len(given) == 3:
        node, id, _ = given
        is_more = layout.has_edges(node) or layout.has_satellites(node)
        return [] if is_more else [layout.node_key(node, id)]
    kind, source, target, fields, _ = given
    is_conditional = bool(counted_in_transaction(layout, kind) or kind.claimed)
    if is_conditional or layout.has_ends(kind, source, target) is not None:
        return []
    keys = edge_keys(layout, kind, source, target, fields)
    return [*keys, *(copy for key in keys for copy in layout.copy_keys(kind, key))]
