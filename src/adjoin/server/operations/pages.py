"""Query and Scan."""

from __future__ import annotations

from typing import Any

from adjoin.errors import InvalidRequest
from adjoin.expressions import Condition
from adjoin.requests import PageResponse, Query, Scan
from adjoin.server.capacity import capacity
from adjoin.server.grammar import Expressions, filter_of, key_conditions
from adjoin.server.names import table_name
from adjoin.server.operations.interface import Answer, Operation, Parameters, Tables
from adjoin.server.operations.items import projection_of
from adjoin.tables import IndexDefinition, TableDefinition


def _query(parameters: Parameters, tables: Tables) -> Query:
    expressions = Expressions.of(parameters)
    keys = expressions.keys or key_conditions(parameters["KeyConditions"])
    table = table_name(parameters["TableName"])
    holder = _holder(parameters, tables.definition(table))
    partition, sort = keys.on(holder.partition, holder.sort)
    return Query(
        partition=partition,
        sort=sort,
        forward=parameters.get("ScanIndexForward", True),
        **_common(parameters, table, expressions, "QueryFilter"),
    )


def _scan(parameters: Parameters, tables: Tables) -> Scan:
    expressions = Expressions.of(parameters)
    table = table_name(parameters["TableName"])
    _holder(parameters, tables.definition(table))
    segment = (parameters["Segment"], parameters["TotalSegments"]) if "Segment" in parameters else None
    return Scan(segment=segment, **_common(parameters, table, expressions, "ScanFilter"))


def _common(parameters: Parameters, table: str, expressions: Expressions, older: str) -> dict[str, Any]:
    return {
        "table": table,
        "index": parameters.get("IndexName"),
        "filter": _filter(parameters, expressions, older),
        "projection": projection_of(parameters, expressions),
        "count_only": parameters.get("Select") == "COUNT",
        "limit": parameters.get("Limit"),
        "start": parameters.get("ExclusiveStartKey"),
        "consistent": parameters.get("ConsistentRead", False),
    }


def _filter(parameters: Parameters, expressions: Expressions, older: str) -> Condition | None:
    if older in parameters:
        return filter_of(parameters[older], parameters.get("ConditionalOperator"))
    return expressions.filter


def _holder(parameters: Parameters, definition: TableDefinition) -> TableDefinition | IndexDefinition:
    """What is read: the table, or one of its indexes, if that can be read in this way."""
    name = parameters.get("IndexName")
    if name is None:
        return definition
    index = definition.index(name)
    if index is None:
        raise InvalidRequest(f"The table does not have the specified index: {name}")
    if not index.local:
        if parameters.get("ConsistentRead"):
            raise InvalidRequest("Consistent reads are not supported on global secondary indexes")
        if parameters.get("Select") == "ALL_ATTRIBUTES" and index.projection.kind != "ALL":
            raise InvalidRequest(
                "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global"
                f" secondary index {name} because its projection type is not ALL"
            )
    return index


def _paged(parameters: Parameters, response: PageResponse, tables: Tables) -> Answer:
    answer: Answer = {"Count": response.count, "ScannedCount": response.scanned}
    if parameters.get("Select") != "COUNT":
        answer["Items"] = list(response.items)
    if response.last is not None:
        answer["LastEvaluatedKey"] = response.last
    if shown := capacity(response.consumed, parameters.get("ReturnConsumedCapacity"), tables):
        answer["ConsumedCapacity"] = shown[0]
    return answer


PAGE_OPERATIONS: dict[str, Operation] = {
    "Query": Operation(_query, _paged),
    "Scan": Operation(_scan, _paged),
}
