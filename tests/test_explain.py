"""Explaining a call: its requests, index, partitions and units, without asking the store."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest

from adjoin import (
    AdjacencyList,
    AsyncGraph,
    Copy,
    Count,
    Edge,
    Graph,
    Index,
    Indexed,
    Node,
    NotFound,
    Unique,
    field,
)
from adjoin.cost import Rehearsing
from adjoin.plans.maintenance.expected import expected
from adjoin.requests import BatchGet, Get, Put, Query, TransactWrite
from adjoin.sharding.maps import FIRST_LEASE
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition
from tests.maintenance.models import MODELS, Contains, Follows, Placed, Uses
from tests.models import ANN, SCHOOL, Attendance, Course, Enrollment, Student


def test_explain_asks_nothing(school: Any) -> None:
    before = list(school.changes())
    with school.meter() as meter:
        explained = school.explain(school.into("maths", Enrollment))
    assert (explained.index, explained.partitions, explained.rcu) == ("GSI1", ("COURSE#maths",), 0.5)
    assert "GSI1" in str(explained)
    assert (meter.requests, meter.rcu, meter.wcu) == (0, 0, 0)
    assert list(school.changes()) == before


class Person(Node):
    id: str
    name: Annotated[str, Indexed()]
    born: Annotated[int | None, Indexed()] = None
    email: Annotated[str | None, Unique()] = None


def test_a_query_of_several_keys_is_described_by_their_values() -> None:
    index = IndexDefinition.over("GSI", [KeyAttribute("city"), KeyAttribute("year", "N")], [KeyAttribute("name")])
    rehearsing = Rehearsing(TableDefinition("T", KeyAttribute("id"), None, (index,)))
    query = Query("T", ("city", {"S": "Bonn"}), index="GSI", equal=(("year", {"N": "1990"}),))
    item = {"id": {"S": "1"}, "city": {"S": "Bonn"}, "year": {"N": "1990"}}
    rehearsing.answer([query, Put("T", item), Put("T", {**item, "name": {"S": "Ann"}})])
    explained = rehearsing.explanation()
    assert explained.partitions == ("Bonn + 1990", "1")
    assert str(explained).startswith("round 1: Query on index GSI, Bonn + 1990\n")
    assert [row.index for row in explained.consumed] == ["GSI", None, None, "GSI"], "the first item lacks a key"


def test_explain_names_every_shard_that_a_find_asks() -> None:
    with Graph(":memory:", [Person], AdjacencyList(shards=3)) as g:
        explained = g.explain(g.find(Person, field("name") == "Ann"))
    assert (explained.index, explained.rcu, explained.wcu) == ("GSI3", 1.5, 0)
    assert explained.partitions == ("PERSON#name#0", "PERSON#name#1", "PERSON#name#2")
    assert str(explained).splitlines() == [
        "round 1: Query on index GSI3, PERSON#name#0",
        "round 1: Query on index GSI3, PERSON#name#1",
        "round 1: Query on index GSI3, PERSON#name#2",
        "at least 1.5 RCU and 0 WCU, $0.000000188",
    ]


def test_explain_shows_copies_and_claims() -> None:
    with Graph(":memory:", [Person], AdjacencyList(shards=1)) as g:
        explained = g.explain(g.put, Person(id="P1", name="Ann", born=1990, email="ann@example.com"))
    assert str(explained).splitlines()[:2] == [
        "round 1: Get PERSON#P1",
        "round 2: TransactWrite of 3 items (Put, Put, Put)",
    ]
    assert explained.partitions == ("PERSON#P1", "PERSON#P1#=", "#=PERSON#email#ann@example.com")
    assert (explained.rcu, explained.wcu) == (1, 8)


class Post(Node):
    id: UUID
    title: str


class Wrote(Edge[Person, Post], key=("year",), order="place"):
    year: int
    place: int
    at: dt.datetime
    mood: Literal["glad", "sad"] = "glad"
    by: Annotated[str, Copy("source.name")] = ""
    words: Annotated[int | None, Indexed()] = None
    pages: Annotated[int | None, Indexed()] = None


class Mood(Enum):
    GLAD = "glad"


class Shelf(Node):
    id: str
    posts: Annotated[int, Count("Held", consistency="transaction")] = 0


class Held(Edge[Shelf, Post]):
    weight: Decimal
    kind: Mood


def test_explain_goes_on_where_a_change_has_to_read_first() -> None:
    """An empty table has nothing to change, so what is changed is imagined; nothing is asked."""
    post = UUID(int=7)
    with Graph(":memory:", [Person, Post, Wrote, Shelf, Held], AdjacencyList(shards=1)) as g:
        with g.meter() as meter:
            explained = g.explain(g.update, Person, "P1", name="Bea")
            edge = g.explain(g.update, Wrote, "P1", post, year=2024, words=3)
            counted = g.explain(g.update, Held, "S1", post, weight=Decimal(2))

            def together() -> None:
                with g.transaction() as t:
                    t.update(Person, "P1", name="Bea")
                    t.update(Wrote, "P1", post, year=2024, place=2)

            both = g.explain(together)
        assert meter.requests == 0
        assert str(explained).splitlines()[:2] == [
            "round 1: Get PERSON#P1",
            "round 2: TransactWrite of 2 items (Put, Delete)",
        ]
        assert [fan_out.fields for fan_out in explained.fan_outs] == [("by",)]
        assert [type(request) for request in edge.requests] == [Get, TransactWrite]
        assert [type(request) for request in counted.requests][-1] is TransactWrite
        assert [fan_out.edge for fan_out in both.fan_outs] == ["Wrote"]
        with pytest.raises(NotFound):
            g.update(Person, "P1", name="Bea")


def test_explaining_teaches_a_graph_nothing_about_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a rehearsal answers is made up, so it must not pass for the stored map, nor a put of it for heat."""
    with Graph(":memory:", [Person]) as g:
        assert g._layout.overloaded is not None
        book = g._layout.overloaded.book
        monkeypatch.setattr(book, "clock", lambda: time.time() + 10 * FIRST_LEASE)
        assert book.is_stale("PERSON#name")
        explained = g.explain(g.find(Person, field("name") == "Ann"))
        assert [type(request).__name__ for request in explained.requests] == ["Query", "Get"]
        assert book.is_stale("PERSON#name")
        g.explain(g.put, Person(id="P1", name="Ann"))
        assert book._counters == {}
        assert list(g.find(Person, field("name") == "Ann")) == []
        assert not book.is_stale("PERSON#name")


