"""The operations on streams. Each stream has one shard, with the changes that the store keeps.

A table has one current stream, and for one day also those that were switched off.

A sequence number is a position of the store. A shard iterator contains the stream, the position after which it
continues and the time of its creation, so the server does not have to remember iterators.
"""

from __future__ import annotations

import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from datetime import UTC, datetime
from hashlib import md5
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.errors import ChangesTrimmed, InvalidRequest, TableNotFound
from adjoin.requests import (
    ChangesResponse,
    DescribeTable,
    ItemChange,
    ListStreams,
    ReadChanges,
    Request,
    StreamsResponse,
    TableResponse,
)
from adjoin.server.operations.interface import (
    REGION,
    AnswerBody,
    Operation,
    Parameters,
    Refused,
    TableLookup,
    stream_arn,
    validation_fault,
)
from adjoin.server.operations.shapes import NAME, POSITIVE, Text, Whole, structure
from adjoin.stores.definitions import key_schema
from adjoin.tables import StreamView
from adjoin.units import MAX_CHANGES
from adjoin.values import Item, item_size

_MOST_STREAMS = 100
_LIFETIME = 900.0
"""Seconds for which a shard iterator is valid."""

_STREAM_ARN = Text(least=37, most=1024)
_SHARD = Text(least=28, most=65)

_ARN = re.compile(r"arn:[^:]+:dynamodb:[^:]*:\d*:table/([^/]+)/stream/(.+)")


def _no_stream(arn: str) -> Refused:
    return Refused("ResourceNotFoundException", f"Requested resource not found: Stream: {arn} not found")


def _table_of(arn: str, tables: TableLookup) -> str:
    """Returns the name of the table of a stream; raises if it does not exist."""
    parts = _ARN.fullmatch(arn)
    if parts is None:
        raise validation_fault(f"Invalid StreamArn: {arn}")
    try:
        return tables.definition(parts[1]).name
    except TableNotFound:
        raise _no_stream(arn) from None


# --- streams and shards ------------------------------------------------------------------------


def _list(parameters: Parameters, tables: TableLookup) -> Request:
    return ListStreams()


def _listed(parameters: Parameters, response: StreamsResponse, tables: TableLookup) -> AnswerBody:
    wanted, start = parameters.get("TableName"), parameters.get("ExclusiveStartStreamArn")
    limit = min(parameters.get("Limit", _MOST_STREAMS), _MOST_STREAMS)
    streams: list[dict[str, str]] = [
        {"StreamArn": stream_arn(each.table, each.label), "TableName": each.table, "StreamLabel": each.label}
        for each in response.streams
        if wanted in (None, each.table)
    ]
    streams.sort(key=lambda each: each["StreamArn"])
    if start is not None:
        streams = [each for each in streams if each["StreamArn"] > start]
    answer: AnswerBody = {"Streams": streams[:limit]}
    if len(streams) > limit:
        answer["LastEvaluatedStreamArn"] = streams[limit - 1]["StreamArn"]
    return answer


def _look(parameters: Parameters, tables: TableLookup) -> Request:
    return DescribeTable(_table_of(parameters["StreamArn"], tables))


@dataclass(frozen=True, slots=True)
class _Stream:
    """A stream of a table, with its only shard."""

    label: str
    view: StreamView
    after: str
    """The sequence number before the first one of the stream."""
    last: str
    """The newest sequence number, or `after` if the stream has none."""
    is_on: bool

    @property
    def shard(self) -> str:
        milliseconds = round(_began(self.label) * 1000)
        return f"shardId-{milliseconds:020d}-{md5(self.label.encode(), usedforsecurity=False).hexdigest()[:8]}"


