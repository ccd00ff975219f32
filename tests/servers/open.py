"""Opening adjoin's own store on a server: the one place where the two meet."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from adjoin.stores.dynamodb import DynamoDBStore
from adjoin.stores.dynamodb.store import DEADLINE
from adjoin.tables import TableDefinition
from tests.servers.own_tables import OwnTables
from tests.servers.processes import NotInstalled, Server, Servers

_DEADLINE = 60.0
"""Seconds for a request with its retries. A server of this machine, busy or not, that has no answer then never will."""
_SHORT_DEADLINE = 5.0
"""The same for a test that is expected to fail: a server that fails inside is asked again until then."""


class Stores:
    """Stores on the servers of one process of pytest; each test gets tables of its own through one of them."""

    def __init__(self) -> None:
        self._servers = Servers()
        self._stores: dict[tuple[Server, bool], DynamoDBStore] = {}

    def open(self, name: str, there: Iterable[TableDefinition] = (), *, fails: bool = False) -> OwnTables:
        """Tables of one's own on the server of that name; skips the test where the server is not installed.

        `fails` says that the test is expected to fail there.
        """
        server = self._server(name)
        if (server, fails) not in self._stores:
            deadline = (_SHORT_DEADLINE if fails else _DEADLINE) if server.is_ours else DEADLINE
            self._stores[server, fails] = DynamoDBStore(
                endpoint=server.endpoint, region=server.region, deadline=deadline
            )
        return OwnTables(self._stores[server, fails], server, there)

    def address(self, name: str) -> str:
        """Where that server answers, which must be one of ours."""
        address = self._server(name).endpoint
        assert address is not None
        return address

    def _server(self, name: str) -> Server:
        try:
            return self._servers[name]
        except NotInstalled as error:
            pytest.skip(str(error))

    def close(self) -> None:
        for store in self._stores.values():
            store.close()
        self._servers.stop()
