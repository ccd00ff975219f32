"""Signature Version 4 for DynamoDB's protocol: every request is a POST of JSON to one path.

Only what changes from request to request is computed for each: two digests and one keyed one. The
signed headers, and so the signature, are those that botocore makes of the same request.

Source: the AWS General Reference, "Signing AWS API requests".
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from hashlib import sha256
from time import gmtime, strftime
from urllib.parse import quote

CONTENT_TYPE = "application/x-amz-json-1.0"


@dataclass(frozen=True, slots=True)
class Credentials:
    access_key: str
    secret_key: str
    token: str | None = None


class Signer:
    """Signs requests to one host; credentials may change between requests."""

    def __init__(self, host: str, path: str, region: str, service: str = "dynamodb") -> None:
        self._region = region
        self._service = service
        self._before_date = (
            f"POST\n{quote(path or '/', safe='/~')}\n\ncontent-type:{CONTENT_TYPE}\nhost:{host}\nx-amz-date:"
        )
        self._key: tuple[str, str, bytes] = ("", "", b"")

    def headers(self, credentials: Credentials, target: str, body: bytes, now: float) -> dict[str, str]:
        """All headers that the signature covers, but for the host, and the signature itself."""
        stamp = strftime("%Y%m%dT%H%M%SZ", gmtime(now))
        token = credentials.token
        if token is None:
            rest, signed = f"x-amz-target:{target}\n\n", "content-type;host;x-amz-date;x-amz-target"
        else:
            rest = f"x-amz-security-token:{token}\nx-amz-target:{target}\n\n"
            signed = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"
        request = f"{self._before_date}{stamp}\n{rest}{signed}\n{sha256(body).hexdigest()}"
        scope = f"{stamp[:8]}/{self._region}/{self._service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{sha256(request.encode()).hexdigest()}"
        signature = hmac.digest(self._signing_key(credentials.secret_key, stamp[:8]), text.encode(), "sha256").hex()
        headers = {
            "Content-Type": CONTENT_TYPE,
            "X-Amz-Date": stamp,
            "X-Amz-Target": target,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, "
            f"SignedHeaders={signed}, Signature={signature}",
        }
        if token is not None:
            headers["X-Amz-Security-Token"] = token
        return headers

    def _signing_key(self, secret: str, day: str) -> bytes:
        """The same for a whole day; one tuple, so that another thread sees all of it or none."""
        known_secret, known_day, key = self._key
        if known_day != day or known_secret != secret:
            key = f"AWS4{secret}".encode()
            for part in (day, self._region, self._service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._key = (secret, day, key)
        return key
