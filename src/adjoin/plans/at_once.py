"""Aggregates with consistency="transaction": what is written together with an edge.

The ledger and the near node are read first; what the edge adds then goes into its own transaction, with
the new ledger, as long as both are what was read. The old edge need not be known, for its ledger says
what it added. The stream finds nothing left to do, and does what only it can: what expires. Nodes that come
where edges wait for them are in `newcomers`, those that go with their edges in `counted_deletion`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from adjoin.errors import TransactionCanceled
from adjoin.evaluate import condition_test
from adjoin.expressions import Action, And, Condition, all_of
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import Place, get_all, place_of
from adjoin.plans.deletion import UNMARKED, visible
from adjoin.plans.maintenance.entries import AnyWrite, Entry
from adjoin.plans.maintenance.ledger import ledger_held
from adjoin.plans.maintenance.postings import Near, Posting, acted, merged, performed, write_key
from adjoin.plans.maintenance.references import EdgeRef
from adjoin.requests import Check, Delete, Get, Put, TransactWrite, Update
from adjoin.rules import Account
from adjoin.schema import AnyEdge, EdgeType, EntityType
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


def counting_at_once(layout: BoundLayout, kind: EntityType) -> list[Account]:
    """The accounts of a class of nodes with a rule that holds at every instant."""
    return [
        account
        for account in layout.rules.accounts
        if account.hop.near is kind and any(rule.in_transaction for rule in account.rules)
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


def companions(
    layout: BoundLayout,
    written: Sequence[Written],
    created: Collection[Place] = (),
    waiting: Sequence[EdgeRef] = (),
) -> Plan[Companions]:
    """What goes into one transaction with these items; `created` are nodes that the transaction makes.

    `waiting` are edges that are there already, and count for a node that the transaction makes: they are read, and
    must be what was read.
    """
    own = [(_ref(account, each), each.item) for each in written for account in counted_at_once(layout, each.kind)]
    named = [ref for ref, _ in own] + [*waiting]
    keys = {place_of(key): key for ref in named for key in (ref.ledger_key(layout), ref.near_key(layout))}
    keys |= {place_of(ref.key): ref.key for ref in waiting}
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    items = dict(zip(keys, found, strict=True))
    refs = own + [(ref, items[place_of(ref.key)]) for ref in waiting]
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
        entry = Entry(ref, item, ledger, near.item, None, near.life, near.next, has_ranks_within=True)
        entry.work_out(layout)
        posting.entries.append(entry)
    edges = {place_of(each.key) for each in written}
    writes: dict[Place, AnyWrite] = {}
    for posting in postings.values():
        posting.write_down(layout)
        for write in (*posting.all_writes(layout), *_unwritten(layout, posting)):
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


def _unwritten(layout: BoundLayout, posting: Posting) -> list[AnyWrite]:
    """Ledgers that are what they should be, there or not, and must not become another in between."""
    return [
        ledger_held(layout, entry.ref, entry.ref.ledger_key(layout), entry.item)
        for entry in posting.entries
        if entry.is_settled
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
    return [part for part in parts_of(companion.condition) if part != layout.present]


def parts_of(condition: Condition | None) -> list[Condition]:
    """The conditions that one is joined of."""
    if isinstance(condition, And):
        return [part for each in condition.conditions for part in parts_of(each)]
    return [] if condition is None else [condition]


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
    """Removes an edge and what it added, if it has the version that a lock asks for; says whether it was there.

    It was there if `edge` would have shown it.
    """
    copies = [Delete(layout.table, copy) for key in keys for copy in layout.copy_keys(kind, key)]
    written = written_between(layout, kind, source, target, [(key, None) for key in keys])
    wanted = all_of(layout.present, UNMARKED, lock)
    is_shown = True
    for attempt in range(1, ATTEMPTS + 1):
        more = yield from companions(layout, written)
        deletes = [Delete(layout.table, key, wanted) for key in keys]
        try:
            yield (TransactWrite((*deletes, *copies, *more.writes.values())),)
            return is_shown
        except TransactionCanceled as canceled:
            failed = [reason.code == "ConditionalCheckFailed" for reason in canceled.reasons]
            met = [canceled.reasons[place].item for place in range(len(keys)) if failed[place]]
            if met == [None] * len(keys):
                return False
            if attempt == ATTEMPTS or not (any(failed) or canceled.retryable):
                raise
            error = canceled
        if met:
            # Half of it, left by somebody who wrote one side only, was no edge, and goes in any case. Whether one
            # with a mark was there, the record of the deletion that marked it tells.
            there = [dict(item) for item in met if item is not None]
            is_shown = None not in met and bool((yield from visible(layout, there)))
            wanted = lock if is_shown else None
            if wanted is not None and not all(map(condition_test(wanted), there)):
                raise error
    return False