CALLS: list[tuple[str, tuple[Any, ...], int, float, float]] = [
    ("get", (Student, "ann"), 1, 0.5, 0),
    ("put", (ANN,), 1, 0, 1),
    ("put", (Enrollment(source="ann", target="maths"),), 1, 0, 2),
    ("put", (Attendance(source="ann", target="maths", day=dt.date(2024, 1, 1)),), 1, 0, 3),
    ("put", (Course(id="c", name="x" * 3000),), 1, 0, 3),
    ("get_many", (Student, ["a", "b", "c"]), 1, 1.5, 0),
    ("connect", (Enrollment, "ann", "maths"), 1, 0, 7),
    ("delete", (Student, "ann"), 3, 2, 1),
]


@pytest.mark.parametrize(("verb", "arguments", "requests", "rcu", "wcu"), CALLS)
def test_explain_prices_calls(verb: str, arguments: tuple[Any, ...], requests: int, rcu: float, wcu: float) -> None:
    with Graph(":memory:", SCHOOL) as graph:
        explained = graph.explain(getattr(graph, verb), *arguments)
        assert (len(explained.requests), explained.rcu, explained.wcu) == (requests, rcu, wcu)
        assert explained == graph.explain(lambda: getattr(graph, verb)(*arguments))
        assert list(graph.changes()) == []

    async def main() -> None:
        async with AsyncGraph(":memory:", SCHOOL) as graph:
            assert await graph.explain(getattr(graph, verb), *arguments) == explained
            assert await graph.explain(getattr(graph, verb)(*arguments)) == explained

    asyncio.run(main())


def test_what_maintain_will_do_names_the_edges_that_read_what_changes() -> None:
    """Not those that read something else, nor those that read nothing."""
    with Graph(":memory:", MODELS) as g:
        layout = g._layout
        for edge, above in (
            (Contains(source="I1", target="B1"), [Placed]),
            (Placed(source="C1", target="I1"), []),
            (Uses(source="P1", target="P2"), [Uses]),
            (Follows(source="N1", target="N2"), [Follows]),
        ):
            (told,) = expected(layout, g.explain(g.put, edge).requests)
            assert [kind.model for kind in told.above] == above


class Parcel(Node):
    id: str
    city: str
    weight: int
    name: Annotated[str, Indexed()]


class Van(Node):
    id: str


class Carries(Edge[Van, Parcel]):
    note: str


def test_a_query_of_an_index_that_holds_some_attributes_also_reads_the_items() -> None:
    some = Projection("KEYS_ONLY")
    layout = AdjacencyList(
        indexes=[Index("ByCity", "city", "weight", types={"weight": "N"}, projection=some)],
        reverse=Index("GSI1", "GSI1PK", "GSI1SK", projection=some),
        indexed=Index("GSI3", "GSI3PK", "GSI3SK", projection=some),
        shards=3,
    )
    with Graph(":memory:", [Parcel, Van, Carries], layout=layout) as g:
        queries: list[Any] = [
            g.find(Parcel, field("city") == "Bonn"),
            g.find(Parcel, field("name") == "Ann"),
            g.into("P1", Carries),
        ]
        node, edge = (
            {"PK": {"S": "PARCEL#x"}, "SK": {"S": "#META"}},
            {"PK": {"S": "VAN#x"}, "SK": {"S": "CARRIES#PARCEL#x"}},
        )
        for query, key in zip(queries, (node, node, edge), strict=True):
            _, read = g.explain(query).rounds
            assert read == (BatchGet((Get("adjoin", key),)),)
        # A query that finds nothing reads nothing besides.
        with g.meter() as meter:
            assert [list(query) for query in queries] == [[], [], []]
        assert meter.rounds == 3
