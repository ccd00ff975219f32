"""Employees and orders, as the service's documentation models a relational schema in one table: the sort key and one
attribute, `Data`, are the keys of an index that every class uses for something else.

    PK      SK               Data                 Bucket
    HR-E1   EMP-E1           Smith, John
    HR-E1   QUOTA-2017-Q1    05000
    HR-E1   HR-CONFIDENTIAL  2015-11-08
    HR-E1   WAREHOUSE-W1     2015-11-08
    OE-O1   ORDER-C1         2017-03-01T10:00:00  2
    OE-O1   LINE-P7          Lamp

GSI1 has SK and Data as its keys. GSI2 has orders by their time, in four buckets that are numbers. Customers and orders
have keys of the same form, and no two of them have the same id.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import (
    AdjacencyList,
    Child,
    Edge,
    Graph,
    Index,
    InvalidKey,
    InvalidValue,
    Keys,
    Node,
    Stored,
    UnknownField,
    field,
)
from tests.designs.table_of_items import STORES, asked, at, filled, item, others, stored
from tests.servers.open import Stores


class Employee(Node):
    id: str
    name: str = Field(alias="Data")


class Quota(Child[Employee], key=("year", "quarter")):
    year: int
    quarter: int
    amount: Annotated[int, Stored("05d")] = Field(alias="Data")


class Confidential(Child[Employee], key=()):
    hired: dt.date = Field(alias="Data")
    salary: int


class Warehouse(Node):
    id: str
    name: str = Field(alias="Data")


class WorksAt(Edge[Employee, Warehouse]):
    since: dt.date = Field(alias="Data")
    role: str = "picker"


class Customer(Node):
    id: str
    name: str = Field(alias="Data")


class Order(Node):
    id: str


class PlacedBy(Edge[Order, Customer]):
    at: dt.datetime = Field(alias="Data")
    status: str


class Product(Node):
    id: str
    name: str = Field(alias="Data")


class Line(Edge[Order, Product]):
    name: str = Field(alias="Data")
    quantity: int


MODELS: list[Any] = [Employee, Quota, Confidential, Warehouse, WorksAt, Customer, Order, PlacedBy, Product, Line]
LAYOUT = AdjacencyList(
    table="Relational",
    reverse=None,
    shared_ids=True,
    indexes=[Index("GSI1", "SK", "Data"), Index("GSI2", "Bucket", "Data", shards=4, types={"Bucket": "N"})],
    keys={
        Employee: Keys("HR-{id}", "EMP-{id}"),
        Quota: Keys(sort="QUOTA-{year}-Q{quarter}"),
        Confidential: Keys(sort="HR-CONFIDENTIAL"),
        Warehouse: Keys("W-{id}", "W-{id}"),
        WorksAt: Keys(sort="WAREHOUSE-{target.id}"),
        Customer: Keys("OE-{id}", "CUSTOMER-{id}"),
        Order: Keys("OE-{id}", "ORDER"),
        PlacedBy: Keys(sort="ORDER-{target.id}", indexes={"GSI2": "{shard}"}),
        Product: Keys("P-{id}", "P-{id}"),
        Line: Keys(sort="LINE-{target.id}"),
    },
)
ITEMS = [
    item("HR-E1", "EMP-E1", Data="Smith, John"),
    item("HR-E2", "EMP-E2", Data="Lee, Ann"),
    item("HR-E1", "QUOTA-2017-Q1", Data="05000"),
    item("HR-E2", "QUOTA-2017-Q1", Data="12000"),
    item("HR-E1", "QUOTA-2017-Q2", Data="09000"),
    item("HR-E1", "HR-CONFIDENTIAL", Data="2015-11-08", salary=1000),
    item("HR-E1", "WAREHOUSE-W1", Data="2015-11-08", role="picker"),
    item("HR-E2", "WAREHOUSE-W1", Data="2016-01-08", role="driver"),
    item("HR-E3", "WAREHOUSE-W1", Data="2019-01-08", role="picker"),
    item("W-W1", "W-W1", Data="Seattle"),
    item("OE-C1", "CUSTOMER-C1", Data="Acme"),
    item("OE-O1", "LINE-P7", Data="Lamp", quantity=3),
    item("P-P7", "P-P7", Data="Lamp"),
]
ORDERS = [
    item("OE-O1", "ORDER-C1", Data="2017-03-01T10:00:00", status="OPEN", Bucket=2),
    item("OE-O2", "ORDER-C1", Data="2017-03-02T10:00:00", status="DONE", Bucket=0),
    item("OE-O3", "ORDER-C2", Data="2017-03-03T10:00:00", status="OPEN", Bucket=3),
]
OTHERS = [item("HR-E1", "BADGE", Data="17")]
BUCKET = 1
"""The bucket that adjoin chooses for the first order."""


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, [*ITEMS, *ORDERS, *OTHERS]) as graph:
        yield graph


def sources(edges: Any) -> list[Any]:
    return [edge.source for edge in edges]


W1, C1 = Warehouse.ref("W1"), Customer.ref("C1")


def test_employees(g: Graph) -> None:
    around = g.collection(Employee.ref("E1"))
    assert asked(g, lambda: around.node, 1).name == "Smith, John"
    assert [type(each).__name__ for each in around.children] == ["Confidential", "Quota", "Quota"]
    assert asked(g, lambda: g.get(Confidential, ("E1",)), 1).salary == 1000
    quarters = asked(g, lambda: list(g.children("E1", Quota).within(year=2017)), 1)
    assert [each.amount for each in quarters] == [5000, 9000]
    best = (field("year") == 2017) & (field("quarter") == 1) & (field("amount") >= 6000)
    assert [each.parent for each in asked(g, lambda: list(g.find(Quota, best)), 1)] == ["E2"]
    first = (field("year") == 2017) & (field("quarter") == 1)
    assert [each.amount for each in asked(g, lambda: list(g.find(Quota, first, order="amount").reverse()), 1)] == [
        12000,
        5000,
    ]


def test_those_who_work_in_a_warehouse(g: Graph) -> None:
    here = g.into(W1, WorksAt)
    assert sources(asked(g, lambda: list(here), 1)) == ["E1", "E2", "E3"]
    assert sources(asked(g, lambda: list(here.reverse().limit(1)), 1)) == ["E3"]
    assert sources(asked(g, lambda: list(here.between(dt.date(2016, 1, 1), dt.date(2017, 1, 1))), 1)) == ["E2"]
    assert sources(here.between(None, dt.date(2016, 1, 8))) == ["E1", "E2"]
    assert sources(here.within(since=dt.date(2016, 1, 8))) == ["E2"]
    assert sources(here.begins_with("2016-")) == ["E2"]
    late = field("since") >= dt.date(2016, 1, 1)
    assert sources(asked(g, lambda: list(here.where(late)), 1)) == ["E2", "E3"]
    assert sources(here.where(late & (field("role") == "picker"))) == ["E3"]
    assert sources(here.where(late).where(field("role") == "driver")) == ["E2"]
    assert here.where(late).count() == 2
    page = here.where(late).page(limit=1)
    assert sources([*page, *here.where(late).page(limit=1, after=page.next)]) == ["E2", "E3"]
    assert sources(asked(g, lambda: list(g.find(WorksAt, (field("target") == "W1") & late)), 1)) == ["E2", "E3"]
    assert [node.name for _, node in here.where(late).nodes()] == ["Lee, Ann"]


def test_what_an_index_over_fields_refuses(g: Graph) -> None:
    here = g.into(W1, WorksAt)
    with pytest.raises(UnknownField, match="the sort key of WorksAt in this query has no field 'role'"):
        here.within(role="driver")
    with pytest.raises(InvalidValue, match="the sort key 'since' already has a value; between has nothing to work on"):
        here.within(since=dt.date(2016, 1, 8)).between(None, None)
    with pytest.raises(InvalidValue, match="give the lower value first"):
        here.between(dt.date(2017, 1, 1), dt.date(2016, 1, 1))
    with pytest.raises(InvalidValue, match="takes one condition on the sort key"):
        here.between(dt.date(2016, 1, 1), None).begins_with("2016")
    with pytest.raises(InvalidKey, match=r"the table needs source.id == …, then target.id; 'GSI1' needs target.id"):
        g.find(WorksAt, field("role") == "driver")


def test_orders(g: Graph) -> None:
    recent = (field("target") == "C1") & (field("at") >= dt.datetime(2017, 3, 2))
    assert sources(asked(g, lambda: list(g.find(PlacedBy, recent)), 1)) == ["O2"]
    everything = g.find(PlacedBy, order="at", index="GSI2")
    assert sources(asked(g, lambda: list(everything), 4)) == ["O1", "O2", "O3"]
    still = (field("at") > dt.datetime(2017, 3, 1, 12)) & (field("status") == "OPEN")
    assert sources(asked(g, lambda: list(g.find(PlacedBy, still)), 4)) == ["O3"]
    assert sources(asked(g, lambda: list(g.into(Product.ref("P7"), Line)), 1)) == ["O1"]
    assert sources(g.into(C1, PlacedBy).between(dt.datetime(2017, 3, 2), None)) == ["O2"]


def test_writes(g: Graph) -> None:
    before = stored(g)
    for each in list(g.scan()):
        g.put(each)
    # Also the buckets are those that another program chose.
    assert stored(g) == before
    g.put(PlacedBy(source="O1", target="C1", Data=dt.datetime(2017, 3, 1, 10), status="OPEN"))
    assert at(g, "OE-O1", "ORDER-C1") == {**ORDERS[0], "Bucket": {"N": str(BUCKET)}}
    assert others(g) == OTHERS
    asked(g, lambda: g.update(WorksAt, "E2", "W1", since=dt.date(2020, 1, 1)), 1)
    assert at(g, "HR-E2", "WAREHOUSE-W1") == item("HR-E2", "WAREHOUSE-W1", Data="2020-01-01", role="driver")
    assert sources(g.into(W1, WorksAt)) == ["E1", "E3", "E2"]
    g.put(Quota(parent="E2", year=2018, quarter=1, Data=70))
    assert at(g, "HR-E2", "QUOTA-2018-Q1") == item("HR-E2", "QUOTA-2018-Q1", Data="00070")
    g.delete(Employee, "E1")
    left = [each["SK"]["S"] for each in stored(g) if each["PK"]["S"] == "HR-E1"]
    assert left == ["BADGE"]
