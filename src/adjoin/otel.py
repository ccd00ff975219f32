"""Spans and a metric of requests for OpenTelemetry, by its semantic conventions for databases and for DynamoDB.

Needs the extra `otel`, which is OpenTelemetry's API alone: what becomes of spans is for the program to choose. Keys,
values and messages of errors are not part of spans, since those may contain values.

Sources: opentelemetry.io, "Semantic conventions for database client spans", "… for database client metrics" and "… for
AWS DynamoDB client operations".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from adjoin.errors import AdjoinError, MissingExtra
from adjoin.requests import Consumed, Get, PageResponse, Query, Request, Response, Scan
from adjoin.watching import RequestOutline, Watch, WatchedRound

try:
    from opentelemetry.metrics import MeterProvider, get_meter
    from opentelemetry.trace import SpanKind, StatusCode, TracerProvider, get_tracer
except ModuleNotFoundError as missing:
    raise MissingExtra(f"tracing needs {missing.name}; install it with: pip install 'adjoin[otel]'") from missing

_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)
"""The limits in seconds that the conventions ask for."""


class Tracing(Watch):
    """Makes a span of each request, and measures how long it took: `Tracing().start()`, or `with Tracing(): ...`.

    The requests of a round run side by side, and only the whole round is timed: its spans have the same times, and if
    it fails, all have its error. Spans belong to the span that is current where the graph is called. Without providers,
    those of the process are used.
    """

    def __init__(
        self, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        super().__init__()
        self._tracer = get_tracer("adjoin", tracer_provider=tracer_provider)
        self._duration = get_meter("adjoin", meter_provider=meter_provider).create_histogram(
            "db.client.operation.duration",
            unit="s",
            description="Duration of database client operations.",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )

    def after(self, round: WatchedRound) -> None:
        begun = int(round.started * 1e9)
        seconds = round.seconds or 0.0
        answered = round.responses or (None,) * len(round.requests)
        for request, response, outline in zip(round.requests, answered, round.outlines, strict=True):
            common = _common(round, outline)
            span = self._tracer.start_span(
                " ".join((outline.operation, *outline.tables[:1])) if len(outline.tables) < 2 else outline.operation,
                kind=SpanKind.CLIENT,
                attributes={**common, **_asked(request, outline), **_answered(response)},
                start_time=begun,
            )
            if round.error is not None:
                span.set_status(StatusCode.ERROR)
                if isinstance(round.error, AdjoinError) and round.error.request_id is not None:
                    span.set_attribute("aws.request_id", round.error.request_id)
            span.end(begun + int(seconds * 1e9))
            self._duration.record(seconds, common)


def _common(round: WatchedRound, outline: RequestOutline) -> dict[str, Any]:
    """What spans and the metric have."""
    found: dict[str, Any] = {
        # Every store speaks DynamoDB's protocol, so one that does not say what it is counts as that.
        "db.system.name": round.system or "aws.dynamodb",
        "db.operation.name": outline.operation,
    }
    if round.server is not None:
        place = urlsplit(f"//{round.server}")
        found["server.address"] = place.hostname
        found |= {} if place.port is None else {"server.port": place.port}
    if len(outline.tables) == 1:
        found["db.collection.name"] = outline.tables[0]
    if round.error is not None:
        found["error.type"] = type(round.error).__name__
    return found


def _asked(request: Request, outline: RequestOutline) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if outline.tables:
        found["aws.dynamodb.table_names"] = outline.tables
    if outline.items is not None and outline.items > 1:
        found["db.operation.batch.size"] = outline.items
    if isinstance(request, Get | Query | Scan):
        found["aws.dynamodb.consistent_read"] = request.consistent
    if isinstance(request, Query | Scan):
        found |= {} if request.index is None else {"aws.dynamodb.index_name": request.index}
        found |= {} if request.limit is None else {"aws.dynamodb.limit": request.limit}
    if isinstance(request, Query):
        found["aws.dynamodb.scan_forward"] = request.forward
    if isinstance(request, Scan) and request.segment is not None:
        found["aws.dynamodb.segment"], found["aws.dynamodb.total_segments"] = request.segment
    return found


def _answered(response: Response | None) -> dict[str, Any]:
    if response is None:
        return {}
    found: dict[str, Any] = {}
    if response.consumed:
        found["aws.dynamodb.consumed_capacity"] = _capacity(response.consumed)
    if isinstance(response, PageResponse):
        found |= {"aws.dynamodb.count": response.count, "aws.dynamodb.scanned_count": response.scanned}
    return found


def _capacity(consumed: Sequence[Consumed]) -> list[str]:
    """What a response consumed, as JSON of one ConsumedCapacity per table."""
    tables: dict[str, dict[str | None, float]] = {}
    for row in consumed:
        of_table = tables.setdefault(row.table, {})
        of_table[row.index] = of_table.get(row.index, 0.0) + row.read + row.write
    return [
        json.dumps(
            {
                "TableName": table,
                "CapacityUnits": sum(units.values()),
                "Table": {"CapacityUnits": units.get(None, 0.0)},
                # Global and local indexes are not told apart in what a store reports.
                "Indexes": {index: {"CapacityUnits": number} for index, number in units.items() if index is not None},
            }
        )
        for table, units in tables.items()
    ]
