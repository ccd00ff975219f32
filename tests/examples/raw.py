"""Items as they lie in a table, as plain values: read and written past the graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from adjoin import Graph
from adjoin.requests import BatchWrite, DescribeTable, PageResponse, Put, Scan, TableResponse
from adjoin.reserved import OWN, RECORDS
from adjoin.tables import TableDefinition
from adjoin.values import decode, encode

PlainItem = dict[str, Any]


def stored_items(g: Graph, table: str, index: str | None = None) -> list[PlainItem]:
    """Every item of a table, or every entry of one of its indexes, besides records about the whole table."""
    (response,) = g._store.execute([Scan(table, index=index)])
    assert isinstance(response, PageResponse)
    assert response.last is None
    partition = g._layout.partition_attributes(None)[0].name
    items = [{name: decode(value) for name, value in item.items()} for item in response.items]
    return [item for item in items if item[partition] != OWN + RECORDS]


def write_items(g: Graph, table: str, items: Iterable[Mapping[str, Any]]) -> None:
    """Writes items as another program would, without models and layouts."""
    puts = tuple(Put(table, {name: encode(value) for name, value in item.items()}) for item in items)
    g._store.execute([BatchWrite(puts)])


def table_definition(g: Graph, table: str) -> TableDefinition:
    (response,) = g._store.execute([DescribeTable(table)])
    assert isinstance(response, TableResponse)
    return response.definition


def in_order(items: Iterable[PlainItem]) -> list[PlainItem]:
    """Sorted by the table's key, so that two lists of items compare."""
    return sorted(items, key=lambda item: (item["PK"], item["SK"]))
