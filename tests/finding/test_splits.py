"""Shards that grow while somebody reads: what is there all the time is found once, in order, whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import AdjacencyList, Graph, Indexed, InvalidCursor, MaterializedGraph, Node, field
from adjoin.layouts.indexed_fields import indexed_text
from adjoin.layouts.interface import Layout
from adjoin.stores.sqlite import SQLiteStore
from tests.growing import Clock, ShortPages, announce, index_of, on_clock, scanned
from tests.shares import examples


class Person(Node):
    id: str
    skill: Annotated[str | None, Indexed()] = None
    visits: int = 0


SCOPE = "PERSON#skill"
SKILLS = ["go", "go#", "py", "q$"]
IDS = "abcdefghijkl"


class Town:
    """A writer and a reader, each with what it knows of the shards, over one store and one clock."""

    def __init__(self, page: int) -> None:
        self.clock = Clock()
        self.store = SQLiteStore(":memory:")
        self.writer = on_clock(Graph(self.store, [Person], MaterializedGraph()), self.clock)
        self.reader = on_clock(
            Graph(ShortPages(self.store, page), [Person], MaterializedGraph(), cursor_secret="s"), self.clock
        )
        self.people: dict[str, Person] = {}
        self.moved: set[str] = set()
        """Those who were not there all the time, or changed."""

    def put(self, person: Person) -> None:
        if self.people.get(person.id, person).skill != person.skill or person.id not in self.people:
            self.moved.add(person.id)
        self.people[person.id] = person
        self.writer.put(person)

    def delete(self, id: str) -> None:
        self.moved.add(id)
        self.people.pop(id, None)
        self.writer.delete(Person, id)

    def grow(self, shards: int | None, values: dict[str, int]) -> None:
        announce(self.writer, SCOPE, shards, {indexed_text(value): number for value, number in values.items()})

    def writer_learns(self) -> None:
        """A writer learns of shards when it reports; finding is a cheaper way for a test."""
        self.writer.find(Person).count()

    def close(self) -> None:
        self.writer.close()


@st.composite
def happenings(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    ids, skills = st.sampled_from(IDS), st.sampled_from(SKILLS)
    values = st.dictionaries(skills, st.integers(1, 3), max_size=2)
    return draw(
        st.lists(
            st.one_of(
                st.tuples(st.just("put again"), st.lists(ids, max_size=8)),
                st.tuples(st.just("put"), ids, skills),
                st.tuples(st.just("delete"), ids),
                st.tuples(st.just("grow"), st.none() | st.integers(2, 6), values),
                st.tuples(st.just("pass"), st.sampled_from(["pass_lease", "pass_grace"])),
                st.tuples(st.just("learn")),
            ),
            max_size=5,
        )
    )


def happen(town: Town, events: list[tuple[Any, ...]]) -> None:
    for name, *details in events:
        match name, details:
            case "put again", [ids]:
                for id in ids:
                    if id in town.people:
                        town.put(town.people[id].model_copy(update={"visits": town.people[id].visits + 1}))
            case "put", [id, skill]:
                town.put(Person(id=id, skill=skill))
            case "delete", [id]:
                town.delete(id)
            case "grow", [shards, values]:
                town.grow(shards, values)
            case "pass", [until]:
                getattr(town.clock, until)()
            case "learn", []:
                town.writer_learns()


def pages(query: Any, limit: int) -> Iterator[list[Any]]:
    token: str | None = None
    while True:
        page = query.page(limit=limit, after=token)
        yield page.items
        token = page.next
        if token is None:
            return


def one_by_one(query: Any, limit: int) -> Iterator[list[Any]]:
    for found in query:
        yield [found]


QUESTIONS: list[tuple[Any, Any]] = [
    (None, lambda person: True),
    (field("skill") == "go", lambda person: person.skill == "go"),
    (field("skill") >= "go#", lambda person: person.skill >= "go#"),
    (field("skill").begins_with("go"), lambda person: person.skill.startswith("go")),
    (field("skill").is_in(["q$", "go"]), lambda person: person.skill in ("q$", "go")),
]


@pytest.mark.simulation
@pytest.mark.parametrize("reading", [pages, one_by_one])
@given(data=st.data())
@settings(max_examples=examples(20))
def test_what_is_there_all_the_time_is_found_once(reading: Any, data: st.DataObject) -> None:
    town = Town(data.draw(st.sampled_from([1, 2, 3, 1000]), "page of the store"))
    for id in data.draw(st.lists(st.sampled_from(IDS), max_size=12, unique=True), "who"):
        town.put(Person(id=id, skill=data.draw(st.sampled_from(SKILLS))))
        happen(town, data.draw(happenings(), "at first"))
    town.moved.clear()
    predicate, holds = data.draw(st.sampled_from(QUESTIONS), "question")
    before = dict(town.people)
    query = town.reader.find(Person, predicate)
    is_backward = data.draw(st.booleans(), "backward")
    query = query.reverse() if is_backward else query
    found: list[Person] = []
    for some in reading(query, data.draw(st.integers(1, 4), "limit")):
        found += some
        happen(town, data.draw(happenings(), "meanwhile"))
    places = [(str(person.skill).encode(), person.id) for person in found]
    assert places == sorted(places, reverse=is_backward)
    assert len(set(places)) == len(places), "doubled"
    steady = {id for id, person in before.items() if id not in town.moved and holds(person)}
    assert steady <= {person.id for person in found}, "missed"
    assert {person.id for person in found} - town.moved == steady
    town.close()


def test_a_token_from_before_a_split_goes_on_after_it() -> None:
    town = Town(1000)
    for number in range(20):
        town.put(Person(id=f"{number:02}", skill="py"))
    query = town.reader.find(Person, field("skill") == "py")
    first = query.page(limit=5)
    town.grow(4, {"py": 8})
    town.clock.pass_grace()
    town.writer_learns()
    for number in (3, 7, 8, 12, 19):
        town.put(Person(id=f"{number:02}", skill="py", visits=1))
    town.put(Person(id="05+", skill="py"))
    shards = {item["GSIPK"]["S"] for item in _entries(town)}
    assert len(shards) > 3, "entries lie in old and new shards"
    second = query.page(limit=6, after=first.next)
    assert [person.id for person in second] == ["05", "05+", "06", "07", "08", "09"]
    third = query.page(limit=100, after=second.next)
    assert [person.id for person in third] == [f"{number:02}" for number in range(10, 20)]
    assert third.next is None
    assert query.count() == 21
    town.close()


def _entries(town: Town) -> list[Any]:
    return [item for item in scanned(town.writer) if "GSIPK" in item]


def test_a_token_is_bound_to_its_query() -> None:
    town = Town(1000)
    for id in IDS:
        town.put(Person(id=id, skill="py"))
    find = town.reader.find
    query = find(Person, field("skill") == "py")
    token = query.page(limit=2).next
    assert token is not None
    others = [
        find(Person, field("skill") == "go"),
        find(Person, field("skill") >= "py"),
        find(Person),
        query.reverse(),
        query.where(field("visits") == 0),
        query.limit(7),
        town.writer.find(Person, field("skill") == "py"),
        town.reader.collection(Person.ref("a")),
    ]
    for other in others:
        with pytest.raises(InvalidCursor):
            other.page(after=token)
    with pytest.raises(InvalidCursor):
        query.page(after=token[:-2] + ("AA" if not token.endswith("AA") else "BB"))
    assert len(query.page(after=token)) == len(IDS) - 2
    assert index_of(town.reader).scopes == (SCOPE,)
    town.close()


@pytest.mark.parametrize("layout", [AdjacencyList(), MaterializedGraph()])
def test_an_audit_takes_an_entry_where_it_was_written(layout: Layout) -> None:
    """Entries from before a value got shards of its own stay where they are."""

    class Twice(Node):
        id: str
        born: Annotated[int, Indexed()] = 0
        city: Annotated[str, Indexed()] = "x"

    clock = Clock()
    with on_clock(Graph(":memory:", [Twice], layout), clock) as graph:
        graph.put_many([Twice(id=str(at)) for at in range(8)])
        for scope, value in (("TWICE#city", "x"), ("TWICE#born", indexed_text(0))):
            announce(graph, scope, 3, {value: 2})
        clock.pass_lease()
        assert graph.find(Twice, field("city") == "x").count() == 8
        assert graph.find(Twice, field("born") == 0).count() == 8
        clock.pass_grace()
        assert graph.verify().findings == ()
        graph.put_many([Twice(id=str(at)) for at in range(4)])
        assert graph.find(Twice, field("city") == "x").count() == 8
        assert graph.verify().findings == ()
