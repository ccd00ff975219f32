"""Graphs for tests: every verb runs on `Graph`, and on `AsyncGraph` driven from a loop."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from adjoin import AsyncGraph, Graph
from tests.models import ANN, ART, BOB, MATHS, SCHOOL, Enrollment
from tests.servers.open import Stores
from tests.shares import examples

# How long an example takes, to make or to run, says more about the machine than about the code.
settings.register_profile(
    "adjoin", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(40)
)
settings.load_profile("adjoin")

# Tests make thousands of small files, and waiting until a disk has them is most of what these take. A file in memory
# outlives a process that is killed as one on a disk does.
_MEMORY = Path("/dev/shm")
_ROOM = 4 << 30
if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

# Classes, expressions and plans are many small objects. To look through the young ones every 700 times is a twentieth
# of the processor's time, and finds little: most of what a test leaves goes without the collector.
gc.set_threshold(20_000, 10, 10)

# A shell starts what it puts into the background with interrupts ignored, and tests interrupt programs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: one worker more than processors, since a quarter of the time tests wait for servers and browsers."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests begin first, so that all workers end at about the same time. Hypothesis tries a share of examples."""
    for item in items:
        if getattr(getattr(item, "function", None), "is_hypothesis_test", False):
            item.add_marker("simulation")
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


_looked_at: set[Path] = set()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Spares the garbage collector what is there before the first test of a file: modules, and what libraries keep.

    These are more than a million objects in the end, which stay as long as the process; a full collection takes more
    than a second with them.
    """
    if item.path not in _looked_at:
        _looked_at.add(item.path)
        gc.collect()
        gc.freeze()


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Takes from an error that a test was given what it has seen since it was raised: frames, and whatever is in them.

    Parameters live as long as the session, and workers must not grow from test to test.
    """
    call: Any = getattr(item, "callspec", None)
    for value in () if call is None else call.params.values():
        if isinstance(value, BaseException):
            value.__traceback__ = value.__context__ = None


@pytest.fixture(scope="session")
def servers() -> Iterator[Stores]:
    """Stores on independent implementations of the service; `servers.open("dynalite")` starts it."""
    stores = Stores()
    yield stores
    stores.close()


class Driven:
    """An asynchronous object used as if it were synchronous: awaits what must be awaited."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if hasattr(found, "__aiter__"):
            return Driven(found, self._loop)
        return (lambda *args, **kwargs: self._settled(found(*args, **kwargs))) if callable(found) else found

    def _settled(self, result: Any) -> Any:
        if hasattr(result, "limit") or hasattr(result, "__aenter__"):
            return Driven(result, self._loop)
        if hasattr(result, "__aiter__"):
            return Driven(result, self._loop)
        return self._loop.run_until_complete(result) if asyncio.iscoroutine(result) else result

    def __iter__(self) -> Iterator[Any]:
        iterator = self._inner.__aiter__()
        while True:
            try:
                yield self._loop.run_until_complete(anext(iterator))
            except StopAsyncIteration:
                return

    def __enter__(self) -> Any:
        entered = self._inner.__aenter__()
        return self._loop.run_until_complete(entered)

    def __exit__(self, *error: Any) -> None:
        self._loop.run_until_complete(self._inner.__aexit__(*error))


class DrivenGraph(Driven):
    def collection(self, *args: Any, **kwargs: Any) -> Any:
        return DrivenCollection(self._inner.collection(*args, **kwargs), self._loop)

    def meter(self) -> Any:
        return self._inner.meter()

    def explain(self, call: Any, *args: Any, **kwargs: Any) -> Any:
        call = call._inner if isinstance(call, Driven) else call
        return self._loop.run_until_complete(self._inner.explain(call, *args, **kwargs))


class DrivenCollection(Driven):
    def __getattr__(self, name: str) -> Any:
        if name in ("node", "edges", "others"):
            return getattr(self._loop.run_until_complete(_awaited(self._inner)), name)
        return super().__getattr__(name)


async def _awaited(thing: Any) -> Any:
    return await thing


Open = Callable[..., Any]


@pytest.fixture(params=["Graph", "AsyncGraph"])
def open_graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterable[Open]:
    """Opens graphs over one file, of either kind; they are closed after the test."""
    opened: list[Any] = []
    loop = asyncio.new_event_loop() if request.param == "AsyncGraph" else None

    def open_one(models: Iterable[type[Any]] = SCHOOL, location: Any = None, **options: Any) -> Any:
        location = f"{tmp_path / 'graph.db'}?durability=process" if location is None else location
        graph = (
            Graph(location, models, **options)
            if loop is None
            else DrivenGraph(AsyncGraph(location, models, **options), loop)
        )
        opened.append(graph)
        return graph

    yield open_one
    for graph in opened:
        graph.close()
    if loop is not None:
        loop.close()


@pytest.fixture
def g(open_graph: Open) -> Any:
    """A school on a file, empty."""
    return open_graph()


@pytest.fixture
def school(g: Any) -> Any:
    g.put_many([ANN, BOB, MATHS, ART])
    g.put(Enrollment(source="ann", target="maths", grade="A", points=9))
    g.put(Enrollment(source="ann", target="art", grade="C", points=3))
    g.put(Enrollment(source="bob", target="maths", grade="B", points=7))
    return g
