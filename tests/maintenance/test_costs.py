"""What keeping aggregates true costs, in units and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import Count, Edge, Graph, Max, Node, Sum, Top
from adjoin.plans.maintenance.applying import apply_changes
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import ReadChanges
from adjoin.runner import run
from adjoin.values import item_size
from tests.maintenance.ledgers import is_ledger
from tests.maintenance.simulation import stored

NODES, DEGREE = 25, 10


class Customer(Node):
    id: str
    invoices: Annotated[int, Count("Placed")] = 0
    owed: Annotated[Decimal, Sum("Placed", field="balance")] = Decimal(0)


class Invoice(Node):
    id: str


class Placed(Edge[Customer, Invoice]):
    balance: Decimal


class Counted(Node):
    id: str
    placed: Annotated[int, Count("Arrived")] = 0


class Arrived(Edge[Invoice, Counted]):
    balance: Decimal


class Person(Node):
    id: str
    follows: Annotated[int, Count("Follows")] = 0
    followers: Annotated[int, Count("Follows", direction="into")] = 0
    weight: Annotated[Decimal, Sum("Follows", field="balance", direction="into")] = Decimal(0)


class Follows(Edge[Person, Person]):
    balance: Decimal


class Ranked(Node):
    id: str
    largest: Annotated[Decimal | None, Max("Owns", field="balance")] = None
    top: Annotated[list[Decimal], Top("Owns", field="balance", k=3)] = []


class Owns(Edge[Ranked, Invoice]):
    balance: Decimal


MODELS = [Customer, Invoice, Placed, Counted, Arrived, Person, Follows, Ranked, Owns]
ENDS: dict[Any, tuple[Any, Any]] = {
    Placed: (Customer, Invoice),
    Arrived: (Invoice, Counted),
    Follows: (Person, Person),
    Owns: (Ranked, Invoice),
}


@pytest.fixture
def g() -> Iterator[Graph]:
    with Graph(":memory:", MODELS) as graph:
        yield graph


def edges(model: Any) -> list[Any]:
    """Ten for each of 25 nodes that count them."""
    counts_targets = model is Arrived
    ends = [(f"N{number // DEGREE}", f"F{number}") for number in range(NODES * DEGREE)]
    return [
        model(source=far if counts_targets else near, target=near if counts_targets else far, balance=Decimal(7))
        for near, far in ends
    ]


def filled(g: Graph, model: Any) -> list[Any]:
    source, target = ENDS[model]
    near, far = (target, source) if model is Arrived else (source, target)
    g.put_many(near(id=f"N{number}") for number in range(NODES))
    g.put_many(far(id=f"F{number}") for number in range(NODES * DEGREE))
    g.maintain(once=True)
    return edges(model)


def maintained(g: Graph) -> float:
    with g.meter() as meter:
        g.maintain(once=True)
    return meter.wcu


@pytest.mark.parametrize(("model", "most"), [(Placed, 2.25), (Arrived, 2.25), (Follows, 4.5)])
def test_many_edges(g: Graph, model: Any, most: float) -> None:
    some = filled(g, model)
    g.put_many(some)
    assert maintained(g) / len(some) <= most


@pytest.mark.parametrize("model", [Placed, Arrived])
def test_one_change_alone(g: Graph, model: Any) -> None:
    first, second, *_ = filled(g, model)
    g.put(first)
    assert maintained(g) == 5
    g.put(second)
    assert maintained(g) == 5
    g.update(model, first.source, first.target, balance=Decimal(8))
    assert maintained(g) <= 5
    g.disconnect(model, first.source, first.target)
    assert maintained(g) == 5


@pytest.mark.parametrize(("model", "most"), [(Placed, 100), (Arrived, 110), (Follows, 150)])
def test_one_small_ledger_for_each_edge(g: Graph, model: Any, most: int) -> None:
    some = filled(g, model)
    g.put_many(some)
    g.maintain(once=True)
    layout = g._layout
    own = [item for item in stored(g) if layout.is_bookkeeping(item)]
    kept = [item for item in own if not layout.key_of(item)["PK"]["S"].startswith("#=")]
    assert len(kept) == len(some)
    assert all(map(is_ledger, kept))
    assert max(map(item_size, kept)) <= most


def test_nothing_is_left_of_edges_that_are_gone(g: Graph) -> None:
    some = filled(g, Follows)
    before = {tuple(g._layout.key_of(item).values())[1]["S"] for item in stored(g)}
    g.put_many(some)
    g.maintain(once=True)
    for edge in some:
        g.disconnect(Follows, edge.source, edge.target)
    g.maintain(once=True)
    assert {tuple(g._layout.key_of(item).values())[1]["S"] for item in stored(g)} == before


def test_the_same_change_again_costs_one_unit(g: Graph) -> None:
    """A revision that is changed for late comers, and nothing else."""
    first, *_ = filled(g, Placed)
    response: Any
    (response,) = g._store.execute((ReadChanges(g._layout.table, None),))
    g.put(first)
    g.maintain(once=True)
    (response,) = g._store.execute((ReadChanges(g._layout.table, response.next),))
    mine = [change for change in response.changes if not g._layout.is_bookkeeping(change.key) and change.old is None]
    assert len(mine) == 1
    with g.meter() as meter:
        run(apply_changes(g._layout, mine, Tally()), g._store)
    assert meter.wcu == 1
    found = g.get(Customer, "N0")
    assert found is not None
    assert (found.invoices, found.owed) == (1, Decimal(7))


def test_a_greatest_value_and_the_top_ones_are_told_without_reading_ranks(g: Graph) -> None:
    some = filled(g, Owns)
    g.put_many(some)
    # Two for the ledger, two for each rank, and a share of the node.
    assert maintained(g) / len(some) <= 6.25
    with g.meter() as meter:
        g.put(Owns(source="N1", target="F0", balance=Decimal(99)))
        g.maintain(once=True)
    assert meter.wcu == 2 + 9
    found = g.get(Ranked, "N1")
    assert found is not None
    assert (found.largest, found.top) == (Decimal(99), [Decimal(99), Decimal(7), Decimal(7)])
