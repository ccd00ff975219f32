"""What is in a column and what is in the body, and that every way to read puts the item together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from orjson import dumps, loads

from adjoin.errors import ConditionFailed
from adjoin.expressions import Exists, Not, Set, Value, attribute
from adjoin.requests import (
    BatchGet,
    BatchGetResponse,
    ChangesResponse,
    CreateTable,
    Delete,
    Get,
    ItemResponse,
    PageResponse,
    Put,
    Query,
    ReadChanges,
    Scan,
    TransactGet,
    Update,
)
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from adjoin.stores.sqlite.rows import bytes_after, number_key, text_after
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from adjoin.values import Item
from tests.stores.examples import (
    EDGES,
    all_changes,
    b,
    everything,
    item,
    key,
    keyed_by,
    n,
    one,
    page,
    put,
    s,
    stored,
)

EDGE = item("A\0", "1", RPK=s("é"), RSK=s("\0"), at=n(12), grade=s("good"))
ODD = TableDefinition("Odd", KeyAttribute("id", "N"), None, (IndexDefinition("ByOwner", KeyAttribute("owner")),))

NAMED = TableDefinition("Named", KeyAttribute("%b"), KeyAttribute('"%'), (IndexDefinition("ByD", KeyAttribute("%d")),))

ROWS: list[tuple[TableDefinition, Item, tuple[Any, ...], Item]] = [
    (EDGES, EDGE, ("A\0", "1", "é", "\0", None, number_key("12")), {"at": n(12), "grade": s("good")}),
    (EDGES, item("A", "1"), ("A", "1", None, None, None, None), {}),
    (keyed_by("N"), {"PK": n(1), "SK": n(2)}, (number_key("1"), number_key("2")), {"PK": n(1), "SK": n(2)}),
    (keyed_by("B"), {"PK": b(b"1"), "SK": b(b"2")}, (b"1", b"2"), {"PK": b(b"1"), "SK": b(b"2")}),
    (ODD, {"id": n(1), "owner": s("x"), "y": s("z")}, (number_key("1"), b"", "x"), {"id": n(1), "y": s("z")}),
    (NAMED, {"%b": s("%s"), '"%': s('"'), "%d": s("%")}, ("%s", '"', "%"), {}),
    (replace(NAMED, indexes=()), {"%b": s("%s"), '"%': s('"'), "x": s("%")}, ("%s", '"'), {"x": s("%")}),
    (ODD, {"id": n(1), "y": s("z")}, (number_key("1"), b"", None), {"id": n(1), "y": s("z")}),
]


@pytest.mark.parametrize(("definition", "whole", "columns", "body"), ROWS)
def test_text_keys_are_in_their_columns_only(
    tmp_path: Path, definition: TableDefinition, whole: Item, columns: tuple[Any, ...], body: Item
) -> None:
    path = tmp_path / "graph.db"
    store = SQLiteStore(path)
    store.execute([CreateTable(definition)])
    put(store, definition.name, whole)
    assert everything(store, definition.name) == [whole]
    sent = store.text(Scan(definition.name))
    assert isinstance(sent, PageResponse)
    assert dumps(list(sent.items)) == dumps(everything(store, definition.name)), "and so it is sent on"
    connection = apsw.Connection(str(path))
    further = [f"k{number}" for number in range(1, len(columns) - 1)]
    row: Any = connection.execute(f"SELECT {', '.join(['pk', 'sk', *further])}, body FROM items_1").get
    assert (row[:-1], loads(row[-1])) == (columns, body)
    assert loads(connection.execute("SELECT new FROM changes_1").get) == whole, "a change has the whole item"
    connection.close()
    store.close()


# --- reading -----------------------------------------------------------------------------------

OF_EDGE = ("PK", s("A\0"))


@pytest.mark.parametrize(
    "request_",
    [
        Query("Edges", OF_EDGE),
        Query("Edges", OF_EDGE, filter=Exists(attribute("RPK"))),
        Query("Edges", OF_EDGE, index="ByTime", projection=tuple(attribute(name) for name in EDGE)),
        Query("Edges", ("RPK", s("é")), index="Reverse"),
        Query("Edges", ("RPK", s("é")), index="Reverse", filter=Exists(attribute("SK"))),
        Scan("Edges"),
        Scan("Edges", index="Reverse"),
    ],
)
def test_pages_hold_whole_items(store: Store, request_: Query | Scan) -> None:
    put(store, "Edges", EDGE)
    assert list(page(store, request_).items) == [EDGE]


@pytest.mark.parametrize(
    ("index", "entry"),
    [
        ("Inverted", key("A\0", "1")),
        ("ByTime", item("A\0", "1", at=n(12))),
    ],
)
def test_entries_of_an_index_hold_what_it_projects(store: Store, index: str, entry: Item) -> None:
    put(store, "Edges", EDGE)
    assert list(page(store, Scan("Edges", index=index)).items) == [entry]


@pytest.mark.parametrize("kind", [BatchGet, TransactGet])
def test_gets_hold_whole_items(store: Store, kind: type[BatchGet] | type[TransactGet]) -> None:
    put(store, "Edges", EDGE)
    gets = (Get("Edges", key("A\0", "1")), Get("Edges", key("A\0", "1 ")))
    assert one(store, kind(gets), BatchGetResponse).items == [EDGE, None]
    cut = Get("Edges", key("A\0", "1"), projection=(attribute("RSK"),))
    assert one(store, kind((cut,)), BatchGetResponse).items == [{"RSK": s("\0")}]


def test_a_count_sees_attributes_that_are_columns(store: Store) -> None:
    put(store, "Edges", item("A", "1", RPK=s("x")), item("A", "2"), item("A", "3", RSK=s("RPK")))
    for name, count in (("RPK", 2), ("RSK", 2), ("grade", 3)):
        absent = Not(Exists(attribute(name)))
        found = page(store, Query("Edges", ("PK", s("A")), filter=absent, count_only=True))
        assert (found.count, found.scanned) == (count, 3)


def test_a_page_goes_on_behind_its_last_item(store: Store) -> None:
    edges = [item("A", str(each), RPK=s("x"), RSK=s(f"\0{each}")) for each in range(3)]
    put(store, "Edges", *edges)
    first = page(store, Query("Edges", ("RPK", s("x")), index="Reverse", limit=2))
    assert first.last == {name: edges[1][name] for name in ("PK", "SK", "RPK", "RSK")}
    rest = page(store, Query("Edges", ("RPK", s("x")), index="Reverse", start=first.last))
    assert list(rest.items) == edges[2:]


# --- writing -----------------------------------------------------------------------------------


def test_writes_see_and_record_whole_items(store: Store) -> None:
    put(store, "Edges", EDGE)
    rekeyed = {**EDGE, "RSK": s("2")}
    update = Update("Edges", key("A\0", "1"), (Set(attribute("RSK"), Value(s("2"))),), returns="old")
    assert one(store, update, ItemResponse).item == EDGE
    unindexed = {name: value for name, value in rekeyed.items() if name != "RPK"}
    assert one(store, Put("Edges", unindexed, return_old=True), ItemResponse).item == rekeyed
    with pytest.raises(ConditionFailed) as failed:
        store.execute([Delete("Edges", key("A\0", "1"), Exists(attribute("RPK")))])
    assert failed.value.item == unindexed
    assert one(store, Delete("Edges", key("A\0", "1"), return_old=True), ItemResponse).item == unindexed
    assert all_changes(one(store, ReadChanges("Edges"), ChangesResponse)) == [
        (None, EDGE),
        (EDGE, rekeyed),
        (rekeyed, unindexed),
        (unindexed, None),
    ]


def test_an_item_that_did_not_change_is_no_change(store: Store) -> None:
    put(store, "Edges", EDGE, EDGE)
    assert len(one(store, ReadChanges("Edges"), ChangesResponse).changes) == 1


# --- the end of a prefix -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "after"),
    [("", None), ("a", "b"), ("ab", "ac"), ("a\U0010ffff", "b"), ("\U0010ffff", None), ("\ud7ff", "\ue000")],
)
def test_the_text_after_a_prefix(prefix: str, after: str | None) -> None:
    assert text_after(prefix) == after


@pytest.mark.parametrize(
    ("prefix", "after"), [(b"", None), (b"a", b"b"), (b"a\xff\xff", b"b"), (b"\xff", None), (b"\x00", b"\x01")]
)
def test_the_bytes_after_a_prefix(prefix: bytes, after: bytes | None) -> None:
    assert bytes_after(prefix) == after


# --- whatever texts there are ------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8") | st.just("\0"), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def memory() -> SQLiteStore:
    store = SQLiteStore(":memory:")
    store.execute([CreateTable(EDGES)])
    return store


@given(texts, texts, st.dictionaries(st.sampled_from(["RPK", "RSK", "kind", "other"]), texts.map(s)))
def test_any_texts_come_back(memory: SQLiteStore, pk: str, sk: str, rest: Item) -> None:
    whole = item(pk, sk, **rest)
    put(memory, "Edges", whole)
    assert stored(memory, "Edges", key(pk, sk)) == whole
    queries: Sequence[Query] = [
        Query("Edges", ("PK", s(pk))),
        *[Query("Edges", ("RPK", rest["RPK"]), index="Reverse") for _ in rest.keys() & {"RPK"} if "RSK" in rest],
    ]
    for query in queries:
        assert whole in page(memory, query).items
