"""A graph, on a file or on a server, as subjects open it."""

from __future__ import annotations

from adjoin import Graph
from tests.whole.models import MODELS


class Opened:
    pause = 0.03

    def __init__(self, name: str, location: str, edges: int) -> None:
        self.remote = location.startswith("dynamodb:")
        self.name, self.edges = name, edges
        self.g = Graph(location, MODELS)

    def close(self) -> None:
        self.g.close()
