"""What traversals return: lists and mappings that say whether they are complete, and paths.

A traversal is incomplete if its budget did not suffice (`partial`), or if a node had more edges than its cap
(`capped`). Numbers cannot say so; `complete` raises instead of giving out a wrong one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

from adjoin.dataclass import dataclass
from adjoin.errors import BudgetExceeded, InvalidValue, shown
from adjoin.model import Child, Node, Ref, node_id
from adjoin.notebooks import completeness_notes, results_html, table_html, text_of
from adjoin.plans.frontier import Adjacency, NodeKey, ref_of

T = TypeVar("T")
N = TypeVar("N")
Trail: TypeAlias = tuple[tuple[NodeKey, ...], tuple[Any, ...]]
"""A path as it was found: its nodes, and its edges."""


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


class PartialResult:
    """What every result of a traversal says about itself."""

    __slots__ = ()
    completeness: Completeness

    @property
    def partial(self) -> bool:
        """Whether the budget did not suffice, so that something may be missing."""
        return self.completeness.exceeded is not None

    @property
    def exceeded(self) -> str | None:
        """The limit of the budget that did not suffice; None if all did."""
        return self.completeness.exceeded

    @property
    def capped(self) -> tuple[Ref[Any], ...]:
        """The nodes of which not all edges were read, because they have more than the cap."""
        return self.completeness.capped


class WalkResult(PartialResult, list[T]):
    """A list of results in the order in which they were reached.

    `partial` says that the budget did not suffice, and `exceeded` which limit of it. `capped` are the nodes of which
    not all edges were read, because they have more than the cap.
    """

    def __init__(self, results: Iterable[T], completeness: Completeness) -> None:
        super().__init__(results)
        self.completeness = completeness

    def _repr_html_(self) -> str:
        notes = completeness_notes(self.exceeded, self.capped)
        return results_html(f"{type(self).__name__} of {len(self)}", self, notes)


class GroupCount(PartialResult, dict[Ref[N], int], Generic[N]):
    """The number of paths to each node, by its ref. It says whether it is complete, as a `WalkResult` does."""

    def __init__(self, counts: Iterable[tuple[Ref[N], int]], completeness: Completeness) -> None:
        super().__init__(counts)
        self.completeness = completeness

    def _repr_html_(self) -> str:
        notes = completeness_notes(self.exceeded, self.capped)
        return results_html(f"{type(self).__name__} of {len(self)}", [*self.items()], notes)


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

    def _repr_html_(self) -> str:
        notes = [] if self.weight is None else [f"Its weight is {text_of(self.weight)}."]
        return table_html("Path", ("node", "edge to the next"), zip(self.nodes, (*self.edges, ""), strict=True), notes)

    @property
    def refs(self) -> tuple[Ref[Any], ...]:
        return tuple(_ref(node) for node in self.nodes)


def _ref(node: Any) -> Ref[Any]:
    if not isinstance(node, Node):
        # A snapshot holds a node without being able to make an instance of its class.
        ref: Ref[Any] = node.ref
        return ref
    return Ref(type(node).__declaration__.head or type(node), node_id(node))


class Reachable(WalkResult[Any]):
    """The nodes that can be reached from one, the nearest first, and the path to each. See `WalkResult` too."""

    def __init__(
        self,
        nodes: Iterable[Any],
        completeness: Completeness,
        adjacency: Adjacency,
        depths: Mapping[NodeKey, int],
        before: Mapping[NodeKey, tuple[Any, NodeKey]],
    ) -> None:
        super().__init__(nodes, completeness)
        self._adjacency, self._depths, self._before = adjacency, depths, before

    def depth(self, node: Node | Ref[Any]) -> int | None:
        """Returns the number of edges of the path to a node; None if it was not reached."""
        return self._depths.get(self._key(node))

    def path(self, node: Node | Ref[Any]) -> WalkPath | None:
        """Returns a shortest path to a node, from where the search began; None if it was not reached."""
        key = self._key(node)
        if key not in self._depths:
            return None
        nodes, edges = [key], []
        while nodes[-1] in self._before:
            edge, near = self._before[nodes[-1]]
            nodes.append(near)
            edges.append(edge)
        return path_of(self._adjacency, tuple(reversed(nodes)), tuple(reversed(edges)))

    def _key(self, node: Node | Ref[Any]) -> NodeKey:
        # A node of a snapshot has its ref.
        node = node if isinstance(node, Node | Ref) else getattr(node, "ref", node)
        if not isinstance(node, Node | Ref):
            raise InvalidValue(f"a node or a ref is needed, got {shown(node)}; pass Model.ref(id)")
        ref = node if isinstance(node, Ref) else _ref(node)
        kind = self._adjacency.layout.schema.node(ref.model).whole
        return kind.model, kind.id(ref)


@dataclass(frozen=True)
class Recommendation(Generic[N]):
    """A node that is recommended, its score, and the nodes through which it was found, those that count most first."""

    node: N
    score: Any
    through: tuple[Any, ...]

    def _repr_html_(self) -> str:
        return table_html("Recommendation", (), [("node", self.node), ("score", self.score), ("through", self.through)])


_FOR_NUMBERS = ", and a number cannot say that it is partial; allow more, or use refs() or group_count(), which can"


def complete(adjacency: Adjacency, what: str, found: T, remedy: str = _FOR_NUMBERS) -> T:
    """A number, or an answer, that was worked out from everything; raises if something was not read."""
    spending = adjacency.spending
    if spending.exceeded is not None:
        raise BudgetExceeded(
            f"{what} is not known: the budget of {getattr(spending.budget, spending.exceeded):g} {spending.exceeded} "
            f"did not suffice to read everything{remedy}",
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
    # Between a child and its parent there may be no edge; the child stands for it.
    whole = tuple(_child(*found[at : at + 2]) if edge is None else edge for at, edge in enumerate(edges))
    return WalkPath(found, whole, weight)


def _child(one: Any, other: Any) -> Any:
    """The child of the two; the other is its parent."""
    if not isinstance(other, Node):
        return other if other.is_child_of(one) else one
    return other if isinstance(other, Child) and other.parent == node_id(one) else one
