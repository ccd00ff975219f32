"""Whatever happens, once all changes are applied every aggregate is what looking at everything gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from adjoin import AdjacencyList, Graph, Keys, MaterializedGraph
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import GENERATION
from adjoin.model import node_id
from adjoin.plans.steps.batches import place_of
from adjoin.requests import Delete, Plan
from adjoin.values import Item
from tests.maintenance.ledgers import edge_of, entries_of, is_ledger, is_rank, left_arrivals, named_ranks, unmarked
from tests.maintenance.models import (
    ALBUMS,
    MODELS,
    PARTS,
    PEOPLE,
    SHOP,
    WALLETS,
    Album,
    Bill,
    Contains,
    Customer,
    Follows,
    Friend,
    Invoice,
    Likes,
    OnAlbum,
    Part,
    Payment,
    Person,
    Placed,
    Reader,
    Refund,
    Settings,
    Track,
    Uses,
    Wallet,
    World,
    expected,
    uses,
)
from tests.maintenance.simulation import Simulation, opened, stored, with_seeds
from tests.shares import FEW, FIRST

IDS = {
    Customer: "C", Invoice: "I", Bill: "B", Part: "P", Person: "N", Album: "A", Track: "T", Wallet: "W", Reader: "R"
}  # fmt: skip
PARENTS: dict[Any, Any] = {Payment: Wallet, Refund: Payment, Settings: Wallet}
ENDS: dict[Any, tuple[Any, Any]] = {
    Placed: (Customer, Invoice),
    Contains: (Invoice, Bill),
    OnAlbum: (Album, Track),
    Uses: (Part, Part),
    Follows: (Person, Person),
    Friend: (Person, Person),
    Likes: (Reader, Payment),
}


RECURSIVE = ("total", "below", "dearest")
NAMED_IN_RECORDS = (("rule", "."), ("near", "#"), ("far", "#"))


class Life:
    """What people do to a graph, at random."""

    ids, parents, ends = IDS, PARENTS, ENDS

    def __init__(self, graph: Graph, chance: random.Random, models: list[Any], nodes: int) -> None:
        self.graph, self.chance, self.count = graph, chance, nodes
        self.nodes = [model for model in models if model in self.ids]
        self.edges = [model for model in models if model in self.ends]
        self.children = [model for model in models if model in self.parents]
        self.recent: list[tuple[Any, Any, Any]] = []
        self.recent_children: list[tuple[Any, dict[str, Any]]] = []

    def id(self, model: Any) -> Any:
        if model in self.parents:
            return node_id(model(parent=self.id(self.parents[model]), **self.key(model)))
        return f"{self.ids[model]}{self.chance.randrange(self.count)}"

    def fields(self, model: Any) -> dict[str, Any]:
        chance = self.chance
        values: dict[Any, Callable[[], dict[str, Any]]] = {
            Customer: lambda: {"name": chance.choice("ab")},
            Invoice: lambda: {"kind": chance.choice("xy"), "weight": chance.randrange(5)},
            Bill: lambda: {"amount": chance.choice([None, Decimal(chance.randrange(-50, 90)) / 10])},
            Placed: lambda: {
                "balance": chance.choice([None, Decimal(chance.randrange(-9, 99)) / 100, Decimal("1e20")]),
                "status": chance.choice(["open", "paid", "late"]),
                "day": chance.randrange(4),
            },
            Contains: lambda: {"note": chance.choice("mno"), "day": chance.randrange(3)},
            Album: lambda: {"title": chance.choice("ab")},
            Track: lambda: {"title": chance.choice("cd")},
            OnAlbum: lambda: {"seconds": chance.randrange(1, 300), "live": chance.random() < 0.5},
            Part: lambda: {"cost": chance.randrange(9)},
            Person: lambda: {"age": chance.randrange(60)},
            Wallet: lambda: {"name": chance.choice("ab")},
            Reader: lambda: {"name": chance.choice("ab")},
            Payment: lambda: {
                "amount": chance.choice([None, Decimal(chance.randrange(-9, 99)) / 100]),
                "kind": chance.choice(["rent", "food", "tax"]),
            },
            Refund: lambda: {"amount": chance.randrange(5)},
            Settings: lambda: {"theme": chance.choice("ab")},
        }
        return values.get(model, dict)()

    def edge(self) -> Any:
        """One of the last again, as often as not: what is done and undone is where a stale reader goes wrong."""
        if self.recent and self.chance.random() < 0.6:
            model, source, target = self.chance.choice(self.recent)
        else:
            model = self.chance.choice(self.edges)
            source, target = map(self.id, self.ends[model])
        self.recent = [*self.recent[-1:], (model, source, target)]
        return model(source=source, target=target, **self.fields(model))

    def key(self, model: Any) -> dict[str, Any]:
        keys: dict[Any, dict[str, Any]] = {
            Payment: {"number": self.chance.randrange(-1, 2)},
            Refund: {"id": self.chance.choice("xy")},
        }
        return keys.get(model, {})

    def child(self) -> Any:
        """One of the last again, as often as not."""
        if self.recent_children and self.chance.random() < 0.5:
            model, identity = self.chance.choice(self.recent_children)
        else:
            model = self.chance.choice(self.children)
            identity = {"parent": self.id(self.parents[model]), **self.key(model)}
        self.recent_children = [*self.recent_children[-1:], (model, identity)]
        return model(**identity, **self.fields(model))

    def node(self) -> Any:
        model = self.chance.choice(self.nodes)
        return model(id=self.id(model), **self.fields(model))

    def act(self) -> tuple[Plan[Any], str]:
        ways = [
            (6, self.connect),
            (3, self.put_edge),
            (4, self.disconnect),
            (4, self.update_edge),
            (2, self.move),
            (3, self.put_node),
            (3, self.update_node),
            (1, self.delete_node),
            (1, self.lose_node),
            (1, self.put_many),
        ]
        if self.children:
            ways += [(8, self.put_child), (4, self.update_child), (4, self.delete_child), (2, self.put_children)]
        act = self.chance.choices([way for _, way in ways], [weight for weight, _ in ways])[0]
        return act(), act.__name__

    def connect(self) -> Plan[Any]:
        edge = self.edge()
        return self.graph._connect(type(edge), edge.source, edge.target, self.fields(type(edge)))

    def put_edge(self) -> Plan[Any]:
        return self.graph._put(self.edge(), None)

    def put_node(self) -> Plan[Any]:
        return self.graph._put(self.node(), None)

    def put_many(self) -> Plan[Any]:
        return self.graph._put_many([self.node(), self.edge(), self.edge(), self.node()], None)

    def put_child(self) -> Plan[Any]:
        return self.graph._put(self.child(), None)

    def put_children(self) -> Plan[Any]:
        return self.graph._put_many([self.child(), self.node(), self.child()], None)

    def update_child(self) -> Plan[Any]:
        child = self.child()
        return self.graph._update(type(child), (node_id(child),), None, None, self.fields(type(child)))

    def delete_child(self) -> Plan[Any]:
        child = self.child()
        return self.graph._delete(type(child), node_id(child))

    def disconnect(self) -> Plan[Any]:
        edge = self.edge()
        return self.graph._disconnect(type(edge), edge.source, edge.target, {})

    def update_edge(self) -> Plan[Any]:
        edge = self.edge()
        if not (fields := self.fields(type(edge))):
            return self.put_edge()
        return self.graph._update(type(edge), (edge.source, edge.target), None, None, fields)

    def move(self) -> Plan[Any]:
        edge, other = self.edge(), self.edge()
        model = type(edge)
        target = self.id(self.ends[model][1])
        if target == edge.target or model is not type(other):
            return self.disconnect()
        transaction = self.graph.transaction().__enter__()
        transaction.disconnect(model, edge.source, edge.target)
        transaction.put(model(source=edge.source, target=target, **self.fields(model)))
        return transaction._commit()

    def update_node(self) -> Plan[Any]:
        node = self.node()
        return self.graph._update(type(node), (node.id,), None, None, self.fields(type(node)))

    def delete_node(self) -> Plan[Any]:
        node = self.node()
        return self.graph._delete(type(node), node.id)

    def lose_node(self) -> Plan[Any]:
        """The node alone goes, as when it expires; its edges stay."""
        node = self.node()
        layout = self.graph._layout
        key = layout.node_key(layout.schema.node(type(node)), node.id)

        def plan() -> Plan[Any]:
            yield (Delete(layout.table, key),)

        return plan()


def check(graph: Graph) -> None:
    """Every aggregate of every node, and nothing left over that counts for nobody.

    Edges whose nodes are not there are found when these come.
    """
    layout, items = graph._layout, stored(graph)
    entities = [entity for item in items if not layout.is_bookkeeping(item) and (entity := layout.read(item))]
    records = [item for item in items if "reason" in item]
    aside = {tuple(item[name]["S"].rpartition(sign)[2] for name, sign in NAMED_IN_RECORDS) for item in records}
    world = World(entities, {(rule, near, far) for rule, near, far in aside})
    check_cycles(world)
    for entity in world.everything():
        wanted = expected(world, entity)
        found = {name: getattr(entity, name) for name in wanted}
        assert found == wanted, repr(entity)
    assert not [item for item in items if "adjoin:stale" in item]
    keys = [layout.key_of(item) for item in items]
    for item in filter(is_ledger, items):
        assert edge_of(layout, item) in keys
        assert entries_of(layout, item)
    started = layout.ledgers.edge_start
    assert all(is_ledger(item) for item in items if [*layout.key_of(item).values()][1]["S"].startswith(started))
    check_ranks(layout, items)
    assert [(ref.group.name, ref.key) for ref in unmarked(layout, items)] == []
    assert left_arrivals(layout, items) == []


def check_ranks(layout: BoundLayout, items: list[Item]) -> None:
    """Every rank that a ledger names is there, and holds what the ledger says; none is there without one that may be.

    A rank that nobody names is a leftover of a crash.
    """
    there = {place_of(layout.key_of(item)): item for item in items if is_rank(layout, item)}
    for place, state in named_ranks(layout, items).items():
        assert place in there
        assert {name: there[place].get(name) for name in state if name != "rank"} == {
            name: value for name, value in state.items() if name != "rank"
        }


def unnamed_ranks(graph: Graph) -> list[Item]:
    """The ranks that are there for nobody, in generations that last."""
    layout, items = graph._layout, stored(graph)
    named = named_ranks(layout, items)
    generations = {item[GENERATION]["S"] for item in items if GENERATION in item and not is_ledger(item)}
    ranks = [item for item in items if is_rank(layout, item) and layout.ledgers.generation_of_rank(item) in generations]
    return [item for item in ranks if place_of(layout.key_of(item)) not in named]


def check_cycles(world: World) -> None:
    """What is set aside would close a cycle, and what is not has none."""
    for name, source, target in world.aside:
        assert source in reached(world, target, name), f"{source} uses {target} is set aside for {name} without reason"
    for part in world.all(Part):
        for name in RECURSIVE:
            below = {id for edge in uses(world, part.id, name) for id in reached(world, edge.target, name)}
            assert part.id not in below


def reached(world: World, start: str, name: str) -> set[str]:
    """A part and those below it over applied edges; a part that is not there leads nowhere."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        id = waiting.pop()
        if id not in found:
            found.add(id)
            if world.node(Part, id) is not None:
                waiting += [edge.target for edge in uses(world, id, name)]
    return found


