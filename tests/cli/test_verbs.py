"""The verbs of a graph on the command line, as processes: what they print, their JSON, and their exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adjoin.cli import main
from tests.cli.programs import Ended, adjoin

MODELS = """
from datetime import date
from decimal import Decimal
from typing import Annotated

from adjoin import Child, Edge, Indexed, Node, Unique


class Person(Node):
    id: int
    name: Annotated[str, Indexed()]
    email: Annotated[str, Unique()]
    tags: set[str] | None = None
    photo: bytes = b""


class Repo(Node, key=("owner", "name")):
    owner: str
    name: str
    stars: int = 0
    years: set[int] | None = None


class Knows(Edge[Person, Person], order="since"):
    since: date
    weight: Decimal = Decimal(1)


class Likes(Edge[Person, Person | Repo], key=("at",)):
    at: int


class Note(Child[Repo], key=("number",)):
    number: int
    text: str
"""


REPO = {"class": "Repo", "owner": "ann", "name": "adjoin", "stars": 7, "years": [2025, 2026]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a module, and a file that `put` wrote."""
    path = tmp_path_factory.mktemp("verbs")
    (path / "models.py").write_text(MODELS)
    for words in (
        'Person id=1 name=Ann email=a@x tags:=["b","a"] photo=AAH/',
        "Person id=2 name=Bob email=b@x",
        "Person id=3 name=Cat email=c@x",
        "Repo owner=ann name=adjoin stars=7 years:=[2025,2026]",
        "Knows source=1 target=2 since=2020-01-31 weight=0.10",
        "Knows source=1 target=3 since=2021-01-31",
        "Knows source=2 target=3 since=2022-01-31",
        "Likes source=1 target=Repo:ann,adjoin at=5",
        "Likes source=1 target=Person:2 at=6",
        'Note parent=ann,adjoin number=1 text="one"',
        "Note parent=ann,adjoin number=12 text=twelve",
    ):
        done = run(path, "put", *words.split())
        assert (done.status, done.err) == (0, "")
    return path


def run(folder: Path, verb: str, *words: str) -> Ended:
    return adjoin(verb, "graph.db", "models.py", *words, folder=folder)


def test_get_prints_a_node(folder: Path) -> None:
    done = run(folder, "get", "Person", "1")
    assert done == Ended(0, 'Person 1\n  name   Ann\n  email  a@x\n  tags   ["a","b"]\n  photo  AAH/\n', "")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (
            ["Person", "email=b@x"],
            {"class": "Person", "id": 2, "name": "Bob", "email": "b@x", "tags": None, "photo": ""},
        ),
        (
            ["Repo", "ann,adjoin"],
            {"class": "Repo", "owner": "ann", "name": "adjoin", "stars": 7, "years": [2025, 2026]},
        ),
        (
            ["Repo", '["ann","adjoin"]'],
            {"class": "Repo", "owner": "ann", "name": "adjoin", "stars": 7, "years": [2025, 2026]},
        ),
        (
            ["Knows", "1", "2"],
            {"class": "Knows", "source": 1, "target": 2, "since": "2020-01-31", "weight": "0.1"},
        ),
        (
            ["Likes", "1", "Repo:ann,adjoin", "at=5"],
            {"class": "Likes", "source": 1, "target": {"class": "Repo", "id": ["ann", "adjoin"]}, "at": 5},
        ),
        (["Note", "ann,adjoin,12"], {"class": "Note", "parent": ["ann", "adjoin"], "number": 12, "text": "twelve"}),
    ],
)
def test_get_prints_json(folder: Path, words: list[str], found: dict[str, object]) -> None:
    done = run(folder, "get", *words, "--json")
    assert (done.status, json.loads(done.out), done.err) == (0, found, "")


def test_what_does_not_exist_has_its_own_status(folder: Path) -> None:
    assert run(folder, "get", "Person", "9") == Ended(4, "", "there is no Person 9\n")
    assert run(folder, "get", "Knows", "3", "1", "--json") == Ended(4, "null\n", "there is no Knows 3 1\n")
    assert run(folder, "delete", "Person", "9") == Ended(4, "there was no Person 9\n", "")


def test_edges_from_both_ends(folder: Path) -> None:
    out = run(folder, "out", "1", "Knows")
    assert out == Ended(
        0, "Knows 1 → 2  since: 2020-01-31, weight: 0.1\nKnows 1 → 3  since: 2021-01-31, weight: 1\n", ""
    )
    reverse = run(folder, "out", "1", "Knows", "--reverse", "--limit", "1")
    assert reverse.out == "Knows 1 → 3  since: 2021-01-31, weight: 1\n"
    after = reverse.err.removeprefix("there may be more; go on with: ").strip()
    rest = run(folder, "out", "1", "Knows", "--reverse", "--limit", "2", after)
    assert rest == Ended(0, "Knows 1 → 2  since: 2020-01-31, weight: 0.1\n", "")
    between = run(folder, "out", "1", "Knows", "--between", "2021-01-01", "2021-12-31", "--count")
    assert between.out == "1\n"
    into = run(folder, "into", "3", "Knows", "--nodes", "--where", "weight = 1 and since < 2022-01-01")
    assert into.out.startswith("Knows 1 → 3  since: 2021-01-31, weight: 1  |  Person 1  name: Ann")
    assert into.out.count("\n") == 1
    union = run(folder, "into", "Repo:ann,adjoin", "Likes", "--json")
    assert json.loads(union.out)["source"] == 1


