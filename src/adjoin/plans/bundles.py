"""Entities with satellites: everything that is one entity is written in one transaction.

A copy for an index, or the claim to a unique value, must always agree with the entity's own item. So
what is there is read where it has to be known, and the transaction holds only as long as that is
unchanged: each write gives the item another revision. Whoever comes second reads again.

A claim whose owner is gone, or has another value now, is nobody's, and is taken over, as long as its
owner stays what it was seen to be.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from operator import ge, gt, le, lt
from typing import Any

from adjoin.errors import (
    AlreadyExists,
    CancellationReason,
    ConditionFailed,
    InvalidItem,
    InvalidKey,
    InvalidValue,
    NotFound,
    TransactionCanceled,
    are_transient,
    shown,
)
from adjoin.expressions import Condition, Not, all_of
from adjoin.fields import Change
from adjoin.layouts.interface import DELETING, OWNER, REVISION, BoundLayout, Satellite
from adjoin.layouts.shard_book import is_rehearsed
from adjoin.model import Edge, Node, node_id
from adjoin.plans import Plan
from adjoin.plans.at_once import companions, counted_at_once, together, written_edge
from adjoin.plans.batches import Place, place_of
from adjoin.plans.conditions import check_amount
from adjoin.plans.copies import copies_on, filling, joined_checks
from adjoin.plans.deletion import visible
from adjoin.plans.guarded import carried, is_carried, put_request, unchangeable, written_items
from adjoin.plans.imagined import imagined, stored_entity
from adjoin.plans.newcomers import Coming
from adjoin.plans.revisions import claimable, unchanged
from adjoin.plans.versions import Lock, as_seen, seen_in, stale
from adjoin.requests import Check, Delete, Get, ItemResponse, Put, TransactWrite, Update
from adjoin.schema import EdgeType, Entity, EntityType, NodeType
from adjoin.units import MAX_TRANSACTION
from adjoin.values import Item, decode, encode

ATTEMPTS = 20
"""How often others may come first before a write gives up."""

_EXACT = Context(prec=300)
_FAILED = "ConditionalCheckFailed"
_COMPARED = {">": gt, ">=": ge, "<": lt, "<=": le}


@dataclass(frozen=True, slots=True)
class Claims:
    """What was learned of claims to unique values that others made."""

    stale: dict[Place, tuple[str, Check]] = field(default_factory=dict)
    """Claims of a node that does not have the value: which node, and that it is as it was when that was seen."""
    others: set[Place] = field(default_factory=set)
    """Claims that are not this entity's to remove, because another node has the value now."""


def described(entity: Entity) -> str:
    """How messages name a node or an edge."""
    if isinstance(entity, Node):
        return f"{type(entity).__name__} {shown(node_id(entity))}"
    return f"{type(entity).__name__} from {shown(entity.source)} to {shown(entity.target)}"


def revised(layout: BoundLayout, kind: EntityType, item: Item) -> Item:
    """An item as it is written: with another revision, if something else is written with it, or carried over."""
    is_revised = layout.has_satellites(kind) or is_carried(layout, kind) or bool(counted_at_once(layout, kind))
    return item | {REVISION: {"S": uuid.uuid4().hex[:16]}} if is_revised else item


def beside(layout: BoundLayout, satellites: Iterable[Satellite], claims: Claims) -> list[Put | Delete | Check]:
    """The writes that make satellites what they should be, and what must hold for taking claims over."""
    writes: list[Put | Delete | Check] = []
    checks: dict[Place, Check] = {}
    for each in satellites:
        place = place_of(each.key)
        stale = (claims.stale[place][0],) if place in claims.stale else ()
        condition = claimable(each, *stale)
        if each.item is not None:
            writes.append(Put(layout.table, each.item, condition))
        elif place not in claims.others:
            writes.append(Delete(layout.table, each.key, condition))
        if place in claims.stale:
            check = claims.stale[place][1]
            checks[place_of(check.key)] = check
    return [*writes, *checks.values()]


