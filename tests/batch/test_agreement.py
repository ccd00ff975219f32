"""What `maintain` keeps, and what the edges say when all are looked at again: no difference, for any rule."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import product
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import AdjacencyList, Edge, Expires, Graph, Index, Keys, MaterializedGraph, Node, field
from adjoin.aggregates import Count, Latest, Max, Min, Sum, Top
from adjoin.batch.engines import DuckDBEngine, Engine, Source
from adjoin.batch.job import Job
from adjoin.batch.sources import dump_of
from adjoin.errors import AdjoinError
from adjoin.requests import Delete, Put
from adjoin.values import decode
from tests.batch import values
from tests.batch.models import Holds, Part
from tests.batch.values import IDS, OWNERS, Fields, Judge, Judges, Owner, Owns, Thing
from tests.maintenance import models as maintained
from tests.maintenance.test_simulation import Life, in_one_partition
from tests.shares import stride

LAYOUTS: dict[str, Any] = {"adjacency": AdjacencyList(), "materialized": MaterializedGraph()}


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDBEngine]:
    with DuckDBEngine(memory="500MB", threads=1) as opened:
        yield opened


def job_of(graph: Graph, engine: Engine, source: Source | None = None, only: Sequence[str] | None = None) -> Job:
    layout = graph._layout
    return Job(engine, source or dump_of(graph._store, layout.table), layout, layout.rules, only=only)


def differences(
    graph: Graph, engine: Engine, source: Source | None = None, only: Sequence[str] | None = None
) -> dict[str, Any]:
    """Everything that differs, by rule and node."""
    return differences_of(job_of(graph, engine, source, only))


def differences_of(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for rule in job.rules:
        for each in job.aggregate(rule)[0]:
            stored, computed = (None if value is None else decode(value) for value in (each.stored, each.computed))
            found[f"{rule.name} of {each.id}"] = (stored, computed)
    return found


def lived(graph: Graph, models: list[Any], seed: int, acts: int = 150) -> None:
    """A random generation, with changes applied now and then, and all of them at the end."""
    chance = random.Random(seed)
    generation = Life(graph, chance, models, 8)
    live(graph, chance, lambda: graph._run(generation.act()[0]), acts)


def live(graph: Graph, chance: random.Random, act: Callable[[], Any], acts: int) -> None:
    for _ in range(acts):
        try:
            act()
        except AdjoinError:
            continue
        if chance.random() < 0.05:
            graph.maintain(once=True)
    graph.maintain(once=True)


FAMILIES = ["SHOP", "ALBUMS", "PARTS", "PEOPLE", "WALLETS"]
LIVES = list(product(LAYOUTS, FAMILIES))[:: stride(2)]
"""In every run each family in one of the layouts."""


@pytest.mark.simulation
@pytest.mark.parametrize(("layout", "family"), LIVES)
def test_random_lives(engine: DuckDBEngine, layout: str, family: str) -> None:
    models = getattr(maintained, family)
    with Graph(":memory:", models, LAYOUTS[layout], tenant="acme" if layout == "adjacency" else None) as graph:
        lived(graph, models, seed=len(family))
        assert differences(graph, engine) == {}


def test_children_in_a_shared_partition(engine: DuckDBEngine) -> None:
    models = maintained.WALLETS
    with Graph(":memory:", models, in_one_partition(models), tenant="acme") as graph:
        lived(graph, models, seed=5)
        assert differences(graph, engine) == {}


class Things:
    """A random generation of a graph with fields of every type."""

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


# Numbers of any size are in the other layout, and have all these fields too.
@pytest.mark.simulation
@pytest.mark.parametrize("layout", [*LAYOUTS][:: -stride(2)])
def test_fields_of_every_type(engine: DuckDBEngine, layout: str) -> None:
    with with_things(layout, seed=3) as graph:
        assert differences(graph, engine) == {}


def test_numbers_of_any_size(engine: DuckDBEngine) -> None:
    with with_things("adjacency", seed=4, wide=True) as graph:
        assert differences(graph, engine) == {}


# --- subtrees ----------------------------------------------------------------------------------


class Shelf(Node):
    """Counts what recursive aggregates say, and so has no value above a circle either."""

    id: str
    parts: Annotated[int, Count("On", "Holds")] = 0
    worth: Annotated[Decimal, Sum("On", field="total")] = Decimal(0)
    dear: Annotated[int, Count("On", where=field("total") > 10)] = 0
    least: Annotated[int | None, Min("On", field="pieces")] = None
    newest: Annotated[Decimal | None, Latest("On", field="latest", by="total")] = None


class On(Edge[Shelf, Part]):
    pass


@pytest.mark.parametrize("is_tree", [True, False], ids=["trees", "circles"])
def test_subtrees(engine: DuckDBEngine, is_tree: bool) -> None:
    chance = random.Random(2)
    parts, shelves = range(9), ["s", "t"]
    with Graph(":memory:", [Part, Holds, Shelf, On]) as graph:

        def connected() -> None:
            source, target = chance.choice(parts), chance.choice(parts)
            if is_tree and source >= target:
                return
            number = Decimal(chance.randrange(-40, 90)).scaleb(-1)
            times = chance.choice([None, 1, 2, 3])
            graph.put(Holds(source=source, target=target, number=number, year=chance.randrange(3), times=times))

        acts: list[Callable[[], Any]] = [
            *[connected] * 6,
            lambda: graph.put(Part(id=chance.choice(parts), cost=Decimal(chance.randrange(9)))),
            lambda: graph.put(On(source=chance.choice(shelves), target=chance.choice(parts))),
            lambda: graph.put(Shelf(id=chance.choice(shelves))),
            lambda: graph.disconnect(Holds, chance.choice(parts), chance.choice(parts)),
            lambda: graph.delete(Part, chance.choice(parts)),
        ]
        live(graph, chance, lambda: chance.choice(acts)(), 120)
        job = job_of(graph, engine)
        assert differences_of(job) == {}
        found = {rule.name: job.aggregate(rule)[1].circular for rule in job.rules}
        circular = [name for name, nodes in found.items() if nodes is not None and engine.size(nodes)]
        assert ("PART.total" in circular, "SHELF.worth" in circular) == (not is_tree, not is_tree)


# --- other layouts -----------------------------------------------------------------------------


class Student(Node):
    id: str
    name: Annotated[str, Field(alias="Name")] = ""
    homes: Annotated[int, Count("Home")] = 0
    last_city: Annotated[str | None, Max("Home", field="city")] = None
    in_texas: Annotated[int, Count("Home", where=field("state") == "TX")] = 0
    oldest: Annotated[int | None, Min("Home", field="floor")] = None
    floors: Annotated[int, Sum("Home", field="floor")] = 0
    last: Annotated[str | None, Latest("Class", field="subject", by="until")] = None


class Teacher(Node):
    id: str
    classes: Annotated[int, Count("Class")] = 0
    subjects: Annotated[list[str], Top("Class", field="subject", k=2)] = []


class Country(Node):
    id: str
    residents: Annotated[int, Count("Home")] = 0


class Class(Edge[Student, Teacher], key=("subject",)):
    subject: Annotated[str, Field(alias="Subject")]
    until: Annotated[dt.datetime | None, Expires()] = None


class Home(Edge[Student, Country]):
    state: str
    city: str
    floor: int


PUBLISHED = AdjacencyList(
    table="Homes",
    node="{node}",
    type_attribute="TYPE",
    reverse=Index("GSI1", "GSI1PK", "GSI1SK"),
    keys={
        Class: Keys(
            sort="{target}#CLASS#{subject:upper}", reverse_partition="{target}", reverse_sort="CLASS#{subject:upper}"
        ),
        Home: Keys(
            sort="HOME#{target.id}#{state}#{city}#{floor:sortable}",
            reverse_partition="COUNTRY#{target.id}",
            reverse_sort="HOME#{state}#{city}",
        ),
    },
)
INVERTED = AdjacencyList(table="Inverted", node="{node}", edge="{target}", reverse=Index("GSI_1", "SK"))


KEYED = list(product({"published": PUBLISHED, "default": AdjacencyList()}.items(), [None, "acme"]))[:: stride(3)]


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("layout", "tenant"),
    [pytest.param(layout, tenant, id=f"{name}-{tenant}") for (name, layout), tenant in KEYED],
)
def test_fields_that_live_in_keys(engine: DuckDBEngine, layout: AdjacencyList, tenant: str | None) -> None:
    chance = random.Random(6)
    past = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)

    def one(texts: str) -> str:
        return chance.choice(texts.split(","))

    with Graph(":memory:", [Student, Teacher, Country, Class, Home], layout, tenant=tenant) as graph:
        for other in ("b", "acme2"):
            neighbour = Graph(graph._store, [Student, Teacher, Country, Class, Home], layout, tenant=other)
            neighbour.put_many([Student(id="S1"), Home(source="S1", target="US", state="TX", city="Waco", floor=3)])
        graph._store.execute((Put(graph._layout.table, {"PK": {"S": "OTHER"}, "SK": {"S": "PROGRAM"}}),))
        acts: list[Callable[[], Any]] = [
            lambda: graph.put(Student(id=one("S1,S2,S3"))),
            lambda: graph.put(Teacher(id=one("T1,T2"))),
            lambda: graph.put(Country(id=one("US,FR"))),
            lambda: graph.put(
                Home(
                    source=one("S1,S2,S3"),
                    target=one("US,FR"),
                    state=one("TX,NY"),
                    city=one("Waco,El Paso,Éze"),
                    floor=chance.randrange(-2, 30),
                )
            ),
            lambda: graph.put(
                Class(
                    source=one("S1,S2,S3"),
                    target=one("T1,T2"),
                    subject=one("maths,Maths,art"),
                    until=chance.choice([None, past, past + dt.timedelta(chance.randrange(4))]),
                )
            ),
            lambda: graph.delete(Student, one("S1,S2,S3")),
        ]
        live(graph, chance, lambda: chance.choice([*acts, *acts[3:5] * 2])(), 120)
        assert differences(graph, engine) == {}


def test_an_inverted_index(engine: DuckDBEngine) -> None:
    models = maintained.SHOP
    with Graph(":memory:", models, INVERTED) as graph:
        lived(graph, models, seed=9)
        assert differences(graph, engine) == {}
