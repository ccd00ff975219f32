"""What keeping aggregates true costs, in units and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import Count, Edge, Graph, Max, Node, Sum, Top
from adjoin.expressions import Set, Value, attribute
from adjoin.plans.maintenance.applying import apply_changes
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import ReadChanges, Update
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


class Greatest(Node):
    id: str
    largest: Annotated[Decimal | None, Max("Largest", field="balance")] = None


class Largest(Edge[Greatest, Invoice]):
    balance: Decimal


class Best(Node):
    id: str
    top: Annotated[list[Decimal], Top("Topmost", field="balance", k=3)] = []


class Topmost(Edge[Best, Invoice]):
    balance: Decimal


class Adding(Node):
    id: str
    owed: Annotated[Decimal, Sum("Added", field="balance")] = Decimal(0)


class Added(Edge[Adding, Invoice]):
    balance: Decimal


MODELS = [
    Customer,
    Invoice,
    Placed,
    Counted,
    Arrived,
    Person,
    Follows,
    Ranked,
    Owns,
    Greatest,
    Largest,
    Best,
    Topmost,
    Adding,
    Added,
]
ENDS: dict[Any, tuple[Any, Any]] = {
    Placed: (Customer, Invoice),
    Arrived: (Invoice, Counted),
    Follows: (Person, Person),
    Owns: (Ranked, Invoice),
    Largest: (Greatest, Invoice),
    Topmost: (Best, Invoice),
    Added: (Adding, Invoice),
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
    # Two for the ledger, one for each rank, and a share of the node.
    assert maintained(g) / len(some) <= 4.25
    with g.meter() as meter:
        g.put(Owns(source="N1", target="F0", balance=Decimal(99)))
        g.maintain(once=True)
    assert meter.wcu == 2 + 7
    found = g.get(Ranked, "N1")
    assert found is not None
    assert (found.largest, found.top) == (Decimal(99), [Decimal(99), Decimal(7), Decimal(7)])


def of_each_change(g: Graph, model: Any) -> list[float]:
    """What edges cost that are put, that get a smaller value, and that go; all in batches, for one edge."""
    some = filled(g, model)
    g.put_many(some)
    costs = [maintained(g)]
    g.put_many(model(source=edge.source, target=edge.target, balance=Decimal(3)) for edge in some)
    costs.append(maintained(g))
    for edge in some:
        g.disconnect(model, edge.source, edge.target)
    costs.append(maintained(g))
    return [cost / len(some) for cost in costs]


@pytest.mark.parametrize("model", [Largest, Topmost])
def test_a_rank_adds_one_unit_when_it_is_put_and_one_when_it_is_deleted(model: Any) -> None:
    """Beside what the same changes cost for a sum; where the first values go, the node is written once more for all."""
    with Graph(":memory:", MODELS) as g:
        ranked = of_each_change(g, model)
    with Graph(":memory:", MODELS) as g:
        added = of_each_change(g, Added)
    more = [cost - other for cost, other in zip(ranked, added, strict=True)]
    assert more[0] <= 1
    again = 1 / DEGREE
    assert more[1] <= 2 + again
    assert more[2] <= 1 + again


@pytest.mark.parametrize("model", [Placed, Arrived, Follows, Owns, Largest, Topmost])
def test_explain_tells_it_beforehand(g: Graph, model: Any) -> None:
    first, *some = filled(g, model)
    (told,) = g.explain(g.put, first).countings
    g.put(first)
    assert maintained(g) == told.wcu()
    g.put_many(some)
    # Some ledgers of both ends do not fit into one transaction with both nodes, and are written twice.
    assert maintained(g) <= 1.1 * told.wcu(len(some), DEGREE)
    kept = [item for item in stored(g) if is_ledger(item)]
    assert abs(sum(map(item_size, kept)) / len(kept) - told.bytes) < 5
    assert g.explain(g.put_many, [first, some[0]]).countings == (told, told)


class Chief(Node):
    id: str
    reports: Annotated[int, Count("Leads", "Employs")] = 0


class Team(Node):
    id: str


class Worker(Node):
    id: str


class Leads(Edge[Chief, Team]):
    pass


class Employs(Edge[Team, Worker]):
    pass


def test_one_more_edge_below_two_hops_is_priced() -> None:
    with Graph(":memory:", [Chief, Team, Worker, Leads, Employs]) as g:
        leaders = 14
        g.put_many([Team(id="T"), *(Chief(id=f"C{number}") for number in range(leaders))])
        g.put_many(Worker(id=f"W{number}") for number in range(51))
        g.put_many(Leads(source=f"C{number}", target="T") for number in range(leaders))
        g.put_many(Employs(source="T", target=f"W{number}") for number in range(50))
        g.maintain(once=True)
        (told,) = g.explain(g.put, Employs(source="T", target="W50")).countings
        assert told.above == ("Leads",)
        g.put(Employs(source="T", target="W50"))
        assert maintained(g) <= told.wcu() + leaders * told.wcu_above
        found = g.get(Chief, "C3")
        assert found is not None
        assert found.reports == 51


def test_repairing_a_node_costs_about_what_counting_it_does(g: Graph) -> None:
    g.put_many([Customer(id="N0"), *(Invoice(id=f"F{number}") for number in range(200))])
    g.maintain(once=True)
    g.put_many(Placed(source="N0", target=f"F{number}", balance=Decimal(number)) for number in range(200))
    counted = maintained(g)
    layout = g._layout
    key = layout.node_key(layout.schema.node(Customer), "N0")
    g._store.execute((Update(layout.table, key, (Set(attribute("invoices"), Value({"N": "7"})),)),))
    with g.meter() as meter:
        assert g.verify(repair=True, threads=1).left == 0
    assert meter.wcu <= 1.05 * counted
    found = g.get(Customer, "N0")
    assert found is not None
    assert found.invoices == 200
