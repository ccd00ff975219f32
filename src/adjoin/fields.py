"""`field("grade") >= "B"`: comparisons and changes of fields, as data.

They contain names of fields and Python values. A plan turns them into conditions and updates of
stored attributes once it knows the class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field as declared
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, LiteralString, NoReturn, TypeAlias, TypeVar, overload

from adjoin.class_fields import ClassField
from adjoin.dataclass import dataclass
from adjoin.errors import InvalidValue, shown
from adjoin.units import MAX_IN_OPERANDS

if TYPE_CHECKING:
    from decimal import Decimal

T = TypeVar("T")
E = TypeVar("E")
K = TypeVar("K")
# What a field is compared with stands only in parameters. So a field of text or None is also one of text.
ValueT = TypeVar("ValueT", contravariant=True)


class Predicate:
    """A condition on the fields of a node or an edge. Combine predicates with `&`, `|` and `~`."""

    __slots__ = ()

    def __and__(self, other: Predicate) -> AllOf:
        return AllOf((*_parts(self, AllOf), *_parts(other, AllOf)))

    def __or__(self, other: Predicate) -> AnyOf:
        return AnyOf((*_parts(self, AnyOf), *_parts(other, AnyOf)))

    def __invert__(self) -> Predicate:
        return Negation(self)

    def __bool__(self) -> bool:
        raise InvalidValue(
            "a comparison of fields has no truth value; combine comparisons with & | ~ instead of and, or, not"
        )


def _parts(thing: Any, kind: type[AllOf | AnyOf]) -> tuple[Predicate, ...]:
    """Returns the operands of a chain of the same operator, so that a long chain becomes one flat predicate."""
    if not isinstance(thing, Predicate):
        raise InvalidValue(f"{shown(thing)} is not a comparison; put parentheses around each side of & and |")
    return thing.predicates if isinstance(thing, kind) else (thing,)


Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">=", "between", "begins_with", "contains", "in", "exists"]


SizeOperator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">=", "between"]
TYPES = ("S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS")
"""DynamoDB's types of values."""


@dataclass(frozen=True, slots=True)
class Comparison(Predicate):
    """A comparison of one field with values."""

    field: str
    operator: Operator
    operands: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class SizeComparison(Predicate):
    """A comparison of the size of a field with numbers: `field("tags").size() >= 3`."""

    field: str
    operator: SizeOperator
    operands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TypeTest(Predicate):
    """Whether the stored value of a field has one of DynamoDB's types: `field("age").has_type("N")`."""

    field: str
    type: str


_DEEPEST = 100
"""How deep predicates may be nested. DynamoDB takes 300 operators, and plans walk predicates recursively."""


def _depth(*predicates: Predicate) -> int:
    depth = 1 + max((getattr(predicate, "depth", 0) for predicate in predicates), default=0)
    if depth > _DEEPEST:
        raise InvalidValue(f"conditions must be nested at most {_DEEPEST} deep; use fewer, or several queries")
    return depth


@dataclass(frozen=True, slots=True)
class AllOf(Predicate):
    """All of these predicates hold: `a & b`."""

    predicates: tuple[Predicate, ...]
    depth: int = declared(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth(*self.predicates))


@dataclass(frozen=True, slots=True)
class AnyOf(Predicate):
    """At least one of these predicates holds: `a | b`."""

    predicates: tuple[Predicate, ...]
    depth: int = declared(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth(*self.predicates))


@dataclass(frozen=True, slots=True)
class Negation(Predicate):
    """The predicate does not hold: `~a`."""

    predicate: Predicate
    depth: int = declared(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth(self.predicate))

    def __invert__(self) -> Predicate:
        return self.predicate


