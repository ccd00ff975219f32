"""The fields of a class: the marks and bounds in an annotation, the one class of its values, and their validators.

This module knows fields as pydantic describes them, and nothing of ids, ends and keys. It also has the messages about a
value or a name that does not fit, which are the same wherever a field is used.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterable
from decimal import Decimal
from enum import Enum
from functools import cached_property
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

import annotated_types
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaValidator

from adjoin.dataclass import dataclass
from adjoin.errors import AdjoinError, InvalidModel, InvalidValue, shown
from adjoin.formats import Format, format_of
from adjoin.late import later
from adjoin.marks import Expires, Indexed, Stored, Unique
from adjoin.model import field_schemas
from adjoin.values import check_range

if TYPE_CHECKING:
    import difflib
else:
    difflib = later("difflib")

_TEXTS = (str, dt.datetime, dt.date, dt.time, dt.timedelta, uuid.UUID)

_NUMBERS = (int, float, Decimal)

_STORING = (Stored, Indexed, Unique)
"""The marks with which a computed field is stored."""

Bound: TypeAlias = Literal[">=", ">", "<=", "<"]

_BOUNDS: tuple[tuple[type, str, Bound], ...] = (
    (annotated_types.Ge, "ge", ">="),
    (annotated_types.Gt, "gt", ">"),
    (annotated_types.Le, "le", "<="),
    (annotated_types.Lt, "lt", "<"),
)


def bounds_of(info: FieldInfo) -> list[tuple[Bound, Any]]:
    """Returns the bounds that a number field declares (`ge`, `gt`, `le`, `lt`), as comparisons that must hold."""
    return [
        (operator, getattr(mark, attribute))
        for mark in info.metadata
        for kind, attribute, operator in _BOUNDS
        if isinstance(mark, kind)
    ]


def extent_of(info: FieldInfo, plain: type | None) -> tuple[Any, Any]:
    """Returns the least and the greatest value within the bounds of a whole number or of a moment in UTC.

    None is for a side that is open, and for fields of other types.
    """
    least: Any = None
    most: Any = None
    if plain is None or plain not in _STEPS:
        return least, most
    step: Any = _STEPS[plain]
    for operator, bound in bounds_of(info):
        if plain is dt.datetime and (not isinstance(bound, dt.datetime) or bound.tzinfo is None):
            continue
        # Pydantic takes whole numbers alone as bounds of an int, such as 1.0.
        end: Any = int(bound) if plain is int else bound
        if operator in (">=", ">"):
            end = end + step if operator == ">" else end
            least = end if least is None else max(least, end)
        else:
            end = end - step if operator == "<" else end
            most = end if most is None else min(most, end)
    return least, most


_STEPS: dict[type, Any] = {int: 1, dt.datetime: dt.timedelta(microseconds=1)}
"""The types of fields whose bounds tell keys apart, and the least difference of two values."""


def full_hint(info: FieldInfo) -> Any:
    hint: Any = info.annotation
    for mark in info.metadata:
        hint = Annotated[hint, mark]
    return hint


def inner_marks(hint: Any) -> list[Any]:
    """Returns the marks inside a union, as in `Annotated[str, Unique()] | None`."""
    # Pydantic puts marks of the whole annotation into `metadata`, and leaves those inside a union where they are.
    marks = list(hint.__metadata__) if get_origin(hint) is Annotated else []
    inner = get_args(hint) if get_origin(hint) in (Union, UnionType) else get_args(hint)[:1] if marks else ()
    return marks + [mark for each in inner for mark in inner_marks(each)]


def plain_type(info: FieldInfo) -> type | None:
    """Returns the one class in the annotation of a field, inside Optional, Annotated and Literal; None if several."""
    return _plain(info.annotation)


def _plain(hint: Any) -> type | None:
    origin = get_origin(hint)
    if origin is Annotated:
        return _plain(get_args(hint)[0])
    if origin in (Union, UnionType):
        kinds = {_plain(each) for each in get_args(hint)} - {NoneType}
        return kinds.pop() if len(kinds) == 1 else None
    if origin is Literal:
        kinds = {type(each) for each in get_args(hint)}
        return kinds.pop() if len(kinds) == 1 else None
    return hint if isinstance(hint, type) else None


def may_be_text(info: FieldInfo) -> bool:
    """Returns whether a text is a value of a field."""
    return _has_text(info.annotation)


def _has_text(hint: Any) -> bool:
    hint = getattr(hint, "__supertype__", getattr(hint, "__value__", hint))  # of a NewType, and of `type X = …`
    origin = get_origin(hint)
    if origin is Annotated:
        return _has_text(get_args(hint)[0])
    if origin in (Union, UnionType):
        return any(_has_text(each) for each in get_args(hint))
    if origin is Literal:
        return any(isinstance(each, str) for each in get_args(hint))
    return hint in (Any, object) or (isinstance(hint, type) and issubclass(hint, str))


def is_set(info: FieldInfo) -> bool:
    """Returns whether each value of a field is a set. An item lacks the attribute of one that is empty."""
    return (get_origin(info.annotation) or info.annotation) in (set, frozenset)


def may_be_none(info: FieldInfo) -> bool:
    """Returns whether None is a value of a field."""
    return _has_none(info.annotation)


def _has_none(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _has_none(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return any(map(_has_none, get_args(hint)))
    return hint is None or hint is NoneType or hint is Any


def stored_tag(info: FieldInfo) -> str | None:
    """Returns DynamoDB's type of the values of a field, by its annotation alone; None if it is another or unknown."""
    plain = plain_type(info)
    if plain is None:
        return None
    if issubclass(plain, Enum):
        values = [member.value for member in plain]
        if all(isinstance(value, str) for value in values):
            return "S"
        # An Enum is stored by its values, and bool is an int for Python.
        is_number = all(isinstance(value, _NUMBERS) and not isinstance(value, bool) for value in values)
        return "N" if is_number else None
    if issubclass(plain, bool):
        return "BOOL"
    if issubclass(plain, _NUMBERS):
        return "N"
    return "S" if issubclass(plain, _TEXTS) else None


