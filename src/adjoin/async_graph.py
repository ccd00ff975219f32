"""`AsyncGraph`: the graph of a program with asyncio. Its methods are those of `Graph` in `adjoin.graph`, awaited."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import replace
from inspect import isawaitable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

from pydantic import BaseModel

from adjoin.changing import AsyncChanges
from adjoin.drawing import AsyncDraws
from adjoin.entity_types import Entity
from adjoin.errors import InvalidRequest, InvalidValue, shown
from adjoin.fields import FieldReference, Predicate
from adjoin.late import later
from adjoin.layouts.indexed_fields import rehearsed
from adjoin.layouts.interface import Layout
from adjoin.locations import open_async_store, table_named_by
from adjoin.marks import OWN_VERSION, IfVersion
from adjoin.model import Node, Ref
from adjoin.plans.steps import SEGMENTS
from adjoin.plans.table import Change, read_changes
from adjoin.reading import AsyncReads
from adjoin.requests import Plan
from adjoin.runner import between_async, run_async, unwatched
from adjoin.transactions import TransactionVerbs
from adjoin.traversals import AsyncTraversals
from adjoin.units import MAX_CHANGES
from adjoin.whole_graph import AsyncWholeGraph

if TYPE_CHECKING:
    from adjoin import collecting, queries, scans, searches, walks
    from adjoin import cost as costs
    from adjoin.collecting import AsyncCollectionQuery
    from adjoin.cost import Explanation
    from adjoin.plans.declared import DeclaredDifference
    from adjoin.plans.maintenance.health import Health
    from adjoin.plans.maintenance.report import MaintenanceReport
    from adjoin.plans.migrating.completing import Fill
    from adjoin.plans.migrating.passes import MigrationReport
    from adjoin.plans.migrating.planning import MigrationPlan
    from adjoin.queries import AsyncChildQuery, AsyncEdgeQuery
    from adjoin.refs import Arrives, ChildOf, Id, Joins, Leaves
    from adjoin.scans import AsyncScanQuery, AsyncTableScanQuery
    from adjoin.searches import AsyncFindQuery, AsyncIndexQuery
    from adjoin.stores.interface import AsyncStore
else:
    collecting = later("adjoin.collecting")
    costs = later("adjoin.cost")
    queries = later("adjoin.queries")
    scans = later("adjoin.scans")
    searches = later("adjoin.searches")
    walks = later("adjoin.walks")

E = TypeVar("E")
F = TypeVar("F")
X = TypeVar("X", bound=Node)
Y = TypeVar("Y", bound=Node)
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


def _queries() -> tuple[type[Any], ...]:
    """The classes of what can be explained without being run."""
    return (
        queries.AsyncEdgeQuery,
        queries.AsyncPairQuery,
        queries.AsyncChildQuery,
        collecting.AsyncCollectionQuery,
        searches.AsyncFindQuery,
        searches.AsyncFindPairQuery,
        searches.AsyncIndexQuery,
        scans.AsyncScanQuery,
        scans.AsyncTableScanQuery,
        walks.AsyncWalk,
        walks.AsyncReached,
    )


class AsyncTransaction(TransactionVerbs):
    """`async with g.transaction() as t:` writes everything at the end of the block, or nothing.

    A block that raises writes nothing.
    """

    async def __aenter__(self) -> Self:
        return self._begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        if kind is None:
            await self._graph._run(self._commit())


class AsyncGraph(AsyncReads, AsyncChanges, AsyncTraversals, AsyncWholeGraph, AsyncDraws):
    """The same graph for asyncio: the same methods, awaited. It opens with the first call, or with `async with`."""

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
        """Opens a graph of the classes `models`.

        A file and its table are created if they do not exist; on DynamoDB, `create_table` creates the table.
        `location` is a path, a URL such as "dynamodb://table", or a store. `layout` says how nodes and edges
        become items; the default is `AdjacencyList`. `cursor_secret` signs page tokens, so that clients cannot
        change them. `consistent` makes strongly consistent reads the default, where DynamoDB has them. `tenant`
        is a prefix of every key of this graph, in the table and in its indexes, so that several graphs share a
        table without seeing each other.
        """
        super().__init__(models, layout, table_named_by(location), cursor_secret, consistent, tenant)
        self._store = open_async_store(location) if isinstance(location, str | os.PathLike) else location
        self._is_owner, self._is_open, self._is_table_open = True, False, False

    async def _run(self, plan: Plan[T]) -> T:
        if not self._is_open:
            # A constructor cannot await, so the first call opens the table. Its meter does not count that.
            with unwatched():
                await self._open()
        try:
            return await run_async(plan, self._store)
        except InvalidRequest as error:
            self._explain(error)
            raise

    async def _open(self) -> None:
        plan = self._maps_plan() if self._is_table_open else self._open_plan(self._store.creates_tables)
        await run_async(plan, self._store)
        self._is_open = self._is_table_open = True

    async def close(self) -> None:
        """Closes the store; does nothing on a view that `for_tenant` made."""
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
        """Creates the table, or adds the indexes that it lacks.

        Raises `TableMismatch` if the table exists with other keys.
        """
        await run_async(self._open_plan(creates_tables=True), self._store)
        self._is_open = self._is_table_open = True

    async def drop_table(self) -> None:
        """Deletes the table and everything in it."""
        await self._run(self._drop_plan())

    async def raise_shards(self, index: str, number: int) -> None:
        """Raises the number of shards of an index, for all programs that use the table.

        It is one write, and moves no items. New items go to more shards when every open graph knows them: after two and
        a half minutes the first time, later after 45 seconds.
        """
        await self._run(self._raise_shards(index, number))

    async def put(
        self, entity: Entity, *, only_if: Predicate | None = None, if_version: IfVersion = OWN_VERSION
    ) -> None:
        """Writes a node or an edge. It replaces a stored one with the same key.

        With `only_if`, it is written only if the predicate holds for what is stored. If its class has a `Version()`,
        it is written only if it is new or the stored version equals that of the instance; `if_version` compares with
        another number, and None replaces whatever is stored. The instance then has the new version. Raises
        `ConditionFailed` if `only_if` or the version does not hold.
        """
        await self._run(self._put(entity, only_if, if_version))

    async def add(self, entity: Entity) -> None:
        """Writes a new node or edge. Raises `AlreadyExists` if one with the same key is stored."""
        await self._run(self._add(entity))

    async def put_many(self, entities: Iterable[BaseModel], *, progress: Callable[[int], None] | None = None) -> int:
        """Writes any number of nodes and edges in batches, and returns how many. It is not a transaction.

        `progress` is called with the number written so far. If two have the same key, the later one stays. Instances
        of a class with a `Version()` or a unique field are written one by one.
        """
        return await self._run(self._put_many(entities, progress))

    async def connect(
        self,
        model: type[Joins[X, Y, E]],
        source: X | Ref[X] | Id,
        target: Y | Ref[Y] | Id,
        /,
        *,
        only_if: Predicate | None = None,
        **fields: Any,
    ) -> E:
        """Creates an edge between two nodes that exist, and returns it.

        `source` and `target` are nodes, refs or ids; `fields` are the fields of the edge. `only_if` is about the fields
        of the nodes: `field("target.seats") > 0`. Raises `NotFound` if one of the nodes does not exist, `AlreadyExists`
        if the edge does, and `ConditionFailed` if `only_if` does not hold.
        """
        return await self._run(self._connect(model, source, target, fields, only_if))

    async def disconnect(
        self,
        model: type[Joins[X, Y, Any]],
        source: X | Ref[X] | Id,
        target: Y | Ref[Y] | Id,
        /,
        *,
        if_version: int | None = None,
        only_if: Predicate | None = None,
        **key: Any,
    ) -> bool:
        """Deletes an edge; returns whether it existed.

        Raises `ConditionFailed` if `if_version` is given and the stored edge has another version, or if `only_if` does
        not hold for it.
        """
        return await self._run(self._disconnect(model, source, target, key, if_version, only_if))

    async def delete(
        self,
        what: type[Node] | Entity | Ref[Any],
        id: Id | Node | Ref[Any] | None = None,
        *,
        if_version: IfVersion = OWN_VERSION,
        only_if: Predicate | None = None,
        edges: str = "all",
    ) -> bool:
        """Deletes a node with all its edges, or one edge; returns whether it existed.

        Pass a class and an id, a ref, a node or an edge. If the call is interrupted, no reader sees half of it, and
        calling it again finishes it. An instance of a class with a `Version()` is deleted only if the stored version
        is the same; `if_version` compares with another number, and None deletes whatever is stored. Raises
        `ConditionFailed` if the version differs, or if it is stored and `only_if` does not hold for it; and
        `InvalidModel` if neither keys nor indexes can find the edges of the node; `edges="found"` leaves these.
        """
        return await self._run(self._delete(what, id, if_version, edges, only_if))

    async def delete_many(
        self, entities: Iterable[Entity | Ref[Any]], *, progress: Callable[[int], None] | None = None
    ) -> int:
        """Deletes any number of nodes and edges, and returns how many were given. It is not a transaction.

        Edges, and nodes of classes that have no edges, are deleted in batches; other nodes one by one, with their
        edges. `progress` is called with the number deleted so far.
        """
        return await self._run(self._delete_many(entities, progress))

    def out(
        self, x: X | Ref[X] | Id, model: type[Leaves[X, E, F]], *, consistent: bool | None = None
    ) -> AsyncEdgeQuery[E, F]:
        """Returns a query for the edges of one class that leave a node. `x` is the node, its ref or its id."""
        return queries.AsyncEdgeQuery(self._context, self._out(model, x, consistent), None, "target")

    def into(
        self, x: X | Ref[X] | Id, model: type[Arrives[X, E, F]], *, consistent: bool | None = None
    ) -> AsyncEdgeQuery[E, F]:
        """Returns a query for the edges of one class that arrive at a node. `x` is the node, its ref or its id."""
        return queries.AsyncEdgeQuery(self._context, self._into(model, x, consistent), None, "source")

    def children(
        self, x: X | Ref[X] | Id, model: type[ChildOf[X, E]], *, consistent: bool | None = None
    ) -> AsyncChildQuery[E]:
        """Returns a query for the children of one class of a node. `x` is the node, its ref or its id."""
        return queries.AsyncChildQuery(self._context, self._children(x, model, consistent))

    def collection(
        self, x: X | Ref[X], *, direction: str = "out", consistent: bool | None = None
    ) -> AsyncCollectionQuery[X]:
        """Returns a query for a node together with its children and the edges of every class that leave it.

        With `direction="into"`, the edges are those that arrive at it.
        """
        far = "source" if direction == "into" else "target"
        return collecting.AsyncCollectionQuery(
            self._context, self._collection(x, direction, consistent), _node=x, _far=far
        )

    def find(
        self,
        model: type[M],
        predicate: Predicate | None = None,
        *,
        order: str | FieldReference[Any] | tuple[str | FieldReference[Any], ...] | None = None,
        index: str | None = None,
        consistent: bool | None = None,
    ) -> AsyncFindQuery[M]:
        """Returns a query for nodes or edges by the keys of an index: `g.find(Person, field("name") == "Ann")`.

        The index that narrows most is used; `index` names one instead. Results come in the order of its sort key, and
        `order` names the field or fields to sort by. Comparisons that no key answers, joined with `&`, are a filter.
        """
        return searches.AsyncFindQuery(self._context, self._search(model, predicate, order, index, consistent))

    def index(self, name: str, *, consistent: bool | None = None) -> AsyncIndexQuery:
        """Returns a query for the items of an index, whatever their class: `g.index("GSI1").begins_with("John")`.

        It reads all shards of a sharded partition key; `partition` chooses a partition of another index, which is
        otherwise read as a whole, by a scan without an order.
        """
        return searches.AsyncIndexQuery(self._context, self._index_search(name, consistent))

    @overload
    def scan(
        self,
        model: None = None,
        *,
        segments: int = SEGMENTS,
        consistent: bool | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> AsyncTableScanQuery: ...

    @overload
    def scan(
        self,
        model: type[M],
        *,
        segments: int = SEGMENTS,
        consistent: bool | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> AsyncScanQuery[M]: ...

    def scan(
        self,
        model: type[Any] | None = None,
        *,
        segments: int = SEGMENTS,
        consistent: bool | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> AsyncTableScanQuery | AsyncScanQuery[Any]:
        """Returns a query for all nodes or edges of a class, or of all classes, in no order. It reads the whole table.

        The table is read in `segments`, side by side. `progress` is called with the number of items read so far.
        Without a class, `.others` gives the items that belong to none, and `.collect()` reads all into memory.
        """
        query = scans.AsyncTableScanQuery if model is None else scans.AsyncScanQuery
        return query(self._context, self._scan(model, segments, consistent, progress))

    async def count(
        self,
        model: type[BaseModel],
        *,
        segments: int = SEGMENTS,
        consistent: bool | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Returns the number of nodes or edges of a class. It reads the whole table, as `scan` does.

        Only keys are sent, or only numbers where a condition on keys tells the class exactly.
        """
        return await self.scan(model, segments=segments, consistent=consistent, progress=progress).count()

    def transaction(self) -> AsyncTransaction:
        """Returns a transaction: `async with g.transaction() as t:` applies all writes on `t` at the end, or none.

        Raises `TransactionCanceled` at the end of the block if a condition of a write does not hold.
        """
        return AsyncTransaction(self)

    async def changes(self, after: str | None = None) -> AsyncIterator[Change]:
        """Yields the changes in the change stream, oldest first, and ends when there are no more for now.

        `after` is the position of the last change that the caller has seen; without it, all are read. Raises
        `ChangesTrimmed` if the stream no longer reaches back to that position.
        """
        while True:
            changes, after_these = await self._run(read_changes(self._layout, after, MAX_CHANGES))
            for change in changes:
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
        """Applies the change stream to aggregates and copied fields, from the position where it stopped last.

        With `once`, it returns when there are no more changes, and raises any error. Otherwise it looks for changes
        every `every` seconds until its task is cancelled; it retries after passing errors, such as throttling and
        lost connections, and raises all others. `progress` is called with a report of the work so far. Any number of
        maintainers may run at the same time, and each may stop at any time. Without a tenant, it maintains all
        tenants of the table.
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

    async def differences(self) -> list[DeclaredDifference]:
        """Returns what this graph declares differently from what is recorded in the table."""
        return await self._run(self._differences())

    @overload
    async def migrate(
        self,
        *,
        dry_run: Literal[True],
        into: AsyncGraph | None = None,
        fill: Mapping[str, Fill] | None = None,
        drop: Iterable[str] = (),
        finish: bool = False,
        units: float | None = None,
        segments: int = 1,
        progress: Callable[[MigrationReport], None] | None = None,
        stop: asyncio.Event | None = None,
    ) -> MigrationPlan: ...

    @overload
    async def migrate(
        self,
        *,
        dry_run: Literal[False] = False,
        into: AsyncGraph | None = None,
        fill: Mapping[str, Fill] | None = None,
        drop: Iterable[str] = (),
        finish: bool = False,
        units: float | None = None,
        segments: int = 1,
        progress: Callable[[MigrationReport], None] | None = None,
        stop: asyncio.Event | None = None,
    ) -> MigrationReport: ...

    async def migrate(
        self,
        *,
        dry_run: bool = False,
        into: AsyncGraph | None = None,
        fill: Mapping[str, Fill] | None = None,
        drop: Iterable[str] = (),
        finish: bool = False,
        units: float | None = None,
        segments: int = 1,
        progress: Callable[[MigrationReport], None] | None = None,
        stop: asyncio.Event | None = None,
    ) -> MigrationPlan | MigrationReport:
        """Brings what is stored to what the classes declare, while programs run. Returns what it did.

        It adds indexes that the table lacks, and writes index entries, orders, index copies and claims that stored
        items lack. `fill` makes values of fields that they lack: `{"Student.year": lambda item: 1}`. `drop` names
        attributes to remove, such as "Student.nickname". With `dry_run`, nothing is written, and the plan is returned
        with its cost. `finish` does the last step: pass it when no program with former declarations writes any more.
        `units` limits the capacity units per second, `segments` are parts of the table to read side by side. `progress`
        is called with a report after each step, and `stop` ends the run; the next one goes on from there.

        With `into`, a graph of another table, everything is written there in the layout of that graph, and programs go
        on with this table, which stays as it is. `finish` then applies the last changes: pass it when no program writes
        to this table any more.
        """
        drop = list(drop) if not isinstance(drop, str) else drop
        if into is not None:
            return await self._migrate_into(into, dry_run, fill, drop, finish, units, segments, progress, stop)
        migration = self._migration(fill, drop, finish, units, segments, not self._store.creates_tables)
        if dry_run:
            return await self._run(self._planned(fill, drop))
        await run_async(self._open_plan(creates_tables=True, tells=False), self._store)
        self._is_open = self._is_table_open = True
        while (pause := await self._run(migration.step())) is not None:
            if progress is not None:
                progress(migration.report())
            if stop is not None and stop.is_set():
                await self._run(migration.stop())
                break
            if pause > 0:
                await asyncio.sleep(pause)
        if progress is not None:
            progress(migration.report())
        return migration.report()

    async def _migrate_into(
        self,
        into: AsyncGraph,
        dry_run: bool,
        fill: Mapping[str, Fill] | None,
        drop: Iterable[str],
        finish: bool,
        units: float | None,
        segments: int,
        progress: Callable[[MigrationReport], None] | None,
        stop: asyncio.Event | None,
    ) -> MigrationPlan | MigrationReport:
        if not isinstance(into, AsyncGraph):
            raise InvalidValue(f"into must be a graph of another table, got {shown(into)}")
        if into._store is self._store and into._layout.table == self._layout.table:
            raise InvalidValue(f"into is a graph of the same table {self._layout.table!r}; open one of another table")
        moving = self._moving(into, fill, drop, finish, units, segments, not self._store.creates_tables)
        if dry_run:
            return await self._run(self._planned_into(into, fill, drop))
        await run_async(into._open_plan(creates_tables=True, tells=False), into._store)
        into._is_open = into._is_table_open = True
        sides = {"old": self._run, "new": into._run}
        try:
            while (pause := await between_async(moving.step(), sides)) is not None:
                if progress is not None:
                    progress(moving.report())
                if stop is not None and stop.is_set():
                    break
                if pause > 0:
                    await asyncio.sleep(pause)
        finally:
            await between_async(moving.stop(), sides)
        if progress is not None:
            progress(moving.report())
        return moving.report()

    async def health(self) -> Health:
        """Returns the state of maintenance: its lag, what was set aside or missed, and the last rebuild and audit."""
        return await self._run(self._health())

    def for_tenant(self, tenant: str) -> Self:
        """Returns the same graph for another tenant. It shares the store; closing it leaves the store open."""
        view = self._view(tenant)
        view._is_owner, view._is_open, view._is_table_open = False, False, self._is_table_open
        return view

    async def explain(self, call: Any, *args: Any, **kwargs: Any) -> Explanation:
        """Returns the requests that a call would make, and their cost, without making them.

        Pass a query, a coroutine, or a method with its arguments: `await g.explain(g.out("S1", Enrollment))`,
        `await g.explain(g.put(student))` or `await g.explain(g.put, student)`.
        """
        walk = walks.cost_of_walk(call)
        with costs.Rehearsing(self._layout.definition) as rehearsal, rehearsed():
            if callable(call):
                call = call(*args, **kwargs)
            if isinstance(call, _queries()):
                walk = walks.cost_of_walk(call)
                call = call.page()
            if not isawaitable(call):
                raise InvalidValue(
                    f"explain takes a query, a coroutine or a method, got {shown(call)}; pass a method and then its "
                    f"arguments, as in g.explain(g.put, student)"
                )
            await call
        explanation = replace(rehearsal.explanation(self._fan_outs, self._countings), walk=walk)
        with unwatched():
            return await self._run(self._sized(explanation))
