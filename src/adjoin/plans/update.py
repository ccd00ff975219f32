"""Changing named fields of one node or edge.

Most changes are one request that reads nothing. Its conditions check that the class can read the stored item, as far
as conditions can express that, so a call that fails has changed nothing.

Four cases read the item first: conditions cannot express what the class asks, a changed field shares an index key with
other fields, the edge is two items, or the entity has satellites. The write is then conditional on what was read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import ConditionFailed, InvalidValue, NotFound, TransactionCanceled, UnknownField, shown
from adjoin.evaluate import condition_test
from adjoin.expressions import Condition, all_of
from adjoin.field_types import bounds_of, plain_type, unknown_field
from adjoin.fields import Predicate, RelativeChange
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING
from adjoin.model import Edge
from adjoin.plans.changed_values import changed_fields, settled
from adjoin.plans.declared import check_due
from adjoin.plans.deletion import UNMARKED, visible
from adjoin.plans.entity_write import (
    Claims,
    EntityWrite,
    entity_update,
    of_another_type,
    write_entity,
)
from adjoin.plans.in_transaction import counted_in_transaction
from adjoin.plans.managed_fields import refuse_maintained
from adjoin.plans.steps.again import AGAIN, Again, Attempt, Failure, decided, same, until_written
from adjoin.plans.steps.conditions import bounds, broken_bound, update_actions, write_condition
from adjoin.plans.steps.nested import is_shallow
from adjoin.plans.steps.samples import sample_items, stored_entity
from adjoin.plans.versions import has_version
from adjoin.plans.write import edge_keys, met, not_held
from adjoin.requests import Get, ItemResponse, Plan, TransactWrite, Update
from adjoin.values import Item

UNCHANGED = RelativeChange("", "+", 0)
"""Stands for the change of a field that a call does not name: it stays as it is stored."""
_MOST_AS_READ = 60
"""How many fields a condition compares with what was read. DynamoDB limits a condition to 4 KB and 300 operators."""


@dataclass(frozen=True)
class Identity:
    """The node or edge to change: its class, the keys of its items, the values in them, and its name in messages."""

    kind: EntityType
    id: Any
    """The id of a node, or the ids of both ends of an edge."""
    keys: list[Item]
    values: list[dict[str, Any]]
    name: str
    ends: Condition | None = None
    """Holds if the stored edge has the given ends; None if its key alone tells them."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A change of fields, as the caller asked for it."""

    identity: Identity
    fields: Mapping[str, Any]
    if_version: int | None = None
    only_if: Predicate | None = None


def identified(
    layout: BoundLayout, model: type[Any], ids: tuple[Any, ...], fields: Mapping[str, Any]
) -> tuple[Identity, dict[str, Any]]:
    """The node or edge that ids and key fields identify, and the remaining fields."""
    if isinstance(model, type) and issubclass(model, Edge):
        return _identified_edge(layout, layout.schema.edge(model), ids, fields)
    kind = layout.schema.node(model)
    if len(ids) != 1:
        raise InvalidValue(f"a {kind.name} is identified by one id, got {len(ids)}")
    id = kind.id(ids[0])
    named = Identity(kind, id, [layout.node_key(kind, id)], [kind.part_values(id)], f"{kind.name} {shown(id)}")
    return named, kind.by_field(fields)


def _identified_edge(
    layout: BoundLayout, kind: EdgeType, ids: tuple[Any, ...], fields: Mapping[str, Any]
) -> tuple[Identity, dict[str, Any]]:
    if len(ids) != 2:
        raise InvalidValue(f"a {kind.name} is identified by its source and its target, got {len(ids)} ids")
    source, target = kind.source.id(ids[0]), kind.target.id(ids[1])
    names, fields = layout.key_fields(kind), kind.by_field(fields)
    own = kind.key_values(names, fields)
    rest = {name: value for name, value in fields.items() if name not in names}
    ends = [(source, target), (target, source)]
    keys = edge_keys(layout, kind, source, target, own)
    values = [{**own, **kind.end_values(one, other)} for one, other in ends[: len(keys)]]
    name = f"{kind.name} from {shown(source)} to {shown(target)}"
    return Identity(kind, (source, target), keys, values, name, layout.has_ends(kind, source, target)), rest


