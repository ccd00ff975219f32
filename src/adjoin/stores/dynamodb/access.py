"""Who asks and where: credentials, region and endpoints, as botocore finds them.

Environment, profiles, containers, instance metadata and web identity are botocore's; so is refreshing
what expires. A server on this machine needs no credentials: where none are set, any will do for it.

Whoever provides credentials may take for ever, so nobody looks them up himself: a thread does, one for all
who wait, and each waits as long as he likes.
"""

from __future__ import annotations

import os
import re
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import botocore.session
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import BotoCoreError

from adjoin.errors import AdjoinError, InvalidCredentials, InvalidLocation
from adjoin.stores.dynamodb.signing import Credentials, Signer

_USED_UNTIL = 60
"""Seconds before credentials expire from which on nothing is signed with them any more."""
_PAUSE = 5.0
"""Seconds between attempts to renew credentials that are still good."""
_GIVEN_UP = 60.0
"""Seconds after which somebody else is sent to look for credentials, if the first one does not come back."""

LOCAL_REGION = "us-east-1"
_LOCAL = Credentials("local", "local")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address requests go to, with the signer for it."""

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
        raise InvalidLocation(f"{url!r} is no endpoint; give one such as http://127.0.0.1:8000")
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


class Access:
    """Everything a request needs to be addressed and signed; safe for many threads."""

    def __init__(self, region: str | None, endpoint: str | None, profile: str | None) -> None:
        self._profile = profile
        self._starting = threading.Lock()
        self._resolving = threading.Lock()
        self._found: Any = None
        self._current: Credentials | None = None
        """What was found last, where that expires."""
        self._lookups: dict[Credentials | None, tuple[Future[Credentials], float]] = {}
        """Those under way, by the credentials that are to be replaced, and since when."""
        self._renewed = -_PAUSE
        try:
            self._session = botocore.session.Session(profile=profile)
            given = endpoint or self._configured_endpoint("dynamodb")
            self.region = region or self._configured_region() or _default_region(given)
            self.table_endpoint = endpoint_at(given or self._service_url("dynamodb"), self.region)
            streams = endpoint or self._configured_endpoint("dynamodb_streams") or given
            self.stream_endpoint = endpoint_at(streams or self._service_url("streams.dynamodb"), self.region)
        except BotoCoreError as error:
            raise InvalidLocation(f"AWS's configuration cannot be used: {error}") from error
        self._is_local = given is not None and _is_loopback(given)

    def _configured_endpoint(self, service: str) -> str | None:
        if self._session.get_config_variable("ignore_configured_endpoint_urls"):
            return None
        profile = self._session.get_scoped_config()
        services = self._session.full_config.get("services", {}).get(profile.get("services"), {})
        return (
            os.environ.get(f"AWS_ENDPOINT_URL_{service.upper()}")
            or os.environ.get("AWS_ENDPOINT_URL")
            or services.get(service, {}).get("endpoint_url")
            or profile.get("endpoint_url")
        )

    def _configured_region(self) -> str | None:
        # All SDKs but botocore follow AWS_REGION, and so does what AWS runs programs in.
        found = os.environ.get("AWS_REGION") or self._session.get_config_variable("region")
        return str(found) if found else None

    def _service_url(self, service: str) -> str:
        for partition in self._session.get_data("partitions")["partitions"]:
            if self.region in partition["regions"] or re.match(partition["regionRegex"], self.region):
                return f"https://{service}.{self.region}.{partition['outputs']['dnsSuffix']}"
        raise InvalidLocation(f"{self.region!r} is no region of AWS; name one such as eu-west-1")

    def credentials(self) -> Credentials | None:
        """Valid credentials if nobody must be waited for to have them, else None: see `lookup` then."""
        found = self._found
        if type(found) is Credentials:
            return found
        if found is None or found.refresh_needed(_USED_UNTIL):
            return None
        if found.refresh_needed() and time.monotonic() - self._renewed > _PAUSE:
            # They are good for some minutes more, whatever becomes of that.
            self.lookup()
        return self._current

    def lookup(self, instead_of: Credentials | None = None) -> Future[Credentials]:
        """Credentials, looked up or refreshed by a thread; `InvalidCredentials` if there are none.

        `instead_of` are some that the service refused: they are looked up anew, unless somebody else did so.
        """
        with self._starting:
            under_way, since = self._lookups.get(instead_of, (None, 0.0))
            if under_way is not None and time.monotonic() - since > _GIVEN_UP:
                # It holds locks, ours and botocore's, and may hold them for ever.
                self._start_over()
                under_way = None
            if under_way is None:
                under_way = Future()
                # It runs already, so that nobody who ceases to wait can cancel it for the others.
                under_way.set_running_or_notify_cancel()
                self._lookups[instead_of] = (under_way, time.monotonic())
                # A daemon, since a program that ends does not wait for whoever provides credentials.
                work = (instead_of, under_way, self._resolving)
                threading.Thread(target=self._look_up, args=work, name="adjoin credentials", daemon=True).start()
            return under_way

    def _look_up(self, instead_of: Credentials | None, told: Future[Credentials], resolving: threading.Lock) -> None:
        try:
            with resolving:
                found = self._looked_up(instead_of)
        except BaseException as error:
            # Whoever provides credentials, a program or a server of others, fails in ways of its own.
            refusal = error if isinstance(error, AdjoinError) else _not_had(error)
            self._end(instead_of, told)
            told.set_exception(refusal)
        else:
            self._end(instead_of, told)
            told.set_result(found)

    def _end(self, instead_of: Credentials | None, told: Future[Credentials]) -> None:
        with self._starting:
            self._renewed = time.monotonic()
            if self._lookups.get(instead_of, (None,))[0] is told:
                del self._lookups[instead_of]

    def _looked_up(self, instead_of: Credentials | None) -> Credentials:
        found = self._found
        if found is None or (instead_of is not None and instead_of in (found, self._current)):
            found = self._resolve()
        current = found if type(found) is Credentials else _frozen(found)
        self._found, self._current = found, current
        return current

    def start_anew(self) -> None:
        """In a forked child: a thread that is not there any more may have held these locks."""
        self._starting = threading.Lock()
        self._start_over()

    def _start_over(self) -> None:
        self._resolving = threading.Lock()
        self._lookups = {}
        if type(self._found) is not Credentials:
            self._found = self._current = None
            self._session = botocore.session.Session(profile=self._profile)

    def _resolve(self) -> Any:
        if self._found is not None:
            # A session remembers what it found; one that is new looks again.
            self._session = botocore.session.Session(profile=self._profile)
        if self._is_local:
            # Nobody waits for an instance's metadata to use a server on the same machine.
            self._session.get_component("credential_provider").remove("iam-role")
        found = self._session.get_credentials()
        if isinstance(found, RefreshableCredentials):
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
    refusal = InvalidCredentials(f"no credentials could be had: {error}")
    refusal.__cause__ = error
    return refusal


def _frozen(found: Any) -> Credentials:
    frozen = found.get_frozen_credentials()
    if not all(part.isprintable() for part in (frozen.access_key, frozen.secret_key, frozen.token or "")):
        raise InvalidCredentials("the credentials hold a line break or another control character; write them anew")
    return Credentials(frozen.access_key, frozen.secret_key, frozen.token or None)
