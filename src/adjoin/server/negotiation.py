"""What HTTP alone decides, before the operation: who may ask, health, metrics, methods, content types, compression.

`negotiated` answers requests that are not part of DynamoDB's protocol, passes all others on, and encodes their answers
as the client accepts them. A request with a plain head (see `reading`) needs none of this.

`Admission` decides who may send requests, by the host that a request names and the page that sends it. A browser sends
the requests of any page to any address that its machine reaches, including the loopback address. It says which page
sends the request (Origin), and under which name it found the server (Host). So a page is admitted only if its origin
was allowed. And the server answers only to its own names: the owner of a page can point the page's own host name to the
loopback address, and then the page has the same origin as the server (DNS rebinding). Programs send no Origin.

With a key pair, a request is known by its signature, which no page can make: then every host is accepted.
"""

from __future__ import annotations

import zlib
from base64 import b32encode
from collections.abc import Callable, Collection
from functools import lru_cache
from ipaddress import ip_address
from os import urandom
from urllib.parse import urlsplit
from zlib import crc32

from orjson import dumps

from adjoin import prometheus
from adjoin.errors import InvalidLocation
from adjoin.server.http import Answerer, Answering, HttpAnswer, Later
from adjoin.server.operations.interface import Refused
from adjoin.server.operations.refusals import body_of
from adjoin.server.reading import MAX_BODY, HttpRequest

ANY = "*"
_KEPT = 64
"""The number of hosts in the cache; clients name one or two."""
_SHOWN = 300
"""The greatest number of characters of a name that a refusal quotes."""
_FOREIGN_SITES = ("cross-site", "same-site")
"""The values of Sec-Fetch-Site for a page that is not the server's own."""


class Admission:
    """Which hosts are the server's own, and which origins may send requests."""

    def __init__(
        self, bound: str = "127.0.0.1", hosts: Collection[str] = (), origins: Collection[str] = (), signed: bool = False
    ) -> None:
        """`bound` is the address on which the server listens; `signed` says whether it requires signed requests."""
        self._hosts = frozenset((_bare(bound), *map(_allowed_host, hosts)))
        self._any_host = signed or ANY in hosts
        self._origins = frozenset(map(_allowed_origin, origins))
        # It is cached because every request calls it.
        self.is_own_host = lru_cache(_KEPT)(self._is_own_host)

    def _is_own_host(self, host: bytes) -> bool:
        """Whether a Host line names this server. The port may differ, as it does behind a tunnel."""
        if self._any_host:
            return True
        name = _name_of(host.decode("latin-1"))
        return name in self._hosts or is_loopback(name) or name.endswith(".localhost")

    def fault(self, headers: dict[str, str]) -> str | None:
        """Returns why the sender of this head is not admitted; None if it is."""
        host = headers.get("host")
        if host is not None and not self.is_own_host(host.encode("latin-1")):
            return (
                f"the server does not answer as {host[:_SHOWN]}; send requests to the address that it listens at, or"
                " allow the name with --allow-host (allow_hosts)"
            )
        origin = headers.get("origin")
        if origin is not None and not self.takes_origin(origin):
            return (
                f"pages of {origin[:_SHOWN]} may not send requests; allow the origin with --allow-origin"
                " (allow_origins)"
            )
        if origin is None and headers.get("sec-fetch-site", "").lower() in _FOREIGN_SITES:
            return "requests of a page of another site must name its origin"
        return None

    def takes_origin(self, origin: str) -> bool:
        return ANY in self._origins or origin.lower() in self._origins


def is_loopback(host: str) -> bool:
    """Whether a name or an address is a loopback one."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _name_of(host: str) -> str:
    """Returns the value of a Host line without the port, and without the brackets of an IPv6 address."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return _bare(host.partition(":")[0])


def _bare(name: str) -> str:
    return name.lower().removesuffix(".")


def _allowed_host(host: str) -> str:
    name = host if host == ANY or host.count(":") > 1 else _name_of(host)
    if not name or any(each in host for each in "/@ "):
        raise InvalidLocation(
            f"{host!r} is not a host to allow; name one as in db.example.org, without scheme and path"
        )
    return _bare(name)


def _allowed_origin(origin: str) -> str:
    """Returns an origin as browsers send it: scheme, host and port, without a slash at the end."""
    if origin in (ANY, "null"):
        return origin
    bare = origin.lower().removesuffix("/")
    parts = urlsplit(bare)
    if not parts.scheme or not parts.netloc or parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        raise InvalidLocation(f"{origin!r} is not an origin to allow; write one as in http://localhost:3000")
    return bare


# --- what is answered without an operation -----------------------------------------------------