def update(layout: BoundLayout, change: Changed) -> Plan[Any]:
    """Changes fields and returns the node or edge after the change; an edge that a delete has hidden does not exist."""
    identity = change.identity
    if len(identity.keys) > 1 and layout.due.is_any:
        # A symmetric edge may be stored at its other end only.
        yield from check_due(layout, lambda due: due.check_range(identity.kind, None))
    unmarked = UNMARKED if identity.kind.can_be_hidden else None
    try:
        return (yield from _updated(layout, change, unmarked))
    except (ConditionFailed, TransactionCanceled) as error:
        item = met(error)
        if item is not None and identity.ends is not None and not condition_test(identity.ends)(dict(item)):
            raise NotFound(f"there is no {identity.name}; the edge with this key has other ends") from None
        if item is None or DELETING not in item:
            raise _not_held(change, error) from None
    if not (yield from visible(layout, [dict(item)])):
        raise NotFound(f"there is no {identity.name}; put it first")
    # The edge has a mark but is visible, so the change is made without the condition that there is no mark.
    try:
        return (yield from _updated(layout, change, None))
    except (ConditionFailed, TransactionCanceled) as error:
        raise _not_held(change, error) from None


def _not_held(change: Changed, error: ConditionFailed | TransactionCanceled) -> Exception:
    """The error for a failed condition, which may be a limit of a field."""
    identity = change.identity
    item = met(error)
    if item is not None and (broken := broken_bound(identity.kind, change.fields, item)):
        return ConditionFailed(f"{identity.name} does not change: {broken}", item)
    return not_held(identity.kind, identity.name, error)


def _updated(layout: BoundLayout, change: Changed, also: Condition | None) -> Plan[Any]:
    identity, changes, if_version, only_if = change.identity, change.fields, change.if_version, change.only_if
    kind = identity.kind
    check_change(layout, change)
    if is_written_anew(layout, kind):
        wanted = update_condition(layout, identity, changes, if_version, only_if, seen=kind.attributes)

        def made(claims: Claims) -> Plan[EntityWrite]:
            return entity_update(layout, kind, identity.keys, changes, wanted, identity.name, claims)

        return (yield from write_entity(layout, kind, made))
    names = read_first(layout, identity, changes)
    if len(identity.keys) > 1:
        # A transaction does not return the new items, so every field that the result needs is read before. Each item
        # has copied fields of its own, which are not compared.
        left = [
            name
            for name in layout.shape(kind).fields
            if name not in layout.rules.maintained(kind)
            and (name not in changes or isinstance(changes[name], RelativeChange))
        ]
        names = list(dict.fromkeys([*names, *left]))
    elif not names:
        updates = update_requests(layout, identity, changes, if_version, only_if, also)
        try:
            response: ItemResponse
            (response,) = yield updates
            # The change is written, so the call must not fail now: a field that no condition could check, and that
            # does not fit the class, is returned as it is stored.
            return response.item and layout.decode_as_far(kind, response.item)
        except ConditionFailed as failed:
            if failed.item is None or DELETING in failed.item:
                raise
            names = misfits(layout, identity, changes, dict(failed.item))
            if not names:
                raise
    return (yield from _filled_in(layout, identity, changes, if_version, only_if, also, names))


def is_written_anew(layout: BoundLayout, kind: EntityType) -> bool:
    """Whether a change reads the entity and writes all its items: it has satellites, or is counted in transaction."""
    return layout.has_changing_satellites(kind) or bool(counted_in_transaction(layout, kind))


def changed_write(
    layout: BoundLayout, change: Changed, claims: Claims, names: Sequence[str] | None = None
) -> Plan[EntityWrite]:
    """The entity write of a change in a larger transaction, which reads first.

    `names` are the fields whose stored values must be known; without them, those that this change needs.
    """
    identity, kind, fields = change.identity, change.identity.kind, change.fields
    if_version, only_if = change.if_version, change.only_if
    if is_written_anew(layout, kind):
        wanted = update_condition(layout, identity, fields, if_version, only_if, seen=kind.attributes)
        made = entity_update(layout, kind, identity.keys, fields, wanted, identity.name, claims, add_companions=False)
        return (yield from made)
    names = read_first(layout, identity, fields) if names is None else names
    known, absolute, as_read, item, _after = yield from filled_in(layout, identity, fields, names)
    watched = [kind.attributes[each] for each in names]
    if kind.can_be_hidden:
        # It was visible with the marks that it had; a new mark could hide it.
        as_read = all_of(as_read, same(item, DELETING))
        watched.append(DELETING)
    updates = update_requests(layout, known, absolute, if_version, only_if, as_read, names)
    return EntityWrite(updates, [], [item] * len(updates), watched=watched)


