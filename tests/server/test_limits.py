"""Limits that are broken, all together, with the place of each."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin.server.operations.checking import ShapeLimits
from tests.server.refusals import ALL, ARN, KEY, RIGHT, SCHEMA, SHARD, STREAM, changed, invalid, refusal

NULL = "Member must not be null"
NAME = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
CAPACITY = "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
METRICS = "Member must satisfy enum value set: [SIZE, NONE]"
RETURNED = "Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"
OPERATORS = (
    "Member must satisfy enum value set: [IN, NULL, BETWEEN, LT, NOT_CONTAINS, EQ, GT, NOT_NULL, NE, LE,"
    " BEGINS_WITH, GE, CONTAINS]"
)
TABLES = (
    "Map keys must satisfy constraint: [Member must have length less than or equal to 255,"
    f" Member must have length greater than or equal to 3, {NAME}]"
)
WRITES = (
    "Map value must satisfy constraint: [Member must have length less than or equal to 25,"
    " Member must have length greater than or equal to 1]"
)
LONG = "x" * 256


def longer(limit: int) -> str:
    return f"Member must have length greater than or equal to {limit}"


def shorter(limit: int) -> str:
    return f"Member must have length less than or equal to {limit}"


def least(limit: int) -> str:
    return f"Member must have value greater than or equal to {limit}"


def most(limit: int) -> str:
    return f"Member must have value less than or equal to {limit}"


def written(elements: list[str]) -> str:
    return f"[{', '.join(elements)}]"


def said(*faults: tuple[str | None, str, str]) -> str:
    listed = "; ".join(
        f"Value {'null' if value is None else repr(value)} at '{path}' failed to satisfy constraint: {limit}"
        for value, path, limit in faults
    )
    return f"{len(faults)} validation error{'s' * (len(faults) > 1)} detected: {listed}"


THREE = [*SCHEMA, {"AttributeName": "c", "KeyType": "RANGE"}]
THREE_WRITTEN = (
    "[KeySchemaElement(attributeName=a, keyType=HASH), KeySchemaElement(attributeName=b, keyType=RANGE),"
    " KeySchemaElement(attributeName=c, keyType=RANGE)]"
)
GET_WRITTEN = (
    "TransactGetItem(get=Get(key=null, tableName=null, projectionExpression=null, expressionAttributeNames=null))"
)
INDEX = {"IndexName": "idx", "KeySchema": SCHEMA, "Projection": {"ProjectionType": "ALL"}}

FAULTS: list[tuple[str, dict[str, Any], list[tuple[str | None, str, str]]]] = [
    # --- names of tables ---
    ("GetItem", {"TableName": None}, [(None, "tableName", NULL)]),
    ("GetItem", {"TableName": ""}, [("", "tableName", longer(1))]),
    ("GetItem", {"TableName": "ab"}, [("ab", "tableName", longer(3))]),
    ("GetItem", {"TableName": "a;"}, [("a;", "tableName", NAME), ("a;", "tableName", longer(3))]),
    ("GetItem", {"TableName": "abc;"}, [("abc;", "tableName", NAME)]),
    ("GetItem", {"TableName": LONG}, [(LONG, "tableName", shorter(255))]),
    ("GetItem", {"TableName": ARN + "x" * 1024}, [(ARN + "x" * 1024, "tableName", shorter(1024))]),
    ("CreateTable", {"TableName": "abc;"}, [("abc;", "tableName", NAME)]),
    ("DescribeTable", {"TableName": "abc;"}, [("abc;", "tableName", NAME)]),
    ("ListTables", {"ExclusiveStartTableName": "a;"}, [
        ("a;", "exclusiveStartTableName", NAME), ("a;", "exclusiveStartTableName", longer(3)),
    ]),
    ("Query", {"IndexName": LONG}, [(LONG, "indexName", shorter(255))]),
    ("ListStreams", {"TableName": "ab"}, [("ab", "tableName", longer(3))]),
    # --- one item ---
    ("GetItem", {"Key": None}, [(None, "key", NULL)]),
    ("GetItem", {"TableName": None, "Key": None}, [(None, "tableName", NULL), (None, "key", NULL)]),
    ("GetItem", {"AttributesToGet": []}, [("[]", "attributesToGet", longer(1))]),
    ("GetItem", {"AttributesToGet": [None]}, [(None, "attributesToGet.1.member", NULL)]),
    ("GetItem", {"ReturnConsumedCapacity": "total"}, [("total", "returnConsumedCapacity", CAPACITY)]),
    ("PutItem", {"Item": None}, [(None, "item", NULL)]),
    ("PutItem", {"ReturnValues": "hi"}, [("hi", "returnValues", RETURNED)]),
    ("PutItem", {"ReturnItemCollectionMetrics": ""}, [("", "returnItemCollectionMetrics", METRICS)]),
    ("PutItem", {"ConditionalOperator": "XOR"}, [
        ("XOR", "conditionalOperator", "Member must satisfy enum value set: [OR, AND]"),
    ]),
    ("PutItem", {"ReturnValuesOnConditionCheckFailure": "ALL_NEW"}, [
        ("ALL_NEW", "returnValuesOnConditionCheckFailure", "Member must satisfy enum value set: [ALL_OLD, NONE]"),
    ]),
    ("PutItem", {"Expected": {"a": {"ComparisonOperator": "="}}}, [
        ("=", "expected.a.member.comparisonOperator", OPERATORS),
    ]),
    ("PutItem", {"Expected": {"a": None}}, [(None, "expected.a.member", NULL)]),
    ("UpdateItem", {"AttributeUpdates": {"a": {"Action": "SET"}}}, [
        ("SET", "attributeUpdates.a.member.action", "Member must satisfy enum value set: [ADD, PUT, DELETE]"),
    ]),
    # --- queries and scans ---
    ("Query", {"Limit": 0}, [("0", "limit", least(1))]),
    ("Scan", {"Limit": 0}, [("0", "limit", least(1))]),
    ("Query", {"Select": "ALL"}, [
        ("ALL", "select", "Member must satisfy enum value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES,"
         " ALL_PROJECTED_ATTRIBUTES]"),
    ]),
    ("Query", {"KeyConditions": {"a": {}}}, [(None, "keyConditions.a.member.comparisonOperator", NULL)]),
    ("Scan", {"ScanFilter": {"a": {"ComparisonOperator": ""}}}, [
        ("", "scanFilter.a.member.comparisonOperator", OPERATORS),
    ]),
    ("Scan", {"Segment": -1, "TotalSegments": 0}, [
        ("0", "totalSegments", least(1)), ("-1", "segment", least(0)),
    ]),
    ("Scan", {"Segment": 1_000_000, "TotalSegments": 1_000_001}, [
        ("1000001", "totalSegments", most(1_000_000)), ("1000000", "segment", most(999_999)),
    ]),
    # --- batches ---
    ("BatchGetItem", {"RequestItems": None}, [(None, "requestItems", NULL)]),
    ("BatchGetItem", {"RequestItems": {"abc": {}}}, [(None, "requestItems.abc.member.keys", NULL)]),
    ("BatchGetItem", {"RequestItems": {"abc": None}}, [(None, "requestItems.abc.member", NULL)]),
    ("BatchGetItem", {"RequestItems": {"abc": {"Keys": []}}}, [
        ("[]", "requestItems.abc.member.keys", longer(1)),
    ]),
    ("BatchGetItem", {"RequestItems": {"abc": {"Keys": [{}] * 101}}}, [
        (written(["{}"] * 101), "requestItems.abc.member.keys", shorter(100)),
    ]),
    ("BatchGetItem", {"RequestItems": {"a;": {"Keys": [{}]}}}, [
        ("{a;=KeysAndAttributes(keys=[{}], attributesToGet=null, consistentRead=null, projectionExpression=null,"
         " expressionAttributeNames=null)}", "requestItems", TABLES),
    ]),
    ("BatchWriteItem", {"RequestItems": {"abc": []}}, [("{abc=[]}", "requestItems", WRITES)]),
    ("BatchWriteItem", {"RequestItems": {"abc": [{}] * 26}}, [
        (f"{{abc={written(['WriteRequest(deleteRequest=null, putRequest=null)'] * 26)}}}", "requestItems", WRITES),
    ]),
    ("BatchWriteItem", {"RequestItems": {"abc": [{"PutRequest": {}}, {"DeleteRequest": {}}]}}, [
        (None, "requestItems.abc.member.1.member.putRequest.item", NULL),
        (None, "requestItems.abc.member.2.member.deleteRequest.key", NULL),
    ]),
    # --- transactions ---
    ("TransactWriteItems", {"TransactItems": None}, [(None, "transactItems", NULL)]),
    ("TransactWriteItems", {"TransactItems": []}, [("[]", "transactItems", longer(1))]),
    ("TransactWriteItems", {"TransactItems": [{"Put": {}}, {"Update": {"TableName": "a;b", "Key": KEY}}]}, [
        (None, "transactItems.1.member.put.item", NULL),
        (None, "transactItems.1.member.put.tableName", NULL),
        (None, "transactItems.2.member.update.updateExpression", NULL),
        ("a;b", "transactItems.2.member.update.tableName", NAME),
    ]),
    ("TransactWriteItems", {"TransactItems": [{"ConditionCheck": {}}]}, [
        (None, "transactItems.1.member.conditionCheck.key", NULL),
        (None, "transactItems.1.member.conditionCheck.tableName", NULL),
        (None, "transactItems.1.member.conditionCheck.conditionExpression", NULL),
    ]),
    ("TransactWriteItems", {"ClientRequestToken": "x" * 37}, [("x" * 37, "clientRequestToken", shorter(36))]),
    ("TransactWriteItems", {"ClientRequestToken": ""}, [("", "clientRequestToken", longer(1))]),
    ("TransactGetItems", {"TransactItems": [{}]}, [(None, "transactItems.1.member.get", NULL)]),
    ("TransactGetItems", {"TransactItems": [{"Get": {}}] * 101}, [
        (written([GET_WRITTEN] * 101), "transactItems", shorter(100)),
        *[(None, f"transactItems.{place}.member.get.{name}", NULL)
          for place in range(1, 6) for name in ("key", "tableName")][:9],
    ]),
    # --- tables ---
    ("CreateTable", {"AttributeDefinitions": None, "KeySchema": None}, [
        (None, "attributeDefinitions", NULL), (None, "keySchema", NULL),
    ]),
    ("CreateTable", {"AttributeDefinitions": [{"AttributeName": "", "AttributeType": "SS"}]}, [
        ("", "attributeDefinitions.1.member.attributeName", longer(1)),
        ("SS", "attributeDefinitions.1.member.attributeType", "Member must satisfy enum value set: [B, N, S]"),
    ]),
    ("CreateTable", {"KeySchema": []}, [("[]", "keySchema", longer(1))]),
    ("CreateTable", {"KeySchema": THREE}, [(THREE_WRITTEN, "keySchema", shorter(2))]),
    ("CreateTable", {"KeySchema": [{"KeyType": "SORT"}]}, [
        (None, "keySchema.1.member.attributeName", NULL),
        ("SORT", "keySchema.1.member.keyType", "Member must satisfy enum value set: [HASH, RANGE]"),
    ]),
    ("CreateTable", {"ProvisionedThroughput": {"ReadCapacityUnits": 0}}, [
        (None, "provisionedThroughput.writeCapacityUnits", NULL),
        ("0", "provisionedThroughput.readCapacityUnits", least(1)),
    ]),
    ("CreateTable", {"BillingMode": "FREE"}, [
        ("FREE", "billingMode", "Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]"),
    ]),
    ("CreateTable", {"LocalSecondaryIndexes": [{}]}, [
        (None, "localSecondaryIndexes.1.member.indexName", NULL),
        (None, "localSecondaryIndexes.1.member.keySchema", NULL),
        (None, "localSecondaryIndexes.1.member.projection", NULL),
    ]),
    ("CreateTable", {"GlobalSecondaryIndexes": [
        INDEX, {**INDEX, "IndexName": "h;", "Projection": {"ProjectionType": "SOME", "NonKeyAttributes": []}},
    ]}, [
        ("h;", "globalSecondaryIndexes.2.member.indexName", NAME),
        ("h;", "globalSecondaryIndexes.2.member.indexName", longer(3)),
        ("SOME", "globalSecondaryIndexes.2.member.projection.projectionType",
         "Member must satisfy enum value set: [ALL, INCLUDE, KEYS_ONLY]"),
        ("[]", "globalSecondaryIndexes.2.member.projection.nonKeyAttributes", longer(1)),
    ]),
    ("CreateTable", {"GlobalSecondaryIndexes": [{**INDEX, "Projection": {"NonKeyAttributes": ["a", ""]}}]}, [
        ("[a, ]", "globalSecondaryIndexes.1.member.projection.nonKeyAttributes",
         f"Member must satisfy constraint: [{shorter(255)}, {longer(1)}]"),
    ]),
    ("CreateTable", {"StreamSpecification": {"StreamViewType": "ALL"}}, [
        (None, "streamSpecification.streamEnabled", NULL),
        ("ALL", "streamSpecification.streamViewType",
         "Member must satisfy enum value set: [NEW_IMAGE, OLD_IMAGE, NEW_AND_OLD_IMAGES, KEYS_ONLY]"),
    ]),
    ("CreateTable", {"Tags": [{"Key": "", "Value": LONG + "x"}]}, [
        ("", "tags.1.member.key", longer(1)), (LONG + "x", "tags.1.member.value", shorter(256)),
    ]),
    ("UpdateTable", {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "ab"}}, {"Create": {}}]}, [
        ("ab", "globalSecondaryIndexUpdates.1.member.delete.indexName", longer(3)),
        (None, "globalSecondaryIndexUpdates.2.member.create.projection", NULL),
        (None, "globalSecondaryIndexUpdates.2.member.create.indexName", NULL),
        (None, "globalSecondaryIndexUpdates.2.member.create.keySchema", NULL),
    ]),
    ("UpdateTable", {"GlobalSecondaryIndexUpdates": [{"Update": {}}, {"Update": {"IndexName": "abc"}}]}, [
        (None, "globalSecondaryIndexUpdates.1.member.update.indexName", NULL),
        (None, "globalSecondaryIndexUpdates.1.member.update.provisionedThroughput", NULL),
        (None, "globalSecondaryIndexUpdates.2.member.update.provisionedThroughput", NULL),
    ]),
    ("ListTables", {"Limit": 0}, [("0", "limit", least(1))]),
    ("ListTables", {"Limit": 101}, [("101", "limit", most(100))]),
    ("UpdateTimeToLive", {"TimeToLiveSpecification": None}, [(None, "timeToLiveSpecification", NULL)]),
    ("UpdateTimeToLive", {"TimeToLiveSpecification": {"AttributeName": ""}}, [
        (None, "timeToLiveSpecification.enabled", NULL), ("", "timeToLiveSpecification.attributeName", longer(1)),
    ]),
    ("UpdateContinuousBackups", {"PointInTimeRecoverySpecification": {"RecoveryPeriodInDays": 36}}, [
        (None, "pointInTimeRecoverySpecification.pointInTimeRecoveryEnabled", NULL),
        ("36", "pointInTimeRecoverySpecification.recoveryPeriodInDays", most(35)),
    ]),
    ("TagResource", {"Tags": None}, [(None, "tags", NULL)]),
    ("TagResource", {"Tags": [{"Key": "a"}]}, [(None, "tags.1.member.value", NULL)]),
    ("UntagResource", {"TagKeys": None}, [(None, "tagKeys", NULL)]),
    ("UntagResource", {"TagKeys": [""]}, [
        ("[]", "tagKeys", f"Member must satisfy constraint: [{shorter(128)}, {longer(1)}]"),
    ]),
    # --- streams ---
    ("DescribeStream", {"StreamArn": "short"}, [("short", "streamArn", longer(37))]),
    ("DescribeStream", {"ExclusiveStartShardId": "x"}, [("x", "exclusiveStartShardId", longer(28))]),
    ("GetShardIterator", {"StreamArn": None, "ShardId": None, "ShardIteratorType": "FIRST"}, [
        (None, "streamArn", NULL), (None, "shardId", NULL),
        ("FIRST", "shardIteratorType", "Member must satisfy enum value set: [TRIM_HORIZON, LATEST,"
         " AT_SEQUENCE_NUMBER, AFTER_SEQUENCE_NUMBER]"),
    ]),
    ("GetRecords", {"ShardIterator": None, "Limit": 1001}, [
        (None, "shardIterator", NULL), ("1001", "limit", most(1000)),
    ]),
    # --- several at once, in the order of the shape and not of the request ---
    ("PutItem", {"ReturnValues": "x", "Item": None, "TableName": "a;", "ReturnConsumedCapacity": "y"}, [
        ("y", "returnConsumedCapacity", CAPACITY),
        ("a;", "tableName", NAME),
        ("a;", "tableName", longer(3)),
        (None, "item", NULL),
        ("x", "returnValues", RETURNED),
    ]),
    ("DeleteItem", {"ReturnValues": "x", "Key": None, "TableName": "a;", "ReturnConsumedCapacity": "y"}, [
        ("y", "returnConsumedCapacity", CAPACITY),
        ("a;", "tableName", NAME),
        ("a;", "tableName", longer(3)),
        ("x", "returnValues", RETURNED),
        (None, "key", NULL),
    ]),
    ("UpdateItem", {"ReturnValues": "x", "Key": None, "ReturnConsumedCapacity": "y"}, [
        ("y", "returnConsumedCapacity", CAPACITY),
        ("x", "returnValues", RETURNED),
        (None, "key", NULL),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "members", "faults"), FAULTS)
def test_broken_limits(operation: str, members: dict[str, Any], faults: list[tuple[str | None, str, str]]) -> None:
    assert refusal(operation, changed(operation, **members)) == ("ValidationException", said(*faults))


def test_ten_broken_limits_are_listed_at_most() -> None:
    message = invalid("BatchGetItem", {"RequestItems": {f"abc{place}": {} for place in range(12)}})
    assert message == said(*[(None, f"requestItems.abc{place}.member.keys", NULL) for place in range(10)])


@pytest.mark.parametrize("operation", RIGHT)
def test_right_requests(operation: str) -> None:
    assert refusal(operation, RIGHT[operation]) is None


def test_there_is_a_right_request_for_every_operation() -> None:
    assert RIGHT.keys() == ALL.keys()


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("GetItem", {"TableName": ARN}),
        ("CreateTable", {"TableName": ARN}),
        ("BatchGetItem", {"RequestItems": {ARN: {"Keys": [KEY]}}}),
        ("BatchWriteItem", {"RequestItems": {ARN: [{"DeleteRequest": {"Key": KEY}}]}}),
        ("TransactGetItems", {"TransactItems": [{"Get": {"TableName": ARN, "Key": KEY}}]}),
        ("GetShardIterator", {"ShardId": SHARD, "StreamArn": STREAM, "ShardIteratorType": "TRIM_HORIZON"}),
    ],
)
def test_limits_that_are_kept(operation: str, members: dict[str, Any]) -> None:
    assert refusal(operation, changed(operation, **members)) is None


def test_whether_limits_hold_needs_no_list_of_faults() -> None:
    limits = ShapeLimits.of(ALL["GetItem"].shape)
    assert limits.hold(RIGHT["GetItem"])
    assert not limits.hold({})