def _stream(arn: str, response: TableResponse) -> _Stream:
    """Returns the stream with this ARN."""
    definition, history = response.definition, response.history
    label = arn.rpartition("/stream/")[2]
    # A stream that was switched off can be read for a day, with the view that it had.
    for closed in history.closed:
        if closed.label == label:
            return _Stream(label, closed.view, closed.after, closed.last, False)
    if not definition.stream or history.stream_label != label:
        raise _no_stream(arn)
    return _Stream(label, definition.stream_view, response.earliest or "0", response.latest or "0", True)


def _began(label: str) -> float:
    return datetime.fromisoformat(label).replace(tzinfo=UTC).timestamp()


def _described(parameters: Parameters, response: TableResponse, tables: TableLookup) -> AnswerBody:
    arn, definition = parameters["StreamArn"], response.definition
    stream = _stream(arn, response)
    first = _moved(stream.after, 1)
    numbers = {"StartingSequenceNumber": first}
    if not stream.is_on:
        numbers["EndingSequenceNumber"] = max(first, stream.last)
    shards = [{"ShardId": stream.shard, "SequenceNumberRange": numbers}]
    return {
        "StreamDescription": {
            "StreamArn": arn,
            "StreamLabel": stream.label,
            "StreamStatus": "ENABLED" if stream.is_on else "DISABLED",
            "StreamViewType": stream.view,
            "CreationRequestDateTime": _began(stream.label),
            "TableName": definition.name,
            "KeySchema": key_schema(definition),
            "Shards": [] if parameters.get("ExclusiveStartShardId") == stream.shard else shards,
        }
    }


_LIST_STREAMS = Operation(
    "ListStreams",
    structure(
        "ListStreamsInput",
        TableName=NAME,
        Limit=POSITIVE,
        ExclusiveStartStreamArn=_STREAM_ARN,
    ),
    _list,
    _listed,
)

_DESCRIBE_STREAM = Operation(
    "DescribeStream",
    structure(
        "DescribeStreamInput",
        "StreamArn",
        StreamArn=_STREAM_ARN,
        Limit=POSITIVE,
        ExclusiveStartShardId=_SHARD,
        ShardFilter=structure("ShardFilter", Type=Text(choices=("CHILD_SHARDS",)), ShardId=_SHARD),
    ),
    _look,
    _described,
)

# --- iterators ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Iterator:
    """A shard iterator: a position in a stream, and the time of its creation."""

    arn: str
    after: str
    given: float

    def __str__(self) -> str:
        rest = urlsafe_b64encode(f"{self.after} {self.given}".encode()).decode()
        return f"{self.arn}|1|{rest}"

    @classmethod
    def read(cls, text: str) -> Iterator:
        try:
            arn, _, rest = text.split("|")
            after, given = urlsafe_b64decode(rest).decode().split(" ")
            return cls(arn, after, float(given))
        except (ValueError, NotBase64):
            raise validation_fault("Invalid ShardIterator") from None


def _moved(number: str, by: int) -> str:
    """Returns the sequence number `by` changes later."""
    return f"{int(number) + by:021d}"


def _iterator(parameters: Parameters, response: TableResponse, tables: TableLookup) -> AnswerBody:
    arn, shard = parameters["StreamArn"], parameters["ShardId"]
    stream = _stream(arn, response)
    if shard != stream.shard:
        raise Refused("ResourceNotFoundException", "Requested resource not found: Shard does not exist")
    number = parameters.get("SequenceNumber", "0")
    if not (number.isascii() and number.isdigit()):
        raise validation_fault(f"Invalid SequenceNumber: {number}")
    after = {
        "TRIM_HORIZON": stream.after,
        "LATEST": stream.last,
        "AT_SEQUENCE_NUMBER": _moved(number, -1),
        "AFTER_SEQUENCE_NUMBER": number,
    }[parameters["ShardIteratorType"]]
    # Changes before the stream began, or that were trimmed, are not there any more.
    if int(after) < int(stream.after):
        raise ChangesTrimmed(f"the stream begins behind {number}")
    return {"ShardIterator": str(Iterator(arn, after, time.time()))}


