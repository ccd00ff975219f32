"""Aggregates with consistency="transaction": the writes that share an edge's own transaction.

The plan first reads the ledger and the near node. The edge's transaction then also writes the node's aggregates and
the new ledger, on condition that both are still what was read. The old edge need not be read, because its ledger says
what it contributed. Maintenance then finds nothing left to do; it still handles what no program writes, such as items
that expire.

In rule groups with `is_stamped`, a new edge has a stamp instead of a ledger. Where edges may have stamps, the old edge
is read too, and is written on condition that its stamp is what was read.

A node may be created after edges that wait for it: `Coming` counts those with the node. `counted_deletion` deletes a
node together with its edges.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace

from adjoin.dataclass import dataclass
from adjoin.entity_types import AnyEdge, EdgeType, EntityType, NodeType
from adjoin.errors import TransactionCanceled
from adjoin.evaluate import condition_test
from adjoin.expressions import Condition, Not, all_of
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import STAMP
from adjoin.plans.counting.arrivals import counting, lookups
from adjoin.plans.counting.edge_state import AnyWrite, EdgeState
from adjoin.plans.counting.ledger import EdgeRef, counts, ledger_held
from adjoin.plans.counting.node_transaction import MARKED, Near, NodeTransaction, merged, performed
from adjoin.plans.deletion import UNMARKED, visible
from adjoin.plans.shards import fresh_numbers
from adjoin.plans.steps.again import (
    AGAIN,
    Again,
    Attempt,
    Failure,
    disconnected_satellites,
    new_revision,
    same,
    until_written,
)
from adjoin.plans.steps.batches import AnyRequest, Pages, Place, get_all, joined, place_of, write_place
from adjoin.requests import Check, Delete, Get, Plan, Put, TransactWrite, Update
from adjoin.rules import RuleGroup
from adjoin.units import MAX_TRANSACTION
from adjoin.values import AttributeValue, Item


@dataclass(frozen=True)
class Written:
    """An item of an edge as it will be (None if it is removed), and the node keys of its ends."""

    kind: EdgeType
    key: Item
    item: Item | None
    source: str
    target: str


@dataclass
class Companions:
    """The writes that go into the transaction of some edges."""

    writes: dict[Place, AnyRequest] = field(default_factory=dict)
    read: dict[Place, Item | None] = field(default_factory=dict)
    """The nodes, ledgers and old edges from which the writes were computed, as they were read."""
    stamps: dict[Place, AttributeValue | None] = field(default_factory=dict)
    """The stamp of each edge that may have one, by its key; None for an edge that gets none."""
    _present: Condition | None = None

    def held(self, place: Place) -> Condition | None:
        """The condition that an edge has the stamp that was read; None if edges of its class have no stamps."""
        if place not in self.stamps:
            return None
        before = self.read[place]
        if before is None:
            return None if self._present is None else Not(self._present)
        return same(before, STAMP)

    def stamped(self, place: Place, item: Item) -> Item:
        """The item of an edge with its stamp."""
        if place not in self.stamps:
            return item
        stamp = self.stamps[place]
        left = {name: value for name, value in item.items() if name != STAMP}
        return left if stamp is None else left | {STAMP: stamp}

    def on(self, layout: BoundLayout, write: AnyRequest) -> AnyRequest:
        """The write of one of the edges with its stamp, on condition that the stamp is what was read."""
        place = write_place(layout, write)
        if place not in self.stamps or isinstance(write, Update | Check):
            return write
        held = all_of(write.condition, self.held(place))
        if isinstance(write, Delete):
            return replace(write, condition=held)
        return replace(write, item=self.stamped(place, write.item), condition=held)


def counted_in_transaction(layout: BoundLayout, kind: EntityType) -> list[RuleGroup]:
    """The rule groups over a class of edges that have a rule with consistency="transaction"."""
    if not layout.rules.groups:
        return []
    return [
        group
        for group in layout.rules.groups
        if group.edge is kind and any(rule.in_transaction for rule in group.rules)
    ]


def counting_in_transaction(layout: BoundLayout, kind: EntityType) -> list[RuleGroup]:
    """The rule groups whose aggregates are on a class of nodes and that have a rule with consistency="transaction"."""
    return [
        group
        for group in layout.rules.groups
        if group.hop.near is kind and any(rule.in_transaction for rule in group.rules)
    ]


def written_edge(layout: BoundLayout, kind: EdgeType, edge: AnyEdge, items: Sequence[Item]) -> list[Written]:
    return written_between(layout, kind, edge.source, edge.target, [(layout.key_of(item), item) for item in items])


def written_between(
    layout: BoundLayout, kind: EdgeType, source: object, target: object, items: Sequence[tuple[Item, Item | None]]
) -> list[Written]:
    """The items of an edge between two ids: one, or two in this order if it is symmetric."""
    node_keys = layout.node_text(kind.source, source), layout.node_text(kind.target, target)
    ends = [node_keys, node_keys[::-1]]
    return [Written(kind, key, item, *nodes) for (key, item), nodes in zip(items, ends, strict=False)]


def companions(
    layout: BoundLayout,
    written: Sequence[Written],
    created: Collection[Place] = (),
    waiting: Sequence[EdgeRef] = (),
    deleted: Collection[Place] = (),
) -> Plan[Companions]:
    """The writes that go into one transaction with these items.

    `created` and `deleted` are nodes that the transaction creates or deletes. `waiting` are edges that already exist
    and count for a created node. They are read, and the transaction is conditional on what was read.
    """
    own = [(_ref(group, each), each.item) for each in written for group in counted_in_transaction(layout, each.kind)]
    own = [(ref, item) for ref, item in own if counts(layout, ref)]
    named = [ref for ref, _ in own] + [*waiting]
    keys = {place_of(key): key for ref in named for key in (ref.ledger_key(layout), ref.near_key(layout))}
    keys |= {place_of(ref.key): ref.key for ref in (*(ref for ref, _ in own if ref.group.has_stamps), *waiting)}
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    items = dict(zip(keys, found, strict=True))
    refs = own + [(ref, items[place_of(ref.key)]) for ref in waiting]
    node_transactions: dict[str, NodeTransaction] = {}
    made = Companions(read=items, _present=layout.present)
    edges = {place_of(each.key) for each in written}
    for ref, item in refs:
        key = ref.near_key(layout)
        there = items[place_of(key)]
        if there is None and place_of(key) in created:
            there = {}
        node_transaction = node_transactions.setdefault(
            ref.near, NodeTransaction(Near(ref.group.hop.near, ref.near, key, there))
        )
        ledger = items[place_of(ref.ledger_key(layout))]
        near, place = node_transaction.near, place_of(ref.key)
        state = EdgeState(
            ref,
            item,
            ledger,
            near.item,
            None,
            near.generation,
            near.next,
            has_ranks_within=True,
            stamp=(items.get(place) or {}).get(STAMP),
            ends=place_of(key) in deleted,
        )
        state.work_out(layout)
        if ref.group.has_stamps and place in edges:
            made.stamps[place] = state.stamped(is_new=items[place] is None)
        node_transaction.states.append(state)
    writes: dict[Place, AnyWrite] = {}
    for node_transaction in node_transactions.values():
        node_transaction.write_down(layout)
        for write in (*node_transaction.all_writes(layout), *_unwritten(layout, node_transaction)):
            place = write_place(layout, write)
            if place not in edges:
                writes[place] = merged(writes.get(place), write)
    made.writes = dict(zip(writes, performed(layout, writes.values()), strict=True))
    return made


def _ref(group: RuleGroup, each: Written) -> EdgeRef:
    near, far = (each.source, each.target) if group.hop.direction == "out" else (each.target, each.source)
    return EdgeRef(group, each.key, near, far)


def _unwritten(layout: BoundLayout, node_transaction: NodeTransaction) -> list[AnyWrite]:
    """Checks that ledgers which need no write stay what was read, also where there is none."""
    return [
        ledger_held(layout, state.ref, state.ref.ledger_key(layout), state.item)
        for state in node_transaction.states
        if state.is_reconciled
    ]


# --- removing an edge --------------------------------------------------------------------------


def disconnect_counted(
    layout: BoundLayout,
    kind: EdgeType,
    source: object,
    target: object,
    keys: Sequence[Item],
    lock: Condition | None = None,
) -> Plan[bool]:
    """Removes an edge and its contributions, if it has the version that a lock asks for; returns whether it existed.

    It existed if `edge` would have returned it.
    """
    others = disconnected_satellites(layout, kind, source, target, keys)
    written = written_between(layout, kind, source, target, [(key, None) for key in keys])
    wanted = all_of(layout.present, UNMARKED, lock)
    is_shown = True

    def attempt() -> Plan[Attempt[bool]]:
        more = yield from companions(layout, written)
        deletes = [more.on(layout, Delete(layout.table, key, wanted)) for key in keys]
        writes = (*deletes, *others, *more.writes.values())
        return Attempt((TransactWrite(writes),), lambda _: is_shown, failed)

    def failed(failure: Failure) -> Plan[bool | Again]:
        nonlocal wanted, is_shown, others
        assert isinstance(failure, TransactionCanceled)
        own = failure.reasons[: len(keys)]
        met = [reason.item for reason in own if reason.is_failed_condition]
        if met == [None] * len(keys):
            return False
        # A claim that another edge has taken over stays.
        claims = zip(others, failure.reasons[len(keys) : len(keys) + len(others)], strict=True)
        others = [each for each, reason in claims if not reason.is_failed_condition]
        if not (failure.retryable or failure.has_failed_condition):
            raise failure
        if met and all(item is not None and _holds(wanted, item) for item in met):
            # Only the stamp is another one.
            return AGAIN
        if met:
            # A one-sided edge does not count as an edge, and its item is removed in any case. For an edge with the mark
            # of a delete, the deletion record says whether it still existed.
            there = [dict(item) for item in met if item is not None]
            is_shown = None not in met and bool((yield from visible(layout, there)))
            wanted = lock if is_shown else None
            if wanted is not None and not all(map(condition_test(wanted), there)):
                raise failure
        return AGAIN

    return (yield from until_written(attempt))


def _holds(wanted: Condition | None, item: Mapping[str, AttributeValue]) -> bool:
    return wanted is None or condition_test(wanted)(dict(item))


# --- nodes for which edges wait ----------------------------------------------------------------


def marker(layout: BoundLayout, kind: NodeType, node_key: str) -> list[Put]:
    """The waiting marker that a deleted node leaves; none if no aggregate of the class is updated in transaction."""
    if not counting_in_transaction(layout, kind):
        return []
    return [Put(layout.table, layout.ledgers.marker_key(node_key) | {MARKED: new_revision()})]


@dataclass
class Arrived:
    """The condition for writing a node, and the writes that go with it."""

    condition: Condition | None = None
    counted: AnyRequest | None = None
    """The write of the node's own item that sets what its waiting edges contribute."""
    writes: list[AnyRequest] = field(default_factory=list)
    read: list[Item | None] = field(default_factory=list)
    """The node as it was read; empty if it was not read."""

    def on(self, layout: BoundLayout, item: Item) -> Item:
        """The item of the node with the contributions of its waiting edges."""
        if self.counted is None:
            return item
        made = joined(layout, Put(layout.table, item), self.counted)
        assert isinstance(made, Put)
        return made.item


