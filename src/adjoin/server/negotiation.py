"""What HTTP alone decides, before any operation is looked at: health, methods, content types, browsers, compression.

`negotiated` answers what is no request of DynamoDB's protocol, hands every other on, and brings its answer into
the form that the client accepts. A request with a plain head (`heads`) needs none of it.
"""

from __future__ import annotations

import zlib
from base64 import b32encode
from os import urandom
from zlib import crc32

from orjson import dumps

from adjoin.server.admission import Admission
from adjoin.server.http import Answer, Answering, Handler, Later
from adjoin.server.operations.refusals import Refused, body_of
from adjoin.server.reading import MAX_BODY, Request

JSON = "application/x-amz-json-1.0"

_ACCEPTED = (JSON, "application/json")
_NO_OPERATION = b"<UnknownOperationException/>\n"
_WORTH_PACKING = 4096
"""Bytes below which an answer is not compressed."""
_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
"""The codings that are understood, by zlib's names for them."""


def negotiated(request: Request, perform: Handler, admission: Admission) -> Answering:
    """The answer of `perform`, in the form that the client accepts; or one that needs no operation."""
    fault = admission.fault(request.headers)
    if fault is not None:
        content = dumps(body_of(Refused("AccessDeniedException", fault)))
        return _told(403, b"" if request.method == "HEAD" else content, {"Content-Type": JSON})
    origin: dict[str, str] = {}
    if "origin" in request.headers:
        origin = {"Access-Control-Allow-Origin": request.headers["origin"], "Vary": "Origin"}
    if request.method == "OPTIONS" and origin:
        return _told(200, b"", origin | _preflight(request))
    if request.method == "GET" and request.path.partition("?")[0] == "/":
        content = f"healthy: {request.headers.get('host', 'localhost')} ".encode()
        return _told(200, content, origin)
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if request.method != "POST" or (request.body and kind not in _ACCEPTED):
        return _told(404, b"" if request.method == "HEAD" else _NO_OPERATION, origin)
    answering = perform(request)
    headers = origin | {"Content-Type": kind if kind == JSON else "application/json"}
    coding = _coding(request.headers.get("accept-encoding", ""))
    if isinstance(answering, Answer):
        return _formed(answering, headers, coding)
    formed = Later()
    answering.then(lambda: formed.settle(_formed(answering.settled, headers, coding)))
    return formed


def _told(status: int, content: bytes, headers: dict[str, str]) -> Answer:
    told = {"x-amzn-RequestId": request_id(), "x-amz-crc32": str(crc32(content)), **headers}
    return Answer(status, content, _lines(told))


def _lines(headers: dict[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


def request_id() -> str:
    return b32encode(urandom(33))[:52].decode()


def _preflight(request: Request) -> dict[str, str]:
    """What a page that may ask may send: whatever it asked for, also to an address of its own machine."""
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
    """The coding of an answer: the first that the client accepts and the server knows."""
    for wanted in accepted.lower().split(","):
        name, _, quality = wanted.partition(";")
        if name.strip() in _WINDOWS and quality.replace(" ", "") not in ("q=0", "q=0.0"):
            return name.strip()
    return None


def _formed(answer: Answer, headers: dict[str, str], coding: str | None) -> Answer:
    told = dict(line.split(": ", 1) for line in answer.head.decode().splitlines()) | headers
    if coding is not None and len(answer.body) >= _WORTH_PACKING:
        packing = zlib.compressobj(wbits=_WINDOWS[coding])
        answer.body = packing.compress(answer.body) + packing.flush()
        # The checksum is that of the bytes as they are sent.
        told |= {"Content-Encoding": coding, "x-amz-crc32": str(crc32(answer.body))}
    return Answer(answer.status, answer.body, _lines(told))


def unpacked(request: Request) -> bytes:
    """The body of a request without its compression."""
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
