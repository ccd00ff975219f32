from __future__ import annotations

from copy import deepcopy

import pytest

from adjoin.errors import InvalidRequest
from adjoin.expressions import (
    Action,
    Add,
    Arithmetic,
    Discard,
    IfNotExists,
    ListAppend,
    Path,
    Remove,
    Set,
    Size,
    Value,
)
from adjoin.stores.updates import update_of
from adjoin.values import AttributeValue, Item
from tests.stores.examples import b, n, s

KEY: Item = {"PK": s("p")}
ITEM: Item = {
    "PK": s("p"),
    "count": n(5),
    "text": s("t"),
    "tags": {"SS": ["a", "b"]},
    "ids": {"NS": ["1", "2"]},
    "list": {"L": [s("0"), s("1"), s("2"), s("3")]},
    "map": {"M": {"x": n(1), "inner": {"L": [n(1), n(2)]}}},
}


def path(*steps: str | int) -> Path:
    return Path(steps)


def v(attribute: AttributeValue) -> Value:
    return Value(attribute)


def changed(**attributes: AttributeValue) -> Item:
    return {**ITEM, **attributes}


def without(*names: str) -> Item:
    return {name: value for name, value in ITEM.items() if name not in names}


MAP_INNER = {"L": [n(1), n(2)]}

UPDATES: list[tuple[list[Action], Item]] = [
    ([], ITEM),
    ([Set(path("new"), v(n("1.50")))], changed(new=n("1.5"))),
    ([Set(path("text"), v(n(1))), Set(path("count"), path("text"))], changed(text=n(1), count=s("t"))),
    ([Set(path("a"), path("count")), Set(path("count"), v(n(0)))], changed(a=n(5), count=n(0))),
    ([Set(path("a"), path("map", "inner", 1))], changed(a=n(2))),
    ([Set(path("count"), Arithmetic("+", path("count"), v(n("0.5"))))], changed(count=n("5.5"))),
    ([Set(path("count"), Arithmetic("-", v(n(1)), path("count")))], changed(count=n(-4))),
    ([Set(path("count"), Arithmetic("-", path("count"), v(n(5))))], changed(count=n(0))),
    ([Set(path("a"), Arithmetic("+", IfNotExists(path("a"), v(n(7))), v(n(1))))], changed(a=n(8))),
    ([Set(path("a"), IfNotExists(path("count"), v(n(7))))], changed(a=n(5))),
    ([Set(path("a"), IfNotExists(path("nowhere", "deep"), path("text")))], changed(a=s("t"))),
    (
        [Set(path("list"), ListAppend(path("list"), v({"L": [n(1)]})))],
        changed(list={"L": [s("0"), s("1"), s("2"), s("3"), n(1)]}),
    ),
    (
        [Set(path("log"), ListAppend(IfNotExists(path("log"), v({"L": []})), v({"L": [n(1)]})))],
        changed(log={"L": [n(1)]}),
    ),
    ([Set(path("map", "y"), v(s("y")))], changed(map={"M": {"x": n(1), "inner": MAP_INNER, "y": s("y")}})),
    ([Set(path("map", "inner", 0), v(s("y")))], changed(map={"M": {"x": n(1), "inner": {"L": [s("y"), n(2)]}}})),
    (
        [Set(path("list", 9), v(s("b"))), Set(path("list", 7), v(s("a"))), Set(path("list", 1), v(s("x")))],
        changed(list={"L": [s("0"), s("x"), s("2"), s("3"), s("a"), s("b")]}),
    ),
    ([Remove(path("count")), Remove(path("nowhere"))], without("count")),
    (
        [Remove(path("list", 0)), Remove(path("list", 2)), Remove(path("list", 17))],
        changed(list={"L": [s("1"), s("3")]}),
    ),
    (
        [Remove(path("list", 1)), Set(path("list", 3), v(s("x"))), Set(path("list", 4), v(s("y")))],
        changed(list={"L": [s("0"), s("2"), s("x"), s("y")]}),
    ),
    ([Remove(path("map", "inner")), Remove(path("map", "z"))], changed(map={"M": {"x": n(1)}})),
    ([Add(path("count"), n(3))], changed(count=n(8))),
    ([Add(path("count"), n(-5))], changed(count=n(0))),
    ([Add(path("hits"), n("2.50"))], changed(hits=n("2.5"))),
    ([Add(path("map", "x"), n(1))], changed(map={"M": {"x": n(2), "inner": MAP_INNER}})),
    ([Add(path("tags"), {"SS": ["c", "a"]})], changed(tags={"SS": ["a", "b", "c"]})),
    ([Add(path("new"), {"BS": [b(b"x")["B"]]})], changed(new={"BS": [b(b"x")["B"]]})),
    ([Add(path("ids"), {"NS": ["1.0", "3"]})], changed(ids={"NS": ["1", "2", "3"]})),
    ([Discard(path("tags"), {"SS": ["a", "z"]})], changed(tags={"SS": ["b"]})),
    ([Discard(path("tags"), {"SS": ["a", "b"]})], without("tags")),
    ([Discard(path("ids"), {"NS": ["2.0"]})], changed(ids={"NS": ["1"]})),
    ([Discard(path("nowhere"), {"SS": ["a"]})], ITEM),
]


