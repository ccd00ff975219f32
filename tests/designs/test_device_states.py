"""Devices and what they measure in a table whose sort key is a number: 0 for the device, and a moment for a reading.

    DeviceId  Ts (N)      Site  Model  Celsius  Hour           Shard (N)
    d1        0           s1    m
    d1        1777629600               20.1     2026-05-01T10  2           alert

A moment after 1970 is never 0, so the two share the partition. BySite has two attributes as its partition key, ByHour
one that nothing else stores, and Alerts four shards that are numbers. ByHeat is local.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import AdjacencyList, Child, Graph, Index, InvalidKey, InvalidModel, Keys, Node, Projection, field
from adjoin.requests import PageResponse, Scan
from adjoin.values import Item
from tests.designs.table_of_others import STORES, asked, filled, item
from tests.servers.open import Stores

UTC = dt.UTC
START = dt.datetime(2026, 5, 1, 10, tzinfo=UTC)
AFTER_1970 = Field(gt=dt.datetime(1970, 1, 1, tzinfo=UTC))


class Device(Node):
    id: str
    site: Annotated[str, Field(alias="Site")]
    model: Annotated[str, Field(alias="Model")]


class Reading(Child[Device], key=("at",)):
    at: Annotated[dt.datetime, AFTER_1970]
    celsius: Annotated[Decimal, Field(alias="Celsius")]
    alert: bool | None = None


def layout(at: str = "{at:epoch}") -> AdjacencyList:
    return AdjacencyList(
        table="Devices",
        partition_key="DeviceId",
        sort_key="Ts",
        types={"Ts": "N"},
        reverse=None,
        indexes=[
            Index("BySite", ("Site", "Model"), "Ts", projection=Projection("KEYS_ONLY")),
            Index("ByHour", "Hour", "Celsius", projection=Projection("INCLUDE", ("alert",))),
            Index("Alerts", "Shard", "Ts", shards=4, types={"Shard": "N"}),
            Index("ByHeat", "DeviceId", "Celsius", local=True, projection=Projection("KEYS_ONLY")),
        ],
        keys={
            Device: Keys(partition="{id}", sort="0"),
            Reading: Keys(partition="{parent}", sort=at, indexes={"ByHour": "{at:%Y-%m-%dT%H}", "Alerts": "{shard}"}),
        },
    )


def _reading(device: int, minutes: int) -> Item:
    at = START + dt.timedelta(minutes=minutes)
    celsius = Decimal(20) + Decimal(minutes) / 10 + Decimal(device) / 100
    shard = {"Shard": minutes // 10 % 4, "alert": True} if minutes % 20 == 0 else {}
    return item(
        DeviceId=f"d{device}", Ts=int(at.timestamp()), Celsius=celsius, Hour=f"{at:%Y-%m-%dT%H}", raw=b"\0", **shard
    )


ITEMS = [
    *(item(DeviceId=f"d{n}", Ts=0, Site="s1" if n < 3 else "s2", Model="m") for n in range(4)),
    *(_reading(device, minutes) for device in range(4) for minutes in range(0, 90, 10)),
]
OTHERS = [item(DeviceId="d0", Ts=Decimal("1.5")), item(DeviceId="d0", Ts=-1), item(DeviceId="d#", Ts=0, Site="s1")]


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, [Device, Reading], layout(), [*ITEMS, *OTHERS]) as graph:
        yield graph


def minute(number: int) -> dt.datetime:
    return START + dt.timedelta(minutes=number)


def test_each_question_in_its_least_number_of_requests(g: Graph) -> None:
    hour = (field("at") >= START) & (field("at") < minute(60))
    questions: list[tuple[Any, list[Any], int]] = [
        (g.children("d0", Reading).between(minute(15), minute(40)), [minute(20), minute(30), minute(40)], 1),
        (g.children("d0", Reading).reverse().limit(1), [minute(80)], 1),
        (g.find(Reading, hour & (field("celsius") >= Decimal("25.01"))), [minute(50)] * 3, 2),
        (g.find(Reading, field("parent") == "d1", order="celsius").reverse().limit(2), [minute(80), minute(70)], 1),
        (g.find(Reading, order="at", index="Alerts").limit(5), [START] * 4 + [minute(20)], 4),
        (g.index("Alerts").between(int(minute(75).timestamp()), None), [minute(80)] * 4, 4),
    ]
    for query, wanted, requests in questions:
        found, made = asked(g, query)
        assert ([each.at for each in found], made) == (wanted, requests), query
        assert query.count() == len(wanted), query
    at_site, made = asked(g, g.find(Device, (field("site") == "s1") & (field("model") == "m")))
    assert ([each.id for each in at_site], made) == (["d0", "d1", "d2"], 1)
    whole = g.collection(Device.ref("d0"))
    assert (whole.node, len(whole.children), len(whole.others)) == (g.get(Device, "d0"), 9, 2)


def test_everything_is_counted_stored_back_and_deleted(g: Graph) -> None:
    def scanned() -> list[Item]:
        (page,) = g._store.execute([Scan("Devices", consistent=True)])
        assert isinstance(page, PageResponse)
        return sorted(map(dict, page.items), key=repr)

    assert (g.count(Device), g.count(Reading)) == (len(list(g.scan(Device))), len(list(g.scan(Reading)))) == (4, 36)
    assert sorted((each["DeviceId"], each["Ts"]) for each in g.scan().others) == [("d#", 0), ("d0", -1), ("d0", 1.5)]
    before = scanned()
    g.put_many(list(g.scan(Device)))
    assert scanned() == before
    assert g.delete(Device, "d0")
    assert [each["Ts"] for each in scanned() if each["DeviceId"] == {"S": "d0"}] == [{"N": "-1"}, {"N": "1.5"}]


@pytest.mark.parametrize("at", ["{at:epoch}", "{at:epoch_ms}", "{at}"])
def test_a_moment_within_its_bounds_is_never_the_device(at: str) -> None:
    with Graph(":memory:", [Device, Reading], layout(at)) as g:
        g.put_many([Device(id="d", site="s", model="m"), Reading(parent="d", at=minute(1), celsius=Decimal(1))])
        assert ([*g.scan(Device)], [*g.scan(Reading)]) == ([g.get(Device, "d")], [*g.children("d", Reading)])
        assert g.verify().counts == {"DEVICE": 1, "READING": 1}
        epoch = dt.datetime(1970, 1, 1, tzinfo=UTC)
        with pytest.raises(InvalidKey, match=r"does not fit Reading\.at: Input should be greater than 1970-01-01"):
            g.get(Reading, ("d", epoch))
        with pytest.raises(InvalidKey, match=r"Reading\.at must be at least 1970-01-01 00:00:00\.000001"):
            g.put(Reading.model_construct(parent="d", at=epoch, celsius=Decimal(1)))


@pytest.mark.parametrize("bound", [{}, {"ge": dt.datetime(1970, 1, 1, tzinfo=UTC)}, {"lt": START}])
def test_a_moment_that_may_be_0_is_refused(bound: dict[str, Any]) -> None:
    class Measured(Child[Device], key=("at",)):
        at: Annotated[dt.datetime, Field(**bound)]

    keys: dict[type[Any], Keys] = {
        Device: Keys(partition="{id}", sort="0"),
        Measured: Keys(partition="{parent}", sort="{at:epoch}"),
    }
    made = AdjacencyList(partition_key="DeviceId", sort_key="Ts", types={"Ts": "N"}, reverse=None, keys=keys)
    wanted = (
        r"the same sort key 0; .*, or give Measured\.at a bound that excludes it, such as Field\(gt=datetime\(1970,"
    )
    with pytest.raises(InvalidModel, match=wanted):
        Graph(":memory:", [Device, Measured], made)
