"""Aggregates over children: what a parent counts, when it and they come and go, and what a batch job finds wrong."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    Child,
    Count,
    Edge,
    Expires,
    Graph,
    InvalidModel,
    Keys,
    Latest,
    MaterializedGraph,
    Max,
    Min,
    Node,
    Sum,
    Top,
    Unique,
    field,
)
from adjoin.batch.engines import DuckDBEngine
from adjoin.layouts.interface import Layout
from adjoin.requests import Delete, Put
from adjoin.stores.sqlite import SQLiteStore
from tests.batch.test_agreement import differences
from tests.maintenance.ledgers import is_ledger, spoilt, stray, sums_in
from tests.maintenance.simulation import Simulation, stored
from tests.shares import stride

DAYS = [dt.datetime(2024, 1, day, 12, tzinfo=dt.UTC) for day in range(1, 10)]
SINCE = "2024-01-05T15:00:00+05:00"
"""Two hours before DAYS[4], as text and in another time zone."""


class Account(Node, key=("bank", "number")):
    bank: str
    number: int
    entries: Annotated[int, Count("Entry")] = 0
    total: Annotated[Decimal, Sum("Entry", field="amount")] = Decimal(0)
    late: Annotated[int, Count("Entry", where=field("at") > SINCE)] = 0
    first: Annotated[dt.datetime | None, Min("Entry", field="at")] = None
    last: Annotated[Decimal | None, Latest("Entry", field="amount")] = None
    largest: Annotated[list[Decimal], Top("Entry", field="amount", k=2)] = []
    tags: Annotated[int, Count("Entry", "Tag")] = 0


class Entry(Child[Account], key=("at",)):
    at: dt.datetime
    amount: Decimal = Decimal(0)
    until: Annotated[dt.datetime | None, Expires()] = None


class Tag(Child[Entry]):
    id: str


MODELS: list[Any] = [Account, Entry, Tag]
LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "materialized graph": MaterializedGraph(),
    "shared": AdjacencyList(
        keys={Account: Keys("b#{bank}", "a#{number:03}"), Entry: Keys(sort="a#{parent.number:03}#e#{at}")}
    ),
    "apart": AdjacencyList(keys={Entry: Keys("e#{parent.bank}#{parent.number}", "{at}")}),
}
ONE, TEN = ("ubs", 1), ("ubs", 10)


def entries(parent: Any = ONE, days: list[dt.datetime] = DAYS[:3]) -> list[Entry]:
    return [Entry(parent=parent, at=at, amount=Decimal(at.day)) for at in days]


def shown(g: Graph, id: Any = ONE) -> tuple[Any, ...]:
    account = g.get(Account, id)
    assert account is not None
    return account.entries, account.total, account.late, account.last, account.largest, account.tags


def maintained(g: Graph, id: Any = ONE) -> tuple[Any, ...]:
    assert g.maintain(once=True).set_aside == ()
    return shown(g, id)


NOTHING: tuple[Any, ...] = (0, 0, 0, None, [], 0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tenant", [None, "acme"])
def test_whatever_happens_to_children(layout: str, tenant: str | None) -> None:
    with Graph(":memory:", MODELS, LAYOUTS[layout], tenant=tenant) as g:
        g.put_many([Account(bank="ubs", number=1), Account(bank="ubs", number=10)])
        g.put_many([*entries(), *entries(TEN, DAYS[:1]), Tag(parent=(*ONE, DAYS[0]), id="x")])
        assert maintained(g) == (3, 6, 0, 3, [3, 2], 1)
        assert shown(g, TEN) == (1, 1, 0, 1, [1], 0)
        g.update(Entry, (ONE, DAYS[2]), amount=Decimal(-5))
        g.put(Entry(parent=ONE, at=DAYS[4], amount=Decimal(9)))
        assert maintained(g) == (4, 7, 1, 9, [9, 2], 1)
        # Put again: as it is, with another value, and after it was deleted.
        g.put(Entry(parent=ONE, at=DAYS[4], amount=Decimal(9)))
        g.put(entries()[2])
        assert g.delete(Entry, (ONE, DAYS[0]))
        g.put(entries()[0])
        assert maintained(g) == (4, 15, 1, 9, [9, 3], 0)
        assert g.delete(Entry, (ONE, DAYS[4]))
        g.put(Tag(parent=entries()[1], id="x"))
        assert maintained(g) == (3, 6, 0, 3, [3, 2], 1)
        assert g.get(Account, ONE).first == DAYS[0]  # type: ignore[union-attr]
        with g.transaction() as t:
            t.delete(Entry, (ONE, DAYS[1]))
            t.put(Entry(parent=TEN, at=DAYS[1], amount=Decimal(7)))
        assert (maintained(g), shown(g, TEN)) == ((2, 4, 0, 3, [3, 1], 0), (2, 8, 0, 7, [7, 1], 0))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_parent_comes_and_goes(layout: str) -> None:
    with Graph(":memory:", MODELS, LAYOUTS[layout]) as g:
        g.put_many([*entries(), Tag(parent=entries()[0], id="x"), *entries(TEN)])
        g.maintain(once=True)
        g.put(Account(bank="ubs", number=1))
        assert maintained(g) == (3, 6, 0, 3, [3, 2], 1)
        assert g.delete(Account, ONE)
        g.put(Account(bank="ubs", number=1))
        assert maintained(g) == NOTHING
        g.put(entries()[1])
        assert maintained(g) == (1, 2, 0, 2, [2], 0)
        assert g.delete(Account, ONE)
        g.maintain(once=True)
        assert [item for item in stored(g) if is_ledger(item)] == []
        g.put_many([entries()[1], Account(bank="ubs", number=1)])
        assert maintained(g) == (1, 2, 0, 2, [2], 0)
        g.put(Account(bank="ubs", number=10))
        assert maintained(g, TEN) == (3, 6, 0, 3, [3, 2], 0)


def test_what_expires() -> None:
    """A child that expires is counted no more. A node that expires leaves its children, which count when it is back."""

    class Cart(Node):
        id: str
        until: Annotated[dt.datetime | None, Expires()] = None
        lines: Annotated[int, Count("Line")] = 0

    class Line(Child[Cart]):
        id: str
        until: Annotated[dt.datetime | None, Expires()] = None

    now = DAYS[0].timestamp()
    store = SQLiteStore(":memory:", clock=lambda: now)
    with Graph(store, [Cart, Line]) as g:
        g.put_many([Cart(id="c", until=DAYS[2]), Line(parent="c", id="a", until=DAYS[1]), Line(parent="c", id="b")])
        g.maintain(once=True)
        assert g.get(Cart, "c").lines == 2  # type: ignore[union-attr]
        now = DAYS[1].timestamp() + 1
        assert store.sweep() == 1
        g.maintain(once=True)
        assert g.get(Cart, "c").lines == 1  # type: ignore[union-attr]
        now = DAYS[2].timestamp() + 1
        assert store.sweep() == 1
        g.maintain(once=True)
        assert g.get(Cart, "c") is None
        assert [line.id for line in g.children("c", Line)] == ["b"]
        g.put(Cart(id="c"))
        g.maintain(once=True)
        assert g.get(Cart, "c").lines == 1  # type: ignore[union-attr]


def test_a_graph_without_a_tenant_counts_for_all_tenants() -> None:
    with Graph(":memory:", MODELS) as g:
        for name in ("acme", "b"):
            tenant = g.for_tenant(name)
            tenant.put_many([Account(bank="ubs", number=1), *entries()[: len(name)]])
        g.put_many([Account(bank="ubs", number=1), *entries()])
        g.maintain(once=True)
        assert [shown(each)[0] for each in (g.for_tenant("acme"), g.for_tenant("b"), g)] == [3, 1, 3]
        assert g.verify(threads=1).findings == ()


# --- children in a path with edges -------------------------------------------------------------


class Person(Node):
    id: str
    liked: Annotated[Decimal, Sum("Likes", field="price")] = Decimal(0)
    lines: Annotated[int, Count("Bought", "Line")] = 0
    worth: Annotated[Decimal, Sum("Bought", field="worth")] = Decimal(0)


class Order(Node):
    id: str
    worth: Annotated[Decimal, Sum("Line", field="price")] = Decimal(0)
    fans: Annotated[int, Count("Line", "Likes")] = 0
    popular: Annotated[int, Count("Line", where=field("fans") > 1)] = 0
    most: Annotated[int | None, Max("Line", field="fans")] = None


class Line(Child[Order]):
    id: str
    price: Decimal = Decimal(1)
    code: Annotated[str | None, Unique()] = None
    fans: Annotated[int, Count("Likes")] = 0


class Bought(Edge[Person, Order]):
    pass


class Likes(Edge[Person, Line]):
    pass


def test_paths_of_edges_and_children() -> None:
    with Graph(":memory:", [Person, Order, Line, Bought, Likes]) as g:
        g.put_many([*(Person(id=id) for id in "ab"), Order(id="o"), *(Line(parent="o", id=id) for id in "xyz")])
        g.put_many([Bought(source="a", target="o"), Likes(source="a", target=("o", "x"))])
        g.put_many(Likes(source="b", target=("o", id)) for id in "xy")

        def values() -> list[Any]:
            g.maintain(once=True)
            a, b, o = g.get(Person, "a"), g.get(Person, "b"), g.get(Order, "o")
            assert a is not None
            assert b is not None
            assert o is not None
            return [(a.liked, a.lines, a.worth), b.liked, (o.worth, o.fans, o.popular, o.most)]

        assert values() == [(1, 3, 3), 2, (3, 3, 1, 2)]
        g.update(Line, ("o", "x"), price=Decimal(10))
        g.disconnect(Likes, "b", ("o", "x"))
        assert values() == [(10, 3, 12), 1, (12, 2, 0, 1)]
        assert g.delete(Line, ("o", "x"))
        assert values() == [(0, 2, 2), 1, (2, 1, 0, 1)]
        g.connect(Likes, "a", ("o", "y"))
        assert values() == [(1, 2, 2), 1, (2, 2, 1, 2)]
        assert g.delete(Order, "o")
        g.put_many([Order(id="o"), Line(parent="o", id="y")])
        g.connect(Bought, "a", "o")
        assert values() == [(0, 1, 1), 0, (1, 0, 0, 0)]
        assert g.verify(threads=1).findings == ()


# --- batch jobs --------------------------------------------------------------------------------


class Box(Node):
    id: str
    things: Annotated[int, Count("Thing")] = 0
    weight: Annotated[int, Sum("Thing", field="weight")] = 0


class Thing(Child[Box]):
    id: str
    weight: int = 1


BOXED = AdjacencyList(keys={Box: Keys("all", "box#{id}")})


def boxes(g: Graph) -> list[tuple[int, int]]:
    return [(box.things, box.weight) for box in g.get_many(Box, ["a", "b"]) if box is not None]


@pytest.mark.simulation
@pytest.mark.parametrize(("layout", "tenant"), list(product([AdjacencyList(), BOXED], [None, "acme"]))[:: stride(3)])
def test_verify_finds_and_repairs_what_others_spoilt(layout: Layout, tenant: str | None) -> None:
    with Graph(":memory:", [Box, Thing], layout, tenant=tenant) as g:
        bound, execute = g._layout, g._store.execute
        kind = bound.schema.node(Box)

        def faults(repair: bool = False) -> dict[str, int]:
            found = g.verify(repair=repair, threads=1)
            assert not repair or found.left == 0
            return {f"{finding.kind} {finding.name}": finding.count for finding in found.findings}

        g.put_many([Box(id="a"), Box(id="b"), *(Thing(parent=id, id=str(n)) for id in "ab" for n in range(2))])
        g.maintain(once=True)
        assert (boxes(g), faults()) == ([(2, 2), (2, 2)], {})
        (item,) = (item for item in stored(g) if bound.key_of(item) == bound.node_key(kind, "a"))
        execute((Put(bound.table, item | {"things": {"N": "7"}}),))
        assert faults() == faults(repair=True) == {"aggregate BOX.things": 1}
        assert boxes(g) == [(2, 2), (2, 2)]
        ledgers = [item for item in stored(g) if is_ledger(item)]
        assert len(ledgers) == 4
        execute((Delete(bound.table, bound.key_of(ledgers[0])),))
        assert faults(repair=True) == {"ledger THING.out": 1}
        part, rule = sums_in(ledgers[1])[0]
        execute((Put(bound.table, spoilt(ledgers[1], part, rule, "5")),))
        execute((Put(bound.table, stray(bound, ledgers[2])),))
        assert faults(repair=True) == {"ledger THING.out": 2}
        assert (boxes(g), faults()) == ([(2, 2), (2, 2)], {})
        g.delete(Thing, ("a", "1"))
        g.maintain(once=True)
        assert (boxes(g), faults()) == ([(1, 1), (2, 2)], {})


def test_children_that_wait_for_a_parent_are_found_without_their_marker() -> None:
    with Graph(":memory:", [Box, Thing]) as g:
        layout = g._layout
        g.put(Thing(parent="a", id="1"))
        g.maintain(once=True)
        g._store.execute((Delete(layout.table, layout.ledgers.marker_key("BOX#a")),))
        (finding,) = g.verify(repair=True, threads=1).findings
        assert (finding.kind, finding.examples[0]["fault"], finding.repaired) == ("ledger", "unmarked", 1)
        g.put(Box(id="a"))
        g.maintain(once=True)
        assert boxes(g) == [(1, 1)]


def test_a_first_aggregate_is_not_yet_counted_until_a_rebuild(tmp_path: Path) -> None:
    def models(*, is_counted: bool) -> list[Any]:
        if is_counted:

            class Shelf(Node):
                id: str
                boxes: Annotated[int, Count("Beside")] = 0
                books: Annotated[int, Count("Book")] = 0
                best: Annotated[str | None, Max("Book", field="title")] = None
        else:

            class Shelf(Node):  # type: ignore[no-redef]
                id: str
                boxes: Annotated[int, Count("Beside")] = 0

        class Book(Child[Shelf]):
            id: str
            title: str = ""

        class Beside(Edge[Shelf, Shelf]):
            pass

        return [Shelf, Book, Beside]

    shelf, book, _ = before = models(is_counted=False)
    with Graph(tmp_path / "g.db", before) as g:
        g.put_many([shelf(id="s"), *(book(parent="s", id=str(n), title=f"t{n}") for n in range(3))])
        g.maintain(once=True)
    shelf, book, _ = after = models(is_counted=True)
    with Graph(tmp_path / "g.db", after) as g:
        assert g.health().uncounted == ("SHELF.best", "SHELF.books")

        def counted() -> tuple[int, str | None]:
            found: Any = g.get(shelf, "s")
            return found.books, found.best

        g.put(book(parent="s", id="9", title="a"))
        g.maintain(once=True)
        assert counted() == (0, None)
        g.rebuild(threads=1)
        assert counted() == (4, "t2")
        assert g.health().uncounted == ()
        g.delete(book, ("s", "2"))
        g.maintain(once=True)
        assert counted() == (3, "t1")
        assert g.verify(threads=1).findings == ()


def test_a_rebuild_beside_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time that it writes something, children come and go, and others apply that or not."""
    chance = random.Random(4)
    with Graph(":memory:", [Box, Thing]) as g:
        g.put_many([Box(id="a"), Box(id="b"), *(Thing(parent=id, id=str(n)) for id in "ab" for n in range(9))])
        g.maintain(once=True)
        layout = g._layout
        for id in "ab":
            key = layout.node_key(layout.schema.node(Box), id)
            (item,) = (item for item in stored(g) if layout.key_of(item) == key)
            g._store.execute((Put(layout.table, item | {"things": {"N": "70"}}),))
        acts: list[Any] = []
        run = g._run

        def between(plan: Any) -> Any:
            found = run(plan)
            if len(acts) < 60:
                id = (chance.choice("ab"), str(chance.randrange(12)))
                acts.append(id)
                monkeypatch.setattr(g, "_run", run)
                if chance.random() < 0.5:
                    g.put(Thing(parent=id[0], id=id[1], weight=chance.randrange(4)))
                else:
                    g.delete(Thing, id)
                if chance.random() < 0.3:
                    g.maintain(once=True)
                monkeypatch.setattr(g, "_run", between)
            return found

        monkeypatch.setattr(g, "_run", between)
        g.rebuild(threads=1)
        monkeypatch.setattr(g, "_run", run)
        assert len(acts) > 3
        g.maintain(once=True)
        there = [[*g.children(id, Thing)] for id in "ab"]
        assert boxes(g) == [(len(some), sum(thing.weight for thing in some)) for some in there]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_duckdb_agrees_on_ids_of_several_fields_and_dates_in_keys(layout: str) -> None:
    chance = random.Random(1)
    days = [*DAYS, DAYS[3] + dt.timedelta(microseconds=1), DAYS[3].astimezone(dt.timezone(dt.timedelta(hours=5)))]
    with Graph(":memory:", MODELS, LAYOUTS[layout]) as g, DuckDBEngine(memory="300MB", threads=1) as engine:
        simulation = Simulation(g, 1)
        for _ in range(60):
            parent = ("é b", chance.randrange(3))
            child = Entry(parent=parent, at=chance.choice(days), amount=Decimal(chance.randrange(-9, 9)) / 4)
            ways = [
                g._put(child, None),
                g._put(child, None),
                g._put(Tag(parent=child, id="é b"), None),
                g._put(Account(bank="é b", number=parent[1]), None),
                g._delete(Entry, (parent, child.at)),
                g._delete(Account, parent),
            ]
            simulation.write(chance.choices(ways, [4, 4, 3, 4, 2, 1])[0], "writer")
        simulation.drain()
        assert any(account.entries for account in g.get_many(Account, [("é b", n) for n in range(3)]) if account)
        assert differences(g, engine) == {}


