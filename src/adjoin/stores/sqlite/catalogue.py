"""The catalogue of the file: finds, creates, changes and drops tables, with their SQL.

Every function that changes something runs inside a write transaction that the store opens and commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar
from zlib import crc32

import apsw
from orjson import dumps, loads
from pydantic import TypeAdapter, ValidationError

from adjoin.errors import InvalidRequest
from adjoin.requests import TableHistory
from adjoin.stores.sqlite.rows import BrokenRow, FoundRow, KeyValue, Storage
from adjoin.stores.sqlite.tables import AccessPath, KeyColumn, Table
from adjoin.tables import TableDefinition
from adjoin.values import Item

_DEFINITION = TypeAdapter(TableDefinition)
_STORAGE = TypeAdapter(Storage)
_HISTORY = TypeAdapter(TableHistory)

_ROWS = 1000
"""How many rows are changed at a time when all rows of a table change."""


def find_table(connection: apsw.Connection, name: str) -> Table | None:
    row = connection.execute(
        "SELECT id, definition, storage, schema_version FROM adjoin_tables, pragma_schema_version WHERE name = ?",
        (name,),
    ).get
    if row is None:
        return None
    number, definition, storage, version = row
    if _has_sums(connection):
        kept = connection.execute("SELECT sum FROM adjoin_tables WHERE id = ?", (number,)).get
        if kept != _sum(connection, number):
            raise BrokenRow
    return Table(number, _definition_in(definition), _read(_STORAGE, storage), version)


T = TypeVar("T")


def _read(kind: TypeAdapter[T], text: str) -> T:
    try:
        return kind.validate_json(text)
    except ValidationError:
        raise BrokenRow from None


# A key with several attributes is a list of them in place of one attribute. An adjoin that does not know such keys
# cannot read that, and so does not write the table without their columns.
_ROLES = (("partition", "further_partitions"), ("sort", "further_sorts"))


def _definition_in(text: str) -> TableDefinition:
    try:
        definition = loads(text)
        for index in definition.get("indexes", ()):
            for first, further in _ROLES:
                if isinstance(index.get(first), list):
                    index[first], *index[further] = index[first]
        return _DEFINITION.validate_python(definition)
    except (AttributeError, TypeError, ValueError):
        # It is not JSON, or not that of a definition.
        raise BrokenRow from None


def _definition_text(definition: TableDefinition) -> str:
    shown = _DEFINITION.dump_python(definition, mode="json")
    for index in shown["indexes"]:
        for first, further in _ROLES:
            if others := index.pop(further):
                index[first] = [index[first], *others]
    return dumps(shown).decode()


def _has_sums(connection: apsw.Connection) -> bool:
    """Whether the file has a format version with checksums of tables and rows."""
    return bool(connection.pragma("user_version") >= 2)


def _sum(connection: apsw.Connection, number: int) -> int:
    row = connection.execute("SELECT name, definition, storage, history FROM adjoin_tables WHERE id = ?", (number,)).get
    return crc32("\n".join(map(str, (number, *(row or ())))).encode())


def _keep_sum(connection: apsw.Connection, number: int) -> None:
    if _has_sums(connection):
        connection.execute("UPDATE adjoin_tables SET sum = ? WHERE id = ?", (_sum(connection, number), number))


def table_names(connection: apsw.Connection) -> tuple[str, ...]:
    return tuple(name for (name,) in connection.execute("SELECT name FROM adjoin_tables ORDER BY name"))


def histories(connection: apsw.Connection) -> dict[str, TableHistory]:
    """The histories of all tables, in the order of their names."""
    rows = connection.execute("SELECT name, history FROM adjoin_tables ORDER BY name")
    return {name: _read(_HISTORY, history) for name, history in rows}


def history_of(connection: apsw.Connection, table: Table) -> TableHistory:
    found = connection.execute("SELECT history FROM adjoin_tables WHERE id = ?", (table.id,)).get
    return TableHistory() if found is None else _read(_HISTORY, found)


# --- making and dropping -----------------------------------------------------------------------


def create_table(connection: apsw.Connection, definition: TableDefinition, history: TableHistory) -> Table:
    storage = Storage.of(definition, _has_sums(connection))
    connection.execute(
        "INSERT INTO adjoin_tables(name, definition, storage, history) VALUES (?, ?, ?, ?)",
        (definition.name, *_texts(definition, storage), _HISTORY.dump_json(history).decode()),
    )
    table = Table(connection.last_insert_rowid(), definition, storage)
    _keep_sum(connection, table.id)
    for statement in _schema(table):
        connection.execute(statement)
    return table


def _texts(definition: TableDefinition, storage: Storage) -> tuple[str, str]:
    return _definition_text(definition), _STORAGE.dump_json(storage).decode()


def _schema(table: Table) -> Iterator[str]:
    items = table.items
    further = "".join(f"{column.column}, " for column in table.columns if column not in table.primary)
    kept = "sum INTEGER, " if table.storage.sums else ""
    # The body comes last, so that the columns before it are read without its overflow pages.
    yield (
        f"CREATE TABLE {items}(pk NOT NULL, sk NOT NULL, size INTEGER NOT NULL, expires INTEGER, {kept}{further}"
        "body BLOB NOT NULL, PRIMARY KEY (pk, sk)) WITHOUT ROWID"
    )
    for path in table.indexes:
        yield _index(table, path)
    if table.definition.ttl is not None:
        yield _expiry_index(table)
    yield (
        f"CREATE TABLE {table.changes}(seq INTEGER PRIMARY KEY, at REAL NOT NULL, expired INTEGER NOT NULL,"
        f" items INTEGER NOT NULL, bytes INTEGER NOT NULL, {kept}old BLOB, new BLOB)"
    )


def _index(table: Table, path: AccessPath) -> str:
    columns = ", ".join(column.column for column in path.columns)
    present = " AND ".join(f"{column.column} IS NOT NULL" for column in path.present)
    return f"CREATE INDEX {path.sql_index} ON {table.items}({columns}){f' WHERE {present}' if present else ''}"


def _expiry_index(table: Table) -> str:
    return f"CREATE INDEX {table.items}_expires ON {table.items}(expires) WHERE expires IS NOT NULL"


def drop_table(connection: apsw.Connection, table: Table) -> None:
    connection.execute("DELETE FROM adjoin_tables WHERE id = ?", (table.id,))
    connection.execute(f"DROP TABLE {table.items}")
    connection.execute(f"DROP TABLE {table.changes}")


# --- changing ----------------------------------------------------------------------------------


def redefine(
    connection: apsw.Connection, table: Table, definition: TableDefinition, history: TableHistory | None = None
) -> Table:
    """Changes a table, its rows, indexes and stream to a new definition with the same keys; returns the new table."""
    storage = table.storage.changed(definition)
    if definition.stream != table.definition.stream:
        storage = replace(storage, stream_start=_switch_stream(connection, table))
    changed = Table(table.id, definition, storage)
    _remove_indexes(connection, table, changed)
    _add_indexes(connection, table, changed)
    if definition.ttl != table.definition.ttl:
        _expire_by(connection, changed)
    connection.execute(
        "UPDATE adjoin_tables SET definition = ?, storage = ? WHERE id = ?", (*_texts(definition, storage), table.id)
    )
    if history is not None:
        text = _HISTORY.dump_json(history).decode()
        connection.execute("UPDATE adjoin_tables SET history = ? WHERE id = ?", (text, table.id))
    _keep_sum(connection, table.id)
    _tell(connection)
    return changed


def _tell(connection: apsw.Connection) -> None:
    """Raises SQLite's schema version, by which other connections notice that a table has changed."""
    connection.execute("CREATE TABLE adjoin_notice(at)")
    connection.execute("DROP TABLE adjoin_notice")


