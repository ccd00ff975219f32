"""Tables that another program filled: items as boto3 would write them, put by the store alone, and read back so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from adjoin import Graph
from adjoin.layouts.interface import Layout
from adjoin.requests import PageResponse, Put, Scan
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item
from tests.servers.open import Stores

STORES = ["embedded", "ministack"]

_serialize, _deserialize = TypeSerializer().serialize, TypeDeserializer().deserialize


def item(partition: str, sort: str, **values: Any) -> Item:
    """An item of a table whose keys are PK and SK, in DynamoDB's JSON."""
    return {name: _serialize(value) for name, value in {"PK": partition, "SK": sort, **values}.items()}


def plain(stored: Item) -> dict[str, Any]:
    """An item as plain values."""
    return {name: _deserialize(value) for name, value in stored.items()}


@contextmanager
def filled(where: str, servers: Stores, models: list[Any], layout: Layout, items: Iterable[Item]) -> Iterator[Graph]:
    """A graph over a table that holds these items, which the graph did not write."""
    store: Store = SQLiteStore(":memory:") if where == "embedded" else servers.open(where)
    with Graph(store, models, layout) as g:
        g.create_table()
        store.execute([Put(layout.table, each) for each in items])
        yield g
        g.drop_table()


def stored(g: Graph) -> list[Item]:
    """All items of the table that are not records of adjoin's own, sorted by their keys."""
    (response,) = g._store.execute([Scan(g._layout.table)])
    assert isinstance(response, PageResponse)
    assert response.last is None
    return in_order(each for each in response.items if not g._layout.is_own_record(g._layout.key_of(each)))


def in_order(items: Iterable[Item]) -> list[Item]:
    return sorted((dict(each) for each in items), key=lambda each: (each["PK"]["S"], each["SK"]["S"]))


def at(g: Graph, partition: str, sort: str) -> Item | None:
    """The item with that key."""
    key = {"PK": {"S": partition}, "SK": {"S": sort}}
    return next((each for each in stored(g) if key.items() <= each.items()), None)


def rewritten(g: Graph) -> list[Item]:
    """What adjoin would store for everything that it reads from the table, beside what it cannot read."""
    contents = g.scan().collect()
    entities: list[Any] = [*contents.nodes, *contents.edges]
    own = [each for entity in entities for each in g._layout.items(entity)]
    return in_order([*own, *others(g)])


def others(g: Graph) -> list[Item]:
    """The items that no class explains, sorted by their keys."""
    return in_order({name: _serialize(value) for name, value in each.items()} for each in g.scan().others)


def asked(g: Graph, call: Callable[[], Any], requests: int) -> Any:
    """What a call returns, which must have made that many requests."""
    with g.meter() as meter:
        found = call()
    assert meter.requests == requests
    return found
