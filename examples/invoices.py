"""InvoiceAndBills: invoices of customers, made up of bills. A bill may be split over several invoices.

    PK       SK       (GSI_1: SK is the partition key)
    I#506    I#506    the invoice itself
    I#506    C#1317   its customer
    I#506    B#3392   a bill on it
    B#3392   B#3392   the bill itself

A node's sort key is its own key, and an edge's sort key is the key of its target. So the index over
SK alone holds, under one key, a node and all edges that point to it. The key of an item shows its class, so
no type attribute is needed.
"""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from typing import Any

from adjoin import AdjacencyList, Edge, Graph, Index, Node, Throughput


class Customer(Node, label="C"):
    id: str
    name: str
    city: str


class Invoice(Node, label="I"):
    id: str
    issued: dt.date
    total: Decimal


class Bill(Node, label="B"):
    id: str
    service: str
    amount: Decimal


class BilledTo(Edge[Invoice, Customer]):
    """The customer's name is repeated here, so that an invoice can be shown without a second request."""

    name: str


class Contains(Edge[Invoice, Bill]):
    """`share` is the part of the bill that this invoice asks for."""

    service: str
    share: Decimal


MODELS = (Customer, Invoice, Bill, BilledTo, Contains)

LAYOUT = AdjacencyList(
    table="InvoiceAndBills",
    partition_key="PK",
    sort_key="SK",
    node="{node}",
    edge="{target}",
    type_attribute=None,
    reverse=Index("GSI_1", "SK", throughput=Throughput(read=100, write=100)),
    throughput=Throughput(read=100, write=100),
)

SAMPLE = (
    Customer(id="1317", name="Ann Lee", city="Lisbon"),
    Customer(id="506", name="Omar Diaz", city="Porto"),
    Invoice(id="506", issued=dt.date(2024, 3, 1), total=Decimal("150.50")),
    Invoice(id="1721", issued=dt.date(2024, 4, 1), total=Decimal("60.00")),
    Invoice(id="1317", issued=dt.date(2024, 4, 2), total=Decimal("19.99")),
    Bill(id="3392", service="Hosting", amount=Decimal("120.00")),
    Bill(id="4417", service="Support", amount=Decimal("110.49")),
    BilledTo(source="506", target="1317", name="Ann Lee"),
    BilledTo(source="1721", target="1317", name="Ann Lee"),
    BilledTo(source="1317", target="506", name="Omar Diaz"),
    Contains(source="506", target="3392", service="Hosting", share=Decimal("60.00")),
    Contains(source="506", target="4417", service="Support", share=Decimal("90.50")),
    Contains(source="1721", target="3392", service="Hosting", share=Decimal("60.00")),
    Contains(source="1317", target="4417", service="Support", share=Decimal("19.99")),
)


def open_graph(location: str | os.PathLike[str] = ":memory:") -> Graph:
    return Graph(location, MODELS, LAYOUT)


# --- access patterns ---------------------------------------------------------------------------


def invoice_with_customer_and_bills(g: Graph) -> tuple[Invoice | None, list[Edge[Any, Any]]]:
    """an invoice with its customer and its bills"""
    found = g.collection(Invoice.ref("506"))
    return found.node, found.edges


def invoice_ids_of_customer(g: Graph) -> list[str]:
    """all invoice ids of a customer"""
    return [edge.source for edge in g.into(Customer.ref("1317"), BilledTo)]


def bill_with_invoices(g: Graph) -> tuple[Bill | None, list[Edge[Any, Any]]]:
    """a bill with the invoices it is on"""
    found = g.collection(Bill.ref("3392"), direction="into")
    return found.node, found.edges


PATTERNS = (
    invoice_with_customer_and_bills,
    invoice_ids_of_customer,
    bill_with_invoices,
)
