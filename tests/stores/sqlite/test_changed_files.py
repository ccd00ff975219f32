"""Tables of a file that change while others use it: whoever does not know yet reads whole items all the same."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin.errors import InvalidRequest
from adjoin.requests import (
    CreateTable,
    DescribeTable,
    Put,
    Query,
    Request,
    SetTimeToLive,
    TableResponse,
    UpdateTable,
)
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from adjoin.values import Item
from tests.shares import examples
from tests.stores.conftest import Clock
from tests.stores.examples import EDGES, PLAIN, everything, item, key, n, one, page, put, s, stored

BY_KIND = IndexDefinition("ByKind", KeyAttribute("kind"))
EDGE = item("A", "1", RPK=s("X"), RSK=s("b"), kind=s("k"), at=n(1))


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[SQLiteStore, SQLiteStore]]:
    """Two on one file, as two processes have them; the second has met every table."""
    first, second = (SQLiteStore(tmp_path / "graph.db", durability="process") for _ in range(2))
    first.execute([CreateTable(EDGES), CreateTable(PLAIN)])
    put(first, "Edges", EDGE)
    put(first, "Plain", item("A", "1", kind=s("k")))
    for name in ("Edges", "Plain"):
        assert len(everything(second, name)) == 1
    yield first, second
    first.close()
    second.close()


def test_a_reader_that_does_not_know_of_a_new_index(stores: tuple[SQLiteStore, SQLiteStore]) -> None:
    first, second = stores
    first.execute([UpdateTable("Plain", add_indexes=(BY_KIND,))])
    put(first, "Plain", item("A", "2", kind=s("k")))
    assert everything(second, "Plain") == [item("A", "1", kind=s("k")), item("A", "2", kind=s("k"))]
    assert page(second, Query("Plain", ("kind", s("k")), index="ByKind")).count == 2


def test_a_reader_that_does_not_know_that_an_index_went(stores: tuple[SQLiteStore, SQLiteStore]) -> None:
    first, second = stores
    first.execute([UpdateTable("Edges", remove_indexes=("Reverse",))])
    changed = {**EDGE, "RPK": s("Y"), "RSK": n(1)}
    put(first, "Edges", changed, item("A", "2", RPK=s("Z")))
    assert stored(second, "Edges", key("A", "1")) == changed
    assert everything(second, "Edges") == [changed, item("A", "2", RPK=s("Z"))]
    with pytest.raises(InvalidRequest, match="does not have the specified index: Reverse"):
        page(second, Query("Edges", ("RPK", s("X")), index="Reverse"))


def test_a_reader_that_knows_the_index_before_the_one_of_its_name(stores: tuple[SQLiteStore, SQLiteStore]) -> None:
    first, second = stores
    first.execute([UpdateTable("Edges", remove_indexes=("Reverse",))])
    other = IndexDefinition("Reverse", KeyAttribute("other"))
    first.execute([UpdateTable("Edges", add_indexes=(other,))])
    put(first, "Edges", item("B", "1", other=s("X"), RPK=s("R")))
    # The second still takes RPK for the index's key.
    assert everything(second, "Edges") == [EDGE, item("B", "1", other=s("X"), RPK=s("R"))]
    assert page(second, Query("Edges", ("other", s("X")), index="Reverse")).count == 1


def test_a_writer_that_does_not_know(stores: tuple[SQLiteStore, SQLiteStore]) -> None:
    first, second = stores
    first.execute([UpdateTable("Plain", add_indexes=(BY_KIND,))])
    first.execute([UpdateTable("Edges", remove_indexes=("Reverse",))])
    put(second, "Plain", item("A", "2", kind=s("k")))
    put(second, "Edges", {**EDGE, "RPK": n(1)})
    assert page(first, Query("Plain", ("kind", s("k")), index="ByKind")).count == 2
    assert everything(first, "Edges") == [{**EDGE, "RPK": n(1)}]


def test_requests_of_one_batch_see_the_table_as_it_was_changed(embedded: SQLiteStore, clock: Clock) -> None:
    embedded.execute([CreateTable(PLAIN)])
    put(embedded, "Plain", item("A", "1", kind=s("k")))
    batch: list[Request] = [
        UpdateTable("Plain", add_indexes=(BY_KIND,)),
        SetTimeToLive("Plain", "until"),
        Put("Plain", item("A", "2", kind=s("k"), until=n(int(clock.now) + 1))),
    ]
    embedded.execute(batch)
    assert page(embedded, Query("Plain", ("kind", s("k")), index="ByKind")).count == 2
    clock.now += 2
    assert embedded.sweep() == 1


def test_items_do_not_expire_any_more(embedded: SQLiteStore, clock: Clock) -> None:
    embedded.execute([CreateTable(replace(PLAIN, ttl="until"))])
    put(embedded, "Plain", item("A", "1", until=n(int(clock.now) + 1)))
    embedded.execute([SetTimeToLive("Plain", None)])
    put(embedded, "Plain", item("A", "2", until=n(int(clock.now) + 1)))
    clock.now += 2
    assert embedded.sweep() == 0
    embedded.execute([SetTimeToLive("Plain", "until")])
    assert embedded.sweep() == 2


def test_the_history_of_a_table(embedded: SQLiteStore, clock: Clock) -> None:
    began = clock.now
    created = one(embedded, CreateTable(PLAIN), TableResponse).history
    assert created.created == created.on_demand == began
    assert created.stream_label == "2023-11-14T22:13:20.000"
    clock.now += 60
    embedded.execute([UpdateTable("Plain", stream="off")])
    embedded.execute([UpdateTable("Plain", stream="KEYS_ONLY")])
    found = one(embedded, DescribeTable("Plain"), TableResponse).history
    assert (found.id, found.created) == (created.id, began)
    assert found.stream_label == "2023-11-14T22:14:20.000"


def test_columns_are_where_the_catalogue_says(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    store = SQLiteStore(path)
    store.execute([CreateTable(EDGES)])
    put(store, "Edges", EDGE)
    store.execute([UpdateTable("Edges", add_indexes=(BY_KIND, IndexDefinition("ByMore", KeyAttribute("more"))))])
    store.execute([UpdateTable("Edges", remove_indexes=("Reverse",))])
    put(store, "Edges", item("A", "2", more=s("m")))
    store.close()
    file = sqlite3.connect(path)
    ((text,),) = file.execute("SELECT storage FROM adjoin_tables")
    names = [each["attribute"] and each["attribute"]["name"] for each in json.loads(text)["columns"]]
    assert names == [None, None, "kind", "at", "more"]
    rows = file.execute("SELECT k1, k2, k3, k5, body FROM items_1 ORDER BY sk").fetchall()
    assert [row[:4] for row in rows] == [(None, None, "k", None), (None, None, None, "m")]
    assert [json.loads(row[4]) for row in rows] == [
        {"RPK": s("X"), "RSK": s("b"), "at": n(1)},
        {"more": s("m")},
    ]
    file.close()


# --- whatever comes and goes -------------------------------------------------------------------

_NAMES = ("x", "y")
_ATTRIBUTES = st.dictionaries(
    st.sampled_from(_NAMES), st.one_of(st.sampled_from("abc").map(s), st.integers(0, 2).map(n)), max_size=2
)
_STEPS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("123"), _ATTRIBUTES),
    st.tuples(st.just("index"), st.sampled_from(_NAMES), st.sampled_from("SN")),
)


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(_STEPS, max_size=12))
def test_an_index_has_what_fits_it_and_items_stay_whole(steps: list[tuple[str, str, object]]) -> None:
    """Every step puts an item, or makes an index over an attribute, or drops the one that is there."""
    store = SQLiteStore(":memory:")
    table = TableDefinition("Any", KeyAttribute("PK"), KeyAttribute("SK"))
    store.execute([CreateTable(table)])
    model: dict[str, Item] = {}
    for kind, where, what in steps:
        if kind == "index":
            there = one(store, DescribeTable("Any"), TableResponse).definition.index(f"By{where}.")
            if there is not None:
                store.execute([UpdateTable("Any", remove_indexes=(there.name,))])
            else:
                new = IndexDefinition(f"By{where}.", KeyAttribute(where, what))  # type: ignore[arg-type]
                store.execute([UpdateTable("Any", add_indexes=(new,))])
        else:
            given_item = item("A", where, **what)  # type: ignore[arg-type]
            try:
                store.execute([Put("Any", given_item)])
            except InvalidRequest:
                continue
            model[where] = given_item
        assert everything(store, "Any") == [model[each] for each in sorted(model)]
        for index in one(store, DescribeTable("Any"), TableResponse).definition.indexes:
            name, tag = index.partition.name, index.partition.type
            fitting = [each for each in model.values() if tag in each.get(name, {})]
            for value in {each[name][tag] for each in fitting}:
                found = page(store, Query("Any", (name, {tag: value}), index=index.name)).items
                expected = [each for each in fitting if each[name][tag] == value]
                assert list(found) == sorted(expected, key=lambda each: each["SK"]["S"])
    store.close()
