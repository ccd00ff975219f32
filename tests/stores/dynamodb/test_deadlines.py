"""A service that never gets better: a named error. That it comes by the deadline is shown in `test_waiting`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from adjoin import (
    AdjoinError,
    AsyncGraph,
    Graph,
    OutcomeUnknown,
    ServiceFailed,
    ServiceUnreachable,
    Throttled,
    TransactionCanceled,
    TransactionConflict,
    field,
)
from tests.models import SCHOOL, Course, Student
from tests.stores.dynamodb.misbehaving import (
    BAD_GATEWAY,
    CUT_SHORT,
    DAMAGED,
    DRIPPING,
    DROPPED,
    DROPPED_AFTER,
    FAILED,
    FAILED_AFTER,
    IN_PROGRESS,
    NO_JSON,
    REQUEST_ID,
    SILENT,
    THROTTLED,
    UNAVAILABLE,
    MisbehavingServer,
    Misbehaviour,
    canceled,
    error,
    names,
)

CONFLICT = canceled("None", "TransactionConflict")
SILENCE = 0.25
"""Seconds after which an answer that does not come is given up, where every answer is one."""


@pytest.fixture(autouse=True)
def _waits_pass(waits_pass: None) -> None:
    """Deadlines come after some attempts here, and not by the clock."""


@pytest.fixture
def short(location: str, behind: Graph) -> Iterator[Graph]:
    with Graph(location, SCHOOL) as graph:
        yield graph


@pytest.fixture
def impatient(location: str, behind: Graph) -> Iterator[Graph]:
    """Gives up an answer that does not come, and soon the call, which a busy machine may do to it as well."""
    given = location.replace("timeout=10&deadline=30", f"timeout={SILENCE}&deadline={8 * SILENCE}")
    for _ in range(9):
        with suppress(ServiceUnreachable), Graph(given, SCHOOL) as graph:
            yield graph
            return
    with Graph(given, SCHOOL) as graph:
        yield graph


ENDS: list[tuple[Misbehaviour, type[AdjoinError], str | None]] = [
    (THROTTLED, Throttled, REQUEST_ID),
    (error(400, "ThrottlingException"), Throttled, REQUEST_ID),
    (error(400, "TransactionConflictException"), TransactionConflict, REQUEST_ID),
    (FAILED, ServiceFailed, REQUEST_ID),
    (UNAVAILABLE, ServiceFailed, REQUEST_ID),
    (BAD_GATEWAY, ServiceFailed, None),
    (DROPPED, ServiceUnreachable, None),
    (CUT_SHORT, ServiceUnreachable, None),
]


@pytest.mark.parametrize(("how", "kind", "request_id"), ENDS, ids=names(how for how, _, _ in ENDS))
def test_what_it_ends_with(
    short: Graph,
    server: MisbehavingServer,
    how: Misbehaviour,
    kind: type[AdjoinError],
    request_id: str | None,
    name: str,
) -> None:
    server.misbehave_always(how)
    with pytest.raises(kind) as caught:
        short.put(Course(id=name))
    assert type(caught.value) is kind
    assert caught.value.retryable
    assert caught.value.request_id == request_id
    assert len(server.calls) > 1


@pytest.mark.parametrize("how", [SILENT, DRIPPING], ids=names([SILENT, DRIPPING]))
def test_answers_that_never_come(impatient: Graph, server: MisbehavingServer, how: Misbehaviour, name: str) -> None:
    server.misbehave_always(how)
    with pytest.raises(ServiceUnreachable) as caught:
        impatient.put(Course(id=name))
    assert type(caught.value) is ServiceUnreachable
    assert caught.value.retryable
    assert caught.value.request_id is None
    assert len(server.calls) > 1


def test_damaged_answers_keep_their_request_id(short: Graph, server: MisbehavingServer) -> None:
    for how in (DAMAGED, NO_JSON):
        server.misbehave_always(how)
        with pytest.raises(ServiceUnreachable) as caught:
            short.get(Course, "maths")
        assert caught.value.request_id


def test_nobody_listens(table: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        # The port stays taken, so that no server of another test can get it.
        with pytest.raises(ServiceUnreachable, match="cannot be reached") as caught:
            Graph(f"dynamodb://{table}?endpoint=http://127.0.0.1:{port}&deadline=10", SCHOOL)
    assert caught.value.retryable


def test_requests_of_an_asynchronous_graph_end_too(location: str, behind: Graph, server: MisbehavingServer) -> None:
    async def ask() -> None:
        async with AsyncGraph(location, SCHOOL) as graph:
            server.misbehave_always(THROTTLED)
            found = await asyncio.gather(*(graph.get(Course, f"c{each}") for each in range(50)), return_exceptions=True)
            assert {type(each) for each in found} == {Throttled}

    asyncio.run(ask())


# --- transactions that ran out of time ---------------------------------------------------------


@pytest.mark.parametrize("how", [DROPPED, DROPPED_AFTER, FAILED_AFTER], ids=lambda how: how.name)
@pytest.mark.parametrize("then", [DROPPED, THROTTLED, IN_PROGRESS, CONFLICT], ids=lambda how: how.name)
def test_a_transaction_that_would_count_twice_if_it_was_called_again(
    short: Graph, behind: Graph, server: MisbehavingServer, how: Misbehaviour, then: Misbehaviour, name: str
) -> None:
    behind.put(Course(id=name, credits=1))
    server.choose = lambda call: how if call.number == 0 else then
    server.calls.clear()
    with pytest.raises(OutcomeUnknown, match="calling again could apply it twice") as caught, short.transaction() as t:
        t.update(Course, name, credits=field("credits") + 1)
        t.put(Student(id=name, name="Ann"))
    assert not caught.value.retryable
    assert behind.get(Course, name) == Course(id=name, credits=2 if how.applied else 1)


def test_a_transaction_that_may_be_called_again(short: Graph, server: MisbehavingServer, name: str) -> None:
    server.misbehave_always(DROPPED_AFTER)
    with pytest.raises(ServiceUnreachable) as caught, short.transaction() as t:
        t.put(Course(id=name))
        t.update(Course, f"{name}-2", name="set")
    assert caught.value.retryable


def test_conflicts_are_waited_for(short: Graph, behind: Graph, server: MisbehavingServer, name: str) -> None:
    behind.put(Course(id=name, credits=1))
    for how in (CONFLICT, IN_PROGRESS, canceled("ThrottlingError", "None")):
        server.misbehave(how, how)
        with short.transaction() as t:
            t.update(Course, name, credits=field("credits") + 1)
            t.put(Student(id=name, name="Ann"))
    assert behind.get(Course, name) == Course(id=name, credits=4)
    server.misbehave_always(CONFLICT)
    with pytest.raises(TransactionCanceled, match=f"put Student '{name}'") as caught, short.transaction() as t:
        t.update(Course, name, credits=field("credits") + 1)
        t.put(Student(id=name, name="Ann"))
    assert caught.value.retryable
    assert caught.value.request_id == REQUEST_ID
    server.misbehave(canceled("ConditionalCheckFailed", "TransactionConflict"))
    server.calls.clear()
    with pytest.raises(TransactionCanceled) as caught, short.transaction() as t:
        t.update(Course, name, credits=field("credits") + 1)
        t.put(Student(id=name, name="Ann"))
    assert not caught.value.retryable
    assert len(server.calls) == 1


# --- errors that are not waited for ------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "ValidationException", "InvalidRequest"),
        (400, "AccessDeniedException", "AccessDenied"),
        (400, "UnrecognizedClientException", "InvalidCredentials"),
        (400, "ResourceNotFoundException", "TableNotFound"),
        (400, "ItemCollectionSizeLimitExceededException", "CollectionTooLarge"),
        (400, "NovelException", "InvalidRequest"),
    ],
)
def test_refusals_are_named_at_once(
    short: Graph, server: MisbehavingServer, status: int, code: str, kind: str, name: str
) -> None:
    server.misbehave_always(error(status, code))
    server.calls.clear()
    with pytest.raises(AdjoinError, match=code) as caught:
        short.put(Course(id=name))
    assert type(caught.value).__name__ == kind
    assert caught.value.request_id == REQUEST_ID
    assert len(server.calls) == 1
    # A refusal after a lost answer is the same refusal.
    server.misbehave(DROPPED, error(status, code))
    with pytest.raises(AdjoinError, match=code) as caught:
        short.put(Course(id=name))
    assert type(caught.value).__name__ == kind
