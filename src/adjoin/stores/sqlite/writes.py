"""Writing: put, update, delete, batches and transactions, as DynamoDB performs them.

A write has three steps. `prepare` checks what follows from the request alone. `decide` reads the stored item, tests the
condition and computes the new item. `apply` stores the new item and records the change. A request decides everything
before it applies anything, so one that fails changes nothing. All functions run inside a write transaction that the
store opens and commits.

The consumed capacity is counted as the service counts it. A transaction that is repeated within ten minutes is
recognised by its client token, and not applied twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any, TypeAlias

import apsw
from orjson import dumps, loads

from adjoin.errors import (
    FAILED_CONDITION,
    CancellationReason,
    ConditionFailed,
    InvalidRequest,
    ItemTooLarge,
    TokenReused,
)
from adjoin.evaluate import Test, condition_test, projector
from adjoin.expressions import Action, IfNotExists, Value
from adjoin.items import normal_item
from adjoin.requests import BatchWrite, Check, Consumed, Delete, ItemResponse, Put, TransactWrite, Update, WriteResponse
from adjoin.stores.interface import canceled, canceled_by, check_batch_write
from adjoin.stores.sqlite.rows import FoundRow, KeyValue, change_sum, sum_of_time
from adjoin.stores.sqlite.tables import AccessPath, FindTable, KeyMismatch, Row, Table
from adjoin.stores.updates import update_of
from adjoin.units import (
    MAX_BATCH_WRITE,
    MAX_ITEM_SIZE,
    MAX_TOKEN,
    MAX_TRANSACTION,
    MAX_TRANSACTION_SIZE,
    TOKEN_LIFETIME,
    read_units,
    write_units,
)
from adjoin.values import Item, attribute_size, item_size, text_size

# --- a write on its way ------------------------------------------------------------------------


class StoredItem:
    """An item as a row of the table: in normal form, with its size and its key columns.

    A row from the file is parsed only when the item itself is accessed; many writes do not need it.
    """

    __slots__ = ("_body", "_found", "_item", "_table", "row", "size")

    def __init__(self, table: Table, size: int, row: Row, item: Item | None, found: FoundRow = ()) -> None:
        self._table = table
        self._item = item
        self._found = found
        self._body: bytes | None = None
        self.size = size
        self.row = row

    @property
    def body(self) -> bytes:
        if self._body is None:
            self._body = self._found[1] if self._found else self._table.form.body(self.item)
        return self._body

    @property
    def text(self) -> bytes:
        """The whole item as JSON, its attributes in the order in which `item` has them."""
        return self._table.form.text(self._found) if self._found else dumps(self.item)

    @property
    def item(self) -> Item:
        if self._item is None:
            self._item = self._table.form.item(self._found)
        return self._item


class Prepared:
    """A write that is valid in itself. `become` is the function from the item before to the item after."""

    __slots__ = ("become", "key", "table", "test")

    def __init__(
        self,
        table: Table,
        key: tuple[KeyValue, KeyValue],
        test: Test | None,
        become: Callable[[StoredItem | None], StoredItem | None],
    ) -> None:
        self.table = table
        self.key = key
        self.test = test
        self.become = become


class Decided:
    """A write whose effect is known: the item before and after."""

    __slots__ = ("changed", "new", "old", "prepared")

    def __init__(self, prepared: Prepared, old: StoredItem | None, new: StoredItem | None) -> None:
        self.prepared = prepared
        self.old = old
        self.new = new
        self.changed = old is not new and (old is None or new is None or old.row != new.row or _differ(old, new))


def _differ(old: StoredItem, new: StoredItem) -> bool:
    """Whether two items with the same keys are different."""
    # Most different items differ in size; the order of attributes does not change the size.
    if old.size != new.size or len(old.body) != len(new.body):
        return True
    return old.body != new.body and old.item != new.item


def size_of(stored: StoredItem | None) -> int:
    """The size of an item; 0 if there is none."""
    return 0 if stored is None else stored.size


# --- what writes consume -----------------------------------------------------------------------


def consumed(writes: Sequence[Decided], transactional: bool = False) -> tuple[Consumed, ...]:
    """The capacity that writes consume from their tables and indexes, each table before its indexes.

    A transaction consumes twice as much from the table, but no more than other writes from an index.
    """
    times = 2.0 if transactional else 1.0
    only = writes[0].prepared.table
    if not only.indexes:
        total = 0.0
        for write in writes:
            if write.prepared.table is not only:
                break
            total += write_units(max(size_of(write.old), size_of(write.new)))
        else:
            return only.written(times * total)
    units: dict[tuple[str, str | None], float] = {}
    for write in writes:
        table, old, new = write.prepared.table, write.old, write.new
        place: tuple[str, str | None] = table.name, None
        units[place] = units.get(place, 0.0) + times * write_units(max(size_of(old), size_of(new)))
        for path in table.indexes if write.changed else ():
            if taken := _index_units(path, old, new):
                place = table.name, path.index_name
                units[place] = units.get(place, 0.0) + taken
    tables = list(dict.fromkeys(table for table, _ in units))
    # The sort is stable: the rows of one table stay in the order in which their units were first consumed.
    rows = sorted(units.items(), key=lambda entry: tables.index(entry[0][0]))
    return tuple(Consumed(table, index, 0.0, taken) for (table, index), taken in rows)


def _index_units(path: AccessPath, old: StoredItem | None, new: StoredItem | None) -> float:
    before = old if old is not None and path.holds(old.row) else None
    after = new if new is not None and path.holds(new.row) else None
    if before is None:
        return 0.0 if after is None else _entry_units(path, after)
    if after is None:
        return _entry_units(path, before)
    # An entry cannot move: the service deletes it and puts another one, and charges both.
    if path.own_keys(before.row) != path.own_keys(after.row):
        return _entry_units(path, before) + _entry_units(path, after)
    # No attribute that the index holds has changed, so the entry is not written.
    if path.projected is not None and _entry(path, before) == _entry(path, after):
        return 0.0
    return max(_entry_units(path, before), _entry_units(path, after))


def _entry(path: AccessPath, stored: StoredItem) -> Item:
    """The attributes of an item that the index holds."""
    if path.projected is None:
        return stored.item
    return {name: value for name, value in stored.item.items() if name in path.projected}


def _entry_units(path: AccessPath, stored: StoredItem) -> float:
    return write_units(stored.size if path.projected is None else item_size(_entry(path, stored)))


def read_again(writes: Iterable[Decided]) -> dict[str, float]:
    """The read units per table that the service consumes when it finds that a transaction was already applied.

    They depend on the items before and after the first application, not on the present items.
    """
    units: dict[str, float] = {}
    for write in writes:
        name, size = write.prepared.table.name, max(size_of(write.old), size_of(write.new))
        units[name] = units.get(name, 0.0) + read_units(size, transactional=True)
    return units


# --- client tokens -----------------------------------------------------------------------------


class Token:
    """A client token, and a digest of its transaction."""

    def __init__(self, request: TransactWrite, now: float) -> None:
        self._token = request.token
        self._digest = sha256(dumps(_canonical(request.writes))).digest()
        self._now = now

    def units(self, cursor: apsw.Cursor) -> dict[str, float] | None:
        """The read units per table, if this transaction was applied with this token in the last ten minutes.

        None if it was not.
        """
        known = cursor.execute(
            "SELECT request FROM adjoin_tokens WHERE token = ? AND at > ?",
            (self._token, self._now - TOKEN_LIFETIME),
        ).get
        if known is None:
            return None
        # The digest has a fixed length, and the units follow it.
        digest, units_text = known[: len(self._digest)], known[len(self._digest) :]
        if digest != self._digest:
            raise TokenReused(
                f"the token {self._token!r} was used for another transaction within the last ten minutes;"
                " use a fresh token for each transaction"
            )
        units: dict[str, float] = loads(units_text or b"{}")
        return units

    def remember(self, cursor: apsw.Cursor, units: dict[str, float]) -> None:
        cursor.execute("DELETE FROM adjoin_tokens WHERE at <= ?", (self._now - TOKEN_LIFETIME,))
        known = self._digest + dumps(units)
        cursor.execute("REPLACE INTO adjoin_tokens VALUES (?, ?, ?)", (self._token, self._now, known))


def _canonical(value: Any) -> Any:
    """A request as plain data; equal requests have equal data, and others do not."""
    if is_dataclass(value):
        return [type(value).__name__, *[_canonical(getattr(value, field.name)) for field in fields(value)]]
    if isinstance(value, dict):
        return {"": sorted((name, _canonical(inner)) for name, inner in value.items())}
    if isinstance(value, list | tuple):
        return [_canonical(inner) for inner in value]
    return value


Writing: TypeAlias = Put | Update | Delete | Check

_Row: TypeAlias = tuple[Row, Item, int]
"""An item to put: its key columns, the item in normal form, and its size."""

_NO_REASON = CancellationReason("None")
_DUPLICATES = "Provided list of item keys contains duplicates"


# --- preparing ---------------------------------------------------------------------------------


def _test(request: Writing) -> Test | None:
    return None if request.condition is None else condition_test(request.condition)


def _too_large(table: Table, item: Item, size: int, fault: str) -> ItemTooLarge:
    return ItemTooLarge(
        f"{fault} has exceeded the maximum allowed size: {size} bytes of {MAX_ITEM_SIZE} at key {table.key_of(item)}"
    )


def _row(table: Table, given: Item) -> _Row:
    item, size = normal_item(given)
    row = table.row(item)
    if size > MAX_ITEM_SIZE:
        raise _too_large(table, item, size, "Item size")
    return row, item, size


def _prepare_put(tables: FindTable, request: Put) -> Prepared:
    table = tables(request.table)
    return _prepared_put(table, _row(table, request.item), _test(request))


def _prepared_put(table: Table, put: _Row, test: Test | None) -> Prepared:
    row, item, size = put
    new = StoredItem(table, size, row, item)
    return Prepared(table, row[:2], test, lambda _: new)  # type: ignore[arg-type]


def _prepare_update(tables: FindTable, request: Update) -> Prepared:
    table = tables(request.table)
    key = table.locate(request.key)
    update = update_of(request.actions, request.key)
    paths = [action.path.steps for action in request.actions]
    is_flat = all(len(steps) == 1 for steps in paths)
    if table.indexes:
        _check_index_keys(table, request.actions)

    def become(old: StoredItem | None) -> StoredItem | None:
        new = update(None if old is None else old.item)
        if new is None:
            return None
        # What a nested path changes may be anywhere inside an attribute, so the whole item is measured.
        if old is None or not is_flat:
            new, size = normal_item(new)
        else:
            # The stored item is in normal form, and so are the whole attributes that an update sets.
            size = old.size + sum(_share(new, str(name)) - _share(old.item, str(name)) for (name,) in paths)
        row = table.row_after_update(new)
        if size > MAX_ITEM_SIZE:
            raise _too_large(table, new, size, "Item size to update")
        return StoredItem(table, size, row, new)

    return Prepared(table, key, _test(request), become)


def _check_index_keys(table: Table, actions: Iterable[Action]) -> None:
    """Checks literal values of index keys before any item is read, as the service does."""
    for action in actions:
        if action.path.steps[0] not in table.index_keys:
            continue
        value = getattr(action, "value", None)
        while isinstance(value, IfNotExists):
            value = value.default
        literal = value.attribute if isinstance(value, Value) else value
        if isinstance(literal, dict) and len(action.path.steps) == 1:
            table.check_index_key(str(action.path.steps[0]), literal)


def _share(item: Item, name: str) -> int:
    """The share of one attribute in the size of an item."""
    attribute = item.get(name)
    return 0 if attribute is None else text_size(name) + attribute_size(attribute)


def _prepare_delete(tables: FindTable, request: Delete) -> Prepared:
    table = tables(request.table)
    return Prepared(table, table.locate(request.key), _test(request), lambda _: None)


def _prepare_check(tables: FindTable, request: Check) -> Prepared:
    table = tables(request.table)
    return Prepared(table, table.locate(request.key), _test(request), lambda old: old)


_PREPARE: dict[type, Callable[[FindTable, Any], Prepared]] = {
    Put: _prepare_put,
    Update: _prepare_update,
    Delete: _prepare_delete,
    Check: _prepare_check,
}


def prepare(tables: FindTable, request: Writing) -> Prepared:
    return _PREPARE[type(request)](tables, request)


# --- deciding and applying ---------------------------------------------------------------------


def decide(cursor: apsw.Cursor, prepared: Prepared) -> Decided:
    found = cursor.execute(prepared.table.get_sql, prepared.key).get
    old = None if found is None else StoredItem(prepared.table, found[0], found[prepared.table.form.keys], None, found)
    if prepared.test is not None and not prepared.test({} if old is None else old.item):
        raise ConditionFailed("The conditional request failed", None if old is None else old.item)
    return Decided(prepared, old, prepared.become(old))


def apply(cursor: apsw.Cursor, writes: Sequence[Decided], now: float, expired: bool = False) -> None:
    """Stores what changes. In a table without a stream, all changes together make one record with the new totals."""
    grown: dict[Table, tuple[int, int]] = {}
    streams: dict[Table, list[Decided]] = {}
    for write in writes:
        if not write.changed:
            continue
        _store(cursor, write)
        table, old, new = write.prepared.table, write.old, write.new
        if table.definition.stream:
            streams.setdefault(table, []).append(write)
        else:
            items, total = grown.get(table, (0, 0))
            more, size = (new is not None) - (old is not None), size_of(new) - size_of(old)
            grown[table] = (items + more, total + size)
    for table, changed in streams.items():
        cursor.executemany(table.change_sql, _changes(cursor, table, changed, now, expired))
    for table, totals in grown.items():
        if any(totals):
            cursor.execute(table.change_sql, (now, expired, *totals))


def _changes(
    cursor: apsw.Cursor, table: Table, writes: Iterable[Decided], now: float, expired: bool
) -> list[tuple[Any, ...]]:
    """The records of changes in a table with a stream, each with the totals after it."""
    items, size, _ = cursor.execute(table.totals_sql).get or (0, 0, 0)
    has_sums, start = table.storage.sums, sum_of_time(now, expired)
    rows = []
    for write in writes:
        before = after = None
        if write.old is not None:
            before, items, size = write.old.text, items - 1, size - write.old.size
        if write.new is not None:
            after, items, size = write.new.text, items + 1, size + write.new.size
        last = (change_sum(start, before, after),) if has_sums else ()
        rows.append((now, expired, items, size, before, after, *last))
    return rows


def _store(cursor: apsw.Cursor, decided: Decided) -> None:
    table, key, old, new = decided.prepared.table, decided.prepared.key, decided.old, decided.new
    if new is None:
        cursor.execute(table.delete_sql, key)
    else:
        rest = table.rest(new.row, new.item, new.size, new.body)
        if old is None:
            cursor.execute(table.insert_sql, (*new.row, *rest))
        elif old.row == new.row:
            # No key column changes, so SQLite need not update any index.
            cursor.execute(table.update_sql, (*rest, *key))
        else:
            cursor.execute(table.replace_sql, (*new.row, *rest))


def _overwrite(cursor: apsw.Cursor, table: Table, puts: Iterable[_Row], now: float) -> tuple[Consumed, ...]:
    """Puts items in place of any stored ones; returns the consumed capacity.

    This is the fast path for the most frequent write: the table has neither indexes nor a stream, so there are no
    conditions and no changes to record. It does the same as `decide` and `apply`.
    """
    read, body_of = table.form.item, table.form.body
    more = grown = 0
    units = 0.0
    for key, item, size in puts:
        found = cursor.execute(table.get_sql, key).get
        body = body_of(item)
        rest = table.rest(key, item, size, body)
        before = 0 if found is None else found[0]
        units += write_units(size if size > before else before)
        if found is None:
            cursor.execute(table.insert_sql, (*key, *rest))
            more += 1
        elif before == size and len(found[1]) == len(body) and (found[1] == body or read(found) == item):
            # The item is unchanged; the same test as in `_differ`.
            continue
        else:
            cursor.execute(table.update_sql, (*rest, *key))
        grown += size - before
    if more or grown:
        cursor.execute(table.change_sql, (now, False, more, grown))
    return table.written(units)


# --- requests ----------------------------------------------------------------------------------


def put(cursor: apsw.Cursor, tables: FindTable, request: Put, now: float) -> ItemResponse:
    table = tables(request.table)
    if table.is_simple and request.condition is None and not request.return_old:
        return ItemResponse(None, _overwrite(cursor, table, (_row(table, request.item),), now))
    decided = decide(cursor, prepare(tables, request))
    apply(cursor, (decided,), now)
    return ItemResponse(_old_item(decided) if request.return_old else None, consumed((decided,)))


def delete(cursor: apsw.Cursor, tables: FindTable, request: Delete, now: float) -> ItemResponse:
    decided = decide(cursor, prepare(tables, request))
    apply(cursor, (decided,), now)
    return ItemResponse(_old_item(decided) if request.return_old else None, consumed((decided,)))


def update(cursor: apsw.Cursor, tables: FindTable, request: Update, now: float) -> ItemResponse:
    decided = decide(cursor, prepare(tables, request))
    apply(cursor, (decided,), now)
    return ItemResponse(_RETURNED[request.returns](request, decided), consumed([decided]))


def _old_item(decided: Decided) -> Item | None:
    return None if decided.old is None else decided.old.item


def _new_item(decided: Decided) -> Item | None:
    return None if decided.new is None else decided.new.item


def _updated(request: Update, item: Item | None) -> Item | None:
    if item is None or not request.actions:
        return None
    return projector([action.path for action in request.actions])(item) or None


_RETURNED: dict[str, Callable[[Update, Decided], Item | None]] = {
    "none": lambda request, decided: None,
    "old": lambda request, decided: _old_item(decided),
    "new": lambda request, decided: _new_item(decided),
    "updated_old": lambda request, decided: _updated(request, _old_item(decided)),
    "updated_new": lambda request, decided: _updated(request, _new_item(decided)),
}


def batch_write(cursor: apsw.Cursor, tables: FindTable, request: BatchWrite, now: float) -> WriteResponse:
    if not 1 <= len(request.writes) <= MAX_BATCH_WRITE:
        raise InvalidRequest(
            f"BatchWriteItem takes 1 to {MAX_BATCH_WRITE} writes, not {len(request.writes)}; split the request"
        )
    check_batch_write(request)
    table = tables(request.writes[0].table)
    if table.is_simple and all(type(write) is Put and write.table == table.name for write in request.writes):
        puts = [_row_of_many(table, write.item) for write in request.writes if isinstance(write, Put)]
        if len({key for key, _, _ in puts}) < len(puts):
            raise InvalidRequest(_DUPLICATES)
        return WriteResponse((), _overwrite(cursor, table, puts, now))
    prepared = [_prepare_one_of_many(tables, write) for write in request.writes]
    _require_distinct(prepared, _DUPLICATES)
    decided = [decide(cursor, write) for write in prepared]
    apply(cursor, decided, now)
    return WriteResponse((), consumed(decided))


def _row_of_many(table: Table, item: Item) -> _Row:
    """The row of an item in a batch. For its key, the service has the same message as for a key to delete."""
    try:
        return _row(table, item)
    except KeyMismatch:
        table.locate({key.name: item[key.name] for key in table.definition.keys if key.name in item})
        raise


def _prepare_one_of_many(tables: FindTable, write: Put | Delete) -> Prepared:
    if isinstance(write, Delete):
        return prepare(tables, write)
    table = tables(write.table)
    return _prepared_put(table, _row_of_many(table, write.item), None)


def transact_write(cursor: apsw.Cursor, tables: FindTable, request: TransactWrite, now: float) -> WriteResponse:
    if not 1 <= len(request.writes) <= MAX_TRANSACTION:
        raise InvalidRequest(f"TransactWriteItems takes 1 to {MAX_TRANSACTION} writes, not {len(request.writes)}")
    if request.token is not None and not 1 <= len(request.token) <= MAX_TOKEN:
        raise InvalidRequest(f"a client token has 1 to {MAX_TOKEN} characters, not {len(request.token)}")
    if any(isinstance(write, Update) and not write.actions for write in request.writes):
        raise InvalidRequest("an update in a transaction needs an action; use a check, or a put")
    prepared = _prepare_all(tables, request.writes)
    _require_distinct(prepared, "Transaction request cannot include multiple operations on one item")
    token = None if request.token is None else Token(request, now)
    if token is not None and (units := token.units(cursor)) is not None:
        return WriteResponse((), tuple(Consumed(table, None, read, 0.0) for table, read in units.items()))
    # All writes are decided before the first is applied: a canceled transaction has changed nothing, and each of its
    # writes has a reason.
    decided = _decide_all(cursor, prepared)
    if sum(max(size_of(write.old), size_of(write.new)) for write in decided) > MAX_TRANSACTION_SIZE:
        raise InvalidRequest("the items of a transaction are larger than 4 MB together; write fewer of them")
    apply(cursor, decided, now)
    if token is not None:
        token.remember(cursor, read_again(decided))
    return WriteResponse((), consumed(decided, transactional=True))


def _require_distinct(prepared: Sequence[Prepared], message: str) -> None:
    if len({(write.table.id, write.key) for write in prepared}) < len(prepared):
        raise InvalidRequest(message)


def _prepare_all(tables: FindTable, writes: Sequence[Writing]) -> list[Prepared]:
    """Prepares all writes; a key that does not fit its table cancels the transaction before conditions are tested."""
    prepared: list[Prepared] = []
    for write in writes:
        try:
            prepared.append(prepare(tables, write))
        except KeyMismatch as error:
            raise canceled_by(error, len(prepared), len(writes)) from None
    return prepared


def _decide_all(cursor: apsw.Cursor, prepared: Iterable[Prepared]) -> list[Decided]:
    decided: list[Decided] = []
    reasons: list[CancellationReason] = []
    for write in prepared:
        try:
            decided.append(decide(cursor, write))
            reasons.append(_NO_REASON)
        except ConditionFailed as error:
            reasons.append(CancellationReason(FAILED_CONDITION, str(error), error.item))
        except InvalidRequest as error:
            reasons.append(CancellationReason("ValidationError", str(error)))
    if len(decided) < len(reasons):
        raise canceled(reasons)
    return decided
