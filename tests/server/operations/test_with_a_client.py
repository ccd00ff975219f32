"""The operations behind HTTP, with adjoin's own client for the service: what one tells, the other understands."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from adjoin.errors import ChangesTrimmed
from adjoin.requests import (
    ChangesResponse,
    CreateTable,
    DescribeTable,
    DropTable,
    ListStreams,
    ListTables,
    Put,
    ReadChanges,
    SetTimeToLive,
    StreamsResponse,
    TableResponse,
    TablesResponse,
    TagsResponse,
    TagTable,
    UpdateTable,
)
from adjoin.server.operations.interface import Refused
from adjoin.stores.dynamodb import DynamoDBStore
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition, Throughput
from tests.server.operations.calls import Calls
from tests.stores.examples import EDGES, everything, item, key, n, one, s

_ERRORS = {"ChangesTrimmed": "TrimmedDataAccessException", "InvalidRequest": "ValidationException"}


class Handler(BaseHTTPRequestHandler):
    calls: Calls

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        operation = self.headers["X-Amz-Target"].rpartition(".")[2]
        try:
            status, answer = 200, self.calls(operation, **body)
        except Refused as error:
            status, answer = 400, {"__type": f"x#{error.code}", "message": error.message}
        except ChangesTrimmed as error:
            status, answer = 400, {"__type": f"x#{_ERRORS[type(error).__name__]}", "message": str(error)}
        told = b"" if operation in ("TagResource", "UntagResource") and status == 200 else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def client(call: Calls, monkeypatch: pytest.MonkeyPatch) -> Iterator[DynamoDBStore]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    handler = type("Bound", (Handler,), {"calls": call})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    store = DynamoDBStore(region="us-east-1", endpoint=f"http://127.0.0.1:{server.server_port}")
    yield store
    store.close()
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_table_is_described_as_it_was_created(client: DynamoDBStore) -> None:
    full = TableDefinition(
        "Full",
        KeyAttribute("p", "B"),
        KeyAttribute("s", "N"),
        (
            IndexDefinition("By.x", KeyAttribute("x", "N"), None, Projection("KEYS_ONLY"), False, Throughput(1, 2)),
            IndexDefinition("By.y", KeyAttribute("p", "B"), KeyAttribute("y"), Projection("INCLUDE", ("a",)), True),
        ),
        ttl="until",
        stream_view="OLD_IMAGE",
        throughput=Throughput(5, 6),
        deletion_protection=True,
    )
    for definition in (full, EDGES):
        client.execute([CreateTable(definition)])
        assert one(client, DescribeTable(definition.name), TableResponse).definition == definition
    assert one(client, ListTables(), TablesResponse).names == ("Edges", "Full")


def test_a_table_changes(client: DynamoDBStore, call: Calls) -> None:
    client.execute([CreateTable(EDGES)])
    edge = item("A", "1", RPK=s("X"), RSK=s("b"), kind=s("k"), at=n(1))
    call.store.execute([Put("Edges", edge)])
    more = IndexDefinition("More", KeyAttribute("at", "N"))
    change = UpdateTable("Edges", (more,), ("Reverse",), Throughput(5, 5), stream="off", deletion_protection=True)
    units = [(name, Throughput(1, 1)) for name in ("Inverted", "Kind")]
    client.execute([replace(change, index_throughput=tuple(units))])
    found = one(client, DescribeTable("Edges"), TableResponse).definition
    assert [index.name for index in found.indexes] == ["Inverted", "Kind", "More", "ByTime"]
    assert (found.throughput, found.stream, found.deletion_protection) == (Throughput(5, 5), False, True)
    assert everything(call.store, "Edges") == [edge]
    client.execute([UpdateTable("Edges", deletion_protection=False)])
    client.execute([DropTable("Edges")])


def test_tags_and_expiry(client: DynamoDBStore) -> None:
    client.execute([CreateTable(EDGES)])
    given = TagTable("Edges", (("b", "2"), ("a", "1")), ("b",))
    assert one(client, given, TagsResponse).tags == (("a", "1"),)
    assert one(client, SetTimeToLive("Edges", "until"), TableResponse).definition.ttl == "until"
    assert one(client, SetTimeToLive("Edges", None), TableResponse).definition == EDGES


def test_changes_are_read_as_they_were_made(client: DynamoDBStore, call: Calls) -> None:
    client.execute([CreateTable(EDGES)])
    edges = [item("A", str(each), kind=s("k")) for each in range(5)]
    call.store.execute([Put("Edges", edge) for edge in edges])
    first = one(client, ReadChanges("Edges", limit=3), ChangesResponse)
    rest = one(client, ReadChanges("Edges", first.next), ChangesResponse)
    changes = [*first.changes, *rest.changes]
    assert [(change.key, change.old, change.new) for change in changes] == [
        (key("A", str(each)), None, edge) for each, edge in enumerate(edges)
    ]
    assert one(client, ReadChanges("Edges", rest.next), ChangesResponse).changes == []
    call.store.execute([Put("Edges", edges[0] | {"x": n(1)})])
    (last,) = one(client, ReadChanges("Edges", rest.next), ChangesResponse).changes
    assert (last.old, last.new) == (edges[0], edges[0] | {"x": n(1)})
    assert [each.table for each in one(client, ListStreams(), StreamsResponse).streams] == ["Edges"]
