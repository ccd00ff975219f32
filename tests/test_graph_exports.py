"""Exports for other graph databases: what is read back is the graph, whatever its ids and texts have in them."""

from __future__ import annotations

import csv
import datetime as dt
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import AlreadyExists, Child, Edge, Graph, InvalidValue, Node
from adjoin.graph_exports import graphml, neptune
from tests.shares import examples
from tests.walks.graphs import LAYOUTS


class Mood(Enum):
    GOOD = "good"


class Person(Node):
    id: str
    name: str = ""
    born: int | None = None
    paid: Decimal = Decimal(0)
    is_new: bool = False
    seen: dt.datetime | None = None
    tags: set[str] = set()
    notes: list[str] = []
    mood: Mood | None = None


class City(Node, key=("country", "name")):
    country: str
    name: str


class Photo(Child[Person], key=("number",)):
    number: int
    title: str = ""


class Knows(Edge[Person, Person], key=("year",)):
    year: int
    why: str = ""
    tags: set[str] = set()


class Friend(Edge[Person, Person], symmetric=True):
    since: int = 0
    year: str = ""
    label: str = "l"


class Likes(Edge[Person, Person | City]): ...


MODELS: list[Any] = [Person, City, Photo, Knows, Friend, Likes]
_texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=0, max_size=6)
_ids = st.sampled_from(["a", "b#", "b", "%", 'x,"y"', "ä\n", " c", "<d>&"])
_people = st.builds(
    Person,
    id=_ids,
    name=_texts,
    born=st.none() | st.integers(-(2**63), 2**63 - 1),
    paid=st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9),
    is_new=st.booleans(),
    seen=st.none() | st.datetimes(timezones=st.just(dt.UTC), min_value=dt.datetime(2000, 1, 1)),
    tags=st.sets(_texts.filter(bool), max_size=3),
    notes=st.lists(_texts, max_size=2),
    mood=st.none() | st.just(Mood.GOOD),
)
_entities = st.one_of(
    _people,
    st.builds(City, country=_ids, name=_ids),
    st.builds(Photo, parent=_ids, number=st.integers(0, 3), title=_texts),
    st.builds(Knows, source=_ids, target=_ids, year=st.integers(0, 2), why=_texts, tags=st.sets(_texts.filter(bool))),
    st.builds(Friend, source=_ids, target=_ids, since=st.integers(0, 9)),
    st.builds(Likes, source=_ids, target=_ids.map(Person.ref) | st.just(City.ref(("b#", "a")))),
)


def read(folder: Path) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """The nodes and the edges of a Neptune export, by id."""
    found: dict[str, dict[str, dict[str, str]]] = {"nodes": {}, "edges": {}}
    for path in folder.glob("*.csv"):
        sort, label = path.stem.split("-")
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                assert row["~label"] == label
                assert row["~id"] not in found[sort]
                found[sort][row["~id"]] = row
    return found["nodes"], found["edges"]


