"""The audit: compares what a table stores with what follows from its nodes and edges.

| finding | what is wrong |
|---|---|
| declaration | an aggregate was counted by another declaration than it has now; only a rebuild corrects this |
| aggregate | a stored aggregate or summary is not what the edges give |
| ledger | the ledger of an edge is not what the edge contributes, or the edge does not exist |
| rank | a rank, for a least, greatest, latest or top value, is missing, left over, or not what its edge has |
| circle | a recursive aggregate has no value, because its edges form a cycle |
| copy | a copied field of an edge is not what its node has |
| dangling | a node of an edge does not exist |
| one-sided | a symmetric edge is stored at one end only |
| index entry | an index key is missing or not what fields say, or an index copy is missing, stray or different |
| claim | the claim of a unique value is missing, or its node has another value |
| unreadable | an item does not fit its class |

The source is read in two passes, or three with aggregates, and compared in the engine. A repair first reads the items
again. The result has counts, examples, and a report as JSON.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import ibis.expr.types as ir
from orjson import OPT_INDENT_2, loads

from adjoin.batch import RunPlan, TellProgress
from adjoin.batch.engines import Engine, Source, Want, open_engine, opened_source, readable
from adjoin.batch.job import Difference, Differences, Job, as_json, field_value, summary_name
from adjoin.batch.keys import key_parts
from adjoin.batch.ledger_rows import wanted
from adjoin.batch.ledgers import LedgerAudit, LedgerFault
from adjoin.batch.restoring import (
    EXAMPLES,
    HELD_UP,
    Restorer,
    RestoringStage,
    Suspect,
    WriteBackState,
    held_up_by,
    hints,
    spoilt,
    stages,
    suspects,
)
from adjoin.batch.satellites import Misfit, misfits
from adjoin.batch.tables import TARGET, attribute_want
from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType
from adjoin.errors import InvalidValue, shown
from adjoin.layouts.bound import BoundLayout
from adjoin.model import Ref
from adjoin.plans.copies import copies_on
from adjoin.plans.maintenance.copies import CopyRef, freshen
from adjoin.plans.maintenance.neighbours import reconcile_again
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.maintenance.standing import fields
from adjoin.plans.migrating.completing import complete_one
from adjoin.plans.repair import remove_dangling, remove_stray, restore_satellites, restore_twin, write_fields
from adjoin.plans.steps.batches import chunks
from adjoin.requests import Plan
from adjoin.rules import CopyRule, Rules
from adjoin.values import Item, decode

# --- findings ----------------------------------------------------------------------------------


Repairs: TypeAlias = Collection[str]
REPAIRABLE = ("aggregate", "ledger", "rank", "copy", "dangling", "one-sided", "index entry", "claim")
UNASKED = tuple(kind for kind in REPAIRABLE if kind != "dangling")
"""What `repair=True` repairs. A dangling edge is removed only if it is named: its node may be about to be written."""


def repairs(asked: bool | Iterable[str | bool]) -> tuple[str, ...]:
    """The kinds of findings to repair. True means all that need not be named."""
    if isinstance(asked, bool):
        return UNASKED if asked else ()
    if not isinstance(asked, Iterable):
        raise InvalidValue(f"repair takes True, False or kinds of findings, got {shown(asked)}")
    named = (asked,) if isinstance(asked, str) else tuple(asked)
    kinds = [
        kind
        for each in named
        for kind in (UNASKED if each is True else (each if isinstance(each, str) else shown(each),))
    ]
    for kind in kinds:
        if kind not in REPAIRABLE:
            raise InvalidValue(f"{shown(kind)} cannot be repaired; choose from {', '.join(REPAIRABLE)}")
    return tuple(kinds)


@dataclass(slots=True)
class Finding:
    """All faults of one kind in one field or class."""

    kind: str
    name: str
    count: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)
    repaired: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)
    """Some faults that could not be repaired, each with the reason."""

    def add(self, **example: Any) -> None:
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)

    def include(self, other: Finding, tenant: str) -> None:
        """Adds the same finding of a tenant."""
        self.count += other.count
        self.repaired += other.repaired
        for mine, theirs in ((self.examples, other.examples), (self.failures, other.failures)):
            mine += [{"tenant": tenant, **each} for each in theirs[: EXAMPLES - len(mine)]]

    def fail(self, **failure: Any) -> None:
        if len(self.failures) < EXAMPLES:
            self.failures.append(failure)


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit. It is true if nothing was found."""

    counts: dict[str, int]
    findings: tuple[Finding, ...]
    seconds: float
    tenants: tuple[str, ...] = ()
    """The tenants of the table, if a graph without a tenant was audited. Their examples name them."""

    def together(self, tenants: Mapping[str, Audit]) -> Audit:
        """This audit and those of all tenants as one."""
        counts, seconds = dict(self.counts), self.seconds
        found = {(each.kind, each.name): each for each in self.findings}
        for tenant, audit in tenants.items():
            seconds += audit.seconds
            for label, count in audit.counts.items():
                counts[label] = counts.get(label, 0) + count
            for each in audit.findings:
                found.setdefault((each.kind, each.name), Finding(each.kind, each.name)).include(each, tenant)
        return Audit(counts, tuple(found.values()), seconds, tuple(tenants))

    def __bool__(self) -> bool:
        return not self.findings

    @property
    def faults(self) -> int:
        return sum(finding.count for finding in self.findings)

    @property
    def left(self) -> int:
        """Faults that were not repaired."""
        return sum(finding.count - finding.repaired for finding in self.findings)

    def report(self) -> dict[str, Any]:
        """The audit as values for JSON."""
        return {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(self.seconds, 1),
            "counts": self.counts,
            "faults": self.faults,
            "left": self.left,
            "findings": [
                {
                    "kind": finding.kind,
                    "name": finding.name,
                    "count": finding.count,
                    "repaired": finding.repaired,
                    "examples": finding.examples,
                    "failures": finding.failures,
                }
                for finding in self.findings
            ],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        Path(path).write_bytes(as_json(self.report(), OPT_INDENT_2) + b"\n")


# --- the audit ---------------------------------------------------------------------------------


_StaleCopy: TypeAlias = tuple[dict[str, Any], dict[str, Any]]
"""The ends of an edge with a stale copied field, and the row of the edge."""
TOGETHER = 1000
"""The number of edges whose copied fields are refreshed together."""


def verify(
    layout: BoundLayout,
    rules: Rules,
    source: Source | str | os.PathLike[str],
    engine: str | Engine = "duckdb",
    *,
    run: RunPlan | None = None,
    repair: Repairs = (),
    delay: float = 0.0,
    progress: TellProgress | None = None,
    **options: Any,
) -> Audit:
    """Audits a source; repairs the kinds of findings in `repair`, for which `run` is needed.

    `delay` is how many seconds an index may lag behind its table.
    """
    started = time.monotonic()
    opened = open_engine(engine, **options)
    try:
        read = opened_source(source, opened, layout.table)
        with readable(read, opened):
            auditor = _Auditor(layout, rules, read, opened, run, repair, delay, progress or (lambda name, done: None))
            findings = [finding for finding in auditor.findings() if finding.count]
            return Audit(auditor.job.tables.counts, tuple(findings), time.monotonic() - started)
    finally:
        if opened is not engine:
            opened.close()


class _Auditor:
    def __init__(
        self,
        layout: BoundLayout,
        rules: Rules,
        source: Source,
        engine: Engine,
        run: RunPlan | None,
        repair: Repairs,
        delay: float,
        tell: TellProgress,
    ) -> None:
        self._layout, self._rules, self._source, self._engine = layout, rules, source, engine
        self._run, self._repair, self._delay, self._tell = run, repair, delay, tell
        every: dict[type[Any], set[Any]] = {kind.model: set() for kind in layout.schema.types}
        for model, wants in wanted(layout).items():
            every[model] |= wants
        for edge in layout.schema.edges:
            every[edge].add(TARGET)
        for copy in rules.copies:
            on_edge, on_node = _copy_wants(copy)
            every[copy.edge.model].add(on_edge)
            for node in copy.node.classes:
                every[node.model].add(on_node)
        keys = {*layout.schema.edges, *(group.edge.model for group in layout.rules.groups)}
        self.job = Job(engine, source, layout, rules, extra=every, keys=keys)

    def findings(self) -> Iterator[Finding]:
        # Their stored values belong to former declarations, so comparing them would report every node.
        for name in fields(self._rules.standing.awaited):
            finding = Finding("declaration", name)
            finding.add(reason="its declaration changed since it was counted; run rebuild")
            yield finding
        yield from self._aggregates()
        yield from self._summaries()
        for copy in self._rules.copies:
            finding = Finding("copy", f"{copy.edge.label}.{copy.field}")
            self._tell(finding.name, 0)
            for variant in copy.edge.variants:
                self._copies(finding, replace(copy, edge=variant))
            yield finding
        for kind in self._layout.schema.edges.values():
            yield self._dangling(kind)
            if kind.symmetric:
                yield self._one_sided(kind)
        yield from self._satellites()

    def _mend(self, finding: Finding, plan: Plan[int], **example: Any) -> None:
        """Repairs one fault, if its kind is to be repaired. A failure is recorded, and does not stop other repairs.

        The plan returns how many faults no longer exist.
        """
        if self._run is None or finding.kind not in self._repair:
            return
        try:
            finding.repaired += self._run(plan)
        except HELD_UP as error:
            finding.fail(**example, reason=held_up_by(error))

    def _followed(self, plan: Plan[list[Item]], kind: EdgeType, ends: dict[str, Any]) -> Plan[int]:
        """Repairs an edge, and then updates the aggregates that count it."""
        keys = yield from plan
        if keys:
            yield from reconcile_again(self._layout, kind, [(keys, *self._texts(kind, ends))], Tally())
        return 1

    def _texts(self, kind: EdgeType, ends: dict[str, Any]) -> tuple[str, str]:
        """The node keys of the two ends of an edge."""
        return self._layout.node_text(kind.source, ends["source"]), self._layout.node_text(kind.target, ends["target"])

    # --- values --------------------------------------------------------------------------------

    def _aggregates(self) -> Iterator[Finding]:
        found = {}
        circles = []
        for rule in self.job.rules:
            self._tell(rule.name, 0)
            found[rule.name], computed = self.job.aggregate(rule)
            if computed.circular is not None:
                circles.append(Finding("circle", rule.name))
                for row in self._engine.fetch(computed.circular.order_by("id")):
                    circles[-1].add(node=self.job.tables.id_of(rule.node, row["id"]))
        ledgers = LedgerAudit(self.job, self._source, found)
        restorer = None
        if self._run is not None:
            restorer = Restorer(self._layout, self._run, WriteBackState(None, ""), self._delay, self._tell)
        for stage in stages(self.job):
            yield from self._stage(stage, found, ledgers, restorer)
        yield from circles

    def _stage(
        self,
        stage: RestoringStage,
        differences: Mapping[str, Differences],
        ledgers: LedgerAudit,
        restorer: Restorer | None,
    ) -> list[Finding]:
        """The findings about the aggregates of one stage; repaired, if their kinds are to be repaired."""
        found = list(hints(stage, differences, ledgers))
        findings = [Finding(kind, name) for kind, name, _ in found]
        streams: list[Iterable[Suspect]] = []
        for finding, (kind, name, some) in zip(findings, found, strict=True):
            noted = _noted(finding, some)
            if restorer is not None and kind in self._repair:
                streams.append(suspects(self._layout, f"{kind} {name}", noted))
            else:
                # The finding counts what it passes on, so it is read to its end also if nothing is repaired.
                for _ in noted:
                    pass
        if restorer is not None and streams:
            if {"aggregate", "ledger"} & set(self._repair):
                streams += spoilt(stage, self._layout, ledgers)
            restorer.restore(stage, streams)
            if "rank" in self._repair:
                restorer.sweep(stage, ledgers)
            if "ledger" in self._repair:
                restorer.strike_out(stage, ledgers)
            for finding in findings:
                name = f"{finding.kind} {finding.name}"
                finding.repaired = restorer.restored.repaired(name)
                finding.failures = restorer.restored.reasons.get(name, [])
        return findings

    def _summaries(self) -> Iterator[Finding]:
        for summary in self.job.summaries:
            self._tell(summary_name(summary), 0)
            finding = Finding("aggregate", summary_name(summary))
            for each in self.job.summary(summary):
                finding.add(node=each.id, stored=_shown(each.stored), computed=_shown(each.computed))
                value = field_value(self._layout, summary, each)
                self._mend(finding, _done(write_fields(self._layout, [value])), node=each.id)
            yield finding

    def _copies(self, finding: Finding, rule: CopyRule) -> None:
        tables = self.job.tables
        edges, nodes = tables.table(rule.edge, as_stored=True), tables.table(rule.node, as_stored=True)
        on_edge, on_node = _copy_wants(rule)
        copied = edges.select(
            "source",
            "target",
            "pk",
            "sk",
            end=edges[rule.end],
            copy=edges[tables.column(on_edge)],
        )
        origin = nodes.select(id=nodes.id, origin=nodes[tables.column(on_node)])
        joined = copied.join(origin, copied.end == origin.id)
        rows = self._engine.fetch(self._engine.stage(joined.filter(~joined.copy.identical_to(joined.origin))))
        for some in chunks(rows, TOGETHER):
            stale = []
            for row in some:
                ends = self._ends(rule.edge, row)
                finding.add(**ends, stored=_loaded(row["copy"]), computed=_loaded(row["origin"]))
                stale.append((ends, row))
            if self._run is None or finding.kind not in self._repair:
                continue
            try:
                finding.repaired += self._run(self._freshened(finding, rule.edge.whole, stale))
            # One edge may be what fails. Alone, each is repaired or gets its own reason.
            except HELD_UP:
                for one in stale:
                    self._mend(finding, self._freshened(finding, rule.edge.whole, [one]), **one[0])

    def _freshened(self, finding: Finding, kind: EdgeType, stale: Sequence[_StaleCopy]) -> Plan[int]:
        """Writes the nodes' values into the copied fields of edges; returns for how many edges it did."""
        tally = Tally()
        yield from freshen(self._layout, [self._copy_ref(kind, ends, row) for ends, row in stale], tally)
        # The condition of a rule may read a copied field, so the edges are reconciled again.
        edges = [([self._key(row)], *self._texts(kind, ends)) for ends, row in stale]
        yield from reconcile_again(self._layout, kind, edges, Tally())
        aside = tally.report().set_aside
        for each in aside:
            finding.fail(edge=each.edge, reason=each.reason)
        return len(stale) - len(aside)

    def _copy_ref(self, kind: EdgeType, ends: dict[str, Any], row: dict[str, Any]) -> CopyRef:
        nodes: dict[str, Item] = {}
        for copy in copies_on(self._layout, kind):
            nodes[copy.end] = self._layout.node_key(copy.node, ends[copy.end])
        return CopyRef(kind, self._key(row), nodes)

    # --- edges ---------------------------------------------------------------------------------

    def _dangling(self, kind: EdgeType) -> Finding:
        finding = Finding("dangling", kind.label)
        self._tell(finding.name, 0)
        for variant in kind.variants:
            self._dangling_of(finding, variant)
        return finding

    def _dangling_of(self, finding: Finding, kind: EdgeType) -> None:
        edges = self.job.tables.table(kind).select("source", "target", "pk", "sk")
        for end, node in (("source", kind.source), ("target", kind.target)):
            nodes = self.job.tables.table(node).select("id")
            lost = edges.anti_join(nodes, edges[end] == nodes.id)
            if end == "target":
                # An edge that lacks both nodes is one fault, which was found at its source.
                there = self.job.tables.table(kind.source).select(there="id")
                lost = lost.semi_join(there, lost.source == there.there)
            for row in self._engine.fetch(self._engine.stage(lost)):
                ends = self._ends(kind, row)
                finding.add(**ends, missing=end)
                plan = remove_dangling(self._layout, kind.whole, ends["source"], ends["target"], self._key(row))
                self._mend(finding, self._followed(plan, kind.whole, ends), **ends)

    def _one_sided(self, kind: EdgeType) -> Finding:
        finding = Finding("one-sided", kind.label)
        for variant in kind.variants:
            self._one_sided_of(finding, variant)
        return finding

    def _halves(self, kind: EdgeType) -> tuple[ir.Table, list[str]]:
        edges = self.job.tables.table(kind)
        parts = key_parts(self._layout, kind, edges.sk)
        halves: ir.Table = self._engine.stage(edges.select("source", "target", "pk", "sk", **parts))
        # An edge from a node to itself is stored once, so it has no other half.
        return halves.filter(halves.source != halves.target) if kind.source is kind.target else halves, [*parts]

    def _one_sided_of(self, finding: Finding, kind: EdgeType) -> None:
        halves, parts = self._halves(kind)
        turned = next(each for each in kind.whole.variants if each.source is kind.target and each.target is kind.source)
        others = halves if turned is kind else self._halves(turned)[0]
        twins = others.select(
            s=others.target, t=others.source, **{f"j{place}": others[name] for place, name in enumerate(parts)}
        )
        same = [halves.source == twins.s, halves.target == twins.t]
        same += [halves[name] == twins[f"j{place}"] for place, name in enumerate(parts)]
        for row in self._engine.fetch(self._engine.stage(halves.anti_join(twins, same))):
            ends = self._ends(kind, row)
            finding.add(**ends)
            plan = restore_twin(self._layout, kind.whole, self._key(row))
            self._mend(finding, self._followed(plan, kind.whole, ends), **ends)

    def _ends(self, kind: EdgeType, row: dict[str, Any]) -> dict[str, Any]:
        tables, ends = self.job.tables, {}
        for side, node, end in (("source", kind.source, kind.whole.source), ("target", kind.target, kind.whole.target)):
            id = tables.id_of(node, row[side])
            ends[side] = id if end is node else Ref(node.model, id)
        return ends

    def _key(self, row: dict[str, Any]) -> Item:
        texts = (row["pk"], row["sk"])
        return {key.name: {key.type: text} for key, text in zip(self._layout.definition.keys, texts, strict=False)}

    # --- satellites ----------------------------------------------------------------------------

    def _satellites(self) -> Iterator[Finding]:
        found: dict[tuple[str, str], Finding] = {}
        for misfit in misfits(self._layout, self._rules, self._source, self._engine):
            finding = found.setdefault((misfit.kind, misfit.name), Finding(misfit.kind, misfit.name))
            finding.add(**misfit.shown)
            if misfit.repairable is not None:
                self._mend(finding, _done(self._mended(misfit)), **misfit.shown)
        yield from found.values()

    def _mended(self, misfit: Misfit) -> Plan[None]:
        assert misfit.repairable is not None
        if misfit.stray is not None:
            return remove_stray(self._layout, misfit.repairable, misfit.stray, misfit.owner)
        if misfit.is_own:
            return complete_one(self._layout, misfit.repairable, misfit.owner)
        return restore_satellites(self._layout, misfit.repairable, misfit.owner)


def _done(plan: Plan[Any]) -> Plan[int]:
    """A repair after which one fault is gone. If another writer was faster, the fault no longer exists either."""
    yield from plan
    return 1


def _copy_wants(rule: CopyRule) -> tuple[Want, Want]:
    """The wants of a copied field and of its origin: whole attributes, because a copy repeats what is stored."""
    return attribute_want(rule.edge.attributes[rule.field], None), attribute_want(rule.node.attributes[rule.of], None)


def _loaded(attribute: str | None) -> Any:
    """The value of an attribute that an engine returned as JSON."""
    return _shown(None if attribute is None else loads(attribute))


def _noted(finding: Finding, found: Iterable[Difference | LedgerFault]) -> Iterator[Difference | LedgerFault]:
    """Passes on what was found, and adds it to the finding."""
    for each in found:
        if isinstance(each, Difference):
            finding.add(node=each.id, stored=_shown(each.stored), computed=_shown(each.computed))
        else:
            finding.add(**each.shown())
        yield each


def _shown(attribute: Any) -> Any:
    return None if attribute is None else decode(attribute)
