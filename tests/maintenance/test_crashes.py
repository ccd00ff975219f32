"""`maintain` stopped before and after each of its requests, and started again."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal

import pytest

from adjoin import Graph
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore, Interrupted
from tests.maintenance.models import (
    MODELS,
    Bill,
    Contains,
    Customer,
    Invoice,
    Part,
    Payment,
    Placed,
    Refund,
    Uses,
    Wallet,
)
from tests.maintenance.test_simulation import check
from tests.shares import FEW, stride


def happen(graph: Graph) -> None:
    """A bit of everything: nodes that come late and go early, moves, changes, a cycle."""
    graph.put_many([Customer(id="C1", name="Ann"), Customer(id="C2"), Invoice(id="I1"), Bill(id="B1")])
    graph.put_many(Placed(source="C1", target=f"I{number}", balance=Decimal(number), day=number) for number in range(4))
    graph.put(Contains(source="I1", target="B1", note="n"))
    graph.put(Contains(source="I2", target="B1"))
    graph.put_many(Part(id=f"P{number}", cost=number) for number in range(3))
    graph.put_many(Uses(source=f"P{number}", target=f"P{(number + 1) % 3}") for number in range(3))


def happen_again(graph: Graph) -> None:
    graph.put(Invoice(id="I2", weight=5))
    graph.update(Bill, "B1", amount=Decimal("9.5"))
    graph.update(Customer, "C1", name="Bea")
    graph.update(Placed, "C1", "I3", balance=Decimal(7), status="paid")
    with graph.transaction() as moving:
        moving.disconnect(Placed, "C1", "I0")
        moving.put(Placed(source="C2", target="I0", balance=Decimal(3)))
    graph.disconnect(Uses, "P0", "P1")
    graph.delete(Invoice, "I1")


def pay(graph: Graph) -> None:
    """The same with children, one of which comes before its parent, and with a child of a child."""
    graph.put_many([Wallet(id="W1"), *(Payment(parent=f"W{n % 2}", number=n, amount=Decimal(n)) for n in range(3))])
    graph.put(Refund(parent=("W1", 1), id="x", amount=2))


def pay_again(graph: Graph) -> None:
    graph.put(Wallet(id="W0"))
    graph.update(Payment, ("W0", 2), amount=Decimal(-1))
    graph.delete(Payment, ("W1", 1))


@pytest.mark.simulation
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("before", "after"), [(happen, happen_again), (pay, pay_again)], ids=["edges", "children"])
def test_it_may_stop_at_every_request(
    when: str, before: Callable[[Graph], None], after: Callable[[Graph], None]
) -> None:
    """At some of them: every other one has maintenance before it, so the stride is odd."""
    number = 0 if when == "before" else stride(5) // 2
    while True:
        store = FaultyStore(SQLiteStore(":memory:"))
        graph = Graph(store, MODELS)
        before(graph)
        if number % 2:
            graph.maintain(once=True)
        after(graph)
        store.stop_at(number, when)
        try:
            graph.maintain(once=True)
            stopped = False
        except Interrupted:
            stopped = True
        store.recover()
        graph.maintain(once=True)
        check(graph)
        graph.close()
        if not stopped:
            break
        number += stride(5)
    assert number > 30


@pytest.mark.simulation
def test_it_may_stop_again_and_again() -> None:
    chance = random.Random(7)
    for _ in range(FEW):
        store = FaultyStore(SQLiteStore(":memory:"))
        graph = Graph(store, MODELS)
        happen(graph)
        happen_again(graph)
        for _ in range(60):
            store.stop_at(chance.randrange(25), chance.choice(["before", "after"]))
            try:
                graph.maintain(once=True)
                break
            except Interrupted:
                continue
        store.recover()
        graph.maintain(once=True)
        check(graph)
        graph.close()
