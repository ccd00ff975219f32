"""Shards that grow while tests look: a clock to move, maps that are announced, and pages that end early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adjoin import Graph
from adjoin.layouts.indexed_fields import OverloadedIndex
from adjoin.plans.shards import HEAT, MAP, SCOPE, VERSION, fresh_numbers, map_request
from adjoin.requests import ItemResponse, Put, Query, Request, Response, Scan
from adjoin.reserved import DECLARED
from adjoin.runner import run
from adjoin.sharding.heat import Heat
from adjoin.sharding.maps import FIRST_GRACE, FIRST_LEASE, ShardMap
from adjoin.stores.interface import Store
from adjoin.values import Item, decode, encode


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_lease(self) -> None:
        """Until every reader must look at the maps again."""
        self.now += FIRST_LEASE

    def pass_grace(self) -> None:
        """Until what was announced is written to."""
        self.now += 2 * FIRST_GRACE


def index_of(graph: Graph) -> OverloadedIndex:
    index = graph._layout.overloaded
    assert index is not None
    return index


def on_clock(graph: Graph, clock: Clock) -> Graph:
    """The same graph, whose shards follow a clock of the test."""
    if graph._layout.overloaded is not None:
        index_of(graph).book.clock = clock
    for number in graph._layout.shard_numbers.values():
        number.clock = clock
    run(fresh_numbers(graph._layout), graph._store)
    return graph


def stored_map(graph: Graph, scope: str) -> Item | None:
    (response,) = graph._store.execute((map_request(graph._layout, scope),))
    assert isinstance(response, ItemResponse)
    return response.item


def announce(
    graph: Graph, scope: str, shards: int | None = None, values: Mapping[str, int] | None = None
) -> ShardMap | None:
    """Makes the stored map of a field larger, as a process would that measured heat; None where it is that large."""
    item = stored_map(graph, scope)
    known = ShardMap() if item is None else ShardMap.from_plain(decode(item[MAP]))
    more = shards if shards is not None and shards > known.shards_of() else None
    own = {value: number for value, number in (values or {}).items() if number > known.shards_of(value)}
    if more is None and not own:
        return None
    larger = known.grown(index_of(graph).book.clock(), more, own)
    record: Item = {
        SCOPE: {"S": scope},
        MAP: encode(larger.to_plain()),
        HEAT: encode(Heat().to_plain()) if item is None else item[HEAT],
        VERSION: {"N": str(1 if item is None else int(item[VERSION]["N"]) + 1)},
    }
    graph._store.execute((Put(graph._layout.table, graph._layout.shard_map_key(scope) | record),))
    return larger


class ShortPages:
    """Passes requests on, but a page of a query ends after so many items, as one of 1 MB does."""

    def __init__(self, inner: Store, most: int) -> None:
        self.inner, self.most = inner, most
        self.creates_tables = inner.creates_tables

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        return self.inner.execute([self._short(request) for request in requests])

    def _short(self, request: Request) -> Request:
        if isinstance(request, Query):
            return replace(request, limit=min(request.limit or self.most, self.most))
        return request

    def close(self) -> None:
        self.inner.close()


def scanned(graph: Graph) -> list[Any]:
    """Every stored item of the table, besides the record of what is declared."""
    items: list[Any] = []
    request = Scan(graph._layout.table)
    while True:
        (response,) = graph._store.execute((request,))
        found: list[Any] = response.items  # type: ignore[union-attr, assignment]
        items += [item for item in found if DECLARED not in item]
        if response.last is None:  # type: ignore[union-attr]
            return items
        request = replace(request, start=response.last)  # type: ignore[union-attr]
