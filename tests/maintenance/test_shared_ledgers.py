"""A ledger that a writer and a maintainer share: whoever writes a part of it says which edge it is of.

A count in the transaction is taken down by the writer, and one that is maintained by the maintainer, in one item. The
writer's part may be the last and go, with the item, between what the maintainer read and what it writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Count, Edge, Graph, Keys, Node
from adjoin.plans.counting.ledger import ref_beside
from adjoin.requests import Request, TransactWrite, Update
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item
from tests.faults import FaultyStore
from tests.maintenance.ledgers import is_ledger
from tests.maintenance.simulation import stored


class Reader(Node):
    id: str
    loans: Annotated[int, Count("Loan", consistency="transaction")] = 0


class Book(Node):
    id: str
    readers: Annotated[int, Count("Loan")] = 0


class Loan(Edge[Reader, Book]):
    pass


def is_of_a_ledger(request: Request) -> bool:
    return isinstance(request, TransactWrite) and any(
        isinstance(each, Update) and each.key["SK"]["S"].startswith("=E#") for each in request.writes
    )


def test_a_part_that_is_written_when_the_other_has_gone_makes_a_whole_ledger() -> None:
    store = FaultyStore(SQLiteStore(":memory:"))
    writer = Graph(store.inner, [Reader, Book, Loan])
    writer.put_many([Reader(id="R1"), Book(id="B1")])
    writer.connect(Loan, "R1", "B1")
    steps: list[Callable[[], object]] = [
        lambda: writer.disconnect(Loan, "R1", "B1"),
        lambda: writer.connect(Loan, "R1", "B1"),
    ]

    def come_between(_: int, request: Request) -> None:
        """The edge goes before the maintainer writes its part, and comes again before it has seen that."""
        if steps and (len(steps) == 1 or is_of_a_ledger(request)):
            steps.pop(0)()

    maintainer = Graph(store, [Reader, Book, Loan])
    store.fault = come_between
    maintainer.maintain(once=True)
    assert not steps, "the maintainer was about to write its part"
    book, reader = writer.get(Book, "B1"), writer.get(Reader, "R1")
    assert book is not None
    assert reader is not None
    assert (book.readers, reader.loans) == (1, 1)
    assert writer.verify().findings == ()
    store.close()


# --- how a ledger names its edge ---------------------------------------------------------------


class Order(Node):
    id: str
    lines: Annotated[int, Count("Line")] = 0


class Product(Node):
    id: str


class Line(Edge[Order, Product]):
    product: str


OWN: dict[type[Any], Keys] = {Order: Keys(partition="ORDER#{id}", sort="O"), Product: Keys(partition="{id}", sort="P")}
TOLD = AdjacencyList(keys={**OWN, Line: Keys(sort="LINE#{target}", reverse_partition="{target}")})
BY_A_FIELD = AdjacencyList(keys={**OWN, Line: Keys(sort="LINE#{product}", reverse_partition="{product}")})


@pytest.mark.parametrize(
    ("layout", "names"), [(TOLD, {}), (BY_A_FIELD, {"t": {"S": "P1"}})], ids=["told", "by a field"]
)
def test_a_ledger_names_a_target_that_no_key_tells(layout: AdjacencyList, names: Item) -> None:
    with Graph(":memory:", [Order, Product, Line], layout) as g:
        g.put_many([Order(id="O1"), Product(id="P1"), Line(source="O1", target="P1", product="P1")])
        g.maintain(once=True)
        (ledger,) = filter(is_ledger, stored(g))
        assert {name: ledger[name] for name in ledger.keys() & {"s", "t", "e"}} == names
        (group,) = g._layout.rules.groups
        # The edge may have gone, so the ledger alone has to say where it led.
        assert ref_beside(g._layout, group, ledger).target == "P1"
