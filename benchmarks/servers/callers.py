"""boto3's client: loads the table of a server, checks its answers, and sends the requests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import boto3
from botocore.config import Config

from benchmarks.servers.asked import (
    BATCH,
    DEFINITION,
    EDGES,
    OPERATIONS,
    REGION,
    TABLE,
    Operation,
    edge_item,
    parameters,
    person_item,
    person_key,
    stored,
    written,
)


def client(endpoint: str | None = None) -> Any:
    """A client with default settings, except one attempt per call, so that hidden retries do not count."""
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="AKIAIOSFODNN7EXAMPLE",
        aws_secret_access_key="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        config=Config(retries={"total_max_attempts": 1}),
    )


def load(dynamodb: Any) -> None:
    dynamodb.create_table(**DEFINITION)
    dynamodb.get_waiter("table_exists").wait(TableName=TABLE, WaiterConfig={"Delay": 1})
    items = stored()
    for start in range(0, len(items), BATCH):
        left = dynamodb.batch_write_item(**written(items[start : start + BATCH]))["UnprocessedItems"]
        assert not left, left


def check(dynamodb: Any) -> None:
    """Checks that the server answers each operation with what was stored."""
    answers = {each.name: getattr(dynamodb, each.method)(**parameters(each.name, 7)) for each in OPERATIONS}
    assert answers["get"]["Item"] == person_item(7, -1), answers["get"]
    assert answers["query"]["Items"] == [edge_item(7, number) for number in range(EDGES)], answers["query"]
    first = 7 * BATCH
    for number, visits in ((7, 7), (first, first)):
        found = dynamodb.get_item(TableName=TABLE, Key=person_key(number))["Item"]
        assert found == person_item(number, visits), found


def all_calls(operation: Operation) -> Iterator[dict[str, Any]]:
    """All calls, endlessly. A later turn continues with the next call, so that every write changes its item."""
    return cycle([parameters(operation.name, number) for number in range(operation.calls)])


def ask(dynamodb: Any, operation: Operation, calls: Iterator[dict[str, Any]], seconds: float) -> tuple[int, float]:
    """Sends requests for this many seconds; returns the number of answers and the time they took."""
    method = getattr(dynamodb, operation.method)
    answered = 0
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        method(**next(calls))
        answered += 1
    return answered, time.perf_counter() - begin
