"""`Snapshot` and `AsyncSnapshot`: what a program asks of a snapshot.

Everything is answered from memory, so both have the same methods. Only `follow` reads: it blocks in one, and is awaited
in the other. A lock keeps answers and followed changes apart, so that a snapshot may be followed in a thread.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from threading import Event, RLock, Thread
from time import monotonic
from typing import Any, TypeVar

import numpy as np

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, NodeType
from adjoin.errors import AdjoinError, InvalidValue, shown
from adjoin.fields import Predicate
from adjoin.layouts.bound import BoundLayout
from adjoin.model import Child, Edge, Node, Ref
from adjoin.plans.frontier import About, Stride
from adjoin.plans.paths import PathQuestion, any_path, reachable, shortest_path, shortest_paths
from adjoin.plans.recommend import common, recommend
from adjoin.plans.routing import about, check_direction, lanes_of, node_key
from adjoin.plans.steps.predicates import compared_fields
from adjoin.plans.subtree import Subtree
from adjoin.plans.walk_results import Reachable, Recommendation, WalkPath, WalkResult
from adjoin.queries import Context, whole_number
from adjoin.requests import ItemChange, Plan
from adjoin.snapshots.answering import HeldAdjacency, HeldGraph, HeldNode
from adjoin.snapshots.arrays import Array
from adjoin.snapshots.calls import needed
from adjoin.snapshots.following import Following
from adjoin.snapshots.item_reading import Held, RowReading
from adjoin.snapshots.levels import FieldTotal, HeldLevels, Lanes
from adjoin.snapshots.nearby import Nearby, count_near
from adjoin.snapshots.node_table import UNKNOWN, NodeTable
from adjoin.snapshots.rankings import Groups, Scores
from adjoin.snapshots.relations import Relation
from adjoin.snapshots.saving import save
from adjoin.snapshots.searching import Searching
from adjoin.snapshots.walking import HeldTraversal, HeldWalk, kinds_of
from adjoin.traversals import Asking, given_node
from adjoin.values import Item

T = TypeVar("T")


@dataclass(slots=True)
class _Way:
    """Some classes of edges in a direction, as questions about what is near a node take them."""

    stride: Stride
    lanes: Lanes
    near: Nearby
    at: int
    """The address of `near`."""
    adding: dict[tuple[str, str | None], FieldTotal] = field(default_factory=dict)
    """How fields are added up, by their names and what they are of."""


class _Asked(Asking):
    """What both kinds of snapshots share: all answers."""

    def __init__(
        self,
        layout: BoundLayout,
        secret: bytes,
        run: Callable[[Plan[Any]], Any],
        held: Held,
        nodes: NodeTable,
        relations: list[Relation],
        position: str | None,
        since: float,
        marked: list[Item],
        table_id: str,
        *,
        is_opened: bool = False,
    ) -> None:
        self._layout, self._held, self._run_plan = layout, held, run
        self._nodes, self._relations = nodes, relations
        self._lock = RLock()
        self._graph = HeldGraph(layout, nodes, relations)
        self._levels = HeldLevels(self._graph)
        self._searching = Searching(self._graph, self._levels)
        reading = RowReading(layout, held)
        self._following = Following(
            layout, reading, nodes, relations, position, since, marked, table_id, is_opened=is_opened
        )
        context = Context(layout, secret, self._answered)
        self._traversal = HeldTraversal(context, monotonic, None, None, graph=self._graph, levels=self._levels)
        self._ways: dict[Any, _Way] = {}

    def __repr__(self) -> str:
        edges = ", ".join(f"{relation.count:,} {relation.name}" for relation in self._relations)
        return f"<{type(self).__name__} of {len(self._nodes):,} nodes and {edges}>"

    # --- what it holds -------------------------------------------------------------------------

    @property
    def node_count(self) -> int:
        """The number of nodes that exist."""
        return int(self._nodes.exists[: len(self._nodes)].sum())

    def edge_count(self, model: type[Any] | None = None) -> int:
        """Returns the number of edges of a class, or of all; a symmetric edge is counted once from each end."""
        if model is None:
            return sum(relation.count for relation in self._relations)
        return self._relation(model).count

    @property
    def nbytes(self) -> int:
        """How many bytes the arrays have."""
        return self._nodes.nbytes + sum(relation.nbytes for relation in self._relations)

    @property
    def position(self) -> str | None:
        """After which change of the stream `follow` continues; None for the oldest change that is kept."""
        return self._following.position

    def node(self, node: Node | HeldNode | Ref[Any]) -> HeldNode | None:
        """Returns a node with the fields that are held, or None if it does not exist."""
        with self._lock:
            return self._graph.node(self._nodes.key_of(_named(node)))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the snapshot into a folder, from which `g.open_snapshot` opens it. It may hold an earlier one."""
        with self._lock:
            self._changed()
            save(folder, self._layout, self._held, self._nodes, self._relations, self._following)

    def _relation(self, model: type[Any]) -> Relation:
        if not isinstance(model, type) or not issubclass(model, Edge | Child):
            raise InvalidValue(f"a class of edges or of children is needed, got {shown(model)}; pass the class")
        schema = self._layout.schema
        kind: EdgeType | NodeType = schema.edge(model) if issubclass(model, Edge) else schema.node(model).whole
        return self._graph.relation(kind)

    def _changed(self) -> None:
        """Forgets what was made of arrays that are not the present ones any more."""
        self._ways.clear()

    # --- walks and paths -----------------------------------------------------------------------

    def _answered(self, plan: Plan[T]) -> T:
        """The result of a plan that makes no requests."""
        with self._lock:
            try:
                next(plan)
            except StopIteration as done:
                result: T = done.value
                return result
        raise AssertionError("a snapshot makes no requests")

    def walk(self, x: Any) -> HeldWalk:
        """Returns a walk, with the steps and results that a walk of the graph has: `s.walk(ann).out(Knows).refs()`.

        `x` is a node or a ref, a list of them, or an id if the first step tells its class.
        """
        return HeldWalk(self._traversal, **self._starts([*map(_named, x)] if isinstance(x, list) else _named(x)))

    def _adjacency(self) -> HeldAdjacency:
        return HeldAdjacency(self._graph)

    def _asked(self, asked: PathQuestion) -> PathQuestion:
        """A question about edges and fields that are held."""
        for lane in asked.stride.lanes:
            self._graph.relation(lane.kind)
        parts: list[tuple[About, Sequence[Predicate]]] = [("edges", asked.stride.edges_where), ("nodes", asked.where)]
        for part, predicates in parts:
            for predicate in predicates:
                self._graph.check_fields(kinds_of(asked.stride, part), compared_fields(predicate))
        return asked

    def _check_weight(self, stride: Stride, name: str) -> None:
        super()._check_weight(stride, name)
        self._graph.check_fields(kinds_of(stride, "edges"), [name])

    def _one_path(self, asked: PathQuestion, plan: Callable[..., Plan[WalkPath | None]]) -> WalkPath | None:
        if self._searching.can(asked):
            with self._lock:
                return self._searching.path(asked)
        return self._answered(plan(self._adjacency(), asked))

    def shortest_path(
        self,
        a: Any,
        b: Any,
        via: Any,
        *,
        direction: str = "out",
        max_depth: int | None = 6,
        weight: str | None = None,
        where: Predicate | None = None,
        on: str | None = None,
    ) -> WalkPath | None:
        """Returns a shortest path from one node to another, or None; see `Graph.shortest_path`."""
        asked = self._asked(
            self._between(_named(a), given_node(_named(b)), via, direction, max_depth, weight, where, on)
        )
        return self._one_path(asked, shortest_path)

    def shortest_paths(
        self,
        a: Any,
        b: Any,
        via: Any,
        *,
        direction: str = "out",
        max_depth: int | None = 6,
        weight: str | None = None,
        where: Predicate | None = None,
        on: str | None = None,
    ) -> WalkResult[WalkPath]:
        """Returns all shortest paths from one node to another; see `Graph.shortest_paths`."""
        asked = self._asked(
            self._between(_named(a), given_node(_named(b)), via, direction, max_depth, weight, where, on)
        )
        return self._answered(shortest_paths(self._adjacency(), asked))

    def can_reach(
        self,
        a: Any,
        b: Any,
        via: Any,
        *,
        direction: str = "out",
        max_depth: int | None = None,
        where: Predicate | None = None,
        on: str | None = None,
    ) -> WalkPath | None:
        """Returns a path from one node to another, which is true, or None if there is none."""
        asked = self._asked(self._between(_named(a), given_node(_named(b)), via, direction, max_depth, None, where, on))
        return self._one_path(asked, any_path)

    def reachable(
        self,
        x: Any,
        via: Any,
        *,
        direction: str = "out",
        max_depth: int | None = None,
        where: Predicate | None = None,
        on: str | None = None,
    ) -> Reachable:
        """Returns all nodes that can be reached from a node, the nearest first; see `Graph.reachable`."""
        asked = self._asked(self._between(_named(x), None, via, direction, max_depth, None, where, on))
        return self._answered(reachable(self._adjacency(), asked))

    def recommend(
        self,
        x: Any,
        model: type[Any],
        *,
        limit: int = 10,
        to: type[Any] | None = None,
        score: str = "common",
        weight: str | None = None,
        direction: str = "out",
        exclude: Iterable[Any] = (),
        reasons: int = 10,
    ) -> WalkResult[Recommendation[Any]]:
        """Returns the nodes that have most in common with a node; see `Graph.recommend`."""
        self._relation(model)
        taste = self._taste(_named(x), model, to, score, weight, direction, exclude, limit, reasons)
        return self._answered(recommend(self._adjacency(), taste))

    def common(self, a: Any, b: Any, model: type[Any], *, direction: str = "out") -> WalkResult[Any]:
        """Returns the nodes that two nodes are both connected with by edges of a class."""
        self._relation(model)
        return self._answered(common(self._adjacency(), self._sides(_named(a), _named(b), model, direction)))

    def subtree(
        self,
        x: Any,
        model: Any,
        *,
        quantity: str | None = None,
        direction: str = "out",
        max_depth: int | None = None,
    ) -> Subtree:
        """Returns everything below a node, with totals; see `Graph.subtree`."""
        for each in [model] if isinstance(model, type) else list(model):
            self._relation(each)
        return self._answered(self._subtree(self._adjacency(), _named(x), model, quantity, direction, max_depth))

    # --- what is near a node -------------------------------------------------------------------

    def degree(self, x: Any, via: Any, *, direction: str = "out") -> int:
        """Returns how many edges of some classes a node has."""
        with self._lock:
            way = self._along(via, direction)
            number = self._number(x, way.stride)
            if number == UNKNOWN:
                return 0
            lanes = way.lanes
            total = sum(int(degrees[number]) for degrees in lanes.degrees)
            loops = [lane for lane, skips in enumerate(lanes.skips) if skips]
            for lane in loops:
                first = lanes.starts[lane][number]
                row = lanes.far[lane][first : first + lanes.degrees[lane][number]]
                total -= int((row == number).sum())
            return total

    def k_hop_count(self, x: Any, via: Any, hops: int = 2, *, direction: str = "out") -> int:
        """Returns how many different nodes are within so many edges of a node, without the node itself."""
        with self._lock:
            way = self._along(via, direction)
            if type(hops) is not int or not 0 < hops < 2**31:
                hops = int(whole_number("hops", hops))
            number = self._number(x, way.stride)
            found: int = 0 if number < 0 else count_near(way.at, number, hops) - 1
            return found

    def k_hop_sum(
        self, x: Any, field: str, via: Any, hops: int = 2, *, direction: str = "out", on: str | None = None
    ) -> Any:
        """Returns the sum of a field of what is within so many edges of a node.

        Of nodes, those within so many edges count, each once, without the node itself. Of edges, all count at which the
        search looks: those of the node, and of all nodes that are fewer edges away. `on` says whether "edges" or
        "nodes" are meant, if the field does not tell.
        """
        with self._lock:
            way = self._along(via, direction)
            if type(hops) is not int or not 0 < hops < 2**31:
                hops = int(whole_number("hops", hops))
            adding = way.adding.get((field, on))
            if adding is None:
                part = about(way.stride, [field], on)
                self._graph.check_fields(kinds_of(way.stride, part), [field])
                adding = way.adding[field, on] = FieldTotal(self._graph, self._levels, way.lanes, field, part)
            number = self._number(x, way.stride)
            return 0 if number < 0 else adding.total(number, hops)

    def _along(self, via: Any, direction: str) -> _Way:
        """The arrays of some classes of edges. They are kept, because to find them takes longer than to use them."""
        try:
            return self._ways[via, direction]
        except (KeyError, TypeError):
            # A list has no hash.
            models = tuple(via) if isinstance(via, Iterable) and not isinstance(via, type) else via
        found = self._ways.get((models, direction))
        if found is None:
            check_direction(direction)
            stride = Stride(lanes_of(self._layout, "via", models, direction))
            lanes = self._levels.lanes(stride)
            near = self._levels.near(lanes)
            found = self._ways[models, direction] = _Way(stride, lanes, near, near.at)
        return found

    def _number(self, x: Any, stride: Stride) -> int:
        """The number of a node that a program names by itself, its ref or its id; -1 if it has none."""
        if type(x) is not Ref:
            x = _named(x)
        if type(x) is Ref and (named := self._nodes.named.get(x.model)) is not None:
            return self._nodes.number_as(named, x.id)
        return self._nodes.number(*node_key(self._layout, x, stride.lanes))

    # --- all nodes -----------------------------------------------------------------------------

    def _selection(self, via: Any, direction: str, weight: str | None = None) -> Any:
        check_direction(direction)
        stride = Stride(lanes_of(self._layout, "via", via, "out"))
        relations = [self._graph.relation(lane.kind) for lane in stride.lanes]
        if weight is not None:
            self._check_weight(stride, weight)
        return needed("matrices").Selection(self._nodes, relations, direction)

    def degrees(self, via: Any, *, direction: str = "out") -> Scores:
        """Returns how many edges of some classes each node has."""
        with self._lock:
            lanes = self._along(via, direction).lanes
            count = len(self._nodes)
            total = np.zeros(count, np.int64)
            for starts, degrees, far, skips in zip(lanes.starts, lanes.degrees, lanes.far, lanes.skips, strict=True):
                total[: len(degrees)] += degrees[:count]
                if skips:
                    near = np.repeat(np.arange(count, dtype=np.int32), degrees[:count])
                    places = np.repeat(starts[:count], degrees[:count]) + _within_rows(degrees[:count])
                    total -= np.bincount(near[far[places] == near], minlength=count)
            numbers = np.nonzero(self._selection(via, direction).members)[0].astype(np.int32)
            return Scores(self._nodes, numbers, total[numbers])

    def k_hop_counts(
        self, via: Any, hops: int = 2, *, direction: str = "out", of: Iterable[Any] | None = None
    ) -> Scores:
        """Returns how many different nodes are within so many edges of each node, without the node itself.

        `of` are the nodes that are asked about. Without it, all nodes are. Those that neither exist nor are named by an
        edge are left out.
        """
        with self._lock:
            way = self._along(via, direction)
            near = way.near
            if of is None:
                numbers = np.nonzero(self._selection(via, direction).members)[0].astype(np.int32)
            else:
                if isinstance(of, str | bytes | Ref | Node | HeldNode) or not isinstance(of, Iterable):
                    raise InvalidValue(f"of takes a list of nodes, got {shown(of)}; use a list")
                given = np.fromiter((self._number(each, way.stride) for each in of), np.int32)
                numbers = np.unique(given[given != UNKNOWN])
            return Scores(self._nodes, numbers, near.counts(numbers, int(whole_number("hops", hops))))

    def pagerank(
        self,
        via: Any,
        *,
        direction: str = "out",
        weight: str | None = None,
        damping: float = 0.85,
        tolerance: float = 1e-10,
    ) -> Scores:
        """Returns the PageRank of each node that exists; the sum of all is 1.

        `weight` is a field of the edges. It ends when the ranks change by less than `tolerance` in all.
        """
        with self._lock:
            selection = self._selection(via, direction, weight)
            return Scores(self._nodes, *needed("matrices").pagerank(selection, weight, damping, tolerance))

    def components(self, via: Any, *, strong: bool = False) -> Groups:
        """Returns the connected components of the nodes that exist, the largest first.

        With `strong`, the nodes of a component can all be reached from each other along the edges.
        """
        with self._lock:
            return Groups(self._nodes, *needed("matrices").components(self._selection(via, "out"), strong))

    def communities(self, via: Any, *, weight: str | None = None, resolution: float = 1.0) -> Groups:
        """Returns groups of nodes with many edges inside and few to others (Leiden algorithm), the largest first.

        Directions of edges do not count. A greater `resolution` gives smaller groups.
        """
        with self._lock:
            selection = self._selection(via, "out", weight)
            return Groups(self._nodes, *needed("matrices").communities(selection, weight, resolution))

    def triangles(self, via: Any) -> Scores:
        """Returns how many triangles each node is part of. Directions of edges and parallel edges do not count."""
        with self._lock:
            return Scores(self._nodes, *needed("matrices").triangles(self._selection(via, "out")))

    # --- other libraries -----------------------------------------------------------------------

    def refs(self) -> list[Ref[Any]]:
        """Returns refs to all nodes, in the order of their numbers; also to those that only edges name."""
        with self._lock:
            return [self._nodes.ref(number) for number in range(len(self._nodes))]

    def to_scipy(self, via: Any, *, direction: str = "out", weight: str | None = None) -> Any:
        """Returns a sparse matrix: how many edges lead from a node to another, or the sum of a field of them.

        Rows and columns are the nodes in the order of `refs`. Its `indices` and `indptr` are the arrays of the snapshot
        if `via` is one class and all nodes exist. Change neither.
        """
        with self._lock:
            matrix = self._selection(via, direction, weight).matrix(weight)
            self._changed()
            return matrix

    def to_igraph(self, via: Any, *, weight: str | None = None) -> Any:
        """Returns a directed graph of igraph, with the attributes `ref` of vertices and `weight` of edges."""
        with self._lock:
            selection = self._selection(via, "out", weight)
            graph = needed("matrices").to_igraph(selection, weight)
            self._changed()
            graph.vs["ref"] = [self._nodes.ref(number) for number in np.nonzero(selection.members)[0].tolist()]
            return graph

    def to_networkx(self, via: Any) -> Any:
        """Returns a `MultiDiGraph` of NetworkX, whose nodes are refs, with the fields that are held."""
        with self._lock:
            return needed("handing_over").to_networkx(self._graph, self._selection(via, "out"))

    def to_arrow(self, via: Any) -> Any:
        """Returns two tables of Arrow, of nodes and of edges, with the fields that are held.

        An edge has the numbers of its ends, which are places in the table of nodes.
        """
        with self._lock:
            tables = needed("handing_over").to_arrow(self._graph, self._selection(via, "out"))
            self._changed()
            return tables

    # --- following -----------------------------------------------------------------------------

    def _applied(self, changes: list[ItemChange], hidden: set[Any]) -> int:
        with self._lock:
            try:
                self._following.apply(changes, hidden)
            finally:
                # Also if a change cannot be applied: those before it were.
                self._changed()
        return len(changes)


