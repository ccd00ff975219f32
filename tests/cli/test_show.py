"""`show`, `tables` and `changes`: printed while they read, on files and on DynamoDB, and as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

import adjoin
from adjoin import Graph, Node
from adjoin.cli import main, show
from adjoin.requests import Request, Response, Scan
from adjoin.stores.sqlite import SQLiteStore
from examples import education
from tests.waiting import LIMIT


class Note(Node):
    id: int
    text: str


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("show") / "large.db")
    with Graph(path, [Note]) as g:
        g.put_many(Note(id=number, text=f"note {number}") for number in range(2_000))
    return path


def test_boxes_are_drawn_while_the_table_is_read(large: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first box is there after a page of its items and one more, however many are asked for."""
    asked: list[int | None] = []
    execute = SQLiteStore.execute

    def counting(store: SQLiteStore, requests: list[Request]) -> list[Response]:
        asked.extend(each.limit for each in requests if isinstance(each, Scan))
        return execute(store, requests)

    printed: list[int] = []
    monkeypatch.setattr(SQLiteStore, "execute", counting)
    monkeypatch.setattr("builtins.print", lambda *_, **__: printed.append(len(asked)))
    assert main(["show", large, "--limit", "2000"]) == 0
    assert printed == [2, 2, 2, 3, 4, 4], "pages that were read before the title, each of four boxes, and the last line"
    assert set(asked) == {show.BOX + 1}


def test_all_boxes_have_all_items(large: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", large, "--limit", "1200"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "table adjoin: at most 1,200 items, in boxes of 500"
    assert lines[-1] == "the first 1,200 of 2,001 items, adjoin's own included; draw more with --limit"
    assert sum("│ #META │" in line for line in lines) == 1_200
    assert sum(line.startswith("┌") for line in lines) == 3
    assert main(["show", large, "--limit", "5000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "2,000 items"
    assert len({line for line in lines if "│ #META │" in line}) == 2_000


def test_a_reader_that_leaves_ends_the_command(large: str) -> None:
    program = subprocess.Popen(
        [sys.executable, "-m", "adjoin", "show", large, "--limit", "999999"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline().startswith("table adjoin: ")
    program.stdout.close()
    assert program.stderr is not None
    assert program.stderr.read() == ""
    program.stderr.close()
    program.wait(LIMIT)


def test_show_in_json(large: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", large, "--json", "--limit", "700"]) == 0
    items = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(items) == 700
    assert items[0].keys() == {"PK", "SK", "text"}
    assert main(["show", large, "--json", "--limit", "3000", "--all"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2_001


# --- on DynamoDB -------------------------------------------------------------------------------


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server with one table, as a location."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    with adjoin.serve() as server:
        place = f"?endpoint={server.endpoint}&region=us-east-1"
        with Graph(f"dynamodb://Education{place}", education.MODELS, education.LAYOUT) as g:
            g.create_table()
            g.put_many(education.SAMPLE)
        yield place


def test_commands_that_read_a_table_of_dynamodb(service: str, capsys: pytest.CaptureFixture[str]) -> None:
    location = f"dynamodb://Education{service}"
    assert main(["show", location]) == 0
    assert capsys.readouterr().out.startswith("table Education: 7 items\n┌")
    assert main(["tables", location]) == 0
    assert "│ Education │ PK, SK │ GSI1 (GSI1-PK, GSI1-SK) │" in capsys.readouterr().out
    assert main(["tables", f"dynamodb://{service}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "table": "Education",
        "partition_key": [{"name": "PK", "type": "S"}],
        "sort_key": [{"name": "SK", "type": "S"}],
        "indexes": [
            {
                "index": "GSI1",
                "partition_key": [{"name": "GSI1-PK", "type": "S"}],
                "sort_key": [{"name": "GSI1-SK", "type": "S"}],
            }
        ],
        "items": 8,
        "bytes": 1344,
    }
    assert main(["changes", location, "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 7
    assert main(["get", location, "examples.education", "Student", "S1"]) == 0
    assert capsys.readouterr().out.startswith("Student S1\n")


def test_a_table_that_is_not_there_or_not_named(service: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", f"dynamodb://Educatoin{service}"]) == 1
    assert "Educatoin" in capsys.readouterr().err
    assert main(["show", f"dynamodb://{service}"]) == 2
    assert "name the table, as in dynamodb://Education, or with --table" in capsys.readouterr().err
    assert main(["changes", f"dynamodb://Education{service}", "--table", "Other"]) == 2
    assert "leave one out" in capsys.readouterr().err
