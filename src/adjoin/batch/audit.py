"""The audit: what a table stores against what follows from it.

| finding | what is wrong |
|---|---|
| aggregate | a stored aggregate or summary is not what the edges say |
| circle | a recursive aggregate has no value, for edges lead in a circle |
| copy | a field of an edge is not what the node has that it copies |
| dangling | an end of an edge is not there |
| one-sided | a symmetric edge is stored at one end only |
| index entry | a copy for an index is missing, stands beside nothing, or holds something else |
| claim | the claim to a unique value is missing, or its node has another value |
| unreadable | an item of a class does not fit it |

Everything is read in two passes and compared in the engine; what is repaired is looked at again before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import ibis.expr.types as ir
from orjson import OPT_INDENT_2, dumps

from adjoin.batch.columns import TARGET, field_want, tag_of
from adjoin.batch.engines import Engine, Source, open_engine, opened_source
from adjoin.batch.job import Job, summary_name
from adjoin.batch.keys import part_text
from adjoin.batch.rebuild import EXAMPLES, Apply, Progress, Run
from adjoin.batch.satellites import Misfit, misfits
from adjoin.errors import InvalidValue
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.repair import remove_dangling, remove_stray, restore_satellites, restore_twin, write_fields
from adjoin.rules import CopyRule, Rules
from adjoin.schema import EdgeType
from adjoin.values import Item, decode

Repairs: TypeAlias = Collection[str]
REPAIRABLE = ("aggregate", "dangling", "one-sided", "index entry", "claim")
UNASKED = tuple(kind for kind in REPAIRABLE if kind != "dangling")
"""What `repair=True` repairs. A dangling edge is only removed on request: its node may be on its way."""


def repairs(asked: bool | Iterable[str]) -> tuple[str, ...]:
    """The kinds of findings to repair."""
    if isinstance(asked, bool):
        return UNASKED if asked else ()
    kinds = (asked,) if isinstance(asked, str) else tuple(asked)
    for kind in kinds:
        if kind not in REPAIRABLE:
            raise InvalidValue(f"{kind!r} cannot be repaired; there is {', '.join(REPAIRABLE)}")
    return kinds


@dataclass(slots=True)
class Finding:
    """One sort of fault at one place of the model."""

    kind: str
    name: str
    count: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)
    repaired: int = 0

    def add(self, **example: Any) -> None:
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit looked at, and what it found; true if it found nothing."""

    counts: dict[str, int]
    findings: tuple[Finding, ...]
    seconds: float

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
        """The audit as JSON can hold it."""
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
                }
                for finding in self.findings
            ],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        Path(path).write_bytes(dumps(self.report(), default=str, option=OPT_INDENT_2) + b"\n")


