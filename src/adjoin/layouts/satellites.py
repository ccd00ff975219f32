"""Satellites: items that stand beside an entity's own, are written with it and go with it.

    PK                         SK                    what it is
    PERSON#P1#=                name##META            a copy of the item at (PERSON#P1, #META), for an index
    #=PERSON#email#a@b.c       =                     the claim of one node to a unique value

A copy carries the attributes of the entity, so that finding by it needs no second request. No key of
an entity begins like a claim, because the separator is never part of a value. One may end like a copy
(PERSON#= is the person "="), but then it is the key of a node, which a copy's never is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjoin.bookkeeping import MARK, OWN
from adjoin.layouts.adjacency_keys import AdjacencyKeys
from adjoin.layouts.interface import DELETING, OWNER, Satellite, Shape
from adjoin.layouts.keys import SEPARATOR, check_length
from adjoin.layouts.overloaded import IndexedField, OverloadedIndex, indexed_text
from adjoin.schema import EntityType, NodeType
from adjoin.units import MAX_PARTITION_KEY_SIZE, MAX_SORT_KEY_SIZE
from adjoin.values import AttributeValue, Item, decode, item_size


class Satellites:
    """The satellites of the entities of one layout."""

    def __init__(self, keys: AdjacencyKeys, index: OverloadedIndex | None) -> None:
        layout = keys.layout
        self._pk, self._sk, self._index = layout.partition_key, layout.sort_key, index
        self._prefix, self._sort_prefix = keys.prefix, keys.tenant_part(layout.sort_key)
        self._nodes = [node.partition for node in keys.nodes.values()]
        self._taken = frozenset(keys.attributes - {layout.type_attribute, DELETING})
        """Attributes that only the entity's own item has."""

    def is_one(self, key: Item) -> bool:
        partition: str = key[self._pk]["S"]
        return partition.startswith(self._prefix + OWN) or self._is_copy(partition)

    def _is_copy(self, partition: str) -> bool:
        return partition.endswith(OWN) and not any(node.match(partition) is not None for node in self._nodes)

    def restored(self, item: Item) -> Item:
        """The item that a copy is of, as far as the copy tells; any other item as it is."""
        partition = item[self._pk]["S"]
        if not self._is_copy(partition):
            return item
        sort = item[self._sk]["S"].removeprefix(self._sort_prefix).partition(SEPARATOR)[2]
        return item | {self._pk: {"S": partition.removesuffix(OWN)}, self._sk: {"S": sort}}

    def copied_fields(self, kind: EntityType) -> tuple[IndexedField, ...]:
        return () if self._index is None else tuple(each for each in self._index.fields(kind) if not each.is_own)

    def copy_keys(self, kind: EntityType, key: Item) -> list[Item]:
        return [self._copy_key(field, key) for field in self.copied_fields(kind)]

    def of(self, kind: EntityType, item: Item, values: Mapping[str, Any]) -> list[Satellite]:
        """What stands beside an item of an entity with these values, and what must not."""
        satellites = []
        for field in self.copied_fields(kind):
            value = values[field.name]
            copy = None if value is None else self._copy(field, item, value)
            satellites.append(Satellite(self._copy_key(field, item), copy))
        owner = item[self._pk]["S"]
        for name in kind.unique:
            if values[name] is not None:
                key = self.claim_key(kind, name, values[name])
                satellites.append(Satellite(key, {**key, OWNER: {"S": owner}, **_expiry(kind, item)}, owner))
        return satellites

    def _copy_key(self, field: IndexedField, item: Item) -> Item:
        partition = item[self._pk]["S"] + OWN
        sort = f"{self._sort_prefix}{field.name}{SEPARATOR}{item[self._sk]['S']}"
        what = f"the copy of a {field.kind.name} for the index of its {field.name!r}"
        check_length(partition, MAX_PARTITION_KEY_SIZE, what, "a shorter id")
        check_length(sort, MAX_SORT_KEY_SIZE, what, "a shorter id")
        return {self._pk: {"S": partition}, self._sk: {"S": sort}}

    def _copy(self, field: IndexedField, item: Item, value: Any) -> Item:
        assert self._index is not None
        kept = {name: attribute for name, attribute in item.items() if name not in self._taken}
        copy = self._copy_key(field, item) | kept
        return copy | self._index.entry(field, value, self.tail(field.kind, item), item_size(copy))

    def tail(self, kind: EntityType, item: Item) -> str:
        """What tells an entry of this item from all others: its key, without the tenant."""
        partition = item[self._pk]["S"].removeprefix(self._prefix)
        return partition if isinstance(kind, NodeType) else f"{partition}{SEPARATOR}{item[self._sk]['S']}"

    # --- for people and tools to see -----------------------------------------------------------

    def shaped(self, kind: EntityType, shape: Shape) -> Shape:
        """The shape of an item with its entry in the index, and with the shapes of what stands beside it."""
        spelled: Item = {name: {"S": text} for name, text in shape.written.items()}
        entries = {} if self._index is None else self._index.shapes(kind, self.tail(kind, spelled))
        kept = {name: text for name, text in shape.written.items() if name not in self._taken}
        copies = {
            each.name: Shape(_texts(self._copy_key(each, spelled)) | kept | entries.pop(each.name), shape.fields)
            for each in self.copied_fields(kind)
        }
        owner = {OWNER: shape.written[self._pk]}
        claims = {name: Shape(_texts(self._claim_key(kind, name, f"{{{name}}}")) | owner, {}) for name in kind.unique}
        own = next(iter(entries.values()), {})
        return Shape({**shape.written, **own}, shape.fields, copies, claims)

    # --- keys ----------------------------------------------------------------------------------

    def record_key(self, what: str, name: str) -> Item:
        """Where adjoin records something of its own about the graph; all records of a sort are in one partition."""
        return {
            self._pk: {"S": f"{self._prefix}{OWN}{what}"},
            self._sk: {"S": f"{self._sort_prefix}{MARK}{name}"},
        }

    def claim_key(self, kind: EntityType, name: str, value: Any) -> Item:
        """Where the claim to a value of a unique field lies."""
        return self._claim_key(kind, name, indexed_text(kind.coerced(name, value)))

    def _claim_key(self, kind: EntityType, name: str, spelled: str) -> Item:
        partition = self._prefix + OWN + SEPARATOR.join((kind.label, name, spelled))
        check_length(partition, MAX_PARTITION_KEY_SIZE, f"the claim to {kind.name}.{name}", "a shorter value")
        return {self._pk: {"S": partition}, self._sk: {"S": self._sort_prefix + MARK}}

    def claimed_label(self, claim: Item) -> str:
        """The label of the class that a claim is for."""
        text: str = claim[self._pk]["S"].removeprefix(self._prefix).removeprefix(OWN)
        return text.partition(SEPARATOR)[0]

    def beside(self, kind: EntityType, item: Item) -> list[Satellite]:
        """What is to go when a stored item goes; told by its attributes, for an item need not be valid."""
        gone = [
            Satellite(self._copy_key(field, item), None)
            for field in self.copied_fields(kind)
            if _is_there(item.get(kind.attributes[field.name]))
        ]
        owner = item[self._pk]["S"]
        for name in kind.unique:
            stored = item.get(kind.attributes[name])
            if stored is not None and _is_there(stored):
                gone.append(Satellite(self.claim_key(kind, name, decode(stored)), None, owner))
        return gone


def _texts(key: Item) -> dict[str, str]:
    return {name: value["S"] for name, value in key.items()}


def _expiry(kind: EntityType, item: Item) -> Item:
    stored = kind.attributes[kind.expires] if kind.expires else ""
    return {stored: item[stored]} if stored in item else {}


def _is_there(stored: AttributeValue | None) -> bool:
    return stored is not None and "NULL" not in stored
