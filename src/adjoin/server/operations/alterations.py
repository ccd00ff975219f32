"""What an UpdateTable asks of a table, and the rules that need to know the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from adjoin.requests import UpdateTable
from adjoin.server.faults import Refused
from adjoin.server.operations.settings import settings_of
from adjoin.server.rules.tables import LIMITED, check_index_counts
from adjoin.stores.descriptions import described
from adjoin.tables import IndexDefinition, StreamView, TableDefinition, Throughput

Given: TypeAlias = Mapping[str, Any]

_MOST_UNITS = 1_000_000_000_000


def _refused(fault: str) -> Refused:
    return Refused("ValidationException", fault)


def _invalid(fault: str) -> Refused:
    return _refused(f"One or more parameter values were invalid: {fault}")


def alteration(parameters: Given, table: TableDefinition) -> UpdateTable:
    """The change that the parameters mean for the table."""
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


# --- throughput --------------------------------------------------------------------------------


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
            raise _invalid(
                "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
            )
        return "on demand" if "BillingMode" in parameters else None
    if "OnDemandThroughput" in parameters:
        raise _invalid(LIMITED)
    if units is not None and units == table.throughput and not index_units:
        raise _refused(_unchanged("table", units))
    if table.throughput is None:
        without = [index.name for index in table.indexes if not index.local and index_units.get(index.name) is None]
        if without:
            raise _invalid(f"ProvisionedThroughput must be specified for index: {','.join(without)}")
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


# --- indexes -----------------------------------------------------------------------------------


def _check_indexes(
    table: TableDefinition, created: Iterable[Given], deleted: Iterable[str], units: Mapping[str, Throughput | None]
) -> None:
    for index in created:
        if table.index(index["IndexName"]) is not None:
            raise _refused("Attempting to create an index which already exists")
        there = [other for other in table.indexes if not other.local]
        check_index_counts(
            len(there) + 1,
            sum(len(other.projection.attributes) for other in table.indexes)
            + len(index["Projection"].get("NonKeyAttributes", ())),
        )
    for name, given in units.items():
        if given is not None and max(given.read, given.write) > _MOST_UNITS:
            raise _refused(
                "This operation cannot be performed with given input values."
                " Please contact DynamoDB service team for more info: Action Blocked: IndexUpdate"
            )
        if given is not None and given == _global_index(table, name, "update").throughput:
            raise _refused(_unchanged(f"index {name}", given))
    for name in deleted:
        _global_index(table, name, "delete")


def _global_index(table: TableDefinition, name: str, change: str) -> IndexDefinition:
    index = table.index(name)
    if index is None:
        raise Refused("ResourceNotFoundException", "Requested resource not found")
    if index.local:
        raise _refused(f"Cannot {change} an index that is not a GlobalSecondaryIndex: {name}")
    return index


def _check_units(index: Given, on_demand: bool) -> None:
    name, units = index["IndexName"], _units_of(index)
    if on_demand and units is not None:
        raise _invalid(
            "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index:"
            f" {name} when BillingMode is PAY_PER_REQUEST"
        )
    if not on_demand and units is None:
        raise _invalid(f"Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: {name}")


def _index(given: Given, parameters: Given, table: TableDefinition) -> IndexDefinition:
    """Read as that of a table with the same keys. An attribute that is a key already keeps its type."""
    types = {each["AttributeName"]: each["AttributeType"] for each in parameters["AttributeDefinitions"]}
    types |= {key.name: key.type for key in table.key_attributes}
    definitions = [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]
    keys = {"TableName": "", "KeySchema": given["KeySchema"], "GlobalSecondaryIndexes": [given]}
    (index,) = described({**keys, "AttributeDefinitions": definitions}, None).indexes
    attributes = given["Projection"].get("NonKeyAttributes", ())
    return replace(index, projection=replace(index.projection, attributes=tuple(attributes)))


# --- the stream --------------------------------------------------------------------------------


def _stream(wanted: Given | None, table: TableDefinition) -> StreamView | Literal["off"] | None:
    if wanted is None:
        return None
    if wanted["StreamEnabled"] and table.stream:
        raise _refused(f"Table already has an enabled stream: TableName: {table.name}")
    if not wanted["StreamEnabled"] and not table.stream:
        raise _refused(f"Table has no stream to disable: TableName: {table.name}")
    view: StreamView | Literal["off"] = wanted["StreamViewType"] if wanted["StreamEnabled"] else "off"
    return view
