"""`maintain` without an end: it outlives what passes, stops when it is told to, and says how it stands."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from adjoin import (
    AccessDenied,
    AsyncGraph,
    Graph,
    InvalidValue,
    OutcomeUnknown,
    ServiceUnreachable,
    Throttled,
    TransactionCanceled,
)
from adjoin.errors import CancellationReason
from adjoin.plans.maintenance import stream
from adjoin.plans.maintenance.report import MaintenanceReport, SetAside, Tally
from adjoin.plans.maintenance.stream import Daemon
from adjoin.requests import Get, Put, ReadChanges, Request, Response, TransactWrite, Update
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore
from tests.maintenance.models import MODELS, Customer, Placed
from tests.maintenance.simulation import stored
from tests.maintenance.test_crashes import happen, happen_again
from tests.maintenance.test_simulation import check


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Script:
    """Stands for a `threading.Event`: time passes as it is waited for, and each wait has something done."""

    def __init__(self, clock: Clock, *acts: Callable[[], object]) -> None:
        self._clock, self._acts = clock, list(acts)
        self.waits: list[float] = []

    def is_set(self) -> bool:
        return not self._acts

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waits.append(timeout)
        self._clock.now += timeout
        if self._acts:
            self._acts.pop(0)()
        return self.is_set()


class Failing(FaultyStore):
    """Fails what it is asked with an error, as long as there is one."""

    error: Exception | None = None
    kinds: tuple[type, ...] = (TransactWrite, Update, Put, ReadChanges, Get)

    def _one(self, request: Request) -> Any:
        if self.error is not None and isinstance(request, self.kinds):
            raise self.error
        return super()._one(request)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Any:
    made = Failing(SQLiteStore(":memory:", clock=clock))
    yield made
    made.close()


@pytest.fixture
def g(store: Failing, clock: Clock) -> Graph:
    graph = Graph(store, MODELS)
    graph._clock = clock
    return graph


def invoices(g: Graph, id: str = "C1") -> int:
    found = g.get(Customer, id)
    assert found is not None
    return found.invoices


def nothing() -> None:
    pass


# --- stopping ----------------------------------------------------------------------------------


def test_it_stops_when_it_is_told_to(g: Graph, clock: Clock) -> None:
    g.put_many([Customer(id="C1"), Placed(source="C1", target="I1")])
    stop = Script(clock, nothing, lambda: g.put(Placed(source="C1", target="I2")), nothing)
    report = g.maintain(stop=stop, every=7.0)
    assert stop.waits == [7.0, 7.0, 7.0]
    assert invoices(g) == 2
    assert report.changes >= 3
    assert report.retries == 0


def test_an_event_that_is_set_ends_it_between_two_steps(g: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "TOGETHER", 1000)
    g.put_many(Customer(id=f"C{number}") for number in range(600))
    g.put_many(Placed(source=f"C{number}", target="I1") for number in range(600))
    stop = threading.Event()
    steps: list[int] = []

    def look(report: MaintenanceReport) -> None:
        steps.append(report.changes)
        stop.set()

    g.maintain(stop=stop, progress=look)
    assert steps == [999], "and the record of what is declared"
    g.maintain(once=True)
    assert all(invoices(g, f"C{number}") == 1 for number in range(0, 600, 50))


def test_every_is_a_time(g: Graph) -> None:
    for every in (0, -1.0, float("nan")):
        with pytest.raises(InvalidValue, match="every must be a number of seconds above 0"):
            g.maintain(every=every)


# --- errors ------------------------------------------------------------------------------------

CONTENTION = TransactionCanceled("others were faster", [CancellationReason("ConditionalCheckFailed")])
PASSING: list[Exception] = [
    Throttled("slow down"), ServiceUnreachable("nobody there"), OutcomeUnknown("who knows"), CONTENTION,
]  # fmt: skip


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "kinds", [(TransactWrite,), (Put,), (ReadChanges,), (Get,)], ids=lambda kinds: kinds[0].__name__
)
def test_it_outlives_what_passes(
    g: Graph, store: Failing, clock: Clock, error: Exception, kinds: tuple[type, ...], caplog: pytest.LogCaptureFixture
) -> None:
    store.kinds = kinds

    def fail() -> None:
        g.put(Placed(source="C1", target="I2"))
        store.error = error

    def recover() -> None:
        store.error = None

    g.put_many([Customer(id="C1"), Placed(source="C1", target="I1")])
    stop = Script(clock, fail, nothing, nothing, nothing, recover, nothing, nothing)
    with caplog.at_level(logging.INFO, "adjoin.maintain"):
        report = g.maintain(stop=stop)
    assert report.set_aside == ()
    assert invoices(g) == 2
    if kinds != (Get,):
        # Once it has begun, a get is only needed after something else failed.
        assert report.retries == 4
        assert f"{type(error).__name__}: {error}" in caplog.text
        assert "maintenance continues, after 5 attempts" in caplog.text
    check_waits(stop.waits, report.retries)


def check_waits(waits: Sequence[float], failures: int) -> None:
    paused = waits[1 : 1 + failures]
    for number, seconds in enumerate(paused):
        assert 2.0**number / 2 <= seconds <= 2.0**number
    assert all(seconds == 1.0 for seconds in (*waits[:1], *waits[1 + failures :]))


def test_it_waits_longer_each_time_and_never_for_too_long(clock: Clock) -> None:
    for chance in (0.0, 0.5, 1.0):
        daemon = Daemon(clock=clock, chance=lambda chance=chance: chance)  # type: ignore[misc]
        pauses = [daemon._failed(Throttled("slow down")) for _ in range(2000)]
        assert pauses[:7] == [min(60.0, 2.0**number) * (0.5 + chance / 2) for number in range(7)]
        assert max(pauses) <= 60.0


@pytest.mark.parametrize("error", [AccessDenied("not you"), KeyError("a fault of our own")])
def test_what_never_passes_is_raised(g: Graph, store: Failing, clock: Clock, error: Exception) -> None:
    def fail() -> None:
        store.error = error

    with pytest.raises(type(error)):
        g.maintain(stop=Script(clock, fail, nothing, nothing))


def test_to_an_end_everything_is_raised(g: Graph, store: Failing) -> None:
    store.error = Throttled("slow down")
    with pytest.raises(Throttled):
        g.maintain(once=True)


@pytest.mark.parametrize("ahead", [0.0004, 30.0, 1e7])
def test_a_clock_that_is_ahead_makes_no_cycle(g: Graph, clock: Clock, ahead: float) -> None:
    """What one stores is a change for the other, which is no reason to store again."""
    g.put_many([Customer(id="C1"), Placed(source="C1", target="I1")])
    clock.now += ahead
    g.maintain(once=True)
    clock.now -= ahead
    steps = 0

    def look(report: MaintenanceReport) -> None:
        nonlocal steps
        steps += 1
        assert steps < 20

    g.maintain(once=True, progress=look)
    before = stored(g)
    g.maintain(once=True)
    assert stored(g) == before


def test_what_failed_is_not_skipped(g: Graph, store: Failing, clock: Clock) -> None:
    """A position behind what was not applied is never stored, however the steps before it went."""
    happen(g)
    happen_again(g)
    sent = store.sent
    g.put(Customer(id="C9"))
    requests = 0
    while requests < 20:
        store.recover()
        g.put(Placed(source="C9", target=f"I{requests}"))
        store.stop_at(requests, "before")
        fault = store.fault

        def throttled(number: int, request: Request, fault: Any = fault) -> str | None:
            if fault(number, request):
                raise Throttled("slow down")
            return None

        store.fault = throttled
        g.maintain(stop=Script(clock, nothing, nothing, nothing))
        requests += 1
    store.recover()
    assert store.sent > sent + 20
    g.maintain(once=True)
    assert invoices(g, "C9") == 20
    check(g)


# --- what it tells -----------------------------------------------------------------------------


def test_a_line_a_minute(g: Graph, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    def write(number: int) -> Callable[[], object]:
        return lambda: g.put(Placed(source="C1", target=f"I{number}"))

    g.put(Customer(id="C1"))
    g.maintain(once=True)
    stop = Script(clock, *map(write, range(25)), *[nothing] * 30)
    with caplog.at_level(logging.INFO, "adjoin.maintain"):
        g.maintain(stop=stop, every=5.0)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3, "two minutes and the rest; nothing to tell in those without changes"
    assert all(re.match(r"\d+ changes in 6[0-4] s .*, 0 set aside; ", line) for line in lines[:2]), lines
    assert [line.rpartition("; ")[2] for line in lines] == ["5.0 s behind", "5.0 s behind", "nothing is left"]


def test_health(g: Graph, clock: Clock) -> None:
    begun = g.health()
    assert (begun.at, begun.changes, begun.set_aside, begun.rebuild_due) == (None, 0, 0, None)
    assert (begun.rebuilt_at, begun.verified_at, begun.lag) == (None, None, 0.0)
    g.put_many([Customer(id="C1"), Placed(source="C1", target="I1")])
    clock.now += 40
    assert g.health().lag == 40.0
    report = g.maintain(once=True)
    health = g.health()
    assert (health.lag, health.at) == (0.0, clock())
    assert health.changes == report.changes
    assert health.rate == pytest.approx(report.changes / 60, abs=1e-3)
    clock.now += 120
    assert g.health().rate < health.rate / 5
    (item,) = (item for item in stored(g) if item["SK"]["S"].startswith("PLACED"))
    g._store.execute((Put("adjoin", item | {"balance": {"S": "much"}}),))
    clock.now += 5
    assert g.health().lag == 5.0
    again = g.maintain(once=True)
    assert g.health().set_aside == len(again.set_aside) > 0
    assert g.health().changes == report.changes + again.changes


def test_what_it_wrote_itself_is_no_lag_for_long(g: Graph, clock: Clock) -> None:
    g.put_many([Customer(id="C1"), Placed(source="C1", target="I1")])
    lags: list[float | None] = []

    def look() -> None:
        lags.append(g.health().lag)

    g.maintain(stop=Script(clock, *[look] * 12))
    assert lags[-5:] == [0.0] * 5
    assert max(lag or 0.0 for lag in lags) <= 6.0


def test_health_of_a_graph_that_nobody_needs_to_maintain(clock: Clock) -> None:
    from examples import education

    with education.open_graph(":memory:") as g:
        g.put_many(education.SAMPLE)
        clock.now += 1000
        assert g.health().lag == 0.0


def test_what_runs_for_ever_does_not_grow() -> None:
    total = Tally()
    for number in range(300):
        some = Tally(changes=100, nodes={f"{number} {each}" for each in range(100)}, edges=100)
        some.records += [SetAside("", {}, f"{number} {each}") for each in range(100)]
        some.aside += [("RULE", {}, f"{number} {each}") for each in range(100)]
        total.include(some)
    report = total.report()
    assert (report.changes, report.nodes, report.edges) == (30_000, 30_000, 30_000)
    assert len(total.nodes) <= 10_000
    whole = Tally()
    whole.include(total)
    assert whole.report() == report
    assert [each.reason for each in report.set_aside[:1] + report.set_aside[-1:]] == ["200 0", "299 99"]
    assert [each.rule for each in report.set_aside] == ["RULE"] * 10_000 + [""] * 10_000


# --- awaited -----------------------------------------------------------------------------------


class Awaited:
    """An asynchronous store over one that waits; it may be cancelled before or after each request."""

    creates_tables = True

    def __init__(self, inner: SQLiteStore) -> None:
        self.inner = inner
        self.task: asyncio.Task[Any] | None = None
        self.at = -1
        self.when = ""
        self.sent = 0

    async def execute(self, requests: Sequence[Request]) -> list[Response]:
        answers: list[Response] = []
        for request in requests:
            self.sent += 1
            if self.task is not None and self.sent == self.at and self.when == "before":
                self.task.cancel()
                await asyncio.sleep(0)
            answers += self.inner.execute([request])
            if self.task is not None and self.sent == self.at and self.when == "after":
                self.task.cancel()
                await asyncio.sleep(0)
        return answers

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("when", ["before", "after"])
def test_it_may_be_cancelled_at_every_request(when: str) -> None:
    """What comes next goes on from a position that is behind nothing that was not applied."""

    async def cancelled(number: int) -> bool:
        inner = SQLiteStore(":memory:")
        awaited = Awaited(inner)
        graph = AsyncGraph(awaited, MODELS)
        with Graph(inner, MODELS) as g:
            happen(g)
            g.maintain(once=True)
            happen_again(g)
            await graph.create_table()
            awaited.sent, awaited.at, awaited.when = 0, number, when
            awaited.task = asyncio.ensure_future(graph.maintain(once=True))
            try:
                await awaited.task
                was_cancelled = False
            except asyncio.CancelledError:
                was_cancelled = True
            awaited.task = None
            await graph.maintain(once=True)
            check(g)
        return was_cancelled

    number = 1
    while asyncio.run(cancelled(number)):
        number += 29
    assert number > 60


def test_a_task_that_waits_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        waits: list[float] = []
        sleep = asyncio.sleep

        async def counted(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                task.cancel()
            await sleep(0)

        inner = SQLiteStore(":memory:")
        graph = AsyncGraph(Awaited(inner), MODELS)
        await graph.put_many([Customer(id="C1"), Placed(source="C1", target="I1")])
        monkeypatch.setattr("adjoin.async_graph.asyncio.sleep", counted)
        task = asyncio.ensure_future(graph.maintain(every=9.0))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert waits == [9.0, 9.0, 9.0]
        found = await graph.get(Customer, "C1")
        assert found is not None
        assert found.invoices == 1
        inner.close()

    asyncio.run(main())


def test_a_step_is_a_plan(g: Graph) -> None:
    """Nothing waits in it, and nothing but requests leaves it."""
    g.put_many([Customer(id="C1"), Placed(source="C1", target="I1")])
    daemon = Daemon(once=True)
    pauses = [run(daemon.step(g._layout), g._store)]
    while pauses[-1] is not None:
        pauses.append(run(daemon.step(g._layout), g._store))
    assert set(pauses) == {0.0, None}
    assert invoices(g) == 1
