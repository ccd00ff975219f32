"""Budgets, and plans that run side by side within one.

A budget is a limit on what one call may spend. `Spending` counts what it has spent, and says before each round how many
of the waiting requests may still be sent. `side_by_side` runs any number of plans together: each round has the next
requests of all of them, as far as the budget allows.

What a request will cost in units is not known before it is answered. So it is taken to cost as much as the dearest one
of its kind so far, and with a limit on units a round has at most four times as many requests as were answered before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal

from adjoin.dataclass import dataclass
from adjoin.errors import BudgetExceeded, InvalidValue, shown
from adjoin.requests import BatchGet, Plan, Request, Response
from adjoin.units import read_units

_FIRST_ROUND = 16
"""How many requests the first round has at most, if units are limited and nothing is known about their cost."""
_GROWTH = 4


@dataclass(frozen=True)
class Budget:
    """The most that one call may spend: requests, read units, seconds, and different nodes to which edges lead.

    The call stops before it would spend more; only requests that are on their way may exceed the limit of units or
    seconds. With `on_exceeded="partial"`, it returns what it has found, and the result says that it is partial. With
    `on_exceeded="raise"`, it raises `BudgetExceeded`.
    """

    requests: int | None = None
    rcu: float | None = None
    seconds: float | None = None
    nodes: int | None = None
    on_exceeded: Literal["partial", "raise"] = "partial"

    def __post_init__(self) -> None:
        for name in ("requests", "nodes"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise InvalidValue(f"{name} of a budget must be a whole number from 1 on, got {shown(value)}")
        for name in ("rcu", "seconds"):
            value = getattr(self, name)
            if value is not None and (type(value) not in (int, float) or not 0 < value < float("inf")):
                raise InvalidValue(f"{name} of a budget must be a number greater than 0, got {shown(value)}")
        if self.on_exceeded not in ("partial", "raise"):
            raise InvalidValue(f'on_exceeded must be "partial" or "raise", got {shown(self.on_exceeded)}')


class Spending:
    """What a call has spent of its budget, and whether it had to stop."""

    def __init__(self, budget: Budget | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget = budget or Budget()
        self.exceeded: str | None = None
        """The limit at which the call stopped, such as "requests"; None if it did not."""
        self.requests = 0
        self.rcu = 0.0
        self.nodes: set[Any] = set()
        self._clock = clock
        self._began = clock()
        self._page = self._get = read_units(0)
        """What the dearest query, and the dearest get of a batch, have cost so far."""

    @property
    def is_over(self) -> bool:
        """Whether no further request may be sent. If there were too many nodes, those that were reached may be read."""
        return self.exceeded not in (None, "nodes")

    def stop(self, limit: str) -> None:
        """Notes that the call ends here because of a limit; raises if the budget says so."""
        self.exceeded = self.exceeded or limit
        if self.budget.on_exceeded == "raise":
            raise BudgetExceeded(
                f"the budget of {getattr(self.budget, limit):g} {limit} does not suffice: {self.requests} requests and "
                f"{self.rcu:g} read units were spent; allow more, or ask for less",
                limit,
            )

    def room(self, waiting: Sequence[Sequence[Request]]) -> int:
        """How many of the waiting batches may be sent now, from the first on. If none may, the call has to stop."""
        budget = self.budget
        if self.is_over:
            return 0
        if not waiting or (budget.requests is None and budget.rcu is None and budget.seconds is None):
            return len(waiting)
        if budget.seconds is not None and self._clock() - self._began >= budget.seconds:
            self.stop("seconds")
            return 0
        requests = units = 0.0
        most = float("inf") if budget.rcu is None else max(_FIRST_ROUND, _GROWTH * self.requests)
        for number, batch in enumerate(waiting):
            requests += len(batch)
            units += sum(map(self._expected, batch))
            limit = None
            if budget.requests is not None and self.requests + requests > budget.requests:
                limit = "requests"
            elif budget.rcu is not None and self.rcu + units > budget.rcu:
                limit = "rcu"
            if limit is not None or requests > most:
                if number == 0 and limit is not None:
                    self.stop(limit)
                return number if number or limit is not None else 1
        return len(waiting)

    def gets(self, wanted: int) -> int:
        """How many of `wanted` items a batch get may read."""
        if self.budget.rcu is None:
            return wanted
        most = max(_FIRST_ROUND, _GROWTH * self.requests)
        return max(1, min(wanted, most, int((self.budget.rcu - self.rcu) / self._get)))

    def _expected(self, request: Request) -> float:
        if isinstance(request, BatchGet):
            return max(self._get, read_units(0, consistent=request.gets[0].consistent)) * len(request.gets)
        return max(self._page, read_units(0, consistent=getattr(request, "consistent", False)))

    def note(self, requests: Sequence[Request], responses: Sequence[Response]) -> None:
        """Counts a round."""
        self.requests += len(requests)
        for request, response in zip(requests, responses, strict=True):
            units = sum(consumed.read for consumed in response.consumed)
            self.rcu += units
            if self.budget.rcu is None:
                continue
            if isinstance(request, BatchGet):
                self._get = max(self._get, units / len(request.gets))
            else:
                self._page = max(self._page, units)

    def reach(self, node: Any) -> bool:
        """Whether the call may go to a node: one that it knows, or one more."""
        if self.budget.nodes is None or node in self.nodes:
            return True
        if len(self.nodes) == self.budget.nodes:
            self.stop("nodes")
            return False
        self.nodes.add(node)
        return True


def side_by_side(plans: Iterable[Plan[Any]], spending: Spending) -> Plan[None]:
    """Runs plans together, each round with the next requests of all of them that the budget allows.

    Plans that the budget stops are closed. What they have found until then, they must have put where the caller sees
    it.
    """
    running: list[tuple[Plan[Any], Sequence[Request]]] = []
    for plan in plans:
        with suppress(StopIteration):
            running.append((plan, next(plan)))
    while running:
        number = spending.room([batch for _, batch in running])
        if number == 0:
            for plan, _ in running:
                plan.close()
            return
        now, later = running[:number], running[number:]
        requests = [request for _, batch in now for request in batch]
        responses: list[Response] = yield tuple(requests)
        spending.note(requests, responses)
        running = []
        # A page is given up as soon as it is read, so that the garbage collector does not look at its items.
        waiting = responses[::-1]
        responses.clear()
        for plan, batch in now:
            with suppress(StopIteration):
                running.append((plan, plan.send([waiting.pop() for _ in batch])))
        running += later
