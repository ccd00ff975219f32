"""Query and Scan."""

from __future__ import annotations

from typing import Any

from adjoin.errors import InvalidRequest
from adjoin.evaluate import paths_in
from adjoin.expressions import Condition
from adjoin.requests import PageResponse, Query, Scan
from adjoin.server.capacity import capacity
from adjoin.server.grammar import Expressions, filter_of, key_conditions
from adjoin.server.names import table_name
from adjoin.server.operations.interface import Answer, Operation, Parameters, Tables
from adjoin.server.operations.items import projection_of
from adjoin.server.operations.starts import check_key_paths, check_query_start, check_scan_start
from adjoin.tables import IndexDefinition, TableDefinition


def _query(parameters: Parameters, tables: Tables) -> Query:
    expressions = Expressions.of(parameters)
    keys = expressions.keys or key_conditions(parameters["KeyConditions"])
    table = tables.definition(table_name(parameters["TableName"]))
    index = _index(parameters, table)
    holder = index or table
    if "ExclusiveStartKey" in parameters:
        check_query_start(parameters["ExclusiveStartKey"], table, index)
    partition, sort = keys.on(holder.partition, holder.sort, parameters.get("IndexName"))
    common = _common(parameters, table, expressions, "QueryFilter")
    if common["projection"] is not None:
        check_key_paths(common["projection"], table)
    if common["filter"] is not None:
        _check_filtered(common["filter"], holder, "QueryFilter" if "QueryFilter" in parameters else "Filter Expression")
        _check_select(parameters, index)
        check_key_paths(paths_in(common["filter"]), table)
    else:
        _check_select(parameters, index)
    return Query(partition=partition, sort=sort, forward=parameters.get("ScanIndexForward", True), **common)


def _scan(parameters: Parameters, tables: Tables) -> Scan:
    expressions = Expressions.of(parameters)
    table = tables.definition(table_name(parameters["TableName"]))
    index = _index(parameters, table)
    if "ExclusiveStartKey" in parameters:
        check_scan_start(parameters["ExclusiveStartKey"], table, index)
    _check_select(parameters, index)
    common = _common(parameters, table, expressions, "ScanFilter")
    for paths in (common["projection"], paths_in(common["filter"])):
        if paths is not None:
            check_key_paths(paths, table)
    segment = (parameters["Segment"], parameters["TotalSegments"]) if "Segment" in parameters else None
    return Scan(segment=segment, **common)


def _common(parameters: Parameters, table: TableDefinition, expressions: Expressions, older: str) -> dict[str, Any]:
    select = parameters.get("Select")
    return {
        "table": table.name,
        "index": parameters.get("IndexName"),
        "filter": _filter(parameters, expressions, older),
        "projection": projection_of(parameters, expressions),
        "count_only": select == "COUNT",
        "whole": select == "ALL_ATTRIBUTES",
        "limit": parameters.get("Limit"),
        "start": parameters.get("ExclusiveStartKey"),
        "consistent": parameters.get("ConsistentRead", False),
    }


def _filter(parameters: Parameters, expressions: Expressions, older: str) -> Condition | None:
    if older in parameters:
        return filter_of(parameters[older], parameters.get("ConditionalOperator"))
    return expressions.filter


def _index(parameters: Parameters, table: TableDefinition) -> IndexDefinition | None:
    """The index that is read, if that can be read in this way; None for the table."""
    name = parameters.get("IndexName")
    if name is None:
        return None
    index = table.index(name)
    if index is None:
        raise InvalidRequest(f"The table does not have the specified index: {name}")
    if parameters.get("ConsistentRead") and not index.local:
        raise InvalidRequest("Consistent reads are not supported on global secondary indexes")
    return index


def _check_select(parameters: Parameters, index: IndexDefinition | None) -> None:
    if parameters.get("Select") != "ALL_ATTRIBUTES" or index is None or index.local or index.projection.kind == "ALL":
        return
    raise InvalidRequest(
        "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global"
        f" secondary index {index.name} because its projection type is not ALL"
    )


def _check_filtered(condition: Condition, holder: TableDefinition | IndexDefinition, parameter: str) -> None:
    names = {path.steps[0] for path in paths_in(condition)}
    for key in holder.keys:
        if key.name in names:
            raise InvalidRequest(
                f"{parameter} can only contain non-primary key attributes: Primary key attribute: {key.name}"
            )


def _paged(parameters: Parameters, response: PageResponse, tables: Tables) -> Answer:
    answer: Answer = {"Count": response.count, "ScannedCount": response.scanned}
    if parameters.get("Select") != "COUNT":
        answer["Items"] = list(response.items)
    if response.last is not None:
        answer["LastEvaluatedKey"] = response.last
    asked = parameters.get("ReturnConsumedCapacity")
    if asked and (shown := capacity(response.consumed, asked, tables, (parameters["TableName"],))):
        answer["ConsumedCapacity"] = shown[0]
    return answer


PAGE_OPERATIONS: dict[str, Operation] = {
    "Query": Operation(_query, _paged, fails_on_stale=True),
    "Scan": Operation(_scan, _paged, fails_on_stale=True),
}
