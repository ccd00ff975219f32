"""The command line on real files: output, errors in one line, exit statuses, and its documentation."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import pytest

from adjoin import Edge, Expires, Graph, Indexed, Node, Unique, __version__
from adjoin.cli import COMMANDS, main
from adjoin.requests import CreateTable, Put
from adjoin.reserved import is_own_partition
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from examples import education, invoices, people
from tests.cli.reference import PATH, parser_of, reference

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "cli.md"


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file with two tables."""
    path = str(tmp_path / "two.db")
    with education.open_graph(path) as g:
        g.put_many(education.SAMPLE)
    with invoices.open_graph(path) as g:
        g.put_many(invoices.SAMPLE)
    return path


@pytest.fixture
def single(tmp_path: Path) -> str:
    """A file with one table, and every kind of change."""
    path = str(tmp_path / "one.db")
    with education.open_graph(path) as g:
        g.put(education.SAMPLE[0])
        g.update(education.Student, "S1", year_level=4)
        g.delete(education.Student, "S1")
    return path


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_show_draws_the_table(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", file, "--table", "Education"]) == 0
    title, _, header, *rows = lines_of(capsys)
    assert title == "table Education: 7 items"
    names = [cell.strip() for cell in header.strip("│").split("│")]
    assert names[:3] == ["PK", "SK", "EntityType"]
    assert names[-2:] == ["GSI1-PK", "GSI1-SK"]
    assert sum("STUDENT#S1 │ COURSE#C1" in row for row in rows) == 1
    assert sum(row.startswith("│            │ COURSE#C2") for row in rows) == 1


def test_show_draws_an_index(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", file, "--table", "InvoiceAndBills", "--index", "GSI_1"]) == 0
    title, _, header, _, first, *_ = lines_of(capsys)
    assert title == "table InvoiceAndBills, index GSI_1: 14 items"
    assert header.startswith("│ SK     │ PK")
    assert first.startswith("│ B#3392 │ B#3392")


class Person(Node):
    id: str
    name: Annotated[str, Indexed()]
    born: Annotated[int, Indexed()]
    email: Annotated[str, Unique()]


@pytest.fixture(params=[None, "acme"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A file with a node that has a copy and a claim, perhaps of a tenant."""
    path = str(tmp_path / "kept.db")
    with Graph(path, [Person], tenant=request.param) as g:
        g.put(Person(id="P1", name="Ann", born=1990, email="ann@example.com"))
        g.update(Person, "P1", name="Anna")
    return path


def test_show_draws_what_adjoin_keeps_for_itself_only_where_asked(
    kept: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", kept]) == 0
    title, _, header, _, *rows, _ = lines_of(capsys)
    assert title == "table adjoin: 1 item, and 2 of adjoin's own; draw them with --all"
    assert "adjoin:revision" not in header
    assert len(rows) == 1
    assert main(["show", kept, "--all"]) == 0
    title, *rows = lines_of(capsys)
    assert title == "table adjoin: 4 items", "with the record of what is declared"
    assert "adjoin:revision" in rows[1]
    assert sum("#=PERSON#email#ann@example.com" in row for row in rows) == 1
    assert main(["show", kept, "--limit", "1"]) == 0
    assert lines_of(capsys)[0] == title.replace("4 items", "1 item, and 2 of adjoin's own; draw them with --all")


def test_show_draws_the_copies_in_an_index(kept: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", kept, "--index", "GSI3"]) == 0
    title, _, _, *rows = lines_of(capsys)
    assert title == "table adjoin, index GSI3: 2 items"
    assert sum("PERSON#born#0" in row for row in rows) == 1


def test_changes_are_those_of_nodes_and_edges(kept: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["changes", kept]) == 0
    inserted, modified = lines_of(capsys)
    assert "insert" in inserted
    assert "name: Ann → Anna" in modified
    assert "adjoin:" not in inserted + modified
    assert main(["changes", kept, "--all", "--json"]) == 0
    assert {json.loads(line)["key"]["SK"]["S"] for line in lines_of(capsys)} == {
        "#META",
        "born##META",
        "=",
        "=DECLARED#forms",
    }


@pytest.mark.parametrize(
    ("key", "is_own"),
    [
        ("PERSON#P1", False),
        ("PERSON#P1#=", True),
        ("acme#PERSON#P1#=", True),
        ("#=SHARDS", True),
        ("acme##=SHARDS", True),
        ("#=PERSON#name#a\nb", True),
        ("PERSON#=a", False),
        ("PERSON#a=#=b", False),
        ("=", False),
        ("", False),
    ],
)
def test_a_key_tells_what_is_adjoins_own(key: str, is_own: bool) -> None:
    assert is_own_partition(key) is is_own


def test_show_fits_a_terminal(file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "90")
    assert main(["show", file, "--table", "Education"]) == 0
    lines = lines_of(capsys)
    assert lines[2].split() == ["│", "PK", "│", "SK", "│", "attributes", "│"]
    assert max(map(len, lines)) <= 90


def test_show_stops_at_the_limit(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", file, "--table", "Education", "--limit", "2"]) == 0
    assert (
        lines_of(capsys)[0] == "table Education: the first 2 of 8 items, adjoin's own included; draw more with --limit"
    )
    assert main(["show", file, "--table", "Education", "--limit", "7"]) == 0
    assert lines_of(capsys)[0] == "table Education: 7 items"
    assert main(["show", file, "--table", "Education", "--index", "GSI1", "--limit", "1"]) == 0
    assert lines_of(capsys)[0] == "table Education, index GSI1: the first 1 item; draw more with --limit"


def test_show_reads_on_behind_one_megabyte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Note(Node):
        id: int
        text: str

    path = str(tmp_path / "large.db")
    with Graph(path, [Note]) as g:
        g.put_many(Note(id=number, text="x" * 100_000) for number in range(30))
    assert main(["show", path]) == 0
    assert lines_of(capsys)[0] == "table adjoin: 30 items"


def test_show_says_that_a_table_is_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "empty.db")
    education.open_graph(path).close()
    assert main(["show", path]) == 0
    assert lines_of(capsys) == ["table Education: empty"]


def test_tables_lists_keys_indexes_items_and_size(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", file]) == 0
    drawn = capsys.readouterr().out
    assert "│ Education       │ PK, SK │ GSI1 (GSI1-PK, GSI1-SK) │     8 │" in drawn
    assert "│ InvoiceAndBills │ PK, SK │ GSI_1 (SK)              │    15 │" in drawn


def test_tables_gives_each_index_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Person(Node):
        id: str

    class Follows(Edge[Person, Person], order="rank"):
        rank: int

    path = str(tmp_path / "ordered.db")
    Graph(path, [Person, Follows]).close()
    assert main(["tables", path]) == 0
    drawn = capsys.readouterr().out
    assert "GSI1 (GSI1PK, GSI1SK)" in drawn
    assert "GSI2 (GSI2PK, GSI2SK)" in drawn


def test_an_index_with_several_attributes_in_its_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    city, year, name = KeyAttribute("city"), KeyAttribute("year", "N"), KeyAttribute("name")
    index = IndexDefinition.over("ByCity", [city, year], [name, KeyAttribute("id")])
    path = str(tmp_path / "several.db")
    store = SQLiteStore(path)
    store.execute([CreateTable(TableDefinition("People", KeyAttribute("id"), None, (index,)))])
    for who, at in (("1", "Zoe"), ("2", "Ann")):
        held = {"id": {"S": who}, "city": {"S": "Bonn"}, "year": {"N": "1990"}, "name": {"S": at}}
        store.execute([Put("People", held)])
    store.close()
    assert main(["tables", path]) == 0
    assert "│ People │ id   │ ByCity (city + year (N), name + id) │" in capsys.readouterr().out
    assert main(["show", path, "--index", "ByCity"]) == 0
    drawn = [" ".join(line.split()) for line in lines_of(capsys)]
    assert "│ city │ year │ name │ id │" in drawn
    assert drawn.index("│ Bonn │ 1990 │ Ann │ 2 │") < drawn.index("│ │ 1990 │ Zoe │ 1 │")


def test_changes_in_text(single: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["changes", single]) == 0
    inserted, modified, removed = lines_of(capsys)
    assert "  insert  STUDENT#S1 METADATA  EntityType: STUDENT, Name: John Doe" in inserted
    assert modified.endswith("  modify  STUDENT#S1 METADATA  YearLevel: 3 → 4")
    assert "  remove  STUDENT#S1 METADATA  " in removed


def test_changes_in_json_resume_after_a_position(single: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["changes", single, "--json"]) == 0
    changes = [json.loads(line) for line in lines_of(capsys)]
    assert [change["kind"] for change in changes] == ["insert", "modify", "remove"]
    assert changes[1]["old"]["YearLevel"] == {"N": "3"}
    assert changes[1]["new"]["YearLevel"] == {"N": "4"}
    assert changes[2]["new"] is None
    assert main(["changes", single, "--json", "--after", changes[0]["position"]]) == 0
    assert [json.loads(line) for line in lines_of(capsys)] == changes[1:]


def test_changes_tell_expiry_from_removal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Session(Node):
        id: str
        until: Annotated[datetime, Expires()]

    path = str(tmp_path / "sessions.db")
    with Graph(path, [Session]) as g:
        g.put(Session(id="x", until=datetime.now(UTC) - timedelta(hours=1)))
    assert main(["changes", path]) == 0
    assert [line.split()[2] for line in lines_of(capsys)] == ["insert", "expire"]


def test_results_of_other_commands_in_json(single: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(*words: str) -> Any:
        status = main([*words, "--json", "--quiet"] if words[0] != "shards" else [*words, "--json"])
        assert status == 0
        return json.loads(capsys.readouterr().out)

    with people.open_graph(tmp_path / "people.db") as g:
        g.put_many(people.SAMPLE)
    found = told("shards", str(tmp_path / "people.db"), "examples.people")
    assert (found["index"], found["stored"]) == ("GSI1", 2)
    copied = told("copy", single, str(tmp_path / "copy.db"))
    assert (copied["table"], copied["to"], copied["items"]) == ("Education", "Education", 1)
    assert told("export", single, str(tmp_path / "exported"))["exported"] == 1
    assert told("maintain", single, "examples.education", "--once")["set_aside"] == 0
    assert told("rebuild", single, "examples.education", "--dry-run") == {
        "results": [],
        "uncounted": 0,
        "left": 0,
        "failures": [],
    }
    audit = told("verify", single, "examples.education")
    assert (audit["faults"], audit["left"], audit["findings"]) == (0, 0, [])


# --- what goes wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "{file}"], "several tables: Education, InvoiceAndBills; choose one with --table"),
        (["show", "{file}", "--table", "Educatoin"], "did you mean 'Education'?"),
        (["show", "{file}", "--table", "X"], "it has Education, InvoiceAndBills"),
        (["show", "{file}", "--table", "Education", "--index", "GSI2"], "did you mean 'GSI1'?"),
        (["show", "{folder}/none.db"], "none.db does not exist; check the name"),
        (["tables", "{folder}/none.db"], "none.db does not exist; check the name"),
        (["changes", "{folder}/none.db"], "none.db does not exist; check the name"),
        (["show", "{folder}"], "directory"),
        (["show", "{folder}/text"], "not an adjoin file"),
        (
            ["export", "{file}", "{folder}/text", "--table", "Education"],
            "is a file, and an export of a table is a folder",
        ),
    ],
)
def test_errors_are_one_line(
    file: str, tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("something else " * 20)
    before = sorted(path.name for path in tmp_path.iterdir())
    assert main([each.format(file=file, folder=tmp_path) for each in arguments]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("adjoin: ")
    assert shown.err.count("\n") == 1
    assert message in shown.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["draw"],
        ["show"],
        ["show", "x", "--limit", "0"],
        ["show", "x", "--limit", "many"],
        ["serve", "x", "--port", "65536"],
    ],
)
def test_arguments_that_cannot_be_understood(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: adjoin" in capsys.readouterr().err


def test_a_file_without_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "bare.db")
    with education.open_graph(path) as g:
        g.drop_table()
    assert main(["tables", path]) == 0
    assert lines_of(capsys) == ["there is no table yet"]
    assert main(["show", path]) == 1
    assert "no table yet" in capsys.readouterr().err


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "adjoin", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"adjoin {__version__}\n"


def test_any_encoding_of_the_terminal_will_do(tmp_path: Path) -> None:
    class Word(Node):
        id: str

    path = str(tmp_path / "words.db")
    with Graph(path, [Word]) as g:
        g.put(Word(id="日本🙂"))

    def shown(*arguments: str) -> str:
        ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
        done = subprocess.run(
            [sys.executable, "-m", "adjoin", *arguments], capture_output=True, text=True, check=True, env=ascii_only
        )
        assert done.stderr == ""
        return done.stdout

    assert "WORD#???" in shown("show", path)
    assert json.loads(shown("changes", path, "--json"))["key"]["PK"] == {"S": "WORD#日本🙂"}


def test_a_reader_that_leaves_early_is_no_error(file: str) -> None:
    shown = subprocess.Popen(
        [sys.executable, "-m", "adjoin", "changes", file, "--table", "Education"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert shown.stdout is not None
    shown.stdout.close()
    assert shown.stderr is not None
    assert shown.stderr.read() == ""
    shown.stderr.close()
    shown.wait()


# --- documentation -----------------------------------------------------------------------------


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_is_documented_with_an_example(command: str) -> None:
    sections = DOCUMENT.read_text().split("\n## ")
    section = next((each for each in sections if each.startswith(f"`adjoin {command}`")), None)
    assert section, f"docs/cli.md has no section for adjoin {command}"
    known = {option for action in parser_of(command)._actions for option in action.option_strings}
    unknown = [option for option in re.findall(r"^\| `(--[a-z-]+)", section, re.MULTILINE) if option not in known]
    assert not unknown, f"docs/cli.md explains {', '.join(unknown)}, which adjoin {command} does not have"
    assert f"$ adjoin {command} " in section, f"docs/cli.md shows no example of adjoin {command}"
    assert f"| [`adjoin {command}`](#adjoin-{command}) |" in sections[0]


def test_the_reference_is_what_the_help_says() -> None:
    assert PATH.read_text(encoding="utf-8") == reference(), "run python -m tests.cli.reference"


def test_every_argument_has_a_help() -> None:
    for command in COMMANDS:
        for action in parser_of(command.name)._actions:
            assert action.help or isinstance(action, argparse._SubParsersAction), f"{command.name} {action.dest}"
