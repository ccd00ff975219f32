"""Ranks beside their ledgers: put before what names them, deleted after it, and believed only if they are named."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import Graph, InvalidRequest, MaterializedGraph
from adjoin.aggregates import Latest, Max, Min, Sum, Top
from adjoin.expressions import Add, Remove, attribute
from adjoin.model import Edge, Node
from adjoin.plans.counting.ledger import PARTS, TOKEN, EdgeRef
from adjoin.plans.counting.node_transaction import STALE, TURN
from adjoin.plans.counting.rank_items import BASE, HOME, PARTITION
from adjoin.plans.maintenance.ranks import refresh
from adjoin.plans.maintenance.reconciling import reconcile
from adjoin.plans.maintenance.recounting import begin, finish
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import BatchWrite, Delete, Plan, Put, Query, TransactWrite, Update
from adjoin.runner import run
from adjoin.values import Item
from tests.maintenance.ledgers import entries_of, is_ledger, is_rank
from tests.maintenance.simulation import Process, Simulation, opened, stored, with_seeds
from tests.maintenance.test_recount import Repairs
from tests.maintenance.test_simulation import check_ranks, unnamed_ranks
from tests.shares import FEW, stride


class Team(Node):
    id: str
    best: Annotated[int | None, Max("Plays", field="points")] = None
    least: Annotated[int | None, Min("Plays", field="points")] = None
    top: Annotated[list[int], Top("Plays", field="points", k=2)] = []
    last: Annotated[int | None, Latest("Plays", field="points", by="day")] = None
    eldest: Annotated[int | None, Max("Plays", field="age")] = None
    oldest: Annotated[list[int], Top("Plays", field="age", k=2)] = []


class Player(Node):
    id: str
    age: int = 0
    record: Annotated[int | None, Max("Plays", field="points", direction="into")] = None


class Plays(Edge[Team, Player]):
    points: int | None = None
    day: int = 0


MODELS: list[type[Any]] = [Team, Player, Plays]


# --- many at once ------------------------------------------------------------------------------


class Season:
    """Few nodes and few edges whose values change all the time, and often change back."""

    def __init__(self, graph: Graph, chance: random.Random) -> None:
        self.graph, self.chance = graph, chance

    def id(self, kind: str) -> str:
        return f"{kind}{self.chance.randrange(2)}"

    def act(self) -> tuple[Plan[Any], str]:
        chance, graph = self.chance, self.graph
        team, player = self.id("T"), self.id("P")
        values = {"points": chance.choice([None, 1, 2, 3]), "day": chance.randrange(2)}
        ways: list[tuple[int, Any]] = [
            (8, lambda: graph._put(Plays(source=team, target=player, **values), None)),
            (5, lambda: graph._disconnect(Plays, team, player, {})),
            (2, lambda: graph._put(Player(id=player, age=chance.randrange(3)), None)),
            (1, lambda: graph._put(Team(id=team), None)),
            (1, lambda: self._lose(Team, team)),
            (1, lambda: graph._delete(Player, player)),
        ]
        return chance.choices([way for _, way in ways], [weight for weight, _ in ways])[0](), "writer"

    def _lose(self, model: type[Any], id: str) -> Plan[Any]:
        layout = self.graph._layout
        yield (Delete(layout.table, layout.node_key(layout.schema.node(model), id)),)


def expected(graph: Graph) -> dict[tuple[str, str], dict[str, Any]]:
    """What nodes should show, from looking at everything."""
    layout = graph._layout
    entities = [each for item in stored(graph) if not layout.is_bookkeeping(item) and (each := layout.read(item))]
    edges = [each for each in entities if isinstance(each, Plays)]
    ages = {each.id: each.age for each in entities if isinstance(each, Player)}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for node in entities:
        if isinstance(node, Team):
            mine = [edge for edge in edges if edge.source == node.id]
            points = sorted((edge.points for edge in mine if edge.points is not None), reverse=True)
            old = sorted((ages[edge.target] for edge in mine if edge.target in ages), reverse=True)
            days = [(edge.day, edge.points) for edge in mine if edge.points is not None]
            found["Team", node.id] = {
                "best": max(points, default=None),
                "least": min(points, default=None),
                "top": points[:2],
                "last": max(days, default=(0, None))[1],
                "eldest": max(old, default=None),
                "oldest": old[:2],
            }
        elif isinstance(node, Player):
            arriving = [edge.points for edge in edges if edge.target == node.id and edge.points is not None]
            found["Player", node.id] = {"record": max(arriving, default=None)}
    return found


def assert_right(graph: Graph) -> None:
    for (kind, id), values in expected(graph).items():
        node: Any = graph.get({"Team": Team, "Player": Player}[kind], id)
        assert {name: getattr(node, name) for name in values} == values, (kind, id)


def simulate(seed: int, layout: Any = None, *, crashes: float = 0.05, repairs: float = 0.0) -> None:
    """Everybody may be stopped anywhere; whatever a ledger names is there at every instant."""
    graph = opened(seed, MODELS, layout)
    try:
        graph.put_many([*(Team(id=f"T{n}") for n in range(2)), *(Player(id=f"P{n}", age=n) for n in range(2))])
        simulation = Simulation(graph, seed, crashes=crashes)
        season, recounts = Season(graph, simulation.chance), Repairs(simulation, everything=True)
        simulation.watch = lambda: check_ranks(graph._layout, stored(graph))
        for _ in range(35):
            simulation.write(*season.act())
            if simulation.chance.random() < repairs:
                recounts.start()
            if simulation.chance.random() < repairs:
                recounts.crash()
        simulation.drain()
        assert_right(graph)
        if not crashes:
            assert unnamed_ranks(graph) == []
    finally:
        graph.close()


@pytest.mark.simulation
@pytest.mark.parametrize("part", range(3))
def test_what_is_named_is_there_at_every_instant(part: int) -> None:
    with_seeds(simulate, part, 3, 5 * FEW)


@pytest.mark.simulation
def test_also_where_nodes_are_counted_anew() -> None:
    with_seeds(lambda seed: simulate(seed, repairs=0.1), 0, 1, 2 * FEW)


@pytest.mark.simulation
def test_nothing_is_left_over_without_crashes() -> None:
    with_seeds(lambda seed: simulate(seed, crashes=0.0), 0, 1, 2 * FEW)


@pytest.mark.simulation
def test_in_another_layout() -> None:
    with_seeds(lambda seed: simulate(seed, MaterializedGraph()), 0, 1, FEW)


# --- one after the other, by hand --------------------------------------------------------------


@pytest.fixture
def g() -> Iterator[Graph]:
    with Graph(":memory:", MODELS) as graph:
        graph.put_many([Team(id="T"), *(Player(id=f"P{number}", age=number) for number in range(4))])
        graph.put(Plays(source="T", target="P3", points=2))
        graph.maintain(once=True)
        yield graph


TEAM = "TEAM#T"


def play(g: Graph, player: str, group: str = "PLAYS.out") -> EdgeRef:
    layout = g._layout
    found = next(each for each in layout.rules.groups if each.name == group)
    return EdgeRef(found, layout.edge_key(layout.schema.edge(Plays), "T", player, {}), TEAM, f"PLAYER#{player}")


def reconciled(g: Graph, *refs: EdgeRef) -> None:
    run(reconcile(g._layout, refs, Tally()), g._store)


def settling(g: Graph, *refs: EdgeRef) -> Process:
    """Somebody who has put the ranks of edges, and is about to name them."""
    process = Process(g, reconcile(g._layout, refs, Tally()), "maintainer")
    step_to(process, TransactWrite)
    return process


def step_to(process: Process, kind: type[Any]) -> None:
    while not process.is_about(kind):
        process.step(random.Random(0))


def make_stale(g: Graph, *rules: str) -> None:
    layout = g._layout
    key = layout.node_key(layout.schema.node(Team), "T")
    actions = (Add(attribute(STALE), {"SS": list(rules)}), Add(attribute(TURN), {"N": "1"}))
    g._store.execute((Update(layout.table, key, actions, layout.present),))


def refreshing(g: Graph) -> Plan[None]:
    return refresh(g._layout, {TEAM: g._layout.schema.node(Team)}, Tally())


def ranks(g: Graph) -> list[Item]:
    return [item for item in stored(g) if is_rank(g._layout, item)]


def finished(g: Graph, *processes: Process) -> None:
    """Everything that ledgers name is there after each of them; and everything is true in the end."""
    for process in processes:
        process.finish()
        check_ranks(g._layout, stored(g))
    g.maintain(once=True)
    check_ranks(g._layout, stored(g))
    assert_right(g)


def test_who_meets_a_rank_that_may_be_named_yet_leaves_it(g: Graph) -> None:
    g.put(Plays(source="T", target="P0", points=5))
    g.maintain(once=True)
    g.put(Plays(source="T", target="P0", points=6))
    late = settling(g, play(g, "P0"))
    count = len(ranks(g))
    make_stale(g, "TEAM.best", "TEAM.least")
    run(refreshing(g), g._store)
    team = g.get(Team, "T")
    assert team is not None
    assert (team.best, team.least) == (5, 2)
    assert len(ranks(g)) == count
    finished(g, late)


def test_who_meets_a_rank_that_nobody_can_name_deletes_it(g: Graph) -> None:
    g.put(Plays(source="T", target="P0", points=5))
    stopped = settling(g, play(g, "P0"))
    stopped.plan.close()
    left = len(unnamed_ranks(g))
    assert left == 4
    # As long as nothing else happens, it may be named yet for all that anybody knows.
    make_stale(g, "TEAM.best")
    run(refreshing(g), g._store)
    assert len(unnamed_ranks(g)) == left
    g.put(Plays(source="T", target="P0", points=4))
    g.maintain(once=True)
    make_stale(g, "TEAM.best", "TEAM.least", "TEAM.top", "TEAM.last")
    run(refreshing(g), g._store)
    # The least value is found before this one is met.
    assert len(unnamed_ranks(g)) == 1
    finished(g)


@pytest.mark.simulation
@pytest.mark.parametrize("mend", ["verify", "rebuild"][:: stride(2)])
def test_what_a_crash_left_is_no_fault_and_goes_with_a_repair(g: Graph, mend: str) -> None:
    g.put_many([Plays(source="T", target="P0", points=-5), Plays(source="T", target="P1", points=1)])
    settling(g, play(g, "P0")).plan.close()
    g.put(Plays(source="T", target="P0", points=0))
    reconciled(g, play(g, "P0"))
    late = settling(g, play(g, "P1"))
    pending = [rank for rank in unnamed_ranks(g) if rank["value"] == {"N": "1"}]
    assert len(pending) == 4
    assert len(unnamed_ranks(g)) == 8
    if mend == "verify":
        assert not [each for each in g.verify(threads=1).findings if each.kind == "rank"]
        g.verify(repair=["rank"], threads=1)
        # What somebody may be about to name is left.
        assert unnamed_ranks(g) == pending
        finished(g, late)
    else:
        g.rebuild(threads=1)
        assert unnamed_ranks(g) == []
        finished(g, late)
    assert unnamed_ranks(g) == []
    assert g.verify(threads=1).findings == ()


def test_one_that_was_put_after_the_node_was_read_is_not_taken_for_dead(g: Graph) -> None:
    g.put(Plays(source="T", target="P0", points=1))
    g.maintain(once=True)
    make_stale(g, "TEAM.best")
    reader = Process(g, refreshing(g), "reader")
    step_to(reader, Query)
    g.disconnect(Plays, "T", "P0")
    reconciled(g, play(g, "P0"))
    g.put(Plays(source="T", target="P1", points=5))
    late = settling(g, play(g, "P1"))
    assert {rank[BASE]["N"] for rank in unnamed_ranks(g)} == {"1"}
    reader.finish()
    finished(g, late)


def test_an_edge_that_went_and_came_back_is_not_counted_by_who_saw_it_before(g: Graph) -> None:
    """The rank that he put was deleted meanwhile, by somebody who saw a ledger that does not name it."""
    far = play(g, "P0", "PLAYS.out.far")
    make_stale(g, "TEAM.eldest", "TEAM.oldest")
    g.put_many([Player(id="P0", age=9), Plays(source="T", target="P0", points=1)])
    late = settling(g, far)
    mine = {rank["SK"]["S"] for rank in unnamed_ranks(g)}
    assert len(mine) == 2
    g.put(Player(id="P0", age=8))
    reconciled(g, far)
    assert not mine & {rank["SK"]["S"] for rank in ranks(g)}
    g.disconnect(Plays, "T", "P0")
    reconciled(g, far)
    g.put_many([Player(id="P0", age=9), Plays(source="T", target="P0", points=1)])
    finished(g, late)


def test_a_rank_that_was_never_put_is_not_named_by_the_next_attempt(g: Graph) -> None:
    g.put(Plays(source="T", target="P0", points=1))
    g.maintain(once=True)
    g.put(Plays(source="T", target="P0", points=5))
    process = Process(g, reconcile(g._layout, [play(g, "P0")], Tally()), "maintainer")
    step_to(process, BatchWrite)
    # Refused before anything was put; then a transaction fails, because the node begins to prepare another generation.
    process._go_on(lambda: process.plan.throw(InvalidRequest("no")))
    step_to(process, TransactWrite)
    begun = run(begin(g._layout, g._layout.schema.node(Team), [TEAM]), g._store)
    process.step(random.Random(0))
    assert not process.is_done
    process.finish()
    check_ranks(g._layout, stored(g))
    run(finish(g._layout, g._layout.schema.node(Team), begun, Tally()), g._store)
    finished(g)
    assert unnamed_ranks(g) == []


class Depot(Node):
    id: str
    weight: Annotated[Decimal, Sum("Holds", field="weight")] = Decimal(0)
    lightest: Annotated[Decimal | None, Min("Holds", field="weight")] = None


class Thing(Node):
    id: str


class Holds(Edge[Depot, Thing]):
    weight: Decimal


def test_ranks_of_an_attempt_that_failed_are_not_used_for_another_state_of_the_node() -> None:
    """One edge cannot be added up, so that each is tried alone; the first of them leaves, which the node counts."""
    with Graph(":memory:", [Depot, Thing, Holds]) as g:
        g.put_many([Depot(id="D"), Thing(id="A"), Thing(id="B"), Thing(id="C")])
        g.put_many(
            [Holds(source="D", target="A", weight=Decimal("1e37")), Holds(source="D", target="C", weight=Decimal(2))]
        )
        g.maintain(once=True)
        layout = g._layout
        (group,) = layout.rules.groups

        def holds(thing: str) -> EdgeRef:
            key = layout.edge_key(layout.schema.edge(Holds), "D", thing, {})
            return EdgeRef(group, key, "DEPOT#D", f"THING#{thing}")

        g.disconnect(Holds, "D", "C")
        g.put_many(
            [Holds(source="D", target="B", weight=Decimal(3)), Holds(source="D", target="P", weight=Decimal("1e-9"))]
        )
        process = Process(g, reconcile(layout, [holds(thing) for thing in "CBP"], Tally()), "maintainer")
        reader = layout.schema.node(Depot)
        key = layout.node_key(reader, "D")
        while not process.is_done:
            if process.is_about(TransactWrite):
                actions = (Add(attribute(STALE), {"SS": ["DEPOT.lightest"]}), Add(attribute(TURN), {"N": "1"}))
                g._store.execute((Update(layout.table, key, actions, layout.present),))
                run(refresh(layout, {"DEPOT#D": reader}, Tally()), g._store)
            process.step(random.Random(0))
            check_ranks(layout, stored(g))
        assert process.error is None
        assert unnamed_ranks(g) == []
        found = g.get(Depot, "D")
        assert found is not None
        assert found.lightest == Decimal("1e-9")


# --- tables of earlier versions ----------------------------------------------------------------


def without_tokens(g: Graph) -> None:
    """Makes ledgers and ranks what earlier versions wrote."""
    layout, items = g._layout, stored(g)
    for item in filter(is_ledger, items):
        for ref, ledger in entries_of(layout, item):
            for name, value in ledger.applied.items():
                for number, state in enumerate(value.get("L", ())):
                    rule = ref.group.keys[name]
                    about = ref.near, ledger.generation, rule, state["M"]["rank"]["S"], ref.key, number
                    g._store.execute((Put(layout.table, layout.ledgers.untold_rank_key(*about) | state["M"]),))
        g._store.execute((Put(layout.table, bare(item)),))
    for item in items:
        if is_rank(layout, item):
            g._store.execute((Delete(layout.table, layout.key_of(item)),))


def bare(ledger: Item) -> Item:
    parts = {part: {"M": {**ledger[part]["M"]}} for part in (*PARTS, "applied") if part in ledger}
    for part in parts.values():
        for name, value in part["M"].items():
            if "L" in value:
                states = [{key: held for key, held in state["M"].items() if key != TOKEN} for state in value["L"]]
                part["M"][name] = {"L": [{"M": state} for state in states]}
    return ledger | parts


def test_ranks_of_earlier_versions_count_and_go_with_their_ledgers(g: Graph) -> None:
    g.put_many(Plays(source="T", target=f"P{number}", points=number, day=number) for number in range(3))
    g.maintain(once=True)
    without_tokens(g)
    assert not [rank for rank in ranks(g) if HOME in rank]
    before = len(ranks(g))
    assert g.verify(threads=1).findings == ()
    g.disconnect(Plays, "T", "P2")
    g.update(Plays, "T", "P1", points=7)
    finished(g)
    told = [rank for rank in ranks(g) if HOME in rank]
    assert len(told) == 5
    # Four values at the team and one at the player, and two of its age.
    assert len(ranks(g)) == before - 7
    assert g.verify(threads=1).findings == ()
    g.update(Plays, "T", "P1", points=0)
    finished(g)


def test_one_of_an_earlier_version_is_deleted_with_its_ledger_or_not_at_all(g: Graph) -> None:
    """It counts by itself, so there is no instant at which it is there and its value is not."""
    g.put(Plays(source="T", target="P0", points=9))
    g.maintain(once=True)
    without_tokens(g)
    g.update(Plays, "T", "P0", points=1)
    process = Process(g, reconcile(g._layout, [play(g, "P0")], Tally()), "maintainer")
    while not process.is_done:
        process.step(random.Random(0))
        check_ranks(g._layout, stored(g))
        old = [rank for rank in ranks(g) if HOME not in rank and rank["value"] == {"N": "9"} and is_at(rank, TEAM)]
        (ledger,) = [
            ledger
            for item in stored(g)
            if is_ledger(item)
            for ref, ledger in entries_of(g._layout, item)
            if ref.place == play(g, "P0").place
        ]
        has_old = any(state["M"]["value"] == {"N": "9"} for state in ledger.applied["TEAM.best"]["L"])
        assert len(old) == (4 if has_old else 0)
    finished(g)


def is_at(rank: Item, text: str) -> bool:
    return bool(rank["PK"]["S"] == f"{text}#=")


def test_a_recount_of_an_earlier_table_has_tokens_everywhere(g: Graph) -> None:
    without_tokens(g)
    layout = g._layout
    key = layout.node_key(layout.schema.node(Team), "T")
    g._store.execute((Update(layout.table, key, (Add(attribute("best"), {"N": "1"}),)),))
    assert g.verify(repair=True, threads=1).left == 0
    mine = [rank for rank in ranks(g) if is_at(rank, TEAM)]
    assert mine
    assert all(HOME in rank for rank in mine)
    finished(g)


# --- where they are ----------------------------------------------------------------------------


def test_a_rank_says_where_its_ledger_is(g: Graph) -> None:
    layout = g._layout
    keys = [layout.key_of(item) for item in stored(g) if is_ledger(item)]
    for rank in ranks(g):
        partition = rank.get(PARTITION, rank["PK"])
        assert {"PK": partition, "SK": rank[HOME]} in keys
        assert (PARTITION in rank) == (partition != rank["PK"])


def test_ids_that_are_as_long_as_keys_may_be() -> None:
    with Graph(":memory:", MODELS) as g:
        ids = ["x" * 900 + str(number) for number in range(3)]
        g.put_many([Team(id="T"), *(Player(id=id, age=1) for id in ids)])
        g.put_many(Plays(source="T", target=id, points=number) for number, id in enumerate(ids))
        g.maintain(once=True)
        g.disconnect(Plays, "T", ids[2])
        finished(g)
        assert unnamed_ranks(g) == []
        assert g.verify(threads=1).findings == ()


class Country(Node):
    id: str
    largest: Annotated[list[int], Top("Has", "Lists", field="size", k=60)] = []


class Region(Node):
    id: str


class City(Node):
    id: str


class Has(Edge[Country, Region]):
    pass


class Lists(Edge[Region, City]):
    size: int


def test_an_edge_with_many_values_is_counted_in_two_lives() -> None:
    with Graph(":memory:", [Country, Region, City, Has, Lists]) as g:
        g.put_many([Country(id="C"), Region(id="R"), Has(source="C", target="R")])
        g.put_many(City(id=f"T{number}") for number in range(70))
        g.put_many(Lists(source="R", target=f"T{number}", size=number) for number in range(70))
        g.maintain(once=True)
        layout = g._layout
        key = layout.node_key(layout.schema.node(Country), "C")
        g._store.execute((Update(layout.table, key, (Remove(attribute("largest")),)),))
        assert g.verify(repair=True, threads=1).left == 0
        found = g.get(Country, "C")
        assert found is not None
        assert found.largest == [*range(69, 9, -1)]
        g.disconnect(Lists, "R", "T69")
        g.maintain(once=True)
        found = g.get(Country, "C")
        assert found is not None
        assert found.largest == [*range(68, 8, -1)]
        assert unnamed_ranks(g) == []
