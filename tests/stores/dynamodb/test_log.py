"""What the client logs: retries, and that the service throttles; never a key or a value."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from adjoin.cli import _warned
from adjoin.errors import ServiceUnreachable, Throttled
from adjoin.stores.dynamodb.client import Backoff, Waits, tell_retry
from tests.models import Course
from tests.stores.dynamodb.misbehaving import DROPPED, THROTTLED, MisbehavingServer, Misbehaviour, canceled, unprocessed

ALL = unprocessed(1.0)


def test_the_command_line_says_that_nobody_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once per call, after some attempts; what is throttled is not worth a line."""
    # pytest has handlers of its own.
    monkeypatch.setattr(logging.root, "handlers", [])
    unreachable = ServiceUnreachable("http://127.0.0.1:9/ cannot be reached")
    with _warned():
        for made in range(1, 10):
            tell_retry("ListTables", unreachable, Waits(Backoff(30.0), lambda: 0.0, made=made), 0.05)
            tell_retry("ListTables", Throttled("slow down"), Waits(Backoff(30.0), lambda: 0.0, made=made), 0.05)
    assert capsys.readouterr().err == "adjoin: http://127.0.0.1:9/ cannot be reached; trying again for up to 30 s\n"
    tell_retry("ListTables", unreachable, Waits(Backoff(30.0), made=5), 0.05)
    assert capsys.readouterr().err == ""


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int, str]]:
    """The logged messages up to the colon, since waits are random."""
    return [
        (record.name, record.levelno, record.getMessage().partition(":")[0])
        for record in caplog.records
        if record.name.startswith("adjoin")
    ]


@pytest.mark.parametrize(
    ("how", "level", "words"),
    [
        (THROTTLED, logging.WARNING, "PutItem was throttled (Throttled)"),
        (DROPPED, logging.INFO, "PutItem is sent again (ServiceUnreachable)"),
    ],
)
def test_a_retry(
    g: Any,
    server: MisbehavingServer,
    name: str,
    caplog: pytest.LogCaptureFixture,
    how: Misbehaviour,
    level: int,
    words: str,
) -> None:
    caplog.set_level(logging.INFO, "adjoin")
    server.misbehave(how, how, operation="PutItem")
    g.put(Course(id=name, name="a secret", credits=1))
    assert told(caplog) == [("adjoin.dynamodb", level, words)] * 2
    first, second = (record.getMessage() for record in caplog.records if record.name.startswith("adjoin"))
    assert ": attempt 2 in " in first
    assert ": attempt 3 in " in second
    assert name not in caplog.text
    assert "a secret" not in caplog.text


@pytest.mark.parametrize(
    ("code", "level", "words"),
    [
        ("ThrottlingError", logging.WARNING, "TransactWriteItems was throttled (TransactionCanceled)"),
        ("TransactionConflict", logging.INFO, "TransactWriteItems is sent again (TransactionCanceled)"),
    ],
)
def test_a_canceled_transaction(
    g: Any,
    server: MisbehavingServer,
    name: str,
    caplog: pytest.LogCaptureFixture,
    code: str,
    level: int,
    words: str,
) -> None:
    caplog.set_level(logging.INFO, "adjoin")
    g.put_many([Course(id=f"{name}-{number}", name="x", credits=1) for number in range(2)])
    server.misbehave(canceled("None", code), operation="TransactWriteItems")
    with g.transaction() as t:
        for number in range(2):
            t.put(Course(id=f"{name}-{number}", name="y", credits=1))
    assert told(caplog) == [("adjoin.dynamodb", level, words)]


def test_a_batch_of_which_nothing_was_taken(
    g: Any, server: MisbehavingServer, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "adjoin")
    server.misbehave(ALL, operation="BatchWriteItem")
    g.put_many([Course(id=f"{name}-{number}", name="x", credits=1) for number in range(3)])
    assert told(caplog) == [("adjoin.dynamodb", logging.WARNING, "BatchWriteItem was throttled (Throttled)")]


def test_nothing_is_logged_about_calls_that_succeed(g: Any, name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "adjoin")
    g.put(Course(id=name, name="x", credits=1))
    assert told(caplog) == []
