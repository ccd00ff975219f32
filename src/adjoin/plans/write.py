"""Writing whole nodes and edges: one, many, and their removal; changes of fields are in `update`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from adjoin.errors import (
    AlreadyExists,
    ConditionFailed,
    InvalidRequest,
    InvalidValue,
    NotFound,
    TransactionCanceled,
    shown,
)
from adjoin.evaluate import condition_test
from adjoin.expressions import Compare, Condition, Not, Or, Value, all_of, attribute
from adjoin.fields import Predicate
from adjoin.layouts.interface import DELETING, BoundLayout
from adjoin.model import OWN_VERSION, Edge, IfVersion, Node, node_id
from adjoin.plans import Plan
from adjoin.plans.at_once import counted_at_once, counting_at_once, disconnect_counted, parts_of
from adjoin.plans.batches import BATCHES_A_ROUND, Place, chunks, place_of, write_all
from adjoin.plans.bundles import (
    ATTEMPTS,
    Claims,
    beside,
    companioned,
    described,
    put_bundle,
    refuse_copies,
    revised,
    room_beside,
    settled,
    write_bundle,
)
from adjoin.plans.conditions import condition
from adjoin.plans.copies import copies_on, fillings
from adjoin.plans.deletion import UNMARKED, visible
from adjoin.plans.guarded import (
    carried,
    is_carried,
    put_request,
    refuse_changed,
    refuse_counted,
    refuse_given,
    written_items,
)
from adjoin.plans.newcomers import Coming, unmarked
from adjoin.plans.shards import report_heat
from adjoin.plans.versions import Lock, as_seen, lock_for, remember, seen_in, stale
from adjoin.requests import Check, Delete, ItemResponse, Put, TransactWrite, Update
from adjoin.schema import AnyEdge, EdgeType, Entity, EntityType, NodeType
from adjoin.units import MAX_BATCH_WRITE, MAX_TRANSACTION, MAX_TRANSACTION_SIZE
from adjoin.values import AttributeValue, Item, item_size


def kind_of(layout: BoundLayout, entity: Any) -> EntityType:
    if isinstance(entity, Node):
        return layout.schema.node(type(entity))
    if isinstance(entity, Edge):
        return layout.schema.edge(type(entity))
    raise InvalidValue(f"{shown(entity)} is neither a node nor an edge; pass an instance of a class of this graph")


def absent(layout: BoundLayout) -> Condition:
    return Not(layout.present)


# --- whole nodes and edges ---------------------------------------------------------------------


def put(
    layout: BoundLayout, entity: Entity, only_if: Predicate | None = None, if_version: IfVersion = OWN_VERSION
) -> Plan[None]:
    kind = kind_of(layout, entity)
    refuse_given(layout, kind, entity)
    wanted = None if only_if is None else condition(layout, kind, only_if)
    lock = lock_for(kind, entity, if_version)
    if wanted is not None and isinstance(kind, EdgeType):
        wanted = all_of(wanted, UNMARKED)
    while True:
        try:
            yield from _put(layout, kind, entity, wanted, lock)
            break
        except (ConditionFailed, TransactionCanceled) as error:
            there = met(error)
            if there is None or DELETING not in there or wanted is None or UNMARKED not in parts_of(wanted):
                refuse_changed(layout, kind, layout.items(entity)[0], there, described(entity))
                raise not_held(kind, described(entity), error) from None
        is_shown = bool((yield from visible(layout, [dict(there)])))
        told = relieved(layout, wanted, there[DELETING], is_shown=is_shown)
        if told is None:
            raise NotFound(f"there is no {described(entity)}; put it first")
        wanted = told
    if lock is not None:
        lock.keep()


def _put(
    layout: BoundLayout, kind: EntityType, entity: Entity, wanted: Condition | None, lock: Lock | None
) -> Plan[None]:
    if layout.has_satellites(kind) or is_carried(layout, kind) or is_accompanied(layout, kind):
        coming = Coming()
        made = lambda claims: put_bundle(layout, kind, entity, wanted, claims, coming, lock)  # noqa: E731
        yield from write_bundle(layout, kind, made)
    elif lock is not None:
        yield from _put_locked(layout, kind, entity, wanted, lock)
    else:
        puts = tuple(put_request(layout, kind, item, wanted) for item in written_items(layout, kind, entity))
        yield puts if len(puts) == 1 else (TransactWrite(puts),)


def _put_locked(
    layout: BoundLayout, kind: EntityType, entity: Entity, wanted: Condition | None, lock: Lock
) -> Plan[None]:
    """Puts an instance in place of what is probably there, and of what turns out to be there if it may."""
    items = written_items(layout, kind, entity)
    seen = lock.guess
    for _ in range(ATTEMPTS):
        version = lock.choose(seen)
        held = all_of(as_seen(layout, kind, seen), wanted)
        puts = tuple(put_request(layout, kind, item | version, held) for item in items)
        try:
            yield puts if len(puts) == 1 else (TransactWrite(puts),)
            return
        except (ConditionFailed, TransactionCanceled) as error:
            if isinstance(error, TransactionCanceled) and not any(_failed(reason.code) for reason in error.reasons):
                raise
            item = met(error)
            failed = error
        is_hidden = item is not None and DELETING in item and not (yield from visible(layout, [dict(item)]))
        there = seen_in(kind, item, is_hidden=is_hidden)
        if not lock.allows(there):
            raise stale(lock, described(entity), item, there)
        if there == seen:
            raise failed
        seen = there
    raise failed


def relieved(layout: BoundLayout, wanted: Condition, mark: AttributeValue, *, is_shown: bool) -> Condition | None:
    """What must hold, in place of a condition, for an edge that was met with a mark; None if that cannot be.

    An edge that is there must hold the rest of the condition. One that is hidden counts as none: what holds where
    there is none holds for it, as long as it stays as it is.
    """
    rest = all_of(*(part for part in parts_of(wanted) if part != UNMARKED))
    if is_shown:
        return None if absent(layout) in parts_of(rest) else rest
    if rest is not None and not condition_test(rest)({}):
        return None
    return Or((absent(layout), Compare("=", attribute(DELETING), Value(mark))))


def is_accompanied(layout: BoundLayout, kind: EntityType) -> bool:
    """Whether something is written with instances that has to be true with them: what they copy or count at once."""
    if isinstance(kind, EdgeType):
        return bool(copies_on(layout, kind) or counted_at_once(layout, kind))
    return bool(counting_at_once(layout, kind))


def add(layout: BoundLayout, entity: Entity, checks: tuple[Check, ...] = ()) -> Plan[Any]:
    """Writes what must not be there yet, and gives it; `checks` must hold too, in the same transaction."""
    kind = kind_of(layout, entity)
    copies = isinstance(kind, EdgeType) and bool(copies_on(layout, kind))
    attempt = 0
    refuse_counted(layout, kind, entity)
    wanted = absent(layout)
    claims, coming = Claims(), Coming()
    while True:
        items = written_items(layout, kind, entity)
        items, first = yield from companioned(layout, kind, entity, items, checks)
        if isinstance(kind, NodeType):
            room = room_beside(layout, kind, items, entity)
            arrived = yield from coming.look(layout, kind, layout.key_of(items[0]), room)
            items, first = (arrived.on(layout, items[0]),), arrived.writes
        others = beside(layout, layout.satellites(kind, items, entity.__dict__), claims)
        puts = tuple(Put(layout.table, revised(layout, kind, item), wanted) for item in items)
        alone = len(puts) == 1 and not first and not others
        attempt += 1
        try:
            yield puts if alone else (TransactWrite((*first, *puts, *others)),)
            remember(kind, entity)
            return layout.decode(kind, items[0]) if copies else entity
        except ConditionFailed as failed:
            in_the_way = [failed.item]
        except TransactionCanceled as canceled:
            _raise_missing(layout, checks, first, canceled)
            own = canceled.reasons[len(first) : len(first) + len(puts)]
            in_the_way = [reason.item for reason in own if _failed(reason.code)]
            if not in_the_way:
                is_outrun = any(_failed(reason.code) for reason in canceled.reasons[: len(first)])
                if attempt < ATTEMPTS and is_accompanied(layout, kind) and (is_outrun or canceled.retryable):
                    continue
                rest = canceled.reasons[len(first) + len(puts) :]
                if (yield from settled(layout, kind, others, rest, claims)):
                    continue
                raise
        left = [dict(item) for item in in_the_way if item is not None and DELETING in item]
        if len(left) < len(in_the_way) or (yield from visible(layout, left)):
            raise AlreadyExists(f"{described(entity)} is there already; use put to replace it, or update to change it")
        # Nobody sees what is left of an edge whose node was deleted: it may be overwritten.
        marks = tuple(Compare("=", attribute(DELETING), Value(item[DELETING])) for item in left)
        wanted = Or((absent(layout), *marks))


def _failed(code: str) -> bool:
    return code == "ConditionalCheckFailed"


def _raise_missing(
    layout: BoundLayout,
    checks: tuple[Check, ...],
    first: Sequence[Put | Update | Delete | Check],
    canceled: TransactionCanceled,
) -> None:
    nodes = {place_of(check.key) for check in checks}
    for write, reason in zip(first, canceled.reasons, strict=False):
        place = place_of(layout.key_of(write.item) if isinstance(write, Put) else write.key)
        if place in nodes and _failed(reason.code) and reason.item is None:
            key = place[0]
            raise NotFound(f"there is no node {key!r} to connect; put it first, or put the edge itself unchecked")


def connect(layout: BoundLayout, entity: AnyEdge) -> Plan[Any]:
    """Adds an edge if both its ends are there, all in one transaction; gives it, with what it copies."""
    kind = layout.schema.edge(type(entity))
    return (yield from add(layout, entity, end_checks(layout, kind, entity)))


def end_checks(layout: BoundLayout, kind: EdgeType, entity: AnyEdge) -> tuple[Check, ...]:
    keys = [layout.node_key(kind.source, entity.source), layout.node_key(kind.target, entity.target)]
    if keys[0] == keys[1]:
        keys.pop()
    return tuple(Check(layout.table, key, layout.present) for key in keys)


def put_many(layout: BoundLayout, entities: Iterable[Any], progress: Callable[[int], None] | None = None) -> Plan[int]:
    """Writes any number in rounds of batches; of two for one key, the later one stays."""
    done = 0
    for some in chunks(entities, MAX_BATCH_WRITE * BATCHES_A_ROUND):
        for entity in some:
            refuse_given(layout, kind_of(layout, entity), entity)
        filled = yield from _filled(layout, some)
        writes: dict[Place, Put | Delete] = {}
        alone: dict[Place, Put | Update] = {}
        counting: dict[Place, Any] = {}
        later: list[Any] = []
        for entity in some:
            kind = kind_of(layout, entity)
            if kind.unique or kind.is_guarded or is_carried(layout, kind) or counted_at_once(layout, kind):
                # What it was before has to be known, so each is written on its own; edges after all nodes.
                if isinstance(kind, EdgeType):
                    later.append(entity)
                else:
                    yield from put(layout, entity)
                continue
            if isinstance(kind, NodeType) and counting_at_once(layout, kind):
                counting[place_of(layout.node_key(kind, node_id(entity)))] = entity
                continue
            if layout.rules.guards(kind) and isinstance(kind, NodeType):
                # No batch takes an update or a condition, so these are requests side by side.
                for item in written_items(layout, kind, entity):
                    alone[place_of(layout.key_of(item))] = put_request(layout, kind, item, None)
                continue
            items = tuple(item | filled.get(id(entity), {}) for item in written_items(layout, kind, entity))
            if id(entity) in filled:
                refuse_copies(layout, kind, items[0])
            satellites = layout.satellites(kind, items, entity.__dict__)
            own = [Put(layout.table, revised(layout, kind, item)) for item in items]
            for write in (*own, *beside(layout, satellites, Claims())):
                if not isinstance(write, Check):
                    writes[place_of(layout.key_of(write.item if isinstance(write, Put) else write.key))] = write
        yield from write_all(writes.values())
        if alone:
            yield from _put_alone(layout, list(alone.values()))
        for many in chunks(counting.values(), MAX_TRANSACTION // 2 * BATCHES_A_ROUND):
            yield from _put_counting(layout, many)
        for entity in later:
            yield from put(layout, entity)
        yield from report_heat(layout)
        done += len(some)
        if progress is not None:
            progress(done)
    return done


def _filled(layout: BoundLayout, entities: Iterable[Any]) -> Plan[dict[int, Item]]:
    """What edges copy, by the edge, also of nodes that are written with them.

    It is unchecked, because their own changes will have it looked at again.
    """
    kinds = [(kind_of(layout, entity), entity) for entity in entities]
    edges = [(kind, entity) for kind, entity in kinds if isinstance(kind, EdgeType) and copies_on(layout, kind)]
    nodes = [(kind, entity) for kind, entity in kinds if edges and isinstance(kind, NodeType)]
    new = {
        place_of(layout.key_of(item)): (kind, item)
        for kind, entity in nodes
        for item in written_items(layout, kind, entity)
    }

    def coming(place: Place, stored: Item | None) -> Item | None:
        if place not in new:
            return stored
        kind, item = new[place]
        return item | carried(layout, kind, stored)

    made = yield from fillings(layout, edges, coming)
    return {id(entity): filling.values for (_, entity), filling in zip(edges, made, strict=True)}


def _put_counting(layout: BoundLayout, nodes: Sequence[Any]) -> Plan[None]:
    """Nodes that count something at once: several in a transaction, each with a check that nothing waits for it."""
    transactions: list[list[Put | Update | Check]] = []
    room = 0
    for node in nodes:
        kind = kind_of(layout, node)
        for item in written_items(layout, kind, node):
            if not transactions or len(transactions[-1]) == MAX_TRANSACTION or item_size(item) > room:
                transactions.append([])
                room = MAX_TRANSACTION_SIZE
            room -= item_size(item)
            text = next(iter(layout.key_of(item).values()))["S"]
            transactions[-1] += [put_request(layout, kind, item, None), unmarked(layout, text, None)]
    try:
        yield tuple(TransactWrite(tuple(writes)) for writes in transactions)
    except (TransactionCanceled, InvalidRequest):
        # Something waits for one of them, or must not change, or they are too large as they are: each by itself.
        for node in nodes:
            yield from put(layout, node)


def _put_alone(layout: BoundLayout, requests: list[Put | Update]) -> Plan[None]:
    try:
        yield tuple(requests)
    except ConditionFailed as failed:
        kind = layout.kind_of(dict(failed.item)) if failed.item is not None else None
        if kind is None or not layout.rules.immutable(kind):
            raise
        names = " or ".join(layout.rules.immutable(kind))
        raise InvalidValue(
            f"{kind.name}.{names} is immutable, and {' '.join(place_of(layout.key_of(dict(failed.item or {}))))} "
            f"has another value already; put it as it is stored"
        ) from None


def disconnect(
    layout: BoundLayout,
    kind: EdgeType,
    source: Any,
    target: Any,
    fields: Mapping[str, Any],
    lock: Condition | None = None,
) -> Plan[bool]:
    """Removes an edge, if it has the version that a lock asks for; says whether it was there."""
    keys = edge_keys(layout, kind, source, target, fields)
    try:
        return (yield from _disconnected(layout, kind, source, target, keys, lock))
    except (ConditionFailed, TransactionCanceled) as error:
        item = met(error)
        if lock is None or item is None:
            raise
        failed = error
    if not (yield from visible(layout, [dict(item)])):
        return (yield from _disconnected(layout, kind, source, target, keys, None))
    raise not_held(kind, f"{kind.name} from {source!r} to {target!r}", failed)


def _disconnected(
    layout: BoundLayout, kind: EdgeType, source: Any, target: Any, keys: list[Item], lock: Condition | None
) -> Plan[bool]:
    if counted_at_once(layout, kind):
        return (yield from disconnect_counted(layout, kind, source, target, keys, lock))
    copies = [copy for key in keys for copy in layout.copy_keys(kind, key)]
    if len(keys) > 1 or copies:
        return (yield from _disconnect_all(layout, keys, copies, lock))
    response: ItemResponse
    (response,) = yield (Delete(layout.table, keys[0], lock, return_old=True),)
    if response.item is None:
        return False
    return bool((yield from visible(layout, [response.item])))


def _disconnect_all(layout: BoundLayout, keys: list[Item], copies: list[Item], lock: Condition | None) -> Plan[bool]:
    """Removes an edge that is stored several times; says whether it was there, as `edge` would."""
    others = [Delete(layout.table, key) for key in copies]
    wanted = all_of(layout.present, UNMARKED, lock)
    try:
        yield (TransactWrite((*(Delete(layout.table, key, wanted) for key in keys), *others)),)
        return True
    except TransactionCanceled as canceled:
        failed = [reason.item for reason in canceled.reasons[: len(keys)] if _failed(reason.code)]
        if not failed:
            raise
        error = canceled
    if failed == [None] * len(keys):
        return False
    # Half of an edge, left by somebody who wrote one side only, was none, and goes in any case. Whether one with a
    # mark was there, the record of the deletion that marked it tells.
    there = [dict(item) for item in failed if item is not None]
    is_shown = None not in failed and bool((yield from visible(layout, there)))
    wanted = lock if is_shown else None
    if wanted is not None and not all(map(condition_test(wanted), there)):
        raise error
    yield (TransactWrite((*(Delete(layout.table, key, wanted) for key in keys), *others)),)
    return is_shown


def edge_keys(layout: BoundLayout, kind: EdgeType, source: Any, target: Any, fields: Mapping[str, Any]) -> list[Item]:
    """Where an edge is stored: once, or at both ends if it is symmetric."""
    keys = [layout.edge_key(kind, source, target, fields)]
    if kind.symmetric and source != target:
        keys.append(layout.edge_key(kind, target, source, fields))
    return keys


def met(error: ConditionFailed | TransactionCanceled) -> Mapping[str, Any] | None:
    """The item for which a condition did not hold."""
    if isinstance(error, ConditionFailed):
        return error.item
    return next((reason.item for reason in error.reasons if _failed(reason.code)), None)


def not_held(kind: EntityType, name: str, error: ConditionFailed | TransactionCanceled) -> Exception:
    if isinstance(error, TransactionCanceled) and not any(_failed(reason.code) for reason in error.reasons):
        return error
    item = met(error)
    if item is None:
        return NotFound(f"there is no {name}; put it first")
    version = f" (its version is {item[stored]['N']})" if (stored := _version_attribute(kind)) in item else ""
    return ConditionFailed(f"the condition does not hold for {name}{version}; read it again and decide anew", item)


def _version_attribute(kind: EntityType) -> str:
    return kind.attributes[kind.version] if kind.version else ""
