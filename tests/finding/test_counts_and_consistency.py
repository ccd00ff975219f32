"""Counting reads keys and nothing more, and a find is as consistent as the table or a local index allows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BeforeValidator

from adjoin import AdjacencyList, AsyncGraph, Child, Edge, Graph, Index, InvalidValue, Keys, Node, Projection, field
from adjoin.expressions import Set, Value, attribute
from adjoin.requests import BatchGet, Put, Query, Request, Scan, Update
from adjoin.schema import Schema
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import encode


class Watched(SQLiteStore):
    """A store that notes what it is asked."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.asked: list[Request] = []

    def execute(self, requests: Any) -> Any:
        self.asked += requests
        return super().execute(requests)


class Forum(Node):
    id: str


class Thread(Child[Forum], key=("subject",)):
    subject: str
    at: int
    views: int = 0
    author: str = ""


class Fan(Node):
    id: str


class Likes(Edge[Fan, Forum]):
    stars: int = 1


LAYOUT = AdjacencyList(
    table="Forums",
    reverse=None,
    indexes=[
        Index("ByTime", "PK", "at", local=True, projection=Projection("KEYS_ONLY")),
        Index("ByAuthor", "author", "at", projection=Projection("KEYS_ONLY")),
        Index("ByViews", "author", "views"),
        Index("ByStars", "GSI1PK", "stars", projection=Projection("KEYS_ONLY")),
    ],
    keys={Thread: Keys(sort="T#{subject}"), Likes: Keys(indexes={"ByStars": "{target}"})},
)
MODELS: list[Any] = [Forum, Thread, Fan, Likes]
OF_F = field("parent") == "F"
BY_ANN = field("author") == "ann"


@pytest.fixture
def store() -> Watched:
    return Watched()


@pytest.fixture
def g(store: Watched) -> Iterator[Graph]:
    with Graph(store, MODELS, LAYOUT) as graph:
        graph.put(Forum(id="F"))
        graph.put_many(Thread(parent="F", subject=str(at), at=at, views=9 - at, author="ann") for at in range(5))
        graph.put_many(Likes(source=str(stars), target="F", stars=stars) for stars in range(3))
        other = {"PK": "FORUM#F", "SK": "T#a#b", "at": 3, "author": "ann", "views": 1}
        store.execute([Put("Forums", {name: encode(value) for name, value in other.items()})])
        store.asked.clear()
        yield graph


KEYS = {"PK", "SK", "adjoin:deleting"}
OF_INDEX = {*KEYS, "author", "views"}


@pytest.mark.parametrize(
    ("query", "number", "attributes"),
    [
        (lambda g: g.find(Thread, OF_F & (field("at") > 1)), 3, "added"),
        (lambda g: g.find(Thread, BY_ANN & (field("views") > 5)), 4, OF_INDEX),
        (lambda g: g.find(Thread, BY_ANN, index="ByViews"), 5, OF_INDEX),
        (lambda g: g.find(Thread, BY_ANN & (field("at") >= 3), index="ByViews"), 2, OF_INDEX),
        (lambda g: g.find(Thread, OF_F & (field("subject") >= "3")), 2, KEYS),
        (lambda g: g.children("F", Thread), 5, KEYS),
        (lambda g: g.find(Likes, field("target") == "F"), 3, None),
    ],
)
def test_keys_are_counted(g: Graph, store: Watched, query: Any, number: int, attributes: Any) -> None:
    """What others wrote is not counted. A delete may hide a child or an edge, which an index of keys does not say; to
    the entries of a local index, DynamoDB adds the rest of their items."""
    assert query(g).count() == number
    first = store.asked[0]
    assert isinstance(first, Query)
    if attributes is None:
        assert [type(each) for each in store.asked] == [Query, BatchGet]
    elif attributes == "added":
        assert [(type(each), getattr(each, "whole", None)) for each in store.asked] == [(Query, True)]
    else:
        assert {str(path) for path in first.projection or ()} == attributes
        assert len(store.asked) == 1
    assert len(list(query(g))) == number


