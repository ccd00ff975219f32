"""Commands that follow edges over several steps, rank nodes and change fields: what they print, and their statuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx
import pytest

from tests.cli.programs import Ended, adjoin

MODELS = """
from decimal import Decimal
from typing import Annotated

from adjoin import Edge, Indexed, Node, Version


class Person(Node):
    id: str
    name: str = ""
    age: int = 0


class Product(Node):
    id: str


class Knows(Edge[Person, Person]):
    distance: int = 1


class Bought(Edge[Person, Product]):
    pass


class Part(Node):
    id: str
    cost: Decimal = Decimal(0)
    version: Annotated[int, Version()] = 0


class Uses(Edge[Part, Part]):
    number: int = 1
"""

GRAPH: list[dict[str, Any]] = [
    *({"class": "Person", "id": id, "name": id.upper(), "age": age} for age, id in enumerate("abcdx", 20)),
    *({"class": "Knows", "source": one, "target": other, "distance": far} for one, other, far in (
        ("a", "b", 1), ("b", "c", 1), ("a", "c", 5), ("c", "d", 1), ("a", "x", 9)
    )),
    *({"class": "Product", "id": id} for id in ("p1", "p2", "p3")),
    *({"class": "Bought", "source": who, "target": what} for who, what in (
        ("a", "p1"), ("b", "p1"), ("b", "p2"), ("c", "p1"), ("c", "p2"), ("d", "p3")
    )),
    *({"class": "Part", "id": id, "cost": cost} for id, cost in (("bike", "10"), ("wheel", "2.5"), ("screw", "0.1"))),
    *({"class": "Uses", "source": one, "target": other, "number": number} for one, other, number in (
        ("bike", "wheel", 2), ("wheel", "screw", 4), ("bike", "screw", 3)
    )),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("following")
    (path / "models.py").write_text(MODELS)
    (path / "graph.jsonl").write_text("".join(json.dumps(each) + "\n" for each in GRAPH))
    done = adjoin("import", "graph.db", "models.py", "graph.jsonl", "--quiet", folder=path)
    assert (done.status, done.err) == (0, ""), done
    return path


def run(folder: Path, verb: str, *words: str) -> Ended:
    return adjoin(verb, "graph.db", "models.py", *words, folder=folder)


def test_a_shortest_path(folder: Path) -> None:
    assert run(folder, "shortest-path", "a", "d", "--via", "Knows").out == "Person a → Person c → Person d\n"
    weighted = run(folder, "shortest-path", "a", "d", "--via", "Knows", "--weight", "distance")
    assert weighted.out == "Person a → Person b → Person c → Person d  (distance: 3)\n"
    back = run(folder, "shortest-path", "Person:d", "Person:a", "--via", "Knows", "--direction", "into", "--json")
    assert [node["id"] for node in json.loads(back.out)["nodes"]] == ["d", "c", "a"]
    every = run(folder, "shortest-path", "a", "Product:p1", "--via", "Knows,Bought", "--all", "--max-depth", "2")
    assert every.out == "Person a → Product p1\n"
    young = run(folder, "shortest-path", "a", "d", "--via", "Knows", "--where", "distance = 1")
    assert young.out == "Person a → Person b → Person c → Person d\n"
    gone = run(folder, "shortest-path", "d", "a", "--via", "Knows")
    assert gone == Ended(4, "", "there is no path from d to a\n")
    assert run(folder, "shortest-path", "a", "d", "--via", "Knows", "--on", "edges").status == 2
    assert run(folder, "shortest-path", "a", "d", "--via", "Know").err.endswith("did you mean 'Knows'?\n")


def test_what_is_reachable(folder: Path) -> None:
    found = run(folder, "reachable", "b", "--via", "Knows")
    assert found.out.splitlines() == ["1  Person c  name: C, age: 22", "2  Person d  name: D, age: 23"]
    into = run(folder, "reachable", "Product:p3", "--via", "Bought", "--via", "Knows", "--direction", "into", "--json")
    assert [(each["depth"], each["node"]["id"]) for each in map(json.loads, into.out.splitlines())] == [
        (1, "d"),
        (2, "c"),
        (3, "a"),
        (3, "b"),
    ]
    paths = run(folder, "reachable", "b", "--via", "Knows", "--paths")
    assert paths.out.splitlines()[-1] == "Person b → Person c → Person d"
    short = run(folder, "reachable", "a", "--via", "Knows", "--requests", "1")
    assert (short.status, "results are missing" in short.err) == (3, True)


def test_recommendations_and_what_is_common(folder: Path) -> None:
    found = run(folder, "recommend", "a", "Bought", "--to", "Product")
    assert found.out == "2  Product p2  (through Person b, Person c)\n"
    people = run(folder, "recommend", "a", "Bought", "--score", "jaccard", "--json", "--limit", "1")
    told = json.loads(people.out)
    assert (told["score"], told["node"]["id"], [each["id"] for each in told["through"]]) == (0.5, "b", ["p1"])
    assert run(folder, "common", "b", "c", "Bought").out == "Product p1\nProduct p2\n"
    assert run(folder, "common", "a", "d", "Bought") == Ended(0, "", "")


def test_a_bill_of_materials(folder: Path) -> None:
    found = run(folder, "subtree", "bike", "Uses", "--quantity", "number")
    assert sorted(found.out.splitlines()) == [
        "1  11 × Part screw  cost: 0.1, version: 0",
        "1  2 × Part wheel  cost: 2.5, version: 0",
    ]
    total = run(folder, "subtree", "bike", "Uses", "--quantity", "number", "--total", "cost")
    assert total.out == "6.1\n"
    once = run(folder, "subtree", "bike", "Uses", "--total", "cost", "--shared", "once", "--json")
    assert once.out == '"2.6"\n'
    assert run(folder, "subtree", "bike", "Uses", "--shared", "once").status == 2


def test_ranks_are_those_of_networkx(folder: Path) -> None:
    found = run(folder, "rank", "Knows", "--limit", "2", "--json", "--quiet")
    edges = [(each["source"], each["target"]) for each in GRAPH if each["class"] == "Knows"]
    ranks = networkx.pagerank(networkx.DiGraph(edges), tol=1e-12)
    best = sorted(ranks, key=lambda id: -ranks[id])[:2]
    told = [json.loads(line) for line in found.out.splitlines()]
    assert [each["node"]["id"] for each in told] == best
    assert [each["pagerank"] for each in told] == [pytest.approx(ranks[id], abs=1e-6) for id in best]
    assert run(folder, "rank", "Knows", "--by", "degree", "--limit", "1").out == "3  Person a\n"
    assert run(folder, "rank", "Knows", "--by", "hops", "--hops", "3", "--limit", "1").out == "4  Person a\n"
    assert run(folder, "rank", "Knows", "--by", "components").out.startswith("5  Person a, Person b, ")
    assert run(folder, "rank", "Knows", "--by", "degree", "--weight", "distance").status == 2


def test_a_snapshot_is_saved_and_brought_up_to_date(folder: Path) -> None:
    saved = run(folder, "snapshot", "held", "--edges", "Knows", "--fields", "Knows.distance", "--quiet")
    assert (saved.status, saved.out) == (0, "saved held: 5 nodes, 5 edges\n"), saved.err
    run(folder, "put", "Knows", "source=d", "target=x")
    try:
        ranked = run(folder, "rank", "Knows", "--by", "degree", "--direction", "into", "--snapshot", "held")
        assert ranked.out.splitlines()[:2] == ["2  Person c", "2  Person x"]
        again = run(folder, "snapshot", "held", "--json")
        assert json.loads(again.out) == {"nodes": 5, "edges": 6, "changes": 1, "folder": "held"}, again
        assert json.loads(run(folder, "snapshot", "held", "--json").out)["changes"] == 0
    finally:
        run(folder, "delete", "Knows", "d", "x")
    assert run(folder, "snapshot", "held", "--edges", "Knows").status == 2
    assert (
        run(folder, "snapshot", "new").err == "adjoin: a new snapshot needs classes of edges; name them with --edges\n"
    )


def test_update_changes_fields(folder: Path) -> None:
    changed = run(folder, "update", "Person", "x", "--set", "age=30", "--set", "name=Xenia", "--only-if", "age = 24")
    assert changed == Ended(0, "Person x  name: Xenia, age: 30\n", "")
    refused = run(folder, "update", "Person", "x", "--set", "age=31", "--only-if", "age = 24")
    assert (refused.status, "the condition does not hold" in refused.err) == (1, True), refused
    assert run(folder, "update", "Person", "nobody", "--set", "age=1") == Ended(4, "", "there is no Person nobody\n")
    made = run(folder, "update", "Person", "y", "--set", "age=1", "--upsert", "--json")
    assert json.loads(made.out) == {"class": "Person", "id": "y", "name": "", "age": 1}
    assert run(folder, "delete", "Person", "y").status == 0
    edge = run(folder, "update", "Knows", "a", "x", "--set", "distance=8")
    assert edge.out == "Knows a → x  distance: 8\n"
    assert run(folder, "update", "Knows", "a", "--set", "distance=8").status == 2
    assert run(folder, "update", "Person", "x", "--set", "agee=1").err.endswith("did you mean 'age'?\n")


def test_explain_tells_what_they_cost(folder: Path) -> None:
    for words in (
        ("shortest-path", "graph.db", "models.py", "a", "d", "--via", "Knows"),
        ("reachable", "graph.db", "models.py", "a", "--via", "Knows"),
        ("recommend", "graph.db", "models.py", "a", "Bought"),
        ("common", "graph.db", "models.py", "a", "b", "Bought"),
        ("subtree", "graph.db", "models.py", "bike", "Uses"),
        ("update", "graph.db", "models.py", "Person", "a", "--set", "age=3"),
    ):
        done = adjoin("explain", *words, folder=folder)
        assert (done.status, done.out.startswith("round 1: ")) == (0, True), (words, done)


def test_graphs_are_exported_for_other_databases(folder: Path) -> None:
    done = adjoin("export", "graph.db", "graph.graphml", "models.py", "--quiet", folder=folder)
    assert done == Ended(0, "exported 11 nodes and 14 edges to graph.graphml\n", "")
    read = networkx.read_graphml(folder / "graph.graphml")
    assert (len(read.nodes), len(read.edges)) == (11, 14)
    done = adjoin("export", "graph.db", "neptune", "models.py", "--format", "neptune", "--json", folder=folder)
    told = json.loads(done.out)
    assert (told["nodes"], told["edges"], len(told["files"])) == (11, 14, 6)
    again = adjoin("export", "graph.db", "neptune", "models.py", "--format", "neptune", folder=folder)
    assert (again.status, "is not empty; name a new folder" in again.err) == (1, True)
    assert adjoin("export", "graph.db", "x.graphml", "models.py", "Person", folder=folder).status == 2
    assert adjoin("export", "graph.db", "x.graphml", folder=folder).status == 2