@settings(max_examples=examples(20))
@given(layout=st.sampled_from(sorted(LAYOUTS)), entities=st.lists(_entities, max_size=15))
def test_what_is_read_back_is_the_graph(
    tmp_path_factory: pytest.TempPathFactory, layout: str, entities: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("exported")
    with Graph(":memory:", MODELS, LAYOUTS[layout]) as graph:
        graph.put_many(entities)
        done = neptune(graph, folder / "csv")
        nodes, edges = read(folder / "csv")
        contents = graph.scan().collect()
        photos = [node for node in contents.nodes if isinstance(node, Photo)]
        assert (len(nodes), len(edges)) == (len(contents.nodes), len(contents.edges) + len(photos))
        assert (done.nodes, done.edges) == (len(nodes), len(edges))
        people = {row["id:String"]: row for row in nodes.values() if row["~label"] == "Person"}
        for person in graph.scan(Person):
            row = people[person.id]
            assert row["name:String"] == person.name
            assert row["born:Long"] == ("" if person.born is None else str(person.born))
            assert Decimal(row["paid:Double"]) == person.paid
            assert row["is_new:Bool"] == str(person.is_new).lower()
            assert (dt.datetime.fromisoformat(row["seen:Date"]) if row["seen:Date"] else None) == person.seen
            assert _set(row["tags:String[]"]) == person.tags
        ids = {id: row["id:String"] for id, row in nodes.items() if row["~label"] == "Person"}
        found = sorted(
            (ids.get(row["~from"]), ids.get(row["~to"]), int(row["year:Long"]), row["why:String"])
            for row in edges.values()
            if row["~label"] == "Knows" and row["~from"] in ids and row["~to"] in ids
        )
        there = {person.id for person in graph.scan(Person)}
        assert found == sorted(
            (edge.source, edge.target, edge.year, edge.why)
            for edge in graph.scan(Knows)
            if edge.source in there and edge.target in there
        )
        _check_graphml(graph, folder / "graph.graphml", nodes, edges)


def _check_graphml(graph: Graph, path: Path, nodes: dict[str, Any], edges: dict[str, Any]) -> None:
    if any(not _is_xml(text) for row in (*nodes.values(), *edges.values()) for text in row.values()):
        with pytest.raises(InvalidValue, match="a character that XML cannot have"):
            graphml(graph, path)
        assert not path.exists()
        return
    graphml(graph, path)
    found = nx.read_graphml(path, force_multigraph=True)
    assert {id for id, data in found.nodes(data=True) if data} == set(nodes)
    for id, data in found.nodes(data=True):
        if data.get("label") == "Person":
            assert data["name"] == nodes[id]["name:String"]
            assert data.get("born") == (int(nodes[id]["born:Long"]) if nodes[id]["born:Long"] else None)
            assert data["is_new"] is (nodes[id]["is_new:Bool"] == "true")
    assert sorted(id for *_, id in found.edges(keys=True)) == sorted(edges)


def _is_xml(text: str) -> bool:
    return not any((ord(each) < 32 and each not in "\t\n\r") or each in "\ufffe\uffff" for each in text or "")


def _set(text: str) -> set[str]:
    """The elements of a set: they are separated by semicolons, which a backslash escapes."""
    found, current, is_escaped = [], "", False
    for each in text:
        if is_escaped:
            current, is_escaped = current + each, False
        elif each == "\\":
            is_escaped = True
        elif each == ";":
            found.append(current)
            current = ""
        else:
            current += each
    return {*found, current} if text else set()


def test_files_are_as_documented(tmp_path: Path) -> None:
    with Graph(":memory:", MODELS) as graph:
        graph.put_many([Person(id="a", name='say "hi"', tags={"x;y", "z"}), Person(id="b")])
        graph.put_many([Knows(source="a", target="b", year=2, tags={"q"}), Photo(parent="a", number=1)])
        seen: list[int] = []
        done = neptune(graph, tmp_path / "csv", progress=seen.append)
        assert seen[-1] == done.nodes + done.edges == 5
        assert [path.name for path in done.files] == [
            "edges-Knows.csv",
            "edges-Photo.csv",
            "nodes-Person.csv",
            "nodes-Photo.csv",
        ]
        assert (tmp_path / "csv" / "edges-Knows.csv").read_text() == (
            "~id,~from,~to,~label,year:Long,why:String,tags:String\n"
            'Knows#Person%23a#Person%23b#2,Person#a,Person#b,Knows,2,"","[""q""]"\n'
        )
        head, first = (tmp_path / "csv" / "nodes-Person.csv").read_text().splitlines()[:2]
        assert head == (
            "~id,~label,id:String,name:String,born:Long,paid:Double,is_new:Bool,seen:Date,tags:String[],notes:String,"
            "mood:String"
        )
        assert first == 'Person#a,Person,a,"say ""hi""",,0,false,,x\\;y;z,[],'
        with pytest.raises(AlreadyExists, match="is not empty; name a new folder"):
            neptune(graph, tmp_path / "csv")
        graphml(graph, tmp_path / "graph.graphml")
        with pytest.raises(AlreadyExists, match="exists; name a new file"):
            graphml(graph, tmp_path / "graph.graphml")
        read = igraph.Graph.Read_GraphML(str(tmp_path / "graph.graphml"))
        assert (read.vcount(), read.ecount()) == (3, 2)
        assert set(read.vs["label"]) == {"Person", "Photo"}
        assert set(read.es["label"]) == {"Knows", "Photo"}
        assert 2 in read.es["Knows.year"]
        assert set(read.es.attributes()) >= {"Friend.year", "Friend.label", "why"}


def test_numbers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with Graph(":memory:", MODELS) as graph:
        graph.put(Person(id="a", born=2**63))
        with pytest.raises(InvalidValue, match=r"Person.born is 9223372036854775808, which does not fit into 64 bits"):
            neptune(graph, tmp_path / "csv")
        with pytest.raises(InvalidValue, match="an export reads a Graph, got 'a'"):
            graphml("a", tmp_path / "b")  # type: ignore[arg-type]
