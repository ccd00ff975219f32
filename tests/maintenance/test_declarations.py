"""What happens when an aggregate is declared otherwise than before, on a table that was counted."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from adjoin import Child, DeclarationReplaced, Edge, Graph, Node, field
from adjoin.aggregates import Count, Latest, Max, Min, Sum, Top
from adjoin.layouts.interface import STAMP
from adjoin.plans.maintenance.isolating import apply_each
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.maintenance.standing import RECORD, Record, Recorded, _item, end_rebuild, key_of, read_standing
from adjoin.plans.read import get_many
from adjoin.requests import Put, Request, Response
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from tests.maintenance.simulation import Process, Stream, stored, with_seeds
from tests.shares import FEW, IS_ALL, stride


@dataclass(frozen=True)
class Declared:
    """A field of `Customer`: its name, type, default and aggregate; without one it is not declared."""

    type: Any = None
    default: Any = None
    aggregate: Any = None
    name: str = "value"


DECLARED = {
    "nothing": Declared(),
    "count": Declared(int, 0, Count("Placed")),
    "count open": Declared(int, 0, Count("Placed", where=field("status") == "open")),
    "count at once": Declared(int, 0, Count("Placed", consistency="transaction")),
    "count of another edge": Declared(int, 0, Count("Held")),
    "count of two hops": Declared(int, 0, Count("Placed", "Contains")),
    "different bills": Declared(int, 0, Count("Placed", "Contains", distinct=True)),
    "count out": Declared(int, 0, Count("Knows", direction="out")),
    "count into": Declared(int, 0, Count("Knows", direction="into")),
    "sum": Declared(Decimal, Decimal(0), Sum("Placed", field="balance")),
    "sum of far": Declared(Decimal, Decimal(0), Sum("Placed", field="weight")),
    "sum of all below": Declared(Decimal, Decimal(0), Sum("Knows", field="worth", recursive=True)),
    "max": Declared(Decimal | None, None, Max("Placed", field="balance")),
    "max of far": Declared(Decimal | None, None, Max("Placed", field="weight")),
    "min": Declared(Decimal | None, None, Min("Placed", field="balance")),
    "latest": Declared(str | None, None, Latest("Placed", field="status", by="day")),
    "top 2": Declared(list[Decimal], [], Top("Placed", field="balance", k=2)),
    "top 3": Declared(list[Decimal], [], Top("Placed", field="balance", k=3)),
    "renamed": Declared(int, 0, Count("Placed"), "another"),
}


@dataclass(frozen=True)
class Classes:
    declared: Declared
    customer: Any
    invoice: Any
    bill: Any
    placed: Any
    contains: Any
    held: Any
    knows: Any

    @property
    def all(self) -> list[Any]:
        return [self.customer, self.invoice, self.bill, self.placed, self.contains, self.held, self.knows]


def classes(declared: Declared) -> Classes:
    """The classes of a program that declares one field so, and another that stays what it is."""
    own: dict[str, Any] = {
        "__module__": __name__,
        "__annotations__": {"id": str, "invoices": Annotated[int, Count("Placed")]},
    }
    own["invoices"] = 0
    if declared.aggregate is not None:
        own["__annotations__"][declared.name] = Annotated[declared.type, declared.aggregate]
        own[declared.name] = declared.default
    Customer: Any = type("Customer", (Node,), own)  # noqa: N806

    class Invoice(Node):
        id: str
        weight: Decimal = Decimal(1)

    class Bill(Node):
        id: str

    class Placed(Edge[Customer, Invoice]):
        balance: Decimal | None = None
        status: str = "open"
        day: int = 0

    class Contains(Edge[Invoice, Bill]):
        pass

    class Held(Edge[Customer, Invoice]):
        pass

    class Knows(Edge[Customer, Customer]):
        worth: Decimal = Decimal(1)

    return Classes(declared, Customer, Invoice, Bill, Placed, Contains, Held, Knows)


IDS = "ABCD"


def fill(g: Graph, c: Classes) -> None:
    for id in IDS:
        g.put(c.customer(id=id))
    for number in range(6):
        g.put(c.invoice(id=f"I{number}", weight=Decimal(number)))
        g.put(c.bill(id=f"B{number}"))
        g.put(c.contains(source=f"I{number}", target=f"B{number}"))
    for number in range(8):
        placed(g, c, IDS[number % 3], f"I{number % 6}", number)
    g.put(c.held(source="A", target="I1"))
    g.put(c.held(source="A", target="I2"))
    for one, other in ("AB", "BC", "AD"):
        g.put(c.knows(source=one, target=other, worth=Decimal(3)))


def more(g: Graph, c: Classes) -> None:
    """Changes that come when another program is there."""
    placed(g, c, "A", "I5", 50)
    placed(g, c, "B", "I1", 51)
    g.disconnect(c.placed, "C", "I2")
    g.put(c.held(source="D", target="I3"))
    g.put(c.knows(source="D", target="C", worth=Decimal(5)))
    g.put(c.invoice(id="I3", weight=Decimal(30)))
    g.put(c.customer(id="E"))
    placed(g, c, "E", "I0", 52)


def placed(g: Graph, c: Classes, source: str, target: str, number: int) -> None:
    status = "paid" if number % 3 == 0 else "open"
    g.put(c.placed(source=source, target=target, balance=Decimal(number), status=status, day=number))


def shown(g: Graph, c: Classes) -> dict[str, Any]:
    nodes = {id: g.get(c.customer, id) for id in (*IDS, "E")}
    return {id: (node.invoices, getattr(node, c.declared.name, None)) for id, node in nodes.items() if node is not None}


@cache
def _fresh(name: str, with_more: bool) -> dict[str, Any]:
    return fresh(DECLARED[name], with_more=with_more)


def fresh(declared: Declared, *, with_more: bool = True) -> dict[str, Any]:
    """What a program has that never declared anything else."""
    c = classes(declared)
    with Graph(":memory:", c.all) as g:
        fill(g, c)
        if with_more:
            more(g, c)
        g.maintain(once=True)
        return shown(g, c)


def pairs() -> list[tuple[str, str]]:
    """From every other declaration to the next, and from the last to the first: 10 of the 342 that there are.

    So each is replaced, or replaces another. `make simulations` tries all.
    """
    names = list(DECLARED)
    return list(permutations(names, 2)) if IS_ALL else list(zip(names, [*names[1:], names[0]], strict=True))[::2]


@pytest.mark.simulation
@pytest.mark.parametrize(("old", "new"), pairs())
def test_every_change_of_a_declaration(tmp_path: Path, old: str, new: str) -> None:
    before, after = classes(DECLARED[old]), classes(DECLARED[new])
    place = f"{tmp_path / 'shop.db'}?durability=process"
    with Graph(place, before.all) as g:
        fill(g, before)
        g.maintain(once=True)
    counted, first = _fresh(new, True), _fresh(new, False)
    default = DECLARED[new].default
    with Graph(place, after.all) as g:
        _is_default_or(shown(g, after), first, default)
        more(g, after)
        g.maintain(once=True)
        g.maintain(once=True)
        _is_default_or(shown(g, after), counted, default)
        if IS_ALL or list(DECLARED).index(new) % 3 == 0:
            # An audit says what is not counted, and counts nothing.
            g.verify(threads=1)
            _is_default_or(shown(g, after), counted, default)
        g.rebuild(threads=1)
        assert shown(g, after) == counted
        audit = g.verify(threads=1)
        assert not audit.findings, audit.findings
        placed(g, after, "D", "I4", 99)
        g.disconnect(after.placed, "D", "I4")
        g.maintain(once=True)
        assert shown(g, after) == counted
        assert g.health().uncounted == ()
    with Graph(place, after.all) as g:
        assert shown(g, after) == counted
        assert not _left_over(g, before)


def _is_default_or(found: dict[str, Any], right: dict[str, Any], default: Any) -> None:
    for id, (invoices, value) in found.items():
        assert invoices == right[id][0], id
        assert value in (default, right[id][1]), id


def _left_over(g: Graph, before: Classes) -> list[Any]:
    """What is stored of rules that are declared no more, but for ledgers of edges that no rule goes over now.

    A stamp of an earlier generation stays on its edge until that is written. It has no effect.
    """
    layout = g._layout
    own = {rule.key for rule in layout.rules.declared}
    with Graph(":memory:", before.all) as other:
        gone = {rule.key for rule in other._layout.rules.declared} - own
    items = [{name: value for name, value in item.items() if name != STAMP} for item in stored(g)]
    found = [item for item in items if any(key in repr(item) for key in gone)]
    found = [item for item in found if not layout.is_bookkeeping(item) or any(key in repr(item) for key in own)]
    names = {*next(iter(g._schema.nodes.values())).attributes.values()}
    nodes = [item for item in stored(g) if item["SK"]["S"] == "#META" and item["PK"]["S"].startswith("CUSTOMER#")]
    hidden = before.declared.name not in names
    return found + [item for item in nodes if hidden and before.declared.name in item]


# --- what is said ------------------------------------------------------------------------------


def test_a_graph_says_what_is_not_counted_yet(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before, after = classes(DECLARED["count"]), classes(DECLARED["max"])
    place = str(tmp_path / "shop.db")
    with caplog.at_level(logging.WARNING, "adjoin"), Graph(place, before.all) as g:
        fill(g, before)
        g.maintain(once=True)
        assert g.health().uncounted == ()
    with Graph(place, before.all):
        assert not caplog.records
    with caplog.at_level(logging.WARNING, "adjoin"), Graph(place, after.all) as g:
        (record,) = caplog.records
        assert record.getMessage().endswith("CUSTOMER.value; run rebuild")
        assert g.health().uncounted == ("CUSTOMER.value",)
        (finding,) = [each for each in g.verify(threads=1).findings if each.kind == "declaration"]
        assert finding.name == "CUSTOMER.value"
        g.rebuild(threads=1)
        assert g.health().uncounted == ()
        caplog.clear()
    with Graph(place, after.all):
        assert not caplog.records


def test_opening_costs_one_request_with_aggregates_and_none_without() -> None:
    class Plain(Node):
        id: str

    store = _Counting(":memory:")
    Graph(store, [Plain])
    without = store.asked
    Graph(store, [Plain])
    again = store.asked - without
    store.asked = 0
    c = classes(DECLARED["count"])
    Graph(store, c.all)
    store.asked = 0
    g = Graph(store, c.all)
    assert store.asked == again + 1
    store.asked = 0
    g.get(c.customer, "A")
    assert store.asked == 1


class _Counting(SQLiteStore):
    asked = 0

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        self.asked += len(requests)
        return super().execute(requests)


def test_the_old_program_goes_on_without_maintaining(tmp_path: Path) -> None:
    before, after = classes(DECLARED["count"]), classes(DECLARED["sum"])
    place = str(tmp_path / "shop.db")
    with Graph(place, before.all) as old, Graph(place, after.all) as new:
        fill(old, before)
        old.maintain(once=True)
        counted = shown(old, before)
        placed(new, after, "D", "I4", 7)
        assert shown(old, before) == counted
        new.maintain(once=True)
        placed(old, before, "D", "I5", 8)
        with pytest.raises(DeclarationReplaced, match=r"CUSTOMER\.value .* run maintain with the later program"):
            old.maintain(once=True)
        new.rebuild()
        assert {value for _, value in shown(old, before).values()} == {0}
        new.maintain(once=True)
        assert shown(new, after)["D"] == (2, Decimal(15))
        with pytest.raises(DeclarationReplaced):
            old.verify(repair=True)
        # Whoever goes back rebuilds with the old one, and the later one is refused then.
        old.rebuild()
        assert shown(old, before)["D"] == (2, 2)
        assert old.verify()
        placed(old, before, "D", "I0", 8)
        old.maintain(once=True)
        assert shown(old, before)["D"] == (3, 3)
        assert shown(new, after)["D"] == (3, Decimal(0))
        placed(old, before, "D", "I1", 8)
        with pytest.raises(DeclarationReplaced):
            new.maintain(once=True)


def test_a_rebuild_from_an_export_that_is_older_than_the_declaration_does_not_end_it(tmp_path: Path) -> None:
    record = Record("new", {"A.b": Recorded("k", "b", is_counted=False, is_listed=True, since=100.0)})
    c = classes(DECLARED["count"])
    with Graph(":memory:", c.all) as g:
        for read_at, is_counted in ((99.0, False), (100.0, True)):
            g._store.execute((Put(g._layout.table, key_of(g._layout, RECORD) | _item(record)),))
            g._run(end_rebuild(g._layout, record, read_at))
            found = g._run(read_standing(g._layout))
            assert found is not None
            assert found.rules["A.b"].is_counted == is_counted


# --- side by side ------------------------------------------------------------------------------


class _Crowded(Graph):
    """A graph between whose requests others make theirs."""

    tick: Callable[[], None] = staticmethod(lambda: None)

    def _run(self, plan: Any) -> Any:
        result: list[Any] = []

        def kept() -> Any:
            result.append((yield from plan))

        process = Process(self, kept(), "rebuild")
        while not process.is_done:
            process.step(random.Random(0))
            self.tick()
        if process.error is not None:
            raise process.error
        return result[0]


UNIT = 1000
"""Balances are whole multiples of it, and counts are below it: a value tells which declaration it is of."""


def _is_of(name: str, value: Any) -> bool:
    match value:
        case None | [] | 0:
            return True
        case list():
            return all(each % UNIT == 0 for each in value)
    return bool(value < UNIT) if name.startswith("count") else value % UNIT == 0


@pytest.mark.simulation
@pytest.mark.parametrize("part", range(2 // stride(2)))
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("count", "sum"),
        ("sum", "count open"),
        ("count", "max"),
        ("max", "count"),
        ("count at once", "sum"),
        ("top 2", "sum"),
    ],
)
def test_old_and_new_side_by_side(old: str, new: str, part: int) -> None:
    with_seeds(lambda seed: side_by_side(old, new, seed), part, 2, max(FEW // 2, 2))


def side_by_side(old: str, new: str, seed: int) -> None:
    chance = random.Random(seed)
    before, after = classes(DECLARED[old]), classes(DECLARED[new])
    store = SQLiteStore(":memory:")
    first = Graph(store, before.all)
    for id in IDS:
        first.put(before.customer(id=id))
    for number in range(6):
        first.put(before.invoice(id=f"I{number}"))
        first.put(before.placed(source=IDS[number % 4], target=f"I{number}", balance=Decimal(UNIT * (number + 1))))
    first.maintain(once=True)
    second = _Crowded(store, after.all)
    stream = Stream(second, chance)
    stream.take(10_000)
    at_work: list[tuple[Process, list[Any]]] = []
    writers: list[Process] = []
    is_over = False

    def tick() -> None:
        if len(at_work) < 4 and chance.random() < 0.3 and (changes := stream.take(chance.randrange(1, 5))):
            graph = first if chance.random() < 0.5 and not is_over else second
            applying = apply_each(graph._layout, changes, Tally())
            at_work.append((Process(graph, applying, "maintainer"), changes))
        if not is_over and len(writers) < 3 and chance.random() < 0.1:
            graph, c = (first, before) if chance.random() < 0.5 else (second, after)
            source, target = chance.choice(IDS), f"I{chance.randrange(6)}"
            if chance.random() < 0.4:
                plan: Any = graph._disconnect(c.placed, source, target, {})
            else:
                plan = graph._put(
                    c.placed(source=source, target=target, balance=Decimal(UNIT * chance.randrange(1, 9))), None
                )
            writers.append(Process(graph, plan, "writer"))
        everybody = [*writers, *(process for process, _ in at_work)]
        for process in chance.sample(everybody, min(2, len(everybody))):
            if not process.is_done:
                process.step(chance)
        writers[:] = [each for each in writers if not each.is_done]
        for place, (process, changes) in reversed(list(enumerate(at_work))):
            if process.is_done:
                del at_work[place]
                if process.error is not None:
                    assert isinstance(process.error, DeclarationReplaced) or process.error.retryable, process.error
                    stream.give_back(changes)
        for graph, c, name in ((first, before, old), (second, after, new)):
            for node in run(_nodes(graph, c), store):
                assert _is_of(name, node.value), (name, node)

    for _ in range(chance.randrange(60)):
        tick()
    second.tick = tick
    second.rebuild(threads=1)
    is_over = True
    while writers or at_work or len(stream):
        tick()
    second.tick = lambda: None
    if old == "count at once":
        second.verify(repair=True, threads=1)
    audit = second.verify(threads=1)
    assert not audit.findings, audit.findings
    assert second.health().uncounted == ()


def _nodes(g: Graph, c: Classes) -> Any:
    kind = g._schema.node(c.customer)
    found = yield from get_many(g._layout, kind, list(IDS), True)
    return [node for node in found if node is not None]


def _family(aggregate: Any, default: Any) -> list[Any]:
    """A family that has an aggregate over edges from several classes, and one over its children; without, for None."""

    class Vehicle(Node, discriminator="kind"):
        id: str
        kind: str

        if aggregate is not None:
            uses: Annotated[Any, aggregate("Uses")] = default
            trips: Annotated[Any, aggregate("Trip")] = default

    class Car(Vehicle):
        kind: Literal["car"] = "car"

    class Truck(Vehicle):
        kind: Literal["truck"] = "truck"

    class Trip(Child[Vehicle], key=("number",)):
        number: int
        km: int = 0

    class Person(Node):
        id: str

    class Firm(Node, key=("country", "name")):
        country: str
        name: str

    class Uses(Edge[Person | Firm, Vehicle]):
        km: int = 0

    return [Vehicle, Car, Truck, Trip, Person, Firm, Uses]


FAMILIES: dict[str, tuple[Any, Any, Any]] = {
    "none": (None, None, None),
    "count": (Count, 0, 3),
    "sum": (lambda edge: Sum(edge, field="km"), 0, 9),
    "top": (lambda edge: Top(edge, field="km", k=2), [], [5, 3]),
}


FAMILY_PAIRS = [("sum", "top"), ("none", "count"), ("count", "sum"), ("count", "none"), ("top", "count")]


@pytest.mark.simulation
@pytest.mark.parametrize(("old", "new"), FAMILY_PAIRS[:: stride(3)])
def test_declarations_of_a_family(old: str, new: str) -> None:
    """One rebuild counts all its classes, over edges from several classes and over children."""
    store = SQLiteStore(":memory:")
    for name in (old, new):
        aggregate, default, value = FAMILIES[name]
        vehicle, car, truck, trip, person, firm, uses = models = _family(aggregate, default)
        g = Graph(store, models)
        if name == old:
            g.put_many([car(id="c"), truck(id="t"), person(id="p"), person(id="q"), firm(country="fi", name="f")])
            users = [person.ref("p"), person.ref("q"), firm.ref(("fi", "f"))]
            for at, km in enumerate((1, 3, 5)):
                g.put_many([uses(source=users[at], target=id, km=km) for id in ("c", "t")])
                g.put_many([trip(parent=id, number=at, km=km) for id in ("c", "t")])
        g.maintain(once=True)
        if name == new:
            g.rebuild(threads=1)
        if value is not None:
            assert {(type(each).__name__, str(each.uses), str(each.trips)) for each in g.scan(vehicle)} == {
                ("Car", str(value), str(value)),
                ("Truck", str(value), str(value)),
            }
        assert (g.health().uncounted, g.verify(threads=1).findings) == ((), ())
    assert new != "none" or not any("uses" in item for item in stored(g))
    store.close()
