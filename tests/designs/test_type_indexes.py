"""An index over the attribute that says what an item is: all items of a type, the newest first.

    pk       sk       type     createdAt             title  severity
    USER#u1  USER     user     2026-01-02T00:00:00Z
    USER#u1  NOTE#n1  note     2026-01-03T00:00:00Z  Hello
    CASE#c1  CASE     bug      2026-01-04T00:00:00Z         2
    CASE#c2  CASE     request  2026-01-05T00:00:00Z

Cases are a family: the type says which class one is. BySeverity has the type in its sort key.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import AdjacencyList, Child, Edge, Graph, Index, InvalidKey, Keys, Node, Stored, field
from tests.designs.table_of_others import STORES, asked, filled, item, stored
from tests.servers.open import Stores

UTC = dt.UTC
Created = Annotated[dt.datetime, Stored("%Y-%m-%dT%H:%M:%SZ"), Field(alias="createdAt")]


class User(Node):
    id: str
    created: Created


class Note(Child[User]):
    id: str
    created: Created
    title: str


class Case(Node, discriminator="type", label="case"):
    id: str
    created: Created
    severity: int = 0


class Bug(Case, label="bug"):
    pass


class Request(Case, label="request"):
    pass


class Follows(Edge[User, Case]):
    created: Created


MODELS: list[Any] = [User, Note, Case, Bug, Request, Follows]
LAYOUT = AdjacencyList(
    table="Cases",
    partition_key="pk",
    sort_key="sk",
    type_attribute="type",
    reverse=None,
    indexes=[Index("ByType", "type", "createdAt"), Index("BySeverity", "severity", ("type", "createdAt"))],
    keys={
        User: Keys("USER#{id}", "USER", type="user"),
        Note: Keys(sort="NOTE#{id}", type="note"),
        Case: Keys("CASE#{id}", "CASE"),
        Follows: Keys(sort="FOLLOWS#{target.id}", type="follows"),
    },
)


def at(day: int) -> dt.datetime:
    return dt.datetime(2026, 1, day, tzinfo=UTC)


def text(day: int) -> str:
    return f"2026-01-{day:02}T00:00:00Z"


ITEMS = [
    item(pk="USER#u1", sk="USER", type="user", createdAt=text(2)),
    item(pk="USER#u2", sk="USER", type="user", createdAt=text(1)),
    item(pk="USER#u1", sk="NOTE#n1", type="note", createdAt=text(3), title="Hello"),
    item(pk="USER#u2", sk="NOTE#n2", type="note", createdAt=text(2), title="Bye"),
    item(pk="CASE#c1", sk="CASE", type="bug", createdAt=text(4), severity=2),
    item(pk="CASE#c2", sk="CASE", type="request", createdAt=text(5), severity=0),
    item(pk="CASE#c3", sk="CASE", type="bug", createdAt=text(6), severity=2),
    item(pk="CASE#c4", sk="CASE", type="case", createdAt=text(1), severity=2),
    item(pk="USER#u1", sk="FOLLOWS#c1", type="follows", createdAt=text(7)),
]
STRAY = item(pk="USER#u9", sk="USER", type="visitor", createdAt=text(1))


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, [*ITEMS, STRAY]) as graph:
        yield graph


def test_all_of_a_type_are_found_in_the_order_of_time(g: Graph) -> None:
    users, requests = asked(g, g.find(User, order="created").reverse())
    assert ([each.id for each in users], requests) == (["u1", "u2"], 1)
    notes, requests = asked(g, g.find(Note, field("created") >= at(3)))
    assert ([each.title for each in notes], requests) == (["Hello"], 1)
    follows, requests = asked(g, g.find(Follows))
    assert ([each.target for each in follows], requests) == (["c1"], 1)
    filtered, requests = asked(g, g.find(Note, field("title") == "Bye", order="created"))
    assert ([each.id for each in filtered], requests) == (["n2"], 1)
    assert g.find(User).count() == g.count(User) == 2
    assert g.explain(g.find(User)).index == "ByType"
    with pytest.raises(InvalidKey, match="'ByType' needs created"):
        g.find(Note, field("title") == "Bye")


def test_a_family_has_a_partition_for_each_of_its_types(g: Graph) -> None:
    bugs, requests = asked(g, g.find(Bug, order="created"))
    assert ([each.id for each in bugs], requests) == (["c1", "c3"], 1)
    cases, requests = asked(g, g.find(Case, field("created").between(at(1), at(5)), index="ByType"))
    assert ([(type(each), each.id) for each in cases], requests) == ([(Case, "c4"), (Bug, "c1"), (Request, "c2")], 3)
    page = g.find(Case, order="created").page(limit=3)
    assert [each.id for each in g.find(Case, order="created").page(after=page.next)] == ["c3"]


def test_a_type_narrows_a_sort_key(g: Graph) -> None:
    bugs, requests = asked(g, g.find(Bug, (field("severity") == 2) & (field("created") > at(4))))
    assert ([each.id for each in bugs], requests) == (["c3"], 1)
    assert [query.sort.attribute for query in g.explain(g.find(Bug, field("severity") == 2)).requests] == ["type"]  # type: ignore[union-attr]
    cases, requests = asked(g, g.find(Case, field("severity") == 2))
    assert (sorted(each.id for each in cases), requests) == (["c1", "c3", "c4"], 1)


def test_what_is_written_has_its_type(g: Graph) -> None:
    g.put(Bug(id="c9", created=at(9), severity=1))
    assert stored(g, "CASE#c9", "CASE") == item(pk="CASE#c9", sk="CASE", type="bug", createdAt=text(9), severity=1)
    assert [each.id for each in g.find(Bug, order="created").reverse().limit(1)] == ["c9"]
    contents = g.scan().collect()
    assert [each["pk"] for each in contents.others] == ["USER#u9"]
