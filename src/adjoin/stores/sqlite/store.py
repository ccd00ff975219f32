"""The embedded store: dispatches requests, opens their transactions, and does upkeep.

The writes of a batch share one SQLite transaction, and so one synchronisation to disk. Each request decides before it
writes, so one that fails does not affect the others. Reads are single statements, or share a read transaction, and
never wait for writers. A group commit has two steps: one thread performs the writes, and a thread that may wait for the
disk commits them.

`reads`, `writes`, `changes` and `lifecycle` perform the requests, and `upkeep` removes what is due; `file` opens the
file. `background` has the same store for asynchronous programs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import apsw

from adjoin.errors import AdjoinError, FileBusy, FileDamaged
from adjoin.expressions import length_of
from adjoin.late import later
from adjoin.requests import (
    BatchGet,
    BatchWrite,
    Check,
    CreateTable,
    Delete,
    DescribeTable,
    DropTable,
    Get,
    ListStreams,
    ListTables,
    ListTags,
    Put,
    Query,
    ReadChanges,
    Request,
    Response,
    Scan,
    SetTimeToLive,
    TagTable,
    TransactGet,
    TransactWrite,
    Update,
    UpdateTable,
)
from adjoin.stores.sqlite import changes, lifecycle, loading, reads, upkeep, writes
from adjoin.stores.sqlite.connections import Connections, Session
from adjoin.stores.sqlite.file import MEMORY, Durability, file_error, located, open_file
from adjoin.stores.sqlite.loading import Ready
from adjoin.stores.sqlite.locks import Turn, holds
from adjoin.stores.sqlite.reads import dumped
from adjoin.stores.sqlite.rows import BROKEN
from adjoin.stores.sqlite.tables import FindTable
from adjoin.tables import TableDefinition
from adjoin.values import Item

if TYPE_CHECKING:
    from adjoin.stores.dynamodb import protocol
else:
    protocol = later("adjoin.stores.dynamodb.protocol")

# --- rounds ------------------------------------------------------------------------------------


class Round:
    """Writes that are performed but not committed yet. `outcomes` has the response or the error of each.

    No other call can write until `commit` is called, so it must be called.
    """

    __slots__ = ("__weakref__", "_fault", "_session", "_writing", "outcomes")

    def __init__(
        self,
        session: Session,
        writing: Turn,
        outcomes: list[Any],
        fault: Callable[[Session, Exception], AdjoinError],
    ) -> None:
        """Both turns belong to the round from now on; `fault` converts an error of SQLite into one of adjoin."""
        self._session = session
        self._writing = writing
        self._fault = fault
        self.outcomes = outcomes
        session.lend(self)
        writing.lend(self)

    def commit(self) -> None:
        """Commits all writes, or none if it fails."""
        try:
            self._session.commit()
        except apsw.Error as error:
            raise self._fault(self._session, error) from error
        except BaseException:
            self._session.mend()
            raise
        finally:
            self._session.give_back()
            self._writing.give_back()


# --- upkeep ------------------------------------------------------------------------------------


_SECONDS = 5.0


class Upkeep:
    """Does upkeep when it is due, by the clock and by the number of writes; `upkeep` says what it removes."""

    def __init__(self, keep_changes: float) -> None:
        self._keep_changes = keep_changes
        self._next = 0.0
        self._written = 0

    def count(self, requests: Iterable[Request]) -> None:
        self._written += sum(map(_items_of, requests))

    def is_due(self, now: float) -> bool:
        return now >= self._next or self._written >= upkeep.STEP // 2

    def perform(self, session: Session, now: float) -> None:
        most = max(upkeep.STEP, 2 * self._written)
        self._next = now + _SECONDS
        self._written = 0
        for table in session.all_tables():
            upkeep.trim(session.cursor, table, now - self._keep_changes, most)
            if table.definition.ttl is not None:
                upkeep.expire(session.cursor, table, now, most)


def _items_of(request: Request) -> int:
    """The largest number of items that a request may write."""
    return len(request.writes) if isinstance(request, BatchWrite | TransactWrite) else 1


# --- the store ---------------------------------------------------------------------------------


T = TypeVar("T")
ReadFunction: TypeAlias = Callable[[apsw.Cursor, FindTable, Any], Response]
WriteFunction: TypeAlias = Callable[[apsw.Cursor, FindTable, Any, float], Response]

DAY = 86400.0
_PAUSE = 0.01


def _of_one_instant(read: ReadFunction) -> ReadFunction:
    def perform(cursor: apsw.Cursor, tables: FindTable, request: Any) -> Response:
        cursor.execute("BEGIN")
        try:
            return read(cursor, tables, request)
        finally:
            cursor.execute("COMMIT")

    return perform


_READS: dict[type, ReadFunction] = {
    Get: reads.get,
    Query: reads.query,
    Scan: reads.scan,
    BatchGet: _of_one_instant(reads.batch_get),
    TransactGet: _of_one_instant(reads.transact_get),
    DescribeTable: lifecycle.describe,
    ListTables: lifecycle.list_tables,
    ListTags: lifecycle.list_tags,
    ListStreams: lifecycle.list_streams,
    ReadChanges: _of_one_instant(changes.read_changes),
}

_TEXTS: dict[type, ReadFunction] = {
    **_READS,
    Get: reads.get_text,
    Query: reads.query_text,
    Scan: reads.scan_text,
}

_WRITES: dict[type, WriteFunction] = {
    Put: writes.put,
    Update: writes.update,
    Delete: writes.delete,
    BatchWrite: writes.batch_write,
    TransactWrite: writes.transact_write,
    CreateTable: lifecycle.create,
    UpdateTable: lifecycle.update,
    SetTimeToLive: lifecycle.set_time_to_live,
    TagTable: lifecycle.tag,
    DropTable: lifecycle.drop,
}

_SURELY_SHORT = 80
"""Expressions of this length fit into DynamoDB's 4 KB of text, since each name, value and operator takes at most 45."""


