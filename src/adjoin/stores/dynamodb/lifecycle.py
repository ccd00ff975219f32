"""Creating, changing, describing and dropping tables. Each operation returns only when the service has finished it.

Creating or changing a table takes several calls, because the service takes one kind of change at a time, and sets time
to live and recovery only on an existing table. If a program is interrupted between them, `SetTimeToLive`, or a second
request for the remaining changes, completes the table.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from adjoin.errors import InvalidRequest, NotSupported, TableBusy, TableExists, TableNotFound
from adjoin.requests import (
    CreateTable,
    DescribeTable,
    DropTable,
    ListTables,
    ListTags,
    SetTimeToLive,
    TableHistory,
    TableResponse,
    TablesResponse,
    TagsResponse,
    TagTable,
    UpdateTable,
)
from adjoin.stores.definitions import (
    check_definition,
    creation,
    described,
    index_payload,
    tagged,
    throughput_units,
    updated,
)
from adjoin.stores.dynamodb.answers import Misshapen, Payload
from adjoin.stores.dynamodb.client import Client, pages, together
from adjoin.stores.dynamodb.protocol import target
from adjoin.tables import KeyAttribute, TableDefinition
from adjoin.units import CHANGES_KEPT

_AT_ONCE, _COUNTED_AGAIN = 300.0, 8 * 3600.0
"""In seconds: how soon after its table a stream is switched on that was created with it; and after how long the items
of a table have surely been counted again. They are counted about every six hours, and clocks may differ."""
_PATIENCE = 600.0
"""Seconds that a table may take to be created or dropped; large indexes take minutes."""
_FIRST_LOOK, _LONGEST_PAUSE = 0.02, 2.0
_ON_THE_WAY = ("creating", "updating", "deleting")
_UNTIL_KNOWN = 30.0
"""Seconds until every DescribeTable finds a new table; the service's documentation says "a few"."""


async def create(client: Client, request: CreateTable) -> TableResponse:
    definition = request.definition
    check_definition(definition)
    attempts = client.attempts()
    try:
        await client.table_call(target("CreateTable"), creation(definition), attempts)
    except TableBusy as error:
        # An attempt whose answer was lost may have created it.
        if not attempts.in_doubt or not await _is_there(client, definition):
            raise _exists(error) from error
    await _settled(client, definition.name, is_new=True)
    if definition.ttl is not None:
        await _enable_time_to_live(client, definition.name, definition.ttl)
    if definition.point_in_time_recovery:
        await _set_recovery(client, definition.name, enabled=True)
    return TableResponse(definition)


async def _set_recovery(client: Client, table: str, *, enabled: bool) -> None:
    wanted = {"PointInTimeRecoveryEnabled": enabled}
    payload: Payload = {"TableName": table, "PointInTimeRecoverySpecification": wanted}
    await client.table_call(target("UpdateContinuousBackups"), payload)


def _exists(error: TableBusy) -> TableExists:
    exists = TableExists(error.args[0])
    exists.request_id = error.request_id
    return exists


async def _is_there(client: Client, definition: TableDefinition) -> bool:
    """Whether a table with that name, those keys and those indexes exists."""
    found = described(await _settled(client, definition.name), None)
    return found.keys == definition.keys and _index_keys(found) == _index_keys(definition)


def _index_keys(definition: TableDefinition) -> dict[str, tuple[tuple[KeyAttribute, ...], tuple[KeyAttribute, ...]]]:
    return {each.name: (each.partitions, each.sorts) for each in definition.indexes}


async def _enable_time_to_live(client: Client, table: str, name: str) -> None:
    payload = {"TableName": table, "TimeToLiveSpecification": {"Enabled": True, "AttributeName": name}}
    attempts = client.attempts()
    try:
        await client.table_call(target("UpdateTimeToLive"), payload, attempts)
    except InvalidRequest:
        # The service refuses to enable it twice, also if an attempt whose answer was lost has enabled it.
        if not attempts.in_doubt or await _time_to_live(client, table) != name:
            raise


async def set_time_to_live(client: Client, request: SetTimeToLive) -> TableResponse:
    if request.attribute is not None:
        await _enable_time_to_live(client, request.table, request.attribute)
    elif (before := await _time_to_live(client, request.table)) is not None:
        specification = {"Enabled": False, "AttributeName": before}
        payload: Payload = {"TableName": request.table, "TimeToLiveSpecification": specification}
        await client.table_call(target("UpdateTimeToLive"), payload)
    return await describe(client, DescribeTable(request.table))


# --- changing ----------------------------------------------------------------------------------


async def update(client: Client, request: UpdateTable) -> TableResponse:
    before = described(await _settled(client, request.table), None)
    definition = updated(before, request)
    for payload in _changes(definition, request):
        await client.table_call(target("UpdateTable"), {"TableName": request.table, **payload})
        await _settled(client, request.table)
    if request.point_in_time_recovery is not None:
        await _set_recovery(client, request.table, enabled=request.point_in_time_recovery)
    return await describe(client, DescribeTable(request.table))


