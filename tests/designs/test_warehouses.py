"""An online shop with warehouses, invoices and shipments, as the service's documentation designs it: one table, and two
indexes that every class uses for something else."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from pydantic.alias_generators import to_pascal

from adjoin import AdjacencyList, Child, Edge, Graph, Index, InvalidModel, Keys, Node, field
from adjoin.values import Item, encode
from tests.designs.table_of_others import STORES, asked, filled, stored
from tests.servers.open import Stores


class Customer(Node, label="customer", alias_generator=to_pascal):
    id: str
    name: str
    email: str


class Product(Node, label="product", alias_generator=to_pascal):
    id: str
    detail: dict[str, Any]


class Warehouse(Node, label="warehouse", alias_generator=to_pascal):
    id: str
    address: dict[str, str]


class Order(Node):
    """The partition of an order. It has no item of its own: who ordered is an edge."""

    id: str


class Ordered(Edge[Order, Customer], label="order", alias_generator=to_pascal):
    date: dt.date


class Inventory(Edge[Product, Warehouse], label="warehouseItem", alias_generator=to_pascal):
    quantity: int


class OrderItem(Edge[Order, Product], label="orderItem", alias_generator=to_pascal):
    quantity: int
    price: Decimal
    date: dt.date
    customer: str


class Invoice(Child[Order], label="invoice", alias_generator=to_pascal):
    id: str
    date: dt.date
    customer: str
    amount: Decimal
    payments: list[dict[str, Any]] = []


class Shipment(Child[Order], label="shipment", alias_generator=to_pascal):
    id: str
    warehouse: str
    address: dict[str, str]
    products: list[str] = []


MODELS: list[Any] = [Customer, Product, Warehouse, Order, Ordered, Inventory, OrderItem, Invoice, Shipment]
LAYOUT = AdjacencyList(
    table="OnlineShop",
    type_attribute="EntityType",
    reverse=None,
    indexes=[Index("GSI1", "GSI1-PK", "GSI1-SK"), Index("GSI2", "GSI2-PK", "GSI2-SK")],
    keys={
        Customer: Keys("c#{id}", "c#{id}"),
        Product: Keys("p#{id}", "p#{id}"),
        Warehouse: Keys("w#{id}", "w#{id}"),
        Order: Keys("o#{id}", "o#{id}"),
        Ordered: Keys(sort="c#{target.id}"),
        Inventory: Keys(sort="w#{target.id}", indexes={"GSI2": ("w#{target.id}", "p#{source.id}")}),
        OrderItem: Keys(
            sort="p#{target.id}",
            indexes={"GSI1": ("p#{target.id}", "{date}"), "GSI2": ("c#{customer}", "{date}")},
            only_in_keys=["date", "customer"],
        ),
        Invoice: Keys(
            sort="i#{id}",
            indexes={"GSI1": ("i#{id}", "i#{id}"), "GSI2": ("c#{customer}", "i#{date}")},
            only_in_keys=["customer"],
        ),
        Shipment: Keys(
            sort="sh#{id}",
            indexes={"GSI1": ("sh#{id}", "sh#{id}"), "GSI2": ("w#{warehouse}", "sh#{id}")},
            only_in_keys=["warehouse"],
        ),
    },
)


def item(key: str, sort: str, type: str, *index_keys: str, **more: Any) -> Item:
    names = ("GSI1-PK", "GSI1-SK", "GSI2-PK", "GSI2-SK")
    keys = {name: value for name, value in zip(names, index_keys, strict=False) if value}
    return {name: encode(value) for name, value in {"PK": key, "SK": sort, "EntityType": type, **keys, **more}.items()}


def order_item(order: str, product: str, customer: str, day: str, quantity: int, price: int) -> Item:
    keys = (f"p#{product}", day, f"c#{customer}", day)
    return item(f"o#{order}", f"p#{product}", "orderItem", *keys, Quantity=quantity, Price=price)


def invoice(order: str, id: str, customer: str, day: str, amount: int, *payments: Any) -> Item:
    keys = (f"i#{id}", f"i#{id}", f"c#{customer}", f"i#{day}")
    return item(f"o#{order}", f"i#{id}", "invoice", *keys, Date=day, Amount=amount, Payments=list(payments))


def shipment(order: str, id: str, warehouse: str, *products: str) -> Item:
    keys = (f"sh#{id}", f"sh#{id}", f"w#{warehouse}", f"sh#{id}")
    return item(f"o#{order}", f"sh#{id}", "shipment", *keys, Address={"City": "Oulu"}, Products=list(products))


def stock(product: str, warehouse: str, quantity: int) -> Item:
    keys = ("", "", f"w#{warehouse}", f"p#{product}")
    return item(f"p#{product}", f"w#{warehouse}", "warehouseItem", *keys, Quantity=quantity)


CARD = {"Type": "card", "Amount": 40}
ITEMS = [
    item("c#71", "c#71", "customer", Name="Ines", Email="ines@shop.example"),
    item("p#5", "p#5", "product", Detail={"Name": "kettle", "Price": 20}),
    item("p#50", "p#50", "product", Detail={"Name": "toaster", "Price": 25}),
    item("w#1", "w#1", "warehouse", Address={"City": "Turku"}),
    item("w#2", "w#2", "warehouse", Address={"City": "Vaasa"}),
    stock("5", "1", 12),
    stock("5", "2", 3),
    stock("50", "1", 7),
    item("o#900", "c#71", "order", Date="2024-06-01"),
    order_item("900", "5", "71", "2024-06-01", 2, 20),
    order_item("900", "50", "71", "2024-06-01", 1, 25),
    invoice("900", "55", "71", "2024-06-02", 65, CARD, {"Type": "gift", "Amount": 25}),
    shipment("900", "88", "1", "5", "50"),
    shipment("900", "89", "2", "5"),
    item("o#901", "c#71", "order", Date="2024-07-09"),
    order_item("901", "5", "71", "2024-07-09", 1, 20),
    invoice("901", "56", "71", "2024-07-10", 20),
    shipment("901", "90", "1", "5"),
]
STRAY = item("o#900", "r#1", "return", "p#5", "2024-06-20", Reason="too loud")


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, [*ITEMS, STRAY]) as graph:
        yield graph


def test_by_ids(g: Graph) -> None:
    """The first three patterns: a customer, a product, a warehouse."""
    assert asked(g, g.get, Customer, "71") == (Customer(id="71", name="Ines", email="ines@shop.example"), 1)
    assert asked(g, g.get, Product, "5") == (Product(id="5", detail={"Name": "kettle", "Price": 20}), 1)
    assert asked(g, g.get, Warehouse, "2") == (Warehouse(id="2", address={"City": "Vaasa"}), 1)


def test_the_inventory_from_both_sides(g: Graph) -> None:
    found, requests = asked(g, g.out("5", Inventory))
    assert ([(each.target, each.quantity) for each in found], requests) == ([("1", 12), ("2", 3)], 1)
    found, requests = asked(g, g.into("1", Inventory))
    assert ([(each.source, each.quantity) for each in found], requests) == ([("5", 12), ("50", 7)], 1)


def test_an_order(g: Graph) -> None:
    around, requests = asked(g, g.collection(Order.ref("900")))
    assert ([type(each) for each in around.edges], requests) == ([Ordered, OrderItem, OrderItem], 1)
    assert [(type(each), each.id) for each in around.children] == [(Invoice, "55"), (Shipment, "88"), (Shipment, "89")]
    assert [each["Reason"] for each in around.others] == ["too loud"]
    found, requests = asked(g, g.out("900", OrderItem))
    assert ([(each.target, each.customer) for each in found], requests) == ([("5", "71"), ("50", "71")], 1)
    found, requests = asked(g, g.out("900", Ordered))
    assert ([(each.target, each.date) for each in found], requests) == ([("71", dt.date(2024, 6, 1))], 1)
    found, requests = asked(g, g.children("900", Invoice))
    assert ([each.amount for each in found], requests) == ([65], 1)
    found, requests = asked(g, g.children("900", Shipment))
    assert ([each.warehouse for each in found], requests) == (["1", "2"], 1)


def test_by_indexes(g: Graph) -> None:
    june = field("date").between(dt.date(2024, 6, 1), dt.date(2024, 6, 30))
    found, requests = asked(g, g.into(Product.ref("5"), OrderItem).between(dt.date(2024, 6, 1), dt.date(2024, 6, 30)))
    assert ([each.source for each in found], requests) == (["900"], 1)
    found, requests = asked(g, g.find(OrderItem, (field("target") == "5") & june))
    assert ([each.source for each in found], requests) == (["900"], 1)
    assert [each["Reason"] for each in g.index("GSI1").partition("p#5").others] == ["too loud"]
    found, requests = asked(g, g.find(Invoice, field("id") == "55"))
    assert ([(each.parent, len(each.payments)) for each in found], requests) == ([("900", 2)], 1)
    found, requests = asked(g, g.find(Shipment, field("id") == "88"))
    assert ([each.products for each in found], requests) == ([["5", "50"]], 1)
    found, requests = asked(g, g.find(Shipment, field("warehouse") == "1"))
    assert ([each.id for each in found], requests) == (["88", "90"], 1)
    found, requests = asked(g, g.index("GSI2").partition("w#1"))
    assert ([type(each) for each in found], requests) == ([Inventory, Inventory, Shipment, Shipment], 1)
    own = field("customer") == "71"
    found, requests = asked(g, g.find(Invoice, own & june))
    assert ([each.id for each in found], requests) == (["55"], 1)
    found, requests = asked(g, g.find(OrderItem, own & (field("date") > dt.date(2024, 6, 30))))
    assert ([each.target for each in found], requests) == (["5"], 1)


def test_everything_is_explained_or_kept(g: Graph) -> None:
    contents = g.scan().collect()
    assert len(contents.nodes) + len(contents.edges) == len(ITEMS)
    assert [each["Reason"] for each in contents.others] == ["too loud"]


def test_an_order_is_written(g: Graph) -> None:
    day = dt.date(2024, 8, 1)
    with g.transaction() as t:
        t.put(Ordered(source="902", target="71", date=day))
        t.put(OrderItem(source="902", target="50", quantity=3, price=Decimal(25), date=day, customer="71"))
        t.put(Invoice(parent="902", id="57", date=day, customer="71", amount=Decimal(75), payments=[CARD]))
        t.put(Shipment(parent="902", id="91", warehouse="1", address={"City": "Oulu"}, products=["50"]))
        t.update(Inventory, "50", "1", only_if=field("quantity") >= 3, quantity=field("quantity") - 3)
    assert stored(g, "o#902", "c#71") == item("o#902", "c#71", "order", Date="2024-08-01")
    assert stored(g, "o#902", "p#50") == order_item("902", "50", "71", "2024-08-01", 3, 25)
    assert stored(g, "o#902", "i#57") == invoice("902", "57", "71", "2024-08-01", 75, CARD)
    assert stored(g, "o#902", "sh#91") == shipment("902", "91", "1", "50")
    assert stored(g, "p#50", "w#1") == stock("50", "1", 4)
    g.update(Shipment, ("902", "91"), warehouse="2")
    assert stored(g, "o#902", "sh#91") == shipment("902", "91", "2", "50")
    g.update(OrderItem, "902", "50", date=dt.date(2024, 8, 2))
    assert stored(g, "o#902", "p#50") == order_item("902", "50", "71", "2024-08-02", 3, 25)
    g.connect(Inventory, "50", "2", quantity=9)
    assert stored(g, "p#50", "w#2") == stock("50", "2", 9)


def test_deletes(g: Graph) -> None:
    assert g.delete(Warehouse, "1")
    assert [each.target for each in g.out("5", Inventory)] == ["2"]
    assert stored(g, "p#50", "w#1") is None
    assert g.find(Shipment, field("warehouse") == "1").count() == 2
    with pytest.raises(InvalidModel, match="Ordered edges cannot be found from their target"):
        g.delete(Customer, "71")
    assert g.delete(Order, "900")
    assert stored(g, "o#900", "r#1") == STRAY
    assert g.collection(Order.ref("900")).edges == []
