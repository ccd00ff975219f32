"""boto3's client: tables, items, pages, batches, conditions, transactions and streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from adjoin.server.serving import Server


@pytest.fixture
def dynamodb(served: Server) -> Iterator[Any]:
    client = boto3.client("dynamodb", config=Config(retries={"max_attempts": 0}))
    yield client
    client.close()


@pytest.fixture
def orders(dynamodb: Any) -> Any:
    """A client, and a table with indexes of both kinds and a stream."""
    dynamodb.create_table(
        TableName="Orders",
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in (("customer", "S"), ("number", "N"), ("status", "S"), ("placed", "S"))
        ],
        KeySchema=[
            {"AttributeName": "customer", "KeyType": "HASH"},
            {"AttributeName": "number", "KeyType": "RANGE"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by-status",
                "KeySchema": [
                    {"AttributeName": "status", "KeyType": "HASH"},
                    {"AttributeName": "placed", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["total"]},
            }
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": "by-date",
                "KeySchema": [
                    {"AttributeName": "customer", "KeyType": "HASH"},
                    {"AttributeName": "placed", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        Tags=[{"Key": "team", "Value": "sales"}],
    )
    dynamodb.get_waiter("table_exists").wait(TableName="Orders")
    return dynamodb


def order(number: int, customer: str = "ann", status: str = "open", **attributes: Any) -> dict[str, Any]:
    return {
        "customer": {"S": customer},
        "number": {"N": str(number)},
        "status": {"S": status},
        "placed": {"S": f"2024-01-{number % 28 + 1:02d}"},
        "total": {"N": str(number * 10)},
        **attributes,
    }


def key(number: int, customer: str = "ann") -> dict[str, Any]:
    return {"customer": {"S": customer}, "number": {"N": str(number)}}


def fill(dynamodb: Any, count: int) -> None:
    for start in range(0, count, 25):
        puts = [
            {"PutRequest": {"Item": order(number, status="open" if number % 2 else "sent")}}
            for number in range(start, min(start + 25, count))
        ]
        assert dynamodb.batch_write_item(RequestItems={"Orders": puts})["UnprocessedItems"] == {}


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    found: str = error.value.response["Error"]["Code"]
    return found


# --- tables ------------------------------------------------------------------------------------


def test_a_table_from_its_creation_to_its_end(orders: Any) -> None:
    table = orders.describe_table(TableName="Orders")["Table"]
    assert table["TableStatus"] == "ACTIVE"
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["GlobalSecondaryIndexes"][0]["Projection"] == {
        "ProjectionType": "INCLUDE",
        "NonKeyAttributes": ["total"],
    }
    assert table["LocalSecondaryIndexes"][0]["IndexName"] == "by-date"
    assert table["LatestStreamArn"].startswith(table["TableArn"] + "/stream/")
    assert orders.list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"] == [{"Key": "team", "Value": "sales"}]
    with pytest.raises(orders.exceptions.ResourceInUseException):
        orders.create_table(
            TableName="Orders",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
    assert orders.delete_table(TableName="Orders")["TableDescription"]["TableStatus"] == "DELETING"
    orders.get_waiter("table_not_exists").wait(TableName="Orders")
    with pytest.raises(orders.exceptions.ResourceNotFoundException):
        orders.describe_table(TableName="Orders")


def test_many_tables_in_pages(dynamodb: Any) -> None:
    names = [f"Table-{number:03d}" for number in range(7)]
    for name in names:
        dynamodb.create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "B"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
        )
    pages = list(dynamodb.get_paginator("list_tables").paginate(PaginationConfig={"PageSize": 3}))
    assert [len(page["TableNames"]) for page in pages] == [3, 3, 1]
    assert [name for page in pages for name in page["TableNames"]] == names


def test_an_index_comes_and_goes_on_a_table_with_data(orders: Any) -> None:
    fill(orders, 30)
    orders.update_table(
        TableName="Orders",
        AttributeDefinitions=[{"AttributeName": "total", "AttributeType": "N"}],
        GlobalSecondaryIndexUpdates=[
            {
                "Create": {
                    "IndexName": "by-total",
                    "KeySchema": [{"AttributeName": "total", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            }
        ],
    )
    orders.get_waiter("table_exists").wait(TableName="Orders")
    asked = {
        "TableName": "Orders",
        "IndexName": "by-total",
        "KeyConditionExpression": "#t = :t",
        "ExpressionAttributeNames": {"#t": "total"},
        "ExpressionAttributeValues": {":t": {"N": "70"}},
    }
    assert orders.query(**asked)["Items"] == [order(7)]
    orders.update_table(TableName="Orders", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-total"}}])
    with pytest.raises(ClientError) as error:
        orders.query(**asked)
    assert code(error) == "ValidationException"


def test_time_to_live(orders: Any) -> None:
    asked = {"TableName": "Orders", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "until"}}
    assert orders.update_time_to_live(**asked)["TimeToLiveSpecification"]["AttributeName"] == "until"
    described = orders.describe_time_to_live(TableName="Orders")["TimeToLiveDescription"]
    assert described == {"TimeToLiveStatus": "ENABLED", "AttributeName": "until"}


# --- items -------------------------------------------------------------------------------------

EVERY_TYPE: dict[str, Any] = {
    "text": {"S": "é😀"},
    "empty": {"S": ""},
    "number": {"N": "-1.5"},
    "digits": {"N": "12345678901234567890123456789012345678"},
    "bytes": {"B": b"\x00\xff"},
    "yes": {"BOOL": True},
    "nothing": {"NULL": True},
    "texts": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "2.5"]},
    "blobs": {"BS": [b"a", b"b"]},
    "list": {"L": [{"S": "a"}, {"M": {"b": {"N": "1"}}}, {"L": []}]},
    "map": {"M": {"a.b": {"S": "dots"}, "#": {"L": [{"NULL": True}]}}},
}


def test_every_type_comes_back_as_it_was(orders: Any) -> None:
    item = {**EVERY_TYPE, **key(1)}
    orders.put_item(TableName="Orders", Item=item)
    found = orders.get_item(TableName="Orders", Key=key(1), ConsistentRead=True)["Item"]
    for each in (item, found):
        for name in ("texts", "numbers", "blobs"):
            (kind,) = each[name]
            each[name] = {kind: sorted(each[name][kind])}
    assert found == item


def test_expressions_with_conditions_and_returned_values(orders: Any) -> None:
    orders.put_item(TableName="Orders", Item=order(1, lines={"L": []}, address={"M": {"city": {"S": "Rome"}}}))
    with pytest.raises(orders.exceptions.ConditionalCheckFailedException) as failed:
        orders.put_item(
            TableName="Orders",
            Item=order(1),
            ConditionExpression="attribute_not_exists(customer)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert failed.value.response["Item"]["total"] == {"N": "10"}
    changed = orders.update_item(
        TableName="Orders",
        Key=key(1),
        UpdateExpression=(
            "SET #t = #t + :five, #l = list_append(#l, :line), address.#z = if_not_exists(address.#z, :zip)"
            " REMOVE placed ADD tags :tags"
        ),
        ConditionExpression="address.city = :city AND size(#l) = :zero AND #s IN (:open, :sent)",
        ExpressionAttributeNames={"#t": "total", "#l": "lines", "#z": "zip", "#s": "status"},
        ExpressionAttributeValues={
            ":five": {"N": "5"},
            ":line": {"L": [{"S": "pen"}]},
            ":zip": {"S": "00100"},
            ":tags": {"SS": ["new"]},
            ":city": {"S": "Rome"},
            ":zero": {"N": "0"},
            ":open": {"S": "open"},
            ":sent": {"S": "sent"},
        },
        ReturnValues="ALL_NEW",
        ReturnConsumedCapacity="TOTAL",
    )
    assert changed["Attributes"]["total"] == {"N": "15"}
    assert changed["Attributes"]["lines"] == {"L": [{"S": "pen"}]}
    assert changed["Attributes"]["address"] == {"M": {"city": {"S": "Rome"}, "zip": {"S": "00100"}}}
    assert changed["Attributes"]["tags"] == {"SS": ["new"]}
    assert "placed" not in changed["Attributes"]
    assert changed["ConsumedCapacity"]["CapacityUnits"] > 1
    part = orders.get_item(
        TableName="Orders",
        Key=key(1),
        ProjectionExpression="address.city, #l[0]",
        ExpressionAttributeNames={"#l": "lines"},
    )
    assert part["Item"] == {"address": {"M": {"city": {"S": "Rome"}}}, "lines": {"L": [{"S": "pen"}]}}
    gone = orders.delete_item(TableName="Orders", Key=key(1), ReturnValues="ALL_OLD")
    assert gone["Attributes"]["total"] == {"N": "15"}
    assert "Attributes" not in orders.delete_item(TableName="Orders", Key=key(1), ReturnValues="ALL_OLD")


def test_parameters_of_old_programs(orders: Any) -> None:
    orders.put_item(TableName="Orders", Item=order(1), Expected={"customer": {"Exists": False}})
    orders.update_item(
        TableName="Orders",
        Key=key(1),
        AttributeUpdates={"total": {"Action": "ADD", "Value": {"N": "1"}}, "placed": {"Action": "DELETE"}},
    )
    found = orders.query(
        TableName="Orders",
        KeyConditions={"customer": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "ann"}]}},
        QueryFilter={"total": {"ComparisonOperator": "GT", "AttributeValueList": [{"N": "10"}]}},
    )
    assert [item["total"] for item in found["Items"]] == [{"N": "11"}]
    assert orders.get_item(TableName="Orders", Key=key(1), AttributesToGet=["total"])["Item"] == {"total": {"N": "11"}}


# --- pages -------------------------------------------------------------------------------------


def test_pages_of_queries_and_scans(orders: Any) -> None:
    fill(orders, 60)
    pages = list(
        orders.get_paginator("query").paginate(
            TableName="Orders",
            KeyConditionExpression="customer = :c AND #n BETWEEN :low AND :high",
            ExpressionAttributeNames={"#n": "number"},
            ExpressionAttributeValues={":c": {"S": "ann"}, ":low": {"N": "10"}, ":high": {"N": "49"}},
            ScanIndexForward=False,
            PaginationConfig={"PageSize": 15},
        )
    )
    assert [page["Count"] for page in pages] == [15, 15, 10]
    numbers = [int(item["number"]["N"]) for page in pages for item in page["Items"]]
    assert numbers == list(range(49, 9, -1))
    everything = orders.get_paginator("scan").paginate(TableName="Orders", PaginationConfig={"PageSize": 7})
    assert len(everything.build_full_result()["Items"]) == 60
    segments = [orders.scan(TableName="Orders", Segment=segment, TotalSegments=3)["Items"] for segment in range(3)]
    assert sorted(int(item["number"]["N"]) for part in segments for item in part) == list(range(60))


def test_indexes(orders: Any) -> None:
    fill(orders, 20)
    found = orders.query(
        TableName="Orders",
        IndexName="by-status",
        KeyConditionExpression="#s = :s AND begins_with(placed, :month)",
        FilterExpression="#t > :t",
        ExpressionAttributeNames={"#s": "status", "#t": "total"},
        ExpressionAttributeValues={":s": {"S": "open"}, ":month": {"S": "2024-01"}, ":t": {"N": "100"}},
    )
    assert (found["Count"], found["ScannedCount"]) == (5, 10)
    local = orders.query(
        TableName="Orders",
        IndexName="by-date",
        KeyConditionExpression="customer = :c",
        ExpressionAttributeValues={":c": {"S": "ann"}},
        ConsistentRead=True,
        Limit=2,
    )
    assert [set(item) for item in local["Items"]] == [{"customer", "number", "placed"}] * 2
    assert set(local["LastEvaluatedKey"]) == {"customer", "number", "placed"}


def test_batches(orders: Any) -> None:
    fill(orders, 50)
    found = orders.batch_get_item(
        RequestItems={
            "Orders": {
                "Keys": [key(number) for number in (3, 1, 99)],
                "ProjectionExpression": "#n",
                "ExpressionAttributeNames": {"#n": "number"},
            }
        },
        ReturnConsumedCapacity="TOTAL",
    )
    assert sorted(int(item["number"]["N"]) for item in found["Responses"]["Orders"]) == [1, 3]
    assert (found["UnprocessedKeys"], found["ConsumedCapacity"][0]["TableName"]) == ({}, "Orders")
    deletes = [{"DeleteRequest": {"Key": key(number)}} for number in range(25)]
    orders.batch_write_item(RequestItems={"Orders": deletes})
    assert orders.scan(TableName="Orders", Select="COUNT")["Count"] == 25
    with pytest.raises(ClientError) as error:
        orders.batch_write_item(RequestItems={"Orders": [*deletes, deletes[0]]})
    assert code(error) == "ValidationException"


# --- transactions and streams ------------------------------------------------------------------


def test_transactions(orders: Any) -> None:
    orders.put_item(TableName="Orders", Item=order(1))
    writes = [
        {"Put": {"TableName": "Orders", "Item": order(2)}},
        {
            "Update": {
                "TableName": "Orders",
                "Key": key(1),
                "UpdateExpression": "ADD #t :one",
                "ExpressionAttributeNames": {"#t": "total"},
                "ExpressionAttributeValues": {":one": {"N": "1"}},
            }
        },
        {
            "ConditionCheck": {
                "TableName": "Orders",
                "Key": key(3),
                "ConditionExpression": "attribute_not_exists(customer)",
            }
        },
    ]
    for _ in range(2):
        orders.transact_write_items(TransactItems=writes, ClientRequestToken="once")
    answers = orders.transact_get_items(
        TransactItems=[{"Get": {"TableName": "Orders", "Key": key(number)}} for number in (1, 2, 3)]
    )["Responses"]
    assert [answer.get("Item", {}).get("total") for answer in answers] == [{"N": "11"}, {"N": "20"}, None]
    with pytest.raises(orders.exceptions.TransactionCanceledException) as canceled:
        orders.transact_write_items(
            TransactItems=[
                {"Delete": {"TableName": "Orders", "Key": key(1)}},
                {
                    "Delete": {
                        "TableName": "Orders",
                        "Key": key(2),
                        "ConditionExpression": "attribute_not_exists(customer)",
                    }
                },
            ]
        )
    assert [reason["Code"] for reason in canceled.value.response["CancellationReasons"]] == [
        "None",
        "ConditionalCheckFailed",
    ]
    with pytest.raises(orders.exceptions.IdempotentParameterMismatchException):
        orders.transact_write_items(TransactItems=writes[:1], ClientRequestToken="once")


def test_streams(orders: Any) -> None:
    orders.put_item(TableName="Orders", Item=order(1))
    orders.put_item(TableName="Orders", Item=order(1, status="sent"))
    orders.delete_item(TableName="Orders", Key=key(1))
    streams = boto3.client("dynamodbstreams")
    (stream,) = streams.list_streams(TableName="Orders")["Streams"]
    described = streams.describe_stream(StreamArn=stream["StreamArn"])["StreamDescription"]
    assert (described["StreamStatus"], described["StreamViewType"]) == ("ENABLED", "NEW_AND_OLD_IMAGES")
    records: list[dict[str, Any]] = []
    for shard in described["Shards"]:
        iterator = streams.get_shard_iterator(
            StreamArn=stream["StreamArn"], ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while iterator:
            page = streams.get_records(ShardIterator=iterator, Limit=2)
            records += page["Records"]
            iterator = page.get("NextShardIterator") if page["Records"] else None
    assert [record["eventName"] for record in records] == ["INSERT", "MODIFY", "REMOVE"]
    assert records[1]["dynamodb"]["OldImage"]["status"] == {"S": "open"}
    assert records[1]["dynamodb"]["NewImage"]["status"] == {"S": "sent"}
    assert records[2]["dynamodb"]["Keys"] == key(1)
    streams.close()
