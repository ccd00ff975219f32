"""What keeping aggregates true costs, in units and bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import Child, Count, Edge, Graph, Latest, Max, Node, Sum, Top
from adjoin.expressions import Set, Value, attribute
from adjoin.plans.maintenance.affected import apply_changes
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import BatchGet, Query, ReadChanges, Request, TransactWrite, Update
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


class Newest(Node):
    id: str
    last: Annotated[Decimal | None, Latest("Dated", field="balance", by="balance")] = None


class Dated(Edge[Newest, Invoice]):
    balance: Decimal


class Adding(Node):
    id: str
    owed: Annotated[Decimal, Sum("Added", field="balance")] = Decimal(0)


class Added(Edge[Adding, Invoice]):
    balance: Decimal


class Wallet(Node):
    id: str
    payments: Annotated[int, Count("Payment")] = 0
    paid: Annotated[Decimal, Sum("Payment", field="balance")] = Decimal(0)


class Payment(Child[Wallet]):
    id: str
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
    Newest,
    Dated,
    Adding,
    Added,
    Wallet,
    Payment,
]
ENDS: dict[Any, tuple[Any, Any]] = {
    Placed: (Customer, Invoice),
    Arrived: (Invoice, Counted),
    Follows: (Person, Person),
    Owns: (Ranked, Invoice),
    Largest: (Greatest, Invoice),
    Topmost: (Best, Invoice),
    Dated: (Newest, Invoice),
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


def of_one_and_many(g: Graph, one: Any, change: Any, remove: Any, others: list[Any]) -> tuple[list[float], list[int]]:
    """What one costs that is put, changed and removed, and what many cost; and how large their ledgers are."""
    (told,) = g.explain(g.put, one).countings
    costs: list[float] = []
    for act in (lambda: g.put(one), change, remove):
        act()
        costs.append(maintained(g))
    assert costs[0] == told.wcu()
    assert g.explain(g.put_many, others[:2]).countings == (told, told)
    before = [g._layout.key_of(item) for item in stored(g)]
    g.put_many(others)
    with g.meter() as meter:
        g.maintain(once=True)
    ledgers = [item for item in stored(g) if is_ledger(item) and g._layout.key_of(item) not in before]
    return [*costs, meter.wcu, meter.rcu, meter.requests], [item_size(item) for item in ledgers]


def test_a_child_costs_what_an_edge_costs(g: Graph) -> None:
    """Its ledger is smaller than that of an edge, because its key does not name a target's class."""
    first, *some = filled(g, Placed)
    edge_costs, edge_ledgers = of_one_and_many(
        g,
        first,
        lambda: g.update(Placed, "N0", "F0", balance=Decimal(8)),
        lambda: g.disconnect(Placed, "N0", "F0"),
        some,
    )
    g.put_many(Wallet(id=f"N{number}") for number in range(NODES))
    g.maintain(once=True)
    first, *some = [Payment(parent=edge.source, id=edge.target, balance=edge.balance) for edge in [first, *some]]
    costs, ledgers = of_one_and_many(
        g,
        first,
        lambda: g.update(Payment, ("N0", "F0"), balance=Decimal(8)),
        lambda: g.delete(Payment, ("N0", "F0")),
        some,
    )
    assert costs == edge_costs
    assert costs[:3] == [5, 5, 5]
    assert len(ledgers) == len(edge_ledgers) == len(some)
    assert max(ledgers) < min(edge_ledgers)


class Purse(Node):
    id: str
    coins: Annotated[int, Count("Slot", "Coin")] = 0


class Slot(Child[Purse]):
    id: str
    coins: Annotated[int, Count("Coin")] = 0


class Coin(Child[Slot]):
    id: str


