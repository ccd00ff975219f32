"""Paths between two nodes, and everything that can be reached from one.

Without weights, a search goes level by level from both ends, each time from the end with the smaller frontier, until a
node is found from both. When that happens for the first time, the nodes that were found from both ends are those at
which all shortest paths are cut, so all of them are known. A layout that cannot find edges from their targets is
searched from the beginning only.

With weights, it is Dijkstra's algorithm. Nodes must be settled one after the other, so their edges are read ahead: a
round reads those of the nearest nodes together. If the number of edges is limited, a longer path to a node may be
needed although a lighter one with more edges was found, so nodes are settled once for each number of edges.

A node that does not exist is part of no path. Nodes are read when a path is found; if one does not exist, the search
is made again without it, on what was read already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from decimal import Decimal
from heapq import heappop, heappush, nsmallest
from itertools import count
from typing import Any, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidModel, InvalidValue, shown
from adjoin.fields import Predicate
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.indexed_fields import is_rehearsed
from adjoin.plans.frontier import Adjacency, NodeKey, Stride
from adjoin.plans.routing import check_access
from adjoin.plans.walk_results import Completeness, Reachable, Trail, WalkPath, WalkResult, complete, path_of
from adjoin.requests import Plan
from adjoin.values import exact_total

_AHEAD = 16
"""How many nodes are expanded in one round of a weighted search, the nearest first."""
_ALLOW_MORE = "; allow more"


@dataclass(frozen=True)
class PathQuestion:
    """What is searched: paths from one node to another, or to all."""

    stride: Stride
    start: NodeKey
    end: NodeKey | None = None
    most: int | None = None
    """How many edges a path has at most."""
    weight: str | None = None
    """The field of edges by whose sum paths are compared; None to compare the number of edges."""
    where: tuple[Predicate, ...] = ()
    """What holds for the nodes between the ends of a path."""


@dataclass(eq=False)
class _Side:
    """A search from one end: the levels so far."""

    stride: Stride
    start: NodeKey
    depths: dict[NodeKey, int] = field(default_factory=dict)
    before: dict[NodeKey, list[tuple[Any, NodeKey]]] = field(default_factory=dict)
    """The last edges of the shortest paths to each node, with the nodes where they come from."""
    frontier: list[NodeKey] = field(default_factory=list)
    depth: int = 0

    def __post_init__(self) -> None:
        self.depths, self.frontier = {self.start: 0}, [self.start]

    def next_level(self, adjacency: Adjacency, asked: PathQuestion, banned: set[NodeKey]) -> Plan[None]:
        yield from adjacency.expand(self.stride, self.frontier)
        self.depth += 1
        found: dict[NodeKey, list[tuple[Any, NodeKey]]] = {}
        for near in self.frontier:
            for edge, far in adjacency.arcs(self.stride, near):
                if far not in self.depths and far not in banned:
                    found.setdefault(far, []).append((edge, near))
        if asked.where:
            yield from adjacency.read(found)
            ends = (asked.start, asked.end)
            found = {far: edges for far, edges in found.items() if far in ends or adjacency.is_one(far, asked.where)}
        self.frontier = list(found)
        self.before |= found
        self.depths |= dict.fromkeys(found, self.depth)

    def trails(self, node: NodeKey) -> Iterator[Trail]:
        """The shortest paths to a node, from it back to the start."""
        waiting: list[Trail] = [((node,), ())]
        while waiting:
            nodes, edges = waiting.pop()
            before = self.before.get(nodes[-1])
            if before is None:
                yield nodes, edges
                continue
            waiting += [((*nodes, near), (*edges, edge)) for edge, near in reversed(before)]


# --- unweighted --------------------------------------------------------------------------------


def _from_both_ends(adjacency: Adjacency, asked: PathQuestion, banned: set[NodeKey]) -> Plan[Iterator[Trail]]:
    """All shortest paths."""
    assert asked.end is not None
    front = _Side(asked.stride, asked.start)
    if asked.start == asked.end:
        return iter([((asked.start,), ())])
    back = _Side(asked.stride.reversed(), asked.end)
    is_two_way = is_findable(adjacency.layout, back.stride)
    while front.frontier and back.frontier and not adjacency.spending.exceeded:
        # Another level of either side would make every path that is found longer than allowed.
        if asked.most is not None and front.depth + back.depth >= asked.most:
            break
        # Equal sides take turns: behind the only neighbour of an end there may be a node with very many.
        is_back = (len(back.frontier), back.depth) < (len(front.frontier), front.depth)
        side, other = (back, front) if is_two_way and is_back else (front, back)
        yield from side.next_level(adjacency, asked, banned)
        meeting = [node for node in side.frontier if node in other.depths]
        if meeting:
            return _joined(front, back, meeting)
    return iter(())


def is_findable(layout: BoundLayout, stride: Stride) -> bool:
    """Whether the layout can find all edges of a stride."""
    try:
        for lane in stride.lanes:
            check_access(layout, lane)
    except InvalidModel:
        return False
    return True


def _joined(front: _Side, back: _Side, meeting: Iterable[NodeKey]) -> Iterator[Trail]:
    for node in meeting:
        for nodes, edges in front.trails(node):
            for rest, further in back.trails(node):
                yield (*reversed(nodes), *rest[1:]), (*reversed(edges), *further)


# --- weighted ----------------------------------------------------------------------------------

_State: TypeAlias = tuple[NodeKey, int]
"""A node, and the number of edges to it if that is limited."""


class _Weighing:
    """Dijkstra's algorithm on edges that are read as they are needed."""

    def __init__(self, adjacency: Adjacency, asked: PathQuestion, banned: set[NodeKey]) -> None:
        self._adjacency, self._asked, self._banned = adjacency, asked, banned
        self._weights: dict[_State, Any] = {(asked.start, 0): 0}
        self._before: dict[_State, list[tuple[Any, _State]]] = {}
        self._heap: list[tuple[Any, int, int, NodeKey]] = [(0, 0, 0, asked.start)]
        self._read: set[NodeKey] = set()
        self._numbers = count(1)

    def run(self) -> Plan[tuple[Any, Iterator[Trail]]]:
        """The weight of the lightest paths, and these paths."""
        asked, best = self._asked, None
        ends: list[_State] = []
        # It goes on until everything left is heavier, so that all paths of the least weight are found.
        while self._heap and (best is None or self._heap[0][0] <= best):
            if self._heap[0][3] not in self._read and self._heap[0][3] != asked.end:
                yield from self._read_ahead()
                if self._adjacency.spending.exceeded:
                    break
            weight, edges, _, node = heappop(self._heap)
            state = (node, edges if asked.most is not None else 0)
            # The heap still has entries of nodes to which a lighter path was found since; they are skipped instead of
            # searched.
            if self._weights[state] != weight or not self._is_as_light(state):
                continue
            if node == asked.end:
                best = weight
                ends.append(state)
                continue
            if asked.most is None or edges < asked.most:
                self._relax(state, weight, edges)
        return best, (trail for end in ends for trail in self._trails(end))

    def _is_as_light(self, state: _State) -> bool:
        """Whether no path to the node with fewer edges is lighter, so that this one may be part of a lightest path."""
        node, edges = state
        return all(
            self._weights[state] <= self._weights[node, fewer]
            for fewer in range(edges)
            if (node, fewer) in self._weights
        )

    def _read_ahead(self) -> Plan[None]:
        # One node per round would wait for the store once per node. The nearest ones are needed next in most cases.
        near = nsmallest(_AHEAD, (entry for entry in self._heap if entry[3] not in self._read))
        nodes = list(dict.fromkeys(node for *_, node in near if node != self._asked.end))
        yield from self._adjacency.expand(self._asked.stride, nodes)
        if self._asked.where:
            far = [far for node in nodes for _, far in self._adjacency.arcs(self._asked.stride, node)]
            yield from self._adjacency.read(far)
        self._read.update(nodes)

    def _relax(self, state: _State, weight: Any, edges: int) -> None:
        node, _ = state
        for edge, far in self._adjacency.arcs(self._asked.stride, node):
            if far in self._banned or not self._is_allowed(far):
                continue
            total = exact_total((weight, self._weight(edge)))
            to = (far, edges + 1 if self._asked.most is not None else 0)
            known = self._weights.get(to)
            if known is None or total < known:
                self._weights[to], self._before[to] = total, [(edge, state)]
                heappush(self._heap, (total, edges + 1, next(self._numbers), far))
            # An edge of no weight back to the start would make it its own predecessor.
            elif total == known and to != (self._asked.start, 0):
                self._before[to].append((edge, state))

    def _is_allowed(self, node: NodeKey) -> bool:
        where = self._asked.where
        return not where or node in (self._asked.start, self._asked.end) or self._adjacency.is_one(node, where)

    def _weight(self, edge: Any) -> Any:
        name = self._asked.weight
        assert name is not None
        weight = getattr(edge, name, None)
        if edge is None and is_rehearsed():
            return 0
        if not isinstance(weight, int | float | Decimal) or isinstance(weight, bool) or not weight >= 0:
            raise InvalidValue(
                f"the weight {name} of {type(edge).__name__} from {shown(edge.source)} to {shown(edge.target)} is "
                f"{shown(weight)}; a weight must be a number from 0 on"
            )
        return weight

    def _trails(self, end: _State) -> Iterator[Trail]:
        """The lightest paths, without those that come to a node twice along edges of no weight."""
        waiting: list[tuple[_State, Trail]] = [(end, ((end[0],), ()))]
        while waiting:
            state, (nodes, edges) = waiting.pop()
            before = self._before.get(state, ())
            if state == (self._asked.start, 0):
                yield nodes, edges
                continue
            for edge, earlier in reversed(before):
                if earlier[0] not in nodes:
                    waiting.append((earlier, ((earlier[0], *nodes), (edge, *edges))))


