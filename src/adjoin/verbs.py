"""What each call of a graph means: its arguments checked, and its plan.

Nothing is run here; `Graph` and `AsyncGraph` are two shells around this, and run the plans each in
their own way.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from decimal import Decimal
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ValidationError

from adjoin.cost import Counting, FanOut, Meter
from adjoin.errors import InvalidKey, InvalidRequest, InvalidValue, shown
from adjoin.expressions import Condition
from adjoin.fields import Predicate
from adjoin.layouts.binding import bound_layout
from adjoin.layouts.interface import BoundLayout, Layout, Range
from adjoin.model import OWN_VERSION, Edge, IfVersion, Node, Ref, node_id
from adjoin.plans import Plan
from adjoin.plans.copies import fans
from adjoin.plans.counted_deletion import delete
from adjoin.plans.find import Search, search
from adjoin.plans.maintenance.daemon import Daemon
from adjoin.plans.maintenance.expected import expected
from adjoin.plans.maintenance.health import Health, health
from adjoin.plans.maintenance.predicates import check_rules
from adjoin.plans.maintenance.ranks import check_room
from adjoin.plans.maintenance.standing import opened_standing
from adjoin.plans.read import Question, edge, get, get_by, get_many
from adjoin.plans.shards import read_shard_maps, written
from adjoin.plans.table import drop_table, open_table
from adjoin.plans.transaction import Buffer
from adjoin.plans.update import identified, update
from adjoin.plans.versions import delete_lock
from adjoin.plans.write import add, connect, disconnect, put, put_many
from adjoin.queries.base import Context
from adjoin.requests import Request
from adjoin.schema import AnyEdge, EdgeType, Entity, NodeType, problems_in
from adjoin.values import check_range

N = TypeVar("N", bound=Node)
E = TypeVar("E", bound=AnyEdge)


class Verbs(ABC):
    """What both graphs are made of: the schema, the layout, and each verb as a plan."""

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
            raise InvalidValue(f"{shown(cursor_secret)} cannot sign page tokens; give a cursor_secret of text or bytes")
        if cursor_secret is not None and not cursor_secret:
            raise InvalidValue("an empty cursor_secret signs nothing; give one, or None for tokens that are not signed")
        self._layout: BoundLayout = bound_layout(models, layout, table, tenant)
        check_rules(self._layout)
        check_room(self._layout)
        self._schema = self._layout.schema
        if isinstance(cursor_secret, str):
            cursor_secret = cursor_secret.encode("utf-8", "surrogatepass")
        self._secret = cursor_secret or b""
        self._consistent = False
        self._consistent = self._consistency(consistent)
        self._tenant = tenant
        self._clock: Callable[[], float] = time.time
        self._context = Context(self._layout, self._secret, self._run)

    @abstractmethod
    def _run(self, plan: Plan[Any]) -> Any:
        """Drives a plan; an asynchronous graph gives an awaitable of its result."""

    def meter(self) -> Meter:
        """Measures what the block consumes: `with g.meter() as m: ...`."""
        return Meter()

    def _consistency(self, asked: bool | None) -> bool:
        if asked is None:
            return self._consistent
        if not isinstance(asked, bool):
            raise InvalidValue(f"{shown(asked)} does not say how to read; consistent is True, False or None")
        return asked

    def _open_plan(self, creates_tables: bool) -> Plan[None]:
        yield from open_table(self._layout.definition, create=creates_tables)
        yield from read_shard_maps(self._layout)
        yield from opened_standing(self._layout)

    def _maps_plan(self) -> Plan[None]:
        """What a view of a tenant has to know of a table that is open; nothing, if another view learned it just now."""
        index = self._layout.overloaded
        if index is not None and any(map(index.book.is_stale, index.scopes)):
            yield from read_shard_maps(self._layout)
        if not self._layout.rules.is_told:
            yield from opened_standing(self._layout)

    def _view(self, tenant: str) -> Self:
        """The same graph for another tenant."""
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
                f"this graph is of the tenant {self._tenant!r}, and the table holds others too; "
                f"drop it through a graph without a tenant"
            )
        return drop_table(self._layout.table)

    def _get(self, model: type[N], id: Any, unique: dict[str, Any], consistent: bool | None) -> Plan[N | None]:
        kind = self._schema.node(model)
        if not unique:
            if id is None:
                raise InvalidValue(f"a {kind.name} is found by its id{_or_by(kind)}; pass it")
            return get(self._layout, kind, kind.id(id), self._consistency(consistent))
        if id is not None or len(unique) > 1:
            raise InvalidValue(f"a {kind.name} is found by its id or by one unique field; pass one of them")
        ((name, value),) = unique.items()
        kind.attribute(name)
        if name not in kind.unique:
            raise InvalidKey(
                f"{kind.name}.{name} is not unique, so it may name several; mark it with Unique(), or find"
            )
        return get_by(self._layout, kind, name, kind.coerced(name, value), self._consistency(consistent))

    def _search(self, model: type[Any], predicate: Predicate | None, order: str | None) -> Search:
        if order is not None and not isinstance(order, str):
            raise InvalidValue(f"{shown(order)} does not name a field to order by; give its name as text")
        is_edge = isinstance(model, type) and issubclass(model, Edge)
        kind = self._schema.edge(model) if is_edge else self._schema.node(model)
        return search(self._layout, kind, predicate, order)

    def _get_many(self, model: type[N], ids: Iterable[Any], consistent: bool | None) -> Plan[list[N | None]]:
        if not isinstance(ids, Iterable):
            raise InvalidValue(f"{shown(ids)} is not several ids; pass them in a list, or one of them to get")
        return get_many(self._layout, self._schema.node(model), ids, self._consistency(consistent))

    def _edge_parts(
        self, model: type[E], source: Any, target: Any, key: dict[str, Any]
    ) -> tuple[EdgeType, Any, Any, dict[str, Any]]:
        kind = self._schema.edge(model)
        names = self._layout.key_fields(kind)
        if unknown := [name for name in key if name not in names]:
            raise InvalidValue(f"{unknown[0]!r} is no key field of {kind.name}; an edge is named by its ends and key")
        return kind, kind.source.id(source), kind.target.id(target), kind.key_values(names, key)

    def _edge(
        self, model: type[E], source: Any, target: Any, key: dict[str, Any], consistent: bool | None
    ) -> Plan[E | None]:
        return edge(self._layout, *self._edge_parts(model, source, target, key), self._consistency(consistent))

    def _put(self, entity: Entity, only_if: Predicate | None, if_version: IfVersion = OWN_VERSION) -> Plan[None]:
        return written(self._layout, put(self._layout, entity, only_if, if_version))

    def _add(self, entity: Entity) -> Plan[None]:
        return written(self._layout, add(self._layout, entity))

    def _put_many(self, entities: Iterable[Any], progress: Callable[[int], None] | None) -> Plan[int]:
        if isinstance(entities, BaseModel) or not isinstance(entities, Iterable):
            raise InvalidValue(f"{shown(entities)} is not several nodes or edges; pass them in a list, or one to put")
        if progress is not None and not callable(progress):
            raise InvalidValue(f"{shown(progress)} cannot be told of progress; pass a function of a number")
        return written(self._layout, put_many(self._layout, entities, progress))

    def _connect(self, model: type[E], source: Any, target: Any, fields: dict[str, Any]) -> Plan[E]:
        made = self._made(model, source, target, fields)
        connected: E = yield from written(self._layout, connect(self._layout, made))
        return connected

    def _made(self, model: type[E], source: Any, target: Any, fields: dict[str, Any]) -> E:
        kind = self._schema.edge(model)
        if model.model_config.get("extra") != "allow":
            for name in fields:
                if name not in kind.attributes.values():
                    kind.attribute(name)
        for value in fields.values():
            if isinstance(value, Decimal):
                check_range(value)
        try:
            return model.model_validate({**fields, "source": source, "target": target}, by_alias=True, by_name=True)
        except ValidationError as error:
            raise InvalidValue(f"this {kind.name} cannot be made: {problems_in(error)}") from None

    def _disconnect(
        self, model: type[E], source: Any, target: Any, key: dict[str, Any], if_version: int | None = None
    ) -> Plan[bool]:
        parts = self._edge_parts(model, source, target, key)
        return disconnect(self._layout, *parts, delete_lock(self._layout, parts[0], None, if_version))

    def _disconnect_one(self, edge: AnyEdge, if_version: IfVersion) -> Plan[bool]:
        kind = self._schema.edge(type(edge))
        key = {name: getattr(edge, name) for name in self._layout.key_fields(kind)}
        parts = self._edge_parts(type(edge), edge.source, edge.target, key)
        return disconnect(self._layout, *parts, delete_lock(self._layout, kind, edge, if_version))

    def _update(
        self,
        model: type[Any],
        ids: tuple[Any, ...],
        if_version: int | None,
        only_if: Predicate | None,
        changes: dict[str, Any],
    ) -> Plan[Any]:
        identity, rest = identified(self._layout, model, ids, changes)
        return written(self._layout, update(self._layout, identity, rest, if_version, only_if))

    def _delete(self, what: Any, id: Any, if_version: IfVersion = OWN_VERSION) -> Plan[bool]:
        if isinstance(what, Edge):
            return self._disconnect_one(what, if_version)
        kind, id, lock = self._to_delete(what, id, if_version)
        return delete(self._layout, kind, id, lock)

    def _to_delete(self, what: Any, id: Any, if_version: IfVersion) -> tuple[NodeType, Any, Condition | None]:
        """The class and id of a node, and what must hold for it to be deleted."""
        match what:
            case type() if issubclass(what, Edge):
                raise InvalidValue(f"delete is for nodes; use disconnect({what.__name__}, source, target) for an edge")
            case type():
                model = what
            case Ref(model=model, id=id):
                pass
            case Node():
                model, id = type(what), node_id(what)
            case _:
                raise InvalidValue(f"{shown(what)} cannot be deleted; pass a class and an id, a node, a ref or an edge")
        kind = self._schema.node(model)
        entity = what if isinstance(what, Node) else None
        return kind, kind.id(id), delete_lock(self._layout, kind, entity, if_version)

    def _countings(self, requests: Sequence[Request]) -> list[Counting]:
        return [
            Counting(
                each.edge.name,
                each.fields,
                each.ledgers,
                each.ledger_bytes,
                each.checks,
                each.ranks,
                each.nodes,
                each.arrivals,
                tuple(edge.name for edge in each.above),
            )
            for each in expected(self._layout, requests)
        ]

    def _fan_outs(self, requests: Sequence[Request]) -> list[FanOut]:
        return [
            FanOut(each.node, each.edge.name, each.fields, each.index, each.items, each.entries, each.others)
            for each in fans(self._layout, requests)
        ]

    def _daemon(self, once: bool, every: float) -> Daemon:
        return Daemon(once=once, every=every, clock=self._clock)

    def _health(self) -> Plan[Health]:
        return health(self._layout, self._clock)

    def _question(self, range: Range, consistent: bool | None) -> Question:
        asked = self._consistency(consistent)
        if consistent and range.access.index is not None:
            raise InvalidValue(
                f"what is read from the index {range.access.index!r} is eventually consistent; DynamoDB has no other"
            )
        return Question(range, consistent=asked and range.access.index is None)

    def _out(self, model: type[E], x: Any, consistent: bool | None) -> Question:
        kind = self._schema.edge(model)
        return self._question(self._layout.out(kind, kind.source.id(x)), consistent)

    def _into(self, model: type[E], x: Any, consistent: bool | None) -> Question:
        kind = self._schema.edge(model)
        return self._question(self._layout.into(kind, kind.target.id(x)), consistent)

    def _collection(self, x: Node | Ref[Any], direction: str, consistent: bool | None) -> Question:
        if not isinstance(x, Node | Ref):
            raise InvalidValue(f"{shown(x)} does not say of which class it is; pass the node, or Model.ref(id)")
        if direction not in ("out", "into"):
            raise InvalidValue(f'a collection is read "out" of a node or "into" it, not {shown(direction)}')
        kind = self._schema.node(type(x) if isinstance(x, Node) else x.model)
        return self._question(self._layout.collection(kind, kind.id(x), arriving=direction == "into"), consistent)


def _or_by(kind: NodeType) -> str:
    return f" or by {' or '.join(kind.unique)}" if kind.unique else ""


class TransactionVerbs:
    """Writes that are collected and then happen together, 100 items at most."""

    def __init__(self, graph: Verbs) -> None:
        self._graph = graph
        self._all = Buffer(graph._layout)
        self._is_open: bool | None = None
        """Whether writes are taken; None before the block."""

    def _begin(self) -> Self:
        if self._is_open is not None:
            raise InvalidRequest("a transaction has one block, and this one was used; start another with transaction()")
        self._is_open = True
        return self

    def _commit(self) -> Plan[None]:
        return written(self._graph._layout, self._all.commit())

    @property
    def _buffer(self) -> Buffer:
        """Where writes go. Outside the block nobody would ever write them."""
        if not self._is_open:
            raise InvalidRequest(
                "a transaction takes writes inside its block only; write with graph.transaction() as t: t.put(…)"
            )
        return self._all

    def put(self, entity: Entity, *, only_if: Predicate | None = None, if_version: IfVersion = OWN_VERSION) -> None:
        """Cancels the transaction if what is there has another version than the instance, where its class has one."""
        self._buffer.put(entity, only_if, if_version)

    def add(self, entity: Entity) -> None:
        """Cancels the transaction if it is there already."""
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
        """Cancels the transaction if it is not there."""
        self._buffer.update(model, ids, changes, if_version, only_if)

    def connect(self, model: type[E], source: Any, target: Any, /, **fields: Any) -> E:
        """Cancels the transaction if an end is not there, or the edge is."""
        made = self._graph._made(model, source, target, fields)
        self._buffer.connect(made)
        return made

    def disconnect(
        self, model: type[AnyEdge], source: Any, target: Any, /, *, if_version: int | None = None, **key: Any
    ) -> None:
        """Cancels the transaction if the edge has another version than the one given."""
        parts = self._graph._edge_parts(model, source, target, key)
        self._buffer.disconnect(*parts, delete_lock(self._graph._layout, parts[0], None, if_version))

    def delete(
        self, what: type[Node] | Node | Ref[Any], id: Any = None, *, if_version: IfVersion = OWN_VERSION
    ) -> None:
        """The node and every edge at it; they are looked up when the transaction is committed."""
        self._buffer.delete(*self._graph._to_delete(what, id, if_version))
