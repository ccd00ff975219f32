"""Which writes are committed together: the groups of the writer, with a loop of events that is turned by hand."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from adjoin.requests import BatchWrite, CreateTable, Delete, Put, Request
from adjoin.server.service import _MOST_WRITTEN, _Writer
from tests.stores.examples import PLAIN, item


class Loop:
    """Has what the writer calls of a loop of events."""

    def __init__(self) -> None:
        self.calls: deque[Callable[[], None]] = deque()

    def call_soon(self, call: Callable[..., None], *given: Any) -> None:
        self.calls.append(lambda: call(*given))

    call_soon_threadsafe = call_soon

    def turn(self) -> None:
        """Makes the calls that wait now."""
        for _ in range(len(self.calls)):
            self.calls.popleft()()


class Crowd:
    def __init__(self, active: int) -> None:
        self.active = range(active)


class Group:
    def __init__(self, requests: list[Request]) -> None:
        self.outcomes = requests

    def commit(self) -> None:
        pass


class Groups:
    """A store that notes which writes it is given together."""

    waits_for_disk = False

    def __init__(self) -> None:
        self.begun: list[list[Request]] = []
        self.fails = False

    def begin(self, requests: list[Request]) -> Group:
        if self.fails:
            raise OSError("no disk")
        self.begun.append(requests)
        return Group(requests)

    def outcomes(self, requests: list[Request]) -> list[Request]:
        self.begun.append(requests)
        return requests

    @property
    def sizes(self) -> list[int]:
        return [len(requests) for requests in self.begun]


class Writing:
    """A writer and what is around it."""

    def __init__(self, active: int) -> None:
        self.store, self.loop = Groups(), Loop()
        self.answers: list[Any] = []
        self.writer = _Writer(cast(Any, self.store), cast(Any, self.loop), cast(Any, Crowd(active)))

    def write(self, *requests: Request) -> None:
        for request in requests:
            self.writer.write(request, self.answers.append)

    def turn(self, times: int = 1) -> list[int]:
        """Turns the loop; returns how large the groups were until now."""
        for _ in range(times):
            self.loop.turn()
        return self.store.sizes


@pytest.fixture
def writing() -> Iterator[Callable[[int], Writing]]:
    made: list[Writing] = []

    def make(active: int) -> Writing:
        made.append(Writing(active))
        return made[-1]

    yield make
    for each in made:
        each.writer._tasks.put(None)
        each.writer._thread.join()


def put(number: int) -> Put:
    return Put("Plain", item("a", str(number)))


def test_a_group_begins_when_every_client_has_a_write_in_it(writing: Callable[[int], Writing]) -> None:
    three = writing(3)
    three.write(put(1), put(2))
    assert three.turn(0) == []
    three.write(put(3))
    assert three.turn() == [3]
    assert three.answers == [put(1), put(2), put(3)]


def test_a_group_begins_when_a_turn_brings_no_more(writing: Callable[[int], Writing]) -> None:
    many = writing(9)
    many.write(put(1))
    many.write(put(2))
    # The first turn has brought one more than there was at first.
    assert many.turn() == []
    many.write(put(3))
    assert many.turn() == []
    assert many.turn() == [3]
    many.write(put(4))
    assert many.turn() == [3, 1], "what comes later begins anew"


def test_each_group_waits_for_a_turn_of_its_own(writing: Callable[[int], Writing]) -> None:
    many = writing(9)
    many.write(put(1))
    assert many.turn() == [1]
    many.write(put(2))
    assert many.turn(0) == [1], "as many wait as before the last group, and others may come"
    many.write(put(3))
    assert many.turn(2) == [1, 2]


def test_who_is_alone_is_not_kept_waiting(writing: Callable[[int], Writing]) -> None:
    alone = writing(1)
    alone.write(put(1))
    assert (alone.turn(0), alone.answers) == ([1], [put(1)])
    alone.write(put(2))
    assert (alone.turn(0), alone.answers) == ([1, 1], [put(1), put(2)])


def test_a_group_has_a_greatest_number_of_items(writing: Callable[[int], Writing]) -> None:
    crowd = writing(1000)
    batch = BatchWrite(tuple(put(number) for number in range(_MOST_WRITTEN // 2)))
    crowd.write(batch, batch, batch, put(1), Delete("Plain", item("a", "2")))
    assert crowd.turn(2) == [2]
    assert crowd.turn(2) == [2, 3]


def test_a_full_group_begins_at_once(writing: Callable[[int], Writing]) -> None:
    crowd = writing(1000)
    crowd.write(*(put(number) for number in range(_MOST_WRITTEN)))
    assert crowd.turn() == [_MOST_WRITTEN]


def test_no_group_is_too_small_for_one_request(writing: Callable[[int], Writing]) -> None:
    one = writing(1)
    one.write(BatchWrite(tuple(put(number) for number in range(_MOST_WRITTEN + 1))), put(1))
    assert one.turn(3) == [1, 1]


def test_all_writes_of_a_group_that_fails_are_told_so(writing: Callable[[int], Writing]) -> None:
    two = writing(2)
    two.store.fails = True
    two.write(put(1), put(2))
    two.turn()
    assert [str(each) for each in two.answers] == ["no disk", "no disk"]
    two.store.fails = False
    two.write(put(3), put(4))
    two.turn()
    assert two.answers[2:] == [put(3), put(4)]


def test_changes_of_tables_are_left_to_the_other_thread(writing: Callable[[int], Writing]) -> None:
    two = writing(2)
    two.write(CreateTable(PLAIN), put(1))
    two.turn()
    two.writer._tasks.put(None)
    two.writer._thread.join()
    assert two.answers == []
    two.turn()
    assert two.answers == [CreateTable(PLAIN), put(1)]


def test_closing_waits_for_all_writes(writing: Callable[[int], Writing]) -> None:
    two = writing(9)
    two.write(put(1))

    async def close() -> None:
        closing = asyncio.ensure_future(two.writer.close())
        await asyncio.sleep(0)
        assert not closing.done()
        two.turn()
        await closing

    asyncio.run(close())
    assert two.answers == [put(1)]


def test_the_other_thread_does_not_keep_a_program_from_ending(writing: Callable[[int], Writing]) -> None:
    assert writing(1).writer._thread.daemon
