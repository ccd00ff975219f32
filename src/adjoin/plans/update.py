"""Changing named fields of one node or edge.

Mostly that is one request, which does not look at what is there. Its conditions say that the class can read what is
there, as far as conditions can, so that a call which fails has changed nothing. It does look first where they cannot,
where a field is part of an index key together with others, which it fills in, where an edge is two items, or where
the entity has satellites; what it saw must then still hold when it writes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adjoin.errors import ConditionFailed, InvalidValue, NotFound, TransactionCanceled, UnknownField, shown
from adjoin.evaluate import condition_test
from adjoin.expressions import Compare, Condition, Exists, Not, Value, all_of, attribute
from adjoin.fields import Change, Predicate
from adjoin.layouts.interface import DELETING, BoundLayout
from adjoin.model import Edge
from adjoin.plans import Plan
from adjoin.plans.at_once import counted_at_once
from adjoin.plans.bundles import (
    ATTEMPTS,
    Bundle,
    Claims,
    changed_fields,
    of_another_type,
    refuse_misfit,
    update_bundle,
    write_bundle,
)
from adjoin.plans.conditions import bounds, condition, update_actions
from adjoin.plans.deletion import UNMARKED, visible
from adjoin.plans.guarded import refuse_maintained
from adjoin.plans.imagined import imagined, stored_entity
from adjoin.plans.versions import has_version
from adjoin.plans.write import edge_keys, met, not_held
from adjoin.requests import Get, ItemResponse, TransactWrite, Update
from adjoin.schema import EdgeType, EntityType, plain_type, unknown_field
from adjoin.values import Item

_MOST_AS_READ = 60
"""Fields of which a condition says that they are as they were: DynamoDB's takes 4 KB and 300 operators."""


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
    named = Identity(kind, [layout.node_key(kind, id)], [{"id": id}], f"{kind.name} {shown(id)}")
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
    return Identity(kind, keys, values, f"{kind.name} from {shown(source)} to {shown(target)}"), rest


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
        wanted = update_condition(layout, identity, changes, if_version, only_if, seen=kind.attributes)

        def made(claims: Claims) -> Plan[Bundle]:
            return update_bundle(layout, kind, identity.keys, changes, wanted, identity.name, claims)

        return (yield from write_bundle(layout, kind, made))
    names = read_first(layout, identity, changes)
    if len(identity.keys) > 1:
        # No transaction gives back what it has written; so all of it is known before.
        left = [name for name in layout.shape(kind).fields if name not in changes or isinstance(changes[name], Change)]
        names = list(dict.fromkeys([*names, *left]))
    elif not names:
        updates = update_requests(layout, identity, changes, if_version, only_if, also)
        try:
            response: ItemResponse
            (response,) = yield updates
            # What does not fit now is nothing that a condition tells. The change is made, and must not seem to fail.
            return response.item and layout.decode_as_far(kind, response.item)
        except ConditionFailed as failed:
            if failed.item is None or DELETING in failed.item:
                raise
            names = misfits(layout, identity, changes, dict(failed.item))
            if not names:
                raise
    return (yield from _filled_in(layout, identity, changes, if_version, only_if, also, names))


# --- what is looked at first -------------------------------------------------------------------


def read_first(layout: BoundLayout, identity: Identity, changes: Mapping[str, Any]) -> list[str]:
    """The fields whose stored values must be known before these can change."""
    kind, fit = identity.kind, layout.fit(identity.kind)
    relative = {name: change for name, change in changes.items() if isinstance(change, Change)}
    needed = layout.needed_for_index(kind, identity.values[0], changes)
    needed += [relative[name].field for name in relative if layout.in_index_key(kind, [name]) is not None]
    needed += [relative[name].field for name in relative if not _is_told(layout, kind, name, relative[name])]
    needed += [name for name in fit.untold if fit.is_whole or name not in changes]
    return [name for name in dict.fromkeys(needed) if name in kind.attributes]


def _is_told(layout: BoundLayout, kind: EntityType, name: str, change: Change) -> bool:
    """Whether a value made of a stored one is sure to fit its field, if conditions hold."""
    told = layout.fit(kind).told.get(name)
    if told is None or told.changing is None:
        return False
    if change.field == name:
        return True
    same = plain_type(kind.fields[change.field]) is plain_type(kind.fields[name])
    return same and not kind.limits(name)


