"""Plans that write whole nodes and edges, one or many.

`update` changes single fields. `removal` removes edges, `deletion` and `counted_deletion` nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from adjoin.entity_types import AnyEdge, EdgeType, Entity, EntityType, NodeType
from adjoin.errors import (
    AlreadyExists,
    CancellationReason,
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
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.indexed_fields import is_rehearsed
from adjoin.layouts.interface import DELETING
from adjoin.marks import OWN_VERSION, IfVersion
from adjoin.model import UNEXPLAINED, Edge, Node, has_hook, node_id, refuse_unread
from adjoin.plans.copies import Filling, copies_on, fillings
from adjoin.plans.declared import check_due
from adjoin.plans.deletion import UNMARKED, visible
from adjoin.plans.entity_write import (
    Claims,
    beside,
    companioned,
    described,
    entity_put,
    may_succeed,
    read_unexplained,
    refuse_copies,
    revised,
    room_beside,
    write_entity,
)
from adjoin.plans.in_transaction import (
    Coming,
    counted_in_transaction,
    counting_in_transaction,
    unmarked,
)
from adjoin.plans.managed_fields import (
    is_kept_by_reading,
    kept_fields,
    put_request,
    refuse_changed,
    refuse_counted,
    refuse_given,
    written_items,
)
from adjoin.plans.shards import report_heat
from adjoin.plans.steps.again import (
    AGAIN,
    Again,
    Attempt,
    Failure,
    decided,
    same,
    until_written,
)
from adjoin.plans.steps.batches import (
    BATCHES_A_ROUND,
    AnyRequest,
    Place,
    chunks,
    joined_checks,
    parts_of,
    place_of,
    write_all,
    write_key,
    write_place,
)
from adjoin.plans.steps.conditions import end_conditions, write_condition
from adjoin.plans.versions import Lock, as_seen, lock_for, remember, seen_in, stale
from adjoin.requests import Check, Delete, Plan, Put, TransactWrite, Update
from adjoin.units import MAX_BATCH_WRITE, MAX_TRANSACTION, MAX_TRANSACTION_SIZE
from adjoin.values import AttributeValue, Item, item_size


def kind_of(layout: BoundLayout, entity: Any) -> EntityType:
    """The class of an instance that is written; raises `NotRead` if not all of its fields were read."""
    if isinstance(entity, Node | Edge):
        refuse_unread(entity, *type(entity).model_fields)
        return layout.schema.node(type(entity)) if isinstance(entity, Node) else layout.schema.edge(type(entity))
    raise InvalidValue(f"{shown(entity)} is neither a node nor an edge; pass an instance of a class of this graph")


def prepared(entity: Any) -> Any:
    """The instance that is written, after `before_put` of its class; `explain` calls that on a copy."""
    if not isinstance(entity, Node | Edge) or not has_hook(type(entity)):
        return entity
    if is_rehearsed():
        entity = entity.model_copy()
    entity.before_put()
    return entity


def check_claims(layout: BoundLayout, kind: EntityType) -> Plan[None]:
    """Refuses a new edge if its node may have one that has not claimed the node, because it was stored before."""
    if isinstance(kind, EdgeType) and kind.claimed and layout.due.is_any:
        yield from check_due(layout, lambda due: due.check_unique(kind, *kind.claimed))


def absent(layout: BoundLayout) -> Condition:
    """Holds where no item exists."""
    return Not(layout.present)


# --- whole nodes and edges ---------------------------------------------------------------------


def put(
    layout: BoundLayout, entity: Entity, only_if: Predicate | None = None, if_version: IfVersion = OWN_VERSION
) -> Plan[None]:
    """Writes an instance in place of whatever is stored under its key."""
    is_plain = only_if is None and if_version is OWN_VERSION and type(entity) in layout.plain
    if is_plain and UNEXPLAINED not in entity.__dict__:
        # Fast path: nothing of such a class has to be read, kept or checked.
        yield tuple(Put(layout.table, item) for item in layout.items(entity))
        return
    yield from _put_prepared(layout, prepared(entity), only_if, if_version)


def _put_prepared(
    layout: BoundLayout, entity: Entity, only_if: Predicate | None = None, if_version: IfVersion = OWN_VERSION
) -> Plan[None]:
    """Puts an instance whose class has nothing left to say about it."""
    kind = kind_of(layout, entity)
    refuse_given(layout, kind, entity)
    wanted = write_condition(layout, kind, only_if)
    lock = lock_for(kind, entity, if_version)
    yield from check_claims(layout, kind)
    yield from read_unexplained(layout, [entity])
    if wanted is not None and kind.can_be_hidden:
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
        # The stored edge has the mark of a delete. Only the deletion record says whether the edge still counts.
        is_shown = bool((yield from visible(layout, [dict(there)])))
        adapted = relieved(layout, wanted, there[DELETING], is_shown=is_shown)
        if adapted is None:
            raise NotFound(f"there is no {described(entity)}; put it first")
        wanted = adapted
    if lock is not None:
        lock.keep()


def _put(
    layout: BoundLayout, kind: EntityType, entity: Entity, wanted: Condition | None, lock: Lock | None
) -> Plan[None]:
    if layout.has_satellites(kind) or is_kept_by_reading(layout, kind) or is_accompanied(layout, kind):
        coming = Coming()
        made = lambda claims: entity_put(layout, kind, entity, wanted, claims, coming, lock)  # noqa: E731
        yield from write_entity(layout, kind, made)
    elif lock is not None:
        yield from _put_locked(layout, kind, entity, wanted, lock)
    else:
        puts = tuple(put_request(layout, kind, item, wanted) for item in written_items(layout, kind, entity))
        yield puts if len(puts) == 1 else (TransactWrite(puts),)


def _put_locked(
    layout: BoundLayout, kind: EntityType, entity: Entity, wanted: Condition | None, lock: Lock
) -> Plan[None]:
    """Puts an instance that has a version to compare.

    The first attempt guesses which version is stored and reads nothing. If the guess was wrong, the failed condition
    brings the stored item, and the next attempt replaces that item, provided that the lock allows it.
    """
    items = written_items(layout, kind, entity)
    seen = lock.guess

    def attempt() -> Plan[Attempt[None]]:
        version = lock.choose(seen)
        held = all_of(as_seen(layout, kind, seen), wanted)
        puts = tuple(put_request(layout, kind, item | version, held) for item in items)
        return decided(Attempt(puts if len(puts) == 1 else (TransactWrite(puts),), lambda _: None, failed))

    def failed(failure: Failure) -> Plan[Again]:
        nonlocal seen
        if isinstance(failure, TransactionCanceled) and not failure.has_failed_condition:
            raise failure
        item = met(failure)
        is_hidden = item is not None and DELETING in item and not (yield from visible(layout, [dict(item)]))
        there = seen_in(kind, item, is_hidden=is_hidden)
        if not lock.allows(there):
            raise stale(lock, described(entity), item, there)
        if there == seen:
            # The version was right, so another part of the condition failed; another attempt would fail too.
            raise failure
        seen = there
        return AGAIN

    yield from until_written(attempt)


def relieved(layout: BoundLayout, wanted: Condition, mark: AttributeValue, *, is_shown: bool) -> Condition | None:
    """The condition to use instead of `wanted` for an edge that has the mark of a delete; None if none can hold.

    A visible edge must satisfy the rest of the condition. A hidden edge counts as absent: it satisfies what an absent
    item satisfies, as long as its mark does not change.
    """
    rest = all_of(*(part for part in parts_of(wanted) if part != UNMARKED))
    if is_shown:
        return None if absent(layout) in parts_of(rest) else rest
    if rest is not None and not condition_test(rest)({}):
        return None
    return Or((absent(layout), Compare("=", attribute(DELETING), Value(mark))))


def is_accompanied(layout: BoundLayout, kind: EntityType) -> bool:
    """Whether instances are written together with copied fields, or with aggregates that are updated in transaction."""
    if isinstance(kind, EdgeType):
        return bool(copies_on(layout, kind) or counted_in_transaction(layout, kind))
    return bool(counting_in_transaction(layout, kind))


def add(layout: BoundLayout, entity: Entity, checks: tuple[Check, ...] = ()) -> Plan[Any]:
    """Writes an instance that must not exist yet, and returns it; `checks` must hold in the same transaction."""
    entity = prepared(entity)
    kind = kind_of(layout, entity)
    yield from check_claims(layout, kind)
    is_plain = isinstance(kind, EdgeType) and kind.model in layout.plain
    copies = isinstance(kind, EdgeType) and not is_plain and bool(copies_on(layout, kind))
    refuse_counted(layout, kind, entity)
    wanted = absent(layout)
    claims, coming = Claims(), Coming()

    def attempt() -> Plan[Attempt[Any]]:
        if is_plain:
            # Fast path: such an edge is one item, with nothing beside it but the checks.
            own = Put(layout.table, layout.items(entity)[0], wanted)
            return Attempt((TransactWrite((*checks, own)),) if checks else (own,), kept, partial(failed, checks, 1, ()))
        items = written_items(layout, kind, entity)
        made = yield from companioned(layout, kind, entity, items, checks)
        items, first, held = made.items, made.writes, made.held
        if isinstance(kind, NodeType):
            room = room_beside(layout, kind, items, entity)
            arrived = yield from coming.look(layout, kind, layout.key_of(items[0]), room)
            items, first = (arrived.on(layout, items[0]),), arrived.writes
        others = beside(layout, layout.satellites(kind, items, entity.__dict__), claims)
        puts = tuple(
            Put(layout.table, revised(layout, kind, item), all_of(wanted, own))
            for item, own in zip(items, held, strict=True)
        )
        is_alone = len(puts) == 1 and not first and not others

        def added(_: Sequence[Any]) -> Any:
            remember(kind, entity)
            return layout.decode(kind, items[0]) if copies else entity

        return Attempt(
            puts if is_alone else (TransactWrite((*first, *puts, *others)),),
            added,
            partial(failed, first, len(puts), others),
        )

    def kept(_: Sequence[Any]) -> Any:
        remember(kind, entity)
        return entity

    def failed(
        first: Sequence[AnyRequest], puts: int, others: Sequence[Put | Delete | Check], failure: Failure
    ) -> Plan[Again]:
        nonlocal wanted
        if isinstance(failure, TransactionCanceled):
            _raise_missing(layout, checks, first, failure)
            before, own, rest = _split(failure.reasons, len(first), puts)
            in_the_way = [reason.item for reason in own if reason.is_failed_condition]
            if not in_the_way:
                # The entity itself is absent, so something that was read for it has changed.
                is_outrun = failure.retryable or any(reason.is_failed_condition for reason in before)
                if is_accompanied(layout, kind) and is_outrun:
                    return AGAIN
                if (yield from may_succeed(layout, kind, others, rest, claims)):
                    return AGAIN
                raise failure
        else:
            in_the_way = [failure.item]
        left = [dict(item) for item in in_the_way if item is not None and DELETING in item]
        if len(left) < len(in_the_way) or (yield from visible(layout, left)):
            raise AlreadyExists(f"{described(entity)} already exists; use put to replace it, or update to change it")
        # A hidden edge is left over from a deleted node. Nobody sees it, so it may be overwritten.
        wanted = Or((absent(layout), *(same(item, DELETING) for item in left)))
        return AGAIN

    return (yield from until_written(attempt))


def _split(reasons: Sequence[CancellationReason], *lengths: int) -> Iterator[Sequence[CancellationReason]]:
    """Splits reasons into groups of these lengths, and a last group of the rest."""
    start = 0
    for length in lengths:
        yield reasons[start : start + length]
        start += length
    yield reasons[start:]


def _raise_missing(
    layout: BoundLayout,
    checks: tuple[Check, ...],
    first: Sequence[Put | Update | Delete | Check],
    canceled: TransactionCanceled,
) -> None:
    nodes = {place_of(check.key): check.condition for check in checks}
    for write, reason in zip(first, canceled.reasons, strict=False):
        place = write_place(layout, write)
        if place not in nodes or not reason.is_failed_condition:
            continue
        name = _named(layout, write_key(layout, write))
        if reason.item is None:
            raise NotFound(f"there is no {name} to connect; put it first, or put the edge itself unchecked")
        if not condition_test(nodes[place])(dict(reason.item)):
            raise ConditionFailed(f"the condition does not hold for {name}, so it was not connected", reason.item)


def _named(layout: BoundLayout, key: Item) -> str:
    """The name of the node with this key in messages."""
    kind = layout.kind_of(key)
    assert isinstance(kind, NodeType)
    return f"{kind.name} {shown(layout.id_in(kind, layout.text_of(kind, key)))}"


def connect(layout: BoundLayout, entity: AnyEdge, only_if: Predicate | None = None) -> Plan[Any]:
    """Adds an edge if both its nodes exist, in one transaction; returns it with its copied fields.

    `only_if` is about the fields of the nodes, such as "target.seats".
    """
    kind = layout.schema.edge(type(entity))
    return (yield from add(layout, entity, end_checks(layout, kind, entity, only_if)))


def end_checks(
    layout: BoundLayout, kind: EdgeType, entity: AnyEdge, only_if: Predicate | None = None
) -> tuple[Check, ...]:
    """The checks that both nodes of an edge exist and that `only_if` holds for them; one check if they are the same."""
    wanted = end_conditions(layout, kind, entity, only_if)
    checks = [
        Check(layout.table, layout.node_key(end, id), all_of(layout.present, *wanted[side]) or layout.present)
        for side, end, id in (("source", kind.source, entity.source), ("target", kind.target, entity.target))
    ]
    return joined_checks(checks[:1], checks[1:])


def put_many(layout: BoundLayout, entities: Iterable[Any], progress: Callable[[int], None] | None = None) -> Plan[int]:
    """Writes any number of instances in rounds of batches; if two have the same key, the later one is stored."""
    done = 0
    for some in chunks(entities, MAX_BATCH_WRITE * BATCHES_A_ROUND):
        chunk = [prepared(entity) for entity in some]
        for entity in chunk:
            refuse_given(layout, kind_of(layout, entity), entity)
        yield from read_unexplained(layout, chunk)
        filled = yield from _filled(layout, chunk)
        writes: dict[Place, Put | Delete] = {}
        alone: dict[Place, Put | Update] = {}
        counting: dict[Place, Any] = {}
        later: list[Any] = []
        for entity in chunk:
            kind = kind_of(layout, entity)
            if (
                kind.claimed
                or kind.elements
                or kind.is_guarded
                or is_kept_by_reading(layout, kind)
                or counted_in_transaction(layout, kind)
            ):
                # Its stored item has to be read, so it is written alone. Edges are written after all nodes, because
                # a node of the same chunk may count them.
                if isinstance(kind, EdgeType):
                    later.append(entity)
                else:
                    yield from _put_prepared(layout, entity)
                continue
            if isinstance(kind, NodeType) and counting_in_transaction(layout, kind):
                counting[place_of(layout.node_key(kind, node_id(entity)))] = entity
                continue
            if layout.rules.guards(kind) and isinstance(kind, NodeType):
                # BatchWriteItem takes no updates and no conditions, so these are single requests in one round.
                for item in written_items(layout, kind, entity):
                    alone[place_of(layout.key_of(item))] = put_request(layout, kind, item, None)
                continue
            items = written_items(layout, kind, entity)
            if id(entity) in filled and isinstance(kind, EdgeType):
                items = filled[id(entity)].on(layout, kind, items)
                refuse_copies(layout, kind, items[0])
            satellites = layout.satellites(kind, items, entity.__dict__)
            own = [Put(layout.table, revised(layout, kind, item)) for item in items]
            for write in (*own, *beside(layout, satellites, Claims())):
                if not isinstance(write, Check):
                    writes[write_place(layout, write)] = write
        yield from write_all(writes.values())
        if alone:
            yield from _put_alone(layout, list(alone.values()))
        for many in chunks(counting.values(), MAX_TRANSACTION // 2 * BATCHES_A_ROUND):
            yield from _put_counting(layout, many)
        for entity in later:
            yield from _put_prepared(layout, entity)
        yield from report_heat(layout)
        done += len(chunk)
        if progress is not None:
            progress(done)
    return done


def _filled(layout: BoundLayout, entities: Iterable[Any]) -> Plan[dict[int, Filling]]:
    """The copied fields of edges, by the identity of the edge, also from nodes of the same chunk.

    No check guards them: a batch takes no conditions. If a node changes meanwhile, its own change makes maintenance
    look at the edge again.
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
        return item | kept_fields(layout, kind, stored)

    made = yield from fillings(layout, edges, coming)
    return {id(entity): filling for (_, entity), filling in zip(edges, made, strict=True)}


