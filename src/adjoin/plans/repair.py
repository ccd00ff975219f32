"""Plans that repair what an audit or a batch job found, while other programs write.

A finding may be hours old. So each step reads the items again, and its write is conditional on what was read. A step
that finds nothing to do does nothing. A step that other writers outran at every attempt raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import (
    AlreadyExists,
    ConditionFailed,
    InvalidItem,
    InvalidKey,
    InvalidValue,
    NotFound,
    TransactionCanceled,
)
from adjoin.evaluate import condition_test
from adjoin.expressions import Action, Exists, Not, Or, Remove, Set, Value, attribute
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import OWNER, REVISION, TWIN
from adjoin.layouts.managed_keys import without
from adjoin.model import Edge
from adjoin.plans.counting.entries import whole_copies
from adjoin.plans.counting.node_transaction import revises
from adjoin.plans.entity_write import Claims, beside, entity_update, may_succeed, write_entity
from adjoin.plans.managed_fields import written_items
from adjoin.plans.steps.again import (
    AGAIN,
    Again,
    Attempt,
    Done,
    Failure,
    always_again,
    as_read,
    decided,
    new_revision,
    same,
    unchanged,
    until_written,
)
from adjoin.plans.steps.batches import place_of
from adjoin.requests import Check, Delete, Get, ItemResponse, Plan, Put, TransactWrite, Update
from adjoin.values import AttributeValue, Item

T = TypeVar("T")

FieldValue: TypeAlias = tuple[EntityType, Any, str, AttributeValue | None]
"""A node by class and id, or an item of an edge by class and key; a field, and the value to store, or None for none."""

ROUND = 100
"""How many fields are written in one round."""


# --- fields that only a batch job fills --------------------------------------------------------


def write_fields(layout: BoundLayout, values: Sequence[FieldValue]) -> Plan[int]:
    """Stores values of fields on nodes and edges that exist; returns how many were stored."""
    plain: list[FieldValue] = []
    written = 0
    for value in values:
        kind, _, name, _ = value
        if isinstance(kind, EdgeType) and (layout.has_satellites(kind) or name in layout.managed.fields[kind.model]):
            written += yield from _write_edge(layout, value)
        elif isinstance(kind, NodeType) and (
            layout.has_satellites(kind) or (layout.is_ranked(kind) and revises(layout, kind))
        ):
            written += yield from _write_whole(layout, value)
        else:
            plain.append(value)
    updates = [_update(layout, value) for value in plain]
    try:
        if updates:
            yield tuple(updates)
        return written + len(updates)
    except ConditionFailed:
        # A node does not exist any more, but the error does not say which. So each is written alone; writing the
        # others twice changes nothing.
        for update in updates:
            try:
                yield (update,)
                written += 1
            except ConditionFailed:
                pass
    return written


def _update(layout: BoundLayout, value: FieldValue) -> Update:
    kind, id, name, stored = value
    key, place = layout.node_key(kind, id) if isinstance(kind, NodeType) else id, attribute(kind.attributes[name])
    actions: list[Action] = [Remove(place) if stored is None else Set(place, Value(stored))]
    if isinstance(kind, NodeType) and name in layout.managed.fields[kind.model]:
        actions += _entry_actions(layout, kind, name, key | ({} if stored is None else {kind.attributes[name]: stored}))
    return Update(layout.table, key, tuple(actions), layout.present)


def _entry_actions(layout: BoundLayout, kind: NodeType, name: str, item: Item) -> list[Action]:
    """The actions on the index keys that hold a managed field, which are made of it and of the id."""
    after = layout.with_managed_keys(kind, item)
    return [
        Set(attribute(each), Value(after[each])) if each in after else Remove(attribute(each))
        for each in sorted(layout.managed.holding(kind, name))
    ]


def _write_edge(layout: BoundLayout, value: FieldValue) -> Plan[int]:
    """Stores a value on an edge with index copies, or with this field in an index key."""
    kind, key, name, stored = value
    place = kind.attributes[name]

    def attempt() -> Plan[Attempt[int] | Done[int]]:
        response: ItemResponse
        (response,) = yield (Get(layout.table, key, consistent=True),)
        item = response.item
        if item is None:
            return Done(0)
        new = {} if stored is None else {place: stored}
        revision = {REVISION: new_revision()} if layout.has_satellites(kind) else {}
        after = layout.with_managed_keys(kind, without(item, [place]) | new | revision)
        names = sorted({*item, *after})
        actions = tuple(
            Set(attribute(each), Value(after[each])) if each in after else Remove(attribute(each))
            for each in names
            if item.get(each) != after.get(each)
        )
        if not actions:
            return Done(1)
        own = Update(layout.table, key, actions, as_read(layout, item, item.keys() - key.keys()))
        writes = (own, *(whole_copies(layout, kind, after) if revision else ()))
        return Attempt(writes if len(writes) == 1 else (TransactWrite(writes),), lambda _: 1, always_again)

    return (yield from until_written(attempt))


def _write_whole(layout: BoundLayout, value: FieldValue) -> Plan[int]:
    """Stores a value on a node with satellites: all its items are written."""
    kind, id, name, stored = value
    assert isinstance(kind, NodeType)
    changes = {name: None if stored is None else layout.decode_field(kind, name, stored)}
    keys = [layout.node_key(kind, id)]
    try:
        yield from write_entity(
            layout, kind, lambda gone: entity_update(layout, kind, keys, changes, None, f"{kind.name} {id!r}", gone)
        )
    except NotFound:
        return 0
    return 1


# --- edges -------------------------------------------------------------------------------------


def remove_dangling(layout: BoundLayout, kind: EdgeType, source: Any, target: Any, key: Item) -> Plan[list[Item]]:
    """Removes an edge if one of its nodes does not exist; returns the keys of its items, or none if both exist."""
    ends = {
        place_of(each): each for each in (layout.node_key(kind.source, source), layout.node_key(kind.target, target))
    }
    wanted = [key, *ends.values()]
    between = layout.has_ends(kind, source, target)

    def attempt() -> Plan[Attempt[list[Item]] | Done[list[Item]]]:
        responses: list[ItemResponse] = yield tuple(Get(layout.table, each, consistent=True) for each in wanted)
        item, *nodes = [response.item for response in responses]
        missing = [end for end, node in zip(ends.values(), nodes, strict=True) if node is None]
        if item is None or not missing or (between is not None and not condition_test(between)(item)):
            return Done([])
        keys = [key, *layout.twin_keys(kind, item)]
        beside = [Delete(layout.table, each.key) for each in layout.satellites_beside(kind, item)]
        deletes = [*(Delete(layout.table, each, between) for each in keys), *beside]
        check = Check(layout.table, missing[0], Not(layout.present))
        return Attempt((TransactWrite((*deletes, check)),), lambda _: keys, always_again)

    return (yield from until_written(attempt))


def restore_twin(layout: BoundLayout, kind: EdgeType, key: Item, mark: Item | None = None) -> Plan[list[Item]]:
    """Completes a one-sided edge; returns the keys of both items, or none if the edge is not one-sided.

    `mark` is what the item that is added has besides.
    """

    def attempt() -> Plan[Attempt[list[Item]] | Done[list[Item]]]:
        response: ItemResponse
        (response,) = yield (Get(layout.table, key, consistent=True),)
        item = response.item
        edge = None if item is None else layout.decode(kind, item)
        # What the other item copies from its nodes is filled in when its change is maintained.
        both = () if not isinstance(edge, Edge) else written_items(layout, kind, edge)
        twins = [layout.with_managed_keys(kind, each) for each in both if layout.key_of(each) != key]
        if item is None or not twins:
            return Done([])
        check = Check(layout.table, key, as_read(layout, item, item.keys() - key.keys()))
        writes = (check, Put(layout.table, twins[0] | (mark or {}), Not(layout.present)))
        return Attempt((TransactWrite(writes),), lambda _: [key, layout.key_of(twins[0])], _unless_second([]))

    return (yield from until_written(attempt))


def remove_left_twin(layout: BoundLayout, kind: EdgeType, key: Item) -> Plan[None]:
    """Removes the item that a migration has added to an edge, if the edge's other item was removed since.

    Programs to which the edge has one item only remove that one. So does a migration back to such an edge.
    """

    def attempt() -> Plan[Attempt[None] | Done[None]]:
        response: ItemResponse
        (response,) = yield (Get(layout.table, key, consistent=True),)
        item = response.item
        if item is None or TWIN not in item:
            return Done(None)
        own = Delete(layout.table, key, as_read(layout, item, item.keys() - key.keys()))
        checks = [Check(layout.table, each, Not(layout.present)) for each in layout.twin_keys(kind, item)]
        if not checks:
            return Attempt((own,), lambda _: None, always_again)
        satellites = layout.satellites_beside(kind, item)
        copies = [Delete(layout.table, each.key) for each in satellites if each.owner is None]
        return Attempt((TransactWrite((checks[0], own, *copies)),), lambda _: None, failed)

    def failed(failure: Failure) -> Plan[Again | None]:
        assert isinstance(failure, TransactionCanceled)
        return decided(None if failure.reasons[0].is_failed_condition else AGAIN)

    yield from until_written(attempt)


def _unless_second(result: T) -> Callable[[Failure], Plan[T | Again]]:
    """Handles a failure: nothing is left to do if the condition of the second write failed; else tries again."""

    def failed(failure: Failure) -> Plan[T | Again]:
        assert isinstance(failure, TransactionCanceled)
        return decided(result if failure.reasons[1].is_failed_condition else AGAIN)

    return failed


# --- satellites --------------------------------------------------------------------------------


def restore_satellites(layout: BoundLayout, kind: EntityType, key: Item) -> Plan[None]:
    """Writes the satellites of an entity again, if the entity exists; stale claims are taken over."""
    claims = Claims()

    def attempt() -> Plan[Attempt[None] | Done[None]]:
        response: ItemResponse
        (response,) = yield (Get(layout.table, key, consistent=True),)
        entity = None if response.item is None else layout.decode(kind, response.item)
        if response.item is None or entity is None:
            return Done(None)
        satellites = layout.satellites(kind, [response.item, *_twins(layout, kind, response.item)], entity.__dict__)
        writes = beside(layout, satellites, claims)
        check = Check(layout.table, key, unchanged(layout, response.item))
        return Attempt((TransactWrite((*writes, check)),), lambda _: None, partial(failed, writes))

    def failed(writes: Sequence[Put | Delete | Check], failure: Failure) -> Plan[Again]:
        assert isinstance(failure, TransactionCanceled)
        try:
            yield from may_succeed(layout, kind, writes, failure.reasons[:-1], claims)
        except AlreadyExists as taken:
            # Only a person can decide which of the two is right.
            same_as = "has the same unique value as" if kind.unique else "is at the same node as that of"
            raise InvalidValue(f"another {kind.name} {same_as} {place_of(key)[0]!r}; change one of them") from taken
        return AGAIN

    yield from until_written(attempt)


def _twins(layout: BoundLayout, kind: EntityType, item: Item) -> list[Item]:
    return [item | key for key in layout.twin_keys(kind, item)] if isinstance(kind, EdgeType) else []


def holds(layout: BoundLayout, kind: EntityType, item: Item, satellite: Item) -> bool:
    """Whether an entity with this item has the satellite with this key, or may have it if it cannot be read."""
    try:
        if satellite in [each.key for each in layout.satellites_beside(kind, item)]:
            return True
        entity = layout.decode_as_far(kind, item)
        if entity is None:
            return False
        # Fields that a validator makes, and defaults of fields that are younger than the item, have satellites too.
        held = layout.satellites(kind, [item, *_twins(layout, kind, item)], entity.__dict__)
    except (InvalidItem, InvalidKey, InvalidValue, TypeError):
        return True
    return satellite in [each.key for each in held if each.item is not None]


def remove_stray(layout: BoundLayout, kind: EntityType, satellite: Item, owner: Item) -> Plan[None]:
    """Removes a satellite that its owner should not have."""
    claim = {OWNER: {"S": layout.owner_text(kind, owner)}}
    mine = Or((Not(Exists(attribute(OWNER))), same(claim, OWNER)))

    def attempt() -> Plan[Attempt[None] | Done[None]]:
        response: ItemResponse
        (response,) = yield (Get(layout.table, owner, consistent=True),)
        if response.item is not None and holds(layout, kind, response.item, satellite):
            return Done(None)
        check = Check(layout.table, owner, unchanged(layout, response.item))
        writes = (check, Delete(layout.table, satellite, mine))
        return Attempt((TransactWrite(writes),), lambda _: None, _unless_second(None))

    yield from until_written(attempt)