# --- declarations ------------------------------------------------------------------------------


def refused(message: str, mark: Any, hint: Any = int | None) -> None:
    class Note(Child["Owner"], key=("year", "number")):  # type: ignore[name-defined]
        year: int
        number: int
        text: str = ""
        seen: Annotated[int, Count("Seen")] = 0

    class Seen(Child[Note]):
        id: str

    class Other(Child["Elsewhere"]):
        id: str

    class Elsewhere(Node):
        id: str

    made = type(
        "Owner", (Node,), {"__annotations__": {"id": str, "made": Annotated[hint, mark]}, "made": None}, label="OWNER"
    )
    with pytest.raises(InvalidModel, match=message):
        Graph(":memory:", [made, Note, Seen, Other, Elsewhere])


def test_what_cannot_be_declared() -> None:
    refused("Owner.made follows Other from Owner, but Other is a child of Elsewhere", Count("Other"))
    refused("made follows Note from Note, but Note is a child of Owner", Count("Note", "Note"))
    refused('a class of children, .* cannot have consistency="transaction"', Count("Note", consistency="transaction"))
    refused('made has direction="into", but none of its edges arrives', Count("Note", direction="into"))
    refused("is recursive, but Note does not lead from Owner to itself", Count("Note", recursive=True))
    refused(
        "by which field a Note is the latest; pass by=, since its key is not one field", Latest("Note", field="text")
    )
    refused("Note has no field 'txt'; did you mean 'text'?", Max("Note", field="txt"))
    refused(
        "where= must use fields of Note; Note has no field 'yaer'; did you mean 'year'",
        Count("Note", where=field("yaer") > 1),
    )
    refused("sum of Note.text, which is str", Sum("Note", field="text"))
    refused("follows 'Nota': this graph has no edge 'Nota'; did you mean 'Note'", Count("Nota"))
