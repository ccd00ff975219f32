"""Hooks before and after each round, and the log of requests: on both graphs, in blocks and for the whole process."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from adjoin import AdjoinError, AlreadyExists, AsyncGraph, Graph, InvalidValue, WatchedRound
from adjoin.requests import Get, Request, Response
from adjoin.runner import run
from adjoin.stores.sqlite.store import SQLiteStore
from tests.models import SCHOOL, Course, Enrollment


@pytest.fixture
def g() -> Graph:
    return Graph(":memory:", SCHOOL)


def course(id: str = "C1") -> Course:
    return Course(id=id, name="a secret", credits=1)


class Heard:
    """What hooks were told, in order."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, WatchedRound, float | None]] = []

    def before(self, round: WatchedRound) -> None:
        self.steps.append(("before", round, round.seconds))

    def after(self, round: WatchedRound) -> None:
        self.steps.append(("after", round, round.seconds))

    @property
    def rounds(self) -> list[WatchedRound]:
        return [round for step, round, _ in self.steps if step == "after"]


def test_before_and_after_get_the_same_round(g: Graph) -> None:
    heard = Heard()
    with g.watch(before=heard.before, after=heard.after), g.meter() as m:
        g.put(course())
        g.get(Course, "C1")
    g.get(Course, "C1")
    assert [step for step, _, _ in heard.steps] == ["before", "after"] * 2
    (_, begun, unknown), (_, ended, seconds), *_ = heard.steps
    assert begun is ended
    assert unknown is None
    assert seconds is not None
    assert seconds >= 0
    put, get = heard.rounds
    assert [(each.operation, each.tables, each.index, each.items) for each in put.outlines] == [
        ("PutItem", ("adjoin",), None, None)
    ]
    assert (put.system, put.error, len(put.responses)) == ("sqlite", None, 1)
    assert (put.rcu + get.rcu, put.wcu + get.wcu) == (m.rcu, m.wcu) != (0, 0)


def test_outlines_of_batches_and_indexes(g: Graph) -> None:
    heard = Heard()
    with g.watch(after=heard.after):
        g.put_many([course("C1"), course("C2")])
        list(g.into("C1", Enrollment))
    found = [each for round in heard.rounds for each in round.outlines]
    assert [(each.operation, each.index, each.items) for each in found] == [
        ("BatchWriteItem", None, 2),
        ("Query", "GSI1", None),
    ]
    assert found[0].wcu > 0
    assert found[1].rcu == 0.5


def test_a_round_that_fails_is_told_with_its_error(g: Graph) -> None:
    g.add(course())
    heard = Heard()
    with g.watch(before=heard.before, after=heard.after), pytest.raises(AlreadyExists):
        g.add(course())
    failed = heard.rounds[0]
    assert isinstance(failed.error, AdjoinError)
    assert failed.responses == ()
    assert [(each.operation, each.rcu, each.wcu) for each in failed.outlines] == [("PutItem", 0, 0)]


def test_nothing_is_sent_if_before_raises(g: Graph) -> None:
    def refuse(round: WatchedRound) -> None:
        raise PermissionError("not now")

    heard = Heard()
    with (
        g.watch(before=heard.before, after=heard.after),
        g.watch(before=refuse, after=lambda _: pytest.fail("it was not begun")),
        pytest.raises(PermissionError),
    ):
        g.put(course())
    assert g.get(Course, "C1") is None
    assert [step for step, _, _ in heard.steps] == ["before", "after"]
    assert isinstance(heard.rounds[0].error, PermissionError)


@pytest.mark.parametrize("error", [AlreadyExists("of the hook"), StopIteration(), ValueError("of the hook")])
def test_what_after_raises_reaches_the_caller_and_not_the_plan(g: Graph, error: Exception) -> None:
    """A plan that took it for the store's error would send again what was written."""
    calls: list[WatchedRound] = []

    def fail(round: WatchedRound) -> None:
        calls.append(round)
        raise error

    # Python turns a StopIteration in a generator into a RuntimeError.
    expected = RuntimeError if isinstance(error, StopIteration) else type(error)
    with g.watch(after=fail), pytest.raises(expected):
        g.put(course())
    assert len(calls) == 1
    assert g.get(Course, "C1") == course()