def _switch_stream(connection: apsw.Connection, table: Table) -> int:
    """Adds a row that repeats the totals, and returns its number; the new stream begins after it."""
    items, size, newest = connection.execute(table.totals_sql).get or (0, 0, 0)
    connection.execute(
        f"INSERT INTO {table.changes}(seq, at, expired, items, bytes) VALUES (?, 0, 0, ?, ?)", (newest + 1, items, size)
    )
    return int(newest + 1)


def _remove_indexes(connection: apsw.Connection, before: Table, after: Table) -> None:
    for path in before.indexes:
        if path.index_name not in after.paths:
            connection.execute(f"DROP INDEX {path.sql_index}")
    kept = {column.column for column in after.columns}
    gone = [column for column in before.columns if column.column not in kept]
    if not gone:
        return
    empty = ", ".join(f"{column.column} = NULL" for column in gone)
    used = " OR ".join(f"{column.column} IS NOT NULL" for column in gone)
    last = ", sum = ?" if after.storage.sums else ""
    update = f"UPDATE {before.items} SET {empty}, size = ?, expires = ?, body = ?{last} WHERE pk = ? AND sk = ?"
    for rows in _pages(connection, before, f"({used})"):
        items = [(before.form.item(row), row) for row in rows]
        connection.executemany(update, [(*_rest(after, item, row), row[2], row[3]) for item, row in items])


