"""Records that an edge is set aside say the same as its ledger, also after another program removed one of the two."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from adjoin import AdjacencyList, Graph, MaterializedGraph
from adjoin.expressions import Set, Value, attribute
from adjoin.plans.maintenance.recounting import begin, finish
from adjoin.plans.maintenance.report import Tally, remove_left
from adjoin.requests import Delete, Put, TransactWrite, Update
from adjoin.runner import run
from adjoin.values import AttributeValue, Item
from tests.maintenance.ledgers import edge_of, is_ledger
from tests.maintenance.models import MODELS, Customer, Part, Placed, Uses
from tests.maintenance.simulation import Process, stored
from tests.maintenance.test_simulation import check

NONSENSE: AttributeValue = {"S": "many"}


@pytest.fixture(params=[AdjacencyList(), MaterializedGraph()], ids=["adjacency", "materialized"])
def g(request: pytest.FixtureRequest) -> Iterator[Graph]:
    with Graph(":memory:", MODELS, request.param) as graph:
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
