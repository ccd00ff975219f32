"""Walks over every kind of edge: children, unions, families, composite ids, shards, edges apart, tenants, deletions."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Literal

import pytest

from adjoin import AdjacencyList, Child, Edge, Graph, Index, Keys, MaterializedGraph, Node, Projection, field
from adjoin.layouts.interface import Layout
from adjoin.plans import deletion
from adjoin.requests import Query
from adjoin.stores.sqlite import SQLiteStore
from tests.conftest import Open
from tests.faults import FaultyStore, Interrupted

LAYOUTS: dict[str, Layout] = {"adjacency list": AdjacencyList(), "materialized graph": MaterializedGraph()}


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> Layout:
    return LAYOUTS[request.param]


# --- children and composite ids ----------------------------------------------------------------


class Repo(Node, key=("owner", "name")):
    owner: str
    name: str
    stars: int = 0


class Ticket(Child[Repo], key=("number",)):
    number: int
    votes: int = 0


class Reply(Child[Ticket], key=("place",)):
    place: int


class Fork(Edge[Repo, Repo]):
    pass


class Mentions(Edge[Ticket, Repo]):
    pass


def test_children_are_steps_down_and_up(open_graph: Open, layout: Layout) -> None:
    g = open_graph([Repo, Ticket, Reply, Fork, Mentions], layout=layout)
    ann, bob = Repo(owner="ann", name="a#1"), Repo(owner="bob", name="a#1", stars=3)
    tickets = [Ticket(parent=ann, number=number, votes=number * 10) for number in (1, 2, 3)]
    replies = [Reply(parent=("ann", "a#1", 2), place=place) for place in (1, 2)]
    g.put_many([ann, bob, *tickets, *replies, Fork(source=ann, target=bob), Mentions(source=tickets[1], target=bob)])
    with g.meter() as m:
        assert [*g.walk(ann).out(Ticket).nodes()] == tickets
    assert m.requests == 1  # the query has read them
    assert [*g.walk(ann).children(Ticket).where(field("votes") > 10).children(Reply).nodes()] == replies
    assert g.walk(ann).out(Ticket).sum("votes") == 60
    assert [*g.walk(replies[0]).into(Reply).into(Ticket).refs()] == [Repo.ref(("ann", "a#1"))]
    with g.meter() as m:
        assert g.walk(replies[0]).into(Reply).into(Ticket).count() == 1
    assert m.requests == 0  # ids of children tell their parents
    (path,) = g.walk(replies[1]).into(Reply).out(Mentions).into(Fork).paths()
    assert path.nodes == (replies[1], tickets[1], bob, ann)
    assert path.edges == (replies[1], Mentions(source=tickets[1], target=bob), Fork(source=ann, target=bob))
    assert [*g.walk(replies[1]).into(Reply).edges()] == [replies[1]]
    assert Counter(g.walk(bob).into(Mentions, Fork).refs()) == Counter(
        [Ticket.ref(("ann", "a#1", 2)), Repo.ref(("ann", "a#1"))]
    )
    assert {ref.model for ref in g.walk(ann).repeat(Ticket, Reply, min=0, max=2).refs()} == {Repo, Ticket, Reply}
    assert g.walk(("ann", "a#1")).out(Fork).sum("stars") == 3


# --- unions and families -----------------------------------------------------------------------


class User(Node):
    id: str
    score: int = 0


class Post(Node):
    id: str
    score: int = 0
    words: int = 0


class Comment(Node):
    id: int
    score: int = 0


class Liked(Edge[User, Post | Comment]):
    at: int = 0


class Vehicle(Node, discriminator="kind"):
    id: str
    kind: str


class Car(Vehicle):
    kind: Literal["car"] = "car"
    seats: int = 4


class Drives(Edge[User, Vehicle]):
    pass


class Tows(Edge[Vehicle, Vehicle]):
    pass


def test_ends_of_several_classes(open_graph: Open, layout: Layout) -> None:
    g = open_graph([User, Post, Comment, Liked], layout=layout)
    g.put_many([User(id="u"), User(id="v"), Post(id="p", score=2, words=9), Comment(id=1, score=5)])
    for user, thing, at in (("u", Post.ref("p"), 1), ("u", Comment.ref(1), 2), ("v", Comment.ref(1), 3)):
        g.put(Liked(source=user, target=thing, at=at))
    walk = g.walk(User.ref("u")).out(Liked)
    assert Counter(walk.refs()) == Counter([Post.ref("p"), Comment.ref(1)])
    with g.meter() as m:
        assert {type(node) for node in walk.nodes()} == {Post, Comment}
    assert (m.requests, m.rounds) == (2, 2)
    assert walk.into(Liked).group_count() == {User.ref("u"): 2, User.ref("v"): 1}
    assert walk.sum("score") == 7
    # Only posts have words; a comment has none, so no comparison holds.
    assert [*walk.where(field("words") > 3).refs()] == [Post.ref("p")]
    assert g.walk(Comment.ref(1)).into(Liked).count() == 2
    assert g.walk([Post.ref("p"), Comment.ref(1)]).into(Liked).where(field("at") > 1).count() == 2


def test_families(open_graph: Open, layout: Layout) -> None:
    g = open_graph([User, Vehicle, Car, Drives, Tows], layout=layout)
    van = Vehicle(id="v", kind="van")
    g.put_many([User(id="u"), Car(id="c", seats=5), van, Drives(source="u", target="c"), Tows(source="c", target="v")])
    walk = g.walk("u").out(Drives)
    assert [*walk.nodes()] == [Car(id="c", seats=5)]
    assert [*walk.refs()] == [Vehicle.ref("c")]
    assert walk.sum("seats") == 5
    assert next(iter(walk.out(Tows).paths())).refs == (User.ref("u"), Vehicle.ref("c"), Vehicle.ref("v"))
    assert g.walk(Car(id="c")).out(Tows).count() == g.walk(Car.ref("c")).out(Tows).count() == 1


# --- where edges are ---------------------------------------------------------------------------


class Fan(Node):
    id: str


class Follows(Edge[Fan, Fan]):
    since: int = 0


class Pact(Edge[Fan, Fan]):
    since: int = 0


APART = AdjacencyList(
    reverse=None,
    indexes=[Index("GSI1", "P1", "S1", shards=4), Index("GSI2", "P2", "S2"), Index("GSI3", "P3", "S3")],
    keys={
        Follows: Keys("fan#{source.id}#f", "{target.id}", indexes={"GSI1": ("{target.id}#{shard}", "{since:06}")}),
        Pact: Keys(
            "pact#{source.id}#{target.id}",
            "#",
            indexes={"GSI2": ("{source.id}", "{target.id}"), "GSI3": ("{target.id}", "{source.id}")},
        ),
    },
)


def test_edges_in_shards_and_apart(open_graph: Open) -> None:
    g = open_graph([Fan, Follows, Pact], layout=APART)
    g.put_many(Fan(id=f"f{number}") for number in range(9))
    g.put_many(Follows(source=f"f{number}", target="f0", since=number) for number in range(1, 9))
    g.put_many(Pact(source=f"f{number}", target=f"f{number + 1}", since=number) for number in range(8))
    with g.meter() as m:
        assert {ref.id for ref in g.walk("f0").into(Follows).refs()} == {f"f{number}" for number in range(1, 9)}
    assert (m.requests, m.rounds) == (4, 1)
    best = g.walk("f0").into(Follows).order_by("since", reverse=True).limit_per_node(3)
    assert [edge.since for edge in best.edges()] == [8, 7, 6]
    with g.meter() as m:
        assert g.walk("f0").into(Follows).both(Pact).count() == 7 * 2 + 1
    assert (m.requests, m.rounds) == (4 + 16, 2)
    assert g.walk("f0").repeat(Pact, max=8).count() == 8
    found = g.walk("f0").into(Follows).where(field("since") >= 7).out(Pact).refs()
    assert [ref.id for ref in found] == ["f8"]


def test_an_index_that_holds_only_keys(open_graph: Open) -> None:
    keys_only = Projection("KEYS_ONLY")
    layout = AdjacencyList(
        reverse=Index("GSI1", "P1", "S1", partition="{target}", sort="{source}", projection=keys_only)
    )
    g = open_graph([Fan, Follows], layout=layout)
    g.put_many(Follows(source=f"f{number}", target="f0", since=number) for number in range(1, 6))
    with g.meter() as m:
        assert {edge.since for edge in g.walk("f0").into(Follows).edges()} == {1, 2, 3, 4, 5}
    # The entries, and then their items.
    assert (m.requests, m.rounds) == (2, 2)
    assert g.walk("f0").into(Follows).where(field("since") > 3).count() == 2


# --- tenants, deletions, dangling edges --------------------------------------------------------


def test_tenants_do_not_see_each_other(layout: Layout) -> None:
    g = Graph(":memory:", [Fan, Follows], layout)
    one, two = g.for_tenant("one"), g.for_tenant("two")
    g.put_many([Fan(id="a"), Fan(id="b"), Follows(source="a", target="b")])
    one.put_many([Fan(id="a"), Follows(source="a", target="b"), Follows(source="b", target="c")])
    assert [ref.id for ref in g.walk("a").repeat(Follows, max=3).refs()] == ["b"]
    assert [ref.id for ref in one.walk("a").repeat(Follows, max=3).refs()] == ["b", "c"]
    assert [*one.walk("a").out(Follows).nodes()] == []
    assert two.walk("a").both(Follows).count() == 0


@pytest.mark.parametrize("number", range(12))
def test_edges_of_a_deleted_node_are_hidden(layout: Layout, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A delete may be interrupted anywhere; walks see the edges that queries see."""
    monkeypatch.setattr(deletion, "MAX_TRANSACTION", 6)
    store = FaultyStore(SQLiteStore(":memory:"))
    g = Graph(store, [Fan, Follows], layout)
    ids = [f"f{number}" for number in range(6)]
    g.put_many(Fan(id=id) for id in ids)
    g.put_many(Follows(source=near, target=far) for near in ids for far in ids)
    store.stop_at(number, "after")
    with suppress(Interrupted):
        g.delete(Fan, "f0")
    store.recover()
    is_gone = g.get(Fan, "f0") is None
    kept = ids[1:] if is_gone else ids
    for walk in (g.walk("f5").out(Follows), g.walk("f5").into(Follows)):
        assert {ref.id for ref in walk.refs()} == {*kept}
        assert walk.out(Follows).group_count() == {Fan.ref(id): len(kept) for id in kept}
    assert {*(ref.id for ref in g.walk("f0").both(Follows).refs())} == {*(() if is_gone else ids)}


