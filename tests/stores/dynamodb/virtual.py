"""An event loop whose clock stands still while there is anything to do, and then jumps to the next timer.

Minutes pass in no time, and how many is exact. Everything must happen on the loop: what another thread is
about to do is nothing that it waits for. `Service` is a server on such a loop, with a store in front of it,
of either kind.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from adjoin.requests import Request, Response
from adjoin.stores.dynamodb.access import ServiceAccess
from adjoin.stores.dynamodb.store import AsyncDynamoDBStore, DynamoDBStore

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_MOMENT = 0.001
"""Seconds for which the loop looks for something to do before it jumps: what was sent may take a moment to arrive."""


class _Jumping(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            # Only another thread can help.
            return super().select(None)
        found = super().select(0)
        if not found and timeout > 0:
            found = super().select(_MOMENT)
            self.now += 0.0 if found else timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)
        # A timer that is due by less than that is run too, or the clock would stand still before it.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._jumping.now


class Service:
    """A server that treats its connections as told, and a store for it; `elapsed` is the time that a call took."""

    def __init__(self, handle: Handle, kind: str, patch: Any, **limits: float) -> None:
        self.loop = VirtualLoop()
        self.connections = 0
        self.elapsed = 0.0
        self._handle = handle
        self._server = self.loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self._store: Any
        if kind == "sync":
            patch.setattr(asyncio, "new_event_loop", lambda: self.loop)
            self._store = DynamoDBStore(endpoint=endpoint, **limits)  # type: ignore[arg-type]
        else:
            self._store = AsyncDynamoDBStore(endpoint=endpoint, **limits)  # type: ignore[arg-type]
        self.is_sync = kind == "sync"
        self.access: ServiceAccess = self._store._drivers._access if self.is_sync else self._store._access

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._handle(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def stop_listening(self) -> None:
        self._server.close()

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        started = self.loop.time()
        try:
            if self.is_sync:
                found: list[Response] = self._store.execute(requests)
            else:
                found = self.loop.run_until_complete(self._store.execute(requests))
            return found
        finally:
            self.elapsed = self.loop.time() - started

    def close(self) -> None:
        if self.loop.is_closed():
            return
        self._server.close()
        if self.is_sync:
            self._store.close()
        if not self.loop.is_closed():
            self.loop.run_until_complete(self._end())
            self.loop.close()

    async def _end(self) -> None:
        if not self.is_sync:
            await self._store.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