@dataclass(frozen=True, slots=True)
class RelativeChange:
    """A new value that is made of the stored one: `update(..., credits=field("credits") + 1)`.

    "set" and "remove" are for values inside others, such as "address.city". "within" is several changes inside one
    field; its operand is the tuple of them.
    """

    field: str
    operator: Literal["+", "-", "append", "add", "discard", "set", "remove", "within"]
    operand: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class FieldReference(Generic[ValueT]):
    """A field, by name. A name with dots, such as "address.city", is a field of a nested model or map.

    For type checkers, `ValueT` is the type of its values: that of `User.name`, or Any for a field that is given by
    name.
    """

    name: str

    def __eq__(self, other: ValueT | None) -> Comparison:  # type: ignore[override]
        return Comparison(self.name, "=", (other,))

    def __ne__(self, other: ValueT | None) -> Comparison:  # type: ignore[override]
        return Comparison(self.name, "<>", (other,))

    def __lt__(self, other: ValueT) -> Comparison:
        return Comparison(self.name, "<", (other,))

    def __le__(self, other: ValueT) -> Comparison:
        return Comparison(self.name, "<=", (other,))

    def __gt__(self, other: ValueT) -> Comparison:
        return Comparison(self.name, ">", (other,))

    def __ge__(self, other: ValueT) -> Comparison:
        return Comparison(self.name, ">=", (other,))

    # `==` makes a comparison, so references cannot be found in sets and dicts.
    __hash__ = None  # type: ignore[assignment]

    def between(self, low: ValueT, high: ValueT) -> Comparison:
        """The field lies between two values, both included."""
        return Comparison(self.name, "between", (low, high))

    def begins_with(self: Sequential, prefix: str | bytes | Sequence[Any]) -> Comparison:
        """The field is text that begins with this text, or a list or tuple that begins with these elements."""
        return Comparison(self.name, "begins_with", (prefix,))

    # A tuple of a fixed length is no tuple of any, for type checkers.
    @overload
    def contains(self: FieldReference[str], element: str) -> Comparison: ...

    @overload
    def contains(self: FieldReference[bytes], element: bytes) -> Comparison: ...

    @overload
    def contains(self: FieldReference[list[E]], element: E) -> Comparison: ...

    @overload
    def contains(self: FieldReference[tuple[E, ...]], element: E) -> Comparison: ...

    @overload
    def contains(self: FieldReference[set[K]], element: K) -> Comparison: ...

    @overload
    def contains(self: FieldReference[frozenset[K]], element: K) -> Comparison: ...

    @overload
    def contains(self: FieldReference[tuple[Any, Any]], element: Any) -> Comparison: ...

    @overload
    def contains(self: FieldReference[tuple[Any, Any, Any]], element: Any) -> Comparison: ...

    def contains(self, element: Any) -> Comparison:
        """The field is text that contains this text, or a list or set that contains this element."""
        return Comparison(self.name, "contains", (element,))

    def is_in(self, options: Iterable[ValueT]) -> Comparison:
        """The field equals one of these values. DynamoDB takes 1 to 100; another number raises `InvalidValue`."""
        operands = tuple(_iterated("is_in", options))
        if not 1 <= len(operands) <= MAX_IN_OPERANDS:
            raise InvalidValue(f"is_in takes 1 to {MAX_IN_OPERANDS} values, got {len(operands)}")
        return Comparison(self.name, "in", operands)

    def exists(self) -> Comparison:
        """The stored item has the field. `field("id").exists()` holds if the node itself is stored."""
        return Comparison(self.name, "exists")

    def size(self) -> SizeReference:
        """The size of the stored value, to compare it: the length of text or bytes, or the number of elements."""
        return SizeReference(self.name)

    def has_type(self, type: str) -> TypeTest:
        """The stored value has this type of DynamoDB: "S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS" or "BS"."""
        if type not in TYPES:
            raise InvalidValue(f"has_type takes a type of DynamoDB ({', '.join(TYPES)}), got {shown(type)}")
        return TypeTest(self.name, type)

    def __add__(self, amount: ValueT) -> RelativeChange:
        return RelativeChange(self.name, "+", amount)

    def __sub__(self, amount: ValueT) -> RelativeChange:
        return RelativeChange(self.name, "-", amount)

    # Operators that only refuse; type checkers refuse them because they do not know them.
    if not TYPE_CHECKING:

        def _joined(self, other: Any) -> NoReturn:
            # `field("a") == 1 & field("b") == 2` means `field("a") == (1 & field("b")) == 2` in Python.
            raise InvalidValue(
                f"field({self.name!r}) alone is not a comparison; put parentheses around each side of & and |"
            )

        def __invert__(self) -> NoReturn:
            self._joined(None)

        __and__ = __rand__ = __or__ = __ror__ = _joined

        def _calculated(self, other: Any, modulus: Any = None) -> NoReturn:
            raise InvalidValue(
                f"a stored number can only be added to or subtracted from, as by field({self.name!r}) + 1 and "
                f"field({self.name!r}) - 1; to change it in another way, read the value and update with the new one"
            )

        __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _calculated
        __mod__ = __rmod__ = __pow__ = __rpow__ = __radd__ = __rsub__ = _calculated

    def append(self: FieldReference[list[E]], *elements: E) -> RelativeChange:
        """For `update`: the stored list with these elements at its end."""
        return RelativeChange(self.name, "append", list(elements))

    @overload
    def add(self: FieldReference[set[K]], elements: Iterable[K]) -> RelativeChange: ...

    @overload
    def add(self: FieldReference[frozenset[K]], elements: Iterable[K]) -> RelativeChange: ...

    def add(self, elements: Iterable[Any]) -> RelativeChange:
        """For `update`: the stored set with these elements added."""
        return RelativeChange(self.name, "add", _as_set("add", elements))

    @overload
    def discard(self: FieldReference[set[K]], elements: Iterable[K]) -> RelativeChange: ...

    @overload
    def discard(self: FieldReference[frozenset[K]], elements: Iterable[K]) -> RelativeChange: ...

    @overload
    def discard(self: FieldReference[list[K]], elements: Iterable[K]) -> RelativeChange: ...

    def discard(self, elements: Iterable[Any]) -> RelativeChange:
        """For `update`: the stored set or list without these elements."""
        return RelativeChange(self.name, "discard", _as_set("discard", elements))

    def set(self, value: ValueT) -> RelativeChange:
        """For `update`: this value, also inside of another one: `field("address.city").set("Porto")`."""
        return RelativeChange(self.name, "set", value)

    def remove(self) -> RelativeChange:
        """For `update`: without this value, such as `field("tags.0")`, the first of a list, or a key of a map.

        A whole field then has its default.
        """
        return RelativeChange(self.name, "remove")


