"""What traversals return: lists and mappings that say whether they are complete, and paths.

A traversal is incomplete if its budget did not suffice (`partial`), or if a node had more edges than its cap
(`capped`). Numbers cannot say so; `complete` raises instead of giving out a wrong one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from adjoin.errors import BudgetExceeded
from adjoin.model import Node, Ref, node_id
from adjoin.plans.frontier import Adjacency, NodeKey, ref_of

T = TypeVar("T")
N = TypeVar("N")


@dataclass(frozen=True, slots=True)
class Completeness:
    """Whether a traversal saw everything that it was asked for."""

    exceeded: str | None = None
    """The limit of the budget that did not suffice, such as "requests"; None if all did."""
    capped: tuple[Ref[Any], ...] = ()
    """The nodes that have more edges than were read."""

    @classmethod
    def of(cls, adjacency: Adjacency) -> Completeness:
        return cls(adjacency.spending.exceeded, tuple(map(ref_of, adjacency.capped)))


class WalkResult(list[T]):
    """A list of results in the order in which they were reached.

    `partial` says that the budget did not suffice, and `exceeded` which limit of it. `capped` are the nodes of which
    not all edges were read, because they have more than the cap.
    """

    def __init__(self, results: Iterable[T], completeness: Completeness) -> None:
        super().__init__(results)
        self.completeness = completeness

    @property
    def partial(self) -> bool:
        return self.completeness.exceeded is not None

    @property
    def exceeded(self) -> str | None:
        return self.completeness.exceeded

    @property
    def capped(self) -> tuple[Ref[Any], ...]:
        return self.completeness.capped


class GroupCount(dict[Ref[Any], int]):
    """The number of paths to each node, by its ref. It says whether it is complete, as a `WalkResult` does."""

    def __init__(self, counts: Iterable[tuple[Ref[Any], int]], completeness: Completeness) -> None:
        super().__init__(counts)
        self.completeness = completeness

    @property
    def partial(self) -> bool:
        return self.completeness.exceeded is not None

    @property
    def exceeded(self) -> str | None:
        return self.completeness.exceeded

    @property
    def capped(self) -> tuple[Ref[Any], ...]:
        return self.completeness.capped


@dataclass(frozen=True, repr=False)
class WalkPath:
    """A way through the graph: nodes, and the edges between them, one fewer.

    For a step from a parent to a child or back, the edge is the child. `weight` is the sum of the weights of its edges,
    if the call gave a field for them.
    """

    nodes: tuple[Any, ...]
    edges: tuple[Any, ...]
    weight: Any = None

    def __repr__(self) -> str:
        weight = "" if self.weight is None else f", weight={self.weight!r}"
        return f"Path({' -> '.join(map(str, self.refs))}{weight})"

    @property
    def refs(self) -> tuple[Ref[Any], ...]:
        return tuple(_ref(node) for node in self.nodes)


def _ref(node: Node) -> Ref[Any]:
    return Ref(type(node).__declaration__.head or type(node), node_id(node))


@dataclass(frozen=True)
class Recommendation(Generic[N]):
    """A node that is recommended, its score, and the nodes through which it was found, those that count most first."""

    node: N
    score: Any
    through: tuple[Any, ...]


def complete(adjacency: Adjacency, what: str, found: T) -> T:
    """A number that was computed from everything; raises if something was not read."""
    spending = adjacency.spending
    if spending.exceeded is not None:
        raise BudgetExceeded(
            f"{what} is not known: the budget of {getattr(spending.budget, spending.exceeded):g} {spending.exceeded} "
            f"did not suffice to read everything, and a number cannot say that it is partial; allow more, or use "
            f"refs() or group_count(), which can",
            spending.exceeded,
            found,
        )
    if adjacency.capped:
        first = ref_of(next(iter(adjacency.capped)))
        raise BudgetExceeded(
            f"{what} is not known: {first} has more than {adjacency.cap:,} edges of one class, and no more were read; "
            f"pass a greater cap, or cap=None to read all",
            "cap",
            found,
        )
    return found


def path_of(
    adjacency: Adjacency, nodes: tuple[NodeKey, ...], edges: tuple[Any, ...], weight: Any = None
) -> WalkPath | None:
    """The path along nodes that were read; None if one of them does not exist."""
    found = tuple(adjacency.nodes.get(node) for node in nodes)
    if any(node is None for node in found):
        return None
    # From a child to its parent there is no edge; the child stands for it.
    whole = tuple(found[place] if edge is None else edge for place, edge in enumerate(edges))
    return WalkPath(found, whole, weight)
