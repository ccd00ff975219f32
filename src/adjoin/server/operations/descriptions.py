"""Describes a table as DynamoDB does, from what the store knows about it.

The embedded store only remembers some settings: table class, encryption, and limits of throughput. They are stored in
the form that descriptions show, under the name of their member; those of an index under its name and the member's.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias
from uuid import uuid4

from adjoin.requests import TableHistory, TableResponse
from adjoin.server.operations.interface import ACCOUNT, REGION, index_arn, stream_arn, table_arn
from adjoin.stores.definitions import creation
from adjoin.tables import TableDefinition, Throughput

Description: TypeAlias = dict[str, Any]

_WARM_ON_DEMAND = Throughput(12_000, 4_000)
_NO_UNITS = {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}


def description(response: TableResponse, status: str) -> Description:
    """Returns the description of a table with a status; new and removed indexes have their own status."""
    definition, history = response.definition, response.history
    described = creation(definition)
    shown: Description = {
        "AttributeDefinitions": described["AttributeDefinitions"],
        "TableName": definition.name,
        "KeySchema": described["KeySchema"],
        "TableStatus": status,
        "CreationDateTime": history.created,
        "ProvisionedThroughput": _throughput(_units_now(response), history),
        "TableSizeBytes": response.size,
        "ItemCount": response.item_count,
        "TableArn": table_arn(definition.name),
        "TableId": history.id,
        **_billing(definition, history),
        **_indexes(response, status),
        "DeletionProtectionEnabled": definition.deletion_protection,
        **_warm(definition.throughput, status),
        **table_settings(history.settings, status),
    }
    if definition.stream:
        shown["StreamSpecification"] = described["StreamSpecification"]
    if history.stream_label is not None:
        shown["LatestStreamLabel"] = history.stream_label
        shown["LatestStreamArn"] = stream_arn(definition.name, history.stream_label)
    return shown


def _units_now(response: TableResponse) -> Throughput | None:
    """Returns the throughput that can be used now: while it changes, that is still the earlier one."""
    before, after = response.before, response.definition.throughput
    return before.throughput if before is not None and before.throughput and after else after


def _throughput(units: Throughput | None, history: TableHistory) -> Description:
    shown: Description = {"NumberOfDecreasesToday": _decreases_today(history), **_units(units)}
    if history.increased is not None:
        shown["LastIncreaseDateTime"] = history.increased
    if history.decreased is not None:
        shown["LastDecreaseDateTime"] = history.decreased
    return shown


def _units(units: Throughput | None) -> Description:
    return _NO_UNITS if units is None else {"ReadCapacityUnits": units.read, "WriteCapacityUnits": units.write}


def _warm(units: Throughput | None, status: str) -> Description:
    """Returns the warm throughput of a table; a table that is being created does not show it yet."""
    if status == "CREATING":
        return {}
    units = units or _WARM_ON_DEMAND
    usable = {"ReadUnitsPerSecond": units.read, "WriteUnitsPerSecond": units.write, "Status": "ACTIVE"}
    return {"WarmThroughput": usable}


def _decreases_today(history: TableHistory) -> int:
    is_today = history.decreased is not None and history.decreased // 86400 == time.time() // 86400
    return history.decreases if is_today else 0


def _billing(definition: TableDefinition, history: TableHistory) -> Description:
    """Returns the billing mode of a table that is or was on demand."""
    if history.on_demand is None:
        return {}
    mode = "PAY_PER_REQUEST" if definition.throughput is None else "PROVISIONED"
    since = {"LastUpdateToPayPerRequestDateTime": history.on_demand}
    return {
        "BillingModeSummary": {"BillingMode": mode, **since},
        "TableThroughputModeSummary": {"TableThroughputMode": mode, **since},
    }


# --- indexes -----------------------------------------------------------------------------------


def _indexes(response: TableResponse, status: str) -> Description:
    before, after = response.before or response.definition, response.definition
    local = [_index(after, described) for described in creation(after).get("LocalSecondaryIndexes", ())]
    units = {"NumberOfDecreasesToday": 0, **_NO_UNITS}
    found: list[Description] = []
    earlier = {described["IndexName"]: described for described in creation(before).get("GlobalSecondaryIndexes", ())}
    for definition, described in (
        *((after, described) for described in creation(after).get("GlobalSecondaryIndexes", ())),
        *((before, described) for described in creation(before).get("GlobalSecondaryIndexes", ())),
    ):
        name = described["IndexName"]
        if any(each["IndexName"] == name for each in found):
            continue
        shown = _index(definition, described)
        shown["IndexStatus"] = _index_status(name, before, after, status)
        # While the throughput of an index changes, the earlier one is shown, as for the table.
        usable = earlier.get(name, described) if before.throughput and after.throughput else described
        shown["ProvisionedThroughput"] = {**units, **usable.get("ProvisionedThroughput", {})}
        shown |= _warm(after.index_throughput(known) if (known := after.index(name)) else None, shown["IndexStatus"])
        shown |= index_settings(response.history.settings, name, shown["IndexStatus"])
        found.append(shown)
    return {
        **({"LocalSecondaryIndexes": local} if local else {}),
        **({"GlobalSecondaryIndexes": found} if found else {}),
    }


def _index(definition: TableDefinition, described: Description) -> Description:
    return {
        **described,
        "IndexArn": index_arn(definition.name, described["IndexName"]),
        "IndexSizeBytes": 0,
        "ItemCount": 0,
    }


def _index_status(name: str, before: TableDefinition, after: TableDefinition, status: str) -> str:
    was, is_now = before.index(name), after.index(name)
    if was is None:
        return "CREATING"
    if is_now is None:
        return "DELETING"
    if after.index_throughput(is_now) != before.index_throughput(was):
        return "UPDATING"
    return "CREATING" if status == "CREATING" else "ACTIVE"


# --- settings ----------------------------------------------------------------------------------

Given: TypeAlias = Mapping[str, Any]

RECOVERY = "/Recovery"
"""The setting that holds since when, and for how many days, a table can be recovered. Descriptions do not show it."""

_OF_INDEXES = ("OnDemandThroughput", "WarmThroughput")
_UNLIMITED = -1


def settings_of(parameters: Given, indexes: Iterable[Given], *, change: bool) -> dict[str, Any]:
    """Returns the settings in a request that creates or changes a table; None for a setting that it removes."""
    settings: dict[str, Any] = {}
    if "TableClass" in parameters:
        since = {"LastUpdateDateTime": time.time()} if change else {}
        settings["TableClassSummary"] = {"TableClass": parameters["TableClass"], **since}
    if "SSESpecification" in parameters:
        settings["SSEDescription"] = _encryption(parameters["SSESpecification"])
    for place, given in (("", parameters), *((f"{index['IndexName']}/", index) for index in indexes)):
        for member in _OF_INDEXES:
            if member in given:
                settings[place + member] = given[member]
    return settings


def _encryption(wanted: Given) -> Given | None:
    """Returns the encryption with a key of the account; None for DynamoDB's own key, which descriptions do not show."""
    if not wanted.get("Enabled"):
        return None
    key = wanted.get("KMSMasterKeyId") or str(uuid4())
    arn = key if key.startswith("arn:") else f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{key}"
    return {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": arn}


def table_settings(settings: Given, status: str) -> dict[str, Any]:
    """Returns the settings as members of a table's description."""
    return _shown({name: each for name, each in settings.items() if "/" not in name}, status)


def index_settings(settings: Given, index: str, status: str) -> dict[str, Any]:
    """Returns the settings as members of an index's description."""
    own = {name.partition("/")[2]: each for name, each in settings.items() if name.startswith(f"{index}/")}
    return _shown(own, status)


def _shown(settings: dict[str, Any], status: str) -> dict[str, Any]:
    if limits := settings.get("OnDemandThroughput"):
        names = ("MaxReadRequestUnits", "MaxWriteRequestUnits")
        settings["OnDemandThroughput"] = {name: limits.get(name, _UNLIMITED) for name in names}
    if warm := settings.get("WarmThroughput"):
        settings["WarmThroughput"] = {**warm, "Status": "ACTIVE" if status == "ACTIVE" else "UPDATING"}
    return settings
