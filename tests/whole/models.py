"""What is stored: people who follow topics, and hubs with very many edges. An older adjoin can read it too."""

from __future__ import annotations

from typing import Annotated

from adjoin import Copy, Count, Edge, Indexed, Max, Node, Sum, Top, Unique

TOPICS = ("t0", "t1", "t2", "t3")
TABLE = "adjoin"


class Topic(Node):
    id: str
    name: str
    visits: int = 0
    followers: Annotated[int, Count("Follows")] = 0
    weight: Annotated[int, Sum("Follows", field="weight")] = 0
    heaviest: Annotated[int | None, Max("Follows", field="weight")] = None
    top: Annotated[list[int], Top("Follows", field="weight", k=3)] = []
    listed: Annotated[int, Count("Listed")] = 0


class Person(Node):
    id: str
    name: Annotated[str, Indexed()]
    email: Annotated[str, Unique()]
    points: int = 0
    follows: Annotated[int, Count("Follows", consistency="transaction")] = 0


class Hub(Node):
    id: str


class Follows(Edge[Person, Topic]):
    weight: int
    topic: Annotated[str, Copy("target.name")] = ""


class Listed(Edge[Hub, Topic], key="number"):
    number: int


MODELS = [Topic, Person, Hub, Follows, Listed]
