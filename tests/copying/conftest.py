"""Two stores that may fail: one to copy from, and one to copy to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore


@pytest.fixture
def source() -> Iterator[FaultyStore]:
    store = FaultyStore(SQLiteStore(":memory:"))
    yield store
    store.close()


@pytest.fixture
def destination() -> Iterator[FaultyStore]:
    store = FaultyStore(SQLiteStore(":memory:"))
    yield store
    store.close()
