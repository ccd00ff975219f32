"""Writing what was translated into the new table, and removing there what is gone from the old one.

Only the migration writes to the new table. It writes what the old table holds at that moment, so each write may be
repeated, and a later one is newer. Most items go out in batches. These do not:

- nodes with managed fields keep what maintenance has counted for them in the new table;
- claims, managed fields of classes with satellites, and aggregates that are counted in transaction need what is stored,
  so these entities are put one by one, as a program would put them.

A claim can be in the way because its owner has given the value up in the old table, and that change was not applied
yet. `in_the_way` says who has the claims that an entity needs, and the caller looks into the old table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import AlreadyExists, ConditionFailed, InvalidItem, InvalidKey, InvalidValue, TransactionCanceled
from adjoin.expressions import Compare, Set, Value, attribute
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import OWNER
from adjoin.plans.entity_write import Claims, EntityWrite, entity_put, write_entity
from adjoin.plans.in_transaction import Coming, counted_in_transaction, counting_in_transaction
from adjoin.plans.managed_fields import is_kept_by_reading, put_request
from adjoin.plans.migrating.translating import Moved
from adjoin.plans.removal import disconnect
from adjoin.plans.shards import report_heat
from adjoin.plans.steps.batches import BATCHES_A_ROUND, Place, by_size, chunks, get_all, place_of, write_all
from adjoin.requests import Delete, Get, Plan, Put, Update
from adjoin.units import MAX_BATCH_WRITE, read_units, write_units
from adjoin.values import Item, item_size

_ROUND = MAX_BATCH_WRITE * BATCHES_A_ROUND


def _is_alone(layout: BoundLayout, kind: EntityType) -> bool:
    """Whether entities of a class need what is stored, so that each is put by itself."""
    if kind.unique or kind.elements or is_kept_by_reading(layout, kind):
        return True
    return bool(counted_in_transaction(layout, kind) or counting_in_transaction(layout, kind))


def _way(layout: BoundLayout, kind: EntityType) -> str:
    if _is_alone(layout, kind):
        return "alone"
    return "update" if isinstance(kind, NodeType) and layout.rules.keeps(kind) else "batch"


def store(entities: Iterable[Moved], *, is_first: bool = False) -> Plan[list[Moved]]:
    """Puts entities; returns those whose unique values other nodes have claimed, which were not put.

    `is_first` says that nothing of them was stored before, or else that the change stream will tell what is gone.
    """
    puts: list[Put | Delete] = []
    updates: list[Update] = []
    alone: list[Moved] = []
    ways: dict[type[Any], str] = {}
    layouts: dict[str | None, BoundLayout] = {}
    for each in entities:
        layout, kind = each.layout, each.kind
        layouts[layout.tenant] = layout
        way = ways.get(kind.model) or ways.setdefault(kind.model, _way(layout, kind))
        if way == "alone":
            alone.append(each)
            continue
        if way == "update":
            made = put_request(layout, kind, each.item, None)
            assert isinstance(made, Update)
            # What was deleted and made again has other values in its immutable fields.
            updates.append(replace(made, condition=None))
        else:
            puts.append(Put(layout.table, each.item))
        for satellite in each.satellites:
            if satellite.item is not None:
                puts.append(Put(layout.table, satellite.item))
            elif not is_first:
                puts.append(Delete(layout.table, satellite.key))
    yield from write(puts)
    yield from chunks(updates, _ROUND)
    taken: list[Moved] = []
    for each in alone:
        taken += [] if (yield from _put_alone(each)) else [each]
    for layout in layouts.values():
        yield from report_heat(layout)
    return taken


def price(moved: Moved) -> tuple[float, float]:
    """About how many read and write units it costs to store an entity, with its index entries."""
    layout, size = moved.layout, item_size(moved.item)
    is_alone = _way(layout, moved.kind) == "alone"
    wcu = 0.0
    for item in (moved.item, *(each.item for each in moved.satellites if each.item is not None)):
        entries = sum(all(key.name in item for key in index.keys) for index in layout.definition.indexes)
        wcu += write_units(item_size(item), transactional=is_alone) + entries * write_units(item_size(item))
    # One that is put alone is read before, to see whether something of it is there.
    return read_units(size, consistent=True) if is_alone else 0.0, wcu


def apply(
    records: Sequence[Put | Delete], gone: Sequence[Moved], present: Sequence[Moved], *, is_first: bool = False
) -> Plan[list[Moved]]:
    """Writes deletion records first, then removes, then puts: nobody may see an edge again that a delete has hidden."""
    if records:
        yield from write(records)
    if gone:
        yield from remove(gone)
    return (yield from store(present, is_first=is_first))


def write(writes: Sequence[Put | Delete]) -> Plan[None]:
    for some in chunks(writes, _ROUND):
        yield from write_all(some, by_size)


def _put_alone(moved: Moved) -> Plan[bool]:
    """Puts one entity as a program would; returns False if another node has claimed a unique value of it."""
    layout, kind = moved.layout, moved.kind
    coming = Coming()

    def made(claims: Claims) -> Plan[EntityWrite]:
        return entity_put(layout, kind, moved.entity, None, claims, coming)

    try:
        try:
            yield from write_entity(layout, kind, made)
        except (ConditionFailed, TransactionCanceled):
            if not layout.rules.immutable(kind):
                raise
            # It was deleted and made again with another value in an immutable field.
            yield from remove([moved])
            yield from write_entity(layout, kind, made)
    except AlreadyExists:
        return False
    if moved.beside:
        actions = tuple(Set(attribute(name), Value(value)) for name, value in moved.beside.items())
        yield (Update(layout.table, moved.key, actions, layout.present),)
    return True


def remove(entities: Iterable[Moved]) -> Plan[None]:
    """Removes entities that are gone, with their satellites. A claim that another node has taken stays."""
    deletes: dict[Place, Delete] = {}
    claims: list[Delete] = []
    for each in entities:
        layout, kind = each.layout, each.kind
        if isinstance(kind, EdgeType) and counted_in_transaction(layout, kind):
            edge = each.entity
            fields = {name: edge.__dict__[name] for name in layout.key_fields(kind)}
            yield from disconnect(layout, kind, edge.source, edge.target, fields)
            continue
        for key in (each.key, *(satellite.key for satellite in each.satellites if satellite.owner is None)):
            deletes[place_of(key)] = Delete(layout.table, key)
        for satellite in each.satellites:
            if satellite.owner is not None:
                owned = Compare("=", attribute(OWNER), Value({"S": satellite.owner}))
                claims.append(Delete(layout.table, satellite.key, owned))
    yield from write(list(deletes.values()))
    for claim in claims:
        try:
            yield (claim,)
        except ConditionFailed:
            continue


# --- unique values -----------------------------------------------------------------------------


def in_the_way(moved: Moved) -> Plan[list[tuple[Item, Any]]]:
    """The claims to unique values of an entity that other nodes have: the claim, and the id of the node.

    The id is None if no node can have the key that the claim names.
    """
    layout, kind = moved.layout, moved.kind
    assert isinstance(kind, NodeType)
    claims = [each for each in moved.satellites if each.owner is not None]
    found = yield from get_all([Get(layout.table, each.key, consistent=True) for each in claims])
    others = [
        item
        for each, item in zip(claims, found, strict=True)
        if item is not None and OWNER in item and item[OWNER] != {"S": each.owner}
    ]
    identify = partial(layout.id_in, kind)
    return [(item, _id(identify, item[OWNER].get("S", ""))) for item in others]


def _id(identify: partial[Any], owner: str) -> Any:
    try:
        return identify(owner)
    except (InvalidItem, InvalidKey, InvalidValue):
        return None


def release(moved: Moved, claim: Item) -> Plan[None]:
    """Removes a claim whose owner does not have the value any more."""
    layout = moved.layout
    try:
        yield (Delete(layout.table, layout.key_of(claim), Compare("=", attribute(OWNER), Value(claim[OWNER]))),)
    except ConditionFailed:
        return


def has_claim(moved: Moved | None, claim: Item) -> bool:
    """Whether an entity has the value that a claim is for."""
    if moved is None:
        return False
    key = moved.layout.key_of(claim)
    return any(each.item is not None and each.key == key for each in moved.satellites)
