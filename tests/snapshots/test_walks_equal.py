"""Walks, paths and recommendations of a snapshot are those of the live graph, in the same order.

Random graphs on both layouts: with ids that need escapes, edges with keys of their own, in an order, without a
direction, to ends of several classes, to nodes that do not exist, and children. Also after random changes that were
followed, and after the snapshot was saved and opened.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import Edge, Graph
from tests.shares import examples
from tests.snapshots.graphs import (
    EDGES,
    FIELDS,
    IDS,
    WALKS,
    Bought,
    Change,
    Friend,
    Knows,
    Met,
    Person,
    Thing,
    answers,
    applied,
    changes,
    contents,
    layouts,
    numbers,
    opened,
    people,
    told,
)
from tests.walks.graphs import LAYOUTS


def assert_same(graph: Graph, snapshot: Any, ids: list[str], names: list[str]) -> None:
    for id in ids:
        for name in names:
            live, held = (WALKS[name](each.walk(Person.ref(id))) for each in (graph, snapshot))
            assert answers(held) == answers(live), (name, id)
            if live._most is None:
                assert numbers(held) == numbers(live), (name, id)


_some_ids = st.lists(people, min_size=1, max_size=2, unique=True)
_some_walks = st.lists(st.sampled_from(sorted(WALKS)), min_size=1, max_size=6, unique=True)


@pytest.mark.simulation
@pytest.mark.parametrize("name", sorted(WALKS))
@settings(max_examples=examples(8))
@given(layout=layouts, items=contents)
def test_each_walk_is_the_same(name: str, layout: str, items: list[Any]) -> None:
    with opened(layout, items) as graph:
        assert_same(graph, graph.snapshot(EDGES, FIELDS), IDS, [name])


@settings(max_examples=examples(20))
@given(layout=layouts, items=contents, history=changes, more=changes, ids=_some_ids, names=_some_walks)
def test_walks_are_the_same_after_changes(
    layout: str, items: list[Any], history: list[Change], more: list[Change], ids: list[str], names: list[str]
) -> None:
    with opened(layout, items) as graph:
        snapshot = graph.snapshot(EDGES, FIELDS)
        for each in (history, more):
            applied(graph, each)
            snapshot.follow(once=True)
            assert_same(graph, snapshot, ids, names)


@settings(max_examples=examples(14))
@given(layout=layouts, items=contents, history=changes, more=changes, ids=_some_ids, names=_some_walks)
def test_walks_are_the_same_after_saving(
    tmp_path_factory: pytest.TempPathFactory,
    layout: str,
    items: list[Any],
    history: list[Change],
    more: list[Change],
    ids: list[str],
    names: list[str],
) -> None:
    folder = tmp_path_factory.mktemp("saved") / "snapshot"
    with opened(layout, items) as graph:
        first = graph.snapshot(EDGES, FIELDS)
        applied(graph, history)
        first.follow(once=True)
        first.save(folder)
        files = {path: path.read_bytes() for path in Path(folder).iterdir()}
        snapshot = graph.open_snapshot(folder)
        assert_same(graph, snapshot, ids, names)
        applied(graph, more)
        snapshot.follow(once=True)
        assert_same(graph, snapshot, ids, names)
        assert {path: path.read_bytes() for path in Path(folder).iterdir()} == files


@settings(max_examples=examples(14))
@given(layout=layouts, items=contents, history=changes)
def test_changes_may_be_applied_again(layout: str, items: list[Any], history: list[Change]) -> None:
    """A snapshot that was built after changes ends the same if it follows them from before."""
    with opened(layout, items) as graph:
        before = graph.snapshot(EDGES, FIELDS).position
        applied(graph, history)
        snapshot = graph.snapshot(EDGES, FIELDS)
        snapshot._following.position = before
        snapshot.follow(once=True)
        assert_same(graph, snapshot, IDS[:3], ["two steps", "to things and back", "both ways"])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pages_need_no_field_that_is_not_held(layout: str, tmp_path: Path) -> None:
    class Role(Edge[Person, Thing], key=("name", "year")):
        name: str
        year: int

    roles = [
        Role(source="a", target=target, name=name, year=year)
        for target in (8, 9)
        for name in ("author", "b#", "ä")
        for year in (1, 2)
    ]
    with Graph(":memory:", [Person, Thing, Role], LAYOUTS[layout]) as graph:
        graph.put_many([Person(id="a"), Thing(id=8), Thing(id=9), *roles])
        graph.snapshot([Role]).save(tmp_path / "roles")
        snapshot = graph.open_snapshot(tmp_path / "roles")
        walk = snapshot.walk(Person.ref("a")).out(Role)
        for what in ("refs", "edges", "paths"):
            page = getattr(walk, what)().page(limit=5)
            rest = getattr(walk, what)().page(after=page.next)
            assert [*page, *rest] == [*getattr(walk, what)()]
            assert (len(page), len(rest)) == (5, 7)
        page = walk.refs().page(limit=5)
        # The page ends with the fifth edge, which has others between the same nodes before and behind it.
        graph.delete(roles[0])
        snapshot.follow(once=True)
        assert [*page, *walk.refs().page(after=page.next)] == [*map(Thing.ref, [8] * 6 + [9] * 6)]


def test_the_edges_of_a_top_are_different() -> None:
    edges = [Knows(source="a", target="b", weight=5), Knows(source="b", target="a", weight=4)]
    friends = [Friend(source="a", target="b", weight=7), Friend(source="b", target="B", weight=6)]
    with opened("adjacency list", [Person(id=id) for id in "abB"] + edges + friends) as graph:
        for each in (graph, graph.snapshot(EDGES, FIELDS)):
            again = each.walk(Person.ref("a")).repeat(Knows, max=4)
            assert [edge.weight for edge in again.top("weight", 3)] == [5, 4]
            from_both_ends = each.walk(Person.ref("a")).both(Knows, Friend).both(Knows, Friend)
            assert [edge.weight for edge in from_both_ends.top("weight", 9)] == [7, 6, 5, 4]


VIA: list[Any] = [Knows, Met, Friend]
_direction = st.sampled_from(["out", "into", "both"])


@settings(max_examples=examples(14))
@given(layout=layouts, items=contents, a=people, b=people, direction=_direction, most=st.sampled_from([2, 6, None]))
def test_paths_are_the_same(layout: str, items: list[Any], a: str, b: str, direction: str, most: int | None) -> None:
    with opened(layout, [Person(id=id) for id in IDS[:5]] + items) as graph:
        snapshot = graph.snapshot(EDGES, FIELDS)
        live: Any
        held: Any
        for via, weight in ((VIA, None), ([Knows, Met], "weight")):
            asked: dict[str, Any] = {"via": via, "direction": direction, "max_depth": most, "weight": weight}
            live, held = (each.shortest_path(a, b, **asked) for each in (graph, snapshot))
            assert told(live) == told(held)
            live, held = (each.shortest_paths(a, b, **asked) for each in (graph, snapshot))
            assert [told(path) for path in live] == [told(path) for path in held]
        live, held = (each.reachable(a, via=VIA, direction=direction, max_depth=most) for each in (graph, snapshot))
        assert [told(node) for node in live] == [told(node) for node in held]
        for one, other in zip(live, held, strict=True):
            assert told(live.path(one)) == told(held.path(other))
            assert live.depth(one) == held.depth(other)
        live, held = (each.can_reach(a, b, via=VIA, direction=direction) for each in (graph, snapshot))
        assert told(live) == told(held)


@settings(max_examples=examples(10))
@given(layout=layouts, items=contents, a=people, b=people, score=st.sampled_from(["common", "jaccard", "adamic_adar"]))
def test_recommendations_are_the_same(layout: str, items: list[Any], a: str, b: str, score: str) -> None:
    with opened(layout, [Person(id=id) for id in IDS[:6]] + items) as graph:
        snapshot = graph.snapshot(EDGES, FIELDS)
        for model in (Friend, Knows, Bought):
            live, held = (each.recommend(Person.ref(a), model, score=score) for each in (graph, snapshot))
            assert [(told(each.node), each.score, [*map(told, each.through)]) for each in live] == [
                (told(each.node), each.score, [*map(told, each.through)]) for each in held
            ]
            shared = [each.common(Person.ref(a), Person.ref(b), model) for each in (graph, snapshot)]
            assert [told(node) for node in shared[0]] == [told(node) for node in shared[1]]
