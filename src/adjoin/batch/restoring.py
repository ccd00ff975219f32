"""Corrects aggregates on a live table: takes the nodes that a job suspects, in groups, in the order of dependencies.

What a job found is only a hint, because it may be hours old. For each suspect, all edges are reconciled: their ledgers
then agree with the edges, and differences are applied. If the aggregate is still not the sum of the edges, the node is
recounted (see `plans.maintenance.recounting`). Aggregates that depend on it are updated at once. So it does not matter
what changed since the job read the table.

The progress of writing back from an export is kept in a file. A live table shows what is already written; an export
does not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from heapq import merge
from itertools import groupby, islice
from pathlib import Path
from typing import Any, TypeAlias

from orjson import JSONDecodeError, dumps, loads

from adjoin.batch import RunPlan, TellProgress
from adjoin.batch.job import Difference, Job
from adjoin.batch.ledgers import LedgerAudit, LedgerFault
from adjoin.dataclass import dataclass
from adjoin.entity_types import NodeType
from adjoin.errors import CONTENDED, NEVER, TransactionCanceled
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.counting.arrivals import strike_out
from adjoin.plans.counting.edge_state import reason_of
from adjoin.plans.counting.ledger import EdgeRef
from adjoin.plans.counting.node_transaction import is_hopeless
from adjoin.plans.maintenance.neighbours import reconcile_found, reconcile_near
from adjoin.plans.maintenance.ranks import remove_dead
from adjoin.plans.maintenance.reconciling import reconcile
from adjoin.plans.maintenance.recounting import Compared, begin, begun_before, finish, reconcile_and_compare
from adjoin.plans.maintenance.report import SetAside, Tally, remove_left
from adjoin.plans.steps.batches import chunks
from adjoin.rules import RuleGroup

# --- progress of a write-back ------------------------------------------------------------------


SAVE_SECONDS = 1.0


class WriteBackState:
    """How many nodes of each stage and summary are done. Without a path, nothing is stored.

    `source` identifies the export and the work. A file that names another source is ignored.
    """

    def __init__(self, path: str | os.PathLike[str] | None, source: str) -> None:
        self._path, self._source = None if path is None else Path(path), source
        self._done = self._loaded()
        self._saved = time.monotonic()

    def _loaded(self) -> dict[str, int]:
        if self._path is None or not self._path.is_file():
            return {}
        try:
            remembered = loads(self._path.read_bytes())
            return dict(remembered["done"]) if remembered["source"] == self._source else {}
        except (JSONDecodeError, KeyError, TypeError):
            return {}

    def done(self, name: str) -> int:
        return self._done.get(name, 0)

    def advance(self, name: str, count: int) -> None:
        self._done[name] = self.done(name) + count
        if time.monotonic() - self._saved >= SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        if self._path is not None:
            # A rename replaces the file at once, so a process that is killed here leaves the old or the new progress.
            unfinished = self._path.with_name(self._path.name + ".new")
            unfinished.write_bytes(dumps({"source": self._source, "done": self._done}))
            unfinished.replace(self._path)
        self._saved = time.monotonic()

    def finish(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)


# --- restoring ---------------------------------------------------------------------------------


ROUND = 1000
"""The number of nodes that are restored together."""
EXAMPLES = 10
REMEMBERED = 100_000
"""How many recounted nodes are remembered, so that later stages do not recount them too."""
SPOILT = ""
"""The name of suspects that are no finding of their own: other findings report the same node."""
HELD_UP = (*NEVER, *CONTENDED)
"""Errors that concern the items of one repair only. The other repairs continue."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A node whose aggregates may be wrong. `text` is its node key."""

    text: str
    name: str
    """The finding about it, such as "CUSTOMER.owed"."""
    is_recounted: bool = False
    """Whether it is recounted even if its values are right."""
    ref: EdgeRef | None = None
    """An edge whose ledger is wrong."""
    is_stray: bool = False
    """Whether that edge no longer exists."""
    rule: str = ""
    """The rule whose value differs."""


@dataclass(frozen=True, slots=True)
class RestoringStage:
    """Rule groups of one class that depend only on earlier stages."""

    level: int
    kind: NodeType
    groups: tuple[RuleGroup, ...]

    @property
    def name(self) -> str:
        return f"{self.kind.label} {self.level}"

    @property
    def rules(self) -> list[str]:
        return [rule.name for group in self.groups for rule in group.rules]


