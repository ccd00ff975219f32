"""An interrupt between any two instructions of the store leaves it usable, and the file whole.

`KeyboardInterrupt` is raised before an instruction that a call executes in the store's own modules, one after the
other: before every one of the modules that have locks, transactions or connections, and before every 29th of those
that only compute. ADJOIN_EVERY_INSTRUCTION=1 leaves none out, and takes a quarter of an hour. After each, another
thread or the same one writes and reads, and everything in the file has to agree.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import pytest

import adjoin.stores.sqlite
from adjoin import Graph, Node
from adjoin.errors import FileBusy, StoreClosed, TableNotFound
from adjoin.expressions import Add, attribute
from adjoin.requests import (
    BatchGet,
    ChangesResponse,
    CreateTable,
    Delete,
    DescribeTable,
    DropTable,
    Get,
    Put,
    Query,
    ReadChanges,
    Request,
    TableResponse,
    TransactWrite,
    Update,
)
from adjoin.stores.sqlite import SQLiteStore
from adjoin.stores.sqlite.locks import Turn, holds
from adjoin.values import Item, item_size
from tests.stores.examples import EDGES, everything, item, key, n, one, page, put, s, stored

# What interrupts the finalizer of a store that is garbage by then, Python reports and does not raise.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

OWN = str(Path(adjoin.stores.sqlite.__file__).parent)
ALL = str(Path(adjoin.__file__).parent)
STATEFUL = ("store.py", "connections.py", "locks.py", "contextlib.py")
SPARSE = 1 if os.environ.get("ADJOIN_EVERY_INSTRUCTION") else 29


class Interrupter:
    """Raises `KeyboardInterrupt` before the instruction of a number, of those in modules below a folder."""

    def __init__(self, folder: str, number: int) -> None:
        self._folder = folder
        self._number = number
        self._computed = 0
        self.seen = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        if file.endswith(STATEFUL):
            trace = self._state
        elif file.startswith(self._folder):
            trace = self._computing
        else:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return trace

    def _state(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            self.seen += 1
            if self.seen == self._number:
                raise KeyboardInterrupt
        return self._state

    def _computing(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            self._computed += 1
            if self._computed % SPARSE == 0:
                self._state(frame, event, _)
        return self._computing

    def run(self, call: Callable[[], object]) -> bool:
        """Whether the call came to an interrupt."""
        traced = sys.gettrace()
        sys.settrace(self)
        try:
            call()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(traced)
        return self.seen >= self._number


def interrupted(call: Callable[[int], object], folder: str = OWN, step: int = 1) -> Iterator[int]:
    """Runs a call over and over, interrupted one instruction later each time, until it comes to its end."""
    number = 1
    while Interrupter(folder, number).run(partial(call, number)):
        yield number
        number += step
    assert number > 20


class Observer:
    """Follows a store by its change stream, and compares with everything else that the file tells."""

    def __init__(self, store: SQLiteStore) -> None:
        self._store = store
        self._items: dict[tuple[str, str], Item] = {}
        self._after: str | None = None

    def check(self) -> dict[tuple[str, str], Item]:
        response = one(self._store, ReadChanges("Edges", self._after), ChangesResponse)
        for change in response.changes:
            where = (change.key["PK"]["S"], change.key["SK"]["S"])
            assert self._items.get(where) == change.old
            self._items.pop(where, None)
            if change.new is not None:
                self._items[where] = change.new
        self._after = response.next
        items = sorted(self._items.items())
        assert everything(self._store, "Edges") == [each for _, each in items]
        reverse = [each for _, each in items if "RPK" in each and "RSK" in each]
        assert page(self._store, Query("Edges", ("RPK", s("X")), index="Reverse")).items == sorted(
            reverse, key=lambda each: (each["RSK"]["S"], each["PK"]["S"], each["SK"]["S"])
        )
        described = one(self._store, DescribeTable("Edges"), TableResponse)
        assert (described.item_count, described.size) == (len(items), sum(item_size(each) for _, each in items))
        pair = [self._items.get(("pair", each)) for each in "ab"]
        assert len({str(each and each["stamp"]) for each in pair}) == 1, "a transaction is there whole or not at all"
        return self._items


def calls_of(store: SQLiteStore) -> dict[str, Callable[[int], object]]:
    def execute(*requests: Request) -> object:
        return store.execute(requests)

    def indexed(sort: str, number: int) -> Item:
        return item("A", sort, RPK=s("X"), RSK=s(str(number % 7)), stamp=n(number))

    return {
        "put": lambda number: execute(Put("Edges", indexed("put", number))),
        "update": lambda number: execute(Update("Edges", key("A", "count"), (Add(attribute("count"), n(1)),))),
        "transaction": lambda number: execute(
            TransactWrite(
                tuple(Put("Edges", item("pair", each, stamp=n(number))) for each in "ab"), token=f"token {number}"
            )
        ),
        "delete": lambda number: execute(Delete("Edges", key("A", "put"))),
        "get": lambda number: execute(Get("Edges", key("A", "put"))),
        "batch get": lambda number: execute(BatchGet((Get("Edges", key("A", "put")), Get("Edges", key("A", "x"))))),
        "query": lambda number: list(page(store, Query("Edges", ("RPK", s("X")), index="Reverse")).items),
        "changes": lambda number: execute(ReadChanges("Edges", limit=3)),
        "create": lambda number: (
            execute(CreateTable(TABLE)),
            execute(DropTable(TABLE.name)),
        ),
        "text": lambda number: (store.text(Get("Edges", key("A", "put"))), store.item_text("Edges", key("A", "put"))),
        "round": lambda number: commit(store, Put("Edges", indexed("put", number))),
        "dump": lambda number: dump(store),
    }


TABLE = EDGES.__class__("Further", EDGES.partition)


def commit(store: SQLiteStore, request: Request) -> None:
    begun = store.begin([request])
    if begun is None:
        # Upkeep or a checkpoint is due. That would look like the end of what can be interrupted.
        store.execute([request])
        begun = store.begin([request])
    if begun is not None:
        begun.commit()


def dump(store: SQLiteStore) -> None:
    with store.dump("Edges") as pieces:
        for _ in pieces:
            pass


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0


CALLS = tuple(calls_of(SQLiteStore(":memory:")))


@pytest.mark.parametrize("where", ["file", "memory"])
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_at_any_instruction_leaves_the_store_usable(tmp_path: Path, name: str, where: str) -> None:
    path = tmp_path / "graph.db"
    store = SQLiteStore(path if where == "file" else ":memory:", durability="process", patience=2.0)
    store.execute([CreateTable(EDGES)])
    call = calls_of(store)[name]
    other = ThreadPoolExecutor(1)
    other.submit(everything, store, "Edges").result(60)
    observer = Observer(store)
    before = descriptors()
    for number in interrupted(call):
        after = Put("Edges", item("after", "x", stamp=n(number)))
        # Somebody else comes first, or who was interrupted.
        if number % 2:
            other.submit(store.execute, [after]).result(60)
        else:
            store.execute([after])
        assert stored(store, "Edges", key("after", "x")) == after.item
        if name == "create":
            with suppress(TableNotFound):
                store.execute([DropTable(TABLE.name)])
        # The same call again. It also takes what was left behind, which is for a call of its own to be interrupted.
        call(number)
        if number % 4 == 0:
            observer.check()
        if number % 500 == 0:
            assert descriptors() <= before + 12
    observer.check()
    assert descriptors() <= before + 12
    other.shutdown()
    store.close()
    if where == "file":
        assert [each.name for each in tmp_path.iterdir()] == ["graph.db"], "nothing kept the file from being closed"
        with closing(apsw.Connection(str(path))) as connection:
            assert connection.pragma("integrity_check") == "ok"


def test_what_was_acknowledged_before_an_interrupt_stays(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "graph.db", durability="process")
    store.execute([CreateTable(EDGES)])
    done = 0

    def count(number: int) -> None:
        nonlocal done
        store.execute([Update("Edges", key("A", "count"), (Add(attribute("count"), n(1)),))])
        done += 1

    other = ThreadPoolExecutor(1)
    other.submit(everything, store, "Edges").result(60)
    for tried, _ in enumerate(interrupted(count, step=7), start=1):
        put(store, "Edges", item("after", "x", stamp=n(tried)))
        found = stored(store, "Edges", key("A", "count"))
        assert done <= int((found or {"count": n(0)})["count"]["N"]) <= tried
    other.shutdown()
    store.close()


def test_an_interrupt_while_the_file_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    before = descriptors()

    def use(number: int) -> None:
        with closing(SQLiteStore(path, durability="process")) as store:
            with suppress(Exception):
                store.execute([CreateTable(EDGES)])
            store.execute([Put("Edges", item("A", str(number)))])

    for number in interrupted(use, step=11):
        use(number)
    assert descriptors() <= before + 6
    with closing(SQLiteStore(path)) as store:
        Observer(store).check()
    assert [each.name for each in tmp_path.iterdir()] == ["graph.db"]


@pytest.mark.parametrize("where", ["file", "memory"])
def test_an_interrupted_close_can_be_done_again(tmp_path: Path, where: str) -> None:
    path = tmp_path / "graph.db"
    stores: list[SQLiteStore] = []
    other = ThreadPoolExecutor(1)

    def close(number: int) -> None:
        stores[-1].close()

    def opened() -> SQLiteStore:
        store = SQLiteStore(path if where == "file" else ":memory:", durability="process")
        with suppress(Exception):
            store.execute([CreateTable(EDGES)])
        store.execute([Put("Edges", item("A", "1"))])
        other.submit(store.execute, [Put("Edges", item("A", "2"))]).result(60)
        return store

    stores.append(opened())
    for _ in interrupted(close):
        with suppress(StoreClosed):
            store = stores.pop()
            store.execute([Put("Edges", item("A", "3"))])
        store.close()
        with pytest.raises(StoreClosed):
            store.execute([Get("Edges", key("A", "1"))])
        if where == "file":
            assert [each.name for each in tmp_path.iterdir()] == ["graph.db"]
        stores.append(opened())
    stores.pop().close()
    other.shutdown()


class Person(Node):
    id: str
    name: str = ""


def test_an_interrupt_anywhere_in_a_graph(tmp_path: Path) -> None:
    """The same for all of adjoin, at every eleventh of those instructions: there are very many."""
    with Graph(f"{tmp_path / 'graph.db'}?durability=process", [Person]) as graph:

        def use(number: int) -> None:
            graph.put(Person(id="a", name=str(number)))
            with graph.transaction() as together:
                together.put(Person(id="b", name=str(number)))
                together.put(Person(id="c", name=str(number)))
            graph.update(Person, "a", name=f"{number}.")
            graph.get(Person, "a")
            graph.delete(Person, "a")

        for number in interrupted(use, ALL, step=11):
            graph.put(Person(id="d", name=str(number)))
            assert graph.get(Person, "d") == Person(id="d", name=str(number))
            pair = [graph.get(Person, each) for each in "bc"]
            assert len({each and each.name for each in pair}) == 1


def test_a_call_inside_a_call_is_refused(tmp_path: Path) -> None:
    """A signal handler may come in between any two instructions, while its thread has the turn itself."""
    clock: Callable[[], float] = lambda: 1e9  # noqa: E731 - it changes
    store = SQLiteStore(tmp_path / "graph.db", clock=lambda: clock())
    store.execute([CreateTable(EDGES)])
    told: list[str] = []

    def nested() -> float:
        nonlocal clock
        clock = lambda: 1e9  # noqa: E731
        with pytest.raises(FileBusy, match="inside another call of the same thread") as caught:
            store.execute([Put("Edges", item("A", "inner"))])
        told.append(str(caught.value))
        return 1e9

    clock = nested
    store.execute([Put("Edges", item("A", "outer"))])
    assert len(told) == 1
    assert [each["SK"]["S"] for each in everything(store, "Edges")] == ["outer"]
    store.close()


# --- turns -------------------------------------------------------------------------------------


def leave_behind(turn: Turn) -> None:
    turn.take()


def test_a_turn_that_was_left_behind_goes_to_one_of_those_who_wait() -> None:
    turn = Turn("test")
    leave_behind(turn)
    having: list[int] = []
    left: list[bool] = []

    @holds("test")
    def work(number: int) -> None:
        turn_here = turn
        for _ in range(200):
            left.append(turn_here.take())
            try:
                having.append(number)
                assert having == [number], "one at a time"
                having.clear()
            finally:
                turn_here.release()

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(work, number) for number in range(6)]:
            done.result(60)
    assert sum(left) == 1
    assert len(left) == 1200


def test_a_turn_that_somebody_has_is_waited_for() -> None:
    turn = Turn("test")
    taken, go = threading.Event(), threading.Event()

    @holds("test")
    def have() -> None:
        mine = turn
        mine.take()
        taken.set()
        go.wait(60)
        mine.release()

    @holds("test")
    def wait() -> bool:
        mine = turn
        left = mine.take()
        mine.release()
        return left

    with ThreadPoolExecutor(2) as pool:
        holder = pool.submit(have)
        taken.wait(60)
        waiter = pool.submit(wait)
        # Long enough for several looks.
        assert not threading.Event().wait(0.3)
        assert not waiter.done()
        go.set()
        assert waiter.result(60) is False
        holder.result(60)


def test_a_turn_that_was_lent_belongs_to_the_borrower_while_it_lives() -> None:
    class Borrower:
        pass

    borrower = Borrower()
    turn = Turn("test")
    turn.take()
    turn.lend(borrower)
    assert not turn.try_to_take()
    with ThreadPoolExecutor(1) as pool:
        waiter = pool.submit(turn.take)
        assert not threading.Event().wait(0.2)
        assert not waiter.done()
        del borrower
        assert waiter.result(60) is True
