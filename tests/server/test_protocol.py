"""What is decided before an operation is: methods, targets, content types, who asks, browsers, compression."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from zlib import crc32

import pytest

from adjoin.server.serving import Server, serve
from adjoin.stores.sqlite import SQLiteStore
from tests.waiting import LIMIT

JSON = "application/x-amz-json-1.0"
AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=host, Signature=x"
RIGHT = {
    "X-Amz-Target": "DynamoDB_20120810.ListTables",
    "Content-Type": JSON,
    "Authorization": AUTHORIZATION,
    "X-Amz-Date": "20250101T000000Z",
}
NOTHING = b"<UnknownOperationException/>\n"
NO_TABLES: dict[str, Any] = {"TableNames": []}


@pytest.fixture(scope="module")
def server(loop: None) -> Iterator[Server]:
    with serve(":memory:") as opened:
        yield opened


def ask(
    server: Server, method: str = "POST", path: str = "/", body: bytes = b"{}", **headers: str | None
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers (in lower case) and body; a header that is None is not sent."""
    connection = HTTPConnection(server.endpoint.removeprefix("http://"), timeout=LIMIT)
    given = RIGHT | {name.replace("_", "-"): value for name, value in headers.items()}
    connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
    for name, value in given.items():
        if value is not None:
            connection.putheader(name, value)
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content


def fault(name: str, message: str | None = None) -> dict[str, str]:
    said = {"__type": f"com.amazon.coral.service#{name}"}
    return said if message is None else said | {"message": message}


NO_TOKEN = fault("MissingAuthenticationTokenException", "Request is missing Authentication Token")
UNKNOWN = fault("UnknownOperationException")
NO_JSON = fault("SerializationException")
CASES: list[tuple[dict[str, Any], int, Any]] = [
    ({}, 200, NO_TABLES),
    ({"Content_Type": "application/json; charset=utf-8"}, 200, NO_TABLES),
    ({"Content_Type": "application/x-amz-json-1.1"}, 404, NOTHING),
    ({"Content_Type": None}, 404, NOTHING),
    ({"method": "PUT"}, 404, NOTHING),
    ({"method": "GET", "path": "/other"}, 404, NOTHING),
    ({"method": "OPTIONS"}, 404, NOTHING),
    # --- what is asked ---
    ({"X_Amz_Target": None}, 400, UNKNOWN),
    ({"X_Amz_Target": None, "body": b"", "Content_Type": None}, 400, UNKNOWN),
    ({"X_Amz_Target": "DynamoDB_20120810.listTables"}, 400, UNKNOWN),
    ({"X_Amz_Target": "DynamoDB_20120810.ListTables.x"}, 400, UNKNOWN),
    ({"X_Amz_Target": "DynamoDB_20120810.ListStreams"}, 400, UNKNOWN),
    ({"X_Amz_Target": "DynamoDBStreams_20120810.ListStreams"}, 200, {"Streams": []}),
    ({"X_Amz_Target": "DynamoDB_20120810.ExecuteStatement"}, 400, UNKNOWN),
    ({"X_Amz_Target": None, "body": b"{"}, 400, NO_JSON),
    ({"body": b"{"}, 400, NO_JSON),
    ({"body": b""}, 400, NO_JSON),
    ({"body": b"{", "Authorization": None}, 400, NO_JSON),
    # --- who asks ---
    ({"X_Amz_Target": None, "Authorization": None}, 400, UNKNOWN),
    ({"Authorization": None}, 400, NO_TOKEN),
    ({"Authorization": "Basic x"}, 400, NO_TOKEN),
    ({"Authorization": None, "body": b'{"Limit":"x"}'}, 400, NO_TOKEN),
    (
        {"Authorization": "AWS4-HMAC-SHA256 Credential=a", "X_Amz_Date": None},
        400,
        fault(
            "IncompleteSignatureException",
            "Authorization header requires 'Signature' parameter. Authorization header requires 'SignedHeaders'"
            " parameter. Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header."
            " Authorization=AWS4-HMAC-SHA256 Credential=a",
        ),
    ),
    (
        {"path": "/?X-Amz-Algorithm=a"},
        400,
        fault(
            "InvalidSignatureException",
            "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.",
        ),
    ),
    (
        {"path": "/?X-Amz-Algorithm=a&X-Amz-Date=b&X-Amz-Signature=c", "Authorization": None},
        400,
        fault(
            "IncompleteSignatureException",
            "AWS query-string parameters must include 'X-Amz-Credential'. AWS query-string parameters must include"
            " 'X-Amz-SignedHeaders'. Re-examine the query-string parameters.",
        ),
    ),
]


@pytest.mark.parametrize(("given", "status", "expected"), CASES)
def test_a_request_and_its_answer(server: Server, given: dict[str, Any], status: int, expected: Any) -> None:
    answered, headers, content = ask(server, **given)
    assert (answered, content if isinstance(expected, bytes) else json.loads(content)) == (status, expected)
    assert len(headers["x-amzn-requestid"]) == 52
    assert headers["x-amz-crc32"] == str(crc32(content))


