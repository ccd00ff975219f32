"""A social network: friends of friends, suggestions with reasons, and the way from one person to another.

Ann ── Bob ── Dan ── Eve          a line is a Friend, which has no direction
  └─── Cat ───┘ └─── Fay
"""

from __future__ import annotations

import os
from typing import Any

from adjoin import AdjacencyList, Edge, Graph, Node


class Person(Node):
    id: str
    name: str
    born: int


class Friend(Edge[Person, Person], symmetric=True):
    since: int


MODELS = (Person, Friend)

LAYOUT = AdjacencyList(table="Social")

_PEOPLE = ("ann", "bob", "cat", "dan", "eve", "fay")
_PAIRS = (("ann", "bob", 2015), ("ann", "cat", 2021), ("bob", "dan", 2018), ("cat", "dan", 2019))
_OTHERS = (("dan", "eve", 2020), ("dan", "fay", 2022))

SAMPLE: tuple[Any, ...] = (
    *(Person(id=id, name=id.title(), born=1990 + at) for at, id in enumerate(_PEOPLE)),
    *(Friend(source=one, target=other, since=year) for one, other, year in (*_PAIRS, *_OTHERS)),
)


def open_graph(location: str | os.PathLike[str] = ":memory:") -> Graph:
    g = Graph(location, MODELS, LAYOUT)
    g.put_many(SAMPLE)
    return g