def _condition_fits(request: Put | Delete | Check) -> bool:
    return request.condition is None or length_of((request.condition,)) <= _SURELY_SHORT


def _update_fits(request: Update) -> bool:
    return length_of((request.condition, *request.actions)) <= _SURELY_SHORT


def _page_fits(request: Query | Scan) -> bool:
    return (request.filter is None or length_of((request.filter,)) <= _SURELY_SHORT) and _projection_fits(request)


def _projection_fits(request: Get | Query | Scan) -> bool:
    return request.projection is None or length_of(request.projection) <= _SURELY_SHORT


_FIT: dict[type, Callable[[Any], bool]] = {
    Put: _condition_fits,
    Delete: _condition_fits,
    Check: _condition_fits,
    Update: _update_fits,
    TransactWrite: lambda request: all(map(_fits, request.writes)),
    Get: _projection_fits,
    BatchGet: lambda request: all(map(_projection_fits, request.gets)),
    TransactGet: lambda request: all(map(_projection_fits, request.gets)),
    Query: _page_fits,
    Scan: _page_fits,
}


def _fits(request: Any) -> bool:
    """Whether the expressions of a request surely fit; False for those that do not, and for a few that do."""
    fits = _FIT.get(type(request))
    return fits is None or fits(request)


_CHANGES_OF_TABLES = (CreateTable, UpdateTable, SetTimeToLive, TagTable, DropTable)


