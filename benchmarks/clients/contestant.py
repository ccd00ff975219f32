"""What a client under measurement is: one get and one query, for programs that wait or that await.

`get` answers with one node and `out` with a list of edges, as objects that have the fields of
`plain.PersonModel` and `plain.FollowsModel`. How they were made is the client's own affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Waiting(Protocol):
    """Made by calling it with the endpoint, such as http://127.0.0.1:8000."""

    def get(self, id: str) -> Any: ...

    def out(self, id: str) -> Sequence[Any]: ...

    def close(self) -> None: ...


class Awaiting(Protocol):
    """Made by calling it with the endpoint, within the loop that it will work in."""

    async def get(self, id: str) -> Any: ...

    async def out(self, id: str) -> Sequence[Any]: ...

    async def close(self) -> None: ...
