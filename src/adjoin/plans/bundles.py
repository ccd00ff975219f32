"""Entities with satellites: everything that is one entity is written in one transaction.

A copy for an index, or the claim to a unique value, must always agree with the entity's own item. So
what is there is read where it has to be known, and the transaction holds only as long as that is
unchanged: each write gives the item another revision. Whoever comes second reads again.

A claim whose owner is gone, or has another value now, is nobody's, and is taken over.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, TypeAlias

from adjoin.errors import AlreadyExists, CancellationReason, NotFound, TransactionCanceled
from adjoin.expressions import Compare, Condition, Exists, Not, Or, Value, all_of, attribute
from adjoin.fields import Change
from adjoin.layouts.interface import OWNER, REVISION, BoundLayout, Satellite
from adjoin.plans import Plan
from adjoin.plans.deletion import unchanged, visible
from adjoin.requests import Delete, Get, ItemResponse, Put, TransactWrite
from adjoin.schema import Entity, EntityType, NodeType
from adjoin.values import Item, decode, encode

ATTEMPTS = 20
"""How often others may come first before a write gives up."""

_EXACT = Context(prec=300)
_FAILED = "ConditionalCheckFailed"
Owners: TypeAlias = set[str]
"""Nodes that do not have the values any more that they claim."""


def revised(layout: BoundLayout, kind: EntityType, item: Item) -> Item:
    """An item as it is written: with another revision, if it has satellites."""
    return item | {REVISION: {"S": uuid.uuid4().hex[:16]}} if layout.has_satellites(kind) else item


def beside(layout: BoundLayout, satellites: Iterable[Satellite], gone: Owners) -> list[Put | Delete]:
    """The writes that make satellites what they should be."""
    return [
        Delete(layout.table, each.key, _claimable(each, gone))
        if each.item is None
        else Put(layout.table, each.item, _claimable(each, gone))
        for each in satellites
    ]


def _claimable(satellite: Satellite, gone: Owners) -> Condition | None:
    if satellite.owner is None:
        return None
    owners = [Compare("=", attribute(OWNER), Value({"S": owner})) for owner in (satellite.owner, *sorted(gone))]
    return Or((Not(Exists(attribute(OWNER))), *owners))


def settled(
    layout: BoundLayout,
    kind: EntityType,
    writes: Sequence[Put | Delete],
    reasons: Sequence[CancellationReason],
    gone: Owners,
) -> Plan[bool]:
    """Whether another attempt may succeed after these writes of satellites failed for these reasons.

    `AlreadyExists` if a unique value belongs to another node.
    """
    again = False
    for write, reason in zip(writes, reasons, strict=True):
        if reason.code != _FAILED or reason.item is None or OWNER not in reason.item:
            continue
        owner = reason.item[OWNER]["S"]
        assert isinstance(kind, NodeType)
        id = layout.id_in(kind, owner)
        response: ItemResponse
        (response,) = yield (Get(layout.table, layout.node_key(kind, id), consistent=True),)
        key = layout.key_of(write.item if isinstance(write, Put) else write.key)
        held = response.item and [each.key for each in layout.satellites_beside(kind, response.item)]
        if held and key in held:
            raise AlreadyExists(_taken(layout, kind, key, response.item or {}, id))
        gone.add(owner)
        again = True
    return again


def _taken(layout: BoundLayout, kind: NodeType, key: Item, item: Item, id: Any) -> str:
    for name in kind.unique:
        stored = item.get(kind.attributes[name])
        if stored is not None and layout.claim_key(kind, name, decode(stored)) == key:
            return (
                f"{kind.name}.{name} is unique, and {decode(stored)!r} belongs to {kind.name} {id!r}; "
                f"choose another value, or change that node first"
            )
    return f"a unique value of {kind.name} belongs to {kind.name} {id!r}; choose another"


def released(layout: BoundLayout, kind: EntityType, old: Item | None, new: Iterable[Satellite]) -> list[Satellite]:
    """The claims of a stored item that the new one does not make."""
    kept = [each.key for each in new]
    there = [] if old is None else layout.satellites_beside(kind, old)
    return [each for each in there if each.owner is not None and each.key not in kept]


@dataclass(frozen=True, slots=True)
class Bundle:
    """The writes that are one entity."""

    puts: list[Put]
    """Its own items."""
    others: list[Put | Delete]
    """What stands beside them."""
    read: list[Item | None]
    """What the items were when the writes were made; empty if nobody looked."""
    entity: Any
    """What the entity is afterwards."""

    @property
    def writes(self) -> tuple[Put | Delete, ...]:
        return (*self.puts, *self.others)


def put_bundle(
    layout: BoundLayout, kind: EntityType, entity: Entity, wanted: Condition | None, gone: Owners
) -> Plan[Bundle]:
    """What puts an entity. Only a unique value that it had before makes it necessary to look."""
    items = layout.items(entity)
    satellites = layout.satellites(kind, items, entity.__dict__)
    read: list[Item | None] = []
    if kind.unique:
        response: ItemResponse
        (response,) = yield (Get(layout.table, layout.key_of(items[0]), consistent=True),)
        read.append(response.item)
        satellites += released(layout, kind, response.item, satellites)
        wanted = all_of(unchanged(layout, response.item), wanted)
    puts = [Put(layout.table, revised(layout, kind, item), wanted) for item in items]
    return Bundle(puts, beside(layout, satellites, gone), read, entity)


def update_bundle(
    layout: BoundLayout,
    kind: EntityType,
    keys: Sequence[Item],
    changes: Mapping[str, Any],
    wanted: Condition | None,
    name: str,
    gone: Owners,
) -> Plan[Bundle]:
    """What changes fields of an entity; `NotFound` if it is not there."""
    responses: list[ItemResponse] = yield tuple(Get(layout.table, key, consistent=True) for key in keys)
    items = [response.item for response in responses if response.item is not None]
    if len(items) < len(keys) or not (yield from visible(layout, items)):
        raise NotFound(f"there is no {name}; put it first")
    old = layout.decode(kind, items[0])
    if old is None:
        raise NotFound(f"there is no {name}, but an item of another type under its key; correct it first")
    new = old.model_copy(update=changed_fields(kind, old.__dict__, changes))
    after = [layout.changed(kind, item, new) for item in items]
    satellites = layout.satellites(kind, after, new.__dict__)
    satellites += released(layout, kind, items[0], satellites)
    puts = [
        Put(layout.table, revised(layout, kind, now), all_of(unchanged(layout, was), wanted))
        for was, now in zip(items, after, strict=True)
    ]
    return Bundle(puts, beside(layout, satellites, gone), [*items], new)


def write_bundle(layout: BoundLayout, kind: EntityType, made: Callable[[Owners], Plan[Bundle]]) -> Plan[Any]:
    """Writes a bundle, made anew whenever somebody else came first; gives the entity that was written."""
    gone: Owners = set()
    attempt = 0
    while True:
        bundle = yield from made(gone)
        attempt += 1
        try:
            yield (TransactWrite(bundle.writes),)
            return bundle.entity
        except TransactionCanceled as canceled:
            if attempt == ATTEMPTS or not (yield from _again(layout, kind, bundle, canceled, gone)):
                raise


def _again(
    layout: BoundLayout, kind: EntityType, bundle: Bundle, canceled: TransactionCanceled, gone: Owners
) -> Plan[bool]:
    """Whether it is worth another attempt: an item changed since it was read, or a claim is free."""
    own, rest = canceled.reasons[: len(bundle.puts)], canceled.reasons[len(bundle.puts) :]
    if any(reason.code == _FAILED for reason in own):
        seen = zip(own, bundle.read, strict=False)
        return any(reason.code == _FAILED and _has_moved(was, reason.item) for reason, was in seen)
    return (yield from settled(layout, kind, bundle.others, rest, gone))


def _has_moved(was: Item | None, met: Mapping[str, Any] | None) -> bool:
    if was is None or met is None:
        return (was is None) != (met is None)
    return was.get(REVISION) != met.get(REVISION)


# --- fields ------------------------------------------------------------------------------------


def changed_fields(kind: EntityType, values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The new values of fields, those made of stored ones worked out; the version counts."""
    new = {name: kind.validated(name, _worked_out(values, change)) for name, change in changes.items()}
    if kind.version and kind.version not in changes:
        new[kind.version] = values[kind.version] + 1
    return new


def _worked_out(values: Mapping[str, Any], change: Any) -> Any:
    if not isinstance(change, Change):
        return change
    stored, operand = values[change.field], change.operand
    match change.operator:
        case "+":
            return _EXACT.add(_number(stored), _number(operand))
        case "-":
            return _EXACT.subtract(_number(stored), _number(operand))
        case "append":
            return [*(stored or ()), *operand]
        case "add":
            return {*(stored or ()), *operand}
        case "discard":
            return {*(stored or ())} - operand


def _number(value: Any) -> Decimal:
    return Decimal(encode(value)["N"]) if value is not None else Decimal(0)
