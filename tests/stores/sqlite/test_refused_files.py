"""Files that the embedded store refuses to open, and what it says of them."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from adjoin.errors import AdjoinError, FileFromTheFuture, FileNotWritable, InvalidLocation, NotAnAdjoinFile
from adjoin.stores.sqlite import SQLiteStore
from adjoin.stores.sqlite.file import FORMAT_VERSION
from tests.stores.sqlite.files import header, make
from tests.waiting import LIMIT


def foreign_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t(x)")
    connection.commit()
    connection.close()


def foreign_application(path: Path) -> None:
    foreign_database(path)
    with apsw.Connection(str(path)) as connection:
        connection.pragma("application_id", 42)
    connection.close()


def newer_format(path: Path) -> None:
    make(path)
    with apsw.Connection(str(path)) as connection:
        connection.pragma("user_version", FORMAT_VERSION + 1)
    connection.close()


REFUSED: dict[str, tuple[Callable[[Path], Any], type[AdjoinError], str]] = {
    "text": (lambda path: path.write_text("these are notes\n" * 20), NotAnAdjoinFile, "is not an adjoin file"),
    "short": (lambda path: path.write_bytes(b"SQLite format 3\0"), NotAnAdjoinFile, "is not an adjoin file"),
    "one byte": (lambda path: path.write_bytes(b"\0"), NotAnAdjoinFile, "is not an adjoin file"),
    "database": (foreign_database, NotAnAdjoinFile, "is a SQLite database of another program"),
    "application": (foreign_application, NotAnAdjoinFile, "is a SQLite database of another program"),
    "future": (newer_format, FileFromTheFuture, "has format version 3, but this adjoin knows versions up to 2"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_ours_is_left_untouched(path: Path, what: str) -> None:
    prepare, error, message = REFUSED[what]
    prepare(path)
    os.utime(path, ns=(1_000_000_000, 2_000_000_000))
    before = path.read_bytes(), path.stat().st_mtime_ns, sorted(path.parent.iterdir())
    with pytest.raises(error, match=message):
        SQLiteStore(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns, sorted(path.parent.iterdir())) == before


def test_a_version_that_lies_in_the_wal_is_seen(path: Path) -> None:
    make(path)
    newer = apsw.Connection(str(path))
    newer.pragma("user_version", FORMAT_VERSION + 1)
    assert int.from_bytes(header(path)[60:64], "big") == FORMAT_VERSION
    with pytest.raises(FileFromTheFuture):
        SQLiteStore(path)
    newer.close()


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotAnAdjoinFile, match="is a directory; name a file in it"):
        SQLiteStore(tmp_path)


def test_a_directory_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotWritable, match=r"there is no directory .*nowhere to hold graph.db; create it first"):
        SQLiteStore(tmp_path / "nowhere" / "graph.db")


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(InvalidLocation, match="is not the name of a file"):
        SQLiteStore(name)


def opened_without_rights(path: Path) -> str:
    """What an unprivileged user is told who opens the file."""
    # Imported before the rights are dropped: the interpreter itself may lie where they do not reach.
    program = (
        "import os, sys\n"
        "from adjoin.stores.sqlite import SQLiteStore\n"
        "SQLiteStore(':memory:').close()\n"
        "if os.getuid() == 0:\n"
        "    os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try:\n"
        "    SQLiteStore(sys.argv[1])\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    result = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=LIMIT)
    if "os.set" in result.stderr:
        pytest.skip("rights cannot be dropped here: " + result.stderr.splitlines()[-1])
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that other users can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder
        folder.chmod(0o777)


def test_a_directory_that_cannot_be_written(public: Path) -> None:
    public.chmod(0o555)
    told = opened_without_rights(public / "graph.db")
    assert told.startswith(f"FileNotWritable the directory {public} cannot be written")
    assert list(public.iterdir()) == []


def test_a_file_in_a_directory_that_cannot_be_written(public: Path) -> None:
    make(public / "graph.db")
    (public / "graph.db").chmod(0o666)
    public.chmod(0o555)
    told = opened_without_rights(public / "graph.db")
    assert told.startswith(f"FileNotWritable the directory {public} cannot be written, and graph.db needs")
    assert [each.name for each in public.iterdir()] == ["graph.db"]


def test_a_file_that_cannot_be_written(public: Path) -> None:
    make(public / "graph.db")
    (public / "graph.db").chmod(0o444)
    told = opened_without_rights(public / "graph.db")
    assert told.startswith(f"FileNotWritable the file {public / 'graph.db'} cannot be written")
    assert [each.name for each in public.iterdir()] == ["graph.db"]


def test_a_file_that_cannot_be_read(public: Path) -> None:
    make(public / "graph.db")
    (public / "graph.db").chmod(0o000)
    told = opened_without_rights(public / "graph.db")
    assert told.startswith(f"FileNotWritable the file {public / 'graph.db'} cannot be read")
