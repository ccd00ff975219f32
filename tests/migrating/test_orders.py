"""A class that has gained an order, while stored edges lack it: what worked before the deployment goes on to work."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, AsyncGraph, Copy, Edge, Graph, MaterializedGraph, MigrationDue, Node, field
from adjoin.layouts.interface import Layout
from adjoin.stores.sqlite import SQLiteStore
from tests.migrating.gained import Remote


class Student(Node):
    id: str
    name: str = "x"


class Course(Node):
    id: str


class Enrollment(Edge[Student, Course]):
    at: int
    grade: str = "A"


def ordered() -> type[Any]:
    class Enrollment(Edge[Student, Course], order="at"):
        at: int
        grade: str = "A"

    return Enrollment


ORDERED = ordered()
OLDER: list[type[Any]] = [Student, Course, Enrollment]
NEWER: list[type[Any]] = [Student, Course, ORDERED]
LAYOUTS: list[Layout] = [AdjacencyList(), MaterializedGraph(), AdjacencyList(type_attribute="Type")]


def both(layout: Layout, number: int = 30) -> tuple[SQLiteStore, Graph]:
    """A table with edges of both versions, and a graph of the newer one."""
    store = SQLiteStore(":memory:")
    older = Graph(store, OLDER, layout)
    newer = Graph(store, NEWER, layout)
    older.put_many([Student(id="S"), Student(id="T"), *(Course(id=f"C{at}") for at in range(number))])
    for at in range(number):
        model, graph = (Enrollment, older) if at % 2 else (ORDERED, newer)
        grade = "AB"[at % 3 == 0]
        graph.put(model(source="S", target=f"C{at}", at=at * 37 % 101 - 50, grade=grade))
        graph.put(model(source="T", target=f"C{at}", at=at * 37 % 101 - 50, grade=grade))
    return store, newer


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_query_answers_as_it_will_when_the_migration_has_ended(layout: Layout) -> None:
    store, before = both(layout)
    asked: list[Any] = [
        lambda g: list(g.out("S", ORDERED)),
        lambda g: list(g.out("S", ORDERED).reverse()),
        lambda g: list(g.out("S", ORDERED).limit(7)),
        lambda g: list(g.out("S", ORDERED).between(-20, 20)),
        lambda g: list(g.out("S", ORDERED).where(field("grade") == "B")),
        lambda g: list(g.out("S", ORDERED).where(field("grade") == "B").limit(3)),
        lambda g: g.out("S", ORDERED).count(),
        lambda g: g.out("S", ORDERED).first(),
        lambda g: list(g.out("S", ORDERED).nodes()),
        lambda g: list(g.into("C3", ORDERED)),
        lambda g: g.into("C3", ORDERED).count(),
        lambda g: sorted(map(repr, g.collection(Student(id="S")))),
        lambda g: sorted(map(repr, g.collection(Course(id="C3"), direction="into"))),
        lambda g: sorted(each.id for each in g.walk(Student.ref("S")).out(ORDERED).nodes()),
        _pages,
        lambda g: _pages(g, reverse=True),
    ]
    answers = [ask(before) for ask in asked]
    assert all(answers)
    assert any(each.is_due for each in before.differences())
    after = Graph(store, NEWER, layout)
    assert after.migrate(finish=True).ended
    assert [ask(after) for ask in asked] == answers
    assert [each.at for each in answers[0]] == sorted(each.at for each in answers[0])


def _pages(graph: Graph, *, reverse: bool = False) -> list[Any]:
    query = graph.out("S", ORDERED).reverse() if reverse else graph.out("S", ORDERED)
    page = query.page(limit=4)
    found = list(page.items)
    while page.next:
        page = query.page(limit=4, after=page.next)
        found += page.items
    return found


def many_to_one(location: Any, layout: Layout, older: list[type[Any]], newer: list[type[Any]]) -> tuple[Graph, Graph]:
    """Edges of both versions from and to one node, which are sorted otherwise by their order than by their keys."""
    first, second = Graph(location, older, layout), Graph(location, newer, layout)
    first.put_many([Course(id="C"), *(Student(id=f"S{at}") for at in range(6))])
    for at in range(6):
        graph, models = (first, older) if at % 2 else (second, newer)
        graph.put(models[2](source=f"S{at}", target="C", at=-at * 3))
        graph.put(models[2](source="S0", target=f"C{at}", at=-at * 3))
    return first, second


@pytest.mark.parametrize("layout", LAYOUTS)
def test_walks_that_read_far_ends_only_answer_in_the_order(layout: Layout) -> None:
    _, graph = many_to_one(SQLiteStore(":memory:"), layout, OLDER, NEWER)
    start = Course.ref("C")

    def check() -> None:
        sources = [edge.source for edge in graph.into("C", ORDERED)]
        assert sources == [f"S{at}" for at in (5, 4, 3, 2, 1, 0)]
        assert [ref.id for ref in graph.walk(start).into(ORDERED).refs()] == sources
        assert [node.id for node in graph.walk(start).into(ORDERED).nodes()] == sources
        assert [ref.id for ref in graph.walk(start).both(ORDERED).refs()] == sources
        assert graph.walk(start).into(ORDERED).count() == 6
        assert graph.walk(start, cap=2).into(ORDERED).refs().capped == (start,)
        assert [each.node.id for each in graph.recommend(Student.ref("S1"), ORDERED)]
        assert len(graph.common(start, start, ORDERED, direction="into")) == 6
        assert [ref.id for ref in graph.walk(Student.ref("S0")).out(ORDERED).refs()] == [
            edge.target for edge in graph.out("S0", ORDERED)
        ]

    check()
    graph.migrate()
    check()
    assert graph.migrate(finish=True).ended
    check()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_walks_of_an_asynchronous_graph_answer_in_the_order(layout: Layout, tmp_path: Path) -> None:
    location = f"{tmp_path / 'graph.db'}?durability=process"
    for graph in many_to_one(location, layout, OLDER, NEWER):
        graph.close()

    async def run() -> list[Any]:
        graph = AsyncGraph(location, NEWER, layout)
        try:
            return [ref.id for ref in await graph.walk(Course.ref("C")).into(ORDERED).refs()]
        finally:
            await graph.close()

    assert asyncio.run(run()) == [f"S{at}" for at in (5, 4, 3, 2, 1, 0)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("older", "newer"), [(OLDER, NEWER), (NEWER, OLDER)], ids=["gained", "lost"])
@pytest.mark.parametrize("source", [None, "scan"])
def test_a_snapshot_has_all_edges_in_the_order(
    layout: Layout, older: list[type[Any]], newer: list[type[Any]], source: str | None
) -> None:
    first, graph = many_to_one(SQLiteStore(":memory:"), layout, older, newer)
    former, model = older[2], newer[2]

    def check(snapshot: Any) -> None:
        edges = sorted(graph.scan(model), key=lambda e: (e.at if model is ORDERED else 0, e.source, e.target))
        targets = [edge.target for edge in edges if edge.source == "S0"]
        sources = [edge.source for edge in edges if edge.target == "C"]
        assert [edge.target for edge in graph.out("S0", model)] == targets
        assert [ref.id for ref in snapshot.walk(Student.ref("S0")).out(model).refs()] == targets
        assert [ref.id for ref in snapshot.walk(Course.ref("C")).into(model).refs()] == sources
        assert snapshot.degree(Student.ref("S0"), model) == len(targets)
        assert snapshot.edge_count(model) == len(edges)

    def taken() -> Any:
        return graph.snapshot(edges=[model], source=source)

    followed = taken()
    check(followed)
    # A program with the former declarations changes what the keys of the newer ones are made of.
    first.put(former(source="S0", target="C3", at=50))
    first.put(former(source="S4", target="C", at=50))
    first.disconnect(former, "S0", "C1")
    graph.put(model(source="S0", target="C4", at=40))
    graph.disconnect(model, "S2", "C")
    for finish in (None, False, True):
        if finish is not None:
            graph.migrate(finish=finish)
        followed.follow(once=True)
        check(followed)
        check(taken())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_find_uses_the_order_when_all_edges_have_it(layout: Layout) -> None:
    _, newer = both(layout)

    def query() -> Any:
        return newer.find(ORDERED, (field("source") == "S") & (field("at") >= 0))

    found = sorted(edge.at for edge in query())
    assert found == sorted(edge.at for edge in newer.out("S", ORDERED) if edge.at >= 0)
    assert newer.explain(query()).index is None
    with pytest.raises(MigrationDue, match="may have no entry in the index"):
        list(newer.find(ORDERED, field("source") == "S", order="at"))
    newer.migrate(finish=True)
    assert newer.explain(query()).index is not None
    assert [edge.at for edge in query()] == found


def test_a_page_token_goes_on_when_the_migration_has_ended() -> None:
    store, graph = both(AdjacencyList())
    expected = [each.at for each in graph.out("S", ORDERED)]
    page = graph.out("S", ORDERED).page(limit=10)
    assert Graph(store, NEWER).migrate(finish=True).ended
    rest = graph.out("S", ORDERED).page(limit=100, after=page.next)
    assert [each.at for each in (*page.items, *rest.items)] == expected


def test_edges_that_a_delete_hides_stay_hidden() -> None:
    store, graph = both(AdjacencyList())
    older = Graph(store, OLDER)
    older.disconnect(Enrollment, "S", "C1")
    older.delete(Course, "C2")
    assert {"C1", "C2"}.isdisjoint(each.target for each in graph.out("S", ORDERED))


def test_an_index_that_a_service_does_not_have_yet_is_not_needed() -> None:
    store = SQLiteStore(":memory:")
    older = Graph(store, OLDER)
    older.put_many(Enrollment(source="S", target=f"C{at}", at=-at) for at in range(5))
    newer = Graph(Remote(store), NEWER)
    assert [each.at for each in newer.out("S", ORDERED)] == [-4, -3, -2, -1, 0]


def test_where_nothing_has_all_edges_it_says_so() -> None:
    store = SQLiteStore(":memory:")
    Graph(store, OLDER, AdjacencyList(reverse=None)).put(Enrollment(source="S", target="C", at=1))
    graph = Graph(store, OLDER)
    with pytest.raises(MigrationDue):
        list(graph.into("C", Enrollment))
    assert list(graph.out("S", Enrollment))


class Bought(Edge[Student, Course], label="BOUGHT"):
    name: Annotated[str, Copy("source.name")] = ""


class ByName(Edge[Student, Course], label="BOUGHT", order="name"):
    name: Annotated[str, Copy("source.name")] = ""


class Uncopied(Edge[Student, Course], label="BOUGHT"):
    pass


@pytest.mark.parametrize("layout", LAYOUTS[:2])
@pytest.mark.parametrize("model", [Bought, Uncopied])
def test_an_order_may_be_a_copied_field(layout: Layout, model: type[Any]) -> None:
    store = SQLiteStore(":memory:")
    older = Graph(store, [Student, Course, model], layout)
    older.put_many([Course(id="C"), *(Student(id=f"S{at}", name=f"n{-at % 4}") for at in range(4))])
    older.put_many(model(source=f"S{at}", target="C") for at in range(4))
    newer = Graph(store, [Student, Course, ByName], layout)
    before = {each.source for each in newer.into("C", ByName)}
    assert before == {"S0", "S1", "S2", "S3"}
    newer.maintain(once=True)
    found = [each.source for each in newer.into("C", ByName)]
    assert found == ["S0", "S3", "S2", "S1"]
    older.put(model(source="S1", target="C"))
    assert newer.migrate(finish=True).ended
    newer.maintain(once=True)
    assert [each.source for each in newer.into("C", ByName)] == found
