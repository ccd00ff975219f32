"""Edges with nodes of several classes at an end: a union, or a base class with its subclasses in the graph."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from orjson import loads
from pydantic import Field

from adjoin import (
    AdjacencyList,
    Child,
    Copy,
    Count,
    Edge,
    Expires,
    Graph,
    InvalidKey,
    InvalidModel,
    InvalidValue,
    Keys,
    MaterializedGraph,
    Node,
    NotFound,
    Ref,
    Sum,
    field,
)
from adjoin.batch.job import as_json
from adjoin.layouts.interface import WRITTEN, Layout
from adjoin.requests import Delete, Get, Put, Request
from adjoin.schema import Schema
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from tests.servers.open import Stores
from tests.unions import LAYOUTS, MODELS, Bot, Comment, Friend, Liked, Line, Post, Rated, Seen, User

ANN, BOT = User(id="ann", score=2), Bot(owner="o#1", number=3, score=5)

POST, COMMENT, LINE = Post(id="1", title="P", score=10), Comment(id=1, title="C", score=20), Line(parent="1", number=7)

NODES = [ANN, BOT, POST, COMMENT, LINE]


def opened(where: str, servers: Stores, layout: Layout, tenant: str | None = None) -> Graph:
    store: Store = SQLiteStore(":memory:") if where == "embedded" else servers.open(where)
    graph = Graph(store, MODELS, layout, tenant=tenant)
    if tenant is None:
        graph.create_table()
    graph.put_many(NODES)
    return graph


@pytest.fixture(params=[*(("embedded", layout) for layout in LAYOUTS), ("ministack", "adjacency list")])
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    where, layout = request.param
    graph = opened(where, servers, LAYOUTS[layout])
    yield graph
    graph.drop_table()
    graph.close()


def targets(edges: Any) -> list[Any]:
    return [edge.target for edge in edges]


TARGETS: list[Ref[Any]] = [Comment.ref(1), Post.ref("1"), Line.ref(("1", 7))]


def test_edges_to_nodes_of_several_classes(g: Graph) -> None:
    liked: list[Post | Comment | Line] = [POST, COMMENT, LINE]
    for node in liked:
        edge = g.connect(Liked, ANN, node, at=4)
        assert edge.source == User.ref("ann")
        assert edge.target == Ref(type(node), Liked(source=ANN, target=node).target.id)
        assert g.edge(Liked, User.ref("ann"), edge.target) == edge
    g.connect(Liked, BOT, Post.ref("1"))
    assert targets(g.out(ANN, Liked)) == TARGETS
    with g.meter() as m:
        assert [(type(node), edge.target.model) for edge, node in g.out(ANN, Liked).nodes()] == [
            (Comment, Comment),
            (Post, Post),
            (Line, Line),
        ]
    assert m.requests == 2
    assert [node for _, node in g.into(POST, Liked).nodes()] == [g.get(Bot, BOT), g.get(User, ANN)]
    assert [edge.source for edge in g.into(Comment.ref(1), Liked)] == [User.ref("ann")]
    assert targets(g.out(ANN, Liked).within(target=COMMENT)) == [Comment.ref(1)]
    assert g.out(ANN, Liked).count() == 3
    assert targets(g.out(ANN, Liked).page(limit=2).items) == TARGETS[:2]

    assert g.update(Liked, ANN, Post.ref("1"), at=9).at == 9
    assert g.disconnect(Liked, ANN, COMMENT)
    assert not g.disconnect(Liked, ANN, Comment.ref(1))
    assert g.delete(g.edge(Liked, ANN, LINE) or LINE)
    assert targets(g.out(ANN, Liked)) == [Post.ref("1")]


def test_order_keys_and_indexed_fields(g: Graph) -> None:
    nodes: list[Post | Comment | Line] = [LINE, POST, COMMENT]
    for at, node in enumerate(nodes):
        g.connect(Rated, ANN, node, term="a#b", at=at, stars=at % 2, mood="good")
    assert targets(g.out(ANN, Rated)) == [Line.ref(("1", 7)), Post.ref("1"), Comment.ref(1)]
    assert targets(g.out(ANN, Rated).within(at=1)) == [Post.ref("1")]
    # The key of the line begins with that of the post.
    g.connect(Seen, ANN, POST, term="x")
    g.connect(Seen, ANN, LINE, term="y")
    assert targets(g.out(ANN, Seen).within(target=POST)) == [Post.ref("1")]
    assert g.out(ANN, Seen).within(target=Post.ref("1")).count() == 1
    assert targets(g.find(Seen, (field("source") == ANN) & (field("target") == POST))) == [Post.ref("1")]
    assert targets(g.find(Rated, field("stars") == 1)) == [Post.ref("1")]
    assert {*targets(g.find(Rated, field("mood") == "good"))} == {*TARGETS}
    assert targets(g.find(Rated, (field("source") == ANN) & (field("target") == Post.ref("1")))) == [Post.ref("1")]
    g.update(Rated, ANN, LINE, term="a#b", at=5, stars=1)
    assert targets(g.out(ANN, Rated)) == [Post.ref("1"), Comment.ref(1), Line.ref(("1", 7))]
    assert {type(node).__name__ for _, node in g.find(Rated, field("stars") == 1).nodes("target")} == {"Post", "Line"}


def test_symmetric_edges_between_classes(g: Graph) -> None:
    g.connect(Friend, ANN, BOT, since=4)
    assert [edge.target for edge in g.out(ANN, Friend)] == [Bot.ref(("o#1", 3))]
    assert [edge.target for edge in g.out(BOT, Friend)] == [User.ref("ann")]
    assert g.update(Friend, BOT, ANN, since=5).since == 5
    assert [edge.since for edge in g.out(ANN, Friend)] == [5]
    assert g.delete(BOT)
    assert g.out(ANN, Friend).count() == 0


def test_collections_scans_and_transactions(g: Graph) -> None:
    assert g.put_many([Liked(source=source, target=target) for source in (ANN, BOT) for target in TARGETS]) == 6
    assert {type(each) for each in g.collection(ANN)} == {User, Liked}
    assert len(g.collection(ANN).edges) == 3
    assert {edge.source for edge in g.collection(COMMENT, direction="into").edges} == {
        User.ref("ann"),
        Bot.ref(("o#1", 3)),
    }
    assert g.scan(Liked).count() == g.count(Liked) == len(list(g.scan(Liked))) == 6
    with g.transaction() as t:
        t.put(Liked(source=BOT, target=POST, at=7))
        t.disconnect(Liked, ANN, COMMENT)
        t.connect(Friend, ANN, BOT)
        t.update(Liked, ANN, Post.ref("1"), at=8)
    assert [edge.at for edge in g.into(POST, Liked)] == [7, 8]
    assert g.edge(Liked, ANN, COMMENT) is None


def test_delete_takes_the_edges_along(g: Graph) -> None:
    g.put_many([Liked(source=source, target=target) for source in (ANN, BOT) for target in TARGETS])
    assert g.delete(COMMENT)
    assert targets(g.out(ANN, Liked)) == TARGETS[1:]
    # The line is a child of the post, and goes with it.
    assert g.delete(Post, "1")
    assert targets(g.out(BOT, Liked)) == []
    assert g.count(Liked) == 0


def test_an_id_alone_does_not_say_the_class(g: Graph) -> None:
    for call in (
        lambda: g.connect(Liked, ANN, "1"),
        lambda: g.out("ann", Liked),
        lambda: g.into("1", Liked),
        lambda: g.edge(Liked, ANN, "1"),
        lambda: g.disconnect(Liked, ANN, "1"),
        lambda: g.update(Liked, ANN, "1", at=1),
        lambda: Liked(source=ANN, target="1"),
    ):
        with pytest.raises(
            InvalidKey, match=r"does not say whether the node is a .* or a .*; pass the node, or .*\.ref"
        ):
            call()
    with pytest.raises(InvalidKey, match="must be a Post or a Comment or a Line, got User 'ann'"):
        Liked(source=ANN, target=ANN)  # type: ignore[arg-type]
    with pytest.raises(InvalidKey, match="a User or a Bot is needed, got Post '1'"):
        g.out(POST, Liked)  # type: ignore[arg-type]
    with pytest.raises(NotFound, match="'nobody' to connect"):
        g.connect(Liked, ANN, Post.ref("nobody"))


def test_aggregates_and_copies(g: Graph) -> None:
    sources: list[User | Bot] = [ANN, BOT]
    for source in sources:
        for target in TARGETS:
            edge = g.connect(Liked, source, target, at=int(target.model is Post))
            assert edge.what == {"Post": "P", "Comment": "C", "Line": ""}[target.model.__name__]
    assert (g.get(Comment, 1) or COMMENT).likes == 2
    g.maintain(once=True)
    ann, post = g.get(User, "ann"), g.get(Post, "1")
    assert ann is not None
    assert post is not None
    assert (ann.likes, ann.best, ann.reach) == (3, 20, 4)
    assert (post.likes, post.fans) == (2, 7)
    assert (g.get(Bot, BOT) or BOT).likes == 1
    g.update(Post, "1", title="Q", score=30)
    g.update(User, "ann", score=3)
    g.disconnect(Liked, ANN, COMMENT)
    g.maintain(once=True)
    ann, post = g.get(User, "ann"), g.get(Post, "1")
    assert ann is not None
    assert post is not None
    assert (ann.likes, ann.best, ann.reach) == (2, 30, 2)
    assert (post.likes, post.fans) == (2, 8)
    assert (g.get(Comment, 1) or COMMENT).likes == 1
    assert {edge.what for edge in g.into(post, Liked)} == {"Q"}
    g.delete(post)
    g.put(POST)
    g.maintain(once=True)
    assert (g.get(User, "ann") or ANN).likes == 0
    g.connect(Liked, ANN, POST)
    g.maintain(once=True)
    assert (g.get(Post, "1") or POST).likes == 1


class Reader(Node):
    id: str
    words: Annotated[int, Sum("Read", field="words")] = 0


class Article(Node):
    id: str
    words: int = 0
    readers: Annotated[int, Count("Read", direction="into")] = 0


class Remark(Node):
    id: int
    words: int = 0


class Read(Edge[Reader | Article, Article | Remark]):
    words: Annotated[int, Copy("target.words")] = 0


class Pair(Edge[Reader | Article, Reader | Article], symmetric=True):
    pass


def test_verify_and_rebuild() -> None:
    with Graph(SQLiteStore(":memory:"), [Reader, Article, Remark, Read, Pair]) as g:
        g.put_many([Reader(id="r"), Article(id="1", words=10), Article(id="2", words=5), Remark(id=1, words=3)])
        sources: list[Ref[Any]] = [Reader.ref("r"), Article.ref("2")]
        others: list[Ref[Any]] = [Article.ref("1"), Remark.ref(1)]
        for source in sources:
            for target in others:
                g.connect(Read, source, target)
        g.connect(Pair, Reader.ref("r"), Article.ref("1"))
        g.maintain(once=True)
        assert [(each.name, each.differ) for each in g.rebuild(threads=1).results] == [
            ("READER.words", 0),
            ("ARTICLE.readers", 0),
        ]

        layout = g._layout
        edge, pair = g.edge(Read, Reader.ref("r"), Article.ref("1")), g.edge(Pair, Reader.ref("r"), Article.ref("1"))
        assert edge is not None
        assert pair is not None
        key = layout.node_key(layout.schema.node(Article), "1")
        (article,) = raw(g, Get(layout.table, key))
        raw(
            g,
            Put(layout.table, layout.items(edge)[0] | {"words": {"N": "9"}}),
            Put(layout.table, article.item | {"readers": {"N": "77"}}),
            Delete(layout.table, layout.node_key(layout.schema.node(Remark), 1)),
            Delete(layout.table, layout.key_of(layout.items(pair)[1])),
        )
        audit = g.verify(threads=1, repair=["copy", "aggregate", "ledger", "dangling", "one-sided"])
        assert (audit.counts["READ"], audit.counts["PAIR"]) == (4, 1)
        found = {(each.kind, each.name): each for each in audit.findings}
        assert found["copy", "READ.words"].examples == [
            {"source": Reader.ref("r"), "target": Article.ref("1"), "stored": 9, "computed": 10}
        ]
        assert found["aggregate", "ARTICLE.readers"].examples == [{"node": "1", "stored": 77, "computed": 2}]
        assert [each["target"] for each in found["dangling", "READ"].examples] == [Remark.ref(1)] * 2
        assert found["one-sided", "PAIR"].count == 1
        told = loads(as_json(audit.report()))
        assert "Article('1')" in str(told)
        assert "<class" not in str(told)
        assert not g.verify(threads=1).findings
        assert (g.get(Article, "1") or Article(id="?")).readers == 2
        assert (g.get(Reader, "r") or Reader(id="?")).words == 10
        assert [edge.target for edge in g.out(Article.ref("1"), Pair)] == [Reader.ref("r")]


def raw(g: Graph, *requests: Request) -> Any:
    def plan() -> Any:
        return (yield requests)

    return g._run(plan())


def test_tenants_have_edges_of_their_own() -> None:
    store = SQLiteStore(":memory:")
    with Graph(store, MODELS) as g:
        acme, other = g.for_tenant("acme"), g.for_tenant("other")
        acme.put_many(NODES)
        other.put_many(NODES)
        for target in TARGETS:
            acme.connect(Liked, ANN, target)
        other.connect(Liked, BOT, POST)
        assert targets(acme.out(ANN, Liked)) == TARGETS
        assert [edge.source for edge in acme.into(POST, Liked)] == [User.ref("ann")]
        assert [edge.source for edge in other.into(POST, Liked)] == [Bot.ref(("o#1", 3))]
        g.maintain(once=True)
        assert (acme.get(User, "ann") or ANN).likes == 3


# --- base classes ------------------------------------------------------------------------------


class Content(Node):
    id: str
    title: str = ""


class Page(Content):
    text: str = ""


class Image(Content):
    width: int = 0


class Shows(Edge["Content", Content]):
    at: int = 0


def test_a_base_class_is_all_its_subclasses_in_the_graph() -> None:
    page, image = Page(id="1"), Image(id="1", width=3)
    with Graph(SQLiteStore(":memory:"), [Page, Image, Shows]) as g:
        assert [*g._schema.nodes] == [Page, Image]
        g.put_many([page, image])
        g.connect(Shows, page, image)
        g.connect(Shows, Page.ref("1"), page)
        assert targets(g.out(page, Shows)) == [Image.ref("1"), Page.ref("1")]
        assert [node for _, node in g.into(image, Shows).nodes()] == [page]
        with pytest.raises(InvalidKey, match=r"pass the node, or Page.ref\(…\) or Image.ref"):
            g.connect(Shows, page, "1")
        with pytest.raises(InvalidKey, match=r"pass the node, or Page.ref\(…\) or Image.ref"):
            g.put(Shows(source=page, target="1"))
        with pytest.raises(InvalidKey, match="a Page or a Image is needed, got Content '1'"):
            g.put(Shows(source=page, target=Content.ref("1")))
    with Graph(SQLiteStore(":memory:"), [Content, Page, Image, Shows]) as g:
        g.put_many([page, image, Content(id="1")])
        g.connect(Shows, Content.ref("1"), page)
        g.connect(Shows, Content(id="1"), image)
        assert targets(g.out(Content.ref("1"), Shows)) == [Image.ref("1"), Page.ref("1")]


def test_a_class_that_joins_later_reads_what_was_stored() -> None:
    class Video(Content):
        length: int = 0

    store = SQLiteStore(":memory:")
    g = Graph(store, [Page, Image, Shows])
    g.put_many([Page(id="1"), Image(id="2")])
    g.connect(Shows, Page.ref("1"), Image.ref("2"))
    later = Graph(store, [Page, Image, Video, Shows])
    later.put(Video(id="3"))
    later.connect(Shows, Page.ref("1"), Video.ref("3"))
    assert targets(later.out(Page.ref("1"), Shows)) == [Image.ref("2"), Video.ref("3")]
    # A graph without the class does not know these edges: they are among the others.
    assert targets(g.out(Page.ref("1"), Shows)) == [Image.ref("2")]
    assert g.out(Page.ref("1"), Shows).count() == 1
    assert len(g.collection(Page.ref("1")).others) == 1
    assert g.out(Page.ref("1"), Shows).page(limit=5).next is None
    assert len(list(g.scan().others)) == 2


def test_an_end_of_one_class_holds_an_id() -> None:
    class Reads(Edge[User, Content]):
        pass

    edge = Reads(source=ANN, target=Content(id="c"))
    assert (edge.source, edge.target) == ("ann", "c")
    with Graph(SQLiteStore(":memory:"), [Content, Guest, Follows]) as g:
        g.put_many([Guest(id="r"), Content(id="c")])
        assert g.connect(Follows, "r", "c").target == "c"


class Guest(Node):
    id: str


class Follows(Edge[Guest, Content]):
    pass


# --- what is refused ---------------------------------------------------------------------------


def test_what_is_refused_when_a_graph_opens() -> None:
    class Song(Node):
        id: str
        title: int = 0
        plays: int = 0

    class Album(Node):
        id: str
        title: str = ""

    class Heard(Edge[Album, Song | Album]):
        title: Annotated[str, Copy("target.title")] = ""

    class Played(Edge[Album, Song | Album]):
        plays: Annotated[int, Copy("target.plays")] = 0

    class Mirror(Edge[Song | Album, Album], symmetric=True):
        pass

    class Plain(Edge[Album, Song | Album]):
        pass

    class Made(Edge[Song, Song]):
        pass

    def refused(why: str, *models: Any, **options: Any) -> None:
        with pytest.raises(InvalidModel, match=why):
            AdjacencyList(**options).bind(Schema(models))

    refused("reads 'title' of Song | Album, but they have it with different types", Song, Album, Heard)
    refused("reads 'plays' of Song | Album, but Album has no such field", Song, Album, Played)
    refused("a symmetric edge joins a class to itself", Song, Album, Mirror)
    same = {Song: Keys(partition="x#{id}", sort="song"), Album: Keys(partition="x#{id}", sort="album")}
    refused(r"ends at Song or Album, whose keys can be the same", Song, Album, Plain, keys=same)
    refused(
        r"\{target.id\} is part of an id, .* use \{target\}", Song, Album, Plain, keys={Plain: Keys(sort="{target.id}")}
    )
    refused("does not contain its target", Song, Album, Plain, keys={Plain: Keys(sort="{label}")})
    apart = {Song: Keys(partition="songs", sort="{id}")}

    class Leads(Edge[Song | Album, Album]):
        pass

    refused("nodes of Song share a partition, so the keys of an edge would not say", Song, Album, Leads, keys=apart)

    class Fan(Node):
        id: str
        heard: Annotated[int, Sum("Loves", "Made", field="x")] = 0

    class Loves(Edge[Fan, Song | Album]):
        pass

    refused("a path goes through nodes of one class", Fan, Song, Album, Loves, Made)

    class Lost(Edge[Fan, "Song | Nothing"]):  # type: ignore[name-defined]
        pass

    refused("the target of Lost is Nothing, which is not a Node class", Fan, Song, Lost)

    class Movie(Node):
        id: str
        name: str = Field("", alias="Data")

    class Actor(Node):
        id: str
        name: str = Field("", alias="Data")

    class Knows(Edge[Movie, Movie | Actor]):
        name: Annotated[str, Copy("source.name"), Field(alias="Data")] = ""

    with pytest.raises(InvalidModel, match=r"the target of Knows is Movie \| Actor, but .* one class at each end"):
        MaterializedGraph.as_published(2).bind(Schema([Movie, Actor, Knows]))


def test_edges_in_a_partition_of_their_own() -> None:
    class Doc(Node):
        id: str

    class Para(Child[Doc]):
        id: str

    class Cites(Edge[Doc, Doc | Para]):
        pass

    layout = AdjacencyList(reverse=None, keys={Cites: Keys(partition="CITES", sort="{target}#{source}")}, escape=True)
    with Graph(SQLiteStore(":memory:"), [Doc, Para, Cites], layout) as g:
        g.put_many([Doc(id="1"), Doc(id="2"), Para(parent="1", id="7")])
        g.connect(Cites, "2", Doc.ref("1"))
        g.connect(Cites, "2", Para.ref(("1", "7")))
        # The key of the paragraph begins with that of the document.
        assert targets(g.into(Doc.ref("1"), Cites)) == [Doc.ref("1")]
        assert g.into(Doc.ref("1"), Cites).count() == 1
        assert targets(g.into(Para.ref(("1", "7")), Cites)) == [Para.ref(("1", "7"))]
        assert g.delete(Para, ("1", "7"), edges="found")
        assert targets(g.scan(Cites)) == [Doc.ref("1")]


def test_begins_with_needs_one_class(g: Graph) -> None:
    with pytest.raises(InvalidValue, match=r"narrow the query to one node with within\(target=…\)"):
        g.out(ANN, Liked).begins_with("1")
    with pytest.raises(InvalidValue, match="there is no range of it"):
        g.out(ANN, Liked).between(Post.ref("1"), Post.ref("2"))


def test_nodes_that_expire_take_their_edges_along() -> None:
    class Session(Node):
        id: str
        until: Annotated[dt.datetime | None, Expires()] = None

    class Opened(Edge[User, Session | Post]):
        pass

    with Graph(SQLiteStore(":memory:"), [User, Post, Comment, Bot, Line, Liked, Session, Opened]) as g:
        g.put_many([ANN, Session(id="s"), POST])
        g.connect(Opened, ANN, Session.ref("s"))
        layout = g._layout
        key = layout.edge_key(layout.schema.edge(Opened), "ann", Session.ref("s"), {})
        # Maintenance compares the time of the write with that of the expiry.
        assert WRITTEN in raw(g, Get(layout.table, key))[0].item
        assert g.delete(Session, "s")
        assert g.out(ANN, Opened).count() == 0
