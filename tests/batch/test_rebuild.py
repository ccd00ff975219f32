"""`g.rebuild` and `g.verify`: what differs is told, summaries are written, and what is broken is found and repaired."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Edge, Graph, Indexed, InvalidValue, Node, Unique, UnknownField
from adjoin.aggregates import Components, Copy, Count, Latest, Max, PageRank, Sum, Top
from adjoin.batch.exports import write_export
from adjoin.batch.sources import dump_of
from adjoin.cli import main
from adjoin.expressions import Set, Value, attribute
from adjoin.plans.repair import write_fields
from adjoin.requests import Delete, Update


class Person(Node):
    id: str
    name: Annotated[str, Indexed()]
    email: Annotated[str | None, Unique()] = None
    city: Annotated[str | None, Indexed()] = None
    friends: Annotated[int, Count("Friend")] = 0
    rank: Annotated[float, PageRank("Follows")] = 0.0


class Friend(Edge[Person, Person], symmetric=True):
    since: int


class Follows(Edge[Person, Person]):
    of: Annotated[str, Copy("target.name")] = ""


class Plain(Node):
    id: int
    spent: Annotated[Decimal, Sum("Paid", field="amount")] = Decimal(0)
    group: Annotated[int | None, Components("Paid")] = None


class Paid(Edge[Plain, Plain]):
    amount: Decimal


MODELS: list[type[Any]] = [Person, Friend, Follows, Plain, Paid]


@pytest.fixture
def graph(tmp_path: Path) -> Any:
    with Graph(tmp_path / "g.db", MODELS) as opened:
        opened.put_many([Person(id=f"P{n}", name=f"n{n}", email=f"e{n}", city="Ulm") for n in range(5)])
        opened.put(Friend(source="P0", target="P1", since=1))
        opened.put(Friend(source="P1", target="P2", since=2))
        opened.put_many([Follows(source="P0", target="P3", of="n3"), Follows(source="P1", target="P3", of="n3")])
        opened.put_many([Plain(id=n) for n in (2, 10, -1)])
        opened.put_many([Paid(source=10, target=2, amount=Decimal("0.1"))])
        yield opened


def key(partition: str, sort: str) -> Any:
    return {"PK": {"S": partition}, "SK": {"S": sort}}


def test_what_differs_is_told_and_written(graph: Graph) -> None:
    told = graph.rebuild(dry_run=True, threads=1)
    assert {result.name: (result.differ, result.written) for result in told.results} == {
        "PERSON.friends": (3, None),
        "PLAIN.spent": (1, None),
        "PERSON.rank": (5, None),
        "PLAIN.group": (3, None),
    }
    (spent,) = [result for result in told.results if result.name == "PLAIN.spent"]
    assert [(each.id, each.stored, each.computed) for each in spent.examples] == [(10, {"N": "0"}, {"N": "0.1"})]
    rebuilt = graph.rebuild(threads=1)
    assert rebuilt.written == 12
    assert [node and node.group for node in graph.get_many(Plain, [2, 10, -1])] == [2, 2, -1]
    ranks = [node.rank for node in graph.get_many(Person, [f"P{n}" for n in range(5)]) if node]
    assert sum(ranks) == pytest.approx(1, abs=1e-9)
    assert max(ranks) == ranks[3]
    # A node found by a copy for an index has what was written.
    assert {person.rank for person in graph.find(Person, order="city")} == set(ranks)
    assert [person and person.friends for person in graph.get_many(Person, ["P0", "P1", "P2", "P3"])] == [1, 2, 1, 0]
    again = graph.rebuild(threads=1)
    assert (again.differ, again.uncounted, again.written) == (0, 0, 0)


def test_only_some_fields(graph: Graph) -> None:
    rebuilt = graph.rebuild(only=["PLAIN.group"], threads=1)
    assert [result.name for result in rebuilt.results] == ["PLAIN.group"]
    with pytest.raises(UnknownField, match=r"did you mean 'PLAIN\.group'"):
        graph.rebuild(only=["PLAIN.groups"], threads=1)


def test_an_interrupted_rebuild_goes_on(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_export(dump_of(graph._store, "adjoin").lines(), tmp_path / "export", "adjoin").place
    state = tmp_path / "state.json"
    written: list[Any] = []

    def failing(layout: Any, values: Any) -> Any:
        if len(written) == 1:
            raise KeyboardInterrupt
        written.append(values)
        return write_fields(layout, values)

    monkeypatch.setattr("adjoin.batch.rebuild.ROUND", 2)
    monkeypatch.setattr("adjoin.batch.restoring.SAVE_SECONDS", 0)
    monkeypatch.setattr("adjoin.batch.rebuild.write_fields", failing)
    with pytest.raises(KeyboardInterrupt):
        graph.rebuild(source, only=["PLAIN.group"], state=state, threads=1)
    assert json.loads(state.read_text())["done"] == {"PLAIN.group": 2}
    monkeypatch.setattr("adjoin.batch.rebuild.write_fields", write_fields)
    rebuilt = graph.rebuild(source, only=["PLAIN.group"], state=state, threads=1)
    assert rebuilt.written == 1
    assert not state.exists()
    assert [node and node.group for node in graph.get_many(Plain, [2, 10, -1])] == [2, 2, -1]


@pytest.mark.parametrize(("amount", "told"), [("9" * 38, "9" * 38), ("-1E+40", "-1" + "0" * 40), ("7", 7)])
def test_numbers_of_any_size_are_written_down(graph: Graph, tmp_path: Path, amount: str, told: Any) -> None:
    graph.put(Paid(source=-1, target=2, amount=Decimal(amount)))
    graph.rebuild(dry_run=True, only=["PLAIN.spent"], diff=tmp_path / "diff.jsonl", threads=1)
    lines = [json.loads(line) for line in (tmp_path / "diff.jsonl").read_text().splitlines()]
    assert {"name": "PLAIN.spent", "node": -1, "stored": 0, "computed": told} in lines
    graph.verify(report=tmp_path / "audit.json", threads=1)
    (spent,) = [
        each for each in json.loads((tmp_path / "audit.json").read_text())["findings"] if each["name"] == "PLAIN.spent"
    ]
    assert {"node": -1, "stored": 0, "computed": told} in spent["examples"]


def test_a_node_that_is_gone_is_left_alone(graph: Graph, tmp_path: Path) -> None:
    source = write_export(dump_of(graph._store, "adjoin").lines(), tmp_path / "export", "adjoin").place
    graph.delete(Plain, 2)
    assert graph.rebuild(source, only=["PLAIN.group"], threads=1).written == 2
    assert graph.get(Plain, 2) is None


def broken(graph: Graph) -> None:
    """One of each fault, made behind the graph's back."""
    store, table = graph._store, graph._layout.table
    store.execute([Delete(table, key("PERSON#P1", "FRIEND#PERSON#P0"))])
    store.execute([Delete(table, key("PERSON#P4", "#META"))])
    store.execute([Delete(table, key("#=PERSON#email#e2", "="))])
    store.execute([Delete(table, key("PERSON#P3#=", "city##META"))])
    store.execute([Update(table, key("PERSON#P2#=", "city##META"), (Set(attribute("city"), Value({"S": "x"})),))])
    graph.put(Follows(source="P0", target="P9"))
    graph.put(Follows(source="P2", target="P3"))
    stale = (Set(attribute("of"), Value({"S": "other"})),)
    store.execute([Update(table, key("PERSON#P2", "FOLLOWS#PERSON#P3"), stale)])


