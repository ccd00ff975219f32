"""How large an expression may be: counted quickly by the embedded store, and exactly by what DynamoDB is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adjoin.errors import InvalidRequest
from adjoin.evaluate import path_reader, path_tree
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
    length_of,
    operators_in,
)
from adjoin.requests import Check, Delete, Get, Put, Query, Request, Scan, TransactGet, TransactWrite, Update
from adjoin.server.grammar.parser import parse_condition, parse_update
from adjoin.server.grammar.rules import FunctionContext, _walk
from adjoin.stores.dynamodb.protocol import Placeholders
from adjoin.stores.sqlite import SQLiteStore
from adjoin.stores.sqlite.store import _SURELY_SHORT
from adjoin.units import MAX_EXPRESSION_SIZE, MAX_NESTING, MAX_OPERATORS

N = attribute("n")
DEEP = Path(("deep", *[2**31 - 1] * (MAX_NESTING - 1)))
ONE = Value({"N": "1"})
LIST = Value({"L": []})

CONDITIONS: list[Condition] = [
    Compare("=", N, ONE),
    Compare("<>", DEEP, DEEP),
    Compare(">", Size(N), ONE),
    Between(N, ONE, Value({"N": "2"})),
    In(N, tuple(Value({"N": str(number)}) for number in range(100))),
    Exists(N),
    HasType(DEEP, "S"),
    BeginsWith(N, Value({"S": "a"})),
    Contains(N, ONE),
    Not(Exists(N)),
    And((Exists(N),)),
    And((Exists(N), Not(Exists(DEEP)), Or((Exists(N), Compare("<", Size(DEEP), ONE))))),
]
ACTIONS: list[Action] = [
    Set(N, ONE),
    Set(DEEP, IfNotExists(N, IfNotExists(DEEP, ONE))),
    Set(N, ListAppend(IfNotExists(N, LIST), LIST)),
    Set(N, Arithmetic("+", IfNotExists(N, ONE), ONE)),
    Remove(DEEP),
    Add(N, {"N": "1"}),
    Discard(N, {"SS": ["a"]}),
]


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_operators_are_counted_as_in_the_text(condition: Condition) -> None:
    text = Placeholders().condition(condition)
    assert operators_in(condition) == _walk(parse_condition(text), FunctionContext.CONDITION)


@pytest.mark.parametrize("action", ACTIONS, ids=str)
def test_operators_of_actions_are_counted_as_in_the_text(action: Action) -> None:
    (clause,) = parse_update(Placeholders().update([action]))
    (step,) = clause.steps
    assert operators_in(action) == _walk(step.value, FunctionContext.AMOUNT)


class Numerous(Placeholders):
    """Placeholders with as many digits as an expression of 4 KB can need."""

    def name(self, name: str) -> str:
        return "#9999"

    def value(self, value: Any) -> str:
        return ":9999"


@pytest.mark.parametrize("expression", [*CONDITIONS, *ACTIONS], ids=str)
def test_an_expression_that_is_surely_short_fits(expression: Any) -> None:
    """Also beside others, which takes parentheses and a word, or a comma."""
    most = MAX_EXPRESSION_SIZE // _SURELY_SHORT
    at = Numerous()
    text = at.condition(expression) if expression in CONDITIONS else at.update([expression])
    assert len(f"({text}) AND ") <= most * length_of((expression,))
    assert operators_in(expression) <= MAX_OPERATORS // _SURELY_SHORT * length_of((expression,))


def ors(number: int, name: str = "n") -> Condition:
    return Or(tuple(Compare("=", attribute(name), Value({"N": str(each)})) for each in range(number)))


KEY = {"pk": {"S": "a"}, "sk": {"S": "a"}}
MANY_NAMES = tuple(attribute(f"name{number}") for number in range(900))
TABLE = "edges"


@pytest.mark.parametrize(
    "request_",
    [
        Put(TABLE, KEY, ors(151)),
        Delete(TABLE, KEY, ors(151)),
        Update(TABLE, KEY, (Set(N, ONE),), ors(151)),
        Update(TABLE, KEY, tuple(Set(name, ONE) for name in MANY_NAMES)),
        TransactWrite((Put(TABLE, KEY), Check(TABLE, {**KEY, "sk": {"S": "b"}}, ors(151)))),
        Get(TABLE, KEY, projection=MANY_NAMES),
        TransactGet((Get(TABLE, KEY, projection=MANY_NAMES),)),
        Query(TABLE, ("pk", {"S": "a"}), filter=ors(151)),
        Scan(TABLE, filter=ors(151)),
        Scan(TABLE, projection=MANY_NAMES),
    ],
    ids=lambda request: f"{type(request).__name__}",
)
def test_a_large_expression_is_refused_before_the_file_is_asked(request_: Request, embedded: SQLiteStore) -> None:
    """So it is refused even where there is no table."""
    with pytest.raises(InvalidRequest, match="but DynamoDB takes at most"):
        embedded.execute([request_])


TOO_DEEP = Path(("a",) * (MAX_NESTING + 1))


@pytest.mark.parametrize("read", [path_reader, Placeholders().path, lambda path: path_tree((path,), "purpose")])
def test_a_path_that_no_item_can_have_is_refused(read: Callable[[Path], object]) -> None:
    read(Path(TOO_DEEP.steps[1:]))
    with pytest.raises(InvalidRequest, match="has 33 levels, but DynamoDB takes at most 32"):
        read(TOO_DEEP)
