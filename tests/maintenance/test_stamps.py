"""Stamps: what other programs do to edges that say themselves what was counted for them.

Other programs remove edges, as expiry does, and write them as whole items: as they read them at any time before, under
another key, or without anything of adjoin's. The stream brings changes late, twice, and again at any later time.
After every single request, each node has exactly what its ledgers and stamps say.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest

from adjoin import Edge, Expires, Graph, Indexed, InvalidItem, Node, field
from adjoin.aggregates import Count, Max, Sum
from adjoin.entity_types import EdgeType, NodeType
from adjoin.expressions import Remove, Set, Value, attribute
from adjoin.layouts.interface import GENERATION, STAMP
from adjoin.plans.counting.stamps import Stamp, stamp_of
from adjoin.plans.maintenance.neighbours import reconcile_near
from adjoin.plans.maintenance.recounting import begin, begun_before, finish
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.steps.batches import Place, place_of
from adjoin.requests import Delete, ItemChange, Plan, Put, ReadChanges, Request, Update
from adjoin.runner import run
from adjoin.values import Item
from tests.maintenance.ledgers import entries_of, is_ledger
from tests.maintenance.simulation import Simulation, Stream, stored
from tests.shares import FEW, FIRST, stride


class Shelf(Node):
    id: str
    title: str = ""
    books: Annotated[int, Count("Holds", consistency="transaction")] = 0
    pages: Annotated[int, Sum("Holds", field="pages", consistency="transaction")] = 0
    old: Annotated[int, Count("Holds", where=field("old") == True, consistency="transaction")] = 0  # noqa: E712


class Book(Node):
    id: str
    title: str = ""


class Holds(Edge[Shelf, Book]):
    pages: int = 0
    old: bool = False


class Friend(Node):
    id: str
    title: Annotated[str, Indexed()] = ""
    friends: Annotated[int, Count("Likes", consistency="transaction")] = 0
    pages: Annotated[int, Sum("Likes", field="pages", consistency="transaction")] = 0


class Likes(Edge[Friend, Friend], symmetric=True):
    pages: Annotated[int, Indexed()] = 0
    old: Annotated[bool, Indexed()] = False


SHELVES: tuple[list[Any], Any] = ([Shelf, Book], Holds)
FRIENDS: tuple[list[Any], Any] = ([Friend], Likes)


class Replays(Stream):
    """A stream that brings any change again, at any later time."""

    def __init__(self, graph: Graph, chance: random.Random) -> None:
        super().__init__(graph, chance)
        self._all: list[ItemChange] = []

    def take(self, most: int) -> list[ItemChange]:
        taken = super().take(most)
        self._all += taken
        if taken and self._chance.random() < 0.3:
            taken.insert(self._chance.randrange(len(taken) + 1), self._chance.choice(self._all))
        return taken


class History:
    """Everything that was ever stored, as a program may have read it."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._position = graph, None
        self.edges: list[Item] = []
        self.stamps: dict[tuple[Place, str], tuple[Item, Stamp]] = {}

    def look(self) -> None:
        layout = self._graph._layout
        while True:
            response: Any
            (response,) = self._graph._store.execute((ReadChanges(layout.table, self._position),))
            self._position = response.next
            if not response.changes:
                return
            for change in response.changes:
                if layout.is_bookkeeping(change.key) or change.new is None:
                    continue
                for group in layout.rules.groups:
                    if group.edge is layout.kind_of(change.new):
                        self.edges.append(change.new)
                        stamp = stamp_of(group, change.key, change.new.get(STAMP))
                        if stamp is not None:
                            # What was first put with a token is what was counted; other programs may write nonsense.
                            self.stamps.setdefault((place_of(change.key), stamp.name), (change.key, stamp))

    def check(self) -> None:
        """Each node has what its ledgers and stamps say, at this very instant."""
        self.look()
        layout, items = self._graph._layout, stored(self._graph)
        told: dict[tuple[str, str, str], Decimal] = {}
        spent: set[tuple[Place, str]] = set()

        def add(near: str, generation: str, applied: Any) -> None:
            for name, value in applied.items():
                told[near, generation, name] = told.get((near, generation, name), Decimal(0)) + Decimal(value["N"])

        nodes = {}
        for item in items:
            kind = None if layout.is_bookkeeping(item) else layout.kind_of(item)
            if isinstance(kind, NodeType):
                nodes[layout.text_of(kind, item)] = kind, item
        for item in filter(is_ledger, items):
            for ref, ledger in entries_of(layout, item):
                spent |= {(place_of(ref.key), name) for name in ledger.spent}
                near = nodes.get(ref.near)
                generations = (
                    [] if near is None else [near[1].get(name, {}).get("S") for name in (GENERATION, "adjoin:next")]
                )
                if ledger.generation in generations:
                    add(ref.near, generations[0], ledger.applied)
        for (place, name), (key, stamp) in self.stamps.items():
            if (place, name) not in spent:
                edge = layout.kind_of(key)
                assert isinstance(edge, EdgeType)
                add(layout.source_text(edge, key), stamp.generation, stamp.applied)
        for text, (kind, item) in nodes.items():
            for rule in layout.rules.rules:
                if rule.node is kind and GENERATION in item:
                    has = Decimal(item.get(rule.attribute, {"N": "0"})["N"])
                    assert has == told.get((text, item[GENERATION]["S"], rule.name), 0), (text, rule.name)


