"""The stream may be ahead of an index: what is found there too late, or never, is right all the same."""

from __future__ import annotations

import random
from typing import Annotated, Any

import pytest

from adjoin import Copy, Count, Edge, Graph, MaterializedGraph, Node, Top
from adjoin.plans.maintenance.recounting import begin, finish
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import Delete
from adjoin.runner import run
from tests.maintenance.simulation import LateIndexes, stored


class Album(Node):
    id: str


class Track(Node):
    id: str
    title: str = "old"
    on: Annotated[int, Count("On")] = 0
    best: Annotated[list[int], Top("On", field="place", k=2)] = []


class On(Edge[Album, Track]):
    place: int = 0
    title: Annotated[str, Copy("target.title")] = ""


class Label(Node):
    id: str
    name: str = "old"


class By(Edge[Album, Label]):
    """Nothing is counted of it, so that there is no ledger to find it by."""

    label: Annotated[str, Copy("target.name")] = ""


class Near(Edge[Album, Album]):
    """Nobody looks for its edges from their targets."""


MODELS: list[Any] = [Album, Track, On, Label, By, Near]


@pytest.fixture(params=[None, MaterializedGraph()], ids=["list", "graph"])
def blind(request: pytest.FixtureRequest) -> Any:
    """A graph whose indexes never know anything."""
    with Graph(LateIndexes(random.Random(0), MODELS, request.param, pace=0), MODELS, request.param) as graph:
        yield graph


def taken_down(graph: Graph) -> list[Any]:
    return [item for item in stored(graph) if "marked" in item and "edge" in item]


def lose(graph: Graph, model: type[Any], id: str) -> None:
    layout = graph._layout
    graph._store.execute([Delete(layout.table, layout.node_key(layout.schema.node(model), id))])


def test_a_copy_follows_its_node(blind: Graph) -> None:
    blind.put_many([Album(id="a"), Track(id="t")])
    blind.connect(On, "a", "t")
    blind.maintain(once=True)
    blind.update(Track, "t", title="new")
    blind.maintain(once=True)
    assert blind.edge(On, "a", "t").title == "new"  # type: ignore[union-attr]


def test_a_copy_of_what_counts_nothing_follows_its_node(blind: Graph) -> None:
    blind.put_many([Label(id="l"), By(source="a", target="l"), By(source="b", target="l")])
    blind.maintain(once=True)
    blind.update(Label, "l", name="new")
    assert blind.maintain(once=True).edges == 2
    assert [blind.edge(By, id, "l") for id in "ab"] == [By(source=id, target="l", label="new") for id in "ab"]


def test_edges_of_a_node_that_comes_later_are_counted(blind: Graph) -> None:
    blind.put(On(source="a", target="t", place=3))
    blind.maintain(once=True)
    blind.put(Track(id="t"))
    blind.maintain(once=True)
    assert blind.get(Track, "t") == Track(id="t", on=1, best=[3])


def test_edges_of_a_node_that_comes_back_are_counted(blind: Graph) -> None:
    blind.put_many([Track(id="t"), On(source="a", target="t", place=3), On(source="b", target="t", place=5)])
    blind.maintain(once=True)
    lose(blind, Track, "t")
    blind.put(Track(id="t", title="again"))
    blind.maintain(once=True)
    assert blind.get(Track, "t") == Track(id="t", title="again", on=2, best=[5, 3])
    assert blind.edge(On, "b", "t").title == "again"  # type: ignore[union-attr]


def test_a_node_is_counted_anew(blind: Graph) -> None:
    blind.put_many([Track(id="t"), On(source="a", target="t", place=3), On(source="b", target="t", place=5)])
    blind.maintain(once=True)
    layout = blind._layout
    kind = layout.schema.node(Track)
    begun = run(begin(layout, kind, ["TRACK#t"]), blind._store)
    run(finish(layout, kind, begun, Tally()), blind._store)
    assert blind.get(Track, "t") == Track(id="t", on=2, best=[5, 3])


def test_what_is_taken_down_goes_with_the_edge(blind: Graph) -> None:
    blind.put_many([On(source=id, target="t") for id in "abc"])
    blind.put_many([Near(source=id, target="a") for id in "bc"])
    blind.maintain(once=True)
    assert len(taken_down(blind)) == 3
    blind.disconnect(On, "a", "t")
    blind.disconnect(On, "b", "t")
    blind.put(On(source="b", target="t", place=9))
    blind.update(On, "c", "t", place=1)
    blind.maintain(once=True)
    assert len(taken_down(blind)) == 2


def test_an_edge_is_taken_down_once(blind: Graph) -> None:
    """One unit for an edge that comes, none for one that changes."""
    blind.put_many([On(source=id, target="t") for id in "abc"])
    blind.maintain(once=True)
    before = taken_down(blind)
    for id in "abc":
        blind.update(On, id, "t", place=7)
    blind.maintain(once=True)
    assert taken_down(blind) == before
