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


@pytest.mark.parametrize("after", ["9" * 5000, "9" * 21, "x", b"\xff"])
def test_positions_that_are_none(file: Path, after: str | bytes, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("changes", str(file), "--after", after) == 1
    assert capsys.readouterr().err.startswith("adjoin: ")


@pytest.mark.parametrize("name", [b"\xff.db", b"x" * 300 + b".db", b"", b"no/such/folder.db"])
def test_names_that_cannot_be_a_file(
    file: Path, tmp_path: Path, name: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (("copy", str(file), name), ("show", name)):
        assert run(*arguments) == 1
        assert capsys.readouterr().err.startswith("adjoin: ")
    assert os.listdir(tmp_path) == []


def test_interrupted_while_models_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "interrupted_models.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    assert run("render", "cloudformation", "interrupted_models") == 130
    assert capsys.readouterr().err == ""


def test_nobody_reads_the_output(file: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "adjoin", "show", str(file), "--limit", "1000"]
    found = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(writing)
    assert (found.returncode, found.stderr) == (1, b"")
