"""`adjoin init` writes a project whose tests pass, and `adjoin completion` scripts that a shell completes with."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adjoin.cli import COMMANDS
from tests.cli.programs import ROOT, adjoin
from tests.waiting import LIMIT


def test_the_project_runs(tmp_path: Path) -> None:
    done = adjoin("init", "my-team", folder=tmp_path)
    assert done.status == 0, done.err
    project = tmp_path / "my-team"
    assert sorted(os.listdir(project)) == sorted(
        [".gitignore", "README.md", "models.py", "requirements.txt", "template.json", "test_models.py"]
    )
    assert os.listdir(tmp_path) == ["my-team"]
    template = json.loads((project / "template.json").read_text())
    assert [each["Properties"]["TableName"] for each in template["Resources"].values()] == ["MyTeam"]
    options = ("-q", "-c", os.devnull, "--rootdir", ".", "-W", "error", "-p", "no:cacheprovider", "-p", "pytest_adjoin")
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert "4 passed" in tests.stdout
    # What its page says, too.
    commands = re.findall(r"^adjoin (?:put|into|show|render) .*$", (project / "README.md").read_text(), re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        words = shlex.split(command.partition(" > ")[0])[1:]
        assert adjoin(*words, folder=project).status == 0, command


def test_an_empty_folder_is_filled_and_another_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    assert adjoin("init", ".", "--name", "Team", folder=tmp_path / "here").status == 0
    assert 'table="Team"' in (tmp_path / "here" / "models.py").read_text()
    before = (tmp_path / "here" / "models.py").stat().st_mtime_ns
    again = adjoin("init", "here", folder=tmp_path)
    assert (again.status, again.out) == (1, "")
    assert again.err == "adjoin: here exists and is not empty; choose another folder\n"
    assert (tmp_path / "here" / "models.py").stat().st_mtime_ns == before
    bad = adjoin("init", "there", "--name", "a b", folder=tmp_path)
    assert bad.status == 2
    assert "'a b' is not the name of a table" in bad.err
    assert os.listdir(tmp_path) == ["here"]


# --- completion --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    (folder / "adjoin.bash").write_text(adjoin("completion", "bash", folder=folder).out)
    return folder / "adjoin.bash"


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("adjoin sho", ["show", "shortest-path"]),
        ("adjoin imp", ["import"]),
        ("adjoin show x.db --li", ["--limit"]),
        ("adjoin delete x.db m C 1 --edges ", ["all", "found"]),
        ("adjoin render ter", ["terraform"]),
        ("adjoin explain wa", ["walk"]),
        ("adjoin explain walk x.db m 1 --wh", ["--what"]),
        ("adjoin explain walk x.db m 1 out K --what pa", ["paths"]),
        ("adjoin completion z", ["zsh"]),
        ("adjoin show ", []),
    ],
)
def test_bash_completes(script: Path, line: str, completed: list[str]) -> None:
    words = [*line.split(), ""] if line.endswith(" ") else line.split()
    array = " ".join(map(shlex.quote, words))
    program = f"source {script}; COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; _adjoin; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert (done.stdout.split(), done.stderr) == (completed, "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
def test_fish_completes(tmp_path: Path) -> None:
    (tmp_path / "adjoin.fish").write_text(adjoin("completion", "fish", folder=tmp_path).out)
    program = "source adjoin.fish; complete -C 'adjoin sho'; complete -C 'adjoin explain walk x.db m 1 out K --what pa'"
    done = subprocess.run(["fish", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT)
    words = [line.partition("\t")[0] for line in done.stdout.splitlines()]
    assert (sorted(words), done.stderr) == (["paths", "shortest-path", "show"], "")


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
def test_zsh_completes(tmp_path: Path) -> None:
    """Zsh completes only what is typed at a terminal."""
    (tmp_path / "adjoin.zsh").write_text(adjoin("completion", "zsh", folder=tmp_path).out)
    ours, its = os.openpty()
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"],
        cwd=tmp_path,
        env={**os.environ, "TERM": "dumb", "HOME": str(tmp_path), "ZDOTDIR": str(tmp_path)},
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
    )
    os.close(its)

    def shown(until: str) -> str:
        text = ""
        limit = time.monotonic() + LIMIT
        while until not in text and time.monotonic() < limit:
            if select.select([ours], [], [], 0.5)[0]:
                text += os.read(ours, 4096).decode(errors="replace")
        return text

    try:
        os.write(ours, b"source adjoin.zsh; PS1=re''ady\n")
        assert "ready" in shown("ready")
        os.write(ours, b"adjoin explain walk x.db m 1 out K --what pa\t")
        assert "--what paths" in shown("paths")
        os.write(ours, b"\x15adjoin sho\t\t")
        assert "shortest-path" in shown("show\r")
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_name_all_commands_and_are_valid(shell: str, tmp_path: Path) -> None:
    done = adjoin("completion", shell, folder=tmp_path)
    assert done.status == 0
    for command in COMMANDS:
        assert re.search(rf"\b{command.name}\b", done.out)
    if shutil.which(shell) is not None:
        checked = subprocess.run([shell, "-n"], input=done.out, capture_output=True, text=True, timeout=LIMIT)
        assert (checked.returncode, checked.stderr) == (0, "")
