"""What stands beside entities, audited: copies for indexes, and claims to unique values.

What should be there is for the layout to say, entity by entity. So everything that belongs together is
brought together by the engine, sorted by the partition that it belongs to, and compared here, a partition at
a time. Of classes that have neither, only items come in that look as if they did not fit: where an attribute is
of another type than its field is stored in, or one is missing that has no default. Whether such an item can be
read is found by reading it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import groupby
from operator import or_
from typing import Any, TypeAlias

import ibis
import ibis.expr.types as ir
from orjson import loads

from adjoin.batch.columns import may_be_none
from adjoin.batch.engines import Engine, Source, Want
from adjoin.batch.keys import matches
from adjoin.errors import InvalidItem, InvalidKey, InvalidValue
from adjoin.layouts.interface import OWNER, BoundLayout, Satellite
from adjoin.rules import Rules
from adjoin.schema import EdgeType, EntityType, NodeType, tag_of
from adjoin.values import Item

COPY_END = "#="
Place: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Misfit:
    """A copy or a claim that is not what it should be, or an entity that cannot be read."""

    kind: str
    name: str
    shown: dict[str, Any]
    owner: Item
    """The key of the entity that it belongs to."""
    repairable: EntityType | None = None
    stray: Item | None = None
    """The key of a satellite that should not be there."""


@dataclass(slots=True)
class _Partition:
    """What belongs to one partition: entities, and what stands beside them, by their places."""

    entities: list[tuple[EntityType, Item]] = field(default_factory=list)
    copies: dict[Place, Item] = field(default_factory=dict)
    claims: dict[Place, Item] = field(default_factory=dict)


def misfits(layout: BoundLayout, rules: Rules, source: Source, engine: Engine) -> Iterator[Misfit]:
    return _Satellites(layout, rules).misfits(source, engine)


class _Satellites:
    def __init__(self, layout: BoundLayout, rules: Rules) -> None:
        self._layout, self._rules = layout, rules
        definition = layout.definition
        assert definition.sort is not None
        self._pk, self._sk = definition.partition.name, definition.sort.name

    def misfits(self, source: Source, engine: Engine) -> Iterator[Misfit]:
        index = self._layout.overloaded
        wants: list[Want] = [(self._pk, "S"), (self._sk, "S"), (OWNER, "S"), ()]
        if index is not None:
            wants.append((index.partition_key, "S"))
        attributes = sorted({name for kind in self._plain for name, _ in self._looked_at(kind)})
        places = {name: f"w{len(wants) + at}" for at, name in enumerate(attributes)}
        rows = engine.rows(source, [*wants, *((name,) for name in attributes)])
        pk, sk, owner = rows.w0, rows.w1, rows.w2
        nodes = [self._layout.key_templates(kind).partition for kind in self._layout.schema.nodes.values()]
        # The node "=" has a key that ends like a copy's.
        is_beside = pk.endswith(COPY_END) & ~reduce(or_, (matches(each, pk).fill_null(False) for each in nodes))
        is_copy = is_beside & (rows.w4.notnull() if index is not None else ibis.literal(False))
        wanted = owner.notnull() | is_copy
        for kind in self._layout.schema.types:
            templates = self._layout.key_templates(kind)
            is_one = matches(templates.partition, pk) & matches(templates.sort, sk)
            if kind in self._plain:
                doubts = (_doubt(kind, name, rows[places[stored]]) for stored, name in self._looked_at(kind))
                is_one &= reduce(or_, doubts, ibis.literal(False))
            wanted |= is_one.fill_null(False)
        home = ibis.cases((owner.notnull(), owner), (is_beside, pk.substr(0, pk.length() - len(COPY_END))), else_=pk)
        kept = engine.stage(rows.filter(wanted).select(home=home, pk=pk, sk=sk, json=rows.w3))
        ordered = engine.fetch(kept, ("home", "pk", "sk"))
        for _, group in groupby(ordered, key=lambda row: row["home"]):
            yield from self._compared(self._sorted_out([loads(row["json"]) for row in group]))

    @cached_property
    def _plain(self) -> list[EntityType]:
        """The classes that nothing stands beside."""
        return [kind for kind in self._layout.schema.types if not self._layout.has_satellites(kind)]

    def _looked_at(self, kind: EntityType) -> list[tuple[str, str]]:
        """The attributes that tell whether an item may not fit, each with its field.

        What is filled in by itself is audited, and repaired, by its value.
        """
        stored = self._layout.key_templates(kind).stored - set(self._rules.maintained(kind))
        return [
            (attribute, name)
            for name, attribute in kind.attributes.items()
            if name in stored and (tag_of(kind, name) is not None or kind.fields[name].is_required())
        ]

    def _sorted_out(self, items: list[Item]) -> _Partition:
        found = _Partition()
        for item in items:
            place = self._place(item)
            if OWNER in item:
                if self._is_bookkeeping(item):
                    found.claims[place] = item
            elif place[0].endswith(COPY_END) and self._layout.is_bookkeeping(item):
                found.copies[place] = item
            elif not self._layout.is_bookkeeping(item) and (kind := self._layout.kind_of(item)) is not None:
                found.entities.append((kind, item))
        return found

    def _is_bookkeeping(self, item: Item) -> bool:
        """Whether a claim is of this graph, and not of another tenant's."""
        return self._layout.claimed_by(item) is not None and self._layout.is_bookkeeping(item)

    def _place(self, item: Item) -> Place:
        return item[self._pk]["S"], item[self._sk]["S"]

    def _compared(self, there: _Partition) -> Iterator[Misfit]:
        left = there.copies | there.claims
        for kind, item in there.entities:
            try:
                expected = self._expected(kind, item)
            except (InvalidItem, InvalidKey, InvalidValue) as error:
                yield Misfit("unreadable", kind.label, {"item": self._place(item), "why": str(error)}, self._key(item))
                continue
            for satellite in expected:
                assert satellite.item is not None
                found = left.pop(self._place(satellite.key), None)
                if found is None or not self._agree(kind, satellite, item, found):
                    sort = "index entry" if satellite.owner is None else "claim"
                    shown = {"item": self._place(item), "entry": self._place(satellite.key)}
                    fault = "missing" if found is None else "different"
                    yield Misfit(sort, kind.label, {**shown, "fault": fault}, self._key(item), kind)
        for place, item in left.items():
            yield from self._stray(place, item)

    def _expected(self, kind: EntityType, item: Item) -> list[Satellite]:
        entity = self._layout.decode(kind, item)
        if entity is None:
            return []
        items = [item]
        if isinstance(kind, EdgeType):
            items += [item | key for key in self._layout.twin_keys(kind, item)]
        satellites = self._layout.satellites(kind, items, entity.__dict__)
        home = self._place(item)[0]
        # Copies of a symmetric edge stand beside one of its halves.
        return [
            each
            for each in satellites
            if each.item is not None and (each.owner is not None or self._place(each.key)[0] == home + COPY_END)
        ]

    def _agree(self, kind: EntityType, satellite: Satellite, item: Item, found: Item) -> bool:
        wanted = satellite.item
        assert wanted is not None
        if satellite.owner is not None:
            return found[OWNER] == wanted[OWNER]
        for name, stored in kind.attributes.items():
            value = found.get(stored)
            if name in self._rules.maintained(kind) and stored not in item:
                # Nothing was counted yet; a copy that was written whole has the default.
                if value not in (None, wanted.get(stored)):
                    return False
            elif value != (item if name in self._rules.maintained(kind) else wanted).get(stored):
                return False
        index = self._layout.overloaded
        assert index is not None
        # The shard may be another: entries stay in the one they were written to.
        scopes = [each.get(index.partition_key, {}).get("S", "").rpartition("#")[0] for each in (found, wanted)]
        return scopes[0] == scopes[1] and found.get(index.sort_key) == wanted.get(index.sort_key)

    def _stray(self, place: Place, item: Item) -> Iterator[Misfit]:
        key = self._key(item)
        if OWNER in item:
            kind = self._layout.claimed_by(item)
            assert kind is not None
            owner = self._claimant(kind, item[OWNER]["S"])
            yield Misfit("claim", kind.label, {"entry": place, "fault": "stray"}, owner, kind, key)
            return
        owner = self._layout.copied_key(item)
        owner_kind = self._layout.kind_of(owner)
        if owner_kind is not None:
            yield Misfit("index entry", owner_kind.label, {"entry": place, "fault": "stray"}, owner, owner_kind, key)

    def _claimant(self, kind: NodeType, text: str) -> Item:
        """The key of the node that a claim names; one that no node has, if it names none."""
        try:
            key = self._layout.node_key(kind, self._layout.id_in(kind, text))
        except (InvalidItem, InvalidKey, InvalidValue):
            key = {}
        nobody = {self._pk: {"S": text or "="}, self._sk: {"S": "="}}
        return key if key.get(self._pk) == {"S": text} else nobody

    def _key(self, item: Item) -> Item:
        return {self._pk: item[self._pk], self._sk: item[self._sk]}


def _doubt(kind: EntityType, name: str, attribute: ir.StringValue) -> ir.BooleanValue:
    """Whether an attribute, as JSON, may not fit its field."""
    info, tag = kind.fields[name], tag_of(kind, name)
    doubt = attribute.isnull() if info.is_required() else ibis.literal(False)
    if tag is not None:
        tags = f"{tag}|NULL" if may_be_none(info) else tag
        doubt |= ~attribute.re_search(rf'\A\s*\{{\s*"({tags})"').fill_null(True)
    return doubt
