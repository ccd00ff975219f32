"""The compiled key templates of one class, and what the keys of an item say about it.

`NodeKeys` and `EdgeKeys` hold the templates of the table's keys and of index keys. They parse the keys of an item back
into the parts of ids. `templates` makes them for all classes of a graph. `Membership` says which index keys the items
of a class have: all keys of an index that an item is in, and none of another.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import InvalidKey, InvalidValue
from adjoin.expressions import Compare, Condition, Exists, Not, Or, Value, attribute
from adjoin.field_types import may_be_none
from adjoin.late import later
from adjoin.layouts.interface import Index
from adjoin.layouts.keys import SHARD, Part, Template
from adjoin.layouts.records import FieldRecord
from adjoin.layouts.template_texts import JOINT, TemplateTexts
from adjoin.values import AttributeValue, Item

if TYPE_CHECKING:
    from adjoin.layouts import short_keys
    from adjoin.layouts.templates import AdjacencyKeys
else:
    short_keys = later("adjoin.layouts.short_keys")


@dataclass(frozen=True)
class NodeKeys:
    kind: NodeType
    partition: Template
    sort: Template
    index_keys: Mapping[str, Template]
    record: FieldRecord
    text: Template
    """The node key: the partition key if that has the whole id, otherwise both keys."""
    rest: tuple[str, ...]
    """The parts of the id that are in the sort key only; none unless nodes of the class share a partition."""
    explained: frozenset[str]
    """The attributes that adjoin writes or reads on items of the class."""
    is_apart: bool = False
    """Whether it is a child in another partition than that of its parent."""
    parent_rest: tuple[str, ...] = ()
    """For a child, the parts of its parent's id with which its sort key begins."""

    def text_in(self, partition: str, sort: str) -> str:
        """The node key of the node whose item has these keys."""
        return partition + JOINT + sort if self.rest else partition

    def told(self, partition: str, sort: str) -> dict[str, str] | None:
        """The texts of the parts of the id in these keys; None if they are not the keys of a node of the class."""
        told = _told(self.partition.match(partition), self.sort.match(sort))
        return told if told is None or not self.is_echoed or _is_made_of(self, partition, sort, told) else None

    @cached_property
    def is_echoed(self) -> bool:
        """Whether one key holds less of a value that the other holds whole, such as the day of a time."""
        return _is_echoed(self.partition, self.sort)

    def check_bounds(self, values: Mapping[str, Any]) -> None:
        """Refuses an id outside the bounds of its field, which no validator has seen: its key may be another's."""
        for part in self.bounded:
            value = values[part.name]
            if isinstance(value, int | dt.datetime) and not part.holds(value):
                bounds = [] if part.least is None else [f"at least {part.least}"]
                bounds += [] if part.most is None else [f"at most {part.most}"]
                raise InvalidKey(f"{self.kind.name}.{part.name} must be {' and '.join(bounds)}, got {value}")

    def takes_less_than(self, side: str, others: Collection[Template]) -> bool:
        """Whether no node can have some of the ids with which templates of edges write the node at that end."""
        return any(
            not any(
                template.quoting.ends <= other.quoting.ends and _names(other, side, self.kind, part) for other in others
            )
            for template in (self.partition, self.sort)
            if not template.quoting.escape or any(part.transform.name for part in template.parts)
            for part in template.parts
        )

    @cached_property
    def bounded(self) -> tuple[Part, ...]:
        """The parts of the id that have bounds: whole numbers and moments."""
        parts = (*self.partition.parts, *self.sort.parts)
        return tuple(part for part in parts if part.least is not None or part.most is not None)

    @cached_property
    def sole_fields(self) -> dict[str, frozenset[str]]:
        """The fields that an index key holds, and no other attribute does, by the name of the key."""
        return _sole_fields(self)


