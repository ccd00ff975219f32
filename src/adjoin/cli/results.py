"""Nodes, edges and what walks find, as a line of text or of JSON, and ids as text and back.

An id that is printed is one that can be typed: the parts of a composite id are joined by commas, or are a JSON list if
one of them has a comma itself.
"""

from __future__ import annotations

import datetime as dt
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter

from adjoin.cli.drawing import printable
from adjoin.model import Child, Edge, Node, Ref, node_id
from adjoin.plans.walk_results import WalkPath


def as_json(found: Any) -> str:
    """One line. Numbers with a fraction, dates and bytes (in Base64) are text, so that nothing is lost."""
    # Not orjson: the json module escapes what is not ASCII, so the line is complete in every encoding of stdout.
    return json.dumps(plain(found), separators=(",", ":"))


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    match value:
        case Node() | Edge():
            return {"class": type(value).__name__, **_fields(value)}
        case BaseModel():
            return _fields(value)
        case Ref():
            return {"class": value.model.__name__, "id": plain(value.id)}
        case WalkPath():
            return {"nodes": plain(value.nodes), "edges": plain(value.edges)}
        case Enum():
            return plain(value.value)
        case Mapping():
            return {str(plain(name)): plain(each) for name, each in value.items()}
        case set() | frozenset():
            return sorted(map(plain, value), key=json.dumps)
        case list() | tuple():
            return [*map(plain, value)]
        case bytes():
            return b64encode(value).decode()
        case Decimal():
            return format(value, "f")
        case dt.timedelta():
            return _duration().dump_python(value, mode="json")
        case dt.date() | dt.time():
            return value.isoformat()
        case None | bool() | int() | float() | str():
            return value
    return str(value)


@cache
def _duration() -> TypeAdapter[dt.timedelta]:
    return TypeAdapter(dt.timedelta)


def _fields(entity: BaseModel) -> dict[str, Any]:
    return {name: plain(value) for name, value in _values(entity)}


def _values(entity: BaseModel) -> Iterator[tuple[str, Any]]:
    for name in type(entity).model_fields:
        yield name, getattr(entity, name)
    yield from (entity.model_extra or {}).items()


# --- text --------------------------------------------------------------------------------------


def as_text(found: Any) -> str:
    """One line for a person."""
    match found:
        case Node() | Edge():
            return f"{named(found)}  {', '.join(f'{name}: {text}' for name, text in details(found))}".rstrip()
        case Ref():
            return named(found)
        case WalkPath():
            return " → ".join(map(named, found.nodes))
        case (Edge() as edge, node):
            far = "the node does not exist" if node is None else as_text(node)
            return f"{as_text(edge)}  |  {far}"
    return _text(found)


def named(found: Any) -> str:
    """The class of a node or an edge and its id, or its ends."""
    match found:
        case Edge():
            return f"{type(found).__name__} {id_text(found.source)} → {id_text(found.target)}"
        case Node():
            return f"{type(found).__name__} {id_text(node_id(found))}"
        case Ref():
            return f"{found.model.__name__} {id_text(found.id)}"
    return _text(found)


def details(found: BaseModel) -> Iterator[tuple[str, str]]:
    """The fields beyond the id that have a value, with their values as text."""
    known: set[str] = set()
    if isinstance(found, Edge):
        known = {"source", "target"}
    elif isinstance(found, Node):
        own = ("parent",) if isinstance(found, Child) else ()
        known = {*own, *type(found).__declaration__.key}
    for name, value in _values(found):
        if name not in known and value is not None:
            yield printable(name), _text(value)


def id_text(id: Any) -> str:
    if isinstance(id, Ref):
        return f"{id.model.__name__}:{id_text(id.id)}"
    parts = id if isinstance(id, tuple) else (id,)
    texts = [_text(each) for each in parts]
    if len(parts) > 1 and any("," in text or text.startswith("[") for text in texts):
        return json.dumps([*map(plain, parts)], ensure_ascii=False)
    return ",".join(texts)


def _text(value: Any) -> str:
    shown = plain(value)
    return printable(shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False))
