"""The transport over real sockets: how answers may come, encryption, proxies, and what goes wrong."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from zlib import crc32

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from adjoin.stores.dynamodb.access import endpoint_at
from adjoin.stores.dynamodb.transport import Answer, AnswerLost, NotSent, Transport

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
def test_a_proxy_of_the_environment(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.split(b"\r\n")[0])
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
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        try:
            return await ask_securely(Scripted(answer()), certificate)
        finally:
            await ended(listening)

    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    assert asyncio.run(through_proxy()).body == BODY
    assert [line.split(b" ")[0] for line in asked] == [b"CONNECT"]
