"""Aggregates in the transaction, looked at between any two requests of anybody.

Writers put, connect, change, disconnect and delete, and put again what they deleted. After every single request
an observer reads everything as a program would, and compares what is counted on each node with the edges that it
is shown. No maintainer is needed for any of it; in every other simulation there is one all the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from adjoin import Edge, Graph, Indexed, Node, Unique, field
from adjoin.aggregates import Count, Max, Sum
from adjoin.requests import Plan, TransactWrite
from tests.maintenance.simulation import LateIndexes, Process, Simulation
from tests.shares import FEW, FIRST


class Album(Node):
    id: str
    title: str = ""
    tracks: Annotated[int, Count("OnAlbum", consistency="transaction")] = 0
    seconds: Annotated[int, Sum("OnAlbum", field="seconds", consistency="transaction")] = 0
    live: Annotated[int, Count("OnAlbum", where=field("live") == True, consistency="transaction")] = 0  # noqa: E712
    longest: Annotated[int | None, Max("OnAlbum", field="seconds")] = None


class Track(Node):
    id: str
    title: str = ""
    albums: Annotated[int, Count("OnAlbum", consistency="transaction")] = 0


class OnAlbum(Edge[Album, Track]):
    seconds: int = 0
    live: bool = False


class Peer(Node):
    id: str
    title: Annotated[str, Unique(), Indexed()]
    peers: Annotated[int, Count("Knows", consistency="transaction")] = 0
    years: Annotated[int, Sum("Knows", field="seconds", consistency="transaction")] = 0


class Knows(Edge[Peer, Peer], symmetric=True):
    seconds: Annotated[int, Indexed()] = 0
    live: bool = False


class Reader(Node, extra="allow"):
    """Its own count is kept in its turn; what it reads counts nothing."""

    id: str
    title: str = ""
    books: Annotated[int, Count("Reads", consistency="transaction")] = 0
    seconds: Annotated[int, Sum("Reads", field="seconds", consistency="transaction")] = 0
    live: Annotated[int, Count("Reads", where=field("live") == True, consistency="transaction")] = 0  # noqa: E712


class Book(Node):
    id: str
    title: str = ""


class Reads(Edge[Reader, Book]):
    seconds: int = 0
    live: bool = False


class Owns(Edge[Reader, Book]):
    """Nobody counts it."""

    seconds: int = 0
    live: bool = False


class World:
    """Some classes, and how a program that only reads tells what each node should have."""

    def __init__(self, nodes: list[Any], edges: dict[Any, tuple[Any, Any]], told: dict[Any, Any]) -> None:
        self.nodes, self.edges, self.told = nodes, edges, told

    def look(self, g: Graph, ids: str) -> None:
        for model, expected in self.told.items():
            for node in g.get_many(model, ids):
                if node is not None:
                    wanted = expected(g, node.id)
                    assert {name: getattr(node, name) for name in wanted} == wanted, repr(node)


def _on(g: Graph, id: str) -> dict[str, int]:
    edges = list(g.out(id, OnAlbum))
    assert all(g.edge(OnAlbum, id, edge.target) == edge for edge in edges)
    return {
        "tracks": g.out(id, OnAlbum).count(),
        "seconds": sum(edge.seconds for edge in edges),
        "live": sum(edge.live for edge in edges),
    }


def _known(g: Graph, id: str) -> dict[str, int]:
    edges = list(g.out(id, Knows))
    return {"peers": len(edges), "years": sum(edge.seconds for edge in edges)}


ALBUMS = World(
    [Album, Track],
    {OnAlbum: (Album, Track)},
    {Album: _on, Track: lambda g, id: {"albums": g.into(id, OnAlbum).count()}},
)


def _read(g: Graph, id: str) -> dict[str, int]:
    edges = list(g.out(id, Reads))
    return {
        "books": len(edges),
        "seconds": sum(edge.seconds for edge in edges),
        "live": sum(edge.live for edge in edges),
    }


PEERS = World([Peer], {Knows: (Peer, Peer)}, {Peer: _known})
READERS = World(
    [Reader, Book],
    {Reads: (Reader, Book), Owns: (Reader, Book)},
    {Reader: _read},
)


class Writers:
    """What programs do, at random: few ids, so that they meet."""

    def __init__(self, g: Graph, chance: random.Random, world: World, ids: str) -> None:
        self.g, self.chance, self.world, self.ids = g, chance, world, ids

    def node(self) -> Any:
        model, id = self.chance.choice(self.world.nodes), self.chance.choice(self.ids)
        return model(id=id, title=f"{id}{self.chance.randrange(2)}")

    def edge(self) -> Any:
        model = self.chance.choice(list(self.world.edges))
        return model(
            source=self.chance.choice(self.ids),
            target=self.chance.choice(self.ids),
            seconds=self.chance.randrange(5),
            live=self.chance.random() < 0.5,
        )

    def act(self) -> tuple[Plan[Any], str]:
        ways: dict[str, tuple[int, Callable[[], Plan[Any]]]] = {
            "put a node": (6, lambda: self.g._put(self.node(), None)),
            "add a node": (3, lambda: self.g._add(self.node())),
            "delete a node": (6, self.delete),
            "put an edge": (4, lambda: self.g._put(self.edge(), None)),
            "connect": (8, self.connect),
            "disconnect": (4, self.disconnect),
            "change an edge": (3, self.change),
            "put many": (1, lambda: self.g._put_many([self.edge(), self.node(), self.node(), self.edge()], None)),
            "a transaction": (4, self.transact),
        }
        name = self.chance.choices(list(ways), [weight for weight, _ in ways.values()])[0]
        return ways[name][1](), name

    def delete(self) -> Plan[Any]:
        node = self.node()
        return self.g._delete(type(node), node.id)

    def connect(self) -> Plan[Any]:
        edge = self.edge()
        return self.g._connect(type(edge), edge.source, edge.target, {"seconds": edge.seconds, "live": edge.live})

    def disconnect(self) -> Plan[Any]:
        edge = self.edge()
        return self.g._disconnect(type(edge), edge.source, edge.target, {})

    def change(self) -> Plan[Any]:
        edge = self.edge()
        return self.g._update(type(edge), (edge.source, edge.target), None, None, {"seconds": edge.seconds})

    def transact(self) -> Plan[Any]:
        """Something of everything, as long as it can be one transaction."""
        t = self.g.transaction().__enter__()
        node, edge, other = self.node(), self.edge(), self.edge()
        ways: list[Callable[[Any], None]] = [t.put, t.add, t.delete]
        self.chance.choice(ways)(node)
        if self.chance.random() < 0.6:
            t.put(edge)
        if {other.source, other.target} != {edge.source, edge.target} or type(other) is not type(edge):
            t.disconnect(type(other), other.source, other.target)
        return t._commit()


WORLDS = {"albums": ALBUMS, "peers": PEERS, "readers": READERS}


def simulate(world: World, seed: int, acts: int = 25) -> Simulation:
    with Graph(":memory:", [*world.nodes, *world.edges]) as g:
        simulation = Simulation(g, seed, maintainers=seed % 2)
        ids = "abc"[: 2 + seed % 2]
        writers = Writers(g, simulation.chance, world, ids)
        simulation.watch = lambda: world.look(g, ids)
        for _ in range(acts):
            simulation.write(*writers.act())
        simulation.drain()
        return simulation


@pytest.mark.simulation
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("part", range(2))
def test_every_snapshot_is_right(world: str, part: int) -> None:
    for seed in range(FIRST + part, FIRST + 3 * FEW, 2):
        try:
            simulate(WORLDS[world], seed)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


def test_what_is_connected_just_before_a_delete_is_counted_by_the_next_node() -> None:
    """It was not seen by the delete, and the node is made anew before its last look."""
    with Graph(":memory:", [Album, Track, OnAlbum]) as g:
        g.put_many([Album(id="a"), Track(id="b"), Track(id="c")])
        g.connect(OnAlbum, "a", "b", seconds=1)
        deleting = Process(g, g._delete(Album, "a"), "delete")
        while not deleting.is_about(TransactWrite):
            deleting.step(random.Random(0))
        g.connect(OnAlbum, "a", "c", seconds=2)
        deleting.step(random.Random(0))
        assert g.get(Album, "a") is None
        ALBUMS.look(g, "abc")
        g.put(Album(id="a"))
        ALBUMS.look(g, "abc")
        deleting.finish()
        ALBUMS.look(g, "abc")
        assert [edge.target for edge in g.out("a", OnAlbum)] == ["c"]


def test_a_node_that_comes_costs_one_request() -> None:
    with Graph(":memory:", [Album, Track, OnAlbum]) as g:

        def put_both() -> None:
            g.put(OnAlbum(source="n", target="b"))
            g.put(Album(id="n"))

        calls: list[tuple[Callable[[], object], int, int | None]] = [
            (lambda: g.put(Album(id="a")), 1, 4),
            (lambda: g.put(Album(id="a", title="x")), 1, 4),
            (lambda: g.add(Track(id="b")), 1, 4),
            (lambda: g.put_many(Track(id=f"t{number}") for number in range(100)), 2, 400),
            # A look at the node and the marker, at the edges, at the edges and their ledgers.
            (put_both, 2 + 5, None),
        ]
        for call, requests, units in calls:
            with g.meter() as meter:
                call()
            assert meter.requests == requests
            assert units is None or meter.wcu == units
        ALBUMS.look(g, "abn")
        assert g.get(Album, "n").tracks == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("edges", [20, 40, 130])
@pytest.mark.parametrize("way", ["put", "add", "transaction"])
def test_as_many_as_fit_are_counted_when_the_node_comes(edges: int, way: str) -> None:
    """The others are left to maintain, which the marker tells that somebody waits."""
    with Graph(":memory:", [Album, Track, OnAlbum]) as g:
        g.put_many(Track(id=f"t{number}") for number in range(edges))
        for number in range(edges):
            g.put(OnAlbum(source="a", target=f"t{number}", seconds=2))
        if way == "transaction":
            with g.transaction() as t:
                t.put(Album(id="a"))
        else:
            getattr(g, way)(Album(id="a"))
        album = g.get(Album, "a")
        assert album is not None
        assert (album.tracks, album.seconds) == ((edges, 2 * edges) if edges == 20 else (0, 0))
        g.maintain(once=True)
        ALBUMS.look(g, "a")


def test_a_put_that_changes_nothing_notices_who_comes_between() -> None:
    """What it counts is in the ledger already; it must be so when the edge is written."""
    with Graph(":memory:", [Album, Track, OnAlbum]) as g:
        g.put_many([Album(id="a"), Track(id="b")])
        edge = OnAlbum(source="a", target="b", seconds=1)
        g.put(edge)
        putting = Process(g, g._put(edge, None), "put")
        while not putting.is_about(TransactWrite):
            putting.step(random.Random(0))
        g.put(OnAlbum(source="a", target="b", seconds=5))
        putting.finish()
        ALBUMS.look(g, "ab")
        assert g.get(Album, "a").seconds == 1  # type: ignore[union-attr]


def test_who_adds_an_edge_while_its_node_begins_anew_is_no_second() -> None:
    """The node was read in another generation; that is in the way of one attempt, and the edge itself is not there."""
    with Graph(":memory:", [Album, Track, OnAlbum]) as g:
        g.put_many([Album(id="a"), Track(id="b"), Track(id="c")])
        g.put(OnAlbum(source="a", target="c"))
        adding = Process(g, g._add(OnAlbum(source="a", target="b", seconds=3)), "add")
        while not adding.is_about(TransactWrite):
            adding.step(random.Random(0))
        g.delete(Album, "a")
        g.put(Album(id="a"))
        adding.finish()
        ALBUMS.look(g, "abc")
        assert g.get(Album, "a").seconds == 3  # type: ignore[union-attr]


@pytest.mark.parametrize("way", ["put", "add", "transaction"])
def test_what_arrives_is_counted_though_no_index_knows_it(way: str) -> None:
    models = [Album, Track, OnAlbum]
    with Graph(LateIndexes(random.Random(0), models, pace=0), models) as g:
        g.put(Album(id="a"))
        g.put(OnAlbum(source="a", target="t"))
        g.put(OnAlbum(source="b", target="t"))
        if way == "transaction":
            with g.transaction() as t:
                t.put(Track(id="t"))
        else:
            getattr(g, way)(Track(id="t"))
        assert g.get(Track, "t") == Track(id="t", albums=2)
        assert g.disconnect(OnAlbum, "a", "t") is True
        assert g.get(Track, "t") == Track(id="t", albums=1)


def test_a_transaction_that_is_full_leaves_what_waits_to_maintain() -> None:
    with Graph(":memory:", [Album, Track, OnAlbum]) as g:
        for number in range(5):
            g.put(OnAlbum(source="a", target=f"t{number}", seconds=2))
        with g.transaction() as t:
            t.put(Album(id="a"))
            for number in range(47):
                t.put(Track(id=f"n{number}"))
        assert g.get(Album, "a").tracks == 0  # type: ignore[union-attr]
        g.maintain(once=True)
        ALBUMS.look(g, "a")
        assert g.get(Album, "a").tracks == 5  # type: ignore[union-attr]


@pytest.mark.parametrize("world", [ALBUMS, READERS], ids=["albums", "readers"])
@pytest.mark.parametrize("first", range(5))
def test_a_node_that_comes_between_two_reads_of_a_batch_counts(world: World, first: int) -> None:
    """Whoever read that it was not there must not take for void what was counted for it since."""
    edge, (source, target) = next(iter(world.edges.items()))
    with Graph(":memory:", [*world.nodes, *world.edges]) as g:
        disconnecting = Process(g, g._disconnect(edge, "a", "b", {}), "disconnect")
        disconnecting.are_torn = True
        disconnecting.step(random.Random(first))
        g.put_many([source(id="a"), target(id="b")])
        g.put(edge(source="a", target="b", seconds=3))
        disconnecting.finish()
        world.look(g, "ab")
        g.maintain(once=True)
        world.look(g, "ab")
