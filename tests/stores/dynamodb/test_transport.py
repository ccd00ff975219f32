"""The transport over real sockets: how answers may come, encryption, proxies, and what goes wrong."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import IO
from zlib import crc32

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from orjson import dumps

from adjoin.stores.dynamodb import transport as transport_module
from adjoin.stores.dynamodb.access import endpoint_at
from adjoin.stores.dynamodb.opening import NotSent
from adjoin.stores.dynamodb.transport import LARGEST_ANSWER, Answer, AnswerLost, Transport
from adjoin.values import AttributeValue, Item, item_size
from tests.waiting import LIMIT

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
BODY = b'{"Item": {}}'
CRC = str(crc32(BODY)).encode()


def answer(body: bytes = BODY, *headers: bytes, status: bytes = b"200 OK", version: bytes = b"1.1") -> bytes:
    lines = (b"HTTP/%s %s" % (version, status), b"Content-Length: %d" % len(body), *headers)
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunked(*chunks: bytes) -> bytes:
    parts = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + parts


class Scripted:
    """Answers each request on a connection with the next of its scripts; an empty one closes it."""

    def __init__(self, *scripts: bytes) -> None:
        self.scripts = list(scripts)
        self.requests: list[tuple[bytes, bytes]] = []
        self.connections = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.scripts:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.requests.append((head, await reader.readexactly(length)))
                script = self.scripts.pop(0)
                writer.write(script)
                await writer.drain()
                if not script or b"Content-Length: 999" in script or b"close" in script or b"HTTP/1.0" in script:
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


async def served(handle: Handle, trusted: ssl.SSLContext | None = None) -> tuple[asyncio.Server, int]:
    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=trusted)
    return server, server.sockets[0].getsockname()[1]


async def ended(listening: asyncio.Server) -> None:
    """No connection is taken any more, and those that were are closed on this side too."""
    listening.close()
    await asyncio.sleep(0.05)


async def ask(server: Scripted, times: int = 1, timeout: float = 5.0) -> list[Answer]:
    listening, port = await served(server)
    transport = Transport(4, timeout)
    endpoint = endpoint_at(f"http://127.0.0.1:{port}", "us-east-1")
    try:
        return [await transport.post(endpoint, {"X-Amz-Target": "T"}, b"{}", 10.0) for _ in range(times)]
    finally:
        await transport.close()
        await ended(listening)


@pytest.mark.parametrize(
    "script",
    [
        answer(),
        answer(BODY, b"x-amz-crc32: " + CRC, b"x-amzn-RequestId: R"),
        answer(BODY, b"Connection: close"),
        answer(BODY, version=b"1.0"),
        chunked(BODY),
        chunked(BODY[:1], BODY[1:5], BODY[5:]),
        b"HTTP/1.1 100 Continue\r\n\r\n" + answer(),
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + BODY,
    ],
)
def test_whole_answers(script: bytes) -> None:
    server = Scripted(script, script)
    found = asyncio.run(ask(server, times=2))
    assert [(each.status, each.body) for each in found] == [(200, BODY)] * 2
    assert server.requests[0] == server.requests[1]


def test_a_connection_serves_many_requests() -> None:
    server = Scripted(*[answer(status=b"400 Bad Request")] * 5)
    found = asyncio.run(ask(server, times=5))
    assert {each.status for each in found} == {400}
    assert (len(server.requests), server.connections) == (5, 1)


@pytest.mark.parametrize("does_loop_run", [True, False], ids=["while the loop runs", "while it stands still"])
@pytest.mark.parametrize("together", [1, 3], ids=["one at a time", "from the pool"])
def test_what_nobody_asked_for_is_no_answer(does_loop_run: bool, together: int) -> None:
    """What comes on an idle connection is not taken for the answer to the next request."""

    async def asked() -> tuple[list[bytes], int]:
        opened = 0
        late = threading.Event()

        def twice(connection: socket.socket) -> None:
            with suppress(OSError), connection, connection.makefile("rb") as received:
                while (head := _head(received)) and received.read(2):
                    connection.sendall(answer(head))
                    late.wait(LIMIT)
                    connection.sendall(answer(b"late"))
                    said.release()

        def accept() -> None:
            nonlocal opened
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                opened += 1
                threading.Thread(target=twice, args=(connection,), daemon=True).start()

        said = threading.Semaphore(0)
        transport = Transport(4, 5.0)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            threading.Thread(target=accept, daemon=True).start()
            endpoint = endpoint_at(f"http://127.0.0.1:{listening.getsockname()[1]}", "us-east-1")

            async def post(number: int) -> bytes:
                return (await transport.post(endpoint, {"X-Amz-Target": str(number)}, b"{}", 10.0)).body

            found = list(await asyncio.gather(*(post(number) for number in range(together))))
            late.set()
            for _ in range(together):
                said.acquire(timeout=LIMIT)
            if does_loop_run:
                await asyncio.sleep(0.05)
            found += await asyncio.gather(*(post(number + together) for number in range(together)))
            await transport.close()
            listening.shutdown(socket.SHUT_RDWR)
        return found, opened

    found, opened = asyncio.run(asked())
    assert found == [str(number).encode() for number in range(2 * together)]
    assert opened == 2 * together


def _head(received: IO[bytes]) -> bytes:
    """Reads a head, and returns its X-Amz-Target."""
    target = b""
    while (line := received.readline()) not in (b"", b"\r\n"):
        if line.startswith(b"X-Amz-Target: "):
            target = line.split()[1]
    return target


def test_what_is_sent() -> None:
    server = Scripted(answer(BODY, b"x-amzn-RequestId: R1"))
    (found,) = asyncio.run(ask(server))
    assert found.request_id == "R1"
    (head, body) = server.requests[0]
    first, *lines = head.decode().split("\r\n")
    names = [line.partition(":")[0] for line in lines if line]
    assert first == "POST / HTTP/1.1"
    assert names == ["Host", "Accept-Encoding", "X-Amz-Target", "Content-Length"]
    assert body == b"{}"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (b"", "connection broke"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{}", "connection broke"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: close\r\n\r\nff\r\n{", "connection broke"),
        (b"nonsense close\r\n\r\n", "connection broke"),
        (answer(BODY, b"x-amz-crc32: 1"), "checksum"),
        (answer(BODY, b"x-amz-crc32: many"), "checksum"),
    ],
)
def test_answers_that_are_lost(script: bytes, reason: str) -> None:
    with pytest.raises(AnswerLost, match=reason):
        asyncio.run(ask(Scripted(script)))


class Silent(Scripted):
    """Reads whatever comes, and says nothing."""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
        finally:
            writer.close()


def test_an_answer_that_does_not_come() -> None:
    with pytest.raises(AnswerLost, match="in time"):
        asyncio.run(ask(Silent(), timeout=0.1))


class Endless(Scripted):
    """Answers with a beginning, and then with more and more, until nobody listens."""

    def __init__(self, beginning: bytes, more: bytes, pause: float = 0.0) -> None:
        super().__init__()
        self.beginning, self.more, self.pause = beginning, more, pause
        self.sent = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self.beginning)
            while self.more:
                writer.write(self.more)
                await writer.drain()
                self.sent += len(self.more)
                await asyncio.sleep(self.pause)
            await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"
CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ONE_MORE = b"1\r\n \r\n"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\n\r\n{"


@pytest.mark.parametrize(
    "server",
    [
        Endless(b"", b""),
        Endless(b"HTTP/1.1 200 OK\r\nContent-Le", b""),
        Endless(LENGTH, b""),
        Endless(LENGTH, b" ", pause=0.01),
        Endless(CHUNKS + ONE_MORE, b""),
        Endless(CHUNKS + b"2\r\n{", b""),
        Endless(CHUNKS, ONE_MORE, pause=0.01),
        Endless(UNTIL_CLOSED, b""),
        Endless(UNTIL_CLOSED, b" ", pause=0.01),
        Endless(b"HTTP/1.1 101 Other\r\nUpgrade: it\r\nConnection: upgrade\r\n\r\n", b" " * 1000, pause=0.001),
        Endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.001),
    ],
)
def test_an_answer_that_comes_too_slowly(server: Endless) -> None:
    """Wherever it stalls or drips, it is given up, and the connection with it."""
    with pytest.raises(AnswerLost, match="in time"):
        asyncio.run(asyncio.wait_for(ask(server, timeout=0.15), 20))


MEGABYTE = b" " * 2**20


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (Endless(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{", b""), "larger than"),
        (Endless(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{", MEGABYTE), "broke"),
        (Endless(b"HTTP/1.1 400 Bad\r\nContent-Length: 99999999999999999999999\r\n\r\n{", b""), "broke|larger than"),
        (Endless(CHUNKS, b"100000\r\n" + MEGABYTE + b"\r\n"), "larger than"),
        (Endless(CHUNKS, b"1\r\n \r\n" * 9999), "larger than"),
        (Endless(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", MEGABYTE), "larger than"),
        (Endless(UNTIL_CLOSED, MEGABYTE), "larger than"),
        (Endless(b"HTTP/1.1 200 OK\r\nX: ", b"y" * 2**20), "broke"),
        (Endless(b"HTTP/1.1 200 OK\r\n", b"X: 1\r\n" * 9999), "broke"),
    ],
)
def test_an_answer_that_is_too_large(monkeypatch: pytest.MonkeyPatch, server: Endless, reason: str) -> None:
    """No more is taken of it than shows that it is; what the system keeps on the way comes on top."""
    monkeypatch.setattr(transport_module, "LARGEST_ANSWER", 5000)
    with pytest.raises(AnswerLost, match=reason) as caught:
        asyncio.run(asyncio.wait_for(ask(server), 60))
    assert len(str(caught.value)) < 400
    assert server.sent < 2**25


def test_the_largest_answer_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "LARGEST_ANSWER", 5000)
    largest = b" " * 5000
    scripts = (answer(largest), chunked(largest[:2500], largest[2500:]))
    assert [each.body for each in asyncio.run(ask(Scripted(*scripts), times=2))] == [largest] * 2
    for script in (answer(largest + b" "), chunked(largest, b" ")):
        with pytest.raises(AnswerLost, match="larger than"):
            asyncio.run(ask(Scripted(script)))


def test_the_largest_answer_is_larger_than_any_of_the_service() -> None:
    """Sixteen megabytes of what grows most as JSON."""
    elements: list[AttributeValue] = [{"S": ""}, {"NULL": True}, {"L": []}, {"M": {}}, {"N": "0"}, {"S": "\x01" * 100}]
    for element in elements:
        item: Item = {"a": {"L": [element] * 40}}
        assert len(dumps(item)) / item_size(item) < LARGEST_ANSWER / 2**24


@pytest.mark.parametrize("server", [Endless(b"", b""), Endless(LENGTH, b""), Endless(UNTIL_CLOSED, b" ", pause=0.01)])
def test_closed_while_an_answer_is_waited_for(server: Endless) -> None:
    async def closed() -> None:
        listening, port = await served(server)
        transport = Transport(4, 3600.0)
        endpoint = endpoint_at(f"http://127.0.0.1:{port}", "us-east-1")
        posts = [asyncio.create_task(transport.post(endpoint, {}, b"{}", 3600.0)) for _ in range(2)]
        await asyncio.sleep(0.1)
        await transport.close()
        for post in posts:
            with pytest.raises(AnswerLost, match="closed"):
                await post
        await ended(listening)

    asyncio.run(asyncio.wait_for(closed(), 20))


@pytest.mark.parametrize("beginning", [b"", LENGTH, CHUNKS, UNTIL_CLOSED])
def test_a_canceled_request_gives_its_connection_up(beginning: bytes) -> None:
    """The pool has room for the next one, which gets an answer of its own."""

    async def canceled() -> list[Answer]:
        slow, quick = Endless(beginning, b""), Scripted(*[answer()] * 3)
        handlers: list[Handle] = [slow, slow, quick]

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await handlers.pop(0)(reader, writer)

        listening, port = await served(handle)
        transport = Transport(1, 3600.0)
        endpoint = endpoint_at(f"http://127.0.0.1:{port}", "us-east-1")
        for number in range(2):
            post = asyncio.create_task(transport.post(endpoint, {}, b"{}", 3600.0))
            while slow.connections <= number:
                await asyncio.sleep(0.005)
            post.cancel()
            with pytest.raises(asyncio.CancelledError):
                await post
        try:
            return [await transport.post(endpoint, {}, b"{}", 20.0) for _ in range(3)]
        finally:
            await transport.close()
            await ended(listening)

    assert [each.body for each in asyncio.run(asyncio.wait_for(canceled(), 30))] == [BODY] * 3


def test_a_proxy_that_says_nothing(no_proxy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    async def through_proxy() -> None:
        listening, port = await served(Silent())
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        transport = Transport(4, 5.0)
        try:
            await transport.post(endpoint_at("https://127.0.0.1:1", "us-east-1"), {}, b"{}", 0.2)
        finally:
            await transport.close()
            await ended(listening)

    with pytest.raises(NotSent, match="in time"):
        asyncio.run(through_proxy())


def test_a_connection_that_does_not_become_free() -> None:
    async def both() -> tuple[object, object]:
        listening, port = await served(Silent())
        transport = Transport(1, 5.0)
        endpoint = endpoint_at(f"http://127.0.0.1:{port}", "us-east-1")
        posts = [transport.post(endpoint, {}, b"{}", within) for within in (0.3, 0.1)]
        try:
            first, second = await asyncio.gather(*posts, return_exceptions=True)
            return first, second
        finally:
            await transport.close()
            await ended(listening)

    first, second = asyncio.run(both())
    assert isinstance(first, AnswerLost)
    assert isinstance(second, NotSent)
    assert "no connection was free" in str(second)


def test_nobody_listens() -> None:
    async def post() -> None:
        listening, port = await served(Scripted())
        await ended(listening)
        transport = Transport(4, 1.0)
        try:
            await transport.post(endpoint_at(f"http://127.0.0.1:{port}", "us-east-1"), {}, b"{}", 10.0)
        finally:
            await transport.close()

    with pytest.raises(NotSent):
        asyncio.run(post())


# --- encryption --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for 127.0.0.1, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "adjoin test")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return path


async def ask_securely(server: Scripted, certificate: Path) -> Answer:
    trusted = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trusted.load_cert_chain(certificate)
    listening, port = await served(server, trusted)
    transport = Transport(4, 5.0)
    try:
        return await transport.post(endpoint_at(f"https://127.0.0.1:{port}", "us-east-1"), {}, b"{}", 10.0)
    finally:
        await transport.close()
        await ended(listening)


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_proxy")
def test_an_encrypted_connection_to_whom_the_bundle_trusts(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    assert asyncio.run(ask_securely(Scripted(answer()), certificate)).body == BODY


@pytest.mark.usefixtures("no_proxy")
def test_nothing_is_sent_to_whom_nobody_trusts(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    server = Scripted(answer())
    with pytest.raises(NotSent, match="certificate") as caught:
        asyncio.run(ask_securely(server, certificate))
    assert caught.value.for_good
    assert server.requests == []


@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize(
    ("user", "line"),
    [("", b""), ("ann:p%40ss@", b"Proxy-Authorization: Basic YW5uOnBAc3M=\r\n")],
    ids=["open", "with a password"],
)
def test_a_proxy_of_the_environment(certificate: Path, monkeypatch: pytest.MonkeyPatch, user: str, line: bytes) -> None:
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.replace(head.split(b" ")[1], b"SERVER"))
        port = int(head.split(b" ")[1].rpartition(b":")[2])
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")

        async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                target.write(data)
            target.close()

        await asyncio.gather(pump(reader, there_writer), pump(there_reader, writer))

    async def through_proxy() -> Answer:
        listening, port = await served(proxy)
        monkeypatch.setenv("https_proxy", f"http://{user}127.0.0.1:{port}")
        try:
            return await ask_securely(Scripted(answer()), certificate)
        finally:
            await ended(listening)

    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    assert asyncio.run(through_proxy()).body == BODY
    assert asked == [b"CONNECT SERVER HTTP/1.1\r\nHost: SERVER\r\n" + line + b"\r\n"]


@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "refused the connection: .*407"),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", "refused the connection: .*502"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "refused the connection"),
        (b"HTTP/1.1 200 OK\r\nX: ", "closed the connection"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 99_999, "more than 64 KB"),
    ],
)
def test_a_proxy_that_refuses(said: bytes, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        writer.close()

    async def through_proxy() -> None:
        listening, port = await served(refuse)
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{port}")
        transport = Transport(4, 5.0)
        try:
            await transport.post(endpoint_at("https://dynamodb.test", "us-east-1"), {}, b"{}", 10.0)
        finally:
            await transport.close()
            await ended(listening)

    with pytest.raises(NotSent, match=reason) as caught:
        asyncio.run(through_proxy())
    assert not caught.value.for_good


def test_the_addresses_of_a_name_are_tried_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may have an address at which nobody listens, such as the first of "localhost"."""
    server = Scripted(answer(), answer())

    async def by_name() -> Answer:
        listening, port = await served(server)

        async def addresses(*_: object, **__: object) -> list[tuple[object, ...]]:
            return [(None, None, None, "", (host, port)) for host in ("127.0.0.2", "127.0.0.1")]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", addresses)
        transport = Transport(4, 5.0)
        try:
            return await transport.post(endpoint_at(f"http://dynamodb.test:{port}", "us-east-1"), {}, b"{}", 10.0)
        finally:
            await transport.close()
            await ended(listening)

    assert asyncio.run(by_name()).body == BODY


def test_idle_connections_are_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "_KEPT", 0.05)
    closed = []

    class Watched(Scripted):
        async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await super().__call__(reader, writer)
            closed.append(True)

    async def idle() -> None:
        listening, port = await served(Watched(*[answer()] * 9))
        transport = Transport(4, 5.0)
        endpoint = endpoint_at(f"http://127.0.0.1:{port}", "us-east-1")
        await asyncio.gather(*(transport.post(endpoint, {}, b"{}", 10.0) for _ in range(3)))
        async with asyncio.timeout(LIMIT):
            while len(closed) < 3:
                await asyncio.sleep(0.01)
        await transport.close()
        await ended(listening)

    asyncio.run(idle())
