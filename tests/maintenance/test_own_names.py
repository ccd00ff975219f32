"""The names of attributes in what is recorded about aggregates, beside the names of keys that a table has."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Count, Edge, Expires, Graph, Index, InvalidModel, Node
from adjoin.reserved import ATTRIBUTE, OWN_NAMES
from tests.maintenance.models import ALBUMS, MODELS, PARTS, PEOPLE, SHOP, WALLETS
from tests.maintenance.simulation import Simulation, stored
from tests.maintenance.test_simulation import Life


class Customer(Node):
    id: str
    invoices: Annotated[int, Count("Placed")] = 0


class Invoice(Node):
    id: str


class Placed(Edge[Customer, Invoice]):
    pass


class Loose(Node):
    id: str


class Link(Edge[Loose, Loose]):
    pass


LAYOUTS: dict[str, Callable[[str], AdjacencyList]] = {
    "partition": lambda name: AdjacencyList("Table", partition_key=name),
    "sort": lambda name: AdjacencyList("Table", sort_key=name),
    "index": lambda name: AdjacencyList("Table", reverse=Index("Reverse", name, "other")),
}


@pytest.mark.parametrize("name", ["o", "s", "value", "rank", "at"])
@pytest.mark.parametrize("where", LAYOUTS)
def test_a_key_of_such_a_name(name: str, where: str) -> None:
    layout = LAYOUTS[where](name)
    with pytest.raises(InvalidModel, match=f"'{name}' is a key or the time to live of the table Table, and also"):
        Graph(":memory:", [Customer, Invoice, Placed], layout)
    with Graph(":memory:", [Loose, Link], layout) as g:
        g.put_many([Loose(id="a"), Link(source="a", target="b")])
        assert [edge.target for edge in g.out(Loose.ref("a"), Link)] == ["b"]


def test_a_time_to_live_of_such_a_name() -> None:
    class Passing(Node):
        id: str
        at: Annotated[dt.datetime | None, Expires()] = None

    with pytest.raises(InvalidModel, match="'at' is a key or the time to live"):
        Graph(":memory:", [Customer, Invoice, Placed, Passing])


@pytest.mark.parametrize(
    "models", [SHOP, ALBUMS, PARTS, PEOPLE, WALLETS], ids=["shop", "albums", "parts", "people", "wallets"]
)
def test_nothing_is_recorded_by_other_names(models: list[Any]) -> None:
    names: set[str] = set()
    with Graph(":memory:", MODELS) as graph:
        simulation = Simulation(graph, 1)

        def look() -> None:
            own = (item for item in stored(graph) if graph._layout.is_bookkeeping(item))
            # A copy for an index has what its node or edge has.
            names.update(name for item in own if "Type" not in item for name in item)

        simulation.watch = look
        life = Life(graph, simulation.chance, models, 3)
        for _ in range(40):
            simulation.write(*life.act())
        simulation.drain()
    assert names - {"PK", "SK"}
    assert {name for name in names - {"PK", "SK"} if not name.startswith(ATTRIBUTE)} <= OWN_NAMES | {"tokens"}
