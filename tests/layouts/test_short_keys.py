"""Edges between short ids get the same items as edges whose templates are rendered one by one."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from adjoin import AdjacencyList, Edge, Graph, Index, MaterializedGraph, Node
from adjoin.errors import AdjoinError
from adjoin.layouts.interface import Layout


class Person(Node):
    id: str


class Device(Node):
    id: int


class Knows(Edge[Person, Person], symmetric=True):
    since: int
    note: str | None = None


class Owns(Edge[Person, Device]):
    price: float
    status: str | None = None


MODELS = [Person, Device, Knows, Owns]
TEXTS = ("a", "a" * 120, "a" * 121, "a#b", "a|b", "a%b", "a b", "é", "0", "-1", "~", "a" * 2000)
NUMBERS = (0, -5, 2**62, 2**63, 10**30)
LAYOUTS: dict[str, Layout] = {
    "default": AdjacencyList(),
    "with types": AdjacencyList(type_attribute="Kind"),
    "own templates": AdjacencyList(
        edge="TO#{target}", reverse=Index("Back", "B", "S", partition="{target}", sort="{source}")
    ),
    "sparse": AdjacencyList(indexes=[Index("ByStatus", "status", "price")]),
    "materialized": MaterializedGraph(),
}


def made(layout: Any, edge: Any) -> Any:
    try:
        return layout.items(edge)
    except AdjoinError as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_items_are_those_of_rendered_templates(name: str) -> None:
    edges: list[Any] = [
        *(Knows(source=one, target=other, since=1) for one in TEXTS for other in TEXTS),
        *(Owns(source=one, target=other, price=1.5, status="new") for one in TEXTS for other in NUMBERS),
        Owns(source="a", target=1, price=1.5),
    ]
    with Graph(":memory:", MODELS, LAYOUTS[name]) as graph:
        layout = graph._layout
        assert layout._keys.edges[Knows].short is not None
        short = [made(layout, edge) for edge in edges]
        layout._are_plain = False
        assert short == [made(layout, edge) for edge in edges]
    assert any(type(each[0]) is dict for each in short)


def test_ids_that_no_class_takes_stay_refused() -> None:
    with pytest.raises(ValidationError):
        Owns(source="a", target="x", price=1)
    with Graph(":memory:", MODELS) as graph, pytest.raises(AdjoinError, match="id"):
        graph.put(Owns.model_construct(source="", target=1, price=1.0, status=None))
