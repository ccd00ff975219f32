"""The change stream: reading it from any position that is still kept.

Changes are numbered by one writer at a time, so their order is the order of commits and the numbers
have no gaps. The newest is never trimmed: numbers are never used again. A position is the table's id
and the number, both padded, so that positions compare as text and outlive no table.
"""

from __future__ import annotations

from typing import Any

import apsw
from orjson import loads

from adjoin.errors import ChangesTrimmed, InvalidRequest, TableNotFound, shown
from adjoin.requests import ChangesResponse, ClosedStream, ItemChange, ReadChanges
from adjoin.stores.sqlite.catalogue import find_table, history_of
from adjoin.stores.sqlite.rows import BrokenRow
from adjoin.stores.sqlite.stored import change_sum
from adjoin.stores.sqlite.tables import Table, Tables
from adjoin.units import MAX_CHANGES, MB
from adjoin.values import Item

_DIGITS = 13
_NUMBERS = 10**13
_LONGEST = 100
"""Characters; no position has nearly as many, and Python refuses to read a number of thousands."""


def read_changes(cursor: apsw.Cursor, tables: Tables, request: ReadChanges) -> ChangesResponse:
    # By a table as it was met before, rows would be read that are no part of the stream any more.
    table = find_table(cursor.connection, request.table) or tables(request.table)
    closed = None if request.stream is None else _closed(cursor, table, request.stream)
    if not table.definition.stream and closed is None:
        raise InvalidRequest(f"the table {table.name} keeps no changes; create it with a stream to read them")
    if not 1 <= request.limit <= MAX_CHANGES:
        raise InvalidRequest(f"a limit of {request.limit} changes is not within 1 to {MAX_CHANGES}")
    start = table.storage.stream_start if closed is None else _number(table, closed.after, 0)
    end = _NUMBERS if closed is None else _number(table, closed.last, 0)
    after = _number(table, request.after, start)
    if after < start:
        raise _trimmed(table, request.after, is_replaced=True)
    changes: list[ItemChange] = []
    size = 0
    first = 0
    sums = table.storage.sums
    rows = cursor.execute(
        f"SELECT seq, at, expired, old, new, {'sum' if sums else 'NULL'} FROM {table.changes}"
        " WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
        (after, end, request.limit),
    )
    for number, at, expired, old, new, found in rows:
        first = first or number
        if number != first + len(changes) or (sums and found != _sum(at, expired, old, new)):
            raise BrokenRow
        changes.append(_change(table, number, at, bool(expired), old, new))
        size += len(old or b"") + len(new or b"")
        if size >= MB:
            # An unfinished statement would hold its snapshot, and with it the WAL.
            cursor.execute("SELECT 1").fetchall()
            break
    # The beginning is the oldest that is kept, however much is trimmed.
    if start < after < end:
        if not first:
            first = 1 + (cursor.execute(f"SELECT max(seq) FROM {table.changes}").get or 0)
        if first != after + 1:
            raise _trimmed(table, request.after)
    return ChangesResponse(changes, changes[-1].position if changes else request.after, closed)


def _closed(cursor: apsw.Cursor, table: Table, label: str) -> ClosedStream | None:
    """The stream of that label if it was switched off; None for the one that is on."""
    history = history_of(cursor.connection, table)
    closed = next((each for each in history.closed if each.label == label), None)
    if closed is None and not (table.definition.stream and history.stream_label == label):
        raise TableNotFound(f"the table {table.name} has no stream {label}")
    return closed


def _sum(at: Any, expired: Any, old: Any, new: Any) -> int | None:
    try:
        return change_sum(at, bool(expired), old, new)
    except TypeError:
        return None


def _change(table: Table, number: int, at: float, expired: bool, old: bytes | None, new: bytes | None) -> ItemChange:
    before: Item | None = None if old is None else loads(old)
    after: Item | None = None if new is None else loads(new)
    key = table.key_of(after or before or {})
    return ItemChange(position(table, number), at, key, before, after, expired)


def position(table: Table, number: int) -> str:
    """The place behind a change."""
    return f"{table.id:08d}{number:0{_DIGITS}d}"


def _number(table: Table, text: str | None, start: int) -> int:
    """The change number of a position; `start` for the beginning."""
    if text is None or not text.strip("0"):
        return start
    if not (text.isascii() and text.isdigit() and len(text) < _LONGEST):
        raise InvalidRequest(f"{shown(text)} is not a position of the change stream of {table.name}")
    ident, number = divmod(int(text), _NUMBERS)
    if ident != table.id:
        raise _trimmed(table, text, is_replaced=True)
    return number


def _trimmed(table: Table, after: str | None, *, is_replaced: bool = False) -> ChangesTrimmed:
    return ChangesTrimmed(
        f"the change stream of {table.name} does not hold what came after {after} (any more);"
        " read it from the beginning, and rebuild what was made from it",
        is_replaced=is_replaced,
    )
