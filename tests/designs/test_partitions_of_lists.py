"""Lists in partitions of their own: whom a user follows, what a user likes, and the members of an organization.

PK                SK           GSI1PK            GSI1SK
u#1               info
u#1#following     2            u#2#followers     1
u#1#likes         p#7          p#7               1
ORG#acme          ORG
ORG#acme#MEMBERS  ann
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, AsyncGraph, Child, Copy, Count, Edge, Graph, Index, InvalidModel, Keys, Node, Sum
from adjoin.expressions import Set, Value, attribute
from adjoin.plans.counted_deletion import delete
from adjoin.requests import Delete, Query, Update
from tests.designs.table_of_others import STORES, asked, filled, item, stored
from tests.servers.open import Stores


class User(Node):
    id: str
    name: str
    following: Annotated[int, Count("Follows")] = 0
    followers: Annotated[int, Count("Follows", direction="into")] = 0
    liked: Annotated[int, Sum("Likes", field="stars")] = 0


class Post(Node):
    id: str


class Follows(Edge[User, User]):
    since: int = 0


class Likes(Edge[User, Post]):
    stars: int = 1
    author: Annotated[str, Copy("source.name")] = ""


class Friend(Edge[User, User], symmetric=True):
    since: int = 0


class Org(Node):
    id: str


class Partner(Edge[Org, Org]): ...


class Member(Child[Org], key=("user",)):
    user: str
    role: str = "reader"


class Badge(Child[Member], key=("name",)):
    name: str


KEYS: dict[type[Any], Keys] = {
    User: Keys(partition="u#{id}", sort="info"),
    Post: Keys(partition="p#{id}", sort="post"),
    Follows: Keys(
        partition="u#{source.id}#following",
        sort="{target.id}",
        indexes={"GSI1": ("u#{target.id}#followers", "{source.id}")},
    ),
    Likes: Keys(
        partition="u#{source.id}#likes", sort="p#{target.id}", indexes={"GSI1": ("p#{target.id}", "{source.id}")}
    ),
    Friend: Keys(partition="u#{source.id}#friends", sort="{target.id}"),
    Org: Keys(partition="ORG#{id}", sort="ORG"),
    Member: Keys(partition="ORG#{parent.id}#MEMBERS", sort="{user}"),
}
MODELS = [User, Post, Follows, Likes, Friend, Org, Member, Badge]


def layout() -> AdjacencyList:
    return AdjacencyList(table="Lists", reverse=None, indexes=[Index("GSI1", "GSI1PK", "GSI1SK")], keys=KEYS)


ITEMS = [
    *(item(PK=f"u#{id}", SK="info", name=name) for id, name in (("1", "Ann"), ("2", "Ben"), ("3", "Cid"))),
    item(PK="p#7", SK="post"),
    item(PK="u#1#following", SK="2", GSI1PK="u#2#followers", GSI1SK="1", since=5),
    item(PK="u#1#following", SK="3", GSI1PK="u#3#followers", GSI1SK="1", since=6),
    item(PK="u#3#following", SK="2", GSI1PK="u#2#followers", GSI1SK="3", since=7),
    item(PK="u#1#likes", SK="p#7", GSI1PK="p#7", GSI1SK="1", stars=4, author="Ann"),
    item(PK="u#1#friends", SK="2", since=1),
    item(PK="u#2#friends", SK="1", since=1),
    item(PK="ORG#acme", SK="ORG"),
    item(PK="ORG#acme#MEMBERS", SK="ann", role="owner"),
    item(PK="ORG#acme#MEMBERS", SK="ben", role="reader"),
    item(PK="ORG#acme#MEMBERS", SK="ben#BADGE#gold"),
    item(PK="ORG#other#MEMBERS", SK="ann", role="reader"),
]


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, layout(), ITEMS) as graph:
        yield graph


def test_each_list_is_one_query(g: Graph) -> None:
    assert asked(g, g.out("1", Follows)) == (
        [Follows(source="1", target=id, since=at) for id, at in (("2", 5), ("3", 6))],
        1,
    )
    assert asked(g, g.into("2", Follows)) == (
        [Follows(source=id, target="2", since=at) for id, at in (("1", 5), ("3", 7))],
        1,
    )
    assert asked(g, g.out("1", Likes))[0][0].target == "7"
    assert asked(g, g.out("2", Friend)) == ([Friend(source="2", target="1", since=1)], 1)
    assert asked(g, g.into("2", Friend)) == ([Friend(source="1", target="2", since=1)], 1)
    assert asked(g, g.edge, Follows, "1", "3") == (Follows(source="1", target="3", since=6), 1)
    assert asked(g, g.out("1", Follows).count) == (2, 1)
    assert [node.name for _, node in g.out("1", Follows).nodes()] == ["Ben", "Cid"]
    assert g.out("1", Follows).begins_with("3").count() == 1
    assert asked(g, g.children("acme", Member)) == (
        [Member(parent="acme", user="ann", role="owner"), Member(parent="acme", user="ben")],
        1,
    )
    assert [each.name for each in g.children(("acme", "ben"), Badge)] == ["gold"]
    assert [*g.scan().others] == []
    assert (g.count(Follows), g.count(Friend), g.count(Member)) == (3, 1, 3)


def test_a_collection_is_one_partition(g: Graph) -> None:
    found = g.collection(User.ref("1"))
    assert found.node is not None
    assert (found.node.name, found.edges, found.children) == ("Ann", [], [])
    (((query,),)) = g.explain(g.collection(User.ref("1"))).rounds
    assert isinstance(query, Query)
    assert query.partition == ("PK", {"S": "u#1"})


def test_what_is_written_is_what_was_there(g: Graph) -> None:
    for entity in [*g.scan()]:
        for each in g._layout.items(entity):
            assert each in [dict(one) for one in ITEMS] or each.get("author") is None
    g.connect(Follows, "2", "3", since=9)
    assert stored(g, "u#2#following", "3") == item(
        PK="u#2#following", SK="3", GSI1PK="u#3#followers", GSI1SK="2", since=9
    )
    g.update(Follows, "2", "3", since=10)
    assert g.disconnect(Follows, "2", "3")
    assert stored(g, "u#2#following", "3") is None
    g.put(Friend(source="3", target="1"))
    assert stored(g, "u#1#friends", "3") is not None


def test_a_node_is_deleted_with_its_lists(g: Graph) -> None:
    assert g.delete(User, "1")
    for partition, sort in (
        ("u#1#following", "2"),
        ("u#1#following", "3"),
        ("u#1#likes", "p#7"),
        ("u#1#friends", "2"),
        ("u#2#friends", "1"),
    ):
        assert stored(g, partition, sort) is None
    assert g.into("2", Follows).count() == 1
    assert g.delete(User, "2")
    assert stored(g, "u#3#following", "2") is None
    assert g.delete(Org, "acme")
    assert [*g.children("acme", Member)] == []
    assert [*g.children(("acme", "ben"), Badge)] == []
    assert g.children("other", Member).count() == 1


def test_a_large_node_is_deleted_in_steps() -> None:
    with Graph(":memory:", MODELS, layout()) as g:
        g.put_many([User(id="1", name="Ann"), Org(id="acme")])
        g.put_many(Friend(source="1", target=f"f{at}") for at in range(150))
        g.put_many(Follows(source="1", target=f"f{at}") for at in range(150))
        g.put_many(Member(parent="acme", user=f"m{at}") for at in range(150))
        g.put_many(Badge(parent=("acme", f"m{at}"), name="gold") for at in range(150))
        assert g.delete(User, "1")
        assert g.delete(Org, "acme")
        assert [*g.scan()] == []
        assert [*g.scan().others] == []


def test_in_a_transaction(g: Graph) -> None:
    with g.transaction() as t:
        t.delete(Org, "acme")
        t.connect(Follows, "2", "1")
        t.disconnect(Follows, "1", "2")
    assert [each.target for each in g.out("1", Follows)] == ["3"]
    assert [each.source for each in g.into("1", Follows)] == ["2"]
    assert [*g.children("acme", Member)] == []


def test_aggregates_and_copies_follow() -> None:
    with Graph(":memory:", MODELS, layout()) as g:
        g.put_many(User(id=str(at), name=f"U{at}") for at in range(4))
        g.put(Post(id="7"))
        g.put_many(Follows(source="1", target=str(at)) for at in (0, 2, 3))
        g.put(Follows(source="2", target="3"))
        g.put(Likes(source="1", target="7", stars=5))
        g.maintain(once=True)
        ann = g.get(User, "1")
        assert ann is not None
        assert (ann.following, ann.followers, ann.liked) == (3, 0, 5)
        assert [(user.id, user.followers) for user in g.get_many(User, ["0", "3"]) if user] == [("0", 1), ("3", 2)]
        g.update(User, "1", name="Anna")
        g.delete(User, "3")
        while g.maintain(once=True).changes:
            pass
        assert [each.author for each in g.out("1", Likes)] == ["Anna"]
        ann = g.get(User, "1")
        assert ann is not None
        assert ann.following == 2
        # A node that comes after its edges counts them.
        g.put(Follows(source="9", target="1"))
        g.maintain(once=True)
        g.put(User(id="9", name="late"))
        g.maintain(once=True)
        late = g.get(User, "9")
        assert late is not None
        assert late.following == 1


class Team(Node):
    id: str
    players: Annotated[int, Count("Plays", direction="into", consistency="transaction")] = 0


class Player(Node):
    id: str
    teams: Annotated[int, Count("Plays", consistency="transaction")] = 0


class Plays(Edge[Player, Team], order="since"):
    since: int


PLAYING = AdjacencyList(
    keys={Plays: Keys(partition="PLAYER#{source.id}#TEAMS", sort="{target.id}")},
    ordered=Index("GSI2", "GSI2PK", "GSI2SK"),
)


def test_counts_in_the_transaction_and_an_order() -> None:
    with Graph(":memory:", [Team, Player, Plays], PLAYING) as g:
        g.put_many([*(Team(id=f"T{at}") for at in range(5)), Player(id="P1")])
        for at in range(5):
            g.connect(Plays, "P1", f"T{at}", since=10 - at)
        assert [each.since for each in g.out("P1", Plays)] == [6, 7, 8, 9, 10]
        assert g.explain(g.out("P1", Plays)).index == "GSI2"
        found = g.get(Player, "P1")
        assert found is not None
        assert found.teams == 5
        # An edge that waits for its node is found in its own partition.
        g.put(Plays(source="P2", target="T1", since=1))
        g.put(Player(id="P2"))
        late, team = g.get(Player, "P2"), g.get(Team, "T1")
        assert late is not None
        assert team is not None
        assert (late.teams, team.players) == (1, 2)
        assert g.delete(Team, "T1")
        found = g.get(Player, "P1")
        assert found is not None
        assert found.teams == 4
        assert g.delete(Player, "P1")
        assert [team.players for team in g.get_many(Team, ["T0", "T2"]) if team] == [0, 0]
        assert g.verify()


@pytest.mark.parametrize("steps", range(1, 12))
def test_a_delete_that_is_interrupted_is_finished_by_another(steps: int) -> None:
    with Graph(":memory:", MODELS, layout()) as g:
        g.put(User(id="1", name="Ann"))
        g.put_many(Friend(source="1", target=f"f{at}") for at in range(70))
        g.put_many(Follows(source="1", target=f"f{at}") for at in range(70))
        g.put_many(Follows(source=f"f{at}", target="1") for at in range(70))
        plan = delete(g._layout, g._schema.node(User), "1")
        requests = next(plan)
        for _ in range(steps):
            try:
                requests = plan.send(g._store.execute(requests))
            except StopIteration:
                break
        page = g.out("1", Follows).page(limit=20)
        gone = g.get(User, "1") is None
        seen = [*page, *(g.out("1", Follows).page(after=page.next) if page.next else ())]
        counts = (len(seen), g.into("1", Follows).count(), g.out("1", Friend).count(), g.into("f3", Friend).count())
        assert counts == ((0, 0, 0, 0) if gone else (70, 70, 70, 1))
        g.delete(User, "1")
        assert [*g.scan()] == []


def test_audit_and_rebuild() -> None:
    with Graph(":memory:", MODELS, layout()) as g:
        g.put_many(User(id=str(at), name=f"U{at}") for at in range(4))
        g.put_many(Follows(source=str(a), target=str(b)) for a in range(4) for b in range(4) if a != b)
        g.put_many([Org(id="acme"), Member(parent="acme", user="ann")])
        g.put(Friend(source="1", target="2"))
        g.maintain(once=True)
        assert g.verify()
        g.put(Follows(source="1", target="gone"))
        g.maintain(once=True)
        g._store.execute([Delete("Lists", item(PK="u#2#friends", SK="1"))])
        g._store.execute(
            [Update("Lists", item(PK="u#1", SK="info"), (Set(attribute("following"), Value({"N": "70"})),))]
        )
        audit = g.verify()
        assert [(each.kind, each.name, each.count) for each in audit.findings] == [
            ("aggregate", "USER.following", 1),
            ("dangling", "FOLLOWS", 1),
            ("one-sided", "FRIEND", 1),
        ]
        assert g.verify(repair=[True, "dangling"]).left == 0
        g.maintain(once=True)
        assert g.verify()
        assert g.out("2", Friend).count() == 1
        assert g.out("1", Follows).count() == 3
        g._store.execute(
            [Update("Lists", item(PK="u#1", SK="info"), (Set(attribute("following"), Value({"N": "70"})),))]
        )
        assert g.rebuild().written == 1
        found = g.get(User, "1")
        assert found is not None
        assert found.following == 3


def test_two_tenants_have_lists_of_their_own() -> None:
    with Graph(":memory:", MODELS, layout()) as g:
        for name in ("a", "b"):
            tenant = g.for_tenant(name)
            tenant.put_many([User(id="1", name=name), User(id="2", name=name)])
            tenant.put(Follows(source="1", target="2", since=len(name)))
            tenant.put_many([Org(id="o"), Member(parent="o", user=name)])
        g.maintain(once=True)
        a, b = g.for_tenant("a"), g.for_tenant("b")
        assert [each.user for each in a.children("o", Member)] == ["a"]
        assert [each.source for each in b.into("2", Follows)] == ["1"]
        assert a.delete(User, "1")
        assert [*a.into("2", Follows)] == []
        assert [each.target for each in b.out("1", Follows)] == ["2"]
        found = b.get(User, "1")
        assert found is not None
        assert found.following == 1


def test_awaited() -> None:
    async def run() -> None:
        async with AsyncGraph(":memory:", MODELS, layout()) as g:
            await g.put(User(id="1", name="Ann"))
            await g.put(Follows(source="1", target="2"))
            assert [each.target async for each in g.out("1", Follows)] == ["2"]
            assert await g.delete(User, "1")
            assert await g.out("1", Follows).count() == 0

    asyncio.run(run())


def test_partitions_that_could_be_the_same_are_refused() -> None:
    keys: dict[type[Any], Keys] = {**KEYS, Likes: Keys(partition="u#{source.id}#following", sort="{target.id}")}
    keys = {model: each for model, each in keys.items() if model in (User, Post, Follows, Likes)}
    indexes = [Index("GSI1", "GSI1PK", "GSI1SK")]
    with pytest.raises(InvalidModel, match="Follows and Likes can have the same key"):
        Graph(":memory:", [User, Post, Follows, Likes], AdjacencyList(keys=keys, reverse=None, indexes=indexes))
    keys = {Org: Keys(partition="{id}", sort="o"), Partner: Keys(partition="{source.id}#p", sort="{target.id}")}
    keys |= {Member: Keys(partition="{parent.id}#p", sort="{user}")}
    with pytest.raises(
        InvalidModel, match=r"the sort key \{target.id\} of Partner can be \{user\}, the sort key of a Member"
    ):
        Graph(":memory:", [Org, Partner, Member], AdjacencyList(keys=keys, reverse=None))
    with pytest.raises(InvalidModel, match="is not made of its id alone, so children could not be found from there"):
        Graph(":memory:", [Org, Member], AdjacencyList(keys={Member: Keys(partition="{user}", sort="ORG#{parent.id}")}))


class Group(Node):
    id: str
    size: Annotated[int, Count("Seat")] = 0


class Seat(Child[Group], key=("user",)):
    user: str


class Reader(Node):
    id: str
    stars: Annotated[int, Sum("Rated", field="stars")] = 0


class Book(Node):
    id: str
    raters: Annotated[int, Count("Rated", direction="into")] = 0


class Film(Node):
    id: str


class Rated(Edge[Reader, Book | Film]):
    stars: int = 1


def test_children_are_counted_and_ends_may_be_of_several_classes() -> None:
    keys: dict[type[Any], Keys] = {
        Seat: Keys(partition="GROUP#{parent.id}#SEATS", sort="{user}"),
        Rated: Keys(partition="READER#{source.id}#RATED", sort="{target}"),
    }
    with Graph(":memory:", [Group, Seat, Reader, Book, Film, Rated], AdjacencyList(keys=keys)) as g:
        g.put_many([Group(id="g"), Reader(id="r"), Book(id="1"), Film(id="1")])
        g.put_many(Seat(parent="g", user=user) for user in "xyz")
        g.put_many([Rated(source="r", target=Book.ref("1"), stars=3), Rated(source="r", target=Film.ref("1"), stars=4)])
        # A group that comes after its seats counts them.
        g.put(Seat(parent="late", user="q"))
        g.maintain(once=True)
        g.put(Group(id="late"))
        g.maintain(once=True)
        assert (g.get(Group, "g"), g.get(Group, "late")) == (Group(id="g", size=3), Group(id="late", size=1))
        assert (g.get(Reader, "r"), g.get(Book, "1")) == (Reader(id="r", stars=7), Book(id="1", raters=1))
        assert [each.stars for each in g.out("r", Rated)] == [3, 4]
        assert [each.stars for each in g.into(Film.ref("1"), Rated)] == [4]
        assert g.verify()
        assert g.delete(Reader, "r")
        assert g.delete(Group, "g")
        while g.maintain(once=True).changes:
            pass
        assert {type(each).__name__ for each in g.scan()} == {"Group", "Seat", "Book", "Film"}
        assert (g.count(Seat), g.get(Book, "1")) == (1, Book(id="1"))
        assert g.verify()
