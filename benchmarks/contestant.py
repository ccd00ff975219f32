"""What a contestant is: one method for each operation of the mix, and a way to load the graph.

An answer may have any form that a program of that kind would work with; `measure` only calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from benchmarks.workload import LinkRow, NodeRow


class Contestant(Protocol):
    def load(self, nodes: Iterable[NodeRow], links: Iterable[LinkRow]) -> None: ...

    def getlinklist(self, id1: int, limit: int) -> list[Any]:
        """The links of a node, the newest first."""
        ...

    def countlink(self, id1: int) -> int: ...

    def multiget(self, id1: int, id2s: tuple[int, ...]) -> list[Any]:
        """Those of the named links that are there."""
        ...

    def addlink(self, link: LinkRow) -> None:
        """Writes a link, in the place of the one that may be there."""
        ...

    def updatelink(self, id1: int, id2: int, time: int, data: bytes) -> bool:
        """Changes a link, if it is there, and counts its version up."""
        ...

    def deletelink(self, id1: int, id2: int) -> bool: ...

    def getnode(self, id: int) -> Any: ...

    def addnode(self, node: NodeRow) -> None: ...

    def updatenode(self, id: int, time: int, data: bytes) -> bool: ...

    def deletenode(self, id: int) -> bool:
        """Removes a node and every link at it, in both directions."""
        ...

    def close(self) -> None: ...
