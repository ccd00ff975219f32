"""Copied fields that are parts of index keys, with values that no key can hold: nothing else waits for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Edge, Graph, Index, Keys, Node, field
from adjoin.aggregates import Copy, Count


class Shop(Node):
    id: str
    city: str = "Oslo"
    things: Annotated[int, Count("Sells")] = 0


class Thing(Node):
    id: str


class Sells(Edge[Shop, Thing]):
    city: Annotated[str, Copy("source.city")] = ""
    note: str = "-"


MODELS: list[type[Any]] = [Shop, Thing, Sells]
LAYOUT = AdjacencyList(
    indexes=[Index("ByCity", "City", "CitySort")],
    keys={Sells: Keys(indexes={"ByCity": ("{city}", "{city}#{note}")})},
)


@pytest.fixture
def g() -> Iterator[Graph]:
    with Graph(":memory:", MODELS, LAYOUT) as graph:
        graph.put_many([Shop(id="S1"), Shop(id="S2"), *(Thing(id=f"T{number}") for number in range(3))])
        graph.put_many(Sells(source=source, target="T1") for source in ("S1", "S2"))
        graph.maintain(once=True)
        yield graph


def sold_in(g: Graph, city: str) -> list[tuple[str, str]]:
    """What the index finds; what it finds is what the edge has."""
    found = list(g.find(Sells, field("city") == city))
    assert {edge.city for edge in found} <= {city}
    return sorted((edge.source, edge.target) for edge in found)


@pytest.mark.parametrize(
    ("city", "reason"),
    [
        ("x" * 1030, "the key 'CitySort' of a Sells would have 1,032 bytes"),
        ("x" * 3000, "the key 'City' of a Sells would have 3,000 bytes"),
        ("Paris#1", "'Paris#1' holds '#', which separates the parts"),
    ],
    ids=["too long", "much too long", "a separator"],
)
@pytest.mark.parametrize("then", ["Bonn", "Oslo"])
def test_a_value_that_no_key_can_hold_is_set_aside(g: Graph, city: str, reason: str, then: str) -> None:
    g.update(Shop, "S1", city=city)
    g.update(Shop, "S2", city="Rome")
    g.put(Sells(source="S2", target="T2"))
    report = g.maintain(once=True)
    (aside,) = report.set_aside
    assert reason in aside.reason
    assert aside.edge == g._layout.node_key(g._layout.schema.node(Shop), "S1")
    assert g.health().set_aside == 1
    # Everything else was applied, and the edge is as it was.
    assert sold_in(g, "Rome") == [("S2", "T1"), ("S2", "T2")]
    assert sold_in(g, "Oslo") == [("S1", "T1")]
    assert [shop and shop.things for shop in g.get_many(Shop, ["S1", "S2"])] == [1, 2]
    g.update(Shop, "S1", city=then)
    assert g.maintain(once=True).set_aside == ()
    assert sold_in(g, then) == [("S1", "T1")]
    assert g.health().set_aside == 0


def test_an_empty_value_leaves_the_index(g: Graph) -> None:
    g.update(Shop, "S1", city="")
    assert g.maintain(once=True).set_aside == ()
    assert sold_in(g, "Oslo") == [("S2", "T1")]
    assert [edge.city for edge in g.out("S1", Sells)] == [""]
    g.update(Shop, "S1", city="Oslo")
    g.maintain(once=True)
    assert sold_in(g, "Oslo") == [("S1", "T1"), ("S2", "T1")]


@pytest.mark.parametrize("page", [1, 100])
def test_one_edge_does_not_keep_the_others_of_its_node(g: Graph, page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its own part, the key of this edge alone is too long; whether it comes first or last, in whatever page."""
    monkeypatch.setattr("adjoin.plans.counting.ledger.PAGE", page)
    g.update(Sells, "S1", "T1", note="n" * 1000)
    g.put_many(Sells(source="S1", target=target) for target in ("T0", "T2"))
    g.maintain(once=True)
    g.update(Shop, "S1", city="C" * 100)
    (aside,) = g.maintain(once=True).set_aside
    assert "the key 'CitySort' of a Sells would have 1,101 bytes" in aside.reason
    assert sold_in(g, "C" * 100) == [("S1", "T0"), ("S1", "T2")]
    assert sold_in(g, "Oslo") == [("S1", "T1"), ("S2", "T1")]
    # The part of the edge itself was in the way.
    g.update(Sells, "S1", "T1", note="-")
    assert g.maintain(once=True).set_aside == ()
    assert sold_in(g, "C" * 100) == [("S1", "T0"), ("S1", "T1"), ("S1", "T2")]


def test_an_audit_says_why_it_cannot_repair_the_copy(g: Graph) -> None:
    g.put(Sells(source="S1", target="T2"))
    g.update(Shop, "S1", city="x" * 3000)
    g.update(Shop, "S2", city="Rome")
    audit = g.verify(repair=["copy"], threads=1)
    (finding,) = (each for each in audit.findings if each.kind == "copy")
    assert (finding.count, finding.repaired) == (3, 1)
    assert all("would have 3,000 bytes" in each["reason"] for each in finding.failures)
    assert sold_in(g, "Rome") == [("S2", "T1")]
