"""What an audit refuses to read, what it finds of items that others wrote, and repairs that fail one by one."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Edge, Graph, Indexed, InvalidExport, InvalidModel, MaterializedGraph, Node, Unique
from adjoin.aggregates import Copy, Count, PageRank, Sum
from adjoin.batch.exports import FILES, SUMMARY, write_export
from adjoin.batch.sources import dump_of
from adjoin.expressions import Action, Remove, Set, Value, attribute
from adjoin.layouts.interface import OWNER
from adjoin.requests import Delete, Update
from tests.maintenance.simulation import stored
from tests.shares import stride


class Thing(Node):
    id: str
    size: int = 0
    load: Annotated[int, Sum("On", field="weight")] = 0


class On(Edge[Thing, Thing]):
    weight: int


def exported(graph: Graph, folder: Path, table: str = "adjoin") -> Path:
    lines = dump_of(graph._store, graph._layout.table).lines()
    return Path(write_export(lines, folder, table).place)


# --- exports -----------------------------------------------------------------------------------


def test_an_export_of_another_table_is_refused(tmp_path: Path) -> None:
    with Graph(tmp_path / "g.db", [Thing, On]) as graph:
        graph.put(Thing(id="a"))
        other = exported(graph, tmp_path, "Other")
        message = "an export of the table 'Other', and this graph is in the table 'adjoin'; name an export of 'adjoin'"
        for work in (graph.verify, graph.rebuild):
            with pytest.raises(InvalidExport, match=message):
                work(other, threads=1)


@pytest.mark.parametrize("arn", ["", None, "arn:aws:dynamodb:eu-west-1:123456789012:table/adjoin"])
def test_an_export_that_does_not_tell_its_table_is_read(tmp_path: Path, arn: Any) -> None:
    with Graph(tmp_path / "g.db", [Thing, On]) as graph:
        graph.put(Thing(id="a"))
        summary = exported(graph, tmp_path, "Other") / SUMMARY
        summary.write_text(json.dumps(json.loads(summary.read_text()) | {"tableArn": arn}))
        summary.with_suffix(".checksum").unlink()
        assert graph.verify(tmp_path, threads=1).counts == {"THING": 1, "ON": 0}


ITEM = b'{"Item":{"PK":{"S":"THING#a"},"SK":{"S":"#META"}}}'
MALFORMED = [
    b'{"Item":{"PK":{"S":"THING#a"},',
    b'{"Item":{"PK":{"S":"THING#\xff"},"SK":{"S":"#META"}}}',
    ITEM + b"\nnothing",
    ITEM + b" nothing",
    ITEM + ITEM,
    ITEM + b"\n[1]\nnull",
    b'{"Keys":{"PK":{"S":"THING#a"},"SK":{"S":"#META"}},"NewImage":{"PK":{"S":"THING#a"},"SK":{"S":"#META"}}}',
    b'{"Item":{"PK":{"S":"THING#a"}}}',
]
"""Data in which something is not read as an item of the table."""
NO_NUMBER = ITEM + b'\n{"Item":{"PK":{"S":"THING#a"},"SK":{"S":"ON#THING#a"},"weight":{"N":"heavy"}}}'


def spoilt(place: Path, data: bytes, items: int = 1) -> None:
    """Another data file in an export, with manifests that fit it."""
    (path,) = place.glob("data/*")
    path.write_bytes(data)
    digest = base64.b64encode(hashlib.md5(data).digest()).decode()
    for name, told in ((FILES, {"md5Checksum": digest, "itemCount": items}), (SUMMARY, {"itemCount": items})):
        manifest = place / name
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | told) + "\n")
        manifest.with_suffix(".checksum").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("data", "items"),
    # Without the time in them, for the workers of a test run must know tests by the same names.
    [*((gzip.compress(each, mtime=0), 1) for each in MALFORMED), (gzip.compress(NO_NUMBER, mtime=0), 2), (ITEM, 1)],
)
def test_data_that_is_as_its_checksum_says_and_cannot_be_read_is_refused(
    tmp_path: Path, data: bytes, items: int
) -> None:
    with Graph(tmp_path / "g.db", [Thing, On]) as graph:
        graph.put(Thing(id="a"))
        place = exported(graph, tmp_path)
        spoilt(place, data, items)
        for work in (graph.verify, graph.rebuild):
            with pytest.raises(InvalidExport, match=f"{re.escape(str(place))} cannot be read"):
                work(tmp_path, threads=1)


def test_data_with_other_items_than_the_manifests_tell_is_refused(tmp_path: Path) -> None:
    with Graph(tmp_path / "g.db", [Thing, On]) as graph:
        graph.put(Thing(id="a"))
        place = exported(graph, tmp_path)
        for lines, told in ((b"", 0), (ITEM + b"\n" + ITEM.replace(b"#a", b"#b"), 2)):
            spoilt(place, gzip.compress(lines))
            with pytest.raises(InvalidExport, match=rf"{re.escape(str(place))} has {told} items, but .* say 1"):
                graph.verify(tmp_path, threads=1)
        spoilt(place, gzip.compress(b"\n" + ITEM + b"\r\n\n"))
        assert graph.verify(tmp_path, threads=1)


# --- repairs -----------------------------------------------------------------------------------


class Mate(Node):
    id: str
    email: Annotated[str | None, Unique()] = None
    city: Annotated[str | None, Indexed()] = None
    rank: Annotated[Decimal | None, PageRank("Tied")] = None
    ties: Annotated[int, Count("Tied")] = 0


class Tied(Edge[Mate, Mate], symmetric=True, key=("year",)):
    year: int = 0


# Most other tests of repairs have the adjacency list in every run.
@pytest.fixture(scope="module", params=[MaterializedGraph, AdjacencyList][:: stride(2)])
def counted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The file of a graph where everything is counted, and its layout."""
    path, layout = tmp_path_factory.mktemp("counted") / "g.db", request.param(table="Mates")
    with Graph(path, [Mate, Tied], layout) as graph:
        graph.put_many([Mate(id=f"m{place}", email=f"e{place}", city="Ulm") for place in range(7)])
        graph.put_many([Tied(source=f"m{place}", target=f"m{place + 1}", year=place % 2) for place in range(3)])
        graph.put(Tied(source="m0", target="m1", year=7))
        graph.maintain(once=True)
        graph.rebuild(threads=1)
        assert graph.verify(threads=1)
    return path, layout


