"""What all connections may take together, by a clock that the test sets."""

from __future__ import annotations

from typing import cast

import pytest

from adjoin.errors import InvalidLocation
from adjoin.server.http import Bounds, Crowd


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


class Client:
    """A connection without a network: what it has to send, and what was done to it."""

    def __init__(self, crowd: Crowd, is_idle: bool = True) -> None:
        self.begun: float | None = None
        self.asked_at = crowd.now
        self.unsent = 0
        self.unsent_since = 0.0
        self.is_idle = is_idle
        self.to_send = 0
        self.done: list[str] = []
        self._crowd = crowd

    def waits_to_send(self) -> int:
        return self.to_send

    def overdue(self) -> None:
        self.done.append("overdue")
        self.begun = None

    def drop(self) -> None:
        self.done.append("dropped")
        self._crowd.left(self)

    def shut(self) -> None:
        raise NotImplementedError


@pytest.fixture
def clock() -> Clock:
    return Clock()


def crowd_of(clock: Clock, **bounds: float) -> Crowd:
    return Crowd(clock, Bounds(**cast(dict[str, int], bounds)))


def entered(crowd: Crowd, count: int, is_idle: bool = True) -> list[Client]:
    clients = [Client(crowd, is_idle) for _ in range(count)]
    assert all(crowd.enter(each) for each in clients)
    return clients


def test_a_request_has_its_time_from_when_it_began(clock: Clock) -> None:
    crowd = crowd_of(clock, seconds=10)
    slow, quick, idle = entered(crowd, 3)
    slow.begun, quick.begun = clock.time, clock.time + 1
    for seconds, done in ((9.5, []), (0.5, ["overdue"]), (0.5, ["overdue"])):
        clock.time += seconds
        crowd.look()
        assert slow.done == done
    assert (quick.done, idle.done) == ([], [])


def test_a_client_that_reads_nothing_is_dropped(clock: Clock) -> None:
    crowd = crowd_of(clock, seconds=10)
    stuck, slow = entered(crowd, 2)
    for second in range(30):
        stuck.to_send = 1000
        slow.to_send = 1000 - second
        crowd.look()
        clock.time += 1
    assert (stuck.done, slow.done) == (["dropped"], [])
    slow.to_send = 0
    crowd.look()
    slow.to_send = 1000
    for _ in range(10):
        crowd.look()
        clock.time += 1
    assert slow.done == [], "it had read everything in between"
    crowd.look()
    assert slow.done == ["dropped"]


def test_a_client_that_goes_on_to_ask_reads_what_it_gets(clock: Clock) -> None:
    crowd = crowd_of(clock, seconds=10)
    (client,) = entered(crowd, 1)
    client.to_send = 1000
    for _ in range(30):
        crowd.asked(client)
        crowd.look()
        clock.time += 1
    assert client.done == []


def test_who_asked_nothing_for_the_longest_time_makes_room(clock: Clock) -> None:
    crowd = crowd_of(clock, connections=3)
    first, second, third = entered(crowd, 3)
    for each in (first, third, second):
        clock.time += 1
        crowd.look()
        crowd.asked(each)
    first.is_idle = False
    entered(crowd, 1)
    assert [each.done for each in (first, second, third)] == [[], [], ["dropped"]]
    assert len(crowd.open) == 3


def test_there_is_no_room_if_everybody_waits_for_an_answer(clock: Clock) -> None:
    crowd = crowd_of(clock, connections=2)
    busy = entered(crowd, 2, is_idle=False)
    assert not crowd.enter(Client(crowd))
    assert len(crowd.open) == 2
    crowd.left(busy[0])
    assert crowd.enter(Client(crowd))


def test_bodies_are_bounded_together(clock: Clock) -> None:
    crowd = crowd_of(clock, held=100)
    assert crowd.hold(60)
    assert crowd.hold(40)
    assert not crowd.hold(1)
    assert crowd.hold(-61)
    assert crowd.hold(60)
    assert crowd.held == 100


def test_answers_are_bounded_together(clock: Clock) -> None:
    crowd = crowd_of(clock, unsent=100)
    clients = entered(crowd, 4)
    for each in clients:
        each.to_send = 30
        crowd.look()
        clock.time += 1
    assert [each.done for each in clients] == [["dropped"], [], [], []]
    crowd.look()
    assert [each.done for each in clients] == [["dropped"], [], [], []]


def test_who_asked_lately(clock: Clock) -> None:
    crowd = crowd_of(clock)
    one, other = entered(crowd, 2)
    crowd.asked(one)
    assert crowd.active == {one}
    crowd.look()
    assert crowd.active == {one}
    crowd.asked(other)
    crowd.look()
    assert crowd.active == {other}
    crowd.left(other)
    assert not crowd.active


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"connections": 0}, "max_connections must be at least 1, got 0"),
        ({"seconds": 0}, "request_timeout must be a number of seconds above 0, got 0"),
        ({"seconds": float("nan")}, "request_timeout must be"),
        ({"seconds": float("inf")}, "request_timeout must be"),
    ],
)
def test_bounds_that_nobody_can_keep(bounds: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidLocation, match=message):
        Bounds(**cast(dict[str, int], bounds))
