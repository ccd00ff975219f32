"""Records that an edge is set aside say the same as its ledger, also after another program removed one of the two."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Edge, Graph, MaterializedGraph, Node, Sum
from adjoin.expressions import Set, Value, attribute
from adjoin.plans.maintenance.recounting import begin, finish
from adjoin.plans.maintenance.report import Tally, remove_left
from adjoin.requests import Delete, Put, TransactWrite, Update
from adjoin.runner import run
from adjoin.values import AttributeValue, Item
from tests.maintenance.ledgers import edge_of, is_ledger
from tests.maintenance.models import PARTS, SHOP, Customer, Part, Placed, Uses
from tests.maintenance.simulation import Process, stored
from tests.maintenance.test_simulation import check
from tests.shares import stride

NONSENSE: AttributeValue = {"S": "many"}


LAYOUTS: dict[str, Any] = {"adjacency": AdjacencyList(), "materialized": MaterializedGraph()}


@pytest.fixture(params=LAYOUTS)
def g(request: pytest.FixtureRequest) -> Iterator[Graph]:
    with Graph(":memory:", [*SHOP, *PARTS], LAYOUTS[request.param]) as graph:
        yield graph


def records(graph: Graph) -> list[str]:
    return sorted(item["rule"]["S"] for item in stored(graph) if "rule" in item and "reason" in item)


def lose(graph: Graph, item: Item) -> None:
    graph._store.execute((Delete(graph._layout.table, graph._layout.key_of(item)),))


def ledgers(graph: Graph, model: type[Any], source: str, target: str) -> list[Item]:
    layout = graph._layout
    edge = layout.edge_key(layout.schema.edge(model), source, target, {})
    return [item for item in stored(graph) if is_ledger(item) and edge_of(layout, item) == edge]


def remove_all_left(graph: Graph) -> None:
    for group in graph._layout.rules.groups:
        run(remove_left(graph._layout, group), graph._store)


def unreadable(graph: Graph) -> list[str]:
    """An edge that no rule can read; returns the rules that set it aside."""
    layout = graph._layout
    graph.put_many([Customer(id="C1"), Placed(source="C1", target="I1", balance=Decimal(2))])
    key = layout.edge_key(layout.schema.edge(Placed), "C1", "I1", {})
    graph._store.execute((Update(layout.table, key, (Set(attribute("day"), Value(NONSENSE)),)),))
    graph.maintain(once=True)
    assert len(records(graph)) > 3
    return records(graph)


def test_a_record_goes_whose_ledger_was_lost(g: Graph) -> None:
    """Both ledgers of the edge: one beside it, and one beside its far node."""
    unreadable(g)
    beside, far = sorted(ledgers(g, Placed, "C1", "I1"), key=lambda item: "applied" in item)
    lose(g, far)
    remove_all_left(g)
    assert records(g)
    assert "CUSTOMER.weight" not in records(g)
    lose(g, beside)
    remove_all_left(g)
    assert records(g) == []


@pytest.mark.simulation
@pytest.mark.parametrize("g", [*LAYOUTS][:: stride(2)], indirect=True)
def test_verify_removes_what_is_left_of_edges_that_count_again(g: Graph) -> None:
    unreadable(g)
    for ledger in ledgers(g, Placed, "C1", "I1"):
        lose(g, ledger)
    g.put(Placed(source="C1", target="I1", balance=Decimal(3)))
    g.maintain(once=True)
    assert g.health().set_aside > 0
    g.verify(repair=True)
    assert g.health().set_aside == 0
    check(g)


def test_a_record_stays_while_its_ledger_says_so(g: Graph) -> None:
    aside = unreadable(g)
    remove_all_left(g)
    assert records(g) == aside


def test_a_record_stays_if_the_edge_is_set_aside_meanwhile(g: Graph) -> None:
    """It is read before the ledger is lost, and removed only after the ledger was read again."""
    layout = g._layout
    aside = unreadable(g)
    own = [item for item in ledgers(g, Placed, "C1", "I1") if "applied" not in item]
    (group,) = (each for each in layout.rules.groups if each.name == "PLACED.out")
    for item in own:
        lose(g, item)
    removing = Process(g, remove_left(layout, group), "repair")
    while not removing.is_about(TransactWrite):
        removing.step(Random(0))
    for item in own:
        g._store.execute((Put(layout.table, item),))
    removing.finish()
    assert records(g) == aside


def test_a_record_that_was_lost_is_written_again_by_a_recount(g: Graph) -> None:
    g.put_many([Part(id="a"), Part(id="b"), Uses(source="a", target="b")])
    g.maintain(once=True)
    g.put(Uses(source="b", target="a"))
    g.maintain(once=True)
    aside = records(g)
    assert aside == ["PART.below", "PART.dearest", "PART.total"]
    for item in stored(g):
        if "reason" in item:
            lose(g, item)
    kind = g._layout.schema.node(Part)
    run(finish(g._layout, kind, run(begin(g._layout, kind, ["PART#a", "PART#b"]), g._store), Tally()), g._store)
    assert records(g) == aside
    g.disconnect(Uses, "a", "b")
    g.maintain(once=True)
    assert records(g) == []
    check(g)


def shelf(*, has_weight: bool, has_pages: bool) -> list[Any]:
    """A shelf with two sums, or with one, or with none; an older program wrote what no number is."""

    class Shelf(Node):
        id: str
        if has_pages:
            pages: Annotated[int, Sum("Holds", field="pages")] = 0
        if has_weight:
            weight: Annotated[int, Sum("Holds", field="weight")] = 0

    class Book(Node):
        id: str

    class Holds(Edge[Shelf, Book]):
        pages: int = 0
        if has_weight:
            weight: int = 0

    return [Shelf, Book, Holds]


def test_a_rebuild_removes_the_records_of_rules_that_are_no_more(tmp_path: Path) -> None:
    place = f"{tmp_path / 'shelves.db'}?durability=process"
    node, _, edge = models = shelf(has_weight=True, has_pages=True)
    with Graph(place, models) as g:
        g.put_many([node(id="s"), edge(source="s", target="b", pages=3, weight=2)])
        key = g._layout.edge_key(g._layout.schema.edge(edge), "s", "b", {})
        g._store.execute((Update(g._layout.table, key, (Set(attribute("weight"), Value(NONSENSE)),)),))
        g.maintain(once=True)
        assert records(g) == ["SHELF.pages", "SHELF.weight"]
    with Graph(place, shelf(has_weight=False, has_pages=True)) as g:
        g.rebuild()
        assert (records(g), g.health().set_aside) == ([], 0)
    with Graph(place, shelf(has_weight=True, has_pages=True)) as g:
        g.rebuild()
        assert records(g) == ["SHELF.pages", "SHELF.weight"]
    with Graph(place, shelf(has_weight=False, has_pages=False)) as g:
        g.rebuild()
        assert records(g) == []
