"""Writing: put, update, delete, batches and transactions, as DynamoDB performs them.

A write goes through three steps. `prepare` checks what can be known from the request alone. `decide`
reads the item as it is, tests the condition and works out what will be. `apply` stores it, and the
change with it. A request decides everything before it applies anything, so one that fails leaves
nothing behind. All functions run inside a write transaction that the store opens and commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import apsw

from adjoin.errors import (
    CancellationReason,
    ConditionFailed,
    InvalidRequest,
    ItemTooLarge,
)
from adjoin.evaluate import Test, condition_test, projector
from adjoin.expressions import Action, IfNotExists, Value
from adjoin.items import normal_item
from adjoin.requests import (
    BatchWrite,
    Check,
    Consumed,
    Delete,
    ItemResponse,
    Put,
    TransactWrite,
    Update,
    WriteResponse,
)
from adjoin.stores.batches import canceled, canceled_by, check_batch_write
from adjoin.stores.sqlite.consumption import consumed, read_again
from adjoin.stores.sqlite.stored import Decided, Prepared, Stored, change_sum, size_of
from adjoin.stores.sqlite.tables import KeyMismatch, Row, Table, Tables
from adjoin.stores.sqlite.tokens import Token
from adjoin.stores.updates import update_of
from adjoin.units import (
    MAX_BATCH_WRITE,
    MAX_ITEM_SIZE,
    MAX_TOKEN,
    MAX_TRANSACTION,
    MAX_TRANSACTION_SIZE,
    write_units,
)
from adjoin.values import Item, attribute_size, text_size

Writing: TypeAlias = Put | Update | Delete | Check

_Row: TypeAlias = tuple[Row, Item, int]
"""What is put: its key columns, the item in normal form, and its size."""

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


def _prepare_put(tables: Tables, request: Put) -> Prepared:
    table = tables(request.table)
    return _prepared_put(table, _row(table, request.item), _test(request))


def _prepared_put(table: Table, put: _Row, test: Test | None) -> Prepared:
    row, item, size = put
    new = Stored(table, size, row, item)
    return Prepared(table, row[:2], test, lambda _: new)  # type: ignore[arg-type]


def _prepare_update(tables: Tables, request: Update) -> Prepared:
    table = tables(request.table)
    key = table.locate(request.key)
    update = update_of(request.actions, request.key)
    paths = [action.path.steps for action in request.actions]
    is_flat = all(len(steps) == 1 for steps in paths)
    if table.indexes:
        _check_index_keys(table, request.actions)

    def become(old: Stored | None) -> Stored | None:
        new = update(None if old is None else old.item)
        if new is None:
            return None
        if old is None or not is_flat:
            new, size = normal_item(new)
        else:
            # What is stored is normal, and so are whole attributes that an update sets.
            size = old.size + sum(_share(new, str(name)) - _share(old.item, str(name)) for (name,) in paths)
        row = table.row_after_update(new)
        if size > MAX_ITEM_SIZE:
            raise _too_large(table, new, size, "Item size to update")
        return Stored(table, size, row, new)

    return Prepared(table, key, _test(request), become)


def _check_index_keys(table: Table, actions: Iterable[Action]) -> None:
    """What an action gives a whole attribute is known before any item is, unless it takes it from one."""
    for action in actions:
        value = getattr(action, "value", None)
        while isinstance(value, IfNotExists):
            value = value.default
        literal = value.attribute if isinstance(value, Value) else value
        if isinstance(literal, dict) and len(action.path.steps) == 1:
            table.check_index_key(str(action.path.steps[0]), literal)


def _share(item: Item, name: str) -> int:
    """What one attribute adds to the size of an item."""
    attribute = item.get(name)
    return 0 if attribute is None else text_size(name) + attribute_size(attribute)


def _prepare_delete(tables: Tables, request: Delete) -> Prepared:
    table = tables(request.table)
    return Prepared(table, table.locate(request.key), _test(request), lambda _: None)


def _prepare_check(tables: Tables, request: Check) -> Prepared:
    table = tables(request.table)
    return Prepared(table, table.locate(request.key), _test(request), lambda old: old)


_PREPARE: dict[type, Callable[[Tables, Any], Prepared]] = {
    Put: _prepare_put,
    Update: _prepare_update,
    Delete: _prepare_delete,
    Check: _prepare_check,
}


def prepare(tables: Tables, request: Writing) -> Prepared:
    return _PREPARE[type(request)](tables, request)


# --- deciding and applying ---------------------------------------------------------------------


def decide(cursor: apsw.Cursor, prepared: Prepared) -> Decided:
    found = cursor.execute(prepared.table.get_sql, prepared.key).get
    old = None if found is None else Stored(prepared.table, found[0], found[prepared.table.form.keys], None, found)
    if prepared.test is not None and not prepared.test({} if old is None else old.item):
        raise ConditionFailed("The conditional request failed", None if old is None else old.item)
    return Decided(prepared, old, prepared.become(old))


def apply(cursor: apsw.Cursor, writes: Sequence[Decided], now: float, expired: bool = False) -> None:
    """Stores what changes. Of a table without a stream, all changes together make one record, of new totals."""
    grown: dict[Table, tuple[int, int]] = {}
    for write in writes:
        if not write.changed:
            continue
        _store(cursor, write)
        table, old, new = write.prepared.table, write.old, write.new
        more, size = (new is not None) - (old is not None), size_of(new) - size_of(old)
        if table.definition.stream:
            images = tuple(None if each is None else each.text for each in (old, new))
            last = (change_sum(now, expired, *images),) if table.storage.sums else ()
            cursor.execute(table.change_sql, (now, expired, more, size, *images, *last))
        else:
            items, total = grown.get(table, (0, 0))
            grown[table] = (items + more, total + size)
    for table, totals in grown.items():
        if any(totals):
            cursor.execute(table.change_sql, (now, expired, *totals))


def _store(cursor: apsw.Cursor, decided: Decided) -> None:
    table, key, old, new = decided.prepared.table, decided.prepared.key, decided.old, decided.new
    if new is None:
        cursor.execute(table.delete_sql, key)
    else:
        rest = table.rest(new.row, new.item, new.size, new.body)
        if old is None:
            cursor.execute(table.insert_sql, (*new.row, *rest))
        elif old.row == new.row:
            # No index changes, and SQLite need not look at any.
            cursor.execute(table.update_sql, (*rest, *key))
        else:
            cursor.execute(table.replace_sql, (*new.row, *rest))


def _overwrite(cursor: apsw.Cursor, table: Table, puts: Iterable[_Row], now: float) -> tuple[Consumed, ...]:
    """Puts items, whatever was there; answers what that consumes.

    The most frequent write of all, in one pass: the table has neither indexes nor a stream, so there is nothing to
    test and nobody to tell. It does what `decide` and `apply` would.
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
            # As `_differ` tells.
            continue
        else:
            cursor.execute(table.update_sql, (*rest, *key))
        grown += size - before
    if more or grown:
        cursor.execute(table.change_sql, (now, False, more, grown))
    return table.written(units)


