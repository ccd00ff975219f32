"""Plans that remove an edge, or any number of nodes and edges.

An edge that is several items is removed in one transaction. If a condition fails, the stored items say why: another
version is stored, the edge has other ends, or it is hidden by the delete of a node, and then it does not exist.

Of many, what is one item, or several that need not go together, is deleted in batches. A batch has no conditions, so
what needs one is deleted by itself: instances with a version, edges that are counted in transaction, classes of a
family. Nodes that can have edges are deleted by themselves, too, because their edges have to be found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from adjoin.entity_types import EdgeType, NodeType
from adjoin.errors import ConditionFailed, TransactionCanceled
from adjoin.evaluate import condition_test
from adjoin.expressions import Condition, all_of
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.counted_deletion import delete_one_of
from adjoin.plans.declared import check_due
from adjoin.plans.deletion import UNMARKED, refuse_foreign, visible
from adjoin.plans.in_transaction import counted_in_transaction, disconnect_counted
from adjoin.plans.steps.again import disconnected_satellites
from adjoin.plans.steps.batches import BATCHES_A_ROUND, Place, chunks, place_of, write_all
from adjoin.plans.write import edge_keys, ends_lock, met, not_held
from adjoin.requests import Delete, ItemResponse, Plan, TransactWrite
from adjoin.units import MAX_BATCH_WRITE
from adjoin.values import Item

NodeToDelete: TypeAlias = tuple[NodeType, Any, Condition | None]
"""The class and the id of a node, and the condition under which it is deleted."""
EdgeToDelete: TypeAlias = tuple[EdgeType, Any, Any, Mapping[str, Any], Condition | None]
"""The class, the ends and the key fields of an edge, and the condition under which it is deleted."""


def disconnect(
    layout: BoundLayout,
    kind: EdgeType,
    source: Any,
    target: Any,
    fields: Mapping[str, Any],
    lock: Condition | None = None,
) -> Plan[bool]:
    """Removes an edge, if it has the version that a lock asks for; returns whether it existed."""
    if kind.symmetric and layout.due.is_any:
        yield from check_due(layout, lambda due: due.check_range(kind, None))
    keys = edge_keys(layout, kind, source, target, fields)
    ends = layout.has_ends(kind, source, target)
    between = layout.fit(kind).labelled
    if ends is not None:
        between = all_of(between, ends_lock(layout, ends))
    try:
        wanted = between if lock is None else all_of(between, lock)
        return (yield from _disconnected(layout, kind, source, target, keys, wanted))
    except (ConditionFailed, TransactionCanceled) as error:
        item = met(error)
        if item is not None:
            refuse_foreign(layout, kind, dict(item))
        if item is not None and ends is not None and not condition_test(ends)(dict(item)):
            return False
        if lock is None or item is None:
            raise
        failed = error
    if not (yield from visible(layout, [dict(item)])):
        # A hidden edge is already deleted for everybody, so its version does not matter.
        return (yield from _disconnected(layout, kind, source, target, keys, between))
    raise not_held(kind, f"{kind.name} from {source!r} to {target!r}", failed)


def _disconnected(
    layout: BoundLayout, kind: EdgeType, source: Any, target: Any, keys: list[Item], lock: Condition | None
) -> Plan[bool]:
    if counted_in_transaction(layout, kind):
        return (yield from disconnect_counted(layout, kind, source, target, keys, lock))
    others = disconnected_satellites(layout, kind, source, target, keys)
    if len(keys) > 1 or others:
        return (yield from _disconnect_all(layout, keys, others, lock))
    response: ItemResponse
    (response,) = yield (Delete(layout.table, keys[0], lock, return_old=True),)
    if response.item is None:
        return False
    return bool((yield from visible(layout, [response.item])))


def _disconnect_all(layout: BoundLayout, keys: list[Item], others: list[Delete], lock: Condition | None) -> Plan[bool]:
    """Removes an edge that is several items; returns whether it existed, as `edge` would have answered."""
    wanted = all_of(layout.present, UNMARKED, lock)
    while True:
        try:
            yield (TransactWrite((*(Delete(layout.table, key, wanted) for key in keys), *others)),)
            return True
        except TransactionCanceled as canceled:
            failed = [reason.item for reason in canceled.reasons[: len(keys)] if reason.is_failed_condition]
            foreign = [reason.is_failed_condition for reason in canceled.reasons[len(keys) :]]
            if failed:
                error = canceled
                break
            if not any(foreign):
                raise
            # Another edge has taken a claim over; it stays.
            others = [each for each, is_foreign in zip(others, foreign, strict=True) if not is_foreign]
    if failed == [None] * len(keys):
        return False
    # A one-sided edge does not count as an edge, and its item is removed in any case. For an edge with the mark of a
    # delete, the deletion record says whether it still existed.
    there = [dict(item) for item in failed if item is not None]
    is_shown = None not in failed and bool((yield from visible(layout, there)))
    wanted = lock if is_shown else None
    if wanted is not None and not all(map(condition_test(wanted), there)):
        raise error
    yield (TransactWrite((*(Delete(layout.table, key, wanted) for key in keys), *others)),)
    return is_shown


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
