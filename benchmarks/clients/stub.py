"""A server that answers every request with bytes made beforehand, in its own process.

It reads only the parts of a request that it needs: its length, its target, and whether it asks for consumed
capacity. It checks no signature. One thread waits for all connections with epoll, so that the stub stays
cheaper than any client. It reports its processor time per request.
"""

from __future__ import annotations

import json
import select
import socket
import sys
from collections.abc import Mapping, Sequence
from time import process_time
from typing import NamedTuple

from benchmarks.clients.answers import Answer, answers, no_item, refusal

_HEAD_END = b"\r\n\r\n"
_ASKS_CONSUMED = b'"ReturnConsumedCapacity"'
_OWN_RECORD = b'"#=RECORDS"'
"""The key of adjoin's own records, which it reads once when a graph opens. This table has none."""
_NO_ITEM = no_item()
_CHUNK = 1 << 18


class Connection(NamedTuple):
    socket: socket.socket
    known: Mapping[bytes, Answer]
    pending: bytearray
    unsent: bytearray


class Stub:
    """Listens on one local port per set of answers."""

    def __init__(self, sets: Sequence[Mapping[bytes, Answer]]) -> None:
        self.requests = 0
        self._waiting = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._listeners: dict[int, tuple[socket.socket, Mapping[bytes, Answer]]] = {}
        self.ports: list[int] = []
        for known in sets:
            listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
            listener.setblocking(False)
            self._waiting.register(listener.fileno(), select.EPOLLIN)
            self._listeners[listener.fileno()] = (listener, known)
            self.ports.append(listener.getsockname()[1])

    def serve(self, until: int) -> None:
        """Serves until the file descriptor `until` can be read."""
        self._waiting.register(until, select.EPOLLIN)
        poll, connections, listeners = self._waiting.poll, self._connections, self._listeners
        while True:
            for number, event in poll():
                connection = connections.get(number)
                if connection is not None:
                    self._serve(number, connection, event)
                elif number in listeners:
                    self._accept(*listeners[number])
                elif number == until:
                    return

    def _accept(self, listener: socket.socket, known: Mapping[bytes, Answer]) -> None:
        try:
            accepted, _ = listener.accept()
        except BlockingIOError:
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections[accepted.fileno()] = Connection(accepted, known, bytearray(), bytearray())
        self._waiting.register(accepted.fileno(), select.EPOLLIN)

    def _serve(self, number: int, connection: Connection, event: int) -> None:
        try:
            if event & select.EPOLLOUT:
                self._send(number, connection, b"")
                return
            received = connection.socket.recv(_CHUNK)
            if received:
                if connection.pending:
                    received = bytes(connection.pending) + received
                    connection.pending.clear()
                self._answer(number, connection, received)
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._waiting.unregister(number)
        del self._connections[number]
        connection.socket.close()

    def _answer(self, number: int, connection: Connection, received: bytes) -> None:
        while received:
            end = received.find(_HEAD_END)
            head = received[:end].lower() + b"\r\n"
            whole = end + len(_HEAD_END) + int(_header(head, b"\ncontent-length:") or 0)
            if end < 0 or len(received) < whole:
                connection.pending.extend(received)
                return
            target = _header(head, b"\nx-amz-target:").rpartition(b".")[2]
            answer = connection.known.get(target)
            if received.find(_OWN_RECORD, end, whole) >= 0:
                answer = _NO_ITEM
            if answer is None:
                content = refusal(target)
            else:
                content = answer.with_consumed if received.find(_ASKS_CONSUMED, end, whole) >= 0 else answer.plain
            self.requests += 1
            self._send(number, connection, content)
            received = received[whole:]

    def _send(self, number: int, connection: Connection, content: bytes) -> None:
        unsent = connection.unsent
        was_behind = bool(unsent)
        if was_behind:
            content = bytes(unsent) + content
            unsent.clear()
        try:
            sent = connection.socket.send(content)
        except BlockingIOError:
            sent = 0
        if sent < len(content):
            unsent.extend(content[sent:])
        if was_behind != bool(unsent):
            self._waiting.modify(number, select.EPOLLOUT if unsent else select.EPOLLIN)


def _header(head: bytes, name: bytes) -> bytes:
    start = head.find(name)
    return b"" if start < 0 else head[start + len(name) : head.index(b"\r\n", start + 1)].strip()


def main(arguments: Sequence[str]) -> None:
    stub = Stub([answers(int(edges)) for edges in arguments])
    print(json.dumps(stub.ports), flush=True)
    begin = process_time()
    stub.serve(until=sys.stdin.fileno())
    print(json.dumps({"requests": stub.requests, "processor": process_time() - begin}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
