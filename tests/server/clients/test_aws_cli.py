"""The AWS CLI, run as a program: what its users type."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from adjoin.server.serving import Server
from tests.server.clients.conftest import run_python
from tests.servers import install

Aws = Callable[..., Any]

REFUSED = 255
"""The exit status where the service refuses; 254 in version 2 of the program, which is not on PyPI."""


@pytest.fixture
def aws(served: Server) -> Aws:
    """Runs `aws …`, and gives what it prints, or says where it is expected to fail."""

    def run(*arguments: str, expected: int = 0) -> Any:
        done = run_python(install.AWSCLI, "-m", "awscli", *arguments, "--output", "json", expected=expected)
        return done.stderr if expected else json.loads(done.stdout or "null")

    return run


def test_a_tour(aws: Aws) -> None:
    made = aws(
        *("dynamodb", "create-table", "--table-name", "Music"),
        *("--attribute-definitions", "AttributeName=Artist,AttributeType=S", "AttributeName=Song,AttributeType=S"),
        *("--key-schema", "AttributeName=Artist,KeyType=HASH", "AttributeName=Song,KeyType=RANGE"),
        *("--billing-mode", "PAY_PER_REQUEST"),
        *("--stream-specification", "StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES"),
    )
    assert made["TableDescription"]["TableName"] == "Music"
    aws("dynamodb", "wait", "table-exists", "--table-name", "Music")
    assert aws("dynamodb", "list-tables")["TableNames"] == ["Music"]

    aws(
        *("dynamodb", "put-item", "--table-name", "Music"),
        *("--item", json.dumps({"Artist": {"S": "No One"}, "Song": {"S": "Call Me"}, "Plays": {"N": "1"}})),
    )
    puts = [{"PutRequest": {"Item": {"Artist": {"S": "Acme"}, "Song": {"S": f"{n:02d}"}}}} for n in range(25)]
    assert aws("dynamodb", "batch-write-item", "--request-items", json.dumps({"Music": puts}))["UnprocessedItems"] == {}

    changed = aws(
        *("dynamodb", "update-item", "--table-name", "Music", "--return-values", "ALL_NEW"),
        *("--key", '{"Artist": {"S": "No One"}, "Song": {"S": "Call Me"}}'),
        *("--update-expression", "SET Plays = Plays + :n", "--expression-attribute-values", '{":n": {"N": "41"}}'),
    )
    assert changed["Attributes"]["Plays"] == {"N": "42"}
    found = aws(
        *("dynamodb", "query", "--table-name", "Music", "--no-scan-index-forward", "--page-size", "4"),
        *("--key-condition-expression", "Artist = :a AND Song > :s"),
        *("--expression-attribute-values", '{":a": {"S": "Acme"}, ":s": {"S": "09"}}'),
    )
    assert [item["Song"]["S"] for item in found["Items"]] == [f"{number:02d}" for number in range(24, 9, -1)]

    first = aws("dynamodb", "scan", "--table-name", "Music", "--max-items", "10", "--page-size", "3")
    rest = aws("dynamodb", "scan", "--table-name", "Music", "--starting-token", first["NextToken"])
    assert (len(first["Items"]), len(rest["Items"])) == (10, 16)

    said = aws(
        *("dynamodb", "put-item", "--table-name", "Music", "--condition-expression", "attribute_not_exists(Artist)"),
        *("--item", '{"Artist": {"S": "No One"}, "Song": {"S": "Call Me"}}'),
        expected=REFUSED,
    )
    assert "(ConditionalCheckFailedException) when calling the PutItem operation: The conditional request" in said

    streams = aws("dynamodbstreams", "list-streams", "--table-name", "Music")["Streams"]
    stream = streams[0]["StreamArn"]
    shards = aws("dynamodbstreams", "describe-stream", "--stream-arn", stream)["StreamDescription"]["Shards"]
    iterator = aws(
        *("dynamodbstreams", "get-shard-iterator", "--stream-arn", stream, "--shard-id", shards[0]["ShardId"]),
        *("--shard-iterator-type", "TRIM_HORIZON"),
    )["ShardIterator"]
    records = aws("dynamodbstreams", "get-records", "--shard-iterator", iterator)["Records"]
    assert [record["eventName"] for record in records] == ["INSERT"] * 26 + ["MODIFY"]

    aws("dynamodb", "delete-table", "--table-name", "Music")
    aws("dynamodb", "wait", "table-not-exists", "--table-name", "Music")
    said = aws("dynamodb", "describe-table", "--table-name", "Music", expected=REFUSED)
    assert "ResourceNotFoundException" in said
    assert "Table: Music not found" in said
