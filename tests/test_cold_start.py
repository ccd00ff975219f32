"""What a new process imports before its first answer, which is most of the time that it takes.

No clock: the modules that are there after `import adjoin`, and after a graph was opened and a node read. A module that
is imported too early shows here by its name.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import adjoin
from adjoin import Edge, Graph, Node, serve
from adjoin.late import later

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = """
import sys
{first}
print("\\n".join(sorted(sys.modules)))
"""
GET = """
from adjoin import Edge, Graph, Node

class Student(Node):
    id: str
    name: str

class Course(Node):
    id: str

class Enrollment(Edge[Student, Course]):
    grade: str

with Graph({location!r}, [Student, Course, Enrollment]) as g:
    assert g.get(Student, "S1").name == "Ann"
"""


class Student(Node):
    id: str
    name: str


class Course(Node):
    id: str


class Enrollment(Edge[Student, Course]):
    grade: str


def modules_after(first: str) -> set[str]:
    """The modules that a new process has imported after a program, with credentials in its environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    kept |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-west-1"}
    kept |= {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    kept["PYTHONPATH"] = str(ROOT / "src")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(first=first)], capture_output=True, text=True, check=True, env=kept
    )
    return set(done.stdout.split())


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "adjoin"}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cold") / "school.db"
    with Graph(path, [Student, Course, Enrollment]) as g:
        g.put(Student(id="S1", name="Ann"))
    return path


@pytest.fixture(scope="module")
def on_dynamodb(file: Path) -> Iterator[set[str]]:
    with serve(file, port=0) as server:
        yield modules_after(GET.format(location=f"dynamodb://adjoin?endpoint={server.endpoint}"))


def test_importing_adjoin_imports_none_of_it() -> None:
    modules = modules_after("import adjoin")
    assert ours(modules) == {"adjoin", "adjoin.beginning"}
    assert not modules & {"pydantic", "asyncio", "orjson"}


def test_a_get_on_dynamodb_imports_what_it_needs(on_dynamodb: set[str]) -> None:
    assert not on_dynamodb & {"botocore", "boto3", "aiohttp", "urllib3", "apsw", "ctypes", "html", "difflib"}
    unwanted = {
        f"adjoin.{name}"
        for name in (
            "aws", "async_graph", "batch", "batch.calls", "collecting", "copying", "cost", "drawings", "evaluate",
            "notebooks", "queries", "scans", "searches", "server", "snapshots", "snapshots.calls", "stores.sqlite",
            "stores.dynamodb.streams", "walk_steps", "walks", "plans.deletion", "plans.find", "plans.maintenance",
            "plans.counting", "plans.migrating", "plans.transaction", "plans.update", "plans.walk", "plans.write",
        )
    }  # fmt: skip
    assert not on_dynamodb & unwanted
    # Of more than 340. Each takes a third of a millisecond, also if there is little in it.
    assert len(ours(on_dynamodb)) <= 88


def test_a_get_in_a_file_needs_nothing_of_the_network(file: Path) -> None:
    modules = modules_after(GET.format(location=str(file)))
    assert "apsw" in modules
    assert not modules & {"adjoin.stores.dynamodb", "httptools", "botocore", "aiohttp"}


# --- names that are imported when they are used ------------------------------------------------


def test_every_public_name_is_there() -> None:
    of_extras = {"AsyncSnapshot", "Audit", "Finding", "Rebuilt", "Snapshot"}
    assert {*adjoin.__all__, *of_extras} == set(adjoin._MODULE_OF)
    for name in adjoin._MODULE_OF:
        found = getattr(adjoin, name)
        assert getattr(found, "__module__", "").partition(".")[0] == "adjoin"
        assert name in vars(adjoin)
    assert set(adjoin._MODULE_OF) <= set(dir(adjoin))
    with pytest.raises(AttributeError, match="module 'adjoin' has no attribute 'Grpah'"):
        adjoin.Grpah  # noqa: B018


@pytest.mark.parametrize(
    "program",
    [
        "from adjoin import *; assert Graph and NotFound and Path",
        "import sys; sys.modules |= dict.fromkeys(('ibis', 'numpy', 'numba', 'botocore', 'uvloop')); "
        "from adjoin import *; assert Graph and serve",
        "import adjoin, adjoin.errors; assert adjoin.Graph is adjoin.graph.Graph; assert not hasattr(adjoin, 'no')",
        "from adjoin import Path, WalkResult; assert Path.__name__ == 'WalkPath'",
    ],
)
def test_ways_to_import(program: str) -> None:
    assert "adjoin.graph" in modules_after(program) or "Path" in program


def test_errors_can_be_pickled_where_nothing_is_imported_yet() -> None:
    error = pickle.dumps(adjoin.NotFound("gone"))
    modules = modules_after(f"import pickle; assert type(pickle.loads({error!r})).__name__ == 'NotFound'")
    assert "adjoin.errors" in modules


def test_a_late_import_takes_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "found_late.py").write_text("import sys\nanswer = 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    globals()["found_late"] = later("found_late")
    assert "found_late" not in sys.modules
    assert repr(globals()["found_late"]) == "<module 'found_late', imported when it is used>"
    assert globals()["found_late"].answer == 42
    assert globals()["found_late"] is sys.modules["found_late"]
    with pytest.raises(AttributeError, match="no attribute 'question'"):
        globals()["found_late"].question  # noqa: B018
    del sys.modules["found_late"], globals()["found_late"]


def test_a_late_import_of_what_is_not_there() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        later("no_such_module").anything  # noqa: B018
