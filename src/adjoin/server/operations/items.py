"""Operations on one item: GetItem, PutItem, UpdateItem, DeleteItem.

Beside each operation is its fast path, if it has one. This module also has what batches and transactions share with
these operations: the meaning of parameters, and how an answer shows ConsumedCapacity and ItemCollectionMetrics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

from adjoin.errors import InvalidRequest
from adjoin.expressions import Action, Condition, Path
from adjoin.items import NormalItem, plain_item
from adjoin.requests import Consumed, Delete, Get, ItemResponse, Put, Returned, Update
from adjoin.server.grammar import Expressions, attribute_updates, attributes_to_get, expected_condition
from adjoin.server.grammar.attributes import normal
from adjoin.server.operations.interface import (
    AnswerBody,
    ExpressionParameters,
    Operation,
    Parameters,
    ShortGet,
    ShortWrite,
    TableLookup,
    table_name,
)
from adjoin.server.operations.shapes import (
    ATTRIBUTE,
    ATTRIBUTE_NAME,
    ATTRIBUTE_NAMES,
    ATTRIBUTES,
    CAPACITY,
    COMPARISON,
    FLAG,
    METRICS,
    NAMES,
    OPERATOR,
    RETURN_ON_FAILURE,
    RETURN_VALUES,
    TABLE,
    TEXT,
    Entries,
    Listing,
    Text,
    structure,
)
from adjoin.tables import TableDefinition
from adjoin.units import MAX_ITEM_SIZE

# --- what parameters mean ----------------------------------------------------------------------

READ_PARAMETERS = ExpressionParameters(("ProjectionExpression",), ("AttributesToGet",))
_WRITE_PARAMETERS = ExpressionParameters(("ConditionExpression",), ("Expected", "ConditionalOperator"))

_EXPECTED = Entries(
    structure(
        "ExpectedAttributeValue",
        AttributeValueList=Listing(ATTRIBUTE),
        ComparisonOperator=COMPARISON,
        Exists=FLAG,
        Value=ATTRIBUTE,
    ),
    keys=ATTRIBUTE_NAME,
)

_RETURNS: dict[str, Returned] = {
    "NONE": "none",
    "ALL_OLD": "old",
    "ALL_NEW": "new",
    "UPDATED_OLD": "updated_old",
    "UPDATED_NEW": "updated_new",
}


def projection_of(parameters: Parameters, expressions: Expressions) -> tuple[Path, ...] | None:
    if "AttributesToGet" in parameters:
        return attributes_to_get(parameters["AttributesToGet"])
    return expressions.projection


def projection_within(table: str, parameters: Parameters, tables: TableLookup) -> tuple[Path, ...] | None:
    """Returns the projection of a request; raises if a path leads into a key."""
    projection = projection_of(parameters, Expressions.of(parameters))
    if projection is not None and _leads_within(projection):
        check_key_paths(projection, tables.definition(table))
    return projection


def _condition(parameters: Parameters, expressions: Expressions) -> Condition | None:
    if "Expected" in parameters:
        return expected_condition(parameters["Expected"], parameters.get("ConditionalOperator"))
    return expressions.condition


def _actions(parameters: Parameters, expressions: Expressions) -> tuple[Action, ...]:
    if "AttributeUpdates" in parameters:
        return attribute_updates(parameters["AttributeUpdates"])
    return expressions.update or ()


def _returns_old(parameters: Parameters) -> bool:
    return bool(parameters.get("ReturnValues") == "ALL_OLD")


def _leads_within(paths: Iterable[Path]) -> bool:
    return any(len(path.steps) > 1 for path in paths)


def check_key_paths(paths: Iterable[Path], table: TableDefinition, *, of_table: bool = True) -> None:
    """Raises for a path into a key, because a key is neither a list nor a map.

    `of_table` says whether the keys of the table are checked too, or only those of its indexes.
    """
    heads = {path.steps[0] for path in paths if len(path.steps) > 1}
    if not heads:
        return
    primary = {key.name for key in table.keys}
    for key in table.key_attributes:
        if key.name in heads and (of_table or key.name not in primary):
            kind = "Key" if key.name in primary else "IndexKey"
            raise InvalidRequest(
                "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed:"
                f" {kind}: {key.name}"
            )


def check_size(size: int) -> None:
    if size > MAX_ITEM_SIZE:
        raise InvalidRequest("Item size has exceeded the maximum allowed size")


def _check_returned(request: Parameters) -> None:
    if request.get("ReturnValues", "NONE") not in ("ALL_OLD", "NONE"):
        raise InvalidRequest("ReturnValues can only be ALL_OLD or NONE")


def _check_expected(request: Parameters) -> None:
    if "Expected" in request:
        expected_condition(request["Expected"])


# --- what is answered --------------------------------------------------------------------------

_Units: TypeAlias = dict[str | None, tuple[float, float]]
"""Read and write units by index; those of the table itself are under None."""


def capacity(
    rows: Iterable[Consumed],
    asked: str | None,
    tables: TableLookup,
    references: Iterable[str],
    *,
    transactional: bool = False,
) -> list[AnswerBody]:
    """Returns ConsumedCapacity with one element per table, as detailed as ReturnConsumedCapacity asks; empty for NONE.

    `references` are the tables as the request names them: a table that is named by its ARN is shown with it.
    """
    if asked not in ("TOTAL", "INDEXES"):
        return []
    found: dict[str, _Units] = {}
    for row in rows:
        units = found.setdefault(row.table, {None: (0.0, 0.0)})
        read, write = units.get(row.index, (0.0, 0.0))
        units[row.index] = (read + row.read, write + row.write)
    named = {table_name(reference): reference for reference in references}
    entries = [_entry(name, units, asked, tables, transactional) for name, units in found.items()]
    return [{**entry, "TableName": named[entry["TableName"]]} for entry in entries]


def _entry(name: str, units: _Units, asked: str, tables: TableLookup, transactional: bool) -> AnswerBody:
    total = (sum(read for read, _ in units.values()), sum(write for _, write in units.values()))
    entry: AnswerBody = {"TableName": name, **_shown(total, transactional)}
    if asked == "INDEXES":
        entry["Table"] = _shown(units[None], transactional)
        for index, taken in units.items():
            if index is not None:
                definition = tables.definition(name).index(index)
                member = "LocalSecondaryIndexes" if definition and definition.local else "GlobalSecondaryIndexes"
                entry.setdefault(member, {})[index] = _shown(taken, transactional)
    return entry


def _shown(units: tuple[float, float], transactional: bool) -> dict[str, float]:
    read, write = units
    shown = {"CapacityUnits": read + write}
    if transactional:
        shown |= {"ReadCapacityUnits": read} if read else {"WriteCapacityUnits": write}
    return shown


def collection_metrics(
    parameters: Parameters, table: str, keys: list[AnswerBody], tables: TableLookup
) -> list[AnswerBody]:
    """Returns ItemCollectionMetrics: for a table with local indexes, a size estimate of each written partition."""
    if parameters.get("ReturnItemCollectionMetrics") != "SIZE":
        return []
    definition = tables.definition(table)
    if not any(index.local for index in definition.indexes):
        return []
    name = definition.partition.name
    return [{"ItemCollectionKey": {name: key[name]}, "SizeEstimateRangeGB": [0.0, 1.0]} for key in keys]


def _consumed(parameters: Parameters, response: ItemResponse, tables: TableLookup) -> AnswerBody:
    asked = parameters.get("ReturnConsumedCapacity")
    shown = capacity(response.consumed, asked, tables, (parameters["TableName"],)) if asked else ()
    return {"ConsumedCapacity": shown[0]} if shown else {}


def _written(parameters: Parameters, response: ItemResponse, tables: TableLookup) -> AnswerBody:
    answer: AnswerBody = {} if not response.item else {"Attributes": response.item}
    answer |= _consumed(parameters, response, tables)
    key = parameters.get("Key") or parameters["Item"]
    if metrics := collection_metrics(parameters, table_name(parameters["TableName"]), [key], tables):
        answer["ItemCollectionMetrics"] = metrics[0]
    return answer


# --- short ways --------------------------------------------------------------------------------

is_plain_name = re.compile("[a-zA-Z0-9_.-]{3,255}").fullmatch


def _only_member(asked: Any, member: str) -> NormalItem | None:
    """Returns the plain item or key of a request that has only this member and a table; otherwise None."""
    try:
        return plain_item(asked[member]) if len(asked) == 2 and is_plain_name(asked["TableName"]) else None
    except (KeyError, TypeError):
        return None


# --- GetItem -----------------------------------------------------------------------------------


def _check_get(request: Parameters) -> None:
    request["Key"], _ = normal(request["Key"])
    if "AttributesToGet" in request:
        attributes_to_get(request["AttributesToGet"])


def get(parameters: Parameters, tables: TableLookup) -> Get:
    table = table_name(parameters["TableName"])
    projection = projection_within(table, parameters, tables)
    return Get(table, parameters["Key"], parameters.get("ConsistentRead", False), projection)


def _got(parameters: Parameters, response: ItemResponse, tables: TableLookup) -> AnswerBody:
    answer = {} if response.item is None else {"Item": response.item}
    return answer | _consumed(parameters, response, tables)


def _whole_get(asked: Any) -> tuple[Any, Any] | None:
    """Returns the table and the key, unchecked, of a GetItem without further parameters; otherwise None."""
    try:
        if len(asked) == 2 or (len(asked) == 3 and type(asked["ConsistentRead"]) is bool):
            return asked["TableName"], asked["Key"]
    except (KeyError, TypeError):
        pass
    return None


_GET_ITEM = Operation(
    "GetItem",
    structure(
        "GetItemInput",
        "TableName Key",
        ReturnConsumedCapacity=CAPACITY,
        AttributesToGet=ATTRIBUTE_NAMES,
        TableName=TABLE,
        Key=ATTRIBUTES,
        ConsistentRead=FLAG,
        ProjectionExpression=TEXT,
        ExpressionAttributeNames=NAMES,
    ),
    get,
    _got,
    takes=READ_PARAMETERS,
    rule=_check_get,
    short=ShortGet(_whole_get),
)

# --- PutItem -----------------------------------------------------------------------------------


def _check_put(request: Parameters) -> None:
    request["Item"], size = normal(request["Item"])
    _check_returned(request)
    check_size(size)
    _check_expected(request)


def put(parameters: Parameters, tables: TableLookup) -> Put:
    condition = _condition(parameters, Expressions.of(parameters))
    return Put(table_name(parameters["TableName"]), parameters["Item"], condition, _returns_old(parameters))


def _short_put(asked: Any) -> Put | None:
    item = _only_member(asked, "Item")
    return None if item is None else Put(asked["TableName"], item)


_PUT_ITEM = Operation(
    "PutItem",
    structure(
        "PutItemInput",
        "TableName Item",
        ReturnConsumedCapacity=CAPACITY,
        TableName=TABLE,
        Item=ATTRIBUTES,
        ConditionalOperator=OPERATOR,
        Expected=_EXPECTED,
        ReturnValues=RETURN_VALUES,
        ReturnItemCollectionMetrics=METRICS,
        ReturnValuesOnConditionCheckFailure=RETURN_ON_FAILURE,
        ConditionExpression=TEXT,
        ExpressionAttributeValues=ATTRIBUTES,
        ExpressionAttributeNames=NAMES,
    ),
    put,
    _written,
    takes=_WRITE_PARAMETERS,
    rule=_check_put,
    writes=True,
    short=ShortWrite(_short_put, b"{}"),
)

# --- DeleteItem --------------------------------------------------------------------------------


def _check_delete(request: Parameters) -> None:
    request["Key"], _ = normal(request["Key"])
    _check_returned(request)
    _check_expected(request)


def delete(parameters: Parameters, tables: TableLookup) -> Delete:
    condition = _condition(parameters, Expressions.of(parameters))
    return Delete(table_name(parameters["TableName"]), parameters["Key"], condition, _returns_old(parameters))


def _short_delete(asked: Any) -> Delete | None:
    key = _only_member(asked, "Key")
    return None if key is None else Delete(asked["TableName"], key)


_DELETE_ITEM = Operation(
    "DeleteItem",
    structure(
        "DeleteItemInput",
        "TableName Key",
        ReturnConsumedCapacity=CAPACITY,
        TableName=TABLE,
        ReturnValues=RETURN_VALUES,
        ReturnItemCollectionMetrics=METRICS,
        Key=ATTRIBUTES,
        ConditionalOperator=OPERATOR,
        Expected=_EXPECTED,
        ReturnValuesOnConditionCheckFailure=RETURN_ON_FAILURE,
        ConditionExpression=TEXT,
        ExpressionAttributeValues=ATTRIBUTES,
        ExpressionAttributeNames=NAMES,
    ),
    delete,
    _written,
    takes=_WRITE_PARAMETERS,
    rule=_check_delete,
    writes=True,
    short=ShortWrite(_short_delete, b"{}"),
)

# --- UpdateItem --------------------------------------------------------------------------------


def _check_update(request: Parameters) -> None:
    request["Key"], _ = normal(request["Key"])
    if "AttributeUpdates" in request:
        attribute_updates(request["AttributeUpdates"])
    _check_expected(request)


def update(parameters: Parameters, tables: TableLookup) -> Update:
    expressions = Expressions.of(parameters)
    table = table_name(parameters["TableName"])
    actions = _actions(parameters, expressions)
    paths = [action.path for action in actions]
    if _leads_within(paths):
        # For the keys of the table itself, the store has another message: they cannot be changed at all.
        check_key_paths(paths, tables.definition(table), of_table=False)
    return Update(
        table,
        parameters["Key"],
        actions,
        _condition(parameters, expressions),
        _RETURNS[parameters.get("ReturnValues", "NONE")],
    )


_UPDATE_ITEM = Operation(
    "UpdateItem",
    structure(
        "UpdateItemInput",
        "TableName Key",
        ReturnConsumedCapacity=CAPACITY,
        TableName=TABLE,
        ReturnItemCollectionMetrics=METRICS,
        ReturnValues=RETURN_VALUES,
        Key=ATTRIBUTES,
        ConditionalOperator=OPERATOR,
        Expected=_EXPECTED,
        AttributeUpdates=Entries(
            structure("AttributeValueUpdate", Action=Text(choices=("ADD", "PUT", "DELETE")), Value=ATTRIBUTE),
            keys=ATTRIBUTE_NAME,
        ),
        ReturnValuesOnConditionCheckFailure=RETURN_ON_FAILURE,
        ConditionExpression=TEXT,
        UpdateExpression=TEXT,
        ExpressionAttributeValues=ATTRIBUTES,
        ExpressionAttributeNames=NAMES,
    ),
    update,
    _written,
    takes=ExpressionParameters(
        ("UpdateExpression", "ConditionExpression"), ("AttributeUpdates", "Expected", "ConditionalOperator")
    ),
    rule=_check_update,
    writes=True,
)

ITEM_OPERATIONS = (_GET_ITEM, _PUT_ITEM, _UPDATE_ITEM, _DELETE_ITEM)
