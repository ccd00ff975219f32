"""A Lambda function that keeps a graph's aggregates and copied fields up to date from the table's stream.

It does what `maintain` does, with the records that an event source mapping delivers. It returns a partial batch
response: the sequence number of the first record that could not be applied now. Lambda then delivers that record and
all later ones again. This does no harm, because nothing is computed from a record itself. A record that can never be
applied is set aside, in the table and in the log, and is not reported, so that no shard waits for it. An error about
the table or the function as a whole is raised: Lambda then delivers the whole batch again, and nothing is lost.

**The filter.** adjoin's own items (ledgers, ranks, index copies) are in the same stream. The function ignores them, but
every invocation costs money. A filter of Lambda can only compare how a key begins, so it lists the prefixes of the sort
keys of all classes that matter.

**Metrics** use CloudWatch's embedded metric format: a line of JSON in the function's log, from which CloudWatch makes
metrics. This calls no service and needs no permission except to write the log. Source: "Specification: Embedded metric
format" in the user guide of Amazon CloudWatch.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from orjson import dumps

from adjoin.async_graph import AsyncGraph
from adjoin.entity_types import EntityType, NodeType
from adjoin.errors import InvalidItem, InvalidValue, shown
from adjoin.graph import Graph
from adjoin.layouts.adjacency_list import bound_layout
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Layout
from adjoin.plans.maintenance.isolating import TOGETHER, Outcome, apply_each
from adjoin.plans.maintenance.report import MaintenanceReport, Tally, Unapplied
from adjoin.requests import ItemChange, Plan
from adjoin.reserved import tenant_prefix
from adjoin.stores.records import IMAGES, changed_at, checked_change

# --- the filter ----------------------------------------------------------------------------------


_ANYBODY = "anybody"
_MOST = 4096
"""Lambda accepts patterns of at most this many characters."""


def stream_filter(
    models: Iterable[type[Any]], layout: Layout | None = None, tenant: str | None = None
) -> dict[str, Any] | None:
    """The pattern, to be written as JSON. None if keys cannot distinguish the records, so that all must pass."""
    bound = bound_layout(models, layout, None, tenant)
    sort = bound.definition.sort
    if sort is None or bound.why_no_own_items is not None:
        return None
    watched = _watched(bound)
    if tenant is None and any(_begins_with_tenant(bound, kind, sort.name) for kind in watched):
        # The function serves all tenants, and their names, which begin the keys, are not known here.
        return None
    beginnings = {bound.shape(kind).written[sort.name].partition("{")[0] for kind in watched}
    least = [
        each for each in sorted(beginnings) if not any(each != other and each.startswith(other) for other in beginnings)
    ]
    if not least or "" in least:
        return None
    pattern = {"dynamodb": {"Keys": {sort.name: {"S": [{"prefix": each} for each in least]}}}}
    return pattern if len(json.dumps(pattern)) <= _MOST else None


def _begins_with_tenant(layout: BoundLayout, kind: EntityType, attribute: str) -> bool:
    """Whether a key attribute of a class begins with the name of the tenant."""
    prefix = layout.tenant_lead + tenant_prefix(_ANYBODY)
    return layout.for_tenant(_ANYBODY).shape(kind).written[attribute].startswith(prefix)


def _watched(layout: BoundLayout) -> list[EntityType]:
    """The classes whose changes may need work: those in rules, in copied fields, and expiring nodes with edges."""
    groups = [kind for each in layout.rules.groups for kind in (each.edge, each.hop.near, each.hop.far)]
    copies = [kind for each in layout.rules.copies for kind in (each.edge, each.node)]
    expiring = [kind for edge in layout.schema.edges.values() for kind in (edge.source, edge.target) if kind.expires]
    watched = [*groups, *copies, *expiring]
    return [each for kind in watched for each in (kind.classes if isinstance(kind, NodeType) else (kind,))]


# --- metrics -----------------------------------------------------------------------------------


Metric: TypeAlias = tuple[int | float, str]
"""A value and its unit."""
TABLE = "Table"
"""The dimension of all metrics."""


def embedded_metrics(namespace: str, table: str, metrics: Mapping[str, Metric], now: float) -> str:
    """The log line with these metrics of a table."""
    directive = {
        "Namespace": namespace,
        "Dimensions": [[TABLE]],
        "Metrics": [{"Name": name, "Unit": unit} for name, (_, unit) in metrics.items()],
    }
    line = {
        "_aws": {"Timestamp": int(now * 1000), "CloudWatchMetrics": [directive]},
        TABLE: table,
        **{name: value for name, (value, _) in metrics.items()},
    }
    return dumps(line).decode()


# --- the function ------------------------------------------------------------------------------


AnyGraph: TypeAlias = Graph | AsyncGraph
Handler: TypeAlias = Callable[[Any, Any], dict[str, Any]]

RESERVE = 3.0
"""The function stops this many seconds before its timeout, or a quarter of its time if that is less."""
_NAMESPACE = re.compile(r"[A-Za-z0-9.\-_/:]{1,255}")
_log = logging.getLogger("adjoin.lambda")


def lambda_handler(
    graph: AnyGraph | Callable[[], AnyGraph], *, reserve: float = RESERVE, metrics: str | None = None
) -> Handler:
    """The whole function: `handler = lambda_handler(graph)`.

    `graph` is an open graph, or a function that opens one, which is called at the first event. A graph without a
    tenant applies the changes of all tenants. The handler accepts an event of a DynamoDB stream, plain or wrapped by
    aws-lambda-powertools. It stops `reserve` seconds before the function's timeout, and Lambda delivers the rest
    again. If `metrics` names a CloudWatch namespace, each event prints metrics in the embedded metric format.
    """
    if metrics is not None and not _NAMESPACE.fullmatch(metrics):
        raise InvalidValue(f"metrics= must be a namespace of up to 255 letters, digits and . - _ / :, got {metrics!r}")
    opened = _Opened(graph)

    def handler(event: Any, context: Any) -> dict[str, Any]:
        records = _records(event)
        has_time = _clock(context, reserve)
        outcome, report, oldest = opened.apply(records, has_time)
        _tell(report, records, outcome)
        if metrics is not None:
            values = _metrics(report, len(records) - outcome.done, oldest, time.time())
            print(embedded_metrics(metrics, opened.table, values, time.time()), flush=True)
        if outcome.done == len(records):
            return {"batchItemFailures": []}
        return {"batchItemFailures": [{"itemIdentifier": _identifier(records, outcome.done)}]}

    return handler


def record_handler(graph: AnyGraph | Callable[[], AnyGraph]) -> Callable[[Any], None]:
    """For the `BatchProcessor` of aws-lambda-powertools: applies one record, and raises if that fails now.

    Records cost more one by one than in a batch: each record of a node's edges then changes the node separately.
    """
    opened = _Opened(graph)

    def handler(record: Any) -> None:
        outcome, _, _ = opened.apply([_plain(record)], lambda: True)
        if outcome.error is not None:
            raise outcome.error

    return handler


class _Opened:
    """A graph that is opened when it is first needed, and kept for the lifetime of the function's process."""

    def __init__(self, graph: AnyGraph | Callable[[], AnyGraph]) -> None:
        if not isinstance(graph, Graph | AsyncGraph) and not callable(graph):
            raise InvalidValue(f"{shown(graph)} is not a graph; pass a Graph, or a function that opens one")
        self._given = graph
        self._graph: AnyGraph | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._together = TOGETHER
        """How many records are applied together. It shrinks when the time was over before any record was done."""

    @property
    def table(self) -> str:
        return self._open()._layout.table

    def apply(
        self, records: Sequence[Any], has_time: Callable[[], bool]
    ) -> tuple[Outcome, MaintenanceReport, float | None]:
        """How many records were applied, what was done, and the time of the oldest record."""
        graph, tally = self._open(), Tally()
        layout = graph._layout
        names = [key.name for key in layout.definition.keys]
        # A graph in a file has no stream on AWS, so the name of the table in the record is not checked.
        table = None if graph._store.creates_tables else layout.table
        _check_source(records, table)
        changes = [_change(record, names, table) for record in records]
        outcome = self._run(graph, apply_each(layout, changes, tally, has_time, self._together))
        # Lambda delivers the same records again. If not even one group fits into the time, only smaller groups get on.
        if outcome.done == len(records):
            self._together = min(TOGETHER, self._together * 2)
        elif outcome.done == 0 and outcome.error is None:
            self._together = max(1, self._together // 4)
        return outcome, tally.report(), min((each.at for each in changes if each.at), default=None)

    def _run(self, graph: AnyGraph, plan: Plan[Outcome]) -> Outcome:
        if isinstance(graph, Graph):
            return graph._run(plan)
        # Connections belong to the event loop on which they were opened, so all events use the same loop.
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            weakref.finalize(self, self._loop.close)
        return self._loop.run_until_complete(graph._run(plan))

    def _open(self) -> AnyGraph:
        if self._graph is None:
            given = self._given
            self._graph = given if isinstance(given, Graph | AsyncGraph) else given()
        return self._graph


# --- the event ---------------------------------------------------------------------------------


def _records(event: Any) -> list[Any]:
    plain = _plain(event)
    records = plain.get("Records") if isinstance(plain, Mapping) else None
    if not isinstance(records, list):
        raise InvalidValue(
            "the event is not of a DynamoDB stream: it has no 'Records'; invoke the function through an event source "
            "mapping on the table's stream"
        )
    return [_plain(record) for record in records]


def _plain(wrapped: Any) -> Any:
    """The plain event or record inside a class of aws-lambda-powertools."""
    return getattr(wrapped, "raw_event", wrapped)


def _check_source(records: Sequence[Any], table: str | None) -> None:
    """Refuses a stream of another table or view type: that is a mistake in the mapping, not of a single record."""
    plain = [record for record in records if isinstance(record, Mapping)]
    others = {named for record in plain if (named := _table_of(record))}
    if table is not None and others and table not in others:
        raise InvalidValue(f"{_other(min(others), table)}; correct the mapping")
    for record in plain:
        images = record.get("dynamodb")
        view = images.get("StreamViewType", IMAGES) if isinstance(images, Mapping) else IMAGES
        if view != IMAGES:
            raise InvalidValue(f"the stream has the view type {view}; disable it, and enable it with {IMAGES}")


def _table_of(record: Mapping[str, Any]) -> str:
    """The table whose stream a record comes from; empty if the record does not say."""
    return str(record.get("eventSourceARN") or "").partition(":table/")[2].partition("/")[0]


def _other(named: str, table: str) -> str:
    return f"the record comes from the table {named}, and the graph's table is {table}"


def _change(record: Any, names: Sequence[str], table: str | None) -> ItemChange | Unapplied:
    try:
        change = checked_change(record, names)
        if table is not None and (_table_of(record) or table) != table:
            raise InvalidItem(_other(_table_of(record), table))
        return change
    except InvalidItem as problem:
        # A malformed record must not block the others of its shard.
        return _unapplied(record, str(problem))


def _unapplied(record: Any, reason: str) -> Unapplied:
    """The key, position and time of a malformed record, as far as they can be read."""
    whole = record if isinstance(record, Mapping) else {}
    images = whole.get("dynamodb")
    images = images if isinstance(images, Mapping) else {}
    keys = images.get("Keys")
    position = images.get("SequenceNumber") or whole.get("eventID") or repr(record)
    try:
        at = changed_at({"dynamodb": images})
    except InvalidItem:
        at = 0.0
    return Unapplied(dict(keys) if isinstance(keys, Mapping) else {}, reason, str(position), at)


# --- the response ------------------------------------------------------------------------------


def _clock(context: Any, reserve: float) -> Callable[[], bool]:
    """A function that says whether time is left; always true if the context does not say how much."""
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    if remaining is None:
        return lambda: True
    kept = min(reserve * 1000, remaining() / 4)
    return lambda: remaining() > kept


def _identifier(records: Sequence[Any], first: int) -> str:
    """The sequence number of a record, or of the last record before it that has one."""
    for record in reversed(records[: first + 1]):
        images = record.get("dynamodb") if isinstance(record, Mapping) else None
        number = images.get("SequenceNumber") if isinstance(images, Mapping) else None
        if isinstance(number, str) and number:
            return number
    # Lambda reads an empty identifier as "the whole batch failed".
    return ""


def _metrics(report: MaintenanceReport, retried: int, oldest: float | None, now: float) -> dict[str, Metric]:
    values: dict[str, Metric] = {
        "Changes": (report.changes, "Count"),
        "SetAside": (len(report.set_aside), "Count"),
        "Retried": (retried, "Count"),
    }
    if oldest is not None:
        values["Lag"] = (max(0, round((now - oldest) * 1000)), "Milliseconds")
    return values


def _tell(report: MaintenanceReport, records: Sequence[Any], outcome: Outcome) -> None:
    if outcome.done < len(records):
        why = "no time is left" if outcome.error is None else f"{type(outcome.error).__name__}: {outcome.error}"
        _log.error(
            "%d of %d records were not applied, from %s on, and will be delivered again: %s",
            len(records) - outcome.done,
            len(records),
            _identifier(records, outcome.done) or "the first one",
            why,
        )
    _log.info(
        "%d changes, %d nodes and %d edges brought up to date, %d set aside",
        report.changes,
        report.nodes,
        report.edges,
        len(report.set_aside),
    )
