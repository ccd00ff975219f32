"""The mix on moto, the mock of AWS, in the same process: boto3's client over the same single table.

moto keeps everything in Python objects and nothing on disk. A query of an index reads every
item of the table, so its figures are valid for a small graph only.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import boto3
from moto import mock_aws

from benchmarks.items import (
    LINK_PREFIX,
    NODE_SORT_KEY,
    link_item,
    link_key,
    node_item,
    node_key,
    time_key,
)
from benchmarks.workload import LinkRow, NodeRow

_TABLE = "adjoin"
_BATCH = 25
_INDEXES = {"GSI1": ("GSI1PK", "GSI1SK"), "GSI2": ("GSI2PK", "GSI2SK")}
_CREDENTIALS = {"aws_access_key_id": "none", "aws_secret_access_key": "none", "region_name": "eu-west-1"}


class WithMoto:
    def __init__(self) -> None:
        self._mock = mock_aws()
        self._mock.start()
        self._client = boto3.client("dynamodb", **_CREDENTIALS)
        self._missing = self._client.exceptions.ConditionalCheckFailedException
        self._client.create_table(
            TableName=_TABLE,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=_key_schema("PK", "SK"),
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": "S"}
                for name in ("PK", "SK", *(name for pair in _INDEXES.values() for name in pair))
            ],
            GlobalSecondaryIndexes=[
                {"IndexName": name, "KeySchema": _key_schema(*keys), "Projection": {"ProjectionType": "ALL"}}
                for name, keys in _INDEXES.items()
            ],
        )

    def load(self, nodes: Iterable[NodeRow], links: Iterable[LinkRow]) -> None:
        self._write({"PutRequest": {"Item": _sendable(node_item(node))}} for node in nodes)
        self._write({"PutRequest": {"Item": _sendable(link_item(link))}} for link in links)

    def _write(self, requests: Iterator[dict[str, Any]]) -> None:
        while some := list(islice(requests, _BATCH)):
            self._client.batch_write_item(RequestItems={_TABLE: some})

    # --- links ---------------------------------------------------------------------------------

    def getlinklist(self, id1: int, limit: int) -> list[dict[str, Any]]:
        return [_plain_link(item) for item in self._query(_links_by_time(id1), limit)]

    def countlink(self, id1: int) -> int:
        total = 0
        for page in self._pages({**_links_by_time(id1), "Select": "COUNT"}):
            total += page["Count"]
        return total

    def multiget(self, id1: int, id2s: tuple[int, ...]) -> list[dict[str, Any]]:
        answers = [self._client.get_item(TableName=_TABLE, Key=_key(node_key(id1), link_key(id2))) for id2 in id2s]
        return [_plain_link(answer["Item"]) for answer in answers if "Item" in answer]

    def addlink(self, link: LinkRow) -> None:
        self._client.put_item(TableName=_TABLE, Item=_sendable(link_item(link)))

    def updatelink(self, id1: int, id2: int, time: int, data: bytes) -> bool:
        source, target = node_key(id1), node_key(id2)
        keys = {"GSI1SK": {"S": time_key(time, source)}, "GSI2SK": {"S": time_key(time, target)}}
        return self._update(_key(source, link_key(id2)), {"time": {"N": str(time)}, "data": {"B": data}, **keys})

    def deletelink(self, id1: int, id2: int) -> bool:
        key = _key(node_key(id1), link_key(id2))
        answer = self._client.delete_item(TableName=_TABLE, Key=key, ReturnValues="ALL_OLD")
        return "Attributes" in answer

    # --- nodes ---------------------------------------------------------------------------------

    def getnode(self, id: int) -> dict[str, Any] | None:
        answer = self._client.get_item(TableName=_TABLE, Key=_key(node_key(id), NODE_SORT_KEY))
        return _plain_node(answer["Item"]) if "Item" in answer else None

    def addnode(self, node: NodeRow) -> None:
        self._client.put_item(TableName=_TABLE, Item=_sendable(node_item(node)))

    def updatenode(self, id: int, time: int, data: bytes) -> bool:
        key = _key(node_key(id), NODE_SORT_KEY)
        return self._update(key, {"time": {"N": str(time)}, "data": {"B": data}})

    def deletenode(self, id: int) -> bool:
        here = {":key": {"S": node_key(id)}}
        leaving = {"KeyConditionExpression": "PK = :key", "ExpressionAttributeValues": here}
        arriving = {**leaving, "IndexName": "GSI1", "KeyConditionExpression": "GSI1PK = :key"}
        gone = {
            (item["PK"]["S"], item["SK"]["S"])
            for query in (leaving, arriving)
            for page in self._pages(query)
            for item in page["Items"]
        }
        self._write({"DeleteRequest": {"Key": _key(*key)}} for key in gone)
        return bool(gone)

    def close(self) -> None:
        self._mock.stop()

    # --- requests ------------------------------------------------------------------------------

    def _pages(self, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        start: dict[str, Any] = {}
        while True:
            page = self._client.query(TableName=_TABLE, **query, **start)
            yield page
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _query(self, query: dict[str, Any], limit: int) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        for page in self._pages({**query, "ScanIndexForward": False, "Limit": limit}):
            items += page["Items"]
            if len(items) >= limit:
                break
        return items[:limit]

    def _update(self, key: dict[str, Any], changes: dict[str, Any]) -> bool:
        assignments = ", ".join(f"#{name} = :{name}" for name in changes)
        try:
            self._client.update_item(
                TableName=_TABLE,
                Key=key,
                UpdateExpression=f"SET {assignments} ADD #version :one",
                ConditionExpression="attribute_exists(PK)",
                ExpressionAttributeNames={"#version": "version", **{f"#{name}": name for name in changes}},
                ExpressionAttributeValues={
                    ":one": {"N": "1"},
                    **{f":{name}": value for name, value in changes.items()},
                },
            )
        except self._missing:
            return False
        return True


def _links_by_time(id1: int) -> dict[str, Any]:
    return {
        "IndexName": "GSI2",
        "KeyConditionExpression": "GSI2PK = :key AND begins_with(GSI2SK, :links)",
        "ExpressionAttributeValues": {":key": {"S": node_key(id1)}, ":links": {"S": LINK_PREFIX}},
    }


def _key_schema(partition: str, sort: str) -> list[dict[str, str]]:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]


def _key(partition: str, sort: str) -> dict[str, Any]:
    return {"PK": {"S": partition}, "SK": {"S": sort}}


def _sendable(item: dict[str, Any]) -> dict[str, Any]:
    """boto3 encodes binary values itself."""
    return {**item, "data": {"B": b64decode(item["data"]["B"])}}


def _plain_node(item: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": int(item["PK"]["S"].removeprefix("THING#")),
        **{name: int(item[name]["N"]) for name in ("type", "version", "time")},
        "data": item["data"]["B"],
    }


def _plain_link(item: dict[str, Any]) -> dict[str, Any]:
    return {
        "id1": int(item["PK"]["S"].removeprefix("THING#")),
        "id2": int(item["SK"]["S"].removeprefix("LINK#THING#")),
        **{name: int(item[name]["N"]) for name in ("visibility", "version", "time")},
        "data": item["data"]["B"],
    }