def settled(
    layout: BoundLayout,
    kind: EntityType,
    writes: Sequence[Put | Delete | Check],
    reasons: Sequence[CancellationReason],
    claims: Claims,
) -> Plan[bool]:
    """Whether another attempt may succeed after these writes of satellites failed for these reasons.

    `AlreadyExists` if a unique value belongs to another node.
    """
    again = False
    for write, reason in zip(writes, reasons, strict=True):
        if reason.code != _FAILED:
            continue
        if isinstance(write, Check):
            # The node whose claim was to be taken over has changed; whether it is stale must be seen anew.
            for place in [place for place, (_, check) in claims.stale.items() if check.key == write.key]:
                del claims.stale[place]
            again = True
        elif reason.item is not None and OWNER in reason.item:
            # Others may write anything there; what is no text names no node.
            yield from _look_at(layout, kind, write, reason.item[OWNER].get("S", ""), claims)
            again = True
    return again


def _look_at(layout: BoundLayout, kind: EntityType, write: Put | Delete, owner: str, claims: Claims) -> Plan[None]:
    """Learns whether a claim that is in the way is its owner's."""
    assert isinstance(kind, NodeType)
    key = layout.key_of(write.item if isinstance(write, Put) else write.key)
    try:
        id = layout.id_in(kind, owner)
        node = layout.node_key(kind, id)
    except (InvalidItem, InvalidKey, InvalidValue):
        # Somebody else wrote it, and no node can have that key.
        claims.stale[place_of(key)] = owner, Check(layout.table, layout.ledgers.marker_key(owner), Not(layout.present))
        return
    response: ItemResponse
    (response,) = yield (Get(layout.table, node, consistent=True),)
    held = [] if response.item is None else [each.key for each in layout.satellites_beside(kind, response.item)]
    if key not in held:
        claims.stale[place_of(key)] = owner, Check(layout.table, node, unchanged(layout, response.item))
    elif isinstance(write, Delete):
        claims.others.add(place_of(key))
    else:
        raise AlreadyExists(_taken(layout, kind, key, response.item or {}, id))


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

    own: Sequence[Put | Update]
    """Those of its own items."""
    others: list[Put | Delete | Check]
    """Those of what stands beside them."""
    read: Sequence[Item | None]
    """What the items were when the writes were made; empty if nobody looked."""
    entity: Any = None
    """What the entity is afterwards."""
    watched: Collection[str] = (REVISION,)
    """The attributes by which is told whether an item is still what it was."""
    more: list[Put | Update | Delete | Check] = field(default_factory=list)
    """What else is written with it, and may have changed since it was read."""

    @property
    def writes(self) -> tuple[Put | Update | Delete | Check, ...]:
        return (*self.own, *self.others, *self.more)


def put_bundle(
    layout: BoundLayout,
    kind: EntityType,
    entity: Entity,
    wanted: Condition | None,
    claims: Claims,
    coming: Coming,
    lock: Lock | None = None,
    *,
    accompany: bool = True,
) -> Plan[Bundle]:
    """What puts an entity. Only a unique value, what is counted on it, or its version makes it necessary to look."""
    items = written_items(layout, kind, entity)
    read: list[Item | None] = []
    old: Item | None = None
    watched = [REVISION]
    if kind.unique or is_carried(layout, kind) or lock is not None:
        response: ItemResponse
        (response,) = yield (Get(layout.table, layout.key_of(items[0]), consistent=True),)
        old = response.item
        read.append(old)
        wanted = all_of(unchanged(layout, old), wanted, unchangeable(layout, kind, items[0]))
        if is_carried(layout, kind):
            items = tuple(item | carried(layout, kind, old) for item in items)
    if lock is not None:
        is_hidden = old is not None and DELETING in old and not (yield from visible(layout, [old]))
        seen = seen_in(kind, old, is_hidden=is_hidden)
        if not lock.allows(seen):
            raise stale(lock, described(entity), old, seen)
        version = lock.choose(seen)
        items = tuple(item | version for item in items)
        wanted = all_of(wanted, as_seen(layout, kind, seen))
        watched += (*version, DELETING)
    more: list[Put | Update | Delete | Check] = []
    if accompany and isinstance(kind, NodeType) and old is None:
        room = room_beside(layout, kind, items, entity)
        arrived = yield from coming.look(layout, kind, layout.key_of(items[0]), room)
        items, wanted, more = (arrived.on(layout, items[0]),), all_of(wanted, arrived.condition), arrived.writes
        read = read or arrived.read
    elif accompany:
        items, more = yield from companioned(layout, kind, entity, items)
    satellites = layout.satellites(kind, items, entity.__dict__)
    satellites += released(layout, kind, old, satellites)
    puts = [_own_write(layout, kind, item, wanted) for item in items]
    return Bundle(puts, beside(layout, satellites, claims), read, entity, watched=watched, more=more)


