"""Serves the page and its API on the loopback address, in a thread of its own.

Other programs and other pages on the same machine can reach the address, so each request is checked:

- It names the server by a loopback name (Host), so that no page of another site can be made to look like this one.
- If a page sends it, it is this one (Origin, Sec-Fetch-Site).
- It knows the token, a random text in the address that the command prints: the page in its query, and the API in a
  header, which no other page may send.

The page comes with a content security policy that lets it load its own files and ask its own server, and nothing else.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from hmac import compare_digest
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from orjson import JSONDecodeError, dumps, loads

from adjoin.errors import InvalidLocation, NotFound
from adjoin.explorer.api import Api
from adjoin.explorer.opening import Explored
from adjoin.explorer.requested import boto3_call
from adjoin.requests import DescribeTable
from adjoin.server.http import Answering, Connection, Crowd, HttpAnswer, Later
from adjoin.server.negotiation import Admission
from adjoin.server.reading import HttpRequest

HOST = "127.0.0.1"
PAGE = Path(__file__).parent / "page"
"""The built page; `make explorer` makes it in a checkout, and a wheel has it."""
TOKEN = "X-Adjoin-Token"
_API = "/api/"
_THREADS = 4
_LATELY = 1.0
_PATIENCE = 5.0
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_REFUSED = "open the address that `adjoin explore` printed: it has a token"


def page_files(folder: Path = PAGE) -> dict[str, tuple[str, bytes]]:
    """The files of the built page by their paths, with their content types."""
    files = {f"/{path.name}": path for path in folder.glob("*") if path.suffix in _KINDS}
    if "/index.html" not in files:
        raise NotFound("the page of the explorer is not built; run `make explorer` in the checkout of adjoin")
    return {name: (_KINDS[path.suffix], path.read_bytes()) for name, path in files.items()}


class ExplorerServer:
    """A running explorer. `address` is what to open in a browser; `close` stops it and closes the graph."""

    def __init__(self, explored: Explored, port: int = 0, *, token: str | None = None) -> None:
        self._files = page_files()
        self.token = token or secrets.token_urlsafe(24)
        self._explored = explored
        self._api = Api(explored)
        self._socket = _listening(port)
        self._port = self._socket.getsockname()[1]
        own = (f"http://{HOST}:{self._port}", f"http://localhost:{self._port}")
        self._admission = Admission(HOST, origins=own)
        self._pool = ThreadPoolExecutor(_THREADS, "adjoin-explorer")
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="adjoin-explorer", daemon=True)
        self._thread.start()
        self._started.result()
        # What makes calls of boto3 takes a second to import; the first query should not wait for it.
        self._pool.submit(boto3_call, DescribeTable(explored.name))

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self._port}"

    @property
    def address(self) -> str:
        """The address of the page, with the token."""
        return f"{self.endpoint}/?token={self.token}"

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        crowd = Crowd(self._loop.time)
        crowd.answer = self._answer
        own_host = self._admission.is_own_host
        server = await self._loop.create_server(lambda: Connection(crowd, own_host), sock=self._socket)
        self._started.set_result(None)
        while not self._stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), _LATELY)
            crowd.look()
        server.close()
        for connection in list(crowd.open):
            connection.shut()
        deadline = self._loop.time() + _PATIENCE
        while crowd.open and self._loop.time() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(crowd.open):
            connection.drop()
        await asyncio.sleep(0)

    def close(self) -> None:
        """Stops the server and closes the graph. A second call does nothing."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
            self._pool.shutdown()
            self._explored.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- requests ------------------------------------------------------------------------------

    def _answer(self, request: HttpRequest) -> Answering:
        fault = self._fault(request)
        if fault is not None:
            return _refused(fault)
        path = urlsplit(request.path).path
        if path.startswith(_API):
            return self._asked(request, path.removeprefix(_API))
        if request.method not in ("GET", "HEAD"):
            return _told(404, b"this address accepts GET and HEAD only")
        return self._file(request, "/index.html" if path == "/" else path)

    def _fault(self, request: HttpRequest) -> str | None:
        """Why the sender of a request is not admitted; None if it is."""
        host, origin = request.headers.get("host"), request.headers.get("origin")
        if host is None or not self._admission.is_own_host(host.encode("latin-1")):
            return f"the explorer answers at {self.endpoint} only"
        if origin is not None and not self._admission.takes_origin(origin):
            return "requests of other pages are refused"
        if request.headers.get("sec-fetch-site", "none").lower() not in ("same-origin", "none"):
            return "requests of pages of other sites are refused"
        return None

    def _file(self, request: HttpRequest, name: str) -> HttpAnswer:
        if name == "/index.html":
            given = parse_qs(urlsplit(request.path).query).get("token", [""])[0]
            if not self._is_token(given):
                return _refused(_REFUSED)
        kind, content = self._files.get(name, ("", b""))
        if not kind:
            return _told(404, b"there is no such file")
        return _told(200, b"" if request.method == "HEAD" else content, kind)

    def _is_token(self, given: str) -> bool:
        return compare_digest(given.encode("utf-8", "surrogatepass"), self.token.encode())

    def _asked(self, request: HttpRequest, name: str) -> Answering:
        if not self._is_token(request.headers.get(TOKEN.lower(), "")):
            return _refused(_REFUSED)
        if request.method != "POST":
            return _json(404, {"error": {"name": "NotFound", "message": "post a JSON object"}})
        try:
            body = loads(request.body or b"{}")
        except JSONDecodeError:
            return _json(400, {"error": {"name": "InvalidValue", "message": "the body is not JSON; send an object"}})
        later = Later()
        # Graphs block, so each question has a thread; the answer is sent from the thread that listens.
        asking = self._pool.submit(self._api.answer, name, body)
        asking.add_done_callback(lambda done: self._loop.call_soon_threadsafe(self._settle, later, done))
        return later

    def _settle(self, later: Later, done: Future[tuple[int, dict[str, Any]]]) -> None:
        later.settle(_json(*done.result()))


def _listening(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((HOST, port))
    except OSError as error:
        found.close()
        raise InvalidLocation(f"cannot listen at {HOST}:{port}: {error.strerror or error}") from error
    return found


def _json(status: int, answer: dict[str, Any]) -> HttpAnswer:
    return _told(status, dumps(answer), "application/json")


def _refused(why: str) -> HttpAnswer:
    return _told(403, why.encode())


def _told(status: int, content: bytes, kind: str = "text/plain; charset=utf-8") -> HttpAnswer:
    headers = {"Content-Type": kind, **_HEADERS}
    return HttpAnswer(status, content, "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode())
