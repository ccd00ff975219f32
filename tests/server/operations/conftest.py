"""A store behind the operations, with a clock that stands still."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from adjoin.stores.sqlite import SQLiteStore
from tests.server.operations.calls import Calls


class Clock:
    def __init__(self) -> None:
        self.now = float(int(time.time()))

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def call(clock: Clock) -> Iterator[Calls]:
    store = SQLiteStore(":memory:", clock=clock)
    yield Calls(store)
    store.close()
