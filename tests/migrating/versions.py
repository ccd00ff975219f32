"""Two versions of a program for each kind of change, and a store that halts and crashes between requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AliasChoices, Field, computed_field

from adjoin import AdjacencyList, Edge, Graph, Index, Indexed, Keys, MaterializedGraph, Node, Unique
from adjoin import field as compared
from adjoin.layouts.interface import Layout
from adjoin.requests import Request, Response
from adjoin.stores.interface import Store


class Crash(BaseException):
    """The program ends here. Nothing of adjoin handles it."""


class Halting:
    """A store that calls a function before and after each request of one program, and ends the program there."""

    creates_tables = True

    def __init__(self, inner: Store, between: Callable[[], None], crash_at: int | None = None) -> None:
        self._inner, self._between, self._crash_at = inner, between, crash_at
        self.moments = 0

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        responses: list[Response] = []
        for request in requests:
            self._moment()
            responses += self._inner.execute([request])
            self._moment()
        return responses

    def _moment(self) -> None:
        self.moments += 1
        if self.moments == self._crash_at:
            raise Crash
        self._between()

    def close(self) -> None:
        pass


# --- a class that gains an order ---------------------------------------------------------------


class Student(Node):
    id: str
    name: str = "x"


class Course(Node):
    id: str


class Enrollment(Edge[Student, Course]):
    at: int


def ordered() -> list[type[Any]]:
    class Enrollment(Edge[Student, Course], order="at"):
        at: int

    return [Student, Course, Enrollment]


# --- a class that gains indexed fields ---------------------------------------------------------


class Person(Node):
    id: str
    name: str
    born: int = 0
    email: str | None = None


def indexed() -> list[type[Any]]:
    class Person(Node):
        id: str
        name: Annotated[str, Indexed()]
        born: int = 0
        email: str | None = None

    return [Person]


def indexed_twice() -> list[type[Any]]:
    class Person(Node):
        id: str
        name: Annotated[str, Indexed()]
        born: Annotated[int, Indexed()] = 0
        email: str | None = None

    return [Person]


def unique() -> list[type[Any]]:
    class Person(Node):
        id: str
        name: str
        born: int = 0
        email: Annotated[str | None, Unique()] = None

    return [Person]


def renamed() -> list[type[Any]]:
    class Person(Node):
        id: str
        title: str = Field(validation_alias=AliasChoices("title", "name"))
        born: int = 0
        email: str | None = None

    return [Person]


def required() -> list[type[Any]]:
    class Person(Node):
        id: str
        name: str
        born: int = 0
        email: str | None = None
        year: int

    return [Person]


def without_email() -> list[type[Any]]:
    class Person(Node):
        id: str
        name: str
        born: int = 0

    return [Person]


def tagged() -> list[type[Any]]:
    class Person(Node):
        id: str
        name: str
        born: int = 0
        email: str | None = None
        tags: Annotated[list[str], Indexed(elements=True)] = Field(default_factory=lambda: ["all"])

    return [Person]


def computed() -> list[type[Any]]:
    class Person(Node):
        id: str
        name: str
        born: int = 0
        email: str | None = None

        @computed_field  # type: ignore[prop-decorator]
        @property
        def full(self) -> Annotated[str, Indexed()]:
            return f"{self.name} {self.born}"

    return [Person]


# --- a class that gains a template in an index --------------------------------------------------


def templated(model: type[Any]) -> AdjacencyList:
    return AdjacencyList(
        indexes=[Index("ByBorn", "B_PK", "B_SK")], keys={model: Keys(indexes={"ByBorn": ("BORN#{born}", "{name}")})}
    )


# --- a class that becomes symmetric ------------------------------------------------------------


class Knows(Edge[Person, Person]):
    since: int


def symmetric() -> list[type[Any]]:
    class Knows(Edge[Person, Person], symmetric=True):
        since: int

    return [Person, Knows]


LAYOUTS: dict[str, Layout | None] = {"adjacency list": None, "materialized graph": MaterializedGraph()}


@dataclass
class Version:
    """The two versions of a program, and how the newer one asks for everything."""

    older: list[type[Any]]
    newer: list[type[Any]]
    write: Callable[[list[type[Any]], int], list[Any]]
    """Entities of either version; the number says which."""
    ask: Callable[[Graph, list[type[Any]]], Iterable[Any]]
    """All entities, in the way that is new."""
    layout: Callable[[list[type[Any]]], Layout | None] | None = None
    gone: str = ""
    """An attribute that no item has after the last step."""
    options: dict[str, Any] = field(default_factory=dict)


def people(models: list[type[Any]], number: int) -> list[Any]:
    (person, *_) = models
    title = "title" if "title" in person.model_fields else "name"
    extra: dict[str, Any] = {"year": 2000 + number % 7} if "year" in person.model_fields else {}
    extra |= {"email": f"e{number}"} if "email" in person.model_fields else {}
    return [person(**{"id": f"P{number}", title: f"n{number % 5}", "born": number % 3}, **extra)]


def enrollments(models: list[type[Any]], number: int) -> list[Any]:
    student, course, edge = models
    source, target = f"S{number % 4}", f"C{number % 3}"
    return [student(id=source), course(id=target), edge(source=source, target=target, at=number)]


def friends(models: list[type[Any]], number: int) -> list[Any]:
    person, knows = models
    one, other = f"P{number % 7}", f"P{number % 5 + 7}"
    return [person(id=one, name="x"), person(id=other, name="x"), knows(source=one, target=other, since=number)]


def _out_and_into(graph: Graph, models: list[type[Any]]) -> Iterator[Any]:
    for number in range(4):
        found = list(graph.out(f"S{number}", models[2]))
        assert [each.at for each in found] == sorted(each.at for each in found)
        yield from found
    there = [each for number in range(3) for each in graph.into(f"C{number}", models[2])]
    assert len(there) == graph.count(models[2])


CHANGES: dict[str, Version] = {
    "order": Version([Student, Course, Enrollment], ordered(), enrollments, _out_and_into),
    "indexed": Version([Person], indexed(), people, lambda g, models: g.find(models[0], order="name")),
    "indexed twice": Version([Person], indexed_twice(), people, lambda g, models: g.find(models[0], order="born")),
    "second indexed": Version(indexed(), indexed_twice(), people, lambda g, models: g.find(models[0], order="born")),
    "unique": Version(
        [Person],
        unique(),
        people,
        lambda g, models: [each for number in range(40) if (each := g.get(models[0], email=f"e{number}")) is not None],
    ),
    "renamed": Version(
        [Person],
        renamed(),
        people,
        lambda g, models: [
            each for number in range(5) for each in g.scan(models[0]).where(compared("title") == f"n{number}")
        ],
    ),
    "filled": Version(
        [Person],
        required(),
        people,
        lambda g, models: g.scan(models[0]),
        options={"fill": {"Person.year": lambda item: 2000 + len(item["name"])}},
    ),
    "dropped": Version(
        [Person],
        without_email(),
        people,
        lambda g, models: g.scan(models[0]),
        gone="email",
        options={"drop": ["Person.email"]},
    ),
    "template": Version(
        [Person],
        [Person],
        people,
        lambda g, models: [each for born in range(3) for each in g.find(models[0], compared("born") == born)],
        layout=lambda models: templated(models[0]),
    ),
    "elements": Version(
        [Person], tagged(), people, lambda g, models: g.find(models[0], compared("tags").contains("all"))
    ),
    "computed": Version([Person], computed(), people, lambda g, models: g.find(models[0], order="full")),
    "symmetric": Version(
        [Person, Knows],
        symmetric(),
        friends,
        lambda g, models: [
            each for number in range(12) for each in g.out(f"P{number}", models[1]) if each.source <= each.target
        ],
    ),
}
