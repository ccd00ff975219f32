"""Which heads are plain, and what is read from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjoin.server.heads import plain_head

LINES = {
    "X-Amz-Target": "DynamoDB_20120810.GetItem",
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20250101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=host;x-amz-date, Signature=0a1b",
    "Content-Length": "2",
}
PLAIN = ("DynamoDB_20120810.GetItem", 2)


def head(lines: dict[str, str | None], start: str = "POST / HTTP/1.1") -> bytes:
    told = [f"{name}: {value}" for name, value in lines.items() if value is not None]
    return "\r\n".join([start, *told, "", ""]).encode("latin-1")


def read(data: bytes) -> tuple[str, int] | None:
    found = plain_head(data + b"{}")
    if found is None:
        return None
    target, end, length = found
    assert end == len(data)
    return target, length


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"Host": "localhost:8000", "Accept-Encoding": "identity", "User-Agent": "Boto3/1.40 md/Botocore#1.40"},
        {"amz-sdk-invocation-id": "1-2", "amz-sdk-request": "attempt=1", "Connection": "keep-alive"},
        {"accept": "*/*", "x-amz-security-token": "a b", "x-amz-user-agent": "aws-sdk-js/3", "x-empty": ""},
        {"X-Origin": "x", "X-Connection": "close"},
    ],
)
def test_heads_as_clients_send_them(more: dict[str, str | None]) -> None:
    lines: dict[str, str | None] = {**LINES, **more}
    for order in (lines, dict(reversed(lines.items()))):
        for spelled in (str, str.lower):
            assert read(head({spelled(name): value for name, value in order.items()})) == PLAIN


@pytest.mark.parametrize(
    "other",
    [
        *({name: None} for name in LINES),
        {"Connection": "close"},
        {"CONNECTION": "close"},
        {"Transfer-Encoding": "chunked"},
        {"transfer-encoding": "identity"},
        {"Expect": "100-continue"},
        {"Origin": "http://page"},
        {"ORIGIN": "http://page"},
        {"Content-Encoding": "gzip"},
        {"Accept-Encoding": "gzip"},
        {"Accept-Encoding": "identity, gzip"},
        {"Content-Type": "application/json"},
        {"Content-Type": "application/x-amz-json-1.0; charset=utf-8"},
        {"Content-Length": "2x"},
        {"Content-Length": "-1"},
        {"Content-Length": "999999999"},
        {"X-Amz-Target": "a b"},
        {"Authorization": "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=b"},
        {"Authorization": "Basic x"},
    ],
)
def test_others_are_looked_at_closely(other: dict[str, str | None]) -> None:
    lines: dict[str, str | None] = {**LINES, **other}
    assert read(head(lines)) is None
    assert read(head(dict(reversed(lines.items())))) is None


@pytest.mark.parametrize("start", ["GET / HTTP/1.1", "POST /x HTTP/1.1", "POST / HTTP/1.0", "POST  / HTTP/1.1"])
def test_only_requests_of_the_protocol_are_plain(start: str) -> None:
    assert read(head({**LINES}, start)) is None


def test_a_line_without_a_colon_is_not_plain() -> None:
    assert read(head({**LINES}).replace(b"Content-Type", b"nothing\r\nContent-Type")) is None


def test_a_head_is_plain_only_when_it_is_whole() -> None:
    whole = head({**LINES})
    assert all(plain_head(whole[:end]) is None for end in range(len(whole)))
    assert read(whole) == PLAIN


def test_long_heads_take_no_longer_than_they_are_long() -> None:
    long = "a,SignedHeaders=" * 20_000
    assert read(head({**LINES, "Authorization": f"AWS4-HMAC-SHA256 Credential={long}"})) is None
    assert read(head({**LINES, "X": "y" * 200_000, **{f"x-{number}": "z" for number in range(5000)}})) == PLAIN


@pytest.mark.parametrize("line", ["Host: a", "X-Amz-Date: a", "User-Agent: a", "amz-sdk-request: a", "X: a"])
def test_many_lines_that_come_to_nothing_do_not_take_long_either(line: str) -> None:
    assert plain_head(head({**LINES}).replace(b"\r\n\r\n", f"\r\n{line}".encode() * 5000 + b"\r\nx")) is None


@given(st.binary())
def test_any_bytes_are_plain_or_not(data: bytes) -> None:
    assert plain_head(data) is None
