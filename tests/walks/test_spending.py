"""How much a call may still read: what comes next is expected to cost as much as the dearest so far."""

from __future__ import annotations

import pytest

from adjoin import Budget
from adjoin.plans.steps.spending import Spending
from adjoin.requests import BatchGet, BatchGetResponse, Consumed, Get

BATCH = BatchGet((Get("t", {"PK": {"S": "a"}}), Get("t", {"PK": {"S": "b"}})))


def response(units: float) -> BatchGetResponse:
    return BatchGetResponse([None, None], consumed=(Consumed("t", None, units, 0.0),))


@pytest.mark.parametrize("costs", [(20.0, 2.0), (2.0, 20.0)])
def test_gets_are_expected_to_cost_as_much_as_the_dearest(costs: tuple[float, float]) -> None:
    spending = Spending(Budget(rcu=100))
    for units in costs:
        spending.note([BATCH], [response(units)])
    # 22 are spent, and one item took 10.
    assert (spending.rcu, spending.gets(50)) == (22.0, 7)
    assert spending.gets(3) == 3
    assert spending.room([[BATCH], [BATCH], [BATCH], [BATCH]]) == 3
