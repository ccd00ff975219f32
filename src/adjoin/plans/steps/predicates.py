"""Whether a predicate holds for an entity that was read, for predicates that DynamoDB cannot filter by.

The answers are those of a filter expression: a comparison with a field that is None holds only for == None and for
!= with another value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from adjoin.entity_types import Entity, EntityType
from adjoin.errors import InvalidValue, shown
from adjoin.evaluate import size_of
from adjoin.field_types import path_type
from adjoin.fields import AllOf, AnyOf, Comparison, Negation, Predicate, SizeComparison, TypeTest
from adjoin.values import encode

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(kind: EntityType, predicate: Predicate, entity: Entity) -> bool:
    match predicate:
        case AllOf(predicates):
            return all(holds(kind, each, entity) for each in predicates)
        case AnyOf(predicates):
            return any(holds(kind, each, entity) for each in predicates)
        case Negation(inner):
            return not holds(kind, inner, entity)
        case Comparison(name, "contains", operands):
            # An element or a part of the value, and so of another type than the field.
            if name in kind.elements and operands[0] is not None:
                operands = (kind.coerced_element(name, operands[0]),)
            return _compare("contains", _value(kind, entity, name), [*operands])
        case Comparison(name, "begins_with", operands):
            return _compare("begins_with", _value(kind, entity, name), [operand(kind, name, each) for each in operands])
        case Comparison(name, compared, operands):
            return _compare(
                compared, _value(kind, entity, name), [_compared_with(kind, name, each) for each in operands]
            )
        case SizeComparison(name, compared, numbers):
            return _compare(compared, _size(_value(kind, entity, name)), [*numbers])
        case TypeTest(name, type):
            value = _value(kind, entity, name)
            return value is not None and type in encode(value)
    raise AssertionError(f"unknown predicate {predicate!r}")


def compared_fields(predicate: Predicate) -> set[str]:
    """The fields that a predicate compares, without nested ones."""
    return {name.partition(".")[0] for name in compared_names(predicate)}


def compared_names(predicate: Predicate) -> set[str]:
    """The names that a predicate compares, also of nested fields and of parts of ids."""
    match predicate:
        case AllOf(predicates) | AnyOf(predicates):
            return {name for each in predicates for name in compared_names(each)}
        case Negation(inner):
            return compared_names(inner)
        case Comparison(name) | SizeComparison(name) | TypeTest(name):
            return {name}
    raise InvalidValue(f'{shown(predicate)} is not a comparison; build one with field("name") == value')


def operand(kind: EntityType, name: str, value: Any) -> Any:
    """The value that a field is compared with, as the field has it."""
    end, part = kind.end(name), kind.part(name)
    if value is not None and end is not None:
        return end.id(value)
    if value is not None and part is not None:
        return part[0].coerced(part[1], value)
    is_whole = value is None or name not in kind.fields or isinstance(value, list | tuple)
    return value if is_whole else kind.coerced(name, value)


def _compared_with(kind: EntityType, name: str, value: Any) -> Any:
    if isinstance(value, list | tuple) and name in kind.fields and path_type(kind.fields[name]) is not None:
        # A path may be compared with a list or with a tuple.
        return kind.coerced(name, value)
    return operand(kind, name, value)


def _value(kind: EntityType, entity: Entity, name: str) -> Any:
    if kind.part(name) is not None:
        side = name.partition(".")[0]
        end = kind.end(side)
        assert end is not None
        return end.part_values(getattr(entity, side), f"{side}.")[name]
    value: Any = entity
    for step in name.split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list | tuple):
            value = value[int(step)] if step.isdecimal() and int(step) < len(value) else None
        else:
            value = getattr(value, step, None)
    return value


def _plain(value: Any) -> Any:
    """A value that sorts; a member of an enumeration sorts by its value."""
    return value.value if isinstance(value, Enum) else value


def _size(value: Any) -> int | None:
    """The size of a value as DynamoDB measures it; None for a value that has none."""
    measured = None if value is None else size_of(encode(value))
    return None if measured is None else int(measured["N"])


def _compare(compared: str, value: Any, operands: list[Any]) -> bool:
    match compared:
        case "exists":
            return value is not None
        case "=":
            return bool(value == operands[0])
        case "<>":
            return bool(value != operands[0])
        case "in":
            return value in operands
    if value is None:
        return False
    try:
        match compared:
            case "between":
                return bool(_plain(operands[0]) <= _plain(value) <= _plain(operands[1]))
            case "begins_with" if isinstance(value, list | tuple):
                return [*value[: len(operands[0])]] == [*operands[0]]
            case "begins_with":
                return bool(value.startswith(operands[0]))
            case "contains":
                return operands[0] in value
        return bool(_COMPARE[compared](_plain(value), _plain(operands[0])))
    except (TypeError, AttributeError):
        # Values of different types: such a comparison does not hold.
        return False
