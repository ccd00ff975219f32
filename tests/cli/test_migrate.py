"""`adjoin migrate` as a process: what it prints, its exit status, and that it goes on after it was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import adjoin as library
from adjoin import Graph, field
from adjoin.errors import TableNotFound
from adjoin.requests import Get, ItemResponse, Put
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item, decode, encode
from pytest_adjoin import DynamoDB
from tests.cli.programs import Ended, adjoin
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
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(library.__file__).parent.parent)}


def program(text: str) -> Any:
    """The module of a program, in this process; classes with parameters are looked for where they say they are."""
    module = ModuleType(__name__)
    # Its annotations are no texts, as those of this file are.
    exec(compile(text, "program", "exec", dont_inherit=True), vars(module))
    return module


class Folder:
    """A folder with two versions of a program."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for name, text in (("first", FIRST), ("second", SECOND)):
            (path / f"{name}.py").write_text(text)

    def migrate(self, *arguments: str) -> Ended:
        return adjoin("migrate", *arguments, folder=self.path)

    def fill(self, number: int) -> None:
        """What programs of the first version write."""
        first = program(FIRST)
        models = [first.Student, first.Course, first.Enrollment]
        with Graph(f"{self.path / 'old.db'}?durability=process", models) as g:
            g.put_many(first.Student(id=f"S{at:06}", name=f"n{at % 7}") for at in range(number))
            g.put(first.Course(id="C"))
            g.put_many(first.Enrollment(source=f"S{at:06}", target="C", at=-at) for at in range(number))

    def count(self, name: str, layout: str = "") -> tuple[int, int]:
        """What a program of the second version finds, of nodes and edges, in their order."""
        second = program(SECOND)
        models = [second.Student, second.Course, second.Enrollment]
        with Graph(self.path / name, models, second.OTHER if layout == "other" else None) as g:
            found = list(g.find(second.Student, field("name") >= "n", order="name"))
            assert [each.name for each in found] == sorted(each.name for each in found)
            edges = list(g.into("C", second.Enrollment))
            assert [each.at for each in edges] == sorted(each.at for each in edges)
            return len(found), len(edges)


