from __future__ import annotations

import pytest

from adjoin.errors import InvalidRequest
from adjoin.expressions import (
    And,
    BeginsWith,
    Between,
    Comparator,
    Compare,
    Condition,
    Contains,
    Exists,
    HasType,
    In,
    Not,
    Operand,
    Or,
    Path,
    Size,
    Value,
)
from adjoin.stores.evaluate import condition_test, paths_in, projector
from adjoin.values import AttributeValue, Item
from tests.stores.examples import b, n, s

ITEM: Item = {
    "text": s("héllo"),
    "one": n(1),
    "ten": n(10),
    "tiny": n("0.001"),
    "raw": b(b"\x00\xffab"),
    "yes": {"BOOL": True},
    "no": {"BOOL": False},
    "nil": {"NULL": True},
    "empty": s(""),
    "names": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "2.5"]},
    "raws": {"BS": [b(b"x")["B"]]},
    "list": {"L": [n(1), s("two"), {"M": {"three": n(3)}}]},
    "map": {"M": {"a": n(1), "b": {"L": [s("x"), s("y")]}}},
    "copy": s("héllo"),
}


def path(*steps: str | int) -> Path:
    return Path(steps)


def v(attribute: AttributeValue) -> Value:
    return Value(attribute)


COMPARISONS: list[tuple[Operand, Comparator, Operand, bool]] = [
    (path("one"), "=", v(n("1.0")), True),
    (path("one"), "=", v(n("1e0")), True),
    (path("one"), "=", v(s("1")), False),
    (path("one"), "<>", v(s("1")), True),
    (path("missing"), "=", v(n(1)), False),
    (path("missing"), "<>", v(n(1)), True),
    (path("missing"), "<>", path("absent"), True),
    (path("missing"), "=", path("absent"), False),
    (path("missing"), "<", v(n(1)), False),
    (v(n(1)), ">", path("missing"), False),
    (path("one"), "<", path("ten"), True),
    (path("ten"), "<", v(n(9)), False),
    (path("tiny"), "<", path("one"), True),
    (path("ten"), ">=", v(n("10.00")), True),
    (path("ten"), "<=", v(n("9.99")), False),
    (path("one"), "<", v(s("2")), False),
    (path("text"), "=", path("copy"), True),
    (path("text"), "<", v(s("i")), True),
    (path("text"), ">", v(s("hello")), True),  # é comes after e, by UTF-8 bytes
    (v(s("\uffff")), "<", v(s("\U00010000")), True),
    (path("raw"), "<", v(b(b"\x01")), True),
    (path("raw"), "=", v(b(b"\x00\xffab")), True),
    (path("yes"), "=", v({"BOOL": True}), True),
    (path("yes"), "<>", path("no"), True),
    (path("yes"), "<", path("no"), False),
    (path("nil"), "=", v({"NULL": True}), True),
    (path("names"), "=", v({"SS": ["b", "a"]}), True),
    (path("numbers"), "=", v({"NS": ["2.50", "1"]}), True),
    (path("names"), "=", v({"SS": ["a"]}), False),
    (path("map"), "=", v({"M": {"b": {"L": [s("x"), s("y")]}, "a": n("1.0")}}), True),
    (path("list"), "=", v({"L": [n(1)]}), False),
    (path("list", 0), "=", v(n(1)), True),
    (path("list", 2, "three"), ">", path("list", 0), True),
    (path("map", "b", 1), "=", v(s("y")), True),
    (path("map", "b", 7), "=", v(s("y")), False),
    (path("text", "a"), "=", v(s("y")), False),
    (path("list", "a"), "<>", v(s("y")), True),
    (Size(path("text")), "=", v(n(5)), True),
    (Size(path("raw")), "=", v(n(4)), True),
    (Size(path("names")), "=", v(n(2)), True),
    (Size(path("list")), "=", v(n(3)), True),
    (Size(path("map")), "<", v(n(3)), True),
    (Size(path("empty")), "=", v(n(0)), True),
    (Size(path("one")), "=", v(n(1)), False),
    (Size(path("yes")), "=", v(n(1)), False),
    (Size(path("missing")), "=", v(n(0)), False),
    (Size(path("text")), "=", v(s("5")), False),
    (Size(path("names")), ">", path("one"), True),
]


