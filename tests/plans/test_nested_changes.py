"""Changes inside of values, as tables of what goes in and what comes out."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, Field

from adjoin import InvalidValue, Node, UnknownField, field
from adjoin.entity_types import NodeType
from adjoin.expressions import Arithmetic, IfNotExists, ListAppend, Path, Remove, Set, Value
from adjoin.fields import RelativeChange
from adjoin.plans.steps.nested import _sum, applied, collected, is_shallow, nested_action
from adjoin.schema import Schema


class Inner(BaseModel):
    text: str = Field("t", alias="Text")
    number: Decimal = Decimal(1)
    more: dict[str, Any] = {}


class Outer(Node):
    id: str
    inner: Inner = Inner()
    words: list[str] = []
    lists: dict[str, list[int]] = {}
    sets: dict[str, set[int]] = {}
    numbers: dict[str, int] = {}
    texts: dict[str, str] = {}


@pytest.fixture(scope="module")
def kind() -> NodeType:
    return Schema([Outer]).node(Outer)


@pytest.mark.parametrize(
    ("value", "changes", "expected"),
    [
        ({"a": 1}, [field("x.a").set(2)], {"a": 2}),
        ({"a": 1}, [field("x.b").set(2)], {"a": 1, "b": 2}),
        ({"a": 1, "b": 2}, [field("x.a").remove()], {"b": 2}),
        ({"a": 1}, [field("x.b").remove()], {"a": 1}),
        ({"a": 1}, [field("x.a") + 2, field("x.b") - 3], {"a": 3, "b": -3}),
        ({"a": Decimal("0.1")}, [field("x.a") + 1], {"a": Decimal("1.1")}),
        ({"a": 1}, [field("x.a") - Decimal("0.1")], {"a": Decimal("0.9")}),
        ({"a": [1]}, [field("x.a").append(2, 3)], {"a": [1, 2, 3]}),
        ({}, [field("x.a").append(2)], {"a": [2]}),
        ({"a": {1}}, [field("x.a").add([2])], {"a": {1, 2}}),
        ({}, [field("x.a").add([2])], {"a": {2}}),
        ({"a": {1, 2}}, [field("x.a").discard([2])], {"a": {1}}),
        ({"a": [1, 2, 1]}, [field("x.a").discard([1])], {"a": [2]}),
        ({"a": {"b": {"c": 1}}}, [field("x.a.b.c").set(2)], {"a": {"b": {"c": 2}}}),
        ([1, 2, 3], [field("x.0").set(9)], [9, 2, 3]),
        ([1, 2, 3], [field("x.7").set(9)], [1, 2, 3, 9]),
        ([1, 2, 3], [field("x.3").set(9)], [1, 2, 3, 9]),
        ([1, 2, 3], [field("x.0").remove(), field("x.1").remove()], [3]),
        ([1, 2, 3], [field("x.0").remove(), field("x.2").set(9)], [2, 9]),
        ([*range(12)], [field("x.2").remove(), field("x.10").remove()], [0, 1, 3, 4, 5, 6, 7, 8, 9, 11]),
        ([1, 2, 3], [field("x.7").remove()], [1, 2, 3]),
        ([{"a": 1}], [field("x.0.a") + 1], [{"a": 2}]),
        (Inner(Text="a"), [field("x.text").set("b")], Inner(Text="b")),
        (Inner(Text="a"), [field("x.text").remove()], Inner()),
        (Inner(Text="a"), [field("x.number") + 1, field("x.more.k").set(1)], Inner(Text="a", number=2, more={"k": 1})),
    ],
)
def test_changes_of_a_value_that_was_read(kind: NodeType, value: Any, changes: list[Any], expected: Any) -> None:
    assert applied(kind, "x", value, changes) == expected


@pytest.mark.parametrize(
    ("value", "change", "error", "words"),
    [
        (None, field("x.a").set(1), InvalidValue, r"Outer\.x is None, so there is no 'a' in it"),
        ({"a": 1}, field("x.a.b").set(1), InvalidValue, r"Outer\.x\.a is 1"),
        ([1], field("x.a").set(1), InvalidValue, "not a position"),
        ({"a": "t"}, field("x.a") + 1, InvalidValue, "1 cannot be added to 't'"),
        ({"a": 1}, field("x.a") - "t", InvalidValue, "'t' cannot be added to 0"),
        (Inner(), field("x.Text").set("b"), UnknownField, "did you mean 'text'"),
        (
            Inner(),
            field("x.number").set("many"),
            InvalidValue,
            r"this change would make Outer\.x\.number invalid: number",
        ),
    ],
)
def test_changes_that_cannot_be(kind: NodeType, value: Any, change: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        applied(kind, "x", value, [change])


@pytest.mark.parametrize(
    ("change", "is_list", "expected"),
    [
        (field("words.2").set("x"), True, Set(Path(("words", 2)), Value({"S": "x"}))),
        (field("words.2").remove(), True, Remove(Path(("words", 2)))),
        (field("numbers.2").remove(), False, Remove(Path(("numbers", "2")))),
        (
            field("numbers.a") - 2,
            False,
            Set(
                Path(("numbers", "a")),
                Arithmetic("-", IfNotExists(Path(("numbers", "a")), Value({"N": "0"})), Value({"N": "2"})),
            ),
        ),
        (
            field("lists.a").append(2),
            False,
            Set(
                Path(("lists", "a")),
                ListAppend(IfNotExists(Path(("lists", "a")), Value({"L": []})), Value({"L": [{"N": "2"}]})),
            ),
        ),
    ],
)
def test_actions_of_one_element(kind: NodeType, change: RelativeChange, is_list: bool, expected: Any) -> None:
    assert is_shallow(change)
    assert nested_action(kind, change.field.partition(".")[0], change, is_list=is_list) == expected


@pytest.mark.parametrize(
    ("change", "is_list", "words"),
    [
        (field("words.x").set("x"), True, "not a position"),
        (field("words.-1").set("x"), True, "not a position"),
        (field("words.409601").set("x"), True, "no position 409601"),
        (field("sets.a").append(1), False, "because it is not a list"),
        (field("texts.a") + "x", False, "because it is not a number"),
        (field("numbers.a").set("x"), False, r"Outer\.numbers"),
    ],
)
def test_actions_that_are_refused(kind: NodeType, change: RelativeChange, is_list: bool, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        nested_action(kind, change.field.partition(".")[0], change, is_list=is_list)


def test_what_needs_a_read() -> None:
    deep, wide = field("a.b.c").set(1), field("a.b").add([1])
    assert not is_shallow(deep)
    assert not is_shallow(wide)
    assert not is_shallow(field("a.b").discard([1]))


def test_changes_are_collected_by_field() -> None:
    city, street, tags = field("address.city").set("x"), field("address.street").remove(), field("tags").append(1)
    given = [city, tags, street, field("name").set("n"), field("note").remove()]
    assert collected("update", {"age": 1, "sum": field("sum") + 1}, given) == {
        "age": 1,
        "sum": field("sum") + 1,
        "tags": tags,
        "name": "n",
        "note": field("note").remove(),
        "address": RelativeChange("address", "within", (city, street)),
    }


@pytest.mark.parametrize(
    ("named", "given", "words"),
    [
        ({"a": field("b")}, [], r"a=field\('b'\) is a field and not a value"),
        ({"a": field("a").set(1)}, [], r"the change of field\('a'\) says by itself what changes"),
        ({"a": field("a").remove()}, [], r"the change of field\('a'\) says by itself"),
        ({"a": field("a.b") + 1}, [], r"pass it to update without a="),
        ({"a": 1}, [field("a").append(1)], "'a' is changed twice"),
        ({"a": 1}, [field("a.b").set(1)], "'a' is changed twice"),
        ({}, [field("a").set(1), field("a.b").set(1)], "'a' is changed twice"),
        ({}, [field("a.b").set(1), field("a").set(1)], "'a' is changed twice"),
        ({}, [field("a.b").set(1), field("a.b").set(1)], r"'a\.b' is changed twice"),
        ({}, [field("a.b.c").set(1), field("a.b").set(1)], r"'a\.b\.c' is changed twice"),
    ],
)
def test_changes_that_are_refused(named: dict[str, Any], given: list[Any], words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        collected("update", named, given)
    assert collected("update", {}, [field("a.b").set(1), field("a.bc").set(1)])["a"].operator == "within"


@pytest.mark.parametrize(
    ("value", "amount", "total"),
    [
        (None, 3, 3),
        (10**30, 1, 10**30 + 1),
        # More digits than a Decimal of Python's own precision would keep.
        (10**30, Decimal("0.5"), Decimal(f"1{'0' * 30}.5")),
        (Decimal("0.5"), 10**30, Decimal(f"1{'0' * 30}.5")),
        (Decimal(10**30), Decimal("0.5"), Decimal(f"1{'0' * 30}.5")),
    ],
)
def test_sums_are_exact(value: Any, amount: Any, total: Any) -> None:
    found = _sum("place", value, amount)
    assert (found, type(found)) == (total, type(total))
