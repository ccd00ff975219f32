"""Ids at the ends of edges that no node can have, because the keys of nodes refuse what the keys of edges take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Count, Edge, Graph, Index, InvalidKey, Keys, MaterializedGraph, Node
from adjoin.requests import Put
from adjoin.schema import Schema
from adjoin.stores.sqlite import SQLiteStore


class Person(Node):
    id: str


class Town(Node):
    id: str


class Floor(Node):
    id: int


class LivesIn(Edge[Person, Town]):
    since: int = 0


class WorksOn(Edge[Person, Floor]):
    since: int = 0


class Visit(Edge[Person, Town | Floor], key=("number",)):
    number: int = 0
    since: int = 0


MODELS = [Person, Town, Floor, LivesIn, WorksOn, Visit]
LAYOUT = AdjacencyList(
    reverse=None,
    indexes=[Index("GSI1", "GSI1PK", "GSI1SK"), Index("ByTarget", "at")],
    keys={
        Person: Keys(partition="p_{id}", sort="p"),
        Town: Keys(partition="t_{id}_x", sort="t"),
        Floor: Keys(partition="f_{id:02}", sort="f"),
        LivesIn: Keys(sort="l#{target.id}", indexes={"GSI1": ("t#{target.id}", "{source.id}")}),
        WorksOn: Keys(sort="w#{target.id}", indexes={"GSI1": ("w#{target.id}", "{source.id}")}),
        Visit: Keys(sort="v#{number}", attributes={"at": "{target}"}),
    },
)
WRITES: list[tuple[type[Any], Any]] = [
    (LivesIn, "a_b"),
    (WorksOn, 123),
    (Visit, Floor.ref(123)),
    (Visit, Town.ref("_")),
]


@pytest.mark.parametrize(("model", "id"), WRITES)
def test_they_are_refused_before_anything_is_written(model: type[Any], id: Any) -> None:
    key: dict[str, Any] = {"number": 0} if model is Visit else {}
    calls: list[Callable[[Graph, Any], Any]] = [
        lambda g, edge: g.put(edge),
        lambda g, edge: g.add(edge),
        lambda g, edge: g.put_many([edge]),
        lambda g, edge: g.connect(model, "p", edge.target, **key),
        lambda g, edge: g.upsert(model, "p", edge.target, since=1, **key),
    ]
    there = {LivesIn: "a", WorksOn: 1, Visit: Floor.ref(1)}[model]
    for call in calls:
        g = Graph(":memory:", MODELS, LAYOUT)
        g.put_many([Person(id="p"), Town(id="a"), Floor(id=1)])
        before = len(list(g.changes()))
        with pytest.raises(InvalidKey) as refused:
            call(g, model(source="p", target=id))
        assert ("digits" if "123" in repr(id) else "separates the parts") in str(refused.value)
        assert len(list(g.changes())) == before
        call(g, model(source="p", target=there))
        assert len(list(g.changes())) == before + 1


def test_what_others_wrote_so_can_be_read() -> None:
    store = SQLiteStore(":memory:")
    g = Graph(store, MODELS, LAYOUT)
    g.put_many([Person(id="p"), Town(id="a"), LivesIn(source="p", target="a")])
    item = {
        "PK": {"S": "p_p"},
        "SK": {"S": "l#a_b"},
        "GSI1PK": {"S": "t#a_b"},
        "GSI1SK": {"S": "p"},
        "since": {"N": "7"},
    }
    store.execute([Put(LAYOUT.table, item)])
    assert [edge.target for edge in g.out("p", LivesIn)] == ["a", "a_b"]
    assert [(edge.target, node.id) for edge, node in g.out("p", LivesIn).nodes()] == [("a", "a")]
    assert [edge.target for edge, _ in g.collection(Person.ref("p")).nodes().pairs] == ["a"]
    assert [town.id for town in g.walk(Person.ref("p")).out(LivesIn).nodes()] == ["a"]
    assert g.walk(Person.ref("p")).out(LivesIn).count() == 2
    assert g.edge(LivesIn, "p", "a_b") == LivesIn(source="p", target="a_b", since=7)
    assert [edge.source for edge in g.into("a_b", LivesIn)] == ["p"]
    assert g.count(LivesIn) == 2
    with pytest.raises(InvalidKey):
        g.get_many(Town, ["a_b"])
    g.disconnect(LivesIn, "p", "a_b")
    assert g.count(LivesIn) == 1


def test_layouts_whose_edges_take_no_more_than_nodes_look_at_nothing() -> None:
    for layout in (AdjacencyList(), MaterializedGraph(), AdjacencyList(edge="{target}"), AdjacencyList(node="META")):
        bound = layout.bind(Schema([Person, Town, LivesIn]))
        assert bound._keys.edges[LivesIn].stricter == ()
    assert LAYOUT.bind(Schema(MODELS))._keys.edges[LivesIn].stricter == ("target",)


class Counting(Node):
    id: str
    homes: Annotated[int, Count("Settled")] = 0


class Settled(Edge[Counting, Town]):
    pass


def test_calls_that_read_everything_take_them() -> None:
    keys: dict[type[Any], Keys] = {
        Counting: Keys(partition="p_{id}", sort="p"),
        Town: LAYOUT.keys[Town],
        Settled: Keys(sort="l#{target.id}"),
    }
    layout = AdjacencyList(reverse=None, indexes=[Index("Inverted", "SK", "PK")], keys=keys)
    with Graph(":memory:", [Counting, Town, Settled], layout) as g:
        g.put_many([Counting(id="1"), Town(id="a"), Settled(source="1", target="a")])
        g._store.execute([Put("adjoin", {"PK": {"S": "p_1"}, "SK": {"S": "l#a_b"}})])
        g.maintain(once=True)
        found = g.verify().findings
        assert [each.examples for each in found if each.kind == "dangling"] == [
            [{"source": "1", "target": "a_b", "missing": "target"}]
        ]
        assert "1 Settled" in repr(g.snapshot(edges=[Settled]))
