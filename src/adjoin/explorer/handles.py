"""Nodes, edges and values as JSON for the page, and the other way.

A handle is a text that names a node or an edge: the class, and the id as JSON, such as `Student/"S1"` or
`Enrollment/["Student/\"S1\"", "Course/\"C1\"", []]`. The page passes handles back as they are, so the server keeps
nothing between two requests.

Numbers are never floats: those that JavaScript could not hold exactly are texts.
"""

from __future__ import annotations

import datetime as dt
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from adjoin.entity_types import AnyEdge, EdgeType, Entity, EntityType, NodeType
from adjoin.errors import InvalidKey, shown
from adjoin.exchange.texts import id_from
from adjoin.layouts.bound import BoundLayout
from adjoin.model import Edge, Node, Ref, node_id

_SAFE = 2**53 - 1
"""The greatest integer of which JavaScript holds every smaller one."""
_BYTES = "bytes"
_NAMING = ("name", "title", "label", "full_name", "Name", "Title")
"""Fields that name a node for people, the first that a class has."""


def plain(value: Any) -> Any:
    """A value of a field as JSON."""
    match value:
        case None | bool() | str() if not isinstance(value, Enum):
            return value
        case Enum():
            return plain(value.value)
        case int():
            return int(value) if abs(value) <= _SAFE else str(value)
        case float() | Decimal() | UUID():
            return str(value)
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return str(value)
        case bytes() | bytearray():
            return {_BYTES: b64encode(value).decode()}
        case Ref(model=model, id=id):
            return {"model": model.__name__, "id": plain(id)}
        case BaseModel():
            return {name: plain(getattr(value, name)) for name in type(value).model_fields}
        case Mapping():
            return {str(plain(key)): plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case set() | frozenset():
            return sorted((plain(each) for each in value), key=str)
    return str(value)


def unplain(value: Any) -> Any:
    """An id from JSON; the class converts texts to its own types."""
    if isinstance(value, list):
        return tuple(map(unplain, value))
    if isinstance(value, dict) and value.keys() == {_BYTES}:
        return b64decode(value[_BYTES])
    return value


def text_of_id(id: Any) -> str:
    """An id as people read it; bytes are in Base64."""
    if isinstance(id, tuple):
        return " · ".join(map(text_of_id, id))
    if isinstance(id, bytes):
        return b64encode(id).decode()
    found = plain(id)
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Handles:
    """Handles and JSON of the entities of one graph."""

    def __init__(self, layout: BoundLayout) -> None:
        self._layout = layout
        schema = layout.schema
        self.kinds: dict[str, EntityType] = {kind.name: kind for kind in schema.types}

    # --- from the page -------------------------------------------------------------------------

    def kind(self, name: Any) -> EntityType:
        if not isinstance(name, str) or name not in self.kinds:
            raise InvalidKey(f"the graph has no class {shown(name)}; it has {', '.join(self.kinds)}")
        return self.kinds[name]

    def node_kind(self, name: Any) -> NodeType:
        kind = self.kind(name)
        if not isinstance(kind, NodeType):
            raise InvalidKey(f"{kind.name} is a class of edges; name a class of nodes")
        return kind

    def edge_kind(self, name: Any) -> EdgeType:
        kind = self.kind(name)
        if not isinstance(kind, EdgeType):
            raise InvalidKey(f"{kind.name} is a class of nodes; name a class of edges")
        return kind

    def ref(self, handle: Any) -> Ref[Any]:
        """The ref that the handle of a node stands for."""
        name, id = self._split(handle)
        kind = self.node_kind(name)
        given = unplain(id)
        return Ref(kind.model, id_from(kind, (given,) if kind.is_single else given))

    def edge_parts(self, handle: Any) -> tuple[EdgeType, Ref[Any], Ref[Any], dict[str, Any]]:
        """The class, the ends and the key fields that the handle of an edge stands for."""
        name, parts = self._split(handle)
        kind = self.edge_kind(name)
        names = self._layout.key_fields(kind)
        if not isinstance(parts, list) or len(parts) != 3 or not isinstance(parts[2], list):
            raise InvalidKey(f"{shown(handle)} names no edge; take a handle that the explorer gave")
        key = dict(zip(names, map(unplain, parts[2]), strict=False))
        return kind, self.ref(parts[0]), self.ref(parts[1]), key

    def _split(self, handle: Any) -> tuple[str, Any]:
        name, _, id = handle.partition("/") if isinstance(handle, str) else ("", "", "")
        try:
            return name, json.loads(id)
        except json.JSONDecodeError:
            raise InvalidKey(f"{shown(handle)} names no node; write the class and the id as JSON") from None

    # --- to the page ---------------------------------------------------------------------------

    def of_id(self, kind: NodeType, id: Any) -> str:
        kind, id = kind.of(id)
        return f"{kind.whole.name}/{_dumped(plain(id))}"

    def of_ref(self, ref: Ref[Any]) -> str:
        return self.of_id(self._layout.schema.node(ref.model), ref.id)

    def of_edge(self, edge: AnyEdge) -> str:
        kind = self._layout.schema.edge(type(edge))
        ends = [self.of_id(kind.source, edge.source), self.of_id(kind.target, edge.target)]
        if kind.symmetric:
            # Either item of a symmetric edge is the edge.
            ends.sort()
        key = [plain(getattr(edge, name)) for name in self._layout.key_fields(kind)]
        return f"{kind.name}/{_dumped([*ends, key])}"

    def node(self, node: Node) -> dict[str, Any]:
        kind = self._layout.schema.node(type(node))
        id = node_id(node)
        return {
            "handle": self.of_id(kind, id),
            "class": kind.name,
            "id": text_of_id(id),
            "title": self._title(kind, node) or text_of_id(id),
            "fields": self._fields(kind, node),
        }

    def missing(self, handle: str) -> dict[str, Any]:
        """A node that an edge names and that does not exist."""
        ref = self.ref(handle)
        id = text_of_id(ref.id)
        return {
            "handle": handle,
            "class": ref.model.__name__,
            "id": id,
            "title": id,
            "fields": {},
            "missing": True,
        }

    def edge(self, edge: AnyEdge) -> dict[str, Any]:
        kind = self._layout.schema.edge(type(edge))
        return {
            "handle": self.of_edge(edge),
            "class": kind.name,
            "source": self.of_id(kind.source, edge.source),
            "target": self.of_id(kind.target, edge.target),
            "symmetric": kind.symmetric,
            "fields": self._fields(kind, edge),
        }

    def parent(self, child: Node) -> dict[str, Any]:
        """The relation of a child to its parent, as an edge."""
        kind = self._layout.schema.node(type(child))
        assert kind.parent is not None
        id = node_id(child)
        parent = self.of_id(kind.parent, kind.whole.parent_id(id))
        own = self.of_id(kind, id)
        return {
            "handle": f"child:{own}",
            "class": kind.whole.name,
            "source": parent,
            "target": own,
            "symmetric": False,
            "fields": {},
            "child": True,
        }

    def entity(self, entity: Entity) -> dict[str, Any]:
        return self.edge(entity) if isinstance(entity, Edge) else self.node(entity)

    def _title(self, kind: NodeType, node: Node) -> str:
        for name in _NAMING:
            if name in kind.fields and isinstance(found := getattr(node, name), str) and found.strip():
                return found
        return ""

    def _fields(self, kind: EntityType, entity: Entity) -> dict[str, Any]:
        named = {name: plain(getattr(entity, name)) for name in kind.fields if name not in ("source", "target")}
        extra = getattr(entity, "__pydantic_extra__", None) or {}
        return named | {name: plain(value) for name, value in extra.items()}
