"""What maintenance did, counted while it goes on and told at the end."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjoin.values import Item


@dataclass(frozen=True, slots=True)
class SetAside:
    """An edge that cannot be applied by a rule, or a change that cannot be applied at all, and why."""

    rule: str
    """Empty where it is about a whole change, or a node."""
    edge: Item
    """The key of its item."""
    reason: str
    position: str = ""
    """Where the change is in the stream, if it is about one."""


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """What one run of `maintain` did."""

    changes: int
    """Changes of nodes and edges that were read."""
    nodes: int
    """Nodes whose aggregates changed; of very many, one that changed again is counted again."""
    edges: int
    """Times that what an edge adds was applied, or a copy on it was refreshed."""
    set_aside: tuple[SetAside, ...]
    """What was set aside, and is not applied; of very much the last."""
    lag: float = 0.0
    """Seconds by which the oldest change that was looked at last was behind."""
    rate: float = 0.0
    """Changes a second, over about the last minute."""
    rebuild_due: str | None = None
    """Why a rebuild is due, if this run found that changes were missed."""
    retries: int = 0
    """Times that it could not go on, and tried again."""


_MANY = 10_000
"""Nodes and things set aside that a tally tells apart; what runs for ever must not grow."""


@dataclass
class Tally:
    """The same while it is counted."""

    changes: int = 0
    nodes: set[str] = field(default_factory=set)
    edges: int = 0
    aside: list[tuple[str, Item, str]] = field(default_factory=list)
    records: list[SetAside] = field(default_factory=list)
    """What was set aside by itself, without a rule."""
    others: int = 0
    """Nodes that were counted, and are not told apart any more."""

    def include(self, other: Tally) -> None:
        """Counts what another one counted as well."""
        self.changes += other.changes
        self.nodes |= other.nodes
        self.edges += other.edges
        self.aside += other.aside
        self.records += other.records
        self.others += other.others
        del self.aside[:-_MANY], self.records[:-_MANY]
        if len(self.nodes) > _MANY:
            self.others += len(self.nodes)
            self.nodes.clear()

    def undone(self) -> Tally:
        """The same of what will come again: what was applied is, and everything else is told then."""
        return Tally(nodes=self.nodes, edges=self.edges)

    def report(self) -> MaintenanceReport:
        aside = (*(SetAside(*each) for each in self.aside), *self.records)
        return MaintenanceReport(self.changes, self.others + len(self.nodes), self.edges, aside)
