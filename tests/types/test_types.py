"""Pyright and mypy over programs that are right, and over programs with a wrong line each.

Each checker runs once, over all programs together: both take longer to begin than to check one more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.servers.install import COMMAND, pyright_command
from tests.types.wrong_programs import BEGINNING, MISSPELT, WRONG, Wrong

ROOT = Path(__file__).resolve().parent.parent.parent
RIGHT = (ROOT / "examples" / "library_service.py", ROOT / "tests" / "types" / "right.py")
Found = Mapping[str, list[tuple[int, str]]]
"""What a checker says: by the name of a file, lines with "rule: message"."""

ALL = [pytest.param(number, each, id=each.what) for number, each in enumerate(WRONG)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("programs")
    for number, each in enumerate(WRONG):
        (made / f"wrong_{number}.py").write_text(BEGINNING + each.program)
    lines = RIGHT[0].read_text().splitlines()
    for known, name, misspelt, _ in MISSPELT:
        place = _line_of(lines, known)
        assert name in lines[place]
        lines[place] = lines[place].replace(name, misspelt)
    (made / "misspelt_service.py").write_text("\n".join(lines))
    return made


@pytest.fixture(scope="module")
def by_pyright(folder: Path) -> Found:
    command = pyright_command()
    if command is None:
        pytest.skip(f"pyright is not installed; run {COMMAND}")
    config = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "include": [".", *(os.path.relpath(each, folder) for each in RIGHT)],
        "extraPaths": [str(ROOT / "src"), str(ROOT)],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    done = _run([*command, "--outputjson", "--pythonpath", sys.executable, "--project", str(folder)], folder)
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for each in json.loads(done)["generalDiagnostics"]:
        line = each["range"]["start"]["line"] + 1
        found[Path(each["file"]).name].append((line, f"{each.get('rule')}: {each['message']}"))
    return found


@pytest.fixture(scope="module")
def by_mypy(folder: Path) -> Found:
    """What mypy says, with the settings and the cache of the project."""
    programs = [str(each) for each in (*sorted(folder.glob("*.py")), *RIGHT)]
    done = _run([sys.executable, "-m", "mypy", "--output=json", *programs], ROOT, MYPYPATH=str(folder))
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for line in done.splitlines():
        each = json.loads(line)
        found[Path(each["file"]).name].append((each["line"], f"{each['code']}: {each['message']}"))
    return found


def _line_of(lines: list[str], text: str) -> int:
    (place,) = [place for place, line in enumerate(lines) if text in line]
    return place


def _run(command: list[str], where: Path, **environment: str) -> str:
    done = subprocess.run(command, cwd=where, env={**os.environ, **environment}, capture_output=True, text=True)
    # 1: there are errors.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


def test_there_are_at_least_twenty_wrong_programs() -> None:
    assert len(WRONG) >= 20
    assert all(each.program.count("# wrong\n") == 1 for each in WRONG)
    assert all(each.mypy for each in WRONG)
    assert sum(each.pyright is not None for each in WRONG) >= 20


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.name)
def test_pyright_accepts_what_is_right(by_pyright: Found, path: Path) -> None:
    assert by_pyright.get(path.name, []) == []


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.name)
def test_mypy_accepts_what_is_right(by_mypy: Found, path: Path) -> None:
    assert by_mypy.get(path.name, []) == []


@pytest.mark.parametrize(("number", "wrong"), ALL)
def test_pyright_finds_what_is_wrong(by_pyright: Found, number: int, wrong: Wrong) -> None:
    _assert_found(by_pyright, number, wrong, wrong.pyright)


@pytest.mark.parametrize(("number", "wrong"), ALL)
def test_mypy_finds_what_is_wrong(by_mypy: Found, number: int, wrong: Wrong) -> None:
    _assert_found(by_mypy, number, wrong, wrong.mypy)


def _assert_found(found: Found, number: int, wrong: Wrong, expected: str | None) -> None:
    """The one wrong line is found for the right reason, and no other line is."""
    lines = (BEGINNING + wrong.program).splitlines()
    (line,) = [place for place, text in enumerate(lines, 1) if text.endswith("# wrong")]
    said = found.get(f"wrong_{number}.py", [])
    if expected is None:
        assert said == []
        return
    assert {place for place, _ in said} == {line}, said
    rule, _, part = expected.partition(": ")
    assert any(text.startswith(f"{rule}: ") and part in text for _, text in said), said


def test_fields_of_the_sample_application_that_are_misspelt(by_pyright: Found, by_mypy: Found) -> None:
    """All are found by mypy, and by pyright all but keywords. A line may also be wrong because of another one."""
    lines = RIGHT[0].read_text().splitlines()
    places = {_line_of(lines, known) + 1: seen for known, _, _, seen in MISSPELT}
    assert len(places) == len(MISSPELT)
    mypy, pyright = ({line for line, _ in each["misspelt_service.py"]} for each in (by_mypy, by_pyright))
    assert mypy & set(places) == set(places)
    assert pyright & set(places) == {line for line, seen in places.items() if seen}
    assert (len(places), sum(places.values())) == (22, 13)
