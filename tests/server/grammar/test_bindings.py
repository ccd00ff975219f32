"""Placeholders: what they may look like, what they may stand for, and that each is used."""

from __future__ import annotations

import pytest

from adjoin.errors import InvalidRequest
from adjoin.server.grammar import Bindings, read_condition, read_projection, read_update
from adjoin.values import AttributeValue
from tests.stores.examples import n, s

LONG = "a" * 300


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({}, "ExpressionAttributeNames must not be empty"),
        ({"x": "n"}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "x"'),
        ({"#": "n"}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#"'),
        ({"#a-b": "n"}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#a-b"'),
        ({"#a\n": "n"}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#a\n"'),
        ({"#é": "n"}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#é"'),
        ({"#n": ""}, "ExpressionAttributeNames contains invalid value: Empty attribute name for key #n"),
        (
            {f"#{LONG}": "n"},
            "ExpressionAttributeNames contains invalid key:"
            " The expression attribute map contains a key that is too long; size of key: 301",
        ),
    ],
)
def test_names(names: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        Bindings(names, {})
    assert str(raised.value) == message


EMPTY = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
TWICE = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
INVALID = "One or more parameter values were invalid: "


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "ExpressionAttributeValues must not be empty"),
        ({"v": n(1)}, 'ExpressionAttributeValues contains invalid key: Syntax error; key: "v"'),
        ({":": n(1)}, 'ExpressionAttributeValues contains invalid key: Syntax error; key: ":"'),
        ({":b": {}, "b": n(1)}, 'ExpressionAttributeValues contains invalid key: Syntax error; key: "b"'),
        (
            {f":{LONG}": n(1)},
            "ExpressionAttributeValues contains invalid key:"
            " The expression attribute map contains a key that is too long;",
        ),
        ({":a": {}}, f"ExpressionAttributeValues contains invalid value: {EMPTY} for key :a"),
        ({":a": {"L": [{}]}}, f"ExpressionAttributeValues contains invalid value: {EMPTY} for key :a"),
        ({":a": {"S": "x", "N": "1"}}, f"ExpressionAttributeValues contains invalid value: {TWICE} for key :a"),
        (
            {":a": {"SS": []}},
            f"ExpressionAttributeValues contains invalid value: {INVALID}An string set  may not be empty for key :a",
        ),
        (
            {":a": {"NULL": False}},
            f"ExpressionAttributeValues contains invalid value: {INVALID}"
            "Null attribute value types must have the value of true for key :a",
        ),
        (
            {":a": {"N": "b"}},
            "ExpressionAttributeValues contains invalid value:"
            " The parameter cannot be converted to a numeric value: b for key :a",
        ),
        # Of several the service reports the first one of its map, which is no order that anybody wrote.
        (
            {":v9": {}, ":v10": {}},
            f"ExpressionAttributeValues contains invalid value: {EMPTY} for key :v10",
        ),
    ],
)
def test_values(values: dict[str, AttributeValue], message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        Bindings(None, values)
    assert str(raised.value) == message


def test_names_are_checked_before_values() -> None:
    with pytest.raises(InvalidRequest, match=r"^ExpressionAttributeNames must not be empty$"):
        Bindings({}, {})


def test_placeholders_of_255_bytes() -> None:
    key = "a" * 254
    bindings = Bindings({f"#{key}": "n"}, {f":{key}": n(1)})
    read_condition(f"#{key} = :{key}", bindings)
    bindings.check_unused()


def test_every_expression_of_a_request_may_use_a_placeholder() -> None:
    bindings = Bindings({"#a": "a", "#b": "b", "#c": "c"}, {":v": n(1), ":w": s("x")})
    read_update("SET #a = :v", bindings)
    read_condition("#b = :w AND #a = :v", bindings)
    with pytest.raises(InvalidRequest, match=r"unused in expressions: keys: \{#c\}$"):
        bindings.check_unused()
    read_projection("#c", bindings)
    bindings.check_unused()


@pytest.mark.parametrize(
    ("names", "values", "message"),
    [
        (
            {"#u": "x"},
            {":u": n(1)},
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#u}",
        ),
        (None, {":u": n(1)}, "Value provided in ExpressionAttributeValues unused in expressions: keys: {:u}"),
        # Several are listed in the order of the service's hash maps.
        (
            {"#b": "x", "#a": "y", "#c": "z"},
            None,
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#c, #a, #b}",
        ),
        (
            None,
            {":b": n(1), ":c": n(2), ":aa": n(3)},
            "Value provided in ExpressionAttributeValues unused in expressions: keys: {:b, :c, :aa}",
        ),
        (
            None,
            {f":v{index}": n(index) for index in range(1, 15)},
            "Value provided in ExpressionAttributeValues unused in expressions: keys:"
            " {:v11, :v12, :v13, :v14, :v10, :v1, :v2, :v3, :v4, :v5, :v6, :v7, :v8, :v9}",
        ),
    ],
)
def test_unused(names: dict[str, str] | None, values: dict[str, AttributeValue] | None, message: str) -> None:
    # One that is used beside them, which counts for the size of the service's map.
    bindings = Bindings(names and {**names, "#0": "used"}, values and {**values, ":a": n(0)})
    read_condition(f"{'#0' if names else 'used'} = {':a' if values else 'attr1'}", bindings)
    with pytest.raises(InvalidRequest) as raised:
        bindings.check_unused()
    assert str(raised.value) == message


def test_a_placeholder_in_an_expression_that_failed_counts_as_used() -> None:
    bindings = Bindings({"#a": "a"}, {":v": {"BOOL": True}})
    with pytest.raises(InvalidRequest):
        read_condition("#a < :v", bindings)
    bindings.check_unused()
