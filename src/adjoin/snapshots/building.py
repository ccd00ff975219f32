"""Builds the arrays of a snapshot from the items of a table, in one pass.

While items are read, nodes get numbers in the order in which they are met. At the end they are numbered again, in the
order of their node keys, and edges are sorted as the live graph returns them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from adjoin.batch import TellProgress
from adjoin.entity_types import EdgeType, NodeType
from adjoin.errors import InvalidValue
from adjoin.layouts.bound import BoundLayout
from adjoin.snapshots.arrays import MOST, Array, Texts
from adjoin.snapshots.columns import Gathered, HeldColumn
from adjoin.snapshots.item_reading import EdgeRow, Held, NodeRow, Row, far_ends_tell
from adjoin.snapshots.node_table import NodeTable
from adjoin.snapshots.relations import Relation, Side, Sort


class Building:
    """The nodes and edges that were read so far."""

    def __init__(self, layout: BoundLayout, held: Held, untold: Collection[tuple[type[Any], str]]) -> None:
        self._layout, self._held = layout, held
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._existing: dict[int, Sequence[Any]] = {}
        self._edges = [_Edges(layout, kind, held.fields.get(kind.model, {}), untold) for kind in held.relations]

    def add(self, row: Row) -> None:
        node, edge = row
        if node is not None:
            self._add_node(node)
        if edge is not None:
            self._add_edge(edge)

    def _add_node(self, row: NodeRow) -> None:
        class_number, text, values = row
        self._existing[self._number(class_number, text)] = values

    def _number(self, class_number: int, text: bytes) -> int:
        numbers = self._numbers
        return numbers.setdefault((class_number, text), len(numbers))

    def _add_edge(self, row: EdgeRow) -> None:
        relation, source_class, source, target_class, target, sorts, values = row
        edges = self._edges[relation]
        near, far = self._number(source_class, source), self._number(target_class, target)
        edges.sources.append(near)
        edges.targets.append(far)
        edges.out.add(sorts[0], target)
        edges.into.add(sorts[1], source)
        for column, value in zip(edges.columns, values, strict=True):
            column.append(value)

    def finished(self, tell: TellProgress | None) -> tuple[NodeTable, list[Relation]]:
        """The arrays."""
        if len(self._numbers) > MOST:
            raise InvalidValue(f"a snapshot numbers at most {MOST:,} nodes, got {len(self._numbers):,}; hold fewer")
        # Nodes are numbered in the order of their keys, so that numbers sort as the live graph sorts edges.
        order = sorted(self._numbers, key=lambda key: (key[1], key[0]))
        numbers = np.empty(len(order), np.int32)
        numbers[np.fromiter((self._numbers[key] for key in order), np.int32, len(order))] = np.arange(len(order))
        nodes = self._nodes(order)
        # The arrays of edges come next and need the memory.
        self._numbers.clear()
        relations = []
        for kind, edges in zip(self._held.relations, self._edges, strict=True):
            if tell is not None:
                tell(f"sorting {kind.name}", len(edges.sources))
            relations.append(edges.finished(nodes, numbers))
        return nodes, relations

    def _nodes(self, order: Sequence[tuple[int, bytes]]) -> NodeTable:
        texts = Texts.of([text for _, text in order])
        classes = np.fromiter((class_number for class_number, _ in order), np.uint8, len(order))
        rows = [self._existing.get(self._numbers[key]) for key in order]
        exists = np.fromiter((row is not None for row in rows), np.bool_, len(rows))
        columns: dict[tuple[int, str], HeldColumn] = {}
        for number, kind in enumerate(self._held.nodes):
            for place, (name, plain) in enumerate(self._held.fields.get(kind.model, {}).items()):
                gathered = Gathered(kind.name, name, plain)
                for (class_number, _), row in zip(order, rows, strict=True):
                    gathered.append(row[place] if row is not None and class_number == number else None)
                columns[number, name] = gathered.finished()
        return NodeTable(self._layout, self._held.nodes, texts, classes, exists, columns)


class Untold(Exception):
    """The nodes at the far ends of edges do not tell their sort keys, though those of the first edges did."""

    def __init__(self, side: tuple[type[Any], str]) -> None:
        super().__init__()
        self.side = side


class _Sorts:
    """The sort keys of the edges of a class on one side, held only if the nodes at their far ends do not tell them."""

    def __init__(self, side: tuple[type[Any], str], are_told: bool) -> None:
        self._name = side
        self._lead: bytes | None = None
        self._texts: list[bytes | None] | None = None if are_told else []
        self._absent: list[int] = []
        self._count = 0

    def add(self, sort: Sort | None, far: bytes) -> None:
        count = self._count
        self._count = count + 1
        if self._texts is not None:
            self._texts.append(None if sort is None else sort[0] + sort[1])
        elif sort is None:
            self._absent.append(count)
        elif self._lead is None:
            if sort[0].endswith(far):
                self._lead = sort[0][: len(sort[0]) - len(far)]
            else:
                self._texts = [None] * count
                self._texts.append(sort[0] + sort[1])
        # The keys of the first edges could be told by their far ends, so they were not kept. All is read once more.
        elif sort[0] != self._lead + far:
            raise Untold(self._name)

    @property
    def lead(self) -> bytes | None:
        return self._lead

    def texts(self, order: Array) -> Texts | None:
        """The sort keys by the numbers of edges, which are places in an order of them; None if they are not held."""
        if self._texts is None:
            return None
        return Texts.of([self._texts[at] or b"" for at in order.tolist()])

    @property
    def places(self) -> Array | None:
        """A number for each edge that sorts as its sort key does; None if the far ends tell the order."""
        if self._texts is None:
            return None
        ranks = {text: rank for rank, text in enumerate(sorted({text or b"" for text in self._texts}))}
        return np.fromiter((ranks[text or b""] for text in self._texts), np.int32, self._count)

    @property
    def present(self) -> Array:
        """Which edges are on this side at all."""
        found = np.ones(self._count, np.bool_)
        if self._texts is None:
            found[self._absent] = False
        else:
            found[:] = [text is not None for text in self._texts]
        return found


class _Edges:
    """The edges of one class in the order in which they were read."""

    def __init__(
        self,
        layout: BoundLayout,
        kind: EdgeType | NodeType,
        fields: Mapping[str, type],
        untold: Collection[tuple[type[Any], str]],
    ) -> None:
        self.kind, self._fields = kind, fields
        self.sources, self.targets = array("i"), array("i")
        self.columns = [Gathered(kind.name, name, plain) for name, plain in fields.items()]
        sides = ((kind.model, "out"), (kind.model, "into"))
        told = [side not in untold and far_ends_tell(layout, kind, side[1]) for side in sides]
        self.out, self.into = map(_Sorts, sides, told)

    def finished(self, nodes: NodeTable, numbers: Array) -> Relation:
        count = len(self.sources)
        if count > MOST:
            raise InvalidValue(f"a snapshot numbers at most {MOST:,} edges of a class, got {count:,} {self.kind.name}")
        sources, targets = (numbers[np.frombuffer(each, np.int32)] for each in (self.sources, self.targets))
        order = self._order(sources, targets, self.out)
        sources, targets = sources[order], targets[order]
        out = self._side(nodes, sources, targets, np.arange(count, dtype=np.int32), self.out, order)
        into = out
        if isinstance(self.kind, NodeType) or not self.kind.symmetric:
            places = self.into.places
            turned = np.lexsort((sources if places is None else places[order], targets)).astype(np.int32)
            into = self._side(nodes, targets[turned], sources[turned], turned, self.into, order)
        columns = {column.name: column.finished(order) for column in self.columns}
        return Relation(self.kind, out, into, columns, count, count, [])

    def _order(self, near: Array, far: Array, sorts: _Sorts) -> Array:
        places = sorts.places
        return np.lexsort((far if places is None else places, near))

    def _side(self, nodes: NodeTable, near: Array, far: Array, edges: Array, sorts: _Sorts, order: Array) -> Side:
        present = sorts.present[order][edges]
        if not present.all():
            near, far, edges = near[present], far[present], edges[present]
        bounds = np.zeros(len(nodes) + 1, np.int32)
        np.cumsum(np.bincount(near, minlength=len(nodes)), out=bounds[1:])
        return Side(nodes.texts, bounds, far, edges, sorts.lead, sorts.texts(order))


def build(
    layout: BoundLayout, held: Held, rows: Callable[[], Iterable[Row]], tell: TellProgress | None
) -> tuple[NodeTable, list[Relation]]:
    """The arrays of what is read. It is read again if what tells the order of edges turns out not to tell it."""
    untold: set[tuple[type[Any], str]] = set()
    while True:
        building = Building(layout, held, untold)
        try:
            for row in rows():
                building.add(row)
        except Untold as found:
            untold.add(found.side)
            continue
        return building.finished(tell)
