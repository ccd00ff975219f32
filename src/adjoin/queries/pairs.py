"""Edges with the nodes at one of their ends, fetched with batch gets; an edge without its node is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.read import Found, far_nodes
from adjoin.schema import EdgeType, NodeType

Step: TypeAlias = Callable[[Any, int | None], Plan[Found]]
"""One stretch of an iteration: from a place on, so many at most."""


def paired(
    step: Step, layout: BoundLayout, kind: EdgeType, far: str, consistent: bool, start: Any, left: int | None
) -> Plan[Found]:
    """A stretch of edges, each with the node at its end `far`."""
    node_kind: NodeType = getattr(kind, far)
    pairs: list[tuple[Any, Any]] = []
    ask = left
    while True:
        found = yield from step(start, ask)
        ids = [getattr(edge, far) for edge in found.entities]
        nodes = yield from far_nodes(layout, node_kind, ids, consistent)
        places = [place for place, id in enumerate(ids) if id in nodes]
        missing = None if left is None else left - len(pairs)
        pairs += [(found.entities[place], nodes[ids[place]]) for place in places[:missing]]
        if missing is not None and len(places) > missing:
            # Where to go on behind the last pair is known from the page that ends with its edge.
            found = yield from step(start, places[missing - 1] + 1)
        start = found.last
        if start is None or left is None or len(pairs) == left:
            return Found(pairs, start)
        # Edges without a node were met; as with a filter, the next request looks at more.
        ask = max(4 * (ask or left), 100)


def count_pairs(step: Step, most: int | None) -> Plan[int]:
    counted = 0
    start: Any = None
    while True:
        found = yield from step(start, most and most - counted)
        counted += len(found.entities)
        start = found.last
        if start is None or counted == most:
            return counted
