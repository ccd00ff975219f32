"""Operations on tables: CreateTable, DescribeTable, DeleteTable and ListTables; UpdateTable is in `table_updates`.

A table is created, changed and dropped immediately, so only the answer to the request shows the states between, such
as CREATING. Rules are in the order in which DynamoDB checks them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adjoin.errors import InvalidRequest, TableNotFound
from adjoin.requests import CreateTable, DescribeTable, DropTable, ListTables, Request, TableResponse, TablesResponse
from adjoin.server.operations.descriptions import Given, description, settings_of
from adjoin.server.operations.interface import (
    AnswerBody,
    Operation,
    Parameters,
    Refused,
    TableLookup,
    table_name,
    validation_fault,
)
from adjoin.server.operations.shapes import (
    FLAG,
    LONG,
    NAME,
    POSITIVE_LONG,
    TEXT,
    Listing,
    TableReference,
    Text,
    Whole,
    is_arn,
    structure,
)
from adjoin.stores.definitions import described
from adjoin.tables import IndexDefinition, TableDefinition
from adjoin.units import (
    MAX_GLOBAL_INDEXES,
    MAX_KEY_ATTRIBUTES,
    MAX_LOCAL_INDEXES,
    MAX_PROJECTED_ATTRIBUTES,
    MAX_TAG_KEY,
    MAX_TAG_VALUE,
    MAX_TAGS,
)

_INVALID = "One or more parameter values were invalid: "
UNDEFINED = "Invalid KeySchema: Some index key attribute have no definition"
LIMITED = "OnDemandThroughput can only be specified when BillingMode is PAY_PER_REQUEST"
MOST_UNITS = 1_000_000_000_000
_MOST_TABLES = 100
"""The greatest number of names in one answer."""


def invalid(fault: str) -> InvalidRequest:
    return InvalidRequest(_INVALID + fault)


def found(parameters: Parameters, tables: TableLookup) -> TableDefinition:
    """Returns the table that a request names; raises `TableNotFound`."""
    name = table_name(parameters["TableName"])
    try:
        return tables.definition(name)
    except TableNotFound:
        raise not_found(f"Table: {name}") from None


def not_found(what: str) -> Refused:
    return Refused("ResourceNotFoundException", f"Requested resource not found: {what} not found")


# --- parameters that several operations share --------------------------------------------------

DEFINED_NAME = Text(least=1, most=255)
"""The name of an attribute in the definition of a table."""

DEFINITIONS = Listing(
    structure(
        "AttributeDefinition",
        "AttributeName AttributeType",
        AttributeName=DEFINED_NAME,
        AttributeType=Text(choices=("B", "N", "S")),
    )
)

_KEY_SCHEMA_ELEMENT = structure(
    "KeySchemaElement",
    "AttributeName KeyType",
    AttributeName=DEFINED_NAME,
    KeyType=Text(choices=("HASH", "RANGE")),
)
_KEY_SCHEMA = Listing(_KEY_SCHEMA_ELEMENT, least=1, most=2)
GLOBAL_KEY_SCHEMA = Listing(_KEY_SCHEMA_ELEMENT, least=1)
"""The keys of a global index. How many attributes they may have is a rule, not part of the shape; measured."""

PROJECTION = structure(
    "Projection",
    ProjectionType=Text(choices=("ALL", "INCLUDE", "KEYS_ONLY")),
    NonKeyAttributes=Listing(DEFINED_NAME, least=1, most=20),
)

THROUGHPUT = structure(
    "ProvisionedThroughput",
    "WriteCapacityUnits ReadCapacityUnits",
    WriteCapacityUnits=POSITIVE_LONG,
    ReadCapacityUnits=POSITIVE_LONG,
)

ON_DEMAND_THROUGHPUT = structure("OnDemandThroughput", MaxReadRequestUnits=LONG, MaxWriteRequestUnits=LONG)
WARM_THROUGHPUT = structure("WarmThroughput", ReadUnitsPerSecond=LONG, WriteUnitsPerSecond=LONG)

BILLING = Text(choices=("PROVISIONED", "PAY_PER_REQUEST"))
TABLE_CLASS = Text(choices=("STANDARD", "STANDARD_INFREQUENT_ACCESS"))

STREAM = structure(
    "StreamSpecification",
    "StreamEnabled",
    StreamEnabled=FLAG,
    StreamViewType=Text(choices=("NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY")),
)

ENCRYPTION = structure(
    "SSESpecification",
    Enabled=FLAG,
    SSEType=Text(choices=("AES256", "KMS")),
    KMSMasterKeyId=TEXT,
)

TAGS = Listing(
    structure("Tag", "Key Value", Key=Text(least=1, most=MAX_TAG_KEY), Value=Text(least=0, most=MAX_TAG_VALUE))
)

_LOCAL_INDEX = structure(
    "LocalSecondaryIndex",
    "IndexName KeySchema Projection",
    IndexName=NAME,
    KeySchema=_KEY_SCHEMA,
    Projection=PROJECTION,
)

_GLOBAL_INDEX = structure(
    "GlobalSecondaryIndex",
    "IndexName KeySchema Projection",
    IndexName=NAME,
    KeySchema=GLOBAL_KEY_SCHEMA,
    Projection=PROJECTION,
    ProvisionedThroughput=THROUGHPUT,
    OnDemandThroughput=ON_DEMAND_THROUGHPUT,
    WarmThroughput=WARM_THROUGHPUT,
)

# DynamoDB checks access to the table before any limit, so the presence and the length of its name are preconditions.
TABLE_FIRST = TableReference(lengths=False)


def require_table(request: Parameters) -> None:
    name = request.get("TableName")
    if name is None:
        raise InvalidRequest("The parameter 'TableName' is required but was not present in the request")
    if not is_arn(name) and not 3 <= len(name) <= 255:
        raise InvalidRequest("TableName must be at least 3 characters long and at most 255 characters long")


_TAG = re.compile(r"[\w\s+\-=.:/@]*")


def check_tags(tags: Any, others: int = 0) -> None:
    keys: set[str] = set()
    for tag in tags:
        key = tag["Key"]
        if key in keys:
            raise validation_fault(f"Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}")
        if key.lower().startswith("aws:"):
            raise validation_fault(f"Tag Key cannot be prefixed with aws:, Key: {key}")
        if not (_TAG.fullmatch(key) and _TAG.fullmatch(tag["Value"])):
            raise validation_fault(f"Tag Key or Value contains characters that are not supported, Key: {key}")
        keys.add(key)
    if len(keys) + others > MAX_TAGS:
        raise validation_fault("Number of Tags exceed the current limit for the provided ResourceArn")


# --- CreateTable -------------------------------------------------------------------------------


def _check_create(request: Parameters) -> None:
    _check_billing(request)
    defined = defined_names(request["AttributeDefinitions"])
    _check_keys(request, defined)
    names: set[str] = set()
    if "LocalSecondaryIndexes" in request:
        _check_local_indexes(request, defined, names)
    if "GlobalSecondaryIndexes" in request:
        _check_global_indexes(request, defined, names)
    _check_unused(request, defined)
    indexes = (*request.get("LocalSecondaryIndexes", ()), *request.get("GlobalSecondaryIndexes", ()))
    check_index_counts(0, sum(len(index["Projection"].get("NonKeyAttributes", ())) for index in indexes))
    check_stream(request.get("StreamSpecification"))


def _check_billing(request: Given) -> None:
    units = request.get("ProvisionedThroughput")
    if request.get("BillingMode") == "PAY_PER_REQUEST":
        if units is not None:
            raise invalid(
                "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
            )
    elif "OnDemandThroughput" in request:
        raise invalid(LIMITED)
    elif units is None:
        raise invalid("ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
    else:
        check_bounds(units)
    for index in request.get("GlobalSecondaryIndexes", ()):
        if "ProvisionedThroughput" in index:
            check_bounds(index["ProvisionedThroughput"], f" for index {index['IndexName']}")


def check_bounds(units: Given, where: str = "") -> None:
    for name in ("ReadCapacityUnits", "WriteCapacityUnits"):
        if units[name] > MOST_UNITS:
            raise InvalidRequest(f"Given value {units[name]} for {name} is out of bounds{where}")


def defined_names(definitions: Iterable[Given]) -> list[str]:
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
        raise InvalidRequest(UNDEFINED)
    _check_schema(schema, defined)
    has_indexes = "LocalSecondaryIndexes" in request or "GlobalSecondaryIndexes" in request
    # With indexes, further attributes may be theirs. The service compares all keys together then, and last:
    # `_check_unused`.
    if not has_indexes and len(schema) != len(defined):
        raise invalid(
            "Number of attributes in KeySchema does not exactly match number of attributes defined in"
            " AttributeDefinitions"
        )


def _check_defined(names: Sequence[str], defined: Sequence[str]) -> None:
    if not set(names) <= set(defined):
        raise invalid(
            "Some index key attributes are not defined in AttributeDefinitions."
            f" Keys: [{', '.join(names)}], AttributeDefinitions: [{', '.join(defined)}]"
        )


def check_global_schema(schema: Sequence[Given], defined: Sequence[str]) -> None:
    """Checks the key schema of a global index, whose keys may have several attributes; the messages are measured."""
    kinds, names = [element["KeyType"] for element in schema], _names(schema)
    # For keys of one attribute, the service still answers as it did before there were keys of several.
    if kinds in (["HASH"], ["HASH", "RANGE"]):
        _check_schema(schema, defined)
        return
    _check_defined(names, defined)
    if len(set(names)) < len(names):
        raise InvalidRequest("The KeySchema contains multiple key attributes with the same name")
    if kinds[0] != "HASH":
        raise InvalidRequest("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
    if kinds != sorted(kinds):
        raise invalid("All HASH key attributes must precede RANGE key attributes in the KeySchema")
    for kind in ("HASH", "RANGE"):
        if kinds.count(kind) > MAX_KEY_ATTRIBUTES:
            raise invalid(f"The KeySchema exceeds the maximum allowed number of {kind} key attributes")


def _check_schema(schema: Sequence[Given], defined: Sequence[str]) -> None:
    """Checks the key schema of a table or of a local index."""
    names = _names(schema)
    _check_defined(names, defined)
    if len(set(names)) < len(names):
        raise InvalidRequest("Both the Hash Key and the Range Key element in the KeySchema have the same name")
    for place, kind, element in zip(("first", "second"), ("HASH", "RANGE"), schema, strict=False):
        if element["KeyType"] != kind:
            raise InvalidRequest(f"Invalid KeySchema: The {place} KeySchemaElement is not a {kind} key type")


def _check_local_indexes(request: Given, defined: Sequence[str], names: set[str]) -> None:
    indexes = request["LocalSecondaryIndexes"]
    if not indexes:
        raise invalid("List of LocalSecondaryIndexes is empty")
    if len(request["KeySchema"]) != 2:
        raise invalid(
            "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"
        )
    partition = request["KeySchema"][0]["AttributeName"]
    for index in indexes:
        name, schema = index["IndexName"], index["KeySchema"]
        _check_schema(schema, defined)
        if len(schema) != 2:
            raise invalid(f"Index KeySchema does not have a range key for index: {name}")
        if schema[0]["AttributeName"] != partition:
            raise invalid(
                f"Index KeySchema does not have the same leading hash key as table KeySchema for index: {name}."
                f" index hash key: {schema[0]['AttributeName']}, table hash key: {partition}"
            )
        check_projection(index["Projection"])
        _check_new(name, names)
    if len(indexes) > MAX_LOCAL_INDEXES:
        raise invalid(f"Number of LocalSecondaryIndexes exceeds per-table limit of {MAX_LOCAL_INDEXES}")


def _check_global_indexes(request: Given, defined: Sequence[str], names: set[str]) -> None:
    indexes = request["GlobalSecondaryIndexes"]
    if not indexes:
        raise invalid("List of GlobalSecondaryIndexes is empty")
    on_demand = request.get("BillingMode") == "PAY_PER_REQUEST"
    for index in indexes:
        name = index["IndexName"]
        check_global_schema(index["KeySchema"], defined)
        check_projection(index["Projection"])
        if on_demand and "ProvisionedThroughput" in index:
            raise invalid(
                f"ProvisionedThroughput should not be specified for index: {name} when BillingMode is PAY_PER_REQUEST"
            )
        if not on_demand and "ProvisionedThroughput" not in index:
            raise invalid(f"ProvisionedThroughput is not specified for index: {name}")
        _check_new(name, names)
    check_index_counts(len(indexes), 0)


def check_index_counts(indexes: int, attributes: int) -> None:
    """Checks the number of global indexes of a table, and of the attributes that all its indexes project by name."""
    if indexes > MAX_GLOBAL_INDEXES:
        raise invalid(f"GlobalSecondaryIndex count exceeds the per-table limit of {MAX_GLOBAL_INDEXES}")
    if attributes > MAX_PROJECTED_ATTRIBUTES:
        raise invalid(
            f"Number of NonKeyAttributes of all indexes exceeds the per-table limit of {MAX_PROJECTED_ATTRIBUTES}"
        )


def check_projection(projection: Given) -> None:
    kind, attributes = projection.get("ProjectionType"), projection.get("NonKeyAttributes")
    if kind is None:
        raise invalid("Unknown ProjectionType: null")
    if kind != "INCLUDE" and attributes is not None:
        raise invalid(f"ProjectionType is {kind}, but NonKeyAttributes is specified")
    if kind == "INCLUDE" and attributes is None:
        raise invalid("ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
    if attributes is not None and len(set(attributes)) < len(attributes):
        raise InvalidRequest("Cannot have two attributes with the same name")


def _check_new(name: str, names: set[str]) -> None:
    if name in names:
        raise invalid(f"Duplicate index name: {name}")
    names.add(name)


def _check_unused(request: Given, defined: Sequence[str]) -> None:
    holders = (request, *request.get("LocalSecondaryIndexes", ()), *request.get("GlobalSecondaryIndexes", ()))
    used = list(dict.fromkeys(name for holder in holders for name in _names(holder["KeySchema"])))
    if len(used) < len(defined):
        raise invalid(
            "Some AttributeDefinitions are not used."
            f" AttributeDefinitions: [{', '.join(defined)}], keys used: [{', '.join(used)}]"
        )


def check_stream(stream: Given | None, change: str = "created") -> None:
    if stream is None:
        return
    if stream["StreamEnabled"] and "StreamViewType" not in stream:
        raise invalid(f"Table is being {change} with a stream enabled, UpdateViewType must be specified")
    if not stream["StreamEnabled"] and "StreamViewType" in stream:
        raise invalid(f"Table is being {change} with a stream disabled, UpdateViewType should not be specified")


def _create(parameters: Parameters, tables: TableLookup) -> Request:
    name = table_name(parameters["TableName"])
    check_tags(parameters.get("Tags", ()))
    try:
        tables.definition(name)
    except TableNotFound:
        pass
    else:
        raise Refused("ResourceInUseException", f"Table already exists: {name}")
    billing = {"BillingMode": parameters.get("BillingMode", "PROVISIONED")}
    definition = described({**parameters, "TableName": name, "BillingModeSummary": billing}, None)
    attributes = {
        index["IndexName"]: index["Projection"].get("NonKeyAttributes", ())
        for member in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
        for index in parameters.get(member, ())
    }
    return CreateTable(
        replace(
            definition,
            indexes=tuple(_as_asked(index, attributes) for index in definition.indexes),
            tags=tuple(sorted((tag["Key"], tag["Value"]) for tag in parameters.get("Tags", ()))),
        ),
        settings_of(parameters, parameters.get("GlobalSecondaryIndexes", ()), change=False),
    )


def _as_asked(index: IndexDefinition, attributes: Mapping[str, Any]) -> IndexDefinition:
    """Returns the index with its projected attributes in the order of the request."""
    return replace(index, projection=replace(index.projection, attributes=tuple(attributes[index.name])))


def _created(parameters: Parameters, response: TableResponse, tables: TableLookup) -> AnswerBody:
    shown = description(response, "CREATING")
    # The service repeats the request here, in its order. DescribeTable has an order of its own.
    shown["AttributeDefinitions"] = parameters["AttributeDefinitions"]
    for member in ("BillingModeSummary", "TableThroughputModeSummary"):
        # The time is not set before the table is active.
        shown.get(member, {}).pop("LastUpdateToPayPerRequestDateTime", None)
    # The answer to CreateTable has this setting only if the request has it; DescribeTable always has it.
    if "DeletionProtectionEnabled" not in parameters:
        del shown["DeletionProtectionEnabled"]
    return {"TableDescription": shown}


_CREATE_TABLE = Operation(
    "CreateTable",
    structure(
        "CreateTableInput",
        "AttributeDefinitions KeySchema",
        AttributeDefinitions=DEFINITIONS,
        TableName=TABLE_FIRST,
        BillingMode=BILLING,
        ProvisionedThroughput=THROUGHPUT,
        KeySchema=_KEY_SCHEMA,
        LocalSecondaryIndexes=Listing(_LOCAL_INDEX),
        GlobalSecondaryIndexes=Listing(_GLOBAL_INDEX),
        StreamSpecification=STREAM,
        SSESpecification=ENCRYPTION,
        Tags=TAGS,
        TableClass=TABLE_CLASS,
        DeletionProtectionEnabled=FLAG,
        WarmThroughput=WARM_THROUGHPUT,
        ResourcePolicy=TEXT,
        OnDemandThroughput=ON_DEMAND_THROUGHPUT,
    ),
    _create,
    _created,
    precondition=require_table,
    rule=_check_create,
    writes=True,
)

# --- DescribeTable, DeleteTable, ListTables ----------------------------------------------------


def describe(parameters: Parameters, tables: TableLookup) -> Request:
    return DescribeTable(found(parameters, tables).name)


def _described(parameters: Parameters, response: TableResponse, tables: TableLookup) -> AnswerBody:
    return {"Table": description(response, "ACTIVE")}


def _drop(parameters: Parameters, tables: TableLookup) -> Request:
    definition = found(parameters, tables)
    if definition.deletion_protection:
        raise validation_fault(
            "Resource cannot be deleted as it is currently protected against deletion."
            " Disable deletion protection first."
        )
    return DropTable(definition.name)


def _dropped(parameters: Parameters, response: TableResponse, tables: TableLookup) -> AnswerBody:
    shown = description(response, "DELETING")
    # A table that is being deleted is described without its indexes.
    shown.pop("GlobalSecondaryIndexes", None)
    return {"TableDescription": shown}


def list_tables(parameters: Parameters, tables: TableLookup) -> Request:
    return ListTables()


def _listed(parameters: Parameters, response: TablesResponse, tables: TableLookup) -> AnswerBody:
    start = parameters.get("ExclusiveStartTableName", "")
    limit = parameters.get("Limit", _MOST_TABLES)
    names = [name for name in response.names if name > start]
    answer: AnswerBody = {"TableNames": names[:limit]}
    if len(names) > limit:
        answer["LastEvaluatedTableName"] = names[limit - 1]
    return answer


_DESCRIBE_TABLE = Operation(
    "DescribeTable",
    structure("DescribeTableInput", TableName=TABLE_FIRST),
    describe,
    _described,
    precondition=require_table,
)

_DELETE_TABLE = Operation(
    "DeleteTable",
    structure("DeleteTableInput", TableName=TABLE_FIRST),
    _drop,
    _dropped,
    precondition=require_table,
    writes=True,
)

_LIST_TABLES = Operation(
    "ListTables",
    structure("ListTablesInput", Limit=Whole("Integer", least=1, most=_MOST_TABLES), ExclusiveStartTableName=NAME),
    list_tables,
    _listed,
)

TABLE_OPERATIONS = (_CREATE_TABLE, _DESCRIBE_TABLE, _DELETE_TABLE, _LIST_TABLES)
