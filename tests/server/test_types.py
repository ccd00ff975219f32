"""Values of wrong types, as the service's deserialiser reports them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.refusals import ARN, KEY, RIGHT, changed, refusal, validated

_MAP = "Start of structure or map found where not expected"
_ATTRIBUTE = "com.amazonaws.dynamodb.v20120810.AttributeValue"
_PARAMETERIZED = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class"
    " (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base"
    " of loader 'bootstrap')"
)

TEXT: list[tuple[Any, str]] = [
    (True, "TRUE_VALUE cannot be converted to String"),
    (False, "FALSE_VALUE cannot be converted to String"),
    (23, "NUMBER_VALUE cannot be converted to String"),
    (-2147483648, "NUMBER_VALUE cannot be converted to String"),
    (34.56, "DECIMAL_VALUE cannot be converted to String"),
    (34.0, "DECIMAL_VALUE cannot be converted to String"),
    ([], "Unrecognized collection type class java.lang.String"),
    ({}, _MAP),
]

WHOLE: list[tuple[Any, str]] = [
    (True, "TRUE_VALUE cannot be converted to Integer"),
    ("23", "STRING_VALUE cannot be converted to Integer"),
    ([], "Unrecognized collection type class java.lang.Integer"),
    ({}, _MAP),
]

FLAG: list[tuple[Any, str]] = [
    (23, "NUMBER_VALUE cannot be converted to Boolean"),
    (34.56, "DECIMAL_VALUE cannot be converted to Boolean"),
    ("hi", "Unexpected token received from parser"),
    ("", "Unexpected token received from parser"),
    ([], "Unrecognized collection type class java.lang.Boolean"),
    ({}, _MAP),
]

BINARY: list[tuple[Any, str]] = [
    (True, "only base-64-encoded strings are convertible to bytes"),
    (23, "only base-64-encoded strings are convertible to bytes"),
    (34.56, "only base-64-encoded strings are convertible to bytes"),
    ("23", "Base64 encoded length is expected a multiple of 4 bytes but found: 2"),
    ("=+/=", "Invalid last non-pad Base64 character dectected"),
    ("+/+=", "Invalid last non-pad Base64 character dectected"),
    ("ab?=", "Invalid base 64 character: '?'"),
    ([], "Unrecognized collection type class java.nio.ByteBuffer"),
    ({}, _MAP),
]

LIST: list[tuple[Any, str]] = [
    (True, "Unexpected field type"),
    (23, "Unexpected field type"),
    ("a", "Unexpected field type"),
    ({}, _MAP),
]

ATTRIBUTES: list[tuple[Any, str]] = [
    (True, "Unexpected field type"),
    (34.56, "Unexpected field type"),
    ("a", "Unexpected field type"),
    ([], f"Unrecognized collection type java.util.Map<java.lang.String, {_ATTRIBUTE}>"),
    ({"a": True}, "Unexpected value type in payload"),
    ({"a": "x"}, "Unexpected value type in payload"),
    ({"a": []}, f"Unrecognized collection type class {_ATTRIBUTE}"),
]

ATTRIBUTE: list[tuple[Any, str]] = [
    *[({"S": value}, words) for value, words in TEXT],
    *[({"N": value}, words) for value, words in TEXT],
    *[({"B": value}, words) for value, words in BINARY],
    *[({"BOOL": value}, words) for value, words in FLAG],
    *[({"NULL": value}, words) for value, words in FLAG],
    *[({"SS": value}, words) for value, words in LIST],
    *[({"NS": value}, words) for value, words in LIST],
    *[({"L": value}, words) for value, words in LIST],
    *[({"SS": [value]}, words) for value, words in TEXT],
    *[({"NS": [value]}, words) for value, words in TEXT],
    *[({"BS": [value]}, words) for value, words in BINARY],
    *[({"L": [{"S": value}]}, words) for value, words in TEXT],
    ({"L": ["a"]}, "Unexpected value type in payload"),
    ({"L": [[]]}, f"Unrecognized collection type class {_ATTRIBUTE}"),
    *[({"M": value}, words) for value, words in ATTRIBUTES],
    ({"M": {"a": {"L": [{"M": {"a": {"B": 1}}}]}}}, "only base-64-encoded strings are convertible to bytes"),
]

REQUESTS: list[tuple[str, dict[str, Any], str]] = [
    *[("GetItem", {"TableName": value}, words) for value, words in TEXT],
    *[("GetItem", {"ConsistentRead": value}, words) for value, words in FLAG],
    *[("GetItem", {"Key": value}, words) for value, words in ATTRIBUTES],
    *[("GetItem", {"Key": {"a": value}}, words) for value, words in ATTRIBUTE],
    *[("PutItem", {"Item": value}, words) for value, words in ATTRIBUTES],
    *[("PutItem", {"Item": {"a": value}}, words) for value, words in ATTRIBUTE],
    *[("GetItem", {"AttributesToGet": value}, words) for value, words in LIST],
    *[("GetItem", {"AttributesToGet": [value]}, words) for value, words in TEXT],
    *[("Scan", {"Limit": value}, words) for value, words in WHOLE],
    ("GetItem", {"ExpressionAttributeNames": "a"}, "Unexpected field type"),
    (
        "GetItem",
        {"ExpressionAttributeNames": []},
        "Unrecognized collection type java.util.Map<java.lang.String, java.lang.String>",
    ),
    ("GetItem", {"ExpressionAttributeNames": {"#a": 1}}, "NUMBER_VALUE cannot be converted to String"),
    ("PutItem", {"Expected": {"a": 1}}, "Unexpected value type in payload"),
    (
        "PutItem",
        {"Expected": {"a": []}},
        "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.ExpectedAttributeValue",
    ),
    ("PutItem", {"Expected": {"a": {"Value": "x"}}}, "Unexpected field type"),
    ("PutItem", {"Expected": {"a": {"Value": []}}}, f"Unrecognized collection type class {_ATTRIBUTE}"),
    ("PutItem", {"Expected": {"a": {"Exists": 1}}}, "NUMBER_VALUE cannot be converted to Boolean"),
    ("UpdateItem", {"AttributeUpdates": {"a": "x"}}, "Unexpected value type in payload"),
    (
        "BatchGetItem",
        {"RequestItems": []},
        "Unrecognized collection type java.util.Map<java.lang.String,"
        " com.amazonaws.dynamodb.v20120810.KeysAndAttributes>",
    ),
    ("BatchGetItem", {"RequestItems": {"abc": 1}}, "Unexpected value type in payload"),
    ("BatchGetItem", {"RequestItems": {"abc": {"Keys": {}}}}, _MAP),
    ("BatchGetItem", {"RequestItems": {"abc": {"Keys": ["a"]}}}, _PARAMETERIZED),
    (
        "BatchGetItem",
        {"RequestItems": {"abc": {"Keys": [[]]}}},
        f"Unrecognized collection type java.util.Map<java.lang.String, {_ATTRIBUTE}>",
    ),
    (
        "BatchWriteItem",
        {"RequestItems": []},
        "Unrecognized collection type java.util.Map<java.lang.String,"
        " java.util.List<com.amazonaws.dynamodb.v20120810.WriteRequest>>",
    ),
    ("BatchWriteItem", {"RequestItems": {"abc": 1}}, _PARAMETERIZED),
    ("BatchWriteItem", {"RequestItems": {"abc": {}}}, _MAP),
    ("BatchWriteItem", {"RequestItems": {"abc": [1]}}, "Unexpected value type in payload"),
    ("BatchWriteItem", {"RequestItems": {"abc": [{"PutRequest": 1}]}}, "Unexpected field type"),
    (
        "BatchWriteItem",
        {"RequestItems": {"abc": [{"PutRequest": []}]}},
        "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.PutRequest",
    ),
    ("TransactWriteItems", {"TransactItems": {}}, _MAP),
    ("TransactWriteItems", {"TransactItems": [{"Put": {"Item": 1}}]}, "Unexpected field type"),
    ("CreateTable", {"KeySchema": [1]}, "Unexpected value type in payload"),
    ("CreateTable", {"ProvisionedThroughput": 1}, "Unexpected field type"),
    (
        "CreateTable",
        {"ProvisionedThroughput": {"ReadCapacityUnits": "1"}},
        "STRING_VALUE cannot be converted to Long",
    ),
    (
        "CreateTable",
        {"ProvisionedThroughput": {"ReadCapacityUnits": []}},
        "Unrecognized collection type class java.lang.Long",
    ),
    ("TagResource", {"Tags": [{"Key": 1}]}, "NUMBER_VALUE cannot be converted to String"),
    ("UpdateTimeToLive", {"TimeToLiveSpecification": "a"}, "Unexpected field type"),
    ("GetShardIterator", {"ShardIteratorType": 1}, "NUMBER_VALUE cannot be converted to String"),
]


@pytest.mark.parametrize(("operation", "members", "words"), REQUESTS)
def test_wrong_types(operation: str, members: dict[str, Any], words: str) -> None:
    assert refusal(operation, {**RIGHT[operation], **members}) == ("SerializationException", words)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", None),
        (b"{", None),
        (b'{"TableName": "abc",}', None),
        (b"\xff", None),
        (b'{"TableName": "\\ud800"}', None),
        (b"3", "Unexpected field type"),
        (b"null", "Unexpected field type"),
        (b'"abc"', "Unexpected field type"),
        (b"[]", "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.GetItemInput"),
    ],
)
def test_what_is_no_request(body: bytes, words: str | None) -> None:
    assert refusal("GetItem", body) == ("SerializationException", words)


def test_the_first_wrong_type_of_the_request_is_reported() -> None:
    request = {"ConsistentRead": "hi", "TableName": 1, "Key": []}
    for _ in range(3):
        name, wrong = next(iter(request.items()))
        assert refusal("GetItem", request) == refusal("GetItem", {name: wrong})
        request[name] = request.pop(name)


@pytest.mark.parametrize(
    ("operation", "given", "read"),
    [
        # Null is as if absent, and so is what nobody knows.
        ("GetItem", {"Extra": 1, "AttributesToGet": None}, {}),
        ("GetItem", {"Key": {"a": {"S": "x", "N": None, "Z": 1}}}, {"Key": {"a": {"S": "x"}}}),
        ("GetItem", {"ConsistentRead": "true"}, {"ConsistentRead": True}),
        ("GetItem", {"ConsistentRead": "YES"}, {"ConsistentRead": True}),
        ("GetItem", {"ConsistentRead": "1"}, {"ConsistentRead": True}),
        ("GetItem", {"ConsistentRead": "no"}, {"ConsistentRead": False}),
        ("PutItem", {"Item": {"a": {"BOOL": "false"}}}, {"Item": {"a": {"BOOL": False}}}),
        ("PutItem", {"Item": {"a": {"L": [{"BOOL": "1"}]}}}, {"Item": {"a": {"L": [{"BOOL": True}]}}}),
        ("Scan", {"Limit": 34.56}, {"Limit": 34}),
        ("Scan", {"Limit": 2147483648}, {"Limit": 2147483648}),
        # Values that can be stored are brought to the form in which they are.
        ("PutItem", {"Item": {"a": {"N": "01.50"}}}, {"Item": {"a": {"N": "1.5"}}}),
        ("GetItem", {"Key": {"a": {"N": "1e2"}}}, {"Key": {"a": {"N": "100"}}}),
        ("PutItem", {"Item": {"a": {"B": ""}, "b": {"S": ""}}}, {"Item": {"a": {"B": ""}, "b": {"S": ""}}}),
        ("PutItem", {"Item": {"a": {"SS": [""]}}}, {"Item": {"a": {"SS": [""]}}}),
        ("GetItem", {"TableName": ARN}, {"TableName": ARN}),
    ],
)
def test_what_a_request_is_read_as(operation: str, given: dict[str, Any], read: dict[str, Any]) -> None:
    assert validated(operation, changed(operation, **given)) == {**RIGHT[operation], **read}


def test_a_request_that_is_given_is_left_as_it_is() -> None:
    request = {"TableName": "abc", "Item": {"a": {"N": "1.0"}, "b": {"NULL": "true"}}}
    assert validated("PutItem", request)["Item"] == {"a": {"N": "1"}, "b": {"NULL": True}}
    assert request == {"TableName": "abc", "Item": {"a": {"N": "1.0"}, "b": {"NULL": "true"}}}
    assert KEY == {"a": {"S": "x"}}
