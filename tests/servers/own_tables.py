"""A store on a server that tests share, and perhaps others: every table gets a name that is the test's own.

Tests use the names of `tests.stores.examples`. Each name is carried to the server behind a prefix that
nobody else has, and back without it. So tests cannot meet, and whatever else lies on the server (somebody's
account, even) is neither seen nor touched.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar
from uuid import uuid4

import botocore.session
import pytest

from adjoin.errors import InvalidRequest
from adjoin.requests import (
    BatchWrite,
    CreateTable,
    Delete,
    DropTable,
    ListStreams,
    ListTables,
    Put,
    Request,
    Response,
    StreamsResponse,
    TablesResponse,
    TransactWrite,
    Update,
)
from adjoin.stores.interface import Store
from adjoin.tables import TableDefinition
from tests.servers.processes import Server

T = TypeVar("T")
Rename = Callable[[str], str]

_WRITES = (Put, Update, Delete, BatchWrite, TransactWrite)
_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,200}")


class OwnTables:
    """Passes requests on to a store that others use too.

    A test that needs what the server lacks is skipped at that point.
    The tables that are `there` are created when they are first named: most tests need one of them.
    """

    def __init__(self, inner: Store, server: Server, there: Iterable[TableDefinition] = ()) -> None:
        self.inner = inner
        self.server = server.name
        self.creates_tables = inner.creates_tables
        self.lacks = server.lacks
        self._server = server
        self._is_settled = True
        self._prefix = f"adjoin-test-{uuid4().hex[:12]}-"
        self._waiting = {definition.name: definition for definition in there}

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        for request in requests:
            if type(request) in self.lacks:
                pytest.skip(f"{self.server} has no {self.lacks[type(request)]}")
        return self.pass_on(requests)

    def pass_on(self, requests: Sequence[Request]) -> list[Response]:
        """Whatever the server has or lacks."""
        self._create([name for request in requests for name in self._named(request) if name in self._waiting])
        self._settle(requests)
        responses = self.inner.execute([renamed(request, self._outward) for request in requests])
        return [self._answer(response) for response in responses]

    def close(self) -> None:
        """Drop what was created, unless the server goes anyway."""
        if self._server.is_ours:
            return
        self._waiting.clear()
        (tables,) = self.execute([ListTables()])
        assert isinstance(tables, TablesResponse)
        for name in tables.names:
            try:
                self.execute([DropTable(name)])
            except InvalidRequest:
                self._unprotect(self._outward(name))
                self.execute([DropTable(name)])

    def _unprotect(self, name: str) -> None:
        """What a store cannot do, because no graph should."""
        client = botocore.session.get_session().create_client(
            "dynamodb", region_name=self._server.region, endpoint_url=self._server.endpoint
        )
        client.update_table(TableName=name, DeletionProtectionEnabled=False)
        client.close()

    def _settle(self, requests: Sequence[Request]) -> None:
        """Waits where a server would not show yet, in indexes, streams and other late reads, what was written."""
        if any(isinstance(request, _WRITES) for request in requests):
            self._is_settled = False
        elif not self._is_settled and not all(getattr(request, "consistent", False) for request in requests):
            time.sleep(self._server.settles_in)
            self._is_settled = True

    def _named(self, request: Request) -> Iterator[str]:
        return iter(self._waiting) if isinstance(request, ListTables | ListStreams) else tables_in(request)

    def _create(self, names: Iterable[str]) -> None:
        definitions = [self._waiting.pop(name) for name in dict.fromkeys(names)]
        if definitions:
            self.inner.execute([CreateTable(renamed(definition, self._outward)) for definition in definitions])

    def _answer(self, response: Response) -> Response:
        if isinstance(response, TablesResponse):
            mine = tuple(name for name in response.names if name.startswith(self._prefix))
            response = replace(response, names=mine)
        if isinstance(response, StreamsResponse):
            ours = tuple(stream for stream in response.streams if stream.table.startswith(self._prefix))
            response = replace(response, streams=ours)
        return renamed(response, self._inward)

    def _outward(self, name: str) -> str:
        # A name that is refused must go out as it is, to be refused for what is wrong with it.
        return self._prefix + name if _NAME.fullmatch(name) else name

    def _inward(self, name: str) -> str:
        return name.removeprefix(self._prefix)


def renamed(value: T, rename: Rename) -> T:
    """A request or a response with other names of tables."""
    if isinstance(value, TableDefinition):
        return replace(value, name=rename(value.name))
    if isinstance(value, tuple | list):
        return type(value)(renamed(each, rename) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        held = {field.name for field in fields(value)} & _HOLDERS.keys()
        return replace(value, **{name: _HOLDERS[name](getattr(value, name), rename) for name in held})
    return value


_HOLDERS: dict[str, Callable[[Any, Rename], Any]] = {
    "table": lambda name, rename: rename(name),
    "names": lambda names, rename: tuple(map(rename, names)),
    **dict.fromkeys(("definition", "gets", "writes", "unprocessed", "consumed", "streams"), renamed),
}
"""The fields that hold names of tables, or what holds them."""


def tables_in(request: Request) -> Iterator[str]:
    """The names of tables that a request has."""
    found: list[str] = []

    def note(name: str) -> str:
        found.append(name)
        return name

    renamed(request, note)
    return iter(found)