# --- results -----------------------------------------------------------------------------------


def _trails(adjacency: Adjacency, asked: PathQuestion, banned: set[NodeKey]) -> Plan[tuple[Any, Iterator[Trail]]]:
    if asked.weight is None:
        return None, (yield from _from_both_ends(adjacency, asked, banned))
    return (yield from _Weighing(adjacency, asked, banned).run())


def _existing(adjacency: Adjacency, asked: PathQuestion, is_one: bool) -> Plan[list[WalkPath]]:
    """The shortest paths of nodes that exist, or the first of them."""
    banned: set[NodeKey] = set()
    while True:
        weight, found = yield from _trails(adjacency, asked, banned)
        first = next(found, None)
        trails = [] if first is None else [first] if is_one else [first, *found]
        yield from adjacency.read(dict.fromkeys(node for nodes, _ in trails for node in nodes))
        missing = {node for nodes, _ in trails for node in nodes if adjacency.nodes.get(node) is None}
        if not missing:
            paths = [path_of(adjacency, nodes, edges, weight) for nodes, edges in trails]
            return [path for path in paths if path is not None]
        if adjacency.spending.exceeded or is_rehearsed() or not missing.isdisjoint((asked.start, asked.end)):
            return []
        banned |= missing


def shortest_path(adjacency: Adjacency, asked: PathQuestion) -> Plan[WalkPath | None]:
    """A shortest path; None if there is none."""
    paths = yield from _existing(adjacency, asked, is_one=True)
    return complete(adjacency, "the shortest path", paths[0] if paths else None, _ALLOW_MORE)


