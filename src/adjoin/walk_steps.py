"""The steps of a walk, as a program adds them one by one, and the plans of its results.

Every method checks its arguments, before anything is read, and returns another walk. `adjoin.walks` has the synchronous
and the asynchronous walk, which run the plans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar

from adjoin.cost import WalkCost
from adjoin.dataclass import dataclass
from adjoin.errors import InvalidCursor, InvalidValue, shown
from adjoin.fields import FieldReference, Predicate, field_name
from adjoin.layouts.bound import BoundLayout
from adjoin.model import Node, Ref
from adjoin.notebooks import completeness_notes, table_html
from adjoin.plans.frontier import About, Adjacency, NodeKey, Order, Stride, ref_of
from adjoin.plans.read import decode_cursor, encode_cursor
from adjoin.plans.routing import (
    about,
    check_direction,
    lanes_of,
    node_key,
    predicate_part,
    queries_of,
    reached_by,
    stride_from,
)
from adjoin.plans.steps import CAP
from adjoin.plans.steps.spending import Budget, Spending
from adjoin.plans.walk import (
    MAX_HOPS,
    Distinct,
    Filter,
    Repeat,
    Route,
    Walking,
    WalkStep,
    What,
    average,
    extreme,
    total,
)
from adjoin.plans.walk_results import Completeness, GroupCount, PartialResult, WalkResult, complete
from adjoin.queries import Context, Page, whole_number
from adjoin.requests import Plan

T = TypeVar("T")


@dataclass(frozen=True)
class Traversal:
    """How a traversal reads: its graph, its budget, the cap, and whether reads of the table are strongly consistent."""

    context: Context
    clock: Callable[[], float]
    budget: Budget | None = None
    cap: int | None = CAP
    consistent: bool = False

    def __post_init__(self) -> None:
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise InvalidValue(f"budget must be a Budget, got {shown(self.budget)}; pass Budget(requests=…)")
        if self.cap is not None:
            whole_number("cap", self.cap)

    def adjacency(self) -> Adjacency:
        """Begins to spend the budget."""
        return Adjacency(self.context.layout, Spending(self.budget, self.clock), self.consistent, self.cap)


@dataclass(frozen=True, slots=True)
class WalkPage(PartialResult, Page[T]):
    """One page of the results of a walk. `partial`, `exceeded` and `capped` are the same as of a `WalkResult`."""

    completeness: Completeness = Completeness()

    def _notes(self) -> list[str]:
        return [*completeness_notes(self.exceeded, self.capped), *Page._notes(self)]


# --- what both kinds of walks share ------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Steps:
    """The steps of a walk, and the plans of its results."""

    _traversal: Traversal
    _starts: tuple[NodeKey, ...]
    _near: frozenset[type[Any]]
    """The classes of nodes that the walk can have reached."""
    _steps: tuple[WalkStep, ...] = ()
    _most: int | None = None
    _id: Any = None
    """The start, if it is an id whose class the first step has to tell."""
    _began: frozenset[type[Any]] = frozenset()
    """The classes of nodes from which the last step begins."""

    @property
    def _layout(self) -> BoundLayout:
        return self._traversal.context.layout

    def __repr__(self) -> str:
        hops = sum(isinstance(step, Stride | Repeat) for step in self._steps)
        return f"<{type(self).__name__} of {hops} steps; ask for .nodes(), .refs(), .count() …>"

    def _repr_html_(self) -> str:
        return self._html(type(self).__name__, self.cost)

    def _html(self, what: str, cost: WalkCost) -> str:
        """What a notebook shows of the walk, or of results that it has not read: its steps, and what they cost."""
        starts = ", ".join(map(str, map(ref_of, self._starts[:3]))) or shown(self._id)
        more = f" and {len(self._starts) - 3} others" if len(self._starts) > 3 else ""
        rows = [(number, _said(step)) for number, step in enumerate(self._steps, 1)]
        notes = ["It has read nothing yet."]
        if any(cost.queries):
            notes.append(
                f"If each node has 10 edges, it makes at most {cost.requests()} requests in {cost.rounds} rounds, and "
                f"takes about {cost.rcu():g} RCU."
            )
        return table_html(f"{what} from {starts}{more}", ("step", "what"), rows, notes)

    def __bool__(self) -> bool:
        raise InvalidValue("a walk has no truth value, because it has not read anything; use count() or refs()")

    # --- steps ---------------------------------------------------------------------------------

    def out(self, *models: type[Any]) -> Self:
        """Returns the walk with one more step, along the edges of these classes that leave its nodes.

        A class of children leads from a node to its children.
        """
        return self._along("out", models)

    def into(self, *models: type[Any]) -> Self:
        """Returns the walk with one more step, back along the edges of these classes that arrive at its nodes.

        A class of children leads from a child to its parent.
        """
        return self._along("into", models)

    def both(self, *models: type[Any]) -> Self:
        """Returns the walk with one more step, along the edges of these classes in both directions."""
        return self._along("both", models)

    def children(self, *models: type[Node]) -> Self:
        """Returns the walk with one more step, to the children of these classes."""
        return self._along("out", models, "children")

    def repeat(
        self,
        *models: type[Any],
        min: int = 1,
        max: int,
        until: Predicate | Node | Ref[Any] | None = None,
        direction: str = "out",
        where: Predicate | None = None,
        on: str | None = None,
    ) -> Self:
        """Returns the walk with a step that is taken `min` to `max` times; the paths of each of these lengths count.

        With `until`, a path ends at the first node for which this predicate holds, or at this node, and only such
        paths count. With `where`, only these edges are followed, or only edges to these nodes; `on` says which, if the
        field does not tell.
        """
        check_direction(direction)
        if type(min) is not int or min != 0:
            whole_number("min", min)
        if whole_number("max", max) < min:
            raise InvalidValue(f"max must be at least min, got {min} and {max}")
        walk = self._along(direction, models, "repeat")
        stride = walk._steps[-1]
        assert isinstance(stride, Stride)
        if max > 1 and all(lane.near.isdisjoint(stride.far) for lane in stride.lanes):
            names = ", ".join(lane.kind.name for lane in stride.lanes)
            raise InvalidValue(f"{names} cannot be repeated, because no node where they end is one where they begin")
        if where is not None:
            stride = self._filtered(stride, where, on)
        end: Predicate | NodeKey | None = None
        if isinstance(until, Node | Ref):
            end = node_key(self._layout, until)
        elif until is not None:
            predicate_part(self._layout, stride, until, "nodes")
            end = until
        reached = walk._near if min else walk._near | walk._began
        return replace(walk, _steps=(*walk._steps[:-1], Repeat(stride, min, max, end)), _near=reached)._checked()

    def where(self, predicate: Predicate, *, on: str | None = None) -> Self:
        """Returns the walk with only those paths for whose last edge or last node the predicate holds.

        The fields tell whether edges or nodes are meant; if both have them, `on="edges"` or `on="nodes"` does.
        """
        step, stride = self._last("where")
        part = predicate_part(self._layout, stride, predicate, on)
        if isinstance(step, Stride) and step.limit is None and self._steps[-1] is step:
            return self._with_last(self._filtered(step, predicate, part))
        return replace(self, _steps=(*self._steps, Filter(predicate, part)))

    def distinct(self) -> Self:
        """Returns the walk with only the first path to each node, so that results are different nodes."""
        return replace(self, _steps=(*self._steps, Distinct()))

    def order_by(self, field: str | FieldReference[Any], *, reverse: bool = False, on: str | None = None) -> Self:
        """Returns the walk with the last step in the order of a field of its edges or of the nodes that it reaches.

        `limit_per_node` takes the first edges in this order. Those without a value come last.
        """
        if not isinstance(reverse, bool):
            raise InvalidValue(f"reverse must be True or False, got {shown(reverse)}")
        field = field_name(field)
        _, stride = self._last("order_by", is_direct=True)
        return self._with_stride(replace(stride, order=Order(field, about(stride, [field], on), reverse)))

    def limit_per_node(self, most: int) -> Self:
        """Returns the walk with at most `most` edges of each node in its last step: the first in its order."""
        _, stride = self._last("limit_per_node", is_direct=True)
        return self._with_stride(replace(stride, limit=whole_number("limit_per_node", most)))

    def limit(self, most: int) -> Self:
        """Returns the walk with at most `most` results."""
        return replace(self, _most=whole_number("limit", most))

    def _along(self, direction: str, models: Sequence[type[Any]], verb: str | None = None) -> Self:
        if verb == "children" and any(not isinstance(each, type) or not issubclass(each, Node) for each in models):
            raise InvalidValue(f"children takes classes of children, got {shown(models)}; use out for edges")
        lanes = lanes_of(self._layout, verb or direction, models, direction)
        walk = self
        if self._id is not None:
            start = node_key(self._layout, self._id, lanes)
            walk = replace(self, _starts=(start,), _near=frozenset([start[0]]), _id=None)
        stride = stride_from(self._layout, lanes, reached_by(lanes, walk._near) if verb == "repeat" else walk._near)
        return replace(walk, _steps=(*walk._steps, stride), _began=walk._near, _near=frozenset(stride.far))._checked()

    def _checked(self) -> Self:
        hops = sum(step.most if isinstance(step, Repeat) else isinstance(step, Stride) for step in self._steps)
        if hops > MAX_HOPS:
            raise InvalidValue(f"a walk takes at most {MAX_HOPS} steps along edges, got {hops}; use reachable instead")
        return self

    def _filtered(self, stride: Stride, predicate: Predicate, on: str | None) -> Stride:
        if predicate_part(self._layout, stride, predicate, on) == "edges":
            return replace(stride, edges_where=(*stride.edges_where, predicate))
        return replace(stride, nodes_where=(*stride.nodes_where, predicate))

    def _last(self, verb: str, *, is_direct: bool = False) -> tuple[Stride | Repeat, Stride]:
        """The last step along edges, and its stride."""
        steps = self._steps[-1:] if is_direct else reversed(self._steps)
        for step in steps:
            if isinstance(step, Stride | Repeat):
                return step, step if isinstance(step, Stride) else step.stride
        where = "directly after" if is_direct else "after"
        raise InvalidValue(f"{verb} is about a step along edges, so it comes {where} one, such as out")

    def _with_last(self, step: WalkStep) -> Self:
        return replace(self, _steps=(*self._steps[:-1], step))

    def _with_stride(self, stride: Stride) -> Self:
        last = self._steps[-1]
        return self._with_last(replace(last, stride=stride) if isinstance(last, Repeat) else stride)

    # --- plans ---------------------------------------------------------------------------------

    @property
    def _route(self) -> Route:
        if self._id is not None:
            raise InvalidValue(
                f"{shown(self._id)} does not say of which class the node is; begin with a node or a ref, or take a step"
            )
        return Route(self._starts, self._steps, self._most)

    def _walking(self) -> Walking:
        return Walking(self._traversal.adjacency(), self._route)

    def _all_plan(self, what: What) -> Plan[WalkResult[Any]]:
        return self._walking().all(what)

    def _page_plan(self, what: What, limit: int | None, after: str | None) -> Plan[WalkPage[Any]]:
        walking, most, context = self._walking(), self._most, self._traversal.context
        given, last = 0, None
        if after is not None:
            start, given = decode_cursor(after, self._identity(what), context.secret)
            last = start.get("last", {}).get("S")
            if not last or not given:
                raise InvalidCursor("the page token was not made by adjoin; start again from the first page")
        if limit is None and after is None:
            found = yield from walking.all(what)
            return WalkPage(list(found), None, found.completeness)
        left = None if most is None else most - given
        wanted = left if limit is None else min(whole_number("page limit", limit), left or limit)
        results, given_then, end = yield from walking.page(what, wanted, given, last)
        completeness = Completeness.of(walking.adjacency)
        token = None
        # The next page would stop where this one did, if the budget is too small for it.
        if given_then is not None and given_then != most and completeness.exceeded is None:
            token = encode_cursor({"last": {"S": end}}, given_then, self._identity(what), context.secret)
        return WalkPage(results, token, completeness)

    def _identity(self, what: What) -> bytes:
        layout = self._layout
        kinds = layout.schema.nodes
        route = self._route
        texts = [repr(layout.node_key(kinds[model], id)) for model, id in route.starts]
        return route.identity([layout.table, *texts, str(self._traversal.cap)], what)

    def _group_count_plan(self) -> Plan[GroupCount[Any]]:
        return self._walking().group_count()

    def _count_plan(self) -> Plan[int]:
        return self._walking().count()

    def _number_plan(self, name: str, field: str, on: str | None) -> Plan[Any]:
        part = self._part(name, field, on)
        walking = self._walking()
        values = yield from walking.values(field, part)
        match name:
            case "sum":
                found = total(values)
            case "avg":
                found = average(values)
            case _:
                found = extreme(values, least=name == "min")
        return complete(walking.adjacency, f"the {name}", found)

    def _top_plan(self, field: str, number: int, on: str | None) -> Plan[WalkResult[Any]]:
        part = self._part("top", field, on)
        whole_number("number", number)
        walking = self._walking()
        found = yield from walking.top(field, part, number)
        return WalkResult(found, Completeness.of(walking.adjacency))

    def _part(self, verb: str, field: str, on: str | None) -> About:
        if self._most is not None:
            raise InvalidValue(f"{verb} is about all paths, and this walk has a limit; remove the limit")
        _, stride = self._last(verb)
        return about(stride, [field], on)

    @property
    def cost(self) -> WalkCost:
        """What the walk costs, by how many edges nodes have."""
        layout = self._layout
        queries: list[int] = []
        reads: list[bool] = []
        for step in self._steps:
            if isinstance(step, Stride | Repeat):
                stride, times = (step.stride, step.most) if isinstance(step, Repeat) else (step, 1)
                is_sorted = stride.order is not None and stride.order.part == "nodes"
                is_read = bool(stride.nodes_where) or is_sorted
                is_read = is_read or (isinstance(step, Repeat) and isinstance(step.until, Predicate))
                queries += [queries_of(layout, stride)] * times
                reads += [is_read] * times
            elif reads and isinstance(step, Filter) and step.part == "nodes":
                reads[-1] = True
        budget = self._traversal.budget or Budget()
        cap = self._traversal.cap
        return WalkCost(len(self._starts), tuple(queries), tuple(reads), budget.requests, budget.rcu, cap)


def _said(step: WalkStep) -> str:
    """A step in a few words."""
    match step:
        case Repeat():
            return f"{_said(step.stride)}, {step.least} to {step.most} times"
        case Filter():
            return f"only where {step.predicate}"
        case Distinct():
            return "each node once"
    ways = " or ".join(f"{lane.direction} {lane.kind.name}" for lane in step.lanes)
    conditions = [str(predicate) for predicate in (*step.edges_where, *step.nodes_where)]
    return f"{ways}, only where {' and '.join(conditions)}" if conditions else ways
