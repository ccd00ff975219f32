"""Aggregates with consistency="transaction": what is written together with an edge.

The ledger and the near node are read first; what the edge adds then goes into its own transaction, with
the new ledger, as long as both are what was read. The old edge need not be known, for its ledger says
what it added. The stream finds nothing left to do, and does what only it can: edges that expire, and
those of nodes that come later.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from adjoin.errors import TransactionCanceled
from adjoin.expressions import Action, And, Condition, all_of
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import Place, get_all, place_of
from adjoin.plans.deletion import delete_node, refuse_stale
from adjoin.plans.maintenance.entries import AnyWrite, Entry
from adjoin.plans.maintenance.ledger import ledger_held
from adjoin.plans.maintenance.postings import Near, Posting, acted, merged, performed, write_key
from adjoin.plans.maintenance.references import EdgeRef, edges_at
from adjoin.requests import Check, Delete, Get, Put, TransactWrite, Update
from adjoin.rules import Account
from adjoin.schema import AnyEdge, EdgeType, EntityType, NodeType
from adjoin.values import Item

AnyRequest: TypeAlias = Put | Update | Delete | Check


@dataclass(frozen=True)
class Written:
    """An item of an edge as it will be, None if it goes, and the partition keys of its ends."""

    kind: EdgeType
    key: Item
    item: Item | None
    source: str
    target: str


@dataclass
class Companions:
    """What is written together with edges."""

    writes: dict[Place, AnyRequest] = field(default_factory=dict)
    absent: set[Place] = field(default_factory=set)
    """Nodes that are not there, and so count nothing."""
    read: dict[Place, Item | None] = field(default_factory=dict)
    """The nodes and ledgers that it was made of, as they were."""


def counted_at_once(layout: BoundLayout, kind: EntityType) -> list[Account]:
    """The accounts of a class of edges with a rule that holds at every instant."""
    return [
        account
        for account in layout.rules.accounts
        if account.edge is kind and any(rule.in_transaction for rule in account.rules)
    ]


def written_edge(layout: BoundLayout, kind: EdgeType, edge: AnyEdge, items: Sequence[Item]) -> list[Written]:
    return written_between(layout, kind, edge.source, edge.target, [(layout.key_of(item), item) for item in items])


def written_between(
    layout: BoundLayout, kind: EdgeType, source: object, target: object, items: Sequence[tuple[Item, Item | None]]
) -> list[Written]:
    """The items of an edge between two ids: one, or two in this order if it is symmetric."""
    texts = layout.node_text(kind.source, source), layout.node_text(kind.target, target)
    ends = [texts, texts[::-1]]
    return [Written(kind, key, item, *some) for (key, item), some in zip(items, ends, strict=False)]


def companions(layout: BoundLayout, written: Sequence[Written], created: Collection[Place] = ()) -> Plan[Companions]:
    """What goes into one transaction with these items; `created` are nodes that the transaction makes."""
    refs = [(_ref(account, each), each.item) for each in written for account in counted_at_once(layout, each.kind)]
    keys = {place_of(key): key for ref, _ in refs for key in (ref.ledger_key(layout), ref.near_key(layout))}
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    items = dict(zip(keys, found, strict=True))
    postings: dict[str, Posting] = {}
    made = Companions(read=items)
    for ref, item in refs:
        key = ref.near_key(layout)
        there = items[place_of(key)]
        if there is None and place_of(key) in created:
            there = {}
        posting = postings.setdefault(ref.near, Posting(Near(ref.account.hop.near, ref.near, key, there)))
        ledger = items[place_of(ref.ledger_key(layout))]
        near = posting.near
        entry = Entry(ref, item, ledger, near.item, None, near.life, near.next)
        entry.work_out(layout)
        posting.entries.append(entry)
    edges = {place_of(each.key) for each in written}
    writes: dict[Place, AnyWrite] = {}
    for posting in postings.values():
        posting.write_down(layout)
        for write in (*posting.all_writes(layout), *_unread(layout, posting)):
            place = place_of(write_key(layout, write))
            if place not in edges:
                writes[place] = merged(writes.get(place), write)
        if posting.near.item is None:
            made.absent.add(place_of(posting.near.key))
    made.writes = dict(zip(writes, performed(layout, writes.values()), strict=True))
    return made


def _ref(account: Account, each: Written) -> EdgeRef:
    near, far = (each.source, each.target) if account.hop.direction == "out" else (each.target, each.source)
    return EdgeRef(account, each.key, near, far)


def _unread(layout: BoundLayout, posting: Posting) -> list[AnyWrite]:
    """Ledgers that are not there and need not be, but must not come in between."""
    return [
        ledger_held(layout, entry.ref, entry.ref.ledger_key(layout), entry.item)
        for entry in posting.entries
        if entry.ledger is None and not entry.is_kept
    ]


def together(layout: BoundLayout, write: AnyRequest, companion: AnyRequest) -> AnyRequest:
    """One write of a node for a program's own and what it counts, because a transaction takes an item once."""
    if isinstance(companion, Check) and isinstance(write, Check):
        condition = all_of(write.condition, companion.condition)
        assert condition is not None
        return Check(write.table, write.key, condition)
    if isinstance(write, Check):
        assert isinstance(companion, Update)
        return Update(companion.table, companion.key, companion.actions, all_of(write.condition, companion.condition))
    if isinstance(write, Delete):
        return write
    # A node that this transaction makes is not there yet, and one that it changes was checked to be.
    condition = all_of(write.condition, *_beyond_presence(layout, companion))
    if isinstance(companion, Check):
        return (
            Put(write.table, write.item, condition)
            if isinstance(write, Put)
            else Update(write.table, write.key, write.actions, condition)
        )
    assert isinstance(companion, Update)
    if isinstance(write, Update):
        return Update(write.table, write.key, (*write.actions, *_not_in(write, companion)), condition)
    return Put(write.table, acted(write.item, companion.actions), condition)