# --- requests ----------------------------------------------------------------------------------


def put(cursor: apsw.Cursor, tables: Tables, request: Put, now: float) -> ItemResponse:
    table = tables(request.table)
    if table.is_simple and request.condition is None and not request.return_old:
        return ItemResponse(None, _overwrite(cursor, table, (_row(table, request.item),), now))
    decided = decide(cursor, prepare(tables, request))
    apply(cursor, (decided,), now)
    return ItemResponse(_old_item(decided) if request.return_old else None, consumed((decided,)))


def delete(cursor: apsw.Cursor, tables: Tables, request: Delete, now: float) -> ItemResponse:
    decided = decide(cursor, prepare(tables, request))
    apply(cursor, (decided,), now)
    return ItemResponse(_old_item(decided) if request.return_old else None, consumed((decided,)))


def update(cursor: apsw.Cursor, tables: Tables, request: Update, now: float) -> ItemResponse:
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


def batch_write(cursor: apsw.Cursor, tables: Tables, request: BatchWrite, now: float) -> WriteResponse:
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
    """Of an item that a batch puts the service says no more than of a key that it deletes."""
    try:
        return _row(table, item)
    except KeyMismatch:
        table.locate({key.name: item[key.name] for key in table.definition.keys if key.name in item})
        raise


def _prepare_one_of_many(tables: Tables, write: Put | Delete) -> Prepared:
    if isinstance(write, Delete):
        return prepare(tables, write)
    table = tables(write.table)
    return _prepared_put(table, _row_of_many(table, write.item), None)


def transact_write(cursor: apsw.Cursor, tables: Tables, request: TransactWrite, now: float) -> WriteResponse:
    if not 1 <= len(request.writes) <= MAX_TRANSACTION:
        raise InvalidRequest(f"TransactWriteItems takes 1 to {MAX_TRANSACTION} writes, not {len(request.writes)}")
    if request.token is not None and not 1 <= len(request.token) <= MAX_TOKEN:
        raise InvalidRequest(f"a client token has 1 to {MAX_TOKEN} characters, not {len(request.token)}")
    prepared = _prepare_all(tables, request.writes)
    _require_distinct(prepared, "Transaction request cannot include multiple operations on one item")
    token = None if request.token is None else Token(request, now)
    if token is not None and (units := token.units(cursor)) is not None:
        return WriteResponse((), tuple(Consumed(table, None, read, 0.0) for table, read in units.items()))
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


def _prepare_all(tables: Tables, writes: Sequence[Writing]) -> list[Prepared]:
    """A key that does not fit its table cancels the transaction, before any condition is tested."""
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
            reasons.append(CancellationReason("None"))
        except ConditionFailed as error:
            reasons.append(CancellationReason("ConditionalCheckFailed", str(error), error.item))
        except InvalidRequest as error:
            reasons.append(CancellationReason("ValidationError", str(error)))
    if len(decided) < len(reasons):
        raise canceled(reasons)
    return decided