def verify(
    layout: BoundLayout,
    rules: Rules,
    source: Source | str | os.PathLike[str],
    engine: str | Engine = "duckdb",
    *,
    run: Run | None = None,
    apply: Apply | None = None,
    repair: Repairs = (),
    progress: Progress | None = None,
    **options: Any,
) -> Audit:
    """Looks at everything; repairs the kinds of findings in `repair`, which needs `run`, and `apply` for aggregates."""
    started = time.monotonic()
    opened = open_engine(engine, **options)
    try:
        read = opened_source(source, opened)
        auditor = _Auditor(layout, rules, read, opened, run, apply, repair, progress or (lambda name, done: None))
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
        apply: Apply | None,
        repair: Repairs,
        tell: Progress,
    ) -> None:
        self._layout, self._rules, self._source, self._engine = layout, rules, source, engine
        self._run, self._apply, self._repair, self._tell = run, apply, repair, tell
        every: dict[type[Any], set[Any]] = {kind.model: set() for kind in layout.schema.types}
        for edge in layout.schema.edges:
            every[edge].add(TARGET)
        for copy in rules.copies:
            every[copy.edge.model].add(field_want(layout, copy.edge, copy.field))
            every[copy.node.model].add(field_want(layout, copy.node, copy.of))
        self.job = Job(engine, source, layout, rules, extra=every, keys=[*layout.schema.edges])

    def findings(self) -> Iterator[Finding]:
        yield from self._aggregates()
        for copy in self._rules.copies:
            yield self._copies(copy)
        for kind in self._layout.schema.edges.values():
            yield self._dangling(kind)
            if kind.symmetric:
                yield self._one_sided(kind)
        yield from self._satellites()

    def _mends(self, kind: str, plan: Plan[bool]) -> bool:
        """Repairs one fault, if that was asked for."""
        return self._run is not None and kind in self._repair and bool(self._run(plan))

    # --- values --------------------------------------------------------------------------------

    def _aggregates(self) -> Iterator[Finding]:
        for rule in self.job.rules:
            self._tell(rule.name, 0)
            differences, computed = self.job.aggregate(rule)
            finding = Finding("aggregate", rule.name)
            for each in differences:
                finding.add(node=each.id, stored=_shown(each.stored), computed=_shown(each.computed))
            if finding.count and self._apply is not None and "aggregate" in self._repair:
                finding.repaired = self._apply(iter(differences))
            yield finding
            circle = Finding("circle", rule.name)
            if computed.circular is not None:
                for row in self._engine.fetch(computed.circular.order_by("id")):
                    circle.add(node=self.job.tables.id_of(rule.node, row["id"]))
            yield circle
        for summary in self.job.summaries:
            self._tell(summary_name(summary), 0)
            finding = Finding("aggregate", summary_name(summary))
            for each in self.job.summary(summary):
                finding.add(node=each.id, stored=_shown(each.stored), computed=_shown(each.computed))
                if self._run is not None and "aggregate" in self._repair:
                    value = (each.kind, each.id, summary.field, each.computed)
                    finding.repaired += self._run(write_fields(self._layout, [value]))
            yield finding

    def _copies(self, rule: CopyRule) -> Finding:
        finding = Finding("copy", f"{rule.edge.label}.{rule.field}")
        self._tell(finding.name, 0)
        tables = self.job.tables
        edges, nodes = tables.table(rule.edge), tables.table(rule.node)
        copied = edges.select(
            "source",
            "target",
            end=edges[rule.end],
            copy=edges[tables.column(field_want(self._layout, rule.edge, rule.field))],
        )
        origin = nodes.select(id=nodes.id, origin=nodes[tables.column(field_want(self._layout, rule.node, rule.of))])
        joined = copied.join(origin, copied.end == origin.id)
        if tag_of(rule.edge, rule.field) != tag_of(rule.node, rule.of):
            return finding
        for row in self._engine.fetch(joined.filter(~joined.copy.identical_to(joined.origin))):
            finding.add(**self._ends(rule.edge, row), stored=row["copy"], computed=row["origin"])
        return finding

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
                finding.repaired += self._mends("dangling", plan)
        return finding

    def _one_sided(self, kind: EdgeType) -> Finding:
        finding = Finding("one-sided", kind.label)
        edges = self.job.tables.table(kind)
        sort = self._layout.key_templates(kind).sort
        told = [part.name for part in sort.parts if part.name in self._layout.key_fields(kind)]
        parts = {f"k{place}": part_text(sort, name, edges.sk) for place, name in enumerate(told)}
        halves: ir.Table = self._engine.stage(edges.select("source", "target", "pk", "sk", **parts))
        halves = halves.filter(halves.source != halves.target)
        twins = halves.select(
            s=halves.target, t=halves.source, **{f"j{place}": halves[name] for place, name in enumerate(parts)}
        )
        same = [halves.source == twins.s, halves.target == twins.t]
        same += [halves[name] == twins[f"j{place}"] for place, name in enumerate(parts)]
        for row in self._engine.fetch(self._engine.stage(halves.anti_join(twins, same))):
            finding.add(**self._ends(kind, row))
            finding.repaired += self._mends("one-sided", restore_twin(self._layout, kind, self._key(row)))
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
                finding.repaired += self._mends(misfit.kind, self._mended(misfit))
        yield from found.values()

    def _mended(self, misfit: Misfit) -> Plan[bool]:
        assert misfit.repairable is not None
        if misfit.stray is not None:
            return remove_stray(self._layout, misfit.repairable, misfit.stray, misfit.owner)
        return restore_satellites(self._layout, misfit.repairable, misfit.owner)


def _shown(attribute: Any) -> Any:
    return None if attribute is None else decode(attribute)
