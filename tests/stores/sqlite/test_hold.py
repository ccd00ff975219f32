"""What happens to a file while a store has it open: other readers in the same process, and files that go away."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest

from adjoin.errors import FileBusy, FileDamaged, FileGone
from adjoin.requests import CreateTable, Put
from adjoin.stores.sqlite import SQLiteStore, locks
from tests.stores.examples import PLAIN, everything, item, key, put, stored
from tests.waiting import LIMIT

linux = pytest.mark.skipif(not locks._HAS_LOCKS, reason="this system has no locks of open file descriptions")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph.db"


def opened(path: Path, **options: object) -> SQLiteStore:
    store = SQLiteStore(path, **options)  # type: ignore[arg-type]
    store.execute([CreateTable(PLAIN)])
    put(store, "Plain", item("A", "1"))
    return store


# --- readers in the same process ---------------------------------------------------------------

_WRITER = """
import os, shutil, sqlite3, subprocess, sys, threading
from adjoin.requests import Put
from tests.stores.examples import item
from tests.stores.sqlite.test_hold import Path, opened

path, meanwhile = sys.argv[1:]
store = opened(Path(path))
thread = threading.Thread(target=store.execute, args=([Put("Plain", item("A", "thread"))],))
thread.start(), thread.join()

def sqlite():
    reader = sqlite3.connect(path)
    assert reader.execute("SELECT count(*) FROM items_1").fetchone() == (2,)
    reader.close()

def bytes():
    for name in (path, path + "-wal", path + "-shm"):
        with open(name, "rb") as file:
            file.read()

def copy():
    shutil.copy(path, path + ".copy")

def second_store():
    from adjoin.stores.sqlite import SQLiteStore
    SQLiteStore(path).close()

def passer_by():
    command = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM items_1'); c.close()"
    subprocess.run([sys.executable, "-c", command, path], check=True)

def other_adjoin():
    command = "import sys; from adjoin.stores.sqlite import SQLiteStore; SQLiteStore(sys.argv[1]).close()"
    subprocess.run([sys.executable, "-c", command, path], check=True)

for name in meanwhile.split():
    globals()[name]()
for number in range(20):
    store.execute([Put("Plain", item("B", str(number)))])
os.kill(os.getpid(), 9)
"""


@linux
@pytest.mark.parametrize(
    "meanwhile",
    [
        "sqlite",
        "sqlite passer_by",
        "sqlite other_adjoin",
        "bytes passer_by",
        "bytes other_adjoin sqlite",
        "copy other_adjoin passer_by",
        "second_store passer_by",
        "passer_by other_adjoin",
    ],
)
def test_nothing_acknowledged_is_lost_whoever_read_the_file(path: Path, meanwhile: str) -> None:
    ended = subprocess.run([sys.executable, "-c", _WRITER, str(path), meanwhile], timeout=LIMIT, check=False)
    assert ended.returncode == -signal.SIGKILL
    with closing(SQLiteStore(path)) as store:
        assert len(everything(store, "Plain")) == 22
    assert not Path(f"{path}-wal").exists(), "the last to close removes the log"


@linux
def test_locks_that_are_lost_during_a_write(path: Path) -> None:
    meanwhile: list[Callable[[], None]] = []

    def clock() -> float:
        if meanwhile:
            meanwhile.pop()()
        return 1e9

    def read() -> None:
        with closing(sqlite3.connect(path)) as reader:
            reader.execute("SELECT count(*) FROM items_1").fetchone()

    store = opened(path, clock=clock)
    meanwhile.append(read)
    with pytest.raises(FileBusy, match=r"the locks were lost during a write.*try again") as caught:
        put(store, "Plain", item("A", "2"))
    assert caught.value.retryable
    put(store, "Plain", item("A", "3"))
    assert [each["SK"]["S"] for each in everything(store, "Plain")] == ["1", "3"]
    store.close()


@linux
def test_the_hold_ends_with_the_last_store_of_the_process(path: Path) -> None:
    # Stores that earlier tests dropped may not be collected yet.
    before = set(locks._files)
    one, other = opened(path), SQLiteStore(path)
    reader = apsw.Connection(str(path))
    reader.execute("SELECT count(*) FROM items_1").fetchall()
    one.close()
    put(other, "Plain", item("A", "2"))
    other.close()
    assert len(locks._files.keys() - before) == 1, "to close the descriptors would drop the reader's locks"
    reader.close()
    assert not Path(f"{path}-shm").exists()
    again = SQLiteStore(path)
    put(again, "Plain", item("A", "3"))
    with closing(sqlite3.connect(path)) as passing:
        passing.execute("SELECT count(*) FROM items_1").fetchone()
    assert Path(f"{path}-wal").exists(), "the new shared memory is held, not that of before"
    again.close()
    assert locks._files.keys() <= before
    assert [each.name for each in path.parent.iterdir()] == ["graph.db"]
    opened(path.with_name("another.db")).close()
    assert locks._files.keys() <= before


_FORGETFUL = """
import gc, sys
from tests.stores.sqlite.test_hold import Path, opened

