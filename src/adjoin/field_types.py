"""The annotation of a field: its marks and bounds, the one class of its values, and how values of it are stored.

This module knows fields as pydantic describes them, and no class of a graph. It also has the messages about a value or
a name that does not fit, which are the same wherever a field is used.
"""

from __future__ import annotations

import datetime as dt
import difflib
import uuid
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

import annotated_types
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from adjoin.errors import shown

_TEXTS = (str, dt.datetime, dt.date, dt.time, dt.timedelta, uuid.UUID)

_NUMBERS = (int, float, Decimal)

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


def full_hint(info: FieldInfo) -> Any:
    hint: Any = info.annotation
    for mark in info.metadata:
        hint = Annotated[hint, mark]
    return hint


def inner_marks(hint: Any) -> list[Any]:
    """Returns the marks inside a union, as in `Annotated[str, Unique()] | None`."""
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
