"""The materialized graph: nodes and typed edges in one partition, and one index over their data.

    NodeId       TypeTarget             Data             GSIPK              Target         TypeSource
    PERSON#P1    PERSON#P1              Ann#PERSON#P1    PERSON#name#0                                        the node
    PERSON#P1    KNOWS_SKILL#SKILL#py   senior#PERS…     KNOWS_SKILL#le…    SKILL#py       KNOWS_SKILL#PER…   an edge

The first index is over `Data`. It is overloaded: it serves every indexed field of every class, and each field is spread
over shards of its own. The second index is over the targets of edges: which nodes are connected to this date, place or
skill.

Everything else is the adjacency list's code; this layout only has other names and templates.

The graph **as it was published** has bare ids that belong to all classes together, the plain value in `Data`, and a
number as the partition key of both indexes:

    NodeId    TypeTarget       Data          GSI PK
    1         PERSON|1         John Doe      3                  the node; 0…N-1, by a hash of its Data
    1         DATE|2|BIRTH     1980-12-19    3                  an edge, in the shard of its source
    2         DATE|2           1980-12-19    0                  a node that is a value: no edges leave it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, NodeType, NodeUnion
from adjoin.errors import InvalidModel
from adjoin.layouts.adjacency_list import AdjacencyList
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Index, Keys
from adjoin.schema import Schema
from adjoin.tables import KeyType, Throughput


@dataclass(frozen=True)
class MaterializedGraph:
    """How a materialized graph is stored; every name can be adapted to an existing table."""

    table: str = "adjoin"
    node: str = "NodeId"
    """The partition key: the node that an item belongs to."""
    type_target: str = "TypeTarget"
    """The sort key: for an edge its type and its target, for the node itself its own key."""
    data: str = "Data"
    """The sort key of the first index: the value of the indexed field."""
    shard: str = "GSIPK"
    """The partition key of the first index: class, field and shard."""
    shards: int | None = None
    """How many shards each indexed field has; None for as many as its load needs."""
    target: str = "Target"
    """The partition key of the second index: the node that an edge leads to."""
    type_source: str = "TypeSource"
    """The sort key of the second index: the type of the edge and where it comes from."""
    type_attribute: str | None = None
    """An attribute that holds the label, such as "Type", if keys alone do not say of which class an item is."""
    keys: Mapping[type[Any], Keys] = field(default_factory=dict)
    throughput: Throughput | None = None
    stream: bool = True
    point_in_time_recovery: bool = False
    deletion_protection: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def as_published(
        cls,
        shards: int,
        *,
        table: str = "adjoin",
        indexes: tuple[str, str] = ("GSI1", "GSI2"),
        types: Mapping[str, KeyType] | None = None,
        keys: Mapping[type[Any], Keys] | None = None,
    ) -> PublishedGraph:
        """Returns the layout of the published table: bare ids, `DATE|2|BIRTH`, plain values, two sharded indexes.

        Each class has a field with the alias "Data". Edges also have a copy of that field of their source, such as
        `Copy("source.name")`, which chooses their shard. `indexes` names the index over "Data" and the one over
        "TypeTarget". `types={"GSI PK": "N"}` is for a table that has the shard as a number. `keys` replaces templates
        of single classes.
        """
        return PublishedGraph(table, shards, indexes, types or {}, keys or {})

    def named(self, table: str) -> MaterializedGraph:
        return replace(self, table=table)

    def bind(self, schema: Schema, tenant: str | None = None) -> BoundLayout:
        return self._as_adjacency_list().bind(schema, tenant)

    def _as_adjacency_list(self) -> AdjacencyList:
        return AdjacencyList(
            table=self.table,
            partition_key=self.node,
            sort_key=self.type_target,
            node="{node}",
            type_attribute=self.type_attribute,
            reverse=Index("GSI2", self.target, self.type_source),
            ordered=Index("GSI3", "Source", "TypeOrder"),
            indexed=Index("GSI1", self.shard, self.data),
            shards=self.shards,
            keys=self.keys,
            escape=not self.keys,
            throughput=self.throughput,
            stream=self.stream,
            point_in_time_recovery=self.point_in_time_recovery,
            deletion_protection=self.deletion_protection,
            tags=self.tags,
        )


@dataclass(frozen=True)
class PublishedGraph:
    """The materialized graph as it was published; see `MaterializedGraph.as_published`."""

    table: str
    shards: int
    indexes: tuple[str, str] = ("GSI1", "GSI2")
    """The names of the index over "Data" and of the one over "TypeTarget"."""
    types: Mapping[str, KeyType] = field(default_factory=dict)
    """The type of "GSI PK", if it is a number."""
    keys: Mapping[type[Any], Keys] = field(default_factory=dict)

    def named(self, table: str) -> PublishedGraph:
        return replace(self, table=table)

    def bind(self, schema: Schema, tenant: str | None = None) -> BoundLayout:
        for kind in schema.types:
            if _DATA not in kind.attributes.values():
                raise InvalidModel(
                    f"{kind.name} has no field that is stored as {_DATA!r}, which both nodes and edges of this layout "
                    f'have; give one of its fields the alias "{_DATA}"'
                )
        own = {kind.model: self._keys(schema, kind) for kind in schema.types}
        is_spread = any(isinstance(kind, EdgeType) or _is_spread(schema, kind) for kind in schema.types)
        layout = AdjacencyList(
            table=self.table,
            partition_key="NodeId",
            sort_key="TypeTarget",
            reverse=None,
            shared_ids=True,
            indexes=[
                Index(
                    name,
                    "GSI PK",
                    sort,
                    shards=self.shards if is_spread else None,
                    shard_by=_DATA if is_spread else None,
                    types=self.types,
                )
                for name, sort in zip(self.indexes, (_DATA, "TypeTarget"), strict=True)
            ],
            keys=own,
        )
        return layout.bind(schema, tenant)

    def _keys(self, schema: Schema, kind: EntityType) -> Keys:
        if isinstance(kind, EdgeType):
            for side, node in (("source", kind.source), ("target", kind.target)):
                if isinstance(node, NodeUnion):
                    raise InvalidModel(
                        f"the {side} of {kind.name} is {node.name}, but the keys of this layout have bare ids, which "
                        f"do not say the class; declare edges with one class at each end"
                    )
            end, name = "target.", f"{kind.target.label}|"
            partition, tail, is_spread = "{source}", f"|{kind.label}", True
            parts = kind.target.parts
        else:
            assert isinstance(kind, NodeType)
            end, name, tail, parts = "", f"{kind.label}|", "", kind.key
            partition = "{parent}" if kind.parent is not None else "|".join(f"{{{part}}}" for part in parts)
            is_spread = _is_spread(schema, kind)
        sort = name + "|".join(f"{{{end}{part}}}" for part in parts) + tail
        given = self.keys.get(kind.model, Keys())
        return replace(
            given,
            partition=given.partition or partition,
            sort=given.sort or sort,
            indexes={self.indexes[0]: "{shard}" if is_spread else "0", **given.indexes},
        )


def _is_spread(schema: Schema, kind: EntityType) -> bool:
    """Whether nodes of a class are spread over the shards: those that have edges or children, and children.

    Other nodes are values. A child is in the shard of its own value.
    """
    if isinstance(kind, NodeType) and (kind.parent is not None or schema.children(kind)):
        return True
    return any(edge.source is kind for edge in schema.edges.values())


_DATA = "Data"
