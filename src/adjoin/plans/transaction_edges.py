"""What a transaction writes with its edges: their copied fields, and aggregates that are updated in transaction.

The other writes of the transaction are taken into account. An edge copies the fields that a node will have; several
edges of one node change that node once; a node that is created with its first edges is created with their count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from adjoin.entity_types import EdgeType, NodeType
from adjoin.expressions import Not, all_of
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.copies import as_copied, copied, copies_on
from adjoin.plans.counting.entries import whole_copies
from adjoin.plans.counting.ledger import EdgeRef, key_of_node
from adjoin.plans.entity_write import refuse_copies
from adjoin.plans.in_transaction import (
    Companions,
    Written,
    companions,
    counted_in_transaction,
    counting_in_transaction,
    unmarked,
    waiting_at,
)
from adjoin.plans.steps.batches import (
    AnyRequest,
    Place,
    acted,
    get_all,
    joined,
    parts_of,
    place_of,
    stored_in,
    write_key,
    write_place,
)
from adjoin.plans.steps.purposes import Purpose
from adjoin.requests import Check, Delete, Get, Plan, Put, Update
from adjoin.units import MAX_TRANSACTION
from adjoin.values import Item

Named: TypeAlias = dict[Place, tuple[AnyRequest, Purpose]]
"""The writes of a transaction, each with its purpose."""


def add_companions(layout: BoundLayout, writes: Named, *, has_tried: bool) -> Plan[dict[Place, Item | None]]:
    """Adds what has to be written with these writes; returns the items that were read, which must not have changed.

    Edges that wait for a new node are looked up only if the transaction `has_tried` without them and failed.
    """
    edges = {place: kind for place, (write, _) in writes.items() if (kind := _edge_kind(layout, write)) is not None}
    copying = {place: kind for place, kind in edges.items() if copies_on(layout, kind) and _is_put(writes[place][0])}
    read: dict[Place, Item | None] = {}
    if copying:
        read |= yield from _fill(layout, writes, copying)
    counted = [
        Written(
            kind, write_key(layout, write), write.item if isinstance(write, Put) else None, *_ends(layout, kind, write)
        )
        for place, kind in edges.items()
        if counted_in_transaction(layout, kind) and isinstance(write := writes[place][0], Put | Delete)
    ]
    waiting: list[EdgeRef] = []
    for place, node in _coming(layout, writes).items():
        read |= yield from _arrive(layout, writes, place, node, waiting if has_tried else None)
    if not counted and not waiting:
        return read
    created = {place for place, (write, _) in writes.items() if _makes(write)}
    deleted = {place for place, (write, _) in writes.items() if isinstance(write, Delete)}
    made = yield from companions(layout, counted, created, waiting, deleted)
    if waiting and len(writes.keys() | made.writes.keys()) > MAX_TRANSACTION:
        # The waiting edges do not fit into the transaction. `maintain` counts them later.
        made = yield from companions(layout, counted, created, deleted=deleted)
    for place in made.stamps:
        writes[place] = made.on(layout, writes[place][0]), writes[place][1]
    _, cause = next((writes[place] for place in edges), next(iter(writes.values())))
    for place, write in made.writes.items():
        if place in writes:
            there, purpose = writes[place]
            # An index copy that both write as a whole is made of the joined node below.
            writes[place] = write if isinstance(write, Put | Delete) else joined(layout, there, write), purpose
        else:
            writes[place] = write, cause.beside("what its edges count")
    _share(layout, writes, made)
    return read | made.read


def _coming(layout: BoundLayout, writes: Named) -> dict[Place, NodeType]:
    """The nodes that these writes may create and that have aggregates which are updated in transaction."""
    found = {}
    for place, (write, _) in writes.items():
        # An update with the condition that the item exists creates no node.
        if isinstance(write, Put) or (isinstance(write, Update) and layout.present not in parts_of(write.condition)):
            item = stored_in(write)
            kind = None if layout.is_bookkeeping(item) else layout.kind_of(item)
            if isinstance(kind, NodeType) and counting_in_transaction(layout, kind):
                found[place] = kind
    return found


def _arrive(
    layout: BoundLayout, writes: Named, place: Place, kind: NodeType, waiting: list[EdgeRef] | None
) -> Plan[dict[Place, Item | None]]:
    """Adds a check that no edge waits for a node.

    With a list `waiting`, reads the node and its marker first, and adds the edges that wait to the list.
    """
    write, purpose = writes[place]
    assert isinstance(write, Put | Update)
    key = write_key(layout, write)
    node_key = layout.text_of(kind, key)
    marker_key = layout.ledgers.marker_key(node_key)
    read: dict[Place, Item | None] = {place_of(marker_key): None}
    if waiting is not None:
        keys = {place: key, place_of(marker_key): marker_key}
        found = yield from get_all([Get(layout.table, each, consistent=True) for each in keys.values()])
        read = dict(zip(keys, found, strict=True))
        is_there = read[place] is not None
        condition = all_of(write.condition, layout.present if is_there else Not(layout.present))
        writes[place] = replace(write, condition=condition), purpose
        if is_there:
            return {place: read[place]}
        if read[place_of(marker_key)] is not None:
            waiting += (yield from waiting_at(layout, kind, node_key, writes)) or ()
    writes[place_of(marker_key)] = (
        unmarked(layout, node_key, read[place_of(marker_key)]),
        purpose.beside("what waits for it"),
    )
    return read


def _share(layout: BoundLayout, writes: Named, made: Companions) -> None:
    """Writes the new aggregates of a node also into its index copies of the same transaction."""
    for place, counted in made.writes.items():
        write = writes[place][0]
        if not isinstance(counted, Update) or not isinstance(write, Put) or layout.is_bookkeeping(write.item):
            continue
        kind = layout.kind_of(write.item)
        if kind is not None and layout.managed.indexed[kind.model]:
            for whole in whole_copies(layout, kind, write.item):
                writes[write_place(layout, whole)] = whole, writes[place][1]
            continue
        item = write.item
        keys = [] if kind is None else [*layout.copy_keys(kind, layout.key_of(item)), *layout.element_keys(kind, item)]
        for copy in keys:
            there = writes.get(place_of(copy))
            if there is not None and isinstance(there[0], Put) and place_of(copy) not in made.writes:
                writes[place_of(copy)] = (
                    joined(layout, there[0], replace(counted, condition=layout.present)),
                    there[1],
                )


def _edge_kind(layout: BoundLayout, write: AnyRequest) -> EdgeType | None:
    item = stored_in(write)
    if isinstance(write, Check) or layout.is_bookkeeping(item):
        return None
    kind = layout.kind_of(item)
    return kind if isinstance(kind, EdgeType) else None


def _is_put(write: AnyRequest) -> bool:
    return isinstance(write, Put)


def _makes(write: AnyRequest) -> bool:
    return isinstance(write, Put | Update)


def _ends(layout: BoundLayout, kind: EdgeType, write: AnyRequest) -> tuple[str, str]:
    return layout.ends(kind, stored_in(write))


def _fill(layout: BoundLayout, writes: Named, edges: Mapping[Place, EdgeType]) -> Plan[dict[Place, Item | None]]:
    ends: dict[Place, dict[str, Item]] = {}
    for place, kind in edges.items():
        node_keys = dict(zip(("source", "target"), _ends(layout, kind, writes[place][0]), strict=True))
        ends[place] = {
            copy.end: key_of_node(layout, copy.node, node_keys[copy.end]) for copy in copies_on(layout, kind)
        }
    keys = {place_of(key): key for by_end in ends.values() for key in by_end.values()}
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    nodes = dict(zip(keys, found, strict=True))
    after = {place: _after(writes[place][0], item) if place in writes else item for place, item in nodes.items()}
    for place, kind in edges.items():
        write, purpose = writes[place]
        assert isinstance(write, Put)
        values = copied(layout, kind, {end: after[place_of(key)] for end, key in ends[place].items()})
        refuse_copies(layout, kind, write.item | values)
        item = layout.with_managed_keys(kind, write.item | values)
        writes[place] = replace(write, item=item), purpose
        for copy in whole_copies(layout, kind, item):
            # The index copies of a symmetric edge are beside one of its two items.
            if (there := writes.get(write_place(layout, copy))) is not None:
                writes[write_place(layout, copy)] = copy, there[1]
        for end, key in ends[place].items():
            check = Check(layout.table, key, as_copied(layout, kind, end, nodes[place_of(key)]))
            there = writes.get(place_of(key))
            if there is None:
                writes[place_of(key)] = check, purpose.beside("what it copies has changed")
            elif isinstance(there[0], Check):
                # A node that this transaction writes needs no check, and DynamoDB takes one operation per item.
                writes[place_of(key)] = joined(layout, there[0], check), there[1]
    return nodes


def _after(write: AnyRequest, item: Item | None) -> Item | None:
    """A node's item after a write; None if the write removes it."""
    if isinstance(write, Put):
        return write.item
    if isinstance(write, Delete):
        return None
    if isinstance(write, Check):
        return item
    return acted(item or {}, write.actions)