def _check_iterator(request: Parameters) -> None:
    kind = request["ShardIteratorType"]
    if kind.endswith("_SEQUENCE_NUMBER") and "SequenceNumber" not in request:
        raise InvalidRequest(f"SequenceNumber is required for ShardIteratorType {kind}")
    if not kind.endswith("_SEQUENCE_NUMBER") and "SequenceNumber" in request:
        raise InvalidRequest(f"SequenceNumber must not be specified for ShardIteratorType {kind}")


_GET_SHARD_ITERATOR = Operation(
    "GetShardIterator",
    structure(
        "GetShardIteratorInput",
        "StreamArn ShardId ShardIteratorType",
        StreamArn=_STREAM_ARN,
        ShardId=_SHARD,
        ShardIteratorType=Text(
            choices=("TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"),
        ),
        SequenceNumber=Text(least=21, most=40),
    ),
    _look,
    _iterator,
    rule=_check_iterator,
)

# --- records -----------------------------------------------------------------------------------


def _read(parameters: Parameters, tables: TableLookup) -> Request:
    iterator = Iterator.read(parameters["ShardIterator"])
    if time.time() - iterator.given > _LIFETIME:
        raise Refused(
            "ExpiredIteratorException",
            "The shard iterator has expired. It is only valid for 15 minutes after it was issued.",
        )
    label = iterator.arn.rpartition("/stream/")[2]
    return ReadChanges(_table_of(iterator.arn, tables), iterator.after, parameters.get("Limit", MAX_CHANGES), label)


def _records(parameters: Parameters, response: ChangesResponse, tables: TableLookup) -> AnswerBody:
    iterator = Iterator.read(parameters["ShardIterator"])
    closed, reached = response.closed, response.next or iterator.after
    view = tables.definition(_table_of(iterator.arn, tables)).stream_view if closed is None else closed.view
    answer: AnswerBody = {"Records": [_record(change, view, iterator.arn) for change in response.changes]}
    # Without a further iterator, a reader knows that the shard has come to its end.
    if closed is None or int(reached) < int(closed.last):
        answer["NextShardIterator"] = str(Iterator(iterator.arn, reached, time.time()))
    return answer


_IMAGES: dict[StreamView, tuple[str, ...]] = {
    "KEYS_ONLY": (),
    "NEW_IMAGE": ("NewImage",),
    "OLD_IMAGE": ("OldImage",),
    "NEW_AND_OLD_IMAGES": ("NewImage", "OldImage"),
}


def _record(change: ItemChange, view: StreamView, arn: str) -> AnswerBody:
    old, new = change.old, change.new
    images: dict[str, Item | None] = {"NewImage": new, "OldImage": old}
    shown = {name: image for name in _IMAGES[view] if (image := images[name]) is not None}
    kind = "INSERT" if old is None else "REMOVE" if new is None else "MODIFY"
    record: dict[str, Any] = {
        "eventID": md5(f"{arn} {change.position}".encode(), usedforsecurity=False).hexdigest(),
        "eventName": kind,
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": REGION,
        "dynamodb": {
            "ApproximateCreationDateTime": int(change.at),
            "Keys": change.key,
            **shown,
            "SequenceNumber": change.position,
            "SizeBytes": sum(map(item_size, (change.key, *shown.values()))),
            "StreamViewType": view,
        },
    }
    if change.expired:
        record["userIdentity"] = {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}
    return record


_GET_RECORDS = Operation(
    "GetRecords",
    structure(
        "GetRecordsInput",
        "ShardIterator",
        ShardIterator=Text(least=1, most=2048),
        Limit=Whole("Integer", least=1, most=MAX_CHANGES),
    ),
    _read,
    _records,
)

STREAM_OPERATIONS = (_LIST_STREAMS, _DESCRIBE_STREAM, _GET_SHARD_ITERATOR, _GET_RECORDS)
