"""Rules for items, queries, scans, batches and transactions: each by a request that breaks it."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin.units import MAX_ITEM_SIZE, MAX_NESTING
from tests.server.refusals import KEY, changed, invalid

_INVALID = "One or more parameter values were invalid: "
_EMPTY = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
_SEVERAL = (
    "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
)
_NO_NUMBER = "The parameter cannot be converted to a numeric value"
_OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
_UNDERFLOW = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
_DIGITS = "Attempting to store more than 38 significant digits in a Number"
_DEEP = (
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
)
_MIXED = "Can not use both expression and non-expression parameters in the same request: "


def nested(levels: int, kind: str = "L") -> dict[str, Any]:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(levels - 1):
        value = {"L": [value]} if kind == "L" else {"M": {"a": value}}
    return value


VALUES: list[tuple[dict[str, Any] | None, str | None]] = [
    ({}, _EMPTY),
    (None, _EMPTY),
    ({"S": None}, _EMPTY),
    ({"X": "a"}, _EMPTY),
    ({"S": "a", "N": "1"}, _SEVERAL),
    ({"S": "a", "N": "b"}, f"{_NO_NUMBER}: b"),
    ({"M": {"b": {"S": "a", "NULL": False}}}, f"{_INVALID}Null attribute value types must have the value of true"),
    ({"N": ""}, _NO_NUMBER),
    ({"N": "b"}, f"{_NO_NUMBER}: b"),
    ({"N": " 1"}, f"{_NO_NUMBER}:  1"),
    ({"N": "NaN"}, f"{_NO_NUMBER}: NaN"),
    ({"N": "1" * 39}, _DIGITS),
    ({"N": "1." + "1" * 38}, _DIGITS),
    ({"N": "-1" + "0" * 126}, _OVERFLOW),
    ({"N": "1e126"}, _OVERFLOW),
    ({"N": "1e-131"}, _UNDERFLOW),
    ({"N": "9.99e125"}, None),
    ({"N": "-1e-130"}, None),
    ({"NULL": False}, f"{_INVALID}Null attribute value types must have the value of true"),
    ({"NULL": "no"}, f"{_INVALID}Null attribute value types must have the value of true"),
    ({"SS": []}, f"{_INVALID}An string set  may not be empty"),
    ({"NS": []}, f"{_INVALID}An number set  may not be empty"),
    ({"BS": []}, f"{_INVALID}Binary sets should not be empty"),
    ({"SS": ["a", "a"]}, f"{_INVALID}Input collection [a, a] contains duplicates."),
    ({"SS": ["a", "b", "a"]}, f"{_INVALID}Input collection [a, b, a] contains duplicates."),
    ({"BS": ["Yg==", "Yg=="]}, f"{_INVALID}Input collection [Yg==, Yg==]of type BS contains duplicates."),
    ({"NS": ["1", "2", "1.0"]}, "Input collection contains duplicates"),
    ({"NS": ["1", ""]}, _NO_NUMBER),
    ({"NS": ["1", "b", ""]}, f"{_NO_NUMBER}: b"),
    ({"NS": [None]}, _NO_NUMBER),
    ({"SS": ["a", None]}, f"{_INVALID}An string set  may not have a null string as a member"),
    ({"L": [{"S": "a"}, {}]}, _EMPTY),
    ({"L": [None]}, _EMPTY),
    ({"M": {"b": None}}, _EMPTY),
    ({"M": {"b": {"L": [{"SS": []}]}}}, f"{_INVALID}An string set  may not be empty"),
    (nested(MAX_NESTING), None),
    (nested(MAX_NESTING + 1), _DEEP),
    (nested(400), _DEEP),
    (nested(MAX_NESTING, "M"), None),
    (nested(MAX_NESTING + 1, "M"), _DEEP),
]


@pytest.mark.parametrize(("value", "words"), VALUES)
@pytest.mark.parametrize(
    ("operation", "place"),
    [
        ("GetItem", "Key"),
        ("PutItem", "Item"),
        ("DeleteItem", "Key"),
        ("UpdateItem", "Key"),
        ("BatchGetItem", ""),
        ("BatchWriteItem", "PutRequest Item"),
        ("BatchWriteItem", "DeleteRequest Key"),
        ("TransactWriteItems", "Put Item"),
        ("TransactGetItems", "Get Key"),
    ],
)
def test_values(operation: str, place: str, value: dict[str, Any] | None, words: str | None) -> None:
    given = {"a": {"S": "x"}, "b": value}
    match operation:
        case "BatchGetItem":
            request: dict[str, Any] = {"RequestItems": {"abc": {"Keys": [given]}}}
        case "BatchWriteItem":
            kind, name = place.split()
            request = {"RequestItems": {"abc": [{kind: {name: given}}]}}
        case "TransactWriteItems" | "TransactGetItems":
            kind, name = place.split()
            request = {"TransactItems": [{kind: {"TableName": "abc", name: given}}]}
        case _:
            request = changed(operation, **{place: given})
    assert invalid(operation, request) == words


LARGE = {**KEY, "b": {"S": "x" * (MAX_ITEM_SIZE - 3)}}
TOO_LARGE = {**KEY, "b": {"S": "x" * (MAX_ITEM_SIZE - 2)}}
SIZE = "Item size has exceeded the maximum allowed size"
LONG_NAME = "n" * 65_535
LARGE_NAME = "Attribute name is too large, must be less than 65536 bytes"
ONE_OF_FOUR = "TransactItems can only contain one of Check, Put, Update or Delete"
PUT = {"TableName": "abc", "Item": KEY}
GET = {"TableName": "abc", "Key": KEY}
NAMES = {"#a": "a"}

RULES: list[tuple[str, dict[str, Any], str | None]] = [
    # --- one item ---
    ("GetItem", {"AttributesToGet": ["a", "b", "a"]}, f"{_INVALID}Duplicate value in attribute name: a"),
    (
        "GetItem",
        {"AttributesToGet": ["a"], "ProjectionExpression": "b"},
        f"{_MIXED}Non-expression parameters: {{AttributesToGet}} Expression parameters: {{ProjectionExpression}}",
    ),
    (
        "GetItem",
        {"ExpressionAttributeNames": NAMES},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
    ("PutItem", {"ReturnValues": "ALL_NEW"}, "ReturnValues can only be ALL_OLD or NONE"),
    ("PutItem", {"ReturnValues": "ALL_OLD"}, None),
    ("PutItem", {"Item": LARGE}, None),
    ("PutItem", {"Item": TOO_LARGE}, SIZE),
    ("PutItem", {"Item": {**KEY, LONG_NAME: {"S": "x"}}}, None),
    ("PutItem", {"Item": {**KEY, f"{LONG_NAME}x": {"S": "x"}}}, LARGE_NAME),
    ("PutItem", {"Item": {**KEY, "b": {"L": [{"M": {f"{LONG_NAME}x": {"S": "x"}}}]}}}, LARGE_NAME),
    ("PutItem", {"Item": {**KEY, "": {"S": "x"}}}, "Empty attribute name"),
    (
        "UpdateItem",
        {"AttributeUpdates": {f"{LONG_NAME}x": {"Action": "DELETE"}}},
        f"1 validation error detected: Value '{{{LONG_NAME}x=AttributeValueUpdate(action=DELETE, value=null)}}' at"
        " 'attributeUpdates' failed to satisfy constraint: Map keys must satisfy constraint:"
        " [Member must have length less than or equal to 65535]",
    ),
    (
        "PutItem",
        {"Expected": {"a": {"Exists": True}}},
        f"{_INVALID}Value must be provided when Exists is true for Attribute: a",
    ),
    (
        "PutItem",
        {"Expected": {}, "ConditionExpression": "a = :a"},
        f"{_MIXED}Non-expression parameters: {{Expected}} Expression parameters: {{ConditionExpression}}",
    ),
    *(
        (operation, {"Expected": {"a": {}}}, f"{_INVALID}Value must be provided when Exists is null for Attribute: a")
        for operation in ("PutItem", "UpdateItem", "DeleteItem")
    ),
    ("DeleteItem", {"ReturnValues": "UPDATED_OLD"}, "ReturnValues can only be ALL_OLD or NONE"),
    ("UpdateItem", {"ReturnValues": "UPDATED_NEW"}, None),
    (
        "UpdateItem",
        {"AttributeUpdates": {"a": {"Action": "ADD", "Value": {"S": "x"}}}},
        f"{_INVALID}ADD action is not supported for the type S",
    ),
    (
        "UpdateItem",
        {"AttributeUpdates": {"a": {"Action": "PUT"}}},
        f"{_INVALID}Only DELETE action is allowed when no attribute value is specified",
    ),
    # --- queries and scans ---
    (
        "Query",
        {"KeyConditionExpression": None, "ExpressionAttributeValues": None},
        "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
    ),
    (
        "Query",
        {"QueryFilter": {"a": {"ComparisonOperator": "EQ"}}},
        f"{_MIXED}Non-expression parameters: {{QueryFilter}} Expression parameters: {{KeyConditionExpression}}",
    ),
    (
        "Scan",
        {"ScanFilter": {"a": {"ComparisonOperator": "EQ"}}},
        f"{_INVALID}Invalid number of argument(s) for the EQ ComparisonOperator",
    ),
    ("Scan", {"AttributesToGet": ["a", "a"]}, f"{_INVALID}Duplicate value in attribute name: a"),
    ("Scan", {"ExclusiveStartKey": {"a": {}}}, f"The provided starting key is invalid: {_EMPTY}"),
    ("Query", {"ExclusiveStartKey": {"a": {"S": "a", "N": "1"}}}, f"The provided starting key is invalid: {_SEVERAL}"),
    ("Query", {"ExclusiveStartKey": {"a": {"N": "b"}}}, f"{_NO_NUMBER}: b"),
    ("Query", {"ExclusiveStartKey": {"a": {"N": "1e126"}}}, _OVERFLOW),
    (
        "Scan",
        {"ExclusiveStartKey": {"a": {"SS": []}}},
        f"The provided starting key is invalid: {_INVALID}An string set  may not be empty",
    ),
    ("Scan", {"ExclusiveStartKey": {"a": {"NS": []}}}, f"{_INVALID}An number set  may not be empty"),
    (
        "Scan",
        {"Segment": 0},
        "The TotalSegments parameter is required but was not present in the request when Segment parameter is present",
    ),
    (
        "Scan",
        {"TotalSegments": 1},
        "The Segment parameter is required but was not present in the request when parameter TotalSegments is present",
    ),
    (
        "Scan",
        {"Segment": 4, "TotalSegments": 4},
        "The Segment parameter is zero-based and must be less than parameter TotalSegments:"
        " Segment: 4 is not less than TotalSegments: 4",
    ),
    ("Scan", {"Segment": 3, "TotalSegments": 4}, None),
    (
        "Scan",
        {"Select": "SPECIFIC_ATTRIBUTES"},
        "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES",
    ),
    ("Scan", {"Select": "SPECIFIC_ATTRIBUTES", "AttributesToGet": ["a"]}, None),
    (
        "Scan",
        {"Select": "COUNT", "AttributesToGet": ["a"]},
        "Cannot specify the AttributesToGet when choosing to get only the Count",
    ),
    (
        "Query",
        {"Select": "SPECIFIC_ATTRIBUTES"},
        "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES",
    ),
    (
        "Query",
        {"Select": "ALL_ATTRIBUTES", "ProjectionExpression": "a"},
        "Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES",
    ),
    (
        "Query",
        {"Select": "ALL_PROJECTED_ATTRIBUTES"},
        "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
    ),
    ("Query", {"Select": "ALL_PROJECTED_ATTRIBUTES", "IndexName": "idx"}, None),
    # --- batches ---
    (
        "BatchGetItem",
        {"RequestItems": {"abc": {"Keys": [KEY, {"a": {"S": "y"}}, KEY]}}},
        "Provided list of item keys contains duplicates",
    ),
    (
        "BatchGetItem",
        {"RequestItems": {"abc": {"Keys": [{"a": {"N": "1"}}, {"a": {"N": "1.0"}}]}}},
        "Provided list of item keys contains duplicates",
    ),
    (
        "BatchGetItem",
        {"RequestItems": {"abc": {"Keys": [{"a": {"S": "1"}, "b": {"S": "2"}}, {"b": {"S": "2"}, "a": {"S": "1"}}]}}},
        "Provided list of item keys contains duplicates",
    ),
    ("BatchGetItem", {"RequestItems": {"abc": {"Keys": [KEY]}, "def": {"Keys": [KEY]}}}, None),
    (
        "BatchGetItem",
        {"RequestItems": {name: {"Keys": [{"a": {"N": str(n)}} for n in range(51)]} for name in ("abc", "def")}},
        "Too many items requested for the BatchGetItem call",
    ),
    (
        "BatchGetItem",
        {"RequestItems": {name: {"Keys": [{"a": {"N": str(n)}} for n in range(50)]} for name in ("abc", "def")}},
        None,
    ),
    (
        "BatchGetItem",
        {"RequestItems": {"abc": {"Keys": [KEY], "AttributesToGet": ["a", "a"]}}},
        f"{_INVALID}Duplicate value in attribute name: a",
    ),
    (
        "BatchGetItem",
        {"RequestItems": {"abc": {"Keys": [KEY], "ExpressionAttributeNames": NAMES}}},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
    ("BatchWriteItem", {"RequestItems": {"abc": [{}]}}, _SEVERAL),
    ("BatchWriteItem", {"RequestItems": {"abc": [{"PutRequest": {"Item": KEY}}, {}]}}, _SEVERAL),
    (
        "BatchWriteItem",
        {"RequestItems": {"abc": [{"PutRequest": {"Item": KEY}, "DeleteRequest": {"Key": KEY}}]}},
        _SEVERAL,
    ),
    ("BatchWriteItem", {"RequestItems": {"abc": [{"PutRequest": {"Item": TOO_LARGE}}]}}, SIZE),
    (
        "BatchWriteItem",
        {"RequestItems": {name: [{"PutRequest": {"Item": KEY}}] * 13 for name in ("abc", "def")}},
        "Too many items requested for the BatchWriteItem call",
    ),
    (
        "BatchWriteItem",
        {"RequestItems": {"abc": [{"PutRequest": {"Item": KEY}}] * 12, "def": [{"DeleteRequest": {"Key": KEY}}] * 13}},
        None,
    ),
    # --- transactions ---
    (
        "TransactWriteItems",
        {"TransactItems": [{}]},
        "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
    ),
    ("TransactWriteItems", {"TransactItems": [{"Put": PUT, "Delete": GET}]}, ONE_OF_FOUR),
    ("TransactWriteItems", {"TransactItems": [{"Put": {**PUT, "Item": TOO_LARGE}}]}, SIZE),
    (
        "TransactWriteItems",
        {"TransactItems": [{"Delete": {**GET, "ExpressionAttributeNames": NAMES}}]},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
    (
        "TransactWriteItems",
        {"TransactItems": [{"Put": {**PUT, "ExpressionAttributeValues": {":a": {"S": "x"}}}}]},
        "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null",
    ),
    (
        "TransactGetItems",
        {"TransactItems": [{"Get": {**GET, "ExpressionAttributeNames": NAMES}}]},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
]


@pytest.mark.parametrize(("operation", "members", "words"), RULES)
def test_rules(operation: str, members: dict[str, Any], words: str | None) -> None:
    assert invalid(operation, changed(operation, **members)) == words


# Requests with two faults, and the words for the one that is reported.
ORDER: list[tuple[str, dict[str, Any], str]] = [
    ("GetItem", {"ExpressionAttributeNames": NAMES, "Key": {"a": {}}}, "ExpressionAttributeNames can only"),
    ("GetItem", {"AttributesToGet": ["a", "a"], "Key": {"a": {}}}, _EMPTY),
    ("PutItem", {"Item": {"a": {}}, "ReturnValues": "ALL_NEW"}, _EMPTY),
    ("PutItem", {"Item": TOO_LARGE, "ReturnValues": "ALL_NEW"}, "ReturnValues can only"),
    ("PutItem", {"Item": TOO_LARGE, "Expected": {"a": {}}}, SIZE),
    ("PutItem", {"ReturnValues": "x", "Item": {"a": {}}}, "1 validation error detected: Value 'x' at 'returnValues'"),
    ("UpdateItem", {"AttributeUpdates": {"a": {}}, "Key": {"a": {}}}, _EMPTY),
    ("UpdateItem", {"AttributeUpdates": {"a": {}}, "Expected": {"a": {}}}, f"{_INVALID}Only DELETE action"),
    (
        "Scan",
        {"AttributesToGet": ["a", "a"], "ScanFilter": {"a": {"ComparisonOperator": "EQ"}}},
        f"{_INVALID}Duplicate value in attribute name",
    ),
    ("Scan", {"ExclusiveStartKey": {"a": {}}, "Segment": 1}, "The provided starting key is invalid"),
    (
        "Query",
        {
            "KeyConditionExpression": None,
            "ExpressionAttributeValues": None,
            "AttributesToGet": ["a", "a"],
            "QueryFilter": {"a": {"ComparisonOperator": "EQ"}},
        },
        f"{_INVALID}Invalid number of argument(s)",
    ),
    (
        "Query",
        {"KeyConditionExpression": None, "ExpressionAttributeValues": None, "ExclusiveStartKey": {"a": {}}},
        "The provided starting key is invalid",
    ),
    # The expressions of one part are read before the values of the next, and of its own.
    (
        "BatchGetItem",
        {
            "RequestItems": {
                "abc": {"Keys": [KEY], "ProjectionExpression": "a,"},
                "def": {"Keys": [{"a": {}}]},
            }
        },
        'Invalid ProjectionExpression: Syntax error; token: "<EOF>"',
    ),
    (
        "BatchGetItem",
        {
            "RequestItems": {
                "abc": {"Keys": [{"a": {}}]},
                "def": {"Keys": [KEY], "ProjectionExpression": "a,"},
            }
        },
        _EMPTY,
    ),
    (
        "TransactWriteItems",
        {"TransactItems": [{"Put": {**PUT, "Item": {"a": {}}, "ConditionExpression": "a ="}}]},
        'Invalid ConditionExpression: Syntax error; token: "<EOF>"',
    ),
    (
        "TransactWriteItems",
        {"TransactItems": [{"Put": {**PUT, "Item": {"a": {}}}}, {"Put": {**PUT, "ConditionExpression": "a ="}}]},
        _EMPTY,
    ),
    (
        "TransactWriteItems",
        {"TransactItems": [{"Put": {**PUT, "Item": {"a": {}}}}, {}]},
        "Invalid Request: TransactWriteRequest",
    ),
    (
        "TransactGetItems",
        {"TransactItems": [{"Get": {**GET, "ProjectionExpression": ""}}, {"Get": {**GET, "Key": {"a": {}}}}]},
        "Invalid ProjectionExpression: The expression can not be empty;",
    ),
]


@pytest.mark.parametrize(("operation", "members", "words"), ORDER)
def test_the_fault_that_is_reported_of_two(operation: str, members: dict[str, Any], words: str) -> None:
    assert (invalid(operation, changed(operation, **members)) or "").startswith(words)
