"""Making aggregates true on a live table: the nodes that a job suspects, in rounds, what others are made of first.

What a job found is only a hint, hours old perhaps. For each suspect all edges are settled, which makes ledgers
agree with edges and applies differences; what then is not the sum of the edges is counted anew (see
`plans.maintenance.recounting`). Whatever is made of it follows at once. So it does not matter what changed since.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby, islice
from typing import Any, TypeAlias

from adjoin.batch.differences import Difference
from adjoin.batch.job import Job
from adjoin.batch.ledgers import LedgerAudit, LedgerFault
from adjoin.batch.state import State
from adjoin.errors import (
    TransactionCanceled,
)
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import chunks
from adjoin.plans.maintenance.entries import reason_of
from adjoin.plans.maintenance.neighbours import settle_found, settle_near
from adjoin.plans.maintenance.passing import CONTENDED, NEVER
from adjoin.plans.maintenance.postings import is_hopeless
from adjoin.plans.maintenance.ranks import remove_dead
from adjoin.plans.maintenance.recounting import Compared, begin, begun_before, finish, settle_and_compare
from adjoin.plans.maintenance.references import EdgeRef
from adjoin.plans.maintenance.report import SetAside, Tally
from adjoin.plans.maintenance.settling import settle
from adjoin.rules import Account
from adjoin.schema import NodeType

Run: TypeAlias = Callable[[Plan[Any]], Any]
"""Drives a plan over the graph's store."""
Progress: TypeAlias = Callable[[str, int], None]
"""Is told what is worked on, and how many nodes are done."""

ROUND = 1000
"""Nodes that are restored together."""
EXAMPLES = 10
SPOILT = ""
"""The name of no finding: what it says of a node, others say too."""
HELD_UP = (*NEVER, *CONTENDED)
"""Errors about the items of one repair, which say nothing about the others."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A node, by its partition key, that may not have what it should."""

    text: str
    name: str
    """What was found about it, as "CUSTOMER.owed"."""
    is_recounted: bool = False
    """Whether it is counted anew even if its values are right."""
    ref: EdgeRef | None = None
    """An edge whose ledger is not what it should be."""
    is_stray: bool = False
    """Whether that edge is not there any more."""
    rule: str = ""
    """The rule whose value differs."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Accounts of one class that are made of what the stages before it make."""

    level: int
    kind: NodeType
    accounts: tuple[Account, ...]

    @property
    def name(self) -> str:
        return f"{self.kind.label} {self.level}"

    @property
    def rules(self) -> list[str]:
        return [rule.name for account in self.accounts for rule in account.rules]


def stages(job: Job) -> list[Stage]:
    """The accounts of what a job computes, in the order in which they are to be restored."""
    levels: dict[str, int] = {}
    for rule in job.book.needed(job.rules):
        below = [levels[other.name] for other in job.book.needed([rule]) if other.name in levels]
        levels[rule.name] = max(below, default=-1) + 1
    found: dict[tuple[int, str], list[Account]] = {}
    for account in job.layout.rules.accounts:
        known = [levels[rule.name] for rule in account.rules if rule.name in levels]
        if known:
            found.setdefault((max(known), account.hop.near.label), []).append(account)
    return [Stage(level, some[0].hop.near, tuple(some)) for (level, _), some in sorted(found.items(), key=_place)]


def _place(found: tuple[tuple[int, str], list[Account]]) -> tuple[int, str]:
    return found[0]


Hints: TypeAlias = tuple[str, str, Iterable[Difference] | Iterable[LedgerFault]]
"""What was found about some nodes: which kind of finding, about what, and the nodes in the order of their keys."""


def hints(stage: Stage, found: Mapping[str, Iterable[Difference]], ledgers: LedgerAudit) -> Iterator[Hints]:
    """What was found about the nodes of a stage; `found` has what differs, by rule."""
    for account in stage.accounts:
        known = [rule for rule in account.rules if rule.name in found]
        for rule in known:
            yield "aggregate", rule.name, found[rule.name]
        yield "ledger", account.name, ledgers.faults(account)
        for rule in known:
            if rule.operation != "sum":
                yield "rank", rule.name, ledgers.rank_faults(rule)


def spoilt(stage: Stage, layout: BoundLayout, ledgers: LedgerAudit) -> Iterator[Iterator[Suspect]]:
    """The nodes of a stage that are counted anew whatever they have by now, because they were spoilt at one instant.

    A comparison on the live table cannot tell that: what is one too low looks right as long as an edge that just
    came is in the sum and not yet among the edges that were read.
    """
    for account in stage.accounts:
        yield (
            Suspect(layout.node_text(each.kind, each.id), SPOILT, is_recounted=True)
            for each in ledgers.unbalanced(account)
        )


def suspects(layout: BoundLayout, name: str, found: Iterable[Difference | LedgerFault]) -> Iterator[Suspect]:
    """The nodes that something was found about."""
    for each in found:
        text = layout.node_text(each.kind, each.id)
        if isinstance(each, Difference):
            yield Suspect(text, name, rule=each.rule)
        else:
            yield Suspect(text, name, each.is_rank, each.ref, each.fault == "stray")