def _beyond_presence(layout: BoundLayout, companion: AnyRequest) -> list[Condition]:
    condition = companion.condition
    parts = condition.conditions if isinstance(condition, And) else (condition,)
    return [part for part in parts if part is not None and part != layout.present]


def _not_in(write: Update, companion: Update) -> list[Action]:
    there = {action.path for action in write.actions}
    return [action for action in companion.actions if action.path not in there]


# --- verbs -------------------------------------------------------------------------------------

ATTEMPTS = 50


def disconnect_counted(
    layout: BoundLayout,
    kind: EdgeType,
    source: object,
    target: object,
    keys: Sequence[Item],
    lock: Condition | None = None,
) -> Plan[bool]:
    """Removes an edge and what it added, if it has the version that a lock asks for; says whether it was there."""
    copies = [Delete(layout.table, copy) for key in keys for copy in layout.copy_keys(kind, key)]
    written = written_between(layout, kind, source, target, [(key, None) for key in keys])
    for attempt in range(1, ATTEMPTS + 1):
        more = yield from companions(layout, written)
        deletes = [Delete(layout.table, key, all_of(layout.present, lock)) for key in keys]
        try:
            yield (TransactWrite((*deletes, *copies, *more.writes.values())),)
            return True
        except TransactionCanceled as canceled:
            failed = [reason.code == "ConditionalCheckFailed" for reason in canceled.reasons]
            if lock is not None and any(reason.item is not None for reason in canceled.reasons[: len(keys)]):
                raise
            if all(failed[: len(keys)]):
                return False
            if attempt == ATTEMPTS or not (any(failed) or canceled.retryable):
                raise
    return False


def delete_counted(layout: BoundLayout, kind: NodeType, id: object, lock: Condition | None = None) -> Plan[bool]:
    """Removes a node, if it has the version that a lock asks for.

    Edges that others count at every instant go first, each with what it added.
    """
    text = layout.node_text(kind, id)
    if lock is not None:
        (node,) = yield from get_all([Get(layout.table, layout.node_key(kind, id), consistent=True)])
        refuse_stale(kind, id, node, lock)
    for edge in layout.schema.edges.values():
        if not counted_at_once(layout, edge):
            continue
        for is_leaving, end in ((True, edge.source), (False, edge.target)):
            if end is kind and (is_leaving or not edge.symmetric):
                yield from _disconnect_at(layout, edge, kind, text, is_leaving)
    return (yield from delete_node(layout, kind, id, lock))


def _disconnect_at(layout: BoundLayout, edge: EdgeType, kind: NodeType, text: str, is_leaving: bool) -> Plan[None]:
    start: Item | None = None
    while True:
        items, start = yield from edges_at(layout, edge, kind, text, is_leaving, start)
        for item in items:
            source, target = layout.ends(edge, item)
            ids = layout.id_in(edge.source, source), layout.id_in(edge.target, target)
            keys = [layout.key_of(item), *layout.twin_keys(edge, item)]
            yield from disconnect_counted(layout, edge, *ids, keys)
        if start is None:
            return