def test_children_of_children_are_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that rules read as a far node is one item, so it is checked once, and found without a query."""
    with Graph(":memory:", [Purse, Slot, Coin]) as g:
        g.put(Purse(id="p"))
        g.maintain(once=True)
        (told,) = g.explain(g.put, Slot(parent="p", id="s")).countings
        assert (told.edge, told.fields, told.ledgers, told.checks) == ("Slot", ("Purse.coins",), 1, 1)
        g.put(Slot(parent="p", id="s"))
        asked: list[Request] = []
        execute = g._store.execute

        def spied(batch: Sequence[Request]) -> Any:
            asked.extend(batch)
            return execute(batch)

        monkeypatch.setattr(g._store, "execute", spied)
        # One more unit for a node that is seen for the first time.
        assert maintained(g) == told.wcu() + 1
        assert any(isinstance(request, TransactWrite) for request in asked)
        assert not any(isinstance(request, Query) for request in asked)
        (told,) = g.explain(g.put, Coin(parent=("p", "s"), id="1")).countings
        assert (told.fields, told.above) == (("Slot.coins",), ("Slot",))
        g.put(Coin(parent=("p", "s"), id="1"))
        assert maintained(g) <= told.wcu() + told.wcu_above
        assert g.get(Purse, "p") == Purse(id="p", coins=1)


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


@pytest.mark.parametrize("model", [Placed, Arrived, Follows, Owns, Largest, Topmost, Dated])
def test_explain_tells_it_beforehand(g: Graph, model: Any) -> None:
    first, *some = filled(g, model)
    (told,) = g.explain(g.put, first).countings
    g.put(first)
    assert maintained(g) == told.wcu()
    g.put_many(some)
    # Some ledgers of both ends do not fit into one transaction with both nodes, and are written twice.
    assert maintained(g) == pytest.approx(told.wcu(len(some), DEGREE), rel=0.01)
    kept = [item for item in stored(g) if is_ledger(item)]
    assert abs(sum(map(item_size, kept)) / len(kept) - told.bytes) < 5
    assert g.explain(g.put_many, [first, some[0]]).countings == (told, told)


def test_explain_tells_what_docs_say_of_a_large_batch(g: Graph) -> None:
    edge = Follows(source="N0", target="F0", balance=Decimal(7))
    (told,) = g.explain(g.put, edge).countings
    assert "7 WCU, or 4.4 per edge in a large batch" in str(told)


@pytest.mark.parametrize(("per_node", "around"), [(1, 0.01), (4, 0.02), (120, 0.01)])
def test_explain_tells_it_for_nodes_of_other_degrees(g: Graph, per_node: int, around: float) -> None:
    """Of a node with more edges than one transaction has room for, each ledger is written with either end."""
    g.put_many(Person(id=name) for number in range(120) for name in (f"N{number}", f"F{number}"))
    g.maintain(once=True)
    some = [Follows(source=f"N{at // per_node}", target=f"F{at}", balance=Decimal(7)) for at in range(120)]
    (told,) = g.explain(g.put, some[0]).countings
    g.put_many(some)
    assert maintained(g) == pytest.approx(told.wcu(len(some), per_node), rel=around)


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
        with g.meter() as meter:
            g.maintain(once=True)
        assert meter.wcu <= 91 <= told.wcu() + leaders * told.wcu_above
        assert meter.requests <= 17
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


class Director(Node):
    id: str
    teams: Annotated[int, Count("Directs")] = 0
    staff: Annotated[int, Count("Directs", "Hires")] = 0


class Group(Node):
    id: str


class Directs(Edge[Director, Group]):
    pass


class Hires(Edge[Group, Worker]):
    pass


def test_a_node_is_recounted_once_however_many_of_its_values_are_wrong() -> None:
    """The one value depends on nodes in between, so it is restored in a later stage than the other."""

    def repaired(*names: str) -> float:
        with Graph(":memory:", [Director, Group, Worker, Directs, Hires]) as g:
            g.put_many([Director(id="D"), Worker(id="W"), *(Group(id=f"G{number}") for number in range(20))])
            g.put_many(Directs(source="D", target=f"G{number}") for number in range(20))
            g.put(Hires(source="G1", target="W"))
            g.maintain(once=True)
            key = g._layout.node_key(g._layout.schema.node(Director), "D")
            wrong = tuple(Set(attribute(name), Value({"N": "7"})) for name in names)
            g._store.execute((Update(g._layout.table, key, wrong),))
            with g.meter() as meter:
                found = g.verify(repair=True, threads=1)
            assert (found.left, len(found.findings)) == (0, len(names))
            assert g.get(Director, "D") == Director(id="D", teams=20, staff=1)
            return meter.wcu

    assert repaired("teams", "staff") == repaired("teams")


class Album(Node):
    id: str
    tracks: Annotated[int, Count("OnAlbum", consistency="transaction")] = 0


class Track(Node):
    id: str


class OnAlbum(Edge[Album, Track]):
    pass


def test_a_count_in_the_transaction_leaves_nothing_to_maintain() -> None:
    """Two for the edge and the node, and one for the index entry; connect also checks the far node.

    The first change of what the edge contributes, and its removal, write a ledger, which is two more.
    """
    with Graph(":memory:", [Album, Track, OnAlbum]) as g:
        g.put_many([Album(id="A"), Track(id="T1"), Track(id="T2")])
        g.maintain(once=True)
        spent: list[float] = []
        for act in (
            lambda: g.put(OnAlbum(source="A", target="T1")),
            lambda: g.connect(OnAlbum, "A", "T2"),
            lambda: g.disconnect(OnAlbum, "A", "T1"),
        ):
            with g.meter() as meter:
                act()
            spent.append(meter.wcu)
            # The position in the stream, and nothing else.
            assert maintained(g) <= 1
        assert spent == [5, 7, 7]
        assert g.explain(g.put, OnAlbum(source="A", target="T1")).countings == ()
        assert g.get(Album, "A") == Album(id="A", tracks=1)


class Shelf(Node):
    id: str
    tracks: Annotated[int, Sum("Holds", field="tracks")] = 0


class Holds(Edge[Shelf, Album]):
    pass


def test_what_reads_a_count_in_the_transaction_is_told() -> None:
    with Graph(":memory:", [Shelf, Album, Track, Holds, OnAlbum]) as g:
        g.put_many([Shelf(id="S"), Album(id="A"), Track(id="T1"), Holds(source="S", target="A")])
        g.maintain(once=True)
        (told,) = g.explain(g.put, OnAlbum(source="A", target="T1")).countings
        assert (told.fields, told.ledgers, told.nodes, told.above) == ((), 0, 0, ("Holds",))
        g.put(OnAlbum(source="A", target="T1"))
        assert maintained(g) <= told.wcu() + told.wcu_above
        assert g.get(Shelf, "S") == Shelf(id="S", tracks=1)


def test_a_large_batch_is_read_in_portions(g: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read for one portion is written before the next is read; nodes are written no more often for it."""
    nodes, degree = 130, 10
    g.put_many(Customer(id=f"N{number}") for number in range(nodes))
    g.put_many(Invoice(id=f"F{number}") for number in range(nodes * degree))
    g.maintain(once=True)
    g.put_many(
        Placed(source=f"N{number % nodes}", target=f"F{number}", balance=Decimal(1)) for number in range(nodes * degree)
    )
    read = [0]
    execute = g._store.execute

    def spied(batch: Sequence[Request]) -> Any:
        read[-1] += sum(len(request.gets) for request in batch if isinstance(request, BatchGet))
        if any(isinstance(request, TransactWrite) for request in batch):
            read.append(0)
        return execute(batch)

    monkeypatch.setattr(g._store, "execute", spied)
    assert maintained(g) / (nodes * degree) <= 2.25
    most = 5 * 97 + degree
    assert max(read) <= 2 * most + most // degree + 1
    assert {customer.invoices for customer in g.scan(Customer)} == {degree}


def test_a_large_batch_at_both_ends_writes_each_ledger_once(g: Graph) -> None:
    nodes, degree = 60, 10
    g.put_many(Person(id=f"N{number}") for number in range(nodes))
    g.maintain(once=True)
    some = [
        Follows(source=f"N{number}", target=f"N{(number + step) % nodes}", balance=Decimal(2))
        for number in range(nodes)
        for step in range(1, degree + 1)
    ]
    g.put_many(some)
    assert maintained(g) / len(some) <= 4.5
    for person in g.scan(Person):
        assert (person.follows, person.followers, person.weight) == (degree, degree, Decimal(2 * degree))


def test_many_edges_of_one_node_are_divided_into_full_transactions(g: Graph) -> None:
    edges = 1100
    g.put_many([Customer(id="N0"), *(Invoice(id=f"F{number}") for number in range(edges))])
    g.maintain(once=True)
    g.put_many(Placed(source="N0", target=f"F{number}", balance=Decimal(1)) for number in range(edges))
    # Each ledger, the node once for 97 of them, and the position with each thousand changes.
    assert maintained(g) <= 2 * edges + 2 * -(-edges // 97) + 2
    assert g.get(Customer, "N0") == Customer(id="N0", invoices=edges, owed=Decimal(edges))
