"""What the embedded store says and knows beyond the service: its own words, and totals that are always true."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from adjoin.errors import AdjoinError, InvalidRequest, ItemTooLarge, TableExists, TableNotFound, TokenReused
from adjoin.expressions import Add, Exists, attribute
from adjoin.requests import (
    BatchGet,
    BatchWrite,
    CreateTable,
    Delete,
    DescribeTable,
    Get,
    Put,
    Query,
    Request,
    Scan,
    SortCondition,
    TableResponse,
    TransactGet,
    TransactWrite,
    Update,
)
from adjoin.stores.sqlite import SQLiteStore
from tests.stores.examples import EDGES, PLAIN, SINGLE, item, key, n, one, put, s


@pytest.fixture
def store(embedded: SQLiteStore) -> SQLiteStore:
    embedded.execute([CreateTable(definition) for definition in (EDGES, PLAIN, SINGLE)])
    return embedded


# --- words -------------------------------------------------------------------------------------

BAD_VALUES: list[tuple[Any, str]] = [
    (None, "None has no type; a value is written as {type: value}"),
    ({"L": ["x"]}, "'x' has no type; a value is written as {type: value}"),
    ({"X": "a"}, "'X' is not a type of value"),
    ({"S": 1}, "a S value must be a str, not 1"),
    ({"N": 1}, "a N value must be a str, not 1"),
    ({"BOOL": 1}, "a BOOL value must be a bool, not 1"),
    ({"L": "x"}, "a L value must be a list, not 'x'"),
    ({"M": []}, "a M value must be a dict, not []"),
    ({"SS": "x"}, "a SS value must be a list, not 'x'"),
    ({"B": "not base64"}, "'not base64' is not base64"),
    (s("half \ud800"), "half of a surrogate pair"),
    ({"M": {"half \ud800": n(1)}}, "half of a surrogate pair"),
]


@pytest.mark.parametrize(("value", "words"), BAD_VALUES)
def test_bad_values_are_explained(store: SQLiteStore, value: Any, words: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(words)):
        store.execute([Put("Plain", item("A", "1", x=value))])


PUTS = tuple(Put("Plain", item("A", str(each))) for each in range(101))
GETS = tuple(Get("Plain", key("A", str(each))) for each in range(101))
LARGE = tuple(Put("Plain", item("A", str(each), x=s("x" * 400_000))) for each in range(11))
OF_A = ("PK", s("A"))

BAD_REQUESTS: list[tuple[Request, type[AdjoinError], str]] = [
    (Get("None", key("A", "1")), TableNotFound, "has no table None; its tables are: Edges, Plain, Single"),
    (CreateTable(replace(PLAIN, name="Edges")), TableExists, "the table Edges already exists"),
    (Put("Plain", {"PK": "A", "SK": "1"}), InvalidRequest, "'A' has no type"),  # type: ignore[dict-item]
    (Put("Plain", item("x" * 2049, "1")), InvalidRequest, "2048 bytes; Key: PK"),
    (Put("Plain", item("A", "x" * 1025)), InvalidRequest, "1024 bytes; Key: SK"),
    (Put("Edges", item("A", "1", RPK=s(""))), InvalidRequest, "IndexName: Reverse, IndexKey: RPK"),
    (Put("Edges", key("x" * 1025, "1")), InvalidRequest, "1024 bytes; IndexName: Inverted, IndexKey: PK"),
    (
        Put("Plain", item("A", "1", x=s("x" * 409_600))),
        ItemTooLarge,
        "409607 bytes of 409600 at key {'PK': {'S': 'A'}, 'SK': {'S': '1'}}",
    ),
    (BatchGet(()), InvalidRequest, "BatchGetItem takes 1 to 100 keys, not 0"),
    (BatchGet(GETS), InvalidRequest, "BatchGetItem takes 1 to 100 keys, not 101"),
    (TransactGet(GETS), InvalidRequest, "TransactGetItems takes 1 to 100 keys, not 101"),
    (BatchWrite(()), InvalidRequest, "takes 1 to 25 writes, not 0"),
    (BatchWrite(PUTS[:26]), InvalidRequest, "takes 1 to 25 writes, not 26"),
    (BatchWrite((Put("Plain", item("A", "1"), Exists(attribute("a"))),)), InvalidRequest, "cannot have conditions"),
    (TransactWrite(()), InvalidRequest, "takes 1 to 100 writes, not 0"),
    (TransactWrite(PUTS), InvalidRequest, "takes 1 to 100 writes, not 101"),
    (TransactWrite(LARGE), InvalidRequest, "larger than 4 MB together"),
    (Query("Plain", OF_A, limit=0), InvalidRequest, "limit must be at least 1, got 0"),
    (Query("Plain", OF_A, SortCondition("SK", "between", (s("b"),))), InvalidRequest, "between cannot take 1 operands"),
    (Query("Plain", OF_A, SortCondition("SK", "=", (s("b"), s("a")))), InvalidRequest, "= cannot take 2 operands"),
    (Scan("Plain", segment=(2, 2)), InvalidRequest, "there is no segment 2 of 2"),
]


@pytest.mark.parametrize(("request_", "error", "words"), BAD_REQUESTS)
def test_bad_requests_are_explained(
    store: SQLiteStore, request_: Request, error: type[AdjoinError], words: str
) -> None:
    with pytest.raises(error, match=re.escape(words)):
        store.execute([request_])


def test_a_reused_token_is_explained(store: SQLiteStore) -> None:
    def increment(by: int) -> TransactWrite:
        return TransactWrite((Update("Plain", key("A", "1"), (Add(attribute("a"), n(by)),)),), "t")

    store.execute([increment(1)])
    with pytest.raises(TokenReused, match="the token 't' was used for another transaction"):
        store.execute([increment(2)])


# --- tables ------------------------------------------------------------------------------------


def test_a_table_is_described_with_recovery_and_tags(store: SQLiteStore) -> None:
    tagged = replace(PLAIN, name="Tagged", ttl="until", point_in_time_recovery=True, tags=(("a", "b"), ("é", "")))
    assert one(store, CreateTable(tagged), TableResponse) == TableResponse(tagged)
    assert one(store, DescribeTable("Tagged"), TableResponse) == TableResponse(tagged)


def test_the_description_counts_items(store: SQLiteStore) -> None:
    """The service does so "approximately every six hours"."""
    put(store, "Plain", item("A", "1"), item("A", "2", x=s("xxx")))
    assert one(store, DescribeTable("Plain"), TableResponse) == TableResponse(PLAIN, 2, 6 + 10)
    put(store, "Plain", item("A", "2", x=s("x")), item("A", "3"))
    store.execute([Delete("Plain", key("A", "1")), Delete("Plain", key("A", "9"))])
    assert one(store, DescribeTable("Plain"), TableResponse) == TableResponse(PLAIN, 2, 8 + 6)


def test_a_table_without_a_stream_is_counted_too(store: SQLiteStore) -> None:
    quiet = replace(PLAIN, name="Quiet", stream=False)
    store.execute([CreateTable(quiet)])
    put(store, "Quiet", item("A", "1"), item("A", "2"), item("A", "3"))
    store.execute([Delete("Quiet", key("A", "1"))])
    assert one(store, DescribeTable("Quiet"), TableResponse) == TableResponse(quiet, 2, 12)
