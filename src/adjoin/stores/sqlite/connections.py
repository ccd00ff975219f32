"""Connections of one store: one per thread, and one apart from them for group commits. No connection survives a fork,
and all are closed in the end.

SQLite keeps the locks of a process in memory, so a child process that inherits an open file believes that it has locks
which it does not have, and can lose data. Therefore all connections are closed before a fork, and opened again on next
use in parent and child. (If Python does not notice a fork, the process id shows it; the inherited connections are then
neither used nor closed.)

A store in memory has one connection, which one thread uses at a time; a forked child has a copy of it.

An interrupt may end a call anywhere. A session that may be damaged by it is closed, and the thread gets a new one.
Every caller that takes a session checks that nothing is left of an interrupted call.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress

import apsw

from adjoin.errors import StoreClosed, TableNotFound
from adjoin.stores.sqlite.catalogue import find_table, table_names
from adjoin.stores.sqlite.file import CHECKPOINT_PAGES
from adjoin.stores.sqlite.locks import Hold, Turn, close_unused, holds
from adjoin.stores.sqlite.rows import segment_of
from adjoin.stores.sqlite.tables import Table

_CLOSED = "the store was closed; open it again to use it"


class Session(Turn):
    """A connection that one thread at a time uses, and the tables that the store knows."""

    def __init__(self, connection: apsw.Connection, known: dict[str, Table], hold: Hold | None = None) -> None:
        super().__init__("session")
        self._hold = hold
        self.connection = connection
        self.cursor = connection.cursor()
        self.known = self._shared = known
        self.open = True
        self.needs_checkpoint = False
        """Whether the WAL has become long; only for a session that makes no checkpoints itself."""
        connection.create_scalar_function("adjoin_segment", segment_of, deterministic=True)

    def table(self, name: str) -> Table:
        try:
            return self.known[name]
        except KeyError:
            found = find_table(self.connection, name)
        if found is None:
            there = ", ".join(table_names(self.connection)) or "none"
            place = self.connection.filename or "this store"
            raise TableNotFound(f"{place} has no table {name}; its tables are: {there}")
        self.known[name] = found
        return found

    def know_alone(self) -> None:
        """Until a transaction that changed tables ends, uses only tables that this session finds itself.

        Other threads still see the tables as they were, and share what they know.
        """
        self.known = {}

    def know_together(self) -> None:
        self.known = self._shared

    def commit(self) -> None:
        """Commits, after a check that the file is still the one that was opened."""
        if self._hold is not None:
            self._hold.check_before_commit()
        self.cursor.execute("COMMIT")

    def all_tables(self) -> list[Table]:
        self.forget_stale_tables()
        return [self.table(name) for name in table_names(self.connection)]

    def forget_stale_tables(self) -> bool:
        """Forgets tables that were read before any table was created, changed or dropped; returns whether any were."""
        version = self.cursor.execute("PRAGMA schema_version").get
        stale = [name for name, table in list(self.known.items()) if table.version != version]
        for name in stale:
            self.known.pop(name, None)
        return bool(stale)

    def leave_checkpoints(self) -> None:
        """Leaves checkpoints to other sessions: they take long, and the thread of this session must not wait."""

        def note(connection: apsw.Connection, name: str, pages: int) -> int:
            self.needs_checkpoint = pages >= CHECKPOINT_PAGES
            return apsw.SQLITE_OK

        self.connection.set_wal_hook(note)

    def fresh_cursor(self) -> None:
        """Ends a statement or a transaction that an error left unfinished."""
        self.cursor.close(True)
        self.cursor = self.connection.cursor()
        if self.connection.in_transaction:
            self.cursor.execute("ROLLBACK")

    def mend(self) -> None:
        """Undoes what an interrupted call left unfinished; only for the caller that has the turn."""
        # Tables that were read inside a transaction may not exist, because it was rolled back.
        self.know_together()
        self.known.clear()
        if self.connection.filename:
            self.close()
        else:
            self.fresh_cursor()

    def close(self) -> None:
        self.open = False
        if self._hold is not None:
            self._leave_log(self._hold)
        self.connection.close(True)

    def _leave_log(self, hold: Hold) -> None:
        """Before the end: sees to it that nobody takes the WAL of this file for that of another.

        SQLite copies the WAL into the file and removes it, when the last connection is closed. It does not if the file
        is no longer at its path. But then a file that is put in its place would get what is in the WAL.
        """
        with suppress(apsw.Error):
            if not hold.has_its_log():
                self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            elif hold.is_elsewhere():
                self.connection.set_busy_timeout(0)
                self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


class Connections:
    """Gives each thread its session. `connect` opens a connection; `shared`: all threads share one session.

    `pause` is for how many seconds a writer may rely on its last check of the file and its locks.
    """

    def __init__(self, connect: Callable[[], apsw.Connection], shared: bool, pause: float = 0.0) -> None:
        self._connect = connect
        self._pause = pause
        self._is_shared = shared
        self._closed = False
        self._known: dict[str, Table] = {}
        self._start()
        _ALL.add(self)

    def _start(self) -> None:
        self._pid = os.getpid()
        self._gate = Turn("gate")
        """Guards the opening and closing of sessions."""
        # Defined before the sessions, so that in a store that is never closed it is finalized before them.
        self._hold: Hold | None = None
        self._local = threading.local()
        self._shared: Session | None = None
        self._apart: Session | None = None
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()
        self._kept: list[Turn] = []

    @holds("session")
    def acquire(self) -> Session:
        """The thread's session with its turn; the caller releases it, and is marked with `holds("session")`."""
        while True:
            session = self._current()
            was_left = session.take()
            if session.open:
                if not (was_left or session.connection.in_transaction):
                    return session
                session.mend()
                if session.open:
                    return session
            # A fork or `close` happened in between, or an interrupted call had damaged it.
            session.release()

    @holds("session")
    def acquire_apart(self) -> Session:
        """The session that belongs to no thread and never waits for a lock of the file. In memory there is only one."""
        if self._is_shared:
            return self.acquire()
        while True:
            if self._pid != os.getpid():
                self._abandon()
            session = self._apart
            if session is None or not session.open:
                session = self._open_apart()
            was_left = session.take()
            if session.open:
                if not (was_left or session.connection.in_transaction):
                    return session
                session.mend()
            session.release()

    @holds("session")
    def mend_apart(self) -> None:
        """Ends the transaction of a round that an interrupt took from its caller.

        Only the caller that has the writing turn may do this.
        """
        session = self._apart
        if session is None:
            return
        session.take()
        try:
            if session.open and session.connection.in_transaction:
                session.mend()
        finally:
            session.release()

    @holds("gate")
    def _open_apart(self) -> Session:
        gate = self._gate
        gate.take()
        try:
            if self._closed:
                raise StoreClosed(_CLOSED)
            session = self._new_session()
            session.connection.set_busy_handler(None)
            session.leave_checkpoints()
            self._sessions.add(session)
            self._apart = session
            return session
        finally:
            gate.release()

    def _current(self) -> Session:
        if self._pid != os.getpid():
            self._abandon()
        try:
            session: Session = self._local.session
            if session.open:
                return session
        except AttributeError:
            pass
        return self._open()

    @holds("gate")
    def _open(self) -> Session:
        gate = self._gate
        gate.take()
        try:
            if self._closed:
                raise StoreClosed(_CLOSED)
            if self._is_shared and self._shared is not None:
                session = self._shared
            else:
                session = self._new_session()
                self._sessions.add(session)
                if self._is_shared:
                    self._shared = session
            self._local.session = session
            return session
        finally:
            gate.release()

    def _new_session(self) -> Session:
        """A session on the file that the other sessions have open; raises if another file has replaced it."""
        if self._is_shared:
            return Session(self._connect(), self._known)
        if self._hold is not None:
            self._hold.check()
        connection = self._connect()
        if self._hold is None:
            self._hold = Hold(connection.filename, self._pause)
        self._hold.check()
        return Session(connection, self._known, self._hold)

    def _abandon(self) -> None:
        if self._is_shared:
            self._pid = os.getpid()
        else:
            _ABANDONED.extend(self._sessions)
            self._start()

    @holds("gate")
    def close(self) -> None:
        """Closes every session when the call that uses it has ended; may be called again after an interrupt."""
        if self._pid != os.getpid():
            self._abandon()
        gate = self._gate
        gate.take()
        try:
            self._closed = True
            self._let_go()
            for session in list(self._sessions):
                self._close_session(session)
            self._sessions.clear()
            self._shared = None
            self._hold = None
            close_unused()
        finally:
            gate.release()

    def _let_go(self) -> None:
        if self._hold is not None:
            self._hold.let_go()

    @holds("session")
    def _close_session(self, session: Session) -> None:
        session.take()
        try:
            session.close()
        finally:
            session.release()

    # --- around a fork -------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Waits until no call uses the store, closes its sessions, and blocks further calls."""
        self._keep(self._gate)
        if self._shared is not None:
            self._keep(self._shared)
            return
        self._let_go()
        for session in list(self._sessions):
            self._keep(session)
            session.close()
        self._sessions.clear()
        self._hold = None
        close_unused()

    @holds("gate", "session")
    def _keep(self, turn: Turn) -> None:
        turn.take()
        turn.lend(self)
        self._kept.append(turn)

    def after_fork(self) -> None:
        self._pid = os.getpid()
        while self._kept:
            self._kept.pop().give_back()


_ALL: weakref.WeakSet[Connections] = weakref.WeakSet()
_ABANDONED: list[Session] = []
_FORKING: list[Connections] = []


def _before_fork() -> None:
    for connections in list(_ALL):
        _FORKING.append(connections)
        connections.before_fork()


def _after_fork() -> None:
    while _FORKING:
        _FORKING.pop().after_fork()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
