"""Requests as DynamoDB's JSON and its answers as responses: pure functions, a table of operations.

Everything asks for consumed capacity, and every conditional write for the item that was in its way.
Creating, describing and dropping tables takes several calls and is in `lifecycle`; changes are in
`streams`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from adjoin.expressions import Path, attribute
from adjoin.items import normal_item
from adjoin.requests import (
    BatchGet,
    BatchGetResponse,
    BatchWrite,
    Check,
    Consumed,
    Delete,
    Get,
    ItemResponse,
    PageResponse,
    Put,
    Query,
    Response,
    Scan,
    TransactGet,
    TransactWrite,
    Update,
    WriteResponse,
)
from adjoin.stores.batches import by_table, check_batch_write
from adjoin.stores.dynamodb.answers import Misshapen, Payload, check_is
from adjoin.stores.dynamodb.expressions import Expressions
from adjoin.values import Item, canonical_number

Identity: TypeAlias = tuple[tuple[str, str, str], ...]

_RETURNED = {
    "old": "ALL_OLD",
    "new": "ALL_NEW",
    "updated_old": "UPDATED_OLD",
    "updated_new": "UPDATED_NEW",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """A call of the service: its name, the JSON of a request, and the response in an answer's JSON."""

    target: str
    payload: Callable[[Any], Payload]
    response: Callable[[Any, Payload], Response]
    """Of an answer that is shaped as it must be, see `answers`."""


# --- what was consumed -------------------------------------------------------------------------


def _units(found: Payload | Iterable[Payload] | None, *, writes: bool) -> tuple[Consumed, ...]:
    if found is None:
        return ()
    rows: list[Consumed] = []
    for capacity in (found,) if isinstance(found, dict) else found:
        name = capacity["TableName"]
        own = capacity.get("Table") or capacity
        indexes = {**(capacity.get("LocalSecondaryIndexes") or {}), **(capacity.get("GlobalSecondaryIndexes") or {})}
        if own.get("CapacityUnits") or not indexes:
            rows.append(_row(name, None, own, writes))
        rows += [_row(name, index, taken, writes) for index, taken in indexes.items()]
    return tuple(rows)


def _row(table: str, index: str | None, taken: Payload, writes: bool) -> Consumed:
    if "ReadCapacityUnits" in taken or "WriteCapacityUnits" in taken:
        # Of transactions: one that is repeated with its token costs reading instead of writing.
        read, write = taken.get("ReadCapacityUnits") or 0.0, taken.get("WriteCapacityUnits") or 0.0
        return Consumed(table, index, float(read), float(write))
    units = float(taken.get("CapacityUnits") or 0.0)
    return Consumed(table, index, 0.0, units) if writes else Consumed(table, index, units, 0.0)


# --- single items ------------------------------------------------------------------------------


def _get(request: Get) -> Payload:
    payload: Payload = {"TableName": request.table, "Key": request.key, "ReturnConsumedCapacity": "TOTAL"}
    if request.consistent:
        payload["ConsistentRead"] = True
    if request.projection is not None:
        at = Expressions()
        payload["ProjectionExpression"] = at.projection(request.projection)
        at.complete(payload)
    return payload


def _got(request: Get, answer: Payload) -> ItemResponse:
    item = answer.get("Item")
    if item is not None and request.projection is None:
        check_is(request.key, item, "Item")
    return ItemResponse(item, _units(answer.get("ConsumedCapacity"), writes=False))


