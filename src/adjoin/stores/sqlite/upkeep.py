"""Upkeep: removes changes that are older than the stream reaches back, and items that have expired.

The store does it in the transaction of a write, when it is due, so that no process of its own is needed. So that no
write takes long, a step removes a limited number. The limit is at least twice the number of writes since the step
before: so upkeep is faster than any writer, and a file does not grow with its history.

What is removed by expiry goes into the change log as a deletion by the service, as on DynamoDB. Items that expired more
than five years ago stay, because DynamoDB takes such a value for a mistake.
"""

from __future__ import annotations

from typing import cast

import apsw

from adjoin.stores.sqlite.connections import Session
from adjoin.stores.sqlite.rows import BrokenRow, FoundRow
from adjoin.stores.sqlite.tables import Table
from adjoin.stores.sqlite.writes import Decided, Prepared, StoredItem, apply

STEP = 1000
"""The most changes, and the most expired items, of a table that are removed at a time, if few were written."""
_FIVE_YEARS = 5 * 365 * 86400

# --- changes -----------------------------------------------------------------------------------


def trim(cursor: apsw.Cursor, table: Table, before: float, most: int) -> None:
    """Removes the oldest changes that were made before a time, at most `most` of them."""
    changes = table.changes
    oldest = cursor.execute(f"SELECT at FROM {changes} ORDER BY seq LIMIT 1").get
    if oldest is None or oldest >= before:
        return
    window = f"(SELECT seq, at FROM {changes} ORDER BY seq LIMIT {most})"
    # Only from the start, also if the clock was set back: a gap would hide changes from readers.
    cursor.execute(
        # One bound: with two, SQLite would look up all rows below the first and test each against the second.
        f"DELETE FROM {changes} WHERE seq < min((SELECT max(seq) FROM {changes}), coalesce("
        f"(SELECT min(seq) FROM {window} WHERE at >= ?), (SELECT max(seq) + 1 FROM {window})))",
        (before,),
    )


# --- expired items -----------------------------------------------------------------------------


def expiring(session: Session, now: float) -> bool:
    """Whether an item of some table has expired."""
    return any(_has_expired(session.cursor, table, now) for table in _mortal(session))


def expire_some(session: Session, now: float) -> int:
    """Removes some expired items of all tables; returns how many."""
    return sum(expire(session.cursor, table, now, STEP) for table in _mortal(session))


def _mortal(session: Session) -> list[Table]:
    return [table for table in session.all_tables() if table.definition.ttl is not None]


def expire(cursor: apsw.Cursor, table: Table, now: float, most: int) -> int:
    """Removes expired items of a table, at most `most`; returns how many."""
    rows = cursor.execute(
        f"SELECT {table.form.fields} FROM {table.items} INDEXED BY {table.items}_expires"
        " WHERE expires < ? AND expires > ? ORDER BY expires LIMIT ?",
        (now, now - _FIVE_YEARS, most),
    ).fetchall()
    expired = []
    for row in rows:
        found = cast(FoundRow, row)
        second = table.expiry(table.form.item(found))
        if second is None or second >= now:
            # The column and the item disagree, so the row is damaged. Damage must not remove an item.
            raise BrokenRow
        size, columns = found[0], found[table.form.keys]
        prepared = Prepared(table, (columns[0], columns[1]), None, lambda _: None)
        expired.append(Decided(prepared, StoredItem(table, size, tuple(columns), None, found), None))
    apply(cursor, expired, now, expired=True)
    return len(rows)


def _has_expired(cursor: apsw.Cursor, table: Table, now: float) -> bool:
    found = cursor.execute(
        f"SELECT 1 FROM {table.items} INDEXED BY {table.items}_expires WHERE expires < ? AND expires > ? LIMIT 1",
        (now, now - _FIVE_YEARS),
    ).get
    return found is not None
