"""The contract for batches: many items at once, each of them read or written on its own."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin.errors import ItemTooLarge
from adjoin.expressions import Exists, Path, attribute
from adjoin.requests import BatchGet, BatchGetResponse, BatchWrite, Delete, Get, Put, WriteResponse
from adjoin.stores.interface import Store
from tests.stores.examples import in_order, item, key, n, one, put, reading, refused, s, stored, writing

THERE = Exists(attribute("PK"))

# --- reading -----------------------------------------------------------------------------------


def test_batch_get_answers_in_order(store: Store) -> None:
    put(store, "Plain", item("A", "1", a=n(1)), item("A", "2", a=n(2)))
    put(store, "Single", {"id": s("1")})
    gets = (
        Get("Plain", key("A", "2")),
        Get("Plain", key("A", "9")),
        Get("Single", {"id": s("1")}),
        Get("Plain", key("A", "1")),
    )
    response = one(store, BatchGet(gets), BatchGetResponse)
    assert response.items == [item("A", "2", a=n(2)), None, {"id": s("1")}, item("A", "1", a=n(1))]
    assert response.unprocessed == ()


def test_the_keys_of_a_batch_may_be_spelled_otherwise(store: Store) -> None:
    put(store, "Edges", item("A", "1", at=n("1.50")))
    response = one(store, BatchGet((Get("Edges", {"SK": s("1"), "PK": s("A")}),)), BatchGetResponse)
    assert response.items == [item("A", "1", at=n("1.5"))]


def test_batch_get_with_a_projection(store: Store) -> None:
    put(store, "Plain", item("A", "1", a=n(1), m={"M": {"x": n(1), "y": n(2)}}), item("A", "2", c=n(2)))
    projection = (Path(("a",)), Path(("m", "y")))
    gets = tuple(Get("Plain", key("A", each), projection=projection) for each in "219")
    assert one(store, BatchGet(gets), BatchGetResponse).items == [{}, {"a": n(1), "m": {"M": {"y": n(2)}}}, None]


@pytest.mark.parametrize(
    ("consistent", "units"), [pytest.param(False, 2.5, id="eventually"), pytest.param(True, 5.0, id="strongly")]
)
def test_batch_get_rounds_each_item(store: Store, consistent: bool, units: float) -> None:
    put(store, "Plain", item("A", "1"), item("A", "2", big=s("x" * 5000)), item("A", "3"))
    put(store, "Single", {"id": s("1"), "big": s("x" * 9000)})
    gets = tuple(Get("Plain", key("A", each), consistent=consistent) for each in "1239")
    response = one(store, BatchGet((*gets, Get("Single", {"id": s("1")}))), BatchGetResponse)
    assert response.consumed == in_order((*reading(units, "Plain"), *reading(1.5, "Single")))


def test_batch_get_stops_at_16_mb(store: Store) -> None:
    put(store, "Plain", *(item("A", f"{each:02d}", x=s("x" * 400_000)) for each in range(45)))
    gets = tuple(Get("Plain", key("A", f"{each:02d}")) for each in range(45))
    response = one(store, BatchGet(gets), BatchGetResponse)
    assert len(response.items) == 45
    assert sum(found is not None for found in response.items) == 41
    assert len(response.unprocessed) == 4
    assert all(get in gets for get in response.unprocessed)
    assert all(
        (found is None) == (get in response.unprocessed) for get, found in zip(gets, response.items, strict=True)
    )
    assert response.consumed == reading(41 * 49.0, "Plain")


def test_limits_of_batch_reads(store: Store) -> None:
    gets = tuple(Get("Plain", key("A", str(each))) for each in range(101))
    assert one(store, BatchGet(gets[:100]), BatchGetResponse).items == [None] * 100
    for bad in ((), gets):
        with refused(store):
            store.execute([BatchGet(bad)])
    with refused(store, "Provided list of item keys contains duplicates"):
        store.execute([BatchGet((gets[0], gets[1], gets[0]))])


# --- writing -----------------------------------------------------------------------------------


def test_batch_write_puts_and_deletes(store: Store) -> None:
    put(store, "Plain", item("A", "1"), item("A", "2"))
    batch = BatchWrite((Delete("Plain", key("A", "2")), Put("Plain", item("A", "3")), Put("Single", {"id": s("1")})))
    assert one(store, batch, WriteResponse).unprocessed == ()
    there = [stored(store, "Plain", key("A", each)) is not None for each in "123"]
    assert there == [True, False, True]
    assert stored(store, "Single", {"id": s("1")}) == {"id": s("1")}


def test_units_of_a_batch_write(store: Store) -> None:
    put(store, "Plain", item("A", "2", x=s("x" * 2000)), item("A", "3", x=s("x" * 3000)))
    batch = BatchWrite(
        (
            Delete("Plain", key("A", "2")),
            Put("Plain", item("A", "3")),
            Put("Plain", item("A", "4")),
            Delete("Plain", key("A", "9")),
            Put("Single", {"id": s("1"), "x": s("x" * 1024)}),
        )
    )
    units = one(store, batch, WriteResponse).consumed
    assert units == in_order((*writing("Plain", table=2 + 3 + 1 + 1.0), *writing("Single", table=2.0)))


def test_limits_of_batch_write(store: Store) -> None:
    puts = tuple(Put("Plain", item("A", str(each))) for each in range(26))
    store.execute([BatchWrite(puts[:25])])
    for bad in ((), puts):
        with refused(store):
            store.execute([BatchWrite(bad)])
    with refused(store, "Provided list of item keys contains duplicates"):
        store.execute([BatchWrite((puts[0], Delete("Plain", key("A", "0"))))])
    conditional: list[Any] = [Put("Plain", item("A", "1"), THERE), Delete("Plain", key("A", "1"), THERE)]
    for write in conditional:
        with refused(store):
            store.execute([BatchWrite((write,))])


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(Put("Plain", {"PK": s("A")}), id="no sort key"),
        pytest.param(Put("Plain", item("A", "")), id="empty key"),
        pytest.param(Put("Plain", item("A", "2", x={"SS": []})), id="bad value"),
        pytest.param(Delete("Plain", {"PK": s("A"), "SK": n(1)}), id="type of a key"),
    ],
)
def test_an_invalid_batch_writes_nothing(store: Store, bad: Put | Delete) -> None:
    with refused(store):
        store.execute([BatchWrite((Put("Plain", item("A", "1")), bad))])
    assert stored(store, "Plain", key("A", "1")) is None


def test_a_batch_with_an_item_that_is_too_large_writes_nothing(store: Store) -> None:
    with refused(store, "Item size has exceeded the maximum allowed size", ItemTooLarge):
        store.execute([BatchWrite((Put("Plain", item("A", "1")), Put("Plain", item("A", "2", x=s("x" * 409_600)))))])
    assert stored(store, "Plain", key("A", "1")) is None
