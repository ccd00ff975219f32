"""Connections to a real server: what each may take, what all may take, and how they end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import socket
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from adjoin.server import http, serving
from adjoin.server.http import MOST_WAITING, UNCOUNTED, Bounds, Connection, Crowd
from adjoin.server.negotiation import Admission
from adjoin.server.serving import Server, serve
from adjoin.stores.sqlite import SQLiteStore
from tests.server.test_serving import _HEAD, ONE, TABLE, client
from tests.waiting import LIMIT, until


@pytest.fixture
def server(loop: None, tmp_path: Path) -> Iterator[Server]:
    with serve(tmp_path / "graph.db", durability="process") as opened:
        yield opened


def connected(server: Server) -> socket.socket:
    host, port = server.endpoint.removeprefix("http://").split(":")
    opened = socket.create_connection((host, int(port)), timeout=LIMIT)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def bounded(bounds: Bounds) -> Server:
    return Server(SQLiteStore(":memory:"), "127.0.0.1", 0, bounds=bounds)


def request(target: str, body: dict[str, Any]) -> bytes:
    content = json.dumps(body).encode()
    return _HEAD.replace(b"ListTables", target.encode()) + b"Content-Length: %d\r\n\r\n%b" % (len(content), content)


def rest(connection: socket.socket) -> bytes:
    """Everything until the server ends the connection."""
    received = b""
    while piece := connection.recv(65536):
        received += piece
    return received


def answers(server: Server) -> bool:
    with connected(server) as other:
        other.sendall(ONE)
        return other.recv(65536).startswith(b"HTTP/1.1 200 OK")


def open_connections(server: Server) -> list[Connection]:
    return cast(list[Connection], list(server._crowd.open))


# --- one connection ----------------------------------------------------------------------------


def test_a_chunk_below_nothing_stops_nobody(server: Server) -> None:
    for signed in (b"", b"Authorization: x\r\n"):
        with connected(server) as connection:
            connection.sendall(
                b"POST / HTTP/1.1\r\nHost: localhost\r\n" + signed + b"Transfer-Encoding: chunked\r\n\r\n-6\r\n"
            )
            received = rest(connection)
        assert received.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert b"\r\nConnection: close\r\n" in received
        assert received.endswith(b"the request is not valid HTTP/1.1: invalid character in chunk size")
        assert answers(server)


def test_what_was_right_is_answered_before_what_was_not_is_refused(server: Server) -> None:
    client(server).create_table(**TABLE)
    item = {"PK": {"S": "a"}, "SK": {"S": "b"}}
    put = request("PutItem", {"TableName": "Things", "Item": item, "ReturnConsumedCapacity": "TOTAL"})
    with connected(server) as connection:
        connection.sendall(put + ONE + put + b"nonsense" + ONE)
        said = [part.split(b" ")[0] for part in rest(connection).split(b"HTTP/1.1 ")[1:]]
    assert said == [b"200", b"200", b"200", b"400"]


def test_a_client_is_told_to_send_its_body_when_it_is_its_turn(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client(server).create_table(**TABLE)
    put = request("PutItem", {"TableName": "Things", "Item": {"PK": {"S": "a"}, "SK": {"S": "b"}}})
    writer = server._service._writer
    waiting: list[Any] = []
    monkeypatch.setattr(writer, "write", lambda asked, done: waiting.append((asked, done)))
    with connected(server) as connection:
        connection.sendall(put + _HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        until(lambda: waiting)
        monkeypatch.undo()
        assert server._loop is not None
        server._loop.call_soon_threadsafe(writer.write, *waiting[0])
        received = b""
        while b"100 Continue\r\n\r\n" not in received:
            received += connection.recv(65536) or pytest.fail(f"the connection ended after {received!r}")
        assert received.startswith(b"HTTP/1.1 200 OK\r\n")
        assert received.endswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        connection.sendall(b"{}")
        received = connection.recv(65536)
        assert received.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b'{"TableNames":["Things"]}' in received


def test_an_offer_of_another_protocol_is_not_taken(server: Server) -> None:
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n"
    with connected(server) as connection:
        for _ in range(2):
            connection.sendall(_HEAD + offer + b"Content-Length: 2\r\n\r\n{}")
            assert connection.recv(65536).endswith(b'{"TableNames":[]}')


def test_who_sends_no_more_gets_its_answers(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client(server).create_table(**TABLE)
    writer = server._service._writer
    waiting: list[Any] = []
    monkeypatch.setattr(writer, "write", lambda asked, done: waiting.append((asked, done)))
    with connected(server) as connection:
        connection.sendall(request("PutItem", {"TableName": "Things", "Item": {"PK": {"S": "a"}, "SK": {"S": "b"}}}))
        connection.shutdown(socket.SHUT_WR)
        until(lambda: any(each._ended for each in open_connections(server)))
        monkeypatch.undo()
        assert server._loop is not None
        server._loop.call_soon_threadsafe(writer.write, *waiting[0])
        assert rest(connection).startswith(b"HTTP/1.1 200 OK")


def flood(connection: socket.socket, data: bytes) -> None:
    """Sends all of it, or until the connection ends."""
    with contextlib.suppress(OSError):
        connection.sendall(data)


def large_item(server: Server) -> bytes:
    """A request of few bytes whose answer has 300,000."""
    dynamodb = client(server)
    dynamodb.create_table(**TABLE)
    key = {"PK": {"S": "a"}, "SK": {"S": "b"}}
    dynamodb.put_item(TableName="Things", Item={**key, "x": {"S": "x" * 300_000}})
    dynamodb.close()
    return request("GetItem", {"TableName": "Things", "Key": key})


def unread(server: Server) -> list[Connection]:
    """Connections with answers that nobody has read."""
    return [each for each in open_connections(server) if each.waits_to_send()]


def test_nothing_is_read_while_nobody_reads_the_answers(server: Server) -> None:
    get = large_item(server)
    connection = connected(server)
    sending = threading.Thread(target=flood, args=(connection, get * (6_000_000 // len(get))))
    sending.start()
    until(lambda: any(each._is_paused for each in unread(server)))
    (held,) = unread(server)
    assert held.waits_to_send() < 700_000
    assert len(held._unread) <= 262_144
    assert len(held._reader.requests) * len(get) <= http.SLICE
    assert answers(server)
    assert held._is_paused
    assert held.waits_to_send() < 700_000
    connection.shutdown(socket.SHUT_RDWR)
    sending.join()
    connection.close()


def test_it_goes_on_where_it_stopped_when_answers_are_read(server: Server) -> None:
    get = large_item(server)
    with connected(server) as connection:
        connection.sendall(get * 60)
        until(lambda: bool(unread(server)))
        received = bytearray()
        while received.count(b"}}}") < 60:
            received += connection.recv(1 << 20) or pytest.fail("the connection ended")
        assert received.count(b"HTTP/1.1 200 OK") == 60
        connection.sendall(ONE)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")


def test_so_many_requests_wait_for_answers_and_no_more(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client(server).create_table(**TABLE)
    service = server._service
    waiting: list[Any] = []
    monkeypatch.setattr(service._writer, "write", lambda asked, done: waiting.append((asked, done)))
    puts = [
        request("PutItem", {"TableName": "Things", "Item": {"PK": {"S": "a"}, "SK": {"S": str(number)}}})
        for number in range(200)
    ]
    with connected(server) as connection:
        connection.sendall(b"".join(puts))
        until(lambda: len(waiting) >= MOST_WAITING)
        assert answers(server), "so that everything which came was looked at"
        assert len(waiting) == MOST_WAITING
        monkeypatch.undo()
        assert server._loop is not None
        for asked, done in waiting:
            server._loop.call_soon_threadsafe(service._writer.write, asked, done)
        received = b""
        while received.count(b"HTTP/1.1 200 OK") < 200:
            received += connection.recv(65536) or pytest.fail("the connection ended")
    assert client(server).scan(TableName="Things", Select="COUNT")["Count"] == 200


def test_so_much_waits_for_answers_and_no_more(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client(server).create_table(**TABLE)
    writer = server._service._writer
    waiting: list[Any] = []
    monkeypatch.setattr(writer, "write", lambda asked, done: waiting.append((asked, done)))
    text = "x" * 390_000
    puts = [
        request(
            "PutItem", {"TableName": "Things", "Item": {"PK": {"S": "a"}, "SK": {"S": str(each)}, "x": {"S": text}}}
        )
        for each in range(6)
    ]
    with connected(server) as connection:
        sending = threading.Thread(target=connection.sendall, args=(b"".join(puts),))
        sending.start()
        until(lambda: len(waiting) >= 3)
        assert answers(server)
        assert len(waiting) == 3
        sizes = [len(put) - put.index(b"\r\n\r\n") - 4 for put in puts[:3]]
        # With what came of the fourth together with the end of the third.
        assert 0 <= server._crowd.held - sum(sizes) + UNCOUNTED < http.SLICE
        monkeypatch.undo()
        assert server._loop is not None
        for asked, done in waiting:
            server._loop.call_soon_threadsafe(writer.write, asked, done)
        received = b""
        while received.count(b"HTTP/1.1 200 OK") < 6:
            received += connection.recv(65536) or pytest.fail("the connection ended")
        sending.join()
        until(lambda: server._crowd.held == 0)


# --- all connections ---------------------------------------------------------------------------


def test_a_connection_makes_room_for_another(loop: None) -> None:
    with bounded(Bounds(connections=3)) as server:
        opened = [connected(server) for _ in range(3)]
        for each in (opened[0], opened[1], opened[2]):
            each.sendall(ONE)
            assert each.recv(65536).startswith(b"HTTP/1.1 200 OK")
            until(lambda: len(server._crowd.open) == 3)
        for member in open_connections(server):
            member.asked_at = 1e9
        # A half-sent request is nothing that somebody waits for.
        opened[1].sendall(ONE[:50])
        until(lambda: any(each.begun for each in open_connections(server)))
        next(each for each in open_connections(server) if each.begun).asked_at = 0.0
        assert answers(server)
        assert _ends(opened[1])
        for each in (opened[0], opened[2]):
            each.sendall(ONE)
            assert each.recv(65536).startswith(b"HTTP/1.1 200 OK")
        for each in opened:
            each.close()


def _ends(connection: socket.socket) -> bool:
    try:
        return connection.recv(10) == b""
    except ConnectionError:
        return True


def test_connections_beyond_all_that_wait_are_refused(loop: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with bounded(Bounds(connections=1)) as server:
        client(server).create_table(**TABLE)
        writer = server._service._writer
        waiting: list[Any] = []
        monkeypatch.setattr(writer, "write", lambda asked, done: waiting.append((asked, done)))
        with connected(server) as busy:
            busy.sendall(request("PutItem", {"TableName": "Things", "Item": {"PK": {"S": "a"}, "SK": {"S": "b"}}}))
            until(lambda: waiting)
            with connected(server) as other:
                assert rest(other).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
            monkeypatch.undo()
            assert server._loop is not None
            server._loop.call_soon_threadsafe(writer.write, *waiting[0])
            assert busy.recv(65536).startswith(b"HTTP/1.1 200 OK")
        until(lambda: answers(server))


def test_bodies_that_do_not_end_are_bounded_together(loop: None) -> None:
    bound = 4 * 1024 * 1024
    with bounded(Bounds(held=bound)) as server:
        size = 1024 * 1024 + UNCOUNTED
        opened = [connected(server) for _ in range(6)]
        body = b" " * size
        for each in opened[:4]:
            each.sendall(_HEAD + b"Content-Length: %d\r\n\r\n" % (size + 1) + body)
        until(lambda: server._crowd.held == bound)
        # Small ones are always taken.
        assert answers(server)
        opened[4].sendall(_HEAD + b"Content-Length: %d\r\n\r\n" % UNCOUNTED + b" " * (UNCOUNTED - 2) + b"{}")
        assert opened[4].recv(65536).startswith(b"HTTP/1.1 200 OK")
        opened[5].sendall(_HEAD + b"Content-Length: %d\r\n\r\n" % size + body)
        assert rest(opened[5]).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert server._crowd.held <= bound
        # Whoever goes, or ends, makes room.
        opened[0].close()
        opened[1].sendall(b"x")
        assert b"SerializationException" in opened[1].recv(65536)
        until(lambda: server._crowd.held == bound // 2)
        assert server._crowd.held == bound // 2
        for each in opened:
            each.close()
        until(lambda: not server._crowd.open)
        assert server._crowd.held == 0


# --- time --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [ONE[:1], ONE[:50], ONE[:-1], ONE + ONE[:60], b"\r\n"])
def test_a_request_that_does_not_come_whole(loop: None, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(serving, "_LATELY", 0.02)
    with bounded(Bounds(seconds=0.2)) as server, connected(server) as connection:
        connection.sendall(sent)
        received = rest(connection)
        *before, last = received.split(b"HTTP/1.1 ")[1:]
        assert [each[:3] for each in before] == [b"200"] * sent.count(ONE)
        assert last.startswith(b"408 Request Timeout\r\n")
        assert last.endswith(b"the request did not arrive completely in time")


def test_drops_that_come_one_by_one_do_not_give_more_time(loop: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_LATELY", 0.02)
    with bounded(Bounds(seconds=0.5)) as server, connected(server) as connection:
        stopped = threading.Event()

        def drip() -> None:
            try:
                for each in _HEAD + b"X: " + b"x" * 100_000:
                    connection.sendall(bytes([each]))
                    if stopped.wait(0.01):
                        break
            except OSError:
                pass

        dripping = threading.Thread(target=drip)
        dripping.start()
        assert connection.recv(65536).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        stopped.set()
        dripping.join()


def alone(crowd: Crowd) -> Connection:
    crowd.answer = lambda _: http.HttpAnswer(200, b"", b"")
    return Connection(crowd, Admission().is_own_host)


def test_every_request_has_its_own_time() -> None:
    now = [100.0]
    connection = alone(Crowd(lambda: now[0]))
    connection.connection_made(_Nowhere())
    told = []
    for piece in (ONE, ONE[:20], ONE[20:40], ONE[40:] + ONE[:60], ONE[60:70], ONE[70:], ONE + ONE[:-1], b"}"):
        now[0] += 1
        connection.data_received(piece)
        told.append(connection.begun)
    assert told == [None, 102.0, 102.0, 104.0, 104.0, None, 107.0, None]


@pytest.mark.parametrize(
    "sent", [ONE[:-1], b"nonsense", ONE[:20] + b"\0"], ids=["that is late", "that is no HTTP", "that becomes none"]
)
def test_a_request_is_refused_once_and_never_late_after_that(sent: bytes) -> None:
    now = [100.0]
    crowd = Crowd(lambda: now[0], Bounds(seconds=1))

    async def looked_at() -> list[bytes]:
        connection, transport = alone(crowd), _Ending()
        connection.connection_made(transport)
        connection.data_received(sent[:5])
        connection.data_received(sent[5:])
        for _ in range(3):
            now[0] += 1
            # Whoever is looked at after this connection would not be, if this raised.
            crowd.look()
        return transport.written

    (refusal,) = asyncio.run(looked_at())
    assert refusal[:12] in (b"HTTP/1.1 408", b"HTTP/1.1 400")


def test_a_connection_on_which_nothing_is_asked_stays(loop: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_LATELY", 0.02)
    with bounded(Bounds(seconds=0.1)) as server, connected(server) as used, connected(server) as unused:
        used.sendall(ONE)
        assert used.recv(65536).startswith(b"HTTP/1.1 200 OK")
        until(lambda: len(server._crowd.open) == 2)
        for each in open_connections(server):
            looked = each.unsent_since
            until(lambda each=each, looked=looked: each.unsent_since > looked + 0.3)  # type: ignore[misc]
        for connection in (used, unused):
            connection.sendall(ONE)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")


def test_a_client_that_reads_nothing_is_closed(loop: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_LATELY", 0.02)
    with bounded(Bounds(seconds=0.3)) as server:
        get = large_item(server)
        for ending in (b"", b"nonsense\r\n\r\n"):
            with connected(server) as connection:
                connection.sendall(get * 100 + ending)
                until(lambda: bool(unread(server)))
                until(lambda: not unread(server))
        until(lambda: not server._crowd.open)


def test_a_server_ends_although_nobody_reads_its_answers(loop: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_PATIENCE", 0.2)
    with bounded(Bounds()) as server:
        get = large_item(server)
        connection = connected(server)
        connection.sendall(get * 100)
        until(lambda: bool(unread(server)))
    connection.close()


# --- what is left behind -----------------------------------------------------------------------


def test_a_connection_that_is_gone_leaves_nothing(server: Server) -> None:
    for _ in range(50):
        with connected(server) as connection:
            connection.sendall(ONE + _HEAD + b"Content-Length: 100000\r\n\r\n" + b" " * 90_000)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")
    crowd = server._crowd
    until(lambda: not crowd.open)
    assert (crowd.active, crowd._recent, crowd.held) == (set(), set(), 0)


def test_connections_need_no_search_for_cycles() -> None:
    async def gone() -> weakref.ref[Connection]:
        connection = alone(Crowd(lambda: 0.0))
        connection.connection_made(_Nowhere())
        connection.data_received(ONE + ONE[:20])
        connection.connection_lost(None)
        return weakref.ref(connection._reader)  # type: ignore[arg-type]

    gc.disable()
    try:
        assert asyncio.run(gone())() is None
    finally:
        gc.enable()


class _Nowhere(asyncio.Transport):
    def write(self, data: Any) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0


class _Ending(_Nowhere):
    """A transport that takes nothing after its end, as those of asyncio and uvloop do."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self._has_ended = False

    def write(self, data: Any) -> None:
        if self._has_ended:
            raise RuntimeError("cannot call write() after write_eof()")
        self.written.append(data)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._has_ended = True

    def close(self) -> None: ...
