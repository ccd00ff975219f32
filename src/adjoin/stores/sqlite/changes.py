"""Reads the change stream from any position that is still kept.

One writer at a time numbers the changes, so their order is the order of commits, and the numbers have no gaps. The
newest change is never trimmed, so that no number is used twice. A position is the id of the table and the number of the
change, both padded, so that positions sort as text, and no position is valid in another table.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import apsw
from orjson import loads

from adjoin.errors import ChangesTrimmed, InvalidRequest, TableNotFound, shown
from adjoin.requests import ChangesResponse, ClosedStream, ItemChange, ReadChanges
from adjoin.stores.sqlite.catalogue import find_table, history_of
from adjoin.stores.sqlite.rows import BrokenRow, change_sum, sum_of_time
from adjoin.stores.sqlite.tables import FindTable, Table
from adjoin.units import MAX_CHANGES, MB
from adjoin.values import Item

_DIGITS = 13
_NUMBERS = 10**13
_LONGEST = 100
"""Most characters of a position. The limit exists because Python refuses to parse thousands of digits."""


def read_changes(cursor: apsw.Cursor, tables: FindTable, request: ReadChanges) -> ChangesResponse:
    table = tables(request.table)
    if table.version != cursor.execute("PRAGMA schema_version").get:
        # Read the definition again: with an old one, rows would be read that are no longer part of the stream.
        table = find_table(cursor.connection, request.table) or table
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
    time, start_of_sum = (None, None), 0
    rows = cursor.execute(
        f"SELECT seq, at, expired, old, new, {'sum' if sums else 'NULL'} FROM {table.changes}"
        " WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
        (after, end, request.limit),
    )
    for number, at, expired, old, new, found in rows:
        first = first or number
        if sums and time != (at, expired):
            # All changes of one transaction have the same time, so its part of the sum is computed once.
            time, start_of_sum = (at, expired), _sum_of_time(at, expired)
        if number != first + len(changes) or (sums and found != _sum(start_of_sum, old, new)):
            raise BrokenRow
        changes.append(_change(table, number, at, bool(expired), old, new))
        size += len(old or b"") + len(new or b"")
        if size >= MB:
            # End the statement: an unfinished one keeps its snapshot, and then the WAL cannot be checkpointed.
            cursor.execute("SELECT 1").fetchall()
            break
    # A reader that starts at the beginning gets the oldest change that is kept, however much was trimmed.
    if start < after < end:
        if not first:
            first = 1 + (cursor.execute(f"SELECT max(seq) FROM {table.changes}").get or 0)
        if first != after + 1:
            raise _trimmed(table, request.after)
    return ChangesResponse(changes, changes[-1].position if changes else request.after, closed)


def _closed(cursor: apsw.Cursor, table: Table, label: str) -> ClosedStream | None:
    """The stream with that label if it was switched off; None if it is the present one."""
    history = history_of(cursor.connection, table)
    closed = next((each for each in history.closed if each.label == label), None)
    if closed is None and not (table.definition.stream and history.stream_label == label):
        raise TableNotFound(f"the table {table.name} has no stream {label}")
    return closed


def _sum(start: int, old: Any, new: Any) -> int | None:
    try:
        return change_sum(start, old, new)
    except TypeError:
        return None


def _sum_of_time(at: Any, expired: Any) -> int:
    try:
        return sum_of_time(at, bool(expired))
    except TypeError:
        raise BrokenRow from None


def _change(table: Table, number: int, at: float, expired: bool, old: bytes | None, new: bytes | None) -> ItemChange:
    if table.storage.sums:
        # The checksum was right, so the images need not be parsed to find damage.
        return StoredChange(table, number, at, expired, old, new)
    before: Item | None = None if old is None else loads(old)
    after: Item | None = None if new is None else loads(new)
    return ItemChange(position(table, number), at, table.key_of(after or before or {}), before, after, expired)


class StoredChange(ItemChange):
    """A change as it is in the file: its key and images are parsed whenever they are accessed.

    Most changes that a maintainer reads are its own writes, of which it needs only the key. Also, Python's garbage
    collector does not have to traverse texts.
    """

    __slots__ = ("_row", "_table")
    _table: Table
    _row: tuple[int, float, bool, bytes | None, bytes | None]

    def __init__(
        self, table: Table, number: int, at: float, expired: bool, old: bytes | None, new: bytes | None
    ) -> None:
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "_row", (number, at, expired, old, new))

    @property
    def position(self) -> str:
        return position(self._table, self._row[0])

    @property
    def at(self) -> float:
        return self._row[1]

    @property
    def key(self) -> Item:
        return self._table.key_in(self._row[4] or self._row[3] or b"{}")

    @property
    def old(self) -> Item | None:
        return _parsed(self._row[3])

    @property
    def new(self) -> Item | None:
        return _parsed(self._row[4])

    @property
    def expired(self) -> bool:
        return self._row[2]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ItemChange):
            return NotImplemented
        return all(getattr(self, each.name) == getattr(other, each.name) for each in fields(ItemChange))

    __hash__ = None  # type: ignore[assignment]


def _parsed(image: bytes | None) -> Item | None:
    item: Item | None = None if image is None else loads(image)
    return item


def position(table: Table, number: int) -> str:
    """The position after a change."""
    return f"{table.id:08d}{number:0{_DIGITS}d}"


def newest_position(cursor: apsw.Cursor, table: Table) -> str | None:
    """The position after the newest change; None if the table keeps no changes, or has had none."""
    newest = cursor.execute(f"SELECT max(seq) FROM {table.changes}").get if table.definition.stream else None
    return None if newest is None else position(table, newest)


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
        f"the change stream of {table.name} no longer holds the changes after {after};"
        " read it from the beginning, and rebuild what was made from it",
        is_replaced=is_replaced,
    )