def _write(request: Put | Update | Delete | Check) -> Payload:
    """What a write says of itself, alone or in a transaction."""
    payload: Payload = {"TableName": request.table}
    at = Expressions()
    if isinstance(request, Put):
        payload["Item"] = request.item
    else:
        payload["Key"] = request.key
    if isinstance(request, Update) and request.actions:
        payload["UpdateExpression"] = at.update(request.actions)
    if request.condition is not None:
        payload["ConditionExpression"] = at.condition(request.condition)
        payload["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    at.complete(payload)
    return payload


def _single(request: Put | Update | Delete) -> Payload:
    payload = _write(request)
    payload["ReturnConsumedCapacity"] = "INDEXES"
    if isinstance(request, Update):
        if request.returns != "none":
            payload["ReturnValues"] = _RETURNED[request.returns]
    elif request.return_old:
        payload["ReturnValues"] = "ALL_OLD"
    return payload


def _written(request: Put | Update | Delete, answer: Payload) -> ItemResponse:
    # An item that was not there comes back without attributes, or not at all.
    item = answer.get("Attributes") or None
    if item is not None and not isinstance(request, Put) and not _is_part(request):
        check_is(request.key, item, "Attributes")
    return ItemResponse(item, _units(answer.get("ConsumedCapacity"), writes=True))


def _is_part(request: Update | Delete) -> bool:
    return isinstance(request, Update) and request.returns in ("updated_old", "updated_new")


# --- pages -------------------------------------------------------------------------------------


def _page(request: Query | Scan) -> Payload:
    payload: Payload = {"TableName": request.table, "ReturnConsumedCapacity": "INDEXES"}
    at = Expressions()
    if isinstance(request, Query):
        payload["KeyConditionExpression"] = at.key_condition(request)
        if not request.forward:
            payload["ScanIndexForward"] = False
    elif request.segment is not None:
        payload["Segment"], payload["TotalSegments"] = request.segment
    if request.index is not None:
        payload["IndexName"] = request.index
    if request.filter is not None:
        payload["FilterExpression"] = at.condition(request.filter)
    if request.projection is not None:
        payload["ProjectionExpression"] = at.projection(request.projection)
    if request.count_only:
        payload["Select"] = "COUNT"
    elif request.whole:
        payload["Select"] = "ALL_ATTRIBUTES"
    if request.limit is not None:
        payload["Limit"] = request.limit
    if request.start is not None:
        payload["ExclusiveStartKey"] = request.start
    if request.consistent:
        payload["ConsistentRead"] = True
    at.complete(payload)
    return payload


def _paged(request: Query | Scan, answer: Payload) -> PageResponse:
    items, last = answer.get("Items"), answer.get("LastEvaluatedKey") or None
    if items is None and not request.count_only:
        raise Misshapen("", "has no Items")
    if last is not None and last == request.start:
        raise Misshapen("LastEvaluatedKey", "is the key that was started after, so that pages would never end")
    return PageResponse(
        items or [],
        answer["Count"],
        answer["ScannedCount"],
        last,
        _units(answer.get("ConsumedCapacity"), writes=False),
    )


# --- batches -----------------------------------------------------------------------------------


def identity(names: Iterable[str], item: Item) -> Identity:
    """Which item this is, whatever spelling its numbers have."""
    found = []
    for name in names:
        for tag, value in item[name].items():
            found.append((name, tag, canonical_number(value) if tag == "N" else value))
    return tuple(sorted(found))


def _batch_get(request: BatchGet) -> Payload:
    items: Payload = {}
    for table, gets in by_table(request).items():
        entry: Payload = {"Keys": [get.key for get in gets]}
        if gets[0].consistent:
            entry["ConsistentRead"] = True
        if gets[0].projection is not None:
            at = Expressions()
            # Items come back in any order: only their keys tell which is which.
            entry["ProjectionExpression"] = at.projection((*gets[0].projection, *_unasked_keys(gets[0])))
            at.complete(entry)
        items[table] = entry
    return {"RequestItems": items, "ReturnConsumedCapacity": "TOTAL"}


def _unasked_keys(get: Get) -> tuple[Path, ...]:
    asked = {path.steps[0] for path in get.projection or ()}
    return tuple(attribute(name) for name in get.key if name not in asked)


def _batch_got(request: BatchGet, answer: Payload) -> BatchGetResponse:
    places = [(get.table, identity(get.key, get.key)) for get in request.gets]
    asked = set(places)
    found: dict[tuple[str, Identity], Item] = {}
    left: set[tuple[str, Identity]] = set()
    for table, gets in by_table(request).items():
        names = tuple(gets[0].key)
        unasked = () if gets[0].projection is None else [path.steps[0] for path in _unasked_keys(gets[0])]
        for number, item in enumerate(answer["Responses"].get(table, ())):
            place = _place(asked, table, names, item, f"Responses.{table}[{number}]")
            found[place] = {name: item[name] for name in item if name not in unasked} if unasked else item
        unread = (answer.get("UnprocessedKeys") or {}).get(table, {}).get("Keys", ())
        for number, key in enumerate(unread):
            left.add(_place(asked, table, names, key, f"UnprocessedKeys.{table}.Keys[{number}]"))
    return BatchGetResponse(
        [found.get(place) for place in places],
        tuple(get for get, place in zip(request.gets, places, strict=True) if place in left) if left else (),
        _units(answer.get("ConsumedCapacity"), writes=False),
    )


def _place(
    asked: set[tuple[str, Identity]], table: str, names: tuple[str, ...], item: Item, at: str
) -> tuple[str, Identity]:
    place = (table, identity(names, item)) if all(name in item for name in names) else None
    if place is None or place not in asked:
        raise Misshapen(at, "is none that was asked for")
    return place


def _batch_write(request: BatchWrite) -> Payload:
    check_batch_write(request)
    items: dict[str, list[Payload]] = {}
    for write in request.writes:
        entry = (
            {"PutRequest": {"Item": write.item}} if isinstance(write, Put) else {"DeleteRequest": {"Key": write.key}}
        )
        items.setdefault(write.table, []).append(entry)
    return {"RequestItems": items, "ReturnConsumedCapacity": "INDEXES"}


def _batch_written(request: BatchWrite, answer: Payload) -> WriteResponse:
    left: list[Put | Delete] = []
    for table, entries in (answer.get("UnprocessedItems") or {}).items():
        for number, entry in enumerate(entries):
            put = entry.get("PutRequest")
            write = Put(table, put["Item"]) if put else Delete(table, entry["DeleteRequest"]["Key"])
            asked = next((each for each in request.writes if _is_same(each, write)), None)
            if asked is None:
                # It would be written: only what was asked for is.
                raise Misshapen(f"UnprocessedItems.{table}[{number}]", "is none that was asked for")
            left.append(asked)
    return WriteResponse(tuple(left), _units(answer.get("ConsumedCapacity"), writes=True))


def _is_same(one: Put | Delete, other: Put | Delete) -> bool:
    if type(one) is not type(other) or one.table != other.table:
        return False
    mine, others = (write.item if isinstance(write, Put) else write.key for write in (one, other))
    return mine == others or normal_item(mine)[0] == normal_item(others)[0]


# --- transactions ------------------------------------------------------------------------------

_TRANSACTED: dict[type, str] = {Put: "Put", Update: "Update", Delete: "Delete", Check: "ConditionCheck"}


def _transact_get(request: TransactGet) -> Payload:
    entries = []
    for get in request.gets:
        entry: Payload = {"TableName": get.table, "Key": get.key}
        if get.projection is not None:
            at = Expressions()
            entry["ProjectionExpression"] = at.projection(get.projection)
            at.complete(entry)
        entries.append({"Get": entry})
    return {"TransactItems": entries, "ReturnConsumedCapacity": "TOTAL"}


def _transact_got(request: TransactGet, answer: Payload) -> BatchGetResponse:
    if len(answer["Responses"]) != len(request.gets):
        raise Misshapen("Responses", f"has {len(answer['Responses'])} answers to {len(request.gets)} gets")
    items = [found.get("Item") for found in answer["Responses"]]
    for number, (get, item) in enumerate(zip(request.gets, items, strict=True)):
        if item is not None and get.projection is None:
            check_is(get.key, item, f"Responses[{number}].Item")
    return BatchGetResponse(items, (), _units(answer.get("ConsumedCapacity"), writes=False))


def _transact_write(request: TransactWrite) -> Payload:
    payload: Payload = {
        "TransactItems": [{_TRANSACTED[type(write)]: _write(write)} for write in request.writes],
        "ReturnConsumedCapacity": "INDEXES",
    }
    if request.token is not None:
        payload["ClientRequestToken"] = request.token
    return payload


def _transacted(request: TransactWrite, answer: Payload) -> WriteResponse:
    return WriteResponse((), _units(answer.get("ConsumedCapacity"), writes=True))


def target(operation: str) -> str:
    return f"DynamoDB_20120810.{operation}"


OPERATIONS: dict[type, Operation] = {
    Get: Operation(target("GetItem"), _get, _got),
    Query: Operation(target("Query"), _page, _paged),
    Scan: Operation(target("Scan"), _page, _paged),
    Put: Operation(target("PutItem"), _single, _written),
    Update: Operation(target("UpdateItem"), _single, _written),
    Delete: Operation(target("DeleteItem"), _single, _written),
    BatchGet: Operation(target("BatchGetItem"), _batch_get, _batch_got),
    BatchWrite: Operation(target("BatchWriteItem"), _batch_write, _batch_written),
    TransactGet: Operation(target("TransactGetItems"), _transact_get, _transact_got),
    TransactWrite: Operation(target("TransactWriteItems"), _transact_write, _transacted),
}
