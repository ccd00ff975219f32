"""Entities with satellites: all items of one entity are written in one transaction.

An index copy or a claim must always agree with the entity's own item. So the stored item is read where the new
satellites depend on it, and the transaction is conditional on its revision, which every write replaces. Of two
concurrent writers, the second one fails and reads again.

A claim is stale if its owner does not exist, or has another value now. Another entity may take a stale claim over, on
condition that the owner is still what was read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, Entity, EntityType, NodeType
from adjoin.errors import (
    AlreadyExists,
    CancellationReason,
    InvalidItem,
    InvalidKey,
    InvalidValue,
    NotFound,
    TransactionCanceled,
    are_transient,
    shown,
)
from adjoin.expressions import Condition, Not, all_of
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.indexed_fields import is_rehearsed
from adjoin.layouts.interface import DELETING, OWNER, REVISION, STAMP, Satellite
from adjoin.model import UNEXPLAINED, Edge, Node, node_id
from adjoin.plans.changed_values import changed_fields, settled
from adjoin.plans.copies import copies_on, filling
from adjoin.plans.deletion import visible
from adjoin.plans.in_transaction import Coming, companions, counted_in_transaction, written_edge
from adjoin.plans.managed_fields import (
    is_kept_by_reading,
    kept_fields,
    keyed,
    put_request,
    unchangeable,
    written_items,
)
from adjoin.plans.steps.again import AGAIN, Again, Attempt, Failure, claimable, new_revision, unchanged, until_written
from adjoin.plans.steps.batches import Place, get_all, joined, joined_checks, place_of, write_key
from adjoin.plans.steps.samples import sample_items, stored_entity
from adjoin.plans.versions import Lock, as_seen, seen_in, stale
from adjoin.requests import Check, Delete, Get, ItemResponse, Plan, Put, TransactWrite, Update
from adjoin.units import MAX_TRANSACTION
from adjoin.values import Item, decode

# --- entities with satellites ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claims:
    """What is known about claims of other nodes to unique values."""

    stale: dict[Place, tuple[str, Check]] = field(default_factory=dict)
    """Stale claims: the owner, and a check that it is still what was read, so that the claim is still stale."""
    others: set[Place] = field(default_factory=set)
    """Claims that this entity must not remove, because another node has the value now."""


def described(entity: Entity) -> str:
    """The name of a node or an edge in messages."""
    if isinstance(entity, Node):
        return f"{type(entity).__name__} {shown(node_id(entity))}"
    return f"{type(entity).__name__} from {shown(entity.source)} to {shown(entity.target)}"


def read_unexplained(layout: BoundLayout, entities: Iterable[Entity]) -> Plan[None]:
    """Reads the unexplained attributes of instances that were found in an index which does not hold them.

    So a put of such an instance keeps them, as a put of one that was read from the table does.
    """
    lacking = [entity for entity in entities if UNEXPLAINED in entity.__dict__ and layout.lacks_unexplained(entity)]
    keys = [layout.key_of(layout.items(entity)[0]) for entity in lacking]
    by_place = {place_of(key): Get(layout.table, key, consistent=True) for key in keys}
    found = dict(zip(by_place, (yield from get_all(list(by_place.values()))), strict=True))
    if is_rehearsed():
        # Nothing was read, so the instance still lacks them when it is really put.
        return
    for entity, key in zip(lacking, keys, strict=True):
        del entity.__dict__[UNEXPLAINED]
        if (item := found[place_of(key)]) is not None:
            layout.keep_unexplained(entity, item)


def revised(layout: BoundLayout, kind: EntityType, item: Item) -> Item:
    """An item as it is written: with a new revision, if its class has satellites or is read before it is written."""
    is_revised = (
        layout.has_satellites(kind) or is_kept_by_reading(layout, kind) or bool(counted_in_transaction(layout, kind))
    )
    return item | {REVISION: new_revision()} if is_revised else item


def beside(layout: BoundLayout, satellites: Iterable[Satellite], claims: Claims) -> list[Put | Delete | Check]:
    """The writes of satellites, and the checks under which stale claims are taken over."""
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


def may_succeed(
    layout: BoundLayout,
    kind: EntityType,
    writes: Sequence[Put | Delete | Check],
    reasons: Sequence[CancellationReason],
    claims: Claims,
) -> Plan[bool]:
    """Whether another attempt may succeed after these writes of satellites failed for these reasons.

    Raises `AlreadyExists` if a unique value belongs to another node.
    """
    again = False
    for write, reason in zip(writes, reasons, strict=True):
        if not reason.is_failed_condition:
            continue
        if isinstance(write, Check):
            # The owner of a stale claim has changed, so whether the claim is still stale must be checked again.
            for place in [place for place, (_, check) in claims.stale.items() if check.key == write.key]:
                del claims.stale[place]
            again = True
        elif reason.item is not None and OWNER in reason.item:
            # Other programs may write any type there; an owner that is not text names no node.
            yield from _look_at(layout, kind, write, reason.item[OWNER].get("S", ""), claims)
            again = True
    return again


def _look_at(layout: BoundLayout, kind: EntityType, write: Put | Delete, owner: str, claims: Claims) -> Plan[None]:
    """Finds out whether the owner of a conflicting claim has the value, or the claim is stale."""
    key = write_key(layout, write)
    if isinstance(kind, EdgeType):
        yield from _look_at_edge(layout, kind, write, key, owner, claims)
        return
    assert isinstance(kind, NodeType)
    try:
        id = layout.id_in(kind, owner)
        node = layout.node_key(kind, id)
    except (InvalidItem, InvalidKey, InvalidValue):
        # Another program wrote the claim: no node can have that key, so the claim is stale. A stale claim needs a
        # check, and this one always holds.
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


def _look_at_edge(
    layout: BoundLayout, kind: EdgeType, write: Put | Delete, key: Item, owner: str, claims: Claims
) -> Plan[None]:
    """Finds out whether the edge that has claimed a node exists, or the claim is stale."""
    edge = layout.edge_owning(owner)
    if edge is None:
        # Another program wrote the claim, which names no edge. A stale claim needs a check, and this one always holds.
        claims.stale[place_of(key)] = owner, Check(layout.table, layout.ledgers.marker_key(owner), Not(layout.present))
        return
    response: ItemResponse
    (response,) = yield (Get(layout.table, edge, consistent=True),)
    there = [] if response.item is None else (yield from visible(layout, [response.item]))
    if not there or key not in [each.key for each in layout.satellites_beside(kind, there[0])]:
        claims.stale[place_of(key)] = owner, Check(layout.table, edge, unchanged(layout, response.item))
    elif isinstance(write, Delete):
        claims.others.add(place_of(key))
    else:
        raise AlreadyExists(_only_edge(layout, kind, there[0]))


def _only_edge(layout: BoundLayout, kind: EdgeType, item: Item) -> str:
    edge = layout.decode_as_far(kind, item)
    name = kind.name if edge is None else described(edge)
    sides = ("node",) if kind.symmetric else kind.claimed
    has = f"{' and '.join(f'a {side}' for side in sides)} {'has' if len(sides) == 1 else 'have'}"
    return f"{has} at most one {kind.name}, and there is a {name}; disconnect that first"


def _taken(layout: BoundLayout, kind: NodeType, key: Item, item: Item, id: Any) -> str:
    for name in kind.unique:
        stored = item.get(kind.attributes[name])
        if stored is not None and layout.claim_key(kind, name, layout.decode_field(kind, name, stored)) == key:
            return (
                f"{kind.name}.{name} is unique, and {decode(stored)!r} belongs to {kind.name} {id!r}; "
                f"choose another value, or change that node first"
            )
    return f"a unique value of {kind.name} belongs to {kind.name} {id!r}; choose another"


def released(layout: BoundLayout, kind: EntityType, old: Item | None, new: Iterable[Satellite]) -> list[Satellite]:
    """The satellites of a stored item that the new item does not have: claims, and index copies for elements."""
    kept = {place_of(each.key) for each in new}
    there = [] if old is None else layout.satellites_beside(kind, old)
    return [each for each in there if place_of(each.key) not in kept]


@dataclass(frozen=True, slots=True)
class EntityWrite:
    """All writes of one entity, with what was read for them."""

    own: Sequence[Put | Update | Check]
    """The writes of its own items, or a check of what stays as it is."""
    others: list[Put | Delete | Check]
    """The writes of its satellites."""
    read: Sequence[Item | None]
    """Its own items as they were read before; empty if nothing was read."""
    entity: Any = None
    """The entity after the write."""
    watched: Collection[str] = (REVISION,)
    """The attributes that show whether an item has changed since it was read."""
    more: list[Put | Update | Delete | Check] = field(default_factory=list)
    """Writes of other entities, such as nodes that count an edge; these may have changed since they were read."""

    @property
    def writes(self) -> tuple[Put | Update | Delete | Check, ...]:
        return (*self.own, *self.others, *self.more)


def entity_put(
    layout: BoundLayout,
    kind: EntityType,
    entity: Entity,
    wanted: Condition | None,
    claims: Claims,
    coming: Coming,
    lock: Lock | None = None,
    *,
    add_companions: bool = True,
) -> Plan[EntityWrite]:
    """The entity write of a put.

    It reads the stored item only for a unique field, indexed elements, a managed field or a version.
    """
    items = written_items(layout, kind, entity)
    read: list[Item | None] = []
    old: Item | None = None
    # All writers write both items of a symmetric edge together, so that one of them tells whether it is as it was read.
    still: Condition | None = None
    watched = [REVISION]
    if kind.claimed or kind.elements or is_kept_by_reading(layout, kind) or lock is not None:
        response: ItemResponse
        (response,) = yield (Get(layout.table, layout.key_of(items[0]), consistent=True),)
        old = response.item
        read.append(old)
        still, wanted = unchanged(layout, old), all_of(wanted, unchangeable(layout, kind, items[0]))
        if is_kept_by_reading(layout, kind):
            items = tuple(keyed(layout, kind, item | kept_fields(layout, kind, old)) for item in items)
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
    if add_companions and isinstance(kind, NodeType) and old is None:
        room = room_beside(layout, kind, items, entity)
        arrived = yield from coming.look(layout, kind, layout.key_of(items[0]), room)
        items, wanted, more = (arrived.on(layout, items[0]),), all_of(wanted, arrived.condition), arrived.writes
        read = read or arrived.read
    held: Sequence[Condition | None] = [None] * len(items)
    if add_companions and not isinstance(kind, NodeType):
        made = yield from companioned(layout, kind, entity, items)
        items, more, held = made.items, made.writes, made.held
        if made.read:
            read += made.read[len(read) :]
            watched.append(STAMP)
    satellites = layout.satellites(kind, items, entity.__dict__)
    satellites += released(layout, kind, old, satellites)
    puts = [
        _own_write(layout, kind, item, all_of(first, wanted, own))
        for item, own, first in zip(items, held, (still, *(None for _ in items[1:])), strict=True)
    ]
    return EntityWrite(puts, beside(layout, satellites, claims), read, entity, watched=watched, more=more)


def _own_write(layout: BoundLayout, kind: EntityType, item: Item, wanted: Condition | None) -> Put | Update:
    """The write of one item of an entity: the whole item, unless it has managed fields that were not read."""
    if layout.has_satellites(kind) or counted_in_transaction(layout, kind) or is_kept_by_reading(layout, kind):
        return Put(layout.table, revised(layout, kind, item), wanted)
    return put_request(layout, kind, item, wanted)


def room_beside(layout: BoundLayout, kind: NodeType, items: Sequence[Item], entity: Entity) -> int:
    """How many more writes fit into the transaction that creates a node.

    Two are for the node and its marker. Each satellite counts twice, because an old one may have to be removed.
    """
    return MAX_TRANSACTION - 2 - 2 * len(layout.satellites(kind, items, entity.__dict__))


@dataclass(frozen=True, slots=True)
class Accompanied:
    """The items of an entity as they are written, and the other writes of the transaction."""

    items: tuple[Item, ...]
    writes: list[Put | Update | Delete | Check]
    held: Sequence[Condition | None]
    """For each item, the condition that its stamp is what was read."""
    read: list[Item | None] = field(default_factory=list)
    """The items as they were read for their stamps; empty if they have none."""


def companioned(
    layout: BoundLayout, kind: EntityType, entity: Entity, items: tuple[Item, ...], checks: Sequence[Check] = ()
) -> Plan[Accompanied]:
    """The items of an edge with copied fields and stamps, and the other writes of its transaction with `checks`."""
    if not isinstance(kind, EdgeType) or not isinstance(entity, Edge):
        return Accompanied(items, list(checks), [None] * len(items))
    if copies_on(layout, kind):
        filled = yield from filling(layout, kind, entity)
        items = filled.on(layout, kind, items)
        refuse_copies(layout, kind, items[0])
        checks = joined_checks(checks, filled.checks)
    writes: dict[Place, Put | Update | Delete | Check] = {place_of(check.key): check for check in checks}
    if counted_in_transaction(layout, kind):
        made = yield from companions(layout, written_edge(layout, kind, entity, items))
        for place, write in made.writes.items():
            writes[place] = joined(layout, writes[place], write) if place in writes else write
        places = [place_of(layout.key_of(item)) for item in items]
        return Accompanied(
            tuple(made.stamped(place, item) for place, item in zip(places, items, strict=True)),
            list(writes.values()),
            [made.held(place) for place in places],
            [made.read[place] for place in places if place in made.stamps],
        )
    return Accompanied(items, list(writes.values()), [None] * len(items))


def entity_update(
    layout: BoundLayout,
    kind: EntityType,
    keys: Sequence[Item],
    changes: Mapping[str, Any],
    wanted: Condition | None,
    name: str,
    claims: Claims,
    *,
    add_companions: bool = True,
) -> Plan[EntityWrite]:
    """The entity write of a change of fields; raises `NotFound` if the entity does not exist."""
    responses: list[ItemResponse] = yield tuple(Get(layout.table, key, consistent=True) for key in keys)
    items = [response.item for response in responses if response.item is not None] or sample_items(layout, kind, keys)
    if len(items) < len(keys) or not (yield from visible(layout, items)):
        raise NotFound(f"there is no {name}; put it first")
    old = stored_entity(layout, kind, items[0])
    if old is None:
        raise NotFound(of_another_type(kind, name))
    fields = changed_fields(kind, old.__dict__, changes, items[0])
    new = old.model_copy(update=settled(layout, kind, items[0], old, fields, name))
    after = [layout.changed(kind, item, new) for item in items]
    satellites = layout.satellites(kind, after, new.__dict__)
    satellites += released(layout, kind, items[0], satellites)
    puts = [
        Put(layout.table, revised(layout, kind, now), all_of(unchanged(layout, was), wanted))
        for was, now in zip(items, after, strict=True)
    ]
    more: list[Put | Update | Delete | Check] = []
    if add_companions and isinstance(kind, EdgeType) and isinstance(new, Edge) and counted_in_transaction(layout, kind):
        made = yield from companions(layout, written_edge(layout, kind, new, after))
        more = list(made.writes.values())
        puts = [
            Put(put.table, made.stamped(place, put.item), all_of(put.condition, made.held(place)))
            for put, place in zip(puts, map(place_of, keys), strict=True)
        ]
    return EntityWrite(puts, beside(layout, satellites, claims), [*items], new, (REVISION, STAMP), more)


def write_entity(layout: BoundLayout, kind: EntityType, made: Callable[[Claims], Plan[EntityWrite]]) -> Plan[Any]:
    """Performs an entity write, and makes it again whenever another writer was first; returns the entity."""
    claims = Claims()

    def attempt() -> Plan[Attempt[Any]]:
        entity_write = yield from made(claims)

        def failed(failure: Failure) -> Plan[Again]:
            assert isinstance(failure, TransactionCanceled)
            if not (yield from is_worth_another(layout, kind, entity_write, failure.reasons, claims)):
                raise failure
            return AGAIN

        return Attempt((TransactWrite(entity_write.writes),), lambda _: entity_write.entity, failed)

    return (yield from until_written(attempt))


def is_worth_another(
    layout: BoundLayout,
    kind: EntityType,
    entity_write: EntityWrite,
    reasons: Sequence[CancellationReason],
    claims: Claims,
) -> Plan[bool]:
    """Whether another attempt may succeed: an item has changed since it was read, or a claim is free."""
    end = len(entity_write.own) + len(entity_write.others)
    own, rest, more = reasons[: len(entity_write.own)], reasons[len(entity_write.own) : end], reasons[end:]
    if any(reason.is_failed_condition for reason in own):
        seen = zip(own, entity_write.read, strict=False)
        return any(reason.is_failed_condition and _has_moved(entity_write, was, reason.item) for reason, was in seen)
    if any(reason.is_failed_condition for reason in more) or (more and are_transient(reasons)):
        return True
    return (yield from may_succeed(layout, kind, entity_write.others, rest, claims))


def _has_moved(entity_write: EntityWrite, was: Item | None, met: Mapping[str, Any] | None) -> bool:
    if was is None or met is None:
        return (was is None) != (met is None)
    return any(was.get(name) != met.get(name) for name in entity_write.watched)


# --- fields ------------------------------------------------------------------------------------


def refuse_copies(layout: BoundLayout, kind: EntityType, item: Item) -> None:
    """Refuses an edge that could not be read after it is written, because a copied value does not fit its field."""
    try:
        stored_entity(layout, kind, item)
    except InvalidItem as error:
        raise InvalidValue(f"a {kind.name} cannot hold a value that it would copy: {error.problems or error}") from None


def of_another_type(kind: EntityType, name: str) -> str:
    if kind.whole is not kind:
        return f"there is no {name}: its key holds a node of another class of the family of {kind.whole.name}"
    return f"there is no {name}, but its key holds an item of another type; correct that item first"
