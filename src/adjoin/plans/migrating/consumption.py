"""What the runs of a migration consume, and how long a run waits so that it stays below its limit.

A migration may have several runs, one after the other. The stored state has the units and seconds of those before, and
`Consumption` adds those of this run. A migration into another table reads one table and writes the other at the same
time, maybe in two threads, so each side is counted by itself.

What a migration does is not decided here: `passes` and `moving` say that.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from adjoin.errors import InvalidValue, shown
from adjoin.requests import Plan, Response

T = TypeVar("T")
Yielded = TypeVar("Yielded")
_LEAST = 10
"""How many items of a segment are read at a time at least, however few units a run may take."""
_PAGES = 4
"""How many pages a second, at least, if a run takes all units that it may."""


class Consumption:
    """Units and seconds of a migration, over all its runs."""

    def __init__(self, limit: float | None, clock: Callable[[], float]) -> None:
        """`limit` is the number of units per second that a run may take; None for as many as it needs."""
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float) or limit <= 0):
            raise InvalidValue(f"units must be a number of units per second above 0, got {shown(limit)}")
        self._limit, self._clock, self._began = limit, clock, clock()
        self._earlier = (0.0, 0.0, 0.0)
        self._sides: dict[str, list[float]] = {}

    def continue_from(self, rcu: float, wcu: float, seconds: float) -> None:
        """Takes over what earlier runs have consumed."""
        self._earlier = rcu, wcu, seconds

    @property
    def rcu(self) -> float:
        return self._earlier[0] + sum(side[0] for side in list(self._sides.values()))

    @property
    def wcu(self) -> float:
        return self._earlier[1] + sum(side[1] for side in list(self._sides.values()))

    @property
    def seconds(self) -> float:
        return self._earlier[2] + self._clock() - self._began

    def page_items(self, most: int) -> int:
        """How many items to read at a time: fewer if units are limited, so that they are not all consumed at once."""
        return most if self._limit is None else max(_LEAST, min(most, int(self._limit / _PAGES)))

    def metered(self, plan: Plan[T], side: str = "") -> Plan[T]:
        """Runs a plan and counts what it consumes."""
        used = self._sides.setdefault(side, [0.0, 0.0])
        try:
            requests = next(plan)
            while True:
                try:
                    responses: Sequence[Response] = yield requests
                except Exception as error:
                    requests = plan.throw(error)
                    continue
                for response in responses:
                    for consumed in response.consumed:
                        used[0] += consumed.read
                        used[1] += consumed.write
                requests = plan.send(responses)
        except StopIteration as done:
            result: T = done.value
            return result

    def paced(self, step: Generator[Yielded, Any, float | None]) -> Generator[Yielded, Any, float | None]:
        """Does a step; returns the seconds to wait before the next one, or None if there is nothing left to do."""
        before, began = self.rcu + self.wcu, self._clock()
        more = yield from step
        if more is None or self._limit is None:
            return more
        spent, took = self.rcu + self.wcu - before, self._clock() - began
        return max(more, spent / self._limit - took)
