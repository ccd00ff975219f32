"""A migration into another table, with programs at work and a crash at every request."""

from __future__ import annotations

import pytest

from tests.maintenance.simulation import IS_ALL
from tests.migrating.moves import DIRECTIONS, Move

MOMENTS = 260
"""As many moments as a migration of this table has, in small pages, before and after each request."""


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjoin.plans.migrating.moving.PAGE_ITEMS", 8)
    monkeypatch.setattr("adjoin.plans.migrating.moving._FOLLOW", 0.01)
    monkeypatch.setattr("adjoin.plans.migrating.moving._SAVE", 0.005)


@pytest.mark.parametrize(("old", "new"), DIRECTIONS)
def test_everything_arrives_while_programs_write(old: str, new: str) -> None:
    for seed in range(40 if IS_ALL else 6):
        move = Move(old, new, seed)
        first = move.migrate()
        assert first.stage == "waiting"
        for number in range(20):
            move.write(number * 7 + seed)
        move.is_at_work = False
        assert move.migrate(finish=True).ended
        move.check()


@pytest.mark.simulation
@pytest.mark.parametrize(("old", "new"), DIRECTIONS)
def test_a_crash_at_any_request_loses_nothing(old: str, new: str) -> None:
    # Every run takes some of the moments, and each direction others.
    first, stride = 1 + 3 * DIRECTIONS.index((old, new)), 3 * len(DIRECTIONS)
    for crash_at in range(1 if IS_ALL else first, MOMENTS, 1 if IS_ALL else stride):
        move = Move(old, new, crash_at)
        move.migrate(crash_at)
        move.migrate(crash_at // 2 + 1)
        move.is_at_work = False
        move.migrate(crash_at, finish=True)
        assert move.migrate(finish=True).ended
        move.check()
