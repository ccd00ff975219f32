"""The contract for what indexes cost when items are written."""

from __future__ import annotations

import pytest

from adjoin.requests import BatchWrite, Delete, ItemResponse, Put, Query, TransactWrite, WriteResponse
from adjoin.stores.interface import Store
from adjoin.values import Item
from tests.stores.examples import item, key, n, one, page, put, s, writing

BARE = item("A", "1")
IN_REVERSE = item("A", "1", RPK=s("X"), RSK=s("1"))
MOVED = item("A", "1", RPK=s("Y"), RSK=s("1"))
BIG = s("x" * 1500)
KIND = item("A", "1", kind=s("k"))

# The table's entry is always charged; every item is in Inverted, whose keys are the table's.
CASES: list[tuple[Item | None, Item | None, dict[str, float]]] = [
    (None, BARE, {"table": 1, "Inverted": 1}),
    (BARE, BARE, {"table": 1}),
    (BARE, item("A", "1", x=n(1)), {"table": 1}),
    (BARE, None, {"table": 1, "Inverted": 1}),
    (None, None, {"table": 1}),
    (None, IN_REVERSE, {"table": 1, "Reverse": 1, "Inverted": 1}),
    (BARE, IN_REVERSE, {"table": 1, "Reverse": 1}),
    (IN_REVERSE, BARE, {"table": 1, "Reverse": 1}),
    (IN_REVERSE, None, {"table": 1, "Reverse": 1, "Inverted": 1}),
    (IN_REVERSE, IN_REVERSE, {"table": 1}),
    (IN_REVERSE, MOVED, {"table": 1, "Reverse": 2}),
    (IN_REVERSE, {**IN_REVERSE, "x": n(1)}, {"table": 1, "Reverse": 1}),
    (IN_REVERSE, {**MOVED, "x": BIG}, {"table": 2, "Reverse": 3}),
    ({**IN_REVERSE, "x": BIG}, {**IN_REVERSE, "x": n(1)}, {"table": 2, "Reverse": 2}),
    (item("A", "1", RPK=s("X")), BARE, {"table": 1}),
    (BARE, KIND, {"table": 1, "Kind": 1}),
    (KIND, {**KIND, "x": BIG}, {"table": 2}),
    (KIND, {**KIND, "grade": BIG}, {"table": 2, "Kind": 2}),
    ({**KIND, "grade": BIG}, {**KIND, "kind": s("j"), "grade": BIG}, {"table": 2, "Kind": 4}),
    (BARE, item("A", "1", at=n(1)), {"table": 1, "ByTime": 1}),
    (item("A", "1", at=n(1)), item("A", "1", at=n("1.0"), x=n(1)), {"table": 1}),
    (item("A", "1", at=n(1)), item("A", "1", at=n(2)), {"table": 1, "ByTime": 2}),
]


@pytest.mark.parametrize(("before", "after", "units"), CASES)
def test_units_of_index_writes(store: Store, before: Item | None, after: Item | None, units: dict[str, float]) -> None:
    if before is not None:
        put(store, "Edges", before)
    write = Delete("Edges", key("A", "1")) if after is None else Put("Edges", after)
    assert one(store, write, ItemResponse).consumed == writing(**units)


@pytest.mark.parametrize(("before", "after", "units"), CASES)
def test_transactions_cost_double_on_indexes_too(
    store: Store, before: Item | None, after: Item | None, units: dict[str, float]
) -> None:
    if before is not None:
        put(store, "Edges", before)
    write = Delete("Edges", key("A", "1")) if after is None else Put("Edges", after)
    double = {name: 2 * each for name, each in units.items()}
    assert one(store, TransactWrite((write,)), WriteResponse).consumed == writing(**double)


def test_a_batch_adds_up(store: Store) -> None:
    batch = BatchWrite(tuple(Put("Edges", {**IN_REVERSE, "SK": s(each)}) for each in "123"))
    assert one(store, batch, WriteResponse).consumed == writing(table=3, Reverse=3, Inverted=3)


def test_an_item_moves_within_an_index(store: Store) -> None:
    put(store, "Edges", IN_REVERSE)
    put(store, "Edges", MOVED)
    assert page(store, Query("Edges", ("RPK", s("X")), index="Reverse")).items == []
    assert page(store, Query("Edges", ("RPK", s("Y")), index="Reverse")).items == [MOVED]
    put(store, "Edges", BARE)
    assert page(store, Query("Edges", ("RPK", s("Y")), index="Reverse")).items == []
