"""Managed fields (aggregates and copied fields), which programs do not write, and immutable fields.

A program puts a whole instance and does not know what was counted meanwhile. So the put of a node with managed fields
is an update: it sets all other fields, removes those that are None, and leaves the managed fields alone. Where an
update cannot express that, the stored item is read and its managed fields are copied into the new item.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from adjoin.entity_types import EdgeType, Entity, EntityType, NodeType
from adjoin.errors import InvalidValue
from adjoin.expressions import (
    Action,
    Add,
    Compare,
    Condition,
    Exists,
    IfNotExists,
    Not,
    Or,
    Remove,
    Set,
    Value,
    all_of,
    attribute,
)
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import REVISION, TWIN, WRITTEN
from adjoin.model import AS_READ
from adjoin.plans.counting.node_transaction import TURN, revises
from adjoin.requests import Put, Update
from adjoin.values import Item

_OWN = "adjoin:"
clock: Callable[[], float] = time.time


def is_kept_by_reading(layout: BoundLayout, kind: EntityType) -> bool:
    """Whether managed fields can only be kept by reading the item: it has satellites, or attributes of any name."""
    if not layout.rules.keeps(kind) or not isinstance(kind, NodeType):
        return False
    return revises(layout, kind)


def written_items(layout: BoundLayout, kind: EntityType, entity: Entity) -> tuple[Item, ...]:
    """The items of an instance without managed fields; an edge of nodes that can expire gets the time of the write.

    A node is in the indexes of its managed fields as a new one is, with their defaults. An edge gets the index keys of
    its copied fields when these are filled in.
    """
    items = layout.items(entity)
    if isinstance(kind, EdgeType) and (kind.source.expires or kind.target.expires):
        items = tuple(item | {WRITTEN: {"N": str(int(clock()))}} for item in items)
    if isinstance(kind, EdgeType) and kind.symmetric and layout.due.is_becoming_symmetric(kind):
        items = tuple(item | {TWIN: {"BOOL": at > 0}} for at, item in enumerate(items))
    names = [kind.attributes[name] for name in layout.rules.maintained(kind)]
    if not names:
        return items
    items = tuple({name: value for name, value in item.items() if name not in names} for item in items)
    if any(copy.edge is kind for copy in layout.rules.copies):
        return items
    return tuple(keyed(layout, kind, item) for item in items)


def keyed(layout: BoundLayout, kind: EntityType, item: Item) -> Item:
    """An item with the index keys of the managed fields that it has."""
    return layout.with_managed_keys(kind, item | layout.managed.defaults(kind, item))


def kept_fields(layout: BoundLayout, kind: EntityType, old: Item | None) -> Item:
    """The attributes of a stored item that a new item in its place must keep."""
    names = {kind.attributes[name] for name in layout.rules.maintained(kind)}
    return {
        name: value
        for name, value in (old or {}).items()
        if name in names or (name.startswith(_OWN) and name not in (REVISION, TWIN))
    }


def put_request(layout: BoundLayout, kind: EntityType, item: Item, wanted: Condition | None) -> Put | Update:
    """The request that puts one item of an instance; `item` has no managed fields, but the keys of their defaults.

    A stored node keeps the index keys of its managed fields, because the program does not know their values.
    """
    condition = all_of(wanted, unchangeable(layout, kind, item))
    if not layout.rules.keeps(kind) or not isinstance(kind, NodeType):
        return Put(layout.table, item, condition)
    key = layout.key_of(item)
    maintained = {kind.attributes[name] for name in layout.rules.maintained(kind)}
    own = dict.fromkeys(_index_keys(layout, kind))
    for each in (kind, kind.whole, *kind.whole.family):
        # It may replace a node of another class of its family, of which nothing may stay.
        own |= dict.fromkeys((*layout.shape(each).written, *each.attributes.values()))
    explained = layout.explained(kind)
    late = layout.managed.attributes[kind.model] | maintained
    # What no field explains stays as it is stored. It may be newer than what was read.
    actions: list[Action] = [
        Set(attribute(name), IfNotExists(attribute(name), Value(value)) if name in late else Value(value))
        for name, value in item.items()
        if name not in key and (name in explained or name.startswith(_OWN) or kind.takes_any)
    ]
    absent = (name for name in own if name not in item and name not in late)
    removed = [Remove(attribute(name)) for name in absent]
    if not actions:
        # REMOVE alone does not create an item, and a transaction refuses an update without an action.
        actions.append(Add(attribute(TURN), {"N": "0"}))
    actions += removed
    return Update(layout.table, key, tuple(actions), condition)


def _index_keys(layout: BoundLayout, kind: EntityType) -> tuple[str, ...]:
    index = layout.overloaded
    return (index.partition_key, index.sort_key) if index is not None and kind.indexed else ()


# --- what is refused ---------------------------------------------------------------------------


def refuse_maintained(layout: BoundLayout, kind: EntityType, changes: Mapping[str, Any]) -> None:
    """Refuses changes of managed and of immutable fields."""
    for name in layout.rules.maintained(kind):
        if name in changes:
            raise InvalidValue(f"{kind.name}.{name} is a managed field, and only adjoin sets it; leave it out")
    for name in layout.rules.immutable(kind):
        if name in changes:
            raise InvalidValue(f"{kind.name}.{name} is immutable: it cannot change once it is written; leave it out")


def refuse_given(layout: BoundLayout, kind: EntityType, entity: Entity) -> None:
    """Refuses a put with a value of the caller's own for a managed field; the value that was read is allowed."""
    read = entity.__dict__.get(AS_READ, {})
    for name in layout.rules.told_apart(kind):
        value = entity.__dict__[name]
        if value != read.get(name, value) or (name not in read and value != _default(kind, name)):
            raise InvalidValue(
                f"{kind.name}.{name} is a managed field, and only adjoin sets it; leave it out, or put what was read"
            )


def refuse_counted(layout: BoundLayout, kind: EntityType, entity: Entity) -> None:
    """Refuses a new node with a value for an aggregate; a copied field of an edge is filled in, whatever it holds."""
    if not isinstance(kind, NodeType):
        return
    for name in layout.rules.maintained(kind):
        default = _default(kind, name)
        if entity.__dict__[name] != default:
            raise InvalidValue(f"{kind.name}.{name} is a managed field, and begins with {default!r}; leave it out")


def _default(kind: EntityType, name: str) -> Any:
    return kind.fields[name].get_default(call_default_factory=True)


def unchangeable(layout: BoundLayout, kind: EntityType, item: Item) -> Condition | None:
    """Holds where no immutable field already has another value."""
    conditions: list[Condition] = []
    for name in layout.rules.immutable(kind):
        stored = kind.attributes[name]
        path = attribute(stored)
        same = (Compare("=", path, Value(item[stored])),) if stored in item else ()
        conditions.append(Or((Not(Exists(path)), *same)) if same else Not(Exists(path)))
    return all_of(*conditions)


def refuse_changed(
    layout: BoundLayout, kind: EntityType, item: Item, there: Mapping[str, Any] | None, name: str
) -> None:
    """Raises `InvalidValue` if an item was not written because it would have changed an immutable field."""
    for field in layout.rules.immutable(kind):
        stored = kind.attributes[field]
        if there is not None and stored in there and there[stored] != item.get(stored):
            raise InvalidValue(
                f"{kind.name}.{field} is immutable, and {name} already has another value; put it as it is stored"
            )
