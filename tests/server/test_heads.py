"""Which heads are plain, and what is kept of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adjoin.server import reading
from adjoin.server.reading import BadRequest, HttpRequest, RequestReader, form_of

LINES = {
    "Host": "127.0.0.1:8000",
    "X-Amz-Target": "DynamoDB_20120810.GetItem",
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20250101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=host;x-amz-date, Signature=0a1b",
    "Content-Length": "2",
}


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    reading._forms.clear()
    yield
    reading._forms.clear()


def head(lines: dict[str, str | None], start: str = "POST / HTTP/1.1") -> bytes:
    told = [f"{name}: {value}" for name, value in lines.items() if value is not None]
    return "\r\n".join([start, *told, "", ""]).encode("latin-1")


def read(data: bytes) -> HttpRequest | None:
    """The request that a head begins, if it has come whole."""
    reader = RequestReader(lambda host: host == b"127.0.0.1:8000")
    reader.feed(data + b"{}")
    return reader.requests[0] if reader.requests else None


def is_plain(data: bytes) -> bool:
    try:
        request = read(data)
    except BadRequest:
        return False
    return request is not None and request.is_plain


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"Accept-Encoding": "identity", "User-Agent": "Boto3/1.40 md/Botocore#1.40"},
        {"amz-sdk-invocation-id": "1-2", "amz-sdk-request": "attempt=1", "Connection": "keep-alive"},
        {"accept": "*/*", "x-amz-security-token": "a b", "x-amz-user-agent": "aws-sdk-js/3", "x-empty": ""},
        {"X-Origin": "x", "X-Connection": "close"},
        {"Content-Length": "0000002"},
    ],
)
def test_heads_as_clients_send_them(more: dict[str, str | None]) -> None:
    lines: dict[str, str | None] = {**LINES, **more}
    for order in (lines, dict(reversed(lines.items()))):
        for spelled in (str, str.lower):
            sent = head({spelled(name): value for name, value in order.items()})
            # The second time its form is known.
            for _ in range(2):
                request = read(sent)
                assert request is not None
                assert (request.is_plain, request.target, request.body) == (True, LINES["X-Amz-Target"], b"{}")
                assert request.headers == {name.lower(): value for name, value in lines.items()}


@pytest.mark.parametrize(
    "other",
    [
        *({name: None} for name in LINES),
        {"Transfer-Encoding": "chunked", "Content-Length": None},
        {"Transfer-Encoding": "chunked"},
        {"Expect": "100-continue"},
        {"Origin": "http://page"},
        {"ORIGIN": "http://page"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Content-Encoding": "gzip"},
        {"Accept-Encoding": "gzip"},
        {"Accept-Encoding": "identity, gzip"},
        {"Content-Type": "application/json"},
        {"Content-Type": "application/x-amz-json-1.0; charset=utf-8"},
        {"Content-Length": "2x"},
        {"Content-Length": "-1"},
        {"Content-Length": "00000002"},
        {"Content-Length": "999999999"},
        {"Authorization": "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=b"},
        {"Authorization": "AWS4-HMAC-SHA256 Credential=a, Signature=b"},
        {"Authorization": "AWS4-HMAC-SHA256 SignedHeaders=a, Signature=b"},
        {"Authorization": "Basic x"},
        {"Host": "elsewhere"},
        {"host": "127.0.0.1:8000"},
        {"Upgrade": "h2c"},
        *({name.lower(): value} for name, value in LINES.items()),
    ],
)
def test_others_are_looked_at_closely(other: dict[str, str | None]) -> None:
    lines: dict[str, str | None] = {**LINES, **other}
    for _ in range(2):
        assert not is_plain(head(lines))
        assert not is_plain(head(dict(reversed(lines.items()))))


def test_a_head_that_has_not_every_line_is_not_plain_whatever_its_values() -> None:
    lines = [part.encode() for line in LINES.items() for part in line]
    assert reading._is_plain(form_of(lines), lines, lambda host: True)
    more = [*lines, b"Expect", b"100-continue"]
    assert reading._is_plain(form_of(more), more, lambda host: True) is False


def test_a_plain_head_may_have_as_many_lines_as_any() -> None:
    lines = [part.encode() for line in LINES.items() for part in line]
    for number, may_be in ((reading._MAX_LINES, True), (reading._MAX_LINES + 1, False)):
        assert form_of([*lines, *[b"X", b""] * (number - len(LINES))]).may_be_plain == may_be


@pytest.mark.parametrize("start", ["GET / HTTP/1.1", "POST /x HTTP/1.1", "PUT / HTTP/1.1", "POST /?a HTTP/1.1"])
def test_only_requests_of_the_protocol_are_plain(start: str) -> None:
    assert not is_plain(head({**LINES}, start))


def test_a_plain_request_that_ends_the_connection() -> None:
    request = read(head({**LINES, "Connection": "close"}))
    assert request is not None
    assert (request.is_plain, request.keeps) == (True, False)


def test_forms_of_few_heads_are_kept() -> None:
    for number in range(5000):
        form_of([f"X-{number}".encode(), b"", *(part.encode() for line in LINES.items() for part in line)])
        assert len(reading._forms) <= 256
    form_of([b"X" * 1025, b""])
    form_of([b"X", b""] * 33)
    kept = list(reading._forms)
    assert kept
    assert max(map(len, kept)) <= 32
    assert max(sum(map(len, names)) for names in kept) <= 1024


@pytest.mark.parametrize(
    ("lines", "is_kept"),
    [([b"X", b""] * 32, True), ([b"X", b""] * 33, False), ([b"X" * 1024, b""], True), ([b"X" * 1025, b""], False)],
)
def test_the_largest_head_whose_form_is_kept(lines: list[bytes], is_kept: bool) -> None:
    form_of(lines)
    assert bool(reading._forms) == is_kept
