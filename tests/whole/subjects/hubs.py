"""Nodes with very many edges, which are made in batches and deleted in steps.

`hub:<id>` is there; `listed:<id>:<topic>:<number>` is one of its edges.
"""

from __future__ import annotations

import random

from tests.whole.journal import Operation, Told, Values, owner_of
from tests.whole.models import TOPICS, Hub, Listed
from tests.whole.subjects.opened import Opened

_BATCH = 500
_KEPT = 2
"""Whole hubs that are left alone, so that something is there at the end."""
_LARGE = "-0"
"""How the id of a hub ends that gets as many edges as there may be."""


class Hubs(Opened):
    def next(self, told: Told, chance: random.Random) -> Operation:
        barred = told.barred
        hubs = sorted({owner_of(key) for key in told.values} - barred)
        for hub in hubs:
            edges = sum(key.startswith(f"listed:{hub}:") for key in told.values)
            wanted = self.edges if hub.endswith(_LARGE) else 1 + int(hub[-3:], 16) * self.edges // 4096
            if edges < wanted:
                numbers = range(edges, min(edges + _BATCH, wanted))
                changes = {f"listed:{hub}:{TOPICS[number % 2]}:{number}": True for number in numbers}
                if all(key in told.values for key in changes):
                    break
                return Operation("list", changes, whole=False)
        large = [hub for hub in hubs if hub.endswith(_LARGE)]
        if len(hubs) > _KEPT:
            # First one of the largest, which takes the longest to make.
            hub = chance.choice(large + hubs if told.largest > self.edges // 2 else large or hubs)
            return Operation("delete", {key: None for key in told.values if owner_of(key) == hub}, whole=False)
        # One of the largest is among them, so that some of these are deleted in any run.
        return Operation("put", {f"hub:{self.name}-{chance.getrandbits(48):x}{'' if large else _LARGE}": True})

    def perform(self, operation: Operation) -> None:
        first, *_ = operation.changes
        if operation.kind == "put":
            self.g.put(Hub(id=owner_of(first)))
        elif operation.kind == "delete":
            self.g.delete(Hub, owner_of(first))
        else:
            parts = (key.split(":")[1:] for key in operation.changes)
            self.g.put_many([Listed(source=hub, target=topic, number=int(number)) for hub, topic, number in parts])

    def look(self, owners: set[str]) -> Values:
        found: Values = {}
        for owner in owners:
            if self.g.get(Hub, owner) is not None:
                found[f"hub:{owner}"] = True
            for edge in self.g.out(Hub.ref(owner), Listed):
                found[f"listed:{owner}:{edge.target}:{edge.number}"] = True
        return found
