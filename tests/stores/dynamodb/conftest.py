"""The store of DynamoDB in front of a real server, with one that misbehaves in between.

A module shares its server, its table and its graph, since opening them takes longer than most tests; a test
takes names that no other has.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest

from adjoin import AsyncGraph, Graph
from adjoin.stores.dynamodb import store as store_module
from adjoin.stores.dynamodb.client import Backoff, Client, Waits
from tests.conftest import DrivenGraph
from tests.models import SCHOOL
from tests.servers.open import Stores
from tests.stores.dynamodb.misbehaving import MisbehavingServer

_NUMBERS = count()


@pytest.fixture(scope="module", autouse=True)
def _no_settings_of_this_machine() -> Iterator[pytest.MonkeyPatch]:
    """Neither credentials nor regions but those that a test sets."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        yield patch


@pytest.fixture(scope="module")
def backend(servers: Stores) -> str:
    """The address of a real implementation of the service, which behaves; it knows transactions by their tokens."""
    return servers.address("ministack")


@pytest.fixture(scope="module")
def module_server(backend: str) -> Iterator[MisbehavingServer]:
    server = MisbehavingServer(backend)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(module_server: MisbehavingServer) -> Iterator[MisbehavingServer]:
    """What the tests' graphs talk to: the backend, until it is told to misbehave."""
    module_server.behave()
    module_server.calls.clear()
    yield module_server
    module_server.behave()


@pytest.fixture(scope="module")
def table() -> str:
    """A name that no other module has."""
    return f"Faults{os.getpid()}-{next(_NUMBERS)}"


@pytest.fixture(scope="module")
def behind(backend: str, table: str) -> Iterator[Graph]:
    """The table, made by this fixture, seen without misbehaviour in between."""
    with Graph(f"dynamodb://{table}?endpoint={backend}", SCHOOL, consistent=True) as graph:
        graph.create_table()
        yield graph


@pytest.fixture(scope="module")
def quick() -> Iterator[None]:
    """Waits of milliseconds between attempts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "Backoff", partial(Backoff, first=0.002, longest=0.02))
        yield


class PassedWaits(Waits):
    """Waits that nobody sits through: each counts for the deadline, and is over.

    So a deadline that no busy machine reaches by itself comes after some attempts.
    """

    def next_wait(self) -> float | None:
        wait = super().next_wait()
        if wait is None:
            return None
        self._started -= wait
        return 0.0


@pytest.fixture
def waits_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def attempts(client: Client, backoff: Backoff | None = None) -> Waits:
        return PassedWaits(backoff or client.backoff, client._now)

    monkeypatch.setattr(Client, "attempts", attempts)


@pytest.fixture(scope="module")
def location(module_server: MisbehavingServer, table: str, behind: Graph) -> str:
    """The same table behind the misbehaving server."""
    return f"dynamodb://{table}?endpoint={module_server.url}&timeout=10&deadline=30"


@pytest.fixture(scope="module", params=["Graph", "AsyncGraph"])
def g(request: pytest.FixtureRequest, location: str, quick: None) -> Iterator[Any]:
    """A graph behind the misbehaving server, of either kind."""
    if request.param == "Graph":
        with Graph(location, SCHOOL) as graph:
            yield graph
        return
    loop = asyncio.new_event_loop()
    with DrivenGraph(AsyncGraph(location, SCHOOL), loop) as driven:
        yield DrivenGraph(driven, loop) if isinstance(driven, AsyncGraph) else driven
    loop.close()


@pytest.fixture
def name() -> str:
    """An id that no other test has."""
    return f"n{next(_NUMBERS)}"
