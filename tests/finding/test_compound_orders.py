"""Finding in the order of several fields, if the sort key of an index has them in this order."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import AdjacencyList, Graph, Index, Indexed, InvalidKey, InvalidValue, Keys, MaterializedGraph, Node, field
from adjoin.fields import Predicate
from adjoin.layouts.interface import Layout
from adjoin.plans.steps.predicates import holds
from tests.shares import examples


class Order(Node):
    id: str
    customer: str
    warehouse: str
    shipped: dt.date
    number: int
    name: str


INDEXES = [
    Index("ByText", "TextPK", "TextSK"),
    Index("ByMonth", "MonthPK", "MonthSK"),
    Index("ByFields", "customer", ("number", "name")),
    Index("InShards", "ShardPK", "ShardSK", shards=2),
]
KEYS = {
    Order: Keys(
        indexes={
            "ByText": ("w#{warehouse}", "{shipped:%Y-%m-%d}#{number:04}#{name}"),
            "ByMonth": ("m#{warehouse}", "{shipped:%Y-%m}#{number:04}"),
            "InShards": ("{shard}", "{number:04}#{shipped:%Y-%m-%d}"),
        }
    )
}
LAYOUT = AdjacencyList(indexes=INDEXES, keys=KEYS)
ORDERS = [
    Order(
        id=str(at),
        customer=f"c{at % 2}",
        warehouse=f"w{at % 3}",
        shipped=dt.date(2026, 1 + at % 2, 1 + at % 4),
        number=at * 7 % 5,
        name=("b", "a", "a!", "ab", "B")[at % 5],
    )
    for at in range(40)
]
CUSTOMER, WAREHOUSE, NUMBER, NAME = map(field, ("customer", "warehouse", "number", "name"))


@pytest.fixture(scope="module")
def g() -> Iterator[Graph]:
    with Graph(":memory:", [Order], layout=LAYOUT) as graph:
        graph.put_many(ORDERS)
        yield graph


FOUND: list[tuple[Predicate | None, tuple[str, ...], str, int]] = [
    (WAREHOUSE == "w1", ("shipped", "number"), "ByText", 1),
    (WAREHOUSE == "w1", ("shipped", "number", "name"), "ByText", 1),
    (WAREHOUSE == "w1", ("shipped",), "ByText", 1),
    (WAREHOUSE.is_in(["w1", "w2"]), ("shipped", "number"), "ByText", 2),
    ((WAREHOUSE == "w1") & (field("shipped") >= dt.date(2026, 2, 1)), ("shipped", "number"), "ByText", 1),
    ((WAREHOUSE == "w1") & (field("shipped") == dt.date(2026, 2, 2)), ("number", "name"), "ByText", 1),
    ((WAREHOUSE == "w1") & (field("shipped") == dt.date(2026, 2, 2)), ("shipped", "number"), "ByText", 1),
    ((WAREHOUSE == "w1") & (NUMBER == 3), ("shipped", "name"), "ByText", 1),
    ((WAREHOUSE == "w1") & (NUMBER == 3), ("number", "shipped", "name"), "ByText", 1),
    ((WAREHOUSE == "w1") & (NAME > "a"), ("warehouse", "shipped", "number"), "ByText", 1),
    (CUSTOMER == "c1", ("number", "name"), "ByFields", 1),
    ((CUSTOMER == "c1") & (NUMBER >= 2), ("number", "name"), "ByFields", 1),
    (None, ("number", "shipped"), "InShards", 2),
    (NUMBER > 1, ("number", "shipped"), "InShards", 2),
    ((WAREHOUSE == "w1") | (WAREHOUSE == "w2"), ("shipped", "number"), "ByText", 2),
]


@pytest.mark.parametrize(("predicate", "order", "index", "requests"), FOUND)
def test_in_order_with_one_query_a_partition(
    g: Graph, predicate: Predicate | None, order: tuple[str, ...], index: str, requests: int
) -> None:
    query = g.find(Order, predicate, order=order)
    assert index in repr(query)
    with g.meter() as meter:
        found = list(query)
    assert (meter.requests, meter.rounds) == (requests, 1)
    assert found
    assert [key(each, order) for each in found] == sorted(key(each, order) for each in found)
    expected = (each.id for each in ORDERS if predicate is None or holds(g._schema.node(Order), predicate, each))
    assert sorted(each.id for each in found) == sorted(expected)
    backwards = [key(each, order) for each in query.reverse()]
    assert backwards == sorted(backwards, reverse=True)
    page = query.page(limit=3)
    assert [*page, *(query.page(after=page.next) if page.next else ())] == found


def key(order: Order, names: tuple[str, ...]) -> Any:
    return [value.encode() if isinstance(value := getattr(order, name), str) else value for name in names]


def test_branches_are_merged_in_the_order_of_all_fields(g: Graph) -> None:
    order = ("number", "shipped")
    early = (NUMBER < 2) | ((NUMBER == 3) & (NAME == "a"))
    query = g.find(Order, early, order=order)
    found = list(query)
    assert {each.id for each in found} == {
        each.id for each in ORDERS if each.number < 2 or (each.number == 3 and each.name == "a")
    }
    assert [key(each, order) for each in found] == sorted(key(each, order) for each in found)


@settings(max_examples=examples(10))
@given(
    order=st.permutations(["warehouse", "shipped", "number", "name", "customer"]),
    most=st.integers(1, 4),
    fixed=st.sets(st.sampled_from(["warehouse", "customer", "number", "shipped"])),
)
def test_an_order_is_kept_or_refused(g: Graph, order: list[str], most: int, fixed: set[str]) -> None:
    sample = ORDERS[7]
    parts = [field(name) == getattr(sample, name) for name in sorted(fixed)]
    predicate: Any = None
    for part in parts:
        predicate = part if predicate is None else predicate & part
    names = tuple(order[:most])
    try:
        found = list(g.find(Order, predicate, order=names))
    except InvalidKey:
        return
    matching = [each for each in ORDERS if all(getattr(each, name) == getattr(sample, name) for name in fixed)]
    assert sorted(each.id for each in found) == sorted(each.id for each in matching)
    assert [key(each, names) for each in found] == sorted(key(each, names) for each in found)


def test_what_is_refused(g: Graph) -> None:
    with pytest.raises(InvalidKey) as refused:
        g.find(Order, WAREHOUSE == "w1", order=("number", "shipped", "name"))
    assert "no index finds Order by warehouse in the order of 'number' and 'shipped' and 'name'" in str(refused.value)
    assert "declare an index whose sort key has these fields in this order" in str(refused.value)
    # A month does not say which day comes first.
    with pytest.raises(InvalidKey, match="in the order of 'shipped' and 'number'"):
        g.find(Order, WAREHOUSE == "w1", order=("shipped", "number"), index="ByMonth")
    wrong: list[Any] = [(), ("shipped", 3), ["shipped"], 3]
    for order in wrong:
        with pytest.raises(InvalidValue, match="order must be the name of a field, or a tuple of names"):
            g.find(Order, WAREHOUSE == "w1", order=order)


class Indexes(Node):
    id: str
    year: Annotated[int, Indexed()] = 0
    rank: Annotated[int, Indexed()] = 0


@pytest.mark.parametrize("layout", [AdjacencyList(), MaterializedGraph()])
def test_an_indexed_field_sorts_by_itself(layout: Layout) -> None:
    with Graph(":memory:", [Indexes], layout) as graph:
        graph.put_many([Indexes(id=str(at), year=at % 2, rank=-at) for at in range(6)])
        with pytest.raises(InvalidKey, match="an indexed field sorts Indexes by itself alone, not by 'year' and then"):
            graph.find(Indexes, order=("year", "rank"))
        # All results have the same year.
        found = graph.find(Indexes, field("year") == 1, order=("year", "rank"))
        assert [each.rank for each in found] == [-5, -3, -1]