@dataclass
class Restored:
    """What was made true, by what was found; and what was not, with the reason."""

    done: dict[str, int] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)
    """Nodes that are not there any more."""
    left: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    set_aside: list[SetAside] = field(default_factory=list)
    """Some edges that cannot be applied."""

    def settled(self, suspect: Suspect, *, is_gone: bool) -> None:
        if suspect.name == SPOILT:
            return
        counted = self.gone if is_gone else self.done
        counted[suspect.name] = counted.get(suspect.name, 0) + 1

    def failed(self, suspect: Suspect, reason: str) -> None:
        if suspect.name == SPOILT:
            return
        self.left[suspect.name] = self.left.get(suspect.name, 0) + 1
        reasons = self.reasons.setdefault(suspect.name, [])
        if len(reasons) < EXAMPLES:
            reasons.append({"node": suspect.text, "reason": reason})

    def repaired(self, name: str) -> int:
        """How much of what was found is not so any more."""
        return self.done.get(name, 0) + self.gone.get(name, 0)


def held_up_by(error: Exception) -> str:
    """What held up a repair, for people to read."""
    if not isinstance(error, CONTENDED) or (isinstance(error, TransactionCanceled) and is_hopeless(error)):
        return reason_of(error)
    return f"others wrote it at every attempt, so it is left for another run: {error}"


class Restorer:
    """Restores nodes over a live store; may stop anywhere and be started again."""

    def __init__(self, layout: BoundLayout, run: Run, state: State, delay: float, tell: Progress) -> None:
        """`delay` is how many seconds an index may be behind."""
        self._layout, self._run, self._state, self._delay, self._tell = layout, run, state, delay, tell
        self.restored = Restored()

    def restore(self, stage: Stage, streams: Iterable[Iterable[Suspect]]) -> None:
        """Restores the nodes of a stage; each stream has its suspects in the order of their keys."""
        ordered = merge(*streams, key=lambda suspect: suspect.text)
        nodes = (list(some) for _, some in groupby(ordered, key=lambda suspect: suspect.text))
        count = self._state.done(stage.name)
        for _ in islice(nodes, count):
            pass
        while chunk := list(islice(nodes, ROUND)):
            self._restore(stage, chunk)
            count += len(chunk)
            self._tell(stage.kind.label, count)
            self._state.advance(stage.name, len(chunk))
        self._state.save()

    def sweep(self, stage: Stage, ledgers: LedgerAudit) -> None:
        """Removes ranks of a stage that count for nobody, and never will: what crashes left."""
        for rule in (rule for account in stage.accounts for rule in account.rules):
            for some in chunks(ledgers.unnamed_ranks(rule), ROUND):
                self._run(remove_dead(self._layout, rule, dict(some)))

    def _restore(self, stage: Stage, chunk: Sequence[list[Suspect]]) -> None:
        try:
            compared = self._attempt(stage, chunk)
        except HELD_UP as error:
            if len(chunk) > 1:
                for one in chunk:
                    self._restore(stage, [one])
                return
            reason = held_up_by(error)
            for suspect in chunk[0]:
                self.restored.failed(suspect, reason)
            return
        for some in chunk:
            for suspect in some:
                if (problem := compared.aside.get((suspect.text, suspect.rule))) is not None:
                    self.restored.failed(suspect, f"an edge of it cannot be counted: {problem}")
                else:
                    self.restored.settled(suspect, is_gone=suspect.text in compared.gone)

    def _attempt(self, stage: Stage, chunk: Iterable[list[Suspect]]) -> Compared:
        """Restores some nodes; answers what was found of them before."""
        nodes = {some[0].text: any(suspect.is_recounted for suspect in some) for some in chunk}
        edges = [(suspect.ref, suspect.is_stray) for some in chunk for suspect in some if suspect.ref is not None]
        tally = Tally()
        self._run(settle(self._layout, [ref for ref, is_stray in edges if is_stray], tally))
        # Those that arrive are not looked for in an index only, which may not have them yet.
        arriving = [ref for ref, is_stray in edges if not is_stray and ref.account.hop.direction != "out"]
        self._run(settle_found(self._layout, arriving, tally))
        compared: Compared = self._run(settle_and_compare(self._layout, stage.kind, list(nodes), tally, stage.accounts))
        off = set(compared.off)
        wrong = [text for text, is_recounted in nodes.items() if is_recounted or text in off]
        if wrong:
            for prepare in (begun_before, begin):
                begun = self._run(prepare(self._layout, stage.kind, wrong))
                if begun and self._is_behind(stage.kind):
                    time.sleep(self._delay)
                self._run(finish(self._layout, stage.kind, begun, tally))
            if stage.kind.label in self._layout.rules.forgotten:
                # What others counted is forgotten in the new life, ledger by ledger.
                self._layout.rules.is_forgetting = True
                try:
                    self._run(settle_near(self._layout, stage.kind, wrong, tally))
                finally:
                    self._layout.rules.is_forgetting = False
        room = EXAMPLES - len(self.restored.set_aside)
        self.restored.set_aside += tally.report().set_aside[:room]
        return compared

    def _is_behind(self, kind: NodeType) -> bool:
        """Whether edges that count for a class are found through an index, which may not have the last ones yet."""
        accounts = self._layout.rules.accounts
        return self._delay > 0 and any(each.hop.near is kind and each.hop.direction == "into" for each in accounts)
