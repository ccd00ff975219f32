"""What a store is: the whole contract, proved by one suite over every store.

- `execute` performs a batch of requests and answers each, in order. The requests of a batch are
  independent: they may run in parallel, and none may count on another of the same batch.
- A request either takes effect whole or raises and leaves nothing behind. When one of a batch
  raises, the others may have taken effect.
- A write is durable when `execute` returns.
- Every limit, ordering, condition, error and consumed unit is DynamoDB's.
- A store knows nothing of models and layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from adjoin.requests import Request, Response


class Store(Protocol):
    """A store for synchronous programs; safe to use from many threads."""

    creates_tables: bool
    """Whether opening a graph makes its table, as in a file, or only `create_table` does, as on the service."""

    def execute(self, requests: Sequence[Request]) -> list[Response]: ...

    def close(self) -> None: ...


class AsyncStore(Protocol):
    """A store for asynchronous programs."""

    creates_tables: bool

    async def execute(self, requests: Sequence[Request]) -> list[Response]: ...

    async def close(self) -> None: ...
