"""Writing: one node or edge, many, and changes of fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from adjoin.errors import AlreadyExists, ConditionFailed, InvalidValue, NotFound, TransactionCanceled, UnknownField
from adjoin.expressions import Compare, Condition, Exists, Not, Or, Value, all_of, attribute
from adjoin.fields import Predicate
from adjoin.layouts.interface import DELETING, BoundLayout
from adjoin.model import Edge, Node, node_id
from adjoin.plans import Plan
from adjoin.plans.batches import BATCHES_A_ROUND, Place, chunks, place_of, write_all
from adjoin.plans.conditions import bounds, condition, update_actions
from adjoin.plans.deletion import visible
from adjoin.plans.read import edge as read_edge
from adjoin.requests import Check, Delete, ItemResponse, Put, TransactWrite, Update
from adjoin.schema import AnyEdge, EdgeType, Entity, EntityType, unknown_field
from adjoin.units import MAX_BATCH_WRITE
from adjoin.values import Item


def described(entity: Entity) -> str:
    """How messages name a node or an edge."""
    if isinstance(entity, Node):
        return f"{type(entity).__name__} {node_id(entity)!r}"
    return f"{type(entity).__name__} from {entity.source!r} to {entity.target!r}"


def kind_of(layout: BoundLayout, entity: Any) -> EntityType:
    if isinstance(entity, Node):
        return layout.schema.node(type(entity))
    if isinstance(entity, Edge):
        return layout.schema.edge(type(entity))
    raise InvalidValue(f"{entity!r} is neither a node nor an edge; pass an instance of a class of this graph")


def absent(layout: BoundLayout) -> Condition:
    return Not(layout.present)


# --- whole nodes and edges ---------------------------------------------------------------------


def put(layout: BoundLayout, entity: Entity, only_if: Predicate | None = None) -> Plan[None]:
    kind = kind_of(layout, entity)
    wanted = None if only_if is None else condition(layout, kind, only_if)
    puts = tuple(Put(layout.table, item, wanted) for item in layout.items(entity))
    try:
        yield puts if len(puts) == 1 else (TransactWrite(puts),)
    except (ConditionFailed, TransactionCanceled) as error:
        raise _not_held(kind, described(entity), error) from None


def add(layout: BoundLayout, entity: Entity, checks: tuple[Check, ...] = ()) -> Plan[None]:
    """Writes what must not be there yet; `checks` must hold too, in the same transaction."""
    kind_of(layout, entity)
    wanted = absent(layout)
    while True:
        puts = tuple(Put(layout.table, item, wanted) for item in layout.items(entity))
        try:
            yield puts if len(puts) == 1 and not checks else (TransactWrite((*checks, *puts)),)
            return
        except ConditionFailed as failed:
            in_the_way = [failed.item]
        except TransactionCanceled as canceled:
            _raise_missing(checks, canceled)
            in_the_way = [reason.item for reason in canceled.reasons[len(checks) :] if _failed(reason.code)]
            if not in_the_way:
                raise
        left = [dict(item) for item in in_the_way if item is not None and DELETING in item]
        if len(left) < len(in_the_way) or (yield from visible(layout, left)):
            raise AlreadyExists(f"{described(entity)} is there already; use put to replace it, or update to change it")
        # Nobody sees what is left of an edge whose node was deleted: it may be overwritten.
        marks = tuple(Compare("=", attribute(DELETING), Value(item[DELETING])) for item in left)
        wanted = Or((absent(layout), *marks))


def _failed(code: str) -> bool:
    return code == "ConditionalCheckFailed"


def _raise_missing(checks: tuple[Check, ...], canceled: TransactionCanceled) -> None:
    for check, reason in zip(checks, canceled.reasons, strict=False):
        if _failed(reason.code):
            key = place_of(check.key)[0]
            raise NotFound(f"there is no node {key!r} to connect; put it first, or put the edge itself unchecked")


def connect(layout: BoundLayout, entity: AnyEdge) -> Plan[None]:
    """Adds an edge if both its ends are there, all in one transaction."""
    kind = layout.schema.edge(type(entity))
    yield from add(layout, entity, end_checks(layout, kind, entity))


def end_checks(layout: BoundLayout, kind: EdgeType, entity: AnyEdge) -> tuple[Check, ...]:
    keys = [layout.node_key(kind.source, entity.source), layout.node_key(kind.target, entity.target)]
    if keys[0] == keys[1]:
        keys.pop()
    return tuple(Check(layout.table, key, layout.present) for key in keys)


def put_many(layout: BoundLayout, entities: Iterable[Any], progress: Callable[[int], None] | None = None) -> Plan[int]:
    """Writes any number in rounds of batches; of two for one key, the later one stays."""
    done = 0
    for some in chunks(entities, MAX_BATCH_WRITE * BATCHES_A_ROUND):
        puts: dict[Place, Put] = {}
        for entity in some:
            kind_of(layout, entity)
            for item in layout.items(entity):
                puts[place_of(layout.key_of(item))] = Put(layout.table, item)
        yield from write_all(puts.values())
        done += len(some)
        if progress is not None:
            progress(done)
    return done


def disconnect(layout: BoundLayout, kind: EdgeType, source: Any, target: Any, fields: Mapping[str, Any]) -> Plan[bool]:
    keys = edge_keys(layout, kind, source, target, fields)
    if len(keys) > 1:
        return (yield from _disconnect_both(layout, keys))
    response: ItemResponse
    (response,) = yield (Delete(layout.table, keys[0], return_old=True),)
    if response.item is None:
        return False
    return bool((yield from visible(layout, [response.item])))


def _disconnect_both(layout: BoundLayout, keys: list[Item]) -> Plan[bool]:
    try:
        yield (TransactWrite(tuple(Delete(layout.table, key, layout.present) for key in keys)),)
    except TransactionCanceled as canceled:
        failed = [_failed(reason.code) for reason in canceled.reasons]
        if not any(failed):
            raise
        if not all(failed):
            # Half of an edge, left by somebody who wrote one side only.
            yield (TransactWrite(tuple(Delete(layout.table, key) for key in keys)),)
        return False
    return True


def edge_keys(layout: BoundLayout, kind: EdgeType, source: Any, target: Any, fields: Mapping[str, Any]) -> list[Item]:
    """Where an edge is stored: once, or at both ends if it is symmetric."""
    keys = [layout.edge_key(kind, source, target, fields)]
    if kind.symmetric and source != target:
        keys.append(layout.edge_key(kind, target, source, fields))
    return keys


# --- changes of fields -------------------------------------------------------------------------


@dataclass(frozen=True)
class Identity:
    """Which node or edge is meant: its class, its keys, and the values that make them."""

    kind: EntityType
    keys: list[Item]
    values: list[dict[str, Any]]
    name: str


def identified(
    layout: BoundLayout, model: type[Any], ids: tuple[Any, ...], fields: Mapping[str, Any]
) -> tuple[Identity, dict[str, Any]]:
    """What ids and key fields name, and the fields that are left over."""
    if isinstance(model, type) and issubclass(model, Edge):
        return _identified_edge(layout, layout.schema.edge(model), ids, fields)
    kind = layout.schema.node(model)
    if len(ids) != 1:
        raise InvalidValue(f"a {kind.name} is named by one id, and {len(ids)} were given")
    id = kind.id(ids[0])
    named = Identity(kind, [layout.node_key(kind, id)], [{"id": id}], f"{kind.name} {id!r}")
    return named, dict(fields)


def _identified_edge(
    layout: BoundLayout, kind: EdgeType, ids: tuple[Any, ...], fields: Mapping[str, Any]
) -> tuple[Identity, dict[str, Any]]:
    if len(ids) != 2:
        raise InvalidValue(f"a {kind.name} is named by its source and its target; {len(ids)} ids were given")
    source, target = kind.source.id(ids[0]), kind.target.id(ids[1])
    names = layout.key_fields(kind)
    own = kind.key_values(names, fields)
    rest = {name: value for name, value in fields.items() if name not in names}
    ends = [(source, target), (target, source)]
    keys = edge_keys(layout, kind, source, target, own)
    values = [{**own, "source.id": one, "target.id": other} for one, other in ends[: len(keys)]]
    return Identity(kind, keys, values, f"{kind.name} from {source!r} to {target!r}"), rest


def update(
    layout: BoundLayout,
    identity: Identity,
    changes: Mapping[str, Any],
    if_version: int | None = None,
    only_if: Predicate | None = None,
) -> Plan[Any]:
    """The node or edge after the change; an edge that a delete has hidden counts as not there."""
    unmarked = Not(Exists(attribute(DELETING))) if isinstance(identity.kind, EdgeType) else None
    try:
        return (yield from _updated(layout, identity, changes, if_version, only_if, unmarked))
    except (ConditionFailed, TransactionCanceled) as error:
        item = _met(error)
        if item is None or DELETING not in item:
            raise _not_held(identity.kind, identity.name, error) from None
    if not (yield from visible(layout, [dict(item)])):
        raise NotFound(f"there is no {identity.name}; put it first")
    try:
        return (yield from _updated(layout, identity, changes, if_version, only_if, None))
    except (ConditionFailed, TransactionCanceled) as error:
        raise _not_held(identity.kind, identity.name, error) from None


def _updated(
    layout: BoundLayout,
    identity: Identity,
    changes: Mapping[str, Any],
    if_version: int | None,
    only_if: Predicate | None,
    also: Condition | None,
) -> Plan[Any]:
    updates = update_requests(layout, identity, changes, if_version, only_if, also)
    if len(updates) == 1:
        response: ItemResponse
        (response,) = yield updates
        return response.item and layout.decode(identity.kind, response.item)
    yield (TransactWrite(updates),)
    ends = identity.values[0]
    assert isinstance(identity.kind, EdgeType)
    return (yield from read_edge(layout, identity.kind, ends["source.id"], ends["target.id"], ends, True))


def update_requests(
    layout: BoundLayout,
    identity: Identity,
    changes: Mapping[str, Any],
    if_version: int | None,
    only_if: Predicate | None,
    also: Condition | None = None,
) -> tuple[Update, ...]:
    kind = identity.kind
    if not changes:
        raise InvalidValue(f"no field of {identity.name} was given to change; pass them by name")
    for name in ("source", "target") if isinstance(kind, EdgeType) else ("id",):
        if name in changes:
            raise InvalidValue(
                f"{name!r} of {identity.name} is its key and cannot change; put a new one and delete this"
            )
    unknown = [name for name in changes if name not in kind.attributes]
    if unknown:
        raise UnknownField(unknown_field(kind.name, unknown[0], kind.attributes))
    wanted = all_of(
        layout.present,
        _version_is(kind, if_version),
        bounds(kind, changes),
        None if only_if is None else condition(layout, kind, only_if),
        also,
    )
    return tuple(
        Update(layout.table, key, update_actions(layout, kind, values, changes), wanted, "new")
        for key, values in zip(identity.keys, identity.values, strict=True)
    )


def _version_is(kind: EntityType, version: int | None) -> Condition | None:
    if version is None:
        return None
    if kind.version is None:
        raise InvalidValue(
            f"{kind.name} has no version to compare with; declare a field version: int = 0, "
            f"or mark an int field with Version()"
        )
    path = attribute(kind.attribute(kind.version))
    equal = Compare("=", path, Value({"N": str(version)}))
    # An item that another program wrote without a version counts as version 0.
    return Or((equal, Not(Exists(path)))) if version == 0 else equal


def _met(error: ConditionFailed | TransactionCanceled) -> Mapping[str, Any] | None:
    """The item for which a condition did not hold."""
    if isinstance(error, ConditionFailed):
        return error.item
    return next((reason.item for reason in error.reasons if _failed(reason.code)), None)


def _not_held(kind: EntityType, name: str, error: ConditionFailed | TransactionCanceled) -> Exception:
    if isinstance(error, TransactionCanceled) and not any(_failed(reason.code) for reason in error.reasons):
        return error
    item = _met(error)
    if item is None:
        return NotFound(f"there is no {name}; put it first")
    version = f" (its version is {item[stored]['N']})" if (stored := _version_attribute(kind)) in item else ""
    return ConditionFailed(f"the condition does not hold for {name}{version}; read it again and decide anew", item)


def _version_attribute(kind: EntityType) -> str:
    return kind.attributes[kind.version] if kind.version else ""