@dataclass(frozen=True)
class EdgeKeys:
    kind: EdgeType
    partition: Template
    sort: Template
    index_keys: Mapping[str, Template]
    record: FieldRecord
    fields: tuple[str, ...]
    """The fields of the edge's identity."""
    target_field: str | None
    """The field that is the target's id, if templates name it instead of {target}."""
    meets: tuple[NodeType, ...]
    """The classes whose nodes have the key that an edge would have whose ends have the same id."""
    order_index: Index | None
    """The index that keeps the order, if the sort key does not."""
    explained: frozenset[str]
    """The attributes that adjoin writes or reads on items of the class."""
    rest: tuple[str, ...] = ()
    """The parts of the source's id that are in the sort key only; none unless the source shares its partition."""
    is_apart: bool = False
    """Whether its partition key is not that of its source."""
    stricter: tuple[str, ...] = ()
    """The ends, "source" and "target", whose nodes cannot have every id that the keys of the edge can have."""
    loose: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The ends, "source" and "target", that are not part of the table's keys, each with the attributes that tell it."""
    also_stored: tuple[str, ...] = ()
    """The fields in the table's keys that have an attribute too, because it is a key of a declared index."""

    def told(self, partition: str, sort: str) -> dict[str, str] | None:
        """The texts of the parts in these keys; None if they are not the keys of an edge of the class."""
        told = _told(self.partition.match(partition), self.sort.match(sort))
        return told if told is None or not self.is_echoed or _is_made_of(self, partition, sort, told) else None

    @cached_property
    def is_echoed(self) -> bool:
        """Whether one key holds less of a value that the other holds whole, such as the day of a time."""
        return _is_echoed(self.partition, self.sort)

    @cached_property
    def sole_fields(self) -> dict[str, frozenset[str]]:
        """The fields that an index key holds, and no other attribute does, by the name of the key."""
        return _sole_fields(self)

    @cached_property
    def own_fields(self) -> tuple[str, ...]:
        """The fields of the edge's identity besides its ends."""
        return tuple(name for name in self.fields if name != self.target_field)

    @cached_property
    def target_parts(self) -> list[str]:
        """The names of the parts of the target's id."""
        return [f"target.{name}" for name in self.kind.target.parts]

    @cached_property
    def sorts_by_target(self) -> bool:
        """Whether the sort key alone shows the target."""
        return self.sort.told.issuperset(self.target_parts)

    def end_parts(self, side: str) -> list[str]:
        """The names of the parts of the id at one end, "source" or "target"."""
        end = self.kind.source if side == "source" else self.kind.target
        return [f"{side}.{name}" for name in end.parts]

    @cached_property
    def short(self) -> short_keys.ShortKeys | None:
        """How items of edges between short ids get their keys; None if that takes more than both ids."""
        if self.target_field is not None or self.meets or self.stricter or self.also_stored:
            return None
        return short_keys.short_keys(self.partition, self.sort, self.index_keys, self.kind.single_ends)

    @cached_property
    def only_target(self) -> str | None:
        """The name of the only part of a target's id that is one value."""
        return self.target_parts[0] if self.kind.target.is_single else None


def _names(template: Template, side: str, kind: NodeType, part: Part) -> bool:
    """Whether a template of edges has a part of the id of the node at an end, in the same form as the node's key."""
    direct = (f"{side}.{part.name}", part.transform.name)
    if any((each.name, each.transform.name) == direct for each in template.parts):
        return True
    spelled = [one for each in template.parts for one in each.among if one.name == kind.name]
    pieces = [piece for one in spelled for piece in one.pieces if isinstance(piece, Part)]
    return any((piece.name, piece.transform.name) == (part.name, part.transform.name) for piece in pieces)


def _told(told: dict[str, str] | None, own: dict[str, str] | None) -> dict[str, str] | None:
    """The texts in both keys of an item; None if one key does not match, or a part is different in the other."""
    if told is None or own is None or any(told.setdefault(name, text) != text for name, text in own.items()):
        return None
    return told


def _is_echoed(partition: Template, sort: Template) -> bool:
    told = partition.told | sort.told
    return any(not part.transform.decode and part.name in told for part in (*partition.parts, *sort.parts))


def _is_made_of(keys: NodeKeys | EdgeKeys, partition: str, sort: str, told: Mapping[str, str]) -> bool:
    """Whether keys agree about a value of which one of them holds less."""
    pairs = ((keys.partition, partition), (keys.sort, sort))
    lossy = ((each, text) for each, text in pairs if any(not part.transform.decode for part in each.parts))
    return all(each.is_made_of(text, told) for each, text in lossy if {*each.names} <= told.keys())


def rest_of(parts: Sequence[str], partition: Template, sort: Template | None) -> tuple[str, ...] | None:
    """The parts of an id that a sort key begins with, because the partition key, made of the others, lacks them.

    None if the id does not tell the partition, or the sort key begins with something else.
    """
    if not {part.name for part in partition.parts} - {SHARD} <= {*parts}:
        return None
    rest = tuple(name for name in parts if name not in partition.told)
    begun = [] if sort is None else [part.name for part in sort.parts[: len(rest)]]
    return rest if {*begun} == {*rest} else None


def written_fields(kept: NodeKeys | EdgeKeys) -> frozenset[str]:
    """The fields of a class that an item has under the names of their attributes."""
    return kept.record.stored_names.union(kept.also_stored if isinstance(kept, EdgeKeys) else ())


def in_index_key(kept: NodeKeys | EdgeKeys, names: Collection[str]) -> str | None:
    """One of these fields that is part of an index key of a class; None if none is."""
    parts = [name for each in kept.index_keys.values() for name in each.names]
    return next((name for name in (*parts, *kept.kind.indexed[:1]) if name in names), None)


