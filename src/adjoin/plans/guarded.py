"""Classes with fields that nobody writes by hand: aggregates and copies, and fields that never change.

An instance is written whole by a program that knows nothing of what was counted meanwhile. So such a
node is put by an update, which sets every other field and removes those that are None, and leaves alone
what is maintained. Where that cannot be said without looking, what is there is read and carried over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from adjoin.errors import InvalidValue
from adjoin.expressions import Action, Add, Compare, Condition, Exists, Not, Or, Remove, Set, Value, all_of, attribute
from adjoin.layouts.interface import REVISION, WRITTEN, BoundLayout
from adjoin.model import AS_READ
from adjoin.plans.maintenance.postings import TURN, revises
from adjoin.requests import Put, Update
from adjoin.schema import EdgeType, Entity, EntityType, NodeType
from adjoin.values import Item

_OWN = "adjoin:"
clock: Callable[[], float] = time.time


def is_carried(layout: BoundLayout, kind: EntityType) -> bool:
    """Whether what is maintained can only be kept by reading it: the item has satellites, or fields of any name."""
    if not layout.rules.keeps(kind) or not isinstance(kind, NodeType):
        return False
    return revises(layout, kind)


def written_items(layout: BoundLayout, kind: EntityType, entity: Entity) -> tuple[Item, ...]:
    """The items of an instance without what is maintained; an edge at nodes that can expire says when it is written."""
    items = layout.items(entity)
    if isinstance(kind, EdgeType) and (kind.source.expires or kind.target.expires):
        items = tuple(item | {WRITTEN: {"N": str(int(clock()))}} for item in items)
    names = [kind.attributes[name] for name in layout.rules.maintained(kind)]
    if not names:
        return items
    return tuple({name: value for name, value in item.items() if name not in names} for item in items)


def carried(layout: BoundLayout, kind: EntityType, old: Item | None) -> Item:
    """What a stored item has that a new one in its place must have too."""
    names = {kind.attributes[name] for name in layout.rules.maintained(kind)}
    return {
        name: value
        for name, value in (old or {}).items()
        if name in names or (name.startswith(_OWN) and name != REVISION)
    }


def put_request(layout: BoundLayout, kind: EntityType, item: Item, wanted: Condition | None) -> Put | Update:
    """What puts one item of an instance, given without what is maintained."""
    condition = all_of(wanted, unchangeable(layout, kind, item))
    if not layout.rules.keeps(kind) or not isinstance(kind, NodeType):
        return Put(layout.table, item, condition)
    key = layout.key_of(item)
    maintained = {kind.attributes[name] for name in layout.rules.maintained(kind)}
    own = dict.fromkeys((*layout.shape(kind).written, *kind.attributes.values(), *_index_keys(layout, kind)))
    actions: list[Action] = [Set(attribute(name), Value(value)) for name, value in item.items() if name not in key]
    absent = (name for name in own if name not in item and name not in maintained)
    removed = [Remove(attribute(name)) for name in absent]
    if not actions:
        # Removing alone makes no item where there is none, and a transaction takes no update without an action.
        actions.append(Add(attribute(TURN), {"N": "0"}))
    actions += removed
    return Update(layout.table, key, tuple(actions), condition)


def _index_keys(layout: BoundLayout, kind: EntityType) -> tuple[str, ...]:
    index = layout.overloaded
    return (index.partition_key, index.sort_key) if index is not None and kind.indexed else ()


# --- what is refused ---------------------------------------------------------------------------


def refuse_maintained(layout: BoundLayout, kind: EntityType, changes: Mapping[str, Any]) -> None:
    """Changes of fields that are filled in by themselves, or never change."""
    for name in layout.rules.maintained(kind):
        if name in changes:
            raise InvalidValue(f"{kind.name}.{name} is kept true by itself, and cannot be set; leave it out")
    for name in layout.rules.immutable(kind):
        if name in changes:
            raise InvalidValue(f"{kind.name}.{name} is immutable: it cannot change once it is written; leave it out")


def refuse_given(layout: BoundLayout, kind: EntityType, entity: Entity) -> None:
    """A node that is put with a value of somebody's own for what is maintained, and not as it was read."""
    read = entity.__dict__.get(AS_READ, {})
    for name in layout.rules.told_apart(kind):
        value = entity.__dict__[name]
        if value != read.get(name, value) or (name not in read and value != _default(kind, name)):
            raise InvalidValue(
                f"{kind.name}.{name} is kept true by itself, and cannot be set; leave it out, or put what was read"
            )


def refuse_counted(layout: BoundLayout, kind: EntityType, entity: Entity) -> None:
    """A new node on which something is counted already; a copy on an edge is filled in, whatever it says."""
    if not isinstance(kind, NodeType):
        return
    for name in layout.rules.maintained(kind):
        default = _default(kind, name)
        if entity.__dict__[name] != default:
            raise InvalidValue(f"{kind.name}.{name} is kept true by itself, and begins with {default!r}; leave it out")


def _default(kind: EntityType, name: str) -> Any:
    return kind.fields[name].get_default(call_default_factory=True)


def unchangeable(layout: BoundLayout, kind: EntityType, item: Item) -> Condition | None:
    """Holds where no immutable field has another value yet."""
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
    """Tells that an item was not written because it would have changed an immutable field, if that is so."""
    for field in layout.rules.immutable(kind):
        stored = kind.attributes[field]
        if there is not None and stored in there and there[stored] != item.get(stored):
            raise InvalidValue(
                f"{kind.name}.{field} is immutable, and {name} has another value already; put it as it is stored"
            )