def found(audit: Any) -> dict[tuple[str, str], tuple[int, int]]:
    return {(each.kind, each.name): (each.count, each.repaired) for each in audit.findings}


def test_an_audit_finds_and_repairs(graph: Graph, tmp_path: Path) -> None:
    graph.rebuild(threads=1)
    report = tmp_path / "report.json"
    assert graph.verify(threads=1)
    broken(graph)
    audit = graph.verify(report=report, threads=1)
    assert not audit
    expected = {
        ("copy", "FOLLOWS.of"): (1, 0),
        ("ledger", "FRIEND.out"): (1, 0),
        ("dangling", "FOLLOWS"): (1, 0),
        ("one-sided", "FRIEND"): (1, 0),
        ("index entry", "PERSON"): (3, 0),
        ("claim", "PERSON"): (2, 0),
    }
    assert expected.items() <= found(audit).items()
    told = json.loads(report.read_text())
    assert told["faults"] == told["left"] == audit.faults
    assert told["findings"][0]["examples"][0] == {"node": "P1", "stored": 2, "computed": 1}
    repaired = graph.verify(repair=True, threads=1)
    assert repaired.left == 1
    assert found(graph.verify(repair=["dangling"], threads=1)) == {("dangling", "FOLLOWS"): (1, 1)}
    assert found(graph.verify(repair=True, threads=1)).keys() <= {("aggregate", "PERSON.rank")}
    assert graph.verify(threads=1)
    assert graph.get(Person, email="e2") is not None
    assert [person.id for person in graph.find(Person, order="city")] == ["P0", "P1", "P2", "P3"]
    assert graph.edge(Friend, "P1", "P0") == Friend(source="P1", target="P0", since=1)
    with pytest.raises(InvalidValue, match="cannot be repaired"):
        graph.verify(repair=["circle"], threads=1)


