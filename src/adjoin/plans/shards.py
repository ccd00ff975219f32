"""The stored shard maps: read by who finds, and grown by who writes.

One item a field holds its map and the heat that all processes reported. Whoever reports reads it,
adds to it, lets the policy decide whether the map grows, and writes it back if nobody else did so
meanwhile. That happens once in a thousand writes or more, and never in a small program.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from adjoin.errors import AdjoinError, ConditionFailed, TableNotFound, Throttled
from adjoin.expressions import Compare, Exists, Not, Value, attribute
from adjoin.layouts.interface import BoundLayout
from adjoin.layouts.shard_book import ShardBook
from adjoin.plans import Plan
from adjoin.requests import DescribeTable, Get, ItemResponse, PageResponse, Put, Query, TableResponse
from adjoin.sharding.heat import Heat
from adjoin.sharding.maps import ShardMap
from adjoin.sharding.policy import LIMITS, considered
from adjoin.values import Item, decode, encode

MAP, HEAT, SCOPE, VERSION = "map", "heat", "scope", "version"
_ATTEMPTS = 5

T = TypeVar("T")


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


# --- growing -----------------------------------------------------------------------------------


def written(layout: BoundLayout, plan: Plan[T]) -> Plan[T]:
    """A plan that writes, and then reports what it wrote where that is due."""
    index = layout.overloaded
    if index is None or not index.book.is_adaptive:
        return (yield from plan)
    try:
        result = yield from plan
    except Throttled:
        index.book.throttled()
        yield from report_heat(layout)
        raise
    yield from report_heat(layout)
    return result


def report_heat(layout: BoundLayout) -> Plan[None]:
    """Reports what was written to the fields of which a report is due."""
    if layout.overloaded is None:
        return
    book = layout.overloaded.book
    for scope, report in book.reports().items():
        try:
            yield from _report(layout, book, scope, report)
        except AdjoinError:
            # The write that this follows is done. A report that is lost only makes shards come later.
            continue


def _report(layout: BoundLayout, book: ShardBook, scope: str, report: Heat) -> Plan[None]:
    for _ in range(_ATTEMPTS):
        asked_at = book.clock()
        response: ItemResponse
        (response,) = yield (map_request(layout, scope),)
        item = response.item
        shards, heat = _stored(item)
        heat = yield from _bounded(layout, heat)
        after, larger = considered(shards, heat, report, asked_at)
        try:
            yield (_put(layout, scope, larger or shards, after, item),)
        except ConditionFailed:
            continue
        book.learn(scope, larger or shards, asked_at)
        book.heard(scope, after)
        return


def _bounded(layout: BoundLayout, heat: Heat) -> Plan[Heat]:
    """The record with no more bytes than its table has: what is written again and again makes it no larger."""
    if max(heat.size, *heat.sizes.values(), 0) <= LIMITS.size:
        return heat
    described: TableResponse
    (described,) = yield (DescribeTable(layout.table),)
    sizes = {value: min(size, described.size) for value, size in heat.sizes.items()}
    return replace(heat, size=min(heat.size, described.size), sizes=sizes)


def _stored(item: Item | None) -> tuple[ShardMap, Heat]:
    if item is None:
        return ShardMap(), Heat()
    return ShardMap.from_plain(decode(item[MAP])), Heat.from_plain(decode(item[HEAT]))


def _put(layout: BoundLayout, scope: str, shards: ShardMap, heat: Heat, was: Item | None) -> Put:
    version = attribute(VERSION)
    unchanged = Not(Exists(version)) if was is None else Compare("=", version, Value(was[VERSION]))
    number = 1 if was is None else int(was[VERSION]["N"]) + 1
    record = {
        SCOPE: {"S": scope},
        MAP: encode(shards.to_plain()),
        HEAT: encode(heat.to_plain()),
        VERSION: {"N": str(number)},
    }
    return Put(layout.table, layout.shard_map_key(scope) | record, unchanged)
