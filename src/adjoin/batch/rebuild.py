"""Recomputes the aggregates and summaries of a graph, and writes those that differ while the graph is in use.

Summaries are written here: plain updates of their fields, each on condition that the node exists.
Aggregates are also written by maintenance at the same time. So their differences, and nodes whose edges
are not counted yet, go to `restoring`, which corrects them on the live table.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from adjoin.batch import RunPlan, TellProgress
from adjoin.batch.engines import Engine, Source, open_engine, opened_source, readable
from adjoin.batch.exports import Export
from adjoin.batch.job import Difference, Differences, Job, as_json, field_value, summary_name
from adjoin.batch.ledger_rows import wanted
from adjoin.batch.ledgers import LedgerAudit
from adjoin.batch.restoring import (
    EXAMPLES,
    SPOILT,
    Restored,
    Restorer,
    RestoringStage,
    Suspect,
    WriteBackState,
    hints,
    spoilt,
    stages,
    suspects,
)
from adjoin.dataclass import dataclass
from adjoin.entity_types import NodeType
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import GENERATION
from adjoin.plans.maintenance.report import SetAside
from adjoin.plans.repair import ROUND, write_fields
from adjoin.rules import Rules, SummaryRule
from adjoin.values import decode


@dataclass(frozen=True, slots=True)
class Recomputed:
    """One aggregate or summary: how many nodes differed, examples of them, and how many were written."""

    name: str
    differ: int
    examples: tuple[Difference, ...]
    written: int | None
    """None in a dry run."""
    circular: int = 0
    """Nodes without a value, because they are on a cycle of edges of a recursive aggregate, or above one."""
    circular_examples: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The result of a rebuild."""

    counts: dict[str, int]
    """How many nodes and edges were read, by label."""
    results: tuple[Recomputed, ...]
    seconds: float
    uncounted: int = 0
    """How many ledgers and ranks were missing or wrong. A dry run does not check them."""
    failures: tuple[dict[str, Any], ...] = ()
    """Some nodes that could not be corrected, each with the reason."""
    left: int = 0
    """How many could not be corrected, counting each aggregate of a node separately."""
    set_aside: tuple[SetAside, ...] = ()
    """Some edges that cannot be applied."""
    tenants: Mapping[str, Rebuilt] = field(default_factory=dict)
    """The result of each tenant, if a graph without a tenant was rebuilt. The other fields include all tenants."""

    def together(self, tenants: Mapping[str, Rebuilt]) -> Rebuilt:
        """This result and those of all tenants as one."""
        every = [self, *tenants.values()]
        examples = chain.from_iterable(each.failures for each in every)
        aside = chain.from_iterable(each.set_aside for each in every)
        return Rebuilt(
            {label: sum(each.counts.get(label, 0) for each in every) for label in self.counts},
            tuple(_together([each.results[place] for each in every]) for place in range(len(self.results))),
            sum(each.seconds for each in every),
            sum(each.uncounted for each in every),
            tuple(islice(examples, EXAMPLES)),
            sum(each.left for each in every),
            tuple(islice(aside, EXAMPLES)),
            dict(tenants),
        )

    @property
    def differ(self) -> int:
        return sum(result.differ for result in self.results)

    @property
    def written(self) -> int:
        return sum(result.written or 0 for result in self.results)


def _together(results: Sequence[Recomputed]) -> Recomputed:
    """One aggregate or summary over several tenants."""
    written = [each.written for each in results if each.written is not None]
    return Recomputed(
        results[0].name,
        sum(each.differ for each in results),
        tuple(islice(chain.from_iterable(each.examples for each in results), EXAMPLES)),
        sum(written) if written else None,
        sum(each.circular for each in results),
        tuple(islice(chain.from_iterable(each.circular_examples for each in results), EXAMPLES)),
    )


