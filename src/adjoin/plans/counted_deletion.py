"""Deleting a node with edges that are counted in transaction: every count is right at every instant.

If everything fits, one transaction removes the node, its edges, their contributions to its neighbours, and the ledgers.

A larger node cannot be removed at once. Its edges that are not counted in transaction are marked, as in `deletion`.
The counted edges are removed before the node, as many per transaction as it takes, each with its contributions to both
ends. The last of them are removed with the node. So a neighbour either has an edge and counts it, or has neither; the
node has fewer and fewer counted edges and a count that agrees; at last it disappears with everything that is left.

An interrupted delete leaves a node with some of its counted edges. Running it again continues from there.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import field

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, NodeType
from adjoin.errors import TransactionCanceled
from adjoin.expressions import Condition, Not
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.deletion import (
    Counted,
    Neighbourhood,
    delete_node,
    gather,
    joined_children,
    mark_all,
    own_writes,
    record_of,
    refuse_stale,
    sweep,
)
from adjoin.plans.in_transaction import Written, companions, counted_in_transaction, marker
from adjoin.plans.steps.again import Pace, claimable
from adjoin.plans.steps.batches import AnyRequest, Place, get_all, joined, place_of, write_place
from adjoin.plans.steps.samples import sample_items
from adjoin.requests import Check, Delete, Get, Plan, TransactWrite
from adjoin.units import MAX_TRANSACTION, MAX_TRANSACTION_SIZE
from adjoin.values import item_size


def delete(
    layout: BoundLayout, kind: NodeType, id: object, lock: Condition | None = None, *, must_find: bool = True
) -> Plan[bool]:
    """Removes a node and all its edges; returns whether there was anything to remove.

    With a lock, raises `ConditionFailed` if the node does not have the version that the lock asks for. Every
    transaction checks that. If there are several, edges that were removed before the node changed stay removed. Edges
    that cannot be found raise `InvalidModel`, or stay if `must_find` is false.
    """
    below = (yield from joined_children(layout, kind, id)) if layout.schema.children(kind) else []
    if below and lock is not None:
        (node,) = yield from get_all([Get(layout.table, layout.node_key(kind, id), consistent=True)])
        refuse_stale(kind, id, node, lock)
    if below and must_find:
        # Edges that cannot be found are refused before anything is removed.
        for each, each_id in [(kind, id), *below]:
            layout.ranges_around(each, each_id, layout.node_text(each, each_id))
    for child, child_id in below:
        yield from delete(layout, child, child_id, must_find=must_find)
    apart: tuple[EdgeType, ...] = ()
    if layout.rules.groups:
        edges = layout.schema.edges.values()
        apart = tuple(edge for edge in edges if edge.joins(kind) and counted_in_transaction(layout, edge))
    if not apart:
        return (yield from delete_node(layout, kind, id, lock, must_find=must_find)) or bool(below)
    return (yield from Deletion(layout, kind, id, apart, lock, must_find).run()) or bool(below)


def delete_one_of(
    layout: BoundLayout, kind: NodeType, id: object, lock: Condition | None = None, *, must_find: bool = True
) -> Plan[bool]:
    """Removes a node of a class of a family, if a node of that class is stored under its key; of others, any."""
    if kind.whole is not kind:
        (node,) = yield from get_all([Get(layout.table, layout.node_key(kind, id), consistent=True)])
        if node is not None and not layout.is_one(kind, node):
            return False
    return (yield from delete(layout, kind.whole, id, lock, must_find=must_find))


@dataclass
class _Together:
    """The writes of one transaction, and the size in bytes of the items that they touch."""

    writes: list[AnyRequest]
    size: int = 0

    @property
    def fits(self) -> bool:
        return len(self.writes) <= MAX_TRANSACTION and self.size < MAX_TRANSACTION_SIZE


@dataclass
class Deletion:
    """One delete of one node."""

    layout: BoundLayout
    kind: NodeType
    id: object
    apart: tuple[EdgeType, ...]
    """The classes of edges that are counted in transaction."""
    lock: Condition | None = None
    """The condition under which the node may be deleted."""
    must_find: bool = True
    """Whether edges that cannot be found raise; otherwise they stay."""
    marked: set[Place] = field(default_factory=set)
    """The edges that have the mark of this delete."""
    claims: set[Place] = field(default_factory=set)
    """The keys of claims: of the node to unique values, and of its edges to nodes."""
    foreign: set[Place] = field(default_factory=set)
    """The claims that another node or edge has taken over."""
    pace: Pace = field(default_factory=lambda: Pace(1))
    """Counts how often in a row another writer was first."""

    def __post_init__(self) -> None:
        self.key, self.node_key = self.layout.node_key(self.kind, self.id), self.layout.node_text(self.kind, self.id)

    def run(self) -> Plan[bool]:
        around = yield from self.look()
        found = bool(around.tokens) or not around.is_empty
        if around.tokens:
            around = yield from self._resume(around)
        self._refuse_stale(around)
        around.node = around.node or next(iter(sample_items(self.layout, self.kind, [self.key])), None)
        is_gone = False
        token: str | None = None
        while not around.is_empty and not (is_gone and around.node is not None):
            if token is not None or not self._last(around).fits:
                token = token or uuid.uuid4().hex
                around = yield from mark_all(
                    self.layout, self.kind, self.id, token, around, self.marked, self.apart, must_find=self.must_find
                )
            last = self._last(around, token)
            edges = [*around.counted.values()]
            room = MAX_TRANSACTION - len(last.writes)
            whole = (yield from self._with(last, edges)) if len(edges) <= room else None
            if whole is None or not whole.fits:
                # An edge usually takes three or four writes.
                yield from self.detach(around, edges, room // 3)
            elif (yield from self._done(whole)):
                is_gone = True
                if token is not None:
                    after = yield from self.look()
                    yield from sweep(self.layout, self.node_key, self.key, token, after.also(around))
                    token = None
            # An edge that was connected between the look and the transaction would be a dangling edge for ever.
            around = yield from self.look()
            if not is_gone:
                self._refuse_stale(around)
        return found

    def look(self) -> Plan[Neighbourhood]:
        return (yield from gather(self.layout, self.kind, self.id, self.apart, must_find=self.must_find))

    def _refuse_stale(self, around: Neighbourhood) -> None:
        refuse_stale(self.kind, self.id, around.node, self.lock)

    def _resume(self, around: Neighbourhood) -> Plan[Neighbourhood]:
        """Finishes deletes that were interrupted after their switch."""
        # An edge may have its mark from a time when its class was not counted in transaction.
        hidden = [edge for edge in around.counted.values() if edge.is_marked]
        yield from self.detach(around, hidden)
        for token in sorted(around.tokens):
            yield from sweep(self.layout, self.node_key, self.key, token, around)
        return (yield from self.look())

    # --- what is removed together --------------------------------------------------------------

    def _last(self, around: Neighbourhood, token: str | None = None) -> _Together:
        """The writes that remove the node, with its edges that are not counted, or with the record that hides them."""
        layout = self.layout
        own: list[AnyRequest] = [*self._absent(around)]
        if around.node is not None:
            deletes = own_writes(layout, self.kind, self.key, around.node, self.lock)
            self.claims = {place_of(each.key) for each in deletes[1:] if each.condition is not None}
            own += [each for each in deletes if place_of(each.key) not in self.foreign]
            own += marker(layout, self.kind, self.node_key)
        if token is not None:
            return _Together([*own, record_of(layout, self.node_key, token)], item_size(around.node or {}))
        edges = [around.delete(layout, place) for place in around.edges]
        return _Together([*own, *edges], around.size)

    def _absent(self, around: Neighbourhood) -> list[Check]:
        """Checks that an absent node stays absent: if it is created meanwhile, its new edges must not be removed."""
        return [Check(self.layout.table, self.key, Not(self.layout.present))] if around.node is None else []

    def _locked(self, around: Neighbourhood) -> list[Check]:
        """Checks that a node that exists has the version that the lock asks for."""
        return [Check(self.layout.table, self.key, self.lock)] if self.lock is not None and around.node else []

    def _with(self, last: _Together, edges: Sequence[Counted]) -> Plan[_Together]:
        """The same writes with the removal of some edges and of their contributions to both ends."""
        layout = self.layout
        writes = {write_place(layout, write): write for write in last.writes}
        gone = {place for place, write in writes.items() if isinstance(write, Delete)}
        made = yield from companions(layout, [each for edge in edges for each in _written(edge)], deleted=gone)
        for place, write in made.writes.items():
            # A change of the node's own aggregates joins the delete of the node.
            writes[place] = joined(layout, writes[place], write) if place in writes else write
        for edge in edges:
            writes |= {place_of(key): made.on(layout, Delete(layout.table, key, edge.same)) for key in edge.keys}
            writes |= {place_of(key): Delete(layout.table, key) for key in edge.copies}
            claims = {place_of(each.key): Delete(layout.table, each.key, claimable(each)) for each in edge.claims}
            self.claims |= claims.keys()
            writes |= {place: claim for place, claim in claims.items() if place not in self.foreign}
        size = last.size + sum(edge.size for edge in edges) + sum(map(item_size, filter(None, made.read.values())))
        return _Together([*writes.values()], size)

    def detach(self, around: Neighbourhood, edges: Sequence[Counted], most: int = 0) -> Plan[None]:
        """Removes edges in transactions of their own, as many per transaction as it takes, until `most` are left."""
        waiting = [*edges]
        together = MAX_TRANSACTION // 3
        while waiting:
            group = waiting[-together:]
            whole = yield from self._with(_Together([*self._absent(around), *self._locked(around)]), group)
            if not whole.fits and len(group) > 1:
                together = max(1, min(len(group) - 1, len(group) * MAX_TRANSACTION // len(whole.writes)))
            elif (yield from self._done(whole)):
                del waiting[-len(group) :]
                if len(waiting) <= most:
                    return
            else:
                return

    def _done(self, whole: _Together) -> Plan[bool]:
        """Performs all writes in one transaction; returns False if another writer was first."""
        try:
            yield (TransactWrite(tuple(whole.writes)),)
            self.pace.go_on()
            return True
        except TransactionCanceled as canceled:
            failed = [
                write_place(self.layout, write)
                for write, reason in zip(whole.writes, canceled.reasons, strict=True)
                if reason.is_failed_condition
            ]
            if not (failed or canceled.retryable):
                raise
            self.pace.slow_down(canceled)
            # A claim that another node has taken over stays.
            self.foreign |= self.claims.intersection(failed)
            return False


def _written(edge: Counted) -> Iterator[Written]:
    """The items of an edge that is removed; the second item of a symmetric edge has the ends exchanged."""
    ends = (edge.source, edge.target), (edge.target, edge.source)
    for key, (source, target) in zip(edge.keys, ends, strict=False):
        yield Written(edge.kind, key, None, source, target)
