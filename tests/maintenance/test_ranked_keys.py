"""Managed fields in keys of declared indexes, summaries in indexes, and what cannot be kept there."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Edge, Graph, Index, Indexed, InvalidModel, Keys, MigrationDue, Node, field
from adjoin.aggregates import Copy, Count, Max, PageRank, Sum, Top
from adjoin.stores.sqlite import SQLiteStore
from tests.maintenance.test_rankings import LAYOUTS, Bought, Buyer, Product, ranking
from tests.shares import stride

# --- other keys --------------------------------------------------------------------------------


class Song(Node):
    id: str
    genre: str = "jazz"
    played: Annotated[int, Count("Played")] = 0
    minutes: Annotated[int, Sum("Played", field="minutes")] = 0
    longest: Annotated[int | None, Max("Played", field="minutes")] = None


class Listener(Node):
    id: str


class Played(Edge[Listener, Song]):
    minutes: int = 1


SONGS: list[type[Any]] = [Song, Listener, Played]
INDEXES = AdjacencyList(
    indexes=[
        Index("Charts", "Genre", "Chart"),
        Index("ByMinutes", "genre", "minutes"),
        Index("ByLongest", "genre", "longest"),
    ],
    keys={Song: Keys(indexes={"Charts": ("{genre}", "{played:sortable}")})},
)


def charts(g: Graph, genre: str, order: str) -> list[tuple[str, int]]:
    found = g.find(Song, field("genre") == genre, order=order)
    return [(song.id, getattr(song, order)) for song in found.reverse()]


def test_declared_indexes_hold_what_is_counted() -> None:
    with Graph(":memory:", SONGS, INDEXES) as g:
        g.put_many([*(Song(id=f"S{number}") for number in range(4)), Song(id="T", genre="folk")])
        g.put_many(Listener(id=f"L{number}") for number in range(3))
        assert (
            dict(charts(g, "jazz", "played"))
            == dict(charts(g, "jazz", "minutes"))
            == dict.fromkeys(("S0", "S1", "S2", "S3"), 0)
        )
        g.put_many(
            Played(source=f"L{listener}", target=f"S{song}", minutes=20 - 5 * song)
            for song in range(1, 4)
            for listener in range(song)
        )
        g.maintain(once=True)
        assert charts(g, "jazz", "played") == [("S3", 3), ("S2", 2), ("S1", 1), ("S0", 0)]
        assert charts(g, "jazz", "minutes") == [("S2", 20), ("S3", 15), ("S1", 15), ("S0", 0)]
        assert charts(g, "jazz", "longest") == [("S1", 15), ("S2", 10), ("S3", 5)]
        g.update(Song, "S3", genre="folk")
        g.put(Song(id="S2", genre="folk"))
        g.disconnect(Played, "L0", "S2")
        g.maintain(once=True)
        assert charts(g, "folk", "played") == [("S3", 3), ("S2", 1), ("T", 0)]
        assert charts(g, "folk", "minutes") == [("S3", 15), ("S2", 10), ("T", 0)]
        assert g.verify(threads=1).findings == ()
        g.rebuild()
        assert charts(g, "folk", "played") == [("S3", 3), ("S2", 1), ("T", 0)]


def test_keys_that_cannot_be_kept_are_refused() -> None:
    mixed = AdjacencyList(
        indexes=[Index("Charts", "Genre", "Chart")],
        keys={Song: Keys(indexes={"Charts": ("all", "{genre}#{played:sortable}")})},
    )
    with pytest.raises(InvalidModel, match="made of 'played', a managed field, and of 'genre'"):
        Graph(":memory:", SONGS, mixed)
    open_ended = AdjacencyList(
        indexes=[Index("Charts", "Genre", "Chart")],
        keys={Song: Keys(indexes={"Charts": ("all", "{longest:sortable}")})},
    )
    with pytest.raises(InvalidModel, match="longest is part of the key 'Chart', but it may be None"):
        Graph(":memory:", SONGS, open_ended)

    class Best(Node):
        id: str
        best: Annotated[list[int], Top("Edges", field="weight"), Indexed()] = []

    class Edges(Edge[Best, Best]):
        weight: int = 0

    with pytest.raises(InvalidModel, match=r"Best\.best holds several values, so nodes have no order by it"):
        Graph(":memory:", [Best, Edges])

    class Mate(Edge[Buyer, Buyer], symmetric=True):
        name: Annotated[str, Copy("target.name"), Indexed()] = ""

    with pytest.raises(InvalidModel, match=r"Mate\.name is a copied field of a symmetric edge"):
        Graph(":memory:", [Buyer, Product, Bought, Mate])


# --- summaries ---------------------------------------------------------------------------------


class Page(Node):
    id: str
    title: str = ""
    rank: Annotated[Decimal, PageRank("Links"), Indexed()] = Decimal(0)


class Links(Edge[Page, Page]):
    pass


class Site(Node):
    id: str
    name: Annotated[str, Indexed()] = ""
    rank: Annotated[float, PageRank("Refers"), Indexed()] = 0.0


class Refers(Edge[Site, Site]):
    pass


SUMMARIZED = list(product(LAYOUTS, [(Page, Links), (Site, Refers)]))[:: stride(3)]


@pytest.mark.simulation
@pytest.mark.parametrize(("layout", "page", "links"), [(layout, *models) for layout, models in SUMMARIZED])
def test_nodes_are_listed_by_a_summary(layout: str, page: Any, links: Any) -> None:
    with Graph(":memory:", [page, links], LAYOUTS[layout]) as g:
        g.put_many(page(id=f"{number}") for number in range(6))
        g.put_many(links(source=f"{number}", target=f"{number // 2}") for number in range(6))
        assert len(list(g.find(page, field("rank") == 0))) == 6
        g.rebuild()
        assert list(g.find(page, order="rank")) == ranking(g, page, "rank")
        assert [each.id for each in g.find(page, order="rank").reverse().limit(1)] == ["0"]
        g.put(page(id="0"))
        g.disconnect(links, "0", "0")
        g.rebuild()
        assert list(g.find(page, order="rank")) == ranking(g, page, "rank")
        assert g.verify(threads=1).findings == ()


# --- a field that is indexed later -------------------------------------------------------------


def test_a_field_that_is_marked_later_is_completed_by_a_migration() -> None:
    def declared(*marks: Any) -> list[type[Any]]:
        class Fan(Node):
            id: str

        class Band(Node):
            id: str
            fans: Annotated[int, Count("Likes"), *marks] = 0

        class Likes(Edge[Fan, Band]):
            pass

        return [Fan, Band, Likes]

    store = SQLiteStore(":memory:")
    former, (fan, band, likes) = Graph(store, models := declared()), models
    former.put_many([*(band(id=f"B{number}") for number in range(3)), *(fan(id=f"F{number}") for number in range(3))])
    former.put_many(likes(source=f"F{number}", target="B1") for number in range(3))
    former.maintain(once=True)
    (fan, band, likes) = models = declared(Indexed())
    g = Graph(store, models)
    with pytest.raises(MigrationDue):
        list(g.find(band, order="fans"))
    # A put of a node that has no entry yet gives it that of a new node; the migration corrects it.
    g.put(band(id="B1"))
    g.put(likes(source="F0", target="B2"))
    g.maintain(once=True)
    g.migrate()
    g.migrate(finish=True)
    assert [(each.id, each.fans) for each in g.find(band, order="fans")] == [("B0", 0), ("B2", 1), ("B1", 3)]
    assert g.verify(threads=1).findings == ()
    g.close()
