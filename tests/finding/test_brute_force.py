"""`find` against a plain filter and sort over everything, for every type, operator, order and page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import AdjacencyList, Graph, MaterializedGraph, field
from adjoin.layouts.indexed_fields import indexed_text
from adjoin.layouts.interface import Layout
from adjoin.stores.sqlite import SQLiteStore
from tests.finding.kinds import KINDS, Kind, utf8
from tests.growing import Clock, ShortPages, announce, index_of, on_clock
from tests.shares import examples

LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "materialized graph": MaterializedGraph(),
    "4 shards": MaterializedGraph(shards=4),
    "key words": AdjacencyList(node="METADATA", edge="{target}", escape=True),
}

Test = Callable[[Any], bool]


@st.composite
def predicates(draw: st.DrawFn, kind: Kind, near: list[Any]) -> tuple[Any, Test]:
    """A comparison of the field `value`, and what it means."""
    values = st.sampled_from(near) | kind.values if near else kind.values
    one, other, order = draw(values), draw(values), kind.order
    some = draw(st.lists(values, min_size=1, max_size=3))
    low, high = order(one), order(other)
    where = field("value")
    options: list[tuple[Any, Test]] = [
        (where == one, lambda value: order(value) == low),
        (where < one, lambda value: order(value) < low),
        (where <= one, lambda value: order(value) <= low),
        (where > one, lambda value: order(value) > low),
        (where >= one, lambda value: order(value) >= low),
        (where.between(one, other), lambda value: low <= order(value) <= high),
        (where.is_in(some), lambda value: order(value) in [order(each) for each in some]),
        (where.exists(), lambda value: True),
        (None, lambda value: True),
        ((where > one) & (where <= other), lambda value: low < order(value) <= high),
        ((where >= one) & (where == other), lambda value: low <= order(value) and order(value) == high),
        (
            where.is_in(some) & (where >= one),
            lambda value: order(value) >= low and order(value) in [order(each) for each in some],
        ),
    ]
    if isinstance(one, str) and type(one) is str:
        start = one[: draw(st.integers(0, 2))]
        options.append((where.begins_with(start), lambda value: value.startswith(start)))
        options.append(
            (where.begins_with(start) & (where >= other), lambda value: value.startswith(start) and utf8(value) >= high)
        )
    if isinstance(one, tuple | list):
        steps = one[: draw(st.integers(0, 2))]
        options.append((where.begins_with(steps), lambda value: value[: len(steps)] == steps))
        options.append(
            (
                where.begins_with(steps) & (where == other),
                lambda value: value[: len(steps)] == steps and order(value) == high,
            )
        )
        options.append(
            (
                where.begins_with(steps) & (where > other),
                lambda value: value[: len(steps)] == steps and order(value) > high,
            )
        )
    chosen: tuple[Any, Test] = draw(st.sampled_from(options))
    return chosen


def paged(query: Any, limit: int | None) -> list[Any]:
    found: list[Any] = []
    token: str | None = None
    while True:
        page = query.page(limit=limit, after=token)
        assert limit is None or len(page) <= limit
        found += page
        token = page.next
        if token is None:
            return found
        assert limit is None or len(page) == limit


def grow(draw: st.DrawFn | Any, graph: Graph, clock: Clock, values: list[Any]) -> None:
    """Perhaps more shards for the field, for a value, or both, which are written to from now on."""
    if index_of(graph).book.is_adaptive and draw(st.booleans()):
        hot = {indexed_text(draw(st.sampled_from(values))): draw(st.integers(1, 3))} if values else {}
        announce(graph, "THING#value", draw(st.none() | st.integers(2, 9)), hot)
        clock.pass_grace()
        # Who writes much learns the map when it reports; here, by finding.
        assert graph.find(graph._schema.types[0].model).count() >= 0


@pytest.mark.simulation
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
@settings(max_examples=examples(4))
def test_find_is_a_filter_and_a_sort(name: str, layout: str, data: st.DataObject) -> None:
    kind = KINDS[name]
    model, clock = kind.model(), Clock()
    store = ShortPages(SQLiteStore(":memory:"), data.draw(st.sampled_from([1, 2, 3, 1000]), "page of the store"))
    with Graph(store, [model], LAYOUTS[layout]) as graph:
        on_clock(graph, clock)
        stored: dict[str, Any] = {}
        ids = st.text(min_size=1, max_size=2) | st.sampled_from("abcdefgh#%=")
        for _ in range(data.draw(st.integers(1, 3), "rounds")):
            values = st.none() | kind.values
            for thing in data.draw(
                st.lists(st.builds(model, id=ids, value=values, other=st.integers(0, 2)), max_size=6)
            ):
                graph.put(thing)
                stored[thing.id] = thing
            grow(data.draw, graph, clock, [thing.value for thing in stored.values() if thing.value is not None])
        there = [thing for thing in stored.values() if thing.value is not None]
        for _ in range(data.draw(st.integers(1, 4), "questions")):
            predicate, holds = data.draw(predicates(kind, [thing.value for thing in there]))
            query = graph.find(model, predicate)
            expected = sorted(
                (thing for thing in there if holds(thing.value)),
                key=lambda thing: (kind.order(thing.value), utf8(thing.id)),
            )
            if data.draw(st.booleans()):
                query = query.where(field("other") == 1)
                expected = [thing for thing in expected if thing.other == 1]
            if data.draw(st.booleans()):
                query, expected = query.reverse(), expected[::-1]
            limit = data.draw(st.integers(1, 5))
            assert list(query) == expected
            assert paged(query, limit) == expected
            assert paged(query, None) == expected
            assert query.count() == len(expected)
            assert query.first() == (expected[0] if expected else None)
            assert list(query.limit(limit)) == expected[:limit]
            assert paged(query.limit(limit), 2) == expected[:limit]
            assert query.limit(limit).count() == len(expected[:limit])
