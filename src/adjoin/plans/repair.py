"""Putting right what an audit or a batch job found, while others write: each step checks that it still holds.

What was found may be hours old. So nothing is written because of a finding alone: what is there is read
again, and the write holds only as long as that is unchanged. A step that finds nothing to do does nothing. One that
others were in the way of, at every attempt, raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from adjoin.errors import AlreadyExists, ConditionFailed, InvalidValue, NotFound, TransactionCanceled
from adjoin.expressions import Action, And, Compare, Condition, Exists, Not, Or, Remove, Set, Value, attribute
from adjoin.layouts.interface import OWNER, BoundLayout, Satellite
from adjoin.plans import Plan
from adjoin.plans.bundles import ATTEMPTS, Claims, beside, settled, update_bundle, write_bundle
from adjoin.plans.revisions import unchanged
from adjoin.requests import Check, Delete, Get, ItemResponse, Put, TransactWrite, Update
from adjoin.schema import EdgeType, EntityType, NodeType
from adjoin.values import AttributeValue, Item, decode

FieldValue: TypeAlias = tuple[NodeType, Any, str, AttributeValue | None]
"""A node by class and id, a field of it, and what to store there; None for nothing."""

ROUND = 100
"""Fields that are written side by side."""


# --- fields that only a batch job fills --------------------------------------------------------


def write_fields(layout: BoundLayout, values: Sequence[FieldValue]) -> Plan[int]:
    """Stores values of fields on nodes that are there; answers how many there were."""
    plain: list[FieldValue] = []
    written = 0
    for value in values:
        kind, _, name, _ = value
        if layout.has_satellites(kind) or layout.in_index_key(kind, [name]) is not None:
            written += yield from _write_whole(layout, value)
        else:
            plain.append(value)
    updates = [_update(layout, value) for value in plain]
    try:
        if updates:
            yield tuple(updates)
        return written + len(updates)
    except ConditionFailed:
        # Some node is gone; which, is found one by one. Writing the others again changes nothing.
        for update in updates:
            try:
                yield (update,)
                written += 1
            except ConditionFailed:
                pass
    return written


def _update(layout: BoundLayout, value: FieldValue) -> Update:
    kind, id, name, stored = value
    place = attribute(kind.attributes[name])
    action: Action = Remove(place) if stored is None else Set(place, Value(stored))
    return Update(layout.table, layout.node_key(kind, id), (action,), layout.present)


def _write_whole(layout: BoundLayout, value: FieldValue) -> Plan[int]:
    """A node that stands in indexes by copies, or by this field, is written with all that belongs to it."""
    kind, id, name, stored = value
    changes = {name: None if stored is None else decode(stored)}
    keys = [layout.node_key(kind, id)]
    try:
        yield from write_bundle(
            layout, kind, lambda gone: update_bundle(layout, kind, keys, changes, None, f"{kind.name} {id!r}", gone)
        )
    except NotFound:
        return 0
    return 1


# --- edges -------------------------------------------------------------------------------------


def remove_dangling(layout: BoundLayout, kind: EdgeType, source: Any, target: Any, key: Item) -> Plan[list[Item]]:
    """Removes an edge if one of its ends is not there; answers the keys of its items, none if that is not so."""
    ends = {_place(each): each for each in (layout.node_key(kind.source, source), layout.node_key(kind.target, target))}
    wanted = [key, *ends.values()]
    for attempt in range(ATTEMPTS):
        responses: list[ItemResponse] = yield tuple(Get(layout.table, each, consistent=True) for each in wanted)
        item, *nodes = [response.item for response in responses]
        missing = [end for end, node in zip(ends.values(), nodes, strict=True) if node is None]
        if item is None or not missing:
            return []
        keys = [key, *layout.twin_keys(kind, item)]
        beside = [each.key for each in layout.satellites_beside(kind, item)]
        writes = [Delete(layout.table, each) for each in (*keys, *beside)]
        try:
            yield (TransactWrite((*writes, Check(layout.table, missing[0], Not(layout.present)))),)
            return keys
        except TransactionCanceled as canceled:
            _go_on(attempt, canceled)
    return []


def restore_twin(layout: BoundLayout, kind: EdgeType, key: Item) -> Plan[list[Item]]:
    """Writes the other half of a symmetric edge, if only this is there; answers both keys, none if that is not so."""
    for attempt in range(ATTEMPTS):
        response: ItemResponse
        (response,) = yield (Get(layout.table, key, consistent=True),)
        edge = None if response.item is None else layout.decode(kind, response.item)
        if response.item is None or edge is None:
            return []
        twins = [each for each in layout.items(edge) if layout.key_of(each) != key]
        if not twins:
            return []
        try:
            check = Check(layout.table, key, _same(layout, response.item))
            yield (TransactWrite((check, Put(layout.table, twins[0], Not(layout.present)))),)
            return [key, layout.key_of(twins[0])]
        except TransactionCanceled as canceled:
            if canceled.reasons[1].code == "ConditionalCheckFailed":
                return []
            _go_on(attempt, canceled)
    return []


def _go_on(attempt: int, canceled: TransactionCanceled) -> None:
    """Raises what was in the way, if there is no further attempt."""
    if attempt + 1 == ATTEMPTS:
        raise canceled


def _same(layout: BoundLayout, item: Item) -> Condition:
    """Holds as long as an item has the attributes that it had."""
    keys = layout.key_of(item)
    conditions = [Compare("=", attribute(name), Value(value)) for name, value in item.items() if name not in keys]
    return And((layout.present, *conditions))


# --- satellites --------------------------------------------------------------------------------


def restore_satellites(layout: BoundLayout, kind: EntityType, key: Item) -> Plan[None]:
    """Writes what stands beside an entity anew, if it is there; claims that are nobody's are taken over."""
    claims = Claims()
    for attempt in range(ATTEMPTS):
        response: ItemResponse
        (response,) = yield (Get(layout.table, key, consistent=True),)
        entity = None if response.item is None else layout.decode(kind, response.item)
        if response.item is None or entity is None:
            return
        satellites = layout.satellites(kind, [response.item, *_twins(layout, kind, response.item)], entity.__dict__)
        writes = beside(layout, satellites, claims)
        try:
            yield (TransactWrite((*writes, Check(layout.table, key, unchanged(layout, response.item)))),)
            return
        except TransactionCanceled as canceled:
            try:
                yield from settled(layout, kind, writes, canceled.reasons[:-1], claims)
            except AlreadyExists as taken:
                # Which of the two is right, only people know.
                raise InvalidValue(
                    f"another {kind.name} has a unique value of {_place(key)[0]!r}; change one of them"
                ) from taken
            _go_on(attempt, canceled)


