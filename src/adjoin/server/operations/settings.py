"""What a table is told that the embedded store only remembers: its class, encryption, and limits of throughput.

They are kept as descriptions show them, by the name of their member; those of an index under its name and theirs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias
from uuid import uuid4

from adjoin.server.names import ACCOUNT, REGION

Given: TypeAlias = Mapping[str, Any]

RECOVERY = "/Recovery"
"""The setting that says since when, and for how many days, a table can be recovered; it is no part of descriptions."""

_OF_INDEXES = ("OnDemandThroughput", "WarmThroughput")
_UNLIMITED = -1


def settings_of(parameters: Given, indexes: Iterable[Given], *, change: bool) -> dict[str, Any]:
    """What a request to make or to change a table says; None for what ends with it."""
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
    """Encryption with a key of the account; with one of the service's own, nothing is told."""
    if not wanted.get("Enabled"):
        return None
    key = wanted.get("KMSMasterKeyId") or str(uuid4())
    arn = key if key.startswith("arn:") else f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{key}"
    return {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": arn}


def table_settings(settings: Given, status: str) -> dict[str, Any]:
    """The members of a table's description."""
    return _shown({name: each for name, each in settings.items() if "/" not in name}, status)


def index_settings(settings: Given, index: str, status: str) -> dict[str, Any]:
    """The members of an index's description."""
    own = {name.partition("/")[2]: each for name, each in settings.items() if name.startswith(f"{index}/")}
    return _shown(own, status)


def _shown(settings: dict[str, Any], status: str) -> dict[str, Any]:
    if limits := settings.get("OnDemandThroughput"):
        names = ("MaxReadRequestUnits", "MaxWriteRequestUnits")
        settings["OnDemandThroughput"] = {name: limits.get(name, _UNLIMITED) for name in names}
    if warm := settings.get("WarmThroughput"):
        settings["WarmThroughput"] = {**warm, "Status": "ACTIVE" if status == "ACTIVE" else "UPDATING"}
    return settings