def path_type(info: FieldInfo) -> type | None:
    """Returns the type of the elements, for a field that is a list or tuple of one type; None for others."""
    return _path_type(info.annotation)


def _path_type(hint: Any) -> type | None:
    origin = get_origin(hint)
    if origin is Annotated:
        return _path_type(get_args(hint)[0])
    if origin in (Union, UnionType):
        paths = {_path_type(each) for each in get_args(hint) if each is not NoneType}
        return paths.pop() if len(paths) == 1 else None
    if origin not in (list, tuple):
        return None
    steps = {_plain(each) for each in get_args(hint) if each is not Ellipsis}
    return steps.pop() if len(steps) == 1 else None


def element_type(info: FieldInfo) -> type | None:
    """Returns the type of the elements, for a field that is a list, tuple or set of any length; None for others."""
    return _element_type(info.annotation)


def _element_type(hint: Any) -> type | None:
    origin = get_origin(hint)
    if origin is Annotated:
        return _element_type(get_args(hint)[0])
    if origin in (Union, UnionType):
        types = {_element_type(each) for each in get_args(hint) if each is not NoneType}
        return types.pop() if len(types) == 1 else None
    arguments = get_args(hint)
    if origin not in (list, set, frozenset) and not (origin is tuple and arguments[1:] == (Ellipsis,)):
        return None
    return _plain(arguments[0])


def problems_in(error: ValidationError) -> str:
    """Returns the problems that pydantic found, field by field, in one line."""
    return "; ".join(
        f"{'.'.join(str(step).strip(chr(0)) for step in problem['loc'])}: {problem['msg']}"
        if problem["loc"]
        else problem["msg"]
        for problem in error.errors()
    )


def raised_by_class(error: Exception) -> str:
    """Returns one line about an exception that a validator of a class raised instead of a validation error."""
    return f"its validators raised {type(error).__name__}: {error}"


def unknown_field(owner: str, name: Any, known: Iterable[str], what: str = "field") -> str:
    """Returns a message that a field (or `what`) does not exist, with the closest name or all names."""
    names = list(known)
    close = difflib.get_close_matches(name[:100] if isinstance(name, str) else "", names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(map(repr, names)) or f'no {what}s'}"
    return f"{owner} has no {what} {shown(name)}; {hint}"


def stored_computed_fields(model: type[Any]) -> dict[str, FieldInfo]:
    """Returns the computed fields of a class that are marked `Stored()`, `Indexed()` or `Unique()`."""
    found: dict[str, FieldInfo] = {}
    for name, info in getattr(model, "model_computed_fields", {}).items():
        marks = inner_marks(info.return_type)
        # People write the mark as an instance or as its class: Indexed() or Indexed.
        if any(isinstance(mark, _STORING) or mark in _STORING for mark in marks):
            found[name] = FieldInfo.from_annotated_attribute(info.return_type, None)
            found[name].serialization_alias = info.alias
    return found


