"""What classes declare about their stored items, as values that can be recorded, read back and compared.

A *form* says how the items of one class are stored: their keys, their entries in indexes, and the attributes of their
fields. The table has a record of the forms that its items have. Where a graph declares another form, items that were
stored before lack something, such as an entry in an index. `Due` says what they lack, so that a query which may miss
some of them is refused.

Nothing is read or written here; `plans.migrating` does that.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import MigrationDue, TableMismatch
from adjoin.expressions import Condition, paths_in
from adjoin.field_types import plain_type
from adjoin.layouts.indexed_fields import ELEMENTS

if TYPE_CHECKING:
    from adjoin.layouts.entity_keys import EdgeKeys, NodeKeys
    from adjoin.layouts.templates import AdjacencyKeys

PartKind: TypeAlias = Literal["index", "indexed", "unique", "symmetric", "field", "keys"]
FormPart: TypeAlias = tuple[PartKind, str]
"""A part of a form that items may lack: ("index", "GSI2"), ("indexed", "name"), ("unique", "email"), ("symmetric", ""),
("field", "full_name") for a field that the class makes from others, or ("keys", "")."""


@dataclass(frozen=True, slots=True)
class ItemForm:
    """How the items of one class are stored."""

    name: str
    word: str
    """The word for the class; no other class of the graph has it."""
    keys: Mapping[str, str]
    """The templates of the table's keys, by attribute."""
    indexes: Mapping[str, Mapping[str, str]]
    """The templates of the keys of each index that holds the class, by attribute."""
    indexed: tuple[str, ...]
    """The indexed fields. The item itself is the entry of the first; the others have index copies.

    Those whose elements are indexed come last, as "tags[]"."""
    unique: tuple[str, ...]
    symmetric: bool
    fields: Mapping[str, str]
    """The attribute of each stored field."""
    aggregates: Mapping[str, str] = field(default_factory=dict)
    """The keys of the declarations of aggregates, by field."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """How the values of fields are spelled in keys of indexes and in claims, by attribute: as text, numbers or dates.

    An earlier version did not record it, so nothing is known of attributes that are not here."""
    due: frozenset[FormPart] = frozenset()
    """The parts that stored items may lack, until a migration has ended."""
    computed: tuple[str, ...] = field(default=(), compare=False)
    """The stored fields that the class computes, or that its validators may make from other attributes.

    It is not recorded: what matters is whether `fields` has them."""

    def parts(self) -> dict[FormPart, Any]:
        """Everything that an item may lack, each with a value that differs if it is declared differently."""
        found: dict[FormPart, Any] = {("keys", ""): dict(self.keys)}
        found |= {("index", name): dict(keys) for name, keys in self.indexes.items()}
        # The first indexed field is indexed by the item itself, the others by copies. So a field that becomes the
        # first one counts as changed.
        own = next((name for name in self.indexed if not name.endswith(ELEMENTS)), None)
        found |= {("indexed", name): name == own for name in self.indexed}
        found |= {("unique", name): "" for name in self.unique}
        found |= {("field", name): "" for name in self.computed}
        return found | ({("symmetric", ""): ""} if self.symmetric else {})

    def lacking(self, stored: ItemForm) -> frozenset[FormPart]:
        """The parts that items lack which have the form `stored`."""
        known = stored.parts()
        found = {
            part
            for part, declared in self.parts().items()
            if (known.get(part) != declared or part in stored.due) and not self._is_there(part, stored)
        }
        # If a field has a value of another type now, stored entries spell it in another way.
        respelled = {name for name, how in self.spelled.items() if stored.spelled.get(name, how) != how}
        if respelled:
            found |= {part for part in self.parts() if not respelled.isdisjoint(self._spelled_in(part))}
        return frozenset(found)

    def _spelled_in(self, part: FormPart) -> set[str]:
        """The attributes whose values are spelled in a part of the form."""
        kind, name = part
        if kind == "index":
            return {each for text in self.indexes[name].values() for each in _NAME.findall(text)}
        return {self.fields[name]} if kind in ("indexed", "unique") and name in self.fields else set()

    def _is_there(self, part: FormPart, stored: ItemForm) -> bool:
        """Whether items have a part anyway: a field, or an index entry whose keys are attributes that they had."""
        kind, name = part
        if part in stored.due:
            return False
        if kind == "field":
            return name in stored.fields
        if kind != "index":
            return False
        # An index over attributes that items had before the index holds them all: DynamoDB fills it when it is added.
        plain = {attribute: f"{{{attribute}}}" for attribute in stored.fields.values()}
        return all(plain.get(attribute) == text for attribute, text in self.indexes[name].items())

    def resorted(self, stored: ItemForm, partitions: Mapping[str, str]) -> list[str]:
        """The indexes that hold items of the form `stored` in the same partitions, with other sort keys.

        `partitions` has the attribute of each index's partition key. The stored sort keys begin with the literal text
        with which those of this form begin, so that a query finds them.
        """
        found = []
        for name in self.indexes.keys() & stored.indexes.keys():
            ours, theirs = self.indexes[name], stored.indexes[name]
            attribute = partitions.get(name, "")
            is_kept = ours != theirs and ours.get(attribute) == theirs.get(attribute)
            are_found = all(theirs.get(key, "").startswith(text.partition("{")[0]) for key, text in ours.items())
            if is_kept and are_found and ("index", name) not in stored.due:
                found.append(name)
        return found

    def plain(self) -> dict[str, Any]:
        """The form as plain values, without those that are empty."""
        told = {
            "name": self.name,
            "keys": dict(self.keys),
            "indexes": {name: dict(keys) for name, keys in self.indexes.items()},
            "indexed": list(self.indexed),
            "unique": list(self.unique),
            "symmetric": self.symmetric,
            "fields": dict(self.fields),
            "aggregates": dict(self.aggregates),
            "spelled": dict(self.spelled),
            "due": sorted(f"{kind} {name}".strip() for kind, name in self.due),
        }
        return {name: value for name, value in told.items() if value}

    @classmethod
    def of_plain(cls, word: str, plain: Mapping[str, Any]) -> ItemForm:
        due = (each.partition(" ") for each in plain.get("due", ()))
        return cls(
            plain["name"],
            word,
            plain["keys"],
            plain.get("indexes", {}),
            tuple(plain.get("indexed", ())),
            tuple(plain.get("unique", ())),
            plain.get("symmetric", False),
            plain.get("fields", {}),
            plain.get("aggregates", {}),
            plain.get("spelled", {}),
            frozenset((kind, name) for kind, _, name in due),
        )


# --- what is due -------------------------------------------------------------------------------


@dataclass(slots=True)
class Due:
    """What stored items lack of the forms that a graph declares.

    A record about the table says it for all tenants. Without a record, each tenant has to look at its own items.
    """

    parts: Mapping[str, frozenset[FormPart]] = field(default_factory=dict)
    """By the word of a class: what its items may lack."""
    absent: frozenset[str] = frozenset()
    """Indexes that the table does not have."""
    is_any: bool = False
    """Whether anything is due. It is asked before every query, so it is a plain attribute."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of the classes, by their words."""
    resorted: frozenset[tuple[str, str]] = frozenset()
    """The word of a class and an index that has all its items in the right partitions, some with other sort keys."""

    unsure: Mapping[str, frozenset[FormPart]] = field(default_factory=dict)
    """By the word of a class: what its items may lack in a table without a record, until somebody has looked."""
    doubted: Mapping[str, frozenset[FormPart]] = field(default_factory=dict)
    """The same, also after somebody has looked: what the items of other tenants may lack."""
    is_looked: bool = False
    """Whether somebody has looked at the items of a table without a record."""

    def of_another_tenant(self) -> Due:
        """What is known of the items of a tenant before anything was read for it."""
        # Without a record, what one tenant has found out about its own items says nothing about those of another.
        if self.doubted:
            return Due(absent=self.absent, is_any=True, names=self.names, unsure=self.doubted, doubted=self.doubted)
        return Due(self.parts, self.absent, self.is_any, self.names, self.resorted)

    def doubt(self, parts: Mapping[str, frozenset[FormPart]], names: Mapping[str, str]) -> None:
        """The table has no record. What was found in its items stays known."""
        if not self.is_looked:
            self.unsure, self.doubted, self.names = parts, parts, names
            self.is_any = bool(self.parts or self.absent or self.unsure)

    def looked(self, parts: Mapping[str, frozenset[FormPart]]) -> None:
        """Somebody has looked at the items of a table without a record, and found that they lack these parts."""
        self.is_looked, self.unsure = True, {}
        self.parts = {word: some for word, some in parts.items() if some}
        self.is_any = bool(self.parts or self.absent)

    def learn(
        self,
        parts: Mapping[str, frozenset[FormPart]],
        names: Mapping[str, str],
        resorted: Iterable[tuple[str, str]] = (),
    ) -> None:
        self.parts = {word: some for word, some in parts.items() if some}
        self.names, self.resorted, self.unsure, self.doubted = names, frozenset(resorted), {}, {}
        self.is_any = bool(self.parts or self.absent)

    def learn_absent(self, indexes: Iterable[str]) -> None:
        self.absent = frozenset(indexes)
        self.is_any = bool(self.parts or self.absent or self.unsure)

    def may_miss(self, kind: EntityType, index: str | None) -> bool:
        """Whether a query of a class by an index, or in the table, may miss stored items; see `check_range`."""
        return index in self.absent or self._first_due(_words(kind), _parts_of_range(index)) is not None

    def check_range(self, kind: EntityType | None, index: str | None) -> None:
        """Raises if a query of a class, or of every class, by an index or in the table, may miss stored items."""
        self._check_absent(index)
        if kind is None:
            # Where only sort keys are other ones, everything is there.
            words = [word for word in {**self.parts, **self.unsure} if (word, index) not in self.resorted]
            # In the partition of a node, an edge that has just become symmetric may lack its other item.
            self._check(words, [("symmetric", "")] if index is None else [("index", index)])
            return
        self._check(_words(kind), _parts_of_range(index))

    def check_around(self, kinds: Iterable[EntityType], index: str | None) -> None:
        """Raises if not all edges of these classes at a node are in the table, or in an index, where they belong."""
        words = [word for kind in kinds for word in _words(kind) if (word, index) not in self.resorted]
        self._check(words, _parts_of_range(index))

    def check_field(self, kind: EntityType, name: str, index: str) -> None:
        """Raises if a find by an indexed field may miss stored items."""
        self._check_absent(index)
        self._check(_words(kind), [("indexed", name), ("keys", "")])

    def check_unique(self, kind: EntityType, *names: str) -> None:
        """Raises if a node may have a value of a unique field, or an edge a node, that it has not claimed."""
        self._check(_words(kind), [*(("unique", name) for name in names), ("keys", "")])

    def check_filter(self, kind: EntityType | None, filter: Condition | None) -> None:
        """Raises if a condition of a query is about a field that stored items may lack, although they have a value."""
        if kind is None or filter is None:
            return
        compared = {str(path.steps[0]) for path in paths_in(filter)}
        self._check(_words(kind), [("field", name) for name, stored in kind.attributes.items() if stored in compared])

    def is_becoming_symmetric(self, kind: EdgeType) -> bool:
        """Whether programs may be at work to which an edge of this class has one item only."""
        return any(("symmetric", "") in some.get(kind.whole.word, ()) for some in (self.parts, self.unsure))

    def lacking_in(self, kind: EdgeType, indexes: Iterable[str | None]) -> list[str]:
        """Those of the indexes in which stored edges of a class may have no entry, or one with another sort key."""
        word = kind.whole.word
        due = {*self.parts.get(word, ()), *self.unsure.get(word, ())}
        return [index for index in dict.fromkeys(indexes) if index is not None and ("index", index) in due]

    def check_keys(self, kind: EntityType) -> None:
        """Raises if items of a class may be stored under other keys."""
        self._check(_words(kind), [("keys", "")])

    def _check(self, words: Iterable[str], wanted: Sequence[FormPart]) -> None:
        if (found := self._first_due(words, wanted)) is not None:
            raise MigrationDue(self._message(*found))

    def _first_due(self, words: Iterable[str], wanted: Sequence[FormPart]) -> tuple[str, FormPart] | None:
        """The word of a class and the part that its items may lack; None if there is none of these."""
        for word in words:
            for part in wanted:
                if part in self.parts.get(word, ()) or part in self.unsure.get(word, ()):
                    return word, part
        return None

    def _check_absent(self, index: str | None) -> None:
        if index is not None and index in self.absent:
            raise TableMismatch(f"the table has no index {index!r}; add it with create_table() or migrate()")

    def _message(self, word: str, part: FormPart) -> str:
        what = lacks(self.names.get(word, word), part)
        if part[0] == "keys":
            return f"{what}; read them with the former declarations, and put them into another table"
        return (
            f"{what}, so this query may miss some; run g.migrate() or adjoin migrate, which writes what they lack, and "
            f"again with finish=True or --finish when no older program writes any more"
        )