def _twins(layout: BoundLayout, kind: EntityType, item: Item) -> list[Item]:
    return [item | key for key in layout.twin_keys(kind, item)] if isinstance(kind, EdgeType) else []


def remove_stray(layout: BoundLayout, kind: EntityType, satellite: Item, owner: Item) -> Plan[None]:
    """Removes a satellite that its owner does not have."""
    for attempt in range(ATTEMPTS):
        response: ItemResponse
        (response,) = yield (Get(layout.table, owner, consistent=True),)
        if response.item is not None:
            held: list[Satellite] = layout.satellites_beside(kind, response.item)
            if satellite in [each.key for each in held]:
                return
        claim = {OWNER: {"S": next(iter(owner.values()))["S"]}}
        mine = Or((Not(Exists(attribute(OWNER))), Compare("=", attribute(OWNER), Value(claim[OWNER]))))
        try:
            check = Check(layout.table, owner, unchanged(layout, response.item))
            yield (TransactWrite((check, Delete(layout.table, satellite, mine))),)
            return
        except TransactionCanceled as canceled:
            if canceled.reasons[1].code == "ConditionalCheckFailed":
                return
            _go_on(attempt, canceled)


def _place(key: Item) -> tuple[str, ...]:
    return tuple(part["S"] for part in key.values())
