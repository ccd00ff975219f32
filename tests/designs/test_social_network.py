"""A social network as the service's documentation designs it: users, posts, likes, followers and timelines, each list
in a partition of its own. So each entry of a list is a node whose id is the two ids in its key."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import (
    AdjacencyList,
    AlreadyExists,
    Child,
    Edge,
    Expires,
    Graph,
    Keys,
    Node,
    TransactionCanceled,
    field,
)
from tests.designs.table_of_others import STORES, asked, filled, item, stored
from tests.servers.open import Stores


class User(Node):
    id: str
    name: str
    content: str = ""
    image: str | None = Field(None, alias="imageUrl")


class Counts(Child[User], key=()):
    followers: int = Field(0, alias="follower#")
    following: int = Field(0, alias="following#")
    posts: int = Field(0, alias="post#")


class Follower(Node, key=("user", "other")):
    user: str
    other: str


class Following(Node, key=("user", "other")):
    user: str
    other: str


class Post(Node, key=("user", "id")):
    user: str
    id: str
    content: str
    image: str | None = Field(None, alias="imageUrl")
    timestamp: int


class Comment(Node, key=("post", "id")):
    post: str
    id: str
    author: str
    content: str


class Like(Node, key=("post", "user")):
    post: str
    user: str


class Likes(Node, key="post"):
    post: str
    count: int = 0


class Entry(Node, key=("user", "post", "author")):
    """A post in the timeline of somebody who follows its author."""

    user: str
    post: str
    author: str
    expires: Annotated[dt.datetime | None, Expires()] = Field(None, alias="ttl")


MODELS: list[Any] = [User, Counts, Follower, Following, Post, Comment, Like, Likes, Entry]
LAYOUT = AdjacencyList(
    table="SocialNetwork",
    reverse=None,
    keys={
        User: Keys("u#{id}", "info"),
        Counts: Keys(sort="count"),
        Follower: Keys("u#{user}#follower", "u#{other}"),
        Following: Keys("u#{user}#following", "u#{other}"),
        Post: Keys("u#{user}#post", "p#{id}"),
        Comment: Keys("p#{post}#comment", "comment#{id}"),
        Like: Keys("p#{post}#likelist", "u#{user}"),
        Likes: Keys("p#{post}#likecount", "count"),
        Entry: Keys("u#{user}#timeline", "p#{post}#u#{author}"),
    },
)
LATER = 4_000_000_000
ITEMS = [
    item(PK="u#12", SK="info", name="Mia", content="hello", imageUrl="https://img.example/12"),
    item(PK="u#12", SK="count", **{"follower#": 2, "following#": 1, "post#": 2}),
    item(PK="u#13", SK="info", name="Noa", content=""),
    item(PK="u#13", SK="count", **{"follower#": 1, "following#": 1, "post#": 0}),
    item(PK="u#12#follower", SK="u#13"),
    item(PK="u#12#follower", SK="u#14"),
    item(PK="u#12#following", SK="u#13"),
    item(PK="u#13#following", SK="u#12"),
    item(PK="u#13#follower", SK="u#12"),
    item(PK="u#12#post", SK="p#701", content="one", imageUrl="https://img.example/701", timestamp=1_700_000_000),
    item(PK="u#12#post", SK="p#702", content="two", timestamp=1_700_000_900),
    item(PK="p#701#likelist", SK="u#13"),
    item(PK="p#701#likelist", SK="u#14"),
    item(PK="p#701#likecount", SK="count", count=2),
    item(PK="p#701#comment", SK="comment#1a", author="13", content="nice"),
    item(PK="p#701#comment", SK="comment#1b", author="14", content="so-so"),
    item(PK="u#13#timeline", SK="p#701#u#12", ttl=LATER),
    item(PK="u#13#timeline", SK="p#702#u#12", ttl=LATER),
]
STRAYS = [
    item(PK="u#12", SK="settings", theme="dark"),
    item(PK="u#12#blocked", SK="u#99"),
    item(PK="u#13#timeline", SK="p#703", note="without an author"),
]


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, [*ITEMS, *STRAYS]) as graph:
        yield graph


def test_users(g: Graph) -> None:
    mia = User(id="12", name="Mia", content="hello", image="https://img.example/12")
    assert asked(g, g.get, User, "12") == (mia, 1)
    around, requests = asked(g, g.collection(User.ref("12")))
    assert (around.node, requests) == (mia, 1)
    assert [(each.followers, each.following, each.posts) for each in around.children] == [(2, 1, 2)]
    assert around.others == [{"PK": "u#12", "SK": "settings", "theme": "dark"}]


def test_lists(g: Graph) -> None:
    found, requests = asked(g, g.find(Follower, field("user") == "12"))
    assert ([each.other for each in found], requests) == (["13", "14"], 1)
    found, requests = asked(g, g.find(Following, field("user") == "12"))
    assert ([each.other for each in found], requests) == (["13"], 1)
    assert asked(g, g.get, Following, ("12", "14")) == (None, 1)
    found, requests = asked(g, g.find(Post, field("user") == "12").reverse())
    assert ([(each.id, each.content) for each in found], requests) == ([("702", "two"), ("701", "one")], 1)
    found, requests = asked(g, g.find(Post, (field("user") == "12") & (field("id") > "701")))
    assert ([each.id for each in found], requests) == (["702"], 1)
    found, requests = asked(g, g.find(Like, field("post") == "701"))
    assert ([each.user for each in found], requests) == (["13", "14"], 1)
    assert asked(g, g.get, Likes, "701") == (Likes(post="701", count=2), 1)
    found, requests = asked(g, g.find(Comment, field("post") == "701", order="id").limit(1))
    assert ([each.content for each in found], requests) == (["nice"], 1)


def test_timelines(g: Graph) -> None:
    query = g.find(Entry, field("user") == "13").reverse()
    found, requests = asked(g, query)
    assert ([(each.post, each.author) for each in found], requests) == ([("702", "12"), ("701", "12")], 1)
    first = query.page(limit=1)
    assert [each.post for each in first] == ["702"]
    assert [each.post for each in query.page(limit=1, after=first.next)] == ["701"]
    # The posts themselves: one batch get.
    posts, requests = asked(g, g.get_many, Post, [(each.author, each.post) for each in found])
    assert ([each.content for each in posts], requests) == (["two", "one"], 1)
    found, requests = asked(g, g.find(Entry, (field("user") == "13") & (field("post") == "701")))
    assert ([each.author for each in found], requests) == (["12"], 1)


def test_everything_is_explained_or_kept(g: Graph) -> None:
    contents = g.scan().collect()
    assert len(contents.nodes) == len(ITEMS)
    assert sorted(each["SK"] for each in contents.others) == ["p#703", "settings", "u#99"]


def test_follow_and_unfollow(g: Graph) -> None:
    def follow(user: str, other: str) -> None:
        with g.transaction() as t:
            t.add(Following(user=user, other=other))
            t.add(Follower(user=other, other=user))
            t.update(Counts, (user,), following=field("following") + 1)
            t.update(Counts, (other,), followers=field("followers") + 1)

    g.put_many([User(id="15", name="Oz"), Counts(parent="15")])
    assert stored(g, "u#15", "info") == item(PK="u#15", SK="info", name="Oz", content="")
    follow("15", "12")
    assert stored(g, "u#15#following", "u#12") == item(PK="u#15#following", SK="u#12")
    assert stored(g, "u#12#follower", "u#15") == item(PK="u#12#follower", SK="u#15")
    counts = {"follower#": 0, "following#": 1, "post#": 0}
    assert stored(g, "u#15", "count") == item(PK="u#15", SK="count", **counts)
    with pytest.raises(TransactionCanceled):
        follow("15", "12")
    counted = g.get(Counts, ("12",))
    assert counted is not None
    assert (counted.followers, counted.following, counted.posts) == (3, 1, 2)
    with g.transaction() as t:
        t.delete(Following, ("15", "12"))
        t.delete(Follower, ("12", "15"))
        t.update(Counts, ("15",), following=field("following") - 1)
        t.update(Counts, ("12",), followers=field("followers") - 1)
    assert [each.other for each in g.find(Follower, field("user") == "12")] == ["13", "14"]
    assert stored(g, "u#15#following", "u#12") is None


def test_posts_are_written(g: Graph) -> None:
    with g.transaction() as t:
        t.add(Post(user="12", id="704", content="three", timestamp=1_700_001_000))
        t.add(Likes(post="704"))
        t.update(Counts, ("12",), posts=field("posts") + 1)
    ttl = dt.datetime.fromtimestamp(LATER, dt.UTC)
    followers = [each.other for each in g.find(Follower, field("user") == "12")]
    g.put_many(Entry(user=follower, post="704", author="12", expires=ttl) for follower in followers)
    assert stored(g, "u#12#post", "p#704") == item(PK="u#12#post", SK="p#704", content="three", timestamp=1_700_001_000)
    assert stored(g, "p#704#likecount", "count") == item(PK="p#704#likecount", SK="count", count=0)
    assert stored(g, "u#14#timeline", "p#704#u#12") == item(PK="u#14#timeline", SK="p#704#u#12", ttl=LATER)
    assert [each.post for each in g.find(Entry, field("user") == "13").reverse()] == ["704", "702", "701"]
    with g.transaction() as t:
        t.add(Like(post="704", user="13"))
        t.update(Likes, "704", count=field("count") + 1)
    assert stored(g, "p#704#likelist", "u#13") == item(PK="p#704#likelist", SK="u#13")
    assert g.get(Likes, "704") == Likes(post="704", count=1)
    with pytest.raises(AlreadyExists):
        g.add(Like(post="704", user="13"))
    g.put(Comment(post="704", id="2a", author="13", content="good"))
    comment = item(PK="p#704#comment", SK="comment#2a", author="13", content="good")
    assert stored(g, "p#704#comment", "comment#2a") == comment
    g.update(Post, ("12", "704"), content="3", image="https://img.example/704")
    changed = item(PK="u#12#post", SK="p#704", content="3", imageUrl="https://img.example/704", timestamp=1_700_001_000)
    assert stored(g, "u#12#post", "p#704") == changed
    assert g.delete(Post, ("12", "704"))
    assert [each.id for each in g.find(Post, field("user") == "12")] == ["701", "702"]


def test_a_user_is_deleted_with_its_counts(g: Graph) -> None:
    assert g.delete(User, "12")
    assert g.get(Counts, ("12",)) is None
    assert stored(g, "u#12", "settings") == STRAYS[0]
    assert g.find(Post, field("user") == "12").count() == 2


class Follows(Edge[User, User]):
    pass


def test_a_list_may_also_be_edges(g: Graph) -> None:
    """Whom a user follows, read as edges of the same items."""
    layout = AdjacencyList(
        table=LAYOUT.table,
        partition_key=LAYOUT.partition_key,
        sort_key=LAYOUT.sort_key,
        reverse=None,
        keys={User: LAYOUT.keys[User], Follows: Keys("u#{source.id}#following", "u#{target.id}")},
    )
    other = Graph(g._store, [User, Follows], layout)
    for user in g.scan(User):
        wanted = sorted(each.other for each in g.scan(Following) if each.user == user.id)
        assert sorted(each.target for each in other.out(user, Follows)) == wanted
    assert other.count(Follows) == g.count(Following) > 0