def _own_write(layout: BoundLayout, kind: EntityType, item: Item, wanted: Condition | None) -> Put | Update:
    """What writes one item of an entity: whole, unless something on it is kept that nobody has read."""
    if layout.has_satellites(kind) or counted_at_once(layout, kind) or is_carried(layout, kind):
        return Put(layout.table, revised(layout, kind, item), wanted)
    return put_request(layout, kind, item, wanted)


def room_beside(layout: BoundLayout, kind: NodeType, items: Sequence[Item], entity: Entity) -> int:
    """How many more writes a transaction takes that makes a node, with its claims, some of which may be released."""
    return MAX_TRANSACTION - 2 - 2 * len(layout.satellites(kind, items, entity.__dict__))


def companioned(
    layout: BoundLayout, kind: EntityType, entity: Entity, items: tuple[Item, ...], checks: Sequence[Check] = ()
) -> Plan[tuple[tuple[Item, ...], list[Put | Update | Delete | Check]]]:
    """The items of an edge with what they copy filled in, and what else goes into their transaction with checks."""
    if not isinstance(kind, EdgeType) or not isinstance(entity, Edge):
        return items, list(checks)
    if copies_on(layout, kind):
        filled = yield from filling(layout, kind, entity)
        items = tuple(item | filled.values for item in items)
        refuse_copies(layout, kind, items[0])
        checks = joined_checks(checks, filled.checks)
    writes: dict[Place, Put | Update | Delete | Check] = {place_of(check.key): check for check in checks}
    if counted_at_once(layout, kind):
        made = yield from companions(layout, written_edge(layout, kind, entity, items))
        for place, write in made.writes.items():
            writes[place] = together(layout, writes[place], write) if place in writes else write
    return items, list(writes.values())


def update_bundle(
    layout: BoundLayout,
    kind: EntityType,
    keys: Sequence[Item],
    changes: Mapping[str, Any],
    wanted: Condition | None,
    name: str,
    claims: Claims,
    *,
    accompany: bool = True,
) -> Plan[Bundle]:
    """What changes fields of an entity; `NotFound` if it is not there."""
    responses: list[ItemResponse] = yield tuple(Get(layout.table, key, consistent=True) for key in keys)
    items = [response.item for response in responses if response.item is not None] or imagined(layout, kind, keys)
    if len(items) < len(keys) or not (yield from visible(layout, items)):
        raise NotFound(f"there is no {name}; put it first")
    old = stored_entity(layout, kind, items[0])
    if old is None:
        raise NotFound(of_another_type(name))
    new = old.model_copy(update=changed_fields(kind, old.__dict__, changes, items[0]))
    after = [layout.changed(kind, item, new) for item in items]
    refuse_misfit(layout, kind, after[0], name)
    satellites = layout.satellites(kind, after, new.__dict__)
    satellites += released(layout, kind, items[0], satellites)
    puts = [
        Put(layout.table, revised(layout, kind, now), all_of(unchanged(layout, was), wanted))
        for was, now in zip(items, after, strict=True)
    ]
    more: list[Put | Update | Delete | Check] = []
    if accompany and isinstance(kind, EdgeType) and isinstance(new, Edge) and counted_at_once(layout, kind):
        made = yield from companions(layout, written_edge(layout, kind, new, after))
        more = list(made.writes.values())
    return Bundle(puts, beside(layout, satellites, claims), [*items], new, more=more)


def write_bundle(layout: BoundLayout, kind: EntityType, made: Callable[[Claims], Plan[Bundle]]) -> Plan[Any]:
    """Writes a bundle, made anew whenever somebody else came first; gives the entity that was written."""
    claims = Claims()
    attempt = 0
    while True:
        bundle = yield from made(claims)
        attempt += 1
        try:
            yield (TransactWrite(bundle.writes),)
            return bundle.entity
        except TransactionCanceled as canceled:
            if attempt == ATTEMPTS or not (yield from is_worth_another(layout, kind, bundle, canceled.reasons, claims)):
                raise


