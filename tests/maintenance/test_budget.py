"""What it costs at most to apply a bit of everything: requests, and units read and written.

The figures are what it takes. Less is better: lower them then. More is work that nothing asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from adjoin import Graph
from adjoin.plans.maintenance.recounting import begin, finish, reconcile_and_compare
from adjoin.plans.maintenance.report import Tally
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from tests.maintenance.models import (
    MODELS,
    Album,
    Bill,
    Contains,
    Customer,
    Follows,
    Friend,
    Invoice,
    OnAlbum,
    Part,
    Person,
    Placed,
    Track,
    Uses,
)
from tests.maintenance.test_crashes import happen, happen_again
from tests.maintenance.test_simulation import check


def clock() -> float:
    return 1_700_000_000.0


def begun(g: Graph) -> None:
    happen(g)
    g.put_many(Person(id=f"N{number}") for number in range(12))
    g.put_many(Follows(source=f"N{number}", target=f"N{(number * 5 + 1) % 12}") for number in range(12))
    g.put_many([Friend(source="N1", target="N2"), Friend(source="N3", target="N2")])
    g.put_many([Album(id="A1"), Track(id="T1", title="x"), Track(id="T2")])
    g.put_many(OnAlbum(source="A1", target=f"T{number}", seconds=number) for number in (1, 2))
    g.maintain(once=True)


def placed(g: Graph) -> None:
    g.put_many(Placed(source=f"C{n % 2 + 1}", target=f"I{n % 7}", balance=Decimal(n), day=n) for n in range(20, 34))


def crossed(g: Graph) -> None:
    g.put_many(Follows(source=f"N{number}", target=f"N{(number + 3) % 12}") for number in range(12))


def late(g: Graph) -> None:
    g.put_many(Placed(source="C9", target=f"I{number}", balance=Decimal(number)) for number in range(5))
    g.maintain(once=True)
    g.put(Customer(id="C9", name="Zoe"))


def uncounted(g: Graph) -> None:
    g.update(Album, "A1", title="y")
    g.put(Part(id="P1", cost=1))
    g.put(Person(id="N1"))


def extremes(g: Graph) -> None:
    g.disconnect(Placed, "C1", "I3")
    g.update(Placed, "C1", "I2", balance=Decimal(-1))
    g.update(Bill, "B1", amount=Decimal(3))


def gone(g: Graph) -> None:
    g.delete(Customer, "C1")
    g.delete(Person, "N2")
    g.delete(Track, "T1")


def cycles(g: Graph) -> None:
    g.put(Uses(source="P1", target="P3"))
    g.put(Part(id="P3", cost=2))
    g.disconnect(Uses, "P1", "P2")


def copied(g: Graph) -> None:
    g.update(Customer, "C1", name="Bea")
    g.update(Invoice, "I1", kind="z")
    g.update(Track, "T2", title="y")


def again(g: Graph) -> None:
    g.put_many(Placed(source="C1", target=f"I{number}", balance=Decimal(number), day=number) for number in range(4))
    g.put(Contains(source="I1", target="B1", note="n"))


def recount(g: Graph) -> None:
    layout = g._layout
    kind = layout.schema.node(Customer)
    texts = ["CUSTOMER#C1", "CUSTOMER#C2"]
    run(reconcile_and_compare(layout, kind, texts, Tally()), g._store)
    run(finish(layout, kind, run(begin(layout, kind, texts), g._store), Tally()), g._store)


@pytest.mark.parametrize(
    ("change", "most"),
    [
        (lambda g: None, (3, 1, 0)),
        (happen_again, (98, 136.5, 153)),
        (placed, (28, 90, 188)),
        (crossed, (39, 191, 273)),
        (late, (26, 56, 94)),
        (uncounted, (5, 2, 1)),
        (extremes, (31, 33, 43)),
        (gone, (42, 86.5, 111)),
        (cycles, (48, 44, 44)),
        (copied, (26, 40, 36)),
        (again, (3, 1, 0)),
        (recount, (40, 69, 74)),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_is_applied_costs_no_more(change: Callable[[Graph], object], most: tuple[float, ...]) -> None:
    with Graph(SQLiteStore(":memory:", clock=clock), MODELS) as g:
        g._clock = clock
        begun(g)
        if change is not recount:
            change(g)
        with g.meter() as m:
            if change is recount:
                change(g)
            else:
                g.maintain(once=True)
        check(g)
        spent = (m.requests, m.rcu, m.wcu)
        assert all(each <= limit for each, limit in zip(spent, most, strict=True)), spent