def rebuild(
    layout: BoundLayout,
    rules: Rules,
    source: Source | str | os.PathLike[str],
    engine: str | Engine = "duckdb",
    *,
    run: RunPlan | None = None,
    only: Collection[str] | None = None,
    recounted: Mapping[str, frozenset[str]] | None = None,
    state: str | os.PathLike[str] | None = None,
    diff: str | os.PathLike[str] | None = None,
    tenant: str | None = None,
    delay: float = 0.0,
    progress: TellProgress | None = None,
    **options: Any,
) -> Rebuilt:
    """Recomputes everything declared, or `only` some fields ("CUSTOMER.owed"), and compares.

    With `run`, differences are written back. `state` names a file that stores the progress of writing from an export,
    so that the same call continues after an interruption. `diff` names a file for all differences; those of a `tenant`
    are appended to it. `recounted` names the classes whose nodes are all recounted, each with the attributes of
    declarations that no longer exist.
    """
    started = time.monotonic()
    opened = open_engine(engine, **options)
    try:
        read = opened_source(source, opened, layout.table)
        with readable(read, opened):
            is_written = run is not None
            extra = wanted(layout) if is_written else {}
            # The classes of a family share a label and a table. Its head stands for all of them.
            heads = [kind for kind in layout.schema.nodes.values() if kind.whole is kind]
            anew = [kind for kind in heads if is_written and kind.label in (recounted or {})]
            for kind in anew:
                extra.setdefault(kind.model, set()).add((GENERATION, "S"))
            edges = [group.edge.model for group in layout.rules.groups] if is_written else []
            job = Job(opened, read, layout, rules, only=only, extra=extra, keys=edges)
            # A live table shows what is already written; an export does not change, so progress is stored in a file.
            remembered = WriteBackState(
                state if isinstance(read, Export) else None, f"{read.identity} {_mark(layout, job)}"
            )
            with _Diff(diff, tenant) as written_down:
                # Plans of maintenance ask the rules for this while the rebuild runs, and `finally` takes it back.
                layout.rules.forgotten = dict(recounted or {})
                work = _Rebuild(layout, job, read, run, remembered, delay, progress or (lambda name, done: None))
                results = [*work.aggregates(written_down, anew), *work.summaries(written_down)]
            remembered.finish()
            restored = work.restored
            failures = [each for some in restored.reasons.values() for each in some]
            return Rebuilt(
                job.tables.counts,
                tuple(results),
                time.monotonic() - started,
                work.uncounted,
                tuple(failures[:EXAMPLES]),
                sum(restored.left.values()),
                tuple(restored.set_aside),
            )
    finally:
        layout.rules.forgotten = {}
        if opened is not engine:
            opened.close()


def _mark(layout: BoundLayout, job: Job) -> str:
    """A digest of the work. Progress is stored as numbers, which mean nothing for other rules or tenants."""
    names = [rule.name for rule in job.rules] + [f"{summary_name(each)} {each.summary}" for each in job.summaries]
    names += [group.mark for group in layout.rules.groups]
    names += map(str, layout.ledgers.record_key("REBUILD", "state").values())  # the tenant
    return hashlib.sha256(repr(names).encode()).hexdigest()[:16]


