"""A shop: who bought this also bought that, what a customer may like, and what sells best.

ann ──▶ tea, cup          an arrow is a Bought, with how many
bob ──▶ tea, cup, pot
cat ──▶ tea, pot
dan ──▶ hat
"""

from __future__ import annotations

import os
from typing import Annotated, Any

from adjoin import AdjacencyList, Edge, Graph, Indexed, Node, Sum


class Customer(Node):
    id: str
    name: str


class Product(Node):
    id: str
    price: int
    sold: Annotated[int, Sum("Bought", field="number"), Indexed()] = 0


class Bought(Edge[Customer, Product]):
    number: int = 1


MODELS = (Customer, Product, Bought)

LAYOUT = AdjacencyList(table="Purchases")

_BASKETS = {
    "ann": {"tea": 2, "cup": 1},
    "bob": {"tea": 1, "cup": 4, "pot": 1},
    "cat": {"tea": 5, "pot": 1},
    "dan": {"hat": 1},
}

SAMPLE: tuple[Any, ...] = (
    *(Customer(id=id, name=id.title()) for id in _BASKETS),
    *(Product(id=id, price=price) for id, price in (("tea", 4), ("cup", 6), ("pot", 20), ("hat", 30))),
    *(
        Bought(source=customer, target=product, number=number)
        for customer, basket in _BASKETS.items()
        for product, number in basket.items()
    ),
)


def open_graph(location: str | os.PathLike[str] = ":memory:") -> Graph:
    g = Graph(location, MODELS, LAYOUT)
    g.put_many(SAMPLE)
    g.maintain(once=True)
    return g


def best_sellers(g: Graph, number: int = 10) -> list[Product]:
    """What sells best, best first: one query per shard, however many products there are."""
    return list(g.find(Product, order="sold").reverse().limit(number))
