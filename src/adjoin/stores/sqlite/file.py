"""The file: how it is created and recognised, and what can be wrong with it.

An adjoin file is a SQLite database with its own application id; the user version is the version of the format. The
transaction that creates the file writes both while the file still has a rollback journal, so that its first 100 bytes
always identify it. Any other file, and a file of a newer adjoin, is refused by these bytes alone, before SQLite touches
it.

Nothing here knows tables or items. `docs/file-format.md` specifies the format that this module keeps.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

import apsw

from adjoin.errors import (
    AdjoinError,
    FileBusy,
    FileDamaged,
    FileFromTheFuture,
    FileNotWritable,
    InvalidLocation,
    NotAnAdjoinFile,
    shown,
)

Durability: TypeAlias = Literal["power", "process"]

APPLICATION_ID = 0x61646A6E
"""The letters "adjn"."""
FORMAT_VERSION = 2
"""Files of version 1, which has no sums, are read and written as they are."""
MEMORY = ":memory:"

_MAGIC = b"SQLite format 3\0"
_HEADER_SIZE = 100
# With larger pages, reads of 10,000,000 items take the same time, and small writes take longer.
_PAGE_SIZE = 4096
_CACHE_KB = 8192
# Four times SQLite's default, so that pages which change often are copied into the file less often.
CHECKPOINT_PAGES = 4000
_STATEMENTS = 500
_SYNCHRONOUS: dict[Durability, str] = {"power": "FULL", "process": "NORMAL"}

_SCHEMA = """
CREATE TABLE adjoin_tables(
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, definition TEXT NOT NULL,
    storage TEXT NOT NULL, history TEXT NOT NULL, sum INTEGER
);
CREATE TABLE adjoin_tokens(
    token TEXT PRIMARY KEY, at REAL NOT NULL, request BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX adjoin_tokens_at ON adjoin_tokens(at);
"""


def located(path: str | os.PathLike[str]) -> str:
    """The path of a file that stays the same if the process changes its working directory, or others change a link.

    SQLite keeps the -wal and -shm files beside the file that a link leads to.
    """
    name = os.fspath(path)
    is_file = isinstance(name, str) and name not in ("", MEMORY) and "\0" not in name
    try:
        return os.path.realpath(name) if is_file else name
    except FileNotFoundError:
        raise FileNotWritable(
            f"there is no directory to hold {name}, because the working directory was removed; change to another one"
        ) from None


def open_file(path: str, durability: Durability, patience: float) -> apsw.Connection:
    """A connection to the adjoin file at `path`, which is created if it does not exist.

    `patience` is for how many seconds to wait for another process that has locked the file.
    """
    if durability not in _SYNCHRONOUS:
        raise InvalidLocation(f"durability is {durability!r}; it can be 'power' or 'process'")
    try:
        if path != MEMORY:
            _inspect(path)
        return _connect(path, durability, patience)
    except apsw.Error as error:
        raise file_error(error, path) from error


def _connect(path: str, durability: Durability, patience: float) -> apsw.Connection:
    connection = apsw.Connection(path, statementcachesize=_STATEMENTS)
    try:
        connection.set_busy_handler(_patient(patience))
        connection.pragma("synchronous", _SYNCHRONOUS[durability])
        # On macOS, only a full fsync reaches the disk itself.
        connection.pragma("fullfsync", durability == "power")
        connection.pragma("cache_size", -_CACHE_KB)
        connection.pragma("temp_store", "memory")
        connection.pragma("trusted_schema", False)
        # Without this, SQLite plans a query again whenever its LIMIT is bound, which takes longer than to run it.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.pragma("journal_size_limit", 64 << 20)
        connection.wal_autocheckpoint(CHECKPOINT_PAGES)
        if not _recognised(connection, path):
            _create(connection)
            _require_adjoin(connection, path)
        if path != MEMORY:
            _switch_to_wal(connection, patience)
            # The first read creates the -wal and -shm files.
            connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
    except BaseException:
        connection.close(True)
        raise
    return connection


# --- recognising -------------------------------------------------------------------------------


def _inspect(path: str) -> None:
    """Refuses a path that is not an adjoin file, or cannot become one, without touching it."""
    file = Path(path)
    if not path or "\0" in path:
        raise InvalidLocation(f"{path!r} is not the name of a file")
    try:
        is_folder = file.is_dir()
    except OSError as error:
        raise InvalidLocation(f"{shown(path)} cannot name a file: {error.strerror}; choose another name") from error
    if is_folder:
        raise NotAnAdjoinFile(f"{path} is a directory; name a file in it")
    folder = file.absolute().parent
    if not folder.is_dir():
        raise FileNotWritable(f"there is no directory {folder} to hold {file.name}; create it first")
    header = _header(path) if file.exists() else b""
    if header:
        _check_header(header, path)
    if file.exists() and not os.access(path, os.W_OK):
        raise FileNotWritable(f"the file {path} cannot be written; change its permissions")
    if not os.access(folder, os.W_OK):
        raise FileNotWritable(
            f"the directory {folder} cannot be written, and {file.name} needs its -wal and -shm files"
            " beside it; change its permissions"
        )


def _header(path: str) -> bytes:
    """The first bytes of a file, read through SQLite.

    To open and close the file in another way would drop all locks that other connections of this process have on it.
    Another process could then remove the WAL to which they write.
    """
    size = os.path.getsize(path)
    if size < _HEADER_SIZE:
        return bytes(size)
    try:
        file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    except apsw.Error as error:
        raise FileNotWritable(f"the file {path} cannot be read; change its permissions") from error
    try:
        return file.xRead(_HEADER_SIZE, 0)
    finally:
        file.xClose()


def _check_header(header: bytes, path: str) -> None:
    # Offsets are those of SQLite's database header: user version at 60, application id at 68.
    if len(header) < _HEADER_SIZE or not header.startswith(_MAGIC):
        raise NotAnAdjoinFile(f"{path} is not an adjoin file, and was left as it is; choose another name")
    _check_marks(int.from_bytes(header[68:72], "big"), int.from_bytes(header[60:64], "big"), path)


def _check_marks(application: int, version: int, path: str) -> None:
    if application != APPLICATION_ID or version < 1:
        raise NotAnAdjoinFile(
            f"{path} is a SQLite database of another program, and was left as it is; choose another name"
        )
    if version > FORMAT_VERSION:
        raise FileFromTheFuture(
            f"{path} has format version {version}, but this adjoin knows versions up to {FORMAT_VERSION};"
            " upgrade adjoin to open it"
        )


def _recognised(connection: apsw.Connection, path: str) -> bool:
    """Whether the database is already an adjoin file; False if it is empty."""
    if connection.execute("SELECT 1 FROM sqlite_schema").fetchall():
        _require_adjoin(connection, path)
        return True
    return False


def _require_adjoin(connection: apsw.Connection, path: str) -> None:
    _check_marks(connection.pragma("application_id"), connection.pragma("user_version"), path)


# --- creating ----------------------------------------------------------------------------------


def _create(connection: apsw.Connection) -> None:
    connection.pragma("page_size", _PAGE_SIZE)
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Of several processes that find the file empty, the first to get here creates it.
        if not connection.execute("SELECT 1 FROM sqlite_schema").fetchall():
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", FORMAT_VERSION)
            connection.execute(_SCHEMA).fetchall()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _switch_to_wal(connection: apsw.Connection, patience: float) -> None:
    deadline = time.monotonic() + patience
    while connection.pragma("journal_mode") != "wal":
        try:
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            # SQLite does not call the busy handler here, because it would wait for a lock while holding one.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.001)


def _patient(patience: float) -> Callable[[int], bool]:
    started = 0.0

    def wait(attempts: int) -> bool:
        # A write takes well under a millisecond, but SQLite's own handler sleeps whole milliseconds.
        nonlocal started
        if attempts == 0:
            started = time.monotonic()
        elif time.monotonic() - started > patience:
            return False
        time.sleep(0.0001 * 1.3 ** min(attempts, 20))
        return True

    return wait


# --- what SQLite reports -----------------------------------------------------------------------

_CAUSES: dict[type[apsw.Error], tuple[type[AdjoinError], str]] = {
    apsw.BusyError: (FileBusy, "another process held the file for too long; try again"),
    apsw.LockedError: (FileBusy, "another connection held the file for too long; try again"),
    apsw.CorruptError: (FileDamaged, "its content is broken; restore it from a backup"),
    apsw.NotADBError: (FileDamaged, "its content is broken; restore it from a backup"),
    apsw.FullError: (FileNotWritable, "the disk is full; make room and try again"),
    apsw.ReadOnlyError: (FileNotWritable, "it cannot be written; change its permissions"),
    apsw.CantOpenError: (
        FileNotWritable,
        "it, or its -wal or -shm file, cannot be opened; change the permissions",
    ),
    apsw.PermissionsError: (FileNotWritable, "it cannot be written; change its permissions"),
    apsw.AuthError: (FileNotWritable, "it cannot be written; change its permissions"),
    apsw.IOError: (FileNotWritable, "reading or writing failed; check the disk"),
    apsw.TooBigError: (FileNotWritable, "a value is too large for SQLite"),
}


def file_error(error: apsw.Error, path: str) -> AdjoinError:
    """The adjoin error for what SQLite reported."""
    kind, remedy = _CAUSES.get(type(error), (AdjoinError, "this is unexpected; please report it"))
    return kind(f"{path}: {remedy} (SQLite says: {error})")
