"""A table and programs that write to it while it moves into another one, in another layout."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from adjoin import AdjacencyList, Child, Edge, Expires, Graph, Index, Indexed, Keys, MaterializedGraph, Node, Unique
from adjoin.errors import OutcomeUnknown
from adjoin.layouts.interface import Layout
from adjoin.requests import PageResponse, Request, Response, Scan
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item
from tests.migrating.versions import Crash

LATER = datetime(2100, 1, 1, tzinfo=UTC)


class Person(Node):
    id: str
    name: Annotated[str, Indexed()]
    born: Annotated[int | None, Indexed()] = None
    email: Annotated[str | None, Unique()] = None


class Place(Node):
    id: str
    city: Annotated[str, Indexed()]
    until: Annotated[datetime | None, Expires()] = None


class Note(Child[Place], key=("at",)):
    at: int
    text: str = ""


class Visit(Edge[Person, Place], order="at"):
    at: int


class Knows(Edge[Person, Person], symmetric=True):
    since: int


MODELS: list[type[Any]] = [Person, Place, Note, Visit, Knows]

LEGACY = AdjacencyList(
    table="Legacy",
    partition_key="Id",
    sort_key="Range",
    node="SELF",
    edge="{label}|{target}",
    type_attribute="Type",
    reverse=Index("ByTarget", "TargetId", "TargetRange", partition="{target}", sort="{label}|{source}"),
    keys={Note: Keys(partition="PLACE#{parent.id}", sort="NOTE|{at:06}")},
)
"""A table with keys of its own."""
SORTED = replace(LEGACY, keys={**LEGACY.keys, Visit: Keys(sort="VISIT|{at:06}|{target}")})
"""The same, but an edge has another key when its order changes. The others cannot tell such edges apart."""

LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "materialized graph": MaterializedGraph(),
    "templates": LEGACY,
    "sorted templates": SORTED,
}
DIRECTIONS = [(one, other) for one in LAYOUTS for other in LAYOUTS if one != other and one != "sorted templates"]


class Halting:
    """A store that calls a function before and after each request, and from one moment on answers nothing."""

    creates_tables = True

    def __init__(self, inner: Store, moment: Callable[[], None]) -> None:
        self._inner, self._moment = inner, moment

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        responses: list[Response] = []
        for request in requests:
            self._moment()
            responses += self._inner.execute([request])
            self._moment()
        return responses

    def close(self) -> None:
        pass


class Move:
    """Two tables, and programs that write to the old one between any two requests of the migration."""

    def __init__(self, old: str, new: str, seed: int, models: Sequence[type[Any]] = MODELS) -> None:
        self.random, self.models = random.Random(seed), models
        self.layouts = LAYOUTS[old], LAYOUTS[new]
        self.stores = SQLiteStore(":memory:"), SQLiteStore(":memory:")
        self.old = Graph(self.stores[0], models, self.layouts[0])
        self.is_at_work, self.lock = True, threading.RLock()
        self.moments, self.crash_at, self.runs, self.left = 0, None, 0, 0
        self.fails_at = 0
        for number in range(14):
            self.write(number)

    crash_at: int | None

    def write(self, number: int) -> None:
        """One of the writes of programs: entities come, change, move in their order, and go."""
        g, chance = self.old, self.random.randrange
        person, place = f"P{number % 5}", f"L{number % 3}"
        match number % 10:
            case 0:
                g.put(Place(id=place, city=f"c{chance(3)}", until=LATER if chance(2) else None))
            case 1 | 2 | 3:
                email = None if chance(3) == 0 else f"e{chance(6)}"
                if email is not None and g.get(Person, email=email) is not None:
                    email = None
                g.put(Person(id=person, name=f"n{chance(4)}", born=chance(3) or None, email=email))
            case 4 | 5:
                g.put(Visit(source=person, target=place, at=chance(50)))
            case 6:
                g.put(Note(parent=place, at=chance(4), text=f"t{chance(9)}"))
            case 7:
                g.put(Knows(source=person, target=f"P{(number + 1 + chance(3)) % 5}", since=chance(9)))
            case 8:
                g.disconnect(Visit, person, place)
            case 9:
                g.delete(Person if chance(2) else Place, person if chance(2) else place)

    def _moment(self) -> None:
        with self.lock:
            self.moments += 1
            if self.crash_at is not None and self.moments >= self.crash_at:
                raise Crash
            if self.moments == self.fails_at:
                raise OutcomeUnknown("the answer was lost")
            if self.is_at_work and self.left and self.random.random() < 0.3:
                self.left -= 1
                self.write(self.random.randrange(1000))

    def migrate(self, crash_at: int | None = None, *, finish: bool = False) -> Any:
        """One run of the migration; None if it crashed."""
        self.moments, self.crash_at, self.left = 0, crash_at, 30
        self.runs += 1
        try:
            old = Graph(Halting(self.stores[0], self._moment), self.models, self.layouts[0])
            new = Graph(Halting(self.stores[1], self._moment), self.models, self.layouts[1])
            # A run that crashed counts as stopped after a minute.
            late = 61.0 * self.runs
            old._clock = lambda: time.time() + late
            return old.migrate(into=new, finish=finish)
        except Crash:
            return None
        finally:
            self.crash_at = None

    def fail(self, at: int, *, finish: bool = False) -> None:
        """One run in which one request fails, before or after it took effect. It stores its state."""
        self.fails_at = at
        try:
            self.migrate(finish=finish)
        except OutcomeUnknown:
            pass
        finally:
            self.fails_at = 0

    def new(self) -> Graph:
        return Graph(self.stores[1], self.models, self.layouts[1])

    # --- what must hold ------------------------------------------------------------------------

    def check(self) -> None:
        """Both tables hold the same, and the new one holds it as if a program had put it there."""
        new = self.new()
        there = {model: entities_of(self.old, model) for model in self.models}
        assert {model: entities_of(new, model) for model in self.models} == there
        fresh = SQLiteStore(":memory:")
        Graph(fresh, self.models, self.layouts[1]).put_many(
            each for model in self.models for each in self.old.scan(model)
        )
        assert stored(self.stores[1], new) == stored(fresh, new)
        assert not any(new.differences())


def entities_of(graph: Graph, model: type[Any]) -> Counter[str]:
    return Counter(map(repr, graph.scan(model)))


_PASSING = ("adjoin:revision", "adjoin:written")


def stored(store: Store, graph: Graph) -> dict[str, Item]:
    """All items of a table by their keys, without records and what is different in each write."""
    layout = graph._layout
    (page,) = store.execute([Scan(layout.table, consistent=True)])
    assert isinstance(page, PageResponse)
    assert page.last is None
    found = {}
    for item in page.items:
        key = layout.key_texts(item)
        if not key[0].startswith(("#=RECORDS", "#=MIGRATE")):
            found[repr(key)] = {name: item[name] for name in sorted(item) if name not in _PASSING}
    return found
