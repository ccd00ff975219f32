"""A table with neither a stream nor indexes takes puts in one pass, and becomes what any other table would."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from adjoin.requests import BatchWrite, CreateTable, Delete, DescribeTable, Put, TableResponse
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition
from tests.shares import examples
from tests.stores.examples import PLAIN, everything, item, key, n, s

SIMPLE = replace(PLAIN, stream=False, ttl="until")

VALUES = st.sampled_from([s("x"), s("y"), s("xyz"), s("ä"), n(1), n(10), n(11), {"BOOL": True}, s("x" * 1500)])
MAPS = st.sampled_from([{"M": {"a": s("1"), "b": s("2")}}, {"M": {"b": s("2"), "a": s("1")}}])
ATTRIBUTES = st.dictionaries(st.sampled_from(["a", "b", "until"]), VALUES | MAPS, max_size=3)
NUMBERS = st.integers(0, 2)
PUTS = st.builds(lambda number, rest: Put("Plain", item("p", str(number), **rest)), NUMBERS, ATTRIBUTES)
SWAPPED = st.builds(lambda put: Put("Plain", dict(reversed(put.item.items()))), PUTS)
DELETES = st.builds(lambda number: Delete("Plain", key("p", str(number))), NUMBERS)
WRONG = st.sampled_from(
    [Put("Plain", {"PK": s("p")}), Put("Plain", item("", "1")), Put("Plain", {"PK": n(1), "SK": s("1")})]
)
BATCHES = st.lists(PUTS | DELETES | WRONG, min_size=1, max_size=4).map(lambda writes: BatchWrite(tuple(writes)))


def _performed(definition: TableDefinition, requests: list[Any]) -> tuple[list[Any], list[Any], tuple[int, int]]:
    store = SQLiteStore(":memory:", clock=lambda: 0.0)
    store.execute([CreateTable(definition)])
    outcomes = [store.outcomes([request])[0] for request in requests]
    told = [str(each) if isinstance(each, Exception) else each for each in outcomes]
    (table,) = store.execute([DescribeTable(definition.name)])
    assert isinstance(table, TableResponse)
    found = everything(store, definition.name)
    store.close()
    return told, found, (table.item_count, table.size)


@given(st.lists(PUTS | SWAPPED | DELETES | WRONG | BATCHES, max_size=8))
@example([Put("Plain", item("p", "1", a=n(10))), Put("Plain", item("p", "1", a=n(10)))])
@settings(max_examples=examples(100), deadline=None)
def test_a_simple_table_becomes_what_others_do(requests: list[Any]) -> None:
    assert _performed(SIMPLE, requests) == _performed(replace(SIMPLE, stream=True), requests)


def test_a_table_with_an_index_over_its_own_keys_is_not_simple() -> None:
    inverted = IndexDefinition("Inverted", KeyAttribute("SK"), KeyAttribute("PK"), Projection("KEYS_ONLY"))
    requests = [Put("Plain", item("p", "1", a=n(1))), Put("Plain", item("p", "1", a=n(2)))]
    definition = replace(SIMPLE, indexes=(inverted,))
    told, _, _ = _performed(definition, requests)
    assert [[row.index for row in response.consumed] for response in told] == [[None, "Inverted"], [None]]
