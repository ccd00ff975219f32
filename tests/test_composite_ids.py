"""Nodes whose ids have several fields: every verb, over each kind of keys and each store, and what it asks for."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    AlreadyExists,
    AsyncGraph,
    Components,
    Copy,
    Count,
    Edge,
    Graph,
    Indexed,
    InvalidCursor,
    InvalidKey,
    InvalidModel,
    Keys,
    Latest,
    MaterializedGraph,
    Max,
    Node,
    NotFound,
    Sum,
    Unique,
    field,
)
from adjoin.layouts.interface import Layout
from adjoin.plans import deletion
from adjoin.requests import Get, Put
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from tests.servers.open import Stores


class Repo(Node, key=("owner", "number")):
    owner: str
    number: int
    title: str = ""
    topic: Annotated[str | None, Indexed()] = None
    language: Annotated[str | None, Indexed()] = None
    slug: Annotated[str | None, Unique()] = None
    forks: Annotated[int, Count("Fork", direction="into")] = 0
    best: Annotated[int | None, Max("Starred", field="weight", direction="into")] = None
    stars: Annotated[int, Sum("Starred", field="weight", direction="into", consistency="transaction")] = 0


class User(Node):
    id: str
    starred: Annotated[int, Count("Starred")] = 0
    last: Annotated[dt.date | None, Latest("Starred", field="at", by="at")] = None


class Config(Node, key=()):
    theme: str = "light"


class Starred(Edge[User, Repo]):
    weight: int = 1
    at: dt.date = dt.date(2024, 1, 1)
    title: Annotated[str | None, Copy("target.title")] = None


class Fork(Edge[Repo, Repo], order="since"):
    since: int = 0


class Related(Edge[Repo, Repo], symmetric=True):
    pass


class Uses(Edge[Repo, Config]):
    pass


MODELS: list[Any] = [Repo, User, Config, Starred, Fork, Related, Uses]
LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "materialized graph": MaterializedGraph(),
    "in two keys": AdjacencyList(keys={Repo: Keys(partition="o#{owner}", sort="r#{number:04}")}),
}
ANN = Repo(owner="ann", number=7, title="adjoin", topic="databases", language="python", slug="adjoin")
OTHER = Repo(owner="ann", number=70, title="other", topic="databases", language="rust")
BOB = Repo(owner="bob", number=7, title="bits", topic="networks", language="python", slug="bits")


@pytest.fixture(params=[(store, layout) for store in ("embedded", "serve", "ministack") for layout in LAYOUTS])
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Any]:
    where, layout = request.param
    store: Store = SQLiteStore(":memory:") if where == "embedded" else servers.open(where)
    graph = Graph(store, MODELS, LAYOUTS[layout], cursor_secret="s")
    graph.create_table()
    graph.put_many([ANN, OTHER, BOB, User(id="u"), User(id="v"), Config(theme="dark")])
    yield graph
    graph.drop_table()
    graph.close()


def test_nodes(g: Any) -> None:
    with g.meter() as m:
        assert g.get(Repo, ("ann", 7)) == ANN
    assert m.requests == 1
    assert g.get(Repo, ["ann", "7"]) == ANN == g.get(Repo, ANN) == g.get(Repo, Repo.ref(owner="ann", number=7))
    assert g.get(Repo, ("ann", 8)) is None
    assert g.get(Config, ()) == Config(theme="dark") == g.get(Config, Config.ref())
    with g.meter() as m:
        assert g.get_many(Repo, [("bob", 7), ("no", 1), ANN, ("bob", 7)]) == [BOB, None, ANN, BOB]
    assert m.requests == 1
    with pytest.raises(AlreadyExists, match=r"Repo \('ann', 7\) already exists"):
        g.add(ANN)
    with pytest.raises(InvalidKey, match=r"the id of a Repo is \(owner, number\)"):
        g.get(Repo, "ann")
    with g.meter() as m:
        assert g.update(Repo, ("ann", 70), title="new").title == "new"
    assert m.requests <= 2
    with pytest.raises(NotFound, match=r"there is no Repo \('ann', 71\)"):
        g.update(Repo, ("ann", 71), title="x")
    assert g.delete(Repo, ("ann", 70))
    assert not g.delete(Repo.ref(("ann", 70)))
    assert [g.get(Repo, each) for each in (ANN, OTHER, BOB)] == [ANN, None, BOB]


def test_edges(g: Any) -> None:
    made = g.connect(Starred, "u", ANN, weight=2)
    assert (made.source, made.target, made.title) == ("u", ("ann", 7), "adjoin")
    g.connect(Starred, "u", ["bob", 7], weight=3)
    g.connect(Starred, "v", Repo.ref(("ann", 7)))
    with pytest.raises(NotFound, match="71"):
        g.connect(Starred, "u", ("ann", 71))
    with g.meter() as m:
        assert [edge.target for edge in g.out("u", Starred)] == [("ann", 7), ("bob", 7)]
    assert m.requests == 1
    with g.meter() as m:
        assert [edge.source for edge in g.into(("ann", 7), Starred)] == ["u", "v"]
    assert m.requests == 1
    assert list(g.into(OTHER, Starred)) == []
    assert g.edge(Starred, "u", ("ann", 7)) == made
    assert g.update(Starred, "u", ("ann", 7), weight=5).weight == 5
    pairs = list(g.out("u", Starred).nodes())
    assert [(edge.target, node.title) for edge, node in pairs] == [(("ann", 7), "adjoin"), (("bob", 7), "bits")]
    assert [edge.target for edge in g.out("u", Starred).within(target=("bob", 7))] == [("bob", 7)]
    assert [edge.target for edge in g.out("u", Starred).begins_with("bo")] == [("bob", 7)]
    assert g.disconnect(Starred, "u", ("bob", 7))
    assert g.out("u", Starred).count() == 1


def test_edges_between_them(g: Any) -> None:
    for number, target in enumerate([BOB, OTHER]):
        g.connect(Fork, ANN, target, since=-number)
    g.connect(Fork, OTHER, BOB, since=5)
    g.connect(Related, ANN, OTHER)
    g.connect(Uses, ANN, ())
    with g.meter() as m:
        assert [edge.target for edge in g.out(ANN, Fork)] == [("ann", 70), ("bob", 7)]
        assert [edge.source for edge in g.into(BOB, Fork)] == [("ann", 7), ("ann", 70)]
        assert [edge.target for edge in g.out(OTHER, Related)] == [("ann", 7)]
        assert [edge.source for edge in g.into(ANN, Related)] == [("ann", 70)]
        assert [edge.source for edge in g.into(Config.ref(), Uses)] == [("ann", 7)]
    assert m.requests == 5
    assert [edge.target for edge in g.out(ANN, Fork).between(None, -1)] == [("ann", 70)]
    around = g.collection(ANN)
    assert (around.node, around.others) == (g.get(Repo, ANN), [])
    assert sorted((type(edge).__name__, edge.target) for edge in around.edges) == [
        ("Fork", ("ann", 70)),
        ("Fork", ("bob", 7)),
        ("Related", ("ann", 70)),
        ("Uses", ()),
    ]
    assert [edge.source for edge in g.collection(BOB, direction="into").edges] == [("ann", 7), ("ann", 70)]
    assert g.collection(Config.ref()).node == Config(theme="dark")
    g.delete(ANN)
    assert [edge.source for edge in g.into(BOB, Fork)] == [("ann", 70)]
    assert list(g.out(OTHER, Related)) == list(g.into(Config.ref(), Uses)) == []
    assert g.get(Repo, OTHER) is not None


def test_found_by_fields(g: Any) -> None:
    assert [repo.title for repo in g.find(Repo, field("topic") == "databases")] == ["adjoin", "other"]
    query = g.find(Repo, field("language").exists())
    first = query.page(limit=2)
    assert [repo.title for repo in first] == ["adjoin", "bits"]
    assert [repo.title for repo in query.page(limit=2, after=first.next)] == ["other"]
    assert g.get(Repo, slug="bits") == BOB
    with pytest.raises(AlreadyExists, match=r"'bits' belongs to Repo \('bob', 7\)"):
        g.put(Repo(owner="cy", number=1, slug="bits"))
    g.update(Repo, BOB, slug=None, topic="databases")
    g.put(Repo(owner="cy", number=1, slug="bits"))
    assert g.get(Repo, slug="bits").owner == "cy"
    assert g.find(Repo, field("topic") == "databases").count() == 3


def test_pages_of_edges(g: Any) -> None:
    repos = [Repo(owner=f"o{number // 5}", number=number) for number in range(20)]
    g.put_many([*repos, *(Fork(source=ANN, target=repo, since=repo.number) for repo in repos)])
    query = g.out(ANN, Fork)
    found: list[Any] = []
    token = None
    while True:
        page = query.page(limit=7, after=token)
        found += [edge.target for edge in page]
        token = page.next
        if token is None:
            break
    assert found == [(repo.owner, repo.number) for repo in repos]
    with pytest.raises(InvalidCursor):
        g.out(OTHER, Fork).page(after=query.page(limit=1).next)


def test_transactions(g: Any) -> None:
    with g.transaction() as t:
        t.put(Repo(owner="cy", number=1))
        t.connect(Fork, ("cy", 1), BOB)
        t.connect(Starred, "u", ("cy", 1), weight=4)
        t.update(Repo, ("ann", 7), title="renamed")
        t.delete(Repo, ("ann", 70))
    assert g.get(Repo, ("cy", 1)).stars == 4
    assert g.get(Repo, ("ann", 7)).title == "renamed"
    assert g.get(Repo, ("ann", 70)) is None
    assert [edge.source for edge in g.into(BOB, Fork)] == [("cy", 1)]


def test_a_delete_of_many_edges(g: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "MAX_TRANSACTION", 4)
    g.put_many(Fork(source=ANN, target=("x", number)) for number in range(9))
    g.put_many(Fork(source=OTHER, target=("x", number)) for number in range(3))
    g.put_many(Fork(source=("y", number), target=ANN) for number in range(9))
    assert g.delete(ANN)
    assert list(g.out(ANN, Fork)) == list(g.into(ANN, Fork)) == []
    assert g.out(OTHER, Fork).count() == 3
    assert not g.delete(ANN)


def maintained(layout: Layout) -> Graph:
    graph = Graph(":memory:", MODELS, layout)
    graph.put_many([ANN, OTHER, BOB, User(id="u"), User(id="v"), Config()])
    return graph


@pytest.mark.parametrize("name", LAYOUTS)
def test_aggregates_and_copies(name: str) -> None:
    with maintained(LAYOUTS[name]) as g:
        g.connect(Starred, "u", ANN, weight=2, at=dt.date(2024, 2, 2))
        g.connect(Starred, "v", ANN, weight=9)
        g.connect(Starred, "u", OTHER, weight=3)
        g.connect(Fork, BOB, ANN)
        g.connect(Fork, OTHER, ANN)
        g.update(Repo, ANN, title="renamed")
        g.maintain(once=True)
        ann, other = g.get_many(Repo, [ANN, OTHER])
        assert ann is not None
        assert other is not None
        assert (ann.forks, ann.best, ann.stars) == (2, 9, 11)
        assert (other.forks, other.best, other.stars) == (0, 3, 3)
        user = g.get(User, "u")
        assert user is not None
        assert (user.starred, user.last) == (2, dt.date(2024, 2, 2))
        assert [edge.title for edge in g.into(ANN, Starred)] == ["renamed", "renamed"]
        g.disconnect(Starred, "v", ANN)
        g.delete(OTHER)
        g.maintain(once=True)
        ann, user = g.get(Repo, ANN), g.get(User, "u")
        assert ann is not None
        assert (ann.forks, ann.best, ann.stars) == (1, 2, 2)
        assert user is not None
        assert user.starred == 1
        assert g.maintain(once=True).changes == 0
        assert [finding for finding in g.verify().findings if finding.count] == []


@pytest.mark.parametrize("name", ["adjacency list", "in two keys"])
def test_what_a_batch_job_finds_and_mends(name: str) -> None:
    with maintained(LAYOUTS[name]) as g:
        g.connect(Starred, "u", ANN, weight=2)
        g.connect(Fork, BOB, ANN)
        g.connect(Fork, OTHER, ANN)
        g.connect(Related, ANN, OTHER)
        g.maintain(once=True)
        store, layout = g._store, g._layout
        kind = layout.schema.node(Repo)
        key = layout.node_key(kind, ("ann", 7))
        spoilt = _stored(store, layout, key) | {"forks": {"N": "5"}}
        _put(store, layout, spoilt)
        _put(store, layout, layout.items(Fork(source=("nobody", 1), target=("ann", 7)))[0])
        found = {(each.kind, each.name): each for each in g.verify().findings if each.count}
        assert found["aggregate", "REPO.forks"].examples == [{"node": ("ann", 7), "stored": 5, "computed": 3}]
        assert found["dangling", "FORK"].examples[0]["source"] == ("nobody", 1)
        g.verify(repair=["dangling", "aggregate"])
        g.rebuild()
        ann = g.get(Repo, ANN)
        assert ann is not None
        assert ann.forks == 2
        assert [finding for finding in g.verify().findings if finding.count] == []


def _stored(store: Any, layout: Any, key: Any) -> Any:
    (response,) = store.execute([Get(layout.table, key, consistent=True)])
    return dict(response.item)


def _put(store: Any, layout: Any, item: Any) -> None:
    store.execute([Put(layout.table, item)])


def test_of_tenants() -> None:
    for layout in LAYOUTS.values():
        with Graph(":memory:", MODELS, layout) as g:
            acme = g.for_tenant("acme")
            for graph in (g, acme):
                graph.put_many([ANN, BOB, User(id="u")])
            acme.connect(Fork, BOB, ANN)
            acme.put(Config(theme="acme"))
            g.maintain(once=True)
            theirs, ours = acme.get(Repo, ANN), g.get(Repo, ANN)
            assert theirs is not None
            assert ours is not None
            assert (theirs.forks, ours.forks) == (1, 0)
            assert g.get(Config, ()) is None
            assert list(g.into(ANN, Fork)) == []
            report = g.verify()
            assert [finding for finding in report.findings if finding.count] == []
            assert report.tenants == ("acme",)


def test_changes_and_explain() -> None:
    with maintained(AdjacencyList()) as g:
        changed = [change.new for change in g.changes()]
        assert ANN in changed
        assert Config() in changed
        assert len(g.explain(g.get, Repo, ("ann", 7)).requests) == 1
        assert len(g.explain(g.out, ("ann", 7), Fork).requests) == 1
        assert g.explain(g.update, Repo, ("ann", 7), title="x").requests


def test_of_an_async_graph() -> None:
    async def used() -> None:
        async with AsyncGraph(":memory:", MODELS) as g:
            await g.put_many([ANN, BOB])
            assert await g.get(Repo, ("ann", 7)) == ANN
            await g.connect(Fork, ANN, ("bob", 7))
            assert [edge.target async for edge in g.out(("ann", 7), Fork)] == [("bob", 7)]

    asyncio.run(used())


def test_summaries_that_would_hold_an_id_are_refused() -> None:
    class Page(Node, key=("site", "path")):
        site: str
        path: str
        part: Annotated[str, Components("Links")] = ""

    class Links(Edge[Page, Page]):
        pass

    with pytest.raises(InvalidModel, match=r"Page.part would hold ids of Page, which have several parts"):
        Graph(":memory:", [Page, Links])