def test_what_a_delete_has_hidden_is_not_found_in_an_index_of_keys(g: Graph, store: Watched) -> None:
    """The index holds all fields of these edges, but not the mark that hides one of them."""
    likes = g.find(Likes, field("target") == "F")
    key = {"PK": {"S": "FAN#1"}, "SK": {"S": "LIKES#FORUM#F"}}
    mark = [Set(attribute("adjoin:deleting"), Value({"SS": ["token:FAN#1"]}))]
    store.execute([Update("Forums", key, tuple(mark))])
    assert [each.source for each in likes] == ["0", "1", "2"]
    store.execute([Put("Forums", {**g._layout.deletion_key("FAN#1"), "tokens": {"SS": ["token"]}})])
    assert [each.source for each in likes] == ["0", "2"]
    assert likes.count() == 2


class Session(Node, key="token"):
    token: str
    user: str
    data: str = ""


def test_an_index_of_keys_counts_nodes_alone(store: Watched) -> None:
    """Nothing hides a node, so its keys are enough, and the table is not read."""
    layout = AdjacencyList(
        partition_key="token",
        sort_key=None,
        reverse=None,
        indexes=[Index("ByUser", "user", projection=Projection("KEYS_ONLY"))],
        keys={Session: Keys("{token}")},
    )
    with Graph(store, [Session], layout) as g:
        g.put_many(Session(token=str(number), user="ann", data="x") for number in range(3))
        store.execute([Put("adjoin", {name: {"S": text} for name, text in {"token": "a#b", "user": "ann"}.items()})])
        store.asked.clear()
        mine = g.find(Session, field("user") == "ann")
        assert mine.count() == 3
        assert [type(each) for each in store.asked] == [Query]
        assert len(list(mine)) == 3
        assert "only token, user" in str(g.explain(mine.count))
        assert mine.where(field("data") == "x").count() == 3
        assert mine.where(field("token") > "0").count() == 2
        store.asked.clear()
        assert (g.index("ByUser").partition("ann").count(), g.index("ByUser").count()) == (3, 3)
        assert [type(each) for each in store.asked] == [Query, Scan]
        assert g.index("ByUser").others.count() == 1


def test_an_index_counts_what_iterating_gives(g: Graph, store: Watched) -> None:
    """Marks of deletes are in no index of keys, so there whole items are read."""
    for query in (g.index("ByAuthor").partition("ann"), g.index("ByViews").partition("ann"), g.index("ByStars")):
        assert query.count() == len(list(query)) > 0
        assert query.others.count() == len(list(query.others))
    store.asked.clear()
    assert g.index("ByViews").partition("ann").count() == 5
    assert [type(each) for each in store.asked] == [Query]
    assert {str(path) for path in getattr(store.asked[0], "projection", None) or ()} >= KEYS


Kept = Annotated[str, BeforeValidator(lambda text: text)]
Changed = Annotated[str, AfterValidator(str.lower)]


def test_which_classes_keep_their_ids() -> None:
    class One(Node, key=("owner", "name")):
        owner: str
        name: int

    class Below(Child[One], key=("at",)):
        at: int

    class Lowest(Child[Below], key=("at",)):
        at: int

    class Joins(Edge[One, Lowest]): ...

    class Odd(Node, key=("name",)):
        name: Changed

    class Unknown(Node, key=("name", "number")):
        name: Kept
        number: int

    class OfOdd(Child[Odd], key=("at",)):
        at: int

    class Stripped(Node, key=("name",), str_strip_whitespace=True):
        name: str

    kinds = Schema([One, Below, Lowest, Joins, Odd, Unknown, OfOdd, Stripped]).types
    assert {kind.name for kind in kinds if kind.keeps_ids} == {"One", "Below", "Lowest", "Joins"}


def consistent(store: Watched) -> list[bool]:
    """Whether each read was strongly consistent."""
    found: list[bool] = []
    for each in store.asked:
        if isinstance(each, Query | Scan):
            found.append(each.consistent)
        elif isinstance(each, BatchGet):
            found += [get.consistent for get in each.gets]
    return found


