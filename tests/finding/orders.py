"""People and their orders, in declared indexes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum

from adjoin import AdjacencyList, Edge, Index, Keys, Node, Projection


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Order(Node):
    id: str
    customer: str
    number: int
    warehouse: str
    status: str = "open"
    total: Decimal = Decimal(0)
    created: dt.datetime
    shipped: dt.date | None = None
    size: Size = Size.SMALL


class Person(Node):
    id: str
    name: str
    age: int = 0


class Bought(Edge[Person, Order]):
    at: dt.date
    rating: int | None = None


LAYOUT = AdjacencyList(
    reverse=None,
    indexes=[
        Index("ByWarehouse", "GSI2PK", "GSI2SK"),
        Index("ByStatus", "status", "created"),
        Index("ByTotal", "customer", "total"),
        Index("ByNumber", "customer", "number", projection=Projection("KEYS_ONLY")),
        Index("ByName", "GSIPK", "Data", shards=4, types={"GSIPK": "N"}),
        Index("ByRating", "rating"),
        Index("Into", "SK", "at"),
    ],
    keys={
        Order: Keys(
            partition="o#{id}",
            sort="o#{id}",
            indexes={"ByWarehouse": ("w#{warehouse}|{size}", "{shipped:%Y-%m}#{number:08}#{customer}")},
        ),
        Person: Keys(partition="p#{id}", sort="p", indexes={"ByName": ("{shard}", "{name}")}),
        Bought: Keys(partition="{source}", sort="{target}"),
    },
)


def order(at: int) -> Order:
    return Order(
        id=f"O{at}",
        customer=f"c{at % 3}",
        number=at * 7 % 40,
        warehouse=f"W{at % 2}",
        status="open" if at % 3 else "done",
        total=Decimal(at * 13 % 50) - 20,
        created=dt.datetime(2026, 1, 1) + dt.timedelta(hours=at * 5),
        shipped=dt.date(2026, 1, 15) + dt.timedelta(days=at) if at % 4 else None,
        size=Size.LARGE if at % 5 == 0 else Size.SMALL,
    )


ORDERS = [order(at) for at in range(60)]

DAY = dt.date(2026, 2, 3)


class Match(Node):
    id: str
    game: str
    map: str
    mode: str | None = None
    opened: int = 0
