"""The embedded store for event loops."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import apsw
import pytest

from adjoin.errors import NotAnAdjoinFile, StoreClosed, TableNotFound
from adjoin.expressions import Add, attribute
from adjoin.requests import CreateTable, Get, ItemResponse, Put, Update
from adjoin.stores.interface import AsyncStore
from adjoin.stores.sqlite import AsyncSQLiteStore
from tests.stores.examples import PLAIN, item, key, n


@pytest.mark.parametrize("where", ["file", "memory"])
def test_many_tasks_share_a_store(tmp_path: Path, where: str) -> None:
    before = {*threading.enumerate()}

    async def main() -> None:
        store: AsyncStore = AsyncSQLiteStore(str(tmp_path / "graph.db") if where == "file" else ":memory:")
        await store.execute([CreateTable(PLAIN)])
        add = Update("Plain", key("A", "1"), (Add(attribute("count"), n(1)),))
        await asyncio.gather(*(store.execute([add]) for _ in range(50)))
        (response,) = await store.execute([Get("Plain", key("A", "1"))])
        assert isinstance(response, ItemResponse)
        assert response.item == item("A", "1", count=n(50))
        await store.close()
        await store.close()
        with pytest.raises(StoreClosed):
            await store.execute([add])

    asyncio.run(main())
    assert not {*threading.enumerate()} - before


def test_the_loop_goes_on_while_a_write_waits(tmp_path: Path) -> None:
    async def main() -> None:
        store = AsyncSQLiteStore(tmp_path / "graph.db")
        await store.execute([CreateTable(PLAIN)])
        other = apsw.Connection(str(tmp_path / "graph.db"))
        other.execute("BEGIN IMMEDIATE")
        write = asyncio.create_task(store.execute([Put("Plain", item("A", "1"))]))
        for _ in range(20):
            await asyncio.sleep(0.001)
            await store.execute([Get("Plain", key("A", "1"))])
        assert not write.done()
        other.execute("ROLLBACK")
        await write
        other.close()
        await store.close()

    asyncio.run(main())


def test_what_is_wrong_with_the_file_is_raised_by_the_first_call(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes")

    async def main() -> None:
        store = AsyncSQLiteStore(tmp_path / "notes.txt")
        with pytest.raises(NotAnAdjoinFile):
            await store.execute([Get("Plain", key("A", "1"))])
        await store.close()

    asyncio.run(main())


def test_errors_reach_the_task(tmp_path: Path) -> None:
    async def main() -> None:
        store = AsyncSQLiteStore(tmp_path / "graph.db")
        with pytest.raises(TableNotFound):
            await store.execute([Get("Plain", key("A", "1"))])
        assert await store.sweep() == 0
        await store.close()

    asyncio.run(main())
