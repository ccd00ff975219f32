"""Many threads and tasks on one store, connections that the server closes, and stores that are closed meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from adjoin import AsyncGraph, Graph, ServiceUnreachable, StoreClosed, field
from tests.models import SCHOOL, Course
from tests.stores.dynamodb.misbehaving import (
    DROPPED_AFTER,
    SILENT,
    THROTTLED,
    Call,
    Exchange,
    MisbehavingServer,
    Misbehaviour,
)


async def _late(exchange: Exchange) -> None:
    await asyncio.sleep(0.2)
    await exchange.say(await exchange.forward())


LATE = Misbehaviour("a fifth of a second late", _late, applied=True)
IN_TURN = 16 * 0.2
"""Seconds that sixteen late answers take one after the other."""


@pytest.fixture
def graph(location: str, quick: None) -> Iterator[Graph]:
    with Graph(location, SCHOOL) as graph:
        yield graph


def test_many_threads_are_right(graph: Graph, behind: Graph, name: str) -> None:
    behind.put(Course(id=name))

    def work(number: int) -> None:
        for each in range(25):
            course = Course(id=f"{name}-{number}-{each}", credits=each)
            graph.put(course)
            assert graph.get(Course, course.id) == course

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    ids = [f"{name}-{number}-{each}" for number in range(16) for each in range(25)]
    assert [each and each.credits for each in behind.get_many(Course, ids)] == [*range(25)] * 16


def test_threads_do_not_wait_for_each_other(graph: Graph, server: MisbehavingServer, name: str) -> None:
    server.misbehave_always(LATE)
    started = time.monotonic()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda each: graph.put(Course(id=f"{name}-{each}")), range(16)))
    assert time.monotonic() - started < IN_TURN * 2 / 3


def test_requests_of_a_call_run_side_by_side(graph: Graph, server: MisbehavingServer, name: str) -> None:
    server.misbehave_always(LATE)
    started = time.monotonic()
    graph.put_many(Course(id=f"{name}-{each}") for each in range(400))
    assert len(server.calls) == 16
    assert time.monotonic() - started < IN_TURN * 2 / 3


def test_no_more_connections_than_asked_for(
    location: str, quick: None, behind: Graph, server: MisbehavingServer, name: str
) -> None:
    async def ask() -> int:
        async with AsyncGraph(f"{location}&connections=3", SCHOOL) as g:
            before = server.connections
            server.misbehave_always(LATE)
            await asyncio.gather(*(g.get(Course, name) for _ in range(9)))
            return server.connections - before

    # Two were open before, for the description of the table.
    assert asyncio.run(ask()) <= 3


def test_waiting_for_a_connection_is_not_limited(
    location: str, quick: None, behind: Graph, server: MisbehavingServer, name: str
) -> None:
    async def ask() -> list[Any]:
        async with AsyncGraph(f"{location}&connections=1".replace("timeout=10", "timeout=0.6"), SCHOOL) as g:
            server.misbehave_always(LATE)
            return await asyncio.gather(*(g.get(Course, name) for _ in range(6)))

    assert asyncio.run(ask()) == [None] * 6


def test_connections_that_the_server_closed_while_they_were_idle(
    graph: Graph, behind: Graph, server: MisbehavingServer, name: str
) -> None:
    """They are not used for what must not be repeated."""
    behind.put(Course(id=name, credits=1))
    graph.get_many(Course, [f"c{each}" for each in range(500)])
    server.hang_up()
    time.sleep(0.6)
    assert graph.update(Course, name, credits=field("credits") + 1).credits == 2


def test_connections_that_the_server_closed_while_a_loop_waited(
    location: str, quick: None, behind: Graph, server: MisbehavingServer, name: str
) -> None:
    async def ask() -> Course:
        async with AsyncGraph(location, SCHOOL) as g:
            await g.get_many(Course, [f"c{each}" for each in range(500)])
            await asyncio.to_thread(server.hang_up)
            await asyncio.sleep(0.05)
            return await g.update(Course, name, credits=field("credits") + 1)

    behind.put(Course(id=name, credits=1))
    assert asyncio.run(ask()).credits == 2


def test_a_connection_that_broke_is_not_used_again(g: Any, behind: Graph, server: MisbehavingServer, name: str) -> None:
    behind.put(Course(id=name, credits=0))
    for number in range(10):
        server.misbehave(DROPPED_AFTER)
        g.put(Course(id=name, credits=number))
        assert g.update(Course, name, credits=field("credits") + 1).credits == number + 1


# --- closed meanwhile --------------------------------------------------------------------------


def test_a_graph_that_is_closed_while_threads_use_it(
    location: str, quick: None, behind: Graph, server: MisbehavingServer, name: str
) -> None:
    """What was under way is finished; what comes after is refused."""
    graph = Graph(location, SCHOOL)
    server.misbehave_always(LATE)
    done: list[object] = []

    def work() -> None:
        try:
            while True:
                graph.put(Course(id=name))
                done.append("put")
        except StoreClosed:
            done.append("closed")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    graph.close()
    for thread in threads:
        thread.join(5)
    assert done.count("closed") == 4
    assert behind.get(Course, name) == Course(id=name)


@pytest.mark.parametrize("how", [SILENT, THROTTLED], ids=lambda how: how.name)
def test_an_asynchronous_graph_that_is_closed_while_tasks_use_it(
    location: str, behind: Graph, server: MisbehavingServer, how: Misbehaviour, name: str
) -> None:
    async def ask() -> list[Any]:
        g = AsyncGraph(location, SCHOOL)
        await g.get(Course, name)
        server.misbehave_always(how)
        tasks = [asyncio.create_task(g.get(Course, name)) for _ in range(5)]
        await asyncio.sleep(0.1)
        await g.close()
        return await asyncio.gather(*tasks, return_exceptions=True)

    started = time.monotonic()
    assert {type(each) for each in asyncio.run(ask())} == {StoreClosed}
    assert time.monotonic() - started < 5


def test_a_canceled_call_leaves_the_graph_usable(
    location: str, quick: None, behind: Graph, server: MisbehavingServer, name: str
) -> None:
    async def ask() -> Course | None:
        async with AsyncGraph(location, SCHOOL) as g:
            await g.put(Course(id=name, credits=7))
            for number in range(5):
                server.misbehave(LATE)
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(g.get(Course, f"{name}-{number}"), 0.01)
            server.behave()
            return await g.get(Course, name)

    assert asyncio.run(ask()) == Course(id=name, credits=7)


def test_a_server_that_comes_back(graph: Graph, server: MisbehavingServer, name: str) -> None:
    def choose(call: Call) -> Misbehaviour | None:
        return DROPPED_AFTER if time.monotonic() < back else None

    back = time.monotonic() + 0.3
    server.choose = choose
    graph.put(Course(id=name))
    assert time.monotonic() >= back
    assert graph.get(Course, name) == Course(id=name)


def test_a_port_on_which_nobody_listens_any_more(backend: str, table: str, behind: Graph) -> None:
    server = MisbehavingServer(backend)
    server.start()
    with Graph(f"dynamodb://{table}?endpoint={server.url}&deadline=0.3", SCHOOL) as graph:
        assert graph.get(Course, "nobody") is None
        server.stop()
        with pytest.raises(ServiceUnreachable):
            graph.get(Course, "nobody")
