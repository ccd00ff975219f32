"""Where a bound layout finds things: the ranges that hold the edges, children and items around a node.

`edge_accesses` works out once by which key or index edges of a class are found. Here, an id makes a range of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adjoin.entity_types import CountedType, EdgeType, EntityType, NodeType
from adjoin.errors import InvalidModel
from adjoin.layouts.access_patterns import AccessPattern, ShardPartitions
from adjoin.layouts.class_patterns import AccessPatterns
from adjoin.layouts.conflicts import check_maintained
from adjoin.layouts.edge_accesses import AdjacencyAccesses
from adjoin.layouts.entity_items import EntityItems
from adjoin.layouts.keys import SHARD, Template
from adjoin.layouts.ranges import EdgeAccess, Range, ScanAccess, only_at
from adjoin.layouts.scanning import ScanAccesses
from adjoin.layouts.shard_numbers import ShardedTemplate
from adjoin.model import Ref
from adjoin.schema import Schema
from adjoin.tables import KeyAttribute
from adjoin.values import Item

if TYPE_CHECKING:
    from adjoin.layouts.adjacency_list import AdjacencyList


class EdgeRanges(EntityItems):
    """The items of a schema, and where they are found."""

    def __init__(
        self,
        layout: AdjacencyList,
        schema: Schema,
        tenant: str | None = None,
        like: EdgeRanges | None = None,
        lead: str | None = None,
    ) -> None:
        super().__init__(layout, schema, tenant, like, lead)
        self._accesses = AdjacencyAccesses(self._keys, self._reader)
        check_maintained(self._keys, self.rules, self._accesses)
        self._patterns = AccessPatterns(self._keys)

    def patterns(self, kind: EntityType) -> tuple[AccessPattern, ...]:
        """The access patterns of a class: the table, then the indexes that the layout declares."""
        return self._patterns.of(kind)

    def partition_attributes(self, index: str | None) -> tuple[KeyAttribute, ...]:
        """The partition key attributes of the table or an index."""
        where = self.definition if index is None else self.definition.index(index)
        assert where is not None
        return where.partitions

    def sort_attributes(self, index: str | None) -> tuple[KeyAttribute, ...]:
        """The sort key attributes of the table or an index."""
        where = self.definition if index is None else self.definition.index(index)
        assert where is not None
        return where.sorts

    def spread(self, index: str) -> ShardPartitions | None:
        """The partitions of an index whose partition key is the shard alone; None for another index."""
        return self._patterns.spread(index)

    def edge_access(self, kind: CountedType, direction: str) -> EdgeAccess | None:
        """How edges are found from their source or, with "into", from their target; None if they cannot be.

        Children are found from their parent.
        """
        if isinstance(kind, NodeType):
            return self._accesses.children[kind.model]
        return (self._accesses.leaving if direction == "out" else self._accesses.arriving)[kind.model]

    def far_access(self, access: EdgeAccess) -> EdgeAccess | None:
        """An access that reads only the ids of the nodes to which edges lead; None if their keys alone do not tell."""
        return self._accesses.far(access)

    def out(self, kind: EdgeType, source: Any) -> Range:
        access = self._accesses.leaving[kind.model]
        if access is None:
            raise InvalidModel(self._not_together(kind, "source"))
        if access.partition is None and not self._keys.edges[kind.model].rest:
            return Range(access, self.node_text(kind.source, source))
        return self._at_source(access, kind, source)

    def _at_source(self, access: EdgeAccess, kind: EdgeType, source: Any) -> Range:
        keys = self._keys.edges[kind.model]
        if access.partition is not None:
            return _told_range(access, access.partition, kind.source.part_values(source, "source."))
        if access.index is not None or not keys.rest:
            return Range(access, self.node_text(kind.source, source))
        values = kind.source.part_values(source, "source.")
        return Range(access, keys.partition.render(values), {name: values[name] for name in keys.rest})

    def whole_range(self, found: Range) -> Range | None:
        """Where all stored edges of a range are, also those that its index lacks or sorts otherwise; None if nowhere.

        It is for a class that has gained an order: the table has the edges of each source, and the reverse index has
        those of each target, with sort keys of the former declarations.
        """
        kind, index = found.access.kind, found.access.index
        if not isinstance(kind, EdgeType) or found.number is not None:
            return None
        keys = self._keys.edges[kind.model]
        if keys.order_index is not None and index == keys.order_index.name:
            template = self._keys.template(keys, keys.order_index.partition_attribute)
            is_node_key = str(template) == self._keys.end_text(kind.source, "source")
            # Only then is the partition key of the order index that of the source in the table, which has all of its
            # edges.
            if keys.is_apart or keys.rest or not is_node_key:
                return None
            return Range(self._accesses.in_partition(keys), found.partition)
        return replace(found, known=None) if (kind.whole.word, index or "") in self.due.resorted else None

    def _not_together(self, kind: EdgeType, side: str) -> str:
        """Says that the edges at one end are together nowhere, and what each index would need."""
        keys = self._keys.edges[kind.model]
        wanted = " and ".join(f"{{{name}}}" for name in keys.end_parts(side))
        found = [
            f"{index.name!r} has {self._keys.template(keys, index.partition_attribute) or 'no template'}"
            for index in self._keys.texts.declared
        ]
        indexes = f" ({', '.join(found)})" if found else ""
        return (
            f"{kind.name} edges cannot be found from their {side}: their partition key {keys.partition} is not made of "
            f"its id alone, and that of no index is{indexes}; give an index a partition key made of {wanted}"
        )

    def is_apart(self, kind: CountedType) -> bool:
        """Whether edges or children of a class are in other partitions than those of their sources or parents."""
        return self._keys_of(kind).is_apart

    def ranges_from(self, kind: CountedType, source: Any) -> list[Range]:
        """Where the edges of a class are that leave a node, in the table if it tells, or the children of a parent.

        Other items can be there too.
        """
        if not self.is_apart(kind):
            return [self.collection(kind.source, source, arriving=False)]
        if isinstance(kind, NodeType):
            return [self.children(kind, source)]
        access = self._accesses.apart[kind.model]
        return (self.out(kind, source) if access is None else self._at_source(access, kind, source)).parts

    def ranges_beside(self, kind: NodeType, id: Any, *, must_find: bool = True) -> list[Range]:
        """Where the edges and children of a node are that are not in its partition; other items can be there too.

        Edges that cannot be found raise, or are left out if they need not be found.
        """
        if not self._accesses.are_some_apart:
            return []
        edges = [edge for edge in self.schema.edges.values() if edge.source.covers(kind) and self.is_apart(edge)]
        if not must_find:
            edges = [edge for edge in edges if self._accesses.apart[edge.model] or self._accesses.leaving[edge.model]]
        node = Ref(kind.model, id)
        with _leaving_told():
            ranges = [(edge, each) for edge in edges for each in self.ranges_from(edge, edge.source.id(node))]
        found = [self._complete(kind, edge, each, "leave") if must_find else each for edge, each in ranges]
        children = [child for child in self.schema.children(kind) if self.is_apart(child)]
        # Children of these children are in the same partition, so all of it is read.
        return found + [Range(self._accesses.all_leaving, self.children(child, id).partition) for child in children]

    def children(self, kind: NodeType, parent: Any) -> Range:
        """Where the children of a class are, of the parent with that id."""
        assert kind.parent is not None
        keys = self._keys.nodes[kind.model]
        values = kind.parent.part_values(parent, "parent.")
        known = {name: values[name] for name in keys.parent_rest}
        return Range(self._accesses.children[kind.model], keys.partition.render(values), known)

    def belongs_to(self, kind: NodeType, node: str, item: Item, told: EntityType | None) -> bool:
        """Whether an item in the partition of a node is the node itself, an edge that leaves it, or a child of it.

        `told` is the class of the item.
        """
        return self._reader.belongs_to(kind, node, item, told)

    def into(self, kind: EdgeType, target: Any) -> Range:
        access = self._accesses.arriving[kind.model]
        if access is None:
            if self._keys.texts.declared:
                raise InvalidModel(self._not_together(kind, "target"))
            raise InvalidModel(
                f"the layout has no reverse index, so {kind.name} edges cannot be found from their target; "
                f"give it one with reverse=Index(…)"
            )
        if kind.symmetric:
            return self._at_source(access, kind, target)
        if access.partition is not None:
            return _told_range(access, access.partition, kind.target.part_values(target, "target."))
        return Range(access, self.node_text(kind.target, target))

    def ranges_into(self, kind: EdgeType, target: Any) -> list[Range]:
        """Where the edges of a class are that arrive at a node: one range, or one in each shard of an index."""
        return self.into(kind, target).parts

    def ranges_around(
        self, kind: NodeType, id: Any, text: str, *, must_find: bool = True
    ) -> tuple[list[Range], list[Range]]:
        """Where the node with this id and node key is, with all that leaves it, and where all that arrives at it is."""
        accesses = self._accesses
        if accesses.are_some_apart or accesses.all_arriving is None or self._keys.nodes[kind.model].rest:
            own = [self.collection(kind, id, arriving=False), *self.ranges_beside(kind, id, must_find=must_find)]
            return own, self.ranges_at(kind, id, must_find=must_find)
        arriving = [Range(accesses.all_arriving, text)] if accesses.edges_at.get(kind.model) else []
        return [Range(accesses.all_leaving, text)], arriving

    def ranges_at(self, kind: NodeType, id: Any, *, must_find: bool = True) -> list[Range]:
        """Where all edges are that arrive at a node; edges of other nodes can be there too.

        Edges that cannot be found raise, or are left out if they need not be found.
        """
        edges = self._accesses.edges_at.get(kind.model, ())
        if not edges or self._accesses.all_arriving is not None:
            return [self.collection(kind, id, arriving=True)] if edges else []
        if not must_find:
            edges = tuple(edge for edge in edges if self._accesses.arriving[edge.model] is not None)
        node = Ref(kind.model, id)
        with _leaving_told():
            found = [(edge, each) for edge in edges for each in self.ranges_into(edge, edge.target.id(node))]
        return [self._complete(kind, edge, each, "arrive at") if must_find else each for edge, each in found]

    def collection(self, kind: NodeType, id: Any, *, arriving: bool) -> Range:
        """Where the node and its edges are. If it shares its partition, only its own items are read from there."""
        kind, id = kind.of(id)
        text = self.node_text(kind, id)
        if not arriving and self._keys.nodes[kind.model].rest:
            stem, values = self._accesses.stems[kind.model], kind.part_values(id)
            partition = self._keys.nodes[kind.model].partition.render(values)
            start = stem.render(values) if stem else ""
            return Range(self._accesses.own(kind, text, start), partition, stem=start)
        access = self._accesses.all_arriving if arriving else self._accesses.all_leaving
        return self._together_at(kind, id) if access is None else Range(access, text)

    def _together_at(self, kind: NodeType, id: Any) -> Range:
        """Where all edges are that arrive at a node, if a declared index has them in one partition."""
        if not self._keys.texts.declared:
            raise InvalidModel(
                f"the layout has no reverse index, so edges that arrive at a {kind.name} cannot be found; "
                f"give it one with reverse=Index(…)"
            )
        node = Ref(kind.model, id)
        edges = self._accesses.edges_at.get(kind.model, ())
        found = {edge.name: self.into(edge, edge.target.id(node)) for edge in edges}
        # One query reads them only if they are in one index, in one partition that is not sharded, without a range of
        # it.
        places = {(each.access.index, each.partition, each.number is None, not each.known) for each in found.values()}
        if len(places) != 1 or not all(places.copy().pop()):
            where = "; ".join(
                f"{name} in {each.access.index or 'the table'} at {each.partition!r}" for name, each in found.items()
            )
            raise InvalidModel(
                f"the layout has no reverse index, and no declared index has all edges that arrive at a {kind.name} in "
                f"one partition ({where or 'no class of edges arrives there'}); read each class with into, or give the "
                f"layout reverse=Index(…)"
            )
        one = next(iter(found.values()))
        return Range(self._accesses.at_target(kind, node, one.access), one.partition)

    def _complete(self, kind: NodeType, edge: EdgeType, found: Range, verb: str) -> Range:
        if not found.access.is_sparse:
            return found
        raise InvalidModel(
            f"the index {found.access.index!r} does not hold {edge.name} edges whose key would have a part that is "
            f"None, so not all that {verb} a {kind.name} can be found; give the layout reverse=Index(…), or delete "
            f'with edges="found", which leaves them'
        )

    def scan(self, kind: EntityType | None) -> ScanAccess:
        """Where a scan finds the items of a class; None for everything in the graph."""
        return ScanAccesses(self._keys).of(kind)


def _told_range(access: EdgeAccess, partition: Template, values: Mapping[str, Any]) -> Range:
    """The range of an access whose partition key is made of these values, in all its shards."""
    known = {name: values[name] for name in access.rest}
    mixed = [part for part in (access.sort.parts if access.sort else ()) if part.among and part.name in known]
    if mixed:
        # The key of a node of one class may begin as that of another class does, so what is read is compared.
        access = only_at(access, mixed[0], known)
    if not isinstance(partition, ShardedTemplate):
        return Range(access, partition.render(values), known)

    def at(shard: int) -> str:
        return partition.render({**values, SHARD: shard})

    return Range(access, at(partition.number.all[0]), known, number=partition.number, at=at)


@contextmanager
def _leaving_told() -> Iterator[None]:
    """Says, where edges cannot be found, that a delete may leave them."""
    try:
        yield
    except InvalidModel as error:
        raise InvalidModel(f'{error}, or delete with edges="found", which leaves them') from None
