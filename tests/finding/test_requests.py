"""What finding costs, and what it costs to be found: requests, rounds and units."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    Edge,
    Graph,
    Index,
    Indexed,
    Keys,
    MaterializedGraph,
    Node,
    Projection,
    Unique,
    field,
)
from adjoin.layouts.interface import Layout
from adjoin.units import KB
from adjoin.values import item_size
from tests.conftest import Open
from tests.growing import Clock, announce, on_clock, scanned


class One(Node):
    id: str
    name: Annotated[str, Indexed()] = "n"
    note: str = ""


class Two(Node):
    id: str
    name: Annotated[str, Indexed()] = "n"
    age: Annotated[int | None, Indexed()] = None


class Owner(Node):
    id: str
    email: Annotated[str | None, Unique()] = None


class Both(Node):
    id: str
    name: Annotated[str, Indexed()] = "n"
    age: Annotated[int, Indexed()] = 0
    email: Annotated[str, Unique()] = ""


class Plain(Edge[One, Two]):
    how: Annotated[str, Indexed()] = ""


class Tied(Edge[One, One], symmetric=True):
    how: Annotated[str, Indexed()] = ""
    why: Annotated[str | None, Indexed()] = None


MODELS: list[Any] = [One, Two, Owner, Both, Plain, Tied]
LAYOUTS: list[Layout] = [AdjacencyList(), MaterializedGraph()]

# What is written, the requests that it takes, and the write units: of the table (double in a transaction) and
# of each index entry.
WRITES: list[tuple[str, Any, int, int]] = [
    ("put", One(id="a"), 1, 1 + 1),
    ("add", One(id="a"), 1, 1 + 1),
    ("put", One(id="a", note="x" * 1500), 1, 2 + 2),
    ("put", Plain(source="a", target="b"), 1, 1 + 2),
    ("put", Two(id="a", age=1), 1, 2 * 2 + 2),
    ("put", Two(id="a"), 1, 2 * 2 + 1),
    ("add", Two(id="a", age=1), 1, 2 * 2 + 2),
    ("add", Owner(id="a", email="x"), 1, 2 * 2),
    ("put", Owner(id="a", email="x"), 2, 2 * 2),
    ("put", Owner(id="a"), 2, 2),
    ("put", Both(id="a", email="x"), 2, 2 * 3 + 2),
    ("put", Tied(source="a", target="b"), 1, 2 * 3 + 1),
    ("put", Tied(source="a", target="b", why="w"), 1, 2 * 3 + 2),
]


@pytest.mark.parametrize(("verb", "entity", "requests", "units"), WRITES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_a_write_takes(layout: Layout, verb: str, entity: Any, requests: int, units: int) -> None:
    with Graph(":memory:", MODELS, layout) as graph:
        explained = graph.explain(getattr(graph, verb), entity)
        with graph.meter() as meter:
            getattr(graph, verb)(entity)
        assert (meter.requests, meter.wcu) == (requests, units)
        assert (len(explained.requests), explained.wcu) == (requests, units)
        assert meter.rcu == explained.rcu


CHANGES: list[tuple[Any, Any, int]] = [
    (One(id="a"), lambda g: g.update(One, "a", name="m"), 1),
    (One(id="a"), lambda g: g.update(One, "a", note="m"), 1),
    (Two(id="a"), lambda g: g.update(Two, "a", name="m"), 2),
    (Owner(id="a", email="x"), lambda g: g.update(Owner, "a", email="y"), 2),
    (Owner(id="a", email="x"), lambda g: g.get(Owner, email="x"), 2),
    (Owner(id="a", email="x"), lambda g: g.get(Owner, email="y"), 1),
    (Owner(id="a", email="x"), lambda g: g.delete(Owner, "a"), 3),
    (Plain(source="a", target="b"), lambda g: g.disconnect(Plain, "a", "b"), 1),
    (Tied(source="a", target="b"), lambda g: g.disconnect(Tied, "a", "b"), 1),
    (Tied(source="a", target="b"), lambda g: g.update(Tied, "a", "b", how="x"), 3),
]


@pytest.mark.parametrize(("entity", "call", "requests"), CHANGES)
def test_what_else_takes(open_graph: Open, entity: Any, call: Any, requests: int) -> None:
    graph = open_graph(MODELS)
    graph.put(entity)
    with graph.meter() as meter:
        call(graph)
    assert meter.requests == requests


def test_many_are_written_in_batches(open_graph: Open) -> None:
    graph = open_graph(MODELS)
    with graph.meter() as meter:
        graph.put_many([One(id=str(number)) for number in range(50)])
    assert meter.requests == 2
    with graph.meter() as meter:
        graph.put_many([Two(id=str(number), age=number) for number in range(50)])
    assert meter.requests == 4, "each is two items"
    with graph.meter() as meter:
        graph.put_many([Owner(id=str(number), email=str(number)) for number in range(10)])
    assert meter.requests == 20, "each looks what it had before, and is a transaction"


def rounded(size: int) -> float:
    """Units of an eventually consistent read."""
    return max(1, -(-size // (4 * KB))) / 2


@pytest.mark.parametrize("shards", [1, 4, 9])
def test_a_find_asks_each_shard_once_and_pays_for_what_it_reads(open_graph: Open, shards: int) -> None:
    graph = open_graph(MODELS, layout=MaterializedGraph(shards=shards))
    graph.put_many([One(id=str(number), name=f"{number % 7}", note="x" * 700) for number in range(60)])
    raw = graph if isinstance(graph, Graph) else None
    for predicate in (None, field("name") == "3", field("name").between("2", "4"), field("name").begins_with("5")):
        query = graph.find(One, predicate)
        with graph.meter() as meter:
            found = list(query)
        assert found
        assert (meter.requests, meter.rounds) == (shards, 1)
        if raw is not None:
            sizes = dict.fromkeys([f"ONE#name#{number}" for number in range(shards)], 0)
            ids = {one.id for one in found}
            for item in scanned(raw):
                if item["NodeId"]["S"].removeprefix("ONE#") in ids:
                    sizes[item["GSIPK"]["S"]] += item_size(item)
            assert meter.rcu == sum(map(rounded, sizes.values()))
            assert meter.tables["adjoin"].rcu == 0, "the table itself is not read"
        with graph.meter() as meter:
            assert query.count() == len(found)
        assert (meter.requests, meter.rounds) == (shards, 1)
    with graph.meter() as meter:
        assert graph.find(One).first().name == "0"
    assert (meter.requests, meter.rounds, meter.rcu) == (shards, 1, shards / 2)
    with graph.meter() as meter:
        graph.find(One).page(limit=5)
    assert (meter.requests, meter.rounds) == (shards, 1)
    assert meter.rcu == shards * rounded(5 * 800)


def test_a_value_with_shards_of_its_own() -> None:
    clock = Clock()
    with Graph(":memory:", MODELS) as graph:
        on_clock(graph, clock)
        announce(graph, "ONE#name", None, {"hot": 3})
        clock.pass_grace()
        graph.find(One).count()
        graph.put_many([One(id=str(number), name=name) for number in range(20) for name in ("hot",)])
        graph.put(One(id="x", name="cool"))
        for predicate, requests in (
            (field("name") == "cool", 1),
            (field("name") == "hot", 1 + 3),
            (field("name") > "hot", 1),
            (field("name") >= "hot", 1 + 3),
            (field("name").begins_with("ho"), 1 + 3),
            (field("name").begins_with("c"), 1),
            (field("name").is_in(["cool", "hot"]), 2 + 3),
            (None, 1 + 3),
        ):
            with graph.meter() as meter:
                list(graph.find(One, predicate))
            assert (meter.requests, meter.rounds) == (requests, 1), predicate


def test_explaining_a_find(open_graph: Open) -> None:
    graph = open_graph(MODELS, layout=MaterializedGraph(shards=3))
    graph.put(One(id="a"))
    explained = graph.explain(graph.find(One, field("name") == "n"))
    assert explained.index == "GSI1"
    assert explained.partitions == ("ONE#name#0", "ONE#name#1", "ONE#name#2")
    assert (len(explained.requests), len(explained.rounds), explained.rcu) == (3, 1, 1.5)
    assert "Query on index GSI1, ONE#name#1" in str(explained)
    assert "One by 'name' in the index GSI1" in repr(
        graph.find(One) if isinstance(graph, Graph) else graph.find(One)._inner
    )


def test_an_index_of_keys_only_fetches_the_rest(open_graph: Open) -> None:
    partial = Index("GSI3", "GSI3PK", "GSI3SK", projection=Projection("KEYS_ONLY"))
    graph = open_graph(MODELS, layout=AdjacencyList(indexed=partial))
    graph.put_many([Two(id="a", name="x", age=2), Two(id="b", name="y", age=1)])
    for order, ids in (("name", ["a", "b"]), ("age", ["b", "a"])):
        with graph.meter() as meter:
            assert [two.id for two in graph.find(Two, order=order)] == ids
        assert meter.requests == 2
    assert graph.find(Two, field("age") > 1).count() == 1
    with pytest.raises(Exception, match="project everything"):
        graph.find(Two).where(field("age") == 1)
    with pytest.raises(Exception, match="project everything"):
        graph.find(Two, (field("name") == "x") & (field("age") != 1))


class Parcel(Node):
    id: str
    town: str
    note: str = "x" * 100


@pytest.mark.parametrize("is_declared", [True, False])
def test_what_a_sharded_index_does_not_hold_is_fetched_for_all_shards_together(
    open_graph: Open, *, is_declared: bool
) -> None:
    """As many gets as there are results, in as few batches as possible."""
    if is_declared:
        keys_only = Index("ByTown", "GSI1PK", "town", shards=8, projection=Projection("KEYS_ONLY"))
        layout = AdjacencyList(reverse=None, indexes=[keys_only], keys={Parcel: Keys(indexes={"ByTown": "{shard}"})})
        graph: Any = open_graph([Parcel], layout=layout)
        order = "town"
        graph.put_many(Parcel(id=f"P{at}", town=f"t{at:03}") for at in range(240))
    else:
        partial = Index("GSI3", "GSI3PK", "GSI3SK", projection=Projection("KEYS_ONLY"))
        graph = open_graph([One], layout=AdjacencyList(indexed=partial, shards=8))
        order = "name"
        graph.put_many(One(id=f"P{at}", name=f"t{at:03}") for at in range(240))
    model = Parcel if is_declared else One
    for find, number in (
        (graph.find(model, order=order), 240),
        (graph.find(model, order=order).reverse(), 240),
        (graph.find(model, order=order).limit(7), 7),
        (graph.find(model, order=order).limit(150), 150),
    ):
        with graph.meter() as meter:
            found = [getattr(each, order) for each in find]
        assert found == sorted(f"t{at:03}" for at in range(240))[:number] or found == sorted(found, reverse=True)
        assert len(found) == number
        batches = -(-number // 100)
        assert (meter.requests, meter.rounds) == (8 + batches, 2), number
        # Half a unit for each item, and the reads of keys in the index.
        assert number / 2 < meter.rcu < number / 2 + 40
    page = graph.find(model, order=order).page(limit=20)
    pages = [*page]
    while page.next:
        page = graph.find(model, order=order).page(limit=20, after=page.next)
        pages += page
    assert [getattr(each, order) for each in pages] == sorted(f"t{at:03}" for at in range(240))


def test_a_filter_on_fetched_items_reads_them_a_batch_at_a_time(open_graph: Open) -> None:
    keys_only = Index("ByTown", "GSI1PK", "town", shards=8, projection=Projection("KEYS_ONLY"))
    layout = AdjacencyList(reverse=None, indexes=[keys_only], keys={Parcel: Keys(indexes={"ByTown": "{shard}"})})
    graph = open_graph([Parcel], layout=layout)
    graph.put_many(Parcel(id=f"P{at}", town=f"t{at:03}", note=f"n{at % 10}") for at in range(240))
    with graph.meter() as meter:
        found = [each.id for each in graph.find(Parcel, field("note") == "n3", order="town").limit(5)]
    assert found == ["P3", "P13", "P23", "P33", "P43"]
    assert (meter.requests, meter.rounds) == (9, 2)
    assert [each.id for each in graph.find(Parcel, field("note") == "n3", order="town")] == [
        f"P{at}" for at in range(3, 240, 10)
    ]
