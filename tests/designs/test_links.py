"""Tables that hold links only: the edges of two others' nodes, whose key fields have the names of the table's keys.

    id   postId  tagId            userId  visitedAt (N)  pageId  ms
    l1   p1      t1               u1      0
    l2   p1      t2               u1      1777629600     /home   40

The first is what a generator of join tables makes: a partition key only, and an index for each end. In the second, the
item 0 is the user, and any later moment one of its visits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import AdjacencyList, Edge, Graph, Index, InvalidModel, Keys, Node, field
from tests.designs.table_of_others import STORES, asked, filled, item, stored
from tests.servers.open import Stores


class Post(Node):
    id: str


class Tag(Node):
    id: str


class PostTag(Edge[Post, Tag], key="id"):
    id: str
    note: str | None = None


JOINS = AdjacencyList(
    table="PostTags",
    partition_key="id",
    sort_key=None,
    reverse=None,
    indexes=[Index("byPost", "postId"), Index("byTag", "tagId")],
    keys={
        Post: Keys("POST#{id}"),
        Tag: Keys("TAG#{id}"),
        PostTag: Keys("{id}", attributes={"postId": "{source.id}", "tagId": "{target.id}"}),
    },
)
LINKS = [
    item(id="l1", postId="p1", tagId="t1"),
    item(id="l2", postId="p1", tagId="t2", note="maybe"),
    item(id="l3", postId="p2", tagId="t1", updatedAt="2026"),
]


class User(Node):
    id: str
    name: str | None = None


class Page(Node):
    id: str


class Visit(Edge[User, Page], key="visited_at", order="visited_at"):
    visited_at: Annotated[int, Field(alias="visitedAt", gt=0)]
    ms: int | None = None


VISITED = AdjacencyList(
    table="Visits",
    partition_key="userId",
    sort_key="visitedAt",
    types={"visitedAt": "N"},
    shared_ids=True,
    reverse=None,
    indexes=[Index("byPage", "pageId", "visitedAt")],
    keys={
        User: Keys("{id}", "0"),
        Page: Keys("{id}", "-1"),
        Visit: Keys("{source}", "{visited_at}", attributes={"pageId": "{target.id}"}),
    },
)
VISITS = [
    item(userId="u1", visitedAt=0, name="Ann"),
    *(item(userId="u1", visitedAt=at, pageId="/home" if at % 2 else "/cart", ms=at) for at in range(1, 6)),
    item(userId="u2", visitedAt=3, pageId="/home"),
]


@pytest.fixture(params=STORES)
def joins(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, [Post, Tag, PostTag], JOINS, LINKS) as graph:
        yield graph


@pytest.fixture(params=STORES)
def visits(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, [User, Page, Visit], VISITED, VISITS) as graph:
        yield graph


def test_links_are_read(joins: Graph) -> None:
    g = joins
    tags, requests = asked(g, g.out("p1", PostTag))
    assert (sorted((each.target, each.id) for each in tags), requests) == ([("t1", "l1"), ("t2", "l2")], 1)
    posts, requests = asked(g, g.into("t1", PostTag))
    assert (sorted(each.source for each in posts), requests) == (["p1", "p2"], 1)
    assert asked(g, g.find(PostTag, field("id") == "l3"))[0][0].source == "p2"
    found, requests = asked(g, g.find(PostTag, (field("source") == "p1") & (field("id") > "l1"), index="byPost"))
    assert ([each.note for each in found], requests) == (["maybe"], 1)
    assert g.edge(PostTag, "p1", "t2", id="l2") == PostTag(source="p1", target="t2", id="l2", note="maybe")
    contents = g.scan().collect()
    assert (len(contents.edges), contents.others) == (3, [])


def test_links_are_written(joins: Graph) -> None:
    g = joins
    g.put(PostTag(source="p9", target="t9", id="l9"))
    assert stored(g, "l9") == item(id="l9", postId="p9", tagId="t9")
    g.update(PostTag, "p2", "t1", id="l3", note="new")
    assert stored(g, "l3") == item(id="l3", postId="p2", tagId="t1", updatedAt="2026", note="new")
    assert g.disconnect(PostTag, "p1", "t1", id="l1")
    assert stored(g, "l1") is None


def test_visits_are_read(visits: Graph) -> None:
    g = visits
    own, requests = asked(g, g.out("u1", Visit).between(2, 4))
    assert ([each.target for each in own], requests) == (["/cart", "/home", "/cart"], 1)
    late, requests = asked(g, g.into("/home", Visit).between(3, None).reverse())
    assert ([(each.source, each.visited_at) for each in late], requests) == ([("u1", 5), ("u2", 3), ("u1", 3)], 1)
    late, requests = asked(g, g.find(Visit, (field("target") == "/home") & (field("visited_at") < 3)))
    assert ([each.visited_at for each in late], requests) == ([1], 1)
    around = g.collection(User.ref("u1"))
    assert (around.node, len(around.edges), around.others) == (User(id="u1", name="Ann"), 5, [])
    assert g.scan().collect().others == []


def test_visits_are_written(visits: Graph) -> None:
    g = visits
    g.add(Visit(source="u2", target="/home", visited_at=9))
    assert stored(g, "u2", 9) == item(userId="u2", visitedAt=9, pageId="/home")
    assert g.delete(User, "u1")
    assert [each.visited_at for each in g.into("/home", Visit)] == [3, 9]


def test_a_visit_that_may_be_the_user_is_refused() -> None:
    class Seen(Edge[User, Page], key="at"):
        at: Annotated[int, Field(ge=0)]

    keys: dict[type[Any], Keys] = {
        User: Keys("{id}", "0"),
        Page: Keys("page-{id}", "-1"),
        Seen: Keys("{source}", "{at}", attributes={"pageId": "{target.id}"}),
    }
    layout = AdjacencyList(sort_key="visitedAt", types={"visitedAt": "N"}, shared_ids=True, reverse=None, keys=keys)
    with pytest.raises(InvalidModel, match=r"the sort key \{at\} of Seen can be 0, .* bound .* Field\(ge=1\)"):
        Graph(":memory:", [User, Page, Seen], layout)


def test_a_link_that_may_be_a_post_is_refused() -> None:
    layout = replace(JOINS, keys={**JOINS.keys, Post: Keys("post-{id}")})
    with pytest.raises(
        InvalidModel, match=r"the partition key \{id\} of PostTag can be post-\{id\}, the key of a Post;"
    ):
        Graph(":memory:", [Post, Tag, PostTag], layout)


def test_a_stored_field_does_not_take_the_name_of_a_key() -> None:
    class Named(Edge[User, Page]):
        visited_at: Annotated[int, Field(alias="visitedAt")]

    keys: dict[type[Any], Keys] = {User: Keys("{id}", "{id}"), Page: Keys("{id}", "{id}")}
    layout = AdjacencyList(sort_key="visitedAt", reverse=None, edge="{target}", keys=keys, shared_ids=True)
    with pytest.raises(InvalidModel, match=r"Named.visited_at is stored as 'visitedAt', a name that the layout uses"):
        Graph(":memory:", [User, Page, Named], layout)
