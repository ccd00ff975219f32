"""CloudWatch's embedded metric format: a line of JSON in the log of a function, of which CloudWatch makes metrics.

Source: "Specification: Embedded metric format" in the user guide of Amazon CloudWatch. Nothing is called for it, and no
right is needed beyond that to write the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from orjson import dumps

Metric: TypeAlias = tuple[int | float, str]
"""A value and its unit."""
TABLE = "Table"
"""The dimension of all metrics."""


def embedded_metrics(namespace: str, table: str, metrics: Mapping[str, Metric], now: float) -> str:
    """The line that tells these metrics of a table at a time."""
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
