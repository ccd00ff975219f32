"""Who may ask at all, as far as HTTP tells it: the host that a request names, and the page that sends it.

A browser sends what any page wants to any address that its machine reaches, the loopback address too. It says
which page asks (Origin), and by which name it found the server (Host). So a page may ask only if its origin
was allowed; and the server answers to its own names only, since a page can give its own host's name the
loopback address, and is of the same origin as the server then. Programs send no Origin.

With a key pair a request is known by its signature, which no page can make: then every host is good.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from adjoin.errors import InvalidLocation

ANY = "*"
_KEPT = 64
"""Hosts that were looked at lately; clients name one or two."""
_SHOWN = 300
"""Characters of a name that a refusal repeats."""
_FOREIGN_SITES = ("cross-site", "same-site")
"""What a browser says of a page that is not the server's own."""


class Admission:
    """Which hosts are the server's own, and which origins may ask."""

    def __init__(
        self, bound: str = "127.0.0.1", hosts: Collection[str] = (), origins: Collection[str] = (), signed: bool = False
    ) -> None:
        """`bound` is where the server listens; `signed` says whether it answers only what was signed for it."""
        self._hosts = frozenset((_bare(bound), *map(_allowed_host, hosts)))
        self._any_host = signed or ANY in hosts
        self._origins = frozenset(map(_allowed_origin, origins))
        # Called for every request.
        self.is_own_host = lru_cache(_KEPT)(self._is_own_host)

    def _is_own_host(self, host: bytes) -> bool:
        """Whether a Host line names this server; the port may be another, as behind a tunnel."""
        if self._any_host:
            return True
        name = _name_of(host.decode("latin-1"))
        return name in self._hosts or is_loopback(name) or name.endswith(".localhost")

    def fault(self, headers: dict[str, str]) -> str | None:
        """Why whoever sent this head may not ask; None if it may."""
        host = headers.get("host")
        if host is not None and not self.is_own_host(host.encode("latin-1")):
            return (
                f"the server does not answer as {host[:_SHOWN]}; ask it by the address that it listens at, or"
                " allow the name with --allow-host (allow_hosts)"
            )
        origin = headers.get("origin")
        if origin is not None and not self.takes_origin(origin):
            return f"pages of {origin[:_SHOWN]} may not ask; allow the origin with --allow-origin (allow_origins)"
        if origin is None and headers.get("sec-fetch-site", "").lower() in _FOREIGN_SITES:
            return "a page of another site may not ask without its origin"
        return None

    def takes_origin(self, origin: str) -> bool:
        return ANY in self._origins or origin.lower() in self._origins


def is_loopback(host: str) -> bool:
    """Whether a name or an address is that of the machine itself."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _name_of(host: str) -> str:
    """What a Host line says without the port, and an IPv6 address without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return _bare(host.partition(":")[0])


def _bare(name: str) -> str:
    return name.lower().removesuffix(".")


def _allowed_host(host: str) -> str:
    name = host if host == ANY or host.count(":") > 1 else _name_of(host)
    if not name or any(each in host for each in "/@ "):
        raise InvalidLocation(f"{host!r} is no host to allow; name one as in db.example.org, without scheme and path")
    return _bare(name)


def _allowed_origin(origin: str) -> str:
    """An origin as browsers send it: scheme, host and port, without a slash behind it."""
    if origin in (ANY, "null"):
        return origin
    bare = origin.lower().removesuffix("/")
    parts = urlsplit(bare)
    if not parts.scheme or not parts.netloc or parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        raise InvalidLocation(f"{origin!r} is no origin to allow; write one as in http://localhost:3000")
    return bare
