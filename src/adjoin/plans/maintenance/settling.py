"""Edges looked at and applied, until each is settled: what it adds is what its ledger says.

Everything that is waiting is read in a few batches, ledgers and near nodes before edges. What differs is written,
one transaction a near node at a time, those of different nodes side by side. Where somebody else came first, what
is left is read again.

A transaction does not check the edge, unless its account asks for that. It need not: whoever applies a later change of
the edge reads the ledger after that change, and leaves it another than it was. So a transaction made of an older
edge finds another ledger than it read, and fails. Where a change leaves nothing to write, the ledger is touched for
that reason alone, and where there is no ledger, the near node is.

Ranks are put before the transactions whose ledgers name them, and deleted after those that do not (see `rank_items`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from adjoin.errors import ConditionFailed, InvalidRequest, InvalidValue, TransactionCanceled
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import Place, by_size, chunks, get_all, place_of, write_in_rounds
from adjoin.plans.maintenance.attempts import Attempts
from adjoin.plans.maintenance.blaming import Blame, blame
from adjoin.plans.maintenance.cycles import is_structural, order
from adjoin.plans.maintenance.entries import Entry, reason_of
from adjoin.plans.maintenance.ledger import ledger_touched
from adjoin.plans.maintenance.lives import begin_lives, touched_node
from adjoin.plans.maintenance.postings import STALE, Near, Posting, arranged, is_hopeless, packed, transaction, waits
from adjoin.plans.maintenance.ranks import refresh
from adjoin.plans.maintenance.references import EdgeRef
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import Delete, Get, TransactWrite, Update
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

    def outrun(self, error: Exception) -> None:
        """Somebody else came first."""
        self.attempts += 1
        if self.attempts == ATTEMPTS:
            raise error

    def slow_down(self, error: _Refused, postings: Sequence[Posting]) -> None:
        self.outrun(error)
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
    layout: BoundLayout,
    refs: Iterable[EdgeRef],
    tally: Tally,
    note: Callable[[Entry], None] | None = None,
    moved: Callable[[EdgeRef], bool] = lambda _: False,
) -> Plan[None]:
    """Applies what these edges add; each may be named several times.

    `note` is told of each once it is settled. `moved` says whether a change that is applied here may have changed what
    an edge adds.
    """
    waiting = {ref.place: ref for ref in refs}
    pace, attempts = _Pace(), Attempts(layout)
    stale: dict[str, NodeType] = {}
    # Edges without a ledger whose nodes were made another, so that whoever saw them before fails from then on.
    touched: set[tuple[str, Place]] = set()
    while waiting:
        entries, nears = yield from _read(layout, list(waiting.values()), pace)
        yield from write_in_rounds(attempts.look_again(entries))
        stale |= {near.text: near.kind for near in nears.values() if near.item and STALE in near.item}
        if born := {entry.ref.near for entry in entries if entry.near is not None and not entry.is_settled} & {
            text for text, near in nears.items() if near.is_new
        }:
            if (error := (yield from begin_lives(layout, [nears[text] for text in born]))) is not None:
                pace.outrun(error)
            continue
        rounds = _rounds(layout, entries, nears, pace)
        written = {entry.ref.place for each in rounds for some in each for posting in some for entry in posting.entries}
        idle = [entry for entry in entries if entry.ref.place not in written]
        touching = [
            entry
            for entry in idle
            if attempts.linger(entry) or (entry.ref.place not in touched and _is_touched(entry, moved))
        ]
        waiting = {ref.place: ref for ref in (entry.ref for entry in entries) if ref.place in written}
        waiting |= {entry.ref.place: entry.ref for entry in touching}
        _tell(note, (entry for entry in entries if entry.ref.place not in waiting))
        if touching:
            try:
                if requests := tuple(_touches(layout, touching, nears)):
                    yield requests
            except (ConditionFailed, TransactionCanceled) as error:
                pace.outrun(error)
                continue
            # Who read no ledger may have been outrun before the node was touched, and not after: one more look tells.
            again = {entry.ref.place for entry in touching if entry.ledger is None or attempts.linger(entry)}
            touched |= again
            done = [entry for entry in touching if entry.ref.place not in again]
            _tell(note, done)
            for entry in done:
                del waiting[entry.ref.place]
        superseded: list[Delete] = []
        for transactions in rounds:
            postings = [posting for some in transactions for posting in some]
            settled = [entry for posting in postings for entry in posting.entries]
            if is_structural(postings[0]):
                yield from order(layout, postings[0])
            try:
                if postings[0].entries:
                    yield from write_in_rounds(attempts.begin(postings), by_size)
                    attempts.have_put(postings)
                    yield tuple(transaction(layout, some) for some in transactions)
            except (TransactionCanceled, InvalidRequest, InvalidValue) as error:
                pace.slow_down(error, postings)
                break
            pace.attempts = 0
            for posting in postings:
                superseded += attempts.end(posting.entries)
                _note(posting, tally, stale)
            _tell(note, settled)
            for entry in settled:
                del waiting[entry.ref.place]
        yield from write_in_rounds(superseded)
    yield from refresh(layout, stale, tally)


def _is_touched(entry: Entry, moved: Callable[[EdgeRef], bool]) -> bool:
    """Whether a change left nothing to write, and must be noticed all the same by whoever saw the edge before it."""
    return entry.near is not None and not entry.ref.account.is_checked and entry.is_settled and moved(entry.ref)


def _touches(
    layout: BoundLayout, entries: Iterable[Entry], nears: Mapping[str, Near]
) -> Iterator[Update | TransactWrite]:
    without: dict[str, Near] = {}
    for entry in entries:
        if entry.ledger is None or entry.item is None:
            without[entry.ref.near] = nears[entry.ref.near]
        else:
            yield ledger_touched(layout, entry.ref, entry.ref.ledger_key(layout), entry.item)
    for near in without.values():
        # Nobody counts an edge for a node that has no life yet.
        if not near.is_new:
            yield touched_node(layout, near)


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
) -> list[list[list[Posting]]]:
    """What is to be written, in rounds of transactions in which no node occurs twice."""
    by_near: dict[str, list[Entry]] = {}
    for entry in entries:
        if not entry.is_settled or waits(entry):
            by_near.setdefault(entry.ref.near, []).append(entry)
    lanes = [list(packed(layout, nears[text], some, pace.entries)) for text, some in by_near.items()]
    for lane in lanes:
        for posting in lane:
            # Where others are at the same nodes, one that depends on less has better chances.
            posting.is_direct = pace.attempts == 0
    rounds: list[list[list[Posting]]] = []
    while lanes:
        heads = [lane.pop(0) for lane in lanes]
        rounds += ([[posting]] for posting in heads if is_structural(posting))
        for some in chunks((posting for posting in heads if not is_structural(posting)), pace.width):
            rounds += arranged(layout, some, is_apart=pace.width <= _SEPARATE)
        lanes = [lane for lane in lanes if lane]
    return rounds


def _read(layout: BoundLayout, refs: Sequence[EdgeRef], pace: _Pace) -> Plan[tuple[list[Entry], dict[str, Near]]]:
    nodes = {ref.near: ref.near_key(layout) for ref in refs}
    ledgers = [ref.ledger_key(layout) for ref in refs]
    items = yield from _items(layout, (*nodes.values(), *ledgers))
    fars = {ref.far: ref.far_key(layout) for ref in refs if ref.account.reads_far}
    # Behind the others: who saw an edge before it changed must not have seen what that change left.
    later = yield from _items(layout, (*(ref.key for ref in refs), *fars.values()))
    kinds = {ref.near: ref.account.hop.near for ref in refs}
    nears = {text: Near(kind, text, nodes[text], items[place_of(nodes[text])]) for text, kind in kinds.items()}
    entries = []
    for ref, ledger in zip(refs, ledgers, strict=True):
        near = nears[ref.near]
        far = later[place_of(fars[ref.far])] if ref.account.reads_far else None
        entry = Entry(ref, later[place_of(ref.key)], items[place_of(ledger)], near.item, far, near.life, near.next)
        entry.work_out(layout, pace.refused(ref))
        entries.append(entry)
    return entries, nears


def _items(layout: BoundLayout, keys: Iterable[Item]) -> Plan[dict[Place, Item | None]]:
    places = {place_of(key): key for key in keys}
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in places.values()])
    return dict(zip(places, found, strict=True))
