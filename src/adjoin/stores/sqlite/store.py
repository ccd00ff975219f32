"""The embedded store: the dispatch of requests, and the transactions they run in.

A batch's writes share one SQLite transaction, and with it one synchronisation to disk; requests decide
before they write, so a failing one leaves the others alone. Reads are statements of their own, or share
a read transaction, and never wait for writers.

What requests mean lives in `reads`, `writes`, `changes` and `lifecycle`; what happens by the clock, in
`upkeep`; what a file is, in `file`. `background` has the same store behind a few threads, for event loops.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, TypeVar

import apsw

from adjoin.errors import AdjoinError, FileBusy, FileDamaged
from adjoin.requests import (
    BatchGet,
    BatchWrite,
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
from adjoin.stores.sqlite import changes, lifecycle, reads, upkeep, writes
from adjoin.stores.sqlite.connections import Connections, Session
from adjoin.stores.sqlite.dump import dumped
from adjoin.stores.sqlite.file import MEMORY, Durability, file_error, open_file
from adjoin.stores.sqlite.rounds import Round
from adjoin.stores.sqlite.rows import BROKEN
from adjoin.stores.sqlite.tables import Tables
from adjoin.stores.sqlite.turns import Turn, holds
from adjoin.stores.sqlite.upkeep import Upkeep
from adjoin.tables import TableDefinition

T = TypeVar("T")
Read: TypeAlias = Callable[[apsw.Cursor, Tables, Any], Response]
Write: TypeAlias = Callable[[apsw.Cursor, Tables, Any, float], Response]

DAY = 86400.0
_PAUSE = 0.01


def _of_one_instant(read: Read) -> Read:
    def perform(cursor: apsw.Cursor, tables: Tables, request: Any) -> Response:
        cursor.execute("BEGIN")
        try:
            return read(cursor, tables, request)
        finally:
            cursor.execute("COMMIT")

    return perform


_READS: dict[type, Read] = {
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

_TEXTS: dict[type, Read] = {
    **_READS,
    Get: reads.get_text,
    Query: reads.query_text,
    Scan: reads.scan_text,
}

_WRITES: dict[type, Write] = {
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

_CHANGES_OF_TABLES = (CreateTable, UpdateTable, SetTimeToLive, TagTable, DropTable)


class SQLiteStore:
    """A store in one file, or in memory for ":memory:"; safe for many threads and processes.

    `durability` is what a finished write survives: loss of "power", or only the end of the "process".
    `keep_changes` is for how many seconds the change stream reaches back, `patience` for how many
    seconds to wait for another process that writes.
    """

    creates_tables = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        durability: Durability = "power",
        clock: Callable[[], float] = time.time,
        keep_changes: float = DAY,
        patience: float = 30.0,
    ) -> None:
        self._path = os.fspath(path)
        self._clock = clock
        self._writing = Turn("writing")
        self._upkeep = Upkeep(keep_changes)
        self.waits_for_disk = durability == "power" and self._path != MEMORY
        """Whether a write ends when it has reached the disk."""
        self._connect = partial(open_file, self._path, durability, patience)
        # A commit that waits for the disk takes long beside a look at the file and its locks; another does not.
        pause = 0.0 if durability == "power" else _PAUSE
        self._connections = Connections(self._connect, shared=self._path == MEMORY, pause=pause)
        try:
            self._expire(rounds=1)
        except FileBusy:
            # Another process writes, and will see to it.
            pass
        except BaseException:
            self.close()
            raise

    def execute(self, requests: Sequence[Request]) -> list[Response]:
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
                # The way below tells a fault of the request from a table that is out of date.
                pass
        return self._perform(session, requests)

    def text(self, request: Request) -> Response:
        """The response to one read for somebody who sends it on: whole items are JSON text, and were not parsed.

        Such an item is an `orjson.Fragment`, which `orjson.dumps` takes for a value.
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
        """A whole item as JSON text, empty where there is none, for somebody who knows nothing of the name and the key.

        None where that takes a closer look, which `text` has: the table was not met yet, the key may not be one of
        its keys, or something is wrong with the file.
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
        """Performs writes of items at once, and leaves it to the caller to commit them.

        None, and nothing done, where that would take long: while others write to the file, or upkeep is due.
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
        """The table of that name; `TableNotFound` if there is none."""
        return self._definition(name, as_known=False)

    def known_definition(self, name: str) -> TableDefinition:
        """The same, as it was when the store last looked; another process may have changed it since."""
        return self._definition(name, as_known=True)

    def _definition(self, name: str, as_known: bool) -> TableDefinition:
        def look(session: Session) -> TableDefinition:
            if not as_known:
                session.forget_stale_tables()
            return session.table(name).definition

        return self._with_session(look)

    @contextmanager
    def dump(self, name: str) -> Iterator[Iterator[list[bytes]]]:
        """All items of a table as they are at this instant, as JSON texts, in pieces; others may write meanwhile."""
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

    def _dumped(self, name: str) -> list[list[bytes]]:
        return self._with_session(lambda session: list(dumped(session.connection, session.table(name))))

    def sweep(self) -> int:
        """Remove every expired item now, rather than by and by; answers how many there were."""
        return self._expire()

    def close(self) -> None:
        self._connections.close()

    # --- performing ----------------------------------------------------------------------------

    @holds("session")
    def _with_session(self, work: Callable[..., T], *arguments: Any) -> T:
        """What some work with this thread's session answers; what SQLite raises there becomes an error of ours."""
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
        writing: list[tuple[int, Write, Request]] = []
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
        writing: list[tuple[int, Write, Request]],
        outcomes: list[Any],
        now: float,
    ) -> None:
        # First, so that what is written expired is there for a while, as it is with the service.
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
        turn.take()
        try:
            session.cursor.execute("BEGIN IMMEDIATE")
            try:
                # Another process may have changed a table: what is written must fit it as it is now.
                session.forget_stale_tables()
                result = work(self._clock())
                session.commit()
            except BaseException:
                # What was met inside the transaction may never have been.
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
        """The response, or the error if the request is at fault."""
        try:
            return perform(session.cursor, session.table, *arguments)
        except AdjoinError as error:
            fault: Exception = error
        except apsw.SQLError as error:
            # What a stale table leads to; anything else is a fault of adjoin itself.
            fault = error
        if session.forget_stale_tables():
            # Another process dropped the table, or made it anew, since this store met it. A request
            # that fails has done nothing, so it can be tried again.
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
        """Remove expired items of all tables in steps, until there are none or for so many rounds."""

        def expire(session: Session) -> int:
            total = done = 0
            while (rounds is None or done < rounds) and upkeep.expiring(session, self._clock()):
                total += self._in_transaction(session, partial(upkeep.expire_some, session))
                done += 1
            return total

        return self._with_session(expire)
