"""Sums near the limit of 38 digits: what fits is exact, and what does not holds nothing else up."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated

import pytest

from adjoin import Count, Edge, Graph, Node, Sum

HUGE, TINY = Decimal("12345678901234567890"), Decimal("1E-20")


class Account(Node):
    id: str
    balance: Annotated[Decimal, Sum("Booked", field="amount")] = Decimal(0)
    bookings: Annotated[int, Count("Booked")] = 0


class Period(Node):
    id: int


class Booked(Edge[Account, Period]):
    amount: Decimal


@pytest.fixture
def graph() -> Iterator[Graph]:
    with Graph(":memory:", [Account, Period, Booked]) as graph:
        graph.put_many([Account(id="A"), Account(id="B"), Period(id=1), Period(id=2)])
        graph.connect(Booked, "A", 1, amount=HUGE)
        graph.connect(Booked, "B", 1, amount=Decimal(5))
        graph.maintain(once=True)
        yield graph


def shown(graph: Graph, id: str) -> tuple[Decimal, int]:
    account = graph.get(Account, id)
    assert account is not None
    return account.balance, account.bookings


def test_a_difference_may_have_more_digits_than_either_sum(graph: Graph) -> None:
    graph.update(Booked, "A", 1, amount=TINY)
    assert graph.maintain(once=True).set_aside == ()
    assert shown(graph, "A") == (TINY, 1)


def test_a_sum_that_cannot_be_stored_holds_up_no_audit(graph: Graph) -> None:
    graph.connect(Booked, "A", 2, amount=TINY)
    assert {each.rule for each in graph.maintain(once=True).set_aside} == {"ACCOUNT.balance"}
    assert shown(graph, "A") == (HUGE, 2)
    graph.disconnect(Booked, "B", 1)
    audit = graph.verify(threads=1)
    examples = [example for each in audit.findings if each.name == "ACCOUNT.balance" for example in each.examples]
    assert examples == [
        {"node": "A", "stored": int(HUGE), "computed": None},
        {"node": "B", "stored": 5, "computed": 0},
    ]
    rebuilt = graph.rebuild(threads=1)
    assert shown(graph, "B") == (Decimal(0), 0)
    assert {each["node"] for each in rebuilt.failures} == {"ACCOUNT#A"}
    # What is left out is told as that, each time.
    assert graph.verify(repair=True, threads=1).left == rebuilt.left == 1
    assert shown(graph, "A") == (HUGE, 2)
