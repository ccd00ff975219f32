"""Turns bytes, in pieces of any size, into requests of HTTP/1.1. It does no I/O, and knows no operations.

httptools (llhttp) parses lines, lengths and chunks. It refuses whatever two parsers could understand differently:
a length together with a transfer coding, several lengths, folded lines, lines without CR, NULs. This module adds
what httptools leaves to its caller: the greatest sizes of a head, of a body and of everything between chunks, and
header lines that a head must not repeat.

A client sends header lines with the same names in the same order in every request. So the names of a head are
examined once, and the result, its form, is cached.

A plain head needs no decisions: a POST with DynamoDB's content type to one of the server's own hosts, signed in a
header, whose answer is neither compressed nor for a page in a browser. Nearly all requests have a plain head. All
others are examined header by header in `negotiation`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser

from adjoin.dataclass import dataclass

# --- heads -------------------------------------------------------------------------------------

Lines: TypeAlias = list[bytes]
"""The header lines of a head, as they arrived: a name, its value, the next name and so on."""

_MAX_LINES = 200
"""The greatest number of header lines."""

_KEPT = 256
_KEPT_LINES = 32
_KEPT_SIZE = 1024
"""The number of cached forms, and the greatest number of names, and of bytes in them, of a cached head. Real clients
use few names; a sender of many different ones must not fill the memory."""

_ABSENT: Final = -1
_PLAIN_DIGITS = 7
"""A Content-Length with at most this number of digits is never too large."""

# A head must not repeat these lines: a proxy in between could use another one of them than the server does.
_ONCE = frozenset(
    (
        b"host", b"content-length", b"transfer-encoding", b"content-type", b"content-encoding", b"authorization",
        b"x-amz-target", b"x-amz-date", b"origin", b"expect",
    )
)  # fmt: skip

# Lines that SDKs send seldom or never. A head with one of them is not plain.
_TO_BE_LOOKED_AT = frozenset(
    (b"transfer-encoding", b"content-encoding", b"expect", b"origin", b"sec-fetch-site", b"upgrade")
)

_NEEDED = (b"host", b"content-length", b"content-type", b"authorization", b"x-amz-target", b"x-amz-date")


@dataclass(frozen=True, slots=True)
class Form:
    """The positions of the values that matter among the lines of a head; -1 for a missing line."""

    host: int
    length: int
    kind: int
    authorization: int
    target: int
    transfer: int
    expect: int
    accepted: int
    may_be_plain: bool
    """Whether it has all lines of a plain head, and none that a plain head must not have."""
    twice: str | None
    """The name of a line that it repeats although it must not."""


def _is_plain(form: Form, lines: Lines, is_own_host: Callable[[bytes], bool]) -> bool:
    """Whether the head of a POST with these lines is plain."""
    if not form.may_be_plain:
        return False
    authorization = lines[form.authorization]
    return (
        lines[form.kind] == b"application/x-amz-json-1.0"
        and len(lines[form.length]) <= _PLAIN_DIGITS
        and authorization.startswith(b"AWS4-HMAC-SHA256 Credential=")
        and b"SignedHeaders=" in authorization
        and b"Signature=" in authorization
        and (form.accepted < 0 or lines[form.accepted] == b"identity")
        and is_own_host(lines[form.host])
    )


_forms: dict[tuple[bytes, ...], Form] = {}


def form_of(lines: Lines) -> Form:
    """Returns the form of a head with these lines."""
    names = tuple(lines[::2])
    form = _forms.get(names)
    if form is None:
        form = _looked_at(names)
        if len(names) <= _KEPT_LINES and sum(map(len, names)) <= _KEPT_SIZE:
            if len(_forms) >= _KEPT:
                _forms.clear()
            _forms[names] = form
    return form


def _looked_at(names: tuple[bytes, ...]) -> Form:
    at: dict[bytes, int] = {}
    twice: str | None = None
    for number, name in enumerate(names):
        lower = name.lower()
        if lower in at and lower in _ONCE and twice is None:
            twice = name.decode("latin-1")
        at[lower] = 2 * number + 1
    return Form(
        host=at.get(b"host", _ABSENT),
        length=at.get(b"content-length", _ABSENT),
        kind=at.get(b"content-type", _ABSENT),
        authorization=at.get(b"authorization", _ABSENT),
        target=at.get(b"x-amz-target", _ABSENT),
        transfer=at.get(b"transfer-encoding", _ABSENT),
        expect=at.get(b"expect", _ABSENT),
        accepted=at.get(b"accept-encoding", _ABSENT),
        may_be_plain=(
            twice is None
            and len(names) <= _MAX_LINES
            and all(name in at for name in _NEEDED)
            and _TO_BE_LOOKED_AT.isdisjoint(at)
        ),
        twice=twice,
    )


# --- requests ----------------------------------------------------------------------------------

MAX_HEAD = 64 * 1024
"""The greatest number of bytes of a head; also of trailers, and of anything else in a row that is not part of a
body."""
MAX_BODY = 16 * 1024 * 1024

_MOST_DIGITS = 20
"""The greatest number of digits of a Content-Length. More could only be leading zeros or far too large."""


class BadRequest(Exception):
    """The bytes are not a request, and nothing after them on the connection can be read."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class HttpRequest:
    """One request. `target` is the value of X-Amz-Target, or empty.

    `is_plain` says that its head is plain and need not be examined. `keeps` says whether the client wants to keep
    the connection open for another request.
    """

    __slots__ = ("_headers", "_lines", "body", "is_plain", "keeps", "method", "path", "target")

    def __init__(self, method: str, path: str, target: str, lines: Lines, is_plain: bool) -> None:
        self.method = method
        self.path = path
        self.target = target
        self.is_plain = is_plain
        self.keeps = True
        self.body = b""
        self._lines = lines
        self._headers: dict[str, str] | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The header values by name in lower case. Values of repeated lines are joined with commas."""
        if self._headers is None:
            headers: dict[str, str] = {}
            for name, value in self.lines():
                lower, text = name.decode("latin-1").lower(), value.decode("latin-1").strip()
                headers[lower] = f"{headers[lower]},{text}" if lower in headers else text
            self._headers = headers
        return self._headers

    def lines(self) -> Iterator[tuple[bytes, bytes]]:
        """The names and values of the header lines, as they arrived."""
        return zip(self._lines[::2], self._lines[1::2], strict=True)


class RequestReader:
    """Reads the bytes of one connection. `requests` are the complete ones, oldest first."""

    def __init__(self, is_own_host: Callable[[bytes], bool]) -> None:
        self.requests: deque[HttpRequest] = deque()
        self.count = 0
        """The number of complete requests so far."""
        self.awaits_continue = False
        """Whether the client waits for "100 Continue" before it sends the body."""
        self.is_over = False
        """Whether the client has said that it sends no further request."""
        self._is_own_host = is_own_host
        self._beside = 0
        """The number of bytes in a row that are not part of a body."""
        self._url = b""
        self._lines: Lines = []
        self._head: HttpRequest | None = None
        self._body: bytes | bytearray = b""
        self._upgrades = False
        """Whether the present request offers to change to another protocol."""
        self._parser: HttpRequestParser | None = HttpRequestParser(self)

    @property
    def is_within(self) -> bool:
        """Whether a request has begun to arrive and is incomplete."""
        return self._beside > 0 or self._head is not None or self._url != b""

    @property
    def held(self) -> int:
        """The bytes of the body that have arrived so far, if the request is incomplete."""
        return len(self._body)

    def feed(self, data: bytes) -> None:
        """Reads the next bytes. After an exception, the reader cannot be used any more."""
        if self.is_over or self._parser is None:
            return
        self._beside += len(data)
        rest: bytes | None = None
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            rest = data[upgrade.args[0] :]
        except HttpParserError as error:
            # Bytes after the last request are ignored.
            if not self.is_over:
                raise _fault(error) from None
        if rest is not None:
            self._read_on(rest)
        elif self._beside >= MAX_HEAD and not self.is_over:
            raise BadRequest(
                413, f"the head of a request, and the lines after a chunked body, have at most {MAX_HEAD} bytes"
            )

    def close(self) -> None:
        """Frees everything: the parser and this object refer to each other, so nothing else would soon."""
        self._parser = None
        self._body = b""
        self.requests.clear()

    def _read_on(self, rest: bytes) -> None:
        """Continues after a request that offers another protocol. httptools stops there; the offer is ignored."""
        head = self._head
        assert head is not None
        kept = [b"%b: %b\r\n" % line for line in head.lines() if line[0].lower() != b"upgrade"]
        start = b"%b %b HTTP/1.1\r\n" % (head.method.encode(), self._url)
        self._parser = HttpRequestParser(self)
        self._beside = 0
        self.feed(b"".join((start, *kept, b"\r\n")))
        if rest:
            self.feed(rest)

    # --- what httptools calls ---

    def on_url(self, piece: bytes) -> None:
        self._url = self._url + piece if self._url else piece

    def on_header(self, name: bytes, value: bytes) -> None:
        lines = self._lines
        lines.append(name)
        lines.append(value)

    def on_headers_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        lines, self._lines = self._lines, []
        self._beside = 0
        form = form_of(lines)
        method = parser.get_method()
        if form.may_be_plain and method == b"POST" and self._url == b"/" and _is_plain(form, lines, self._is_own_host):
            self._head = HttpRequest("POST", "/", lines[form.target].decode("latin-1"), lines, True)
            return
        version = parser.get_http_version()
        _check(form, lines, version)
        if method == b"CONNECT":
            raise BadRequest(400, "this server is not a proxy")
        self._upgrades = parser.should_upgrade()
        target = lines[form.target].strip().decode("latin-1") if form.target >= 0 else ""
        self._head = HttpRequest(method.decode("latin-1"), self._url.decode("latin-1"), target, lines, False)
        self._head.keeps = version == "1.1"
        if form.expect >= 0:
            self.awaits_continue = lines[form.expect].strip().lower() == b"100-continue" and not self._upgrades

    def on_body(self, piece: bytes) -> None:
        self._beside = 0
        self.awaits_continue = False
        if len(self._body) + len(piece) > MAX_BODY:
            raise BadRequest(413, f"a request has at most {MAX_BODY} bytes")
        if not self._body:
            # Nearly all bodies arrive in one piece.
            self._body = piece
        elif isinstance(self._body, bytearray):
            self._body += piece
        else:
            self._body = bytearray(self._body + piece)

    def on_message_complete(self) -> None:
        if self._upgrades or self.is_over:
            return
        request = self._head
        assert request is not None
        assert self._parser is not None
        body = self._body
        request.body = body if type(body) is bytes else bytes(body)
        request.keeps &= self._parser.should_keep_alive()
        self.requests.append(request)
        self.count += 1
        self.is_over = not request.keeps
        self.awaits_continue = False
        self._head = None
        self._url = self._body = b""
        self._beside = 0
        # Trailers are ignored.
        if self._lines:
            self._lines.clear()


def _fault(error: HttpParserError) -> BaseException:
    """Returns the exception that a callback raised inside httptools, or the error of httptools itself."""
    if isinstance(error, HttpParserCallbackError):
        return error.__context__ or error
    reason = str(error)
    return BadRequest(400, f"the request is not valid HTTP/1.1: {reason[:1].lower()}{reason[1:]}")


def _check(form: Form, lines: Lines, version: str) -> None:
    """Refuses a head that is ambiguous, or announces a body that the server does not accept."""
    if len(lines) > 2 * _MAX_LINES:
        raise BadRequest(400, f"the head of a request has at most {_MAX_LINES} lines")
    if form.twice is not None:
        raise BadRequest(400, f"the head of the request has {form.twice} twice")
    if version == "1.0":
        if form.transfer >= 0:
            raise BadRequest(400, "a request of HTTP/1.0 cannot have a transfer coding")
    elif version != "1.1":
        raise BadRequest(400, f"this is HTTP/{version}; send HTTP/1.1")
    elif form.host < 0:
        raise BadRequest(400, "the head of the request has no Host line")
    if form.length >= 0:
        length = lines[form.length].strip()
        if len(length) > _MOST_DIGITS or int(length) > MAX_BODY:
            raise BadRequest(413, f"a request has at most {MAX_BODY} bytes")
    if form.transfer >= 0 and lines[form.transfer].strip().lower() != b"chunked":
        raise BadRequest(400, "chunked is the only transfer coding that the server accepts")
