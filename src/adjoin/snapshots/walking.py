"""Walks over a snapshot: the walk of the live graph, with another executor."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import TYPE_CHECKING, Any, Self, cast

from adjoin.dataclass import dataclass
from adjoin.entity_types import EntityType
from adjoin.fields import FieldReference, Predicate, field_name
from adjoin.plans.frontier import About, Adjacency, Stride
from adjoin.plans.steps.predicates import compared_fields
from adjoin.plans.walk import Distinct, What, average, extreme, total
from adjoin.plans.walk_results import Completeness, GroupCount, WalkResult
from adjoin.requests import Plan
from adjoin.snapshots.answering import HeldAdjacency, HeldGraph
from adjoin.snapshots.levels import HeldLevels, Unanswered, exact_sum
from adjoin.walk_steps import Traversal
from adjoin.walks import Walk

COMPLETE = Completeness()
"""A snapshot reads everything."""


@dataclass(frozen=True, kw_only=True)
class HeldTraversal(Traversal):
    """How a traversal reads from a snapshot."""

    graph: HeldGraph
    levels: HeldLevels

    def adjacency(self) -> Adjacency:
        return HeldAdjacency(self.graph)


def kinds_of(stride: Stride, part: About) -> list[EntityType]:
    """The classes of the edges of a stride, or of the nodes to which it leads."""
    if part == "edges":
        return [lane.kind for lane in stride.lanes if not lane.is_up]
    return list(stride.far.values())


class HeldWalk(Walk[Any, Any]):
    """Paths from one or several nodes of a snapshot. Its steps and results are those of `Walk`.

    Nodes and edges have the fields that the snapshot holds. Steps and results that need others are refused by name.
    """

    # Its nodes and edges are no instances of the classes, so it has no types of them.
    if TYPE_CHECKING:

        def out(self, *models: type[Any]) -> Self: ...

        def into(self, *models: type[Any]) -> Self: ...

        def both(self, *models: type[Any]) -> Self: ...

        def children(self, *models: type[Any]) -> Self: ...

    @property
    def _held(self) -> HeldTraversal:
        assert isinstance(self._traversal, HeldTraversal)
        return self._traversal

    # --- what is asked is held -----------------------------------------------------------------

    def _along(self, direction: str, models: Any, verb: str | None = None) -> Self:
        walk = super()._along(direction, models, verb)
        stride = walk._steps[-1]
        assert isinstance(stride, Stride)
        # Refused here, where the step is written, and not when a result is asked for.
        for lane in stride.lanes:
            self._held.graph.relation(lane.kind)
        return walk

    def _check(self, stride: Stride, names: Iterable[str], part: About) -> None:
        self._held.graph.check_fields(kinds_of(stride, part), names)

    def _filtered(self, stride: Stride, predicate: Predicate, on: str | None) -> Stride:
        filtered = super()._filtered(stride, predicate, on)
        part: About = "edges" if len(filtered.edges_where) > len(stride.edges_where) else "nodes"
        self._check(stride, compared_fields(predicate), part)
        return filtered

    def where(self, predicate: Predicate, *, on: str | None = None) -> Self:
        walk = super().where(predicate, on=on)
        last = walk._steps[-1]
        part = getattr(last, "part", None)
        if part is not None:
            self._check(self._last("where")[1], compared_fields(predicate), part)
        return walk

    def order_by(self, field: str | FieldReference[Any], *, reverse: bool = False, on: str | None = None) -> Self:
        field = field_name(field)
        walk = super().order_by(field, reverse=reverse, on=on)
        _, stride = walk._last("order_by")
        assert stride.order is not None
        self._check(stride, [field], stride.order.part)
        return walk

    def repeat(self, *models: type[Any], until: Any = None, **options: Any) -> Self:
        walk = cast(Self, super().repeat(*models, until=until, **options))
        if isinstance(until, Predicate):
            self._check(walk._last("repeat")[1], compared_fields(until), "nodes")
        return walk

    def _part(self, verb: str, field: str, on: str | None) -> About:
        part = super()._part(verb, field, on)
        self._check(self._last(verb)[1], [field], part)
        return part

    # --- results -------------------------------------------------------------------------------

    def _all_plan(self, what: What) -> Plan[WalkResult[Any]]:
        found = self._refs() if what == "refs" else None
        if found is not None:
            return found
        return (yield from super()._all_plan(what))

    def _refs(self) -> WalkResult[Any] | None:
        """All refs, from arrays; None if the walk has steps that need more."""
        route, levels = self._route, self._held.levels
        if not levels.can(route):
            return None
        ref = self._held.graph.nodes.ref
        try:
            # After `distinct`, each node comes once, so the edges that led to it need not be looked at again.
            if isinstance(route.steps[-1], Distinct):
                return WalkResult(map(ref, levels.frontier(route).nodes.tolist()), COMPLETE)
            visits = levels.visits(route)
        except Unanswered:
            return None
        if visits is None:
            return None
        pairs = zip(visits.nodes.tolist(), visits.counts.tolist(), strict=True)
        return WalkResult((each for node, count in pairs for each in repeat(ref(node), count)), COMPLETE)

    def _count_plan(self) -> Plan[int]:
        route, levels = self._route, self._held.levels
        if levels.can(route):
            try:
                return levels.frontier(route).count
            except Unanswered:
                pass
        return (yield from super()._count_plan())

    def _group_count_plan(self) -> Plan[GroupCount[Any]]:
        route, levels = self._route, self._held.levels
        if levels.can(route):
            try:
                level = levels.frontier(route)
                pairs = zip(level.nodes.tolist(), level.counts.tolist(), strict=True)
                ref = self._held.graph.nodes.ref
                return GroupCount(((ref(node), count) for node, count in pairs), COMPLETE)
            except Unanswered:
                pass
        return (yield from super()._group_count_plan())

    def _number_plan(self, name: str, field: str, on: str | None) -> Plan[Any]:
        part = self._part(name, field, on)
        route, levels = self._route, self._held.levels
        values: list[tuple[Any, int]] | None = None
        if levels.can(route):
            try:
                if part == "nodes":
                    values = list(levels.node_values(levels.frontier(route), field))
                elif (visits := levels.visits(route)) is not None:
                    columns = [relation.columns.get(field) for relation in visits.relations]
                    if name == "sum" and len(columns) == 1 and columns[0] is not None:
                        found = exact_sum(columns[0], visits.edges, visits.counts)
                        if found is not None:
                            return found
                    values = list(levels.edge_values(visits, field))
            except Unanswered:
                pass
        if values is None:
            return (yield from super()._number_plan(name, field, on))
        if name == "sum":
            return total(values)
        return average(values) if name == "avg" else extreme(values, least=name == "min")
