"""Finding nodes and edges by their fields, on both graphs and both layouts: what it answers and what it refuses."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, StrEnum
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import (
    AdjacencyList,
    Edge,
    Graph,
    Indexed,
    InvalidKey,
    InvalidValue,
    MaterializedGraph,
    Node,
    UnknownField,
    field,
)
from adjoin.layouts.interface import Layout
from adjoin.plans import deletion
from adjoin.stores.sqlite import SQLiteStore
from tests.conftest import Open
from tests.faults import FaultyStore, Interrupted


class Mood(StrEnum):
    GOOD = "good"
    BAD = "bad"


class Grade(Enum):
    LOW = 1
    HIGH = 12


class Person(Node):
    id: str
    name: Annotated[str, Indexed(), Field(alias="Name")]
    born: Annotated[dt.date | None, Indexed()] = None
    place: Annotated[tuple[str, ...], Indexed()] = ()
    mood: Annotated[Mood, Indexed()] = Mood.GOOD
    grade: Annotated[Grade, Indexed()] = Grade.LOW
    note: str = ""


class Skill(Node):
    id: str


class Knows(Edge[Person, Skill], key=("since",), order="level"):
    since: int
    level: Annotated[int, Indexed()] = 0
    how: Annotated[str | None, Indexed()] = None


class Friend(Edge[Person, Person], symmetric=True):
    closeness: Annotated[int, Indexed()] = 0
    note: Annotated[str | None, Indexed()] = None


MODELS: list[Any] = [Person, Skill, Knows, Friend]
LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "materialized graph": MaterializedGraph(),
    "4 shards": MaterializedGraph(shards=4),
    "with types": MaterializedGraph(type_attribute="Type"),
}

ANN = Person(id="1", name="Ann", born=dt.date(1980, 12, 19), place=("UK", "Bath"), mood=Mood.BAD)
BOB = Person(id="2", name="Bob", born=dt.date(1979, 1, 1), place=("UK", "Bristol"), grade=Grade.HIGH)
CY = Person(id="3", name="Cy#", place=("US",), note="x")
DAN = Person(id="4", name="Ann", place=("UKR", "Kyiv"), born=dt.date(1980, 1, 2))


@pytest.fixture(params=LAYOUTS)
def g(request: pytest.FixtureRequest, open_graph: Open) -> Any:
    graph = open_graph(MODELS, layout=LAYOUTS[request.param])
    graph.put_many([ANN, BOB, CY, DAN, Skill(id="py"), Skill(id="go")])
    graph.put(Knows(source="1", target="py", since=1, level=3, how="work"))
    graph.put(Knows(source="1", target="py", since=2, level=-3))
    graph.put(Knows(source="2", target="go", since=1, level=10, how="school"))
    graph.put(Friend(source="2", target="1", closeness=5, note="old"))
    graph.put(Friend(source="3", target="3", closeness=5))
    return graph


FOUND: list[tuple[Any, dict[str, Any], list[Person]]] = [
    (field("name") == "Ann", {}, [ANN, DAN]),
    (field("born").between(dt.date(1979, 6, 1), "1980-12-31"), {}, [DAN, ANN]),
    (field("born").begins_with("1980"), {}, [DAN, ANN]),
    (field("place").begins_with(("UK",)), {}, [ANN, BOB]),
    (field("place") == ("UK", "Bath"), {}, [ANN]),
    (field("place") == ["US"], {}, [CY]),
    (field("mood") == "bad", {}, [ANN]),
    (field("grade") > Grade.LOW, {}, [BOB]),
    (field("grade") == 12, {}, [BOB]),
    (field("grade") < Grade.HIGH, {"order": "name"}, [ANN, DAN, CY]),
    ((field("name") == "Ann") & (field("mood") == Mood.GOOD), {}, [DAN]),
    ((field("note") == "x") & (field("name") >= "A"), {}, [CY]),
    ((field("note") == "") & (field("born") < "1980-06-01") & (field("born") > "1979-06-01"), {}, [DAN]),
    (field("born") == None, {"order": "name"}, [CY]),  # noqa: E711
    (field("born") != None, {"order": "place"}, [ANN, BOB, DAN]),  # noqa: E711
    (field("name") != "Ann", {"order": "name"}, [BOB, CY]),
    ((field("name") == "Bob") | (field("note") == "x"), {"order": "born"}, [BOB]),
    (None, {"order": "born"}, [BOB, DAN, ANN]),
    (None, {}, [ANN, DAN, BOB, CY]),
    (field("name").is_in(["Bob", "Ann", "Bob"]), {}, [ANN, DAN, BOB]),
    ((field("name") == "Ann") & (field("name") == "Bob"), {}, []),
    (field("name").between("b", "a"), {}, []),
    ((field("name") == "Ann") & (field("name").contains("n")), {}, [ANN, DAN]),
]


@pytest.mark.parametrize(("predicate", "options", "expected"), FOUND)
def test_found(g: Any, predicate: Any, options: dict[str, Any], expected: list[Person]) -> None:
    query = g.find(Person, predicate, **options)
    assert list(query) == expected
    assert list(query.reverse()) == expected[::-1]
    assert query.count() == len(expected)
    assert query.first() == (expected[0] if expected else None)
    assert list(query.limit(2)) == expected[:2]
    page = query.page(limit=1)
    rest = list(query.page(after=page.next)) if page.next else []
    assert [*page, *rest] == expected


def test_edges_are_found_whole(g: Any) -> None:
    work, without, school = (
        Knows(source="1", target="py", since=1, level=3, how="work"),
        Knows(source="1", target="py", since=2, level=-3),
        Knows(source="2", target="go", since=1, level=10, how="school"),
    )
    assert list(g.find(Knows, field("level") < 5)) == [without, work]
    assert list(g.find(Knows, order="how")) == [school, work]
    assert list(g.find(Knows, field("how") == "work").nodes()) == [(work, ANN)]
    assert list(g.find(Knows, field("level") > 0).nodes("target")) == [(work, Skill(id="py")), (school, Skill(id="go"))]
    assert g.find(Knows).nodes().count() == 3
    assert g.find(Knows).nodes().page(limit=2).items == [(without, ANN), (work, ANN)]
    assert [edge.level for edge in g.out("1", Knows)] == [-3, 3]


def test_a_symmetric_edge_is_found_once(g: Any) -> None:
    both, self_made = (
        Friend(source="1", target="2", closeness=5, note="old"),
        Friend(source="3", target="3", closeness=5),
    )
    assert list(g.find(Friend, field("closeness") == 5)) == [both, self_made]
    assert list(g.find(Friend, order="note")) == [both]
    g.update(Friend, "2", "1", closeness=1, note="new")
    assert list(g.find(Friend, order="note")) == [both.model_copy(update={"closeness": 1, "note": "new"})]
    assert g.find(Friend).count() == 2
    g.update(Friend, "1", "2", note=None)
    assert g.find(Friend, order="note").count() == 0
    g.put(Friend(source="1", target="2", closeness=7))
    assert [edge.closeness for edge in g.find(Friend)] == [5, 7]
    assert g.disconnect(Friend, "2", "1")
    assert g.find(Friend).count() == 1


def test_none_is_in_no_index(g: Any) -> None:
    g.update(Person, "1", born=None)
    assert list(g.find(Person, field("born").exists())) == [BOB, DAN]
    g.put(ANN)
    assert g.find(Person, field("born").exists()).count() == 3
    g.delete(Person, "1")
    assert list(g.find(Person, field("born").exists())) == [BOB, DAN]
    assert g.find(Friend, order="note").count() == 0
    assert g.find(Knows, order="how").count() == 1


def test_copies_are_nobody_s_nodes(g: Any) -> None:
    changes = [change for change in g.changes() if change.problem]
    assert changes == []
    assert {type(change.new) for change in g.changes()} == {Person, Skill, Knows, Friend}
    collection = g.collection(Person.ref("1"))
    assert (collection.node, len(collection.edges), collection.others) == (ANN, 3, [])
    assert [type(entity) for entity in g.collection(Skill.ref("py"), direction="into")] == [Knows, Knows]


@pytest.mark.parametrize("stop", range(14))
@pytest.mark.parametrize("when", ["before", "after"])
def test_nobody_finds_half_of_a_delete(stop: int, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large delete that stops anywhere: what is found is what the edges themselves say."""
    monkeypatch.setattr(deletion, "MAX_TRANSACTION", 4)
    monkeypatch.setattr(deletion, "BATCHES_A_ROUND", 1)
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, MODELS) as graph:
        graph.put(ANN)
        graph.put_many([Knows(source="1", target=str(number), since=1, level=number, how="h") for number in range(5)])
        graph.put_many([Friend(source="1", target=str(number), note="n") for number in range(2, 5)])
        graph.put(Knows(source="2", target="9", since=1, level=99, how="h"))
        store.stop_at(stop, when)
        with suppress(Interrupted):
            graph.delete(Person, "1")
        store.recover()
        is_there = graph.get(Person, "1") is not None
        for query in (graph.find(Knows), graph.find(Knows, order="how")):
            assert [edge.level for edge in query] == [*(range(5) if is_there else ()), 99]
            assert query.count() == 6 if is_there else 1
        for friends in (graph.find(Friend), graph.find(Friend, order="note")):
            assert friends.count() == (3 if is_there else 0)
        graph.delete(Person, "1")
        assert [edge.level for edge in graph.find(Knows, order="how")] == [99]
        assert graph.find(Friend, order="note").count() == 0


