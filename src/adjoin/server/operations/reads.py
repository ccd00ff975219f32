"""Query and Scan: one page of items of a partition in order, or of all items.

ExclusiveStartKey, from which a page continues, is checked against the table or index that is read, in DynamoDB's order
and words, which differ between Query and Scan. The store checks whether the key lies within the query.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from adjoin.errors import InvalidRequest
from adjoin.expressions import Condition, paths_in
from adjoin.requests import PageResponse, Query, Scan
from adjoin.server.grammar import Expressions, attributes_to_get, filter_of, key_conditions
from adjoin.server.grammar.attributes import normal
from adjoin.server.grammar.keys import empty_key_fault, is_empty
from adjoin.server.operations.interface import (
    AnswerBody,
    ExpressionParameters,
    Operation,
    Parameters,
    TableLookup,
    table_name,
)
from adjoin.server.operations.items import capacity, check_key_paths, projection_of
from adjoin.server.operations.shapes import (
    ATTRIBUTE,
    ATTRIBUTE_NAME,
    ATTRIBUTE_NAMES,
    ATTRIBUTES,
    CAPACITY,
    COMPARISON,
    FLAG,
    NAME,
    NAMES,
    OPERATOR,
    POSITIVE,
    TABLE,
    TEXT,
    Entries,
    Listing,
    Text,
    Whole,
    structure,
)
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from adjoin.values import Item

_CONDITIONS = Entries(
    structure(
        "Condition",
        "ComparisonOperator",
        AttributeValueList=Listing(ATTRIBUTE),
        ComparisonOperator=COMPARISON,
    ),
    keys=ATTRIBUTE_NAME,
)

_SELECT = Text(choices=("SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"))

# --- rules -------------------------------------------------------------------------------------

_INVALID_START = "The provided starting key is invalid"
_MISMATCH = "The provided key element does not match the schema"
# For faults in numbers and in the elements of sets, DynamoDB's message lacks that beginning.
_SAID_PLAINLY = re.compile("contains duplicates|number set|numeric value|significant digits|number with magnitude")
_SELECTED = {
    "ALL_ATTRIBUTES": "ALL_ATTRIBUTES",
    "ALL_PROJECTED_ATTRIBUTES": "ALL_PROJECTED_ATTRIBUTES",
    "COUNT": "only the Count",
}


def _check_names(request: Parameters) -> None:
    if "AttributesToGet" in request:
        attributes_to_get(request["AttributesToGet"])


def _check_start(request: Parameters) -> None:
    if "ExclusiveStartKey" not in request:
        return
    try:
        request["ExclusiveStartKey"], _ = normal(request["ExclusiveStartKey"])
    except InvalidRequest as fault:
        said = str(fault)
        raise InvalidRequest(said if _SAID_PLAINLY.search(said) else f"{_INVALID_START}: {said}") from None


def _check_chosen(request: Parameters) -> None:
    """Checks Select against the attributes that the request names."""
    select = request.get("Select")
    if select is None:
        return
    chosen = [name for name in ("AttributesToGet", "ProjectionExpression") if name in request]
    if select == "SPECIFIC_ATTRIBUTES":
        if not chosen:
            raise InvalidRequest(
                "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"
            )
    elif chosen:
        raise InvalidRequest(f"Cannot specify the {chosen[0]} when choosing to get {_SELECTED[select]}")
    elif select == "ALL_PROJECTED_ATTRIBUTES" and "IndexName" not in request:
        raise InvalidRequest("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")


# --- rules that need the table -----------------------------------------------------------------


def _index(parameters: Parameters, table: TableDefinition) -> IndexDefinition | None:
    """Returns the index of a request, or None for the table; raises if the index cannot be read as requested."""
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


def _start_keys(table: TableDefinition, index: IndexDefinition | None) -> set[str]:
    return {key.name for key in (*table.keys, *(() if index is None else index.keys))}


def _check_own_keys(start: Item, keys: Iterable[KeyAttribute]) -> None:
    """Checks the keys of the table or index that is read."""
    for key in keys:
        if key.name not in start:
            raise InvalidRequest(_INVALID_START)
        if fault := _key_fault(start, key):
            raise InvalidRequest(fault)


def _check_table_keys(start: Item, table: TableDefinition) -> None:
    for key in table.keys:
        if fault := _key_fault(start, key):
            raise InvalidRequest(f"{_INVALID_START}: {fault}")


def _key_fault(start: Item, key: KeyAttribute) -> str | None:
    attribute = start.get(key.name, {})
    if key.type not in attribute:
        return _MISMATCH
    return empty_key_fault(key) if is_empty(attribute, key) else None


# --- requests and answers ----------------------------------------------------------------------


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


def _paged(parameters: Parameters, response: PageResponse, tables: TableLookup) -> AnswerBody:
    answer: AnswerBody = {"Count": response.count, "ScannedCount": response.scanned}
    if parameters.get("Select") != "COUNT":
        answer["Items"] = list(response.items)
    if response.last is not None:
        answer["LastEvaluatedKey"] = response.last
    asked = parameters.get("ReturnConsumedCapacity")
    if asked and (shown := capacity(response.consumed, asked, tables, (parameters["TableName"],))):
        answer["ConsumedCapacity"] = shown[0]
    return answer


# --- Query -------------------------------------------------------------------------------------


def _check_query(request: Parameters) -> None:
    if "QueryFilter" in request:
        filter_of(request["QueryFilter"])
    _check_names(request)
    _check_start(request)
    _check_chosen(request)
    if "KeyConditions" not in request and "KeyConditionExpression" not in request:
        raise InvalidRequest(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
        )


def _query(parameters: Parameters, tables: TableLookup) -> Query:
    expressions = Expressions.of(parameters)
    keys = expressions.keys or key_conditions(parameters["KeyConditions"])
    table = tables.definition(table_name(parameters["TableName"]))
    index = _index(parameters, table)
    holder = index or table
    if "ExclusiveStartKey" in parameters:
        _check_query_start(parameters["ExclusiveStartKey"], table, index)
    partition, sort, equal = keys.on(holder)
    common = _common(parameters, table, expressions, "QueryFilter")
    if common["projection"] is not None:
        check_key_paths(common["projection"], table)
    if common["filter"] is not None:
        # The order of these checks is the service's, which depends on whether there is a filter.
        _check_filtered(common["filter"], holder, "QueryFilter" if "QueryFilter" in parameters else "Filter Expression")
        _check_select(parameters, index)
        check_key_paths(paths_in(common["filter"]), table)
    else:
        _check_select(parameters, index)
    forward = parameters.get("ScanIndexForward", True)
    return Query(partition=partition, sort=sort, equal=equal, forward=forward, **common)


def _check_query_start(start: Item, table: TableDefinition, index: IndexDefinition | None) -> None:
    if len(start) != len(_start_keys(table, index)):
        raise InvalidRequest(_INVALID_START)
    # The service checks the keys of what is read first, and each group has a message of its own.
    _check_own_keys(start, table.keys if index is None else index.keys)
    _check_table_keys(start, table)


def _check_filtered(condition: Condition, holder: TableDefinition | IndexDefinition, parameter: str) -> None:
    names = {path.steps[0] for path in paths_in(condition)}
    for key in holder.keys:
        if key.name in names:
            raise InvalidRequest(
                f"{parameter} can only contain non-primary key attributes: Primary key attribute: {key.name}"
            )


_QUERY = Operation(
    "Query",
    structure(
        "QueryInput",
        "TableName",
        Select=_SELECT,
        IndexName=NAME,
        ReturnConsumedCapacity=CAPACITY,
        QueryFilter=_CONDITIONS,
        TableName=TABLE,
        ConditionalOperator=OPERATOR,
        AttributesToGet=ATTRIBUTE_NAMES,
        Limit=POSITIVE,
        KeyConditions=_CONDITIONS,
        ExclusiveStartKey=ATTRIBUTES,
        ConsistentRead=FLAG,
        ScanIndexForward=FLAG,
        KeyConditionExpression=TEXT,
        FilterExpression=TEXT,
        ProjectionExpression=TEXT,
        ExpressionAttributeValues=ATTRIBUTES,
        ExpressionAttributeNames=NAMES,
    ),
    _query,
    _paged,
    takes=ExpressionParameters(
        ("ProjectionExpression", "FilterExpression", "KeyConditionExpression"),
        ("AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"),
    ),
    rule=_check_query,
    fails_on_stale=True,
)

# --- Scan --------------------------------------------------------------------------------------


def _check_scan(request: Parameters) -> None:
    _check_names(request)
    if "ScanFilter" in request:
        filter_of(request["ScanFilter"])
    _check_start(request)
    _check_segments(request.get("Segment"), request.get("TotalSegments"))
    _check_chosen(request)


def _check_segments(segment: int | None, total: int | None) -> None:
    if total is None:
        if segment is not None:
            raise InvalidRequest(
                "The TotalSegments parameter is required but was not present in the request when Segment parameter"
                " is present"
            )
        return
    if segment is None:
        raise InvalidRequest(
            "The Segment parameter is required but was not present in the request when parameter TotalSegments"
            " is present"
        )
    if segment >= total:
        raise InvalidRequest(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments:"
            f" Segment: {segment} is not less than TotalSegments: {total}"
        )


def _scan(parameters: Parameters, tables: TableLookup) -> Scan:
    expressions = Expressions.of(parameters)
    table = tables.definition(table_name(parameters["TableName"]))
    index = _index(parameters, table)
    if "ExclusiveStartKey" in parameters:
        _check_scan_start(parameters["ExclusiveStartKey"], table, index)
    _check_select(parameters, index)
    common = _common(parameters, table, expressions, "ScanFilter")
    for paths in (common["projection"], paths_in(common["filter"])):
        if paths is not None:
            check_key_paths(paths, table)
    segment = (parameters["Segment"], parameters["TotalSegments"]) if "Segment" in parameters else None
    return Scan(segment=segment, **common)


def _check_scan_start(start: Item, table: TableDefinition, index: IndexDefinition | None) -> None:
    if len(start) != len(_start_keys(table, index)):
        raise InvalidRequest(f"{_INVALID_START}: {_MISMATCH}" if index is None else _INVALID_START)
    if index is not None:
        _check_own_keys(start, index.keys)
    _check_table_keys(start, table)


_SCAN = Operation(
    "Scan",
    structure(
        "ScanInput",
        "TableName",
        Select=_SELECT,
        IndexName=NAME,
        TotalSegments=Whole("Integer", least=1, most=1_000_000),
        ReturnConsumedCapacity=CAPACITY,
        TableName=TABLE,
        ConditionalOperator=OPERATOR,
        ScanFilter=_CONDITIONS,
        Segment=Whole("Integer", least=0, most=999_999),
        Limit=POSITIVE,
        AttributesToGet=ATTRIBUTE_NAMES,
        ExclusiveStartKey=ATTRIBUTES,
        ConsistentRead=FLAG,
        FilterExpression=TEXT,
        ProjectionExpression=TEXT,
        ExpressionAttributeValues=ATTRIBUTES,
        ExpressionAttributeNames=NAMES,
    ),
    _scan,
    _paged,
    takes=ExpressionParameters(
        ("ProjectionExpression", "FilterExpression"), ("AttributesToGet", "ScanFilter", "ConditionalOperator")
    ),
    rule=_check_scan,
    fails_on_stale=True,
)

READ_OPERATIONS = (_QUERY, _SCAN)
