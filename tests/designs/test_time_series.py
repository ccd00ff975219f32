"""Measurements of sensors: a partition for each sensor and day, and for each hour one with those of all sensors.

    PK                    SK                    celsius  GSI1PK              GSI1SK
    SENSOR#s1             INFO
    SENSOR#s1#2026-03-01  2026-03-01T10:00:00Z  1.5      HOUR#2026-03-01T10  2026-03-01T10:00:00Z#s1
    OPERATOR#ann          CHECKED#SENSOR#s1#2026-03-01##2026-03-01T10:00:00Z

The partition key holds less of the time than the sort key does. A range of times is one query for each day.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    Child,
    Count,
    Edge,
    Graph,
    Index,
    InvalidKey,
    InvalidModel,
    InvalidValue,
    Keys,
    Node,
    field,
)
from adjoin.values import Item
from tests.designs.table_of_items import STORES, asked, at, filled, item, others, rewritten, stored
from tests.servers.open import Stores


class Sensor(Node):
    id: str
    place: str


class Reading(Node, key=("sensor", "at")):
    sensor: str
    at: dt.datetime
    celsius: Decimal


class Operator(Node):
    id: str


class Checked(Edge[Operator, Reading]):
    note: str = ""


class Remark(Child[Reading]):
    id: str
    text: str


MODELS: list[Any] = [Sensor, Reading, Operator, Checked, Remark]
LAYOUT = AdjacencyList(
    table="Measurements",
    reverse=None,
    indexes=[Index("GSI1", "GSI1PK", "GSI1SK"), Index("ByReading", "GSI2PK", "GSI2SK")],
    keys={
        Sensor: Keys("SENSOR#{id}", "INFO"),
        Reading: Keys(
            "SENSOR#{sensor}#{at:%Y-%m-%d}",
            "{at:%Y-%m-%dT%H:%M:%SZ}",
            indexes={"GSI1": ("HOUR#{at:%Y-%m-%dT%H}", "{at:%Y-%m-%dT%H:%M:%SZ}#{sensor}")},
        ),
        Operator: Keys("OPERATOR#{id}", "INFO"),
        Checked: Keys(sort="CHECKED#{target}", indexes={"ByReading": ("{target}", "{source.id}")}),
    },
)


def time(day: int, hour: int, minute: int = 0) -> dt.datetime:
    return dt.datetime(2026, 3, day, hour, minute, tzinfo=dt.UTC)


def reading(sensor: str, when: dt.datetime, celsius: str) -> Item:
    text = when.strftime("%Y-%m-%dT%H:%M:%SZ")
    keys = {"GSI1PK": f"HOUR#{text[:13]}", "GSI1SK": f"{text}#{sensor}"}
    return item(f"SENSOR#{sensor}#{text[:10]}", text, celsius=Decimal(celsius), **keys)


ITEMS = [
    item("SENSOR#s1", "INFO", place="roof"),
    item("SENSOR#s2", "INFO", place="cellar"),
    reading("s1", time(1, 10), "1.5"),
    reading("s1", time(1, 23, 59), "2.5"),
    reading("s1", time(2, 10), "3.5"),
    reading("s1", time(4, 10), "4.5"),
    reading("s2", time(2, 10, 30), "9.5"),
]
OTHERS = [item("SENSOR#s1#2026-03-02", "2026-03-01T10:00:00Z", celsius=Decimal(7))]
"""The day in the partition key is not that of the time in the sort key."""


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, [*ITEMS, *OTHERS]) as graph:
        yield graph


def of(found: list[Reading]) -> list[str]:
    return [str(each.celsius) for each in found]


S1 = field("sensor") == "s1"


def test_one_reading(g: Graph) -> None:
    found = asked(g, lambda: g.get(Reading, ("s1", time(1, 10))), 1)
    assert found == Reading(sensor="s1", at=time(1, 10), celsius=Decimal("1.5"))
    assert g.get(Reading, ("s1", time(1, 11))) is None
    several = g.get_many(Reading, [("s1", time(4, 10)), ("s2", time(2, 10, 30))])
    assert [each and str(each.celsius) for each in several] == ["4.5", "9.5"]
    with pytest.raises(InvalidValue, match="has parts that '%Y-%m-%dT%H:%M:%SZ' does not hold"):
        g.get(Reading, ("s1", time(1, 10).replace(microsecond=5)))


def test_a_range_of_times_is_one_query_a_day(g: Graph) -> None:
    day = field("at").between(time(1, 0), time(1, 23, 59))
    assert of(asked(g, lambda: list(g.find(Reading, S1 & day)), 1)) == ["1.5", "2.5"]
    night = (field("at") > time(1, 10)) & (field("at") < time(2, 11))
    assert of(asked(g, lambda: list(g.find(Reading, S1 & night)), 2)) == ["2.5", "3.5"]
    days = g.find(Reading, S1 & field("at").between(time(1, 12), time(4, 12)), order="at")
    assert of(asked(g, lambda: list(days), 4)) == ["2.5", "3.5", "4.5"]
    assert of(list(days.reverse().limit(1))) == ["4.5"]
    first = days.page(limit=2)
    assert of([*first, *days.page(limit=2, after=first.next)]) == ["2.5", "3.5", "4.5"]
    assert days.count() == 3
    both = field("sensor").is_in(["s1", "s2"]) & field("at").between(time(2, 0), time(2, 23))
    assert of(asked(g, lambda: list(g.find(Reading, both)), 2)) == ["3.5", "9.5"]
    assert list(g.find(Reading, S1 & field("at").between(time(2, 0), time(1, 0)))) == []
    only = g.explain(g.find(Reading, S1 & day))
    assert only.partitions == ("SENSOR#s1#2026-03-01",)


def test_a_range_of_times_in_an_index_is_one_query_an_hour(g: Graph) -> None:
    hour = field("at").between(time(2, 10), time(2, 10, 59))
    assert of(asked(g, lambda: list(g.find(Reading, hour)), 1)) == ["3.5", "9.5"]
    assert of(
        asked(g, lambda: list(g.find(Reading, (field("at") >= time(2, 9, 30)) & (field("at") < time(2, 10, 30)))), 2)
    )
    lisbon = dt.timezone(dt.timedelta(hours=1))
    elsewhere = field("at").between(time(2, 11).replace(tzinfo=lisbon), time(2, 11, 15).replace(tzinfo=lisbon))
    assert of(asked(g, lambda: list(g.find(Reading, elsewhere)), 1)) == ["3.5"]


def test_ranges_that_lie_in_too_many_partitions_are_refused(g: Graph) -> None:
    wanted = "the table needs sensor == … and at == … or a range of dates, then at; 'GSI1' needs at == … or a range of"
    for predicate in (S1, S1 & (field("at") > time(1, 1)), field("at").between(time(1, 1), time(31, 1))):
        with pytest.raises(InvalidKey, match=wanted):
            g.find(Reading, predicate)


def test_what_adjoin_writes_is_what_others_write(g: Graph) -> None:
    assert rewritten(g) == stored(g)
    assert others(g) == OTHERS
    asked(g, lambda: g.put(Reading(sensor="s3", at=time(9, 8), celsius=Decimal("0.5"))), 1)
    assert at(g, "SENSOR#s3#2026-03-09", "2026-03-09T08:00:00Z") == reading("s3", time(9, 8), "0.5")
    asked(g, lambda: g.update(Reading, ("s3", time(9, 8)), celsius=Decimal("0.7")), 1)
    assert at(g, "SENSOR#s3#2026-03-09", "2026-03-09T08:00:00Z") == reading("s3", time(9, 8), "0.7")
    assert g.delete(Reading, ("s3", time(9, 8)))
    assert rewritten(g) == stored(g)
    assert g.scan(Reading).count() == g.count(Reading) == 5


def test_a_reading_has_edges_and_children(g: Graph) -> None:
    one = ("s1", time(1, 10))
    g.put_many([Operator(id="ann"), Remark(parent=one, id="1", text="cold"), Remark(parent=one, id="2", text="ice")])
    g.connect(Checked, "ann", one, note="fine")
    assert at(g, "OPERATOR#ann", "CHECKED#SENSOR#s1#2026-03-01##2026-03-01T10:00:00Z") is not None
    assert [edge.target for edge in asked(g, lambda: list(g.out(Operator.ref("ann"), Checked)), 1)] == [one]
    assert [edge.source for edge in asked(g, lambda: list(g.into(Reading.ref(one), Checked)), 1)] == ["ann"]
    assert [each.text for each in asked(g, lambda: list(g.children(one, Remark)), 1)] == ["cold", "ice"]
    assert g.get(Remark, (*one, "2")) == Remark(parent=one, id="2", text="ice")
    assert [each.text for each in g.collection(Reading.ref(one)).children] == ["cold", "ice"]
    assert g.delete(Reading, one)
    assert list(g.out(Operator.ref("ann"), Checked)) == []
    assert g.get(Remark, (*one, "1")) is None


def test_a_part_of_an_id_that_no_key_holds_whole_is_refused() -> None:
    layout = AdjacencyList(keys={Reading: Keys("SENSOR#{sensor}", "{at:%G-W%V}")})
    with pytest.raises(InvalidModel, match="do not tell 'at'"):
        Graph(":memory:", [Reading], layout)


def test_months_weeks_and_days_in_keys() -> None:
    class Visit(Node):
        id: str
        day: dt.date
        at: dt.datetime = dt.datetime(2026, 1, 31, 12)

    def found(template: str, predicate: Any) -> tuple[list[str], int]:
        layout = AdjacencyList(
            indexes=[Index("ByDay", "GSIPK", "GSISK")], keys={Visit: Keys(indexes={"ByDay": (template, "{id}")})}
        )
        with Graph(":memory:", [Visit], layout) as g:
            g.put_many(
                Visit(id=f"{day:%y%m%d}", day=day, at=dt.datetime.combine(day, dt.time(12)))
                for day in (dt.date(2026, 1, 31), dt.date(2026, 2, 1), dt.date(2026, 3, 1), dt.date(2027, 1, 31))
            )
            with g.meter() as meter:
                return [each.id for each in g.find(Visit, predicate)], meter.requests

    some = field("day").between(dt.date(2026, 1, 31), dt.date(2026, 2, 28))
    assert found("{day}", some) == (["260131", "260201"], 29)
    assert found("D#{day:%Y-%m}", some) == (["260131", "260201"], 2)
    assert found("D#{day:%Y}", some) == (["260131", "260201"], 1)
    assert found("D#{day:%G-W%V}", some) == (["260131", "260201"], 5)
    times = field("at").between(dt.datetime(2026, 1, 31, 13), dt.datetime(2026, 2, 1, 12))
    assert found("D#{at:%Y-%m-%d}", times) == (["260201"], 2)
    assert found("D#{at:%d.%m.%Y %H}", times) == (["260201"], 24)
    assert found("{day}", field("day").between(dt.date(2026, 1, 1), dt.date(2026, 12, 31)))[1] == 365
    with pytest.raises(InvalidKey, match="'ByDay' needs day == … or a range of dates"):
        found("{day}", field("day").between(dt.date(2026, 1, 1), dt.date(2027, 12, 31)))
    with pytest.raises(InvalidKey, match="'ByDay' needs at == …, then id"):
        found("D#{at:%Y-%m-%dT%H:%M:%S}", times)


class Counted(Node, key=("sensor", "at")):
    sensor: str
    at: dt.datetime
    remarks: Annotated[int, Count("Said")] = 0
    checks: Annotated[int, Count("Seen")] = 0


class Said(Child[Counted]):
    id: str


class Seen(Edge[Operator, Counted]):
    pass


def test_aggregates_are_kept_and_audited() -> None:
    layout = AdjacencyList(keys={Counted: Keys("S#{sensor}#{at:%Y-%m-%d}", "{at:%Y-%m-%dT%H:%M:%SZ}")})
    with Graph(":memory:", [Counted, Said, Operator, Seen], layout) as g:
        g.put_many([Counted(sensor="s1", at=time(1, 1)), Counted(sensor="s1", at=time(1, 2)), Operator(id="ann")])
        g.put_many(Said(parent=("s1", time(1, 1)), id=id) for id in "ab")
        g.connect(Seen, "ann", ("s1", time(1, 1)))
        g.maintain(once=True)
        one = g.get(Counted, ("s1", time(1, 1)))
        assert one == Counted(sensor="s1", at=time(1, 1), remarks=2, checks=1)
        assert g.verify().findings == ()
        g.rebuild()
        assert g.get(Counted, ("s1", time(1, 1))) == one
        assert g.delete(Counted, ("s1", time(1, 1)))
        g.maintain(once=True)
        assert g.verify().findings == ()