@pytest.fixture
def mates(counted: tuple[Path, Any], tmp_path: Path) -> Iterator[Graph]:
    path, layout = counted
    copied = shutil.copyfile(path, tmp_path / "g.db")
    with Graph(f"{copied}?durability=process", [Mate, Tied], layout) as graph:
        yield graph


@pytest.mark.simulation
def test_after_a_repair_nothing_is_found(mates: Graph) -> None:
    """What is computed of all edges is computed of them as they are when they are whole again."""
    layout = mates._layout
    tie = layout.schema.edges[Tied]
    keys = [layout.key_of(item) for item in stored(mates) if layout.kind_of(item) is tie]
    mates._store.execute([Delete("Mates", next(key for key in keys if "m0" in str(key)))])
    audit = mates.verify(repair=True, threads=1)
    kinds = {(each.kind, each.name) for each in audit.findings}
    assert ("one-sided", "TIED") in kinds
    assert ("aggregate", "MATE.rank") not in kinds
    assert audit.left == 0
    assert mates.verify(threads=1)


@pytest.mark.simulation
def test_both_halves_of_a_dangling_edge_are_repaired_at_once(mates: Graph) -> None:
    mates._store.execute([Delete("Mates", mates._layout.node_key(mates._layout.schema.nodes[Mate], "m3"))])
    audit = mates.verify(repair=[True, "dangling"], threads=1)
    (dangling,) = [each for each in audit.findings if each.kind == "dangling"]
    assert (dangling.count, dangling.repaired) == (2, 2)
    assert audit.left == 0
    assert mates.verify(threads=1)


