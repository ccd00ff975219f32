"""Which index keys the items of a class have: all keys of an index that an item is in, and none of another.

DynamoDB leaves an item out of an index if one key attribute is missing. A field that is None leaves one out, and then
the other keys of that index are left out too, as programs do that write such a sparse index by hand. If the field gets
a value, all keys of the index have to be written.

A key attribute stays if another index needs it, or if it holds a value that is stored nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping

from adjoin.field_types import may_be_none
from adjoin.layouts.entity_keys import EdgeKeys, NodeKeys, sole_keys
from adjoin.layouts.templates import AdjacencyKeys
from adjoin.values import Item


class Membership:
    """The key attributes of one class in all indexes."""

    def __init__(self, keys: AdjacencyKeys, kept: NodeKeys | EdgeKeys) -> None:
        kind, self._templates = kept.kind, kept.index_keys
        plain = {stored: name for name, stored in kind.attributes.items()}
        self._fields: dict[str, tuple[str, ...]] = {}
        """The fields from which each key attribute is made."""
        self._groups: list[tuple[str, ...]] = []
        """The key attributes of each index, without those of the table."""
        # In an index in which edges are found from their ends, every edge has all keys.
        every = (keys.reverse, keys.order_index) if isinstance(kept, EdgeKeys) else ()
        for index in (index for index in keys.indexes if index not in every):
            names = [name for name in index.keys if name in self._templates or keys.texts.is_plain(kind, name)]
            if any(name in self._templates for name in names) and len(names) > 1:
                self._groups.append(tuple(names))
        for name in {name for group in self._groups for name in group}:
            template = self._templates.get(name)
            self._fields[name] = (plain[name],) if template is None else template.names
        stored = {field for fields in self._fields.values() for field in fields if field in kind.attributes}
        self._optional = frozenset(field for field in stored if may_be_none(kind.fields[field]))
        self._needed = sole_keys(kept)
        if not self._optional:
            self._groups = []
        parts = [*(template.names for template in self._templates.values()), *self._fields.values()]
        self.decisive = frozenset(field for names in parts for field in names)
        """The fields that decide about index keys. A change of others changes none of them."""
        self.parts = frozenset(name for template in self._templates.values() for name in template.names)
        """The values from which index keys are made."""

    @property
    def is_sparse(self) -> bool:
        """Whether items of the class can be in some indexes and not in others."""
        return bool(self._groups)

    def lone(self, item: Item) -> list[str]:
        """The keys from templates that an item has for indexes which it is not in."""
        complete = {name for group in self._groups if all(each in item for each in group) for name in group}
        others = {name for group in self._groups for name in group if name in self._templates and name in item}
        return sorted(others - complete - self._needed)

    def changed(self, changes: Mapping[str, object]) -> list[str]:
        """The index keys to write for a change of these fields.

        They are the keys that contain one of them. If a field that can be None gets a value, they are all keys of the
        indexes for which it matters, because until now the item may have had none.
        """
        names = [name for name, template in self._templates.items() if not changes.keys().isdisjoint(template.names)]
        if not self._groups:
            return names
        entered = self._optional & {field for field, value in changes.items() if value is not None}
        for group in self._groups:
            if any(not entered.isdisjoint(self._fields[name]) for name in group):
                names += [name for name in group if name in self._templates]
        return list(dict.fromkeys(names))

    def fields(self, names: list[str]) -> list[str]:
        """The fields that decide whether an item is in the indexes of these keys."""
        groups = [group for group in self._groups if not {*names}.isdisjoint(group)]
        return [field for group in groups for name in group for field in self._fields[name]]

    def left(self, values: Mapping[str, object], changes: Mapping[str, object]) -> list[str]:
        """The keys to remove, because the item is certainly in none of their indexes after a change of these fields."""
        if not self._groups:
            return []
        outside = [group for group in self._groups if self._is_outside(group, values)]
        within = {name for group in self._groups if group not in outside for name in group}
        touched = [group for group in outside if not changes.keys().isdisjoint(self.fields(list(group)))]
        names = {name for group in touched for name in group if name in self._templates}
        return sorted(names - within - self._needed)

    def _is_outside(self, group: tuple[str, ...], values: Mapping[str, object]) -> bool:
        fields = [field for name in group for field in self._fields[name]]
        return any(field in values and values[field] is None for field in fields)
