"""Which edge a rule group counts: its key and the node keys at its ends.

In: the item of an edge, a ledger, a record, or the page of a query. Out: an `EdgeRef`, the name by which `affected`,
`neighbours` and `reconciling` pass an edge on. It does not say whether the edge exists. The queries that find the edges
of a node are also here; `arrivals` adds those for edges that arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from adjoin.dataclass import dataclass
from adjoin.entity_types import CountedType, EdgeType, NodeType
from adjoin.errors import InvalidItem, InvalidKey
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.ranges import Range
from adjoin.plans.steps.batches import Place, place_of
from adjoin.requests import PageResponse, Plan, Query
from adjoin.rules import RuleGroup
from adjoin.values import Item

EDGE, NEAR, FAR = "edge", "near", "far"
"""The attributes of a record that name its edge: its key, and the node keys of its near and far node."""


@dataclass(slots=True, eq=False)
class EdgeRef:
    """An edge in one rule group, with the node keys of its near and far node. The edge may exist or not.

    The same edge in two rule groups is two references, because each has its own ledger or its own part of one.
    """

    group: RuleGroup
    key: Item
    near: str
    far: str

    place: tuple[str, Place] = field(init=False)
    """The name of the rule group and the key of the edge: what is different for each reference."""
    _ledger_key: Item | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.place = self.group.name, place_of(self.key)

    def ledger_key(self, layout: BoundLayout) -> Item:
        """The key of the ledger of the edge. It is computed once, because each step of reconciling needs it."""
        if self._ledger_key is None:
            self._ledger_key = self._make_ledger_key(layout)
        return self._ledger_key

    def _make_ledger_key(self, layout: BoundLayout) -> Item:
        if self.group.reads_far:
            return layout.ledgers.far_ledger_key(self.group.name, self.key, self.far)
        return layout.ledgers.ledger_key(self.key, self.target if self.group.is_at_target else None)

    @property
    def target(self) -> str:
        return self.far if self.group.hop.direction == "out" else self.near

    def near_key(self, layout: BoundLayout) -> Item:
        return key_of_node(layout, self.group.hop.near, self.near)

    def far_key(self, layout: BoundLayout) -> Item:
        return key_of_node(layout, self.group.hop.far, self.far)


def key_of_node(layout: BoundLayout, kind: NodeType, node_key: str) -> Item:
    """The key of a node's item, from its node key."""
    return layout.node_key(kind, layout.id_in(kind, node_key))


def ref_to(layout: BoundLayout, group: RuleGroup, item: Item, key: Item | None = None) -> EdgeRef:
    """The reference to an edge, from its item. `key` saves computing the key if the caller knows it."""
    source, target = layout.ends(group.edge, item)
    near, far = (source, target) if group.hop.direction == "out" else (target, source)
    return EdgeRef(group, layout.key_of(item) if key is None else key, near, far)


def counts(layout: BoundLayout, ref: EdgeRef) -> bool:
    """Whether the rule group of a reference counts its edge: the near node is of the class that has the rules."""
    only = ref.group.hop.only
    return only is None or layout.is_of(only, ref.near)


def refs_to(layout: BoundLayout, group: RuleGroup, items: Iterable[Item]) -> list[EdgeRef]:
    """References to edges, from their items. An item with an edge's key whose ends cannot be read is left out."""
    refs = []
    for item in items:
        try:
            refs.append(ref_to(layout, group, item))
        except (InvalidItem, InvalidKey):
            continue
    return refs


def ref_in(layout: BoundLayout, group: RuleGroup, record: Item) -> EdgeRef:
    """The reference to an edge, from a ledger beside its far node or from the record that it is set aside.

    Raises `InvalidItem` if another program changed the record.
    """
    key, near, far = edge_in(layout, record, EDGE), record.get(NEAR, {}).get("S"), record.get(FAR, {}).get("S")
    if near is None or far is None:
        raise InvalidItem(unreadable("the record", layout.key_of(record)))
    return EdgeRef(group, key, near, far)


def edge_in(layout: BoundLayout, record: Item, name: str) -> Item:
    """The key of an edge that an attribute of a ledger or record holds."""
    own = layout.key_of(record)
    key: Item = record.get(name, {}).get("M", {})
    if key.keys() != own.keys() or any(value.keys() != own[part].keys() for part, value in key.items()):
        raise InvalidItem(unreadable("the record", own))
    return key


def refs_in(layout: BoundLayout, group: RuleGroup, records: Iterable[Item]) -> list[EdgeRef]:
    """References to edges, from ledgers or records. One that another program changed is left out."""
    refs = []
    for record in records:
        try:
            refs.append(ref_in(layout, group, record))
        except InvalidItem:
            continue
    return refs


def unreadable(what: str, key: Item) -> str:
    """The message that an item of adjoin's own is not as adjoin wrote it."""
    shown = ", ".join(f"{name}={next(iter(value.values()))!r}" for name, value in key.items())
    return f"{what} ({shown}) was changed by another program and cannot be read; delete it, and run verify --repair"


def named_in(ref: EdgeRef) -> Item:
    """The attributes by which a record names its edge."""
    return {EDGE: {"M": dict(ref.key)}, NEAR: {"S": ref.near}, FAR: {"S": ref.far}}


def dependents(
    layout: BoundLayout, group: RuleGroup, far: str, start: Item | None
) -> Plan[tuple[list[EdgeRef], Item | None]]:
    """A page of the edges whose rules read a node at the far end, and the key from which the next page begins.

    They are found by their ledgers, which lie beside the far node for this purpose.
    """
    partition, sort = layout.ledgers.ledgers(group.name, far)
    response: PageResponse
    (response,) = yield (Query(layout.table, partition, sort, start=start, consistent=True, limit=PAGE),)
    return refs_in(layout, group, response.items), response.last


PAGE = 1000
"""Items per page of a query for edges."""


def queries_from(layout: BoundLayout, kind: CountedType, node_key: str) -> list[Query]:
    """The queries that find the edges of a class that leave a node, or its children. They may also find other items.

    They are read from the table, even if an index has them in order: only the table has strongly consistent reads.
    """
    return [_query(layout, each) for each in layout.ranges_from(kind, layout.id_in(kind.source, node_key))]


def queries_into(layout: BoundLayout, kind: CountedType, node_key: str) -> list[Query]:
    """The queries that find the edges of a class that arrive at a node. They may also find other items."""
    assert isinstance(kind, EdgeType), "a child is found from its parent only"
    return [_query(layout, each) for each in layout.ranges_into(kind, layout.id_in(kind.target, node_key))]


def _query(layout: BoundLayout, stretch: Range) -> Query:
    index = stretch.access.index
    return Query(layout.table, stretch.key, stretch.condition(), index, limit=PAGE, consistent=index is None)


def edges_in(layout: BoundLayout, kind: CountedType, page: PageResponse) -> list[Item]:
    """The items of edges of a class in a page."""
    return [item for item in page.items if not layout.is_bookkeeping(item) and layout.kind_of(item) is kind]


def counted_by(layout: BoundLayout, kind: CountedType) -> Iterator[RuleGroup]:
    """The rule groups in which edges or children of a class are counted."""
    return (group for group in layout.rules.groups if group.edge is kind)
