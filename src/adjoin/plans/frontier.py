"""Reading the edges at many nodes at once, and nodes, each of them once: what all traversals are made of.

A stride says which edges are followed from a node, in which direction, and which of them count. `Adjacency` expands
nodes by a stride: the queries of all nodes run side by side, and so do their further pages. What was read for one part
of a traversal is not read again for another.

A node is a class and an id. Of a family, it is the head; children lead from their parent to themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from adjoin.aggregates import Direction
from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, NodeType, NodeUnion
from adjoin.errors import InvalidKey, InvalidValue
from adjoin.expressions import Condition, all_of
from adjoin.fields import Predicate
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.indexed_fields import is_rehearsed
from adjoin.layouts.ranges import EdgeAccess, Range
from adjoin.model import Edge, Ref, node_id
from adjoin.plans.key_search import merged
from adjoin.plans.read import Found, Question, get_each, page
from adjoin.plans.steps import CAP
from adjoin.plans.steps.batches import BATCHES_A_ROUND, chunks
from adjoin.plans.steps.conditions import condition
from adjoin.plans.steps.predicates import compared_fields, holds
from adjoin.plans.steps.samples import sample_id
from adjoin.plans.steps.spending import Spending, side_by_side
from adjoin.requests import Plan
from adjoin.units import MAX_BATCH_GET

_ASKED = 1000
"""Up to so many edges, a query asks for no more than are wanted. More would not fit into its 1 MB anyway."""

NodeKey: TypeAlias = tuple[type[Any], Any]
"""A node: its class, of a family the head, and its id."""
Arc: TypeAlias = tuple[Any, NodeKey]
"""An edge at a node, and the node to which it leads. For the way from a child to its parent, there is no edge: None."""
About: TypeAlias = Literal["edges", "nodes"]
"""What a field is of: the edges that are followed, or the nodes to which they lead."""


@dataclass(frozen=True, eq=False)
class Lane:
    """A class of edges or of children, in one direction."""

    kind: EdgeType | NodeType
    direction: Direction
    skips_loops: bool = False
    """Whether edges from a node to itself are left out, because the other direction has them."""

    @cached_property
    def near(self) -> frozenset[type[Any]]:
        """The classes of the nodes at which the edges begin, seen in this direction."""
        return frozenset(each.whole.model for each in self._end(self.direction == "out").classes)

    @cached_property
    def far(self) -> tuple[NodeType, ...]:
        """The classes of the nodes to which the edges lead."""
        return tuple(each.whole for each in self._end(self.direction == "into").classes)

    def _end(self, is_source: bool) -> NodeType:
        return self.kind.source if is_source else self.kind.target

    @property
    def is_up(self) -> bool:
        """Whether it leads from children to their parents, which their ids tell."""
        return isinstance(self.kind, NodeType) and self.direction == "into"

    def arcs(self, edges: Iterable[Any]) -> list[Arc]:
        """Edges with the nodes to which they lead."""
        kind = self.kind
        if isinstance(kind, NodeType):
            return [(child, (kind.whole.model, node_id(child))) for child in edges]
        name, end = ("target", kind.target) if self.direction == "out" else ("source", kind.source)
        if isinstance(end, NodeUnion):
            told = ((edge, end.of(getattr(edge, name))) for edge in edges)
            return [(edge, (found.model, id)) for edge, (found, id) in told]
        model = end.model
        return [(edge, (model, getattr(edge, name))) for edge in edges]

    def arcs_to(self, ids: Iterable[Any]) -> list[Arc]:
        """The nodes to which edges lead that were not read, by the ids of these nodes."""
        model = self._end(self.direction == "into").model
        return [(None, (model, id)) for id in ids]

    def range(self, layout: BoundLayout, near: NodeKey) -> Range:
        """Where the edges at a node are."""
        model, id = near
        if isinstance(self.kind, NodeType):
            return layout.children(self.kind, id)
        end = self._end(self.direction == "out")
        id = Ref(model, id) if isinstance(end, NodeUnion) else id
        return layout.out(self.kind, id) if self.direction == "out" else layout.into(self.kind, id)


@dataclass(frozen=True)
class Order:
    """A field of edges or of the nodes to which they lead, by which they are sorted."""

    field: str
    part: About
    is_reversed: bool = False


@dataclass(frozen=True, eq=False)
class Stride:
    """Which edges are followed from a node."""

    lanes: tuple[Lane, ...]
    edges_where: tuple[Predicate, ...] = ()
    nodes_where: tuple[Predicate, ...] = ()
    order: Order | None = None
    limit: int | None = None
    """How many edges of a node are followed, the first in the order; None for all."""

    @cached_property
    def identity(self) -> str:
        """A text that is different for every other stride."""
        lanes = [(lane.kind.label, lane.direction, lane.skips_loops) for lane in self.lanes]
        return repr((lanes, self.edges_where, self.nodes_where, self.order, self.limit))

    @cached_property
    def far(self) -> dict[type[Any], NodeType]:
        """The classes of the nodes to which it leads."""
        return {kind.model: kind for lane in self.lanes for kind in lane.far}

    def reversed(self) -> Stride:
        """The same edges, from their other ends."""
        turned = {"out": "into", "into": "out"}
        lanes = (Lane(lane.kind, turned[lane.direction], lane.skips_loops) for lane in self.lanes)  # type: ignore[arg-type]
        return Stride(tuple(lanes), self.edges_where)


def ref_of(node: NodeKey) -> Ref[Any]:
    return Ref(*node)


def sorted_by(pairs: Sequence[tuple[Any, Any]], is_reversed: bool) -> list[Any]:
    """The second of each pair, in the order of the first; those whose first is None come last."""
    known = [pair for pair in pairs if pair[0] is not None]
    try:
        known.sort(key=lambda pair: pair[0], reverse=is_reversed)
    except TypeError as error:
        raise InvalidValue(f"the values of the field cannot be sorted: {error}; sort by another field") from None
    return [thing for _, thing in known] + [thing for value, thing in pairs if value is None]


@dataclass(slots=True)
class _Reading:
    """How the edges of a lane are read: the same for all nodes."""

    filter: Condition | None
    rest: tuple[Predicate, ...]
    limit: int | None
    """How many edges of a node are read, if their keys are in the order of the stride."""
    is_forward: bool
    far: EdgeAccess | None
    """The access that reads only the ids of far nodes; None if edges are read."""


@dataclass(eq=False)
class Adjacency:
    """The edges at nodes, and nodes, as far as they were read."""

    layout: BoundLayout
    spending: Spending
    consistent: bool = False
    cap: int | None = CAP
    reads_edges: bool = True
    """Whether whole edges are wanted; if not, only far nodes are read of an edge where its keys tell them."""
    nodes: dict[NodeKey, Any] = field(default_factory=dict)
    """The nodes that were read; None for one that does not exist."""
    capped: dict[NodeKey, None] = field(default_factory=dict)
    """The nodes that have more edges than were read."""
    _arcs: dict[tuple[str, NodeKey], list[Arc]] = field(default_factory=dict)
    _readings: dict[tuple[str, Lane], _Reading] = field(default_factory=dict)

    # --- edges ---------------------------------------------------------------------------------

    def expand(self, stride: Stride, nodes: Iterable[NodeKey]) -> Plan[None]:
        """Reads the edges of a stride at nodes, those that were not read yet."""
        identity = stride.identity
        new = [node for node in dict.fromkeys(nodes) if (identity, node) not in self._arcs]
        if self.spending.exceeded:
            return
        found: dict[NodeKey, list[list[Arc]]] = {}
        plans: list[Plan[None]] = []
        for near in new:
            found[near] = []
            for lane in stride.lanes:
                if near[0] not in lane.near:
                    continue
                arcs: list[Arc] = []
                found[near].append(arcs)
                if lane.is_up:
                    self._climb(lane, near, arcs)
                else:
                    plans.append(self._read(stride, lane, near, arcs))
        yield from side_by_side(plans, self.spending)
        whole = {near: [arc for arcs in lists for arc in arcs] for near, lists in found.items()}
        if stride.nodes_where or (stride.order is not None and stride.order.part == "nodes"):
            yield from self.read(far for arcs in whole.values() for _, far in arcs)
        for near, all_arcs in whole.items():
            self._arcs[identity, near] = self._chosen(stride, all_arcs)

    def arcs(self, stride: Stride, node: NodeKey) -> list[Arc]:
        """The edges of a stride at a node that was expanded."""
        return self._arcs.get((stride.identity, node), [])

    def _climb(self, lane: Lane, near: NodeKey, arcs: list[Arc]) -> None:
        kind = lane.kind
        assert isinstance(kind, NodeType)
        far = (kind.source.whole.model, kind.parent_id(near[1]))
        if self.spending.reach(far):
            arcs.append((None, far))

    def _read(self, stride: Stride, lane: Lane, near: NodeKey, arcs: list[Arc]) -> Plan[None]:
        """Reads the edges of a lane at a node into a list, until its end, the limit or the cap."""
        range = lane.range(self.layout, near)
        reading = self._readings.get((stride.identity, lane)) or self._reading(stride, lane, range)
        are_ids = reading.far is not None
        if reading.far is not None:
            range.access = reading.far
        question = Question(
            range,
            filter=reading.filter,
            forward=reading.is_forward,
            consistent=self.consistent and range.access.index is None,
            rest=reading.rest,
        )
        # A limit above the cap does not keep a node from being capped.
        limit = None if self.cap is not None and (reading.limit or 0) > self.cap else reading.limit
        most = self.cap if limit is None else limit
        read = 0
        start: Any = None
        while True:
            # One more than the cap, to know whether there are more. Of a limit, no more is wanted.
            left = None if most is None else most - read + (limit is None)
            found = yield from self._page(question, left if left is not None and left <= _ASKED else None, start)
            edges = found.entities if left is None else found.entities[:left]
            read += len(edges)
            if limit is None and most is not None and read > most:
                edges = edges[: most - read]
                self.capped[near] = None
            self._add(lane, near, lane.arcs_to(edges) if are_ids else lane.arcs(edges), arcs)
            start = found.last
            if start is None or self.spending.exceeded or (most is not None and read >= most + (limit is None)):
                break
        if is_rehearsed() and not arcs:
            # The rest of the plan is shown with a node of each class.
            samples = [(kind, sample_id(kind)) for kind in lane.far]
            arcs += [(None, (kind.model, id)) for kind, id in samples if id is not None]

    def _page(self, question: Question, limit: int | None, start: Any) -> Plan[Found]:
        if question.range.number is not None:
            return merged(question).page(self.layout, limit, start)
        return page(self.layout, question, limit, start)

    def _add(self, lane: Lane, near: NodeKey, found: list[Arc], arcs: list[Arc]) -> None:
        if lane.skips_loops:
            found = [(edge, far) for edge, far in found if far != near]
        if self.spending.budget.nodes is not None:
            found = [(edge, far) for edge, far in found if self.spending.reach(far)]
        if isinstance(lane.kind, NodeType):
            self.nodes.update((far, child) for child, far in found)
        arcs += found

    def _reading(self, stride: Stride, lane: Lane, range: Range) -> _Reading:
        filter: Condition | None = None
        rest: list[Predicate] = []
        for predicate in stride.edges_where:
            wanted = None if range.access.is_partial else self._condition(lane.kind, predicate, range)
            if wanted is None:
                rest.append(predicate)
            else:
                filter = all_of(filter, wanted)
        order = stride.order
        is_sorted = order is None or (order.part == "edges" and _is_in_order(range, order.field))
        is_limited = stride.limit is not None and not stride.nodes_where and is_sorted
        reading = _Reading(
            filter,
            tuple(rest),
            stride.limit if is_limited and not lane.skips_loops else None,
            not (is_limited and order is not None and order.is_reversed),
            self.layout.far_access(range.access) if not (self.reads_edges or rest or range.number) else None,
        )
        self._readings[stride.identity, lane] = reading
        return reading

    def _condition(self, kind: EntityType, predicate: Predicate, range: Range) -> Condition | None:
        """The condition by which DynamoDB filters; None if it cannot, because a field is a key or of another class."""
        layout, index = self.layout, range.access.index
        fields = compared_fields(predicate)
        keys = {key.name for key in (*layout.partition_attributes(index), *layout.sort_attributes(index))}
        if any(kind.attributes.get(name) is None or kind.attributes[name] in keys for name in fields):
            return None
        try:
            return condition(layout, kind, predicate)
        except InvalidKey:
            # The field is stored in the key only.
            return None

    def _chosen(self, stride: Stride, arcs: list[Arc]) -> list[Arc]:
        """The edges that are followed: those to nodes for which the conditions hold, in order, up to the limit."""
        if stride.nodes_where:
            arcs = [arc for arc in arcs if self.is_one(arc[1], stride.nodes_where)]
        if stride.order is not None:
            arcs = sorted_by([(self.value(stride.order, *arc), arc) for arc in arcs], stride.order.is_reversed)
        return arcs[: stride.limit]

    def value(self, order: Order, edge: Any, far: NodeKey) -> Any:
        """The value of the field by which a stride sorts."""
        return getattr(edge if order.part == "edges" else self.nodes.get(far), order.field, None)

    # --- nodes ---------------------------------------------------------------------------------

    def read(self, nodes: Iterable[NodeKey]) -> Plan[None]:
        """Reads nodes with batch gets, those that were not read yet."""
        new = [node for node in dict.fromkeys(nodes) if node not in self.nodes]
        while new and not self.spending.is_over:
            size = min(MAX_BATCH_GET, self.spending.gets(len(new)))
            some, new = new[: size * BATCHES_A_ROUND], new[size * BATCHES_A_ROUND :]
            yield from side_by_side([self._get(each) for each in chunks(some, size)], self.spending)

    def _get(self, nodes: Sequence[NodeKey]) -> Plan[None]:
        kinds = self.layout.schema.nodes
        found = yield from get_each(self.layout, [(kinds[model], id) for model, id in nodes], self.consistent)
        self.nodes.update(zip(nodes, found, strict=True))

    def is_one(self, node: NodeKey, predicates: Iterable[Predicate]) -> bool:
        """Whether a node that was read exists, and the predicates hold for it."""
        entity = self.nodes.get(node)
        if entity is None:
            return is_rehearsed()
        kind = self.layout.schema.node(type(entity))
        return all(holds(kind, each, entity) for each in predicates)

    def own_key(self, edge: Any) -> list[Any]:
        """What tells an edge from others between the same nodes, or a child from others of its parent."""
        return [getattr(edge, name) for name in type(edge).__declaration__.key]

    def identity(self, edge: Any) -> Any:
        """What tells an edge, or a child that was found as one, from all others, from whichever end it was read."""
        if not isinstance(edge, Edge):
            return type(edge), node_id(edge)
        ends: Any = (edge.source, edge.target)
        is_symmetric = self.layout.schema.edge(type(edge)).symmetric
        return type(edge), frozenset(ends) if is_symmetric else ends, *self.own_key(edge)

    def is_edge(self, edge: Any, predicates: Iterable[Predicate]) -> bool:
        """Whether the predicates hold for an edge, or for a child that was found as one."""
        schema = self.layout.schema
        kind: EntityType = schema.edge(type(edge)) if isinstance(edge, Edge) else schema.node(type(edge))
        return all(holds(kind, each, edge) for each in predicates)


def _is_in_order(range: Range, field: str) -> bool:
    """Whether the edges of a range surely come in the order of a field."""
    access, kind = range.access, range.access.kind
    if access.sort_field is not None:
        own = access.sort_field
        return own.name == field and not range.known and (own.format is None or own.format.sorts)
    if access.sort is None:
        return False
    _, part = access.sort.start(range.known or {})
    if part is None or part.name != field:
        return False
    is_declared = isinstance(kind, EdgeType) and kind.order == field
    return is_declared or part.transform.sorts or part.transform.sorts_dates


def nodes_in(adjacency: Adjacency, wanted: Iterable[NodeKey]) -> list[Any]:
    """The nodes that were read and exist, in order."""
    found: Mapping[NodeKey, Any] = adjacency.nodes
    return [node for each in wanted if (node := found.get(each)) is not None]
