"""The command line, used as nobody should: one line on stderr and an exit status, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adjoin import Graph
from adjoin.cli import main
from tests.models import ANN, SCHOOL, Student
from tests.waiting import LIMIT


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "school.db"
    with Graph(path, SCHOOL) as graph:
        graph.put_many([ANN, *(Student(id=f"s{number}", name="x" * 500) for number in range(300))])
    return path


def run(*arguments: str | bytes) -> int:
    """In this process, with arguments as Python makes them of what the system passes."""
    try:
        return main([os.fsdecode(each) for each in arguments])
    except SystemExit as error:
        return int(error.code or 0)


@pytest.mark.parametrize("limit", ["0", "x", "9" * 30, "9" * 5000, "١٠" * 9])
def test_limits_that_are_none(file: Path, limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", str(file), "--limit", limit) == 2
    assert "is not a whole number" in capsys.readouterr().err


@pytest.mark.parametrize(("after", "status"), [("9" * 5000, 2), ("9" * 21, 1), ("x", 2), (b"\xff", 2)])
def test_positions_that_are_none(
    file: Path, after: str | bytes, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("changes", str(file), "--after", after) == status
    assert capsys.readouterr().err.startswith("adjoin: ")


@pytest.mark.parametrize(
    ("name", "status"), [(b"\xff.db", 2), (b"x" * 300 + b".db", 1), (b"", 2), (b"no/such/folder.db", 1)]
)
def test_names_that_cannot_be_a_file(
    file: Path,
    tmp_path: Path,
    name: bytes,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, wanted in ((("copy", str(file), name), status), (("show", name), 1)):
        assert run(*arguments) == wanted
        assert capsys.readouterr().err.startswith("adjoin: ")
    assert os.listdir(tmp_path) == []


def test_interrupted_while_models_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "interrupted_models.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    assert run("render", "cloudformation", "interrupted_models") == 130
    assert capsys.readouterr().err == ""


_INTERRUPTING = """
import _signal, os, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            _signal.raise_signal(_signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
"""
_SCRIPT = """
import sys
from adjoin.cli import main
sys.exit(main())
"""


def interrupted_at(module: str, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """How a Python ends that is interrupted while it begins to import a module."""
    (folder / "sitecustomize.py").write_text(_INTERRUPTING)
    paths = os.pathsep.join([str(folder), *sys.path])
    environment = os.environ | {"PYTHONPATH": paths, "INTERRUPTED_AT": module}
    return subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )


@pytest.mark.parametrize("module", ["signal", "adjoin.aggregates", "pydantic", "adjoin.cli", "adjoin.cli.verify"])
def test_interrupted_while_it_is_imported(module: str, tmp_path: Path) -> None:
    script = tmp_path / "adjoin"
    script.write_text(_SCRIPT)
    for command in (["-m", "adjoin"], ["-madjoin"], [str(script)]):
        done = interrupted_at(module, tmp_path, *command, "show", "none.db")
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_interrupts_of_other_programs_are_theirs(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\ntry:\n    from adjoin import Graph\nexcept KeyboardInterrupt:\n    print('theirs', *sys.argv[1:])"
    )
    for command in ([str(program)], ["-m", "program"]):
        done = interrupted_at("adjoin.aggregates", tmp_path, *command, "adjoin")
        assert (done.returncode, done.stdout, done.stderr) == (0, "theirs adjoin\n", "")


def test_nobody_reads_the_output(file: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "adjoin", "show", str(file), "--limit", "1000"]
    found = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(writing)
    assert (found.returncode, found.stderr) == (1, b"")
