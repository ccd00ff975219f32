"""One shortest path between two nodes, over the arrays of a snapshot: the one that the live graph finds.

The search is that of `plans.paths`, level by level from both ends, from the end with the smaller frontier, in turns if
they are equal. What is different is that a level is a compiled loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoin.plans.frontier import NodeKey, Stride
from adjoin.plans.paths import PathQuestion, is_findable
from adjoin.plans.walk_results import WalkPath, path_of
from adjoin.snapshots.answering import HeldAdjacency, HeldGraph
from adjoin.snapshots.arrays import Array
from adjoin.snapshots.kernels import first_seen, next_ring
from adjoin.snapshots.levels import HeldLevels, Lanes
from adjoin.snapshots.node_table import UNKNOWN


class _Side:
    """A search from one end: which nodes it has seen, and by which edge each was reached."""

    def __init__(self, size: int) -> None:
        self.seen = np.zeros(size, np.int32)
        self.before, self.edges, self.lanes = (np.zeros(size, np.int32) for _ in range(3))
        self._found = np.zeros(size, np.int32)
        self.ring = self._found[:0]
        self.depth = 0

    def begin(self, stride: Stride, lanes: Lanes, start: int, search: int) -> None:
        self.stride, self._arrays, self._search = stride, lanes, search
        self.seen[start] = search
        self.start, self.depth = start, 0
        self.ring = np.array([start], np.int32)

    def next_ring(self, banned: Array) -> None:
        lanes = self._arrays
        count = next_ring(
            lanes.starts,
            lanes.degrees,
            lanes.far,
            lanes.edges,
            self.ring,
            self.seen,
            self._search,
            banned,
            self.before,
            self.edges,
            self.lanes,
            self._found,
        )
        self.ring = self._found[:count].copy()
        self.depth += 1

    def trail(self, graph: HeldGraph, node: int) -> tuple[list[NodeKey], list[Any]]:
        """The path from a node back to the start: its nodes, and its edges."""
        nodes, edges = [graph.nodes.key(node)], []
        while node != self.start:
            near = int(self.before[node])
            key = graph.nodes.key(near)
            lane = self.stride.lanes[self.lanes[node]]
            edges.append(graph.arc_edge(lane, key, node, int(self.edges[node])))
            nodes.append(key)
            node = near
        return nodes, edges


class Searching:
    """Searches for shortest paths, with the room that they need."""

    def __init__(self, graph: HeldGraph, levels: HeldLevels) -> None:
        self._graph, self._levels = graph, levels
        self._front = self._back = _Side(0)
        self._banned = np.zeros(0, np.int32)
        self._search = 0

    def can(self, asked: PathQuestion) -> bool:
        """Whether a question is about the number of edges alone, and about all edges."""
        stride = asked.stride
        is_chosen = asked.weight is not None or asked.where or stride.edges_where
        return not is_chosen and not any(lane.is_up for lane in (*stride.lanes, *stride.reversed().lanes))

    def path(self, asked: PathQuestion) -> WalkPath | None:
        """The first shortest path; None if there is none."""
        nodes = self._graph.nodes
        assert asked.end is not None
        ends = [nodes.number(*key) for key in (asked.start, asked.end)]
        if UNKNOWN in ends or not nodes.exists[ends].all():
            return None
        missing: list[int] = []
        while True:
            found = self._trail(asked, ends[0], ends[1], missing)
            if found is None:
                return None
            keys, edges = found
            path = path_of(HeldAdjacency(self._graph), tuple(keys), tuple(edges))
            if path is not None:
                return path
            # A node of the path does not exist. It is searched again without such nodes.
            numbers = [nodes.number(*key) for key in keys]
            missing += [number for number in numbers if not nodes.exists[number]]

    def _trail(
        self, asked: PathQuestion, start: int, end: int, missing: list[int]
    ) -> tuple[list[NodeKey], list[Any]] | None:
        if start == end:
            return [asked.start], []
        self._make_room()
        front, back, search = self._front, self._back, self._search
        reversed_stride = asked.stride.reversed()
        is_two_way = is_findable(self._graph.layout, reversed_stride)
        front.begin(asked.stride, self._levels.lanes(asked.stride), start, search)
        back.begin(reversed_stride, self._levels.lanes(reversed_stride), end, search)
        self._banned[missing] = search
        while len(front.ring) and len(back.ring):
            if asked.most is not None and front.depth + back.depth >= asked.most:
                return None
            is_back = (len(back.ring), back.depth) < (len(front.ring), front.depth)
            side, other = (back, front) if is_two_way and is_back else (front, back)
            side.next_ring(self._banned)
            meeting = first_seen(side.ring, other.seen, search)
            if meeting >= 0:
                nodes, edges = front.trail(self._graph, meeting)
                rest, further = back.trail(self._graph, meeting)
                return [*reversed(nodes), *rest[1:]], [*reversed(edges), *further]
        return None

    def _make_room(self) -> None:
        count = len(self._graph.nodes)
        if len(self._banned) < count or self._search == 2**31 - 2:
            size = count + count // 8 + 16
            self._front, self._back, self._banned = _Side(size), _Side(size), np.zeros(size, np.int32)
            self._search = 0
        self._search += 1