def test_a_find_in_the_table_or_a_local_index_can_be_consistent(g: Graph, store: Watched) -> None:
    for find in (
        lambda asked: g.find(Thread, OF_F & (field("subject") > "1"), consistent=asked),
        lambda asked: g.find(Thread, OF_F, order="at", consistent=asked),
        lambda asked: g.index("ByTime", consistent=asked).partition("FORUM#F"),
        lambda asked: g.index("ByTime", consistent=asked),
    ):
        for asked in (True, False, None):
            store.asked.clear()
            assert list(find(asked))
            assert set(consistent(store)) == {bool(asked)}
    store.asked.clear()
    assert g.find(Thread, OF_F, order="at", consistent=True).count() == 5
    assert set(consistent(store)) == {True}


def test_a_find_in_a_global_index_cannot(g: Graph) -> None:
    for find in (
        lambda: g.find(Thread, BY_ANN, consistent=True),
        lambda: g.find(Likes, field("target") == "F", consistent=True),
        lambda: g.index("ByAuthor", consistent=True),
        lambda: g.find(Thread, OF_F, consistent=1),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidValue, match=r"no consistent reads of global indexes|True, False or None"):
            find()


def test_a_consistent_graph_finds_so_where_it_can(g: Graph, store: Watched) -> None:
    with Graph(store, MODELS, LAYOUT, consistent=True) as sure:
        store.asked.clear()
        assert len(list(sure.find(Thread, OF_F))) == 5
        assert len(list(sure.find(Thread, OF_F, order="at"))) == 5
        assert len(list(sure.index("ByTime").partition("FORUM#F"))) == 5
        assert set(consistent(store)) == {True}
        store.asked.clear()
        assert len(list(sure.find(Thread, BY_ANN, index="ByViews"))) == 5
        assert not any(consistent(store))


def test_an_asynchronous_graph_does_the_same() -> None:
    async def run() -> None:
        async with AsyncGraph(":memory:", MODELS, replace(LAYOUT, table="Others")) as g:
            await g.put(Thread(parent="F", subject="1", at=1, author="ann"))
            assert [each.at async for each in g.find(Thread, OF_F, consistent=True)] == [1]
            assert [each.at async for each in g.index("ByTime", consistent=True)] == [1]
            assert await g.find(Thread, BY_ANN).count() == 1

    asyncio.run(run())


@pytest.mark.parametrize(
    ("predicate", "asked", "is_consistent"),
    [
        (field("source").is_in(["1", "2"]), None, False),
        (field("source").is_in(["1", "2"]), True, True),
        ((field("source") == "1") | (field("source") == "2"), True, True),
        ((field("source") == "1") | (field("source") == "2"), None, False),
    ],
)
def test_nodes_are_read_as_consistently_as_the_edges_that_were_found(
    g: Graph, store: Watched, predicate: Any, asked: bool | None, is_consistent: bool
) -> None:
    g.put_many(Fan(id=str(at)) for at in range(3))
    store.asked.clear()
    assert [fan.id for _, fan in g.find(Likes, predicate, consistent=asked).nodes()] == ["1", "2"]
    (read,) = [each for each in store.asked if isinstance(each, BatchGet)]
    assert {get.consistent for get in read.gets} == {is_consistent}


def test_nodes_are_read_consistently_if_all_edges_are(store: Watched) -> None:
    with Graph(store, MODELS, LAYOUT, consistent=True) as sure:
        sure.put_many([*(Fan(id=str(at)) for at in range(3)), *(Likes(source=str(at), target="F") for at in range(3))])
        store.asked.clear()
        found = sure.find(Likes, (field("source") == "1") | (field("target") == "F")).nodes()
        assert sorted(fan.id for _, fan in found) == ["0", "1", "2"]
        fans = [sure._layout.node_key(sure._layout.schema.node(Fan), str(at)) for at in range(3)]
        gets = [get for each in store.asked if isinstance(each, BatchGet) for get in each.gets if get.key in fans]
        assert [get.consistent for get in gets] == [False] * 3
