"""Credentials, region and endpoints, as botocore finds them, and the signature of each request.

botocore reads environment, profiles, containers, instance metadata and web identity, and refreshes credentials that
expire. To import it takes as long as to import all that a graph needs. So it is left out where it would find everything
in the environment, as in a Lambda function: if no profile is named and there is no file of AWS's configuration. A
server on this machine needs no credentials: if none are set, made-up ones are used.

A credential provider may never answer, so no call waits for it directly. One thread looks credentials up for all
callers, and each caller waits as long as its deadline allows.

Signatures are of Version 4. Every request is a POST of JSON to one path, so only the parts that differ between requests
are computed per request: two digests and one keyed digest. The signed headers, and so the signature, are those that
botocore makes for the same request. Source: the AWS General Reference, "Signing AWS API requests".
"""

from __future__ import annotations

import hmac
import os
import re
import threading
import time
from concurrent.futures import Future
from hashlib import sha256
from ipaddress import ip_address
from time import gmtime, strftime
from typing import Any
from urllib.parse import quote, urlsplit

from adjoin.dataclass import dataclass
from adjoin.errors import AdjoinError, InvalidCredentials, InvalidLocation, MissingExtra
from adjoin.late import later

_botocore = later("botocore.session")

# --- signatures --------------------------------------------------------------------------------


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
        """The signature, and all headers that it covers except the host."""
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
        """The time stamp of a second. It is cached as one tuple, so that other threads never see half of it."""
        known, stamp = self._stamp
        if known != second or not stamp:
            stamp = strftime("%Y%m%dT%H%M%SZ", gmtime(second))
            self._stamp = (second, stamp)
        return stamp

    def _keyed_for(self, secret: str, day: str) -> hmac.HMAC:
        """A copy of the HMAC with the signing key of a day, to which each request adds its own text."""
        keyed = self._keyed
        if keyed is None or keyed[0] != secret or keyed[1] != day:
            key = f"AWS4{secret}".encode()
            for part in (day, self._region, self._service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            keyed = self._keyed = (secret, day, hmac.new(key, digestmod="sha256"))
        return keyed[2].copy()


# --- endpoints and credentials -----------------------------------------------------------------


_USED_UNTIL = 60
"""Credentials are not used in the last seconds, this many, before they expire."""
_PAUSE = 5.0
"""Seconds between attempts to renew credentials that are still valid."""
_GIVEN_UP = 60.0
"""Seconds after which another thread looks credentials up, if the first one has not returned."""

LOCAL_REGION = "us-east-1"
_LOCAL = Credentials("local", "local")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address to which requests are sent, with its signer."""

    url: str
    host: str
    signer: Signer


def endpoint_at(url: str, region: str) -> Endpoint:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidLocation(f"{url!r} is not an endpoint; give one such as http://127.0.0.1:8000")
    host = parts.hostname if ":" not in parts.hostname else f"[{parts.hostname}]"
    standard = {"http": 80, "https": 443}[parts.scheme]
    if port not in (None, standard):
        host = f"{host}:{port}"
    path = parts.path or "/"
    return Endpoint(f"{parts.scheme}://{host}{path}", host, Signer(host, path, region))


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class ServiceAccess:
    """Everything that is needed to address and sign a request; safe for many threads."""

    def __init__(self, region: str | None, endpoint: str | None, profile: str | None) -> None:
        self._profile = profile
        self._starting = threading.Lock()
        self._resolving = threading.Lock()
        self._found: Any = None
        self._current: Credentials | None = None
        """The last credentials that were found, if they can expire."""
        self._lookups: dict[Credentials | None, tuple[Future[Credentials], float]] = {}
        """The lookups under way with their start times, by the credentials that they replace."""
        self._renewed = -_PAUSE
        self._session: Any = None
        if profile is None and not _has_files():
            given = endpoint or _endpoint_of_environment("dynamodb")
            streams = endpoint or _endpoint_of_environment("dynamodb_streams") or given
            found = os.environ.get("AWS_DEFAULT_REGION")
        else:
            try:
                given = endpoint or self._configured_endpoint("dynamodb")
                streams = endpoint or self._configured_endpoint("dynamodb_streams") or given
                found = self._botocore().get_config_variable("region")
            except Exception as error:
                if _is_of_botocore(error):
                    raise InvalidLocation(f"AWS's configuration cannot be used: {error}") from error
                raise
        # All AWS SDKs except botocore read AWS_REGION, and AWS's runtimes such as Lambda set it.
        self.region = region or os.environ.get("AWS_REGION") or found or _default_region(given)
        self.table_endpoint = endpoint_at(given or self._service_url("dynamodb"), self.region)
        self.stream_endpoint = endpoint_at(streams or self._service_url("streams.dynamodb"), self.region)
        self._is_local = given is not None and _is_loopback(given)

    def _botocore(self) -> Any:
        """botocore's session, which remembers what it found."""
        if self._session is None:
            try:
                self._session = _botocore.Session(profile=self._profile)
            except ModuleNotFoundError as error:
                raise MissingExtra(
                    f"dynamodb:// needs {error.name}; install it with: pip install 'adjoin[dynamodb]'"
                ) from error
        return self._session

    def _configured_endpoint(self, service: str) -> str | None:
        session = self._botocore()
        if session.get_config_variable("ignore_configured_endpoint_urls"):
            return None
        profile = session.get_scoped_config()
        services = session.full_config.get("services", {}).get(profile.get("services"), {})
        return (
            _endpoint_of_environment(service)
            or services.get(service, {}).get("endpoint_url")
            or profile.get("endpoint_url")
        )

    def _service_url(self, service: str) -> str:
        if _USUAL_REGION.fullmatch(self.region):
            return f"https://{service}.{self.region}.amazonaws.com"
        for partition in self._botocore().get_data("partitions")["partitions"]:
            if self.region in partition["regions"] or re.match(partition["regionRegex"], self.region):
                return f"https://{service}.{self.region}.{partition['outputs']['dnsSuffix']}"
        raise InvalidLocation(f"{self.region!r} is not a region of AWS; name one such as eu-west-1")

    def credentials(self) -> Credentials | None:
        """Valid credentials if they are at hand; None if `lookup` has to find them."""
        found = self._found
        if type(found) is Credentials:
            return found
        if found is None or found.refresh_needed(_USED_UNTIL):
            return None
        if found.refresh_needed() and time.monotonic() - self._renewed > _PAUSE:
            # They stay valid for some minutes, so nobody waits for this lookup and its failure does no harm.
            self.lookup()
        return self._current

    def lookup(self, instead_of: Credentials | None = None) -> Future[Credentials]:
        """Credentials that a thread looks up or refreshes; raises `InvalidCredentials` if there are none.

        `instead_of` are credentials that the service refused. They are looked up again, unless another call did so.
        """
        with self._starting:
            under_way, since = self._lookups.get(instead_of, (None, 0.0))
            if under_way is not None and time.monotonic() - since > _GIVEN_UP:
                # The old thread holds locks, ours and botocore's, perhaps for ever, so start with new ones.
                self._start_over()
                under_way = None
            if under_way is None:
                under_way = Future()
                # Mark it as running, so that a caller that stops waiting cannot cancel it for the others.
                under_way.set_running_or_notify_cancel()
                self._lookups[instead_of] = (under_way, time.monotonic())
                # A daemon thread: the end of the program must not wait for a credential provider.
                work = (instead_of, under_way, self._resolving)
                threading.Thread(target=self._look_up, args=work, name="adjoin credentials", daemon=True).start()
            return under_way

    def _look_up(
        self, instead_of: Credentials | None, promised: Future[Credentials], resolving: threading.Lock
    ) -> None:
        try:
            with resolving:
                found = self._looked_up(instead_of)
        except BaseException as error:
            # A credential provider is another program or server, and may fail with any exception.
            refusal = error if isinstance(error, AdjoinError) else _not_had(error)
            self._end(instead_of, promised)
            promised.set_exception(refusal)
        else:
            self._end(instead_of, promised)
            promised.set_result(found)

    def _end(self, instead_of: Credentials | None, promised: Future[Credentials]) -> None:
        with self._starting:
            self._renewed = time.monotonic()
            if self._lookups.get(instead_of, (None,))[0] is promised:
                del self._lookups[instead_of]

    def _looked_up(self, instead_of: Credentials | None) -> Credentials:
        found = self._found
        if found is None or (instead_of is not None and instead_of in (found, self._current)):
            found = self._resolve()
        current = found if type(found) is Credentials else _frozen(found)
        self._found, self._current = found, current
        return current

    def start_anew(self) -> None:
        """Replaces the locks in a forked child: threads of the parent, which do not exist here, may have held them."""
        self._starting = threading.Lock()
        self._start_over()

    def _start_over(self) -> None:
        self._resolving = threading.Lock()
        self._lookups = {}
        if type(self._found) is not Credentials:
            self._found = self._current = self._session = None

    def _resolve(self) -> Any:
        if self._profile is None and not _has_files() and (plain := _credentials_of_environment()) is not None:
            return plain
        if self._found is not None:
            # A botocore session caches its credentials, so a new session is needed to look again.
            self._session = None
        session = self._botocore()
        if self._is_local:
            # A server on the same machine needs no instance metadata, and looking for it takes seconds.
            session.get_component("credential_provider").remove("iam-role")
        found = session.get_credentials()
        if hasattr(found, "refresh_needed"):
            return found
        if found is not None:
            return _frozen(found)
        if self._is_local:
            return _LOCAL
        raise InvalidCredentials(
            "no AWS credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile, "
            "or run where a role provides them"
        )


def _default_region(endpoint: str | None) -> str:
    if endpoint is None:
        raise InvalidLocation(
            "no region is set; name one in the location (dynamodb://Table?region=eu-west-1), "
            "in AWS_DEFAULT_REGION or in a profile"
        )
    return LOCAL_REGION


def _not_had(error: BaseException) -> InvalidCredentials:
    refusal = InvalidCredentials(f"credentials could not be loaded: {error}")
    refusal.__cause__ = error
    return refusal


def _frozen(found: Any) -> Credentials:
    frozen = found.get_frozen_credentials()
    return _checked(Credentials(frozen.access_key, frozen.secret_key, frozen.token or None))


def _checked(found: Credentials) -> Credentials:
    if not all(part.isprintable() for part in (found.access_key, found.secret_key, found.token or "")):
        raise InvalidCredentials("the credentials contain a line break or another control character; correct them")
    return found


# --- the environment, as botocore reads it -----------------------------------------------------

_USUAL_REGION = re.compile(r"(us|eu|ap|sa|ca|me|af|il|mx)-\w+-\d+", re.ASCII)
"""The regions of the partition `aws`; botocore's data has this expression, and the other partitions."""
_FILES = {"AWS_CONFIG_FILE": "~/.aws/config", "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials"}
_LEFT_TO_BOTOCORE = ("AWS_SECURITY_TOKEN", "AWS_CREDENTIAL_EXPIRATION")


def _has_files() -> bool:
    """Whether files may say something about region, endpoints and credentials, or a profile is named for them."""
    if "AWS_PROFILE" in os.environ or "AWS_DEFAULT_PROFILE" in os.environ:
        return True
    for variable, default in _FILES.items():
        path = os.path.expanduser(os.path.expandvars(os.environ.get(variable, default)))
        if os.path.isfile(path) and os.path.getsize(path):
            return True
    return False


def _endpoint_of_environment(service: str) -> str | None:
    if os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        return None
    return os.environ.get(f"AWS_ENDPOINT_URL_{service.upper()}") or os.environ.get("AWS_ENDPOINT_URL") or None


def _credentials_of_environment() -> Credentials | None:
    """Credentials that do not expire; None where botocore has to look."""
    key, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    if not key or not secret or any(name in os.environ for name in _LEFT_TO_BOTOCORE):
        return None
    return _checked(Credentials(key, secret, os.environ.get("AWS_SESSION_TOKEN") or None))


def _is_of_botocore(error: Exception) -> bool:
    return any(kind.__module__ == "botocore.exceptions" for kind in type(error).__mro__)
