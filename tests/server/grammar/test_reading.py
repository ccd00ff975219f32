"""A whole request: which parameters go together, and in which order faults are found."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin.errors import InvalidRequest
from adjoin.expressions import Compare, Set, Value, attribute
from adjoin.server.grammar import Expressions, check_parameters
from adjoin.server.grammar.parameters import OPERATIONS
from adjoin.tables import KeyAttribute
from tests.stores.examples import n, s

A, B = attribute("a"), attribute("b")


def test_an_update() -> None:
    found = Expressions.of(
        {
            "UpdateExpression": "SET #a = :v",
            "ConditionExpression": "b < :w",
            "ExpressionAttributeNames": {"#a": "a"},
            "ExpressionAttributeValues": {":v": n(1), ":w": s("x")},
        }
    )
    assert found == Expressions(update=(Set(A, Value(n(1))),), condition=Compare("<", B, Value(s("x"))))


def test_a_query() -> None:
    found = Expressions.of(
        {
            "KeyConditionExpression": "k = :k",
            "FilterExpression": "b = :v",
            "ProjectionExpression": "a, b",
            "ExpressionAttributeValues": {":k": s("x"), ":v": n(1)},
        }
    )
    assert found.filter == Compare("=", B, Value(n(1)))
    assert found.projection == (A, B)
    assert found.keys is not None
    assert found.keys.on(KeyAttribute("k"), None) == (("k", s("x")), None)


def test_a_request_without_expressions() -> None:
    assert Expressions.of({"TableName": "t"}) == Expressions()


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            {"FilterExpression": "", "ExpressionAttributeNames": {}, "ExpressionAttributeValues": {}},
            "ExpressionAttributeNames must not be empty",
        ),
        ({"FilterExpression": "", "ExpressionAttributeValues": {}}, "ExpressionAttributeValues must not be empty"),
        (
            {"ConditionExpression": "", "UpdateExpression": ""},
            "Invalid UpdateExpression: The expression can not be empty;",
        ),
        (
            {"KeyConditionExpression": "", "FilterExpression": "", "ProjectionExpression": ""},
            "Invalid KeyConditionExpression: The expression can not be empty;",
        ),
        (
            {"KeyConditionExpression": "attribute_exists(a)", "FilterExpression": "", "ProjectionExpression": ""},
            "Invalid FilterExpression: The expression can not be empty;",
        ),
        (
            {"KeyConditionExpression": "attribute_exists(a)", "FilterExpression": "a > b", "ProjectionExpression": ""},
            "Invalid ProjectionExpression: The expression can not be empty;",
        ),
        (
            {"KeyConditionExpression": "attribute_exists(a)", "ExpressionAttributeNames": {"#u": "u"}},
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#u}",
        ),
        (
            {"KeyConditionExpression": "attribute_exists(a)"},
            "Invalid operator used in KeyConditionExpression: attribute_exists",
        ),
        (
            {
                "FilterExpression": "a = b",
                "ExpressionAttributeNames": {"#u": "u"},
                "ExpressionAttributeValues": {":u": n(1)},
            },
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#u}",
        ),
    ],
)
def test_of_two_faults_the_service_reports_this_one(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        Expressions.of(request_)
    assert str(raised.value) == message


def mixed(legacy: str, expressions: str) -> str:
    return (
        "Can not use both expression and non-expression parameters in the same request:"
        f" Non-expression parameters: {{{legacy}}} Expression parameters: {{{expressions}}}"
    )


EQ = {"ComparisonOperator": "EQ", "AttributeValueList": [n(1)]}


@pytest.mark.parametrize(
    ("operation", "given", "message"),
    [
        ("GetItem", {"AttributesToGet": ["a"], "ProjectionExpression": ""},
         mixed("AttributesToGet", "ProjectionExpression")),
        ("Scan", {"AttributesToGet": ["a"], "ScanFilter": {}, "ConditionalOperator": "AND", "FilterExpression": "",
                  "ProjectionExpression": ""},
         mixed("AttributesToGet, ScanFilter, ConditionalOperator", "ProjectionExpression, FilterExpression")),
        ("Query", {"KeyConditions": {}, "QueryFilter": {}, "ConditionalOperator": "OR", "KeyConditionExpression": "",
                   "FilterExpression": "", "ProjectionExpression": ""},
         mixed("QueryFilter, ConditionalOperator, KeyConditions",
               "ProjectionExpression, FilterExpression, KeyConditionExpression")),
        ("Query", {"QueryFilter": {}, "KeyConditions": {}, "ProjectionExpression": ""},
         mixed("QueryFilter", "ProjectionExpression")),
        ("PutItem", {"Expected": {}, "ConditionExpression": ""}, mixed("Expected", "ConditionExpression")),
        ("UpdateItem", {"AttributeUpdates": {}, "Expected": {}, "UpdateExpression": "", "ConditionExpression": ""},
         mixed("AttributeUpdates, Expected", "UpdateExpression, ConditionExpression")),
        ("UpdateItem", {"AttributeUpdates": {}, "ConditionExpression": ""},
         mixed("AttributeUpdates", "ConditionExpression")),
        ("PutItem", {"ExpressionAttributeNames": {}, "ExpressionAttributeValues": {}},
         "ExpressionAttributeNames can only be specified when using expressions"),
        ("PutItem", {"ExpressionAttributeValues": {}},
         "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null"),
        ("UpdateItem", {"ExpressionAttributeValues": {}, "Expected": {}},
         "ExpressionAttributeValues can only be specified when using expressions:"
         " UpdateExpression and ConditionExpression are null"),
        ("Scan", {"ExpressionAttributeValues": {}, "ProjectionExpression": "a"},
         "ExpressionAttributeValues can only be specified when using expressions: FilterExpression is null"),
        ("Query", {"ExpressionAttributeValues": {}, "KeyConditions": {}},
         "ExpressionAttributeValues can only be specified when using expressions:"
         " FilterExpression and KeyConditionExpression are null"),
        ("Scan", {"ExpressionAttributeNames": {}, "ScanFilter": {"a": EQ}, "ConditionalOperator": "OR"},
         "ExpressionAttributeNames can only be specified when using expressions"),
        ("Scan", {"ConditionalOperator": "AND"}, "ConditionalOperator cannot be used without Filter or Expected"),
        ("Scan", {"ConditionalOperator": "AND", "ScanFilter": {}},
         "ConditionalOperator cannot be used without Filter or Expected"),
        ("Query", {"ConditionalOperator": "AND", "QueryFilter": {"a": EQ}},
         "ConditionalOperator can only be used when Filter or Expected has two or more elements"),
        ("DeleteItem", {"ConditionalOperator": "OR", "Expected": {"a": EQ}},
         "ConditionalOperator can only be used when Filter or Expected has two or more elements"),
    ],
)  # fmt: skip
def test_parameters_that_cannot_be_in_one_request(operation: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        check_parameters(operation, given)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        ("Query", {"KeyConditions": {}, "FilterExpression": "", "ExpressionAttributeValues": {}}),
        ("Query", {"KeyConditions": {}, "QueryFilter": {"a": EQ, "b": EQ}, "ConditionalOperator": "OR"}),
        ("Scan", {"ScanFilter": {}, "AttributesToGet": ["a"]}),
        ("UpdateItem", {"UpdateExpression": "", "ConditionExpression": "", "ExpressionAttributeNames": {}}),
        ("Update", {"UpdateExpression": "", "ExpressionAttributeValues": {}}),
        *[(operation, {}) for operation in OPERATIONS],
    ],
)
def test_parameters_that_can(operation: str, given: dict[str, Any]) -> None:
    check_parameters(operation, given)
