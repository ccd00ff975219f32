"""The edges of some classes as one sparse matrix, and what libraries compute from it.

SciPy takes the arrays of a snapshot as they are if one class is asked for, nothing was changed since the last packing,
and both ends of all edges exist. PageRank is a power iteration on SciPy's product of a matrix and a vector, which took
a fifth of igraph's time for the same ranks. igraph has the communities; it needs the edges in a form of its own, so
that is what takes longest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import igraph
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidValue
from adjoin.snapshots.arrays import Array
from adjoin.snapshots.columns import HeldColumn
from adjoin.snapshots.kernels import triangles_at
from adjoin.snapshots.node_table import NodeTable
from adjoin.snapshots.relations import Relation, Side

_ROUNDS = 1000
"""After so many rounds, ranks are taken as they are."""


@dataclass(frozen=True)
class Selection:
    """Classes of edges, each in one direction, and the nodes that exist at their ends."""

    nodes: NodeTable
    relations: Sequence[Relation]
    direction: str

    @property
    def members(self) -> Array:
        """Which of all nodes are part of it."""
        kinds = {each.whole.model for relation in self.relations for each in _ends(relation)}
        numbers = [number for number, kind in enumerate(self.nodes.kinds) if kind.model in kinds]
        count = len(self.nodes)
        found: Array = self.nodes.exists[:count] & np.isin(self.nodes.classes[:count], numbers)
        return found

    def matrix(self, weight: str | None = None, *, turned: bool = False) -> csr_array:
        """How many edges lead from one node to another, or the sum of a field of them; `turned` the other way round.

        Rows and columns are numbers of nodes. Nodes that do not exist have no edges.
        """
        whole, *others = self.parts(weight, turned=turned)
        for part in others:
            whole = whole + part
        return whole

    def parts(self, weight: str | None = None, *, turned: bool = False) -> list[csr_array]:
        """The same of each class and direction by itself, where parallel edges have an entry each."""
        parts = []
        direction = {"out": "into", "into": "out"}.get(self.direction, "both") if turned else self.direction
        for relation in self.relations:
            column = None if weight is None else relation.columns[weight]
            if direction in ("out", "both"):
                parts.append(self._part(relation.out, column))
            if direction in ("into", "both") and (direction == "into" or relation.into is not relation.out):
                parts.append(self._part(relation.into, column, without_loops=direction == "both"))
        return parts

    def _part(self, side: Side, column: HeldColumn | None, *, without_loops: bool = False) -> csr_array:
        side.pack()
        assert side.bounds is not None
        count = len(self.nodes)
        bounds, far = side.bounds, side.far
        if len(bounds) <= count:
            bounds = np.concatenate([bounds, np.full(count + 1 - len(bounds), bounds[-1], bounds.dtype)])
        # A number for each edge. SciPy multiplies floats, and would convert others at every product.
        values = np.ones(len(far)) if column is None else _floats(column)[side.edges]
        members = self.members
        if without_loops or not members.all():
            near = np.repeat(np.arange(count, dtype=np.int32), np.diff(bounds))
            kept = members[near] & members[far] & (~np.bool_(without_loops) | (near != far))
            near, far, values = near[kept], far[kept], values[kept]
            bounds = np.zeros(count + 1, np.int32)
            np.cumsum(np.bincount(near, minlength=count), out=bounds[1:])
        return csr_array((values, far, bounds), shape=(count, count), copy=False)


def _ends(relation: Relation) -> list[Any]:
    return [each for end in (relation.kind.source, relation.kind.target) for each in end.classes]


def _floats(column: HeldColumn) -> Array:
    values: Array = column.values.astype(np.float64)
    return values / 10**column.scale if column.scale else values


def pagerank(selection: Selection, weight: str | None, damping: float, tolerance: float) -> tuple[Array, Array]:
    """The nodes, and the rank of each; the sum of all ranks is 1."""
    if not 0 < damping < 1:
        raise InvalidValue(f"damping must be between 0 and 1, got {damping!r}")
    members = selection.members
    numbers = np.nonzero(members)[0].astype(np.int32)
    count = len(numbers)
    if not count:
        return numbers, np.zeros(0)
    arriving = selection.matrix(weight, turned=True)
    if weight is not None and len(arriving.data) and arriving.data.min() < 0:
        raise InvalidValue(f"{weight} is negative somewhere, and ranks need weights from 0 on; name another field")
    leaving = arriving.T @ np.ones(arriving.shape[0])
    shares = np.divide(damping, leaving, out=np.zeros_like(leaving), where=leaving > 0)
    idle = members & (leaving == 0)
    everywhere = members / count
    ranks = everywhere
    for _ in range(_ROUNDS):
        further = arriving @ (ranks * shares)
        further += (damping * ranks[idle].sum() + 1 - damping) * everywhere
        change = np.abs(further - ranks).sum()
        ranks = further
        if change < tolerance:
            break
    return numbers, ranks[numbers]


def components(selection: Selection, strong: bool) -> tuple[Array, Array]:
    """The nodes, and a number for the component of each."""
    numbers = np.nonzero(selection.members)[0].astype(np.int32)
    matrix = selection.matrix()
    if strong and not matrix.has_canonical_format:
        # SciPy does not return if a row has a column twice, as parallel edges do. The arrays of the snapshot stay.
        matrix = matrix.copy()
        matrix.sum_duplicates()
    connection = "strong" if strong else "weak"
    _, labels = connected_components(matrix, directed=True, connection=connection, return_labels=True)
    return numbers, labels[numbers]


def triangles(selection: Selection) -> tuple[Array, Array]:
    """The nodes, and how many triangles each is part of, without regard to directions, loops and parallel edges."""
    whole = selection.matrix()
    joined = csr_array(whole + whole.T)
    joined.setdiag(0)
    joined.eliminate_zeros()
    joined.sort_indices()
    counts = np.zeros(whole.shape[0], np.int64)
    triangles_at(joined.indptr, joined.indices, counts)
    numbers = np.nonzero(selection.members)[0].astype(np.int32)
    return numbers, counts[numbers]


def communities(selection: Selection, weight: str | None, resolution: float) -> tuple[Array, Array]:
    """The nodes, and a number for the community of each, by the Leiden algorithm."""
    numbers = np.nonzero(selection.members)[0].astype(np.int32)
    graph = to_igraph(selection, weight).as_undirected(mode="collapse", combine_edges="sum")
    graph.simplify(loops=True, combine_edges="sum")
    found = graph.community_leiden("modularity", weights="weight", resolution=resolution, n_iterations=-1)
    return numbers, np.array(found.membership, np.int64)


def to_igraph(selection: Selection, weight: str | None) -> igraph.Graph:
    """The same edges as a graph of igraph, whose vertices are the nodes that exist, in the order of their numbers."""
    numbers = np.nonzero(selection.members)[0]
    places = np.zeros(len(selection.nodes), np.int64)
    places[numbers] = np.arange(len(numbers))
    # A sum of matrices would join parallel edges of different classes.
    parts = [part.tocoo() for part in selection.parts(weight)]
    pairs = np.concatenate([np.column_stack([places[part.row], places[part.col]]) for part in parts])
    graph = igraph.Graph(len(numbers), pairs, directed=True)
    graph.es["weight"] = np.concatenate([part.data for part in parts])
    return graph