def _put_counting(layout: BoundLayout, nodes: Sequence[Any]) -> Plan[None]:
    """Puts nodes with aggregates that are updated in transaction.

    Each transaction takes several nodes, each with a check that no edge waits for it.
    """
    transactions: list[list[Put | Update | Check]] = []
    room = 0
    for node in nodes:
        kind = layout.schema.node(type(node))
        for item in written_items(layout, kind, node):
            if not transactions or len(transactions[-1]) == MAX_TRANSACTION or item_size(item) > room:
                transactions.append([])
                room = MAX_TRANSACTION_SIZE
            room -= item_size(item)
            text = layout.node_text(kind, node_id(node))
            transactions[-1] += [put_request(layout, kind, item, None), unmarked(layout, text, None)]
    try:
        yield tuple(TransactWrite(tuple(writes)) for writes in transactions)
    except (TransactionCanceled, InvalidRequest):
        # Edges wait for one of the nodes, an immutable field would change, or the transaction is too large. Which node
        # it is does not matter: each is put by itself, and that either succeeds or says what is wrong.
        for node in nodes:
            yield from _put_prepared(layout, node)


def _put_alone(layout: BoundLayout, requests: list[Put | Update]) -> Plan[None]:
    try:
        yield tuple(requests)
    except ConditionFailed as failed:
        kind = layout.kind_of(dict(failed.item)) if failed.item is not None else None
        if kind is None or not layout.rules.immutable(kind):
            raise
        names = " or ".join(layout.rules.immutable(kind))
        name = _named(layout, layout.key_of(dict(failed.item or {})))
        raise InvalidValue(
            f"{kind.name}.{names} is immutable, and {name} already has another value; put it as it is stored"
        ) from None


