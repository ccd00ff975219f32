"""The edges of one class, at their sources and at their targets: compressed sparse rows that can be changed.

A side has the edges of all nodes one after another, those of each node in the order in which the live graph returns
them. A node's row has room for some more edges after the first that was added; a row without room moves to the end.
When most of the arrays is gaps that rows left behind, they are packed again. So a change costs little more than finding
its place, and a snapshot that was never changed has no gaps.

In most layouts, the edges of a node are sorted by the node keys of their far ends. Then the numbers of nodes tell the
order, and nothing else is held. Where a class has other sort keys, such as those that begin with `order=`, the sort key
of each edge is held as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, NodeType
from adjoin.errors import InvalidItem
from adjoin.snapshots.arrays import Array, Texts, grown
from adjoin.snapshots.columns import HeldColumn

Sort: TypeAlias = tuple[bytes, bytes]
"""A sort key as bytes that sort as it does. In an index, two edges may have the same: then the key in the table
decides, which is the second part."""

Sorts: TypeAlias = tuple[Sort | None, Sort | None]
"""The sort keys of an edge among those that leave its source, and among those that arrive at its target; None where it
is not, because the index does not have it."""
_GAP = 1 << 16
"""So many places may be gaps, however many edges there are."""


class Side:
    """The edges of a class at their sources, or at their targets. Edges have numbers."""

    def __init__(
        self, node_texts: Texts, starts: Array, far: Array, edges: Array, lead: bytes | None, texts: Texts | None
    ) -> None:
        """`starts` has one more place than there are nodes: the end of the last row."""
        self._node_texts = node_texts
        self.bounds: Array | None = starts
        """Where each row begins, and the end of the last; None if rows are not packed any more."""
        self.starts, self.degrees = starts[:-1], np.diff(starts).astype(np.int32)
        self._rooms = self.degrees
        self.far, self.edges = far, edges
        self.lead, self.texts = lead, texts
        """What precedes the node key of the far end in each sort key; or, if sort keys are not so, all of them."""
        self._size, self._nodes, self._gaps = len(far), len(self.starts), 0
        self._look()

    def _look(self) -> None:
        self._far_view, self._edge_view = self.far.data, self.edges.data
        self._start_view, self._degree_view = self.starts.data, self.degrees.data

    @property
    def nbytes(self) -> int:
        starts = self.starts.nbytes if self.bounds is None else self.bounds.nbytes
        rooms = 0 if self._rooms is self.degrees else self._rooms.nbytes
        own = starts + self.degrees.nbytes + rooms + self.far.nbytes + self.edges.nbytes
        return own + (0 if self.texts is None else self.texts.nbytes)

    # --- reading -------------------------------------------------------------------------------

    def row(self, node: int) -> tuple[Array, Array]:
        """The far ends and the numbers of the edges of a node."""
        first = self._start_view[node]
        last = first + self._degree_view[node]
        return self.far[first:last], self.edges[first:last]

    def place(self, node: int, far: int, sort: Sort) -> tuple[int, int]:
        """Where in the row of a node the edge with that sort key is, or would be, and its number; -1 if it is not."""
        low = first = self._start_view[node]
        high = last = first + self._degree_view[node]
        if self.texts is not None:
            wanted = sort[0] + sort[1]
            low = self._bisected(low, high, wanted)
            is_there = low < last and self.texts[self._edge_view[low]] == wanted
            return low - first, self._edge_view[low] if is_there else -1
        fars, texts = self._far_view, self._node_texts
        # The numbers of nodes that were there at the beginning are in the order of their keys.
        sorted_numbers = texts.sorted_count if far < texts.sorted_count else 0
        while low < high:
            middle = (low + high) // 2
            other = fars[middle]
            if other < far if other < sorted_numbers else texts[other] < texts[far]:
                low = middle + 1
            else:
                high = middle
        return low - first, self._edge_view[low] if low < last and fars[low] == far else -1

    def _bisected(self, low: int, high: int, wanted: bytes) -> int:
        assert self.texts is not None
        while low < high:
            middle = (low + high) // 2
            if self.texts[self._edge_view[middle]] < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def place_of(self, node: int, edge: int) -> int | None:
        """Where in the row of a node the edge with this number is; None if it is not there."""
        places = np.nonzero(self.row(node)[1] == edge)[0]
        return int(places[0]) if len(places) else None

    # --- changing ------------------------------------------------------------------------------

    def add_nodes(self, count: int) -> None:
        """Makes room for nodes up to this number of them, without edges."""
        if count <= self._nodes:
            return
        self._unpack()
        if count > len(self.starts):
            self.starts, self.degrees = grown(self.starts, count), grown(self.degrees, count)
            self._rooms = grown(self._rooms, count)
            self._look()
        self._nodes = count

    def _unpack(self) -> None:
        if self.bounds is not None:
            self.bounds = None
            self.starts, self._rooms = self.starts.copy(), self.degrees.copy()
            self._look()

    def check_order(self, far: int, sort: Sort) -> None:
        """Notes how sort keys are made, if this is the first; raises if it is not made as all others are."""
        if self.texts is not None:
            return
        text = self._node_texts[far]
        if self.lead is None and not len(self.far):
            if sort[0].endswith(text):
                self.lead = sort[0][: len(sort[0]) - len(text)]
            else:
                self.texts = Texts.of([])
        elif self.lead is None or self.lead + text != sort[0]:
            raise InvalidItem(
                f"an edge has the sort key {sort[0].decode(errors='replace')!r}, and others of its class have "
                f"{(self.lead or b'').decode(errors='replace')!r} and the key of a node; correct the item, or build "
                f"the snapshot again"
            )

    def insert(self, node: int, place: int, far: int, edge: int, sort: Sort) -> None:
        self._unpack()
        degree = self._degree_view[node]
        if degree == self._rooms[node]:
            self._move(node, degree)
        first = self._start_view[node]
        at, end = first + place, first + degree
        if at < end:
            self.far[at + 1 : end + 1] = self.far[at:end]
            self.edges[at + 1 : end + 1] = self.edges[at:end]
        self._far_view[at], self._edge_view[at] = far, edge
        self._degree_view[node] = degree + 1
        if self.texts is not None:
            self.texts.put(edge, sort[0] + sort[1])

    def _move(self, node: int, degree: int) -> None:
        """Moves a row to the end, with room for some more edges."""
        if self._gaps > _GAP + self._size // 2:
            self.pack()
            self._unpack()
        # A row that grows once often grows again. With half as much again, an edge moves a fixed number of times on
        # average.
        room = degree + degree // 2 + 4
        if self._size + room > len(self.far):
            self.far, self.edges = grown(self.far, self._size + room), grown(self.edges, self._size + room)
            self._look()
        first, at = self._start_view[node], self._size
        self.far[at : at + degree] = self.far[first : first + degree]
        self.edges[at : at + degree] = self.edges[first : first + degree]
        self._start_view[node] = at
        self._rooms[node] = room
        self._size += room
        self._gaps += degree

    def remove(self, node: int, place: int) -> None:
        self._unpack()
        first, degree = self._start_view[node], self._degree_view[node]
        at, end = first + place, first + degree
        self.far[at : end - 1] = self.far[at + 1 : end]
        self.edges[at : end - 1] = self.edges[at + 1 : end]
        self._degree_view[node] = degree - 1

    def pack(self) -> None:
        """Closes all gaps. Afterwards the rows are one after another, as at the beginning."""
        if self.bounds is not None:
            return
        degrees = self.degrees[: self._nodes].copy()
        bounds = np.zeros(self._nodes + 1, np.int32)
        np.cumsum(degrees, out=bounds[1:])
        places = np.repeat(self.starts[: self._nodes] - bounds[:-1], degrees) + np.arange(bounds[-1], dtype=np.int32)
        self.far, self.edges = self.far[places], self.edges[places]
        self.bounds, self.starts, self.degrees, self._rooms = bounds, bounds[:-1], degrees, degrees
        self._size, self._gaps = len(self.far), 0
        self._look()


@dataclass(eq=False)
class Relation:
    """The edges of one class, or the children of one, with the fields that are held of them."""

    kind: EdgeType | NodeType
    out: Side
    into: Side
    """For a symmetric class, the same as `out`."""
    columns: dict[str, HeldColumn]
    count: int
    """How many edges there are."""
    used: int
    """How many numbers of edges were given out."""
    free: list[int]
    """The numbers of edges that were removed."""

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def nbytes(self) -> int:
        sides = self.out.nbytes + (0 if self.into is self.out else self.into.nbytes)
        return sides + sum(column.nbytes for column in self.columns.values())

    def side(self, direction: str) -> Side:
        return self.out if direction == "out" else self.into

    def sort_text(self, edge: int) -> bytes:
        """The sort key of an edge, if it has one of its own; without one, its ends tell it from all others."""
        texts = next((side.texts for side in self._sides() if side.texts is not None), None)
        return b"" if texts is None else texts[edge]

    def _sides(self) -> tuple[Side, ...]:
        return (self.out,) if self.into is self.out else (self.out, self.into)

    def add_nodes(self, count: int) -> None:
        for side in self._sides():
            side.add_nodes(count)

    def put(self, source: int, target: int, sorts: Sorts, values: Sequence[Any]) -> None:
        """Adds an edge, or gives one that is there these values."""
        ends = self._ends(source, target, sorts)
        places = [side.place(near, far, sort) for side, near, far, sort in ends]
        # It is on both sides under the same number: a put of an edge that exists changes its fields only.
        if all(edge == places[0][1] >= 0 for _, edge in places):
            self._fill(places[0][1], values)
            return
        if any(edge >= 0 for _, edge in places):
            # An index has another key of the edge, or did not have it.
            self.remove(source, target, sorts)
            places = [side.place(near, far, sort) for side, near, far, sort in ends]
        for side, _, far, sort in ends:
            side.check_order(far, sort)
        edge = self.free.pop() if self.free else self._new()
        for (side, near, far, sort), (place, _) in zip(ends, places, strict=True):
            side.insert(near, place, far, edge, sort)
        self._fill(edge, values)
        self.count += 1

    def _new(self) -> int:
        edge = self.used
        self.used += 1
        for column in self.columns.values():
            column.reserve(self.used)
        return edge

    def _fill(self, edge: int, values: Sequence[Any]) -> None:
        for column, value in zip(self.columns.values(), values, strict=True):
            column.put(edge, value)

    def _ends(self, source: int, target: int, sorts: Sorts) -> list[tuple[Side, int, int, Sort]]:
        """The sides on which an edge is, each with its node there, the node at the other end, and its sort key."""
        out, into = sorts
        ends = [] if out is None else [(self.out, source, target, out)]
        if into is not None and self.into is not self.out:
            ends.append((self.into, target, source, into))
        return ends

    def remove(self, source: int, target: int, sorts: Sorts) -> bool:
        """Removes an edge; returns whether it was there."""
        edge, removed = -1, 0
        for side, near, far, sort in self._ends(source, target, sorts):
            place, found = side.place(near, far, sort)
            if found >= 0 and edge in (-1, found):
                side.remove(near, place)
                edge, removed = found, removed + 1
        if edge < 0:
            return False
        # Another program may have changed an index key, so that the edge is elsewhere on one side.
        if removed < len(self._sides()):
            self._sweep(edge, source, target)
        # The number is used again, and a sum over all numbers must not count what the removed edge had.
        self._fill(edge, [None] * len(self.columns))
        self.free.append(edge)
        self.count -= 1
        return True

    def _sweep(self, edge: int, source: int, target: int) -> None:
        """Removes an edge from where it is under another sort key than it should have."""
        for side, near in ((self.out, source), (self.into, target)):
            place = side.place_of(near, edge)
            if place is not None:
                side.remove(near, place)

    def pack(self) -> None:
        for side in self._sides():
            side.pack()
