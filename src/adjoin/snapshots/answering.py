"""Answers of a snapshot to what the plans of traversals ask, in place of a store.

The plans are those of the live graph: they take an `Adjacency`, and here it makes no requests. So a walk gives the same
results in the same order. Nodes and edges are not instances of their classes, because a snapshot holds only some of
their fields: `HeldNode` and `HeldEdge` have these as attributes, and refuse the others by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from adjoin.entity_types import EdgeType, EntityType, NodeType, NodeUnion
from adjoin.errors import NotInSnapshot
from adjoin.fields import Predicate
from adjoin.layouts.bound import BoundLayout
from adjoin.model import Ref
from adjoin.plans.frontier import Adjacency, Arc, Lane, NodeKey, Stride
from adjoin.plans.steps.predicates import holds
from adjoin.plans.steps.spending import Spending
from adjoin.requests import Plan
from adjoin.snapshots.node_table import UNKNOWN, NodeTable
from adjoin.snapshots.relations import Relation

if TYPE_CHECKING:
    from adjoin.snapshots.columns import HeldColumn


def not_held(kind: EntityType, name: str, held: Iterable[str]) -> NotInSnapshot:
    """The error for a field that a snapshot does not hold."""
    names = ", ".join(f"{kind.name}.{each}" for each in held)
    holds = f"it holds {names}" if names else f"it holds no fields of {kind.name}"
    return NotInSnapshot(
        f"the snapshot does not hold {kind.name}.{name}; {holds}; name it in fields=, or read it with the graph"
    )


class HeldNode:
    """A node of a snapshot: its id, and the fields that the snapshot holds."""

    __slots__ = ("_id", "_nodes", "_number")
    kind: ClassVar[NodeType]
    class_number: ClassVar[int]

    def __init__(self, nodes: NodeTable, number: int, id: Any) -> None:
        self._nodes, self._number, self._id = nodes, number, id

    @property
    def ref(self) -> Ref[Any]:
        return Ref(self.kind.model, self._id)

    def __getattr__(self, name: str) -> Any:
        column = self._nodes.columns.get((self.class_number, name))
        if column is not None:
            return column[self._number]
        kind = self.kind
        if name in kind.key or (name == "parent" and kind.parent is not None):
            return kind.id_fields(kind.part_values(self._id))[name]
        # The field exists, so the error says how to get it. Any other name is a mistake, as on any object.
        if name in kind.fields or any(name in each.fields for each in kind.family):
            raise not_held(kind, name, [each for number, each in self._nodes.columns if number == self.class_number])
        raise AttributeError(f"{kind.name} has no field {name!r}")

    @property
    def identity(self) -> Any:
        return self.ref

    @property
    def own_key(self) -> list[Any]:
        """What tells a child from others of its parent."""
        return [getattr(self, name) for name in self.kind.model.__declaration__.key]

    def is_child_of(self, other: Any) -> bool:
        """Whether another node is the parent of this one."""
        kind, ref = self.kind, other.ref
        return kind.parent is not None and (kind.parent.whole.model, kind.parent_id(self._id)) == (ref.model, ref.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HeldNode) and self.ref == other.ref

    def __hash__(self) -> int:
        return hash(self.ref)

    def __repr__(self) -> str:
        return f"<{self.ref} of a snapshot>"


class HeldEdge:
    """An edge of a snapshot: its ends, and the fields that the snapshot holds."""

    __slots__ = ("_number", "_relation", "_source", "_target")
    kind: ClassVar[EdgeType]

    def __init__(self, relation: Relation, number: int, source: NodeKey, target: NodeKey) -> None:
        self._relation, self._number, self._source, self._target = relation, number, source, target

    @property
    def source(self) -> Any:
        """The id of the node that the edge leaves; a ref if it may be of several classes."""
        return Ref(*self._source) if isinstance(self.kind.source, NodeUnion) else self._source[1]

    @property
    def target(self) -> Any:
        """The id of the node at which the edge arrives; a ref if it may be of several classes."""
        return Ref(*self._target) if isinstance(self.kind.target, NodeUnion) else self._target[1]

    def __getattr__(self, name: str) -> Any:
        columns: dict[str, HeldColumn] = self._relation.columns
        column = columns.get(name)
        if column is not None:
            return column[self._number]
        if name in self.kind.fields:
            raise not_held(self.kind, name, columns)
        raise AttributeError(f"{self.kind.name} has no field {name!r}")

    @property
    def own_key(self) -> list[Any]:
        """What tells it from other edges between the same nodes: its key fields, or its sort key if one is not held."""
        names, columns = self.kind.model.__declaration__.key, self._relation.columns
        if all(name in columns for name in names):
            return [columns[name][self._number] for name in names]
        return [self._relation.sort_text(self._number)]

    @property
    def identity(self) -> Any:
        ends: Any = (self._source, self._target)
        return self.kind.model, frozenset(ends) if self.kind.symmetric else ends, *self.own_key

    def _same(self) -> tuple[Any, ...]:
        return self._relation.name, self._number, self._source, self._target

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HeldEdge) and self._same() == other._same()

    def __hash__(self) -> int:
        return hash(self._same())

    def __repr__(self) -> str:
        return f"<{self.kind.name} from {Ref(*self._source)} to {Ref(*self._target)} of a snapshot>"


class HeldGraph:
    """All nodes and edges of a snapshot."""

    def __init__(self, layout: BoundLayout, nodes: NodeTable, relations: Iterable[Relation]) -> None:
        self.layout, self.nodes = layout, nodes
        self.relations = {relation.kind.model: relation for relation in relations}
        self._node_classes = [_node_class(kind, number) for number, kind in enumerate(nodes.kinds)]
        self._edge_classes = {
            model: _edge_class(relation.kind)
            for model, relation in self.relations.items()
            if isinstance(relation.kind, EdgeType)
        }

    def relation(self, kind: EntityType) -> Relation:
        found = self.relations.get(kind.model)
        if found is None:
            names = ", ".join(relation.name for relation in self.relations.values())
            raise NotInSnapshot(f"the snapshot does not hold {kind.name}; it holds {names}; name it in edges=")
        return found

    def node(self, key: NodeKey) -> HeldNode | None:
        """A node that exists; None for another."""
        number = self.nodes.number(*key)
        return None if number == UNKNOWN or not self.nodes.exists[number] else self.node_at(number)

    def node_at(self, number: int) -> HeldNode:
        _, id = self.nodes.key(number)
        made = self._node_classes[int(self.nodes.classes[number])]
        return made(self.nodes, number, id)

    def check_fields(self, kinds: Iterable[EntityType], names: Iterable[str]) -> None:
        """Raises if a field of these classes is not held. Ids and ends always are."""
        wanted = list(names)
        for kind in kinds:
            held = self._held_of(kind)
            for name in wanted:
                if name in kind.fields and name not in held and name not in _told(kind):
                    raise not_held(kind, name, held)

    def _held_of(self, kind: EntityType) -> list[str]:
        if kind.model in self.relations and isinstance(kind, EdgeType):
            return list(self.relations[kind.model].columns)
        number = self.nodes.class_numbers.get(kind.whole.model)
        return [name for each, name in self.nodes.columns if each == number]

    def arcs(self, lane: Lane, near: NodeKey) -> list[Arc]:
        """The edges of a lane at a node, as the live graph finds them."""
        kind, relation = lane.kind, self.relation(lane.kind)
        number = self.nodes.number(*near)
        if number == UNKNOWN:
            return []
        far, edges = relation.side(lane.direction).row(number)
        key, numbers = self.nodes.key, far.tolist()
        if isinstance(kind, NodeType):
            return [(self.node_at(each), key(each)) for each in numbers]
        made = self._edge_classes[kind.model]
        pairs = zip(map(key, numbers), edges.tolist(), strict=True)
        if lane.direction == "out":
            # Edges are made with their ends as they are stored, whichever end they are seen from.
            return [(made(relation, edge, near, other), other) for other, edge in pairs]
        return [(made(relation, edge, other, near), other) for other, edge in pairs]

    def arc_edge(self, lane: Lane, near: NodeKey, far: int, edge: int) -> Any:
        """What stands for one edge of a lane, at the node where it is seen from."""
        if isinstance(lane.kind, NodeType):
            return self.node_at(far)
        ends = (near, self.nodes.key(far))
        source, target = ends if lane.direction == "out" else ends[::-1]
        return self._edge_classes[lane.kind.model](self.relation(lane.kind), edge, source, target)


def _told(kind: EntityType) -> tuple[str, ...]:
    """The fields that keys tell of every node or edge."""
    if isinstance(kind, EdgeType):
        return "source", "target"
    assert isinstance(kind, NodeType)
    return (*kind.key, "parent")


def _node_class(kind: NodeType, number: int) -> type[HeldNode]:
    known = {"kind": kind, "class_number": number, "model_fields": kind.model.model_fields, "__slots__": ()}
    return type(kind.name, (HeldNode,), known)


def _edge_class(kind: EdgeType) -> type[HeldEdge]:
    return type(kind.name, (HeldEdge,), {"kind": kind, "__slots__": ()})


class _Found(dict[NodeKey, Any]):
    """The nodes that exist, looked up when they are asked for."""

    def __init__(self, graph: HeldGraph) -> None:
        super().__init__()
        self._graph = graph

    def __missing__(self, key: NodeKey) -> Any:
        found = self[key] = self._graph.node(key)
        return found

    def get(self, key: NodeKey, default: Any = None) -> Any:
        found = self[key]
        return default if found is None else found


class HeldAdjacency(Adjacency):
    """The edges at nodes, and nodes, from a snapshot. Its plans make no requests."""

    def __init__(self, graph: HeldGraph) -> None:
        super().__init__(graph.layout, Spending(None), cap=None, nodes=_Found(graph))
        self._graph = graph
        self._known: dict[tuple[str, NodeKey], list[Arc]] = {}

    def expand(self, stride: Stride, nodes: Iterable[NodeKey]) -> Plan[None]:
        """Does nothing, because everything is known."""
        yield from ()

    def read(self, nodes: Iterable[NodeKey]) -> Plan[None]:
        """Does nothing, because everything is known."""
        yield from ()

    def arcs(self, stride: Stride, node: NodeKey) -> list[Arc]:
        place = stride.identity, node
        known = self._known.get(place)
        if known is None:
            arcs = [arc for lane in stride.lanes if node[0] in lane.near for arc in self._lane(stride, lane, node)]
            known = self._known[place] = self._chosen(stride, arcs)
        return known

    def _lane(self, stride: Stride, lane: Lane, near: NodeKey) -> list[Arc]:
        if lane.is_up:
            arcs: list[Arc] = []
            self._climb(lane, near, arcs)
            return arcs
        arcs = self._graph.arcs(lane, near)
        if lane.skips_loops:
            arcs = [arc for arc in arcs if arc[1] != near]
        if stride.edges_where:
            arcs = [arc for arc in arcs if self.is_edge(arc[0], stride.edges_where)]
        if stride.limit is not None and stride.order is not None and stride.order.is_reversed:
            # The live graph reads backwards then, if the keys are in this order, and so equal values are.
            reading = self._reading(stride, lane, lane.range(self.layout, near))
            arcs = arcs if reading.is_forward else arcs[::-1]
        return arcs

    def is_one(self, node: NodeKey, predicates: Iterable[Predicate]) -> bool:
        entity = self.nodes.get(node)
        return entity is not None and all(holds(entity.kind, each, entity) for each in predicates)

    def own_key(self, edge: Any) -> list[Any]:
        found: list[Any] = edge.own_key
        return found

    def identity(self, edge: Any) -> Any:
        return edge.identity

    def is_edge(self, edge: Any, predicates: Iterable[Predicate]) -> bool:
        return all(holds(edge.kind, each, edge) for each in predicates)
