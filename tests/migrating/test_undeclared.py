"""Tables without a record of declarations, as version 0.1 made them, in which a class gains something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest

from adjoin import Edge, Graph, Indexed, MaterializedGraph, MigrationDue, Node, Unique, field
from adjoin.requests import Delete, PageResponse, Scan
from adjoin.stores.sqlite import SQLiteStore
from tests.migrating.test_migrate import Remote


class Person(Node):
    id: str
    name: Annotated[str, Indexed()]
    city: str = "x"
    email: Annotated[str | None, Unique()] = None
    phone: str | None = None


class Twice(Node, label="PERSON"):
    id: str
    name: Annotated[str, Indexed()]
    city: Annotated[str, Indexed()] = "x"
    email: Annotated[str | None, Unique()] = None
    phone: str | None = None


class Phoned(Node, label="PERSON"):
    id: str
    name: Annotated[str, Indexed()]
    city: str = "x"
    email: Annotated[str | None, Unique()] = None
    phone: Annotated[str | None, Unique()] = None


class Other(Node, label="PERSON"):
    id: str
    name: str
    city: Annotated[str, Indexed()] = "x"


class Knows(Edge[Person, Person]):
    since: int


class Likes(Edge[Person, Person], order="since"):
    since: int


class Sorted(Edge[Person, Person], label="KNOWS", order="since"):
    since: int


FIRST: list[type[Any]] = [Person, Knows, Likes]


def without_record(layout: Any = None, models: list[type[Any]] = FIRST) -> SQLiteStore:
    store = SQLiteStore(":memory:")
    g = Graph(store, models, layout)
    g.put_many(Person(id=f"P{at}", name=f"n{at}", email=f"e{at}", phone=f"{at}") for at in range(20))
    if Knows in models:
        g.put_many(Knows(source="P1", target=f"P{at}", since=-at) for at in range(20))
        g.put_many(Likes(source="P1", target=f"P{at}", since=-at) for at in range(20))
    table, names = g._layout.table, [key.name for key in g._layout.definition.keys]
    (page,) = store.execute([Scan(table)])
    assert isinstance(page, PageResponse)
    (record,) = (item for item in page.items if "adjoin:declared" in item)
    store.execute([Delete(table, {name: record[name] for name in names})])
    return store


@pytest.mark.parametrize("layout", [None, MaterializedGraph()])
def test_what_items_lack_is_found_out_by_the_first_query_that_needs_it(layout: Any) -> None:
    cases: list[tuple[list[type[Any]], Callable[[Graph], Any]]] = [
        ([Twice], lambda g: list(g.find(Twice, field("city") == "x"))),
        ([Phoned], lambda g: g.get(Phoned, phone="3")),
        ([Other], lambda g: g.find(Other, order="city").count()),
    ]
    for models, ask in cases:
        graph = Graph(without_record(layout), models, layout)
        for _ in range(2):
            with pytest.raises(MigrationDue, match=r"run g\.migrate"):
                ask(graph)
        other = Graph(graph._store, models, layout)
        assert other.migrate(finish=True).ended
        assert ask(graph), "the migration of another program has ended"


@pytest.mark.parametrize("layout", [None, MaterializedGraph()])
def test_a_class_that_gains_an_order_answers_from_the_table(layout: Any) -> None:
    graph = Graph(without_record(layout), [Person, Sorted, Likes], layout)
    assert [each.since for each in graph.out("P1", Sorted)] == list(range(-19, 1))
    assert [each.since for each in graph.out("P1", Likes)] == list(range(-19, 1))


def test_a_table_that_lacks_nothing_answers_after_one_look() -> None:
    asked: list[Any] = []

    class Watching(Remote):
        def execute(self, requests: Any) -> Any:
            asked.extend(requests)
            return super().execute(requests)

    graph = Graph(Watching(without_record()), FIRST)
    asked.clear()
    assert graph.get(Person, "P1") is not None
    assert not any(isinstance(each, Scan) for each in asked), "nothing is looked at before it matters"
    for _ in range(3):
        assert graph.get(Person, email="e3") == Person(id="P3", name="n3", email="e3", phone="3")
        assert [each.id for each in graph.find(Person, field("name") == "n4")] == ["P4"]
        assert len(list(graph.out("P1", Likes))) == 20
    assert sum(isinstance(each, Scan) for each in asked) == 4
    assert graph.differences() == []


class Aim(Node):
    """Its keys come before those of people."""

    id: int


class Zone(Node):
    """Nobody has stored one."""

    id: str
    name: Annotated[str, Indexed()] = ""


def with_aims() -> SQLiteStore:
    """More items of another class than a sample has."""
    store = without_record(models=[Person, Aim])
    Graph(store, [Aim]).put_many(Aim(id=at) for at in range(2000))
    return store


def test_a_class_that_the_sample_does_not_have_is_searched_for() -> None:
    store = with_aims()
    with pytest.raises(MigrationDue):
        list(Graph(store, [Other, Aim]).find(Other, field("city") == "x"))
    assert len(list(Graph(store, [Person, Aim]).find(Person, field("name") >= ""))) == 20


def test_of_a_class_without_items_nothing_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    store = with_aims()
    assert list(Graph(store, [Zone, Aim]).find(Zone, field("name") == "x")) == []
    # If the search ends before the table does, there may be items.
    monkeypatch.setattr("adjoin.plans.undeclared._PAGES", 1)
    with pytest.raises(MigrationDue):
        list(Graph(store, [Zone, Aim]).find(Zone, field("name") == "x"))
