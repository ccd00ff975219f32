"""Copies on symmetric edges, in index keys that have more than the copy, and where others come between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    Copy,
    Count,
    Edge,
    Graph,
    Index,
    Indexed,
    Keys,
    MaterializedGraph,
    Node,
    TransactionCanceled,
)
from adjoin import field as by
from adjoin.errors import CancellationReason
from adjoin.expressions import Set, Value, attribute
from adjoin.layouts.interface import REVISION
from adjoin.plans.maintenance.copies import At, copy_ref, freshen, freshen_at, key_companions
from adjoin.plans.maintenance.neighbours import reconcile_near
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.steps.again import ATTEMPTS
from adjoin.plans.steps.batches import place_of
from adjoin.requests import BatchGet, Delete, Plan, Request, TransactWrite, Update
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore
from tests.growing import Clock, on_clock
from tests.maintenance.simulation import stored


class Person(Node):
    id: str
    name: str = ""


class Friend(Edge[Person, Person], symmetric=True):
    mine: Annotated[str, Copy("source.name")] = ""
    other: Annotated[str, Copy("target.name")] = ""


class Mate(Edge[Person, Person], symmetric=True):
    mine: Annotated[str, Copy("source.name")] = ""


class Pal(Edge[Person, Person], symmetric=True):
    other: Annotated[str, Copy("target.name")] = ""


@pytest.mark.parametrize("layout", [AdjacencyList(), MaterializedGraph()], ids=["adjacency", "materialized"])
def test_both_items_of_a_symmetric_edge_follow_both_nodes(layout: Any) -> None:
    """Also an edge from a node to itself, which is one item; and the edges of others stay as they are."""
    with Graph(":memory:", [Person, Friend, Mate, Pal], layout) as g:
        g.put_many(Person(id=id, name=id.upper()) for id in "abc")
        kinds: tuple[Any, ...] = (Friend, Mate, Pal)
        for kind in kinds:
            g.put_many(kind(source=source, target=target) for source, target in ("ab", "ca", "bc", "aa"))
        g.maintain(once=True)
        g.update(Person, "a", name="Ann")
        g.maintain(once=True)
        names = {"a": "Ann", "b": "B", "c": "C"}
        for kind in kinds:
            edges = [edge for source in names for edge in g.out(Person.ref(source), kind)]
            assert len(edges) == 7
            for edge in edges:
                assert (getattr(edge, "mine", names[edge.source]), getattr(edge, "other", names[edge.target])) == (
                    names[edge.source],
                    names[edge.target],
                )


# --- keys of indexes ---------------------------------------------------------------------------


class Club(Node):
    id: str
    name: str = ""


class Fan(Node):
    id: str


class Supports(Edge[Fan, Club]):
    since: int = 0
    club: Annotated[str, Copy("target.name")] = ""


BY_CLUB = AdjacencyList(
    indexes=[Index("ByClub", "Club", "ClubSort")],
    keys={Supports: Keys(indexes={"ByClub": ("{club}", "{since}#{source}")})},
)


def test_a_field_beside_a_copy_in_a_key_is_a_companion_and_an_end_is_none() -> None:
    with Graph(":memory:", [Fan, Club, Supports], BY_CLUB) as g:
        layout = g._layout
        assert key_companions(layout, layout.schema.edge(Supports)) == ["since"]
        g.put_many([Club(id="c", name="A"), Supports(source="f", target="c", since=3)])
        g.maintain(once=True)
        g.update(Club, "c", name="B")
        g.maintain(once=True)
        assert [edge.club for edge in g.index("ByClub").partition("B")] == ["B"]
        assert list(g.index("ByClub").partition("A")) == []


def test_an_edge_gets_a_new_revision_only_if_it_has_one() -> None:
    """A program that read the edge as it was, to write it as a whole, has to read it again."""
    with Graph(":memory:", [Fan, Club, Supports]) as g:
        g.put_many([Club(id="c", name="A"), Supports(source="f", target="c"), Supports(source="g", target="c")])
        key = g._layout.edge_key(g._layout.schema.edge(Supports), "g", "c", {})
        g._store.execute((Update("adjoin", key, (Set(attribute(REVISION), Value({"S": "old"})),)),))
        g.update(Club, "c", name="B")
        g.maintain(once=True)
        found = {item["PK"]["S"]: item.get(REVISION) for item in stored(g) if item.get("club") == {"S": "B"}}
        assert found.keys() == {"FAN#f", "FAN#g"}
        assert found["FAN#f"] is None
        assert found["FAN#g"] not in (None, {"S": "old"})


def test_a_companion_that_changes_meanwhile_is_in_the_key() -> None:
    """Another program changes it after the edge was read, and before its copy is written."""
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, [Fan, Club, Supports], BY_CLUB) as g, Graph(store.inner, [Fan, Club, Supports], BY_CLUB) as other:
        g.put_many([Club(id="c", name="A"), Supports(source="f", target="c", since=3)])
        g.update(Club, "c", name="B")
        (item,) = g._layout.items(Supports(source="f", target="c", since=3))

        def come_between(_: int, request: Request) -> None:
            if isinstance(request, TransactWrite):
                store.recover()
                other.update(Supports, "f", "c", since=4)

        store.fault = come_between
        run(freshen(g._layout, [copy_ref(g._layout, g._layout.schema.edge(Supports), item)], Tally()), store)
        assert g.edge(Supports, "f", "c") == Supports(source="f", target="c", since=4, club="B")
        g.put(Supports(source="z", target="c", since=4))
        g.maintain(once=True)
        keys = [(item["Club"]["S"], item["ClubSort"]["S"].partition("#")[0]) for item in stored(g) if "Club" in item]
        assert (len(keys), len(set(keys))) == (2, 1)


class Ranked(Edge[Fan, Club]):
    since: Annotated[int, Indexed()] = 0
    club: Annotated[str | None, Copy("target.name"), Indexed()] = None


def test_an_indexed_copy_is_found_by_its_present_value() -> None:
    """It is an index copy of the edge, which comes and goes with the value; with each its revision is another one."""
    with Graph(":memory:", [Fan, Club, Ranked], MaterializedGraph()) as g:
        g.put(Ranked(source="f", target="c", since=3))
        revisions: list[Any] = []
        for name in ("A", "B", None):
            if name is None:
                g.delete(Club, "c")
                g.put(Ranked(source="f", target="c", since=3))
            else:
                g.put(Club(id="c", name=name))
            g.maintain(once=True)
            edge = Ranked(source="f", target="c", since=3, club=name)
            revisions += [item[REVISION] for item in stored(g) if "since" in item and REVISION in item][:1]
            assert g.edge(Ranked, "f", "c") == edge
            for each in ("A", "B"):
                assert list(g.find(Ranked, by("club") == each)) == ([edge] if each == name else [])
            assert list(g.find(Ranked, by("since") == 3)) == [edge]
        # Each time another one: a program that has read the edge as it was must not write it as a whole.
        assert revisions[0] != revisions[1]


# --- others that come between ------------------------------------------------------------------


def canceled(code: str, message: str = "") -> TransactionCanceled:
    return TransactionCanceled("no", [CancellationReason("None"), CancellationReason(code, message)])


def supported(store: FaultyStore, number: int) -> tuple[Graph, list[Any]]:
    g = Graph(store, [Fan, Club, Supports])
    g.put(Club(id="c", name="A"))
    edges = [Supports(source=f"f{at}", target="c") for at in range(number)]
    g.put_many(edges)
    kind = g._layout.schema.edge(Supports)
    for each in edges:
        # As a program does that does not know of copies.
        key = g._layout.edge_key(kind, each.source, "c", {})
        store.execute((Update("adjoin", key, (Set(attribute("club"), Value({"S": "?"})),)),))
    return g, [copy_ref(g._layout, kind, g._layout.items(each)[0]) for each in edges]


def test_an_edge_that_others_outrun_at_every_attempt_is_given_up() -> None:
    store = FaultyStore(SQLiteStore(":memory:"))
    g, refs = supported(store, 1)
    tried: list[Request] = []

    def come_first(_: int, request: Request) -> None:
        if isinstance(request, TransactWrite):
            tried.append(request)
            raise canceled("ConditionalCheckFailed")

    store.fault = come_first
    with g, pytest.raises(TransactionCanceled):
        run(freshen(g._layout, refs, Tally()), store)
    assert len(tried) == ATTEMPTS


def test_only_failures_in_a_row_count() -> None:
    """Each of many edges is outrun once. Together that is more often than one of them may be."""
    store = FaultyStore(SQLiteStore(":memory:"))
    g, refs = supported(store, ATTEMPTS + 5)
    seen: set[Any] = set()
    is_first = True

    def come_first(_: int, request: Request) -> None:
        nonlocal is_first
        if isinstance(request, TransactWrite):
            if is_first:
                # From now on each edge is tried alone.
                is_first = False
                raise canceled("ValidationError", "too large")
            place = repr(request.writes[-1])
            place = place[: place.index("actions")]
            if place not in seen:
                seen.add(place)
                raise canceled("ConditionalCheckFailed")

    store.fault = come_first
    tally = Tally()
    with g:
        run(freshen(g._layout, refs, tally), store)
        assert (tally.edges, tally.records) == (ATTEMPTS + 5, [])
        assert {edge.club for edge in g.into(Club.ref("c"), Supports)} == {"A"}


def test_an_edge_that_cannot_be_written_is_set_aside_with_what_the_store_said() -> None:
    """Of the reasons only those that are one; one without words is told by its code."""
    for message, told in (("the item is too large", "the item is too large"), ("", "ValidationError")):
        store = FaultyStore(SQLiteStore(":memory:"))
        g, refs = supported(store, 2)
        spoilt = place_of(refs[0].key)

        def refuse(_: int, request: Request, message: str = message, spoilt: Any = spoilt) -> None:
            if isinstance(request, TransactWrite) and spoilt in [place_of(each.key) for each in request.writes]:  # type: ignore[union-attr]
                raise canceled("ValidationError", message)

        store.fault = refuse
        tally = Tally()
        with g:
            run(freshen(g._layout, refs, tally), store)
            assert [each.reason for each in tally.records] == [
                f"the copied fields of this Supports are not up to date: {told}"
            ]
            assert [edge.club for edge in g.into(Club.ref("c"), Supports)] == ["?", "A"]


def test_edges_that_are_not_there_are_told_and_those_that_were_written_are_not_read_again() -> None:
    store = FaultyStore(SQLiteStore(":memory:"))
    g, refs = supported(store, 3)
    with g:
        store.execute((Delete("adjoin", refs[1].key),))
        reads: list[Request] = []
        store.fault = lambda _, request: reads.append(request) if isinstance(request, BatchGet) else None
        assert run(freshen(g._layout, refs, Tally()), store) == {place_of(refs[1].key)}
        assert len(reads) == 1
        assert [edge.club for edge in g.into(Club.ref("c"), Supports)] == ["A", "A"]


# --- indexes whose shards are raised -----------------------------------------------------------


class Artist(Node):
    id: str
    name: str = ""
    listeners: Annotated[int, Count("Hears", direction="into")] = 0


class Hears(Edge[Person, Artist]):
    day: str = ""
    artist: Annotated[str, Copy("target.name")] = ""


BY_DAY = AdjacencyList(
    indexes=[Index("ByDay", "GSIPK", "day", shards=2)], keys={Hears: Keys(indexes={"ByDay": "{shard}"})}
)


def test_before_edges_are_looked_for_the_number_of_shards_is_read_again() -> None:
    """Another program has raised it, and has put edges into the new ones."""
    store = SQLiteStore(":memory:")
    models = [Person, Artist, Hears]
    with Graph(store, models, BY_DAY) as g, Graph(store, models, BY_DAY) as other:
        clock = Clock()
        on_clock(g, clock)
        layout = g._layout
        (number,) = layout.shard_numbers.values()
        at = At(layout.schema.edge(Hears), "target", "ARTIST#x")
        kind = layout.schema.node(Artist)
        plans: list[Callable[[], Plan[None]]] = [
            lambda: freshen_at(layout, [at], Tally()),
            lambda: reconcile_near(layout, kind, ["ARTIST#x"], Tally()),
        ]
        for more, plan in enumerate(plans, 3):
            other.raise_shards("ByDay", more)
            run(plan(), store)
            assert len(number.all) == more - 1, "what was read a moment ago is not read again"
            clock.pass_lease()
            run(plan(), store)
            assert len(number.all) == more
