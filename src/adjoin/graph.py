"""`Graph` and `AsyncGraph`: two thin shells over the same plans, side by side.

What a call means, its arguments and its plan, stands once, in `_Verbs`; the shells only run plans,
one by waiting and one by awaiting.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from inspect import isawaitable
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from pydantic import BaseModel, ValidationError

from adjoin.cost import Explanation, Meter, Rehearsing
from adjoin.errors import InvalidValue
from adjoin.fields import Predicate
from adjoin.layouts.adjacency_list import AdjacencyList
from adjoin.layouts.interface import BoundLayout, Layout, Range
from adjoin.model import Edge, Node, Ref, node_id
from adjoin.plans import Plan
from adjoin.plans.changes import Change, read_changes
from adjoin.plans.deletion import delete_node
from adjoin.plans.read import Question, edge, get, get_many
from adjoin.plans.table import drop_table, open_table
from adjoin.plans.transaction import Buffer
from adjoin.plans.write import add, connect, disconnect, identified, put, put_many, update
from adjoin.queries import (
    AsyncCollectionQuery,
    AsyncEdgeQuery,
    AsyncPairQuery,
    CollectionQuery,
    Context,
    EdgeQuery,
    PairQuery,
)
from adjoin.runner import run, run_async, unwatched
from adjoin.schema import AnyEdge, EdgeType, Entity, Schema, problems_in
from adjoin.stores.interface import AsyncStore, Store
from adjoin.stores.locations import open_async_store, open_store
from adjoin.units import MAX_CHANGES

N = TypeVar("N", bound=Node)
E = TypeVar("E", bound=AnyEdge)
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class _Verbs(ABC):
    """What both graphs are made of: the schema, the layout, and each verb as a plan."""

    def __init__(
        self,
        models: Iterable[type[Any]],
        layout: Layout | None,
        cursor_secret: str | bytes | None,
        consistent: bool,
    ) -> None:
        self._schema = Schema(models)
        self._layout: BoundLayout = (layout or AdjacencyList()).bind(self._schema)
        self._secret = cursor_secret.encode() if isinstance(cursor_secret, str) else cursor_secret or b""
        self._consistent = consistent
        self._context = Context(self._layout, self._secret, self._run)

    @abstractmethod
    def _run(self, plan: Plan[Any]) -> Any:
        """Drives a plan; an asynchronous graph gives an awaitable of its result."""

    def meter(self) -> Meter:
        """Measures what the block consumes: `with g.meter() as m: ...`."""
        return Meter()

    def _consistency(self, asked: bool | None) -> bool:
        return self._consistent if asked is None else asked

    def _get(self, model: type[N], id: Any, consistent: bool | None) -> Plan[N | None]:
        kind = self._schema.node(model)
        return get(self._layout, kind, kind.id(id), self._consistency(consistent))

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

    def _connect(self, model: type[E], source: Any, target: Any, fields: dict[str, Any]) -> Plan[E]:
        made = self._made(model, source, target, fields)
        yield from connect(self._layout, made)
        return made

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
        return update(self._layout, identity, rest, if_version, only_if)

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
        return delete_node(self._layout, kind, kind.id(id))

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


class _TransactionVerbs:
    """Writes that are collected and then happen together, 100 items at most."""

    def __init__(self, graph: _Verbs) -> None:
        self._graph = graph
        self._buffer = Buffer(graph._layout)

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


# --- for programs that wait --------------------------------------------------------------------


class Transaction(_TransactionVerbs):
    """`with g.transaction() as t:` writes everything at the end of the block, or nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._graph._run(self._buffer.commit())


