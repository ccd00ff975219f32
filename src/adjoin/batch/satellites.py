"""The audit of satellites: index copies, and claims of unique fields.

The layout says which satellites an entity should have, one entity at a time. So the engine groups the items by
the partition of the entity that they belong to, and this module compares one partition at a time. Of classes without
satellites, only suspicious items are looked at: those with an attribute of another type than its field, or without
an attribute whose field has no default, is computed or is an index key, or whose index keys are missing or are not
those that its own keys say. If fields are part of an index key, all items of the class are looked at, because engines
do not spell fields. Decoding the item then shows whether it is readable, and what its index keys should be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import cached_property, reduce
from itertools import groupby
from operator import or_
from typing import Any, TypeAlias

import ibis
import ibis.expr.types as ir
from orjson import loads

from adjoin.batch.engines import Engine, Source, Want
from adjoin.batch.keys import derived, matches, partition_in
from adjoin.batch.tables import KeyColumns
from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, tag_of
from adjoin.errors import InvalidItem, InvalidKey, InvalidValue
from adjoin.field_types import may_be_none
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING, OWNER, Satellite
from adjoin.plans.migrating.completing import entry_actions, written_by
from adjoin.plans.migrating.strays import owner_of
from adjoin.reserved import OWN
from adjoin.rules import Rules
from adjoin.values import Item

StoredKey: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Misfit:
    """A satellite that is missing, stray or different, or an entity that cannot be read."""

    kind: str
    name: str
    shown: dict[str, Any]
    owner: Item
    """The key of the entity to which it belongs."""
    repairable: EntityType | None = None
    stray: Item | None = None
    """The key of a satellite that should not exist."""
    is_own: bool = False
    """Whether the entity's own item lacks the entry."""


@dataclass(slots=True)
class _Partition:
    """The entities of one partition, and their satellites by key."""

    entities: list[tuple[EntityType, Item]] = field(default_factory=list)
    copies: dict[StoredKey, Item] = field(default_factory=dict)
    claims: dict[StoredKey, Item] = field(default_factory=dict)


def misfits(layout: BoundLayout, rules: Rules, source: Source, engine: Engine) -> Iterator[Misfit]:
    return _Satellites(layout, rules).misfits(source, engine)


