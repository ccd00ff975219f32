"""Whatever a call waits for, it ends by its deadline, with an error of ours: on a clock that nobody waits for."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pytest

from adjoin.errors import (
    AdjoinError,
    InvalidCredentials,
    OutcomeUnknown,
    ServiceFailed,
    ServiceUnreachable,
    Throttled,
)
from adjoin.expressions import Add, attribute
from adjoin.requests import (
    BatchGet,
    BatchWrite,
    CreateTable,
    Delete,
    DescribeTable,
    Get,
    ListTables,
    Put,
    Query,
    ReadChanges,
    Request,
    TransactGet,
    TransactWrite,
    Update,
)
from adjoin.stores.dynamodb import access as access_module
from adjoin.tables import KeyAttribute, TableDefinition
from tests.stores.dynamodb.virtual import Handle, Service
from tests.waiting import LIMIT

TIMEOUT, DEADLINE = 10.0, 30.0
KEY = {"PK": {"S": "a"}}
GET = Get("T", KEY)
ADD = Update("T", KEY, (Add(attribute("n"), {"N": "1"}),))
REQUESTS: dict[str, Request] = {
    "Get": GET,
    "Put": Put("T", KEY),
    "Delete": Delete("T", KEY),
    "Update that sets nothing": Update("T", KEY, ()),
    "Update that counts": ADD,
    "Query": Query("T", ("PK", {"S": "a"})),
    "BatchGet": BatchGet((GET,)),
    "BatchWrite": BatchWrite((Put("T", KEY),)),
    "TransactGet": TransactGet((GET,)),
    "TransactWrite": TransactWrite((Put("T", KEY),)),
    "TransactWrite that counts": TransactWrite((ADD,)),
    "DescribeTable": DescribeTable("T"),
    "CreateTable": CreateTable(TableDefinition("Table", KeyAttribute("PK", "S"))),
    "ListTables": ListTables(),
    "ReadChanges": ReadChanges("T", None, 10),
}
COUNTING = ("Update that counts", "TransactWrite that counts")


async def _request(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))


def saying(beginning: bytes, more: bytes = b"", pause: float = 0.5) -> Handle:
    """Every answer begins like that, and goes on with more, a bit at a time, or not at all."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await _request(reader)
            writer.write(beginning)
            while more and not writer.is_closing():
                await asyncio.sleep(pause)
                writer.write(more)
            await writer.drain()
            if b"Content-Length: 1000\r\n" in beginning or not beginning.endswith(b"}"):
                await reader.read()

    return handle


