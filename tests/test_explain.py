"""Explaining a call: its requests, index, partitions and units, without asking the store."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

import pytest

from adjoin import AsyncGraph, Graph
from tests.models import ANN, SCHOOL, Attendance, Course, Enrollment, Student


def test_explain_asks_nothing(school: Any) -> None:
    before = list(school.changes())
    with school.meter() as meter:
        explained = school.explain(school.into("maths", Enrollment))
    assert (explained.index, explained.partitions, explained.rcu) == ("GSI1", ("COURSE#maths",), 0.5)
    assert "GSI1" in str(explained)
    assert (meter.requests, meter.rcu, meter.wcu) == (0, 0, 0)
    assert list(school.changes()) == before


CALLS: list[tuple[str, tuple[Any, ...], int, float, float]] = [
    ("get", (Student, "ann"), 1, 0.5, 0),
    ("put", (ANN,), 1, 0, 1),
    ("put", (Enrollment(source="ann", target="maths"),), 1, 0, 2),
    ("put", (Attendance(source="ann", target="maths", day=dt.date(2024, 1, 1)),), 1, 0, 3),
    ("put", (Course(id="c", name="x" * 3000),), 1, 0, 3),
    ("get_many", (Student, ["a", "b", "c"]), 1, 1.5, 0),
    ("connect", (Enrollment, "ann", "maths"), 1, 0, 7),
    ("delete", (Student, "ann"), 3, 2, 1),
]


@pytest.mark.parametrize(("verb", "arguments", "requests", "rcu", "wcu"), CALLS)
def test_explain_prices_calls(verb: str, arguments: tuple[Any, ...], requests: int, rcu: float, wcu: float) -> None:
    with Graph(":memory:", SCHOOL) as graph:
        explained = graph.explain(getattr(graph, verb), *arguments)
        assert (len(explained.requests), explained.rcu, explained.wcu) == (requests, rcu, wcu)
        assert explained == graph.explain(lambda: getattr(graph, verb)(*arguments))
        assert list(graph.changes()) == []

    async def main() -> None:
        async with AsyncGraph(":memory:", SCHOOL) as graph:
            assert await graph.explain(getattr(graph, verb), *arguments) == explained
            assert await graph.explain(getattr(graph, verb)(*arguments)) == explained

    asyncio.run(main())
