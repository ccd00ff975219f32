"""Who asks and where: credentials, region and endpoints, as botocore finds them.

Environment, profiles, containers, instance metadata and web identity are botocore's; so is refreshing
what expires. A server on this machine needs no credentials: where none are set, any will do for it.
"""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import botocore.session
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import BotoCoreError

from adjoin.errors import AdjoinError, InvalidCredentials, InvalidLocation
from adjoin.stores.dynamodb.signing import Credentials, Signer

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
        self._resolving = threading.Lock()
        self._found: Any = None
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
        """Valid credentials if no I/O is needed to have them, else None: ask `fetch` then."""
        found = self._found
        if type(found) is Credentials:
            return found
        if found is None or found.refresh_needed():
            return None
        return _frozen(found)

    def fetch(self, instead_of: Credentials | None = None) -> Credentials:
        """Credentials, looked up or refreshed; may take its time, so keep it off event loops.

        `instead_of` are some that the service refused: they are looked up anew, unless somebody else did so.
        """
        with self._resolving:
            try:
                if self._found is None or (instead_of is not None and self.credentials() == instead_of):
                    self._found = self._resolve()
                return self._found if type(self._found) is Credentials else _frozen(self._found)
            except AdjoinError:
                raise
            except Exception as error:
                # Whoever provides credentials, a program or a server of others, fails in ways of its own.
                raise InvalidCredentials(f"no credentials could be had: {error}") from error

    def start_anew(self) -> None:
        """In a forked child: a thread that is not there any more may have held these locks."""
        self._resolving = threading.Lock()
        if type(self._found) is not Credentials:
            self._found = None
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


def _frozen(found: Any) -> Credentials:
    frozen = found.get_frozen_credentials()
    if not all(part.isprintable() for part in (frozen.access_key, frozen.secret_key, frozen.token or "")):
        raise InvalidCredentials("the credentials hold a line break or another control character; write them anew")
    return Credentials(frozen.access_key, frozen.secret_key, frozen.token or None)
