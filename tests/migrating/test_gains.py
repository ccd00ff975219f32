"""What a class gains while it has stored items: a query finds all of them or says that a migration is due.

It is so for each mark and keyword, also without a record of declarations and for tenants; and what an older program
writes meanwhile is found when the migration has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import computed_field

from adjoin import (
    AdjacencyList,
    AlreadyExists,
    Child,
    Copy,
    Count,
    Edge,
    Graph,
    Index,
    Indexed,
    Keys,
    MaterializedGraph,
    MigrationDue,
    Node,
    Stored,
    Unique,
    field,
)
from adjoin.layouts.interface import Layout
from adjoin.requests import Delete
from adjoin.stores.sqlite import SQLiteStore

Models = list[type[Any]]


class Post(Node):
    id: str
    tags: list[str] = []
    first: str = "a"
    kind: str = "short"


class Reader(Node):
    id: str


class Likes(Edge[Reader, Post]):
    pass


class Pays(Edge[Reader, Reader], label="PAYS"):
    pass


class Note(Child[Post], key=("at",)):
    at: int
    text: str = "x"


class Version(Node, key=("owner", "name")):
    owner: str
    name: str
    stars: int = 0


def tagged() -> Models:
    class Post(Node):
        id: str
        tags: Annotated[list[str], Indexed(elements=True)] = []

    return [Post]


def computed(mark: Any) -> Models:
    class Post(Node):
        id: str
        first: str = "a"

        @computed_field  # type: ignore[prop-decorator]
        @property
        def full(self) -> Annotated[str, mark]:
            return f"{self.first}-{self.id if isinstance(mark, Unique) else ''}"

    return [Post]


def family() -> Models:
    class Post(Node, discriminator="kind"):
        id: str
        kind: str = "short"
        first: Annotated[str, Indexed()] = "a"

    class Short(Post):
        kind: Literal["short"] = "short"

    class Long(Post):
        kind: Literal["long"] = "long"

    return [Post, Short, Long]


def limited(**keywords: Any) -> Models:
    class Likes(Edge[Reader, Post], **keywords):
        pass

    return [Reader, Post, Likes]


def symmetric(**keywords: Any) -> Models:
    class Pays(Edge[Reader, Reader], label="PAYS", symmetric=True, **keywords):
        amount: int = 0

    return [Reader, Pays]


def ranked() -> Models:
    class Post(Node):
        id: str
        liked: Annotated[int, Count("Likes"), Indexed()] = 0

    class Likes(Edge[Reader, Post]):
        pass

    return [Reader, Post, Likes]


def copied() -> Models:
    class Likes(Edge[Reader, Post]):
        first: Annotated[str, Copy("target.first"), Indexed()] = ""

    return [Reader, Post, Likes]


def noted() -> Models:
    class Note(Child[Post], key=("at",)):
        at: int
        text: Annotated[str, Indexed()] = "x"

    return [Post, Note]


def starred() -> Models:
    class Version(Node, key=("owner", "name")):
        owner: str
        name: str
        stars: Annotated[int, Indexed()] = 0

    return [Version]


@dataclass
class Gain:
    older: Models
    newer: Models
    write: Callable[[Models, int], list[Any]]
    ask: Callable[[Graph, Models], Any]
    """How many of what is stored the newer program finds, in the way that is new."""


def posts(models: Models, at: int) -> list[Any]:
    return [models[0](id=f"P{at}", **({"tags": ["x", f"t{at}"]} if "tags" in models[0].model_fields else {}))]


def liked(models: Models, at: int) -> list[Any]:
    return [models[0](id=f"R{at}"), models[1](id=f"P{at}"), models[2](source=f"R{at}", target=f"P{at}")]


def paid(models: Models, at: int) -> list[Any]:
    return [models[0](id=f"R{at}"), models[1](source=f"R{at}", target=f"R{at + 100}")]


def refused(graph: Graph, edges: list[Any]) -> int:
    found = 0
    for edge in edges:
        try:
            graph.put(edge)
        except AlreadyExists:
            found += 1
    return found


GAINS: dict[str, Gain] = {
    "elements": Gain([Post], tagged(), posts, lambda g, m: g.find(m[0], field("tags").contains("x")).count()),
    "stored": Gain([Post], computed(Stored()), posts, lambda g, m: g.scan(m[0]).where(field("full") == "a-").count()),
    "computed": Gain([Post], computed(Indexed()), posts, lambda g, m: g.find(m[0], field("full") == "a-").count()),
    "claimed": Gain(
        [Post], computed(Unique()), posts, lambda g, m: sum(bool(g.get(m[0], full=f"a-P{at}")) for at in range(5))
    ),
    "family": Gain([Post], family(), posts, lambda g, m: g.find(m[1], field("first") == "a").count()),
    "one target": Gain(
        [Reader, Post, Likes],
        limited(one_target=True),
        liked,
        lambda g, m: refused(g, [m[2](source=f"R{at}", target="other") for at in range(4)]),
    ),
    "one source": Gain(
        [Reader, Post, Likes],
        limited(one_source=True),
        liked,
        lambda g, m: refused(g, [m[2](source="other", target=f"P{at}") for at in range(4)]),
    ),
    "symmetric": Gain(
        [Reader, Pays],
        symmetric(),
        paid,
        lambda g, m: sum(g.out(f"R{at + 100}", m[1]).count() for at in range(4)),
    ),
    "one of symmetric": Gain(
        [Reader, Pays],
        symmetric(one_target=True),
        paid,
        lambda g, m: refused(g, [m[1](source=f"R{at + 100}", target="other") for at in range(4)]),
    ),
    "ranking": Gain(
        [Reader, Post, Likes], ranked(), liked, lambda g, m: g.find(m[1], field("liked").between(0, 9)).count()
    ),
    "indexed copy": Gain(
        [Reader, Post, Likes], copied(), liked, lambda g, m: g.find(m[2], field("first") == "a").count()
    ),
    "child": Gain(
        [Post, Note],
        noted(),
        lambda m, at: [m[0](id="P"), m[1](parent="P", at=at)],
        lambda g, m: g.find(m[1], field("text") == "x").count(),
    ),
    "composite id": Gain(
        [Version],
        starred(),
        lambda m, at: [m[0](owner="ann", name=f"n{at}")],
        lambda g, m: g.find(m[0], field("stars") == 0).count(),
    ),
}


@pytest.mark.parametrize("layout", [None, MaterializedGraph()])
@pytest.mark.parametrize("tenant", [None, "acme"])
@pytest.mark.parametrize("name", GAINS)
def test_nothing_that_was_stored_before_is_missed(name: str, tenant: str | None, layout: Layout | None) -> None:
    gain = GAINS[name]
    for has_record in (True, False):
        store = SQLiteStore(":memory:")
        first = Graph(store, gain.older, layout)
        older = first if tenant is None else first.for_tenant(tenant)
        for at in range(3):
            older.put_many(gain.write(gain.older, at))
        if not has_record:
            store.execute([Delete(first._layout.table, first._layout.declarations_key)])
        whole = Graph(store, gain.newer, layout)
        newer = whole if tenant is None else whole.for_tenant(tenant)
        # Copies and counts are filled by maintenance.
        whole.maintain(once=True)
        for _ in range(2):
            with pytest.raises(MigrationDue):
                gain.ask(newer, gain.newer)
        assert not whole.migrate().ended
        with pytest.raises(MigrationDue):
            gain.ask(newer, gain.newer)
        older.put_many(gain.write(gain.older, 3))
        assert whole.migrate(finish=True).ended
        whole.maintain(once=True)
        assert gain.ask(newer, gain.newer) == 4
        assert not whole.migrate(dry_run=True)


def test_verify_finds_and_repairs_items_without_a_computed_field_or_a_field_that_is_an_index_key() -> None:
    class Placed(Node, label="POST"):
        id: str
        city: str = "Porto"
        area: str | None = None

        @computed_field  # type: ignore[prop-decorator]
        @property
        def where(self) -> Annotated[str, Stored()]:
            return f"in {self.city}"

    class Plain(Node, label="POST"):
        id: str

    store = SQLiteStore(":memory:")
    Graph(store, [Plain]).put_many(Plain(id=f"P{at}") for at in range(3))
    indexes = [Index("ByCity", "city", "id_"), Index("ByArea", "area")]
    g = Graph(store, [Placed], AdjacencyList(indexes=indexes, keys={Placed: Keys(attributes={"id_": "{id}"})}))
    g.put(Placed(id="new"))
    assert [(each.kind, each.count) for each in g.verify("scan").findings] == [("index entry", 3)]
    assert g.verify("scan", repair=True).left == 0
    assert g.migrate(dry_run=True).items == 0
    assert g.migrate(finish=True).ended
    assert g.find(Placed, field("city") == "Porto").count() == 4
    assert g.scan(Placed).where(field("where") == "in Porto").count() == 4


class Scored(Node, label="POST"):
    id: str
    score: Annotated[str, Indexed()]
    code: Annotated[str, Unique()]
    other: str = "7"


class Rescored(Node, label="POST"):
    id: str
    score: Annotated[int, Indexed()]
    code: Annotated[int, Unique()]
    other: int = 7


class Rates(Edge[Scored, Scored], label="RATES", order="at"):
    at: str


class Rerates(Edge[Rescored, Rescored], label="RATES", order="at"):
    at: int


@pytest.mark.parametrize("layout", [AdjacencyList(), MaterializedGraph()])
def test_values_of_another_type_are_spelled_in_another_way_in_keys(layout: Layout) -> None:
    store = SQLiteStore(":memory:")
    older = Graph(store, [Scored, Rates], layout)
    older.put_many(Scored(id=f"P{at}", score=str(at), code=str(at)) for at in (3, 10, 20))
    older.put_many(Rates(source="P3", target=f"P{at}", at=str(at)) for at in (3, 10, 20))
    g = Graph(store, [Rescored, Rerates], layout)
    assert {(each.kind, each.name) for each in g.differences()} >= {("indexed", "score"), ("unique", "code")}
    for ask in (lambda: g.find(Rescored, field("score") > 5).count(), lambda: g.get(Rescored, code=10)):
        with pytest.raises(MigrationDue):
            ask()
    assert [each.at for each in g.out("P3", Rerates)] == [3, 10, 20]
    assert g.migrate(finish=True).ended
    assert [each.score for each in g.find(Rescored, order="score")] == [3, 10, 20]
    assert g.get(Rescored, code=10) == Rescored(id="P10", score=10, code=10)
    assert [each.at for each in g.out("P3", Rerates)] == [3, 10, 20]
    assert g.differences() == []


@pytest.mark.parametrize("layout", [None, MaterializedGraph()])
def test_no_call_overlooks_edges_that_have_just_become_symmetric(layout: Layout | None) -> None:
    store = SQLiteStore(":memory:")
    older = Graph(store, [Reader, Pays], layout)
    older.put_many([*(Reader(id=id) for id in "abc"), Pays(source="c", target="b"), Pays(source="a", target="b")])
    models = symmetric()
    pays = models[1]
    g = Graph(store, models, layout)
    asked: list[Callable[[], Any]] = [
        lambda: list(g.out("b", pays)),
        lambda: g.edge(pays, "b", "a"),
        lambda: g.collection(Reader.ref("b")).edges,
        lambda: list(g.scan(pays)),
        lambda: list(g.scan()),
        lambda: g.count(pays),
        lambda: g.disconnect(pays, "b", "a"),
        lambda: g.update(pays, "b", "a", amount=3),
        lambda: g.delete(Reader, "b"),
        lambda: g.snapshot(edges=[pays]),
    ]
    for ask in asked:
        with pytest.raises(MigrationDue):
            ask()
    assert g.delete(Reader, "b", edges="found")
    older.put(Reader(id="b"))
    assert g.migrate(finish=True).ended
    assert g.count(pays) == 2
    assert g.delete(Reader, "b")
    assert g.count(pays) == 0


def test_a_node_is_not_deleted_without_edges_that_an_index_does_not_have_yet() -> None:
    store = SQLiteStore(":memory:")
    older = Graph(store, [Reader, Pays], AdjacencyList(reverse=None))
    older.put_many([Reader(id="a"), Reader(id="b"), Pays(source="a", target="b")])
    g = Graph(store, [Reader, Pays])
    with pytest.raises(MigrationDue):
        g.delete(Reader, "b")
    assert g.migrate(finish=True).ended
    assert g.delete(Reader, "b")
    assert g.count(Pays) == 0
