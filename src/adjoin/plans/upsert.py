"""Changing named fields of a node or an edge, which is made with them if it does not exist.

A new one has the values that the call gives, and defaults for all other fields; a relative change starts from the
default of its field. If only one item is involved, one update does both: it sets the fields that the call names, and
gives those that the item does not have their defaults.

If the call names no field, a stored one stays as it is.

Where that is not possible (the cases in which `update` reads first, satellites, aggregates that are updated in
transaction), the change is tried as an `update`, and as an `add` if there is nothing to change. Whoever comes between
makes it try again.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from adjoin.entity_types import EdgeType, Entity, EntityType, NodeType
from adjoin.errors import AlreadyExists, ConditionFailed, InvalidValue, NotFound
from adjoin.evaluate import condition_test
from adjoin.expressions import (
    Action,
    Arithmetic,
    Condition,
    Exists,
    IfNotExists,
    Not,
    Or,
    Set,
    Value,
    all_of,
    attribute,
)
from adjoin.field_types import may_be_none, problems_in
from adjoin.fields import RelativeChange
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING, REVISION
from adjoin.model import has_hook
from adjoin.plans.changed_values import worked_out
from adjoin.plans.deletion import UNMARKED, visible
from adjoin.plans.entity_write import Claims, EntityWrite, beside, revised
from adjoin.plans.managed_fields import is_kept_by_reading, written_items
from adjoin.plans.steps.again import ATTEMPTS, same
from adjoin.plans.steps.conditions import initial, start_of, update_actions, write_condition
from adjoin.plans.update import UNCHANGED, Changed, changed_write, check_change, read_first, update, update_condition
from adjoin.plans.write import add, is_accompanied, prepared
from adjoin.requests import Check, Get, ItemResponse, Plan, Put, Update


def upsert(layout: BoundLayout, change: Changed, new: Entity | InvalidValue) -> Plan[Any]:
    """Changes fields, or makes the node or edge `new`; returns the result.

    `new` is the error if there can be no new one with these values, which matters only if there is none yet.
    """
    kind = change.identity.kind
    request = upsert_request(layout, change, new)
    if request is not None:
        response: ItemResponse
        try:
            (response,) = yield (request,)
            return response.item and layout.decode_as_far(kind, response.item)
        except ConditionFailed as failed:
            if failed.item is None:
                raise refused(change) from None
        # What is stored does not fit the class by conditions alone, or has the mark of a delete, or `only_if` does not
        # hold; an update finds out.
    for _ in range(ATTEMPTS):
        try:
            return (yield from update(layout, change) if change.fields else _as_it_is(layout, change))
        except NotFound as error:
            missing = error
        check_new(layout, change, new)
        assert not isinstance(new, InvalidValue)
        try:
            return (yield from add(layout, new))
        except AlreadyExists:
            # Somebody else made it, and then it can be changed. Otherwise a unique value belongs to another node, or
            # the key holds something that is not such a node or edge.
            (response,) = yield (Get(layout.table, change.identity.keys[0], consistent=True),)
            there = [] if response.item is None else [response.item]
            if not (yield from visible(layout, there)) or not _is_it(layout, change, there[0]):
                raise
    raise missing


def _as_it_is(layout: BoundLayout, change: Changed) -> Plan[Any]:
    """The stored node or edge, of which no field changes; raises `NotFound` if there is none."""
    identity, kind = change.identity, change.identity.kind
    response: ItemResponse
    (response,) = yield (Get(layout.table, identity.keys[0], consistent=True),)
    item = response.item
    if item is None or not (yield from visible(layout, [item])) or not _is_it(layout, change, item):
        raise NotFound(f"there is no {identity.name}; put it first")
    wanted = write_condition(layout, kind, change.only_if)
    if wanted is not None and not condition_test(wanted)(item):
        raise ConditionFailed(f"the condition does not hold for {identity.name}; reload it and retry")
    return layout.decode(kind, item)


def refused(change: Changed) -> ConditionFailed:
    return ConditionFailed(
        f"the condition does not hold for {change.identity.name}, which does not exist; leave out only_if to make it"
    )


def check_new(layout: BoundLayout, change: Changed, new: Entity | InvalidValue) -> None:
    """Raises if the node or edge does not exist yet, and cannot be made."""
    if isinstance(new, InvalidValue):
        raise new
    wanted = write_condition(layout, change.identity.kind, change.only_if)
    if wanted is not None and not condition_test(wanted)({}):
        raise refused(change)


def _is_it(layout: BoundLayout, change: Changed, item: Any) -> bool:
    ends = change.identity.ends
    return layout.decode(change.identity.kind, item) is not None and (ends is None or condition_test(ends)(item))


# --- what is made ------------------------------------------------------------------------------


def new_entity(layout: BoundLayout, change: Changed) -> Entity | InvalidValue:
    """The node or edge that is made if there is none, or the error if the class refuses its values.

    Raises `InvalidValue` for what is wrong whatever is stored: a required field is missing, or a value does not fit.
    """
    kind, given = change.identity.kind, change.fields
    for name in layout.rules.immutable(kind):
        if kind.fields[name].is_required():
            raise InvalidValue(
                f"{kind.name}.{name} is immutable and has no default, so an upsert can neither change it nor leave it "
                f"out; use add, or update"
            )
    check_change(layout, change)
    demanded = [name for name in kind.attributes if kind.fields[name].is_required()]
    own = change.identity.values[0]
    missing = [name for name in demanded if name not in given and name not in own]
    if missing:
        raise InvalidValue(
            f"{kind.name}.{missing[0]} has no default, and {change.identity.name} may be new; pass a value for it, or "
            f"use update if it exists"
        )
    values: dict[str, Any] = {}
    for name, value in given.items():
        if not isinstance(value, RelativeChange):
            values[name] = kind.validated(name, value)
            continue
        kind.attribute(value.field)
        if kind.fields[value.field].is_required():
            raise InvalidValue(
                f"{kind.name}.{value.field} has no default, so a change of it has nothing to start from if "
                f"{change.identity.name} is new; give the field a default, or use update"
            )
        values[name] = worked_out(kind, name, start_of(kind, value.field), value)
    try:
        return kind.model.model_validate({**_identifying(kind, change), **values}, by_alias=False, by_name=True)  # type: ignore[no-any-return]
    except ValidationError as error:
        return InvalidValue(f"{change.identity.name} does not exist, and cannot be made: {problems_in(error)}")


def _identifying(kind: EntityType, change: Changed) -> dict[str, Any]:
    values = change.identity.values[0]
    if isinstance(kind, NodeType):
        return kind.id_fields(values)
    source, target = change.identity.id
    own = {name: value for name, value in values.items() if name in kind.fields}
    return {**own, "source": source, "target": target}


# --- one request -------------------------------------------------------------------------------


def upsert_request(layout: BoundLayout, change: Changed, new: Entity | InvalidValue) -> Update | None:
    """The one request that changes or makes it; None if it takes more."""
    identity, kind, changes = change.identity, change.identity.kind, change.fields
    if isinstance(new, InvalidValue) or not _is_alone(layout, change):
        return None
    (item,) = written_items(layout, kind, new)
    # Without fields, a stored one stays as it is, with its version.
    actions = [*update_actions(layout, kind, identity.values[0], changes)] if changes else []
    is_counted = bool(changes) and kind.version not in changes
    version = attribute(kind.attribute(kind.version)) if kind.version and is_counted else None
    counted: list[Condition] = []
    if version is not None:
        # A new one has the first version; an item without a version counts as one that has it, so it must have one.
        start = IfNotExists(version, Value({"N": str(initial(kind) - 1)}))
        actions = [each for each in actions if each.path != version]
        actions.append(Set(version, Arithmetic("+", start, Value({"N": "1"}))))
        counted.append(Exists(version))
    touched = {each.path.steps[0] for each in actions}
    rest = [name for name in item if name not in touched and name not in identity.keys[0]]
    if not _are_kept(layout, kind, rest):
        return None
    kept: list[Action] = [Set(attribute(name), IfNotExists(attribute(name), Value(item[name]))) for name in rest]
    unmarked = UNMARKED if kind.can_be_hidden else None
    there = update_condition(layout, identity, changes, None, None, all_of(unmarked, *counted))
    assert there is not None
    wanted = all_of(Or((Not(layout.present), there)), write_condition(layout, kind, change.only_if))
    return Update(layout.table, identity.keys[0], (*actions, *kept), wanted, "new")


def _is_alone(layout: BoundLayout, change: Changed) -> bool:
    """Whether one item is all that is written, and nothing has to be read for it."""
    identity, kind = change.identity, change.identity.kind
    if layout.has_satellites(kind) or is_accompanied(layout, kind) or is_kept_by_reading(layout, kind):
        return False
    if has_hook(kind.model):
        # Only the instance that is made is prepared by its class.
        return False
    if isinstance(kind, EdgeType) and (kind.source.expires or kind.target.expires):
        return False
    if len(identity.keys) > 1 or identity.ends is not None or kind.former or layout.rules.immutable(kind):
        return False
    # An empty set is stored as none, so a missing one does not tell whether the default belongs there.
    left = [name for name in kind.attributes if isinstance(change.fields.get(name, UNCHANGED), RelativeChange)]
    if any(isinstance(start, set | frozenset) and start for start in (start_of(kind, name) for name in left)):
        return False
    if any(isinstance(each, RelativeChange) and each.operator == "within" for each in change.fields.values()):
        # A new item has nothing to change an element of.
        return False
    return not read_first(layout, identity, change.fields)


def _are_kept(layout: BoundLayout, kind: EntityType, rest: list[str]) -> bool:
    """Whether these attributes of a new item are those that every stored item has, so that a missing one means none.

    An item is not in an index if a part of its key is None, and must not get there by a default.
    """
    parts = layout.entry_parts(kind, rest)
    return not any(name in kind.attributes and may_be_none(kind.fields[name]) for name in parts)


# --- in a transaction --------------------------------------------------------------------------


def upsert_write(
    layout: BoundLayout, change: Changed, new: Entity | InvalidValue, claims: Claims, names: list[str] | None = None
) -> Plan[EntityWrite]:
    """The entity write of an upsert that reads first; `names` are fields that conditions cannot check."""
    identity, kind = change.identity, change.identity.kind
    responses: list[ItemResponse] = yield tuple(Get(layout.table, key, consistent=True) for key in identity.keys)
    read = [response.item for response in responses]
    there = [item for item in read if item is not None]
    if len(there) == len(read) and (yield from visible(layout, there)):
        if not change.fields:
            # It must still be there, and an edge must have the mark with which it was visible.
            mark = same(there[0], DELETING) if kind.can_be_hidden else None
            still = all_of(layout.present, identity.ends, write_condition(layout, kind, change.only_if), mark)
            assert still is not None
            return EntityWrite([Check(layout.table, identity.keys[0], still)], [], there, watched=(DELETING,))
        return (yield from changed_write(layout, change, claims, names))
    check_new(layout, change, new)
    assert not isinstance(new, InvalidValue)
    made: Entity = prepared(new)
    items = written_items(layout, kind, made)
    others = beside(layout, layout.satellites(kind, items, made.__dict__), claims)
    # A hidden edge counts as none, as long as it has the same mark.
    wanted = [Not(layout.present) if item is None else same(item, DELETING) for item in read]
    puts = [
        Put(layout.table, revised(layout, kind, item), condition) for item, condition in zip(items, wanted, strict=True)
    ]
    return EntityWrite(puts, others, read, made, (REVISION, DELETING))