JSON = "application/x-amz-json-1.0"

_ACCEPTED = (JSON, "application/json")
_NO_OPERATION = b"<UnknownOperationException/>\n"
_WORTH_PACKING = 4096
"""Smaller answers, in bytes, are not compressed."""
_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
"""The content codings that the server knows, with zlib's window size for each."""


def negotiated(
    request: HttpRequest, perform: Answerer, admission: Admission, metrics: Callable[[], str] | None
) -> Answering:
    """Returns the answer of `perform`, encoded as the client accepts it; or an answer that needs no operation.

    `metrics` is what GET /metrics returns, for Prometheus; None if the server does not tell.
    """
    fault = admission.fault(request.headers)
    if fault is not None:
        content = dumps(body_of(Refused("AccessDeniedException", fault)))
        return _answer(403, b"" if request.method == "HEAD" else content, {"Content-Type": JSON})
    origin: dict[str, str] = {}
    if "origin" in request.headers:
        origin = {"Access-Control-Allow-Origin": request.headers["origin"], "Vary": "Origin"}
    if request.method == "OPTIONS" and origin:
        return _answer(200, b"", origin | _preflight(request))
    if request.method == "GET" and request.path.partition("?")[0] == "/":
        content = f"healthy: {request.headers.get('host', 'localhost')} ".encode()
        return _answer(200, content, origin)
    if request.method == "GET" and request.path.partition("?")[0] == "/metrics" and metrics is not None:
        return _answer(200, metrics().encode(), origin | {"Content-Type": prometheus.CONTENT_TYPE})
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if request.method != "POST" or (request.body and kind not in _ACCEPTED):
        return _answer(404, b"" if request.method == "HEAD" else _NO_OPERATION, origin)
    answering = perform(request)
    headers = origin | {"Content-Type": kind if kind == JSON else "application/json"}
    coding = _coding(request.headers.get("accept-encoding", ""))
    if isinstance(answering, HttpAnswer):
        return _formed(answering, headers, coding)
    formed = Later()
    answering.then(lambda: formed.settle(_formed(answering.settled, headers, coding)))
    return formed


def _answer(status: int, content: bytes, headers: dict[str, str]) -> HttpAnswer:
    lines = {"x-amzn-RequestId": request_id(), "x-amz-crc32": str(crc32(content)), **headers}
    return HttpAnswer(status, content, _lines(lines))


def _lines(headers: dict[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


def request_id() -> str:
    return b32encode(urandom(33))[:52].decode()


def _preflight(request: HttpRequest) -> dict[str, str]:
    """Returns the CORS headers for an admitted page: all that it asked for, also on a private network."""
    asked = {
        f"Access-Control-Allow-{what}": request.headers[f"access-control-request-{name}"]
        for what, name in (("Headers", "headers"), ("Methods", "method"))
        if f"access-control-request-{name}" in request.headers
    }
    if "access-control-request-private-network" in request.headers:
        asked["Access-Control-Allow-Private-Network"] = "true"
    return asked | {"Access-Control-Max-Age": "172800"}


# --- compression -------------------------------------------------------------------------------


def _coding(accepted: str) -> str | None:
    """Returns the first content coding that the client accepts and the server knows, or None."""
    for wanted in accepted.lower().split(","):
        name, _, quality = wanted.partition(";")
        if name.strip() in _WINDOWS and quality.replace(" ", "") not in ("q=0", "q=0.0"):
            return name.strip()
    return None


def _formed(answer: HttpAnswer, headers: dict[str, str], coding: str | None) -> HttpAnswer:
    lines = dict(line.split(": ", 1) for line in answer.head.decode().splitlines()) | headers
    if coding is not None and len(answer.body) >= _WORTH_PACKING:
        packing = zlib.compressobj(wbits=_WINDOWS[coding])
        answer.body = packing.compress(answer.body) + packing.flush()
        # The checksum covers the bytes that are sent, so it is computed after the compression.
        lines |= {"Content-Encoding": coding, "x-amz-crc32": str(crc32(answer.body))}
    return HttpAnswer(answer.status, answer.body, _lines(lines))


def unpacked(request: HttpRequest) -> bytes:
    """Returns the decompressed body of a request."""
    coding = request.headers.get("content-encoding", "identity").lower()
    if coding == "identity":
        return request.body
    if coding not in _WINDOWS:
        raise Refused("SerializationException")
    unpacking = zlib.decompressobj(_WINDOWS[coding])
    try:
        body = unpacking.decompress(request.body, MAX_BODY)
    except zlib.error:
        raise Refused("SerializationException") from None
    if not unpacking.eof:
        raise Refused("SerializationException")
    return body