def test_health(server: Server) -> None:
    status, _, content = ask(server, "GET", Authorization=None)
    assert (status, content) == (200, f"healthy: {server.endpoint.removeprefix('http://')} ".encode())


def test_metrics(loop: None) -> None:
    with serve(":memory:") as server:
        ask(server)
        ask(server)
        ask(server, X_Amz_Target="DynamoDB_20120810.DescribeTable", body=b'{"TableName": "nowhere"}')
        ask(server, X_Amz_Target="DynamoDB_20120810.Nothing")
        status, headers, content = ask(server, "GET", "/metrics", b"", Authorization=None)
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert content.decode().splitlines() == [
        "# HELP adjoin_requests_total Requests by operation.",
        "# TYPE adjoin_requests_total counter",
        'adjoin_requests_total{operation="DescribeTable"} 1',
        'adjoin_requests_total{operation="ListTables"} 2',
        "# HELP adjoin_answers_total Answers by status, with those to requests that name no known operation.",
        "# TYPE adjoin_answers_total counter",
        'adjoin_answers_total{status="200"} 2',
        'adjoin_answers_total{status="400"} 2',
    ]


def test_a_server_with_a_key_pair_tells_no_metrics(loop: None) -> None:
    with serve(":memory:", access_key="AKIDEXAMPLE", secret_key="a long secret") as server:
        assert ask(server, "GET", "/metrics", b"", Authorization=None)[::2] == (404, NOTHING)


def test_metrics_are_not_for_pages_of_others(server: Server) -> None:
    assert ask(server, "GET", "/metrics", b"", Authorization=None, Origin="http://example.org")[0] == 403


def test_the_endpoint_is_where_it_was_asked(server: Server) -> None:
    _, _, content = ask(server, X_Amz_Target="DynamoDB_20120810.DescribeEndpoints")
    address = server.endpoint.removeprefix("http://")
    assert json.loads(content) == {"Endpoints": [{"Address": address, "CachePeriodInMinutes": 1440}]}


def test_the_type_of_the_answer_is_that_of_the_request(server: Server) -> None:
    assert ask(server)[1]["content-type"] == JSON
    assert ask(server, Content_Type="application/json")[1]["content-type"] == "application/json"


@pytest.mark.parametrize("target", ["ListTables", "PutItem", "CreateTable"])
def test_a_fault_of_the_server_is_answered_as_one_and_logged(
    target: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "ListTables": {},
        "PutItem": {"TableName": "abc", "Item": {"a": {"S": "a"}}},
        "CreateTable": {
            "AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
            "TableName": "abc",
        },
    }

    def broken(*given: Any) -> Any:
        raise RuntimeError("a fault of ours")

    with serve(":memory:") as server:
        with monkeypatch.context() as patched:
            for name in ("text", "begin", "outcomes"):
                patched.setattr(SQLiteStore, name, broken)
            answer = ask(server, body=json.dumps(bodies[target]).encode(), X_Amz_Target=f"DynamoDB_20120810.{target}")
        assert answer[0] == 500
        # What was wrong is nobody else's matter.
        said = json.loads(answer[2])
        assert (said["__type"].partition("#")[2], said["message"]) == ("InternalServerError", "Internal server error")
        assert "a fault of ours" in caplog.text
        # It goes on.
        assert ask(server)[0] == 200


# --- compression -------------------------------------------------------------------------------


@pytest.mark.parametrize(("coding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_compressed_requests(server: Server, coding: str, pack: Any) -> None:
    assert json.loads(ask(server, body=pack(b"{}"), Content_Encoding=coding)[2]) == NO_TABLES
    for broken in (b"{}", pack(b"{}")[:-4]):
        assert json.loads(ask(server, body=broken, Content_Encoding=coding)[2]) == NO_JSON


def test_compressed_answers() -> None:
    table = {
        "AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
        "TableName": "x" * 200,
    }
    create = "DynamoDB_20120810.CreateTable"
    with serve(":memory:") as server:
        for number in range(30):
            body = json.dumps(table | {"TableName": f"{number:0200}"}).encode()
            # An answer that comes later takes the same way.
            assert ask(server, body=body, X_Amz_Target=create, Accept_Encoding="gzip")[0] == 200
        _, _, plain = ask(server)
        for accepted, coding, unpack in (
            ("br, gzip;q=0.5", "gzip", gzip.decompress),
            ("deflate", "deflate", zlib.decompress),
        ):
            _, headers, content = ask(server, Accept_Encoding=accepted)
            assert headers["content-encoding"] == coding
            assert headers["x-amz-crc32"] == str(crc32(content))
            assert unpack(content) == plain
        for accepted in ("identity", "gzip;q=0", "br"):
            assert ask(server, Accept_Encoding=accepted)[2] == plain
        small = ask(server, Accept_Encoding="gzip", body=b'{"Limit":1}')
        assert "content-encoding" not in small[1]


def test_a_body_that_is_too_large_is_read_to_its_end(server: Server) -> None:
    assert ask(server, body=b" " * (16 * 1024 * 1024 - 2) + b"{}")[0] == 200
    assert ask(server, body=b" " * (16 * 1024 * 1024 + 1))[0] == 413