def simulate(
    seed: int, models: list[Any], layout: Any = None, *, acts: int = 40, nodes: int = 4, crashes: float = 0.02
) -> Simulation:
    graph = opened(seed, MODELS, layout)
    try:
        simulation = Simulation(graph, seed, crashes=crashes)
        life = Life(graph, simulation.chance, models, nodes)
        for _ in range(acts):
            simulation.write(*life.act())
        simulation.drain()
        check(graph)
        if not crashes:
            assert unnamed_ranks(graph) == []
        return simulation
    finally:
        graph.close()


@pytest.mark.simulation
@pytest.mark.parametrize(
    "models", [SHOP, ALBUMS, PARTS, PEOPLE, WALLETS], ids=["shop", "albums", "parts", "people", "wallets"]
)
@pytest.mark.parametrize("part", range(5))
def test_everything_is_true_in_the_end(models: list[Any], part: int) -> None:
    with_seeds(lambda seed: simulate(seed, models, nodes=2 + seed % 3), part, 5)


@pytest.mark.simulation
@pytest.mark.parametrize("models", [SHOP, PARTS, WALLETS], ids=["shop", "parts", "wallets"])
def test_nothing_is_left_over_unless_somebody_crashes(models: list[Any]) -> None:
    with_seeds(lambda seed: simulate(seed, models, nodes=2, crashes=0.0), 0, 1, FEW)