THIRD = """
from adjoin import Node


class Student(Node):
    id: str
    name: str
    year: int


def first_year(item):
    return 1900 + len(item["name"])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_new_field_is_filled_by_a_function_of_the_module(folder: Folder) -> None:
    folder.fill(3)
    (folder.path / "third.py").write_text(THIRD)
    fill = ("old.db", "third", "--finish", "--quiet", "--fill")
    assert "--fill takes a field and a function" in folder.migrate(*fill, "Student.year").err
    assert "has no function 'first_yeer'; did you mean" in folder.migrate(*fill, "Student.year=first_yeer").err
    assert "3 completed; nothing is due any more" in folder.migrate(*fill, "Student.year=first_year").out
    with Graph(folder.path / "old.db", [student := program(THIRD).Student]) as g:
        assert {each.year for each in g.scan(student)} == {1902}


def test_what_is_due_is_told_done_and_ended(folder: Folder) -> None:
    folder.fill(5)
    dry = folder.migrate("old.db", "second:PLAIN", "--dry-run")
    assert dry.status == 1
    assert "stored items of Student may not be indexed by 'name'" in dry.out
    assert "migrate: write what items of Student lack (5 items" in dry.out
    assert "in all: " in dry.out
    done = folder.migrate("old.db", "second:PLAIN", "--quiet")
    assert done.status == 1, done.err
    assert "10 completed; run it again with finish" in done.out
    folder.fill(7)  # An older program still writes.
    done = folder.migrate("old.db", "second:PLAIN", "--finish")
    assert done.status == 0
    assert "nothing is due any more" in done.out
    assert folder.migrate("old.db", "second:PLAIN").status == 0
    assert folder.count("old.db") == (7, 7)


def test_the_same_as_json(folder: Folder) -> None:
    folder.fill(2)
    dry = folder.migrate("old.db", "second:PLAIN", "--dry-run", "--json")
    plan = json.loads(dry.out)
    assert (dry.status, plan["due"], plan["exact"], plan["items"]) == (1, True, True, 4)
    assert any(step.startswith("migrate: ") for step in plan["steps"])
    assert plan["rcu"] > 0
    done = folder.migrate("old.db", "second:PLAIN", "--finish", "--json")
    report = json.loads(done.out)
    assert (done.status, report["ended"], report["written"], report["refused"]) == (0, True, 4, [])
    assert json.loads(folder.migrate("old.db", "second:PLAIN", "--dry-run", "--json").out)["due"] is False


def test_into_another_file(folder: Folder) -> None:
    folder.fill(5)
    into = ("--into", "new.db", "second:OTHER")
    dry = folder.migrate("old.db", "first", *into, "--dry-run")
    assert dry.status == 1
    assert "create the table 'Other'" in dry.out
    assert not (folder.path / "new.db").exists()
    done = folder.migrate("old.db", "first", *into)
    assert done.status == 1, done.err
    assert "11 moved; run it again with finish when no program writes to the old table any more" in done.out
    folder.fill(8)
    done = folder.migrate("old.db", "first", *into, "--finish")
    assert done.status == 0, done.err
    assert "programs may use Other now" in done.out
    assert "were written meanwhile" in done.out
    assert folder.count("new.db", "other") == (8, 8)


def test_a_wrong_command_writes_nothing(folder: Folder) -> None:
    folder.fill(1)
    for arguments, message in (
        (("old.db", "first", "--into", ":memory:", "second"), "in memory would be lost"),
        (("old.db", "first", "--into", "new.db", "missing"), "missing"),
        (("nowhere.db", "first", "--into", "new.db", "second"), "nowhere.db"),
    ):
        done = folder.migrate(*arguments)
        assert done.status == 2
        assert message in done.err
    assert not (folder.path / "new.db").exists()


SAVES_OFTEN = """
import sys
from adjoin.cli import main
from adjoin.plans.migrating import moving, passes
moving._SAVE = passes._SAVE = 0.1
sys.exit(main())
"""
"""The command, which stores more often than every two seconds how far it is."""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("into", [(), ("--into", "new.db?durability=process", "second:OTHER")])
def test_a_command_that_was_ended_goes_on(folder: Folder, into: tuple[str, ...], ending: signal.Signals) -> None:
    folder.fill(3000)
    module, where = ("first", "new.db") if into else ("second:PLAIN", "old.db")
    command = [sys.executable, "-c", SAVES_OFTEN, "migrate", "old.db?durability=process", module, *into, "--quiet"]
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
        refused = folder.migrate("old.db?durability=process", module, *into)
        assert refused.status == 2
        assert "another run of this migration was at work" in refused.err
        _let_a_minute_pass(folder.path / where)
    done = folder.migrate("old.db?durability=process", module, *into, "--finish", "--quiet")
    assert done.status == 0, done.out + done.err
    assert folder.count(where, "other" if into else "") == (3000, 3000)


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


def test_a_hint_names_the_command_that_creates_a_table(tmp_path: Path, adjoin_dynamodb: DynamoDB) -> None:
    (tmp_path / "school.py").write_text(FIRST)
    table = f"dynamodb://School?endpoint={adjoin_dynamodb.endpoint}&region={adjoin_dynamodb.region}"
    put = ("put", table, "school.py", "Student", "id=S1", "name=Ann")
    refused = adjoin(*put, folder=tmp_path)
    assert (refused.status, "create it with create_table() or with adjoin migrate" in refused.err) == (1, True)
    assert adjoin("migrate", table, "school.py", "--finish", folder=tmp_path).status == 0
    assert adjoin(*put, folder=tmp_path).status == 0


def test_a_warning_begins_as_an_error_does_and_says_what_to_do(tmp_path: Path) -> None:
    places = "from adjoin import Edge, Node\n\nclass Place(Node):\n    id: str\n\n"
    text = places + "class Road(Edge[Place, Place]{}):\n    year: int\n"
    tmp_path.joinpath("former.py").write_text(text.format(""))
    tmp_path.joinpath("present.py").write_text(text.format(', order="year"'))
    adjoin("put", "roads.db", "former.py", "Road", "source=a", "target=b", "year=2000", folder=tmp_path)
    done = adjoin("scan", "roads.db", "present.py", "Road", folder=tmp_path)
    assert done.status == 0, done
    lines = done.err.splitlines()
    assert lines == sorted({*lines})
    assert lines
    assert all(line.startswith("adjoin: stored items of Road ") and line.endswith("; run migrate") for line in lines)
