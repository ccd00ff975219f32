"""Conditions, filters, projections and updates as data: a small tree of frozen values.

The tree says everything DynamoDB's expression language can say and nothing more. A store compiles it
(DynamoDB) or evaluates it (the embedded store); text expressions are parsed into it. No evaluation
and no text lives here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from adjoin.values import AttributeValue


@dataclass(frozen=True, slots=True)
class Path:
    """A place in an item: attribute names and list positions, outermost first."""

    steps: tuple[str | int, ...]

    def __str__(self) -> str:
        first, *rest = self.steps
        return str(first) + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)


def attribute(name: str) -> Path:
    """The path of a top-level attribute, whatever characters its name holds."""
    return Path((name,))


@dataclass(frozen=True, slots=True)
class Value:
    attribute: AttributeValue


@dataclass(frozen=True, slots=True)
class Size:
    """The size of what is stored at a path, as DynamoDB's `size` function gives it."""

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
    """The conjunction of those that are there."""
    present = tuple(condition for condition in conditions if condition is not None)
    if len(present) < 2:
        return present[0] if present else None
    return And(present)


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
    """Add to a number, or put elements into a set; starts from nothing where nothing is."""

    path: Path
    value: AttributeValue


@dataclass(frozen=True, slots=True)
class Discard:
    """Take elements out of a set (the DELETE clause)."""

    path: Path
    value: AttributeValue


Action: TypeAlias = Set | Remove | Add | Discard
