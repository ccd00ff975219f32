"""The operations on tables: their life, and what hangs on them.

A table is made, changed and dropped at once, so the states between are told in the answer to the request only.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from adjoin.errors import TableNotFound
from adjoin.requests import (
    CreateTable,
    DescribeTable,
    DropTable,
    ListTables,
    ListTags,
    Request,
    SetTimeToLive,
    TableResponse,
    TablesResponse,
    TagsResponse,
    TagTable,
    UpdateTable,
)
from adjoin.server.faults import Refused
from adjoin.server.names import table_name
from adjoin.server.operations.alterations import alteration
from adjoin.server.operations.descriptions import description
from adjoin.server.operations.interface import Answer, Operation, Parameters, Tables
from adjoin.server.operations.settings import RECOVERY, settings_of
from adjoin.stores.descriptions import described
from adjoin.tables import IndexDefinition, TableDefinition
from adjoin.units import MAX_TAGS

_RECOVERY_DAYS = 35
MOST_TABLES = 100
"""Names that one answer lists, if the request does not ask for fewer."""


def found(parameters: Parameters, tables: Tables) -> TableDefinition:
    """The table that a request names."""
    name = table_name(parameters["TableName"])
    try:
        return tables.definition(name)
    except TableNotFound:
        raise not_found(f"Table: {name}") from None


def not_found(what: str) -> Refused:
    return Refused("ResourceNotFoundException", f"Requested resource not found: {what} not found")


def _invalid(fault: str) -> Refused:
    return Refused("ValidationException", fault)


# --- life --------------------------------------------------------------------------------------


def _create(parameters: Parameters, tables: Tables) -> Request:
    name = table_name(parameters["TableName"])
    _check_tags(parameters.get("Tags", ()))
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
    """The index with the attributes it carries in the order in which the request has them."""
    return replace(index, projection=replace(index.projection, attributes=tuple(attributes[index.name])))


def _created(parameters: Parameters, response: TableResponse, tables: Tables) -> Answer:
    shown = description(response, "CREATING")
    shown["AttributeDefinitions"] = parameters["AttributeDefinitions"]
    for member in ("BillingModeSummary", "TableThroughputModeSummary"):
        shown.get(member, {}).pop("LastUpdateToPayPerRequestDateTime", None)
    if "DeletionProtectionEnabled" not in parameters:
        del shown["DeletionProtectionEnabled"]
    return {"TableDescription": shown}


def _describe(parameters: Parameters, tables: Tables) -> Request:
    return DescribeTable(found(parameters, tables).name)


def _described(parameters: Parameters, response: TableResponse, tables: Tables) -> Answer:
    return {"Table": description(response, "ACTIVE")}


def _update(parameters: Parameters, tables: Tables) -> Request:
    return alteration(parameters, found(parameters, tables))


def _updated(parameters: Parameters, response: TableResponse, tables: Tables) -> Answer:
    return {"TableDescription": description(response, "UPDATING")}


def _drop(parameters: Parameters, tables: Tables) -> Request:
    definition = found(parameters, tables)
    if definition.deletion_protection:
        raise _invalid(
            "Resource cannot be deleted as it is currently protected against deletion."
            " Disable deletion protection first."
        )
    return DropTable(definition.name)


def _dropped(parameters: Parameters, response: TableResponse, tables: Tables) -> Answer:
    shown = description(response, "DELETING")
    shown.pop("GlobalSecondaryIndexes", None)
    return {"TableDescription": shown}


def _list(parameters: Parameters, tables: Tables) -> Request:
    return ListTables()


def _listed(parameters: Parameters, response: TablesResponse, tables: Tables) -> Answer:
    start = parameters.get("ExclusiveStartTableName", "")
    limit = parameters.get("Limit", MOST_TABLES)
    names = [name for name in response.names if name > start]
    answer: Answer = {"TableNames": names[:limit]}
    if len(names) > limit:
        answer["LastEvaluatedTableName"] = names[limit - 1]
    return answer


# --- time to live ------------------------------------------------------------------------------


def _set_time_to_live(parameters: Parameters, tables: Tables) -> Request:
    definition = found(parameters, tables)
    wanted = parameters["TimeToLiveSpecification"]
    attribute, is_on = wanted["AttributeName"], definition.ttl is not None
    if is_on and definition.ttl != attribute:
        raise _invalid(f"TimeToLive is active on a different AttributeName: current AttributeName is {definition.ttl}")
    if wanted["Enabled"] == is_on:
        raise _invalid(f"TimeToLive is already {'enabled' if is_on else 'disabled'}")
    return SetTimeToLive(definition.name, attribute if wanted["Enabled"] else None)


def _time_to_live_set(parameters: Parameters, response: TableResponse, tables: Tables) -> Answer:
    return {"TimeToLiveSpecification": parameters["TimeToLiveSpecification"]}


def _time_to_live(parameters: Parameters, response: TableResponse, tables: Tables) -> Answer:
    ttl = response.definition.ttl
    told = {"TimeToLiveStatus": "DISABLED"} if ttl is None else {"TimeToLiveStatus": "ENABLED", "AttributeName": ttl}
    return {"TimeToLiveDescription": told}


# --- tags --------------------------------------------------------------------------------------


def _tagged_table(parameters: Parameters, tables: Tables, message: str) -> TableDefinition:
    arn = parameters["ResourceArn"]
    try:
        return tables.definition(table_name(arn))
    except TableNotFound:
        raise Refused("ResourceNotFoundException", message.format(arn=arn)) from None


_NO_RESOURCE = "Requested resource not found: ResourcArn: {arn} not found"
"""With the spelling of the service."""


_TAG = re.compile(r"[\w\s+\-=.:/@]*")


def _check_tags(tags: Any, others: int = 0) -> None:
    keys: set[str] = set()
    for tag in tags:
        key = tag["Key"]
        if key in keys:
            raise _invalid(f"Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}")
        if key.lower().startswith("aws:"):
            raise _invalid(f"Tag Key cannot be prefixed with aws:, Key: {key}")
        if not (_TAG.fullmatch(key) and _TAG.fullmatch(tag["Value"])):
            raise _invalid(f"Tag Key or Value contains characters that are not supported, Key: {key}")
        keys.add(key)
    if len(keys) + others > MAX_TAGS:
        raise _invalid("Number of Tags exceed the current limit for the provided ResourceArn")


def _tag(parameters: Parameters, tables: Tables) -> Request:
    definition = _tagged_table(parameters, tables, _NO_RESOURCE)
    given = {tag["Key"] for tag in parameters["Tags"]}
    _check_tags(parameters["Tags"], sum(key not in given for key, _ in definition.tags))
    return TagTable(definition.name, tuple((tag["Key"], tag["Value"]) for tag in parameters["Tags"]))


def _untag(parameters: Parameters, tables: Tables) -> Request:
    definition = _tagged_table(parameters, tables, "Requested resource not found")
    return TagTable(definition.name, remove=tuple(parameters["TagKeys"]))


def _list_tags(parameters: Parameters, tables: Tables) -> Request:
    return ListTags(_tagged_table(parameters, tables, _NO_RESOURCE).name)


def _tags(parameters: Parameters, response: TagsResponse, tables: Tables) -> Answer:
    return {"Tags": [{"Key": key, "Value": value} for key, value in response.tags]}


# --- recovery, and what is said of the account -------------------------------------------------


def _backed_up(parameters: Parameters, tables: Tables) -> TableDefinition:
    name = table_name(parameters["TableName"])
    try:
        return tables.definition(name)
    except TableNotFound:
        raise Refused("TableNotFoundException", f"Table not found: {name}") from None


def _describe_backups(parameters: Parameters, tables: Tables) -> Request:
    return DescribeTable(_backed_up(parameters, tables).name)


def _set_recovery(parameters: Parameters, tables: Tables) -> Request:
    wanted = parameters["PointInTimeRecoverySpecification"]
    enabled = wanted["PointInTimeRecoveryEnabled"]
    since = {"since": time.time(), "days": wanted.get("RecoveryPeriodInDays", _RECOVERY_DAYS)} if enabled else None
    return UpdateTable(_backed_up(parameters, tables).name, point_in_time_recovery=enabled, settings={RECOVERY: since})


def _backups(parameters: Parameters, response: TableResponse, tables: Tables) -> Answer:
    recovery: Answer = {"PointInTimeRecoveryStatus": "DISABLED"}
    if response.definition.point_in_time_recovery:
        told = response.history.settings.get(RECOVERY, {})
        now = time.time()
        recovery = {
            "PointInTimeRecoveryStatus": "ENABLED",
            "RecoveryPeriodInDays": told.get("days", _RECOVERY_DAYS),
            "EarliestRestorableDateTime": told.get("since", now),
            "LatestRestorableDateTime": now,
        }
    return {
        "ContinuousBackupsDescription": {
            "ContinuousBackupsStatus": "ENABLED",
            "PointInTimeRecoveryDescription": recovery,
        }
    }


def _always(answer: Answer | None) -> Callable[[Parameters, Any, Tables], Answer | None]:
    return lambda parameters, response, tables: answer


_LIMITS: Answer = {
    "AccountMaxReadCapacityUnits": 80_000,
    "AccountMaxWriteCapacityUnits": 80_000,
    "TableMaxReadCapacityUnits": 40_000,
    "TableMaxWriteCapacityUnits": 40_000,
}
"""The service's defaults."""


def _endpoints(parameters: Parameters, response: Any, tables: Tables) -> Answer:
    return {"Endpoints": [{"Address": parameters["Host"], "CachePeriodInMinutes": 1440}]}


TABLE_OPERATIONS: dict[str, Operation] = {
    "CreateTable": Operation(_create, _created, writes=True),
    "DescribeTable": Operation(_describe, _described),
    "UpdateTable": Operation(_update, _updated, writes=True),
    "DeleteTable": Operation(_drop, _dropped, writes=True),
    "ListTables": Operation(_list, _listed),
    "UpdateTimeToLive": Operation(_set_time_to_live, _time_to_live_set, writes=True),
    "DescribeTimeToLive": Operation(_describe, _time_to_live),
    "TagResource": Operation(_tag, _always(None), writes=True),
    "UntagResource": Operation(_untag, _always(None), writes=True),
    "ListTagsOfResource": Operation(_list_tags, _tags),
    "DescribeContinuousBackups": Operation(_describe_backups, _backups),
    "UpdateContinuousBackups": Operation(_set_recovery, _backups, writes=True),
    "DescribeLimits": Operation(_list, _always(_LIMITS)),
    "DescribeEndpoints": Operation(_list, _endpoints),
}
