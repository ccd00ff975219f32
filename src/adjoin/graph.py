"""`Graph` and `AsyncGraph`: two thin shells over the same plans, side by side.

What a call means, its arguments and its plan, stands once, in `adjoin.verbs`; the shells only run
plans, one by waiting and one by awaiting.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from inspect import isawaitable
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast

from pydantic import BaseModel

from adjoin.batch.calls import Over, rebuilt, verified
from adjoin.cost import Explanation, Rehearsing
from adjoin.errors import InvalidValue
from adjoin.fields import Predicate
from adjoin.layouts.interface import Layout
from adjoin.layouts.shard_book import rehearsed
from adjoin.model import OWN_VERSION, IfVersion, Node, Ref
from adjoin.plans import Plan
from adjoin.plans.changes import Change, read_changes
from adjoin.plans.maintenance.health import Health
from adjoin.plans.maintenance.report import MaintenanceReport
from adjoin.queries.edges import (
    AsyncCollectionQuery,
    AsyncEdgeQuery,
    AsyncPairQuery,
    CollectionQuery,
    EdgeQuery,
    PairQuery,
)
from adjoin.queries.finds import AsyncFindPairQuery, AsyncFindQuery, FindPairQuery, FindQuery
from adjoin.runner import run, run_async, unwatched
from adjoin.schema import AnyEdge, Entity
from adjoin.stores.interface import AsyncStore, Store
from adjoin.stores.locations import open_async_store, open_store, table_named_by
from adjoin.units import MAX_CHANGES
from adjoin.verbs import TransactionVerbs, Verbs

if TYPE_CHECKING:
    from adjoin.batch.findings import Audit
    from adjoin.batch.rebuild import Rebuilt

N = TypeVar("N", bound=Node)
E = TypeVar("E", bound=AnyEdge)
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

_QUERIES = (EdgeQuery, PairQuery, CollectionQuery, FindQuery, FindPairQuery)
_ASYNC_QUERIES = (AsyncEdgeQuery, AsyncPairQuery, AsyncCollectionQuery, AsyncFindQuery, AsyncFindPairQuery)


class Stop(Protocol):
    """What ends `maintain`: a `threading.Event`, or whatever is like one."""

    def is_set(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> bool:
        """Waits so many seconds, or until it is set; says whether it is."""
        ...


# --- for programs that wait --------------------------------------------------------------------


class Transaction(TransactionVerbs):
    """`with g.transaction() as t:` writes everything at the end of the block, or nothing."""

    def __enter__(self) -> Self:
        return self._begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        if kind is None:
            self._graph._run(self._commit())


class Graph(Verbs):
    """A typed graph in one table, in a file or on DynamoDB."""

    def __init__(
        self,
        location: str | os.PathLike[str] | Store,
        models: Iterable[type[Any]],
        layout: Layout | None = None,
        *,
        cursor_secret: str | bytes | None = None,
        consistent: bool = False,
        tenant: str | None = None,
    ) -> None:
        """`consistent` makes strongly consistent reads the default, where DynamoDB has them.

        `tenant` keeps everything of this graph behind a prefix of its own, in the table and its indexes.
        """
        super().__init__(models, layout, table_named_by(location), cursor_secret, consistent, tenant)
        self._store = open_store(location) if isinstance(location, str | os.PathLike) else location
        self._is_owner = True
        try:
            self._run(self._open_plan(self._store.creates_tables))
        except BaseException:
            if self._store is not location:
                self._store.close()
            raise

    def _run(self, plan: Plan[T]) -> T:
        return run(plan, self._store)

    def close(self) -> None:
        if self._is_owner:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def create_table(self) -> None:
        """Makes the table, or the indexes that it lacks; fails if it is there with other keys."""
        self._run(self._open_plan(creates_tables=True))

    def drop_table(self) -> None:
        """Removes the table and everything in it."""
        self._run(self._drop_plan())

    def put(self, entity: Entity, *, only_if: Predicate | None = None, if_version: IfVersion = OWN_VERSION) -> None:
        """Writes a node or an edge, replacing what was there.

        Where its class has a `Version()`, only what has the version of the instance (`ConditionFailed`), or is new;
        `if_version` names another, and None replaces whatever is there. The instance then has the version that is
        stored.
        """
        self._run(self._put(entity, only_if, if_version))

    def add(self, entity: Entity) -> None:
        """Writes a node or an edge; `AlreadyExists` if it is there."""
        self._run(self._add(entity))

    def put_many(self, entities: Iterable[BaseModel], *, progress: Callable[[int], None] | None = None) -> int:
        """Writes any number, in batches; `progress` is told how many are done. Not one transaction.

        Of two with one key, the later stays. Those of a class with a `Version()` or unique values are put one by one.
        """
        return self._run(self._put_many(entities, progress))

    def get(self, model: type[N], id: Any = None, *, consistent: bool | None = None, **unique: Any) -> N | None:
        """The node of that id, or with that value of a unique field (`email="…"`); None if there is none."""
        return self._run(self._get(model, id, unique, consistent))

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

    def disconnect(
        self, model: type[AnyEdge], source: Any, target: Any, /, *, if_version: int | None = None, **key: Any
    ) -> bool:
        """Removes an edge; says whether it was there. `ConditionFailed` if it has another version than the given."""
        return self._run(self._disconnect(model, source, target, key, if_version))

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

    def delete(
        self, what: type[Node] | Entity | Ref[Any], id: Any = None, *, if_version: IfVersion = OWN_VERSION
    ) -> bool:
        """Removes a node and every edge at it; says whether there was anything.

        If it is interrupted, nobody sees half of it, and running it again finishes it. An instance of a class with a
        `Version()` is deleted only if what is there has its version (`ConditionFailed`); `if_version` names another,
        and None deletes whatever is there.
        """
        return self._run(self._delete(what, id, if_version))

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

    def find(self, model: type[M], predicate: Predicate | None = None, *, order: str | None = None) -> FindQuery[M]:
        """Nodes or edges by an indexed field, in its order: `g.find(Person, field("name") == "Ann")`.

        What else is joined with `&` filters. `order` names the indexed field to go by, where several could be.
        """
        return FindQuery(self._context, self._search(model, predicate, order))

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

    def maintain(
        self,
        *,
        once: bool = False,
        every: float = 1.0,
        progress: Callable[[MaintenanceReport], None] | None = None,
        stop: Stop | None = None,
    ) -> MaintenanceReport:
        """Applies the change stream to aggregates and copies, from where it was left; without a tenant, of all tenants.

        With `once`, ends where there is no more now, and raises what keeps it from going on. Else looks again `every`
        so many seconds until `stop`, a `threading.Event`, is set; it outlives what passes, such as throttling and lost
        connections, and raises what does not. `progress` is told what was done so far. Any number may run at once, and
        stop at any time.
        """
        stopped = stop or Event()
        daemon = self._daemon(once, every)
        while True:
            pause = self._run(daemon.step(self._layout))
            if progress is not None:
                progress(daemon.report())
            if pause is None or stopped.is_set() or (pause > 0 and stopped.wait(pause)):
                break
        self._run(daemon.leave(self._layout))
        return daemon.report()

    def health(self) -> Health:
        """How far aggregates and copies are behind, what was set aside or missed, and when all was last looked at."""
        return self._run(self._health())

    def for_tenant(self, tenant: str) -> Self:
        """The same graph for another tenant, on the same store and its connections, which closing it leaves open."""
        view = self._view(tenant)
        view._is_owner = False
        view._run(view._maps_plan())
        return view

    def rebuild(
        self,
        source: str | os.PathLike[str] | None = None,
        *,
        engine: Any = "duckdb",
        only: Iterable[str] | None = None,
        dry_run: bool = False,
        state: str | os.PathLike[str] | None = None,
        diff: str | os.PathLike[str] | None = None,
        progress: Callable[[str, int], None] | None = None,
        **options: Any,
    ) -> Rebuilt:
        """Recomputes aggregates and summaries from all edges, and makes true what differs, while others write.

        `source` is an export, in a folder or on S3; without one, a file is read itself; "scan" reads the table item
        by item. `only` names fields, as "CUSTOMER.owed". With `dry_run` nothing is written. `state` is a file that
        remembers how far writing from an export came, and `diff` one for everything that differs, a line each. Without
        a tenant, all tenants of the table are rebuilt.
        """
        over = Over(self._layout, self._store, self._run, source, engine, options, progress, self._clock)
        return rebuilt(over, only, dry_run, state, diff)

    def verify(
        self,
        source: str | os.PathLike[str] | None = None,
        *,
        engine: Any = "duckdb",
        repair: bool | Iterable[str | bool] = False,
        report: str | os.PathLike[str] | None = None,
        progress: Callable[[str, int], None] | None = None,
        **options: Any,
    ) -> Audit:
        """Compares what is stored with what follows from it; true if nothing is wrong.

        `repair=True` repairs all but dangling edges, which are named to be removed: `repair=["dangling"]`. `report`
        is a file for what was found, as JSON. `source` is the same as for `rebuild`. Without a tenant, all tenants of
        the table are looked at.
        """
        over = Over(self._layout, self._store, self._run, source, engine, options, progress, self._clock)
        return verified(over, repair, report)

    def explain(self, call: Any, *args: Any, **kwargs: Any) -> Explanation:
        """What a call would ask of the store, without asking: a query, or a verb with its arguments.

        `g.explain(g.out("S1", Enrollment))`, `g.explain(g.put, student)` or
        `g.explain(lambda: g.delete(Student, "S1"))`.
        """
        with Rehearsing(self._layout.definition) as rehearsal, rehearsed():
            if isinstance(call, _QUERIES):
                call = call.page
            if not callable(call):
                raise InvalidValue("explain takes a query, or a verb with its arguments: g.explain(g.put, student)")
            result = call(*args, **kwargs)
            if isinstance(result, _QUERIES):
                result.page()
        return rehearsal.explanation(self._fan_outs)


# --- for programs that await -------------------------------------------------------------------


class AsyncTransaction(TransactionVerbs):
    """`async with g.transaction() as t:` writes everything at the end of the block, or nothing."""

    async def __aenter__(self) -> Self:
        return self._begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        if kind is None:
            await self._graph._run(self._commit())


class AsyncGraph(Verbs):
    """The same graph for asyncio: the same verbs, awaited."""

    def __init__(
        self,
        location: str | os.PathLike[str] | AsyncStore,
        models: Iterable[type[Any]],
        layout: Layout | None = None,
        *,
        cursor_secret: str | bytes | None = None,
        consistent: bool = False,
        tenant: str | None = None,
    ) -> None:
        """`consistent` makes strongly consistent reads the default, where DynamoDB has them.

        `tenant` keeps everything of this graph behind a prefix of its own, in the table and its indexes.
        """
        super().__init__(models, layout, table_named_by(location), cursor_secret, consistent, tenant)
        self._store = open_async_store(location) if isinstance(location, str | os.PathLike) else location
        self._is_owner, self._is_open, self._is_table_open = True, False, False

    async def _run(self, plan: Plan[T]) -> T:
        if not self._is_open:
            with unwatched():
                await self._open()
        return await run_async(plan, self._store)

    async def _open(self) -> None:
        plan = self._maps_plan() if self._is_table_open else self._open_plan(self._store.creates_tables)
        await run_async(plan, self._store)
        self._is_open = self._is_table_open = True

    async def close(self) -> None:
        if self._is_owner:
            await self._store.close()

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def create_table(self) -> None:
        """Makes the table, or the indexes that it lacks; fails if it is there with other keys."""
        await run_async(self._open_plan(creates_tables=True), self._store)
        self._is_open = self._is_table_open = True

    async def drop_table(self) -> None:
        """Removes the table and everything in it."""
        await self._run(self._drop_plan())

    async def put(
        self, entity: Entity, *, only_if: Predicate | None = None, if_version: IfVersion = OWN_VERSION
    ) -> None:
        """Writes a node or an edge, replacing what was there.

        Where its class has a `Version()`, only what has the version of the instance (`ConditionFailed`), or is new;
        `if_version` names another, and None replaces whatever is there. The instance then has the version that is
        stored.
        """
        await self._run(self._put(entity, only_if, if_version))

    async def add(self, entity: Entity) -> None:
        """Writes a node or an edge; `AlreadyExists` if it is there."""
        await self._run(self._add(entity))

    async def put_many(self, entities: Iterable[BaseModel], *, progress: Callable[[int], None] | None = None) -> int:
        """Writes any number, in batches; `progress` is told how many are done. Not one transaction.

        Of two with one key, the later stays. Those of a class with a `Version()` or unique values are put one by one.
        """
        return await self._run(self._put_many(entities, progress))

    async def get(self, model: type[N], id: Any = None, *, consistent: bool | None = None, **unique: Any) -> N | None:
        """The node of that id, or with that value of a unique field (`email="…"`); None if there is none."""
        return await self._run(self._get(model, id, unique, consistent))

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

    async def disconnect(
        self, model: type[AnyEdge], source: Any, target: Any, /, *, if_version: int | None = None, **key: Any
    ) -> bool:
        """Removes an edge; says whether it was there. `ConditionFailed` if it has another version than the given."""
        return await self._run(self._disconnect(model, source, target, key, if_version))

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

    async def delete(
        self, what: type[Node] | Entity | Ref[Any], id: Any = None, *, if_version: IfVersion = OWN_VERSION
    ) -> bool:
        """Removes a node and every edge at it; says whether there was anything.

        If it is interrupted, nobody sees half of it, and running it again finishes it. An instance of a class with a
        `Version()` is deleted only if what is there has its version (`ConditionFailed`); `if_version` names another,
        and None deletes whatever is there.
        """
        return await self._run(self._delete(what, id, if_version))

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

    def find(
        self, model: type[M], predicate: Predicate | None = None, *, order: str | None = None
    ) -> AsyncFindQuery[M]:
        """Nodes or edges by an indexed field, in its order: `g.find(Person, field("name") == "Ann")`.

        What else is joined with `&` filters. `order` names the indexed field to go by, where several could be.
        """
        return AsyncFindQuery(self._context, self._search(model, predicate, order))

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

    async def maintain(
        self,
        *,
        once: bool = False,
        every: float = 1.0,
        progress: Callable[[MaintenanceReport], None] | None = None,
    ) -> MaintenanceReport:
        """Applies the change stream to aggregates and copies, from where it was left; without a tenant, of all tenants.

        With `once`, ends where there is no more now, and raises what keeps it from going on. Else looks again `every`
        so many seconds until its task is cancelled; it outlives what passes, such as throttling and lost connections,
        and raises what does not. `progress` is told what was done so far. Any number may run at once, and stop at any
        time.
        """
        daemon = self._daemon(once, every)
        while True:
            pause = await self._run(daemon.step(self._layout))
            if progress is not None:
                progress(daemon.report())
            if pause is None:
                break
            if pause > 0:
                await asyncio.sleep(pause)
        await self._run(daemon.leave(self._layout))
        return daemon.report()

    async def health(self) -> Health:
        """How far aggregates and copies are behind, what was set aside or missed, and when all was last looked at."""
        return await self._run(self._health())

    def for_tenant(self, tenant: str) -> Self:
        """The same graph for another tenant, on the same store and its connections, which closing it leaves open."""
        view = self._view(tenant)
        view._is_owner, view._is_open, view._is_table_open = False, False, self._is_table_open
        return view

    async def rebuild(
        self,
        source: str | os.PathLike[str] | None = None,
        *,
        engine: Any = "duckdb",
        only: Iterable[str] | None = None,
        dry_run: bool = False,
        state: str | os.PathLike[str] | None = None,
        diff: str | os.PathLike[str] | None = None,
        progress: Callable[[str, int], None] | None = None,
        **options: Any,
    ) -> Rebuilt:
        """Recomputes aggregates and summaries from all edges, and makes true what differs, while others write.

        `source` is an export, in a folder or on S3; without one, a file is read itself; "scan" reads the table item
        by item. `only` names fields, as "CUSTOMER.owed". With `dry_run` nothing is written. `state` is a file that
        remembers how far writing from an export came, and `diff` one for everything that differs, a line each. Without
        a tenant, all tenants of the table are rebuilt.
        """
        run = await self._driven()
        over = Over(self._layout, self._store, run, source, engine, options, progress, self._clock)
        return await asyncio.to_thread(rebuilt, over, only, dry_run, state, diff)

    async def verify(
        self,
        source: str | os.PathLike[str] | None = None,
        *,
        engine: Any = "duckdb",
        repair: bool | Iterable[str | bool] = False,
        report: str | os.PathLike[str] | None = None,
        progress: Callable[[str, int], None] | None = None,
        **options: Any,
    ) -> Audit:
        """Compares what is stored with what follows from it; true if nothing is wrong.

        `repair=True` repairs all but dangling edges, which are named to be removed: `repair=["dangling"]`. `report`
        is a file for what was found, as JSON. `source` is the same as for `rebuild`. Without a tenant, all tenants of
        the table are looked at.
        """
        run = await self._driven()
        over = Over(self._layout, self._store, run, source, engine, options, progress, self._clock)
        return await asyncio.to_thread(verified, over, repair, report)

    async def _driven(self) -> Callable[[Plan[Any]], Any]:
        """What drives plans for a thread that computes: on this loop, while the thread waits."""
        if not self._is_open:
            await self._open()
        loop = asyncio.get_running_loop()
        return lambda plan: asyncio.run_coroutine_threadsafe(self._run(plan), loop).result()

    async def explain(self, call: Any, *args: Any, **kwargs: Any) -> Explanation:
        """What a call would ask of the store, without asking: a query, a coroutine, or a verb with arguments.

        `await g.explain(g.out("S1", Enrollment))`, `await g.explain(g.put(student))` or
        `await g.explain(g.put, student)`.
        """
        with Rehearsing(self._layout.definition) as rehearsal, rehearsed():
            if callable(call):
                call = call(*args, **kwargs)
            if isinstance(call, _ASYNC_QUERIES):
                call = call.page()
            if not isawaitable(call):
                raise InvalidValue("explain takes a query, a coroutine, or a verb with its arguments")
            await call
        return rehearsal.explanation(self._fan_outs)
