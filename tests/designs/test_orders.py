"""An online shop's orders in one table: a customer and its orders in one partition, and a sparse index of open ones."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, Field
from pydantic.alias_generators import to_pascal

from adjoin import (
    AdjacencyList,
    Child,
    ConditionFailed,
    Graph,
    Index,
    Keys,
    Node,
    TransactionCanceled,
    field,
)
from adjoin.values import Item
from tests.designs.table_of_others import STORES, asked, filled, item, stored
from tests.servers.open import Stores


class Status(Enum):
    PLACED = "PLACED"
    SHIPPED = "SHIPPED"
    CANCELLED = "CANCELLED"


class Address(BaseModel, alias_generator=to_pascal, populate_by_name=True):
    street: str
    city: str


class Customer(Node, key="username", alias_generator=to_pascal):
    username: str
    email: str
    name: str
    addresses: dict[str, Address] = {}


class Email(Node, key="address", alias_generator=to_pascal):
    """The item that keeps an e-mail address unique."""

    address: str
    owner: str = Field(alias="Username")


class Order(Child[Customer], alias_generator=to_pascal):
    id: str
    created: dt.date = Field(alias="CreatedAt")
    status: Status
    amount: Decimal
    item_count: int = Field(alias="NumberItems")
    placed: str | None = Field(None, alias="PlacedId")


class Line(Node, key=("order", "number"), alias_generator=to_pascal):
    order: str
    number: int
    product: str
    price: Decimal
    quantity: int = 1


MODELS: list[Any] = [Customer, Email, Order, Line]
LAYOUT = AdjacencyList(
    table="Commerce",
    reverse=None,
    indexes=[
        Index("GSI1", "GSI1PK", "GSI1SK"),
        Index("GSI2", "GSI2PK", "GSI2SK"),
        Index("Placed", "PlacedId"),
    ],
    keys={
        Customer: Keys("CUSTOMER#{username}", "CUSTOMER#{username}", attributes={"Username": "{username}"}),
        Email: Keys("CUSTOMEREMAIL#{address}", "CUSTOMEREMAIL#{address}"),
        Order: Keys(
            sort="#ORDER#{id}",
            indexes={
                "GSI1": ("ORDER#{id}", "ORDER#{id}"),
                "GSI2": ("CUSTOMER#{parent.username}", "{status}#{created}"),
            },
            attributes={"OrderId": "{id}"},
        ),
        Line: Keys(
            "ORDER#{order}#ITEM#{number:03}",
            "ORDER#{order}#ITEM#{number:03}",
            indexes={"GSI1": ("ORDER#{order}", "ITEM#{number:03}")},
            attributes={"OrderId": "{order}", "ItemId": "{number}"},
        ),
    },
)


def customer(name: str, **more: Any) -> Item:
    key = f"CUSTOMER#{name}"
    return item(PK=key, SK=key, Username=name, Email=f"{name}@shop.example", Name=name.title(), **more)


def email(name: str) -> Item:
    key = f"CUSTOMEREMAIL#{name}@shop.example"
    return item(PK=key, SK=key, Username=name)


def order(name: str, id: str, day: str, status: str, amount: int, many: int = 1) -> Item:
    more = {"PlacedId": id} if status == "PLACED" else {}
    return item(
        PK=f"CUSTOMER#{name}",
        SK=f"#ORDER#{id}",
        GSI1PK=f"ORDER#{id}",
        GSI1SK=f"ORDER#{id}",
        GSI2PK=f"CUSTOMER#{name}",
        GSI2SK=f"{status}#{day}",
        OrderId=id,
        CreatedAt=day,
        Status=status,
        Amount=amount,
        NumberItems=many,
        **more,
    )


def line(of: str, number: int, product: str, price: int, quantity: int = 1) -> Item:
    key = f"ORDER#{of}#ITEM#{number:03}"
    keys = {"PK": key, "SK": key, "GSI1PK": f"ORDER#{of}", "GSI1SK": f"ITEM#{number:03}"}
    return item(**keys, OrderId=of, ItemId=number, Product=product, Price=price, Quantity=quantity)


HOME = {"Street": "1 Quay", "City": "Porto"}
A, B, C, D, E = (f"1VrgX{letter}kq7dH0aQ" for letter in "abcde")
ITEMS = [
    customer("ann", Addresses={"home": HOME, "work": {"Street": "2 Hill", "City": "Porto"}}),
    email("ann"),
    customer("ben", Addresses={}),
    email("ben"),
    order("ann", A, "2024-01-05", "SHIPPED", 50, 2),
    order("ann", B, "2024-02-07", "CANCELLED", 20),
    order("ann", C, "2024-03-01", "SHIPPED", 70),
    order("ann", D, "2024-03-09", "PLACED", 10),
    order("ben", E, "2024-03-10", "PLACED", 15),
    line(A, 1, "lamp", 30),
    line(A, 2, "bulb", 5, 4),
    line(D, 1, "cord", 10),
]
STRAY = item(PK="CUSTOMER#ann", SK="VISIT#1", GSI1PK=f"ORDER#{A}", GSI1SK="NOTE#1", Text="call first")


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, [*ITEMS, STRAY]) as graph:
        yield graph


def test_customers(g: Graph) -> None:
    found, requests = asked(g, g.get, Customer, "ann")
    assert (found.addresses["home"], requests) == (Address(street="1 Quay", city="Porto"), 1)
    found, requests = asked(g, g.get, Email, "ann@shop.example")
    assert (found.owner, requests) == ("ann", 1)
    # A customer with the newest orders: #ORDER# sorts before CUSTOMER#, so the query runs backwards.
    found, requests = asked(g, g.children("ann", Order).reverse().limit(2))
    assert ([each.id for each in found], requests) == ([D, C], 1)
    around, requests = asked(g, g.collection(Customer.ref("ann")))
    assert (around.node.name, [each.id for each in around.children], requests) == ("Ann", [A, B, C, D], 1)
    assert [each["Text"] for each in around.others] == ["call first"]
    pages = [g.children("ann", Order).reverse().page(limit=3)]
    pages.append(g.children("ann", Order).reverse().page(limit=3, after=pages[0].next))
    assert [[each.id for each in page] for page in pages] == [[D, C, B], [A]]


def test_orders(g: Graph) -> None:
    found, requests = asked(g, g.get, Order, ("ann", A))
    assert ((found.status, found.amount, found.created), requests) == ((Status.SHIPPED, 50, dt.date(2024, 1, 5)), 1)
    # Without the customer, by the order's own id.
    found, requests = asked(g, g.find(Order, field("id") == A).first)
    assert (found.parent, requests) == ("ann", 1)
    found, requests = asked(g, g.index("GSI1").partition(f"ORDER#{A}"))
    assert ([type(each) for each in found], requests) == ([Line, Line, Order], 1)
    assert g.index("GSI1").partition(f"ORDER#{A}").others.count() == 1
    found, requests = asked(g, g.find(Line, field("order") == A))
    assert ([(each.product, each.quantity) for each in found], requests) == ([("lamp", 1), ("bulb", 4)], 1)
    shipped = (field("parent") == "ann") & (field("status") == Status.SHIPPED)
    found, requests = asked(g, g.find(Order, shipped & (field("created") >= dt.date(2024, 2, 1))))
    assert ([each.id for each in found], requests) == ([C], 1)
    found, requests = asked(g, g.find(Order, shipped, order="created").reverse())
    assert ([each.id for each in found], requests) == ([C, A], 1)
    dates = field("created").between(dt.date(2024, 1, 1), dt.date(2024, 1, 31))
    assert [each.id for each in g.find(Order, shipped & dates)] == [A]


def test_placed_orders(g: Graph) -> None:
    found, requests = asked(g, g.index("Placed").partition(D))
    assert ([each.id for each in found], requests) == ([D], 1)
    found, requests = asked(g, g.find(Order, field("placed") == D))
    assert ([each.id for each in found], requests) == ([D], 1)


def test_everything_is_explained_or_kept(g: Graph) -> None:
    contents = g.scan().collect()
    assert len(contents.nodes) == len(ITEMS)
    assert [each["Text"] for each in contents.others] == ["call first"]


def test_customers_are_written(g: Graph) -> None:
    cy = Customer(username="cy", email="cy@shop.example", name="Cy")
    with g.transaction() as t:
        t.add(cy)
        t.add(Email(address="cy@shop.example", owner="cy"))
    assert stored(g, "CUSTOMER#cy", "CUSTOMER#cy") == customer("cy", Addresses={})
    assert stored(g, "CUSTOMEREMAIL#cy@shop.example", "CUSTOMEREMAIL#cy@shop.example") == email("cy")
    with pytest.raises(TransactionCanceled), g.transaction() as t:
        t.add(Customer(username="dee", email="cy@shop.example", name="Dee"))
        t.add(Email(address="cy@shop.example", owner="dee"))
    assert g.get(Customer, "dee") is None
    g.update(Customer, "cy", addresses={"home": Address(street="1 Quay", city="Porto")})
    assert stored(g, "CUSTOMER#cy", "CUSTOMER#cy") == customer("cy", Addresses={"home": HOME})
    stays = g.get(Customer, "ann")
    assert stays is not None
    g.put(stays)
    assert stored(g, "CUSTOMER#ann", "CUSTOMER#ann") == ITEMS[0]


def test_orders_are_written(g: Graph) -> None:
    id = "1VrgXfkq7dH0aQ"
    with g.transaction() as t:
        t.add(
            Order(
                parent="ben",
                id=id,
                created=dt.date(2024, 4, 1),
                status=Status.PLACED,
                amount=Decimal(45),
                item_count=2,
                placed=id,
            )
        )
        t.add(Line(order=id, number=1, product="lamp", price=Decimal(30)))
        t.add(Line(order=id, number=2, product="bulb", price=Decimal(5), quantity=3))
    assert stored(g, "CUSTOMER#ben", f"#ORDER#{id}") == order("ben", id, "2024-04-01", "PLACED", 45, 2)
    key = f"ORDER#{id}#ITEM#002"
    assert stored(g, key, key) == line(id, 2, "bulb", 5, 3)
    # The order leaves the sparse index, and moves in the index by status, only if it is still placed.
    is_placed = field("status") == Status.PLACED
    with g.meter() as meter:
        shipped = g.update(Order, ("ben", id), only_if=is_placed, status=Status.SHIPPED, placed=None)
    # The new key in the index has the date too, which is read first.
    assert (shipped.status, meter.requests) == (Status.SHIPPED, 2)
    assert stored(g, "CUSTOMER#ben", f"#ORDER#{id}") == order("ben", id, "2024-04-01", "SHIPPED", 45, 2)
    assert g.find(Order, field("placed") == id).count() == 0
    with pytest.raises(ConditionFailed):
        g.update(Order, ("ben", id), only_if=is_placed, status=Status.CANCELLED)
    assert [each.id for each in g.find(Order, (field("parent") == "ben") & (field("status") == Status.SHIPPED))] == [id]


def test_a_customer_is_deleted_with_its_orders(g: Graph) -> None:
    assert g.delete(Customer, "ann")
    assert g.get(Order, ("ann", A)) is None
    assert g.get(Order, ("ben", E)) is not None
    assert g.find(Line, field("order") == A).count() == 2
    assert stored(g, "CUSTOMER#ann", "VISIT#1") == STRAY
    assert g.scan().count() == len(ITEMS) - 5
