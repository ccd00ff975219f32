"""What `collection` returns: a lazy query for a node with all its edges and children.

It exists twice, synchronous and asynchronous. Both only run plans.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Iterator
from dataclasses import field as dataclass_field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from adjoin.dataclass import dataclass
from adjoin.entity_types import AnyEdge, NodeType
from adjoin.model import Edge, Node, Ref, node_id
from adjoin.notebooks import results_html
from adjoin.plans.read import get_each
from adjoin.queries import Awaiting, InPartition, Waiting
from adjoin.requests import Plan
from adjoin.values import Item

if TYPE_CHECKING:
    from adjoin.refs import Arrives, Leaves, Nothing

N = TypeVar("N")
E = TypeVar("E")
F = TypeVar("F")


@dataclass(frozen=True)
class Collection(Generic[N]):
    """A node with all its edges.

    `others` are the items beside them that belong to no class, as plain values. `children` are its children, and the
    other nodes that share its partition.
    """

    node: N | None
    edges: list[AnyEdge]
    others: list[dict[str, Any]]
    children: list[Any] = dataclass_field(default_factory=list)

    def _repr_html_(self) -> str:
        node = [] if self.node is None else [self.node]
        results = [*node, *self.children, *self.edges, *self.others]
        return results_html(f"Collection of {len(self.edges)} edges", results)


@dataclass(frozen=True)
class CollectionNodes(Generic[N]):
    """A node with all its edges, and the nodes at their far ends.

    Iterate it for pairs of an edge and a node, or take those of one class with `of`. Edges whose node does not exist
    are left out. `children` and `others` are as those of a collection.
    """

    node: N | None
    pairs: list[tuple[AnyEdge, Any]]
    children: list[Any]
    others: list[dict[str, Any]]

    def _repr_html_(self) -> str:
        node = [] if self.node is None else [self.node]
        return results_html(f"CollectionNodes of {len(self)}", [*node, *self.children, *self.pairs, *self.others])

    def __iter__(self) -> Iterator[tuple[AnyEdge, Any]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    # The node says which end is the far one, unless its class is unknown, or a base class of the end.
    @overload
    def of(self: CollectionNodes[Nothing], model: type[E]) -> list[tuple[E, Any]]: ...

    @overload
    def of(self, model: type[Leaves[N, E, F]]) -> list[tuple[E, F]]: ...

    @overload
    def of(self, model: type[Arrives[N, E, F]]) -> list[tuple[E, F]]: ...

    @overload
    def of(self, model: type[E]) -> list[tuple[E, Any]]: ...

    def of(self, model: type[Any]) -> list[tuple[Any, Any]]:
        """Returns the pairs whose edge is of this class."""
        return [(edge, node) for edge, node in self.pairs if isinstance(edge, model)]


@dataclass(eq=False, repr=False)
class _Collecting(InPartition[Any], Generic[N]):
    """All items in the partition of a node."""

    _node: Node | Ref[Any] | None = None
    _far: str = "target"
    """The end of the edges at which the other nodes are: "source" or "target"."""

    def _nodes_plan(self) -> Plan[CollectionNodes[N]]:
        found, layout = (yield from self._collection_plan()), self._context.layout
        ends = [self._far_end(edge) for edge in found.edges]
        distinct = {(kind.model, id): (kind, id) for kind, id in ends}
        nodes = yield from get_each(layout, [*distinct.values()], self._question.consistent)
        by_end = dict(zip(distinct, nodes, strict=True))
        far = [by_end[kind.model, id] for kind, id in ends]
        pairs = [(edge, node) for edge, node in zip(found.edges, far, strict=True) if node is not None]
        return CollectionNodes(found.node, pairs, found.children, found.others)

    def _far_end(self, edge: AnyEdge) -> tuple[NodeType, Any]:
        """The class and the id of the node at the far end of an edge."""
        kind = self._context.layout.schema.edge(type(edge))
        return (kind.target if self._far == "target" else kind.source).of(getattr(edge, self._far))

    def _collection_plan(self) -> Plan[Collection[N]]:
        results: list[Any] = []
        start: Item | None = None
        while True:
            found = yield from self._step(start, self._most)
            results += found.entities
            start = found.last
            if start is None or self._most is not None:
                break
        nodes: list[Any] = [result for result in results if isinstance(result, Node)]
        return Collection(
            next((node for node in nodes if self._is_asked(node)), None),
            [result for result in results if isinstance(result, Edge)],
            [result for result in results if isinstance(result, dict)],
            [node for node in nodes if not self._is_asked(node)],
        )

    def _is_asked(self, node: Node) -> bool:
        """Whether this is the node of the query; classes may share a partition, so others can be in it too."""
        asked = self._node
        model = asked.model if isinstance(asked, Ref) else type(asked)
        schema = self._context.layout.schema
        kind = schema.node(model).whole
        return schema.node(type(node)).whole is kind and node_id(node) == kind.id(asked)


class CollectionQuery(Waiting[Any], _Collecting[N]):
    """A node with its edges and children.

    Iterate it, or read `.node`, `.edges`, `.children` and `.others`, which load everything once.
    """

    @cached_property
    def _loaded(self) -> Collection[N]:
        loaded: Collection[N] = self._context.run(self._collection_plan())
        return loaded

    def nodes(self) -> CollectionNodes[N]:
        """Reads the node with its edges of all classes, and the nodes at their far ends, in two rounds."""
        found: CollectionNodes[N] = self._context.run(self._nodes_plan())
        return found

    @property
    def node(self) -> N | None:
        """The node, or None if it does not exist."""
        return self._loaded.node

    @property
    def edges(self) -> list[AnyEdge]:
        """The edges of all classes."""
        return self._loaded.edges

    @property
    def children(self) -> list[Any]:
        """The children of all classes, and the other nodes that share the partition."""
        return self._loaded.children

    @property
    def others(self) -> list[dict[str, Any]]:
        """The items in the partition that belong to no class of the graph, as plain values."""
        return self._loaded.others


class AsyncCollectionQuery(Awaiting[Any], _Collecting[N]):
    """A node with its edges and children: iterate it, or await it for `.node`, `.edges`, `.children` and `.others`."""

    async def nodes(self) -> CollectionNodes[N]:
        """Reads the node with its edges of all classes, and the nodes at their far ends, in two rounds."""
        found: CollectionNodes[N] = await self._context.run(self._nodes_plan())
        return found

    def __await__(self) -> Generator[Any, None, Collection[N]]:
        loading: Awaitable[Collection[N]] = self._context.run(self._collection_plan())
        return loading.__await__()
