"""What a program with aiobotocore does; `test_others.py` runs it where aiobotocore is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiobotocore.session import get_session

from pytest_adjoin import DynamoDB

TABLE: dict[str, Any] = {
    "TableName": "Events",
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("device", "at")],
    "KeySchema": [{"AttributeName": "device", "KeyType": "HASH"}, {"AttributeName": "at", "KeyType": "RANGE"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@asynccontextmanager
async def events() -> AsyncIterator[Any]:
    """A client that was told nothing, and a table."""
    async with get_session().create_client("dynamodb") as client:
        await client.create_table(**TABLE)
        await client.get_waiter("table_exists").wait(TableName="Events")
        yield client


def event(device: str, number: int) -> dict[str, Any]:
    return {"device": {"S": device}, "at": {"S": f"{number:04d}"}, "value": {"N": str(number)}}


def test_many_requests_at_once(adjoin_dynamodb: DynamoDB) -> None:
    async def run() -> None:
        async with events() as client:
            await asyncio.gather(
                *(client.put_item(TableName="Events", Item=event("a", number)) for number in range(200))
            )
            counter = {
                "TableName": "Events",
                "Key": {"device": {"S": "all"}, "at": {"S": "all"}},
                "UpdateExpression": "ADD #v :one",
                "ExpressionAttributeNames": {"#v": "value"},
                "ExpressionAttributeValues": {":one": {"N": "1"}},
            }
            await asyncio.gather(*(client.update_item(**counter) for _ in range(50)))
            found = await client.get_item(TableName="Events", Key=counter["Key"], ConsistentRead=True)
            assert found["Item"]["value"] == {"N": "50"}
            numbers = []
            pages = client.get_paginator("query").paginate(
                TableName="Events",
                KeyConditionExpression="device = :d",
                ExpressionAttributeValues={":d": {"S": "a"}},
                PaginationConfig={"PageSize": 30},
            )
            async for page in pages:
                numbers += [int(item["value"]["N"]) for item in page["Items"]]
            assert numbers == list(range(200))

    asyncio.run(run())


def test_batches_transactions_and_errors(adjoin_dynamodb: DynamoDB) -> None:
    async def run() -> None:
        async with events() as client:
            puts = [{"PutRequest": {"Item": event("b", number)}} for number in range(25)]
            assert (await client.batch_write_item(RequestItems={"Events": puts}))["UnprocessedItems"] == {}
            checked = {
                "TableName": "Events",
                "Item": event("b", 3),
                "ConditionExpression": "attribute_not_exists(device)",
            }
            with pytest.raises(client.exceptions.TransactionCanceledException) as canceled:
                await client.transact_write_items(
                    TransactItems=[{"Put": {"TableName": "Events", "Item": event("c", 1)}}, {"Put": checked}]
                )
            codes = [reason["Code"] for reason in canceled.value.response["CancellationReasons"]]
            assert codes == ["None", "ConditionalCheckFailed"]
            with pytest.raises(client.exceptions.ConditionalCheckFailedException):
                await client.put_item(**checked)
            assert (await client.scan(TableName="Events", Select="COUNT"))["Count"] == 25

    asyncio.run(run())


def test_streams(adjoin_dynamodb: DynamoDB) -> None:
    async def run() -> None:
        stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        async with events() as client, get_session().create_client("dynamodbstreams") as streams:
            await client.update_table(TableName="Events", StreamSpecification=stream)
            await client.put_item(TableName="Events", Item=event("a", 1))
            (found,) = (await streams.list_streams())["Streams"]
            described = await streams.describe_stream(StreamArn=found["StreamArn"])
            (shard,) = described["StreamDescription"]["Shards"]
            begun = await streams.get_shard_iterator(
                StreamArn=found["StreamArn"], ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )
            (record,) = (await streams.get_records(ShardIterator=begun["ShardIterator"]))["Records"]
            assert record["dynamodb"]["Keys"] == {"device": {"S": "a"}, "at": {"S": "0001"}}
            assert "NewImage" not in record["dynamodb"]

    asyncio.run(run())
