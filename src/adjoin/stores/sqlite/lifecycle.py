"""Creating, changing, describing, listing and dropping tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import apsw

from adjoin.errors import InvalidRequest, TableExists
from adjoin.requests import (
    ClosedStream,
    CreateTable,
    DescribeTable,
    DropTable,
    ListStreams,
    ListTables,
    ListTags,
    SetTimeToLive,
    StreamsResponse,
    TableHistory,
    TableResponse,
    TablesResponse,
    TableStream,
    TagsResponse,
    TagTable,
    UpdateTable,
)
from adjoin.stores.definitions import check_definition, tagged, updated
from adjoin.stores.sqlite.catalogue import (
    create_table,
    drop_table,
    find_table,
    histories,
    history_of,
    redefine,
    table_names,
)
from adjoin.stores.sqlite.changes import position
from adjoin.stores.sqlite.tables import FindTable, Table
from adjoin.tables import TableDefinition

_READABLE = 86400.0
"""Seconds for which a stream that was switched off is remembered."""


def create(cursor: apsw.Cursor, tables: FindTable, request: CreateTable, now: float) -> TableResponse:
    definition = request.definition
    check_definition(definition)
    if find_table(cursor.connection, definition.name) is not None:
        raise TableExists(f"the table {definition.name} already exists; drop it first, or use it")
    history = TableHistory(
        str(uuid4()),
        now,
        stream_label=_label(now) if definition.stream else None,
        on_demand=now if definition.throughput is None else None,
        settings=request.settings,
    )
    table = create_table(cursor.connection, definition, history)
    return _response(cursor, table, history)


def _label(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")


def _response(
    cursor: apsw.Cursor, table: Table, history: TableHistory, before: TableDefinition | None = None
) -> TableResponse:
    count, size, newest = cursor.execute(table.totals_sql).get or (0, 0, 0)
    # The first change of all has the number 1.
    oldest = cursor.execute(f"SELECT min(seq) FROM {table.changes}").get or 1
    return TableResponse(
        table.definition,
        count,
        size,
        history=history,
        latest=position(table, newest),
        earliest=position(table, table.storage.stream_start),
        has_all_changes=oldest == 1 and not table.storage.stream_start,
        before=before,
    )


# --- changing ----------------------------------------------------------------------------------


def update(cursor: apsw.Cursor, tables: FindTable, request: UpdateTable, now: float) -> TableResponse:
    table = tables(request.table)
    before = table.definition
    definition = updated(before, request)
    history = _changed_history(history_of(cursor.connection, table), before, definition, now)
    if before.stream and not definition.stream:
        history = _with_closed(cursor, table, history, now)
    if request.settings:
        settings = {name: each for name, each in {**history.settings, **request.settings}.items() if each is not None}
        history = replace(history, settings=settings)
    return _response(cursor, redefine(cursor.connection, table, definition, history), history, before)


def _changed_history(
    history: TableHistory, before: TableDefinition, after: TableDefinition, now: float
) -> TableHistory:
    if after.stream and not before.stream:
        history = replace(history, stream_label=_label(now))
    if after.throughput is None and before.throughput is not None:
        history = replace(history, on_demand=now)
    had, has = before.throughput, after.throughput
    if had is None or has is None:
        return history
    if has.read > had.read or has.write > had.write:
        history = replace(history, increased=now)
    if has.read < had.read or has.write < had.write:
        earlier = history.decreases if _is_same_day(history.decreased, now) else 0
        history = replace(history, decreased=now, decreases=earlier + 1)
    return history


def _with_closed(cursor: apsw.Cursor, table: Table, history: TableHistory, now: float) -> TableHistory:
    """The history of a table whose stream is about to be switched off."""
    _, _, newest = cursor.execute(table.totals_sql).get or (0, 0, 0)
    start = table.storage.stream_start
    ended = ClosedStream(
        history.stream_label or "",
        table.definition.stream_view,
        position(table, start),
        position(table, max(start, newest)),
        now,
    )
    return replace(history, closed=(*(each for each in history.closed if each.at > now - _READABLE), ended))


def _is_same_day(earlier: float | None, now: float) -> bool:
    return earlier is not None and earlier // 86400 == now // 86400


def set_time_to_live(cursor: apsw.Cursor, tables: FindTable, request: SetTimeToLive, now: float) -> TableResponse:
    table = tables(request.table)
    before = table.definition
    if request.attribute is not None and before.ttl not in (None, request.attribute):
        raise InvalidRequest(
            f"the items of {request.table} already expire by {before.ttl!r}, not by {request.attribute!r}"
        )
    if before.ttl != request.attribute:
        table = redefine(cursor.connection, table, replace(before, ttl=request.attribute))
    return _response(cursor, table, history_of(cursor.connection, table), before)


def tag(cursor: apsw.Cursor, tables: FindTable, request: TagTable, now: float) -> TagsResponse:
    table = tables(request.table)
    changed = redefine(cursor.connection, table, tagged(table.definition, request))
    return TagsResponse(changed.definition.tags)


def drop(cursor: apsw.Cursor, tables: FindTable, request: DropTable, now: float) -> TableResponse:
    table = tables(request.table)
    if table.definition.deletion_protection:
        raise InvalidRequest(
            f"the table {request.table} cannot be dropped: it is protected against deletion; "
            f"disable deletion protection first"
        )
    response = _response(cursor, table, history_of(cursor.connection, table))
    drop_table(cursor.connection, table)
    return response


# --- looking -----------------------------------------------------------------------------------


def describe(cursor: apsw.Cursor, tables: FindTable, request: DescribeTable) -> TableResponse:
    # Read the definition again: another process may have changed a table that this store knows.
    table = find_table(cursor.connection, request.table) or tables(request.table)
    return _response(cursor, table, history_of(cursor.connection, table))


def list_tables(cursor: apsw.Cursor, tables: FindTable, request: ListTables) -> TablesResponse:
    return TablesResponse(table_names(cursor.connection))


def list_tags(cursor: apsw.Cursor, tables: FindTable, request: ListTags) -> TagsResponse:
    table = find_table(cursor.connection, request.table) or tables(request.table)
    return TagsResponse(table.definition.tags)


def list_streams(cursor: apsw.Cursor, tables: FindTable, request: ListStreams) -> StreamsResponse:
    known = histories(cursor.connection)
    labels = {
        name: dict.fromkeys((*(each.label for each in history.closed), history.stream_label))
        for name, history in known.items()
    }
    return StreamsResponse(
        tuple(TableStream(name, label) for name, those in labels.items() for label in those if label)
    )
