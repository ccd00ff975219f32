"""One contestant in its own process: it checks the answers, then measures on request.

    python -m benchmarks.clients.worker MODULE CLASS ENDPOINT EDGES

It reads one order per line, `get N`, `out N` or `together N`, and answers each with the nanoseconds per call,
by the clock and of the processor. By the clock, that is the median call, because other programs use the machine
too; for concurrent calls, it is the total time divided by their number. Of the processor, it is the mean over all
threads.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from inspect import iscoroutinefunction
from statistics import median
from time import perf_counter_ns, process_time_ns
from typing import Any

from benchmarks.clients.plain import SOURCE, FollowsModel, PersonModel, follows, person

IDS = (SOURCE,) * 500
"""The ids to request. All are the same, because the stub has one answer, and clients check its key."""


class Measuring:
    """A contestant, connected to one endpoint."""

    def __init__(self, contestant: type[Any], endpoint: str) -> None:
        self._awaits = iscoroutinefunction(contestant.get)
        self._runner = asyncio.Runner()
        self._contestant = self._runner.run(_made(contestant, endpoint)) if self._awaits else contestant(endpoint)

    def check(self, edges: int) -> None:
        """Checks that the answers are what was stored, complete and with the right types."""
        node, found = self._contestant.get(SOURCE), self._contestant.out(SOURCE)
        if self._awaits:
            node, found = self._runner.run(_both(node, found))
        assert _fields(node, PersonModel) == person(SOURCE), node
        assert [_fields(edge, FollowsModel) for edge in found] == [follows(SOURCE, n) for n in range(edges)], found

    def measure(self, order: str, calls: int) -> tuple[float, float]:
        call = self._contestant.get if order == "get" else self._contestant.out
        asked = [IDS[number % len(IDS)] for number in range(calls)]
        gc.collect()
        begin, processor = perf_counter_ns(), process_time_ns()
        if order == "together":
            self._runner.run(_together(call, asked))
            clock = (perf_counter_ns() - begin) / calls
        elif self._awaits:
            clock = median(self._runner.run(_awaited(call, asked)))
        else:
            clock = median(_waited(call, asked))
        return clock, (process_time_ns() - processor) / calls

    def close(self) -> None:
        closing = self._contestant.close()
        if self._awaits:
            self._runner.run(closing)
        self._runner.close()


async def _made(contestant: type[Any], endpoint: str) -> Any:
    return contestant(endpoint)


async def _both(one: Awaitable[Any], other: Awaitable[Any]) -> tuple[Any, Any]:
    return await one, await other


def _waited(call: Callable[[str], Any], asked: Sequence[str]) -> list[int]:
    """The nanoseconds of each call, one after the other."""
    times = []
    for id in asked:
        begin = perf_counter_ns()
        call(id)
        times.append(perf_counter_ns() - begin)
    return times


async def _awaited(call: Callable[[str], Awaitable[Any]], asked: Sequence[str]) -> list[int]:
    times = []
    for id in asked:
        begin = perf_counter_ns()
        await call(id)
        times.append(perf_counter_ns() - begin)
    return times


async def _together(call: Callable[[str], Awaitable[Any]], asked: Sequence[str]) -> None:
    await asyncio.gather(*map(call, asked))


def _fields(made: Any, model: type[PersonModel] | type[FollowsModel]) -> dict[str, Any]:
    return {name: getattr(made, name) for name in model.model_fields}


def main(arguments: Sequence[str]) -> None:
    module, name, endpoint, edges = arguments
    # Some clients warn of slow calls. With many calls at once every call waits, and logging would count against them.
    logging.disable(logging.CRITICAL)
    measuring = Measuring(getattr(import_module(module), name), endpoint)
    try:
        measuring.check(int(edges))
        print("checked", flush=True)
        for line in sys.stdin:
            order, calls = line.split()
            print(json.dumps(measuring.measure(order, int(calls))), flush=True)
    finally:
        measuring.close()


if __name__ == "__main__":
    main(sys.argv[1:])
