"""Rules for tables, tags and streams: each by a request that breaks it."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin.server.operations.interface import table_name
from adjoin.server.operations.shapes import is_arn
from tests.server.refusals import ARN, UNITS, changed, invalid, refusal

_INVALID = "One or more parameter values were invalid: "
_LENGTH = "TableName must be at least 3 characters long and at most 255 characters long"
_MISSING = "The parameter 'TableName' is required but was not present in the request"
_NO_UNITS = f"{_INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"
_SAME = "Both the Hash Key and the Range Key element in the KeySchema have the same name"
_FIRST = "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"
_SECOND = "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"

A, B, C = ({"AttributeName": name, "AttributeType": "S"} for name in "abc")
HASH_A, HASH_B, HASH_C = ({"AttributeName": name, "KeyType": "HASH"} for name in "abc")
RANGE_A, RANGE_B, RANGE_C = ({"AttributeName": name, "KeyType": "RANGE"} for name in "abc")


def index(name: str = "idx", *keys: dict[str, str], **members: Any) -> dict[str, Any]:
    return {
        "IndexName": name,
        "KeySchema": list(keys) or [HASH_A, RANGE_C],
        "Projection": {"ProjectionType": "ALL"},
        **members,
    }


def undefined(keys: str, definitions: str) -> str:
    return (
        f"{_INVALID}Some index key attributes are not defined in AttributeDefinitions."
        f" Keys: [{keys}], AttributeDefinitions: [{definitions}]"
    )


_MULTIPLE = "The KeySchema contains multiple key attributes with the same name"
_PRECEDE = "All HASH key attributes must precede RANGE key attributes in the KeySchema"


def several(**counts: int) -> dict[str, Any]:
    """A table with an index that has so many attributes of each kind."""
    keys = [{"AttributeName": f"{kind}{each}", "KeyType": kind} for kind in counts for each in range(counts[kind])]
    names = [key["AttributeName"] for key in keys]
    return {
        "AttributeDefinitions": [A, B, *({"AttributeName": name, "AttributeType": "S"} for name in names)],
        "GlobalSecondaryIndexes": [index("idx", *keys)],
    }


ABC = {"AttributeDefinitions": [A, B, C]}
KEYS_ONLY = {"ProjectionType": "KEYS_ONLY"}
PROVISIONED = {"BillingMode": None, "ProvisionedThroughput": UNITS}
HUGE = {**UNITS, "WriteCapacityUnits": 1_000_000_000_001}

CREATE: list[tuple[dict[str, Any], str | None]] = [
    # --- throughput ---
    ({"BillingMode": None}, _NO_UNITS),
    (
        {"ProvisionedThroughput": UNITS},
        f"{_INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is"
        " PAY_PER_REQUEST",
    ),
    (PROVISIONED, None),
    (
        {**PROVISIONED, "ProvisionedThroughput": HUGE},
        "Given value 1000000000001 for WriteCapacityUnits is out of bounds",
    ),
    (
        {**PROVISIONED, **ABC, "GlobalSecondaryIndexes": [index(ProvisionedThroughput=HUGE)]},
        "Given value 1000000000001 for WriteCapacityUnits is out of bounds for index idx",
    ),
    # --- keys ---
    ({"AttributeDefinitions": [A, A]}, "Attribute Name is duplicated: a"),
    ({"AttributeDefinitions": [A]}, "Invalid KeySchema: Some index key attribute have no definition"),
    ({"AttributeDefinitions": []}, "Invalid KeySchema: Some index key attribute have no definition"),
    ({"AttributeDefinitions": [A, C]}, undefined("a, b", "a, c")),
    ({"KeySchema": [HASH_A, RANGE_A]}, _SAME),
    ({"KeySchema": [RANGE_A, HASH_B]}, _FIRST),
    ({"KeySchema": [HASH_A, HASH_B]}, _SECOND),
    (
        {"KeySchema": [HASH_A]},
        f"{_INVALID}Number of attributes in KeySchema does not exactly match number of attributes defined in"
        " AttributeDefinitions",
    ),
    # --- local indexes ---
    ({"LocalSecondaryIndexes": []}, f"{_INVALID}List of LocalSecondaryIndexes is empty"),
    (
        {"KeySchema": [HASH_A], "LocalSecondaryIndexes": [index("idx", HASH_A, RANGE_B)]},
        f"{_INVALID}Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex",
    ),
    ({"LocalSecondaryIndexes": [index()]}, undefined("a, c", "a, b")),
    ({"LocalSecondaryIndexes": [index("idx", HASH_A, RANGE_A)]}, _SAME),
    ({"LocalSecondaryIndexes": [index("idx", RANGE_A, RANGE_B)]}, _FIRST),
    ({"LocalSecondaryIndexes": [index("idx", HASH_A, HASH_B)]}, _SECOND),
    (
        {"LocalSecondaryIndexes": [index("idx", HASH_A)]},
        f"{_INVALID}Index KeySchema does not have a range key for index: idx",
    ),
    (
        {"LocalSecondaryIndexes": [index("idx", HASH_B, RANGE_A)]},
        f"{_INVALID}Index KeySchema does not have the same leading hash key as table KeySchema for index: idx."
        " index hash key: b, table hash key: a",
    ),
    (
        {**ABC, "LocalSecondaryIndexes": [index(Projection={})]},
        f"{_INVALID}Unknown ProjectionType: null",
    ),
    (
        {**ABC, "LocalSecondaryIndexes": [index(Projection={"ProjectionType": "ALL", "NonKeyAttributes": ["x"]})]},
        f"{_INVALID}ProjectionType is ALL, but NonKeyAttributes is specified",
    ),
    (
        {**ABC, "LocalSecondaryIndexes": [index(Projection={"ProjectionType": "INCLUDE"})]},
        f"{_INVALID}ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
    ),
    ({**ABC, "LocalSecondaryIndexes": [index(), index()]}, f"{_INVALID}Duplicate index name: idx"),
    (
        {**ABC, "LocalSecondaryIndexes": [index(f"idx{n}") for n in range(6)]},
        f"{_INVALID}Number of LocalSecondaryIndexes exceeds per-table limit of 5",
    ),
    ({**ABC, "LocalSecondaryIndexes": [index(f"idx{n}") for n in range(5)]}, None),
    # --- global indexes ---
    ({"GlobalSecondaryIndexes": []}, f"{_INVALID}List of GlobalSecondaryIndexes is empty"),
    ({"GlobalSecondaryIndexes": [index("idx", HASH_C)]}, undefined("c", "a, b")),
    ({**ABC, "GlobalSecondaryIndexes": [index("idx", HASH_C, RANGE_C)]}, _SAME),
    ({**ABC, "GlobalSecondaryIndexes": [index("idx", RANGE_C)]}, _FIRST),
    ({**ABC, "GlobalSecondaryIndexes": [index("idx", RANGE_C, HASH_A)]}, _FIRST),
    ({**ABC, "GlobalSecondaryIndexes": [index("idx", HASH_C, HASH_A)]}, None),
    ({**ABC, "GlobalSecondaryIndexes": [index("idx", HASH_C, RANGE_A, RANGE_B)]}, None),
    ({**ABC, "GlobalSecondaryIndexes": [index("idx", HASH_C, HASH_C)]}, _MULTIPLE),
    ({**ABC, "GlobalSecondaryIndexes": [index("idx", HASH_C, HASH_B, RANGE_C)]}, _MULTIPLE),
    ({**ABC, "GlobalSecondaryIndexes": [index("idx", HASH_C, RANGE_A, HASH_B)]}, f"{_INVALID}{_PRECEDE}"),
    ({"GlobalSecondaryIndexes": [index("idx", HASH_A, HASH_B, RANGE_C)]}, undefined("a, b, c", "a, b")),
    (
        several(HASH=5, RANGE=0),
        f"{_INVALID}The KeySchema exceeds the maximum allowed number of HASH key attributes",
    ),
    (
        several(HASH=1, RANGE=5),
        f"{_INVALID}The KeySchema exceeds the maximum allowed number of RANGE key attributes",
    ),
    (several(HASH=4, RANGE=4), None),
    (
        {
            **ABC,
            "GlobalSecondaryIndexes": [index(Projection={"ProjectionType": "KEYS_ONLY", "NonKeyAttributes": ["x"]})],
        },
        f"{_INVALID}ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified",
    ),
    (
        {**ABC, "GlobalSecondaryIndexes": [index(ProvisionedThroughput=UNITS)]},
        f"{_INVALID}ProvisionedThroughput should not be specified for index: idx when BillingMode is PAY_PER_REQUEST",
    ),
    (
        {**ABC, **PROVISIONED, "GlobalSecondaryIndexes": [index()]},
        f"{_INVALID}ProvisionedThroughput is not specified for index: idx",
    ),
    ({**ABC, **PROVISIONED, "GlobalSecondaryIndexes": [index(ProvisionedThroughput=UNITS)]}, None),
    (
        {**ABC, "LocalSecondaryIndexes": [index()], "GlobalSecondaryIndexes": [index()]},
        f"{_INVALID}Duplicate index name: idx",
    ),
    (
        {**ABC, "GlobalSecondaryIndexes": [index(f"idx{n}") for n in range(21)]},
        f"{_INVALID}GlobalSecondaryIndex count exceeds the per-table limit of 20",
    ),
    ({**ABC, "GlobalSecondaryIndexes": [index(f"idx{n}") for n in range(20)]}, None),
    (
        {**ABC, "GlobalSecondaryIndexes": [index("idx", HASH_B)]},
        f"{_INVALID}Some AttributeDefinitions are not used. AttributeDefinitions: [a, b, c], keys used: [a, b]",
    ),
    # --- streams ---
    ({"StreamSpecification": {"StreamEnabled": False}}, None),
    ({"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}}, None),
    (
        {"StreamSpecification": {"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"}},
        f"{_INVALID}Table is being created with a stream disabled, UpdateViewType should not be specified",
    ),
    (
        {"StreamSpecification": {"StreamEnabled": True}},
        f"{_INVALID}Table is being created with a stream enabled, UpdateViewType must be specified",
    ),
    # --- two faults ---
    ({"BillingMode": None, "AttributeDefinitions": []}, _NO_UNITS),
    ({"KeySchema": [RANGE_A, RANGE_A]}, _SAME),
    ({"LocalSecondaryIndexes": [], "GlobalSecondaryIndexes": []}, f"{_INVALID}List of LocalSecondaryIndexes is empty"),
]


@pytest.mark.parametrize(("members", "words"), CREATE)
def test_create_table(members: dict[str, Any], words: str | None) -> None:
    assert invalid("CreateTable", changed("CreateTable", **members)) == words


NO_CHANGE = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or"
    " SSESpecification or ReplicaUpdates is required"
)
MADE = index("idx", HASH_C)

UPDATE: list[tuple[dict[str, Any], str | None]] = [
    ({}, NO_CHANGE),
    ({"GlobalSecondaryIndexUpdates": []}, NO_CHANGE),
    ({"AttributeDefinitions": [A]}, NO_CHANGE),
    ({"DeletionProtectionEnabled": False}, None),
    ({"TableClass": "STANDARD"}, None),
    ({"StreamSpecification": {"StreamEnabled": False}}, None),
    (
        {"BillingMode": "PROVISIONED"},
        f"{_INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
    ),
    ({"ProvisionedThroughput": UNITS}, None),
    ({"ProvisionedThroughput": HUGE}, "Given value 1000000000001 for WriteCapacityUnits is out of bounds"),
    (
        {"GlobalSecondaryIndexUpdates": [{}]},
        f"{_INVALID}One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create,"
        " GlobalSecondaryIndexUpdate.Delete must not be null",
    ),
    (
        {
            "GlobalSecondaryIndexUpdates": [
                {"Delete": {"IndexName": "idx"}},
                {"Update": {"IndexName": "idx", "ProvisionedThroughput": UNITS}},
            ]
        },
        f"{_INVALID}Only one global secondary index update per index is allowed simultaneously. Index: idx",
    ),
    ({"GlobalSecondaryIndexUpdates": [{"Create": MADE}], "AttributeDefinitions": [C]}, None),
    (
        {"GlobalSecondaryIndexUpdates": [{"Create": MADE}]},
        "Invalid KeySchema: Some index key attribute have no definition",
    ),
    (
        {"GlobalSecondaryIndexUpdates": [{"Create": {**MADE, "Projection": {}}}], "AttributeDefinitions": [C]},
        f"{_INVALID}Unknown ProjectionType: null",
    ),
    ({"GlobalSecondaryIndexUpdates": [{"Create": index("idx", HASH_C, HASH_A, RANGE_B)}], **ABC}, None),
    (
        {"GlobalSecondaryIndexUpdates": [{"Create": index("idx", HASH_C, RANGE_A, HASH_B)}], **ABC},
        f"{_INVALID}{_PRECEDE}",
    ),
    (
        {
            "GlobalSecondaryIndexUpdates": [
                {"Create": index("idx", *several(HASH=5)["GlobalSecondaryIndexes"][0]["KeySchema"])}
            ],
            "AttributeDefinitions": several(HASH=5)["AttributeDefinitions"],
        },
        f"{_INVALID}The KeySchema exceeds the maximum allowed number of HASH key attributes",
    ),
]


@pytest.mark.parametrize(("members", "words"), UPDATE)
def test_update_table(members: dict[str, Any], words: str | None) -> None:
    assert invalid("UpdateTable", {"TableName": "abc", **members}) == words


@pytest.mark.parametrize(
    "operation",
    [
        "CreateTable", "UpdateTable", "DescribeTable", "DeleteTable", "DescribeTimeToLive", "UpdateTimeToLive",
        "DescribeContinuousBackups", "UpdateContinuousBackups",
    ],
)  # fmt: skip
def test_the_table_is_asked_for_before_any_limit(operation: str) -> None:
    assert invalid(operation, {}) == _MISSING
    assert invalid(operation, {"TableName": None, "BillingMode": "x"}) == _MISSING
    for name in ("", "ab", "a;", "a" * 256):
        assert invalid(operation, {"TableName": name, "BillingMode": "x"}) == _LENGTH


OTHER_ARN = "arn:aws:s3:us-east-1:000000000000:bucket/abc"


@pytest.mark.parametrize(
    ("operation", "members", "refused"),
    [
        ("TagResource", {"ResourceArn": None, "Tags": None}, ("ValidationException", "Invalid TableArn")),
        (
            "TagResource",
            {"ResourceArn": "abc", "Tags": None},
            (
                "AccessDeniedException",
                "User: arn:aws:iam::000000000000:root is not authorized to perform: dynamodb:TagResource"
                " on resource: abc",
            ),
        ),
        (
            "ListTagsOfResource",
            {"ResourceArn": ""},
            (
                "AccessDeniedException",
                "User: arn:aws:iam::000000000000:root is not authorized to perform: dynamodb:ListTagsOfResource"
                " on resource: *",
            ),
        ),
        (
            "TagResource",
            {"ResourceArn": OTHER_ARN, "Tags": None},
            (
                "ValidationException",
                "1 validation error detected: Value null at 'tags' failed to satisfy constraint:"
                " Member must not be null",
            ),
        ),
        (
            "TagResource",
            {"ResourceArn": OTHER_ARN, "Tags": []},
            ("ValidationException", f"Invalid TableArn: Invalid ResourceArn provided as input {OTHER_ARN}"),
        ),
        (
            "TagResource",
            {"Tags": []},
            ("ValidationException", "Atleast one Tag needs to be provided as Input."),
        ),
        (
            "UntagResource",
            {"ResourceArn": f"{ARN}/index/idx"},
            ("ValidationException", f"Invalid TableArn: Invalid ResourceArn provided as input {ARN}/index/idx"),
        ),
        (
            "UntagResource",
            {"TagKeys": []},
            ("ValidationException", "Atleast one Tag Key needs to be provided as Input."),
        ),
        (
            "GetShardIterator",
            {"ShardIteratorType": "AT_SEQUENCE_NUMBER"},
            ("ValidationException", "SequenceNumber is required for ShardIteratorType AT_SEQUENCE_NUMBER"),
        ),
        ("GetShardIterator", {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": "0" * 21}, None),
        (
            "GetShardIterator",
            {"SequenceNumber": "0" * 21},
            ("ValidationException", "SequenceNumber must not be specified for ShardIteratorType LATEST"),
        ),
    ],
)
def test_tags_and_streams(operation: str, members: dict[str, Any], refused: tuple[str, str] | None) -> None:
    assert refusal(operation, changed(operation, **members)) == refused


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("abc", "abc"),
        (ARN, "abc"),
        (f"{ARN}/index/idx", "abc"),
        ("arn:aws-cn:dynamodb:cn-north-1:123456789012:table/a.b-c_d", "a.b-c_d"),
        ("arn:aws:s3:::bucket", "arn:aws:s3:::bucket"),
    ],
)
def test_the_table_that_a_reference_names(reference: str, name: str) -> None:
    assert table_name(reference) == name
    assert is_arn(reference) is reference.startswith("arn:")