class _Rebuild:
    def __init__(
        self,
        layout: BoundLayout,
        job: Job,
        source: Source,
        run: RunPlan | None,
        state: WriteBackState,
        delay: float,
        tell: TellProgress,
    ) -> None:
        self._layout, self._job, self._source, self._run, self._state = layout, job, source, run, state
        self._delay, self._tell = delay, tell
        self.restored = Restored()
        self.uncounted = 0

    def aggregates(self, diff: _Diff, anew: Sequence[NodeType] = ()) -> list[Recomputed]:
        found = {}
        for rule in self._job.rules:
            self._tell(rule.name, 0)
            found[rule.name] = self._job.aggregate(rule)
        seen = {name: _Seen(name, differences, self._tell, diff) for name, (differences, _) in found.items()}
        if self._run is not None and (found or anew):
            self._restore(self._run, seen, {name: differences for name, (differences, _) in found.items()}, anew)
        results = []
        for rule in self._job.rules:
            circular = found[rule.name][1].circular
            texts = [] if circular is None else [row["id"] for row in self._job.engine.fetch(circular)]
            ids = tuple(self._job.tables.id_of(rule.node, text) for text in sorted(texts)[:EXAMPLES])
            written = None if self._run is None else self.restored.done.get(rule.name, 0)
            results.append(seen[rule.name].result(written, len(texts), ids))
        return results

    def _restore(
        self, run: RunPlan, seen: dict[str, _Seen], found: dict[str, Differences], anew: Sequence[NodeType]
    ) -> None:
        audit = LedgerAudit(self._job, self._source, found)
        restorer = Restorer(self._layout, run, self._state, self._delay, self._tell)
        self.restored = restorer.restored
        staged = stages(self._job)
        # A class that no longer has aggregates only loses its old values.
        left = [kind for kind in anew if all(stage.kind is not kind for stage in staged)]
        for kind in left:
            restorer.restore(RestoringStage(-1, kind, ()), [self._nodes(kind)])
        for stage in staged:
            streams = [
                suspects(self._layout, name if kind == "aggregate" else kind, self._counted(kind, some))
                for kind, name, some in hints(stage, seen, audit)
            ]
            every = [self._nodes(stage.kind)] if stage.kind in anew else []
            restorer.restore(stage, [*streams, *every, *spoilt(stage, self._layout, audit)])
            restorer.sweep(stage, audit)
            restorer.strike_out(stage, audit)

    def _nodes(self, kind: NodeType) -> Iterator[Suspect]:
        """All nodes of a class that have aggregates, or had them."""
        tables = self._job.tables
        nodes = tables.table(kind)
        is_made = any(rule.node is kind for rule in self._layout.rules.rules)
        found = nodes if is_made else nodes.filter(nodes[tables.column((GENERATION, "S"))].notnull())
        for row in self._job.engine.fetch(self._job.engine.stage(found.select("id")), ["id"]):
            text = self._layout.node_text(kind, tables.id_of(kind, row["id"]))
            yield Suspect(text, SPOILT, is_recounted=True)

    def _counted(self, kind: str, found: Iterable[Any]) -> Iterator[Any]:
        for each in found:
            self.uncounted += kind != "aggregate"
            yield each

    # --- summaries -----------------------------------------------------------------------------

    def summaries(self, diff: _Diff) -> list[Recomputed]:
        results = []
        for rule in self._job.summaries:
            name = summary_name(rule)
            self._tell(name, 0)
            seen = _Seen(name, self._job.summary(rule), self._tell, diff)
            written = None if self._run is None else self._write(self._run, rule, seen)
            results.append(seen.result(written, 0, ()))
        return results

    def _write(self, run: RunPlan, rule: SummaryRule, differences: Iterable[Difference]) -> int:
        name, written = summary_name(rule), 0
        rest = iter(differences)
        # The differences of an export come in the same order each time, so as many as are done are skipped.
        for _ in islice(rest, self._state.done(name)):
            pass
        while some := tuple(islice(rest, ROUND)):
            written += run(write_fields(self._layout, [field_value(self._layout, rule, each) for each in some]))
            self._state.advance(name, len(some))
        self._state.save()
        return written


class _Seen:
    """Passes differences on to the writer; counts them, writes them to the diff file, and keeps some as examples."""

    def __init__(self, name: str, differences: Differences, tell: TellProgress, diff: _Diff) -> None:
        self._name, self._rest, self._tell, self._diff = name, iter(differences), tell, diff
        self._count = 0
        self._examples: list[Difference] = []

    def __iter__(self) -> Iterator[Difference]:
        for difference in self._rest:
            self._count += 1
            self._diff.write(difference)
            if len(self._examples) < EXAMPLES:
                self._examples.append(difference)
            if not self._count % 1000:
                self._tell(self._name, self._count)
            yield difference

    def result(self, written: int | None, circular: int, ids: tuple[Any, ...]) -> Recomputed:
        # What the writer did not ask for is counted too, and written to the file of differences.
        for _ in self:
            pass
        return Recomputed(self._name, self._count, tuple(self._examples), written, circular, ids)


class _Diff:
    """The diff file: one line of JSON per difference. Without a path, nothing is written."""

    def __init__(self, path: str | os.PathLike[str] | None, tenant: str | None) -> None:
        self._path, self._tenant = None if path is None else Path(path), tenant
        self._file: TextIO | None = None

    def __enter__(self) -> _Diff:
        if self._path is not None:
            self._file = self._path.open("w" if self._tenant is None else "a", encoding="utf-8")
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, difference: Difference) -> None:
        if self._file is not None:
            record: dict[str, Any] = {} if self._tenant is None else {"tenant": self._tenant}
            record |= {
                "name": difference.rule,
                "node": difference.id,
                "stored": None if difference.stored is None else decode(difference.stored),
                "computed": None if difference.computed is None else decode(difference.computed),
            }
            self._file.write(as_json(record).decode() + "\n")
