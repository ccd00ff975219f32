"""Counts and sums that change in the same transaction as the edge."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest

from adjoin import (
    Edge,
    Graph,
    Indexed,
    Node,
    NotFound,
    TransactionCanceled,
    field,
)
from adjoin.aggregates import Copy, Count, Sum
from adjoin.plans.counting.node_transaction import MARKED
from adjoin.requests import BatchGet, TransactWrite
from tests.maintenance.models import (
    Album,
    OnAlbum,
    Track,
)
from tests.maintenance.simulation import Process, stored
from tests.maintenance.test_simulation import check


def test_a_transaction_counts_at_once(g: Graph) -> None:
    with g.transaction() as t:
        t.add(Album(id="A1"))
        t.add(Track(id="T1"))
        t.put(Track(id="T2"))
        t.connect(OnAlbum, "A1", "T1", seconds=10)
        t.connect(OnAlbum, "A1", "T2", seconds=5, live=True)
    album = g.get(Album, "A1")
    assert album is not None
    assert (album.tracks, album.seconds, album.live, album.longest) == (2, 15, 1, 10)
    assert g.get(Track, "T1").albums == 1  # type: ignore[union-attr]
    with g.transaction() as t:
        t.update(Album, "A1", title="One")
        t.update(OnAlbum, "A1", "T1", seconds=20)
        t.disconnect(OnAlbum, "A1", "T2")
    album = g.get(Album, "A1")
    assert album is not None
    assert (album.title, album.tracks, album.seconds, album.live) == ("One", 1, 20, 0)
    g.delete(Track, "T1")
    assert g.get(Album, "A1").tracks == 0  # type: ignore[union-attr]
    g.maintain(once=True)
    check(g)


OTHERS: dict[str, Callable[[Graph], object]] = {
    "the first edge of the node": lambda g: g.connect(OnAlbum, "A1", "T2", seconds=5),
    "the same edge, put and removed": lambda g: (g.connect(OnAlbum, "A1", "T1"), g.disconnect(OnAlbum, "A1", "T1")),
    "what is copied": lambda g: g.update(Track, "T1", title="Two"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_transaction_is_tried_again_if_others_come_between(g: Graph, what: str) -> None:
    g.put_many([Album(id="A1"), Track(id="T1", title="One"), Track(id="T2")])
    t = g.transaction().__enter__()
    t.connect(OnAlbum, "A1", "T1", seconds=7)
    slow = Process(g, t._commit(), "slow")
    while not any(isinstance(request, TransactWrite) for request in slow._batch):
        slow.step(random.Random(0))
    OTHERS[what](g)
    while not slow.is_done:
        slow.step(random.Random(0))
    assert slow.error is None
    edge, track = g.edge(OnAlbum, "A1", "T1"), g.get(Track, "T1")
    album = g.get(Album, "A1")
    assert edge is not None
    assert track is not None
    assert album is not None
    assert edge.title == track.title
    assert album.tracks == g.out("A1", OnAlbum).count()
    g.maintain(once=True)
    check(g)


def test_a_transaction_says_why_it_was_canceled(g: Graph) -> None:
    g.put(Album(id="A1"))
    with pytest.raises(TransactionCanceled, match="there is no Track 'T1'"), g.transaction() as t:
        t.connect(OnAlbum, "A1", "T1")


def test_counting_at_once_needs_the_node(g: Graph) -> None:
    g.put(Album(id="A1"))
    with pytest.raises(NotFound):
        g.connect(OnAlbum, "A1", "T1")
    g.put(OnAlbum(source="A1", target="T1", seconds=3))
    assert g.get(Album, "A1").seconds == 3  # type: ignore[union-attr]
    g.put(Track(id="T1"))
    g.maintain(once=True)
    check(g)


def test_a_symmetric_edge_is_counted_at_both_ends_at_once() -> None:
    class Peer(Node):
        id: str
        peers: Annotated[int, Count("Knows", consistency="transaction")] = 0
        years: Annotated[int, Sum("Knows", field="years", consistency="transaction")] = 0

    class Knows(Edge[Peer, Peer], symmetric=True):
        years: int = 0

    with Graph(":memory:", [Peer, Knows]) as g:

        def counts() -> list[tuple[int, int]]:
            return [(peer.peers, peer.years) for peer in g.get_many(Peer, "abc") if peer is not None]

        g.put_many(Peer(id=id) for id in "abc")
        g.connect(Knows, "a", "b", years=2)
        g.connect(Knows, "c", "a", years=3)
        assert counts() == [(2, 5), (1, 2), (1, 3)]
        g.update(Knows, "b", "a", years=7)
        g.put(Knows(source="a", target="a", years=1))
        assert counts() == [(3, 11), (1, 7), (1, 3)]
        g.disconnect(Knows, "b", "a")
        assert counts() == [(2, 4), (0, 0), (1, 3)]
        g.delete(Peer, "c")
        assert counts() == [(1, 1), (0, 0)]
        assert g.maintain(once=True).nodes == 0


# --- with other writes of the same transaction -------------------------------------------------


class Shelf(Node):
    id: str
    room: Annotated[str | None, Indexed()] = None
    colour: Annotated[str, Indexed()] = "red"
    name: str | None = None
    books: Annotated[int, Count("Holds", consistency="transaction")] = 0


class Book(Node):
    id: str


class Holds(Edge[Shelf, Book]):
    shelf: Annotated[str | None, Copy("source.name")] = None
    room: Annotated[str | None, Copy("source.room")] = None


@pytest.fixture
def library() -> Iterator[Graph]:
    with Graph(":memory:", [Shelf, Book, Holds]) as g:
        g.put_many([Book(id="one"), Book(id="two")])
        yield g


def shelves(g: Graph) -> list[list[tuple[str, int, str | None]]]:
    """The shelves as they are, and as each index shows them: id, books and name."""
    found = [[shelf for shelf in g.get_many(Shelf, ["a"]) if shelf is not None]]
    found += [list(g.find(Shelf, field("room") == "r")), list(g.find(Shelf, field("colour") == "red"))]
    return [[(shelf.id, shelf.books, shelf.name) for shelf in each] for each in found]


def test_a_node_that_is_made_with_its_edges_is_counted_in_every_index(library: Graph) -> None:
    with library.transaction() as t:
        t.put(Shelf(id="a", room="r", name="x"))
        t.connect(Holds, "a", "one")
        t.connect(Holds, "a", "two")
    assert shelves(library) == [[("a", 2, "x")]] * 3
    assert [edge.shelf for edge in library.out("a", Holds)] == ["x", "x"]


class Case(Node):
    id: str
    room: Annotated[str, Indexed()] = "r"
    colour: Annotated[str, Indexed()] = "red"
    books: Annotated[int, Count("Stores", consistency="transaction"), Indexed()] = 0


class Stores(Edge[Case, Book]):
    pass


def test_a_node_that_is_made_with_its_edges_is_found_by_how_many_they_are() -> None:
    with Graph(":memory:", [Case, Book, Stores]) as g:
        g.put_many([Book(id="one"), Book(id="two")])
        with g.transaction() as t:
            t.put(Case(id="a"))
            t.connect(Stores, "a", "one")
            t.connect(Stores, "a", "two")
        whole = Case(id="a", books=2)
        for condition in (field("books") == 2, field("room") == "r", field("colour") == "red"):
            assert list(g.find(Case, condition)) == [whole]
        assert list(g.find(Case, field("books") == 0)) == []


@pytest.mark.parametrize(
    ("change", "copied"),
    [
        ({"name": "y"}, ("y", "r")),
        ({"name": None}, (None, "r")),
        ({"colour": "blue"}, ("x", "r")),
        ({"room": None, "name": "z"}, ("z", None)),
    ],
)
def test_an_edge_copies_what_its_node_will_have(
    library: Graph, change: dict[str, Any], copied: tuple[str | None, str | None]
) -> None:
    library.put(Shelf(id="a", room="r", name="x"))
    with library.transaction() as t:
        t.update(Shelf, "a", **change)
        t.connect(Holds, "a", "one")
    assert [(edge.shelf, edge.room) for edge in library.out("a", Holds)] == [copied]
    shelf = library.get(Shelf, "a")
    assert shelf is not None
    assert (shelf.books, shelf.name, shelf.room) == (1, *copied)


def test_an_edge_copies_what_a_node_that_is_put_again_will_have(library: Graph) -> None:
    library.put(Shelf(id="a", room="r", name="x"))
    library.connect(Holds, "a", "two")
    with library.transaction() as t:
        t.put(Shelf(id="a", room="r", name="y"))
        t.connect(Holds, "a", "one")
    assert {edge.target: edge.shelf for edge in library.out("a", Holds)}["one"] == "y"
    assert shelves(library) == [[("a", 2, "y")]] * 3
    library.maintain(once=True)
    assert {edge.target: edge.shelf for edge in library.out("a", Holds)} == {"one": "y", "two": "y"}


def test_edges_that_waited_for_a_node_count_when_it_comes(library: Graph) -> None:
    for number in (1, 2):
        for id in ("one", "two"):
            library.put(Holds(source="a", target=id))
        library.put(Shelf(id="a", room="r", name=str(number)))
        assert shelves(library) == [[("a", 2, str(number))]] * 3
        # Nothing waits any more, and it is the same node.
        library.put(Shelf(id="a", room="r", name="again"))
        assert shelves(library) == [[("a", 2, "again")]] * 3
        library.disconnect(Holds, "a", "one")
        assert shelves(library) == [[("a", 1, "again")]] * 3
        library.delete(Shelf, "a")
        assert list(library.out("a", Holds)) == []
    assert library.maintain(once=True).nodes == 0


def test_an_edge_that_goes_as_its_node_comes_does_not_count(library: Graph) -> None:
    for id in ("one", "two", "three"):
        library.put(Holds(source="a", target=id))
    with library.transaction() as t:
        t.put(Shelf(id="a", room="r"))
        t.disconnect(Holds, "a", "two")
        t.put(Holds(source="a", target="four"))
    assert shelves(library) == [[("a", 3, None)]] * 3
    library.maintain(once=True)
    assert shelves(library) == [[("a", 3, None)]] * 3


@pytest.mark.parametrize(("number", "counted"), [(20, 20), (60, 0)])
def test_more_edges_than_a_transaction_takes_are_counted_afterwards(library: Graph, number: int, counted: int) -> None:
    for each in range(number):
        library.put(Holds(source="a", target=str(each)))
    library.put(Shelf(id="a", room="r"))
    assert shelves(library) == [[("a", counted, None)]] * 3
    library.maintain(once=True)
    assert shelves(library) == [[("a", number, None)]] * 3
    assert not [item for item in stored(library) if MARKED in item], "the marker goes with what waited"


@pytest.mark.parametrize(("number", "counted"), [(20, 20), (60, 0)])
def test_the_same_of_a_node_that_comes_in_a_transaction(library: Graph, number: int, counted: int) -> None:
    for each in range(number):
        library.put(Holds(source="a", target=str(each)))
    with library.transaction() as t:
        t.put(Shelf(id="a", room="r"))
        t.put(Book(id="three"))
    assert shelves(library) == [[("a", counted, None)]] * 3
    library.maintain(once=True)
    assert shelves(library) == [[("a", number, None)]] * 3


def test_a_node_that_goes_in_a_transaction_can_come_again(library: Graph) -> None:
    library.put(Shelf(id="a", room="r"))
    with library.transaction() as t:
        t.delete(Shelf, "a")
    library.put(Holds(source="a", target="one"))
    library.put(Shelf(id="a", room="r"))
    assert shelves(library) == [[("a", 1, None)]] * 3


class Hub(Node):
    id: str
    spokes: Annotated[int, Count("Spoke", consistency="transaction")] = 0


class Rim(Node):
    id: str
    hubs: Annotated[int, Count("Spoke", consistency="transaction")] = 0


class Spoke(Edge[Hub, Rim]):
    one: Annotated[int, Indexed()] = 1
    two: Annotated[int, Indexed()] = 2


def test_a_node_for_which_nothing_waits_is_put_in_one_request() -> None:
    with Graph(":memory:", [Hub, Rim, Spoke]) as g:
        with g.meter() as meter:
            g.put(Hub(id="a"))
        assert meter.requests == 1
        with g.meter() as meter:
            g.put(Hub(id="a"))
        assert meter.requests == 1


@pytest.mark.parametrize("number", [3, 45])
def test_edges_of_many_writes_go_with_their_node(number: int) -> None:
    with Graph(":memory:", [Hub, Rim, Spoke]) as g:
        g.put_many([Hub(id="a"), Hub(id="b"), *(Rim(id=str(each)) for each in range(number))])
        g.put_many(Spoke(source=hub, target=str(each)) for hub in "ab" for each in range(number))
        g.delete(Hub, "a")
        assert g.find(Spoke, field("two") == 2).count() == g.find(Spoke, field("one") == 1).count() == number
        assert list(g.out("a", Spoke)) == []
        assert {rim.hubs for rim in g.get_many(Rim, map(str, range(number))) if rim is not None} == {1}
        hub = g.get(Hub, "b")
        assert hub is not None
        assert hub.spokes == number
        assert g.maintain(once=True).nodes == 0


class Box(Node):
    id: str
    name: str | None = None
    size: int | None = None


class InBox(Edge[Box, Book]):
    box: Annotated[str | None, Copy("source.name")] = None
    size: Annotated[int | None, Copy("source.size")] = None


@pytest.mark.parametrize(
    ("change", "copied"),
    [({"name": "y"}, ("y", 1)), ({"name": None}, (None, 1)), ({"size": None, "name": "z"}, ("z", None))],
)
def test_an_edge_copies_what_a_plain_node_will_have(
    change: dict[str, Any], copied: tuple[str | None, int | None]
) -> None:
    with Graph(":memory:", [Box, Book, InBox]) as g:
        g.put_many([Box(id="a", name="x", size=1), Book(id="one")])
        with g.transaction() as t:
            t.update(Box, "a", **change)
            t.connect(InBox, "a", "one")
        assert [(edge.box, edge.size) for edge in g.out("a", InBox)] == [copied]


def test_what_is_copied_and_counted_is_read_consistently(library: Graph) -> None:
    # What is older than it need be would be copied, and the transaction be tried again.
    with Graph(":memory:", [Box, Book, InBox]) as g:
        g.put_many([Box(id="a", name="x", size=1), Book(id="one")])
        requests = [*g.explain(lambda: g.connect(InBox, "a", "one")).requests]
    requests += library.explain(lambda: library.connect(Holds, "a", "one")).requests
    gets = [get for request in requests if isinstance(request, BatchGet) for get in request.gets]
    assert len(gets) > 2
    assert all(get.consistent for get in gets)
