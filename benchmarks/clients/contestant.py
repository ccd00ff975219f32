"""The interface of a measured client: one get and one query, blocking or async.

`get` returns one node and `out` a list of edges, as objects that have the fields of
`plain.PersonModel` and `plain.FollowsModel`. Each client makes them in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Waiting(Protocol):
    """A blocking client. Call the class with the endpoint, such as http://127.0.0.1:8000."""

    def get(self, id: str) -> Any: ...

    def out(self, id: str) -> Sequence[Any]: ...

    def close(self) -> None: ...


class Awaiting(Protocol):
    """An async client. Call the class with the endpoint, inside the event loop that it will use."""

    async def get(self, id: str) -> Any: ...

    async def out(self, id: str) -> Sequence[Any]: ...

    async def close(self) -> None: ...