def _named(node: Any) -> Any:
    """A node of a snapshot by its ref; anything else as it is."""
    return node.ref if isinstance(node, HeldNode) else node


def _within_rows(degrees: Array) -> Array:
    """The place of each edge within the row of its node."""
    ends = np.cumsum(degrees)
    found: Array = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - degrees, degrees)
    return found


class Snapshot(_Asked):
    """The topology of a graph in memory, with the fields that were asked for; `Graph.snapshot` makes one."""

    def follow(
        self,
        *,
        once: bool = False,
        every: float = 1.0,
        stop: Event | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Applies the change stream, from where the snapshot is, and returns how many changes it applied.

        With `once`, it returns when there are no more changes, and raises any error. Otherwise it looks for changes
        every `every` seconds until `stop` is set; it retries after passing errors, and raises all others. `progress` is
        called with the number of changes so far. Raises `ChangesTrimmed` if the stream no longer reaches back.
        """
        stopped, count = stop or Event(), 0
        while not stopped.is_set():
            try:
                changes = self._run_plan(self._following.page())
                hidden = self._run_plan(self._following.hidden(changes))
                count += self._applied(changes, hidden)
            except AdjoinError as error:
                if once or not error.retryable:
                    raise
                changes = []
            if changes and progress is not None:
                progress(count)
            if not changes and (once or stopped.wait(every)):
                break
        return count

    @contextmanager
    def following(self, every: float = 1.0) -> Iterator[None]:
        """Follows the change stream in a thread while the block runs. An error of the thread is raised at its end."""
        stop, errors = Event(), []

        def run() -> None:
            try:
                self.follow(every=every, stop=stop)
            except BaseException as error:
                errors.append(error)

        thread = Thread(target=run, name="adjoin-snapshot", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        if errors:
            raise errors[0]


class AsyncSnapshot(_Asked):
    """The same for an `AsyncGraph`. Answers come from memory and are not awaited; only `follow` is."""

    async def follow(
        self, *, once: bool = False, every: float = 1.0, progress: Callable[[int], None] | None = None
    ) -> int:
        """Applies the change stream, from where the snapshot is, and returns how many changes it applied.

        With `once`, it returns when there are no more changes. Otherwise it looks for changes every `every` seconds,
        until its task is cancelled.
        """
        count = 0
        while True:
            try:
                changes = await self._run_plan(self._following.page())
                hidden = await self._run_plan(self._following.hidden(changes))
                count += self._applied(changes, hidden)
            except AdjoinError as error:
                if once or not error.retryable:
                    raise
                changes = []
            if changes and progress is not None:
                progress(count)
            if not changes:
                if once:
                    return count
                await asyncio.sleep(every)
