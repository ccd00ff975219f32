from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stores.dynamodb.streams.readers import Readers, open_readers
from tests.stores.dynamodb.streams.service import Clock
from tests.stores.dynamodb.streams.world import World


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def readers() -> Iterator[Readers]:
    with open_readers() as opened:
        yield opened


@pytest.fixture
def world(readers: Readers, clock: Clock) -> World:
    return World(readers, clock)
