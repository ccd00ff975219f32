"""A maintainer that stops between reading and writing, while others do something, undo it, and apply both."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated

import pytest

from adjoin import Count, Edge, Graph, Node
from adjoin.plans.maintenance.affected import apply_changes
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import ChangesResponse, Delete, ItemChange, ReadChanges, TransactWrite, Update
from tests.maintenance.models import MODELS, PEOPLE, Customer, Follows, Invoice, Part, Person, Placed, Uses
from tests.maintenance.simulation import Process
from tests.maintenance.test_simulation import check

Act = Callable[[Graph], object]
DONE_AND_UNDONE: dict[str, tuple[Act, Act]] = {
    "an edge": (
        lambda g: g.put(Placed(source="C1", target="I2", balance=Decimal(5))),
        lambda g: g.disconnect(Placed, "C1", "I2"),
    ),
    "the value of an edge": (
        lambda g: g.update(Placed, "C1", "I1", balance=Decimal(9)),
        lambda g: g.update(Placed, "C1", "I1", balance=Decimal(1)),
    ),
    "a node at the far end": (
        lambda g: g.update(Invoice, "I1", weight=7),
        lambda g: g.update(Invoice, "I1", weight=1),
    ),
    "a cycle": (
        lambda g: g.put(Uses(source="P1", target="P0")),
        lambda g: g.disconnect(Uses, "P1", "P0"),
    ),
    "the name that is copied": (
        lambda g: g.update(Customer, "C1", name="Bea"),
        lambda g: g.update(Customer, "C1", name="Ann"),
    ),
}


@pytest.mark.parametrize("what", DONE_AND_UNDONE)
def test_it_writes_nothing_that_is_not_true_any_more(what: str) -> None:
    do, undo = DONE_AND_UNDONE[what]
    with Graph(":memory:", MODELS) as g:
        g.put_many([Customer(id="C1", name="Ann"), Invoice(id="I1"), Part(id="P0"), Part(id="P1")])
        g.put_many([Placed(source="C1", target="I1", balance=Decimal(1)), Uses(source="P0", target="P1")])
        g.maintain(once=True)
        before = [change.position for change in g.changes()][-1]
        do(g)
        (response,) = g._store.execute((ReadChanges(g._layout.table, before),))
        assert isinstance(response, ChangesResponse)
        slow = Process(g, apply_changes(g._layout, response.changes, Tally()), "slow")
        while not slow.is_done and not any(isinstance(request, TransactWrite) for request in slow._batch):
            slow.step(random.Random(0))
        assert not slow.is_done
        undo(g)
        g.maintain(once=True)
        while not slow.is_done:
            slow.step(random.Random(0))
        assert slow.error is None
        g.maintain(once=True)
        check(g)


def test_the_ledger_of_a_waiting_edge_stays_if_the_edge_was_put_again() -> None:
    """A maintainer saw that the edge was removed, and deletes its ledger after the edge was put and applied anew."""
    with Graph(":memory:", PEOPLE) as g:
        g.put(Follows(source="N2", target="N1"))
        g.maintain(once=True)
        before = [change.position for change in g.changes()][-1]
        g.disconnect(Follows, "N2", "N1")
        (response,) = g._store.execute((ReadChanges(g._layout.table, before),))
        assert isinstance(response, ChangesResponse)
        slow = Process(g, apply_changes(g._layout, response.changes, Tally()), "slow")
        while not (slow.is_about(TransactWrite) or slow.is_about(Update) or slow.is_about(Delete)):
            slow.step(random.Random(0))
        g.put(Follows(source="N2", target="N1"))
        g.maintain(once=True)
        slow.finish()
        check(g)
        g.put(Person(id="N1"))
        g.maintain(once=True)
        assert g.get(Person, "N1").followers == 1  # type: ignore[union-attr]


class Shop(Node):
    id: str
    sales: Annotated[int, Count("Sold")] = 0


class Good(Node):
    id: str


class Sold(Edge[Shop, Good]):
    pass


@pytest.mark.parametrize("most", range(12))
def test_somebody_slower_comes_between_any_two_requests(most: int) -> None:
    """Who applies that an edge went finds nothing to do, and the one who saw it comes at any of his requests."""
    with Graph(":memory:", [Shop, Good, Sold]) as g:
        g.put(Shop(id="S"))
        g.maintain(once=True)
        before = [change.position for change in g.changes()][-1]
        g.put(Sold(source="S", target="G"))
        slow = Process(g, apply_changes(g._layout, _since(g, before), Tally()), "slow")
        while not any(isinstance(request, TransactWrite) for request in slow._batch):
            slow.step(random.Random(0))
        between = [change.position for change in g.changes()][-1]
        g.disconnect(Sold, "S", "G")
        fast = Process(g, apply_changes(g._layout, _since(g, between), Tally()), "fast")
        for _ in range(most):
            if not fast.is_done:
                fast.step(random.Random(0))
        for each in (slow, fast):
            while not each.is_done:
                each.step(random.Random(0))
            assert each.error is None
        assert g.get(Shop, "S") == Shop(id="S", sales=0)


def _since(g: Graph, position: str) -> tuple[ItemChange, ...]:
    (response,) = g._store.execute((ReadChanges(g._layout.table, position),))
    assert isinstance(response, ChangesResponse)
    return tuple(response.changes)