class Programs:
    """What adjoin's programs do, and what others do to the same items."""

    def __init__(self, graph: Graph, chance: random.Random, world: tuple[list[Any], Any], history: History) -> None:
        self.g, self.chance, self.history = graph, chance, history
        self.nodes, self.edge_model = world
        self.ids = "abc"[: 1 + chance.randrange(3)]

    def node(self) -> Any:
        return self.chance.choice(self.nodes)(id=self.chance.choice(self.ids), title=self.chance.choice("xy"))

    def edge(self) -> Any:
        source, target = self.chance.choice(self.ids), self.chance.choice(self.ids)
        return self.edge_model(
            source=source, target=target, pages=self.chance.randrange(4), old=self.chance.random() < 0.5
        )

    def act(self) -> tuple[Plan[Any], str]:
        ways: dict[Callable[[], Plan[Any]], int] = {
            self.put: 8,
            self.connect: 3,
            self.disconnect: 5,
            self.change: 4,
            self.put_node: 3,
            self.delete_node: 1,
            self.move: 2,
            self.recount: 1,
            self.lose_edge: 6,
            self.put_back: 6,
            self.copy_edge: 2,
            self.strip: 2,
            self.spoil: 3,
            self.lose_node: 1,
        }
        way = self.chance.choices([*ways], [*ways.values()])[0]
        return way(), way.__name__

    def put(self) -> Plan[Any]:
        return self.g._put(self.edge(), None)

    def connect(self) -> Plan[Any]:
        edge = self.edge()
        return self.g._connect(type(edge), edge.source, edge.target, {"pages": edge.pages, "old": edge.old})

    def disconnect(self) -> Plan[Any]:
        edge = self.edge()
        return self.g._disconnect(type(edge), edge.source, edge.target, {})

    def change(self) -> Plan[Any]:
        edge = self.edge()
        return self.g._update(type(edge), (edge.source, edge.target), None, None, {"pages": edge.pages})

    def put_node(self) -> Plan[Any]:
        return self.g._put(self.node(), None)

    def delete_node(self) -> Plan[Any]:
        node = self.node()
        return self.g._delete(type(node), node.id)

    def move(self) -> Plan[Any]:
        transaction, edge, other = self.g.transaction().__enter__(), self.edge(), self.edge()
        transaction.put(edge)
        if {other.source, other.target} != {edge.source, edge.target}:
            transaction.disconnect(type(other), other.source, other.target)
        return transaction._commit()

    def recount(self) -> Plan[Any]:
        layout = self.g._layout
        kind = layout.schema.node(self.nodes[0])
        text = layout.node_text(kind, self.chance.choice(self.ids))

        def plan() -> Plan[Any]:
            for prepare in (begun_before, begin):
                begun = yield from prepare(layout, kind, [text])
                yield from finish(layout, kind, begun, Tally())

        return plan()

    # --- other programs ------------------------------------------------------------------------

    def _request(self, request: Request) -> Plan[Any]:
        def plan() -> Plan[Any]:
            yield (request,)

        return plan()

    def _key(self) -> Item:
        layout, edge = self.g._layout, self.edge()
        return layout.key_of(self.chance.choice(layout.items(edge)))

    def lose_edge(self) -> Plan[Any]:
        """An item of an edge goes, as when it expires."""
        return self._request(Delete(self.g._layout.table, self._key()))

    def _read(self) -> Item:
        """An item of an edge as it was at any time."""
        self.history.look()
        return self.chance.choice(self.history.edges) if self.history.edges else self.g._layout.items(self.edge())[0]

    def put_back(self) -> Plan[Any]:
        return self._request(Put(self.g._layout.table, self._read()))

    def copy_edge(self) -> Plan[Any]:
        """Another edge gets all attributes of one, those of adjoin too."""
        own = self.g._layout.items(self.edge())[0]
        fields = {name: value for name, value in self._read().items() if name not in own or name in ("pages", "old")}
        return self._request(Put(self.g._layout.table, own | fields))

    def strip(self) -> Plan[Any]:
        """The item is put without anything that adjoin added."""
        return self._request(Put(self.g._layout.table, self.chance.choice(self.g._layout.items(self.edge()))))

    def spoil(self) -> Plan[Any]:
        layout = self.g._layout
        set_pages = Set(attribute("pages"), Value({"N": str(self.chance.randrange(4))}))
        actions = self.chance.choice([(set_pages,), (set_pages, Remove(attribute(STAMP))), (Remove(attribute(STAMP)),)])
        return self._request(Update(layout.table, self._key(), actions, layout.present))

    def lose_node(self) -> Plan[Any]:
        layout, node = self.g._layout, self.node()
        return self._request(Delete(layout.table, layout.node_key(layout.schema.node(type(node)), node.id)))


