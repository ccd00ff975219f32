"""What `maintain` keeps, and what the edges say when all are looked at again: no difference, for any rule."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from adjoin import AdjacencyList, Graph, MaterializedGraph
from adjoin.batch.engines import DuckDBEngine, Engine, Source
from adjoin.batch.job import Job
from adjoin.batch.sources import dump_of
from adjoin.errors import AdjoinError
from adjoin.requests import Delete, Put
from adjoin.values import decode
from tests.batch import values
from tests.batch.values import IDS, OWNERS, Fields, Judge, Judges, Owner, Owns, Thing
from tests.maintenance import models as maintained
from tests.maintenance.test_simulation import Life

LAYOUTS: dict[str, Any] = {"adjacency": AdjacencyList(), "materialized": MaterializedGraph()}


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDBEngine]:
    with DuckDBEngine(memory="500MB", threads=1) as opened:
        yield opened


def differences(
    graph: Graph, engine: Engine, source: Source | None = None, only: Sequence[str] | None = None
) -> dict[str, Any]:
    """Everything that differs, by rule and node."""
    layout = graph._layout
    job = Job(engine, source or dump_of(graph._store, layout.table), layout, layout.rules, only=only)
    found: dict[str, Any] = {}
    for rule in job.rules:
        for each in job.aggregate(rule)[0]:
            stored, computed = (None if value is None else decode(value) for value in (each.stored, each.computed))
            found[f"{rule.name} of {each.id}"] = (stored, computed)
    return found


def lived(graph: Graph, models: list[Any], seed: int, acts: int = 150) -> None:
    """A random life, with changes applied now and then, and all of them at the end."""
    chance = random.Random(seed)
    life = Life(graph, chance, models, 8)
    live(graph, chance, lambda: graph._run(life.act()[0]), acts)


def live(graph: Graph, chance: random.Random, act: Callable[[], Any], acts: int) -> None:
    for _ in range(acts):
        try:
            act()
        except AdjoinError:
            continue
        if chance.random() < 0.05:
            graph.maintain(once=True)
    graph.maintain(once=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("family", ["SHOP", "ALBUMS", "PARTS", "PEOPLE"])
def test_random_lives(engine: DuckDBEngine, layout: str, family: str) -> None:
    models = getattr(maintained, family)
    with Graph(":memory:", models, LAYOUTS[layout], tenant="acme" if layout == "adjacency" else None) as graph:
        lived(graph, models, seed=len(family))
        assert differences(graph, engine) == {}


class Things:
    """A random life of a graph with fields of every type."""

    def __init__(self, graph: Graph, chance: random.Random, *, wide: bool = False) -> None:
        self.graph, self.chance, self.fields = graph, chance, Fields(chance, wide=wide)
        self.acts = [
            *[self.put_edge] * 5, *[self.put_thing] * 3, self.judge, self.judge, self.put_owner, self.update_edge,
            self.update_thing, self.disconnect, self.delete, self.lose, self.foreign_edge, self.foreign_thing,
        ]  # fmt: skip

    def act(self) -> Any:
        return self.chance.choice(self.acts)()

    def ends(self) -> tuple[int, Any, int]:
        return self.chance.choice(OWNERS), self.chance.choice(IDS), self.chance.randrange(2)

    def node(self) -> tuple[Any, Any]:
        ids: dict[Any, list[Any]] = {Owner: OWNERS, Thing: IDS}
        model = self.chance.choice(list(ids))
        return model, self.chance.choice(ids[model])

    def put_edge(self) -> None:
        source, target, slot = self.ends()
        edge = Owns(source=source, target=target, slot=slot, since=self.fields.since(), **self.fields.edge())
        self.graph.put(edge)

    def judge(self) -> None:
        self.graph.put_many([Judge(id="J"), Judges(source="J", target=self.chance.choice(IDS))])

    def put_owner(self) -> None:
        self.graph.put(Owner(id=self.chance.choice(OWNERS)))

    def put_thing(self) -> None:
        self.graph.put(Thing(id=self.chance.choice(IDS), **self.fields.thing()))

    def update_edge(self) -> None:
        source, target, slot = self.ends()
        self.graph.update(Owns, source, target, slot=slot, **self.fields.edge())

    def update_thing(self) -> None:
        self.graph.update(Thing, self.chance.choice(IDS), **self.fields.thing())

    def disconnect(self) -> None:
        source, target, slot = self.ends()
        self.graph.disconnect(Owns, source, target, slot=slot)

    def delete(self) -> None:
        model, id = self.node()
        self.graph.delete(model, id)

    def lose(self) -> None:
        model, id = self.node()
        layout = self.graph._layout
        key = layout.node_key(layout.schema.node(model), id)
        self.graph._store.execute((Delete(layout.table, key),))

    def foreign(self, entity: Any) -> None:
        """An item as a program from before some fields were there wrote it, or one that writes nulls."""
        (item, *_) = self.graph._layout.items(entity)
        kept = {name: value for name, value in item.items() if name in FIRST or self.chance.random() < 0.4}
        if isinstance(entity, Thing) and self.chance.random() < 0.5:
            kept |= {"text": {"NULL": True}, "Weight": {"NULL": True}}
        self.graph._store.execute((Put(self.graph._layout.table, kept),))

    def foreign_edge(self) -> None:
        source, target, slot = self.ends()
        edge = Owns(source=source, target=target, slot=slot, since=self.fields.since(), **self.fields.edge())
        self.foreign(edge)

    def foreign_thing(self) -> None:
        self.foreign(Thing(id=self.chance.choice(IDS), **self.fields.thing()))


FIRST = {
    "PK", "SK", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK", "NodeId", "TypeTarget", "Target", "TypeSource", "Source",
    "TypeOrder", "slot", "since",
}  # fmt: skip
"""What an item cannot do without."""


def with_things(layout: str, seed: int, *, wide: bool = False) -> Graph:
    graph = Graph(":memory:", values.MODELS, LAYOUTS[layout])
    chance = random.Random(seed)
    graph.put_many([Owner(id=id) for id in OWNERS[:-1]])
    live(graph, chance, Things(graph, chance, wide=wide).act, 250)
    return graph


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fields_of_every_type(engine: DuckDBEngine, layout: str) -> None:
    with with_things(layout, seed=3) as graph:
        assert differences(graph, engine) == {}


def test_numbers_of_any_size(engine: DuckDBEngine) -> None:
    with with_things("adjacency", seed=4, wide=True) as graph:
        assert differences(graph, engine) == {}