def _rest(table: Table, item: Item, row: FoundRow) -> tuple[object, ...]:
    further = table.columns[len(table.primary) :]
    columns = (row[2], row[3], *(_key(column, item) for column in further))
    return table.rest(columns, item, row[0], table.form.body(item))


def _add_indexes(connection: apsw.Connection, before: Table, after: Table) -> None:
    known = {column.column for column in before.columns}
    new = [column for column in after.columns if column.column not in known]
    for column in new:
        connection.execute(f"ALTER TABLE {after.items} ADD COLUMN {column.column}")
    if new:
        values = ", ".join(f"{column.column} = ?" for column in new)
        update = f"UPDATE {after.items} SET {values} WHERE pk = ? AND sk = ?"
        for rows in _pages(connection, after, "1"):
            items = [(after.form.item(row), row) for row in rows]
            keys = [([_key(column, item) for column in new], row) for item, row in items]
            connection.executemany(update, [(*key, row[2], row[3]) for key, row in keys if any(key)])
    for path in after.indexes:
        if path.index_name not in before.paths:
            connection.execute(_index(after, path))


def _key(column: KeyColumn, item: dict[str, dict[str, object]]) -> KeyValue | None:
    """The value of a new key column for an existing item; None if its attribute cannot be a key."""
    try:
        return column.value(item[column.name])
    except (KeyError, InvalidRequest):
        return None


def _pages(connection: apsw.Connection, table: Table, condition: str) -> Iterator[Sequence[FoundRow]]:
    """The rows of a table that satisfy a condition, in pages, so that the caller may change them meanwhile."""
    select = f"SELECT {table.form.fields} FROM {table.items} WHERE {condition}"
    order = f"ORDER BY pk, sk LIMIT {_ROWS}"
    rows = connection.execute(f"{select} {order}").fetchall()
    while rows:
        yield rows
        rows = connection.execute(f"{select} AND (pk, sk) > (?, ?) {order}", rows[-1][2:4]).fetchall()


def _expire_by(connection: apsw.Connection, table: Table) -> None:
    """Lets all items, also existing ones, expire by the attribute that the table names now."""
    connection.execute(f"DROP INDEX IF EXISTS {table.items}_expires")
    connection.execute(f"UPDATE {table.items} SET expires = NULL WHERE expires IS NOT NULL")
    if table.definition.ttl is None:
        return
    for rows in _pages(connection, table, "1"):
        seconds = [(table.expiry(loads(row[1])), row[2], row[3]) for row in rows]
        mortal = [row for row in seconds if row[0] is not None]
        connection.executemany(f"UPDATE {table.items} SET expires = ? WHERE pk = ? AND sk = ?", mortal)
    connection.execute(_expiry_index(table))