path = Path(sys.argv[1])
opened(path)
gc.collect()
assert [each.name for each in path.parent.iterdir()] == ["graph.db"], "garbage was closed"
store = opened(path.with_name("other.db"))
"""


def test_a_store_that_nobody_closes_leaves_no_log(path: Path) -> None:
    subprocess.run([sys.executable, "-c", _FORGETFUL, str(path)], timeout=LIMIT, check=True)
    assert sorted(each.name for each in path.parent.iterdir()) == ["graph.db", "other.db"]


@linux
def test_a_forked_child_leaves_the_hold_of_its_parent_alone(path: Path) -> None:
    import ctypes

    store = opened(path)
    for fork in (os.fork, ctypes.PyDLL(None).fork):
        child = fork()
        if child == 0:
            status = 1
            try:
                put(store, "Plain", item("A", "child"))
                store.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        put(store, "Plain", item("A", "parent"))
        reader = sqlite3.connect(path)
        reader.execute("SELECT count(*) FROM items_1").fetchone()
        reader.close()
        assert Path(f"{path}-wal").exists(), "the parent still holds the file"
    assert stored(store, "Plain", key("A", "child")) is not None
    store.close()


# --- files that go away ------------------------------------------------------------------------


def remove(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    other = path.with_name("other.db")
    opened(other).close()
    other.replace(path)


def move(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def move_the_directory(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def remove_the_directory(path: Path) -> None:
    shutil.rmtree(path.parent)


def remove_the_log(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def remove_the_shared_memory(path: Path) -> None:
    Path(f"{path}-shm").unlink()


def replace_the_shared_memory(path: Path) -> None:
    remove_the_shared_memory(path)
    Path(f"{path}-shm").touch()


def put_a_link_in_its_place(path: Path) -> None:
    path.symlink_to(path.rename(path.with_name("elsewhere.db")))


def empty(path: Path) -> None:
    os.truncate(path, 0)


def empty_the_log(path: Path) -> None:
    os.truncate(f"{path}-wal", 0)


def cut_the_log(path: Path) -> None:
    os.truncate(f"{path}-wal", os.path.getsize(f"{path}-wal") - 1)


GONE: dict[Callable[[Path], None], str] = {
    remove: "does not exist any more",
    replace: "is not the one that was opened",
    move: "does not exist any more",
    move_the_directory: "does not exist any more",
    remove_the_directory: "does not exist any more",
    remove_the_log: "has lost its -wal or -shm file",
    remove_the_shared_memory: "has lost its -wal or -shm file",
    replace_the_shared_memory: "has another -wal or -shm file than the one that is in use",
    put_a_link_in_its_place: "is not the one that was opened",
    empty: "was emptied",
}


@pytest.mark.parametrize("change", GONE, ids=lambda change: change.__name__)
def test_a_file_that_went_away_takes_no_writes(tmp_path: Path, change: Callable[[Path], None]) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    path = folder / "graph.db"
    store = opened(path)
    change(path)
    for _ in range(2):
        with pytest.raises(FileGone, match=f"{GONE[change]}: it was removed, moved or replaced") as caught:
            put(store, "Plain", item("A", "2"))
        assert "put it back together with its -wal file, or close the graph and open it again" in str(caught.value)
    store.close()


@linux
@pytest.mark.parametrize("change", [empty_the_log, cut_the_log])
def test_a_log_without_its_content(path: Path, change: Callable[[Path], None]) -> None:
    store = opened(path)
    pages = path.read_bytes()
    change(path)
    with pytest.raises(FileGone, match="has lost the content of its -wal file"):
        put(store, "Plain", item("A", "2"))
    store.close()
    assert path.read_bytes() == pages, "no page is copied from a log that has none"


_OTHER = """
import sys
from tests.stores.sqlite.test_hold import Path, SQLiteStore, item, put

