"""Stores to test: the contract suite runs over each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adjoin.requests import CreateTable
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from tests.stores.examples import EDGES, PLAIN, SINGLE


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["file", "memory"])
def embedded(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[SQLiteStore]:
    """The embedded store, for what only it can do."""
    path = str(tmp_path / "graph.db") if request.param == "file" else ":memory:"
    store = SQLiteStore(path, durability="process", clock=clock)
    yield store
    store.close()


@pytest.fixture
def store(embedded: SQLiteStore) -> Store:
    """Any store, with the example tables."""
    embedded.execute([CreateTable(definition) for definition in (EDGES, PLAIN, SINGLE)])
    return embedded
