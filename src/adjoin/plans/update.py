"""Changing named fields of one node or edge.

Mostly that is one request, which does not look at what is there. It does look first where a field is
part of an index key together with others, which it fills in, or where the entity has satellites; what
it saw must then still hold when it writes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from adjoin.errors import ConditionFailed, InvalidValue, NotFound, TransactionCanceled, UnknownField
from adjoin.expressions import Compare, Condition, Exists, Not, Or, Value, all_of, attribute
from adjoin.fields import Change, Predicate
from adjoin.layouts.interface import DELETING, BoundLayout
from adjoin.model import Edge
from adjoin.plans import Plan
from adjoin.plans.at_once import counted_at_once
from adjoin.plans.bundles import ATTEMPTS, Bundle, Claims, changed_fields, update_bundle, write_bundle
from adjoin.plans.conditions import bounds, condition, update_actions
from adjoin.plans.deletion import UNMARKED, visible
from adjoin.plans.guarded import refuse_maintained
from adjoin.plans.imagined import imagined
from adjoin.plans.read import edge as read_edge
from adjoin.plans.write import edge_keys, met, not_held
from adjoin.requests import Get, ItemResponse, TransactWrite, Update
from adjoin.schema import EdgeType, EntityType, unknown_field
from adjoin.values import Item


@dataclass(frozen=True)
class Identity:
    """Which node or edge is meant: its class, its keys, and the values that make them."""

    kind: EntityType
    keys: list[Item]
    values: list[dict[str, Any]]
    name: str


def identified(
    layout: BoundLayout, model: type[Any], ids: tuple[Any, ...], fields: Mapping[str, Any]
) -> tuple[Identity, dict[str, Any]]:
    """What ids and key fields name, and the fields that are left over."""
    if isinstance(model, type) and issubclass(model, Edge):
        return _identified_edge(layout, layout.schema.edge(model), ids, fields)
    kind = layout.schema.node(model)
    if len(ids) != 1:
        raise InvalidValue(f"a {kind.name} is named by one id, and {len(ids)} were given")
    id = kind.id(ids[0])
    named = Identity(kind, [layout.node_key(kind, id)], [{"id": id}], f"{kind.name} {id!r}")
    return named, dict(fields)


def _identified_edge(
    layout: BoundLayout, kind: EdgeType, ids: tuple[Any, ...], fields: Mapping[str, Any]
) -> tuple[Identity, dict[str, Any]]:
    if len(ids) != 2:
        raise InvalidValue(f"a {kind.name} is named by its source and its target; {len(ids)} ids were given")
    source, target = kind.source.id(ids[0]), kind.target.id(ids[1])
    names = layout.key_fields(kind)
    own = kind.key_values(names, fields)
    rest = {name: value for name, value in fields.items() if name not in names}
    ends = [(source, target), (target, source)]
    keys = edge_keys(layout, kind, source, target, own)
    values = [{**own, "source.id": one, "target.id": other} for one, other in ends[: len(keys)]]
    return Identity(kind, keys, values, f"{kind.name} from {source!r} to {target!r}"), rest


def update(
    layout: BoundLayout,
    identity: Identity,
    changes: Mapping[str, Any],
    if_version: int | None = None,
    only_if: Predicate | None = None,
) -> Plan[Any]:
    """The node or edge after the change; an edge that a delete has hidden counts as not there."""
    unmarked = UNMARKED if isinstance(identity.kind, EdgeType) else None
    try:
        return (yield from _updated(layout, identity, changes, if_version, only_if, unmarked))
    except (ConditionFailed, TransactionCanceled) as error:
        item = met(error)
        if item is None or DELETING not in item:
            raise not_held(identity.kind, identity.name, error) from None
    if not (yield from visible(layout, [dict(item)])):
        raise NotFound(f"there is no {identity.name}; put it first")
    try:
        return (yield from _updated(layout, identity, changes, if_version, only_if, None))
    except (ConditionFailed, TransactionCanceled) as error:
        raise not_held(identity.kind, identity.name, error) from None


def _updated(
    layout: BoundLayout,
    identity: Identity,
    changes: Mapping[str, Any],
    if_version: int | None,
    only_if: Predicate | None,
    also: Condition | None,
) -> Plan[Any]:
    kind = identity.kind
    if layout.has_satellites(kind) or counted_at_once(layout, kind):
        wanted = update_condition(layout, identity, changes, if_version, only_if)

        def made(claims: Claims) -> Plan[Bundle]:
            return update_bundle(layout, kind, identity.keys, changes, wanted, identity.name, claims)

        return (yield from write_bundle(layout, kind, made))
    if names := read_first(layout, identity, changes):
        return (yield from _filled_in(layout, identity, changes, if_version, only_if, names))
    updates = update_requests(layout, identity, changes, if_version, only_if, also)
    return (yield from _written(layout, identity, updates))


def _written(layout: BoundLayout, identity: Identity, updates: tuple[Update, ...]) -> Plan[Any]:
    if len(updates) == 1:
        response: ItemResponse
        (response,) = yield updates
        return response.item and layout.decode(identity.kind, response.item)
    yield (TransactWrite(updates),)
    ends = identity.values[0]
    assert isinstance(identity.kind, EdgeType)
    return (yield from read_edge(layout, identity.kind, ends["source.id"], ends["target.id"], ends, True))


# --- fields that make an index key together ----------------------------------------------------


def read_first(layout: BoundLayout, identity: Identity, changes: Mapping[str, Any]) -> list[str]:
    """The fields whose stored values must be known before these can change."""
    kind = identity.kind
    relative = [name for name, change in changes.items() if isinstance(change, Change)]
    needed = layout.needed_for_index(kind, identity.values[0], changes)
    needed += [changes[name].field for name in relative if layout.in_index_key(kind, [name]) is not None]
    return [name for name in dict.fromkeys(needed) if name in kind.attributes]


def filled_in(
    layout: BoundLayout, identity: Identity, changes: Mapping[str, Any], names: Collection[str]
) -> Plan[tuple[Identity, dict[str, Any], Condition | None, Item]]:
    """The change with what is stored filled in, a condition that it is stored still, and the item."""
    kind = identity.kind
    response: ItemResponse
    (response,) = yield (Get(layout.table, identity.keys[0], consistent=True),)
    item = response.item or next(iter(imagined(layout, kind, identity.keys[:1])), None)
    entity = item and layout.decode(kind, item)
    if item is None or entity is None or not (yield from visible(layout, [item])):
        raise NotFound(f"there is no {identity.name}; put it first")
    values = entity.__dict__
    known = [{**each, **{name: values[name] for name in names if name not in changes}} for each in identity.values]
    worked_out = changed_fields(kind, values, changes, item)
    # What no index key is made of stays relative, so that nobody's change of it is lost.
    absolute = {
        name: change if isinstance(change, Change) and layout.in_index_key(kind, [name]) is None else worked_out[name]
        for name, change in changes.items()
    }
    as_read = _as_read(kind, item, names)
    return replace(identity, values=known), absolute, as_read, item


def _as_read(kind: EntityType, item: Item, names: Collection[str]) -> Condition | None:
    stored = [kind.attributes[name] for name in names]
    return all_of(
        *(
            Compare("=", attribute(name), Value(item[name])) if name in item else Not(Exists(attribute(name)))
            for name in stored
        )
    )


def _filled_in(
    layout: BoundLayout,
    identity: Identity,
    changes: Mapping[str, Any],
    if_version: int | None,
    only_if: Predicate | None,
    names: list[str],
) -> Plan[Any]:
    attempt = 0
    while True:
        known, absolute, as_read, item = yield from filled_in(layout, identity, changes, names)
        attempt += 1
        try:
            updates = update_requests(layout, known, absolute, if_version, only_if, as_read)
            return (yield from _written(layout, identity, updates))
        except (ConditionFailed, TransactionCanceled) as error:
            now = met(error)
            stored = [identity.kind.attributes[name] for name in names]
            moved = now is not None and any(now.get(name) != item.get(name) for name in stored)
            if attempt == ATTEMPTS or not moved:
                raise


# --- requests ----------------------------------------------------------------------------------


def update_requests(
    layout: BoundLayout,
    identity: Identity,
    changes: Mapping[str, Any],
    if_version: int | None,
    only_if: Predicate | None,
    also: Condition | None = None,
) -> tuple[Update, ...]:
    wanted = update_condition(layout, identity, changes, if_version, only_if, also)
    return tuple(
        Update(layout.table, key, update_actions(layout, identity.kind, values, changes), wanted, "new")
        for key, values in zip(identity.keys, identity.values, strict=True)
    )


def update_condition(
    layout: BoundLayout,
    identity: Identity,
    changes: Mapping[str, Any],
    if_version: int | None,
    only_if: Predicate | None,
    also: Condition | None = None,
) -> Condition | None:
    """What must hold for a change of these fields, which are checked to be fields that can change."""
    kind = identity.kind
    if not changes:
        raise InvalidValue(f"no field of {identity.name} was given to change; pass them by name")
    for name in ("source", "target") if isinstance(kind, EdgeType) else ("id",):
        if name in changes:
            raise InvalidValue(
                f"{name!r} of {identity.name} is its key and cannot change; put a new one and delete this"
            )
    unknown = [name for name in changes if name not in kind.attributes]
    if unknown:
        raise UnknownField(unknown_field(kind.name, unknown[0], kind.attributes))
    refuse_maintained(layout, kind, changes)
    return all_of(
        layout.present,
        _version_is(kind, if_version),
        bounds(kind, changes),
        None if only_if is None else condition(layout, kind, only_if),
        also,
    )


def _version_is(kind: EntityType, version: int | None) -> Condition | None:
    if version is None:
        return None
    if kind.version is None:
        raise InvalidValue(
            f"{kind.name} has no version to compare with; declare a field version: int = 0, "
            f"or mark an int field with Version()"
        )
    path = attribute(kind.attribute(kind.version))
    equal = Compare("=", path, Value({"N": str(version)}))
    # An item that another program wrote without a version counts as version 0.
    return Or((equal, Not(Exists(path)))) if version == 0 else equal