def stages(job: Job) -> list[RestoringStage]:
    """The rule groups that a job computes, in the order in which they must be restored: dependencies first."""
    levels: dict[str, int] = {}
    for rule in job.book.needed(job.rules):
        below = [levels[other.name] for other in job.book.needed([rule]) if other.name in levels]
        levels[rule.name] = max(below, default=-1) + 1
    found: dict[tuple[int, str], list[RuleGroup]] = {}
    for group in job.layout.rules.groups:
        known = [levels[rule.name] for rule in group.rules if rule.name in levels]
        if known:
            found.setdefault((max(known), group.hop.near.label), []).append(group)
    return [
        RestoringStage(level, some[0].hop.near, tuple(some)) for (level, _), some in sorted(found.items(), key=_place)
    ]


def _place(found: tuple[tuple[int, str], list[RuleGroup]]) -> tuple[int, str]:
    return found[0]


Hints: TypeAlias = tuple[str, str, Iterable[Difference] | Iterable[LedgerFault]]
"""A kind of finding, its name, and the nodes concerned, in the order of their keys."""


def hints(stage: RestoringStage, found: Mapping[str, Iterable[Difference]], ledgers: LedgerAudit) -> Iterator[Hints]:
    """What was found about the nodes of a stage. `found` has the differences by rule."""
    for group in stage.groups:
        known = [rule for rule in group.rules if rule.name in found]
        for rule in known:
            yield "aggregate", rule.name, found[rule.name]
        yield "ledger", group.name, ledgers.faults(group)
        for rule in known:
            if rule.is_ranked:
                yield "rank", rule.name, ledgers.rank_faults(rule)


def spoilt(stage: RestoringStage, layout: BoundLayout, ledgers: LedgerAudit) -> Iterator[Iterator[Suspect]]:
    """What has to be looked at in a stage besides the findings.

    First, the nodes that are recounted whatever they have now, because node and ledgers once disagreed. A comparison on
    the live table cannot show that: a count that is one too low looks right while a new edge is already in the sum but
    not yet among the edges that were read. Second, edges whose node does not exist, and that need a waiting marker if
    they contribute something.
    """
    for group in stage.groups:
        yield (
            Suspect(layout.node_text(each.kind, each.id), SPOILT, is_recounted=True)
            for each in ledgers.unbalanced(group)
        )
        yield suspects(layout, SPOILT, ledgers.unsure(group))


def suspects(layout: BoundLayout, name: str, found: Iterable[Difference | LedgerFault]) -> Iterator[Suspect]:
    """The nodes of some findings, as suspects."""
    for each in found:
        text = layout.node_text(each.kind, each.id)
        if isinstance(each, Difference):
            yield Suspect(text, name, rule=each.rule)
        else:
            yield Suspect(text, name, each.is_rank, each.ref, each.fault == "stray")


@dataclass
class Restored:
    """How many suspects were corrected, by finding; and which were not, with the reason."""

    done: dict[str, int] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)
    """Nodes that no longer exist."""
    left: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    set_aside: list[SetAside] = field(default_factory=list)
    """Some edges that cannot be applied."""

    def reconciled(self, suspect: Suspect, *, is_gone: bool) -> None:
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
        """How many suspects of a finding are no longer wrong."""
        return self.done.get(name, 0) + self.gone.get(name, 0)


def held_up_by(error: Exception) -> str:
    """The reason why a repair failed, as a message for people."""
    if not isinstance(error, CONTENDED) or (isinstance(error, TransactionCanceled) and is_hopeless(error)):
        return reason_of(error)
    return f"other writers changed it at every attempt; run the command again: {error}"


