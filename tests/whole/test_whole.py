"""A minute of fault simulation. `ADJOIN_FAULTS_SECONDS` and `ADJOIN_FAULTS_SEED` choose how long, and what happens."""

from __future__ import annotations

import os
import sys

import pytest

from tests.whole.driver import simulate


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be sent SIGINT there")
def test_nothing_acknowledged_is_lost_or_torn_and_aggregates_are_exact(capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("ADJOIN_FAULTS_SEED", os.getpid()))
    # Two rounds at least: the first has format version 2, the second version 1 and an older adjoin.
    figures = simulate(float(os.environ.get("ADJOIN_FAULTS_SECONDS", "60")), seed, least=2)
    print(f"seed {seed}\n{figures}")
    assert figures.rounds >= 2
    assert figures.kills
    assert all(figures.workers.values())
    assert figures.asked
