"""Edges looked at and applied, until each is settled: what it adds is what its ledger says.

Everything that is waiting is read in a few batches. What differs is written, one transaction a near node
at a time, those of different nodes side by side. Where somebody else came first, what is left is read
again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from adjoin.errors import InvalidRequest, InvalidValue, TransactionCanceled
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import Place, chunks, get_all, place_of
from adjoin.plans.maintenance.blaming import Blame, blame
from adjoin.plans.maintenance.cycles import is_structural, order
from adjoin.plans.maintenance.entries import Entry, reason_of
from adjoin.plans.maintenance.postings import STALE, Near, Posting, combined, is_hopeless, packed, waits
from adjoin.plans.maintenance.ranks import refresh
from adjoin.plans.maintenance.references import EdgeRef
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import Get
from adjoin.schema import NodeType
from adjoin.units import MAX_TRANSACTION
from adjoin.values import Item

ATTEMPTS = 100
"""How often others may come first in a row before it gives up."""
_WIDTH, _SEPARATE = 256, 16
"""Nodes that are written in one round; so many or fewer have a transaction each."""
_Refused: TypeAlias = TransactionCanceled | InvalidRequest | InvalidValue
_log = logging.getLogger("adjoin.maintain")


@dataclass
class _Pace:
    """How much is tried at once, less after each failure, so that what is to blame can be told."""

    width: int = _WIDTH
    entries: int = MAX_TRANSACTION
    attempts: int = 0
    blamed: dict[tuple[str, Place], Blame] = field(default_factory=dict)
    """Edges that can never be applied by all their rules, and by which not."""

    def slow_down(self, error: _Refused, postings: Sequence[Posting]) -> None:
        self.attempts += 1
        if self.attempts == ATTEMPTS:
            raise error
        if isinstance(error, TransactionCanceled) and not is_hopeless(error):
            self.width = max(1, self.width // 4)
            return
        if self.width > 1 or self.entries > 1 or len(postings[0].entries) > 1:
            self.width = self.entries = 1
            return
        place = postings[0].entries[0].ref.place
        blamed = self.blamed.setdefault(place, blame(postings[0]))
        if not blamed.goes_on(reason_of(error)):
            raise error
        # Nobody came first, and there are only so many rules to try.
        self.attempts = 1

    def refused(self, ref: EdgeRef) -> dict[str, str]:
        """The rules by which an edge is not applied, and why."""
        return self.blamed[ref.place].aside if ref.place in self.blamed else {}


def settle(
    layout: BoundLayout, refs: Iterable[EdgeRef], tally: Tally, note: Callable[[Entry], None] | None = None
) -> Plan[None]:
    """Applies what these edges add; each may be named several times. `note` is told of each once it is settled."""
    waiting = {ref.place: ref for ref in refs}
    pace = _Pace()
    stale: dict[str, NodeType] = {}
    while waiting:
        entries, nears = yield from _read(layout, list(waiting.values()), pace)
        stale |= {near.text: near.kind for near in nears.values() if near.item and STALE in near.item}
        rounds = _rounds(layout, entries, nears, pace)
        waiting = {entry.ref.place: entry.ref for each in rounds for posting in each for entry in posting.entries}
        _tell(note, (entry for entry in entries if entry.ref.place not in waiting))
        for postings in rounds:
            written = [entry for posting in postings for entry in posting.entries]
            if is_structural(postings[0]):
                yield from order(layout, postings[0])
            try:
                if postings[0].entries:
                    requests = [posting.request(layout) for posting in postings]
                    yield tuple(combined(layout, requests) if pace.width > _SEPARATE else requests)
            except (TransactionCanceled, InvalidRequest, InvalidValue) as error:
                pace.slow_down(error, postings)
                break
            pace.attempts = 0
            for posting in postings:
                _note(posting, tally, stale)
            _tell(note, written)
            for entry in written:
                del waiting[entry.ref.place]
    yield from refresh(layout, stale, tally)


def _tell(note: Callable[[Entry], None] | None, entries: Iterable[Entry]) -> None:
    if note is not None:
        for entry in entries:
            note(entry)


def _note(posting: Posting, tally: Tally, stale: dict[str, NodeType]) -> None:
    near = posting.near
    tally.edges += len(posting.entries)
    if posting.took_place():
        tally.nodes.add(near.text)
    if STALE in (near.item or {}):
        stale[near.text] = near.kind
    for entry in posting.entries:
        for rule, reason in entry.aside.items():
            tally.aside.append((rule, entry.ref.key, reason))
            _log.warning("set aside for %s: the edge %s: %s", rule, " ".join(place_of(entry.ref.key)), reason)


def _rounds(
    layout: BoundLayout, entries: Sequence[Entry], nears: dict[str, Near], pace: _Pace
) -> list[tuple[Posting, ...]]:
    """What is to be written, in rounds in which no node occurs twice."""
    by_near: dict[str, list[Entry]] = {}
    for entry in entries:
        if not entry.is_settled or waits(entry):
            by_near.setdefault(entry.ref.near, []).append(entry)
    lanes = [list(packed(layout, nears[text], some, pace.entries)) for text, some in by_near.items()]
    for lane in lanes:
        for posting in lane:
            # Where others are at the same nodes, one that depends on less has better chances.
            posting.is_direct = pace.attempts == 0
    rounds: list[tuple[Posting, ...]] = []
    while lanes:
        heads = [lane.pop(0) for lane in lanes]
        rounds += ((posting,) for posting in heads if is_structural(posting))
        rounds += chunks((posting for posting in heads if not is_structural(posting)), pace.width)
        lanes = [lane for lane in lanes if lane]
    return rounds


def _read(layout: BoundLayout, refs: Sequence[EdgeRef], pace: _Pace) -> Plan[tuple[list[Entry], dict[str, Near]]]:
    keys: dict[Place, Item] = {}
    nodes = {ref.near: ref.near_key(layout) for ref in refs}
    nodes |= {ref.far: ref.far_key(layout) for ref in refs if ref.account.reads_far}
    ledgers = [ref.ledger_key(layout) for ref in refs]
    for key in (*nodes.values(), *ledgers, *(ref.key for ref in refs)):
        keys.setdefault(place_of(key), key)
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    items = dict(zip(keys, found, strict=True))
    kinds = {ref.near: ref.account.hop.near for ref in refs}
    nears = {text: Near(kind, text, nodes[text], items[place_of(nodes[text])]) for text, kind in kinds.items()}
    entries = []
    for ref, ledger in zip(refs, ledgers, strict=True):
        near = nears[ref.near]
        far = items[place_of(nodes[ref.far])] if ref.account.reads_far else None
        entry = Entry(ref, items[place_of(ref.key)], items[place_of(ledger)], near.item, far, near.life, near.next)
        entry.work_out(layout, pace.refused(ref))
        entries.append(entry)
    return entries, nears
