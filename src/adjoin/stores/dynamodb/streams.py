"""The change stream of a table, read from DynamoDB Streams shard by shard.

An item's changes lie in one shard, or in a shard and its children: a shard is read only when its parent
is read to its end. A position is the stream's name and, for each shard that was begun and is still
listed, the last sequence number that was read, or that it is finished; it can be resumed anywhere by
anybody. Changes of different items have no order between them beyond that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjoin.errors import ChangesTrimmed, InvalidRequest, TableNotFound
from adjoin.requests import ChangesResponse, ItemChange, ReadChanges
from adjoin.stores.dynamodb.client import Client, together
from adjoin.stores.dynamodb.faults import IteratorExpired
from adjoin.stores.dynamodb.lifecycle import table_description
from adjoin.stores.dynamodb.protocol import Payload
from adjoin.units import MAX_CHANGES
from adjoin.values import Item

FINISHED = "*"
_LOOKS, _MORE_LOOKS = 12, 2
"""An open shard may answer with nothing although more follows, since an answer covers a stretch of time; so
often it is asked before it counts as read, from an iterator that is new, and from one that was there before."""


def _target(operation: str) -> str:
    return f"DynamoDBStreams_20120810.{operation}"


# --- positions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Position:
    """The stream by its label (the time it was enabled), and how far each shard was read."""

    label: str
    read: Mapping[str, str]

    def __str__(self) -> str:
        return "/".join((self.label, *(f"{shard}={number}" for shard, number in self.read.items())))


def parse_position(table: str, text: str) -> Position:
    label, *shards = text.split("/")
    read = dict(shard.partition("=")[::2] for shard in shards)
    if not label or not read or not all(number == FINISHED or number.isdigit() for number in read.values()):
        raise InvalidRequest(f"{text!r} is not a position of the change stream of {table}")
    return Position(label, read)


# --- shards ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shard:
    id: str
    parent: str | None


def ready(shards: Mapping[str, Shard], read: Mapping[str, str]) -> list[Shard]:
    """Shards that may be read now: not finished, and their parents are, or are gone."""
    return [
        shard
        for shard in shards.values()
        if read.get(shard.id) != FINISHED
        and (shard.parent is None or shard.parent not in shards or read.get(shard.parent) == FINISHED)
    ]


@dataclass(frozen=True, slots=True)
class Stream:
    """What a table's description says of its stream."""

    arn: str
    label: str
    key_names: tuple[str, ...]


class Streams:
    """Reads changes for one store; remembers iterators, which are only a short cut for a position."""

    def __init__(self) -> None:
        self._iterators: dict[tuple[str, str, str | None], str] = {}

    async def read(self, client: Client, request: ReadChanges) -> ChangesResponse:
        if not 1 <= request.limit <= MAX_CHANGES:
            raise InvalidRequest(f"a limit of {request.limit} changes is not within 1 to {MAX_CHANGES}")
        stream = await _stream(client, request.table)
        read = _begun(request, stream)
        while True:
            shards = await _shards(client, stream.arn)
            if request.after is not None:
                _check_reach(request, shards, read)
            parents = {shard.parent for shard in shards.values()}
            read = {shard: number for shard, number in read.items() if shard in shards or shard in parents}
            candidates = ready(shards, read)
            pages = await together(*(self._page(client, stream, shard.id, read, request) for shard in candidates))
            changes: list[ItemChange] = []
            finished = False
            for shard, (records, is_end) in zip(candidates, pages, strict=True):
                room = request.limit - len(changes)
                for record in records[:room]:
                    read[shard.id] = record["dynamodb"]["SequenceNumber"]
                    changes.append(_change(record, stream, str(Position(stream.label, read))))
                if is_end and len(records) <= room:
                    read[shard.id] = FINISHED
                    finished = True
            if changes or not finished:
                return ChangesResponse(changes, str(Position(stream.label, read)) if read else request.after)

    async def _page(
        self, client: Client, stream: Stream, shard: str, read: Mapping[str, str], request: ReadChanges
    ) -> tuple[list[Payload], bool]:
        """Some records behind a place in a shard, and whether they end it."""
        place = (stream.arn, shard, read.get(shard))
        iterator = self._iterators.pop(place, None)
        looks = _LOOKS if iterator is None else _MORE_LOOKS
        records: list[Payload] = []
        while not records and looks:
            if iterator is None:
                iterator = await _iterator(client, stream, shard, read.get(shard), request)
            try:
                answer = await client.stream_call(
                    _target("GetRecords"), {"ShardIterator": iterator, "Limit": request.limit}
                )
            except IteratorExpired:
                iterator = None
                continue
            records, iterator = answer.get("Records") or [], answer.get("NextShardIterator")
            if iterator is None:
                return records, True
            looks -= 1
        last = records[-1]["dynamodb"]["SequenceNumber"] if records else read.get(shard)
        if iterator is not None:
            self._iterators[(stream.arn, shard, last)] = iterator
        return records, False


