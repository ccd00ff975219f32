"""The audit: what a table stores against what follows from it.

| finding | what is wrong |
|---|---|
| declaration | an aggregate is declared otherwise than it was counted, which only a rebuild puts right |
| aggregate | a stored aggregate or summary is not what the edges say |
| ledger | what was counted for an edge is not what the edge adds, or there is no such edge |
| rank | a value in order, for a least, greatest, latest or top one, is missing, too much, or not its edge's |
| circle | a recursive aggregate has no value, for edges lead in a circle |
| copy | a field of an edge is not what the node has that it copies |
| dangling | an end of an edge is not there |
| one-sided | a symmetric edge is stored at one end only |
| index entry | a copy for an index is missing, stands beside nothing, or holds something else |
| claim | the claim to a unique value is missing, or its node has another value |
| unreadable | an item of a class does not fit it |

Everything is read in two passes, or three with aggregates, and compared in the engine; what is repaired is
looked at again before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import ibis.expr.types as ir
from orjson import loads

from adjoin.batch.columns import TARGET, attribute_want
from adjoin.batch.differences import Difference, Differences
from adjoin.batch.engines import Engine, Source, Want, open_engine, opened_source, readable
from adjoin.batch.findings import Audit, Finding, Repairs
from adjoin.batch.job import Job, summary_name
from adjoin.batch.keys import key_parts
from adjoin.batch.ledgers import LedgerAudit, LedgerFault, wanted
from adjoin.batch.restoring import (
    HELD_UP,
    Progress,
    Restorer,
    Run,
    Stage,
    Suspect,
    held_up_by,
    hints,
    spoilt,
    stages,
    suspects,
)
from adjoin.batch.satellites import Misfit, misfits
from adjoin.batch.state import State
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import chunks
from adjoin.plans.copies import copies_on
from adjoin.plans.maintenance.copies import CopyRef, freshen
from adjoin.plans.maintenance.neighbours import settle_again
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.maintenance.standing import fields
from adjoin.plans.repair import remove_dangling, remove_stray, restore_satellites, restore_twin, write_fields
from adjoin.rules import CopyRule, Rules
from adjoin.schema import EdgeType
from adjoin.values import Item, decode

_Stale: TypeAlias = tuple[dict[str, Any], dict[str, Any]]
"""The ends of an edge whose copies are not fresh, and the row that it was found as."""
TOGETHER = 1000
"""Copies that are refreshed at a time."""


def verify(
    layout: BoundLayout,
    rules: Rules,
    source: Source | str | os.PathLike[str],
    engine: str | Engine = "duckdb",
    *,
    run: Run | None = None,
    repair: Repairs = (),
    delay: float = 0.0,
    progress: Progress | None = None,
    **options: Any,
) -> Audit:
    """Looks at everything; repairs the kinds of findings in `repair`, which needs `run`.

    `delay` is how many seconds an index may be behind.
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
        run: Run | None,
        repair: Repairs,
        delay: float,
        tell: Progress,
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
            every[copy.node.model].add(on_node)
        self.job = Job(engine, source, layout, rules, extra=every, keys=[*layout.schema.edges])

    def findings(self) -> Iterator[Finding]:
        for name in fields(self._rules.standing.awaited):
            finding = Finding("declaration", name)
            finding.add(reason="it is declared otherwise than it was counted; run rebuild")
            yield finding
        yield from self._aggregates()
        yield from self._summaries()
        for copy in self._rules.copies:
            yield self._copies(copy)
        for kind in self._layout.schema.edges.values():
            yield self._dangling(kind)
            if kind.symmetric:
                yield self._one_sided(kind)
        yield from self._satellites()

    def _mend(self, finding: Finding, plan: Plan[int], **example: Any) -> None:
        """Repairs what was found, if that was asked for; what holds it up is told, and holds up nothing else.

        The plan answers how much of it is not so any more.
        """
        if self._run is None or finding.kind not in self._repair:
            return
        try:
            finding.repaired += self._run(plan)
        except HELD_UP as error:
            finding.fail(**example, reason=held_up_by(error))

    def _followed(self, plan: Plan[list[Item]], kind: EdgeType, ends: dict[str, Any]) -> Plan[int]:
        """The repair of an edge, which may be counted; what counts it follows at once."""
        keys = yield from plan
        if keys:
            yield from settle_again(self._layout, kind, [(keys, *self._texts(kind, ends))], Tally())
        return 1

    def _texts(self, kind: EdgeType, ends: dict[str, Any]) -> tuple[str, str]:
        """The partition keys of the nodes at the ends of an edge."""
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
        for stage in stages(self.job):
            yield from self._stage(stage, found, ledgers)
        yield from circles

    def _stage(self, stage: Stage, differences: Mapping[str, Differences], ledgers: LedgerAudit) -> list[Finding]:
        """What was found about the aggregates of a class; repaired, if that was asked for."""
        found = list(hints(stage, differences, ledgers))
        findings = [Finding(kind, name) for kind, name, _ in found]
        streams: list[Iterable[Suspect]] = []
        for finding, (kind, name, some) in zip(findings, found, strict=True):
            noted = _noted(finding, some)
            if self._run is not None and kind in self._repair:
                streams.append(suspects(self._layout, f"{kind} {name}", noted))
            else:
                for _ in noted:
                    pass
        if self._run is not None and streams:
            restorer = Restorer(self._layout, self._run, State(None, ""), self._delay, self._tell)
            if {"aggregate", "ledger"} & set(self._repair):
                streams += spoilt(stage, self._layout, ledgers)
            restorer.restore(stage, streams)
            if "rank" in self._repair:
                restorer.sweep(stage, ledgers)
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
                value = (each.kind, each.id, summary.field, each.computed)
                self._mend(finding, _done(write_fields(self._layout, [value])), node=each.id)
            yield finding

    def _copies(self, rule: CopyRule) -> Finding:
        finding = Finding("copy", f"{rule.edge.label}.{rule.field}")
        self._tell(finding.name, 0)
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
                finding.repaired += self._run(self._freshened(finding, rule.edge, stale))
            except HELD_UP:
                for one in stale:
                    self._mend(finding, self._freshened(finding, rule.edge, [one]), **one[0])
        return finding

    def _freshened(self, finding: Finding, kind: EdgeType, stale: Sequence[_Stale]) -> Plan[int]:
        """Makes the copies on edges what their nodes have; answers on how many."""
        tally = Tally()
        yield from freshen(self._layout, [self._copy_ref(kind, ends, row) for ends, row in stale], tally)
        # A condition may be about what was copied.
        edges = [([self._key(row)], *self._texts(kind, ends)) for ends, row in stale]
        yield from settle_again(self._layout, kind, edges, Tally())
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
        edges = self.job.tables.table(kind).select("source", "target", "pk", "sk")
        for end, node in (("source", kind.source), ("target", kind.target)):
            nodes = self.job.tables.table(node).select("id")
            lost = edges.anti_join(nodes, edges[end] == nodes.id)
            if end == "target":
                # An edge without either end is one fault.
                there = self.job.tables.table(kind.source).select(there="id")
                lost = lost.semi_join(there, lost.source == there.there)
            for row in self._engine.fetch(self._engine.stage(lost)):
                ends = self._ends(kind, row)
                finding.add(**ends, missing=end)
                plan = remove_dangling(self._layout, kind, ends["source"], ends["target"], self._key(row))
                self._mend(finding, self._followed(plan, kind, ends), **ends)
        return finding

    def _one_sided(self, kind: EdgeType) -> Finding:
        finding = Finding("one-sided", kind.label)
        edges = self.job.tables.table(kind)
        parts = key_parts(self._layout, kind, edges.sk)
        halves: ir.Table = self._engine.stage(edges.select("source", "target", "pk", "sk", **parts))
        halves = halves.filter(halves.source != halves.target)
        twins = halves.select(
            s=halves.target, t=halves.source, **{f"j{place}": halves[name] for place, name in enumerate(parts)}
        )
        same = [halves.source == twins.s, halves.target == twins.t]
        same += [halves[name] == twins[f"j{place}"] for place, name in enumerate(parts)]
        for row in self._engine.fetch(self._engine.stage(halves.anti_join(twins, same))):
            ends = self._ends(kind, row)
            finding.add(**ends)
            plan = restore_twin(self._layout, kind, self._key(row))
            self._mend(finding, self._followed(plan, kind, ends), **ends)
        return finding

    def _ends(self, kind: EdgeType, row: dict[str, Any]) -> dict[str, Any]:
        tables = self.job.tables
        return {"source": tables.id_of(kind.source, row["source"]), "target": tables.id_of(kind.target, row["target"])}

    def _key(self, row: dict[str, Any]) -> Item:
        definition = self._layout.definition
        assert definition.sort is not None
        return {definition.partition.name: {"S": row["pk"]}, definition.sort.name: {"S": row["sk"]}}

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
        return restore_satellites(self._layout, misfit.repairable, misfit.owner)


def _done(plan: Plan[Any]) -> Plan[int]:
    """A repair that leaves nothing of one fault: if others were faster, there is nothing to repair any more."""
    yield from plan
    return 1


def _copy_wants(rule: CopyRule) -> tuple[Want, Want]:
    """Where a copy is on an edge, and where on the node what it is of: whole, for what is stored is copied."""
    return attribute_want(rule.edge.attributes[rule.field], None), attribute_want(rule.node.attributes[rule.of], None)


def _loaded(attribute: str | None) -> Any:
    """The value of an attribute that an engine has as JSON."""
    return _shown(None if attribute is None else loads(attribute))


def _noted(finding: Finding, found: Iterable[Difference | LedgerFault]) -> Iterator[Difference | LedgerFault]:
    """What was found, taken down on its way to whoever repairs it."""
    for each in found:
        if isinstance(each, Difference):
            finding.add(node=each.id, stored=_shown(each.stored), computed=_shown(each.computed))
        else:
            finding.add(**each.shown())
        yield each


def _shown(attribute: Any) -> Any:
    return None if attribute is None else decode(attribute)
