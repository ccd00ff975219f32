"""What a query asks of the keys, as values and bounds of columns; what the service refuses is refused in its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from adjoin.errors import InvalidRequest
from adjoin.evaluate import paths_in, require_bounds
from adjoin.expressions import Condition
from adjoin.requests import SortCondition
from adjoin.stores.sqlite.keys import KeyValue, after_prefix
from adjoin.stores.sqlite.tables import AccessPath, KeyColumn
from adjoin.values import AttributeValue, Item

Bound: TypeAlias = tuple[str, KeyValue]
"""A comparison and its operand, as (">=", "A")."""


def partition_value(path: AccessPath, condition: tuple[str, AttributeValue]) -> KeyValue:
    name, attribute = condition
    if name != path.partition.name:
        raise InvalidRequest(f"Query condition missed key schema element: {path.partition.name}")
    return _operand(path.partition, attribute)


def _operand(column: KeyColumn, attribute: AttributeValue) -> KeyValue:
    try:
        return column.value(attribute)
    except KeyError:
        raise InvalidRequest(
            "One or more parameter values were invalid: Condition parameter type does not match schema type"
        ) from None


def _prefix(value: KeyValue) -> tuple[Bound | None, Bound | None]:
    end = after_prefix(value)
    return (">=", value), None if end is None else ("<", end)


_BOUNDS: dict[str, Callable[..., tuple[Bound | None, Bound | None]]] = {
    "=": lambda value: ((">=", value), ("<=", value)),
    "<": lambda value: (None, ("<", value)),
    "<=": lambda value: (None, ("<=", value)),
    ">": lambda value: ((">", value), None),
    ">=": lambda value: ((">=", value), None),
    "between": lambda low, high: ((">=", low), ("<=", high)),
    "begins_with": _prefix,
}


def sort_bounds(path: AccessPath, condition: SortCondition) -> tuple[Bound | None, Bound | None]:
    """The range of the sort key that a condition asks for."""
    column = path.sort
    if column is None:
        raise InvalidRequest("Query key condition not supported")
    if condition.attribute != column.name:
        raise InvalidRequest(f"Query condition missed key schema element: {column.name}")
    if condition.operator == "begins_with" and column.tag == "N":
        raise InvalidRequest(
            "Invalid KeyConditionExpression: Incorrect operand type for operator or function;"
            " operator or function: begins_with, operand type: N"
        )
    if len(condition.operands) != (2 if condition.operator == "between" else 1):
        raise InvalidRequest(f"{condition.operator} cannot take {len(condition.operands)} operands")
    operands = [_operand(column, operand) for operand in condition.operands]
    if condition.operator == "between":
        low, high = condition.operands
        require_bounds(low, high, "KeyConditionExpression")
    return _BOUNDS[condition.operator](*operands)


def start_columns(
    path: AccessPath, start: Item, partition: KeyValue, lower: Bound | None, upper: Bound | None
) -> list[KeyValue]:
    """The columns to go on from, which must lie within the query."""
    row = path.start_row(start)
    one_row = InvalidRequest("The query can return at most one row and cannot be restarted")
    if len(path.columns) == 1:
        raise one_row
    bounds = [bound for bound in (lower, upper) if bound is not None]
    for bound in bounds:
        if path.sort is not None and not _within(row[path.sort], bound):
            raise InvalidRequest("The provided starting key does not match the range key predicate")
    if row[path.partition] != partition:
        if bounds:
            raise one_row
        raise InvalidRequest("The provided starting key is outside query boundaries based on provided conditions")
    return [row[column] for column in path.columns[1:]]


def _within(value: KeyValue, bound: Bound) -> bool:
    comparison, limit = bound
    if value == limit:
        return "=" in comparison
    return (value < limit) == (comparison[0] == "<")  # type: ignore[operator]


def require_no_keys(path: AccessPath, condition: Condition) -> None:
    for one in paths_in(condition):
        if one.steps[0] in path.own_names:
            raise InvalidRequest(
                f"Filter Expression can only contain non-primary key attributes: Primary key attribute: {one.steps[0]}"
            )
