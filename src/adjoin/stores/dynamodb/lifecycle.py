"""Tables made, described and dropped: each is done when it returns, however long the service takes.

Making a table is several calls, since time to live and recovery can only be set on a table that is
there. If it is interrupted between them, `SetTimeToLive` or making it again finishes the rest.
"""

from __future__ import annotations

import asyncio
import time

from adjoin.errors import NotSupported, TableBusy, TableExists, TableNotFound
from adjoin.requests import (
    CreateTable,
    DescribeTable,
    DropTable,
    ListTables,
    SetTimeToLive,
    TableResponse,
    TablesResponse,
)
from adjoin.stores.descriptions import creation, described
from adjoin.stores.dynamodb.client import Client, RefusedAfterDoubt, together
from adjoin.stores.dynamodb.protocol import Payload, target

_PATIENCE = 600.0
"""Seconds that a table may take to be made or dropped; large indexes take minutes."""
_FIRST_LOOK, _LONGEST_PAUSE = 0.02, 2.0
_ON_THE_WAY = ("CREATING", "DELETING")


async def create(client: Client, request: CreateTable) -> TableResponse:
    definition = request.definition
    try:
        await client.table_call(target("CreateTable"), creation(definition))
    except TableBusy as error:
        raise TableExists(str(error)) from error
    except RefusedAfterDoubt as refused:
        # The attempt whose answer was lost may be the one that made it.
        if not isinstance(refused.error, TableBusy):
            raise refused.error from None
    await _settled(client, definition.name)
    if definition.ttl is not None:
        await _enable_time_to_live(client, definition.name, definition.ttl)
    if definition.point_in_time_recovery:
        await client.table_call(
            target("UpdateContinuousBackups"),
            {
                "TableName": definition.name,
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            },
        )
    return TableResponse(definition)


async def _enable_time_to_live(client: Client, table: str, name: str) -> None:
    await client.table_call(
        target("UpdateTimeToLive"),
        {"TableName": table, "TimeToLiveSpecification": {"Enabled": True, "AttributeName": name}},
    )


async def set_time_to_live(client: Client, request: SetTimeToLive) -> TableResponse:
    await _enable_time_to_live(client, request.table, request.attribute)
    return await describe(client, DescribeTable(request.table))


async def describe(client: Client, request: DescribeTable) -> TableResponse:
    """The table as it is once it is there and whole."""
    table, ttl = await together(_settled(client, request.table), _time_to_live(client, request.table))
    return TableResponse(described(table, ttl), table.get("ItemCount", 0), table.get("TableSizeBytes", 0))


async def drop(client: Client, request: DropTable) -> TableResponse:
    found = await _settled(client, request.table)
    try:
        await client.table_call(target("DeleteTable"), {"TableName": request.table})
        await _settled(client, request.table)
    except TableNotFound:
        pass
    except RefusedAfterDoubt as refused:
        if not isinstance(refused.error, TableNotFound):
            raise refused.error from None
    return TableResponse(described(found, None), found.get("ItemCount", 0), found.get("TableSizeBytes", 0))


async def list_tables(client: Client, request: ListTables) -> TablesResponse:
    names: list[str] = []
    payload: Payload = {}
    while True:
        answer = await client.table_call(target("ListTables"), payload)
        names += answer["TableNames"]
        if "LastEvaluatedTableName" not in answer:
            return TablesResponse(tuple(sorted(names)))
        payload = {"ExclusiveStartTableName": answer["LastEvaluatedTableName"]}


async def table_description(client: Client, name: str) -> Payload:
    answer = await client.table_call(target("DescribeTable"), {"TableName": name})
    found: Payload = answer["Table"]
    return found


async def _settled(client: Client, name: str) -> Payload:
    """The description of a table that is neither being made nor being dropped; `TableNotFound` when it is gone."""
    started = time.monotonic()
    pause = _FIRST_LOOK
    while True:
        table = await table_description(client, name)
        if table.get("TableStatus") not in _ON_THE_WAY:
            return table
        if time.monotonic() - started > _PATIENCE:
            status = table["TableStatus"].lower()
            raise TableBusy(f"the table {name} is still {status} after {_PATIENCE:.0f} s; wait, and try again")
        await asyncio.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 2)


async def _time_to_live(client: Client, name: str) -> str | None:
    try:
        answer = await client.table_call(target("DescribeTimeToLive"), {"TableName": name})
    except NotSupported:
        return None
    found = answer.get("TimeToLiveDescription") or {}
    return found.get("AttributeName") if found.get("TimeToLiveStatus") in ("ENABLED", "ENABLING") else None
