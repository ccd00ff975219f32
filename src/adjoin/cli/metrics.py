"""The page for Prometheus that `adjoin maintain --metrics` serves: what `g.health()` says, as numbers.

The page is read from the table, at most once in 15 seconds however often it is asked for, since a read costs some
units. It is served on a thread of its own, so that it is there while a long batch is applied.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from adjoin import prometheus
from adjoin.errors import AdjoinError, InvalidLocation
from adjoin.plans.maintenance.health import Health
from adjoin.prometheus import PageMetric

STALE_AFTER = 15.0
"""Seconds after which health is read again."""
_PATIENCE = 10.0
"""Seconds for a client to send its request and to read the page."""
_MOST = 16
"""The most connections at once: each has a thread. Prometheus needs one."""


def metrics_of(health: Health | None) -> list[PageMetric]:
    """Health as metrics; without it, only that it could not be read. What is unknown is left out."""
    rows: list[tuple[str, Literal["counter", "gauge"], str, float | None]] = [
        ("up", "gauge", "Whether health could be read from the table.", int(health is not None))
    ]
    if health is not None:
        is_due, uncounted = int(health.rebuild_due is not None), len(health.uncounted)
        rows += [
            ("lag_seconds", "gauge", "Age of the oldest change that is not applied.", health.lag),
            ("changes_total", "counter", "Changes that were applied.", health.changes),
            ("changes_per_second", "gauge", "Changes per second over about the last minute.", health.rate),
            ("set_aside", "gauge", "Edges, changes and nodes that are set aside.", health.set_aside),
            ("rebuild_due", "gauge", "Whether changes may have been missed.", is_due),
            ("uncounted_fields", "gauge", "Fields that are not counted as they are declared now.", uncounted),
            ("stored_timestamp_seconds", "gauge", "When a maintainer last stored its position.", health.at),
            ("rebuilt_timestamp_seconds", "gauge", "When the last whole rebuild began.", health.rebuilt_at),
            ("verified_timestamp_seconds", "gauge", "When the last clean audit began.", health.verified_at),
        ]
    return [PageMetric(f"adjoin_maintenance_{name}", kind, meaning, value) for name, kind, meaning, value in rows]


class HealthPage:
    """The page, read again when it is stale."""

    def __init__(self, read: Callable[[], Health], clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._lock = threading.Lock()
        self._page, self._until = "", float("-inf")

    def page(self) -> str:
        with self._lock:
            if self._clock() >= self._until:
                try:
                    found: Health | None = self._read()
                except AdjoinError:
                    found = None
                self._page, self._until = prometheus.page(metrics_of(found)), self._clock() + STALE_AFTER
            return self._page


class _Server(ThreadingHTTPServer):
    """Bounds what any client can take: the connections, and the time of each."""

    def __init__(self, *arguments: Any) -> None:
        self._open: dict[Any, float] = {}
        super().__init__(*arguments)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return len(self._open) < _MOST

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open[request] = time.monotonic() + _PATIENCE
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        now = time.monotonic()
        for request in [each for each, until in [*self._open.items()] if until <= now]:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that goes away is no error of the program.
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


@contextmanager
def served(host: str, port: int, read: Callable[[], Health]) -> Iterator[str]:
    """Serves the page during this block; gives its address."""
    reading = HealthPage(read)

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "adjoin", ""

        def do_GET(self) -> None:
            found = self.path.partition("?")[0] == "/metrics"
            content = reading.page().encode() if found else b"see /metrics\n"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", prometheus.CONTENT_TYPE)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            """Requests for metrics are not logged: they come every few seconds."""

    try:
        server = _Server((host, port), Handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        where = f"{host}:{port}"
        raise InvalidLocation(f"cannot serve metrics at {where}: {reason}; choose another with --metrics") from error
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="adjoin-metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
