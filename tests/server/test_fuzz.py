"""Anything that may be sent to the server: it answers properly or closes, logs no fault, and goes on to answer."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import httptools
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjoin.server.serving import Server, serve
from tests.server.refusals import RIGHT
from tests.server.test_connections import connected
from tests.server.test_reading import MALFORMED, REQUESTS
from tests.server.test_serving import _HEAD, ONE, TABLE, client
from tests.shares import examples

STATUSES = {100, 200, 400, 403, 404, 408, 413, 503}
"""Everything but a fault of the server."""

WHOLE = [
    *(sent for sent, _ in REQUESTS.values()),
    *(sent for sent, _ in MALFORMED.values()),
    *(
        _HEAD.replace(b"ListTables", name.encode()) + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        for name, body in ((name, json.dumps(body).encode()) for name, body in RIGHT.items())
    ),
]
FRAGMENTS = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b";", b",", b"-6", b"0", b"F" * 16, b"9" * 30, b"\xff",
    b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n",
    b"Expect: 100-continue\r\n", b"Connection: Upgrade\r\nUpgrade: h2c\r\n", b"Host: evil.example\r\n",
    b"Origin: null\r\n", b"Content-Encoding: gzip\r\n", b"Accept-Encoding: gzip\r\n", b"HTTP/1.0",
    b"GET //[?X-Amz-Algorithm= HTTP/1.1\r\n", b"[" * 2000, b'{"N":"1e9999999"}', b'{"N":"12e999999999999999999"}',
    b":" * 80, b"arn:" + b"a:" * 80, b"null", b'"\\ud800"', b"1" * 5000, b"\xc2\xb2",
]  # fmt: skip


@st.composite
def broken(draw: st.DrawFn) -> list[bytes]:
    """Requests that were cut, joined and spoilt, in some pieces."""
    sent = bytearray(b"".join(draw(st.lists(st.sampled_from(WHOLE), min_size=1, max_size=3))))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(sent)))
        match draw(st.sampled_from(("insert", "replace", "cut", "end", "byte"))):
            case "insert":
                sent[at:at] = draw(st.sampled_from(FRAGMENTS))
            case "replace":
                fragment = draw(st.sampled_from(FRAGMENTS))
                sent[at : at + len(fragment)] = fragment
            case "cut":
                del sent[at : at + draw(st.integers(1, 20))]
            case "end":
                del sent[at:]
            case _:
                sent[at : at + 1] = draw(st.binary(min_size=1, max_size=3))
    cuts = sorted(draw(st.lists(st.integers(0, len(sent)), max_size=3)))
    places = [0, *cuts, len(sent)]
    return [bytes(sent[start:end]) for start, end in pairwise(places)]


@pytest.fixture(scope="module", params=[False, True], ids=["any signature", "a key pair"])
def server(loop: None, request: pytest.FixtureRequest) -> Iterator[Server]:
    access_key, secret_key = ("AKID", "secret") if request.param else (None, None)
    with serve(":memory:", access_key=access_key, secret_key=secret_key) as opened:
        client(opened, "AKID", "secret").create_table(**TABLE | {"TableName": "abc"})
        yield opened


@pytest.fixture(scope="module")
def log() -> Iterator[list[logging.LogRecord]]:
    """What the server, or its loop, says of faults."""
    records: list[logging.LogRecord] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    keeping = Keeping(logging.WARNING)
    for name in ("adjoin", "asyncio"):
        logging.getLogger(name).addHandler(keeping)
    yield records
    for name in ("adjoin", "asyncio"):
        logging.getLogger(name).removeHandler(keeping)


class Answers:
    """Reads answers as a client does, and keeps their statuses."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.parser = httptools.HttpResponseParser(self)

    def on_headers_complete(self) -> None:
        self.statuses.append(self.parser.get_status_code())


def exchanged(server: Server, pieces: list[bytes]) -> bytes:
    """What is received until the server closes the connection, which it does when nothing more is sent."""
    received = b""
    with connected(server) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
                if len(pieces) > 1:
                    time.sleep(0.001)
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 20):
                received += piece
        except TimeoutError:
            raise
        except OSError:
            # The server had closed it.
            pass
    return received


@given(broken())
@settings(max_examples=examples(67), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_anything_is_answered_or_closed(server: Server, log: list[logging.LogRecord], pieces: list[bytes]) -> None:
    received = exchanged(server, pieces)
    answers = Answers()
    answers.parser.feed_data(received.replace(b"Connection: close\r\n", b""))
    assert set(answers.statuses) <= STATUSES
    assert b"Traceback" not in received
    after = exchanged(server, [ONE])
    assert after.startswith(b"HTTP/1.1 ")
    # Some of what was sent may be right, and make or drop a table.
    assert b'{"TableNames":[' in after or b"security token" in after
    assert not log, [record.getMessage() for record in log]


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(RIGHT)), st.data())
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_body_is_answered(server: Server, log: list[logging.LogRecord], name: str, data: st.DataObject) -> None:
    body: Any = dict(RIGHT[name])
    for member in data.draw(st.lists(st.sampled_from([*body, "TableName", "Limit", "Key"]), max_size=2)):
        body[member] = data.draw(JSON)
    sent = json.dumps(body).encode()
    service = b"DynamoDBStreams_20120810" if "Stream" in name or "Shard" in name else b"DynamoDB_20120810"
    head = _HEAD.replace(b"DynamoDB_20120810.ListTables", service + b"." + name.encode())
    received = exchanged(server, [head + b"Content-Length: %d\r\n\r\n%b" % (len(sent), sent)])
    assert int(received.split(b" ")[1]) in STATUSES
    assert not log, [record.getMessage() for record in log]
