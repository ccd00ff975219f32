"""Shop: what a customer owes, stored on the customer and kept up to date as invoices are added, changed and removed.

    PK            SK                  attributes
    CUSTOMER#C1   #META               name; and invoices, owed and largest, which adjoin maintains
    CUSTOMER#C1   PLACED#INVOICE#I1   balance; and the customer's name, which adjoin maintains too

The customer is read in one request, however many invoices there are.
"""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Annotated

from adjoin import AdjacencyList, Copy, Count, Edge, Graph, MaintenanceReport, Max, Node, Sum


class Customer(Node):
    id: str
    name: str
    invoices: Annotated[int, Count("Placed")] = 0
    owed: Annotated[Decimal, Sum("Placed", field="balance")] = Decimal(0)
    largest: Annotated[Decimal | None, Max("Placed", field="balance")] = None


class Invoice(Node):
    id: str


class Placed(Edge[Customer, Invoice]):
    balance: Decimal
    customer: Annotated[str, Copy("source.name")] = ""


MODELS = (Customer, Invoice, Placed)

LAYOUT = AdjacencyList(table="Shop")

SAMPLE = (
    Customer(id="C1", name="Ann Lee"),
    Invoice(id="I1"),
    Invoice(id="I2"),
    Placed(source="C1", target="I1", balance=Decimal("150.50")),
    Placed(source="C1", target="I2", balance=Decimal("60.00")),
)


def open_graph(location: str | os.PathLike[str] = ":memory:") -> Graph:
    return Graph(location, MODELS, LAYOUT)


# --- access patterns ---------------------------------------------------------------------------


def stream_applied(g: Graph) -> MaintenanceReport:
    """apply the change stream: exact, even if changes come twice, late or after a crash"""
    return g.maintain(once=True)


def customer_with_aggregates(g: Graph) -> Customer | None:
    """what a customer owes, without reading an invoice"""
    return g.get(Customer, "C1")


def invoice_gone(g: Graph) -> Customer | None:
    """remove the largest invoice: the next one becomes the largest"""
    g.disconnect(Placed, "C1", "I1")
    g.maintain(once=True)
    return g.get(Customer, "C1")


def customer_renamed(g: Graph) -> list[Placed]:
    """rename a customer: the copied name on the edges follows"""
    g.update(Customer, "C1", name="Ann Diaz")
    g.maintain(once=True)
    return list(g.out("C1", Placed))


def cost_of_another_name(g: Graph) -> str:
    """what renaming a customer with 10,000 invoices would cost, before it is done"""
    (fan_out,) = g.explain(g.update, Customer, "C1", name="Ann").fan_outs
    return f"{fan_out.wcu(edges=10_000):,.0f} write units, {fan_out.dollars(edges=10_000):.2f} dollars"


PATTERNS = (stream_applied, customer_with_aggregates, invoice_gone, customer_renamed, cost_of_another_name)
