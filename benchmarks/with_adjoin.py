"""The mix on adjoin, as a user would write it: two classes, and the methods of a graph."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from adjoin import Edge, Graph, Node, NotFound
from adjoin.stores.sqlite.file import Durability
from benchmarks.workload import LinkRow, NodeRow


class Thing(Node):
    id: int
    type: int
    version: int
    time: int
    data: bytes


class Link(Edge[Thing, Thing], order="time"):
    visibility: int
    version: int
    time: int
    data: bytes


def _thing(row: NodeRow) -> Thing:
    return Thing(id=row.id, type=row.type, version=row.version, time=row.time, data=row.data)


def _link(row: LinkRow) -> Link:
    return Link(
        source=row.id1,
        target=row.id2,
        visibility=row.visibility,
        version=row.version,
        time=row.time,
        data=row.data,
    )


class WithAdjoin:
    def __init__(self, path: str | PathLike[str], durability: Durability = "power") -> None:
        self.graph = Graph(f"{path}?durability={durability}", [Thing, Link])

    def load(self, nodes: Iterable[NodeRow], links: Iterable[LinkRow]) -> None:
        self.graph.put_many(map(_thing, nodes))
        self.graph.put_many(map(_link, links))

    def getlinklist(self, id1: int, limit: int) -> list[Link]:
        return list(self.graph.out(id1, Link).reverse().limit(limit))

    def countlink(self, id1: int) -> int:
        return self.graph.out(id1, Link).count()

    def multiget(self, id1: int, id2s: tuple[int, ...]) -> list[Link]:
        found = (self.graph.edge(Link, id1, id2) for id2 in id2s)
        return [link for link in found if link is not None]

    def addlink(self, link: LinkRow) -> None:
        self.graph.put(_link(link))

    def updatelink(self, id1: int, id2: int, time: int, data: bytes) -> bool:
        try:
            self.graph.update(Link, id1, id2, time=time, data=data)
        except NotFound:
            return False
        return True

    def deletelink(self, id1: int, id2: int) -> bool:
        return self.graph.disconnect(Link, id1, id2)

    def getnode(self, id: int) -> Thing | None:
        return self.graph.get(Thing, id)

    def addnode(self, node: NodeRow) -> None:
        self.graph.put(_thing(node))

    def updatenode(self, id: int, time: int, data: bytes) -> bool:
        try:
            self.graph.update(Thing, id, time=time, data=data)
        except NotFound:
            return False
        return True

    def deletenode(self, id: int) -> bool:
        return self.graph.delete(Thing, id)

    def close(self) -> None:
        self.graph.close()