def test_requests_of_a_hook_are_not_watched(g: Graph) -> None:
    rounds: list[WatchedRound] = []

    def look(round: WatchedRound) -> None:
        rounds.append(round)
        assert g.get(Course, "C1") == course()

    with g.watch(after=look):
        g.put(course())
    assert len(rounds) == 1


def test_start_watches_other_threads_until_stop(g: Graph, tmp_path: Path) -> None:
    heard = Heard()
    watch = g.watch(after=heard.after).start()
    try:
        watch.start()
        thread = threading.Thread(target=lambda: Graph(tmp_path / "a.db", SCHOOL).close())
        thread.start()
        thread.join()
        assert "CreateTable" in [each.operation for round in heard.rounds for each in round.outlines]
        number = len(heard.rounds)
        g.put(course())
        assert len(heard.rounds) == number + 1
    finally:
        watch.stop()
    g.put(course())
    watch.stop()
    assert len(heard.rounds) == number + 1


def test_tasks_that_start_in_the_block() -> None:
    async def main() -> list[WatchedRound]:
        heard = Heard()
        async with AsyncGraph(":memory:", SCHOOL) as g:
            with g.watch(before=heard.before, after=heard.after):
                await asyncio.gather(*(g.put(course(str(number))) for number in range(5)))
            await g.put(course())
        assert len({id(round) for _, round, _ in heard.steps}) == 5 == len(heard.steps) // 2
        return heard.rounds

    assert {round.outlines[0].operation for round in asyncio.run(main())} == {"PutItem"}


class Interrupted(SQLiteStore):
    """A store in which Ctrl-C is pressed."""

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        raise KeyboardInterrupt


def test_a_round_that_is_interrupted_is_told(g: Graph) -> None:
    def plan() -> Any:
        yield [Get("adjoin", {"PK": {"S": "a"}, "SK": {"S": "a"}})]

    heard = Heard()
    with g.watch(after=heard.after), pytest.raises(KeyboardInterrupt):
        run(plan(), Interrupted(":memory:"))
    assert [type(round.error) for round in heard.rounds] == [KeyboardInterrupt]


def test_explain_is_not_told(g: Graph) -> None:
    heard = Heard()
    with g.watch(before=heard.before, after=heard.after):
        g.explain(g.put, course())
    assert heard.steps == []


def test_a_hook_that_cannot_be_called_is_refused(g: Graph) -> None:
    with pytest.raises(InvalidValue, match="after must be a function that takes a round, got 1"):
        g.watch(after=1)  # type: ignore[arg-type]


# --- the log -----------------------------------------------------------------------------------


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert {(record.name, record.levelname) for record in caplog.records} <= {("adjoin.requests", "DEBUG")}
    return [record.getMessage().rpartition(",")[0] for record in caplog.records]


def test_requests_are_logged_without_keys_and_values(g: Graph, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "adjoin")
    g.add(course("C77"))
    list(g.into("C77", Enrollment))
    with pytest.raises(AlreadyExists):
        g.add(course("C77"))
    assert logged(caplog) == [
        "PutItem adjoin: 0 RCU, 1 WCU",
        "Query adjoin, index GSI1: 0.5 RCU, 0 WCU",
        "PutItem adjoin: failed with ConditionFailed",
    ]
    assert caplog.records[0].getMessage().endswith(" ms")
    assert "C77" not in caplog.text
    assert "secret" not in caplog.text


def test_nothing_is_logged_or_watched_at_the_level_above(
    g: Graph, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "adjoin")
    monkeypatch.setattr("adjoin.runner.watched", lambda *_: pytest.fail("nobody watches"))
    g.put(course())
    assert caplog.records == []
