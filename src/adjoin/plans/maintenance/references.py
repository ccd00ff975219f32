"""Which edges to look at: named by a change, by a node at their far end, or by the node they count for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from adjoin.errors import InvalidItem, InvalidKey
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import Place, place_of
from adjoin.requests import PageResponse, Query
from adjoin.rules import Account
from adjoin.schema import EdgeType, NodeType
from adjoin.values import Item

EDGE, NEAR, FAR = "edge", "near", "far"
"""The attributes of a record that name its edge: the key of it, and the partition keys of the nodes at its ends."""


@dataclass(frozen=True, eq=False)
class EdgeRef:
    """An edge that an account counts, there or not, and the partition keys of the nodes at its ends."""

    account: Account
    key: Item
    near: str
    far: str

    @cached_property
    def place(self) -> tuple[str, Place]:
        return self.account.name, place_of(self.key)

    def ledger_key(self, layout: BoundLayout) -> Item:
        if self.account.reads_far:
            return layout.ledgers.far_ledger_key(self.account.name, self.key, self.far)
        return layout.ledgers.ledger_key(self.key, self.target if self.account.is_at_target else None)

    @property
    def target(self) -> str:
        return self.far if self.account.hop.direction == "out" else self.near

    def near_key(self, layout: BoundLayout) -> Item:
        return key_of_node(layout, self.account.hop.near, self.near)

    def far_key(self, layout: BoundLayout) -> Item:
        return key_of_node(layout, self.account.hop.far, self.far)


def key_of_node(layout: BoundLayout, kind: NodeType, text: str) -> Item:
    """The key of a node, by its partition key."""
    return layout.node_key(kind, layout.id_in(kind, text))


def ref_to(layout: BoundLayout, account: Account, item: Item) -> EdgeRef:
    source, target = layout.ends(account.edge, item)
    near, far = (source, target) if account.hop.direction == "out" else (target, source)
    return EdgeRef(account, layout.key_of(item), near, far)


def refs_to(layout: BoundLayout, account: Account, items: Iterable[Item]) -> list[EdgeRef]:
    """The edges that items are, without what only has the key of one and leads nowhere."""
    refs = []
    for item in items:
        try:
            refs.append(ref_to(layout, account, item))
        except (InvalidItem, InvalidKey):
            continue
    return refs


def ref_in(layout: BoundLayout, account: Account, record: Item) -> EdgeRef:
    """The edge that a ledger beside a far node, or a record of one that is set aside, is about."""
    return EdgeRef(account, record[EDGE]["M"], record[NEAR]["S"], record[FAR]["S"])


def named_in(ref: EdgeRef) -> Item:
    """The attributes by which a record names its edge."""
    return {EDGE: {"M": dict(ref.key)}, NEAR: {"S": ref.near}, FAR: {"S": ref.far}}


def dependents(
    layout: BoundLayout, account: Account, far: str, start: Item | None
) -> Plan[tuple[list[EdgeRef], Item | None]]:
    """Some edges that read a node at their far end, and where to go on."""
    partition, sort = layout.ledgers.ledgers(account.name, far)
    response: PageResponse
    (response,) = yield (Query(layout.table, partition, sort, start=start, consistent=True, limit=PAGE),)
    return [ref_in(layout, account, item) for item in response.items], response.last


PAGE = 1000
"""Edges that are looked up and applied together."""


def edges_at(
    layout: BoundLayout, kind: EdgeType, node: NodeType, text: str, leaving: bool, start: Item | None
) -> Plan[tuple[list[Item], Item | None]]:
    """Some items of edges of a class at a node, and where to go on."""
    response: PageResponse
    (response,) = yield (query_at(layout, kind, node, text, leaving, start),)
    return edges_in(layout, kind, response), response.last


def query_at(
    layout: BoundLayout, kind: EdgeType, node: NodeType, text: str, leaving: bool, start: Item | None = None
) -> Query:
    """What finds the edges of a class at a node, among others."""
    id = layout.id_in(node, text)
    # What leaves a node is read from the table, which is strongly consistent, even where an index has its order.
    stretch = layout.collection(node, id, arriving=False) if leaving else layout.into(kind, id)
    access = stretch.access
    return Query(
        layout.table,
        (access.partition_key, {"S": stretch.partition}),
        stretch.condition(),
        access.index,
        start=start,
        limit=PAGE,
        consistent=access.index is None,
    )


def edges_in(layout: BoundLayout, kind: EdgeType, page: PageResponse) -> list[Item]:
    return [item for item in page.items if not layout.is_bookkeeping(item) and layout.kind_of(item) is kind]


def counted_by(layout: BoundLayout, kind: EdgeType) -> Iterator[Account]:
    """The accounts in which edges of a class are counted."""
    return (account for account in layout.rules.accounts if account.edge is kind)
