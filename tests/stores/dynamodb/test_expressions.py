"""Expression trees and the text, names and values that DynamoDB gets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adjoin.errors import InvalidRequest
from adjoin.expressions import (
    Action,
    Add,
    And,
    Arithmetic,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Discard,
    Exists,
    HasType,
    IfNotExists,
    In,
    ListAppend,
    Not,
    Or,
    Path,
    Remove,
    Set,
    Size,
    Value,
    attribute,
)
from adjoin.requests import Query, SortCondition, SortOperator
from adjoin.stores.dynamodb.protocol import Placeholders
from tests.stores.examples import n, s

A, B = attribute("a"), attribute("b")
ONE, TWO = Value(n(1)), Value(n(2))


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Compare("=", A, ONE), "#0 = :0"),
        (Compare("<>", A, B), "#0 <> #1"),
        (Compare(">=", Size(A), ONE), "size(#0) >= :0"),
        (Between(A, ONE, TWO), "#0 BETWEEN :0 AND :1"),
        (Between(A, ONE, ONE), "#0 BETWEEN :0 AND :0"),
        (In(A, (ONE, TWO, B)), "#0 IN (:0, :1, #1)"),
        (Exists(A), "attribute_exists(#0)"),
        (Not(Exists(A)), "NOT (attribute_exists(#0))"),
        (HasType(A, "SS"), "attribute_type(#0, :0)"),
        (BeginsWith(A, Value(s("x"))), "begins_with(#0, :0)"),
        (Contains(A, ONE), "contains(#0, :0)"),
        (And((Exists(A), Exists(B))), "(attribute_exists(#0)) AND (attribute_exists(#1))"),
        (Or((Exists(A), And((Exists(B),)))), "(attribute_exists(#0)) OR (attribute_exists(#1))"),
        (
            And((Or((Exists(A), Exists(B))), Not(Exists(A)))),
            "((attribute_exists(#0)) OR (attribute_exists(#1))) AND (NOT (attribute_exists(#0)))",
        ),
        (Exists(Path(("a", "b", 3, "a"))), "attribute_exists(#0.#1[3].#0)"),
        (Exists(Path(("a", 0, 1))), "attribute_exists(#0[0][1])"),
    ],
)
def test_conditions(condition: Condition, text: str) -> None:
    assert Placeholders().condition(condition) == text


@pytest.mark.parametrize("condition", [And(()), Or(())])
def test_a_conjunction_of_nothing_cannot_be_said(condition: Condition) -> None:
    with pytest.raises(InvalidRequest, match="of no conditions"):
        Placeholders().condition(condition)


@pytest.mark.parametrize(
    ("actions", "text"),
    [
        ((Set(A, ONE),), "SET #0 = :0"),
        ((Set(A, Arithmetic("+", A, ONE)),), "SET #0 = #0 + :0"),
        ((Set(A, Arithmetic("-", IfNotExists(A, ONE), TWO)),), "SET #0 = if_not_exists(#0, :0) - :1"),
        ((Set(A, ListAppend(B, ONE)),), "SET #0 = list_append(#1, :0)"),
        ((Remove(Path(("a", 2))),), "REMOVE #0[2]"),
        ((Add(A, n(1)), Discard(B, {"SS": ["x"]})), "ADD #0 :0 DELETE #1 :1"),
        (
            (Remove(A), Set(B, ONE), Add(attribute("c"), n(1)), Set(attribute("d"), TWO)),
            "SET #1 = :0, #3 = :1 REMOVE #0 ADD #2 :0",
        ),
    ],
)
def test_updates(actions: tuple[Action, ...], text: str) -> None:
    assert Placeholders().update(actions) == text


@pytest.mark.parametrize(
    ("operator", "operands", "text"),
    [
        ("=", (s("x"),), "#0 = :0 AND #1 = :1"),
        ("<", (s("x"),), "#0 = :0 AND #1 < :1"),
        ("between", (s("x"), s("y")), "#0 = :0 AND #1 BETWEEN :1 AND :2"),
        ("begins_with", (s("x"),), "#0 = :0 AND begins_with(#1, :1)"),
    ],
)
def test_key_conditions(operator: SortOperator, operands: tuple[Any, ...], text: str) -> None:
    query = Query("T", ("PK", s("p")), SortCondition("SK", operator, operands))
    assert Placeholders().key_condition(query) == text
    assert Placeholders().key_condition(Query("T", ("PK", s("p")))) == "#0 = :0"


def test_key_conditions_on_several_keys() -> None:
    equal = (("h2", n(1)), ("r1", s("p")))
    query = Query("T", ("h1", s("p")), SortCondition("r2", ">", (n(1),)), index="I", equal=equal)
    assert Placeholders().key_condition(query) == "#0 = :0 AND #1 = :1 AND #2 = :0 AND #3 > :1"
    assert Placeholders().key_condition(replace(query, sort=None)) == "#0 = :0 AND #1 = :1 AND #2 = :0"


def test_names_and_values_are_shared_and_whole() -> None:
    at = Placeholders()
    at.condition(And((Compare("=", attribute("a.b#:,"), ONE), Compare("<", attribute("a.b#:,"), ONE))))
    assert at.projection((attribute("a.b#:,"), attribute("size"))) == "#0, #1"
    payload: dict[str, Any] = {}
    at.complete(payload)
    assert payload == {
        "ExpressionAttributeNames": {"#0": "a.b#:,", "#1": "size"},
        "ExpressionAttributeValues": {":0": n(1)},
    }


def test_a_request_without_expressions_has_no_names() -> None:
    payload: dict[str, Any] = {}
    Placeholders().complete(payload)
    assert payload == {}