class Restorer:
    """Restores nodes on a live store. It may stop anywhere and be started again."""

    def __init__(
        self, layout: BoundLayout, run: RunPlan, state: WriteBackState, delay: float, tell: TellProgress
    ) -> None:
        """`delay` is how many seconds an index may lag behind its table."""
        self._layout, self._run, self._state, self._delay, self._tell = layout, run, state, delay, tell
        self._recounted: set[tuple[str, str]] = set()
        """Nodes that an earlier stage recounted, by label and node key. A recount is of all rules of a node."""
        self.restored = Restored()

    def restore(self, stage: RestoringStage, streams: Iterable[Iterable[Suspect]]) -> None:
        """Restores the nodes of a stage. Each stream yields its suspects in the order of their keys."""
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

    def sweep(self, stage: RestoringStage, ledgers: LedgerAudit) -> None:
        """Removes the ranks of a stage that no ledger names: crashes left them, and they will never count."""
        for rule in (rule for group in stage.groups for rule in group.rules):
            for some in chunks(ledgers.unnamed_ranks(rule), ROUND):
                self._run(remove_dead(self._layout, rule, dict(some)))

    def strike_out(self, stage: RestoringStage, ledgers: LedgerAudit) -> None:
        """Removes what is left of edges that do not exist, and has no effect.

        These are arrivals that a repair left which was cut off: maintenance removes an arrival when its edge goes, but
        this edge was gone before the arrival was recorded. They are ledgers that say only which stamps of former
        generations are spent. And they are records that an edge is set aside, if another program removed the ledger
        that said so.
        """
        for group in stage.groups:
            for refs in chunks(ledgers.left_ledgers(group), ROUND):
                self._run(reconcile(self._layout, refs, Tally()))
            for some in chunks(ledgers.left_arrivals(group), ROUND):
                self._run(strike_out(self._layout, some))
            self._run(remove_left(self._layout, group))

    def _restore(self, stage: RestoringStage, chunk: Sequence[list[Suspect]]) -> None:
        try:
            compared = self._attempt(stage, chunk)
        except HELD_UP as error:
            # One node may be what fails. Alone, each gets its own chance and its own reason.
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
                    self.restored.failed(suspect, f"one of its edges cannot be counted: {problem}")
                else:
                    self.restored.reconciled(suspect, is_gone=suspect.text in compared.gone)

    def _attempt(self, stage: RestoringStage, chunk: Iterable[list[Suspect]]) -> Compared:
        """Restores some nodes; returns how they compared with their edges before."""
        label = stage.kind.label
        nodes = {
            some[0].text: any(suspect.is_recounted for suspect in some) and (label, some[0].text) not in self._recounted
            for some in chunk
        }
        edges = [(suspect.ref, suspect.is_stray) for some in chunk for suspect in some if suspect.ref is not None]
        tally = Tally()
        self._run(reconcile(self._layout, [ref for ref, is_stray in edges if is_stray], tally))
        # Reconcile arriving edges by their keys too: an index may not have the newest ones yet.
        arriving = [ref for ref, is_stray in edges if not is_stray and ref.group.hop.direction != "out"]
        self._run(reconcile_found(self._layout, arriving, tally))
        compared: Compared = self._run(
            reconcile_and_compare(self._layout, stage.kind, list(nodes), tally, stage.groups)
        )
        off = set(compared.off)
        wrong = [text for text, is_recounted in nodes.items() if is_recounted or text in off]
        if wrong:
            # A recount that an earlier run left unfinished is ended first: a node prepares one generation at a time.
            for prepare in (begun_before, begin):
                begun = self._run(prepare(self._layout, stage.kind, wrong))
                if begun and self._is_behind(stage.kind):
                    time.sleep(self._delay)
                self._run(finish(self._layout, stage.kind, begun, tally))
            self._recounted.update((label, text) for text in wrong[: max(0, REMEMBERED - len(self._recounted))])
            if label in self._layout.rules.forgotten:
                # In the new generation, contributions to removed declarations are dropped from each ledger.
                self._layout.rules.is_forgetting = True
                try:
                    self._run(reconcile_near(self._layout, stage.kind, wrong, tally))
                finally:
                    self._layout.rules.is_forgetting = False
        room = EXAMPLES - len(self.restored.set_aside)
        self.restored.set_aside += tally.report().set_aside[:room]
        return compared

    def _is_behind(self, kind: NodeType) -> bool:
        """Whether edges that count for a class are found through an index, which may not have the newest ones yet."""
        groups = self._layout.rules.groups
        return self._delay > 0 and any(each.hop.near is kind and each.hop.direction == "into" for each in groups)
