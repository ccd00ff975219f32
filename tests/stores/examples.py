"""Tables and items that the store tests share."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, TypeVar

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


def keyed_by(kind: Any) -> TableDefinition:
    """A table whose partition and sort keys have one type."""
    return TableDefinition(f"Keyed.{kind}", KeyAttribute("PK", kind), KeyAttribute("SK", kind))


def one(store: Store, request: Request, kind: type[R]) -> R:
    (response,) = store.execute([request])
    assert isinstance(response, kind)
    return response


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


def reading(units: float, table: str = "Edges", index: str | None = None) -> tuple[Consumed, ...]:
    return (Consumed(table, index, units, 0.0),)


def writing(table: str = "Edges", /, **units: float) -> tuple[Consumed, ...]:
    """Rows of written units: the table's under `table`, then those of indexes in order."""
    return tuple(Consumed(table, None if name == "table" else name, 0.0, written) for name, written in units.items())


def all_changes(response: ChangesResponse) -> list[tuple[Item | None, Item | None]]:
    return [(change.old, change.new) for change in response.changes]