def test_nodes_that_do_not_exist_are_no_results_but_their_edges_count(open_graph: Open, layout: Layout) -> None:
    g = open_graph([Fan, Follows], layout=layout)
    g.put_many([Fan(id="a"), Fan(id="c"), Follows(source="a", target="b"), Follows(source="b", target="c")])
    assert [*g.walk("a").out(Follows).nodes()] == []
    assert [*g.walk("a").out(Follows).refs()] == [Fan.ref("b")]
    assert [*g.walk("a").out(Follows).out(Follows).nodes()] == [Fan(id="c")]
    assert [*g.walk("a").out(Follows).out(Follows).paths()] == []
    page = g.walk("a").repeat(Follows, max=2).nodes().page(limit=1)
    assert (page.items, page.next) == ([Fan(id="c")], None)


def test_an_order_that_is_a_field_in_an_index() -> None:
    keys = {Follows: Keys("fan#{source.id}", "{target.id}", attributes={"star": "{target.id}"})}
    layout = AdjacencyList(reverse=None, indexes=[Index("ByStar", "star", "since")], keys=keys)
    with Graph(":memory:", [Fan, Follows], layout) as g:
        g.put_many(Follows(source=f"f{number}", target="star", since=number * 7 % 10) for number in range(10))
        walk = g.walk("star").into(Follows).order_by("since", reverse=True).limit_per_node(3)
        with g.meter() as m:
            assert [edge.since for edge in walk.edges()] == [9, 8, 7]
        (explained,) = g.explain(walk.edges()).requests
        assert isinstance(explained, Query)
        # Other items may be in the index, so a few more are asked for.
        assert (m.requests, explained.index, explained.limit, explained.forward) == (1, "ByStar", 100, False)


def test_consistent_reads_where_dynamodb_has_them() -> None:
    with Graph(":memory:", [Fan, Follows]) as g:
        g.put_many([Fan(id="a"), Fan(id="b"), Follows(source="a", target="b")])
        units = []
        for walk in (
            g.walk("a").out(Follows).refs(),
            g.walk("a", consistent=True).out(Follows).refs(),
            g.walk("a", consistent=True).out(Follows).nodes(),
            g.walk("b", consistent=True).into(Follows).refs(),
        ):
            with g.meter() as m:
                assert len(walk) == 1
            units.append(m.rcu)
        assert units == [0.5, 1, 2, 0.5]
