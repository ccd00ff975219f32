"""Timing: replays operations one after the other on a contestant, and summarises the times."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from time import perf_counter_ns, process_time_ns

from benchmarks.contestant import Contestant
from benchmarks.workload import MIX, Operation, quantile

PERCENTILES: dict[str, float] = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


@dataclass(frozen=True)
class Round:
    """One replay: nanoseconds by the clock and of the processor, and by the clock per operation."""

    whole: int
    processor: int
    each: list[int]


def replay(contestant: Contestant, operations: Sequence[Operation]) -> Round:
    methods = {name: getattr(contestant, name) for name in MIX}
    calls = [(methods[operation.name], operation.arguments) for operation in operations]
    each: list[int] = []
    gc.collect()
    begin, processor = perf_counter_ns(), process_time_ns()
    for call, arguments in calls:
        start = perf_counter_ns()
        call(*arguments)
        each.append(perf_counter_ns() - start)
    return Round(perf_counter_ns() - begin, process_time_ns() - processor, each)


class Record:
    """The rounds of one contestant."""

    def __init__(self, name: str, operations: Sequence[Operation]) -> None:
        self.name = name
        self._operations = operations
        self.rounds: list[Round] = []

    @property
    def throughput(self) -> float:
        """Operations per second, the median of the rounds."""
        return median(len(self._operations) * 1e9 / round.whole for round in self.rounds)

    @property
    def processor(self) -> float:
        """Processor microseconds per operation, the median of the rounds."""
        return median(round.processor / len(self._operations) / 1e3 for round in self.rounds)

    def latencies(self, name: str) -> list[int]:
        """The nanoseconds of every operation of this name in all rounds, sorted."""
        places = [place for place, operation in enumerate(self._operations) if operation.name == name]
        return sorted(round.each[place] for round in self.rounds for place in places)

    def percentiles(self, name: str) -> dict[str, float]:
        """Microseconds; empty if there was no such operation."""
        times = self.latencies(name)
        return {label: quantile(times, share) / 1e3 for label, share in PERCENTILES.items()} if times else {}

    def mean(self, name: str) -> float:
        """The mean microseconds of an operation."""
        times = self.latencies(name)
        return fmean(times) / 1e3 if times else 0.0
