"""Tables that adjoin has laid out itself: what their keys and own items tell of the declarations."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Child, Edge, Graph, Indexed, MaterializedGraph, Node, Unique
from adjoin.inferring import infer
from adjoin.requests import DescribeTable, TableResponse
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item
from tests.inferring.published import Table
from tests.inferring.tables import opened, scanned


class Person(Node):
    id: str
    name: Annotated[str, Indexed()]
    born: Annotated[dt.date | None, Indexed()] = None
    email: Annotated[str | None, Unique()] = None


class Repo(Node, key=("owner", "name")):
    owner: str
    name: str
    stars: int = 0


class Page(Node, label="WIKI"):
    id: str


class Note(Child[Person], key=("number",)):
    number: int
    text: str


class Follows(Edge[Person, Person], order="since"):
    since: dt.date


class Rated(Edge[Person, Repo], key=("year",)):
    year: int
    stars: Decimal


class Friend(Edge[Person, Person], symmetric=True):
    since: int


class Reads(Edge[Person, Repo | Page]):
    pass


MODELS = [Person, Repo, Page, Note, Follows, Rated, Friend, Reads]
SAMPLE: list[Any] = [
    Person(id="a#1", name="Ann Lee", born=dt.date(1990, 1, 2), email="ann@example.com"),
    Person(id="ben", name="Ben"),
    Person(id="cid", name="Cid", born=dt.date(1980, 1, 2)),
    Repo(owner="ben", name="adjoin", stars=3),
    Page(id="home"),
    Note(parent="a#1", number=7, text="x"),
    Note(parent="a#1", number=-12, text="y"),
    Follows(source="a#1", target="ben", since=dt.date(2020, 1, 1)),
    Follows(source="ben", target="cid", since=dt.date(2021, 1, 1)),
    Rated(source="ben", target=("ben", "adjoin"), year=2024, stars=Decimal("4.5")),
    Rated(source="ben", target=("ben", "adjoin"), year=2025, stars=Decimal(5)),
    Friend(source="ben", target="cid", since=7),
    Reads(source="ben", target=Repo.ref(("ben", "adjoin"))),
    Reads(source="cid", target=Page.ref("home")),
]


def stored(layout: Any, sample: list[Any], models: list[Any]) -> Table:
    store = SQLiteStore(":memory:")
    with Graph(store, models, layout) as g:
        g.put_many(sample)
        (described,) = store.execute([DescribeTable(layout.table)])
        assert isinstance(described, TableResponse)
        return described.definition, scanned(store, layout.table)


def without_revisions(g: Graph) -> list[Item]:
    """The items, without what gets another value with each write of an entity that has index copies or claims."""
    items = scanned(g._store, "All")
    return [{name: value for name, value in item.items() if name != "adjoin:revision"} for item in items]


@pytest.mark.parametrize("layout", [AdjacencyList(table="All"), MaterializedGraph(table="All", type_attribute="Type")])
def test_every_kind_of_declaration(layout: Any) -> None:
    table = stored(layout, SAMPLE, MODELS)
    found = infer(*table, "the test")
    assert found.explained == found.read
    assert found.program.layout == ("list" if isinstance(layout, AdjacencyList) else "graph")
    for line in (
        "    name: Annotated[str, Indexed()]",
        "    born: Annotated[dt.date | None, Indexed()] = None",
        "    email: Annotated[str | None, Unique()] = None",
        "class Wiki(Node):",
        'class Rated(Edge[Person, Repo], key=("year",)):',
        'class Follows(Edge[Person, Person], order="since"):',
        "class Friend(Edge[Person, Person], symmetric=True):",
        "class Reads(Edge[Person, Repo | Wiki]):",
    ):
        assert line in found.source
    with opened(found.source, table) as (g, module):
        assert list(g.scan().others) == []
        assert [each.key for each in module.notes_of_person(g, "a#1")] == [-12, 7]
        assert module.person_by_email(g, "ann@example.com").id == "a#1"
        before = without_revisions(g)
        g.put_many(list(g.scan()))
        assert without_revisions(g) == before


def test_a_tenant_is_part_of_the_keys() -> None:
    store = SQLiteStore(":memory:")
    with Graph(store, [Page, Repo], AdjacencyList(table="Shared"), tenant="acme") as g:
        g.put_many([Page(id="a"), Page(id="b"), Repo(owner="x", name="y")])
        (described,) = store.execute([DescribeTable("Shared")])
        assert isinstance(described, TableResponse)
        items = scanned(store, "Shared")
    found = infer(described.definition, items, "the test")
    assert found.explained == 3


class Essay(Node):
    id: str
    tags: Annotated[list[str], Indexed(elements=True)] = []


class Quotes(Edge[Essay, Essay], one_target=True, one_source=True):
    page: int


class Twins(Edge[Essay, Essay], one_target=True, symmetric=True):
    page: int


@pytest.mark.parametrize("layout", [AdjacencyList(table="All"), MaterializedGraph(table="All")])
def test_indexed_elements_and_edges_of_which_a_node_has_one(layout: Any) -> None:
    essays = [Essay(id=f"e{at}", tags=["all", f"t{at % 2}"] if at else []) for at in range(6)]
    edges = [model(source="e1", target="e2", page=3) for model in (Quotes, Twins)]
    table = stored(layout, [*essays, *edges], [Essay, Quotes, Twins])
    found = infer(*table, "the test")
    for line in (
        "    tags: Annotated[list[str], Indexed(elements=True)]",
        "class Quotes(Edge[Essay, Essay], one_source=True, one_target=True):",
        "class Twins(Edge[Essay, Essay], symmetric=True, one_target=True):",
    ):
        assert line in found.source.replace("one_target=True, one_source=True", "one_source=True, one_target=True")
    with opened(found.source, table) as (g, module):
        assert len(module.essays_with_tags(g, "t0")) == 2
        before = without_revisions(g)
        g.put_many(list(g.scan()))
        assert without_revisions(g) == before
        assert not g.verify("scan").findings
        assert g.differences() == []
