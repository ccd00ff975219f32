"""Managed fields in index keys: which keys hold them, and what these keys are for a stored item.

A program does not know the present value of a managed field, so it does not write the keys that hold one. Whoever
changes the field writes them in the same transaction. The rule is the same for everybody: the keys are those of the
value *as it is read*. So a count that was never counted is in an index with its default 0, and a greatest value
without edges, which reads as None, is in none.

The keys of a node that hold a managed field are made of that field and of the id alone. So no change of another field
changes them. Edges may combine copied fields with fields of their own.

Nothing is read or written here. `plans/counting/entries` turns a difference of such keys into actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import InvalidModel, InvalidValue
from adjoin.field_types import may_be_none
from adjoin.layouts.entity_keys import EdgeKeys, NodeKeys
from adjoin.layouts.indexed_fields import OverloadedIndex
from adjoin.layouts.keys import SHARD, Template
from adjoin.layouts.own_items import Satellites, believed
from adjoin.layouts.templates import AdjacencyKeys
from adjoin.rules import Rules
from adjoin.values import Item, item_size


class ManagedKeys:
    """The index keys of all classes of one layout that hold managed fields."""

    def __init__(
        self, keys: AdjacencyKeys, rules: Rules, index: OverloadedIndex | None, satellites: Satellites
    ) -> None:
        self._keys, self._rules, self._index, self._satellites = keys, rules, index, satellites
        self.late: dict[type[Any], Mapping[str, Template]] = {}
        """By class: the keys from templates that hold managed fields, and those that are written with them."""
        self.indexed: dict[type[Any], tuple[str, ...]] = {}
        """By class: the indexed fields that are managed fields."""
        self._plain: dict[type[Any], dict[str, str]] = {}
        self.fields: dict[type[Any], frozenset[str]] = {}
        """By class: the managed fields that are in index keys."""
        self.exact: dict[type[Any], tuple[str, ...]] = {}
        """By class: the attributes from which keys, means and numbers of reached sets are made, so that their values
        must be known."""
        self.attributes: dict[type[Any], frozenset[str]] = {}
        """By class: the key attributes of items that hold managed fields, or are written together with them."""
        for kind in keys.schema.types:
            managed = frozenset(rules.maintained(kind))
            late = self.late[kind.model] = self._holding(kind, managed)
            indexed = self.indexed[kind.model] = tuple(name for name in kind.indexed if name in managed)
            plain = self._plain[kind.model] = self._plain_keys(kind, managed)
            self._check(kind, managed, late)
            made = managed & {*indexed, *(name for template in late.values() for name in template.names)}
            means = [mean for mean in rules.means if mean.node is kind.whole]
            parts = {rule.attribute for mean in means for rule in (mean.total, mean.number)}
            parts |= {rule.attribute for rule in rules.shown_sets if rule.node is kind.whole}
            self.exact[kind.model] = tuple(sorted({kind.attributes[name] for name in made} | parts))
            self.fields[kind.model] = made | plain.keys()
            own = (index.partition_key, index.sort_key) if index is not None and self.is_first(kind) else ()
            self.attributes[kind.model] = frozenset((*late, *own))

    def _of(self, kind: EntityType) -> NodeKeys | EdgeKeys:
        return self._keys.edges[kind.model] if isinstance(kind, EdgeType) else self._keys.nodes[kind.model]

    def _holding(self, kind: EntityType, managed: frozenset[str]) -> Mapping[str, Template]:
        """The keys from templates that hold managed fields, and the other keys of the same indexes.

        An item has all keys of an index or none, so all of them depend on whether a copied field has a value. But an
        edge has all keys of the indexes in which it is found from its ends, and a node has a value for each field that
        is part of a template.
        """
        keys = self._of(kind).index_keys if managed else {}
        names = {name for name, template in keys.items() if managed.intersection(template.names)}
        if isinstance(kind, EdgeType):
            held = (names - self._keys.end_keys) | {kind.attributes[field] for field in managed}
            names |= {name for index in self._keys.indexes if held.intersection(index.keys) for name in index.keys}
        return {name: template for name, template in keys.items() if name in names}

    def _plain_keys(self, kind: EntityType, managed: frozenset[str]) -> dict[str, str]:
        """The managed fields whose attributes are keys of declared indexes as they are, with these attributes."""
        keys = {name for index in self._keys.indexes for name in index.keys}
        return {name: kind.attributes[name] for name in managed if kind.attributes.get(name) in keys}

    def _check(self, kind: EntityType, managed: frozenset[str], late: Mapping[str, Template]) -> None:
        kept = self._of(kind)
        for name in managed - kept.record.stored_names:
            raise InvalidModel(
                f"{kind.name}.{name} is a managed field, so it needs an attribute of its own; take it out of "
                f"only_in_keys="
            )
        # These keys are made again from the item, so another key has to have such a value in any case.
        optional = {name for name, info in kind.fields.items() if may_be_none(info)}
        sure = {
            name
            for each in kept.sole_fields.keys() - late.keys()
            for name in kept.sole_fields[each]
            if not optional.intersection(kept.index_keys[each].names) - {name}
        }
        for attribute in late:
            for name in sorted(kept.sole_fields[attribute] - sure):
                raise InvalidModel(
                    f"{kind.name}.{name} is stored in the key {attribute!r} only, which is written when a managed "
                    f"field is known, and not by a put; store {name} in an attribute too: take it out of "
                    f"only_in_keys="
                )
        if isinstance(kind, EdgeType):
            for name in self.indexed[kind.model] if kind.symmetric else ():
                raise InvalidModel(
                    f"{kind.name}.{name} is a copied field of a symmetric edge, whose two items have different values, "
                    f"and an index of indexed fields has one of them; remove Indexed(), or use order={name!r}"
                )
            if not kind.symmetric:
                return
        for attribute, template in late.items():
            parts = {*kind.parts, SHARD} if isinstance(kind, NodeType) else {*template.names} - {*kind.attributes}
            name, *others = sorted({*template.names} - parts, key=lambda each: each not in managed) or [""]
            if others:
                raise InvalidModel(
                    f"the key {attribute!r} of {kind.name} is made of {name!r}, a managed field, and of {others[0]!r}, "
                    f"which others change; give each of them a key attribute of its own"
                )
            if name in managed and isinstance(kind, NodeType) and may_be_none(kind.fields[name]):
                raise InvalidModel(
                    f"{kind.name}.{name} is part of the key {attribute!r}, but it may be None, which no key can hold; "
                    f"mark it with Indexed() instead, or give it a type without None"
                )

    # --- which keys ----------------------------------------------------------------------------

    def is_first(self, kind: EntityType) -> bool:
        """Whether the entry of an item itself in the index of indexed fields is that of a managed field."""
        return bool(kind.indexed) and kind.indexed[0] in self.indexed[kind.model]

    def holding(self, kind: EntityType, name: str) -> frozenset[str]:
        """The key attributes of an item that hold one managed field."""
        late = self.late[kind.model]
        own = frozenset(attribute for attribute, template in late.items() if name in template.names)
        return own | (self.attributes[kind.model] - late.keys() if kind.indexed[:1] == (name,) else frozenset())

    # --- what they are -------------------------------------------------------------------------

    def values(self, kind: EntityType, item: Item) -> dict[str, Any]:
        """The managed fields of an item that are in index keys, as they are read; None for one that does not fit."""
        item = believed(self._rules, kind, item)
        return {name: self._value(kind, name, item) for name in self.fields[kind.model]}

    def _value(self, kind: EntityType, name: str, item: Item) -> Any:
        stored = item.get(kind.attributes[name])
        if stored is None:
            return kind.fields[name].get_default(call_default_factory=True)
        try:
            return kind.validated(name, self._of(kind).record.decode_field(name, stored))
        except InvalidValue:
            return None

    def defaults(self, kind: EntityType, item: Item) -> Item:
        """The sums that are keys of indexes as they are, and that an item lacks: they are stored as 0."""
        rules = [rule for rule in self._rules.declared if rule.node is kind.whole and not rule.shows_mean]
        sums = {rule.field for rule in rules if not rule.is_ranked}
        found: Item = {}
        for name, attribute in self._plain[kind.model].items():
            default = kind.fields[name].get_default(call_default_factory=True)
            if name in sums and default is not None and attribute not in item:
                found[attribute] = self._of(kind).record.encode_field(name, default)
        return found

    def entry(self, kind: EntityType, item: Item, values: Mapping[str, Any]) -> Item:
        """The keys of an item in the index of indexed fields, if its first indexed field is a managed one."""
        if self._index is None or not self.is_first(kind):
            return {}
        own = self._index.fields(kind)[0]
        return self._index.entry(own, values[own.name], self._satellites.tail(kind, item), item_size(item))


def without(item: Item, names: Iterable[str]) -> Item:
    """An item without some attributes."""
    left = {*names}
    return {name: value for name, value in item.items() if name not in left} if left else item