@dataclass
class Coming:
    """One write of a whole node, which may create it.

    The first attempt reads nothing, because edges seldom wait for a node.
    """

    has_tried: bool = False

    def look(self, layout: BoundLayout, kind: NodeType, key: Item, room: int) -> Plan[Arrived]:
        """What is written with the node, in at most `room` writes."""
        node_key = layout.text_of(kind, key)
        if not counting_in_transaction(layout, kind):
            return Arrived()
        if not self.has_tried:
            self.has_tried = True
            return Arrived(writes=[unmarked(layout, node_key, None)])
        there, left = yield from get_all(
            [Get(layout.table, each, consistent=True) for each in (key, layout.ledgers.marker_key(node_key))]
        )
        if there is not None:
            return Arrived(layout.present, read=[there])
        waiting = (yield from waiting_at(layout, kind, node_key)) if left is not None else []
        made: dict[Place, AnyRequest] = {}
        if waiting:
            made = (yield from companions(layout, (), {place_of(key)}, waiting)).writes
        if waiting is None or len(made) > room:
            # Too many edges wait for one transaction. The marker stays, and maintenance counts them later.
            return Arrived(Not(layout.present), None, [unmarked(layout, node_key, left)], [None])
        counted = made.pop(place_of(key), None)
        return Arrived(Not(layout.present), counted, [met(layout, kind, node_key, left), *made.values()], [None])


