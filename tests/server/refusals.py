"""What the tests of validation share: a request that is right for each operation, and what a refusal says."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from adjoin.server.operations import OPERATIONS, STREAM_OPERATIONS, Operation
from adjoin.server.operations.interface import Refused

Request = dict[str, Any]

ALL: dict[str, Operation] = {**OPERATIONS, **STREAM_OPERATIONS}

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/abc"
STREAM = f"{ARN}/stream/2026-01-01T00:00:00.000"
SHARD = "shardId-00000001500000000000-abcdef01"

KEY: Request = {"a": {"S": "x"}}
SCHEMA = [{"AttributeName": "a", "KeyType": "HASH"}, {"AttributeName": "b", "KeyType": "RANGE"}]
DEFINITIONS = [{"AttributeName": "a", "AttributeType": "S"}, {"AttributeName": "b", "AttributeType": "N"}]
UNITS = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}

RIGHT: dict[str, Request] = {
    "GetItem": {"TableName": "abc", "Key": KEY},
    "PutItem": {"TableName": "abc", "Item": KEY},
    "DeleteItem": {"TableName": "abc", "Key": KEY},
    "UpdateItem": {"TableName": "abc", "Key": KEY},
    "Query": {"TableName": "abc", "KeyConditionExpression": "a = :a", "ExpressionAttributeValues": {":a": {"S": "x"}}},
    "Scan": {"TableName": "abc"},
    "BatchGetItem": {"RequestItems": {"abc": {"Keys": [KEY]}}},
    "BatchWriteItem": {"RequestItems": {"abc": [{"PutRequest": {"Item": KEY}}]}},
    "TransactWriteItems": {"TransactItems": [{"Put": {"TableName": "abc", "Item": KEY}}]},
    "TransactGetItems": {"TransactItems": [{"Get": {"TableName": "abc", "Key": KEY}}]},
    "CreateTable": {
        "TableName": "abc",
        "AttributeDefinitions": DEFINITIONS,
        "KeySchema": SCHEMA,
        "BillingMode": "PAY_PER_REQUEST",
    },
    "UpdateTable": {"TableName": "abc", "BillingMode": "PAY_PER_REQUEST"},
    "DescribeTable": {"TableName": "abc"},
    "DeleteTable": {"TableName": "abc"},
    "ListTables": {},
    "DescribeTimeToLive": {"TableName": "abc"},
    "UpdateTimeToLive": {
        "TableName": "abc",
        "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "expires"},
    },
    "DescribeContinuousBackups": {"TableName": "abc"},
    "UpdateContinuousBackups": {
        "TableName": "abc",
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
    },
    "TagResource": {"ResourceArn": ARN, "Tags": [{"Key": "a", "Value": ""}]},
    "UntagResource": {"ResourceArn": ARN, "TagKeys": ["a"]},
    "ListTagsOfResource": {"ResourceArn": ARN},
    "DescribeLimits": {},
    "DescribeEndpoints": {},
    "DescribeContributorInsights": {"TableName": "abc"},
    "DescribeGlobalTable": {"GlobalTableName": "abc"},
    "DescribeKinesisStreamingDestination": {"TableName": "abc"},
    "GetResourcePolicy": {"ResourceArn": ARN},
    "ListBackups": {},
    "ListContributorInsights": {},
    "ListExports": {},
    "ListGlobalTables": {},
    "ListImports": {},
    "ListStreams": {"TableName": "abc"},
    "DescribeStream": {"StreamArn": STREAM},
    "GetShardIterator": {"StreamArn": STREAM, "ShardId": SHARD, "ShardIteratorType": "LATEST"},
    "GetRecords": {"ShardIterator": "x"},
}


def changed(operation: str, **members: Any) -> Request:
    """The right request for an operation, with some members in place of its own; None takes one away."""
    request = {**deepcopy(RIGHT[operation]), **members}
    return {name: member for name, member in request.items() if member is not None}


def validated(operation: str, body: bytes | Request) -> Request:
    return ALL[operation].validated(body)


def refusal(operation: str, body: bytes | Request) -> tuple[str, str | None] | None:
    """Code and message of what a request is refused with; None for one that is right."""
    try:
        validated(operation, body)
    except Refused as refused:
        return refused.code, refused.message
    return None


def invalid(operation: str, body: Request) -> str | None:
    """The message of a ValidationException; None for a request that is right."""
    refused = refusal(operation, body)
    if refused is None:
        return None
    code, message = refused
    assert code == "ValidationException", refused
    return message
