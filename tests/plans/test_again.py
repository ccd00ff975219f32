"""Writes that others outrun: how often they are tried, and what they say in the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from adjoin import Edge, Graph, Indexed, Node, TransactionCanceled, Unique
from adjoin.errors import CancellationReason, ConditionFailed
from adjoin.plans.steps.again import (
    ATTEMPTS,
    Attempt,
    Done,
    Pace,
    always_again,
    decided,
    until_written,
)
from adjoin.plans.transaction import Buffer
from adjoin.requests import Get, Plan, TransactWrite
from tests.plans.test_repair import performed

WRITE = Get("t", {"PK": {"S": "x"}})
"""What an attempt yields; what it asks does not matter here."""


class Person(Node):
    id: str
    email: Annotated[str | None, Unique()] = None
    city: Annotated[str, Indexed()] = ""
    score: int = 0


class Knows(Edge[Person, Person], symmetric=True):
    since: int = 0


@pytest.fixture
def g() -> Iterator[Graph]:
    with Graph(":memory:", [Person, Knows]) as graph:
        yield graph


def driven(plan: Plan[Any], failures: int, error: Exception | None = None) -> tuple[Any, int]:
    """The result of a plan whose first writes fail, and how many rounds it yielded."""
    rounds = 0
    try:
        next(plan)
        while True:
            rounds += 1
            if rounds <= failures:
                plan.throw(error or ConditionFailed("no"))
            else:
                plan.send(["written"])
    except StopIteration as done:
        return done.value, rounds


def always(failed: Any = always_again, **more: Any) -> Any:
    return lambda: decided(Attempt((WRITE,), lambda responses: responses[0], failed, **more))


def test_it_tries_until_it_is_written() -> None:
    assert driven(until_written(always()), 0) == ("written", 1)
    assert driven(until_written(always()), ATTEMPTS - 1) == ("written", ATTEMPTS)
    with pytest.raises(ConditionFailed):
        driven(until_written(always()), ATTEMPTS)
    with pytest.raises(ConditionFailed):
        driven(until_written(always(), 2), 2)


def test_an_attempt_that_has_nothing_to_write() -> None:
    with pytest.raises(StopIteration) as done:
        next(until_written(lambda: decided(Done(5))))
    assert done.value.value == 5


def test_a_failure_that_is_an_answer() -> None:
    assert driven(until_written(always(lambda _: decided(None))), 1) == (None, 1)


def test_the_error_of_the_last_attempt() -> None:
    named = TransactionCanceled("named", [CancellationReason("None")])
    with pytest.raises(TransactionCanceled, match="named"):
        driven(until_written(always(error=lambda _: named), 3), 3)
    assert driven(until_written(always(error=lambda _: named), 3), 2) == ("written", 3)


def test_a_failure_while_deciding_is_none_of_the_write() -> None:
    def attempt() -> Plan[Any]:
        raise ConditionFailed("refused before anything was written")
        yield

    with pytest.raises(ConditionFailed, match="refused before"):
        next(until_written(attempt))


def test_a_pace_slows_down_and_gives_up() -> None:
    pace, problem = Pace(8), ConditionFailed("no")
    for width in (4, 2, 1, 1):
        pace.slow_down(problem)
        assert pace.width == width
    pace.go_on()
    for _ in range(ATTEMPTS - 1):
        pace.slow_down(problem)
    with pytest.raises(ConditionFailed):
        pace.slow_down(problem)


def test_a_transaction_that_is_always_outrun_says_what_it_was_for(g: Graph) -> None:
    g.put(Person(id="a", email="e", city="x"))
    others = [lambda: g.update(Person, "a", city="y")] * ATTEMPTS

    def transaction() -> Any:
        made = Buffer(g._layout)
        made.update(g._changed("update", Person, ("a",), {"score": 5}, None, None))
        return made.commit()

    with pytest.raises(TransactionCanceled, match="nothing was written, because of update Person 'a'") as failed:
        performed(g, transaction(), *others)
    assert [reason.message[:6] for reason in failed.value.reasons if reason.is_failed_condition] == ["update"]
    assert g.get(Person, "a").score == 0  # type: ignore[union-attr]
    performed(g, transaction(), *others[:-1])
    assert g.get(Person, "a") == Person(id="a", email="e", city="y", score=5)


def test_both_items_of_a_symmetric_edge_are_put_in_one_transaction(g: Graph) -> None:
    (request,) = next(g._put(Knows(source="a", target="b"), None))
    assert isinstance(request, TransactWrite)
    assert len(request.writes) == 2