def is_worth_another(
    layout: BoundLayout,
    kind: EntityType,
    bundle: Bundle,
    reasons: Sequence[CancellationReason],
    claims: Claims,
) -> Plan[bool]:
    """Whether it is worth another attempt: an item changed since it was read, or a claim is free."""
    end = len(bundle.own) + len(bundle.others)
    own, rest, more = reasons[: len(bundle.own)], reasons[len(bundle.own) : end], reasons[end:]
    if any(reason.code == _FAILED for reason in own):
        seen = zip(own, bundle.read, strict=False)
        return any(reason.code == _FAILED and _has_moved(bundle, was, reason.item) for reason, was in seen)
    if any(reason.code == _FAILED for reason in more) or (more and are_transient(reasons)):
        return True
    return (yield from settled(layout, kind, bundle.others, rest, claims))


def _has_moved(bundle: Bundle, was: Item | None, met: Mapping[str, Any] | None) -> bool:
    if was is None or met is None:
        return (was is None) != (met is None)
    return any(was.get(name) != met.get(name) for name in bundle.watched)


# --- fields ------------------------------------------------------------------------------------


def refuse_copies(layout: BoundLayout, kind: EntityType, item: Item) -> None:
    """An edge that could be written and not be read, because what it copies does not fit its field."""
    try:
        stored_entity(layout, kind, item)
    except InvalidItem as error:
        raise InvalidValue(f"a {kind.name} cannot hold what it would copy: {error.problems or error}") from None


def of_another_type(name: str) -> str:
    return f"there is no {name}, but an item of another type under its key; correct it first"


def refuse_misfit(layout: BoundLayout, kind: EntityType, after: Item, name: str) -> None:
    """A change after which the class could not read the item, though each field by itself is right."""
    if is_rehearsed():
        return
    try:
        layout.decode(kind, after)
    except InvalidItem as error:
        raise InvalidValue(f"{name} would be no {kind.name} any more: {error.problems or error}") from None


def changed_fields(
    kind: EntityType, values: Mapping[str, Any], changes: Mapping[str, Any], item: Item
) -> dict[str, Any]:
    """The new values of fields, those made of stored ones worked out; the version counts.

    `ConditionFailed`, with the item, if a sum does not keep the limits of its field.
    """
    new = {
        each: _worked_out(kind, values, each, change, item)
        if isinstance(change, Change)
        else kind.validated(each, change)
        for each, change in changes.items()
    }
    if kind.version and kind.version not in changes:
        new[kind.version] = values[kind.version] + 1
    return new


def _worked_out(kind: EntityType, values: Mapping[str, Any], field: str, change: Change, item: Item) -> Any:
    kind.attribute(change.field)
    value = _made(kind, field, values[change.field], change)
    if change.operator in ("+", "-"):
        for operator, limit in kind.limits(field):
            if not _COMPARED[operator](value, _number(limit)):
                raise ConditionFailed(f"{kind.name}.{field} would be {value}, and must be {operator} {limit}", item)
    return kind.validated(field, value)


def _made(kind: EntityType, field: str, stored: Any, change: Change) -> Any:
    operand = change.operand
    match change.operator:
        case "+":
            return _sum(kind, field, stored, operand, _EXACT.add)
        case "-":
            return _sum(kind, field, stored, operand, _EXACT.subtract)
        case "append":
            return [*(stored or ()), *operand]
        case "add":
            return {*(stored or ()), *operand}
        case "discard":
            return {*(stored or ())} - operand


def _sum(kind: EntityType, field: str, stored: Any, amount: Any, add: Callable[[Decimal, Decimal], Decimal]) -> Decimal:
    check_amount(kind, field, amount)
    if stored is not None and "N" not in encode(stored):
        raise InvalidValue(f"{kind.name}.{field}: nothing can be added to {stored!r}, which is no number")
    return add(_number(stored), _number(amount))


def _number(value: Any) -> Decimal:
    return Decimal(encode(value)["N"]) if value is not None else Decimal(0)
