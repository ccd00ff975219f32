"""The methods of a graph that follow edges over several hops.

`Asking` checks the arguments of each call, and `Traversing` makes its plan, once for both graphs. `Traversals` and
`AsyncTraversals` run the plans; `Graph` and `AsyncGraph` inherit from them.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

from adjoin.errors import InvalidValue, shown
from adjoin.fields import Predicate
from adjoin.late import later
from adjoin.layouts.bound import BoundLayout
from adjoin.model import Node, Ref
from adjoin.plans.steps import CAP
from adjoin.requests import Plan
from adjoin.verbs import Verbs

if TYPE_CHECKING:
    from adjoin import queries, walk_steps, walks
    from adjoin.plans import frontier, paths, routing
    from adjoin.plans import recommend as recommending
    from adjoin.plans import subtree as subtrees
    from adjoin.plans.frontier import Adjacency, NodeKey, Stride
    from adjoin.plans.paths import PathQuestion
    from adjoin.plans.recommend import Taste
    from adjoin.plans.steps.spending import Budget
    from adjoin.plans.subtree import Subtree
    from adjoin.plans.walk_results import Reachable, Recommendation, WalkPath, WalkResult
    from adjoin.refs import Id
    from adjoin.walk_steps import Traversal
    from adjoin.walks import AsyncWalk, Walk
else:
    frontier = later("adjoin.plans.frontier")
    paths = later("adjoin.plans.paths")
    recommending = later("adjoin.plans.recommend")
    routing = later("adjoin.plans.routing")
    subtrees = later("adjoin.plans.subtree")
    queries = later("adjoin.queries")
    walk_steps = later("adjoin.walk_steps")
    walks = later("adjoin.walks")

T = TypeVar("T")
X = TypeVar("X", bound=Node)


class Asking:
    """What a program asks about several hops, checked. A graph answers it, and a snapshot of a graph too."""

    _layout: BoundLayout

    def _starts(self, x: Any) -> dict[str, Any]:
        """Where a walk begins: a node or several of them, or an id whose class its first step tells."""
        if isinstance(x, list) and all(isinstance(each, Node | Ref) for each in x):
            if not x:
                raise InvalidValue("a walk needs a node to begin with, got an empty list; pass a node or a ref")
            starts = tuple(dict.fromkeys(routing.node_key(self._layout, each) for each in x))
            return {"_starts": starts, "_near": frozenset(model for model, _ in starts)}
        if isinstance(x, Node | Ref):
            return self._starts([x])
        if x is None or isinstance(x, type):
            raise InvalidValue("a walk begins with a node, a ref or an id; pass Model.ref(id)")
        return {"_starts": (), "_near": frozenset(), "_id": x}

    def _between(
        self,
        a: Any,
        b: Any,
        via: Any,
        direction: str,
        max_depth: int | None,
        weight: str | None,
        where: Predicate | None,
        on: str | None,
    ) -> PathQuestion:
        """What is searched: paths from one node to another, or to all if there is no other."""
        if max_depth is not None:
            queries.whole_number("max_depth", max_depth)
        layout = self._layout
        stride, start = routing.stride_along(layout, via, direction, a)
        end = None if b is None else routing.node_key(layout, b, stride.reversed().lanes)
        if end is not None and end != start and end[0] not in stride.far:
            raise InvalidValue(f"none of these edges leads to a {end[0].__name__}; name others in via")
        if weight is not None:
            self._check_weight(stride, weight)
        nodes_where: tuple[Predicate, ...] = ()
        if where is not None and routing.predicate_part(layout, stride, where, on) == "edges":
            stride = replace(stride, edges_where=(where,))
        elif where is not None:
            nodes_where = (where,)
        return paths.PathQuestion(stride, start, end, max_depth, weight, nodes_where)

    def _check_weight(self, stride: Stride, name: str) -> None:
        for lane in stride.lanes:
            routing.about(replace(stride, lanes=(lane,)), [name], "edges")

    def _taste(
        self,
        x: Any,
        model: type[Any],
        to: type[Any] | None,
        score: str,
        weight: str | None,
        direction: str,
        exclude: Iterable[Any],
        limit: int,
        reasons: int,
    ) -> Taste:
        layout = self._layout
        if score not in recommending.SCORES:
            raise InvalidValue(f"score must be one of {', '.join(map(repr, recommending.SCORES))}, got {shown(score)}")
        if score == "jaccard" and weight is not None:
            raise InvalidValue("jaccard counts neighbours and takes no weight; use another score, or leave weight out")
        routing.check_direction(direction)
        start = routing.node_key(layout, x, routing.lanes_of(layout, "recommend", [model], "out"))
        lanes = routing.lanes_from(layout, "recommend", model, direction, start)
        first = frontier.Stride(lanes)
        if weight is not None:
            self._check_weight(first, weight)
        is_within = all(start[0] in lane.near and start[0] in frontier.Stride((lane,)).far for lane in lanes)
        second = first if is_within else first.reversed()
        if not is_within:
            routing.stride_from(layout, second.lanes, [*first.far])
        if score == "jaccard":
            for lane in second.reversed().lanes:
                routing.check_access(layout, lane)
        strides: tuple[Stride, ...] = (first, second)
        wanted = start[0] if to is None else layout.schema.node(to).whole.model
        if wanted is not start[0]:
            if wanted not in first.far:
                raise InvalidValue(
                    f"no {model.__name__} leads to a {wanted.__name__}, so none can be recommended by it"
                )
            strides = (first, second, first)
        if isinstance(exclude, str | bytes | Node) or not isinstance(exclude, Iterable):
            raise InvalidValue(f"exclude takes a list of nodes or refs, got {shown(exclude)}; put it into a list")
        without = frozenset(routing.node_key(layout, each) for each in exclude)
        return recommending.Taste(
            start,
            strides,
            score,
            weight,
            without,
            queries.whole_number("limit", limit),
            queries.whole_number("reasons", reasons),
        )

    def _sides(self, a: Any, b: Any, model: type[Any], direction: str) -> list[tuple[Stride, NodeKey]]:
        lanes = routing.lanes_of(self._layout, "common", [model], "out")
        nodes = [routing.node_key(self._layout, each, lanes) for each in (a, b)]
        return [
            (frontier.Stride(routing.lanes_from(self._layout, "common", model, direction, node)), node)
            for node in nodes
        ]

    def _subtree(
        self, adjacency: Adjacency, x: Any, model: Any, quantity: str | None, direction: str, max_depth: int | None
    ) -> Plan[Subtree]:
        if max_depth is not None:
            queries.whole_number("max_depth", max_depth)
        stride, root = routing.stride_along(self._layout, model, direction, x)
        if quantity is not None:
            self._check_weight(stride, quantity)
        return subtrees.subtree(adjacency, stride, root, quantity, max_depth)


class Traversing(Verbs, Asking):
    """What both graphs share: each call as a plan."""

    _ticks: Callable[[], float] = staticmethod(time.monotonic)
    """The clock by which budgets are measured, in seconds."""

    def _traversal(self, budget: Budget | None, cap: int | None, consistent: bool | None) -> Traversal:
        return walk_steps.Traversal(self._context, self._ticks, budget, cap, self._consistency(consistent))


def given_node(node: Any) -> Any:
    """The node at the end of a path; None stands for no node."""
    if node is None:
        raise InvalidValue("a path needs a node where it ends, got None; pass a node, a ref or an id")
    return node


# --- synchronous -------------------------------------------------------------------------------


class Traversals(Traversing):
    """The methods of `Graph` that follow edges."""

    @abstractmethod
    def _run(self, plan: Plan[T]) -> T: ...

    @overload
    def walk(
        self,
        x: X | Ref[X] | list[X] | list[Ref[X]],
        budget: Budget | None = None,
        *,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> Walk[Any, X]: ...

    @overload
    def walk(
        self,
        x: Id | list[Any],
        budget: Budget | None = None,
        *,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> Walk[Any, Any]: ...

    def walk(
        self,
        x: Any,
        budget: Budget | None = None,
        *,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> Walk[Any, Any]:
        """Returns a walk that begins with a node: `g.walk(ann).out(Knows).out(Knows).distinct().nodes()`.

        `x` is a node or a ref, a list of them, or an id if the first step tells its class. `budget` limits what the
        walk may spend. `cap` is how many edges of one class are read at one node at most; results say which nodes have
        more. With `consistent`, reads of the table are strongly consistent; those of indexes cannot be.
        """
        return walks.Walk(self._traversal(budget, cap, consistent), **self._starts(x))

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
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> WalkPath | None:
        """Returns a shortest path from one node to another, or None: `g.shortest_path(a, b, via=[Knows])`.

        `via` are the classes of edges; `direction` is "out", "into" or "both". A path has at most `max_depth` edges;
        None allows any number. With `weight`, the path with the least sum of this field of its edges is returned. With
        `where`, a predicate holds for all its edges, or for all nodes between its ends. Raises `BudgetExceeded` if the
        budget or the cap did not suffice to know.
        """
        asked = self._between(a, given_node(b), via, direction, max_depth, weight, where, on)
        return self._run(paths.shortest_path(self._traversal(budget, cap, consistent).adjacency(), asked))

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
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> WalkResult[WalkPath]:
        """Returns all shortest paths from one node to another. The arguments are those of `shortest_path`."""
        asked = self._between(a, given_node(b), via, direction, max_depth, weight, where, on)
        return self._run(paths.shortest_paths(self._traversal(budget, cap, consistent).adjacency(), asked))

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
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> WalkPath | None:
        """Returns a path from one node to another, which is true, or None if there is none.

        Raises `BudgetExceeded` if none was found and not everything was read.
        """
        asked = self._between(a, given_node(b), via, direction, max_depth, None, where, on)
        return self._run(paths.any_path(self._traversal(budget, cap, consistent).adjacency(), asked))

    def reachable(
        self,
        x: Any,
        via: Any,
        *,
        direction: str = "out",
        max_depth: int | None = None,
        where: Predicate | None = None,
        on: str | None = None,
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> Reachable:
        """Returns all nodes that can be reached from a node, the nearest first; `.path(node)` is the way to each.

        With `direction="into"`, it is all nodes from which the node can be reached. With `where`, only these edges are
        followed, or only these nodes are reached.
        """
        asked = self._between(x, None, via, direction, max_depth, None, where, on)
        return self._run(paths.reachable(self._traversal(budget, cap, consistent).adjacency(), asked))

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
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> WalkResult[Recommendation[Any]]:
        """Returns the nodes that have most in common with a node and are not connected with it, the best first.

        For edges between two classes, such as Bought from people to products, nodes of the same class are recommended;
        `to=Product` recommends to a person what similar people bought. `score` is "common", "jaccard" or
        "adamic_adar"; `weight` is a field of the edges. `through` has at most `reasons` nodes, those that count most.
        `exclude` are nodes that are not to be recommended.
        """
        taste = self._taste(x, model, to, score, weight, direction, exclude, limit, reasons)
        return self._run(recommending.recommend(self._traversal(budget, cap, consistent).adjacency(), taste))

    def common(
        self,
        a: Any,
        b: Any,
        model: type[Any],
        *,
        direction: str = "out",
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> WalkResult[Any]:
        """Returns the nodes that two nodes are both connected with by edges of a class."""
        sides = self._sides(a, b, model, direction)
        return self._run(recommending.common(self._traversal(budget, cap, consistent).adjacency(), sides))

    def subtree(
        self,
        x: Any,
        model: Any,
        *,
        quantity: str | None = None,
        direction: str = "out",
        max_depth: int | None = None,
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> Subtree:
        """Returns everything below a node, with totals: `g.subtree(bike, Uses, quantity="number").total("cost")`.

        `model` is a class of edges or children, or several. `quantity` is a field of the edges, which is multiplied
        along each path. Raises `CycleFound` if edges lead from a node back to itself.
        """
        adjacency = self._traversal(budget, cap, consistent).adjacency()
        return self._run(self._subtree(adjacency, x, model, quantity, direction, max_depth))


# --- asynchronous ------------------------------------------------------------------------------


class AsyncTraversals(Traversing):
    """The methods of `AsyncGraph` that follow edges."""

    @abstractmethod
    async def _run(self, plan: Plan[T]) -> T: ...

    @overload
    def walk(
        self,
        x: X | Ref[X] | list[X] | list[Ref[X]],
        budget: Budget | None = None,
        *,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> AsyncWalk[Any, X]: ...

    @overload
    def walk(
        self,
        x: Id | list[Any],
        budget: Budget | None = None,
        *,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> AsyncWalk[Any, Any]: ...

    def walk(
        self,
        x: Any,
        budget: Budget | None = None,
        *,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> AsyncWalk[Any, Any]:
        """Returns a walk that begins with a node: `await g.walk(ann).out(Knows).out(Knows).distinct().nodes()`.

        `x` is a node or a ref, a list of them, or an id if the first step tells its class. `budget` limits what the
        walk may spend. `cap` is how many edges of one class are read at one node at most; results say which nodes have
        more. With `consistent`, reads of the table are strongly consistent; those of indexes cannot be.
        """
        return walks.AsyncWalk(self._traversal(budget, cap, consistent), **self._starts(x))

    async def shortest_path(
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
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> WalkPath | None:
        """Returns a shortest path from one node to another, or None: `g.shortest_path(a, b, via=[Knows])`.

        `via` are the classes of edges; `direction` is "out", "into" or "both". A path has at most `max_depth` edges;
        None allows any number. With `weight`, the path with the least sum of this field of its edges is returned. With
        `where`, a predicate holds for all its edges, or for all nodes between its ends. Raises `BudgetExceeded` if the
        budget or the cap did not suffice to know.
        """
        asked = self._between(a, given_node(b), via, direction, max_depth, weight, where, on)
        return await self._run(paths.shortest_path(self._traversal(budget, cap, consistent).adjacency(), asked))

    async def shortest_paths(
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
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> WalkResult[WalkPath]:
        """Returns all shortest paths from one node to another. The arguments are those of `shortest_path`."""
        asked = self._between(a, given_node(b), via, direction, max_depth, weight, where, on)
        return await self._run(paths.shortest_paths(self._traversal(budget, cap, consistent).adjacency(), asked))

    async def can_reach(
        self,
        a: Any,
        b: Any,
        via: Any,
        *,
        direction: str = "out",
        max_depth: int | None = None,
        where: Predicate | None = None,
        on: str | None = None,
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> WalkPath | None:
        """Returns a path from one node to another, which is true, or None if there is none.

        Raises `BudgetExceeded` if none was found and not everything was read.
        """
        asked = self._between(a, given_node(b), via, direction, max_depth, None, where, on)
        return await self._run(paths.any_path(self._traversal(budget, cap, consistent).adjacency(), asked))

    async def reachable(
        self,
        x: Any,
        via: Any,
        *,
        direction: str = "out",
        max_depth: int | None = None,
        where: Predicate | None = None,
        on: str | None = None,
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> Reachable:
        """Returns all nodes that can be reached from a node, the nearest first; `.path(node)` is the way to each.

        With `direction="into"`, it is all nodes from which the node can be reached. With `where`, only these edges are
        followed, or only these nodes are reached.
        """
        asked = self._between(x, None, via, direction, max_depth, None, where, on)
        return await self._run(paths.reachable(self._traversal(budget, cap, consistent).adjacency(), asked))

    async def recommend(
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
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> WalkResult[Recommendation[Any]]:
        """Returns the nodes that have most in common with a node and are not connected with it, the best first.

        For edges between two classes, such as Bought from people to products, nodes of the same class are recommended;
        `to=Product` recommends to a person what similar people bought. `score` is "common", "jaccard" or
        "adamic_adar"; `weight` is a field of the edges. `through` has at most `reasons` nodes, those that count most.
        `exclude` are nodes that are not to be recommended.
        """
        taste = self._taste(x, model, to, score, weight, direction, exclude, limit, reasons)
        return await self._run(recommending.recommend(self._traversal(budget, cap, consistent).adjacency(), taste))

    async def common(
        self,
        a: Any,
        b: Any,
        model: type[Any],
        *,
        direction: str = "out",
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> WalkResult[Any]:
        """Returns the nodes that two nodes are both connected with by edges of a class."""
        sides = self._sides(a, b, model, direction)
        return await self._run(recommending.common(self._traversal(budget, cap, consistent).adjacency(), sides))

    async def subtree(
        self,
        x: Any,
        model: Any,
        *,
        quantity: str | None = None,
        direction: str = "out",
        max_depth: int | None = None,
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> Subtree:
        """Returns everything below a node, with totals: `g.subtree(bike, Uses, quantity="number").total("cost")`.

        `model` is a class of edges or children, or several. `quantity` is a field of the edges, which is multiplied
        along each path. Raises `CycleFound` if edges lead from a node back to itself.
        """
        adjacency = self._traversal(budget, cap, consistent).adjacency()
        return await self._run(self._subtree(adjacency, x, model, quantity, direction, max_depth))