# --- what is read first ------------------------------------------------------------------------


def read_first(layout: BoundLayout, identity: Identity, changes: Mapping[str, Any]) -> list[str]:
    """The fields whose stored values must be known before these can change."""
    kind, fit = identity.kind, layout.fit(identity.kind)
    relative = {name: change for name, change in changes.items() if isinstance(change, RelativeChange)}
    needed = layout.needed_for_index(kind, identity.values[0], changes)
    needed += [relative[name].field for name in relative if layout.in_index_key(kind, [name]) is not None]
    needed += [relative[name].field for name in relative if not _is_told(layout, kind, name, relative[name])]
    needed += [name for name in fit.untold if fit.is_whole or name not in changes]
    return [name for name in dict.fromkeys(needed) if name in kind.attributes]


def _is_told(layout: BoundLayout, kind: EntityType, name: str, change: RelativeChange) -> bool:
    """Whether conditions alone ensure that a value computed from a stored one fits its field."""
    if kind.former.get(change.field):
        # The value may be stored under a former name, which DynamoDB would not add to.
        return False
    told = layout.fit(kind).told.get(name)
    if told is not None and change.operator == "within":
        return told.inside is not None and all(map(is_shallow, change.operand))
    if told is None or told.changing is None:
        return False
    if change.operator == "discard" and told.inside is not None:
        # Only elements of sets can be taken out by their values.
        return False
    if change.field == name:
        return True
    same = plain_type(kind.fields[change.field]) is plain_type(kind.fields[name])
    return same and not bounds_of(kind.fields[name])


def misfits(layout: BoundLayout, identity: Identity, changes: Mapping[str, Any], item: Item) -> list[str]:
    """The fields for which a stored item fails the conditions, although the class can read it.

    Conditions are stricter than reading. Raises `InvalidItem` if the class cannot read the item.
    """
    kind, fit = identity.kind, layout.fit(identity.kind)
    found = [
        name
        for name, told in fit.told.items()
        for change in [changes.get(name, UNCHANGED)]
        if change is UNCHANGED or isinstance(change, RelativeChange)
        for wanted in [
            told.condition if change is UNCHANGED else told.inside if change.operator == "within" else told.changing
        ]
        if wanted is not None and not condition_test(wanted)(item)
    ]
    if layout.decode(kind, item) is None:
        raise NotFound(of_another_type(kind, identity.name))
    return found


def filled_in(
    layout: BoundLayout, identity: Identity, changes: Mapping[str, Any], names: Sequence[str]
) -> Plan[tuple[Identity, dict[str, Any], Condition | None, Item, Any]]:
    """Reads the item and completes the change with stored values.

    Returns the identity with the values that were read, the changes, a condition that the item is still what was read,
    the item, and the entity after the change. Raises `InvalidItem` if the class cannot read the item, and
    `InvalidValue` if it could not read it after the change.
    """
    kind = identity.kind
    response: ItemResponse
    (response,) = yield (Get(layout.table, identity.keys[0], consistent=True),)
    item = response.item or next(iter(sample_items(layout, kind, identity.keys[:1])), None)
    if item is None or not (yield from visible(layout, [item])):
        raise NotFound(f"there is no {identity.name}; put it first")
    entity = stored_entity(layout, kind, item)
    if entity is None:
        raise NotFound(of_another_type(kind, identity.name))
    values = entity.__dict__
    known = [{**each, **{name: values[name] for name in names if name not in changes}} for each in identity.values]
    fields = changed_fields(kind, values, changes, item)
    worked_out = settled(layout, kind, item, entity, fields, identity.name)
    after = entity.model_copy(update=worked_out)
    # A relative change of a field that no condition compares stays relative, so that no concurrent change is lost.
    absolute = {
        name: change
        if isinstance(change, RelativeChange)
        and not {name, change.field} & {*names}
        and layout.in_index_key(kind, [name]) is None
        else worked_out[name]
        for name, change in changes.items()
    }
    absolute |= {name: value for name, value in worked_out.items() if name not in fields}
    return replace(identity, values=known), absolute, _as_read(layout, kind, item, names), item, after


