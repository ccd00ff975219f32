"""What a graph holds ends with it: classes, layouts, statements, threads, loops, connections and descriptors,
whether it was closed or only dropped. A service that makes graphs for years stays as large as it was.

Classes are made anew for every graph here, so that whatever is kept for a class, a graph or a statement shows.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import re
import threading
import time
import typing
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import pytest

from adjoin import (
    AdjacencyList,
    AlreadyExists,
    AsyncGraph,
    Count,
    Edge,
    Graph,
    Indexed,
    MaterializedGraph,
    Node,
    Sum,
    Unique,
    field,
)
from adjoin.layouts.interface import Layout
from tests.conftest import DrivenGraph
from tests.servers.open import Stores

ROUNDS = 2
TRIES = 3
"""What others in the process do may look like growth once; what grows with every graph grows each time."""
PASSES = 2
"""Collections, at least. What one lets go may hold more: pydantic has the ends of an edge class in a cache until the
class is gone."""
LIMIT = 60.0
"""Seconds for a thread to end that has been told to, and for one that has given its result to let go of what it worked
on. On a busy machine it may be stopped in between, for longer than any number of collections takes."""


def shop(number: int) -> list[type[Any]]:
    """Classes that nobody else refers to, with every kind of thing that is worked out once for a class."""

    class Customer(Node, label=f"C{number}"):
        id: str
        mail: Annotated[str | None, Unique()] = None
        city: Annotated[str, Indexed()] = ""
        placed: Annotated[int, Count("Placed", where=field("status") == f"open{number}")] = 0
        owed: Annotated[int, Sum("Placed", field="amount", where=field("amount") > number)] = 0

    class Invoice(Node, label=f"I{number}"):
        id: str
        customers: Annotated[int, Count("Placed", consistency="transaction")] = 0

    class Placed(Edge[Customer, Invoice], label=f"P{number}"):
        status: str = ""
        amount: int = 0

    return [Customer, Invoice, Placed]


def use(g: Any, models: list[type[Any]], number: int) -> None:
    """One of everything."""
    customer, invoice, placed = models
    g.put(customer(id="c1", mail="a@x", city="Oslo"))
    g.put_many([customer(id="c2", city="Rome"), invoice(id="i1"), invoice(id="i2")])
    g.connect(placed, "c1", "i1", status=f"open{number}", amount=number + 5)
    with g.transaction() as t:
        t.connect(placed, "c2", "i1", amount=1)
        t.update(customer, "c2", city="Bonn")
    g.maintain(once=True)
    g.update(placed, "c1", "i1", amount=7, only_if=field("amount") > 0)
    assert [edge.amount for edge in g.out("c1", placed)] == [7]
    assert len(list(g.into("i1", placed).nodes())) == 2
    assert [found.id for found in g.find(customer, field("city") == "Bonn")] == ["c2"]
    assert g.get(customer, mail="a@x") == g.get(customer, "c1")
    assert g.explain(getattr(g, "_inner", g).put, customer(id="c3")).wcu
    with g.meter() as meter:
        assert g.get(customer, f"nobody{number}") is None
    assert meter.requests == 1
    with pytest.raises(AlreadyExists):
        g.add(customer(id="c2"))
    assert g.delete(customer, "c1")


Watched = list[weakref.ref[Any]]


def opened(location: str, models: list[type[Any]], layout: Layout, loop: asyncio.AbstractEventLoop | None) -> Any:
    if loop is None:
        return Graph(location, models, layout)
    return DrivenGraph(AsyncGraph(location, models, layout), loop)


def one_life(
    location: str, layout: Layout, number: int, is_closed: bool, loop: asyncio.AbstractEventLoop | None
) -> Watched:
    """Makes classes and a graph, uses them and lets them go; what there was is watched."""
    models = shop(number)
    graph = opened(location, models, layout, loop)
    if location.startswith("dynamodb"):
        graph.create_table()
    use(graph, models, number)
    # The next classes have the same names and other labels. In the same table, that would be a change of the labels.
    graph.drop_table()
    if is_closed:
        graph.close()
    inner = graph if loop is None else graph._inner
    return [weakref.ref(thing) for thing in (*models, inner, inner._layout, inner._schema, inner._store)]


def left(watched: Watched) -> list[Any]:
    return [found for ref in watched if (found := ref()) is not None]


def settled(watched: Watched, loop: asyncio.AbstractEventLoop | None, others: set[threading.Thread]) -> None:
    """Collects what nobody refers to; the last few types and patterns, which Python keeps, are let go first.

    Waits for the threads that ended, but not for those of others, such as a server that serves all tests.
    """
    for forget in typing._cleanups:  # type: ignore[attr-defined]
        forget()
    re.purge()
    last = time.monotonic() + LIMIT
    for number in itertools.count():
        if number >= PASSES and (not left(watched) or time.monotonic() > last):
            break
        if number >= PASSES:
            time.sleep(0.01)
        gc.collect()
        if loop is not None:
            loop.run_until_complete(asyncio.sleep(0))
            while tasks := asyncio.all_tasks(loop):
                loop.run_until_complete(asyncio.wait(tasks))
        for thread in {*threading.enumerate()} - others:
            if thread.name.startswith("adjoin"):
                thread.join(LIMIT)


def census() -> Counter[str]:
    """How many there are of each type of object, and of threads and open descriptors."""
    found = Counter(f"{type(thing).__module__}.{type(thing).__qualname__}" for thing in gc.get_objects())
    # Abstract classes remember which classes they were asked about, weakly, and start anew now and then. What is logged
    # is kept by pytest, for the report.
    for name in ("weakref.ReferenceType", "builtins.builtin_function_or_method", "logging.LogRecord"):
        del found[name]
    found["threads"] = threading.active_count()
    found["descriptors"] = len(os.listdir("/dev/fd"))
    return found


def some_lives(
    location: str, numbers: Iterator[int], many: int, is_closed: bool, loop: asyncio.AbstractEventLoop | None
) -> None:
    """Some graphs, in both layouts by turns, of which nothing is left."""
    others = {*threading.enumerate()}
    for number in itertools.islice(numbers, many):
        layout: Layout = MaterializedGraph("Mat") if number % 2 else AdjacencyList("Adj")
        watched = one_life(location, layout, number, is_closed, loop)
        settled(watched, loop, others)
        assert left(watched) == []


@pytest.fixture(params=["memory", "file", "service"])
def location(request: pytest.FixtureRequest, tmp_path: Path, servers: Stores) -> str:
    if request.param == "service":
        return f"dynamodb://Shop-{uuid4().hex}?endpoint={servers.address('serve')}"
    return ":memory:" if request.param == "memory" else f"{tmp_path / 'shop.db'}?durability=process"


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "dropped"])
@pytest.mark.parametrize("is_async", [False, True], ids=["waiting", "awaiting"])
def test_everything_ends_with_the_graph(location: str, is_async: bool, is_closed: bool) -> None:
    loop = asyncio.new_event_loop() if is_async else None
    # What other tests left is nobody's concern here, and looking through it takes seconds each time. It stays frozen,
    # as at the begin of each file: the next test would look through all of it first.
    gc.collect()
    gc.freeze()
    try:
        numbers = itertools.count()
        # Each layout is used once first, and what is kept for good is there then.
        some_lives(location, numbers, 2, is_closed, loop)
        for _ in range(TRIES):
            before = census()
            some_lives(location, numbers, 2 * ROUNDS, is_closed, loop)
            grown = {name: more for name, more in (census() - before).items() if more >= ROUNDS}
            if not grown:
                break
        assert grown == {}, "something grows with every graph"
    finally:
        if loop is not None:
            loop.close()
