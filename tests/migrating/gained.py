"""A school whose classes gain indexes, orders and claims, and what its store has."""

from __future__ import annotations

from typing import Annotated, Any

from adjoin import Edge, Graph, Indexed, Node
from adjoin.requests import PageResponse, Response, Scan
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item


class Student(Node):
    id: str
    name: str


class Course(Node):
    id: str


class Enrollment(Edge[Student, Course]):
    at: int


class Found(Node, label="STUDENT"):
    id: str
    name: Annotated[str, Indexed()]


class Ordered(Edge[Found, Course], label="ENROLLMENT", order="at"):
    at: int


FIRST, SECOND = [Student, Course, Enrollment], [Found, Course, Ordered]


class Remote:
    """The embedded store as a service: opening a graph creates nothing."""

    creates_tables = False

    def __init__(self, inner: SQLiteStore) -> None:
        self.inner = inner

    def execute(self, requests: Any) -> list[Response]:
        return self.inner.execute(requests)

    def close(self) -> None:
        pass


def filled(number: int = 10, store: SQLiteStore | None = None) -> SQLiteStore:
    store = store or SQLiteStore(":memory:")
    g = Graph(store, FIRST)
    g.put_many(Student(id=f"S{at}", name=f"n{at}") for at in range(number))
    g.put_many(Course(id=f"C{at}") for at in range(2))
    g.put_many(Enrollment(source=f"S{at}", target=f"C{at % 2}", at=-at) for at in range(number))
    return store


def items(store: SQLiteStore) -> list[Item]:
    (page,) = store.execute([Scan("adjoin")])
    assert isinstance(page, PageResponse)
    return list(page.items)
