"""Rules for making and changing tables, in the order in which the service looks at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from adjoin.errors import InvalidRequest
from adjoin.units import MAX_GLOBAL_INDEXES, MAX_LOCAL_INDEXES, MAX_PROJECTED_ATTRIBUTES

Given: TypeAlias = Mapping[str, Any]

_INVALID = "One or more parameter values were invalid: "
_UNDEFINED = "Invalid KeySchema: Some index key attribute have no definition"
LIMITED = "OnDemandThroughput can only be specified when BillingMode is PAY_PER_REQUEST"
_MOST_UNITS = 1_000_000_000_000


def _invalid(fault: str) -> InvalidRequest:
    return InvalidRequest(_INVALID + fault)


# --- CreateTable -------------------------------------------------------------------------------


def create_table(request: dict[str, Any]) -> None:
    _check_billing(request)
    defined = _defined(request["AttributeDefinitions"])
    _check_keys(request, defined)
    names: set[str] = set()
    if "LocalSecondaryIndexes" in request:
        _check_local_indexes(request, defined, names)
    if "GlobalSecondaryIndexes" in request:
        _check_global_indexes(request, defined, names)
    _check_unused(request, defined)
    indexes = (*request.get("LocalSecondaryIndexes", ()), *request.get("GlobalSecondaryIndexes", ()))
    check_index_counts(0, sum(len(index["Projection"].get("NonKeyAttributes", ())) for index in indexes))
    _check_stream(request.get("StreamSpecification"))


def _check_billing(request: Given) -> None:
    units = request.get("ProvisionedThroughput")
    if request.get("BillingMode") == "PAY_PER_REQUEST":
        if units is not None:
            raise _invalid(
                "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
            )
    elif "OnDemandThroughput" in request:
        raise _invalid(LIMITED)
    elif units is None:
        raise _invalid(
            "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"
        )
    else:
        _check_bounds(units)
    for index in request.get("GlobalSecondaryIndexes", ()):
        if "ProvisionedThroughput" in index:
            _check_bounds(index["ProvisionedThroughput"], f" for index {index['IndexName']}")


def _check_bounds(units: Given, where: str = "") -> None:
    for name in ("ReadCapacityUnits", "WriteCapacityUnits"):
        if units[name] > _MOST_UNITS:
            raise InvalidRequest(f"Given value {units[name]} for {name} is out of bounds{where}")


def _defined(definitions: Iterable[Given]) -> list[str]:
    names: list[str] = []
    for definition in definitions:
        if definition["AttributeName"] in names:
            raise InvalidRequest(f"Attribute Name is duplicated: {definition['AttributeName']}")
        names.append(definition["AttributeName"])
    return names


def _names(schema: Iterable[Given]) -> list[str]:
    return [element["AttributeName"] for element in schema]


def _check_keys(request: Given, defined: Sequence[str]) -> None:
    schema = request["KeySchema"]
    if len(schema) > len(defined):
        raise InvalidRequest(_UNDEFINED)
    _check_schema(schema, defined)
    has_indexes = "LocalSecondaryIndexes" in request or "GlobalSecondaryIndexes" in request
    if not has_indexes and len(schema) != len(defined):
        raise _invalid(
            "Number of attributes in KeySchema does not exactly match number of attributes defined in"
            " AttributeDefinitions"
        )


def _check_schema(schema: Sequence[Given], defined: Sequence[str]) -> None:
    """The rules for keys of tables and of indexes."""
    names = _names(schema)
    if not set(names) <= set(defined):
        raise _invalid(
            "Some index key attributes are not defined in AttributeDefinitions."
            f" Keys: [{', '.join(names)}], AttributeDefinitions: [{', '.join(defined)}]"
        )
    if len(set(names)) < len(names):
        raise InvalidRequest("Both the Hash Key and the Range Key element in the KeySchema have the same name")
    for place, kind, element in zip(("first", "second"), ("HASH", "RANGE"), schema, strict=False):
        if element["KeyType"] != kind:
            raise InvalidRequest(f"Invalid KeySchema: The {place} KeySchemaElement is not a {kind} key type")


def _check_local_indexes(request: Given, defined: Sequence[str], names: set[str]) -> None:
    indexes = request["LocalSecondaryIndexes"]
    if not indexes:
        raise _invalid("List of LocalSecondaryIndexes is empty")
    if len(request["KeySchema"]) != 2:
        raise _invalid(
            "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"
        )
    partition = request["KeySchema"][0]["AttributeName"]
    for index in indexes:
        name, schema = index["IndexName"], index["KeySchema"]
        _check_schema(schema, defined)
        if len(schema) != 2:
            raise _invalid(f"Index KeySchema does not have a range key for index: {name}")
        if schema[0]["AttributeName"] != partition:
            raise _invalid(
                f"Index KeySchema does not have the same leading hash key as table KeySchema for index: {name}."
                f" index hash key: {schema[0]['AttributeName']}, table hash key: {partition}"
            )
        _check_projection(index["Projection"])
        _check_new(name, names)
    if len(indexes) > MAX_LOCAL_INDEXES:
        raise _invalid(f"Number of LocalSecondaryIndexes exceeds per-table limit of {MAX_LOCAL_INDEXES}")


def _check_global_indexes(request: Given, defined: Sequence[str], names: set[str]) -> None:
    indexes = request["GlobalSecondaryIndexes"]
    if not indexes:
        raise _invalid("List of GlobalSecondaryIndexes is empty")
    on_demand = request.get("BillingMode") == "PAY_PER_REQUEST"
    for index in indexes:
        name = index["IndexName"]
        _check_schema(index["KeySchema"], defined)
        _check_projection(index["Projection"])
        if on_demand and "ProvisionedThroughput" in index:
            raise _invalid(
                f"ProvisionedThroughput should not be specified for index: {name} when BillingMode is PAY_PER_REQUEST"
            )
        if not on_demand and "ProvisionedThroughput" not in index:
            raise _invalid(f"ProvisionedThroughput is not specified for index: {name}")
        _check_new(name, names)
    check_index_counts(len(indexes), 0)


def check_index_counts(indexes: int, attributes: int) -> None:
    """How many global indexes a table has at most, and how many attributes all its indexes may name."""
    if indexes > MAX_GLOBAL_INDEXES:
        raise _invalid(f"GlobalSecondaryIndex count exceeds the per-table limit of {MAX_GLOBAL_INDEXES}")
    if attributes > MAX_PROJECTED_ATTRIBUTES:
        raise _invalid(
            f"Number of NonKeyAttributes of all indexes exceeds the per-table limit of {MAX_PROJECTED_ATTRIBUTES}"
        )


def _check_projection(projection: Given) -> None:
    kind, attributes = projection.get("ProjectionType"), projection.get("NonKeyAttributes")
    if kind is None:
        raise _invalid("Unknown ProjectionType: null")
    if kind != "INCLUDE" and attributes is not None:
        raise _invalid(f"ProjectionType is {kind}, but NonKeyAttributes is specified")
    if kind == "INCLUDE" and attributes is None:
        raise _invalid("ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
    if attributes is not None and len(set(attributes)) < len(attributes):
        raise InvalidRequest("Cannot have two attributes with the same name")


def _check_new(name: str, names: set[str]) -> None:
    if name in names:
        raise _invalid(f"Duplicate index name: {name}")
    names.add(name)


def _check_unused(request: Given, defined: Sequence[str]) -> None:
    holders = (request, *request.get("LocalSecondaryIndexes", ()), *request.get("GlobalSecondaryIndexes", ()))
    used = list(dict.fromkeys(name for holder in holders for name in _names(holder["KeySchema"])))
    if len(used) < len(defined):
        raise _invalid(
            "Some AttributeDefinitions are not used."
            f" AttributeDefinitions: [{', '.join(defined)}], keys used: [{', '.join(used)}]"
        )


def _check_stream(stream: Given | None, change: str = "created") -> None:
    if stream is None:
        return
    if stream["StreamEnabled"] and "StreamViewType" not in stream:
        raise _invalid(f"Table is being {change} with a stream enabled, UpdateViewType must be specified")
    if not stream["StreamEnabled"] and "StreamViewType" in stream:
        raise _invalid(f"Table is being {change} with a stream disabled, UpdateViewType should not be specified")


# --- UpdateTable -------------------------------------------------------------------------------

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


def update_table(request: dict[str, Any]) -> None:
    # A change may be to say no; only a list of no changes is none.
    if all(request.get(name, []) == [] for name in _CHANGES):
        raise InvalidRequest(
            "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates"
            " or SSESpecification or ReplicaUpdates is required"
        )
    if request.get("ReplicaUpdates"):
        raise _invalid("Replicas are not supported: the tables of a file are in one region")
    if request.get("BillingMode") == "PROVISIONED" and "ProvisionedThroughput" not in request:
        raise _invalid("ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
    if "ProvisionedThroughput" in request:
        _check_bounds(request["ProvisionedThroughput"])
    _check_index_updates(request.get("GlobalSecondaryIndexUpdates", ()))
    defined = _defined(request.get("AttributeDefinitions", ()))
    for update in request.get("GlobalSecondaryIndexUpdates", ()):
        if "Create" in update:
            if len(update["Create"]["KeySchema"]) > len(defined):
                raise InvalidRequest(_UNDEFINED)
            _check_schema(update["Create"]["KeySchema"], defined)
            _check_projection(update["Create"]["Projection"])
    _check_stream(request.get("StreamSpecification"), "updated")


def _check_index_updates(updates: Iterable[Given]) -> None:
    names: set[str] = set()
    for update in updates:
        given = next((update[kind] for kind in ("Update", "Create", "Delete") if kind in update), None)
        if given is None:
            raise _invalid(
                "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create,"
                " GlobalSecondaryIndexUpdate.Delete must not be null"
            )
        name = given["IndexName"]
        if name in names:
            raise _invalid(f"Only one global secondary index update per index is allowed simultaneously. Index: {name}")
        names.add(name)