def shortest_paths(adjacency: Adjacency, asked: PathQuestion) -> Plan[WalkResult[WalkPath]]:
    """All shortest paths."""
    paths = yield from _existing(adjacency, asked, is_one=False)
    return WalkResult(paths, Completeness.of(adjacency))


def any_path(adjacency: Adjacency, asked: PathQuestion) -> Plan[WalkPath | None]:
    """A path, which need not be shortest if not everything was read; None if there surely is none."""
    paths = yield from _existing(adjacency, asked, is_one=True)
    return paths[0] if paths else complete(adjacency, "whether there is a path", None, _ALLOW_MORE)


def reachable(adjacency: Adjacency, asked: PathQuestion) -> Plan[Reachable]:
    """All nodes that can be reached, the nearest first, each with a shortest path."""
    banned: set[NodeKey] = set()
    while True:
        side = _Side(asked.stride, asked.start)
        while side.frontier and (asked.most is None or side.depth < asked.most) and not adjacency.spending.exceeded:
            yield from side.next_level(adjacency, asked, banned)
        yield from adjacency.read(side.depths)
        missing = {node for node in side.depths if adjacency.nodes.get(node) is None} - {asked.start}
        if not missing or adjacency.spending.exceeded or is_rehearsed():
            break
        banned |= missing
    found = {key: node for key in side.depths if (node := adjacency.nodes.get(key)) is not None}
    steps = {key: edges[0] for key, edges in side.before.items()}
    results = [node for key, node in found.items() if key != asked.start]
    return Reachable(results, Completeness.of(adjacency), adjacency, side.depths, steps)
