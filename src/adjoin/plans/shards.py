"""The stored shard maps: read by who finds, and grown by who writes."""

from __future__ import annotations

from dataclasses import replace

from adjoin.errors import TableNotFound
from adjoin.layouts.interface import BoundLayout
from adjoin.layouts.shard_book import ShardBook
from adjoin.plans import Plan
from adjoin.requests import Get, PageResponse, Query
from adjoin.sharding.maps import ShardMap
from adjoin.values import Item, decode

MAP, SCOPE = "map", "scope"


def map_request(layout: BoundLayout, scope: str) -> Get:
    return Get(layout.table, layout.shard_map_key(scope), consistent=True)


def read_shard_maps(layout: BoundLayout) -> Plan[None]:
    """All maps of a graph at once, when it opens; a table that is not there has none."""
    index = layout.overloaded
    if index is None or not index.book.is_adaptive:
        return
    (pk, partition), _ = layout.shard_map_key("").items()
    asked_at = index.book.clock()
    stored: dict[str, Item] = {}
    query = Query(layout.table, (pk, partition), consistent=True)
    while True:
        try:
            response: PageResponse
            (response,) = yield (query,)
        except TableNotFound:
            return
        stored |= {item[SCOPE]["S"]: item for item in response.items if SCOPE in item}
        if response.last is None:
            break
        query = replace(query, start=response.last)
    for scope in index.scopes:
        learn(index.book, scope, stored.get(scope), asked_at)


def learn(book: ShardBook, scope: str, item: Item | None, asked_at: float) -> None:
    """Takes down what was stored about the shards of a field when somebody asked."""
    book.learn(scope, ShardMap() if item is None else ShardMap.from_plain(decode(item[MAP])), asked_at)
