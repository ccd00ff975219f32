"""The number of shards of an index, in the table: written, read, learned and raised, while programs run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import (
    AdjacencyList,
    AsyncGraph,
    Copy,
    Count,
    Edge,
    Graph,
    Index,
    Indexed,
    Keys,
    MaterializedGraph,
    Node,
    field,
)
from adjoin.errors import (
    AccessDenied,
    AdjoinError,
    InvalidCursor,
    InvalidItem,
    InvalidKey,
    InvalidValue,
    TableMismatch,
)
from adjoin.layouts.interface import Layout
from adjoin.layouts.shard_numbers import SHARDS, VERSION
from adjoin.plans.read import encode_cursor
from adjoin.plans.shards import index_shards, raise_shards
from adjoin.requests import CreateTable, Delete, Get, Put, Query, Request, Response
from adjoin.runner import run
from adjoin.sharding.maps import FIRST_GRACE, FIRST_LEASE, GRACE, LEASE
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore, Interrupted
from tests.growing import Clock, ShortPages, on_clock, scanned
from tests.shares import stride


class Person(Node):
    id: str
    name: str
    note: str = ""


class Skill(Node):
    id: str


class Knows(Edge[Person, Skill]):
    level: int = 0


class Citizen(Node):
    id: str
    name: Annotated[str, Indexed()] = "a"


class Inhabitant(Node):
    id: int
    name: str = Field(alias="Data")


class Day(Node):
    id: int
    day: str = Field(alias="Data")


class Born(Edge[Inhabitant, Day]):
    day: str = Field(alias="Data")
    person: Annotated[str, Copy("source.name")] = ""


RECORD_KEY = {"PK": {"S": "#=RECORDS"}, "SK": {"S": "=SHARDS#GSIPK"}}


def declared(shards: int | range, **options: Any) -> AdjacencyList:
    return AdjacencyList(
        indexes=[Index("ByName", "GSIPK", "name", shards=shards, **options)],
        keys={Person: Keys(indexes={"ByName": "{shard}"})},
        escape=True,
    )


class Watched:
    """Passes requests on and remembers them; may deny some as the service does."""

    def __init__(self, inner: Store) -> None:
        self.inner, self.creates_tables = inner, inner.creates_tables
        self.requests: list[Request] = []
        self.denies: Callable[[Request], bool] = lambda _: False

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        self.requests += requests
        if any(map(self.denies, requests)):
            raise AccessDenied("not authorized to perform this")
        return self.inner.execute(requests)

    def close(self) -> None:
        self.inner.close()


def people(number: int, note: str = "") -> list[Person]:
    return [Person(id=f"P{each:03}", name=f"name {each % 17}", note=note) for each in range(number)]


def opened(store: Store, shards: int | range, clock: Clock | None = None) -> Graph:
    graph = Graph(store, [Person], declared(shards))
    return graph if clock is None else on_clock(graph, clock)


def ids(found: Iterable[Any]) -> list[str]:
    return sorted(str(each.id) for each in found)


ALL = ids(people(200))


# --- what a table says -------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [(4, 1), (4, 3), (7, 2)])
def test_a_lower_declared_number_finds_everything_and_writes_so_that_others_do(first: int, second: int) -> None:
    store = SQLiteStore(":memory:")
    one, other = opened(store, first), opened(store, second)
    one.put_many(people(100))
    other.put_many(people(200)[100:])
    for graph in (one, other, opened(store, second), opened(store, first)):
        assert ids(graph.find(Person, order="name")) == ALL
        assert ids(graph.index("ByName")) == ALL
        assert graph.find(Person, order="name").count() == 200


def test_a_higher_declared_number_is_refused_with_both() -> None:
    store = SQLiteStore(":memory:")
    opened(store, 4).put_many(people(10))
    with pytest.raises(TableMismatch, match="declares 8 shards for the index 'ByName', but the table has 4"):
        opened(store, 8)
    with pytest.raises(TableMismatch, match=r"range\(1, 5\)"):
        opened(store, range(1, 5))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (AdjacencyList(shards=7), AdjacencyList(shards=2)),
        (AdjacencyList(shards=7), AdjacencyList()),
        (MaterializedGraph(shards=7), MaterializedGraph(shards=2)),
        (MaterializedGraph(shards=7), MaterializedGraph()),
    ],
)
def test_so_it_is_with_indexed_fields(first: Layout, second: Layout) -> None:
    store = SQLiteStore(":memory:")
    one, other = Graph(store, [Citizen], first), Graph(store, [Citizen], second)
    one.put_many(Citizen(id=str(each)) for each in range(100))
    other.put_many(Citizen(id=str(each)) for each in range(100, 200))
    for graph in (one, other):
        assert len(list(graph.find(Citizen, field("name") == "a"))) == 200
        assert graph.find(Citizen).count() == 200
    for index in (one, other):
        index.raise_shards(index._layout.overloaded.name, 9)  # type: ignore[union-attr]
    with pytest.raises(TableMismatch, match=r"declares 10 shards .* the table has 9"):
        Graph(store, [Citizen], type(first)(shards=10))  # type: ignore[call-arg]


def test_so_it_is_with_the_published_graph() -> None:
    store = SQLiteStore(":memory:")

    def published(shards: int) -> Graph:
        return Graph(store, [Inhabitant, Day, Born], MaterializedGraph.as_published(shards))

    published(5).put_many(Inhabitant(id=each, Data=f"n{each}") for each in range(100))
    fewer = published(2)
    fewer.put_many(Inhabitant(id=each, Data=f"n{each}") for each in range(100, 200))
    for graph in (fewer, published(5)):
        assert len(list(graph.index("GSI1"))) == len(list(graph.index("GSI2"))) == 200
    with pytest.raises(TableMismatch, match="declares 6 shards for the indexes 'GSI1' and 'GSI2', but the table has 5"):
        published(6)
    # One number for both indexes, which have one partition key.
    published(5).raise_shards("GSI2", 6)
    assert len(published(6)._layout.shard_numbers["GSI PK"].all) == 6


def test_a_table_without_a_record_has_the_declared_number_and_gets_none_from_readers() -> None:
    store = Watched(SQLiteStore(":memory:"))
    graph = opened(store, 4)
    store.execute([Delete("adjoin", RECORD_KEY)])
    later = opened(store, 8)
    later.put_many(people(200))
    assert ids(later.find(Person, order="name")) == ALL
    assert [item for item in scanned(graph) if SHARDS in item] == []


def test_a_graph_that_opens_before_its_table_exists_learns_the_number_with_its_first_find() -> None:
    inner = SQLiteStore(":memory:")
    late = Watched(inner)
    late.creates_tables = False
    graph = opened(late, 2)
    opened(inner, 4).put_many(people(200))
    assert ids(graph.find(Person, order="name")) == ALL


def test_tenants_share_the_number_of_their_table() -> None:
    store = SQLiteStore(":memory:")
    acme = Graph(store, [Person], declared(4), tenant="acme")
    beta = Graph(store, [Person], declared(2), tenant="beta")
    whole = opened(store, 3)
    acme.raise_shards("ByName", 6)
    for graph in (acme, beta.for_tenant("acme"), Graph(store, [Person], declared(5), tenant="acme")):
        graph.put_many(people(200))
        assert ids(graph.find(Person, order="name")) == ALL
    assert [list(key.values()) for key in map(whole._layout.key_of, scanned(whole)) if key == RECORD_KEY]
    assert sum(SHARDS in item for item in scanned(whole)) == 1
    assert ids(whole.scan()) == [], "the record is nobody's item"


def test_the_same_for_asynchronous_graphs(tmp_path: Path) -> None:
    file = str(tmp_path / "people.db")

    async def go() -> None:
        async with AsyncGraph(file, [Person], declared(4)) as one:
            await one.put_many(people(50))
            await one.raise_shards("ByName", 5)
        async with AsyncGraph(file, [Person], declared(2)) as other:
            assert len([each async for each in other.find(Person, order="name")]) == 50
        with pytest.raises(TableMismatch, match=r"declares 6 .* has 5"):
            async with AsyncGraph(file, [Person], declared(6)):
                pass

    asyncio.run(go())


# --- requests ----------------------------------------------------------------------------------


def is_of_records(request: Request) -> bool:
    match request:
        case Get() | Delete():
            return request.key == RECORD_KEY
        case Put():
            return SHARDS in request.item
        case Query():
            return request.partition == ("PK", RECORD_KEY["PK"])
    return False


def test_a_number_costs_one_read_at_open_and_one_in_a_find_after_each_lease() -> None:
    store, clock = Watched(SQLiteStore(":memory:")), Clock()
    opened(store, 2)
    assert [type(each) for each in store.requests] == [*map(type, store.requests[:2]), Put, Query, Get, Get, Put]
    assert isinstance(store.requests[1], CreateTable)
    store.requests.clear()
    graph = opened(store, 2)
    assert [type(each).__name__ for each in store.requests] == ["DescribeTable", "Query", "Get"]
    on_clock(graph, clock)
    store.requests.clear()
    person = people(1)[0]
    graph.put(person)
    graph.put_many([person])
    graph.update(Person, "P000", note="new")
    assert graph.get(Person, "P000") is not None
    for _ in range(3):
        list(graph.find(Person, order="name"))
    assert not any(map(is_of_records, store.requests))
    clock.pass_lease()
    graph.get(Person, "P000")
    graph.put(person)
    assert not any(map(is_of_records, store.requests))
    with graph.meter() as meter:
        list(graph.find(Person, order="name"))
        list(graph.find(Person, order="name"))
    assert (meter.requests, meter.rounds) == (5, 2), "two shards twice, and the number in the first round"
    assert sum(map(is_of_records, store.requests)) == 1


def test_a_number_is_never_read_as_it_was_before() -> None:
    """An old number would let a reader miss the items in new shards."""
    store, clock = Watched(SQLiteStore(":memory:")), Clock()
    for _ in range(2):
        graph = opened(store, 2, clock)
        clock.now += LEASE
        list(graph.find(Person, order="name"))
        graph.raise_shards("ByName", 3)
        run(index_shards(graph._layout), store)
    read = [each for each in store.requests if is_of_records(each) and isinstance(each, Get | Query)]
    assert {type(each) for each in read} == {Get, Query}
    assert all(each.consistent for each in read)


def test_a_graph_without_sharded_keys_asks_for_no_number() -> None:
    store = Watched(SQLiteStore(":memory:"))
    for _ in range(2):
        Graph(store, [Person], AdjacencyList())
    assert not any(map(is_of_records, store.requests))


def test_explaining_learns_nothing() -> None:
    store, clock = SQLiteStore(":memory:"), Clock()
    graph = opened(store, 2, clock)
    clock.pass_lease()
    assert "Get" in str(graph.explain(graph.find(Person, order="name")))
    assert graph._layout.shard_numbers["GSIPK"].is_stale


# --- permissions -------------------------------------------------------------------------------


def test_who_may_not_write_the_record_can_still_create_read_and_write() -> None:
    store = Watched(SQLiteStore(":memory:"))
    store.denies = lambda request: isinstance(request, Put) and SHARDS in request.item
    graph = opened(store, 4)
    graph.put_many(people(200))
    assert ids(opened(store, 4).find(Person, order="name")) == ALL
    with pytest.raises(AccessDenied):
        graph.raise_shards("ByName", 8)
    assert ids(graph.find(Person, order="name")) == ALL
    opened(store.inner, 4).raise_shards("ByName", 8)
    later = opened(store, 4)
    assert len(later._layout.shard_numbers["GSIPK"].all) == 8
    assert ids(later.find(Person, order="name")) == ALL


def test_who_may_not_read_the_record_is_told_so() -> None:
    store = Watched(SQLiteStore(":memory:"))
    opened(store, 4)
    store.denies = is_of_records
    with pytest.raises(AccessDenied, match=r"number of shards of the index 'ByName' cannot be read: .*'#=RECORDS'"):
        opened(store, 4)


def test_adaptive_shards_need_no_permission_to_read_it() -> None:
    store = Watched(SQLiteStore(":memory:"))
    store.denies = is_of_records
    graph = Graph(store, [Citizen], AdjacencyList())
    graph.put(Citizen(id="1"))
    assert ids(graph.find(Citizen)) == ["1"]


# --- raising -----------------------------------------------------------------------------------


def shards_used(graph: Graph) -> set[str]:
    return {item["GSIPK"]["S"] for item in scanned(graph) if "GSIPK" in item}


def test_an_open_graph_learns_a_higher_number_before_anybody_writes_to_new_shards() -> None:
    store, clock = SQLiteStore(":memory:"), Clock()
    graph, reader, idle = (opened(store, 2, clock) for _ in range(3))
    graph.put_many(people(100))
    before = {str(graph._layout.key_of(item)): item for item in scanned(graph) if SHARDS not in item}
    graph.raise_shards("ByName", 8)
    after = {str(graph._layout.key_of(item)): item for item in scanned(graph) if SHARDS not in item}
    assert before == after, "nothing moves"
    clock.now += FIRST_GRACE - 1
    graph.put_many(people(200)[100:])
    assert shards_used(graph) == {"0", "1"}
    assert ids(reader.find(Person, order="name")) == ALL
    assert len(reader._layout.shard_numbers["GSIPK"].all) == 8, "it has learned"
    clock.now += 1
    graph.put_many(people(200))
    assert shards_used(graph) == {str(each) for each in range(8)}
    for each in (graph, reader, idle, opened(store, 2, clock), opened(store, 8, clock)):
        assert ids(each.find(Person, order="name")) == ALL
        assert ids(each.index("ByName")) == ALL


def test_what_is_told_of_the_shards_of_an_index() -> None:
    """What the table says, and from when on; or only what the layout says."""
    store, clock = SQLiteStore(":memory:"), Clock()
    graph = opened(store, 2, clock)

    def told() -> list[tuple[Any, str]]:
        return [
            ((each.index, each.declared, each.stored, each.written), str(each))
            for each in run(index_shards(graph._layout), store)
        ]

    assert told() == [(("ByName", 2, 2, 2), "ByName: 2 shards")]
    graph.raise_shards("ByName", 5)
    clock.now += FIRST_GRACE - 1
    ((numbers, text),) = told()
    assert numbers == ("ByName", 2, 5, 2)
    assert text == "ByName: 5 shards; items are written to 2 of them until 2023-11-14 22:15:50 UTC"
    clock.now += 1
    assert told() == [(("ByName", 2, 5, 5), "ByName: 5 shards")]
    store.execute((Delete("adjoin", RECORD_KEY),))
    ((numbers, text),) = told()
    assert numbers == ("ByName", 2, None, None)
    assert text == "ByName: 2 shards, as the layout declares; the table has no record of them"
    assert [each.since for each in run(index_shards(graph._layout), store)] == [0.0]
    adaptive = Graph(store, [Citizen], AdjacencyList())
    assert [str(each) for each in run(index_shards(adaptive._layout), store)] == [
        "GSI3: adaptive shards, as the layout declares; the table has no record of them"
    ]


def test_an_update_keeps_the_item_in_the_index() -> None:
    store, clock = SQLiteStore(":memory:"), Clock()
    graph = opened(store, 2, clock)
    graph.put_many(people(200))
    graph.raise_shards("ByName", 16)
    clock.pass_grace()
    for each in people(200):
        graph.update(Person, each.id, name=each.name.upper())
    assert ids(graph.find(Person, order="name")) == ALL
    assert {each.name for each in graph.find(Person, order="name")} == {each.name.upper() for each in people(200)}


def test_edges_in_shards_are_found_by_deletes_and_copies() -> None:
    """Whoever never finds anything learns the number too, before it looks for edges in shards."""

    class Town(Node):
        id: str
        name: str = "x"

    class Lives(Edge[Person, Town]):
        town: Annotated[str, Copy("target.name")] = ""

    layout = AdjacencyList(
        reverse=None,
        indexes=[Index("Into", "GSIPK", "GSISK", shards=2)],
        keys={Lives: Keys(indexes={"Into": ("{shard}", "{target}#{source}")})},
        escape=True,
    )
    store, clock = SQLiteStore(":memory:"), Clock()
    one, other = (on_clock(Graph(store, [Person, Town, Lives], layout), clock) for _ in range(2))
    one.raise_shards("Into", 9)
    clock.pass_grace()
    list(one.find(Lives, field("target") == "T"))
    one.put_many([*people(40), Town(id="T"), *(Lives(source=each.id, target="T") for each in people(40))])
    assert len(shards_used(one)) > 2
    other.put(Town(id="T", name="y"))
    other.maintain(once=True)
    assert {each.town for each in one.scan(Lives)} == {"y"}
    clock.pass_lease()
    third = on_clock(Graph(store, [Person, Town, Lives], layout), clock)
    one.raise_shards("Into", 20)
    clock.pass_grace()
    list(one.find(Lives, field("target") == "T"))
    one.put_many(one.scan(Lives))
    assert third.delete(Town, "T")
    assert list(one.scan(Lives)) == []


def test_edges_in_shards_that_wait_for_a_node_are_counted_with_it() -> None:
    class Town(Node):
        id: str

    class Counting(Node, label="TOWN"):
        id: str
        people: Annotated[int, Count("Inhabits", consistency="transaction")] = 0

    class Lives(Edge[Person, Town]):
        pass

    class Inhabits(Edge[Person, Counting], label="LIVES"):
        pass

    def layout(edge: type[Any]) -> AdjacencyList:
        return AdjacencyList(
            reverse=None,
            indexes=[Index("Into", "GSIPK", "GSISK", shards=2)],
            keys={edge: Keys(indexes={"Into": ("{shard}", "{target}#{source}")})},
            escape=True,
        )

    store, clock = SQLiteStore(":memory:"), Clock()
    counting = on_clock(Graph(store, [Person, Counting, Inhabits], layout(Inhabits)), clock)
    earlier = on_clock(Graph(store, [Person, Town, Lives], layout(Lives)), clock)
    counting.put(Counting(id="T"))
    counting.delete(Counting, "T")
    earlier.raise_shards("Into", 9)
    clock.pass_grace()
    list(earlier.find(Lives, field("target") == "T"))
    # This program counts nothing, so its edges have no ledgers: they are found in the index only.
    earlier.put_many(Lives(source=each.id, target="T") for each in people(12))
    assert len(shards_used(earlier)) > 2
    counting.put(Counting(id="T"))
    assert counting.get(Counting, "T") == Counting(id="T", people=12)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_raise_that_is_interrupted_is_done_or_not_and_can_be_repeated(when: str) -> None:
    for number in range(2):
        store, clock = FaultyStore(SQLiteStore(":memory:")), Clock()
        graph = opened(store, 3, clock)
        graph.put_many(people(200))
        store.stop_at(number, when)
        with pytest.raises(Interrupted):
            graph.raise_shards("ByName", 5)
        store.recover()
        is_done = (number, when) == (1, "after")
        other = opened(store, 3, clock)
        assert len(other._layout.shard_numbers["GSIPK"].all) == (5 if is_done else 3)
        clock.pass_grace()
        for each in (graph, other):
            each.put_many(people(200))
            assert ids(each.find(Person, order="name")) == ALL
        graph.raise_shards("ByName", 5)
        assert [epoch.shards for epoch in graph._layout.shard_numbers["GSIPK"].epochs] == [3, 5]


def test_of_two_raises_at_once_both_hold_or_the_lower_one_is_refused() -> None:
    def beside(first: int, second: int) -> tuple[list[int], AdjoinError | None]:
        store, clock = SQLiteStore(":memory:"), Clock()
        graph = opened(store, 3, clock)
        slow = raise_shards(graph._layout, "ByName", first)
        answers = store.execute(next(slow))
        run(raise_shards(graph._layout, "ByName", second), store)
        put = slow.send(answers)
        problem: AdjoinError | None = None
        try:
            store.execute(put)
        except AdjoinError as failure:
            problem = failure
        try:
            asked = slow.throw(problem)  # type: ignore[arg-type]
            while True:
                asked = slow.send(store.execute(asked))
        except StopIteration:
            problem = None
        except InvalidValue as refused:
            problem = refused
        after = opened(store, 3, clock)
        return [epoch.shards for epoch in after._layout.shard_numbers["GSIPK"].epochs], problem

    assert beside(8, 5) == ([3, 5, 8], None)
    assert beside(5, 5) == ([3, 5], None)
    epochs, refused = beside(5, 8)
    assert epochs == [3, 8]
    assert "must be from 8 to 10,000, got 5" in str(refused)


def test_what_cannot_be_raised() -> None:
    graph = opened(SQLiteStore(":memory:"), 3)
    with pytest.raises(InvalidKey, match="'GSI1' is not an index with a number of shards; such indexes are 'ByName'"):
        graph.raise_shards("GSI1", 4)
    adaptive = Graph(":memory:", [Citizen], MaterializedGraph())
    with pytest.raises(InvalidKey, match="'GSI1' is not an index with a number of shards; such indexes are none"):
        adaptive.raise_shards("GSI1", 4)
    for wrong in (2, 0, 10_001):
        with pytest.raises(InvalidValue):
            graph.raise_shards("ByName", wrong)
    for odd in (True, "8", 8.0, None):
        with pytest.raises(InvalidValue):
            graph.raise_shards("ByName", odd)  # type: ignore[arg-type]


# --- damage ------------------------------------------------------------------------------------


def test_a_damaged_record_is_refused_when_a_graph_opens_and_when_it_learns() -> None:
    store, clock = SQLiteStore(":memory:"), Clock()
    graph = opened(store, 3, clock)
    graph.put_many(people(20))
    store.execute([Put("adjoin", {**RECORD_KEY, SHARDS: {"S": "3"}, VERSION: {"N": "0"}})])
    with pytest.raises(InvalidItem, match="delete it, and set the number again"):
        opened(store, 3)
    assert len(list(graph.find(Person, order="name"))) == 20
    clock.pass_lease()
    with pytest.raises(InvalidItem):
        list(graph.find(Person, order="name"))
    with pytest.raises(InvalidItem):
        graph.raise_shards("ByName", 4)
    store.execute([Delete("adjoin", RECORD_KEY)])
    graph.raise_shards("ByName", 4)
    assert len(list(opened(store, 3).find(Person, order="name"))) == 20


def test_a_record_with_a_lower_number_than_the_items_refuses_those_who_know_better() -> None:
    """Without a record, a program used eight shards. Another one, which declares three, raises its number."""
    store, clock = SQLiteStore(":memory:"), Clock()
    opened(store, 3)
    store.execute([Delete("adjoin", RECORD_KEY)])
    eight, three = opened(store, 8, clock), opened(store, 3, clock)
    eight.put_many(people(200))
    three.raise_shards("ByName", 5)
    clock.pass_lease()
    for graph in (lambda: list(eight.find(Person, order="name")), lambda: opened(store, 8)):
        with pytest.raises(TableMismatch, match=r"declares 8 .* has 5"):
            graph()
    three.raise_shards("ByName", 8)
    for each in (eight, three, opened(store, 8)):
        assert ids(each.find(Person, order="name")) == ALL


# --- pages -------------------------------------------------------------------------------------


def pages(graph: Graph, token: str | None, limit: int) -> tuple[list[Person], str | None]:
    page = graph.find(Person, order="name").page(limit, token)
    return list(page), page.next


def test_page_tokens_go_on_over_a_raise_and_between_graphs_that_know_different_numbers() -> None:
    store, clock = SQLiteStore(":memory:"), Clock()
    one, other = opened(store, 2, clock), opened(store, 2, clock)
    everybody = [Person(id=f"P{each:03}", name=f"name {each:03}") for each in range(200)]
    one.put_many(everybody)
    found, token = pages(one, None, 30)
    one.raise_shards("ByName", 6)
    clock.pass_grace()
    more, token = pages(one, token, 30)
    found += more
    one.put_many(everybody)
    more, token = pages(one, token, 30)
    found += more
    # The other graph has not learned yet: its clock stands still.
    late = Clock()
    late.now = clock.now - FIRST_GRACE
    on_clock(other, late)
    while token is not None:
        more, token = pages(other, token, 7)
        found += more
    assert [each.id for each in found] == ALL


def test_equal_sort_keys_are_found_once_while_all_items_move() -> None:
    store, clock = SQLiteStore(":memory:"), Clock()
    writer = opened(store, 2, clock)
    writer.put_many(people(200))
    reader = opened(ShortPages(store, 5), 2, clock)
    writer.raise_shards("ByName", 9)
    for query in (reader.find(Person, order="name"), reader.find(Person, order="name").reverse()):
        found = []
        for number, each in enumerate(query):
            found.append(each)
            if number == 60:
                clock.pass_grace()
                list(writer.find(Person, order="name").limit(1))
                writer.put_many(people(200))
        assert ids(found) == ALL
        store.execute([Delete("adjoin", RECORD_KEY)])
        writer = opened(store, 2, clock)
        writer.put_many(people(200))
        reader = opened(ShortPages(store, 5), 2, clock)
        writer.raise_shards("ByName", 9)


def test_a_token_that_names_a_shard_which_does_not_exist_is_refused() -> None:
    graph = opened(SQLiteStore(":memory:"), 2)
    graph.put_many(people(20))
    query = graph.find(Person, order="name")
    start = '{"PK":{"S":"a"},"SK":{"S":"b"},"GSIPK":{"S":"0"},"name":{"S":"n"}}'
    for number in ("1", "2", "99999999999", "-1", "x", "last "):
        token = encode_cursor({number: {"S": start}}, 1, query._identity, b"")
        with pytest.raises(InvalidCursor):
            query.page(5, token)
    for last in ("[]", '{"PK":{"S":"a"}}', start.replace('"n"', "{}")):
        token = encode_cursor({"last": {"S": last}}, 1, query._identity, b"")
        with pytest.raises(InvalidCursor):
            query.page(5, token)


# --- everything at once ------------------------------------------------------------------------


class Skewed(Clock):
    """A clock that is some seconds fast or slow."""

    def __init__(self, true: Clock, skew: float) -> None:
        self.true, self.skew = true, skew

    def __call__(self) -> float:
        return self.true() + self.skew


@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(0, 12, stride(4)))
def test_every_reader_finds_everything_once_while_others_write_and_raise(seed: int) -> None:
    """Writers put items again, which moves them; readers read page by page; the number is raised now and then."""
    random, clock = Random(seed), Clock()
    inner = SQLiteStore(":memory:")
    store = ShortPages(inner, random.choice((2, 5, 1000)))
    everybody = [Person(id=f"P{each:03}", name=f"name {each:03}") for each in range(60)]

    def skewed(shards: int) -> Graph:
        return on_clock(Graph(store, [Person], declared(shards)), Skewed(clock, random.uniform(-5, 5)))

    writers = [skewed(2) for _ in range(3)]
    writers[0].put_many(everybody)
    readers = [skewed(random.choice((1, 2))) for _ in range(3)]
    reading: dict[int, tuple[list[str], str | None]] = {}
    forward = {number: random.random() < 0.5 for number in range(3)}
    number, finished = 2, 0
    for _ in range(400):
        clock.now += random.choice((0.1, 1, 10, LEASE, GRACE, FIRST_LEASE, FIRST_GRACE))
        match random.choice(("write", "write", "read", "read", "read", "raise", "open")):
            case "write":
                random.choice(writers).put_many(random.sample(everybody, random.randint(1, 20)))
            case "raise" if number < 12 and random.random() < 0.3:
                number += random.randint(1, 4)
                random.choice(writers).raise_shards("ByName", number)
            case "open":
                writers[random.randrange(3)] = skewed(random.choice((1, 2)))
            case "read":
                at = random.randrange(3)
                found, token = reading.get(at, ([], None))
                query = readers[at].find(Person, order="name")
                page = (query if forward[at] else query.reverse()).page(random.randint(1, 25), token)
                found = [*found, *(each.id for each in page)]
                reading[at] = (found, page.next)
                if page.next is None:
                    expected = [each.id for each in everybody]
                    assert found == (expected if forward[at] else expected[::-1])
                    finished += 1
                    forward[at] = random.random() < 0.5
                    del reading[at]
    assert finished > 3
    assert number > 2
    for graph in (*writers, *readers):
        assert ids(graph.find(Person, order="name")) == [each.id for each in everybody]


# --- edges that arrive -------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [1, 3])
def test_edges_that_arrive_are_found_in_all_shards_of_their_target_after_a_raise(shards: int) -> None:
    layout = AdjacencyList(
        reverse=None,
        indexes=[Index("Into", "GSIPK", "GSISK", shards=shards)],
        keys={Knows: Keys(indexes={"Into": ("{target}#{shard}", "{source}")})},
        escape=True,
    )
    store, clock = SQLiteStore(":memory:"), Clock()
    writer, reader, idle = (on_clock(Graph(store, [Person, Skill, Knows], layout), clock) for _ in range(3))
    writer.put_many([*people(100), Skill(id="py"), *(Knows(source=each.id, target="py") for each in people(100))])
    assert len(list(reader.into("py", Knows))) == 100
    page = reader.into("py", Knows).page(30)
    writer.raise_shards("Into", 9)
    clock.pass_grace()
    assert len(list(writer.into("py", Knows))) == 100
    writer.put_many(Knows(source=each.id, target="py", level=1) for each in people(100))
    assert len(shards_used(writer)) == 9
    for graph in (reader, idle):
        assert [each.source for each in graph.into("py", Knows)] == [each.id for each in people(100)]
        assert graph.into("py", Knows).count() == 100
    found = [each.source for each in page]
    while page.next is not None:
        page = reader.into("py", Knows).page(30, page.next)
        found += [each.source for each in page]
    assert found == [each.id for each in people(100)]
    assert writer.delete(Skill, "py")
    assert list(writer.scan(Knows)) == []


# --- tables that hold no record ----------------------------------------------------------------


class Account(Node):
    id: int
    name: str = ""


def test_a_table_whose_keys_are_numbers_has_the_declared_number_and_no_requests_for_another() -> None:
    layout = AdjacencyList(
        table="Accounts",
        partition_key="id",
        sort_key=None,
        types={"id": "N"},
        reverse=None,
        indexes=[Index("ByName", "GSIPK", "name", shards=4)],
        keys={Account: Keys(partition="{id}", indexes={"ByName": "{shard}"})},
    )
    store = Watched(SQLiteStore(":memory:"))
    graph = Graph(store, [Account], layout)
    graph.put_many(Account(id=each, name=f"n{each}") for each in range(50))
    assert graph.find(Account, order="name").count() == 50
    assert not any(isinstance(each, Get) for each in store.requests)
    assert [type(each).__name__ for each in store.requests[:2]] == ["DescribeTable", "CreateTable"]
    with pytest.raises(InvalidKey, match="the table cannot hold a number of shards: "):
        graph.raise_shards("ByName", 8)
