"""Tables inside the file: their SQL, their key columns, and the ways to read them in order.

A `Table` is created when a store first uses the table. It holds everything that follows from its definition and storage
alone: names, column positions and SQL text. Table ids are never used twice, and every SQL name contains the id, so a
stale `Table` can only fail with "no such table", and never read another one. `rows` explains why a stale `Table` still
reads whole items after indexes were added or removed.

Nothing here executes SQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from orjson import dumps, loads

from adjoin.errors import InvalidRequest
from adjoin.requests import Consumed
from adjoin.stores.sqlite.rows import KeyValue, RowForm, Storage, key_value
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from adjoin.units import (
    MAX_PARTITION_KEY_SIZE,
    MAX_SORT_KEY_SIZE,
    read_units,
)
from adjoin.values import AttributeValue, Item

Row = tuple[KeyValue | None, ...]
"""The key columns of an item: partition key, sort key, then one per further index key."""

_NO_SORT_KEY = b""


class KeyMismatch(InvalidRequest):
    """A key attribute is missing, or does not have the type that its table or index declares."""


class EmptyKey(InvalidRequest):
    """A key attribute is empty text or empty bytes; `kind` says which of them."""

    def __init__(self, words: str, kind: str) -> None:
        super().__init__(words)
        self.kind = kind


class KeyColumn:
    """One key attribute: its column, and DynamoDB's rules for its values."""

    __slots__ = ("_limit", "_place", "_room", "_strictest", "column", "index", "name", "position", "tag")

    def __init__(
        self, column: str, position: int, attribute: KeyAttribute, limit: int, index: str | None = None
    ) -> None:
        self.column = column
        self.position = position
        self.name = attribute.name
        self.tag = attribute.type
        self.index = index
        self._place = f"Key: {self.name}" if index is None else f"IndexName: {index}, IndexKey: {self.name}"
        self._limit = limit
        self._strictest = self._place
        # A character takes at most four bytes, so text this short needs no measuring.
        self._room = limit // 4

    def also_key_of(self, index: str, limit: int) -> None:
        """The attribute is a key of a further index as well, which may allow less."""
        if limit < self._limit:
            self._limit, self._room = limit, limit // 4
            self._strictest = f"IndexName: {index}, IndexKey: {self.name}"

    def value(self, attribute: AttributeValue) -> KeyValue:
        """The column value of an attribute; KeyError if the attribute has another type, or none."""
        if type(attribute) is not dict:
            raise KeyError(self.tag)
        value = attribute[self.tag]
        if self.tag == "S" and type(value) is str and 0 < len(value) <= self._room and len(attribute) == 1:
            return value
        encoded = key_value(attribute, self.tag)
        if not encoded:
            raise self._empty()
        size = len(encoded.encode()) if isinstance(encoded, str) else len(encoded)
        if size > self._limit and self.tag != "N":
            raise InvalidRequest(self._too_long())
        return encoded

    def _empty(self) -> EmptyKey:
        kind = "string" if self.tag == "S" else "binary"
        where = "" if self.index is None else "A value specified for a secondary index key is not supported. "
        return EmptyKey(
            f"One or more parameter values are not valid. {where}"
            f"The AttributeValue for a key attribute cannot contain an empty {kind} value. {self._place}",
            kind,
        )

    def _too_long(self) -> str:
        fault = (
            "Size of hashkey has exceeded the maximum size limit of2048 bytes"
            if self._limit == MAX_PARTITION_KEY_SIZE
            else "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
        )
        return f"One or more parameter values were invalid: {fault}; {self._strictest}"