class Bare(Node):
    id: str


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda g: g.find(Skill), InvalidKey, r"Skill has no indexed field to find by; mark one with Indexed\(\)"),
        (lambda g: g.find(Person, field("nmae") == "x"), UnknownField, "did you mean 'name'"),
        (lambda g: g.find(Person, (field("nmae") == "x") | (field("name") == "y")), Exception, "name"),
        (lambda g: g.find(Person, field("note") == "x"), InvalidKey, "Person.note is not indexed .*'name', 'born'"),
        (lambda g: g.find(Person, field("name") != "x"), InvalidKey, "an index finds Person by ==, <"),
        (lambda g: g.find(Person, ~(field("name") == "x")), InvalidKey, "an index finds Person by"),
        (lambda g: g.find(Person, order="note"), InvalidKey, "Person.note is not indexed"),
        (lambda g: g.find(Person, order="nmae"), UnknownField, "did you mean 'name'"),
        (lambda g: g.find(Person, field("born") == "yesterday"), InvalidValue, "Person.born"),
        (lambda g: g.find(Person, field("born").begins_with([2000])), InvalidValue, "a prefix is text"),
        (
            lambda g: g.find(Person, field("place").begins_with("UK")),
            InvalidValue,
            "is a path, so its prefix is a path too",
        ),
        (lambda g: g.find(Person, field("grade").begins_with("p")), InvalidValue, "cannot begin with 'p'"),
        (lambda g: g.find(Knows, field("level").begins_with("1")), InvalidValue, "cannot begin with '1'"),
        (lambda g: g.find(Person, "Ann"), InvalidValue, "'Ann' is not a comparison"),
        (lambda g: g.find(Person, field("name") == "\ud800"), InvalidKey, "surrogate"),
        (lambda g: g.find(Person, field("name").begins_with("\ud800")), InvalidKey, "surrogate"),
        (lambda g: g.find(Person, field("name") < "x" * 1024), InvalidKey, "a value of Person.name .*1,024 bytes"),
        (lambda g: g.find(Person).nodes(), InvalidValue, "Person is a node; use"),
        (lambda g: g.find(Knows).nodes("middle"), InvalidValue, 'end must be "source" or "target", got \'middle\''),
        (lambda g: g.find(Person).limit(0), InvalidValue, "at least 1"),
        (lambda g: bool(g.find(Person)), InvalidValue, "no truth value"),
        (lambda g: g.put(ANN.model_copy(update={"name": "x" * 1020})), InvalidKey, "the index key of Person.name"),
        (lambda g: g.put(ANN.model_copy(update={"id": "x" * 2040})), InvalidKey, "the copy of a Person|index key"),
    ],
)
def test_what_is_refused(call: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    with Graph(":memory:", MODELS) as graph:
        with graph.meter() as meter, pytest.raises(error, match=words):
            call(graph)
        assert meter.requests == 0
