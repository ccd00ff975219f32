"""Editing with --write: with the checks of the classes, and only with it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field, field_validator

from adjoin import Child, Edge, Graph, Indexed, Node, Unique, Version
from tests.explorer.graphs import HOSTILE_MODELS, LAYOUTS, SCRIPT, Asking, asking, filled, hostile_file


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Product(Node):
    id: int
    name: Annotated[str, Indexed(), Field(min_length=2)]
    price: Decimal = Decimal(0)
    sizes: list[Size] = []
    since: dt.date | None = None
    code: Annotated[str | None, Unique()] = None
    version: Annotated[int, Version()] = 0

    @field_validator("price")
    @classmethod
    def not_negative(cls, price: Decimal) -> Decimal:
        if price < 0:
            raise ValueError("a price is at least 0")
        return price


class Goes(Edge[Product, Product], key=("season",)):
    season: str
    weight: int = 1


class Review(Child[Product], key=("by",)):
    by: str
    stars: int


MODELS = (Product, Goes, Review)


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def file(tmp_path: Path, layout: str) -> str:
    return filled(tmp_path / "shop.db", MODELS, LAYOUTS[layout], [Product(id=1, name="Tea"), Product(id=2, name="Cup")])


@pytest.fixture
def ask(file: str, layout: str) -> Iterator[Asking]:
    with asking(file, MODELS, LAYOUTS[layout], write=True) as found:
        yield found


@pytest.fixture
def graph(file: str, layout: str) -> Iterator[Graph]:
    with Graph(file, MODELS, LAYOUTS[layout]) as found:
        yield found


def test_a_node_is_added_as_its_class_reads_it(ask: Asking, graph: Graph) -> None:
    values = {"id": "3", "name": "Pot", "price": "12.50", "sizes": '["small"]', "since": "2024-02-29", "code": "P-3"}
    answer = ask("add", model="Product", values=values)
    assert answer["node"]["handle"] == "Product/3"
    assert graph.get(Product, 3) == Product(
        id=3, name="Pot", price=Decimal("12.50"), sizes=[Size.SMALL], since=dt.date(2024, 2, 29), code="P-3", version=0
    )


@pytest.mark.parametrize(
    ("values", "field", "why"),
    [
        ({"id": "x", "name": "Pot"}, "id", "integer"),
        ({"id": "3", "name": "P"}, "name", "at least 2"),
        ({"id": "3", "name": "Pot", "price": "-1"}, "price", "a price is at least 0"),
        ({"id": "3", "name": "Pot", "price": "cheap"}, "price", "decimal"),
        ({"id": "3", "name": "Pot", "sizes": '["huge"]'}, "sizes", "small"),
        ({"id": "3", "name": "Pot", "since": "yesterday"}, "since", "date"),
        ({"name": "Pot"}, "id", "required"),
    ],
)
def test_what_a_class_refuses_is_told_beside_the_field(
    ask: Asking, graph: Graph, values: dict[str, str], field: str, why: str
) -> None:
    problems = ask("add", model="Product", values=values)["problems"]
    assert why in problems[field]
    assert len(list(graph.scan(Product))) == 2


def test_what_the_graph_refuses_is_an_error(ask: Asking) -> None:
    assert "already exists" in ask.refused("add", model="Product", values={"id": "1", "name": "Tea"})
    ask("add", model="Product", values={"id": "3", "name": "Pot", "code": "A"})
    assert "code" in ask.refused("add", model="Product", values={"id": "4", "name": "Pan", "code": "A"})
    assert "did you mean 'name'" in ask.refused("add", model="Product", values={"id": "4", "nam": "Pan"})
    assert "name a class of nodes" in ask.refused("add", model="Goes", values={})
    assert "values" in ask.refused("add", model="Product", values=[1])


def test_fields_are_changed_one_by_one(ask: Asking, graph: Graph) -> None:
    answer = ask("change", handle="Product/1", values={"price": "3.20", "since": None})
    assert answer["node"]["fields"]["price"] == "3.20" or answer["node"]["fields"]["price"] == "3.2"
    found = graph.get(Product, 1)
    assert found is not None
    assert (found.name, found.price) == ("Tea", Decimal("3.2"))
    assert "a price is at least 0" in ask("change", handle="Product/1", values={"price": "-2"})["problems"]["price"]
    assert "deleted" in ask.refused("change", handle="Product/9", values={"price": "2"})


def test_edges_are_connected_changed_and_deleted(ask: Asking, graph: Graph) -> None:
    values = {"season": "winter", "weight": "2"}
    edge = ask("connect", model="Goes", source="Product/1", target="Product/2", values=values)["edge"]
    assert graph.edge(Goes, 1, 2, season="winter") is not None
    assert "already" in ask.refused("connect", model="Goes", source="Product/1", target="Product/2", values=values)
    assert "9" in ask.refused("connect", model="Goes", source="Product/1", target="Product/9", values=values)
    problems = ask("connect", model="Goes", source="Product/1", target="Product/2", values={"weight": "much"})
    assert "weight" in problems["problems"]
    changed = ask("change", handle=edge["handle"], values={"weight": "5"})["edge"]
    assert changed["fields"]["weight"] == 5
    assert ask("delete", handle=edge["handle"], kind="edge")["deleted"]
    assert not ask("delete", handle=edge["handle"], kind="edge")["deleted"]
    assert graph.edge(Goes, 1, 2, season="winter") is None


def test_a_node_is_deleted_with_its_edges(ask: Asking, graph: Graph) -> None:
    graph.connect(Goes, 1, 2, season="winter")
    assert ask("delete", handle="Product/1", kind="node")["deleted"]
    assert graph.get(Product, 1) is None
    assert list(graph.into(2, Goes)) == []


def test_children(ask: Asking, graph: Graph) -> None:
    node = ask("add", model="Review", values={"parent": "1", "by": "Ann", "stars": "5"})["node"]
    assert graph.get(Review, (1, "Ann")) == Review(parent=1, by="Ann", stars=5)
    assert ask("change", handle=node["handle"], values={"stars": "4"})["node"]["fields"]["stars"] == 4
    assert ask("delete", handle=node["handle"], kind="node")["deleted"]


def test_what_harms_is_stored_as_it_is(tmp_path: Path, layout: str) -> None:
    with asking(hostile_file(tmp_path, layout), HOSTILE_MODELS, LAYOUTS[layout], write=True) as ask:
        ask("add", model="Post", values={"id": SCRIPT, "title": SCRIPT})
        assert ask("find", text=SCRIPT, model="Post")["nodes"][0]["title"] == SCRIPT


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("add", {"model": "Product", "values": {"id": "3", "name": "Pot"}}),
        ("change", {"handle": "Product/1", "values": {"name": "Tee"}}),
        ("connect", {"model": "Goes", "source": "Product/1", "target": "Product/2", "values": {"season": "w"}}),
        ("delete", {"handle": "Product/1", "kind": "node"}),
    ],
)
def test_without_write_there_is_no_editing(file: str, layout: str, name: str, asked: dict[str, Any]) -> None:
    with asking(file, MODELS, LAYOUTS[layout]) as ask:
        status, answer = ask.api.answer(name, asked)
        assert status == 404
        assert "has no" in answer["error"]["message"]
        assert ask("model")["writable"] is False
