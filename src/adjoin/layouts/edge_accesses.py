"""Where the edges and children of a node are found: by which key or index, and in which range of it.

This is worked out once, when a graph opens. A range of an access is a query.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from adjoin.entity_types import AnyEdge, EdgeType, Entity, NodeType
from adjoin.field_types import may_be_none
from adjoin.late import later
from adjoin.layouts.adjacency_reader import AdjacencyReader
from adjoin.layouts.entity_keys import EdgeKeys, NodeKeys, rest_of, written_fields
from adjoin.layouts.interface import Index
from adjoin.layouts.keys import Part, Template
from adjoin.layouts.ranges import EdgeAccess, SortField
from adjoin.layouts.shard_numbers import ShardedTemplate
from adjoin.layouts.templates import AdjacencyKeys
from adjoin.model import Edge
from adjoin.values import Item

if TYPE_CHECKING:
    from adjoin.layouts import far_ends
else:
    far_ends = later("adjoin.layouts.far_ends")


class AdjacencyAccesses:
    """The accesses of one layout; None where there is no reverse index."""

    def __init__(self, keys: AdjacencyKeys, reader: AdjacencyReader) -> None:
        self._keys, self._reader = keys, reader
        edges, reverse = keys.edges.values(), keys.reverse
        self.apart = {each.kind.model: self._in_table(each, "source") for each in edges if each.is_apart}
        """The accesses to edges in other partitions than those of their sources; None if the source does not tell."""
        self.are_some_apart = bool(self.apart) or any(node.is_apart for node in keys.nodes.values())
        """Whether edges or children of any class are in other partitions than those of their sources or parents."""
        self.leaving: dict[type[Any], EdgeAccess | None] = {each.kind.model: self._leaving(each) for each in edges}
        self.stems = {model: self._stem(node) for model, node in keys.nodes.items() if node.rest}
        """What the sort keys of a node in a shared partition and of its edges begin with; None if nothing."""
        self.arriving: dict[type[Any], EdgeAccess | None] = {each.kind.model: self._arriving(each) for each in edges}
        self.edges_at = {
            node.model: tuple(each.kind for each in edges if each.kind.target.covers(node) and not each.kind.symmetric)
            for node in keys.schema.nodes.values()
        }
        """The classes of edges that arrive at nodes of a class; those of a symmetric edge leave them."""
        self.children: dict[type[Any], EdgeAccess] = {
            model: self._child(node) for model, node in keys.nodes.items() if node.kind.parent is not None
        }
        self.all_leaving = EdgeAccess(keys.layout.partition_key, reader.read, partition_type=keys.table.partition.type)
        self.all_arriving: EdgeAccess | None = None
        if reverse is not None:
            is_partial = reverse.projection.kind != "ALL"
            self.all_arriving = EdgeAccess(
                reverse.partition_attribute,
                reader.read,
                index=reverse.name,
                is_partial=is_partial,
                partition_type=keys.type_of(reverse.partition_attribute),
            )

    def _child(self, keys: NodeKeys) -> EdgeAccess:
        others: list[EdgeKeys | NodeKeys] = [*self._keys.edges.values(), *self._keys.nodes.values()]
        others = [other for other in others if other.kind.whole is not keys.kind]
        rivals = [other.sort for other in others if other is not keys and other.partition.may_equal(keys.partition)]
        return EdgeAccess(
            self._keys.layout.partition_key,
            self._reader.readers[keys.kind.model],
            sort_key=self._keys.layout.sort_key,
            sort=keys.sort,
            exclusive=bool(keys.sort.lead) and keys.sort.is_apart(keys.parent_rest, rivals),
            kind=keys.kind,
            told_by_keys=self._keys.layout.type_attribute is None and keys.kind.head is None,
            is_literal=not keys.sort.quoting.escape,
            partition_type=keys.partition.type,
        )

    def _leaving(self, keys: EdgeKeys) -> EdgeAccess | None:
        if keys.order_index is not None:
            return self._by_index(keys.order_index, keys)
        if keys.is_apart:
            return self.apart[keys.kind.model] or self._by_declared_index(keys, "source")
        sources = [self._keys.nodes[each.model] for each in keys.kind.source.classes]
        rivals = [
            node.sort
            for node in self._keys.nodes.values()
            if any(node is source or node.partition.may_equal(source.partition) for source in sources)
        ]
        rivals += [
            other.sort
            for other in self._keys.edges.values()
            if other is not keys and other.partition.may_equal(keys.partition)
        ]
        exclusive = keys.sort.is_apart(keys.rest, rivals) if keys.rest else _is_alone(keys.sort, rivals)
        return self._of_table(keys, exclusive=exclusive)

    def _in_table(self, keys: EdgeKeys, side: str) -> EdgeAccess | None:
        """The access to the edges at the node of that side in the table; None if their keys do not tell them."""
        rest = rest_of(keys.end_parts(side), keys.partition, keys.sort)
        if rest is None:
            return None
        others: list[EdgeKeys | NodeKeys] = [*self._keys.edges.values(), *self._keys.nodes.values()]
        rivals = [other.sort for other in others if other is not keys and other.partition.may_equal(keys.partition)]
        exclusive = keys.sort.is_apart(rest, rivals)
        return replace(self._of_table(keys, exclusive=exclusive), partition=keys.partition, rest=rest)

    def in_partition(self, keys: EdgeKeys) -> EdgeAccess:
        """The access to the edges of a class in the partition of their source, whatever their order."""
        return self._of_table(keys, exclusive=False)

    def _of_table(self, keys: EdgeKeys, *, exclusive: bool) -> EdgeAccess:
        return EdgeAccess(
            self._keys.layout.partition_key,
            self._reader.readers[keys.kind.model],
            sort_key=self._keys.layout.sort_key,
            sort=keys.sort,
            exclusive=exclusive,
            kind=keys.kind,
            told_by_keys=self._keys.layout.type_attribute is None and not keys.sort.is_mixed,
            is_literal=not keys.sort.quoting.escape,
            partition_type=keys.partition.type,
        )

    def own(self, kind: NodeType, text: str, stem: str) -> EdgeAccess:
        """The access to what belongs to one node in a shared partition; all its sort keys begin with the stem."""
        layout, table = self._keys.layout, self._keys.table
        node, template = self._keys.nodes[kind.model], self.stems[kind.model]
        # If the stem ends with the id, what follows it says whether the item belongs to this node or to a longer id.
        ends_in_id = (
            template is not None and template.told.issuperset(node.rest) and isinstance(template.pieces[-1], Part)
        )

        def shows(item: Item) -> bool:
            # "o#70" begins with "o#7", but is of another node.
            rest = table.texts(item)[1][len(stem) :]
            return not ends_in_id or not rest or rest[0] in node.sort.quoting.ends

        return EdgeAccess(
            layout.partition_key,
            lambda item: self._reader.at(kind, text, item),
            sort_key=layout.sort_key,
            kind=kind,
            partition_type=table.partition.type,
            sort_type="S" if table.sort is None else table.sort.type,
            shows=shows,
        )

    def at_target(self, kind: NodeType, node: Any, found: EdgeAccess) -> EdgeAccess:
        """The access to all edges that arrive at a node, if those of one class have this access."""

        def arriving(item: Item) -> Entity | None:
            entity = self._reader.read(item)
            if not isinstance(entity, Edge):
                return entity
            edge = self._keys.edges[type(entity)].kind
            return entity if edge.target.covers(kind) and entity.target == edge.target.id(node) else None

        return EdgeAccess(
            found.partition_key,
            arriving,
            index=found.index,
            kind=kind,
            partition_type=found.partition_type,
            is_partial=found.is_partial,
            shows=lambda _: True,
        )

    def _stem(self, node: NodeKeys) -> Template | None:
        stem = node.sort.pieces
        for edge in self._keys.edges.values():
            if edge.kind.source.covers(node.kind) and not edge.is_apart:
                stem = _common(stem, edge.sort.pieces, "source.")
        for child in self._keys.nodes.values():
            if child.kind.parent is node.kind and not child.is_apart:
                stem = _common(stem, child.sort.pieces, "parent.")
        return Template(node.kind.name, stem, node.sort.quoting) if stem else None

    def _arriving(self, keys: EdgeKeys) -> EdgeAccess | None:
        reverse = self._keys.reverse
        if keys.kind.symmetric:
            # A symmetric edge is stored at both ends, so the edges that arrive at a node are those that leave it, with
            # source and target exchanged.
            leaving = self._leaving(keys)
            assert leaving is not None
            return replace(leaving, decode=lambda item: _turned(leaving.decode(item)), refine=_turned, is_turned=True)
        if reverse is None:
            return self._in_table(keys, "target") or self._by_declared_index(keys, "target")
        return self._by_index(reverse, keys)

    def _by_declared_index(self, keys: EdgeKeys, side: str) -> EdgeAccess | None:
        """The access by a declared index in which the edges at the node of that side are together.

        One that holds all edges of the class comes before one that is sparse, and then the one with fewer partitions.
        """
        found = [self._at(keys, side, index) for index in self._keys.texts.declared]
        serving = [access for access in found if access is not None]
        # A sparse index may lack edges, and each partition is one more query.
        return min(serving, key=lambda access: (access.is_sparse, len(_shards(access.partition))), default=None)

    def _at(self, keys: EdgeKeys, side: str, index: Index) -> EdgeAccess | None:
        """The access by one index; None if the end of an edge does not tell where in the index it is.

        It does if the partition key is made of parts of the id and a shard, and the sort key begins with those parts
        that the partition key does not have.
        """
        template = self._keys.template(keys, index.partition_attribute)
        if template is None or len(index.partition_keys) != 1:
            return None
        sort = self._keys.template(keys, index.sort_attribute or "") if len(index.sort_keys) == 1 else None
        rest = rest_of(keys.end_parts(side), template, sort)
        if rest is None or not all(self._is_written(keys, name) for name in index.keys):
            return None
        is_sparse = any(self._may_be_absent(keys, name) for name in index.keys)
        return replace(
            self._by_index(index, keys),
            partition=template,
            partition_type=template.type,
            rest=rest,
            is_sparse=is_sparse,
        )

    def _is_written(self, keys: EdgeKeys, attribute: str) -> bool:
        """Whether edges of a class have a key attribute of an index; a field that is only in other keys has none."""
        stored = (keys.kind.attributes[name] for name in written_fields(keys))
        return self._keys.template(keys, attribute) is not None or attribute in stored

    def _may_be_absent(self, keys: EdgeKeys, attribute: str) -> bool:
        """Whether an edge of the class may have no value for a key attribute of an index."""
        kind, template = keys.kind, self._keys.template(keys, attribute)
        stored = [name for name, each in kind.attributes.items() if each == attribute]
        names = stored if template is None else [name for name in template.names if name in kind.attributes]
        return any(may_be_none(kind.fields[name]) for name in names)

    def _by_index(self, index: Index, keys: EdgeKeys) -> EdgeAccess:
        sort = self._keys.template(keys, index.sort_attribute) if index.sort_attribute else None
        others: list[EdgeKeys | NodeKeys] = [*self._keys.edges.values(), *self._keys.nodes.values()]
        templates = [self._keys.template(other, index.sort_attribute or "") for other in others if other is not keys]
        rivals = [template for template in templates if template is not None]
        return EdgeAccess(
            index.partition_attribute,
            self._reader.readers[keys.kind.model],
            index=index.name,
            sort_key=index.sort_attribute,
            sort=sort,
            exclusive=sort is not None and _is_alone(sort, rivals),
            kind=keys.kind,
            told_by_keys=self._keys.layout.type_attribute is None and not (sort and sort.is_mixed),
            is_literal=not keys.sort.quoting.escape,
            is_partial=index.projection.kind != "ALL",
            partition_type=self._keys.type_of(index.partition_attribute),
            sort_field=None if sort is not None else self._sort_field(index, keys),
        )

    def far(self, access: EdgeAccess) -> EdgeAccess | None:
        """The same access, which reads of each edge only the id at its far end; None if the keys alone do not tell."""
        kind = access.kind
        if not isinstance(kind, EdgeType):
            return None
        keys = self._keys.edges[kind.model]
        if (
            access is not self.leaving[kind.model] and access is not self.arriving[kind.model]
        ) or access.refine is not None:
            return None
        if keys.meets or not kind.keeps_ids or not self._reader.is_short(keys):
            return None
        side = "target" if access is self.leaving[kind.model] else "source"
        layout = self._keys.layout
        read = far_ends.far_reader(keys, layout.partition_key, layout.sort_key or "", side, access.decode)
        return None if read is None else replace(access, decode=read)

    def _sort_field(self, index: Index, keys: EdgeKeys) -> SortField | None:
        """The field of a class that is the sort key of an index as it is stored."""
        kind, attribute = keys.kind, index.sort_attribute
        name = next((name for name, stored in kind.attributes.items() if stored == attribute), None)
        if attribute is None or name is None:
            return None
        return SortField(name, self._keys.type_of(attribute), keys.record.encoder(name), kind.formats.get(name))


def _shards(partition: Template | None) -> range:
    """The shards of a partition key; one if it has none."""
    return partition.number.all if isinstance(partition, ShardedTemplate) else range(1)


def _common(pieces: list[str | Part], others: list[str | Part], side: str) -> list[str | Part]:
    """The pieces with which two templates begin; in the other, the names of the same parts follow `side`."""
    common: list[str | Part] = []
    for piece, other in zip(pieces, others, strict=False):
        if isinstance(piece, str) and isinstance(other, str):
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(piece, other, strict=False)))
            # Two literals may begin alike: what they have in common is still the beginning of all keys.
            common.append(piece[:same])
            if piece != other:
                break
        elif isinstance(piece, Part) and isinstance(other, Part) and other == replace(piece, name=side + piece.name):
            common.append(piece)
        else:
            break
    return common


def _turned(edge: AnyEdge | None) -> AnyEdge | None:
    if edge is None:
        return None
    return edge.model_copy(update={"source": edge.target, "target": edge.source})


def _is_alone(template: Template, rivals: list[Template]) -> bool:
    return bool(template.lead) and not any(template.overlaps(rival) for rival in rivals)