class _Satellites:
    def __init__(self, layout: BoundLayout, rules: Rules) -> None:
        self._layout, self._rules = layout, rules
        self._keys = KeyColumns(layout)

    def misfits(self, source: Source, engine: Engine) -> Iterator[Misfit]:
        layout, index = self._layout, self._layout.overloaded
        wants: list[Want] = [(OWNER, "S"), (), *self._keys.wants]
        if index is not None:
            wants.append((index.partition_key, "S"))
        looked_at = {name for kind in self._plain for name, _ in self._looked_at(kind)}
        looked_at |= {name for kind in self._plain for name in self._younger(kind)}
        attributes = sorted(looked_at)
        entries = sorted(set[str]().union(*map(layout.entry_attributes, self._plain)))
        places = {name: f"w{len(wants) + at}" for at, name in enumerate(attributes)}
        keyed = {name: f"w{len(wants) + len(attributes) + at}" for at, name in enumerate(entries)}
        named: list[Want] = [*((name,) for name in attributes), *((name, "S") for name in entries)]
        rows = engine.rows(source, [*wants, *named])
        owner = rows.w0
        pk, sk = self._keys.of({want: rows[f"w{at}"] for at, want in enumerate(wants)})
        templates_of = [self._layout.key_templates(kind) for kind in self._layout.schema.types]
        nodes = [each.partition for each in templates_of if each.has_own_partition and not each.is_guarded]
        # A node with the id "=" has a key that ends like the key of an index copy.
        is_node = reduce(or_, (matches(each, pk).fill_null(False) for each in nodes), ibis.literal(False))
        is_beside = pk.endswith(OWN) & ~is_node
        has_entry = ibis.literal(False) if index is None else rows[f"w{len(wants) - 1}"].notnull()
        is_copy = is_beside & has_entry
        wanted = owner.notnull() | is_copy
        for kind, templates in [
            (whole, layout.key_templates(each))
            for whole in layout.schema.types
            for each in (whole.variants if isinstance(whole, EdgeType) else (whole,))
        ]:
            is_one = matches(templates.partition, pk) & matches(templates.sort, sk)
            if kind in self._plain:
                doubts = [_doubt(kind, name, rows[places[stored]]) for stored, name in self._looked_at(kind)]
                doubts += [rows[places[stored]].isnull() for stored in self._younger(kind)]
                own = [(templates.partition, pk), (templates.sort, sk)]
                for name in self._layout.entry_attributes(kind):
                    template = self._layout.entry_templates(kind).get(name)
                    expected = None if template is None else derived(template, own)
                    stored = rows[keyed[name]]
                    doubts.append(ibis.literal(True) if expected is None else (stored != expected).fill_null(True))
                is_one &= reduce(or_, doubts, ibis.literal(False))
            wanted |= is_one.fill_null(False)
        # The owner of a claim is a node key; what lies together is found by the partition key.
        shared = [partition_in(self._layout, kind, owner) for kind in self._layout.schema.nodes.values() if kind.unique]
        of_claim = ibis.coalesce(*(each for each in shared if each is not None), owner)
        edges = [kind for kind in self._layout.schema.edges.values() if kind.claimed]
        if edges:
            # The owner of the claim to a node is an edge: the length of its partition key, and both its keys.
            starts = [self._layout.claim_start(kind) for kind in edges]
            is_of_edge = reduce(or_, (pk.startswith(each) for each in starts), ibis.literal(False))
            length = owner.re_extract(r"^([0-9]{1,4}):", 1).nullif("").cast("int64")
            of_edge = owner.substr(length.cast("string").length() + 1, length)
            of_claim = ibis.cases((is_of_edge, ibis.coalesce(of_edge, owner)), else_=of_claim)
        home = ibis.cases((owner.notnull(), of_claim), (is_beside, pk.substr(0, pk.length() - len(OWN))), else_=pk)
        kept = engine.stage(rows.filter(wanted).select(home=home, pk=pk, sk=sk, json=rows.w1))
        ordered = engine.fetch(kept, ("home", "pk", "sk"))
        for _, group in groupby(ordered, key=lambda row: row["home"]):
            yield from self._compared(self._sorted_out([loads(row["json"]) for row in group]))

    @cached_property
    def _plain(self) -> list[EntityType]:
        """The classes without satellites."""
        return [kind for kind in self._layout.schema.types if not self._layout.has_satellites(kind)]

    def _looked_at(self, kind: EntityType) -> list[tuple[str, str]]:
        """The attributes that show whether an item may not fit its class, each with its field.

        Managed fields are left out: they are audited and repaired by their values.
        """
        stored = self._layout.key_templates(kind).stored - set(self._rules.maintained(kind))
        return [
            (attribute, name)
            for name, attribute in kind.attributes.items()
            if name in stored and (tag_of(kind, name) is not None or kind.fields[name].is_required())
        ]

    def _younger(self, kind: EntityType) -> list[str]:
        """The attributes that an item has to have, although its class can be read without them.

        These are computed fields, and fields with a default that are keys of an index as they are. An item may be
        older than they are.
        """
        keys, stored = self._layout.plain_index_keys(kind), self._layout.key_templates(kind).stored
        managed, fields = self._rules.maintained(kind), kind.fields
        return [
            attribute
            for name, attribute in kind.attributes.items()
            if name in stored
            and name not in managed
            and (name in kind.computed or (attribute in keys and fields[name].default is not None))
        ]

    def _sorted_out(self, items: list[Item]) -> _Partition:
        found = _Partition()
        for item in items:
            place = self._place(item)
            if OWNER in item:
                if self._is_bookkeeping(item):
                    found.claims[place] = item
            elif place[0].endswith(OWN) and self._layout.is_bookkeeping(item):
                found.copies[place] = item
            elif not self._layout.is_bookkeeping(item) and (kind := self._layout.kind_of(item)) is not None:
                found.entities.append((kind, item))
        return found

    def _is_bookkeeping(self, item: Item) -> bool:
        """Whether a claim belongs to this graph, and not to that of another tenant."""
        return self._layout.claimed_by(item) is not None and self._layout.is_bookkeeping(item)

    def _place(self, item: Item) -> StoredKey:
        return self._layout.key_texts(item)

    def _compared(self, there: _Partition) -> Iterator[Misfit]:
        left = there.copies | there.claims
        for kind, item in there.entities:
            try:
                expected = self._expected(kind, item)
                entry = self._entry_faults(kind, item)
            except (InvalidItem, InvalidKey, InvalidValue) as error:
                yield Misfit(
                    "unreadable", kind.label, {"item": self._place(item), "why": str(error)}, self._layout.key_of(item)
                )
                continue
            if entry:
                shown = {"item": self._place(item), "entry": entry, "fault": "missing or different"}
                yield Misfit("index entry", kind.label, shown, self._layout.key_of(item), kind, is_own=True)
            for satellite in expected:
                assert satellite.item is not None
                found = left.pop(self._place(satellite.key), None)
                if found is None or not self._agree(kind, satellite, item, found):
                    sort = "index entry" if satellite.owner is None else "claim"
                    shown = {"item": self._place(item), "entry": self._place(satellite.key)}
                    fault = "missing" if found is None else "different"
                    yield Misfit(sort, kind.label, {**shown, "fault": fault}, self._layout.key_of(item), kind)
        for place, item in left.items():
            yield from self._stray(place, item)

    def _entry_faults(self, kind: EntityType, item: Item) -> list[str]:
        """The index keys of an item that are not what its fields say."""
        if DELETING in item:
            return []
        entity = self._layout.decode(kind, item)
        return [] if entity is None else written_by(entry_actions(self._layout, kind, item, entity))

    def _expected(self, kind: EntityType, item: Item) -> list[Satellite]:
        entity = self._layout.decode(kind, item)
        if entity is None:
            return []
        items = [item]
        if isinstance(kind, EdgeType):
            items += [item | key for key in self._layout.twin_keys(kind, item)]
        satellites = self._layout.satellites(kind, items, entity.__dict__)
        home = self._place(item)[0]
        # The index copies of a symmetric edge are beside only one of its two items, and its claims name only that one.
        return [
            each
            for each in satellites
            if each.item is not None
            and (self._is_owner(kind, each.owner, item) if each.owner else self._place(each.key)[0] == home + OWN)
        ]

    def _is_owner(self, kind: EntityType, owner: str, item: Item) -> bool:
        return not isinstance(kind, EdgeType) or self._layout.edge_owning(owner) == self._layout.key_of(item)

    def _agree(self, kind: EntityType, satellite: Satellite, item: Item, found: Item) -> bool:
        wanted = satellite.item
        assert wanted is not None
        if satellite.owner is not None:
            return found[OWNER] == wanted[OWNER]
        for name, stored in kind.attributes.items():
            value = found.get(stored)
            if name in self._rules.maintained(kind) and stored not in item:
                # The aggregate was not counted yet: the entity has no value, and its index copy may have the default.
                if value not in (None, wanted.get(stored)):
                    return False
            elif value != (item if name in self._rules.maintained(kind) else wanted).get(stored):
                return False
        index = self._layout.overloaded
        assert index is not None
        # The shard may differ: an entry stays in the shard to which it was written.
        shards = [each.get(index.partition_key, {}).get("S", "") for each in (found, wanted)]
        return index.is_same_scope(kind, *shards) and found.get(index.sort_key) == wanted.get(index.sort_key)

    def _stray(self, place: StoredKey, item: Item) -> Iterator[Misfit]:
        if (found := owner_of(self._layout, item)) is not None:
            kind, owner = found
            what = "claim" if OWNER in item else "index entry"
            shown = {"entry": place, "fault": "stray"}
            yield Misfit(what, kind.label, shown, owner, kind, self._layout.key_of(item))


def _doubt(kind: EntityType, name: str, attribute: ir.StringValue) -> ir.BooleanValue:
    """Whether an attribute, given as JSON, may not fit its field."""
    info, tag = kind.fields[name], tag_of(kind, name)
    doubt = attribute.isnull() if info.is_required() else ibis.literal(False)
    if tag is not None:
        tags = f"{tag}|NULL" if may_be_none(info) else tag
        doubt |= ~attribute.re_search(rf'\A\s*\{{\s*"({tags})"').fill_null(True)
    return doubt
