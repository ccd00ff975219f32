"""A school that moves into another table, and what both tables have."""

from __future__ import annotations

from typing import Annotated, Any

from adjoin import Edge, Graph, Indexed, MaterializedGraph, Node, Unique
from adjoin.requests import Scan
from adjoin.stores.sqlite import SQLiteStore


class Student(Node):
    id: str
    name: Annotated[str, Indexed()]
    email: Annotated[str | None, Unique()] = None


class Course(Node):
    id: str


class Enrollment(Edge[Student, Course], order="at"):
    at: int


MODELS: list[type[Any]] = [Student, Course, Enrollment]

OTHER = MaterializedGraph(table="Other")


def filled(number: int = 10) -> Graph:
    g = Graph(SQLiteStore(":memory:"), MODELS)
    g.put_many(Student(id=f"S{at}", name=f"n{at % 3}", email=f"e{at}") for at in range(number))
    g.put_many(Course(id=f"C{at}") for at in range(2))
    g.put_many(Enrollment(source=f"S{at}", target=f"C{at % 2}", at=-at) for at in range(number))
    return g


def other(layout: Any = OTHER, models: list[type[Any]] = MODELS) -> Graph:
    return Graph(SQLiteStore(":memory:"), models, layout)


def stored_raw(graph: Graph) -> list[Any]:
    (page,) = graph._store.execute([Scan(graph._layout.table)])
    return list(page.items)  # type: ignore[union-attr]
