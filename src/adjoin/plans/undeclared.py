"""Tables without a record of declarations: what a sample of their items lacks.

Version 0.1 of adjoin made no record, so nothing says whether a class was indexed, unique or ordered when its items were
stored. The first query that depends on it looks at some items from all over the table. If one of them lacks what adjoin
writes for such a class, the query is refused until a migration has ended. If none does, the table counts as complete.

Only what adjoin itself writes is looked at: entries of indexed fields, claims, and orders. Other programs may leave
attributes of an index out on purpose, so a table that they filled is read as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import AccessDenied, InvalidItem, InvalidKey, InvalidValue
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.forms import FormPart
from adjoin.layouts.interface import DELETING, OWNER
from adjoin.plans.steps.batches import get_all, place_of
from adjoin.requests import Get, PageResponse, Plan, Scan
from adjoin.values import Item

_SEGMENTS, _EACH = 4, 100
"""How many parts of the table are looked at, and how many items of each."""


def unsure_parts(layout: BoundLayout) -> dict[str, frozenset[FormPart]]:
    """What items of each class may lack in a table without a record."""
    if layout.why_no_own_items is not None or layout.tenant is not None:
        # A graph of a tenant may not look at items of others.
        return {}
    found = {kind.word: frozenset(_parts(layout, kind)) for kind in layout.schema.types}
    return {word: parts for word, parts in found.items() if parts}


def _parts(layout: BoundLayout, kind: EntityType) -> Iterator[FormPart]:
    yield from (("indexed", name) for name in kind.indexed)
    yield from (("unique", name) for name in kind.unique)
    yield from (("index", name) for name in layout.order_indexes(kind))


def look(layout: BoundLayout) -> Plan[dict[str, frozenset[FormPart]]]:
    """What items of a sample lack, by the word of their class."""
    segments = tuple(
        Scan(layout.table, limit=_EACH, segment=(number, _SEGMENTS), consistent=True) for number in range(_SEGMENTS)
    )
    try:
        pages: list[PageResponse] = yield segments
    except AccessDenied:
        return {}
    lacking: dict[str, set[FormPart]] = {}
    waiting: list[tuple[EntityType, FormPart, Item, str | None]] = []
    for kind, item, entity in _entities(layout, (item for page in pages for item in page.items)):
        lacking.setdefault(kind.word, set()).update(_lacked_by(layout, kind, item, entity))
        waiting += [(kind, *each) for each in _companions(layout, kind, item, entity)]
    keys = {place_of(key): Get(layout.table, key, consistent=True) for _, _, key, _ in waiting}
    there = dict(zip(keys, (yield from get_all(list(keys.values()))), strict=True))
    for kind, part, key, owner in waiting:
        found = there[place_of(key)]
        if found is None or (owner is not None and found.get(OWNER) != {"S": owner}):
            lacking[kind.word].add(part)
    return {word: frozenset(parts) for word, parts in lacking.items() if parts}


def _entities(layout: BoundLayout, items: Iterable[Item]) -> Iterator[tuple[EntityType, Item, Any]]:
    for item in items:
        kind = None if layout.is_bookkeeping(item) or DELETING in item else layout.kind_of(item)
        if kind is None:
            continue
        try:
            entity = layout.decode(kind, item)
        except InvalidItem:
            continue
        if entity is not None:
            member = next((each for each in layout.schema.types if each.model is type(entity)), kind)
            yield member, item, entity


def _lacked_by(layout: BoundLayout, kind: EntityType, item: Item, entity: Any) -> Iterator[FormPart]:
    """The parts that the item itself lacks."""
    orders = layout.order_indexes(kind)
    index = layout.overloaded
    if not orders and (index is None or not kind.indexed):
        return
    try:
        fresh = next(each for each in layout.items(entity) if layout.key_of(each) == layout.key_of(item))
    except (InvalidKey, InvalidValue, StopIteration):
        return
    if index is not None and kind.indexed and (entry := fresh.get(index.partition_key)) is not None:
        stored = item.get(index.partition_key)
        # The entry may be that of another field, which was the first one before.
        if stored is None or not layout.is_same_entry(kind, index.partition_key, stored, entry):
            yield "indexed", kind.indexed[0]
    for name in orders:
        if any(fresh.get(each) != item.get(each) for each in layout.start_names(name)):
            yield "index", name


def _companions(
    layout: BoundLayout, kind: EntityType, item: Item, entity: Any
) -> Iterator[tuple[FormPart, Item, str | None]]:
    """The index copies and claims that there should be, each with its owner if it is a claim."""
    if not layout.has_satellites(kind):
        return
    if not isinstance(kind, EdgeType) or not kind.symmetric:
        keys = layout.copy_keys(kind, layout.key_of(item))
        for name, key in zip(kind.indexed[1:], keys, strict=True):
            if entity.__dict__[name] is not None:
                yield ("indexed", name), key, None
    if isinstance(kind, NodeType):
        owner = layout.text_of(kind, item)
        for name in kind.unique:
            if entity.__dict__[name] is not None:
                yield ("unique", name), layout.claim_key(kind, name, entity.__dict__[name]), owner
