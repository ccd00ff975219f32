"""`adjoin init`: writes a starter project that runs: classes, tests with the pytest fixture, a template for AWS.

Everything is made beside the folder first, so that there is a whole project, or none.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

from adjoin import aws
from adjoin.cli.command import Command, InvalidArguments, imported, layout_in, models_in
from adjoin.errors import AlreadyExists, shown

_MODELS = '''\
"""The graph of people and the projects they work on. Begin by changing these classes to your own."""

from __future__ import annotations

import os
from datetime import date
from typing import Annotated

from adjoin import AdjacencyList, Count, Edge, Graph, Indexed, Node


class Person(Node):
    id: str
    name: Annotated[str, Indexed()]


class Project(Node):
    id: str
    title: str
    people: Annotated[int, Count("WorksOn", direction="into")] = 0


class WorksOn(Edge[Person, Project]):
    since: date
    role: str = "member"


MODELS = [Person, Project, WorksOn]
LAYOUT = AdjacencyList(table="@TABLE@")


def open_graph(location: str | os.PathLike[str] = "@FILE@") -> Graph:
    """Opens the graph in a file, or on DynamoDB: open_graph("dynamodb://@TABLE@?region=eu-west-1")."""
    return Graph(location, MODELS, LAYOUT)
'''

_TESTS = '''\
"""The graph in a file, and the same graph on a DynamoDB of this test alone."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from adjoin import Graph, NotFound, aws, field
from models import LAYOUT, MODELS, Person, Project, WorksOn, open_graph


def fill(g: Graph) -> None:
    g.put_many([Person(id="ann", name="Ann"), Person(id="bob", name="Bob"), Project(id="p1", title="Moon")])
    g.connect(WorksOn, "ann", "p1", since=date(2026, 1, 1), role="lead")
    g.connect(WorksOn, "bob", "p1", since=date(2026, 2, 1))
    g.maintain(once=True)


def check(g: Graph) -> None:
    assert [edge.source for edge in g.into("p1", WorksOn)] == ["ann", "bob"]
    assert [person.id for person in g.find(Person, field("name") == "Ann")] == ["ann"]
    project = g.get(Project, "p1")
    assert project is not None
    assert project.people == 2


def test_in_a_file(tmp_path: Path) -> None:
    with open_graph(tmp_path / "graph.db") as g:
        fill(g)
        check(g)


def test_on_dynamodb(adjoin_dynamodb: Any) -> None:
    with open_graph(f"dynamodb://{LAYOUT.table}") as g:
        g.create_table()
        fill(g)
        check(g)


def test_both_ends_must_exist() -> None:
    with open_graph(":memory:") as g, pytest.raises(NotFound):
        g.connect(WorksOn, "nobody", "p1", since=date(2026, 1, 1))


def test_the_template_has_the_table_of_these_classes() -> None:
    template = json.loads(Path(__file__).with_name("template.json").read_text())
    assert template == aws.cloudformation(aws.table(MODELS, LAYOUT)), "run: adjoin render cloudformation models.py"
'''

_README = """\
# @TABLE@

```sh
pip install -r requirements.txt
pytest
adjoin put @FILE@ models.py Person id=ann name=Ann
adjoin put @FILE@ models.py Project id=p1 title=Moon
adjoin put @FILE@ models.py WorksOn source=ann target=p1 since=2026-01-01 --connect
adjoin into @FILE@ models.py p1 WorksOn --nodes
adjoin show @FILE@
```

adjoin is in `requirements.txt`. If you work with a checkout of it, install that first: `pip install -e
"PATH/TO/adjoin[dynamodb]"`, and leave its line in `requirements.txt` out.

`models.py` has the classes, `test_models.py` their tests, and `template.json` the table for AWS. After you have changed
the classes, render it again, and deploy it:

```sh
adjoin render cloudformation models.py > template.json
aws cloudformation deploy --template-file template.json --stack-name @STACK@
adjoin copy @FILE@ dynamodb://@TABLE@
```

`adjoin maintain @FILE@ models.py` keeps the number of people of a project up to date.
"""

_REQUIREMENTS = "adjoin[dynamodb]\npytest\n"
_IGNORED = "*.db\n*.db-shm\n*.db-wal\n__pycache__/\n.pytest_cache/\n"
_FILES = {
    "models.py": _MODELS,
    "test_models.py": _TESTS,
    "README.md": _README,
    "requirements.txt": _REQUIREMENTS,
    ".gitignore": _IGNORED,
}
_TEMPLATE = "template.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="the folder of the project, which is new or empty")
    parser.add_argument("--name", metavar="T", help="the table's name (default: made from the name of the folder)")


def run(arguments: argparse.Namespace) -> None:
    folder = Path(arguments.folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise AlreadyExists(f"{folder} exists and is not empty; choose another folder")
    table = arguments.name or _table_name(folder.resolve().name)
    if not re.fullmatch(r"[A-Za-z0-9_.-]{3,255}", table):
        raise InvalidArguments(
            f"{shown(table)} is not the name of a table: 3 to 255 letters, digits, underscores, dots and hyphens; "
            f"choose one with --name"
        )
    parent = folder.resolve().parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=".adjoin-init-") as made:
        whole = Path(made) / "project"
        whole.mkdir()
        _write(whole, table)
        if folder.exists():
            # An empty folder may be the current directory, so it stays, and gets the files.
            for each in sorted(whole.iterdir()):
                shutil.move(each, folder / each.name)
        else:
            whole.rename(folder)
    names = ", ".join([*_FILES, _TEMPLATE])
    print(f"made {arguments.folder} with {names}; README.md says what to run")


def _write(folder: Path, table: str) -> None:
    file = re.sub(r"[^a-z0-9]+", "-", table.lower()).strip("-") or "graph"
    for name, text in _FILES.items():
        written = text.replace("@TABLE@", table).replace("@FILE@", f"{file}.db").replace("@STACK@", file)
        (folder / name).write_text(written, encoding="utf-8")
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        module = imported(str(folder / "models.py"))
    finally:
        sys.dont_write_bytecode = before
    template = aws.cloudformation(aws.table(models_in(module, "MODELS"), layout_in(module, "LAYOUT")))
    (folder / _TEMPLATE).write_text(json.dumps(template, indent=2) + "\n", encoding="utf-8")


def _table_name(folder: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", folder)
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if len(name) >= 3 else f"{name}Graph"


COMMAND = Command(
    "init", "writes a starter project: classes, tests and a template for AWS", add_arguments, run, takes_file=False
)
