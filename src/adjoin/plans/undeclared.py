"""Tables without a record of declarations: what a sample of their items lacks.

Version 0.1 of adjoin made no record, so nothing says whether a class was indexed, unique or ordered when its items were
stored. The first query that depends on it looks at some items from all over the table, and searches for items of
classes that were not among them. If one of them lacks what adjoin writes for such a class, the query is refused until a
migration has ended. So is a query of a class of which no item was found in a large table, because there may be some. If
none lacks anything, the table counts as complete.

A graph of a tenant asks for items of that tenant alone. A sample of the table might have none of them, so it only
searches, class by class. What it has seen holds for that tenant.

Only what adjoin itself writes is looked at: entries of indexed fields, claims, twins, computed fields, and orders.
Other programs may leave attributes of an index out on purpose, so a table that they filled is read as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import AccessDenied, InvalidItem, InvalidKey, InvalidValue
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.forms import FormPart
from adjoin.layouts.indexed_fields import ELEMENTS
from adjoin.layouts.interface import DELETING, OWNER
from adjoin.plans.steps.batches import get_all, place_of
from adjoin.requests import Get, PageResponse, Plan, Scan
from adjoin.values import Item

_log = logging.getLogger("adjoin")

_SEGMENTS, _EACH = 4, 100
"""How many parts of the table are looked at, and how many items of each."""
_PAGES = 16
"""How many pages of a scan, of 1 MB each, are searched for items of a class."""


def unsure_parts(layout: BoundLayout) -> dict[str, frozenset[FormPart]]:
    """What items of each class may lack in a table without a record."""
    if layout.why_no_own_items is not None:
        return {}
    found = {kind.word: frozenset(_parts(layout, kind)) for kind in layout.schema.types}
    return {word: parts for word, parts in found.items() if parts}


def _parts(layout: BoundLayout, kind: EntityType) -> Iterator[FormPart]:
    yield from (("indexed", name) for name in kind.indexed)
    yield from (("indexed", name + ELEMENTS) for name in kind.elements)
    yield from (("unique", name) for name in kind.claimed)
    yield from (("field", name) for name in kind.computed)
    if isinstance(kind, EdgeType) and kind.symmetric:
        yield "symmetric", ""
    yield from (("index", name) for name in layout.order_indexes(kind))


def look(layout: BoundLayout) -> Plan[dict[str, frozenset[FormPart]]]:
    """What stored items lack, by the word of their class."""
    unsure = unsure_parts(layout)
    try:
        items, is_all = ([], False) if layout.tenant is not None else (yield from _sample(layout))
        lacking: dict[str, set[FormPart]] = {}
        if not is_all:
            seen = {kind.word for kind, _, _ in _entities(layout, items)}
            missed = [kind for kind in layout.schema.types if kind.word in unsure and kind.word not in seen]
            # A sample of a large table may have no item of a small class, so its items are searched for.
            more, unfound = yield from _search(layout, missed)
            items += more
            # The search did not reach the end and found none, so it is unknown whether there are items of this class.
            lacking = {word: {*unsure[word]} for word in unfound}
    except AccessDenied:
        _log.warning(
            "the table %r has no record of declarations, and this program may not scan it, so nothing tells whether "
            "its items lack what is declared; run adjoin migrate with a program that may",
            layout.table,
        )
        return {}
    waiting: list[tuple[EntityType, FormPart, Item, str | None]] = []
    for kind, item, entity in _entities(layout, items):
        lacking.setdefault(kind.word, set()).update(_lacked_by(layout, kind, item, entity))
        waiting += [(kind, *each) for each in _companions(layout, kind, item, entity)]
    # What has to be there beside the items is read together, after all items: one batch instead of one read for each.
    keys = {place_of(key): Get(layout.table, key, consistent=True) for _, _, key, _ in waiting}
    there = dict(zip(keys, (yield from get_all(list(keys.values()))), strict=True))
    for kind, part, key, owner in waiting:
        found = there[place_of(key)]
        if found is None or (owner is not None and found.get(OWNER) != {"S": owner}):
            lacking[kind.word].add(part)
    return {word: frozenset(parts) for word, parts in lacking.items()}


def _sample(layout: BoundLayout) -> Plan[tuple[list[Item], bool]]:
    """Some items from all over the table, and whether these are all that it has."""
    pages: list[PageResponse] = yield tuple(
        Scan(layout.table, limit=_EACH, segment=(number, _SEGMENTS), consistent=True) for number in range(_SEGMENTS)
    )
    return [item for page in pages for item in page.items], all(page.last is None for page in pages)


def _search(layout: BoundLayout, kinds: Sequence[EntityType]) -> Plan[tuple[list[Item], set[str]]]:
    """Items of these classes, and the words of those classes of which none was found, although there may be some."""
    # In a file, items are in the order of their keys. So a scan first begins where the keys of the class do.
    starts: dict[str, Item | None] = {kind.word: _beginning(layout, kind) for kind in kinds}
    filters = {kind.word: layout.scan(kind).filter for kind in kinds}
    again = {word for word, start in starts.items() if start is not None}
    found: list[Item] = []
    for _ in range(_PAGES):
        if not starts:
            break
        scans = (Scan(layout.table, filter=filters[word], start=at, consistent=True) for word, at in starts.items())
        pages: list[PageResponse] = yield tuple(scans)
        later: dict[str, Item | None] = {}
        for word, page in zip(starts, pages, strict=True):
            if any(kind.word == word for kind, _, _ in _entities(layout, page.items)):
                found += page.items[:_EACH]
            elif page.last is not None:
                later[word] = page.last
            # The scan began at the keys of the class and found none up to the end; now it begins at the beginning.
            elif word in again:
                again.discard(word)
                later[word] = None
        starts = later
    return found, {*starts}


def _beginning(layout: BoundLayout, kind: EntityType) -> Item | None:
    """A key before those of a class; None if they can begin with anything."""
    lead = layout.key_templates(kind).partition.lead
    partition, sort = (key.name for key in layout.definition.keys)
    return {partition: {"S": lead}, sort: {"S": " "}} if lead else None


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
    missing = [name for name in kind.computed if kind.attributes[name] not in item]
    yield from (("field", name) for name in missing if getattr(entity, name) is not None)
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
    """The index copies, claims and twins that there should be, each with its owner if it is a claim."""
    if isinstance(kind, EdgeType):
        for key in layout.twin_keys(kind, item):
            yield ("symmetric", ""), key, None
        for claim in layout.end_claims(kind, item):
            yield ("unique", kind.claimed[0]), claim.key, claim.owner
    if not layout.has_satellites(kind):
        return
    if not isinstance(kind, EdgeType) or not kind.symmetric:
        keys = layout.copy_keys(kind, layout.key_of(item))
        for name, key in zip(kind.indexed[1:], keys, strict=True):
            if entity.__dict__[name] is not None:
                yield ("indexed", name), key, None
    for name in kind.elements:
        field = {kind.attributes[name]: item[kind.attributes[name]]} if kind.attributes[name] in item else {}
        for key in layout.element_keys(kind, layout.key_of(item) | field):
            yield ("indexed", name + ELEMENTS), key, None
    if isinstance(kind, NodeType):
        owner = layout.text_of(kind, item)
        for name in kind.unique:
            if entity.__dict__[name] is not None:
                yield ("unique", name), layout.claim_key(kind, name, entity.__dict__[name]), owner
