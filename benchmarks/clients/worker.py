"""One contestant in a process of its own: it checks the answers, then measures what it is told to.

    python -m benchmarks.clients.worker MODULE CLASS ENDPOINT EDGES

It reads one order a line, `get N`, `out N` or `together N`, and answers each with the nanoseconds by
the clock and of the processor that N calls took, whatever threads they ran in.
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
from time import perf_counter_ns, process_time_ns
from typing import Any

from benchmarks.clients.plain import SOURCE, FollowsModel, PersonModel, follows, person

IDS = tuple(f"P{number}" for number in range(1, 501))


class Measuring:
    """A contestant at one endpoint."""

    def __init__(self, contestant: type[Any], endpoint: str) -> None:
        self._awaits = iscoroutinefunction(contestant.get)
        self._runner = asyncio.Runner()
        self._contestant = self._runner.run(_made(contestant, endpoint)) if self._awaits else contestant(endpoint)

    def check(self, edges: int) -> None:
        """The answers are what was stored, whole and of the right types."""
        node, found = self._contestant.get(SOURCE), self._contestant.out(SOURCE)
        if self._awaits:
            node, found = self._runner.run(_both(node, found))
        assert _fields(node, PersonModel) == person(SOURCE), node
        assert [_fields(edge, FollowsModel) for edge in found] == [follows(SOURCE, n) for n in range(edges)], found

    def measure(self, order: str, calls: int) -> tuple[int, int]:
        call = self._contestant.get if order == "get" else self._contestant.out
        asked = [IDS[number % len(IDS)] for number in range(calls)]
        gc.collect()
        begin, processor = perf_counter_ns(), process_time_ns()
        if order == "together":
            self._runner.run(_together(call, asked))
        elif self._awaits:
            self._runner.run(_in_turn(call, asked))
        else:
            for id in asked:
                call(id)
        return perf_counter_ns() - begin, process_time_ns() - processor

    def close(self) -> None:
        closing = self._contestant.close()
        if self._awaits:
            self._runner.run(closing)
        self._runner.close()


async def _made(contestant: type[Any], endpoint: str) -> Any:
    return contestant(endpoint)


async def _both(one: Awaitable[Any], other: Awaitable[Any]) -> tuple[Any, Any]:
    return await one, await other


async def _in_turn(call: Callable[[str], Awaitable[Any]], asked: Sequence[str]) -> None:
    for id in asked:
        await call(id)


async def _together(call: Callable[[str], Awaitable[Any]], asked: Sequence[str]) -> None:
    await asyncio.gather(*map(call, asked))


def _fields(made: Any, model: type[PersonModel] | type[FollowsModel]) -> dict[str, Any]:
    return {name: getattr(made, name) for name in model.model_fields}


def main(arguments: Sequence[str]) -> None:
    module, name, endpoint, edges = arguments
    # Some clients warn of slow calls, and with many at once every call waits; writing that would count against them.
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
