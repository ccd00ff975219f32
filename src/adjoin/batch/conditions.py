"""Conditions over stored attributes as Ibis expressions, with DynamoDB's meaning of absent attributes.

A comparison with what is not there does not hold, and `<>` does; so no expression here is ever null.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import ibis
import ibis.expr.types as ir
from orjson import dumps

from adjoin.batch.columns import KEY_PART
from adjoin.batch.engines import Want
from adjoin.batch.numbers import Numbers
from adjoin.errors import InvalidModel
from adjoin.expressions import (
    And,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Exists,
    In,
    Not,
    Or,
    Path,
    Value,
)

Column: TypeAlias = Callable[[Want], Any]
"""The column of a want, as text."""

_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_HOLDERS = {"S": ("S", "SS", "L"), "N": ("NS", "L"), "BOOL": ("L",)}
"""What may contain a value of a type."""


def want(path: Path, tag: str | None = None) -> Want:
    """Where a path ends, in one of DynamoDB's types."""
    first, *rest = path.steps
    if isinstance(first, str) and first.startswith(KEY_PART):
        return (KEY_PART, first.removeprefix(KEY_PART), tag or "S")
    steps: list[str] = [str(first)]
    for step in rest:
        steps += ["L" if isinstance(step, int) else "M", str(step)]
    return tuple(steps) if tag is None else (*steps, tag)


def wants_of(condition: Condition) -> Iterator[Want]:
    """Everything that a condition looks at."""
    seen: list[Want] = []

    def column(each: Want) -> Any:
        seen.append(each)
        return ibis.literal("", type="string")

    holds(condition, column, _Unread())
    yield from seen


def holds(condition: Condition, column: Column, numbers: Numbers) -> ir.BooleanValue:
    """Whether a condition holds for the item of each row."""
    match condition:
        case And(parts):
            return ibis.and_(*(holds(part, column, numbers) for part in parts))
        case Or(parts):
            return ibis.or_(*(holds(part, column, numbers) for part in parts))
        case Not(inner):
            return ~holds(inner, column, numbers)
        case Exists(path):
            return column(want(path)).notnull()
        case Compare("=", Path() as path, Value(attribute)):
            return _equal(path, attribute, column, numbers)
        case Compare("<>", Path() as path, Value(attribute)):
            return ~_equal(path, attribute, column, numbers)
        case Compare(order, Path() as path, Value(attribute)):
            return _true(_ORDERS[order](*_both(path, attribute, column, numbers)))
        case Between(Path() as path, Value(low), Value(high)):
            below, above = _both(path, low, column, numbers), _both(path, high, column, numbers)
            return _true((below[0] >= below[1]) & (above[0] <= above[1]))
        case In(Path() as path, options):
            return ibis.or_(
                *(_equal(path, each.attribute, column, numbers) for each in options if isinstance(each, Value))
            )
        case BeginsWith(Path() as path, Value({"S": prefix})):
            return _true(column(want(path, "S")).startswith(prefix))
        case Contains(Path() as path, Value(attribute)):
            return _contains(path, attribute, column)
    raise _unknown(condition)


def _true(expression: Any) -> Any:
    return expression.fill_null(False)


def _one(attribute: dict[str, Any]) -> tuple[str, Any]:
    ((tag, value),) = attribute.items()
    return tag, value


def _equal(path: Path, attribute: dict[str, Any], column: Column, numbers: Numbers) -> Any:
    tag, value = _one(attribute)
    if tag in ("BOOL", "NULL"):
        return _true(column(want(path, tag)) == ("true" if value else "false"))
    if tag not in ("S", "N", "B"):
        raise _unknown(attribute)
    left, right = _both(path, attribute, column, numbers)
    return _true(left == right)


def _both(path: Path, attribute: dict[str, Any], column: Column, numbers: Numbers) -> tuple[Any, Any]:
    tag, value = _one(attribute)
    if tag == "N":
        return numbers.parse(column(want(path, "N"))), numbers.literal(value)
    if tag not in ("S", "B"):
        raise _unknown(attribute)
    return column(want(path, tag)), ibis.literal(value)


def _contains(path: Path, attribute: dict[str, Any], column: Column) -> Any:
    tag, value = _one(attribute)
    if tag not in _HOLDERS:
        raise _unknown(attribute)
    found = []
    for holder in _HOLDERS[tag]:
        # Elements are looked for in the JSON of the set or list, as it is spelled without spaces.
        element = value if holder == "S" else dumps(attribute if holder == "L" else value).decode()
        found.append(_true(column(want(path, holder)).contains(element)))
    return ibis.or_(*found)


def _unknown(what: object) -> InvalidModel:
    return InvalidModel(
        f"where= compares with {what!r}, which a batch job cannot do; compare with text, numbers, truth values or None"
    )


class _Unread:
    """Numbers that nobody reads."""

    def parse(self, text: Any) -> Any:
        return text

    def literal(self, text: str) -> Any:
        return ibis.literal(text)

    def total(self, values: Any) -> Any:
        return values

    def added(self, values: Any) -> Any:
        return values

    def text(self, value: Any) -> Any:
        return value

    def told(self, value: Any) -> str:
        return str(value)
