"""Which share of many cases, histories and examples every run takes; `make simulations` takes them all.

A test that asks here has the marker `simulation`; `tests/conftest.py` gives it to tests of Hypothesis.
"""

from __future__ import annotations

import os

SEEDS = int(os.environ.get("ADJOIN_SIMULATION_SEEDS", "12"))
"""Histories for each set of classes. `make simulations` runs many more of them."""
FEW = max(SEEDS // 10, 2)
"""For simulations that take longer, or vary what others have shown."""
FIRST = int(os.environ.get("ADJOIN_SIMULATION_FIRST", "0"))
IS_ALL = SEEDS >= 1000
"""Whether tests that try every case of many try them all, as `make simulations` does, and not a fixed share."""


def stride(share: int) -> int:
    """From one case that is tried to the next: one of so many in every run, and all of them in `make simulations`."""
    return 1 if IS_ALL else share


def examples(number: int) -> int:
    """How many examples Hypothesis tries: so many in every run, and ten times as many in `make simulations`."""
    return 10 * number if IS_ALL else number
