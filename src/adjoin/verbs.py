"""What each call of a graph means: its arguments checked, and its plan.

Nothing is run here; `Graph` and `AsyncGraph` are two shells around this, and run the plans each in
their own way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from adjoin.cost import FanOut, Meter
from adjoin.errors import InvalidKey, InvalidRequest, InvalidValue
from adjoin.fields import Predicate
from adjoin.layouts.binding import bound_layout
from adjoin.layouts.interface import BoundLayout, Layout, Range
from adjoin.model import Edge, Node, Ref, node_id
from adjoin.plans import Plan
from adjoin.plans.copies import fans
from adjoin.plans.counted_deletion import delete
from adjoin.plans.find import Search, search
from adjoin.plans.maintenance.predicates import check_rules
from adjoin.plans.maintenance.ranks import check_room
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.maintenance.stream import Reading, maintain_step
from adjoin.plans.read import Question, edge, get, get_by, get_many
from adjoin.plans.shards import read_shard_maps, written
from adjoin.plans.table import drop_table, open_table
from adjoin.plans.transaction import Buffer
from adjoin.plans.update import identified, update
from adjoin.plans.write import add, connect, disconnect, put, put_many
from adjoin.queries.base import Context
from adjoin.requests import Request
from adjoin.schema import AnyEdge, EdgeType, Entity, NodeType, problems_in

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
        if cursor_secret is not None and not cursor_secret:
            raise InvalidValue("an empty cursor_secret signs nothing; give one, or None for tokens that are not signed")
        self._layout: BoundLayout = bound_layout(models, layout, table, tenant)
        check_rules(self._layout)
        check_room(self._layout)
        self._schema = self._layout.schema
        self._secret = cursor_secret.encode() if isinstance(cursor_secret, str) else cursor_secret or b""
        self._consistent = consistent
        self._tenant = tenant
        self._context = Context(self._layout, self._secret, self._run)

    @abstractmethod
    def _run(self, plan: Plan[Any]) -> Any:
        """Drives a plan; an asynchronous graph gives an awaitable of its result."""

    def meter(self) -> Meter:
        """Measures what the block consumes: `with g.meter() as m: ...`."""
        return Meter()

    def _consistency(self, asked: bool | None) -> bool:
        return self._consistent if asked is None else asked

    def _open_plan(self, creates_tables: bool) -> Plan[None]:
        yield from open_table(self._layout.definition, create=creates_tables)
        yield from read_shard_maps(self._layout)

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
        is_edge = isinstance(model, type) and issubclass(model, Edge)
        kind = self._schema.edge(model) if is_edge else self._schema.node(model)
        return search(self._layout, kind, predicate, order)

    def _get_many(self, model: type[N], ids: Iterable[Any], consistent: bool | None) -> Plan[list[N | None]]:
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

    def _put(self, entity: Entity, only_if: Predicate | None) -> Plan[None]:
        return written(self._layout, put(self._layout, entity, only_if))

    def _add(self, entity: Entity) -> Plan[None]:
        return written(self._layout, add(self._layout, entity))

    def _put_many(self, entities: Iterable[Any], progress: Callable[[int], None] | None) -> Plan[int]:
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
        try:
            return model.model_validate({**fields, "source": source, "target": target}, by_alias=True, by_name=True)
        except ValidationError as error:
            raise InvalidValue(f"this {kind.name} cannot be made: {problems_in(error)}") from None

    def _disconnect(self, model: type[E], source: Any, target: Any, key: dict[str, Any]) -> Plan[bool]:
        return disconnect(self._layout, *self._edge_parts(model, source, target, key))

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

    def _delete(self, what: Any, id: Any) -> Plan[bool]:
        match what:
            case type() if issubclass(what, Edge):
                raise InvalidValue(f"delete is for nodes; use disconnect({what.__name__}, source, target) for an edge")
            case type():
                model = what
            case Ref(model=model, id=id):
                pass
            case Node():
                model, id = type(what), node_id(what)
            case Edge():
                key = {name: getattr(what, name) for name in self._layout.key_fields(self._schema.edge(type(what)))}
                return self._disconnect(type(what), what.source, what.target, key)
            case _:
                raise InvalidValue(f"{what!r} cannot be deleted; pass a class and an id, a node, a ref or an edge")
        kind = self._schema.node(model)
        return delete(self._layout, kind, kind.id(id))

    def _fan_outs(self, requests: Sequence[Request]) -> list[FanOut]:
        return [
            FanOut(each.node, each.edge.name, each.fields, each.index, each.items, each.entries, each.others)
            for each in fans(self._layout, requests)
        ]

    def _maintain_step(self, reading: Reading, tally: Tally) -> Plan[bool]:
        return maintain_step(self._layout, reading, tally)

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
            raise InvalidValue(f"{x!r} does not say of which class it is; pass the node, or Model.ref(id)")
        if direction not in ("out", "into"):
            raise InvalidValue(f'a collection is read "out" of a node or "into" it, not {direction!r}')
        kind = self._schema.node(type(x) if isinstance(x, Node) else x.model)
        return self._question(self._layout.collection(kind, kind.id(x), arriving=direction == "into"), consistent)


def _or_by(kind: NodeType) -> str:
    return f" or by {' or '.join(kind.unique)}" if kind.unique else ""


class TransactionVerbs:
    """Writes that are collected and then happen together, 100 items at most."""

    def __init__(self, graph: Verbs) -> None:
        self._graph = graph
        self._buffer = Buffer(graph._layout)

    def _commit(self) -> Plan[None]:
        return written(self._graph._layout, self._buffer.commit())

    def put(self, entity: Entity, *, only_if: Predicate | None = None) -> None:
        self._buffer.put(entity, only_if)

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

    def disconnect(self, model: type[AnyEdge], source: Any, target: Any, /, **key: Any) -> None:
        self._buffer.disconnect(*self._graph._edge_parts(model, source, target, key))

    def delete(self, what: type[Node] | Node | Ref[Any], id: Any = None) -> None:
        """The node and every edge at it; they are looked up when the transaction is committed."""
        kind = self._graph._schema.node(what if isinstance(what, type) else getattr(what, "model", type(what)))
        self._buffer.delete(kind, kind.id(id if isinstance(what, type) else what))