def test_children(folder: Path) -> None:
    done = run(folder, "children", "ann,adjoin", "Note", "--where", "text begins_with tw")
    assert done == Ended(0, "Note ann,adjoin,12  text: twelve\n", "")


def test_find_and_scan(folder: Path) -> None:
    assert run(folder, "find", "Person", "name = Bob", "--json").out.startswith('{"class":"Person","id":2,')
    found = run(folder, "find", "Person", "--order", "name", "--reverse")
    assert [line.split()[1] for line in found.out.splitlines()] == ["3", "2", "1"]
    assert run(folder, "scan", "Repo", "--where", "stars > 6", "--count").out == "1\n"
    assert run(folder, "scan", "--count").out == "11\n"
    assert run(folder, "scan", "--others") == Ended(0, "", "")
    assert run(folder, "scan", "Person", "--where", "tags contains b", "--count").out == "1\n"
    assert run(folder, "scan", "Repo", "--where", "years contains 2026", "--count").out == "1\n"


def test_count(folder: Path) -> None:
    assert run(folder, "count", "Knows") == Ended(0, "3\n", "")
    counts = json.loads(run(folder, "count", "--json").out)
    assert counts == {"Person": 3, "Repo": 1, "Note": 2, "Knows": 3, "Likes": 2}


def test_walks(folder: Path) -> None:
    paths = run(folder, "walk", "1", "out", "Knows", "out", "Knows", "--what", "paths")
    assert paths == Ended(0, "Person 1 → Person 2 → Person 3\n", "")
    assert run(folder, "walk", "1", "repeat", "Knows", "2", "--what", "count").out == "3\n"
    counts = run(folder, "walk", "1", "repeat", "Knows", "2", "--what", "group_count", "--json")
    assert [json.loads(line)["paths"] for line in counts.out.splitlines()] == [1, 2]
    assert run(folder, "walk", "1", "out", "Knows", "--sum", "weight").out == "1.1\n"
    filtered = run(folder, "walk", "1", "out", "Knows", "where", "name = Cat", "--what", "refs", "--json")
    assert json.loads(filtered.out) == {"class": "Person", "id": 3}
    started = run(folder, "walk", "ann,adjoin", "into", "Likes", "--class", "Repo", "--what", "refs")
    assert started.out == "Person 1\n"


def test_a_budget_that_does_not_suffice(folder: Path) -> None:
    done = run(folder, "walk", "1", "out", "Knows", "out", "Knows", "--what", "refs", "--requests", "1")
    assert (done.status, done.out) == (3, "")
    assert done.err == "the budget of requests did not suffice, so results are missing\n"


def test_explain_makes_no_request(folder: Path) -> None:
    done = adjoin("explain", "delete", "graph.db", "models.py", "Person", "1", folder=folder)
    assert done.status == 0
    assert "round 1: " in done.out
    put = ["explain", "put", "graph.db", "models.py", "Repo", "owner=x", "name=y", "--json"]
    told = json.loads(adjoin(*put, folder=folder).out)
    assert told["rounds"] == [[{"operation": "Put", "index": None}]]
    assert told["wcu"] == 1
    assert run(folder, "get", "Repo", "x,y").status == 4
    assert run(folder, "count", "Person").out == "3\n"


def test_put_and_delete(folder: Path) -> None:
    assert run(folder, "put", "Repo", "owner=bob", "name=x,y").out == 'put Repo ["bob","x,y"]\n'
    new = run(folder, "put", "Repo", "owner=bob", "name=x,y", "stars=3", "--new")
    assert (new.status, new.out) == (1, "")
    assert "already exists" in new.err
    held = run(folder, "put", "Repo", "owner=bob", "name=x,y", "stars=3", "--only-if", "stars > 0")
    assert (held.status, held.out) == (1, "")
    assert run(folder, "put", "Repo", "owner=bob", "name=x,y", "stars=3", "--only-if", "stars = 0").status == 0
    missing = run(folder, "put", "Knows", "source=1", "target=99", "since=2020-01-01", "--connect")
    assert (missing.status, missing.out) == (1, "")
    assert "there is no Person 99 to connect" in missing.err
    assert run(folder, "delete", "Repo", '["bob","x,y"]', "--json") == Ended(0, '{"deleted": true}\n', "")


def test_stats(folder: Path) -> None:
    told = json.loads(run(folder, "stats", "--json", "--largest", "1").out)
    assert {name: each["items"] for name, each in told["classes"].items()} == {
        "Person": 3,
        "Repo": 1,
        "Note": 2,
        "Knows": 3,
        "Likes": 2,
    }
    assert told["largest"][0]["items"] == 5
    assert sum(each["partitions"] for each in told["items_per_partition"]) == told["partitions"] == 4
    assert told["others"]["items"] == 0
    drawn = run(folder, "stats")
    assert "│ Knows" in drawn.out


