"""The server as programs meet it: boto3 over HTTP, signatures, several requests at once, and a clean end."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

import adjoin
from adjoin import Edge, Graph, Node
from adjoin.errors import InvalidLocation
from adjoin.server import serving
from adjoin.server.serving import Server, serve
from adjoin.stores.sqlite import SQLiteStore
from tests.waiting import LIMIT, until

TABLE: dict[str, Any] = {
    "TableName": "Things",
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("PK", "SK")],
    "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
    "BillingMode": "PAY_PER_REQUEST",
}


_HEAD = (
    b"POST / HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\n"
    b"X-Amz-Date: 20250101T000000Z\r\n"
    b"Authorization: AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=host, Signature=x\r\n"
)


def client(server: Server, access_key: str = "any", secret_key: str = "any", **options: Any) -> Any:
    return boto3.client(
        "dynamodb",
        endpoint_url=server.endpoint,
        region_name="eu-west-1",
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        **options,
    )


@pytest.fixture
def server(loop: None, tmp_path: Path) -> Iterator[Server]:
    with serve(tmp_path / "graph.db", durability="process") as opened:
        yield opened


def key(number: int) -> dict[str, dict[str, str]]:
    return {"PK": {"S": "a"}, "SK": {"S": f"{number:03d}"}}


def test_boto3_reads_and_writes(server: Server) -> None:
    dynamodb = client(server)
    dynamodb.create_table(**TABLE)
    dynamodb.get_waiter("table_exists").wait(TableName="Things")
    dynamodb.put_item(TableName="Things", Item={**key(1), "n": {"N": "1"}})
    changed = dynamodb.update_item(
        TableName="Things",
        Key=key(1),
        UpdateExpression="SET n = n + :one",
        ExpressionAttributeValues={":one": {"N": "1"}},
        ReturnValues="UPDATED_NEW",
        ReturnConsumedCapacity="INDEXES",
    )
    assert changed["Attributes"] == {"n": {"N": "2"}}
    assert changed["ConsumedCapacity"] == {"TableName": "Things", "CapacityUnits": 1.0, "Table": {"CapacityUnits": 1.0}}
    found = dynamodb.query(
        TableName="Things",
        KeyConditionExpression="PK = :p AND begins_with(SK, :s)",
        FilterExpression="n > :n",
        ExpressionAttributeValues={":p": {"S": "a"}, ":s": {"S": "0"}, ":n": {"N": "1"}},
    )
    assert (found["Items"], found["Count"]) == ([{**key(1), "n": {"N": "2"}}], 1)
    assert "Item" not in dynamodb.get_item(TableName="Things", Key=key(2))


def test_batches_and_transactions(server: Server) -> None:
    dynamodb = client(server)
    dynamodb.create_table(**TABLE)
    puts = [{"PutRequest": {"Item": key(each)}} for each in range(25)]
    assert dynamodb.batch_write_item(RequestItems={"Things": puts})["UnprocessedItems"] == {}
    asked = [key(3), key(99), key(1)]
    found = dynamodb.batch_get_item(RequestItems={"Things": {"Keys": asked}})["Responses"]["Things"]
    assert sorted(found, key=str) == sorted([key(1), key(3)], key=str)
    absent = {"ConditionExpression": "attribute_not_exists(PK)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    with pytest.raises(ClientError) as caught:
        dynamodb.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": "Things", "Item": key(50)}},
                {"Put": {"TableName": "Things", "Item": key(1), **absent}},
            ]
        )
    assert caught.value.response["CancellationReasons"] == [
        {"Code": "None"},
        {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed", "Item": key(1)},
    ]
    assert "Item" not in dynamodb.get_item(TableName="Things", Key=key(50))


@pytest.mark.parametrize(
    ("call", "parameters", "code", "message"),
    [
        (
            "get_item",
            {"TableName": "Nothing", "Key": key(1)},
            "ResourceNotFoundException",
            "Requested resource not found",
        ),
        (
            "put_item",
            {"TableName": "Things", "Item": {"PK": {"S": "a"}}},
            "ValidationException",
            "One or more parameter values were invalid: Missing the key SK in the item",
        ),
        (
            "put_item",
            {"TableName": "Things", "Item": key(1), "ConditionExpression": "attribute_exists(PK)"},
            "ConditionalCheckFailedException",
            "The conditional request failed",
        ),
        (
            "query",
            {"TableName": "Things", "KeyConditionExpression": "PK = :p"},
            "ValidationException",
            "Invalid KeyConditionExpression: An expression attribute value used in expression is not defined; "
            "attribute value: :p",
        ),
    ],
)
def test_faults_have_the_services_names(
    server: Server, call: str, parameters: dict[str, Any], code: str, message: str
) -> None:
    dynamodb = client(server)
    dynamodb.create_table(**TABLE)
    with pytest.raises(ClientError) as caught:
        getattr(dynamodb, call)(**parameters)
    assert caught.value.response["Error"] == {"Code": code, "Message": message}


def test_many_clients_at_once(server: Server) -> None:
    client(server).create_table(**TABLE)

    def count(numbers: range) -> None:
        dynamodb = client(server)
        for number in numbers:
            dynamodb.put_item(TableName="Things", Item=key(number))
            dynamodb.update_item(
                TableName="Things",
                Key={"PK": {"S": "all"}, "SK": {"S": "all"}},
                UpdateExpression="ADD n :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
            )

    threads = [threading.Thread(target=count, args=(range(start, start + 10),)) for start in range(0, 80, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    dynamodb = client(server)
    assert dynamodb.scan(TableName="Things", Select="COUNT")["Count"] == 81
    total = dynamodb.get_item(TableName="Things", Key={"PK": {"S": "all"}, "SK": {"S": "all"}}, ConsistentRead=True)
    assert total["Item"]["n"] == {"N": "80"}


def test_what_expired_goes_although_nobody_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_SWEEP", 0.2)
    with serve(tmp_path / "graph.db", durability="process") as server:
        dynamodb = client(server)
        dynamodb.create_table(**TABLE)
        wanted = {"Enabled": True, "AttributeName": "until"}
        dynamodb.update_time_to_live(TableName="Things", TimeToLiveSpecification=wanted)
        dynamodb.put_item(TableName="Things", Item={**key(1), "until": {"N": str(int(time.time()) - 60)}})
        assert "Item" in dynamodb.get_item(TableName="Things", Key=key(1))
        until(lambda: "Item" not in dynamodb.get_item(TableName="Things", Key=key(1)))


class Person(Node):
    id: str


class Knows(Edge[Person, Person]):
    since: int


def test_a_graph_on_the_same_file_and_one_through_the_server(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    with (
        serve(path, durability="process") as server,
        Graph(f"{path}?durability=process", [Person, Knows]) as direct,
        Graph(f"dynamodb://adjoin?endpoint={server.endpoint}", [Person, Knows]) as served,
    ):
        direct.put_many([Person(id="ann"), Person(id="bob")])
        served.connect(Knows, "ann", "bob", since=2020)
        assert list(direct.into("bob", Knows)) == list(served.into("bob", Knows))
        assert len(list(served.changes())) == len(list(direct.changes())) == 3


def test_a_key_pair_is_asked_for_where_others_can_reach_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidLocation, match="others can reach the server"):
        serve(tmp_path / "graph.db", host="0.0.0.0")
    with serve(tmp_path / "graph.db", access_key="AKID", secret_key="secret") as server:
        assert client(server, "AKID", "secret").list_tables()["TableNames"] == []
        for keys, code in (
            (("AKID", "other"), "InvalidSignatureException"),
            (("X", "y"), "UnrecognizedClientException"),
        ):
            with pytest.raises(ClientError) as caught:
                client(server, *keys).list_tables()
            assert caught.value.response["Error"]["Code"] == code


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (_HEAD.replace(b"ListTables", b"Nothing") + b"Content-Length: 2\r\n\r\n{}", b"400"),
        (_HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", b"200"),
    ],
)
def test_what_is_no_request_is_answered_too(server: Server, sent: bytes, status: bytes) -> None:
    host, port = server.endpoint.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=LIMIT) as connection:
        connection.sendall(sent)
        assert connection.recv(65536).split(b" ")[1] == status


ONE = _HEAD + b"Content-Length: 2\r\n\r\n{}"
CHUNKED = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        [ONE * 3],
        [ONE[:7], ONE[7:] + ONE + ONE[:80], ONE[80:]],
        [ONE[:-1], b"}" + ONE + ONE[:-2], b"{}"],
        [ONE + CHUNKED + ONE],
        [ONE + CHUNKED[:-3], CHUNKED[-3:] + ONE],
        [bytes([each]) for each in ONE * 3],
    ],
)
def test_requests_one_behind_the_other_in_any_pieces(server: Server, pieces: list[bytes]) -> None:
    host, port = server.endpoint.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=LIMIT) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.002)
        received = b""
        while received.count(b'{"TableNames":[]}') < 3:
            received += connection.recv(65536) or pytest.fail(f"the connection ended after {received!r}")
    assert received.count(b"HTTP/1.1 200 OK") == 3


def test_answers_come_in_the_order_of_requests(server: Server) -> None:
    client(server).create_table(**TABLE)
    put = b'{"TableName":"Things","Item":{"PK":{"S":"a"},"SK":{"S":"%d"}},"ReturnConsumedCapacity":"TOTAL"}'
    one = _HEAD.replace(b"ListTables", b"PutItem") + b"Content-Length: %d\r\n\r\n%b"
    puts = [one % (len(put % number), put % number) for number in range(3)]
    host, port = server.endpoint.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=LIMIT) as connection:
        connection.sendall(puts[0] + ONE + puts[1] + ONE + puts[2])
        received = b""
        while received.count(b"HTTP/1.1 200 OK") < 5:
            received += connection.recv(65536) or pytest.fail(f"the connection ended after {received!r}")
    said = [part.rpartition(b"\r\n\r\n")[2][:14] for part in received.split(b"HTTP/1.1 200 OK")[1:]]
    assert said == [b'{"ConsumedCapa', b'{"TableNames":'] * 2 + [b'{"ConsumedCapa']


def test_an_address_that_is_taken(server: Server, tmp_path: Path) -> None:
    port = int(server.endpoint.rpartition(":")[2])
    with pytest.raises(InvalidLocation, match="cannot listen at"):
        serve(tmp_path / "other.db", port=port)


def test_a_server_with_half_a_key_pair_is_refused(tmp_path: Path) -> None:
    for access_key, secret_key in (("AKID", None), (None, "secret"), ("AKID", "")):
        with pytest.raises(InvalidLocation, match="one half of a key pair is missing"):
            serve(tmp_path / "graph.db", access_key=access_key, secret_key=secret_key)


def test_serve_is_a_name_of_the_package_and_is_imported_when_it_is_used() -> None:
    assert (adjoin.serve, adjoin.Server) == (serve, Server)
    program = "import sys, adjoin; print('adjoin.server' in sys.modules); adjoin.serve().close(); print(adjoin.serve)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "False"
    assert "serve" in done.stdout.splitlines()[1]
    with pytest.raises(AttributeError, match="no attribute 'served'"):
        adjoin.served  # noqa: B018


def test_a_store_in_memory_is_empty_and_of_its_own() -> None:
    with adjoin.serve() as one, adjoin.serve(":memory:") as other:
        client(one).create_table(**TABLE)
        assert client(one).list_tables()["TableNames"] == ["Things"]
        assert client(other).list_tables()["TableNames"] == []


def test_closing_leaves_nothing_behind() -> None:
    before = threading.active_count()
    server = serve()
    client(server).create_table(**TABLE)
    server.close()
    server.close()
    assert threading.active_count() == before
    host, port = server.endpoint.removeprefix("http://").split(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=LIMIT)


def test_another_store_behind_the_same_address(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    with serve(path, durability="process") as server:
        dynamodb = client(server)
        dynamodb.create_table(**TABLE)
        dynamodb.put_item(TableName="Things", Item=key(1))
        address = server.endpoint
        server.switch(SQLiteStore(":memory:"))
        assert dynamodb.list_tables()["TableNames"] == []
        assert server.endpoint == address
        dynamodb.create_table(**TABLE)
        assert dynamodb.scan(TableName="Things")["Count"] == 0
        server.switch(SQLiteStore(path, durability="process"))
        assert dynamodb.scan(TableName="Things")["Count"] == 1


def test_what_was_asked_before_a_switch_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    answered: list[int] = []
    with serve(path, durability="process") as server:
        client(server).create_table(**TABLE)

        def write(numbers: Iterable[int]) -> None:
            dynamodb = client(server)
            for number in numbers:
                try:
                    dynamodb.put_item(TableName="Things", Item=key(number))
                except dynamodb.exceptions.ResourceNotFoundException:
                    return
                answered.append(number)

        # They write until the other store, which has no such table, is there.
        threads = [threading.Thread(target=write, args=(count(at, 4),)) for at in range(4)]
        for thread in threads:
            thread.start()
        until(lambda: len(answered) >= 20)
        server.switch(SQLiteStore(":memory:"))
        for thread in threads:
            thread.join()
    with serve(path) as server:
        pages = client(server).get_paginator("scan").paginate(TableName="Things")
        stored = [int(item["SK"]["S"]) for page in pages for item in page["Items"]]
    assert sorted(stored) == sorted(answered)


@pytest.mark.parametrize("port", [-1, 65536, 70000])
def test_a_port_that_there_is_not(tmp_path: Path, port: int) -> None:
    with pytest.raises(InvalidLocation, match="is not a port to listen on"):
        serve(tmp_path / "things.db", port=port)


def test_what_is_served_is_named_as_a_graph_names_it(tmp_path: Path) -> None:
    with serve(f"{tmp_path / 'things.db'}?durability=process"):
        assert (tmp_path / "things.db").exists()
    with pytest.raises(InvalidLocation, match="needs no server"):
        serve("dynamodb://Things?region=eu-west-1")


def test_a_limit_that_no_service_could_take(server: Server) -> None:
    client(server).create_table(**TABLE)
    unchecked = client(server, config=Config(parameter_validation=False))
    with pytest.raises(ClientError, match="out of range of long") as refused:
        unchecked.scan(TableName="Things", Limit=2**63)
    assert refused.value.response["Error"]["Code"] == "SerializationException"
    assert unchecked.scan(TableName="Things", Limit=2**63 - 1)["Items"] == []
