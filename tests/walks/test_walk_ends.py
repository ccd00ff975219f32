"""Walks that ask for nodes only: edges are not made, and what is read of their keys is what edges say."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import pytest
from pydantic import field_validator, model_validator

import adjoin
from adjoin import AdjacencyList, Edge, Graph, Index, MaterializedGraph, Node, field
from adjoin.layouts.interface import Layout
from adjoin.plans.read import Question
from adjoin.stores.dynamodb.store import PackedItems
from tests.conftest import Open

LAYOUTS: dict[str, Layout] = {"adjacency list": AdjacencyList(), "materialized graph": MaterializedGraph()}
LOADED: Counter[str] = Counter()


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> Layout:
    LOADED.clear()
    return LAYOUTS[request.param]


class Person(Node):
    id: str
    age: int = 0


class Knows(Edge[Person, Person]):
    weight: int = 0

    def after_load(self) -> None:
        LOADED["Knows"] += 1


class Place(Node):
    id: int


class Visited(Edge[Person, Place]):
    def after_load(self) -> None:
        LOADED["Visited"] += 1


class Road(Edge[Place, Place]):
    def after_load(self) -> None:
        LOADED["Road"] += 1


IDS = ["a", "b|c", "d#e", "100%", "é x", "\x00", "007", "KNOWS|PERSON|a", "~", "\U0001f600"]
NUMBERS = [0, 1, -1, 7, 2**70, -(10**30)]


def test_walks_to_nodes_make_no_edges(open_graph: Open, layout: Layout) -> None:
    g = open_graph([Person, Knows, Place, Visited, Road], layout=layout)
    g.put_many([Person(id="a"), Person(id="b", age=3), Person(id="c", age=4)])
    g.put_many([Knows(source="a", target="b", weight=1), Knows(source="b", target="c", weight=2)])
    g.put_many([Visited(source="b", target=1), Road(source=1, target=-1)])
    two = g.walk(Person.ref("a")).out(Knows).out(Knows)
    assert [*two.refs()] == [Person.ref("c")]
    assert [node.id for node in two.nodes()] == ["c"]
    assert (two.count(), two.distinct().count(), two.sum("age"), two.max("age")) == (1, 1, 4, 4)
    assert two.group_count() == {Person.ref("c"): 1}
    assert [*two.where(field("weight") > 1).refs()] == [Person.ref("c")]
    assert [*g.walk(Person.ref("c")).into(Knows).both(Knows).distinct().refs()] == [Person.ref("c"), Person.ref("a")]
    assert [*g.walk(Person.ref("b")).out(Visited).out(Road).refs()] == [Place.ref(-1)]
    assert [*g.walk(Place.ref(-1)).into(Road).into(Visited).refs()] == [Person.ref("b")]
    assert not LOADED
    # What is asked of edges is read.
    assert [edge.weight for edge in two.edges()] == [2]
    assert two.sum("weight") == 2
    assert [*two.order_by("weight").refs()] == [Person.ref("c")]
    assert [*two.distinct().where(field("weight") > 1).refs()] == [Person.ref("c")]
    assert LOADED["Knows"] == 2 * 4


def test_recommendations_make_edges_only_for_weights() -> None:
    LOADED.clear()
    with Graph(":memory:", [Person, Knows]) as g:
        g.put_many(Person(id=id) for id in "abcd")
        g.put_many(Knows(source=one, target=other, weight=3) for one, other in ("ab", "bc", "cb", "ac", "dc"))
        for score in ("common", "jaccard", "adamic_adar"):
            assert [each.node.id for each in g.recommend("a", Knows, direction="both", score=score)] == ["d"]
        assert [node.id for node in g.common("a", "d", Knows)] == ["c"]
        assert not LOADED
        assert [each.score for each in g.recommend("a", Knows, direction="both", weight="weight")] == [9]
        assert LOADED["Knows"] > 0


def test_a_walk_to_refs_makes_few_calls_for_each_edge() -> None:
    with Graph(":memory:", [Person, Knows]) as g:
        g.put_many(Knows(source="a", target=f"b{one}") for one in range(20))
        g.put_many(Knows(source=f"b{one}", target=f"c{other}") for one in range(20) for other in range(50))
        walk = g.walk(Person.ref("a")).out(Knows).out(Knows).refs()
        assert len(walk.page().items) == 1000
        calls: Counter[str] = Counter()
        sys.setprofile(lambda _, event, __: calls.update([event]))
        try:
            list(walk)
        finally:
            sys.setprofile(None)
    assert calls["call"] < 8 * 1000


def test_keys_say_what_edges_say(open_graph: Open, layout: Layout) -> None:
    g = open_graph([Person, Knows, Place, Visited, Road], layout=layout)
    edges: list[Any] = [Knows(source=one, target=other) for one in IDS for other in IDS[::2]]
    edges += [Visited(source=one, target=number) for one in IDS for number in NUMBERS]
    edges += [Road(source=one, target=other) for one in NUMBERS for other in NUMBERS[::2]]
    g.put_many(edges)
    for start in map(Person.ref, IDS):
        for walk in (g.walk(start).out(Knows), g.walk(start).out(Visited)):
            assert [ref.id for ref in walk.refs()] == [edge.target for edge in walk.edges()] != []
        walk = g.walk(start).into(Knows)
        assert [ref.id for ref in walk.refs()] == [edge.source for edge in walk.edges()]
    for place in map(Place.ref, NUMBERS):
        walks: list[Any] = [g.walk(place).into(Visited), g.walk(place).into(Road)]
        for walk in walks:
            assert [ref.id for ref in walk.refs()] == [edge.source for edge in walk.edges()]
        assert len([*walks[0].refs()]) == len(IDS)


def test_pages_that_are_read_together_are_parsed_when_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    with (
        adjoin.serve() as server,
        Graph(f"dynamodb://pages?endpoint={server.endpoint}&region=us-east-1", [Person, Knows]) as g,
    ):
        g.create_table()
        g.put_many(Knows(source=one, target=other) for one in IDS[:5] for other in IDS[:3])
        layout, kind = g._layout, g._layout.schema.edges[Knows]
        queries = [Question(layout.out(kind, one)).request(layout.table, None, None) for one in IDS[:5]]
        together: list[Any] = [*g._store.execute(queries)]
        apart: list[Any] = [page for query in queries for page in g._store.execute([query])]
    assert {type(page.items) for page in apart} == {list}
    for page, other in zip(together, apart, strict=True):
        items, others = page.items, other.items
        assert isinstance(items, PackedItems)
        assert list(items) == list(items) == items == others
        assert (len(items), items[0], items[1:], repr(items)) == (len(others), others[0], others[1:], repr(others))
        assert items != others[1:]
        # What is changed in an item does not change what others get.
        items[0].clear()
        assert page == other


class Member(Node):
    id: str


class Follows(Edge[Member, Member]):
    @field_validator("target")
    @classmethod
    def small(cls, target: Any) -> Any:
        return target.lower() if isinstance(target, str) else target


class Likes(Edge[Member, Member]):
    @model_validator(mode="after")
    def small(self) -> Likes:
        object.__setattr__(self, "target", self.target.lower())
        return self


@pytest.mark.parametrize("model", [Follows, Likes])
def test_ends_that_a_validator_changes_are_read_with_it(model: Any, layout: Layout) -> None:
    class Plain(Edge[Member, Member], label=model.__declaration__.label or model.__name__.upper()):
        pass

    with Graph(":memory:", [Member, Plain], layout=layout) as g:
        g.put_many([Plain(source="a", target="b"), Plain(source="a", target="C")])
        with Graph(g._store, [Member, model], layout=layout) as other:
            walk = other.walk("a").out(model)
            assert [ref.id for ref in walk.refs()] == [edge.target for edge in walk.edges()]
            assert "C" not in [ref.id for ref in walk.refs()]


def test_what_only_looks_like_an_edge_is_none() -> None:
    layout = AdjacencyList(
        table="Pairs", node="{node}", edge="{target}", reverse=Index("Inverted", "SK", "PK"), type_attribute=None
    )
    with Graph(":memory:", [Person, Knows], layout=layout) as g:
        g.put_many([Person(id="a"), Person(id="b"), Knows(source="a", target="b"), Knows(source="b", target="a")])
        for start in "ab":
            for walk in (g.walk(start).out(Knows), g.walk(start).into(Knows)):
                assert len(walk.refs()) == len(walk.edges()) == walk.count() == 1