def test_the_command_line_tells_and_exits_with_what_it_found(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "g.db")
    arguments = [file, __name__, "--models", "MODELS", "--quiet"]
    assert main(["rebuild", *arguments, "--dry-run", "--diff", str(tmp_path / "diff.jsonl")]) == 0
    assert "PLAIN.group: 3 nodes differ\n" in capsys.readouterr().out
    lines = [json.loads(line) for line in (tmp_path / "diff.jsonl").read_text().splitlines()]
    assert {"name": "PLAIN.spent", "node": 10, "stored": 0, "computed": "0.1"} in lines
    assert main(["verify", *arguments]) == 1
    told = capsys.readouterr().out
    assert "aggregate  PLAIN.spent: 1\n  node=10  stored=0  computed=0.1\n" in told
    assert main(["rebuild", *arguments]) == 0
    assert "PLAIN.group: 3 nodes differ, 3 written" in capsys.readouterr().out
    broken(graph)
    # Some of what is broken is what a repair of something else leaves.
    assert main(["verify", *arguments, "--repair"]) == 1
    assert main(["verify", *arguments, "--repair", "dangling", "--repair"]) == 3
    assert main(["export", file, str(tmp_path / "out"), "--quiet"]) == 0
    assert main(["verify", *arguments, "--from", str(tmp_path / "out")]) == 0
    assert main(["verify", *arguments, "--from", str(tmp_path / "nowhere")]) == 2
    assert main(["verify", *arguments, "--from", "scan"]) == 0


def test_a_state_counts_only_for_the_work_that_it_is_of(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How far another rebuild came says nothing about the nodes of this one."""
    write_export(dump_of(graph._store, "adjoin").lines(), tmp_path / "exported", "adjoin")
    state = tmp_path / "state.json"
    monkeypatch.setattr("adjoin.batch.restoring.WriteBackState.finish", lambda state: state.save())
    graph.rebuild(tmp_path / "exported", only=["PERSON.rank"], state=state, threads=1)
    left = json.loads(state.read_bytes())
    monkeypatch.undo()
    others: list[Any] = [left | {"done": {"PLAIN 0": 1000, "PLAIN.group": 1000}}, [], {"source": left["source"]}]
    for told in others:
        state.write_text(json.dumps(told))
        graph.rebuild(tmp_path / "exported", state=state, threads=1)
        assert graph.rebuild(dry_run=True, threads=1).differ == 0
        assert not state.exists()


@pytest.mark.parametrize(
    ("location", "options", "message"),
    [
        ("nowhere.db", [], "the file nowhere.db does not exist"),
        ("other.db", [], "the file has no table 'adjoin'"),
        ("here.db", ["--memory", "lots"], "memory='lots'"),
        ("here.db", ["--memory", "20KB"], "DuckDB failed: Out of Memory Error"),
        ("here.db", ["--memory", "1GB", "--engine", "spark"], "engine='spark' has no memory=; it has session,"),
        ("here.db", ["--from", "nowhere"], "the folder nowhere does not exist"),
        ("here.db", ["--from", "here.db"], "the folder here.db does not exist"),
    ],
)
@pytest.mark.parametrize("command", ["verify", "rebuild"])
def test_a_job_that_cannot_be_carried_out_says_so(
    command: str,
    location: str,
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with Graph("here.db", MODELS) as graph, Graph("other.db", MODELS, AdjacencyList(table="Others")) as other:
        for each in (graph, other):
            each.put(Plain(id=1))
    assert main([command, location, __name__, "--models", "MODELS", "--quiet", *options]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert not Path("nowhere.db").exists()


@pytest.mark.parametrize(
    ("command", "option"),
    [("verify", "--report"), ("rebuild", "--diff"), ("rebuild", "--state"), ("rebuild", "--only")],
)
def test_arguments_of_a_job_that_cannot_be(
    command: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Graph(tmp_path / "g.db", MODELS) as graph:
        graph.put(Plain(id=1))
    named = [str(tmp_path / "g.db"), __name__, "--models", "MODELS", "--quiet"]
    assert main([command, *named, option, "nowhere/file"]) == 2
    assert "nowhere/file" in capsys.readouterr().err


def test_what_nobody_expects_is_no_finding(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*arguments: Any, **options: Any) -> Any:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("adjoin.batch.audit.verify", broken)
    assert main(["verify", str(tmp_path / "g.db"), __name__, "--models", "MODELS", "--quiet"]) == 2
    assert "ZeroDivisionError" in capsys.readouterr().err


class Runner(Node):
    id: str
    best: Annotated[int, Max("Ran", field="points")] = 0
    last: Annotated[str, Latest("Ran", field="place", by="points")] = "none"
    top: Annotated[list[int], Top("Ran", field="points", k=2)] = [7]


class Ran(Edge[Runner, Runner]):
    points: int
    place: str = "Ulm"


def test_a_default_is_how_nothing_is_shown() -> None:
    with Graph(":memory:", [Runner, Ran]) as graph:
        graph.add(Runner(id="a"))
        graph.put_many([Runner(id="b"), Runner(id="c"), Ran(source="b", target="c", points=0)])
        graph.maintain(once=True)
        assert graph.get(Runner, "a") == Runner(id="a")
        assert graph.get(Runner, "b") == Runner.model_construct(id="b", best=0, last="Ulm", top=[0])
        assert graph.verify(threads=1)
        graph.disconnect(Ran, "b", "c")
        graph.maintain(once=True)
        assert graph.get(Runner, "b") == Runner(id="b")
        assert graph.rebuild(threads=1).differ == 0
