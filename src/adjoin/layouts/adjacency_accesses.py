"""Where the edges of an adjacency list are found: those that leave a node, and those that arrive at it.

An access is a table or an index with a partition key, and the part of a partition in which the edges of a class
are. Whether they are alone there is known from the templates, so that a query needs no filter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from adjoin.layouts.adjacency_keys import AdjacencyKeys, EdgeKeys, NodeKeys
from adjoin.layouts.adjacency_reader import AdjacencyReader
from adjoin.layouts.interface import Access, Index
from adjoin.layouts.keys import Template
from adjoin.schema import AnyEdge


class AdjacencyAccesses:
    """The accesses of one layout; None where there is no reverse index."""

    def __init__(self, keys: AdjacencyKeys, reader: AdjacencyReader) -> None:
        self._keys, self._reader = keys, reader
        edges, reverse = keys.edges.values(), keys.layout.reverse
        self.leaving: dict[type[Any], Access] = {each.kind.model: self._leaving(each) for each in edges}
        self.arriving: dict[type[Any], Access | None] = {each.kind.model: self._arriving(each) for each in edges}
        self.all_leaving = Access(keys.layout.partition_key, reader.read)
        self.all_arriving: Access | None = None
        if reverse is not None:
            is_partial = reverse.projection.kind != "ALL"
            self.all_arriving = Access(reverse.partition_key, reader.read, index=reverse.name, is_partial=is_partial)

    def _leaving(self, keys: EdgeKeys) -> Access:
        if keys.order_index is not None:
            return self._by_index(keys.order_index, keys)
        rivals = [self._keys.nodes[keys.kind.source.model].sort]
        rivals += [other.sort for other in self._keys.edges.values() if other is not keys]
        return Access(
            self._keys.layout.partition_key,
            self._reader.readers[keys.kind.model],
            sort_key=self._keys.layout.sort_key,
            sort=keys.sort,
            exclusive=_is_alone(keys.sort, rivals),
            kind=keys.kind,
            told_by_keys=self._keys.layout.type_attribute is None,
        )

    def _arriving(self, keys: EdgeKeys) -> Access | None:
        reverse = self._keys.layout.reverse
        if keys.kind.symmetric:
            # Each end holds the edge: what arrives at a node is what leaves it, seen from the far end.
            leaving = self._leaving(keys)
            return replace(leaving, decode=lambda item: _turned(leaving.decode(item)))
        if reverse is None:
            return None
        return self._by_index(reverse, keys)

    def _by_index(self, index: Index, keys: EdgeKeys) -> Access:
        sort = self._keys.template(keys, index.sort_key) if index.sort_key else None
        others: list[EdgeKeys | NodeKeys] = [*self._keys.edges.values(), *self._keys.nodes.values()]
        templates = [self._keys.template(other, index.sort_key or "") for other in others if other is not keys]
        rivals = [template for template in templates if template is not None]
        return Access(
            index.partition_key,
            self._reader.readers[keys.kind.model],
            index=index.name,
            sort_key=index.sort_key,
            sort=sort,
            exclusive=sort is not None and _is_alone(sort, rivals),
            kind=keys.kind,
            told_by_keys=self._keys.layout.type_attribute is None,
            is_partial=index.projection.kind != "ALL",
        )


def _turned(edge: AnyEdge | None) -> AnyEdge | None:
    if edge is None:
        return None
    return edge.model_copy(update={"source": edge.target, "target": edge.source})


def _is_alone(template: Template, rivals: list[Template]) -> bool:
    return bool(template.lead) and not any(template.overlaps(rival) for rival in rivals)
