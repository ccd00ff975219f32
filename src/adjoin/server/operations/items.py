"""Operations on one item: GetItem, PutItem, UpdateItem, DeleteItem."""

from __future__ import annotations

from collections.abc import Iterable

from adjoin.expressions import Action, Condition, Path
from adjoin.requests import Delete, Get, ItemResponse, Put, Returned, Update
from adjoin.server.capacity import capacity
from adjoin.server.grammar import Expressions, attribute_updates, attributes_to_get, expected_condition
from adjoin.server.names import table_name
from adjoin.server.operations.interface import Answer, Operation, Parameters, Tables
from adjoin.server.operations.starts import check_key_paths

_RETURNS: dict[str, Returned] = {
    "NONE": "none",
    "ALL_OLD": "old",
    "ALL_NEW": "new",
    "UPDATED_OLD": "updated_old",
    "UPDATED_NEW": "updated_new",
}


# --- what parameters mean ----------------------------------------------------------------------


def projection_of(parameters: Parameters, expressions: Expressions) -> tuple[Path, ...] | None:
    if "AttributesToGet" in parameters:
        return attributes_to_get(parameters["AttributesToGet"])
    return expressions.projection


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


def projection_within(table: str, parameters: Parameters, tables: Tables) -> tuple[Path, ...] | None:
    """What of an item is asked for, which may not lead into its keys."""
    projection = projection_of(parameters, Expressions.of(parameters))
    if projection is not None and _leads_within(projection):
        check_key_paths(projection, tables.definition(table))
    return projection


def get(parameters: Parameters, tables: Tables) -> Get:
    table = table_name(parameters["TableName"])
    projection = projection_within(table, parameters, tables)
    return Get(table, parameters["Key"], parameters.get("ConsistentRead", False), projection)


def put(parameters: Parameters, tables: Tables) -> Put:
    condition = _condition(parameters, Expressions.of(parameters))
    return Put(table_name(parameters["TableName"]), parameters["Item"], condition, _returns_old(parameters))


def update(parameters: Parameters, tables: Tables) -> Update:
    expressions = Expressions.of(parameters)
    table = table_name(parameters["TableName"])
    actions = _actions(parameters, expressions)
    paths = [action.path for action in actions]
    if "UpdateExpression" in parameters and _leads_within(paths):
        # Of the table's own keys the store says that they cannot be changed at all.
        check_key_paths(paths, tables.definition(table), of_table=False)
    return Update(
        table,
        parameters["Key"],
        actions,
        _condition(parameters, expressions),
        _RETURNS[parameters.get("ReturnValues", "NONE")],
    )


def delete(parameters: Parameters, tables: Tables) -> Delete:
    condition = _condition(parameters, Expressions.of(parameters))
    return Delete(table_name(parameters["TableName"]), parameters["Key"], condition, _returns_old(parameters))


# --- what is answered --------------------------------------------------------------------------


def _consumed(parameters: Parameters, response: ItemResponse, tables: Tables) -> Answer:
    asked = parameters.get("ReturnConsumedCapacity")
    shown = capacity(response.consumed, asked, tables, (parameters["TableName"],)) if asked else ()
    return {"ConsumedCapacity": shown[0]} if shown else {}


def _got(parameters: Parameters, response: ItemResponse, tables: Tables) -> Answer:
    answer = {} if response.item is None else {"Item": response.item}
    return answer | _consumed(parameters, response, tables)


def _written(parameters: Parameters, response: ItemResponse, tables: Tables) -> Answer:
    answer: Answer = {} if not response.item else {"Attributes": response.item}
    answer |= _consumed(parameters, response, tables)
    key = parameters.get("Key") or parameters["Item"]
    if metrics := collection_metrics(parameters, table_name(parameters["TableName"]), [key], tables):
        answer["ItemCollectionMetrics"] = metrics[0]
    return answer


def collection_metrics(parameters: Parameters, table: str, keys: list[Answer], tables: Tables) -> list[Answer]:
    """ReturnItemCollectionMetrics: of a table with local indexes, an estimate of each partition that was written."""
    if parameters.get("ReturnItemCollectionMetrics") != "SIZE":
        return []
    definition = tables.definition(table)
    if not any(index.local for index in definition.indexes):
        return []
    name = definition.partition.name
    return [{"ItemCollectionKey": {name: key[name]}, "SizeEstimateRangeGB": [0.0, 1.0]} for key in keys]


ITEM_OPERATIONS: dict[str, Operation] = {
    "GetItem": Operation(get, _got),
    "PutItem": Operation(put, _written, writes=True),
    "UpdateItem": Operation(update, _written, writes=True),
    "DeleteItem": Operation(delete, _written, writes=True),
}
