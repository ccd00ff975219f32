"""`adjoin import` and `export`: every format there and back, refused records, interruptions, and broken files."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import pytest

import adjoin as library
from adjoin import Child, Count, Edge, Graph, Indexed, Node, Unique
from adjoin.cli import main
from adjoin.exchange import loading
from adjoin.exchange.progress import ImportState
from tests.cli.programs import Ended, adjoin


class Person(Node):
    id: int
    name: Annotated[str, Indexed()]
    email: Annotated[str | None, Unique()] = None
    born: date | None = None
    height: Decimal | None = None
    tags: set[str] | None = None
    photo: bytes | None = None
    about: dict[str, Any] | None = None
    knows: Annotated[int, Count("Knows")] = 0


class Repo(Node, key=("owner", "name")):
    owner: str
    name: str
    token: UUID | None = None
    at: datetime | None = None


class Knows(Edge[Person, Person], order="since"):
    since: date
    weight: Decimal = Decimal(1)


class Likes(Edge[Person, Person | Repo], key=("at",)):
    at: int


class Friend(Edge[Person, Person], symmetric=True):
    pass


class Note(Child[Repo], key=("number",)):
    number: int
    text: str


MODELS = [Person, Repo, Knows, Likes, Friend, Note]
MODULE = "tests.cli.test_import"
PEOPLE = [
    Person(
        id=1,
        name="Ann, the 1st",
        email="a@x",
        born=date(1990, 1, 31),
        height=Decimal("1.70000000000000000000000000000000001"),
        tags={"b", "a"},
        photo=b"\x00\xff",
        about={"likes": ["x", {"deep": Decimal("1.5")}]},
    ),
    Person(id=2, name='"Bob"\nsecond line'),
    Person(id=3, name="Žofie 日本"),
]
SAMPLE: list[Any] = [
    *PEOPLE,
    Repo(owner="ann", name="a,b", token=UUID(int=5), at=datetime(2026, 1, 2, 3, tzinfo=UTC)),
    Repo(owner="ann", name="c"),
    Knows(source=1, target=2, since=date(2020, 1, 1), weight=Decimal("0.10")),
    Knows(source=1, target=3, since=date(2021, 1, 1)),
    Likes(source=1, target=Repo.ref(("ann", "a,b")), at=5),
    Likes(source=2, target=Person.ref(1), at=6),
    Friend(source=1, target=2),
    Note(parent=("ann", "a,b"), number=1, text="one"),
]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with Graph("sample.db", MODELS) as g:
        g.put_many(SAMPLE)
    return tmp_path


def everything(location: str, *, without: tuple[str, ...] = ()) -> list[str]:
    with Graph(location, MODELS) as g:
        found = [each.model_dump(exclude={"knows"}) | {"is": type(each).__name__} for each in g.scan()]
        return sorted(repr(each) for each in found if each["is"] not in without)


def stored(location: str) -> list[dict[str, Any]]:
    with Graph(location, MODELS) as g, g._store.dump("adjoin") as pieces:  # type: ignore[attr-defined]
        items = [json.loads(text) for piece in pieces for text in piece]
    return sorted(
        ({name: value for name, value in item.items() if name != "adjoin:revision"} for item in items), key=repr
    )


# --- there and back ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
def test_json_lines_hold_all_classes(file: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "sample.db", name, MODULE, "--quiet"]) == 0
    assert main(["import", "copy.db", MODULE, name, "--quiet"]) == 0
    exported, imported = capsys.readouterr().out.splitlines()
    assert exported == f"exported 11 nodes and edges to {name}"
    assert imported.startswith("loaded 11 records in ")
    assert everything("copy.db") == everything("sample.db")
    assert stored("copy.db") == stored("sample.db"), "keys, index copies and claims too"
    assert sorted(os.listdir()) == sorted(["sample.db", "copy.db", name]), "no state is left"


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("model", MODELS)
def test_a_file_for_each_class(file: Path, suffix: str, model: type[Any], capsys: pytest.CaptureFixture[str]) -> None:
    name, path = model.__name__, f"{model.__name__}.{suffix}"
    left_out = ["--ignore", "knows"] if model is Person else []
    assert main(["export", "sample.db", path, MODULE, name, "--quiet"]) == 0
    assert main(["import", "copy.db", MODULE, path, name, *left_out, "--quiet"]) == 0, capsys.readouterr().err
    others = tuple(each.__name__ for each in MODELS if each is not model)
    assert everything("copy.db") == everything("sample.db", without=others)


def test_an_export_of_dynamodb(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "sample.db", "exported", "--quiet"]) == 0
    assert main(["import", "copy.db", MODULE, "exported", "--json", "--quiet"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    # A symmetric edge is two items, and is put twice.
    assert told == {"loaded": 12, "refused": 0, "refused_file": None}
    assert stored("copy.db") == stored("sample.db")


def test_what_was_loaded_is_what_puts_would_have_written(file: Path) -> None:
    """Also in the change stream, and if some of it is stored already."""
    old = [Knows(source=number, target=0, since=date(2020, 1, 1)) for number in range(0, 100, 3)]
    new = [Knows(source=number, target=0, since=date(2020, 1, 1), weight=Decimal(number % 2)) for number in range(100)]
    with Graph("by_put.db", MODELS) as g:
        g.put_many(old)
        g.put_many(new)
        put = [(each.kind, each.old_item, each.new_item) for each in g.changes()]
    with Graph("loaded.db", MODELS) as g:
        g.put_many(old)
    with open("knows.jsonl", "w") as lines:
        lines.writelines(f'{{"source":{e.source},"target":0,"since":"2020-01-01","weight":{e.weight}}}\n' for e in new)
    assert main(["import", "loaded.db", MODULE, "knows.jsonl", "Knows", "--quiet"]) == 0
    with Graph("loaded.db", MODELS) as g:
        loaded = [(each.kind, each.old_item, each.new_item) for each in g.changes()]
        assert g.count(Knows) == 100
        assert sorted(edge.source for edge in g.into(0, Knows)) == [*range(100)]
    assert stored("loaded.db") == stored("by_put.db")
    assert sorted(map(repr, map(_ordered, loaded))) == sorted(map(repr, map(_ordered, put)))
    assert main(["tables", "loaded.db", "--json"]) == 0


def _ordered(change: tuple[str, Any, Any]) -> tuple[str, Any, Any]:
    kind, old, new = change
    return kind, old and sorted(old.items()), new and sorted(new.items())


def test_the_same_key_twice_keeps_the_later_one(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("twice.csv").write_text("owner,name,token\na,b,\na,b,00000000-0000-0000-0000-000000000007\n")
    assert main(["import", "twice.db", MODULE, "twice.csv", "Repo", "--quiet"]) == 0
    with Graph("twice.db", MODELS) as g:
        assert g.get(Repo, ("a", "b")) == Repo(owner="a", name="b", token=UUID(int=7))
        assert g.count(Repo) == 1
    assert main(["tables", "twice.db", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["items"] == 2, "with the record of declarations"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    with library.serve() as server:
        location = f"dynamodb://Graph?endpoint={server.endpoint}&region=us-east-1"
        with Graph(location, MODELS) as g:
            g.create_table()
        yield location


def test_import_into_and_export_from_dynamodb(file: Path, service: str) -> None:
    Path("people.csv").write_text("id,name,email\n1,Ann,a@x\n2,Bob,a@x\n3,Cat,c@x\n")
    assert main(["import", service, MODULE, "people.csv", "Person", "--quiet"]) == 3
    assert main(["export", service, "back.csv", MODULE, "Person", "--quiet"]) == 0
    with open("back.csv", newline="") as lines:
        assert sorted(row["name"] for row in csv.DictReader(lines)) == ["Ann", "Cat"]
    with open("people.csv.refused.csv", newline="") as lines:
        (refused,) = csv.DictReader(lines)
    assert refused["name"] == "Bob"
    assert "a@x" in refused["reason"]


# --- names and cells ---------------------------------------------------------------------------


def test_columns_with_other_names(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("k.csv").write_text("from,to,day,remark\n1,2,2020-05-06,x\n")
    words = ["--map", "from=source", "--map", "to=target", "--map", "day=since", "--ignore", "remark"]
    assert main(["import", "k.db", MODULE, "k.csv", "Knows", *words, "--quiet"]) == 0
    assert everything("k.db") == [
        repr({**Knows(source=1, target=2, since=date(2020, 5, 6)).model_dump(), "is": "Knows"})
    ]


@pytest.mark.parametrize("name", ["knows.parquet", "knows.csv"])
def test_a_null_in_parquet_is_a_missing_value(file: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its first bytes say what a file is, also if its name says something else."""
    rows = {
        "source": ["1", "1"],
        "target": ["2", "3"],
        "since": ["2024-01-01"] * 2,
        "weight": [None, "2.5"],
        "x": [1, 2],
    }
    pyarrow = import_module("pyarrow")
    import_module("pyarrow.parquet").write_table(pyarrow.table(rows), name)
    assert main(["import", "new.db", MODULE, name, "Knows", "--ignore", "x", "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("loaded 2 records")
    with Graph("new.db", [Person, Knows]) as g:
        assert [(edge.target, edge.weight) for edge in g.out(1, Knows)] == [(2, Decimal(1)), (3, Decimal("2.5"))]


@pytest.mark.parametrize(
    ("header", "words", "message"),
    [
        ("source,target,sicne", [], "has the column 'sicne', and Knows has no such field; did you mean 'since'?"),
        ("source,target", [], "has no column for Knows.since, which is required"),
        ("source,target,since", ["--map", "day=since"], "has no column 'day'"),
        ("source,target,since", ["--map", "since=sinec"], "Knows has no field 'sinec'; did you mean 'since'?"),
        ("source,target,since", ["--ignore", "x"], "has no column 'x'"),
        ("source,target,since,since", [], "has the column 'since' twice"),
        ("", [], "is empty; its first line must name the columns"),
    ],
)
def test_a_wrong_column_is_told_before_anything_is_loaded(
    file: Path, header: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("k.csv").write_text(f"{header}\n1,2,2020-01-01\n" if header else "")
    assert main(["import", "k.db", MODULE, "k.csv", "Knows", *words]) in (1, 2)
    shown = capsys.readouterr()
    assert shown.err.startswith("adjoin: ")
    assert shown.err.count("\n") == 1
    assert message in shown.err
    assert sorted(os.listdir()) == ["k.csv", "sample.db"]


# --- refused records ---------------------------------------------------------------------------

BAD = "source,target,since,weight\n1,2,2020-01-01,1\n1,x,2020-01-01,1\n1,2\n3,4,yesterday,1\n5,6,2020-01-01,1\n"


def test_bad_rows_are_written_to_a_file_with_their_reason(file: Path) -> None:
    Path("k.csv").write_text(BAD)
    done = adjoin("import", "k.db", MODULE, "k.csv", "Knows", folder=file)
    assert done.status == 3
    assert done.out.startswith("loaded 2 records in ")
    assert done.out.endswith("; 3 records refused, with the reasons in k.csv.refused.csv\n")
    with open("k.csv.refused.csv", newline="") as lines:
        header, *rows = csv.reader(lines)
    assert header == ["source", "target", "since", "weight", "reason"]
    assert [row[:4] for row in rows] == [
        ["1", "x", "2020-01-01", "1"],
        ["1", "2", "", ""],
        ["3", "4", "yesterday", "1"],
    ]
    assert rows[0][4].startswith("target")
    assert rows[1][4] == "the row has 2 cells, and the header 4"
    assert "since" in rows[2][4]
    again = adjoin("import", "k.db", MODULE, "k.csv", "Knows", folder=file)
    assert again == Ended(
        1, "", "adjoin: k.csv.refused.csv has refused records of another import; remove it, or name --refused\n"
    )
    # Mended, the file of refused records is a file to import.
    mended = Path("k.csv.refused.csv").read_text().replace(",x,", ",7,").replace("yesterday", "2020-01-02")
    Path("mended.csv").write_text("\n".join(line for line in mended.splitlines() if "cells" not in line) + "\n")
    assert adjoin("import", "k.db", MODULE, "mended.csv", "Knows", "--ignore", "reason", folder=file).status == 0
    assert adjoin("count", "k.db", MODULE, "Knows", folder=file).out == "4\n"


def test_bad_json_lines(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = '{"class":"Repo","owner":"a","name":"b"}'
    lines = [
        good,
        '{"class":"Rpeo","owner":"a"}',
        '{"owner":"a","name":"c"}',
        "{",
        "[]",
        '{"class":"Repo","owner":"a"}',
        '{"class":"Repo","owner":"a","name":"d","x":1}',
        f'{{"class":"Repo","owner":"a","name":"{"n" * 3000}"}}',
        "",
    ]
    Path("r.jsonl").write_text("\n".join(lines))
    assert main(["import", "r.db", MODULE, "r.jsonl", "--quiet"]) == 3
    reasons = [json.loads(line)["reason"] for line in Path("r.jsonl.refused.jsonl").read_text().splitlines()]
    assert len(reasons) == 7
    assert any("did you mean 'Repo'?" in each for each in reasons)
    assert any("the line is not valid JSON: " in each for each in reasons)
    assert "the line is not a JSON object" in reasons
    assert any(each.startswith("name: Field required") for each in reasons)
    assert any("Repo has no field 'x'" in each for each in reasons)
    assert any("bytes" in each for each in reasons), "a key that is too long"
    with Graph("r.db", MODELS) as g:
        assert g.count(Repo) == 1


def test_an_item_that_is_too_large_is_refused_alone(file: Path) -> None:
    rows = [f"a,{number},{'x' * (500_000 if number == 3 else 5)}" for number in range(6)]
    Path("n.csv").write_text("parent,number,text\n" + "\n".join(f'"o,n",{row[2:]}' for row in rows) + "\n")
    assert main(["import", "n.db", MODULE, "n.csv", "Note", "--quiet"]) == 3
    with Graph("n.db", MODELS) as g:
        assert [note.number for note in g.children(Repo.ref(("o", "n")), Note)] == [0, 1, 2, 4, 5]


def test_a_dry_run_loads_nothing(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("k.csv").write_text(BAD)
    assert main(["import", "k.db", MODULE, "k.csv", "Knows", "--dry-run", "--quiet", "--refused", "r.csv"]) == 3
    assert capsys.readouterr().out.startswith("would load 2 records in ")
    assert sorted(os.listdir()) == ["k.csv", "r.csv", "sample.db"]


def test_records_from_stdin(file: Path) -> None:
    given = '{"class":"Repo","owner":"a","name":"b"}\n'
    done = adjoin("import", "r.db", MODULE, "-", "--format", "jsonl", folder=file, given=given)
    assert (done.status, done.err) == (0, "")
    assert adjoin("get", "r.db", MODULE, "Repo", "a,b", folder=file).status == 0


# --- interruptions -----------------------------------------------------------------------------


def test_an_interrupted_import_continues(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(loading, "CHUNK", 10)
    monkeypatch.setattr(loading, "STEP", 40)
    rows = [f"{number},0,{'never' if number % 30 == 29 else '2020-01-01'}" for number in range(200)]
    Path("k.csv").write_text("source,target,since\n" + "\n".join(rows) + "\n")
    steps: list[int] = []
    finish = loading._Bulk.finish

    def interrupted(bulk: Any) -> None:
        steps.append(sum(len(piece.rows) for piece in bulk._ready))
        if len(steps) == 3:
            raise KeyboardInterrupt
        finish(bulk)

    monkeypatch.setattr(loading._Bulk, "finish", interrupted)
    command = ["import", "k.db", MODULE, "k.csv", "Knows"]
    assert main(command) == 130
    assert "the import is unfinished; run the same command again to continue" in capsys.readouterr().err
    with Graph("k.db", MODELS) as g:
        assert g.count(Knows) == 78
    assert main(command) == 3
    shown = capsys.readouterr()
    assert "adjoin: continuing after record 80" in shown.err
    assert shown.out.startswith("loaded 194 records in ")
    assert sum(steps[3:]) == 116, "nothing is loaded twice that the state has"
    with open("k.csv.refused.csv", newline="") as lines:
        assert [row["source"] for row in csv.DictReader(lines)] == ["29", "59", "89", "119", "149", "179"]
    with Graph("k.db", MODELS) as g:
        assert g.count(Knows) == 194
    assert sorted(os.listdir()) == ["k.csv", "k.csv.refused.csv", "k.db", "sample.db"]


def test_a_file_that_changed_meanwhile_is_not_continued(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(loading, "CHUNK", 1)
    monkeypatch.setattr(loading, "STEP", 1)
    Path("k.csv").write_text("source,target,since\n1,2,2020-01-01\n3,4,2020-01-01\n")
    save = ImportState.save

    def failing(state: Any, done: Any) -> None:
        save(state, done)
        raise OSError("the disk is gone")

    monkeypatch.setattr(ImportState, "save", failing)
    assert main(["import", "k.db", MODULE, "k.csv", "Knows"]) == 1
    monkeypatch.setattr(ImportState, "save", save)
    Path("k.csv").write_text("source,target,since\n9,9,2020-01-01\n")
    capsys.readouterr()
    assert main(["import", "k.db", MODULE, "k.csv", "Knows"]) == 1
    assert "has changed since its import was interrupted; remove " in capsys.readouterr().err


# --- files that are broken ---------------------------------------------------------------------


def broken_file(kind: str) -> str:
    if kind == "gzip":
        whole = gzip.compress(b"source,target,since\n" + b"1,2,2020-01-01\n" * 10_000)
        Path("k.csv.gz").write_bytes(whole[: len(whole) // 2])
        return "k.csv.gz"
    if kind == "parquet":
        Path("k.parquet").write_bytes(b"PAR1 and then nothing")
        return "k.parquet"
    if kind == "encoding":
        Path("k.csv").write_bytes(b"source,target,since\n1,2,\xff\xfe\n")
        return "k.csv"
    if kind == "folder":
        Path("k.csv").mkdir()
        return "k.csv"
    if kind == "format":
        Path("k.xlsx").write_bytes(b"x")
        return "k.xlsx"
    return "none.csv"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing", "the file none.csv does not exist; check the name"),
        ("gzip", "k.csv.gz is not a whole gzip file: it is damaged or ends early; copy it again"),
        ("parquet", "k.parquet is not a whole Parquet file"),
        ("format", "the name k.xlsx does not say its format; name it with --format: csv, jsonl, parquet, dynamodb"),
    ],
)
def test_a_broken_file_is_one_line_and_creates_nothing(file: Path, kind: str, message: str) -> None:
    name = broken_file(kind)
    before = sorted(os.listdir())
    done = adjoin("import", "k.db", MODULE, name, "Knows", folder=file)
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(f"adjoin: {message}")
    assert done.err.count("\n") == 1
    assert sorted(os.listdir()) == before


def test_an_export_does_not_replace_a_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("people.csv").write_text("mine")
    assert main(["export", "sample.db", "people.csv", MODULE, "Person"]) == 1
    assert "the file people.csv already exists" in capsys.readouterr().err
    assert Path("people.csv").read_text() == "mine"
    assert main(["export", "sample.db", "none/people.csv", MODULE, "Person"]) == 1
    assert capsys.readouterr().err == "adjoin: the folder none does not exist; create it first\n"
    assert main(["export", "sample.db", "people.parquet", MODULE]) == 2
    assert "the rows of a parquet file are of one class; name it" in capsys.readouterr().err
    assert main(["export", "sample.db", "people.csv"]) == 2
    assert "name the module with your classes" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["people.csv", "sample.db"]


def test_half_of_a_surrogate_pair_is_refused_and_written_down(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(
        "from adjoin import Node\n\n\nclass Person(Node):\n    id: str\n    name: str\n"
    )
    (tmp_path / "s.jsonl").write_text('{"id": "ok", "name": "x"}\n{"id": "j2", "name": "\\ud800"}\n')
    done = adjoin("import", "g.db", "models.py", "s.jsonl", "Person", "--quiet", folder=tmp_path)
    assert (done.status, "1 record refused" in done.out) == (3, True), done
    (refused,) = (tmp_path / "s.jsonl.refused.jsonl").read_text().splitlines()
    assert json.loads(refused)["name"] == "\ud800"
