"""Exit statuses: 2 for arguments that cannot be read, 1 for what fails while a command works, in every command."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from adjoin import Graph, Node
from adjoin.cli import main

CLASSES = """
from adjoin import Edge, Node
from pydantic import Field

class User(Node):
    id: str
    n: int = Field(1, gt=0)

class Knows(Edge[User, User]):
    since: int = 0
"""

CANNOT_BE_READ = """
nope
show g.db --bad
show g.db --limit x
get g.db classes Usr a
get g.db classes User a b
get g.db classes:nolayout User a
get g.db classes --models nolist User a
get dynamodb://T?regoin=x classes User a
put g.db classes User id=a n=x
put g.db classes User id=a n=0
put g.db classes User id=a nn=1
put g.db classes User id
update g.db classes User a --set nn=1
find g.db classes User "n >"
find g.db classes User "nn > 1"
scan g.db classes User --where "nn > 1"
out g.db classes a Nope
out g.db classes a Knows --where "nn = 1"
walk g.db classes User:a sideways Knows
changes g.db --after zzz
show dynamodb://?region=eu-west-1
copy g.db
copy g.db g.db
import g.db classes User records.csv
import g.db records.csv classes User
import records.csv g.db classes User
export g.db classes records.csv User
render nope classes
init new --name x
serve g.db --port 99999999
""".strip().splitlines()

FAILS = """
show no.db
show g.db --table nope
tables no.db
get no.db classes User a
get g.db nomodule User a
find g.db classes User "n > 1"
copy no.db x.db
import g.db classes no.csv User
render cloudformation nomodule
serve no/g.db --port 0
infer no.db
count no.db classes User
""".strip().splitlines()

FAILS_WHERE_1_IS_A_RESULT = """
verify g.db nomodule
rebuild no.db classes
migrate g.db nomodule
maintain no.db classes --once
""".strip().splitlines()


class Other(Node):
    id: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("statuses")
    (folder / "classes.py").write_text(CLASSES)
    # The table is there, with a record of what this graph declares. The commands find what they need in the module.
    with Graph(folder / "g.db", [Other]):
        pass
    return folder


def status(command: str) -> int:
    try:
        return main(shlex.split(command))
    except SystemExit as error:
        return int(error.code or 0)


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        *((command, 2) for command in CANNOT_BE_READ),
        *((command, 1) for command in FAILS),
        *((command, 2) for command in FAILS_WHERE_1_IS_A_RESULT),
    ],
)
def test_status(
    command: str, wanted: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delitem(sys.modules, "classes", raising=False)
    assert status(command) == wanted
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[-1].startswith("adjoin")
