"""Deleting nodes whose edges are counted in the transaction: what everybody sees meanwhile, wherever it stops."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import pytest

from adjoin import ConditionFailed, Edge, Graph, Indexed, Node, Unique, field
from adjoin.aggregates import Count, Sum
from adjoin.expressions import Set, Value, attribute
from adjoin.layouts.interface import OWNER
from adjoin.plans.counted_deletion import Deletion
from adjoin.plans.steps.batches import chunks, place_of
from adjoin.requests import BatchWrite, Delete, Put, TransactWrite, Update
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from adjoin.units import MAX_BATCH_WRITE
from adjoin.values import item_size
from tests.faults import FaultyStore
from tests.maintenance.simulation import Process, Simulation, stored
from tests.shares import FEW


class Album(Node):
    id: str
    code: Annotated[str | None, Unique()] = None
    tracks: Annotated[int, Count("OnAlbum", consistency="transaction")] = 0


class Track(Node):
    id: str
    albums: Annotated[int, Count("OnAlbum", consistency="transaction")] = 0
    seconds: Annotated[int, Sum("OnAlbum", field="seconds", consistency="transaction")] = 0


class OnAlbum(Edge[Album, Track]):
    seconds: int = 0


class Tag(Node):
    id: str


class Tagged(Edge[Album, Tag]):
    """Nobody counts it."""

    place: Annotated[int, Indexed()] = 0


class Twin(Edge[Album, Album], symmetric=True):
    """Nobody counts it either."""


MODELS: list[Any] = [Album, Track, OnAlbum, Tag, Tagged, Twin]
HUB = Album(id="hub", code="h")


@pytest.fixture
def store() -> Iterator[FaultyStore]:
    store = FaultyStore(SQLiteStore(":memory:"))
    yield store
    store.close()


@pytest.fixture
def g(store: FaultyStore) -> Graph:
    return Graph(store, MODELS)


def fill(g: Graph, counted: int, tags: int = 0, twins: int = 0) -> None:
    """An album with so many edges of each kind; its tracks are on another album too."""
    g.put_many([HUB, Album(id="other"), *(Track(id=f"t{number}") for number in range(counted))])
    for number in range(counted):
        g.put(OnAlbum(source="hub", target=f"t{number}", seconds=number))
        g.put(OnAlbum(source="other", target=f"t{number}", seconds=1))
    g.put_many(Tagged(source="hub", target=f"g{number}") for number in range(tags))
    g.put_many(Twin(source="hub", target=f"w{number}") for number in range(twins))


def look(g: Graph, ids: Iterable[str] | None = None) -> tuple[bool, int, int]:
    """Every count of these tracks is what the edges say; gives whether the node is there, and how many edges."""
    edges = list(g.out("hub", OnAlbum))
    hub = g.get(Album, "hub")
    assert hub is None or hub.tracks == len(edges)
    assert hub == g.get(Album, code="h")
    for track in filter(None, g.get_many(Track, sorted({edge.target for edge in edges}) if ids is None else ids)):
        arriving = list(g.into(track.id, OnAlbum))
        assert (track.albums, track.seconds) == (len(arriving), sum(edge.seconds for edge in arriving))
        assert (g.edge(OnAlbum, "hub", track.id) in edges) is any(edge.source == "hub" for edge in arriving)
    tags = g.out("hub", Tagged).count()
    assert tags == len(list(g.out("hub", Tagged)))
    twins = g.out("hub", Twin).count()
    assert twins == sum(g.edge(Twin, f"w{number}", "hub") is not None for number in range(400) if twins or number < 3)
    return hub is not None, len(edges), tags + twins


def leftovers(g: Graph) -> list[Any]:
    """What is left of the node, without the marker that says that it went."""
    return [item for item in stored(g) if "ALBUM#hub" in str(item) and "marked" not in item]


def writes_in(requests: list[Any]) -> list[Any]:
    return [each for each in requests if isinstance(each, TransactWrite | BatchWrite | Put | Update | Delete)]


@pytest.mark.parametrize(
    ("counted", "tags", "is_one"), [(0, 0, True), (1, 3, True), (32, 0, True), (20, 37, True), (33, 0, False)]
)
def test_what_fits_goes_in_one_transaction(g: Graph, store: FaultyStore, counted: int, tags: int, is_one: bool) -> None:
    """An edge that both ends count takes three writes, with the track and the ledger; the album takes three."""
    fill(g, counted if is_one else counted - 1, tags)
    if not is_one:
        g.put(Track(id="more"))
        g.connect(OnAlbum, "hub", "more")
    sent: list[Any] = []
    store.fault = lambda _number, request: sent.append(request)
    assert g.delete(Album, "hub") is True
    store.recover()
    assert (len(writes_in(sent)) == 1) is is_one
    assert look(g) == (False, 0, 0)
    assert leftovers(g) == []
    assert g.maintain(once=True).nodes == 0


def copied(g: Graph) -> Graph:
    """Another graph with the same items."""
    other = Graph(":memory:", MODELS)
    for some in chunks(stored(g), MAX_BATCH_WRITE):
        other._store.execute((BatchWrite(tuple(Put(other._layout.table, item) for item in some)),))
    return other


@pytest.mark.parametrize(("counted", "tags", "twins"), [(0, 0, 0), (5, 3, 1), (40, 0, 0), (20, 110, 10), (90, 120, 45)])
def test_interrupted_anywhere_and_run_again(g: Graph, counted: int, tags: int, twins: int) -> None:
    fill(g, counted, tags, twins)
    everything = [f"t{number}" for number in range(counted)]
    whole = fewest = look(g)
    assert whole == (True, counted, tags + twins)
    deleting = Process(g, g._delete(HUB, None), "delete")
    while not deleting.is_done:
        deleting.step(random.Random(0))
        is_there, edges, others = seen = look(g, everything)
        assert (is_there, others) in ((True, whole[2]), (False, 0)), "half of what nobody counts is seen"
        assert edges <= (fewest[1] if is_there else 0)
        fewest = seen
        with copied(g) as interrupted:
            assert look(interrupted) == seen
            assert interrupted.delete(Album, "hub") in (True, is_there)
            assert look(interrupted, everything) == (False, 0, 0)
            assert leftovers(interrupted) == []
            assert interrupted.delete(Album, "hub") is False
        with copied(g) as anew:
            anew.put(HUB)
            assert look(anew)[1:] == seen[1:], "old edges came back"
    assert deleting.error is None
    assert fewest == (False, 0, 0)
    assert leftovers(g) == []


def test_a_large_delete_takes_few_requests(g: Graph, store: FaultyStore) -> None:
    fill(g, 150)
    before = store.sent
    g.delete(Album, "hub")
    # Four writes an edge: seven transactions, what each reads before, and looks before and behind.
    assert store.sent - before <= 7 * 5 + 10


def test_a_transaction_is_as_large_as_the_items_that_it_touches(g: Graph) -> None:
    """At least: what would be too much for DynamoDB goes in several."""
    fill(g, 2, 1)
    kind = g._layout.schema.node(Album)
    apart = (g._layout.schema.edge(OnAlbum),)
    deletion = Deletion(g._layout, kind, "hub", apart)
    around = run(deletion.look(), g._store)
    edges = [*around.counted.values()]
    last = deletion._last(around)
    whole = run(deletion._with(last, edges), g._store)
    touched = {
        place_of(write.key if not isinstance(write, Put) else g._layout.key_of(write.item)) for write in whole.writes
    }
    sizes = {place_of(g._layout.key_of(item)): item_size(item) for item in stored(g)}
    assert last.size >= item_size(around.node or {}) > 0
    assert whole.size >= sum(size for place, size in sizes.items() if place in touched)


# --- beside others ------------------------------------------------------------------------------


def test_an_edge_that_is_connected_anew_meanwhile_stays(g: Graph) -> None:
    """The node was made again behind the switch of a delete, which must not take its new edges for its old ones."""
    fill(g, 3, 150, 10)
    deleting = Process(g, g._delete(HUB, None), "delete")
    while g.get(Album, "hub") is not None:
        deleting.step(random.Random(0))
    while not deleting.is_about(TransactWrite):
        deleting.step(random.Random(0))
    g.put_many(
        [HUB, *(Tag(id=f"g{number}") for number in range(150)), *(Album(id=f"w{number}") for number in range(10))]
    )
    for number in range(0, 150, 7):
        g.connect(Tagged, "hub", f"g{number}", place=1)
    g.connect(Twin, "w3", "hub")
    g.connect(OnAlbum, "hub", "t1")
    deleting.finish()
    assert look(g) == (True, 1, 150 // 7 + 1 + 1)
    assert {edge.place for edge in g.out("hub", Tagged)} == {1}


@pytest.mark.simulation
@pytest.mark.parametrize("part", range(2))
def test_two_deletes_and_connects_at_once(part: int) -> None:
    """In the end there is nothing at the node: who came first was removed with it, who came second was refused."""
    for seed in range(part, max(FEW // 2, 2), 2):
        with Graph(":memory:", MODELS) as g:
            fill(g, 28, 8 + 60 * (seed % 2), 3)
            g.put_many(
                [*(Tag(id=f"n{number}") for number in range(4)), *(Track(id=f"n{number}") for number in range(4))]
            )
            simulation = Simulation(g, seed, maintainers=seed % 3 % 2)
            some = [f"{letter}{number}" for letter in "tn" for number in range(4)]
            simulation.watch = lambda g=g, some=some: look(g, some)  # type: ignore[misc,assignment]
            for number in range(4):
                simulation.write(g._connect(Tagged, "hub", f"n{number}", {}), "connect")
                simulation.write(g._connect(OnAlbum, "hub", f"n{number}", {"seconds": 3}), "connect")
                if number < 2:
                    simulation.write(g._delete(HUB, None), "delete")
                simulation.write(g._disconnect(OnAlbum, "hub", f"t{number}", {}), "disconnect")
            simulation.drain()
            assert look(g, [*some, *(f"t{number}" for number in range(28))]) == (False, 0, 0), seed
            assert leftovers(g) == [], seed


def test_a_delete_does_not_remove_what_was_made_after_it(g: Graph) -> None:
    """What it finds in its last look goes only as long as the node is not there again."""
    fill(g, 2, 2)
    g.put(Tag(id="n"))
    deleting = Process(g, g._delete(HUB, None), "delete")
    while not deleting.is_about(TransactWrite):
        deleting.step(random.Random(0))
    g.connect(Tagged, "hub", "n")
    deleting.step(random.Random(0))
    assert g.get(Album, "hub") is None
    while not deleting.is_about(TransactWrite):
        deleting.step(random.Random(0))
    g.put(HUB)
    deleting.finish()
    assert look(g) == (True, 0, 1)


def test_every_step_asks_for_what_the_delete_asks(g: Graph) -> None:
    """Edges that need transactions of their own go before the node does; none may if it is another one then."""
    fill(g, 40)
    deleting = Process(g, g._delete(HUB, None, only_if=field("code") == "h"), "delete")
    while not deleting.is_about(TransactWrite):
        deleting.step(random.Random(0))
    g.update(Album, "hub", code="other")
    with pytest.raises(ConditionFailed):
        deleting.finish()
    assert (g.out("hub", OnAlbum).count(), g.get(Album, "hub")) == (40, Album(id="hub", code="other", tracks=40))


def test_a_claim_of_another_node_stays(g: Graph) -> None:
    fill(g, 1)
    claim = g._layout.claim_key(g._layout.schema.node(Album), "code", "h")
    key = g._layout.node_text(g._layout.schema.node(Album), "other")
    g._store.execute((Update("adjoin", claim, (Set(attribute(OWNER), Value({"S": key})),)),))
    assert g.delete(Album, "hub") is True
    assert g.get(Album, "hub") is None
    assert [item for item in stored(g) if g._layout.key_of(item) == claim] != []