@pytest.mark.simulation
def test_in_another_layout() -> None:
    for seed in range(FIRST, FIRST + max(FEW // 5, 1)):
        for models in (MODELS, WALLETS):
            simulate(seed, models, MaterializedGraph(), acts=60)


def in_one_partition(models: list[Any]) -> AdjacencyList:
    keys = {model: Keys(partition="all", sort="{label}#{id}") for model in models if model in IDS}
    return AdjacencyList(keys=keys, escape=True)


@pytest.mark.simulation
def test_with_all_nodes_in_one_partition() -> None:
    for seed in range(FIRST, FIRST + max(FEW // 5, 1)):
        for models in (MODELS, WALLETS):
            simulate(seed, models, in_one_partition(MODELS), acts=60)


@pytest.mark.simulation
def test_with_children_in_partitions_of_their_own() -> None:
    layout = AdjacencyList(keys={Payment: Keys(partition="of#{parent.id}", sort="{number:sortable}")}, escape=True)
    for seed in range(FIRST, FIRST + FEW):
        simulate(seed, WALLETS, layout, acts=60)


@pytest.mark.simulation
@pytest.mark.parametrize("part", range(3))
def test_in_the_transaction_means_at_every_instant(part: int) -> None:
    """Nobody ever finds a count that is not what the edges say, between any two requests, before any maintenance."""
    for seed in range(FIRST + part, FIRST + FEW, 3):
        graph = Graph(":memory:", MODELS)
        simulation = Simulation(graph, seed, maintainers=seed % 2)
        life = Life(graph, simulation.chance, ALBUMS, 3)
        for model in (Album, Track):
            graph.put_many(model(id=f"{IDS[model]}{number}") for number in range(3))
        acts = [
            life.connect,
            life.disconnect,
            life.update_edge,
            life.put_edge,
            life.move,
            life.put_many,
            life.put_node,
        ]
        simulation.watch = lambda graph=graph, seed=seed: check_counts(graph, seed)  # type: ignore[misc]
        for _ in range(25):
            simulation.write(simulation.chance.choice(acts)(), "writer")
        simulation.drain()
        check(graph)
        graph.close()


def check_counts(graph: Graph, seed: int) -> None:
    world = World([entity for item in stored(graph) if (entity := graph._layout.read(item))], set())
    for node in (*world.all(Album), *world.all(Track)):
        wanted = {name: value for name, value in expected(world, node).items() if name != "longest"}
        assert {name: getattr(node, name) for name in wanted} == wanted, f"{node!r}, seed {seed}"
