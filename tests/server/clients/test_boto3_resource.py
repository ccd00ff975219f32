"""boto3's resource: Python's own types, conditions built from objects, the batch writer, collections."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import boto3
import pytest
from boto3.dynamodb.conditions import Attr, Key
from boto3.dynamodb.types import Binary
from botocore.exceptions import ClientError

from adjoin.server.serving import Server


@pytest.fixture
def service(served: Server) -> Iterator[Any]:
    resource = boto3.resource("dynamodb")
    yield resource
    resource.meta.client.close()


@pytest.fixture
def music(service: Any) -> Any:
    table = service.create_table(
        TableName="Music",
        KeySchema=[
            {"AttributeName": "artist", "KeyType": "HASH"},
            {"AttributeName": "title", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in (("artist", "S"), ("title", "S"), ("genre", "S"), ("year", "N"))
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "genre-year",
                "KeySchema": [
                    {"AttributeName": "genre", "KeyType": "HASH"},
                    {"AttributeName": "year", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
                "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
            }
        ],
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
    )
    table.wait_until_exists()
    table.reload()
    return table


def song(artist: str, title: str, year: int, genre: str = "rock") -> dict[str, Any]:
    return {"artist": artist, "title": title, "year": year, "genre": genre}


def test_pythons_own_types(music: Any) -> None:
    item = {
        **song("a", "1", 1990),
        "price": Decimal("9.99"),
        "cover": Binary(b"\x00\x01"),
        "live": False,
        "producer": None,
        "labels": {"x", "y"},
        "charts": {Decimal(1), Decimal(2)},
        "tracks": ["one", {"minutes": Decimal("3.5")}, [1]],
    }
    music.put_item(Item=item)
    assert music.get_item(Key={"artist": "a", "title": "1"})["Item"] == item


def test_a_table_says_what_it_is(service: Any, music: Any) -> None:
    assert [table.name for table in service.tables.all()] == ["Music"]
    assert (music.table_status, music.item_count) == ("ACTIVE", 0)
    assert music.key_schema[0] == {"AttributeName": "artist", "KeyType": "HASH"}
    assert music.provisioned_throughput["ReadCapacityUnits"] == 5
    music.update(ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": 5})
    music.reload()
    assert music.provisioned_throughput["ReadCapacityUnits"] == 7
    music.delete()
    music.wait_until_not_exists()
    assert list(service.tables.all()) == []


def test_the_batch_writer_and_conditions(service: Any, music: Any) -> None:
    with music.batch_writer(overwrite_by_pkeys=["artist", "title"]) as batch:
        for number in range(100):
            batch.put_item(Item=song(f"artist {number % 4}", f"title {number % 60:03d}", 1960 + number % 60))
        batch.delete_item(Key={"artist": "artist 0", "title": "title 000"})
    assert music.scan(Select="COUNT")["Count"] == 59
    found = music.query(
        KeyConditionExpression=Key("artist").eq("artist 1") & Key("title").begins_with("title 0"),
        FilterExpression=Attr("year").gte(1990) & ~Attr("genre").contains("jazz"),
        ScanIndexForward=False,
        Limit=5,
    )
    assert [item["title"] for item in found["Items"]] == [
        "title 057",
        "title 053",
        "title 049",
        "title 045",
        "title 041",
    ]
    assert found["LastEvaluatedKey"] == {"artist": "artist 1", "title": "title 041"}
    rest = music.query(
        KeyConditionExpression=Key("artist").eq("artist 1"),
        ScanIndexForward=False,
        ExclusiveStartKey=found["LastEvaluatedKey"],
    )
    assert rest["Items"][0]["title"] == "title 037"
    by_year = music.query(
        IndexName="genre-year",
        KeyConditionExpression=Key("genre").eq("rock") & Key("year").between(1970, 1972),
        ProjectionExpression="#y",
        ExpressionAttributeNames={"#y": "year"},
    )
    assert by_year["Items"] == [{"year": Decimal(year)} for year in (1970, 1971, 1972)]
    kept = music.scan(FilterExpression=Attr("year").is_in([1965, 1966]) | Attr("title").eq("title 059"))
    assert kept["Count"] == 3
    batch = service.batch_get_item(RequestItems={"Music": {"Keys": [{"artist": "artist 1", "title": "title 001"}]}})
    assert batch["Responses"]["Music"][0]["year"] == 1961


def test_updates_and_failed_conditions(music: Any) -> None:
    music.put_item(Item=song("a", "1", 1990), ConditionExpression=Attr("artist").not_exists())
    changed = music.update_item(
        Key={"artist": "a", "title": "1"},
        UpdateExpression="SET plays = if_not_exists(plays, :zero) + :one, charts = :charts",
        ConditionExpression=Attr("year").lt(2000) & Attr("genre").attribute_type("S"),
        ExpressionAttributeValues={":zero": 0, ":one": 1, ":charts": {"uk"}},
        ReturnValues="UPDATED_NEW",
    )
    assert changed["Attributes"] == {"plays": 1, "charts": {"uk"}}
    with pytest.raises(music.meta.client.exceptions.ConditionalCheckFailedException):
        music.delete_item(Key={"artist": "a", "title": "1"}, ConditionExpression=Attr("charts").contains("us"))
    with pytest.raises(ClientError, match="An operand in the update expression has an incorrect data type"):
        music.update_item(
            Key={"artist": "a", "title": "1"},
            UpdateExpression="ADD charts :one",
            ExpressionAttributeValues={":one": 1},
        )
    service = music.meta.client
    service.transact_write_items(
        TransactItems=[{"Put": {"TableName": "Music", "Item": song("b", str(number), 2000)}} for number in range(100)]
    )
    assert music.query(KeyConditionExpression=Key("artist").eq("b"), Select="COUNT")["Count"] == 100
