"""The interface of a contestant: one method per operation of the mix, and one that loads the graph.

A method may return any form of result that is natural for the contestant; `measure` ignores it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from benchmarks.workload import LinkRow, NodeRow


class Contestant(Protocol):
    def load(self, nodes: Iterable[NodeRow], links: Iterable[LinkRow]) -> None: ...

    def getlinklist(self, id1: int, limit: int) -> list[Any]:
        """The links of a node, newest first."""
        ...

    def countlink(self, id1: int) -> int: ...

    def multiget(self, id1: int, id2s: tuple[int, ...]) -> list[Any]:
        """Those of the named links that exist."""
        ...

    def addlink(self, link: LinkRow) -> None:
        """Writes a link, and replaces an existing one."""
        ...

    def updatelink(self, id1: int, id2: int, time: int, data: bytes) -> bool:
        """Changes a link if it exists, and increments its version."""
        ...

    def deletelink(self, id1: int, id2: int) -> bool: ...

    def getnode(self, id: int) -> Any: ...

    def addnode(self, node: NodeRow) -> None: ...

    def updatenode(self, id: int, time: int, data: bytes) -> bool: ...

    def deletenode(self, id: int) -> bool:
        """Removes a node and all its links, in both directions."""
        ...

    def close(self) -> None: ...
