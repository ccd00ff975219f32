"""Copied fields in index keys: an edge has all keys of such an index, or none of them, whatever wrote it."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Copy, Edge, Graph, Index, Keys, Node, field
from tests.growing import scanned


class Person(Node):
    id: str
    name: str | None = None


class Club(Node):
    id: str


class Member(Edge[Person, Club]):
    rank: int = 0
    state: str | None = "in"
    place: str = "p"
    name: Annotated[str | None, Copy("source.name")] = None


INDEXES = {
    "GSI4": ("PK4", "SK4"),  # the partition key is copied, the sort key is not
    "GSI5": ("PK5", "name"),  # the other way round, with the field itself
    "GSI6": ("PK6", "SK6"),  # a field beside it
}
LAYOUT = AdjacencyList(
    indexes=[Index(name, *keys) for name, keys in INDEXES.items()],
    keys={
        Member: Keys(
            indexes={
                "GSI4": ("N#{name}", "{rank:06}"),
                "GSI5": "S#{state}",
                "GSI6": ("{name}#{target.id}", "{place}"),
            },
        )
    },
    escape=True,
)


@pytest.fixture
def g() -> Any:
    with Graph(":memory:", [Person, Club, Member], LAYOUT) as graph:
        graph.put_many([Person(id="a", name="Ann"), Person(id="z"), Club(id="c"), Club(id="d")])
        yield graph


def entries(g: Graph) -> dict[str, set[str]]:
    """The sources of the edges in each index: those that have all its keys."""
    found: dict[str, set[str]] = {name: set() for name in INDEXES}
    for item in scanned(g):
        if "#MEMBER#" not in "#" + item["SK"]["S"]:
            continue
        for index, keys in INDEXES.items():
            if all(key in item for key in keys):
                found[index].add(item["PK"]["S"].removeprefix("PERSON#"))
    return found


def maintained(g: Graph) -> None:
    while g.maintain(once=True).changes:
        pass


@pytest.mark.parametrize("way", ["connect", "put", "put_many", "transaction"])
def test_every_write_puts_the_edge_into_the_index(g: Graph, way: str) -> None:
    edges = [Member(source="a", target="c", rank=3), Member(source="z", target="c", rank=4)]
    match way:
        case "connect":
            for edge in edges:
                g.connect(Member, edge.source, edge.target, rank=edge.rank)
        case "put":
            for edge in edges:
                g.put(edge)
        case "put_many":
            g.put_many(edges)
        case _:
            with g.transaction() as t:
                for edge in edges:
                    t.put(edge)
    assert entries(g) == {"GSI4": {"a"}, "GSI5": {"a"}, "GSI6": {"a"}}
    assert [(each.source, each.place) for each in g.find(Member, field("name") == "Ann")] == [("a", "p")]


def test_a_name_that_comes_goes_and_changes(g: Graph) -> None:
    g.put_many([Member(source="a", target="c", rank=3), Member(source="z", target="c", rank=4)])
    g.update(Person, "z", name="Zoe")
    g.update(Person, "a", name=None)
    maintained(g)
    assert entries(g) == {"GSI4": {"z"}, "GSI5": {"z"}, "GSI6": {"z"}}
    assert [each.rank for each in g.find(Member, (field("name") == "Zoe") & (field("rank") >= 4))] == [4]
    assert [
        each.place for each in g.find(Member, (field("name") == "Zoe") & (field("target") == "c"), index="GSI6")
    ] == ["p"]
    g.update(Person, "a", name="Ann")
    g.update(Person, "z", name="Zed")
    maintained(g)
    assert entries(g) == {"GSI4": {"a", "z"}, "GSI5": {"a", "z"}, "GSI6": {"a", "z"}}
    assert [each.source for each in g.find(Member, (field("state") == "in") & (field("name") > "B"))] == ["z"]


def test_fields_beside_it_change(g: Graph) -> None:
    g.put_many([Member(source="a", target="c", rank=3), Member(source="z", target="c", rank=4)])
    g.update(Member, "a", "c", state=None, rank=7)
    g.update(Member, "z", "c", state=None, rank=8)
    assert entries(g) == {"GSI4": {"a"}, "GSI5": set(), "GSI6": {"a"}}
    g.update(Person, "z", name="Zoe")
    maintained(g)
    assert entries(g) == {"GSI4": {"a", "z"}, "GSI5": set(), "GSI6": {"a", "z"}}
    assert [each.rank for each in g.find(Member, field("name") == "Zoe", index="GSI4")] == [8]
    g.update(Member, "z", "c", state="out")
    assert entries(g)["GSI5"] == {"z"}
    again = g.edge(Member, "a", "c")
    assert again is not None
    g.put(again.model_copy(update={"state": "in"}))
    assert entries(g)["GSI5"] == {"a", "z"}
    assert g.verify()
