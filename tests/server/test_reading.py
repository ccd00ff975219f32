"""Bytes to requests: every request in pieces of any size, and everything that is none."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin.server.reading import MAX_BODY, MAX_HEAD, BadRequest, RequestReader
from tests.server.test_protocol import CASES, RIGHT
from tests.shares import examples

POST = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
PLAIN = (
    POST + b"X-Amz-Target: DynamoDB_20120810.ListTables\r\nContent-Type: application/x-amz-json-1.0\r\n"
    b"X-Amz-Date: 20250101T000000Z\r\n"
    b"Authorization: AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=host, Signature=x\r\n"
)
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"

Read = tuple[str, str, str, bytes, bool, dict[str, str]]
"""Method, path, target, body, whether another may follow, and all headers."""


def reader() -> RequestReader:
    return RequestReader(lambda host: host == b"localhost")


def read(pieces: list[bytes]) -> tuple[list[Read], tuple[int, str] | None]:
    """The requests that these pieces make, and what they are refused with in the end."""
    reading = reader()
    refused: tuple[int, str] | None = None
    for piece in pieces:
        try:
            reading.feed(piece)
        except BadRequest as bad:
            refused = bad.status, bad.reason
            break
    found = [(each.method, each.path, each.target, each.body, each.keeps, each.headers) for each in reading.requests]
    return found, refused


def in_bytes(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


REQUESTS: dict[str, tuple[bytes, list[bytes]]] = {
    "plain": (PLAIN + b"Content-Length: 2\r\n\r\n{}", [b"{}"]),
    "plain, three": ((PLAIN + b"Content-Length: 2\r\n\r\n{}") * 3, [b"{}"] * 3),
    "without a body": (POST + b"\r\n", [b""]),
    "a length of nothing": (POST + b"Content-Length: 0\r\n\r\n", [b""]),
    "zeros before a length": (POST + b"Content-Length: 0002\r\n\r\n{}", [b"{}"]),
    "spaces around a length": (POST + b"Content-Length:  2 \r\n\r\n{}", [b"{}"]),
    "an empty line before it": (b"\r\n" + POST + b"\r\n", [b""]),
    "empty values": (POST + b"X:\r\nY: \r\nZ: z  \r\n\r\n", [b""]),
    "other letters": (POST + b"X: \xff\xe4\r\n\r\n", [b""]),
    "lines of one name": (POST + b"X: a\r\nX: b\r\n\r\n", [b""]),
    "chunks": (CHUNKED + b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", [b"{}"]),
    "chunks with extensions": (CHUNKED + b'2;a=b;c="d"\r\n{}\r\n0;e\r\n\r\n', [b"{}"]),
    "chunks and trailers": (CHUNKED + b"2\r\n{}\r\n0\r\nX: y\r\nX-Amz-Target: z\r\n\r\n", [b"{}"]),
    "a chunk in capitals": (CHUNKED + b"0A\r\n{        }\r\n0\r\n\r\n", [b"{        }"]),
    "chunks between others": (
        POST + b"Content-Length: 1\r\n\r\na" + CHUNKED + b"1\r\nb\r\n0\r\n\r\n" + POST + b"Content-Length: 1\r\n\r\nc",
        [b"a", b"b", b"c"],
    ),
    "an offer of HTTP/2": (
        POST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"
        b"Content-Length: 2\r\n\r\n{}"
        + POST + b"Content-Length: 1\r\n\r\nb",
        [b"{}", b"b"],
    ),
    "an offer of HTTP/2 in chunks": (
        POST + b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", [b"{}"]
    ),
    "HTTP/1.0": (b"POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}", [b"{}"]),
    "HTTP/1.0 that would go on": (
        b"POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}" + POST + b"\r\n",
        [b"{}"],
    ),
    "HTTP/1.0 and something else": (
        b"POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}POST / HTTP/1.1\r\n\r\n",
        [b"{}"],
    ),
    "the last": (POST + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}" + POST + b"\r\n", [b"{}"]),
    "get": (b"GET /a?b HTTP/1.1\r\nHost: localhost\r\n\r\n", [b""]),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_the_same_in_any_pieces(name: str) -> None:
    sent, bodies = REQUESTS[name]
    whole, refused = read([sent])
    assert refused is None
    assert [body for _, _, _, body, _, _ in whole] == bodies
    assert read(in_bytes(sent)) == (whole, None)
    for at in range(1, len(sent)):
        assert read([sent[:at], sent[at:]]) == (whole, None), at


@given(st.sampled_from(sorted(REQUESTS)), st.lists(st.integers(0, 600), max_size=8))
@settings(max_examples=examples(67), deadline=None)
def test_and_in_several_pieces(name: str, cuts: list[int]) -> None:
    sent, _ = REQUESTS[name]
    places = [0, *sorted(each % len(sent) for each in cuts), len(sent)]
    pieces = [sent[start:end] for start, end in pairwise(places)]
    assert read(pieces) == read([sent])


@pytest.mark.parametrize("number", range(len(CASES)))
def test_requests_of_the_protocol_are_the_same_in_any_pieces(number: int) -> None:
    told = dict(CASES[number][0])
    method, path, body = told.pop("method", "POST"), told.pop("path", "/"), told.pop("body", b"{}")
    given = {"Host": "localhost", **RIGHT, **{name.replace("_", "-"): value for name, value in told.items()}}
    lines = [f"{name}: {value}" for name, value in given.items() if value is not None]
    head = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, f"Content-Length: {len(body)}", "", ""])
    sent = head.encode() + body
    whole, refused = read([sent])
    assert refused is None
    assert [(each[0], each[1], each[3]) for each in whole] == [(method, path, body)]
    assert read(in_bytes(sent)) == (whole, None)
    for at in range(1, len(sent)):
        assert read([sent[:at], sent[at:]]) == (whole, None), at


def test_trailers_are_no_headers() -> None:
    (one, next_one), _ = read([REQUESTS["chunks and trailers"][0] + POST + b"\r\n"])
    assert (one[2], one[5]) == ("", {"host": "localhost", "transfer-encoding": "chunked"})
    assert (next_one[2], next_one[5]) == ("", {"host": "localhost"})


def test_lines_of_one_name_are_one_list() -> None:
    ((*_, headers),), _ = read([REQUESTS["lines of one name"][0]])
    assert headers["x"] == "a,b"


def test_whether_another_may_follow() -> None:
    keeps = {name: [each[4] for each in read([sent])[0]] for name, (sent, _) in REQUESTS.items()}
    assert {name for name, each in keeps.items() if not all(each)} == {
        "HTTP/1.0",
        "HTTP/1.0 that would go on",
        "HTTP/1.0 and something else",
        "the last",
    }


MALFORMED: dict[str, tuple[bytes, int]] = {
    "no HTTP": (b"nonsense\r\n\r\n", 400),
    "no version": (b"POST /\r\n\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "a version that is none": (b"POST / HTTP/1.2\r\nHost: localhost\r\n\r\n", 400),
    "another version": (b"POST / HTTP/2.0\r\nHost: localhost\r\n\r\n", 400),
    "no host": (b"POST / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (POST + b"Host: localhost\r\n\r\n", 400),
    "two hosts, spelled otherwise": (POST + b"hOST: localhost\r\n\r\n", 400),
    "a proxy": (b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "a name without a colon": (POST + b"no colon\r\n\r\n", 400),
    "no name": (POST + b": x\r\n\r\n", 400),
    "a space before the colon": (POST + b"Transfer-Encoding : chunked\r\n\r\n", 400),
    "a folded line": (POST + b"X: a\r\n b\r\n\r\n", 400),
    "a folded first line": (b"POST / HTTP/1.1\r\n Host: localhost\r\n\r\n", 400),
    "lines without CR": (b"POST / HTTP/1.1\nHost: localhost\n\n", 400),
    "a line without CR": (POST + b"X: a\nY: b\r\n\r\n", 400),
    "a CR inside a line": (POST + b"X: a\rb\r\n\r\n", 400),
    "NUL in a value": (POST + b"X: a\0b\r\n\r\n", 400),
    "NUL in a name": (POST + b"X\0: b\r\n\r\n", 400),
    "a control character": (POST + b"X: \x01\r\n\r\n", 400),
    "a path with a tab": (b"POST /\t HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "a length that is no number": (POST + b"Content-Length: x\r\n\r\n", 400),
    "a superscript": (POST + "Content-Length: ²\r\n\r\n".encode("latin-1"), 400),
    "a superscript in UTF-8": (POST + "Content-Length: ²\r\n\r\n".encode(), 400),
    "a length below nothing": (POST + b"Content-Length: -2\r\n\r\n{}", 400),
    "a length with a sign": (POST + b"Content-Length: +2\r\n\r\n{}", 400),
    "a length with an underscore": (POST + b"Content-Length: 1_0\r\n\r\n{}", 400),
    "an empty length": (POST + b"Content-Length:\r\n\r\n{}", 400),
    "two lengths": (POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400),
    "two lengths in a line": (POST + b"Content-Length: 2, 2\r\n\r\n{}", 400),
    "a length of 5,000 digits": (POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
    "a length of 5,000 zeros": (POST + b"Content-Length: " + b"0" * 5000 + b"2\r\n\r\n{}", 413),
    "a length that is too large": (POST + b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1), 413),
    "a length and chunks": (POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
    "chunks and a length": (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
    "another coding": (POST + b"Transfer-Encoding: identity\r\n\r\n{}", 400),
    "almost chunks": (POST + b"Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
    "codings before chunks": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
    "codings after chunks": (POST + b"Transfer-Encoding: chunked, identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
    "two codings": (
        POST + b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400
    ),
    "chunks in HTTP/1.0": (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
    "a chunk below nothing": (CHUNKED + b"-6\r\n", 400),
    "a chunk without a size": (CHUNKED + b"\r\n", 400),
    "a chunk with 0x": (CHUNKED + b"0x2\r\n{}\r\n0\r\n\r\n", 400),
    "a chunk with a sign": (CHUNKED + b"+2\r\n{}\r\n0\r\n\r\n", 400),
    "a chunk with a space": (CHUNKED + b"2 \r\n{}\r\n0\r\n\r\n", 400),
    "a chunk without CR": (CHUNKED + b"2\n{}\r\n0\r\n\r\n", 400),
    "a chunk of many digits": (CHUNKED + b"F" * 17 + b"\r\n", 400),
    "an extension without CR": (CHUNKED + b"2;a\n{}\r\n0\r\n\r\n", 400),
    "an extension with a control character": (CHUNKED + b"2;\x01\r\n{}\r\n0\r\n\r\n", 400),
    "a chunk that goes on": (CHUNKED + b"2\r\n{}{}\r\n0\r\n\r\n", 400),
    "a length among trailers": (CHUNKED + b"2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n", 400),
    "a chunk below nothing behind an offer of HTTP/2": (
        POST + b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n-6\r\n", 400
    ),
    "too many lines": (POST + b"X: y\r\n" * 200 + b"\r\n", 400),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_request_is_none_in_any_pieces(name: str) -> None:
    sent, status = MALFORMED[name]
    for before, count in ((b"", 0), (PLAIN + b"Content-Length: 2\r\n\r\n{}", 1)):
        whole, refused = read([before + sent])
        assert (len(whole), refused and refused[0]) == (count, status)
        assert read(in_bytes(before + sent)) == (whole, refused)
        for at in range(1, len(sent), 1 + len(sent) // 400):
            assert read([before + sent[:at], sent[at:]]) == (whole, refused), at


def test_what_is_no_request_behind_an_offer_of_another_protocol() -> None:
    sent = REQUESTS["an offer of HTTP/2 in chunks"][0] + b"POST / HTTP/1.1\r\n\r\n"
    whole, refused = read([sent])
    assert (len(whole), refused) == (1, (400, "the head of the request has no Host line"))
    assert read(in_bytes(sent)) == (whole, refused)


def test_as_many_lines_as_there_may_be() -> None:
    found, refused = read([POST + b"X: y\r\n" * 199 + b"\r\n"])
    assert (len(found), refused) == (1, None)


# --- sizes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 100, 4096])
@pytest.mark.parametrize(
    ("start", "endless"),
    [
        (b"", b"\r\n"),
        (b"", b"POST"[:1]),
        (b"POST /", b"x"),
        (POST + b"X", b"x"),
        (POST + b"X: ", b"x"),
        (POST, b"X: y\r\n"),
        (CHUNKED, b"0"),
        (CHUNKED + b"1;", b"x"),
        (CHUNKED + b"1;a=", b"x"),
        (CHUNKED + b"1\r\na\r\n0\r\n", b"X: y\r\n"),
        (CHUNKED + b"1\r\na\r\n0\r\nX: ", b"y"),
    ],
)
def test_nothing_is_read_without_end(start: bytes, endless: bytes, size: int) -> None:
    reading = reader()
    reading.feed(start)
    piece = endless * size
    fed = 0
    with pytest.raises(BadRequest) as caught:
        while fed <= 2 * MAX_HEAD:
            reading.feed(piece)
            fed += len(piece)
    assert caught.value.status in (400, 413)
    assert fed <= MAX_HEAD + len(piece)
    assert not reading.requests


def test_a_head_as_large_as_it_may_be() -> None:
    start = POST + b"X: "
    end = b"\r\n\r\n"
    for size, is_read in ((MAX_HEAD, True), (MAX_HEAD + 1, False)):
        sent = start + b"x" * (size - len(start) - len(end)) + end
        found, refused = read([*in_bytes(sent)])
        assert (len(found), refused and refused[0]) == ((1, None) if is_read else (0, 413))


def test_lines_after_a_body_as_large_as_they_may_be() -> None:
    for size, is_read in ((MAX_HEAD - 1, True), (MAX_HEAD, False)):
        reading = reader()
        reading.feed(CHUNKED + b"1\r\na")
        sent = b"\r\n0\r\nX: "
        sent += b"x" * (size - len(sent))
        if is_read:
            reading.feed(sent)
            reading.feed(b"\r\n\r\n")
        else:
            with pytest.raises(BadRequest):
                reading.feed(sent)
        assert len(reading.requests) == is_read


def test_a_closed_reader_reads_nothing() -> None:
    reading = reader()
    reading.feed(POST[:-2])
    reading.close()
    reading.feed(POST[-2:] + b"\r\n")
    assert not reading.requests


def test_a_body_in_chunks_is_bounded() -> None:
    piece = b"10000\r\n%b\r\n" % (b" " * 65536)
    reading = reader()
    reading.feed(CHUNKED)
    for _ in range(MAX_BODY // 65536):
        reading.feed(piece)
    assert reading.held == MAX_BODY
    with pytest.raises(BadRequest) as caught:
        reading.feed(b"1\r\nx\r\n")
    assert caught.value.status == 413
    assert reading.held == MAX_BODY


def test_a_body_in_the_smallest_chunks_is_held_as_one() -> None:
    reading = reader()
    reading.feed(CHUNKED)
    for _ in range(20):
        reading.feed(b"1\r\nx\r\n" * 1000)
    assert type(reading._body) is bytearray
    assert len(reading._body) == reading.held == 20_000
    reading.feed(b"0\r\n\r\n")
    assert (reading.requests[0].body, reading.held) == (b"x" * 20_000, 0)
    assert type(reading.requests[0].body) is bytes


def test_whether_a_request_is_under_way() -> None:
    reading = reader()
    assert not reading.is_within
    for piece, is_within in ((b"P", True), (POST[1:], True), (b"Content-Length: 2\r\n\r\n", True), (b"{}", False)):
        reading.feed(piece)
        assert reading.is_within == is_within


def test_who_waits_with_a_body() -> None:
    reading = reader()
    reading.feed(POST + b"Expect: 100-Continue\r\nContent-Length: 2\r\n\r\n")
    assert reading.awaits_continue
    reading.feed(b"{")
    assert not reading.awaits_continue
    reading.feed(b"}" + POST + b"\r\n")
    assert not reading.awaits_continue
    reading.feed(POST + b"Expect: 100-continue\r\nContent-Length: 0\r\n\r\n")
    assert not reading.awaits_continue