def check(g: Graph) -> None:
    """In the end, what each node has is what its edges say."""
    layout = g._layout
    edges = [
        (layout.ends(group.edge, item)[0], item)
        for item in stored(g)
        for group in layout.rules.groups
        if not layout.is_bookkeeping(item) and layout.kind_of(item) is group.edge
    ]
    for item in stored(g):
        kind = None if layout.is_bookkeeping(item) else layout.kind_of(item)
        if not isinstance(kind, NodeType):
            continue
        own = [edge for source, edge in edges if source == layout.text_of(kind, item)]
        wanted = {
            "books": len(own),
            "friends": len(own),
            "pages": sum(int(edge["pages"]["N"]) for edge in own),
            "old": sum(edge["old"]["BOOL"] for edge in own),
        }
        for rule in layout.rules.rules:
            if rule.node is kind:
                assert int(item.get(rule.attribute, {"N": "0"})["N"]) == wanted[rule.attribute], (item, rule.name)


def simulate(
    world: tuple[list[Any], Any], seed: int, acts: int = 30, end: Callable[[Graph], object] = check
) -> Simulation:
    with Graph(":memory:", [*world[0], world[1]]) as g:
        simulation = Simulation(g, seed)
        simulation.stream = Replays(g, simulation.chance)
        history = History(g)
        programs = Programs(g, simulation.chance, world, history)
        g.put_many(model(id=id) for model in world[0] for id in programs.ids)
        simulation.watch = history.check
        for _ in range(acts):
            simulation.write(*programs.act())
        simulation.drain()
        end(g)
        return simulation


@pytest.mark.simulation
@pytest.mark.parametrize("world", [SHELVES, FRIENDS], ids=["shelves", "friends"])
@pytest.mark.parametrize("part", range(2))
def test_other_programs_do_what_they_like(world: tuple[list[Any], Any], part: int) -> None:
    for seed in range(FIRST + part, FIRST + 3 * FEW, 2):
        try:
            simulate(world, seed)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


# --- batch jobs --------------------------------------------------------------------------------


def audited(g: Graph) -> None:
    """An audit finds nothing wrong with aggregates and ledgers, nor does one after a rebuild."""
    for job in (lambda: None, g.rebuild):
        job()
        check(g)
        assert [each for each in g.verify().findings if each.kind in ("aggregate", "ledger")] == []


