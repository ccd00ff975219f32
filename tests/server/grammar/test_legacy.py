"""The parameters that are older than expressions: the same trees, and words of their own."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin.errors import InvalidRequest
from adjoin.evaluate import condition_test
from adjoin.expressions import (
    Add,
    And,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Discard,
    Exists,
    In,
    Not,
    Or,
    Remove,
    Set,
    Value,
    attribute,
)
from adjoin.server.grammar import (
    LEGACY_WORDS,
    attribute_updates,
    attributes_to_get,
    expected_condition,
    filter_of,
    key_conditions,
)
from adjoin.stores.updates import update_of
from adjoin.values import AttributeValue, Item
from tests.stores.examples import n, s

A, B = attribute("a"), attribute("b")
INVALID = "One or more parameter values were invalid: "


def given(operator: str, *values: AttributeValue) -> dict[str, Any]:
    return {"ComparisonOperator": operator, "AttributeValueList": list(values)}


ONE, TWO = Value(n(1)), Value(n(2))


@pytest.mark.parametrize(
    ("condition", "tree"),
    [
        (given("EQ", n(1)), Compare("=", A, ONE)),
        (given("EQ", {"BOOL": True}), Compare("=", A, Value({"BOOL": True}))),
        (given("EQ", {"L": []}), Compare("=", A, Value({"L": []}))),
        (given("NE", n(1)), Compare("<>", A, ONE)),
        (given("LE", n(1)), Compare("<=", A, ONE)),
        (given("LT", n(1)), Compare("<", A, ONE)),
        (given("GE", n(1)), Compare(">=", A, ONE)),
        (given("GT", n(1)), Compare(">", A, ONE)),
        (given("NULL"), Not(Exists(A))),
        ({"ComparisonOperator": "NOT_NULL"}, Exists(A)),
        (given("CONTAINS", s("x")), Contains(A, Value(s("x")))),
        (given("NOT_CONTAINS", s("x")), And((Exists(A), Not(Contains(A, Value(s("x"))))))),
        (given("BEGINS_WITH", s("x")), BeginsWith(A, Value(s("x")))),
        (given("IN", n(1), n(2)), In(A, (ONE, TWO))),
        (given("BETWEEN", n(1), n(2)), Between(A, ONE, TWO)),
        (given("BETWEEN", n(1), n(1)), Between(A, ONE, ONE)),
    ],
)
def test_conditions(condition: dict[str, Any], tree: Condition) -> None:
    assert filter_of({"a": condition}) == tree
    assert expected_condition({"a": condition}) == tree


def test_conditions_are_joined() -> None:
    conditions = {"a": given("EQ", n(1)), "b": given("NULL")}
    parts = (Compare("=", A, ONE), Not(Exists(B)))
    assert filter_of(conditions) == filter_of(conditions, "AND") == And(parts)
    assert filter_of(conditions, "OR") == expected_condition(conditions, "OR") == Or(parts)
    assert filter_of({}) is None
    assert expected_condition({}) is None


@pytest.mark.parametrize(
    ("item", "holds"), [({}, False), ({"a": s("xy")}, False), ({"a": s("z")}, True), ({"a": n(1)}, True)]
)
def test_what_is_not_there_does_not_lack_a_part(item: Item, holds: bool) -> None:
    condition = filter_of({"a": given("NOT_CONTAINS", s("x"))})
    assert condition is not None
    assert condition_test(condition)(item) is holds


NOT_ORDERED: list[AttributeValue] = [
    {"BOOL": True},
    {"NULL": True},
    {"SS": ["a"]},
    {"NS": ["1"]},
    {"BS": ["YQ=="]},
    {"M": {}},
    {"L": []},
]


def invalid_type(operator: str, value: AttributeValue) -> str:
    return f"{INVALID}ComparisonOperator {operator} is not valid for {next(iter(value))} AttributeValue type"


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (given("EQ", {}), "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"),
        (given("EQ", n(1), {"NULL": False}), f"{INVALID}Null attribute value types must have the value of true"),
        *[
            (condition, f"{INVALID}Invalid number of argument(s) for the {condition['ComparisonOperator']}"
             " ComparisonOperator")
            for condition in [
                given("EQ"), given("EQ", n(1), n(1)), {"ComparisonOperator": "NE"}, given("NULL", n(1)),
                given("NOT_NULL", n(1)), given("IN"), given("BETWEEN", n(1)), given("BETWEEN", n(1), n(1), n(1)),
                given("CONTAINS", s("a"), s("b")), given("BEGINS_WITH"),
            ]
        ],
        (given("IN", n(1), s("x")), f"{INVALID}AttributeValues inside AttributeValueList must be of same type"),
        (given("BETWEEN", n(1), s("x")), f"{INVALID}AttributeValues inside AttributeValueList must be of same type"),
        *[
            (given(operator, value), invalid_type(operator, value))
            for operator in ("LT", "LE", "GT", "GE", "IN") for value in NOT_ORDERED
        ],
        *[(given("BETWEEN", value, value), invalid_type("BETWEEN", value)) for value in NOT_ORDERED],
        *[(given("BEGINS_WITH", value), invalid_type("BEGINS_WITH", value)) for value in [n(1), *NOT_ORDERED]],
        *[
            (given(operator, value), invalid_type(operator, value))
            for operator in ("CONTAINS", "NOT_CONTAINS") for value in NOT_ORDERED[2:]
        ],
        (
            given("BETWEEN", s("b"), s("a")),
            "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound",
        ),
    ],
)  # fmt: skip
def test_what_the_service_refuses_of_conditions(condition: dict[str, Any], message: str) -> None:
    for read in (filter_of, expected_condition, key_conditions):
        with pytest.raises(InvalidRequest) as raised:
            read({"a": condition})
        assert read is expected_condition or str(raised.value) == message


@pytest.mark.parametrize(
    ("expected", "tree"),
    [
        ({"Value": n(1)}, Compare("=", A, ONE)),
        ({"Exists": True, "Value": n(1)}, Compare("=", A, ONE)),
        ({"Exists": False}, Not(Exists(A))),
        ({"ComparisonOperator": "GE", "Value": n(1)}, Compare(">=", A, ONE)),
    ],
)
def test_expected(expected: dict[str, Any], tree: Condition) -> None:
    assert expected_condition({"a": expected}) == tree


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({}, "Value must be provided when Exists is null for Attribute: a"),
        ({"Exists": True}, "Value must be provided when Exists is true for Attribute: a"),
        ({"Exists": False, "Value": n(1)}, "Value cannot be used when Exists is false for Attribute: a"),
        (
            {"Value": n(1), "AttributeValueList": [n(1)], "Exists": True, "ComparisonOperator": "EQ"},
            "Value and AttributeValueList cannot be used together for Attribute: a",
        ),
        (
            {"Exists": True, "ComparisonOperator": "EQ"},
            "Exists and ComparisonOperator cannot be used together for Attribute: a",
        ),
        (
            {"ComparisonOperator": "LT"},
            "Value or AttributeValueList must be used with ComparisonOperator: LT for Attribute: a",
        ),
        (
            {"AttributeValueList": [n(1)]},
            "AttributeValueList can only be used with a ComparisonOperator for Attribute: a",
        ),
        (
            {"ComparisonOperator": "NULL", "Value": n(1)},
            "Invalid number of argument(s) for the NULL ComparisonOperator",
        ),
        ({"Value": {"NULL": False}}, "Null attribute value types must have the value of true"),
    ],
)
def test_what_the_service_refuses_of_expected(expected: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        expected_condition({"a": expected})
    assert str(raised.value) == INVALID + message


def test_attributes_to_get() -> None:
    assert attributes_to_get(["a", "b.c"]) == (A, attribute("b.c"))
    with pytest.raises(InvalidRequest) as raised:
        attributes_to_get(["a", "b", "c", "b", "a"])
    assert str(raised.value) == f"{INVALID}Duplicate value in attribute name: b"


@pytest.mark.parametrize(
    ("update", "action"),
    [
        ({"Value": n(1)}, Set(A, ONE)),
        ({"Action": "PUT", "Value": n(1)}, Set(A, ONE)),
        ({"Action": "DELETE"}, Remove(A)),
        ({"Action": "DELETE", "Value": {"SS": ["x"]}}, Discard(A, {"SS": ["x"]})),
        ({"Action": "ADD", "Value": n(1)}, Add(A, n(1))),
        ({"Action": "ADD", "Value": {"NS": ["1"]}}, Add(A, {"NS": ["1"]})),
    ],
)
def test_attribute_updates(update: dict[str, Any], action: object) -> None:
    assert attribute_updates({"a": update}) == (action,)


@pytest.mark.parametrize(("before", "after"), [({}, [2]), ({"a": {"L": [n(1)]}}, [1, 2])])
def test_adding_to_a_list_appends(before: Item, after: list[int]) -> None:
    update = update_of(attribute_updates({"a": {"Action": "ADD", "Value": {"L": [n(2)]}}}), {})
    assert update(before) == {"a": {"L": list(map(n, after))}}


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({}, f"{INVALID}Only DELETE action is allowed when no attribute value is specified"),
        ({"Action": "ADD"}, f"{INVALID}Only DELETE action is allowed when no attribute value is specified"),
        ({"Value": {}}, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"),
        *[
            ({"Action": "DELETE", "Value": value},
             f"{INVALID}DELETE action with value is not supported for the type {next(iter(value))}")
            for value in [s("x"), n(1), {"B": "YQ=="}, {"NULL": True}, {"BOOL": True}, {"M": {}}, {"L": []}]
        ],
        *[
            ({"Action": "ADD", "Value": value},
             f"{INVALID}ADD action is not supported for the type {next(iter(value))}")
            for value in [s("x"), {"B": "YQ=="}, {"NULL": True}, {"BOOL": True}, {"M": {}}]
        ],
    ],
)  # fmt: skip
def test_what_the_service_refuses_of_attribute_updates(update: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        attribute_updates({"a": update})
    assert str(raised.value) == message


def test_what_updates_say_while_they_are_applied_has_older_words() -> None:
    update = update_of(attribute_updates({"a": {"Action": "ADD", "Value": n(1)}}), {})
    with pytest.raises(InvalidRequest) as raised:
        update({"a": s("x")})
    assert LEGACY_WORDS[str(raised.value)] == "Type mismatch for attribute to update"
