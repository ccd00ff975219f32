"""Every verb, over each layout and each store: the same calls have the same answers.

What is particular to one layout or one store is tested elsewhere; here nothing may depend on either.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    AlreadyExists,
    ConditionFailed,
    Edge,
    Graph,
    Indexed,
    InvalidCursor,
    MaterializedGraph,
    Node,
    NotFound,
    TransactionCanceled,
    Unique,
    field,
)
from adjoin.layouts.interface import Layout
from adjoin.plans import deletion
from adjoin.reserved import OWN, RECORDS
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from tests.growing import scanned
from tests.models import ANN, ART, BOB, MATHS, SCHOOL, Attendance, Course, Enrollment, Exam, Friendship, Student
from tests.servers.open import Stores


class Person(Node):
    id: str
    name: Annotated[str, Indexed()]
    born: Annotated[dt.date | None, Indexed()] = None
    email: Annotated[str | None, Unique()] = None
    version: int = 0


class Skilled(Edge[Person, Course], order="level"):
    level: Annotated[Decimal, Indexed()] = Decimal(0)


MODELS: list[Any] = [*SCHOOL, Person, Skilled]
LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "adjacency list of 4 shards": AdjacencyList(shards=4),
    "materialized graph": MaterializedGraph(),
    "materialized graph of 4 shards": MaterializedGraph(shards=4),
}


@pytest.fixture(params=[(store, layout) for store in ("embedded", "ministack") for layout in LAYOUTS])
def g(request: pytest.FixtureRequest, servers: Stores) -> Any:
    where, layout = request.param
    store: Store = SQLiteStore(":memory:") if where == "embedded" else servers.open("ministack")
    graph = Graph(store, MODELS, LAYOUTS[layout], cursor_secret="s")
    graph.create_table()
    yield graph
    graph.drop_table()
    graph.close()


@pytest.fixture
def school(g: Any) -> Any:
    assert g.put_many([ANN, BOB, MATHS, ART]) == 4
    g.put(Enrollment(source="ann", target="maths", grade="A", points=9))
    g.put(Enrollment(source="ann", target="art", grade="C", points=3))
    g.put(Enrollment(source="bob", target="maths", grade="B", points=7))
    return g


def test_nodes(g: Any) -> None:
    g.put(ANN)
    with pytest.raises(AlreadyExists, match="Student 'ann'"):
        g.add(ANN)
    g.add(BOB)
    assert g.get(Student, "ann") == ANN
    assert g.get(Course, "ann") is None
    assert g.get_many(Student, ["bob", "nobody", "ann", "bob"]) == [BOB, None, ANN, BOB]
    changed = g.update(Student, "ann", name="Anna", year_level=field("year_level") + 2, if_version=0)
    assert changed == Student(id="ann", name="Anna", year_level=3, version=1) == g.get(Student, "ann")
    with pytest.raises(ConditionFailed):
        g.update(Student, "ann", name="x", if_version=0)
    with pytest.raises(ConditionFailed):
        g.put(ANN, only_if=field("year_level") < 3)
    with pytest.raises(NotFound):
        g.update(Student, "nobody", name="x")
    assert g.delete(Student, "ann")
    assert not g.delete(Student, "ann")
    assert g.get(Student, "ann") is None


def test_edges(school: Any) -> None:
    assert school.edge(Enrollment, "ann", "maths").grade == "A"
    assert school.edge(Enrollment, "bob", "art") is None
    made = school.connect(Enrollment, "bob", "art", grade="B")
    assert school.edge(Enrollment, BOB, ART) == made
    with pytest.raises(AlreadyExists):
        school.connect(Enrollment, "bob", "art")
    with pytest.raises(NotFound, match="music"):
        school.connect(Enrollment, "bob", "music")
    assert school.update(Enrollment, "bob", "art", points=4).points == 4
    assert school.disconnect(Enrollment, "bob", "art")
    assert not school.disconnect(Enrollment, "bob", "art")
    school.connect(Exam, "ann", "maths", term="1", mark=Decimal("9.5"))
    school.connect(Exam, "ann", "maths", term="2")
    assert school.edge(Exam, "ann", "maths", term="1").mark == Decimal("9.5")
    assert [exam.term for exam in school.out("ann", Exam).within(target="maths")] == ["1", "2"]
    school.connect(Friendship, "bob", "ann", since=2020)
    assert school.edge(Friendship, "ann", "bob").since == school.edge(Friendship, "bob", "ann").since == 2020
    assert [edge.target for edge in school.out("ann", Friendship)] == ["bob"]
    school.update(Friendship, "ann", "bob", since=2021)
    assert school.edge(Friendship, "bob", "ann").since == 2021
    assert school.disconnect(Friendship, "ann", "bob")
    assert list(school.out("bob", Friendship)) == []


def test_queries(school: Any) -> None:
    assert [edge.target for edge in school.out("ann", Enrollment)] == ["art", "maths"]
    assert [edge.source for edge in school.into("maths", Enrollment)] == ["ann", "bob"]
    assert [edge.target for edge in school.out("ann", Enrollment).reverse()] == ["maths", "art"]
    assert [edge.target for edge in school.out("ann", Enrollment).begins_with("ma")] == ["maths"]
    assert [edge.target for edge in school.out("ann", Enrollment).between("a", "b")] == ["art"]
    assert [edge.grade for edge in school.into("maths", Enrollment).where(field("points") > 8)] == ["A"]
    assert school.out("ann", Enrollment).count() == 2
    assert school.out("ann", Enrollment).first().target == "art"
    assert [edge.target for edge in school.out("ann", Enrollment).limit(1)] == ["art"]
    assert list(school.out("ann", Enrollment).nodes()) == [
        (school.edge(Enrollment, "ann", "art"), ART),
        (school.edge(Enrollment, "ann", "maths"), MATHS),
    ]
    days = [dt.date(2024, 1, day) for day in (9, 3, 5)]
    school.put_many([Attendance(source="ann", target=str(number), day=day) for number, day in enumerate(days)])
    assert [edge.day.day for edge in school.out("ann", Attendance)] == [3, 5, 9]
    assert [edge.day.day for edge in school.out("ann", Attendance).between(dt.date(2024, 1, 4), None)] == [5, 9]
    assert [edge.day.day for edge in school.out("ann", Attendance).begins_with("2024-01-0").reverse()] == [9, 5, 3]
    school.update(Attendance, "ann", "0", day=dt.date(2024, 1, 1))
    assert [edge.target for edge in school.out("ann", Attendance)] == ["0", "1", "2"]


def test_pages(school: Any) -> None:
    school.put_many([Enrollment(source="bob", target=f"{number:02}", points=number) for number in range(25)])
    query = school.out("bob", Enrollment).where(field("points") >= 5)
    found, token = [], None
    while True:
        page = query.page(limit=6, after=token)
        found += page.items
        token = page.next
        if token is None:
            break
        with pytest.raises(InvalidCursor):
            school.out("ann", Enrollment).page(after=token)
    assert [edge.points for edge in found] == [*range(5, 25), 7]


def test_collections(school: Any) -> None:
    school.put(Friendship(source="ann", target="bob", since=1))
    school.put(Exam(source="ann", target="art", term="1"))
    collection = school.collection(ANN)
    assert collection.node == ANN
    assert {type(edge) for edge in collection.edges} == {Enrollment, Friendship, Exam}
    assert len(collection.edges) == 4
    assert collection.others == []
    into = school.collection(Course.ref("art"), direction="into")
    assert sorted(type(edge).__name__ for edge in into.edges) == ["Enrollment", "Exam"]


def test_transactions(school: Any) -> None:
    with school.transaction() as t:
        t.put(Course(id="music"))
        made = t.connect(Enrollment, "bob", "music", grade="A")
        t.update(Student, "ann", name="Anna")
        t.disconnect(Enrollment, "ann", "art")
        t.add(Person(id="p", name="P", email="p@x"))
        t.delete(Course, "art")
    assert school.edge(Enrollment, "bob", "music") == made
    assert school.get(Student, "ann").name == "Anna"
    assert school.get(Course, "art") is None
    assert school.get(Person, email="p@x").name == "P"
    with pytest.raises(TransactionCanceled), school.transaction() as t:
        t.put(Course(id="new"))
        t.add(Person(id="q", name="Q", email="p@x"))
    assert school.get(Course, "new") is None


@pytest.mark.parametrize("most", [100, 6])
def test_deletes(school: Any, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "MAX_TRANSACTION", most)
    school.put(Person(id="p", name="P", born=dt.date(2000, 1, 1), email="p@x"))
    for number in range(10):
        school.put(Skilled(source="p", target=str(number), level=Decimal(number)))
        school.put(Enrollment(source=str(number), target="maths"))
    assert school.delete(Person, "p")
    assert school.delete(MATHS)
    assert school.find(Skilled).count() == 0
    assert list(school.into("maths", Enrollment)) == []
    stored = [item for item in scanned(school) if {"S": OWN + RECORDS} not in item.values()]
    assert {type(school._layout.read(item)) for item in stored} == {Student, Course, Enrollment}
    assert len(stored) == 4


def test_find(g: Any) -> None:
    people = [
        Person(id=f"{number:02}", name=f"n{number % 5}", born=dt.date(2000, 1, 1) + dt.timedelta(number))
        for number in range(30)
    ]
    g.put_many(people)
    assert [person.id for person in g.find(Person, field("name") == "n2")] == ["02", "07", "12", "17", "22", "27"]
    assert list(g.find(Person, field("born") < dt.date(2000, 1, 4))) == people[:3]
    query = g.find(Person, field("born").between("2000-01-05", "2000-01-24")).where(field("name") != "n0")
    wanted = [person for person in people[4:24] if person.name != "n0"]
    found, token = [], None
    while True:
        page = query.page(limit=7, after=token)
        found += page.items
        token = page.next
        if token is None:
            break
    assert found == wanted == list(query)
    assert query.count() == len(wanted)
    assert query.reverse().first() == wanted[-1]
    g.update(Person, "00", name="zz", born=None)
    assert g.find(Person).reverse().first().id == "00"
    assert g.find(Person, field("born").exists()).count() == 29
    g.put_many([Skilled(source=f"{number:02}", target="py", level=Decimal(-number)) for number in range(4)])
    assert [edge.level for edge in g.find(Skilled, field("level") > -3)] == [-2, -1, 0]
    assert [person.id for _, person in g.find(Skilled).nodes()] == ["03", "02", "01", "00"]
    assert [edge.source for edge in g.into("py", Skilled)] == ["03", "02", "01", "00"]
    g.update(Skilled, "03", "py", level=field("level") + 10)
    assert [edge.source for edge in g.find(Skilled)] == ["02", "01", "00", "03"]
    assert [edge.source for edge in g.into("py", Skilled)] == ["02", "01", "00", "03"]


def test_changes(g: Any) -> None:
    g.put(Person(id="p", name="P", born=dt.date(2000, 1, 1), email="p@x"))
    g.update(Person, "p", name="Q", email=None)
    g.put(Skilled(source="p", target="py"))
    g.delete(Person, "p")
    changes = list(g.changes())
    assert [change.kind for change in changes][:3] == ["insert", "modify", "insert"]
    assert sorted(change.kind for change in changes[3:]) == ["remove", "remove"]
    assert [change.problem for change in changes] == [None] * 5
    assert (changes[1].old.name, changes[1].new.name, changes[1].new.email) == ("P", "Q", None)
    assert list(g.changes(after=changes[2].position)) == changes[3:]


def test_what_calls_take(school: Any) -> None:
    calls: list[tuple[Any, int]] = [
        (lambda: school.put(ANN), 1),
        (lambda: school.get(Student, "ann"), 1),
        (lambda: list(school.out("ann", Enrollment)), 1),
        (lambda: list(school.into("maths", Enrollment)), 1),
        (lambda: school.connect(Enrollment, "bob", "art"), 1),
        (lambda: school.put(Skilled(source="p", target="py")), 1),
        (lambda: school.put(Person(id="p", name="P")), 2),
    ]
    for call, requests in calls:
        assert len(school.explain(call).requests) == requests
        with school.meter() as meter:
            call()
        assert meter.requests == requests
    shards = school._layout.overloaded.partitions(
        school._layout.overloaded.fields(school._schema.node(Person))[0], school.find(Person)._question.stretches[0]
    )
    explained = school.explain(school.find(Person))
    assert explained.partitions[: len(shards)] == tuple(shards)
    assert explained.index == school._layout.overloaded.name
