"""The contract for expressions: every store answers conditions, projections and updates as the tables say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass

import pytest

from adjoin.errors import ConditionFailed
from adjoin.expressions import Action, Compare, Condition, Not, Path, Value
from adjoin.requests import Get, ItemResponse, Put, Query, Update
from adjoin.stores.interface import Store
from adjoin.values import Item
from tests.stores.examples import one, page, put, refused, s, stored, with_sorted_sets
from tests.stores.expressions import (
    BEFORE,
    COMPARISONS,
    CONDITIONS,
    CREATIONS,
    ITEM,
    KEY,
    PROJECTIONS,
    REJECTED_CONDITIONS,
    REJECTED_PROJECTIONS,
    REJECTED_UPDATES,
    UPDATES,
)

WHOLE: Item = {**ITEM, **KEY}
PARTITION = ("id", s("p"))


def spelled(expression: object) -> str:
    """An expression in few words, to know a case by."""
    if isinstance(expression, Path):
        return str(expression)
    if isinstance(expression, Value):
        return str(expression.attribute)
    if isinstance(expression, Compare):
        return f"{spelled(expression.left)} {expression.operator} {spelled(expression.right)}"
    if is_dataclass(expression):
        parts = ", ".join(spelled(getattr(expression, field.name)) for field in fields(expression))
        return f"{type(expression).__name__}({parts})"
    if isinstance(expression, Sequence) and not isinstance(expression, str):
        return ", ".join(map(spelled, expression))[:60] or "nothing"
    return str(expression)


def sentence(message: str) -> str:
    """What the service says first; the details behind it change with its versions."""
    return re.escape(message.partition(";")[0])


COMPARED = [(Compare(operator, left, right), expected) for left, operator, right, expected in COMPARISONS]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [pytest.param(*row, id=spelled(row[0])) for row in (*COMPARED, *CONDITIONS)],
)
def test_conditions(store: Store, condition: Condition, expected: bool) -> None:
    put(store, "Single", WHOLE)
    assert page(store, Query("Single", PARTITION, filter=condition)).count == expected
    assert page(store, Query("Single", PARTITION, filter=Not(condition))).count == (not expected)
    if expected:
        store.execute([Put("Single", WHOLE, condition)])
    else:
        with pytest.raises(ConditionFailed):
            store.execute([Put("Single", WHOLE, condition)])


@pytest.mark.parametrize(
    ("condition", "message"), [pytest.param(*row, id=spelled(row[0])) for row in REJECTED_CONDITIONS]
)
def test_rejected_conditions(store: Store, condition: Condition, message: str) -> None:
    with refused(store, sentence(message)):
        store.execute([Put("Single", WHOLE, condition)])
    with refused(store, sentence(message.replace("ConditionExpression", "FilterExpression"))):
        store.execute([Query("Single", PARTITION, filter=condition)])


@pytest.mark.parametrize(("paths", "expected"), [pytest.param(*row, id=spelled(row[0])) for row in PROJECTIONS])
def test_projections(store: Store, paths: list[Path], expected: Item) -> None:
    put(store, "Single", WHOLE)
    assert one(store, Get("Single", KEY, projection=tuple(paths)), ItemResponse).item == expected
    assert page(store, Query("Single", PARTITION, projection=tuple(paths))).items == [expected]


@pytest.mark.parametrize(("paths", "message"), [pytest.param(*row, id=spelled(row[0])) for row in REJECTED_PROJECTIONS])
def test_rejected_projections(store: Store, paths: list[Path], message: str) -> None:
    with refused(store, message):
        store.execute([Get("Single", KEY, projection=tuple(paths))])


@pytest.mark.parametrize(("actions", "expected"), [pytest.param(*row, id=spelled(row[0])) for row in UPDATES])
def test_updates(store: Store, actions: list[Action], expected: Item) -> None:
    put(store, "Single", BEFORE)
    store.execute([Update("Single", KEY, tuple(actions))])
    assert with_sorted_sets(stored(store, "Single", KEY)) == expected


@pytest.mark.parametrize(("actions", "expected"), [pytest.param(*row, id=spelled(row[0])) for row in CREATIONS])
def test_updates_of_an_item_that_is_not_there(store: Store, actions: list[Action], expected: Item | None) -> None:
    store.execute([Update("Single", KEY, tuple(actions))])
    assert stored(store, "Single", KEY) == expected


@pytest.mark.parametrize(("actions", "message"), [pytest.param(*row, id=spelled(row[0])) for row in REJECTED_UPDATES])
def test_rejected_updates(store: Store, actions: list[Action], message: str) -> None:
    put(store, "Single", BEFORE)
    with refused(store, sentence(message)):
        store.execute([Update("Single", KEY, tuple(actions))])
    assert with_sorted_sets(stored(store, "Single", KEY)) == BEFORE