def misfits(layout: BoundLayout, identity: Identity, changes: Mapping[str, Any], item: Item) -> list[str]:
    """The fields for which a stored item does not have what conditions ask, though the class can read it.

    `InvalidItem` if it cannot.
    """
    kind, fit = identity.kind, layout.fit(identity.kind)
    found = [
        name
        for name, told in fit.told.items()
        for wanted in [told.changing if isinstance(changes.get(name), Change) else told.condition]
        if wanted is not None and (name not in changes or isinstance(changes[name], Change))
        if not condition_test(wanted)(item)
    ]
    if layout.decode(kind, item) is None:
        raise NotFound(of_another_type(identity.name))
    return found


def filled_in(
    layout: BoundLayout, identity: Identity, changes: Mapping[str, Any], names: Sequence[str]
) -> Plan[tuple[Identity, dict[str, Any], Condition | None, Item, Any]]:
    """The change with what is stored filled in, a condition that it is stored still, the item, and what becomes of it.

    `InvalidItem` if the class cannot read it, and `InvalidValue` if it could not afterwards.
    """
    kind = identity.kind
    response: ItemResponse
    (response,) = yield (Get(layout.table, identity.keys[0], consistent=True),)
    item = response.item or next(iter(imagined(layout, kind, identity.keys[:1])), None)
    if item is None or not (yield from visible(layout, [item])):
        raise NotFound(f"there is no {identity.name}; put it first")
    entity = stored_entity(layout, kind, item)
    if entity is None:
        raise NotFound(of_another_type(identity.name))
    values = entity.__dict__
    known = [{**each, **{name: values[name] for name in names if name not in changes}} for each in identity.values]
    worked_out = changed_fields(kind, values, changes, item)
    after = entity.model_copy(update=worked_out)
    refuse_misfit(layout, kind, layout.changed(kind, item, after), identity.name)
    # What is made of nothing that was looked at stays relative, so that nobody's change of it is lost.
    absolute = {
        name: change
        if isinstance(change, Change)
        and not {name, change.field} & {*names}
        and layout.in_index_key(kind, [name]) is None
        else worked_out[name]
        for name, change in changes.items()
    }
    return replace(identity, values=known), absolute, _as_read(kind, item, names), item, after


def _as_read(kind: EntityType, item: Item, names: Sequence[str]) -> Condition | None:
    # What has to be as it was comes first. The rest only has to fit the class, and did a moment ago.
    stored = [kind.attributes[name] for name in names[:_MOST_AS_READ]]
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
    also: Condition | None,
    names: list[str],
) -> Plan[Any]:
    attempt = 0
    while True:
        known, absolute, as_read, item, after = yield from filled_in(layout, identity, changes, names)
        attempt += 1
        try:
            wanted = all_of(as_read, also)
            updates = update_requests(layout, known, absolute, if_version, only_if, wanted, names)
            if len(updates) > 1:
                yield (TransactWrite(updates),)
                return after
            response: ItemResponse
            (response,) = yield updates
            return response.item and layout.decode_as_far(identity.kind, response.item)
        except (ConditionFailed, TransactionCanceled) as error:
            now = met(error)
            if now is not None and DELETING not in now:
                names = list(dict.fromkeys([*names, *misfits(layout, identity, changes, dict(now))]))
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
    seen: Collection[str] = (),
) -> tuple[Update, ...]:
    wanted = update_condition(layout, identity, changes, if_version, only_if, also, seen)
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
    seen: Collection[str] = (),
) -> Condition | None:
    """What must hold for a change of these fields, which are checked to be fields that can change.

    The fields that were `seen` to fit need not fit in words of conditions.
    """
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
        has_version(kind, if_version),
        bounds(kind, changes),
        None if only_if is None else condition(layout, kind, only_if),
        also,
        *_fitting(layout, kind, changes, seen),
    )


def _fitting(
    layout: BoundLayout, kind: EntityType, changes: Mapping[str, Any], seen: Collection[str]
) -> list[Condition]:
    """What must hold for the class to be able to read the item afterwards."""
    left = [name for name in kind.attributes if name not in changes and name not in seen]
    relative = [name for name, change in changes.items() if isinstance(change, Change) and name not in seen]
    return layout.fit(kind).conditions(left, relative)
