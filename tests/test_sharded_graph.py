"""Shards that grow by themselves, end to end: writes, reports, maps, and who knows of them when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidValue,
    Keys,
    MaterializedGraph,
    Node,
    Throttled,
    field,
)
from adjoin.layouts.interface import Layout
from adjoin.plans.shards import HEAT, MAP, VERSION, report_heat
from adjoin.requests import Get, Put, Query, Request, Response
from adjoin.runner import run
from adjoin.sharding.heat import REPORT_AFTER, WINDOW, Heat
from adjoin.sharding.maps import ShardMap
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import decode
from tests.growing import Clock, announce, index_of, on_clock, scanned, stored_map


class Person(Node):
    id: str
    skill: Annotated[str, Indexed()] = "py"
    note: str = ""


class Counting:
    """Passes requests on, and remembers them; may refuse puts as the service does when it is asked too much."""

    def __init__(self, inner: Store) -> None:
        self.inner, self.creates_tables = inner, inner.creates_tables
        self.requests: list[Request] = []
        self.is_hot = False

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        self.requests += requests
        if self.is_hot and any(isinstance(each, Put) and "GSIPK" in each.item for each in requests):
            raise Throttled("too much")
        return self.inner.execute(requests)

    def close(self) -> None:
        self.inner.close()


SCOPE = "PERSON#skill"


class Town:
    def __init__(self, layout: Layout | None = None) -> None:
        self.clock, self.store = Clock(), Counting(SQLiteStore(":memory:"))
        # A window begins here.
        self.clock.now = 170_000_000 * WINDOW
        self.layout = layout or MaterializedGraph()
        self.graph = self.open()
        self.number = 0

    def open(self) -> Graph:
        return on_clock(Graph(self.store, [Person], self.layout), self.clock)

    def write(self, graph: Graph, number: int, skill: str = "py", note: str = "") -> None:
        people = [Person(id=str(self.number + each), skill=skill, note=note) for each in range(number)]
        self.number += number
        graph.put_many(people)

    def map(self) -> ShardMap:
        item = stored_map(self.graph, SCOPE)
        return ShardMap() if item is None else ShardMap.from_plain(decode(item[MAP]))

    def heat(self) -> Heat:
        item = stored_map(self.graph, SCOPE)
        return Heat() if item is None else Heat.from_plain(decode(item[HEAT]))

    def shards(self) -> set[str]:
        return {item["GSIPK"]["S"] for item in scanned(self.graph) if "GSIPK" in item}


def heat_up(town: Town) -> None:
    """In one window more than a shard takes, and a little in the next, which decides; counted, and not stored."""
    book = index_of(town.graph).book
    for _ in range(12):
        for number in range(REPORT_AFTER):
            book.place(SCOPE, "py", str(number), 100)
        run(report_heat(town.graph._layout), town.store)
        town.clock.now += WINDOW / 10


def test_shards_come_where_they_are_needed() -> None:
    town = Town()
    town.write(town.graph, 30)
    heat_up(town)
    grown = town.map()
    assert grown.version == 1
    assert grown.shards_of("py") > 1, "the value is what is hot"
    assert index_of(town.graph).book.map(SCOPE) == grown, "who has reported knows what came of it"
    assert town.heat().units == 2 * REPORT_AFTER, "of the window that has begun"
    town.write(town.graph, 20)
    assert town.shards() == {"PERSON#skill#0"}, "announced, and not written to yet"
    town.clock.now = grown.changed
    town.write(town.graph, 20)
    assert len(town.shards()) > 1
    assert all(shard == "PERSON#skill#0" or shard.endswith("#py") for shard in town.shards())
    assert town.graph.find(Person, field("skill") == "py").count() == 70
    # Another value is found where it always was, with one request.
    town.graph.put(Person(id="x", skill="go"))
    with town.graph.meter() as meter:
        assert [person.id for person in town.graph.find(Person, field("skill") == "go")] == ["x"]
    assert meter.requests == 1


@pytest.mark.parametrize("layout", [AdjacencyList(), MaterializedGraph()])
def test_real_writes_report_too(layout: Layout) -> None:
    town = Town(layout)
    town.write(town.graph, REPORT_AFTER - 1)
    assert stored_map(town.graph, SCOPE) is None
    town.graph.put(Person(id="one more"))
    assert town.heat().units == REPORT_AFTER
    assert town.heat().values == {"py": REPORT_AFTER}
    assert town.map() == ShardMap()
    town.write(town.graph, REPORT_AFTER)
    assert town.heat().units == REPORT_AFTER, "at most once a second"
    town.clock.now += 1
    town.graph.update(Person, "1", skill="go")
    assert town.heat().units == 2 * REPORT_AFTER + 1


def test_a_second_process_with_a_stale_map_finds_everything() -> None:
    town = Town()
    reader = town.open()
    town.write(town.graph, 10)
    assert reader.find(Person).count() == 10
    announce(town.graph, SCOPE, 4, {"py": 4})
    # The reader may go on with what it knows until its lease is over; nobody writes to new shards before.
    town.clock.pass_lease()
    town.clock.now -= 1
    town.write(town.graph, 10)
    assert len(list(reader.find(Person))) == 20
    town.clock.pass_grace()
    assert town.graph.find(Person).count() == 20, "the writer learns"
    town.write(town.graph, 30)
    assert len(town.shards()) > 2
    before = len(town.store.requests)
    assert sorted(int(person.id) for person in reader.find(Person)) == list(range(50))
    asked = town.store.requests[before:]
    assert sum(isinstance(request, Get) for request in asked) == 1, "the map, beside the shards it knew"
    assert sum(isinstance(request, Query) for request in asked) == town.map().shards
    assert reader.find(Person, field("skill") == "py").count() == 50
    assert town.open().find(Person).count() == 50


def test_a_writer_with_an_old_map_does_no_harm() -> None:
    town = Town()
    old = town.open()
    announce(town.graph, SCOPE, 8, {"py": 3})
    town.clock.pass_grace()
    assert town.graph.find(Person).count() == 0
    for number in range(20):
        (old if number % 2 else town.graph).put(Person(id=str(number)))
    for number in range(20):
        (town.graph if number % 2 else old).put(Person(id=str(number), note="again"))
    found = list(town.graph.find(Person, field("skill") == "py"))
    assert sorted(int(person.id) for person in found) == list(range(20))
    assert {person.note for person in found} == {"again"}


def test_those_who_report_at_once_agree() -> None:
    town = Town()
    others = [town.open() for _ in range(3)]
    graphs = [town.graph, *others]
    for graph in graphs:
        for number in range(REPORT_AFTER):
            index_of(graph).book.place(SCOPE, "py", str(number), 10)
    plans = [report_heat(graph._layout) for graph in graphs]
    # All read before any of them writes.
    answers = [town.store.execute(next(plan)) for plan in plans]
    pending = [(plan, plan.send(answer)) for plan, answer in zip(plans, answers, strict=True)]
    for plan, requests in pending:
        _finish(plan, requests, town.store)
    item = stored_map(town.graph, SCOPE)
    assert item is not None
    assert int(item[VERSION]["N"]) == len(graphs), "each was taken once"
    assert town.heat().units == len(graphs) * REPORT_AFTER


def _finish(plan: Any, requests: Any, store: Store) -> None:
    """Drives a plan that was begun by hand."""
    try:
        while True:
            try:
                responses = store.execute(requests)
            except Exception as error:
                requests = plan.throw(error)
                continue
            requests = plan.send(responses)
    except StopIteration:
        return


def test_a_report_that_fails_does_not_fail_the_write() -> None:
    town = Town()

    class Failing(Counting):
        def execute(self, requests: Sequence[Request]) -> list[Response]:
            if any(isinstance(each, Put) and "heat" in each.item for each in requests):
                raise Throttled("too much")
            return super().execute(requests)

    graph = on_clock(Graph(Failing(town.store), [Person], town.layout), town.clock)
    town.write(graph, REPORT_AFTER)
    assert graph.find(Person).count() == REPORT_AFTER
    assert stored_map(graph, SCOPE) is None


def test_throttled_writes_report() -> None:
    town = Town()
    town.graph.put(Person(id="a"))
    assert stored_map(town.graph, SCOPE) is None
    town.store.is_hot = True
    with pytest.raises(Throttled):
        town.graph.put(Person(id="b"))
    town.store.is_hot = False
    assert town.heat().units == 2


def test_small_programs_ask_nothing_more() -> None:
    town = Town()
    with town.graph.meter() as meter:
        for number in range(50):
            town.graph.put(Person(id=str(number)))
    assert meter.requests == 50
    with town.graph.meter() as meter:
        town.graph.find(Person).count()
        list(town.graph.find(Person, field("skill") == "py"))
    assert meter.requests == 3, "two shards, and the map once"
    with town.graph.meter() as meter:
        list(town.graph.find(Person, field("skill") == "py"))
    assert (meter.requests, meter.rounds) == (1, 1)
    assert stored_map(town.graph, SCOPE) is None


def test_the_map_is_nobody_s_node() -> None:
    town = Town()
    town.graph.put(Person(id="a"))
    announce(town.graph, SCOPE, 4)
    assert [change.new for change in town.graph.changes()] == [Person(id="a")]
    assert town.graph.collection(Person.ref("a")).others == []
    (record,) = [item for item in scanned(town.graph) if "heat" in item]
    assert town.graph._layout.is_bookkeeping(record)
    assert town.graph._layout.read(record) is None
    assert (record["NodeId"], record["TypeTarget"]) == ({"S": "#=SHARDS"}, {"S": f"={SCOPE}"})


def test_fixed_shards_have_no_map() -> None:
    town = Town(MaterializedGraph(shards=4))
    book = index_of(town.graph).book
    town.write(town.graph, 40)
    assert town.shards() == {f"PERSON#skill#{number}" for number in range(4)}
    for number in range(3 * REPORT_AFTER):
        book.place(SCOPE, "py", str(number), 100)
    town.clock.now += 2 * WINDOW
    town.graph.put(Person(id="one more"))
    assert not [item for item in scanned(town.graph) if MAP in item]
    with town.graph.meter() as meter:
        assert town.graph.find(Person).count() == 41
        assert len(list(town.graph.find(Person, field("skill") == "py"))) == 41
    assert (meter.requests, meter.rounds) == (8, 2)
    for shards in (0, -1):
        with pytest.raises(InvalidValue, match=f"number of shards must be from 1 to 10,000, got {shards}"):
            Graph(":memory:", [Person], MaterializedGraph(shards=shards))


def test_explaining_teaches_nothing() -> None:
    """What a rehearsal answers is not what is stored."""
    town = Town()
    reader = town.open()
    announce(town.graph, SCOPE, 4, {"py": 2})
    town.clock.pass_grace()
    town.graph.find(Person).count()
    town.write(town.graph, 20)
    explained = reader.explain(reader.find(Person))
    assert [type(request).__name__ for request in explained.requests] == ["Query", "Get"]
    assert explained == reader.explain(reader.find(Person))
    assert reader.find(Person).count() == 20
    book = index_of(town.graph).book
    for number in range(REPORT_AFTER):
        town.graph.explain(town.graph.put, Person(id=str(number)))
    assert book.reports() == {}


def test_a_clock_that_is_set_back_does_not_keep_an_old_map() -> None:
    town = Town()
    reader = town.open()
    reader.find(Person).count()
    town.clock.now -= 3600
    announce(town.graph, SCOPE, 4)
    assert index_of(reader).book.is_stale(SCOPE)
    reader.find(Person).count()
    assert index_of(reader).book.map(SCOPE).shards == 4


def test_what_is_written_again_and_again_does_not_make_a_field_large() -> None:
    """Bytes are counted as they are written; how many there are at most, the table tells."""
    town = Town()
    book = index_of(town.graph).book
    for _ in range(3):
        for number in range(40):
            book.place(SCOPE, "py", str(number), 10**9)
        book.throttled()
        run(report_heat(town.graph._layout), town.store)
        town.clock.now += WINDOW
    assert town.heat().size <= 41 * 10**9, "of the last report, and what the table has"
    assert town.map().shards_of() == 1


# --- edges that arrive at one node in several shards -------------------------------------------


class Reader(Node):
    id: str


class Book(Node):
    id: str


class Read(Edge[Reader, Book]):
    pages: int = 0


def test_edges_in_several_shards_are_one_query() -> None:
    layout = AdjacencyList(
        reverse=None,
        indexes=[Index("Into", "GPK", "GSK", shards=3)],
        keys={Read: Keys(indexes={"Into": ("{target}#{shard}", "{source}")})},
        escape=True,
    )
    with Graph(":memory:", [Reader, Book, Read], layout) as g:
        readers = [f"r{number:02}" for number in range(20)]
        g.put_many(Read(source=id, target="b", pages=number) for number, id in enumerate(readers))
        query = g.into("b", Read)
        assert [edge.source for edge in query] == readers
        assert [edge.source for edge in query.reverse()] == readers[::-1]
        assert query.count() == 20
        assert query.limit(7).count() == 7
        assert [edge.source for edge in query.where(field("pages") > 16)] == readers[17:]
        found: list[str] = []
        token: str | None = None
        while len(found) < 20:
            page = query.page(6, token)
            found += [edge.source for edge in page]
            token = page.next
            assert (token is None) is (len(found) == 20)
        assert found == readers
        assert repr(query).startswith("<EdgeQuery of Read at 'BOOK#b#0' and 2 other shards in the index Into; ")
