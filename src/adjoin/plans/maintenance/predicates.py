"""Whether a predicate holds for a node or an edge in memory, by the rules that DynamoDB's filters have.

Values are compared in their stored form: only values of one type have an order, what is not stored is
unequal to everything, and None is what is not stored.
"""

from __future__ import annotations

import operator
from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from adjoin.errors import InvalidValue
from adjoin.fields import AllOf, AnyOf, Comparison, Negation, Predicate
from adjoin.layouts.interface import BoundLayout
from adjoin.plans.conditions import NULL, nested_steps, operand
from adjoin.schema import Entity, EntityType
from adjoin.values import AttributeValue, encode

_ORDERED: dict[str, Callable[[str], Any]] = {"S": str, "N": Decimal, "B": b64decode}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SETS = ("SS", "NS", "BS")


def holds(layout: BoundLayout, kind: EntityType, entity: Entity, predicate: Predicate) -> bool:
    match predicate:
        case AllOf(predicates):
            return all(holds(layout, kind, entity, each) for each in predicates)
        case AnyOf(predicates):
            return any(holds(layout, kind, entity, each) for each in predicates)
        case Negation(inner):
            return not holds(layout, kind, entity, inner)
        case Comparison():
            return _compared(layout, kind, stored_value(layout, kind, entity, predicate.field), predicate)
    raise InvalidValue(f'{predicate!r} is not a comparison; build one with field("name") == value')


def stored_value(layout: BoundLayout, kind: EntityType, entity: Entity, name: str) -> AttributeValue | None:
    """The stored form of a field, or of what is nested in it; None where nothing is stored."""
    first = name.partition(".")[0]
    found = layout.encode_field(kind, first, entity.__dict__[first])
    for step in nested_steps(kind, name):
        if found is None:
            return None
        if isinstance(step, int):
            elements = found.get("L", ())
            found = elements[step] if step < len(elements) else None
        else:
            found = found.get("M", {}).get(step)
    return found


def _compared(layout: BoundLayout, kind: EntityType, found: AttributeValue | None, asked: Comparison) -> bool:
    if asked.operator == "exists":
        return found is not None
    if asked.operator == "in":
        return any(_equal(layout, kind, found, asked.field, each) for each in asked.operands)
    first = asked.operands[0]
    match asked.operator:
        case "=":
            return _equal(layout, kind, found, asked.field, first)
        case "<>":
            return not _equal(layout, kind, found, asked.field, first)
        case "contains":
            return found is not None and _contains(found, encode(first))
        case "begins_with":
            return found is not None and _begins_with(found, encode(first))
    values = [operand(layout, kind, asked.field, each) for each in asked.operands]
    if asked.operator == "between":
        return _in_order(operator.ge, found, values[0]) and _in_order(operator.le, found, values[1])
    return _in_order(_COMPARISONS[asked.operator], found, values[0])


def _equal(layout: BoundLayout, kind: EntityType, found: AttributeValue | None, name: str, value: Any) -> bool:
    if value is None:
        return found is None or found == NULL
    return found is not None and _normal(found) == _normal(operand(layout, kind, name, value))


def _normal(value: AttributeValue) -> Any:
    ((tag, stored),) = value.items()
    return tag, sorted(stored) if tag in _SETS else stored


def _in_order(compare: Callable[[Any, Any], bool], left: AttributeValue | None, right: AttributeValue) -> bool:
    for tag, value in (left or {}).items():
        if tag in right and tag in _ORDERED:
            return compare(_ORDERED[tag](value), _ORDERED[tag](right[tag]))
    return False


def _contains(found: AttributeValue, element: AttributeValue) -> bool:
    ((tag, stored),) = found.items()
    ((kind, value),) = element.items()
    if tag == "L":
        return element in stored
    if tag in _SETS:
        return tag == f"{kind}S" and value in stored
    if tag == "B":
        return kind == "B" and b64decode(value) in b64decode(stored)
    return tag == kind == "S" and value in stored


def _begins_with(found: AttributeValue, prefix: AttributeValue) -> bool:
    if "B" in found and "B" in prefix:
        return b64decode(found["B"]).startswith(b64decode(prefix["B"]))
    if "L" in found and "L" in prefix:
        return bool(found["L"][: len(prefix["L"])] == prefix["L"])
    return "S" in found and "S" in prefix and found["S"].startswith(prefix["S"])
