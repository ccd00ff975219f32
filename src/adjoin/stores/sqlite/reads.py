"""Reading: get, batch get, transactional get, query and scan, as DynamoDB answers them.

Each function takes a cursor, finds tables through `tables`, and answers one request. A single
statement is one snapshot; whoever needs several statements of one instant opens the read transaction
around the call. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, overload

import apsw
from orjson import Fragment, dumps

from adjoin.errors import InvalidRequest
from adjoin.evaluate import condition_test, projector
from adjoin.expressions import Condition, Exists, Not
from adjoin.requests import (
    BatchGet,
    BatchGetResponse,
    Consumed,
    Get,
    ItemResponse,
    PageResponse,
    Query,
    Scan,
    TransactGet,
)
from adjoin.stores.batches import by_table, canceled_by
from adjoin.stores.sqlite.key_conditions import partition_value, require_no_keys, sort_bounds, start_columns
from adjoin.stores.sqlite.keys import KeyValue, segment_of
from adjoin.stores.sqlite.rows import BrokenRow, Found, RowForm
from adjoin.stores.sqlite.tables import AccessPath, KeyMismatch, Table, Tables
from adjoin.units import (
    MAX_BATCH_GET,
    MAX_BATCH_SIZE,
    MAX_PAGE_SIZE,
    MAX_TRANSACTION,
    MAX_TRANSACTION_SIZE,
    read_units,
)
from adjoin.values import Item, item_size

# --- single items ------------------------------------------------------------------------------


def get(cursor: apsw.Cursor, tables: Tables, request: Get) -> ItemResponse:
    table = tables(request.table)
    cut = None if request.projection is None else projector(request.projection)
    found = cursor.execute(table.get_sql, table.locate(request.key)).get
    if found is None:
        return ItemResponse(None, table.paths[None].cost(0, request.consistent))
    item = table.form.item(found)
    if cut is not None:
        item = cut(item)
    return ItemResponse(item, table.paths[None].cost(found[0], request.consistent))


def get_text(cursor: apsw.Cursor, tables: Tables, request: Get) -> ItemResponse:
    """As `get`, but where the item is whole, it is JSON text: an `orjson.Fragment`, which nothing has parsed."""
    if request.projection is not None:
        return get(cursor, tables, request)
    table = tables(request.table)
    found = cursor.execute(table.get_sql, table.locate(request.key)).get
    if found is None:
        return ItemResponse(None, table.paths[None].cost(0, request.consistent))
    text: Any = Fragment(table.form.text(found))
    return ItemResponse(text, table.paths[None].cost(found[0], request.consistent))


def batch_get(cursor: apsw.Cursor, tables: Tables, request: BatchGet) -> BatchGetResponse:
    _require_count("BatchGetItem", len(request.gets), MAX_BATCH_GET)
    by_table(request)
    found = _find(cursor, tables, request.gets, "Provided list of item keys contains duplicates")
    items: list[Item | None] = []
    unprocessed: list[Get] = []
    units: dict[str, float] = {}
    total = 0
    for one, row in zip(request.gets, found, strict=True):
        size = _size(row)
        if total + size > MAX_BATCH_SIZE:
            unprocessed.append(one)
            items.append(None)
            continue
        total += size
        items.append(_item(tables, one, row))
        units[one.table] = units.get(one.table, 0.0) + read_units(size, consistent=one.consistent)
    return BatchGetResponse(items, tuple(unprocessed), _per_table(units))


def transact_get(cursor: apsw.Cursor, tables: Tables, request: TransactGet) -> BatchGetResponse:
    _require_count("TransactGetItems", len(request.gets), MAX_TRANSACTION)
    _require_keys(tables, request.gets)
    found = _find(cursor, tables, request.gets, "Transaction request cannot include multiple operations on one item")
    if sum(map(_size, found)) > MAX_TRANSACTION_SIZE:
        raise InvalidRequest("the items of a transaction are larger than 4 MB together; read fewer of them")
    # The service tells an item without the attributes asked for as it tells one that is not there.
    items = [_item(tables, one, row) or None for one, row in zip(request.gets, found, strict=True)]
    units: dict[str, float] = {}
    for one, row in zip(request.gets, found, strict=True):
        units[one.table] = units.get(one.table, 0.0) + read_units(_size(row), transactional=True)
    return BatchGetResponse(items, (), _per_table(units))


def _require_keys(tables: Tables, gets: Sequence[Get]) -> None:
    """A key that does not fit its table cancels a transaction."""
    for at, one in enumerate(gets):
        try:
            tables(one.table).locate(one.key)
        except KeyMismatch as error:
            raise canceled_by(error, at, len(gets)) from None


def _find(cursor: apsw.Cursor, tables: Tables, gets: Sequence[Get], duplicates: str) -> list[Found | None]:
    """The row for each get, in order; None where nothing is."""
    places = [(table.get_sql, table.locate(one.key)) for one in gets for table in (tables(one.table),)]
    if len(set(places)) < len(places):
        raise InvalidRequest(duplicates)
    # Within the transaction that the caller has opened, a statement for each costs little.
    return [cursor.execute(sql, key).get for sql, key in places]


def _size(row: Found | None) -> int:
    return 0 if row is None else row[0]


def _item(tables: Tables, request: Get, row: Found | None) -> Item | None:
    cut = None if request.projection is None else projector(request.projection)
    if row is None:
        return None
    item = tables(request.table).form.item(row)
    return item if cut is None else cut(item)


def _require_count(name: str, count: int, limit: int) -> None:
    if not 1 <= count <= limit:
        raise InvalidRequest(f"{name} takes 1 to {limit} keys, not {count}; split the request")


def _per_table(units: dict[str, float]) -> tuple[Consumed, ...]:
    return tuple(Consumed(table, None, read, 0.0) for table, read in units.items())


# --- pages -------------------------------------------------------------------------------------


def query(cursor: apsw.Cursor, tables: Tables, request: Query) -> PageResponse:
    path = _path(tables(request.table), request)
    partition = partition_value(path, request.partition)
    lower, upper = (None, None) if request.sort is None else sort_bounds(path, request.sort)
    if request.filter is not None:
        require_no_keys(path, request.filter)
    start = None
    if request.start is not None:
        start = start_columns(path, request.start, partition, lower, upper)
        # The start lies within the bounds, so it takes the place of the one it is further than.
        if request.forward:
            lower = None
        else:
            upper = None
    sql = path.query_sql(lower and lower[0], upper and upper[0], start is not None, request.forward)
    bindings: list[KeyValue | int] = [partition, *[bound[1] for bound in (lower, upper) if bound], *(start or ())]
    page = _page(cursor, path, request, sql, bindings)
    # Behind the only item that there can be, nothing goes on.
    return replace(page, last=None) if len(path.columns) == 1 else page


def query_text(cursor: apsw.Cursor, tables: Tables, request: Query) -> PageResponse:
    """As `query`, with items as `get_text` answers them."""
    return _as_text(query(cursor, tables, request))


def scan_text(cursor: apsw.Cursor, tables: Tables, request: Scan) -> PageResponse:
    return _as_text(scan(cursor, tables, request))


def _as_text(page: PageResponse) -> PageResponse:
    if not isinstance(page.items, StoredItems):
        return page
    texts: Any = page.items.texts()
    return PageResponse(texts, page.count, page.scanned, page.last, page.consumed)


def scan(cursor: apsw.Cursor, tables: Tables, request: Scan) -> PageResponse:
    path = _path(tables(request.table), request)
    bindings: list[KeyValue | int] = []
    if request.segment is not None:
        which, total = request.segment
        if not (1 <= total <= 1_000_000 and 0 <= which < total):
            raise InvalidRequest(f"there is no segment {which} of {total}; segments count from 0")
        bindings += [total, which]
    if request.start is not None:
        row = path.start_row(request.start)
        if request.segment is not None and segment_of(row[path.partition], total) != which:
            raise InvalidRequest(
                "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with"
                f" correct Segment. TotalSegments: {total} Segment: {which}"
            )
        bindings += [row[column] for column in path.columns]
    sql = path.scan_sql(request.start is not None, request.segment is not None)
    return _page(cursor, path, request, sql, bindings)


def _page(
    cursor: apsw.Cursor, path: AccessPath, request: Query | Scan, sql: str, bindings: list[KeyValue | int]
) -> PageResponse:
    limit = request.limit
    if limit is not None and limit < 1:
        raise InvalidRequest(f"a limit of {limit} items asks for nothing; it must be 1 or more")
    whole, cut = _shape(path, request)
    test = None if request.filter is None else condition_test(request.filter, "FilterExpression")
    bindings.append(-1 if limit is None else limit)
    if path.projected is None and cut is None:
        if test is None:
            return _whole_page(cursor, path, request, sql, bindings, None)
        if request.count_only and (absent := _absence(path, request.filter)) is not None:
            return _whole_page(cursor, path, request, sql, bindings, (absent, test))

    items: list[Item] = []
    total = 0
    fetched = 0.0
    projected = path.projected
    read = path.form.item
    for row in cursor.execute(sql, bindings):
        item = read(row)
        if projected is None:
            total += row[0]
        else:
            entry = {name: item[name] for name in item if name in projected}
            total += item_size(entry)
            if whole:
                fetched += read_units(row[0], consistent=request.consistent)
            else:
                item = entry
        items.append(item)
        if total >= MAX_PAGE_SIZE:
            # An unfinished statement would hold its snapshot, and with it the WAL.
            cursor.execute("SELECT 1").fetchall()
            break

    scanned = len(items)
    more = scanned == limit or total >= MAX_PAGE_SIZE
    last = path.last_key(items[-1]) if more else None
    if test is not None:
        items = [item for item in items if test(item)]
    count = len(items)
    if request.count_only:
        items = []
    elif cut is not None:
        items = [cut(item) for item in items]
    consumed = path.cost(total, request.consistent)
    if fetched:
        consumed = (Consumed(path.table, None, fetched, 0.0), *consumed)
    return PageResponse(items, count, scanned, last, consumed)


def _whole_page(
    cursor: apsw.Cursor,
    path: AccessPath,
    request: Query | Scan,
    sql: str,
    bindings: list[KeyValue | int],
    absence: tuple[bytes, Callable[[Item], bool]] | None,
) -> PageResponse:
    """A page of items as they are, which are not parsed before somebody looks at them.

    With `absence`, every item must pass a test, which those do that do not even hold a name.
    """
    found = StoredItems(path.form)
    add = found.values.extend
    total = 0
    try:
        for row in cursor.execute(sql, bindings):
            add(row)
            total += row[0]
            if total >= MAX_PAGE_SIZE:
                # An unfinished statement would hold its snapshot, and with it the WAL.
                cursor.execute("SELECT 1").fetchall()
                break
    except TypeError:
        # A size that is no number.
        raise BrokenRow from None
    scanned = count = len(found)
    last = path.last_key(found.last()) if scanned == request.limit or total >= MAX_PAGE_SIZE else None
    if absence is not None:
        name, test = absence
        if any(name in body for body in found.bodies()):
            count = sum(map(test, found))
    items: Sequence[Item] = [] if request.count_only else found
    return PageResponse(items, count, scanned, last, path.cost(total, request.consistent))


def _absence(path: AccessPath, condition: Condition | None) -> bytes | None:
    """If the condition only asks that an attribute is not there: its name, as any body that has it holds it."""
    if isinstance(condition, Not) and isinstance(condition.condition, Exists):
        name = condition.condition.path.steps[0]
        if name not in path.form.names:
            return dumps(name)
    return None


class StoredItems(Sequence[Item]):
    """Items that are parsed anew whenever they are looked at, so that reading many holds one at a time.

    The values of all rows lie in one list: with a tuple for each, Python would collect garbage more often,
    and that takes longer than all that is done here.
    """

    __slots__ = ("_form", "values")

    def __init__(self, form: RowForm) -> None:
        self._form = form
        self.values: list[Any] = []

    def bodies(self) -> list[bytes]:
        return self.values[1 :: self._form.width]

    def texts(self) -> list[Fragment]:
        return [*map(Fragment, self._form.texts(self.values))]

    def last(self) -> Item:
        return self._form.item(self.values[-self._form.width :])

    def __len__(self) -> int:
        return len(self.values) // self._form.width

    def __iter__(self) -> Iterator[Item]:
        return self._form.items(self.values)

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> list[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | list[Item]:
        return list(self)[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


def _path(table: Table, request: Query | Scan) -> AccessPath:
    path = table.paths.get(request.index)
    if path is None:
        raise InvalidRequest(f"The table does not have the specified index: {request.index}")
    if request.consistent and path.index is not None and not path.index.local:
        raise InvalidRequest("Consistent reads are not supported on global secondary indexes")
    return path


def _shape(path: AccessPath, request: Query | Scan) -> tuple[bool, Callable[[Item], Item] | None]:
    """Whether whole items must be fetched from the table, and how to cut them to the projection."""
    projection = request.projection
    if projection is None:
        if request.whole and path.index is not None and path.projected is not None and not path.index.local:
            raise InvalidRequest(
                "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global"
                f" secondary index {path.index.name} because its projection type is not ALL"
            )
        return request.whole, None
    cut = projector(projection)
    if path.index is None or path.projected is None:
        return False, cut
    missing = sorted({str(one.steps[0]) for one in projection} - path.projected)
    if missing and not path.index.local:
        raise InvalidRequest(
            "One or more parameter values were invalid:"
            f" Global secondary index {path.index.name} does not project {missing}"
        )
    return bool(missing), cut
