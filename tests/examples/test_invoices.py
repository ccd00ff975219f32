"""The InvoiceAndBills table: keys, index and throughput of its documents, and its access patterns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from adjoin import Graph
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition, Throughput
from examples import invoices
from examples.invoices import Bill, BilledTo, Contains, Customer, Invoice
from tests.examples.raw import in_order, stored_items, table_definition, write_items

# PK and SK are those of the documents (B#3392, I#506, C#1317; I#1721, C#506, I#1317).
DOCUMENT: list[dict[str, Any]] = [
    {"PK": "C#1317", "SK": "C#1317", "name": "Ann Lee", "city": "Lisbon"},
    {"PK": "C#506", "SK": "C#506", "name": "Omar Diaz", "city": "Porto"},
    {"PK": "I#506", "SK": "I#506", "issued": "2024-03-01", "total": Decimal("150.5")},
    {"PK": "I#1721", "SK": "I#1721", "issued": "2024-04-01", "total": 60},
    {"PK": "I#1317", "SK": "I#1317", "issued": "2024-04-02", "total": Decimal("19.99")},
    {"PK": "B#3392", "SK": "B#3392", "service": "Hosting", "amount": 120},
    {"PK": "B#4417", "SK": "B#4417", "service": "Support", "amount": Decimal("110.49")},
    {"PK": "I#506", "SK": "C#1317", "name": "Ann Lee"},
    {"PK": "I#1721", "SK": "C#1317", "name": "Ann Lee"},
    {"PK": "I#1317", "SK": "C#506", "name": "Omar Diaz"},
    {"PK": "I#506", "SK": "B#3392", "service": "Hosting", "share": 60},
    {"PK": "I#506", "SK": "B#4417", "service": "Support", "share": Decimal("90.5")},
    {"PK": "I#1721", "SK": "B#3392", "service": "Hosting", "share": 60},
    {"PK": "I#1317", "SK": "B#4417", "service": "Support", "share": Decimal("19.99")},
]

TABLE = TableDefinition(
    "InvoiceAndBills",
    KeyAttribute("PK"),
    KeyAttribute("SK"),
    (IndexDefinition("GSI_1", KeyAttribute("SK"), None, Projection("ALL"), throughput=Throughput(100, 100)),),
    throughput=Throughput(100, 100),
)


@pytest.fixture(params=["by adjoin", "by another program"])
def g(request: pytest.FixtureRequest) -> Iterator[Graph]:
    with invoices.open_graph() as graph:
        if request.param == "by adjoin":
            graph.put_many(invoices.SAMPLE)
        else:
            write_items(graph, "InvoiceAndBills", DOCUMENT)
        yield graph


def test_the_table_is_the_documents_table(g: Graph) -> None:
    assert table_definition(g, "InvoiceAndBills") == TABLE


def test_stored_items_have_the_documents_keys(g: Graph) -> None:
    assert in_order(stored_items(g, "InvoiceAndBills")) == in_order(DOCUMENT)


def test_every_item_is_in_the_index_under_its_sort_key(g: Graph) -> None:
    entries = stored_items(g, "InvoiceAndBills", "GSI_1")
    assert in_order(entries) == in_order(DOCUMENT)
    assert [entry["SK"] for entry in entries] == sorted(entry["SK"] for entry in entries)


def test_an_invoice_with_its_customer_and_bills_in_one_query(g: Graph) -> None:
    with g.meter() as m:
        invoice, edges = invoices.invoice_with_customer_and_bills(g)
    assert invoice == Invoice(id="506", issued=dt.date(2024, 3, 1), total=Decimal("150.50"))
    assert edges == [
        Contains(source="506", target="3392", service="Hosting", share=Decimal(60)),
        Contains(source="506", target="4417", service="Support", share=Decimal("90.5")),
        BilledTo(source="506", target="1317", name="Ann Lee"),
    ]
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (1, 1, 0.5, 0)


def test_all_invoice_ids_of_a_customer(g: Graph) -> None:
    with g.meter() as m:
        found = invoices.invoice_ids_of_customer(g)
    assert sorted(found) == ["1721", "506"]
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (1, 1, 0.5, 0)
    assert m.tables["InvoiceAndBills"].indexes["GSI_1"].rcu == 0.5


def test_a_bill_with_its_invoices_in_one_query(g: Graph) -> None:
    with g.meter() as m:
        bill, edges = invoices.bill_with_invoices(g)
    assert bill == Bill(id="3392", service="Hosting", amount=Decimal(120))
    assert sorted(edge.source for edge in edges) == ["1721", "506"]
    assert {type(edge) for edge in edges} == {Contains}
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (1, 1, 0.5, 0)
    assert m.tables["InvoiceAndBills"].indexes["GSI_1"].rcu == 0.5


def test_bills_and_customers_of_an_invoice_are_told_apart_by_their_keys(g: Graph) -> None:
    assert [edge.target for edge in g.out("506", Contains)] == ["3392", "4417"]
    assert [edge.target for edge in g.out("506", BilledTo)] == ["1317"]


def test_a_customer_goes_with_the_edges_at_it(g: Graph) -> None:
    assert g.delete(Customer, "1317")
    keys = {(item["PK"], item["SK"]) for item in stored_items(g, "InvoiceAndBills")}
    assert keys == {(item["PK"], item["SK"]) for item in DOCUMENT if item["SK"] != "C#1317"}
