"""Spans and the metric of requests, as OpenTelemetry's own SDK gets them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from adjoin import AlreadyExists, AsyncGraph, Graph
from adjoin.otel import Tracing
from tests.models import SCHOOL, Course, Enrollment, Student
from tests.servers.open import Stores


class Traced:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.spans = TracerProvider()
        self.spans.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.metrics = MeterProvider([self.reader])
        self.tracing = Tracing(self.spans, self.metrics)

    @property
    def found(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()


@pytest.fixture
def traced() -> Iterator[Traced]:
    traced = Traced()
    yield traced
    traced.spans.shutdown()
    traced.metrics.shutdown()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def course(id: str) -> Course:
    return Course(id=id, name="a secret", credits=1)


def test_spans_of_reads_and_writes(traced: Traced) -> None:
    g = Graph(":memory:", SCHOOL)
    with traced.tracing:
        g.put_many([Student(id="S1", name="Ann"), course("C77")])
        list(g.into("C77", Enrollment).limit(3))
    g.put(course("C78"))
    batch, query = traced.found
    assert (batch.name, query.name) == ("BatchWriteItem adjoin", "Query adjoin")
    assert batch.kind is SpanKind.CLIENT
    assert batch.status.status_code is StatusCode.UNSET
    found = attributes(batch)
    assert [json.loads(each) for each in found.pop("aws.dynamodb.consumed_capacity")] == [
        {"TableName": "adjoin", "CapacityUnits": 2.0, "Table": {"CapacityUnits": 2.0}, "Indexes": {}}
    ]
    assert found == {
        "db.system.name": "sqlite",
        "db.operation.name": "BatchWriteItem",
        "db.collection.name": "adjoin",
        "db.operation.batch.size": 2,
        "aws.dynamodb.table_names": ("adjoin",),
    }
    found = attributes(query)
    assert [json.loads(each)["Indexes"] for each in found.pop("aws.dynamodb.consumed_capacity")] == [
        {"GSI1": {"CapacityUnits": 0.5}}
    ]
    assert found == {
        "db.system.name": "sqlite",
        "db.operation.name": "Query",
        "db.collection.name": "adjoin",
        "aws.dynamodb.table_names": ("adjoin",),
        "aws.dynamodb.index_name": "GSI1",
        "aws.dynamodb.consistent_read": False,
        "aws.dynamodb.limit": 3,
        "aws.dynamodb.scan_forward": True,
        "aws.dynamodb.count": 0,
        "aws.dynamodb.scanned_count": 0,
    }
    assert (batch.start_time or 0) <= (batch.end_time or 0) <= (query.end_time or 0)


def test_a_span_of_a_failure_has_the_error_without_keys(traced: Traced) -> None:
    g = Graph(":memory:", SCHOOL)
    g.add(course("C77"))
    with traced.tracing, pytest.raises(AlreadyExists):
        g.add(course("C77"))
    (span,) = traced.found
    assert span.status.status_code is StatusCode.ERROR
    assert attributes(span)["error.type"] == "ConditionFailed"
    assert "C77" not in span.to_json()
    assert "secret" not in span.to_json()


def test_segments_of_a_scan(traced: Traced) -> None:
    g = Graph(":memory:", SCHOOL)
    with traced.tracing:
        list(g.scan(Course, segments=2))
    found = [attributes(span) for span in traced.found]
    assert {(each["aws.dynamodb.segment"], each["aws.dynamodb.total_segments"]) for each in found} == {(0, 2), (1, 2)}


@pytest.mark.parametrize("is_async", [False, True])
def test_spans_belong_to_the_current_span(traced: Traced, is_async: bool) -> None:
    tracer = traced.spans.get_tracer("a program")

    async def asynchronous() -> None:
        async with AsyncGraph(":memory:", SCHOOL) as g:
            with traced.tracing, tracer.start_as_current_span("a route"):
                await asyncio.gather(g.get(Course, "1"), g.get(Course, "2"))

    if is_async:
        asyncio.run(asynchronous())
    else:
        with Graph(":memory:", SCHOOL) as g, traced.tracing, tracer.start_as_current_span("a route"):
            g.get(Course, "1")
            g.get(Course, "2")
    *gets, route = traced.found
    assert [span.name for span in gets] == ["GetItem adjoin"] * 2
    assert {span.parent and span.parent.span_id for span in gets} == {route.context.span_id}


def test_on_dynamodb_for_the_whole_process(traced: Traced, servers: Stores) -> None:
    traced.tracing.start()
    try:
        with Graph(f"dynamodb://traced?endpoint={servers.address('ministack')}", SCHOOL) as g:
            g.create_table()
            g.put(course("C1"))
            g.drop_table()
    finally:
        traced.tracing.stop()
    names = [span.name for span in traced.found]
    assert {"CreateTable traced", "PutItem traced", "DeleteTable traced"} <= {*names}
    assert {attributes(span)["db.system.name"] for span in traced.found} == {"aws.dynamodb"}
    address = urlsplit(servers.address("ministack"))
    places = {(attributes(span)["server.address"], attributes(span)["server.port"]) for span in traced.found}
    assert places == {(address.hostname, address.port)}


def test_the_duration_of_operations(traced: Traced) -> None:
    g = Graph(":memory:", SCHOOL)
    with traced.tracing:
        g.put(course("C1"))
        g.put(course("C2"))
    data = traced.reader.get_metrics_data()
    assert data is not None
    (metric,) = data.resource_metrics[0].scope_metrics[0].metrics
    assert (metric.name, metric.unit) == ("db.client.operation.duration", "s")
    (point,) = metric.data.data_points
    assert getattr(point, "count", None) == 2
    assert dict(point.attributes or {}) == {
        "db.system.name": "sqlite",
        "db.operation.name": "PutItem",
        "db.collection.name": "adjoin",
    }


def test_without_the_extra_the_error_names_it() -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from adjoin import MissingExtra\n"
        "try:\n    import adjoin.otel\nexcept MissingExtra as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'adjoin[otel]'" in done.stdout
