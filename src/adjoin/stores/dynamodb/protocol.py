"""Converts requests into DynamoDB's JSON and its answers into responses: pure functions, and a table of operations.

Every request asks for the consumed capacity, and every conditional write for the item with which its condition failed.
Expressions become text with a placeholder for every name and every value. So a name may be a reserved word or contain
any character, and equal names or values share a placeholder. One `Placeholders` serves one request.

`lifecycle` creates, describes and drops tables, which takes several calls; `streams` reads changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidRequest
from adjoin.expressions import (
    Action,
    Add,
    And,
    Arithmetic,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Discard,
    Exists,
    HasType,
    IfNotExists,
    In,
    ListAppend,
    Not,
    Or,
    Path,
    Remove,
    Set,
    Size,
    Value,
    attribute,
    check_depth,
)
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
    SortCondition,
    TransactGet,
    TransactWrite,
    Update,
    WriteResponse,
)
from adjoin.stores.dynamodb.answers import Misshapen, Payload, check_is
from adjoin.stores.interface import check_batch_write, check_expression, refuse_differing_gets
from adjoin.values import AttributeValue, Item, canonical_number

# --- expressions -------------------------------------------------------------------------------


class Placeholders:
    """Collects the placeholders of one request while its expressions are written."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: list[AttributeValue] = []

    def complete(self, payload: dict[str, Any]) -> None:
        """Adds the names and values that were used."""
        if self._names:
            payload["ExpressionAttributeNames"] = {place: name for name, place in self._names.items()}
        if self._values:
            payload["ExpressionAttributeValues"] = {f":{place}": value for place, value in enumerate(self._values)}

    def name(self, name: str) -> str:
        place = self._names.get(name)
        if place is None:
            place = self._names[name] = f"#{len(self._names)}"
        return place

    def value(self, value: AttributeValue) -> str:
        try:
            place = self._values.index(value)
        except ValueError:
            place = len(self._values)
            self._values.append(value)
        return f":{place}"

    def path(self, path: Path) -> str:
        check_depth(path)
        first, *rest = path.steps
        text = self.name(str(first))
        for step in rest:
            text += f"[{step}]" if isinstance(step, int) else f".{self.name(step)}"
        return text

    def projection(self, paths: Sequence[Path]) -> str:
        text = ", ".join(map(self.path, paths))
        check_expression("projection", tuple(paths), text)
        return text

    def key_condition(self, query: Query) -> str:
        terms = [f"{self.name(name)} = {self.value(value)}" for name, value in (query.partition, *query.equal)]
        if query.sort is not None:
            terms.append(self._sort_condition(query.sort))
        return " AND ".join(terms)

    def _sort_condition(self, sort: SortCondition) -> str:
        name, values = self.name(sort.attribute), [self.value(operand) for operand in sort.operands]
        if sort.operator == "between":
            return f"{name} BETWEEN {values[0]} AND {values[1]}"
        if sort.operator == "begins_with":
            return f"begins_with({name}, {values[0]})"
        return f"{name} {sort.operator} {values[0]}"

    # --- conditions ---

    def condition(self, condition: Condition, what: str = "condition") -> str:
        text = self._write(condition)
        check_expression(what, condition, text)
        return text

    def _write(self, part: Any) -> str:
        return _WRITERS[type(part)](self, part)

    def _all(self, parts: Sequence[Any]) -> str:
        return ", ".join(map(self._write, parts))

    def _joined(self, word: str, conditions: Sequence[Condition]) -> str:
        if not conditions:
            raise InvalidRequest(f"{word} of no conditions cannot be sent; leave the condition out")
        if len(conditions) == 1:
            return self._write(conditions[0])
        return f" {word} ".join(f"({self._write(each)})" for each in conditions)

    # --- updates ---

    def update(self, actions: Sequence[Action]) -> str:
        """SET … REMOVE … ADD … DELETE …: each clause once, its actions in order."""
        clauses: dict[str, list[str]] = {}
        for action in actions:
            clauses.setdefault(_CLAUSES[type(action)], []).append(self._action(action))
        text = " ".join(f"{clause} {', '.join(clauses[clause])}" for clause in _CLAUSES.values() if clause in clauses)
        check_expression("update", tuple(actions), text)
        return text

    def _action(self, action: Action) -> str:
        path = self.path(action.path)
        match action:
            case Set():
                return f"{path} = {self._write(action.value)}"
            case Remove():
                return path
            case Add() | Discard():
                return f"{path} {self.value(action.value)}"


