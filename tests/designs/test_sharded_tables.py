"""A table whose own partition key is sharded: the orders of a day in 20 partitions, and tallies of votes in 10.

    Day             OrderId  Total
    2026-07-09.1    o1       5
    2026-07-09.20   o7       9
    votes#ann#3     -        17

The number behind the day or the candidate is part of the id, and its bounds say which partitions there are.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import Field
from pydantic.alias_generators import to_pascal

from adjoin import AdjacencyList, Graph, Index, InvalidKey, Keys, Node, field
from tests.designs.table_of_others import STORES, asked, filled, item, stored
from tests.servers.open import Stores

DAY = dt.date(2026, 7, 9)


class Order(Node, key=("day", "number", "id"), alias_generator=to_pascal):
    day: dt.date
    number: Annotated[int, Field(ge=1, le=20)]
    id: str
    total: int


class Tally(Node, key=("candidate", "part")):
    candidate: str
    part: Annotated[int, Field(ge=0, lt=10)]
    votes: int = 0


LAYOUT = AdjacencyList(
    table="Orders",
    partition_key="Day",
    sort_key="OrderId",
    reverse=None,
    keys={Order: Keys("{day}.{number}", "{id}"), Tally: Keys("votes#{candidate}#{part}", "-")},
)
ITEMS = [
    *(item(Day=f"{DAY}.{number}", OrderId=f"o{number}", Total=number) for number in range(1, 21)),
    item(Day="2026-07-10.3", OrderId="o1", Total=1),
    *(item(Day=f"votes#ann#{part}", OrderId="-", votes=part) for part in range(10)),
]
STRAY = item(Day=f"{DAY}.21", OrderId="o1", Total=1)


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, [Order, Tally], LAYOUT, [*ITEMS, STRAY]) as graph:
        yield graph


def test_all_partitions_of_a_day_are_asked_side_by_side(g: Graph) -> None:
    with g.meter() as m:
        orders = [each.number for each in g.find(Order, field("day") == DAY)]
    assert (sorted(orders), m.requests, m.rounds) == ([*range(1, 21)], 20, 1)
    two_days = field("day").between(DAY, DAY + dt.timedelta(days=1))
    found, requests = asked(g, g.find(Order, two_days & (field("id") == "o1")))
    assert ([(each.day.day, each.number) for each in found], requests) == ([(9, 1), (10, 3)], 40)
    assert [each.id for each in g.find(Order, field("day") == DAY, order="id").limit(3)] == ["o1", "o10", "o11"]
    assert g.find(Order, (field("day") == DAY) & (field("total") > 15)).count() == 5


def test_a_range_of_partitions(g: Graph) -> None:
    some = (field("day") == DAY) & (field("number") > 3) & (field("number") <= 6)
    found, requests = asked(g, g.find(Order, some))
    assert (sorted(each.number for each in found), requests) == ([4, 5, 6], 3)
    assert asked(g, g.find(Order, (field("day") == DAY) & (field("number") > 20))) == ([], 1)
    tallies, requests = asked(g, g.find(Tally, field("candidate") == "ann"))
    assert (sum(each.votes for each in tallies), requests) == (45, 10)
    with pytest.raises(InvalidKey, match=r"the table needs day == … or a range of dates, then id"):
        g.find(Order, field("total") > 15)


def test_what_is_written(g: Graph) -> None:
    g.add(Order(day=DAY, number=7, id="new", total=3))
    assert stored(g, f"{DAY}.7", "new") == item(Day=f"{DAY}.7", OrderId="new", Total=3)
    g.update(Tally, ("ann", 4), votes=field("votes") + 1)
    assert stored(g, "votes#ann#4", "-") == item(Day="votes#ann#4", OrderId="-", votes=5)
    assert [each["Day"] for each in g.scan().others] == [f"{DAY}.21"]


@pytest.mark.parametrize(("most", "requests"), [(200, 200), (400, 400), (401, None)])
def test_how_many_partitions_a_find_asks(most: int, requests: int | None) -> None:
    class Reading(Node, key=("part", "id")):
        part: Annotated[int, Field(gt=0, le=most)]
        id: str

    layout = AdjacencyList(reverse=None, keys={Reading: Keys("{part}", "{id}")})
    models: list[Any] = [Reading]
    with Graph(":memory:", models, layout) as g:
        g.put_many(Reading(part=part, id="r") for part in (1, most))
        if requests is None:
            with pytest.raises(InvalidKey, match="no index finds Reading"):
                g.find(Reading)
        else:
            found, made = asked(g, g.find(Reading))
            assert ([each.part for each in found], made) == ([1, most], requests)


def test_one_range_of_an_index_comes_before_many_partitions() -> None:
    """Each node has a partition of its own, so a range of ids would be a query for each."""

    class Lot(Node):
        id: int
        day: int

    layout = AdjacencyList(
        indexes=[Index("All", "AllPK", "AllSK")], keys={Lot: Keys(indexes={"All": ("LOTS", "{id:06}")})}
    )
    with Graph(":memory:", [Lot], layout) as g:
        g.put_many(Lot(id=number, day=number) for number in range(9))
        found, requests = asked(g, g.find(Lot, field("id").between(2, 5)))
        assert ([each.id for each in found], requests) == ([2, 3, 4, 5], 1)
