"""Files to open: made, and with a header that was changed."""

from __future__ import annotations

from pathlib import Path

from adjoin.requests import CreateTable
from adjoin.stores.sqlite import SQLiteStore
from tests.stores.examples import PLAIN, item, n, put


def make(path: Path, count: int = 3) -> None:
    store = SQLiteStore(path)
    store.execute([CreateTable(PLAIN)])
    put(store, "Plain", *(item("A", str(each), x=n(each)) for each in range(count)))
    store.close()


def header(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(100)