_CLAUSES: dict[type, str] = {Set: "SET", Remove: "REMOVE", Add: "ADD", Discard: "DELETE"}

_WRITERS: dict[type, Callable[[Placeholders, Any], str]] = {
    Path: Placeholders.path,
    Value: lambda at, part: at.value(part.attribute),
    Size: lambda at, part: f"size({at.path(part.path)})",
    Compare: lambda at, part: f"{at._write(part.left)} {part.operator} {at._write(part.right)}",
    Between: lambda at, part: f"{at._write(part.operand)} BETWEEN {at._write(part.low)} AND {at._write(part.high)}",
    In: lambda at, part: f"{at._write(part.operand)} IN ({at._all(part.options)})",
    Exists: lambda at, part: f"attribute_exists({at.path(part.path)})",
    HasType: lambda at, part: f"attribute_type({at.path(part.path)}, {at.value({'S': part.type})})",
    BeginsWith: lambda at, part: f"begins_with({at._all((part.operand, part.prefix))})",
    Contains: lambda at, part: f"contains({at._all((part.operand, part.element))})",
    And: lambda at, part: at._joined("AND", part.conditions),
    Or: lambda at, part: at._joined("OR", part.conditions),
    Not: lambda at, part: f"NOT ({at._write(part.condition)})",
    IfNotExists: lambda at, part: f"if_not_exists({at._all((part.path, part.default))})",
    ListAppend: lambda at, part: f"list_append({at._all((part.first, part.second))})",
    Arithmetic: lambda at, part: f"{at._write(part.left)} {part.operator} {at._write(part.right)}",
}


# --- operations --------------------------------------------------------------------------------


ItemIdentity: TypeAlias = tuple[tuple[str, str, str], ...]

_RETURNED = {
    "old": "ALL_OLD",
    "new": "ALL_NEW",
    "updated_old": "UPDATED_OLD",
    "updated_new": "UPDATED_NEW",
}


@dataclass(frozen=True, slots=True)
class ServiceOperation:
    """An operation of the service: its name, and the functions for the JSON of requests and of answers."""

    target: str
    payload: Callable[[Any], Payload]
    response: Callable[[Any, Payload], Response]
    """Converts an answer whose shape was checked, see `answers`."""


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
        # Only transactions have these: one that is repeated with its token consumes read units instead of write units.
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
        at = Placeholders()
        payload["ProjectionExpression"] = at.projection(request.projection)
        at.complete(payload)
    return payload


def _got(request: Get, answer: Payload) -> ItemResponse:
    item = answer.get("Item")
    if item is not None and request.projection is None:
        check_is(request.key, item, "Item")
    return ItemResponse(item, _units(answer.get("ConsumedCapacity"), writes=False))


def _write(request: Put | Update | Delete | Check) -> Payload:
    """The payload of a write, both alone and in a transaction."""
    payload: Payload = {"TableName": request.table}
    at = Placeholders()
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
    # For an item that did not exist, servers answer with empty attributes or with none.
    item = answer.get("Attributes") or None
    if item is None and isinstance(request, Update) and request.returns == "new":
        # After an update there is an item, and it has at least its key.
        raise Misshapen("it", "has no Attributes")
    if item is not None and not isinstance(request, Put) and not _is_part(request):
        check_is(request.key, item, "Attributes")
    return ItemResponse(item, _units(answer.get("ConsumedCapacity"), writes=True))


def _is_part(request: Update | Delete) -> bool:
    return isinstance(request, Update) and request.returns in ("updated_old", "updated_new")


# --- pages -------------------------------------------------------------------------------------


