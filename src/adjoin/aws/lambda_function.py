"""A Lambda function that keeps a graph's aggregates and copies true: the other side of an event source mapping.

It does what `maintain` does, with the changes that Lambda brings. Its answer is a partial batch response: the
sequence number of the first record that could not be applied now. Lambda brings that one and all behind it
again, which does no harm, because nothing is computed from a record itself. A record that can never be applied is
set aside, in the table and in the log, and is not reported, so that no shard waits for it. What is about the
table or the function as a whole is raised: then the whole batch comes again, and nothing is lost meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from adjoin.aws.embedded_metrics import Metric, embedded_metrics
from adjoin.errors import InvalidItem, InvalidValue, shown
from adjoin.graph import AsyncGraph, Graph
from adjoin.plans import Plan
from adjoin.plans.maintenance.asides import Unapplied
from adjoin.plans.maintenance.isolating import TOGETHER, Outcome, apply_each
from adjoin.plans.maintenance.report import MaintenanceReport, Tally
from adjoin.requests import ItemChange
from adjoin.stores.records import IMAGES, changed_at, checked_change

AnyGraph: TypeAlias = Graph | AsyncGraph
Handler: TypeAlias = Callable[[Any, Any], dict[str, Any]]

RESERVE = 3.0
"""Seconds that are left to a function when it stops, or a quarter of its time where that is less."""
_NAMESPACE = re.compile(r"[A-Za-z0-9.\-_/:]{1,255}")
_log = logging.getLogger("adjoin.lambda")


def lambda_handler(
    graph: AnyGraph | Callable[[], AnyGraph], *, reserve: float = RESERVE, metrics: str | None = None
) -> Handler:
    """The whole function: `handler = lambda_handler(graph)`.

    `graph` is opened already, or a function that opens it, which is called for the first event. Without a tenant, it
    applies the changes of all tenants. The handler takes an event of a DynamoDB stream, as it comes or as
    aws-lambda-powertools wraps it. It stops `reserve` seconds before the function's time is over, and lets the rest
    come again. `metrics` is a namespace of CloudWatch: then each event prints what was done, in the embedded metric
    format.
    """
    if metrics is not None and not _NAMESPACE.fullmatch(metrics):
        raise InvalidValue(f"{metrics!r} cannot be a namespace of metrics; use up to 255 letters, digits and . - _ / :")
    opened = _Opened(graph)

    def handler(event: Any, context: Any) -> dict[str, Any]:
        records = _records(event)
        has_time = _clock(context, reserve)
        outcome, report, oldest = opened.apply(records, has_time)
        _tell(report, records, outcome)
        if metrics is not None:
            told = _metrics(report, len(records) - outcome.done, oldest, time.time())
            print(embedded_metrics(metrics, opened.table, told, time.time()), flush=True)
        if outcome.done == len(records):
            return {"batchItemFailures": []}
        return {"batchItemFailures": [{"itemIdentifier": _identifier(records, outcome.done)}]}

    return handler


def record_handler(graph: AnyGraph | Callable[[], AnyGraph]) -> Callable[[Any], None]:
    """For the `BatchProcessor` of aws-lambda-powertools: applies one record, and raises if that cannot be done now.

    One by one, records cost more than in a batch: every record of a node's edges changes the node by itself.
    """
    opened = _Opened(graph)

    def handler(record: Any) -> None:
        outcome, _, _ = opened.apply([_plain(record)], lambda: True)
        if outcome.error is not None:
            raise outcome.error

    return handler


class _Opened:
    """A graph, opened when it is first needed, and kept as long as the function's process lives."""

    def __init__(self, graph: AnyGraph | Callable[[], AnyGraph]) -> None:
        if not isinstance(graph, Graph | AsyncGraph) and not callable(graph):
            raise InvalidValue(f"{shown(graph)} is no graph; pass a Graph, or a function that opens one")
        self._given = graph
        self._graph: AnyGraph | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._together = TOGETHER
        """How many records are applied together: fewer where time was over before any of them was done."""

    @property
    def table(self) -> str:
        return self._open()._layout.table

    def apply(
        self, records: Sequence[Any], has_time: Callable[[], bool]
    ) -> tuple[Outcome, MaintenanceReport, float | None]:
        """How far records were applied, what was done, and when the oldest of them was made."""
        graph, tally = self._open(), Tally()
        layout = graph._layout
        names = [key.name for key in layout.definition.keys]
        # A file is no table of the service, so that no stream is of another one.
        table = None if graph._store.creates_tables else layout.table
        _check_source(records, table)
        changes = [_change(record, names, table) for record in records]
        outcome = self._run(graph, apply_each(layout, changes, tally, has_time, self._together))
        if outcome.done == len(records):
            self._together = min(TOGETHER, self._together * 2)
        elif outcome.done == 0 and outcome.error is None:
            self._together = max(1, self._together // 4)
        return outcome, tally.report(), min((each.at for each in changes if each.at), default=None)

    def _run(self, graph: AnyGraph, plan: Plan[Outcome]) -> Outcome:
        if isinstance(graph, Graph):
            return graph._run(plan)
        # Connections belong to the loop they were made on, so that all events have the same.
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            weakref.finalize(self, self._loop.close)
        return self._loop.run_until_complete(graph._run(plan))

    def _open(self) -> AnyGraph:
        if self._graph is None:
            given = self._given
            self._graph = given if isinstance(given, Graph | AsyncGraph) else given()
        return self._graph


# --- what comes --------------------------------------------------------------------------------


def _records(event: Any) -> list[Any]:
    plain = _plain(event)
    records = plain.get("Records") if isinstance(plain, Mapping) else None
    if not isinstance(records, list):
        raise InvalidValue(
            "this is no event of a DynamoDB stream: it has no 'Records'; invoke the function through an event source "
            "mapping on the table's stream"
        )
    return [_plain(record) for record in records]


def _plain(wrapped: Any) -> Any:
    """What aws-lambda-powertools wraps into classes of its own, as it came."""
    return getattr(wrapped, "raw_event", wrapped)


def _check_source(records: Sequence[Any], table: str | None) -> None:
    """A mapping on another stream is a mistake of whoever set it up, and no fault of a single record."""
    plain = [record for record in records if isinstance(record, Mapping)]
    others = {named for record in plain if (named := _table_of(record))}
    if table is not None and others and table not in others:
        raise InvalidValue(f"{_other(min(others), table)}; correct the mapping")
    for record in plain:
        images = record.get("dynamodb")
        view = images.get("StreamViewType", IMAGES) if isinstance(images, Mapping) else IMAGES
        if view != IMAGES:
            raise InvalidValue(f"the stream has {view} only; disable it, and enable it with {IMAGES}")


def _table_of(record: Mapping[str, Any]) -> str:
    """The table whose stream a record is of; empty where it does not say."""
    return str(record.get("eventSourceARN") or "").partition(":table/")[2].partition("/")[0]


def _other(named: str, table: str) -> str:
    return f"the record is of the table {named}, and the graph's is {table}"


def _change(record: Any, names: Sequence[str], table: str | None) -> ItemChange | Unapplied:
    try:
        change = checked_change(record, names)
        if table is not None and (_table_of(record) or table) != table:
            raise InvalidItem(_other(_table_of(record), table))
        return change
    except InvalidItem as problem:
        # Whatever is wrong with a record, it is no reason to keep the others waiting.
        return _unapplied(record, str(problem))


def _unapplied(record: Any, reason: str) -> Unapplied:
    """What can be told about a record that is none."""
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


# --- what goes back ----------------------------------------------------------------------------


def _clock(context: Any, reserve: float) -> Callable[[], bool]:
    """Says whether there is time left; always, where nobody says how much there is."""
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    if remaining is None:
        return lambda: True
    kept = min(reserve * 1000, remaining() / 4)
    return lambda: remaining() > kept


def _identifier(records: Sequence[Any], first: int) -> str:
    """The sequence number of a record, or of the last one before it that has any."""
    for record in reversed(records[: first + 1]):
        images = record.get("dynamodb") if isinstance(record, Mapping) else None
        number = images.get("SequenceNumber") if isinstance(images, Mapping) else None
        if isinstance(number, str) and number:
            return number
    # Lambda takes an empty one for "all of them".
    return ""


def _metrics(report: MaintenanceReport, retried: int, oldest: float | None, now: float) -> dict[str, Metric]:
    told: dict[str, Metric] = {
        "Changes": (report.changes, "Count"),
        "SetAside": (len(report.set_aside), "Count"),
        "Retried": (retried, "Count"),
    }
    if oldest is not None:
        told["Lag"] = (max(0, round((now - oldest) * 1000)), "Milliseconds")
    return told


def _tell(report: MaintenanceReport, records: Sequence[Any], outcome: Outcome) -> None:
    if outcome.done < len(records):
        why = "there is no time left" if outcome.error is None else f"{type(outcome.error).__name__}: {outcome.error}"
        _log.error(
            "%d of %d records are not applied now, from %s on, and will come again: %s",
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
