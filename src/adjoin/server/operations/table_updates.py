"""UpdateTable: which changes may be combined, and what they mean for the present table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from adjoin.errors import InvalidRequest
from adjoin.requests import Request, TableResponse, UpdateTable
from adjoin.server.operations.descriptions import Given, description, settings_of
from adjoin.server.operations.interface import AnswerBody, Operation, Parameters, Refused, TableLookup, validation_fault
from adjoin.server.operations.shapes import FLAG, NAME, Listing, structure
from adjoin.server.operations.tables import (
    BILLING,
    DEFINITIONS,
    ENCRYPTION,
    GLOBAL_KEY_SCHEMA,
    LIMITED,
    MOST_UNITS,
    ON_DEMAND_THROUGHPUT,
    PROJECTION,
    STREAM,
    TABLE_CLASS,
    TABLE_FIRST,
    THROUGHPUT,
    UNDEFINED,
    WARM_THROUGHPUT,
    check_bounds,
    check_global_schema,
    check_index_counts,
    check_projection,
    check_stream,
    defined_names,
    found,
    invalid,
    require_table,
)
from adjoin.stores.definitions import described, key_schema
from adjoin.tables import IndexDefinition, StreamView, TableDefinition, Throughput

# --- shape -------------------------------------------------------------------------------------

_INDEX_UPDATE = structure(
    "GlobalSecondaryIndexUpdate",
    Update=replace(
        structure(
            "UpdateGlobalSecondaryIndexAction",
            "IndexName",
            IndexName=NAME,
            ProvisionedThroughput=THROUGHPUT,
            OnDemandThroughput=ON_DEMAND_THROUGHPUT,
            WarmThroughput=WARM_THROUGHPUT,
        ),
        one_of=("ProvisionedThroughput", "OnDemandThroughput", "WarmThroughput"),
    ),
    Create=structure(
        "CreateGlobalSecondaryIndexAction",
        "Projection IndexName KeySchema",
        Projection=PROJECTION,
        IndexName=NAME,
        ProvisionedThroughput=THROUGHPUT,
        OnDemandThroughput=ON_DEMAND_THROUGHPUT,
        WarmThroughput=WARM_THROUGHPUT,
        KeySchema=GLOBAL_KEY_SCHEMA,
    ),
    Delete=structure("DeleteGlobalSecondaryIndexAction", "IndexName", IndexName=NAME),
)

# --- rules that do not need the table ----------------------------------------------------------

_CHANGES = (
    "ProvisionedThroughput",
    "BillingMode",
    "StreamSpecification",
    "GlobalSecondaryIndexUpdates",
    "SSESpecification",
    "ReplicaUpdates",
    "TableClass",
    "DeletionProtectionEnabled",
    "OnDemandThroughput",
    "WarmThroughput",
)


def _check_update(request: Parameters) -> None:
    # False is a change too (it switches something off); only a missing member or an empty list is none.
    if all(request.get(name, []) == [] for name in _CHANGES):
        raise InvalidRequest(
            "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates"
            " or SSESpecification or ReplicaUpdates is required"
        )
    if request.get("ReplicaUpdates"):
        raise invalid("Replicas are not supported: the tables of a file are in one region")
    if request.get("BillingMode") == "PROVISIONED" and "ProvisionedThroughput" not in request:
        raise invalid("ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
    if "ProvisionedThroughput" in request:
        check_bounds(request["ProvisionedThroughput"])
    _check_index_updates(request.get("GlobalSecondaryIndexUpdates", ()))
    defined = defined_names(request.get("AttributeDefinitions", ()))
    for update in request.get("GlobalSecondaryIndexUpdates", ()):
        if "Create" in update:
            if len(update["Create"]["KeySchema"]) > len(defined):
                raise InvalidRequest(UNDEFINED)
            check_global_schema(update["Create"]["KeySchema"], defined)
            check_projection(update["Create"]["Projection"])
    check_stream(request.get("StreamSpecification"), "updated")


def _check_index_updates(updates: Iterable[Given]) -> None:
    names: set[str] = set()
    for update in updates:
        given = next((update[kind] for kind in ("Update", "Create", "Delete") if kind in update), None)
        if given is None:
            raise invalid(
                "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create,"
                " GlobalSecondaryIndexUpdate.Delete must not be null"
            )
        name = given["IndexName"]
        if name in names:
            raise invalid(f"Only one global secondary index update per index is allowed simultaneously. Index: {name}")
        names.add(name)


# --- rules that need the table, and the change itself ------------------------------------------


def _parameter_fault(fault: str) -> Refused:
    return validation_fault(f"One or more parameter values were invalid: {fault}")


def _alteration(parameters: Given, table: TableDefinition) -> UpdateTable:
    """Returns the request to the store that makes the changes."""
    updates = parameters.get("GlobalSecondaryIndexUpdates", ())
    created = [update["Create"] for update in updates if "Create" in update]
    deleted = [update["Delete"]["IndexName"] for update in updates if "Delete" in update]
    units = {update["Update"]["IndexName"]: _units_of(update["Update"]) for update in updates if "Update" in update}
    if len(created) + len(deleted) > 1:
        raise Refused(
            "LimitExceededException",
            "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
        )
    throughput = _throughput(parameters, table, units)
    _check_indexes(table, created, deleted, units)
    on_demand = throughput == "on demand" or (throughput is None and table.throughput is None)
    for index in created:
        _check_units(index, on_demand)
    changed = [*created, *(update["Update"] for update in updates if "Update" in update)]
    return UpdateTable(
        table.name,
        tuple(_index(index, parameters, table) for index in created),
        tuple(deleted),
        throughput,
        tuple((name, given) for name, given in units.items() if given is not None),
        _stream(parameters.get("StreamSpecification"), table),
        parameters.get("DeletionProtectionEnabled"),
        settings=settings_of(parameters, changed, change=True),
    )


# throughput


def _units_of(given: Given) -> Throughput | None:
    units = given.get("ProvisionedThroughput")
    return None if units is None else Throughput(units["ReadCapacityUnits"], units["WriteCapacityUnits"])


def _throughput(
    parameters: Given, table: TableDefinition, index_units: Mapping[str, Throughput | None]
) -> Throughput | Literal["on demand"] | None:
    units = _units_of(parameters)
    mode = parameters.get("BillingMode") or ("PAY_PER_REQUEST" if table.throughput is None else "PROVISIONED")
    if mode == "PAY_PER_REQUEST":
        if units is not None:
            raise _parameter_fault(
                "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
            )
        return "on demand" if "BillingMode" in parameters else None
    if "OnDemandThroughput" in parameters:
        raise _parameter_fault(LIMITED)
    if units is not None and units == table.throughput and not index_units:
        raise validation_fault(_unchanged("table", units))
    if table.throughput is None:
        without = [index.name for index in table.indexes if not index.local and index_units.get(index.name) is None]
        if without:
            raise _parameter_fault(f"ProvisionedThroughput must be specified for index: {','.join(without)}")
    return units


def _unchanged(what: str, units: Throughput) -> str:
    return (
        f"The provisioned throughput for the {what} will not change. The requested value equals the current value."
        f" Current ReadCapacityUnits provisioned for the {what}: {units.read}."
        f" Requested ReadCapacityUnits: {units.read}."
        f" Current WriteCapacityUnits provisioned for the {what}: {units.write}."
        f" Requested WriteCapacityUnits: {units.write}."
        " Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
    )


# indexes


def _check_indexes(
    table: TableDefinition, created: Iterable[Given], deleted: Iterable[str], units: Mapping[str, Throughput | None]
) -> None:
    for index in created:
        if table.index(index["IndexName"]) is not None:
            raise validation_fault("Attempting to create an index which already exists")
        there = [other for other in table.indexes if not other.local]
        check_index_counts(
            len(there) + 1,
            sum(len(other.projection.attributes) for other in table.indexes)
            + len(index["Projection"].get("NonKeyAttributes", ())),
        )
    for name, given in units.items():
        if given is not None and max(given.read, given.write) > MOST_UNITS:
            raise validation_fault(
                "This operation cannot be performed with given input values."
                " Please contact DynamoDB service team for more info: Action Blocked: IndexUpdate"
            )
        if given is not None and given == _global_index(table, name, "update").throughput:
            raise validation_fault(_unchanged(f"index {name}", given))
    for name in deleted:
        _global_index(table, name, "delete")


def _global_index(table: TableDefinition, name: str, change: str) -> IndexDefinition:
    index = table.index(name)
    if index is None:
        raise Refused("ResourceNotFoundException", "Requested resource not found")
    if index.local:
        raise validation_fault(f"Cannot {change} an index that is not a GlobalSecondaryIndex: {name}")
    return index


def _check_units(index: Given, on_demand: bool) -> None:
    name, units = index["IndexName"], _units_of(index)
    if on_demand and units is not None:
        raise _parameter_fault(
            "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index:"
            f" {name} when BillingMode is PAY_PER_REQUEST"
        )
    if not on_demand and units is None:
        raise _parameter_fault(f"Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: {name}")


def _index(given: Given, parameters: Given, table: TableDefinition) -> IndexDefinition:
    """Returns the definition of a new index. It is read like an index of a new table with the keys of this one.

    An attribute that is already a key keeps its type.
    """
    types = {each["AttributeName"]: each["AttributeType"] for each in parameters["AttributeDefinitions"]}
    types |= {key.name: key.type for key in table.key_attributes}
    definitions = [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]
    keys = {"TableName": "", "KeySchema": key_schema(table), "GlobalSecondaryIndexes": [given]}
    (index,) = described({**keys, "AttributeDefinitions": definitions}, None).indexes
    attributes = given["Projection"].get("NonKeyAttributes", ())
    return replace(index, projection=replace(index.projection, attributes=tuple(attributes)))


# the stream


def _stream(wanted: Given | None, table: TableDefinition) -> StreamView | Literal["off"] | None:
    if wanted is None:
        return None
    if wanted["StreamEnabled"] and table.stream:
        raise validation_fault(f"Table already has an enabled stream: TableName: {table.name}")
    if not wanted["StreamEnabled"] and not table.stream:
        raise validation_fault(f"Table has no stream to disable: TableName: {table.name}")
    view: StreamView | Literal["off"] = wanted["StreamViewType"] if wanted["StreamEnabled"] else "off"
    return view


# --- the operation -----------------------------------------------------------------------------


def _update(parameters: Parameters, tables: TableLookup) -> Request:
    return _alteration(parameters, found(parameters, tables))


def _updated(parameters: Parameters, response: TableResponse, tables: TableLookup) -> AnswerBody:
    return {"TableDescription": description(response, "UPDATING")}


UPDATE_TABLE = Operation(
    "UpdateTable",
    structure(
        "UpdateTableInput",
        TableName=TABLE_FIRST,
        ProvisionedThroughput=THROUGHPUT,
        BillingMode=BILLING,
        GlobalSecondaryIndexUpdates=Listing(_INDEX_UPDATE),
        AttributeDefinitions=DEFINITIONS,
        StreamSpecification=STREAM,
        SSESpecification=ENCRYPTION,
        ReplicaUpdates=Listing(structure("ReplicationGroupUpdate"), least=1),
        TableClass=TABLE_CLASS,
        DeletionProtectionEnabled=FLAG,
        OnDemandThroughput=ON_DEMAND_THROUGHPUT,
        WarmThroughput=WARM_THROUGHPUT,
    ),
    _update,
    _updated,
    precondition=require_table,
    rule=_check_update,
    writes=True,
)