def unmarked(layout: BoundLayout, node_key: str, left: Item | None) -> Check:
    """Holds as long as no more edges wait for a node than when its waiting marker was read (`left`)."""
    key = layout.ledgers.marker_key(node_key)
    return Check(layout.table, key, Not(layout.present) if left is None else same(left, MARKED))


def met(layout: BoundLayout, kind: NodeType, node_key: str, left: Item | None) -> Check | Delete:
    """The same check where all waiting edges are counted: it removes the marker, unless another rule needs it."""
    check = unmarked(layout, node_key, left)
    if left is None or len(counting(layout, kind)) > len(counting_in_transaction(layout, kind)):
        return check
    return Delete(check.table, check.key, check.condition)


def waiting_at(
    layout: BoundLayout, kind: NodeType, node_key: str, without: Collection[Place] = ()
) -> Plan[Sequence[EdgeRef] | None]:
    """The edges that a node counts in transaction, except those in `without`; None if a transaction cannot take all."""
    refs: dict[tuple[str, Place], EdgeRef] = {}
    if layout.shard_numbers:
        yield from fresh_numbers(layout)
    pages = Pages((each, each.query) for each in lookups(layout, kind, node_key, counting_in_transaction(layout, kind)))
    while found := (yield from pages.next()):
        for lookup, page in found:
            # The same edge may be found twice: by its ledger, and in the index.
            refs |= {ref.place: ref for ref in lookup.refs(layout, page) if place_of(ref.key) not in without}
        if len(refs) > MAX_TRANSACTION:
            return None
    return [*refs.values()]
