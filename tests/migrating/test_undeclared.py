"""Tables without a record of declarations, as version 0.1 made them, in which a class gains something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest

from adjoin import (
    AccessDenied,
    AdjacencyList,
    Edge,
    Graph,
    Indexed,
    MaterializedGraph,
    MigrationDue,
    Node,
    Unique,
    field,
)
from adjoin.plans.declared import read_record
from adjoin.requests import Delete, PageResponse, Scan
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from tests.migrating.gained import Remote


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


def without_record(layout: Any = None, models: list[type[Any]] = FIRST, tenant: str | None = None) -> SQLiteStore:
    store = SQLiteStore(":memory:")
    g = Graph(store, models, layout, tenant=tenant)
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


# --- tenants -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [None, MaterializedGraph()])
def test_a_tenant_finds_out_what_its_own_items_lack(layout: Any) -> None:
    cases: list[tuple[list[type[Any]], Callable[[Graph], Any]]] = [
        ([Twice], lambda g: list(g.find(Twice, field("city") == "x"))),
        ([Phoned], lambda g: g.get(Phoned, phone="3")),
        ([Other], lambda g: g.find(Other, order="city").count()),
    ]
    for models, ask in cases:
        store = without_record(layout, tenant="acme")
        root = Graph(store, models, layout)
        for acme in (root.for_tenant("acme"), Graph(store, models, layout, tenant="acme")):
            for _ in range(2):
                with pytest.raises(MigrationDue, match=r"run g\.migrate"):
                    ask(acme)
        assert not ask(root.for_tenant("beta")), "nothing of this tenant is stored"
        assert not ask(root)
        assert Graph(store, models, layout).migrate(finish=True).ended
        assert ask(root.for_tenant("acme")), "the migration of another program has ended"


@pytest.mark.parametrize("layout", [None, MaterializedGraph()])
def test_a_tenant_s_class_that_gains_an_order_answers_from_the_table(layout: Any) -> None:
    graph = Graph(without_record(layout, tenant="acme"), [Person, Sorted, Likes], layout).for_tenant("acme")
    assert [each.since for each in graph.out("P1", Sorted)] == list(range(-19, 1))
    assert [each.since for each in graph.out("P1", Likes)] == list(range(-19, 1))


def test_what_was_seen_of_one_tenant_says_nothing_about_another() -> None:
    store = without_record(tenant="acme")
    Graph(store, [Twice]).for_tenant("beta").put(Twice(id="P1", name="n1"))
    graph = Graph(store, [Twice])
    beta, acme = graph.for_tenant("beta"), graph.for_tenant("acme")
    assert [each.id for each in beta.find(Twice, field("city") == "x")] == ["P1"]
    with pytest.raises(MigrationDue):
        list(acme.find(Twice, field("city") == "x"))
    assert [each.id for each in beta.find(Twice, field("city") == "x")] == ["P1"]


def test_a_tenant_gets_none_of_the_others_items_to_look_at() -> None:
    answers: list[Any] = []

    class Watching(Remote):
        def execute(self, requests: Any) -> Any:
            given = super().execute(requests)
            answers.extend(zip(requests, given, strict=True))
            return given

    store = without_record(tenant="acme")
    Graph(store, FIRST).for_tenant("beta").put(Person(id="B", name="n"))
    graph = Graph(Watching(store), FIRST, tenant="beta")
    for _ in range(3):
        assert [each.id for each in graph.find(Person, field("name") == "n")] == ["B"]
    scans = [(request, page) for request, page in answers if isinstance(request, Scan)]
    assert 0 < len(scans) <= 8, "it looks once"
    assert {item["PK"]["S"] for _, page in scans for item in page.items} == {"beta#PERSON#B"}


def test_a_tenant_that_is_not_found_in_a_large_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    store = without_record(tenant="acme")
    graph = Graph(store, FIRST)
    assert list(graph.for_tenant("beta").find(Person, field("name") == "n")) == []
    monkeypatch.setattr("adjoin.plans.undeclared._PAGES", 0)
    with pytest.raises(MigrationDue):
        list(graph.for_tenant("gamma").find(Person, field("name") == "n"))


def test_a_tenant_records_what_an_empty_table_will_hold() -> None:
    store = SQLiteStore(":memory:")
    Graph(store, FIRST)
    table = Graph(store, FIRST)._layout.table
    (page,) = store.execute([Scan(table)])
    assert isinstance(page, PageResponse)
    store.execute([Delete(table, {name: item[name] for name in ("PK", "SK")}) for item in page.items])
    acme = Graph(Remote(store), FIRST, tenant="acme")
    acme.put(Person(id="P1", name="n"))
    with pytest.raises(MigrationDue):
        list(Graph(store, [Other], tenant="acme").find(Other, field("city") == "x"))
    assert acme.differences() == []
    (page,) = store.execute([Scan(table)])
    assert isinstance(page, PageResponse)
    assert any("adjoin:declared" in item for item in page.items)


@pytest.mark.parametrize("tenant", [None, "acme"])
def test_a_program_that_may_not_look_says_so(tenant: str | None, caplog: pytest.LogCaptureFixture) -> None:
    class Limited(Remote):
        def execute(self, requests: Any) -> Any:
            if any(isinstance(each, Scan) for each in requests):
                raise AccessDenied("no scan")
            return super().execute(requests)

    graph = Graph(Limited(without_record(tenant=tenant)), FIRST, tenant=tenant)
    for _ in range(2):
        assert [each.id for each in graph.find(Person, field("name") == "n4")] == ["P4"]
    told = [each.getMessage() for each in caplog.records]
    assert len(told) == 1
    assert "may not scan it" in told[0]


# --- a file, to which an index is added when it is opened ----------------------------------------


class Bare(Node, label="PERSON"):
    id: str
    name: str
    email: str


class Calls(Edge[Bare, Bare]):
    since: int


class Marked(Node, label="PERSON"):
    id: str
    name: Annotated[str, Indexed()]
    email: Annotated[str, Unique()]


class InOrder(Edge[Marked, Marked], label="CALLS", order="since"):
    since: int


@pytest.mark.parametrize("tenant", [None, "acme"])
@pytest.mark.parametrize("layout", [None, MaterializedGraph()])
def test_an_index_that_is_added_does_not_vouch_for_the_rest(layout: Any, tenant: str | None) -> None:
    store = SQLiteStore(":memory:")
    old = Graph(store, [Bare, Calls], layout, tenant=tenant)
    old.put_many(Bare(id=f"P{at}", name="n", email=f"e{at}") for at in range(5))
    old.put_many(Calls(source=f"P{at}", target="P0", since=-at) for at in range(5))
    store.execute([Delete(old._layout.table, old._layout.declarations_key)])
    graph = Graph(store, [Marked, InOrder], layout, tenant=tenant)
    recorded = run(read_record(graph._layout), store)
    assert recorded is not None
    assert ("indexed", "name") in recorded.forms["PERSON"].due
    for ask in (
        lambda: graph.find(Marked, field("name") == "n").count(),
        lambda: graph.get(Marked, email="e3"),
        lambda: list(graph.into("P0", InOrder).between(-3, -1)),
    ):
        with pytest.raises(MigrationDue):
            ask()
    assert Graph(store, [Marked, InOrder], layout).migrate(finish=True).ended
    assert graph.find(Marked, field("name") == "n").count() == 5
    assert graph.get(Marked, email="e3") is not None
    assert [each.since for each in graph.into("P0", InOrder).between(-3, -1)] == [-3, -2, -1]


class Claimed(Node, label="PERSON"):
    id: str
    name: str
    email: Annotated[str, Unique()]


@pytest.mark.parametrize(
    ("tenant", "due"),
    [
        (None, {("indexed", "name")}),
        # Of the items of others it sees nothing, so they may lack their claims too.
        ("acme", {("indexed", "name"), ("unique", "email")}),
    ],
)
def test_what_an_added_index_leaves_as_due(tenant: str | None, due: set[Any]) -> None:
    store = SQLiteStore(":memory:")
    old = Graph(store, [Claimed], tenant=tenant)
    old.put_many(Claimed(id=f"P{at}", name="n", email=f"e{at}") for at in range(5))
    store.execute([Delete(old._layout.table, old._layout.declarations_key)])
    graph = Graph(store, [Marked], tenant=tenant)
    recorded = run(read_record(graph._layout), store)
    assert recorded is not None
    assert recorded.forms["PERSON"].due == due


class Untagged(Node, label="PAGE"):
    id: str
    tags: list[str] = []
    name: Annotated[str, Indexed()] = ""


class Tagged(Node, label="PAGE"):
    id: str
    tags: Annotated[list[str], Indexed(elements=True)] = []
    name: Annotated[str, Indexed()] = ""


def test_elements_that_are_not_indexed_yet_are_not_missed() -> None:
    store = SQLiteStore(":memory:")
    old = Graph(store, [Untagged])
    old.put(Untagged(id="a", tags=["x"]))
    store.execute([Delete(old._layout.table, old._layout.declarations_key)])
    graph = Graph(store, [Tagged])
    with pytest.raises(MigrationDue):
        list(graph.find(Tagged, field("tags").contains("x")))
    assert graph.migrate(finish=True).ended
    assert [page.id for page in graph.find(Tagged, field("tags").contains("x"))] == ["a"]


def test_a_node_whose_edges_would_not_all_be_found_is_not_deleted() -> None:
    store = SQLiteStore(":memory:")
    old = Graph(store, [Person, Knows], AdjacencyList(reverse=None))
    old.put_many([Person(id="a", name="n"), Person(id="b", name="n"), Knows(source="a", target="b", since=1)])
    graph = Graph(store, [Person, Knows], AdjacencyList())
    with pytest.raises(MigrationDue):
        graph.delete(Person, "b")
    assert graph.migrate(finish=True).ended
    assert graph.delete(Person, "b") is True
    assert list(graph.out("a", Knows)) == []
