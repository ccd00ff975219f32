"""Each kind of change with a crash at every request of the migration, and programs of both versions at work."""

from __future__ import annotations

import pytest

from tests.migrating.test_both_versions import World
from tests.migrating.versions import CHANGES
from tests.shares import stride

STRIDE = stride(47)


@pytest.mark.simulation
@pytest.mark.parametrize("name", CHANGES)
def test_a_crash_at_every_request(name: str) -> None:
    """Programs write meanwhile, but ask only at the end. Every run takes some moments, and each change others."""
    change = CHANGES[name]
    crash_at, moments = 1 + list(CHANGES).index(name) % STRIDE - STRIDE, 1
    while crash_at <= moments:
        crash_at += STRIDE
        world = World(change, "adjacency list", crash_at)
        world.is_quiet = True
        moments = max(moments, world.migrate(crash_at, finish=False))
        world.is_older_at_work = False
        moments = max(moments, world.migrate(crash_at, finish=True))
        world.migrate(None, finish=True)
        assert not world.needs()
        assert world.look()
        world.check_gone()
    assert crash_at > 10
