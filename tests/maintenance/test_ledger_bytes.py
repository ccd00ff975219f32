"""How many bytes a ledger has, as the cost model says: a sum of fixed parts and of the key of its edge."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import Count, Edge, Graph, Max, Node, Sum
from adjoin.plans.counting.ledger import edge_of
from adjoin.values import item_size
from tests.maintenance.ledgers import is_ledger
from tests.maintenance.simulation import stored
from tests.maintenance.test_costs import Follows, Person


class Customer(Node):
    id: str
    invoices: Annotated[int, Count("Placed")] = 0
    owed: Annotated[Decimal, Sum("Placed", field="balance")] = Decimal(0)
    largest: Annotated[Decimal | None, Max("Pays", field="balance")] = None


class Invoice(Node):
    id: str
    lines: Annotated[int, Count("Bills", direction="into")] = 0


class Placed(Edge[Customer, Invoice]):
    balance: Decimal


class Pays(Edge[Customer, Invoice]):
    balance: Decimal


class Bills(Edge[Customer, Invoice]):
    balance: Decimal


@pytest.fixture
def g() -> Iterator[Graph]:
    with Graph(":memory:", [Customer, Invoice, Placed, Pays, Bills, Person, Follows]) as graph:
        yield graph


NAMES, MARKS = len("PK" + "SK"), len("#=" + "=E#")
EACH_END, EACH_RULE, IN_ORDER = 24, 6 + 2, 34 + 2 + len("p501.7")
FIXED = {
    Placed: EACH_END + 2 * EACH_RULE,
    Pays: EACH_END + IN_ORDER,
    Bills: EACH_END + EACH_RULE + len("INVOICE#") + 4,
    Follows: 2 * EACH_END + 3 * EACH_RULE + len("PERSON#") + 4,
}


@pytest.mark.parametrize(("source", "target"), [("a", "b"), ("a" * 7, "b" * 30), ("a" * 36, "b" * 36)])
@pytest.mark.parametrize("model", [Placed, Pays, Bills, Follows])
def test_bytes_follow_from_the_key_of_the_edge(g: Graph, model: Any, source: str, target: str) -> None:
    edge = model(source=source, target=target, balance=Decimal(7))
    near, far = (Person, Person) if model is Follows else (Customer, Invoice)
    g.put_many([near(id=source), far(id=target)])
    g.put(edge)
    g.maintain(once=True)
    (ledger,) = (item for item in stored(g) if is_ledger(item))
    key = sum(len(part["S"]) for part in edge_of(g._layout, ledger).values())
    beside_target = len(target) if model in (Bills, Follows) else 0
    told = NAMES + MARKS + key + beside_target + FIXED[model]
    assert item_size(ledger) == told
    assert g.explain(g.put, edge).countings[0].bytes == told


@pytest.mark.parametrize(("model", "longest"), [(Placed, 38), (Follows, 12)])
def test_150_bytes_hold_ids_that_are_not_long(g: Graph, model: Any, longest: int) -> None:
    def size(length: int) -> int:
        edge = model(source="a" * length, target="b" * length, balance=Decimal(7))
        return g.explain(g.put, edge).countings[0].bytes

    assert size(longest) <= 150 < size(longest + 1)
