"""A store that fails on purpose: stops before or after a request, or leaves some of a batch undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adjoin import AdjoinError
from adjoin.requests import BatchWrite, Request, Response, WriteResponse
from adjoin.stores.interface import Store


class Interrupted(AdjoinError):
    """What a faulty store raises where it stops."""


class FaultyStore:
    """Passes requests on one by one, and asks `fault` about each: None, "before" or "after"."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.creates_tables = inner.creates_tables
        self.fault: Callable[[int, Request], str | None] = lambda _number, _request: None
        self.sent = 0
        self.halve_batches = False

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        return [self._one(request) for request in requests]

    def _one(self, request: Request) -> Response:
        number, self.sent = self.sent, self.sent + 1
        fault = self.fault(number, request)
        if fault == "before":
            raise Interrupted(f"stopped before request {number}")
        left: tuple[object, ...] = ()
        if self.halve_batches and isinstance(request, BatchWrite) and len(request.writes) > 1:
            half = len(request.writes) // 2
            request, left = BatchWrite(request.writes[:half]), request.writes[half:]
        (response,) = self.inner.execute((request,))
        if left:
            response = WriteResponse(left, response.consumed)  # type: ignore[arg-type]
        if fault == "after":
            raise Interrupted(f"stopped after request {number}")
        return response

    def stop_at(self, number: int, when: str) -> None:
        """Fails the request of that number, counted from now."""
        at = self.sent + number
        self.fault = lambda sent, _request: when if sent == at else None

    def recover(self) -> None:
        self.fault = lambda _number, _request: None

    def close(self) -> None:
        self.inner.close()
