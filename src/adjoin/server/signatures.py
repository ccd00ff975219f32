"""Who may ask: Signature Version 4 of a request, checked against one key pair.

On the loopback address anybody may ask, with any signature or none. A server that others can reach has a
key pair, and refuses what was not signed with it, in the service's words.
"""

from __future__ import annotations

import hmac
import re
import time
from calendar import timegm
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import quote

from adjoin.server.faults import Refused
from adjoin.server.http import Request

_SCHEME = "AWS4-HMAC-SHA256"
_SKEW = 15 * 60
"""Seconds by which the clock of a client may be wrong."""
_PARTS = re.compile(r"\s*(Credential|SignedHeaders|Signature)=([^,\s]+)\s*(?:,|$)")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class KeyPair:
    access_key: str
    secret_key: str


def check_signature(request: Request, keys: KeyPair, now: float | None = None) -> None:
    """Refuses a request that was not signed with this key pair, or not lately."""
    authorization = request.headers.get("authorization")
    if authorization is None:
        raise Refused("MissingAuthenticationTokenException", "Request is missing Authentication Token")
    parts = dict(_PARTS.findall(authorization.removeprefix(_SCHEME)))
    stamp = request.headers.get("x-amz-date", "")
    scope = parts.get("Credential", "").split("/")
    if not authorization.startswith(_SCHEME) or len(parts) < 3 or len(scope) != 5 or not stamp:
        raise Refused(
            "IncompleteSignatureException",
            "Authorization header requires 'Credential', 'SignedHeaders' and 'Signature' parameters, and a date",
        )
    if not hmac.compare_digest(scope[0].encode(), keys.access_key.encode()):
        raise Refused("UnrecognizedClientException", "The security token included in the request is invalid.")
    _check_date(stamp, scope[1], time.time() if now is None else now)
    expected = _signature(request, keys, stamp, scope[1:], parts["SignedHeaders"].split(";"))
    if not hmac.compare_digest(expected.encode(), parts["Signature"].encode()):
        raise Refused(
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret"
            " Access Key and signing method. Consult the service documentation for details.",
        )


def _check_date(stamp: str, day: str, now: float) -> None:
    try:
        signed = timegm(time.strptime(stamp, "%Y%m%dT%H%M%SZ"))
    except ValueError:
        raise Refused(
            "IncompleteSignatureException", f"Date must be in ISO-8601 'basic format'. Got '{stamp}'."
        ) from None
    if abs(signed - now) > _SKEW or not stamp.startswith(day):
        current = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        word = "Signature expired" if signed < now else "Signature not yet current"
        raise Refused("InvalidSignatureException", f"{word}: {stamp} is not within 15 min. of {current}")


def _signature(request: Request, keys: KeyPair, stamp: str, scope: list[str], signed: list[str]) -> str:
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
