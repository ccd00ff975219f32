"""An expression as it was written: what the parser makes, and what names and values are put into later.

Frozen, so that one text is parsed once however often it comes. Parentheses leave no trace but the
order they gave. A step of a path that begins with `#` is a placeholder, since no name can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from adjoin.expressions import Comparator, Path


@dataclass(frozen=True, slots=True)
class Place:
    """A document path; `path` is what it means, if that is known without the names of a request."""

    steps: tuple[str | int, ...]
    path: Path | None


def place(steps: tuple[str | int, ...]) -> Place:
    known = not any(isinstance(step, str) and step[0] == "#" for step in steps)
    return Place(steps, Path(steps) if known else None)


@dataclass(frozen=True, slots=True)
class Literal:
    """A value of the request, by its placeholder."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Term, ...]


Term: TypeAlias = Place | Literal | Call


@dataclass(frozen=True, slots=True)
class Comparison:
    operator: Comparator
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Range:
    operand: Term
    low: Term
    high: Term


@dataclass(frozen=True, slots=True)
class Membership:
    operand: Term
    options: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Conjunction:
    parts: tuple[Logic, ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    parts: tuple[Logic, ...]


@dataclass(frozen=True, slots=True)
class Negation:
    part: Logic


Logic: TypeAlias = Comparison | Range | Membership | Call | Conjunction | Disjunction | Negation


@dataclass(frozen=True, slots=True)
class Sum:
    operator: OneOf["+", "-"]
    left: Term
    right: Term


Keyword: TypeAlias = OneOf["SET", "REMOVE", "ADD", "DELETE"]


@dataclass(frozen=True, slots=True)
class Step:
    """One action of an update; a REMOVE has no value, an ADD or a DELETE has a literal."""

    keyword: Keyword
    target: Place
    value: Term | Sum | None


@dataclass(frozen=True, slots=True)
class Clause:
    keyword: Keyword
    steps: tuple[Step, ...]
