"""Turns the legacy parameters, from before DynamoDB had expressions, into the same trees, with DynamoDB's messages.

They are AttributesToGet, KeyConditions, QueryFilter, ScanFilter, Expected and AttributeUpdates, each with the
ConditionalOperator that joins its conditions. Faults in a single value (an unknown operator, an empty list) are
refused before these functions are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adjoin.errors import InvalidRequest
from adjoin.evaluate import ORDERED, PREFIXED, TYPES, in_order
from adjoin.expressions import (
    Action,
    Add,
    And,
    BeginsWith,
    Between,
    Comparator,
    Compare,
    Condition,
    Contains,
    Discard,
    Exists,
    IfNotExists,
    In,
    ListAppend,
    Not,
    Or,
    Path,
    Remove,
    Set,
    Value,
    attribute,
)
from adjoin.server.grammar.attributes import normal_value
from adjoin.server.grammar.keys import KeyConditions, KeyTest
from adjoin.values import AttributeValue

_INVALID = "One or more parameter values were invalid: "

LEGACY_WORDS = {
    "An operand in the update expression has an incorrect data type": "Type mismatch for attribute to update",
}
"""The store's messages for faults while it applies an update, and DynamoDB's words for them with AttributeUpdates."""


def attributes_to_get(names: Sequence[str]) -> tuple[Path, ...]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidRequest(f"{_INVALID}Duplicate value in attribute name: {name}")
        seen.add(name)
    return tuple(map(attribute, names))


def filter_of(conditions: Mapping[str, Mapping[str, Any]], joined_by: str | None = None) -> Condition | None:
    """Returns the condition of QueryFilter or ScanFilter, and its ConditionalOperator."""
    return _joined([_condition(name, *_test(given)) for name, given in conditions.items()], joined_by)


def key_conditions(conditions: Mapping[str, Mapping[str, Any]]) -> KeyConditions:
    return KeyConditions({name: KeyTest(*_test(given)) for name, given in conditions.items()})


def expected_condition(expected: Mapping[str, Mapping[str, Any]], joined_by: str | None = None) -> Condition | None:
    """Returns the condition of Expected, and its ConditionalOperator."""
    return _joined([_condition(name, *_expectation(name, given)) for name, given in expected.items()], joined_by)


def attribute_updates(updates: Mapping[str, Mapping[str, Any]]) -> tuple[Action, ...]:
    return tuple(_action(attribute(name), given) for name, given in updates.items())


def _joined(conditions: Sequence[Condition], joined_by: str | None) -> Condition | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return Or(tuple(conditions)) if joined_by == "OR" else And(tuple(conditions))


# --- conditions --------------------------------------------------------------------------------


def _compare(operator: Comparator) -> Callable[..., Condition]:
    return lambda path, value: Compare(operator, path, value)


_CONDITIONS: dict[str, Callable[..., Condition]] = {
    "EQ": _compare("="),
    "NE": _compare("<>"),
    "LE": _compare("<="),
    "LT": _compare("<"),
    "GE": _compare(">="),
    "GT": _compare(">"),
    "NULL": lambda path: Not(Exists(path)),
    "NOT_NULL": Exists,
    "CONTAINS": Contains,
    # For a missing attribute, neither CONTAINS nor NOT_CONTAINS holds.
    "NOT_CONTAINS": lambda path, value: And((Exists(path), Not(Contains(path, value)))),
    "BEGINS_WITH": BeginsWith,
    "IN": lambda path, *values: In(path, values),
    "BETWEEN": Between,
}

_COUNTS = {**dict.fromkeys(_CONDITIONS, 1), "NULL": 0, "NOT_NULL": 0, "BETWEEN": 2}

_HELD = (*ORDERED, "BOOL", "NULL")
_TYPES: dict[str, Sequence[str]] = {
    **dict.fromkeys(_CONDITIONS, tuple(ORDERED)),
    **dict.fromkeys(("EQ", "NE"), TYPES),
    **dict.fromkeys(("CONTAINS", "NOT_CONTAINS"), _HELD),
    "BEGINS_WITH": tuple(PREFIXED),
}


def _condition(name: str, operator: str, operands: Sequence[AttributeValue]) -> Condition:
    return _CONDITIONS[operator](attribute(name), *map(Value, operands))


def _test(given: Mapping[str, Any]) -> tuple[str, tuple[AttributeValue, ...]]:
    """Returns the operator and operands of a condition on one attribute; raises if they do not fit together."""
    operator, operands = given["ComparisonOperator"], tuple(given.get("AttributeValueList") or ())
    for operand in operands:
        normal_value(operand)
    if len(operands) != _COUNTS[operator] and not (operator == "IN" and operands):
        raise InvalidRequest(f"{_INVALID}Invalid number of argument(s) for the {operator} ComparisonOperator")
    if any(operand.keys() != operands[0].keys() for operand in operands):
        raise InvalidRequest(f"{_INVALID}AttributeValues inside AttributeValueList must be of same type")
    for tag in operands[0] if operands else ():
        if tag not in _TYPES[operator]:
            raise InvalidRequest(f"{_INVALID}ComparisonOperator {operator} is not valid for {tag} AttributeValue type")
    if operator == "BETWEEN" and not in_order(*operands):
        raise InvalidRequest(
            "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound"
        )
    return operator, operands


# --- Expected ----------------------------------------------------------------------------------


def _expectation(name: str, given: Mapping[str, Any]) -> tuple[str, tuple[AttributeValue, ...]]:
    """Returns the operator and operands of an expectation on one attribute, which can be written in two ways."""
    operator, exists, value = given.get("ComparisonOperator"), given.get("Exists"), given.get("Value")
    operands = given.get("AttributeValueList")
    if operands is not None and value is not None:
        raise _expected(f"Value and AttributeValueList cannot be used together for Attribute: {name}")
    if operator is not None:
        if exists is not None:
            raise _expected(f"Exists and ComparisonOperator cannot be used together for Attribute: {name}")
        if operands is None and value is None and _COUNTS[operator]:
            raise _expected(
                f"Value or AttributeValueList must be used with ComparisonOperator: {operator} for Attribute: {name}"
            )
        return _test({"ComparisonOperator": operator, "AttributeValueList": operands or ([value] if value else [])})
    if operands is not None:
        raise _expected(f"AttributeValueList can only be used with a ComparisonOperator for Attribute: {name}")
    if exists is False:
        if value is not None:
            raise _expected(f"Value cannot be used when Exists is false for Attribute: {name}")
        return "NULL", ()
    if value is None:
        said = "null" if exists is None else "true"
        raise _expected(f"Value must be provided when Exists is {said} for Attribute: {name}")
    normal_value(value)
    return "EQ", (value,)


def _expected(fault: str) -> InvalidRequest:
    return InvalidRequest(_INVALID + fault)


# --- updates -----------------------------------------------------------------------------------

_SETS = ("SS", "NS", "BS")
_ADDED = ("N", *_SETS, "L")


def _action(path: Path, given: Mapping[str, Any]) -> Action:
    action, value = given.get("Action") or "PUT", given.get("Value")
    if value is None:
        if action != "DELETE":
            raise InvalidRequest(f"{_INVALID}Only DELETE action is allowed when no attribute value is specified")
        return Remove(path)
    normal_value(value)
    (tag,) = value
    if action == "DELETE":
        if tag not in _SETS:
            raise InvalidRequest(f"{_INVALID}DELETE action with value is not supported for the type {tag}")
        return Discard(path, value)
    if action == "ADD":
        if tag not in _ADDED:
            raise InvalidRequest(f"{_INVALID}ADD action is not supported for the type {tag}")
        if tag == "L":
            return Set(path, ListAppend(IfNotExists(path, Value({"L": []})), Value(value)))
        return Add(path, value)
    return Set(path, Value(value))
