"""The fault simulation: a minute of it in every run, with a round of each kind, and five in `make simulations`.

`ADJOIN_FAULTS_SECONDS` and `ADJOIN_FAULTS_SEED` choose how long, and what happens.
"""

from __future__ import annotations

import os
import sys

import pytest

from tests.shares import IS_ALL
from tests.whole.driver import simulate

KINDS = 3
"""Rounds that differ: one that is left to itself, one with a rebuild, and one whose aggregates are overwritten. The
second has format version 1 and an older adjoin."""
SHORT = 8.0
"""Seconds of faults in a round of every run: as many per second as in a long one, which only has more of them."""
LONG = 12.0
MINUTE = 60.0


@pytest.mark.long
@pytest.mark.simulation
@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be sent SIGINT there")
def test_nothing_acknowledged_is_lost_or_torn_and_aggregates_are_exact(capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("ADJOIN_FAULTS_SEED", os.getpid()))
    seconds = float(os.environ.get("ADJOIN_FAULTS_SECONDS", 5 * MINUTE if IS_ALL else MINUTE))
    figures = simulate(seconds, seed, round_seconds=LONG if seconds > MINUTE else SHORT, least=KINDS)
    print(f"seed {seed}\n{figures}")
    assert figures.rounds >= KINDS
    assert figures.kills
    assert all(figures.workers.values())
    assert figures.asked
