"""What happens when an aggregate is declared otherwise than before, on a table that was counted."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any

import pytest

from adjoin import DeclarationReplaced, Edge, Graph, Node, field
from adjoin.aggregates import Count, Latest, Max, Min, Sum, Top
from adjoin.requests import Scan
from adjoin.runner import run


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
ALWAYS_WITH = ("nothing", "count", "sum of far", "max", "top 2")


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
    own: dict[str, Any] = {"__module__": __name__, "__annotations__": {"id": str, "invoices": Annotated[int, Count("Placed")]}}
    own["invoices"] = 0
    if declared.aggregate is not None:
        own["__annotations__"][declared.name] = Annotated[declared.type, declared.aggregate]
        own[declared.name] = declared.default
    Customer: Any = type("Customer", (Node,), own)

    class Invoice(Node):
        id: str
        weight: Decimal = Decimal(1)

    class Bill(Node):
        id: str

    class Placed(Edge[Customer, Invoice]):  # type: ignore[valid-type]
        balance: Decimal | None = None
        status: str = "open"
        day: int = 0

    class Contains(Edge[Invoice, Bill]):
        pass

    class Held(Edge[Customer, Invoice]):  # type: ignore[valid-type]
        pass

    class Knows(Edge[Customer, Customer]):  # type: ignore[valid-type]
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


def fresh(declared: Declared, *, with_more: bool = True) -> dict[str, Any]:
    """What a program has that never declared anything else."""
    c = classes(declared)
    with Graph(":memory:", c.all) as g:
        fill(g, c)
        if with_more:
            more(g, c)
        g.maintain(once=True)
        return shown(g, c)


def pairs() -> Iterator[tuple[str, str]]:
    for old, new in permutations(DECLARED, 2):
        if old in ALWAYS_WITH or new in ALWAYS_WITH:
            yield old, new


@pytest.mark.parametrize(("old", "new"), list(pairs()))
def test_every_change_of_a_declaration(tmp_path: Path, old: str, new: str) -> None:
    before, after = classes(DECLARED[old]), classes(DECLARED[new])
    place = str(tmp_path / "shop.db")
    with Graph(place, before.all) as g:
        fill(g, before)
        g.maintain(once=True)
    counted, first = fresh(DECLARED[new]), fresh(DECLARED[new], with_more=False)
    default = DECLARED[new].default
    with Graph(place, after.all) as g:
        _is_default_or(shown(g, after), first, default)
        more(g, after)
        g.maintain(once=True)
        g.maintain(once=True)
        _is_default_or(shown(g, after), counted, default)
        g.verify()
        _is_default_or(shown(g, after), counted, default)
        g.rebuild()
        assert shown(g, after) == counted
        audit = g.verify()
        assert not audit.findings, audit.findings
        placed(g, after, "D", "I4", 99)
        g.disconnect(after.placed, "D", "I4")
        g.maintain(once=True)
        assert shown(g, after) == counted
        assert g.health().uncounted == ()
    with Graph(place, after.all) as g:
        assert shown(g, after) == counted
        assert old in ("count at once", "count") or not _left_over(g, before, after)


def _is_default_or(found: dict[str, Any], right: dict[str, Any], default: Any) -> None:
    for id, (invoices, value) in found.items():
        assert invoices == right[id][0], id
        assert value in (default, right[id][1]), id


def _left_over(g: Graph, before: Classes, after: Classes) -> list[Any]:
    """What is stored of rules that are declared no more."""
    own = {rule.key for rule in g._layout.rules.declared}
    with Graph(":memory:", before.all) as other:
        gone = {rule.key for rule in other._layout.rules.declared} - own
    def scan() -> Any:
        (page,) = yield (Scan(g._layout.table),)
        return page.items
    found = []
    for item in run(scan(), g._store):
        if any(key in repr(item) for key in gone):
            found.append(item)
    return found
