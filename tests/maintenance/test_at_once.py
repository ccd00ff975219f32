"""Counts and sums that change in the same transaction as the edge."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Annotated

import pytest

from adjoin import (
    Edge,
    Graph,
    Node,
    NotFound,
    TransactionCanceled,
)
from adjoin.aggregates import Count, Sum
from adjoin.requests import TransactWrite
from tests.maintenance.models import (
    Album,
    OnAlbum,
    Track,
)
from tests.maintenance.simulation import Process
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
    with pytest.raises(TransactionCanceled, match="there is no node 'TRACK#T1'"), g.transaction() as t:
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
