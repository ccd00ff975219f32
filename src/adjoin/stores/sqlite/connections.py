"""Connections of one store: one for each thread, and one apart from them for rounds of writes; none is
carried over a fork, and all are closed in the end.

SQLite keeps the locks of a process in memory, so a child process that inherits an open file believes
in locks it does not hold, and can lose data. Therefore all connections are closed before a fork and
opened again on next use, on both sides. (A fork that Python is not told of is noticed by the process
id; then the inherited connections are left alone, neither used nor closed.)

A store in memory has one connection, used by one thread at a time; a forked child has a copy of it.

An interrupt may end a call anywhere. A session that it may have spoilt is closed, and the thread gets another; who
comes to a session checks that nothing is left of the call before.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable

import apsw

from adjoin.errors import StoreClosed, TableNotFound
from adjoin.stores.sqlite.catalogue import find_table, table_names
from adjoin.stores.sqlite.file import CHECKPOINT_PAGES
from adjoin.stores.sqlite.hold import Hold, close_unused
from adjoin.stores.sqlite.keys import segment_of
from adjoin.stores.sqlite.tables import Table
from adjoin.stores.sqlite.turns import Turn, holds

_CLOSED = "the store was closed; open it again to use it"


class Session(Turn):
    """A connection in use by one thread at a time, whose turn it is, and the tables the store has met."""

    def __init__(self, connection: apsw.Connection, known: dict[str, Table], hold: Hold | None = None) -> None:
        super().__init__("session")
        self._hold = hold
        self.connection = connection
        self.cursor = connection.cursor()
        self.known = self._shared = known
        self.open = True
        self.needs_checkpoint = False
        """Of a session that makes none itself: whether the log has become long."""
        connection.create_scalar_function("adjoin_segment", segment_of, 2, deterministic=True)

    def table(self, name: str) -> Table:
        try:
            return self.known[name]
        except KeyError:
            found = find_table(self.connection, name)
        if found is None:
            there = ", ".join(table_names(self.connection)) or "none"
            place = self.connection.filename or "this store"
            raise TableNotFound(f"{place} has no table {name}; the tables there are: {there}")
        self.known[name] = found
        return found

    def know_alone(self) -> None:
        """From here to the end of a transaction that changed tables, know only what it finds itself.

        Other threads go on to meet the tables as they were, and share what they know.
        """
        self.known = {}

    def know_together(self) -> None:
        self.known = self._shared

    def commit(self) -> None:
        """All that was written, unless nobody will find it."""
        if self._hold is not None:
            self._hold.check_before_commit()
        self.cursor.execute("COMMIT")

    def all_tables(self) -> list[Table]:
        self.forget_stale_tables()
        return [self.table(name) for name in table_names(self.connection)]

    def forget_stale_tables(self) -> bool:
        """Forget tables met before some table was created or dropped; answers whether there were any."""
        version = self.cursor.execute("PRAGMA schema_version").get
        stale = [name for name, table in list(self.known.items()) if table.version != version]
        for name in stale:
            self.known.pop(name, None)
        return bool(stale)

    def leave_checkpoints(self) -> None:
        """Moving the log into the file takes long, and is left to a session whose thread may wait."""

        def note(connection: apsw.Connection, name: str, pages: int) -> int:
            self.needs_checkpoint = pages >= CHECKPOINT_PAGES
            return apsw.SQLITE_OK

        self.connection.set_wal_hook(note)

    def fresh_cursor(self) -> None:
        """Put an end to whatever statement an error left unfinished."""
        self.cursor.close(True)
        self.cursor = self.connection.cursor()
        if self.connection.in_transaction:
            self.cursor.execute("ROLLBACK")

    def mend(self) -> None:
        """Undo whatever an interrupted call left unfinished; for whose turn it is."""
        # What was met inside a transaction may never have been.
        self.know_together()
        self.known.clear()
        if self.connection.filename:
            self.close()
        else:
            self.fresh_cursor()

    def close(self) -> None:
        self.open = False
        self.connection.close(True)


class Connections:
    """Hands each thread its session. `connect` opens a connection; `shared` says all threads get one.

    `pause` is for how many seconds a writer may rely on what it saw last of the file and its locks.
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
        """Of who opens or closes sessions."""
        # Before the sessions, so that it ends before them in a store that nobody closes.
        self._hold: Hold | None = None
        self._local = threading.local()
        self._shared: Session | None = None
        self._apart: Session | None = None
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()
        self._kept: list[Turn] = []

    @holds("session")
    def acquire(self) -> Session:
        """The thread's session, whose turn it is; whoever asks releases it, in a function that is marked to hold it."""
        while True:
            session = self._current()
            was_left = session.take()
            if session.open:
                if not (was_left or session.connection.in_transaction):
                    return session
                session.mend()
                if session.open:
                    return session
            # A fork or a close came in between, or an interrupt before.
            session.release()

    @holds("session")
    def acquire_apart(self) -> Session:
        """The session that belongs to no thread and waits for nobody, likewise. In memory there is only one."""
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
        """Of the file that the others have open, not of one that took its place."""
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
        """Close every session, each when the call that uses it has ended. What was interrupted can be done again."""
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
        """Wait until nobody uses the store, close its sessions, and let nobody use it."""
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
