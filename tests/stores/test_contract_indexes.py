"""The contract for what indexes cost when items are written."""

from __future__ import annotations

import pytest

from adjoin.expressions import Remove, Set, Value, attribute
from adjoin.requests import BatchWrite, Delete, ItemResponse, Put, Query, TransactWrite, Update, WriteResponse
from adjoin.stores.interface import Store
from adjoin.values import Item
from tests.stores.examples import item, key, n, one, page, put, s, stored, writing

BARE = item("A", "1")
IN_REVERSE = item("A", "1", RPK=s("X"), RSK=s("1"))
MOVED = item("A", "1", RPK=s("Y"), RSK=s("1"))
BIG = s("x" * 1500)
KIND = item("A", "1", kind=s("k"))

# The table's entry is always charged; every item is in Inverted, whose keys are the table's.
CASES = [
    pytest.param(None, BARE, {"table": 1, "Inverted": 1}, id="new"),
    pytest.param(BARE, BARE, {"table": 1}, id="the same"),
    pytest.param(BARE, item("A", "1", x=n(1)), {"table": 1}, id="not projected"),
    pytest.param(BARE, None, {"table": 1, "Inverted": 1}, id="deleted"),
    pytest.param(None, None, {"table": 1}, id="delete of nothing"),
    pytest.param(None, IN_REVERSE, {"table": 1, "Reverse": 1, "Inverted": 1}, id="new with keys"),
    pytest.param(BARE, IN_REVERSE, {"table": 1, "Reverse": 1}, id="keys appear"),
    pytest.param(IN_REVERSE, BARE, {"table": 1, "Reverse": 1}, id="keys disappear"),
    pytest.param(IN_REVERSE, None, {"table": 1, "Reverse": 1, "Inverted": 1}, id="deleted with keys"),
    pytest.param(IN_REVERSE, IN_REVERSE, {"table": 1}, id="the same with keys"),
    pytest.param(IN_REVERSE, MOVED, {"table": 1, "Reverse": 2}, id="keys change"),
    pytest.param(IN_REVERSE, {**IN_REVERSE, "x": n(1)}, {"table": 1, "Reverse": 1}, id="projected by all"),
    pytest.param(IN_REVERSE, {**MOVED, "x": BIG}, {"table": 2, "Reverse": 3}, id="keys change and it grows"),
    pytest.param(
        {**IN_REVERSE, "x": BIG}, {**IN_REVERSE, "x": n(1)}, {"table": 2, "Reverse": 2}, id="it shrinks with keys"
    ),
    pytest.param(item("A", "1", RPK=s("X")), BARE, {"table": 1}, id="one of two keys"),
    pytest.param(BARE, KIND, {"table": 1, "Kind": 1}, id="the only key appears"),
    pytest.param(KIND, {**KIND, "x": BIG}, {"table": 2}, id="grows, not projected"),
    pytest.param(KIND, {**KIND, "grade": BIG}, {"table": 2, "Kind": 2}, id="grows, projected"),
    pytest.param(
        {**KIND, "grade": BIG},
        {**KIND, "kind": s("j"), "grade": BIG},
        {"table": 2, "Kind": 4},
        id="the key of a large entry changes",
    ),
    pytest.param(BARE, item("A", "1", at=n(1)), {"table": 1, "ByTime": 1}, id="local key appears"),
    pytest.param(item("A", "1", at=n(1)), item("A", "1", at=n("1.0"), x=n(1)), {"table": 1}, id="equal local key"),
    pytest.param(item("A", "1", at=n(1)), item("A", "1", at=n(2)), {"table": 1, "ByTime": 2}, id="local key changes"),
]


def prepared(store: Store, before: Item | None, after: Item | None) -> Put | Delete:
    """The write that makes an item into another, which is there."""
    if before is not None:
        put(store, "Edges", before)
    return Delete("Edges", key("A", "1")) if after is None else Put("Edges", after)


@pytest.mark.parametrize(("before", "after", "units"), CASES)
def test_units_of_index_writes(store: Store, before: Item | None, after: Item | None, units: dict[str, float]) -> None:
    assert one(store, prepared(store, before, after), ItemResponse).consumed == writing(**units)


@pytest.mark.parametrize(("before", "after", "units"), CASES)
def test_units_of_index_updates(store: Store, before: Item | None, after: Item | None, units: dict[str, float]) -> None:
    write = prepared(store, before, after)
    if isinstance(write, Put):
        gone = [Remove(attribute(name)) for name in before or () if name not in write.item]
        new = [Set(attribute(name), Value(write.item[name])) for name in write.item if name not in ("PK", "SK")]
        assert one(store, Update("Edges", key("A", "1"), (*gone, *new)), ItemResponse).consumed == writing(**units)
        assert stored(store, "Edges", key("A", "1")) == {
            **write.item,
            **({"at": n(1)} if write.item.get("at") == n("1.0") else {}),
        }


@pytest.mark.parametrize(("before", "after", "units"), CASES)
def test_transactions_cost_double_on_the_table_only(
    store: Store, before: Item | None, after: Item | None, units: dict[str, float]
) -> None:
    transaction = TransactWrite((prepared(store, before, after),))
    expected = writing(**{**units, "table": 2 * units["table"]})
    assert one(store, transaction, WriteResponse).consumed == expected


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


def test_an_item_leaves_an_index_with_its_key(store: Store) -> None:
    put(store, "Edges", {**IN_REVERSE, "kind": s("k")}, item("A", "2", kind=s("k")))
    store.execute([Update("Edges", key("A", "1"), (Remove(attribute("RSK")), Remove(attribute("kind"))))])
    assert page(store, Query("Edges", ("RPK", s("X")), index="Reverse")).items == []
    assert page(store, Query("Edges", ("kind", s("k")), index="Kind")).items == [item("A", "2", kind=s("k"))]
    store.execute([Update("Edges", key("A", "1"), (Set(attribute("RSK"), Value(s("2"))),))])
    assert page(store, Query("Edges", ("RPK", s("X")), index="Reverse")).items == [
        item("A", "1", RPK=s("X"), RSK=s("2"))
    ]
    store.execute([Delete("Edges", key("A", "1"))])
    assert page(store, Query("Edges", ("RPK", s("X")), index="Reverse")).items == []


def test_transactions_and_batches_move_items_within_indexes(store: Store) -> None:
    store.execute([BatchWrite((Put("Edges", IN_REVERSE), Put("Edges", {**MOVED, "SK": s("2")})))])
    assert page(store, Query("Edges", ("RPK", s("X")), index="Reverse")).items == [IN_REVERSE]
    moves = (Put("Edges", MOVED), Delete("Edges", key("A", "2")))
    store.execute([TransactWrite(moves)])
    assert page(store, Query("Edges", ("RPK", s("X")), index="Reverse")).items == []
    assert page(store, Query("Edges", ("RPK", s("Y")), index="Reverse")).items == [MOVED]
