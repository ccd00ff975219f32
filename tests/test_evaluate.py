from __future__ import annotations

import pytest

from adjoin.errors import InvalidRequest
from adjoin.evaluate import condition_test, projector
from adjoin.expressions import (
    And,
    BeginsWith,
    Comparator,
    Compare,
    Condition,
    Exists,
    In,
    Not,
    Operand,
    Or,
    Path,
    Size,
    paths_in,
)
from adjoin.values import Item
from tests.stores.examples import n
from tests.stores.expressions import (
    COMPARISONS,
    CONDITIONS,
    ITEM,
    PROJECTIONS,
    REJECTED_CONDITIONS,
    REJECTED_PROJECTIONS,
    path,
    v,
)


@pytest.mark.parametrize(("left", "operator", "right", "expected"), COMPARISONS)
def test_comparisons(left: Operand, operator: Comparator, right: Operand, expected: bool) -> None:
    assert condition_test(Compare(operator, left, right))(ITEM) is expected


@pytest.mark.parametrize(("condition", "expected"), CONDITIONS)
def test_conditions(condition: Condition, expected: bool) -> None:
    assert condition_test(condition)(ITEM) is expected


@pytest.mark.parametrize(("condition", "message"), REJECTED_CONDITIONS)
def test_rejected_without_looking_at_an_item(condition: Condition, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        condition_test(And((Exists(path("x")), Not(condition))))
    assert str(caught.value) == message


def test_in_needs_operands() -> None:
    with pytest.raises(InvalidRequest, match="Invalid ConditionExpression: IN takes 1 to 100 operands, not none"):
        condition_test(In(path("a"), ()))


def test_a_filter_is_named_in_its_errors() -> None:
    with pytest.raises(InvalidRequest, match="Invalid FilterExpression: Incorrect operand type"):
        condition_test(BeginsWith(path("a"), v(n(1))), "FilterExpression")


def test_paths_in_a_condition() -> None:
    condition = Or((Not(Compare("<", Size(path("a", 0)), path("b"))), In(path("c"), (v(n(1)), path("d")))))
    assert list(paths_in(condition)) == [path("a", 0), path("b"), path("c"), path("d")]


@pytest.mark.parametrize(("paths", "expected"), PROJECTIONS)
def test_projections(paths: list[Path], expected: Item) -> None:
    assert projector(paths)(ITEM) == expected


@pytest.mark.parametrize(("paths", "message"), REJECTED_PROJECTIONS)
def test_paths_that_cannot_go_together(paths: list[Path], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        projector(paths)
