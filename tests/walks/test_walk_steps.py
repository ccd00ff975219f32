"""Steps in combination, each on a graph that can be seen at a glance, and walks that are awaited."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from adjoin import (
    AsyncGraph,
    Budget,
    BudgetExceeded,
    Edge,
    Graph,
    InvalidValue,
    Node,
    Path,
    Reached,
    WalkResult,
    field,
)
from tests.conftest import Open


class Town(Node):
    id: str
    size: int | None = None
    mixed: Any = None


class Road(Edge[Town, Town], order="km"):
    km: int = 1
    toll: float = 0.0
    price: Decimal = Decimal("0.1")


class Rail(Edge[Town, Town]):
    km: int = 1


@pytest.fixture
def g(open_graph: Open) -> Any:
    """a - b - d in 1 and 2 km, a - c - d in 3 and 4 km, d - e in 5 km, e back to a in 6 km; rail from a to e."""
    g = open_graph([Town, Road, Rail])
    g.put_many(Town(id=id, size=size) for id, size in (("a", 1), ("b", 5), ("c", 3), ("d", None), ("e", 4)))
    for way, km in (("ab", 1), ("bd", 2), ("ac", 3), ("cd", 4), ("de", 5), ("ea", 6)):
        g.put(Road(source=way[0], target=way[1], km=km, toll=km / 2))
    g.put(Rail(source="a", target="e", km=9))
    return g


def ends(walk: Any) -> list[str]:
    return [ref.id for ref in walk.refs()]


def test_a_filter_of_a_repeat_holds_in_every_step_and_one_after_it_at_the_end(g: Any) -> None:
    assert ends(g.walk("a").repeat(Road, max=3, where=field("km") < 4)) == ["b", "c", "d"]
    assert ends(g.walk("a").repeat(Road, max=3).where(field("km") >= 4)) == ["d", "e", "e"]
    assert ends(g.walk("a").repeat(Road, max=3, where=field("size") > 3)) == ["b"]
    assert ends(g.walk("a").repeat(Road, max=3).where(field("size") > 3)) == ["b", "e", "e"]
    assert ends(g.walk("a").repeat(Road, max=3).distinct().where(field("km") >= 4)) == ["e"]


def test_an_order_and_a_limit_in_every_step_of_a_repeat(g: Any) -> None:
    last = g.walk("a").repeat(Road, max=2).order_by("km", reverse=True)
    assert [edge.km for edge in last.edges()] == [3, 1, 4, 2]
    assert [edge.km for edge in last.limit_per_node(1).edges()] == [3, 4]
    assert [edge.km for edge in g.walk("a").repeat(Road, max=2).limit_per_node(1).edges()] == [1, 2]


def test_an_order_of_nodes_puts_those_without_a_value_last(g: Any) -> None:
    walk = g.walk([Town.ref("a"), Town.ref("b"), Town.ref("d")]).out(Road)
    assert ends(walk.order_by("size")) == ["c", "e", "b", "d"]
    assert ends(walk.order_by("size", reverse=True)) == ["b", "e", "c", "d"]
    assert ends(g.walk("a").out(Road).order_by("size").limit_per_node(1)) == ["c"]


def test_several_classes_in_one_step_are_limited_together(g: Any) -> None:
    walk = g.walk("a").out(Road, Rail)
    assert ends(walk) == ["b", "c", "e"]
    assert ends(walk.order_by("km", reverse=True).limit_per_node(2)) == ["e", "c"]
    assert ends(walk.limit_per_node(2)) == ["b", "c"]


def test_distinct_in_the_middle_counts_each_node_once(g: Any) -> None:
    assert g.walk("a").out(Road).out(Road).out(Road).count() == 2
    assert g.walk("a").out(Road).out(Road).distinct().out(Road).count() == 1
    (path,) = g.walk("a").out(Road).out(Road).distinct().out(Road).paths()
    assert str(path) == "Path(Town('a') -> Town('b') -> Town('d') -> Town('e'))"


def test_numbers_keep_their_type(g: Any) -> None:
    roads = g.walk("a").repeat(Road, max=2)
    assert (roads.sum("km"), roads.sum("toll"), roads.sum("price")) == (10, 5.0, Decimal("0.4"))
    assert (roads.avg("km"), roads.avg("toll"), roads.avg("size")) == (Decimal("2.5"), 1.25, Decimal(4))
    assert (roads.min("size"), roads.max("size")) == (3, 5)
    nothing = g.walk("zzz").out(Road)
    assert (nothing.sum("km"), nothing.avg("km"), nothing.min("km"), nothing.max("km")) == (0, None, None, None)
    assert [node.id for node in roads.top("size", 5)] == ["b", "c"]
    assert [edge.km for edge in roads.top("km", 2)] == [4, 3]


def test_a_walk_without_steps_is_where_it_begins(g: Any) -> None:
    assert [*g.walk(Town.ref("a")).nodes()] == [Town(id="a", size=1)]
    assert [*g.walk(Town.ref("a")).edges()] == []
    assert g.walk([Town.ref("a"), Town(id="b"), Town.ref("a")]).count() == 2
    assert [path.edges for path in g.walk(Town.ref("a")).paths()] == [()]
    page = g.walk(Town.ref("a")).repeat(Road, min=0, max=1).edges().page(limit=1)
    assert ([edge.km for edge in page], page.next is None) == ([1], False)


def test_values_that_do_not_compare_are_refused() -> None:
    with Graph(":memory:", [Town, Road]) as g:
        g.put_many([Town(id="b", mixed=1), Town(id="c", mixed="x"), Road(source="a", target="b")])
        g.put(Road(source="a", target="c"))
        with pytest.raises(InvalidValue, match="cannot be sorted"):
            list(g.walk("a").out(Road).order_by("mixed").refs())
        for call in ("min", "max"):
            with pytest.raises(InvalidValue, match="cannot be compared"):
                getattr(g.walk("a").out(Road), call)("mixed")


def test_results_are_sequences(open_graph: Open) -> None:
    with Graph(":memory:", [Town, Road]) as g:
        g.put_many(Road(source="a", target=id, km=km) for km, id in enumerate("bcd"))
        results = g.walk("a").out(Road).refs()
        with g.meter() as m:
            assert (len(results), results[0], results[-1].id) == (3, Town.ref("b"), "d")
            assert results[:2] == [Town.ref("b"), Town.ref("c")]
            assert results == [Town.ref(id) for id in "bcd"]
            assert results != [Town.ref("b")]
            assert Town.ref("c") in results
            assert not g.walk("zzz").out(Road).refs()
        assert m.requests == 2
        assert isinstance(results, Reached)
        with pytest.raises(TypeError):
            hash(results)


def test_awaited_walks() -> None:
    async def run() -> None:
        async with AsyncGraph(":memory:", [Town, Road, Rail]) as g:
            await g.put_many([Town(id=id, size=ord(id)) for id in "abc"])
            await g.put_many([Road(source="a", target="b"), Road(source="b", target="c"), Road(source="a", target="c")])
            walk = g.walk("a").out(Road)
            nodes = await walk.nodes()
            assert isinstance(nodes, WalkResult)
            assert [node.id for node in nodes] == ["b", "c"]
            assert [node.id async for node in walk] == ["b", "c"]
            assert [ref.id async for ref in walk.refs()] == ["b", "c"]
            first = await walk.first()
            assert first is not None
            assert first.id == "b"
            assert await walk.out(Road).first() == Town(id="c", size=99)
            page = await walk.page(limit=1)
            assert [node.id for node in await walk.page(after=page.next)] == ["c"]
            cut = await g.walk("a", budget=Budget(requests=1)).out(Road).out(Road).refs()
            assert (cut.partial, cut.exceeded) == (True, "requests")
            with pytest.raises(BudgetExceeded):
                await g.walk("a", budget=Budget(requests=1)).out(Road).out(Road).count()
            assert (await walk.group_count()).capped == ()
            path = await g.shortest_path("a", "c", via=[Road], weight="km")
            assert isinstance(path, Path)
            assert path.weight == 1
            explained = await g.explain(g.shortest_path("a", "c", via=[Road]))
            assert explained.rounds

    asyncio.run(run())
