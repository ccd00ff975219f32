"""Checks of what a layout is given, before its templates are made: each argument has its type and a meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from adjoin.entity_types import EdgeType, EntityType
from adjoin.errors import InvalidModel, shown
from adjoin.layouts.interface import Index, Keys
from adjoin.layouts.keys import Part, parse_template
from adjoin.schema import Schema
from adjoin.tables import Projection

if TYPE_CHECKING:
    from adjoin.layouts.adjacency_list import AdjacencyList

_MEANINGS = {
    "label": "the label of the class",
    "node": "the key of the node",
    "tenant": "the tenant of the graph",
}
"""The placeholders that are not fields, and that a field could be called. An edge has no {node}."""


def check_arguments(layout: AdjacencyList, schema: Schema) -> None:
    """Refuses arguments of other types than those that a layout takes."""
    if not isinstance(layout.keys, Mapping):
        raise InvalidModel(f"keys= takes a map from classes to Keys(…), got {shown(layout.keys)}")
    if not isinstance(layout.types, Mapping):
        raise InvalidModel(f'types= of the layout takes a map such as {{"id": "N"}}, got {shown(layout.types)}')
    known = {kind.model: kind for kind in schema.types}
    for model, own in layout.keys.items():
        if model not in known:
            name = model.__name__ if isinstance(model, type) else shown(model)
            raise InvalidModel(f"keys= names {name}, which is not a class of this graph")
        _check_keys(known[model], own)
    if isinstance(layout.indexes, str | Index) or not isinstance(layout.indexes, Iterable):
        raise InvalidModel(f"indexes= takes a list of Index(…) values, got {shown(layout.indexes)}")
    for index in (*layout.indexes, layout.ordered, layout.indexed, *([layout.reverse] if layout.reverse else [])):
        if not isinstance(index, Index):
            raise InvalidModel(f"indexes= takes Index(…) values, got {shown(index)}")
        if not isinstance(index.projection, Projection):
            raise InvalidModel(
                f'projection= of the index {shown(index.name)} takes a value such as Projection("KEYS_ONLY"), got '
                f"{shown(index.projection)}"
            )
        if not isinstance(index.types, Mapping):
            raise InvalidModel(
                f'types= of the index {shown(index.name)} takes a map such as {{"GSIPK": "N"}}, got '
                f"{shown(index.types)}"
            )


def _check_keys(kind: EntityType, keys: Any) -> None:
    """Refuses what is not Keys(…), or has arguments of other types than those take."""
    if not isinstance(keys, Keys):
        raise InvalidModel(f"keys= takes Keys(…) for {kind.name}, got {shown(keys)}")
    for name in ("partition", "sort", "reverse_partition", "reverse_sort"):
        if not isinstance(given := getattr(keys, name), str | None):
            raise InvalidModel(f"Keys({name}=…) of {kind.name} takes a template as text, got {shown(given)}")
    for name in ("indexes", "attributes"):
        if not isinstance(given := getattr(keys, name), Mapping):
            raise InvalidModel(f"Keys({name}=…) of {kind.name} takes a map from names to templates, got {shown(given)}")
    for index, given in keys.indexes.items():
        if not isinstance(given, str | tuple | list):
            raise InvalidModel(
                f"Keys(indexes=…) of {kind.name} takes one template or two for {index!r}, got {shown(given)}"
            )
    pairs = [(each,) if isinstance(each, str) else each for each in keys.indexes.values()]
    if "" in (
        keys.partition,
        keys.sort,
        keys.reverse_partition,
        keys.reverse_sort,
        *(text for pair in pairs for text in pair),
    ):
        raise InvalidModel(
            f"a key template of {kind.name} is empty, and a key needs at least one character; write a text such as "
            f"{kind.label!r}, or leave it out"
        )
    _check_meanings(kind, keys)
    if isinstance(keys.only_in_keys, str) or not isinstance(keys.only_in_keys, Iterable):
        raise InvalidModel(
            f"Keys(only_in_keys=…) of {kind.name} takes a list of names of fields, got {shown(keys.only_in_keys)}"
        )


def _check_meanings(kind: EntityType, keys: Keys) -> None:
    """Refuses a placeholder that would be something else than the field of that name."""
    pairs = [(each,) if isinstance(each, str) else each for each in keys.indexes.values()]
    given = [keys.partition, keys.sort, keys.reverse_partition, keys.reverse_sort, *keys.attributes.values()]
    for text in (*given, *(text for pair in pairs for text in pair)):
        if not isinstance(text, str):
            continue
        for piece in parse_template(text):
            name = piece.name if isinstance(piece, Part) else ""
            if name in kind.fields and name in _MEANINGS and not (name == "node" and isinstance(kind, EdgeType)):
                raise InvalidModel(
                    f"in the key template {text!r} of {kind.name}, {{{name}}} is {_MEANINGS[name]}, and {kind.name} "
                    f"has a field of that name too; give the field another name, with Field(alias={name!r}) if the "
                    f"table has such an attribute"
                )


def check_single(index: Index | None) -> None:
    if index is not None and len(index.keys) > len({index.partition_attribute, index.sort_attribute} - {None}):
        raise InvalidModel(
            f"the index {index.name!r} holds what adjoin writes from templates, so its keys have one attribute each"
        )