class AccessPath:
    """A way to read a table in order: its own keys, or those of one index."""

    def __init__(
        self,
        table: str,
        items: str,
        form: RowForm,
        partitions: Sequence[KeyColumn],
        sorts: Sequence[KeyColumn],
        primary: Sequence[KeyColumn],
        index: IndexDefinition | None = None,
        sql_index: str | None = None,
    ) -> None:
        self.table = table
        self.form = form
        self.index = index
        self.index_name = None if index is None else index.name
        self.multi_attribute = index if index is not None and index.is_multi_attribute else None
        """The index, if its partition key or its sort key has several attributes."""
        self.partitions = partitions
        self.sorts = sorts
        self.partition = partitions[0]
        self.sort = sorts[0] if sorts else None
        own = [*partitions, *sorts]
        self.columns = [*own, *(column for column in primary if column not in own)]
        """In the order of reading: the keys of the path, then the table's keys, which make the order unique."""
        self.key_columns = [*primary, *(column for column in own if column not in primary)]
        """The columns of a start key."""
        self.key_names = tuple(column.name for column in self.key_columns)
        self.own_names = frozenset(column.name for column in own)
        self.is_unique = len(self.columns) == len(partitions)
        """Whether a partition has at most one item: its key has all that distinguishes items."""
        self.projected = _projected(index, self.key_names)
        """The attributes of an entry of the index; None for all."""
        self.present = [column for column in own if column not in primary]
        """The columns that an item must have to be in the index."""
        self._own = [column.position for column in own]
        self._required = [column.position for column in self.present]
        self.sql_index = sql_index
        self._source = items if sql_index is None else f"{items} INDEXED BY {sql_index}"
        self._sql: dict[tuple[Any, ...], str] = {}
        self._costs: dict[tuple[int, bool], tuple[Consumed, ...]] = {}

    def query_sql(self, equal: int, lower: str | None, upper: str | None, started: bool, forward: bool) -> str:
        """SQL that reads one partition, or a stretch of it.

        The first `equal` columns have one value each; `lower` and `upper` are comparisons of the next column, such as
        ">=" and "<".
        """
        shape = (equal, lower, upper, started, forward)
        if shape not in self._sql:
            rest = self.columns[equal:]
            terms = [f"{column.column} = ?" for column in self.columns[:equal]]
            terms += [f"{rest[0].column} {bound} ?" for bound in (lower, upper) if bound]
            terms += self._after_start(rest, forward) if started else []
            self._sql[shape] = self._select(terms, rest, forward)
        return self._sql[shape]

    def scan_sql(self, started: bool, segmented: bool) -> str:
        """SQL that reads everything, or one segment of it."""
        shape = (started, segmented)
        if shape not in self._sql:
            partition = ", ".join(column.column for column in self.partitions)
            terms = [f"adjoin_segment({partition}, ?) = ?"] if segmented else []
            terms += self._after_start(self.columns, True) if started else []
            self._sql[shape] = self._select(terms, self.columns, True)
        return self._sql[shape]

    def _after_start(self, columns: Sequence[KeyColumn], forward: bool) -> list[str]:
        names = ", ".join(column.column for column in columns)
        marks = ", ".join("?" for _ in columns)
        return [f"({names}) {'>' if forward else '<'} ({marks})"]

    def _select(self, terms: list[str], order: Sequence[KeyColumn], forward: bool) -> str:
        # SQLite uses a partial index only if the statement implies its condition. A scan does so only with these terms.
        terms = [*terms, *(f"{column.column} IS NOT NULL" for column in self.present)]
        where = f" WHERE {' AND '.join(terms)}" if terms else ""
        direction = "" if forward else " DESC"
        by = ", ".join(column.column + direction for column in order)
        # Without INDEXED BY, SQLite might sort rows of another index, which reads the whole partition for one page.
        return f"SELECT {self.form.fields} FROM {self._source}{where}{f' ORDER BY {by}' if by else ''} LIMIT ?"

    def cost(self, size: int, consistent: bool) -> tuple[Consumed, ...]:
        """What reading `size` bytes along this path consumes."""
        blocks = -(-size // 4096)
        try:
            return self._costs[blocks, consistent]
        except KeyError:
            units = read_units(size, consistent=consistent)
            cost = (Consumed(self.table, self.index_name, units, 0.0),)
            return self._costs.setdefault((blocks, consistent), cost)

    def holds(self, row: Row) -> bool:
        """Whether an item with these key columns is in the index."""
        for at in self._required:  # noqa: SIM110 - a generator takes three times as long
            if row[at] is None:
                return False
        return True

    def own_keys(self, row: Row) -> list[KeyValue | None]:
        return [row[at] for at in self._own]

    def last_key(self, item: Item) -> Item:
        return {name: item[name] for name in self.key_names}

    def start_row(self, start: Item) -> dict[KeyColumn, KeyValue]:
        """The columns of a start key, which must hold exactly the keys of this path."""
        try:
            if len(start) == len(self.key_columns):
                return {column: column.value(start[column.name]) for column in self.key_columns}
        except KeyError:
            pass
        raise InvalidRequest("The provided starting key is invalid")


def _projected(index: IndexDefinition | None, keys: Iterable[str]) -> frozenset[str] | None:
    if index is None or index.projection.kind == "ALL":
        return None
    return frozenset((*keys, *index.projection.attributes))


class Table:
    """Everything that follows from one table's definition and storage."""

    def __init__(self, number: int, definition: TableDefinition, storage: Storage, version: int = 0) -> None:
        self.id = number
        self.version = version
        """The schema version of the file when the table was read."""
        self.definition = definition
        self.storage = storage
        self.name = name = definition.name
        self.items = items = f"items_{number}"
        self.changes = f"changes_{number}"
        columns = _key_columns(definition, storage)
        self.columns = tuple(columns.values())
        self._partition = columns[definition.partition.name]
        self._sort = None if definition.sort is None else columns[definition.sort.name]
        self.primary = [self._partition] if self._sort is None else [self._partition, self._sort]
        self._further = self.columns[len(self.primary) :]
        self.index_keys = frozenset(column.name for column in self._further)
        """The attributes that are keys of indexes but not of the table itself."""
        self.key_names = tuple(column.name for column in self.primary)
        self._plain_key = _plain_key(self.primary)
        self.has_binary_key = any(column.tag == "B" for column in self.primary)
        self.form = RowForm(
            ["pk", "sk", *(column.column for column in self._further)],
            {
                column.position: column.name
                for column in self.columns
                if column.tag == "S" and column.name not in storage.in_body
            },
            storage.sums,
        )

        base = AccessPath(name, items, self.form, self.primary[:1], self.primary[1:], self.primary)
        self.paths: dict[str | None, AccessPath] = {None: base}
        for index in definition.indexes:
            self.paths[index.name] = AccessPath(
                name,
                items,
                self.form,
                [columns[key.name] for key in index.partitions],
                [columns[key.name] for key in index.sorts],
                self.primary,
                index,
                f"{items}_{storage.indexes[index.name]}",
            )
        self.indexes = [path for path in self.paths.values() if path.index is not None]
        self.is_simple = not definition.stream and not self.indexes
        """Whether the table's own rows, and its totals, are all that a write changes."""

        further = "".join(f", {column.column}" for column in self._further)
        last = ", sum" if storage.sums else ""
        marks = ", ".join("?" for _ in range(5 + len(self._further) + storage.sums))
        values = f"{items}(pk, sk{further}, size, expires, body{last}) VALUES ({marks})"
        here = "WHERE pk = ? AND sk = ?"
        self.get_sql = f"SELECT {self.form.fields} FROM {items} {here}"
        self.insert_sql = f"INSERT INTO {values}"
        self.replace_sql = f"REPLACE INTO {values}"
        self.update_sql = f"UPDATE {items} SET size = ?, expires = ?, body = ?{last and ', sum = ?'} {here}"
        self.delete_sql = f"DELETE FROM {items} {here}"
        self.change_sql = _change_sql(self.changes, definition.stream, storage.sums)
        self._written: dict[float, tuple[Consumed, ...]] = {}
        self.totals_sql = f"SELECT items, bytes, seq FROM {self.changes} ORDER BY seq DESC LIMIT 1"

    def locate(self, key: Item) -> tuple[KeyValue, KeyValue]:
        """The key columns of a key, which must hold exactly the key attributes."""
        try:
            if self._sort is None:
                if len(key) == 1:
                    return self._partition.value(key[self._partition.name]), _NO_SORT_KEY
            elif len(key) == 2:
                return self._partition.value(key[self._partition.name]), self._sort.value(key[self._sort.name])
        except KeyError:
            pass
        raise KeyMismatch("The provided key element does not match the schema")

    def row(self, item: Item) -> Row:
        """The key columns of an item; raises if a key attribute is missing or has a wrong type."""
        column = self._partition
        try:
            partition = column.value(item[column.name])
            sort: KeyValue = _NO_SORT_KEY
            if self._sort is not None:
                column = self._sort
                sort = column.value(item[column.name])
            if not self._further:
                return partition, sort
            row: list[KeyValue | None] = [partition, sort]
            for column in self._further:
                attribute = item.get(column.name)
                row.append(None if attribute is None else column.value(attribute))
        except KeyError:
            raise _bad_key(column, item) from None
        return tuple(row)

    def row_after_update(self, item: Item) -> Row:
        """The same as `row` for the result of an update, whose primary key is valid."""
        try:
            return self.row(item)
        except KeyMismatch:
            raise KeyMismatch(
                "The update expression attempted to update the secondary index key to unsupported type"
            ) from None
        except EmptyKey as fault:
            raise empty_after_update(fault) from None

    def check_index_key(self, name: str, attribute: AttributeValue) -> None:
        """Refuses a value that an update would give an attribute, if it is an index key that cannot have it."""
        for column in self._further:
            if column.name == name:
                try:
                    column.value(attribute)
                except KeyError:
                    raise _bad_key(column, {name: attribute}) from None
                except EmptyKey as fault:
                    raise empty_after_update(fault) from None

    def written(self, units: float) -> tuple[Consumed, ...]:
        """The consumed capacity of a write that takes these units of the table and none of an index."""
        try:
            return self._written[units]
        except KeyError:
            if len(self._written) > 1000:
                self._written.clear()
            return self._written.setdefault(units, (Consumed(self.name, None, 0.0, units),))

    def rest(self, row: Row, item: Item, size: int, body: bytes) -> tuple[Any, ...]:
        """The other values of a row, after its key columns, in the order of the statements."""
        expires = None if self.definition.ttl is None else self.expiry(item)
        if self.form.has_sum:
            return size, expires, body, self.form.sum((size, body, *row))
        return size, expires, body

    def key_of(self, item: Item) -> Item:
        return {name: item[name] for name in self.key_names}

    def key_in(self, text: bytes) -> Item:
        """The key in the JSON of an item, which is parsed only if the key is not plain text at its beginning."""
        found = self._plain_key.match(text)
        if found is None:
            return self.key_of(loads(text))
        texts = found.groups()
        if len(texts) == 2:
            # Every change comes through here, so the usual keys need no loop.
            partition, sort = self.key_names
            return {partition: {"S": texts[0].decode()}, sort: {"S": texts[1].decode()}}
        return {name: {"S": text.decode()} for name, text in zip(self.key_names, texts, strict=True)}

    def expiry(self, item: Item) -> int | None:
        """The second at which an item expires; None if it does not."""
        ttl = self.definition.ttl
        if ttl is None or ttl not in item or "N" not in item[ttl]:
            return None
        second = int(item[ttl]["N"].partition(".")[0])
        return second if 0 <= second < 2**62 else None


FindTable: TypeAlias = Callable[[str], Table]
"""Finds a table by its name."""


def _plain_key(columns: Iterable[KeyColumn]) -> re.Pattern[bytes]:
    """Matches the beginning of an item's JSON if its keys are there as texts without escapes."""
    if any(column.tag != "S" for column in columns):
        return _NOTHING
    members = (re.escape(dumps(column.name)) + rb':\{"S":"([^"\\]*)"\}' for column in columns)
    return re.compile(rb"\{" + b",".join(members) + rb"[,}]")


_NOTHING = re.compile(rb"(?!)")


def _change_sql(changes: str, stream: bool, sums: bool) -> str:
    """SQL that records a change: its time, whether the item expired, the table's totals, the images, and a checksum.

    Every row has the totals, so that they are known without counting. Without a stream there is only one row, with the
    totals and without images; its parameters say by how much the totals grow.
    """
    if stream:
        names, marks = ("old, new, sum", "?, ?, ?") if sums else ("old, new", "?, ?")
        return f"INSERT INTO {changes}(at, expired, items, bytes, {names}) VALUES (?, ?, ?, ?, {marks})"
    items, size = (
        f"? + coalesce((SELECT {total} FROM {changes} ORDER BY seq DESC LIMIT 1), 0)" for total in ("items", "bytes")
    )
    newest = f"coalesce((SELECT max(seq) FROM {changes}), 1)"
    return f"REPLACE INTO {changes}(seq, at, expired, items, bytes) VALUES ({newest}, ?, ?, {items}, {size})"


def empty_after_update(fault: EmptyKey) -> EmptyKey:
    """The service's error for an update that makes an index key empty."""
    return EmptyKey(
        "One or more parameter values are not valid. The update expression attempted to update a secondary index key"
        " to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty"
        f" {fault.kind} value.",
        fault.kind,
    )


def _bad_key(column: KeyColumn, item: Item) -> KeyMismatch:
    fault = "One or more parameter values were invalid: "
    if column.name not in item:
        return KeyMismatch(f"{fault}Missing the key {column.name} in the item")
    actual = next(iter(item[column.name]), "nothing")
    if column.index is None:
        return KeyMismatch(f"{fault}Type mismatch for key {column.name} expected: {column.tag} actual: {actual}")
    return KeyMismatch(
        f"{fault}Type mismatch for Index Key {column.name} Expected: {column.tag} Actual: {actual}"
        f" IndexName: {column.index}"
    )


def _key_columns(definition: TableDefinition, storage: Storage) -> dict[str, KeyColumn]:
    """One column per key attribute, by name: the table's own first, then those of indexes."""
    columns = {
        definition.partition.name: KeyColumn("pk", 0, definition.partition, MAX_PARTITION_KEY_SIZE),
    }
    if definition.sort is not None:
        columns[definition.sort.name] = KeyColumn("sk", 1, definition.sort, MAX_SORT_KEY_SIZE)
    own = len(columns)
    for index in definition.indexes:
        # The limits are documented for each value, and so they are kept, also of keys with several attributes.
        limits = [(key, MAX_PARTITION_KEY_SIZE) for key in index.partitions]
        limits += [(key, MAX_SORT_KEY_SIZE) for key in index.sorts]
        for attribute, limit in limits:
            column = columns.get(attribute.name)
            if column is None:
                position = len(columns) - own + 2
                columns[attribute.name] = KeyColumn(storage.column(attribute), position, attribute, limit, index.name)
            else:
                column.also_key_of(index.name, limit)
    return columns
