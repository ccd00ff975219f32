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
        self._keyed: tuple[str, str, hmac.HMAC] | None = None
        self._stamp = (0, "")

    def headers(self, credentials: Credentials, target: str, body: bytes, now: float) -> dict[str, str]:
        """All headers that the signature covers, but for the host, and the signature itself."""
        stamp = self._stamped(int(now))
        token = credentials.token
        if token is None:
            rest, signed = f"x-amz-target:{target}\n\n", "content-type;host;x-amz-date;x-amz-target"
        else:
            rest = f"x-amz-security-token:{token}\nx-amz-target:{target}\n\n"
            signed = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"
        request = f"{self._before_date}{stamp}\n{rest}{signed}\n{sha256(body).hexdigest()}"
        scope = f"{stamp[:8]}/{self._region}/{self._service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{sha256(request.encode()).hexdigest()}"
        mac = self._keyed_for(credentials.secret_key, stamp[:8])
        mac.update(text.encode())
        headers = {
            "Content-Type": CONTENT_TYPE,
            "X-Amz-Date": stamp,
            "X-Amz-Target": target,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, "
            f"SignedHeaders={signed}, Signature={mac.hexdigest()}",
        }
        if token is not None:
            headers["X-Amz-Security-Token"] = token
        return headers

    def _stamped(self, second: int) -> str:
        """Requests of one second share it; one tuple, so that another thread sees all of it or none."""
        known, stamp = self._stamp
        if known != second or not stamp:
            stamp = strftime("%Y%m%dT%H%M%SZ", gmtime(second))
            self._stamp = (second, stamp)
        return stamp

    def _keyed_for(self, secret: str, day: str) -> hmac.HMAC:
        """What is left to do for each request with the key of a day."""
        keyed = self._keyed
        if keyed is None or keyed[0] != secret or keyed[1] != day:
            key = f"AWS4{secret}".encode()
            for part in (day, self._region, self._service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            keyed = self._keyed = (secret, day, hmac.new(key, digestmod="sha256"))
        return keyed[2].copy()
