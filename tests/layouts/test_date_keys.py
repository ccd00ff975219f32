"""Dates with formats in keys: ids and fields that are read back from them, and ranges where their texts sort."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
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

UTC = dt.UTC


def at(day: int, second: int = 0, microsecond: int = 0) -> dt.datetime:
    return dt.datetime(2024, 1, day, 0, 0, second, microsecond, UTC)


class Day(Node):
    id: dt.date
    name: str = ""
    visits: Annotated[int, Count("Visit")] = 0


class Sensor(Node):
    id: str


class Event(Child[Sensor], key=("at",)):
    at: dt.datetime
    value: int = 0


class Slot(Child[Sensor], key=("number", "at")):
    number: int
    at: dt.datetime


class Visit(Edge[Sensor, Day]):
    note: str = ""


class Reading(Edge[Sensor, Day]):
    at: dt.datetime


MODELS: list[Any] = [Day, Sensor, Event, Slot, Visit, Reading]
LAYOUT = AdjacencyList(
    reverse=None,
    indexes=[Index("ByDay", "GSI1PK", "GSI1SK")],
    keys={
        Day: Keys("day#{id:%d.%m.%Y}", "day"),
        Sensor: Keys("s#{id}", "sensor"),
        Event: Keys(sort="e#{at:%Y-%m-%dT%H:%M:%SZ}"),
        Slot: Keys(sort="t#{number:05d}#{at:epoch}"),
        Visit: Keys(sort="v#{target.id:%Y%m%d}", indexes={"ByDay": ("day#{target.id:%d.%m.%Y}", "v#{source.id}")}),
        Reading: Keys(
            sort="r#{target.id:%Y%m%d}",
            indexes={"ByDay": ("day#{target.id:%d.%m.%Y}", "r#{at:%Y-%m-%dT%H:%M:%S.%3fZ}")},
            only_in_keys=["at"],
        ),
    },
)


@pytest.fixture
def g() -> Iterator[Graph]:
    with Graph(":memory:", MODELS, LAYOUT) as graph:
        yield graph


def keys_of(g: Graph, entity: Any) -> list[tuple[str, str]]:
    return [(item["PK"]["S"], item["SK"]["S"]) for item in g._layout.items(entity)]


def test_ids_are_written_and_read_in_their_format(g: Graph) -> None:
    day, event = Day(id=dt.date(2024, 1, 31)), Event(parent="a", at=at(2, 3))
    slot, visit = Slot(parent="a", number=7, at=at(2)), Visit(source="a", target=dt.date(2024, 1, 31))
    reading = Reading(source="a", target=dt.date(2024, 1, 31), at=at(31, 5, 250_000))
    assert keys_of(g, day) == [("day#31.01.2024", "day")]
    assert keys_of(g, event) == [("s#a", "e#2024-01-02T00:00:03Z")]
    assert keys_of(g, slot) == [("s#a", "t#00007#1704153600")]
    assert keys_of(g, visit) == [("s#a", "v#20240131")]
    everything: list[Any] = [Sensor(id="a"), day, event, slot, visit, reading]
    g.put_many(everything)
    assert g.get(Day, dt.date(2024, 1, 31)) == day
    assert g.get(Event, ("a", at(2, 3))) == event
    assert g.get(Slot, ("a", 7, at(2))) == slot
    assert list(g.into(day, Visit)) == [visit]
    assert list(g.into(day, Reading)) == [reading]
    assert list(g.find(Reading, field("target") == dt.date(2024, 1, 31))) == [reading]
    assert [type(each) for each in g.collection(Sensor.ref("a")).children] == [Event, Slot]
    g.rebuild()
    assert g.get(Day, dt.date(2024, 1, 31)) == day.model_copy(update={"visits": 1})
    assert g.verify().faults == 0


def test_a_moment_has_one_key_in_any_zone(g: Graph) -> None:
    east = dt.timezone(dt.timedelta(hours=2))
    assert keys_of(g, Event(parent="a", at=at(2).astimezone(east))) == [("s#a", "e#2024-01-02T00:00:00Z")]


def test_what_the_format_cannot_hold_is_refused(g: Graph) -> None:
    with pytest.raises(InvalidValue, match="finer than the second"):
        g.put(Event(parent="a", at=at(1, 0, 5)))
    with pytest.raises(InvalidValue, match="has no time zone"):
        g.put(Event(parent="a", at=dt.datetime(2024, 1, 1)))
    with pytest.raises(InvalidValue, match="only numbers of 10 digits"):
        g.put(Slot(parent="a", number=1, at=dt.datetime(1999, 1, 1, tzinfo=UTC)))
    with pytest.raises(InvalidKey, match="cannot be padded"):
        g.put(Slot(parent="a", number=123_456, at=at(1)))


def test_ranges(g: Graph) -> None:
    g.put_many([Event(parent="a", at=at(day), value=day) for day in range(1, 6)])
    events = g.children("a", Event)
    assert [each.value for each in events.between(at(2), at(4))] == [2, 3, 4]
    assert [each.value for each in events.between(at(2, 0, 1), at(4, 0, 1))] == [3, 4]
    assert [each.value for each in events.between(None, at(1, 0, 1))] == [1]
    found = g.find(Event, (field("parent") == "a") & (field("at") > at(2, 0, 5)) & (field("at") <= at(4, 0, 5)))
    assert [each.value for each in found] == [3, 4]
    found = g.find(Event, (field("parent") == "a") & (field("at") >= at(2, 0, 5)), order="at").reverse()
    assert [each.value for each in found] == [5, 4, 3]


class Diary(Child[Sensor], key=("day",)):
    day: dt.date


def test_texts_that_do_not_sort_are_no_range() -> None:
    layout = AdjacencyList(keys={Diary: Keys(sort="d#{day:%d.%m.%Y}")})
    with Graph(":memory:", [Sensor, Diary], layout) as g:
        days = [dt.date(2024, 1, 31), dt.date(2024, 2, 1), dt.date(2023, 12, 5)]
        g.put_many([Diary(parent="a", day=day) for day in days])
        with pytest.raises(InvalidValue, match="does not sort by value"):
            list(g.children("a", Diary).between(days[0], None))
        found = g.find(Diary, (field("parent") == "a") & (field("day") >= days[0]))
        assert {each.day for each in found} == {*days[:2]}
        with pytest.raises(InvalidKey, match=r"no index finds Diary by parent in the order of .day."):
            g.find(Diary, field("parent") == "a", order="day")


@pytest.mark.parametrize(
    ("model", "keys"),
    [
        (Day, Keys("day#{id:epoch}")),
        (Day, Keys("day#{id:%m-%d}")),
        (Day, Keys("day#{id:%b %Y}")),
        (Sensor, Keys("s#{id:epoch}")),
        (Sensor, Keys("s#{id:%Y}")),
    ],
)
def test_templates_that_are_refused(model: Any, keys: Keys) -> None:
    with pytest.raises(InvalidModel):
        Graph(":memory:", MODELS, AdjacencyList(keys={model: keys}))


class Stamped(Node):
    id: str
    at: dt.datetime


def test_a_time_that_one_key_holds_whole_and_another_by_its_day() -> None:
    """Either key may be the one of an index, or a further attribute."""
    day, whole = "{at:%Y-%m-%d}", "{at:%Y-%m-%dT%H:%M:%SZ}"
    stamped = Stamped(id="a", at=at(2, 3))
    for keys in (
        Keys("s#{id}", "s", indexes={"ByTime": (day, whole)}, only_in_keys=["at"]),
        Keys("s#{id}", "s", indexes={"ByTime": (day, "{id}")}, attributes={"time": whole}, only_in_keys=["at"]),
    ):
        layout = AdjacencyList(reverse=None, indexes=[Index("ByTime", "TPK", "TSK")], keys={Stamped: keys})
        with Graph(":memory:", [Stamped], layout) as g:
            (item,) = g._layout.items(stamped)
            assert "at" not in item
            assert g._layout.decode(g._layout.schema.node(Stamped), item) == stamped
    # If no key holds it whole, a time within the day would be lost, and is refused.
    keys = Keys("s#{id}", "s", indexes={"ByTime": (day, "{id}")}, only_in_keys=["at"])
    layout = AdjacencyList(reverse=None, indexes=[Index("ByTime", "TPK", "TSK")], keys={Stamped: keys})
    with Graph(":memory:", [Stamped], layout) as g, pytest.raises(InvalidValue, match="finer than the day"):
        g.put(Stamped(id="a", at=dt.datetime(2024, 1, 2, 0, 0, 3)))


# --- beside words ------------------------------------------------------------------------------


class Spoken(Node, key=("user", "at")):
    user: str
    at: dt.datetime


class Joined(Node, key=("user", "room")):
    user: str
    room: str


@pytest.mark.parametrize("dated", ["{at}", "{at:%Y-%m-%dT%H:%M:%S.%3fZ}", "{at:%Y%m%d%H%M%S%fZ}"])
def test_a_date_is_never_a_word_so_classes_may_share_partitions(dated: str) -> None:
    keys: dict[type[Any], Keys] = {Spoken: Keys("User:{user}", dated), Joined: Keys("User:{user}", "Join:{room}")}
    g = Graph(":memory:", [Spoken, Joined], AdjacencyList(reverse=None, keys=keys))
    said = Spoken(user="ann", at=dt.datetime(2023, 4, 1, 12, 0, 0, 5000, tzinfo=UTC))
    g.put_many([said, Joined(user="ann", room="Art"), Joined(user="ann", room="2023-04-01")])
    assert list(g.scan(Spoken)) == [said]
    assert sorted(each.room for each in g.scan(Joined)) == ["2023-04-01", "Art"]
    assert list(g.find(Spoken, field("user") == "ann")) == [said]
    assert g.delete(Joined, ("ann", "Art"))
    assert g.get(Spoken, ("ann", said.at)) == said


@pytest.mark.parametrize("other", ["{room}", "2{room}", "20{room}"])
def test_what_may_begin_with_a_digit_may_be_a_date(other: str) -> None:
    keys: dict[type[Any], Keys] = {
        Spoken: Keys("User:{user}", "{at:%Y-%m-%dT%H:%M:%S.%3fZ}"),
        Joined: Keys("User:{user}", other),
    }
    with pytest.raises(InvalidModel, match="can have the same partition key"):
        Graph(":memory:", [Spoken, Joined], AdjacencyList(reverse=None, keys=keys))
