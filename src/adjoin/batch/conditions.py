"""Conditions over stored attributes as Ibis expressions, with DynamoDB's meaning of absent attributes.

A comparison with what is not there does not hold, and `<>` does; so no expression here is ever null.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias, cast

import ibis
import ibis.expr.types as ir

from adjoin.batch.columns import KEY_PART
from adjoin.batch.engines import Want
from adjoin.batch.numbers import Numbers
from adjoin.batch.untyped import SUBJECT, tested
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
        case Compare(order, Path() as path, Value(attribute)) if _is_plain(attribute):
            return _true(_ORDERS[order](*_both(path, attribute, column, numbers)))
        case Between(Path() as path, Value(low), Value(high)) if _is_plain(low) and low.keys() == high.keys():
            below, above = _both(path, low, column, numbers), _both(path, high, column, numbers)
            return _true((below[0] >= below[1]) & (above[0] <= above[1]))
        case In(Path() as path, options):
            return ibis.or_(
                *(_equal(path, each.attribute, column, numbers) for each in options if isinstance(each, Value))
            )
        case BeginsWith(Path() as path, Value({"S": prefix})):
            return _true(column(want(path, "S")).startswith(prefix))
        case Contains(Path() as path, Value({"S": part})):
            text = column(want(path, "S"))
            return _true(ibis.ifelse(text.notnull(), text.contains(part), _one_by_one(condition, path, column)))
        case (
            Compare(_, Path() as path, Value())
            | Between(Path() as path, Value(), Value())
            | BeginsWith(Path() as path, Value())
            | Contains(Path() as path, Value())
        ):
            return _true(_one_by_one(condition, path, column))
    raise InvalidModel(f"where= has {condition!r}, which a batch job cannot test; compare fields with values")


def _true(expression: Any) -> Any:
    return expression.fill_null(False)


def _is_plain(attribute: dict[str, Any]) -> bool:
    """Whether engines have an order for such values."""
    return attribute.keys() <= {"S", "N"}


def _one(attribute: dict[str, Any]) -> tuple[str, Any]:
    ((tag, value),) = attribute.items()
    return tag, value


def _equal(path: Path, attribute: dict[str, Any], column: Column, numbers: Numbers) -> Any:
    tag, value = _one(attribute)
    if tag in ("BOOL", "NULL"):
        return _true(column(want(path, tag)) == ("true" if value else "false"))
    if tag == "B":
        return _true(column(want(path, tag)) == value)
    if not _is_plain(attribute):
        return _true(_one_by_one(Compare("=", path, Value(attribute)), path, column))
    left, right = _both(path, attribute, column, numbers)
    return _true(left == right)


def _both(path: Path, attribute: dict[str, Any], column: Column, numbers: Numbers) -> tuple[Any, Any]:
    tag, value = _one(attribute)
    if tag == "N":
        return numbers.parse(column(want(path, "N"))), numbers.literal(value)
    return column(want(path, tag)), ibis.literal(value)


def _one_by_one(condition: Condition, path: Path, column: Column) -> Any:
    """A condition that engines have no words for, tested in Python."""
    place = "left" if isinstance(condition, Compare) else "operand"
    about: Condition = replace(cast(Any, condition), **{place: Path((SUBJECT,))})
    name = f"adjoin_test_{hashlib.sha256(repr(about).encode()).hexdigest()[:16]}"
    return tested(about, name)(column(want(path)))


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
