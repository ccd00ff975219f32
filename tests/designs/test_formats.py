"""Orders of a shop whose other programs write dates as text, as seconds, as milliseconds and as numbers such as
20240131, and numbers as text with leading zeros."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    Copy,
    Count,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidItem,
    InvalidKey,
    InvalidModel,
    InvalidValue,
    Keys,
    Latest,
    Max,
    Min,
    Node,
    Stored,
    Unique,
    field,
)
from tests.designs.table_of_others import STORES, asked, filled, item, stored
from tests.servers.open import Stores

UTC = dt.UTC
ISO = "%Y-%m-%dT%H:%M:%SZ"


def at(day: int, hour: int = 0, minute: int = 0, second: int = 0, microsecond: int = 0) -> dt.datetime:
    return dt.datetime(2024, 1, day, hour, minute, second, microsecond, UTC)


def seconds(day: int) -> int:
    return int(at(day).timestamp())


class Customer(Node):
    id: str
    born: Annotated[dt.date | None, Stored("%d.%m.%Y")] = None
    joined: Annotated[dt.datetime, Stored(ISO)] | None = None
    card: Annotated[int | None, Stored("08d"), Unique()] = None
    last: Annotated[dt.datetime | None, Stored("epoch"), Max("Placed", field="at")] = None
    first: Annotated[dt.datetime | None, Stored("epoch"), Min("Placed", field="at")] = None
    newest: Annotated[Decimal | None, Stored(".2f"), Latest("Placed", field="total", by="at")] = None
    recent: Annotated[int, Count("Placed", where=field("at") >= at(3, 12))] = 0


class Order(Node):
    id: str
    status: str
    created_at: Annotated[dt.datetime, Stored("epoch")]
    shipped: Annotated[dt.datetime | None, Stored("%Y-%m-%dT%H:%M:%S.%3fZ"), Indexed()] = None
    day: Annotated[dt.date | None, Stored("%Y%m%d", type="N")] = None
    changed: Annotated[dt.datetime | None, Stored("epoch_ms")] = None
    number: Annotated[int, Stored("05d")] = 0


class Placed(Edge[Customer, Order]):
    at: Annotated[dt.datetime, Stored("epoch")]
    total: Annotated[Decimal, Stored(".2f")] = Decimal(0)
    joined: Annotated[dt.datetime | None, Stored(ISO), Copy("source.joined")] = None


MODELS: list[Any] = [Customer, Order, Placed]
LAYOUT = AdjacencyList(
    table="Orders",
    indexes=[
        Index("ByStatus", "status", "created_at"),
        Index("ByDay", "day", "number"),
        Index("ByBirth", "kind", "born"),
    ],
    keys={
        Customer: Keys("c#{id}", "profile", indexes={"ByBirth": "customers"}),
        Order: Keys("o#{id}", "order"),
        Placed: Keys(sort="o#{target.id}", reverse_partition="o#{target.id}", reverse_sort="c#{source.id}"),
    },
)


def order(id: str, nth: int, status: str = "open", **more: Any) -> Any:
    return item(PK=f"o#{id}", SK="order", status=status, created_at=seconds(nth), number=f"{nth:05}", **more)


def placed(customer: str, id: str, day: int, total: str) -> Any:
    keys = {"PK": f"c#{customer}", "SK": f"o#{id}", "GSI1PK": f"o#{id}", "GSI1SK": f"c#{customer}"}
    return item(**keys, at=seconds(day), total=total)


ITEMS = [
    item(PK="c#1", SK="profile", born="31.12.1999", joined="2020-02-29T12:00:00Z", card="00000042", kind="customers"),
    item(PK="c#2", SK="profile", born="01.02.2000", kind="customers"),
    order("a", 1, day=20240101, changed=seconds(1) * 1000 + 7, shipped="2024-01-01T00:00:00.250Z"),
    order("b", 2, day=20240102),
    order("c", 3, status="paid", day=20240102),
    order("d", 4),
    placed("1", "a", 1, "10.00"),
    placed("1", "d", 4, "9.50"),
    placed("2", "b", 2, "100.00"),
]
WRONG = [
    item(PK="o#x", SK="order", status="open", created_at="2024-01-01", number="00009"),
    item(PK="o#y", SK="order", status="gone", created_at=seconds(9), number="9"),
    item(PK="o#z", SK="order", status="gone", created_at=Decimal("1.5"), number="00009"),
]


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, ITEMS) as graph:
        yield graph


def test_what_others_wrote(g: Graph) -> None:
    ann = g.get(Customer, "1")
    assert ann is not None
    assert (ann.born, ann.joined, ann.card) == (dt.date(1999, 12, 31), dt.datetime(2020, 2, 29, 12, tzinfo=UTC), 42)
    first = g.get(Order, "a")
    assert first is not None
    assert (first.created_at, first.day, first.number) == (at(1), dt.date(2024, 1, 1), 1)
    assert (first.changed, first.shipped) == (at(1, 0, 0, 0, 7000), at(1, 0, 0, 0, 250_000))
    assert [each.total for each in g.out(Customer.ref("1"), Placed)] == [Decimal(10), Decimal("9.5")]


def test_what_is_read_is_stored_as_it_was(g: Graph) -> None:
    before = {(each["PK"]["S"], each["SK"]["S"]): each for each in ITEMS}
    for each in [*g.scan(Order), *g.scan(Placed), *g.scan(Customer)]:
        for made in g._layout.items(each):
            expected = before[made["PK"]["S"], made["SK"]["S"]]
            own = {name: value for name, value in made.items() if name != "recent" and name[:4] != "GSI3"}
            assert own == expected


def test_ranges_of_plain_index_keys(g: Graph) -> None:
    by_status = field("status") == "open"
    found, requests = asked(g, g.find(Order, by_status & (field("created_at") >= at(2)), order="created_at"))
    assert ([each.id for each in found], requests) == (["b", "d"], 1)
    later = g.find(Order, by_status & (field("created_at") > at(1, 23, 59, 59, 5)), order="created_at").reverse()
    assert [each.id for each in later] == ["d", "b"]
    between = field("created_at").between(at(1, 0, 0, 0, 1), at(4, 0, 0, 0, 1))
    assert [each.id for each in g.find(Order, by_status & between)] == ["b", "d"]
    assert [each.id for each in g.find(Order, by_status & (field("created_at") < at(2, 0, 0, 0, 1)))] == ["a", "b"]
    assert [each.id for each in g.find(Order, by_status & (field("created_at") <= at(1, 23, 59, 59, 1)))] == ["a"]
    assert [each.id for each in g.find(Order, (field("status") == "open") & (field("created_at") == at(2)))] == ["b"]
    second = (field("day") == dt.date(2024, 1, 2)) & (field("number") > 2)
    assert [each.id for each in g.find(Order, second)] == ["c"]
    assert [each.id for each in g.find(Order, field("shipped") >= at(1))] == []


def test_a_format_that_does_not_sort_is_no_range_of_keys(g: Graph) -> None:
    with pytest.raises(InvalidKey, match="'ByBirth' is sorted by 'born', in which it is written as"):
        g.find(Customer, order="born")
    young = field("born") >= dt.date(2000, 1, 1)
    found, requests = asked(g, g.find(Customer, young, index="ByBirth"))
    assert ([each.id for each in found], requests) == (["2"], 1)
    with pytest.raises(InvalidValue, match="does not sort by value"):
        list(g.scan(Customer).where(field("born") >= dt.date(2000, 1, 1)))
    exact = g.scan(Customer).where(field("born") == dt.date(2000, 2, 1))
    assert [each.id for each in exact] == ["2"]


def test_filters_and_conditions(g: Graph) -> None:
    placed = g.out(Customer.ref("1"), Placed)
    assert [each.target for each in placed.where(field("at") > at(1))] == ["d"]
    assert [each.target for each in placed.where(field("at").is_in([at(4), at(5)]))] == ["d"]
    assert [each.id for each in g.scan(Order).where(field("changed") <= at(1, 0, 0, 0, 7999))] == ["a"]
    with pytest.raises(InvalidValue, match="finer than the second"):
        list(placed.where(field("at") == at(1, 0, 0, 0, 5)))
    g.update(Order, "a", only_if=field("created_at") == at(1), status="paid")
    assert g.update(Order, "a", created_at=at(9)).created_at == at(9)
    assert stored(g, "o#a", "order")["created_at"] == {"N": str(seconds(9))}  # type: ignore[index]
    assert g.update(Order, "a", number=field("number") + 1).number == 2
    assert stored(g, "o#a", "order")["number"] == {"S": "00002"}  # type: ignore[index]
    with g.transaction() as t:
        t.update(Order, "a", number=field("number") + 1)
    assert stored(g, "o#a", "order")["number"] == {"S": "00003"}  # type: ignore[index]
    assert g.update(Placed, "1", "a", total=field("total") + Decimal("0.25")).total == Decimal("10.25")
    assert stored(g, "c#1", "o#a")["total"] == {"S": "10.25"}  # type: ignore[index]
    assert g.update(Order, "a", shipped=None).shipped is None
    assert "shipped" not in stored(g, "o#a", "order")  # type: ignore[operator]


def test_what_a_format_cannot_hold_is_refused(g: Graph) -> None:
    with pytest.raises(InvalidValue, match=r"Order\.created_at: .* finer than the second"):
        g.put(Order(id="n", status="open", created_at=at(1, 0, 0, 0, 5)))
    with pytest.raises(InvalidValue, match=r"Order\.number: .* too many digits"):
        g.update(Order, "a", number=100_000)
    assert g.get(Order, "n") is None


def test_unique_values_and_copies(g: Graph) -> None:
    g.put(Customer(id="3", card=43, joined=at(1)))
    assert g.get(Customer, card=43) == Customer(id="3", card=43, joined=at(1))
    g.delete(Customer, "3")
    g.put(Customer(id="4", card=43, joined=at(2)))
    edge = g.connect(Placed, "4", "a", at=at(3))
    assert edge.joined == at(2)
    assert stored(g, "c#4", "o#a")["joined"] == {"S": "2024-01-02T00:00:00Z"}  # type: ignore[index]
    g.update(Customer, "4", joined=at(5))
    g.maintain(once=True)
    assert g.edge(Placed, "4", "a").joined == at(5)  # type: ignore[union-attr]


def test_values_in_other_formats_are_no_entities(servers: Stores) -> None:
    with filled("embedded", servers, MODELS, LAYOUT, [*ITEMS, *WRONG[1:]]) as g:
        with pytest.raises(InvalidItem, match=r"o#y.*number: '9' is not written as '05d'"):
            g.get(Order, "y")
        with pytest.raises(InvalidItem, match=r"created_at: '1.5' is not written as 'epoch'"):
            g.get(Order, "z")


@pytest.mark.parametrize("is_maintained", [True, False])
def test_aggregates(servers: Stores, is_maintained: bool) -> None:
    with filled("embedded", servers, MODELS, LAYOUT, ITEMS) as g:
        if is_maintained:
            g.rebuild()
            g.put(Placed(source="2", target="d", at=at(30), total=Decimal(1)))
            g.put(Placed(source="2", target="d", at=at(8), total=Decimal(1)))
            g.maintain(once=True)
            # Another program filled the table: nobody claimed the card, or indexed when the order was shipped.
            assert {each.kind for each in g.verify().findings} == {"claim", "index entry"}
        else:
            g.put(Placed(source="2", target="d", at=at(8), total=Decimal(1)))
            g.rebuild()
        ann, bo = (g.get(Customer, id) for id in "12")
        assert ann is not None
        assert bo is not None
        assert (ann.first, ann.last, ann.newest, ann.recent) == (at(1), at(4), Decimal("9.5"), 1)
        assert (bo.first, bo.last, bo.newest, bo.recent) == (at(2), at(8), Decimal(1), 1)
        assert stored(g, "c#1", "profile")["last"] == {"N": str(seconds(4))}  # type: ignore[index]


def test_explain_knows_formats(g: Graph) -> None:
    assert g.explain(lambda: g.update(Order, "a", shipped=at(1)))
    assert g.explain(lambda: g.put(Customer(id="9", card=1)))


def refused() -> Iterator[tuple[str, list[Any]]]:
    class Thing(Node):
        id: Annotated[dt.date, Stored("%Y")]

    yield "write its format into the key template", [Thing]

    class Listed(Node):
        id: str
        days: list[Annotated[dt.date, Stored("%Y")]] = []

    yield "inside a list", [Listed]

    class Plain(Node):
        id: str
        last: Annotated[dt.datetime | None, Max("Went", field="at")] = None

    class Went(Edge[Plain, Plain]):
        at: Annotated[dt.datetime, Stored("epoch")]

    yield "give both the same Stored", [Plain, Went]

    class Unsorted(Node):
        id: str
        last: Annotated[dt.date | None, Max("Flew", field="at")] = None

    class Flew(Edge[Unsorted, Unsorted]):
        at: Annotated[dt.date, Stored("%d.%m.%Y")]

    yield "does not sort by value", [Unsorted, Flew]


@pytest.mark.parametrize(("reason", "models"), list(refused()))
def test_declarations_that_are_refused(reason: str, models: list[Any]) -> None:
    with pytest.raises(InvalidModel, match=reason):
        Graph(":memory:", models)
