"""`Graph` and `AsyncGraph`: two thin shells over the same plans, side by side.

What a call means, its arguments and its plan, stands once, in `adjoin.verbs`; the shells only run
plans, one by waiting and one by awaiting.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from inspect import isawaitable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from pydantic import BaseModel

from adjoin.batch.calls import rebuilt, verified
from adjoin.cost import Explanation, Rehearsing
from adjoin.errors import InvalidValue
from adjoin.fields import Predicate
from adjoin.layouts.interface import Layout
from adjoin.layouts.shard_book import rehearsed
from adjoin.model import OWN_VERSION, IfVersion, Node, Ref
from adjoin.plans import Plan
from adjoin.plans.changes import Change, read_changes
from adjoin.plans.maintenance.report import MaintenanceReport, Tally
from adjoin.plans.maintenance.stream import Reading
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
        try:
            self._run(self._open_plan(self._store.creates_tables))
        except BaseException:
            if self._store is not location:
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
    ) -> MaintenanceReport:
        """Applies the change stream to aggregates and copies, from where it was left.

        With `once`, ends where there is no more now; else looks again `every` so many seconds, for ever. `progress`
        is told what was done so far. Any number may run at once, and stop at any time.
        """
        reading, tally = Reading(), Tally()
        while True:
            has_more = self._run(self._maintain_step(reading, tally))
            if progress is not None:
                progress(tally.report())
            if not has_more:
                if once:
                    return tally.report()
                time.sleep(every)

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
        remembers how far writing from an export came, and `diff` one for everything that differs, a line each.
        """
        return rebuilt(
            self._layout, self._store, self._run, source, engine, only, dry_run, state, diff, progress, options
        )

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
        is a file for what was found, as JSON. `source` is the same as for `rebuild`.
        """
        return verified(self._layout, self._store, self._run, source, engine, repair, report, progress, options)

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
        self._is_open = False

    async def _run(self, plan: Plan[T]) -> T:
        if not self._is_open:
            with unwatched():
                await self._open()
        return await run_async(plan, self._store)

    async def _open(self) -> None:
        await run_async(self._open_plan(self._store.creates_tables), self._store)
        self._is_open = True

    async def close(self) -> None:
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
        self._is_open = True

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
        """Applies the change stream to aggregates and copies, from where it was left.

        With `once`, ends where there is no more now; else looks again `every` so many seconds, for ever. `progress`
        is told what was done so far. Any number may run at once, and stop at any time.
        """
        reading, tally = Reading(), Tally()
        while True:
            has_more = await self._run(self._maintain_step(reading, tally))
            if progress is not None:
                progress(tally.report())
            if not has_more:
                if once:
                    return tally.report()
                await asyncio.sleep(every)

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
        remembers how far writing from an export came, and `diff` one for everything that differs, a line each.
        """
        run = await self._driven()
        return await asyncio.to_thread(
            rebuilt, self._layout, self._store, run, source, engine, only, dry_run, state, diff, progress, options
        )

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
        is a file for what was found, as JSON. `source` is the same as for `rebuild`.
        """
        run = await self._driven()
        return await asyncio.to_thread(
            verified, self._layout, self._store, run, source, engine, repair, report, progress, options
        )

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