# --- what is wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["get", "Persn", "1"], "there is no class 'Persn'; did you mean 'Person'?"),
        (["get", "Person", "x"], "'x' does not fit Person.id"),
        (["get", "Repo", "ann"], "the id of a Repo has 2 parts (owner, name), got 'ann'"),
        (["get", "Knows", "1"], "an edge is named by the ids of both its ends"),
        (["get", "Likes", "1", "2", "at=5"], "'2' may be one of Person, Repo; name its class, as in Person:2"),
        (
            ["get", "Likes", "1", "Reop:2", "at=5"],
            "'Reop' in 'Reop:2' is not a class of these nodes; did you mean 'Repo'?",
        ),
        (["out", "1", "Person"], "Person is a class of nodes; name a class of edges"),
        (["out", "1", "Knows", "--where", "wieght > 1"], "did you mean 'weight'?"),
        (["out", "1", "Knows", "--where", "weight >"], "ends where a value is needed"),
        (["out", "1", "Knows", "--where", "weight is 1"], "has 'is' where a comparison"),
        (["out", "1", "Knows", "--where", "weight = '1"], "close the quotes"),
        (["out", "1", "Knows", "--where", "(weight = 1"], "ends where ')' is needed"),
        (["out", "1", "Knows", "--where", "weight = 1 2"], "has '2' where and, or, or the end is needed"),
        (["children", "1", "Person"], "Person is not a class of children"),
        (["put", "Person", "id=1", "nmae=x"], "Person has no field 'nmae'; did you mean 'name'?"),
        (["put", "Person", "id=9", "name=x"], "email: Field required"),
        (["put", "Person", "id"], "'id' is not a field with a value; write NAME=VALUE"),
        (["put", "Person", "id=1", "tags:=[x"], "has no valid JSON after :="),
        (["put", "Person", "id=1", "photo=?"], "is not Base64"),
        (["walk", "1", "otu", "Knows"], "'otu' is not a step of a walk; did you mean 'out'?"),
        (["walk", "1", "out:Knows"], "'out:Knows' is not a step of a walk; write words of their own: out Knows"),
        (["walk", "1", "out Knows"], "'out Knows' is not a step of a walk; write words of their own: out Knows"),
        (["walk", "Person", "1", "out", "Knows"], "write --class Person, then the id and the steps"),
        (["walk", "1", "out"], "out is the last step, and a class is missing"),
        (["walk", "1", "repeat", "Knows", "often"], "repeat takes how often at most, got 'often'"),
        (["scan", "Repo", "--where", "years contains x"], "'x' can be no element of Repo.years"),
        (["scan", "--where", "a = 1"], "--where is about the fields of one class"),
        (["find", "Person", "name = 'x"], "close the quotes"),
    ],
)
def test_errors_are_one_line_and_write_nothing(
    folder: Path,
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # In this process: there are many of them, and each process takes most of a second to begin.
    monkeypatch.chdir(folder)
    verb, *rest = words
    assert main([verb, "graph.db", "models.py", *rest]) in (1, 2)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("adjoin: ")
    assert shown.err.count("\n") == 1
    assert message in shown.err


def test_a_put_that_is_refused_creates_no_file(folder: Path) -> None:
    done = adjoin("put", "other.db", "models.py", "Person", "id=x", folder=folder)
    assert done.status == 2
    words = ["put", "other.db", "models.py", "Repo", "owner=x", "name=y", "--only-if", "stars >"]
    assert adjoin(*words, folder=folder).status == 2
    assert not (folder / "other.db").exists()
    assert adjoin("get", "other.db", "models.py", "Person", "1", folder=folder).status == 1
    assert not (folder / "other.db").exists()


BYTES = """
from adjoin import AdjacencyList, Keys, Node


class Blob(Node, key=("id", "part")):
    id: bytes
    part: bytes
    digest: bytes = b""


LAYOUT = AdjacencyList(
    table="Blobs",
    partition_key="id",
    sort_key="part",
    types={"id": "B", "part": "B"},
    reverse=None,
    keys={Blob: Keys(partition="{id}", sort="{part}")},
)
"""


def test_ids_of_bytes_are_read_as_they_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "blobs.py").write_text(BYTES)
    monkeypatch.chdir(tmp_path)
    assert main(["put", "b.db", "blobs.py", "Blob", "id=AP8=", "part=AQ==", "digest=/g=="]) == 0
    assert capsys.readouterr().out == "put Blob AP8=,AQ==\n"
    assert main(["get", "b.db", "blobs.py", "Blob", "AP8=,AQ=="]) == 0
    assert capsys.readouterr().out == "Blob AP8=,AQ==\n  digest  /g==\n"
    assert main(["get", "b.db", "blobs.py", "Blob", "AP8,AQ=="]) == 1
    assert "'AP8' is not Base64" in capsys.readouterr().err
