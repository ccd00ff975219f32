"""Deleting a node with edges that somebody counts at once: every count is right meanwhile, at every instant.

All of it goes in one transaction, if that takes it: the node, its edges, what its neighbours count, and the ledgers.
What is larger cannot vanish at once. Then the edges that nobody counts are marked, as in `deletion`; those that
somebody counts go before the node, as many in a transaction as it takes, each with what both its ends count; and the
last of them go with the node. So a neighbour has its edge and counts it, or neither; the node has ever fewer of
such edges, and a count that says so; and it goes with all the rest at once.

Interrupted, it is a node with some of its counted edges. Running it again goes on from there.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from adjoin.errors import TransactionCanceled
from adjoin.expressions import Condition, Not
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.at_once import ATTEMPTS, AnyRequest, Written, companions, counted_at_once, together
from adjoin.plans.batches import Place, place_of
from adjoin.plans.deletion import (
    Counted,
    Neighbourhood,
    delete_node,
    gather,
    mark_all,
    own_writes,
    record_of,
    refuse_stale,
    sweep,
)
from adjoin.plans.imagined import imagined
from adjoin.plans.maintenance.postings import write_key
from adjoin.plans.newcomers import marker
from adjoin.requests import Check, Delete, TransactWrite
from adjoin.schema import EdgeType, NodeType
from adjoin.units import MAX_TRANSACTION, MAX_TRANSACTION_SIZE
from adjoin.values import item_size


def delete(layout: BoundLayout, kind: NodeType, id: object, lock: Condition | None = None) -> Plan[bool]:
    """Removes a node and every edge at it; says whether there was anything to remove.

    With a lock, `ConditionFailed` if the node does not have the version that it asks for. Every transaction checks
    that; where they are several, what went before somebody changed the node is gone.
    """
    apart = tuple(
        edge
        for edge in layout.schema.edges.values()
        if kind in (edge.source, edge.target) and counted_at_once(layout, edge)
    )
    if not apart:
        return (yield from delete_node(layout, kind, id, lock))
    return (yield from Deletion(layout, kind, id, apart, lock).run())


@dataclass
class _Together:
    """Writes for one transaction, and how large what they touch is."""

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
    """The classes of edges that somebody counts at once."""
    lock: Condition | None = None
    """What must hold of the node for it to be deleted."""
    marked: set[Place] = field(default_factory=set)
    """The edges that have the mark of this delete."""
    claims: set[Place] = field(default_factory=set)
    """Where the node has claims to unique values."""
    foreign: set[Place] = field(default_factory=set)
    """Those of them that another node has now."""
    attempts: int = 0
    """How often in a row somebody else came first."""

    def __post_init__(self) -> None:
        self.key, self.text = self.layout.node_key(self.kind, self.id), self.layout.node_text(self.kind, self.id)

    def run(self) -> Plan[bool]:
        around = yield from self.look()
        found = bool(around.tokens) or not around.is_empty
        if around.tokens:
            around = yield from self._resume(around)
        self._refuse_stale(around)
        around.node = around.node or next(iter(imagined(self.layout, self.kind, [self.key])), None)
        is_gone = False
        token: str | None = None
        while not around.is_empty and not (is_gone and around.node is not None):
            if token is not None or not self._last(around).fits:
                token = token or uuid.uuid4().hex
                around = yield from mark_all(self.layout, self.kind, self.id, token, around, self.marked, self.apart)
            last = self._last(around, token)
            edges = [*around.counted.values()]
            room = MAX_TRANSACTION - len(last.writes)
            whole = (yield from self._with(last, edges)) if len(edges) <= room else None
            if whole is None or not whole.fits:
                # As a rule an edge takes three writes or four.
                yield from self.detach(around, edges, room // 3)
            elif (yield from self._done(whole)):
                is_gone = True
                if token is not None:
                    after = yield from self.look()
                    yield from sweep(self.layout, self.text, self.key, token, after.also(around))
                    token = None
            # What somebody connected between the look and the transaction would hang there for ever.
            around = yield from self.look()
            if not is_gone:
                self._refuse_stale(around)
        return found

    def look(self) -> Plan[Neighbourhood]:
        return (yield from gather(self.layout, self.kind, self.id, self.apart))

    def _refuse_stale(self, around: Neighbourhood) -> None:
        refuse_stale(self.kind, self.id, around.node, self.lock)

    def _resume(self, around: Neighbourhood) -> Plan[Neighbourhood]:
        """Finishes deletes that were interrupted behind their switch."""
        # An edge may have its mark from a time when nobody counted its class at once.
        hidden = [edge for edge in around.counted.values() if edge.is_marked]
        yield from self.detach(around, hidden)
        for token in sorted(around.tokens):
            yield from sweep(self.layout, self.text, self.key, token, around)
        return (yield from self.look())

    # --- what goes together --------------------------------------------------------------------

    def _last(self, around: Neighbourhood, token: str | None = None) -> _Together:
        """What makes the node go, with the edges that nobody counts, or with the record that hides them."""
        layout = self.layout
        own: list[AnyRequest] = [*self._absent(around)]
        if around.node is not None:
            deletes = own_writes(layout, self.kind, self.key, around.node, self.lock)
            self.claims = {place_of(each.key) for each in deletes[1:] if each.condition is not None}
            own += [each for each in deletes if place_of(each.key) not in self.foreign]
            own += marker(layout, self.kind, self.text)
        if token is not None:
            return _Together([*own, record_of(layout, self.text, token)], item_size(around.node or {}))
        edges = [Delete(layout.table, layout.key_of(edge)) for edge in around.edges.values()]
        return _Together([*own, *edges], around.size)

    def _absent(self, around: Neighbourhood) -> list[Check]:
        """A node that is not there must not be: the edges of one that somebody makes meanwhile are not to go."""
        return [Check(self.layout.table, self.key, Not(self.layout.present))] if around.node is None else []

    def _locked(self, around: Neighbourhood) -> list[Check]:
        """A node that is there must have the version that was asked for."""
        return [Check(self.layout.table, self.key, self.lock)] if self.lock is not None and around.node else []

    def _with(self, last: _Together, edges: Sequence[Counted]) -> Plan[_Together]:
        """The same with some edges, and what their ends count of them."""
        layout = self.layout
        made = yield from companions(layout, [each for edge in edges for each in _written(edge)])
        writes = {place_of(write_key(layout, write)): write for write in last.writes}
        for place, write in made.writes.items():
            # What is counted on the node itself goes with it.
            writes[place] = together(layout, writes[place], write) if place in writes else write
        for edge in edges:
            writes |= {place_of(key): Delete(layout.table, key, edge.same) for key in edge.keys}
            writes |= {place_of(key): Delete(layout.table, key) for key in edge.copies}
        size = last.size + sum(edge.size for edge in edges) + sum(map(item_size, filter(None, made.read.values())))
        return _Together([*writes.values()], size)

    def detach(self, around: Neighbourhood, edges: Sequence[Counted], most: int = 0) -> Plan[None]:
        """Removes some edges in transactions of their own, as many in each as it takes, until so many are left."""
        waiting = [*edges]
        some = MAX_TRANSACTION // 3
        while waiting:
            group = waiting[-some:]
            whole = yield from self._with(_Together([*self._absent(around), *self._locked(around)]), group)
            if not whole.fits and len(group) > 1:
                some = max(1, min(len(group) - 1, len(group) * MAX_TRANSACTION // len(whole.writes)))
            elif (yield from self._done(whole)):
                del waiting[-len(group) :]
                if len(waiting) <= most:
                    return
            else:
                return

    def _done(self, whole: _Together) -> Plan[bool]:
        """Writes all together; says no if somebody else came first."""
        try:
            yield (TransactWrite(tuple(whole.writes)),)
            self.attempts = 0
            return True
        except TransactionCanceled as canceled:
            self.attempts += 1
            failed = [
                place_of(write_key(self.layout, write))
                for write, reason in zip(whole.writes, canceled.reasons, strict=True)
                if reason.code == "ConditionalCheckFailed"
            ]
            if self.attempts == ATTEMPTS or not (failed or canceled.retryable):
                raise
            # A claim that belongs to somebody else stays.
            self.foreign |= self.claims.intersection(failed)
            return False


def _written(edge: Counted) -> Iterator[Written]:
    """The items of an edge as they will be: gone; the second of a symmetric one leads back."""
    ends = (edge.source, edge.target), (edge.target, edge.source)
    for key, (source, target) in zip(edge.keys, ends, strict=False):
        yield Written(edge.kind, key, None, source, target)
