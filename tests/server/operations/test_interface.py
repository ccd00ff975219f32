"""What an operation is: in one place, known by its name; and which of its parameters go together."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import adjoin
from adjoin.errors import InvalidRequest
from adjoin.server import operations
from adjoin.server.operations import OPERATIONS, STREAM_OPERATIONS
from adjoin.server.operations.interface import ExpressionParameters, Operation
from tests.server.refusals import KEY, invalid
from tests.stores.examples import n

SERVER = Path(adjoin.__file__).parent / "server"


def defined() -> Iterator[Operation]:
    """Every operation that a module has, by a name or in a tuple."""
    for module in pkgutil.iter_modules(operations.__path__, f"{operations.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            yield from (
                each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, Operation)
            )


def test_every_operation_that_is_defined_can_be_asked_for() -> None:
    found = {id(operation): operation.name for operation in defined()}
    assert sorted(found.values()) == sorted([*OPERATIONS, *STREAM_OPERATIONS])


@pytest.mark.parametrize("name", [*OPERATIONS, *STREAM_OPERATIONS])
def test_an_operation_is_named_in_one_module(name: str) -> None:
    assert len([path for path in SERVER.rglob("*.py") if f'"{name}"' in path.read_text()]) == 1


# --- which parameters go together --------------------------------------------------------------


def takes(operation: str) -> ExpressionParameters:
    found = OPERATIONS[operation].takes
    assert found is not None
    return found


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
        takes(operation).check(given)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        ("Query", {"KeyConditions": {}, "FilterExpression": "", "ExpressionAttributeValues": {}}),
        ("Query", {"KeyConditions": {}, "QueryFilter": {"a": EQ, "b": EQ}, "ConditionalOperator": "OR"}),
        ("Scan", {"ScanFilter": {}, "AttributesToGet": ["a"]}),
        ("UpdateItem", {"UpdateExpression": "", "ConditionExpression": "", "ExpressionAttributeNames": {}}),
        *[(name, {}) for name, operation in OPERATIONS.items() if operation.takes is not None],
    ],
)
def test_parameters_that_can(operation: str, given: dict[str, Any]) -> None:
    takes(operation).check(given)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"Update": {"UpdateExpression": "", "ExpressionAttributeValues": {}}}, None),
        ({"Put": {"Item": KEY, "ConditionExpression": ""}}, None),
        (
            {"Delete": {"ExpressionAttributeNames": {}}},
            "ExpressionAttributeNames can only be specified when using expressions",
        ),
        (
            {"Put": {"Item": KEY, "ExpressionAttributeValues": {}}},
            "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null",
        ),
    ],
)
def test_parameters_of_the_parts_of_a_transaction(part: dict[str, Any], message: str | None) -> None:
    ((kind, given),) = part.items()
    key = {} if kind == "Put" else {"Key": KEY}
    request = {"TransactItems": [{kind: {"TableName": "abc", **key, **given}}]}
    assert invalid("TransactWriteItems", request) == message