@pytest.mark.parametrize(("left", "operator", "right", "expected"), COMPARISONS)
def test_comparisons(left: Operand, operator: Comparator, right: Operand, expected: bool) -> None:
    assert condition_test(Compare(operator, left, right))(ITEM) is expected


CONDITIONS: list[tuple[Condition, bool]] = [
    (Between(path("one"), v(n(1)), v(n(1))), True),
    (Between(path("one"), v(n(2)), v(n(3))), False),
    (Between(path("one"), v(s("0")), v(s("9"))), False),
    (Between(path("missing"), v(n(0)), v(n(9))), False),
    (Between(v(n(5)), path("one"), path("ten")), True),
    (Between(v(n(5)), path("ten"), v(n(1))), False),
    (Between(path("text"), v(s("h")), v(s("i"))), True),
    (Between(path("raw"), v(b(b"\x00")), v(b(b"\x01"))), True),
    (Between(path("list"), path("map"), path("names")), False),
    (In(path("one"), (v(s("1")), v(n("1.0")))), True),
    (In(path("one"), (v(s("1")), v(n(2)))), False),
    (In(path("missing"), (v(n(1)), path("absent"))), False),
    (Exists(path("one")), True),
    (Exists(path("missing")), False),
    (Exists(path("map", "b", 0)), True),
    (Exists(path("map", "b", 2)), False),
    (Exists(path("nil")), True),
    (HasType(path("one"), "N"), True),
    (HasType(path("one"), "S"), False),
    (HasType(path("missing"), "S"), False),
    (HasType(path("nil"), "NULL"), True),
    (HasType(path("raws"), "BS"), True),
    (BeginsWith(path("text"), v(s("hé"))), True),
    (BeginsWith(path("text"), v(s("é"))), False),
    (BeginsWith(path("text"), v(s(""))), True),
    (BeginsWith(path("raw"), v(b(b"\x00"))), True),
    (BeginsWith(path("text"), v(b(b"h"))), False),
    (BeginsWith(path("one"), v(s("1"))), False),
    (BeginsWith(path("missing"), v(s("1"))), False),
    (BeginsWith(v(s("héllo!")), path("text")), True),
    (Contains(path("text"), v(s("éll"))), True),
    (Contains(path("text"), v(n(1))), False),
    (Contains(path("raw"), v(b(b"\xffa"))), True),
    (Contains(path("names"), v(s("a"))), True),
    (Contains(path("names"), v(n(1))), False),
    (Contains(path("numbers"), v(n("2.50"))), True),
    (Contains(path("raws"), v(b(b"x"))), True),
    (Contains(path("list"), v(n("1.0"))), True),
    (Contains(path("list"), v({"M": {"three": n(3)}})), True),
    (Contains(path("list"), v(n(3))), False),
    (Contains(path("missing"), v(n(3))), False),
    (Contains(path("text"), path("missing")), False),
    (Contains(path("map"), v(s("a"))), False),
    (And((Exists(path("one")), Exists(path("ten")))), True),
    (And((Exists(path("one")), Exists(path("missing")))), False),
    (Or((Exists(path("missing")), Exists(path("ten")))), True),
    (Or((Exists(path("missing")), Exists(path("absent")))), False),
    (Not(Exists(path("missing"))), True),
    (Not(Compare("<", path("missing"), v(n(1)))), True),
]


@pytest.mark.parametrize(("condition", "expected"), CONDITIONS)
def test_conditions(condition: Condition, expected: bool) -> None:
    assert condition_test(condition)(ITEM) is expected


