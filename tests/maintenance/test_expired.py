"""Nodes that expire: their edges are not those of a node that comes later under the same id."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from adjoin import Edge, Expires, Graph, Node, Unique, aws
from adjoin.aggregates import Count
from adjoin.expressions import Remove, attribute
from adjoin.layouts.interface import WRITTEN
from adjoin.plans import managed_fields
from adjoin.plans.maintenance.affected import apply_changes, remove_left
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import BatchGet, Delete, ItemChange, ReadChanges, Update
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from tests.maintenance.simulation import Process, stored

NOW = 1_700_000_000.0


class Session(Node):
    id: str
    until: Annotated[dt.datetime | None, Expires()] = None
    pages: Annotated[int, Count("Visit", consistency="transaction")] = 0


class Page(Node):
    id: str
    visits: Annotated[int, Count("Visit", consistency="transaction")] = 0
    likes: Annotated[int, Count("Like")] = 0


class Visit(Edge[Session, Page]):
    pass


class Like(Edge[Session, Page]):
    pass


class Beside(Edge[Session, Session], symmetric=True):
    pass


class Link(Edge[Page, Page]):
    pass


MODELS: list[Any] = [Session, Page, Visit, Like, Beside, Link]


class Guest(Node):
    id: str
    until: Annotated[dt.datetime | None, Expires()] = None


class Desk(Node):
    id: str


class At(Edge[Guest, Desk]):
    pass


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(managed_fields, "clock", clock)
    return clock


@pytest.fixture
def store(clock: Clock) -> Iterator[SQLiteStore]:
    store = SQLiteStore(":memory:", clock=clock)
    yield store
    store.close()


@pytest.fixture
def g(store: SQLiteStore) -> Graph:
    return Graph(store, MODELS)


def session(clock: Clock, id: str = "s", seconds: float = 1000) -> Session:
    return Session(id=id, until=dt.datetime.fromtimestamp(clock.now + seconds, dt.UTC))


def fill(g: Graph, clock: Clock, edges: int = 3) -> None:
    g.put_many([session(clock), session(clock, "t", 10_000), *(Page(id=f"p{number}") for number in range(edges))])
    for number in range(edges):
        g.connect(Visit, "s", f"p{number}")
        g.connect(Like, "s", f"p{number}")
    g.connect(Beside, "t", "s")
    g.put(Link(source="p0", target="p1"))


def expire(store: SQLiteStore, clock: Clock, seconds: float = 2000) -> None:
    clock.now += seconds
    assert store.sweep() == 1


def seen(g: Graph, id: str = "s") -> list[int]:
    return [g.out(id, Visit).count(), g.out(id, Like).count(), g.out(id, Beside).count(), g.out("t", Beside).count()]


@pytest.mark.parametrize("edges", [3, 120])
def test_edges_of_a_node_that_expired_go_with_the_stream(
    g: Graph, store: SQLiteStore, clock: Clock, edges: int
) -> None:
    fill(g, clock, edges)
    g.maintain(once=True)
    expire(store, clock)
    assert g.get(Session, "s") is None
    assert seen(g) == [edges, edges, 1, 1], "until maintain has seen it"
    g.maintain(once=True)
    assert seen(g) == [0, 0, 0, 0]
    g.put(session(clock))
    assert seen(g) == [0, 0, 0, 0]
    g.maintain(once=True)
    pages = [page for page in g.get_many(Page, [f"p{number}" for number in range(edges)]) if page is not None]
    assert {(page.visits, page.likes) for page in pages} == {(0, 0)}
    assert g.get(Session, "s").pages == 0  # type: ignore[union-attr]
    assert g.edge(Link, "p0", "p1") is not None
    assert g.get(Session, "t") is not None


def test_what_was_done_about_a_node_that_expired_does_not_come_again(store: SQLiteStore, clock: Clock) -> None:
    """Nothing is counted here, so that the expiry alone is what was applied; where the stream was read is stored."""
    models: list[Any] = [Guest, Desk, At]
    with Graph(store, models) as g:
        until = dt.datetime.fromtimestamp(clock.now + 1000, dt.UTC)
        g.put_many([Guest(id="a", until=until), Desk(id="d"), At(source="a", target="d")])
        g.maintain(once=True)
        expire(store, clock)
        assert g.maintain(once=True).changes > 0
        assert g.edge(At, "a", "d") is None
        assert g.maintain(once=True).changes == 0


def test_an_edge_that_goes_while_its_node_is_looked_at_is_gone(g: Graph, store: SQLiteStore, clock: Clock) -> None:
    fill(g, clock)
    expire(store, clock)
    layout = g._layout
    removing = Process(g, remove_left(layout, layout.schema.node(Session), "s", clock.now), "maintainer")
    while not removing.is_about(BatchGet):
        removing.step(random.Random(0))
    assert g.disconnect(Visit, "s", "p1") is True
    removing.finish()
    assert seen(g) == [0, 0, 0, 0]
    g.maintain(once=True)
    assert [page and (page.visits, page.likes) for page in g.get_many(Page, ["p0", "p1", "p2"])] == [(0, 0)] * 3


def test_an_id_that_came_back_before_keeps_its_new_edges_only(g: Graph, store: SQLiteStore, clock: Clock) -> None:
    fill(g, clock)
    expire(store, clock)
    clock.now += 100
    g.put_many([session(clock), Page(id="new")])
    g.connect(Visit, "s", "new")
    g.put(Visit(source="s", target="p1"))
    g.put(Beside(source="s", target="t"))
    g.maintain(once=True)
    assert [edge.target for edge in g.out("s", Visit)] == ["new", "p1"]
    assert seen(g)[1:] == [0, 1, 1]
    assert g.get(Page, "p0").visits == 0  # type: ignore[union-attr]
    assert g.get(Page, "p1").visits == 1  # type: ignore[union-attr]
    assert g.get(Session, "s").pages == 2  # type: ignore[union-attr]


def test_an_edge_that_is_put_before_its_node_stays(g: Graph, store: SQLiteStore, clock: Clock) -> None:
    fill(g, clock)
    expire(store, clock)
    clock.now += 100
    g.put(Like(source="s", target="p2"))
    g.maintain(once=True)
    assert seen(g) == [0, 1, 0, 0]
    g.put(session(clock))
    assert [edge.target for edge in g.out("s", Like)] == ["p2"]


def test_clocks_may_differ_by_a_minute(g: Graph, store: SQLiteStore, clock: Clock) -> None:
    """What was written about when the node was removed is left alone: it may be of the next one."""
    fill(g, clock)
    for second, page in ((940, "early"), (944, "just before"), (945, "a minute"), (950, "late")):
        clock.now = NOW + second
        g.put(Like(source="s", target=page))
    expire(store, clock, 55)
    g.maintain(once=True)
    assert [edge.target for edge in g.out("s", Like)] == ["a minute", "late"]


def test_without_maintain_delete_removes_what_is_left(g: Graph, store: SQLiteStore, clock: Clock) -> None:
    fill(g, clock)
    expire(store, clock)
    assert g.delete(Session, "s") is True
    g.put(session(clock))
    assert seen(g) == [0, 0, 0, 0]
    assert g.get(Session, "s").pages == 0  # type: ignore[union-attr]


def test_a_node_is_there_until_it_is_removed(g: Graph, clock: Clock) -> None:
    """As get says. So what is put over it is the same node, prolonged, and keeps its edges."""
    fill(g, clock)
    g.put(session(clock, seconds=1))
    clock.now += 1.5
    assert g.get(Session, "s") is not None
    g.put(session(clock))
    g.maintain(once=True)
    assert seen(g) == [3, 3, 1, 1]
    assert g.get(Session, "s").pages == 3  # type: ignore[union-attr]


def test_edges_that_do_not_say_when_they_were_written(g: Graph, store: SQLiteStore, clock: Clock) -> None:
    """Such as those of former versions: they go if the node is still gone, and stay if it is there."""

    for is_back in (False, True):
        fill(g, clock)
        for item in stored(g):
            if WRITTEN in item:
                store.execute((Update("adjoin", g._layout.key_of(item), (Remove(attribute(WRITTEN)),)),))
        expire(store, clock)
        if is_back:
            g.put(session(clock))
        g.maintain(once=True)
        assert seen(g) == ([3, 3, 1, 1] if is_back else [0, 0, 0, 0])
        assert g.delete(Session, "s") in (True, False)
        assert g.delete(Session, "t") is True


def test_a_delete_is_no_expiry(g: Graph, clock: Clock) -> None:
    """A node that another program removes leaves its edges where they are, as ever."""

    fill(g, clock)
    g._store.execute((Delete("adjoin", g._layout.node_key(g._layout.schema.node(Session), "s")),))
    clock.now += 5000
    g.maintain(once=True)
    assert seen(g) == [3, 3, 1, 1]


def test_only_edges_at_nodes_that_expire_say_when_they_were_written(g: Graph, clock: Clock) -> None:
    fill(g, clock)
    labels = {item["SK"]["S"].partition("#")[0] for item in stored(g) if WRITTEN in item}
    assert labels == {"VISIT", "LIKE", "BESIDE"}
    assert {item[WRITTEN]["N"] for item in stored(g) if WRITTEN in item} == {"1700000000"}


def test_lambda_is_told_of_nodes_that_expire() -> None:
    class Token(Node):
        id: str
        until: Annotated[dt.datetime | None, Expires()] = None

    class Uses(Edge[Token, Token]):
        pass

    assert aws.stream_filter([Token, Uses]) == {"dynamodb": {"Keys": {"SK": {"S": [{"prefix": "#META"}]}}}}
    assert aws.stream_filter([Token]) is None, "without edges there is nothing to do"


class Visitor(Node):
    id: str
    until: Annotated[int | None, Expires()] = None
    email: Annotated[str | None, Unique()] = None


class Stand(Node):
    id: str
    seen: Annotated[int, Count("Saw")] = 0


class Saw(Edge[Visitor, Stand]):
    pass


def test_a_node_that_expires_by_a_number_of_seconds(store: SQLiteStore, clock: Clock) -> None:
    with Graph(store, [Visitor, Stand, Saw]) as g:
        g.put_many([Stand(id="p"), Visitor(id="v", until=int(clock.now) + 1000, email="v@x")])
        g.put(Saw(source="v", target="p"))
        g.maintain(once=True)
        clock.now += 2000
        assert store.sweep() == 2, "the node and its claim"
        g.maintain(once=True)
        assert g.edge(Saw, "v", "p") is None
        assert g.get(Stand, "p") == Stand(id="p", seen=0)
        g.add(Visitor(id="w", email="v@x"))


def test_a_node_that_expired_is_work_only_if_edges_may_be_left() -> None:
    """Nothing is counted, but its edges go: so the position after this change is worth storing."""
    for models, is_work in (([Guest, Desk, At], True), ([Guest, Desk], False)):
        with Graph(":memory:", models) as g:
            g.put(Guest(id="g"))
            g.delete(Guest, "g")
            response: Any
            (response,) = g._store.execute((ReadChanges("adjoin", None),))
            gone = [each for each in response.changes if each.key["PK"]["S"] == "GUEST#g" and each.new is None]
            assert len(gone) == 1
            for expired in (True, False):
                change = ItemChange(gone[0].position, NOW, gone[0].key, gone[0].old, None, expired)
                assert run(apply_changes(g._layout, [change], Tally()), g._store) is (expired and is_work)
