"""Reading: get, batch get, transactional get, query and scan, with DynamoDB's results; and whole tables as text.

Each function takes a cursor, finds tables through `tables`, and performs one request. A single statement is one
snapshot; a caller that needs several statements of one instant opens a read transaction around the call. The key
condition of a query becomes values and bounds of columns. Requests that the service refuses are refused with its
messages. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeAlias, overload

import apsw
from orjson import Fragment, dumps

from adjoin.errors import InvalidRequest
from adjoin.evaluate import condition_test, projector, require_bounds
from adjoin.expressions import Condition, Exists, Not, Path, paths_in
from adjoin.key_conditions import ONE_PER_KEY, check_condition_count, check_key_conditions
from adjoin.requests import (
    BatchGet,
    BatchGetResponse,
    Consumed,
    Get,
    ItemResponse,
    PageResponse,
    Query,
    Scan,
    SortCondition,
    TransactGet,
)
from adjoin.stores.interface import canceled_by, refuse_differing_gets
from adjoin.stores.sqlite.rows import BrokenRow, FoundRow, KeyValue, RowForm, after_prefix, segment_of
from adjoin.stores.sqlite.tables import AccessPath, FindTable, KeyColumn, KeyMismatch, Table
from adjoin.units import MAX_BATCH_GET, MAX_BATCH_SIZE, MAX_PAGE_SIZE, MAX_TRANSACTION, MAX_TRANSACTION_SIZE, read_units
from adjoin.values import AttributeValue, Item, item_size

# --- key conditions ----------------------------------------------------------------------------


KeyBound: TypeAlias = tuple[str, KeyValue]
"""A comparison and its operand, as (">=", "A")."""


KeySpan: TypeAlias = tuple[list[KeyValue], KeyBound | None, KeyBound | None]
"""The part of a path that a query reads: the values of the first columns, and where the next column begins and ends."""


def span_of(path: AccessPath, request: Query) -> KeySpan:
    """The span of a query; raises if its conditions do not fit the keys of the path."""
    if path.multi_attribute is not None or request.equal:
        return _span_of_several(path, request)
    condition, column = request.sort, path.sort
    if condition is not None and column is None:
        check_condition_count(2, 1)
    name, attribute = request.partition
    if name != path.partition.name:
        raise InvalidRequest(f"Query condition missed key schema element: {path.partition.name}")
    partition = _operand(path.partition, attribute)
    if condition is None or column is None:
        return [partition], None, None
    if condition.attribute != column.name:
        raise InvalidRequest(f"Query condition missed key schema element: {column.name}")
    lower, upper = key_bounds(column, condition)
    return [partition], lower, upper


def _span_of_several(path: AccessPath, request: Query) -> KeySpan:
    given = [SortCondition(name, "=", (value,)) for name, value in (request.partition, *request.equal)]
    if request.sort is not None:
        given.append(request.sort)
    conditions = {condition.attribute: condition for condition in given}
    if len(conditions) < len(given):
        raise InvalidRequest(ONE_PER_KEY)
    if path.multi_attribute is None:
        return _span_of_two(path, request, conditions)
    check_key_conditions(path.multi_attribute, {name: each.operator for name, each in conditions.items()})
    columns = [column for column in path.columns if column.name in conditions]
    bounds = [key_bounds(column, conditions[column.name]) for column in columns]
    begin, end = (None, None) if len(columns) == len(path.partitions) else bounds.pop()
    # All keys but the last sort key have "=", whose lower bound is the value.
    return [lower[1] for lower, _ in bounds if lower is not None], begin, end


def _span_of_two(path: AccessPath, request: Query, conditions: dict[str, SortCondition]) -> KeySpan:
    """The span of a query of keys with one attribute, which may give its two conditions in either order."""
    check_condition_count(len(conditions), len(path.own_names))
    first, second = conditions.values()
    if first.attribute != path.partition.name and second.operator == "=" and len(second.operands) == 1:
        first, second = second, first
    return span_of(path, replace(request, partition=(first.attribute, first.operands[0]), sort=second, equal=()))


def _operand(column: KeyColumn, attribute: AttributeValue) -> KeyValue:
    try:
        return column.value(attribute)
    except KeyError:
        raise InvalidRequest(
            "One or more parameter values were invalid: Condition parameter type does not match schema type"
        ) from None


def _prefix(value: KeyValue) -> tuple[KeyBound | None, KeyBound | None]:
    end = after_prefix(value)
    return (">=", value), None if end is None else ("<", end)


_BOUNDS: dict[str, Callable[..., tuple[KeyBound | None, KeyBound | None]]] = {
    "=": lambda value: ((">=", value), ("<=", value)),
    "<": lambda value: (None, ("<", value)),
    "<=": lambda value: (None, ("<=", value)),
    ">": lambda value: ((">", value), None),
    ">=": lambda value: ((">=", value), None),
    "between": lambda low, high: ((">=", low), ("<=", high)),
    "begins_with": _prefix,
}


def key_bounds(column: KeyColumn, condition: SortCondition) -> tuple[KeyBound | None, KeyBound | None]:
    """The bounds of a key in the condition on it."""
    if condition.operator == "begins_with" and column.tag == "N":
        raise InvalidRequest(
            "Invalid KeyConditionExpression: Incorrect operand type for operator or function;"
            " operator or function: begins_with, operand type: N"
        )
    is_between, operands = condition.operator == "between", condition.operands
    if len(operands) != (2 if is_between else 1):
        raise InvalidRequest(f"{condition.operator} cannot take {len(operands)} operands")
    if not is_between:
        return _BOUNDS[condition.operator](_operand(column, operands[0]))
    low, high = operands
    bounds = _operand(column, low), _operand(column, high)
    require_bounds(low, high, "KeyConditionExpression")
    return _BOUNDS["between"](*bounds)


def start_columns(path: AccessPath, start: Item, span: KeySpan) -> list[KeyValue]:
    """The columns of the start key after those with one value; the start key must be within the query."""
    row = path.start_row(start)
    one_row = InvalidRequest("The query can return at most one row and cannot be restarted")
    if path.is_unique:
        raise one_row
    equal, lower, upper = span
    values = [row[column] for column in path.columns]
    keys, fixed = len(path.partitions), len(equal)
    bounds = [bound for bound in (lower, upper) if bound is not None]
    if values[keys:fixed] != equal[keys:] or not all(_within(values[fixed], bound) for bound in bounds):
        raise InvalidRequest("The provided starting key does not match the range key predicate")
    if values[:keys] != equal[:keys]:
        if bounds:
            raise one_row
        raise InvalidRequest("The provided starting key is outside query boundaries based on provided conditions")
    return values[fixed:]


def _within(value: KeyValue, bound: KeyBound) -> bool:
    comparison, limit = bound
    if value == limit:
        return "=" in comparison
    return (value < limit) == (comparison[0] == "<")  # type: ignore[operator]


def require_no_keys(path: AccessPath, condition: Condition) -> None:
    for one in paths_in(condition):
        if one.steps[0] in path.own_names:
            raise InvalidRequest(
                f"Filter Expression can only contain non-primary key attributes: Primary key attribute: {one.steps[0]}"
            )


# --- single items ------------------------------------------------------------------------------


def get(cursor: apsw.Cursor, tables: FindTable, request: Get) -> ItemResponse:
    table = tables(request.table)
    cut = None if request.projection is None else projector(request.projection)
    found = cursor.execute(table.get_sql, table.locate(request.key)).get
    if found is None:
        return ItemResponse(None, table.paths[None].cost(0, request.consistent))
    item = table.form.item(found)
    if cut is not None:
        item = cut(item)
    return ItemResponse(item, table.paths[None].cost(found[0], request.consistent))


def get_text(cursor: apsw.Cursor, tables: FindTable, request: Get) -> ItemResponse:
    """The same as `get`, but a whole item is JSON text that was not parsed: an `orjson.Fragment`."""
    if request.projection is not None:
        return get(cursor, tables, request)
    table = tables(request.table)
    found = cursor.execute(table.get_sql, table.locate(request.key)).get
    if found is None:
        return ItemResponse(None, table.paths[None].cost(0, request.consistent))
    text: Any = Fragment(table.form.text(found))
    return ItemResponse(text, table.paths[None].cost(found[0], request.consistent))


def batch_get(cursor: apsw.Cursor, tables: FindTable, request: BatchGet) -> BatchGetResponse:
    _require_count("BatchGetItem", len(request.gets), MAX_BATCH_GET)
    ways: dict[str, tuple[bool, tuple[Path, ...] | None]] = {}
    for one in request.gets:
        way = one.consistent, one.projection
        if ways.setdefault(one.table, way) != way:
            refuse_differing_gets(one.table)
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


def transact_get(cursor: apsw.Cursor, tables: FindTable, request: TransactGet) -> BatchGetResponse:
    _require_count("TransactGetItems", len(request.gets), MAX_TRANSACTION)
    _require_keys(tables, request.gets)
    found = _find(cursor, tables, request.gets, "Transaction request cannot include multiple operations on one item")
    if sum(map(_size, found)) > MAX_TRANSACTION_SIZE:
        raise InvalidRequest("the items of a transaction are larger than 4 MB together; read fewer of them")
    # The service answers in the same way for an item without the requested attributes and for no item.
    items = [_item(tables, one, row) or None for one, row in zip(request.gets, found, strict=True)]
    units: dict[str, float] = {}
    for one, row in zip(request.gets, found, strict=True):
        units[one.table] = units.get(one.table, 0.0) + read_units(_size(row), transactional=True)
    return BatchGetResponse(items, (), _per_table(units))


def _require_keys(tables: FindTable, gets: Sequence[Get]) -> None:
    """Cancels a transaction with a key that does not fit its table."""
    for at, one in enumerate(gets):
        try:
            tables(one.table).locate(one.key)
        except KeyMismatch as error:
            raise canceled_by(error, at, len(gets)) from None


def _find(cursor: apsw.Cursor, tables: FindTable, gets: Sequence[Get], duplicates: str) -> list[FoundRow | None]:
    """The row for each get, in order; None if there is no item."""
    places = [(table.get_sql, table.locate(one.key)) for one in gets for table in (tables(one.table),)]
    if len(set(places)) < len(places):
        raise InvalidRequest(duplicates)
    # One statement per key costs little inside the transaction that the caller has opened.
    return [cursor.execute(sql, key).get for sql, key in places]


def _size(row: FoundRow | None) -> int:
    return 0 if row is None else row[0]


def _item(tables: FindTable, request: Get, row: FoundRow | None) -> Item | None:
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


def query(cursor: apsw.Cursor, tables: FindTable, request: Query) -> PageResponse:
    path = _path(tables(request.table), request)
    span = span_of(path, request)
    equal, lower, upper = span
    if request.filter is not None:
        require_no_keys(path, request.filter)
    start = None
    if request.start is not None:
        start = start_columns(path, request.start, span)
        # The start is within the bounds, so it replaces the bound at which reading would begin.
        if request.forward:
            lower = None
        else:
            upper = None
    sql = path.query_sql(len(equal), lower and lower[0], upper and upper[0], start is not None, request.forward)
    bindings: list[KeyValue | int] = [*equal]
    if lower is not None:
        bindings.append(lower[1])
    if upper is not None:
        bindings.append(upper[1])
    if start is not None:
        bindings += start
    page = _page(cursor, path, request, sql, bindings)
    # There is at most one item and no next page.
    return replace(page, last=None) if path.is_unique else page


def query_text(cursor: apsw.Cursor, tables: FindTable, request: Query) -> PageResponse:
    """The same as `query`, with items as `get_text` returns them."""
    return _as_text(query(cursor, tables, request))


def scan_text(cursor: apsw.Cursor, tables: FindTable, request: Scan) -> PageResponse:
    return _as_text(scan(cursor, tables, request))


def _as_text(page: PageResponse) -> PageResponse:
    if not isinstance(page.items, StoredItems):
        return page
    texts: Any = page.items.texts()
    return PageResponse(texts, page.count, page.scanned, page.last, page.consumed)


def scan(cursor: apsw.Cursor, tables: FindTable, request: Scan) -> PageResponse:
    path = _path(tables(request.table), request)
    bindings: list[KeyValue | int] = []
    if request.segment is not None:
        which, total = request.segment
        if not (1 <= total <= 1_000_000 and 0 <= which < total):
            raise InvalidRequest(f"there is no segment {which} of {total}; segments count from 0")
        bindings += [total, which]
    if request.start is not None:
        row = path.start_row(request.start)
        partition = [row[column] for column in path.partitions]
        if request.segment is not None and segment_of(*partition, total) != which:
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
        raise InvalidRequest(f"limit must be at least 1, got {limit}")
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
            # End the statement: an unfinished one keeps its snapshot, and then the WAL cannot be checkpointed.
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
    """A page of whole items, which are parsed only when they are accessed.

    With `absence`, only items that pass a test count. If no body contains the name, all pass, and none is parsed.
    """
    found = StoredItems(path.form)
    add = found.values.extend
    total = 0
    try:
        for row in cursor.execute(sql, bindings):
            add(row)
            total += row[0]
            if total >= MAX_PAGE_SIZE:
                # End the statement, as in `_page`.
                cursor.execute("SELECT 1").fetchall()
                break
    except TypeError:
        # The size in a damaged row is not a number.
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
    """The name of an attribute, as JSON in a body, if the condition only asks that it does not exist; else None."""
    if isinstance(condition, Not) and isinstance(condition.condition, Exists):
        name = condition.condition.path.steps[0]
        if name not in path.form.names:
            return dumps(name)
    return None


class StoredItems(Sequence[Item]):
    """Items that are parsed whenever they are accessed, so that only one at a time is in memory.

    The values of all rows are in one list: with a tuple per row, Python would collect garbage more often, and that
    takes longer than everything that is done here.
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
    """Whether whole items must be read from the table, and the function that applies the projection."""
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


# --- whole tables ------------------------------------------------------------------------------


PIECE = 10_000
"""Items per piece of a dump."""


def dumped(connection: apsw.Connection, table: Table) -> Iterator[list[bytes]]:
    """All items in pieces, in the order of keys; the caller holds a transaction, so that they are of one instant."""
    text = table.form.text
    cursor = connection.execute(f"SELECT {table.form.fields} FROM {table.items} ORDER BY pk, sk")
    while piece := list(islice(cursor, PIECE)):
        yield [text(row) for row in piece]