class Graph(_Verbs):
    """A typed graph in one table, in a file or on DynamoDB."""

    def __init__(
        self,
        location: str | os.PathLike[str] | Store,
        models: Iterable[type[Any]],
        layout: Layout | None = None,
        *,
        cursor_secret: str | bytes | None = None,
        consistent: bool = False,
    ) -> None:
        """`consistent` makes strongly consistent reads the default, where DynamoDB has them."""
        super().__init__(models, layout, cursor_secret, consistent)
        is_own = isinstance(location, str | os.PathLike)
        self._store = open_store(location) if isinstance(location, str | os.PathLike) else location
        try:
            self.create_table()
        except BaseException:
            if is_own:
                self._store.close()
            raise

    def _run(self, plan: Plan[T]) -> T:
        return run(plan, self._store)

    def close(self) -> None:
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def create_table(self) -> None:
        """Makes the table if it is not there; fails if it is there with other keys."""
        self._run(open_table(self._layout.definition))

    def drop_table(self) -> None:
        """Removes the table and everything in it."""
        self._run(drop_table(self._layout.table))

    def put(self, entity: Entity, *, only_if: Predicate | None = None) -> None:
        """Writes a node or an edge, replacing what was there."""
        self._run(put(self._layout, entity, only_if))

    def add(self, entity: Entity) -> None:
        """Writes a node or an edge; `AlreadyExists` if it is there."""
        self._run(add(self._layout, entity))

    def put_many(self, entities: Iterable[BaseModel], *, progress: Callable[[int], None] | None = None) -> int:
        """Writes any number, in batches; `progress` is told how many are done. Not one transaction."""
        return self._run(put_many(self._layout, entities, progress))

    def get(self, model: type[N], id: Any, *, consistent: bool | None = None) -> N | None:
        """The node of that id, or None."""
        return self._run(self._get(model, id, consistent))

    def get_many(self, model: type[N], ids: Iterable[Any], *, consistent: bool | None = None) -> list[N | None]:
        """The nodes of those ids, in that order, None where there is none."""
        return self._run(self._get_many(model, ids, consistent))

    def edge(
        self, model: type[E], source: Any, target: Any, /, *, consistent: bool | None = None, **key: Any
    ) -> E | None:
        """The edge between two nodes, or None; key fields tell parallel edges apart."""
        return self._run(self._edge(model, source, target, key, consistent))

    def connect(self, model: type[E], source: Any, target: Any, /, **fields: Any) -> E:
        """Adds an edge if both ends are there (`NotFound`) and it is not (`AlreadyExists`)."""
        return self._run(self._connect(model, source, target, fields))

    def disconnect(self, model: type[AnyEdge], source: Any, target: Any, /, **key: Any) -> bool:
        """Removes an edge; says whether it was there."""
        return self._run(self._disconnect(model, source, target, key))

    def update(
        self,
        model: type[M],
        /,
        *ids: Any,
        if_version: int | None = None,
        only_if: Predicate | None = None,
        **changes: Any,
    ) -> M:
        """Changes the named fields of a node (one id) or an edge (source and target), and returns it.

        `NotFound` if it is not there, `ConditionFailed` if its version or `only_if` does not hold.
        """
        return cast(M, self._run(self._update(model, ids, if_version, only_if, changes)))

    def delete(self, what: type[Node] | Entity | Ref[Any], id: Any = None) -> bool:
        """Removes a node and every edge at it; says whether there was anything.

        If it is interrupted, nobody sees half of it, and running it again finishes it.
        """
        return self._run(self._delete(what, id))

    def out(self, x: Any, model: type[E], *, consistent: bool | None = None) -> EdgeQuery[E]:
        """The edges that leave a node (the node, its ref or its id)."""
        return EdgeQuery(self._context, self._out(model, x, consistent), None, "target")

    def into(self, x: Any, model: type[E], *, consistent: bool | None = None) -> EdgeQuery[E]:
        """The edges that arrive at a node."""
        return EdgeQuery(self._context, self._into(model, x, consistent), None, "source")

    def collection(
        self, x: Node | Ref[Any], *, direction: str = "out", consistent: bool | None = None
    ) -> CollectionQuery:
        """The node with all edges that leave it, of every type; or, `direction="into"`, that arrive."""
        return CollectionQuery(self._context, self._collection(x, direction, consistent), _node=x)

    def transaction(self) -> Transaction:
        """`with g.transaction() as t:` all writes on `t` happen at the end of the block, or none."""
        return Transaction(self)

    def changes(self, after: str | None = None) -> Iterator[Change]:
        """What was written, oldest first, behind a position; ends where there is no more now."""
        while True:
            some, after_these = self._run(read_changes(self._layout, after, MAX_CHANGES))
            yield from some
            if after_these is None:
                return
            after = after_these

    def explain(self, call: Any, *args: Any, **kwargs: Any) -> Explanation:
        """What a call would ask of the store, without asking: a query, or a verb with its arguments.

        `g.explain(g.out("S1", Enrollment))`, `g.explain(g.put, student)` or
        `g.explain(lambda: g.delete(Student, "S1"))`.
        """
        with Rehearsing(self._layout.definition) as rehearsal:
            if isinstance(call, EdgeQuery | PairQuery | CollectionQuery):
                call = call.page
            if not callable(call):
                raise InvalidValue("explain takes a query, or a verb with its arguments: g.explain(g.put, student)")
            result = call(*args, **kwargs)
            if isinstance(result, EdgeQuery | PairQuery | CollectionQuery):
                result.page()
        return rehearsal.explanation()


# --- for programs that await -------------------------------------------------------------------


