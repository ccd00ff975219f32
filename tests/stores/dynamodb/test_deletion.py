"""Deleting a node with many edges, with a fault at every request of it, one after the other."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import AdjoinError, Graph, OutcomeUnknown
from adjoin.layouts.interface import DELETING
from adjoin.requests import Scan
from adjoin.stores.dynamodb import store as store_module
from adjoin.stores.dynamodb.client import Backoff
from tests.models import SCHOOL, Course, Enrollment, Friendship, Student
from tests.stores.dynamodb.misbehaving import (
    CUT_SHORT,
    DROPPED,
    DROPPED_AFTER,
    FAILED_AFTER,
    THROTTLED,
    MisbehavingServer,
    Misbehaviour,
    unprocessed,
)

WAYS = (THROTTLED, DROPPED, DROPPED_AFTER, FAILED_AFTER, CUT_SHORT)


def fill(behind: Graph, hub: str, edges: int) -> list[Any]:
    made: list[Any] = [Enrollment(source=hub, target=f"{hub}-{each}") for each in range(0, edges, 2)]
    made += [Friendship(source=hub, target=f"{hub}-{each}") for each in range(1, edges, 2)]
    behind.put_many([Student(id=hub, name="Hub"), *made])
    return made


def leftovers(behind: Graph, table: str, hub: str) -> list[Any]:
    page: Any = behind._store.execute((Scan(table),))[0]
    return [item for item in page.items if hub in str(item) or DELETING in item]


SMALL, LARGE = 10, 70
"""Edges that fit one transaction with their node, and edges that do not: half of them are two items each."""

CASES = [(how, edges) for edges in (0, SMALL) for how in WAYS] + [(DROPPED_AFTER, LARGE)]


@pytest.mark.parametrize(("how", "edges"), CASES, ids=[f"{how.name}, {edges} edges" for how, edges in CASES])
def test_a_fault_at_every_request(
    location: str,
    quick: None,
    behind: Graph,
    table: str,
    server: MisbehavingServer,
    how: Misbehaviour,
    edges: int,
    name: str,
) -> None:
    """All is repeated inside the store: one call deletes everything, and says so."""
    with Graph(location, SCHOOL) as g:
        for number in range(1000):
            fill(behind, name, edges)
            server.calls.clear()
            server.misbehave_at(number, how)
            assert g.delete(Student, name) is True
            assert leftovers(behind, table, name) == []
            if len(server.calls) <= number:
                break
        assert number >= 2


def test_given_up_at_every_request_and_run_again(
    location: str,
    waits_pass: None,
    behind: Graph,
    table: str,
    server: MisbehavingServer,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server is gone from some request on: nobody sees half of it, and running it again finishes it."""
    # A request that fails is given up after a few attempts, and one that takes its time on a busy machine is not.
    monkeypatch.setattr(store_module, "Backoff", lambda _: Backoff(deadline=10, first=8, longest=8))
    with Graph(location, SCHOOL) as g:
        for number in range(1000):
            made = fill(behind, name, LARGE)
            server.calls.clear()
            server.choose = lambda call, at=number: DROPPED_AFTER if call.number >= at else None  # type: ignore[misc]
            if not given_up(g, name):
                break
            server.behave()
            seen = [*behind.out(name, Enrollment), *behind.out(name, Friendship)]
            assert (behind.get(Student, name) is not None, len(seen)) in ((True, len(made)), (False, 0)), number
            behind.delete(Student, name)
            assert leftovers(behind, table, name) == []
        assert number > 5


def given_up(g: Graph, name: str) -> bool:
    try:
        g.delete(Student, name)
    except AdjoinError as error:
        if not error.retryable and not isinstance(error, OutcomeUnknown):
            raise
        return True
    return False


def test_batches_left_over(
    location: str, quick: None, behind: Graph, table: str, server: MisbehavingServer, name: str
) -> None:
    with Graph(location, SCHOOL) as g:
        fill(behind, name, 150)
        behind.put(Course(id=name))
        server.misbehave_always(unprocessed(0.5), "BatchWriteItem", "BatchGetItem")
        assert g.delete(Student, name) is True
        assert [item["PK"]["S"] for item in leftovers(behind, table, name)] == [f"COURSE#{name}"]