def sole_keys(kept: NodeKeys | EdgeKeys) -> set[str]:
    """The index keys of a class that hold a value which no other attribute holds."""
    elsewhere = {SHARD, *kept.record.stored_names, *kept.partition.told, *kept.sort.told}
    return {name for name, template in kept.index_keys.items() if not template.told <= elsewhere}


def _at_risk(kept: NodeKeys | EdgeKeys) -> dict[str, tuple[str, ...]]:
    kind, found = kept.kind, dict[str, tuple[str, ...]]()
    optional = {name for name, info in kind.fields.items() if may_be_none(info)}
    for told in frozenset[str]().union(*kept.sole_fields.values()):
        holding = [name for name, fields in kept.sole_fields.items() if told in fields]
        if all(optional.intersection(kept.index_keys[name].names) - {told} for name in holding):
            found[told] = tuple(holding)
    return found


def _sole_fields(kept: NodeKeys | EdgeKeys) -> dict[str, frozenset[str]]:
    elsewhere = kept.record.stored_names | kept.partition.told | kept.sort.told
    fields = kept.kind.attributes.keys() - elsewhere
    return {name: frozenset(template.told & fields) for name, template in kept.index_keys.items()}


# --- which class an item is of -------------------------------------------------------------------
# The classes of a family have the same keys, so an attribute tells them apart: a field of the head with its own values
# in each class, or the layout's type attribute. An item with another value is of the head itself. A class outside of a
# family is told by its keys; if the layout has a type attribute, the item has its label there, or no label.


@dataclass(frozen=True)
class ToldBy:
    """The attribute that tells a class, and its values there."""

    attribute: str
    values: tuple[AttributeValue, ...]
    may_be_absent: bool
    """Whether items of the class need not have the attribute."""

    def holds(self, item: Item) -> bool:
        stored = item.get(self.attribute)
        return self.may_be_absent if stored is None else stored in self.values

    def condition(self) -> Condition:
        path = attribute(self.attribute)
        equal: list[Condition] = [Compare("=", path, Value(value)) for value in self.values]
        if self.may_be_absent:
            equal.insert(0, Not(Exists(path)))
        return equal[0] if len(equal) == 1 else Or(tuple(equal))


def told_condition(kind: EntityType, texts: TemplateTexts) -> Condition | None:
    """What items of a class have besides their keys, as a condition."""
    found = telling(kind, texts)
    return None if found is None else found.condition()


def telling(kind: EntityType, texts: TemplateTexts) -> ToldBy | None:
    """What items of a class have besides their keys; None if nothing more is known of them."""
    type_attribute = texts.layout.type_attribute
    words: tuple[AttributeValue, ...] = tuple({"S": word} for word in texts.type_words(kind))
    if isinstance(kind, NodeType) and kind.head is not None:
        named = kind.head.attributes.get(kind.discriminator or "") or type_attribute
        assert named is not None
        return ToldBy(named, kind.told_by if kind.is_told_by_field else words, may_be_absent=False)
    return None if type_attribute is None else ToldBy(type_attribute, words, may_be_absent=True)


# --- which index keys an item has ----------------------------------------------------------------
# DynamoDB leaves an item out of an index if one key attribute is missing. A field that is None leaves one out, and then
# the other keys of that index are left out too, as programs do that write such a sparse index by hand. If the field
# gets a value, all keys of the index have to be written. A key attribute stays if another index needs it, or if it
# holds a value that is stored nowhere else.


class Membership:
    """The key attributes of one class in all indexes."""

    def __init__(self, keys: AdjacencyKeys, kept: NodeKeys | EdgeKeys) -> None:
        kind, self._templates = kept.kind, kept.index_keys
        self._kind = kind
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
        self.at_risk = _at_risk(kept)
        """The fields that only index keys hold, each with these keys, where another part of each may be None."""

    def check_kept(self, values: Mapping[str, Any], found: Mapping[str, object]) -> None:
        """Refuses a value that would be stored nowhere: the keys that hold it are not among those that were found."""
        for told, names in self.at_risk.items():
            value = values.get(told)
            if value is None or value == self._kind.fields[told].default:
                continue
            if not any(found.get(name) is not None for name in names):
                key = self._templates[names[0]]
                empty = [name for name in key.names if values.get(name) is None]
                raise InvalidValue(
                    f"{self._kind.name}.{told} is stored in the key {names[0]!r} only, {key}, which the item does not "
                    f"have while {' and '.join(empty)} is None; give it a value, or store {told} in an attribute too: "
                    f"take it out of only_in_keys"
                )

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
