"""The materialized graph: nodes and typed edges in one partition, and one index over their data.

    NodeId       TypeTarget             Data             GSIPK              Target         TypeSource
    PERSON#P1    PERSON#P1              Ann#PERSON#P1    PERSON#name#0                                        the node
    PERSON#P1    KNOWS_SKILL#SKILL#py   senior#PERS…     KNOWS_SKILL#le…    SKILL#py       KNOWS_SKILL#PER…   an edge

The first index is over `Data`: it is overloaded, so that it serves every indexed field of every class,
and each field is spread over shards of its own. The second is over the targets of edges: who is
connected to this date, place or skill.

Keys, items and where to look are the adjacency list's; what this layout is, is its names and templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from adjoin.layouts.adjacency_list import AdjacencyList, BoundAdjacencyList
from adjoin.layouts.interface import Index, Keys
from adjoin.schema import Schema
from adjoin.tables import Throughput


@dataclass(frozen=True)
class MaterializedGraph:
    """How a materialized graph is laid out; every name can be fitted to an existing table."""

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
    """How many shards each indexed field has; None for as many as it turns out to need."""
    target: str = "Target"
    """The partition key of the second index: the node that an edge leads to."""
    type_source: str = "TypeSource"
    """The sort key of the second index: the type of the edge and where it comes from."""
    type_attribute: str | None = None
    """An attribute that holds the label, such as "Type", where keys alone should not tell."""
    keys: Mapping[type[Any], Keys] = field(default_factory=dict)
    throughput: Throughput | None = None
    stream: bool = True
    point_in_time_recovery: bool = False
    deletion_protection: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)

    def named(self, table: str) -> MaterializedGraph:
        return replace(self, table=table)

    def bind(self, schema: Schema, tenant: str | None = None) -> BoundAdjacencyList:
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
