"""Conditions, filters, projections and updates as data: a small tree of frozen values.

The tree can express exactly what DynamoDB's expression language can. The store for DynamoDB compiles it to
text, the embedded store evaluates it, and the server parses text into it. None of that happens in this
module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidRequest, cut
from adjoin.units import MAX_NESTING
from adjoin.values import AttributeValue


@dataclass(frozen=True, slots=True)
class Path:
    """A document path in an item: attribute names and list positions, outermost first."""

    steps: tuple[str | int, ...]

    def __str__(self) -> str:
        first, *rest = self.steps
        return str(first) + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)


def check_depth(path: Path) -> None:
    """Refuses a path with more steps than DynamoDB takes, which leads to more levels than an item can have."""
    if len(path.steps) > MAX_NESTING:
        raise InvalidRequest(
            f"the path {cut(path)} has {len(path.steps)} levels, but DynamoDB takes at most {MAX_NESTING}"
        )


def attribute(name: str) -> Path:
    """Returns the path of a top-level attribute. Its name may contain any characters."""
    return Path((name,))


@dataclass(frozen=True, slots=True)
class Value:
    attribute: AttributeValue


@dataclass(frozen=True, slots=True)
class Size:
    """The size of the value at a path, as DynamoDB's `size` function returns it."""

    path: Path


Operand: TypeAlias = Path | Value | Size
Comparator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Compare:
    operator: Comparator
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Between:
    operand: Operand
    low: Operand
    high: Operand


@dataclass(frozen=True, slots=True)
class In:
    operand: Operand
    options: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    path: Path


@dataclass(frozen=True, slots=True)
class HasType:
    path: Path
    type: str


@dataclass(frozen=True, slots=True)
class BeginsWith:
    operand: Operand
    prefix: Operand


@dataclass(frozen=True, slots=True)
class Contains:
    operand: Operand
    element: Operand


@dataclass(frozen=True, slots=True)
class And:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    condition: Condition


Condition: TypeAlias = Compare | Between | In | Exists | HasType | BeginsWith | Contains | And | Or | Not


def all_of(*conditions: Condition | None) -> Condition | None:
    """Returns the conjunction of the conditions that are not None, or None."""
    # A list is made faster than a generator is run.
    present = [condition for condition in conditions if condition is not None]
    if len(present) < 2:
        return present[0] if present else None
    return And(tuple(present))


# --- updates -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IfNotExists:
    path: Path
    default: Operand | IfNotExists


@dataclass(frozen=True, slots=True)
class ListAppend:
    first: Operand | IfNotExists
    second: Operand | IfNotExists


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operator: Literal["+", "-"]
    left: Operand | IfNotExists
    right: Operand | IfNotExists


@dataclass(frozen=True, slots=True)
class Set:
    path: Path
    value: Operand | IfNotExists | ListAppend | Arithmetic


@dataclass(frozen=True, slots=True)
class Remove:
    path: Path


@dataclass(frozen=True, slots=True)
class Add:
    """Adds to a number, or adds elements to a set (the ADD clause). A missing attribute counts as 0 or empty."""

    path: Path
    value: AttributeValue


@dataclass(frozen=True, slots=True)
class Discard:
    """Removes elements from a set (the DELETE clause)."""

    path: Path
    value: AttributeValue


Action: TypeAlias = Set | Remove | Add | Discard


def paths_in(expression: object) -> Iterator[Path]:
    """Yields every path in a condition or an action."""
    if isinstance(expression, Path):
        yield expression
    elif isinstance(expression, tuple):
        for part in expression:
            yield from paths_in(part)
    elif not isinstance(expression, Value | str):
        for name in _fields_of(type(expression)):
            yield from paths_in(getattr(expression, name))


_FIELDS: dict[type[Any], tuple[str, ...]] = {}


def _fields_of(kind: type[Any]) -> tuple[str, ...]:
    """The fields of a class of conditions, actions or operands; empty for another class."""
    found = _FIELDS.get(kind)
    if found is None:
        found = _FIELDS[kind] = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
    return found


def operators_in(expression: object) -> int:
    """The number of operators and functions in conditions, actions or operands, as DynamoDB counts them."""
    if isinstance(expression, tuple):
        return sum(map(operators_in, expression))
    if isinstance(expression, And | Or):
        return max(len(expression.conditions) - 1, 0) + operators_in(expression.conditions)
    if isinstance(expression, Set):
        return operators_in(expression.value)
    if isinstance(expression, Path | Value | str | Remove | Add | Discard):
        return 0
    return 1 + sum(operators_in(getattr(expression, name)) for name in _fields_of(type(expression)))


def length_of(expressions: Iterable[Any]) -> int:
    """The number of names, values, list positions, operators and functions in expressions, or a few more.

    It is counted for every write, so it is one loop, and the frequent kinds come first; `operators_in` is exact.
    """
    parts = [*expressions]
    length = 0
    # The list grows while the loop goes through it.
    for part in parts:
        kind = type(part)
        if kind is HasType or kind is Exists:
            length += len(part.path.steps)
        elif kind is And or kind is Or:
            parts += part.conditions
        elif kind is Not:
            parts.append(part.condition)
        elif kind is Compare:
            parts += (part.left, part.right)
        elif kind is Set or kind is Add:
            parts += (part.path, part.value)
        elif kind is Path:
            length += len(part.steps)
        elif kind is tuple:
            parts += part
        elif kind is not Value and kind is not str and kind is not dict:
            parts += [getattr(part, name) for name in _fields_of(kind)]
    return length + len(parts)
