"""Opening files: what is refused, what is created, and what SQLite's troubles become."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from adjoin.errors import AdjoinError, FileBusy, FileDamaged, FileNotWritable, InvalidLocation, StoreClosed
from adjoin.requests import (
    ChangesResponse,
    CreateTable,
    DescribeTable,
    DropTable,
    Get,
    ListTables,
    Put,
    Query,
    ReadChanges,
    TableResponse,
    TablesResponse,
    UpdateTable,
)
from adjoin.stores.sqlite import AsyncSQLiteStore, SQLiteStore, background
from adjoin.stores.sqlite.file import APPLICATION_ID, FORMAT_VERSION, file_error
from adjoin.stores.sqlite.rows import Storage
from adjoin.stores.sqlite.tables import Table
from adjoin.tables import IndexDefinition, KeyAttribute
from tests.stores.examples import EDGES, PLAIN, everything, item, key, n, one, page, put, s, stored
from tests.stores.sqlite.files import header, make
from tests.waiting import LIMIT

LATER_SETTINGS = ("point_in_time_recovery", "deletion_protection", "tags", "stream_view")


# --- creating ----------------------------------------------------------------------------------


def test_the_header_tells_what_the_file_is_from_the_start(path: Path) -> None:
    store = SQLiteStore(path)
    first = header(path)
    assert first[:16] == b"SQLite format 3\0"
    assert first[68:72] == b"adjn" == APPLICATION_ID.to_bytes(4, "big")
    assert int.from_bytes(first[60:64], "big") == FORMAT_VERSION == 2
    assert first[18:20] == b"\2\2", "the file is in WAL mode"
    store.close()
    assert sorted(each.name for each in path.parent.iterdir()) == ["graph.db"], "no side files stay behind"


def test_an_empty_file_counts_as_new(path: Path) -> None:
    path.touch()
    make(path)
    assert header(path)[68:72] == b"adjn"


def test_a_file_keeps_what_was_written(path: Path) -> None:
    make(path)
    store = SQLiteStore(path)
    assert len(everything(store, "Plain")) == 3
    assert one(store, ListTables(), TablesResponse).names == ("Plain",)
    store.close()


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two folders, of which the first is the working directory."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    monkeypatch.chdir(first)
    return first, second


def test_a_working_directory_that_was_removed_holds_no_file(folders: tuple[Path, Path]) -> None:
    first, _ = folders
    first.rmdir()
    with pytest.raises(FileNotWritable, match="the working directory was removed"):
        SQLiteStore("graph.db")
    with pytest.raises(FileNotWritable, match="the working directory was removed"):
        AsyncSQLiteStore("graph.db")


def test_a_file_stays_where_it_is_if_the_process_goes_elsewhere(folders: tuple[Path, Path]) -> None:
    first, second = folders
    store = SQLiteStore("graph.db")
    store.execute([CreateTable(PLAIN)])
    os.chdir(second)
    # Another thread has a connection of its own, which is opened now.
    thread = threading.Thread(target=put, args=(store, "Plain", item("A", "1")))
    thread.start()
    thread.join()
    put(store, "Plain", item("A", "2"))
    assert len(everything(store, "Plain")) == 2
    store.close()
    assert [*second.iterdir()] == []
    assert (first / "graph.db").exists()


def test_a_file_that_a_loop_opens_later_is_where_the_process_was(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = folders
    gone = threading.Event()

    def opened_late(*given: Any) -> SQLiteStore:
        assert gone.wait(LIMIT)
        return SQLiteStore(*given)

    monkeypatch.setattr(background, "SQLiteStore", opened_late)
    store = AsyncSQLiteStore("graph.db")
    os.chdir(second)
    gone.set()
    asyncio.run(store.close())
    assert ([*second.iterdir()], (first / "graph.db").exists()) == ([], True)


VERSION_1 = """
PRAGMA application_id = 0x61646A6E;
PRAGMA user_version = 1;
CREATE TABLE adjoin_tables(
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, definition TEXT NOT NULL,
    storage TEXT NOT NULL, history TEXT NOT NULL
);
CREATE TABLE adjoin_tokens(
    token TEXT PRIMARY KEY, at REAL NOT NULL, request BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX adjoin_tokens_at ON adjoin_tokens(at);
PRAGMA journal_mode = wal;
"""
"""What the adjoin that wrote version 1 made of an empty file."""

TABLE_1 = """
INSERT INTO adjoin_tables VALUES (
    1, 'Edges', '{"name":"Edges","partition":{"name":"PK","type":"S"},"sort":{"name":"SK","type":"S"},"indexes":[
    {"name":"Reverse","partition":{"name":"RPK","type":"S"},"sort":{"name":"RSK","type":"S"}}],"stream":true}',
    '{"columns":[{"attribute":{"name":"RPK","type":"S"},"in_body":false},
    {"attribute":{"name":"RSK","type":"S"},"in_body":false}],"indexes":{"Reverse":0},"next_index":1,"stream_start":0}',
    '{}'
);
CREATE TABLE items_1(pk NOT NULL, sk NOT NULL, size INTEGER NOT NULL, expires INTEGER, k1, k2,
    body BLOB NOT NULL, PRIMARY KEY (pk, sk)) WITHOUT ROWID;
