"""Requests and the exact JSON they become; answers and the responses they mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adjoin.expressions import Compare, Exists, Path, Set, Value, attribute
from adjoin.requests import (
    BatchGet,
    BatchGetResponse,
    BatchWrite,
    Check,
    Consumed,
    Delete,
    Get,
    ItemResponse,
    PageResponse,
    Put,
    Query,
    Request,
    Response,
    Scan,
    SortCondition,
    TransactGet,
    TransactWrite,
    Update,
    WriteResponse,
)
from adjoin.stores.definitions import creation, described
from adjoin.stores.dynamodb.protocol import OPERATIONS
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition, Throughput
from tests.stores.examples import EDGES, item, key, n, s

A1 = key("A", "1")
A_EXISTS = Exists(attribute("a"))
NAMES: dict[str, Any] = {"ExpressionAttributeNames": {"#0": "a"}}
TOTAL: dict[str, Any] = {"ReturnConsumedCapacity": "TOTAL"}
INDEXES: dict[str, Any] = {"ReturnConsumedCapacity": "INDEXES"}
IF_A = {"ConditionExpression": "attribute_exists(#0)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD", **NAMES}

PAYLOADS: list[tuple[Request, str, dict[str, Any]]] = [
    (Get("T", A1), "GetItem", {"TableName": "T", "Key": A1, **TOTAL}),
    (
        Get("T", A1, consistent=True, projection=(Path(("a", 0)),)),
        "GetItem",
        {"TableName": "T", "Key": A1, "ConsistentRead": True, "ProjectionExpression": "#0[0]", **NAMES, **TOTAL},
    ),
    (Put("T", A1), "PutItem", {"TableName": "T", "Item": A1, **INDEXES}),
    (
        Put("T", A1, A_EXISTS, return_old=True),
        "PutItem",
        {"TableName": "T", "Item": A1, "ReturnValues": "ALL_OLD", **IF_A, **INDEXES},
    ),
    (Delete("T", A1, A_EXISTS), "DeleteItem", {"TableName": "T", "Key": A1, **IF_A, **INDEXES}),
    (Update("T", A1, ()), "UpdateItem", {"TableName": "T", "Key": A1, **INDEXES}),
    (
        Update("T", A1, (Set(attribute("a"), Value(n(1))),), A_EXISTS, "updated_new"),
        "UpdateItem",
        {
            "TableName": "T",
            "Key": A1,
            "UpdateExpression": "SET #0 = :0",
            "ExpressionAttributeValues": {":0": n(1)},
            "ReturnValues": "UPDATED_NEW",
            **IF_A,
            **INDEXES,
        },
    ),
    (
        Query(
            "T",
            ("PK", s("A")),
            SortCondition("SK", ">", (s("1"),)),
            index="I",
            filter=Compare("=", attribute("PK"), Value(s("A"))),
            projection=(attribute("SK"),),
            limit=5,
            start=A1,
            forward=False,
        ),
        "Query",
        {
            "TableName": "T",
            "IndexName": "I",
            "KeyConditionExpression": "#0 = :0 AND #1 > :1",
            "FilterExpression": "#0 = :0",
            "ProjectionExpression": "#1",
            "ExpressionAttributeNames": {"#0": "PK", "#1": "SK"},
            "ExpressionAttributeValues": {":0": s("A"), ":1": s("1")},
            "Limit": 5,
            "ExclusiveStartKey": A1,
            "ScanIndexForward": False,
            **INDEXES,
        },
    ),
    (
        Scan("T", count_only=True, segment=(1, 4), consistent=True),
        "Scan",
        {
            "TableName": "T",
            "Select": "COUNT",
            "Segment": 1,
            "TotalSegments": 4,
            "ConsistentRead": True,
            **INDEXES,
        },
    ),
    (
        BatchGet(
            (
                Get("T", A1, True),
                Get("U", A1, projection=(attribute("a"), attribute("SK"))),
                Get("T", key("A", "2"), True),
            )
        ),
        "BatchGetItem",
        {
            "RequestItems": {
                "T": {"Keys": [A1, key("A", "2")], "ConsistentRead": True},
                "U": {
                    "Keys": [A1],
                    "ProjectionExpression": "#0, #1, #2",
                    "ExpressionAttributeNames": {"#0": "a", "#1": "SK", "#2": "PK"},
                },
            },
            **TOTAL,
        },
    ),
    (
        BatchWrite((Put("T", A1), Delete("U", A1), Put("T", key("A", "2")))),
        "BatchWriteItem",
        {
            "RequestItems": {
                "T": [{"PutRequest": {"Item": A1}}, {"PutRequest": {"Item": key("A", "2")}}],
                "U": [{"DeleteRequest": {"Key": A1}}],
            },
            **INDEXES,
        },
    ),
    (
        TransactGet((Get("T", A1), Get("T", A1, projection=(attribute("a"),)))),
        "TransactGetItems",
        {
            "TransactItems": [
                {"Get": {"TableName": "T", "Key": A1}},
                {"Get": {"TableName": "T", "Key": A1, "ProjectionExpression": "#0", **NAMES}},
            ],
            **TOTAL,
        },
    ),
    (
        TransactWrite((Put("T", A1), Check("T", A1, A_EXISTS), Delete("T", A1), Update("T", A1, ())), "token"),
        "TransactWriteItems",
        {
            "TransactItems": [
                {"Put": {"TableName": "T", "Item": A1}},
                {"ConditionCheck": {"TableName": "T", "Key": A1, **IF_A}},
                {"Delete": {"TableName": "T", "Key": A1}},
                {"Update": {"TableName": "T", "Key": A1}},
            ],
            "ClientRequestToken": "token",
            **INDEXES,
        },
    ),
]


@pytest.mark.parametrize(("request_", "operation", "payload"), PAYLOADS)
def test_payloads(request_: Request, operation: str, payload: dict[str, Any]) -> None:
    found = OPERATIONS[type(request_)]
    assert found.target == f"DynamoDB_20120810.{operation}"
    assert found.payload(request_) == payload


CAPACITY = {
    "TableName": "T",
    "CapacityUnits": 4.0,
    "Table": {"CapacityUnits": 1.0},
    "GlobalSecondaryIndexes": {"G": {"CapacityUnits": 2.0}},
    "LocalSecondaryIndexes": {"L": {"CapacityUnits": 1.0}},
}
ON_INDEX = {
    "TableName": "T",
    "CapacityUnits": 0.5,
    "Table": {"CapacityUnits": 0.0},
    "GlobalSecondaryIndexes": {"G": {"CapacityUnits": 0.5}},
}
N1, N1_SPELLED = {"id": n("1")}, {"id": n("1.0")}

RESPONSES: list[tuple[Request, dict[str, Any], Response]] = [
    (Get("T", A1), {}, ItemResponse(None)),
    (
        Get("T", A1),
        {"Item": A1, "ConsumedCapacity": {"TableName": "T", "CapacityUnits": 0.5}},
        ItemResponse(A1, (Consumed("T", None, 0.5, 0.0),)),
    ),
    (
        Put("T", A1, return_old=True),
        {"Attributes": A1, "ConsumedCapacity": CAPACITY},
        ItemResponse(A1, (Consumed("T", None, 0, 1.0), Consumed("T", "L", 0, 1.0), Consumed("T", "G", 0, 2.0))),
    ),
    (Put("T", A1, return_old=True), {"Attributes": {}}, ItemResponse(None)),
    (
        Query("T", ("PK", s("A")), index="G"),
        {"Items": [A1], "Count": 1, "ScannedCount": 2, "LastEvaluatedKey": A1, "ConsumedCapacity": ON_INDEX},
        PageResponse([A1], 1, 2, A1, (Consumed("T", "G", 0.5, 0.0),)),
    ),
    (Scan("T", count_only=True), {"Count": 3, "ScannedCount": 3}, PageResponse([], 3, 3, None)),
    (
        BatchGet(
            (
                Get("N", N1_SPELLED),
                Get("T", A1, projection=(attribute("a"),)),
                Get("T", key("A", "2"), projection=(attribute("a"),)),
            )
        ),
        {
            "Responses": {"T": [item("A", "1", a=n(1))], "N": [N1]},
            "UnprocessedKeys": {"T": {"Keys": [key("A", "2")]}},
            "ConsumedCapacity": [{"TableName": "T", "CapacityUnits": 1.0}],
        },
        BatchGetResponse(
            [N1, {"a": n(1)}, None],
            (Get("T", key("A", "2"), projection=(attribute("a"),)),),
            (Consumed("T", None, 1.0, 0.0),),
        ),
    ),
    (
        BatchWrite((Put("T", A1), Delete("T", key("A", "2")))),
        {"UnprocessedItems": {"T": [{"DeleteRequest": {"Key": key("A", "2")}}, {"PutRequest": {"Item": A1}}]}},
        WriteResponse((Delete("T", key("A", "2")), Put("T", A1))),
    ),
    (TransactGet((Get("T", A1), Get("T", A1))), {"Responses": [{}, {"Item": A1}]}, BatchGetResponse([None, A1])),
    (
        TransactGet((Get("T", A1, projection=(attribute("a"),)),)),
        {"Responses": [{"Item": {}}]},
        BatchGetResponse([{}]),
    ),
    (
        TransactWrite((Put("T", A1),), "token"),
        {"ConsumedCapacity": [{"TableName": "T", "CapacityUnits": 2.0, "ReadCapacityUnits": 2.0}]},
        WriteResponse((), (Consumed("T", None, 2.0, 0.0),)),
    ),
    (
        TransactWrite((Put("T", A1),)),
        {
            "ConsumedCapacity": [
                {
                    "TableName": "T",
                    "CapacityUnits": 4.0,
                    "WriteCapacityUnits": 4.0,
                    "Table": {"CapacityUnits": 2.0, "WriteCapacityUnits": 2.0},
                    "GlobalSecondaryIndexes": {"G": {"CapacityUnits": 2.0, "WriteCapacityUnits": 2.0}},
                }
            ]
        },
        WriteResponse((), (Consumed("T", None, 0.0, 2.0), Consumed("T", "G", 0.0, 2.0))),
    ),
    (
        TransactWrite((Put("T", A1),)),
        {"ConsumedCapacity": [CAPACITY]},
        WriteResponse((), (Consumed("T", None, 0, 1.0), Consumed("T", "L", 0, 1.0), Consumed("T", "G", 0, 2.0))),
    ),
]


@pytest.mark.parametrize(("request_", "answer", "response"), RESPONSES)
def test_responses(request_: Request, answer: dict[str, Any], response: Response) -> None:
    assert OPERATIONS[type(request_)].response(request_, answer) == response


# --- tables ------------------------------------------------------------------------------------

PROVISIONED = TableDefinition(
    "InvoiceAndBills",
    KeyAttribute("PK"),
    KeyAttribute("SK"),
    (
        IndexDefinition("GSI_1", KeyAttribute("SK"), throughput=Throughput(7, 8)),
        IndexDefinition("GSI_2", KeyAttribute("x", "N"), KeyAttribute("PK"), Projection("KEYS_ONLY")),
    ),
    ttl="until",
    throughput=Throughput(100, 50),
    point_in_time_recovery=True,
    deletion_protection=True,
    tags=(("team", "billing"),),
)


def test_a_provisioned_table() -> None:
    assert creation(PROVISIONED) == {
        "TableName": "InvoiceAndBills",
        "AttributeDefinitions": [
            {"AttributeName": "PK", "AttributeType": "S"},
            {"AttributeName": "SK", "AttributeType": "S"},
            {"AttributeName": "x", "AttributeType": "N"},
        ],
        "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": 100, "WriteCapacityUnits": 50},
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "GSI_1",
                "KeySchema": [{"AttributeName": "SK", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
                "ProvisionedThroughput": {"ReadCapacityUnits": 7, "WriteCapacityUnits": 8},
            },
            {
                "IndexName": "GSI_2",
                "KeySchema": [{"AttributeName": "x", "KeyType": "HASH"}, {"AttributeName": "PK", "KeyType": "RANGE"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
                "ProvisionedThroughput": {"ReadCapacityUnits": 100, "WriteCapacityUnits": 50},
            },
        ],
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        "DeletionProtectionEnabled": True,
        "Tags": [{"Key": "team", "Value": "billing"}],
    }


SEVERAL = replace(
    EDGES,
    indexes=(
        IndexDefinition.over(
            "Two", [KeyAttribute("a"), KeyAttribute("b", "N")], [KeyAttribute("c"), KeyAttribute("SK")]
        ),
        IndexDefinition.over("None", [KeyAttribute("b", "N"), KeyAttribute("a")]),
        *EDGES.indexes,
    ),
)


def test_keys_of_several_attributes() -> None:
    two, none = creation(SEVERAL)["GlobalSecondaryIndexes"][:2]
    assert [(each["AttributeName"], each["KeyType"]) for each in two["KeySchema"]] == [
        ("a", "HASH"), ("b", "HASH"), ("c", "RANGE"), ("SK", "RANGE"),
    ]  # fmt: skip
    assert [(each["AttributeName"], each["KeyType"]) for each in none["KeySchema"]] == [("b", "HASH"), ("a", "HASH")]


@pytest.mark.parametrize("definition", [EDGES, replace(EDGES, stream=False), PROVISIONED, SEVERAL])
def test_descriptions_turn_back(definition: TableDefinition) -> None:
    """What a description says is what was created, but for what descriptions do not say."""
    payload = creation(definition)
    payload["BillingModeSummary"] = {"BillingMode": payload.pop("BillingMode")}
    found = described(payload, definition.ttl)
    indexes = tuple(replace(index, throughput=definition.index_throughput(index)) for index in definition.indexes)
    assert found == replace(definition, indexes=indexes, point_in_time_recovery=False, tags=())
