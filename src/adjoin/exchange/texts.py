"""Values of fields and ids of nodes as text and as JSON, and back.

An id that is written can be read: the parts of a composite id are joined by commas, or are a JSON list if one of them
has a comma itself. Where a node may be of several classes, it is CLASS:ID. Bytes are in Base64.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache
from typing import Any
from uuid import UUID

import orjson
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from adjoin.entity_types import EntityType, NodeType, NodeUnion
from adjoin.errors import InvalidKey, InvalidValue, shown
from adjoin.field_types import may_be_text, plain_type
from adjoin.model import Edge, Node, Ref

# --- as JSON -----------------------------------------------------------------------------------


def as_json(value: Any, *, is_ascii: bool = False) -> str:
    """A value as one line of JSON, with only ASCII characters if that is wanted."""
    found = plain(value)
    try:
        text = orjson.dumps(found).decode()
    except TypeError:
        # Half of a surrogate pair, which a refused record may have: JSON has an escape for it.
        return json.dumps(found)
    return _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text) if is_ascii else text


_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_LONG = 2**63


def plain(value: Any, *, is_inner: bool = False) -> Any:
    """A value as orjson takes it. A field that is a number with a fraction, or a date, is text: no digit is lost.

    Numbers inside of lists and maps stay numbers, because no field says what such a text would be.
    """
    match value:
        case Node() | Edge():
            return {"class": type(value).__name__, **plain_fields(value)}
        case BaseModel():
            return plain_fields(value)
        case Ref():
            return {"class": value.model.__name__, "id": plain(value.id)}
        case Enum():
            return plain(value.value, is_inner=is_inner)
        case Mapping():
            return {str(plain(name)): plain(each, is_inner=True) for name, each in value.items()}
        case set() | frozenset():
            return [plain(each, is_inner=True) for each in _sorted(value)]
        case list() | tuple():
            return [plain(each, is_inner=True) for each in value]
        case bytes():
            return b64encode(value).decode()
        case Decimal():
            return orjson.Fragment(format(value, "f")) if is_inner else format(value, "f")
        case dt.timedelta():
            return _duration().dump_python(value, mode="json")
        case dt.date() | dt.time():
            return value.isoformat()
        case int() if not -_LONG <= value < _LONG:
            return orjson.Fragment(str(value))
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def _sorted(values: Iterable[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


@lru_cache(1)
def _duration() -> TypeAdapter[dt.timedelta]:
    return TypeAdapter(dt.timedelta)


def plain_fields(entity: BaseModel) -> dict[str, Any]:
    fields = type(entity).model_fields
    return {
        # Where the type also takes a text, a number with a fraction has to be a number, to be told from one.
        name: plain(value, is_inner=isinstance(value, Decimal) and (name not in fields or may_be_text(fields[name])))
        for name, value in field_values(entity)
    }


def field_values(entity: BaseModel) -> Iterator[tuple[str, Any]]:
    for name in type(entity).model_fields:
        yield name, getattr(entity, name)
    yield from (entity.model_extra or {}).items()


# --- as text -----------------------------------------------------------------------------------


def text_of(value: Any) -> str:
    """A value as one text: as it is, or as JSON if it is a list or a map."""
    found = plain(value)
    return found if isinstance(found, str) else orjson.dumps(found).decode()


def is_mixed(info: FieldInfo) -> bool:
    """Whether a text in a file may be JSON for this field: it holds a list or a map, or values of several types."""
    plain = plain_type(info)
    return plain is None or not issubclass(plain, _AS_THEY_ARE)


_AS_THEY_ARE = (str, bytes, int, float, Decimal, bool, dt.date, dt.time, dt.timedelta, UUID, Enum)


def text_of_mixed(value: Any) -> str:
    """As `text_of`, for a field that `is_mixed`: a text that would be read as JSON is written as JSON itself."""
    if not isinstance(value, str):
        return text_of(value)
    text = text_of(value)
    try:
        json.loads(text)
    except ValueError:
        return text
    except RecursionError:
        # It begins as JSON that is nested too deeply to be read.
        pass
    return orjson.dumps(text).decode()


def csv_row(cells: Iterable[str]) -> str:
    """A row of CSV without its end. Cells with any end of a line are quoted."""
    written = io.StringIO(newline="")
    # The writer quotes the characters that end its rows, so a lone "\r" is quoted only if it is one of them.
    csv.writer(written, lineterminator=_ROW_END).writerow(cells)
    return written.getvalue()[: -len(_ROW_END)]


_ROW_END = "\r\n"


def id_text(id: Any) -> str:
    if isinstance(id, Ref):
        return f"{id.model.__name__}:{id_text(id.id)}"
    parts = id if isinstance(id, tuple) else (id,)
    texts = [text_of(each) for each in parts]
    if len(parts) > 1 and any("," in text or text.startswith("[") for text in texts):
        return orjson.dumps([*map(plain, parts)]).decode()
    return ",".join(texts)


# --- and back ----------------------------------------------------------------------------------


def node_from(kind: NodeType, text: str) -> Any:
    """The id that a text stands for, or the ref where the class of the node has to be named."""
    if isinstance(kind, NodeUnion):
        return _one_of(kind, text)
    return id_from(kind, (text,) if kind.is_single else _parts(kind, text))


def id_from(kind: NodeType, parts: Sequence[Any]) -> Any:
    """The id of these parts, of which those that are bytes are given as texts."""
    types = kind.part_types
    if bytes in types.values() and len(types) == len(parts):
        parts = [
            bytes_from(kind, name, part) if types[name] is bytes and isinstance(part, str) else part
            for name, part in zip(types, parts, strict=True)
        ]
    return kind.id(parts[0] if kind.is_single else tuple(parts))


def _one_of(kind: NodeUnion, text: str) -> Ref[Any]:
    name, colon, id = text.partition(":")
    names = ", ".join(each.name for each in kind.classes)
    if not colon:
        first = kind.classes[0].name
        raise InvalidKey(f"{shown(text)} may be one of {names}; name its class, as in {first}:{text}")
    for each in kind.classes:
        if name == each.name:
            return Ref(each.model, node_from(each, id))
    close = get_close_matches(name[:100], [each.name for each in kind.classes], n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"they are of {names}"
    raise InvalidKey(f"{name!r} in {shown(text)} is not a class of these nodes; {hint}")


def _parts(kind: NodeType, text: str) -> Sequence[Any]:
    if text.startswith("["):
        try:
            return tuple(json.loads(text))
        except ValueError:
            raise InvalidKey(f"{shown(text)} begins as a JSON list, but is not one; write the whole list") from None
    parts = tuple(text.split(","))
    if len(parts) != len(kind.parts):
        raise InvalidKey(
            f"the id of a {kind.name} has {len(kind.parts)} parts ({', '.join(kind.parts)}), got {shown(text)}; join "
            f"them with commas, or write a JSON list"
        )
    return parts


def value_from(kind: EntityType, name: str, text: str) -> Any:
    """The value of a field that a text stands for; the class validates it later."""
    end = kind.end(name)
    if end is not None:
        return node_from(end, text)
    if name in kind.fields and plain_type(kind.fields[name]) is bytes:
        return bytes_from(kind, name, text)
    return text


def bytes_from(kind: EntityType, name: str, text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (NotBase64, ValueError):
        raise InvalidValue(f"{kind.name}.{name} holds bytes, and {shown(text)} is not Base64; encode it") from None
