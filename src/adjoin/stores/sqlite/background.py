"""The embedded store for asynchronous programs: the same store, called in a few threads."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager

from adjoin.errors import StoreClosed
from adjoin.requests import Request, Response
from adjoin.stores.sqlite.file import Durability, located
from adjoin.stores.sqlite.store import DAY, SQLiteStore

_CLOSED = "the store was closed; open it again to use it"


class AsyncSQLiteStore:
    """The embedded store for asynchronous programs: work runs in threads, so the loop never blocks.

    The first thread opens the file. If that fails, the first call raises the error.
    """

    creates_tables = True
    system = "sqlite"

    def __init__(
        self,
        path: str | os.PathLike[str],
        durability: Durability = "power",
        clock: Callable[[], float] = time.time,
        keep_changes: float = DAY,
        patience: float = 30.0,
        threads: int = 4,
    ) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="adjoin")
        self._opening: Future[SQLiteStore] = self._pool.submit(
            SQLiteStore, located(path), durability, clock, keep_changes, patience
        )
        self._closed = False
        self._ended = False

    async def execute(self, requests: Sequence[Request]) -> list[Response]:
        store = await self._store()
        return await asyncio.get_running_loop().run_in_executor(self._pool, store.execute, requests)

    async def sweep(self) -> int:
        store = await self._store()
        return await asyncio.get_running_loop().run_in_executor(self._pool, store.sweep)

    def dump(self, name: str) -> AbstractContextManager[Iterator[list[bytes]]]:
        """The same as `SQLiteStore.dump`; it blocks, so read it in a thread."""
        if self._closed:
            raise StoreClosed(_CLOSED)
        return self._opening.result().dump(name)

    def stream_end(self, name: str) -> str | None:
        """The same as `SQLiteStore.stream_end`; it blocks, so call it in a thread."""
        if self._closed:
            raise StoreClosed(_CLOSED)
        return self._opening.result().stream_end(name)

    async def _store(self) -> SQLiteStore:
        if not self._closed:
            store = await asyncio.wrap_future(self._opening)
            if not self._closed:
                return store
        raise StoreClosed(_CLOSED)

    async def close(self) -> None:
        """Closes the store; may be called again after it was interrupted or cancelled."""
        if self._ended:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._pool, self._close_opened)
        self._ended = True
        self._pool.shutdown()

    def _close_opened(self) -> None:
        if self._opening.exception() is None:
            self._opening.result().close()
