"""What an audit found, and which of it can be repaired: counts, examples, and a report as JSON."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from orjson import OPT_INDENT_2

from adjoin.batch.differences import as_json
from adjoin.batch.restoring import EXAMPLES
from adjoin.errors import InvalidValue

Repairs: TypeAlias = Collection[str]
REPAIRABLE = ("aggregate", "ledger", "rank", "copy", "dangling", "one-sided", "index entry", "claim")
UNASKED = tuple(kind for kind in REPAIRABLE if kind != "dangling")
"""What `repair=True` repairs. A dangling edge is only removed on request: its node may be on its way."""


def repairs(asked: bool | Iterable[str | bool]) -> tuple[str, ...]:
    """The kinds of findings to repair; True stands for all that need not be named."""
    if isinstance(asked, bool):
        return UNASKED if asked else ()
    named = (asked,) if isinstance(asked, str) else tuple(asked)
    kinds = [kind for each in named for kind in (UNASKED if each is True else (str(each),))]
    for kind in kinds:
        if kind not in REPAIRABLE:
            raise InvalidValue(f"{kind!r} cannot be repaired; there is {', '.join(REPAIRABLE)}")
    return tuple(kinds)


@dataclass(slots=True)
class Finding:
    """One sort of fault at one place of the model."""

    kind: str
    name: str
    count: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)
    repaired: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)
    """Some of what was to be repaired and could not, each with the reason."""

    def add(self, **example: Any) -> None:
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)

    def include(self, other: Finding, tenant: str) -> None:
        """Adds what was found of a tenant."""
        self.count += other.count
        self.repaired += other.repaired
        for mine, theirs in ((self.examples, other.examples), (self.failures, other.failures)):
            mine += [{"tenant": tenant, **each} for each in theirs[: EXAMPLES - len(mine)]]

    def fail(self, **failure: Any) -> None:
        if len(self.failures) < EXAMPLES:
            self.failures.append(failure)


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit looked at, and what it found; true if it found nothing."""

    counts: dict[str, int]
    findings: tuple[Finding, ...]
    seconds: float
    tenants: tuple[str, ...] = ()
    """The tenants of the table, where a graph of none was audited; what was found of theirs names them."""

    def together(self, tenants: Mapping[str, Audit]) -> Audit:
        """What was found for all tenants."""
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
                    "failures": finding.failures,
                }
                for finding in self.findings
            ],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        Path(path).write_bytes(as_json(self.report(), OPT_INDENT_2) + b"\n")