@pytest.mark.simulation
@pytest.mark.parametrize("world", [SHELVES, FRIENDS], ids=["shelves", "friends"])
def test_an_audit_finds_nothing_wrong_in_the_end(world: tuple[list[Any], Any]) -> None:
    for seed in range(FIRST, FIRST + max(FEW // 2, 2)):
        try:
            simulate(world, seed, end=audited)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.fixture
def g() -> Iterator[Graph]:
    with Graph(":memory:", [Shelf, Book, Holds]) as g:
        g.put_many([Shelf(id="s"), Shelf(id="t"), *(Book(id=id) for id in "abc")])
        g.maintain(once=True)
        for id in "abc":
            g.put(Holds(source="s", target=id, pages=5))
        yield g


def holds(g: Graph, target: str = "a") -> Item:
    """The item of an edge from the shelf s."""
    layout = g._layout
    key = layout.edge_key(layout.schema.edge(Holds), "s", target, {})
    (item,) = [item for item in stored(g) if layout.key_of(item) == key]
    return item


def wrong(g: Graph) -> list[tuple[str, Any]]:
    """What an audit finds wrong with aggregates and ledgers."""
    findings = [each for each in g.verify().findings if each.kind in ("aggregate", "ledger")]
    return [(each.kind, example.get("fault")) for each in findings for example in each.examples]


def ledgers(g: Graph) -> list[Item]:
    return [item for item in stored(g) if is_ledger(item)]


def shown(g: Graph, id: str = "s") -> tuple[int, int]:
    shelf = g.get(Shelf, id)
    assert shelf is not None
    return shelf.books, shelf.pages


def test_a_new_edge_has_a_stamp_and_no_ledger(g: Graph) -> None:
    assert (shown(g), ledgers(g), wrong(g)) == ((3, 15), [], [])
    assert STAMP in holds(g)
    # People and programs see nothing of it.
    assert g.edge(Holds, "s", "a") == Holds(source="s", target="a", pages=5)
    assert g.edge(Holds, "s", "a").model_extra is None  # type: ignore[union-attr]


def test_a_put_that_changes_nothing_keeps_the_stamp(g: Graph) -> None:
    before = holds(g)[STAMP]
    g.put(Holds(source="s", target="a", pages=5))
    assert (holds(g)[STAMP], ledgers(g), shown(g)) == (before, [], (3, 15))


@pytest.mark.parametrize("way", ["put", "update", "transaction"])
def test_a_change_writes_a_ledger_and_takes_the_stamp_away(g: Graph, way: str) -> None:
    name = stamp_name(g)
    if way == "put":
        g.put(Holds(source="s", target="a", pages=7))
    elif way == "update":
        g.update(Holds, "s", "a", pages=7)
    else:
        with g.transaction() as t:
            t.update(Holds, "s", "a", pages=7)
    assert STAMP not in holds(g)
    (ledger,) = ledgers(g)
    assert [entry.spent for _, entry in entries_of(g._layout, ledger)] == [{name}]
    assert (shown(g), wrong(g)) == ((3, 17), [])


def stamp_name(g: Graph, target: str = "a") -> str:
    item = holds(g, target)
    (group,) = g._layout.rules.groups
    stamp = stamp_of(group, g._layout.key_of(item), item[STAMP])
    assert stamp is not None
    return stamp.name


def test_what_another_program_read_before_a_change_is_counted_once(g: Graph) -> None:
    """The item and its stamp agree with each other, and not with what is counted."""
    read = holds(g)
    g.update(Holds, "s", "a", pages=7)
    g._store.execute((Put(g._layout.table, read),))
    assert shown(g) == (3, 17)
    for _ in range(2):
        g.maintain(once=True)
        assert shown(g) == (3, 15)
    assert (holds(g)[STAMP], wrong(g)) == (read[STAMP], [])


def test_an_edge_that_comes_back_as_it_was_is_counted_once(g: Graph) -> None:
    read = holds(g)
    g.disconnect(Holds, "s", "a")
    assert (shown(g), len(ledgers(g))) == ((2, 10), 1)
    g.maintain(once=True)
    # The ledger stays, and says that the stamp is spent.
    assert (shown(g), len(ledgers(g)), wrong(g)) == ((2, 10), 1, [])
    g._store.execute((Put(g._layout.table, read),))
    g.maintain(once=True)
    assert shown(g) == (3, 15)
    g.disconnect(Holds, "s", "a")
    assert (shown(g), wrong(g)) == ((2, 10), [])


def test_a_stamp_on_another_edge_counts_nothing(g: Graph) -> None:
    """Whoever copies an edge to another key copies the stamp."""
    layout = g._layout
    (copy,) = layout.items(Holds(source="t", target="a", pages=5))
    g._store.execute((Put(layout.table, copy | {STAMP: holds(g)[STAMP]}),))
    g.maintain(once=True)
    assert (shown(g, "t"), shown(g)) == ((1, 5), (3, 15))
    g.disconnect(Holds, "t", "a")
    assert (shown(g, "t"), wrong(g)) == ((0, 0), [])


def test_edges_that_go_before_maintenance_looks_are_each_taken_back(g: Graph) -> None:
    """The same edge is put and lost several times; every one of them was counted."""
    for _ in range(3):
        g._store.execute((Delete(g._layout.table, g._layout.key_of(holds(g))),))
        g.put(Holds(source="s", target="a", pages=1))
    assert shown(g) == (6, 18)
    assert ("aggregate", None) in wrong(g)
    g.maintain(once=True)
    assert (shown(g), wrong(g)) == ((3, 11), [])


def test_a_repair_takes_back_what_no_change_was_applied_for(g: Graph) -> None:
    """It counts the node anew, in another generation. The changes that come later find the stamp void."""
    g._store.execute((Delete(g._layout.table, g._layout.key_of(holds(g))),))
    assert shown(g) == (3, 15)
    g.verify(repair=True)
    assert shown(g) == (2, 10)
    g.maintain(once=True)
    assert (shown(g), wrong(g)) == ((2, 10), [])


def test_a_stamp_of_an_earlier_generation_counts_nothing(g: Graph) -> None:
    layout = g._layout
    key = layout.node_key(layout.schema.node(Shelf), "s")
    g._store.execute((Delete(layout.table, key),))
    g._store.execute((Put(layout.table, layout.items(Shelf(id="s"))[0]),))
    assert ("ledger", "missing") in wrong(g)
    g.maintain(once=True)
    assert (shown(g), len(ledgers(g)), wrong(g)) == ((3, 15), 3, [])


def test_a_deleted_node_leaves_no_ledgers(g: Graph) -> None:
    g.delete(Shelf, "s")
    assert (ledgers(g), wrong(g)) == ([], [])
    g.put(Shelf(id="s"))
    assert shown(g) == (0, 0)
    g.maintain(once=True)
    assert (shown(g), ledgers(g)) == ((0, 0), [])


@pytest.mark.parametrize("stored_stamp", [{"S": "x"}, {"M": {}}, {"M": {"l": {"S": "x"}, "t": {"N": "1"}}}, {"L": []}])
def test_a_stamp_of_another_program_is_no_stamp(g: Graph, stored_stamp: Any) -> None:
    g._store.execute((Put(g._layout.table, holds(g) | {STAMP: stored_stamp}),))
    g.maintain(once=True)
    assert shown(g) == (3, 15)
    g.disconnect(Holds, "s", "a")
    assert (shown(g), wrong(g)) == ((2, 10), [])


def test_ledgers_of_earlier_versions_stay_valid(g: Graph) -> None:
    """An edge that has a ledger gets no stamp: its ledger says what was counted, and goes with it."""
    g._store.execute((Put(g._layout.table, g._layout.items(Holds(source="t", target="a", pages=1))[0]),))
    g.maintain(once=True)
    assert len(ledgers(g)) == 1
    for pages in (2, 3):
        with g.meter() as meter:
            g.put(Holds(source="t", target="a", pages=pages))
        assert (meter.wcu, shown(g, "t")) == (7, (1, pages))
    assert not [item for item in stored(g) if STAMP in item and item["pages"] == {"N": "3"}]
    g.disconnect(Holds, "t", "a")
    assert (shown(g, "t"), ledgers(g), wrong(g)) == ((0, 0), [], [])
    with g.meter() as meter:
        g.put(Holds(source="t", target="a", pages=4))
    assert (meter.wcu, shown(g, "t")) == (5, (1, 4))


def test_an_edge_that_was_removed_before_has_a_ledger_again(g: Graph) -> None:
    g.disconnect(Holds, "s", "a")
    with g.meter() as meter:
        g.put(Holds(source="s", target="a", pages=2))
    assert (meter.wcu, shown(g), STAMP in holds(g), wrong(g)) == (7, (3, 12), False, [])


# --- other declarations ------------------------------------------------------------------------


def declared(**fields: Any) -> list[Any]:
    """The classes of a program with these aggregates of shelves, by their fields."""
    own: dict[str, Any] = {name: None if isinstance(mark, Max) else 0 for name, mark in fields.items()}
    marks = {name: Annotated[int | None if isinstance(mark, Max) else int, mark] for name, mark in fields.items()}
    own |= {"__module__": __name__, "__annotations__": {"id": str, **marks}}
    shelf: Any = type("Shelf", (Node,), own)

    class Book(Node):
        id: str

    class Holds(Edge[shelf, Book]):
        pages: int = 0

    return [shelf, Book, Holds]


BOOKS, PAGES = (
    Count("Holds", consistency="transaction"),
    Sum("Holds", field="pages", consistency="transaction"),
)


OTHERS: dict[str, dict[str, Any]] = {
    "ranks": {"books": BOOKS, "pages": PAGES, "longest": Max("Holds", field="pages")},
    "one more": {
        "books": BOOKS, "pages": PAGES, "long": Count("Holds", where=field("pages") > 3, consistency="transaction")
    },
    "in the stream": {"books": Count("Holds"), "pages": Sum("Holds", field="pages")},
    "ranks in the stream": {
        "books": Count("Holds"), "pages": Sum("Holds", field="pages"), "longest": Max("Holds", field="pages")
    },
    "one less": {"books": BOOKS},
}  # fmt: skip


@pytest.mark.simulation
@pytest.mark.parametrize("others", [*OTHERS][:: stride(2)])
def test_a_program_with_other_aggregates_reads_stamps(tmp_path: Path, others: str) -> None:
    """Where it puts no stamps itself, those that it finds count all the same."""
    location = str(tmp_path / "shelves.db")
    shelf, book, holds = before = declared(books=BOOKS, pages=PAGES)
    with Graph(location, before) as g:
        g.put_many([shelf(id="s"), *(book(id=id) for id in "abc")])
        g.maintain(once=True)
        for id in "abc":
            g.put(holds(source="s", target=id, pages=5))
    further = OTHERS[others]
    shelf, book, holds = after = declared(**further)
    with Graph(location, after) as g:

        def seen(*wanted: int) -> bool:
            node = g.get(shelf, "s")
            found = tuple(getattr(node, name) for name in ("books", "pages") if name in further)
            return found == wanted[: len(found)]

        assert seen(3, 15)
        g.update(holds, "s", "a", pages=7)
        g.disconnect(holds, "s", "b")
        g.put(holds(source="s", target="d", pages=1))
        g._store.execute((Delete(g._layout.table, g._layout.edge_key(g._layout.schema.edge(holds), "s", "c", {})),))
        g.maintain(once=True)
        assert seen(2, 8)
        g.rebuild()
        assert seen(2, 8)
        assert [each for each in g.verify().findings if each.kind in ("aggregate", "ledger", "rank")] == []


class Loan(Node):
    id: str
    books: Annotated[int, Count("Lent", consistency="transaction")] = 0


class Lent(Edge[Loan, Book]):
    until: Annotated[dt.datetime | None, Expires()] = None


def test_an_edge_that_expires_has_a_ledger(tmp_path: Path) -> None:
    """It goes with the edge; of a stamp, the record that it is spent would be left."""
    with Graph(":memory:", [Loan, Book, Lent]) as g:
        g.put_many([Loan(id="l"), Book(id="b")])
        g.put(Lent(source="l", target="b"))
        assert len(ledgers(g)) == 1
        layout = g._layout
        g._store.execute((Delete(layout.table, layout.edge_key(layout.schema.edge(Lent), "l", "b", {})),))
        g.maintain(once=True)
        assert (ledgers(g), g.get(Loan, "l")) == ([], Loan(id="l"))


def test_a_tenant_has_its_own_stamps() -> None:
    with Graph(":memory:", [Shelf, Book, Holds]) as g:
        tenants = [g.for_tenant(name) for name in ("x", "y")]
        for each in tenants:
            each.put_many([Shelf(id="s"), Book(id="a")])
            each.put(Holds(source="s", target="a", pages=2))
        layout = tenants[0]._layout
        g._store.execute((Delete(layout.table, layout.edge_key(layout.schema.edge(Holds), "s", "a", {})),))
        g.maintain(once=True)
        assert [shown(each) for each in tenants] == [(0, 0), (1, 2)]
        assert g.verify()


def test_what_cannot_be_read_any_more_is_taken_back(g: Graph) -> None:
    g.maintain(once=True)
    g._store.execute((Put(g._layout.table, holds(g) | {"pages": {"S": "many"}}),))
    g.maintain(once=True)
    assert shown(g) == (3, 10)
    g._store.execute((Delete(g._layout.table, g._layout.key_of(holds(g))),))
    g.maintain(once=True)
    assert (shown(g), wrong(g)) == ((2, 10), [])


def test_a_stamp_is_spent_though_the_ends_of_its_edge_cannot_be_read(g: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The edge is set aside. No later change has the stamp that it had."""
    g.maintain(once=True)
    ends = g._layout.ends

    def odd(kind: Any, item: Item) -> tuple[str, str]:
        if "odd" in item:
            raise InvalidItem("its target is no key")
        return ends(kind, item)

    monkeypatch.setattr(g._layout, "ends", odd)
    item = {name: value for name, value in holds(g).items() if name != STAMP}
    g._store.execute((Put(g._layout.table, item | {"odd": {"BOOL": True}}),))
    report = g.maintain(once=True)
    assert [each.reason for each in report.set_aside] == ["its target is no key"]
    g._store.execute((Put(g._layout.table, item),))
    g.maintain(once=True)
    assert (shown(g), wrong(g)) == ((3, 15), [])


def test_what_is_left_of_edges_is_removed_once_their_node_is_counted_anew(g: Graph) -> None:
    """Until then it says that the stamps are spent, which a rebuild changes nothing about."""
    g.disconnect(Holds, "s", "a")
    g.disconnect(Holds, "s", "b")
    g.maintain(once=True)
    g.rebuild()
    assert (len(ledgers(g)), shown(g)) == (2, (1, 5))
    assert [each for each in g.verify(repair=True).findings if each.kind in ("aggregate", "ledger")] == []
    assert (len(ledgers(g)), shown(g)) == (2, (1, 5))
    layout = g._layout
    key = layout.node_key(layout.schema.node(Shelf), "s")
    g._store.execute((Update(layout.table, key, (Set(attribute("books"), Value({"N": "9"})),)),))
    g.verify(repair=True)
    assert shown(g) == (1, 5)
    # The edge that exists has a ledger of the new generation now.
    g.rebuild()
    assert (len(ledgers(g)), shown(g)) == (1, (1, 5))
    g.maintain(once=True)
    assert (len(ledgers(g)), shown(g), wrong(g)) == (1, (1, 5), [])


def test_a_stamp_is_taken_back_in_its_own_generation_only(g: Graph) -> None:
    """The edge is counted in the next generation already, which never had the stamp."""
    layout = g._layout
    kind, (edge,) = layout.schema.node(Shelf), layout.items(Holds(source="s", target="a", pages=5))
    g._store.execute((Delete(layout.table, layout.key_of(edge)),))
    g._store.execute((Put(layout.table, edge),))
    begun = run(begin(layout, kind, ["SHELF#s"]), g._store)
    run(reconcile_near(layout, kind, ["SHELF#s"], Tally()), g._store)
    assert shown(g) == (4, 20)
    g.maintain(once=True)
    assert shown(g) == (3, 15)
    run(finish(layout, kind, begun, Tally()), g._store)
    assert (shown(g), wrong(g)) == ((3, 15), [])
