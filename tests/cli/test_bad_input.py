"""What people get wrong, as a process: one line that says it, a status, no traceback, and nothing half done."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import adjoin as library
from tests.cli.programs import adjoin

NO_CREDENTIALS: dict[str, str | None] = {
    **dict.fromkeys(name for name in os.environ if name.startswith("AWS_")),
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}
MODELS = """
from adjoin import Edge, Node


class Person(Node):
    id: str


class Knows(Edge[Person, Person]):
    pass
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("filled")
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "people.csv").write_text("id\na\nb\n")
    (tmp_path / "text.db").write_text("this is no database, but it is long enough to be taken for one. " * 20)
    (tmp_path / "syntax.py").write_text("class Person(Node:\n    id: str\n")
    (tmp_path / "missing.py").write_text("from adjoin import Nodes\n")
    (tmp_path / "raising.py").write_text("import models\n\nraise RuntimeError('the database of colours is down')\n")
    (tmp_path / "wrong.py").write_text("from adjoin import Node\n\n\nclass Person(Node, lable='P'):\n    id: str\n")
    (tmp_path / "nothing.py").write_text("x = 1\n")
    assert adjoin("put", "good.db", "models.py", "Person", "id=a", folder=tmp_path).status == 0
    return tmp_path


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("get none.db models.py Person a", "the file none.db does not exist; check the name"),
        ("stats none.db models.py", "the file none.db does not exist; check the name"),
        ("export good.db models.py", "models.py is a file, and an export of a table is a folder; name a folder"),
        ("export none.db out.csv models.py Person", "the file none.db does not exist; check the name"),
        ("export good.db models.py Person out.csv", "the file comes before the module; write: adjoin export LOCATION"),
        ("export good.db models.py out.jsonl.gz", "the file comes before the module; write: adjoin export LOCATION"),
        ("get text.db models.py Person a", "text.db is not an adjoin file"),
        ("import new.db models.py none.csv Person", "the file none.csv does not exist; check the name"),
        ("get good.db none.py Person a", "the file none.py does not exist; check the name"),
        ("get good.db nomodule Person a", "the module nomodule does not exist here or in this environment"),
        ("put new.db syntax.py Person id=a", "SyntaxError: "),
        ("put new.db missing.py Person id=a", "cannot import name 'Nodes' from 'adjoin'"),
        ("put new.db raising.py Person id=a", "RuntimeError: the database of colours is down (raising.py, line 3)"),
        ("import new.db raising.py people.csv Person", "RuntimeError: the database of colours is down"),
        ("put new.db wrong.py Person id=a", "lable"),
        ("put new.db nothing.py Person id=a", "the module nothing has no Node or Edge classes"),
        ("import new.db models.py people.csv", "the rows of a csv file are of one class; name it"),
        ("import new.db models.py people.csv Persn", "there is no class 'Persn'; did you mean 'Person'?"),
        ("import new.db models.py people.csv Knows", "has the column 'id', and Knows has no such field"),
        ("put s3://bucket/x models.py Person id=a", "s3:// is not a location of graphs"),
        ("put new.db?durability=x models.py Person id=a", "durability cannot be 'x'"),
    ],
)
def test_errors_are_one_line_and_create_nothing(folder: Path, words: str, message: str) -> None:
    before = sorted(each for each in os.listdir(folder) if each != "__pycache__")
    done = adjoin(*words.split(), folder=folder)
    assert done.status in (1, 2)
    assert done.out == ""
    assert done.err.startswith("adjoin: ")
    assert done.err.count("\n") == 1
    assert message in done.err
    assert sorted(each for each in os.listdir(folder) if each != "__pycache__") == before


@pytest.mark.parametrize("words", ["show {}", "get {} models.py Person a", "import {} models.py people.csv Person"])
def test_no_credentials(folder: Path, words: str) -> None:
    location = "dynamodb://People?region=eu-west-1"
    done = adjoin(*words.format(location).split(), folder=folder, **NO_CREDENTIALS)
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("adjoin: ")
    assert "credentials" in done.err
    assert done.err.count("\n") == 1
    assert not [each for each in os.listdir(folder) if "import" in each]


@pytest.mark.parametrize(
    "words",
    ["show {}", "changes {}", "tables {}", "get {} models.py Person a", "import {} models.py people.csv Person"],
)
def test_a_table_that_does_not_exist(folder: Path, words: str) -> None:
    with library.serve() as server:
        location = f"dynamodb://People?region=eu-west-1&endpoint={server.endpoint}"
        keys = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
        done = adjoin(*words.format(location).split(), folder=folder, **keys)
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("adjoin: ")
    assert "People" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "meant"),
    [("shwo good.db", "'show'"), ("show good.db --limt 3", "'--limit'"), ("explain otu good.db", "'out'")],
)
def test_a_mistyped_word(folder: Path, words: str, meant: str) -> None:
    done = adjoin(*words.split(), folder=folder)
    assert (done.status, done.out) == (2, "")
    assert done.err.endswith(f"did you mean {meant}?\n")


def test_an_option_that_is_like_no_other_gets_no_hint(folder: Path) -> None:
    done = adjoin("show", "good.db", "--where", "a = 1", folder=folder)
    assert done.status == 2
    assert done.err.endswith("unrecognized arguments: --where a = 1\n")
