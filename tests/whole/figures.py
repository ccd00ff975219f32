"""What a run did, counted: a fault that is not in here did not happen."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.whole.journal import Told


@dataclass
class Figures:
    rounds: int = 0
    versions: Counter[str] = field(default_factory=Counter)
    """Rounds, by the format of the file and its durability."""
    kills: Counter[str] = field(default_factory=Counter)
    interrupts: Counter[str] = field(default_factory=Counter)
    jumps: int = 0
    pairs: int = 0
    """Key pairs of the server that were replaced."""
    asked: int = 0
    """How often credentials were asked for, after those before had expired."""
    spoilt: int = 0
    """Aggregates that somebody else wrote."""
    repaired: int = 0
    """Faults that `verify --repair` repaired, by its own word."""
    resumed: int = 0
    """Copies that went on with what one before had left."""
    acknowledged: Counter[str] = field(default_factory=Counter)
    """Calls, by kind."""
    workers: Counter[str] = field(default_factory=Counter)
    """Calls, by worker."""
    unknown: int = 0
    finished: int = 0
    """Deletes that were stopped in their midst, and run again to their end."""
    largest: int = 0
    """Items of the largest node that was deleted."""
    errors: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    """Commands that came to their end, by name and exit status."""
    refused: int = 0
    """How often an older adjoin refused a file whose format it does not know."""

    def add(self, name: str, told: Told) -> None:
        self.acknowledged.update(told.acknowledged)
        self.workers[name] += told.acknowledged.total()
        self.unknown += told.unknown
        self.finished += told.finished
        self.largest = max(self.largest, told.largest)
        self.errors.update(told.errors)

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{self.rounds} rounds: {_listed(self.versions)}",
                f"{self.kills.total()} kills: {_listed(self.kills)}",
                f"{self.interrupts.total()} interrupts: {_listed(self.interrupts)}",
                f"{self.jumps} clocks set; {self.pairs} key pairs replaced, credentials asked for {self.asked} times",
                f"{self.spoilt} aggregates spoilt; {self.repaired} faults repaired; {self.resumed} copies resumed",
                f"{self.acknowledged.total()} calls acknowledged: {_listed(self.acknowledged)}",
                f"by worker: {_listed(self.workers)}; an older adjoin refused a newer file {self.refused} times",
                f"deletes: the largest of {self.largest} items, {self.finished} stopped and run again to their end",
                f"{self.unknown} calls of unknown outcome; errors: {_listed(self.errors)}",
                f"commands that ended by themselves: {_listed(self.ended)}",
            ]
        )


def _listed(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(counted.items())) or "none"
