"""Each kind of change with programs of both versions at work, and a crash at every request of the migration.

At every moment, the newer program either finds everything that is stored, once, or is told that a migration is due.
After the last step it finds everything, also what the older program wrote before it ended.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from adjoin import Graph, InvalidItem, MigrationDue
from adjoin.requests import PageResponse, Scan
from adjoin.stores.sqlite import SQLiteStore
from tests.migrating.versions import CHANGES, LAYOUTS, Crash, Halting, Version
from tests.shares import IS_ALL, stride


class World:
    """A table, programs of two versions that use it, and what is stored."""

    def __init__(self, change: Version, layout: str, seed: int) -> None:
        self.change, self.random, self.store = change, random.Random(seed), SQLiteStore(":memory:")
        self.older = Graph(self.store, change.older, LAYOUTS[layout])
        self.layout = LAYOUTS[layout] if change.layout is None else change.layout(change.newer)
        self.is_older_at_work, self.is_quiet = True, False
        self.asked = Counter[str]()
        for number in range(12):
            self.write(self.older, change.older, number)
        self.newer = Graph(self.store, change.newer, self.layout)
        self.is_busy = False

    def write(self, graph: Graph, models: list[type[Any]], number: int) -> None:
        for entity in self.change.write(models, number):
            graph.put(entity)

    def between(self) -> None:
        """What other programs do between two requests of the migration."""
        if self.is_busy:
            return
        self.is_busy = True
        if self.is_older_at_work and self.random.random() < 0.4:
            self.write(self.older, self.change.older, self.random.randrange(20))
        if self.is_older_at_work and self.random.random() < 0.1:
            # It does not know what the newer program and the migration have put beside it.
            *_, entity = self.change.write(self.change.older, self.random.randrange(20))
            self.older.delete_many([entity])
        if self.random.random() < 0.4:
            self.write(self.newer, self.change.newer, self.random.randrange(20))
        if not self.is_quiet:
            self.look()
        self.is_busy = False

    def look(self) -> bool:
        """Asks the newer program for everything; returns whether it answered."""
        try:
            found = Counter(map(repr, self.change.ask(self.newer, self.change.newer)))
        except (MigrationDue, InvalidItem):
            # A new field without a default makes items unreadable, and says so, until it was filled.
            self.asked["due"] += 1
            return False
        self.asked["answered"] += 1
        assert found == self.stored()
        return True

    def stored(self) -> Counter[str]:
        model = self.change.newer[-1]
        return Counter(repr(each) for each in self.newer.scan(model))

    def migrate(self, crash_at: int | None, *, finish: bool) -> int:
        """One run of the migration; returns how many moments it had."""
        halting = Halting(self.store, self.between, crash_at)
        try:
            graph = Graph(halting, self.change.newer, self.layout)
            report = graph.migrate(finish=finish, **self.change.options)
            assert report.refused == ()
            assert report.ended == (finish or not (self.needs() or self.change.options))
        except Crash:
            pass
        return halting.moments

    def check_gone(self) -> None:
        (page,) = self.store.execute([Scan(self.newer._layout.table)])
        assert isinstance(page, PageResponse)
        assert not self.change.gone or not any(self.change.gone in item for item in page.items)

    def needs(self) -> bool:
        return any(each.is_due for each in self.newer.differences())


@pytest.mark.simulation
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CHANGES)
def test_nothing_is_missed(name: str, layout: str) -> None:
    change = CHANGES[name]
    if change.layout is not None and layout != "adjacency list":
        pytest.skip("templates are those of one layout")
    for seed in range(3 if IS_ALL else 1):
        # The migration has about sixty moments. Every run takes some of them, and each kind of change others, in each
        # layout.
        first = 1 if IS_ALL else 1 + list(CHANGES).index(name) + 30 * list(LAYOUTS).index(layout)
        for crash_at in [None, *range(first, 60, stride(60))]:
            world = World(change, layout, seed * 1000 + (crash_at or 0))
            world.migrate(crash_at, finish=False)
            world.between()
            world.is_older_at_work = False
            if crash_at is not None:
                world.migrate(crash_at + seed, finish=True)
            world.migrate(None, finish=True)
            assert not world.needs()
            assert world.look()
            world.check_gone()
            if name in ("renamed", "order", "dropped"):
                assert world.asked["due"] == 0, "what worked before goes on to work"
            else:
                assert world.asked["due"] > 0, "the change needs a migration"
            world.write(world.newer, change.newer, 21)
            assert world.look()
            assert not world.newer.migrate(dry_run=True).items
