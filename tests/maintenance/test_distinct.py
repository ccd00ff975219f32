"""`distinct=True`: each different node counts once, whatever the paths and whatever happens, as plain sets say."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from typing import Annotated, Any

import networkx
import pytest

from adjoin import Child, Edge, Graph, Indexed, InvalidModel, MaterializedGraph, Node, field
from adjoin.aggregates import Avg, Count, Latest, Max, Sum, Top
from adjoin.expressions import Set, Value, attribute
from adjoin.layouts.indexed_fields import indexed_text
from adjoin.layouts.interface import GENERATION
from adjoin.model import node_id
from adjoin.plans.maintenance.affected import apply_changes
from adjoin.plans.maintenance.recounting import begin, begun_before, finish
from adjoin.plans.maintenance.report import Tally
from adjoin.reached_sets import is_reached_set, packed_texts, reached_set, shown
from adjoin.requests import Plan, Put, TransactWrite, Update
from adjoin.values import decode
from tests.maintenance.ledgers import edge_of, entries_of, is_ledger, left_arrivals, unmarked
from tests.maintenance.simulation import Process, Simulation, Stream, opened, stored, with_seeds
from tests.maintenance.test_rankings import entries
from tests.maintenance.test_simulation import NAMED_IN_RECORDS, Life
from tests.shares import FEW


class Person(Node):
    """No field is in an index, so nothing but the version of a set says that it is as it was read."""

    id: str
    age: int | None = None
    near: Annotated[int, Count("Follows", distinct=True)] = 0
    far: Annotated[int, Count("Follows", "Follows", distinct=True)] = 0
    fans: Annotated[int, Count("Follows", "Follows", distinct=True, direction="into")] = 0
    loved: Annotated[int, Count("Follows", "Follows", where=field("kind") == "love", distinct=True)] = 0
    ages: Annotated[int, Sum("Follows", "Follows", field="age", distinct=True)] = 0
    mean: Annotated[Decimal | None, Avg("Friend", "Follows", field="age", distinct=True)] = None
    circle: Annotated[int, Count("Friend", "Friend", distinct=True)] = 0
    notes: Annotated[int, Count("Follows", "Note", distinct=True)] = 0
    stars: Annotated[Decimal, Sum("Follows", "Note", field="stars", distinct=True)] = Decimal(0)


class Note(Child[Person], key=("number",)):
    number: int
    stars: Decimal | None = None


class Follows(Edge[Person, Person], key=("kind",)):
    """Several may lead from one person to another."""

    kind: str
    since: int = 0


class Friend(Edge[Person, Person], symmetric=True):
    pass


class Part(Node):
    id: str
    cost: Decimal | None = Decimal(0)
    paths: Annotated[int, Count("Uses", recursive=True)] = 0
    parts: Annotated[int, Count("Uses", recursive=True, distinct=True), Indexed()] = 0
    price: Annotated[Decimal, Sum("Uses", field="cost", recursive=True, distinct=True)] = Decimal(0)
    mean: Annotated[Decimal | None, Avg("Uses", field="cost", recursive=True, distinct=True)] = None
    cheap: Annotated[int, Count("Uses", recursive=True, distinct=True, where=field("cost") < 3)] = 0
    above: Annotated[int, Count("Uses", recursive=True, distinct=True, direction="into")] = 0


class Uses(Edge[Part, Part]):
    note: str = ""


PEOPLE: list[type[Any]] = [Person, Note, Follows, Friend]
PARTS: list[type[Any]] = [Part, Uses]
MODELS = [*PEOPLE, *PARTS]
RECURSIVE = ("parts", "price", "mean", "cheap", "above")


class DistinctLife(Life):
    """What people do to such a graph; now and then a node is recounted meanwhile."""

    ids = {Person: "N", Part: "P"}
    parents = {Note: Person}
    ends = {Follows: (Person, Person), Friend: (Person, Person), Uses: (Part, Part)}

    def fields(self, model: Any) -> dict[str, Any]:
        chance = self.chance
        values: dict[Any, Callable[[], dict[str, Any]]] = {
            Person: lambda: {"age": chance.choice([None, 3, 5, 8])},
            Note: lambda: {"stars": chance.choice([None, Decimal(1), Decimal("2.5")])},
            Follows: lambda: {"kind": chance.choice(["love", "work"]), "since": chance.randrange(3)},
            Part: lambda: {"cost": chance.choice([None, Decimal(chance.randrange(50)) / 10])},
            Uses: lambda: {"note": chance.choice("xy")},
        }
        return values.get(model, dict)()

    def key(self, model: Any) -> dict[str, Any]:
        return {"number": self.chance.randrange(2)}

    def act(self) -> tuple[Plan[Any], str]:
        if self.chance.random() < 0.06:
            return self.recount(), "recount"
        return super().act()

    def recount(self) -> Plan[Any]:
        node = self.node()
        layout = self.graph._layout
        kind = layout.schema.node(type(node))

        def plan() -> Plan[Any]:
            for prepare in (begun_before, begin):
                begun = yield from prepare(layout, kind, [layout.node_text(kind, node.id)])
                yield from finish(layout, kind, begun, Tally())

        return plan()

    def disconnect(self) -> Plan[Any]:
        edge = self.edge()
        key = {"kind": edge.kind} if isinstance(edge, Follows) else {}
        return self.graph._disconnect(type(edge), edge.source, edge.target, key)

    def update_edge(self) -> Plan[Any]:
        return self.put_edge()

    def move(self) -> Plan[Any]:
        return self.disconnect()


class World:
    """Everything that is stored, and every aggregate by its definition."""

    def __init__(self, graph: Graph) -> None:
        layout, items = graph._layout, stored(graph)
        self.items = items
        entities: list[Any] = [
            found for item in items if not layout.is_bookkeeping(item) and (found := layout.read(item))
        ]
        self.people = {each.id: each for each in entities if isinstance(each, Person)}
        self.parts = {each.id: each for each in entities if isinstance(each, Part)}
        self.notes = [each for each in entities if isinstance(each, Note)]
        self.edges = [each for each in entities if isinstance(each, Edge)]
        records = [item for item in items if "reason" in item]
        self.aside = {tuple(item[name]["S"].rpartition(sign)[2] for name, sign in NAMED_IN_RECORDS) for item in records}

    def hop(self, ids: Iterable[str], model: Any, back: bool = False, kind: str | None = None) -> set[str]:
        """The ids that edges lead to from people who are there."""
        there = {id for id in ids if id in self.people}
        found = set()
        for edge in self.edges:
            near, far = (edge.target, edge.source) if back else (edge.source, edge.target)
            if type(edge) is model and near in there and kind in (None, getattr(edge, "kind", None)):
                found.add(far)
        return found

    def ages(self, ids: Iterable[str]) -> list[int]:
        return [age for id in ids if id in self.people and (age := self.people[id].age) is not None]

    def person(self, id: str) -> dict[str, Any]:
        near = self.hop([id], Follows)
        notes = [note for note in self.notes if note.parent in near and note.parent in self.people]
        return {
            "near": len(near),
            "far": len(self.hop(near, Follows)),
            "fans": len(self.hop(self.hop([id], Follows, back=True), Follows, back=True)),
            "loved": len(self.hop(near, Follows, kind="love")),
            "ages": sum(self.ages(self.hop(near, Follows))),
            "mean": mean(self.ages(self.hop(self.hop([id], Friend), Follows))),
            "circle": len(self.hop(self.hop([id], Friend), Friend)),
            "notes": len({node_id(note) for note in notes}),
            "stars": sum((note.stars for note in notes if note.stars is not None), Decimal(0)),
        }

    def uses(self, id: str, name: str) -> list[str]:
        """The other ends of the edges that are applied for a field."""
        is_up = name == "above"
        found = []
        for edge in self.edges:
            near, far = (edge.target, edge.source) if is_up else (edge.source, edge.target)
            is_applied = isinstance(edge, Uses) and near == id and (name, near, far) not in self.aside
            if is_applied and (name != "cheap" or self.is_cheap(far)):
                found.append(far)
        return found

    def is_cheap(self, id: str) -> bool:
        cost = self.parts[id].cost if id in self.parts else None
        return cost is not None and cost < 3

    def below(self, id: str, name: str) -> set[str]:
        found: set[str] = set()
        waiting = [id]
        while waiting:
            at = waiting.pop()
            if at in self.parts:
                new = {*self.uses(at, name)} - found
                found |= new
                waiting += new
        return found

    def costs(self, id: str, name: str) -> list[Decimal]:
        below = (self.parts[each].cost for each in self.below(id, name) if each in self.parts)
        return [cost for cost in below if cost is not None]

    def part(self, id: str) -> dict[str, Any]:
        return {
            "parts": len(self.below(id, "parts")),
            "price": sum(self.costs(id, "price"), Decimal(0)),
            "mean": mean(self.costs(id, "mean")),
            "cheap": len(self.below(id, "cheap")),
            "above": len(self.below(id, "above")),
        }


def mean(values: list[Any]) -> Decimal | None:
    with localcontext() as context:
        context.prec = 38
        return sum(map(Decimal, values), Decimal(0)) / len(values) if values else None


SHOWN = {(rule.node.model, rule.field or ""): rule for rule in Graph(":memory:", MODELS)._layout.rules.shown_sets}
INDEXED: list[tuple[Any, str]] = [(Part, "parts")]


def check_shown(graph: Graph) -> None:
    """At every instant, a node shows what its set says, and the index has what the node shows."""
    layout, items = graph._layout, stored(graph)
    for item in items:
        entity = None if layout.is_bookkeeping(item) else layout.read(item)
        for (model, name), rule in SHOWN.items():
            if type(entity) is model and GENERATION in item and rule.distinct is not None:
                number = shown(item.get(rule.attribute), rule.distinct)
                assert getattr(entity, name) == (None if number is None else decode(number)), (name, entity)
    for model, name in INDEXED:
        nodes: list[Any] = [entity for item in items if type(entity := layout.read(item)) is model]
        wanted = sorted((indexed_text(getattr(node, name)), node.id) for node in nodes)
        # If a node was lost, its index copy is left, and an audit finds it.
        there = {node.id for node in nodes}
        assert sorted((text, node.id) for text, node in entries(graph, model, name) if node.id in there) == wanted


def check(graph: Graph) -> None:
    check_shown(graph)
    world, layout = World(graph), graph._layout
    for nodes, expected in ((world.people, world.person), (world.parts, world.part)):
        for id, node in nodes.items():
            wanted = expected(id)
            assert {name: getattr(node, name) for name in wanted} == wanted, repr(node)
    check_cycles(world)
    keys = [layout.key_of(item) for item in world.items]
    for item in filter(is_ledger, world.items):
        assert edge_of(layout, item) in keys
        assert entries_of(layout, item)
    assert [(ref.group.name, ref.key) for ref in unmarked(layout, world.items)] == []
    assert left_arrivals(layout, world.items) == []


def check_cycles(world: World) -> None:
    """What is set aside would close a cycle, and what is not has none; edges that add nothing may be on a cycle."""
    for name, near, far in world.aside:
        if name in RECURSIVE:
            assert near == far or near in world.below(far, name), (
                f"{near} to {far} is set aside for {name} without reason"
            )
    for id in world.parts:
        for name in RECURSIVE:
            adds = world.costs(id, name) if name in ("price", "mean") else [1]
            assert id not in world.below(id, name) or not adds


def simulate(seed: int, models: list[Any], layout: Any = None, *, audited: bool = False, watched: bool = False) -> None:
    graph = opened(seed, MODELS, layout)
    try:
        simulation = Simulation(graph, seed)
        life = DistinctLife(graph, simulation.chance, models, 2 + seed % 4)
        if watched:
            simulation.watch = lambda: check_shown(graph)
        for _ in range(40):
            simulation.write(*life.act())
        simulation.drain()
        check(graph)
        if audited:
            found = graph.verify(threads=1).findings
            assert [each for each in found if each.kind not in ("dangling", "circle")] == []
    finally:
        graph.close()


@pytest.mark.simulation
@pytest.mark.parametrize("models", [PEOPLE, PARTS], ids=["people", "parts"])
def test_each_node_counts_once_whatever_happens(models: list[Any]) -> None:
    with_seeds(lambda seed: simulate(seed, models), 0, 1, FEW * 2)
    with_seeds(lambda seed: simulate(seed, models, MaterializedGraph(), watched=True), 0, 1, max(FEW // 4, 1))


@pytest.mark.simulation
def test_an_audit_finds_nothing_then() -> None:
    with_seeds(lambda seed: simulate(seed, (PEOPLE, PARTS)[seed % 2], audited=True), 0, 1, max(FEW // 4, 1))


# --- what it means -----------------------------------------------------------------------------


def values(g: Graph, id: str, *names: str) -> tuple[Any, ...]:
    part = g.get(Part, id)
    return tuple(getattr(part, name) for name in names)


@pytest.mark.parametrize("layout", [None, MaterializedGraph()])
def test_it_is_what_walks_and_networkx_say(layout: Any) -> None:
    chance = random.Random(5)
    with Graph(":memory:", MODELS, layout) as g:
        g.put_many([*(Person(id=f"N{n}", age=n) for n in range(14)), *(Part(id=f"P{n}", cost=n) for n in range(14))])
        pairs = {(chance.randrange(14), chance.randrange(14)) for _ in range(30)}
        g.put_many(Follows(source=f"N{s}", target=f"N{t}", kind=kind) for s, t in pairs for kind in ("love", "work"))
        below = {(f"P{s}", f"P{t}") for s, t in (sorted(chance.sample(range(14), 2)) for _ in range(30))}
        g.put_many(Uses(source=s, target=t) for s, t in below)
        g.maintain(once=True)
        starts = 0
        for person in g.scan(Person):
            walk = g.walk(person).out(Follows).out(Follows).distinct()
            assert (person.near, person.far) == (g.walk(person).out(Follows).distinct().count(), walk.count())
            assert person.ages == walk.sum("age")
            starts += Person.ref(person.id) in [*walk.refs()]
        assert starts, "somebody is led back to, and counts"
        graph = networkx.DiGraph(below)
        for part in g.scan(Part):
            ids = networkx.descendants(graph, part.id) if part.id in graph else set()
            assert values(g, part.id, "parts", "price") == (len(ids), sum(int(id[1:]) for id in ids))
            assert part.paths >= part.parts
        assert max(part.paths - part.parts for part in g.scan(Part)) > 0, "some part is shared"


def test_a_shared_part_goes_with_the_last_path_to_it() -> None:
    with Graph(":memory:", PARTS) as g:
        g.put_many(Part(id=id, cost=2) for id in "abcd")
        g.put_many(Uses(source=s, target=t) for s, t in ("ab", "ac", "bd", "cd"))
        for gone, wanted in (("", (3, 6)), ("bd", (3, 6)), ("cd", (2, 4)), ("ac", (1, 2))):
            if gone:
                g.disconnect(Uses, *gone)
            g.maintain(once=True)
            assert values(g, "a", "parts", "price", "mean") == (*wanted, 2)
        g.disconnect(Uses, "a", "b")
        g.maintain(once=True)
        assert values(g, "a", "parts", "price", "mean") == (0, 0, None)


def test_a_set_that_gets_other_nodes_is_read_again() -> None:
    with Graph(":memory:", PARTS) as g:
        g.put_many(Part(id=id, cost=cost) for cost, id in enumerate("abcd"))
        g.put_many(Uses(source=s, target=t) for s, t in ("ab", "bc"))
        g.maintain(once=True)
        g.put(Uses(source="b", target="d"))
        g.maintain(once=True)
        assert values(g, "a", "parts", "price") == (3, 6)
        g.disconnect(Uses, "b", "c")
        g.maintain(once=True)
        assert values(g, "a", "parts", "price") == (2, 4)


def test_two_maintainers_of_one_set_lose_nothing() -> None:
    """Both have read the set before either has written it. The second one finds another version, and reads again."""
    with Graph(":memory:", PEOPLE) as g:
        g.put_many(Person(id=id, age=1) for id in "abcd")
        g.put(Follows(source="a", target="b", kind="love"))
        g.maintain(once=True)
        stream = Stream(g, random.Random(1))
        while len(stream):
            stream.take(50)
        maintainers = []
        for target in "cd":
            g.put(Follows(source="a", target=target, kind="love"))
            found: list[Any] = []
            while len(stream):
                found += stream.take(50)
            maintainers.append(Process(g, apply_changes(g._layout, found, Tally()), target))
        for maintainer in maintainers:
            while not maintainer.is_about(TransactWrite):
                maintainer.step(random.Random(0))
        for maintainer in maintainers:
            maintainer.finish()
        person = g.get(Person, "a")
        assert person is not None
        assert person.near == 3


def test_ids_with_spaces_are_different_nodes() -> None:
    with Graph(":memory:", PARTS) as g:
        ids = ["a", "a b", "x b", "1 b", "\n", "é 1"]
        g.put_many(Part(id=id, cost=1) for id in ids)
        g.put_many(Uses(source="a", target=id) for id in ids[1:])
        g.maintain(once=True)
        assert values(g, "a", "parts", "price") == (5, 5)


def test_tenants_have_sets_of_their_own() -> None:
    with Graph(":memory:", PARTS, tenant="one") as one:
        other = one.for_tenant("other")
        for graph, targets in ((one, "bc"), (other, "b")):
            graph.put_many(Part(id=id, cost=1) for id in "abc")
            graph.put_many(Uses(source="a", target=target) for target in targets)
            graph.maintain(once=True)
        assert [getattr(graph.get(Part, "a"), "parts", None) for graph in (one, other)] == [2, 1]


# --- limits ------------------------------------------------------------------------------------


def test_a_set_without_room_is_set_aside_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with Graph(":memory:", PARTS) as g:
        g.put_many(Part(id=f"P{n}", cost=1) for n in range(40))
        monkeypatch.setattr("adjoin.plans.counting.node_transaction.ALL_SETS", 1200)
        g.put_many(Uses(source="P0", target=f"P{n}") for n in range(1, 40))
        report = g.maintain(once=True)
        part = g.get(Part, "P0")
        assert part is not None
        assert part.paths == 39, "nothing else is held up"
        aside = [each for each in report.set_aside if each.rule == "PART.parts"]
        assert part.parts == 39 - len([item for item in stored(g) if item.get("rule") == {"S": "PART.parts"}]) < 39
        assert g.health().set_aside
        assert re.fullmatch(
            r"PART\.parts cannot be stored with it: it would lead to \d+ different nodes, which take \d+ bytes, and a "
            r"node has room for 120; count them with a walk",
            aside[0].reason,
        )
        monkeypatch.undo()
        g.rebuild(threads=1)
        assert values(g, "P0", "parts", "price") == (39, 39)


def test_a_sum_with_too_many_digits_is_set_aside() -> None:
    with Graph(":memory:", PARTS) as g:
        g.put_many([Part(id="P0"), Part(id="P1", cost=Decimal("1e30")), Part(id="P2", cost=Decimal("1e-30"))])
        g.put_many([Uses(source="P0", target="P1"), Uses(source="P0", target="P2")])
        reasons = {each.rule: each.reason for each in g.maintain(once=True).set_aside}
        assert reasons.keys() == {"PART.price"}
        assert "significant digits" in reasons["PART.price"]
        part = g.get(Part, "P0")
        assert part is not None
        assert part.parts == 2
        assert part.price in (Decimal("1e30"), Decimal("1e-30"))


# --- what others spoil -------------------------------------------------------------------------


def test_an_audit_finds_and_repairs_what_another_program_wrote() -> None:
    with Graph(":memory:", PARTS) as g:
        layout = g._layout
        g.put_many(Part(id=id, cost=1) for id in "abcde")
        g.put_many(Uses(source=s, target=t) for s, t in ("ab", "ac", "bd", "cd", "de"))
        g.maintain(once=True)

        def spoil(id: str, name: str, value: Any) -> None:
            key = layout.node_key(layout.schema.node(Part), id)
            g._store.execute((Update(layout.table, key, (Set(attribute(name), Value(value)),)),))

        spoil("a", "adjoin:PART.parts", reached_set({"PART#b": 1, "PART#c": 1, "PART#d": 2, "PART#x": 1}))
        spoil("b", "adjoin:PART.price", {"S": "nonsense"})
        spoil("c", "parts", {"N": "77"})
        spoil("d", "mean", {"N": "0.1"})
        ends = {"near": {"S": "PART#c"}, "far": {"S": "PART#d"}}
        (ledger,) = (item for item in stored(g) if is_ledger(item) and {name: item[name] for name in ends} == ends)
        (key,) = (rule.key for rule in layout.rules.rules if rule.name == "PART.price")
        ledger["applied"]["M"][key] = packed_texts(["1 PART#d", "7 PART#z"])
        g._store.execute((Put(layout.table, ledger),))
        found = {(each.kind, each.name): each.count for each in g.verify(threads=1).findings}
        assert found == {
            ("aggregate", "PART.parts"): 2,
            ("aggregate", "PART.price"): 1,
            ("aggregate", "PART.mean"): 1,
            ("ledger", "USES.out.far"): 1,
            ("index entry", "PART"): 1,
        }
        assert all(each.repaired == each.count for each in g.verify(threads=1, repair=True).findings)
        assert {id: values(g, id, "parts", "price", "mean", "cheap") for id in "abcde"} == {
            "a": (4, 4, 1, 4), "b": (2, 2, 1, 2), "c": (2, 2, 1, 2), "d": (1, 1, 1, 1), "e": (0, 0, None, 0)
        }  # fmt: skip
        assert g.verify(threads=1).findings == ()


# --- another declaration -----------------------------------------------------------------------


def test_a_count_that_becomes_distinct_is_counted_by_a_rebuild() -> None:
    class Box(Node):
        id: str
        inside: Annotated[int, Count("Holds", "Holds")] = 0

    class Holds(Edge[Box, Box]):
        pass

    models: list[Any] = [Box, Holds]
    with Graph(":memory:", models) as old:
        old.put_many(Box(id=id) for id in "abcd")
        old.put_many(Holds(source=s, target=t) for s, t in ("ab", "ac", "bd", "cd"))
        old.maintain(once=True)
        assert old.get(Box, "a").inside == 2  # type: ignore[union-attr]
        before = Box

        class Box(Node):  # type: ignore[no-redef]
            id: str
            inside: Annotated[int, Count("Holds", "Holds", distinct=True)] = 0

        class Holds(Edge[Box, Box]):  # type: ignore[no-redef]
            pass

        new = Graph(old._store, [Box, Holds])
        new.put(Holds(source="b", target="c"))
        new.maintain(once=True)
        assert new.health().uncounted == ("BOX.inside",)
        assert new.get(Box, "a").inside == 0  # type: ignore[union-attr]
        assert old.get(before, "a").inside == 2, "the old program reads its own value"  # type: ignore[union-attr]
        new.rebuild(threads=1)
        assert new.get(Box, "a").inside == 2  # type: ignore[union-attr]
        assert new.health().uncounted == ()
        old.rebuild(threads=1)
        back = Graph(old._store, models)
        assert back.get(before, "a").inside == 3  # type: ignore[union-attr]
        assert not [item for item in stored(back) if is_reached_set(item.get("adjoin:BOX.inside"))]


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Max, {"field": "cost"}, "only Count, Sum and Avg can have distinct=True; take it out of Max"),
        (Top, {"field": "cost"}, "only Count, Sum and Avg can have distinct=True; take it out of Top"),
        (Latest, {}, "only Count, Sum and Avg can have distinct=True; take it out of Latest"),
        (Count, {"quantity": "number"}, "Count has quantity= and distinct=True, but a node that counts once"),
        (Count, {"consistency": "transaction"}, "distinct=True, which depends on several edges"),
        (Count, {"distinct": 1}, "distinct of Count must be True or False, got 1"),
    ],
)
def test_what_cannot_be_distinct_is_refused(kind: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidModel, match=re.escape(message)):
        kind("Uses", **{"distinct": True, **options})


def test_fields_that_do_not_belong_to_nodes_are_refused() -> None:
    class Thing(Node):
        id: str
        weight: Annotated[int, Sum("Has", field="weight", distinct=True)] = 0

    class Has(Edge[Thing, Thing]):
        weight: int

    with pytest.raises(InvalidModel, match="but 'weight' is a field of Has, and several of them may lead to one Thing"):
        Graph(":memory:", [Thing, Has])


@pytest.mark.parametrize("options", [{"field": "inside"}, {"field": "size", "where": field("inside") > 1}])
def test_a_number_of_different_nodes_is_read_by_no_other_aggregate(options: dict[str, Any]) -> None:
    class Crate(Node):
        id: str
        size: int = 0
        inside: Annotated[int, Count("Keeps", distinct=True)] = 0
        most: Annotated[int | None, Max("Keeps", **options)] = None

    class Keeps(Edge[Crate, Crate]):
        pass

    with pytest.raises(InvalidModel, match=r"reads Crate\.inside, which has distinct=True: two Crate may lead to the"):
        Graph(":memory:", [Crate, Keeps])


def test_explain_says_that_a_set_is_written_with_the_node() -> None:
    with Graph(":memory:", PARTS) as g:
        (counting,) = g.explain(g.put, Uses(source="a", target="b")).countings
        assert (counting.sets, counting.nodes) == (5, 2)
        assert counting.wcu(node_size=10_000) - counting.wcu() == 2 * (20 - 2)
        assert "2 WCU more per KB of the set of different nodes" in str(counting)
