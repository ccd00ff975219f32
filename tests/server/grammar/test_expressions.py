"""All expressions of a request: what they are read as, and in which order faults are found."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin.errors import InvalidRequest
from adjoin.expressions import Compare, Set, Value, attribute
from adjoin.server.grammar import Expressions
from adjoin.tables import KeyAttribute, TableDefinition
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
    assert found.keys.on(TableDefinition("T", KeyAttribute("k"))) == (("k", s("x")), None, ())


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