def _parts_of_range(index: str | None) -> list[FormPart]:
    """What a query of an index, or of the table, needs that all items have."""
    wanted: list[FormPart] = [("keys", ""), ("symmetric", "")]
    return wanted if index is None else [*wanted, ("index", index)]


def _words(kind: EntityType) -> list[str]:
    """The words of the classes as which the items of a class may have been stored.

    The head of a family reads the items of its other classes. Those may have been stored as the head, before it had
    other classes.
    """
    if isinstance(kind, EdgeType):
        return [kind.whole.word]
    family = kind.family if isinstance(kind, NodeType) else ()
    return list(dict.fromkeys([kind.word, kind.whole.word, *(each.word for each in family)]))


_LACKS = {
    "index": "may have no entry in the index {1!r}",
    "indexed": "may not be indexed by {1!r}",
    "unique": "may not have claimed their {1!r}",
    "symmetric": "may be stored at one of their ends only, because the class was not symmetric before",
    "field": "may lack their {1!r}, which the class makes from other fields",
    "keys": "may be stored under other keys",
}


def lacks(name: str, part: FormPart) -> str:
    """What stored items of a class may lack, in words."""
    kind, which = part
    return f"stored items of {name} " + _LACKS[kind].format(None, which)


# --- what is declared --------------------------------------------------------------------------


