"""Operations on items, as a client sees them: each row a request, and exactly what is answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from adjoin.errors import AdjoinError
from adjoin.server.operations import OPERATIONS
from adjoin.server.operations.refusals import refusal
from adjoin.stores.sqlite import SQLiteStore
from tests.stores.examples import n, s

Request = dict[str, Any]

_INVALID = "One or more parameter values were invalid: "
_EMPTY_KEY = "The AttributeValue for a key attribute cannot contain an empty"
_START = "The provided starting key is invalid"
_MISMATCH = "The provided key element does not match the schema"
_OF_INDEX = "One or more parameter values are not valid. A value specified for a secondary index key is not supported. "
_BY_UPDATE = (
    "One or more parameter values are not valid. The update expression attempted to update a secondary index key to a"
    " value that is not supported. "
)


def _schema(*names: str) -> list[Request]:
    return [{"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"), strict=False)]


def _index(name: str, keys: tuple[str, ...], kind: str, *attributes: str) -> Request:
    projection = {"ProjectionType": kind, **({"NonKeyAttributes": list(attributes)} if attributes else {})}
    return {"IndexName": name, "KeySchema": _schema(*keys), "Projection": projection}


TABLES: list[Request] = [
    {
        "TableName": "Plain",
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": _schema("id"),
        "BillingMode": "PAY_PER_REQUEST",
    },
    {
        "TableName": "Indexed",
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in (("id", "S"), ("r", "S"), ("c", "S"), ("d", "N"), ("e", "B"))
        ],
        "KeySchema": _schema("id", "r"),
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": [
            _index("ofc", ("c",), "KEYS_ONLY"),
            _index("ofd", ("d", "c"), "ALL"),
            _index("ofe", ("e",), "ALL"),
        ],
        "LocalSecondaryIndexes": [_index("loc", ("id", "c"), "KEYS_ONLY"), _index("inc", ("id", "c"), "INCLUDE", "f")],
    },
]
ITEM = {"id": s("a"), "n": n(5), "t": s("text"), "l": {"L": [n(1), s("two")]}, "m": {"M": {"x": n(1)}}}
LARGE = s("g" * 5000)


class Client:
    """Sends requests to a store as the server does, and tells what it would answer."""

    def __init__(self, store: SQLiteStore) -> None:
        self._store = store

    def __call__(self, operation: str, **parameters: Any) -> Any:
        """The answer, or the words of a refusal."""
        request: Request = {}
        try:
            performed = OPERATIONS[operation]
            request = performed.validated(json.dumps(parameters).encode())
            (response,) = self._store.execute([performed.request(request, self._store)])
            return performed.answer(request, response, self._store)
        except AdjoinError as error:
            return refusal(error, request).message


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    store = SQLiteStore(":memory:")
    client = Client(store)
    for table in TABLES:
        client("CreateTable", **table)
    client("PutItem", TableName="Plain", Item=ITEM)
    for place in range(3):
        item = {"id": s("a"), "r": s(f"r{place}"), "c": s(f"c{place}"), "d": n(place), "f": s("f"), "g": LARGE}
        client("PutItem", TableName="Indexed", Item=item)
    yield client
    store.close()


# --- indexes: what they hold, and what is fetched from the table ----------------------------------

OF_A = {"KeyConditionExpression": "id = :a", "ExpressionAttributeValues": {":a": s("a")}}


def _units(table: float, index: float, name: str = "loc", kind: str = "Local") -> Request:
    return {
        "TableName": "Indexed",
        "CapacityUnits": table + index,
        "Table": {"CapacityUnits": table},
        f"{kind}SecondaryIndexes": {name: {"CapacityUnits": index}},
    }


def test_a_local_index_answers_whole_items(client: Client) -> None:
    """Each is fetched from the table: 5 KB are two units, half of that if they need not be consistent."""
    for consistent, times in ((False, 0.5), (True, 1.0)):
        answer = client(
            "Query",
            TableName="Indexed",
            IndexName="loc",
            Select="ALL_ATTRIBUTES",
            ConsistentRead=consistent,
            ReturnConsumedCapacity="INDEXES",
            **OF_A,
        )
        assert [item["g"] for item in answer["Items"]] == [LARGE] * 3
        assert answer["ConsumedCapacity"] == _units(6.0 * times, 1.0 * times)


def test_a_local_index_answers_what_it_holds(client: Client) -> None:
    for select in (None, "ALL_PROJECTED_ATTRIBUTES"):
        more = {} if select is None else {"Select": select}
        answer = client("Query", TableName="Indexed", IndexName="inc", ReturnConsumedCapacity="INDEXES", **more, **OF_A)
        assert answer["Items"][0] == {"id": s("a"), "r": s("r0"), "c": s("c0"), "f": s("f")}
        assert answer["ConsumedCapacity"] == _units(0.0, 0.5, "inc")


def test_a_scan_of_a_local_index_answers_whole_items(client: Client) -> None:
    answer = client("Scan", TableName="Indexed", IndexName="loc", Select="ALL_ATTRIBUTES")
    assert answer["Items"][0]["g"] == LARGE


def test_counting_shows_no_items(client: Client) -> None:
    assert client("Query", TableName="Indexed", Select="COUNT", **OF_A) == {"Count": 3, "ScannedCount": 3}


READS: list[tuple[str, Request, str]] = [
    (
        "Query",
        {
            "IndexName": "ofc",
            "Select": "ALL_ATTRIBUTES",
            "KeyConditionExpression": "c = :c",
            "ExpressionAttributeValues": {":c": s("c0")},
        },
        f"{_INVALID}Select type ALL_ATTRIBUTES is not supported for global secondary index ofc because its projection"
        " type is not ALL",
    ),
    (
        "Scan",
        {"IndexName": "ofc", "Select": "ALL_ATTRIBUTES"},
        f"{_INVALID}Select type ALL_ATTRIBUTES is not supported for global secondary index ofc because its projection"
        " type is not ALL",
    ),
    (
        "Scan",
        {"FilterExpression": "a" * 4097},
        "Invalid FilterExpression: Expression size has exceeded the maximum allowed size; expression size: 4097",
    ),
    ("Scan", {"IndexName": "ofx"}, "The table does not have the specified index: ofx"),
    (
        "Query",
        {
            "IndexName": "ofc",
            "KeyConditionExpression": "c = :c",
            "ExpressionAttributeValues": {":c": s("")},
        },
        f"{_OF_INDEX}{_EMPTY_KEY} string value. IndexName: ofc, IndexKey: c",
    ),
    (
        "Query",
        {"KeyConditionExpression": "id = :c", "ExpressionAttributeValues": {":c": s("")}},
        f"One or more parameter values are not valid. {_EMPTY_KEY} string value. Key: id",
    ),
    (
        "Query",
        {"FilterExpression": "r = :a", **OF_A},
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: r",
    ),
    (
        "Query",
        {
            "KeyConditions": {"id": {"ComparisonOperator": "EQ", "AttributeValueList": [s("a")]}},
            "QueryFilter": {"r": {"ComparisonOperator": "NULL"}},
        },
        "QueryFilter can only contain non-primary key attributes: Primary key attribute: r",
    ),
    (
        "Query",
        {"FilterExpression": "c.x = :a", **OF_A},
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: IndexKey: c",
    ),
    (
        "Scan",
        {"ProjectionExpression": "r[0]"},
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: r",
    ),
    (
        "GetItem",
        {"Key": {"id": s("a"), "r": s("r0")}, "ProjectionExpression": "id.x"},
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: id",
    ),
    # --- where a page goes on ---
    ("Query", {"ExclusiveStartKey": {"id": s("a")}, **OF_A}, _START),
    ("Query", {"ExclusiveStartKey": {"id": s("a"), "x": s("a")}, **OF_A}, _START),
    ("Query", {"ExclusiveStartKey": {"id": s("a"), "r": n(1)}, **OF_A}, _MISMATCH),
    (
        "Query",
        {"ExclusiveStartKey": {"id": s("a"), "r": s("")}, **OF_A},
        f"One or more parameter values are not valid. {_EMPTY_KEY} string value. Key: r",
    ),
    ("Query", {"IndexName": "loc", "ExclusiveStartKey": {"id": s("a"), "r": s("r0")}, **OF_A}, _START),
    (
        "Query",
        {"IndexName": "loc", "ExclusiveStartKey": {"id": s("a"), "r": n(1), "c": s("x")}, **OF_A},
        f"{_START}: {_MISMATCH}",
    ),
    (
        "Query",
        {"ExclusiveStartKey": {"id": s("b"), "r": s("r0")}, **OF_A},
        "The provided starting key is outside query boundaries based on provided conditions",
    ),
    (
        "Query",
        {
            "ExclusiveStartKey": {"id": s("a"), "r": s("r0")},
            "KeyConditionExpression": "id = :a AND r > :r",
            "ExpressionAttributeValues": {":a": s("a"), ":r": s("r1")},
        },
        "The provided starting key does not match the range key predicate",
    ),
    (
        "Query",
        {
            "ExclusiveStartKey": {"id": s("b"), "r": s("r2")},
            "KeyConditionExpression": "id = :a AND r > :r",
            "ExpressionAttributeValues": {":a": s("a"), ":r": s("r1")},
        },
        "The query can return at most one row and cannot be restarted",
    ),
    ("Scan", {"ExclusiveStartKey": {"id": s("a")}}, f"{_START}: {_MISMATCH}"),
    ("Scan", {"ExclusiveStartKey": {"id": s("a"), "r": n(1)}}, f"{_START}: {_MISMATCH}"),
    ("Scan", {"IndexName": "ofc", "ExclusiveStartKey": {"id": s("a"), "r": s("r0")}}, _START),
    ("Scan", {"IndexName": "ofc", "ExclusiveStartKey": {"id": s("a"), "r": s("r0"), "c": n(1)}}, _MISMATCH),
    (
        "Scan",
        {"ExclusiveStartKey": {"id": s("a"), "r": s("r0")}, "Segment": 0, "TotalSegments": 1000},
        f"{_START}: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment."
        " TotalSegments: 1000 Segment: 0",
    ),
]


@pytest.mark.parametrize(("operation", "parameters", "words"), READS)
def test_reads_that_are_refused(client: Client, operation: str, parameters: Request, words: str) -> None:
    assert client(operation, TableName="Indexed", **parameters) == words


@pytest.mark.parametrize(("operation", "parameters"), [("GetItem", {"Key": {"id": s("a")}}), ("Scan", {})])
def test_a_key_may_be_read_beside_a_part_of_a_value(client: Client, operation: str, parameters: Request) -> None:
    answer = client(operation, TableName="Plain", ProjectionExpression="id, m.x", **parameters)
    item = {"id": s("a"), "m": {"M": {"x": n(1)}}}
    assert answer.get("Item", answer.get("Items")) in (item, [item])


# --- writes ---------------------------------------------------------------------------------------

KEY = {"id": s("k"), "r": s("k")}
LONG = "x" * 2049

WRITES: list[tuple[str, Request, str]] = [
    ("GetItem", {"Key": {"id": s("a")}}, _MISMATCH),
    ("GetItem", {"Key": {"id": s("a"), "r": s("")}}, f"One or more parameter values are not valid. {_EMPTY_KEY} string"
     " value. Key: r"),
    ("DeleteItem", {"Key": {"id": s(LONG), "r": s("a")}},
     f"{_INVALID}Size of hashkey has exceeded the maximum size limit of2048 bytes"),
    ("PutItem", {"Item": {"id": s("a")}}, f"{_INVALID}Missing the key r in the item"),
    ("PutItem", {"Item": {"id": n(1), "r": s("a")}}, f"{_INVALID}Type mismatch for key id expected: S actual: N"),
    ("PutItem", {"Item": {**KEY, "d": s("x")}},
     f"{_INVALID}Type mismatch for Index Key d Expected: N Actual: S IndexName: ofd"),
    ("PutItem", {"Item": {**KEY, "c": s("")}}, f"{_OF_INDEX}{_EMPTY_KEY} string value. IndexName: ofc, IndexKey: c"),
    ("PutItem", {"Item": {**KEY, "e": {"B": ""}}},
     f"{_OF_INDEX}{_EMPTY_KEY} binary value. IndexName: ofe, IndexKey: e"),
    ("PutItem", {"Item": {**KEY, "x": {"SS": []}}}, f"{_INVALID}An string set  may not be empty"),
    ("PutItem", {"Item": {**KEY, "x": {"N": ""}}},
     "The parameter cannot be converted to a numeric value"),
    ("PutItem", {"Item": KEY, "ConditionExpression": "a ="},
     'Invalid ConditionExpression: Syntax error; token: "<EOF>", near: "="'),
    ("PutItem", {"Item": KEY, "ConditionExpression": "a = b", "ExpressionAttributeNames": {"#c": "c"}},
     "Value provided in ExpressionAttributeNames unused in expressions: keys: {#c}"),
    ("DeleteItem", {"Key": KEY, "ConditionExpression": ""},
     "Invalid ConditionExpression: The expression can not be empty;"),
    ("UpdateItem", {"Key": KEY, "UpdateExpression": "SET a = :b"},
     "Invalid UpdateExpression: An expression attribute value used in expression is not defined;"
     " attribute value: :b"),
    ("UpdateItem", {"Key": KEY, "UpdateExpression": "x" * 4097},
     "Invalid UpdateExpression: Expression size has exceeded the maximum allowed size; expression size: 4097"),
    ("UpdateItem",
     {"Key": KEY, "UpdateExpression": "SET a = :b", "ExpressionAttributeValues": {":b": {"NULL": False}}},
     f"ExpressionAttributeValues contains invalid value: {_INVALID}Null attribute value types must have the value of"
     " true for key :b"),
    ("UpdateItem", {"Key": KEY, "UpdateExpression": "SET a = :b", "ExpressionAttributeValues": {":b": {}}},
     "ExpressionAttributeValues contains invalid value: Supplied AttributeValue is empty, must contain exactly"
     " one of the supported datatypes for key :b"),
    ("UpdateItem", {"Key": KEY, "UpdateExpression": "REMOVE #n", "ExpressionAttributeNames": {"#n": "n" * 65_536}},
     "ExpressionAttributeNames contains invalid value: Attribute name is too large, must be less than 65536 bytes"
     " for key #n"),
    ("UpdateItem", {"Key": KEY, "UpdateExpression": "REMOVE id"},
     f"{_INVALID}Cannot update attribute id. This attribute is part of the key"),
    ("UpdateItem", {"Key": KEY, "UpdateExpression": "REMOVE c.x"},
     "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: IndexKey: c"),
    ("UpdateItem",
     {"Key": KEY, "UpdateExpression": "SET c = :c", "ExpressionAttributeValues": {":c": n(1)},
      "ConditionExpression": "attribute_exists(id)"},
     f"{_INVALID}Type mismatch for Index Key c Expected: S Actual: N IndexName: ofc"),
    ("UpdateItem", {"Key": KEY, "UpdateExpression": "SET c = :c", "ExpressionAttributeValues": {":c": s("")}},
     f"{_BY_UPDATE}{_EMPTY_KEY} string value."),
    ("UpdateItem",
     {"Key": KEY, "UpdateExpression": "SET c = if_not_exists(x, :c)", "ExpressionAttributeValues": {":c": n(1)}},
     f"{_INVALID}Type mismatch for Index Key c Expected: S Actual: N IndexName: ofc"),
    ("UpdateItem", {"Key": KEY, "UpdateExpression": "REMOVE x.y"},
     "The document path provided in the update expression is invalid for update"),
    ("UpdateItem", {"Key": KEY, "UpdateExpression": "REMOVE x[0]"},
     "The document path provided in the update expression is invalid for update"),
    ("UpdateItem", {"Key": {"id": s("a"), "r": s("r0")}, "UpdateExpression": "SET c = d"},
     "The update expression attempted to update the secondary index key to unsupported type"),
    ("UpdateItem",
     {"Key": {"id": s("a"), "r": s("r0")},
      "UpdateExpression": "SET g = :g", "ExpressionAttributeValues": {":g": s("x" * 409600)}},
     "Item size to update has exceeded the maximum allowed size"),
    ("UpdateItem",
     {"Key": {"id": s("a"), "r": s("r0")}, "AttributeUpdates": {"f": {"Action": "ADD", "Value": n(1)}}},
     "Type mismatch for attribute to update"),
    ("UpdateItem",
     {"Key": {"id": s("a"), "r": s("r0")}, "UpdateExpression": "ADD f :f", "ExpressionAttributeValues": {":f": n(1)}},
     "An operand in the update expression has an incorrect data type"),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "parameters", "words"), WRITES)
def test_writes_that_are_refused(client: Client, operation: str, parameters: Request, words: str) -> None:
    assert client(operation, TableName="Indexed", **parameters) == words


def test_a_query_of_one_item_at_most_does_not_go_on(client: Client) -> None:
    answer = client(
        "Query",
        TableName="Plain",
        Limit=1,
        KeyConditionExpression="id = :a",
        ExpressionAttributeValues={":a": s("a")},
    )
    assert answer == {"Items": [ITEM], "Count": 1, "ScannedCount": 1}


@pytest.mark.parametrize("table", ["Plain", "Indexed"])
def test_a_table_with_a_local_index_tells_of_the_partition_that_was_written(client: Client, table: str) -> None:
    key = {"id": s("metrics")} if table == "Plain" else {"id": s("metrics"), "r": s("r")}
    asked = {"TableName": table, "ReturnItemCollectionMetrics": "SIZE"}
    told = {"ItemCollectionMetrics": {"ItemCollectionKey": {"id": s("metrics")}, "SizeEstimateRangeGB": [0.0, 1.0]}}
    for operation, more in (("PutItem", {"Item": key}), ("UpdateItem", {"Key": key}), ("DeleteItem", {"Key": key})):
        assert client(operation, **asked, **more) == (told if table == "Indexed" else {})
        if operation != "DeleteItem":
            assert client(operation, TableName=table, **more) == {}


def test_attributes_to_get_are_those_that_come(client: Client) -> None:
    """The parameter from before there were expressions."""
    some, asked = {"id": s("a"), "n": n(5)}, ["n", "id", "missing"]
    assert client("GetItem", TableName="Plain", Key={"id": s("a")}, AttributesToGet=asked) == {"Item": some}
    batch = {"Plain": {"Keys": [{"id": s("a")}], "AttributesToGet": asked}}
    assert client("BatchGetItem", RequestItems=batch)["Responses"] == {"Plain": [some]}
    conditions = {"id": {"ComparisonOperator": "EQ", "AttributeValueList": [s("a")]}}
    for operation, more in (("Scan", {"ScanFilter": conditions}), ("Query", {"KeyConditions": conditions})):
        assert client(operation, TableName="Plain", AttributesToGet=asked, **more)["Items"] == [some]


# --- what updates return ----------------------------------------------------------------------------

UPDATED: list[tuple[str, str, Request | None, Request | None]] = [
    ("SET m.x = :n", "m.x alone", {"m": {"M": {"x": n(1)}}}, {"m": {"M": {"x": n(7)}}}),
    ("SET m.y = :n", "nothing before", None, {"m": {"M": {"y": n(7)}}}),
    ("SET l[0] = :n", "the element", {"l": {"L": [n(1)]}}, {"l": {"L": [n(7)]}}),
    ("ADD n :n", "a number", {"n": n(5)}, {"n": n(12)}),
    ("SET a = :n", "a new attribute", None, {"a": n(7)}),
]


@pytest.mark.parametrize(("expression", "name", "old", "new"), UPDATED, ids=[row[1] for row in UPDATED])
def test_what_was_updated(client: Client, expression: str, name: str, old: Request | None, new: Request | None) -> None:
    for returned, attributes in (("UPDATED_OLD", old), ("UPDATED_NEW", new)):
        client("PutItem", TableName="Plain", Item={**ITEM, "id": s("u")})
        answer = client(
            "UpdateItem",
            TableName="Plain",
            Key={"id": s("u")},
            UpdateExpression=expression,
            ExpressionAttributeValues={":n": n(7)},
            ReturnValues=returned,
        )
        assert answer == ({} if attributes is None else {"Attributes": attributes})


def test_what_was_removed_is_not_new(client: Client) -> None:
    client("PutItem", TableName="Plain", Item={**ITEM, "id": s("u")})
    asked = {"TableName": "Plain", "Key": {"id": s("u")}, "UpdateExpression": "REMOVE t"}
    assert client("UpdateItem", ReturnValues="UPDATED_NEW", **asked) == {}
