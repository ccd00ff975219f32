"""Recommendations: nodes that a node is not connected with, but has much in common with; and what two nodes share.

How similar another node is to a given one is decided by the neighbours that they have in common:

- common: their number; with a weight, the sum of the products of both weights;
- Jaccard: their number divided by that of the neighbours of either;
- Adamic and Adar: the sum of 1 / log d, where d is the number of neighbours of the common neighbour, so that one who
  knows everybody counts little; with a weight, of the product of both weights times that.

Similar nodes are recommended themselves, after two hops. After three hops, what similar nodes are connected with is
recommended, and each of these nodes counts by its similarity. Parallel edges join two nodes once; their weights add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from math import log
from typing import Any, Literal, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidValue, shown
from adjoin.layouts.indexed_fields import is_rehearsed
from adjoin.plans.frontier import Adjacency, NodeKey, Stride, nodes_in
from adjoin.plans.walk_results import Completeness, Recommendation, WalkResult
from adjoin.requests import Plan
from adjoin.values import exact_product, exact_total

Score: TypeAlias = Literal["common", "jaccard", "adamic_adar"]
SCORES: tuple[Score, ...] = ("common", "jaccard", "adamic_adar")

_Through: TypeAlias = dict[NodeKey, dict[NodeKey, Any]]
"""What each node through which others were found contributes to them, by the node that was found."""


@dataclass(frozen=True)
class Taste:
    """Which nodes are recommended for which node, and by which score."""

    start: NodeKey
    strides: tuple[Stride, ...]
    """Two to similar nodes; a third one to what they are connected with."""
    score: Score = "common"
    weight: str | None = None
    without: frozenset[NodeKey] = frozenset()
    limit: int = 10
    reasons: int = 10
    """How many of the nodes through which a node was found are read."""


def recommend(adjacency: Adjacency, taste: Taste) -> Plan[WalkResult[Recommendation[Any]]]:
    """The best recommendations, the best first."""
    first, second, *third = taste.strides
    adjacency.reads_edges = taste.weight is not None
    yield from adjacency.expand(first, [taste.start])
    own = _joined(adjacency, first, taste.start, taste.weight)
    own.pop(taste.start, None)
    yield from adjacency.expand(second, own)
    through = _common(adjacency, taste, own)
    scores = yield from _similar(adjacency, taste, own, through)
    if third:
        scores.pop(taste.start, None)
        yield from adjacency.expand(third[0], scores)
        through = {}
        for similar, score in scores.items():
            for node, weight in _joined(adjacency, third[0], similar, taste.weight).items():
                through.setdefault(node, {})[similar] = exact_product(score, weight)
        scores = {node: exact_total(parts.values()) for node, parts in through.items()}
    refused = {taste.start, *own, *taste.without}
    best = sorted((node for node in scores if node not in refused), key=lambda node: scores[node], reverse=True)
    return (yield from _read(adjacency, taste, best, scores, through))


def _joined(adjacency: Adjacency, stride: Stride, node: NodeKey, weight: str | None) -> dict[NodeKey, Any]:
    """The neighbours of a node, each with the sum of the weights of the edges between them; 1 without weights."""
    found: dict[NodeKey, Any] = {}
    for edge, far in adjacency.arcs(stride, node):
        if weight is None or (edge is None and is_rehearsed()):
            found[far] = 1
        else:
            found[far] = exact_total((found.get(far, 0), _weight(edge, weight)))
    return found


def _weight(edge: Any, name: str) -> Any:
    weight = getattr(edge, name, None)
    if not isinstance(weight, int | float | Decimal) or isinstance(weight, bool):
        raise InvalidValue(
            f"the weight {name} of {type(edge).__name__} from {shown(edge.source)} to {shown(edge.target)} is "
            f"{shown(weight)}; a weight must be a number"
        )
    return weight


def _common(adjacency: Adjacency, taste: Taste, own: dict[NodeKey, Any]) -> _Through:
    """By similar node: the common neighbours, and what each contributes to the score."""
    found: _Through = {}
    for middle, weight in own.items():
        others = _joined(adjacency, taste.strides[1], middle, taste.weight)
        # The start is one of its neighbours, also if edges in this direction do not say so.
        neighbours = len({*others, taste.start})
        for node, further in others.items():
            if node != taste.start:
                part = exact_product(weight, further)
                found.setdefault(node, {})[middle] = (
                    part if taste.score != "adamic_adar" else float(part) / log(neighbours)
                )
    return found


def _similar(
    adjacency: Adjacency, taste: Taste, own: dict[NodeKey, Any], through: _Through
) -> Plan[dict[NodeKey, Any]]:
    """The similarity of each node to the start."""
    if taste.score != "jaccard":
        return {node: exact_total(parts.values()) for node, parts in through.items()}
    back = taste.strides[1].reversed()
    yield from adjacency.expand(back, through)
    scores: dict[NodeKey, Any] = {}
    for node, parts in through.items():
        either = {*own, *_joined(adjacency, back, node, None)} - {taste.start}
        scores[node] = len(parts) / len(either | parts.keys())
    return scores


def _read(
    adjacency: Adjacency, taste: Taste, best: list[NodeKey], scores: dict[NodeKey, Any], through: _Through
) -> Plan[WalkResult[Recommendation[Any]]]:
    """Reads the best nodes and the reasons for them; goes on if some of them do not exist."""
    results: list[Recommendation[Any]] = []
    while best and len(results) < taste.limit and not adjacency.spending.is_over:
        missing = taste.limit - len(results)
        some, best = best[:missing], best[missing:]
        reasons = {node: _reasons(through[node], taste.reasons) for node in some}
        yield from adjacency.read([*some, *(each for middles in reasons.values() for each in middles)])
        for node in some:
            entity = adjacency.nodes.get(node)
            if entity is not None:
                results.append(Recommendation(entity, scores[node], tuple(nodes_in(adjacency, reasons[node]))))
    return WalkResult(results, Completeness.of(adjacency))


def _reasons(parts: dict[NodeKey, Any], most: int) -> list[NodeKey]:
    return sorted(parts, key=lambda middle: parts[middle], reverse=True)[:most]


def common(adjacency: Adjacency, sides: Iterable[tuple[Stride, NodeKey]]) -> Plan[WalkResult[Any]]:
    """The nodes to which edges of both of two nodes lead."""
    (one, a), (other, b) = sides
    adjacency.reads_edges = False
    if one.identity == other.identity:
        yield from adjacency.expand(one, [a, b])
    else:
        yield from adjacency.expand(one, [a])
        yield from adjacency.expand(other, [b])
    theirs = {far for _, far in adjacency.arcs(other, b)}
    shared = [far for far in dict.fromkeys(far for _, far in adjacency.arcs(one, a)) if far in theirs]
    yield from adjacency.read(shared)
    return WalkResult(nodes_in(adjacency, shared), Completeness.of(adjacency))