def _page(request: Query | Scan) -> Payload:
    payload: Payload = {"TableName": request.table, "ReturnConsumedCapacity": "INDEXES"}
    at = Placeholders()
    if isinstance(request, Query):
        payload["KeyConditionExpression"] = at.key_condition(request)
        if not request.forward:
            payload["ScanIndexForward"] = False
    elif request.segment is not None:
        payload["Segment"], payload["TotalSegments"] = request.segment
    if request.index is not None:
        payload["IndexName"] = request.index
    if request.filter is not None:
        payload["FilterExpression"] = at.condition(request.filter, "filter")
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
        raise Misshapen("LastEvaluatedKey", "is the start key of the request, so that pages would never end")
    return PageResponse(
        items or [],
        answer["Count"],
        answer["ScannedCount"],
        last,
        _units(answer.get("ConsumedCapacity"), writes=False),
    )


# --- batches -----------------------------------------------------------------------------------


def identity(names: Iterable[str], item: Item) -> ItemIdentity:
    """The identity of an item by its key; numbers may be spelled differently."""
    found = []
    for name in names:
        for tag, value in item[name].items():
            found.append((name, tag, canonical_number(value) if tag == "N" else value))
    return tuple(sorted(found))


def _batch_get(request: BatchGet) -> Payload:
    alike: dict[tuple[str, bool, tuple[Path, ...] | None], list[Get]] = {}
    for get in request.gets:
        alike.setdefault((get.table, get.consistent, get.projection), []).append(get)
    items: Payload = {}
    for (table, consistent, projection), gets in alike.items():
        if table in items:
            refuse_differing_gets(table)
        entry: Payload = {"Keys": [get.key for get in gets]}
        if consistent:
            entry["ConsistentRead"] = True
        if projection is not None:
            at = Placeholders()
            # The answer has the items in any order, so the keys are needed to assign them to the gets.
            entry["ProjectionExpression"] = at.projection((*projection, *_unasked_keys(gets[0])))
            at.complete(entry)
        items[table] = entry
    return {"RequestItems": items, "ReturnConsumedCapacity": "TOTAL"}


def _unasked_keys(get: Get) -> tuple[Path, ...]:
    asked = {path.steps[0] for path in get.projection or ()}
    return tuple(attribute(name) for name in get.key if name not in asked)


def _batch_got(request: BatchGet, answer: Payload) -> BatchGetResponse:
    places = [(get.table, identity(get.key, get.key)) for get in request.gets]
    asked = set(places)
    found: dict[tuple[str, ItemIdentity], Item] = {}
    left: set[tuple[str, ItemIdentity]] = set()
    # The gets from one table are alike, so each of them tells what the others asked for.
    for table, get in {get.table: get for get in request.gets}.items():
        names = tuple(get.key)
        unasked = () if get.projection is None else [path.steps[0] for path in _unasked_keys(get)]
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
    asked: set[tuple[str, ItemIdentity]], table: str, names: tuple[str, ...], item: Item, at: str
) -> tuple[str, ItemIdentity]:
    place = (table, identity(names, item)) if all(name in item for name in names) else None
    if place is None or place not in asked:
        raise Misshapen(at, "was not asked for")
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
                # Unprocessed writes are sent again, so a write that was not asked for must not be accepted.
                raise Misshapen(f"UnprocessedItems.{table}[{number}]", "was not asked for")
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
            at = Placeholders()
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


OPERATIONS: dict[type, ServiceOperation] = {
    Get: ServiceOperation(target("GetItem"), _get, _got),
    Query: ServiceOperation(target("Query"), _page, _paged),
    Scan: ServiceOperation(target("Scan"), _page, _paged),
    Put: ServiceOperation(target("PutItem"), _single, _written),
    Update: ServiceOperation(target("UpdateItem"), _single, _written),
    Delete: ServiceOperation(target("DeleteItem"), _single, _written),
    BatchGet: ServiceOperation(target("BatchGetItem"), _batch_get, _batch_got),
    BatchWrite: ServiceOperation(target("BatchWriteItem"), _batch_write, _batch_written),
    TransactGet: ServiceOperation(target("TransactGetItems"), _transact_get, _transact_got),
    TransactWrite: ServiceOperation(target("TransactWriteItems"), _transact_write, _transacted),
}
