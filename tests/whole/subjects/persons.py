"""People who follow topics: single writes, transactions, writes of many, small deletes.

`person:<id>` is name, email and points; `follows:<id>:<topic>` is the weight of the edge.
"""

from __future__ import annotations

import random
from functools import partial

from adjoin import field
from tests.whole.journal import Broken, Operation, Told, Values, owner_of
from tests.whole.models import TOPICS, Follows, Person, Topic
from tests.whole.subjects.opened import Opened

_PEOPLE = 8
"""How many people a worker has; it makes more while it has fewer."""


class Persons(Opened):
    # --- deciding ------------------------------------------------------------------------------

    def next(self, told: Told, chance: random.Random) -> Operation:
        barred = told.barred
        people = sorted(owner_of(key) for key in told.values if key.startswith("person:"))
        mine = [person for person in people if person not in barred]
        if len(mine) < _PEOPLE:
            return self._more(chance, told.values, mine)
        person = chance.choice(mine)
        followed = [topic for topic in TOPICS if f"follows:{person}:{topic}" in told.values]
        others = [topic for topic in TOPICS if topic not in followed]
        choices = [
            partial(self._score, told.values, person),
            partial(self._rename, told.values, person, chance),
            partial(self._visit, chance),
        ]
        choices += [partial(self._connect, person, chance.choice(others), chance)] * 3 if others else []
        if followed:
            topic = chance.choice(followed)
            choices += [
                partial(self._connect, person, topic, chance, "reweigh"),
                partial(self._connect, person, topic, chance, "replace"),
                partial(self._disconnect, person, topic),
            ]
        choices += [partial(self._delete, told.values, person)] if chance.random() < 0.3 else []
        return chance.choice(choices)()

    def _made(self, chance: random.Random) -> tuple[str, list[object]]:
        # Never the same id twice: what became of the one before may not be known.
        person = f"{self.name}-{chance.getrandbits(48):x}"
        return person, [f"name {chance.randrange(5)}", f"{person}@{chance.randrange(10**6)}", 0]

    def _more(self, chance: random.Random, values: Values, mine: list[str]) -> Operation:
        person, fields = self._made(chance)
        kind = chance.choice(("put", "together", "many"))
        if kind == "put":
            return Operation("put", {f"person:{person}": fields})
        if kind == "many":
            return Operation(
                "many", {f"person:{id}": fields for id, fields in map(self._made, [chance] * 3)}, whole=False
            )
        edges = {f"follows:{person}:{topic}": chance.randrange(1, 100) for topic in chance.sample(TOPICS, 2)}
        changes: Values = {f"person:{person}": fields, **edges}
        if mine:
            changes |= self._rename(values, chance.choice(mine), chance).changes
        return Operation("together", changes)

    def _score(self, values: Values, person: str) -> Operation:
        name, email, points = values[f"person:{person}"]
        return Operation("score", {f"person:{person}": [name, email, points + 1]})

    def _rename(self, values: Values, person: str, chance: random.Random) -> Operation:
        _, fields = self._made(chance)
        return Operation("put", {f"person:{person}": [fields[0], fields[1], values[f"person:{person}"][2]]})

    def _visit(self, chance: random.Random) -> Operation:
        return Operation("visit", {}, adds={f"visits:{chance.choice(TOPICS)}": 1})

    def _connect(self, person: str, topic: str, chance: random.Random, kind: str = "connect") -> Operation:
        return Operation(kind, {f"follows:{person}:{topic}": chance.randrange(1, 100)})

    def _disconnect(self, person: str, topic: str) -> Operation:
        return Operation("disconnect", {f"follows:{person}:{topic}": None})

    def _delete(self, values: Values, person: str) -> Operation:
        return Operation("delete", {key: None for key in values if owner_of(key) == person}, whole=False)

    # --- doing ---------------------------------------------------------------------------------

    def perform(self, operation: Operation) -> None:
        g = self.g
        if operation.kind == "visit":
            (key,) = operation.adds
            g.update(Topic, key.split(":")[1], visits=field("visits") + 1)
            return
        first, *_ = operation.changes
        value = operation.changes[first]
        _, owner, *topic = first.split(":")
        match operation.kind:
            case "put":
                g.put(_person(first, value))
            case "score":
                g.update(Person, owner, points=field("points") + 1)
            case "connect":
                g.connect(Follows, owner, topic[0], weight=value)
            case "reweigh":
                g.update(Follows, owner, topic[0], weight=value)
            case "replace":
                g.put(Follows(source=owner, target=topic[0], weight=value))
            case "disconnect":
                g.disconnect(Follows, owner, topic[0])
            case "delete":
                g.delete(Person, owner)
            case "many":
                g.put_many([_person(key, value) for key, value in operation.changes.items()])
            case "together":
                with g.transaction() as t:
                    for key, value in operation.changes.items():
                        if key.startswith("person:"):
                            t.put(_person(key, value))
                    for key, value in operation.changes.items():
                        if key.startswith("follows:"):
                            t.connect(Follows, *key.split(":")[1:], weight=value)

    def look(self, owners: set[str]) -> Values:
        found: Values = {}
        for owner in owners:
            person = self.g.get(Person, owner)
            edges = list(self.g.out(Person.ref(owner), Follows))
            found |= {f"follows:{owner}:{edge.target}": edge.weight for edge in edges}
            if person is None:
                continue
            found[f"person:{owner}"] = [person.name, person.email, person.points]
            if person.follows != len(edges):
                raise Broken(f"{owner} has {len(edges)} edges, and counts {person.follows} in their transactions")
        return found


def _person(key: str, value: list[object]) -> Person:
    name, email, points = value
    return Person.model_validate({"id": owner_of(key), "name": name, "email": email, "points": points})
