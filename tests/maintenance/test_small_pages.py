"""Every page has one item, as it may where items are large: nothing that comes after it is left out.

And whoever maintains a table reads it strongly consistent: nothing is concluded from what was a moment ago.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from adjoin import Graph
from adjoin.plans.maintenance.recounting import begin, finish
from adjoin.plans.maintenance.report import MaintenanceReport, Tally
from adjoin.requests import BatchGet, Get, Query, Request, Response
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from tests.maintenance.ledgers import is_rank
from tests.maintenance.models import MODELS, Bill, Contains, Customer, Follows, Invoice, Part, Person, Placed, Uses
from tests.maintenance.simulation import stored
from tests.maintenance.test_crashes import happen, happen_again
from tests.maintenance.test_simulation import check
from tests.maintenance.vandals import Vandals


class OneByOne:
    """A store whose pages have one item each."""

    creates_tables = True

    def __init__(self) -> None:
        self.inner = SQLiteStore(":memory:")
        self.is_maintained = False

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        if self.is_maintained:
            for each in requests:
                for read in each.gets if isinstance(each, BatchGet) else (each,):
                    assert not isinstance(read, Get | Query) or read.consistent or getattr(read, "index", None), read
        return self.inner.execute([replace(each, limit=1) if isinstance(each, Query) else each for each in requests])

    def close(self) -> None:
        self.inner.close()


@pytest.fixture
def g() -> Iterator[Graph]:
    with Graph(OneByOne(), MODELS) as graph:
        yield graph


@contextmanager
def strictly(g: Graph) -> Iterator[None]:
    store: Any = g._store
    store.is_maintained = True
    yield
    store.is_maintained = False


def maintain(g: Graph) -> MaintenanceReport:
    with strictly(g):
        return g.maintain(once=True)


def test_everything_is_applied(g: Graph) -> None:
    happen(g)
    maintain(g)
    check(g)
    happen_again(g)
    maintain(g)
    check(g)


def test_nodes_that_come_after_their_edges(g: Graph) -> None:
    """What leaves them is found by one query, what arrives by several, and what reads them by others."""
    g.put_many(Placed(source=f"C{number}", target="I1", balance=Decimal(number)) for number in range(3))
    g.put_many(Contains(source="I1", target=f"B{number}") for number in range(3))
    g.put_many(Follows(source=f"N{number}", target="N0") for number in range(1, 4))
    maintain(g)
    g.put_many([Invoice(id="I1", kind="y"), Person(id="N0"), *(Customer(id=f"C{number}") for number in range(3))])
    maintain(g)
    g.put_many(Bill(id=f"B{number}", amount=Decimal(number)) for number in range(3))
    g.update(Invoice, "I1", kind="x")
    maintain(g)
    check(g)
    assert g.get(Customer, "C1").worth == 3  # type: ignore[union-attr]


def test_a_cycle_is_seen_whatever_else_leads_there(g: Graph) -> None:
    g.put_many(Part(id=f"P{number}", cost=1) for number in range(6))
    g.put_many(Uses(source=f"P{number}", target="P5") for number in range(4))
    g.put(Uses(source="P4", target="P3"))
    maintain(g)
    g.put_many([Uses(source="P5", target="P4"), Uses(source="P5", target="P0")])
    report = maintain(g)
    assert len(report.set_aside) == 6, "two edges, each for three fields"
    check(g)
    assert g.health().set_aside == 6
    g.disconnect(Uses, "P3", "P5")
    g.disconnect(Uses, "P0", "P5")
    assert maintain(g).set_aside == ()
    check(g)
    assert g.health().set_aside == 0


def test_nodes_are_counted_anew(g: Graph) -> None:
    happen(g)
    maintain(g)
    layout, items = g._layout, stored(g)
    ranks = [item for item in items if is_rank(layout, item)]
    Vandals(g, random.Random(0), touches_ranks=True).miscount_each(Customer, "invoices")
    kind = layout.schema.node(Customer)
    texts = ["CUSTOMER#C1", "CUSTOMER#C2"]
    with strictly(g):
        run(finish(layout, kind, run(begin(layout, kind, texts), g._store), Tally()), g._store)
    check(g)
    left = [item for item in stored(g) if is_rank(layout, item)]
    assert len(left) == len(ranks)
    assert [item for item in left if item in ranks and item["PK"]["S"].startswith("CUSTOMER")] == [], "of a life before"


def test_what_a_deletion_leaves_is_looked_at_strictly(g: Graph) -> None:
    """Extremes that go, nodes that come back, and edges that were set aside."""
    happen(g)
    maintain(g)
    for number in (3, 0):
        g.disconnect(Placed, "C1", f"I{number}")
        maintain(g)
        check(g)
    g.delete(Customer, "C1")
    g.put(Placed(source="C1", target="I3", balance=Decimal(1)))
    maintain(g)
    g.put(Customer(id="C1"))
    maintain(g)
    check(g)