class SQLiteStore:
    """A store in one file, or in memory for ":memory:"; safe for many threads and processes.

    `durability` is what a finished write survives: loss of "power", or only the end of the "process".
    `keep_changes` is for how many seconds the change stream reaches back, `patience` for how many
    seconds to wait for another process that writes.
    """

    creates_tables = True
    system = "sqlite"

    def __init__(
        self,
        path: str | os.PathLike[str],
        durability: Durability = "power",
        clock: Callable[[], float] = time.time,
        keep_changes: float = DAY,
        patience: float = 30.0,
    ) -> None:
        self._path = located(path)
        self._clock = clock
        self._writing = Turn("writing")
        self._upkeep = Upkeep(keep_changes)
        self.waits_for_disk = durability == "power" and self._path != MEMORY
        """Whether a write returns only after it has reached the disk."""
        self._connect = partial(open_file, self._path, durability, patience)
        # A check of the file and its locks costs little beside a commit that waits for the disk, but much beside one
        # that does not; so with "process" durability it is made only now and then.
        pause = 0.0 if durability == "power" else _PAUSE
        self._connections = Connections(self._connect, shared=self._path == MEMORY, pause=pause)
        try:
            self._expire(rounds=1)
        except FileBusy:
            # Another process writes, and its upkeep will remove expired items.
            pass
        except BaseException:
            self.close()
            raise

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        for request in requests:
            if not _fits(request):
                # Writing the request as DynamoDB is sent it refuses an expression that is too large.
                protocol.OPERATIONS[type(request)].payload(request)
        outcomes = self.outcomes(requests)
        for outcome in outcomes:
            if isinstance(outcome, AdjoinError):
                raise outcome
        return outcomes

    def outcomes(self, requests: Sequence[Request]) -> list[Any]:
        """For each request its response, or its error; writes are committed together."""
        return self._with_session(self._outcomes, requests)

    def _outcomes(self, session: Session, requests: Sequence[Request]) -> list[Any]:
        if len(requests) == 1 and (read := _READS.get(type(requests[0]))):
            try:
                return [read(session.cursor, session.table, requests[0])]
            except (AdjoinError, apsw.SQLError):
                # `_perform` distinguishes a faulty request from a table that another process has changed.
                pass
        return self._perform(session, requests)

    def text(self, request: Request) -> Response:
        """The response to one read, for a caller that sends it on: whole items are JSON text and were not parsed.

        Such an item is an `orjson.Fragment`, which `orjson.dumps` accepts as a value.
        """
        return self._with_session(self._text, request)

    def _text(self, session: Session, request: Request) -> Response:
        read = _TEXTS[type(request)]
        try:
            return read(session.cursor, session.table, request)
        except (AdjoinError, apsw.SQLError):
            # As in `_outcomes`.
            outcome: Response | AdjoinError = self._attempt(read, session, request)
        if isinstance(outcome, AdjoinError):
            raise outcome
        return outcome

    @holds("session")
    def item_text(self, name: Any, key: Any) -> bytes | None:
        """A whole item as JSON text, or b"" if there is none; the name and the key need not have been checked.

        None if the general code in `text` is needed: the table is not known yet, the key may not fit the table, or
        something is wrong with the file.
        """
        session = self._connections.acquire()
        try:
            table = session.known.get(name)
            if table is None or table.has_binary_key:
                return None
            found = session.cursor.execute(table.get_sql, table.locate(key)).get
            return b"" if found is None else table.form.text(found)
        except (AdjoinError, TypeError, apsw.Error, *BROKEN):
            return None
        except BaseException:
            session.mend()
            raise
        finally:
            session.release()

    @holds("session", "writing")
    def begin(self, requests: Sequence[Request]) -> Round | None:
        """Performs writes of items without waiting, and leaves the commit to the caller.

        Returns None and does nothing if it would take long: while others write to the file, or if upkeep is due.
        """
        now = self._clock()
        turn = self._writing
        if self._upkeep.is_due(now) or not turn.try_to_take():
            return None
        begun = None
        try:
            session = self._connections.acquire_apart()
            try:
                begun = self._begin(session, requests, now)
                return begun
            except apsw.BusyError:
                session.fresh_cursor()
                return None
            except (apsw.Error, *BROKEN) as error:
                session.known.clear()
                raise self._failure(session, error) from error
            except BaseException:
                begun = None
                session.mend()
                raise
            finally:
                if begun is None:
                    session.give_back()
        finally:
            if begun is None:
                turn.give_back()

    def _begin(self, session: Session, requests: Sequence[Request], now: float) -> Round | None:
        if session.needs_checkpoint:
            session.needs_checkpoint = False
            return None
        session.cursor.execute("BEGIN IMMEDIATE")
        session.forget_stale_tables()
        outcomes = [self._attempt(_WRITES[type(each)], session, each, now) for each in requests]
        self._upkeep.count(requests)
        return Round(session, self._writing, outcomes, self._failure)

    def definition(self, name: str) -> TableDefinition:
        """The definition of a table; raises `TableNotFound` if it does not exist."""
        return self._definition(name, as_known=False)

    def known_definition(self, name: str) -> TableDefinition:
        """The same, as the store last read it; another process may have changed the table since."""
        return self._definition(name, as_known=True)

    def _definition(self, name: str, as_known: bool) -> TableDefinition:
        def look(session: Session) -> TableDefinition:
            if not as_known:
                session.forget_stale_tables()
            return session.table(name).definition

        return self._with_session(look)

    @contextmanager
    def dump(self, name: str) -> Iterator[Iterator[list[bytes]]]:
        """All items of a table at one instant, as JSON texts, in pieces; others may write meanwhile."""
        if self._path == MEMORY:
            yield iter(self._dumped(name))
            return
        session = Session(self._connect(), {})
        try:
            session.cursor.execute("BEGIN")
            yield dumped(session.connection, session.table(name))
        except (apsw.Error, *BROKEN) as error:
            raise self._failure(session, error) from error
        finally:
            session.close()

    def stream_end(self, name: str) -> str | None:
        """The position after the newest change of a table; None if it keeps no changes, or has had none."""
        return self._with_session(lambda session: changes.newest_position(session.cursor, session.table(name)))

    def ready(self, name: str, items: Sequence[Item]) -> Ready:
        """Checks items that are to be loaded into a table, and makes their rows; `load` writes these."""
        return self._with_session(lambda session: loading.ready(session.table(name), items))

    def load(self, name: str, pieces: Sequence[Ready]) -> bool:
        """Puts items that are ready, all in one transaction: the same as single puts, and faster.

        Returns whether all of them were new; it is fastest if most are.
        """

        def work(session: Session, now: float) -> bool:
            if self._upkeep.is_due(now):
                self._upkeep.perform(session, now)
            table = session.table(name)
            return loading.write(session.cursor, table, loading.fitting(table, pieces), now)

        def perform(session: Session) -> bool:
            with loading.memory_for_loads(session.connection):
                were_new: bool = self._in_transaction(session, partial(work, session))
            return were_new

        return self._with_session(perform)

    def _dumped(self, name: str) -> list[list[bytes]]:
        return self._with_session(lambda session: list(dumped(session.connection, session.table(name))))

    def sweep(self) -> int:
        """Removes all expired items now; returns how many. Without it, upkeep removes them gradually."""
        return self._expire()

    def close(self) -> None:
        self._connections.close()

    # --- performing ----------------------------------------------------------------------------

    @holds("session")
    def _with_session(self, work: Callable[..., T], *arguments: Any) -> T:
        """Runs `work` with this thread's session; converts errors of SQLite into adjoin's."""
        session = self._connections.acquire()
        try:
            return work(session, *arguments)
        except AdjoinError:
            raise
        except (apsw.Error, *BROKEN) as error:
            raise self._failure(session, error) from error
        except BaseException:
            session.mend()
            raise
        finally:
            session.release()

    def _perform(self, session: Session, requests: Sequence[Request]) -> list[Any]:
        outcomes: list[Any] = [None] * len(requests)
        writing: list[tuple[int, WriteFunction, Request]] = []
        for at, request in enumerate(requests):
            write = _WRITES.get(type(request))
            if write is None:
                outcomes[at] = self._attempt(_READS[type(request)], session, request)
            else:
                writing.append((at, write, request))
        if writing:
            self._in_transaction(session, partial(self._write, session, writing, outcomes))
        return outcomes

    def _write(
        self,
        session: Session,
        writing: list[tuple[int, WriteFunction, Request]],
        outcomes: list[Any],
        now: float,
    ) -> None:
        # Upkeep runs before the writes: an item written with a past TTL stays visible for a while, as on DynamoDB.
        self._upkeep.count(request for _, _, request in writing)
        if self._upkeep.is_due(now):
            self._upkeep.perform(session, now)
        for at, write, request in writing:
            outcomes[at] = self._attempt(write, session, request, now)
            if isinstance(request, _CHANGES_OF_TABLES):
                session.know_alone()

    @holds("writing")
    def _in_transaction(self, session: Session, work: Callable[[float], Any]) -> Any:
        turn = self._writing
        was_left = turn.take()
        try:
            if was_left:
                self._connections.mend_apart()
            session.cursor.execute("BEGIN IMMEDIATE")
            try:
                # Another process may have changed a table, and the writes must fit its present definition.
                session.forget_stale_tables()
                result = work(self._clock())
                session.commit()
            except BaseException:
                # Tables that were read inside the transaction may not exist, because it is rolled back.
                session.know_together()
                session.known.clear()
                if session.connection.in_transaction:
                    session.cursor.execute("ROLLBACK")
                raise
            finally:
                session.know_together()
            return result
        finally:
            turn.release()

    def _attempt(self, perform: Callable[..., Response], session: Session, *arguments: Any) -> Any:
        """The response, or the error if the request itself is at fault."""
        try:
            return perform(session.cursor, session.table, *arguments)
        except AdjoinError as error:
            fault: Exception = error
        except apsw.SQLError as error:
            # The SQL of a stale table causes this; any other cause is a bug of adjoin.
            fault = error
        if session.forget_stale_tables():
            # Another process dropped, changed or recreated a table since this store read it. A request that fails has
            # done nothing, so it can be tried again.
            try:
                return perform(session.cursor, session.table, *arguments)
            except AdjoinError as error:
                return error
        if isinstance(fault, AdjoinError):
            return fault
        raise fault

    def _failure(self, session: Session, error: Exception) -> AdjoinError:
        session.fresh_cursor()
        if isinstance(error, apsw.Error):
            return file_error(error, self._path)
        return FileDamaged(f"{self._path}: an item or a table in the file is broken; restore it from a backup")

    # --- expiry --------------------------------------------------------------------------------

    def _expire(self, rounds: int | None = None) -> int:
        """Removes expired items of all tables in steps, until none are left or for at most `rounds` steps."""

        def expire(session: Session) -> int:
            total = done = 0
            while (rounds is None or done < rounds) and upkeep.expiring(session, self._clock()):
                total += self._in_transaction(session, partial(upkeep.expire_some, session))
                done += 1
            return total

        return self._with_session(expire)
