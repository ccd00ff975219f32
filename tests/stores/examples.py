"""Tables and items that the store tests share."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from adjoin.errors import AdjoinError, InvalidRequest
from adjoin.requests import (
    ChangesResponse,
    Consumed,
    Get,
    ItemResponse,
    PageResponse,
    Put,
    Request,
    Response,
    Scan,
)
from adjoin.stores.interface import Store
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition
from adjoin.values import AttributeValue, Item
from tests.servers.differences import said_by

R = TypeVar("R", bound=Response)


def s(text: str) -> AttributeValue:
    return {"S": text}


def n(number: int | str) -> AttributeValue:
    return {"N": str(number)}


def b(raw: bytes) -> AttributeValue:
    return {"B": b64encode(raw).decode()}


def key(pk: str, sk: str) -> Item:
    return {"PK": s(pk), "SK": s(sk)}


def item(pk: str, sk: str, **attributes: AttributeValue) -> Item:
    return {**key(pk, sk), **attributes}


EDGES = TableDefinition(
    "Edges",
    KeyAttribute("PK"),
    KeyAttribute("SK"),
    (
        IndexDefinition("Reverse", KeyAttribute("RPK"), KeyAttribute("RSK")),
        IndexDefinition("Inverted", KeyAttribute("SK"), KeyAttribute("PK"), Projection("KEYS_ONLY")),
        IndexDefinition("Kind", KeyAttribute("kind"), None, Projection("INCLUDE", ("grade",))),
        IndexDefinition("ByTime", KeyAttribute("PK"), KeyAttribute("at", "N"), Projection("KEYS_ONLY"), local=True),
    ),
)
PLAIN = TableDefinition("Plain", KeyAttribute("PK"), KeyAttribute("SK"))
SINGLE = TableDefinition("Single", KeyAttribute("id"))


INDEXED: list[Item] = [
    item("A", "1", RPK=s("X"), RSK=s("b"), kind=s("k"), grade=s("1"), other=s("o"), at=n(10)),
    item("A", "2", RPK=s("X"), RSK=s("a"), kind=s("k"), other=s("o"), at=n(9)),
    item("B", "1", RPK=s("X"), RSK=s("a"), kind=s("j"), at=n(1)),
    item("B", "2", RPK=s("X")),
    item("C", "1", RSK=s("a")),
]
"""Items in some of the indexes of Edges each, in the order of their keys."""


def keyed_by(kind: Any) -> TableDefinition:
    """A table whose partition and sort keys have one type."""
    return TableDefinition(f"Keyed.{kind}", KeyAttribute("PK", kind), KeyAttribute("SK", kind))


def one(store: Store, request: Request, kind: type[R]) -> R:
    """The response to one request; what it consumed is put into the order of `in_order`."""
    (response,) = store.execute([request])
    assert isinstance(response, kind)
    return replace(response, consumed=in_order(response.consumed))


@contextmanager
def refused(
    store: Store, words: str = "", error: type[AdjoinError] = InvalidRequest
) -> Iterator[pytest.ExceptionInfo[AdjoinError]]:
    """Expects an error, and its words where they are the service's (a regular expression)."""
    with pytest.raises(error, match=said_by(store, words) or None) as caught:
        yield caught


def page(store: Store, request: Request) -> PageResponse:
    return one(store, request, PageResponse)


def put(store: Store, table: str, *items: Item) -> None:
    store.execute([Put(table, each) for each in items])


def stored(store: Store, table: str, where: Item) -> Item | None:
    return one(store, Get(table, where, consistent=True), ItemResponse).item


def everything(store: Store, table: str) -> list[Item]:
    items: list[Item] = []
    start = None
    while True:
        response = page(store, Scan(table, start=start))
        items += response.items
        start = response.last
        if start is None:
            return items


def sort_keys(items: Sequence[Item]) -> list[str]:
    return [each["SK"]["S"] for each in items]


def in_order(consumed: Sequence[Consumed]) -> tuple[Consumed, ...]:
    """Rows by table and index, each table before its indexes; the service gives them in no order."""
    return tuple(sorted(consumed, key=lambda row: (row.table, row.index or "")))


def reading(units: float, table: str = "Edges", index: str | None = None) -> tuple[Consumed, ...]:
    return (Consumed(table, index, units, 0.0),)


def writing(table: str = "Edges", /, **units: float) -> tuple[Consumed, ...]:
    """Rows of written units: the table's under `table`, those of indexes under their names."""
    return in_order(
        [Consumed(table, None if name == "table" else name, 0.0, written) for name, written in units.items()]
    )


def with_sorted_sets(value: Any) -> Any:
    """An item, or anything in it, with sets in one order; "the order of the values within a set is not preserved"."""
    if isinstance(value, dict):
        return {
            name: sorted(inner) if name in ("SS", "NS", "BS") and isinstance(inner, list) else with_sorted_sets(inner)
            for name, inner in value.items()
        }
    return [with_sorted_sets(inner) for inner in value] if isinstance(value, list) else value


def by_key(items: Sequence[Item]) -> list[Item]:
    """Items in the order of their keys, for where the service promises none."""
    return sorted(items, key=lambda each: (each["PK"]["S"], each["SK"]["S"]))


def all_changes(response: ChangesResponse) -> list[tuple[Item | None, Item | None]]:
    return [(change.old, change.new) for change in response.changes]
