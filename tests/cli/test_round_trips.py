"""Values that an export writes and an import reads back as they were, whatever is in them."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from adjoin import Edge, Graph, Node
from adjoin.cli import main
from tests.cli.programs import adjoin

MODULE = "tests.cli.test_round_trips"


class Note(Node):
    id: str
    text: str = "-"


class Line(Edge[Note, Note], key=("k",)):
    k: str


class Mixed(Node):
    id: str
    number: int | str | None = None
    names: str | list[str] | None = None
    any: Any = None


MODELS = [Note, Line, Mixed]
ENDS = ("\r", "\n", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029")
TEXTS = (
    *(f"a{end}b" for end in ENDS),
    *(f"{end}a{end}" for end in ENDS),
    *ENDS,
    '"',
    'a"b',
    '"a"',
    ",",
    "a,b",
    " a ",
    "\ta",
    "'",
    "\ufeffa",
    "[1",
    "null",
    "5",
)


def again(entities: list[Any], name: str) -> tuple[list[Any], list[Any]]:
    """What a file has, and what an empty one has after an export and an import of it, in the same order."""
    kind = type(entities[0])
    with Graph("first.db", MODELS) as g:
        g.put_many(entities)
        stored = sorted(g.scan(kind), key=repr)
    arguments = [MODULE, *([] if name.endswith(".jsonl") else [kind.__name__]), "--quiet", "--models", "MODELS"]
    with Graph("again.db", MODELS):
        pass
    assert main(["export", "first.db", name, *arguments]) == 0
    assert main(["import", "again.db", arguments[0], name, *arguments[1:]]) == 0
    with Graph("again.db", MODELS) as g:
        return stored, sorted(g.scan(kind), key=repr)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.jsonl", "out.parquet"])
def test_texts_come_back_whatever_is_in_them(name: str) -> None:
    stored, found = again([Note(id=text, text=text) for text in TEXTS], name)
    assert len(found) == len(TEXTS)
    assert found == stored


def test_key_fields_of_edges_come_back() -> None:
    stored, found = again([Line(source="a\rb", target="c", k=text) for text in TEXTS], "out.csv")
    assert len(found) == len(TEXTS)
    assert found == stored


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet"])
def test_a_text_stays_one_where_the_field_takes_other_types_too(name: str) -> None:
    texts = ("5", "1.5", "true", "null", '"q"', '["a"]', "{}", "[", "NaN", "a", "[" * 100_000)
    nodes: list[Any] = [
        *(Mixed(id=f"t{at}", number=text, names=text, any=text) for at, text in enumerate(texts)),
        Mixed(id="n1", number=5, names=["5", "a"], any=True),
        Mixed(id="n2", number=None, names=[], any={"a": ["5", Decimal("1.5"), None]}),
        Mixed(id="n3", any=Decimal("1.50000000000000000001")),
    ]
    stored, found = again(nodes, name)
    assert found == stored
    assert {each.id: each.any for each in found} == {each.id: each.any for each in nodes}


def test_a_row_with_the_wrong_number_of_cells_and_ends_of_lines_is_refused(tmp_path: Path) -> None:
    given = '\ufeffid,text\n"a\nb"\n"c\rd",e,f\n"g\rh",i\n'.encode()
    tmp_path.joinpath("w.csv").write_bytes(given)
    with Graph("first.db", MODELS):
        pass
    ended = adjoin("import", "first.db", MODULE, "w.csv", "Note", "--models", "MODELS", folder=tmp_path)
    assert ended.status == 3, ended
    assert "Traceback" not in ended.err
    with tmp_path.joinpath("w.csv.refused.csv").open(newline="", encoding="utf-8") as file:
        rows = [*csv.reader(file)]
    assert [row[:-1] for row in rows[1:]] == [["a\nb", ""], ["c\rd", "e", "f"]]
