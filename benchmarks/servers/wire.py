"""Requests without a client library: they are signed beforehand, and sent on connections that stay open.

A request costs a few microseconds here: a write, a wait with epoll, a read, and finding the length of the answer.
If the server closes a connection after an answer, opening it again counts for the next request.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Iterator
from itertools import cycle

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from benchmarks.servers.asked import REGION, Operation, parameters

_CREDENTIALS = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
_PATIENCE = 30.0


def prepared(operation: Operation, endpoint: str) -> Iterator[bytes]:
    """All calls of an operation as bytes, with the headers that boto3 sends, endlessly."""
    return cycle(
        [_signed(operation.target, parameters(operation.name, number), endpoint) for number in range(operation.calls)]
    )


def _signed(target: str, asked: dict[str, object], endpoint: str) -> bytes:
    body = json.dumps(asked).encode()
    headers = {
        "X-Amz-Target": f"DynamoDB_20120810.{target}",
        "Content-Type": "application/x-amz-json-1.0",
        "User-Agent": "Boto3/1.40.0 md/Botocore#1.40.0 ua/2.1 os/linux lang/python#3.11 cfg/retry-mode#legacy",
    }
    request = AWSRequest("POST", f"{endpoint}/", data=body, headers=headers)
    SigV4Auth(_CREDENTIALS, "dynamodb", REGION).add_auth(request)
    lines = ["POST / HTTP/1.1", f"Host: {_host(endpoint)}", "Accept-Encoding: identity"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def _host(endpoint: str) -> str:
    return endpoint.removeprefix("http://")


class _Connection:
    """One connection, and the part of an answer that it has received."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._received = bytearray()
        self.socket = self._opened()

    def _opened(self) -> socket.socket:
        opened = socket.create_connection(self._address, timeout=_PATIENCE)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return opened

    def read(self) -> bool:
        """Reads what has arrived; returns whether the answer is complete."""
        received = self._received
        received += self.socket.recv(1 << 18)
        end = received.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(received[:end]).lower()
        _, _, rest = head.partition(b"\r\ncontent-length:")
        if len(received) < end + 4 + int(rest.split(b"\r\n", 1)[0]):
            return False
        if not head.startswith(b"http/1.1 200 "):
            raise SystemExit(f"a server answered {bytes(received)!r}")
        received.clear()
        self.is_over = b"\r\nconnection: close" in head
        return True

    is_over = False
    """Whether the server closes the connection after this answer."""

    def reopen(self) -> None:
        self.socket.close()
        self.socket = self._opened()


def ask(endpoint: str, requests: Iterator[bytes], connections: int, seconds: float) -> tuple[int, float]:
    """Sends requests on several connections for some seconds; returns the number of answers and the time they took."""
    host, _, port = _host(endpoint).partition(":")
    opened = [_Connection((host, int(port))) for _ in range(connections)]
    with select.epoll() as poll:
        by_number = {each.socket.fileno(): each for each in opened}
        for number in by_number:
            poll.register(number, select.EPOLLIN)
        begin = time.perf_counter()
        for each in opened:
            each.socket.sendall(next(requests))
        answered = _answered(poll, by_number, requests, begin + seconds)
        taken = time.perf_counter() - begin
        for each in opened:
            each.socket.close()
    return answered, taken


def _answered(poll: select.epoll, asking: dict[int, _Connection], following: Iterator[bytes], deadline: float) -> int:
    """Sends the next request after every answer until the time is over, then waits for the last answers."""
    answered, open_requests = 0, len(asking)
    while open_requests:
        for number, _ in poll.poll(_PATIENCE):
            connection = asking[number]
            if not connection.read():
                continue
            answered += 1
            if time.perf_counter() >= deadline:
                open_requests -= 1
                continue
            if connection.is_over:
                del asking[number]
                connection.reopen()
                asking[connection.socket.fileno()] = connection
                poll.register(connection.socket.fileno(), select.EPOLLIN)
            connection.socket.sendall(next(following))
    return answered
