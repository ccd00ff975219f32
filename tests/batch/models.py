"""A graph with every sort of aggregate and summary."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any

from adjoin import Edge, Node, Ranked
from adjoin import field as f
from adjoin.aggregates import Avg, CommonNeighbours, Components, Count, Latest, Max, Min, PageRank, Sum, Top


class Author(Node):
    id: str
    books: Annotated[int, Count("Wrote")] = 0
    pages: Annotated[Decimal, Sum("Wrote", field="length")] = Decimal(0)
    worth: Annotated[Decimal, Sum("Wrote", field="price")] = Decimal(0)
    dear: Annotated[int, Count("Wrote", where=f("price") > 10)] = 0
    long: Annotated[int, Count("Wrote", where=(f("length") >= Decimal("0.5")) & ~(f("role") == "editor"))] = 0
    unpaid: Annotated[int, Count("Wrote", where=f("price") == None)] = 0  # noqa: E711
    least: Annotated[Decimal | None, Min("Wrote", field="length")] = None
    dearest: Annotated[Decimal | None, Max("Wrote", field="price")] = None
    first_role: Annotated[str | None, Min("Wrote", field="role", where=f("role").begins_with("e"))] = None
    longest: Annotated[list[Decimal], Top("Wrote", field="length", k=2)] = []
    longest_of: Annotated[list[Ranked[Decimal]], Top("Wrote", field="length", k=2)] = []
    best_shops: Annotated[list[Ranked[Decimal]], Top("Wrote", "Sold", field="amount", k=3)] = []
    mean_length: Annotated[Decimal | None, Avg("Wrote", field="length")] = None
    mean_sale: Annotated[float | None, Avg("Wrote", "Sold", field="amount")] = None
    newest: Annotated[str | None, Latest("Wrote", field="role", by="year")] = None
    sales: Annotated[Decimal, Sum("Wrote", "Sold", field="amount")] = Decimal(0)
    sold_in: Annotated[int, Count("Wrote", "Sold", distinct=True)] = 0
    deals: Annotated[int, Count("Wrote", "Sold", where=f("amount").between(-1, 1))] = 0
    best_sales: Annotated[list[Decimal], Top("Wrote", "Sold", field="amount", k=3)] = []
    last_note: Annotated[str | None, Latest("Wrote", "Sold", field="note")] = None
    worst_sale: Annotated[Decimal | None, Min("Wrote", "Sold", field="amount")] = None
    friends: Annotated[int, Count("Knows")] = 0
    strength: Annotated[int | None, Max("Knows", field="strength")] = None
    fans: Annotated[int, Count("Follows", direction="into")] = 0
    follows: Annotated[int, Count("Follows")] = 0
    rank: Annotated[float | None, PageRank("Follows", iterations=4)] = None
    circle: Annotated[str | None, Components("Follows")] = None
    alike: Annotated[list[str], CommonNeighbours("Follows", k=2)] = []


class Book(Node):
    id: int
    price: Decimal | None = None
    writers: Annotated[int, Count("Wrote")] = 0
    sold: Annotated[Decimal, Sum("Sold", field="amount")] = Decimal(0)


class Shop(Node):
    id: str
    turnover: Annotated[Decimal, Sum("Sold", field="amount")] = Decimal(0)
    selling: Annotated[int, Count("Sold", where=f("sold") > 1)] = 0
    total: Annotated[Decimal, Sum("Sold", field="sold")] = Decimal(0)


class Wrote(Edge[Author, Book], key=("year",)):
    year: int
    length: Decimal | None = None
    role: str | None = None


class Sold(Edge[Book, Shop], order="at"):
    at: dt.date
    amount: Decimal
    note: str | None = None


class Knows(Edge[Author, Author], symmetric=True):
    strength: int


class Follows(Edge[Author, Author]):
    pass


class Part(Node):
    id: int
    cost: Decimal
    total: Annotated[Decimal, Sum("Holds", field="cost", recursive=True)] = Decimal(0)
    pieces: Annotated[int, Count("Holds", recursive=True)] = 0
    quantity: Annotated[Decimal, Sum("Holds", field="number", recursive=True, where=f("number") > 0)] = Decimal(0)
    needed: Annotated[int, Count("Holds", recursive=True, quantity="times")] = 0
    price: Annotated[Decimal, Sum("Holds", field="cost", recursive=True, quantity="times")] = Decimal(0)
    direct: Annotated[Decimal, Sum("Holds", field="cost", quantity="number")] = Decimal(0)
    dearest: Annotated[Decimal | None, Max("Holds", field="cost", recursive=True)] = None
    largest: Annotated[list[Decimal], Top("Holds", field="number", k=2, recursive=True)] = []
    largest_of: Annotated[list[Ranked[Decimal]], Top("Holds", field="number", k=3, recursive=True)] = []
    mean_cost: Annotated[Decimal | None, Avg("Holds", field="cost", recursive=True)] = None
    latest: Annotated[Decimal | None, Latest("Holds", field="number", by="year", recursive=True)] = None
    above: Annotated[int, Count("Holds", direction="into", recursive=True)] = 0
    different: Annotated[int, Count("Holds", recursive=True, distinct=True)] = 0
    once: Annotated[Decimal, Sum("Holds", field="cost", recursive=True, distinct=True)] = Decimal(0)
    mean_once: Annotated[Decimal | None, Avg("Holds", field="cost", recursive=True, distinct=True)] = None


class Holds(Edge[Part, Part]):
    number: Decimal
    year: int = 0
    times: int | None = 1


MODELS: list[type[Any]] = [Author, Book, Shop, Wrote, Sold, Knows, Follows, Part, Holds]


@dataclass
class World:
    """Nodes and edges, by class."""

    nodes: dict[type[Any], dict[Any, Any]] = field(default_factory=dict)
    edges: dict[type[Any], list[Any]] = field(default_factory=dict)

    @property
    def all(self) -> list[Any]:
        nodes = [node for some in self.nodes.values() for node in some.values()]
        return [*nodes, *(edge for some in self.edges.values() for edge in some)]
