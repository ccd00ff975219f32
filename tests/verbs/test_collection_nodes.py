"""`collection(…).nodes()`: a node with its edges and the nodes at their far ends, in two rounds."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import Child, Edge, Node
from tests.verbs.conftest import Everywhere


class Customer(Node):
    id: str
    name: str = ""


class Invoice(Node):
    id: str
    total: int = 0


class Bill(Node):
    id: str
    amount: int = 0


class Remark(Child[Invoice], key=("number",)):
    number: int


class BilledTo(Edge[Invoice, Customer]):
    share: int = 100


class Contains(Edge[Invoice, Bill]):
    pass


class Concerns(Edge[Invoice, Customer | Bill]):
    pass


class Linked(Edge[Invoice, Invoice], symmetric=True):
    pass


MODELS: list[Any] = [Customer, Invoice, Bill, Remark, BilledTo, Contains, Concerns, Linked]
ANN, BILLS = Customer(id="1", name="Ann"), [Bill(id=str(number), amount=number) for number in range(3)]
INVOICE, OTHER = Invoice(id="506", total=3), Invoice(id="507")


@pytest.fixture
def g(everywhere: Everywhere) -> Any:
    graph = everywhere(MODELS)
    graph.put_many([ANN, *BILLS, INVOICE, OTHER, Remark(parent="506", number=1)])
    graph.put_many(Contains(source="506", target=bill) for bill in BILLS)
    graph.put_many([BilledTo(source="506", target="1"), Contains(source="506", target="gone")])
    graph.put_many([Concerns(source="506", target=ANN), Concerns(source="506", target=BILLS[2])])
    graph.put(Linked(source="507", target="506"))
    return graph


def test_everything_about_an_invoice_in_two_rounds(g: Any) -> None:
    with g.meter() as meter:
        found = g.collection(Invoice.ref("506")).nodes()
    assert (meter.requests, meter.rounds) == (2, 2), "each node is read once, however many edges lead to it"
    assert found.node == INVOICE
    assert found.children == [Remark(parent="506", number=1)]
    assert found.others == []
    assert found.of(BilledTo) == [(BilledTo(source="506", target="1"), ANN)]
    assert [bill for _, bill in found.of(Contains)] == BILLS, "an edge to nowhere is left out"
    assert sorted(node.id for _, node in found.of(Concerns)) == ["1", "2"]
    assert [node for _, node in found.of(Linked)] == [OTHER]
    assert len(found) == len(list(found)) == 7


def test_edges_that_arrive(g: Any) -> None:
    found = g.collection(Customer.ref("1"), direction="into").nodes()
    assert {(type(edge), node.id) for edge, node in found} == {(BilledTo, "506"), (Concerns, "506")}
    nothing = g.collection(Customer.ref("9")).nodes()
    assert (nothing.node, nothing.pairs) == (None, [])
