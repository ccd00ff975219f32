"""Loading many items at once: what is stored, counted and recorded is what single puts would have left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjoin.errors import InvalidRequest, ItemTooLarge
from adjoin.requests import (
    ChangesResponse,
    CreateTable,
    DescribeTable,
    PageResponse,
    Put,
    ReadChanges,
    Scan,
    TableResponse,
    UpdateTable,
)
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from adjoin.values import Item

TEXT, NUMBER = KeyAttribute("p"), KeyAttribute("n", "N")
INDEX = IndexDefinition("ByKind", KeyAttribute("kind"), NUMBER)
PLAIN = TableDefinition("Plain", TEXT, NUMBER)
STREAM = replace(PLAIN, name="Stream", stream=True, indexes=(INDEX,))
BYTES = TableDefinition("Bytes", KeyAttribute("b", "B"), stream=True)


def item(number: int, **others: str) -> Item:
    found: Item = {"p": {"S": f"é{number % 7}"}, "n": {"N": str(number)}, "b": {"B": f"{number:04d}"}}
    return {**found, **{name: {"S": value} for name, value in others.items()}}


def filled(definition: TableDefinition) -> SQLiteStore:
    store = SQLiteStore(":memory:", clock=lambda: 1000.0)
    store.execute([CreateTable(definition)])
    store.execute([Put(definition.name, item(number, kind="old")) for number in range(0, 40, 3)])
    return store


def contents(store: SQLiteStore, table: str, index: str | None = None) -> list[Any]:
    (page,) = store.execute([Scan(table, index=index)])
    assert isinstance(page, PageResponse)
    return [*page.items]


def changes(store: SQLiteStore, table: str) -> list[Any]:
    (response,) = store.execute([ReadChanges(table)])
    assert isinstance(response, ChangesResponse)
    return [[image and sorted(image.items()) for image in (each.key, each.old, each.new)] for each in response.changes]


def totals(store: SQLiteStore, table: str) -> tuple[int, int]:
    (response,) = store.execute([DescribeTable(table)])
    assert isinstance(response, TableResponse)
    return response.item_count, response.size


@pytest.mark.parametrize("definition", [PLAIN, STREAM, BYTES], ids=lambda each: each.name)
@pytest.mark.parametrize("stored", [0, 1, 7, 20, 33, 40])
def test_loading_is_the_same_as_puts(definition: TableDefinition, stored: int) -> None:
    """Whatever part of what is loaded is stored already: its first items, and every third of the rest."""
    name = definition.name
    given = [item(number, kind="new" if number % 2 else "old", text="x" * number) for number in range(40)]
    given.append(item(5, kind="last"))
    by_put, loaded = filled(definition), filled(definition)
    for store in (by_put, loaded):
        store.execute([Put(name, item(number, kind="old", text="x" * number)) for number in range(stored)])
    # Of two with one key, the later one is put.
    for each in [*given[:5], *given[6:]]:
        by_put.execute([Put(name, each)])
    made = loaded.ready(name, given)
    assert made.refused == []
    assert loaded.load(name, [made]) is False, "some of them are stored"
    assert contents(loaded, name) == contents(by_put, name)
    assert totals(loaded, name) == totals(by_put, name)
    if definition is STREAM:
        assert contents(loaded, name, "ByKind") == contents(by_put, name, "ByKind")
    if definition.stream:
        assert sorted(map(repr, changes(loaded, name))) == sorted(map(repr, changes(by_put, name)))


def test_new_items_are_written_without_reading() -> None:
    store = filled(STREAM)
    made = store.ready("Stream", [item(number) for number in range(100, 140)])
    assert store.load("Stream", [made]) is True
    assert store.load("Stream", [made]) is False
    assert totals(store, "Stream")[0] == 14 + 40
    assert len(changes(store, "Stream")) == 14 + 40, "the second load changed nothing"


def test_items_that_no_table_holds_are_refused_alone() -> None:
    store = filled(PLAIN)
    bad = [item(1, text="x" * 500_000), {"p": {"S": "x"}}, {**item(2), "v": {"N": "many"}}]
    made = store.ready("Plain", [item(100), *bad, item(101)])
    assert [at for at, _ in made.refused] == [1, 2, 3]
    assert type(made.refused[0][1]) is ItemTooLarge
    assert all(isinstance(error, InvalidRequest) for _, error in made.refused)
    store.load("Plain", [made])
    assert totals(store, "Plain")[0] == 14 + 2


@pytest.mark.parametrize(
    ("first", "change"),
    [((), UpdateTable("Stream", add_indexes=(INDEX,))), ((INDEX,), UpdateTable("Stream", remove_indexes=("ByKind",)))],
)
def test_a_table_that_another_process_changed_meanwhile(
    first: tuple[IndexDefinition, ...], change: UpdateTable, tmp_path: Path
) -> None:
    path = tmp_path / "x.db"
    store, other = SQLiteStore(path), SQLiteStore(path)
    store.execute([CreateTable(replace(STREAM, indexes=first))])
    given = [item(number, kind="k") for number in range(10)]
    made = store.ready("Stream", given)
    other.execute([change])
    store.load("Stream", [made])
    found = sorted(contents(store, "Stream"), key=lambda each: int(each["n"]["N"]))
    assert found == given
    if not first:
        assert len(contents(store, "Stream", "ByKind")) == 10
    store.close()
    other.close()


def test_nothing_to_load() -> None:
    store = filled(PLAIN)
    assert store.load("Plain", []) is True
    assert totals(store, "Plain")[0] == 14