def answering(status: int, found: Any) -> Handle:
    body = json.dumps(found).encode()
    return saying(b"HTTP/1.1 %d Whatever\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)


async def _hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await _request(reader)


LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
SLOW: dict[str, Handle] = {
    "no answer": saying(b""),
    "stalls in the head": saying(b"HTTP/1.1 200 OK\r\nConte"),
    "stalls before the body": saying(LENGTH),
    "stalls in the body": saying(LENGTH + b'{"Item":'),
    "drips in the body": saying(LENGTH + b'{"Item":', b" "),
    "drips in the head": saying(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "drips in chunks": saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "goes on for ever": saying(b"HTTP/1.1 200 OK\r\n\r\n{", b" " * 99),
    "continues for ever": saying(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "hangs up": _hangs_up,
    "is HTML": saying(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n<html>} </html}"),
    "fails inside": answering(500, {"__type": "InternalServerError"}),
    "is unavailable": answering(503, {}),
}
REFUSALS: dict[str, tuple[Handle, type[AdjoinError]]] = {
    "throttled": (answering(400, {"__type": "ThrottlingException"}), Throttled),
    "throttled without a word": (answering(429, {}), Throttled),
}


class Opened(Protocol):
    def __call__(self, handle: Handle, **limits: float) -> Service: ...


@pytest.fixture(params=["sync", "async"])
def opened(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    services: list[Service] = []

    def opened(handle: Handle, **limits: float) -> Service:
        limits = {"timeout": TIMEOUT, "deadline": DEADLINE, **limits}
        services.append(Service(handle, request.param, monkeypatch, **limits))
        if "pipe" not in request.fixturenames:
            # A thread finds them, and the loop's clock does not wait for threads.
            services[-1].access.lookup().result(LIMIT)
        return services[-1]

    yield opened
    for each in services:
        each.close()


@pytest.mark.parametrize("asked", REQUESTS)
@pytest.mark.parametrize("how", SLOW)
def test_an_answer_that_does_not_come(opened: Opened, asked: str, how: str) -> None:
    service = opened(SLOW[how])
    expected = OutcomeUnknown if asked in COUNTING else ServiceUnreachable | ServiceFailed
    with pytest.raises(AdjoinError) as caught:
        service.execute([REQUESTS[asked]])
    assert isinstance(caught.value, expected)
    assert service.elapsed <= DEADLINE
    assert caught.value.retryable is (asked not in COUNTING)


@pytest.mark.parametrize("asked", REQUESTS)
@pytest.mark.parametrize("how", REFUSALS)
def test_an_answer_that_is_always_a_refusal(opened: Opened, asked: str, how: str) -> None:
    handle, expected = REFUSALS[how]
    service = opened(handle)
    with pytest.raises(expected):
        service.execute([REQUESTS[asked]])
    assert 1.0 < service.elapsed <= DEADLINE


def test_nobody_listens(opened: Opened) -> None:
    """Every attempt is refused at once, and there are many, until the deadline."""
    service = opened(SLOW["no answer"])
    service.stop_listening()
    with pytest.raises(ServiceUnreachable, match="cannot be reached"):
        service.execute([GET])
    assert 1.0 < service.elapsed <= DEADLINE


@pytest.mark.parametrize("how", ["no answer", "stalls in the body", "drips in the body"])
def test_one_attempt_ends_by_its_timeout(opened: Opened, how: str) -> None:
    service = opened(SLOW[how], timeout=2.0)
    with pytest.raises(OutcomeUnknown):
        service.execute([ADD])
    assert service.elapsed == pytest.approx(2.0, abs=0.01)
    assert service.connections == 1
    with pytest.raises(ServiceUnreachable):
        service.execute([GET])
    assert service.connections > 5


def test_many_requests_that_wait_for_few_connections(opened: Opened) -> None:
    """Also those that get none end by the deadline, and say so."""
    service = opened(SLOW["stalls in the body"], connections=2, timeout=60.0)
    with pytest.raises(ServiceUnreachable):
        service.execute([GET] * 9)
    assert service.elapsed <= DEADLINE
    assert service.connections <= 4


def test_waiting_for_a_connection_is_not_limited(opened: Opened) -> None:
    """A timeout is for an answer; whoever waits for a connection waits for the answers of others."""
    body = b'{"Count": 0, "ScannedCount": 0, "Items": []}'

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await _request(reader)
            await asyncio.sleep(0.9)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    service = opened(late, connections=1, timeout=1.0)
    assert len(service.execute([REQUESTS["Query"]] * 6)) == 6
    assert service.connections == 1
    assert service.elapsed == pytest.approx(6 * 0.9, abs=0.01)


# --- credentials ---------------------------------------------------------------------------------


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A program provides credentials: what somebody writes into a pipe, whenever that is."""
    pipe = tmp_path / "credentials"
    os.mkfifo(pipe)
    config = tmp_path / "config"
    config.write_text(f"[default]\ncredential_process = cat {pipe}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    yield pipe
    while any(map(is_looking, threading.enumerate())):
        # Whoever reads is told that nothing comes any more; some wait for those who read.
        with suppress(OSError):
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        time.sleep(0.01)


def reached(pipe: Path) -> int:
    """The pipe, open for writing, when somebody waits to read it."""
    while True:
        with suppress(OSError):
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.01)


def is_looking(thread: threading.Thread) -> bool:
    return thread.name == "adjoin credentials"


@pytest.mark.parametrize("asked", REQUESTS)
def test_credentials_that_do_not_come(opened: Opened, pipe: Path, asked: str) -> None:
    service = opened(SLOW["no answer"])
    with pytest.raises(InvalidCredentials, match="credentials could not be loaded in 30 s"):
        service.execute([REQUESTS[asked]])
    assert service.elapsed <= DEADLINE
    assert service.connections == 0


def test_nobody_looks_for_credentials_twice_at_once(opened: Opened, pipe: Path) -> None:
    service = opened(SLOW["no answer"])
    for _ in range(3):
        with pytest.raises(InvalidCredentials):
            service.execute([GET] * 5)
    assert sum(map(is_looking, threading.enumerate())) == 1


EXPIRED = answering(400, {"__type": "ExpiredTokenException", "message": "expired"})
GIVEN = (
    '{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "s", '
    '"SessionToken": "t", "Expiration": "2099-01-01T00:00:00Z"}'
)


@pytest.fixture
def expiring(opened: Opened, pipe: Path) -> Service:
    """The service refuses the credentials that were given once."""
    service = opened(EXPIRED)
    looking = service.access.lookup()
    pipe.write_text(GIVEN)
    assert looking.result(LIMIT).access_key == "a"
    return service


def test_expired_credentials_whose_renewal_hangs(expiring: Service) -> None:
    for request in (ADD, GET):
        with pytest.raises(InvalidCredentials, match="credentials could not be loaded in 30 s"):
            expiring.execute([request])
        assert expiring.elapsed <= DEADLINE
    # What was found first is good for whoever accepts it.
    assert expiring.access.credentials() is not None


def test_expired_credentials_whose_renewal_fails(expiring: Service, pipe: Path) -> None:
    renewing = expiring.access.lookup(expiring.access.credentials())
    pipe.write_text("nonsense")
    with pytest.raises(InvalidCredentials, match="credentials could not be loaded"):
        renewing.result(LIMIT)


def test_a_renewal_that_hung_is_given_up(expiring: Service, pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else is sent, and what he finds is used; the first one hangs on, and harms nobody."""
    access = expiring.access
    refused = access.credentials()
    hanging = access.lookup(refused)
    held = reached(pipe)
    given = pipe.with_name("given")
    given.write_text(GIVEN.replace('"a"', '"b"'))
    pipe.with_name("config").write_text(f"[default]\ncredential_process = cat {given}\n")
    assert access.lookup(refused) is hanging
    monkeypatch.setattr(access_module, "_GIVEN_UP", -1.0)
    assert access.lookup(refused).result(LIMIT).access_key == "b"
    assert not hanging.done()
    os.close(held)
    found = access.credentials()
    assert found is not None
    assert found.access_key == "b"
