"""DynamoDB types told from annotations: what a field is stored as, as far as its type says."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, RootModel

from adjoin.values import encode

# Earlier entries win: bool is an int, and text and bytes are sequences.
_STORED: tuple[tuple[type, str], ...] = (
    (bool, "BOOL"),
    (int, "N"),
    (Decimal, "N"),
    (float, "N"),
    (str, "S"),
    (dt.date, "S"),
    (dt.time, "S"),
    (dt.timedelta, "S"),
    (uuid.UUID, "S"),
    (bytes, "B"),
    (bytearray, "B"),
    (memoryview, "B"),
    (BaseModel, "M"),
    (Mapping, "M"),
    (Sequence, "L"),
)
_SETS = {"S": "SS", "N": "NS", "B": "BS"}


def attribute_types(hint: Any) -> list[str]:
    """The types ("S", "N", …) that values of an annotation may be stored as; none where it does not say.

    None is left out: an optional field is of the type that it has when it is there.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return attribute_types(arguments[0])
    if origin in (Union, UnionType):
        return _joined(attribute_types(each) for each in arguments if each is not NoneType)
    if origin is Literal:
        return _joined([next(iter(encode(each)))] for each in arguments if each is not None)
    kind = origin or hint
    if not isinstance(kind, type):
        return []
    if issubclass(kind, Enum):
        return _joined([next(iter(encode(each)))] for each in kind)
    if issubclass(kind, RootModel):
        return attribute_types(kind.model_fields["root"].annotation)
    if issubclass(kind, set | frozenset):
        # Sets are of text, numbers or bytes; what else is in a set makes a list of it.
        elements = attribute_types(arguments[0]) if arguments else []
        return [_SETS.get(elements[0], "L")] if len(elements) == 1 else []
    return next(([stored] for base, stored in _STORED if issubclass(kind, base)), [])


def _joined(types: Iterable[list[str]]) -> list[str]:
    return list(dict.fromkeys(each for some in types for each in some))
