"""A migration into another table, with programs at work and a crash at every request."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.migrating.moves import DIRECTIONS, Move, entities_of
from tests.migrating.test_into_calls import COUNTED, Account, Bill, Owes, Remark
from tests.shares import IS_ALL

MOMENTS = 260
"""As many moments as a migration of this table has, in small pages, before and after each request."""


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjoin.plans.migrating.moving.PAGE_ITEMS", 8)
    monkeypatch.setattr("adjoin.plans.migrating.moving._FOLLOW", 0.01)
    monkeypatch.setattr("adjoin.plans.migrating.moving._SAVE", 0.005)


@pytest.mark.simulation
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
    first, stride = 1 + 6 * DIRECTIONS.index((old, new)), 6 * len(DIRECTIONS)
    for crash_at in range(1 if IS_ALL else first, MOMENTS, 1 if IS_ALL else stride):
        move = Move(old, new, crash_at)
        move.migrate(crash_at)
        move.migrate(crash_at // 2 + 1)
        move.is_at_work = False
        move.migrate(crash_at, finish=True)
        assert move.migrate(finish=True).ended
        move.check()


@pytest.mark.simulation
@pytest.mark.parametrize(("old", "new"), DIRECTIONS)
def test_a_request_that_fails_loses_nothing(old: str, new: str) -> None:
    first, stride = 4 + 6 * DIRECTIONS.index((old, new)), 6 * len(DIRECTIONS)
    for at in range(1 if IS_ALL else first, MOMENTS, 1 if IS_ALL else stride):
        move = Move(old, new, at)
        move.fail(at)
        move.fail(at // 2 + 1)
        move.is_at_work = False
        move.fail(at, finish=True)
        assert move.migrate(finish=True).ended
        move.check()


class CountedMove(Move):
    """The same for classes with aggregates, in maintenance and in transactions, and with copied fields."""

    def write(self, number: int) -> None:
        g, chance = self.old, self.random.randrange
        account, bill = f"A{number % 3}", f"B{number % 4}"
        match number % 7:
            case 0:
                g.put(g.get(Account, account) or Account(id=account))
            case 1 | 2:
                g.put(g.get(Bill, bill) or Bill(id=bill, title=f"t{chance(5)}"))
            case 3 | 4:
                g.put(Owes(source=account, target=bill, amount=Decimal(chance(50))))
            case 5:
                g.put(Remark(parent=bill, at=chance(3)))
            case 6:
                if chance(3):
                    g.disconnect(Owes, account, bill)
                else:
                    g.delete(Account if chance(2) else Bill, account if chance(2) else bill)
        if chance(4) == 0:
            g.maintain(once=True)

    def check(self) -> None:
        self.old.maintain(once=True)
        new = self.new()
        for model in self.models:
            assert entities_of(new, model) == entities_of(self.old, model)


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("old", "new"), [("adjacency list", "materialized graph"), ("materialized graph", "adjacency list")]
)
def test_aggregates_are_right_after_a_crash_at_any_request(old: str, new: str) -> None:
    for crash_at in range(1, MOMENTS, 1 if IS_ALL else 37):
        move = CountedMove(old, new, crash_at, COUNTED)
        move.migrate(crash_at)
        move.migrate(crash_at // 2 + 1)
        move.is_at_work = False
        move.migrate(crash_at // 3 + 1, finish=True)
        assert move.migrate(finish=True).ended
        move.check()