def ends_lock(layout: BoundLayout, ends: Condition | None) -> Condition | None:
    """The condition for a delete of an edge with these ends: it does not exist any more, or has them."""
    return None if ends is None else Or((Not(layout.present), ends))


def edge_keys(layout: BoundLayout, kind: EdgeType, source: Any, target: Any, fields: Mapping[str, Any]) -> list[Item]:
    """The keys of an edge's items: one, or one per end if the edge is symmetric."""
    keys = [layout.edge_key(kind, source, target, fields)]
    if kind.symmetric and source != target:
        keys.append(layout.edge_key(kind, target, source, fields))
    return keys


def met(error: ConditionFailed | TransactionCanceled) -> Mapping[str, Any] | None:
    """The stored item for which a condition did not hold; None if there is no item."""
    if isinstance(error, ConditionFailed):
        return error.item
    return next((reason.item for reason in error.reasons if reason.is_failed_condition), None)


def not_held(kind: EntityType, name: str, error: ConditionFailed | TransactionCanceled) -> Exception:
    """The error to raise for a failed condition: it names the entity and its stored version."""
    if isinstance(error, TransactionCanceled) and not error.has_failed_condition:
        return error
    item = met(error)
    if item is None:
        return NotFound(f"there is no {name}; put it first")
    version = f" (its version is {item[stored]['N']})" if (stored := _version_attribute(kind)) in item else ""
    return ConditionFailed(f"the condition does not hold for {name}{version}; reload it and retry", item)


def _version_attribute(kind: EntityType) -> str:
    return kind.attributes[kind.version] if kind.version else ""
