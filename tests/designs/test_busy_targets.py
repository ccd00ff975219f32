"""Targets with very many edges: the edges that arrive at one are in several shards of a declared index.

PK            SK              GSI1PK           GSI1SK
FAN#F1        LIKES#STAR#S1   STAR#S1#0        2026-01-01#FAN#F1
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import AdjacencyList, AsyncGraph, Edge, Graph, Index, InvalidCursor, InvalidValue, Keys, Node, field
from adjoin.requests import Delete, Query
from adjoin.tables import Projection
from tests.designs.table_of_others import STORES, asked, filled, item
from tests.servers.open import Stores
from tests.shares import examples

SHARDS = 4


class Fan(Node):
    id: str


class Star(Node):
    id: str


class Likes(Edge[Fan, Star]):
    since: date
    stars: int = 1


class Blocks(Edge[Star, Fan]):
    reason: str = ""


KEYS: dict[type[Any], Keys] = {
    Likes: Keys(sort="LIKES#{target.id}", indexes={"GSI1": ("STAR#{target.id}#{shard}", "{since}#{source}")}),
    Blocks: Keys(sort="BLOCKS#{target.id}", indexes={"GSI1": ("BLOCKED#{target.id}#{shard}", "{source}")}),
}


EVERYTHING = Projection()


def layout(projection: Projection = EVERYTHING) -> AdjacencyList:
    return AdjacencyList(
        table="Stars",
        reverse=None,
        indexes=[Index("GSI1", "GSI1PK", "GSI1SK", shards=SHARDS, projection=projection)],
        keys=KEYS,
    )


MODELS = [Fan, Star, Likes, Blocks]
DAY = date(2026, 1, 1)


def items(number: int) -> list[Any]:
    """Likes as another program wrote them, whose hash is not that of adjoin."""
    found = [item(PK="STAR#S1", SK="#META"), item(PK="STAR#S2", SK="#META")]
    for at in range(number):
        fan, day = f"F{at:02}", (DAY + timedelta(days=(at * 7) % 29)).isoformat()
        shard = (at * at) % SHARDS
        found.append(item(PK=f"FAN#{fan}", SK="#META"))
        found.append(
            item(
                PK=f"FAN#{fan}",
                SK="LIKES#S1",
                GSI1PK=f"STAR#S1#{shard}",
                GSI1SK=f"{day}#FAN#{fan}",
                since=day,
                stars=at % 5,
            )
        )
    found.append(item(PK="FAN#F01", SK="LIKES#S2", GSI1PK="STAR#S2#0", GSI1SK="2026-01-01#FAN#F01", since="2026-01-01"))
    return found


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, layout(), items(30)) as graph:
        yield graph


def test_edges_that_arrive_are_merged_in_order_with_a_query_for_each_shard(g: Graph) -> None:
    found, requests = asked(g, g.into("S1", Likes))
    assert requests == SHARDS
    assert [(each.since, each.source) for each in found] == sorted((each.since, each.source) for each in found)
    assert sorted(each.source for each in found) == [f"F{at:02}" for at in range(30)]
    assert asked(g, g.into("S1", Likes).reverse()) == (found[::-1], SHARDS)
    assert asked(g, g.into("S2", Likes).count) == (1, SHARDS)
    assert asked(g, g.into("S1", Likes).count) == (30, SHARDS)
    assert asked(g, g.into("S1", Likes).limit(7)) == (found[:7], SHARDS)
    assert g.into("S1", Likes).limit(7).count() == 7
    assert g.into("S1", Likes).first() == found[0]
    assert asked(g, g.into("nobody", Likes)) == ([], SHARDS)


def test_conditions(g: Graph) -> None:
    everything = list(g.into("S1", Likes))
    low, high = DAY + timedelta(days=3), DAY + timedelta(days=9)
    between = [each for each in everything if low <= each.since <= high]
    few = [each for each in everything if each.stars == 3]
    assert len(between) > 3
    assert len(few) > 3
    assert asked(g, g.find(Likes, (field("target") == "S1") & field("since").between(low, high))) == (between, SHARDS)
    assert asked(g, g.into("S1", Likes).where(field("stars") == 3)) == (few, SHARDS)
    assert g.into("S1", Likes).where(field("stars") == 3).page(limit=2).items == few[:2]
    assert asked(g, g.into("S1", Likes).between(low, high)) == (between, SHARDS)
    assert asked(g, g.into("S1", Likes).begins_with("2026-01-0")) == (
        [one for one in everything if one.since.day < 10],
        SHARDS,
    )
    assert g.into("S1", Likes).within(since=low, source="F17").count() == 1


def test_pages_continue_in_every_shard(g: Graph) -> None:
    everything = list(g.into("S1", Likes))
    for size in (1, 4, 30):
        for query, wanted in ((g.into("S1", Likes), everything), (g.into("S1", Likes).reverse(), everything[::-1])):
            pages, after = [], None
            while True:
                page = query.page(limit=size, after=after)
                pages.append(page.items)
                if page.next is None:
                    break
                after = page.next
            assert [each for page in pages for each in page] == wanted
            assert all(len(page) == size for page in pages[:-1])
    token = g.into("S1", Likes).page(limit=3).next
    for other in (g.into("S2", Likes), g.into("S1", Likes).reverse(), g.into("S1", Likes).limit(9), g.out("F1", Likes)):
        with pytest.raises(InvalidCursor):
            other.page(limit=3, after=token)


def test_far_nodes_and_edges_without_one(g: Graph) -> None:
    pairs = list(g.into("S1", Likes).nodes())
    assert [edge.source for edge, fan in pairs] == [fan.id for _, fan in pairs]
    assert len(pairs) == 30
    g.delete(Fan, "F07")
    g._store.execute([Delete("Stars", item(PK="FAN#F08", SK="#META"))])
    assert len(list(g.into("S1", Likes))) == 29
    assert g.into("S1", Likes).nodes().count() == 28
    assert len(g.into("S1", Likes).nodes().page(limit=28).items) == 28


def test_an_edge_that_is_written_is_in_one_shard(g: Graph) -> None:
    g.connect(Likes, "F02", "S2", since=DAY)
    assert [each.source for each in g.into("S2", Likes)] == ["F01", "F02"]
    g.put(Blocks(source="S1", target="F02"))
    assert [each.source for each in g.into("F02", Blocks)] == ["S1"]
    g.disconnect(Likes, "F02", "S2")
    assert [each.source for each in g.into("S2", Likes)] == ["F01"]


def test_a_target_is_deleted_with_the_edges_of_all_shards(g: Graph) -> None:
    assert g.delete(Star, "S1")
    assert list(g.into("S1", Likes)) == []
    assert list(g.out("F03", Likes)) == []
    assert [each.target for each in g.out("F01", Likes)] == ["S2"]


def test_what_explain_and_repr_say(g: Graph) -> None:
    explained = g.explain(g.into("S1", Likes))
    ((*queries,),) = explained.rounds
    assert [each.partition[1] for each in queries if isinstance(each, Query)] == [
        {"S": f"STAR#S1#{shard}"} for shard in range(SHARDS)
    ]
    assert repr(g.into("S1", Likes)) == (
        "<EdgeQuery of Likes at 'STAR#S1#0' and 3 other shards in the index GSI1; iterate it, or ask for .page()>"
    )
    with pytest.raises(InvalidValue, match="no consistent reads of global indexes"):
        g.into("S1", Likes, consistent=True)


def test_awaited() -> None:
    async def run() -> None:
        async with AsyncGraph(":memory:", MODELS, layout()) as g:
            for at in range(9):
                await g.put(Likes(source=f"F{at}", target="S1", since=DAY + timedelta(days=at % 4)))
            query = g.into("S1", Likes)
            found = [each async for each in query]
            assert [each.since for each in found] == sorted(each.since for each in found)
            page = await query.page(limit=4)
            rest = await query.page(after=page.next)
            assert [*page, *rest] == found
            assert await query.count() == 9

    asyncio.run(run())


def test_a_page_of_an_index_that_holds_keys_only_continues_after_the_entry() -> None:
    with Graph(":memory:", MODELS, layout(Projection("KEYS_ONLY"))) as g:
        g.put_many(Likes(source=f"F{at:02}", target="S1", since=DAY + timedelta(days=at)) for at in range(12))
        with g.meter() as meter:
            first = g.into("S1", Likes).page(limit=5)
        assert [each.source for each in first] == [f"F{at:02}" for at in range(5)]
        assert meter.requests > SHARDS
        # The last result moves to the end, where it is found once more; nothing between is left out.
        g.update(Likes, "F04", "S1", since=DAY + timedelta(days=90))
        rest = g.into("S1", Likes).page(after=first.next)
        assert [each.source for each in rest] == [*(f"F{at:02}" for at in range(5, 12)), "F04"]
        assert [each.source for each in g.into("S1", Likes).where(field("stars") == 2)] == []
        assert g.into("S1", Likes).where(field("stars") == 1).count() == 12


class Post(Node):
    id: int


class Tag(Node):
    id: str


class Tagged(Edge[Post, Tag]): ...


@settings(max_examples=examples(9), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["a", "a#1", "ä", "0"])), unique=True, max_size=40),
    st.integers(1, 6),
    st.integers(1, 7),
)
def test_every_edge_is_found_once_in_order(pairs: list[tuple[int, str]], shards: int, size: int) -> None:
    keys = {Tagged: Keys(indexes={"GSI1": ("{target}#{shard}", "{source.id:sortable}")})}
    spread = AdjacencyList(reverse=None, indexes=[Index("GSI1", "P", "S", shards=shards)], keys=keys, escape=True)
    alone = AdjacencyList(
        reverse=None,
        indexes=[Index("GSI1", "P", "S", shards=shards)],
        escape=True,
        keys={Tagged: Keys(indexes={"GSI1": ("{shard}", "{target}#{source.id:sortable}")})},
    )
    for layout in (spread, alone):
        with Graph(":memory:", [Post, Tag, Tagged], layout) as g:
            g.put_many(Tagged(source=post, target=tag) for post, tag in pairs)
            for tag in ("a", "a#1", "ä", "0"):
                wanted = sorted(post for post, each in pairs if each == tag)
                assert [each.source for each in g.into(tag, Tagged)] == wanted
                assert g.into(tag, Tagged).count() == len(wanted)
                found, after = [], None
                while True:
                    page = g.into(tag, Tagged).page(limit=size, after=after)
                    found += [each.source for each in page]
                    after = page.next
                    if after is None:
                        break
                assert found == wanted
