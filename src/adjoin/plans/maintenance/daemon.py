"""One run of `maintain`: when to look again, which errors to outlive, and what to tell meanwhile.

It decides, and waits for nothing: a step answers how many seconds to wait before the next, and whoever drives it does
so in its own way. What can pass is tried again, later and later; what cannot is raised. A run to an end (`once`) raises
both, so that whoever started it may decide.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import replace

from adjoin.errors import AdjoinError, InvalidValue
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.maintenance.passing import CONTENDED, passes
from adjoin.plans.maintenance.report import MaintenanceReport, Tally
from adjoin.plans.maintenance.stream import Reading, faded, leave, maintain_step

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds before another try after an error, and the most that they grow to, twofold each time."""
_TELL = 60.0
"""Seconds from one line in the log to the next."""
_log = logging.getLogger("adjoin.maintain")


class Daemon:
    """What one run has done, and how it stands."""

    def __init__(
        self,
        *,
        once: bool = False,
        every: float = 1.0,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        if not every > 0:
            raise InvalidValue(f"every must be a number of seconds above 0, got {every!r}")
        self._once, self._every, self._clock, self._chance = once, every, clock, chance
        self._reading, self._total, self._told = Reading(), Tally(), Tally()
        self._told_at = clock()
        self._failures = self._retries = 0

    def step(self, layout: BoundLayout) -> Plan[float | None]:
        """Applies the next changes; answers how many seconds to wait before the next step, None at the end of a run."""
        own = Tally()
        try:
            has_more = yield from maintain_step(layout, self._reading, own, clock=self._clock)
        except AdjoinError as error:
            self._count(own)
            if self._once or not (passes(error) or isinstance(error, CONTENDED)):
                raise
            return self._failed(error)
        self._count(own)
        if self._reading.pending_since is None:
            # All that was applied is behind a position that is stored; before that, nothing is sure to go on.
            if self._failures:
                _log.info("it goes on, after %d attempts", self._failures + 1)
            self._failures = 0
        self._tell(is_drained=not has_more)
        if has_more:
            return 0.0
        return None if self._once else self._every

    def leave(self, layout: BoundLayout) -> Plan[None]:
        """Ends the run where it is."""
        try:
            yield from leave(layout, self._reading, self._clock)
        except AdjoinError as error:
            # It is stored further back; what comes again does no harm.
            _log.warning("where it ended is not stored: %s", error)
        self._tell(is_drained=True, is_last=True)

    def report(self) -> MaintenanceReport:
        reading = self._reading
        return replace(
            self._total.report(),
            lag=reading.lag,
            rate=faded(reading.rate.value, self._clock() - reading.rate.at),
            rebuild_due=reading.due,
            retries=self._retries,
        )

    def _count(self, own: Tally) -> None:
        self._told.include(own)
        self._total.include(own)

    def _failed(self, error: AdjoinError) -> float:
        """Takes down that a step failed; answers how many seconds to wait."""
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self._failures, 10)) * (0.5 + self._chance() / 2)
        self._failures += 1
        self._retries += 1
        # What is stored is right, whatever was done behind it.
        self._reading.is_begun = False
        _log.warning(
            "it cannot go on now, and tries again in %.1f s (attempt %d): %s: %s",
            pause,
            self._failures + 1,
            type(error).__name__,
            error,
        )
        return pause

    def _tell(self, *, is_drained: bool, is_last: bool = False) -> None:
        """A line in the log, once a minute, if there is anything to tell."""
        seconds = self._clock() - self._told_at
        if not is_last and 0 <= seconds < _TELL:
            return
        some = self._told.report()
        if some.changes or some.set_aside:
            _log.info(
                "%d changes in %.0f s (%.1f a second), %d nodes and %d edges brought up to date, %d set aside; %s",
                some.changes,
                max(seconds, 0.0),
                some.changes / max(seconds, 1.0),
                some.nodes,
                some.edges,
                len(some.set_aside),
                "nothing is left" if is_drained else f"{self._reading.lag:.1f} s behind",
            )
        self._told, self._told_at = Tally(), self._clock()
