"""The adjacency list: a node and its outgoing edges in one partition, and a reverse index for incoming edges.

    PK            SK                       GSI1PK       GSI1SK
    STUDENT#S1    #META                                                           the node
    STUDENT#S1    ENROLLMENT#COURSE#C1     COURSE#C1    ENROLLMENT#STUDENT#S1     an edge

The default templates escape the values in keys, so any id is safe. Templates that a program declares are literal,
because other programs that write the same table do not know the escape; `escape=True` turns it on.

`bound_layout` binds a layout to classes, for callers that open a graph or describe its table. Without a layout it binds
an adjacency list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidModel, shown
from adjoin.layouts.arguments import check_arguments
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Index, Keys, Layout
from adjoin.layouts.tenant_templates import without_tenant
from adjoin.schema import Schema
from adjoin.tables import KeyType, Throughput


@dataclass(frozen=True)
class AdjacencyList:
    """How an adjacency list is stored; every name and template can be adapted to an existing table."""

    table: str = "adjoin"
    partition_key: str = "PK"
    sort_key: str | None = "SK"
    """None for a table with a partition key only."""
    types: Mapping[str, KeyType] = field(default_factory=dict)
    """The types of keys of the table that are not text: {"id": "N"} for a number, {"hash": "B"} for binary."""
    node: str | None = None
    """The sort key of a node's own item: a constant, or "{node}" for the node key itself."""
    edge: str | None = None
    """The sort key of an edge."""
    type_attribute: str | None = None
    """An attribute that holds the label, if keys alone do not say of which class an item is."""
    reverse: Index | None = Index("GSI1", "GSI1PK", "GSI1SK")
    ordered: Index = Index("GSI2", "GSI2PK", "GSI2SK")
    """The index for the order of edges whose key does not contain it; created only if a class needs it."""
    indexed: Index = Index("GSI3", "GSI3PK", "GSI3SK")
    """The index for all indexed fields; created only if a class has one."""
    indexes: Sequence[Index] = ()
    """Further indexes, with templates of the classes in `keys`. One that has the name of an index above replaces it."""
    shards: int | None = None
    """How many shards each indexed field has in that index; None for as many as its load needs."""
    keys: Mapping[type[Any], Keys] = field(default_factory=dict)
    shared_ids: bool = False
    """Whether ids belong to all classes together, so that classes whose keys hold bare ids never have the same key."""
    escape: bool | None = None
    """Whether keys percent-encode characters that would end a part; None: only if all templates are the default."""
    throughput: Throughput | None = None
    """Provisioned capacity units; an index without its own has as many as the table."""
    stream: bool = True
    """Whether the table has a change stream."""
    point_in_time_recovery: bool = False
    deletion_protection: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_own_templates(self) -> bool:
        reverse = self.reverse and (self.reverse.partition or self.reverse.sort)
        return bool(self.node or self.edge or any(map(self.has_keys_of, self.keys)) or reverse)

    def has_keys_of(self, model: type[Any]) -> bool:
        """Whether `keys` says more of a class than its word in the type attribute."""
        own = self.keys.get(model)
        return own is not None and (own.type is None or replace(own, type=None) != Keys())

    def named(self, table: str) -> AdjacencyList:
        return replace(self, table=table)

    def bind(self, schema: Schema, tenant: str | None = None) -> BoundLayout:
        check_arguments(self, schema)
        layout, lead = without_tenant(self, schema)
        return BoundLayout(layout, schema, tenant, lead=lead)


def bound_layout(
    models: Iterable[type[Any]], layout: Layout | None, table: str | None = None, tenant: str | None = None
) -> BoundLayout:
    """The layout bound to the classes; by default an adjacency list. `table` replaces the layout's own table name."""
    if isinstance(layout, type) and hasattr(layout, "bind"):
        raise InvalidModel(f"{layout.__name__} is a class of layouts; pass an instance, such as {layout.__name__}()")
    if layout is not None and not hasattr(layout, "bind"):
        table_name = shown(layout) if isinstance(layout, str) else '"app"'
        raise InvalidModel(f"{shown(layout)} is not a layout; pass one such as AdjacencyList(table={table_name})")
    layout = layout or AdjacencyList()
    bound = (layout if table is None else layout.named(table)).bind(Schema(models), tenant)
    if not isinstance(bound.table, str) or not bound.table.isprintable():
        raise InvalidModel(f"{shown(bound.table)} is not a table name; use letters, digits, underscores, dots, hyphens")
    return bound