@pytest.mark.parametrize(("actions", "expected"), UPDATES)
def test_updates(actions: list[Action], expected: Item) -> None:
    before = deepcopy(ITEM)
    assert update_of(actions, KEY)(ITEM) == expected
    assert before == ITEM, "the item given must stay as it is"


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ([], KEY),
        ([Set(path("a"), v(n(1)))], {"PK": s("p"), "a": n(1)}),
        ([Add(path("a"), n(1)), Remove(path("b"))], {"PK": s("p"), "a": n(1)}),
        ([Remove(path("a"))], None),
        ([Remove(path("a", "b"))], None),
        ([Discard(path("a"), {"SS": ["x"]})], None),
    ],
)
def test_updates_of_an_item_that_is_not_there(actions: list[Action], expected: Item | None) -> None:
    assert update_of(actions, KEY)(None) == expected


NO_ATTRIBUTE = "The provided expression refers to an attribute that does not exist in the item"
WRONG_TYPE = "An operand in the update expression has an incorrect data type"
NO_PATH = "The document path provided in the update expression is invalid for update"
OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"

REJECTED: list[tuple[list[Action], str]] = [
    ([Set(path("a"), path("nowhere"))], NO_ATTRIBUTE),
    ([Set(path("x"), v(n(4))), Set(path("y"), path("x"))], NO_ATTRIBUTE),
    ([Set(path("a"), Arithmetic("+", path("nowhere"), v(n(1))))], NO_ATTRIBUTE),
    ([Set(path("a"), Arithmetic("+", path("text"), v(n(1))))], WRONG_TYPE),
    ([Set(path("a"), ListAppend(path("text"), v({"L": []})))], WRONG_TYPE),
    ([Add(path("text"), n(1))], WRONG_TYPE),
    ([Add(path("tags"), {"NS": ["1"]})], WRONG_TYPE),
    ([Add(path("list"), {"NS": ["1"]})], WRONG_TYPE),
    ([Discard(path("ids"), {"SS": ["1"]})], WRONG_TYPE),
    ([Set(path("text", "a"), v(n(1)))], NO_PATH),
    ([Set(path("list", "a"), v(n(1)))], NO_PATH),
    ([Set(path("map", 0), v(n(1)))], NO_PATH),
    ([Set(path("nowhere", 0), v(n(1)))], NO_PATH),
    ([Set(path("list", 9, "a"), v(n(1)))], NO_PATH),
    ([Remove(path("nowhere", "a"))], NO_PATH),
    ([Remove(path("text", 0))], NO_PATH),
    ([Set(path("a"), Arithmetic("+", v(n("9e125")), v(n("9e125"))))], OVERFLOW),
    ([Set(path("a"), Arithmetic("-", v(n("1e50")), v(n(1))))], OVERFLOW),
    (
        [Set(path("PK"), v(s("q")))],
        "One or more parameter values were invalid: Cannot update attribute PK. This attribute is part of the key",
    ),
    (
        [Remove(path("PK"))],
        "One or more parameter values were invalid: Cannot update attribute PK. This attribute is part of the key",
    ),
    (
        [Set(path("a"), v(n(1))), Remove(path("a"))],
        "Invalid UpdateExpression: Two document paths overlap with each other; must remove or rewrite one of"
        " these paths; path one: [a], path two: [a]",
    ),
    (
        [Set(path("a", "b"), v(n(1))), Remove(path("a", 1))],
        "Invalid UpdateExpression: Two document paths conflict with each other; must remove or rewrite one of"
        " these paths; path one: [a, b], path two: [a, [1]]",
    ),
    (
        [Add(path("a"), s("x"))],
        "Invalid UpdateExpression: Incorrect operand type for operator or function; operator: ADD,"
        " operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND",
    ),
    (
        [Discard(path("a"), n(1))],
        "Invalid UpdateExpression: Incorrect operand type for operator or function; operator: DELETE,"
        " operand type: NUMBER, typeSet: ALLOWED_FOR_DELETE_OPERAND",
    ),
    (
        [Set(path("a"), ListAppend(path("list"), v(s("x"))))],
        "Invalid UpdateExpression: Incorrect operand type for operator or function;"
        " operator or function: list_append, operand type: S",
    ),
    (
        [Set(path("a"), Arithmetic("-", v(s("x")), v(n(1))))],
        "Invalid UpdateExpression: Incorrect operand type for operator or function;"
        " operator or function: -, operand type: S",
    ),
    (
        [Set(path("a"), Size(path("list")))],
        "Invalid UpdateExpression: The function is not allowed in an update expression; function: size",
    ),
]


@pytest.mark.parametrize(("actions", "message"), REJECTED)
def test_rejected_updates(actions: list[Action], message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        update_of(actions, KEY)(ITEM)
    assert str(caught.value) == message


def test_sums_are_exact_to_38_digits() -> None:
    update = update_of([Add(path("count"), n("0." + "0" * 36 + "1"))], KEY)
    assert update(ITEM) == changed(count=n("5." + "0" * 36 + "1"))
