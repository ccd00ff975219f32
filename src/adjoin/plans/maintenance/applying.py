"""Changes, and what they make worth a look: edges, nodes at their far ends, and nodes that came or went.

The two images of a change are compared only to leave out what cannot matter.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from adjoin.errors import ConditionFailed, InvalidItem, InvalidKey, TransactionCanceled
from adjoin.expressions import Compare, Not, Value, attribute
from adjoin.layouts.interface import LIFE, NEXT, BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import Place, get_all, place_of
from adjoin.plans.copies import copies_on
from adjoin.plans.maintenance.arrivals import Arrival, arrived, departed, is_taken_down, strike_out, take_down
from adjoin.plans.maintenance.asides import Unapplied, set_aside, take_back
from adjoin.plans.maintenance.copies import At, CopyRef, copy_ref, freshen, freshen_at
from adjoin.plans.maintenance.cycles import moved, set_aside_by
from adjoin.plans.maintenance.entries import Entry, contributions
from adjoin.plans.maintenance.expired import edges_of, remove_left
from adjoin.plans.maintenance.ledger import LEFT
from adjoin.plans.maintenance.lives import begin_lives
from adjoin.plans.maintenance.neighbours import settle_near
from adjoin.plans.maintenance.passing import NEVER
from adjoin.plans.maintenance.postings import MARKED, TURN, Near
from adjoin.plans.maintenance.references import (
    EdgeRef,
    counted_by,
    dependents,
    key_of_node,
    ref_to,
)
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.maintenance.settling import settle
from adjoin.requests import Check, Delete, Get, ItemChange, Put, TransactWrite
from adjoin.rules import Account
from adjoin.schema import EdgeType, EntityType, NodeType
from adjoin.values import Item


@dataclass
class _Work:
    """What some changes make worth a look, each thing once."""

    edges: dict[tuple[str, Place], EdgeRef] = field(default_factory=dict)
    changes: dict[Place, list[ItemChange]] = field(default_factory=dict)
    """The changes of edges, by their keys."""
    far: dict[tuple[str, str], Account] = field(default_factory=dict)
    """Accounts that read a node, by their names and its partition key."""
    came: dict[str, NodeType] = field(default_factory=dict)
    """Nodes that may have been waited for, by partition key."""
    went: dict[str, NodeType] = field(default_factory=dict)
    """Nodes whose life ended, by partition key."""

    arrived: dict[Place, Arrival] = field(default_factory=dict)
    """Edges that were brought to their targets."""
    departed: dict[Place, Arrival] = field(default_factory=dict)
    """Edges that were taken from them."""
    gone: set[Place] = field(default_factory=set)
    """The places of edges that were looked at and are not there, whatever their changes said."""
    copies: dict[Place, CopyRef] = field(default_factory=dict)
    """Edges whose copies may not be what they should."""
    copied: dict[tuple[str, str, str], EdgeType] = field(default_factory=dict)
    """Classes of edges that copy from a node, by label, end and its partition key."""
    expired: dict[str, tuple[NodeType, float]] = field(default_factory=dict)
    """Nodes that were removed because their time was over, by partition key, and when."""
    touched: set[str] = field(default_factory=set)
    """The names of the accounts whose edges are looked at."""
    unapplied: list[Unapplied] = field(default_factory=list)
    """What only has the key of an edge."""
    again: list[Item] = field(default_factory=list)
    """The keys of items that were there before, and may have been set aside."""

    looks: int = 0
    """Reasons to look at something, also at what is looked at already."""

    def note(self, entry: Entry) -> None:
        if entry.edge is None:
            self.gone.add(place_of(entry.ref.key))

    @property
    def struck_out(self) -> list[Arrival]:
        """What need not be taken down any more: somebody may have done so late, after all others were done with it."""
        late = {place: edge for place, edge in self.arrived.items() if place_of(edge.key) in self.gone}
        return list((late | self.departed).values())

    def add_edge(self, ref: EdgeRef) -> None:
        self.edges[ref.place] = ref
        self.touched.add(ref.account.name)
        self.looks += 1


def apply_changes(layout: BoundLayout, changes: Iterable[ItemChange], tally: Tally) -> Plan[bool]:
    """Brings everything up to date that some changes touch; says whether anything had to be looked at."""
    work = _Work()
    for change in changes:
        if layout.is_bookkeeping(change.key):
            continue
        tally.changes += 1
        kind, looks = layout.kind_of(change.new or change.old or change.key), work.looks
        if isinstance(kind, EdgeType):
            _look_at_edge(layout, kind, change, work)
        elif isinstance(kind, NodeType):
            _look_at_node(layout, kind, change, work)
            if change.expired and edges_of(layout, kind):
                work.expired[next(iter(change.key.values()))["S"]] = kind, change.at
                work.looks += 1
        if change.old is not None and work.looks > looks:
            work.again.append(change.key)
    # Before anything is looked at, so that who looks for edges after this finds them.
    yield from take_down(layout, work.arrived.values())
    yield from _went(layout, work, tally)
    yield from _came(layout, work.came, tally)
    yield from _settle_far(layout, work, tally)
    yield from settle(layout, work.edges.values(), tally, work.note, partial(_has_moved, layout, work))
    yield from _look_again(layout, work, tally)
    yield from freshen_at(layout, (At(kind, end, text) for (_, end, text), kind in work.copied.items()), tally)
    work.gone |= yield from freshen(layout, work.copies.values(), tally)
    yield from strike_out(layout, work.struck_out)
    for text, (node, at) in work.expired.items():
        yield from remove_left(layout, node, layout.id_in(node, text), at)
    for unapplied in work.unapplied:
        yield from set_aside(layout, unapplied, tally)
    yield from take_back(layout, work.again, tally)
    return work.looks > 0


# --- from changes to work ----------------------------------------------------------------------


def _look_at_edge(layout: BoundLayout, kind: EdgeType, change: ItemChange, work: _Work) -> None:
    item = change.new or change.old or {}
    names = [kind.attributes[copy.field] for copy in copies_on(layout, kind)]
    if is_taken_down(layout, kind):
        for found, tell in ((work.arrived, arrived), (work.departed, departed)):
            if (edge := tell(layout, kind, change)) is not None:
                found[place_of(edge.place(layout))] = edge
    try:
        for account in counted_by(layout, kind):
            if differs(change, account.edge_attributes) or _was_unfit(layout, kind, change):
                work.add_edge(ref_to(layout, account, item))
                if not account.is_checked:
                    work.changes.setdefault(place_of(change.key), []).append(change)
        if names and change.new is not None and differs(change, names):
            work.copies[place_of(change.key)] = copy_ref(layout, kind, item)
            work.looks += 1
    except (InvalidItem, InvalidKey) as problem:
        # Something under the key of an edge that leads nowhere; it adds nothing to anything.
        work.looks += 1
        if change.new is not None:
            work.unapplied.append(Unapplied(change.key, str(problem), change.position, change.at))


def _look_at_node(layout: BoundLayout, kind: NodeType, change: ItemChange, work: _Work) -> None:
    text = next(iter(change.key.values()))["S"]
    for account in layout.rules.accounts:
        if (
            account.reads_far
            and account.hop.far is kind
            and (differs(change, account.far_attributes) or _was_unfit(layout, kind, change))
        ):
            work.far[account.name, text] = account
            work.looks += 1
    for copy in layout.rules.copies:
        if copy.node is kind and differs(change, (kind.attributes[copy.of],)):
            work.copied[copy.edge.label, copy.end, text] = copy.edge
            work.looks += 1
    if not any(account.hop.near is kind for account in layout.rules.accounts):
        return
    had_life, has_life = (item is not None and LIFE in item for item in (change.old, change.new))
    if had_life and not has_life and _has_counted(layout, kind, change.old or {}):
        work.went[text] = kind
        work.looks += 1
    elif change.old is None:
        work.came[text] = kind
        work.looks += 1


def _has_counted(layout: BoundLayout, kind: NodeType, item: Item) -> bool:
    """Whether a node shows that an edge was ever counted for it, in the life that it has."""
    names = (name for rule in layout.rules.rules if rule.node is kind for name in (rule.attribute, rule.pair) if name)
    return any(name in item for name in (*names, TURN, LEFT, NEXT))


def _has_moved(layout: BoundLayout, work: _Work, ref: EdgeRef) -> bool:
    """Whether a change of an edge changed what it adds, so that who saw it before would count something else."""
    return any(
        contributions(layout, ref.account, change.old) != contributions(layout, ref.account, change.new)
        for change in work.changes.get(place_of(ref.key), ())
    )


def differs(change: ItemChange, names: Sequence[str]) -> bool:
    """Whether an item came, went, or changed in one of these attributes."""
    old, new = change.old, change.new
    return old is None or new is None or any(old.get(name) != new.get(name) for name in names)


def _was_unfit(layout: BoundLayout, kind: EntityType, change: ItemChange) -> bool:
    """Whether an item could not be read before, or cannot now, for whatever attribute."""
    try:
        for item in (change.old, change.new):
            if item is not None:
                layout.decode(kind, item)
    except NEVER:
        return True
    return False


# --- nodes that came and went ------------------------------------------------------------------


def _went(layout: BoundLayout, work: _Work, tally: Tally) -> Plan[None]:
    """What was counted in a life that ended is void. Edges that are still there wait for the next."""
    for text, kind in work.went.items():
        for account in layout.rules.accounts:
            for rule in account.rules:
                if rule.is_recursive and account.hop.near is kind:
                    yield from moved(layout, rule)
        marker = layout.ledgers.marker_key(text) | {MARKED: {"S": uuid.uuid4().hex[:16]}}
        gone = Check(layout.table, key_of_node(layout, kind, text), Not(layout.present))
        try:
            yield (TransactWrite((gone, Put(layout.table, marker))),)
        except TransactionCanceled:
            # It is there again, and nobody knows whether anyone waited for it: its edges tell.
            yield from settle_near(layout, kind, [text], tally)


def _came(layout: BoundLayout, nodes: dict[str, NodeType], tally: Tally) -> Plan[None]:
    markers = yield from get_all(
        [Get(layout.table, layout.ledgers.marker_key(text), consistent=True) for text in nodes]
    )
    keys = {text: key_of_node(layout, kind, text) for text, kind in nodes.items()}
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    there = [Near(nodes[text], text, key, item) for (text, key), item in zip(keys.items(), found, strict=True) if item]
    # So that the first edge of a node costs no more than any other.
    yield from begin_lives(layout, there)
    for (text, kind), marker in zip(nodes.items(), markers, strict=True):
        if marker is None:
            continue
        yield from settle_near(layout, kind, [text], tally)
        same = Compare("=", attribute(MARKED), Value(marker[MARKED]))
        try:
            yield (Delete(layout.table, layout.key_of(marker), same),)
        except ConditionFailed:
            # Somebody waits again, so it went again: there will be a change that says so.
            continue


# --- nodes at far ends -------------------------------------------------------------------------


def _settle_far(layout: BoundLayout, work: _Work, tally: Tally) -> Plan[None]:
    """Looks at the edges that read nodes that changed; few of them together with the others, many by themselves."""
    for (_, text), account in work.far.items():
        start: Item | None = None
        while True:
            refs, start = yield from dependents(layout, account, text, start)
            for ref in refs:
                work.add_edge(ref)
            if len(work.edges) > _MANY:
                yield from settle(layout, work.edges.values(), tally, work.note, partial(_has_moved, layout, work))
                work.edges.clear()
            if start is None:
                break


_MANY = 2000


# --- recursive rules ---------------------------------------------------------------------------


def _look_again(layout: BoundLayout, work: _Work, tally: Tally) -> Plan[None]:
    """What closed a circle may not do so any more, once other edges have gone."""
    nodes = {kind.model for kind in work.went.values()}
    for account in layout.rules.accounts:
        if account.name not in work.touched and account.hop.near.model not in nodes:
            continue
        for rule in account.rules:
            if rule.is_recursive:
                refs = yield from set_aside_by(layout, account, rule)
                yield from settle(layout, refs, tally)