def _changes(definition: TableDefinition, request: UpdateTable) -> Iterator[Payload]:
    """The payloads of the calls for a change; the service takes one kind of change per call."""
    for name in request.remove_indexes:
        yield {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": name}}]}
    updates = [
        {"Update": {"IndexName": name, "ProvisionedThroughput": throughput_units(units)}}
        for name, units in request.index_throughput
    ]
    if request.throughput == "on demand":
        yield {"BillingMode": "PAY_PER_REQUEST"}
    elif request.throughput is not None:
        payload: Payload = {
            "BillingMode": "PROVISIONED",
            "ProvisionedThroughput": throughput_units(request.throughput),
        }
        yield payload | ({"GlobalSecondaryIndexUpdates": updates} if updates else {})
    elif updates:
        yield {"GlobalSecondaryIndexUpdates": updates}
    for index in request.add_indexes:
        creation = index_payload(definition, index)
        types = [{"AttributeName": key.name, "AttributeType": key.type} for key in definition.key_attributes]
        yield {"AttributeDefinitions": types, "GlobalSecondaryIndexUpdates": [{"Create": creation}]}
    if request.stream == "off":
        yield {"StreamSpecification": {"StreamEnabled": False}}
    elif request.stream is not None:
        yield {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": request.stream}}
    if request.deletion_protection is not None:
        yield {"DeletionProtectionEnabled": request.deletion_protection}


async def tag(client: Client, request: TagTable) -> TagsResponse:
    table = await table_description(client, request.table)
    arn = table["TableArn"]
    tagged(described(table, None), request)
    if request.tags:
        tags = [{"Key": key, "Value": value} for key, value in request.tags]
        await client.table_call(target("TagResource"), {"ResourceArn": arn, "Tags": tags})
    if request.remove:
        await client.table_call(target("UntagResource"), {"ResourceArn": arn, "TagKeys": list(request.remove)})
    return TagsResponse(await _tags(client, arn))


async def list_tags(client: Client, request: ListTags) -> TagsResponse:
    table = await table_description(client, request.table)
    return TagsResponse(await _tags(client, table["TableArn"]))


async def _tags(client: Client, arn: str) -> tuple[tuple[str, str], ...]:
    call = partial(client.table_call, target("ListTagsOfResource"))
    tags: list[tuple[str, str]] = []
    async for answer in pages(call, {"ResourceArn": arn}, "NextToken", "NextToken"):
        tags += [(each["Key"], each["Value"]) for each in answer.get("Tags") or ()]
    return tuple(sorted(tags))


# --- describing and dropping -------------------------------------------------------------------


async def describe(client: Client, request: DescribeTable) -> TableResponse:
    """The table, once it is neither being created nor changed."""
    table, ttl = await together(_settled(client, request.table), _time_to_live(client, request.table))
    return _response(table, ttl)


def _response(table: Payload, ttl: str | None) -> TableResponse:
    history = TableHistory(
        table.get("TableId") or "", table.get("CreationDateTime") or 0.0, stream_label=table.get("LatestStreamLabel")
    )
    counts = (table.get("ItemCount") or 0, table.get("TableSizeBytes") or 0)
    return TableResponse(described(table, ttl), *counts, history=history, has_all_changes=_has_all_changes(table))


def _has_all_changes(table: Payload) -> bool:
    """Whether the stream, which keeps changes for a day, has all changes of the table.

    It has if the table is younger than a day, and its stream as old as the table. It also has if the table was empty
    when the service last counted its items, about every six hours, and the stream is older than that count.
    """
    created, label = table.get("CreationDateTime") or 0.0, table.get("LatestStreamLabel")
    try:
        switched_on = datetime.fromisoformat(label or "").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return False
    now = time.time()
    if now - created < CHANGES_KEPT and switched_on - created < _AT_ONCE:
        return True
    return not table.get("ItemCount") and now - switched_on > _COUNTED_AGAIN


async def drop(client: Client, request: DropTable) -> TableResponse:
    found = await _settled(client, request.table)
    attempts = client.attempts()
    with suppress(TableNotFound):
        try:
            await client.table_call(target("DeleteTable"), {"TableName": request.table}, attempts)
        except TableBusy:
            # It is already being dropped, perhaps by an attempt whose answer was lost.
            if not attempts.in_doubt:
                raise
        await _settled(client, request.table)
    return _response(found, None)


async def list_tables(client: Client, request: ListTables) -> TablesResponse:
    call = partial(client.table_call, target("ListTables"))
    names: list[str] = []
    async for answer in pages(call, {}, "LastEvaluatedTableName", "ExclusiveStartTableName"):
        names += answer["TableNames"]
    return TablesResponse(tuple(sorted(names)))


async def table_description(client: Client, name: str) -> Payload:
    def read(answer: Payload) -> Payload:
        table: Payload = answer["Table"]
        if table["TableName"] != name:
            raise Misshapen("Table", f"is of another name than {name}")
        return table

    found: Payload = await client.table_call(target("DescribeTable"), {"TableName": name}, None, read)
    return found


async def _settled(client: Client, name: str, *, is_new: bool = False) -> Payload:
    """Waits until a table is not being created, changed or dropped; raises `TableNotFound` if it does not exist.

    DescribeTable is eventually consistent, so it may not find a table that `is_new` yet.
    """
    now = asyncio.get_running_loop().time
    started = now()
    pause = _FIRST_LOOK
    status = "creating"
    while True:
        taken = now() - started
        try:
            table = await table_description(client, name)
        except TableNotFound:
            if not is_new or taken > _UNTIL_KNOWN:
                raise
        else:
            states = [table.get("TableStatus"), *(index.get("IndexStatus") for index in _global_indexes(table))]
            status = next((each for state in states if (each := str(state).lower()) in _ON_THE_WAY), "")
            if not status:
                return table
        if taken > _PATIENCE:
            raise TableBusy(f"the table {name} is still {status} after {_PATIENCE:.0f} s; wait, and try again")
        await asyncio.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 2)


def _global_indexes(table: Payload) -> list[Payload]:
    return table.get("GlobalSecondaryIndexes") or []


async def _time_to_live(client: Client, name: str) -> str | None:
    try:
        answer = await client.table_call(target("DescribeTimeToLive"), {"TableName": name})
    except NotSupported:
        return None
    found = answer.get("TimeToLiveDescription") or {}
    return found.get("AttributeName") if found.get("TimeToLiveStatus") in ("ENABLED", "ENABLING") else None