OWNERS = ["nobody", "MATE#m9", "MATE#m0", "TIED#x", "MATE#%zz", "#"]


@pytest.mark.simulation
def test_claims_of_somebody_else_are_found_and_repaired(mates: Graph) -> None:
    """Each claim names another who does not have the value: no node, another node, no id, no class."""
    layout = mates._layout

    def claims() -> dict[str, Any]:
        places = {f"email#e{place}": f"m{place}" for place in range(1, 7)}
        found = [
            (id, item) for item in stored(mates) for text, id in places.items() if text in str(layout.key_of(item))
        ]
        assert len(found) == 6
        return dict(found)

    right = {id: {"S": f"MATE#{id}"} for id in claims()}
    assert {id: claim[OWNER] for id, claim in claims().items()} == right
    for claim, owner in zip(claims().values(), OWNERS, strict=True):
        mates._store.execute([Update("Mates", layout.key_of(claim), (Set(attribute(OWNER), Value({"S": owner})),))])
    assert not any(claim[OWNER] == right[id] for id, claim in claims().items())
    # Each is a claim without its value, and a value without its claim.
    audit = mates.verify(repair=True, threads=1)
    assert {(each.kind, each.name): each.count for each in audit.findings} == {("claim", "MATE"): 12}
    assert audit.left == 0
    assert mates.verify(threads=1)
    assert {id: claim[OWNER] for id, claim in claims().items()} == right


@pytest.mark.simulation
def test_two_nodes_with_one_unique_value_are_left_with_the_reason(mates: Graph) -> None:
    key = mates._layout.node_key(mates._layout.schema.nodes[Mate], "m2")
    mates._store.execute([Update("Mates", key, (Set(attribute("email"), Value({"S": "e1"})),))])
    audit = mates.verify(repair=True, threads=1)
    (claim,) = [each for each in audit.findings if each.kind == "claim"]
    assert claim.count - claim.repaired == audit.left == 1
    assert [each["reason"] for each in claim.failures] == [
        "another Mate has the same unique value as 'MATE#m2'; change one of them"
    ]


class Person(Node):
    id: str
    name: str = ""
    city: Annotated[str, Indexed()] = "Ulm"
    trade: Annotated[str, Indexed()] = "cook"
    rank: Annotated[Decimal | None, PageRank("Knows")] = None


class Friend(Edge[Person, Person], symmetric=True):
    since: int = 0


class Knows(Edge[Person, Person]):
    of: Annotated[str, Copy("target.name")] = ""


def change(graph: Graph, key: Any, *actions: Action) -> None:
    graph._store.execute((Update(graph._layout.table, key, actions),))


def person(graph: Graph, id: str) -> Any:
    return graph._layout.node_key(graph._layout.schema.node(Person), id)


def edge(graph: Graph, model: Any, source: str, target: str) -> Any:
    return graph._layout.edge_key(graph._layout.schema.edge(model), source, target, {})


def findings(audit: Any) -> dict[str, Any]:
    return {each.kind: each for each in audit.findings}


def test_a_half_that_cannot_be_read_holds_up_no_other(tmp_path: Path) -> None:
    with Graph(tmp_path / "g.db", [Person, Friend, Knows]) as graph:
        graph.put_many(Person(id=id) for id in "abcd")
        for other in "bcd":
            graph.connect(Friend, "a", other)
            graph._store.execute((Delete(graph._layout.table, edge(graph, Friend, other, "a")),))
        change(graph, edge(graph, Friend, "a", "b"), Set(attribute("since"), Value({"S": "long ago"})))
        one_sided = findings(graph.verify(repair=True, threads=1))["one-sided"]
        assert (one_sided.count, one_sided.repaired) == (3, 2)
        (failure,) = one_sided.failures
        assert (failure["source"], failure["target"]) == ("a", "b")
        assert "since" in failure["reason"]


