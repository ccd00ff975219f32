"""`adjoin migrate` as a process: what it prints, its exit status, and that it goes on after it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import adjoin
from adjoin.errors import TableNotFound
from adjoin.requests import Get, ItemResponse, Put
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item, decode, encode
from tests.waiting import until

FIRST = """
from adjoin import Edge, Node


class Student(Node):
    id: str
    name: str


class Course(Node):
    id: str


class Enrollment(Edge[Student, Course]):
    at: int
"""
SECOND = """
from typing import Annotated
from adjoin import AdjacencyList, Edge, Indexed, MaterializedGraph, Node


class Student(Node):
    id: str
    name: Annotated[str, Indexed()]


class Course(Node):
    id: str


class Enrollment(Edge[Student, Course], order="at"):
    at: int


PLAIN, OTHER = AdjacencyList(), MaterializedGraph(table="Other")
"""
FILL = """
import sys
from adjoin import Graph
from first import Course, Enrollment, Student

number = int(sys.argv[1])
with Graph("old.db?durability=process", [Student, Course, Enrollment]) as g:
    g.put_many(Student(id=f"S{at:06}", name=f"n{at % 7}") for at in range(number))
    g.put(Course(id="C"))
    g.put_many(Enrollment(source=f"S{at:06}", target="C", at=-at) for at in range(number))
"""
COUNT = """
import sys
from adjoin import Graph, field
from second import OTHER, Course, Enrollment, Student

layout = OTHER if sys.argv[2] == "other" else None
with Graph(sys.argv[1], [Student, Course, Enrollment], layout) as g:
    found = list(g.find(Student, field("name") >= "n", order="name"))
    assert [each.name for each in found] == sorted(each.name for each in found)
    edges = list(g.into("C", Enrollment))
    assert [each.at for each in edges] == sorted(each.at for each in edges)
    print(len(found), len(edges))
"""


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(adjoin.__file__).parent.parent)}


class Folder:
    """A folder with two versions of a program."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for name, text in (("first", FIRST), ("second", SECOND), ("fill", FILL), ("count", COUNT)):
            (path / f"{name}.py").write_text(text)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=self.path, capture_output=True, text=True, check=False, timeout=120, env=ENVIRONMENT
        )

    def adjoin(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "adjoin", "migrate", *arguments)

    def count(self, location: str, layout: str = "") -> str:
        done = self.run("count.py", location, layout)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_what_is_due_is_told_done_and_ended(folder: Folder) -> None:
    folder.run("fill.py", "5")
    dry = folder.adjoin("old.db", "second:PLAIN", "--dry-run")
    assert dry.returncode == 1
    assert "stored items of Student may not be indexed by 'name'" in dry.stdout
    assert "migrate: write what items of Student lack (5 items" in dry.stdout
    assert "in all: " in dry.stdout
    done = folder.adjoin("old.db", "second:PLAIN", "--quiet")
    assert done.returncode == 1, done.stderr
    assert "10 completed; run it again with finish" in done.stdout
    assert folder.run("fill.py", "7").returncode == 0, "an older program still writes"
    done = folder.adjoin("old.db", "second:PLAIN", "--finish")
    assert done.returncode == 0
    assert "nothing is due any more" in done.stdout
    assert folder.adjoin("old.db", "second:PLAIN").returncode == 0
    assert folder.count("old.db") == "7 7"


def test_into_another_file(folder: Folder) -> None:
    folder.run("fill.py", "5")
    into = ("--into", "new.db", "second:OTHER")
    dry = folder.adjoin("old.db", "first", *into, "--dry-run")
    assert dry.returncode == 1
    assert "create the table 'Other'" in dry.stdout
    assert not (folder.path / "new.db").exists()
    done = folder.adjoin("old.db", "first", *into)
    assert done.returncode == 1, done.stderr
    assert "11 moved; run it again with finish when no program writes to the old table any more" in done.stdout
    folder.run("fill.py", "8")
    done = folder.adjoin("old.db", "first", *into, "--finish")
    assert done.returncode == 0, done.stderr
    assert "programs may use Other now" in done.stdout
    assert "were written meanwhile" in done.stdout
    assert folder.count("new.db", "other") == "8 8"


def test_a_wrong_command_writes_nothing(folder: Folder) -> None:
    folder.run("fill.py", "1")
    for arguments, message in (
        (("old.db", "first", "--into", ":memory:", "second"), "in memory would be lost"),
        (("old.db", "first", "--into", "new.db", "missing"), "missing"),
        (("nowhere.db", "first", "--into", "new.db", "second"), "nowhere.db"),
    ):
        done = folder.adjoin(*arguments)
        assert done.returncode == 2
        assert message in done.stderr
    assert not (folder.path / "new.db").exists()


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("into", [(), ("--into", "new.db?durability=process", "second:OTHER")])
def test_a_command_that_was_ended_goes_on(folder: Folder, into: tuple[str, ...], ending: signal.Signals) -> None:
    folder.run("fill.py", "3000")
    module, where = ("first", "new.db") if into else ("second:PLAIN", "old.db")
    command = [sys.executable, "-m", "adjoin", "migrate", "old.db?durability=process", module, *into, "--quiet"]
    # With these units it takes some seconds.
    process = subprocess.Popen([*command, "--units", "3000"], cwd=folder.path, env=ENVIRONMENT)
    try:
        until(lambda: process.poll() is not None or _state(folder.path / where, into).get("read", 0) > 0)
    finally:
        os.kill(process.pid, ending)
        process.wait(60)
    assert process.returncode != 0
    assert 0 < _state(folder.path / where, into)["read"] < 6000
    if into and ending == signal.SIGKILL:
        refused = folder.adjoin("old.db?durability=process", module, *into)
        assert refused.returncode == 2
        assert "another run of this migration was at work" in refused.stderr
        _let_a_minute_pass(folder.path / where)
    done = folder.adjoin("old.db?durability=process", module, *into, "--finish", "--quiet")
    assert done.returncode == 0, done.stdout + done.stderr
    assert folder.count(where, "other" if into else "") == "3000 3000"


IN_PLACE: Item = {"PK": {"S": "#=MIGRATE"}, "SK": {"S": "=progress"}}
INTO: Item = {"NodeId": {"S": "#=MIGRATE"}, "TypeTarget": {"S": "=into"}}


def _state(path: Path, into: tuple[str, ...]) -> dict[str, Any]:
    """The stored state of a migration; nothing before it has begun."""
    if not path.exists():
        return {}
    store = SQLiteStore(str(path))
    try:
        (response,) = store.execute([Get("Other", INTO) if into else Get("adjoin", IN_PLACE)])
    except TableNotFound:
        return {}
    finally:
        store.close()
    assert isinstance(response, ItemResponse)
    return {} if response.item is None else dict(decode(response.item["adjoin:migration"]))


def _let_a_minute_pass(path: Path) -> None:
    """A run that was killed counts as stopped after a minute."""
    state = _state(path, ("into",))
    store = SQLiteStore(str(path))
    (response,) = store.execute([Get("Other", INTO)])
    assert isinstance(response, ItemResponse)
    assert response.item is not None
    state["at"] = repr(float(state["at"]) - 120)
    store.execute([Put("Other", response.item | {"adjoin:migration": encode(state)})])
    store.close()
