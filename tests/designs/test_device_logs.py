"""Logs of devices: a device's log by level and date, an operator's by date, escalations, and a write-sharded index.

    PK        SK                        Operator  Date        EscalatedTo  GSI3PK         GSI3SK
    d#12345   WARN#2026-04-24T14:40:00  Liz       2026-04-24               2026-04-24#01  WARN#2026-04-24T14:40:00
    d#12345   INFO#2026-04-24T14:50:00  Liz       2026-04-24

The device's own state is the item with the sort key `STATE`. GSI1 is over plain attributes, GSI2 is sparse. GSI3 holds
what is worse than a warning, in three shards for each day. GSI4 holds the states of all devices in four shards.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import AdjacencyList, Child, Graph, Index, Keys, Node, field
from adjoin.values import Item
from tests.designs.table_of_items import STORES, asked, at, filled, in_order, item, others, rewritten, stored
from tests.servers.open import Stores


class Level(Enum):
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"


class Device(Node):
    id: str
    state: str
    changed: dt.date


class Entry(Child[Device], key=("level", "at")):
    level: Level
    at: str
    operator: Annotated[str, Field(serialization_alias="Operator", validation_alias="Operator")]
    day: Annotated[dt.date, Field(serialization_alias="Date", validation_alias="Date")]
    escalated: Annotated[str | None, Field(serialization_alias="EscalatedTo", validation_alias="EscalatedTo")] = None


LAYOUT = AdjacencyList(
    table="DeviceLog",
    reverse=None,
    indexes=[
        Index("GSI1", "Operator", "Date"),
        Index("GSI2", "EscalatedTo", "GSI2SK"),
        Index("GSI3", "GSI3PK", "GSI3SK", shards=range(1, 4), shard_by="at"),
        Index("GSI4", "Shard", "GSI4SK", shards=4, types={"Shard": "N"}),
    ],
    keys={
        Device: Keys(partition="d#{id}", sort="STATE", indexes={"GSI4": ("{shard}", "{state}#{changed}")}),
        Entry: Keys(
            sort="{level}#{at}",
            indexes={"GSI2": (None, "{level}#{at}"), "GSI3": ("{day}#{shard:02}", "{level}#{at}")},
        ),
    },
)
MODELS: list[Any] = [Device, Entry]


def entry(
    device: str, level: str, at: str, operator: str, escalated: str | None = None, shard: int | None = None
) -> Item:
    """An entry in the shard that another program chose: by the minute, if it is not given."""
    sort = f"{level}#{at}"
    number = 1 + int(at[14:16]) % 3 if shard is None else shard
    values = {"Operator": operator, "Date": at[:10], "GSI3PK": f"{at[:10]}#{number:02}", "GSI3SK": sort}
    if escalated is not None:
        values |= {"EscalatedTo": escalated, "GSI2SK": sort}
    return item(f"d#{device}", sort, **values)


def state(device: str, state: str, day: int, shard: int) -> Item:
    changed = f"2026-04-{day}"
    return item(f"d#{device}", "STATE", state=state, changed=changed, Shard=shard, GSI4SK=f"{state}#{changed}")


TIMES = [f"2026-04-24T14:{minute}:00" for minute in range(10, 60, 5)]
KNOWN = [
    state("1", "up", 20, 0),
    state("2", "down", 24, 3),
    state("3", "down", 21, 1),
    state("4", "up", 22, 1),
    *(
        entry("1", level, time, "Liz")
        for level, time in zip(["INFO", "INFO", "WARN", "ERROR", "INFO"], TIMES, strict=False)
    ),
    *(entry("2", "WARN", time, "Sue") for time in TIMES[5:]),
    entry("2", "ERROR", "2026-04-25T08:00:00", "Liz", "Sara"),
    entry("3", "WARN", "2026-04-26T08:30:00", "Sue", "Sara"),
]
OTHERS = [item("d#1", "FIRMWARE", version="1.2"), item("d#1", "TRACE#2026-04-24T14:10:00", text="no level of ours")]
DAY = dt.date(2026, 4, 24)
WARNED = field("level") == Level.WARN
TODAY = field("day") == DAY


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, [*KNOWN, *OTHERS]) as graph:
        yield graph


def unsharded(items: list[Item]) -> list[Item]:
    """The items without the keys that a shard is part of."""
    return [{name: value for name, value in each.items() if name not in ("GSI3PK", "Shard")} for each in items]


def times(entries: Iterable[Entry]) -> list[str]:
    return [each.at for each in entries]


def test_the_table_is_what_adjoin_would_have_written(g: Graph) -> None:
    assert unsharded(rewritten(g)) == unsharded(stored(g)) == unsharded(in_order([*KNOWN, *OTHERS]))
    assert others(g) == OTHERS


def test_the_log_of_a_device(g: Graph) -> None:
    log = g.children("1", Entry)
    assert times(asked(g, lambda: list(log.within(level=Level.INFO)), 1)) == [TIMES[0], TIMES[1], TIMES[4]]
    assert times(asked(g, lambda: list(log.within(level=Level.INFO).reverse().limit(1)), 1)) == [TIMES[4]]
    since = log.within(level=Level.INFO).between(TIMES[1], None)
    assert times(asked(g, lambda: list(since), 1)) == [TIMES[1], TIMES[4]]
    assert times(asked(g, lambda: list(log), 1)) == [TIMES[3], TIMES[0], TIMES[1], TIMES[4], TIMES[2]]
    assert asked(g, lambda: g.get(Entry, ("1", Level.ERROR, TIMES[3])), 1).operator == "Liz"
    by_find = g.find(Entry, (field("parent") == "2") & WARNED & (field("at") > TIMES[6]))
    assert times(asked(g, lambda: list(by_find), 1)) == TIMES[7:]
    around = g.collection(Device.ref("1"))
    assert asked(g, lambda: around.node, 1) == Device(id="1", state="up", changed=dt.date(2026, 4, 20))
    assert (len(around.children), [each["SK"] for each in around.others]) == (5, ["FIRMWARE", OTHERS[1]["SK"]["S"]])


def test_the_log_of_an_operator(g: Graph) -> None:
    liz = field("operator") == "Liz"
    assert len(asked(g, lambda: list(g.find(Entry, liz & TODAY)), 1)) == 5
    assert times(asked(g, lambda: list(g.find(Entry, liz & (field("day") > DAY))), 1)) == ["2026-04-25T08:00:00"]
    assert asked(g, lambda: g.find(Entry, liz, order="day").reverse().first(), 1).level is Level.ERROR


def test_escalations(g: Graph) -> None:
    sara = field("escalated") == "Sara"
    assert [each.parent for each in asked(g, lambda: list(g.find(Entry, sara)), 1)] == ["2", "3"]
    assert [each.parent for each in asked(g, lambda: list(g.find(Entry, sara & WARNED)), 1)] == ["3"]
    found = g.find(Entry, sara & WARNED & (field("at") >= "2026-04-27"))
    assert asked(g, lambda: list(found), 1) == []


def test_all_shards_of_a_day_are_merged(g: Graph) -> None:
    with g.meter() as meter:
        found = times(g.find(Entry, TODAY & WARNED))
    assert (meter.requests, meter.rounds) == (3, 1)
    assert found == [TIMES[2], *TIMES[5:]]
    late = TODAY & WARNED & (field("at") >= TIMES[6])
    assert times(asked(g, lambda: list(g.find(Entry, late)), 3)) == TIMES[6:]
    assert times(g.find(Entry, late).reverse()) == TIMES[:5:-1]
    pages: list[str] = []
    token: str | None = None
    while True:
        page = g.find(Entry, TODAY & WARNED).page(limit=2, after=token)
        pages += times(page)
        token = page.next
        if token is None:
            break
    assert pages == found
    two_days = field("day").is_in([DAY, DAY + dt.timedelta(days=1)]) & (field("level") == Level.ERROR)
    assert times(asked(g, lambda: list(g.find(Entry, two_days)), 6)) == [TIMES[3], "2026-04-25T08:00:00"]
    one = g.index("GSI3").partition("2026-04-24#02").begins_with("WARN")
    assert times(asked(g, lambda: list(one), 1)) == [TIMES[6], TIMES[9]]


def test_all_shards_of_the_states(g: Graph) -> None:
    with g.meter() as meter:
        down = [each.id for each in g.find(Device, field("state") == "down")]
    assert (meter.requests, meter.rounds, down) == (4, 1, ["3", "2"])
    recent = (field("state") == "down") & (field("changed") > dt.date(2026, 4, 22))
    assert [each.id for each in asked(g, lambda: list(g.find(Device, recent)), 4)] == ["2"]
    assert [each.id for each in g.find(Device)] == ["3", "2", "1", "4"]
    assert [each.id for each in asked(g, lambda: list(g.index("GSI4").begins_with("up")), 4)] == ["1", "4"]
    assert [each.id for each in asked(g, lambda: list(g.index("GSI4").partition(1)), 1)] == ["3", "4"]


def test_writes(g: Graph) -> None:
    asked(g, lambda: g.update(Device, "1", state="down"), 2)
    # The shard is that of the other program still.
    assert at(g, "d#1", "STATE") == state("1", "down", 20, 0)
    assert [each.id for each in g.find(Device, field("state") == "down")] == ["1", "3", "2"]
    key = ("2", Level.WARN, TIMES[5])
    asked(g, lambda: g.update(Entry, key, escalated="Sara"), 1)
    assert at(g, "d#2", f"WARN#{TIMES[5]}") == entry("2", "WARN", TIMES[5], "Sue", "Sara")
    asked(g, lambda: g.update(Entry, key, escalated=None), 1)
    assert at(g, "d#2", f"WARN#{TIMES[5]}") == entry("2", "WARN", TIMES[5], "Sue")
    new = "2026-04-27T10:00:00"
    g.put(Entry(parent="4", level=Level.ERROR, at=new, operator="Liz", day=dt.date(2026, 4, 27)))
    made = at(g, "d#4", f"ERROR#{new}")
    assert made is not None
    assert made == entry("4", "ERROR", new, "Liz", shard=int(made["GSI3PK"]["S"][-1]))
    assert g.find(Entry, field("day") == dt.date(2026, 4, 27)).count() == 1
    before = stored(g)
    assert g.delete(Device, "2")
    assert stored(g) == [each for each in before if each["PK"] != {"S": "d#2"}]
