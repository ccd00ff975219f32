"""Everything below a node, with quantities that are multiplied along the edges: a bill of materials.

All levels are read first, the edges of each node once. If edges lead from a node back to itself, quantities would have
no end, so the cycle is reported. Then quantities are passed on level by level, so that a part which is used in several
places has the sum over all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.errors import BudgetExceeded, CycleFound, InvalidValue, UnknownField, shown
from adjoin.layouts.indexed_fields import is_rehearsed
from adjoin.model import Ref
from adjoin.notebooks import completeness_notes, table_html, text_of
from adjoin.plans.frontier import Adjacency, NodeKey, Stride, ref_of
from adjoin.plans.walk_results import Completeness, PartialResult
from adjoin.requests import Plan
from adjoin.values import exact_product, exact_total


@dataclass(frozen=True)
class Subtree(PartialResult):
    """A node with everything below it."""

    root: Any
    """The node, or None if it does not exist."""
    found: dict[Ref[Any], Any]
    """The nodes below it by their refs, the nearest first."""
    edges: tuple[Any, ...]
    quantities: dict[Ref[Any], Any]
    """How many of each node the root needs: the quantities of the edges, multiplied along each path and added up."""
    depths: dict[Ref[Any], int]
    """How many edges the shortest path to each node has."""
    missing: tuple[Ref[Any], ...]
    """The nodes below it that do not exist; they are no part of totals."""
    completeness: Completeness

    def _repr_html_(self) -> str:
        rows = [(self.depths[ref], self.quantities[ref], node) for ref, node in self.found.items()]
        notes = completeness_notes(self.exceeded, self.capped)
        return table_html(f"Subtree of {text_of(self.root)}", ("depth", "quantity", "node"), rows, notes)

    @property
    def nodes(self) -> list[Any]:
        """The nodes below the root, each once, the nearest first."""
        return list(self.found.values())

    def count(self, *, shared: str = "each") -> Any:
        """Returns how many nodes are below the root: each as often as it is needed; with `shared="once"`, each once."""
        return self._added("the count", [(1, ref) for ref in self.found], shared)

    def total(self, field: str, *, shared: str = "each", root: bool = False) -> Any:
        """Returns the sum of a field of the nodes below the root, and with `root` of the root itself.

        Each node counts as often as it is needed; with `shared="once"`, each counts once. Values of None count nothing.
        """
        if not isinstance(field, str):
            raise InvalidValue(f"a field is given by its name, got {shown(field)}")
        everything = [*self.nodes, *([] if self.root is None else [self.root])]
        if everything and not any(field in type(node).model_fields for node in everything):
            names = " or ".join(dict.fromkeys(type(node).__name__ for node in everything))
            raise UnknownField(f"{names} has no field {shown(field)}; name one that it has")
        values = [(value, ref) for ref, node in self.found.items() if (value := getattr(node, field, None)) is not None]
        own = getattr(self.root, field, None) if root else None
        found = self._added(f"the total of {field}", values, shared)
        return found if own is None else exact_total((found, exact_product(own, 1)))

    def _added(self, what: str, values: Sequence[tuple[Any, Ref[Any]]], shared: str) -> Any:
        if shared not in ("each", "once"):
            raise InvalidValue(f'shared must be "each" or "once", got {shown(shared)}')
        quantities = self.quantities
        parts = (exact_product(value, quantities[ref] if shared == "each" else 1) for value, ref in values)
        found = exact_total(parts)
        if self.partial or self.capped:
            raise BudgetExceeded(
                f"{what} is not known, because not everything below the node was read; allow more, or a greater cap",
                self.exceeded or "cap",
                found,
            )
        return found


def subtree(
    adjacency: Adjacency, stride: Stride, root: NodeKey, quantity: str | None, most: int | None
) -> Plan[Subtree]:
    """Everything below a node, down to so many levels, or to the leaves."""
    depths: dict[NodeKey, int] = {root: 0}
    frontier = [root]
    depth = 0
    while frontier and (most is None or depth < most) and not adjacency.spending.exceeded:
        yield from adjacency.expand(stride, frontier)
        depth += 1
        found = dict.fromkeys(far for near in frontier for _, far in adjacency.arcs(stride, near))
        frontier = [far for far in found if far not in depths]
        depths |= dict.fromkeys(frontier, depth)
    # The edges of the last level were not read, and they are not part of the subtree.
    expanded = [node for node, at in depths.items() if most is None or at < most]
    if not is_rehearsed():
        _check_cycles(adjacency, stride, expanded)
    yield from adjacency.read(depths)
    quantities = _quantities(adjacency, stride, root, quantity, most)
    below = [node for node in depths if node != root]
    existing = [node for node in below if adjacency.nodes.get(node) is not None]
    return Subtree(
        adjacency.nodes.get(root),
        {ref_of(node): adjacency.nodes[node] for node in existing},
        tuple(_edge(adjacency, edge, far) for node in expanded for edge, far in adjacency.arcs(stride, node)),
        {ref_of(node): quantities.get(node, 0) for node in below},
        {ref_of(node): depths[node] for node in below},
        tuple(ref_of(node) for node in below if node not in existing and not adjacency.spending.exceeded),
        Completeness.of(adjacency),
    )


def _edge(adjacency: Adjacency, edge: Any, far: NodeKey) -> Any:
    return adjacency.nodes.get(far) if edge is None else edge


def _check_cycles(adjacency: Adjacency, stride: Stride, nodes: Sequence[NodeKey]) -> None:
    """Raises if edges lead from a node back to itself, and names the nodes of such a cycle."""
    below = {node: list(dict.fromkeys(far for _, far in adjacency.arcs(stride, node))) for node in nodes}
    done: set[NodeKey] = set()
    for start in nodes:
        # The search goes down with a stack of its own, because Python's recursion ends at a thousand levels.
        way: dict[NodeKey, int] = {}
        waiting = [(start, iter(below[start]))] if start not in done else []
        way |= {node: place for place, (node, _) in enumerate(waiting)}
        while waiting:
            node, rest = waiting[-1]
            far = next((far for far in rest if far not in done and far in below), None)
            if far is None:
                waiting.pop()
                del way[node]
                done.add(node)
            elif far in way:
                refs = [ref_of(each) for each, _ in waiting[way[far] :]]
                names = " -> ".join(map(str, (*refs, refs[0])))
                raise CycleFound(
                    f"the edges lead in a cycle: {names}; remove one of them, or use reachable, which allows cycles",
                    refs,
                )
            else:
                way[far] = len(waiting)
                waiting.append((far, iter(below[far])))


def _quantities(
    adjacency: Adjacency, stride: Stride, root: NodeKey, quantity: str | None, most: int | None
) -> dict[NodeKey, Any]:
    totals: dict[NodeKey, Any] = {}
    level: dict[NodeKey, Any] = {root: 1}
    depth = 0
    while level and (most is None or depth < most):
        further: dict[NodeKey, Any] = {}
        for near, times in level.items():
            for edge, far in adjacency.arcs(stride, near):
                further[far] = exact_total((further.get(far, 0), exact_product(_quantity(edge, quantity), times)))
        for node, times in further.items():
            totals[node] = exact_total((totals.get(node, 0), times))
        # A rehearsal finds the same sample again at every level.
        level = {} if is_rehearsed() else further
        depth += 1
    return totals


def _quantity(edge: Any, name: str | None) -> Any:
    if name is None or (edge is None and is_rehearsed()):
        return 1
    found = getattr(edge, name, None)
    if found is None:
        raise InvalidValue(
            f"{type(edge).__name__} from {shown(edge.source)} to {shown(edge.target)} has no {name} to multiply by; "
            f"give it one"
        )
    return found
