"""Managed fields in index keys: at every instant, the index says what a plain loop over the nodes and edges says."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from typing import Annotated, Any
from uuid import uuid4

import pytest

from adjoin import (
    Edge,
    Graph,
    Indexed,
    MaterializedGraph,
    Node,
    Ranked,
    field,
)
from adjoin.aggregates import Avg, Copy, Count, Latest, Max, Min, Sum, Top
from adjoin.expressions import Remove, Set, Value, attribute
from adjoin.layouts.indexed_fields import Stretch, indexed_text
from adjoin.model import identity_of, node_id
from adjoin.requests import Delete, Plan, Update
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore, Interrupted
from tests.maintenance.simulation import Simulation, opened, stored, with_seeds
from tests.servers.open import Stores
from tests.shares import FEW, IS_ALL, stride


class Buyer(Node):
    id: str
    name: str = ""
    spent: Annotated[Decimal, Sum("Bought", field="price"), Indexed()] = Decimal(0)


class Product(Node):
    """The item itself is the entry of the first field, and there is an index copy for each of the others."""

    id: str
    name: Annotated[str, Indexed()] = ""
    sold: Annotated[int, Count("Bought"), Indexed()] = 0
    dearest: Annotated[Decimal | None, Max("Bought", field="price"), Indexed()] = None
    cheapest: Annotated[Decimal | None, Min("Bought", field="price")] = None
    last: Annotated[str | None, Latest("Bought", field="note", by="day"), Indexed()] = None
    best: Annotated[list[Ranked[Decimal]], Top("Bought", field="price", k=2)] = []
    mean: Annotated[Decimal | None, Avg("Bought", field="price"), Indexed()] = None


class Shelf(Node):
    """What is counted in the transaction is in the index in the same transaction."""

    id: str
    things: Annotated[int, Count("Holds", consistency="transaction"), Indexed()] = 0
    weight: Annotated[int, Sum("Holds", field="weight", consistency="transaction"), Indexed()] = 0
    best: Annotated[list[Ranked[Decimal]], Top("Holds", "Bought", field="price", k=2)] = []
    mean: Annotated[Decimal | None, Avg("Holds", field="weight", consistency="transaction")] = None
    price: Annotated[Decimal | None, Avg("Holds", "Bought", field="price")] = None


class Bought(Edge[Buyer, Product], order="product"):
    """Neighbours are sorted by the name of the product, and edges are found by the name of the buyer."""

    price: Decimal | None = None
    note: str = ""
    day: int = 0
    product: Annotated[str, Copy("target.name")] = ""
    buyer: Annotated[str | None, Copy("source.name"), Indexed()] = None
    spent: Annotated[Decimal, Copy("source.spent"), Indexed()] = Decimal(0)


class Holds(Edge[Shelf, Product]):
    weight: int = 1


class Friend(Edge[Buyer, Buyer], symmetric=True, order="name"):
    since: int = 0
    name: Annotated[str, Copy("target.name")] = ""
    own: Annotated[str, Copy("source.name")] = ""


NODES: dict[Any, str] = {Buyer: "B", Product: "P", Shelf: "S"}
EDGES: dict[Any, tuple[Any, Any]] = {Bought: (Buyer, Product), Holds: (Shelf, Product), Friend: (Buyer, Buyer)}
MODELS: list[type[Any]] = [*NODES, *EDGES]


class Life:
    """What people do to a shop, at random."""

    def __init__(self, graph: Graph, chance: random.Random, nodes: int = 3) -> None:
        self.graph, self.chance, self.count = graph, chance, nodes
        self.recent: list[Any] = []

    def fields(self, model: Any) -> dict[str, Any]:
        chance = self.chance
        values: dict[Any, Callable[[], dict[str, Any]]] = {
            Buyer: lambda: {"name": chance.choice("ab")},
            Product: lambda: {"name": chance.choice(["", "x", "y#%"])},
            Bought: lambda: {
                "price": chance.choice([None, Decimal(chance.randrange(-30, 120)) / 10, Decimal(5)]),
                "note": chance.choice("mno"),
                "day": chance.randrange(3),
            },
            Holds: lambda: {"weight": chance.randrange(4)},
            Friend: lambda: {"since": chance.randrange(3)},
        }
        return values.get(model, dict)()

    def node(self) -> Any:
        model = self.chance.choice(list(NODES))
        return model(id=self.id(model), **self.fields(model))

    def id(self, model: Any) -> str:
        return f"{NODES[model]}{self.chance.randrange(self.count)}"

    def edge(self) -> Any:
        """One of the last again, as often as not."""
        if self.recent and self.chance.random() < 0.6:
            model, source, target = self.chance.choice(self.recent)
        else:
            model = self.chance.choice(list(EDGES))
            source, target = map(self.id, EDGES[model])
        self.recent = [*self.recent[-2:], (model, source, target)]
        return model(source=source, target=target, **self.fields(model))

    def act(self) -> tuple[Plan[Any], str]:
        ways = [(5, self.connect), (4, self.put_edge), (3, self.disconnect), (3, self.update_edge), (4, self.put_node)]
        ways += [(3, self.update_node), (1, self.delete_node), (1, self.lose_node), (2, self.put_many), (3, self.both)]
        act = self.chance.choices([way for _, way in ways], [weight for weight, _ in ways])[0]
        return act(), act.__name__

    def connect(self) -> Plan[Any]:
        edge = self.edge()
        return self.graph._connect(type(edge), edge.source, edge.target, self.fields(type(edge)))

    def put_edge(self) -> Plan[Any]:
        return self.graph._put(self.edge(), None)

    def put_node(self) -> Plan[Any]:
        """Some that were read a while ago, with what was counted then."""
        node = self.node()
        found = self.graph.get(type(node), node.id) if self.chance.random() < 0.5 else None
        return self.graph._put(found or node, None)

    def put_many(self) -> Plan[Any]:
        return self.graph._put_many([self.node(), self.edge(), self.edge(), self.node()], None)

    def disconnect(self) -> Plan[Any]:
        edge = self.edge()
        return self.graph._disconnect(type(edge), edge.source, edge.target, {})

    def update_edge(self) -> Plan[Any]:
        edge = self.edge()
        return self.graph._update(type(edge), (edge.source, edge.target), None, None, self.fields(type(edge)))

    def update_node(self) -> Plan[Any]:
        node = self.node()
        if not (fields := self.fields(type(node))):
            return self.put_node()
        return self.graph._update(type(node), (node.id,), None, None, fields)

    def both(self) -> Plan[Any]:
        """A node and one of its edges in one transaction."""
        edge = self.edge()
        transaction = self.graph.transaction().__enter__()
        source = EDGES[type(edge)][0]
        transaction.put(source(id=edge.source, **self.fields(source)))
        transaction.put(edge)
        return transaction._commit()

    def delete_node(self) -> Plan[Any]:
        node = self.node()
        return self.graph._delete(type(node), node.id)

    def lose_node(self) -> Plan[Any]:
        """The node alone goes; what stands beside it for an index is left, and an audit finds it."""
        layout, id = self.graph._layout, self.id(Buyer)
        key = layout.node_key(layout.schema.node(Buyer), id)

        def plan() -> Plan[Any]:
            yield (Delete(layout.table, key),)

        return plan()


def entries(graph: Graph, model: Any, name: str) -> list[tuple[str, Any]]:
    """What is in the index of an indexed field, in its order: the texts of values, and what is found there."""
    layout = graph._layout
    index, kind = layout.overloaded, layout.schema.node(model) if issubclass(model, Node) else layout.schema.edge(model)
    assert index is not None
    scope = f"{index.field(kind, name).scope}#"
    found = [item for item in stored(graph) if item.get(index.partition_key, {"S": ""})["S"].startswith(scope)]
    found.sort(key=lambda item: str(item[index.sort_key]["S"]))
    return [(item[index.sort_key]["S"].partition("#")[0], layout.found(kind, item)) for item in found]


def world(graph: Graph) -> list[Any]:
    layout = graph._layout
    return [entity for item in stored(graph) if not layout.is_bookkeeping(item) and (entity := layout.read(item))]


INDEXED = [
    (model, name)
    for model, names in {
        Buyer: ["spent"],
        Product: ["name", "sold", "dearest", "last", "mean"],
        Shelf: ["things", "weight"],
        Bought: ["buyer", "spent"],
    }.items()
    for name in names
]


def check_entries(graph: Graph) -> None:
    """Each index has each node and edge with the value that it has, and nothing else."""
    everything = world(graph)
    for model, name in INDEXED:
        there = [entity for entity in everything if type(entity) is model and getattr(entity, name) is not None]
        wanted = sorted((indexed_text(getattr(entity, name)), repr(entity)) for entity in there)
        assert sorted((text, repr(entity)) for text, entity in entries(graph, model, name)) == wanted, (model, name)
    check_order(graph, everything)


def check_order(graph: Graph, everything: list[Any]) -> None:
    """The key that keeps neighbours in order has what the edge has."""
    layout = graph._layout
    for item in stored(graph):
        if not layout.is_bookkeeping(item) and isinstance(edge := layout.read(item), Bought | Friend):
            kind = layout.schema.edge(type(edge))
            assert layout.with_managed_keys(kind, item) == item, repr(edge)


def check_values(graph: Graph) -> None:
    """Every aggregate and copied field is what a plain loop gives."""
    everything: list[Any] = world(graph)
    nodes: dict[Any, Any] = {
        (type(entity), node_id(entity)): entity for entity in everything if isinstance(entity, Node)
    }
    edges = [entity for entity in everything if isinstance(entity, Edge)]
    for node in nodes.values():
        at = [edge for edge in edges if node.id in (edge.source, edge.target)]
        bought = [edge for edge in at if isinstance(edge, Bought)]
        prices = [edge.price for edge in bought if edge.price is not None]
        if isinstance(node, Buyer):
            assert node.spent == sum(prices, Decimal(0))
        elif isinstance(node, Product):
            assert (node.sold, node.dearest) == (len(bought), max(prices, default=None))
            assert node.last == max(((edge.day, edge.note) for edge in bought), default=(0, None))[1]
            assert best(node) == greatest(bought)
            assert node.mean == average(prices)
        else:
            held = [edge.weight for edge in at if isinstance(edge, Holds)]
            assert (node.things, node.weight) == (len(held), sum(held))
            on = {edge.target for edge in at if isinstance(edge, Holds) and (Product, edge.target) in nodes}
            far = [each for each in edges if isinstance(each, Bought) and each.target in on]
            assert best(node) == greatest(far)
            assert node.mean == average([Decimal(weight) for weight in held])
            assert node.price == average([each.price for each in far if each.price is not None])
    for edge in edges:
        if isinstance(edge, Bought):
            buyer, product = nodes.get((Buyer, edge.source)), nodes.get((Product, edge.target))
            assert (edge.buyer, edge.spent) == ((buyer.name, buyer.spent) if buyer else (None, Decimal(0)))
            assert edge.product == (product.name if product else "")
        elif isinstance(edge, Friend):
            own, other = nodes.get((Buyer, edge.source)), nodes.get((Buyer, edge.target))
            assert (edge.own, edge.name) == (own.name if own else "", other.name if other else "")


def best(node: Any) -> list[tuple[Any, Any]]:
    assert all(each.ref == Buyer.ref(each.id) for each in node.best)
    return [(each.value, each.id) for each in node.best]


def average(values: list[Decimal]) -> Decimal | None:
    with localcontext() as context:
        context.prec = 38
        return sum(values, Decimal(0)) / len(values) if values else None


def greatest(bought: list[Any]) -> list[tuple[Any, Any]]:
    """The two greatest prices with their buyers; of equal ones, the one with the greater id comes first."""
    return sorted(((edge.price, edge.source) for edge in bought if edge.price is not None), reverse=True)[:2]


def simulate(seed: int, layout: Any = None, *, acts: int = 30) -> None:
    graph = opened(seed, MODELS, layout)
    try:
        simulation = Simulation(graph, seed)
        life = Life(graph, simulation.chance, 2 + seed % 2)
        simulation.watch = lambda: check_entries(graph)
        for _ in range(acts):
            simulation.write(*life.act())
        simulation.drain()
        check_entries(graph)
        check_values(graph)
    finally:
        graph.close()


LAYOUTS = {"list": None, "graph": MaterializedGraph(), "shards": MaterializedGraph(shards=3)}


@pytest.mark.simulation
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_index_is_right_at_every_instant(layout: str) -> None:
    with_seeds(lambda seed: simulate(seed, LAYOUTS[layout]), 0, 1, FEW * 2)


# --- a maintainer that stops -------------------------------------------------------------------


def happen(graph: Graph) -> None:
    """Names come and go, edges come before their nodes, and the greatest value is taken back."""
    graph.put_many([Product(id="P1", name="x"), Product(id="P2"), Buyer(id="B1", name="a"), Shelf(id="S1")])
    graph.put_many(
        Bought(source=f"B{number % 2}", target=f"P{number % 3}", price=Decimal(number), day=number)
        for number in range(4)
    )
    graph.put(Friend(source="B1", target="B0"))
    graph.put(Holds(source="S1", target="P1", weight=3))


def happen_again(graph: Graph) -> None:
    graph.put(Buyer(id="B0", name="b"))
    graph.put(Product(id="P1", name="y"))
    graph.disconnect(Bought, "B1", "P0")
    graph.update(Buyer, "B1", name="c")
    graph.update(Bought, "B0", "P2", price=Decimal(9))
    graph.delete(Product, "P2")


@pytest.mark.simulation
@pytest.mark.parametrize("when", ["before", "after"])
def test_maintenance_may_stop_at_every_request(when: str) -> None:
    """At some of them: every other one has maintenance before it, so the stride is odd."""
    number = 0 if when == "before" else stride(5) // 2
    while True:
        store = FaultyStore(SQLiteStore(":memory:"))
        graph = Graph(store, MODELS)
        happen(graph)
        if number % 2:
            graph.maintain(once=True)
        happen_again(graph)
        store.stop_at(number, when)
        try:
            graph.maintain(once=True)
            stopped = False
        except Interrupted:
            stopped = True
        store.recover()
        check_entries(graph)
        graph.maintain(once=True)
        check_entries(graph)
        check_values(graph)
        if not stopped and when == "before":
            # P0 was never put.
            assert [each.kind for each in graph.verify(source="scan", threads=1).findings] == ["dangling"]
        graph.close()
        if not stopped:
            break
        number += stride(5)
    assert number > 15


@pytest.mark.simulation
def test_a_rebuild_may_stop_at_every_request() -> None:
    """What another program has spoilt is counted again, and with it the entry. At one: each takes two rebuilds."""
    number = 0 if IS_ALL else 87
    while True:
        store = FaultyStore(SQLiteStore(":memory:"))
        graph = Graph(store, MODELS)
        happen(graph)
        graph.maintain(once=True)
        for model, id, spoilt in ((Buyer, "B1", "spent"), (Product, "P1", "sold")):
            key = graph._layout.node_key(graph._layout.schema.node(model), id)
            store.execute((Update(graph._layout.table, key, (Set(attribute(spoilt), Value({"N": "77"})),)),))
        store.stop_at(number, "after")
        try:
            graph.rebuild(source="scan", threads=1)
            stopped = False
        except Interrupted:
            stopped = True
        store.recover()
        if stopped:
            graph.rebuild(source="scan", threads=1)
        check_entries(graph)
        check_values(graph)
        graph.close()
        if not stopped:
            break
        number += 9 if IS_ALL else 58
    assert number > 87, "it stopped at least once"


# --- reading a ranking -------------------------------------------------------------------------


@pytest.fixture(params=LAYOUTS)
def g(request: pytest.FixtureRequest) -> Iterator[Graph]:
    with Graph(":memory:", MODELS, LAYOUTS[request.param]) as graph:
        graph.put_many(Product(id=f"P{number}", name=f"n{number % 3}") for number in range(12))
        graph.put_many(Buyer(id=f"B{number}", name=chr(97 + number)) for number in range(6))
        graph.put_many(
            Bought(source=f"B{buyer}", target=f"P{product}", price=Decimal(product * 7 % 5 + buyer))
            for product in range(10)
            for buyer in range(product % 6)
        )
        graph.maintain(once=True)
        yield graph


def ranking(graph: Graph, model: Any, name: str) -> list[Any]:
    """The same by a plain loop."""
    there = [node for node in graph.scan(model) if getattr(node, name) is not None]
    return sorted(there, key=lambda node: (getattr(node, name), identity_of(node)))


@pytest.mark.parametrize("name", ["sold", "dearest", "name"])
def test_the_best_are_read_in_one_query_per_shard(g: Graph, name: str) -> None:
    wanted = ranking(g, Product, name)
    assert list(g.find(Product, order=name)) == wanted
    list(g.find(Product, order=name).limit(1))
    with g.meter() as meter:
        assert list(g.find(Product, order=name).reverse().limit(3)) == wanted[::-1][:3]
    index = g._layout.overloaded
    assert index is not None
    shards = len(index.partitions(index.field(g._layout.schema.node(Product), name), Stretch()))
    assert (meter.requests, meter.rounds) == (shards, 1)


def test_nodes_are_found_by_what_is_counted(g: Graph) -> None:
    some = ranking(g, Product, "sold")
    assert list(g.find(Product, field("sold") == 0)) == [node for node in some if node.sold == 0]
    assert list(g.find(Product, field("sold") >= 4)) == [node for node in some if node.sold >= 4]
    assert list(g.find(Product, field("dearest").between(3, 5))) == [
        node for node in ranking(g, Product, "dearest") if 3 <= (node.dearest or 0) <= 5
    ]
    g.put(Product(id="P99"))
    assert [node.id for node in g.find(Product, field("sold") == 0)][-1] == "P99"
    assert [node for page in _pages(g) for node in page] == ranking(g, Product, "sold")


def _pages(g: Graph) -> Iterator[list[Any]]:
    after: str | None = None
    while True:
        page = g.find(Product, order="sold").page(limit=5, after=after)
        yield list(page.items)
        after = page.next
        if after is None:
            return


def test_edges_are_sorted_and_found_by_the_names_of_neighbours(g: Graph) -> None:
    bought = list(g.out("B2", Bought))
    assert [edge.product for edge in bought] == sorted(edge.product for edge in bought)
    g.update(Product, "P3", name="aaa")
    g.update(Buyer, "B2", name="zoe")
    g.maintain(once=True)
    assert next(edge.target for edge in g.out("B2", Bought)) == "P3"
    assert [edge.target for edge in g.out("B2", Bought).begins_with("aa")] == ["P3"]
    assert {edge.source for edge in g.find(Bought, field("buyer") == "zoe")} == {"B2"}
    assert list(g.find(Bought, field("buyer") == "c")) == []
    assert [edge.source for edge in g.into("P3", Bought)] == ["B0", "B1", "B2"]


@pytest.mark.simulation
@pytest.mark.parametrize("g", [*LAYOUTS][:: -stride(3)], indirect=True)
def test_a_symmetric_edge_copies_from_the_end_at_which_it_is_read(g: Graph) -> None:
    g.connect(Friend, "B1", "B4")
    g.put_many([Friend(source="B2", target="B1"), Friend(source="B1", target="B1")])
    assert [(edge.target, edge.name, edge.own) for edge in g.out("B1", Friend)] == [
        ("B1", "b", "b"),
        ("B2", "c", "b"),
        ("B4", "e", "b"),
    ]
    assert g.edge(Friend, "B4", "B1").name == "b"  # type: ignore[union-attr]
    g.update(Buyer, "B4", name="aa")
    g.update(Buyer, "B1", name="q")
    g.maintain(once=True)
    assert [edge.name for edge in g.out("B1", Friend)] == ["aa", "c", "q"]
    assert [(edge.own, edge.name) for edge in g.out("B4", Friend)] == [("aa", "q")]
    fans = {
        fan.fields: fan.index for fan in g.explain(g.update, Buyer, "B1", name="r").fan_outs if fan.edge == "Friend"
    }
    assert fans == {("name",): None, ("own",): None}
    g.update(Friend, "B4", "B1", since=3)
    assert [(edge.since, edge.name) for edge in g.out("B1", Friend)] == [(3, "aa"), (0, "c"), (0, "q")]
    assert g.verify(threads=1).findings == ()


@pytest.mark.simulation
@pytest.mark.parametrize("g", [*LAYOUTS][:: stride(3)], indirect=True)
def test_an_audit_finds_and_repairs_a_lost_entry(g: Graph) -> None:
    layout = g._layout
    index = layout.overloaded
    assert index is not None
    key = layout.node_key(layout.schema.node(Buyer), "B3")
    g._store.execute((Update(layout.table, key, (Remove(attribute(index.sort_key)),)),))
    (finding,) = g.verify(repair=True, threads=1).findings
    assert (finding.kind, finding.count, finding.repaired) == ("index entry", 1, 1)
    assert list(g.find(Buyer, order="spent")) == ranking(g, Buyer, "spent")


def test_a_put_reads_nothing_and_keeps_the_entry() -> None:
    with Graph(":memory:", [Buyer, Product, Bought]) as g:
        g.put_many([Buyer(id="B1"), Product(id="P1")])
        g.put(Bought(source="B1", target="P1", price=Decimal(5)))
        g.maintain(once=True)
        for node in (Buyer(id="B1", name="new"), Buyer(id="B2")):
            with g.meter() as meter:
                g.put(node)
            assert (meter.requests, meter.rcu) == (1, 0)
        assert [(node.name, node.spent) for node in g.find(Buyer, order="spent")] == [
            ("", Decimal(0)),
            ("new", Decimal(5)),
        ]


def declared(first: bool, *marks: Any) -> list[type[Any]]:
    class Item(Node):
        id: str
        name: Annotated[str, *(["no index"] if first else [Indexed()])] = ""
        sold: Annotated[int, Count("Sale"), *marks] = 0

    class Shop(Node):
        id: str

    class Sale(Edge[Item, Shop]):
        pass

    return [Item, Shop, Sale]


@pytest.mark.parametrize(("first", "more"), [(True, 2), (False, 4)])
def test_what_a_ranking_costs_is_told_in_advance(first: bool, more: int) -> None:
    """One entry is removed and one is added; an index copy is another item in the transaction."""
    costs = []
    for marks in ((), (Indexed(),)):
        item, shop, sale = models = declared(first, *marks)
        with Graph(":memory:", models) as g:
            g.put_many([item(id="I"), shop(id="S")])
            g.maintain(once=True)
            (told,) = g.explain(g.put, sale(source="I", target="S")).countings
            g.put(sale(source="I", target="S"))
            with g.meter() as meter:
                g.maintain(once=True)
            costs.append((told.wcu(), meter.wcu - (0 if first else 1)))
    # The entry of another field is written too, since it holds all attributes; that is not told.
    (_, before), (told_after, after) = costs
    assert (after - before, after) == (more, told_after)


def test_the_same_over_another_service(servers: Stores) -> None:
    location = f"dynamodb://Rankings-{uuid4().hex}?endpoint={servers.address('ministack')}"
    with Graph(location, MODELS) as graph:
        graph.create_table()
        happen(graph)
        graph.maintain(once=True)
        happen_again(graph)
        graph.maintain(once=True)
        check_entries(graph)
        check_values(graph)
        assert list(graph.find(Product, order="sold")) == ranking(graph, Product, "sold")
        assert list(graph.find(Buyer, order="spent").reverse().limit(1)) == ranking(graph, Buyer, "spent")[-1:]
        graph.drop_table()
