"""`adjoin shards`: what it shows, what it raises, and what it refuses."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from adjoin import AdjacencyList, Graph, Index, Keys, Node
from adjoin.cli import main
from adjoin.errors import TableMismatch
from adjoin.requests import Delete
from examples import education


class Person(Node):
    id: str
    name: str


BODY = """
from tests.cli.test_shards import Person, declared
layout = declared({shards})
"""


def declared(shards: int) -> AdjacencyList:
    by_name = Index("ByName", "GSIPK", "name", shards=shards)
    return AdjacencyList(indexes=[by_name], keys={Person: Keys(indexes={"ByName": "{shard}"})}, escape=True)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], str]:
    """Makes a module whose layout declares so many shards, in the directory the command is run in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def make(shards: int) -> str:
        name = f"sharded_{tmp_path.name.replace('-', '_')}_{shards}"
        (tmp_path / f"{name}.py").write_text(BODY.format(shards=shards))
        return name

    return make


def put_people(shards: int) -> None:
    with Graph("people.db", [Person], declared(shards)) as g:
        g.put_many(Person(id=str(each), name="Ann") for each in range(50))


def found(shards: int) -> int:
    with Graph("people.db", [Person], declared(shards)) as g:
        return g.find(Person, order="name").count()


def test_it_shows_and_raises_the_number(module: Callable[[int], str], capsys: pytest.CaptureFixture[str]) -> None:
    name = module(2)
    put_people(2)
    assert main(["shards", "people.db", name]) == 0
    assert capsys.readouterr().out == "ByName: 2 shards\n"
    assert main(["shards", "people.db", name, "ByName=6"]) == 0
    assert "ByName: 6 shards; items are written to 2 of them until 20" in capsys.readouterr().out
    assert found(2) == found(6) == 50
    assert main(["shards", "people.db", name, "ByName=6"]) == 0, "it has that number already"


def test_it_raises_what_the_classes_declare_already(
    module: Callable[[int], str], capsys: pytest.CaptureFixture[str]
) -> None:
    put_people(2)
    with pytest.raises(TableMismatch):
        found(4)
    assert main(["shards", "people.db", module(4)]) == 0
    assert capsys.readouterr().out == "ByName: 2 shards\n"
    assert main(["shards", "people.db", module(4), "ByName=4"]) == 0
    assert found(4) == 50


def test_a_table_without_a_number(module: Callable[[int], str], capsys: pytest.CaptureFixture[str]) -> None:
    put_people(3)
    with Graph("people.db", [Person], declared(3)) as g:
        g._store.execute([Delete("adjoin", g._layout.shard_number_key("GSIPK"))])
    assert main(["shards", "people.db", module(3)]) == 0
    assert capsys.readouterr().out == "ByName: 3 shards, as the layout declares; the table has no record of them\n"
    assert main(["shards", "people.db", module(3), "ByName=3"]) == 0
    assert capsys.readouterr().out == "ByName: 3 shards\n"


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["ByName=1"], 1, "must be from 2 to 10,000, got 1"),
        (["Other=4"], 1, "'Other' is not an index with a number of shards; such indexes are 'ByName'"),
        (["ByName"], 2, "not an index with a number of shards, such as GSI1=8"),
        (["ByName=x"], 2, "not an index with a number of shards"),
        (["=4"], 2, "not an index with a number of shards"),
    ],
)
def test_what_it_refuses(
    arguments: list[str],
    status: int,
    problem: str,
    module: Callable[[int], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    put_people(2)
    name = module(2)
    try:
        ended = main(["shards", "people.db", name, *arguments])
    except SystemExit as end:
        ended = int(str(end.code))
    assert ended == status
    assert problem in capsys.readouterr().err
    assert found(2) == 50


def test_it_creates_nothing(module: Callable[[int], str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shards", "none.db", module(2)]) == 1
    assert "does not exist" in capsys.readouterr().err
    assert not Path("none.db").exists()


def test_a_layout_without_shards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    education.open_graph(tmp_path / "e.db").close()
    assert main(["shards", str(tmp_path / "e.db"), "examples.education"]) == 2
    assert "has shards" in capsys.readouterr().err
