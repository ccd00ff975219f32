"""Tables that another program filled: their items go in without adjoin, and come out as they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel

from adjoin import AdjacencyList, Graph
from adjoin.collecting import CollectionQuery
from adjoin.requests import Get, Put
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item, encode
from tests.servers.open import Stores

STORES = ("embedded", "ministack")


def item(**attributes: Any) -> Item:
    """An item as boto3 writes it."""
    return {name: encode(value) for name, value in attributes.items()}


@contextmanager
def filled(where: str, servers: Stores, models: list[Any], layout: AdjacencyList, items: list[Item]) -> Iterator[Graph]:
    """A graph over a table with these items, which the store alone has written."""
    store: Store = SQLiteStore(":memory:") if where == "embedded" else servers.open(where)
    with Graph(store, models, layout, cursor_secret="s") as g:
        g.create_table()
        for each in items:
            store.execute([Put(layout.table, each)])
        yield g
        g.drop_table()


def stored(g: Graph, *values: Any) -> Item | None:
    """The item with this key, as the store has it."""
    layout: Any = g._layout
    names = layout.start_names(None)
    key = dict(zip(names, map(encode, values), strict=True))
    (response,) = g._store.execute([Get(layout.table, key, consistent=True)])
    found: Item | None = response.item  # type: ignore[union-attr]
    return None if found is None else dict(found)


def asked(g: Graph, query: Any, *given: Any) -> tuple[Any, int]:
    """What a query or a call finds, and how many requests that takes."""
    with g.meter() as meter:
        found = query(*given) if callable(query) else query
        if isinstance(found, CollectionQuery):
            assert [*found.edges, *found.children]
        elif isinstance(found, Iterable) and not isinstance(found, BaseModel):
            found = list(found)
    return found, meter.requests


def paged(query: Any, limit: int) -> list[Any]:
    """All results, in pages with tokens."""
    found: list[Any] = []
    token: str | None = None
    while True:
        page = query.page(limit=limit, after=token)
        found += page
        token = page.next
        if token is None:
            return found
