"""Editing with `--write`: nodes and edges that are added, changed and deleted, with the messages of their classes.

Values come as the texts of a form. The class of a field reads its text, and where it cannot, what it says is told
beside the field. Nothing is written unless every field can be read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from adjoin.entity_types import EntityType, NodeType
from adjoin.errors import InvalidValue, NotFound, shown
from adjoin.exchange.texts import bytes_from
from adjoin.explorer.handles import Handles
from adjoin.explorer.opening import Explored
from adjoin.explorer.requested import Requested
from adjoin.field_types import plain_type
from adjoin.model import node_id


class Unreadable(Exception):
    """What is wrong with a form, by field; "" for the form as a whole."""

    def __init__(self, problems: dict[str, str]) -> None:
        super().__init__()
        self.problems = problems


class Editing:
    """What the page can change."""

    def __init__(self, explored: Explored, handles: Handles) -> None:
        self._graph = explored.graph
        self._layout = explored.layout
        self._handles = handles

    def add(self, model: str, values: dict[str, Any]) -> dict[str, Any]:
        """Adds a node. One with the same id is not replaced."""
        kind = self._handles.node_kind(model)
        try:
            node = self._made(kind, self._read(kind, values))
        except Unreadable as error:
            return {"problems": error.problems}
        with Requested() as requests:
            self._graph.add(node)
            stored = self._graph.get(kind.whole.model, node_id(node))
        return {"node": self._handles.node(stored or node), **requests.told()}

    def connect(self, model: str, source: str, target: str, values: dict[str, Any]) -> dict[str, Any]:
        """Adds an edge between two nodes that exist."""
        kind = self._handles.edge_kind(model)
        ends = [self._handles.ref(source), self._handles.ref(target)]
        try:
            fields = self._read(kind, values)
        except Unreadable as error:
            return {"problems": error.problems}
        with Requested() as requests:
            edge = self._graph.connect(kind.model, *ends, **fields)
        return {"edge": self._handles.edge(edge), **requests.told()}

    def change(self, handle: str, values: dict[str, Any]) -> dict[str, Any]:
        """Changes the fields of a node or an edge that are given, and no others."""
        name = handle.partition("/")[0] if isinstance(handle, str) else ""
        kind = self._handles.kind(name)
        if isinstance(kind, NodeType):
            ref = self._handles.ref(handle)
            stored = self._graph.get(ref.model, ref.id)
            if stored is None:
                raise NotFound(f"there is no {kind.name} {shown(ref.id)} any more; it was deleted")
            kind = self._layout.schema.node(type(stored))
            ids: tuple[Any, ...] = (ref.id,)
            key: dict[str, Any] = {}
        else:
            _, source, target, key = self._handles.edge_parts(handle)
            ids = (source, target)
        try:
            changes = self._read(kind, values)
        except Unreadable as error:
            return {"problems": error.problems}
        with Requested() as requests:
            changed = self._graph.update(kind.model, *ids, **key, **changes)
        told = {"node": self._handles.node(changed)} if isinstance(kind, NodeType) else {}
        return {**(told or {"edge": self._handles.edge(changed)}), **requests.told()}

    def delete(self, handle: str, kind: str) -> dict[str, Any]:
        """Deletes a node with all its edges, or one edge."""
        with Requested() as requests:
            if kind == "edge":
                edge, source, target, key = self._handles.edge_parts(handle)
                was_there = self._graph.disconnect(edge.model, source, target, **key)
            else:
                was_there = self._graph.delete(self._handles.ref(handle))
        return {"deleted": was_there, **requests.told()}

    # --- forms ---------------------------------------------------------------------------------

    def _read(self, kind: EntityType, values: Any) -> dict[str, Any]:
        """The values of fields that the texts of a form stand for."""
        if not isinstance(values, Mapping):
            raise InvalidValue(f"values by the names of fields are needed, got {shown(values)}")
        found: dict[str, Any] = {}
        problems: dict[str, str] = {}
        for name, text in values.items():
            if name not in kind.fields:
                # Raises with the closest name.
                kind.attribute(name)
            try:
                found[name] = _value(kind, name, text)
            except InvalidValue as error:
                problems[name] = str(error)
        if problems:
            raise Unreadable(problems)
        return found

    def _made(self, kind: NodeType, values: dict[str, Any]) -> Any:
        try:
            return kind.model.model_validate(values, by_alias=False, by_name=True)
        except ValidationError as error:
            problems = {str(each["loc"][0]) if each["loc"] else "": each["msg"] for each in error.errors()}
        raise Unreadable(problems)


def _value(kind: EntityType, name: str, text: Any) -> Any:
    """What a text stands for: a value that the field takes as text, or else the JSON of one."""
    if isinstance(kind, NodeType) and name == "parent":
        assert kind.parent is not None
        return kind.parent.id(text if kind.parent.is_single else tuple(_parsed(text)))
    if plain_type(kind.fields[name]) is bytes and isinstance(text, str):
        return bytes_from(kind, name, text)
    try:
        return kind.validated(name, text)
    except InvalidValue as error:
        try:
            parsed = _parsed(text)
        except ValueError:
            raise error from None
        return kind.validated(name, parsed)


def _parsed(text: Any) -> Any:
    """The JSON in a text; numbers are exact."""
    if not isinstance(text, str):
        raise ValueError
    return json.loads(text, parse_float=Decimal)
