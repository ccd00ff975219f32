"""Names of topics, which every edge to them repeats: `topic:<id>` is the name."""

from __future__ import annotations

import random

from tests.whole.journal import Operation, Told, Values, owner_of
from tests.whole.models import TOPICS, Topic
from tests.whole.subjects.opened import Opened


class Topics(Opened):
    # Every edge of a topic is written anew for each.
    pause = 0.2

    def next(self, told: Told, chance: random.Random) -> Operation:
        return Operation("rename", {f"topic:{chance.choice(TOPICS)}": f"name {chance.randrange(10**6)}"})

    def perform(self, operation: Operation) -> None:
        ((key, name),) = operation.changes.items()
        self.g.update(Topic, owner_of(key), name=name)

    def look(self, owners: set[str]) -> Values:
        found = self.g.get_many(Topic, sorted(owners))
        return {f"topic:{topic.id}": topic.name for topic in found if topic is not None}
