"""Checks the Signature Version 4 of a request against one key pair.

On the loopback address, any signature is accepted as long as its form is right. A server that other machines can
reach has a key pair, and refuses requests that were not signed with it, with DynamoDB's messages.
"""

from __future__ import annotations

import hmac
import re
import time
from calendar import timegm
from hashlib import sha256
from urllib.parse import parse_qs, quote

from adjoin.dataclass import dataclass
from adjoin.server.operations.interface import Refused
from adjoin.server.reading import HttpRequest

_SCHEME = "AWS4-HMAC-SHA256"
_SKEW = 15 * 60
"""The greatest number of seconds by which the clock of a client may differ."""
_STAMP = "%Y%m%dT%H%M%SZ"
_IN_HEADER = ("Credential", "Signature", "SignedHeaders")
_IN_ADDRESS = ("X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Signature", "X-Amz-SignedHeaders", "X-Amz-Date")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class KeyPair:
    access_key: str
    secret_key: str


def authentication_fault(request: HttpRequest) -> Refused | None:
    """Returns the fault in the form of a request's authentication, in its header or its address; otherwise None."""
    headers = request.headers
    authorization = headers.get("authorization", "")
    in_address = "X-Amz-Algorithm=" in request.path
    if in_address and authorization:
        return Refused(
            "InvalidSignatureException",
            "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.",
        )
    if in_address:
        given = parse_qs(request.path.partition("?")[2])
        missing = [f"AWS query-string parameters must include '{name}'. " for name in _IN_ADDRESS if name not in given]
        advice = "Re-examine the query-string parameters."
    elif not authorization.startswith("AWS4-"):
        return Refused("MissingAuthenticationTokenException", "Request is missing Authentication Token")
    else:
        missing = [
            f"Authorization header requires '{name}' parameter. " for name in _IN_HEADER if name not in authorization
        ]
        if "x-amz-date" not in headers and "date" not in headers:
            missing.append("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ")
        advice = f"Authorization={authorization}"
    return Refused("IncompleteSignatureException", "".join(missing) + advice) if missing else None


def check_signature(request: HttpRequest, keys: KeyPair, now: float | None = None) -> None:
    """Raises for a request that was not signed with this key pair, or whose signature is too old."""
    authorization = request.headers.get("authorization", "")
    parts = _parts(authorization.removeprefix(_SCHEME))
    stamp = request.headers.get("x-amz-date", "")
    credential = parts.get("Credential", "")
    scope = credential.split("/")
    if not authorization.startswith(f"{_SCHEME} "):
        raise Refused(
            "IncompleteSignatureException",
            f"Unsupported AWS 'algorithm': '{authorization.partition(' ')[0]}' (only {_SCHEME} for now). ",
        )
    if len(scope) != 5:
        raise Refused(
            "IncompleteSignatureException",
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term,"
            f" got '{credential}'",
        )
    if not hmac.compare_digest(scope[0].encode(), keys.access_key.encode()):
        raise Refused("UnrecognizedClientException", "The security token included in the request is invalid.")
    _check_date(stamp, scope[1], time.time() if now is None else now)
    if scope[3] != "dynamodb":
        raise Refused("InvalidSignatureException", "Credential should be scoped to correct service: 'dynamodb'. ")
    expected = _signature(request, keys, stamp, scope[1:], parts.get("SignedHeaders", "").split(";"))
    if not hmac.compare_digest(expected.encode(), parts.get("Signature", "").encode()):
        raise Refused(
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret"
            " Access Key and signing method. Consult the service documentation for details.",
        )


def _parts(said: str) -> dict[str, str]:
    """Returns the parts of an Authorization header, which are separated by commas, by name."""
    pairs = (part.strip().partition("=") for part in said.split(","))
    return {name: value for name, _, value in pairs if name in _IN_HEADER}


def _check_date(stamp: str, day: str, now: float) -> None:
    try:
        signed = timegm(time.strptime(stamp, _STAMP))
    except ValueError:
        raise Refused(
            "IncompleteSignatureException",
            f"Date must be in ISO-8601 'basic format'. Got '{stamp}'. See http://en.wikipedia.org/wiki/ISO_8601",
        ) from None
    if signed < now - _SKEW:
        raise _untimely(f"Signature expired: {stamp} is now earlier than", now, -_SKEW)
    if signed > now + _SKEW:
        raise _untimely(f"Signature not yet current: {stamp} is still later than", now, _SKEW)
    if not stamp.startswith(day):
        raise Refused(
            "InvalidSignatureException",
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP:"
            f" '{day}' != '{stamp[:8]}', from '{stamp}'.",
        )


def _untimely(fault: str, now: float, skew: int) -> Refused:
    limit, current = (time.strftime(_STAMP, time.gmtime(each)) for each in (now + skew, now))
    sign = "-" if skew < 0 else "+"
    return Refused("InvalidSignatureException", f"{fault} {limit} ({current} {sign} 15 min.)")


def _signature(request: HttpRequest, keys: KeyPair, stamp: str, scope: list[str], signed: list[str]) -> str:
    path, _, query = request.path.partition("?")
    headers = "".join(f"{name}:{_SPACES.sub(' ', request.headers.get(name, '')).strip()}\n" for name in signed)
    canonical = "\n".join(
        (request.method, quote(path, safe="/~"), query, headers, ";".join(signed), sha256(request.body).hexdigest())
    )
    text = "\n".join((_SCHEME, stamp, "/".join(scope), sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{keys.secret_key}".encode()
    for part in scope:
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()