def _as_read(layout: BoundLayout, kind: EntityType, item: Item, names: Sequence[str]) -> Condition | None:
    # The names whose values the change uses come first. The others only have to fit the class, and they did when they
    # were read, so they may be left out of the condition.
    return all_of(*(same(item, name) for name in _holding(layout, kind, names[:_MOST_AS_READ])))


def _holding(layout: BoundLayout, kind: EntityType, names: Sequence[str]) -> list[str]:
    """The attributes that hold these fields; for a field that is in keys only, the keys of indexes."""
    others = layout.key_templates(kind).others
    found = [
        [kind.attributes[name], *kind.former.get(name, ())]
        if layout.is_stored(kind, name)
        else [attribute for attribute, template in others.items() if name in template.told]
        for name in names
    ]
    return list(dict.fromkeys(attribute for each in found for attribute in each))


def _filled_in(
    layout: BoundLayout,
    identity: Identity,
    changes: Mapping[str, Any],
    if_version: int | None,
    only_if: Predicate | None,
    also: Condition | None,
    names: list[str],
) -> Plan[Any]:
    kind = identity.kind

    def attempt() -> Plan[Attempt[Any]]:
        known, absolute, as_read, item, after = yield from filled_in(layout, identity, changes, names)
        wanted = all_of(as_read, also)
        updates = update_requests(layout, known, absolute, if_version, only_if, wanted, names)
        if len(updates) > 1:
            return Attempt((TransactWrite(updates),), lambda _: after, partial(failed, item))
        return Attempt(updates, updated, partial(failed, item))

    def updated(responses: Sequence[ItemResponse]) -> Any:
        (response,) = responses
        return response.item and layout.decode_as_far(kind, response.item)

    def failed(item: Item, failure: Failure) -> Plan[Again]:
        nonlocal names
        now = met(failure)
        if now is not None and DELETING not in now:
            names = list(dict.fromkeys([*names, *misfits(layout, identity, changes, dict(now))]))
        stored = _holding(layout, kind, names)
        if now is None or all(now.get(name) == item.get(name) for name in stored):
            # Nothing that was read has changed, so the caller's own condition failed.
            raise failure
        return decided(AGAIN)

    return (yield from until_written(attempt))


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
    """The condition for a change of these fields, of which `check_change` has found that they can change.

    `seen` names the fields that were read and fit, so that no condition has to check them.
    """
    kind = identity.kind
    return all_of(
        layout.present,
        identity.ends,
        has_version(kind, if_version),
        bounds(kind, changes),
        write_condition(layout, kind, only_if),
        also,
        *_fitting(layout, kind, changes, seen),
    )


def check_change(layout: BoundLayout, change: Changed) -> None:
    """Raises, before anything is read, if a field cannot change, or if a field or condition names an unknown one."""
    identity, changes = change.identity, change.fields
    kind = identity.kind
    for name in ("source", "target") if isinstance(kind, EdgeType) else kind.fields:
        if name in changes and name not in kind.attributes:
            raise InvalidValue(
                f"{name!r} of {identity.name} is its key and cannot change; put a new one and delete this"
            )
    unknown = [name for name in changes if name not in kind.attributes]
    if unknown:
        raise UnknownField(unknown_field(kind.name, unknown[0], kind.attributes))
    refuse_maintained(layout, kind, changes)
    if isinstance(kind, NodeType) and kind.discriminator in changes:
        raise InvalidValue(
            f"{kind.discriminator!r} says of which class {identity.name} is, and cannot change; put a node of the "
            f"other class in its place"
        )
    for each in changes.values():
        if isinstance(each, RelativeChange):
            kind.attribute(each.field)
    write_condition(layout, kind, change.only_if)


def _fitting(
    layout: BoundLayout, kind: EntityType, changes: Mapping[str, Any], seen: Collection[str]
) -> list[Condition]:
    """The conditions under which the class can read the item after the change."""
    left = [name for name in kind.attributes if name not in changes and name not in seen]
    relative = {name: each for name, each in changes.items() if isinstance(each, RelativeChange) and name not in seen}
    inside = [name for name, each in relative.items() if each.operator == "within"]
    return layout.fit(kind).conditions(left, [name for name in relative if name not in inside], inside)
