"""The meter by call site: which line of a program asked for what."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from adjoin import AsyncGraph, CallSite, Edge, Graph, Node


class Person(Node):
    id: str


class Knows(Edge[Person, Person]):
    pass


@pytest.fixture
def g() -> Iterator[Graph]:
    with Graph(":memory:", [Person, Knows]) as graph:
        graph.put_many([*(Person(id=each) for each in "abc"), *(Knows(source="a", target=each) for each in "bc")])
        yield graph


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def told(sites: Any) -> list[tuple[str, int, int, float]]:
    return [(site and site.function, site and site.line, usage.requests, usage.rcu) for site, usage in sites.items()]


def test_each_line_has_its_own_requests(g: Graph) -> None:
    def read(id: str) -> None:
        g.get(Person, id)

    with g.meter() as meter:
        query, made_at = g.out("a", Knows), line()
        read("a")
        read("b")
        found, at = list(query.nodes()), line()
    assert len(found) == 2
    here = "test_each_line_has_its_own_requests"
    assert told(meter.sites) == [(f"{here}.<locals>.read", made_at - 3, 2, 1.0), (here, at, 2, 1.5)]
    assert [usage.rounds for usage in meter.sites.values()] == [2, 2]
    assert sum(usage.requests for usage in meter.sites.values()) == meter.requests
    site = next(iter(meter.sites))
    assert isinstance(site, CallSite)
    assert str(site) == f"test_meters.py:{site.line} in {site.function}"
    assert site.file == __file__


def test_a_transaction_is_where_its_block_ends(g: Graph) -> None:
    with g.meter() as meter, g.transaction() as t:
        t.put(Person(id="d"))
        begun = line()
    ((site, usage),) = meter.sites.items()
    assert site is not None
    assert (begun - 2 <= site.line <= begun, usage.requests, usage.wcu) == (True, 1, 2.0)


def test_asynchronous_calls(tmp_path: Any) -> None:
    async def program() -> tuple[Any, int]:
        async with AsyncGraph(tmp_path / "g.db", [Person, Knows]) as g:
            await g.put(Person(id="a"))
            with g.meter() as meter:
                found, at = await g.get(Person, "a"), line()
                assert found
                await asyncio.gather(g.get(Person, "a"), g.get(Person, "b"))
        return meter, at

    meter, at = asyncio.run(program())
    where = "test_asynchronous_calls.<locals>.program"
    assert told(meter.sites) == [(where, at, 1, 0.5), (None, None, 2, 0.5 + 0.5)]


def test_units_are_told_apart_by_table_and_index(g: Graph) -> None:
    with g.meter() as meter:
        list(g.into("b", Knows))
        g.get(Person, "a")
        g.put(Knows(source="b", target="c"))
    (table,) = meter.tables.values()
    assert (table.rcu, table.wcu) == (0.5, 1.0)
    assert {name: (usage.rcu, usage.wcu) for name, usage in table.indexes.items()} == {"GSI1": (0.5, 1.0)}
    assert (meter.rcu, meter.wcu) == (1.0, 2.0)
