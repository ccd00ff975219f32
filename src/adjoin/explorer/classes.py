"""What the page has to know once: the classes of the graph, their fields, and the table with its indexes."""

from __future__ import annotations

import types
import typing
from typing import Any

from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.explorer.opening import Explored
from adjoin.layouts.bound import BoundLayout
from adjoin.tables import TableDefinition


def described(explored: Explored) -> dict[str, Any]:
    """The table and the classes, in their order of declaration."""
    layout = explored.layout
    return {
        "table": layout.table,
        "location": explored.location,
        "writable": explored.is_writable,
        "tenant": layout.tenant,
        "inferred": None
        if explored.source is None
        else {
            "source": explored.source,
            "read": explored.read,
            "explained": explored.explained,
            "notes": [*explored.notes],
        },
        "definition": definition(layout.definition),
        "classes": [described_class(layout, kind) for kind in layout.schema.types],
    }


def definition(table: TableDefinition) -> dict[str, Any]:
    return {
        "partition": table.partition.name,
        "sort": None if table.sort is None else table.sort.name,
        "indexes": [
            {
                "name": index.name,
                "partition": [key.name for key in index.partitions],
                "sort": [key.name for key in index.sorts],
                "projection": str(index.projection),
                "local": index.local,
            }
            for index in table.indexes
        ],
    }


def described_class(layout: BoundLayout, kind: EntityType) -> dict[str, Any]:
    managed = {*layout.rules.maintained(kind), *kind.computed}
    common: dict[str, Any] = {
        "name": kind.name,
        "label": kind.label,
        "doc": (kind.model.__doc__ or "").strip().partition("\n")[0],
        "fields": [_field(kind, name, managed) for name in kind.fields if name not in ("source", "target", "parent")],
    }
    if isinstance(kind, EdgeType):
        return common | {
            "kind": "edge",
            "source": [each.name for each in kind.source.classes],
            "target": [each.name for each in kind.target.classes],
            "symmetric": kind.symmetric,
            "order": kind.order,
            "key": [*layout.key_fields(kind)],
        }
    assert isinstance(kind, NodeType)
    return common | {
        "kind": "node" if kind.parent is None else "child",
        "parent": None if kind.parent is None else kind.parent.name,
        "head": kind.whole.name,
        "id": [{"name": name, "type": _type_text(info.annotation)} for name, info in kind.part_fields.items()],
    }


def _field(kind: EntityType, name: str, managed: set[str]) -> dict[str, Any]:
    info = kind.fields[name]
    told = {
        "name": name,
        "attribute": kind.attributes.get(name, ""),
        "type": _type_text(info.annotation),
        "required": info.is_required(),
        "indexed": name in kind.indexed,
        "unique": name in kind.unique,
        "managed": name in managed,
        "version": name == kind.version,
        "id": isinstance(kind, NodeType) and name in kind.key,
        "options": _options(info.annotation),
    }
    return {name: value for name, value in told.items() if value or name in ("name", "type")}


def _type_text(hint: Any) -> str:
    """A type as people write it: "str", "list[int] | None"."""
    if hint is None or hint is type(None):
        return "None"
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(_type_text, typing.get_args(hint)))
    if origin is typing.Annotated:
        return _type_text(typing.get_args(hint)[0])
    if origin is typing.Literal:
        return " | ".join(map(repr, typing.get_args(hint)))
    if origin is not None:
        inner = ", ".join("…" if each is ... else _type_text(each) for each in typing.get_args(hint))
        return f"{getattr(origin, '__name__', str(origin))}[{inner}]"
    return getattr(hint, "__name__", str(hint))


def _options(hint: Any) -> list[str]:
    """The only values that a field can have, if they are few: those of an enumeration or of Literal."""
    if typing.get_origin(hint) is typing.Literal:
        return [str(each) for each in typing.get_args(hint)]
    if isinstance(hint, type) and hasattr(hint, "__members__"):
        return [str(each.value) for each in hint]  # type: ignore[attr-defined]
    return []
