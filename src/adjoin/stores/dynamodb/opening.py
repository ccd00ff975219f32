"""Opens connections to servers: names to addresses, encryption, and the proxy of the environment.

Whatever fails here fails before a request is sent, so it is `NotSent`. Time limits are up to the caller, who cancels.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import sys
from base64 import b64encode
from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import SplitResult, unquote, urlsplit

from adjoin.late import later

if TYPE_CHECKING:
    from urllib import request
else:
    # It imports what reads mail and FTP, and only those with a proxy need it.
    request = later("urllib.request")

_PORTS = {"http": 80, "https": 443}
_PATIENCE = 2.0
"""Seconds for which one of several addresses of a name is tried: time for a packet that was lost, which systems send
again after a second."""
_LARGEST_HEAD = 64 * 1024

_P = TypeVar("_P", bound=asyncio.Protocol)


class NotSent(Exception):
    """The request did not reach the service; `for_good`: another attempt would not reach it either."""

    def __init__(self, reason: str, *, for_good: bool = False) -> None:
        super().__init__(reason)
        self.for_good = for_good


class Address:
    """A server as connections to it are opened."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port or _PORTS[parts.scheme]
        self._trust = _trusted() if parts.scheme == "https" else None
        self._proxy = _proxy_for(self._host) if self._trust is not None else None

    async def open(self, kind: type[_P]) -> _P:
        """A new connection, as a protocol of asyncio. Raises `NotSent`, also where nothing may be sent."""
        try:
            if self._proxy is not None and self._trust is not None:
                return await self._tunneled(kind, self._proxy, self._trust)
            return await _connected(kind, self._host, self._port, self._trust)
        except ssl.SSLError as error:
            raise NotSent(_reason(error), for_good=True) from error
        except OSError as error:
            raise NotSent(_reason(error)) from error

    async def _tunneled(self, kind: type[_P], proxy: SplitResult, trust: ssl.SSLContext) -> _P:
        """A connection through a proxy, which sees only the name of the server."""
        trusted = trust if proxy.scheme == "https" else None
        port = proxy.port or _PORTS.get(proxy.scheme, 80)
        tunnel = await _connected(_Tunnel, proxy.hostname or "", port, trusted)
        try:
            host = f"[{self._host}]" if ":" in self._host else self._host
            await tunnel.asked(f"{host}:{self._port}", proxy)
            connection = kind()
            loop = asyncio.get_running_loop()
            encrypted = await loop.start_tls(tunnel.transport, connection, trust, server_hostname=self._host)
        except BaseException:
            tunnel.transport.abort()
            raise
        if encrypted is None:
            raise NotSent("the connection was closed while it was being encrypted")
        connection.connection_made(encrypted)
        return connection


async def _connected(kind: type[_P], host: str, port: int, trust: ssl.SSLContext | None) -> _P:
    """A connection to a name or an address. The addresses of a name are tried one after the other.

    Python's event loop could try them side by side, but loses open sockets if it is canceled meanwhile.
    """
    loop = asyncio.get_running_loop()
    addresses = await _addresses(host, port)
    name = None if trust is None else host
    for address in addresses[:-1]:
        with suppress(OSError):
            async with asyncio.timeout(_PATIENCE):
                return (await loop.create_connection(kind, address, port, ssl=trust, server_hostname=name))[1]
    return (await loop.create_connection(kind, addresses[-1], port, ssl=trust, server_hostname=name))[1]


async def _addresses(host: str, port: int) -> list[str]:
    # An address needs no lookup, which would take a thread.
    with suppress(ValueError):
        return [str(ip_address(host))]
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class _Tunnel(asyncio.Protocol):
    """Asks a proxy for a connection to a server; what comes after its answer belongs to that connection."""

    def __init__(self) -> None:
        self._received = b""
        self._answered = asyncio.get_running_loop().create_future()

    async def asked(self, server: str, proxy: SplitResult) -> None:
        lines = [f"CONNECT {server} HTTP/1.1", f"Host: {server}"]
        if proxy.username or proxy.password:
            user = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}"
            lines.append(f"Proxy-Authorization: Basic {b64encode(user.encode()).decode()}")
        self.transport.write("\r\n".join([*lines, "", ""]).encode())
        first: bytes = await self._answered
        status = first.split(b" ", 2)[1:2]
        if not first.startswith(b"HTTP/1.") or status != [b"200"]:
            said = first[:200].decode("latin-1")
            raise NotSent(f"the proxy refused the connection: {said!r}")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, _ = self._received.partition(b"\r\n\r\n")
        if self._answered.done():
            return
        if end:
            self._answered.set_result(head.partition(b"\r\n")[0])
        elif len(head) > _LARGEST_HEAD:
            self._answered.set_exception(NotSent(f"the proxy's answer has more than {_LARGEST_HEAD >> 10} KB"))

    def connection_lost(self, error: Exception | None) -> None:
        if not self._answered.done():
            self._answered.set_exception(NotSent("the proxy closed the connection"))


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


# --- the environment ---------------------------------------------------------------------------


def _trusted() -> ssl.SSLContext:
    """The certificate authorities to trust: those of AWS_CA_BUNDLE, or those of the system."""
    bundle = os.environ.get("AWS_CA_BUNDLE")
    return _context(bundle) if bundle else _of_system()


@lru_cache(1)
def _of_system() -> ssl.SSLContext:
    """Reading those of the system takes longer than opening a connection, and every event loop needs them."""
    return _context(None)


def _context(bundle: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=bundle)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _proxy_for(host: str) -> SplitResult | None:
    """The proxy for encrypted connections, from the environment, or from the system where it has settings for it."""
    if sys.platform not in ("darwin", "win32") and not any(name.lower() == "https_proxy" for name in os.environ):
        return None
    found = request.getproxies().get("https") if not request.proxy_bypass(host) else None
    if not found:
        return None
    return urlsplit(found if "://" in found else f"http://{found}")
