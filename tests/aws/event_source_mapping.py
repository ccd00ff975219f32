"""What Lambda does with a stream, as its documentation says: batches by shard, and what failed again.

Source: the Lambda developer guide, "Using AWS Lambda with Amazon DynamoDB", and there "Configuring partial batch
response with DynamoDB and Lambda": a response with failures makes Lambda go on from the lowest sequence number in
it; an empty list, or none, is a success; an exception, or an identifier that is none, makes the whole batch come again,
in halves where the mapping bisects.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

from adjoin import AsyncGraph, Graph
from adjoin.requests import ItemChange, ReadChanges
from adjoin.stores.interface import Store

Function = Callable[[Any, Any], Any]
SHARDS = 3


class Context:
    """What a function is told about itself; time passes with each look at the clock."""

    function_name = "maintain"
    function_version = "$LATEST"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:maintain"
    aws_request_id = "1cf1c9f2-0b1f-4f1e-8bfb-3d0f4f1e8bfb"
    log_group_name = log_stream_name = "maintain"

    def __init__(self, milliseconds: int = 60_000, each_look: int = 0) -> None:
        self.left, self._each_look = milliseconds, each_look

    def get_remaining_time_in_millis(self) -> int:
        self.left -= self._each_look
        return self.left


def record_of(change: ItemChange, number: int, table: str = "adjoin") -> dict[str, Any]:
    images = {
        # No order is promised.
        "Keys": dict(reversed(change.key.items())),
        "ApproximateCreationDateTime": change.at,
        "SequenceNumber": f"{number:021}",
        "SizeBytes": 59,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    }
    images |= {"NewImage": change.new} if change.new is not None else {}
    images |= {"OldImage": change.old} if change.old is not None else {}
    record = {
        "eventID": f"{number:032x}",
        "eventName": "INSERT" if change.old is None else "REMOVE" if change.new is None else "MODIFY",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "eu-west-1",
        "dynamodb": images,
        "eventSourceARN": f"arn:aws:dynamodb:eu-west-1:123456789012:table/{table}/stream/2026-01-01T00:00:00.000",
    }
    if change.expired:
        record["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    read: dict[str, Any] = json.loads(json.dumps(record))
    return read


class Table:
    """The stream of a graph's table, as records."""

    def __init__(self, graph: Graph | AsyncGraph, store: Store) -> None:
        self._table, self._store = graph._layout.table, store
        self._position: str | None = None
        self._count = 0

    def records(self) -> Iterator[dict[str, Any]]:
        """Those that came since the last call, adjoin's own among them."""
        while True:
            response: Any
            (response,) = self._store.execute((ReadChanges(self._table, self._position),))
            self._position = response.next
            for change in response.changes:
                self._count += 1
                yield record_of(change, self._count, self._table)
            if not response.changes:
                return


def event_of(graph: Graph | AsyncGraph, store: Store | None = None) -> dict[str, Any]:
    """Everything that ever happened, in one event."""
    if store is None:
        assert isinstance(graph, Graph)
        store = graph._store
    return {"Records": list(Table(graph, store).records())}


class EventSourceMapping:
    """Several shards, each read in order from where the function succeeded."""

    def __init__(self, table: Table, function: Function, chance: random.Random, most: int = 20) -> None:
        self._table, self._function, self._chance, self._most = table, function, chance, most
        self._shards: list[list[dict[str, Any]]] = [[] for _ in range(SHARDS)]
        self.invocations = self.failures = 0

    def poll(self) -> bool:
        """Invokes the function once for each shard that has something; says whether there was anything."""
        for record in self._table.records():
            text = record["dynamodb"]["Keys"]
            self._shards[crc32(json.dumps(text, sort_keys=True).encode()) % SHARDS].append(record)
        waiting = [shard for shard in self._shards if shard]
        for shard in waiting:
            self._invoke(shard)
        return bool(waiting)

    def _invoke(self, shard: list[dict[str, Any]]) -> None:
        batch = shard[: self._chance.randrange(1, self._most)]
        self.invocations += 1
        try:
            answer = self._function({"Records": batch}, Context())
        except Exception:
            self.failures += 1
            return
        failed = [each["itemIdentifier"] for each in answer["batchItemFailures"]]
        self.failures += bool(failed)
        numbers = [record["dynamodb"]["SequenceNumber"] for record in batch]
        done = min((numbers.index(each) for each in failed), default=len(batch))
        if done and self._chance.random() < 0.1:
            # Delivery is at least once.
            done = self._chance.randrange(done)
        del shard[:done]

    def drain(self) -> None:
        while self.poll():
            assert self.invocations < 100_000, "it goes round in circles"
