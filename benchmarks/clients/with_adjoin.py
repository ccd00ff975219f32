"""adjoin: `Graph` and `AsyncGraph` with two classes, which are pydantic models."""

from __future__ import annotations

from adjoin import AsyncGraph, Graph
from benchmarks.clients.answers import Follows, Person
from benchmarks.clients.plain import REGION, TABLE


def _location(endpoint: str) -> str:
    return f"dynamodb://{TABLE}?endpoint={endpoint}&region={REGION}"


class WithAdjoin:
    def __init__(self, endpoint: str) -> None:
        self._graph = Graph(_location(endpoint), [Person, Follows])

    def get(self, id: str) -> Person | None:
        return self._graph.get(Person, id)

    def out(self, id: str) -> list[Follows]:
        return list(self._graph.out(id, Follows))

    def close(self) -> None:
        self._graph.close()


class WithAdjoinAwaited:
    def __init__(self, endpoint: str) -> None:
        self._graph = AsyncGraph(_location(endpoint), [Person, Follows])

    async def get(self, id: str) -> Person | None:
        return await self._graph.get(Person, id)

    async def out(self, id: str) -> list[Follows]:
        return [edge async for edge in self._graph.out(id, Follows)]

    async def close(self) -> None:
        await self._graph.close()
