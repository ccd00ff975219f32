"""Waiting for what must happen. No test asserts how long something takes, which says more about the machine than
about the code: the limit is for what never comes, and is far above what the slowest machine needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT = 300.0
"""Seconds after which something that was waited for will not happen any more."""


def until(holds: Callable[[], object], *, looks_every: float = 0.01, limit: float = LIMIT) -> None:
    """Waits until it holds; fails if it never does."""
    last = time.monotonic() + limit
    while not holds():
        assert time.monotonic() < last, "it never happened"
        time.sleep(looks_every)
