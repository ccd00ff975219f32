"""Indexes with several attributes in their keys, through boto3's client: bodies and messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from adjoin.server.serving import Server

KEYS = [
    {"AttributeName": "tournament", "KeyType": "HASH"},
    {"AttributeName": "region", "KeyType": "HASH"},
    {"AttributeName": "round", "KeyType": "RANGE"},
    {"AttributeName": "bracket", "KeyType": "RANGE"},
]
TYPES = [
    {"AttributeName": name, "AttributeType": kind}
    for name, kind in (("tournament", "S"), ("region", "S"), ("round", "N"), ("bracket", "S"))
]
INDEX = {"IndexName": "by-round", "KeySchema": KEYS, "Projection": {"ProjectionType": "ALL"}}
VALUES = {
    ":t": {"S": "W"},
    ":r": {"S": "E"},
    ":one": {"N": "1"},
    ":two": {"N": "2"},
    ":l": {"S": "lower"},
    ":x": {"S": "x"},
}


@pytest.fixture
def dynamodb(served: Server) -> Iterator[Any]:
    client = boto3.client("dynamodb", config=Config(retries={"max_attempts": 0}))
    yield client
    client.close()


@pytest.fixture
def matches(dynamodb: Any) -> Any:
    """A client, and a table whose index was made with it."""
    dynamodb.create_table(
        TableName="Matches",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}, *TYPES],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        GlobalSecondaryIndexes=[INDEX],
        BillingMode="PAY_PER_REQUEST",
    )
    fill(dynamodb)
    return dynamodb


def fill(client: Any) -> None:
    for name, number, bracket in (
        ("m1", "2", "upper"),
        ("m2", "2", "lower"),
        ("m3", "10", "final"),
        ("m4", "1", "lower"),
    ):
        client.put_item(TableName="Matches", Item=match(name, number, bracket))
    client.put_item(TableName="Matches", Item={"id": {"S": "without a region"}, "tournament": {"S": "W"}})


def match(name: str, number: str, bracket: str) -> dict[str, Any]:
    return {
        "id": {"S": name},
        "tournament": {"S": "W"},
        "region": {"S": "E"},
        "round": {"N": number},
        "bracket": {"S": bracket},
    }


def query(client: Any, condition: str, **more: Any) -> Any:
    used = {name: value for name, value in VALUES.items() if name in condition.replace(")", " ").split()}
    return client.query(
        TableName="Matches",
        IndexName="by-round",
        KeyConditionExpression=condition,
        ExpressionAttributeNames={"#region": "region"},
        ExpressionAttributeValues=used,
        **more,
    )


def ids(answer: Any) -> list[str]:
    return [item["id"]["S"] for item in answer["Items"]]


def test_a_table_tells_the_keys_in_their_order(matches: Any) -> None:
    table = matches.describe_table(TableName="Matches")["Table"]
    (index,) = table["GlobalSecondaryIndexes"]
    assert index["KeySchema"] == KEYS
    assert {each["AttributeName"] for each in table["AttributeDefinitions"]} == {
        "id", "tournament", "region", "round", "bracket",
    }  # fmt: skip


def test_an_index_is_added_and_removed(dynamodb: Any) -> None:
    dynamodb.create_table(
        TableName="Matches",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    fill(dynamodb)
    answer = dynamodb.update_table(
        TableName="Matches", AttributeDefinitions=TYPES, GlobalSecondaryIndexUpdates=[{"Create": INDEX}]
    )
    assert answer["TableDescription"]["GlobalSecondaryIndexes"][0]["KeySchema"] == KEYS
    assert ids(query(dynamodb, "tournament = :t AND #region = :r")) == ["m4", "m2", "m1", "m3"]
    dynamodb.update_table(TableName="Matches", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-round"}}])
    assert "GlobalSecondaryIndexes" not in dynamodb.describe_table(TableName="Matches")["Table"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("tournament = :t AND #region = :r", ["m4", "m2", "m1", "m3"]),
        ("round > :one AND #region = :r AND tournament = :t", ["m2", "m1", "m3"]),
        ("tournament = :t AND #region = :r AND round = :two AND bracket > :l", ["m1"]),
        ("tournament = :t AND #region = :r AND round = :two AND begins_with ( bracket, :l )", ["m2"]),
        ("tournament = :t AND #region = :r AND round BETWEEN :one AND :two", ["m4", "m2", "m1"]),
    ],
)
def test_queries(matches: Any, condition: str, expected: list[str]) -> None:
    assert ids(query(matches, condition)) == expected
    assert ids(query(matches, condition, ScanIndexForward=False)) == expected[::-1]


def test_pages(matches: Any) -> None:
    first = query(matches, "tournament = :t AND #region = :r AND round > :one", Limit=2)
    assert ids(first) == ["m2", "m1"]
    assert first["LastEvaluatedKey"] == match("m1", "2", "upper")
    rest = query(
        matches,
        "tournament = :t AND #region = :r AND round > :one",
        ExclusiveStartKey=first["LastEvaluatedKey"],
        ReturnConsumedCapacity="INDEXES",
    )
    assert ids(rest) == ["m3"]
    assert "LastEvaluatedKey" not in rest
    assert rest["ConsumedCapacity"]["GlobalSecondaryIndexes"] == {"by-round": {"CapacityUnits": 0.5}}
    scanned = matches.scan(TableName="Matches", IndexName="by-round", Limit=1)
    assert scanned["LastEvaluatedKey"].keys() == match("", "", "").keys()


def key_conditions(**conditions: tuple[str, dict[str, str]]) -> dict[str, Any]:
    return {
        name: {"ComparisonOperator": operator, "AttributeValueList": [value]}
        for name, (operator, value) in conditions.items()
    }


def test_legacy_key_conditions(matches: Any) -> None:
    asked = key_conditions(
        bracket=("GT", {"S": "lower"}),
        round=("EQ", {"N": "2"}),
        region=("EQ", {"S": "E"}),
        tournament=("EQ", {"S": "W"}),
    )
    answer = matches.query(TableName="Matches", IndexName="by-round", KeyConditions=asked)
    assert ids(answer) == ["m1"]
    del asked["round"]
    with pytest.raises(ClientError) as caught:
        matches.query(TableName="Matches", IndexName="by-round", KeyConditions=asked)
    assert caught.value.response["Error"]["Message"] == refused_range("round", "bracket")


def refused_range(missing: str, present: str) -> str:
    return (
        f"RANGE key attributes {missing} must have equality conditions specified in the query because a condition is"
        f" present on key attribute {present}"
    )


@pytest.mark.parametrize(
    ("condition", "more", "words"),
    [
        (
            "tournament = :t AND begins_with ( #region, :r )",
            {},
            "HASH key attributes region must have equality conditions specified in the query",
        ),
        ("tournament = :t AND #region = :r AND bracket = :l", {}, refused_range("round", "bracket")),
        ("tournament = :t AND #region = :r AND round > :one AND bracket = :l", {}, refused_range("round", "bracket")),
        (
            "tournament = :t AND #region = :r AND round = :one AND bracket = :l AND id = :x",
            {},
            "The number of query conditions (5) exceeds the number of key attributes defined in the schema (4)",
        ),
        (
            "tournament = :t AND #region = :r AND round > :one AND round < :two",
            {},
            "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key",
        ),
        (
            "tournament = :t AND #region = :r AND round = :x",
            {},
            "One or more parameter values were invalid: Condition parameter type does not match schema type",
        ),
        (
            "tournament = :t AND #region = :r",
            {"FilterExpression": "attribute_exists ( bracket )"},
            "Filter Expression can only contain non-primary key attributes: Primary key attribute: bracket",
        ),
        (
            "tournament = :t AND #region = :r",
            {"ExclusiveStartKey": {name: value for name, value in match("m1", "2", "x").items() if name != "region"}},
            "The provided starting key is invalid",
        ),
        (
            "tournament = :t AND #region = :r",
            {"ExclusiveStartKey": {**match("m1", "2", "x"), "region": {"N": "1"}}},
            "The provided key element does not match the schema",
        ),
        (
            "tournament = :t AND #region = :r",
            {"ConsistentRead": True},
            "Consistent reads are not supported on global secondary indexes",
        ),
    ],
)
def test_refused_queries(matches: Any, condition: str, more: dict[str, Any], words: str) -> None:
    with pytest.raises(ClientError) as caught:
        query(matches, condition, **more)
    error = caught.value.response["Error"]
    assert (error["Code"], error["Message"]) == ("ValidationException", words)


def test_a_table_and_a_local_index_have_keys_of_one_attribute(dynamodb: Any) -> None:
    names = ["a", "b", "c"]
    three = [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE", "RANGE"), strict=True)
    ]
    definition = {
        "TableName": "Three",
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in names],
        "KeySchema": three[:2],
        "BillingMode": "PAY_PER_REQUEST",
    }
    local = {"IndexName": "local", "KeySchema": three, "Projection": {"ProjectionType": "ALL"}}
    for members in ({"KeySchema": three}, {"LocalSecondaryIndexes": [local]}):
        with pytest.raises(ClientError, match="Member must have length less than or equal to 2"):
            dynamodb.create_table(**{**definition, **members})