REJECTED: list[tuple[Condition, str]] = [
    (
        Compare("<", path("a"), v({"BOOL": True})),
        "Invalid ConditionExpression: Incorrect operand type for operator or function;"
        " operator or function: <, operand type: BOOL",
    ),
    (
        Compare("=", path("a"), path("a")),
        "Invalid ConditionExpression: The first operand must be distinct from the remaining operands for this"
        " operator or function; operator: =, first operand: [a]",
    ),
    (
        Contains(path("a", 1, "b"), path("a", 1, "b")),
        "Invalid ConditionExpression: The first operand must be distinct from the remaining operands for this"
        " operator or function; operator: contains, first operand: [a, [1], b]",
    ),
    (
        Between(path("a"), v(n(2)), v(n(1))),
        "Invalid ConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal to"
        " lower bound; lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}",
    ),
    (
        Between(path("a"), v(n(2)), v(s("x"))),
        "Invalid ConditionExpression: The BETWEEN operator requires same data type for lower and upper bounds;"
        " lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {S:x}",
    ),
    (
        Between(path("a"), v({"L": []}), v({"L": []})),
        "Invalid ConditionExpression: Incorrect operand type for operator or function;"
        " operator or function: BETWEEN, operand type: L",
    ),
    (
        BeginsWith(path("a"), v(n(1))),
        "Invalid ConditionExpression: Incorrect operand type for operator or function;"
        " operator or function: begins_with, operand type: N",
    ),
    (
        HasType(path("a"), "DOG"),
        "Invalid ConditionExpression: Invalid attribute type name found; type: DOG,"
        " valid types: {S,SS,N,NS,B,BS,BOOL,NULL,L,M}",
    ),
    (
        In(path("a"), ()),
        "Invalid ConditionExpression: IN takes 1 to 100 operands, not none",
    ),
    (
        In(path("a"), (v(n(1)),) * 101),
        "Invalid ConditionExpression: The IN operator is provided with too many operands; number of operands: 101",
    ),
    (Compare("=", path("a"), v(n("x"))), "The parameter cannot be converted to a numeric value: x"),
    (
        Compare("=", path("a"), v({"SS": []})),
        "One or more parameter values were invalid: An string set  may not be empty",
    ),
]


@pytest.mark.parametrize(("condition", "message"), REJECTED)
def test_rejected_without_looking_at_an_item(condition: Condition, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        condition_test(And((Exists(path("x")), Not(condition))))
    assert str(caught.value) == message


def test_a_filter_is_named_in_its_errors() -> None:
    with pytest.raises(InvalidRequest, match="Invalid FilterExpression: Incorrect operand type"):
        condition_test(BeginsWith(path("a"), v(n(1))), "FilterExpression")


def test_paths_in_a_condition() -> None:
    condition = Or((Not(Compare("<", Size(path("a", 0)), path("b"))), In(path("c"), (v(n(1)), path("d")))))
    assert list(paths_in(condition)) == [path("a", 0), path("b"), path("c"), path("d")]


PROJECTIONS: list[tuple[list[Path], Item]] = [
    ([path("one"), path("missing")], {"one": n(1)}),
    ([path("map", "a")], {"map": {"M": {"a": n(1)}}}),
    ([path("map", "a"), path("map", "b", 1)], {"map": {"M": {"a": n(1), "b": {"L": [s("y")]}}}}),
    ([path("list", 2), path("list", 0)], {"list": {"L": [n(1), {"M": {"three": n(3)}}]}}),
    ([path("list", 9), path("map", "z"), path("text", "x"), path("one")], {"one": n(1)}),
    ([path("list", "x")], {}),
]


@pytest.mark.parametrize(("paths", "expected"), PROJECTIONS)
def test_projections(paths: list[Path], expected: Item) -> None:
    assert projector(paths)(ITEM) == expected


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([path("a"), path("a")], "overlap with each other; .* path one: \\[a\\], path two: \\[a\\]"),
        ([path("a"), path("a", "b")], "overlap with each other; .* path one: \\[a\\], path two: \\[a, b\\]"),
        ([path("a", "b"), path("a")], "overlap with each other; .* path one: \\[a, b\\], path two: \\[a\\]"),
        ([path("a", "b"), path("a", 0)], "conflict with each other; .* path two: \\[a, \\[0\\]\\]"),
    ],
)
def test_paths_that_cannot_go_together(paths: list[Path], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        projector(paths)