store = SQLiteStore(Path(sys.argv[1]))
put(store, "Plain", item("A", "2"))
print("written", flush=True)
sys.stdin.readline()
put(store, "Plain", item("A", "4"))
store.close()
"""


def test_two_processes_do_not_write_over_each_other(path: Path) -> None:
    """One of them has the shared memory that somebody removed, the other a new one."""
    store = opened(path)
    Path(f"{path}-shm").unlink()
    started = [sys.executable, "-c", _OTHER, str(path)]
    with subprocess.Popen(started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "written\n"
        with pytest.raises(FileGone):
            put(store, "Plain", item("A", "3"))
        other.communicate("\n", timeout=LIMIT)
    assert other.returncode == 0
    store.close()
    with closing(SQLiteStore(path)) as again:
        assert [each["SK"]["S"] for each in everything(again, "Plain")] == ["1", "2", "4"]


def test_a_second_store_of_the_process_notices_it_too(path: Path) -> None:
    store = opened(path)
    Path(f"{path}-shm").unlink()
    with pytest.raises(FileGone, match="-shm"):
        SQLiteStore(path)
    store.close()
    with closing(SQLiteStore(path)) as again:
        assert [each["SK"]["S"] for each in everything(again, "Plain")] == ["1"]


def test_another_file_in_its_place_gets_nothing_of_its_log(path: Path) -> None:
    """As the message says: the graph is closed and opened again."""
    other = path.with_name("other.db")
    with closing(SQLiteStore(other)) as restored:
        restored.execute([CreateTable(PLAIN)])
        put(restored, "Plain", item("B", "of a backup"))
    store = opened(path)
    kept = path.with_name("kept.db")
    path.rename(kept)
    other.replace(path)
    with pytest.raises(FileGone):
        put(store, "Plain", item("A", "2"))
    store.close()
    for place, found in ((path, "of a backup"), (kept, "1")):
        with closing(SQLiteStore(place)) as again:
            assert [each["SK"]["S"] for each in everything(again, "Plain")] == [found], place.name


def test_a_link_is_followed_once(path: Path, tmp_path: Path) -> None:
    opened(path).close()
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with closing(SQLiteStore(link)) as store:
        put(store, "Plain", item("A", "2"))
        other = tmp_path / "other.db"
        opened(other).close()
        link.unlink()
        link.symlink_to(other)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(put, store, "Plain", item("A", "3")).result(60)
        found = [each["SK"]["S"] for each in everything(store, "Plain")]
    assert found == ["1", "2", "3"]
    with closing(SQLiteStore(path)) as store:
        assert [each["SK"]["S"] for each in everything(store, "Plain")] == found


def test_a_thread_that_comes_later_does_not_open_another_file(path: Path) -> None:
    store = opened(path)
    path.unlink()
    with ThreadPoolExecutor(1) as pool, pytest.raises(FileGone):
        pool.submit(everything, store, "Plain").result(60)
    assert not path.exists(), "nothing was made in its place"
    store.close()


def test_a_round_of_writes_notices_it_too(path: Path) -> None:
    store = opened(path)
    begun = store.begin([Put("Plain", item("A", "2"))])
    assert begun is not None
    moved = path.rename(path.with_name("moved.db"))
    with pytest.raises(FileGone):
        begun.commit()
    moved.rename(path)
    put(store, "Plain", item("A", "3"))
    assert [each["SK"]["S"] for each in everything(store, "Plain")] == ["1", "3"]
    store.close()


def test_a_file_that_was_put_back_is_written_to_again(path: Path) -> None:
    store = opened(path)
    moved = path.rename(path.with_name("moved.db"))
    with pytest.raises(FileGone):
        put(store, "Plain", item("A", "2"))
    moved.rename(path)
    put(store, "Plain", item("A", "3"))
    store.close()
    with closing(SQLiteStore(path)) as again:
        assert [each["SK"]["S"] for each in everything(again, "Plain")] == ["1", "3"]


def test_an_emptied_file_gives_no_wrong_reads(path: Path) -> None:
    store = opened(path)
    put(store, "Plain", *(item("A", str(number), x={"S": "x" * 3000}) for number in range(50)))
    store.close()
    store = SQLiteStore(path)
    os.truncate(path, 0)
    with suppress(FileDamaged, FileGone):
        assert len(everything(store, "Plain")) == 50
    store.close()