class AsyncTransaction(_TransactionVerbs):
    """`async with g.transaction() as t:` writes everything at the end of the block, or nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self._graph._run(self._buffer.commit())


class AsyncGraph(_Verbs):
    """The same graph for asyncio: the same verbs, awaited."""

    def __init__(
        self,
        location: str | os.PathLike[str] | AsyncStore,
        models: Iterable[type[Any]],
        layout: Layout | None = None,
        *,
        cursor_secret: str | bytes | None = None,
        consistent: bool = False,
    ) -> None:
        """`consistent` makes strongly consistent reads the default, where DynamoDB has them."""
        super().__init__(models, layout, cursor_secret, consistent)
        self._store = open_async_store(location) if isinstance(location, str | os.PathLike) else location
        self._is_open = False

    async def _run(self, plan: Plan[T]) -> T:
        if not self._is_open:
            with unwatched():
                await self.create_table()
        return await run_async(plan, self._store)

    async def close(self) -> None:
        await self._store.close()

    async def __aenter__(self) -> Self:
        try:
            await self.create_table()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def create_table(self) -> None:
        """Makes the table if it is not there; fails if it is there with other keys."""
        await run_async(open_table(self._layout.definition), self._store)
        self._is_open = True

    async def drop_table(self) -> None:
        """Removes the table and everything in it."""
        await self._run(drop_table(self._layout.table))

    async def put(self, entity: Entity, *, only_if: Predicate | None = None) -> None:
        """Writes a node or an edge, replacing what was there."""
        await self._run(put(self._layout, entity, only_if))

    async def add(self, entity: Entity) -> None:
        """Writes a node or an edge; `AlreadyExists` if it is there."""
        await self._run(add(self._layout, entity))

    async def put_many(self, entities: Iterable[BaseModel], *, progress: Callable[[int], None] | None = None) -> int:
        """Writes any number, in batches; `progress` is told how many are done. Not one transaction."""
        return await self._run(put_many(self._layout, entities, progress))

    async def get(self, model: type[N], id: Any, *, consistent: bool | None = None) -> N | None:
        """The node of that id, or None."""
        return await self._run(self._get(model, id, consistent))

    async def get_many(self, model: type[N], ids: Iterable[Any], *, consistent: bool | None = None) -> list[N | None]:
        """The nodes of those ids, in that order, None where there is none."""
        return await self._run(self._get_many(model, ids, consistent))

    async def edge(
        self, model: type[E], source: Any, target: Any, /, *, consistent: bool | None = None, **key: Any
    ) -> E | None:
        """The edge between two nodes, or None; key fields tell parallel edges apart."""
        return await self._run(self._edge(model, source, target, key, consistent))

    async def connect(self, model: type[E], source: Any, target: Any, /, **fields: Any) -> E:
        """Adds an edge if both ends are there (`NotFound`) and it is not (`AlreadyExists`)."""
        return await self._run(self._connect(model, source, target, fields))

    async def disconnect(self, model: type[AnyEdge], source: Any, target: Any, /, **key: Any) -> bool:
        """Removes an edge; says whether it was there."""
        return await self._run(self._disconnect(model, source, target, key))

    async def update(
        self,
        model: type[M],
        /,
        *ids: Any,
        if_version: int | None = None,
        only_if: Predicate | None = None,
        **changes: Any,
    ) -> M:
        """Changes the named fields of a node (one id) or an edge (source and target), and returns it.

        `NotFound` if it is not there, `ConditionFailed` if its version or `only_if` does not hold.
        """
        return cast(M, await self._run(self._update(model, ids, if_version, only_if, changes)))

    async def delete(self, what: type[Node] | Entity | Ref[Any], id: Any = None) -> bool:
        """Removes a node and every edge at it; says whether there was anything.

        If it is interrupted, nobody sees half of it, and running it again finishes it.
        """
        return await self._run(self._delete(what, id))

    def out(self, x: Any, model: type[E], *, consistent: bool | None = None) -> AsyncEdgeQuery[E]:
        """The edges that leave a node (the node, its ref or its id)."""
        return AsyncEdgeQuery(self._context, self._out(model, x, consistent), None, "target")

    def into(self, x: Any, model: type[E], *, consistent: bool | None = None) -> AsyncEdgeQuery[E]:
        """The edges that arrive at a node."""
        return AsyncEdgeQuery(self._context, self._into(model, x, consistent), None, "source")

    def collection(
        self, x: Node | Ref[Any], *, direction: str = "out", consistent: bool | None = None
    ) -> AsyncCollectionQuery:
        """The node with all edges that leave it, of every type; or, `direction="into"`, that arrive."""
        return AsyncCollectionQuery(self._context, self._collection(x, direction, consistent), _node=x)

    def transaction(self) -> AsyncTransaction:
        """`async with g.transaction() as t:` all writes on `t` happen at the end of the block, or none."""
        return AsyncTransaction(self)

    async def changes(self, after: str | None = None) -> AsyncIterator[Change]:
        """What was written, oldest first, behind a position; ends where there is no more now."""
        while True:
            some, after_these = await self._run(read_changes(self._layout, after, MAX_CHANGES))
            for change in some:
                yield change
            if after_these is None:
                return
            after = after_these

    async def explain(self, call: Any, *args: Any, **kwargs: Any) -> Explanation:
        """What a call would ask of the store, without asking: a query, a coroutine, or a verb with arguments.

        `await g.explain(g.out("S1", Enrollment))`, `await g.explain(g.put(student))` or
        `await g.explain(g.put, student)`.
        """
        with Rehearsing(self._layout.definition) as rehearsal:
            if callable(call):
                call = call(*args, **kwargs)
            if isinstance(call, AsyncEdgeQuery | AsyncPairQuery | AsyncCollectionQuery):
                call = call.page()
            if not isawaitable(call):
                raise InvalidValue("explain takes a query, a coroutine, or a verb with its arguments")
            await call
        return rehearsal.explanation()
