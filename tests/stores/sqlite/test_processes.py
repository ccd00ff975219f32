"""Many processes and many threads on one file: nothing lost, nothing torn."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from adjoin.errors import InvalidRequest, TableNotFound
from adjoin.expressions import Add, attribute
from adjoin.requests import (
    BatchGetResponse,
    BatchWrite,
    ChangesResponse,
    CreateTable,
    DropTable,
    Get,
    PageResponse,
    Put,
    Query,
    ReadChanges,
    Request,
    Scan,
    TransactGet,
    TransactWrite,
    Update,
)
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import KeyAttribute
from adjoin.values import Item
from tests.stores.examples import EDGES, PLAIN, everything, item, key, n, one, page, put, s, stored
from tests.stores.sqlite.processes_worker import ACCOUNTS, BALANCE
from tests.waiting import LIMIT

WORKERS = 4
ROUNDS = 120


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "graph.db"
    store = SQLiteStore(path)
    store.execute([CreateTable(PLAIN)])
    store.close()
    return path


def total(items: list[Item | None]) -> int:
    return sum(int(each["balance"]["N"]) for each in items if each is not None)


def test_processes_share_a_file(path: Path) -> None:
    store = SQLiteStore(path, durability="process")
    accounts = [item("accounts", str(each), balance=n(BALANCE)) for each in range(ACCOUNTS)]
    put(store, "Plain", *accounts)
    whole = TransactGet(tuple(Get("Plain", key("accounts", str(each))) for each in range(ACCOUNTS)))
    command = [sys.executable, "-m", "tests.stores.sqlite.processes_worker", str(path)]
    workers = [subprocess.Popen([*command, str(each), str(ROUNDS)]) for each in range(WORKERS)]
    looks = 0
    while any(worker.poll() is None for worker in workers):
        looks += 1
        assert total(one(store, whole, BatchGetResponse).items) == ACCOUNTS * BALANCE
        assert total([*page(store, Query("Plain", ("PK", s("accounts")))).items]) == ACCOUNTS * BALANCE
    assert looks
    assert [worker.returncode for worker in workers] == [0] * WORKERS
    assert stored(store, "Plain", key("counters", "all")) == item("counters", "all", count=n(WORKERS * ROUNDS))
    for each in range(WORKERS):
        assert stored(store, "Plain", key("counters", str(each))) == item("counters", str(each), count=n(ROUNDS))
    assert all(int(each["balance"]["N"]) >= 0 for each in page(store, Query("Plain", ("PK", s("accounts")))).items)
    store.close()


def in_threads(count: int, work: Callable[[int], None]) -> None:
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("where", ["file", "memory"])
def test_threads_share_a_store(path: Path, where: str) -> None:
    store = SQLiteStore(path if where == "file" else ":memory:", durability="process")
    if where == "memory":
        store.execute([CreateTable(PLAIN)])

    def work(number: int) -> None:
        for each in range(50):
            add = Update("Plain", key("counters", "all"), (Add(attribute("count"), n(1)),))
            pair = (Put("Plain", item("pairs", "a", at=n(each))), Put("Plain", item("pairs", "b", at=n(each))))
            store.execute([add, TransactWrite(pair)])
            found = page(store, Query("Plain", ("PK", s("pairs")))).items
            assert found[0]["at"] == found[1]["at"]

    in_threads(4, work)
    assert stored(store, "Plain", key("counters", "all")) == item("counters", "all", count=n(200))
    store.close()


def test_changes_are_in_the_order_of_commits(path: Path) -> None:
    store = SQLiteStore(path, durability="process")

    def work(number: int) -> None:
        for _ in range(40):
            store.execute([Update("Plain", key("counters", "all"), (Add(attribute("count"), n(1)),))])

    in_threads(3, work)
    changes = one(store, ReadChanges("Plain"), ChangesResponse).changes
    assert [int((change.new or {})["count"]["N"]) for change in changes] == list(range(1, 121))
    store.close()


def test_the_connections_of_ended_threads_are_closed(path: Path) -> None:
    store = SQLiteStore(path)
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    for _ in range(20):
        in_threads(1, lambda _: put(store, "Plain", item("A", "1")))
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before + 3
    store.close()


# --- forks -------------------------------------------------------------------------------------


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
# Python 3.12 warns of forks in processes that have threads, which a test runner may have.
in_spite_of_threads = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


def child_of(fork: Callable[[], int], work: Callable[[], None]) -> None:
    child = fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


@forks
@in_spite_of_threads
@pytest.mark.parametrize("how", ["told", "untold"])
def test_a_store_lives_on_after_a_fork(path: Path, how: str) -> None:
    store = SQLiteStore(path)
    put(store, "Plain", item("A", "before"))

    def work() -> None:
        put(store, "Plain", item("A", "child"))
        assert len(everything(store, "Plain")) == 2
        store.close()

    # The C library's own fork is one that Python is not told of.
    child_of(os.fork if how == "told" else ctypes.PyDLL(None).fork, work)
    put(store, "Plain", item("A", "parent"))
    other = SQLiteStore(path)
    assert [each["SK"]["S"] for each in everything(other, "Plain")] == ["before", "child", "parent"]
    other.close()
    put(store, "Plain", item("A", "later"))
    assert len(everything(store, "Plain")) == 4
    store.close()


@forks
@in_spite_of_threads
def test_a_child_outlives_its_parents_store(path: Path) -> None:
    # A child with inherited locks would believe to hold what its parent has let go, and lose its writes.
    store = SQLiteStore(path)
    put(store, "Plain", item("A", "before"))
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            put(store, "Plain", item("A", "child 1"))
            os.write(ready[1], b".")
            os.read(go[0], 1)
            put(store, "Plain", item("A", "child 2"))
            status = 0
        finally:
            os._exit(status)
    os.read(ready[0], 1)
    store.close()
    other = SQLiteStore(path)
    put(other, "Plain", item("A", "other"))
    other.close()
    os.write(go[1], b".")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for end in (*ready, *go):
        os.close(end)
    store = SQLiteStore(path)
    assert [each["SK"]["S"] for each in everything(store, "Plain")] == ["before", "child 1", "child 2", "other"]
    store.close()


@forks
@in_spite_of_threads
def test_a_store_in_memory_is_copied_by_a_fork() -> None:
    store = SQLiteStore(":memory:")
    store.execute([CreateTable(PLAIN)])
    put(store, "Plain", item("A", "before"))

    def work() -> None:
        put(store, "Plain", item("A", "child"))
        assert len(everything(store, "Plain")) == 2

    child_of(os.fork, work)
    assert len(everything(store, "Plain")) == 1
    store.close()


# --- tables that others change -----------------------------------------------------------------


def test_a_table_created_by_another_store_is_seen(path: Path) -> None:
    one_store, other = SQLiteStore(path), SQLiteStore(path)
    with pytest.raises(TableNotFound):
        put(one_store, "Edges", item("A", "1"))
    other.execute([CreateTable(EDGES)])
    put(one_store, "Edges", item("A", "1"))
    assert everything(other, "Edges") == [item("A", "1")]
    one_store.close()
    other.close()


def test_a_table_dropped_by_another_store_is_gone(path: Path) -> None:
    one_store, other = SQLiteStore(path), SQLiteStore(path)
    put(one_store, "Plain", item("A", "1"))
    other.execute([DropTable("Plain")])
    requests: list[Request] = [
        Get("Plain", key("A", "1")),
        Put("Plain", item("A", "1")),
        TransactWrite((Put("Plain", item("A", "1")),)),
        TransactGet((Get("Plain", key("A", "1")),)),
        ReadChanges("Plain"),
        Query("Plain", ("PK", s("A"))),
    ]
    for request in requests:
        with pytest.raises(TableNotFound, match="has no table Plain; its tables are: none"):
            one_store.execute([request])
    one_store.close()
    other.close()


def test_a_table_made_anew_by_another_store_is_used_as_it_is(path: Path) -> None:
    one_store, other = SQLiteStore(path), SQLiteStore(path)
    put(one_store, "Plain", item("A", "1"))
    other.execute([DropTable("Plain")])
    other.execute([CreateTable(replace(PLAIN, sort=KeyAttribute("SK", "N")))])
    numbered: Item = {"PK": s("A"), "SK": n(1)}
    with pytest.raises(InvalidRequest, match="Type mismatch for key SK expected: N actual: S"):
        one_store.execute([Put("Plain", item("A", "1")), BatchWrite((Put("Plain", numbered),))])
    assert everything(one_store, "Plain") == [numbered]
    one_store.close()
    other.close()


_PASSER_BY = """
import sqlite3, sys
passing = sqlite3.connect(sys.argv[1])
passing.execute("select count(*) from sqlite_master").fetchall()
passing.close()
"""

_OWNER = """
import os, subprocess, sys, threading
from adjoin.requests import CreateTable, Put
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import KeyAttribute, TableDefinition

path, passer_by = sys.argv[1:]
store, other = SQLiteStore(path), SQLiteStore(path)
store.execute((CreateTable(TableDefinition("Things", KeyAttribute("id"))),))

def put(store, name):
    store.execute((Put("Things", {"id": {"S": name}}),))

put(store, "first"), put(other, "second")
thread = threading.Thread(target=put, args=(store, "third"))
thread.start(), thread.join()
subprocess.run([sys.executable, "-c", passer_by, path], check=True)
for number in range(20):
    put(store, str(number))
os.kill(os.getpid(), 9)
"""


def test_nothing_is_lost_when_another_program_opens_and_closes_the_file(tmp_path: Path) -> None:
    """Several connections in one process keep their locks, so that nobody else takes their log away."""
    path = tmp_path / "graph.db"
    ended = subprocess.run([sys.executable, "-c", _OWNER, str(path), _PASSER_BY], timeout=LIMIT, check=False)
    assert ended.returncode == -signal.SIGKILL
    with closing(SQLiteStore(path)) as store:
        (response,) = store.execute((Scan("Things", count_only=True),))
    assert isinstance(response, PageResponse)
    assert response.count == 23
