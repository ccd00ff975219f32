"""What each call of a graph means: this module checks its arguments and makes its plan.

Nothing runs here. `Graph` and `AsyncGraph` inherit from `Verbs` and run the plans, one by blocking
and the other by awaiting.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from decimal import Decimal
from functools import partial
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ValidationError

from adjoin.cost import Counting, Explanation, FanOut, Meter
from adjoin.entity_types import AnyEdge, EdgeType, Entity, EntityType, NodeType
from adjoin.errors import AdjoinError, InvalidKey, InvalidRequest, InvalidValue, shown
from adjoin.expressions import Condition, Not, Or, all_of
from adjoin.field_types import problems_in
from adjoin.fields import Predicate
from adjoin.layouts.adjacency_list import bound_layout
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Layout
from adjoin.layouts.ranges import Range
from adjoin.model import OWN_VERSION, Edge, IfVersion, Node, Ref, node_id
from adjoin.plans.copies import fans
from adjoin.plans.counted_deletion import delete_one_of
from adjoin.plans.counting.contributions import check_rules
from adjoin.plans.declared import DeclaredDifference, differences, open_record, record_indexes
from adjoin.plans.find import Search, search
from adjoin.plans.key_search import KeySearch, index_search
from adjoin.plans.maintenance.expected import expected
from adjoin.plans.maintenance.health import Health, health
from adjoin.plans.maintenance.ranks import check_room
from adjoin.plans.maintenance.standing import opened_standing
from adjoin.plans.maintenance.stream import Daemon
from adjoin.plans.migrating.completing import Fill
from adjoin.plans.migrating.passes import Migration
from adjoin.plans.migrating.planning import MigrationPlan, planned, wishes_of
from adjoin.plans.read import Question, edge, get, get_by, get_many
from adjoin.plans.scan import MAX_SEGMENTS, ScanQuestion
from adjoin.plans.shards import learn_number, number_of, open_shard_numbers, raise_shards, read_shard_maps, written
from adjoin.plans.table import drop_table, open_table
from adjoin.plans.transaction import Buffer
from adjoin.plans.update import identified, update
from adjoin.plans.versions import delete_lock
from adjoin.plans.write import add, connect, disconnect, put, put_many
from adjoin.queries import Context, whole_number
from adjoin.requests import DescribeTable, Plan, Request, TableResponse
from adjoin.values import check_range

T = TypeVar("T")
N = TypeVar("N", bound=Node)
E = TypeVar("E", bound=AnyEdge)

_log = logging.getLogger("adjoin")
_STREAM_LAG = 2.0
"""Seconds by which the change stream of DynamoDB may lag behind the table."""


class Verbs(ABC):
    """The common base of both graphs: the schema, the layout, and each call as a plan."""

    def __init__(
        self,
        models: Iterable[type[Any]],
        layout: Layout | None,
        table: str | None,
        cursor_secret: str | bytes | None,
        consistent: bool,
        tenant: str | None,
    ) -> None:
        if cursor_secret is not None and not isinstance(cursor_secret, str | bytes):
            raise InvalidValue(f"cursor_secret must be text or bytes, got {shown(cursor_secret)}")
        if cursor_secret is not None and not cursor_secret:
            raise InvalidValue("cursor_secret must not be empty; pass a secret, or None for unsigned page tokens")
        self._layout: BoundLayout = bound_layout(models, layout, table, tenant)
        check_rules(self._layout)
        check_room(self._layout)
        self._schema = self._layout.schema
        if isinstance(cursor_secret, str):
            # Environment variables may contain lone surrogates, which UTF-8 alone refuses.
            cursor_secret = cursor_secret.encode("utf-8", "surrogatepass")
        self._secret = cursor_secret or b""
        # `_consistency` reads the default for None, so there has to be one before the argument is checked.
        self._consistent = False
        self._consistent = self._consistency(consistent)
        self._tenant = tenant
        self._clock: Callable[[], float] = time.time
        self._context = Context(self._layout, self._secret, self._run)

    @abstractmethod
    def _run(self, plan: Plan[Any]) -> Any:
        """Runs a plan and returns its result; an asynchronous graph returns an awaitable of the result."""

    def meter(self) -> Meter:
        """Returns a meter that counts what a block consumes: `with g.meter() as m: ...`."""
        return Meter()

    def _consistency(self, asked: bool | None) -> bool:
        if asked is None:
            return self._consistent
        if not isinstance(asked, bool):
            raise InvalidValue(f"consistent must be True, False or None, got {shown(asked)}")
        return asked

    def _open_plan(self, creates_tables: bool, *, tells: bool = True) -> Plan[None]:
        """Opens the table. `tells`: whether it logs what is declared differently from what is recorded."""
        layout = self._layout
        opened = yield from open_table(layout.definition, create=creates_tables, adding=partial(record_indexes, layout))
        layout.due.learn_absent(opened.absent)
        if opened.absent:
            _log.warning("the table %r lacks %s; add them with create_table()", layout.table, _named(opened.absent))
        yield from open_shard_numbers(layout, is_new=opened.is_new)
        yield from read_shard_maps(layout)
        yield from opened_standing(layout)
        if opened.is_new or opened.described is not None:
            yield from open_record(layout, opened.described, tells=tells)

    def _differences(self) -> Plan[list[DeclaredDifference]]:
        return differences(self._layout)

    def _migration(
        self,
        fill: Mapping[str, Fill] | None,
        drop: Iterable[str],
        finish: bool,
        units: float | None,
        segments: int,
        lags: bool,
    ) -> Migration:
        if whole_number("segments", segments) > MAX_SEGMENTS:
            raise InvalidValue(f"segments must be at most {MAX_SEGMENTS}, got {shown(segments)}")
        return Migration(
            self._layout,
            fill=fill,
            drop=drop,
            finish=finish,
            units=units,
            segments=segments,
            lag=_STREAM_LAG if lags else 0.0,
            clock=self._clock,
        )

    def _planned(self, fill: Mapping[str, Fill] | None, drop: Iterable[str]) -> Plan[MigrationPlan]:
        wishes, removes = wishes_of(self._layout, fill or {}, drop, finish=True)
        return planned(self._layout, wishes, removes, sorted(self._layout.due.absent))

    def _maps_plan(self) -> Plan[None]:
        """Reads what a view of a tenant needs from an open table: shard maps, and which declarations were counted.

        It reads nothing if another view of the same tenant has just read it.
        """
        index = self._layout.overloaded
        if index is not None and any(map(index.book.is_stale, index.scopes)):
            yield from read_shard_maps(self._layout)
        if not self._layout.rules.is_told:
            yield from opened_standing(self._layout)

    def _raise_shards(self, index: str, number: int) -> Plan[None]:
        whole_number("number", number)
        known = number_of(self._layout, index)
        asked_at = known.clock()
        learn_number(known, (yield from raise_shards(self._layout, index, number)), asked_at)

    def _view(self, tenant: str) -> Self:
        """Returns the same graph for another tenant."""
        view = copy(self)
        view._tenant = tenant
        view._layout = self._layout.for_tenant(tenant)
        check_rules(view._layout)
        check_room(view._layout)
        view._context = Context(view._layout, view._secret, view._run)
        return view

    def _drop_plan(self) -> Plan[None]:
        if self._tenant is not None:
            raise InvalidRequest(
                f"this graph belongs to the tenant {self._tenant!r}, and other tenants share its table; "
                f"drop the table through a graph without a tenant"
            )
        return drop_table(self._layout.table)

    def _get(self, model: type[N], id: Any, unique: dict[str, Any], consistent: bool | None) -> Plan[N | None]:
        kind = self._schema.node(model)
        if not unique:
            if id is None:
                raise InvalidValue(f"get needs the id of the {kind.name}{_or_by(kind)}; pass it")
            return get(self._layout, kind, kind.id(id), self._consistency(consistent))
        if id is not None or len(unique) > 1:
            raise InvalidValue(f"get finds a {kind.name} by its id or by one unique field; pass only one of them")
        ((name, value),) = unique.items()
        # Raises for a name that is no field at all, with the closest one.
        kind.attribute(name)
        if name not in kind.unique:
            raise InvalidKey(
                f"{kind.name}.{name} is not unique, so several nodes may have this value; mark it with Unique(), or "
                f"use find"
            )
        return get_by(self._layout, kind, name, kind.coerced(name, value), self._consistency(consistent))

    def _search(
        self,
        model: type[Any],
        predicate: Predicate | None,
        order: str | None,
        index: str | None,
        consistent: bool | None,
    ) -> Search:
        if order is not None and not isinstance(order, str):
            raise InvalidValue(f"order must be the name of a field, got {shown(order)}")
        if index is not None and not isinstance(index, str):
            raise InvalidValue(f"index must be the name of an index, got {shown(index)}")
        found = search(self._layout, self._kind(model), predicate, order, index)
        is_consistent = self._index_consistency(consistent, found.index_in(self._layout))
        return found.with_(consistent=is_consistent) if isinstance(found, KeySearch) else found

    def _index_search(self, name: str, consistent: bool | None) -> KeySearch:
        if not isinstance(name, str):
            raise InvalidValue(f"index takes the name of an index, got {shown(name)}")
        found = index_search(self._layout, name)
        return found.with_(consistent=self._index_consistency(consistent, name))

    def _kind(self, model: type[Any]) -> EntityType:
        is_edge = isinstance(model, type) and issubclass(model, Edge)
        return self._schema.edge(model) if is_edge else self._schema.node(model)

    def _scan(
        self,
        model: type[Any] | None,
        segments: int,
        consistent: bool | None,
        progress: Callable[[int], None] | None,
    ) -> ScanQuestion:
        if whole_number("segments", segments) > MAX_SEGMENTS:
            raise InvalidValue(f"segments must be at most {MAX_SEGMENTS}, got {shown(segments)}")
        _check_progress(progress)
        kind = None if model is None else self._kind(model)
        return ScanQuestion(kind, self._layout.scan(kind), segments, self._consistency(consistent), progress)

    def _sized(self, explanation: Explanation) -> Plan[Explanation]:
        """Adds to the explanation of a scan how large the table is, if the store says so."""
        if not explanation.scans:
            return explanation
        described: TableResponse
        try:
            (described,) = yield (DescribeTable(self._layout.table),)
        except AdjoinError:
            return explanation.with_table(self._layout.table, None)
        return explanation.with_table(self._layout.table, described)

    def _get_many(self, model: type[N], ids: Iterable[Any], consistent: bool | None) -> Plan[list[N | None]]:
        if not isinstance(ids, Iterable):
            raise InvalidValue(f"get_many takes a list of ids, got {shown(ids)}; use get for a single id")
        return get_many(self._layout, self._schema.node(model), ids, self._consistency(consistent))

    def _edge_parts(
        self, model: type[E], source: Any, target: Any, key: dict[str, Any]
    ) -> tuple[EdgeType, Any, Any, dict[str, Any]]:
        kind = self._schema.edge(model)
        names = self._layout.key_fields(kind)
        if unknown := [name for name in key if name not in names]:
            raise InvalidValue(
                f"{unknown[0]!r} is not a key field of {kind.name}; pass only the two nodes and the key fields"
            )
        return kind, kind.source.id(source), kind.target.id(target), kind.key_values(names, key)

    def _edge(
        self, model: type[E], source: Any, target: Any, key: dict[str, Any], consistent: bool | None
    ) -> Plan[E | None]:
        return edge(self._layout, *self._edge_parts(model, source, target, key), self._consistency(consistent))

    def _written(self, plan: Plan[T]) -> Plan[T]:
        """Returns a plan that writes. With adaptive shards, the plan also reports its writes to the shard maps."""
        index = self._layout.overloaded
        return plan if index is None or not index.book.is_adaptive else written(self._layout, plan)

    def _put(self, entity: Entity, only_if: Predicate | None, if_version: IfVersion = OWN_VERSION) -> Plan[None]:
        return self._written(put(self._layout, entity, only_if, if_version))

    def _add(self, entity: Entity) -> Plan[None]:
        return self._written(add(self._layout, entity))

    def _put_many(self, entities: Iterable[Any], progress: Callable[[int], None] | None) -> Plan[int]:
        if isinstance(entities, BaseModel) or not isinstance(entities, Iterable):
            raise InvalidValue(
                f"put_many takes a list of nodes and edges, got {shown(entities)}; use put for a single one"
            )
        _check_progress(progress)
        return self._written(put_many(self._layout, entities, progress))

    def _connect(self, model: type[E], source: Any, target: Any, fields: dict[str, Any]) -> Plan[E]:
        made = self._made(model, source, target, fields)
        connected: E = yield from self._written(connect(self._layout, made))
        return connected

    def _made(self, model: type[E], source: Any, target: Any, fields: dict[str, Any]) -> E:
        kind = self._schema.edge(model)
        if model.model_config.get("extra") != "allow":
            # Pydantic ignores unknown fields by default, so a misspelled one would be lost without this check.
            for name in fields:
                if name not in kind.attributes.values():
                    kind.attribute(name)
        for value in fields.values():
            # Before pydantic sees it: making an int of Decimal("1E+999999999") would not end.
            if isinstance(value, Decimal):
                check_range(value)
        try:
            return model.model_validate({**fields, "source": source, "target": target}, by_alias=True, by_name=True)
        except ValidationError as error:
            raise InvalidValue(f"this {kind.name} is not valid: {problems_in(error)}") from None

    def _disconnect(
        self, model: type[E], source: Any, target: Any, key: dict[str, Any], if_version: int | None = None
    ) -> Plan[bool]:
        parts = self._edge_parts(model, source, target, key)
        return disconnect(self._layout, *parts, delete_lock(self._layout, parts[0], None, if_version))

    def _edge_to_delete(
        self, edge: AnyEdge, if_version: IfVersion
    ) -> tuple[EdgeType, Any, Any, dict[str, Any], Condition | None]:
        """Returns the class, the ends and the key fields of an edge, and the condition under which it is deleted."""
        kind = self._schema.edge(type(edge))
        key = {name: getattr(edge, name) for name in self._layout.key_fields(kind)}
        parts = self._edge_parts(type(edge), edge.source, edge.target, key)
        return *parts, delete_lock(self._layout, kind, edge, if_version)

    def _update(
        self,
        model: type[Any],
        ids: tuple[Any, ...],
        if_version: int | None,
        only_if: Predicate | None,
        changes: dict[str, Any],
    ) -> Plan[Any]:
        identity, rest = identified(self._layout, model, ids, changes)
        return self._written(update(self._layout, identity, rest, if_version, only_if))

    def _delete(self, what: Any, id: Any, if_version: IfVersion = OWN_VERSION, edges: str = "all") -> Plan[bool]:
        must_find = _must_find(edges)
        if isinstance(what, Edge):
            return disconnect(self._layout, *self._edge_to_delete(what, if_version))
        return delete_one_of(self._layout, *self._to_delete(what, id, if_version), must_find=must_find)

    def _to_delete(self, what: Any, id: Any, if_version: IfVersion) -> tuple[NodeType, Any, Condition | None]:
        """Returns the class and id of a node, and the condition under which it is deleted."""
        match what:
            case type() if issubclass(what, Edge):
                raise InvalidValue(
                    f"delete takes a class of nodes, got {what.__name__}; for an edge, use "
                    f"disconnect({what.__name__}, source, target)"
                )
            case type():
                model = what
            case Ref(model=model, id=id):
                pass
            case Node():
                model, id = type(what), node_id(what)
            case _:
                raise InvalidValue(f"delete takes a class and an id, a node, a ref or an edge, got {shown(what)}")
        kind = self._schema.node(model)
        entity = what if isinstance(what, Node) else None
        lock = delete_lock(self._layout, kind, entity, if_version)
        told = self._layout.told_apart(kind)
        if told is not None:
            lock = all_of(lock, Or((Not(self._layout.present), told)))
        return kind, kind.id(id), lock

    def _countings(self, requests: Sequence[Request]) -> list[Counting]:
        return [
            Counting(
                work.edge.name,
                work.fields,
                work.ledgers,
                work.ledger_bytes,
                work.checks,
                work.ranks,
                work.nodes,
                work.arrivals,
                tuple(edge.name for edge in work.above),
                work.entries,
                work.copies,
            )
            for work in expected(self._layout, requests)
        ]

    def _fan_outs(self, requests: Sequence[Request]) -> list[FanOut]:
        return [
            FanOut(fan.node, fan.edge.name, fan.fields, fan.index, fan.items, fan.entries, fan.others)
            for fan in fans(self._layout, requests)
        ]

    def _daemon(self, once: bool, every: float) -> Daemon:
        return Daemon(once=once, every=every, clock=self._clock)

    def _health(self) -> Plan[Health]:
        return health(self._layout, self._clock)

    def _question(self, range: Range, consistent: bool | None) -> Question:
        return Question(range, consistent=self._index_consistency(consistent, range.access.index))

    def _index_consistency(self, consistent: bool | None, name: str | None) -> bool:
        """Whether reads of the table (None) or of an index are strongly consistent."""
        is_consistent = self._consistency(consistent)
        if not is_consistent or name is None:
            return is_consistent
        index = self._layout.definition.index(name)
        is_local = index is not None and index.local
        if consistent and not is_local:
            raise InvalidValue(
                f"this query reads the index {name!r}, and DynamoDB has no consistent reads of global "
                f"indexes; leave consistent= out"
            )
        return is_local

    def _out(self, model: type[E], x: Any, consistent: bool | None) -> Question:
        kind = self._schema.edge(model)
        return self._question(self._layout.out(kind, kind.source.id(x)), consistent)

    def _into(self, model: type[E], x: Any, consistent: bool | None) -> Question:
        kind = self._schema.edge(model)
        return self._question(self._layout.into(kind, kind.target.id(x)), consistent)

    def _children(self, x: Any, model: type[N], consistent: bool | None) -> Question:
        kind = self._schema.node(model)
        if kind.parent is None:
            raise InvalidValue(
                f"children takes a class of children, and {kind.name} has no parent; declare it as "
                f"class {kind.name}(Child[Parent])"
            )
        return self._question(self._layout.children(kind, kind.parent.id(x)), consistent)

    def _collection(self, x: Node | Ref[Any], direction: str, consistent: bool | None) -> Question:
        if not isinstance(x, Node | Ref):
            raise InvalidValue(f"collection takes a node or a ref, got {shown(x)}; pass Model.ref(id) for an id")
        if direction not in ("out", "into"):
            raise InvalidValue(f'direction must be "out" or "into", got {shown(direction)}')
        kind = self._schema.node(type(x) if isinstance(x, Node) else x.model).whole
        return self._question(self._layout.collection(kind, kind.id(x), arriving=direction == "into"), consistent)


def _named(indexes: Iterable[str]) -> str:
    return f"the indexes {', '.join(map(repr, indexes))}"


def _check_progress(progress: Callable[[int], None] | None) -> None:
    if progress is not None and not callable(progress):
        raise InvalidValue(f"progress must be a function that takes a number, got {shown(progress)}")


def _must_find(edges: str) -> bool:
    """Whether a delete has to find all edges of its node."""
    if edges not in ("all", "found"):
        raise InvalidValue(f'edges must be "all" or "found", got {shown(edges)}')
    return edges == "all"


def _or_by(kind: NodeType) -> str:
    return f" or its {' or '.join(kind.unique)}" if kind.unique else ""


class TransactionVerbs:
    """The writes of a transaction: they are collected, and then applied together. DynamoDB takes 100 items at most."""

    def __init__(self, graph: Verbs) -> None:
        self._graph = graph
        self._all = Buffer(graph._layout)
        self._is_open: bool | None = None
        """True inside the block, False after it, None before it."""

    def _begin(self) -> Self:
        if self._is_open is not None:
            raise InvalidRequest("this transaction has already been used; start another one with transaction()")
        self._is_open = True
        return self

    def _commit(self) -> Plan[None]:
        return self._graph._written(self._all.commit())

    @property
    def _buffer(self) -> Buffer:
        """The buffer that collects the writes. After the block, nothing would write them, so it refuses them."""
        if not self._is_open:
            raise InvalidRequest(
                "a transaction takes writes only inside its block; use it as with graph.transaction() as t: t.put(…)"
            )
        return self._all

    def put(self, entity: Entity, *, only_if: Predicate | None = None, if_version: IfVersion = OWN_VERSION) -> None:
        """Writes a node or an edge. It replaces a stored one with the same key.

        The transaction is cancelled if `only_if` does not hold, or if the class has a `Version()` and the stored
        version is not that of the instance (or not `if_version`).
        """
        self._buffer.put(entity, only_if, if_version)

    def add(self, entity: Entity) -> None:
        """Writes a new node or edge. The transaction is cancelled if one with the same key is stored."""
        self._buffer.add(entity)

    def update(
        self,
        model: type[Any],
        /,
        *ids: Any,
        if_version: int | None = None,
        only_if: Predicate | None = None,
        **changes: Any,
    ) -> None:
        """Changes the named fields of a node (one id) or an edge (source and target).

        The transaction is cancelled if the node or edge does not exist, if it has another version than `if_version`,
        or if `only_if` does not hold.
        """
        self._buffer.update(model, ids, changes, if_version, only_if)

    def connect(self, model: type[E], source: Any, target: Any, /, **fields: Any) -> E:
        """Creates an edge between two nodes, and returns it.

        The transaction is cancelled if one of the nodes does not exist, or if the edge already exists. A node that
        the same transaction writes counts as existing.
        """
        made = self._graph._made(model, source, target, fields)
        self._buffer.connect(made)
        return made

    def disconnect(
        self, model: type[AnyEdge], source: Any, target: Any, /, *, if_version: int | None = None, **key: Any
    ) -> None:
        """Deletes an edge. The transaction is cancelled if the stored edge has another version than `if_version`."""
        parts = self._graph._edge_parts(model, source, target, key)
        self._buffer.disconnect(*parts, delete_lock(self._graph._layout, parts[0], None, if_version))

    def delete(
        self,
        what: type[Node] | Entity | Ref[Any],
        id: Any = None,
        *,
        if_version: IfVersion = OWN_VERSION,
        edges: str = "all",
    ) -> None:
        """Deletes a node with all its edges, or one edge. The edges are looked up when the transaction is committed.

        The transaction is cancelled if the class has a `Version()` and the stored version is not that of the instance
        (or not `if_version`). `edges="found"` leaves edges that neither keys nor indexes can find.
        """
        must_find = _must_find(edges)
        if isinstance(what, Edge):
            self._buffer.disconnect(*self._graph._edge_to_delete(what, if_version))
            return
        kind, id, lock = self._graph._to_delete(what, id, if_version)
        self._buffer.delete(kind.whole, id, lock, must_find=must_find)
