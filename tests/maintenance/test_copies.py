"""Fields of edges that repeat fields of nodes: filled in, kept fresh, and what that costs, told beforehand."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    Edge,
    Graph,
    Indexed,
    MaterializedGraph,
    Node,
    Unique,
)
from adjoin.aggregates import Copy, Count
from adjoin.requests import Put
from tests.maintenance.models import (
    Customer,
    Invoice,
    Placed,
)
from tests.maintenance.simulation import stored
from tests.maintenance.test_simulation import check


def test_copies_are_filled_in_and_kept_fresh(g: Graph) -> None:
    g.put(Customer(id="C1", name="Ann"))
    g.put(Invoice(id="I1", kind="y"))
    made = g.connect(Placed, "C1", "I1")
    assert (made.customer, made.kind) == ("Ann", "y")
    assert g.edge(Placed, "C1", "I1") == made
    g.put_many(Placed(source="C1", target=f"I{number}") for number in range(2, 250))
    assert g.edge(Placed, "C1", "I7").customer == "Ann"  # type: ignore[union-attr]
    g.maintain(once=True)
    g.update(Customer, "C1", name="Bea")
    with g.meter() as m:
        g.maintain(once=True)
    check(g)
    # Three transactions of up to 99 edges, and what finds them.
    assert m.requests < 30


def test_a_copy_that_somebody_else_wrote_is_put_right(g: Graph) -> None:
    g.put_many([Customer(id="C1", name="Ann"), Invoice(id="I1", kind="y"), Placed(source="C1", target="I1")])
    g.maintain(once=True)
    (item,) = (item for item in stored(g) if item["SK"]["S"].startswith("PLACED"))
    for spoilt in ({**item, "customer": {"S": "Zoe"}}, {name: item[name] for name in item if name != "kind"}):
        g._store.execute((Put("adjoin", spoilt),))
        assert g.maintain(once=True).edges == 1
        assert g.edge(Placed, "C1", "I1") == Placed(source="C1", target="I1", customer="Ann", kind="y")
    g.disconnect(Placed, "C1", "I1")
    g.maintain(once=True)
    check(g)


def test_an_edge_without_room_for_its_copy_holds_nothing_up(g: Graph) -> None:
    g.put_many([Customer(id="C1", name="Ann"), *(Placed(source="C1", target=f"I{number}") for number in range(3))])
    g.put(Placed(source="C1", target="full", status="x" * 409_000))
    g.maintain(once=True)
    g.update(Customer, "C1", name="Ann" * 300)
    report = g.maintain(once=True)
    assert [each.edge["SK"]["S"] for each in report.set_aside] == ["PLACED#INVOICE#full"]
    assert {edge.customer for edge in g.out("C1", Placed) if edge.target != "full"} == {"Ann" * 300}


def test_the_cost_of_a_change_is_known_beforehand(g: Graph) -> None:
    plan = g.explain(g.update, Customer, "C1", name="Bea")
    assert len(plan.requests) == 1
    (fan_out,) = plan.fan_outs
    assert (fan_out.edge, fan_out.fields, fan_out.index) == ("Placed", ("customer",), None)
    # It copies from the invoice too, which is checked with each edge.
    assert (fan_out.wcu_per_edge, fan_out.edges_a_request) == (5.0, 49)
    assert "of each Placed at CUSTOMER#C1" in str(plan)
    assert g.explain(g.update, Invoice, "I1", kind="y").fan_outs[0].index == "GSI1"
    assert g.explain(g.update, Invoice, "I1", weight=2).fan_outs == ()
    assert len(g.explain(g.put, Customer(id="C1")).fan_outs) == 1


def test_edges_copy_from_nodes_that_are_put_with_them(g: Graph) -> None:
    """In one call, whichever comes first; what is counted on a node stays, and is copied as it is."""
    g.put_many([Placed(source="C1", target="I1"), Invoice(id="I1", kind="big"), Customer(id="C1", name="Ann")])
    made = g.edge(Placed, "C1", "I1")
    assert made is not None
    assert (made.customer, made.kind) == ("Ann", "big")
    g.put_many([Customer(id="C1", name="Bea"), Placed(source="C1", target="I2"), Customer(id="C1", name="Cleo")])
    assert g.edge(Placed, "C1", "I2").customer == "Cleo"  # type: ignore[union-attr]
    g.maintain(once=True)
    check(g)


class Shelf(Node):
    id: str
    name: Annotated[str, Unique()]
    books: Annotated[int, Count("Holds", consistency="transaction")] = 0


class Book(Node):
    id: str
    title: str


class Holds(Edge[Shelf, Book]):
    shelf: Annotated[str, Copy("source.name")] = ""
    title: Annotated[str, Copy("target.title")] = ""
    before: Annotated[int, Copy("source.books")] = 0


def test_edges_that_are_counted_at_once_are_put_after_their_nodes() -> None:
    with Graph(":memory:", [Shelf, Book, Holds]) as g:
        g.put_many([Holds(source="S1", target="B1"), Book(id="B1", title="Emma"), Shelf(id="S1", name="left")])
        made = g.edge(Holds, "S1", "B1")
        assert made is not None
        assert (made.shelf, made.title) == ("left", "Emma")
        assert g.get(Shelf, "S1") == Shelf(id="S1", name="left", books=1)


class Band(Node):
    id: str
    name: str


class Stage(Node):
    id: str
    name: str = ""


class Plays(Edge[Band, Stage]):
    band: Annotated[str, Copy("source.name")] = ""
    note: str = ""


class PlaysAt(Edge[Band, Stage]):
    band: Annotated[str, Copy("source.name")] = ""
    stage: Annotated[str, Copy("target.name")] = ""
    year: Annotated[int, Indexed()] = 0


class Hosts(Edge[Stage, Band]):
    band: Annotated[str, Copy("target.name")] = ""


@pytest.mark.parametrize("layout", [AdjacencyList(shards=1), MaterializedGraph(shards=2)], ids=["list", "graph"])
@pytest.mark.parametrize(("model", "note"), [(Plays, ""), (Plays, "x" * 2000), (PlaysAt, ""), (Hosts, "")])
def test_the_cost_told_beforehand_is_what_it_costs(model: Any, note: str, layout: Any) -> None:
    with Graph(":memory:", [Band, Stage, model], layout) as g:
        g.put_many([Band(id="1", name="x"), *(Stage(id=str(number)) for number in range(300))])
        ends = [("1", str(number)) if model is not Hosts else (str(number), "1") for number in range(300)]
        more = {"note": note} if note else {}
        g.put_many(model(source=source, target=target, **more) for source, target in ends)
        g.maintain(once=True)
        (fan_out,) = g.explain(g.update, Band, "1", name="y").fan_outs
        g.update(Band, "1", name="y")
        with g.meter() as m:
            assert g.maintain(once=True).edges == 300
    size = 100 + len(note)
    assert m.wcu == pytest.approx(fan_out.wcu(300, size), rel=0.02)
    assert m.rcu == pytest.approx(fan_out.rcu(300, size), rel=0.02)
    assert m.dollars == pytest.approx(fan_out.dollars(300, size), rel=0.02)
    # The rest reads the stream, and takes down how far it was read.
    assert fan_out.requests(300, size) <= m.requests <= fan_out.requests(300, size) + 20


def test_a_transaction_copies_what_it_writes(g: Graph) -> None:
    with g.transaction() as t:
        t.put(Customer(id="C1", name="Ann"))
        t.put(Invoice(id="I1"))
        t.connect(Placed, "C1", "I1")
    assert g.edge(Placed, "C1", "I1").customer == "Ann"  # type: ignore[union-attr]