def forms_of(keys: AdjacencyKeys, aggregates: Mapping[str, str]) -> dict[str, ItemForm]:
    """The forms of all classes, by their words. `aggregates` has the keys of declarations, by "LABEL.field"."""
    return {kind.word: _form(keys, kind, aggregates) for kind in keys.schema.types}


def _form(keys: AdjacencyKeys, kind: EntityType, aggregates: Mapping[str, str]) -> ItemForm:
    kept = keys.edges[kind.model] if isinstance(kind, EdgeType) else keys.nodes[kind.model]
    own = zip(keys.table.names, (kept.partition, kept.sort), strict=False)
    indexed = keys.overloaded
    made = {index.name: _entry(keys, kept, index.keys) for index in keys.indexes if index is not indexed}
    stored = kept.record.stored_names
    made_of_others = kind.attributes if kept.record.looks_first else kind.computed
    return ItemForm(
        kind.name,
        kind.word,
        {name: _text(keys, kept, name, template) for name, template in own},
        {name: entry for name, entry in made.items() if entry},
        (*kind.indexed, *(name + ELEMENTS for name in kind.elements)),
        tuple(kind.claimed),
        isinstance(kind, EdgeType) and kind.symmetric,
        {name: attribute for name, attribute in kind.attributes.items() if name in stored},
        {
            name.partition(".")[2]: key
            for name, key in sorted(aggregates.items())
            if name.partition(".")[0] == kind.label and kind.whole is kind
        },
        spelled=_spelled(kind, made.values()),
        computed=tuple(name for name in made_of_others if name in stored),
    )


