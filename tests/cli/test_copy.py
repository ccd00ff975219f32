"""`adjoin copy` on real files: what it prints, what it refuses, and that it goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from adjoin.cli import main
from adjoin.requests import ListTables, Put, TablesResponse
from adjoin.stores.sqlite import SQLiteStore
from tests.copying.examples import FULL, KINDS, assert_same, copied_by, filled, many
from tests.copying.saving_copy import HALT_AFTER
from tests.stores.examples import PLAIN, item, one


@pytest.fixture
def two(tmp_path: Path) -> str:
    """A file with two tables."""
    path = str(tmp_path / "two.db")
    store = SQLiteStore(path, durability="process")
    filled(store, FULL, [item("p", kind, **attributes) for kind, attributes in KINDS.items() if "last" not in kind])
    filled(store, replace(PLAIN, stream=False), many(30, 100))
    store.close()
    return path


def assert_copied(source: str, destination: str, table: str, to: str | None = None) -> None:
    ours, theirs = SQLiteStore(source), SQLiteStore(destination)
    assert_same(ours, theirs, table, to)
    ours.close()
    theirs.close()


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_table_to_a_new_file(two: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = str(tmp_path / "new.db")
    assert main(["copy", two, to, "--table", "Full", "--verify"]) == 0
    shown = capsys.readouterr()
    copied, verified = shown.out.splitlines()
    assert copied.startswith(f"table Full: copied to {to}: 8 items, ")
    assert copied.endswith(" write units, less than $0.01 on demand")
    assert verified == "table Full: verified, 8 items on both sides"
    assert shown.err == ""
    assert_copied(two, to, "Full")
    assert files(tmp_path) == {"two.db", "new.db"}


def test_under_another_name_and_without_changes(two: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["copy", two, f"{two}?durability=process", "--table", "Plain", "--to", "Twin", "--segments", "3"]) == 0
    copied, changes = capsys.readouterr().out.splitlines()
    assert f"copied to {two}?durability=process as Twin: 30 items" in copied
    assert changes == "table Plain: it keeps no changes, so changes made during the copy are not included"
    assert_copied(two, two, "Plain", "Twin")


def test_a_copy_twice(two: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["copy", two, str(tmp_path / "new.db"), "--table", "Plain"]
    assert main(arguments) == 0
    assert main(arguments) == 1
    assert "already has items" in capsys.readouterr().err
    assert main([*arguments, "--overwrite"]) == 0
    assert_copied(two, str(tmp_path / "new.db"), "Plain")


def test_a_difference_is_an_error(two: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = tmp_path / "new.db"
    store = SQLiteStore(to)
    filled(store, PLAIN, [item("else", "x")])
    store.close()
    assert main(["copy", two, str(to), "--table", "Plain", "--overwrite", "--verify"]) == 1
    shown = capsys.readouterr()
    assert "30 items" in shown.out
    assert "'Plain' at the destination holds 31 items, and the table 'Plain' at the source holds 30" in shown.err


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_and_run_again(tmp_path: Path, how: signal.Signals) -> None:
    path, to = tmp_path / "from.db", tmp_path / "to.db"
    store = SQLiteStore(path, durability="process")
    filled(store, PLAIN, many(5_000, 50))
    command = [sys.executable, "-m", "tests.copying.saving_copy", str(path), str(to)]
    environment = {**os.environ, HALT_AFTER: "3"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as running:
        os.waitid(os.P_PID, running.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        states = [state for state in tmp_path.glob("from.db.copy-*.json") if copied_by(state) > 0]
        running.send_signal(how)
        running.send_signal(signal.SIGCONT)
        out, errors = running.communicate()
    assert out == ""
    if how is signal.SIGINT:
        assert running.returncode == 130
        assert errors == "adjoin: the copy is unfinished; run the same command again to continue it\n"
    store.execute([Put("Plain", item("new", "x"))])
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"adjoin: continuing the copy whose progress is in {states[0]}" in done.stderr
    assert "table Plain: including 1 change made during the copy" in done.stdout
    assert files(tmp_path) >= {"from.db", "to.db"}
    assert not list(tmp_path.glob("*.json*"))
    store.close()
    assert_copied(str(path), str(to), "Plain")


def test_a_copy_that_could_not_say_that_it_is_finished_is_run_again(tmp_path: Path) -> None:
    path, to = tmp_path / "from.db", tmp_path / "to.db"
    store = SQLiteStore(path, durability="process")
    filled(store, PLAIN, many(20, 50))
    store.close()
    command = [sys.executable, "-m", "adjoin", "copy", str(path), str(to), "--quiet"]
    reading, writing = os.pipe()
    os.close(reading)
    unheard = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert unheard.returncode == 1
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "table Plain: copied to" in done.stdout
    assert not list(tmp_path.glob("*.json*"))
    assert_copied(str(path), str(to), "Plain")


# --- what goes wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["{folder}/none.db", "{folder}/new.db"], 1, "none.db does not exist; check the name"),
        (["{two}", "{folder}/new.db"], 1, "several tables: Full, Plain; choose one with --table"),
        (["{two}", "{folder}/new.db", "--table", "Pain"], 1, "did you mean 'Plain'?"),
        (["{two}", "{folder}/../{name}/two.db", "--table", "Plain"], 2, "the same table 'Plain'; choose another name"),
        (["{two}", ":memory:", "--table", "Plain"], 2, "lost when the command ends"),
        (["{two}", "{folder}/text", "--table", "Plain"], 1, "not an adjoin file"),
        (["{two}", "{folder}/new.db?speed=1", "--table", "Plain"], 2, "a file has no option 'speed'"),
        (["{two}", "{folder}/new.db", "--table", "Plain", "--state", "{folder}/text"], 1, "is not the state of a copy"),
        (["dynamodb://?endpoint=http://127.0.0.1:1", "{folder}/new.db"], 2, "names no table"),
        (
            ["{two}", "dynamodb://Plain?endpoint=http://127.0.0.1:1", "--table", "Plain", "--to", "X"],
            2,
            "leave one of them",
        ),
    ],
)
def test_errors_are_one_line_and_leave_nothing(
    two: str, tmp_path: Path, arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("something else " * 20)
    before = files(tmp_path)
    places = {"two": two, "folder": tmp_path, "name": tmp_path.name}
    assert main(["copy", *(each.format(**places) for each in arguments)]) == status
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("adjoin: ")
    assert shown.err.count("\n") == 1
    assert message in shown.err
    assert files(tmp_path) == before


def test_a_state_that_cannot_be_kept_stops_the_copy_before_it_writes(
    two: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = str(tmp_path / "new.db")
    assert main(["copy", two, to, "--table", "Plain", "--state", str(tmp_path / "none" / "state")]) == 1
    assert "choose another --state" in capsys.readouterr().err
    store = SQLiteStore(to)
    assert one(store, ListTables(), TablesResponse).names == ()
    store.close()


def test_a_table_that_cannot_be_made_leaves_no_state(
    two: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["copy", two, str(tmp_path / "new.db"), "--table", "Plain", "--to", "x"]) == 1
    assert capsys.readouterr().err == (
        "adjoin: the table x cannot be created: 'x' is not a name of 3 to 255 letters, digits, underscores, dots and"
        " hyphens\n"
    )
    assert files(tmp_path) == {"two.db", "new.db"}


def test_a_state_of_another_copy(two: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "state.json"
    state.write_text("{}")
    arguments = ["copy", two, str(tmp_path / "new.db"), "--table", "Plain", "--state", str(state)]
    assert main(arguments) == 1
    assert state.read_text() == "{}"
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("arguments", [[], ["x"], ["x", "y", "--segments", "0"], ["x", "y", "--segments", "many"]])
def test_arguments_that_cannot_be_understood(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["copy", *arguments])
    assert stopped.value.code == 2
    assert "usage: adjoin copy" in capsys.readouterr().err
