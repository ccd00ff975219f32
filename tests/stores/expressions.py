"""Conditions, projections and updates with what they must come to, for the evaluator and for every store."""

from __future__ import annotations

from adjoin.expressions import (
    Action,
    Add,
    And,
    Arithmetic,
    BeginsWith,
    Between,
    Comparator,
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
    Operand,
    Or,
    Path,
    Remove,
    Set,
    Size,
    Value,
)
from adjoin.values import AttributeValue, Item
from tests.stores.examples import b, n, s


def path(*steps: str | int) -> Path:
    return Path(steps)


def v(attribute: AttributeValue) -> Value:
    return Value(attribute)


# --- conditions ----------------------------------------------------------------------------------

ITEM: Item = {
    "text": s("héllo"),
    "astral": s("é\U0001d11e"),
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
    (Size(path("astral")), "=", v(n(3)), True),
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


REJECTED_CONDITIONS: list[tuple[Condition, str]] = [
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
        " valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}",
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


# --- projections ---------------------------------------------------------------------------------

PROJECTIONS: list[tuple[list[Path], Item]] = [
    ([path("one"), path("missing")], {"one": n(1)}),
    ([path("map", "a")], {"map": {"M": {"a": n(1)}}}),
    ([path("map", "a"), path("map", "b", 1)], {"map": {"M": {"a": n(1), "b": {"L": [s("y")]}}}}),
    ([path("list", 2), path("list", 0)], {"list": {"L": [n(1), {"M": {"three": n(3)}}]}}),
    ([path("list", 9), path("map", "z"), path("text", "x"), path("one")], {"one": n(1)}),
    ([path("list", "x")], {}),
]


REJECTED_PROJECTIONS: list[tuple[list[Path], str]] = [
    ([path("a"), path("a")], "overlap with each other; .* path one: \\[a\\], path two: \\[a\\]"),
    ([path("a"), path("a", "b")], "overlap with each other; .* path one: \\[a\\], path two: \\[a, b\\]"),
    ([path("a", "b"), path("a")], "overlap with each other; .* path one: \\[a, b\\], path two: \\[a\\]"),
    ([path("a", "b"), path("a", 0)], "conflict with each other; .* path two: \\[a, \\[0\\]\\]"),
]


# --- updates -------------------------------------------------------------------------------------

KEY: Item = {"id": s("p")}
BEFORE: Item = {
    "id": s("p"),
    "count": n(5),
    "text": s("t"),
    "tags": {"SS": ["a", "b"]},
    "ids": {"NS": ["1", "2"]},
    "list": {"L": [s("0"), s("1"), s("2"), s("3")]},
    "map": {"M": {"x": n(1), "inner": {"L": [n(1), n(2)]}}},
}


def changed(**attributes: AttributeValue) -> Item:
    return {**BEFORE, **attributes}


def without(*names: str) -> Item:
    return {name: value for name, value in BEFORE.items() if name not in names}


MAP_INNER = {"L": [n(1), n(2)]}

UPDATES: list[tuple[list[Action], Item]] = [
    ([], BEFORE),
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
    ([Discard(path("nowhere"), {"SS": ["a"]})], BEFORE),
]


CREATIONS: list[tuple[list[Action], Item | None]] = [
    ([], KEY),
    ([Set(path("a"), v(n(1)))], {**KEY, "a": n(1)}),
    ([Add(path("a"), n(1)), Remove(path("b"))], {**KEY, "a": n(1)}),
    ([Remove(path("a"))], None),
    ([Discard(path("a"), {"SS": ["x"]})], None),
]
"""What updates make of an item that is not there."""

NO_ATTRIBUTE = "The provided expression refers to an attribute that does not exist in the item"
WRONG_TYPE = "An operand in the update expression has an incorrect data type"
NO_PATH = "The document path provided in the update expression is invalid for update"
OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"

REJECTED_UPDATES: list[tuple[list[Action], str]] = [
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
        [Set(path("id"), v(s("q")))],
        "One or more parameter values were invalid: Cannot update attribute id. This attribute is part of the key",
    ),
    (
        [Remove(path("id"))],
        "One or more parameter values were invalid: Cannot update attribute id. This attribute is part of the key",
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
