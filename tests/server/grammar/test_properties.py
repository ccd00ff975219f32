"""Any tree survives being written as text and read again; any text is read or refused, with work in proportion."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adjoin.errors import InvalidRequest
from adjoin.evaluate import TYPES, condition_test
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
)
from adjoin.requests import Query, SortCondition
from adjoin.server.grammar import Bindings, Expressions, KeyConditions, read_condition, read_projection, read_update
from adjoin.server.grammar.expressions import _kept
from adjoin.stores.dynamodb.protocol import Placeholders as Written
from adjoin.stores.updates import update_of
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from adjoin.values import AttributeValue
from tests.server.grammar.test_conditions import FAULTS, ORDER, REDUNDANT, SYNTAX
from tests.shares import examples
from tests.stores.examples import n, s

# --- trees, as text and back -------------------------------------------------------------------

names = st.text(min_size=1, max_size=6)
paths = st.builds(
    lambda first, rest: Path((first, *rest)), names, st.lists(names | st.integers(0, 2**31 - 1), max_size=4)
)
texts = st.builds(s, st.text(max_size=5))
numbers = st.builds(n, st.integers(-(10**9), 10**9))
ordered = texts | numbers
others: list[AttributeValue] = [
    {"BOOL": True}, {"NULL": True}, {"B": "YWI="}, {"SS": ["a", "b"]}, {"NS": ["1"]},
]  # fmt: skip
attributes = (
    ordered | st.sampled_from(others) | st.builds(lambda elements: {"L": elements}, st.lists(ordered, max_size=2))
)
values = st.builds(Value, attributes)
ordered_operands: st.SearchStrategy[Any] = paths | st.builds(Value, ordered) | st.builds(Size, paths)
operands: st.SearchStrategy[Any] = paths | values | st.builds(Size, paths)
prefixes: st.SearchStrategy[Any] = paths | st.builds(Value, texts)


def distinct(first: object, *others: object) -> bool:
    return not (isinstance(first, Path) and first in others)


leaves: st.SearchStrategy[Condition] = st.one_of(
    st.builds(Compare, st.sampled_from(["=", "<>"]), operands, operands).filter(lambda it: distinct(it.left, it.right)),
    st.builds(Compare, st.sampled_from(["<", "<=", ">", ">="]), ordered_operands, ordered_operands).filter(
        lambda it: distinct(it.left, it.right)
    ),
    st.builds(Between, ordered_operands, paths, ordered_operands).filter(
        lambda it: distinct(it.operand, it.low, it.high)
    ),
    st.builds(lambda operand, low, more: Between(operand, Value(n(low)), Value(n(low + more))),
              ordered_operands, st.integers(-9, 9), st.integers(0, 9)),
    st.builds(In, operands, st.lists(operands, min_size=1, max_size=3).map(tuple)).filter(
        lambda it: distinct(it.operand, *it.options)
    ),
    st.builds(Exists, paths),
    st.builds(HasType, paths, st.sampled_from(TYPES)),
    st.builds(BeginsWith, prefixes, prefixes).filter(lambda it: distinct(it.operand, it.prefix)),
    st.builds(Contains, operands, operands).filter(lambda it: distinct(it.operand, it.element)),
)  # fmt: skip


def _joined(kind: type[And] | type[Or], inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    return st.lists(inner, min_size=2, max_size=3).map(lambda parts: kind(tuple(parts)))


conditions = st.recursive(
    leaves, lambda inner: _joined(And, inner) | _joined(Or, inner) | st.builds(Not, inner), max_leaves=12
)


def bindings_of(written: Written) -> Bindings:
    payload: dict[str, Any] = {}
    written.complete(payload)
    return Bindings(payload.get("ExpressionAttributeNames"), payload.get("ExpressionAttributeValues"))


@given(conditions)
@settings(max_examples=examples(100))
def test_conditions_survive_being_written(condition: Condition) -> None:
    written = Written()
    text = written.condition(condition)
    bindings = bindings_of(written)
    found = read_condition(text, bindings)
    assert found == condition
    bindings.check_unused()
    condition_test(found)


terms: st.SearchStrategy[Any] = st.recursive(
    paths | st.builds(Value, numbers | texts),
    lambda inner: st.builds(IfNotExists, paths, inner).filter(lambda it: distinct(it.path, it.default)),
    max_leaves=3,
)
sums: st.SearchStrategy[Any] = terms.filter(lambda it: not (isinstance(it, Value) and "S" in it.attribute))
lists: st.SearchStrategy[Any] = terms.filter(lambda it: not isinstance(it, Value))
amounts: st.SearchStrategy[Any] = (
    values
    | terms
    | st.builds(Arithmetic, st.sampled_from(["+", "-"]), sums, sums)
    | st.builds(ListAppend, lists, lists | st.just(Value({"L": [n(1)]})))
)
sets = st.sampled_from([{"SS": ["a"]}, {"NS": ["1", "2"]}, {"BS": ["YQ=="]}])


@st.composite
def updates(draw: st.DrawFn) -> tuple[Action, ...]:
    """Actions on different attributes, clause by clause in the order in which they are written."""
    targets = draw(st.lists(paths, min_size=1, max_size=6, unique_by=lambda path: path.steps[0]))
    kinds = sorted(draw(st.lists(st.integers(0, 3), min_size=len(targets), max_size=len(targets))))
    makers = (
        lambda path: Set(path, draw(amounts)),
        Remove,
        lambda path: Add(path, draw(numbers | sets)),
        lambda path: Discard(path, draw(sets)),
    )
    return tuple(makers[kind](path) for kind, path in zip(kinds, targets, strict=True))


@given(updates())
@settings(max_examples=examples(67))
def test_updates_survive_being_written(actions: tuple[Action, ...]) -> None:
    written = Written()
    text = written.update(actions)
    bindings = bindings_of(written)
    found = read_update(text, bindings)
    assert found == actions
    bindings.check_unused()
    update_of(found, {})


@given(st.lists(paths, min_size=1, max_size=6, unique_by=lambda path: path.steps[0]))
def test_projections_survive_being_written(projection: list[Path]) -> None:
    written = Written()
    text = written.projection(projection)
    assert read_projection(text, bindings_of(written)) == tuple(projection)


@given(
    names, names, texts.filter(lambda it: it["S"] != ""), st.data(),
    st.sampled_from(["=", "<", "<=", ">", ">=", "between", "begins_with"]),
)  # fmt: skip
def test_key_conditions_survive_being_written(
    partition: str, sort: str, value: AttributeValue, data: st.DataObject, operator: Any
) -> None:
    if partition == sort:
        sort += "2"
    bounds = sorted(data.draw(st.lists(st.text(min_size=1), min_size=2, max_size=2)))
    condition = SortCondition(sort, operator, tuple(s(bound) for bound in bounds[: 1 + (operator == "between")]))
    query = Query("t", (partition, value), condition)
    table = TableDefinition("t", KeyAttribute(partition), KeyAttribute(sort))
    assert read_again(query).on(table) == (query.partition, condition, ())


def read_again(query: Query) -> KeyConditions:
    """The conditions of a query, written for the service and read again."""
    written = Written()
    payload: dict[str, Any] = {"KeyConditionExpression": written.key_condition(query)}
    written.complete(payload)
    keys = Expressions.of(payload).keys
    assert keys is not None
    return keys


@given(
    st.lists(st.text(min_size=1, max_size=20), min_size=3, max_size=8, unique=True),
    st.data(),
    st.sampled_from(["=", ">"]),
)
def test_conditions_on_several_keys_survive_being_written(names: list[str], data: st.DataObject, operator: Any) -> None:
    partitions = data.draw(st.integers(1, 4))
    keys = [KeyAttribute(name) for name in names[: partitions + 4]]
    index = IndexDefinition.over("i", keys[:partitions], keys[partitions:])
    named = data.draw(st.integers(0, len(index.sorts)))
    first, *others = [(key.name, s(f"of {key.name}")) for key in (*index.partitions, *index.sorts[: max(named - 1, 0)])]
    sort = SortCondition(index.sorts[named - 1].name, operator, (s("x"),)) if named else None
    query = Query("t", first, sort, index="i", equal=tuple(others))
    assert read_again(query).on(index) == (query.partition, query.sort, query.equal)


# --- any text ----------------------------------------------------------------------------------

WORDS = [
    "a", "b", "#a", "#u", ":n", ":s", ":u", "size", "status", "attribute_exists", "begins_with", "contains",
    "attribute_type", "if_not_exists", "list_append", "foo", "AND", "or", "NOT", "BETWEEN", "IN", "SET", "REMOVE",
    "ADD", "DELETE", "=", "<>", "<", "<=", ">", ">=", "(", ")", "(", ")", "[", "]", "0", "12", ".", ",", "+", "-",
    " ", "\n", "#", ":", "_", "!", "é", "\u2028", "😀", '"', "\x00",
]  # fmt: skip
VALID = [
    "a = :n AND (b <> :s OR NOT size(#a) > :n)", "a BETWEEN :n AND :n", "b IN (:n, :s)", "begins_with(a.b[0], :s)",
    "SET a = if_not_exists(a, :n) + :n, b = list_append(b, #a) REMOVE c ADD d :n", "a, b.c[1], #a",
]  # fmt: skip
READERS = ("ConditionExpression", "KeyConditionExpression", "UpdateExpression", "ProjectionExpression")

soups = st.lists(st.sampled_from(WORDS), max_size=40).flatmap(
    lambda words: st.sampled_from(["", " "]).map(lambda space: space.join(words))
)


@st.composite
def mutants(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(["", *WORDS])) + text[at + draw(st.integers(0, 3)) :]
    return text


# How a message may begin that does not name its expression.
REFUSALS = (
    "Value provided in ",
    "Invalid operator used in KeyConditionExpression: ",
    "Invalid condition in KeyConditionExpression: ",
)


def check(text: str) -> None:
    """Each kind of expression reads it, or says in the service's form what is wrong with it."""
    for parameter in READERS:
        request = {
            parameter: text,
            "ExpressionAttributeNames": {"#a": "a"},
            "ExpressionAttributeValues": {":n": n(1), ":s": s("x")},
        }
        said = None
        try:
            Expressions.of(request)
        except InvalidRequest as fault:
            said = str(fault)
        assert said is None or said.startswith((f"Invalid {parameter}: ", *REFUSALS))