async def _stream(client: Client, name: str) -> Stream:
    table = await table_description(client, name)
    if not (table.get("StreamSpecification") or {}).get("StreamEnabled"):
        raise InvalidRequest(f"the table {name} keeps no changes; create it with a stream to read them")
    keys = sorted(table["KeySchema"], key=lambda entry: str(entry["KeyType"]))
    return Stream(table["LatestStreamArn"], table["LatestStreamLabel"], tuple(entry["AttributeName"] for entry in keys))


def _begun(request: ReadChanges, stream: Stream) -> dict[str, str]:
    if request.after is None:
        return {}
    position = parse_position(request.table, request.after)
    if position.label != stream.label:
        raise _trimmed(request, "its stream was replaced by another")
    return dict(position.read)


def _check_reach(request: ReadChanges, shards: Mapping[str, Shard], read: Mapping[str, str]) -> None:
    """Everything behind a position must still be there: what was begun, and what follows what was finished."""
    for shard, number in read.items():
        if number != FINISHED and shard not in shards:
            raise _trimmed(request, f"{shard} was not read to its end, and is gone")
    for each in shards.values():
        if each.id not in read and each.parent is not None and each.parent not in shards and each.parent not in read:
            raise _trimmed(request, f"{each.parent} was never read, and is gone")


async def _iterator(client: Client, stream: Stream, shard: str, after: str | None, request: ReadChanges) -> str:
    payload: Payload = {"StreamArn": stream.arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
    if after is not None:
        payload |= {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after}
    try:
        answer = await client.stream_call(_target("GetShardIterator"), payload)
    except (ChangesTrimmed, TableNotFound) as error:
        raise _trimmed(request, "the stream is kept for 24 hours") from error
    return str(answer["ShardIterator"])


async def _shards(client: Client, arn: str) -> dict[str, Shard]:
    """All shards that are kept, oldest first as the service lists them."""
    shards: dict[str, Shard] = {}
    payload: Payload = {"StreamArn": arn}
    while True:
        description = (await client.stream_call(_target("DescribeStream"), payload))["StreamDescription"]
        for each in description["Shards"]:
            shards[each["ShardId"]] = Shard(each["ShardId"], each.get("ParentShardId"))
        last = description.get("LastEvaluatedShardId")
        if last is None:
            return shards
        payload["ExclusiveStartShardId"] = last


def _change(record: Payload, stream: Stream, position: str) -> ItemChange:
    images: Any = record["dynamodb"]
    key: Item = {name: images["Keys"][name] for name in stream.key_names}
    by = record.get("userIdentity") or {}
    expired = (by.get("type") or by.get("Type")) == "Service"
    at = float(images.get("ApproximateCreationDateTime", 0.0))
    return ItemChange(position, at, key, images.get("OldImage"), images.get("NewImage"), expired)


def _trimmed(request: ReadChanges, reason: str) -> ChangesTrimmed:
    return ChangesTrimmed(
        f"the change stream of {request.table} does not hold what came after {request.after} (any more): {reason};"
        " read it from the beginning, and rebuild what was made from it"
    )
