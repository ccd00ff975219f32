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
    Exchange,
    MisbehavingServer,
    Misbehaviour,
)


class Held:
    """Requests are answered when so many of them are under way: never, if they wait for each other."""

    def __init__(self, count: int) -> None:
        self.most = 0
        self._count = count
        self._waiting: list[asyncio.Event] = []
        self.how = Misbehaviour(f"held until there are {count}", self._act, applied=True)

    async def _act(self, exchange: Exchange) -> None:
        answered = asyncio.Event()
        self._waiting.append(answered)
        self.most = max(self.most, len(self._waiting))
        if len(self._waiting) == self._count:
            self.release()
        await answered.wait()
        await exchange.say(await exchange.forward())

    def release(self) -> None:
        for each in self._waiting:
            each.set()
        self._waiting.clear()


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
    held = Held(16)
    server.misbehave_always(held.how)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda each: graph.put(Course(id=f"{name}-{each}")), range(16)))
    assert (held.most, len(server.calls)) == (16, 16)


def test_requests_of_a_call_run_side_by_side(graph: Graph, server: MisbehavingServer, name: str) -> None:
    held = Held(16)
    server.misbehave_always(held.how)
    graph.put_many(Course(id=f"{name}-{each}") for each in range(400))
    assert (held.most, len(server.calls)) == (16, 16)


def test_no_more_connections_than_asked_for(
    location: str, quick: None, behind: Graph, server: MisbehavingServer, name: str
) -> None:
    async def ask() -> int:
        async with AsyncGraph(f"{location}&connections=3", SCHOOL) as g:
            before = server.connections
            server.misbehave_always(held.how)
            await asyncio.gather(*(g.get(Course, name) for _ in range(9)))
            return server.connections - before

    held = Held(3)
    # Three calls opened the graph: two for the description of the table, one for the record of declarations.
    assert asyncio.run(ask()) <= 3
    assert (held.most, len(server.calls)) == (3, 9 + 3)


def test_connections_that_the_server_closed_while_they_were_idle(
    graph: Graph, behind: Graph, server: MisbehavingServer, name: str
) -> None:
    """They are not used for what must not be repeated."""
    behind.put(Course(id=name, credits=1))
    graph.get_many(Course, [f"c{each}" for each in range(500)])
    server.hang_up()
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
    held = Held(99)
    server.misbehave_always(held.how)
    server.calls.clear()
    done: list[str] = []

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
    while len(server.calls) < 4:
        time.sleep(0.005)
    graph.close()
    server.soon(held.release)
    for thread in threads:
        thread.join(60)
    assert sorted(done) == ["closed"] * 4 + ["put"] * 4
    assert behind.get(Course, name) == Course(id=name)


@pytest.mark.parametrize("how", [SILENT, THROTTLED], ids=lambda how: how.name)
def test_an_asynchronous_graph_that_is_closed_while_tasks_use_it(
    location: str, behind: Graph, server: MisbehavingServer, how: Misbehaviour, name: str
) -> None:
    async def ask() -> list[Any]:
        g = AsyncGraph(location, SCHOOL)
        await g.get(Course, name)
        server.misbehave_always(how)
        server.calls.clear()
        tasks = [asyncio.create_task(g.get(Course, name)) for _ in range(5)]
        while len(server.calls) < 5:
            await asyncio.sleep(0.005)
        await g.close()
        return await asyncio.gather(*tasks, return_exceptions=True)

    # So far away that nobody would see the end.
    location = location.replace("timeout=10&deadline=30", "timeout=86400&deadline=86400")
    assert {type(each) for each in asyncio.run(ask())} == {StoreClosed}


def test_a_canceled_call_leaves_the_graph_usable(
    location: str, quick: None, behind: Graph, server: MisbehavingServer, name: str
) -> None:
    async def ask() -> Course | None:
        async with AsyncGraph(location, SCHOOL) as g:
            await g.put(Course(id=name, credits=7))
            for number in range(5):
                server.misbehave(SILENT)
                server.calls.clear()
                call = asyncio.create_task(g.get(Course, f"{name}-{number}"))
                while not server.calls:
                    await asyncio.sleep(0.005)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
            server.behave()
            return await g.get(Course, name)

    assert asyncio.run(ask()) == Course(id=name, credits=7)


def test_a_server_that_comes_back(graph: Graph, server: MisbehavingServer, name: str) -> None:
    server.misbehave(*[DROPPED_AFTER] * 12)
    graph.put(Course(id=name))
    assert len(server.calls) == 13
    assert graph.get(Course, name) == Course(id=name)


def test_a_port_on_which_nobody_listens_any_more(backend: str, table: str, behind: Graph) -> None:
    server = MisbehavingServer(backend)
    server.start()
    with Graph(f"dynamodb://{table}?endpoint={server.url}&deadline=5", SCHOOL) as graph:
        assert graph.get(Course, "nobody") is None
        server.stop()
        with pytest.raises(ServiceUnreachable):
            graph.get(Course, "nobody")
