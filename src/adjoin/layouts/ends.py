"""The nodes at the ends of edges as parts of keys: ids from texts, and ends at which several classes can be.

Pure functions over classes and texts; a template decides where the parts stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adjoin.entity_types import NodeType, NodeUnion
from adjoin.layouts.keys import Alternative, Part, transform, value_of
from adjoin.model import Ref


def id_of(kind: NodeType, told: Mapping[str, Any], side: str = "") -> Any:
    """The id in the texts of its parts, by their names; None if one is missing or is no value of its type."""
    if kind.only is not None:
        text = told.get(side + kind.only)
        # The key of a node of one of several classes was read as a ref.
        return text if text is None or isinstance(text, Ref) else value_of(kind.id_type, text)
    values = {
        side + name: value_of(plain, told[side + name])
        for name, plain in kind.part_types.items()
        if side + name in told
    }
    return kind.id_told(values, side)


def union_part(union: NodeUnion, side: str, pieces: Callable[[NodeType], list[str | Part]]) -> Part:
    """The part of a template that is the key of a node of one of several classes. `pieces` has the key of each."""
    among = tuple(_alternative(union, kind, tuple(pieces(kind))) for kind in union.classes)
    return Part(f"{side}.{union.parts[0]}", transform(""), Ref, is_id=True, among=among)


def _alternative(union: NodeUnion, kind: NodeType, pieces: tuple[str | Part, ...]) -> Alternative:
    def values(given: Any) -> dict[str, Any] | None:
        found, id = union.of(union.id(given))
        return kind.part_values(id) if found is kind else None

    def value(told: Mapping[str, Any]) -> Ref[Any] | None:
        id = id_of(kind, told)
        return None if id is None else Ref(kind.model, id)

    return Alternative(kind.name, pieces, values, value)
