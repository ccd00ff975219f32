"""The values of fields after a change, worked out from those that were read.

DynamoDB works most changes out by itself. This is for those that need a read: of keys of indexes, of what conditions
cannot check, and of nested values.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from operator import ge, gt, le, lt
from typing import Any

from adjoin.entity_types import Entity, EntityType
from adjoin.errors import ConditionFailed, InvalidItem, InvalidValue
from adjoin.field_types import bounds_of
from adjoin.fields import RelativeChange
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.indexed_fields import is_rehearsed
from adjoin.plans.steps.conditions import check_amount
from adjoin.plans.steps.nested import applied, with_elements
from adjoin.values import Item, encode, exact_sum

_COMPARED = {">": gt, ">=": ge, "<": lt, "<=": le}


def settled(
    layout: BoundLayout, kind: EntityType, item: Item, before: Entity, new: Mapping[str, Any], name: str
) -> dict[str, Any]:
    """The new values of fields, with those of other fields that the class itself derives from them.

    A class that validates several fields together may set one by another. Raises `InvalidValue` if the class could not
    read the item after the change, although each field by itself is valid.
    """
    if is_rehearsed():
        return {**new}
    try:
        after = layout.decode(kind, layout.changed(kind, item, before.model_copy(update=new)))
    except InvalidItem as error:
        raise InvalidValue(f"{name} would not be a valid {kind.name} any more: {error.problems or error}") from None
    if after is None or not layout.fit(kind).is_whole:
        return {**new}
    names = kind.attributes.keys() - new.keys() - {*layout.rules.maintained(kind)}
    # A default that is made anew at each reading is not derived from anything.
    own = {each for each in names if kind.attributes[each] in item or kind.fields[each].default_factory is None}
    derived = {each: after.__dict__[each] for each in own if after.__dict__[each] != before.__dict__[each]}
    # What is stored of a computed field may be of another program, or of another version of the class.
    derived |= {
        each: after.__dict__[each]
        for each in kind.computed
        if layout.encode_stored(kind, each, after.__dict__[each]) != item.get(kind.attributes[each])
    }
    return {**new, **derived}


def changed_fields(
    kind: EntityType, values: Mapping[str, Any], changes: Mapping[str, Any], item: Item
) -> dict[str, Any]:
    """The new values of fields, with relative changes computed from the stored values; the version goes up by one.

    Raises `ConditionFailed` with the item if a sum exceeds the limits of its field.
    """
    new = {
        each: _within_bounds(kind, values, each, change, item)
        if isinstance(change, RelativeChange)
        else kind.validated(each, change)
        for each, change in changes.items()
    }
    if kind.version and kind.version not in changes:
        new[kind.version] = values[kind.version] + 1
    return new


def _within_bounds(kind: EntityType, values: Mapping[str, Any], field: str, change: RelativeChange, item: Item) -> Any:
    kind.attribute(change.field)
    value = worked_out(kind, field, values[change.field], change)
    if change.operator in ("+", "-"):
        for operator, limit in bounds_of(kind.fields[field]):
            if not _COMPARED[operator](value, _number(limit)):
                raise ConditionFailed(f"{kind.name}.{field} would be {value}, but must be {operator} {limit}", item)
    return kind.validated(field, value)


def worked_out(kind: EntityType, field: str, stored: Any, change: RelativeChange) -> Any:
    """The value that a relative change of a field makes of a stored one."""
    operand = change.operand
    match change.operator:
        case "+" | "-":
            check_amount(kind, field, operand)
            amount = _number(operand)
            return _sum(kind, field, stored, amount if change.operator == "+" else amount.copy_negate())
        case "append" | "add" | "discard":
            return with_elements(f"{kind.name}.{change.field}", stored, change)
        case "within":
            return applied(kind, field, stored, operand)
    raise AssertionError(f"{change.operator} of a whole field is a value")


def _sum(kind: EntityType, field: str, stored: Any, amount: Decimal) -> Decimal:
    if stored is not None and "N" not in encode(stored):
        raise InvalidValue(f"{kind.name}.{field}: nothing can be added to {stored!r}, which is not a number")
    return exact_sum((_number(stored), amount))


def _number(value: Any) -> Decimal:
    return Decimal(encode(value)["N"]) if value is not None else Decimal(0)
