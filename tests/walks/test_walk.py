"""Walks on random graphs give what a plain loop over all edges gives, on both layouts, both stores, sync and async."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import field
from tests.shares import examples
from tests.walks.graphs import (
    PEOPLE,
    PLACES,
    Bought,
    Drawn,
    Friend,
    Knows,
    Met,
    Path_,
    Person,
    Place,
    counted,
    followed,
    graphs,
    named,
    place,
)


@pytest.fixture(scope="module", params=PLACES, ids="-".join)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    store, layout = request.param
    with place(store, layout, tmp_path_factory.mktemp("walks")) as found:
        yield found


_between_people = st.lists(st.sampled_from([Knows, Met, Friend]), min_size=1, max_size=2, unique=True)
_directions = st.sampled_from(["out", "into", "both"])
_steps = st.lists(st.tuples(_directions, _between_people), min_size=1, max_size=3)


def start(id: str) -> list[Path_]:
    return [((Person.ref(id),), ())]


@given(graph=graphs(), id=st.sampled_from(PEOPLE), steps=_steps)
@settings(max_examples=examples(8))
def test_all_results(opened: Place, graph: Drawn, id: str, steps: list[tuple[str, list[Any]]]) -> None:
    paths = start(id)
    for direction, models in steps:
        paths = followed(graph, paths, models, direction)
    ends = Counter(nodes[-1] for nodes, _ in paths)
    weights = [edges[-1].weight for _, edges in paths]
    for g in opened.opened(graph.entities):
        walk = g.walk(Person.ref(id))
        for direction, models in steps:
            walk = getattr(walk, direction)(*models)
        assert counted([(path.refs, path.edges) for path in walk.paths()]) == counted(paths)
        assert Counter(walk.refs()) == ends
        assert Counter(Person.ref(node.id) for node in walk.nodes()) == ends
        assert Counter(map(named, walk.edges())) == Counter(named(edges[-1]) for _, edges in paths)
        assert walk.count() == len(paths)
        assert walk.group_count() == ends
        assert walk.distinct().count() == len(ends)
        assert Counter(walk.distinct().refs()) == Counter([*ends])
        assert len([*walk.distinct().paths()]) == len(ends)
        assert walk.sum("weight") == sum(weights)
        assert (walk.min("weight"), walk.max("weight")) == (min(weights, default=None), max(weights, default=None))
        average = walk.avg("weight")
        assert average is None if not weights else abs(average * len(weights) - sum(weights)) < Decimal("1e-30")
        assert walk.sum("age") == sum(PEOPLE.index(ref.id) * number for ref, number in ends.items())
        assert [node.age for node in walk.top("age", 2)] == sorted(PEOPLE.index(ref.id) for ref in ends)[::-1][:2]


@given(graph=graphs(), id=st.sampled_from(PEOPLE), least=st.integers(0, 2), more=st.integers(0, 2), far=_directions)
@settings(max_examples=10)
def test_repeat(opened: Place, graph: Drawn, id: str, least: int, more: int, far: str) -> None:
    levels = [start(id)]
    for _ in range(least + more):
        levels.append(followed(graph, levels[-1], [Knows, Friend], far))
    paths = [path for level in levels[least:] for path in level]
    old: list[Path_] = []
    going = start(id)
    for depth in range(least + more + 1):
        if depth:
            going = followed(graph, going, [Knows, Friend], far)
        if depth >= least:
            old += [path for path in going if PEOPLE.index(path[0][-1].id) >= 4]
            going = [path for path in going if PEOPLE.index(path[0][-1].id) < 4]
    if not least + more:
        return
    for g in opened.opened(graph.entities):
        walk = g.walk(Person.ref(id)).repeat(Knows, Friend, min=least, max=least + more, direction=far)
        assert counted([(path.refs, path.edges) for path in walk.paths()]) == counted(paths)
        assert walk.count() == len(paths)
        assert walk.group_count() == Counter(nodes[-1] for nodes, _ in paths)
        again = g.walk(id).repeat(Knows, Friend, min=least, max=least + more, direction=far, until=field("age") >= 4)
        assert counted([(path.refs, path.edges) for path in again.paths()]) == counted(old)
        ended = g.walk(id).repeat(Knows, Friend, min=1, max=3, direction=far, until=Person.ref("p5"))
        assert set(ended.refs()) <= {Person.ref("p5")}


@given(graph=graphs(), id=st.sampled_from(PEOPLE), weight=st.integers(1, 4), age=st.integers(0, 5))
@settings(max_examples=10)
def test_where(opened: Place, graph: Drawn, id: str, weight: int, age: int) -> None:
    first = [path for path in followed(graph, start(id), [Knows, Friend], "both") if path[1][-1].weight >= weight]
    paths = [path for path in followed(graph, first, [Knows], "out") if PEOPLE.index(path[0][-1].id) < age]
    once: dict[Any, Path_] = {}
    for path in followed(graph, first, [Knows], "out"):
        once.setdefault(path[0][-1], path)
    for g in opened.opened(graph.entities):
        walk = g.walk(Person.ref(id)).both(Knows, Friend).where(field("weight") >= weight).out(Knows)
        kept = walk.where(field("age") < age)
        assert counted([(path.refs, path.edges) for path in kept.paths()]) == counted(paths)
        assert kept.count() == len(paths)
        # After a limit or distinct, the filter works on what is left.
        later = walk.distinct().where(field("age") < age)
        assert set(later.refs()) == {ref for ref in once if PEOPLE.index(ref.id) < age}
        assert walk.limit_per_node(9).where(field("weight") >= 2).count() == sum(
            path[1][-1].weight >= 2 for path in followed(graph, first, [Knows], "out")
        )


@given(graph=graphs(), id=st.sampled_from(PEOPLE), number=st.integers(1, 3), is_reversed=st.booleans())
@settings(max_examples=10)
def test_limit_per_node(opened: Place, graph: Drawn, id: str, number: int, is_reversed: bool) -> None:
    expected: list[int] = []
    for near in {edge.target for edge in graph.edges if type(edge) is Knows and edge.source == id}:
        own = [edge for _, edge, _ in graph.arcs(Friend, "out") if edge.source == near]
        expected += sorted((edge.weight for edge in own), reverse=is_reversed)[:number]
    for g in opened.opened(graph.entities):
        walk = g.walk(Person.ref(id)).out(Knows).out(Friend).order_by("weight", reverse=is_reversed)
        found = [edge.weight for edge in walk.limit_per_node(number).edges()]
        assert found == sorted(expected, reverse=is_reversed)
        plain = g.walk(id).out(Knows).out(Friend).limit_per_node(number).group_count()
        assert sum(plain.values()) == len(expected)


@given(graph=graphs(), id=st.sampled_from(PEOPLE), size=st.integers(1, 5), steps=_steps)
@settings(max_examples=10)
def test_pages(opened: Place, graph: Drawn, id: str, size: int, steps: list[tuple[str, list[Any]]]) -> None:
    for g in opened.opened(graph.entities):
        walk = g.walk(Person.ref(id))
        for direction, models in steps:
            walk = getattr(walk, direction)(*models)
        for results in (walk.refs(), walk.distinct().nodes(), walk.edges(), walk.paths()):
            whole = [*results]
            found: list[Any] = []
            token = None
            while True:
                page = results.page(limit=size, after=token)
                assert len(page) <= size
                found += page.items
                token = page.next
                if token is None:
                    break
                assert len(page) == size
            assert found == whole
        assert [*walk.limit(size).refs()] == [*walk.refs()][:size]
        assert walk.limit(size).count() == min(size, walk.count())
        assert walk.first() == next(iter(walk.nodes()), None)


@given(graph=graphs(), id=st.sampled_from(PEOPLE))
@settings(max_examples=10)
def test_across_classes(opened: Place, graph: Drawn, id: str) -> None:
    products = followed(graph, start(id), [Bought], "out")
    others = followed(graph, followed(graph, products, [Bought], "into"), [Bought], "out")
    for g in opened.opened(graph.entities):
        walk = g.walk(Person.ref(id)).out(Bought).into(Bought).out(Bought)
        assert walk.group_count() == Counter(nodes[-1] for nodes, _ in others)
        assert Counter(node.price for node in walk.nodes()) == Counter(
            10 * int(nodes[-1].id[1:]) for nodes, _ in others
        )
        mixed = g.walk(Person.ref(id)).out(Bought, Knows)
        assert mixed.count() == len(products) + len(followed(graph, start(id), [Knows], "out"))
