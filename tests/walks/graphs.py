"""Random graphs for traversals, opened on every layout and store, and the paths in them by a plain loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import adjoin
from adjoin import AdjacencyList, AsyncGraph, Edge, Graph, MaterializedGraph, Node
from adjoin.layouts.interface import Layout
from tests.conftest import DrivenGraph


class Person(Node):
    id: str
    age: int = 0


class Product(Node):
    id: str
    price: int = 0


class Knows(Edge[Person, Person]):
    weight: int = 1


class Met(Edge[Person, Person], key=("year",)):
    year: int
    weight: int = 1


class Friend(Edge[Person, Person], symmetric=True):
    weight: int = 1


class Bought(Edge[Person, Product]):
    amount: int = 1


MODELS: list[Any] = [Person, Product, Knows, Met, Friend, Bought]
LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(table="walks"),
    "materialized graph": MaterializedGraph(table="walks", shards=2),
}
PLACES = [(store, layout) for store in ("file", "serve") for layout in LAYOUTS]
_TENANTS = count()


@dataclass(frozen=True)
class Place:
    """Where graphs are opened: each is a tenant of its own in one table."""

    graph: Graph
    async_graph: AsyncGraph
    loop: asyncio.AbstractEventLoop

    def opened(self, entities: Sequence[Any]) -> list[Any]:
        """The same new graph, synchronous and asynchronous."""
        tenant = f"t{next(_TENANTS)}"
        first = self.graph.for_tenant(tenant)
        first.put_many(entities)
        return [first, DrivenGraph(self.async_graph.for_tenant(tenant), self.loop)]


@contextmanager
def place(store: str, layout: str, folder: Path, models: Sequence[Any] = MODELS) -> Iterator[Place]:
    """A file, or a file behind the server."""
    loop = asyncio.new_event_loop()
    location: Any = f"{folder / 'walks.db'}?durability=process"
    with adjoin.serve() as server:
        if store == "serve":
            location = f"dynamodb://walks?endpoint={server.endpoint}&region=us-east-1"
        with Graph(location, models, LAYOUTS[layout]) as graph:
            graph.create_table()
            async_graph = AsyncGraph(location, models, LAYOUTS[layout])
            try:
                yield Place(graph, async_graph, loop)
            finally:
                loop.run_until_complete(async_graph.close())
                loop.close()


# --- random graphs -----------------------------------------------------------------------------

PEOPLE = [f"p{number}" for number in range(6)]
PRODUCTS = [f"x{number}" for number in range(3)]
_person, _product, _weight = st.sampled_from(PEOPLE), st.sampled_from(PRODUCTS), st.integers(1, 4)


@dataclass
class Drawn:
    """The edges of a random graph, each once. All nodes of the lists exist."""

    knows: dict[tuple[str, str], int] = field(default_factory=dict)
    met: dict[tuple[str, str, int], int] = field(default_factory=dict)
    friends: dict[tuple[str, str], int] = field(default_factory=dict)
    bought: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def edges(self) -> list[Any]:
        return [
            *(Knows(source=a, target=b, weight=weight) for (a, b), weight in self.knows.items()),
            *(Met(source=a, target=b, year=year, weight=weight) for (a, b, year), weight in self.met.items()),
            *(Friend(source=a, target=b, weight=weight) for (a, b), weight in self.friends.items()),
            *(Bought(source=a, target=b, amount=amount) for (a, b), amount in self.bought.items()),
        ]

    @property
    def entities(self) -> list[Any]:
        people = [Person(id=id, age=place) for place, id in enumerate(PEOPLE)]
        return [*people, *(Product(id=id, price=10 * place) for place, id in enumerate(PRODUCTS)), *self.edges]

    def arcs(self, model: type[Any], direction: str) -> list[tuple[Any, Any, Any]]:
        """Near node, edge as seen from there, and far node, of every edge of a class in a direction."""
        found: list[tuple[Any, Any, Any]] = []
        for edge in self.edges:
            if type(edge) is not model:
                continue
            a, b = Person.ref(edge.source), (Product if model is Bought else Person).ref(edge.target)
            if model is Friend:
                turned = edge.model_copy(update={"source": edge.target, "target": edge.source})
                seen = {"out": (edge, turned), "into": (turned, edge), "both": (edge, turned)}[direction]
                found.append((a, seen[0], b))
                found += [] if a == b else [(b, seen[1], a)]
                continue
            found += [(a, edge, b)] if direction in ("out", "both") else []
            is_loop = a == b and direction == "both"
            found += [(b, edge, a)] if direction in ("into", "both") and not is_loop else []
        return found


@st.composite
def graphs(draw: st.DrawFn) -> Drawn:
    pairs = st.tuples(_person, _person)
    friends = draw(st.dictionaries(pairs.map(lambda pair: (min(pair), max(pair))), _weight, max_size=8))
    return Drawn(
        draw(st.dictionaries(pairs, _weight, max_size=12)),
        draw(st.dictionaries(st.tuples(_person, _person, st.integers(2000, 2001)), _weight, max_size=6)),
        friends,
        draw(st.dictionaries(st.tuples(_person, _product), _weight, max_size=8)),
    )


Path_ = tuple[tuple[Any, ...], tuple[Any, ...]]
"""The refs of a path, and its edges."""


def followed(graph: Drawn, paths: list[Path_], models: Sequence[type[Any]], direction: str) -> list[Path_]:
    """The paths that are one step longer, by a plain loop."""
    arcs = [arc for model in models for arc in graph.arcs(model, direction)]
    return [((*nodes, far), (*edges, edge)) for nodes, edges in paths for near, edge, far in arcs if near == nodes[-1]]


def named(edge: Any) -> tuple[Any, ...]:
    """An edge as something that can be counted."""
    return type(edge).__name__, edge.source, edge.target, getattr(edge, "year", None)


def counted(paths: Sequence[Path_]) -> Counter[Any]:
    return Counter((nodes, tuple(map(named, edges))) for nodes, edges in paths)