@given(soups | mutants() | st.text(max_size=60))
@example("(" * 4096)
@example("(" * 4095 + ")")
@example("(" * 2046 + "a<b" + ")" * 2046)
@example("a=(" * 1365)
@example("a < " + "f(" * 1355 + "b" + ")" * 1355)
@example("a < " + "size(" * 680 + "b" + ")" * 680)
@example("a < " + "size(a, " * 450 + "b" + ")" * 450)
@example("attribute_exists(" * 240)
@example("not " * 1023 + "a")
@example("not (" * 300 + "a<b" + ")" * 300)
@example("SET a = " + "if_not_exists(a," * 255)
@example("SET a = " + "if_not_exists(b," * 230 + ":n" + ")" * 230)
@example("SET a = " + "(" * 4000)
@example("a" + ".a" * 2047)
@example("REMOVE " + "a.b" + ".a" * 2000 + ",a.b" + ".a" * 10)
@example("a" + "[0]" * 1365)
@example("a[" + "9" * 4090 + "]")
@example("#" * 4096)
@example("a," * 2048)
@example("a=a OR " * 585)
@settings(max_examples=examples(134), deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    check(text)


# --- work ---------------------------------------------------------------------------------------

GROWING: dict[str, Callable[[int], str]] = {
    "open": lambda n: "(" * n,
    "nested": lambda n: "(" * n + "a<b" + ")" * n,
    "opened operands": lambda n: "a=(" * n,
    "calls": lambda n: "a < " + "f(" * n + "b" + ")" * n,
    "sizes": lambda n: "a < " + "size(a, " * n + "b" + ")" * n,
    "open calls": lambda n: "attribute_exists(" * n,
    "negations": lambda n: "not " * n + "a<b",
    "nested negations": lambda n: "not (" * n + "a<b" + ")" * n,
    "alternatives": lambda n: "a=a OR " * (n // 4) + "a<b",
    "unfinished alternatives": lambda n: "a=a OR " * n,
    "alternating": lambda n: "a=a OR a<b AND " * (n // 4) + "a<b",
    "members": lambda n: "a IN (b" + ",b" * n + ")",
    "defaults": lambda n: "SET a = " + "if_not_exists(b," * n + ":n" + ")" * n,
    "open defaults": lambda n: "SET a = " + "if_not_exists(a," * n,
    "assignments": lambda n: "SET a1 = :n" + "".join(f", a{each} = :n" for each in range(n)),
    "removals": lambda n: "REMOVE b" + "".join(f", a{each}" for each in range(n)),
    "deep removals": lambda n: "REMOVE a.b" + ".a" * n + ",a.b" + ".a" * (n // 2),
    "steps": lambda n: "a" + ".a" * n,
    "indexes": lambda n: "a" + "[0]" * n,
    "digits": lambda n: "a[" + "9" * n + "]",
    "names": lambda n: "#" * n,
    "places": lambda n: "a" + "".join(f",b{each}" for each in range(n)),
    "spaces": lambda n: "a" + " " * n + "<b",
}


def calls_to_read(text: str) -> int:
    """How many functions are called, of Python and built in, to read a text as each kind of expression."""
    calls = 0
    _kept.cache_clear()

    def count(frame: FrameType, event: str, function: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        check(text)
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("grown", GROWING.values(), ids=GROWING)
def test_work_grows_with_the_length_and_no_faster(grown: Callable[[int], str]) -> None:
    calls_to_read(grown(40))  # what is made once
    # Below the greatest number of operators, beyond which a text is refused sooner.
    few, more, most = (calls_to_read(grown(size)) for size in (40, 80, 160))
    # Twice as much text is twice the work; were it the square, it would be four times.
    assert most - more <= 3 * max(more - few, 40)


@pytest.mark.parametrize("text", [case[0] for case in [*SYNTAX, *FAULTS, *ORDER]] + REDUNDANT)
def test_texts_cut_off_anywhere_are_read_or_refused(text: str) -> None:
    generator = random.Random(text)
    for _ in range(5):
        check(text[: generator.randrange(len(text) + 1)])
        check(text[generator.randrange(len(text) + 1) :])


def test_what_is_read_from_the_deepest_text_can_be_evaluated() -> None:
    for text in ("not (" * 299 + "a<b" + ")" * 299, "a<b " + "or (a<b " * 149 + ")" * 149):
        condition = read_condition(text, Bindings())
        condition_test(condition)({"a": n(1), "b": n(2)})
    update_of(read_update("SET a = " + "if_not_exists(b," * 230 + "c" + ")" * 230, Bindings()), {})({"c": n(1)})
