"""The methods of a graph that read all of it: what is recomputed, compared and loaded into memory.

`adjoin.batch.calls` and `adjoin.snapshots.calls` do the work, which blocks. `WholeGraph` calls them; `AsyncWholeGraph`
does it in a thread, whose plans run on the loop of the graph.
"""

from __future__ import annotations

import asyncio
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from adjoin.late import later
from adjoin.requests import Plan
from adjoin.verbs import Verbs

if TYPE_CHECKING:
    from adjoin.batch import calls as batch_calls
    from adjoin.batch.audit import Audit
    from adjoin.batch.rebuild import Rebuilt
    from adjoin.snapshots import calls as snapshot_calls
    from adjoin.snapshots.snapshot import AsyncSnapshot, Snapshot
    from adjoin.stores.interface import AsyncStore, Store
else:
    batch_calls = later("adjoin.batch.calls")
    snapshot_calls = later("adjoin.snapshots.calls")

T = TypeVar("T")


class WholeGraph(Verbs):
    """The calls of `Graph`."""

    _store: Store

    @abstractmethod
    def _run(self, plan: Plan[T]) -> T: ...

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
        """Recomputes aggregates and summaries from all edges, and writes those that differ. Others may write meanwhile.

        `source` is an export, in a folder or on S3, or "scan" to read the table item by item; without it, the file of
        the graph is read. `engine` is "duckdb" or "spark", and `options` are passed to it. `only` names fields, such
        as "CUSTOMER.owed". With `dry_run`, nothing is written. `state` is a file that records how far the writing
        from an export came, so that another run continues there. `diff` is a file for all differences, one per line.
        `progress` is called with the name of a step and a number. Without a tenant, all tenants of the table are
        rebuilt.
        """
        over = batch_calls.Over(self._layout, self._store, self._run, source, engine, options, progress, self._clock)
        return batch_calls.rebuilt(over, only, dry_run, state, diff)

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
        """Compares everything that adjoin derives with the edges it is derived from; the result is true if all agree.

        `repair=True` repairs all findings except dangling edges; `repair=["dangling"]` removes those. `report` is a
        file for the findings, as JSON. `source`, `engine`, `options` and `progress` are the same as for `rebuild`.
        Without a tenant, all tenants of the table are verified.
        """
        over = batch_calls.Over(self._layout, self._store, self._run, source, engine, options, progress, self._clock)
        return batch_calls.verified(over, repair, report)

    def snapshot(
        self,
        edges: Iterable[type[Any]],
        fields: Iterable[str] = (),
        *,
        source: str | os.PathLike[str] | None = None,
        progress: Callable[[str, int], None] | None = None,
    ) -> Snapshot:
        """Loads edges of some classes into arrays in memory, with the nodes at their ends and chosen fields of numbers.

        `fields` are names of fields, such as "Knows.since", or "since" of every class that has it. `source` is an
        export, in a folder or on S3, or "scan" to read the table item by item; without it, the file of the graph is
        read, or a table of DynamoDB is scanned. `progress` is called with the name of a step and a number.
        """
        taking = snapshot_calls.Taking(
            self._layout, self._store, self._context.secret, self._run, self._run, edges, fields, source, progress
        )
        made: Snapshot = snapshot_calls.taken(taking, is_async=False)
        return made

    def open_snapshot(self, folder: str | os.PathLike[str]) -> Snapshot:
        """Opens a snapshot that was saved in a folder, by memory map."""
        made: Snapshot = snapshot_calls.opened(self._layout, self._context.secret, self._run, folder, is_async=False)
        return made


class AsyncWholeGraph(Verbs):
    """The calls of `AsyncGraph`."""

    _store: AsyncStore
    _is_open: bool

    @abstractmethod
    async def _run(self, plan: Plan[T]) -> T: ...

    @abstractmethod
    async def _open(self) -> None: ...

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
        """Recomputes aggregates and summaries from all edges, and writes those that differ. Others may write meanwhile.

        `source` is an export, in a folder or on S3, or "scan" to read the table item by item; without it, the file of
        the graph is read. `engine` is "duckdb" or "spark", and `options` are passed to it. `only` names fields, such
        as "CUSTOMER.owed". With `dry_run`, nothing is written. `state` is a file that records how far the writing
        from an export came, so that another run continues there. `diff` is a file for all differences, one per line.
        `progress` is called with the name of a step and a number. Without a tenant, all tenants of the table are
        rebuilt.
        """
        run = await self._driven()
        over = batch_calls.Over(self._layout, self._store, run, source, engine, options, progress, self._clock)
        return await asyncio.to_thread(batch_calls.rebuilt, over, only, dry_run, state, diff)

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
        """Compares everything that adjoin derives with the edges it is derived from; the result is true if all agree.

        `repair=True` repairs all findings except dangling edges; `repair=["dangling"]` removes those. `report` is a
        file for the findings, as JSON. `source`, `engine`, `options` and `progress` are the same as for `rebuild`.
        Without a tenant, all tenants of the table are verified.
        """
        run = await self._driven()
        over = batch_calls.Over(self._layout, self._store, run, source, engine, options, progress, self._clock)
        return await asyncio.to_thread(batch_calls.verified, over, repair, report)

    async def snapshot(
        self,
        edges: Iterable[type[Any]],
        fields: Iterable[str] = (),
        *,
        source: str | os.PathLike[str] | None = None,
        progress: Callable[[str, int], None] | None = None,
    ) -> AsyncSnapshot:
        """Loads edges of some classes into arrays in memory, with the nodes at their ends and chosen fields of numbers.

        `fields` are names of fields, such as "Knows.since", or "since" of every class that has it. `source` is an
        export, in a folder or on S3, or "scan" to read the table item by item; without it, the file of the graph is
        read, or a table of DynamoDB is scanned. `progress` is called with the name of a step and a number.
        """
        run = await self._driven()
        taking = snapshot_calls.Taking(
            self._layout, self._store, self._context.secret, run, self._run, edges, fields, source, progress
        )
        made: AsyncSnapshot = await asyncio.to_thread(snapshot_calls.taken, taking, is_async=True)
        return made

    async def open_snapshot(self, folder: str | os.PathLike[str]) -> AsyncSnapshot:
        """Opens a snapshot that was saved in a folder, by memory map."""
        await self._driven()
        made: AsyncSnapshot = snapshot_calls.opened(
            self._layout, self._context.secret, self._run, folder, is_async=True
        )
        return made

    async def _driven(self) -> Callable[[Plan[Any]], Any]:
        """Returns a function with which another thread runs plans: they run on this loop while the thread waits."""
        if not self._is_open:
            await self._open()
        loop = asyncio.get_running_loop()
        return lambda plan: asyncio.run_coroutine_threadsafe(self._run(plan), loop).result()
