"""Walks of a snapshot, level by level over its arrays, for steps that follow all edges of some classes.

A level is the different nodes that it has, in the order in which they are reached, and how many paths lead to each. For
other steps, such as those with `where`, a walk goes node by node, as it does on the live graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from adjoin.dataclass import dataclass
from adjoin.plans.frontier import About, NodeKey, Stride
from adjoin.plans.walk import Distinct, Repeat, Route, WalkStep
from adjoin.snapshots.answering import HeldGraph
from adjoin.snapshots.arrays import Array
from adjoin.snapshots.columns import HeldColumn
from adjoin.snapshots.kernels import next_level, visits_of
from adjoin.snapshots.nearby import Nearby, NearLane, Room, add_near
from adjoin.snapshots.node_table import UNKNOWN
from adjoin.snapshots.relations import Relation, Side
from adjoin.values import exact_total


class Unanswered(Exception):
    """The arrays cannot answer this, but going node by node can: there are very many paths, or a node has no number."""


class Lanes:
    """The arrays of some classes of edges, each in a direction, as compiled loops take them."""

    def __init__(self, sides: Sequence[tuple[Relation, str]], skips: Sequence[bool]) -> None:
        self.relations = [relation for relation, _ in sides]
        self._sides = found = [relation.side(direction) for relation, direction in sides]
        self.starts = tuple(side.starts for side in found)
        self.degrees = tuple(side.degrees for side in found)
        self.far = tuple(side.far for side in found)
        self.edges = tuple(side.edges for side in found)
        self.skips = np.array(skips, np.bool_)

    def near(self, room: Room, values: Sequence[Array | None] | None = None) -> Nearby:
        """The same, for questions about what is near a node; with values, for sums of them."""
        values = [None] * len(self._sides) if values is None else values
        given = zip(self._sides, self.skips.tolist(), values, strict=True)
        return Nearby(room, [_near_lane(side, skips, value) for side, skips, value in given])


def _near_lane(side: Side, skips: bool, values: Array | None) -> NearLane:
    if side.bounds is None:
        return NearLane(side.starts, side.degrees, True, side.far, side.edges, skips, values)
    # Where a row begins and ends is on one line of the cache then.
    return NearLane(side.bounds[:-1], side.bounds[1:], False, side.far, side.edges, skips, values)


@dataclass(frozen=True, slots=True)
class Frontier:
    """The different nodes of a level, and how many paths lead to each."""

    nodes: Array
    counts: Array

    @property
    def count(self) -> int:
        return int(self.counts.sum())


@dataclass(frozen=True, slots=True)
class Visits:
    """The edges of the last step in order: where each leads, its number and lane, and how many paths end with it."""

    nodes: Array
    edges: Array
    lanes: Array
    counts: Array
    relations: list[Relation]


class HeldLevels:
    """Compiled loops over the arrays of a snapshot, with the room that they need."""

    def __init__(self, graph: HeldGraph) -> None:
        self._graph = graph
        self._room = Room()
        self._places = np.zeros(0, np.int32)

    def near(self, lanes: Lanes, values: Sequence[Array | None] | None = None) -> Nearby:
        """Some classes of edges, for questions about what is near a node."""
        self._room.reserve(len(self._graph.nodes))
        return lanes.near(self._room, values)

    # --- walks ---------------------------------------------------------------------------------

    def can(self, route: Route) -> bool:
        """Whether a walk follows all edges in each of its steps."""
        return bool(route.steps) and route.most is None and all(map(_is_whole, route.steps))

    def frontier(self, route: Route, steps: Sequence[WalkStep] | None = None) -> Frontier:
        """The last level of a walk, or that after some of its steps."""
        level = self._first(route.starts)
        steps = route.steps if steps is None else steps
        # A start that the snapshot does not have is still a result if no step need be taken. Only plans can say that.
        if len(level.nodes) < len(route.starts) and any(isinstance(each, Repeat) and not each.least for each in steps):
            raise Unanswered
        for step in steps:
            match step:
                case Stride():
                    level = self._next(step, level)
                case Repeat():
                    level = self._repeated(step, level)
                case _:
                    level = Frontier(level.nodes, np.ones(len(level.nodes), np.int64))
        return level

    def _first(self, starts: Iterable[NodeKey]) -> Frontier:
        numbers = [self._graph.nodes.number(*key) for key in starts]
        nodes = np.array([number for number in numbers if number != UNKNOWN], np.int32)
        return Frontier(nodes, np.ones(len(nodes), np.int64))

    def lanes(self, stride: Stride) -> Lanes:
        sides = [(self._graph.relation(lane.kind), lane.direction) for lane in stride.lanes]
        return Lanes(sides, [lane.skips_loops for lane in stride.lanes])

    def _next(self, stride: Stride, level: Frontier) -> Frontier:
        lanes = self.lanes(stride)
        self._room.reserve(len(self._graph.nodes))
        seen_in, search = self._room.seen_in, self._room.next_search()
        if len(self._places) < len(seen_in):
            self._places = np.zeros(len(seen_in), np.int32)
        most = min(_edges_at(lanes, level.nodes), len(self._graph.nodes))
        found, counts = np.empty(most, np.int32), np.empty(most, np.int64)
        end, total = next_level(
            lanes.starts,
            lanes.degrees,
            lanes.far,
            lanes.skips,
            level.nodes,
            level.counts,
            seen_in,
            search,
            self._places,
            found,
            counts,
        )
        if total < 0:
            raise Unanswered
        return Frontier(found[:end], counts[:end])

    def _repeated(self, step: Repeat, level: Frontier) -> Frontier:
        levels: list[Frontier] = [Frontier(level.nodes[:0], level.counts[:0])]
        for depth in range(step.most + 1):
            if depth:
                level = self._next(step.stride, level)
            if depth >= step.least:
                levels.append(level)
            if not len(level.nodes):
                break
        # Counts are numbers of 64 bits here. The plans of walks count with Python's, which have no limit.
        if sum(each.count for each in levels) >= 2**62:
            raise Unanswered
        nodes = np.concatenate([each.nodes for each in levels])
        _, first, places = np.unique(nodes, return_index=True, return_inverse=True)
        counts = np.zeros(len(first), np.int64)
        np.add.at(counts, places, np.concatenate([each.counts for each in levels]))
        # np.unique sorts by number. Results come in the order in which the walk reaches nodes.
        order = np.argsort(first, kind="stable")
        return Frontier(nodes[first[order]], counts[order])

    def visits(self, route: Route) -> Visits | None:
        """The edges of the last step; None if it is not one step along edges."""
        last = route.steps[-1]
        if not isinstance(last, Stride):
            return None
        level = self.frontier(route, route.steps[:-1])
        lanes = self.lanes(last)
        most = _edges_at(lanes, level.nodes)
        nodes, edges, which = (np.empty(most, np.int32) for _ in range(3))
        counts = np.empty(most, np.int64)
        end = visits_of(
            lanes.starts,
            lanes.degrees,
            lanes.far,
            lanes.edges,
            lanes.skips,
            level.nodes,
            level.counts,
            nodes,
            edges,
            which,
            counts,
        )
        return Visits(nodes[:end], edges[:end], which[:end], counts[:end], lanes.relations)

    # --- values --------------------------------------------------------------------------------

    def edge_values(self, visits: Visits, field: str) -> Iterator[tuple[Any, int]]:
        """The values of a field of the last edges, each with the number of paths that end with it."""
        columns = [relation.columns.get(field) for relation in visits.relations]
        triples = zip(visits.edges.tolist(), visits.lanes.tolist(), visits.counts.tolist(), strict=True)
        for edge, lane, count in triples:
            column = columns[lane]
            value = None if column is None else column[edge]
            if value is not None:
                yield value, count

    def node_values(self, level: Frontier, field: str) -> Iterator[tuple[Any, int]]:
        """The values of a field of the nodes of a level that exist, each with the number of paths to it."""
        nodes = self._graph.nodes
        columns = [nodes.columns.get((number, field)) for number in range(len(nodes.kinds))]
        classes = nodes.classes[level.nodes].tolist()
        for node, kind, count in zip(level.nodes.tolist(), classes, level.counts.tolist(), strict=True):
            column = columns[kind]
            value = column[node] if column is not None and nodes.exists[node] else None
            if value is not None:
                yield value, count


class FieldTotal:
    """Adds up a field of the edges, or of the nodes, that are near a node."""

    def __init__(self, graph: HeldGraph, levels: HeldLevels, lanes: Lanes, field: str, part: About) -> None:
        self._graph, self._lanes, self._field, self._part = graph, lanes, field, part
        self._columns = [relation.columns.get(field) for relation in lanes.relations]
        held = [column for column in self._columns if column is not None]
        self._is_compiled = part == "edges" and len(held) == len(self._columns) and _add_up(held, lanes)
        self._near = levels.near(lanes, [column.values for column in held] if self._is_compiled else None)
        self._zero = 0.0 if self._is_compiled and held[0].plain is float else 0
        self._told = held[0].told if self._is_compiled and held[0].plain is Decimal else None

    def total(self, start: int, hops: int) -> Any:
        """The sum for a node."""
        if self._is_compiled:
            found = add_near(self._near.at, start, hops, self._zero)
            return found if self._told is None else self._told(found)
        if self._part == "nodes":
            return self._of_nodes(self._near.within(start, hops)[1:].copy())
        return self._of_edges(start, hops)

    def _of_nodes(self, numbers: Array) -> Any:
        nodes, parts = self._graph.nodes, []
        for (kind, name), column in nodes.columns.items():
            if name == self._field:
                some = numbers[(nodes.classes[numbers] == kind) & nodes.exists[numbers]]
                found = exact_sum(column, some, np.ones(len(some), np.int64))
                if found is None:
                    values = (column[number] for number in some.tolist())
                    found = exact_total(value for value in values if value is not None)
                parts.append(found)
        return exact_total(parts)

    def _of_edges(self, start: int, hops: int) -> Any:
        """Edge by edge, because the sum may not fit into 64 bits, or columns differ."""
        lanes = self._lanes
        near = self._near.within(start, hops - 1).tolist()
        values: list[Any] = []
        for node in near:
            for lane, column in enumerate(self._columns):
                first = int(lanes.starts[lane][node])
                last = first + int(lanes.degrees[lane][node])
                far, edges = lanes.far[lane][first:last].tolist(), lanes.edges[lane][first:last].tolist()
                for other, edge in zip(far, edges, strict=True):
                    if column is not None and not (lanes.skips[lane] and other == node):
                        values.append(column[edge])
        return exact_total(value for value in values if value is not None)


def _add_up(columns: Sequence[HeldColumn], lanes: Lanes) -> bool:
    """Whether compiled loops can add values of these columns: they are alike, and no sum of them is too great."""
    if len({(column.plain, column.scale) for column in columns}) != 1:
        return False
    if columns[0].plain is float:
        return True
    bounds = [each for column in columns for each in (column.values.min(initial=0), column.values.max(initial=0))]
    greatest = max(abs(int(each)) for each in bounds)
    return greatest * sum(relation.count for relation in lanes.relations) < 2**62


def exact_sum(column: HeldColumn, places: Array, counts: Array) -> Any:
    """The sum of some values of a column, each taken so many times; None if it may not fit, or is of floats."""
    if column.plain is float or not len(places):
        return None
    values = column.values[places]
    greatest = max(abs(int(values.min())), abs(int(values.max())))
    # The sum might not fit into 64 bits, and NumPy would not say so.
    if greatest * int(counts.sum()) >= 2**62:
        return None
    total = int(np.dot(values, counts))
    return total if column.plain is bool else column.told(total)


def _is_whole(step: WalkStep) -> bool:
    if isinstance(step, Distinct):
        return True
    if isinstance(step, Repeat):
        return step.until is None and _is_whole(step.stride)
    if not isinstance(step, Stride):
        return False
    is_chosen = step.edges_where or step.nodes_where or step.order is not None or step.limit is not None
    return not is_chosen and not any(lane.is_up for lane in step.lanes)


def _edges_at(lanes: Lanes, nodes: Array) -> int:
    return int(sum(int(degrees[nodes].sum(dtype=np.int64)) for degrees in lanes.degrees))
