"""Tables made, described and dropped: each is done when it returns, however long the service takes.

Making a table is several calls, since time to live and recovery can only be set on a table that is
there. If it is interrupted between them, `SetTimeToLive` or making it again finishes the rest.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from adjoin.errors import InvalidRequest, NotSupported, TableBusy, TableExists, TableNotFound
from adjoin.requests import (
    CreateTable,
    DescribeTable,
    DropTable,
    ListTables,
    SetTimeToLive,
    TableResponse,
    TablesResponse,
)
from adjoin.stores.definitions import check_definition
from adjoin.stores.descriptions import creation, described
from adjoin.stores.dynamodb.client import Client, together
from adjoin.stores.dynamodb.protocol import Payload, target
from adjoin.stores.dynamodb.retries import Attempts
from adjoin.tables import TableDefinition

_PATIENCE = 600.0
"""Seconds that a table may take to be made or dropped; large indexes take minutes."""
_FIRST_LOOK, _LONGEST_PAUSE = 0.02, 2.0
_ON_THE_WAY = ("creating", "deleting")
_UNTIL_KNOWN = 30.0
"""Seconds until every description tells of a new table; the service says "a few"."""


async def create(client: Client, request: CreateTable) -> TableResponse:
    definition = request.definition
    check_definition(definition)
    attempts = Attempts(client.backoff)
    try:
        await client.table_call(target("CreateTable"), creation(definition), attempts)
    except TableBusy as error:
        # The attempt whose answer was lost may be the one that made it.
        if not attempts.in_doubt or not await _is_there(client, definition):
            raise _exists(error) from error
    await _settled(client, definition.name, is_new=True)
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


def _exists(error: TableBusy) -> TableExists:
    exists = TableExists(error.args[0])
    exists.request_id = error.request_id
    return exists


async def _is_there(client: Client, definition: TableDefinition) -> bool:
    """Whether there is a table of that name with those keys and indexes."""
    found = described(await _settled(client, definition.name), None)
    return found.keys == definition.keys and {each.name: each.keys for each in found.indexes} == {
        each.name: each.keys for each in definition.indexes
    }


async def _enable_time_to_live(client: Client, table: str, name: str) -> None:
    payload = {"TableName": table, "TimeToLiveSpecification": {"Enabled": True, "AttributeName": name}}
    attempts = Attempts(client.backoff)
    try:
        await client.table_call(target("UpdateTimeToLive"), payload, attempts)
    except InvalidRequest:
        # What is enabled already is refused, also if an attempt whose answer was lost has enabled it.
        if not attempts.in_doubt or await _time_to_live(client, table) != name:
            raise


async def set_time_to_live(client: Client, request: SetTimeToLive) -> TableResponse:
    await _enable_time_to_live(client, request.table, request.attribute)
    return await describe(client, DescribeTable(request.table))


async def describe(client: Client, request: DescribeTable) -> TableResponse:
    """The table as it is once it is there and whole."""
    table, ttl = await together(_settled(client, request.table), _time_to_live(client, request.table))
    return TableResponse(described(table, ttl), table.get("ItemCount", 0), table.get("TableSizeBytes", 0))


async def drop(client: Client, request: DropTable) -> TableResponse:
    found = await _settled(client, request.table)
    attempts = Attempts(client.backoff)
    with suppress(TableNotFound):
        try:
            await client.table_call(target("DeleteTable"), {"TableName": request.table}, attempts)
        except TableBusy:
            # Being dropped already, perhaps by an attempt whose answer was lost.
            if not attempts.in_doubt:
                raise
        await _settled(client, request.table)
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


async def _settled(client: Client, name: str, *, is_new: bool = False) -> Payload:
    """The description of a table that is neither being made nor being dropped; `TableNotFound` when it is gone.

    Descriptions are read eventually consistently: that of a table that `is_new` may not be there yet.
    """
    started = time.monotonic()
    pause = _FIRST_LOOK
    status = "creating"
    while True:
        taken = time.monotonic() - started
        try:
            table = await table_description(client, name)
        except TableNotFound:
            if not is_new or taken > _UNTIL_KNOWN:
                raise
        else:
            status = table.get("TableStatus", "").lower()
            if status not in _ON_THE_WAY:
                return table
        if taken > _PATIENCE:
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
