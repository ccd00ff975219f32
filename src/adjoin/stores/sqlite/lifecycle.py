"""The life of tables: creating, changing, describing, listing and dropping them."""

from __future__ import annotations

import apsw

from adjoin.errors import InvalidRequest, TableExists
from adjoin.requests import (
    CreateTable,
    DescribeTable,
    DropTable,
    ListTables,
    SetTimeToLive,
    TableResponse,
    TablesResponse,
)
from adjoin.stores.definitions import check_definition
from adjoin.stores.sqlite.tables import (
    Tables,
    create_table,
    drop_table,
    expire_by,
    find_table,
    table_names,
)


def create(cursor: apsw.Cursor, tables: Tables, request: CreateTable, now: float) -> TableResponse:
    check_definition(request.definition)
    if find_table(cursor.connection, request.definition.name) is not None:
        raise TableExists(f"there is a table {request.definition.name} already; drop it first, or use it")
    create_table(cursor.connection, request.definition)
    return TableResponse(request.definition)


def set_time_to_live(cursor: apsw.Cursor, tables: Tables, request: SetTimeToLive, now: float) -> TableResponse:
    table = tables(request.table)
    before = table.definition.ttl
    if before not in (None, request.attribute):
        raise InvalidRequest(f"the items of {request.table} expire by {before!r} already, not by {request.attribute!r}")
    if before is None:
        table = expire_by(cursor.connection, table, request.attribute)
    return TableResponse(table.definition)


def drop(cursor: apsw.Cursor, tables: Tables, request: DropTable, now: float) -> TableResponse:
    table = tables(request.table)
    if table.definition.deletion_protection:
        raise InvalidRequest(
            f"the table {request.table} cannot be dropped: it is protected against deletion; "
            f"disable deletion protection first"
        )
    drop_table(cursor.connection, table)
    return TableResponse(table.definition)


def describe(cursor: apsw.Cursor, tables: Tables, request: DescribeTable) -> TableResponse:
    # A table that was met before may have been changed since.
    table = find_table(cursor.connection, request.table) or tables(request.table)
    count, size = cursor.execute(table.totals_sql).get or (0, 0)
    return TableResponse(table.definition, count, size)


def list_tables(cursor: apsw.Cursor, tables: Tables, request: ListTables) -> TablesResponse:
    return TablesResponse(table_names(cursor.connection))
