"""Stores to test: the contract suite runs over each, and over each independent server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adjoin.requests import CreateTable
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from tests.servers import processes
from tests.servers.differences import Difference, expect_differences
from tests.servers.open import Stores
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


def open_embedded(kind: str, tmp_path: Path, clock: Clock) -> SQLiteStore:
    path = str(tmp_path / "graph.db") if kind == "file" else ":memory:"
    return SQLiteStore(path, durability="process", clock=clock)


@pytest.fixture(params=["file", "memory"])
def embedded(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[SQLiteStore]:
    """The embedded store, for what only it can do."""
    store = open_embedded(request.param, tmp_path, clock)
    yield store
    store.close()


@pytest.fixture(params=["file", "memory", *processes.NAMES])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock, servers: Stores) -> Iterator[Store]:
    """Any store, with the example tables."""
    opened: Store
    if request.param in processes.NAMES:
        fails = request.node.get_closest_marker("xfail") is not None
        opened = servers.open(request.param, (EDGES, PLAIN, SINGLE), fails=fails)
    else:
        opened = open_embedded(request.param, tmp_path, clock)
        opened.execute([CreateTable(definition) for definition in (EDGES, PLAIN, SINGLE)])
    yield opened
    opened.close()


UNUSED = pytest.StashKey[set[Difference]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    unused = expect_differences(items)
    # Of a part of the suite nothing can be said about what it does not hold.
    is_whole = not any("::" in argument or argument.endswith(".py") for argument in config.args)
    config.stash[UNUSED] = unused if is_whole else set()
