"""`field("grade") >= "B"`: comparisons and changes over fields of a model, as data.

They speak of fields and Python values; a plan turns them into conditions and updates over stored
attributes once it knows the class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from dataclasses import field as declared
from typing import Any, Literal, TypeAlias

from adjoin.errors import InvalidValue, shown
from adjoin.units import MAX_IN_OPERANDS


class Predicate:
    """Something that holds for an instance or not; combine with `&`, `|` and `~`."""

    __slots__ = ()

    def __and__(self, other: Predicate) -> AllOf:
        return AllOf((*_parts(self, AllOf), *_parts(other, AllOf)))

    def __or__(self, other: Predicate) -> AnyOf:
        return AnyOf((*_parts(self, AnyOf), *_parts(other, AnyOf)))

    def __invert__(self) -> Predicate:
        return Negation(self)

    def __bool__(self) -> bool:
        raise InvalidValue(
            "a comparison of fields is neither true nor false by itself; combine with & | ~ instead of and, or, not"
        )


def _parts(thing: Any, kind: type[AllOf | AnyOf]) -> tuple[Predicate, ...]:
    """What a chain of the same operator is made of, so that a long one is flat and not deep."""
    if not isinstance(thing, Predicate):
        raise InvalidValue(f"{shown(thing)} is not a comparison; put parentheses around each side of & and |")
    return thing.predicates if isinstance(thing, kind) else (thing,)


Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">=", "between", "begins_with", "contains", "in", "exists"]


@dataclass(frozen=True, slots=True)
class Comparison(Predicate):
    field: str
    operator: Operator
    operands: tuple[Any, ...] = ()


_DEEPEST = 100
"""How deep conditions may be nested. DynamoDB takes 300 operators, and Python's stack ends somewhere."""


def _depth(*predicates: Predicate) -> int:
    depth = 1 + max((getattr(each, "depth", 0) for each in predicates), default=0)
    if depth > _DEEPEST:
        raise InvalidValue(f"conditions are nested more than {_DEEPEST} deep; combine fewer, or ask in several steps")
    return depth


@dataclass(frozen=True, slots=True)
class AllOf(Predicate):
    predicates: tuple[Predicate, ...]
    depth: int = declared(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth(*self.predicates))


@dataclass(frozen=True, slots=True)
class AnyOf(Predicate):
    predicates: tuple[Predicate, ...]
    depth: int = declared(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth(*self.predicates))


@dataclass(frozen=True, slots=True)
class Negation(Predicate):
    predicate: Predicate
    depth: int = declared(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth(self.predicate))

    def __invert__(self) -> Predicate:
        return self.predicate


@dataclass(frozen=True, slots=True)
class Change:
    """A new value made of the stored one: `update(..., credits=field("credits") + 1)`."""

    field: str
    operator: Literal["+", "-", "append", "add", "discard"]
    operand: Any


@dataclass(frozen=True, slots=True, eq=False)
class FieldReference:
    """A field by name; "address.city" reaches into nested models and maps."""

    name: str

    def __eq__(self, other: Any) -> Comparison:  # type: ignore[override]
        return Comparison(self.name, "=", (other,))

    def __ne__(self, other: Any) -> Comparison:  # type: ignore[override]
        return Comparison(self.name, "<>", (other,))

    def __lt__(self, other: Any) -> Comparison:
        return Comparison(self.name, "<", (other,))

    def __le__(self, other: Any) -> Comparison:
        return Comparison(self.name, "<=", (other,))

    def __gt__(self, other: Any) -> Comparison:
        return Comparison(self.name, ">", (other,))

    def __ge__(self, other: Any) -> Comparison:
        return Comparison(self.name, ">=", (other,))

    __hash__ = None  # type: ignore[assignment]

    def between(self, low: Any, high: Any) -> Comparison:
        """Both ends included."""
        return Comparison(self.name, "between", (low, high))

    def begins_with(self, prefix: str | Sequence[Any]) -> Comparison:
        """Text that begins with this text, or a list or tuple that begins with these elements."""
        return Comparison(self.name, "begins_with", (prefix,))

    def contains(self, element: Any) -> Comparison:
        """Text that holds this text, or a list or set that has this element."""
        return Comparison(self.name, "contains", (element,))

    def is_in(self, options: Iterable[Any]) -> Comparison:
        operands = tuple(_iterated("is_in", options))
        if not 1 <= len(operands) <= MAX_IN_OPERANDS:
            raise InvalidValue(f"is_in takes 1 to {MAX_IN_OPERANDS} values, and {len(operands)} were given")
        return Comparison(self.name, "in", operands)

    def exists(self) -> Comparison:
        """The field is stored at all."""
        return Comparison(self.name, "exists")

    def __add__(self, amount: Any) -> Change:
        return Change(self.name, "+", amount)

    def __sub__(self, amount: Any) -> Change:
        return Change(self.name, "-", amount)

    def append(self, *elements: Any) -> Change:
        """The stored list with these at its end."""
        return Change(self.name, "append", list(elements))

    def add(self, elements: Iterable[Any]) -> Change:
        """The stored set with these in it."""
        return Change(self.name, "add", _as_set("add", elements))

    def discard(self, elements: Iterable[Any]) -> Change:
        """The stored set without these."""
        return Change(self.name, "discard", _as_set("discard", elements))


def _iterated(verb: str, elements: Iterable[Any]) -> Iterable[Any]:
    if not isinstance(elements, Iterable):
        raise InvalidValue(f"{verb} takes several values, and {shown(elements)} is one; put it into a list")
    return elements


def _as_set(verb: str, elements: Iterable[Any]) -> set[Any]:
    try:
        return set(_iterated(verb, elements))
    except TypeError:
        raise InvalidValue(
            f"{shown(elements)} holds what no set can hold; {verb} takes text, numbers or bytes"
        ) from None


def field(name: str) -> FieldReference:
    """A field, to compare (`where`, `only_if`) or to change (`update`)."""
    if not isinstance(name, str):
        raise InvalidValue(f"{shown(name)} does not name a field; give its name as text")
    return FieldReference(name)