@dataclass(frozen=True, slots=True, eq=False)
class SizeReference:
    """The size of a field, to compare it with a number."""

    name: str

    def __eq__(self, other: Any) -> SizeComparison:  # type: ignore[override]
        return self._compared("=", other)

    def __ne__(self, other: Any) -> SizeComparison:  # type: ignore[override]
        return self._compared("<>", other)

    def __lt__(self, other: int) -> SizeComparison:
        return self._compared("<", other)

    def __le__(self, other: int) -> SizeComparison:
        return self._compared("<=", other)

    def __gt__(self, other: int) -> SizeComparison:
        return self._compared(">", other)

    def __ge__(self, other: int) -> SizeComparison:
        return self._compared(">=", other)

    # `==` makes a comparison, so references cannot be found in sets and dicts.
    __hash__ = None  # type: ignore[assignment]

    def between(self, low: int, high: int) -> SizeComparison:
        """The size lies between two numbers, both included."""
        return self._compared("between", low, high)

    def _compared(self, operator: SizeOperator, *numbers: Any) -> SizeComparison:
        for number in numbers:
            if not isinstance(number, int) or isinstance(number, bool):
                raise InvalidValue(f"a size is compared with a whole number, got {shown(number)}; pass one")
        return SizeComparison(self.name, operator, numbers)


if TYPE_CHECKING:
    Sequential: TypeAlias = (
        FieldReference[str] | FieldReference[bytes] | FieldReference[list[Any]] | FieldReference[tuple[Any, ...]]
    )
    """A field whose values have a beginning."""


def _iterated(verb: str, elements: Iterable[Any]) -> Iterable[Any]:
    # Text is a list of its letters in Python, which nobody means here.
    if not isinstance(elements, Iterable) or isinstance(elements, str | bytes):
        raise InvalidValue(f"{verb} takes a list of values, got {shown(elements)}; put it into a list")
    return elements


def _as_set(verb: str, elements: Iterable[Any]) -> set[Any]:
    try:
        return set(_iterated(verb, elements))
    except TypeError:
        raise InvalidValue(
            f"{shown(elements)} contains a value that a set cannot contain; {verb} takes text, numbers or bytes"
        ) from None


@overload
def field(name: LiteralString) -> FieldReference[Any]: ...


@overload
def field(name: Decimal) -> FieldReference[Decimal | int]: ...  # type: ignore[overload-overlap]


@overload
def field(name: Decimal | None) -> FieldReference[Decimal | int | None]: ...  # type: ignore[overload-overlap]


@overload
def field(name: property) -> FieldReference[Any]: ...


@overload
def field(name: cached_property[T]) -> FieldReference[T]: ...


@overload
def field(name: Callable[[Any], T]) -> FieldReference[T]: ...  # a property, as mypy has it


@overload
def field(name: T) -> FieldReference[T]: ...


def field(name: Any) -> FieldReference[Any]:
    """Returns a reference to a field, to compare it (in `find`, `where`, `only_if`) or to change it (in `update`).

    `field(User.name)` is `field("name")` with its name and its value checked by type checkers. A name with dots, such
    as "address.city", is a field of a nested model or map; so is `field(User.address.city)`.
    """
    if isinstance(name, ClassField):
        return FieldReference(name._path)
    # A computed field.
    if isinstance(name, property) and name.fget is not None:
        return FieldReference(name.fget.__name__)
    if isinstance(name, cached_property) and name.attrname is not None:
        return FieldReference(name.attrname)
    if not isinstance(name, str):
        raise InvalidValue(
            f"field takes the name of a field, or the field as an attribute of its class, got {shown(name)}; pass "
            f'"name" or User.name'
        )
    return FieldReference(name)


def field_name(of: str | FieldReference[Any]) -> str:
    """Returns the name of a field that is given by its name, or as `field(User.name)`."""
    return of.name if isinstance(of, FieldReference) else of