def test_a_summary_that_cannot_be_written_holds_up_no_other(tmp_path: Path) -> None:
    with Graph(tmp_path / "g.db", [Person, Friend, Knows]) as graph:
        graph.put_many(Person(id=id) for id in "abc")
        graph.connect(Knows, "a", "b")
        change(graph, person(graph, "b"), Set(attribute("name"), Value({"N": "1"})))
        aggregate = findings(graph.verify(repair=["aggregate"], threads=1))["aggregate"]
        assert (aggregate.count, aggregate.repaired) == (3, 2)
        (failure,) = aggregate.failures
        assert failure["node"] == "b"
        assert "name" in failure["reason"]


# --- items of others ---------------------------------------------------------------------------


class Plain(Node):
    id: str
    name: str
    size: int = 0
    least: int | None = 3


class Joins(Edge[Plain, Plain]):
    weight: Decimal = Decimal(1)


@pytest.mark.parametrize("layout", [None, MaterializedGraph()])
def test_what_cannot_be_read_is_found_in_every_class(tmp_path: Path, layout: Any) -> None:
    with Graph(tmp_path / "g.db", [Plain, Joins], layout) as graph:
        graph.put_many(Plain(id=id, name="n", least=None) for id in "abcde")
        graph.connect(Joins, "a", "b")
        graph.connect(Joins, "a", "c")
        assert graph.verify(threads=1).findings == ()
        kind = graph._layout.schema.node(Plain)
        keys = {id: graph._layout.node_key(kind, id) for id in "abcde"}
        change(graph, keys["a"], Set(attribute("size"), Value({"S": "large"})))
        change(graph, keys["b"], Remove(attribute("name")))
        change(graph, keys["c"], Set(attribute("size"), Value({"M": {}})))
        # A number that another program wrote as text can be read, and so can what is not there.
        change(graph, keys["d"], Set(attribute("size"), Value({"S": "7"})))
        change(graph, keys["e"], Remove(attribute("size")))
        change(graph, edge(graph, Joins, "a", "b"), Set(attribute("weight"), Value({"S": "heavy"})))
        audit = graph.verify(threads=1)
        assert {(each.kind, each.name): each.count for each in audit.findings} == {
            ("unreadable", "PLAIN"): 3,
            ("unreadable", "JOINS"): 1,
        }
        nodes = next(each for each in audit.findings if each.name == "PLAIN").examples
        assert ["size" in each["why"] or "name" in each["why"] for each in nodes] == [True] * 3
        assert graph.get(Plain, "d") == Plain(id="d", name="n", size=7, least=None)


# --- copies of other types ---------------------------------------------------------------------


class Item(Node):
    id: str
    price: int = 0
    note: str | None = None


class Lists(Edge[Item, Item]):
    price: Annotated[int | str, Copy("target.price")] = ""
    note: Annotated[str, Copy("target.note")] = ""


def test_a_copy_that_may_be_of_several_types_is_audited(tmp_path: Path) -> None:
    with Graph(tmp_path / "g.db", [Item, Lists]) as graph:
        graph.put_many([Item(id="a"), Item(id="b", price=5)])
        graph.connect(Lists, "a", "b")
        assert graph.edge(Lists, "a", "b") == Lists(source="a", target="b", price=5)
        assert graph.verify(threads=1).findings == ()
        change(graph, edge(graph, Lists, "a", "b"), Set(attribute("price"), Value({"S": "five"})))
        (finding,) = graph.verify(repair=True, threads=1).findings
        assert (finding.kind, finding.name, finding.repaired) == ("copy", "LISTS.price", 1)
        assert graph.verify(threads=1).findings == ()


def test_a_copy_that_its_field_cannot_hold_is_refused() -> None:
    class Wrong(Edge[Item, Item]):
        price: Annotated[str, Copy("target.price")] = ""

    with pytest.raises(
        InvalidModel, match=r"Wrong\.price is stored as S, but it copies Item\.price, which is stored as N; give"
    ):
        Graph(":memory:", [Item, Wrong])
