"""A bill of materials: what a product is made of, and what it costs.

bike ──2──▶ wheel ──32──▶ spoke      a number is how many of the part are used
  │           └──── 1 ──▶ tyre
  ├──1──▶ frame
  └──2──▶ spoke                      spares, in the tool bag
"""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Any

from adjoin import AdjacencyList, Edge, Graph, Node


class Part(Node):
    id: str
    cost: Decimal


class Uses(Edge[Part, Part]):
    number: int


MODELS = (Part, Uses)

LAYOUT = AdjacencyList(table="Materials")

_COSTS = {"bike": "50", "wheel": "12", "spoke": "0.25", "tyre": "9.50", "frame": "200"}
_USES = (("bike", "wheel", 2), ("bike", "frame", 1), ("bike", "spoke", 2), ("wheel", "spoke", 32), ("wheel", "tyre", 1))

SAMPLE: tuple[Any, ...] = (
    *(Part(id=id, cost=Decimal(cost)) for id, cost in _COSTS.items()),
    *(Uses(source=part, target=needed, number=number) for part, needed, number in _USES),
)


def open_graph(location: str | os.PathLike[str] = ":memory:") -> Graph:
    g = Graph(location, MODELS, LAYOUT)
    g.put_many(SAMPLE)
    return g
