"""Loading many items into a table at once: the same checks and the same changes as single puts, in fewer statements.

`ready` checks items and makes their rows, without the file. `write` writes any number of such rows in one transaction,
which the store opens and commits. An item replaces a stored one with the same key. Rows go to SQLite sorted by their
keys, so that neighbours in the tree are written together; so the more rows, the faster each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from operator import length_hint
from typing import Any, NamedTuple, TypeAlias

import apsw
from orjson import dumps, loads

from adjoin.errors import AdjoinError, ItemTooLarge
from adjoin.items import normal_item
from adjoin.stores.sqlite import file
from adjoin.stores.sqlite.rows import KeyValue, change_sum, sum_of_time
from adjoin.stores.sqlite.tables import Table
from adjoin.units import MAX_ITEM_SIZE
from adjoin.values import Item

CACHE_KB = 128 << 10
"""How much of the file is held in memory while rows are written. Entries of an index come in no order, and with less,
pages would be written to the log again and again."""

CHECKPOINT_PAGES = 1 << 16
"""How long the log may become before its pages are written to their places: 256 MB. A load changes most pages of a
large table again and again."""


@contextmanager
def memory_for_loads(connection: apsw.Connection) -> Iterator[None]:
    """Within this block, a connection has the cache and the log of a load; after it, those of single writes."""
    before = connection.pragma("cache_size")
    connection.pragma("cache_size", -CACHE_KB)
    connection.wal_autocheckpoint(CHECKPOINT_PAGES)
    try:
        yield
    finally:
        connection.pragma("cache_size", before)
        connection.wal_autocheckpoint(file.CHECKPOINT_PAGES)


Refused = list[tuple[int, AdjoinError]]
"""The items that no table can hold: their place among those that were given, and why."""


ReadyRow: TypeAlias = tuple[tuple[KeyValue, KeyValue], tuple[Any, ...], bytes, int]
"""An item that is ready to be written: its key, the values of its row in the order of the statements, the whole item as
JSON for the change log, and its size. A plain tuple, because there are millions of them."""


class Ready(NamedTuple):
    """Items that are ready to be written, and those that are refused."""

    version: int
    """The version of the table for which the rows were made; any change of a table is another version."""
    rows: list[ReadyRow]
    refused: Refused


def ready(table: Table, given: Sequence[Item]) -> Ready:
    """Checks items and makes their rows."""
    rows: list[ReadyRow] = []
    refused: Refused = []
    hidden, row_of, rest_of = table.form.names, table.row, table.rest
    for at, each in enumerate(given):
        try:
            item, size = normal_item(each)
            row = row_of(item)
            if size > MAX_ITEM_SIZE:
                raise ItemTooLarge(
                    f"the item has {size:,} bytes, but DynamoDB takes at most {MAX_ITEM_SIZE:,}; make it smaller"
                )
        except AdjoinError as error:
            refused.append((at, error))
            continue
        # Copies: what orjson returns lies in a kilobyte of memory, and rows are kept for a while.
        body = b"%b" % dumps({name: value for name, value in item.items() if name not in hidden})
        values = (*row, *rest_of(row, item, size, body))
        rows.append((row[:2], values, b"%b" % dumps(item), size))  # type: ignore[arg-type]
    return Ready(table.version, rows, refused)


def fitting(table: Table, pieces: Iterable[Ready]) -> Iterator[ReadyRow]:
    """The rows of all pieces, made again if the table has changed since, such as by a new index."""
    for piece in pieces:
        if piece.version == table.version:
            yield from piece.rows
        else:
            yield from ready(table, [loads(text) for _, _, text, _ in piece.rows]).rows


def _sorted(keys: Iterable[tuple[KeyValue, KeyValue]]) -> list[tuple[KeyValue, KeyValue]]:
    """Keys about in the order of the tree. One text is compared three times as fast as a tuple of two."""
    try:
        return sorted(keys, key="\0".join)  # type: ignore[arg-type]
    except TypeError:
        # Keys that are bytes or numbers.
        return sorted(keys)


def write(cursor: apsw.Cursor, table: Table, rows: Iterable[ReadyRow], now: float) -> bool:
    """Puts the items of these rows; if two have the same key, the later one stays. Returns whether all were new."""
    last = {row[0]: row for row in rows}
    chosen = [last[key] for key in _sorted(last)]
    items, total, _ = cursor.execute(table.totals_sql).get or (0, 0, 0)
    pieces = _put(cursor, table, chosen)
    _record(cursor, table, chain.from_iterable(pieces), (items, total), now)
    return len(pieces) == 1


_Change = tuple[bytes | None, int, ReadyRow]
"""The item before as JSON, if there was one, its size, and the row after."""
_NEAR = 8
"""Rows as few as these between two that are stored already say that more of them follow."""


def _put(cursor: apsw.Cursor, table: Table, rows: Sequence[ReadyRow]) -> list[Iterable[_Change]]:
    """Puts rows, each with another key, and returns the changes: one piece of them if all rows were new.

    Every row is taken to be new. SQLite stops at the first that is not and keeps those before it, so what is stored is
    read for that row alone; and for twice as many each time, while the next is near.
    """
    rest = iter([values for _, values, _, _ in rows])
    pieces: list[Iterable[_Change]] = []
    begin, width = 0, 1
    while True:
        try:
            cursor.executemany(table.insert_sql, rest)
        except apsw.ConstraintError:
            at = len(rows) - length_hint(rest) - 1
        else:
            pieces.append(_new(rows[begin:]))
            return pieces
        width = width * 2 if pieces and at - begin < _NEAR else 1
        read = rows[at : at + width]
        changed = [*_changed(cursor, table, read)]
        cursor.executemany(table.insert_sql, (row[1] for old, _, row in changed if old is None))
        cursor.executemany(table.replace_sql, (row[1] for old, _, row in changed if old is not None))
        pieces += [_new(rows[begin:at]), changed]
        deque(islice(rest, len(read) - 1), maxlen=0)
        begin = at + len(read)


def _new(rows: Iterable[ReadyRow]) -> Iterator[_Change]:
    return ((None, 0, row) for row in rows)


def _changed(cursor: apsw.Cursor, table: Table, rows: Iterable[ReadyRow]) -> Iterator[_Change]:
    """The rows that differ from what is stored."""
    form = table.form
    for row in rows:
        key, _, text, size = row
        found = cursor.execute(table.get_sql, key).get
        if found is None:
            yield None, 0, row
        elif found[0] != size or form.item(found) != loads(text):
            yield form.text(found), found[0], row


def _record(cursor: apsw.Cursor, table: Table, changes: Iterable[_Change], totals: tuple[int, int], now: float) -> None:
    """Adds to the change log; in a table without a stream, only its totals."""
    items, total = totals
    if not table.definition.stream:
        for old, before, (_, _, _, size) in changes:
            items, total = items + (old is None), total + size - before
        if (items, total) != totals:
            cursor.execute(table.change_sql, (now, False, items - totals[0], total - totals[1]))
        return
    has_sums, start = table.storage.sums, sum_of_time(now, False)

    def logged() -> Iterator[tuple[Any, ...]]:
        nonlocal items, total
        for old, before, (_, _, text, size) in changes:
            items += old is None
            total += size - before
            if has_sums:
                yield now, False, items, total, old, text, change_sum(start, old, text)
            else:
                yield now, False, items, total, old, text

    cursor.executemany(table.change_sql, logged())
