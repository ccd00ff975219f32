"""A server that speaks the Streams API over HTTP as the service's reference documents it, on a clock of its own.

It models what a small emulator has not: several shards that split and roll over while they are read,
listings in pages, out of order or late, records and shards that are trimmed, answers without records
before records, iterators that expire, streams that are replaced, and refusals.

Sources: the API reference of Amazon DynamoDB Streams (DescribeStream, GetShardIterator, GetRecords) and
the developer guide, "Change data capture for DynamoDB Streams".
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from adjoin.values import Item

MINUTE, HOUR = 60.0, 3600.0
KEPT = 24 * HOUR
ITERATOR_LIFE = 15 * MINUTE
KEYS = 16
"""Items are told by a number below this; a shard has the changes of a range of them."""

Json = dict[str, Any]


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Refused(Exception):
    def __init__(self, code: str, message: str = "", status: int = 400) -> None:
        super().__init__(code)
        self.code, self.message, self.status = code, message, status


@dataclass
class Record:
    number: int
    at: float
    item: int
    body: Json


@dataclass
class Shard:
    id: str
    parent: str | None
    items: range
    born: float
    first: int
    last: int | None = None
    closed: float | None = None
    records: list[Record] = field(default_factory=list)
    trimmed: int = 0
    """The highest number of a record that was in it and is not any more."""


class StreamService:
    """One table, `T`, with a stream. `stretch` is how many seconds of a shard one answer covers."""

    def __init__(self, clock: Clock, shards: int = 1, *, stretch: float = 3 * HOUR, strict: bool = True) -> None:
        self.clock = clock
        self.stretch = stretch
        self.strict = strict
        """Whether a number that was trimmed is refused although nothing that follows it was."""
        self.page = 100
        self.backwards = False
        self.view = "NEW_AND_OLD_IMAGES"
        self.enabled = True
        self.hidden: set[str] = set()
        self.refusals: dict[str, list[Refused]] = defaultdict(list)
        self.calls: list[tuple[str, Json]] = []
        self.items: dict[int, Item] = {}
        self.written: list[Record] = []
        self._lock = threading.Lock()
        self._number = 0
        self._generation = 0
        self._trim_point = 0
        self._numbers: list[tuple[float, int]] = []
        self.enable(shards)

    # --- what happens to a table -------------------------------------------------------------------

    def enable(self, shards: int = 1) -> None:
        """A new stream with no changes, in place of any that there was."""
        self.created = self.clock()
        self.label = datetime.fromtimestamp(self.created + self._next() / 1000, UTC).isoformat(timespec="milliseconds")
        self.arn = f"arn:aws:dynamodb:us-east-1:000000000000:table/T/stream/{self.label}"
        self.shards: dict[str, Shard] = {}
        step = KEYS // shards
        for start in range(0, step * shards, step):
            self._open(None, range(start, start + step if start < step * (shards - 1) else KEYS))

    def _next(self) -> int:
        self._number += 3
        self._numbers.append((self.clock(), self._number))
        return self._number

    def _open(self, parent: str | None, items: range) -> Shard:
        first = self._next()
        shard = Shard(f"shardId-{int(self.clock() * 1000):020d}-{first:08x}", parent, items, self.clock(), first)
        self.shards[shard.id] = shard
        return shard

    @property
    def open_shards(self) -> list[Shard]:
        return [shard for shard in self.shards.values() if shard.closed is None]

    def put(self, item: int, value: str = "", *, expires: bool = False) -> int | None:
        """Writes an item, or removes it where the value is empty; answers the number of the change."""
        old = self.items.pop(item, None)
        key = {"PK": {"S": f"item{item}"}, "SK": {"S": "#"}}
        new: Item | None = {**key, "v": {"S": value}} if value else None
        if new is not None:
            self.items[item] = new
        if old == new:
            return None
        (shard,) = (shard for shard in self.open_shards if item in shard.items)
        number = self._next()
        change: Json = {
            "ApproximateCreationDateTime": float(int(self.clock())),
            "Keys": key,
            "SequenceNumber": shown(number),
            "SizeBytes": 99,
            "StreamViewType": self.view,
        }
        change |= {name: image for name, image in (("OldImage", old), ("NewImage", new)) if image is not None}
        body: Json = {
            "eventID": f"{number:032x}",
            "eventName": "INSERT" if old is None else "REMOVE" if new is None else "MODIFY",
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": "us-east-1",
            "dynamodb": change,
        }
        if expires:
            body["userIdentity"] = {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}
        record = Record(number, self.clock(), item, body)
        shard.records.append(record)
        self.written.append(record)
        return number

    def split(self, shard: Shard, ways: int = 2) -> list[Shard]:
        """Closes a shard; its children have its items in equal parts."""
        shard.closed = self.clock()
        shard.last = max(shard.first, shard.trimmed, *(record.number for record in shard.records[-1:]))
        step = max(1, len(shard.items) // ways)
        starts = list(range(shard.items.start, shard.items.stop, step))[:ways]
        stops = [*starts[1:], shard.items.stop]
        return [self._open(shard.id, range(*part)) for part in zip(starts, stops, strict=True)]

    def trim(self) -> bool:
        """Removes what is older than a day, and shards with nothing younger; says whether there was anything."""
        horizon = self.clock() - KEPT
        at = bisect_right(self._numbers, (horizon, 0))
        self._trim_point = self._numbers[at - 1][1] if at else 0
        found = False
        for shard in list(self.shards.values()):
            gone = [record for record in shard.records if record.at < horizon]
            if gone:
                shard.trimmed = gone[-1].number
                del shard.records[: len(gone)]
                found = True
            if shard.closed is not None and shard.closed < horizon:
                del self.shards[shard.id]
                found = True
        return found

    def expire_iterators(self) -> None:
        self._generation += 1

    def refuse(self, operation: str, code: str, times: int = 1, status: int = 400) -> None:
        self.refusals[operation] += [Refused(code, "refused on purpose", status)] * times

    def kept(self) -> set[int]:
        return {record.number for shard in self.shards.values() for record in shard.records}

    def count(self, operation: str) -> int:
        return sum(each == operation for each, _ in self.calls)

    # --- what is asked of it -----------------------------------------------------------------------

    def answer(self, target: str, payload: Json) -> tuple[int, Json]:
        operation = target.partition(".")[2]
        with self._lock:
            self.calls.append((operation, payload))
            try:
                if self.refusals[operation]:
                    raise self.refusals[operation].pop(0)
                return 200, self._OPERATIONS[target](self, payload)
            except Refused as refused:
                kind = f"com.amazonaws.dynamodb.v20120810#{refused.code}"
                return refused.status, {"__type": kind, "message": refused.message}

    def _describe_table(self, payload: Json) -> Json:
        if payload["TableName"] != "T":
            raise Refused("ResourceNotFoundException", "Requested resource not found: Table: not found")
        table: Json = {
            "TableName": "T",
            "TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/T",
            "TableStatus": "ACTIVE",
            "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("PK", "SK")],
            "KeySchema": [{"AttributeName": "SK", "KeyType": "RANGE"}, {"AttributeName": "PK", "KeyType": "HASH"}],
            "LatestStreamArn": self.arn,
            "LatestStreamLabel": self.label,
        }
        if self.enabled:
            table["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": self.view}
        return {"Table": table}

    def _describe_stream(self, payload: Json) -> Json:
        self._check_stream(payload["StreamArn"])
        listed = [shard for shard in self.shards.values() if shard.id not in self.hidden]
        if self.backwards:
            listed.reverse()
        after = payload.get("ExclusiveStartShardId")
        start = 0 if after is None else [shard.id for shard in listed].index(after) + 1
        some = listed[start : start + min(self.page, payload.get("Limit", 100))]
        description: Json = {
            "StreamArn": self.arn,
            "StreamLabel": self.label,
            "StreamStatus": "ENABLED",
            "StreamViewType": self.view,
            "CreationRequestDateTime": self.created,
            "TableName": "T",
            "Shards": [_described(shard) for shard in some],
        }
        if start + len(some) < len(listed):
            description["LastEvaluatedShardId"] = some[-1].id
        return {"StreamDescription": description}

    def _get_shard_iterator(self, payload: Json) -> Json:
        self._check_stream(payload["StreamArn"])
        shard = self._shard(payload["ShardId"])
        kind = payload["ShardIteratorType"]
        if kind == "TRIM_HORIZON":
            return self._iterator(shard, shard.trimmed, shard.born)
        if kind == "LATEST":
            return self._iterator(shard, self._number, self.clock())
        number = int(payload["SequenceNumber"]) - _LOWEST
        if not shard.first <= number <= (shard.last or self._number):
            raise Refused("ValidationException", "Invalid SequenceNumber")
        after = {"AFTER_SEQUENCE_NUMBER": number, "AT_SEQUENCE_NUMBER": number - 1}[kind]
        if after < shard.trimmed or (self.strict and number <= self._trim_point):
            raise Refused("TrimmedDataAccessException", "The data you are trying to access has been trimmed")
        return self._iterator(shard, after, self._time_of(number))

    def _get_records(self, payload: Json) -> Json:
        if not 1 <= payload.get("Limit", 1000) <= 1000:
            raise Refused("ValidationException", "limit")
        place = json.loads(payload["ShardIterator"])
        if self.clock() - place["issued"] > ITERATOR_LIFE or place["generation"] != self._generation:
            raise Refused("ExpiredIteratorException", "The provided iterator exceeds the maximum age allowed.")
        self._check_stream(place["arn"])
        shard = self._shard(place["shard"])
        if place["after"] < shard.trimmed:
            raise Refused("TrimmedDataAccessException", "The data you are trying to access has been trimmed")
        until = place["from"] + self.stretch
        found = [record for record in shard.records if record.number > place["after"] and record.at <= until]
        some = found[: payload.get("Limit", 1000)]
        after = some[-1].number if some else place["after"]
        answer: Json = {"Records": [record.body for record in some]}
        if len(some) < len(found):
            return answer | self._iterator(shard, after, place["from"], "NextShardIterator")
        if shard.closed is not None and shard.closed <= until:
            return answer
        return answer | self._iterator(shard, after, min(until, self.clock()), "NextShardIterator")

    def _iterator(self, shard: Shard, after: int, since: float, name: str = "ShardIterator") -> Json:
        place = {"arn": self.arn, "shard": shard.id, "after": after, "from": max(since, self.clock() - KEPT)}
        return {name: json.dumps(place | {"issued": self.clock(), "generation": self._generation})}

    def _check_stream(self, arn: str) -> None:
        if arn != self.arn:
            raise Refused("ResourceNotFoundException", f"Requested resource not found: Stream: {arn} not found")

    def _shard(self, name: str) -> Shard:
        if name not in self.shards:
            raise Refused("ResourceNotFoundException", "Requested resource not found: Shard does not exist")
        return self.shards[name]

    def _time_of(self, number: int) -> float:
        return next(at for at, each in self._numbers if each >= number)

    _OPERATIONS: dict[str, Callable[[StreamService, Json], Json]] = {
        "DynamoDB_20120810.DescribeTable": _describe_table,
        "DynamoDBStreams_20120810.DescribeStream": _describe_stream,
        "DynamoDBStreams_20120810.GetShardIterator": _get_shard_iterator,
        "DynamoDBStreams_20120810.GetRecords": _get_records,
    }


_LOWEST = 10**20
"""The service's numbers have 21 to 40 digits."""


def shown(number: int) -> str:
    return str(_LOWEST + number)


def _described(shard: Shard) -> Json:
    numbers = {"StartingSequenceNumber": shown(shard.first)}
    if shard.last is not None:
        numbers["EndingSequenceNumber"] = shown(shard.last)
    entry: Json = {"ShardId": shard.id, "SequenceNumberRange": numbers}
    return entry if shard.parent is None else {**entry, "ParentShardId": shard.parent}


class StreamServer(ThreadingHTTPServer):
    """Answers for one service after another."""

    service: StreamService
    daemon_threads = False
    request_queue_size = 128

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: StreamServer
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = self.server.service.answer(self.headers["X-Amz-Target"], payload)
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def stream_server() -> Iterator[StreamServer]:
    with StreamServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
