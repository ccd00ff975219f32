"""Batches of which something is left over: everything arrives, once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adjoin import Graph, Throttled
from adjoin.stores.dynamodb.client import Backoff, Waits
from tests.models import SCHOOL, Course
from tests.stores.dynamodb.misbehaving import (
    CUT_SHORT,
    DROPPED,
    DROPPED_AFTER,
    FAILED_AFTER,
    THROTTLED,
    Call,
    MisbehavingServer,
    Misbehaviour,
    error,
    unprocessed,
)

HALF, ALL = unprocessed(0.5), unprocessed(1.0)


def courses(name: str, number: int) -> list[Course]:
    return [Course(id=f"{name}-{each}", name="x" * (each % 50), credits=each) for each in range(number)]


def test_a_thousand_with_half_of_each_batch_left_over(
    g: Any, behind: Graph, server: MisbehavingServer, name: str
) -> None:
    made = courses(name, 1000)
    server.misbehave_always(HALF, "BatchWriteItem")
    progress: list[int] = []
    assert g.put_many(made, progress=progress.append) == 1000
    assert progress == [400, 800, 1000]
    server.behave()
    ids = [course.id for course in made]
    assert behind.get_many(Course, ids) == made
    server.misbehave_always(HALF, "BatchGetItem")
    assert g.get_many(Course, [*ids, "nobody"]) == [*made, None]


def test_batches_that_misbehave_in_every_way(g: Any, behind: Graph, server: MisbehavingServer, name: str) -> None:
    made = courses(name, 300)
    ways = (HALF, DROPPED_AFTER, ALL, None, THROTTLED, CUT_SHORT, HALF, DROPPED, FAILED_AFTER, ALL)

    def choose(call: Call) -> Misbehaviour | None:
        return ways[call.number % len(ways)]

    server.choose = choose
    assert g.put_many(made) == 300
    assert g.get_many(Course, [course.id for course in made]) == made
    server.behave()
    assert behind.get_many(Course, [course.id for course in made]) == made


def test_every_item_is_sent_until_it_is_taken_and_not_again(g: Any, server: MisbehavingServer, name: str) -> None:
    server.misbehave(HALF, HALF, operation="BatchWriteItem")
    g.put_many(courses(name, 20))
    batches = [items for call in server.calls for items in call.payload["RequestItems"].values()]
    assert [len(batch) for batch in batches] == [20, 10, 5]
    assert len({json.dumps(each) for batch in batches for each in batch}) == 20


@pytest.fixture
def by_calls(location: str, server: MisbehavingServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a deadline of a minute passes by calls, each of which takes four seconds, and not by the clock."""

    def attempts(backoff: Backoff, *_: object) -> Waits:
        return Waits(backoff, lambda: 4.0 * len(server.calls))

    monkeypatch.setattr("adjoin.stores.dynamodb.client.Waits", attempts)
    return location.replace("deadline=30", "deadline=60")


@pytest.mark.parametrize("how", [ALL, THROTTLED, error(400, "ThrottlingException")], ids=lambda how: how.name)
def test_nothing_is_ever_taken(
    by_calls: str, quick: None, server: MisbehavingServer, how: Misbehaviour, name: str
) -> None:
    with Graph(by_calls, SCHOOL) as g:
        server.misbehave_always(how)
        with pytest.raises(Throttled, match="raise the table's throughput") as caught:
            g.put_many(courses(name, 20))
        assert caught.value.retryable
        with pytest.raises(Throttled):
            g.get_many(Course, ["a", "b"])
        assert len(server.calls) > 4


def test_little_is_taken_for_longer_than_the_deadline(
    by_calls: str, quick: None, behind: Graph, server: MisbehavingServer, name: str
) -> None:
    """As long as something goes forward, it goes on: one item a deadline is enough."""
    taken = [0]

    def choose(call: Call) -> Misbehaviour | None:
        taken[0] += 1
        return unprocessed(0.9) if taken[0] % 12 == 0 else ALL

    with Graph(by_calls, SCHOOL) as g:
        server.choose = choose
        g.put_many(courses(name, 10))
    assert len([each for each in behind.get_many(Course, [f"{name}-{each}" for each in range(10)]) if each]) == 10