def _spelled(kind: EntityType, entries: Iterable[Mapping[str, str] | None]) -> dict[str, str]:
    """How the fields that are in keys of indexes or in claims are spelled there."""
    attributes = {name for entry in entries if entry for text in entry.values() for name in _NAME.findall(text)}
    attributes |= {kind.attributes[name] for name in (*kind.indexed, *kind.unique)}
    types = {stored: plain_type(kind.fields[name]) for name, stored in kind.attributes.items() if stored in attributes}
    return {stored: _spelling(type) for stored, type in types.items() if type is not None}


def _spelling(type: type[Any]) -> str:
    if issubclass(type, Enum) and (members := list(type)):
        type = members[0].value.__class__
    return _SPELLED.get(type, "text")


_SPELLED: dict[type, str] = {
    **dict.fromkeys((bool, int, float, Decimal), "number"),
    dt.datetime: "datetime",
    dt.date: "date",
    bytes: "bytes",
    tuple: "path",
}


def _entry(keys: AdjacencyKeys, kept: NodeKeys | EdgeKeys, attributes: Iterable[str]) -> dict[str, str] | None:
    """The templates of the keys of an index that are not keys of the table; None if the class is not in the index."""
    entry: dict[str, str] = {}
    fields = {*kept.kind.attributes.values()}
    for attribute in attributes:
        template = keys.template(kept, attribute)
        if attribute in keys.table.names:
            continue
        if template is not None:
            entry[attribute] = _text(keys, kept, attribute, template)
        elif attribute in fields:
            entry[attribute] = f"{{{attribute}}}"
        else:
            return None
    return entry


_NAME = re.compile(r"\{([\w.]+)")


def _text(keys: AdjacencyKeys, kept: NodeKeys | EdgeKeys, attribute: str, template: object) -> str:
    """A template as text that says what is stored, whatever fields are called.

    Parts of the table's keys are named by their places in them, and other fields by their attributes. It has no prefix
    of a tenant, because forms are the same for all tenants.
    """
    parts = dict.fromkeys(part.name for each in (kept.partition, kept.sort) for part in each.parts)
    names = {**kept.kind.attributes, **{name: str(place) for place, name in enumerate(parts)}}
    text = str(template).removeprefix(keys.tenant_part(attribute))
    return _NAME.sub(lambda found: "{" + names.get(found[1], found[1]), text)


def with_due(form: ItemForm, due: Iterable[FormPart]) -> ItemForm:
    return replace(form, due=frozenset(due))
