"""Recomputing what a graph declares, and writing it back while the graph stays live.

Batch summaries are written here: plain updates of their fields, each under the condition that the node is
there. Aggregates are kept by the change stream's processor, which alone knows what it has applied; what
differs of them is handed to it (`Apply`), or only reported.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from orjson import JSONDecodeError, dumps, loads

from adjoin.batch.differences import Difference, Differences
from adjoin.batch.engines import Engine, Source, open_engine, opened_source
from adjoin.batch.exports import Export
from adjoin.batch.job import Job, summary_name
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.repair import ROUND, write_fields
from adjoin.rules import Rules, SummaryRule

Run: TypeAlias = Callable[[Plan[Any]], Any]
"""Drives a plan over the graph's store."""
Apply: TypeAlias = Callable[[Iterable[Difference]], int]
"""Makes aggregates what their edges say; answers on how many nodes it changed something."""
Progress: TypeAlias = Callable[[str, int], None]
"""Is told what is worked on, and how many nodes are done."""

EXAMPLES = 10
SAVE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Recomputed:
    """One aggregate or summary: on how many nodes it differed, some of them, and how many were written."""

    name: str
    differ: int
    examples: tuple[Difference, ...]
    written: int | None
    """None if nothing was to be written."""
    circular: int = 0
    """Nodes that have no value, because they are on a circle of edges of a recursive aggregate, or above one."""
    circular_examples: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild found and wrote."""

    counts: dict[str, int]
    """How many nodes and edges were read, by label."""
    results: tuple[Recomputed, ...]
    seconds: float

    @property
    def differ(self) -> int:
        return sum(result.differ for result in self.results)

    @property
    def written(self) -> int:
        return sum(result.written or 0 for result in self.results)


def rebuild(
    layout: BoundLayout,
    rules: Rules,
    source: Source | str | os.PathLike[str],
    engine: str | Engine = "duckdb",
    *,
    run: Run | None = None,
    apply: Apply | None = None,
    only: Collection[str] | None = None,
    state: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Rebuilt:
    """Recomputes everything declared, or `only` some fields ("CUSTOMER.owed"), and compares.

    With `run`, summaries are written back; with `apply`, aggregates. `state` names a file that remembers how
    far writing from an export came, so that the same call goes on after an interruption.
    """
    started = time.monotonic()
    tell = progress or (lambda name, done: None)
    opened = open_engine(engine, **options)
    try:
        read = opened_source(source, opened)
        job = Job(opened, read, layout, rules, only=only)
        results = []
        for rule in job.rules:
            tell(rule.name, 0)
            differences, found = job.aggregate(rule)
            circular = [] if found.circular is None else [row["id"] for row in opened.fetch(found.circular)]
            ids = tuple(job.tables.id_of(rule.node, text) for text in sorted(circular)[:EXAMPLES])
            seen = _Seen(rule.name, differences, tell)
            written = apply(seen) if apply is not None else None
            results.append(seen.result(written, len(circular), ids))
        writer = _Writer(layout, read, run, state)
        for summary in job.summaries:
            name = summary_name(summary)
            tell(name, 0)
            seen = _Seen(name, job.summary(summary), tell)
            results.append(seen.result(writer.write(summary, seen), 0, ()))
        writer.finish()
        return Rebuilt(job.tables.counts, tuple(results), time.monotonic() - started)
    finally:
        if opened is not engine:
            opened.close()


class _Seen:
    """Differences on their way to whoever writes them: counted, and some of them kept."""

    def __init__(self, name: str, differences: Differences, tell: Progress) -> None:
        self._name, self._rest, self._tell = name, iter(differences), tell
        self._count = 0
        self._examples: list[Difference] = []

    def __iter__(self) -> Iterator[Difference]:
        for difference in self._rest:
            self._count += 1
            if len(self._examples) < EXAMPLES:
                self._examples.append(difference)
            if not self._count % 1000:
                self._tell(self._name, self._count)
            yield difference

    def result(self, written: int | None, circular: int, ids: tuple[Any, ...]) -> Recomputed:
        for _ in self:
            pass
        return Recomputed(self._name, self._count, tuple(self._examples), written, circular, ids)


class _Writer:
    """Writes summaries back in rounds, and remembers how far it came."""

    def __init__(
        self, layout: BoundLayout, source: Source, run: Run | None, state: str | os.PathLike[str] | None
    ) -> None:
        self._layout, self._run = layout, run
        # A live table tells by itself what is written already; an export stays as it was.
        self._state = Path(state) if state is not None and isinstance(source, Export) else None
        self._identity = source.identity
        self._done = self._loaded()
        self._saved = time.monotonic()

    def _loaded(self) -> dict[str, int]:
        if self._state is None or not self._state.is_file():
            return {}
        try:
            remembered = loads(self._state.read_bytes())
        except JSONDecodeError:
            return {}
        return dict(remembered["done"]) if remembered.get("source") == self._identity else {}

    def write(self, rule: SummaryRule, differences: Iterable[Difference]) -> int | None:
        if self._run is None:
            return None
        name, written = summary_name(rule), 0
        rest = iter(differences)
        for _ in islice(rest, self._done.get(name, 0)):
            pass
        while some := tuple(islice(rest, ROUND)):
            values = [(each.kind, each.id, rule.field, each.computed) for each in some]
            written += self._run(write_fields(self._layout, values))
            self._done[name] = self._done.get(name, 0) + len(some)
            if time.monotonic() - self._saved >= SAVE_SECONDS:
                self._save()
        self._save()
        return written

    def _save(self) -> None:
        if self._state is not None:
            unfinished = self._state.with_name(self._state.name + ".new")
            unfinished.write_bytes(dumps({"source": self._identity, "done": self._done}))
            unfinished.replace(self._state)
        self._saved = time.monotonic()

    def finish(self) -> None:
        if self._state is not None:
            self._state.unlink(missing_ok=True)