CREATE INDEX items_1_0 ON items_1(k1, k2, pk, sk) WHERE k1 IS NOT NULL AND k2 IS NOT NULL;
CREATE TABLE changes_1(seq INTEGER PRIMARY KEY, at REAL NOT NULL, expired INTEGER NOT NULL,
    items INTEGER NOT NULL, bytes INTEGER NOT NULL, old BLOB, new BLOB);
INSERT INTO items_1 VALUES ('A', '1', 18, NULL, 'X', 'r', CAST('{"n":{"N":"7"}}' AS BLOB));
INSERT INTO changes_1 VALUES (1, 1e9, 0, 1, 18, NULL,
    CAST('{"PK":{"S":"A"},"SK":{"S":"1"},"n":{"N":"7"},"RPK":{"S":"X"},"RSK":{"S":"r"}}' AS BLOB));
"""


def make_version_1(path: Path, more: str = "") -> None:
    connection = apsw.Connection(str(path))
    connection.execute(VERSION_1 + more).fetchall()
    connection.close()


def test_a_file_of_version_1_is_read_and_written_as_it_is(path: Path) -> None:
    make_version_1(path, TABLE_1)
    store = SQLiteStore(path)
    first = item("A", "1", RPK=s("X"), RSK=s("r"), n=n(7))
    second = item("A", "2", RPK=s("X"), RSK=s("q"))
    put(store, "Edges", second)
    assert everything(store, "Edges") == [first, second]
    assert page(store, Query("Edges", ("RPK", s("X")), index="Reverse")).items == [second, first]
    changes = one(store, ReadChanges("Edges"), ChangesResponse)
    assert [change.new for change in changes.changes] == [first, second]
    store.execute([CreateTable(PLAIN)])
    put(store, "Plain", item("B", "1"))
    store.execute([UpdateTable("Edges", remove_indexes=("Reverse",))])
    assert everything(store, "Edges") == [first, second]
    store.close()
    assert int.from_bytes(header(path)[60:64], "big") == 1, "an older adjoin can still open it"
    connection = apsw.Connection(str(path))
    names = {row[1] for table in ("items_2", "changes_2") for row in connection.execute(f"PRAGMA table_info({table})")}
    assert "sum" not in names
    connection.close()


def test_a_table_of_a_file_without_later_settings_has_their_defaults(path: Path) -> None:
    make_version_1(path)
    make(path)
    file = sqlite3.connect(path)
    ((text,),) = file.execute("SELECT definition FROM adjoin_tables").fetchall()
    older = {name: value for name, value in json.loads(text).items() if name not in LATER_SETTINGS}
    assert len(older) == 7
    with file:
        file.execute("UPDATE adjoin_tables SET definition = ?", (json.dumps(older),))
    file.close()
    store = SQLiteStore(path)
    assert one(store, DescribeTable("Plain"), TableResponse).definition == PLAIN
    store.execute([DropTable("Plain")])
    store.close()


BY_AB = IndexDefinition.over(
    "ByAB", [KeyAttribute("a"), KeyAttribute("b", "N")], [KeyAttribute("c"), KeyAttribute("d")]
)


def test_several_attributes_of_a_key_are_a_list(path: Path) -> None:
    store = SQLiteStore(path)
    table = replace(EDGES, indexes=(*EDGES.indexes, BY_AB))
    store.execute([CreateTable(table)])
    held = {"a": s("x"), "b": n(1), "c": s("y"), "d": s("z")}
    put(store, "Edges", item("A", "1", **held))
    store.close()
    file = sqlite3.connect(path)
    ((text,),) = file.execute("SELECT definition FROM adjoin_tables").fetchall()
    *others, last = json.loads(text)["indexes"]
    assert last["partition"] == [{"name": "a", "type": "S"}, {"name": "b", "type": "N"}]
    assert last["sort"] == [{"name": "c", "type": "S"}, {"name": "d", "type": "S"}]
    members = {"name", "partition", "sort", "projection", "local", "throughput"}
    assert last.keys() == members
    assert [each.keys() for each in others] == [members] * len(others), "nothing else is written than before"
    assert [type(each["partition"]) for each in others] == [dict] * len(others)
    file.close()
    store = SQLiteStore(path)
    assert one(store, DescribeTable("Edges"), TableResponse).definition == table
    query = Query("Edges", ("a", s("x")), index="ByAB", equal=(("b", n(1)), ("c", s("y"))))
    assert page(store, query).items == [item("A", "1", **held)]
    store.close()


def test_a_file_of_version_1_gets_an_index_of_several_attributes(path: Path) -> None:
    make_version_1(path, TABLE_1)
    store = SQLiteStore(path)
    by_both = IndexDefinition.over("Both", [KeyAttribute("RPK"), KeyAttribute("RSK")], [KeyAttribute("n", "N")])
    store.execute([UpdateTable("Edges", add_indexes=(by_both,))])
    query = Query("Edges", ("RPK", s("X")), index="Both", equal=(("RSK", s("r")),))
    assert page(store, query).items == [item("A", "1", RPK=s("X"), RSK=s("r"), n=n(7))]
    store.close()
    assert int.from_bytes(header(path)[60:64], "big") == 1


@pytest.mark.parametrize("text", ["[]", "{", '{"indexes": 1}', '{"indexes": [1]}', '{"name": "Plain"}'])
def test_a_definition_that_is_none(path: Path, text: str) -> None:
    make_version_1(path)
    make(path)
    file = sqlite3.connect(path)
    with file:
        file.execute("UPDATE adjoin_tables SET definition = ?", (text,))
    file.close()
    with pytest.raises(FileDamaged):
        SQLiteStore(path)


def test_a_path_may_be_relative_or_odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("plain.db", "file:x?mode=ro", "with space é.db"):
        make(Path(name))
        assert header(tmp_path / name)[68:72] == b"adjn"


def test_a_file_whose_creation_stopped_before_wal_mode(path: Path) -> None:
    make(path)
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "delete")
    connection.close()
    assert header(path)[18:20] == b"\1\1"
    store = SQLiteStore(path)
    assert len(everything(store, "Plain")) == 3
    assert header(path)[18:20] == b"\2\2"
    store.close()


def test_durability_is_what_was_asked_for(path: Path) -> None:
    with pytest.raises(InvalidLocation, match="durability is 'none'; it can be 'power' or 'process'"):
        SQLiteStore(path, durability="none")  # type: ignore[arg-type]
    assert not path.exists()


def test_many_processes_may_create_the_file_at_once(path: Path) -> None:
    program = (
        "import sys\n"
        "from adjoin.requests import CreateTable, Put\n"
        "from adjoin.errors import TableExists\n"
        "from adjoin.stores.sqlite import SQLiteStore\n"
        "from tests.stores.examples import PLAIN, item\n"
        "sys.stdin.readline()\n"
        "store = SQLiteStore(sys.argv[1])\n"
        "try:\n"
        "    store.execute([CreateTable(PLAIN)])\n"
        "except TableExists:\n"
        "    pass\n"
        "store.execute([Put('Plain', item('A', sys.argv[2]))])\n"
        "store.close()\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", program, str(path), str(each)], stdin=subprocess.PIPE, text=True)
        for each in range(6)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.close()
    assert [child.wait(LIMIT) for child in children] == [0] * 6
    store = SQLiteStore(path)
    assert len(everything(store, "Plain")) == 6
    store.close()


# --- trouble -----------------------------------------------------------------------------------


def test_broken_content(path: Path) -> None:
    make(path, 500)
    content = bytearray(path.read_bytes())
    for at in range(4096, len(content), 4096):
        content[at : at + 100] = b"\xa5" * 100
    path.write_bytes(content)
    with pytest.raises(FileDamaged, match="its content is broken; restore it from a backup"):
        everything(SQLiteStore(path), "Plain")


def test_a_truncated_file(path: Path) -> None:
    make(path, 500)
    os.truncate(path, 8192)
    with pytest.raises(FileDamaged):
        everything(SQLiteStore(path), "Plain")


def test_a_broken_item(path: Path) -> None:
    make(path)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE items_1 SET body = x'7b' WHERE sk = '1'")
    connection.close()
    store = SQLiteStore(path)
    with pytest.raises(FileDamaged, match="an item in the file is broken"):
        everything(store, "Plain")
    assert stored(store, "Plain", key("A", "2")) is not None, "the store goes on"
    store.close()


def test_another_writer_that_does_not_finish(path: Path) -> None:
    make(path)
    store = SQLiteStore(path, patience=0.05)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(FileBusy, match="another process held the file for too long") as caught:
        put(store, "Plain", item("B", "1"))
    assert caught.value.retryable
    assert len(everything(store, "Plain")) == 3, "readers do not wait"
    other.execute("ROLLBACK")
    put(store, "Plain", item("B", "1"))
    other.close()
    store.close()


def test_a_writer_that_finishes_in_time(path: Path) -> None:
    make(path)
    store = SQLiteStore(path, patience=10)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.1, other.execute, ["COMMIT"])
    timer.start()
    put(store, "Plain", item("B", "1"))
    timer.join()
    other.close()
    store.close()


def test_a_full_disk(path: Path) -> None:
    make(path)
    store = SQLiteStore(path)
    written = 0

    def write_until_it_fails() -> None:
        nonlocal written
        while True:
            put(store, "Plain", item("B", str(written)))
            written += 1

    connection = store._connections._current().connection
    connection.pragma("max_page_count", connection.pragma("page_count"))
    with pytest.raises(FileNotWritable, match="the disk is full; make room and try again"):
        write_until_it_fails()
    connection.pragma("max_page_count", 1_000_000)
    put(store, "Plain", item("B", "later"))
    assert len(everything(store, "Plain")) == 3 + written + 1
    store.close()


def test_every_error_of_sqlite_becomes_one_of_ours() -> None:
    kinds = [kind for kind in vars(apsw).values() if isinstance(kind, type) and issubclass(kind, apsw.Error)]
    assert len(kinds) > 20
    for kind in kinds:
        assert isinstance(file_error(kind("told"), "x.db"), AdjoinError)


def test_a_copy_made_by_sqlite_is_a_backup(path: Path, tmp_path: Path) -> None:
    store = SQLiteStore(path)
    store.execute([CreateTable(PLAIN)])
    put(store, "Plain", item("A", "1"))
    source = apsw.Connection(str(path))
    source.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
    source.close()
    store.close()
    copy = SQLiteStore(tmp_path / "copy.db")
    assert everything(copy, "Plain") == [item("A", "1")]
    copy.close()


def test_a_query_is_planned_once(path: Path) -> None:
    make(path)
    store = SQLiteStore(path)
    planned = 0

    def plan(*_: object) -> int:
        nonlocal planned
        planned += 1
        return apsw.SQLITE_OK

    # It is asked whenever SQLite plans a statement; to set it makes all statements out of date.
    store._connections._current().connection.authorizer = plan
    for limit in (1, 2, 3):
        before = planned
        store.execute([Query("Plain", ("PK", s("A")), limit=limit)])
        assert (planned > before) == (limit == 1)
    store.close()


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize(
    ("equal", "lower", "upper", "is_started", "terms"),
    [
        (2, None, None, False, "k1=? AND k2=?"),
        (2, ">", None, False, "k1=? AND k2=? AND k3>?"),
        (3, ">=", "<", False, "k1=? AND k2=? AND k3=? AND k4>? AND k4<?"),
        (2, None, None, True, "k1=? AND k2=? AND (k3,k4,pk,sk)>(?,?,?,?)"),
        (3, None, "<", True, "k1=? AND k2=? AND k3=? AND (k4,pk,sk)>(?,?,?) AND k4<?"),
    ],
)
def test_a_query_of_several_keys_reads_only_its_answer_in_its_order(
    path: Path, equal: int, lower: str | None, upper: str | None, is_started: bool, terms: str, forward: bool
) -> None:
    definition = replace(PLAIN, indexes=(BY_AB,))
    store = SQLiteStore(path)
    store.execute([CreateTable(definition)])
    store.close()
    if not forward and is_started:
        # Backwards, the start is the upper bound.
        upper, terms = None, terms.replace(" AND k4<?", "").replace(">(", "<(")
    sql = Table(1, definition, Storage.of(definition)).paths["ByAB"].query_sql(equal, lower, upper, is_started, forward)
    connection = apsw.Connection(str(path))
    # One step: nothing is sorted.
    (step,) = connection.execute(f"EXPLAIN QUERY PLAN {sql}", (None,) * sql.count("?"))
    connection.close()
    before, _, used = step[3].partition(" (")
    assert before == "SEARCH items_1 USING INDEX items_1_0"
    assert set(terms.split(" AND ")) <= set(used.removesuffix(")").split(" AND ")), used


# --- closing -----------------------------------------------------------------------------------


def test_a_closed_store_says_so(path: Path) -> None:
    store = SQLiteStore(path)
    store.close()
    store.close()
    for request in (Get("Plain", key("A", "1")), Put("Plain", item("A", "1"))):
        with pytest.raises(StoreClosed, match="the store was closed; open it again to use it"):
            store.execute([request])
    with pytest.raises(StoreClosed):
        store.sweep()


def test_the_format_document_lists_every_table_and_column(path: Path) -> None:
    document = (Path(__file__).parents[3] / "docs" / "file-format.md").read_text()
    make(path)
    connection = apsw.Connection(str(path))
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    ):
        shown = str(name).replace("_1", "_<id>")
        assert f"`{shown}`" in document
        for row in connection.execute(f"PRAGMA table_info({name})"):
            assert f"`{row[1]}`" in document, (name, row[1])
    connection.close()
