"""A service map: what breaks if a server goes down.

web ──▶ shop ──▶ db1          an arrow means "depends on"
 └────▶ search ─▶ db2
jobs ─▶ db1

db1 and db2 run on host-1, search on host-2
"""

from __future__ import annotations

import os
from typing import Any

from adjoin import AdjacencyList, Edge, Graph, Node


class Host(Node):
    id: str


class Service(Node):
    id: str
    team: str


class DependsOn(Edge[Service, Service]):
    pass


class RunsOn(Edge[Service, Host]):
    pass


MODELS = (Host, Service, DependsOn, RunsOn)

LAYOUT = AdjacencyList(table="Services")

_TEAMS = {"web": "front", "shop": "front", "search": "find", "jobs": "data", "db1": "data", "db2": "find"}
_NEEDS = (("web", "shop"), ("web", "search"), ("shop", "db1"), ("search", "db2"), ("jobs", "db1"))
_PLACES = (("db1", "host-1"), ("db2", "host-1"), ("search", "host-2"))

SAMPLE: tuple[Any, ...] = (
    Host(id="host-1"),
    Host(id="host-2"),
    *(Service(id=id, team=team) for id, team in _TEAMS.items()),
    *(DependsOn(source=service, target=needed) for service, needed in _NEEDS),
    *(RunsOn(source=service, target=host) for service, host in _PLACES),
)


def open_graph(location: str | os.PathLike[str] = ":memory:") -> Graph:
    g = Graph(location, MODELS, LAYOUT)
    g.put_many(SAMPLE)
    return g