@dataclass(frozen=True)
class ModelFields:
    """The fields of a class: their marks, and how each value is validated."""

    model: type[Any]

    @property
    def name(self) -> str:
        return self.model.__name__

    @cached_property
    def fields(self) -> dict[str, FieldInfo]:
        """The fields of the class, and its computed fields that are stored."""
        fields: dict[str, FieldInfo] = self.model.model_fields
        return {**fields, **self.computed} if self.computed else fields

    @cached_property
    def computed(self) -> dict[str, FieldInfo]:
        """The computed fields that are stored, as fields whose value may be missing."""
        return stored_computed_fields(self.model)

    @cached_property
    def takes_any(self) -> bool:
        """Whether instances may have fields of any name."""
        return bool(self.model.model_config.get("extra") == "allow")

    @cached_property
    def expires(self) -> str | None:
        """The field that is marked `Expires()`."""
        return next(iter(self.marked(Expires)), None)

    @cached_property
    def expires_at(self) -> str | None:
        """The same, if it is a datetime, which is stored as seconds since 1970."""
        name = self.expires
        return name if name is not None and plain_type(self.fields[name]) is dt.datetime else None

    @cached_property
    def indexed(self) -> tuple[str, ...]:
        """The fields whose values `find` can search."""
        return tuple(name for name in self.marked(Indexed) if name not in self.elements)

    @cached_property
    def elements(self) -> tuple[str, ...]:
        """The fields whose elements `find` can search."""
        return tuple(
            name
            for name in self.marked(Indexed)
            if any(
                isinstance(each, Indexed) and each.elements
                for each in (*self.fields[name].metadata, *inner_marks(self.fields[name].annotation))
            )
        )

    def coerced_element(self, name: str, value: Any) -> Any:
        """Returns a value converted to the type of the elements of a field, to compare with."""
        (element,) = self.coerced(name, [value])
        return element

    @cached_property
    def unique(self) -> tuple[str, ...]:
        """The fields whose values no two nodes of the class share."""
        return tuple(self.marked(Unique))

    @cached_property
    def formats(self) -> dict[str, Format]:
        """The formats of the fields that are marked `Stored(…)`."""
        found: dict[str, Format] = {}
        for name in self.marked(Stored):
            info = self.fields[name]
            marks = [each for each in (*info.metadata, *inner_marks(info.annotation)) if isinstance(each, Stored)]
            if name in self.computed and all(mark.format is None for mark in marks):
                continue
            if len(marks) != 1 or marks[0].format is None:
                raise InvalidModel(f"{self.name}.{name} is marked Stored without one format; give it one")
            found[name] = format_of(f"{self.name}.{name}", marks[0].format, marks[0].type, plain_type(info))
        return found

    def marked(self, mark: type) -> list[str]:
        """Returns the fields that have a mark of this class."""
        return [
            name
            for name, info in self.fields.items()
            if any(isinstance(each, mark) or each is mark for each in (*info.metadata, *inner_marks(info.annotation)))
        ]

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        return {}

    @cached_property
    def _validators(self) -> dict[str, Callable[[Any], Any]]:
        return {}

    def validated(self, name: str, value: Any) -> Any:
        """Returns a value as the validators of the field `name` return it; raises `InvalidValue` if they refuse it."""
        return self._checked(name, value, self._validators.get(name) or self._new_validator(name))

    def _new_validator(self, name: str) -> Callable[[Any], Any]:
        field = field_schemas(self.model).get(name)
        validate: Callable[[Any], Any]
        if field is not None:
            # The schema of the field includes `@field_validator`s of the class; an adapter of its type would not.
            config = self.model.__pydantic_core_schema__.get("config")
            validate = SchemaValidator(field["schema"], config).validate_python
        else:
            validate = TypeAdapter(full_hint(self.fields[name])).validate_python
        self._validators[name] = validate
        return validate

    def coerced(self, name: str, value: Any) -> Any:
        """Returns a value converted to the type of the field, to compare with; the bounds of the field do not apply."""
        # Any number can be compared with a number field, for example Decimal("1.5") with an int field.
        if isinstance(value, (int, Decimal)) and (plain_type(self.fields[name]) in (int, float, Decimal)):
            return value
        adapter = self._adapters.get(name)
        if adapter is None:
            hint: Any = self.fields[name].annotation
            adapter = self._adapters[name] = TypeAdapter(hint)
        return self._checked(name, value, adapter.validate_python)

    def _checked(self, name: str, value: Any, validate: Callable[[Any], Any]) -> Any:
        try:
            # For an int field, pydantic would make an int of Decimal("1E+999999999"), which does not end.
            if type(value) is Decimal:
                check_range(value)
            return validate(value)
        except ValidationError as error:
            raise InvalidValue(f"{shown(value)} does not fit {self.name}.{name}: {problems_in(error)}") from None
        # A validator of the class may raise anything, which becomes InvalidValue; these say more as they are.
        except (AdjoinError, MemoryError):
            raise
        except Exception as error:
            raise InvalidValue(f"{shown(value)} does not fit {self.name}.{name}: {raised_by_class(error)}") from error
