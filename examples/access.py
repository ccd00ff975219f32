"""An access graph: who can reach a secret, and through what.

ann ──▶ admins ──▶ deploy ──▶ db-password     member of, may assume, may read
bob ──▶ devs ────▶ deploy
cat ──▶ guests
"""

from __future__ import annotations

import os
from typing import Any

from adjoin import AdjacencyList, Edge, Graph, Node


class User(Node):
    id: str


class Group(Node):
    id: str


class Role(Node):
    id: str


class Secret(Node):
    id: str


class MemberOf(Edge[User, Group]):
    pass


class MayAssume(Edge[Group, Role]):
    expires: int | None = None


class MayRead(Edge[Role, Secret]):
    pass


VIA = (MemberOf, MayAssume, MayRead)

MODELS = (User, Group, Role, Secret, *VIA)

LAYOUT = AdjacencyList(table="Access")

SAMPLE: tuple[Any, ...] = (
    *(User(id=id) for id in ("ann", "bob", "cat")),
    *(Group(id=id) for id in ("admins", "devs", "guests")),
    Role(id="deploy"),
    Secret(id="db-password"),
    MemberOf(source="ann", target="admins"),
    MemberOf(source="bob", target="devs"),
    MemberOf(source="cat", target="guests"),
    MayAssume(source="admins", target="deploy"),
    MayAssume(source="devs", target="deploy", expires=2030),
    MayRead(source="deploy", target="db-password"),
)


def open_graph(location: str | os.PathLike[str] = ":memory:") -> Graph:
    g = Graph(location, MODELS, LAYOUT)
    g.put_many(SAMPLE)
    return g
