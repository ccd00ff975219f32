"""What happens by the clock: changes are trimmed and items expire, a few with each write, in pace with writers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import apsw

from adjoin.requests import BatchWrite, Request, TransactWrite
from adjoin.stores.sqlite.connections import Session
from adjoin.stores.sqlite.rows import BrokenRow, Found
from adjoin.stores.sqlite.stored import Decided, Prepared, Stored
from adjoin.stores.sqlite.tables import Table
from adjoin.stores.sqlite.writes import apply

_SECONDS = 5.0
_STEP = 1000
"""At most so many changes, and so many expired items, of a table are removed at a time; more where more than half as
many were written since the last time, so that upkeep overtakes any writer."""
_FIVE_YEARS = 5 * 365 * 86400


class Upkeep:
    """Tells when upkeep is due, by the clock and by how much was written, and does it."""

    def __init__(self, keep_changes: float) -> None:
        self._keep_changes = keep_changes
        self._next = 0.0
        self._written = 0

    def count(self, requests: Iterable[Request]) -> None:
        self._written += sum(map(_items_of, requests))

    def is_due(self, now: float) -> bool:
        return now >= self._next or self._written >= _STEP // 2

    def perform(self, session: Session, now: float) -> None:
        most = max(_STEP, 2 * self._written)
        self._next = now + _SECONDS
        self._written = 0
        for table in session.all_tables():
            trim(session.cursor, table, now - self._keep_changes, most)
            if table.definition.ttl is not None:
                _expire(session.cursor, table, now, most)


def _items_of(request: Request) -> int:
    """How many items a request writes, at the most."""
    return len(request.writes) if isinstance(request, BatchWrite | TransactWrite) else 1


# --- trimming ----------------------------------------------------------------------------------


def trim(cursor: apsw.Cursor, table: Table, before: float, most: int) -> None:
    """Forget the oldest changes, at most `most` of them, that were made before a time."""
    changes = table.changes
    oldest = cursor.execute(f"SELECT at FROM {changes} ORDER BY seq LIMIT 1").get
    if oldest is None or oldest >= before:
        return
    window = f"(SELECT seq, at FROM {changes} ORDER BY seq LIMIT {most})"
    # Only from the start, whatever the clock did: a gap would hide changes from readers.
    cursor.execute(
        # One bound: of two, SQLite would look up the rows below the first, and test each of them against the second.
        f"DELETE FROM {changes} WHERE seq < min((SELECT max(seq) FROM {changes}), coalesce("
        f"(SELECT min(seq) FROM {window} WHERE at >= ?), (SELECT max(seq) + 1 FROM {window})))",
        (before,),
    )


# --- expiry ------------------------------------------------------------------------------------


def expiring(session: Session, now: float) -> bool:
    """Whether an item of some table has expired."""
    return any(_has_expired(session.cursor, table, now) for table in _mortal(session))


def expire_some(session: Session, now: float) -> int:
    """Remove expired items of all tables, a step; answers how many there were."""
    return sum(_expire(session.cursor, table, now, _STEP) for table in _mortal(session))


def _mortal(session: Session) -> list[Table]:
    return [table for table in session.all_tables() if table.definition.ttl is not None]


def _expire(cursor: apsw.Cursor, table: Table, now: float, most: int) -> int:
    """Remove items that have expired, at most `most`; answers how many there were."""
    rows = cursor.execute(
        f"SELECT {table.form.fields} FROM {table.items} INDEXED BY {table.items}_expires"
        " WHERE expires < ? AND expires > ? ORDER BY expires LIMIT ?",
        (now, now - _FIVE_YEARS, most),
    ).fetchall()
    expired = []
    for row in rows:
        found = cast(Found, row)
        second = table.expiry(table.form.item(found))
        if second is None or second >= now:
            # The column says otherwise than the item: nothing is removed because of damage.
            raise BrokenRow
        size, columns = found[0], found[table.form.keys]
        prepared = Prepared(table, (columns[0], columns[1]), None, lambda _: None)
        expired.append(Decided(prepared, Stored(table, size, tuple(columns), None, found), None))
    apply(cursor, expired, now, expired=True)
    return len(rows)


def _has_expired(cursor: apsw.Cursor, table: Table, now: float) -> bool:
    found = cursor.execute(
        f"SELECT 1 FROM {table.items} INDEXED BY {table.items}_expires WHERE expires < ? AND expires > ? LIMIT 1",
        (now, now - _FIVE_YEARS),
    ).get
    return found is not None
